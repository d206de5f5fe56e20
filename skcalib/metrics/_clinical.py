"""Measures of clinical validations: signed ones, and the distance from a smooth curve."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Average, Interval, Label
from .._inputs.warnings import warn
from .._numerics.loess import loess_of_sorted
from .._numerics.logistic import logistic_fit
from .._numerics.logistic_batch import intercepts
from .._numerics.logits import log_odds
from .._numerics.sorting import first_of_ties, sort_labelled
from ..lenses import Lens
from ._reductions import reduce_classes
from ._registry import register_metric, select_options

_MAX_CLINICAL_STEPS = 200

# A measure that is wrong on either side of its best value is no score; intervals take its name.
_SIGNED_MEASURE: dict[str, Any] = {
    "lower_is_better": False,
    "may_be_negative": True,
    "chosen": False,
    "is_selectable": False,
}


def compute_calibration_in_the_large(data: ClassData) -> float:
    check_two_classes(data)
    return float(data.weighted_residuals.sum())


def compute_observed_expected_ratio(data: ClassData) -> float:
    check_two_classes(data)
    observed = data.weight @ data.label
    with np.errstate(divide="ignore", invalid="ignore"):  # the limits are as documented
        return float(observed / (data.weight @ data.proba))


def compute_calibration_intercept(data: ClassData) -> float:
    check_two_classes(data)
    label = data.label
    if label.min() == label.max():
        return np.inf if label[0] else -np.inf
    proba, label, weight = _sort_by_prediction(data)
    return float(intercepts(log_odds(proba), label[None], weight)[0])


def _sort_by_prediction(data: ClassData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return predictions, labels and weights, sorted by all of them in this order, each (n,)."""
    if (data.weight == data.weight[0]).all():
        return *sort_labelled(data.proba, data.label), data.weight
    order = np.argsort(data.proba)
    if not first_of_ties(data.proba[order]).all():
        order = np.lexsort((data.weight, data.label, data.proba))
    return data.proba[order], data.label[order], data.weight[order]


def compute_calibration_slope(data: ClassData) -> float:
    check_two_classes(data)
    return logistic_line(data)[1]


def logistic_line(data: ClassData) -> tuple[float, float]:
    """Return intercept and slope of the likeliest logistic regression on the log-odds.

    What the data do not determine is NaN: the intercept if the slope is infinite, as a threshold
    separates the labels, and the slope if all predictions or all labels are equal. If all
    predictions are equal, the intercept is that for a slope of 1.
    """
    label, weight = data.label, data.weight
    logits = log_odds(data.proba)
    if label.min() == label.max() or logits.min() == logits.max():
        return compute_calibration_intercept(data), np.nan
    negative, positive = logits[label == 0], logits[label == 1]
    if negative.max() <= positive.min():
        return np.nan, np.inf
    if positive.max() <= negative.min():
        return np.nan, -np.inf
    centre = float(weight @ logits)
    centred = logits - centre  # keeps every digit if all are nearly equal
    design = np.column_stack([np.ones(len(label)), centred])
    mass = weight * np.stack([1 - label, label])
    fit = logistic_fit(design, mass, np.zeros(2), _MAX_CLINICAL_STEPS)
    if not fit.converged:
        warn(
            f"The logistic regression did not converge in {_MAX_CLINICAL_STEPS} steps of Newton's "
            "method; the last step is kept.",
            ConvergenceWarning,
        )
    level, rise = fit.coefficients.tolist()
    return level - rise * centre, rise


def check_two_classes(data: ClassData) -> None:
    """Refuse more than two classes: a sign needs the probability of one class."""
    if not data.is_binary:
        raise ValueError(
            f"y_proba must be about two classes; found {len(data.classes)} columns. For one "
            "class c against the rest, pass y_true == c and the column of that class."
        )


@register_metric(compute_calibration_in_the_large, cost="n", **_SIGNED_MEASURE)
def calibration_in_the_large(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Calibration in the large: the observed frequency minus the mean prediction.

    It is 0 if as many events occur as predicted, positive if the risk is underestimated, and
    negative if it is overestimated. It is unbiased, and says nothing about single predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    Returns
    -------
    difference : float
        Between −1 and 1, in units of probability; 0 is best.

    See Also
    --------
    observed_expected_ratio : The same two numbers, divided.
    calibration_intercept : The same on the scale of log-odds.
    skcalib.uncertainty.clinical_calibration : All, with intervals.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, it is :math:`\sum_i w_i (y_i - p_i)`, for two classes;
    of more, pass one: ``calibration_in_the_large(y_true == c, y_proba[:, k])``. Some authors call
    :func:`calibration_intercept` so. Cost O(n).

    References
    ----------
    .. [1] Van Calster, Nieboer, Vergouwe, De Cock, Pencina and Steyerberg (2016). A calibration
       hierarchy for risk models was defined: from utopia to empirical data. Journal of Clinical
       Epidemiology. :doi:`10.1016/j.jclinepi.2015.12.005`

    Examples
    --------
    >>> from skcalib.metrics import calibration_in_the_large
    >>> calibration_in_the_large([0, 1, 1, 0], [0.25, 0.5, 0.5, 0.25])
    0.125
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    return compute_calibration_in_the_large(data)


@register_metric(compute_observed_expected_ratio, cost="n", **_SIGNED_MEASURE)
def observed_expected_ratio(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""O:E ratio: the number of events that occurred, divided by the number that was predicted.

    It is 1 if as many events occur as predicted, above 1 if the risk is underestimated, and below 1
    if it is overestimated.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    Returns
    -------
    ratio : float
        Not negative; 1 is best. Infinite if events occur although all probabilities are 0, and NaN
        if none occurs then.

    See Also
    --------
    calibration_in_the_large : The difference of the two numbers.
    skcalib.uncertainty.clinical_calibration : Both, with intervals.

    Notes
    -----
    With weights :math:`w_i`, it is :math:`\sum_i w_i y_i / \sum_i w_i p_i`, for two classes (of
    more, see :func:`calibration_in_the_large`). The E:O ratio is its inverse. Cost O(n).

    References
    ----------
    .. [1] Collins et al. (2024). TRIPOD+AI statement: updated guidance for reporting clinical
       prediction models that use regression or machine learning methods. BMJ.
       :doi:`10.1136/bmj-2023-078378`

    Examples
    --------
    >>> from skcalib.metrics import observed_expected_ratio
    >>> round(observed_expected_ratio([0, 1, 1, 0], [0.25, 0.5, 0.5, 0.25]), 3)
    1.333
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    return compute_observed_expected_ratio(data)


@register_metric(compute_calibration_intercept, cost="n", **_SIGNED_MEASURE)
def calibration_intercept(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Calibration intercept: what must be added to all log-odds to predict the right frequency.

    It is 0 if as many events occur as predicted, positive if the risk is underestimated, and
    negative if it is overestimated. It is the intercept of a logistic regression with the log-odds
    of the predictions as an offset, so that the slope is 1 [1]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    Returns
    -------
    intercept : float
        In units of log-odds; 0 is best. Infinite, with the sign of the outcome, if only one outcome
        occurs.

    See Also
    --------
    calibration_slope : Whether predictions are too extreme.
    calibration_in_the_large : The difference on the scale of probabilities.
    skcalib.recalibration.InterceptRecalibrator : Predictions with the intercept added.

    Notes
    -----
    With weights :math:`w_i`, it is the a for which :math:`\sum_i w_i \operatorname{expit}(a +
    \operatorname{logit} p_i) = \sum_i w_i y_i`, for two classes (of more, see
    :func:`calibration_in_the_large`). Probabilities are clipped to [ε, 1 − ε], with ε = 2.2e-16.
    Cost: :math:`O(n \log n)`.

    References
    ----------
    .. [1] Van Calster, Nieboer, Vergouwe, De Cock, Pencina and Steyerberg (2016). A calibration
       hierarchy for risk models was defined: from utopia to empirical data. Journal of Clinical
       Epidemiology. :doi:`10.1016/j.jclinepi.2015.12.005`

    Examples
    --------
    >>> from skcalib.metrics import calibration_intercept
    >>> round(calibration_intercept([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]), 3)  # log(3) − log(1)
    1.099
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    return compute_calibration_intercept(data)


@register_metric(compute_calibration_slope, cost="n", **_SIGNED_MEASURE)
def calibration_slope(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Calibration slope: by what the log-odds must be multiplied to be as extreme as they should.

    It is 1 for calibrated predictions, below 1 if they are too extreme (overconfident, as after
    overfitting), and above 1 if they are too moderate. It is the slope of a logistic regression of
    the outcome on the log-odds of the predictions [1]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    Returns
    -------
    slope : float
        1 is best. Infinite if a threshold on the predictions separates the outcomes (but for ties
        at the threshold), with the sign −1 if events have the lower predictions. NaN if all
        predictions are equal, or only one outcome occurs.

    See Also
    --------
    calibration_intercept : Whether predictions are too high on the whole.
    skcalib.hypothesis_tests.CoxTest : Whether intercept and slope are 0 and 1.
    skcalib.recalibration.SigmoidRecalibrator : Predictions with intercept and slope corrected.

    Notes
    -----
    It is the b that maximises the likelihood of :math:`P(y = 1) = \operatorname{expit}(a + b
    \operatorname{logit} p)` over a and b, for two classes (of more, see
    :func:`calibration_in_the_large`). One wrong prediction of 0 or 1, which is clipped by 2.2e-16,
    moves the slope far towards 0. Cost O(n) for each of a few Newton steps.

    References
    ----------
    .. [1] Cox (1958). Two further applications of a model for binary regression. Biometrika.
       :doi:`10.1093/biomet/45.3-4.562`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.metrics import calibration_slope
    >>> y_true, y_proba = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    >>> round(calibration_slope(y_true, y_proba), 3)
    0.438
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    return compute_calibration_slope(data)


def distances_from_curve(data: ClassData, quantiles: Sequence[float | None]) -> list[float]:
    """Return the mean (for None) and quantiles of the distances of predictions from the curve."""
    proba, label, weight = _sort_by_prediction(data)
    gap = np.abs(np.clip(loess_of_sorted(proba, label, weight), 0.0, 1.0) - proba)
    levels = [level for level in quantiles if level is not None]
    values = iter(_weighted_quantiles(gap, weight, levels) if levels else [])
    return [float(weight @ gap if level is None else next(values)) for level in quantiles]


def _curve_distance(data: ClassData, quantile: float | None) -> float:
    return distances_from_curve(data, [quantile])[0]


def _weighted_quantiles(
    values: np.ndarray, weight: np.ndarray, levels: Sequence[float]
) -> np.ndarray:
    """Return quantiles of values (n,), which are NumPy's default if all weights are equal."""
    if (weight == weight[0]).all():
        values = np.sort(values)
    else:
        order = np.lexsort((weight, values))
        values, weight = values[order], weight[order]
    centre = np.cumsum(weight) - weight / 2
    return np.interp(centre[0] + np.array(levels) * (centre[-1] - centre[0]), centre, values)


_integrated_calibration_index = reduce_classes(_curve_distance)


@register_metric(
    _integrated_calibration_index,
    {"quantile": [Interval(Real, 0, 1, closed="both"), None]},
    largest=1.0,
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
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Integrated calibration index (ICI): mean distance from a smooth curve; also E50, E90, Emax.

    The curve is the observed frequency as a function of the prediction, estimated by loess as in R.
    The index is the mean absolute difference between predictions and curve [1]_. It is 0 if the
    curve is the diagonal; on samples of a calibrated model it is positive, of order
    :math:`n^{-1/2}` (biased upwards). Errors in narrow ranges or of alternating sign almost vanish.
    With two classes it is about the positive class, not the confidence.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    quantile : float in [0, 1], default=None
        The quantile of the absolute differences that is returned: 0.5 for E50, 0.9 for E90, 1 for
        Emax. None is their mean, the ICI.

    multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; or each class against the rest. Or a lens of
        :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        "macro" is the mean over classes. "weighted" weights classes by their share of the
        predictions ("top-label") or labels ("classwise"). "auto" is "weighted" for "top-label",
        else "macro". None returns the array of all values, even if there is only one. A class that
        is never predicted is NaN, and left out of means.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Between 0 and 1; 0 is best.

    See Also
    --------
    skcalib.uncertainty.clinical_calibration : All clinical measures, with intervals.
    smooth_calibration_error : A measure that no error of calibration escapes.
    calibration_slope : Whether predictions are too extreme.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, predictions :math:`p_i` and the curve c, the ICI is
    :math:`\sum_i w_i |c(p_i) - p_i|`. Quantiles are those of NumPy and R (type 7).

    The curve is ``loess(y ~ p)`` with the defaults of R [2]_, degree 2 and span 0.75, but cut off
    at 0 and 1, of a smaller degree where a local regression has less than three distinct
    predictions, and defined also where R stops (less than six samples, many ties). A sample of
    weight 2 is not quite the same as two samples. ``val.prob`` of R's rms takes another curve, a
    lowess of degree 1. Cost: :math:`O(n \log n)`.

    References
    ----------
    .. [1] Austin and Steyerberg (2019). The Integrated Calibration Index (ICI) and related metrics
       for quantifying the calibration of logistic regression models. Statistics in Medicine.
       :doi:`10.1002/sim.8281`
    .. [2] Cleveland and Grosse (1991). Computational methods for local regression. Statistics and
       Computing. :doi:`10.1007/BF01890836`

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
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _integrated_calibration_index(data, **select_options(locals()))
