"""Isotonic regression."""

from typing import Any

import numpy as np

from .._data import ClassData
from .._inputs.arrays import ArrayLike
from .._inputs.checks import check_predict_input
from .._inputs.scikit_learn import estimator_class
from .._numerics.isotonic import (
    isotonic_knots,
    strictly_isotonic_knots,
    venn_abers_bounds,
    venn_abers_fit,
)
from ._base import OneVsRestRecalibrator
from ._maps import Pieces


@estimator_class(kw_only=True)
class IsotonicRecalibrator(OneVsRestRecalibrator):
    r"""Recalibration by isotonic regression.

    The calibrated probability is the increasing function of the predicted one that fits the labels
    best, by default strictly increasing. More than two classes: one against the rest, and rows
    divided by their sums.

    Parameters
    ----------
    strict : bool, default=True
        True: a strictly increasing map, which keeps the ranking (and the area under the ROC curve)
        and never predicts 0 or 1. False: the steps of the literature, which make ties, and predict
        0 and 1.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    maps_ : list of (knots, values)
        Calibrated probabilities (values) at sorted predicted ones (knots): one pair for the last of
        two classes; else one for each class.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    VennAbersRecalibrator : Two isotonic fits, which say how far the data determine them.

    Notes
    -----
    With `strict=False` it is the weighted least squares fit over nondecreasing functions [1]_, by
    pool adjacent violators: exact, :math:`O(K n \log n)`. Between predictions of the calibration
    data it is linear, outside their range constant.

    With `strict=True` two samples of the weight :math:`\sum_i w_i^2` (1/n for equal weights) are
    added, a positive one below all others and a negative one above, so that the fit lies in (0, 1).
    Each block of equal values becomes one knot at the mean of its predictions, with a linear map
    between knots [2]_; from the values :math:`v_1` and :math:`v_r` of the outer knots it goes to
    :math:`v_1 / 2` at 0 and :math:`(1 + v_r) / 2` at 1. Ties are pooled.

    References
    ----------
    .. [1] Zadrozny and Elkan (2002). Transforming Classifier Scores into Accurate Multiclass
       Probability Estimates. KDD. :doi:`10.1145/775047.775151`
    .. [2] Oron and Flournoy (2017). Centered Isotonic Regression. Statistics in Biopharmaceutical
       Research. :arxiv:`1701.05964`

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

    strict: bool = True

    def _fit_binary(self, data: ClassData) -> tuple[Any, ...]:
        points, weight, _ = data.pool_label_weights()
        if self.strict:
            return strictly_isotonic_knots(points, weight, data.inverse_effective_size)
        return isotonic_knots(points, weight)

    def _map_binary(self, proba: np.ndarray, params: Any) -> np.ndarray:
        knots, values = params
        return np.clip(np.interp(proba, knots, values), values[0], values[-1])  # up to rounding

    def _pieces(self, params: Any) -> Pieces:
        knots, values = params
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            slope = np.append(np.diff(values) / np.diff(knots), 0.0)
        slope[~np.isfinite(slope)] = 0.0  # a step, as nothing lies between
        if knots[0] == 0:
            return Pieces(knots, values, slope)
        return Pieces(np.append(0.0, knots), np.append(values[0], values), np.append(0.0, slope))


class VennAbersRecalibrator(OneVsRestRecalibrator):
    r"""Recalibration by inductive Venn–Abers prediction.

    For both labels that a query may have, an isotonic regression is fitted to the calibration data
    and the query. :meth:`predict_interval` returns both probabilities, :meth:`predict_proba` merges
    them. More than two classes: one against the rest, and rows divided by their sums.

    Parameters
    ----------
    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    maps_ : list of ((knots, values), (knots, values))
        The two isotonic fits at a query as step functions: with label 0, the values from a knot on;
        with label 1, those up to a knot. One pair for the last of two classes; else one for each
        class.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    IsotonicRecalibrator : One isotonic regression, of the calibration data alone.

    Notes
    -----
    Let :math:`p_0` and :math:`p_1` be the isotonic fits at the query if it joins the n calibration
    data with label 0 or 1 [1]_. Their merger,

    .. math:: p = \frac{p_1}{1 - p_0 + p_1},

    lies in (0, 1) and has the least log loss in excess of the right one of both, in the worse case
    [2]_.

    If calibration data and query are exchangeable, the fit of the true label Y is perfectly
    calibrated for every n: :math:`P(Y = 1 \mid p_Y) = p_Y`. For the merger, and for rows divided by
    their sums, this is only nearly true; with weights that differ it is not known to hold.

    Only ratios of `sample_weight` matter. For counts, repeat the rows: take all arrays at
    ``np.repeat(np.arange(n), counts)``.

    All fits are found in :math:`O(K n \log n)` [2]_, and each query costs :math:`O(K \log n)`. Ties
    are pooled.

    References
    ----------
    .. [1] Vovk and Petej (2014). Venn–Abers Predictors. UAI. :arxiv:`1211.0025`
    .. [2] Vovk, Petej and Fedorova (2015). Large-Scale Probabilistic Predictors with and without
       Guarantees of Validity. NeurIPS. :arxiv:`1511.00213`

    Examples
    --------
    >>> from skcalib.recalibration import VennAbersRecalibrator
    >>> recalibrator = VennAbersRecalibrator().fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    >>> low, high = recalibrator.predict_interval([0.25, 0.8])
    >>> low, high
    (array([0.33333333, 0.5       ]), array([0.66666667, 1.        ]))
    >>> recalibrator.predict_proba([0.25, 0.8])
    array([[0.5       , 0.5       ],
           [0.33333333, 0.66666667]])
    """

    def predict_interval(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """The two probabilities of which one is perfectly calibrated.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities. For two classes both columns, or that of the last class alone.

        Returns
        -------
        low, high : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the fits with label 0 and label 1, for the last class; else those of
            each class, before rows are divided by sums.
        """
        proba = check_predict_input(self, X)
        if len(self.maps_) == 1:
            bounds = self._map_two_classes(lambda p, fits: venn_abers_bounds(p, *fits), proba)
            return bounds[:, 0], bounds[:, 1]
        pairs = zip(proba.T, self.maps_, strict=True)
        bounds = np.stack([venn_abers_bounds(column, *fits) for column, fits in pairs], axis=1)
        return bounds[..., 0], bounds[..., 1]

    def _fit_binary(self, data: ClassData) -> tuple[Any, ...]:
        points, weight, _ = data.pool_label_weights()
        return venn_abers_fit(points, weight, data.inverse_effective_size)

    def _map_binary(self, proba: np.ndarray, params: Any) -> np.ndarray:
        lower, upper = venn_abers_bounds(proba, *params).T
        return upper / (1 - lower + upper)

    def _pieces(self, params: Any) -> Pieces:
        (from_knot, _), (to_knot, _) = params  # both fits are constant between these
        start = np.unique([0.0, *from_knot, *np.nextafter(to_knot, 2)])
        return Pieces(start, self._map_binary(start, params), np.zeros(len(start)))
