"""Measures of several models, with their intervals."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from math import ceil
from textwrap import fill
from typing import Any, Self

import numpy as np

from .._inputs.arrays import ArrayLike, format_value
from .._inputs.drawing import draw_seed
from .._inputs.options import select_arguments
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import METRIC_CONSTRAINTS, RandomState, validate_parameter_constraints
from ..metrics._registry import ALL_METRICS, find_arguments
from ..uncertainty._intervals import comparison_of, interval_of
from ..uncertainty._measured import LIMITS_CONSTRAINTS, MeasuredModels, check_predicted
from . import _base
from ._base import Axes, PredictionsDisplay
from ._panels import columns_that_fit, label_outer, legend_of_panels, panels

# Usual width of a panel, and heights of a model and of what is around, in inches.
_WIDTH, _ROW, _AROUND = 2.4, 0.35, 1.0

# Width of a letter of the titles, in units of their size.
_TITLE_LETTER_WIDTH = 0.57


@dataclass(eq=False, repr=False)
class ComparisonDisplay(PredictionsDisplay):
    """Measures of several models, with their intervals.

    Made by :meth:`from_estimators` or :meth:`from_predictions`. Each measure has a panel, in which
    each model has a dot for the estimate, and a line for the confidence interval. With a reference,
    the differences from its measures are shown: where the line does not reach 0, they are more than
    chance.

    Parameters
    ----------
    models : list of str
        Names of the models; without the reference.

    metrics : list of str
        Names of the measures.

    estimate : ndarray of shape (n_models, n_metrics)
        The measures, or the differences from those of the reference.

    low : ndarray of shape (n_models, n_metrics)
        Lower ends of the intervals.

    high : ndarray of shape (n_models, n_metrics)
        Upper ends of the intervals.

    p_value : ndarray of shape (n_models, n_metrics), default=None
        P-values of the hypotheses that there is no difference from the reference.

    reference : str, default=None
        Name of the model from which the others differ.

    confidence_level : float, default=0.95
        Probability with which each interval is meant to cover the value.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_metrics,)
        The axes of all panels.

    points_ : list of matplotlib Line2D
        The estimates.

    whiskers_ : list of matplotlib LineCollection
        The intervals.

    legend_ : matplotlib Legend
        The legend.

    ax_ : matplotlib Axes
        The axes of the first panel.

    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    skcalib.uncertainty.confidence_interval : The intervals.
    skcalib.uncertainty.compare_models : The differences from a reference.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.display import ComparisonDisplay
    >>> y, calibrated = make_temperature_family(400, random_state=0)
    >>> _, overconfident = make_temperature_family(400, inverse_temperature=2, random_state=0)
    >>> display = ComparisonDisplay.from_predictions(
    ...     y, {"calibrated": calibrated, "overconfident": overconfident},
    ...     n_resamples=99, random_state=0,
    ... )
    >>> display.metrics
    ['smooth_calibration_error', 'expected_calibration_error']
    >>> display.estimate.round(2)
    array([[0.02, 0.07],
           [0.05, 0.11]])
    """

    models: list[str]
    metrics: list[str]
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    _: KW_ONLY
    p_value: np.ndarray | None = None
    reference: str | None = None
    confidence_level: float = 0.95

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], X: ArrayLike, y: ArrayLike, **options: Any
    ) -> Self:
        """Measure fitted estimators, and draw the display.

        Parameters
        ----------
        estimators : dict of str to estimator
            Fitted classifiers of the same classes with `predict_proba`, or regressors in which
            :func:`skcalib.forecasts.get_forecast` finds a forecast, by their names.

        X : array-like of shape (n_samples, n_features)
            Features of data that the estimators were not fitted on.

        y : array-like of shape (n_samples,)
            Labels, or outcomes.

        **options : dict
            The options of `from_predictions`. `labels` are the classes of the estimators.

        Returns
        -------
        display : ComparisonDisplay
            The display, drawn.
        """
        responses = {
            name: _base.response_of(estimator, X, takes_classes=True)
            for name, estimator in estimators.items()
        }
        classes = check_same_classes(
            {name: data_args.get("labels") for name, (_, data_args) in responses.items()}
        )
        predicted = {name: estimator for name, (estimator, _) in responses.items()}
        data_args = {} if classes is None else {"labels": classes}
        return cls.from_predictions(y, predicted, **_base.add_labels(options, data_args))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_preds: Mapping[str, Any],
        *,
        metrics: Sequence[str | Callable] | None = None,
        reference: str | None = None,
        metric_params: Mapping[str, dict] | None = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        given: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        confidence_level: float = 0.95,
        n_resamples: int = 199,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Measure predictions, and draw the display.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, or outcomes.

        y_preds : dict of str to array-like or forecast
            The probabilities or forecasts of each model for the same samples, by its name.

        metrics : list of str or callable, default=None
            The measures, as :func:`~skcalib.uncertainty.confidence_interval` takes them. By default
            those of the report.

        reference : str, default=None
            Name of the model from which the differences of the others are shown.

        metric_params : dict of str to dict, default=None
            Further arguments of the measures, by their names.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of the probabilities. None for forecasts.

        given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
            What calibration of forecasts is conditioned on.

        groups : array-like of shape (n_samples,), default=None
            Labels of groups of samples that are not independent of each other.

        confidence_level : float in (0, 1), default=0.95
            Probability with which each interval is to cover the value.

        n_resamples : int, default=199
            Number of draws of outcomes, as in :func:`~skcalib.uncertainty.confidence_interval`.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws, the same for each interval.

        n_jobs : int, default=None
            Number of jobs among which joblib spreads the draws.

        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Several panels take the place of the axes, or
            are drawn on as many axes as there are panels.

        **kwargs : dict
            Passed to matplotlib's `plot` for the estimates. Other names are refused.

        Returns
        -------
        display : ComparisonDisplay
            The display, drawn.
        """
        _base.check_options(cls.from_predictions, kwargs)
        _base.check_models(y_preds, "y_preds", least=1 if reference is None else 2)
        check_reference(reference, y_preds)
        metrics = _metrics_of_report(y_preds) if metrics is None else metrics
        by_name = _metrics_by_name(metrics) if np.iterable(metrics) else {}
        if not by_name:
            raise ValueError(
                f"metrics must name at least one measure; found {metrics!r:.80}. Leave it out."
            )
        params = check_params_by_metric(metric_params, by_name)
        if not isinstance(random_state, int | np.integer):
            random_state = draw_seed(random_state)  # the same for every interval
        names = ("confidence_level", "n_resamples", "random_state", "n_jobs")
        options = select_arguments(locals(), names)
        for metric in by_name.values():
            rules = METRIC_CONSTRAINTS | LIMITS_CONSTRAINTS
            validate_parameter_constraints(rules, {"metric": metric, **options}, cls.__name__)
        data = select_arguments(locals(), ("sample_weight", "labels", "given", "groups"))
        result: Callable = interval_of if reference is None else comparison_of
        models = [name for name in y_preds if name != reference]
        rows = []
        for model in models:
            compared = [model] if reference is None else [model, reference]
            pair = {f"y_preds[{name!r}]": y_preds[name] for name in compared}
            row = []
            for name, metric in by_name.items():
                lens = find_arguments(metric, params.get(name)).get("multi_class")
                checked = check_predicted(pair, y_true, multi_class=lens, **data)
                measured = MeasuredModels.make(metric, params.get(name), **checked)
                row.append(result(measured, **options))
            rows.append(row)

        def table(attribute: str) -> np.ndarray:
            return np.array([[getattr(interval, attribute) for interval in row] for row in rows])

        estimate = table("estimate" if reference is None else "difference")
        p_value = None if reference is None else table("p_value")
        fields = select_arguments(locals(), ("p_value", "reference", "confidence_level"))
        display = cls(models, list(by_name), estimate, table("low"), table("high"), **fields)
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Several panels take the place of the axes, or
            are drawn on as many axes as there are panels.

        **kwargs : dict
            Passed to matplotlib's `plot` for the estimates. Other names are refused.

        Returns
        -------
        display : ComparisonDisplay
            This object, with its artists.
        """
        _base.check_options(self.plot, kwargs)
        return self._draw_styled(ax, None, kwargs)

    def _draw(self, ax: Axes, name: str | None, style: dict[str, Any]) -> None:
        n_panels = len(self.metrics)
        n_columns = columns_that_fit(ax, n_panels, 3)
        height = (_ROW * len(self.models) + _AROUND) * ceil(n_panels / n_columns)
        self.axes_ = panels(ax, n_panels, (1 + _WIDTH * n_columns, height + 0.5), n_columns)
        self.ax_ = self.axes_[0]
        artists = [self._draw_one(axes, k, style) for k, axes in enumerate(self.axes_)]
        self.points_, self.whiskers_ = map(list, zip(*artists, strict=True))
        label_outer(self.axes_, "", "")
        quantity = "estimate"
        if self.reference is not None:
            quantity = f"difference from {_base.shorten(self.reference, 60)}"
        label = f"{quantity}\nand its {100 * self.confidence_level:.3g} % interval"
        handle = copy(self.points_[0])
        handle.set(linestyle="-", linewidth=1.5)
        self.legend_ = legend_of_panels(self.axes_, [handle], [label])

    def _draw_one(self, ax: Any, k: int, style: dict[str, Any]) -> tuple[Any, ...]:
        """One measure of all models."""
        estimate, low, high = self.estimate[:, k], self.low[:, k], self.high[:, k]
        rows = np.arange(len(self.models))
        defaults = {"marker": "o", "markersize": 5, "linestyle": ""}
        (points,) = ax.plot(estimate, rows, **(defaults | style))
        whiskers = ax.hlines(rows, low, high, color=points.get_color(), linewidth=1.5)
        if self.reference is not None or low.min() <= 0:
            ax.axvline(0, color="0.4", linewidth=1, linestyle=":", zorder=1)
        ax.set_yticks(rows, [fill(_base.shorten(name, 48), 24) for name in self.models])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        width = _base.inches_of(ax)[0]
        ax.locator_params(axis="x", nbins=3 if width < _WIDTH else 5, min_n_ticks=2)
        ax.ticklabel_format(axis="x", scilimits=(-3, 3), useMathText=True)
        title = ax.set_title("", fontsize="medium", wrap=True)
        n_letters = int(72 * width / (_TITLE_LETTER_WIDTH * title.get_size()))
        title.set_text(fill(self.metrics[k].replace("_", " "), max(n_letters, 12)))
        return points, whiskers


def _metrics_by_name(metrics: Any) -> Any:
    """The metrics by their names."""
    return {
        metric if isinstance(metric, str) else getattr(metric, "__name__", f"{metric}"): metric
        for metric in metrics
    }


def _metrics_of_report(y_preds: Any) -> Any:
    kind = "forecasts" if any(map(is_forecast, y_preds.values())) else "classes"
    return [name for name, entry in ALL_METRICS.items() if entry.in_report and kind in entry.takes]


def check_reference(reference: str | None, y_preds: Mapping[str, Any]) -> None:
    """The reference is one of the models."""
    is_name = isinstance(reference, Hashable)
    if reference is not None and not (is_name and reference in y_preds):
        raise ValueError(
            "reference must be the name of one of the models; found "
            f"{format_value(reference)}. Choose one of {list(y_preds)}."
        )


def check_params_by_metric(metric_params: Any, by_name: dict) -> dict:
    """Arguments of measures that are shown."""
    params = metric_params or {}
    names = params if isinstance(params, Mapping) else [params]
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise ValueError(
            f"metric_params must have names of measures as keys; found {unknown[0]!r:.80}. Choose "
            f"among {list(by_name)}, with a dict of arguments as the value of each."
        )
    return params


def check_same_classes(classes: Mapping[str, Any]) -> Any:
    """The classes of all estimators; None of regressors."""
    first = next(iter(classes.values()), None)
    for name, labels in classes.items():
        if not np.array_equal(np.asarray(labels), np.asarray(first)):
            raise ValueError(
                "estimators must have been fitted to the same classes; found "
                f"{first} and, of {name!r}, {labels}. Fit them to the same labels."
            )
    return first
