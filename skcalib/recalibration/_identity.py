"""No recalibration."""

from ._base import Recalibrator


class IdentityRecalibrator(Recalibrator):
    """Leaves the probabilities as they are.

    For a grid search over the recalibrators of a pipeline, where it stands for doing nothing:
    scikit-learn's "passthrough" cannot, as a pipeline that ends in it does not predict.

    Parameters
    ----------
    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. Needed
        if a class does not occur in the calibration data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    AutoRecalibrator : Tries several recalibrators, and none at all.

    Notes
    -----
    The cost is that of checking the input.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import Pipeline
    >>> from skcalib.recalibration import IdentityRecalibrator, PredictProba, SigmoidRecalibrator
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pipeline = Pipeline(
    ...     [("proba", PredictProba(GaussianNB())), ("recalibrate", IdentityRecalibrator())]
    ... )
    >>> search = GridSearchCV(
    ...     pipeline,
    ...     {"recalibrate": [IdentityRecalibrator(), SigmoidRecalibrator()]},
    ...     scoring="neg_log_loss",
    ... ).fit(X, y)
    >>> search.best_params_
    {'recalibrate': SigmoidRecalibrator()}
    """

    def __init__(self, *, labels=None):
        self.labels = labels

    def _fit(self, predictions):
        pass

    def _map(self, proba):
        return proba
