"""Intervals around calibration errors, and the comparison of two models."""

import inspect
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from ._validation import (
    METRIC_CONSTRAINTS,
    Interval,
    StrOptions,
    check_enough_to_resample,
    check_metric_values,
    check_predictions,
    validate_params,
)
from .metrics._scorers import METRICS

__all__ = ["Comparison", "ConfidenceInterval", "compare", "confidence_interval"]

# The estimate of a calibrated model vanishes like n^(−1/2), but for these measures more slowly.
_RATE = 1 / 2
_SLOW_RATES = {"interval_calibration_error": 1 / 3, "smooth_expected_calibration_error": 1 / 3}

# A subsample has so many times √n samples: few of all, but enough for 15 bins where n is 100.
_SUBSAMPLE = 3

# The jackknife leaves out one of so many groups at a time.
_GROUPS = 100

# Into so many batches, which jobs share, go the resamples.
_BATCHES = 64

_CONSTRAINTS = METRIC_CONSTRAINTS | {
    "metric": [StrOptions(set(METRICS)), callable],
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    "n_resamples": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


class _Result:
    def __repr__(self):
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({', '.join(f'{k}={v:.4g}' for k, v in values)})"


@dataclass(frozen=True, repr=False)
class ConfidenceInterval(_Result):
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


@dataclass(frozen=True, repr=False)
class Comparison(_Result):
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
        Two-sided p-value, in (0, 1], of the hypothesis that there is no difference on the whole
        distribution.

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


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=False)
def confidence_interval(
    metric,
    y_true,
    y_proba,
    *,
    sample_weight=None,
    labels=None,
    confidence_level=0.95,
    n_resamples=999,
    random_state=None,
    n_jobs=None,
    **metric_params,
):
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
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    confidence_level : float in (0, 1), default=0.95
        Probability with which the interval is to cover the value.

    n_resamples : int, default=999
        Number of subsamples.

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. The result does not depend on `n_jobs`.

    n_jobs : int, default=None
        Number of jobs among which joblib spreads the resamples; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    **metric_params : dict
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`. Those
        that this function has too, such as `random_state`, through :func:`functools.partial`.

    Returns
    -------
    interval : ConfidenceInterval
        The `estimate`, and the ends `low` and `high` of the interval. For a metric of
        :mod:`skcalib.metrics` they are not negative (an unbiased estimate may be).

    See Also
    --------
    compare : The difference between two models.
    skcalib.hypothesis_tests.CalibrationTest : Whether the model may be calibrated after all.

    Notes
    -----
    A calibration error :math:`T(P) = \sup_f \mathrm{E}_P f`, as most are (the smooth, binned,
    cumulative and Laplace kernel error, the lower distance), is a convex functional of the
    distribution. So its estimate :math:`T_n` is biased upwards, has no normal limit at 0, and is
    only directionally differentiable there, which is why the bootstrap fails [2]_. The same
    convexity shows what is valid. Let :math:`f^*` attain the supremum for P.

    - *Upper end.* As :math:`T - T_n \le (P - P_n) f^*`, :math:`T_n + t \hat\sigma` is one whether T
      is 0 or not: t the Student quantile, :math:`\hat\sigma` the delete-a-group jackknife (100
      groups, or single samples if n is smaller), which follows the maximiser of the sample.
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
    ``docs/benchmarks/uncertainty_coverage.md``.

    A metric that depends on the order of the samples or draws random numbers makes the interval
    wider than need be. Samples, with their weights, are taken for independent draws. Cost: 101
    values of the metric of all samples, and `n_resamples` of b of them.

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
    estimate = _Estimates(
        metric, y_true, {"y_proba": y_proba}, sample_weight, labels, metric_params
    )
    value, subsamples, jackknife = estimate.resample(n_resamples, random_state, n_jobs)
    ends = _hull(value[0], subsamples[:, 0], jackknife[:, 0], estimate.shrinkage, confidence_level)
    low, high = np.maximum(ends, 0.0) if estimate.is_error else ends
    return ConfidenceInterval(float(value[0]), float(low), float(high), confidence_level)


@validate_params(
    _CONSTRAINTS | {"y_proba_a": "no_validation", "y_proba_b": "no_validation"},
    prefer_skip_nested_validation=False,
)
def compare(
    metric,
    y_true,
    y_proba_a,
    y_proba_b,
    *,
    sample_weight=None,
    labels=None,
    confidence_level=0.95,
    n_resamples=999,
    random_state=None,
    n_jobs=None,
    **metric_params,
):
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
        True labels: strings, integers or booleans.

    y_proba_a : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of model A in [0, 1]. One-dimensional: of the positive class.
        Two-dimensional: one column for each class in the order of `labels`; rows sum to 1.

    y_proba_b : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of model B for the same samples.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of the probabilities. By default the sorted labels
        in `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    confidence_level : float in (0, 1), default=0.95
        Probability with which the interval is to cover the difference.

    n_resamples : int, default=999
        Number of subsamples. The smallest possible p-value is ``2 / (n_resamples + 1)``.

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. The result does not depend on `n_jobs`.

    n_jobs : int, default=None
        Number of jobs among which joblib spreads the resamples; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    **metric_params : dict
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`. Those
        that this function has too, such as `random_state`, through :func:`functools.partial`.

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
    The interval is the hull of that of :func:`confidence_interval`'s two methods, applied to the
    difference: the normal one with the jackknife, right for miscalibrated models, and subsampling,
    right also for calibrated ones, whose errors are due to chance but not equally large where one
    model's predictions are spread more widely. The p-value is the larger one of the two methods,
    doubled for the two sides; of the subsamples it is :math:`(1 + \#\{\sqrt{b/n}\,\Delta_b \ge
    \Delta_n\}) / (1 + B)`. So 0 lies outside of the interval if and only if the p-value is at most
    1 − `confidence_level` (up to interpolation where that times (`n_resamples` + 1)/2 is not a
    whole number). The convexity that makes the interval for one model safe between the two cases
    says less about a difference; the rate of false alarms that was measured is in
    ``docs/benchmarks/uncertainty_coverage.md``.

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
    estimates = _Estimates(
        metric,
        y_true,
        {"y_proba_a": y_proba_a, "y_proba_b": y_proba_b},
        sample_weight,
        labels,
        metric_params,
    )
    values, subsamples, jackknife = estimates.resample(n_resamples, random_state, n_jobs)
    a, b = values.tolist()
    differences = (a - b, subsamples @ [1.0, -1.0], jackknife @ [1.0, -1.0], estimates.shrinkage)
    low, high = _hull(*differences, confidence_level)
    return Comparison(
        a, b, a - b, float(low), float(high), _p_value(*differences), confidence_level
    )


class _Estimates:
    """The metric of one or several models on the same samples, whole and resampled."""

    def __init__(self, metric, y_true, probas, sample_weight, labels, metric_params):
        self.metric = METRICS[metric] if isinstance(metric, str) else metric
        self.metric_params = metric_params
        self.probas = []
        for name, y_proba in probas.items():
            predictions = check_predictions(
                y_true, y_proba, sample_weight=sample_weight, labels=labels, names=("y_true", name)
            )
            as_matrix = np.ndim(y_proba) == 2 and np.shape(y_proba)[1] > 1
            self.probas.append(predictions.matrix if as_matrix else predictions.proba)
            labels = predictions.classes  # one model's classes are those of the next
        self.y_true = predictions.classes[predictions.label]
        self.weight = None if sample_weight is None else predictions.weight
        if "labels" in inspect.signature(self.metric).parameters and "labels" not in getattr(
            self.metric, "keywords", {}
        ):
            self.metric_params = metric_params | {"labels": predictions.classes}
        n = len(self.y_true)
        check_enough_to_resample(n)
        function = self.metric
        while isinstance(function, partial):
            function = function.func
        name = next((name for name, known in METRICS.items() if known is function), None)
        self.is_error = name is not None
        self.size = min(int(np.ceil(_SUBSAMPLE * np.sqrt(n))), n // 2)
        self.shrinkage = (self.size / n) ** _SLOW_RATES.get(name, _RATE)

    def __call__(self, rows):
        weight = {} if self.weight is None else {"sample_weight": self.weight[rows]}
        return [
            self.metric(self.y_true[rows], proba[rows], **self.metric_params, **weight)
            for proba in self.probas
        ]

    def of_subsamples(self, n_resamples, seed):
        rng, n = np.random.default_rng(seed), len(self.y_true)
        return [self(rng.choice(n, self.size, replace=False)) for _ in range(n_resamples)]

    def without_group(self, group, k):
        return [self(np.flatnonzero(group != k))]

    def resample(self, n_resamples, random_state, n_jobs):
        """Values (C,) of C models, (B, C) of subsamples and (G, C) without one of the groups."""
        values = check_metric_values([self(slice(None))])[0]
        random_state = check_random_state(random_state)
        n = len(self.y_true)
        n_groups = min(n, _GROUPS)
        group = random_state.permutation(n) % n_groups
        sizes = np.bincount(np.arange(n_resamples) % _BATCHES)
        seeds = random_state.randint(2**31 - 1, size=len(sizes))
        tasks = [delayed(self.without_group)(group, k) for k in range(n_groups)]
        tasks += [
            delayed(self.of_subsamples)(size, seed) for size, seed in zip(sizes, seeds, strict=True)
        ]
        resampled = check_metric_values(
            [row for rows in Parallel(n_jobs=n_jobs)(tasks) for row in rows]
        )
        return values, resampled[n_groups:], resampled[:n_groups]


def _jackknife_deviation(jackknife):
    """Standard deviation of the estimate, from the values (G,) without one of the groups."""
    return np.sqrt((len(jackknife) - 1) * np.var(jackknife))


def _hull(value, subsamples, jackknife, shrinkage, confidence_level):
    """The smallest interval that contains the normal one and that of the subsamples."""
    tail = (1 - confidence_level) / 2
    margin = stats.t.isf(tail, len(jackknife) - 1) * _jackknife_deviation(jackknife)
    # of these order statistics, (1 + #{more extreme}) / (1 + B) is the tail
    quantiles = np.quantile(subsamples, [1 - tail, tail], method="weibull")
    low, high = (value - shrinkage * quantiles) / (1 - shrinkage)
    return min(value - margin, low), max(value + margin, high)


def _p_value(value, subsamples, jackknife, shrinkage):
    """Two-sided p-value of the value 0, by both methods of `_hull`."""
    deviation = max(_jackknife_deviation(jackknife), np.finfo(np.float64).tiny)
    null = shrinkage * subsamples
    one_sided = [
        max(
            (1 + np.sum(sign * null >= sign * value)) / (1 + len(null)),
            stats.t.sf(sign * value / deviation, len(jackknife) - 1),
        )
        for sign in (1, -1)
    ]
    return float(min(1.0, 2 * min(one_sided)))
