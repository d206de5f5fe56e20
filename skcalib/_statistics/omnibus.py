"""The omnibus statistic: several statistics, each for another kind of miscalibration."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._data import ClassData
from .base import TIE_RTOL, BlockSums, Statistic
from .fourier_error import make_kernel_error
from .kernels import KERNELS, MIN_KERNEL_BANDWIDTH, SIMPLEX_KERNELS, resolve_bandwidth
from .residuals import (
    BinnedResiduals,
    ClasswiseScoreTest,
    MultiResolutionGaps,
    ResidualStatistic,
    ScoreExcess,
)
from .squared_error import SquaredKernelError

# Multiplications of the exact kernel error that take about as long as random features of some
# thousand samples, and with all draws about a second.
_MULTIPLICATIONS = 2e10

# Cells into which many predictions are pooled for the kernel error.
_MAX_CELLS = 4096

# Random frequencies of the kernel error where it would take longer.
_N_COMPONENTS = 32

# Several bandwidths, as shares of the median distance: wide kernels see shifts, narrow ones waves
# and errors in a small range. They were chosen on other data than those of the benchmark.
_BANDWIDTHS = {"median": 1, "median/4": 1 / 4, "median/16": 1 / 16}


class Omnibus(Statistic):
    """The values of all components, (R, C)."""

    supports = frozenset({"any-order", "groups"})

    # component weights: the kernel error rarely finds what no other component finds
    weights: Sequence[float] = (0.5, 1.0, 1.0, 1.0)

    def __init__(self, data: ClassData, kernel_error: Statistic, kernel_method: str) -> None:
        self.data, self.kernel_error, self.kernel_method = data, kernel_error, kernel_method
        self.components = {
            "skce": kernel_error,
            "log_loss": ScoreExcess(data, "log_loss"),
            "level_and_spread": ClasswiseScoreTest(data),
            "local": MultiResolutionGaps(data),
        }
        self.n_columns = len(self.components)
        self.supports = self.supports | (kernel_error.supports & {"counts"})

    @property
    def numbers_per_draw(self) -> int:
        return self.kernel_error.numbers_per_draw  # the other components hold fewer

    @property
    def sums(self) -> BlockSums | None:
        by_name: dict[str, Any] = {name: entry.sums for name, entry in self.components.items()}
        if None in by_name.values():
            return None

        def update(totals: dict[str, Any], rows: np.ndarray, labels: np.ndarray) -> None:
            for name, sums in by_name.items():
                sums.update(totals[name], rows, labels)

        return BlockSums(
            sum(sums.size for sums in by_name.values()),
            lambda n_draws: {name: sums.init(n_draws) for name, sums in by_name.items()},
            update,
            lambda totals: np.column_stack(
                [sums.values(totals[name]) for name, sums in by_name.items()]
            ),
        )

    def with_data(self, data: ClassData) -> "Omnibus":
        return Omnibus(data, self.kernel_error.with_data(data), self.kernel_method)

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        return np.column_stack([component(labels) for component in self.components.values()])

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        values = [component.flip_signs(signs) for component in self.components.values()]
        return np.column_stack(values)

    def combine_components(
        self, observed: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The evidence of all components together, for each row of values (B + 1, C).

        The mean of the reciprocal p-values is about that of the smallest one, but larger if several
        are small. No p-value is below 1/(B + 1), however large the value is: so the reciprocal is
        multiplied by one plus the distance to the next value, in standard deviations.
        """
        p_values, distance = np.empty((2, *values.shape))
        for c, component in enumerate(self.components.values()):
            sides_and_ties = component.is_two_sided, component.tie_tolerance
            p_values[:, c], distance[:, c] = compute_p_values(values[:, c], *sides_and_ties)
        # adjusted for their number: the share of rows whose smallest p-value is as small
        smallest = np.sort(p_values.min(axis=1))
        adjusted = np.searchsorted(smallest, p_values[0], side="right") / len(smallest)
        names, nulls = self.components, np.ascontiguousarray(values[1:].T)
        return np.average((1 + distance) / p_values, axis=1, weights=self.weights), {
            "kernel_method_": self.kernel_method,
            "component_p_values_": dict(zip(names, p_values[0].tolist(), strict=True)),
            "adjusted_p_values_": dict(zip(names, adjusted.tolist(), strict=True)),
            "component_statistics_": dict(zip(names, observed[0].tolist(), strict=True)),
            "component_null_distributions_": dict(zip(names, nulls, strict=True)),
        }


class SeveralBandwidths(Omnibus):
    """The squared kernel errors with several bandwidths, (R, C), which count alike."""

    def __init__(self, errors: dict[str, Statistic], kernel_method: str) -> None:
        error_list = list(errors.values())
        self.data, self.components, self.kernel_method = error_list[0].data, errors, kernel_method
        self.n_columns, self.weights = len(error_list), [1.0] * len(error_list)
        self.supports = error_list[0].supports - {"pair-terms"}

    @property
    def numbers_per_draw(self) -> int:
        held = [component.numbers_per_draw for component in self.components.values()]
        return max(held) if self.sums is None else sum(held)

    def with_data(self, data: ClassData) -> "SeveralBandwidths":
        errors = {name: error.with_data(data) for name, error in self.components.items()}
        return SeveralBandwidths(errors, self.kernel_method)


def several_bandwidths(data: ClassData, options: dict[str, Any]) -> SeveralBandwidths:
    """The squared kernel errors with the median distance as bandwidth, and shares of it."""
    median = resolve_bandwidth(data, options["kernel"], "median")
    errors = {
        name: make_kernel_error(data, **options | {"bandwidth": share * median})
        for name, share in _BANDWIDTHS.items()
    }
    return SeveralBandwidths(errors, options["method"])


def compute_p_values(
    values: np.ndarray, is_two_sided: bool, tie_tolerance: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """P-values of all values (B + 1,) among themselves, and how far each lies beyond all others.

    A p-value is the share of values that are at least as large, or twice the smaller share of both
    sides for what has a sign. The distance is that to the next value in standard deviations; it is
    0 except for the largest value and, for what has a sign, the smallest.
    """
    is_finite, ordered, n = np.isfinite(values), np.sort(values), len(values)
    slack = max(TIE_RTOL * np.abs(values).max(where=is_finite, initial=0.0), tie_tolerance)
    p_values = (n - np.searchsorted(ordered, values - slack, side="left")) / n
    # infinite values are ties, and NaN exceeds no slack
    with np.errstate(invalid="ignore", over="ignore"):
        deviation = max(np.std(values, where=is_finite), np.finfo(np.float64).tiny)
        distance = values - ordered[-2]
        if is_two_sided:
            distance = np.maximum(distance, ordered[1] - values)
    if is_two_sided:
        below = np.searchsorted(ordered, values + slack, side="right") / n
        p_values = np.minimum(2 * np.minimum(p_values, below), 1.0)
    return p_values, np.where(distance > slack, distance, 0.0) / deviation


class PooledKernelError(ResidualStatistic):
    """The squared kernel error of two classes, with predictions moved to the mean of their cell.

    For many samples, whose exact error would take longer than drawing the labels: there are 4096
    cells of equal mass.
    """

    def __init__(self, data: ClassData, *, kernel: Any, bandwidth: float | str) -> None:
        resolved = resolve_bandwidth(data, kernel, bandwidth)
        super().__init__(data, kernel=kernel, bandwidth=resolved)
        self.length = max(resolved, MIN_KERNEL_BANDWIDTH) / SIMPLEX_KERNELS[kernel].per_probability
        self.cells = BinnedResiduals(data.proba, data.weight, data.squares, data.label, _MAX_CELLS)
        self.points = self.cells.expected / self.cells.mass

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        return self._values_from_cells(self.cells.bin_hits(labels))

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        return self._values_from_cells(self.cells.flip_signs(signs))

    def _values_from_cells(self, mass: np.ndarray) -> np.ndarray:
        """Values (R,) of sums of residuals (R, cells)."""
        pairs = SIMPLEX_KERNELS[self.options["kernel"]].pair_sum(self.points, mass, self.length)
        return 2 * (pairs + np.einsum("rn,rn->r", mass, mass))


def omnibus(
    data: ClassData,
    *,
    n_resamples: int = 999,
    seed: Callable[[], int] = int,
    kernel: Any = "total-variation",
    bandwidth: Any = "median",
    estimation: str = "unbiased",
    class_kernel: np.ndarray | None = None,
) -> Omnibus:
    """The omnibus statistic, with a user's options of its kernel error.

    That is the exact squared kernel error. Where it would take long, the error of pooled
    predictions takes its place for two classes, and else that of random features.
    """
    error: Statistic
    n, method = len(data.weight), "exact"
    options = {
        "kernel": kernel,
        "bandwidth": bandwidth,
        "estimation": "biased" if n == 1 else estimation,
        "class_kernel": class_kernel,
    }
    is_plain = class_kernel is None and estimation == "unbiased" and not callable(kernel)
    is_fast = is_plain and data.is_binary and SIMPLEX_KERNELS[kernel].pair_sum
    n_products = n**2 * len(data.classes) * int(n_resamples)
    if is_fast and n > _MAX_CELLS:
        error, method = (PooledKernelError(data, kernel=kernel, bandwidth=bandwidth), "pooled")
    elif is_plain and not is_fast and kernel in KERNELS and n_products > _MULTIPLICATIONS:
        method = "fourier"
        error = make_kernel_error(
            data, method=method, n_components=_N_COMPONENTS, random_state=seed(), **options
        )
    else:
        error = SquaredKernelError(data, **options)
    return Omnibus(data, error, method)
