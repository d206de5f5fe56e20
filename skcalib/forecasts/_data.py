"""Checked forecasts and outcomes, and the door for either probabilities or forecasts."""

import contextlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from .._inputs.arrays import as_array, check_numbers, check_same_length
from .._inputs.by import check_groups, check_several_groups
from .._inputs.checks import (
    MIN_WEIGHT_SHARE,
    check_predictions,
    check_sample_weight,
    positive_weight_rows,
)
from .._inputs.predictions import ClassData
from .._inputs.probabilities import check_not_swapped, is_forecast
from .._inputs.warnings import check_memory
from .._numerics.sorting import codes_by_appearance
from ._base import MAX_NUMBER, Forecast, check_outcomes
from ._distribution import DistributionForecast
from ._ensemble import EnsembleForecast
from ._foreign import is_distribution, normal_parameters, unwrap_ngboost
from ._gaussian import GaussianForecast

_CONSTRUCTORS = (
    "(mean, std) or GaussianForecast(mean, std) for normal distributions, "
    "EnsembleForecast(members), QuantileForecast(quantiles, levels), "
    "GaussianMixtureForecast(mean, std, weights) or DistributionForecast(dist)"
)

Data = TypeVar("Data", bound="ClassData | ForecastData")


@dataclass(frozen=True)
class ForecastData:
    """Checked forecasts, outcomes and weights. For classes there are `ClassData`."""

    kind: ClassVar[str] = "forecasts"

    forecast: Forecast
    value: np.ndarray  # (n,), the outcomes
    weight: np.ndarray  # (n,), positive, sums to 1
    given: np.ndarray | None = None  # (n, d), or (n,) codes of groups: conditioned on
    groups: np.ndarray | None = None  # (n,), codes: samples of a group are not independent

    @property
    def n_samples(self) -> int:
        return len(self.value)

    @property
    def inverse_effective_size(self) -> float:
        """Σ w_i², one over the effective number of samples; 1/n for equal weights."""
        return float(self.weight @ self.weight)

    @property
    def outcome(self) -> np.ndarray:
        """The observed outcomes (n,), which `redraw` draws anew.

        An ensemble without weights has positions instead: the outcome itself has the position 0,
        the sorted members have those from 1.
        """
        if self.forecast.is_exchangeable:
            return np.zeros(len(self.value), dtype=np.intp)
        return self.value

    def take(self, rows: np.ndarray | slice) -> "ForecastData":
        """Some of the samples, possibly repeated; their weights sum to 1 again."""
        weight = self.weight[rows]
        return replace(
            self,
            forecast=self.forecast[rows],
            value=self.value[rows],
            weight=weight / weight.sum(),
            given=None if self.given is None else self.given[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    def simulate_outcomes(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Independent outcomes drawn from the forecasts, (size, n).

        For an ensemble without weights these are positions: all are equally likely if the outcome
        is exchangeable with the members.
        """
        check_memory(8.0 * size * len(self.value), f"n_resamples={size}", "Choose fewer.")
        if self.forecast.is_exchangeable:
            n_values = self.pool_label_weights().shape[1]
            return generator.integers(n_values, size=(size, len(self.value)))
        return self.forecast._simulate(generator, size)

    def pool_label_weights(self) -> np.ndarray:
        """The outcome and the sorted members of each ensemble, (n, s + 1)."""
        members = np.sort(self.forecast.components().location, axis=1)
        return np.column_stack([self.value, members])

    def to_component_scale(self, outcomes: np.ndarray) -> np.ndarray:
        """The values that redrawn outcomes (R, n) stand for."""
        if not self.forecast.is_exchangeable:
            return outcomes
        return np.take_along_axis(self.pool_label_weights(), outcomes.T, axis=1).T

    def with_outcome(self, outcome: np.ndarray) -> "ForecastData":
        """The data with other outcomes (n,), such as one row of `redraw`.

        A member that changes places with the outcome changes the forecast as well.
        """
        if not self.forecast.is_exchangeable:
            return replace(self, value=outcome)
        pooled_rows = self.pool_label_weights()
        rows = np.arange(len(pooled_rows))
        value = pooled_rows[rows, outcome]
        pooled_rows[rows, outcome] = self.value
        return replace(self, value=value, forecast=EnsembleForecast(pooled_rows[:, 1:]))

    @property
    def labels(self) -> None:
        """The argument `labels` of functions for users: forecasts have no classes."""

    def canonical_order(self) -> np.ndarray:
        """Indices (n,) that sort the samples by their forecasts, in whatever order they came.

        The outcome that changes places with members is one of what a sample is sorted by.
        """
        keys = self.forecast._sort_keys()
        if self.forecast.is_exchangeable:
            keys = [*keys, self.value]
        if self.given is not None:
            keys = [*keys, *self.given.reshape(len(self.value), -1).T]
        return np.lexsort((self.weight, *keys))


def as_forecast(obj: Any, *, name: str = "y_forecast") -> Forecast:
    """Make a forecast of what models return.

    Parameters
    ----------
    obj : object
        A forecast of this module, which is returned as it is; the pair ``(mean, std)`` that
        ``predict(X, return_std=True)`` returns; or an object that holds the distributions of all
        samples, as :class:`DistributionForecast` takes it. Normal distributions of any package
        become a :class:`GaussianForecast`.

    name : str, default="y_forecast"
        What the argument is called in error messages.

    Returns
    -------
    forecast : Forecast
        One of the classes of this module.

    Raises
    ------
    TypeError
        If this is no forecast. An array of two dimensions is refused, as members, quantiles, and
        columns of means and standard deviations look alike.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> from skcalib.forecasts import as_forecast
    >>> X, y = load_diabetes(return_X_y=True)
    >>> as_forecast(BayesianRidge().fit(X, y).predict(X, return_std=True))
    GaussianForecast(n_samples=442)
    """
    if isinstance(obj, Forecast):
        return obj
    if isinstance(obj, tuple) and len(obj) == 2:
        return GaussianForecast(*obj)
    if is_distribution(obj):
        normal = normal_parameters(obj)
        if normal is not None and np.ndim(normal[0]) == 1:
            return GaussianForecast(*normal)
        return DistributionForecast(unwrap_ngboost(obj))
    raise TypeError(f"{name} must be a forecast; found {_format_type(obj)}. Pass {_CONSTRUCTORS}.")


def _format_type(obj: Any) -> str:
    if isinstance(obj, tuple):
        return f"a tuple of {len(obj)} values"
    if isinstance(obj, type):
        return f"the class {obj.__name__} itself"
    if not isinstance(obj, str) and (hasattr(obj, "__array__") or isinstance(obj, list)):
        shape = as_array(obj, "y_forecast").shape
        kinds = " (members, quantiles or columns of mean and std look alike)" * (len(shape) == 2)
        return f"an array of shape {shape}, which does not say what it holds{kinds}"
    return f"{type(obj).__name__}"


def check_forecasts(
    y_true: Any,
    y_forecast: Any,
    *,
    sample_weight: Any = None,
    given: Any = None,
    names: tuple[str, str] = ("y_true", "y_forecast"),
) -> ForecastData:
    """Outcomes, forecasts and weights as `ForecastData`; rows of weight 0 are left out.

    `names` are the names of the first two arguments in error messages.
    """
    if is_forecast(y_true):
        check_not_swapped(y_true, names)
    forecast = as_forecast(y_forecast, name=names[1])
    value = check_outcomes(y_true, len(forecast), names[0])
    if len(value) == 0:
        raise ValueError(
            f"{names[0]} must hold at least one outcome; found none (0 sample(s)). Check which "
            "rows were taken."
        )
    forecast._check_outcomes(value, names[0])
    given = None if given is None else check_given(given, len(value))
    n = len(value)
    if sample_weight is None:
        return ForecastData(forecast, value, np.broadcast_to(1.0 / n, n), given)
    weight = check_sample_weight(sample_weight, n)
    share = weight / weight.sum()
    used = share > MIN_WEIGHT_SHARE
    if not used.all():
        forecast, value = forecast[used], value[used]
        given = None if given is None else given[used]
        share = weight[used] / weight[used].sum()
    return ForecastData(forecast, value, share, given)


def check_given(given: Any, n: int) -> np.ndarray:
    """Features (n, d), or labels of groups (n,) of any type."""
    array = as_array(given, "given")
    check_same_length({"y_true": n, "given": len(array)})
    if array.dtype.kind == "O":
        with contextlib.suppress(ValueError):
            array = check_numbers(array, "given", finite=False)
    is_group = array.dtype.kind in "OUSMmb"
    return _labels_of_groups(array) if is_group else check_numbers(array, "given", most=MAX_NUMBER)


def _labels_of_groups(labels: np.ndarray) -> np.ndarray:
    """Labels of groups, (n,), which can be sorted."""
    if labels.ndim > 1 and labels.shape[1] != 1:
        raise ValueError(
            "given must hold numbers, or one column of labels of groups; found "
            f"{labels.shape[1]} columns of type {labels.dtype}. Join them into one label for each "
            "sample, or encode them as numbers."
        )
    labels = labels.ravel()
    try:
        np.unique(labels)
    except TypeError as error:
        types = sorted({type(label).__name__ for label in labels.tolist()})
        raise ValueError(
            f"given must hold labels of one type, none of them missing; found {', '.join(types)}. "
            "Name the missing ones, such as 'unknown', or turn all into strings."
        ) from error
    return labels


def check_data(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    given: Any = None,
    groups: Any = None,
    names: tuple[str, str] = ("y_true", "y_proba"),
    may_be_numbers: bool = False,
    in_place: bool = False,
) -> ClassData | ForecastData:
    """`ClassData` from probabilities, and `ForecastData` from forecasts.

    With `may_be_numbers`, the outcomes tell if the predictions do not.
    """
    data: ClassData | ForecastData
    if is_forecast(y_proba) or (may_be_numbers and _is_forecast_problem(y_true, y_proba)):
        check_no_labels(labels, pos_label)
        data = check_forecasts(
            y_true, y_proba, sample_weight=sample_weight, given=given, names=names
        )
    else:
        data = check_predictions(
            y_true, y_proba, sample_weight, pos_label, labels, names=names, in_place=in_place
        )
        data = with_given(data, y_true, given, sample_weight)
    return data if groups is None else with_groups(data, y_true, groups, sample_weight)


def _is_forecast_problem(y_true: Any, y_proba: Any) -> bool:
    """Whether the arguments are outcomes and forecasts, rather than labels and probabilities.

    Fractions are no labels; and two columns in a tuple are the mean and the standard deviation.
    """
    if isinstance(y_proba, tuple) and len(y_proba) == 2 and len(y_true) != 2:
        return True
    values = as_array(y_true, "y_true")
    return values.dtype.kind == "f" and not np.array_equal(values, np.rint(values), equal_nan=True)


def with_given(data: ClassData, y_true: Any, given: Any, sample_weight: Any) -> ClassData:
    """Add the features to condition on; rows of weight 0 are left out."""
    if given is None:
        return data
    given = check_given(given, len(y_true))
    return replace(data, given=given[positive_weight_rows(sample_weight, len(y_true))])


def with_groups(data: Data, y_true: Any, groups: Any, sample_weight: Any) -> Data:
    """Add codes of the groups; rows of weight 0, and their groups, are left out."""
    if groups is None:
        return data
    code = check_groups(groups, len(y_true))
    code = codes_by_appearance(code[positive_weight_rows(sample_weight, len(y_true))])
    check_several_groups(code)
    return replace(data, groups=code)


def check_no_labels(labels: Any, pos_label: Any = None) -> None:
    """Refuse labels of classes for forecasts of a number."""
    for name, value in (("pos_label", pos_label), ("labels", labels)):
        if value is not None:
            raise ValueError(
                f"{name} must be None for forecasts of a number, which have no classes; found "
                f"{value!r:.80}. Leave it out."
            )
