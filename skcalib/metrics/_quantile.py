"""Quantile calibration: whether outcomes fall below quantiles as often as forecast. Sharpness."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._data import ForecastData, check_forecasts
from .._inputs.arrays import ArrayLike, format_values
from .._inputs.checks import check_sample_weight
from .._inputs.scikit_learn import validate_params
from .._numerics import pit
from .._numerics.sorting import first_of_ties
from ..forecasts import Forecast, as_forecast
from ..forecasts._base import check_common_levels, check_coverage
from ._registry import register_metric, root_of_estimate

# Levels are equal if they differ by less than this.
_GRID_LEVEL_ATOL = 1e-9

# The levels at which widths are reported.
_REPORTED_LEVELS = (0.5, 0.8, 0.95)

# The norms of the gaps: at all levels, and at the levels of a grid.
_CURVE_NORMS: dict = {"l1": pit.gap_integral, "l2": pit.gap_square_integral, "max": pit.largest_gap}
_GRID_NORMS: dict = {"l1": np.mean, "l2": lambda gap: np.mean(gap**2), "max": np.max}


class Gaps:
    """The mean square gap of quantiles for weights of the samples, at all levels or on a grid."""

    def __init__(self, law: pit.PitLaw, levels: np.ndarray | None) -> None:
        self.levels = levels
        if levels is None:
            self.own_squares = pit.pit_square_integrals(law)  # (n,)
            # neighbours with the same law are merged: ranks have many
            is_first = first_of_ties(law.start) | first_of_ties(law.stop) | first_of_ties(law.inner)
            self.first = np.flatnonzero(is_first)
            self.law = pit.PitLaw(*(x[self.first] for x in law))
            self.width = 2 * len(self.first) + 2
        else:
            gaps = [pit.pit_cdf(law, level) - level for level in levels]
            self.gaps = np.column_stack(gaps)  # (n, K)
            self.own_squares = np.mean(self.gaps**2, axis=1)
            self.width = len(levels)

    def squares(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean square gap for each row of weights (B, n), and its debiased value."""
        if self.levels is None:
            if len(self.first) < weight.shape[1]:
                pooled = np.add.reduceat(weight, self.first, axis=1)
            else:
                pooled = weight
            square = pit.gap_square_integral(pit.pit_curve(self.law, pooled))
        else:
            square = np.mean((weight @ self.gaps) ** 2, axis=1)
        share = np.square(weight)
        return square, divide_by_dof(square - share @ self.own_squares, 1 - share.sum(axis=1))


def divide_by_dof(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return the numerator over 1 − Σ w²; NaN if one sample has all of the weight."""
    out = np.full(numerator.shape, np.nan)
    return np.divide(numerator, denominator, out=out, where=denominator > 1e-12)


def _quantile_calibration_error(
    data: ForecastData,
    norm: str,
    level_type: str,
    levels: ArrayLike | None,
    estimation: str,
    squared: bool,
    signed: bool = False,
) -> float:
    if norm != "l2" and (estimation == "debiased" or squared):
        name = "squared=True" if squared else "estimation='debiased'"
        raise ValueError(
            f"{name} needs norm='l2': it concerns the mean square gap; found norm={norm!r}. Pass "
            f"norm='l2', or leave {name.partition('=')[0]} out."
        )
    if estimation == "debiased" and data.n_samples == 1:
        raise ValueError(
            "estimation='debiased' needs at least 2 samples; found 1 that carries weight. Collect "
            "more samples, or pass estimation='biased'."
        )
    grid = resolve_levels(data.forecast, level_type, levels)
    bounds = data.forecast.pit_bounds(data.value)
    law, weight = pit.pit_laws(*bounds, folded=level_type == "interval"), data.weight
    if grid is None:
        value = _CURVE_NORMS[norm](pit.pit_curve(law, weight))
    else:
        gap = np.array([weight @ (pit.pit_cdf(law, level) - level) for level in grid])
        value = _GRID_NORMS[norm](np.abs(gap))
    if estimation == "debiased":
        own_terms = pit.pit_square_integrals(law) if grid is None else Gaps(law, grid).own_squares
        value = (value - weight**2 @ own_terms) / (1 - data.inverse_effective_size)
    return float(value if norm != "l2" or squared else root_of_estimate(value, signed))


@register_metric(
    _quantile_calibration_error,
    cost="n log n",
    takes=("forecasts",),
    largest=1.0,
    in_report=True,
    clips_square=lambda options: options["estimation"] == "debiased" and not options["squared"],
)
def quantile_calibration_error(
    y_true: ArrayLike,
    y_forecast: object,
    *,
    sample_weight: ArrayLike | None = None,
    norm: Literal["l1", "l2", "max"] = "l1",
    level_type: Literal["quantile", "interval"] = "quantile",
    levels: ArrayLike | None = None,
    estimation: Literal["biased", "debiased"] = "biased",
    squared: bool = False,
) -> float:
    r"""Quantile calibration error (QCE): how far quantiles and intervals miss their coverage.

    It is 0 if, at every level p, a share p of the outcomes lies below the quantile of that level.
    On samples of a calibrated forecast it is positive, of order :math:`n^{-1/2}` (biased upwards;
    see `estimation`). Forecasts that are too wide for some samples and too narrow for others can
    have an error of 0.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Outcomes.

    y_forecast : forecast
        A forecast, as :func:`~skcalib.forecasts.as_forecast` takes it, such as (mean, std).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    norm : {"l1", "l2", "max"}, default="l1"
        Mean absolute gap, root mean square gap, or largest gap over the levels.

    level_type : {"quantile", "interval"}, default="quantile"
        Levels of quantiles, or of central intervals.

    levels : array-like of shape (n_levels,), default=None
        Levels in [0, 1], which count equally. By default all levels between 0 and 1, exactly; for a
        :class:`~skcalib.forecasts.QuantileForecast` the levels that it has.

    estimation : {"biased", "debiased"}, default="biased"
        "debiased" subtracts what the finite sample adds to the mean square gap. It needs
        `norm="l2"`, and reads `sample_weight` as importance weights.

    squared : bool, default=False
        Return the mean square gap itself, for `norm="l2"` only. With "debiased" it is unbiased, and
        may be negative.

    Returns
    -------
    error : float
        Between 0 and 1; 0 is best. For all levels at most 1/2 ("l1"), 3^(−1/2) ("l2") and 1
        ("max").

    See Also
    --------
    local_calibration_error : The same among samples with similar features.
    skcalib.hypothesis_tests.CalibrationTest : Tests whether the error is more than chance.

    Notes
    -----
    With the PITs (probability integral transforms) :math:`u_i = F_i(y_i)` and weights :math:`w_i`
    that sum to 1, the share of outcomes below their quantiles of level p is :math:`\hat F(p) =
    \sum_i w_i 1[u_i \le p]`, and the gap is :math:`d(p) = \hat F(p) - p` [1]_. The error is

    .. math:: \int_0^1 |d(p)| dp, \qquad \Big(\int_0^1 d(p)^2 dp\Big)^{1/2}, \qquad \sup_p |d(p)|,

    computed exactly, at :math:`O(n \log n)`. With `levels` the integral is the mean over m levels,
    and the supremum the largest gap, at :math:`O(n m)`. With "interval" :math:`u_i` becomes
    :math:`|2 u_i - 1|`, the level of the smallest central interval that holds the outcome.

    An outcome of positive probability has an interval of PITs, and :math:`1[u_i \le p]` becomes the
    share of the interval below p. For an ensemble without weights the interval is that of the ranks
    which the outcome may have among the s members, of length 1/(s + 1) without ties. Quantile
    forecasts have only their own levels; for "interval", those of intervals between two of their
    quantiles, such as 0.8 of those at 0.1 and 0.9.

    With "debiased" the mean square gap is averaged over all pairs of different samples, which makes
    it unbiased. Its root, clipped at 0, is still biased upwards.

    References
    ----------
    .. [1] Kuleshov, Fenner and Ermon (2018). Accurate Uncertainties for Deep Learning Using
       Calibrated Regression. ICML. :arxiv:`1807.00263`
    .. [2] Czado, Gneiting and Held (2009). Predictive Model Assessment for Count Data. Biometrics.
       :doi:`10.1111/j.1541-0420.2009.01191.x`

    Examples
    --------
    Two outcomes at the median of their forecasts:

    >>> from skcalib.metrics import quantile_calibration_error
    >>> quantile_calibration_error([0.0, 2.0], ([0.0, 2.0], [1.0, 3.0]))
    0.25
    >>> quantile_calibration_error([0.0, 2.0], ([0.0, 2.0], [1.0, 3.0]), norm="max")
    0.5
    """
    data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight)
    return _quantile_calibration_error(data, norm, level_type, levels, estimation, squared)


def resolve_levels(
    forecast: Forecast, level_type: str = "quantile", levels: ArrayLike | None = None
) -> np.ndarray | None:
    """Return the levels (m,), or None for all; those of the grid if the forecast has one."""
    if levels is not None:
        levels = check_common_levels(levels)
        if len(levels) == 0:
            raise ValueError("levels must not be empty; found none. Pass a list, or leave it out.")
    grid = getattr(forecast, "levels", None)
    if grid is None:
        return levels
    resolved = grid if level_type == "quantile" else _interval_levels(grid)
    if len(resolved) == 0:
        raise ValueError(
            "level_type='interval' needs quantiles at two levels that sum to 1, the ends of a "
            f"central interval; found the levels {format_values(grid)}. Pass level_type='quantile'."
        )
    if levels is None:
        return resolved
    nearest = resolved[np.abs(levels[:, None] - resolved).argmin(axis=1)]
    unknown = np.abs(levels - nearest) > _GRID_LEVEL_ATOL
    if unknown.any():
        raise ValueError(
            f"levels must be among those that the forecast has, {format_values(resolved)} for "
            f"level_type={level_type!r}; found {levels[unknown][0]:.6g}. Leave levels out, or "
            "forecast quantiles at more levels."
        )
    return nearest


def _interval_levels(grid: np.ndarray) -> np.ndarray:
    """Return the levels of central intervals between two levels of the grid, increasing."""
    lower, upper = np.nonzero(np.abs(grid[:, None] + grid - 1) < _GRID_LEVEL_ATOL)
    return np.sort((grid[upper] - grid[lower])[upper > lower])


@dataclass(frozen=True, eq=False)
class Sharpness:
    """Mean widths and standard deviation of forecasts, which :func:`sharpness` returns.

    Parameters
    ----------
    levels : ndarray of shape (n_levels,)
        Probabilities of central intervals.

    width : ndarray of shape (n_levels,)
        Mean widths of these intervals, in the units of the outcome.

    std : float
        Mean standard deviation, in the units of the outcome; NaN if the forecasts have none.

    entropy : float
        Mean differential entropy, in nats; NaN if the forecasts have none in closed form.

    See Also
    --------
    sharpness : The function that returns it.

    Examples
    --------
    >>> from skcalib.metrics import sharpness
    >>> sharpness(([0.0, 1.0], [1.0, 3.0])).std
    2.0
    """

    levels: np.ndarray
    width: np.ndarray
    std: float
    entropy: float


@validate_params()
def sharpness(
    y_forecast: object, *, sample_weight: ArrayLike | None = None, levels: ArrayLike | None = None
) -> Sharpness:
    """Sharpness of forecasts: mean width of intervals, standard deviation and entropy.

    Among calibrated forecasts, sharper ones are better; an overconfident forecast is sharp as well.

    Parameters
    ----------
    y_forecast : forecast
        A forecast, as :func:`~skcalib.forecasts.as_forecast` takes it, such as (mean, std).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    levels : array-like of shape (n_levels,), default=None
        Probabilities of central intervals, in (0, 1). By default 0.5, 0.8 and 0.95; for a
        :class:`~skcalib.forecasts.QuantileForecast` those of its own intervals.

    Returns
    -------
    sharpness : Sharpness
        With the numbers `std` and `entropy`, NaN where the forecasts do not know them, and the
        arrays `levels` and `width`. Smaller is sharper.

    See Also
    --------
    quantile_calibration_error : Whether forecasts are right, sharp or not.

    Notes
    -----
    Standard deviations are averaged, not variances.

    References
    ----------
    .. [1] Gneiting, Balabdaoui and Raftery (2007). Probabilistic forecasts, calibration and
       sharpness. Journal of the Royal Statistical Society B.
       :doi:`10.1111/j.1467-9868.2007.00587.x`

    Examples
    --------
    >>> from skcalib.metrics import sharpness
    >>> of_forecast = sharpness(([0.0, 1.0], [1.0, 3.0]))
    >>> of_forecast.std, of_forecast.width.round(2)
    (2.0, array([2.7 , 5.13, 7.84]))
    """
    forecast = as_forecast(y_forecast)
    weight = None
    if sample_weight is not None:
        weight = check_sample_weight(sample_weight, len(forecast))
        weight = weight / weight.max()
    interval_levels = resolve_levels(forecast, "interval", levels)
    interval_levels = np.array(_REPORTED_LEVELS) if interval_levels is None else interval_levels
    for level in interval_levels.tolist():
        check_coverage(level, "each of levels")
    intervals = map(forecast.interval, interval_levels)
    width = [np.average(high - low, weights=weight) for low, high in intervals]
    std, entropy = (_mean_or_nan(method, weight) for method in (forecast.std, forecast.entropy))
    return Sharpness(interval_levels, np.array(width), std, entropy)


def _mean_or_nan(method: Callable[[], np.ndarray], weight: np.ndarray | None) -> float:
    """Return the mean over the rows; NaN if the forecast does not determine it."""
    try:
        return float(np.average(method(), weights=weight))
    except ValueError:
        return float("nan")
