"""The conditional kernel error of forecasts: a ridge regression of embedded outcomes.

The residual of a sample is ρ_i = a(y_i) − μ_i, with the features a of a kernel ℓ on outcomes and
the embedding μ_i = E a(Y_i) of the forecast. For labels, ℓ = 1[y = y'] and μ_i = p_i.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .._data import AnyData, ForecastData
from .._inputs.arrays import format_values
from .._numerics.median_distance import median_of_pairs
from .._numerics.ridge import cross_validated_norm, ridge_form
from .gram import gram_diagonal
from .kernels import MIN_KERNEL_BANDWIDTH, check_finite_kernel
from .matching import MatchingError
from .matching_checks import MatchingOptions, check_matching
from .matching_given import standardization

# Squared distances are differences of inner products; below this share of these they are rounding.
_SQUARED_DISTANCE_RTOL = 1e-13

# The values of options that serve forecasts: all others are for labels, or for numbers only.
_OF_FORECASTS = {
    "kernel": ("linear-rbf", "linear", "rbf"),
    "method": ("exact",),
    "estimation": ("biased", "debiased"),
    "multi_class": ("canonical",),
    "average": ("auto",),
}
_CLASS_OPTIONS = {"outcome_kernel": ("rbf",), "outcome_bandwidth": ("median",)}
_OPTIONS_OF_CLASSES_GIVEN_FEATURES = {name: _OF_FORECASTS[name] for name in ("kernel", "method")}


def error_of_forecasts(data: ForecastData, options: dict[str, Any]) -> float:
    """The conditional error of forecasts, from the options of the metric."""
    kernel, weight, penalty = options["outcome_kernel"], data.weight, options["regularization"]
    form = "marginal" if data.given is None else "individual"
    matching_options = MatchingOptions(
        calibration=form, kernel=kernel, bandwidth=options["outcome_bandwidth"], estimation="biased"
    )
    check_matching(data, matching_options)
    error = MatchingError(data, **vars(replace(matching_options, calibration="marginal")))
    pairs: Any = error.pairs_for(error.observed)
    index = np.arange(len(weight))
    embedded = pairs.forecast_pairs(index, index)  # ⟨μ_i, μ_j⟩
    terms = pairs.outcome_pairs(error.observed, index, index) + embedded
    terms *= error.scale**2  # ⟨ρ_i, ρ_j⟩
    check_finite_kernel(terms)
    gram = condition_gram(data, options["kernel"], options["bandwidth"], embedded)
    if penalty == "cv":
        spectrum, basis = np.linalg.eigh(terms)
        residuals = basis * np.sqrt(np.maximum(spectrum, 0.0))
        return cross_validated_norm(residuals, weight, gram=gram)
    quadratic = ridge_form(gram, weight, penalty or len(weight) ** -0.25)
    if options["estimation"] == "debiased":
        diagonal: Any = 1.0  # E ℓ(Y_i, Y_i)
        if callable(kernel):
            location, _, share = pairs.components
            values = gram_diagonal(kernel, location.reshape(-1, 1)).reshape(location.shape)
            diagonal = np.einsum("nc,nc->n", values, share)
        terms[index, index] -= error.scale**2 * (diagonal - np.diagonal(embedded))
    return float(np.sum(quadratic * terms))


def condition_gram(data: AnyData, kernel: str | Callable, bandwidth: Any, near: Any = None) -> Any:
    """The kernel on what is given: inner products, a Gaussian of distances, or their sum.

    If nothing is given it is the embeddings of the forecasts, with inner products `near` (n, n).
    """
    points = data.given
    if points is None and data.is_forecast and data.forecast._has_quantiles_only:
        points = data.forecast._parameters()  # cells are alike in all forecasts
    if points is not None:
        points = points.reshape(len(points), -1)
        centre, spread = standardization(points, data.weight)
        points = (points - centre) / (spread if bandwidth == "median" else 1.0)
        near = points @ points.T
    if kernel == "linear":
        return near.copy()
    sums = np.add.outer(np.diagonal(near), np.diagonal(near))
    square = np.maximum(sums - 2 * near, 0.0)
    square[square < _SQUARED_DISTANCE_RTOL * sums] = 0.0
    if bandwidth == "median":
        distance = np.sqrt(square[np.triu_indices(len(square), 1)])
        bandwidth = median_of_pairs(distance, data.weight) or 1.0
    with np.errstate(over="ignore"):
        gram = np.exp(-square / (2 * np.square(max(bandwidth, MIN_KERNEL_BANDWIDTH))))
    return gram + near if kernel == "linear-rbf" else gram


def check_kind(data: AnyData, options: dict[str, Any]) -> None:
    """Refuse options that are for labels only, or for forecasts of a number only."""
    is_forecast, given = data.is_forecast, data.given
    if given is not None and given.dtype.kind not in "biuf":
        raise ValueError(
            f"given must hold numbers; found {format_values(np.unique(given))}. Encode groups as "
            "columns of 0 and 1."
        )
    allowed_values = _OF_FORECASTS if is_forecast else _CLASS_OPTIONS
    kind = "forecasts of a number" if is_forecast else "probabilities of classes"
    if given is not None and not is_forecast:
        allowed_values = allowed_values | _OPTIONS_OF_CLASSES_GIVEN_FEATURES
        kind += " given features"
    for name, allowed in allowed_values.items():
        value = options[name]
        if callable(value) or hasattr(value, "shape") or value not in allowed:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, allowed))} for {kind}; found "
                f"{value!r:.80}. Leave it out."
            )
    follows = options["outcome_bandwidth"] == "median" and not callable(options["outcome_kernel"])
    if is_forecast and options["estimation"] == "debiased" and follows:
        raise ValueError(
            "estimation='debiased' needs an outcome_bandwidth that does not depend on outcomes, "
            "or the expectation of the error is unknown; found 'median'. Pass a number."
        )
