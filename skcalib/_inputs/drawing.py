"""Outcomes simulated from the predictions, and the batches in which they are drawn."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np
from array_api_compat import array_namespace
from joblib import effective_n_jobs
from scipy.special import ndtr
from sklearn.utils import check_random_state

from .._numerics.array_api import Array, asarray_like, contiguous, doubles, take_rows, zeros_on
from .._numerics.dependence import UnitSums, split_columns, sum_similar
from .._numerics.pit import MIN_PIT, normal_scores
from .._numerics.sorting import codes_by_appearance
from .arrays import format_value
from .scikit_learn import Parallel, RandomState, delay
from .warnings import check_memory, warn_if_slow

Generator = np.random.Generator | np.random.RandomState

# Numbers in the residuals of one batch of draws (32 MB).
_MAX_BATCH_RESIDUALS = 2**22

# From this many batches of draws on, the first one is timed.
_MIN_TIMED_BATCHES = 32

# Uniform numbers that are drawn at once: they stay in the cache.
_UNIFORM_BLOCK_SIZE = 2**16

# With more classes, the class of a uniform number is found by bisection.
_MAX_COMPARED_CLASSES = 64


class Batch(NamedTuple):
    size: int
    seed: int


def draw_seed(random_state: RandomState) -> int:
    """A seed that the random state draws."""
    try:
        generator = check_random_state(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be an integer from 0, a RandomState or None; found "
            f"{format_value(random_state)}. Pass 0 for the same numbers in every call."
        ) from None
    return int(generator.randint(2**31 - 1))


def make_batches(
    n_draws: int, numbers_per_draw: int, least: int, random_state: np.random.RandomState
) -> list[Batch]:
    """Return batches of nearly equal size: at least `least` of them, if there are as many draws.

    Each has a seed of its own, so that the draws do not depend on which job makes them.
    """
    n_draws = int(n_draws)  # a narrow integer of NumPy would overflow
    largest = max(1, _MAX_BATCH_RESIDUALS // numbers_per_draw)
    n_batches = min(n_draws, max(least, -(-n_draws // largest)))
    small, n_larger = divmod(n_draws, n_batches)
    seeds = random_state.randint(2**31 - 1, size=n_batches).tolist()
    sizes = n_larger * [small + 1] + (n_batches - n_larger) * [small]
    return list(map(Batch, sizes, seeds))


def evaluate_batches(
    evaluate: Callable,
    batches: list[Batch],
    size: float,
    remedy: str,
    n_jobs: int | None,
    **parallel_options: Any,
) -> list[Any]:
    """Return the values of all batches, which jobs share; `size` is the bytes of one draw.

    Refuse draws that do not fit into memory; warn if they take long.
    """
    n_draws, values = sum(batch.size for batch in batches), []
    check_memory(size * n_draws, f"n_resamples={n_draws}", remedy)
    if len(batches) >= _MIN_TIMED_BATCHES:  # the first one tells how long the others take
        start = perf_counter()
        values.append(evaluate(*batches[0]))
        seconds = (perf_counter() - start) * len(batches) / effective_n_jobs(n_jobs)
        warn_if_slow(seconds, f"n_resamples={n_draws}", remedy)
    tasks = (delay(evaluate)(*batch) for batch in batches[len(values) :])
    return values + Parallel(n_jobs=n_jobs, **parallel_options)(tasks)


def draw_from_counts(count: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
    """Draw n samples without replacement from cells that hold `count` (m,); return cells (n,)."""
    total = int(count.sum())
    if n < total:
        positions = generator.choice(total, n, replace=False)
        return np.searchsorted(np.cumsum(count), positions, side="right")
    shuffled = np.repeat(np.arange(len(count), dtype=np.int32), count)
    generator.shuffle(shuffled)
    return shuffled


def draw_labels(proba: Array, n_draws: int, generator: Generator) -> Array:
    """Draw labels y_i ~ Cat(proba_i), independent given the predictions.

    Parameters: proba (n,) for the second of two classes, or (n, K). Returns (n_draws, n) of int32.
    A class of probability 0 is never drawn.
    """
    check_memory(4.0 * n_draws * proba.shape[0], f"n_resamples={n_draws}", "Choose fewer.")
    if proba.ndim == 2:
        return contiguous(draw_by_sample(proba, n_draws, generator).T)
    label = np.empty((n_draws, len(proba)), dtype=np.int32)
    n_block_draws = max(1, _UNIFORM_BLOCK_SIZE // max(1, len(proba)))
    for draw in range(0, n_draws, n_block_draws):
        for sample in range(0, len(proba), _UNIFORM_BLOCK_SIZE):
            samples = slice(sample, sample + _UNIFORM_BLOCK_SIZE)
            chunk = label[draw : draw + n_block_draws, samples]
            np.less(generator.random(chunk.shape), proba[samples], out=chunk)
    return label


def draw_labels_in_groups(
    proba: np.ndarray,
    label: np.ndarray,
    groups: np.ndarray,
    weight: np.ndarray,
    n_draws: int,
    generator: np.random.Generator,
    *,
    by_rank: bool = False,
) -> np.ndarray:
    """Draw labels y_i ~ Cat(proba_i), (n_draws, n), that depend on each other within groups.

    Each group is drawn from one uniform number with the probability of
    `estimate_group_dependence`, otherwise each of its samples from its own. The number decides the
    class; with `by_rank`, it decides whether the likeliest class comes, the second, and so on: so
    samples of a group are wrong together, whichever classes they are said to have. Parameters:
    proba (n, K), the observed labels and the weights (n,), and groups (n,), or (n, 2) of two
    columns that cross each other.
    """
    codes = [codes_by_appearance(code) for code in cast(Any, split_columns(groups)[:2])]
    ranked, observed, outcome = proba, proba, label
    if by_rank:
        classes = np.argsort(-proba, axis=1, kind="stable")  # the likeliest one first
        ranked = np.take_along_axis(proba, classes, axis=1)
        observed = np.column_stack([ranked[:, 0], 1 - ranked[:, 0]])
        outcome = (label != classes[:, 0]).astype(np.int32)
    dependences = [estimate_group_dependence(observed, outcome, code, weight) for code in codes]
    position = _draw_coupled(ranked, codes, dependences, n_draws, generator)
    if by_rank:
        position = np.take_along_axis(classes, position, axis=1).astype(np.int32)
    return contiguous(position.T)


def _draw_coupled(
    proba: np.ndarray,
    codes: list[np.ndarray],
    dependences: list[np.ndarray],
    n_draws: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Draw labels (n, n_draws). A group shares one number with a probability `dependences` (G,).

    Of two columns, the first one decides where groups of the second do not. Two samples of a group
    of the first one are both left to it with the probability (1 − d)², if d is the mean dependence
    of the second column, so it is drawn that much more often.
    """
    if len(codes) > 1:
        left = 1 - dependences[1][codes[1]].mean()
        dependences = [dependences[0] / max(left**2, np.finfo(np.float64).tiny), dependences[1]]
    shared = []
    for code, dependence in zip(codes, dependences, strict=True):
        common = generator.random((len(dependence), n_draws))
        common[generator.random(common.shape) >= dependence[:, None]] = np.nan
        shared.append((common, code))
    return draw_by_sample(proba, n_draws, generator, shared=shared)


def estimate_group_dependence(
    proba: np.ndarray, label: np.ndarray, code: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Estimated dependence of labels (n,) within groups, (G,): 0 if independent, 1 if identical.

    It is estimated by the numbers of distinct labels, in all groups of at least half and at most
    twice the weight: so the few large groups, or heavy ones, are not outvoted by many small ones.
    It lies between what is expected of independent labels, 0, and of labels that all follow one
    number, 1. Two groups of the same weight whose labels follow one number are added: so the
    dependence is 1 where no event tells.
    """
    size = np.bincount(code, weight) / weight.mean()  # the number of samples, if all weigh the same
    vote = size**2 / np.bincount(code)
    if_independent, if_identical, observed = _count_distinct_labels(proba, label, code)
    changes = np.stack([if_independent - observed, if_independent - if_identical])
    return np.clip(np.divide(*sum_similar(size, vote * changes, vote)), 0, 1)


def _count_distinct_labels(proba: np.ndarray, label: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Numbers of distinct labels in groups, (3, G): if independent, if identical, and observed.

    Groups in which several surprises are expected are divided into runs of similar confidence with
    one each. The probabilities (n, K) of each class are multiplied by its observed over its
    expected number, so that errors of the model do not count.
    """
    order = np.lexsort((proba.max(axis=1), code))
    label, code, n_classes = label[order], code[order], proba.shape[1]
    frequency, expected = np.bincount(label, minlength=n_classes), proba.sum(axis=0)
    ratio = np.divide(frequency, expected, out=np.zeros(n_classes), where=expected > 0)
    chance = proba[order] * ratio
    total = chance.sum(axis=1, keepdims=True)
    np.divide(chance, total, out=chance, where=total > 0)
    surprises = np.cumsum(1 - chance.max(axis=1))
    is_first = np.diff(code, prepend=-1) > 0
    surprises -= np.maximum.accumulate(np.where(is_first, surprises, 0.0))  # within the group
    start = np.flatnonzero(is_first | (np.diff(np.floor(surprises), prepend=0) > 0))
    run = np.repeat(np.arange(len(start)), np.diff(start, append=len(code)))
    with np.errstate(divide="ignore"):  # of what is certain
        if_independent = -np.expm1(np.add.reduceat(np.log1p(-chance), start)).sum(axis=1)
    if_identical = np.maximum.reduceat(chance, start).sum(axis=1)
    observed = np.bincount(np.unique(run * n_classes + label) // n_classes)
    counts = if_independent, if_identical, observed
    return np.stack([np.bincount(code[start], count) for count in counts])


def draw_levels_in_groups(
    pit_bounds: tuple[np.ndarray, np.ndarray],
    groups: np.ndarray,
    weight: np.ndarray,
    n_draws: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Draw uniform numbers (n_draws, n) that depend on each other within groups (n,) or (n, 2).

    Their normal scores are √ρ c + √(1 − ρ) e, with a standard normal number c for each group and e
    for each sample. ρ is the correlation that the normal scores of observed PITs show in groups.
    Two columns that cross each other have a c and a ρ each. Of PITs that are intervals only the
    mean score is known, which varies less: its correlation is multiplied by (the mean of squared
    scores) / (that of squared mean scores). Weights sum to 1.
    """
    score, excess, _ = normal_scores(*pit_bounds)
    scale = (weight @ score**2) / np.sqrt(1 + np.sqrt(2) * (weight @ excess))
    columns = [UnitSums(weight, code) for code in split_columns(groups)[:2]]
    shares = np.array([u.dependence(weight * score, weight * scale)[u.code] for u in columns])
    shares /= np.maximum(shares.sum(axis=0), 1.0)
    level = np.zeros((n_draws, len(score)))
    for units, share in zip(columns, shares, strict=True):
        level += generator.standard_normal((n_draws, units.number))[:, units.code] * np.sqrt(share)
    level += generator.standard_normal(level.shape) * np.sqrt(1 - shares.sum(axis=0))
    return np.clip(ndtr(level), MIN_PIT, 1 - MIN_PIT)


def draw_by_sample(
    proba: Array,
    n_draws: int,
    generator: Generator,
    samples: Array | None = None,
    *,
    shared: Sequence[tuple[np.ndarray, np.ndarray]] = (),
) -> Array:
    """Draw the labels of `draw_labels`, one row for each sample, or for `samples` in their order.

    A uniform number u is drawn for each label. Of K classes, the label is the first class k with
    p_1 + … + p_k > u. Samples may be drawn in parts, one after another: the labels are the same.
    Each pair of `shared` holds numbers (codes, n_draws) for all samples of a code, unless NaN, and
    codes (n,). Of several numbers for a sample the last one counts.
    """
    if not isinstance(proba, np.ndarray):
        proba = proba if samples is None else take_rows(proba, samples)
        return _draw_on_device(proba, n_draws, generator)
    n = len(proba) if samples is None else len(samples)
    label = np.empty((n, n_draws), dtype=np.int32)
    per_chunk = max(1, _UNIFORM_BLOCK_SIZE // max(n_draws, proba[0].size))
    for start in range(0, n, per_chunk):
        rows = slice(start, start + per_chunk)
        chunk_proba = proba[rows if samples is None else samples[rows]]
        uniform = generator.random(label[rows].shape)
        for common, code in shared:
            group_uniform = common[code[rows]]
            np.copyto(uniform, group_uniform, where=~np.isnan(group_uniform))
        if chunk_proba.ndim == 1:
            np.less(uniform, chunk_proba[:, None], out=label[rows])
            continue
        bounds = np.cumsum(chunk_proba, axis=1, dtype=np.float64)
        bounds /= bounds[:, -1:]  # so that the last possible class reaches exactly 1
        if bounds.shape[1] > _MAX_COMPARED_CLASSES:
            for out, cumulative, numbers in zip(label[rows], bounds, uniform, strict=True):
                out[:] = cumulative.searchsorted(numbers, side="right")
        else:
            label[rows] = _count_below(bounds[:, :-1], uniform)
    return label


def _draw_on_device(proba: Array, n_draws: int, generator: Generator) -> Array:
    """Draw labels where the probabilities (n, K) live; NumPy draws the uniform numbers."""
    xp = array_namespace(proba)
    bounds = xp.cumulative_sum(doubles(proba), axis=1)
    bounds /= bounds[:, -1:]
    uniform = asarray_like(bounds, generator.random((proba.shape[0], n_draws)))
    label = zeros_on(proba, uniform.shape, xp.int64)
    for k in range(proba.shape[1] - 1):
        label += xp.astype(uniform >= bounds[:, k][:, None], xp.int64)
    return label


def _count_below(bounds: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Count the bounds (m, C) that each number (m, R) reaches; C must be less than 256."""
    count = np.zeros(uniform.shape, dtype=np.uint8)
    reached = np.empty(uniform.shape, dtype=bool)
    for bound in bounds.T:
        np.greater_equal(uniform, bound[:, None], out=reached)
        count += reached.view(np.uint8)
    return count
