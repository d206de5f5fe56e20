"""Interval partitions of [0, 1]."""

import numpy as np

from .sorting import first_of_ties, pool_ties

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

    Without ties these are bins of equal mass, up to that of one point; tied points are never
    separated.
    """
    distinct, mass = pool_ties(points, weights)
    below = np.cumsum(mass) - mass
    share = below / (below[-1] + mass[-1])
    bins = np.floor(n_bins * share + _ROUNDING).astype(np.intp)  # (m,)
    np.minimum(bins, n_bins - 1, out=bins)
    first = np.flatnonzero(first_of_ties(bins))  # of each bin that holds any
    return bins[first][np.searchsorted(distinct[first[1:]], points, side="right")]  # (n,)


def binned_sums(bins: np.ndarray, values: np.ndarray, n_bins: int) -> np.ndarray:
    """Sum of the values in each bin, (B,)."""
    return np.bincount(bins, weights=values, minlength=n_bins)


def bin_extents(bins: np.ndarray, points: np.ndarray, n_bins: int) -> np.ndarray:
    """Length of the interval from the least to the greatest point of each bin, 0 if empty, (B,)."""
    least, greatest = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(least, bins, points)
    np.maximum.at(greatest, bins, points)
    return np.maximum(greatest - least, 0.0)


def mean_variances(
    bins: np.ndarray, outcomes: np.ndarray, weights: np.ndarray, n_bins: int
) -> np.ndarray:
    """Estimated variance of the mean outcome, 0 or 1, of each bin; NaN below two points, (B,).

    With r_i the share of a point in the weight of its bin and y = Σ r_i y_i, it is
    y(1 − y) Σ r_i² / (1 − Σ r_i²): unbiased for independent outcomes of equal probability, and
    y(1 − y)/(n − 1) for n equal weights.
    """
    relative = weights / binned_sums(bins, weights, n_bins)[bins]  # (n,)
    mean = binned_sums(bins, relative * outcomes, n_bins)
    rest = binned_sums(bins, relative * (1 - outcomes), n_bins)  # exactly 0 if all are 1
    square = binned_sums(bins, relative**2, n_bins)
    return np.divide(
        mean * rest * square,
        1 - square,
        out=np.full(n_bins, np.nan),
        where=(square > 0) & (square < 1),
    )
