"""The standard deviation of the unbiased distribution matching error under calibration."""

import numpy as np

from .squared_error import pair_weight

# At most this many samples are looked at, all pairs of them.
_MOST_SAMPLES = 1024

# Outcomes that are drawn: their number times that of the samples is at least this.
_DRAWN = 2**14
_DRAWN_FOR_PAIRS = 2**12  # where terms are computed pair by pair

# Entries of the matrices of terms that are held at once.
_ENTRIES = 2**20


def null_deviation(error, generator: np.random.Generator) -> float:
    """The root of 2 Σ_{i≠j} w_i² w_j² E h_ij² / (Σ_{i≠j} w_i w_j)², from redrawn outcomes.

    The terms h_ij have mean 0 given either sample and are uncorrelated, so that their squares give
    the variance: a few draws of outcomes suffice, where a sample of the error itself needs many.
    """
    weight = error.data.weight
    n = len(weight)
    m = min(n, _MOST_SAMPLES)
    rows = np.sort(generator.choice(n, m, replace=False)) if m < n else np.arange(n)
    part = error.at_rows(rows)
    n_draws = max(1, (_DRAWN if getattr(part, "waves", True) else _DRAWN_FOR_PAIRS) // m)
    size = max(1, _ENTRIES // m**2)
    squares = 0.0
    for start in range(0, n_draws, size):
        outcomes = part.data.redraw(generator, min(size, n_draws - start))
        terms = part.term_matrices(outcomes)
        np.einsum("rii->ri", terms)[:] = 0.0  # a sample makes no pair with itself
        squares += np.sum(terms**2)
    of_all_pairs = n * (n - 1) / (m * (m - 1)) * weight[rows].sum() ** 4
    return float(np.sqrt(2 * of_all_pairs * squares / n_draws) / pair_weight(weight))
