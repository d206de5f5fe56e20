"""Distribution functions and quantiles of weighted members."""

import numpy as np

# Levels that miss a sum of weights by rounding count as that sum.
_ROUNDING = 1e-12


def cumulative_weights(weight: np.ndarray) -> np.ndarray:
    """The weight of the first k members, (n, s + 1) for k from 0 to s; exactly 0 and 1 at the ends.

    For equal weights it is k/s, so that equal probabilities are equal to the last bit.
    """
    size = weight.shape[1]
    if (weight == weight[0, 0]).all():
        return np.broadcast_to(np.arange(size + 1) / size, (len(weight), size + 1))
    total = np.zeros((len(weight), size + 1))
    np.cumsum(weight, axis=1, out=total[:, 1:])
    return np.minimum(total / total[:, -1:], 1.0)


def ensemble_cdf(
    y: np.ndarray, members: np.ndarray, cumulative: np.ndarray, *, strict: bool = False
) -> np.ndarray:
    """The weight of the members at most y, or less than y, (n, m) for y (n, m).

    Parameters: sorted members (n, s), and their cumulative weights (n, s + 1).
    """
    compare = np.less if strict else np.less_equal
    rows = np.arange(len(members))
    probability = np.empty(y.shape)
    for j, column in enumerate(y.T):
        place = compare(members, column[:, None]).sum(axis=1)
        probability[:, j] = cumulative[rows, place]
    return probability


def ensemble_quantiles(level: np.ndarray, members: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The least member whose cdf is at least the level, (n, m) from sorted members (n, s)."""
    cumulative = np.cumsum(weight, axis=1)
    last = members.shape[1] - 1
    if len(members) == 1:
        place = np.searchsorted(cumulative[0], level[0] - _ROUNDING, side="left")
        return members[0, np.minimum(np.maximum(place, _first(weight)[0]), last)][None]
    place = np.empty(level.shape, dtype=np.intp)
    for j, column in enumerate(level.T):
        place[:, j] = (cumulative < column[:, None] - _ROUNDING).sum(axis=1)
    place = np.clip(place, _first(weight)[:, None], last)
    return np.take_along_axis(members, place, axis=1)


def _first(weight: np.ndarray) -> np.ndarray:
    """The first member of positive weight, which is the quantile of level 0, (n,)."""
    return np.argmax(weight > 0, axis=1)
