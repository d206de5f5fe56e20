"""Recalibration of quantiles, level by level or by central intervals."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.scikit_learn import StrOptions
from .._numerics.pit_maps import least_rank, rank_levels
from ..forecasts import Forecast, QuantileForecast
from ..forecasts._data import ForecastData
from ..forecasts._quantile import check_grid
from ._base import ForecastRecalibrator

# Levels that sum to 1 but for rounding are the ends of a central interval.
_ROUNDING = 1e-9


class QuantileRecalibrator(ForecastRecalibrator):
    r"""Adds a constant to the quantiles of each level, so that coverage is guaranteed.

    Parameters
    ----------
    method : {"levels", "intervals"}, default="levels"
        "levels": each quantile is moved by itself. "intervals": the two quantiles of a central
        interval are moved apart by the same distance, which is conformalised quantile regression
        [1]_; the levels must then lie symmetrically about 1/2.

    levels : array-like of shape (n_levels,), default=None
        Levels in (0, 1), increasing. By default those of the forecasts, which must then be a
        :class:`~skcalib.forecasts.QuantileForecast`. With levels, forecasts of any kind can be
        recalibrated; the result is a grid of quantiles.

    Attributes
    ----------
    levels_ : ndarray of shape (n_levels,)
        The levels.

    offsets_ : ndarray of shape (n_levels,)
        What is added to the quantiles, in the units of the outcome.

    See Also
    --------
    PITRecalibrator : The same guarantee for whole distributions.

    Notes
    -----
    By levels, the offset of the level α is the :math:`\lceil (n+1)α \rceil`-th smallest of the n
    differences :math:`y - q_α`, and for the moved quantiles

    .. math:: α \le P(y \le q_α + \mathrm{offset}) \le α + \frac{1}{n + 1}.

    Where moved quantiles cross, each becomes the largest of those up to its level, which
    keeps the lower bounds (sorting would not). By intervals, the score is :math:`\max(q_{lo} - y, y
    - q_{hi})`, the distance is its :math:`\lceil (n+1)p \rceil`-th smallest value for the interval
    of probability p, and the moved interval covers at least p, and at most :math:`p + 1/(n+1)`
    without ties and crossing; a median stays as it is. Moved intervals that are not nested become
    the smallest that are, and contain the others.

    The bounds hold exactly if the samples here and new ones are exchangeable, have equal weights,
    and were not used to fit the model. They are on average over samples, not for each. With unequal
    weights, rank k has the level :math:`\sum_{i \le k} w_i / (1 + \sum_i w_i^2)`, and
    nothing is guaranteed. The level α needs at least :math:`α/(1 - α)` samples (by levels, the low
    levels need no more). The cost is that of sorting for each level.

    References
    ----------
    .. [1] Romano, Patterson and Candès (2019). Conformalized quantile regression. NeurIPS.
       :arxiv:`1905.03222`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.forecasts import QuantileForecast
    >>> from skcalib.recalibration import QuantileRecalibrator
    >>> y = np.arange(1.0, 100.0)
    >>> forecast = QuantileForecast(np.tile([40.0, 50.0, 60.0], (99, 1)), [0.1, 0.5, 0.9])
    >>> QuantileRecalibrator().fit(forecast, y).transform(forecast[:1]).values
    array([[10., 50., 90.]])
    >>> QuantileRecalibrator("intervals").fit(forecast, y).transform(forecast[:1]).values
    array([[10., 50., 90.]])
    """

    _parameter_constraints: dict = {
        "method": [StrOptions({"levels", "intervals"})],
        "levels": ["array-like", None],
    }

    def __init__(self, method: str = "levels", levels: ArrayLike | None = None) -> None:
        self.method = method
        self.levels = levels

    def _fit(self, data: ForecastData) -> None:
        self.levels_ = self._check_levels(data.forecast)
        gap = data.value[:, None] - _quantiles(data.forecast, self.levels_)  # (n, K)
        if self.method == "levels":
            targets, scores = self.levels_, gap
        else:
            check_symmetric(self.levels_)
            # for levels up to the median the score of the interval that begins there
            scores = np.maximum(-gap, gap[:, ::-1])
            targets = 1 - 2 * self.levels_[: (len(self.levels_) + 1) // 2]
        offsets = np.array(
            [
                _ranked(score, data.weight, target)
                for score, target in zip(scores.T, targets, strict=False)
            ]
        )
        if self.method == "intervals":
            lower = -offsets[: len(self.levels_) // 2]
            median = np.zeros(len(self.levels_) % 2)
            offsets = np.concatenate([lower, median, -lower[::-1]])
        check_enough_ranks(offsets, self.levels_, data.n_samples)
        self.offsets_ = offsets

    def _map(self, forecast: Forecast) -> Forecast:
        levels = self._check_levels(forecast)
        if not np.array_equal(levels, self.levels_):
            raise ValueError(
                "X must have the levels that it had at fit, as their quantiles are moved; found "
                "others. Forecast quantiles at the same levels."
            )
        moved = _quantiles(forecast, self.levels_) + self.offsets_
        if self.method == "levels":
            return QuantileForecast(np.maximum.accumulate(moved, axis=1), self.levels_)
        return QuantileForecast(_nested(moved), self.levels_)

    def _check_levels(self, forecast: Forecast) -> np.ndarray:
        if self.levels is not None:
            return check_grid(self.levels, np.size(self.levels))
        if not forecast._is_grid:
            raise ValueError(
                f"levels must be given for forecasts that are no grid of quantiles; found None, "
                f"and {type(forecast).__name__} as X. Pass levels=[0.05, 0.5, 0.95]."
            )
        return forecast.levels


def _quantiles(forecast: Forecast, levels: np.ndarray) -> np.ndarray:
    """(n, K); those of a grid are not interpolated at its own levels, not even to the same."""
    if forecast._is_grid and np.array_equal(forecast.levels, levels):
        return forecast.values
    return forecast.quantiles(levels)


def _ranked(score: np.ndarray, weight: np.ndarray, level: float) -> Any:
    """The least score whose rank has at least this level; infinity if there is none."""
    order = np.argsort(score, kind="stable")
    return least_rank(score[order], rank_levels(weight[order]), level)


def _nested(moved: np.ndarray) -> np.ndarray:
    """Quantiles (n, K) whose central intervals contain the inner ones."""
    n_low = moved.shape[1] // 2
    low, high = moved[:, :n_low].copy(), moved[:, ::-1][:, :n_low].copy()
    middle = moved[:, n_low : moved.shape[1] - n_low]  # a median, or none
    centre = middle if middle.shape[1] else (low[:, -1:] + high[:, -1:]) / 2
    low[:, -1:] = np.minimum(low[:, -1:], centre)
    high[:, -1:] = np.maximum(high[:, -1:], centre)
    low = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
    high = np.maximum.accumulate(high[:, ::-1], axis=1)
    return np.hstack([low, middle, high])


def check_symmetric(levels: np.ndarray) -> None:
    if len(levels) < 2 or np.abs(levels + levels[::-1] - 1).max() > _ROUNDING:
        raise ValueError(
            "levels must lie symmetrically about 1/2 for method='intervals', such as [0.05, 0.5, "
            f"0.95]; found {levels.tolist()!r:.80}. Pass method='levels'."
        )


def least_samples(levels: np.ndarray, method: str) -> int:
    """The number of samples from which on all ranks exist."""
    highest = levels.max() if method == "levels" else 1 - 2 * levels.min()
    return int(np.ceil(highest / (1 - highest) * (1 - 1e-9)))


def check_enough_ranks(offsets: np.ndarray, levels: np.ndarray, n: int) -> None:
    if not np.isfinite(offsets).all():
        level = levels[~np.isfinite(offsets)][-1]
        raise ValueError(
            f"y must hold more outcomes for a bound at the level {level:.6g}: the rank ⌈(n + 1) "
            f"level⌉ must be at most n; found n_samples={n}. Collect more, or leave out the "
            "outermost levels."
        )
