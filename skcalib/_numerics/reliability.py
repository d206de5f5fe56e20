"""Event rates as functions of the predicted probability: curves, and bounds on them."""

import numpy as np
from scipy.special import betaincinv

from .smooth_expected import interpolate_smooth_mass
from .sorting import LabelWeights, cumulate, interval_bins, quantile_bins

# Cells that replace the predictions in `effective_counts`.
_N_COUNT_CELLS = 1024

# Windows that bound an increasing rate, in units of n^(2/3) samples, the order of what an isotonic
# fit averages; and the fewest samples of a window.
_WINDOWS = np.array([0.5, 1.0, 2.0, 4.0])
_MIN_WINDOW_SAMPLES = 8

# Number of points at which windows end. In between, bounds are those of the next point.
_N_ANCHORS = 21

# Equal sums of weights differ by less than this fraction, as they are rounded.
_WEIGHT_SUM_RTOL = 1e-12


def assign_bins(
    points: np.ndarray, weights: np.ndarray, edges: np.ndarray, strategy: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bins that hold points: the number of each point's bin (n,), and the bins' ends, (m,) each.

    Uniform bins end at the edges, as many quantile bins at their least and greatest points.
    """
    if strategy == "uniform":
        filled, bins = np.unique(interval_bins(points, edges), return_inverse=True)
        return bins, edges[filled], edges[filled + 1]
    bins = np.unique(quantile_bins(points, weights, len(edges) - 1), return_inverse=True)[1]
    least, greatest = np.full((2, bins.max() + 1), [[np.inf], [-np.inf]])
    np.minimum.at(least, bins, points)
    np.maximum.at(greatest, bins, points)
    return bins, least, greatest


def bin_means(bins: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean of the values (n,) in each bin, (m,). None of the bins is empty."""
    n_bins = int(bins.max()) + 1
    return np.bincount(bins, weights * values, n_bins) / np.bincount(bins, weights, n_bins)


def smooth_rates(
    points: np.ndarray, mass: np.ndarray, density: np.ndarray, bandwidth: float, x: np.ndarray
) -> np.ndarray:
    """p + r_σ(p)/δ_σ(p) at the places (m,): residuals over predictions, both smoothed alike.

    The mass of the residuals is that of `points`; the density is that of all predictions at the
    places, `interpolate_smooth_mass` of their weights. The integral of |r_σ| is the smooth expected
    calibration error.
    """
    residual = interpolate_smooth_mass(points, mass, bandwidth, x)
    return np.clip(x + residual / density, 0.0, 1.0)


def effective_counts(
    points: np.ndarray, weights: np.ndarray, bandwidth: float, x: np.ndarray
) -> np.ndarray:
    """The effective number of samples behind `smooth_rates`, (Σ κ)²/Σ κ² at each place, (m,)."""
    cell = np.minimum((points * _N_COUNT_CELLS).astype(np.intp), _N_COUNT_CELLS - 1)
    order = np.arange(int(3 / bandwidth) + 1)
    damping = np.exp(-0.5 * (np.pi * bandwidth * order) ** 2)
    damping[1:] *= 2
    centre = (np.arange(_N_COUNT_CELLS) + 0.5) / _N_COUNT_CELLS
    waves = np.cos(np.pi * np.multiply.outer(x, order)) * damping
    kernel = waves @ np.cos(np.pi * np.multiply.outer(order, centre))  # (m, cells)
    total = kernel @ np.bincount(cell, weights, _N_COUNT_CELLS)
    return total**2 / (kernel**2 @ np.bincount(cell, weights**2, _N_COUNT_CELLS))


def rate_bounds(rate: np.ndarray, count: np.ndarray, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson bounds on the probability of each mean of `count` outcomes.

    Each bound is missed with at most the probability `tail`. The counts need not be integers.
    """
    return _lower_rate_bound(rate, count, tail), 1 - _lower_rate_bound(1 - rate, count, tail)


def _lower_rate_bound(rate: np.ndarray, count: np.ndarray, tail: float) -> np.ndarray:
    hits = rate * count
    is_bounded = hits > 0
    hits = np.where(is_bounded, hits, 1.0)
    return np.where(is_bounded, betaincinv(hits, np.maximum(count - hits, 0) + 1, tail), 0.0)


def increasing_rate_bounds(
    table: LabelWeights, x: np.ndarray, tail: float
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on an increasing rate at the places, (m,) each, missed with at most `tail` each.

    To the left of a place the rate is at most that at the place. So is the mean rate of a window of
    predictions there, and the lower bound on it is one on the rate, too. Windows of several sizes
    share `tail`. They do not depend on the outcomes, so the bounds hold for every number of samples
    of equal weight.
    """
    lower = _lower_increasing_bound(table, x, tail)
    points, weight, square = table
    mirrored = LabelWeights(1 - points[::-1], weight[::-1, ::-1], square[::-1, ::-1])
    return lower, 1 - _lower_increasing_bound(mirrored, 1 - x, tail)


def _lower_increasing_bound(table: LabelWeights, x: np.ndarray, tail: float) -> np.ndarray:
    points, total, squares = table.points, table.total, table.square.sum(axis=0)
    n_samples = total.sum() ** 2 / squares.sum()
    share = np.minimum(_WINDOWS * n_samples ** (-1 / 3), 1)
    shares = np.unique(np.append(share[share * n_samples >= _MIN_WINDOW_SAMPLES], share.max()))
    sums = cumulate(np.stack([total, table.weight[1], squares]))  # of all points before each
    levels = np.linspace(0, (1 - _WEIGHT_SUM_RTOL) * sums[0, -1], _N_ANCHORS)
    anchors = np.unique(np.searchsorted(sums[0, 1:], levels).clip(max=len(points) - 1))
    end = anchors + 1
    bound = np.zeros(len(anchors))
    for share in shares:
        start = np.searchsorted(sums[0], sums[0, end] - share * sums[0, -1], side="right") - 1
        mass, hits, square = sums[:, end] - sums[:, start.clip(0)]
        rate = np.clip(hits / mass, 0, 1)
        bound = np.maximum(bound, _lower_rate_bound(rate, mass**2 / square, tail / len(shares)))
    last = np.searchsorted(points[anchors], x, side="right") - 1
    return np.where(last >= 0, bound[last.clip(0)], 0.0)
