"""Default rates of the grades of a rating, beside their predictions."""

from dataclasses import dataclass
from textwrap import fill
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._inputs.by import format_label
from ..hypothesis_tests import RatingGradeTest
from ._base import Axes, Display, axes_of, check_options, draw_legend

# Colour and marker of each light.
_LIGHTS = {"green": ("tab:green", "o"), "yellow": ("gold", "^"), "red": ("tab:red", "s")}

# Longest line in the name of a grade.
_LETTERS_IN_LINE = 8


@dataclass(eq=False, repr=False)
class RatingGradeDisplay(Display):
    """Default rate of each grade with its interval and light, beside the predicted one.

    Made by :meth:`from_test`. Each grade has a bar for the confidence interval of its default rate,
    a point for the rate, in the colour of its light, and a stroke for the mean prediction. The axis
    is logarithmic: rates of 0 are drawn at its lower end.

    Parameters
    ----------
    table : dict
        The table of a fitted :class:`~skcalib.hypothesis_tests.RatingGradeTest`.

    name : str, default=None
        Name of the rating, for the title.

    Attributes
    ----------
    intervals_ : matplotlib LineCollection
        The intervals.

    predicted_ : matplotlib Line2D
        The mean predictions.

    points_ : dict of str to matplotlib Line2D
        The observed rates, by light.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.hypothesis_tests.RatingGradeTest : The test.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.display import RatingGradeDisplay
    >>> from skcalib.hypothesis_tests import RatingGradeTest
    >>> proba, default = np.repeat([0.01, 0.1], 200), np.arange(400) % 20 == 0
    >>> test = RatingGradeTest().fit(proba, default, grades=np.repeat(["A", "B"], 200))
    >>> list(RatingGradeDisplay.from_test(test).points_)
    ['green', 'red']
    """

    table: dict[str, Any]
    name: str | None = None

    @classmethod
    def from_test(
        cls,
        test: RatingGradeTest,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the display of a fitted test.

        Parameters
        ----------
        test : RatingGradeTest
            The test.

        name : str, default=None
            Name of the rating, for the title.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        **kwargs : dict
            Passed to matplotlib's `plot` for the rates. Other names are refused.

        Returns
        -------
        display : RatingGradeDisplay
            The display, drawn.
        """
        check_options(cls.from_test, kwargs)
        if not isinstance(test, RatingGradeTest):
            raise TypeError(
                f"test must be a RatingGradeTest; found {type(test).__name__}. For other tests "
                "there is NullDistributionDisplay."
            )
        check_is_fitted(test)
        return cls(test.table_, name).plot(ax, **kwargs)

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any]) -> None:
        self.ax_ = ax = axes_of(ax, (6.0, 3.6))
        columns = [np.asarray(self.table[name], float) for name in ("PD", "rate", "low", "high")]
        bottom = min(column[column > 0].min(initial=1.0) for column in columns) / 2
        predicted, rate, low, high = (np.maximum(column, bottom) for column in columns)
        x = np.arange(len(rate))
        self.intervals_ = ax.vlines(x, low, high, color="0.8", linewidth=6)
        (self.predicted_,) = ax.plot(x, predicted, "k_", markersize=14, label="predicted")
        self.points_ = {}
        for light, (colour, marker) in _LIGHTS.items():
            has_light = np.asarray(self.table["light"]) == light
            if has_light.any():
                defaults = {"color": colour, "marker": marker, "markeredgecolor": "black"}
                defaults |= {"linestyle": "none", "label": f"observed: {light}"}
                (self.points_[light],) = ax.plot(
                    x[has_light], rate[has_light], **(defaults | style)
                )
        ax.set_yscale("log")
        ax.set(ylim=(bottom, None), xlabel="grade", ylabel="rate of events")
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        ax.set_xticks(
            x, [fill(format_label(grade), _LETTERS_IN_LINE) for grade in self.table["grade"]]
        )
        ax.set_title("" if name is None else name)
        draw_legend(ax)
