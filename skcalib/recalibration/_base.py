"""The base classes of recalibrators."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from inspect import signature
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import array_namespace, device
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from .._data import ClassData, Data, ForecastData, check_fit_input, check_forecasts, count_groups
from .._inputs.annotations import BaseEstimator, ClassifierMixin, TransformerMixin
from .._inputs.arrays import ArrayLike, format_values
from .._inputs.checks import check_predict_input, positive_weight_rows
from .._inputs.scikit_learn import (
    CheckedParameters,
    Count,
    IntegerInterval,
    Interval,
    clone_instance,
    estimator_class,
    fit_context,
)
from .._inputs.warnings import warn
from .._numerics.array_api import Array, row_sums, to_numpy
from .._numerics.logits import log_probabilities, smallest_known_probability
from ..forecasts import Forecast, as_forecast
from ._maps import PerClass, Pieces
from ._modules import make_module
from ._scores import negative_crps, negative_log_loss

_PENALTY = [Interval(Real, 0, None, closed="right")]

# The parameters that have the same rule in each recalibrator.
RECALIBRATOR_CONSTRAINTS: dict = {
    "alpha": [Interval(Real, 0, 1, closed="right")],
    "intercept_penalty": _PENALTY,
    "max_rounds": [IntegerInterval(1)],
    "n_bins": [Count(1)],
    "off_diagonal_penalty": _PENALTY,
    "penalty": _PENALTY,
    "prior_weight": [Interval(Real, 0, 1e100, closed="both")],
    "pseudo_count": [Interval(Real, 0, None, closed="left")],
}

_threads = cache(ThreadpoolController)

# With fewer classes, products of matrices are faster on a single thread.
_MIN_CLASSES_FOR_THREADS = 256


@estimator_class(kw_only=True)
class Recalibrator(
    CheckedParameters, ClassifierMixin, TransformerMixin, BaseEstimator, metaclass=ABCMeta
):
    """Maps probabilities to probabilities: input is checked here, subclasses do the mapping."""

    _parameter_constraints = RECALIBRATOR_CONSTRAINTS

    labels: ArrayLike | None = None

    # True if the map is a smooth function, neither 0 nor 1 anywhere.
    _is_smooth = False

    # True if X holds logits.
    _expects_logits: ClassVar[Any] = False

    # True inside another recalibrator, which has warned of missing classes already.
    _is_nested = False

    # True if the map never changes the order of the classes within a row.
    _is_order_preserving = False

    # True if it was fitted to two columns of two classes that tell more than the last one.
    _reads_both_columns = False

    # True if `fit` can start from a fit to almost the same samples, which is `_neighbour` then.
    _starts_near = False
    _neighbour: ClassVar[Any] = None

    # The recalibrator that is fitted first to the same samples, as `base_`.
    _base_recalibrator: ClassVar[Any] = None

    # During a fit inside of another object: the groups (n,) of its samples, which lower the
    # effective number of samples, and the blocks (n,) that no fold divides.
    _outer_groups: ClassVar[np.ndarray | None] = None
    _outer_blocks: ClassVar[np.ndarray | None] = None

    # If the outer fit has estimated it: the ratio (n,) of `squares` of each sample to w².
    _outer_inflation: ClassVar[np.ndarray | None] = None

    # True if tensors stay on their device, at `fit` and afterwards.
    _fits_on_device = _maps_on_device = False

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the map from predicted to calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities of samples that the classifier was not fitted on;
            one-dimensional ones are of the last class. Of two columns both are read: where one is 1
            up to rounding, the other tells how close to 1. Tensors of PyTorch are taken from any
            device, with or without gradients. Results are arrays of NumPy; with scikit-learn's
            `array_api_dispatch`, recalibrators that scale log-probabilities return tensors.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        self : object
            The fitted recalibrator.

        Warns
        -----
        UserWarning
            If `y` holds one class only, or no sample of a class in `labels`.
        """
        data = check_calibration_data(self, X, y, sample_weight)
        self.classes_ = data.classes
        limit = None if len(self.classes_) >= _MIN_CLASSES_FOR_THREADS else 1
        with _threads().limit(limits=limit, user_api="blas"):
            self._fit(data)
        return self

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities. For two classes both columns, or that of the last class alone,
            which does not tell how close to 1 it is if that is less than rounding.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; rows sum to 1.
        """
        return to_matrix(self._map(check_predict_input(self, X)))

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Calibrated probabilities, the same as :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; a data frame after ``set_output``.
        """
        return self.predict_proba(X)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels; the first of several classes with the same probability.
        """
        proba = self.predict_proba(X)
        return take_classes(self.classes_, array_namespace(proba).argmax(proba, axis=1))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Minus the log loss of the calibrated probabilities.

        A recalibrator hardly changes the predicted classes, so that accuracy would not tell good
        ones from bad ones.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        score : float
            Minus the mean log loss, at most 0, which is best; probabilities of 0 count as the
            precision of their type, as in :func:`sklearn.metrics.log_loss`.
        """
        return negative_log_loss(y, self.predict_proba(X), self.classes_, sample_weight)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Names of the columns that :meth:`transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Ignored; the columns are the classes.

        Returns
        -------
        names : ndarray of shape (n_classes,) of str
            ``"proba_"`` followed by the class.
        """
        check_is_fitted(self)
        return probability_names(self.classes_)

    def to_module(self, *, dtype: Any = None) -> Any:
        """The fitted map as a module of PyTorch, to append to a network.

        Every differentiable map of class probabilities has one: all that scale log-probabilities or
        log-odds, splines, mixtures, and averages of these.

        Parameters
        ----------
        dtype : torch.dtype, default=None
            The floating-point type in which the module computes and that it returns. None is
            PyTorch's default, single precision as a rule.

        Returns
        -------
        module : torch.nn.Module
            Maps logits of shape (n_samples, n_classes) to calibrated ones; for two classes also
            log-odds of the last one, of shape (n_samples,) or (n_samples, 1), to calibrated
            log-odds. The softmax of the result is what :meth:`predict_proba` returns for the same
            logits, or for their softmax if the recalibrator was fitted on probabilities; also for
            those that it clips.

        Notes
        -----
        The parameters are buffers: they move to another device with the network and are saved with
        it, but not trained. Gradients reach the logits. Steps, such as bins and isotonic maps, and
        maps of subgroups or features have no module.
        """
        return make_module(self, dtype)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.array_api_support = self._fits_on_device and self._maps_on_device
        return tags

    @abstractmethod
    def _fit(self, data: ClassData) -> Any:
        """Set fitted attributes from checked `ClassData`."""

    @abstractmethod
    def _map(self, proba: Any) -> Any:
        """Map checked probabilities, (n, K) or (n,) of the last of two classes, to calibrated ones.

        The result has one of these shapes, too.
        """


def check_calibration_data(recalibrator: Any, X: Any, y: Any, sample_weight: Any) -> ClassData:
    """Check the arguments of `fit`; warn of a single class, or named classes without samples."""
    lens = getattr(recalibrator, "multi_class", None)
    data = check_fit_input(recalibrator, X, y, sample_weight, lens)
    data = count_outer_groups(recalibrator, data, sample_weight)
    if data.label.ndim == 2:
        constant = data.classes[(data.label == data.label[0]).all(axis=0)]
        if len(constant):
            warn(
                f"y holds one value only of the label(s) {format_values(constant)}, from which no "
                "probability can be learned. Pass samples with and without each label."
            )
        return data
    label, classes = data.label, data.classes
    is_single = array_namespace(label).all(label == label[0])
    if recalibrator.labels is None and is_single:
        warn(
            f"y holds one class only, {classes[int(label[0])]}, from which no probability can be "
            "learned. Pass samples of all classes, or name these with labels=[...]."
        )
    absent = classes[np.bincount(to_numpy(label), minlength=len(classes)) == 0]
    if recalibrator.labels is not None and len(absent) and not recalibrator._is_nested:
        warn(
            f"y holds no sample of {len(absent)} of the {len(classes)} classes: "
            f"{format_values(absent)}. Their calibrated probabilities rest on assumptions alone; "
            "nothing tells whether they are right. Collect samples of these classes."
        )
    return data


def count_outer_groups(
    recalibrator: "Recalibrator | ForecastRecalibrator", data: Data, sample_weight: ArrayLike | None
) -> Data:
    """Let the groups of the outer fit, if several, lower the effective number of samples."""
    groups, inflation = recalibrator._outer_groups, recalibrator._outer_inflation
    if groups is None:
        return data
    used = positive_weight_rows(sample_weight, len(groups))
    if inflation is not None:
        square = inflation[used] * to_numpy(data.weight) ** 2
        return replace(data, groups=groups[used], square=square)
    groups = groups[used]
    return data if np.ptp(groups) == 0 else count_groups(data, groups)


class ForecastRecalibrator(CheckedParameters, TransformerMixin, BaseEstimator, metaclass=ABCMeta):
    """Maps forecasts to forecasts: input is checked here, subclasses do the mapping."""

    _parameter_constraints = RECALIBRATOR_CONSTRAINTS
    _outer_groups: np.ndarray | None = None  # as of a `Recalibrator`
    _outer_inflation: np.ndarray | None = None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the map from forecasts to calibrated forecasts.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts of samples that the model was not fitted on: whatever
            :func:`~skcalib.forecasts.as_forecast` takes.

        y : array-like of shape (n_samples,)
            Outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        data = check_forecasts(y, X, sample_weight=sample_weight, names=("y", "X"))
        data = count_outer_groups(self, data, sample_weight)
        with _threads().limit(limits=1, user_api="blas"):  # products with vectors, and small ones
            self._fit(data)
        return self

    def transform(self, X: object) -> Forecast:
        """Calibrated forecasts.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts of the same kind as at :meth:`fit`.

        Returns
        -------
        forecast : Forecast
            Calibrated forecasts of the same samples.
        """
        check_is_fitted(self)
        return self._map(as_forecast(X, name="X"))

    def score(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Minus the mean continuous ranked probability score of the calibrated forecasts.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts of the same kind as at :meth:`fit`.

        y : array-like of shape (n_samples,)
            Outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        score : float
            At most 0, which is best; in the units of the outcome.
        """
        return negative_crps(self.transform(X), y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags

    @abstractmethod
    def _fit(self, data: ForecastData) -> None:
        """Set fitted attributes from checked `ForecastData`."""

    @abstractmethod
    def _map(self, forecast: Forecast) -> Forecast:
        """Map checked forecasts to calibrated ones."""


class OneVsRestRecalibrator(Recalibrator):
    """Recalibrates two classes; more are mapped one by one, and rows are divided by their sums.

    `_fit_binary` returns the fitted state of one map, `_map_binary` applies it. If both columns of
    two classes are given, there are two more states of one map, of the first class and of the last:
    each has all digits where its class has the smaller probability.
    """

    _both_params: Any = None

    def _fit(self, data: ClassData) -> None:
        problems = [(1.0, data)] if data.is_binary else data.iter_one_vs_rest()
        self.maps_ = [self._fit_binary(each.with_proba(each.proba)) for _, each in problems]
        self._both_params = None
        if data.complement is not None:
            self._both_params = self._fit_binary(data.swap_classes()), self._fit_binary(data)

    def _map(self, proba: np.ndarray) -> np.ndarray:
        if len(self.maps_) > 1:
            return one_vs_rest(self._map_binary, self.maps_, proba)
        return self._map_two_classes(self._map_binary, proba)

    def _map_two_classes(self, mapping: Callable, proba: np.ndarray) -> np.ndarray:
        """Map the smaller column of each row, which has all digits, and return the last class."""
        if proba.ndim == 1 or self._both_params is None:
            return mapping(proba if proba.ndim == 1 else proba[:, 1], self.maps_[0])
        first, last = proba.T / proba.sum(axis=1)
        mapped, is_likely = mapping(last, self._both_params[1]), last > first
        likely = mapping(first[is_likely], self._both_params[0])
        mapped[is_likely] = 1 - (likely[:, ::-1] if likely.ndim == 2 else likely)
        return mapped

    def _state_map(self) -> PerClass:
        both = None if self._both_params is None else list(map(self._pieces, self._both_params))
        return PerClass(list(map(self._pieces, self.maps_)), both)

    def _pieces(self, params: Any) -> Pieces:
        """Return the map of one class in pieces that are linear, if it has some."""
        raise NotImplementedError

    @abstractmethod
    def _fit_binary(self, data: ClassData) -> Any:
        """Return the fitted state of the map of one class."""

    @abstractmethod
    def _map_binary(self, proba: np.ndarray, params: Any) -> np.ndarray:
        """Apply the map of one class, (n,) to (n,)."""


def one_vs_rest(mapping: Callable, maps: list[Any], proba: np.ndarray) -> np.ndarray:
    """Map the probability of one class (n,), or of all (n, K) and divide rows by their sums.

    A row that maps to zeros keeps its predicted probabilities.
    """
    if proba.ndim == 1:
        return mapping(proba, maps[0])
    mapped = np.empty(proba.shape)
    for k, params in enumerate(maps):
        mapped[:, k] = mapping(proba[:, k], params)
    is_zero = ~mapped.any(axis=1)
    mapped[is_zero] = proba[is_zero]
    mapped /= row_sums(mapped)[:, None]
    return mapped


def to_matrix(proba: Array) -> Array:
    """Return probabilities of all classes (n, K); those (n,) of the last of two become (n, 2)."""
    if proba.ndim == 1:
        return array_namespace(proba).stack([1 - proba, proba], axis=1)
    return proba


def log_matrix(proba: Array, smallest: float, order: Any = "C") -> Array:
    """Return log p of all classes (n, K), from p (n,) or (n, K), in this memory order."""
    smallest = smallest_known_probability(proba, smallest)
    proba = to_matrix(proba)
    if isinstance(proba, np.ndarray):
        proba = np.asarray(proba, dtype=np.float64, order=order)
    return log_probabilities(proba, smallest)


def take_classes(classes: np.ndarray, index: Array) -> Array:
    """Return the classes of indices (n,); numeric classes stay on the device of the indices."""
    if isinstance(index, np.ndarray) or classes.dtype.kind not in "bif":
        return classes[to_numpy(index)]
    xp = array_namespace(index)
    return xp.take(xp.asarray(np.array(classes), device=device(index)), index, axis=0)


def probability_names(classes: np.ndarray) -> np.ndarray:
    return np.array([f"proba_{label}" for label in classes.tolist()], dtype=object)


def clone_for(recalibrator: Any, classes: np.ndarray | None, *, is_inner: bool = True) -> Any:
    """Return an unfitted copy with the classes as `labels`, as a fold may lack some of them."""
    recalibrator = clone_instance(recalibrator, "recalibrator")
    for needed in find_needed_arguments(recalibrator) if is_inner else ():
        name = type(recalibrator).__name__
        raise ValueError(
            "recalibrator must need nothing but predictions and labels inside of another one; "
            f"found {name}, which needs {needed}. Fit the {name} itself: it may hold others."
        )
    if is_inner and declines(recalibrator, "sample_weight"):
        raise ValueError(
            "recalibrator must take the weights of the one around it; found a request for none by "
            f"{type(recalibrator).__name__}. Set the request of the outer one instead."
        )
    if classes is not None and "labels" in recalibrator.get_params():
        recalibrator.set_params(labels=classes)
    if is_inner and isinstance(recalibrator, Recalibrator):
        recalibrator._is_nested = True
    return recalibrator


def declines(recalibrator: BaseEstimator, argument: str) -> bool:
    """True if metadata are routed, and `fit` requests no such one; unset requests count as set.

    Of a pipeline, True if all its steps decline.
    """
    if not get_config()["enable_metadata_routing"]:
        return False
    routing = get_routing_for_object(recalibrator)
    if isinstance(routing, MetadataRouter):
        names = routing._get_param_names(method="fit", return_alias=True, ignore_self_request=False)
        return argument not in names
    return routing.fit.requests.get(argument) not in (None, True)


def find_needed_arguments(recalibrator: BaseEstimator) -> set[str]:
    """Names of what `fit` needs besides predictions and labels, such as "by"."""
    return {
        parameter.name
        for parameter in signature(recalibrator.fit).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    }


def is_smooth(recalibrator: BaseEstimator) -> bool:
    """True for smooth maps of this package, also in a pipeline, a search or a frozen estimator."""
    if isinstance(recalibrator, Pipeline):
        steps = [step for _, step in recalibrator.steps if step not in (None, "passthrough")]
        return all(map(is_smooth, steps))
    inner = getattr(recalibrator, "best_estimator_", None)
    if isinstance(recalibrator, FrozenEstimator):
        inner = recalibrator.estimator
    if inner is not None:
        return is_smooth(inner)
    return isinstance(recalibrator, Recalibrator) and recalibrator._is_smooth


def is_order_preserving(recalibrator: BaseEstimator) -> bool:
    """True for maps of this package that never change the order of the classes within a row."""
    return isinstance(recalibrator, Recalibrator) and recalibrator._is_order_preserving


def check_enough_outcomes(data: ForecastData, why: str) -> None:
    if data.n_samples < 2:
        raise ValueError(
            f"y must hold at least 2 outcomes of positive weight, {why}; found "
            f"{data.n_samples} (n_samples={data.n_samples}). Collect more."
        )


def warn_unless_inside(recalibrator: BaseEstimator, is_inside: bool, why: str) -> None:
    if not is_inside:
        warn(
            f"The fit of {type(recalibrator).__name__} has no optimum, as {why}; the last step is "
            "kept. Collect more samples.",
            ConvergenceWarning,
        )
