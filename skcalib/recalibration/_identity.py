"""No recalibration, as a recalibrator."""

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.predictions import Predictions
from ._base import Recalibrator
from ._languages import Language


class IdentityRecalibrator(Recalibrator):
    """Leaves the probabilities as they are.

    It stands for "no recalibration" where a recalibrator is expected: as one value of a pipeline
    step in a grid search, or as the second half of a :class:`RecalibratedClassifier`.

    Parameters
    ----------
    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.
        Needed if a class does not occur in the calibration data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result.

    n_features_in_ : int
        Number of columns of `X` at `fit` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    AutoRecalibrator : Decides by itself whether to recalibrate.

    Notes
    -----
    A pipeline that ends with "passthrough" has no `predict_proba`, so a grid search scores it NaN;
    with this as the last step it is a classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import Pipeline
    >>> from skcalib.recalibration import IdentityRecalibrator, PredictProba, SigmoidRecalibrator
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pipeline = Pipeline(
    ...     [("classifier", PredictProba(GaussianNB())), ("recalibrator", IdentityRecalibrator())]
    ... )
    >>> grid = {"recalibrator": [IdentityRecalibrator(), SigmoidRecalibrator()]}
    >>> search = GridSearchCV(pipeline, grid, scoring="neg_log_loss").fit(X, y)
    >>> search.best_params_
    {'recalibrator': SigmoidRecalibrator()}
    >>> search.cv_results_["mean_test_score"].round(2)
    array([-0.65, -0.16])
    """

    def __init__(self, *, labels: ArrayLike | None = None) -> None:
        self.labels = labels

    def _fit(self, predictions: Predictions) -> None:
        pass

    def _map(self, proba: np.ndarray) -> np.ndarray:
        return proba.copy()

    def _write(self, language: Language, proba: list[str]) -> list[str]:
        return proba
