"""Recalibration by the mean outcome of intervals."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from .._data import ClassData
from .._inputs.arrays import format_values
from .._inputs.scikit_learn import HasMethods, RandomState, estimator_class
from .._numerics.interval import optimal_partition, partition_errors
from .._numerics.logits import clip_proba, smallest_probability
from .._numerics.sorting import cuts_before, first_of_ties, last_of_runs, pool_ties, quantile_bins
from ._base import OneVsRestRecalibrator, Recalibrator, one_vs_rest
from ._either import calibrate, to_fit_data
from ._logistic import SigmoidRecalibrator
from ._maps import Composition, PerClass, Pieces, state_map
from ._scaling import TemperatureRecalibrator

# Results of a map are tied if they differ by less than this fraction: that is rounding.
_TIED_RESULTS_RTOL = 1e-12


@dataclass(frozen=True)
class IntervalCertificate:
    r"""Bounds on the distance from calibration that a partition into intervals proves.

    Parameters
    ----------
    binned_error : float
        :math:`\sum_j |\sum_{i \in I_j} w_i (y_i - p_i)|` for the intervals :math:`I_j`; between 0
        and 1.

    mean_width : float
        The mean over the samples of the width of their interval, from its smallest to its largest
        prediction; between 0 and 1.

    movement : float
        The mean over the samples of \|calibrated − predicted\|; between 0 and 1.

    remaining_error : float
        The same as the binned error, for the calibrated probabilities; 0 without a pseudo-count.

    See Also
    --------
    IntervalBinningRecalibrator : Has one of them for each binary problem.

    Examples
    --------
    >>> from skcalib.recalibration import IntervalBinningRecalibrator
    >>> recalibrator = IntervalBinningRecalibrator("uniform", n_bins=2, pseudo_count=0)
    >>> certificate = recalibrator.fit([0.25, 0.25, 0.625, 0.75], [0, 1, 1, 1]).certificate_
    >>> certificate.binned_error, certificate.mean_width, certificate.movement
    (0.28125, 0.0625, 0.28125)
    """

    binned_error: float
    mean_width: float
    movement: float
    remaining_error: float

    @property
    def distance_bound(self) -> float:
        """Binned error plus mean width; the distance from calibration is at most this.

        It is also at most the movement plus the remaining error.
        """
        return self.binned_error + self.mean_width


@dataclass(frozen=True, eq=False)
class IntervalMap:
    """A calibrated probability for each interval, NaN without data, and where the next begins."""

    cuts: np.ndarray
    values: np.ndarray
    partition: np.ndarray
    certificate: IntervalCertificate
    complement_cuts: np.ndarray | None = None  # 1 − cuts, with all digits

    def indices(self, columns: np.ndarray) -> np.ndarray:
        """The interval of each prediction, (n,) or both columns (n, 2), of which one has digits."""
        if columns.ndim == 1 or self.complement_cuts is None:
            proba = columns if columns.ndim == 1 else columns[:, 1]
            return np.searchsorted(self.cuts, proba, side="right")
        first, last = columns.T / columns.sum(axis=1)
        index = np.searchsorted(self.cuts, last, side="right")
        is_likely = last > first
        index[is_likely] = np.searchsorted(-self.complement_cuts, -first[is_likely], side="right")
        return index


@estimator_class()
class IntervalBinningRecalibrator(OneVsRestRecalibrator):
    r"""Recalibration by the mean outcome of intervals of predictions.

    By default, the intervals are those of the interval calibration error, and a certificate bounds
    the distance from calibration. Intervals of equal width or equal mass are histogram binning
    [2]_. More than two classes: one against the rest, and rows divided by their sums.

    Parameters
    ----------
    strategy : {"optimal", "uniform", "quantile"}, default="optimal"
        Intervals with the smallest sum of binned error and mean width; of equal width; or of equal
        mass, where equal predictions are never separated.

    n_bins : int, default=15
        Number of intervals for "uniform" and "quantile"; "optimal" finds its own.

    random_shift : bool, default=False
        For "uniform", move all ends of intervals to the right by the same random fraction of the
        width, which adds one interval.

    random_state : int, RandomState instance or None, default=None
        Seed of the random shift.

    pseudo_count : float, default=1.0
        Number of additional samples in each interval, with labels distributed as its mean
        prediction. With 0 the calibration data become perfectly calibrated.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    partition_ : ndarray of shape (n_intervals, 2)
        Smallest and largest prediction of the calibration data in each interval that holds any, for
        the last of two classes. For more classes this and the next two are lists, with an item for
        each class.

    values_ : ndarray of shape (n_intervals,)
        Calibrated probabilities of the intervals.

    certificate_ : IntervalCertificate
        The error of the partition on the calibration data; its `distance_bound` is at least the
        distance of the predictions from calibration.

    maps_ : list of IntervalMap
        One map for two classes, else one for each class: `cuts`, where the next interval begins,
        and `values`, the calibrated probabilities, NaN without calibration data.

    smallest_probability_ : float
        With a pseudo-count, predictions are kept this far from 0 and 1: machine epsilon, or half of
        the smallest positive probability if there are zeros. Else 0.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    skcalib.metrics.interval_calibration_error : The error that "optimal" minimises.
    IsotonicRecalibrator : Intervals whose mean outcomes increase, chosen for the best fit.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, "optimal" uses the intervals :math:`I_j` that minimise

    .. math::
        \sum_j \Big| \sum_{p_i \in I_j} w_i (y_i - p_i) \Big| + \sum_j |I_j| \sum_{p_i \in I_j} w_i

    (Definition 6.1 of [1]_), where :math:`|I_j|` is the distance from the smallest to the largest
    prediction in it. The minimum is exact for up to 100 000 distinct predictions, and over cells of
    size 2e-5 beyond. The other strategies cost a sort.

    In an interval with the weight W, mean outcome ȳ and mean prediction m, the calibrated
    probability is :math:`(W \bar y + \gamma m) / (W + \gamma)`, where γ is `pseudo_count` times
    :math:`\sum_i w_i^2`, or 1/n for equal weights.

    Where predictions are far from calibrated, "optimal" has many small intervals, whose means are
    noise.

    Where predictions round to 1, "optimal" takes any of the partitions that are as good up to
    rounding. A prediction between or outside intervals belongs to the nearest one, or the upper one
    of two. In an interval of "uniform" without calibration data it is kept. Values need not
    increase. Ties are pooled. Without a pseudo-count values can be 0 and 1; a row whose calibrated
    probabilities are all 0 keeps its predicted ones.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`
    .. [2] Zadrozny and Elkan (2001). Obtaining Calibrated Probability Estimates from Decision Trees
       and Naive Bayesian Classifiers. ICML.

    Examples
    --------
    >>> from skcalib.recalibration import IntervalBinningRecalibrator
    >>> recalibrator = IntervalBinningRecalibrator().fit([0.1, 0.2, 0.7, 0.8], [0, 0, 1, 0])
    >>> recalibrator.partition_
    array([[0.1, 0.1],
           [0.2, 0.2],
           [0.7, 0.8]])
    >>> recalibrator.values_
    array([0.05      , 0.1       , 0.58333333])
    >>> recalibrator.certificate_.distance_bound
    0.25...
    >>> recalibrator.predict_proba([0.3, 0.75])
    array([[0.9       , 0.1       ],
           [0.41666667, 0.58333333]])
    """

    strategy: Literal["optimal", "uniform", "quantile"] = "optimal"
    _: KW_ONLY
    n_bins: int = 15
    random_shift: bool = False
    random_state: RandomState = None
    pseudo_count: float = 1.0

    def _fit(self, data: ClassData) -> None:
        check_random_shift(self.strategy, self.random_shift)
        smallest = smallest_probability(data.proba)
        self.smallest_probability_ = smallest if self.pseudo_count else 0.0
        problems = [(1.0, data)] if data.is_binary else data.iter_one_vs_rest()
        self.maps_ = [self._fit_binary(problem) for _, problem in problems]
        attributes: Any = (
            [binary_map.partition for binary_map in self.maps_],
            [binary_map.values[~np.isnan(binary_map.values)] for binary_map in self.maps_],
            [binary_map.certificate for binary_map in self.maps_],
        )
        if data.is_binary:
            attributes = [value for (value,) in attributes]
        self.partition_, self.values_, self.certificate_ = attributes

    def _fit_binary(self, data: ClassData) -> Any:
        points, weight, _ = data.pool_label_weights()
        cuts, start = self._cuts(points, weight)
        bins = np.searchsorted(cuts, points, side="right")  # (m,)
        complement_cuts = None
        if data.complement is not None and start is not None:
            falling = data.swap_classes().pool_label_weights().points[::-1]
            before, after = falling[start[1:] - 1], falling[start[1:]]
            complement_cuts = np.minimum((before + after) / 2, np.nextafter(before, -1))
            bins = np.searchsorted(start, np.arange(len(points)), side="right") - 1
        start = np.flatnonzero(first_of_ties(bins))
        negative, positive = np.add.reduceat(weight, start, axis=1)
        total, mass = negative + positive, weight.sum(axis=0)
        extra = self.pseudo_count * data.inverse_effective_size
        expected = np.add.reduceat(mass * self._clip(points), start)
        values = np.full(len(cuts) + 1, np.nan)
        values[bins[start]] = (positive + extra * expected / total) / (total + extra)
        if self.pseudo_count:
            values = clip_proba(values)
        remaining = np.abs(positive - total * values[bins[start]]).sum()
        return IntervalMap(
            cuts,
            values,
            np.column_stack([points[start], points[last_of_runs(start, len(points))]]),
            IntervalCertificate(
                *partition_errors(points, weight, start),
                movement=float(mass @ np.abs(values[bins] - points)),
                remaining_error=float(remaining),
            ),
            complement_cuts,
        )

    def _clip(self, proba: np.ndarray) -> np.ndarray:
        return clip_proba(proba, self.smallest_probability_)

    def _cuts(self, points: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Beginnings of the second and each further interval; indices of points that begin all."""
        if self.strategy == "uniform":
            if not self.random_shift:
                return np.arange(1, self.n_bins) / self.n_bins, None
            shift = check_random_state(self.random_state).uniform(0, 1 / self.n_bins)
            return shift + np.arange(self.n_bins) / self.n_bins, None
        if self.strategy == "optimal":
            start = optimal_partition(points, weight)
        else:  # only the order counts, and probabilities next to 1 may be tied
            bins = quantile_bins(np.arange(len(points)), weight.sum(axis=0), self.n_bins)
            start = np.flatnonzero(first_of_ties(bins))
        return cuts_before(points, start), start

    def _map_two_classes(self, mapping: Callable, proba: np.ndarray) -> np.ndarray:
        return mapping(proba, self.maps_[0])

    def _map_binary(self, proba: np.ndarray, params: Any) -> np.ndarray:
        value = params.values[params.indices(proba)]
        last = proba if proba.ndim == 1 else proba[:, 1]
        return np.where(np.isnan(value), self._clip(last), value)

    def _state_map(self) -> PerClass:
        only = self.maps_[0]
        both = None
        if only.complement_cuts is not None:  # without random cuts, no value is NaN
            start = np.append(0.0, np.nextafter(only.complement_cuts[::-1], 2))
            falling = Pieces(start, 1 - only.values[::-1], np.zeros(len(start)))
            both = falling, self._pieces(only)
        return PerClass(list(map(self._pieces, self.maps_)), both)

    def _pieces(self, params: Any) -> Pieces:
        low, high = self._clip(np.array([0.0, 1.0]))
        start = np.unique([0.0, low, high, *params.cuts[params.cuts <= 1]])
        value = self._map_binary(start, params)
        bins = np.searchsorted(params.cuts, start, side="right")
        is_identity = np.isnan(params.values[bins]) & (start >= low) & (start < high)
        begins = np.append(True, np.diff(value) != 0) | is_identity
        return Pieces(start[begins], value[begins], is_identity[begins].astype(np.float64))


def check_random_shift(strategy: str, random_shift: bool) -> None:
    """Only intervals of equal width can be shifted."""
    if random_shift and strategy != "uniform":
        raise ValueError(
            "random_shift=True needs strategy='uniform', whose intervals do not depend on the "
            f"data; found strategy={strategy!r}. Pass random_shift=False, or strategy='uniform'."
        )


class Steps(NamedTuple):
    """The values of bins, and where the second and each further one begins."""

    cuts: np.ndarray  # (B - 1,)
    values: np.ndarray  # (B,)


@estimator_class()
class ScalingBinningRecalibrator(Recalibrator):
    r"""Recalibration by a smooth map, whose results are replaced by means of bins.

    A map with few parameters is fitted, and its results are binned with equal mass, each bin with
    its mean. As there are only a few different predictions, their calibration error can be
    measured.

    Parameters
    ----------
    recalibrator : estimator, default=None
        The map whose results are binned. By default a :class:`SigmoidRecalibrator` for two classes
        and a :class:`TemperatureRecalibrator` for more.

    n_bins : int, default=15
        Number of bins for each class (for two classes, of the probability of the last one); fewer
        where results are tied.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    recalibrator_ : estimator
        The fitted map.

    values_ : ndarray of shape (n_values,)
        The calibrated probabilities of the last of two classes, increasing; for more, a list with
        such an array for each class, before rows are divided by their sums.

    maps_ : list of tuple
        For two classes one pair, else one for each class: `cuts`, where the second and each further
        bin begins, and `values`.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    IntervalBinningRecalibrator : Bins with their mean outcome.
    skcalib.metrics.level_set_calibration_error : The error of predictions with few values.

    Notes
    -----
    A prediction p whose result g(p) is in the bin B gets

    .. math::
        \sum_{g(p_i) \in B} w_i g(p_i) \Big/ \sum_{g(p_i) \in B} w_i,

    the mean *prediction* of the map, not the mean outcome as in histogram binning: for an error ε
    with B bins, :math:`1/\varepsilon^2 + B` samples are enough instead of :math:`B/\varepsilon^2`
    [1]_. Measure the calibration error on new samples.

    More than two classes are mapped together and binned one by one; then rows are divided by their
    sums. Ties are pooled; a result between two bins belongs to the nearer one, or the upper one.
    The cost is that of the map and a sort for each class.

    References
    ----------
    .. [1] Kumar, Liang and Ma (2019). Verified Uncertainty Calibration. NeurIPS.
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

    _parameter_constraints = {"recalibrator": [HasMethods(["fit", "predict_proba"]), None]}

    recalibrator: Any = None
    _: KW_ONLY
    n_bins: int = 15

    def _fit(self, data: ClassData) -> None:
        classes, weight = data.classes, data.weight
        default = SigmoidRecalibrator if data.is_binary else TemperatureRecalibrator
        unfitted = default() if self.recalibrator is None else self.recalibrator
        self.recalibrator_ = to_fit_data(data).fit_clone(unfitted)
        check_has_classes(self.recalibrator_, classes)
        results = self._smooth_results(data.columns)
        self.maps_ = [self._steps(column, weight) for column in np.atleast_2d(results.T)]
        values = [steps.values for steps in self.maps_]
        self.values_: Any = values[0] if data.is_binary else values

    def _smooth_results(self, proba: np.ndarray) -> np.ndarray:
        """The results of the map, of the last of two classes (n,), or of all (n, K)."""
        results = calibrate(self.recalibrator_, proba, self.classes_)
        return results[:, 1] if results.shape[1] == 2 else results

    def _steps(self, results: np.ndarray, weight: np.ndarray) -> Steps:
        points, mass = pool_ties(results, weight)
        is_new = np.diff(points) > _TIED_RESULTS_RTOL * points[1:]
        distinct = np.flatnonzero(np.append(True, is_new))
        total = np.add.reduceat(mass, distinct)
        points, mass = np.add.reduceat(mass * points, distinct) / total, total
        start = np.flatnonzero(first_of_ties(quantile_bins(points, mass, self.n_bins)))
        total = np.add.reduceat(mass, start)
        return Steps(cuts_before(points, start), np.add.reduceat(mass * points, start) / total)

    def _map(self, proba: np.ndarray) -> np.ndarray:
        def evaluate(results: np.ndarray, steps: Steps) -> np.ndarray:
            return steps.values[np.searchsorted(steps.cuts, results, side="right")]

        return one_vs_rest(evaluate, self.maps_, self._smooth_results(proba))

    def _state_map(self) -> Composition:
        pieces = [Pieces(np.append(0.0, cuts), values, 0 * values) for cuts, values in self.maps_]
        return Composition(
            state_map(self.recalibrator_), PerClass(pieces, source=type(self).__name__)
        )


def check_has_classes(recalibrator: BaseEstimator, classes: np.ndarray) -> None:
    """The results of a map have a column for each class."""
    available = recalibrator.classes_
    if not np.array_equal(available, classes):
        raise ValueError(
            f"recalibrator must know the classes {format_values(classes)}; "
            f"{type(recalibrator).__name__} has {format_values(available)}. Pass one that has a "
            "parameter labels, or samples of all classes."
        )
