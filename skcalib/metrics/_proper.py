"""Proper scores and what they are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Generic, Literal, cast

import numpy as np
from scipy.special import ndtr

from .. import _data
from .._data import AnyData, ClassData, ForecastData
from .._inputs.annotations import Value, annotate_each
from .._inputs.arrays import ArrayLike, check_numbers
from .._inputs.drawing import draw_seed
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import Average, Count, Label, RandomState, validate_params
from .._inputs.warnings import warn_if_slow
from .._numerics.crps import isotonic_brier_score, mean_half_distances, threshold_cells
from .._numerics.isotonic import isotonic_knots
from .._numerics.logits import PROPER_LOSSES
from .._numerics.sorting import pool_ties
from ..forecasts import Forecast
from ..forecasts._base import MAX_NUMBER
from ..forecasts._thresholds import threshold_weighted_crps
from ..lenses import Lens
from ._reductions import average_over_reductions

# Integrals over cells of thresholds may miss by this share of the score.
_CELL_RTOL = 1e-4

# Relative tolerance of each draw, if only the mean over many draws counts.
DRAW_RTOL = 5e-3

# A forecast is narrow if its quantiles at the levels Φ(−5) and Φ(5) are within 1/16 of the range of
# outcomes. The quantiles of narrow forecasts are edges of cells, at most 2048 of all forecasts.
_REACH, _NARROW, _MAX_RISES = 5.0, 1 / 16, 2048

# The steps of discrete forecasts are edges of cells if they have no more values than this.
_MAX_STEP_VALUES = 2**20

# Numbers of cells, doubled until the tolerance is reached.
_CRPS_CELLS = tuple(2**k for k in range(7, 15))


def crps_components(data: ForecastData, tolerance: float = _CELL_RTOL) -> np.ndarray:
    """Return miscalibration, discrimination, uncertainty and score, (4,).

    Uncertainty and score are exact. The score of the recalibrated forecasts is an integral over
    cells, from which the error that the same cells make for the forecasts themselves is taken off.
    """
    forecast, weight = data.forecast, data.weight
    value = check_numbers(data.value, "y_true", most=MAX_NUMBER)
    score = float(weight @ forecast.crps(value))
    points, mass = pool_ties(value, weight)
    if len(points) == 1:
        return np.array([score, 0.0, 0.0, score])
    uncertainty = float(mean_half_distances(points[None], mass[None])[0])
    inside = float(weight @ threshold_weighted_crps(forecast, value, points[0], points[-1]))
    widest, recalibrated = _NARROW * (points[-1] - points[0]), np.inf
    most = max(tolerance * score, np.spacing(np.abs(points).max()))  # thresholds are rounded
    seconds = 0.0
    for n_cells in _CRPS_CELLS:
        warn_if_slow(seconds, f"{n_cells} cells for score='crps'", "Pass a random subsample.")
        error, before, start = -inside, recalibrated, perf_counter()
        steps = _find_steps(forecast, widest, n_cells)
        recalibrated = 0.0
        for t, width in zip(*threshold_cells(points, mass, steps, n_cells), strict=True):
            proba, event = forecast.sf(t), value > t
            error += width * (weight @ (proba - event) ** 2)
            complement = forecast.cdf(t)
            recalibrated += width * isotonic_brier_score(proba, complement, event, weight)
        recalibrated -= error
        if max(abs(error), abs(recalibrated - before)) <= most:
            break
        seconds = 2 * (perf_counter() - start)
    recalibrated = min(max(recalibrated, 0.0), uncertainty, score)
    return np.array([score - recalibrated, uncertainty - recalibrated, uncertainty, score])


def _find_steps(forecast: Forecast, widest: float, n_cells: int) -> np.ndarray:
    """Return where discrete forecasts of few values jump, and where few narrow forecasts rise."""
    if not forecast.is_continuous:
        n_values = forecast[:1].components().location.size * len(forecast)
        are_few = n_values <= _MAX_STEP_VALUES
        return forecast.components().location.ravel() if are_few else np.empty(0)
    n_levels = min(n_cells, _MAX_RISES) // len(forecast)
    if n_levels < 2:
        return np.empty(0)
    rise = forecast.quantiles(ndtr(np.linspace(-_REACH, _REACH, n_levels)))
    return rise[rise[:, -1] - rise[:, 0] < widest].ravel()


def check_thresholds_known(data: ForecastData) -> None:
    """Refuse quantiles at some levels, which say nothing about other thresholds."""
    levels = getattr(data.forecast, "levels", None)
    if levels is not None:
        raise ValueError(
            "score='crps' needs the probability to exceed any threshold; found quantiles at "
            f"{len(levels)} levels, which do not tell it. Pass a forecast with a distribution "
            "function, such as an EnsembleForecast."
        )


@dataclass(frozen=True, repr=False, eq=False)
class ScoreDecomposition(Generic[Value]):
    """A mean score and its parts: score = miscalibration − discrimination + uncertainty.

    Each part is a number, or an array of shape (n_classes,) with one number for each class.

    Parameters
    ----------
    miscalibration : float or ndarray of shape (n_classes,)
        What isotonic recalibration would gain; 0 is best.

    discrimination : float or ndarray of shape (n_classes,)
        What the recalibrated predictions gain over the constant one; larger is better.

    uncertainty : float or ndarray of shape (n_classes,)
        The score of the constant prediction of the mean outcome: a property of the labels alone.

    score : float or ndarray of shape (n_classes,)
        The score of the predictions.

    expected_miscalibration : float or ndarray of shape (n_classes,), default=None
        The mean miscalibration of outcomes that are drawn from the predictions, which are then
        calibrated. None if none were drawn.

    See Also
    --------
    score_decomposition : The function that returns it.

    Examples
    --------
    >>> from skcalib.metrics import score_decomposition
    >>> score_decomposition([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]).miscalibration
    0.06
    """

    miscalibration: Value
    discrimination: Value
    uncertainty: Value
    score: Value
    expected_miscalibration: Value | None = None

    @property
    def skill_score(self) -> Value:
        """1 − score / uncertainty, also called IPA or scaled Brier score; NaN if that is 0.

        What the predictions gain over the constant one, as a share of its score: 1 is best, 0 as
        good as the observed frequency, and below 0 worse. Of the Brier score of two classes it is
        the index of prediction accuracy of Kattan and Gerds (2018),
        :doi:`10.1186/s41512-018-0029-2`; of the log loss McFadden's R².
        """
        score, uncertainty = np.asarray(self.score), np.asarray(self.uncertainty)
        with np.errstate(divide="ignore", invalid="ignore"):
            skill = np.where(uncertainty > 0, 1 - score / uncertainty, np.nan)
        return cast(Value, skill if skill.ndim else float(skill))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreDecomposition):
            return NotImplemented
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(np.array_equal(*pair) for pair in pairs)

    def __repr__(self) -> str:
        fields = {name: value for name, value in vars(self).items() if value is not None}
        texts = (f"{k}={np.array2string(np.asarray(v), precision=4)}" for k, v in fields.items())
        return f"{type(self).__name__}({', '.join(texts)})"


def _score_decomposition(data: ClassData, score: str) -> np.ndarray:
    """Return miscalibration, discrimination, uncertainty and score, (4,)."""
    proba, label, weight = data.proba, data.label, data.weight

    def mean_loss(forecast: np.ndarray) -> float:
        return weight @ PROPER_LOSSES[score](forecast, label)

    original = mean_loss(proba)
    knots = isotonic_knots(*pool_ties(proba, weight * np.stack([1 - label, label])))
    recalibrated = mean_loss(np.interp(proba, *knots))
    constant = mean_loss(np.full(len(label), weight @ label))
    gain = np.maximum(np.array([original, constant]) - recalibrated, 0.0)  # < 0 by rounding only
    return np.array([*gain, constant, original])


def _append_null_mean(
    data: AnyData,
    n_resamples: int,
    seed: int,
    decompose_data: Callable[..., np.ndarray],
    **draw_options: Any,
) -> np.ndarray:
    """Return the components of the data, and the mean miscalibration of simulated outcomes."""
    values = decompose_data(data)  # first, as its refusals name the outcomes
    if n_resamples == 0:
        return values
    outcomes = data.simulate_outcomes(np.random.default_rng(seed), n_resamples)
    null = [decompose_data(data.with_outcome(row), **draw_options)[0] for row in outcomes]
    return np.append(values, np.mean(null))


@annotate_each(ScoreDecomposition[np.ndarray])
@validate_params({"n_resamples": [Count(0, 10**9)]})
def score_decomposition(
    y_true: ArrayLike,
    y_pred: object,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    score: Literal["brier", "log_loss", "crps"] = "brier",
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
    n_resamples: int = 0,
    random_state: RandomState = None,
) -> ScoreDecomposition[float]:
    r"""Decompose a proper score into miscalibration, discrimination and uncertainty (CORP).

    The miscalibration is 0 if the predictions are their own isotonic recalibration on the sample.
    Miscalibration and discrimination are biased upwards. With two classes it is about the positive
    class, not the confidence.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities of the positive class, or of all classes (rows sum to 1). Or a forecast of a
        number, as :func:`skcalib.forecasts.as_forecast` takes it.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_pred`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    score : {"brier", "log_loss", "crps"}, default="brier"
        The mean squared error of the probabilities, or minus the mean logarithm of the probability
        of what happened; for forecasts of a number, the continuous ranked probability score.

    multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; or each class against the rest. Or a lens of
        :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        "macro" is the mean over classes. "weighted" weights classes by their share of the
        predictions ("top-label") or labels ("classwise"). "auto" is "weighted" for "top-label",
        else "macro". None returns the array of all values, even if there is only one. A class that
        is never predicted is NaN, and left out of means.

    n_resamples : int, default=0
        Number of times that outcomes are drawn from the predictions, for
        `expected_miscalibration`.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    decomposition : ScoreDecomposition
        With the numbers `miscalibration`, `discrimination`, `uncertainty` and `score`, none of them
        negative, `expected_miscalibration` if outcomes are drawn, and `skill_score`; or arrays of
        shape (n_classes,) if `average` is None.

    See Also
    --------
    sklearn.metrics.brier_score_loss : The Brier score.
    sklearn.metrics.log_loss : The log loss.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, :math:`S(q) = \sum_i w_i \ell(q_i, y_i)` is the score of
    predictions q. Let :math:`\hat p` be the isotonic regression of the outcomes on the predictions
    and :math:`\bar y` the mean outcome. Then [1]_

    .. math::
        S(p) = \underbrace{S(p) - S(\hat p)}_{\text{miscalibration}}
        - \underbrace{(S(\bar y) - S(\hat p))}_{\text{discrimination}}
        + \underbrace{S(\bar y)}_{\text{uncertainty}}.

    No part is negative. Ties are pooled before the regression. Cost: :math:`O(n \log n)`. For the
    log loss, predictions are clipped to [ε, 1 − ε], with ε = 2.2e-16, as in scikit-learn.

    "crps" is the integral of the Brier score over all thresholds t, at which the prediction is the
    probability that the outcome exceeds t [2]_; each threshold is recalibrated on its own. Score
    and uncertainty are exact, and the recalibrated score is an integral over up to 16384 cells,
    accurate to 1e-4 of the score.

    The mean miscalibration of outcomes drawn from the predictions is what a calibrated model would
    show.

    References
    ----------
    .. [1] Dimitriadis, Gneiting and Jordan (2021). Stable reliability diagrams for probabilistic
       classifiers. PNAS. :doi:`10.1073/pnas.2016191118`
    .. [2] Arnold, Walz, Ziegel and Gneiting (2024). Decompositions of the mean continuous ranked
       probability score. Electronic Journal of Statistics. :doi:`10.1214/24-EJS2316`

    Examples
    --------
    >>> from skcalib.metrics import score_decomposition
    >>> parts = score_decomposition([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> parts
    ScoreDecomposition(miscalibration=0.06, discrimination=0.125, uncertainty=0.25, score=0.185)
    >>> parts.uncertainty
    0.25
    """
    data = check_scored(y_true, y_pred, score, sample_weight, pos_label, labels, multi_class)
    return decompose(data, score, n_resamples, random_state, multi_class, average)


def check_scored(
    y_true: ArrayLike,
    y_pred: Any,
    score: str,
    sample_weight: ArrayLike | None,
    pos_label: Label | None,
    labels: ArrayLike | None,
    multi_class: Any = None,
) -> AnyData:
    """Return checked data of the kind that the score is for."""
    names = ("y_true", "y_pred")
    if score != "crps":
        if is_forecast(y_pred):
            raise ValueError(
                f"score={score!r} is for probabilities of classes; found a forecast of a number. "
                "Pass score='crps'."
            )
        labelled = y_true, y_pred, sample_weight, pos_label, labels, multi_class
        return _data.check_predictions(*labelled, names=names)
    _data.check_no_labels(labels, pos_label)
    data = _data.check_forecasts(
        y_true, y_pred, sample_weight=sample_weight, names=names, may_be_impossible=True
    )
    check_thresholds_known(data)
    return data


def decompose(
    data: AnyData,
    score: str,
    n_resamples: int,
    random_state: RandomState,
    multi_class: str | Lens = "confidence",
    average: Average = "auto",
) -> ScoreDecomposition:
    """Return `score_decomposition` of checked data."""
    seed = draw_seed(random_state)
    if data.is_forecast:
        values = _append_null_mean(data, n_resamples, seed, crps_components, tolerance=DRAW_RTOL)
        return ScoreDecomposition(*values.tolist())
    values = average_over_reductions(  # ([K,] 4 or 5)
        _append_null_mean,
        data,
        multi_class,
        average,
        n_resamples=n_resamples,
        seed=seed,
        decompose_data=partial(_score_decomposition, score=score),
    )
    return ScoreDecomposition(*(values.tolist() if values.ndim == 1 else values.T))
