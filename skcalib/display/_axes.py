"""What all displays do with their axes."""

from typing import Any


def axes_of(ax: Any, figsize: tuple[float, float]) -> Any:
    """The axes to draw on: those given, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def legend_label(name: str | None, measure: str, error: float | None, otherwise: str) -> str:
    """The name of the model and its error, as far as they are known."""
    shown = None if error is None else f"{measure} {error:.3f}"
    return "\n".join(part for part in (name, shown) if part) or otherwise
