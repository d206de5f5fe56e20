"""Histograms of probability integral transforms (PITs), their distribution, and bands for both."""

from dataclasses import dataclass
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np

from .._data import ForecastData, check_forecasts
from .._inputs.annotations import DataFrame
from .._inputs.arrays import ArrayLike, import_package
from .._inputs.drawing import draw_seed
from .._inputs.scikit_learn import Bins, Count, Interval, RandomState, validate_params
from .._inputs.warnings import check_memory
from .._numerics.pit import PitLaw, pit_curve, pit_laws
from .._numerics.sorting import bin_edges
from ._quantile import resolve_levels
from ._registry import ALL_METRICS

_ERROR = ALL_METRICS["quantile_calibration_error"]

# An ensemble with at most this many possible ranks has a bin for each.
_MAX_RANKS = 25

# Widths of bins that differ by less are equal.
_BIN_WIDTH_RTOL = 1e-9

# Levels at which a curve is drawn.
_GRID = np.arange(101) / 100

PIT_CONSTRAINTS: dict = {
    "n_bins": [Bins(1, 1000), None],
    "confidence_level": [Interval(Real, 0, 1, closed="neither"), None],
    "n_resamples": [Count(1)],
}


class Band(NamedTuple):
    """Bands that calibrated forecasts stay in with a probability: at one place, and at all."""

    lower: np.ndarray
    upper: np.ndarray
    lower_of_all: np.ndarray
    upper_of_all: np.ndarray
    confidence_level: float


@dataclass(frozen=True, eq=False)
class PITHistogram:
    """The numbers of a histogram of PITs: what :func:`pit_histogram` returns.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Ends of the bins, from 0 to 1.

    density : ndarray of shape (n_bins,)
        Heights of the bars: the share of the PITs in each bin over its width.

    band : Band or None
        Tuple of arrays `lower`, `upper`, `lower_of_all` and `upper_of_all` of shape (n_bins,),
        heights between which single bars and all bars at once lie by chance, and the
        `confidence_level`.

    error : float
        The quantile calibration error.

    Examples
    --------
    >>> from skcalib.metrics import pit_histogram
    >>> pit_histogram([-2.0, 2.0, 0.1], ([0.0, 0.0, 0.0], 1.0), n_bins=3, random_state=0).density
    array([1., 1., 1.])
    """

    edges: np.ndarray
    density: np.ndarray
    band: Band | None
    error: float

    def to_frame(self) -> DataFrame:
        """The bars as a data frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each bin, with the columns "start", "end" and "density"; and with a band
            "lower", "upper", "lower_of_all" and "upper_of_all".
        """
        pd = import_package("pandas", "to_frame()", "pandas")
        columns = {"start": self.edges[:-1], "end": self.edges[1:], "density": self.density}
        if self.band is not None:
            columns |= self.band._asdict()
            del columns["confidence_level"]
        return pd.DataFrame(columns)


@validate_params(PIT_CONSTRAINTS)
def pit_histogram(
    y_true: ArrayLike,
    y_forecast: object,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: int | Literal["auto"] | ArrayLike | None = None,
    atoms: Literal["average", "randomize"] = "average",
    confidence_level: float | None = 0.9,
    n_resamples: int = 200,
    random_state: RandomState = None,
) -> PITHistogram:
    r"""PIT histogram (rank histogram of an ensemble): where outcomes lie in their forecasts.

    Bars of calibrated forecasts have the height 1 but for chance. High bars at both ends show
    forecasts that are too narrow, in the middle too wide ones, a slope a bias.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Outcomes.

    y_forecast : forecast
        A forecast, as :func:`~skcalib.forecasts.as_forecast` takes it, such as (mean, std).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    n_bins : int, "auto" or array-like of shape (n_bins + 1,), default=None
        Number of bins of equal width, or edges that increase from 0 to 1. "auto": the cube root of
        the effective number of samples, rounded up. By default one for each rank of an ensemble
        without weights of up to 24 members, one for each cell of quantiles at given levels, and ten
        otherwise.

    atoms : {"average", "randomize"}, default="average"
        An outcome of positive probability has an interval of PITs: spread it evenly over the bins,
        or draw one PIT from it.

    confidence_level : float or None, default=0.9
        Probability with which single bars of calibrated forecasts are in the inner band, and all at
        once in the outer one. None: no band.

    n_resamples : int, default=200
        Number of times that outcomes are drawn from the forecasts, for the band.

    random_state : int, RandomState instance or None, default=None
        Seed of the band, and of the PITs if they are drawn.

    Returns
    -------
    histogram : PITHistogram
        Its `edges`, `density`, `band` and `error`. Its method `to_frame` makes a data frame.

    See Also
    --------
    skcalib.display.PITHistogramDisplay : Draws it.
    quantile_calibration_error : How far the PITs are from uniform.

    Notes
    -----
    An interval of PITs counts in each bin by the share that lies there [1]_. Cost: :math:`O(n \log
    n)`, and as much for each resample where forecasts have atoms.

    References
    ----------
    .. [1] Czado, Gneiting and Held (2009). Predictive model assessment for count data. Biometrics.
       :doi:`10.1111/j.1541-0420.2009.01191.x`

    Examples
    --------
    >>> from skcalib.datasets import make_forecasts
    >>> from skcalib.metrics import pit_histogram
    >>> y, forecast = make_forecasts(dispersion=0.5, random_state=0)  # too narrow
    >>> pit_histogram(y, forecast, n_bins=5, random_state=0).density.round(1)
    array([1.8, 0.5, 0.6, 0.5, 1.7])
    """
    data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight)
    edges = _edges(data, n_bins)
    lower, upper = data.forecast.pit_bounds(data.value)
    if atoms == "randomize":
        lower = upper = data.forecast.pit(data.value, random_state=random_state)
    is_uniform = data.forecast.is_continuous or atoms == "randomize"
    law = pit_laws(lower, upper)
    density = _densities(pit_distribution(law, data.weight, edges[1:-1]), edges)
    band = None
    if confidence_level is not None:
        null_cdf = simulate_pit_cdf(
            data, edges[1:-1], n_resamples, random_state, is_uniform=is_uniform
        )
        # bars of different widths differ in how much they vary
        is_same = is_uniform and np.ptp(np.diff(edges)) < _BIN_WIDTH_RTOL
        null, level = _densities(null_cdf, edges), confidence_level
        band = band_of(null, np.ones(len(density)), level, same_everywhere=is_same)
    return PITHistogram(edges, density, band, _ERROR.measure(data))


def make_quantile_curve(
    data: ForecastData,
    level_type: str,
    levels: ArrayLike | None,
    confidence_level: float | None,
    n_resamples: int,
    random_state: RandomState,
) -> tuple[np.ndarray, np.ndarray, Band | None, float]:
    """Levels, the shares of outcomes that quantiles or intervals cover, their band, the error."""
    error = _ERROR.measure(data, level_type=level_type, levels=levels)
    positions = resolve_levels(data.forecast, level_type, levels)
    positions = _GRID if positions is None else np.unique(positions)
    folded = level_type == "interval"
    law = pit_laws(*data.forecast.pit_bounds(data.value), folded=folded)
    band = None
    if confidence_level is not None:
        law_options = {"folded": folded, "is_uniform": data.forecast.is_continuous}
        null_cdf = simulate_pit_cdf(data, positions, n_resamples, random_state, **law_options)
        band = band_of(null_cdf, positions, confidence_level)
    return positions, pit_distribution(law, data.weight, positions), band, error


def _edges(data: ForecastData, n_bins: ArrayLike | None) -> np.ndarray:
    """Ends of the bins: of equal width, or the levels between which the PITs are known."""
    levels = getattr(data.forecast, "levels", None)
    if n_bins is None and levels is not None:
        return np.concatenate([[0.0], levels, [1.0]])
    if n_bins is None:
        n_ranks = np.max(data.forecast._n_members) + 1 if data.forecast.is_exchangeable else 10
        n_bins = int(n_ranks) if n_ranks <= _MAX_RANKS else 10
    return bin_edges(n_bins, 1 / data.inverse_effective_size)


def _densities(distribution: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Heights of bars (..., B) from the distribution function at the inner edges."""
    return np.diff(distribution, prepend=0.0, append=1.0, axis=-1) / np.diff(edges)


def pit_distribution(law: PitLaw, weight: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """F̂ at the levels, (m,)."""
    knots, before, after = pit_curve(law, weight)
    last = np.searchsorted(knots, levels, side="right") - 1
    following = np.minimum(last + 1, len(knots) - 1)
    gap = knots[following] - knots[last]
    share = np.divide(levels - knots[last], gap, out=np.zeros(len(levels)), where=gap > 0)
    return after[last] + share * (before[following] - after[last])


def simulate_pit_cdf(
    data: ForecastData,
    levels: np.ndarray,
    n_resamples: int,
    random_state: RandomState,
    *,
    folded: bool = False,
    is_uniform: bool,
) -> np.ndarray:
    """F̂ at increasing levels in [0, 1], for outcomes drawn from the forecasts, (R, m).

    PITs that are single numbers are uniform, also folded, and need no outcomes.
    """
    generator = np.random.default_rng(draw_seed(random_state))
    if not is_uniform:
        null_cdf = []
        for _ in range(n_resamples):
            redrawn = data.with_outcome(data.simulate_outcomes(generator, 1)[0])
            law = pit_laws(*redrawn.forecast.pit_bounds(redrawn.value), folded=folded)
            null_cdf.append(pit_distribution(law, data.weight, levels))
        return np.array(null_cdf)
    weight, n = data.weight, data.n_samples
    shares = np.diff(levels, prepend=0.0, append=1.0)
    if (weight == weight[0]).all():
        needed = 16.0 * n_resamples * len(shares)
        check_memory(needed, f"n_resamples={n_resamples}", "Choose fewer.")
        counts = generator.multinomial(n, shares / shares.sum(), size=n_resamples)
        return np.cumsum(counts[:, :-1], axis=1) / n
    cells = (np.searchsorted(levels, generator.random(n)) for _ in range(n_resamples))
    masses = [np.bincount(cell, weight, len(levels) + 1) for cell in cells]
    return np.cumsum(np.array(masses)[:, :-1], axis=1)


def band_of(
    null_cdf: np.ndarray, expected: np.ndarray, level: float, *, same_everywhere: bool = False
) -> Band:
    """Bands around what is expected, (m,), from draws (R, m).

    The pointwise band holds the middle share of the draws at each place. The simultaneous one is a
    multiple of the standard deviation at each place that holds the same share of whole draws. If
    the draws have the same distribution everywhere, they are taken together.
    """
    tail = (1 - level) / 2
    axis = None if same_everywhere else 0
    gap = null_cdf - expected
    lower, upper = np.quantile(gap, [tail, 1 - tail], axis=axis)
    spread = np.sqrt(np.mean(gap**2, axis=axis, keepdims=True))
    score = np.divide(np.abs(gap), spread, out=np.zeros(gap.shape), where=spread > 1e-12)
    width = np.quantile(score.max(axis=1), level) * spread[0]
    return Band(expected + lower, expected + upper, expected - width, expected + width, level)
