"""The sections of a report on probabilities of classes."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._data import ClassData
from .._inputs.by import printable
from .._numerics.dependence import UnitSums
from .._numerics.logits import PROPER_LOSSES
from .._statistics.residuals import BinnedResiduals, ClasswiseScoreTest, ScoreExcess
from ..hypothesis_tests import CalibrationTest
from ..metrics._distance import compute_distance_bounds
from ..metrics._registry import METRICS
from ..metrics._terms import MetricTerms
from ..recalibration import AutoRecalibrator
from ..recalibration._folds import fit_with_units
from ..uncertainty._losses import class_terms
from . import _sections, _two_classes
from ._findings import Finding, distinct_format, say
from ._pictures import render_class_pictures
from ._sections import CLEAR_GAP, LEVEL, Intervals, Numbers, ReportMeasure, Sections, TableRows

# Seconds that a test may take. Drawing a label takes the first, and the sign of a sample in a group
# and its second label the second; each class takes a little more.
_MAX_TEST_SECONDS = 20.0
_SECONDS_PER_LABEL, _SECONDS_PER_SIGN = 2e-8, 5e-8
_SECONDS_PER_CLASS = 1.5e-10

# The gain of recalibration is found on at most this many samples, divided by 10 + K for K classes,
# which takes about five seconds. Fewer samples of each class say nothing.
_MOST_RECALIBRATED, _FEWEST_OF_A_CLASS = 120_000, 10

# A calibration error is small only if it is below this part of the share of the rarer outcome:
# 0.002 is much for a disease that one in a thousand has.
_SMALL_ERROR_SHARE = 0.1

# Nor if, in a range of predictions, the observed and the predicted share differ by more than this
# part of them.
_SMALL_GAP_SHARE = 0.2

# With fewer events, or fewer samples without one, the level is told before the spread.
_EVENTS_FOR_SPREAD = 10

# The prevalence of events that are rare: the report tells the error as a part of it.
_RARE = 0.05

# Ranges of confidence among which the worst one is named.
_N_RANGES = 8

# Sums of residuals that are smaller are rounding.
_GAP_ATOL = 1e-12


class ClassSections(Sections):
    """The sections of a report on `ClassData`."""

    error = "smooth calibration error"
    loss = "log loss"
    unknown = "no kind of error is clear by itself, only all of them together"
    remedy = (
        "Recalibrate on samples unseen in training: RecalibratedClassifier takes a classifier, "
        "AutoRecalibrator predictions."
    )
    data: ClassData

    @property
    def sides(self) -> str:
        if self.data.is_binary:
            return "events are more frequent than predicted in {more}, less frequent in {less}"
        return "predictions are right more often than predicted in {more}, less often in {less}"

    @cached_property
    def _binary(self) -> ClassData:
        """Return the predictions, or for more than two classes those of the predicted class."""
        return self.data if self.data.is_binary else self.data.confidence()

    @cached_property
    def _confident(self) -> ClassData:
        """Return whether the predicted class is right, and its probability."""
        return self.data.with_proba(self.data.matrix).confidence()

    @cached_property
    def _proba_of_label(self) -> np.ndarray:
        """Return the probability of each label, (n,), of rows that sum to 1."""
        label, proba = self.data.label, self.data.proba
        if self.data.is_binary:
            return np.where(label == 1, proba, 1 - proba)
        return proba[np.arange(len(label)), label] / proba.sum(axis=1, dtype=np.float64)

    @property
    def _is_impossible(self) -> np.ndarray:
        """True where the label of a sample had probability 0, (n,)."""
        return self._proba_of_label == 0

    def measure(self) -> tuple[Numbers, TableRows]:
        data = self.data
        numbers = {
            "n_samples": len(data.label),
            "n_classes": len(data.classes),
            **(_two_classes.two_class_numbers(data) if data.is_binary else {}),
        }
        if not data.is_binary:
            numbers["mean_confidence"] = data.mean(self._confident.proba)
            numbers["area_under_roc_curve"] = _two_classes.mean_area_under_roc_curve(data)
        numbers |= {name: data.mean(losses) for name, losses in self.scores().items()}
        # of measures of classes, those of all classes
        values = {
            entry.name: entry.entry.measure(entry.data, average=None, **entry.options)
            for entry in self.measures()
        }
        numbers |= {name: float(np.mean(value)) for name, value in values.items()}
        suffix = "" if data.is_binary else "_confidence"
        ends = [f"distance_{end}_bound{suffix}" for end in ("lower", "upper")]
        numbers |= zip(ends, compute_distance_bounds(self._binary), strict=True)
        errors = values.get("smooth_calibration_error_classwise")
        return numbers, [] if errors is None else self._class_rows(errors)

    def scores(self) -> dict[str, np.ndarray]:
        """Return hits and losses (n,); the loss of a label of probability 0 is finite."""
        label_proba = np.maximum(self._proba_of_label, np.finfo(np.float64).eps)
        return {
            "accuracy": self._confident.label,
            "brier_score_loss": PROPER_LOSSES["brier"](self.data.proba, self.data.label),
            "log_loss": -np.log(label_proba),
        }

    def score_terms(self) -> dict[str, MetricTerms]:
        scores = self.scores().items()
        return {name: class_terms(name, self.data, values) for name, values in scores}

    def measures(self) -> Iterator[ReportMeasure]:
        """Yield each measure, for more than two classes with both reductions."""
        kinds = ["confidence"] if self.data.is_binary else ["confidence", "classwise"]
        for entry in METRICS.values():
            for kind in kinds if entry.in_report else ():
                problem = self._binary if kind == "confidence" else self.data
                name = entry.name if self.data.is_binary else f"{entry.name}_{kind}"
                yield ReportMeasure(name, entry, {"multi_class": kind}, problem, problem.proba.size)
        if self.data.is_binary:
            entry = METRICS["integrated_calibration_index"]
            n_values = _two_classes.CLINICAL_COST_FACTOR * self.data.proba.size
            yield ReportMeasure(entry.name, entry, {}, self.data, n_values)

    def intervals(self, numbers: Numbers) -> Intervals:
        return super().intervals(numbers) | _two_classes.clinical_intervals(self.data, numbers)

    def differences(self, other: Sections, *, shares_outcomes: bool = True) -> Intervals:
        intervals = super().differences(other, shares_outcomes=shares_outcomes)
        intervals["area_under_roc_curve"] = np.nan, np.nan  # of two classes only
        return intervals | _two_classes.find_clinical_intervals(self.data, other.data)

    def _class_rows(self, errors: np.ndarray) -> TableRows:
        """Return the calibration of each class against all others, the worst ones first."""
        names, problems = self.data.classes.tolist(), self.data.iter_one_vs_rest()
        rows = [
            {
                "class": name,
                "observed_share": share,
                "mean_prediction": float(problem.weight @ problem.proba),
                "smooth_calibration_error": error,
            }
            for name, (share, problem), error in zip(names, problems, errors.tolist(), strict=True)
        ]
        return sorted(rows, key=lambda row: -row["smooth_calibration_error"])

    def residual(self) -> np.ndarray:
        return self._binary.label - self._binary.proba

    def test(self) -> tuple[Numbers, list[Finding]]:
        """Test a random part, in which every sample is whose label had probability 0.

        A calibrated model has none, so that does not change the size of the test.
        """
        data, n = self.data, self.data.n_samples
        n_tested = min(n, max_tested_samples(data))
        if n_tested < n:
            rows = self.rng.permutation(n)
            last = ~self._is_impossible[rows]
            data = _sections.take_samples(data, rows[np.argsort(last, kind="stable")][:n_tested])
        test = CalibrationTest(random_state=self.rng)._fit(data)
        numbers: Numbers = {"p_value": test.p_value_}
        numbers |= {f"p_value_{name}": p for name, p in test.adjusted_p_values_.items()}
        numbers["n_tested"] = n_tested
        results = class_findings(test, data, self.data)
        count = int(np.count_nonzero(self._is_impossible))
        if count:
            counts = {"n_certain_and_wrong": count, "n_samples": n}
            text = (
                "{n_certain_and_wrong} of {n_samples} outcomes had probability 0 (perhaps "
                "rounded): the model was certain that they would not occur, and wrong"
            )
            results.insert(0, say("certain_and_wrong", text, counts))
        return numbers, results

    def subgroup_test(self) -> tuple[str, dict[str, Any] | None, int, np.ndarray | None]:
        return "auto", None, max_tested_samples(self.data) // 2, self._is_impossible

    def gain_sample_limits(self) -> tuple[int, int]:
        n_classes = len(self.data.classes)
        return _FEWEST_OF_A_CLASS * n_classes, _MOST_RECALIBRATED // (10 + n_classes)

    def losses(self, data: ClassData, train: ClassData | None = None) -> np.ndarray:
        proba = data.proba
        if train is not None:
            model = AutoRecalibrator(labels=np.arange(len(train.classes)))
            weight = train.weight / train.weight.max()
            units = {"groups": train.groups, "blocks": train.blocks}
            fit_with_units(model, train.proba, train.label, sample_weight=weight, **units)
            proba = model.predict_proba(proba)
            proba = proba[:, 1] if data.is_binary else proba
        return PROPER_LOSSES["log_loss"](proba, data.label)

    def is_small(self, numbers: Numbers, classes: TableRows) -> bool:
        share = float(self._binary.weight @ self._binary.label)
        errors = [(share, numbers[_sections.error_name(numbers)])]
        errors += [(row["observed_share"], row["smooth_calibration_error"]) for row in classes]
        for each in _find_ranges(self._binary):
            rarer = min(each.expected, 1 - each.expected)
            if each.is_clear and each.gap > _SMALL_GAP_SHARE * rarer:
                return False
        return all(
            error < min(_sections.SMALL_ERROR, _SMALL_ERROR_SHARE * min(share, 1 - share))
            for share, error in errors
        )

    def compare_to_prevalence(self, error: float) -> tuple[str, Numbers]:
        share = float(self.data.weight @ self.data.label)
        if not (self.data.is_binary and 0 < share < _RARE):
            return "", {}
        name = "error_high_over_prevalence"
        return f", {{{name}:percent}} of the prevalence", {name: error / share}

    def describe_level(self, numbers: Numbers) -> list[Finding]:
        low, high = (numbers.get(f"observed_expected_ratio_{end}", 1.0) for end in ("low", "high"))
        if low <= 1 <= high:
            return []
        frequency, nearest = ("more", low) if low > 1 else ("less", high)
        digits = distinct_format(nearest, 1.0, 3)
        text = (
            f"Events may be {frequency} frequent than predicted: the 95 % interval of the O:E "
            f"ratio, {{observed_expected_ratio_low:{digits}}} to "
            f"{{observed_expected_ratio_high:{digits}}}, excludes 1."
        )
        return [say("level", text, numbers)]

    def is_refuted(self) -> bool:
        return bool(self._is_impossible.any())

    def find_mistake(self) -> Finding | None:
        find = _two_classes.find_reversed_ranking if self.data.is_binary else _find_permuted_columns
        return find(self.data)

    def audit_data(self) -> tuple[str, list[np.ndarray], dict[str, Any]]:
        data = self.data
        settings = {"classes": data.classes.tolist()}
        return "labels, probabilities and weights", [data.label, data.proba, data.weight], settings

    def measure_subgroup(self, data: ClassData) -> Numbers:
        return _two_classes.measure_event_ratio(data) if data.is_binary else {}

    def pictures(self, numbers: Numbers, ends: Intervals, rows: TableRows) -> dict[str, str]:
        return render_class_pictures(self.data, numbers, ends, rows)


def max_tested_samples(data: ClassData) -> int:
    """Return the number of samples that the default test handles in `_MAX_TEST_SECONDS`."""
    signs = 0.0 if data.groups is None else _SECONDS_PER_SIGN
    per_label = _SECONDS_PER_LABEL + signs + len(data.classes) * _SECONDS_PER_CLASS
    return int(_MAX_TEST_SECONDS / (per_label * CalibrationTest().n_resamples))


def class_findings(test: CalibrationTest, tested: ClassData, data: ClassData) -> list[Finding]:
    """Return a sentence for each significant component of the omnibus test, without a full stop.

    The components, the class and the direction of its spread are of the tested samples; numbers are
    of all data.
    """
    evidence = [name for name, p in test.adjusted_p_values_.items() if p <= LEVEL]
    significant = evidence
    scores = ClasswiseScoreTest(tested)
    sums = scores.sum_by_class(tested.label[None])[:, 0]  # (2, K)
    if np.isinf(test.component_statistics_.get("log_loss", 0.0)):
        # the sentence on outcomes of probability 0 says it
        significant = [name for name in significant if name != "log_loss"]
    elif "log_loss" in significant and _is_level_dominant(tested, scores, sums):
        components = [name for name in significant if name in ("skce", "local")]
        significant = ["level_and_spread", *components]
    words = {
        "log_loss": lambda: [_describe_confidence(data)],
        "level_and_spread": lambda: _describe_worst_class(data, sums, sums**2 / scores.scale),
        "local": lambda: [_describe_worst_range(data)],
    }
    results = []
    for name in significant:
        for finding in words[name]() if name in words else ():
            finding.evidence = f"p_value_{name if name in evidence else 'log_loss'}"
            results.append(finding)
    if significant == ["skce"]:
        text = "outcomes differ from predictions in a way that no class and no range shows clearly"
        results.append(say("whole_prediction", text, evidence="p_value_skce"))
    return results


def _is_level_dominant(data: ClassData, scores: ClasswiseScoreTest, sums: np.ndarray) -> bool:
    """True if classes that are predicted too often or too seldom explain the excess of log loss.

    With the log-odds z of each class, the sum of their excesses is that of (p − y) z. It is divided
    into the parts of the mean of z and of the deviations from it. Few events say more on the level.
    """
    squares = sums**2 / scores.scale
    if data.is_binary and np.bincount(data.label, minlength=2).min() < _EVENTS_FOR_SPREAD:
        return bool(squares[0].max() > squares[1].max())
    return bool(abs(sums[0] @ scores.centre) > abs(sums[1].sum()))


def _describe_confidence(data: ClassData) -> Finding:
    excess = float(ScoreExcess(data, "log_loss")(data.label[None])[0])
    kind, direction = ("overconfident", "higher") if excess > 0 else ("underconfident", "lower")
    text = (
        f"the predictions are {kind}: their log loss is {{log_loss_excess:|.2g}} {direction} than "
        "they imply"
    )
    return say("confidence", text, {"log_loss_excess": excess})


def _describe_worst_class(data: ClassData, sums: np.ndarray, squares: np.ndarray) -> list[Finding]:
    """Describe the spread or the level of a class, whichever is clearer.

    For two classes the level comes after the spread if it is clear, too. The spread is left out if
    predictions were rounded to 0 or 1, as their log-odds are unknown.
    """
    worst = int(np.argmax(squares.sum(axis=0)))
    is_spread = squares[1, worst] > squares[0, worst]
    kinds = [1] if is_spread and not _two_classes.is_rounded(data.proba) else []
    if not is_spread or (data.is_binary and squares[0, 0] > _two_classes.CLEAR_DEVIATION**2):
        kinds.append(0)
    return [_describe_class(data, kind, sums[kind], squares[kind]) for kind in kinds]


def _describe_class(data: ClassData, kind: int, sums: np.ndarray, squares: np.ndarray) -> Finding:
    """Describe the level (0) or the spread (1) of the class whose standardized sum is largest."""
    worst = int(np.argmax(squares))
    k = 1 if data.is_binary else worst
    values = {"class": printable(str(data.classes[k])), "n_classes": len(data.classes)}
    suffix, subject, choice = "", "probabilities of class {class}", ""
    if not data.is_binary:
        suffix, subject = "_of_class", f"{subject}, the clearest of {{n_classes}} classes,"
        choice = f"the class of the largest standardized {'spread' if kind else 'level'}"
    if kind == 0:
        observed, expected = data.mean(data.label == k), data.mean(data.matrix[:, k])
        values |= {f"mean_prediction{suffix}": expected, f"prevalence{suffix}": observed}
        digits = distinct_format(expected, observed, 3)
        level = "high" if expected > observed else "low"
        text = (
            f"{subject} are too {level} on average: {{mean_prediction{suffix}:{digits}}} predicted"
            f", {{prevalence{suffix}:{digits}}} observed"
        )
        return say("level", text, values, choice=choice)
    wrong = "too extreme" if sums[worst] < 0 else "not extreme enough"
    text = f"{subject} are {wrong}"
    agree = (np.sign(sums) == np.sign(sums[worst])) & (squares > CLEAR_GAP**2)
    if not data.is_binary and agree.all():
        text = f"probabilities of all classes are {wrong}, most clearly of class {{class}}"
    return say("spread", text, values, choice=choice)


class _Range(NamedTuple):
    """Predictions of similar size, and how often the event occurred."""

    low: float
    high: float
    expected: float
    observed: float
    distance: float  # of both, in standard deviations

    @property
    def gap(self) -> float:
        return abs(self.observed - self.expected)

    @property
    def is_clear(self) -> bool:
        return self.distance > CLEAR_GAP


def _find_ranges(binary: ClassData) -> list[_Range]:
    """Return ranges of predictions: clear gaps first, the largest first; then the clearest."""
    proba, hit = binary.proba, binary.label
    cells = BinnedResiduals(proba, binary.weight, binary.squares, hit, _N_RANGES)
    gaps = cells.bin_hits(hit[None])[0]
    deviation = np.sqrt(cells.variance)
    certain = np.where(np.abs(gaps) > _GAP_ATOL, np.inf, 0.0)  # of predictions of 0 or 1
    distance = np.divide(np.abs(gaps), deviation, out=certain, where=deviation > 0)
    ranges = []
    for k, first in enumerate(cells.start):
        rows = slice(first, [*cells.start, len(proba)][k + 1])
        observed = np.average(cells.hit[rows], weights=cells.weight[rows])  # exactly 0 of no events
        ends = cells.proba[rows].min(), cells.proba[rows].max()
        means = cells.expected[k] / cells.mass[k], observed
        ranges.append(_Range(*map(float, (*ends, *means, distance[k]))))
    return sorted(ranges, key=lambda each: (-round(each.gap, 12) * each.is_clear, -each.distance))


def _describe_worst_range(data: ClassData) -> Finding:
    worst = _find_ranges(data if data.is_binary else data.confidence())[0]
    quantity = "probabilities" if data.is_binary else "confidences"
    numbers = {"gap_from": worst.low, "gap_to": worst.high}
    numbers |= {"gap_predicted": worst.expected, "gap_observed": worst.observed}
    where = "from {gap_from:.2g} to {gap_to:.2g}"
    if f"{worst.low:.2g}" == f"{worst.high:.2g}":
        where = "of about {gap_from:.2g}"
    digits = distinct_format(worst.expected, worst.observed, 2)
    which = "largest clear" if worst.is_clear else "clearest"
    text = (
        f"the {which} gap is at {quantity} {where}: {{gap_predicted:{digits}}} predicted, "
        f"{{gap_observed:{digits}}} observed"
    )
    choice = (
        f"of {_N_RANGES} ranges, the largest gap of those beyond {CLEAR_GAP} standard deviations, "
        "else the gap of most standard deviations"
    )
    return say("gap", text, numbers, choice=choice)


def _find_permuted_columns(data: ClassData) -> Finding | None:
    """Return a message if some columns clearly belong to each other's classes.

    The samples of each of these classes have their highest probability in the column of another
    one of them more often than in their own.
    """
    n_classes, label, predicted = len(data.classes), data.label, np.argmax(data.proba, axis=1)
    mass = np.bincount(label * n_classes + predicted, data.weight, n_classes**2)
    highest = np.argmax(mass.reshape(n_classes, n_classes), axis=1)
    terms = data.weight * (1.0 * (predicted == highest[label]) - (predicted == label))
    unit = UnitSums(data.weight, data.groups).code
    keys, code = np.unique(unit * n_classes + label, return_inverse=True)  # of a unit and a class
    sums = np.bincount(code, terms)
    excess, squares = (np.bincount(keys % n_classes, sums**power, n_classes) for power in (1, 2))
    permuted = np.flatnonzero(excess > _two_classes.CLEAR_DEVIATION * np.sqrt(squares))
    if len(permuted) == 0 or (np.sort(highest[permuted]) != permuted).any():
        return None
    names = [printable(str(name)) for name in data.classes]
    pairs = [f"for class {names[k]} that of {names[highest[k]]}" for k in permuted]
    text = (
        "The columns of the probabilities are in another order than the classes: the column that "
        "is highest most often is {columns}. Check `labels` and the order of the columns before "
        "anything else."
    )
    return say("mistake", text, {"columns": _sections.list_names(pairs)})
