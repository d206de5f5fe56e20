"""Limits of calibration errors, whose terms the data choose, and of differences of two errors.

A calibrated model has a positive error by chance, and near 0 the terms do not show how the error
varies. Outcomes that are drawn from the predictions do.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from .._data import AnyData, MultilabelData
from .._inputs.drawing import evaluate_batches, make_batches
from .._inputs.scikit_learn import RandomState
from .._numerics.dependence import UnitSums
from ..metrics._registry import METRICS, Metric
from ._limits import Changes, DrawnLimits, Hull, ScaledLimits, ScoreLimits, to_root, to_square
from ._losses import mean_limits, possible_outcomes
from ._units import Units, check_finite_values

# The least number of batches of draws that jobs share.
_BATCHES = 32

# Numbers that are held for each draw of an outcome.
_NUMBERS_PER_OUTCOME = 4

# The most rows and numbers on which an error of all possible outcomes is measured. If the cost
# grows with the square of the rows, these are at most twice as many as there are samples.
_MAX_ROWS, _MAX_NUMBERS = 2**20, 2**25

Measure = Callable[[np.ndarray], np.ndarray]  # from outcomes (R, n) to values (R,)


class _ErrorScoreLimits(ScoreLimits):
    """Score limits of an error: the witness of a larger one may point the other way."""

    def ends(self, tail: float) -> tuple[float, float]:
        low, high = super().ends(tail)
        return low, max(high, -low)

    def tails(self, null: float) -> tuple[float, float]:
        less, greater = super().tails(null)
        return max(less, super().tails(-null)[1]), greater


def error_limits(
    measured: Any,
    units: Units,
    n_resamples: int,
    random_state: RandomState,
    n_jobs: int | None = None,
    scale: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> Hull:
    """Limits of the error of one model, or of the difference of the errors of two.

    `measured` holds the metric, its options, and the models. There is no difference in two worlds:
    where each model is right, with outcomes drawn from its own predictions by the same random
    numbers; and where both are equally wrong on opposite sides, with outcomes drawn from either
    model by chance. Where one of the models is right, the difference is known, too: it is that of
    all possible outcomes. The limits are those on a scale of the values.
    """
    metric, models = measured.metrics[0], measured.models
    options = metric.options | measured.options
    values = scale(check_finite_values([measured.values()])[0])
    contrast = np.array([1.0, -1.0])[: len(models)]
    estimate = float(values @ contrast)
    is_shared = measured.shares_outcomes and not any(
        data.is_forecast and data.forecast.is_exchangeable for data in models
    )
    numbers = _NUMBERS_PER_OUTCOME * len(units.weight)
    batches = make_batches(n_resamples, numbers, _BATCHES, check_random_state(random_state))
    worlds = []
    for coupled in zip(*(data.iter_couplings() for data in models), strict=False):
        evaluate = partial(_draw_errors, metric, options, coupled, is_shared)
        errors = evaluate_batches(evaluate, batches, 32.0, "Choose fewer.", n_jobs)
        worlds.append(scale(np.concatenate(errors)))
    noise = max(float(np.var(columns[:, 0])) for columns in worlds)
    has_terms = metric.terms is not None and not options.get("signed")
    terms: list[Any] = [
        cast(Any, metric.terms)(data, **options) if has_terms else None for data in models
    ]
    if any(of_model is None for of_model in terms):
        changes, size = units.jackknife(measured, n_jobs, scale)
        limits: list[Any] = [Changes(estimate, changes @ contrast, size, noise).limits()]
    else:
        by_sample = [of_model.sum_by_sample(len(units.weight)) for of_model in terms]
        limits = [Changes.from_terms(contrast @ by_sample, units, noise).limits()]
    if len(models) == 1:
        limits += _ErrorScoreLimits.find(terms[0], units)
        limits += _root_limits(metric, models[0], options, units, estimate)
        limits += [DrawnLimits(estimate, world[:, 0], is_error=True) for world in worlds]
        return Hull(estimate, limits)
    limits += [DrawnLimits(estimate, column) for columns in worlds for column in columns[:, :2].T]
    if not is_shared:
        return Hull(estimate, limits)
    true = [_true_difference(metric, options, models, law) for law in models]
    shifted = [
        DrawnLimits(estimate, column - difference)
        for columns in worlds
        for column, difference in zip(columns[:, 2:].T, true, strict=True)
        if difference is not None
    ]
    return Hull(estimate, limits, shifted)


def _draw_errors(
    metric: Metric,
    options: dict[str, Any],
    models: tuple[AnyData, ...],
    is_shared: bool,
    size: int,
    seed: int,
) -> np.ndarray:
    """The errors (size, 1) of a model that is right, or the differences of two models, (size, 4).

    The latter are where both are right, where both are equally wrong, where the first one is right,
    and where the second one is; only those where both are right if they share no outcomes.
    """
    measures = [_measure_outcomes(metric, data, options) for data in models]
    generators = [np.random.default_rng(seed) for _ in models]
    pairs = zip(models, generators, strict=True)
    outcomes = [simulate(data, generator, size) for data, generator in pairs]
    right = [measure(outcome) for measure, outcome in zip(measures, outcomes, strict=True)]
    if len(models) == 1:
        return right[0][:, None]
    difference = right[0] - right[1]
    if not is_shared:
        return difference[:, None]
    (a, b), (error_a, error_b) = outcomes, measures
    either = np.where(generators[0].random(a.shape) < 0.5, a, b)
    wrong = error_a(either) - error_b(either)
    return np.column_stack([difference, wrong, right[0] - error_b(a), error_a(b) - right[1]])


def _measure_outcomes(metric: Metric, data: AnyData, options: dict[str, Any]) -> Measure:
    """The function that measures many vectors of outcomes of the data."""
    make = metric.statistic if not options.get("signed") else None
    statistic = make and make(data, **options)
    return statistic or (lambda y: np.array(metric.measure_outcomes(data, y, **options)))


def _root_limits(
    metric: Metric, data: AnyData, options: dict[str, Any], units: Units, estimate: float
) -> list[ScaledLimits]:
    """Return limits of a square, by those of its root: a square is skew where it is small."""
    if metric.root is None:
        return []
    root = METRICS[metric.root]
    terms = cast(Any, root.terms)(data, **{name: options[name] for name in root.options})
    hull = mean_limits(terms, units, _ErrorScoreLimits)
    return [ScaledLimits(estimate, hull, to_square, to_root)]


def simulate(data: AnyData, generator: np.random.Generator, size: int) -> np.ndarray:
    """Outcomes drawn from the predictions, (size, n), or (size, n, L) of labels of a matrix.

    How labels of a row depend on each other is unknown: all follow one number, for the row or its
    group, which makes their average vary most.
    """
    if not isinstance(data, MultilabelData):
        return data.simulate_outcomes(generator, size)
    units = UnitSums(np.asarray(data.weight), data.groups)
    common = generator.random((size, units.number))[:, units.code]
    return (common[:, :, None] < data.proba).astype(np.int32)


def _true_difference(
    metric: Metric, options: dict[str, Any], models: tuple[AnyData, ...], law: AnyData
) -> float | None:
    """The difference where the outcomes follow the predictions of one model, without noise."""
    possible = possible_outcomes(law)
    if possible is None:
        return None
    outcomes, proba = possible
    n, n_outcomes = proba.shape
    width = len(law.forecast._sort_keys()) if law.is_forecast else n_outcomes
    most = min(_MAX_ROWS if metric.cost in ("n", "n log n") else 2 * n, _MAX_NUMBERS // width)
    sample = np.linspace(0, n - 1, min(n, max(1, most // n_outcomes))).astype(int)
    weight = (np.asarray(law.weight)[sample, None] * proba[sample]).ravel()
    is_possible = weight > 0
    rows = np.repeat(sample, n_outcomes)[is_possible]
    outcome = outcomes[sample].ravel()[is_possible]
    weight = weight[is_possible] / weight.sum()
    errors = [
        metric.measure(replace(data.take(rows).with_outcome(outcome), weight=weight), **options)
        for data in models
    ]
    return float(errors[0] - errors[1])
