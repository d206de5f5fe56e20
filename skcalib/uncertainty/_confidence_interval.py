"""Intervals around calibration errors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from .._inputs.scikit_learn import StrOptions, validate_params
from .._inputs.types import RandomState
from ..metrics._registry import entry_of
from ._finite_sample import finite_sample_radius
from ._resampling import (
    RESAMPLING_CONSTRAINTS,
    Estimates,
    Result,
    check_models,
    has_several_columns,
)

INTERVAL_CONSTRAINTS = RESAMPLING_CONSTRAINTS | {
    "method": [StrOptions({"auto", "resampling", "jackknife", "finite-sample"})]
}


@dataclass(frozen=True, repr=False)
class ConfidenceInterval(Result):
    """An estimate and the interval around it.

    Parameters
    ----------
    estimate : float
        The metric of the data.

    low : float
        Lower end of the interval.

    high : float
        Upper end of the interval.

    confidence_level : float
        The probability with which the interval is meant to cover the value of the metric on the
        whole distribution.

    See Also
    --------
    confidence_interval : The function that returns it.

    Examples
    --------
    >>> from skcalib.uncertainty import ConfidenceInterval
    >>> ConfidenceInterval(estimate=0.05, low=0.025, high=0.075, confidence_level=0.95)
    ConfidenceInterval(estimate=0.05, low=0.025, high=0.075, confidence_level=0.95)
    """

    estimate: float
    low: float
    high: float
    confidence_level: float


@validate_params(INTERVAL_CONSTRAINTS, prefer_skip_nested_validation=False)
def confidence_interval(
    metric: str | Callable,
    y_true: ArrayLike,
    y_proba: Any,
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
) -> ConfidenceInterval:
    r"""Confidence interval for a metric of calibration.

    What is covered is the value of the metric on the whole distribution that the samples come from.
    That is 0 for a calibrated model, while the estimate is positive: the usual bootstrap misses the
    0 then, this interval does not. It is as a rule too wide rather than too narrow.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of :mod:`skcalib.metrics`, or a callable ``metric(y_true, y_proba,
        **metric_params) -> float``. It gets `sample_weight` if weights are given, and the classes
        if it takes an argument `labels`.

    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1. Or a forecast of a number,
        as :func:`skcalib.forecasts.as_forecast` takes it.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied. None for forecasts.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What calibration of forecasts is conditioned on, for a metric that has an argument of this
        name: groups, or features.

    groups : array-like of shape (n_samples,), default=None
        Labels of groups of samples that are not independent of each other, such as the rows of one
        patient: whole groups are drawn and left out. At least 10. For a series, those of
        :func:`consecutive_blocks`.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which the interval is to cover the value.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        Which ends the interval has. "less": an upper end alone, with the other at −∞, or at 0 for
        what cannot be negative; "greater": a lower end alone, with the other at ∞.

    method : {"auto", "resampling", "jackknife", "finite-sample"}, default="auto"
        "resampling": by subsamples and a jackknife, for any metric. "jackknife": by that alone,
        which is right for means over the samples and other smooth functions of means, and
        narrower; a calibration error of 0 it misses. "auto": "jackknife" for the
        metrics of :mod:`skcalib.metrics` that are means, and for :func:`sklearn.metrics.log_loss`
        and :func:`sklearn.metrics.brier_score_loss`, otherwise "resampling". "finite-sample": by
        :func:`finite_sample_radius`, which holds for every number of samples and every
        distribution, but only for some metrics, and is several times as wide. It takes neither
        weights nor groups.

    n_resamples : int, default=999
        Number of subsamples of "resampling".

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. The result does not depend on `n_jobs`.

    n_jobs : int, default=None
        Number of jobs among which joblib spreads the resamples; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    Returns
    -------
    interval : ConfidenceInterval
        The `estimate`, and the ends `low` and `high` of the interval. For a metric of
        :mod:`skcalib.metrics` or scikit-learn's that cannot be negative, they are not either (an
        unbiased estimate may be).

    See Also
    --------
    compare : The difference between two models.
    confidence_intervals_by : One interval for each subgroup.
    consecutive_blocks : Groups of the samples of a series.
    finite_sample_radius : The half-widths of "finite-sample", also before there are data.
    skcalib.hypothesis_tests.CalibrationTest : Whether the model may be calibrated after all.

    Notes
    -----
    A calibration error :math:`T(P) = \sup_f \mathrm{E}_P f`, as most are (the smooth, binned,
    cumulative and Laplace kernel error, the lower distance), is a convex functional of the
    distribution. So its estimate :math:`T_n` is biased upwards, has no normal limit at 0, and is
    only directionally differentiable there, which is why the bootstrap fails [2]_. The same
    convexity shows what is valid. Let :math:`f^*` attain the supremum for P.

    - *Upper end.* As :math:`T - T_n \le (P - P_n) f^*`, :math:`T_n + t \hat\sigma` is one whether T
      is 0 or not. Here t is the Student quantile, and :math:`\hat\sigma` comes from the
      delete-a-group jackknife (100 groups, or single samples if n is smaller), which follows the
      maximiser of the sample.
    - *Lower end.* With the Gaussian limit G of :math:`\sqrt{n} (P_n - P)`, the law of
      :math:`\sqrt{n} (T_n - T)` is about that of :math:`\sup_f (G f + \sqrt{n}\, \mathrm{E}_P f) -
      \sqrt{n}\, T`, which decreases in n for every G. So the law of :math:`\sqrt{b} (T_b - T)` over
      subsamples of b of the n samples, drawn without replacement [1]_, bounds it, whether T is 0 or
      not. The values of T that are not rejected begin at :math:`(T_n - \sqrt{b/n}\, q) / (1 -
      \sqrt{b/n})`, with q the upper quantile of :math:`T_b`. (Centred at :math:`T_n` instead of
      at T, the law would suffer from the bias of :math:`T_n`.)

    The interval is the hull of those that the two methods give on both sides (a hybrid in the
    manner of [3]_), with :math:`b = 3\sqrt{n}` (at most n/2) and half of the error probability on
    either side. For the interval and smooth expected calibration errors, which vanish like
    :math:`n^{-1/3}`, :math:`(b/n)^{1/3}` takes the place of :math:`\sqrt{b/n}`, which widens the
    interval. The unbiased squared kernel error vanishes like 1/n; for it :math:`\sqrt{b/n}` is wide
    enough. A callable should converge like :math:`n^{-1/2}`. Convexity does not hold for debiased
    estimates, nor where bins or a bandwidth follow the data. The coverage that was measured is in
    the benchmark "Coverage of confidence intervals, and false alarms of comparisons".

    **Means.** A mean over the samples needs no subsamples: its interval is that of the jackknife
    alone. If the metric is known to be a mean, single samples (or groups) are left out, so that for
    equal weights it is the interval of Student's t; other callables are evaluated without each of
    100 random parts, or without single samples if there are fewer. That is right for any smooth
    function of means, such as a regression coefficient, too.

    **Weights and groups.** Samples, with their weights, are taken for independent draws; with
    `groups`, whole groups are. In what was said above, n is then the effective number
    :math:`(\sum W)^2 / \sum W^2` of samples or groups, of the weights W of each. A subsample holds
    a part :math:`3 / \sqrt n` of them (at most 1/2), and b is its effective number (at most 0.8 n).
    Student's t has as many degrees of freedom as the effective number of parts that are left out,
    minus 1. An effective number below 10 is refused: a few samples or groups would decide.

    A metric that depends on the order of the samples or draws random numbers makes the interval
    wider than need be. Cost: 101 values of the metric of all samples, and `n_resamples` of b of
    them; of a mean, one value.

    References
    ----------
    .. [1] D. N. Politis and J. P. Romano (1994). Large Sample Confidence Regions Based on
       Subsamples under Minimal Assumptions. Annals of Statistics 22(4).
       :doi:`10.1214/aos/1176325770`
    .. [2] Z. Fang and A. Santos (2019). Inference on Directionally Differentiable Functions. Review
       of Economic Studies 86(1). :doi:`10.1093/restud/rdy049`
    .. [3] D. W. K. Andrews and P. Guggenberger (2009). Hybrid and Size-Corrected Subsampling
       Methods. Econometrica 77(3). :doi:`10.3982/ECTA7015`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import confidence_interval
    >>> y_true, y_proba = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    >>> confidence_interval("smooth_calibration_error", y_true, y_proba, random_state=0)
    ConfidenceInterval(estimate=0.055..., low=0.02..., high=0.07..., confidence_level=0.95)
    """
    estimates = Estimates(
        metric,
        check_models({"y_proba": y_proba}, y_true, sample_weight, labels, given, groups),
        metric_params,
        as_matrix=[has_several_columns(y_proba)],
        weighted=sample_weight is not None,
    )
    if method == "finite-sample":
        check_independent(sample_weight, groups)
    return interval_of(
        estimates,
        metric,
        metric_params,
        confidence_level=confidence_level,
        alternative=alternative,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def interval_of(
    estimates: Estimates,
    metric: str | Callable,
    metric_params: dict | None,
    *,
    confidence_level: float,
    alternative: str,
    method: str,
    n_resamples: int,
    random_state: RandomState,
    n_jobs: int | None,
) -> ConfidenceInterval:
    """The interval for the metric of some samples that have been checked."""
    if method == "finite-sample":
        radius = finite_sample_radius(
            _name(metric),
            estimates.n_samples,
            metric_params=metric_params,
            confidence_level=confidence_level,
            alternative=alternative,
        )
        estimate = float(estimates.of_data()[0])
        low, high = estimate - radius.below, estimate + radius.above
    else:
        limits = estimates.resample(method, n_resamples, random_state, n_jobs).limits([1.0])
        estimate = limits.estimate
        low, high = limits.interval(confidence_level, alternative)
    if not estimates.may_be_negative:
        low, high = max(low, 0.0), max(high, 0.0)
    return ConfidenceInterval(estimate, low, high, confidence_level)


def check_independent(sample_weight, groups):
    """Weights may depend on the samples, and samples on each other; then no radius is known."""
    for name, value in (("sample_weight", sample_weight), ("groups", groups)):
        if value is not None:
            raise ValueError(
                f"method='finite-sample' needs {name}=None; found some. "
                "Use method='resampling', which takes them."
            )


def _name(metric):
    """The name of a metric of ours, or what is not the name of one."""
    entry = entry_of(metric) if callable(metric) else None
    return entry.name if entry else str(metric)
