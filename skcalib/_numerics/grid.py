"""A grid of probabilities in decimals, finer near 0 and 1, to which predictions are rounded."""

from functools import cache

import numpy as np

# Digits behind the point of the finest steps: 1 − 1e-15 is the last such number below 1 that
# double precision tells from its neighbours.
_MOST_DECIMALS = 15

# Between 0.01 and 0.99 all steps are the same: 0.01 has this many decimals.
_COARSE = 2


@cache
def grid(decimals: int) -> np.ndarray:
    """The ascending points (m,), symmetric about 1/2: p is one of them if and only if 1 − p is.

    Between 0.01 and 0.99 they are the numbers with `decimals` decimals. Each decade nearer to 0 or
    1 has one decimal more, as far as double precision goes. All are the doubles nearest to decimal
    numbers. 0 and 1 stand alone.
    """
    finest = 10**_MOST_DECIMALS
    parts = [np.array([0], dtype=np.int64)]
    for places in range(_MOST_DECIMALS, decimals, -1):  # 10^-(places − decimals + 2) and above
        lowest, step = 10 ** (decimals - _COARSE), 10 ** (_MOST_DECIMALS - places)
        parts.append(step * np.arange(lowest, 10 * lowest, dtype=np.int64))
    step = 10 ** (_MOST_DECIMALS - decimals)
    parts.append(step * np.arange(10 ** (decimals - _COARSE), 10**decimals // 2, dtype=np.int64))
    left = np.concatenate(parts)
    points = np.concatenate([left, [finest // 2], finest - left[::-1]]) / finest
    points.flags.writeable = False
    return points


@cache
def _middles(decimals: int) -> np.ndarray:
    points = grid(decimals)
    middles = (points[1:] + points[:-1]) / 2
    middles[0], middles[-1] = 0.0, np.nextafter(1.0, 0.0)  # only 0 and 1 are rounded to 0 and 1
    return middles


def nearest_on_grid(proba: np.ndarray, decimals: int) -> np.ndarray:
    """The indices of the nearest points of the grid, (...), for probabilities (...) in [0, 1]."""
    scale, coarse = 10**decimals, 10 ** (decimals - _COARSE)
    n_below = (len(grid(decimals)) - 1) // 2 - (scale // 2 - coarse)  # points below 0.01
    index = np.rint(proba * scale).astype(np.int32)
    index += n_below - coarse
    is_tail = (index <= n_below) | (index >= len(grid(decimals)) - 1 - n_below)
    index[is_tail] = np.searchsorted(_middles(decimals), proba[is_tail], side="left")
    return index
