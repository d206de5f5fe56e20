"""The policy for which expected and realised losses can differ most."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from .sorting import cumulate

# Starts are made from at most this many classes, the most frequent ones. With more classes, no
# pairs are moved.
_MAX_STARTS = 6

# Sweeps over all directions.
_MAX_SWEEPS = 10

# Values that differ by less are tied, so that the choice does not depend on rounding.
_POLICY_VALUE_ATOL = 1e-12

# The search ends after a sweep that gains less.
_MIN_GAIN = 1e-9

# Multiples of directions are clipped to this: points that only a larger one would move stay.
_MAX_MULTIPLE = 1e9

# Values (R,), and policies (R, A, K).
ValuesAndPolicies = tuple[np.ndarray, np.ndarray]


def worst_policies(
    proba: np.ndarray, weight: np.ndarray, labels: np.ndarray, n_actions: int
) -> ValuesAndPolicies:
    """The best policies for the residuals w_i (e_{y_i} − p_i) of R vectors of labels (R, n)."""
    points, level = np.unique(proba, axis=0, return_inverse=True)
    order = np.argsort(level.ravel(), kind="stable")  # NumPy 2.0 gives levels a second axis
    starts = np.searchsorted(level.ravel()[order], np.arange(len(points)))
    residuals = np.eye(proba.shape[1])[labels[:, order]] - proba[order]
    mass = np.add.reduceat(weight[order, None] * residuals, starts, axis=1)
    return best_policies(points, mass, n_actions)


def best_policies(points: np.ndarray, mass: np.ndarray, n_actions: int) -> ValuesAndPolicies:
    """The largest Σ_a ‖Σ_{i: δ(p_i) = a} m_i‖ over policies δ(p) = argmax_a θ_a · p.

    Parameters: distinct predictions (m, K), R times their residual mass (R, m, K). Returns the
    values (R,) and the θ (R, A, K) that attain them. Exact for two classes; for more, a value that
    is attained, and that no move tried makes larger.
    """
    if n_actions == 1:
        return np.linalg.norm(mass.sum(axis=1), axis=1), np.zeros((len(mass), 1, points.shape[1]))
    find = _best_intervals if points.shape[1] == 2 else _search_policies
    return find(points, mass, n_actions)


def best_actions(points: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """argmax_a θ_a · p for policies (…, A, K) and points (m, K), (…, m)."""
    return np.argmax(points @ np.swapaxes(policy, -1, -2), axis=-1)


def _best_intervals(points: np.ndarray, mass: np.ndarray, n_actions: int) -> ValuesAndPolicies:
    """`best_policies` of two classes: a dynamic programme over the ends of intervals.

    For two classes ‖m‖ = √2 |m_2|, and |x| = max(x, −x), so that the best place at which the last
    interval begins is a running maximum, for each of the two signs.
    """
    order = np.argsort(points[:, 1])
    class_proba, n_draws = points[order, 1], len(mass)
    total = cumulate(mass[:, order, 1])
    sign = np.array([1.0, -1.0])[:, None, None]
    value, begins = np.abs(total), []
    for _ in range(n_actions - 1):
        before = value - sign * total  # (2, R, m + 1)
        largest = np.maximum.accumulate(before, axis=2)
        is_best = before >= largest - _POLICY_VALUE_ATOL
        candidates = np.where(is_best, np.arange(len(class_proba) + 1), 0)
        values = largest + sign * total
        rising, falling = np.maximum.accumulate(candidates, axis=2)
        begins.append(np.where(values[0] >= values[1], rising, falling))
        value = values.max(axis=0)
    ends = np.concatenate([[-1.0], (class_proba[:-1] + class_proba[1:]) / 2, [2.0]])
    draw, at, cuts = np.arange(n_draws), np.full(n_draws, len(class_proba)), []
    for begin in reversed(begins):
        at = begin[draw, at]
        cuts.append(ends[at])
    return np.sqrt(2) * value[:, -1], _policies_from_cuts(np.stack(cuts[::-1], axis=1), 1, 2)


def _policies_from_cuts(cuts: np.ndarray, k: int, n_classes: int) -> np.ndarray:
    """Policies (…, A, K) that cut p_k at these increasing values (…, A − 1)."""
    n_actions = cuts.shape[-1] + 1
    policy = np.zeros((*cuts.shape[:-1], n_actions, n_classes))
    policy[..., k] = np.arange(n_actions)
    policy[..., 1:, :] -= np.cumsum(cuts, axis=-1)[..., None]
    return policy


def _search_policies(points: np.ndarray, mass: np.ndarray, n_actions: int) -> ValuesAndPolicies:
    """`best_policies` by sweeps: one from a cut of each class, more from the best result."""
    n_classes, n_draws = points.shape[1], len(mass)
    turn = np.argsort(-points.mean(axis=0), kind="stable")  # whatever the order of the classes
    points, mass = points[:, turn], np.ascontiguousarray(mass[:, :, turn].swapaxes(1, 2))
    levels = np.arange(1, n_actions) / n_actions
    best = np.full(n_draws, -np.inf)
    policy = np.zeros((n_draws, n_actions, n_classes))
    for k in range(min(n_classes, _MAX_STARTS)):
        start = _policies_from_cuts(np.quantile(points[:, k], levels), k, n_classes)
        policies = np.tile(start, (n_draws, 1, 1))
        value = _sweep(points, mass, policies)
        is_better = value > best + _POLICY_VALUE_ATOL
        best[is_better], policy[is_better] = value[is_better], policies[is_better]
    going = np.arange(n_draws)
    for _ in range(_MAX_SWEEPS):
        improved = policy[going]
        value = _sweep(points, mass[going], improved)
        policy[going] = improved
        gains, best[going] = value - best[going], value
        going = going[gains > _MIN_GAIN]
        if len(going) == 0:
            break
    return _value(points, mass, policy), policy[:, :, np.argsort(turn)]


def _value(points: np.ndarray, mass: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """Σ_a ‖Σ_{i: δ(p_i) = a} m_i‖ of mass (R, K, m) and policies (R, A, K), (R,)."""
    action = best_actions(points, policy)
    sums = (mass @ (action == a)[:, :, None] for a in range(policy.shape[1]))
    return sum(np.linalg.norm(action_sums, axis=(1, 2)) for action_sums in sums)


def _iter_directions(n_classes: int) -> Iterator[np.ndarray]:
    """Yield directions (K,) for one θ_a: all classes, each class, all but each, pairs."""
    each = np.eye(n_classes)
    yield np.ones(n_classes)
    yield from each
    yield from 1 - each
    if n_classes <= _MAX_STARTS:
        yield from (each[j] - each[k] for j, k in combinations(range(n_classes), 2))


def _sweep(points: np.ndarray, mass: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """Move one θ_a after another in each direction, to where the value is largest, in place.

    The mass is (R, K, m) here and below: cumulative sums are fast along the last axis.
    """
    movable = range(policy.shape[1] if policy.shape[1] > 2 else 1)  # differences decide
    for a in movable:
        for direction in _iter_directions(points.shape[1]):
            value = _line_search(points, mass, policy, a, direction)
    return value


def _line_search(
    points: np.ndarray, mass: np.ndarray, policy: np.ndarray, a: int, direction: np.ndarray
) -> np.ndarray:
    """Add the best multiple of a direction (K,) to θ_a, in place; the values (R,) thereafter.

    As the multiple t grows, the points come to action a one by one, from the action that is best
    of the others; or they leave it, where the direction is negative. So all values are cumulative
    sums in the order of the t at which points change.
    """
    draw = np.arange(len(mass))
    scores = points @ policy.swapaxes(1, 2)  # (R, m, A)
    mine = scores[:, :, a].copy()
    scores[:, :, a] = -np.inf
    other = scores.argmax(axis=2)
    slope = points @ direction
    leaves = slope < 0
    with np.errstate(over="ignore"):
        at = (scores.max(axis=2) - mine) / np.where(slope == 0, np.finfo(float).tiny, slope)
    at = np.clip(at, -_MAX_MULTIPLE, _MAX_MULTIPLE)
    order = np.argsort(at, axis=1, kind="stable")
    at = np.take_along_axis(at, order, axis=1)
    steps = np.empty_like(mass)
    for row, draw_mass in enumerate(mass):
        np.take(draw_mass, order[row], axis=1, out=steps[row], mode="clip")
    steps *= np.where(leaves, -1.0, 1.0)[order][:, None]
    sums = _running_sums(mass @ leaves.astype(float), steps)
    values = _column_norms(sums)
    if policy.shape[1] == 2:  # the rest belongs to the other action
        values += _column_norms(np.subtract(mass.sum(axis=2)[:, :, None], sums, out=sums))
    else:
        other_of = np.take_along_axis(other, order, axis=1)
        for b in range(policy.shape[1]):
            if b != a:
                begin = (mass @ ((other == b) & ~leaves)[:, :, None])[:, :, 0]
                values += _column_norms(_running_sums(begin, -steps * (other_of == b)[:, None]))
    end = np.full((len(mass), 1), _MAX_MULTIPLE)
    low, high = np.concatenate([-end, at], axis=1), np.concatenate([at, end], axis=1)
    values[low >= high] = -np.inf
    largest = values.max(axis=1)
    best = np.argmax(values >= largest[:, None] - _POLICY_VALUE_ATOL, axis=1)
    low, high = low[draw, best], high[draw, best]
    margin = np.minimum(high - low, 1) / 2
    step = np.clip(0, low + margin, high - margin)  # the shortest that is clear of all points
    policy[:, a] += step[:, None] * direction
    policy /= np.abs(policy).max(axis=(1, 2), keepdims=True)
    return largest


def _running_sums(begin: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Sums (R, K, m + 1) that begin with (R, K), and to which (R, K, m) are added."""
    sums = np.concatenate([begin[:, :, None], steps], axis=2)
    return np.cumsum(sums, axis=2, out=sums)


def _column_norms(sums: np.ndarray) -> np.ndarray:
    """The norms (R, m) of vectors (R, K, m)."""
    return np.sqrt(np.einsum("rkm,rkm->rm", sums, sums))
