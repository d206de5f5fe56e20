"""The calibration measures of a clinical validation, with intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Literal, Protocol, TypeVar, cast, overload

import numpy as np
from scipy import stats
from scipy.special import expit, logit

from .._data import ClassData, check_predictions, with_groups
from .._inputs.annotations import DataFrame, P
from .._inputs.arrays import ArrayLike, import_package
from .._inputs.by import Columns, Subgroups, check_by_each, format_columns, format_label, printable
from .._inputs.scikit_learn import Interval, Label, RandomState, validate_params
from .._numerics.dependence import UnitSums, split_columns
from .._numerics.logits import log_odds
from .._numerics.random_effects import conditional_log_likelihood, fit_random_effects
from ..metrics._clinical import check_two_classes, distances_from_curve
from ..metrics._registry import METRICS, SIGNED_METRICS
from ._closed_form import MIN_EFFECTIVE_EVENTS, SIGNED_MEASURES, TwoClasses, signed_limits
from ._intervals import ConfidenceInterval, SubgroupIntervals, interval_of, tabulate_subgroups
from ._limits import cross_groups
from ._measured import LIMITS_CONSTRAINTS, MeasuredModels

# Titles of the rows, and the values of calibrated predictions.
_ROW_TITLES = {
    "calibration_in_the_large": ("calibration in the large", 0),
    "observed_expected_ratio": ("O:E ratio", 1),
    "calibration_intercept": ("calibration intercept", 0),
    "calibration_slope": ("calibration slope", 1),
    "integrated_calibration_index": ("ICI", 0),
    "e50": ("E50", 0),
    "e90": ("E90", 0),
}

# The least number of subgroups over which the signed measures are combined, and of events, and of
# other samples, from which on their intervals hold.
_MIN_SUBGROUPS, _MIN_COMBINED_EVENTS = 3, 30

# Standard deviations between subgroups are weighted by a half-normal distribution of this scale.
_LIKELY_HETEROGENEITY = dict(zip(SIGNED_MEASURES, (0.3, 1.5, 1.5, 0.75), strict=True))

# Distances of values from those of calibrated predictions, at which likelihoods are computed.
_DISTANCES_FROM_IDEAL = np.sinh(np.linspace(-3, 3, 77))

# With more events, and more others, than the first number, the likelihood of a subgroup is that of
# its estimate and standard error; that of a slope also beyond about as many sums.
_MAX_EXACT_EVENTS, _MAX_EXACT_SUMS = 100, 2**20

# The quantiles of the distances from the curve, and the mean: ICI, E50 and E90.
_INDEX, _QUANTILES = METRICS["integrated_calibration_index"], (None, 0.5, 0.9)

# With fewer degrees of freedom the quantiles of t are huge, and not computed accurately.
_MIN_DEGREES = 0.01

# Scales of estimates that are pooled, and the way back.
_TRANSFORMATIONS: dict[str, Any] = {
    "identity": (np.asarray, np.asarray),
    "log": (np.log, np.exp),
    "logit": (logit, expit),
    "error": (np.asarray, partial(np.maximum, 0)),
}


@dataclass(frozen=True, repr=False)
class ClinicalCalibration:
    """The measures of calibration of a clinical validation, with confidence intervals.

    Printed, it is a table. ``vars(result)`` is the dictionary of all that follows.

    Parameters
    ----------
    calibration_in_the_large : ConfidenceInterval
        The observed frequency minus the mean prediction; 0 is calibrated.

    observed_expected_ratio : ConfidenceInterval
        Observed divided by predicted number of events; 1 is calibrated.

    calibration_intercept : ConfidenceInterval
        What is missing in the log-odds; 0 is calibrated.

    calibration_slope : ConfidenceInterval
        The factor that is missing in the log-odds; 1 is calibrated.

    integrated_calibration_index : ConfidenceInterval
        Mean distance (ICI) between predictions and a smooth curve; 0 is calibrated.

    e50 : ConfidenceInterval
        The median of these distances.

    e90 : ConfidenceInterval
        The 90 % quantile of these distances.

    effective_n_events : float or None, default=None
        How many independent events vary as much as those expected in the groups (or non-events, if
        these are less); None without groups. If it is below 10, the intervals rest on a guess of
        how the labels of a group depend on each other, and the table says so.

    See Also
    --------
    clinical_calibration : The function that returns it.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import clinical_calibration
    >>> y_true, y_proba = make_temperature_family(200, random_state=0)
    >>> result = clinical_calibration(y_true, y_proba, n_resamples=99, random_state=0)
    >>> round(result.calibration_slope.estimate, 2)
    1.02
    """

    calibration_in_the_large: ConfidenceInterval
    observed_expected_ratio: ConfidenceInterval
    calibration_intercept: ConfidenceInterval
    calibration_slope: ConfidenceInterval
    integrated_calibration_index: ConfidenceInterval
    e50: ConfidenceInterval
    e90: ConfidenceInterval
    effective_n_events: float | None = None

    def __repr__(self) -> str:
        lines = [f"{'':24} {'estimate':>9} {'low':>9} {'high':>9} {'calibrated':>11}"]
        for name, (title, ideal) in _ROW_TITLES.items():
            interval = getattr(self, name)
            ends = " ".join(
                f"{value:9.3f}" for value in (interval.estimate, interval.low, interval.high)
            )
            lines.append(f"{title:24} {ends} {ideal:11}")
        n_events = self.effective_n_events
        if n_events is not None and n_events < MIN_EFFECTIVE_EVENTS:
            lines.append(f"Few events: the groups count as {n_events:.2g} independent ones.")
        return "\n".join(lines)


Pooled = TypeVar("Pooled", bound=ConfidenceInterval | ClinicalCalibration)


@dataclass(frozen=True)
class RandomEffects:
    """Mean of a measure over subgroups, and the spread of subgroups around it.

    Parameters
    ----------
    estimate : float
        The mean of the measure over the population of subgroups; of the O:E ratio the geometric
        mean. NaN, like all that follow, if less than three subgroups say something about it, or if
        it differs by some 10 or more from that of calibrated predictions (O:E in its logarithm).

    low : float
        Lower end of the confidence interval of the mean.

    high : float
        Upper end of the confidence interval of the mean.

    prediction_low : float
        Lower end of the prediction interval: where the measure of a new subgroup is to be expected.

    prediction_high : float
        Upper end of the prediction interval.

    heterogeneity : float
        The standard deviation τ of the true measures of subgroups; of the O:E ratio that of its
        logarithm. It is sought up to 4.

    left_out : tuple
        Subgroups that say nothing about the measure, as one outcome says nothing about a slope.

    confidence_level : float
        The probability with which both intervals are meant to cover.

    See Also
    --------
    clinical_calibration : The function that returns it, with `by`.

    Examples
    --------
    >>> from skcalib.uncertainty import RandomEffects
    >>> RandomEffects(1.1, 0.9, 1.3, 0.6, 2.0, 0.2, ("south",), 0.95).left_out
    ('south',)
    """

    estimate: float
    low: float
    high: float
    prediction_low: float
    prediction_high: float
    heterogeneity: float
    left_out: tuple[Any, ...]
    confidence_level: float


@dataclass(frozen=True, repr=False, eq=False)
class SubgroupClinicalCalibration:
    """The measures of a clinical validation in each subgroup, such as each site.

    Printed, it is a table of O:E ratio, intercept and slope. Each measure is a
    :class:`SubgroupIntervals`, of which ``["north"]`` is the interval of a subgroup and ``whole``
    that of all samples together.

    Parameters
    ----------
    calibration_in_the_large : SubgroupIntervals
        The observed frequency minus the mean prediction; 0 is calibrated.

    observed_expected_ratio : SubgroupIntervals
        Observed divided by predicted number of events; 1 is calibrated.

    calibration_intercept : SubgroupIntervals
        What is missing in the log-odds; 0 is calibrated.

    calibration_slope : SubgroupIntervals
        The factor that is missing in the log-odds; 1 is calibrated.

    integrated_calibration_index : SubgroupIntervals
        Mean distance (ICI) between predictions and a smooth curve; 0 is calibrated.

    e50 : SubgroupIntervals
        The median of these distances.

    e90 : SubgroupIntervals
        The 90 % quantile of these distances.

    n_events : ndarray of shape (n_subgroups,)
        Number of samples with an event.

    random_effects : dict of str to RandomEffects
        The mean over subgroups, the heterogeneity and the prediction interval of the first four
        measures, by their names.

    See Also
    --------
    clinical_calibration : The function that returns it.
    skcalib.display.ForestDisplay : Its figure.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import clinical_calibration
    >>> y_true, y_proba = make_temperature_family(900, random_state=0)
    >>> site = np.repeat(["north", "south", "west"], 300)
    >>> result = clinical_calibration(y_true, y_proba, by=site, n_resamples=99, random_state=0)
    >>> round(result.calibration_slope["north"].estimate, 2)
    1.07
    >>> result.random_effects["calibration_slope"].left_out
    ()
    """

    calibration_in_the_large: SubgroupIntervals
    observed_expected_ratio: SubgroupIntervals
    calibration_intercept: SubgroupIntervals
    calibration_slope: SubgroupIntervals
    integrated_calibration_index: SubgroupIntervals
    e50: SubgroupIntervals
    e90: SubgroupIntervals
    n_events: np.ndarray
    random_effects: dict[str, RandomEffects]

    @property
    def tables(self) -> dict[str, SubgroupIntervals]:
        """The seven measures by name."""
        return {name: getattr(self, name) for name in _ROW_TITLES}

    def to_frame(self) -> DataFrame:
        """Return all measures of all subgroups as a data frame of pandas, which must be installed.

        Returns
        -------
        frame : pandas.DataFrame of shape (7 * n_subgroups, 6)
            The frames of :meth:`SubgroupIntervals.to_frame`, one below the other; the first level
            of the row labels is the measure.
        """
        pd = import_package("pandas", "to_frame()", "pandas")
        frames = {name: table.to_frame() for name, table in self.tables.items()}
        return pd.concat(frames, names=["measure"])

    def __repr__(self) -> str:
        tables = {name: self.tables[name] for name in SIGNED_MEASURES[1:]}
        first = self.observed_expected_ratio
        head = [", ".join(printable(str(name)) for name in first.names), "samples", "events"]
        rows = [[*head, *(_ROW_TITLES[name][0] for name in tables)]]
        counts = zip(first.subgroups, first.n_samples, self.n_events, strict=True)
        for k, (label, n, n_events) in enumerate(counts):
            ends = ((table.estimate[k], table.low[k], table.high[k]) for table in tables.values())
            title = format_label(label, first.names)
            rows.append([title, f"{n}", f"{n_events}", *map(_format_interval, ends)])
        n, n_events = f"{first.n_samples.sum()}", f"{self.n_events.sum()}"
        whole = ((table.whole.estimate, *table.whole) for table in tables.values())
        rows.append(["all samples", n, n_events, *map(_format_interval, whole)])
        effects = [self.random_effects[name] for name in tables]
        means = ((effect.estimate, effect.low, effect.high) for effect in effects)
        rows.append(["mean over subgroups", "", "", *map(_format_interval, means)])
        new = ((np.nan, effect.prediction_low, effect.prediction_high) for effect in effects)
        rows.append(["a new subgroup", "", "", *map(_format_interval, new)])
        between = ((effect.heterogeneity, np.nan, np.nan) for effect in effects)
        rows.append(["heterogeneity", "", "", *map(_format_interval, between)])
        lines = format_columns(rows)
        for name, effect in zip(tables, effects, strict=True):
            if effect.left_out:
                listed = "; ".join(format_label(label, first.names) for label in effect.left_out)
                lines.append(f"{_ROW_TITLES[name][0]}, left out: {len(effect.left_out)} ({listed})")
        n_events = int(self.n_events.sum())
        if min(n_events, int(first.n_samples.sum()) - n_events) < _MIN_COMBINED_EVENTS:
            lines.append(f"Mean and new subgroup: less sure below {_MIN_COMBINED_EVENTS} events.")
        return "\n".join(lines)


def _format_interval(ends: tuple[float, ...]) -> str:
    """The estimate, and the ends of the interval around it."""
    estimate, low, high = ("" if np.isnan(end) else f"{end:.3f}" for end in ends)
    return f"{estimate} ({low} to {high})".lstrip() if low else estimate


class _BySubgroup(Protocol[P]):
    """The types of what the function returns, with `by`, with `by_each`, or without both."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, *args: object, by: Columns, **options: object
    ) -> SubgroupClinicalCalibration: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, *args: object, by_each: Columns, **options: object
    ) -> dict[str, SubgroupClinicalCalibration]: ...

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> ClinicalCalibration: ...


def annotate_subgroups(function: Callable[P, Any]) -> _BySubgroup[P]:
    return cast(Any, function)


@annotate_subgroups
@validate_params(LIMITS_CONSTRAINTS)
def clinical_calibration(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    by: Any = None,
    by_each: Columns | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 199,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Any:
    r"""Calibration as clinical validations report it: O:E ratio, slope, ICI and more.

    The numbers that TRIPOD+AI [1]_ and others [2]_ ask for, by the metrics of the same names, for
    two classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
            default=None
        The subgroup of each sample, such as its site: a column, or several, which make their
        crossings. What they have in common is estimated by a random-effects meta-analysis.

    by_each : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
            default=None
        Columns of subgroups to report each by itself, such as sex, and then stage.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take all
        arrays at ``np.repeat(np.arange(n), counts)``.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Groups of samples that are not independent, such as the rows of a patient; at least 10. Two
        columns are crossed groups. For a series, numbers of blocks, such as ``np.arange(n) //
        length``.

    confidence_level : float in (0, 1), default=0.95
        Probability with which each interval is to cover its value.

    n_resamples : int, default=199
        Number of draws of labels for ICI, E50 and E90.

    random_state : int, RandomState instance or None, default=None
        Seed of these draws, for any `n_jobs`.

    n_jobs : int, default=None
        Number of jobs of joblib; see :obj:`joblib.parallel_backend`.

    Returns
    -------
    result : ClinicalCalibration or SubgroupClinicalCalibration
        One :class:`ConfidenceInterval` for each measure, as attributes; printed, a table. With
        `by` one :class:`SubgroupIntervals` for each, and `random_effects`, a
        dict of :class:`RandomEffects`. A subgroup of fewer than 10 samples, or of one outcome, has
        NaN as ends, and a note. With `by_each` a dict of such results by the columns, with
        that of `by`, if there is one, first.

    See Also
    --------
    skcalib.display.ForestDisplay : The forest plot of the result with `by`.
    skcalib.metrics.integrated_calibration_index : The curve, and the distances from it.
    skcalib.hypothesis_tests.CalibrationTest : The p-value.

    Notes
    -----
    **Intervals.** Those of the first four measures have a closed form, without a seed, and hold for
    miscalibrated models. Intercept and slope: estimate ± t standard errors of the sandwich HC3,
    with `groups` CR3, from what one step of Newton's method changes without each sample or group;
    at least those of labels that follow the fitted line. Calibration in the large and the logarithm
    of O:E: the same, for means. The intervals of all but the slope also contain a score interval:
    the shifts of all log-odds at which the observed number of events is t standard deviations from
    the expected one, with labels of a group as dependent as their residuals. The slope is unbounded
    if predictions separate the outcomes.

    ICI, E50 and E90 are positive even for a calibrated model; their intervals are made as in
    :func:`confidence_interval`. See the benchmark "Do the intervals of a clinical validation
    cover?".

    **Between subgroups.** The true measures of subgroups (of O:E its logarithm) are modelled as
    :math:`\mathrm{N}(\mu, \tau^2)` [3]_, in one stage: the likelihood of μ and τ is a product of
    one integral for each subgroup, over the likelihood of its labels. So subgroups without an event
    count as well. That of the intercept is binomial, with the log-odds of the predictions as
    offset; that of O:E a Poisson likelihood, with the variance of a binomial number; that of the
    slope is conditional on the number of events, which says nothing about the slope. Above 100
    events and as many others, or with weights or `groups`, it is that of the estimate and its
    standard error. τ is where the likelihood, integrated over μ, is largest (REML), and μ is that
    of this τ. The intervals of μ and of a new subgroup average over τ, with a half-normal prior of
    scale 1.5 (0.75 for the slope, 0.3 for calibration in the large), as in [4]_: estimates of τ are
    0 too often. They are wide with few subgroups, and need three. See the benchmark for their
    coverage; below 30 events, or 30 others, in total the table says that it is less sure.

    Cost: some 30 times that of O:E, and 3 (100 + `n_resamples`) curves.

    References
    ----------
    .. [1] Collins et al. (2024). TRIPOD+AI statement: updated guidance for reporting clinical
       prediction models that use regression or machine learning methods. BMJ.
       :doi:`10.1136/bmj-2023-078378`
    .. [2] Van Calster, McLernon, van Smeden, Wynants and Steyerberg (2019). Calibration: the
       Achilles heel of predictive analytics. BMC Medicine. :doi:`10.1186/s12916-019-1466-7`
    .. [3] Debray, Damen, Snell et al. (2017). A guide to systematic review and meta-analysis of
       prediction model performance. BMJ. :doi:`10.1136/bmj.i6460`
    .. [4] Röver, Bender, Dias et al. (2021). On weakly informative prior distributions for the
       heterogeneity parameter in Bayesian random-effects meta-analysis. Research Synthesis Methods.
       :doi:`10.1002/jrsm.1475`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import clinical_calibration
    >>> y_true, y_proba = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    >>> clinical_calibration(y_true, y_proba, random_state=0)
                              estimate       low      high  calibrated
    calibration in the large    -0.023    -0.050     0.005           0
    O:E ratio                    0.954     0.901     1.011           1
    calibration intercept       -0.213    -0.471     0.046           0
    calibration slope            0.438     0.378     0.499           1
    ICI                          0.110     0.084     0.137           0
    E50                          0.103     0.062     0.145           0
    E90                          0.160     0.087     0.204           0
    """
    data = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    check_two_classes(data)
    data = with_groups(data, y_true, groups, sample_weight)
    subgroups = check_by_each(by, by_each, np.shape(y_true)[0], sample_weight)
    drawing = {"n_resamples": n_resamples, "random_state": random_state, "n_jobs": n_jobs}
    options = drawing | {"confidence_level": confidence_level}
    whole, _, n_events = _measure_with_intervals(data, options)
    if not subgroups:
        return ClinicalCalibration(**whole, effective_n_events=n_events)
    results = {each.title: _measure_subgroups(data, each, whole, options) for each in subgroups}
    return results[subgroups[0].title] if by_each is None else results


def _measure_subgroups(
    data: ClassData, subgroups: Subgroups, whole: Any, options: dict[str, Any]
) -> SubgroupClinicalCalibration:
    """All measures of each subgroup, and what the subgroups have in common."""
    sites = [data.take(rows) for rows in subgroups.rows()]
    values = np.full((len(sites), len(_ROW_TITLES), 3), np.nan)
    deviation = np.full((len(sites), len(SIGNED_MEASURES)), np.nan)
    notes = [""] * len(sites)
    for k, site in enumerate(sites):
        try:
            intervals, deviation[k], _ = _measure_with_intervals(site, options)
            values[k] = [(interval.estimate, *interval) for interval in intervals.values()]
        except ValueError as error:
            notes[k] = str(error).partition(". ")[0]  # without the remedy
            values[k, :, 0] = _estimates(site)
    tables = {
        name: tabulate_subgroups(subgroups, data.weight, values[:, c], notes, whole[name])
        for c, name in enumerate(_ROW_TITLES)
    }
    level, labels = options["confidence_level"], subgroups.labels
    effects = {
        name: combine_sites(name, sites, labels, values[:, c, 0], deviation[:, c], level)
        for c, name in enumerate(SIGNED_MEASURES)
    }
    n_site_events = np.array([site.label.sum() for site in sites])
    return SubgroupClinicalCalibration(**tables, n_events=n_site_events, random_effects=effects)


def _measure_with_intervals(
    data: ClassData, options: dict[str, Any]
) -> tuple[dict[str, ConfidenceInterval], np.ndarray, float | None]:
    """All intervals, the standard errors of the analysed scale (4,), and the effective events."""
    signed: list[Any] = cross_groups((data,), signed_limits)
    intervals, level = [], options["confidence_level"]
    for measure in signed:
        low, high = measure.interval(level)
        intervals.append(ConfidenceInterval(measure.estimate, low, high, level))
    for quantile in _QUANTILES:
        measured = MeasuredModels((_INDEX,), {"quantile": quantile}, (data,))
        intervals.append(interval_of(measured, **options))
    n_events = None
    if data.groups is not None:  # of two columns that with fewer
        columns = (replace(data, groups=code) for code in split_columns(data.groups)[:2])
        n_events = min(TwoClasses(column).effective_n_events for column in columns)
    deviation = np.array([measure.limits.deviation for measure in signed])
    return dict(zip(_ROW_TITLES, intervals, strict=True)), deviation, n_events


def _estimates(data: ClassData) -> list[float]:
    """The values (7,) of all measures."""
    signed = [SIGNED_METRICS[name].measure(data) for name in SIGNED_MEASURES]
    return [*signed, *distances_from_curve(data, _QUANTILES)]


def combine_sites(
    name: str,
    sites: list[ClassData],
    labels: tuple[Any, ...],
    estimate: np.ndarray,
    deviation: np.ndarray,
    confidence_level: float,
) -> RandomEffects:
    """Random effects of subgroups, with estimates (k,), and standard errors where there are any."""
    is_ratio = name == "observed_expected_ratio"
    with np.errstate(divide="ignore"):  # no events
        estimate = np.log(estimate) if is_ratio else estimate
    grid = _DISTANCES_FROM_IDEAL + (name == "calibration_slope")
    numbers = zip(sites, estimate, deviation, strict=True)
    log_likelihood = np.column_stack([_log_likelihood(name, grid, *site) for site in numbers])
    says_something = np.ptp(log_likelihood, axis=0) > 0
    fit, likely = np.full(6, np.nan), _LIKELY_HETEROGENEITY[name]
    if says_something.sum() >= _MIN_SUBGROUPS:
        tail = (1 - confidence_level) / 2
        fit = fit_random_effects(grid, log_likelihood[:, says_something], likely, tail)
    fit[:5] = np.exp(fit[:5]) if is_ratio else fit[:5]
    left_out = tuple(labels[k] for k in np.flatnonzero(~says_something))
    mean, low, high, new_low, new_high, between = fit.tolist()
    ends = mean, low, high, new_low, new_high
    return RandomEffects(*ends, between, left_out, confidence_level)


def _log_likelihood(
    name: str, grid: np.ndarray, data: ClassData, estimate: float, deviation: float
) -> np.ndarray:
    """Log-likelihoods of the values (G,) of a measure in a subgroup; of O:E, of its logarithm.

    With many events, unequal weights or groups they are those of the estimate, if its standard
    error is known.
    """
    label, logits, columns = data.label, log_odds(data.proba), split_columns(data.groups)[:2]
    size = min(UnitSums(data.weight, code).effective_size for code in columns)
    weight, proba = size * data.weight, expit(logits)  # neither 0 nor 1
    n_events, variance = min(label.sum(), np.sum(1 - label)), weight @ (proba * (1 - proba))
    is_plain = data.groups is None and np.ptp(weight) == 0
    is_exact = is_plain and n_events <= _MAX_EXACT_EVENTS
    if name == "calibration_in_the_large":
        binomial = np.sqrt(variance) / size
        deviation = binomial if is_exact else np.fmax(deviation, binomial)
        is_exact = False
    elif name == "calibration_slope":
        is_exact &= n_events * len(label) <= _MAX_EXACT_SUMS
    if np.isfinite([estimate, deviation]).all() and deviation > 0 and not is_exact:
        return -(((grid - estimate) / deviation) ** 2) / 2
    if name == "calibration_slope":
        is_conditional = is_plain and n_events > 0
        return conditional_log_likelihood(grid, logits, label) if is_conditional else 0 * grid
    if name == "observed_expected_ratio":  # of a Poisson number with the variance of a binomial one
        expected = weight @ proba
        return (weight @ label * grid - expected * np.exp(grid)) * expected / variance
    terms = (label * shift - np.logaddexp(0, logits + shift) for shift in grid)
    return np.array([weight @ term for term in terms])


@validate_params(
    {"results": [list, tuple], "degrees_of_freedom": [Interval(Real, 0, None, closed="right")]}
)
def pool_imputations(
    results: Sequence[Pooled],
    *,
    transformation: Literal["identity", "log", "logit", "error"] = "identity",
    degrees_of_freedom: float = np.inf,
) -> Pooled:
    r"""Pool the results of multiple imputations into one, by Rubin's rules.

    Impute missing values m times, make the predictions and the result with each of the m data sets,
    and pass the m results.

    Parameters
    ----------
    results : list of ConfidenceInterval or of ClinicalCalibration
        At least two results of :func:`confidence_interval`, or of :func:`clinical_calibration`, of
        the same measure and confidence level.

    transformation : {"identity", "log", "logit", "error"}, default="identity"
        To the scale on which the estimates are nearly normal: "log" for ratios, "logit" for numbers
        between 0 and 1, such as the area under the ROC curve; "error" is "identity" with no end
        below 0. The measures of :func:`clinical_calibration` know theirs: "log" for O:E, "error"
        for ICI, E50 and E90, and "identity".

    degrees_of_freedom : float, default=inf
        Those of complete data, such as the number of samples, or of groups, less 2.

    Returns
    -------
    result : ConfidenceInterval or ClinicalCalibration
        The pooled result.

    Raises
    ------
    ValueError
        If the results differ in kind or confidence level, or an end is not finite on the scale.

    See Also
    --------
    confidence_interval : The interval of one data set.
    clinical_calibration : The measures of one data set.

    Notes
    -----
    The estimate is the mean Q of the m estimates. The variance is :math:`T = U + (1 + 1/m) B` [1]_,
    with the variance B of the estimates, and the mean U of the squared distances from the estimates
    to the ends of their intervals, over the square of the quantile of t; U of either end by itself,
    as intervals may be asymmetric. With :math:`\lambda = (1 + 1/m) B / T`, the interval is that of
    t with :math:`1 / (1/\nu_1 + 1/\nu_2)` degrees of freedom, where :math:`\nu_1 = (m - 1) /
    \lambda^2`, and :math:`\nu_2 = \frac{\nu + 1}{\nu + 3} \nu (1 - \lambda)` for the ν of complete
    data [2]_. Cost O(m).

    References
    ----------
    .. [1] Rubin (1987). Multiple Imputation for Nonresponse in Surveys. Wiley.
       :doi:`10.1002/9780470316696`
    .. [2] Barnard and Rubin (1999). Small-sample degrees of freedom with multiple imputation.
       Biometrika. :doi:`10.1093/biomet/86.4.948`

    Examples
    --------
    >>> from skcalib.uncertainty import ConfidenceInterval, pool_imputations
    >>> results = [ConfidenceInterval(slope, slope - 0.2, slope + 0.2, 0.95) for slope in (0.8, 1)]
    >>> pool_imputations(results)
    ConfidenceInterval(estimate=0.9, low=-0.05539, high=1.855, confidence_level=0.95)
    """
    if any(not isinstance(result, ClinicalCalibration) for result in results):
        return _pool(results, transformation, degrees_of_freedom)
    kinds = dict.fromkeys(SIGNED_MEASURES, "identity") | {"observed_expected_ratio": "log"}
    kinds |= dict.fromkeys(("integrated_calibration_index", "e50", "e90"), "error")
    pooled = {
        name: _pool([getattr(result, name) for result in results], kind, degrees_of_freedom)
        for name, kind in kinds.items()
    }
    return cast(Pooled, ClinicalCalibration(**pooled))


def _pool(results: Sequence[Any], transformation: str, degrees: float) -> Any:
    to_scale, back = _TRANSFORMATIONS[transformation]
    are_intervals = all(isinstance(result, ConfidenceInterval) for result in results)
    levels = {result.confidence_level for result in results} if are_intervals else set()
    with np.errstate(all="ignore"):  # refused below
        values = to_scale([(result.estimate, *result) for result in results if levels])
    if len(results) < 2 or len(levels) != 1 or not np.isfinite(values).all():
        raise ValueError(
            "results must be at least two of ConfidenceInterval, or of ClinicalCalibration, of one "
            f"confidence level and finite on the scale {transformation!r}; found {results}. "
            "Pass a list with the result of each imputation."
        )
    share, m = (1 + levels.pop()) / 2, len(results)
    distance = (values[:, 1:] - values[:, :1]) / stats.t.ppf(share, degrees)
    between = (1 + 1 / m) * np.var(values[:, 0], ddof=1)
    total = np.mean(distance**2, axis=0) + between  # (2,)
    with np.errstate(all="ignore"):  # without any variance
        missing = np.nan_to_num(between / total)
        inverse = (1 + 2 / (degrees + 1)) / degrees / (1 - missing)
        inverse = np.nan_to_num(inverse, posinf=np.inf) + missing**2 / (m - 1)
        margin = stats.t.ppf(share, np.maximum(1 / inverse, _MIN_DEGREES)) * np.sqrt(total)
    estimate, low, high = back(values[:, 0].mean() + np.array([0, -margin[0], margin[1]])).tolist()
    return ConfidenceInterval(estimate, low, high, results[0].confidence_level)
