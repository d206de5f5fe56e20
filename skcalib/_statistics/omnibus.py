"""The omnibus statistic: several statistics, each for another kind of miscalibration."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._inputs.predictions import Predictions
from .base import TIE, Statistic
from .fourier_error import kernel_error
from .kernels import KERNELS
from .residual_cells import MOST_CELLS, LocalGaps, PooledKernelError
from .residual_sums import LevelAndSpread, ScoreExcess

# Multiplications of the exact kernel error that take about ten seconds.
_MULTIPLICATIONS = 2e11

# Random frequencies of the kernel error where it would take longer.
_N_COMPONENTS = 32


class Omnibus(Statistic):
    """The values of all components, (R, C)."""

    kind = "classes"

    takes_signs = True

    def __init__(self, data: Predictions, components: dict, kernel_method: str) -> None:
        self.data, self.components, self.kernel_method = data, components, kernel_method
        self.n_columns = len(components)
        self.takes_counts = components["skce"].takes_counts
        self.adds_up = all(one.adds_up for one in components.values())

    @property
    def numbers_per_draw(self) -> int:
        return max(one.numbers_per_draw for one in self.components.values())

    def on(self, data: Predictions) -> "Omnibus":
        components = {name: one.on(data) for name, one in self.components.items()}
        return Omnibus(data, components, self.kernel_method)

    def __call__(self, labels):
        return np.column_stack([one(labels) for one in self.components.values()])

    def start(self, n_draws):
        return {name: one.start(n_draws) for name, one in self.components.items()}

    def add(self, sums, rows, labels):
        for name, one in self.components.items():
            one.add(sums[name], rows, labels)

    def finish(self, sums):
        values = [one.finish(sums[name]) for name, one in self.components.items()]
        return np.column_stack(values)

    def of_signs(self, signs):
        return np.column_stack([one.of_signs(signs) for one in self.components.values()])

    def evidence(self, values: np.ndarray) -> np.ndarray:
        """What all components say together of each of the B + 1 rows of values, (B + 1,).

        The mean of the reciprocal p-values is about that of the smallest one, but larger if several
        are small. No p-value is below 1/(B + 1), however large the value is: so the reciprocal is
        multiplied by one plus the distance to the next value, in standard deviations.
        """
        reciprocal = (1 + self._by_component(distances, values)) / self.p_values(values)
        return reciprocal.mean(axis=1)

    def p_values(self, values: np.ndarray) -> np.ndarray:
        """P-values of all components, for the data and for each of the B draws, (B + 1, C)."""
        return self._by_component(p_values, values)

    def found(self, value, values):
        p_of_each = self.p_values(values)
        numbers = {
            "component_p_values_": p_of_each[0].tolist(),
            "adjusted_p_values_": adjusted_p_values(p_of_each).tolist(),
            "component_statistics_": value[0].tolist(),
            "component_null_distributions_": np.ascontiguousarray(values[1:].T),
        }
        by_name = {
            name: dict(zip(self.components, of_each, strict=True))
            for name, of_each in numbers.items()
        }
        return {"kernel_method_": self.kernel_method} | by_name

    def _by_component(self, function, values):
        columns = zip(values.T, self.components.values(), strict=True)
        return np.column_stack(
            [
                function(column, is_signed=one.is_signed, resolution=one.resolution)
                for column, one in columns
            ]
        )


def p_values(values, *, is_signed, resolution=0.0):
    """The share of values that are at least as large as each; twice the smaller one of both sides
    for what has a sign.
    """
    slack, ordered = _slack(values, resolution), np.sort(values)
    above = len(values) - np.searchsorted(ordered, values - slack, side="left")
    if not is_signed:
        return above / len(values)
    below = np.searchsorted(ordered, values + slack, side="right")
    return np.minimum(2 * np.minimum(above, below) / len(values), 1.0)


def distances(values, *, is_signed, resolution=0.0):
    """How far the largest value lies above all others, in standard deviations; 0 for the others.

    For what has a sign, also how far the smallest one lies below.
    """
    slack, ordered = _slack(values, resolution), np.sort(values)
    distance = values - ordered[-2]
    if is_signed:
        distance = np.maximum(distance, ordered[1] - values)
    deviation = np.std(values, where=np.isfinite(values))
    return np.where(distance > slack, distance, 0.0) / max(deviation, np.finfo(np.float64).tiny)


def _slack(values, resolution):
    """Values that differ by less are equal but for rounding."""
    return max(TIE * np.abs(values).max(where=np.isfinite(values), initial=0.0), resolution)


def adjusted_p_values(p_values: np.ndarray) -> np.ndarray:
    """P-values (C,) of the first row, adjusted for their number (Westfall and Young 1993).

    Each is the share of rows whose smallest p-value is as small.
    """
    smallest = np.sort(p_values.min(axis=1))
    return np.searchsorted(smallest, p_values[0], side="right") / len(smallest)


def omnibus(
    data: Predictions,
    *,
    n_resamples: int = 999,
    seed: Callable[[], int] = int,
    kernel: Any = "total-variation",
    bandwidth: Any = "median",
    estimator: str = "unbiased",
    class_kernel: Any = None,
) -> Omnibus:
    """The omnibus statistic, with a user's options of its kernel error.

    That is the exact squared kernel error. Where it would take long, the error of pooled
    predictions takes its place for two classes, and else that of random features.
    """
    error: Statistic
    n, method = len(data.weight), "exact"
    is_plain = class_kernel is None and estimator == "unbiased" and not callable(kernel)
    is_fast = is_plain and data.is_binary and not KERNELS[kernel].is_gaussian
    if is_fast and n > MOST_CELLS:
        error, method = PooledKernelError(data, kernel=kernel, bandwidth=bandwidth), "pooled"
    else:
        fourier: dict[str, Any] = {}
        if is_plain and not is_fast and n**2 * len(data.classes) * n_resamples > _MULTIPLICATIONS:
            method = "fourier"
            fourier = {"method": method, "n_components": _N_COMPONENTS, "random_state": seed()}
        error = kernel_error(
            data,
            kernel=kernel,
            bandwidth=bandwidth,
            estimator="biased" if n == 1 else estimator,
            class_kernel=class_kernel,
            **fourier,
        )
    components = {
        "skce": error,
        "log_loss": ScoreExcess(data, "log_loss"),
        "level_and_spread": LevelAndSpread(data),
        "local": LocalGaps(data),
    }
    return Omnibus(data, components, method)
