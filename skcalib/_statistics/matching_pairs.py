"""The terms ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij of pairs of samples, with any kernel."""

from typing import Any, NamedTuple

import numpy as np

from .._numerics.crps import gauss_legendre
from .._numerics.laplace import MemberKernelMeans
from .._numerics.matching import (
    interval_mean,
    mixture_kernel_mean,
    normal_kernel_mean,
    uniform_pair_mean,
)
from ..forecasts import Forecast
from ..forecasts._base import Components
from .matching_features import NODES, pit_intervals

# Entries of a block of kernel values.
_MAX_PAIR_BLOCK_ENTRIES = 2**20

# Nodes for the PITs of one outcome of positive probability.
_NODES_OF_ATOM = 16


class OutcomePairs:
    """Outcomes and forecasts with any kernel, pair by pair."""

    def __init__(self, forecast: Forecast, kernel: Any, bandwidth: float) -> None:
        self.kernel, self.bandwidth = kernel, bandwidth
        components = forecast.components()
        if callable(kernel) and components.variance.any():  # it takes single values only
            components = Forecast.components(forecast)
        self.components = Components(*(np.ascontiguousarray(array) for array in components))
        self.has_spread = bool(components.variance.any())
        self.atoms = None
        if kernel in ("laplacian", "energy") and not self.has_spread:
            atoms = components.location, components.weight
            self.atoms = MemberKernelMeans(kernel, bandwidth, *atoms)

    def forecast_pairs(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """c_ij, (a, b)."""
        other = Components(*(array[columns] for array in self.components))
        value = np.zeros((len(rows), len(columns)))
        size = max(1, _MAX_PAIR_BLOCK_ENTRIES // value.size)
        for start in range(0, other.location.shape[1], size):
            location, variance, weight = (array[:, start : start + size] for array in other)
            means = self._means(rows, location.ravel(), variance.ravel())
            value += np.einsum("abc,bc->ab", means.reshape(len(rows), *weight.shape), weight)
        return value

    def _means(
        self, rows: np.ndarray, location: np.ndarray, variance: np.ndarray | None = None
    ) -> np.ndarray:
        """E ℓ(Y_i, Z_j) for forecasts of some rows and normal Z_j, (a, b)."""
        if self.atoms is not None:
            return self.atoms.means(rows, location)
        components = Components(*(array[rows] for array in self.components))
        value = np.zeros((len(rows), len(location)))
        size = max(1, _MAX_PAIR_BLOCK_ENTRIES // value.size)
        for start in range(0, components.location.shape[1], size):
            centre, spread, weight = (array[:, start : start + size] for array in components)
            if callable(self.kernel):
                values = np.asarray(self.kernel(centre.reshape(-1, 1), location[:, None]))
                values = values.reshape(len(rows), -1, len(location))
                value += np.einsum("acb,ac->ab", values, weight)
                continue
            deviation = None
            if self.has_spread:
                spread = spread[:, :, None]
                deviation = np.sqrt(spread if variance is None else spread + variance)
            normals = centre, deviation, weight
            value += mixture_kernel_mean(self.kernel, self.bandwidth, *normals, location)
        return value

    def points(self, values: np.ndarray) -> np.ndarray:
        """The outcomes (R, n) as all other methods take them."""
        return values

    def _kernel_of(self, values: np.ndarray, other: np.ndarray) -> np.ndarray:
        """ℓ of outcomes (a,) and (b,), (a, b)."""
        if callable(self.kernel):
            return np.array(self.kernel(values[:, None], other[:, None]), dtype=np.float64)
        return normal_kernel_mean(self.kernel, values[:, None] - other, None, self.bandwidth)

    def gaps(self, value: np.ndarray, rows: np.ndarray, grid: np.ndarray) -> np.ndarray:
        """ℓ(y_i, t) − e_i(t) at the points t of a grid, (a, b)."""
        return self._kernel_of(value[rows], grid) - self._means(rows, grid)

    def outcome_pairs(self, value: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i), (a, b)."""
        row_values, other = value[rows], value[columns]
        pairs = self._kernel_of(row_values, other)
        pairs -= self._means(rows, other)
        pairs -= self._means(columns, row_values).T
        return pairs


class _Nodes(NamedTuple):
    """Gauss–Legendre nodes of intervals of PITs; each of the distinct intervals is held once."""

    points: np.ndarray  # (m, k)
    share: np.ndarray  # (k,), sums to 1
    which: np.ndarray  # (n,), the interval of each sample


def _nodes_of(low: np.ndarray, high: np.ndarray) -> _Nodes:
    """The nodes of the intervals [low, high], (n,) each; points themselves without widths."""
    if (low == high).all():
        return _Nodes(low[:, None], np.ones(1), np.arange(len(low)))
    ends, which = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
    node, share = gauss_legendre(_NODES_OF_ATOM)
    return _Nodes(ends[:, :1] + np.diff(ends) * node, share, which.ravel())


class UniformPairs:
    """PITs and the uniform distribution with any kernel, pair by pair."""

    def __init__(self, forecast: Forecast, kernel: Any, bandwidth: float) -> None:
        self.forecast, self.kernel, self.bandwidth = forecast, kernel, bandwidth
        node, share = gauss_legendre(NODES)
        self.uniform = _Nodes(node[None], share, np.zeros(1, dtype=np.intp))

    def points(self, values: np.ndarray) -> np.ndarray:
        """The intervals of the PITs of outcomes (R, n), (R, n, 2)."""
        return np.stack(pit_intervals(self.forecast, values), axis=-1)

    def forecast_pairs(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if callable(self.kernel):
            mean = self._kernel_means(self.uniform, self.uniform)[0, 0]
        else:
            mean = uniform_pair_mean(self.kernel, self.bandwidth)
        return np.full((len(rows), len(columns)), mean)

    def _kernel_means(self, rows: _Nodes, columns: _Nodes) -> np.ndarray:
        """The mean of the user's kernel over the nodes of rows and columns, (a, b)."""
        value = np.empty((len(rows.points), len(columns.points)))
        n_nodes = len(columns.share)
        size = max(1, _MAX_PAIR_BLOCK_ENTRIES // (rows.points.size * n_nodes))
        for start in range(0, len(columns.points), size):
            points = columns.points[start : start + size]
            values = self.kernel(rows.points.reshape(-1, 1), points.reshape(-1, 1))
            values = np.array(values, dtype=np.float64)
            values = values.reshape(*rows.points.shape, len(points), n_nodes) @ columns.share
            value[:, start : start + size] = np.einsum("akb,k->ab", values, rows.share)
        return value[rows.which][:, columns.which]

    def _kernel_of(self, intervals: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The mean of ℓ over two intervals, (a, 2) and (b, 2), (a, b)."""
        if callable(self.kernel):
            return self._kernel_means(_nodes_of(*intervals.T), _nodes_of(*other.T))
        ends = intervals[:, :1], intervals[:, 1:], other[:, 0], other[:, 1]
        return interval_mean(self.kernel, self.bandwidth, *ends)

    def _means(self, intervals: np.ndarray) -> np.ndarray:
        """E ℓ(U, u), (a,)."""
        if callable(self.kernel):
            return self._kernel_means(_nodes_of(*intervals.T), self.uniform)[:, 0]
        low, high = intervals.T
        return interval_mean(self.kernel, self.bandwidth, low, high, np.zeros(1), np.ones(1))

    def gaps(self, value: np.ndarray, rows: np.ndarray, grid: np.ndarray) -> np.ndarray:
        """ℓ(u_i, t) − E ℓ(U, t) at the points t of a grid, (a, b)."""
        points = np.column_stack([grid, grid])
        return self._kernel_of(value[rows], points) - self._means(points)

    def outcome_pairs(self, value: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """ℓ(u_i, u_j) − E ℓ(U, u_j) − E ℓ(u_i, U), (a, b)."""
        row_intervals, other = value[rows], value[columns]
        pairs = self._kernel_of(row_intervals, other) - self._means(row_intervals)[:, None]
        return pairs - self._means(other)
