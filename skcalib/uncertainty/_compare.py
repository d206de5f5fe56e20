"""The comparison of two models."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from .._inputs.scikit_learn import validate_params
from .._inputs.types import RandomState
from ._measured import RESAMPLING_CONSTRAINTS, Result, measured_models


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """The metrics of two models on the same samples, and what their difference may be.

    Parameters
    ----------
    estimate_a : float
        The metric of model A.

    estimate_b : float
        The metric of model B.

    difference : float
        A minus B: if the metric is an error, positive where B is the better one.

    low : float
        Lower end of the interval for the difference.

    high : float
        Upper end of the interval for the difference.

    p_value : float
        P-value, in [0, 1], of the hypothesis that there is no difference on the whole distribution.

    confidence_level : float
        The probability with which the interval is meant to cover the difference on the whole
        distribution.

    See Also
    --------
    compare : The function that returns it.

    Examples
    --------
    >>> from skcalib.uncertainty import Comparison
    >>> result = Comparison(0.08, 0.05, 0.03, 0.01, 0.05, p_value=0.01, confidence_level=0.95)
    >>> result.p_value
    0.01
    """

    estimate_a: float
    estimate_b: float
    difference: float
    low: float
    high: float
    p_value: float
    confidence_level: float


@validate_params(
    RESAMPLING_CONSTRAINTS | {"y_proba_a": "no_validation", "y_proba_b": "no_validation"},
    prefer_skip_nested_validation=False,
)
def compare(
    metric: str | Callable,
    y_true: ArrayLike,
    y_proba_a: Any,
    y_proba_b: Any,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    given: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    metric_params: dict | None = None,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    method: str = "auto",
    n_resamples: int = 999,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Comparison:
    r"""Compare the calibration errors of two models on the same samples.

    The difference of their metrics, with a confidence interval and the p-value of the hypothesis
    that there is none on the whole distribution. The samples are resampled together with both
    predictions, so what is common to the two models does not count. The hypothesis may be
    true of two calibrated models and of two equally miscalibrated ones.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of :mod:`skcalib.metrics`, or a callable ``metric(y_true, y_proba,
        **metric_params) -> float``. It gets `sample_weight` if weights are given, and the classes
        if it takes an argument `labels`.

    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_proba_a : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities of model A in [0, 1]. One-dimensional: of the positive class.
        Two-dimensional: one column for each class in the order of `labels`; rows sum to 1. Or its
        forecast of a number, as :func:`skcalib.forecasts.as_forecast` takes it, for a metric of
        forecasts.

    y_proba_b : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities or forecast of model B for the same samples.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of the probabilities. By default the sorted labels
        in `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied. None for forecasts.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What calibration of forecasts is conditioned on, for a metric that has an argument of this
        name: groups, or features.

    groups : array-like of shape (n_samples,), default=None
        Labels of groups of samples that are not independent of each other, such as the rows of one
        patient: whole groups are drawn and left out. At least 10. For a series,
        numbers of blocks, such as ``np.arange(n) // length``.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which the interval is to cover the difference.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        What the p-value speaks for: that the metrics differ, that A's is less, or that it is
        greater. With "less" the interval has an upper end alone, with "greater" a lower one.

    method : {"auto", "resampling", "jackknife"}, default="auto"
        "resampling": by subsamples and a jackknife, for any metric. "jackknife": by that alone,
        which is right for means over the samples and other smooth functions of means, and more
        powerful. "auto": "jackknife" for the metrics of :mod:`skcalib.metrics` that are means, and
        for :func:`sklearn.metrics.log_loss` and :func:`sklearn.metrics.brier_score_loss`, otherwise
        "resampling".

    n_resamples : int, default=999
        Number of subsamples of "resampling". The smallest possible p-value is then
        ``2 / (n_resamples + 1)``, or half of that if it is one-sided.

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. The result does not depend on `n_jobs`.

    n_jobs : int, default=None
        Number of jobs among which joblib spreads the resamples; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    Returns
    -------
    comparison : Comparison
        The two estimates, their `difference` A − B with the ends `low` and `high` of its interval,
        and the `p_value`.

    See Also
    --------
    confidence_interval : The interval for a single model.

    Notes
    -----
    Subsamples, groups and weights are those of :func:`confidence_interval`.

    **Resampling.** The interval is the hull of that of :func:`confidence_interval`'s two methods,
    applied to the difference: the normal one with the jackknife, right for miscalibrated models,
    and subsampling, right also for calibrated ones, whose errors are due to chance but not equally
    large where one model's predictions are spread more widely. The p-value is the larger one of the
    two methods, doubled for two sides; from the subsamples it is :math:`(1 +
    \#\{\sqrt{b/n}\,\Delta_b \ge \Delta_n\}) / (1 + B)`. So 0 lies outside of the interval if and
    only if the p-value is at most 1 − `confidence_level` (up to interpolation where that times
    (`n_resamples` + 1)/2, or all of it for one side, is not a whole number). The convexity that
    makes the interval for one model safe between the two cases says less about a difference; the
    rate of false alarms that was measured is in the benchmark "Coverage of confidence intervals,
    and false alarms of comparisons".

    **Jackknife.** Interval and p-value are those of Student's t. For the metrics that are known to
    be means over independent samples of equal weight this is the paired t-test. With blocks of a
    series as `groups` it is a test of equal accuracy in the manner of Diebold and Mariano [1]_.

    References
    ----------
    .. [1] F. X. Diebold and R. S. Mariano (1995). Comparing Predictive Accuracy. Journal of
       Business & Economic Statistics 13(3). :doi:`10.1080/07350015.1995.10524599`

    Fix parameters that would otherwise follow the predictions, such as the `bandwidth` of a kernel
    error, so that both models are measured with the same yardstick.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import compare
    >>> y_true, overconfident = make_temperature_family(
    ...     2000, inverse_temperature=2, random_state=0
    ... )
    >>> _, calibrated = make_temperature_family(2000, random_state=0)  # of the same samples
    >>> result = compare(
    ...     "smooth_calibration_error", y_true, overconfident, calibrated, random_state=0
    ... )
    >>> result.difference, result.p_value
    (0.028..., 0.002)
    """
    measured = measured_models(
        metric,
        metric_params,
        {"y_proba_a": y_proba_a, "y_proba_b": y_proba_b},
        y_true,
        sample_weight=sample_weight,
        labels=labels,
        given=given,
        groups=groups,
    )
    resamples = measured.resample(
        method=method, n_resamples=n_resamples, random_state=random_state, n_jobs=n_jobs
    )
    difference = resamples.limits([1.0, -1.0])
    estimate_a, estimate_b = resamples.values.tolist()
    low, high = difference.interval(confidence_level, alternative)
    return Comparison(
        estimate_a,
        estimate_b,
        difference.estimate,
        low,
        high,
        max(difference.p_value(0.0, alternative), sys.float_info.min),
        confidence_level,
    )
