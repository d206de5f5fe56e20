"""Recalibration by a parametric map whose results are binned."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.arrays import listed
from .._inputs.constraints import IntegerInterval
from .._inputs.predictions import Predictions
from .._inputs.scikit_learn import HasMethods
from .._numerics.bins import cuts_before, quantile_bins
from .._numerics.sorting import first_of_ties, pool_ties
from ._base import Recalibrator, clone_for, no_formula
from ._languages import Language
from ._logistic import SigmoidRecalibrator
from ._temperature import TemperatureRecalibrator

# Results of a map are tied if they differ by less than this fraction: that is rounding.
_ROUNDING = 1e-12


class Steps(NamedTuple):
    """The values of bins, and where the second and each further one begins."""

    cuts: np.ndarray  # (B - 1,)
    values: np.ndarray  # (B,)

    def at(self, points: np.ndarray) -> np.ndarray:
        return self.values[np.searchsorted(self.cuts, points, side="right")]


class ScalingBinningRecalibrator(Recalibrator):
    r"""Recalibration by a smooth map, whose results are replaced by means of bins.

    First a map with few parameters, which needs few samples; then bins of equal mass of its
    results, each with their mean. So there are only a few different predictions, and their
    calibration error can be measured: that of a map with a continuum of results cannot. The binning
    itself makes no prediction better.

    Parameters
    ----------
    recalibrator : estimator, default=None
        The map whose results are binned. By default a :class:`SigmoidRecalibrator` for two classes
        and a :class:`TemperatureRecalibrator` for more.

    n_bins : int, default=15
        Number of bins for each class (for two classes, of the probability of the last one); fewer
        where results are tied.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.
        Needed if a class does not occur in the calibration data.

    Attributes
    ----------
    recalibrator_ : estimator
        The fitted map.

    values_ : ndarray of shape (n_values,)
        The calibrated probabilities, increasing: for two classes those of the last class; for more,
        a list with such an array for each class, before rows are divided by their sums.

    maps_ : list of tuple
        For two classes one pair, else one for each class: `cuts`, results of the map at which the
        second and each further bin begins, and `values`.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result.

    n_features_in_ : int
        Number of columns of `X` at `fit` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    IntervalBinningRecalibrator : Bins with their mean outcome, which needs more samples.
    skcalib.metrics.level_set_calibration_error : The calibration error of predictions with few
        values.

    Notes
    -----
    With the map g and weights :math:`w_i` that sum to 1, a prediction p whose g(p) is in the bin
    B gets

    .. math::
        \sum_{g(p_i) \in B} w_i g(p_i) \Big/ \sum_{g(p_i) \in B} w_i,

    the mean *prediction* of the map, not the mean outcome as in histogram binning: with B bins, n
    samples and an error ε, :math:`1/\varepsilon^2 + B` samples are enough instead of
    :math:`B/\varepsilon^2` [1]_. The theorem has separate samples for the map, the bins and their
    values; all of them are used for each step here, as in the authors' code and experiments: bins
    and values do not depend on labels. To measure the calibration error, take new samples.

    More than two classes are mapped together, and binned one by one [1]_. Rows are divided by their
    sums; before that, each class has at most `n_bins` values. Its measured error concerns these
    (`values_`).

    Ties, up to rounding, are pooled; a result of the map between two bins belongs to the nearer one
    (to the upper one if both are as near). The cost is that of the map and a sort for each class.
    The ranking is kept but for ties, if the map keeps it.

    References
    ----------
    .. [1] A. Kumar, P. Liang and T. Ma (2019). Verified Uncertainty Calibration. NeurIPS 2019.
       :arxiv:`1909.10155`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.recalibration import ScalingBinningRecalibrator
    >>> y, proba = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    >>> recalibrator = ScalingBinningRecalibrator(n_bins=4).fit(proba, y)
    >>> recalibrator.values_
    array([0.12..., 0.34..., 0.56..., 0.83...])
    >>> recalibrator.predict_proba([0.2, 0.25, 0.7])[:, 1]
    array([0.34..., 0.34..., 0.56...])
    """

    _parameter_constraints: dict = {
        **Recalibrator._parameter_constraints,
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "n_bins": [IntegerInterval(1)],
    }

    def __init__(
        self,
        recalibrator: Any = None,
        *,
        n_bins: int = 15,
        labels: ArrayLike | None = None,
    ) -> None:
        self.recalibrator = recalibrator
        self.n_bins = n_bins
        self.labels = labels

    def _fit(self, predictions: Predictions) -> None:
        classes, weight = predictions.classes, predictions.weight
        default = SigmoidRecalibrator if predictions.is_binary else TemperatureRecalibrator
        unfitted = default() if self.recalibrator is None else self.recalibrator
        weights = {"sample_weight": weight} if np.ptp(weight) > 0 else {}
        y = classes[predictions.label]
        self.recalibrator_ = clone_for(unfitted, classes).fit(predictions.matrix, y, **weights)
        check_has_classes(self.recalibrator_, classes)
        self.maps_ = [self._steps(column, weight) for column in self._columns(predictions.proba)]
        values = [steps.values for steps in self.maps_]
        self.values_: Any = values[0] if predictions.is_binary else values

    def _columns(self, proba: np.ndarray) -> np.ndarray:
        """The results of the map, (1, n) of the last of two classes, or (K, n)."""
        if proba.ndim == 1:
            pairs = np.column_stack([1 - proba, proba])
            return self.recalibrator_.predict_proba(pairs).T[1:]
        return self.recalibrator_.predict_proba(proba).T

    def _steps(self, results: np.ndarray, weight: np.ndarray) -> Steps:
        points, mass = pool_ties(results, weight)
        distinct = np.flatnonzero(np.append(True, np.diff(points) > _ROUNDING * points[1:]))
        total = np.add.reduceat(mass, distinct)
        points, mass = np.add.reduceat(mass * points, distinct) / total, total
        start = np.flatnonzero(first_of_ties(quantile_bins(points, mass, self.n_bins)))
        total = np.add.reduceat(mass, start)
        return Steps(cuts_before(points, start), np.add.reduceat(mass * points, start) / total)

    def _map(self, proba: np.ndarray) -> np.ndarray:
        columns = self._columns(proba)
        binned = [steps.at(column) for steps, column in zip(self.maps_, columns, strict=True)]
        if len(binned) == 1:
            return binned[0]
        mapped = np.column_stack(binned)
        impossible = ~mapped.any(axis=1)
        mapped[impossible] = columns.T[impossible]
        return mapped / mapped.sum(axis=1, keepdims=True)

    def _write(self, language: Language, proba: list[str]) -> list[str]:
        if not isinstance(self.recalibrator_, Recalibrator):
            raise no_formula(self.recalibrator_)
        first = 1 if len(proba) == 1 else 0
        results = [
            language.of_class(k).let("g", formula)
            for k, formula in enumerate(self.recalibrator_._write(language, proba), start=first)
        ]
        binned = [
            language.steps(name, steps.cuts, [*map(language.number, steps.values)])
            for name, steps in zip(results, self.maps_, strict=True)
        ]
        if first:
            return binned
        binned = [language.of_class(k).let("b", formula) for k, formula in enumerate(binned)]
        total = language.let("total", " + ".join(binned))
        rest = " + ".join(results)
        return [
            language.share(part, total, f"{name} / ({rest})")
            for part, name in zip(binned, results, strict=True)
        ]


def check_has_classes(recalibrator: Any, classes: np.ndarray) -> None:
    """The results of a map have a column for each class."""
    known = recalibrator.classes_
    if not np.array_equal(known, classes):
        raise ValueError(
            f"recalibrator must know the classes {listed(classes)}; {type(recalibrator).__name__} "
            f"has {listed(known)}. Pass one that has a parameter labels, or samples of all classes."
        )
