"""Fits of the location and the spread of forecasts: μ' = a + b μ, σ'² = c² + d² σ²."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

# The least d, relative to that of the start: a smaller one would be a forecast without spread.
_LEAST_FACTOR = 1e-4

# Of outcomes t (n,) the loss of each forecast, and its derivative in t.
Score = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class LocationScaleProblem:
    """Outcomes, and the mean and standard deviation of their forecasts, each (n,).

    `score` takes outcomes on the scale of the forecasts as they are, t = μ + σ (y − μ')/σ'. The
    loss of a moved forecast is (σ'/σ) score(t), or score(t) + log(σ'/σ) if it is a log score.
    """

    y: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    weight: np.ndarray
    score: Score
    is_log: bool

    @cached_property
    def centre(self) -> float:
        return float(self.weight @ self.y)

    @cached_property
    def unit(self) -> float:
        """Standard deviation of the outcomes, by which they are divided."""
        for values in (self.y - self.centre, self.y - self.mean):
            unit = float(np.sqrt(self.weight @ values**2))
            if unit > 0:
                return unit
        return 1.0

    def loss(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean loss and its gradient in (a', b, c'², d²), for standardised outcomes.

        μ' = centre + unit a' + b (μ − centre) and σ'² = unit² c'² + d² σ².
        """
        unit, has_spread = self.unit, self.std > 0
        a, b, added, factor = parameters
        shifted = self.mean - self.centre
        std = np.where(has_spread, self.std, 1.0)
        moved = np.sqrt(unit**2 * added + factor * std**2)
        ratio = np.where(has_spread, moved / std, 1.0)
        gap = self.y - (self.centre + unit * a + b * shifted)
        value, slope = self.score(self.mean + gap / ratio)
        if self.is_log:
            size, losses = 1.0, value + np.log(ratio)
            by_location = -slope / ratio
            by_ratio = (1 - slope * gap / ratio) / ratio
        else:
            size, losses = unit, ratio * value
            by_location = -slope
            by_ratio = value - slope * gap / ratio
        by_variance = np.where(has_spread, by_ratio / (2 * std**2 * ratio), 0.0)
        by_parameter = [
            by_location * unit,
            by_location * shifted,
            by_variance * unit**2,
            by_variance * std**2,
        ]
        gradient = np.array([self.weight @ values for values in by_parameter])
        return float(self.weight @ losses) / size, gradient / size

    def starts(self) -> list[float]:
        """Starts of d²: the mean square of z, and the mean square of errors over that of σ."""
        error = self.y - self.mean
        z = np.divide(error, self.std, out=np.zeros(len(error)), where=self.std > 0)
        of_spread = self.weight @ self.std**2
        starts = [float(self.weight @ z**2)]
        if of_spread > 0 and np.ptp(self.std) > 0:  # else it would be the same start again
            starts.append(float(self.weight @ error**2 / of_spread))
        return [start for start in starts if 0 < start < np.inf] or [1.0]


def fit_location_scale(
    problem: LocationScaleProblem, *, scale_only: bool
) -> tuple[np.ndarray, bool]:
    """(a, b, c, d) of the least mean score, and whether it leaves the forecasts some spread.

    The free parameters are a, b, c² and d², so that c = 0 is no saddle point.
    """
    free = slice(3, 4) if scale_only else slice(0, 4)
    first = np.array([0.0, 1.0, 0.0, 1.0])
    bounds = [(None, None), (None, None), (0.0, None), (_LEAST_FACTOR**2, None)]
    found = []
    for start in problem.starts():
        units = np.array([1.0, 1.0, 1.0, start])

        def loss(values: np.ndarray, units: np.ndarray = units) -> tuple[float, np.ndarray]:
            parameters = first.copy()
            parameters[free] = values
            value, gradient = problem.loss(parameters * units)
            return value, (gradient * units)[free]

        result = minimize(
            loss,
            first[free],
            jac=True,
            method="L-BFGS-B",
            bounds=bounds[free],
            options={"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9},
        )
        parameters = first.copy()
        parameters[free] = result.x
        is_inside = bool(parameters[2] > 0 or parameters[3] > _LEAST_FACTOR**2)
        found.append((float(result.fun), parameters * units, is_inside))
    _, (a, b, added, factor), is_inside = min(found, key=lambda one: one[0])
    a = problem.unit * a + (1 - b) * problem.centre
    return np.array([a, b, problem.unit * np.sqrt(added), np.sqrt(factor)]), is_inside


def ratio_of_spread(std: np.ndarray, added: float, factor: float) -> np.ndarray:
    """σ'/σ (n,); 1 for forecasts without spread, whose members cannot be moved apart."""
    safe = np.where(std > 0, std, 1.0)
    return np.where(std > 0, np.hypot(factor, added / safe), 1.0)
