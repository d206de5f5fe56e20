"""Recalibration of the levels of forecasts: by their transforms, or quantile by quantile."""

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from scipy.stats import chi2

from .. import forecasts
from .._data import ForecastData, check_forecasts
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Interval, estimator_class
from .._inputs.warnings import warn
from .._numerics import pit_maps
from .._numerics.pit import normal_scores
from .._numerics.pit_maps import greatest_rank, least_rank
from ..forecasts import Forecast
from ..forecasts._derived import AffineForecast
from ..forecasts._quantile import check_quantile_levels
from ..forecasts._transformed import apply_level_map
from ._base import ForecastRecalibrator, check_enough_outcomes, warn_unless_inside

# The log-odds of the least positive number.
_MAX_LOG_ODDS_OF_LEVEL = 744.0


@estimator_class()
class PITRecalibrator(ForecastRecalibrator):
    r"""Maps the levels of forecasts, so that the outcomes' levels are uniform.

    A forecast of cdf F becomes one of cdf R∘F. The map R is learned from the probability integral
    transforms (PIT) u = F(y) of outcomes, and is the same for all samples.

    Parameters
    ----------
    method : {"conformal", "beta"}, default="conformal"
        "conformal": R has the value k/(n + 1) at the k-th smallest of n transforms; its intervals
        have guaranteed coverage (see Notes), and it has no density. It takes continuous forecasts,
        and a :class:`~skcalib.forecasts.ResidualForecast`.
        "beta": a smooth map of three parameters, which keeps densities; it also takes ensembles,
        whose members get other weights, and discrete forecasts.

    Attributes
    ----------
    map_ : object
        The fitted map R, a function of log u − log(1 − u).

    See Also
    --------
    LocationScaleRecalibrator : Comes first if standard deviations are much too small.
    QuantileRecalibrator : The same coverage from the quantiles of any forecast.

    Notes
    -----
    **Conformal** is the recalibration of [1]_ with n + 1 in place of n; for predictions that are
    numbers it is split conformal prediction. Transforms are interpolated on the scale :math:`\log u
    - \log(1 - u)`. The `quantiles` of the result are :math:`F^{-1}(u_{(k)})` with :math:`k = \lceil
    (n+1)α \rceil`, and

    .. math:: α \le P(y \le F^{-1}(u_{(k)})) \le α + \frac{1}{n + 1}.

    An `interval`, between the ranks :math:`\lfloor (n+1)(1-p)/2 \rfloor` and :math:`\lceil (n+1)
    (1+p)/2 \rceil`, covers at least p; between two `quantiles` it may be 1/(n + 1) less. Where a
    rank does not exist the end is infinite. This holds on average over samples, if the samples here
    and new ones are exchangeable, have equal weights, and were used neither to fit the model, nor
    for a step before this one, nor to choose it; the upper bound also needs transforms without
    ties. With unequal weights nothing is guaranteed. `cdf`, `ppf`, the mean and the score
    interpolate between ranks, without these bounds.

    **Beta** is :math:`\mathrm{logit}\, R(u) = a \log u - b \log(1 - u) + c` with a, b > 0 [2]_, by
    the largest mean of :math:`\log R'(u)`. The density is :math:`f R'(F)`. For ensembles, discrete
    and censored forecasts the likelihood is that of the intervals in which the transforms lie.

    The cost is that of sorting, or of some 20 sums over the samples.

    References
    ----------
    .. [1] Kuleshov, Fenner and Ermon (2018). Accurate uncertainties for deep learning using
       calibrated regression. :arxiv:`1807.00263`
    .. [2] Kull, Silva Filho and Flach (2017). Beta calibration. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.forecasts import GaussianForecast
    >>> from skcalib.recalibration import PITRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> y = rng.exponential(size=199)
    >>> forecast = GaussianForecast(np.ones(199), np.ones(199))
    >>> recalibrated = PITRecalibrator().fit(forecast, y).transform(forecast)
    >>> recalibrated.quantiles([0.1, 0.5, 0.9])[0].round(2)
    array([0.11, 0.8 , 2.64])
    """

    method: Literal["conformal", "beta"] = "conformal"

    def _fit(self, data: ForecastData) -> None:
        forecast, weight = data.forecast, data.weight
        check_has_cdf(forecast)
        if self.method == "conformal":
            self.map_: Any = pit_maps.fit_conformal(
                check_log_odds(data), weight, data.inverse_effective_size
            )
            return
        check_enough_outcomes(data, "to fit a curve")
        if forecast.is_continuous:
            self.map_, is_inside = pit_maps.fit_beta(check_log_odds(data), weight)
        else:
            lower, upper = _level_intervals(data)
            z = forecast._log_odds(data.value[:, None])[:, 0]
            self.map_, is_inside = pit_maps.fit_beta_to_intervals(lower, upper, z, weight)
        warn_unless_inside(self, is_inside, "the transforms are too few or too much alike")

    def _map(self, forecast: Forecast) -> Forecast:
        check_has_cdf(forecast)
        if not self.map_.has_density:
            forecast = as_continuous(forecast)
        return apply_level_map(forecast, self.map_)


def check_has_cdf(forecast: Forecast) -> None:
    if forecast._has_quantiles_only:
        raise ValueError(
            "X must be a forecast with a cdf; found QuantileForecast, which has levels only. Use "
            "QuantileRecalibrator."
        )


def as_continuous(forecast: Forecast) -> Forecast:
    """A continuous forecast; of shared residuals one with the same ranks, those of y − location."""
    if isinstance(forecast, forecasts.ResidualForecast):
        std = forecast.std()
        return forecasts.GaussianForecast(forecast.mean(), np.where(std > 0, std, 1.0))
    if not forecast.is_continuous:
        raise ValueError(
            f"X must be a continuous forecast for method='conformal'; found "
            f"{type(forecast).__name__}, by which single outcomes have positive probability, so "
            "that ranks tie. Pass method='beta', or use QuantileRecalibrator(levels=...)."
        )
    return forecast


def check_log_odds(data: ForecastData) -> np.ndarray:
    """The log-odds (n,) of the outcomes' levels, which must be finite."""
    forecast = as_continuous(data.forecast)
    z = forecast.pit_log_odds(data.value)
    if isinstance(forecast, AffineForecast):  # which may have moved the support
        z = np.clip(z, -_MAX_LOG_ODDS_OF_LEVEL, _MAX_LOG_ODDS_OF_LEVEL)
    if not np.isfinite(z).all():
        row = int(np.argmin(np.isfinite(z)))
        raise ValueError(
            f"y must hold outcomes that are possible by their forecasts; found "
            f"{data.value[row]:.6g} in row {row}, whose level is 0 or 1. Use forecasts with wider "
            "support, or a LocationScaleRecalibrator before this one."
        )
    return z


def _level_intervals(data: ForecastData) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of positive length in which the outcomes' levels lie."""
    forecast = data.forecast
    lower, upper = forecast.pit_bounds(data.value)
    if forecast.is_exchangeable:
        return lower, upper
    if isinstance(forecast, forecasts.EnsembleForecast | forecasts.ResidualForecast):
        size = 1 / (forecast.weights**2).sum(axis=-1)
        return size * lower / (size + 1), (size * upper + 1) / (size + 1)
    return lower, upper


def normal_score_p_value(data: ForecastData) -> float:
    """The two-sided p-value of Σz², by χ², where z is the normal score of an outcome's level.

    Of a level in an interval, z² is the mean over the interval. That varies less, so that the
    p-value is an upper bound.
    """
    square = 1 + np.sqrt(2) * normal_scores(*_level_intervals(data))[1]
    size = 1 / data.inverse_effective_size
    total = size * float(data.weight @ square)
    return 2 * float(min(chi2.sf(total, size), chi2.cdf(total, size)))


# Levels that sum to 1 but for rounding are the ends of a central interval.
_LEVEL_SUM_ATOL = 1e-9


@estimator_class()
class QuantileRecalibrator(ForecastRecalibrator):
    r"""Adds a constant to the quantiles of each level, so that intervals cover as they say.

    Parameters
    ----------
    level_type : {"quantile", "interval"}, default="quantile"
        "quantile": the quantiles of each level are moved by themselves. "interval": the two
        quantiles of a central interval are moved apart by the same distance, which is conformalised
        quantile regression [1]_; levels must be symmetric about 1/2.

    levels : array-like of shape (n_levels,), default=None
        Levels in (0, 1), increasing, at which any forecasts become quantiles. By default those of
        the forecasts, which must be a :class:`~skcalib.forecasts.QuantileForecast`.

    step_size : float, default=0.005
        In :meth:`partial_fit`, how much an outcome outside its interval adds to the probability of
        the interval.

    Attributes
    ----------
    levels_ : ndarray of shape (n_levels,)
        The levels.

    miss_rates_ : ndarray of shape (n_levels // 2,)
        For intervals, from the widest on, the rate of misses :math:`α_t`, which :meth:`partial_fit`
        moves.

    offsets_ : ndarray of shape (n_levels,)
        What is added to the quantiles, in the units of the outcome; infinite where the bound of
        :meth:`partial_fit` needs infinite or empty intervals.

    See Also
    --------
    PITRecalibrator : Whole distributions, whose intervals cover as much.

    Notes
    -----
    By levels, the offset of a level α from 1/2 on is the :math:`\lceil (n+1)α \rceil`-th smallest
    of the n differences :math:`y - q_α`, and below 1/2 the :math:`\lfloor (n+1)α \rfloor`-th. For
    the moved quantiles

    .. math::
        α \le P(y \le q_α + \mathrm{offset}) \le α + \frac{1}{n + 1} \quad (α \ge 1/2), \qquad
        P(y < q_α + \mathrm{offset}) \le α \quad (α < 1/2),

    so the interval between the levels (1 − p)/2 and (1 + p)/2 covers at least p. The upper bound
    needs outcomes without ties. Where moved quantiles cross, those from 1/2 on become the running
    maximum, and those below the running minimum, away from 1/2.

    By intervals, the distance is the :math:`\lceil (n+1)p \rceil`-th smallest of the scores
    :math:`\max(q_{lo} - y, y - q_{hi})`, and the interval covers at least p, and at most :math:`p +
    1/(n+1)` without ties and crossing. Intervals are widened until they are nested. A median stays.

    The bounds hold under the conditions of :class:`PITRecalibrator`. The level α needs at least
    :math:`α/(1 - α)` samples, or :math:`(1 - α)/α` below 1/2. The cost is a sort for each level.

    **Series that drift** are not exchangeable. There :meth:`partial_fit` is adaptive conformal
    inference [2]_: with m rows predicted together and γ the `step_size`, the rate of misses moves
    by :math:`γ \sum (α - \mathrm{miss})`, and the scores of these rows replace the m oldest. For
    any outcomes, the rate of misses of T rows, before crossings are fixed, differs from α by at
    most

    .. math:: \frac{\max(α_1, 1 - α_1) + γm}{γT}.

    If :math:`α_t` is below :math:`1/(n + 1)`, this bound needs an infinite interval, which counts
    as a hit; from 1 on an empty one, which counts as a miss. Instead, :meth:`transform` moves the
    ends out by the largest or the smallest of the n scores; it warns of infinite ones.

    References
    ----------
    .. [1] Romano, Patterson and Candès (2019). Conformalized quantile regression. NeurIPS.
       :arxiv:`1905.03222`
    .. [2] Gibbs and Candès (2021). Adaptive conformal inference under distribution shift. NeurIPS.
       :arxiv:`2106.00170`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.forecasts import QuantileForecast
    >>> from skcalib.recalibration import QuantileRecalibrator
    >>> y = np.arange(1.0, 100.0)
    >>> forecast = QuantileForecast(np.tile([40.0, 50.0, 60.0], (99, 1)), [0.1, 0.5, 0.9])
    >>> QuantileRecalibrator().fit(forecast, y).transform(forecast[:1]).values
    array([[10., 50., 90.]])
    """

    _parameter_constraints = {"step_size": [Interval(Real, 0, 1, closed="right")]}

    level_type: Literal["quantile", "interval"] = "quantile"
    levels: ArrayLike | None = None
    _: KW_ONLY
    step_size: float = 0.005

    def _fit(self, data: ForecastData) -> None:
        self.levels_, self._has_weights = self._check_levels(data.forecast), False
        gap = data.value[:, None] - _quantiles(data.forecast, self.levels_)  # (n, K)
        if self.level_type == "quantile":
            targets, scores = self.levels_, gap
            find_ranks = [least_rank if level >= 0.5 else greatest_rank for level in targets]
        else:
            check_symmetric(self.levels_)
            n_intervals = len(self.levels_) // 2
            self._scores = scores = _interval_scores(gap)[:, :n_intervals]
            targets = 1 - 2 * self.levels_[:n_intervals]
            self.miss_rates_, self._has_weights = 1 - targets, bool(np.ptp(data.weight) > 0)
            find_ranks = [least_rank] * len(targets)
        offsets = np.empty(len(targets))  # infinite where no rank is high enough
        for k, (score, target) in enumerate(zip(scores.T, targets, strict=True)):
            order = np.argsort(score, kind="stable")
            levels = pit_maps.rank_levels(data.weight[order], data.inverse_effective_size)
            offsets[k] = find_ranks[k](score[order], levels, target)
        if self.level_type == "interval":
            offsets = self._make_offsets(offsets)
        check_enough_ranks(offsets, self.levels_, data.n_samples)
        self.offsets_ = offsets

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Follow a series: move the intervals by the outcomes that came in.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts as :meth:`transform` took them since the last call, before recalibration, in
            the order of time.

        y : array-like of shape (n_samples,)
            Their outcomes.

        Returns
        -------
        self : object
            The recalibrator; if it was not fitted before, it is fitted to these rows.
        """
        if not hasattr(self, "offsets_"):
            return self.fit(X, y)
        if self.level_type != "interval" or self._has_weights:
            raise ValueError(
                "partial_fit must follow a fit with level_type='interval' and equal weights; found "
                f"level_type={self.level_type!r}{', and unequal weights' * self._has_weights}. Fit "
                "all samples again, or pass level_type='interval' without weights."
            )
        data = check_forecasts(y, X, names=("y", "X"))
        n_intervals, n = len(self.levels_) // 2, len(self._scores)
        gap = data.value[:, None] - self._check_quantiles(data.forecast)
        scores = _interval_scores(gap)[:, :n_intervals]
        is_miss = scores > self.offsets_[::-1][:n_intervals]
        expected = 2 * self.levels_[:n_intervals]
        rates = self.miss_rates_ + self.step_size * (expected - is_miss).sum(axis=0)
        self._scores = np.concatenate([self._scores, scores])[-n:]
        ranks = np.ceil((n + 1) * (1 - rates) * (1 - 1e-12)).astype(int)
        ends = ((-np.inf, np.inf), (0, 0))
        padded = np.pad(np.sort(self._scores, axis=0), ((1, 1), (0, 0)), constant_values=ends)
        distance = padded[np.clip(ranks, 0, n + 1), np.arange(n_intervals)]
        self.miss_rates_, self.offsets_ = rates, self._make_offsets(distance)
        return self

    def _make_offsets(self, distance: np.ndarray) -> np.ndarray:
        """Shifts of all quantiles (K,) that move the ends of intervals out by distances."""
        median = np.zeros(len(self.levels_) % 2)
        return np.concatenate([-distance, median, distance[::-1]])

    def _check_quantiles(self, forecast: Forecast) -> np.ndarray:
        """The quantiles (n, K) that are moved."""
        if not np.array_equal(self._check_levels(forecast), self.levels_):
            raise ValueError(
                "X must have the levels that it had at fit, as their quantiles are moved; found "
                "others. Forecast quantiles at the same levels."
            )
        return _quantiles(forecast, self.levels_)

    def _map(self, forecast: Forecast) -> Forecast:
        offsets = self.offsets_
        if not np.isfinite(offsets).all():  # only partial_fit leads there
            distance = -offsets[: len(self.levels_) // 2]
            if (distance == np.inf).any():
                warn(
                    "Intervals were missed so often that some would have to be infinite now: they "
                    f"are moved out by the largest of the last {len(self._scores)} scores, and may "
                    "be missed too often. Fit again to recent samples, or choose a smaller "
                    "step_size."
                )
            ends = self._scores.min(axis=0), self._scores.max(axis=0)
            offsets = self._make_offsets(np.clip(distance, *ends))
        quantiles = self._check_quantiles(forecast) + offsets
        if self.level_type == "quantile":
            return forecasts.QuantileForecast(_enforce_order(quantiles, self.levels_), self.levels_)
        return forecasts.QuantileForecast(_enforce_nesting(quantiles), self.levels_)

    def _check_levels(self, forecast: Forecast) -> np.ndarray:
        if self.levels is not None:
            return check_quantile_levels(self.levels, np.size(self.levels))
        if not forecast._has_quantiles_only:
            raise ValueError(
                f"levels must be given for forecasts that are no grid of quantiles; found None, "
                f"and {type(forecast).__name__} as X. Pass levels=[0.05, 0.5, 0.95]."
            )
        return forecast.levels


def _interval_scores(gap: np.ndarray) -> np.ndarray:
    """Distances of outcomes outside of each interval, (n, K) in the column of its lower end."""
    return np.maximum(-gap, gap[:, ::-1])


def _quantiles(forecast: Forecast, levels: np.ndarray) -> np.ndarray:
    """(n, K); those of a grid are not interpolated at its own levels, not even to the same."""
    if forecast._has_quantiles_only and np.array_equal(forecast.levels, levels):
        return forecast.values
    return forecast.quantiles(levels)


def _enforce_order(quantiles: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Quantiles (n, K) that rise: only higher from the level 1/2 on, and only lower below it."""
    first, quantiles = int(np.searchsorted(levels, 0.5)), quantiles.copy()
    low, high = quantiles[:, : first + 1], quantiles[:, first:]
    low[:] = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
    high[:] = np.maximum.accumulate(high, axis=1)
    return quantiles


def _enforce_nesting(quantiles: np.ndarray) -> np.ndarray:
    """Quantiles (n, K) whose central intervals contain the inner ones."""
    n_low = quantiles.shape[1] // 2
    low, high = quantiles[:, :n_low].copy(), quantiles[:, ::-1][:, :n_low].copy()
    middle = quantiles[:, n_low : quantiles.shape[1] - n_low]  # a median, or none
    centre = middle if middle.shape[1] else (low[:, -1:] + high[:, -1:]) / 2
    low[:, -1:] = np.minimum(low[:, -1:], centre)
    high[:, -1:] = np.maximum(high[:, -1:], centre)
    low = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
    high = np.maximum.accumulate(high[:, ::-1], axis=1)
    return np.hstack([low, middle, high])


def check_symmetric(levels: np.ndarray) -> None:
    if len(levels) < 2 or np.abs(levels + levels[::-1] - 1).max() > _LEVEL_SUM_ATOL:
        raise ValueError(
            "levels must lie symmetrically about 1/2 for level_type='interval', such as [0.05, "
            f"0.5, 0.95]; found {levels.tolist()!r:.80}. Pass level_type='quantile'."
        )


def least_samples(levels: np.ndarray) -> int:
    """The number of samples from which on all ranks exist, if quantiles are moved one by one."""
    highest = max(levels.max(), 1 - levels.min() if levels.min() < 0.5 else 0.0)
    return int(np.ceil(highest / (1 - highest) * (1 - 1e-9)))


def check_enough_ranks(offsets: np.ndarray, levels: np.ndarray, n: int) -> None:
    if not np.isfinite(offsets).all():
        level = levels[~np.isfinite(offsets)][-1]
        rank = "⌈(n + 1) level⌉ must be at most n"
        if offsets[~np.isfinite(offsets)][-1] < 0:
            rank = "⌊(n + 1) level⌋ must be at least 1"
        raise ValueError(
            f"y must hold more outcomes for a bound at the level {level:.6g}: the rank {rank}; "
            f"found n_samples={n}. Collect more, or leave out the outermost levels."
        )
