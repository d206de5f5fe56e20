"""The sections of a report, as far as classes and forecasts have them in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, ClassVar, Generic, NamedTuple

import numpy as np

from .._data import AnyData, Data
from .._inputs.by import Subgroups
from .._inputs.warnings import record_warnings, warn
from .._numerics.dependence import UnitSums
from .._numerics.sorting import codes_by_appearance
from ..hypothesis_tests import SubgroupCalibrationTest
from ..metrics._registry import ALL_METRICS, Metric
from ..metrics._terms import MetricTerms
from ..recalibration._folds import COPIES, assign_folds, count_copies, join_samples
from ..uncertainty._intervals import comparison_of, interval_of
from ..uncertainty._limits import cross_groups
from ..uncertainty._losses import mean_limits, subtract_terms
from ..uncertainty._measured import MeasuredModels
from ..uncertainty._units import Units
from ._findings import Finding, name_ends, say
from ._text import measure_title

LEVEL = 0.05

# A calibration error below this is called small.
SMALL_ERROR = 0.01

# Draws of outcomes for an interval, the same ones for each seed of a report; measures of more
# values of predictions get none.
DRAWING: dict[str, Any] = {"n_resamples": 199, "random_state": 0}
MAX_RESAMPLED_VALUES = 200_000

# A gap, a spread of a class or a sum of residuals is more than chance if it is this many standard
# deviations from 0.
CLEAR_GAP = 2.5

# Fewer than 10 independent samples say nothing about how a measure varies.
MAX_SAMPLE_SHARE = 0.1 + 1e-12

# The verdict names at most this many subgroups, or columns.
_MAX_NAMED = 5

_N_GAIN_FOLDS = 5

Numbers = dict[str, Any]
Intervals = dict[str, tuple[float, float]]
TableRows = list[dict[str, Any]]

PROGRESS_LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar(
    "PROGRESS_LISTENER", default=None
)


def notify_progress(title: str) -> None:
    """Tell the listener, if there is one, which part of the report begins."""
    listener = PROGRESS_LISTENER.get()
    if listener is not None:
        listener(title)


def _mean_interval(data: AnyData, terms: MetricTerms) -> tuple[float, float]:
    limits = cross_groups((data,), lambda models: [mean_limits(terms, Units(models[0]))])
    return limits[0].interval(0.95)


class ReportMeasure(NamedTuple):
    """A metric of some data."""

    name: str
    entry: Metric
    options: dict[str, Any]
    data: Any
    n_values: int  # numbers that the predictions are made of


class Sections(ABC, Generic[Data]):
    """The sections of a report on some data; the subclasses are for classes and for forecasts."""

    data: Any

    # how the verdict speaks of such predictions
    error: ClassVar[str]
    loss: ClassVar[str]
    unknown: ClassVar[str]
    remedy: ClassVar[str]

    @property
    @abstractmethod
    def sides(self) -> str:
        """Return a template on the subgroups with {more} and with {less} than predicted."""

    def __init__(self, data: Data, rng: np.random.RandomState) -> None:
        self.data, self.rng = data, rng

    @abstractmethod
    def measure(self) -> tuple[Numbers, TableRows]:
        """Return scores and measures by name, and the rows of the table of classes."""

    @abstractmethod
    def test(self) -> tuple[Numbers, list[Finding]]:
        """Return the numbers of the tests, of a random part of many samples; and what was found."""

    @abstractmethod
    def residual(self) -> np.ndarray:
        """Return how far outcomes exceed predictions, (n,); of mean 0 if calibrated."""

    @abstractmethod
    def subgroup_test(self) -> tuple[str, dict[str, Any] | None, int, np.ndarray | None]:
        """Return statistic, parameters, the most samples, and a mask of those that come first."""

    @abstractmethod
    def score_terms(self) -> dict[str, MetricTerms]:
        """Return the terms of scores: means of losses, and of hits."""

    @abstractmethod
    def measures(self) -> Iterator[ReportMeasure]:
        """Return the calibration errors of these data."""

    @abstractmethod
    def gain_sample_limits(self) -> tuple[int, int]:
        """Return the fewest samples that say something, and the most that are recalibrated."""

    @abstractmethod
    def losses(self, data: Data, train: Data | None = None) -> np.ndarray:
        """Return the losses (n,) that recalibration should lower; with `train`, those after it."""

    @abstractmethod
    def is_small(self, numbers: Numbers, classes: TableRows) -> bool:
        """True if the miscalibration may not matter, though it is not chance."""

    @abstractmethod
    def audit_data(self) -> tuple[str, list[np.ndarray], dict[str, Any]]:
        """Return the name of the hashed data, their arrays, and settings for the audit trail."""

    @abstractmethod
    def pictures(self, numbers: Numbers, ends: Intervals, rows: TableRows) -> dict[str, str]:
        """Return the figures as SVG by their titles, with numbers, ends and rows of subgroups."""

    def measure_subgroup(self, data: Data) -> Numbers:
        """Return what the report tells of a subgroup beside its error."""
        return {}

    def find_mistake(self) -> Finding | None:
        """Return a message on arguments that must be mistaken, if any are."""
        return None

    def compare_to_prevalence(self, error: float) -> tuple[str, Numbers]:
        """Return words, and their numbers, that compare an error to a low prevalence."""
        return "", {}

    def describe_level(self, numbers: Numbers) -> list[Finding]:
        """Return a sentence if an interval excludes a correct level."""
        return []

    def is_refuted(self) -> bool:
        """True if the data rule out calibration without a test."""
        return False

    def intervals(self, numbers: Numbers) -> Intervals:
        """Return the 95 % confidence intervals by name; none of too few samples."""
        intervals: Intervals = {}
        if inverse_effective_size(self.data) > MAX_SAMPLE_SHARE:
            return intervals
        for name, terms in self.score_terms().items():
            if name in numbers:
                notify_progress(f"finding the interval of the {measure_title(name, numbers)}")
                ends = _mean_interval(self.data, terms)
                low, high = np.clip(ends, 0.0, 1.0 if name == "accuracy" else np.inf).tolist()
                intervals[name] = low, high
        for measure in self.measures():
            if measure.n_values <= MAX_RESAMPLED_VALUES:
                notify_progress(
                    f"finding the interval of the {measure_title(measure.name, numbers)}"
                )
                measured = MeasuredModels((measure.entry,), measure.options, (measure.data,))
                interval = interval_of(measured, **DRAWING)
                intervals[measure.name] = interval.low, interval.high
        return intervals

    def differences(self, other: "Sections", *, shares_outcomes: bool = True) -> Intervals:
        """Return the 95 % intervals of how scores and measures differ from those of another model.

        Both are of the same samples. NaN of too few samples, or of too many values.
        """
        names = [*self.score_terms(), *(entry.name for entry in self.measures())]
        intervals: Intervals = dict.fromkeys(names, (np.nan, np.nan))
        if inverse_effective_size(self.data) > MAX_SAMPLE_SHARE:
            return intervals
        shares_possible = shares_outcomes and not self.data.is_forecast
        for (name, terms), of_other in zip(
            self.score_terms().items(), other.score_terms().values(), strict=True
        ):
            difference = subtract_terms([terms, of_other], shares_possible)
            intervals[name] = _mean_interval(self.data, difference)
        for entry in self.measures():
            if entry.n_values <= MAX_RESAMPLED_VALUES:
                # of all classes, as the models may predict different ones
                pair = MeasuredModels(
                    (entry.entry,) * 2, entry.options, (self.data, other.data), shares_outcomes
                )
                result = comparison_of(pair, **DRAWING)
                intervals[entry.name] = result.low, result.high
        return intervals

    def subgroups(self, subgroups: Subgroups) -> tuple[TableRows, float]:
        """Return rows with metric, interval and p-value of each subgroup, and the joint p-value.

        Of many samples an even part of each subgroup is tested. Subgroups of too few samples have
        an interval of NaN.
        """
        data, metric = self.data, self.error.replace(" ", "_")
        entry = ALL_METRICS[metric]
        residual = self.residual()
        rows: TableRows = []
        named = zip(subgroups.titles, subgroups.phrases, subgroups.rows(), strict=True)
        for title, phrase, members in named:
            subgroup_data, low, high = data.take(members), np.nan, np.nan
            if inverse_effective_size(subgroup_data) <= MAX_SAMPLE_SHARE:
                measured = MeasuredModels((entry,), {}, (subgroup_data,))
                low, high = interval_of(measured, **DRAWING)
            estimate = float(entry.measure(subgroup_data))
            row: dict[str, Any] = {"by": subgroups.title, "subgroup": title, "name": phrase}
            row |= {"n_samples": subgroup_data.n_samples, **self.measure_subgroup(subgroup_data)}
            row |= {"measure": metric, "estimate": estimate, "low": low, "high": high}
            row["deviation"] = standardized_sum(subgroup_data, residual[members])
            rows.append(row)
        statistic, params, most, first = self.subgroup_test()
        tested_rows = subsample_evenly(subgroups.code, most, self.rng, first)
        test = SubgroupCalibrationTest(statistic, metric_params=params, random_state=self.rng)
        test._fit(take_samples(data, tested_rows), subgroups.take(tested_rows))
        p_values, sizes = test.subgroup_p_values_.values(), test.subgroup_sizes_.values()
        for row, p_value, n_tested in zip(rows, p_values, sizes, strict=True):
            row |= {"p_value": p_value, "n_tested": n_tested}
        return rows, test.p_value_

    def gain(self) -> tuple[float, float, float] | None:
        """Return the mean decrease of the loss by recalibration, cross-validated, and its interval.

        None if there are too few samples, or if a loss is infinite.
        """
        data = self.data
        fewest, most = self.gain_sample_limits()
        if min(data.n_samples, most) < fewest:
            return None
        if data.n_samples > most:
            data = data.take(self.rng.permutation(data.n_samples)[:most])
        gain = self.losses(data)
        if not np.isfinite(gain).all():
            return None
        data = join_samples(data, _N_GAIN_FOLDS)
        fold = assign_folds(data, _N_GAIN_FOLDS)
        warned: dict[tuple[str, type[Warning]], None] = {}
        for k in range(fold.max() + 1):
            test, train = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
            loss, record = record_warnings(self.losses, data.take(test), data.take(train))
            gain[test] -= loss
            warned |= dict.fromkeys(record)
        for message, category in warned:
            warn(message, category)
        if not np.isfinite(gain).all():
            return None
        low, high = _mean_interval(data, MetricTerms(data.weight, gain, None, None))
        return float(data.weight @ gain), low, high

    def verdict(
        self,
        numbers: Numbers,
        ends: Intervals,
        rows: TableRows,
        classes: TableRows,
        *,
        recalibrated: bool,
    ) -> list[Finding]:
        """Return the sentence of the verdict, and those that come after the findings."""
        with_ends = numbers | name_ends(ends)
        p_value, n_tests = joint_p_value(numbers), len(test_p_values(numbers))
        with_ends["joint_p_value" if n_tests > 1 else "p_value"] = p_value
        p_text = f"(p {{joint_p_value:p{n_tests}}}" if n_tests > 1 else "(p {p_value:p}"
        p_text += f"{_describe_size(numbers)})"
        if p_value >= LEVEL and not self.is_refuted():
            return [
                say("verdict", f"No evidence of miscalibration {p_text}.", with_ends),
                self._describe_limit(with_ends),
                *self.describe_level(with_ends),
                *self._describe_subgroups(rows, with_ends, is_alone=True),
            ]
        verdict = "Still miscalibrated" if recalibrated else "Miscalibrated"
        if p_value < LEVEL:  # otherwise the data rule out calibration without the test
            verdict = f"{verdict} {p_text}"
        sentences = [say("verdict", f"{verdict}:", with_ends)]
        if_it_matters = ""
        gains = ends.get("gain", (0.0,))[0] > 0
        if not self.is_refuted() and not gains and self.is_small(numbers, classes):
            # the test of moments sees all samples
            n_tested = "n_samples" if "moments_p_value" in numbers else "n_tested"
            title = measure_title(error_name(numbers), numbers)
            text = (
                f"This is small and may not matter: with {{{n_tested}}} samples, a {title} of "
                f"{{{error_name(numbers)}:.2g}} can be detected."
            )
            sentences.append(say("size", text, with_ends))
            if_it_matters = "If it matters, "
        sentences += self._describe_subgroups(rows, with_ends, is_alone=False, gains=gains)
        is_apart = sentences[-1].name == "remedy_of_subgroups"
        if not recalibrated and not is_apart:
            remedy = self.remedy if not if_it_matters else self.remedy[0].lower() + self.remedy[1:]
            sentences.append(say("remedy", f"{if_it_matters}{remedy}"))
        change = "a further recalibration" if recalibrated else "this"
        change = "recalibration of all together" if is_apart else change
        return [*sentences, *self._describe_gain(with_ends, change)]

    def _describe_limit(self, numbers: Numbers) -> Finding:
        """Return a sentence on the error that cannot be ruled out."""
        error = error_name(numbers)
        title = measure_title(error, numbers)
        numbers["effective_size"] = 1 / inverse_effective_size(self.data)
        text = "The effective number of samples is {effective_size:.2g}: too few to say more."
        if f"{error}_high" in numbers:
            beside, share = self.compare_to_prevalence(numbers[f"{error}_high"])
            numbers |= share
            text = f"The {title} may be up to {{{error}_high:.2g}}{beside} (95 % interval)."
        elif inverse_effective_size(self.data) <= MAX_SAMPLE_SHARE:
            text = f"The {title} of all {{n_samples}} samples is {{{error}:.2g}}."
        return say("limit", text, numbers)

    def _describe_gain(self, numbers: Numbers, change: str) -> list[Finding]:
        """Return a sentence on the gain of a change, if it is known."""
        if "gain" not in numbers:
            fewest, most = self.gain_sample_limits()
            return [say("gain", _NO_GAIN)] * (numbers["n_samples"] >= fewest > most)
        where = "In cross-validation"
        if numbers["n_recalibrated"] < numbers["n_samples"]:
            where += " on {n_recalibrated} of the samples"
        result = f"it is not clear that {change} lowers the {self.loss}."
        if numbers["gain_low"] > 0:
            result = f"{change} lowers the {self.loss} by {{gain:.2g}}."
        return [say("gain", f"{where} {result}", numbers)]

    def _describe_subgroups(
        self, rows: TableRows, numbers: Numbers, *, is_alone: bool, gains: bool = False
    ) -> list[Finding]:
        """Return sentences on miscalibrated subgroups, and how to recalibrate these.

        They are named if only the test of subgroups rejects (`is_alone`), or if other subgroups
        pass. If recalibrating all samples together gains, that is the remedy, unless some subgroups
        are clearly too high and others too low.
        """
        significant = [row for row in rows if row["p_value"] < LEVEL]
        sides = {
            side: list_names(
                [row["name"] for row in significant if sign * row["deviation"] > CLEAR_GAP]
            )
            for side, sign in (("more", 1), ("less", -1))
        }
        sentences = []
        if significant and (is_alone or len(significant) < len(rows)):
            names = list_names([row["name"] for row in significant])
            values = numbers | {"n_subgroups": len(rows), "subgroups": names}
            values["n_miscalibrated_subgroups"] = len(significant)
            text = (
                f"{'But the' if is_alone else 'The'} test of subgroups (p {{subgroup_p_value:p}}) "
                "finds miscalibration in {n_miscalibrated_subgroups} of {n_subgroups}: {subgroups}."
            )
            if any(row["low"] <= 0 for row in significant):
                text += " An interval may begin at 0 all the same: trust the p-value."
            sentences.append(say("subgroups", text, values, evidence="subgroup_p_value"))
        if all(sides.values()):
            text = f"Subgroups are wrong on opposite sides: {self.sides}."
            sentences.append(say("opposite_sides", text, sides, evidence="subgroup_p_value"))
        if sentences and (is_alone or not gains or all(sides.values())):
            text = "SubgroupRecalibrator recalibrates each subgroup by itself."
            sentences.append(say("remedy_of_subgroups", text))
        return sentences

    def describe_copies(self) -> list[Finding]:
        """Say that rows seem to be copies of each other."""
        counts = count_copies(join_samples(self.data, _N_GAIN_FOLDS))
        text = f"{COPIES} Until then, p-values are too small and intervals too narrow."
        return [] if counts is None else [say("copies", text, counts)]


_NO_GAIN = (
    "How much recalibration gains is not shown: with so many classes that would take too long. "
    "Compare the log loss before and after it on other samples."
)


def _describe_size(numbers: Numbers) -> str:
    """Return how many samples were tested, if not all."""
    size = "quantile_n_tested" if "quantile_n_tested" in numbers else "n_tested"
    if numbers.get(size, numbers["n_samples"]) >= numbers["n_samples"]:
        return ""
    moments = ", for bias, spread and skewness by all" if "moments_p_value" in numbers else ""
    return f", by {{{size}}} of {{n_samples}} samples{moments}"


def standardized_sum(data: AnyData, residual: np.ndarray) -> float:
    """Return the sum of residuals over its standard deviation, for independent groups if any."""
    sums = UnitSums(data.weight, data.groups).add(data.weight * residual)
    deviation = np.sqrt(sums @ sums)
    return float(sums.sum() / deviation) if deviation > 0 else 0.0


def list_names(names: list[str]) -> str:
    n_more = len(names) - _MAX_NAMED
    return "; ".join(names[:_MAX_NAMED]) + (f" and {n_more} more" if n_more > 0 else "")


def inverse_effective_size(data: AnyData) -> float:
    """Return 1 / the effective number of samples, or of groups if there are any."""
    return 1 / UnitSums(data.weight, data.groups).effective_size


def take_samples(data: AnyData, rows: np.ndarray) -> Any:
    """Return the samples of some rows, with new codes of the groups that they are in."""
    subset = data.take(rows)
    if subset.groups is None:
        return subset
    return replace(subset, groups=codes_by_appearance(subset.groups))


def joint_p_value(numbers: Numbers) -> float:
    """Return the p-value of the test; of several tests of forecasts, the smallest times them."""
    p_values = test_p_values(numbers)
    return min(1.0, len(p_values) * min(p_values))


def test_p_values(numbers: Numbers) -> list[float]:
    """Return the p-values of the tests of all samples."""
    names = ("p_value", "quantile_p_value", "moments_p_value")
    return [numbers[key] for key in names if key in numbers]


def error_name(numbers: Numbers) -> str:
    """Return the name of the measure that the verdict is about."""
    if "quantile_calibration_error" in numbers:
        return "quantile_calibration_error"
    name = "smooth_calibration_error"
    return name if name in numbers else f"{name}_confidence"


def subsample_evenly(
    code: np.ndarray, most: int, rng: np.random.RandomState, first: np.ndarray | None
) -> np.ndarray:
    """Return random rows, the same number of each subgroup unless it is smaller, but at least one.

    Rows that come first (a mask) are taken before the others.
    """
    n, n_subgroups = len(code), int(code.max()) + 1
    if n <= most:
        return np.arange(n)
    order = rng.permutation(n)
    last = np.zeros(n, dtype=bool) if first is None else ~first[order]
    order = order[np.lexsort((last, code[order]))]
    sizes = np.bincount(code)
    position = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the subgroup
    return order[np.argsort(position, kind="stable")][: max(most, n_subgroups)]
