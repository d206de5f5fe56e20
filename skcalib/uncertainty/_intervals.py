"""Intervals around calibration errors, and the comparison of two models."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, cast, overload

import numpy as np

from .._data import ClassData
from .._inputs.arrays import ArrayLike
from .._inputs.by import check_by, format_label, printable
from .._inputs.scikit_learn import RandomState, StrOptions, validate_params
from ..forecasts._quantile import check_same_levels
from ..metrics._registry import find_entry, find_multi_class
from ._finite_sample import finite_sample_radius
from ._measured import (
    RESAMPLING_CONSTRAINTS,
    MeasuredModels,
    Result,
    check_predicted,
    split_outcomes,
    split_pos_label,
)
from ._resampling import check_finite_values, with_halves
from ._signed import signed_intervals

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

    What is covered is the value of the metric on the whole distribution that the samples come from.
    That is 0 for a calibrated model, while the estimate is positive: the usual bootstrap misses the
    0 then, this interval does not. Where events, or wrong predictions, are so rare that the samples
    do not show how the metric varies, it allows for those that were missed by chance.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of :mod:`skcalib.metrics`, or a callable ``metric(y_true, y_proba,
        **metric_params) -> float``. It gets `sample_weight` if weights are given, and the classes
        if it takes an argument `labels`.

    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1. Or a forecast of a number,
        as :func:`skcalib.forecasts.as_forecast` takes it.

    by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
            default=None
        The subgroup of each sample: a column, or several, which make their crossings. Each gets an
        interval of its own, a table of which is returned. Rows count by their position. Missing
        values are a subgroup of their own; continuous numbers are refused.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_pred`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied. None for forecasts.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What calibration of forecasts is conditioned on, for a metric that has an argument of this
        name: groups, or features.

    groups : array-like of shape (n_samples,), default=None
        Labels of groups of samples that are not independent of each other, such as the rows of one
        patient: whole groups are drawn and left out. At least 10, in each subgroup. For a series,
        numbers of blocks, such as ``np.arange(n) // length``.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which each interval is to cover its value. For those of S subgroups at
        once, pass :math:`1 - 0.05 / S`.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        Which ends the interval has. "less": an upper end alone, with the other at −∞, or at 0 for
        what cannot be negative; "greater": a lower end alone, with the other at ∞, or at the
        largest value of the metric.

    method : {"auto", "resampling", "jackknife", "finite-sample"}, default="auto"
        "resampling": by subsamples and a jackknife, for any metric. "jackknife": by that alone,
        which is right for means over the samples and other smooth functions of means, and
        narrower; a calibration error of 0 it misses. "auto": "jackknife" for the
        metrics of :mod:`skcalib.metrics` that are means, and for :func:`sklearn.metrics.log_loss`
        and :func:`sklearn.metrics.brier_score_loss`; for
        :func:`~skcalib.metrics.observed_expected_ratio` and the other signed measures the
        intervals of :func:`clinical_calibration`; otherwise "resampling". "finite-sample": by
        :func:`finite_sample_radius`, which holds for every number of samples and every
        distribution, but only for some metrics, and is several times as wide. It takes neither
        weights nor groups.

    n_resamples : int, default=999
        Number of subsamples of "resampling".

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. The result does not depend on `n_jobs`; in another order of the
        samples other ones are drawn.

    n_jobs : int, default=None
        Number of jobs among which joblib spreads the resamples; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    Returns
    -------
    interval : ConfidenceInterval or SubgroupIntervals
        The `estimate`, and the ends `low` and `high` of the interval. For a metric of
        :mod:`skcalib.metrics` or scikit-learn's that cannot be negative, they are not either (an
        unbiased estimate may be), nor above its largest value, if that is known. With `by` a table,
        and a mapping from subgroups to their intervals; a subgroup with less than 10 samples, or
        groups, has NaN as ends, and a note.

    See Also
    --------
    compare_models : The difference between two models.
    finite_sample_radius : The half-widths of "finite-sample", also before there are data.
    skcalib.hypothesis_tests.CalibrationTest : Whether the model may be calibrated after all.
    skcalib.hypothesis_tests.SubgroupCalibrationTest : Whether all subgroups are calibrated.

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
    enough. The root mean square error with `debias`, which is 0 where the estimated square is
    negative, gets the root of the interval of that square, which varies there, too; that square
    falls like 1/n, and b/n takes the place of :math:`\sqrt{b/n}`. (With ``metric_params`` that name
    a `pos_label` it does not: 0.77 instead of 0.95 were covered.) The lower end of the level set
    error is 0 if subsamples have less samples than there are distinct predictions (:math:`1 / \sum
    W^2` of their shares W): it falls too slowly then, as most samples of a subsample are alone at
    theirs. A callable should converge like
    :math:`n^{-1/2}`. Convexity does not hold for debiased
    estimates, nor where bins or a bandwidth follow the data. The coverage that was measured is in
    the benchmark "Coverage of confidence intervals, and false alarms of comparisons".

    **Rare events.** Where nothing, or everything, happened, all parts of the samples are alike, and
    resampling sees no variance. So if less than 25 predictions are wrong (or right), the interval
    is widened. Wrong is a label that is not the most probable class.

    - *Both ends*: labels are moved until wrong (or right) predictions are as frequent as the bound
      of Clopper and Pearson [4]_ allows with the tail of that end, and the interval contains the
      metric of all the labels on the way. With two classes the predictions on either side of 1/2
      are looked at apart. Moved are the samples that the predictions make most likely: in
      proportion to the probability of the new label, with more than two classes of the second most
      probable class.
    - *Lower end*: it is 0 if labels drawn from the predictions have as large an error with more
      than the probability of that tail, as in :class:`~skcalib.hypothesis_tests.CalibrationTest`.
      With `groups`, whose dependence is not known, it is 0 always, and so it is with
      ``method="jackknife"``, which draws nothing.

    The smooth, binned, cumulative, interval and smooth expected calibration errors and the lower
    distance are never below the difference of the observed and the predicted frequency. So if all
    predictions are on the same side of 1/2, the upper end is at least the bound of Clopper and
    Pearson on that difference. This bound holds for the labels that belong to these predictions:
    exactly if all have the same probability, and otherwise by an inequality of Hoeffding [5]_, as
    long as it lies more than one event above the number that was seen (always, unless nearly all
    are events). With `groups` it treats rows of a group as one if none is seen, and otherwise by
    the effective number of groups in which one is. That the whole metric is covered is not proved,
    but measured: see the benchmark "How often intervals cover the truth where events, or wrong
    predictions, are rare". With 25 or more, intervals are what the other paragraphs say. Callables
    of your own and metrics of forecasts are never widened.

    **Means.** A mean over the samples needs no subsamples: its interval is that of the jackknife
    alone. If the metric is known to be a mean, single samples (or groups) are left out, so that for
    equal weights it is the interval of Student's t (unless wrong predictions are rare). It covers a
    mean of very skewed losses too seldom: the log loss of a model that is too sure was covered 0.90
    to 0.92 of the time with 60 samples, 11 of them wrong, and 0.94 with 100, 19 of them wrong; what
    was missed lay above nearly always. Other callables are evaluated without each of 100 random
    parts, or without single samples if there are fewer. That is right for any smooth function of
    means, such as a regression coefficient, too.

    **Weights and groups.** Samples, with their weights, are taken for independent draws; with
    `groups`, whole groups are. In what was said above, n is then the effective number
    :math:`(\sum W)^2 / \sum W^2` of samples or groups, of the weights W of each. A subsample holds
    a part :math:`3 / \sqrt n` of them (at most 1/2), and b is its effective number (at most 0.8 n).
    Student's t has as many degrees of freedom as the effective number of parts that are left out,
    minus 1. An effective number below 10 is refused: a few samples or groups would decide.

    **Subgroups.** Small subgroups look worse than they are, as the estimates of most calibration
    errors are biased upwards: compare intervals rather than estimates. With an integer as
    `random_state`, the interval of a subgroup is that of its samples alone. What a metric takes
    from the data, such as a bandwidth, it takes from each subgroup anew.

    A metric that depends on the order of the samples or draws random numbers makes the interval
    wider than need be. Cost: 101 values of the metric of all samples, and `n_resamples` of b of
    them; of a mean, one value. Where wrong predictions are rare, up to 40 values more, and for the
    lower end up to `n_resamples`.

    References
    ----------
    .. [1] D. N. Politis and J. P. Romano (1994). Large Sample Confidence Regions Based on
       Subsamples under Minimal Assumptions. Annals of Statistics 22(4).
       :doi:`10.1214/aos/1176325770`
    .. [2] Z. Fang and A. Santos (2019). Inference on Directionally Differentiable Functions. Review
       of Economic Studies 86(1). :doi:`10.1093/restud/rdy049`
    .. [3] D. W. K. Andrews and P. Guggenberger (2009). Hybrid and Size-Corrected Subsampling
       Methods. Econometrica 77(3). :doi:`10.3982/ECTA7015`
    .. [4] C. J. Clopper and E. S. Pearson (1934). The Use of Confidence or Fiducial Limits
       Illustrated in the Case of the Binomial. Biometrika 26(4). :doi:`10.1093/biomet/26.4.404`
    .. [5] W. Hoeffding (1956). On the Distribution of the Number of Successes in Independent
       Trials. Annals of Mathematical Statistics 27(3). :doi:`10.1214/aoms/1177728178`

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
    >>> age = rng.choice(["18-30", "31-65", "over 65"], size=1000, p=[0.395, 0.6, 0.005])
    >>> y = rng.random(1000) < np.where(age == "18-30", proba**2, proba)
    >>> by = {"age": age}  # or a column of a data frame
    >>> confidence_interval(
    ...     "smooth_calibration_error", y, proba, by=by, n_resamples=99, random_state=0
    ... )
    age      samples  share  estimate       low      high
    18-30        435  0.435    0.165...  0.10...  0.22...
    31-65        560  0.560    0.0044...       0  0.02...
    over 65        5  0.005    0.420...      nan      nan  y_true must hold at least 10 samples ...
    all         1000  1.000    0.070...  0.03...  0.09...
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
    estimates, lows, highs = np.array(intervals).T
    return SubgroupIntervals(
        subgroups.names,
        subgroups.labels,
        np.bincount(subgroups.code),
        np.bincount(subgroups.code, measured.models[0].weight),
        estimates,
        lows,
        highs,
        tuple(notes),
        whole,
        confidence_level,
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
    that there is none on the whole distribution. The samples are resampled together with both
    predictions, so what is common to the two models does not count. The hypothesis may be
    true of two calibrated models and of two equally miscalibrated ones.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of :mod:`skcalib.metrics`, or a callable ``metric(y_true, y_proba,
        **metric_params) -> float``. It gets `sample_weight` if weights are given, and the classes
        if it takes an argument `labels`.

    y_true : array-like of shape (n_samples,), or tuple of two of them
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred_a : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities of model A in [0, 1]. One-dimensional: of the positive class.
        Two-dimensional: one column for each class in the order of `labels`; rows sum to 1. Or its
        forecast of a number, as :func:`skcalib.forecasts.as_forecast` takes it, for a metric of
        forecasts.

    y_pred_b : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
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
        powerful. "auto": "jackknife" for the metrics of :mod:`skcalib.metrics` that are means, for
        :func:`~skcalib.metrics.observed_expected_ratio` and the other signed measures, and
        for :func:`sklearn.metrics.log_loss` and :func:`sklearn.metrics.brier_score_loss`, otherwise
        "resampling".

    n_resamples : int, default=999
        Number of subsamples of "resampling". The smallest possible p-value is then
        ``2 / (n_resamples + 1)``, or half of that if it is one-sided.

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. The result does not depend on `n_jobs`; in another order of the
        samples other ones are drawn.

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
    Subsamples, groups and weights are those of :func:`confidence_interval`, and so are the labels
    that are moved if less than 25 predictions of a model are wrong: no model wins because nothing
    happened.

    **Outcomes of their own.** Two language models that answer the same questions are right on
    different ones. ``compare_models(metric, (right_a, right_b), confidence_a, confidence_b)`` takes
    a tuple of two outcomes in the order of the models, with the same question in each row: what
    makes a question hard for both is resampled together. A single array says that both models
    predict the same event. If it holds whether model A was right, B is measured by how well its
    confidence predicts A's answers, and not its own.

    **Resampling.** The interval is the hull of that of :func:`confidence_interval`'s two methods,
    applied to the difference: the normal one with the jackknife, right for miscalibrated models,
    and subsampling, right also for calibrated ones, whose errors are due to chance but not equally
    large where one model's predictions are spread more widely. The p-value is the larger one of the
    two methods, doubled for two sides; from the subsamples it is :math:`(1 +
    \#\{\sqrt{b/n}\,\Delta_b \ge \Delta_n\}) / (1 + B)`. So 0 lies outside of the interval if and
    only if the p-value is at most 1 − `confidence_level` (up to interpolation where that times
    (`n_resamples` + 1)/2, or all of it for one side, is not a whole number). The convexity that
    makes the interval for one model safe between the two cases says less about a difference; the
    coverage and the rate of false alarms that were measured are in the benchmark "Coverage of
    confidence intervals, and false alarms of comparisons".

    **What the ends mean.** Both errors are biased upwards, the smaller one usually more, so
    `difference` understates what recalibration gains. The interval of errors allows for this: an
    end that does not exclude 0, or lies beyond it, is moved by as much as the biases may differ. By
    convexity the bias of an error is at most :math:`\sqrt{b/n}` times the mean excess of the
    subsamples over the lower end of that error's own interval, and it is taken to be at least
    :math:`r / (1 - r)` times their mean excess over :math:`T_n`, with r = b/n. So a small p-value
    says that there is a gain, and `high` how large it may be. Means, signed measures and callables
    of your own are not moved.

    **Opposite sides.** If two models are wrong on opposite sides by less than the noise, chance
    decides whose error is larger, and neither method sees it. For the smooth and Laplace kernel
    errors and the lower distance a difference of p ≤ 0.2 is therefore looked at in 100 halves of
    the samples, too, centred at the estimate by their median: if k > 0 of them have another sign,
    the one-sided p-value is at least (k + 1)/101. False alarms at 0.05 fall from about 0.3 to about
    0.06. They remain at 0.01 (measured: up to 0.05), and with the cumulative error (about 0.3),
    where the halves would cost half of the power; with bins they are rare.

    **Jackknife.** Interval and p-value are those of Student's t, but for labels that are moved. For
    the metrics that are known to be means over independent samples of equal weight this is the
    paired t-test. With blocks of a series as `groups` it is a test of equal accuracy in the manner
    of Diebold and Mariano [1]_.

    References
    ----------
    .. [1] F. X. Diebold and R. S. Mariano (1995). Comparing Predictive Accuracy. Journal of
       Business & Economic Statistics 13(3). :doi:`10.1080/07350015.1995.10524599`

    Fix parameters that would otherwise follow the predictions, such as the `bandwidth` of a kernel
    error, so that both models are measured with the same yardstick.

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

    Two language models, each with answers of its own to the same questions:

    >>> import numpy as np
    >>> from sklearn.metrics import brier_score_loss
    >>> rng = np.random.default_rng(0)
    >>> confidence_a, confidence_b = rng.uniform(0.5, 1, size=(2, 500))
    >>> right = rng.random(500) < confidence_a, rng.random(500) < 0.6
    >>> compare_models(brier_score_loss, right, confidence_a, confidence_b).high < 0
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
        function = measured.metrics[0].function
        entry = find_entry(function)
        radius = finite_sample_radius(
            str(function) if entry is None else entry.name,
            len(measured.models[0].weight),
            metric_params=measured.options,
            confidence_level=confidence_level,
            alternative=alternative,
        )
        estimate = float(check_finite_values([measured.values()])[0, 0])
        low, high = estimate - radius.below, estimate + radius.above
    elif not (measured.metrics[0].lower_is_better or method == "resampling"):
        resampling.pop("n_resamples")
        rows, _ = signed_intervals(
            cast(ClassData, measured.models[0]),
            [measured.metrics[0].name],
            confidence_level,
            alternative=alternative,
            **resampling,
        )
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
    resamples = measured.resample(**resampling)
    estimate_a, estimate_b = resamples.values.tolist()
    difference = resamples.limits([1.0, -1.0])
    metric, interval = measured.metrics[0], difference.interval
    if not (metric.is_mean or metric.may_be_negative):
        if metric.has_lipschitz_witness and difference.p_value(0.0) <= _MAX_P_VALUE:
            difference = with_halves(difference, measured.halves(resampling.get("n_jobs")))
        interval = partial(resamples.error_difference_interval, difference)
    low, high = interval(confidence_level, alternative)
    return Comparison(
        estimate_a,
        estimate_b,
        difference.estimate,
        low,
        high,
        max(difference.p_value(0.0, alternative), sys.float_info.min),
        confidence_level,
    )


def check_independent(sample_weight: Any, groups: Any) -> None:
    """Refuse weights, which may depend on the samples, and groups: then no radius is known."""
    for name, value in (("sample_weight", sample_weight), ("groups", groups)):
        if value is not None:
            raise ValueError(
                f"method='finite-sample' needs {name}=None; found some. "
                "Use method='resampling', which takes them."
            )
