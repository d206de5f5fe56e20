"""The pictures of a report, drawn as SVG if matplotlib is there.

The numbers in their legends are those of the report, which may be of more samples than are drawn.
"""

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._data import AnyData, ClassData, ForecastData
from ..decisions import DecisionLoss
from ..display import (
    DecisionDisplay,
    ForestDisplay,
    PITHistogramDisplay,
    QuantileReliabilityDisplay,
    ReliabilityDisplay,
    WitnessDisplay,
)
from ..display._base import Axes, Figure
from ..display._forest import RATIO
from ..display._reliability_panel import choose_scale
from ..display._witness import witness_curve
from ..metrics._decision_curve import make_decision_curve
from ..metrics._pit_histogram import make_quantile_curve, pit_histogram
from ..metrics._reliability_curve import METHODS, Problem, make_curve
from ..uncertainty import ConfidenceInterval, SubgroupIntervals
from ._sections import LEVEL, Intervals, Numbers, TableRows, error_name

# More predictions than this are drawn from a random part of them, which looks the same.
_MAX_DRAWN = 20_000

# The words that go with a picture name the curve at these shares of the predictions.
_QUANTILE_SHARES = (0.1, 0.5, 0.9)

# The highest threshold of a decision curve is this many times the prevalence, and 1 minus the
# lowest is this many times 1 minus the prevalence.
_MAX_THRESHOLD, _N_THRESHOLDS = 4.0, 49

# The most subgroups of a forest plot, the most letters of a name, and a row's height in inches.
_MAX_SUBGROUPS, _MAX_SUBGROUP_LETTERS, _ROW_HEIGHT = 40, 200, 0.3

_FIGURE_SIZE = (4.2, 4.7)

# Colours that figures are drawn in, and the colours of the page, be it light or dark, that replace
# them: for text, for marks, and softer ones for the greys of guide lines and bands.
_TEXT_COLOUR, _MARK_COLOUR, _OTHER_COLOUR = "#010203", "#040506", "#070809"
_PAGE_COLOURS = {
    _TEXT_COLOUR: "currentColor",
    _MARK_COLOUR: "var(--mark)",
    _OTHER_COLOUR: "var(--other)",
    **dict.fromkeys(("#4c4c4c", "#666666", "#808080"), "var(--soft)"),
    "#cccccc": "var(--line)",
    "#e6e6e6": "var(--faint)",
}


def render_class_pictures(
    data: ClassData, numbers: Numbers, intervals: Intervals, rows: TableRows
) -> dict[str, str]:
    """Return SVG by its title, with a description in words; nothing without matplotlib."""
    quantity = "probability" if data.is_binary else "confidence"
    subset, note = _subsample(data)
    draws = {
        f"How often each {quantity} came true{note}": partial(_draw_reliability, subset, numbers),
        "Where, and in which direction, the model errs: predictions are too low where the curve is "
        "above 0, and too high where it is below": partial(_draw_witness, data),
    }
    if 0 < numbers.get("prevalence", 0) < 1:
        title = f"What decisions gain by the predictions: net benefit of acting{note}"
        draws[title] = partial(_draw_decisions, subset, numbers)
    if 0 < len(rows) <= _MAX_SUBGROUPS and RATIO in numbers:
        title = "How many events there were in each subgroup, for each one expected"
        draws[title] = partial(_draw_forest, rows, numbers, intervals)
    return _draw_pictures(draws)


def render_forecast_pictures(data: ForecastData, numbers: Numbers) -> dict[str, str]:
    """Return SVG of the histogram of the PITs, likewise."""
    subset, note = _subsample(data)
    title = f"Where the outcomes lie in their forecasts{note}"
    return _draw_pictures({title: partial(_draw_histogram, subset, numbers)})


def render_model_curves(models: dict[str, AnyData], numbers: dict[str, Numbers]) -> dict[str, str]:
    """Return SVG of the curves of all models, on the same axes."""
    title = f"How calibrated the models are{_subsample(next(iter(models.values())))[1]}"
    return _draw_pictures({title: partial(_draw_model_curves, models, numbers)})


def _draw_pictures(draws: Mapping[str, Callable[[Figure], str]]) -> dict[str, str]:
    """Return the picture of each title."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return {}
    pictures = {}
    for title, draw in draws.items():
        figure = Figure(figsize=_FIGURE_SIZE, layout="constrained")
        figure.gca().set_prop_cycle(color=[_MARK_COLOUR, _OTHER_COLOUR])
        pictures[title] = draw(figure)
    return pictures


def _subsample(data: AnyData) -> tuple[Any, str]:
    """Return a random part of at most `_MAX_DRAWN` samples, the same for each model, and a note."""
    if data.n_samples <= _MAX_DRAWN:
        return data, ""
    rows = np.random.default_rng(0).permutation(data.n_samples)[:_MAX_DRAWN]
    return data.take(rows), f" (drawn from {_MAX_DRAWN} samples, chosen at random)"


def _draw_model_curves(
    models: dict[str, AnyData], numbers: dict[str, Numbers], figure: Figure
) -> str:
    names = _writable_names(list(models), "model")
    ax, words = figure.gca(), f"The curves of {', '.join(names)}, and their bands by chance."
    for name, (key, data) in zip(names, models.items(), strict=True):
        subset, error = _subsample(data)[0], numbers[key][error_name(numbers[key])]
        display: Any
        if isinstance(subset, ForecastData):
            figure.set_figheight(_FIGURE_SIZE[0])  # of square axes
            curve = make_quantile_curve(subset, "quantile", None, 1 - 2 * LEVEL, 200, 0)
            display = QuantileReliabilityDisplay(*curve[:3], error, name=name)
        else:
            display = _make_reliability(subset, error, ax, name)
        display.plot(ax)
    return _to_svg(figure, "compared", words)


def _make_reliability(data: ClassData, error: float, ax: Axes, name: str | None = None) -> Any:
    """Return the display of these predictions, whose legend shows the given error."""
    problem = _to_problem(data)
    scale = choose_scale(ax, [problem.predictions], 1)
    method = METHODS["isotonic"](problem.predictions, error, scale)
    band: Any = {"kind": "consistency", "level": 1 - 2 * LEVEL, "n_resamples": 200}
    curve = make_curve(problem, method, **band, random_state=check_random_state(0))
    return ReliabilityDisplay([curve], name=name, axis_scale=scale)


def _to_problem(data: ClassData) -> Problem:
    """Return two classes, or of more the confidence, with names that every font can write."""
    names = np.array(_writable_names(data.classes.tolist(), "class"), dtype=object)
    return Problem.whole(replace(data, classes=names))


def _draw_histogram(data: ForecastData, numbers: Numbers, figure: Figure) -> str:
    bars = vars(pit_histogram(data.value, data.forecast, sample_weight=data.weight, random_state=0))
    display = PITHistogramDisplay(**(bars | {"error": numbers["quantile_calibration_error"]}))
    display.plot(figure.gca())
    heights = ", ".join(f"{height:.2g}" for height in display.density)
    words = (
        f"The {len(display.density)} bars, from outcomes that are lower than forecast to outcomes "
        f"that are higher, have the heights {heights}; those of a calibrated forecast are 1 but "
        "for chance."
    )
    return _to_svg(figure, "pit", words)


def _draw_reliability(data: ClassData, numbers: Numbers, figure: Figure) -> str:
    ax, quantity = figure.gca(), "probability" if data.is_binary else "confidence"
    display = _make_reliability(data, numbers[error_name(numbers)], ax).plot(ax)
    (curve,) = display.curves
    binary = data if data.is_binary else data.confidence()
    order: Any = {"weights": binary.weight, "method": "inverted_cdf"}
    x = np.unique(np.quantile(binary.proba, _QUANTILE_SHARES, **order))
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


def _draw_witness(data: ClassData, figure: Figure) -> str:
    problem = _to_problem(data)
    curve = witness_curve(problem.predictions, x_label=problem.x_label)
    WitnessDisplay([curve]).plot(figure.gca())
    ends = np.argmax(curve.smoothed), np.argmin(curve.smoothed)
    high, low = (f"{curve.smoothed[k]:+.2g}, near {curve.positions[k]:.2g}" for k in ends)
    words = (
        "How often the event happens less how often it was predicted, averaged over predictions "
        f"nearby, is highest, {high}, and lowest, {low}: predictions are too low where it is above "
        f"0, and too high where it is below. The smooth calibration error is {curve.error:.3f}."
    )
    return _to_svg(figure, "witness", words)


def _draw_decisions(data: ClassData, numbers: Numbers, figure: Figure) -> str:
    share = numbers["prevalence"]
    ends = max(0.0, 1 - _MAX_THRESHOLD * (1 - share)), min(1.0, _MAX_THRESHOLD * share)
    t = np.linspace(*ends, _N_THRESHOLDS + 2)[1:-1]
    curve = vars(make_decision_curve(data, DecisionLoss("zero-one"), "net-benefit", t, 1 - LEVEL))
    display = DecisionDisplay(curve.pop("threshold"), **curve, kind="net-benefit")
    display.plot(figure.gca()).ax_.set_xlim(ends)
    k = np.argmin(np.abs(t - share))
    words = (
        f"At a threshold of {t[k]:.3g}, near the prevalence, acting always is about as good as "
        f"never; the net benefit of acting by the predictions is {display.realised[k]:.3g}, and "
        f"{display.expected[k]:.3g} was expected."
    )
    return _to_svg(figure, "decisions", words)


def _draw_forest(rows: TableRows, numbers: Numbers, intervals: Intervals, figure: Figure) -> str:
    key = "subgroup" if len({row["by"] for row in rows}) == 1 else "name"  # "site 0"
    names = _writable_names([row[key] for row in rows], "subgroup", _MAX_SUBGROUP_LETTERS)
    keys = ("n_samples", "n_samples", RATIO, f"{RATIO}_low", f"{RATIO}_high", "n_events")
    *columns, events = (np.array([row[key] for row in rows]) for key in keys)
    ends = intervals.get(RATIO, (np.nan, np.nan))
    whole = ConfidenceInterval(numbers[RATIO], *ends, 1 - LEVEL)
    make_table: Any = SubgroupIntervals
    table = make_table(("by",), tuple(names), *columns, ("",) * len(rows), whole, 1 - LEVEL)
    figure.set_figheight(max(_FIGURE_SIZE[1], _ROW_HEIGHT * len(rows)))
    display = ForestDisplay({RATIO: table}, {}, events).plot(figure.gca())
    texts = [text.get_text() for text in display.ax_.texts]
    pairs = zip([*names, "all samples"], texts, strict=True)
    words = "; ".join(f"{name}: {text}" for name, text in pairs)
    return _to_svg(figure, "forest", f"Observed over expected events, calibrated is 1: {words}.")


def _writable_names(labels: list, kind: str, most: int = 20) -> list[str]:
    """Return names, of classes or of models, that every font can write; others by their number."""
    numbered = [f"{kind} {k}" for k in range(len(labels))]
    names = [
        name
        if name.isascii() and name.isprintable() and len(name) <= most and "$" not in name
        else k
        for name, k in zip(map(str, labels), numbered, strict=True)
    ]
    return names if len(set(names)) == len(names) else numbered


def _to_svg(figure: Figure, name: str, words: str) -> str:
    """Return the figure as SVG for a page; its ids begin with `name`, so that they are unique.

    The background is transparent, and the colours of the page replace those of the figure. The
    settings of matplotlib are left alone, as all threads share them.
    """
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    for ax in figure.findobj(Axes):
        ax.set_facecolor("none")
        ax.tick_params(which="both", colors=_TEXT_COLOUR)
        ax.spines[:].set_color(_TEXT_COLOUR)
    for legend in figure.findobj(Legend):
        legend.get_frame().set_facecolor("none")
    for text in figure.findobj(Text):
        text.set_color(_TEXT_COLOUR)
    file = io.StringIO()
    figure.savefig(file, format="svg", facecolor="none", metadata={"Date": None})
    svg = re.sub(r"^.*?(?=<svg)", "", file.getvalue(), count=1, flags=re.DOTALL)
    numbers: dict[str, str] = {}  # they replace matplotlib's random ids
    svg = re.sub(
        r'( id="|url\(#|href="#)([^")]+)',
        lambda found: f"{found[1]}{name}-{numbers.setdefault(found[2], str(len(numbers)))}",
        svg,
    )
    for colour, page_colour in _PAGE_COLOURS.items():
        svg = svg.replace(colour, page_colour)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(words)}"', 1)
