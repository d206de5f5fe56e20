"""Interval partitions of [0, 1]."""

import numpy as np

from .sorting import pool_ties

# Cumulated weights that should be whole multiples of a bin's share miss them by rounding.
_ROUNDING = 1e-9


def uniform_bins(points: np.ndarray, n_bins: int) -> np.ndarray:
    """Index of [j/B, (j+1)/B) for each point; the last interval is closed.

    The edges are the correctly rounded quotients j/B, so that a decimal such as 0.29 belongs to
    the interval that starts at 29/100, where multiplying (0.29·100 = 28.999…) would not put it.
    """
    edges = np.arange(1, n_bins) / n_bins
    return np.searchsorted(edges, points, side="right")  # (n,)


def quantile_bins(points: np.ndarray, weights: np.ndarray, n_bins: int) -> np.ndarray:
    """Bin j for each point of which a share in [j/B, (j+1)/B) of all weight lies strictly below.

    Without ties these are bins of equal mass, the larger ones first; tied points are never
    separated.
    """
    distinct, mass = pool_ties(points, weights)
    below = np.cumsum(mass) - mass
    share = below / (below[-1] + mass[-1])
    bins = np.floor(n_bins * share + _ROUNDING).astype(np.intp)  # (m,)
    np.minimum(bins, n_bins - 1, out=bins)
    return bins[np.searchsorted(distinct, points)]  # (n,)


def binned_sums(bins: np.ndarray, values: np.ndarray, n_bins: int) -> np.ndarray:
    """Sum of the values in each bin, (B,)."""
    return np.bincount(bins, weights=values, minlength=n_bins)
