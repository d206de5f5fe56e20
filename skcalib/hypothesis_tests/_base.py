"""The base of all tests: their input, their draws and their p-values."""

import sys
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from sklearn.utils import Tags, check_random_state

from .._data import (
    AnyData,
    ClassData,
    check_fit_input,
    check_forecasts,
    check_no_labels,
    with_given,
    with_groups,
)
from .._inputs.annotations import BaseEstimator
from .._inputs.arrays import ArrayLike
from .._inputs.drawing import evaluate_batches, make_batches
from .._inputs.probabilities import check_not_forecast, is_forecast
from .._inputs.scikit_learn import CheckedParameters, RandomState
from .._numerics.dependence import split_columns
from .._numerics.sorting import codes_by_appearance
from .._statistics.base import TIE_RTOL, Statistic
from ._weights import warn_of_weights


class HypothesisTest(CheckedParameters, BaseEstimator):
    """An estimator of probabilities and labels, or of forecasts and outcomes."""

    p_value_: float
    null_distribution_: np.ndarray

    # Parameters, and attributes that tests of several statistics or of subgroups set.
    labels: Any
    method: str
    statistic: Any
    n_resamples: int
    random_state: RandomState
    statistic_: float
    adjusted_p_values_: Any
    component_p_values_: dict[str, float]
    kernel_method_: str
    component_statistics_: dict[str, float]
    component_null_distributions_: dict[str, np.ndarray]
    subgroup_p_values_: dict[Any, float]
    subgroup_sizes_: dict[Any, int]
    subgroup_statistics_: dict[Any, float]
    subgroups_: list[Any]
    classes_: np.ndarray

    # Whether X holds logits.
    _expects_logits = False

    # Whether outcomes are redrawn with the weights held.
    _redraws_outcomes = True

    # The remedy that warnings and errors name if draws take very long or too much memory.
    _remedy = (
        "Choose fewer, raise n_jobs, or pass a random subsample of the rows. For a kernel error of "
        "more than two classes, metric_params={'method': 'fourier'} is fast."
    )

    @property
    def _fits_on_device(self) -> bool:
        """True if tensors stay on their device."""
        return False

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text, result = super().__repr__(N_CHAR_MAX), self._format_result()
        return f"{text}  # {result}" if result else text

    def _repr_html_inner(self) -> str:
        result = self._format_result()
        return super()._repr_html_inner() + (f"<p>{result}</p>" if result else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def _format_result(self) -> str:
        """The statistic and the p-value or e-value as a text; empty before `fit`."""
        names = {"statistic_": "statistic", "e_value_": "e-value", "p_value_": "p-value"}
        fitted = vars(self)
        texts = (f"{word} {fitted[key]:.3g}" for key, word in names.items() if key in fitted)
        return ", ".join(texts)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags


def delete_results(test: HypothesisTest) -> None:
    """Delete the results of an earlier fit, which may have set more attributes than this one."""
    for name in [name for name in vars(test) if name.endswith("_")]:
        delattr(test, name)


def check_test_input(
    test: HypothesisTest,
    X: object,
    y: Any,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None = None,
    given: ArrayLike | None = None,
    multi_class: Any = None,
) -> AnyData:
    """The arguments of `fit` of a test that takes probabilities or forecasts.

    Sets what scikit-learn's estimators know of X, and the classes if there are any.
    """
    data: AnyData
    delete_results(test)
    if is_forecast(X):
        check_no_labels(test.labels)
        data = check_forecasts(y, X, sample_weight=sample_weight, given=given, names=("y", "X"))
        test.n_features_in_ = 1  # as for a one-dimensional array
    else:
        data = check_fit_input(test, X, y, sample_weight, multi_class)
        test.classes_ = data.classes
        if given is not None:
            data = with_given(data, y, given, sample_weight)
        if groups is not None:
            data = data.to_numpy()
    if test._redraws_outcomes:
        warn_of_weights(data, sample_weight)
    return data if groups is None else with_groups(data, y, groups, sample_weight)


def check_class_input(test: HypothesisTest, X: ArrayLike, y: Any, sample_weight: Any) -> ClassData:
    """The arguments of `fit` of a test that takes probabilities of classes only."""
    check_not_forecast(X, "X")
    return cast(ClassData, check_test_input(test, X, y, sample_weight))


def check_supports(statistic: Statistic, need: str, remedy: str) -> None:
    """Refuse a statistic that does not support what the test needs, with the remedy."""
    if need not in statistic.supports:
        raise ValueError(remedy)


def as_p_value(probability: float) -> float:
    """A p-value as a float; positive also where it underflows, or where the data are impossible."""
    return max(float(probability), sys.float_info.min)


def monte_carlo_p_value(
    values: np.ndarray, alternative: str = "greater", tie_tolerance: float = 0.0
) -> float:
    """(1 + #{T* ≥ T}) / (1 + B) for the statistic T of the data, the first one, and B drawn ones.

    Against the side "less" the same with ≤, and for "two-sided" twice the smaller one of both, at
    most 1. Values that differ by at most the `tie_tolerance` count as equal, too.
    """
    if not np.isfinite(values).all():
        raise ValueError(
            f"statistic must be finite for every label vector; found {float(values[0])!r} for the "
            f"data and {np.sum(~np.isfinite(values[1:]))} value(s) that are not finite among the "
            "resampled ones. If it fails where a class does not occur among the labels, let it "
            "take an argument `labels`, in which it gets the classes."
        )
    slack = max(TIE_RTOL * np.abs(values).max(), tie_tolerance)
    above = np.count_nonzero(values >= values[0] - slack) / len(values)
    below = np.count_nonzero(values <= values[0] + slack) / len(values)
    return float(select_side(above, below, alternative))


def select_side(greater: Any, less: Any, alternative: str) -> Any:
    """The p-values against an alternative, from those against either side."""
    two_sided = np.minimum(1.0, 2 * np.minimum(greater, less))
    return {"greater": greater, "less": less, "two-sided": two_sided}[alternative]


def clip_infinite(values: np.ndarray) -> np.ndarray:
    """The values, infinite ones, which belong to impossible data, moved beyond all finite ones."""
    largest = float(np.abs(values).max(where=np.isfinite(values), initial=0.0))
    bound = min(1 + 2 * largest, np.finfo(np.float64).max)
    return np.clip(values, -bound, bound)


def draw_signs(groups: Any, n_draws: int, generator: np.random.Generator) -> np.ndarray:
    """Random signs (n_draws, n), the same for all samples of a group."""
    code = codes_by_appearance(groups)
    return generator.choice([-1.0, 1.0], size=(n_draws, int(code.max()) + 1))[:, code]


def compute_null_values(
    test: Any, statistic: Statistic, value: np.ndarray, order: Any, *, resampled: bool = False
) -> Any:
    """The value of the data and those of all draws, (1 + n_resamples, …), spread among jobs.

    The samples are drawn in the given order, which does not depend on that in which they came.
    There is one such array; with `groups` there are two to four, of the signs of each column and of
    simulated outcomes that have a class, or the rank of one, in common: signs hold for any
    dependence if there are many events, and simulated outcomes also if there are few. That of the
    data has signs that are all +1.
    """
    data, min_batches = statistic.data, statistic.min_batches
    simulate = simulate_resampled_values if resampled else simulate_outcome_values
    if data.groups is not None:
        observed = statistic.flip_signs(np.ones((1, len(order))))
    elif resampled:
        min_batches = 64
    if data.groups is not None or resampled or not statistic.can_simulate:
        data = data.take(order)
        if "any-order" in statistic.supports:
            statistic, order = statistic.with_data(data), None
    size = test.n_resamples, statistic.numbers_per_draw, min_batches
    rng = check_random_state(test.random_state)
    nulls = []
    if data.groups is not None:
        nulls += [
            (simulate_sign_values, replace(data, groups=code), observed, make_batches(*size, rng))
            for code in split_columns(data.groups)[:2]
        ]
    batches = make_batches(*size, rng)  # the same random numbers for all couplings
    nulls += [(simulate, coupled, value, batches) for coupled in data.iter_couplings()]
    compared = []
    for evaluate, model, first, batches in nulls:
        null_batches = evaluate_draws(test, partial(evaluate, statistic, model, order), batches)
        compared.append(np.concatenate([first, *null_batches]))
    return compared


# Bytes of memory for each drawn value, which is held, sorted and compared.
_BYTES_PER_DRAW = 24.0


def evaluate_draws(test: HypothesisTest, evaluate: Any, batches: list[Any]) -> list[Any]:
    """The values of all batches, spread among jobs."""
    parallel = {"n_jobs": getattr(test, "n_jobs", None), "verbose": getattr(test, "verbose", 0)}
    return evaluate_batches(evaluate, batches, _BYTES_PER_DRAW, test._remedy, **parallel)


def select_largest_p_value(judgements: list[Any]) -> dict[str, Any]:
    """The attributes that have the largest p-value; of several p-values, each is the largest."""
    result = dict(max(judgements, key=lambda judgement: judgement["p_value_"]))
    for name, p_values in result.items():
        if name.endswith("p_values_"):
            by_judgement = [judgement[name] for judgement in judgements]
            result[name] = {key: max(each[key] for each in by_judgement) for key in p_values}
    return result


def simulate_outcome_values(
    statistic: Statistic, data: AnyData, order: np.ndarray | None, size: int, seed: int
) -> np.ndarray:
    """Values for outcomes drawn from the data, which are in this order of the statistic's."""
    generator = np.random.default_rng(seed)
    if order is not None and statistic.can_simulate:
        return statistic.simulate(order, size, generator)
    simulated = data.simulate_outcomes(generator, size)
    if order is None:
        return statistic(simulated)
    outcomes = np.empty_like(simulated)
    outcomes[:, order] = simulated
    return statistic(outcomes)


def simulate_sign_values(
    statistic: Statistic, data: AnyData, order: np.ndarray | None, size: int, seed: int
) -> np.ndarray:
    """Values for the observed residuals, those of a whole group multiplied by a random sign."""
    return statistic.flip_signs(draw_signs(data.groups, size, np.random.default_rng(seed)))


def simulate_resampled_values(
    statistic: Statistic, data: AnyData, order: np.ndarray | None, size: int, seed: int
) -> np.ndarray:
    """Values for predictions drawn from the predictions, and outcomes drawn from these."""
    generator, n = np.random.default_rng(seed), len(data.weight)
    values = []
    for _ in range(size):
        resample = data.take(generator.integers(n, size=n))
        values.append(statistic.with_data(resample)(resample.simulate_outcomes(generator, 1))[0])
    return np.array(values)
