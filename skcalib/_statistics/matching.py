"""The distribution matching error as a function of the outcomes."""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._data import AnyData, ClassData
from .._numerics.median_distance import pair_weight
from ..forecasts import EnsembleForecast
from . import matching_features
from .base import Statistic
from .gram import gram_quadratic_forms
from .kernels import check_finite_kernel
from .matching_checks import MatchingOptions, check_matching
from .matching_features import Features, OutcomeWaves, RandomWaves, UniformWaves
from .matching_given import compute_in_blocks, make_condition_kernel
from .matching_pairs import OutcomePairs, UniformPairs
from .squared_error import SquaredKernelError, check_not_negative

# The bandwidth for PITs: exp(−d²/0.1) in the parametrisation of Marx et al. (2023).
PIT_BANDWIDTH = math.sqrt(0.05)

# Bound on the rounding error of a term that comes from features.
_FEATURE_TERM_ATOL = 1e-9

# Features per sample that are still faster than pairs: of normal forecasts, and of ensembles or
# nodes with many members.
MAX_FEATURES = 300
_MAX_FEATURES_OF_MEMBERS = 4000

# A draw may need twice the number of features of the observed outcomes, and this many more.
_MORE_FEATURES = 64

# Wider kernels of outcomes are constant; products of their bandwidths overflow.
_MAX_OUTCOME_BANDWIDTH = 1e300

# Named kernels of outcomes that are at most 1.
_BOUNDED_KERNELS = ("rbf", "laplacian")


class MatchingError(Statistic):
    """The distribution matching error as a function of the outcomes of given predictions.

    Terms of pairs of samples are inner products of features where there are any, and otherwise
    computed pair by pair. Labels of classes have one-hot vectors, or losses, as features.

    An ensemble without weights is replaced by the law of all s + 1 values, of which the
    outcome is one: a(y) − Σ a(x_k)/s is (s + 1)/s times the difference from its mean. So all that
    is held fixed stays the same when the outcome changes places with a member.
    """

    supports = frozenset({"any-order", "groups"})

    block_size = None

    def __init__(self, data: AnyData, **options: Any) -> None:
        self.data, self.pair_weight = data, pair_weight(data.weight)
        self.options, self.matching_options = options, MatchingOptions(**options)
        self.estimation = self.matching_options.estimation
        if self.matching_options.method == "exact":
            self.supports = self.supports | {"pair-terms"}
        self.forecast: Any = data.forecast if data.is_forecast else None
        self.scale: Any = 1.0  # or one for each sample, (n,)
        if data.is_forecast and data.forecast.is_exchangeable:
            pooled = data.exchangeable_values()
            self.forecast = EnsembleForecast(pooled, np.ones(pooled.shape[1]))
            self.scale = 1 + 1 / data.forecast._n_members
        self.observed = self.to_component_scale(data.outcome[None])[0]  # (n,)
        self.mass = data.weight if self.matching_options.is_of_pits else self.scale * data.weight
        self.bandwidth = self.matching_options.bandwidth
        has_own = self.forecast is not None and self.matching_options.kernel in ("rbf", "laplacian")
        self.has_median = False  # whether each vector of outcomes has a bandwidth of its own
        if self.bandwidth == "median":
            self.has_median = has_own and not self.matching_options.is_of_pits
            self.bandwidth = PIT_BANDWIDTH if self.matching_options.is_of_pits else 1.0
        self.bandwidth = min(float(self.bandwidth), _MAX_OUTCOME_BANDWIDTH)
        self.given = make_condition_kernel(data, self.forecast, self.matching_options)
        self.features: Any = self._features()
        self.n_features = self.features.size if self.has_features else 1
        if self.has_features and not self.features.is_exact:
            self.tie_tolerance = _FEATURE_TERM_ATOL * np.max(self.scale) ** 2
        self.min_batches = 1 if self.has_features else 16  # batches of pairs are not faster

    @property
    def has_features(self) -> bool:
        """True if terms of pairs are inner products of features."""
        return self.features is not None

    @property
    def largest_term(self) -> float | None:
        """A bound on the terms h_ij, if one is known."""
        scale = np.max(self.scale)
        bound = 2.0 * scale**2 if self.matching_options.kernel in _BOUNDED_KERNELS else None
        if self.matching_options.has_decision_kernel:
            bound = self.features.largest_term
        if bound is None or not callable(self.matching_options.given_kernel):
            return bound
        return bound * float(self.given.diagonal.max())  # the kernel is semi-definite

    @property
    def numbers_per_draw(self) -> int:
        return len(self.mass) * self.n_features

    # Features of outcomes, or terms of pairs

    def _features(self) -> Any:
        """Features, or None where terms of pairs are faster or all that is known."""
        data, matching_options = self.data, self.matching_options
        if not data.is_forecast:
            return matching_features.class_features(data, matching_options)
        shared = self.forecast, self.mass
        if matching_options.has_decision_kernel:
            return matching_features.decision_features(*shared, matching_options)
        if matching_options.method == "fourier" and matching_options.kernel == "laplacian":
            return RandomWaves(*shared, self.given, matching_options)
        if matching_options.kernel != "rbf":
            return None
        waves: Features
        if matching_options.is_of_pits:
            waves, most = UniformWaves(*shared, self.bandwidth), _MAX_FEATURES_OF_MEMBERS
        else:
            waves = OutcomeWaves(*shared, is_rough=matching_options.method == "fourier")
            components = waves.components
            is_simple = components is not None and components.location.shape[1] == 1
            most = MAX_FEATURES if is_simple else _MAX_FEATURES_OF_MEMBERS
        observed = self.observed[None]
        waves.size = waves.counts(observed, self._bandwidths(observed))[1]
        return waves if waves.size <= most else None

    def _bandwidths(self, values: np.ndarray) -> np.ndarray:
        """The bandwidth for each row of outcomes (R, n), (R,)."""
        if not self.has_median:
            return np.full(len(values), float(self.bandwidth))
        return np.apply_along_axis(
            matching_features.outcome_bandwidth, 1, values, self.data.weight, self.forecast
        )

    def pairs_for(self, value: np.ndarray) -> OutcomePairs | UniformPairs:
        """The terms of pairs; their bandwidth may depend on the outcomes (n,)."""
        kernel = self.matching_options.kernel
        if self.matching_options.is_of_pits:
            return UniformPairs(self.forecast, kernel, self.bandwidth)
        return OutcomePairs(self.forecast, kernel, float(self._bandwidths(value[None])[0]))

    @cached_property
    def pairs(self) -> OutcomePairs | UniformPairs:
        """The terms of pairs, if they have one bandwidth."""
        return self.pairs_for(self.observed)

    # Values

    def to_component_scale(self, outcomes: np.ndarray) -> np.ndarray:
        """Outcomes on the scale of the forecast's components, (R, n)."""
        if not self.data.is_forecast:
            return outcomes
        values = self.data.to_outcome_values(outcomes)
        if self.matching_options.is_of_pits or not self.forecast._has_quantiles_only:
            return values
        return np.array([self.forecast._match_scale(value) for value in values])

    def __call__(self, outcomes: np.ndarray) -> np.ndarray:
        """Values (R,) for R vectors of outcomes (R, n)."""
        sums, diagonal = self._sums(self.to_component_scale(outcomes))
        is_biased = self.estimation == "biased"
        result = sums + diagonal if is_biased else sums / self.pair_weight
        check_finite_kernel(result)
        if is_biased:
            check_not_negative(result, len(self.mass) * diagonal)
            result = np.maximum(result, 0.0)
        return result

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        """Values (R,), up to a constant, if the terms h_ij of the observed outcomes are multiplied
        by the signs (R, n) of both samples.
        """
        forms, _ = gram_quadratic_forms(*self.gram_terms(), signs.T)
        return forms

    def _sums(self, values: np.ndarray) -> np.ndarray | tuple[Any, ...]:
        """Σ_{i≠j} w_i w_j h_ij and Σ_i w_i² h_ii, each (R,)."""
        if not self.has_features:
            return self._sums_of_pairs(values)
        bandwidth = self._bandwidths(values)
        counts, together = self.features.counts(values, bandwidth)
        if together <= 2 * self.n_features + _MORE_FEATURES:
            feature_rows = self.features.make_feature_function(values, bandwidth)
            return self.given.sums_of_features(feature_rows, self.n_features * len(values))
        if len(values) == 1:
            return self._sums_of_pairs(values)
        # some draws lie far out, or close together: a grid of frequencies for fewer of them
        order = np.argsort(counts, kind="stable")
        sums = np.empty((2, len(values)))
        for half in np.array_split(order, 2):
            sums[:, half] = self._sums(values[half])
        return sums

    def _sums_of_pairs(self, values: np.ndarray) -> np.ndarray:
        """Both sums from the terms of pairs."""
        if self.has_median:
            return np.transpose([self._sums_of(self._terms(value)) for value in values])
        points = self.pairs.points(values)
        each = [self._sums_of(partial(self.pairs.outcome_pairs, value)) for value in points]
        return np.transpose(each) + np.array(self._sums_of_forecasts)[:, None]

    @cached_property
    def _sums_of_forecasts(self) -> tuple[Any, ...]:
        """The part of the sums that does not depend on the outcomes."""
        return self._sums_of(self.pairs.forecast_pairs)

    def _sums_of(self, terms: Callable) -> tuple[Any, ...]:
        return self.given.sums_of_terms(terms, self.mass)

    def _terms(self, value: Any) -> Any:
        """ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij as a function of indices."""
        pairs = self.pairs_for(value) if self.has_median else self.pairs
        value = pairs.points(value[None])[0]
        return lambda i, j: pairs.outcome_pairs(value, i, j) + pairs.forecast_pairs(i, j)

    def _mass(self, values: np.ndarray) -> np.ndarray:
        """w_i ρ_i for all draws, (R, C, n)."""
        feature_rows = self.features.make_feature_function(values, self._bandwidths(values))
        return compute_in_blocks(feature_rows, len(self.mass), self.n_features * len(values))

    def gram_terms(self) -> tuple[Callable, np.ndarray, np.ndarray]:
        """A kernel, points (n, d) and mass (n, C) with w_i w_j h_ij = k(i, j) ⟨mass_i, mass_j⟩.

        These are the terms for the outcomes that were observed.
        """
        if self.has_features:
            return self.given.kernel, self.given.points, self._mass(self.observed[None])[0].T
        kernel = self.given.multiply_terms(self._terms(self.observed))
        return kernel, np.arange(len(self.mass))[:, None], self.mass[:, None]

    # Some of the samples

    def take(self, rows: np.ndarray) -> "MatchingError":
        """The statistic of some samples, with all bandwidths as they are."""
        subset = copy(self)
        for name in ("pairs", "_sums_of_forecasts"):
            vars(subset).pop(name, None)
        subset.data, subset.observed = self.data.take(rows), self.observed[rows]
        subset.mass = self.mass[rows] / self.data.weight[rows].sum()
        subset.given = self.given._replace(points=self.given.points[rows], features=None)
        subset.matching_options = replace(self.matching_options, method="exact")
        if self.has_features and self.features.is_exact:
            subset.features = self.features.take(rows, subset.mass)
            return subset
        subset.bandwidth, subset.has_median = float(self._bandwidths(self.observed[None])[0]), False
        subset.forecast = self.forecast[rows]
        subset.features = subset._features()
        return subset

    def term_matrices(self, outcomes: np.ndarray) -> np.ndarray:
        """w_i w_j h_ij for R vectors of outcomes (R, n), (R, n, n)."""
        values = self.to_component_scale(outcomes)
        near = self.given.kernel(self.given.points, self.given.points)
        if self.has_features:
            mass = self._mass(values)
            return near * (mass.transpose(0, 2, 1) @ mass)
        index = np.arange(len(self.mass))
        terms = np.array([self._terms(value)(index, index) for value in values])
        return near * np.outer(self.mass, self.mass) * terms


class ClassKernelErrors(Statistic):
    """The mean of squared kernel errors: of each class against the rest for "marginal", else one.

    "top-label" compares the predicted class with the rest; other forms compare all classes.
    """

    has_features = True

    def __init__(self, data: ClassData, calibration: str, **options: Any) -> None:
        self.data, self.calibration = data, calibration
        problems = [data]
        if calibration == "marginal":
            problems = [problem for _, problem in data.iter_one_vs_rest()]
        elif calibration == "top-label":
            problems = [data.confidence()]
        self.errors = [SquaredKernelError(problem_data, **options) for problem_data in problems]

    def _outcomes(self, labels: np.ndarray) -> Any:
        """The labels (R, n) of each problem."""
        if self.calibration == "marginal":
            return [labels == k for k in range(len(self.errors))]
        is_top_label = self.calibration == "top-label"
        return [labels == np.argmax(self.data.proba, axis=1) if is_top_label else labels]

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        pairs = zip(self.errors, self._outcomes(labels), strict=True)
        return np.mean([error(outcomes) for error, outcomes in pairs], axis=0)

    def take(self, rows: np.ndarray) -> "ClassKernelErrors":
        """The statistic of some samples, with the same bandwidths."""
        subset = copy(self)
        subset.data = self.data.take(rows)
        subset.errors = [error.with_data(error.data.take(rows)) for error in self.errors]
        return subset

    def term_matrices(self, outcomes: np.ndarray) -> np.ndarray:
        """w_i w_j h_ij for R vectors of labels (R, n), (R, n, n)."""
        pairs = zip(self.errors, self._outcomes(outcomes), strict=True)
        return np.mean([_terms_of(error, values) for error, values in pairs], axis=0)


def _terms_of(error: SquaredKernelError, labels: np.ndarray) -> np.ndarray:
    mass = error.weighted_residuals(labels).transpose(1, 0, 2)  # (R, n, K)
    return error.kernel(error.data.matrix, error.data.matrix) * (mass @ mass.transpose(0, 2, 1))


def make_matching_error(
    data: AnyData, options: MatchingOptions, random_state: np.random.RandomState
) -> MatchingError | ClassKernelErrors:
    """The statistic of a user's options, which are judged here."""
    check_matching(data, options)
    if data.is_forecast:
        seed = random_state.randint(2**31 - 1) if options.method == "fourier" else None
        return MatchingError(data, **vars(replace(options, seed=seed)))
    form, has_losses = options.calibration, options.kernel == "loss"
    if form == "decision" or (has_losses and form == "marginal") or data.given is not None:
        return MatchingError(data, **vars(options))
    shared: dict[str, Any] = {"kernel": options.given_kernel, "bandwidth": options.given_bandwidth}
    if has_losses:
        table = matching_features.loss_table(options.losses, data.classes)
        shared["class_kernel"] = table @ table.T
    form = "canonical" if data.is_binary or has_losses else form
    return ClassKernelErrors(data, form, estimation=options.estimation, **shared)
