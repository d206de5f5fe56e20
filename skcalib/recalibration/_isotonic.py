"""Isotonic regression."""

import numpy as np

from .._numerics.isotonic import isotonic_fit
from ._base import Recalibrator


class IsotonicRecalibrator(Recalibrator):
    r"""Recalibration by isotonic regression.

    The calibrated probability is the nondecreasing function of the predicted one that fits the
    labels best. More than two classes are recalibrated one against the rest, and the rows divided
    by their sums.

    Parameters
    ----------
    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.
        Needed if a class does not occur in the calibration data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result.

    knots_ : list of ndarray
        For two classes one array, of predicted probabilities of the last class; else one for each
        class. Sorted.

    values_ : list of ndarray
        The calibrated probabilities at the knots, before rows are divided by their sums.

    n_features_in_ : int
        Number of columns of `X` at `fit` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    RecalibratedClassifier : A classifier together with a recalibrator.

    Notes
    -----
    The weighted least squares fit over nondecreasing functions, by pool adjacent violators after
    pooling ties: exact, :math:`O(K n \log n)`. Between two predictions of the calibration data it
    is interpolated linearly; outside their range it is constant.

    The fit can be exactly 0 or 1, where the log loss of a single surprise is infinite, and
    different predictions can become equal. A row whose calibrated probabilities are all 0 keeps
    its predicted probabilities. A class without labels gets probability 0.

    References
    ----------
    .. [1] B. Zadrozny and C. Elkan (2002). Transforming Classifier Scores into Accurate Multiclass
       Probability Estimates. KDD 2002. :doi:`10.1145/775047.775151`

    Examples
    --------
    >>> from skcalib.recalibration import IsotonicRecalibrator
    >>> recalibrator = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    >>> recalibrator.predict_proba([0.25, 0.8])
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(self, labels=None):
        self.labels = labels

    def _fit(self, predictions):
        problems = [predictions]
        if not predictions.is_binary:
            problems = [problem for _, problem in predictions.classwise()]
        fits = [isotonic_fit(one.proba, one.label, one.weight) for one in problems]
        self.knots_, self.values_ = (list(part) for part in zip(*fits, strict=True))

    def _map(self, proba):
        columns = [proba] if proba.ndim == 1 else proba.T
        mapped = np.column_stack(
            [
                np.interp(column, knots, values)
                for column, knots, values in zip(columns, self.knots_, self.values_, strict=True)
            ]
        )
        if proba.ndim == 1:
            return np.column_stack([1 - mapped[:, 0], mapped[:, 0]])
        impossible = ~mapped.any(axis=1)
        mapped[impossible] = proba[impossible]
        return mapped / mapped.sum(axis=1, keepdims=True)
