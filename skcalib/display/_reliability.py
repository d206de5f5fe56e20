"""The reliability diagram."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._data import check_predictions
from .._inputs.annotations import Estimator
from .._inputs.arrays import ArrayLike
from .._inputs.probabilities import check_logits
from .._inputs.scikit_learn import Label, RandomState
from .._numerics.logits import log_softmax
from ..lenses import Lens
from ..metrics._proper import decompose
from ..metrics._reliability_curve import (
    CURVE_CONSTRAINTS,
    METHODS,
    ReliabilityCurve,
    make_curve,
    select_curve_options,
)
from ._base import check_models, check_options, validate_options
from ._panels import CurvesDisplay, Problem, choose_panels, problems_of
from ._reliability_panel import check_same_scale, choose_scale, draw_curve, draw_strip, set_axes


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(CurvesDisplay):
    r"""Reliability diagram: how often the event happens, against its predicted probability.

    Made by :meth:`from_estimator` or :meth:`from_predictions`. A calibrated model's curve is near
    the diagonal: in the band, but for chance. A strip below shows how the predictions are
    distributed, those of events upwards and those of the others downwards.

    Parameters
    ----------
    curves : list of ReliabilityCurve
        The numbers of each panel.

    name : str, default=None
        Name of the model, for the legend.

    left_out : dict, default=None
        The titles and errors of the panels for which there is no room, the largest first.

    axis_scale : {"linear", "logit"}, default="linear"
        Scale of both axes.

    others : sequence of ReliabilityDisplay, default=()
        The displays of further models, with the same panels, that are drawn on the same axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, of the first panel if there are several.

    figure_ : matplotlib Figure
        The figure.

    line_ : matplotlib Line2D
        The curve of the first panel.

    axes_ : ndarray of matplotlib Axes of shape (n_panels,)
        The axes of all panels.

    strips_ : list of matplotlib Axes
        The strips below them; None where the distribution of the predictions is not known.

    lines_ : list of matplotlib Line2D
        The curves.

    bands_ : list of matplotlib PolyCollection
        The bands, or None.

    areas_ : list of matplotlib artists
        The shaded areas: a PolyCollection or, of bins, a BarContainer; or None.

    legend_ : matplotlib Legend
        The legend.

    See Also
    --------
    skcalib.metrics.reliability_curve : The numbers alone.

    Notes
    -----
    The isotonic curve (CORP, [1]_) is that of
    :class:`~skcalib.recalibration.IsotonicRecalibrator` with ``strict=False``. The smooth curve
    [2]_ is :math:`p + r_\sigma(p) / \delta_\sigma(p)`: smoothed residuals over smoothed weights, up
    to two bandwidths away from the predictions.

    The consistency band holds, at each probability, the middle share of the curves of labels drawn
    from the predictions. The confidence band of bins and of smooth means has the bounds of Clopper
    and Pearson for the mean frequency of the bin, or under the kernel, with the effective number of
    samples :math:`(\sum w)^2 / \sum w^2`. That of the isotonic curve is valid for every increasing
    curve and samples of equal weight (as in [3]_), and wide.

    The cost is :math:`O(n \log n)`, and :math:`O(n)` for each resample.

    References
    ----------
    .. [1] Dimitriadis, Gneiting and Jordan (2021). Stable reliability diagrams for probabilistic
       classifiers. PNAS. :doi:`10.1073/pnas.2016191118`
    .. [2] Błasiok and Nakkiran (2024). Smooth ECE. ICLR. :arxiv:`2309.12236`
    .. [3] Dimitriadis, Dümbgen, Henzi, Puke and Ziegel (2023). Honest calibration assessment for
       binary outcome predictions. Biometrika. :doi:`10.1093/biomet/asac068`

    Examples
    --------
    >>> from skcalib.display import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions(
    ...     [0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], random_state=0
    ... )
    >>> display.curves[0].observed
    array([0. , 0.5, 0.5, 1. ])
    """

    curves: list[ReliabilityCurve]
    _: KW_ONLY
    axis_scale: str = "linear"
    others: Sequence["ReliabilityDisplay"] = ()

    _size: ClassVar = (4.5, 6)
    _curve: ClassVar = "observed frequency"
    _y_label: ClassVar = "observed frequency"

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: ArrayLike,
        y: ArrayLike,
        *,
        response_method: Literal["predict_proba", "decision_function"] = "predict_proba",
        **options: Any,
    ) -> Self:
        """Create and draw the diagram of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.

        X : array-like of shape (n_samples, n_features)
            Features of data that the classifier was not fitted on.

        y : array-like of shape (n_samples,)
            Labels.

        response_method : {"predict_proba", "decision_function"}, default="predict_proba"
            The method that predicts. The values of "decision_function" are taken as logits.

        **options : dict
            The options of `from_predictions`. `labels` are the classes of the classifier, and
            `name` is by default the name of its class.

        Returns
        -------
        display : ReliabilityDisplay
            The display, drawn.
        """
        if response_method == "predict_proba":
            return super().from_estimator(estimator, X, y, **options)
        if response_method != "decision_function":
            raise ValueError(
                "response_method must be 'predict_proba', or 'decision_function', whose values are "
                f"taken as logits; found {response_method!r}. Call the method yourself, and pass "
                "its probabilities to from_predictions."
            )
        check_is_fitted(estimator)
        classifier: Any = estimator
        scores = classifier.decision_function(X)
        logits = check_logits(_to_logit_columns(scores), name="logits")
        proba = np.exp(log_softmax(logits))
        return cls._from_response(estimator, y, proba, {"labels": classifier.classes_}, options)

    @classmethod
    @validate_options(**CURVE_CONSTRAINTS)
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike],
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Label | None = None,
        labels: ArrayLike | None = None,
        multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
        by: Any = None,
        method: Literal["isotonic", "smooth", "binned"] = "isotonic",
        n_bins: int | Literal["auto"] | ArrayLike = 15,
        strategy: Literal["uniform", "quantile"] = "uniform",
        bandwidth: float | None = None,
        band: Literal["consistency", "confidence"] | None = "consistency",
        confidence_level: float = 0.9,
        n_resamples: int = 200,
        random_state: RandomState = None,
        axis_scale: Literal["auto", "linear", "logit"] = "auto",
        decomposition: bool = False,
        shade: bool | Literal["bars"] = False,
        max_panels: int = 9,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Create and draw the diagram of labels and probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.

        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), or dict of them
            Probabilities, as for the metrics; or a dict of those of several models for the same
            samples, such as ``{"before": p, "after": q}``, which are drawn on the same axes.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        pos_label : int, float, bool or str, default=None
            With two classes, the one whose probability is shown. By default the last of `labels`.

        labels : array-like of shape (n_classes,), default=None
            The classes, in the order of the columns of `y_proba`.

        multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
            For more than two classes, what is shown: the probability of the predicted class and
            whether it was right; the same for each predicted class; or each class against the rest,
            each in a grid of panels, the largest errors first. Or a lens of :mod:`skcalib.lenses`.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Subgroups that are shown apart, in a grid of panels: a column, or several, whose
            crossings are shown.

        method : {"isotonic", "smooth", "binned"}, default="isotonic"
            The curve: least squares over increasing curves; kernel means, whose bandwidth is the
            smooth expected calibration error; or means in bins.

        n_bins : int, "auto" or array-like of shape (n_bins + 1,), default=15
            Number of bins of "binned", or their edges, which increase from 0 to 1 (with "uniform").
            "auto": the cube root of the effective number of samples, rounded up.

        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width or of equal mass.

        bandwidth : float, default=None
            Standard deviation of the kernel of "smooth", on the scale of the probabilities; at
            least 0.001. By default the smooth expected calibration error.

        band : {"consistency", "confidence"} or None, default="consistency"
            Where the curve of a calibrated model is by chance, around the diagonal; or where the
            frequencies may be, around the curve.

        confidence_level : float in (0, 1), default=0.9
            At each probability the curve, or the frequency, is in the band with this probability.

        n_resamples : int, default=200
            Number of label vectors drawn from the predictions for the consistency band.

        random_state : int, RandomState instance or None, default=None
            Seed of the consistency band.

        axis_scale : {"auto", "linear", "logit"}, default="auto"
            Scale of both axes. "logit" spreads probabilities near 0 and 1. "auto" is "logit" for a
            single panel if more than half of the predictions are at most 0.01 away from 0 or 1.

        decomposition : bool, default=False
            Whether to write miscalibration (MCB), discrimination (DSC) and uncertainty (UNC) of the
            Brier score into the corner, as of :func:`~skcalib.metrics.score_decomposition`.

        shade : bool or "bars", default=False
            Whether to shade the area between curve and diagonal. "bars" draws the bins of
            ``method="binned"`` as bars with gaps, for one model.

        max_panels : int, default=9
            The largest number of panels; others are named below.

        name : str, default=None
            Name of the model, for the legend. Models in a dict have their own.

        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Displays of several models can share it. A grid
            takes the place of the axes, or is drawn on as many axes as it has panels.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curves. Other names are refused.

        Returns
        -------
        display : ReliabilityDisplay
            The display, drawn. Of several models, that of the first, with the others as `others`.
        """
        check_options(cls.from_predictions, kwargs)
        curve_options = select_curve_options(locals())
        _check_bars(shade, method == "binned", y_proba)
        models: Any = {name: y_proba}
        if isinstance(y_proba, Mapping):
            check_models(y_proba, "y_proba", name=name)
            models = y_proba
        problems = []
        for model, proba in models.items():
            names = "y_true", "y_proba" if proba is y_proba else f"y_proba[{model!r}]"
            options: Any = {"names": names, "multi_class": multi_class}
            data = check_predictions(y_true, proba, sample_weight, pos_label, labels, **options)
            n_samples = np.shape(y_true)[0]
            problems.append(problems_of(data, multi_class, by, n_samples, sample_weight))
        _check_same_panels(problems)
        make = METHODS[method]
        samples = [[problem.predictions for problem in each] for each in problems]
        errors = [[make.error_of(data, **curve_options) for data in each] for each in samples]
        largest, keep_order = np.max(errors, axis=0).tolist(), by is not None
        panels, left_out = choose_panels(problems[0], largest, max_panels, keep_order=keep_order)
        if axis_scale == "auto" and shade == "bars":
            axis_scale = "linear"
        elif axis_scale == "auto":
            axis_scale = choose_scale(ax, [each[0].predictions for each in problems], len(panels))
        band_options: dict[str, Any] = {"kind": band, "level": confidence_level}
        band_options["n_resamples"] = n_resamples
        displays = []
        for model, each, its_errors in zip(models, problems, errors, strict=True):
            band_options["random_state"], curves = check_random_state(random_state), []
            for k in panels:
                data = each[k].predictions
                curve = make(data, its_errors[k], axis_scale, **curve_options)
                components = decompose(data, "brier", 0, 0) if decomposition else None
                curves.append(make_curve(each[k], curve, components, **band_options))
            displays.append(cls(curves, name=model, axis_scale=axis_scale, left_out=left_out))
        first, *first.others = displays
        return first.plot(ax, shade=shade, **kwargs)

    def plot(
        self, ax: Any = None, *, name: str | None = None, shade: bool | str = False, **kwargs: Any
    ) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default. Displays of several models can share it. A grid
            takes the place of the axes, or is drawn on as many axes as it has panels.

        name : str, default=None
            Name of the model, for the legend; by default that of the display.

        shade : bool or "bars", default=False
            Whether to shade the area between curve and diagonal; or "bars" of bins with gaps.

        **kwargs : dict
            Passed to matplotlib's `plot` for the curves. Other names are refused.

        Returns
        -------
        display : ReliabilityDisplay
            This object, with its artists.
        """
        check_options(self.plot, kwargs)
        _check_bars(shade, all(curve.ends is not None for curve in self.curves), self.others)
        self._draw_styled(ax, name, kwargs, shade=shade)
        for other in self.others:
            self.legend_ = other.plot(self.axes_, shade=shade, **kwargs).legend_
        return self

    def _draw_curves(self, label: str, style: dict[str, Any], *, shade: bool | str) -> list[Any]:
        self.strips_, self.bands_, self.areas_, lines = [], [], [], []
        for ax, curve in zip(self.axes_, self.curves, strict=True):
            check_same_scale(ax, self.axis_scale)
            line, band, area = draw_curve(ax, curve, label, shade, style)
            lines.append(line)
            self.bands_.append(band)
            self.areas_.append(area)
            self.strips_.append(draw_strip(ax, curve, line))
        set_axes(self.axes_, self.strips_, self.axis_scale)
        return lines


def _check_bars(shade: Any, are_bins: bool, others: Any) -> None:
    """Bars are of bins, and of one model."""
    if shade == "bars" and not are_bins:
        raise ValueError(
            "shade='bars' must come with method='binned', whose bins are the bars; found another "
            "curve. Pass method='binned', or shade=True."
        )
    if shade == "bars" and (isinstance(others, Mapping) or (isinstance(others, list) and others)):
        raise ValueError(
            "shade='bars' must come with a single model, as bars hide each other; found several. "
            "Pass shade=True, or draw each model on axes of its own."
        )


def _check_same_panels(problems: list[list[Problem]]) -> None:
    """Models share panels: of predicted classes, all have predicted the same."""
    titles = {tuple(problem.title for problem in each) for each in problems}
    if len(titles) > 1:
        raise ValueError(
            "y_proba must be of models that predict the same classes with multi_class='top-label'; "
            f"found {titles}. Pass multi_class='classwise', or one model."
        )


def _to_logit_columns(logits: Any) -> np.ndarray:
    """One column of logits for each class: the log-odds of the second of two are its difference."""
    logits = np.asarray(logits)
    return logits if logits.ndim > 1 else np.column_stack([np.zeros_like(logits), logits])
