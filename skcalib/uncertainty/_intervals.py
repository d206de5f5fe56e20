"""Intervals around calibration errors, and the comparison of two models."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, cast, overload

import numpy as np

from .._data import ClassData
from .._inputs.arrays import ArrayLike
from .._inputs.by import Subgroups, check_by, format_label, printable
from .._inputs.scikit_learn import RandomState, StrOptions, validate_params
from ..forecasts._quantile import check_same_levels
from ..metrics._registry import find_entry, find_multi_class, is_data
from ._closed_form import compute_difference_limits, compute_intervals
from ._finite_sample import finite_sample_radius
from ._measured import (
    RESAMPLING_CONSTRAINTS,
    MeasuredModels,
    Result,
    check_predicted,
    split_outcomes,
    split_pos_label,
)
from ._resampling import Limits, check_finite_values, with_halves

# Halves of the samples are looked at only if a difference has at most this p-value.
_MAX_P_VALUE = 0.2

INTERVAL_CONSTRAINTS = RESAMPLING_CONSTRAINTS | {
    "method": [StrOptions({"auto", "resampling", "jackknife", "finite-sample"})],
    "by": "no_validation",
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

    def __iter__(self) -> Iterator[float]:
        """Its ends: ``low, high = confidence_interval(...)``."""
        return iter((self.low, self.high))


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupIntervals(Mapping):
    """A metric of each subgroup with its interval: :func:`confidence_interval` with `by`.

    Printed, it is a table. It is also a mapping from subgroups to :class:`ConfidenceInterval`
    objects, such as ``result["female"]`` or ``result["female", "18-30"]``.

    Parameters
    ----------
    names : tuple
        Names of the columns that make the subgroups.

    subgroups : tuple
        The subgroups in their order: values of the column, or tuples of one value for each of
        several columns; None stands for a missing value.

    n_samples : ndarray of shape (n_subgroups,)
        Number of samples of positive weight.

    share : ndarray of shape (n_subgroups,)
        Share of the total weight, in (0, 1].

    estimate : ndarray of shape (n_subgroups,)
        The metric of each subgroup; NaN where it cannot be computed.

    low : ndarray of shape (n_subgroups,)
        Lower ends of the intervals; NaN where there is none.

    high : ndarray of shape (n_subgroups,)
        Upper ends of the intervals; NaN where there is none.

    notes : tuple of str
        Why there is no interval; empty where there is one.

    whole : ConfidenceInterval
        The metric of all samples together.

    confidence_level : float
        The probability with which each interval is meant to cover its own value.

    See Also
    --------
    confidence_interval : The function that returns it.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import confidence_interval
    >>> y_true, y_proba = make_temperature_family(300, random_state=0)
    >>> site = ["north", "north", "south"] * 100
    >>> result = confidence_interval(
    ...     "smooth_calibration_error", y_true, y_proba, by=site, n_resamples=99, random_state=0
    ... )
    >>> list(result), result.n_samples.tolist()
    (['north', 'south'], [200, 100])
    """

    names: tuple[Any, ...]
    subgroups: tuple[Any, ...]
    n_samples: np.ndarray
    share: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    notes: tuple[str, ...]
    whole: ConfidenceInterval
    confidence_level: float

    def __getitem__(self, subgroup: Any) -> ConfidenceInterval:
        try:
            k = self.subgroups.index(subgroup)
        except ValueError:
            raise KeyError(subgroup) from None
        estimate, low, high = (float(ends[k]) for ends in (self.estimate, self.low, self.high))
        return ConfidenceInterval(estimate, low, high, self.confidence_level)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.subgroups)

    def __len__(self) -> int:
        return len(self.subgroups)

    def to_frame(self) -> Any:
        """Return the table as a data frame of pandas, which must be installed.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_subgroups, 6)
            A row for each subgroup, which is its label, and the columns `n_samples`, `share`,
            `estimate`, `low`, `high` and `note`.
        """
        import pandas as pd

        names = list(self.names)
        if len(names) == 1:
            index = pd.Index(self.subgroups, name=names[0], dtype=None)
        else:
            index = pd.MultiIndex.from_tuples(self.subgroups, names=names)
        columns = ("n_samples", "share", "estimate", "low", "high")
        values: dict[str, Any] = {name: getattr(self, name) for name in columns}
        return pd.DataFrame(values | {"note": list(self.notes)}, index=index)

    def __repr__(self) -> str:
        head = ", ".join(printable(str(name)) for name in self.names)
        titles = [format_label(label) for label in self.subgroups]
        width = max(len(title) for title in [head, "all", *titles])
        lines = [
            f"{head:{width}} {'samples':>8} {'share':>6} {'estimate':>9} {'low':>9} {'high':>9}"
        ]
        ends = np.column_stack([self.estimate, self.low, self.high])
        whole = (self.whole.estimate, self.whole.low, self.whole.high)
        rows = [*zip(titles, self.n_samples, self.share, ends, self.notes, strict=True)]
        for title, n, share, numbers, note in [*rows, ("all", self.n_samples.sum(), 1, whole, "")]:
            written = " ".join(f"{number:9.4g}" for number in numbers)
            lines.append(f"{title:{width}} {n:8d} {share:6.3f} {written}  {note}".rstrip())
        return "\n".join(lines)


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
        Upper end of the interval for the difference: how large it may be, which is more than the
        biased estimates show.

    p_value : float
        P-value, in [0, 1], of the hypothesis that there is no difference on the whole distribution.
        If it is small, there is one.

    confidence_level : float
        The probability with which the interval is meant to cover the difference on the whole
        distribution.

    See Also
    --------
    compare_models : The function that returns it.

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

    def __iter__(self) -> Iterator[float]:
        """Its ends: ``low, high = compare_models(...)``."""
        return iter((self.low, self.high))

    confidence_level: float


class _IntervalOptions(TypedDict, total=False):
    sample_weight: ArrayLike | None
    labels: ArrayLike | None
    given: ArrayLike | None
    groups: ArrayLike | None
    metric_params: dict | None
    confidence_level: float
    alternative: Literal["two-sided", "less", "greater"]
    method: Literal["auto", "resampling", "jackknife", "finite-sample"]
    n_resamples: int
    random_state: RandomState
    n_jobs: int | None


@overload
def confidence_interval(
    metric: str | Callable,
    y_true: ArrayLike,
    y_pred: Any,
    *,
    by: None = None,
    **options: Unpack[_IntervalOptions],
) -> ConfidenceInterval: ...


@overload
def confidence_interval(
    metric: str | Callable,
    y_true: ArrayLike,
    y_pred: Any,
    *,
    by: Any,
    **options: Unpack[_IntervalOptions],
) -> SubgroupIntervals: ...


@validate_params(INTERVAL_CONSTRAINTS, prefer_skip_nested_validation=False)
def confidence_interval(
    metric: str | Callable,
    y_true: ArrayLike,
    y_pred: Any,
    *,
    by: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    given: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    metric_params: dict | None = None,
    confidence_level: float = 0.95,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
    method: Literal["auto", "resampling", "jackknife", "finite-sample"] = "auto",
    n_resamples: int = 999,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> ConfidenceInterval | SubgroupIntervals:
    r"""Confidence interval for a metric of calibration, of all samples or of each subgroup.

    It covers the metric of the whole distribution: 0 for a calibrated model, which the usual
    bootstrap misses, as estimates are positive.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of :mod:`skcalib.metrics`, or a callable ``metric(y_true, y_proba,
        **metric_params) -> float``. It also gets `sample_weight` if weights are given, and `labels`
        if it takes them.

    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities of the positive class, or of all classes (rows sum to 1). Or a forecast of a
        number, as :func:`skcalib.forecasts.as_forecast` takes it.

    by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
            default=None
        The subgroup of each sample: a column, or several, which make their crossings. Missing
        values are a subgroup of their own; continuous numbers are refused.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_pred`. By default the sorted labels in
        `y_true`. None for forecasts.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What calibration of forecasts is conditioned on, for a metric that takes it.

    groups : array-like of shape (n_samples,), default=None
        Groups of samples that are not independent, such as the rows of a patient; at least 10, in
        each subgroup. For a series, numbers of blocks, such as ``np.arange(n) // length``.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which each interval is to cover its value. For S subgroups at once, pass
        :math:`1 - 0.05 / S`.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        Which ends the interval has. "less": an upper end alone; "greater": a lower end alone. The
        other end is that of the metric's range.

    method : {"auto", "resampling", "jackknife", "finite-sample"}, default="auto"
        "resampling": by subsamples and a jackknife, for any metric. "jackknife": by that alone, for
        smooth functions of means; it misses a calibration error of 0. "auto": "jackknife" for
        means, also :func:`sklearn.metrics.log_loss` and :func:`sklearn.metrics.brier_score_loss`;
        otherwise "resampling". Signed measures have the closed form of
        :func:`clinical_calibration`, with "auto" and "jackknife". "finite-sample": by
        :func:`finite_sample_radius`, for every distribution, but only some metrics, and several
        times as wide; without weights and groups.

    n_resamples : int, default=999
        Number of subsamples of "resampling".

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling, for any `n_jobs`. The order of the samples matters.

    n_jobs : int, default=None
        Number of jobs of joblib; see :obj:`joblib.parallel_backend`.

    Returns
    -------
    interval : ConfidenceInterval or SubgroupIntervals
        The `estimate`, and the ends `low` and `high` of the interval. With `by` a table, and a
        mapping from subgroups to their intervals; a subgroup of fewer than 10 samples has NaN as
        ends, and a note.

    See Also
    --------
    compare_models : The difference between two models.
    finite_sample_radius : The half-widths of "finite-sample".
    skcalib.hypothesis_tests.CalibrationTest : The p-value.
    skcalib.hypothesis_tests.SubgroupCalibrationTest : Tests subgroups.

    Notes
    -----
    "resampling" gives the hull of two intervals, with half of the error probability on either side
    [3]_: estimate ± t standard errors of a delete-a-group jackknife, right for miscalibrated
    models; and subsampling [1]_ with :math:`b = 3\sqrt{n}` samples, right for calibrated ones, too
    [2]_. This holds for convex errors that converge like :math:`n^{-1/2}`: the smooth error, the
    lower distance, errors with fixed bins or a Laplace kernel. For other metrics see the benchmark
    "Coverage of confidence intervals, and false alarms of comparisons". The lower end of the level
    set error is 0 unless predictions recur.

    **Rare events.** If fewer than 25 predictions are wrong (or right), the interval is widened: it
    contains the metric of labels in which they are as frequent as the bound of Clopper and Pearson
    [4]_ allows, and its lower end is 0 unless a test of calibration rejects; always with `groups`,
    or with ``method="jackknife"``. With all predictions on one side of 1/2, the upper end of binned
    and smooth errors is at least the bound of [5]_. Callables and metrics of forecasts are not
    widened, and skewed losses are covered too seldom then.

    **Weights and groups.** The effective number of samples, or of groups, :math:`(\sum W)^2 / \sum
    W^2`, replaces n; below 10 it is refused.

    **Cost**: 101 values of the metric of all samples, and `n_resamples` of b of them; of a mean,
    one value.

    References
    ----------
    .. [1] Politis and Romano (1994). Large Sample Confidence Regions Based on Subsamples under
       Minimal Assumptions. Annals of Statistics. :doi:`10.1214/aos/1176325770`
    .. [2] Fang and Santos (2019). Inference on Directionally Differentiable Functions. Review of
       Economic Studies. :doi:`10.1093/restud/rdy049`
    .. [3] Andrews and Guggenberger (2009). Hybrid and Size-Corrected Subsampling Methods.
       Econometrica. :doi:`10.3982/ECTA7015`
    .. [4] Clopper and Pearson (1934). The Use of Confidence or Fiducial Limits Illustrated in the
       Case of the Binomial. Biometrika. :doi:`10.1093/biomet/26.4.404`
    .. [5] Hoeffding (1956). On the Distribution of the Number of Successes in Independent Trials.
       Annals of Mathematical Statistics. :doi:`10.1214/aoms/1177728178`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import confidence_interval
    >>> y_true, y_proba = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    >>> confidence_interval("smooth_calibration_error", y_true, y_proba, random_state=0)
    ConfidenceInterval(estimate=0.055..., low=0.02..., high=0.07..., confidence_level=0.95)

    One interval for each subgroup:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(1000)
    >>> age = rng.choice(["18-30", "31-65"], size=1000)
    >>> y = rng.random(1000) < np.where(age == "18-30", proba**2, proba)
    >>> result = confidence_interval(
    ...     "smooth_calibration_error", y, proba, by={"age": age}, n_resamples=99, random_state=0
    ... )
    >>> result["18-30"].low > result["31-65"].high
    True
    """
    data: dict[str, Any] = {
        "sample_weight": sample_weight,
        "labels": labels,
        "given": given,
        "groups": groups,
        "multi_class": find_multi_class(metric, metric_params),
    }
    metric, metric_params, pos_label = split_pos_label(metric, metric_params)
    models = check_predicted({"y_pred": y_pred}, y_true, **data, pos_label=pos_label)
    measured = MeasuredModels.make(metric, metric_params, **models)
    subgroups = None if by is None else check_by(by, np.shape(y_true)[0], sample_weight)
    if method == "finite-sample":
        check_independent(sample_weight, groups)
    interval: Callable = partial(
        interval_of,
        confidence_level=confidence_level,
        alternative=alternative,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    whole = interval(measured)  # so what fails in a subgroup is due to its samples
    if subgroups is None:
        return whole
    intervals, notes = [], []
    for rows in subgroups.rows():
        estimate, low, high, note = np.nan, np.nan, np.nan, ""
        try:
            subgroup_models = measured.take(rows)
            estimate = float(check_finite_values([subgroup_models.values()])[0, 0])
            subgroup_interval = interval(subgroup_models)
            low, high = subgroup_interval.low, subgroup_interval.high
        except ValueError as error:
            note = str(error).partition(". ")[0]  # without the remedy
        intervals.append((estimate, low, high))
        notes.append(note)
    ends, weight = np.array(intervals), measured.models[0].weight
    return tabulate_subgroups(subgroups, weight, ends, notes, whole)


def tabulate_subgroups(
    subgroups: Subgroups, weight: np.ndarray, rows: np.ndarray, notes: list[str], whole: Any
) -> SubgroupIntervals:
    """The table of the estimates and ends (m, 3) of subgroups of samples with these weights."""
    code, level = subgroups.code, whole.confidence_level
    estimate, low, high = rows.T
    columns = np.bincount(code), np.bincount(code, weight), estimate, low, high
    return SubgroupIntervals(
        subgroups.names, subgroups.labels, *columns, tuple(notes), whole, level
    )


@validate_params(
    RESAMPLING_CONSTRAINTS | {"y_pred_a": "no_validation", "y_pred_b": "no_validation"},
    prefer_skip_nested_validation=False,
)
def compare_models(
    metric: str | Callable,
    y_true: ArrayLike,
    y_pred_a: Any,
    y_pred_b: Any,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    given: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    metric_params: dict | None = None,
    confidence_level: float = 0.95,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
    method: Literal["auto", "resampling", "jackknife"] = "auto",
    n_resamples: int = 999,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Comparison:
    r"""Compare the calibration errors of two models on the same samples.

    The difference of their metrics, with a confidence interval and the p-value of the hypothesis
    that there is none.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of :mod:`skcalib.metrics`, or a callable ``metric(y_true, y_proba,
        **metric_params) -> float``. It also gets `sample_weight` if weights are given, and `labels`
        if it takes them.

    y_true : array-like of shape (n_samples,), or tuple of two of them
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred_a : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities, or forecast, of model A, as :func:`confidence_interval` takes them.

    y_pred_b : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities or forecast of model B for the same samples.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of the probabilities. By default the sorted labels
        in `y_true`. None for forecasts.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What calibration of forecasts is conditioned on, for a metric that takes it.

    groups : array-like of shape (n_samples,), default=None
        Groups of samples that are not independent, such as the rows of a patient; at least 10. For
        a series, numbers of blocks, such as ``np.arange(n) // length``.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which the interval is to cover the difference.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        What a small p-value shows: that the metrics differ; that A's is less (the interval has an
        upper end alone); or greater (a lower one).

    method : {"auto", "resampling", "jackknife"}, default="auto"
        "resampling": by subsamples and a jackknife, for any metric. "jackknife": by that alone, for
        smooth functions of means, and more powerful. "auto": "jackknife" for means, also
        :func:`sklearn.metrics.log_loss` and :func:`sklearn.metrics.brier_score_loss`; otherwise
        "resampling". Signed measures have the closed form of :func:`clinical_calibration`, with
        "auto" and "jackknife".

    n_resamples : int, default=999
        Number of subsamples of "resampling"; the smallest p-value is ``2 / (n_resamples + 1)``, or
        half of that if one-sided.

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling, for any `n_jobs`. The order of the samples matters.

    n_jobs : int, default=None
        Number of jobs of joblib; see :obj:`joblib.parallel_backend`.

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
    Subsamples, groups, weights and rare events are treated as in :func:`confidence_interval`. Fix
    parameters that follow the predictions, such as the `bandwidth` of a kernel error.

    **Two outcomes.** Two language models that answer the same questions are right on different
    ones: pass the tuple ``(right_a, right_b)`` as `y_true`, with the same question in each row. A
    single array says that both models predict the same event.

    **Resampling.** The interval is the hull of those of the jackknife and of subsampling, and the
    p-value is the larger one of both, doubled for two sides. From B subsamples it is :math:`(1 +
    \#\{\sqrt{b/n}\,\Delta_b \ge \Delta_n\}) / (1 + B)`. 0 lies outside of the interval if the
    p-value is at most 1 − `confidence_level`, and, up to interpolation, only then.

    **What the ends mean.** Both errors are biased upwards, the smaller one usually more, so
    `difference` understates what recalibration gains. An end that does not exclude 0 is therefore
    moved by as much as the biases may differ; not for means, signed measures and callables.

    **Opposite sides.** If two models are wrong on opposite sides by less than the noise, chance
    decides whose error is larger. For errors that a few directions decide (smooth, Laplace kernel,
    kernel, cumulative, decision and quantile errors, the lower distance, and a single bin)
    differences with p ≤ 0.2 are therefore checked in 100 halves of the samples. False alarms at
    0.05, up to 0.4 without, are at most about 0.08 then (0.09 with several bins and the ICI,
    unchecked). Callables are not checked.

    **Jackknife.** For means over independent samples of equal weight this is the paired t-test.
    With blocks of a series as `groups` it is a test of equal accuracy in the manner of Diebold and
    Mariano [1]_.

    References
    ----------
    .. [1] Diebold and Mariano (1995). Comparing Predictive Accuracy. Journal of Business & Economic
       Statistics. :doi:`10.1080/07350015.1995.10524599`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import compare_models
    >>> y_true, overconfident = make_temperature_family(
    ...     2000, inverse_temperature=2, random_state=0
    ... )
    >>> _, calibrated = make_temperature_family(2000, random_state=0)  # of the same samples
    >>> result = compare_models(
    ...     "smooth_calibration_error", y_true, overconfident, calibrated, random_state=0
    ... )
    >>> result.difference, result.p_value
    (0.028..., 0.002)
    """
    data: dict[str, Any] = {
        "sample_weight": sample_weight,
        "labels": labels,
        "given": given,
        "groups": groups,
        "multi_class": find_multi_class(metric, metric_params),
    }
    metric, metric_params, pos_label = split_pos_label(metric, metric_params)
    probas = {"y_pred_a": y_pred_a, "y_pred_b": y_pred_b}
    outcomes = split_outcomes(y_true)
    models = check_predicted(probas, y_true, outcomes, **data, pos_label=pos_label)
    return comparison_of(
        MeasuredModels.make(metric, metric_params, **models),
        confidence_level=confidence_level,
        alternative=alternative,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def interval_of(
    measured: MeasuredModels,
    *,
    confidence_level: float = 0.95,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
    method: str = "auto",
    **resampling: Any,
) -> ConfidenceInterval:
    """The interval of one model; `resampling` holds n_resamples, random_state and n_jobs."""
    if method == "finite-sample":
        function, fixed = measured.metrics[0].function, measured.metrics[0].fixed
        entry = find_entry(function)
        options = {name: value for name, value in fixed.items() if not is_data(name, value)}
        radius = finite_sample_radius(
            str(function) if entry is None else entry.name,
            len(measured.models[0].weight),
            metric_params=options | measured.options,
            confidence_level=confidence_level,
            alternative=alternative,
        )
        estimate = float(check_finite_values([measured.values()])[0, 0])
        low, high = estimate - radius.below, estimate + radius.above
    elif not (measured.metrics[0].lower_is_better or method == "resampling"):
        data, names = cast(ClassData, measured.models[0]), [measured.metrics[0].name]
        rows, _ = compute_intervals(data, names, confidence_level, alternative)
        estimate, low, high = rows[0].tolist()
    else:
        limits = measured.limits(method=method, **resampling)
        estimate = limits.estimate
        low, high = limits.interval(confidence_level, alternative)
    return ConfidenceInterval(estimate, *measured.clip(low, high), confidence_level)


def comparison_of(
    measured: MeasuredModels,
    *,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    **resampling: Any,
) -> Comparison:
    """The comparison of two models; `resampling` holds what `Measured.resample` takes."""
    if measured.metrics[0].sums_over_levels(measured.options):
        models: Any = measured.models
        check_same_levels(
            {"y_pred_a": models[0].forecast, "y_pred_b": models[1].forecast},
            "Pass metric_params={'levels': [...]} with levels that both have.",
        )
    metric, clipped = measured.metrics[0], None
    if not metric.lower_is_better and resampling.get("method") != "resampling":
        model_a, model_b = (cast(ClassData, data) for data in measured.models)
        (limits,) = compute_difference_limits(model_a, model_b, [metric.name])
        estimates = check_finite_values([measured.values()])[0].tolist()
        return _compare(estimates, limits, limits.interval, confidence_level, alternative)
    options = metric.options | measured.options
    if metric.clips_square(options):  # a clipped root does not vary
        clipped = measured.values()
        measured = replace(measured, options=measured.options | {"signed": True})
    resamples = measured.resample(**resampling)
    estimate_a, estimate_b = clipped or resamples.values.tolist()
    difference = resamples.limits([1.0, -1.0])
    interval = difference.interval
    if not (metric.is_mean or metric.may_be_negative):
        if metric.shares_witness(options) and difference.p_value(0.0) <= _MAX_P_VALUE:
            difference = with_halves(difference, measured.halves(resampling.get("n_jobs")))
        interval = partial(resamples.error_difference_interval, difference)
    estimates = [estimate_a, estimate_b]
    return _compare(estimates, difference, interval, confidence_level, alternative)


def _compare(
    estimates: list[float],
    difference: Limits,
    interval: Callable,
    confidence_level: float,
    alternative: str,
) -> Comparison:
    estimate_a, estimate_b = estimates
    estimate = estimate_a - estimate_b
    low, high = interval(confidence_level, alternative)
    p_value = max(difference.p_value(0.0, alternative), sys.float_info.min)
    ends = min(low, estimate), max(high, estimate)
    return Comparison(estimate_a, estimate_b, estimate, *ends, p_value, confidence_level)


def check_independent(sample_weight: ArrayLike | None, groups: ArrayLike | None) -> None:
    """Refuse weights, which may depend on the samples, and groups: then no radius is known."""
    for name, value in (("sample_weight", sample_weight), ("groups", groups)):
        if value is not None:
            raise ValueError(
                f"method='finite-sample' needs {name}=None; found some. "
                "Use method='resampling', which takes them."
            )
