"""Confidence limits and p-values of an estimate that was resampled."""

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Limits:
    """What resampling says about the true value, by Student's t and by subsamples if there are any.

    The interval is the hull of both, and a p-value the larger one of both. So a value lies outside
    of the interval if and only if its p-value is small.
    """

    estimate: float
    deviation: float  # the standard error of the estimate, by the jackknife
    degrees: float  # of freedom of Student's t
    pivots: np.ndarray  # (B,), the true values at which the subsamples deviate like the estimate

    def interval(
        self, confidence_level: float, alternative: str = "two-sided"
    ) -> tuple[float, float]:
        tail = (1 - confidence_level) / (2 if alternative == "two-sided" else 1)
        margin = stats.t.isf(tail, self.degrees) * self.deviation
        low, high = self.estimate - margin, self.estimate + margin
        if len(self.pivots):
            # for these order statistics, (1 + #{more extreme}) / (1 + B) equals the tail
            quantiles = np.quantile(self.pivots, [tail, 1 - tail], method="weibull")
            low, high = min(low, quantiles[0]), max(high, quantiles[1])
        return (
            -np.inf if alternative == "less" else float(low),
            np.inf if alternative == "greater" else float(high),
        )

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Of the hypothesis that the true value is `null`."""
        if alternative == "two-sided":
            return min(1.0, 2 * min(self.p_value(null, one) for one in ("less", "greater")))
        sign = 1 if alternative == "greater" else -1
        deviation = max(self.deviation, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):
            score = sign * (self.estimate - null) / deviation
        normal = float(stats.t.sf(score, self.degrees))
        if len(self.pivots) == 0:
            return normal
        n_more_extreme = int(np.sum(sign * self.pivots <= sign * null))
        return max(normal, (1 + n_more_extreme) / (1 + len(self.pivots)))


@dataclass(frozen=True)
class Resamples:
    """The values of C models: of all samples, of subsamples, and without parts of the samples."""

    values: np.ndarray  # (C,)
    subsamples: np.ndarray  # (B, C)
    shrinkage: np.ndarray  # (B,), by what factor a deviation shrinks from a subsample to all
    jackknife: np.ndarray  # (G, C)
    degrees: float

    def limits(self, contrast: list[float]) -> Limits:
        """Of the sum of the models' values, multiplied by these numbers (C,)."""
        estimate = float(self.values @ contrast)
        pivots = (estimate - self.shrinkage * (self.subsamples @ contrast)) / (1 - self.shrinkage)
        deviation = jackknife_deviation(self.jackknife @ contrast)
        return Limits(estimate, deviation, self.degrees, pivots)


def jackknife_deviation(jackknife: np.ndarray) -> float:
    """Standard deviation of an estimate, from its values (G,) without one of the groups."""
    return float(np.sqrt((len(jackknife) - 1) * np.var(jackknife)))
