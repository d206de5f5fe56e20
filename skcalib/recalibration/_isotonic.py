"""Isotonic regression."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._numerics.isotonic import centred_isotonic_knots, isotonic_knots
from ._base import Recalibrator
from ._piecewise import Pieces, PiecewiseRecalibrator


class IsotonicRecalibrator(PiecewiseRecalibrator):
    r"""Recalibration by isotonic regression.

    The calibrated probability is the increasing function of the predicted one that fits the labels
    best, by default strictly increasing. More than two classes are recalibrated one against the
    rest, and the rows divided by their sums.

    Parameters
    ----------
    strict : bool, default=True
        True: a strictly increasing map, which keeps the ranking, so also the area under the ROC
        curve, and never says 0 or 1, so that the log loss stays finite. False: the steps of the
        literature, which make ties, and say 0 and 1.

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
    VennAbersRecalibrator : Two isotonic fits, which say how far the data determine them.
    RecalibratedClassifier : A classifier together with a recalibrator.

    Notes
    -----
    With `strict=False` it is the weighted least squares fit over nondecreasing functions [1]_, by
    pool adjacent violators after pooling ties: exact, :math:`O(K n \log n)`. Between two
    predictions of the calibration data it is interpolated linearly; outside their range it is
    constant. It can be exactly 0 or 1, where the log loss of a single surprise is infinite, and
    different predictions can become equal. A row whose calibrated probabilities are all 0 keeps
    its predicted probabilities. A class without labels gets probability 0.

    With `strict=True` the data get two samples more, each of the weight :math:`\sum_i w_i^2` (1/n
    if the n weights are equal, which sum to 1), where they contradict most: a positive one before
    all others and a negative one behind them. So the fit lies in (0, 1). Each block of equal values
    then becomes one knot at the mean of its predictions, and the map is linear between knots, the
    centred isotonic regression of [2]_. With values :math:`v_1 < \dots < v_r` at the knots, the
    map is :math:`v_1 / 2` at 0 and :math:`(1 + v_r) / 2` at 1, unless these are knots. It increases
    strictly up to rounding; of several classes each keeps its ranking until rows are divided by
    sums. Constant predictions, separable data, a single sample and a class without labels need no
    special treatment.

    References
    ----------
    .. [1] B. Zadrozny and C. Elkan (2002). Transforming Classifier Scores into Accurate Multiclass
       Probability Estimates. KDD 2002. :doi:`10.1145/775047.775151`
    .. [2] A. P. Oron and N. Flournoy (2017). Centered Isotonic Regression: Point and Interval
       Estimation for Dose-Response Studies. Statistics in Biopharmaceutical Research 9, 258–267.
       :arxiv:`1701.05964`

    Examples
    --------
    >>> from skcalib.recalibration import IsotonicRecalibrator
    >>> recalibrator = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    >>> recalibrator.predict_proba([0.25, 0.35, 0.8])
    array([[0.57142857, 0.42857143],
           [0.5       , 0.5       ],
           [0.32692308, 0.67307692]])
    >>> recalibrator = IsotonicRecalibrator(strict=False)
    >>> recalibrator.fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1]).predict_proba([0.25, 0.8])
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    _parameter_constraints: dict = {**Recalibrator._parameter_constraints, "strict": ["boolean"]}

    def __init__(self, *, strict: bool = True, labels: ArrayLike | None = None) -> None:
        self.strict = strict
        self.labels = labels

    def _fit_binary(self, predictions):
        points, weight, _ = predictions.pooled()
        if self.strict:
            return centred_isotonic_knots(points, weight, predictions.share_of_one_sample)
        return isotonic_knots(points, weight)

    def _map_binary(self, proba: np.ndarray, learned: Any) -> np.ndarray:
        knots, values = learned
        return np.clip(np.interp(proba, knots, values), values[0], values[-1])  # up to rounding

    def _pieces(self, learned: Any) -> Pieces:
        knots, values = learned
        with np.errstate(over="ignore"):
            slope = np.append(np.diff(values) / np.diff(knots), 0.0)
        slope[~np.isfinite(slope)] = 0.0  # a step, as nothing lies between
        if knots[0] == 0:
            return Pieces(knots, values, slope)
        return Pieces(np.append(0.0, knots), np.append(values[0], values), np.append(0.0, slope))
