"""Isotonic regression."""

import numpy as np

from .._numerics.isotonic import isotonic_fit
from ._base import OneVsRestRecalibrator


class IsotonicRecalibrator(OneVsRestRecalibrator):
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

    maps_ : list of (knots, values)
        The calibrated probabilities (values) at sorted predicted ones (knots): for two classes
        one pair, for the last class; else one for each class, before rows are divided by sums.

    n_features_in_ : int
        Number of columns of `X` at `fit` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    RecalibratedClassifier : A classifier together with a recalibrator.

    Notes
    -----
    The weighted least squares fit over nondecreasing functions [1]_, by pool adjacent violators
    after pooling ties: exact, :math:`O(K n \log n)`. Between two predictions of the calibration
    data it is interpolated linearly; outside their range it is constant.

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

    def __init__(self, *, labels=None):
        self.labels = labels

    def _fit_binary(self, predictions):
        return isotonic_fit(predictions.proba, predictions.label, predictions.weight)

    def _map_binary(self, proba, learned):
        return np.interp(proba, *learned)
