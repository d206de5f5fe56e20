"""Random-effects meta-analysis of estimates from several sites."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

# Candidates of the variance between sites, from which the search for the likeliest one starts.
_N_CANDIDATES = 60


class RandomEffectsFit(NamedTuple):
    """The mean over sites, its standard error, and the standard deviation between sites."""

    mean: float
    deviation: float
    between: float


def fit_random_effects(estimate: np.ndarray, variance: np.ndarray) -> RandomEffectsFit:
    """Fit a normal model to estimates (k,) with these variances (k,), k > 1.

    The variance between sites is the one of the largest restricted likelihood (REML). The standard
    error is that of Hartung, Knapp, Sidik and Jonkman, but never below that of the model, from
    which it falls by chance if sites are few (Röver, Knapp and Friede 2015).
    """

    def deviance(between_variance: float) -> float:
        total = variance + between_variance
        residuals = estimate - np.average(estimate, weights=1 / total)
        likelihood = np.log(total).sum() + np.sum(residuals**2 / total)
        return float(likelihood + np.log(np.sum(1 / total)))

    largest = max(np.ptp(estimate) ** 2, variance.min())  # beyond it the likelihood falls
    grid = np.append(0.0, np.geomspace(1e-8, 1, _N_CANDIDATES) * largest)
    best = int(np.argmin([deviance(candidate) for candidate in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    options = {"xatol": 1e-10 * largest}
    optimum = minimize_scalar(deviance, bounds=bounds, method="bounded", options=options).x
    between_variance = min(0.0, optimum, key=deviance)
    weight = 1 / (variance + between_variance)
    mean = np.average(estimate, weights=weight)
    scale = max(np.sum(weight * (estimate - mean) ** 2) / (len(estimate) - 1), 1.0)
    deviation = np.sqrt(scale / weight.sum())
    return RandomEffectsFit(float(mean), float(deviation), float(np.sqrt(between_variance)))
