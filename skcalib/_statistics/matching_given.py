"""The condition of a form of calibration: points of all samples, a kernel on them, and sums.

`feature_rows(rows)` are the weighted residuals w_i ρ_i of some rows, (R, C, b) for R vectors of
outcomes and C features. All sums are Σ_{i≠j} w_i w_j h_ij and Σ_i w_i² h_ii.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from .._data import AnyData
from .._numerics.array_api import power_of_two, root_mean_square
from .._numerics.matching import distance_pair_sum
from .._numerics.median_distance import median_distance
from ..forecasts import Forecast
from ..forecasts._decisions import argmin_first, class_expected_losses
from .gram import compute_pivoted_cholesky, gram_diagonal, gram_pair_sum, random_frequencies
from .kernels import KERNELS, Kernel, check_kernel, kernel_values
from .matching_checks import MatchingOptions

# A kernel matrix is replaced by the products of at most this many features per sample, if the
# weighted trace of the rest is at most the tolerance; the trace of the whole is 1.
_MAX_CONDITION_FEATURES = 256
_TOLERANCE = 1e-12

# Points in more dimensions need more features than that.
_MAX_DIMENSIONS = 3

# Features of this many entries are held at once (128 MB).
_HELD = 2**24

# Thresholds of threshold calibration, and levels of each forecast that is represented by quantiles.
N_THRESHOLDS = 64
LEVELS = (np.arange(N_THRESHOLDS) + 0.5) / N_THRESHOLDS

# Quantiles of all forecasts that are pooled to find the thresholds.
_POOLED = 2**20

# Sums of weights, which sum to 1, are rounded by less.
_POOLED_SHARE_ATOL = 1e-12

# A column of points is constant if it varies by less than this share of its largest entry.
_CONSTANT_COLUMN_RTOL = 1e-12

# Features of residuals of this many entries are computed at once (4 MB).
_MAX_CONDITION_ENTRIES = 2**19

# Fewer rows at once are not faster.
_MIN_BLOCK_ROWS = 64

# Up to this many samples the threshold kernel is evaluated for pairs.
_MAX_THRESHOLD_PAIRS = 2000

Rows = Callable[[slice], np.ndarray]

Terms = Callable[[np.ndarray, np.ndarray], np.ndarray]  # indices (a,) and (b,) to (a, b)


class ConditionKernel(NamedTuple):
    """Points (n, d) and the kernel k on them.

    `features(rows)` are vectors (b, m) whose inner products are k, exactly or on average: with
    them sums over all pairs of samples take linear time. They are None if there are none.
    """

    points: np.ndarray
    kernel: Kernel
    diagonal: np.ndarray  # k_ii, or the squared norms of the features
    features: Callable[[slice], Any] | None = None
    is_of_thresholds: bool = False  # points are probabilities, and k is 1 − their mean distance
    bandwidth: float | None = None  # of a kernel whose random waves are multiplied by those of ℓ
    raw: np.ndarray | None = None  # points as they came, if points are (raw − centre) / spread
    centre: Any = 0.0
    spread: Any = 1.0

    def sums_of_features(self, feature_rows: Rows, n_numbers: int) -> tuple[np.ndarray, np.ndarray]:
        """Both sums, (R,), from features; `n_numbers` of them, R C, belong to each sample."""
        if self.features is not None:  # ‖Σ_i φ_i ⊗ w_i ρ_i‖² less the part of each sample
            total = diagonal = np.zeros(())
            for rows in _blocks(len(self.points), n_numbers):
                mass, features = feature_rows(rows), self.features(rows)  # (R, C, b) and (b, d)
                flat = mass.reshape(-1, mass.shape[2]).astype(features.dtype, copy=False)
                total = total + (features.T @ flat.T).reshape(-1, *mass.shape[:2])
                diagonal = diagonal + np.einsum("rcn,rcn,n->r", mass, mass, self.diagonal[rows])
            return np.einsum("drc,drc->r", total, total) - diagonal, diagonal
        mass = compute_in_blocks(feature_rows, len(self.points), n_numbers)
        diagonal = np.einsum("rcn,rcn,n->r", mass, mass, self.diagonal)
        if self.is_of_thresholds and len(self.points) > _MAX_THRESHOLD_PAIRS:
            total = np.sum(mass.sum(axis=2) ** 2, axis=1)
            sums = [[distance_pair_sum(c, weights) for c in self.points.T] for weights in mass]
            return total - np.mean(sums, axis=1) - diagonal, diagonal
        return gram_pair_sum(self.kernel, self.points, mass.transpose(2, 0, 1)), diagonal

    def sums_of_terms(self, terms: Terms, weight: np.ndarray) -> tuple[float, float]:
        """Both sums from the terms t of pairs, h = k t."""
        index, mass = np.arange(len(weight))[:, None], weight[:, None, None]
        kernel = self.multiply_terms(terms)
        return gram_pair_sum(kernel, index, mass)[0], weight**2 @ gram_diagonal(kernel, index)

    def multiply_terms(self, terms: Terms) -> Kernel:
        """h = k t as a kernel on the indices of samples, (a, 1) and (b, 1) to (a, b)."""

        def kernel(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            i, j = rows[:, 0], columns[:, 0]
            return terms(i, j) * self.kernel(self.points[i], self.points[j])

        return kernel


def compute_in_blocks(feature_rows: Rows, n: int, n_numbers: int) -> np.ndarray:
    """The residuals of all rows, (R, C, n), computed in blocks that stay in the cache."""
    return np.concatenate([feature_rows(rows) for rows in _blocks(n, n_numbers)], axis=2)


def _blocks(n: int, n_numbers: int) -> Iterator[slice]:
    size = max(_MIN_BLOCK_ROWS, _MAX_CONDITION_ENTRIES // n_numbers)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def make_condition_kernel(
    data: AnyData, forecast: Forecast, options: MatchingOptions
) -> ConditionKernel:
    """The kernel on what the form of calibration is conditioned on."""
    form = options.calibration
    if form in ("quantile", "marginal"):
        return constant_kernel(len(data.weight))
    if form == "group":
        groups = np.asarray(data.given)
        _, codes = np.unique(groups, axis=0 if groups.ndim > 1 else None, return_inverse=True)
        return group_kernel(codes.reshape(-1, 1))
    if form == "decision":
        return group_kernel(_actions(data, forecast, options.losses))
    if form == "threshold":
        probability = threshold_probabilities(forecast, data.weight)
        diagonal = np.ones(len(data.weight))
        return ConditionKernel(probability, _mean_agreement, diagonal, is_of_thresholds=True)
    kernel, bandwidth = options.given_kernel, options.given_bandwidth
    if data.given is not None:
        raw = data.given.reshape(len(data.weight), -1)
    elif kernel == "wasserstein":
        raw = forecast._wasserstein_points()
    else:
        raw = forecast._parameters()
    centre: Any = 0.0
    spread: Any = 1.0
    if kernel == "wasserstein":
        kernel = "exponential"
    elif bandwidth == "median":
        centre, spread = standardization(raw, data.weight)
    points = (raw - centre) / spread
    if bandwidth == "median" and not callable(kernel):
        bandwidth = median_of(points, data.weight, kernel)
    if options.method == "exact":
        given = point_kernel(points, data.weight, kernel, bandwidth)
    elif options.kernel != "laplacian":
        given = random_feature_kernel(points, kernel, bandwidth, options.n_components, options.seed)
    else:  # the features of the outcomes will hold random waves of the points
        near = partial(kernel_values, family=KERNELS[kernel], bandwidth=bandwidth)
        given = constant_kernel(len(points))._replace(
            points=points, kernel=near, bandwidth=bandwidth
        )
    return given._replace(raw=raw, centre=centre, spread=spread)


def _actions(data: AnyData, forecast: Forecast, losses: list[Any]) -> np.ndarray:
    """The best action for each loss, (n, L)."""
    if data.is_forecast:
        return np.column_stack([decision.best_for(forecast) for decision in losses])
    tables = [decision.of_classes(data.classes, len(data.classes)) for decision in losses]
    expected = (class_expected_losses(data.matrix, table) for table in tables)
    return np.column_stack([*map(argmin_first, expected)])


def constant_kernel(n: int) -> ConditionKernel:
    """k = 1."""
    return ConditionKernel(np.zeros((n, 1)), _ones, np.ones(n), np.ones((n, 1)).__getitem__)


def _ones(s: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.ones((len(s), len(t)))


def group_kernel(codes: np.ndarray) -> ConditionKernel:
    """The share of the columns of codes (n, L) in which two samples agree; codes are 0, 1, …"""
    n, n_columns = codes.shape
    size = codes.max(axis=0) + 1
    columns = codes + np.concatenate([[0], np.cumsum(size)[:-1]])
    value = np.full(columns.size, 1 / np.sqrt(n_columns))
    start = np.arange(0, columns.size + 1, n_columns)
    features = csr_array((value, columns.ravel(), start), shape=(n, size.sum()))
    return ConditionKernel(codes.astype(np.float64), _agreement, np.ones(n), features.__getitem__)


def _agreement(s: np.ndarray, t: np.ndarray) -> np.ndarray:
    return 1 - cdist(s, t, "hamming")


def _mean_agreement(s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """1 − the mean of |F_i(t) − F_j(t)| over thresholds t, from F (a, T) and (b, T)."""
    return 1 - cdist(s, t, "cityblock") / s.shape[1]


def point_kernel(
    points: np.ndarray, weight: np.ndarray, kernel: Callable | str, bandwidth: float
) -> ConditionKernel:
    """A named or callable kernel on points (n, d)."""
    if callable(kernel):
        check_kernel(kernel, points)
        return ConditionKernel(points, kernel, gram_diagonal(kernel, points))
    family = KERNELS[kernel]
    function = partial(kernel_values, family=family, bandwidth=bandwidth)
    given = ConditionKernel(points, function, np.ones(len(points)))
    most = min(_MAX_CONDITION_FEATURES, len(points) // 2)
    has_few = family.is_gaussian and points.shape[1] <= _MAX_DIMENSIONS
    if not has_few or len(points) * most > _HELD:
        return given
    features, error = compute_pivoted_cholesky(
        function, points, given.diagonal, weight, most, _TOLERANCE
    )
    if error > _TOLERANCE:
        return given
    diagonal = np.einsum("nd,nd->n", features, features)
    return given._replace(features=features.__getitem__, diagonal=diagonal)


def random_feature_kernel(
    points: np.ndarray, kernel: str, bandwidth: float, n_components: int, seed: int | None
) -> ConditionKernel:
    """A named kernel by random Fourier features, of `n_components` frequencies."""
    generator = np.random.default_rng(seed)
    shape = (n_components, points.shape[1])
    frequencies = random_frequencies(KERNELS[kernel], bandwidth, shape, generator)
    features: Callable = partial(_waves_of_rows, points, frequencies)
    if 2 * n_components * len(points) <= _HELD:  # so that tests compute them once
        features = features(slice(None)).__getitem__
    # pairs have the same kernel: a statistic must be one function of all draws
    function = partial(_product_of_waves, frequencies)
    return ConditionKernel(points, function, np.ones(len(points)), features)


def _product_of_waves(frequencies: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    rows = slice(None)
    return _waves_of_rows(s, frequencies, rows) @ _waves_of_rows(t, frequencies, rows).T


def _waves_of_rows(points: np.ndarray, frequencies: np.ndarray, rows: slice) -> np.ndarray:
    """[cos, sin]/√D, (b, 2D), in single precision, whose error the randomness hides by far."""
    turns = points[rows] @ (frequencies.T / (2 * np.pi))
    turns -= np.rint(turns)  # in double precision, as there may be many
    phase = turns.astype(np.float32)
    phase *= np.float32(2 * np.pi)
    n_components = len(frequencies)
    wave = np.empty((len(phase), 2 * n_components), dtype=np.float32)
    np.cos(phase, out=wave[:, :n_components])
    np.sin(phase, out=wave[:, n_components:])
    wave *= np.float32(1 / np.sqrt(n_components))
    return wave


# Points


def standardization(points: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The means of the columns, and their standard deviations; infinite if they are constant."""
    centre = weight @ points
    spread = root_mean_square(weight[:, None], points - centre, axis=0)
    varies = spread > _CONSTANT_COLUMN_RTOL * np.abs(points).max(axis=0)
    return centre, np.where(varies, spread, np.inf)


def median_of(points: np.ndarray, weight: np.ndarray, kernel: str) -> float:
    """The median distance of points in any units; 1 if all are equal."""
    family = KERNELS[kernel]
    shifted = points - points.min(axis=0)
    unit = float(power_of_two(shifted, None).item())
    shifted = (shifted[:, 0] if shifted.shape[1] == 1 else shifted) / unit
    return unit * family.scale * median_distance(shifted, weight, family.metric) or 1.0


def quantile_thresholds(forecast: Forecast, weight: np.ndarray) -> np.ndarray:
    """64 quantiles of all forecasts pooled by the weights (n,), (64,).

    Where the distribution function is flat, a quantile is the middle: a weight of 2 is the same as
    two samples.
    """
    if forecast._has_quantiles_only:
        pooled = forecast.values
    else:
        n_levels = int(np.clip(_POOLED // len(forecast), 4, N_THRESHOLDS))
        pooled = forecast.quantiles((np.arange(n_levels) + 0.5) / n_levels)
    order = np.argsort(pooled, axis=None)
    share = np.cumsum(np.broadcast_to(weight[:, None], pooled.shape).ravel()[order])
    share /= share[-1]
    bounds = LEVELS + _POOLED_SHARE_ATOL * np.array([[-1.0], [1.0]])
    return pooled.ravel()[order][np.searchsorted(share, bounds)].mean(axis=0)


def threshold_probabilities(forecast: Forecast, weight: np.ndarray) -> np.ndarray:
    """F_i(t) at these thresholds t, (n, 64)."""
    thresholds = quantile_thresholds(forecast, weight)
    if forecast._has_quantiles_only:  # nothing is known within cells and beyond them
        n = len(forecast)
        return np.column_stack([forecast._match_scale(np.full(n, t)) for t in thresholds])
    return forecast.cdf(np.broadcast_to(thresholds, (len(forecast), N_THRESHOLDS)))
