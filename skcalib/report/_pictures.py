"""The pictures of a report, drawn as SVG if matplotlib is there."""

import io
import re
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import numpy as np

from .._data import AnyData, ClassData, ForecastData
from ..display import (
    PITHistogramDisplay,
    QuantileReliabilityDisplay,
    ReliabilityDisplay,
    WitnessDisplay,
)
from ..display._base import Figure

# More predictions than this are drawn from a random part of them, which looks the same.
_MAX_DRAWN = 20_000

# The words that go with a picture name the curve at these shares of the predictions.
_QUANTILE_SHARES = (0.1, 0.5, 0.9)

# Ranges of predictions, of which the words name the one that most of the error is from.
_N_WITNESS_RANGES = 10

# The axis of the witness shows at least this range of its [-1, 1], so that ripples look small.
_MIN_WITNESS_RANGE = 0.5

_FIGURE_SIZE = (4.2, 4.7)

# Colours that figures are drawn in, and the colours of the page, be it light or dark, that replace
# them: for text, for marks, and softer ones for the greys of guide lines and bands.
_TEXT_COLOUR, _MARK_COLOUR, _OTHER_COLOUR = "#010203", "#040506", "#070809"
_PAGE_COLOURS = {
    _TEXT_COLOUR: "currentColor",
    _MARK_COLOUR: "var(--mark)",
    _OTHER_COLOUR: "var(--other)",
    "#4c4c4c": "var(--soft)",
    "#666666": "var(--soft)",
    "#cccccc": "var(--line)",
    "#e6e6e6": "var(--faint)",
}


def render_class_pictures(data: ClassData) -> dict[str, str]:
    """Return SVG by its title, with a description in words; nothing without matplotlib."""
    quantity = "probability" if data.is_binary else "confidence"
    titles = {
        f"How often each {quantity} came true{{}}": _draw_reliability,
        "Where, and in which direction, the model errs": _draw_witness,
    }
    return _draw_pictures(data, titles, quantity)


def render_forecast_pictures(data: ForecastData) -> dict[str, str]:
    """Return SVG of the histogram of the PITs, likewise."""
    return _draw_pictures(
        data, {"Where the outcomes lie in their forecasts{}": _draw_histogram}, "outcome"
    )


def render_model_curves(models: dict[str, Any]) -> dict[str, str]:
    """Return SVG of the curves of all models, on the same axes."""
    data = next(iter(models.values()))
    return _draw_pictures(
        data, {"How calibrated the models are{}": partial(_draw_model_curves, models)}, ""
    )


def _draw_pictures(data: AnyData, titles: dict[str, Callable], quantity: str) -> dict[str, str]:
    """Return the picture of each title; a title with "{}" allows a subsample, which it notes."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return {}
    subset, note = _subsample(data), ""
    if subset is not data:
        note = f" (of {_MAX_DRAWN} samples, chosen at random)"
    with rc_context(_page_style()):
        return {
            title.format(note): draw(
                subset if "{}" in title else data,
                quantity,
                Figure(figsize=_FIGURE_SIZE, layout="constrained"),
            )
            for title, draw in titles.items()
        }


def _subsample(data: AnyData) -> Any:
    """Return a random part of at most `_MAX_DRAWN` samples, the same ones for each model."""
    if data.n_samples <= _MAX_DRAWN:
        return data
    return data.take(np.random.default_rng(0).permutation(data.n_samples)[:_MAX_DRAWN])


def _draw_model_curves(models: dict[str, Any], data: AnyData, quantity: str, figure: Figure) -> str:
    subsets = [_subsample(model) for model in models.values()]
    names = _writable_names(list(models), "model")
    ax, words = figure.subplots(), f"The curves of {', '.join(names)}, and their bands by chance."
    if isinstance(data, ForecastData):
        for name, model in zip(names, subsets, strict=True):
            QuantileReliabilityDisplay.from_predictions(
                model.value,
                model.forecast,
                sample_weight=model.weight,
                random_state=0,
                name=name,
                ax=ax,
            )
    else:
        for name, model in zip(names, subsets, strict=True):  # which may have outcomes of its own
            options = _to_display_args(model)
            ReliabilityDisplay.from_predictions(**options, random_state=0, name=name, ax=ax)
    return _to_svg(figure, "compared", words)


def _draw_histogram(data: ForecastData, quantity: str, figure: Figure) -> str:
    display = PITHistogramDisplay.from_predictions(
        data.value, data.forecast, sample_weight=data.weight, random_state=0, ax=figure.subplots()
    )
    heights = ", ".join(f"{height:.2g}" for height in display.density)
    words = (
        f"The {len(display.density)} bars, from {quantity}s that are lower than forecast to "
        f"{quantity}s that are higher, have the heights {heights}; those of a calibrated forecast "
        "are 1 but for chance."
    )
    return _to_svg(figure, "pit", words)


def _to_display_args(data: ClassData) -> dict[str, Any]:
    """Return the predictions as arguments of a display."""
    names = np.array(_writable_names(data.classes.tolist(), "class"), dtype=object)
    return {
        "y_true": names[data.label],
        "y_proba": data.proba if data.is_binary else data.simplex,
        "sample_weight": data.weight,
        "labels": names,
    }


def _draw_reliability(data: ClassData, quantity: str, figure: Figure) -> str:
    display = ReliabilityDisplay.from_predictions(
        **_to_display_args(data), random_state=0, ax=figure.subplots()
    )
    (curve,) = display.curves
    x = _prediction_quantiles(data if data.is_binary else data.confidence())
    observed = np.interp(x, curve.predicted, curve.observed)
    pairs = [
        f"{position:.3g} came true {100 * share:.3g} % of the time"
        for position, share in zip(x, observed, strict=True)
    ]
    band = curve.band
    fit = np.interp(band.positions, curve.predicted, curve.observed)
    outside = band.positions[(fit < band.lower) | (fit > band.upper)]
    where = "The curve stays inside the band where that of a calibrated model lies"
    if len(outside):
        where = (
            "The curve leaves the band where that of a calibrated model lies at places between "
            f"{outside.min():.2g} and {outside.max():.2g}"
        )
    return _to_svg(figure, "reliability", f"A {quantity} of {', of '.join(pairs)}. {where}.")


def _draw_witness(data: ClassData, quantity: str, figure: Figure) -> str:
    display = WitnessDisplay.from_predictions(**_to_display_args(data), ax=figure.subplots())
    bottom, top = display.ax_.get_ylim()
    if top - bottom < _MIN_WITNESS_RANGE:
        bottom = max((bottom + top - _MIN_WITNESS_RANGE) / 2, -1.05)
        display.ax_.set_ylim(bottom, bottom + _MIN_WITNESS_RANGE)
    (curve,) = display.curves
    points, values = curve.predicted, curve.witness
    high, low = int(np.argmax(values)), int(np.argmin(values))
    cell = np.minimum((points * _N_WITNESS_RANGES).astype(int), _N_WITNESS_RANGES - 1)
    error = np.bincount(cell, values * curve.residual, _N_WITNESS_RANGES)  # they sum to the error
    worst = int(np.argmax(error))
    words = (
        f"The witness is highest, {values[high]:.2g}, at a {quantity} of {points[high]:.3g}, and "
        f"lowest, {values[low]:.2g}, at {points[low]:.3g}: outcomes are more frequent than "
        "predicted where it is above 0, or higher than elsewhere, and less frequent where it is "
        f"below. Of the smooth calibration error of {curve.error:.3g}, {error[worst]:.2g} is from "
        f"predictions between {worst / _N_WITNESS_RANGES:g} and "
        f"{(worst + 1) / _N_WITNESS_RANGES:g}."
    )
    return _to_svg(figure, "witness", words)


def _writable_names(labels: list, kind: str) -> list[str]:
    """Return names, of classes or of models, that every font can write; others by their number."""
    numbered = [f"{kind} {k}" for k in range(len(labels))]
    names = [
        name if name.isascii() and name.isprintable() and len(name) <= 20 and "$" not in name else k
        for name, k in zip(map(str, labels), numbered, strict=True)
    ]
    return names if len(set(names)) == len(names) else numbered


def _prediction_quantiles(data: ClassData) -> np.ndarray:
    """Return the distinct predictions at `_QUANTILE_SHARES` of the samples."""
    order = np.argsort(data.proba)
    share = np.cumsum(data.weight[order])
    rows = np.minimum(np.searchsorted(share, _QUANTILE_SHARES), len(order) - 1)
    return np.unique(data.proba[order][rows])


def _page_style() -> dict[Any, Any]:
    """Return settings of figures without a background, in colours that `_to_svg` replaces."""
    from cycler import cycler

    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return {
        "axes.prop_cycle": cycler(color=[_MARK_COLOUR, _OTHER_COLOUR]),
        "svg.fonttype": "path",
        "svg.hashsalt": "skcalib",
        **dict.fromkeys(names, _TEXT_COLOUR),
        **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
    }


def _to_svg(figure: Figure, name: str, words: str) -> str:
    """Return the figure as SVG for a page; its ids begin with `name`, so that none collide."""
    file = io.StringIO()
    figure.savefig(file, format="svg", facecolor="none", metadata={"Date": None})
    svg = re.sub(r"^.*?(?=<svg)", "", file.getvalue(), count=1, flags=re.DOTALL)
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\1{name}-", svg)
    for colour, page_colour in _PAGE_COLOURS.items():
        svg = svg.replace(colour, page_colour)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(words)}"', 1)
