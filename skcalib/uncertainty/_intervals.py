"""Intervals around calibration errors, and the comparison of two models."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from .._inputs.annotations import DataFrame
from .._inputs.arrays import ArrayLike, import_package
from .._inputs.by import Subgroups, check_by, format_label, printable
from .._inputs.missing import omit_missing
from .._inputs.options import select_arguments
from .._inputs.scikit_learn import RandomState, StrOptions, validate_params
from .._statistics.base import TIE_RTOL
from ..forecasts._quantile import check_same_levels
from ..metrics._registry import find_entry, is_data
from ._finite_sample import finite_sample_radius
from ._measured import LIMITS_CONSTRAINTS, MeasuredModels, Result, check_measured, split_outcomes
from ._units import check_finite_values

# The arguments of limits that are no data.
_LIMITS_OPTIONS = ("confidence_level", "alternative", "n_resamples", "random_state", "n_jobs")

INTERVAL_CONSTRAINTS = LIMITS_CONSTRAINTS | {"method": [StrOptions({"auto", "finite-sample"})]}


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
    ...     "smooth_calibration_error", y_true, y_proba, by=site, random_state=0
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

    def to_frame(self) -> DataFrame:
        """Return the table as a data frame of pandas, which must be installed.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_subgroups, 6)
            A row for each subgroup, which is its label, and the columns `n_samples`, `share`,
            `estimate`, `low`, `high` and `note`.
        """
        pd = import_package("pandas", "to_frame()", "pandas")
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
        titles = [format_label(label, self.names) for label in self.subgroups]
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

    @property
    def skill_score(self) -> float:
        """Skill of A with B as the reference, 1 − A/B, such as the CRPSS; NaN if B is 0."""
        return 1 - self.estimate_a / self.estimate_b if self.estimate_b else np.nan


class _IntervalOptions(TypedDict, total=False):
    sample_weight: ArrayLike | None
    labels: ArrayLike | None
    given: ArrayLike | None
    groups: ArrayLike | None
    metric_params: dict | None
    confidence_level: float
    alternative: Literal["two-sided", "less", "greater"]
    method: Literal["auto", "finite-sample"]
    n_resamples: int
    nan_policy: Literal["raise", "omit"]
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
@omit_missing
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
    method: Literal["auto", "finite-sample"] = "auto",
    n_resamples: int = 199,
    nan_policy: Literal["raise", "omit"] = "raise",
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> ConfidenceInterval | SubgroupIntervals:
    r"""Confidence interval for a metric of calibration, of all samples or of each subgroup.

    It covers the metric of the whole distribution: 0 for a calibrated model, which the usual
    bootstrap misses, as estimates are positive.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of :mod:`skcalib.metrics`; "log_loss", "brier_score_loss" or
        "roc_auc_score"; or a callable ``metric(y_true, y_proba, **metric_params) -> float``, which
        also gets `sample_weight` if weights are given, and `labels` if it takes them.

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
        Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take all
        arrays at ``np.repeat(np.arange(n), counts)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_pred`. By default the sorted labels in
        `y_true`. None for forecasts.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What calibration of forecasts is conditioned on, for a metric that takes it.

    groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Groups of samples that are not independent, such as the rows of a patient; at least 10, in
        each subgroup. Two columns are crossed groups, such as patients and readers. For a series,
        numbers of blocks, such as ``np.arange(n) // length``.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which each interval is to cover its value. For S subgroups at once, pass
        :math:`1 - 0.05 / S`.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        Which ends the interval has. "less": an upper end alone; "greater": a lower end alone. The
        other end is that of the metric's range.

    method : {"auto", "finite-sample"}, default="auto"
        "auto": as the Notes say. "finite-sample": by :func:`finite_sample_radius`, for every
        distribution, but only some metrics, and several times as wide; without weights and groups.

    n_resamples : int, default=199
        Number of draws of outcomes for the lower end of an error. With fewer than ``2 / (1 -
        confidence_level) - 1`` draws (half as many if one-sided) that end is 0. Other metrics need
        none.

    nan_policy : {"raise", "omit"}, default="raise"
        Refuse missing predictions (None or NaN), or leave out these rows, in all arguments, with a
        warning that counts them. Of forecasts they are always refused.

    random_state : int, RandomState instance or None, default=None
        Seed of these draws, for any `n_jobs`.

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
    Near the outcomes that were observed, a metric is a constant plus a sum of terms, one for each
    sample. The interval is the hull of what follows from them:

    **Means** (losses, also :func:`sklearn.metrics.log_loss` and
    :func:`sklearn.metrics.brier_score_loss`): estimate ± t standard errors, as of the t-test,
    without each sample or group in turn; and a score interval, which holds with few events, too.
    It tilts the probabilities of all outcomes along their losses, to be proportional to
    :math:`p_k e^{\alpha \ell_k}`, until their mean is t standard deviations from the estimate.
    Outcomes of forecasts are 20 quantiles.

    **Signed measures** (O:E ratio, intercept, slope, calibration in the large), and
    :func:`sklearn.metrics.roc_auc_score` of two classes: the closed form of
    :func:`clinical_calibration`.

    **Errors** are chosen by the data, and positive by chance. Their terms are those of the witness
    (the sign of each bin, the worst function); for errors without one, by how much the error
    changes without each of 100 blocks (a jackknife). The lower end is at most the estimate minus
    the quantile of errors under outcomes drawn from the predictions: so it is above 0 only where
    the test of calibration by the same error rejects. Upper ends hold for convex errors, as these
    exceed the sum of the terms.

    **Callables**, and metrics whose data :func:`functools.partial` fixes, have only the jackknife
    of 100 blocks. It misses a calibration error of 0. Blocks are the same in every call, so the
    order of the samples matters.

    **Groups.** Terms are summed within groups. Outcomes of a group are drawn as dependent as the
    residuals in groups of similar weight are; the expected variance assumes the same. Two groups
    whose outcomes all agree are added to these, as a caution. Crossed groups have the variance
    :math:`V_a + V_b - V_{ab}` [1]_. The degrees of freedom of t are at most :math:`1 / \sum W^2 -
    1` for the shares W of the groups, or samples, and :math:`2 V^2 / \sum (v - \bar v)^2` where V
    is the sum of v over the groups. Fewer than 10 effective groups, or samples, are refused.

    The benchmark "Do intervals and tests hold on every kind of data?" shows where intervals covered
    too seldom.

    **Cost**: of a mean, some 20 passes; of an error, `n_resamples` values.

    References
    ----------
    .. [1] Cameron, Gelbach and Miller (2011). Robust Inference With Multiway Clustering. Journal of
       Business & Economic Statistics. :doi:`10.1198/jbes.2010.07136`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import confidence_interval
    >>> y_true, y_proba = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    >>> confidence_interval("smooth_calibration_error", y_true, y_proba, random_state=0)
    ConfidenceInterval(estimate=0.055..., low=0.03..., high=0.07..., confidence_level=0.95)

    One interval for each subgroup:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(1000)
    >>> age = rng.choice(["18-30", "31-65"], size=1000)
    >>> y = rng.random(1000) < np.where(age == "18-30", proba**2, proba)
    >>> result = confidence_interval(
    ...     "smooth_calibration_error", y, proba, by={"age": age}, random_state=0
    ... )
    >>> result["18-30"].low > result["31-65"].high
    True
    """
    data = {"sample_weight": sample_weight, "labels": labels, "given": given, "groups": groups}
    measured = check_measured(metric, metric_params, {"y_pred": y_pred}, y_true, None, **data)
    subgroups = None if by is None else check_by(by, np.shape(y_true)[0], sample_weight)
    if method == "finite-sample":
        check_independent(sample_weight, groups)
    options = select_arguments(locals(), ("method", *_LIMITS_OPTIONS))
    interval: Callable = partial(interval_of, **options)
    whole = interval(measured)  # so what fails in a subgroup is due to its samples
    if subgroups is None:
        return whole
    ends, notes = np.full((len(subgroups.labels), 3), np.nan), [""] * len(subgroups.labels)
    for k, rows in enumerate(subgroups.rows()):
        try:
            subgroup_models = measured.take(rows)
            ends[k, 0] = check_finite_values([subgroup_models.values()]).item()
            ends[k, 1:] = [*interval(subgroup_models)]
        except ValueError as error:
            notes[k] = str(error).partition(". ")[0]  # without the remedy
    return tabulate_subgroups(subgroups, measured.models[0].weight, ends, notes, whole)


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


@validate_params(LIMITS_CONSTRAINTS, prefer_skip_nested_validation=False)
@omit_missing
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
    n_resamples: int = 199,
    nan_policy: Literal["raise", "omit"] = "raise",
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Comparison:
    r"""Compare the calibration errors of two models on the same samples.

    The difference of their metrics, with a confidence interval and the p-value of the hypothesis
    that there is none.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of :mod:`skcalib.metrics`; "log_loss", "brier_score_loss" or
        "roc_auc_score"; or a callable ``metric(y_true, y_proba, **metric_params) -> float``, which
        also gets `sample_weight` if weights are given, and `labels` if it takes them.

    y_true : array-like of shape (n_samples,), or tuple of two of them
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred_a : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities, or forecast, of model A, as :func:`confidence_interval` takes them.

    y_pred_b : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities or forecast of model B for the same samples, or its own.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take all
        arrays at ``np.repeat(np.arange(n), counts)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of the probabilities. By default the sorted labels
        in `y_true`. None for forecasts.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What calibration of forecasts is conditioned on, for a metric that takes it.

    groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Groups of samples that are not independent, such as the rows of a patient; at least 10. Two
        columns are crossed groups. For a series, numbers of blocks, such as ``np.arange(n) //
        length``.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which the interval is to cover the difference.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        What a small p-value shows: that the metrics differ; that A's is less (the interval has an
        upper end alone); or greater (a lower one).

    n_resamples : int, default=199
        Number of draws of outcomes for a difference of errors; the smallest p-value is then ``2 /
        (n_resamples + 1)``, or half of that if one-sided. If 1 − `confidence_level` is less, the
        ends are infinite. Other metrics need no draws.

    nan_policy : {"raise", "omit"}, default="raise"
        Refuse missing predictions (None or NaN), or leave out these rows, in all arguments, with a
        warning that counts them. Of forecasts they are always refused.

    random_state : int, RandomState instance or None, default=None
        Seed of these draws, for any `n_jobs`.

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
    Terms, groups and callables are treated as in :func:`confidence_interval`. The interval is the
    hull of several, and the p-value the largest of theirs: 0 lies outside of the interval if and
    only if the p-value is at most 1 − `confidence_level`. Fix parameters that follow the
    predictions, such as the `bandwidth` of a kernel error.

    **Two outcomes.** Two language models that answer the same questions are right on different
    ones: pass the tuple ``(right_a, right_b)`` as `y_true`, with the same question in each row. A
    single array says that both models predict the same event.

    **Two samples.** If these are of different length, as questions that each model was asked, the
    samples count as independent. The ends are those of :func:`confidence_interval` for each model,
    whose distances from the estimates are squared and added [2]_; the p-value is where 0 is an end.
    `sample_weight`, `given` and `groups` are then tuples of two, as `y_true`; a group in both is
    refused. Samples of equal length are pairs of rows, unless one of these three is such a tuple.
    Where many questions are shared, compare on these: it is sharper.

    **Means** over independent samples of equal weight have the paired t-test; with the same labels,
    the score interval, too, around the mean of both predictions. With blocks of a series as
    `groups` it is a test of equal accuracy in the manner of Diebold and Mariano [1]_.

    **Errors.** Outcomes are drawn in two worlds without a difference: each model is right, with
    outcomes of its own by the same random numbers; or both are equally wrong on opposite sides,
    with outcomes drawn from the mean of their predictions. A p-value is at least that of either.

    **What the ends mean.** Both errors are biased upwards, the smaller one usually more, so
    `difference` understates what recalibration gains. An end that does not exclude 0 is therefore
    moved further out, by the bias of the difference in the worlds where A or B is right. There the
    true difference is known: it is that of all possible outcomes. With two outcomes, and for
    ensembles whose members are exchangeable with the outcome, only the first world is drawn, and
    ends are not moved.

    **Cost**: of errors, 6 `n_resamples` values.

    References
    ----------
    .. [1] Diebold and Mariano (1995). Comparing Predictive Accuracy. Journal of Business & Economic
       Statistics. :doi:`10.1080/07350015.1995.10524599`
    .. [2] Newcombe (1998). Interval estimation for the difference between independent proportions.
       Statistics in Medicine.
       :doi:`10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I`

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
    (0.028..., 0.01)
    """
    data = {"sample_weight": sample_weight, "labels": labels, "given": given, "groups": groups}
    probas, outcomes = {"y_pred_a": y_pred_a, "y_pred_b": y_pred_b}, split_outcomes(y_true)
    measured = check_measured(metric, metric_params, probas, y_true, outcomes, **data)
    return comparison_of(measured, **select_arguments(locals(), _LIMITS_OPTIONS))


def interval_of(
    measured: MeasuredModels,
    *,
    confidence_level: float = 0.95,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
    method: str = "auto",
    **drawing: Any,
) -> ConfidenceInterval:
    """The interval of one model; `drawing` holds n_resamples, random_state and n_jobs."""
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
    else:
        limits = measured.limits(**drawing)
        estimate = limits.estimate
        low, high = limits.interval(confidence_level, alternative)
    return ConfidenceInterval(estimate, *measured.clip(low, high), confidence_level)


def comparison_of(
    measured: MeasuredModels,
    *,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    **drawing: Any,
) -> Comparison:
    """The comparison of two models; `drawing` holds n_resamples, random_state and n_jobs."""
    if measured.metrics[0].sums_over_levels(measured.options):
        models: Any = measured.models
        check_same_levels(
            {"y_pred_a": models[0].forecast, "y_pred_b": models[1].forecast},
            "Pass metric_params={'levels': [...]} with levels that both have.",
        )
    limits = measured.limits(**drawing)
    low, high = limits.interval(confidence_level, alternative)
    p_value = max(limits.p_value(0.0, alternative), sys.float_info.min)
    if p_value * (1 - TIE_RTOL) > 1 - confidence_level:  # as it is but for numerical errors
        low, high = min(low, 0.0), max(high, 0.0)
    estimate_a, estimate_b = check_finite_values([measured.values()])[0].tolist()
    difference = estimate_a - estimate_b
    ends = min(low, difference), max(high, difference)
    return Comparison(estimate_a, estimate_b, difference, *ends, p_value, confidence_level)


def check_independent(sample_weight: ArrayLike | None, groups: ArrayLike | None) -> None:
    """Refuse weights, which may depend on the samples, and groups: then no radius is known."""
    for name, value in (("sample_weight", sample_weight), ("groups", groups)):
        if value is not None:
            raise ValueError(
                f"method='finite-sample' needs {name}=None; found some. "
                "Use method='auto', which takes them."
            )
