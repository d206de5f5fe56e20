"""The distribution function of PITs, and what chance makes of it for calibrated forecasts."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .._inputs.types import RandomState
from .._numerics.pit import PitLaw, pit_curve, pit_laws
from ..forecasts._data import ForecastData


class Band(NamedTuple):
    """Where calibrated forecasts stay with the probability `level`: at one place, and at all."""

    lower: np.ndarray
    upper: np.ndarray
    lower_of_all: np.ndarray
    upper_of_all: np.ndarray
    level: float


def pit_distribution(law: PitLaw, weight: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """F̂ at the levels, (m,)."""
    knots, before, after = pit_curve(law, weight)
    last = np.searchsorted(knots, levels, side="right") - 1
    following = np.minimum(last + 1, len(knots) - 1)
    gap = knots[following] - knots[last]
    share = np.divide(levels - knots[last], gap, out=np.zeros(len(levels)), where=gap > 0)
    return after[last] + share * (before[following] - after[last])


def drawn_distributions(
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
    generator = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    if not is_uniform:
        drawn = []
        for _ in range(n_resamples):
            value, forecast = data.arguments(data.redraw(generator, 1)[0])
            law = pit_laws(*forecast.pit_bounds(value), folded=folded)
            drawn.append(pit_distribution(law, data.weight, levels))
        return np.array(drawn)
    weight, n = data.weight, data.n_samples
    shares = np.diff(levels, prepend=0.0, append=1.0)
    if (weight == weight[0]).all():
        counts = generator.multinomial(n, shares / shares.sum(), size=n_resamples)
        return np.cumsum(counts[:, :-1], axis=1) / n
    masses = [
        np.bincount(np.searchsorted(levels, generator.random(n)), weight, len(levels) + 1)
        for _ in range(n_resamples)
    ]
    return np.cumsum(np.array(masses)[:, :-1], axis=1)


def band_of(
    drawn: np.ndarray, expected: np.ndarray, level: float, *, same_everywhere: bool = False
) -> Band:
    """Bands around what is expected, (m,), from draws (R, m).

    The pointwise band holds the middle share of the draws at each place. The simultaneous one is a
    multiple of the standard deviation at each place that holds the same share of whole draws. If
    the draws have the same distribution everywhere, they are taken together.
    """
    tail = (1 - level) / 2
    axis = None if same_everywhere else 0
    gap = drawn - expected
    lower, upper = np.quantile(gap, [tail, 1 - tail], axis=axis)
    spread = np.sqrt(np.mean(gap**2, axis=axis, keepdims=True))
    score = np.divide(np.abs(gap), spread, out=np.zeros(gap.shape), where=spread > 1e-12)
    width = np.quantile(score.max(axis=1), level) * spread[0]
    return Band(expected + lower, expected + upper, expected - width, expected + width, level)


def shade(draw: Any, places: np.ndarray, band: Band, place: str) -> None:
    """Draw the bands with `draw`, a method of the axes with the arguments of `fill_between`."""
    per_cent = f"{100 * band.level:.3g} %"
    for lower, upper, shadow, note in (
        (band.lower_of_all, band.upper_of_all, "0.9", f"all {place}s"),
        (band.lower, band.upper, "0.8", f"one {place}"),
    ):
        label = f"{note} by chance ({per_cent})"
        draw(places, np.clip(lower, 0, None), upper, color=shadow, linewidth=0, label=label)
