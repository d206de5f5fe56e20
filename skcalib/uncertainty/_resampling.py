"""Jackknife and subsamples of any measure, and the limits that follow from them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from time import perf_counter
from typing import Any, Protocol, Self

import numpy as np
from scipy import stats

from .._data import AnyData, ClassData, ForecastData, MultilabelData
from .._inputs.drawing import evaluate_batches, make_batches
from .._inputs.scikit_learn import Parallel, delayed
from .._inputs.warnings import warn_if_slow
from .._numerics.sorting import codes_by_appearance
from .._statistics.base import TIE_RTOL
from ..lenses import Multilabel

# Samples in a subsample, in units of √n: a small part of all, but enough for 15 bins if n is 100.
_SUBSAMPLE = 3

# The effective size of a subsample, as a part of that of all samples, counts as at most this.
_MAX_SUBSAMPLE_RATIO = 0.8

# Numbers of samples that miss a whole number by less are that number.
_SIZE_ATOL = 1e-6

# The number of halves of the samples in which a difference of errors must have the same sign.
_N_HALVES = 100

# The number of parts of which the jackknife leaves out one at a time.
_N_JACKKNIFE_BLOCKS = 100

# Draws after which the remaining time is estimated.
_N_TIMED_DRAWS = 100

# Bytes of memory for each number that is known of a subsample.
_BYTES_PER_RESAMPLE = 100.0

# Jobs share at least `_BATCHES` batches of subsamples, and batches of ten larger parts.
_BATCHES, _PARTS_PER_BATCH = 64, 10

# Fewer samples say nothing about how the estimate varies.
_MIN_UNITS = 10

# If fewer predictions are wrong, or right, the samples do not show how their number varies. Labels
# are then changed (`rare_event_labels`) until a number of events as small as the observed one has
# one of these probabilities.
MIN_EVENTS = 25
_TAILS = np.array([0.3, 0.1, 0.05, 0.025, 0.01, 0.005, 1e-3, 1e-4, 1e-6, 1e-9])

# Stop drawing once this many drawn errors exceed the observed one: it is due to chance.
_LARGER = 20


class Samples(Protocol):
    """Data, or the measures of models of the same data: what is resampled."""

    def take(self, rows: np.ndarray) -> Self: ...
    @property
    def with_outcome(self) -> Callable[..., Self]: ...


# Values (C,) of each of many data, which can be taken by rows and with other outcomes.
Measure = Callable[[Iterable[Any]], Iterable[list[float]]]


@dataclass(frozen=True)
class Limits:
    """Limits of the true value, by Student's t, by subsamples and by moved labels if there are any.

    The interval is the hull of all, and a p-value the largest one of all. So a value lies outside
    of the interval if and only if its p-value is small.
    """

    estimate: float
    deviation: float  # the standard error of the estimate, by the jackknife; infinite if unknown
    degrees: float  # of freedom of Student's t
    pivots: np.ndarray  # (B,), the true values at which the subsamples deviate like the estimate
    # tails (S,), which fall, and the values with labels that are moved so far
    moved_values: Sequence[tuple[np.ndarray, np.ndarray]] = ()
    # p-values of the one-sided hypotheses that the value is 0; 0 if they are not computed
    chance: float = 0.0
    chance_below: float = 0.0

    def interval(
        self, confidence_level: float, alternative: str = "two-sided"
    ) -> tuple[float, float]:
        if not np.isfinite(self.deviation):
            return -np.inf, np.inf
        tail = (1 - confidence_level) / (2 if alternative == "two-sided" else 1)
        margin = stats.t.isf(tail, self.degrees) * self.deviation
        low, high = self.estimate - margin, self.estimate + margin
        if len(self.pivots):
            # for these order statistics, (1 + #{more extreme}) / (1 + B) equals the tail
            quantiles = np.quantile(self.pivots, [tail, 1 - tail], method="weibull")
            low, high = min(low, quantiles[0]), max(high, quantiles[1])
        for tails, values in self.moved_values:
            reached = [*values[tails >= tail], np.interp(-tail, -tails, values)]
            low, high = min(low, *reached), max(high, *reached)
        if self.chance > tail:
            low = min(low, 0.0)
        if self.chance_below > tail:
            high = max(high, 0.0)
        return (
            -np.inf if alternative == "less" else float(low),
            np.inf if alternative == "greater" else float(high),
        )

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """The p-value of the hypothesis that the true value is `null`."""
        if alternative == "two-sided":
            return min(1.0, 2 * min(self.p_value(null, side) for side in ("less", "greater")))
        sign = 1 if alternative == "greater" else -1
        deviation = max(self.deviation, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):
            score = sign * (self.estimate - null) / deviation
        p_values = [float(stats.t.sf(score, self.degrees))]
        if len(self.pivots):
            n_more_extreme = int(np.sum(sign * self.pivots <= sign * null))
            p_values.append((1 + n_more_extreme) / (1 + len(self.pivots)))
        p_values += [
            _first_tail(tails, sign * (values - null)) for tails, values in self.moved_values
        ]
        if null == 0:
            p_values.append(self.chance if alternative == "greater" else self.chance_below)
        return max(p_values)


@dataclass(frozen=True)
class RootLimits:
    """Limits of a root whose square is estimated without bias, and clipped if it is negative.

    They are those of the square: its estimate varies where the root is clipped, too.
    """

    estimate: float
    square: Limits

    def interval(
        self, confidence_level: float, alternative: str = "two-sided"
    ) -> tuple[float, float]:
        ends = np.array(self.square.interval(confidence_level, alternative))
        low, high = np.copysign(np.sqrt(np.abs(ends)), ends).tolist()
        return min(low, self.estimate), max(high, self.estimate)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """The p-value of the hypothesis that the true value is `null`."""
        return self.square.p_value(null * abs(null), alternative)


def _first_tail(tails: np.ndarray, distance: np.ndarray) -> float:
    """The tail (S,) at which the distance (S,) is 0 or less first; 0 if it is nowhere."""
    step = int(np.argmax(distance <= 0))
    if step == 0:
        return float(distance[0] <= 0)
    return float(np.interp(0, distance[[step, step - 1]], tails[[step, step - 1]]))


@dataclass(frozen=True)
class Resamples:
    """C values: of all samples, of subsamples, and without parts of the samples."""

    values: np.ndarray  # (C,)
    subsamples: np.ndarray  # (B, C)
    shrinkage: np.ndarray  # (B,), by what factor a deviation shrinks from a subsample to all
    jackknife: np.ndarray  # (G, C)
    degrees: float
    moved_values: list[tuple[np.ndarray, np.ndarray]]  # tails (S,), values (S, C) of moved labels
    chance: np.ndarray  # (C,)
    rate: float = 1 / 2  # the shrinkage is this power of the ratio of the sizes

    def limits(self, contrast: list[float]) -> Limits:
        """The limits of the sum of the values, multiplied by these numbers (C,)."""
        estimate = float(self.values @ contrast)
        pivots = (estimate - self.shrinkage * (self.subsamples @ contrast)) / (1 - self.shrinkage)
        deviation = float(jackknife_deviation(self.jackknife @ contrast))
        moved_values = [(tails, values @ contrast) for tails, values in self.moved_values]
        chance = float(self.chance @ contrast)
        return Limits(estimate, deviation, self.degrees, pivots, moved_values, chance)

    def squared_limits(self) -> Limits:
        """The limits of the square of the first value, with its sign.

        Where the square is less than its noise, by chance the jackknife may see nearly no variance.
        That of subsamples shows the noise.
        """
        squares = replace(
            self,
            values=self.values * np.abs(self.values),
            shrinkage=self.shrinkage**2,
            subsamples=self.subsamples * np.abs(self.subsamples),
            jackknife=self.jackknife * np.abs(self.jackknife),
            moved_values=[(tails, values * np.abs(values)) for tails, values in self.moved_values],
        )
        limits = squares.limits([1.0])
        if not len(self.subsamples):
            return limits
        noise = np.std(squares.shrinkage * squares.subsamples[:, 0])
        return replace(limits, deviation=float(np.hypot(limits.deviation, noise)))

    def error_difference_interval(
        self, difference: Limits, confidence_level: float, alternative: str = "two-sided"
    ) -> tuple[float, float]:
        """The interval of the difference of two errors, with ends moved as their biases may differ.

        An error T, as a convex functional, has at n samples at most the s-fold bias E T_b - T of a
        subsample, with the shrinkage s, and T is at least 0 and the lower end of its interval. A
        bias that falls like 1/n is r / (1 - r) (E T_b - E T_n), with the ratio r of the sizes; it
        seldom falls faster. No end moves by more than the errors differ in a subsample, and one
        that excludes 0 stays.
        """
        low, high = difference.interval(confidence_level, alternative)
        if not len(self.subsamples) or not np.isfinite(difference.deviation):
            return low, high
        tail = (1 - confidence_level) / (2 if alternative == "two-sided" else 1)
        shrinkage = self.shrinkage[:, None]
        ratio = shrinkage ** (1 / self.rate)
        errors = [self.limits(row).interval(1 - 2 * tail) for row in np.eye(2).tolist()]
        least = np.maximum(np.array(errors)[:, 0], 0.0)
        upper = np.maximum(np.mean(shrinkage * (self.subsamples - least), axis=0), 0.0)
        deviations = ratio / (1 - ratio) * (self.subsamples - self.values)
        lower = np.maximum(np.mean(deviations, axis=0), 0.0)
        largest = np.max(np.abs(self.subsamples @ [1.0, -1.0]))
        up, down = np.clip(upper[::-1] - lower, 0.0, largest)
        margin = stats.t.isf(tail, difference.degrees) * difference.deviation
        if high >= 0:
            high = max(high, float(difference.estimate + margin + up))
        if low <= 0:
            low = min(low, float(difference.estimate - margin - down))
        return low, high


def jackknife_deviation(jackknife: np.ndarray) -> np.ndarray:
    """Standard deviations (C,) of estimates, from their values (G, C) without one of the groups."""
    return np.sqrt((len(jackknife) - 1) * np.var(jackknife, axis=0))


class Units:
    """The units that are drawn and left out: groups of samples, or samples if there are none."""

    def __init__(self, data: AnyData, name: str = "y_true") -> None:
        self.weight, self.groups = data.weight, data.groups
        n = len(self.weight)
        self.code = np.arange(n) if self.groups is None else codes_by_appearance(self.groups)
        self.number = int(self.code.max()) + 1
        self.effective_size = self.effective_size_of(slice(None))
        size = _SUBSAMPLE * self.number / np.sqrt(self.effective_size)
        self.n_drawn = min(int(np.ceil(size - _SIZE_ATOL)), self.number // 2)
        check_enough_to_resample(self, name)

    def effective_size_of(self, rows: np.ndarray | slice) -> float:
        """(Σ W)² / Σ W² of the weights W of the groups, or samples, in these rows."""
        total = self.weight[rows]
        if self.groups is not None:
            total = np.bincount(self.code[rows], total)
        return float(total.sum() ** 2 / (total @ total))

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """The samples of random units."""
        units = rng.choice(self.number, self.n_drawn, replace=False)
        if self.number == len(self.code):
            return units
        is_drawn = np.zeros(self.number, dtype=bool)
        is_drawn[units] = True
        return np.flatnonzero(is_drawn[self.code])

    def leave_one_out_means(
        self, values: np.ndarray, losses: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """The means (U, C) of losses (n, C) without each unit, and the degrees of freedom."""
        share = np.bincount(self.code, self.weight)
        total = [np.bincount(self.code, self.weight * loss) for loss in losses.T]
        return (values - np.column_stack(total)) / (1 - share[:, None]), _degrees(share)

    def leave_block_out_means(
        self, measure_each: Measure, data: Samples, rng: np.random.RandomState, n_jobs: int | None
    ) -> tuple[np.ndarray, float]:
        """The values (G, C) without each of random parts of the units, and the degrees."""
        n_parts = min(self.number, _N_JACKKNIFE_BLOCKS)
        block_of_sample = (rng.permutation(self.number) % n_parts)[self.code]
        masks = (block_of_sample != k for k in range(n_parts))
        values = _measure_parts(measure_each, data, masks, n_jobs)
        return np.array(values), _degrees(np.bincount(block_of_sample, self.weight))

    def halves(self, measure_each: Measure, data: Samples, n_jobs: int | None) -> np.ndarray:
        """The values (H, C) of complementary halves of the units, the same in every call."""
        rng = np.random.default_rng(0)
        firsts = (
            (rng.permutation(self.number) < self.number // 2)[self.code]
            for _ in range(_N_HALVES // 2)
        )
        masks = (mask for is_first in firsts for mask in (is_first, ~is_first))
        return check_finite_values(_measure_parts(measure_each, data, masks, n_jobs))

    def subsamples(
        self, measure_each: Measure, data: Samples, size: int, seed: int
    ) -> list[list[float]]:
        """The values (C,) of random units, and behind them their effective number."""
        rng = np.random.default_rng(seed)
        samples = [self.draw(rng) for _ in range(size)]
        values = measure_each(map(data.take, samples))
        pairs = zip(values, samples, strict=True)
        return [[*value, self.effective_size_of(rows)] for value, rows in pairs]


def _measure_parts(
    measure_each: Measure, data: Samples, masks: Iterator[np.ndarray], n_jobs: int | None
) -> list[list[float]]:
    """The values (P, C) of the samples in each of many masks (n,), which jobs share."""
    batches = iter(lambda: list(islice(masks, _PARTS_PER_BATCH)), [])
    values = Parallel(n_jobs=n_jobs)(
        delayed(_values_of_parts)(measure_each, data, batch) for batch in batches
    )
    return list(chain.from_iterable(values))


def _values_of_parts(
    measure_each: Measure, data: Samples, masks: list[np.ndarray]
) -> list[list[float]]:
    return list(measure_each(data.take(np.flatnonzero(mask)) for mask in masks))


def _degrees(share: np.ndarray) -> float:
    """Degrees of freedom of Student's t, for the weights of the parts that are left out."""
    return float(1 / (share @ share)) - 1


def resample(
    measure_each: Measure,
    data: Samples,
    units: Units,
    values: np.ndarray,
    *,
    n_resamples: int,
    rng: np.random.RandomState,
    n_jobs: int | None = None,
    rate: float = 1 / 2,
    losses: np.ndarray | None = None,
    models: Sequence[AnyData] = (),
    is_error: bool = False,
) -> Resamples:
    """The values (C,) of all data, and those of subsamples, of the jackknife and of moved labels.

    Estimates for a calibrated model fall like n^-rate. If losses (n, C) are given, whose means the
    values are, the jackknife leaves out single units. Where the labels of models are moved, it is
    tested, too, whether an error of the first one may be due to chance.
    """
    if losses is None:
        without, degrees = units.leave_block_out_means(measure_each, data, rng, n_jobs)
    else:
        without, degrees = units.leave_one_out_means(values, losses)
    subsamples = np.empty((0, len(values) + 1))
    if n_resamples:
        batches = make_batches(n_resamples, 1, _BATCHES, rng)
        evaluate, size = (
            partial(units.subsamples, measure_each, data),
            _BYTES_PER_RESAMPLE * (len(values) + 1),
        )
        batch_values = evaluate_batches(evaluate, batches, size, "Choose fewer.", n_jobs)
        subsamples = check_finite_values([row for batch in batch_values for row in batch])
    shrinkage = np.minimum(subsamples[:, -1] / units.effective_size, _MAX_SUBSAMPLE_RATIO) ** rate
    moved_values = []
    for k, model in enumerate(models):
        for labels, tails in rare_event_labels(model, units):
            steps = measure_each(data.with_outcome(row, k) for row in labels)
            moved_values.append((np.append(1.0, tails), check_finite_values([values, *steps])))
    chance = np.zeros(len(values))
    if moved_values and is_error:
        chance = _calibration_p_values(measure_each, data, values, models[0], n_resamples, rng)
    return Resamples(
        values,
        subsamples[:, :-1],
        shrinkage,
        check_finite_values(without),
        degrees,
        moved_values,
        chance,
        rate,
    )


def _calibration_p_values(
    measure_each: Measure,
    data: Samples,
    values: np.ndarray,
    model: Any,
    n_resamples: int,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Return the probability of errors (C,) as large if labels are drawn from the predictions.

    It is 1 for groups and for indicator matrices, as it is not known how their labels depend on
    each other. After 20 larger ones the rest is not drawn, which leaves the p-value valid.
    """
    if model.groups is not None or model.outcome.ndim > 1:
        return np.ones(len(values))
    generator, n_larger = np.random.default_rng(rng.randint(2**31 - 1)), np.zeros(len(values))
    start = perf_counter()
    for n_drawn in range(0, n_resamples, _LARGER):
        size = min(_LARGER, n_resamples - n_drawn)
        outcomes = (model.simulate_outcomes(generator, 1)[0] for _ in range(size))
        null_values = np.array(list(measure_each(map(data.with_outcome, outcomes))))
        counts = n_larger + np.cumsum(null_values >= values * (1 - TIE_RTOL), axis=0)
        is_enough = (counts >= _LARGER).all(axis=1)
        if is_enough.any():
            last = int(np.argmax(is_enough))
            return counts[last] / (n_drawn + last + 1)
        n_larger = counts[-1]
        if n_drawn + size == _N_TIMED_DRAWS:
            seconds = (perf_counter() - start) * n_resamples / _N_TIMED_DRAWS
            warn_if_slow(seconds, f"n_resamples={n_resamples}", "Choose fewer.")
    return (1 + n_larger) / (1 + n_resamples)


def with_halves(difference: Limits, halves: np.ndarray) -> Limits:
    """The limits of a difference of errors, with p-values from its values (H,) of halves.

    A half deviates from all samples as these do from the whole distribution. If two models are
    wrong on opposite sides by less than the noise, chance decides whose error is larger: the
    jackknife sees no variance then, but some halves decide otherwise.
    """
    centred = difference.estimate + halves - np.median(halves)
    n_crossed = np.array([np.sum(centred <= 0), np.sum(centred >= 0)])
    p_values = np.where(n_crossed > 0, (1 + n_crossed) / (1 + len(halves)), 0.0).tolist()
    return replace(difference, chance=p_values[0], chance_below=p_values[1])


def rare_event_labels(data: AnyData, units: Units) -> list[tuple[np.ndarray, np.ndarray]]:
    """Labels (S, n) as they may be if what was seen rarely, or never, was seen so by chance.

    With them the probabilities (S,), which fall, of seeing no more than was seen.

    Rare may be wrong predictions, or right ones. Both are made more frequent, as the predictions
    would have them; with two classes those of each predicted class alone, as errors of both would
    cancel. Wrong ones get the second most probable class. The probabilities are those that the
    bound of Clopper and Pearson inverts. Of weighted samples the effective number counts, and of
    groups that of those in which it was seen.
    """
    if isinstance(data, ForecastData):
        return []
    if isinstance(data, MultilabelData):  # one label at a time, the others stay
        vectors = []
        for k, (*_, problem) in enumerate(data.iter_problems(Multilabel())):
            for column, tails in rare_event_labels(problem, units):
                matrices = np.repeat(data.label[None], len(column), axis=0)
                matrices[:, :, k] = column
                vectors.append((matrices, tails))
        return vectors
    data = data.to_numpy()
    proba, rows = (data.matrix if data.is_binary else data.proba), np.arange(len(data.weight))
    predicted = np.argmax(proba, axis=1)
    is_right = data.label == predicted
    if all(
        mask.any() and units.effective_size_of(mask) >= MIN_EVENTS for mask in (is_right, ~is_right)
    ):
        return []
    other_proba = np.where(np.arange(proba.shape[1]) == predicted[:, None], -1, proba)
    labels = (np.argmax(other_proba, axis=1), ~is_right), (predicted, is_right)
    label_vectors = []
    for in_class in (
        [predicted == k for k in np.unique(predicted)] if data.is_binary else [rows >= 0]
    ):
        for label, is_seen in labels:
            rare, frequent = np.flatnonzero(in_class & is_seen), np.flatnonzero(in_class & ~is_seen)
            if len(frequent):
                label_vectors.append(_moves(data, units, rare, frequent, label, proba[rows, label]))
    return label_vectors


def _moves(
    data: ClassData,
    units: Units,
    rare: np.ndarray,
    frequent: np.ndarray,
    label: np.ndarray,
    proba: np.ndarray,
) -> tuple[Any, ...]:
    """More and more of the rest get this label, where its probability is high."""
    weight = data.weight / (data.weight[rare].sum() + data.weight[frequent].sum())
    count = units.effective_size_of(rare) if len(rare) else 0.0
    share = weight[rare].sum()
    size = count / share if count else units.effective_size_of(frequent)
    law = stats.beta(count + 1, max(size - count, _SIZE_ATOL))  # of the frequencies not rejected
    numbers = np.ceil((law.isf(_TAILS) - share) / weight[frequent].mean() - _SIZE_ATOL)
    numbers = np.unique(np.clip(numbers, 1, len(frequent)).astype(int))
    labels = np.tile(data.label, (len(numbers), 1))
    frequent = frequent[np.argsort(-proba[frequent], kind="stable")]
    for row, number in zip(labels, numbers.tolist(), strict=True):
        passed = np.cumsum(_shares_out_of(number, proba[frequent]))
        changed = frequent[np.searchsorted(passed, np.arange(number) + 0.5)]
        row[changed] = label[changed]
    reached = share + (labels != data.label) @ weight
    return labels, np.minimum.accumulate(law.sf(reached))


def _shares_out_of(number: int, proba: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1] that sum to this one, proportional to falling probabilities up to 1."""
    proba = proba.astype(np.float64) + np.finfo(np.float64).eps
    ahead = np.arange(len(proba))  # have 1
    factor = (number - ahead) / np.cumsum(proba[::-1])[::-1]
    first = np.argmax(factor * proba <= 1 + _SIZE_ATOL)
    return np.minimum(factor[first] * proba, 1.0)


def check_enough_to_resample(units: Units, name: str) -> None:
    """Refuse too few samples, or groups, to learn from parts of them how an estimate varies."""
    n_samples, fewest = len(units.weight), _MIN_UNITS
    if n_samples < fewest:
        raise ValueError(
            f"{name} must hold at least {fewest} samples of positive weight; found "
            f"{n_samples}. So few samples say nothing about how the metric varies: "
            "collect more."
        )
    if units.number < fewest:
        raise ValueError(
            f"groups must name at least {fewest} groups of samples with positive weight; found "
            f"{units.number}. So few groups say nothing about how the metric varies: collect "
            "more, or number shorter blocks of a series, as numpy.arange(n) // length does."
        )
    if units.effective_size < fewest - _SIZE_ATOL:
        kind = "samples" if units.groups is None else "groups"
        cause = "sample_weight" if units.groups is None else "groups and sample_weight"
        raise ValueError(
            f"{cause} must leave an effective number of {kind}, (Σ W)² / Σ W² of their weights W, "
            f"of at least {fewest}; found {units.effective_size:.3g} of {units.number}. "
            f"A few {kind} outweigh all others: collect more, or limit the largest weights."
        )


def check_finite_values(results: list | np.ndarray) -> np.ndarray:
    """The values (R, C) of a metric, which must be finite numbers."""
    values = np.asarray(results)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"metric must return one number; found values of shape {values.shape[2:]} and type "
            f"{values.dtype}. With more than two classes choose an average; or wrap the metric in "
            "a function that returns a float."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "metric must be finite for every part of the samples; found "
            f"{np.sum(~np.isfinite(values))} of {values.size} value(s) that are not. If it fails "
            "where a class does not occur among the labels, let it take an argument `labels`, in "
            "which it gets the classes."
        )
    return values.astype(np.float64)
