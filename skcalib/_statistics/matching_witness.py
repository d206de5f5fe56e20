"""The function on which outcomes and forecasts differ most."""

import numpy as np

from .matching import MatchingError
from .matching_features import OutcomeFeatures
from .matching_given import standardization
from .matching_pairs import OutcomePairs, UniformPairs
from .matching_target import outcome_bandwidth

# Kernel values that are held at once.
_ENTRIES = 2**20


def witness_values(error: MatchingError, grid: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Σ_i w_i k(z_i, z) [ℓ(y_i, t) − e_i(t)] for places z (g, d) and points t (m,), (g, m)."""
    value = error.values_of(error.data.outcome[None])[0]
    kernel, bandwidth = error.options["kernel"], error.options["bandwidth"]
    target: OutcomePairs | UniformPairs | OutcomeFeatures
    if error.has_features:
        target = error.waves
    elif error.is_of_pits:
        target = UniformPairs(error.forecast, kernel, bandwidth)
        value = target.intervals(value[None])[0]
    else:
        if bandwidth == "median":
            bandwidth = outcome_bandwidth(value, error.weight, error.forecast)
        target = OutcomePairs(error.forecast, kernel, bandwidth, error.scale)
    total = np.zeros((len(places), len(grid)))
    size = max(1, _ENTRIES // max(len(places), len(grid)))
    for start in range(0, len(value), size):
        rows = np.arange(start, min(start + size, len(value)))
        near = error.given.kernel(places, error.given.points[rows]) * error.weight[rows]
        total += near @ target.gaps(value, rows, grid)
    return total


def scaled_places(error: MatchingError, places: np.ndarray) -> np.ndarray:
    """Places in the units in which the samples are compared."""
    options = error.options
    if options["given_bandwidth"] != "median" or options["given_kernel"] == "wasserstein":
        return places
    centre, factor = standardization(error.raw_points(), error.weight)
    return (places - centre) * factor
