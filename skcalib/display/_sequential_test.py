"""The evidence of a sequential test against time."""

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._inputs.scikit_learn import check_matplotlib_support
from ._axes import axes_of, check_style, draw_legend, settle, wrapped

_SIZE = (6.4, 3.6)

# The axis ends at this power of 1/α, as larger e-values would hide where the line is crossed.
_ABOVE = 2


class SequentialTestDisplay:
    r"""The evidence of a sequential test of calibration, batch by batch.

    Use :meth:`from_test` to create one. The curve is the e-value: it falls or stays around 1 for a
    calibrated model, and grows where the model errs in a way that its past has shown. Where it
    first reaches the dashed line, :math:`1/\alpha`, the hypothesis is rejected at the level
    :math:`\alpha`; that is valid whenever one looks.

    Parameters
    ----------
    n_seen : ndarray of shape (n_batches,)
        Number of samples after each batch.

    log_e_value : ndarray of shape (n_batches,)
        Natural logarithm of the e-value after each batch.

    alpha : float, default=0.05
        The level at which the hypothesis is rejected.

    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    rejected_at : int or None
        Number of samples after the batch at which the hypothesis was first rejected.

    line_ : matplotlib Line2D
        The e-value, on a logarithmic axis that ends at :math:`1/\alpha^2`: larger ones leave it.

    threshold_ : matplotlib Line2D
        The line at :math:`1/\alpha`.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.hypothesis_tests.SequentialCalibrationTest : The test.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.display import SequentialTestDisplay
    >>> from skcalib.hypothesis_tests import SequentialCalibrationTest
    >>> test = SequentialCalibrationTest(labels=[0, 1])
    >>> for week in range(10):
    ...     y, proba = make_temperature_family(200, inverse_temperature=1.3, random_state=week)
    ...     test = test.partial_fit(proba, y)
    >>> SequentialTestDisplay.from_test(test, alpha=0.01).rejected_at
    1600
    """

    def __init__(
        self,
        n_seen: np.ndarray,
        log_e_value: np.ndarray,
        *,
        alpha: float = 0.05,
        name: str | None = None,
    ) -> None:
        self.n_seen = n_seen
        self.log_e_value = log_e_value
        self.alpha = alpha
        self.name = name

    @property
    def rejected_at(self) -> int | None:
        """Number of samples after the batch at which the hypothesis was first rejected."""
        rejected = np.flatnonzero(self.log_e_value >= -np.log(self.alpha))
        return int(self.n_seen[rejected[0]]) if len(rejected) else None

    @classmethod
    def from_test(
        cls,
        test: Any,
        *,
        alpha: float = 0.05,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the display of a test that has seen samples.

        Parameters
        ----------
        test : SequentialCalibrationTest
            The test.

        alpha : float, default=0.05
            The level at which the hypothesis is rejected.

        name : str, default=None
            Name of the model, for the legend.

        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve. Other names are refused.

        Returns
        -------
        display : SequentialTestDisplay
            The display, drawn.
        """
        check_matplotlib_support("SequentialTestDisplay")
        check_is_fitted(test)
        check_has_history(test)
        check_alpha(alpha)
        history = test.history_
        n_seen, log_e_value = np.array(history["n_seen"]), np.array(history["log_e_value"])
        return cls(n_seen, log_e_value, alpha=alpha, name=name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the e-value.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Displays of several models can share it.

        name : str, default=None
            Name of the model, for the legend; by default that of the display.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curve. Other names are refused.

        Returns
        -------
        display : SequentialTestDisplay
            The display, drawn.
        """
        check_matplotlib_support("SequentialTestDisplay")
        check_style(kwargs, "SequentialTestDisplay", ("alpha", "name", "ax"))
        self.ax_ = ax = axes_of(ax, _SIZE)
        self.figure_ = ax.figure
        name = self.name if name is None else name
        highest = self.alpha**-_ABOVE
        drawn = np.minimum(self.log_e_value, np.log(10 * highest))
        style = {"drawstyle": "steps-post", "label": name or "e-value"} | kwargs
        (self.line_,) = ax.plot(self.n_seen, np.exp(drawn), **style)
        self.threshold_ = self._draw_threshold(ax)
        ax.set_yscale("log")
        ax.set_ylim(top=highest, auto=True)  # the next display may need more room below
        ax.set_xlabel("samples seen")
        ax.set_ylabel(wrapped("evidence (e-value)", ax))
        draw_legend(ax)
        settle(self.figure_)
        return self

    def _draw_threshold(self, ax: Any) -> Any:
        """The line at 1/α, which displays on the same axes share."""
        label = f"rejected at the level {self.alpha:g}"
        for line in ax.lines:
            if line.get_label() == label:
                return line
        ax.axhline(1.0, color="0.6", linewidth=0.8, label="_")
        return ax.axhline(1 / self.alpha, color="0.3", linestyle="--", linewidth=1.2, label=label)


def check_has_history(test: Any) -> None:
    """Only a sequential test keeps its e-values."""
    if not hasattr(test, "history_"):
        raise ValueError(
            "test must be a SequentialCalibrationTest, which keeps its history; found "
            f"{type(test).__name__}. For other tests there is NullDistributionDisplay."
        )


def check_alpha(alpha: float) -> None:
    """A level is a probability between 0 and 1."""
    if not isinstance(alpha, Real) or not 0 < alpha < 1:
        raise ValueError(
            f"alpha must lie between 0 and 1, as a level does; found {alpha!r}. Usual is 0.05."
        )
