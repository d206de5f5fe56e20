"""The distance between predictions and a smooth calibration curve."""

from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.checks import check_predictions
from .._inputs.predictions import Predictions
from .._inputs.scikit_learn import Interval
from .._inputs.types import Label
from .._numerics.loess import loess
from ._reductions import average_over_reductions, reduced
from ._registry import metric


def distances_from_curve(
    predictions: Predictions, quantiles: Sequence[float | None]
) -> list[float]:
    """The mean (for None) and quantiles of the distances between predictions and curve."""
    proba, weight = predictions.proba, predictions.weight
    observed = np.clip(loess(proba, predictions.label, weight), 0.0, 1.0)
    gap = np.abs(observed - proba)
    return [
        float(weight @ gap if level is None else _weighted_quantile(gap, weight, level))
        for level in quantiles
    ]


def _integrated_calibration_index(predictions: Predictions, quantile: float | None) -> float:
    return distances_from_curve(predictions, [quantile])[0]


def _weighted_quantile(values, weight, level):
    """The quantile (n,) of a sample, which is NumPy's default if all weights are equal."""
    order = np.lexsort((weight, values))
    weight = weight[order]
    centre = np.cumsum(weight) - weight / 2
    return np.interp(centre[0] + level * (centre[-1] - centre[0]), centre, values[order])


@metric(
    reduced(_integrated_calibration_index),
    {"quantile": [Interval(Real, 0, 1, closed="both"), None]},
    cost="n log n",
)
def integrated_calibration_index(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    quantile: float | None = None,
    multi_class: str = "confidence",
    average: str | None = "auto",
) -> float | np.ndarray:
    r"""Integrated calibration index (ICI): mean distance from a smooth curve; also E50, E90, Emax.

    The curve is the observed frequency as a function of the prediction, estimated by loess as in R.
    The index is the mean absolute difference between predictions and curve [1]_; `quantile` asks
    for the median (E50), the 90 % quantile (E90) or the maximum (Emax) instead. It is 0 if the
    curve is the diagonal; on a finite sample of a calibrated model it is positive, of order
    :math:`n^{-1/2}`, so it is biased upwards. Medicine reports it. It sees errors that extend over
    a good part of the predictions: each local regression takes in three quarters of them, so that
    errors in narrow ranges or of alternating sign almost vanish. With two classes it concerns the
    probability of the positive class, not the confidence max(p, 1 − p).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class whose probability a one-dimensional `y_proba` holds. By default the last of
        `labels`.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    quantile : float in [0, 1], default=None
        The quantile of the absolute differences that is returned: 0.5 for E50, 0.9 for E90, 1 for
        Emax. None is their mean, the ICI.

    multi_class : {"confidence", "top-label", "classwise"}, default="confidence"
        For more than two classes, the binary problems that are measured: the probability of the
        predicted class and whether it was right; the same for each predicted class alone; or each
        class against the rest.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        How the values for single classes are averaged under "top-label" (over the classes that are
        predicted at all; "weighted" by their share of the predictions) and "classwise" ("weighted"
        by the share of the labels). "auto" is "weighted" for "top-label" and "macro" for
        "classwise", as these measures are defined. None returns the values of all classes, NaN for
        one that is never predicted.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Between 0 and 1; 0 is best. An array if `average` is None and there are values for several
        classes.

    See Also
    --------
    skcalib.uncertainty.clinical_calibration : This and the other measures of a clinical validation,
        with intervals.
    smooth_calibration_error : A measure that no error of calibration escapes.
    calibration_slope : Whether predictions are too extreme.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, predictions :math:`p_i` and the curve c, the ICI is
    :math:`\sum_i w_i |c(p_i) - p_i|`. Quantiles are those of NumPy and R (type 7); with weights,
    the sorted differences have the positions :math:`\sum_{j<i} w_j + w_i / 2`, between which the
    quantile is interpolated.

    The curve is ``loess(y ~ p)`` with the defaults of R [2]_: local polynomials of degree 2 on the
    nearest 75 % of the samples, tricube weights, and cubic interpolation between about ten
    vertices. It equals that of R up to rounding errors. Sample weights multiply those of the local
    regressions, as in R; they do not change which samples are near, so that a sample of weight 2 is
    not quite the same as two samples. There are three differences:

    - The curve is cut off at 0 and 1. R lets it leave [0, 1], which can make the ICI larger.
    - Where less than three distinct predictions have a positive weight in a local regression, its
      degree is reduced. R warns and takes a pseudoinverse, and its curve can be far from the data.
    - Where R stops, for less than six samples or if three quarters of them are tied, there is a
      curve: with so few samples it goes through all outcomes, and the index means little.

    ``val.prob`` of the R package rms reports the same numbers (Eavg, E90, Emax) for another curve,
    a lowess of degree 1.

    Sorting costs :math:`O(n \log n)`, each of the vertices :math:`O(n)`. Probabilities of exactly 0
    and 1 need no clipping.

    References
    ----------
    .. [1] P. C. Austin and E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and
       related metrics for quantifying the calibration of logistic regression models. Statistics in
       Medicine 38(21), 4051–4065. :doi:`10.1002/sim.8281`
    .. [2] W. S. Cleveland and E. Grosse (1991). Computational methods for local regression.
       Statistics and Computing 1, 47–62. :doi:`10.1007/BF01890836`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.metrics import integrated_calibration_index
    >>> y_true, y_proba = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    >>> round(integrated_calibration_index(y_true, y_proba), 3)
    0.11
    >>> round(integrated_calibration_index(y_true, y_proba, quantile=0.9), 3)
    0.16
    """
    predictions = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    return average_over_reductions(
        _integrated_calibration_index, predictions, multi_class, average, quantile=quantile
    )
