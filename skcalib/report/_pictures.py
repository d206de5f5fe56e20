"""The pictures of a report, drawn as SVG if matplotlib is there."""

import io
import re

import numpy as np

from .._inputs.predictions import Predictions
from ..display import ReliabilityDisplay

# More predictions than this are drawn from a random part of them, which looks the same.
_MOST_DRAWN = 20_000


def pictures(predictions: Predictions) -> dict[str, str]:
    """SVG by what it shows; nothing without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return {}
    n = len(predictions.label)
    if n > _MOST_DRAWN:
        rows = np.random.default_rng(0).permutation(n)[:_MOST_DRAWN]
        predictions = predictions.take(rows)
    figure = Figure(figsize=(5, 5.6), layout="constrained")
    ReliabilityDisplay.from_predictions(
        predictions.label,
        predictions.proba if predictions.is_binary else predictions.simplex,
        sample_weight=predictions.weight,
        labels=np.arange(len(predictions.classes)),
        random_state=0,
        ax=figure.subplots(),
    )
    what = "probability" if predictions.is_binary else "confidence"
    return {f"Reliability diagram: how often each {what} came true": _svg(figure)}


def _svg(figure) -> str:
    """The figure without the head of an SVG file, its ids made unlike those of others."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "skcalib"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return re.sub(r"^.*?(?=<svg)", "", file.getvalue(), count=1, flags=re.DOTALL)
