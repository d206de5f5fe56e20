"""Forecasts by members: ensembles, and a location with a shared sample of residuals."""

from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from .._inputs.arrays import ArrayLike, check_numbers
from .._numerics.array_api import root_mean_square
from .._numerics.crps import EnsembleScore, count_members, crps_ensemble
from .._numerics.sorting import cumulate
from ._base import MAX_NUMBER, Components, Forecast, ScoreWithSlope

# A location plus a residual misses their sum by less than this share.
_MEMBER_RTOL = 4e-16

# Levels that miss a sum of weights by less than this, which is rounding, count as that sum.
_WEIGHT_SUM_ATOL = 1e-12


class EnsembleForecast(Forecast):
    """Ensembles: several possible outcomes for each sample.

    Parameters
    ----------
    members : array-like of shape (n_samples, n_members)
        Possible outcomes, in the units of the outcome. NaN is a member that is
        missing: each row has as many members as it has numbers, at least two.

    weights : array-like of shape (n_members,) or (n_samples, n_members), default=None
        Weights of the members, not negative. They are divided by their sum. Without weights, the
        members are a sample of a distribution that is not known otherwise (see Notes).

    Attributes
    ----------
    members : ndarray of shape (n_samples, n_members)
        The members; NaN if missing.

    weights : ndarray of shape (n_samples, n_members)
        The weights of the members; rows sum to 1. Missing members have the weight 0.

    See Also
    --------
    ResidualForecast : Members that are the same for all samples, but for their location.

    Notes
    -----
    An ensemble without weights is calibrated if the outcome is exchangeable with the members. So
    :meth:`pit_bounds` gives the interval of the outcome's rank among all of them, [#{<}, #{<} +
    #{=} + 1] / (s + 1), and tests exchange the outcome with members; s is the number of members
    that are not missing. With weights, also equal ones, the outcome is held to be drawn from the
    members.

    `cdf`, `ppf`, :meth:`mean`, :meth:`std` and :meth:`crps` are always those of the members'
    weighted distribution; `crps` with ``estimation="fair"`` is unbiased for the distribution that
    the members were drawn from.

    Examples
    --------
    >>> from skcalib.forecasts import EnsembleForecast
    >>> forecast = EnsembleForecast([[1.0, 2.0, 4.0]])
    >>> forecast.cdf(2.0).round(3), forecast.crps([2.0]).round(3)
    (array([0.667]), array([0.333]))
    >>> forecast.pit_bounds([3.0])
    (array([0.5]), array([0.75]))
    """

    is_continuous = False

    _row_attributes: ClassVar[tuple[str, ...]] = ("members", "weights")

    def __init__(self, members: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.members = check_numbers(members, "members", ndim=2, allow_nan=True, most=MAX_NUMBER)
        is_there = ~np.isnan(self.members)
        counts = is_there.sum(axis=1)
        if counts.min() < 2:
            raise ValueError(
                "members must have at least 2 columns, one for each member, and 2 numbers in each "
                f"row; found {counts.min()} in row {counts.argmin()}. A single prediction is no "
                "distribution: RecalibratedRegressor makes one of its residuals."
            )
        self.weights = normalize_member_weights(weights, self.members.shape)
        if not is_there.all():
            self.weights = normalize_member_weights(self.weights * is_there, self.members.shape)
        self.is_exchangeable = weights is None

    @cached_property
    def _cached_full(self) -> np.ndarray:
        """The members, where a missing one, of weight 0, is a copy of the largest in its row."""
        is_missing = np.isnan(self.members)
        if not is_missing.any():
            return self.members
        return np.where(is_missing, np.nanmax(self.members, axis=1, keepdims=True), self.members)

    @property
    def _has_equal_weights(self) -> bool:
        """True if all members of all rows have the same weight."""
        return self.is_exchangeable and self._cached_full is self.members

    @property
    def _n_members(self) -> int | np.ndarray:
        """Number of members in each row; (n,) if some are missing."""
        return self.members.shape[1] if self._has_equal_weights else (self.weights > 0).sum(axis=1)

    @cached_property
    def _cached_order(self) -> tuple[np.ndarray, np.ndarray]:
        """Return sorted members and their weights, which are sorted where members are equal."""
        if self._has_equal_weights:
            return np.sort(self.members, axis=1), self.weights
        order = np.lexsort((self.weights, self._cached_full))
        members = np.take_along_axis(self._cached_full, order, axis=1)
        return members, np.take_along_axis(self.weights, order, axis=1)

    def _probability(self, y: np.ndarray, *, strict: bool) -> np.ndarray:
        members, weights = self._cached_order
        rank = count_members(y, members, strict=strict)
        return np.take_along_axis(cumulative_weights(weights), rank, axis=1)

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._probability(y, strict=False)

    def _sf(self, y: np.ndarray) -> np.ndarray:
        members, weights = self._cached_order
        n_above = members.shape[1] - count_members(y, members, strict=False)
        return np.take_along_axis(cumulative_weights(weights[:, ::-1]), n_above, axis=1)

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        return ensemble_quantiles(level, *self._cached_order)

    def _pit_bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.is_exchangeable:
            column = y[:, None]
            return self._probability(column, strict=True)[:, 0], self._cdf(column)[:, 0]
        size = self._n_members
        below = (self.members < y[:, None]).sum(axis=1)
        equal = (self.members == y[:, None]).sum(axis=1)
        return below / (size + 1), (below + equal + 1) / (size + 1)

    def _crps(self, y: np.ndarray, *, fair: bool = False) -> np.ndarray:
        members, weights = self._cached_order
        return crps_ensemble(y, members, None if self._has_equal_weights else weights, fair=fair)

    def _make_crps_with_slope(self) -> ScoreWithSlope:
        members, weights = self._cached_order
        return EnsembleScore(members, weights, cumulative_weights(weights))

    def _fair_crps(self, y: np.ndarray) -> np.ndarray:
        if not self.is_exchangeable:
            self._raise_unknown("estimation='fair'", "has weights", "Use estimation='ecdf'.")
        return self._crps(y, fair=True)

    def _wasserstein_points(self) -> np.ndarray:
        if np.ptp(self.weights) > 0:
            return super()._wasserstein_points()
        return np.sort(self.members, axis=1) / np.sqrt(self.members.shape[1])

    def _atoms(self) -> Components:
        return Components(self._cached_full, np.broadcast_to(0.0, self.members.shape), self.weights)

    def _sort_keys(self) -> list[np.ndarray]:
        members, weights = self._cached_order
        return [*members.T] if self._has_equal_weights else [*members.T, *weights.T]


class ResidualForecast(Forecast):
    """A location for each sample, plus residuals that all samples share.

    The forecast of a model that only predicts a number.

    Parameters
    ----------
    location : array-like of shape (n_samples,)
        Predicted outcomes.

    residuals : array-like of shape (n_residuals,)
        Outcomes minus predictions, of samples that the model was not fitted on; at least two.

    weights : array-like of shape (n_residuals,), default=None
        Weights of the residuals, not negative. By default all are equal.

    Attributes
    ----------
    location : ndarray of shape (n_samples,)
        The predicted outcomes.

    residuals : ndarray of shape (n_residuals,)
        The residuals, sorted.

    weights : ndarray of shape (n_residuals,)
        The weights of the residuals; their sum is 1.

    See Also
    --------
    EnsembleForecast : Members of their own for each sample.

    Notes
    -----
    The forecast is the distribution that draws one of the residuals. It takes O(n + m) memory for n
    samples and m residuals, and each value of `cdf` takes O(log m) time.

    Examples
    --------
    >>> from skcalib.forecasts import ResidualForecast
    >>> forecast = ResidualForecast([10.0, 20.0], [-1.0, 0.0, 2.0])
    >>> forecast.ppf(0.9)
    array([12., 22.])
    """

    is_continuous = False

    _row_attributes: ClassVar[tuple[str, ...]] = ("location",)

    def __init__(
        self, location: ArrayLike, residuals: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        self.location = check_numbers(location, "location", ndim=1, most=MAX_NUMBER)
        residuals = check_numbers(residuals, "residuals", ndim=1, most=MAX_NUMBER)
        if len(residuals) < 2:
            raise ValueError(
                "residuals must hold at least 2 values; found 1. Collect the residuals of more "
                "samples."
            )
        order = np.argsort(residuals, kind="stable")
        self.residuals = residuals[order]
        self.weights = normalize_member_weights(weights, (1, len(residuals)))[0][order]

    @property
    def _cumulative(self) -> np.ndarray:
        """The probability of less than each residual, then 1, (m + 1,)."""
        return cumulative_weights(self.weights[None])[0]

    def _count_below(self, y: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
        """Count the residuals below y − location, or at most that. Rounding breaks no tie."""
        location = self.location[:, None]
        slack = np.where(np.isinf(y), 0.0, _MEMBER_RTOL * (np.abs(y) + np.abs(location)))
        gap = y - location + (slack if side == "right" else -slack)
        return np.searchsorted(self.residuals, gap, side=side)

    def _probability(self, y: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
        return self._cumulative[self._count_below(y, side)]

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._probability(y, "right")

    def _sf(self, y: np.ndarray) -> np.ndarray:
        above = cumulative_weights(self.weights[None, ::-1])[0, ::-1]
        return above[self._count_below(y, "right")]

    def _ppf(self, level: np.ndarray) -> np.ndarray:
        flat = ensemble_quantiles(level.reshape(1, -1), self.residuals[None], self.weights[None])
        return self.location[:, None] + flat.reshape(level.shape)

    def mean(self) -> np.ndarray:
        return self.location + self.weights @ self.residuals

    def std(self) -> np.ndarray:
        centred = self.residuals - self.weights @ self.residuals
        return np.full(len(self), root_mean_square(self.weights, centred))

    def _pit_bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        column = y[:, None]
        return self._probability(column, "left")[:, 0], self._probability(column, "right")[:, 0]

    def _crps(self, y: np.ndarray) -> np.ndarray:
        # Σ w |x − d| = d (2F − 1) + mean − 2 Σ_{x ≤ d} w x, from running sums of the residuals
        gap = y - self.location
        index = np.searchsorted(self.residuals, gap, side="right")
        partial = cumulate(self.weights * self.residuals)
        below = self._cumulative[index]
        error = gap * (2 * below - 1) + partial[-1] - 2 * partial[index]
        inner = self._cumulative[1:-1]
        return error - (inner * (1 - inner)) @ np.diff(self.residuals)

    def _atoms(self) -> Components:
        location = self.location[:, None] + self.residuals
        weight = np.broadcast_to(self.weights, location.shape)
        return Components(location, np.zeros_like(location), weight)


def normalize_member_weights(weights: ArrayLike | None, shape: tuple[int, int]) -> np.ndarray:
    """Return weights (n, s) whose rows sum to 1; equal ones by default, one row from (s,)."""
    if weights is None:
        return np.broadcast_to(1 / shape[1], shape)
    array = check_numbers(weights, "weights")
    if array.shape not in (shape, shape[1:]):
        raise ValueError(
            f"weights must have shape {shape[1:]} or {shape}, one weight for each column; found "
            f"shape {array.shape}. Pass the same weights for all rows, or a row for each."
        )
    array = np.broadcast_to(array, shape)
    total = array.sum(axis=1, keepdims=True)
    if (array < 0).any() or not (total > 0).all():
        row = int(np.argmax((array < 0).any(axis=1) | (total[:, 0] <= 0)))
        raise ValueError(
            "weights must not be negative, and not all be 0 in a row; found "
            f"{array[row].min():.6g} as the least and {total[row, 0]:.6g} as the sum in row {row}. "
            "Repair the weights."
        )
    return array / total


def cumulative_weights(weight: np.ndarray) -> np.ndarray:
    """Return the weight of the first k members, (n, s + 1) for k from 0 to s.

    It is exactly 0 and 1 at the ends. For weights that are equal, or 0, it is a fraction of the
    members of positive weight, so that equal probabilities are equal to the last bit.
    """
    size = weight.shape[1]
    if weight.strides == (0, 0) or (weight == weight[0, 0]).all():
        return np.broadcast_to(np.arange(size + 1) / size, (len(weight), size + 1))
    if ((weight == 0) | (weight == weight.max(axis=1, keepdims=True))).all():
        weight = weight > 0
    total = cumulate(weight)
    return np.minimum(total / total[:, -1:], 1.0)


def ensemble_quantiles(level: np.ndarray, members: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the least members whose cdf is at least the level, (n, m), of sorted ones (n, s)."""
    if len(members) == 1 or weight.strides[0] == 0:  # all rows have the same weights
        weight = weight[:1]
        index = np.searchsorted(np.cumsum(weight), level - _WEIGHT_SUM_ATOL, side="left")
    else:
        index = count_members(level - _WEIGHT_SUM_ATOL, np.cumsum(weight, axis=1), strict=True)
    first = np.argmax(weight > 0, axis=1)[:, None]  # its member is the quantile of level 0
    return np.take_along_axis(members, np.clip(index, first, members.shape[1] - 1), axis=1)
