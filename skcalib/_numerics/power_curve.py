"""The power of a test as a function of the number of samples."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

# Of the logarithm of the slope, around that of a mean compared with a known value.
_SPREAD_OF_SLOPES = 0.5

# Numbers of samples that differ by more than this factor say nothing about the curve here.
_WINDOW = 4.0


class PowerCurve(NamedTuple):
    """power(n) = Φ(z + slope (√(n / middle) − 1)), where z is the quantile of the wanted power."""

    middle: float  # where the wanted power is reached
    slope: float
    error: float  # standard error of log(middle)
    wanted: float  # z

    def at(self, n: float) -> float:
        return float(norm.cdf(self.wanted + self.slope * (np.sqrt(n / self.middle) - 1)))

    @property
    def standard_error(self) -> float:
        """That of the power at the middle."""
        return float(norm.pdf(self.wanted) * self.slope / 2 * self.error)


def fitted_power_curve(
    n: np.ndarray,
    rejected: np.ndarray,
    simulated: np.ndarray,
    *,
    power: float,
    level: float,
    guess: float,
) -> PowerCurve:
    """The likeliest curve for the numbers of rejections at numbers of samples near `guess`.

    For the mean of n normal variables, tested on one side, the curve is exact, and the slope is the
    sum of the normal quantiles of the power and of 1 − level. Other slopes must be spoken for by
    the rejections.
    """
    wanted, usual = norm.ppf(power), np.log(norm.ppf(power) + norm.isf(level))
    is_near = (n <= _WINDOW * guess) & (n >= guess / _WINDOW)
    n, rejected, simulated = n[is_near], rejected[is_near], simulated[is_near]

    def probits(parameters: np.ndarray) -> np.ndarray:
        ratio = np.sqrt(n / guess) * np.exp(-parameters[0] / 2)
        return wanted + np.exp(parameters[1]) * (ratio - 1)

    def surprise(parameters: np.ndarray) -> float:
        probit = probits(parameters)
        likelihood = rejected * norm.logcdf(probit) + (simulated - rejected) * norm.logsf(probit)
        prior = ((parameters[1] - usual) / _SPREAD_OF_SLOPES) ** 2 / 2
        return prior + parameters[0] ** 2 / 8 - likelihood.sum()  # middle within e^±2 of guess

    best = minimize(surprise, [0.0, usual], method="Nelder-Mead").x
    middle, slope = guess * np.exp(best[0]), np.exp(best[1])
    probit, ratio = probits(best), np.sqrt(n / middle)
    gradient = np.stack([-slope * ratio / 2, slope * (ratio - 1)])
    weight = simulated * np.exp(2 * norm.logpdf(probit) - norm.logcdf(probit) - norm.logsf(probit))
    information = weight * gradient @ gradient.T
    information += np.diag([0.25, 1 / _SPREAD_OF_SLOPES**2])
    error = np.sqrt(np.linalg.inv(information)[0, 0])
    return PowerCurve(float(middle), float(slope), float(error), float(wanted))
