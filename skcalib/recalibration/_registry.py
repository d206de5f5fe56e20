"""The lists of all recalibrators, of classes and of forecasts. A new one adds a line."""

from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from .._data import AnyData, ForecastData
from .._inputs.scikit_learn import estimator_class
from ..forecasts import EnsembleForecast, Forecast, QuantileForecast, ResidualForecast
from ._base import Recalibrator
from ._binning import IntervalBinningRecalibrator, ScalingBinningRecalibrator
from ._decision import AnyDecisionRecalibrator, DecisionRecalibrator
from ._either import ClassOrForecastRecalibrator, IdentityRecalibrator, to_fit_data
from ._isotonic import IsotonicRecalibrator, VennAbersRecalibrator
from ._lens import LensRecalibrator
from ._levels import PITRecalibrator, QuantileRecalibrator, least_samples, normal_score_p_value
from ._location_scale import LocationScaleRecalibrator
from ._logistic import BetaRecalibrator, QuadraticRecalibrator, SigmoidRecalibrator
from ._maps import Composition, state_map
from ._nonhomogeneous import NonhomogeneousRegressionRecalibrator
from ._pairwise import WEAKLY_PENALISED, PairwiseScalingRecalibrator
from ._prior_shift import PriorShiftRecalibrator
from ._scaling import (
    DirichletRecalibrator,
    EnsembleTemperatureRecalibrator,
    MatrixScalingRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)
from ._spline import SplineRecalibrator
from ._trees import TreeRecalibrator
from ._updating import ClosedTestingRecalibrator, InterceptRecalibrator


class Entry(NamedTuple):
    """A recalibrator, and for which problems `AutoRecalibrator` tries it, if for any."""

    recalibrator: Recalibrator
    for_two_classes: bool = False
    for_more_classes: bool = False
    power: int = 0  # a step takes n K^power multiplications; 0 if they never are too many
    samples_per_class: int = 0  # least number for a fit to more than two classes
    max_class_samples: float = np.inf  # the most samples for each class with which it is tried
    without_trees: bool = False  # True if trees take its place
    joins_last: bool = False  # True if it is mixed with the average of the others, as trees are
    has_formula: bool = True  # False if its SQL would be too long to be of use


# With more multiplications in a step, maps of matrices and of products are not tried by default: so
# all fits take no more than a few minutes.
_MAX_MULTIPLICATIONS = 5 * 10**8

# With fewer samples for each class, products in pairs lose more than they gain: log loss of up to
# 0.016 with 30 samples of four classes, measured on the data sets that defaults are chosen on.
_MIN_CLASS_SAMPLES_FOR_PAIRS = 10

# With fewer samples for each of more than two classes, the steps of an isotonic map are noise.
_MIN_CLASS_SAMPLES_FOR_KNOTS = 2

# With more than 50 samples for each class, strong penalties of a matrix gain nothing beside weak
# ones: without them, the log loss changes by 0.0001 ± 0.0001, and a fit takes 0.85 of the time.
_FOR_PENALTIES: dict[str, Any] = {"for_more_classes": True, "power": 2, "max_class_samples": 50}

# With more samples for each class, the ties of Venn-Abers are not worth its small gain.
_MAX_CLASS_SAMPLES_FOR_TIES = 200

# Trees join the default candidates with at least this many samples, at most this many classes, and
# at most this many probabilities.
_MIN_SAMPLES_FOR_TREES, _MAX_CLASSES_FOR_TREES, _MAX_ENTRIES_FOR_TREES = 300, 100, 2 * 10**6

# With at most this many classes, maps with a matrix may have fewer samples than classes; with more
# they take seconds.
_MAX_CLASSES_OF_FEW = 50

# With fewer samples, the noise of more than one parameter costs more than forecasts mostly gain.
_MIN_SAMPLES_TO_SHIFT = 50

# With fewer counts, which have no scale to fit, nothing is tried.
_MIN_COUNTS = 16

# Forecasts whose spread has a smaller p-value are always recalibrated, if a candidate can.
_MIN_SPREAD_P_VALUE = 0.01

# All recalibrators of classes but AutoRecalibrator, which lists its candidates in this order.
RECALIBRATORS = {
    "temperature": Entry(TemperatureRecalibrator(), for_two_classes=True, for_more_classes=True),
    "sigmoid": Entry(SigmoidRecalibrator(), for_two_classes=True),
    "beta": Entry(BetaRecalibrator()),
    "quadratic": Entry(QuadraticRecalibrator()),
    "spline": Entry(SplineRecalibrator(), for_two_classes=True),
    "isotonic": Entry(
        IsotonicRecalibrator(),
        for_two_classes=True,
        for_more_classes=True,
        samples_per_class=_MIN_CLASS_SAMPLES_FOR_KNOTS,
    ),
    "ensemble temperature": Entry(
        EnsembleTemperatureRecalibrator(), for_two_classes=True, for_more_classes=True
    ),
    "vector scaling": Entry(VectorScalingRecalibrator(), for_more_classes=True),
    "matrix scaling": Entry(MatrixScalingRecalibrator(), **_FOR_PENALTIES),
    "Dirichlet": Entry(DirichletRecalibrator(), **_FOR_PENALTIES),
    "pairwise scaling": Entry(
        PairwiseScalingRecalibrator(),
        for_more_classes=True,
        power=3,
        samples_per_class=_MIN_CLASS_SAMPLES_FOR_PAIRS,
        has_formula=False,
    ),
    "binning": Entry(IntervalBinningRecalibrator()),
    "scaling-binning": Entry(ScalingBinningRecalibrator()),
    "Venn-Abers": Entry(
        VennAbersRecalibrator(), for_two_classes=True, max_class_samples=_MAX_CLASS_SAMPLES_FOR_TIES
    ),
    "intercept": Entry(InterceptRecalibrator()),
    "closed test": Entry(ClosedTestingRecalibrator()),
    "prior shift": Entry(PriorShiftRecalibrator()),
    "decision": Entry(DecisionRecalibrator()),
    "any decision": Entry(AnyDecisionRecalibrator(random_state=0)),
    "problems of a lens": Entry(LensRecalibrator()),
    "identity": Entry(IdentityRecalibrator()),
}

# All recalibrators of forecasts but AutoRecalibrator, the one that messages suggest first.
FORECAST_RECALIBRATORS: dict[str, Any] = {
    "levels": PITRecalibrator(),
    "quantiles": QuantileRecalibrator(),
    "location and scale": LocationScaleRecalibrator(),
    "nonhomogeneous regression": NonhomogeneousRegressionRecalibrator(),
    "identity": IdentityRecalibrator(),
}


@estimator_class()
class RecalibratorChain(ClassOrForecastRecalibrator):
    """Two recalibrators, the second one fitted on the results of the first one.

    Unlike a pipeline it passes the weights to both.
    """

    first: Any
    second: Any

    @property
    def _base_recalibrator(self) -> Any:
        return self.first

    def _fit(self, data: AnyData) -> None:
        fit_data = to_fit_data(data)
        self.base_ = fit_data.fit_clone(self.first)
        self.second_ = fit_data._replace(X=self.base_.transform(fit_data.X)).fit_clone(self.second)

    def _map(self, proba: Any) -> Any:
        return self.second_.transform(self.base_.transform(proba))

    def _state_map(self) -> Composition:
        return Composition(state_map(self.base_), state_map(self.second_))


# Further settings that an AutoRecalibrator tries for more than two classes.
_MULTICLASS_SETTINGS = {
    "matrix scaling with weak penalties": Entry(WEAKLY_PENALISED, for_more_classes=True, power=2),
    "isotonic and pairwise scaling": Entry(
        PairwiseScalingRecalibrator(RecalibratorChain(IsotonicRecalibrator(), WEAKLY_PENALISED)),
        for_more_classes=True,
        power=3,
        samples_per_class=_MIN_CLASS_SAMPLES_FOR_PAIRS,
        without_trees=True,
        has_formula=False,
    ),
    "trees": Entry(TreeRecalibrator(), for_more_classes=True, joins_last=True, has_formula=False),
}


def default_candidates(is_binary: bool) -> dict[str, Entry]:
    """Return the entries that an `AutoRecalibrator` tries by default, by name."""
    return {
        name: entry
        for name, entry in (RECALIBRATORS | _MULTICLASS_SETTINGS).items()
        if (entry.for_two_classes if is_binary else entry.for_more_classes)
    }


def select_candidates(
    data: AnyData, n_train: int, scoring: str, *, with_trees: bool = False, for_sql: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Return the default candidates for these data by name, and the names that are left out."""
    if data.is_forecast:
        score: Any = scoring  # it was checked for forecasts
        return forecast_candidates(data.forecast, n_train, score), []
    n, n_classes = len(data.label), len(data.classes)
    class_samples = n_train / n_classes
    size = 1 / data.inverse_effective_size
    with_trees &= scoring == "log_loss" and n_classes > 2 and size >= _MIN_SAMPLES_FOR_TREES
    has_room = n_classes <= _MAX_CLASSES_FOR_TREES and n * n_classes <= _MAX_ENTRIES_FOR_TREES
    entries = {
        name: entry
        for name, entry in default_candidates(data.is_binary).items()
        if (data.is_binary or class_samples >= entry.samples_per_class)
        # a large matrix needs as many samples as classes
        and (entry.power == 0 or n_train >= n_classes or n_classes <= _MAX_CLASSES_OF_FEW)
        and class_samples <= entry.max_class_samples
        and not (with_trees and has_room and entry.without_trees)
        and (with_trees or not entry.joins_last)
    }
    left_out = [
        name
        for name, entry in entries.items()
        if (entry.power and n * n_classes**entry.power > _MAX_MULTIPLICATIONS)
        or (entry.joins_last and not has_room)
        or (for_sql and not entry.has_formula)
    ]
    return {
        name: clone(entry.recalibrator) if entry.joins_last else entry.recalibrator
        for name, entry in entries.items()
        if name not in left_out
    }, left_out


def forecast_candidates(
    forecast: Forecast, n: int, scoring: Literal["crps", "log_loss"]
) -> dict[str, Any]:
    """Return the default candidates for forecasts by name, for a fit on n samples."""
    has_members = isinstance(forecast, EnsembleForecast | ResidualForecast | QuantileForecast)
    if not forecast.is_continuous and not has_members:  # counts stay whole numbers
        return {"levels": PITRecalibrator("beta")} if n >= _MIN_COUNTS else {}
    candidates: dict[str, Any] = {"scale": LocationScaleRecalibrator(scoring, scale_only=True)}
    if n < _MIN_SAMPLES_TO_SHIFT:
        return candidates
    candidates["location and scale"] = location_scale = LocationScaleRecalibrator(scoring)
    has_grid = forecast._has_quantiles_only
    levels: Any = QuantileRecalibrator() if has_grid else PITRecalibrator("beta")
    if not has_grid or n >= least_samples(forecast.levels):
        candidates["levels"] = levels
        candidates["location, scale and levels"] = RecalibratorChain(location_scale, levels)
    return candidates


def find_spread_remedy(data: ForecastData, names: list[str]) -> str:
    """Return the name of the default candidate that corrects a wrong spread, or "none"."""
    is_wrong = normal_score_p_value(data) < _MIN_SPREAD_P_VALUE
    remedies = ("levels", "scale") if data.forecast._has_quantiles_only else ("scale", "levels")
    return next((name for name in remedies if is_wrong and name in names), "none")
