"""The distribution matching error as a function of the outcomes."""

import math
from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from .._inputs.scikit_learn import StrOptions, validate_parameter_constraints
from ..forecasts import EnsembleForecast
from ..forecasts._data import ForecastData
from .base import Statistic
from .checks import check_finite_kernel
from .features import random_frequencies
from .functions import KERNELS
from .gram import gram_quadratic_forms
from .matching_checks import (
    FEATURE_KERNELS,
    FORMS,
    MATCHING_CONSTRAINTS,
    PIT_FORMS,
    check_forecast_loss,
    check_options,
)
from .matching_features import outcome_features
from .matching_given import Given, given_of, raw_points
from .matching_pairs import OutcomePairs, UniformPairs
from .matching_sums import all_rows, feature_sums, term_sums, times_given
from .matching_target import (
    MOST_FEATURES,
    OutcomeWaves,
    RandomWaves,
    UniformWaves,
    outcome_bandwidth,
)
from .squared_error import check_not_negative, pair_weight

# The bandwidth for PITs: exp(−d²/0.1) in the parametrisation of Marx et al. (2023).
PIT_BANDWIDTH = math.sqrt(0.05)

# Several times the largest error of a term that comes from features, which depends on the batch.
_RESOLUTION = 1e-9

# Features per sample that are still faster than pairs of ensembles or nodes with many members.
_MANY_FEATURES = 4000

# A draw may need twice the number of features of what was observed, and this many more.
_MORE_FEATURES = 64


class MatchingError(Statistic):
    """The distribution matching error as a function of the outcomes of given forecasts.

    What does not depend on the outcomes is prepared once: a test evaluates many vectors of
    outcomes. An ensemble without weights is replaced by the law of all s + 1 values, of which the
    outcome is one: a(y) − Σ a(x_k)/s is (s + 1)/s times the difference from its mean. So all that
    is held fixed stays the same when the outcome changes places with a member.
    """

    kind = ForecastData.kind

    takes_signs = True

    block_size = None

    parameter_constraints: ClassVar[dict] = MATCHING_CONSTRAINTS | {
        "calibration": [StrOptions(FORMS)],
    }

    def __init__(
        self,
        data,
        *,
        calibration="distribution",
        loss=None,
        kernel="rbf",
        bandwidth="median",
        given_kernel="rbf",
        given_bandwidth="median",
        estimator="unbiased",
        method="exact",
        n_components=200,
        seed=None,
    ):
        self.data = data
        self.estimator = estimator
        self.weight = data.weight
        self.pair_weight = pair_weight(data.weight)
        self.is_of_pits = calibration in PIT_FORMS
        self.has_known_law = method == "exact"
        self.forecast, self.scale = self._forecast_held_fixed()
        if self.is_of_pits and bandwidth == "median":
            bandwidth = PIT_BANDWIDTH
        self.options: dict[str, Any] = {
            "calibration": calibration,
            "loss": loss,
            "kernel": kernel,
            "bandwidth": bandwidth,
            "given_kernel": given_kernel,
            "given_bandwidth": given_bandwidth,
            "estimator": estimator,
            "method": method,
            "n_components": n_components,
            "seed": seed,
        }
        self.given = self._given()
        self.points, self.kernel = self.given.points, self.given.kernel
        self.waves, self.pairs = self._target()
        if self.waves is not None and not self.has_features:
            self.resolution = _RESOLUTION * self.scale**2
        self.least_batches = 1 if self.waves else 16  # batches of pairs are not faster

    @classmethod
    def from_options(cls, data, **options):
        """The error with a user's options, which are judged here."""
        validate_parameter_constraints(
            cls.parameter_constraints, options, caller_name="CalibrationTest"
        )
        random_state = check_random_state(options.pop("random_state", None))
        seed = random_state.randint(2**31 - 1) if options.get("method") == "fourier" else None
        check_options(data, **options)
        check_forecast_loss(options.get("loss"))
        return cls(data, seed=seed, **options)

    @property
    def largest_term(self) -> float | None:
        """A bound on the terms h_ij, if one is known."""
        if callable(self.options["given_kernel"]):
            return None
        if self.has_features:
            return self.waves.features.largest_term
        return 2.0 * self.scale**2 if self.options["kernel"] in ("rbf", "laplacian") else None

    @property
    def numbers_per_draw(self) -> int:
        n_features = 1 if self.waves is None else self._n_features
        return len(self.weight) * n_features

    @property
    def has_features(self) -> bool:
        """Whether the kernel is one of decisions, with finitely many features."""
        kernel = self.options["kernel"]
        return not callable(kernel) and kernel in FEATURE_KERNELS

    def _forecast_held_fixed(self):
        """The forecast that does not change with the outcome, and the factor of the residuals."""
        forecast = self.data.forecast
        if not forecast.is_exchangeable:
            return forecast, 1.0
        pooled = self.data.pooled()
        size = pooled.shape[1] - 1
        return EnsembleForecast(pooled, np.ones(size + 1)), (size + 1) / size

    # What is conditioned on

    def _given(self) -> Given:
        return given_of(self.data, self.forecast, self.options)

    def raw_points(self) -> np.ndarray:
        """What is conditioned on, as it came, (n, d)."""
        return raw_points(self.data, self.forecast, self.options["given_kernel"])

    # What is matched

    def _target(self):
        """Features, or None and terms of pairs."""
        kernel, bandwidth = self.options["kernel"], self.options["bandwidth"]
        if self.has_features:
            features = outcome_features(self.forecast, self.weight, self.scale, self.options)
            self._n_features = len(features.features.mean)
            return features, None
        if self.options["method"] == "fourier" and kernel == "laplacian":
            return self._random_waves(), None
        values = self.values_of(self.data.outcome[None])
        if kernel == "rbf":
            waves, most = self._waves(bandwidth)
            self._n_features = waves.counts(values)[1]
            if self._n_features <= most:
                return waves, None
        if self.is_of_pits:
            return None, UniformPairs(self.forecast, kernel, bandwidth)
        if self.has_own_bandwidths:
            return None, None
        return None, OutcomePairs(self.forecast, kernel, bandwidth, self.scale)

    @property
    def has_own_bandwidths(self):
        """Whether each vector of outcomes has a bandwidth of its own, in a sum over pairs."""
        has_median = self.options["bandwidth"] == "median" and not self.is_of_pits
        return has_median and self.options["kernel"] in ("rbf", "laplacian")

    def _waves(self, bandwidth):
        """The features of the rbf kernel, and their number up to which they are faster."""
        if self.is_of_pits:
            return UniformWaves(self.forecast, self.weight, bandwidth), _MANY_FEATURES
        is_rough = self.options["method"] == "fourier"
        waves = OutcomeWaves(self.forecast, self.weight, bandwidth, self.scale, is_rough=is_rough)
        parts = waves.components
        is_simple = parts is not None and parts.location.shape[1] == 1
        return waves, MOST_FEATURES if is_simple else _MANY_FEATURES

    def _random_waves(self):
        size, generator = self.options["n_components"], np.random.default_rng(self.options["seed"])
        kernel, n = self.options["given_kernel"], len(self.weight)
        frequency = generator.standard_cauchy(size)
        turns = np.zeros((size, n))
        if self.given.bandwidth is not None:
            family = KERNELS["exponential" if kernel == "wasserstein" else kernel]
            shape = (size, self.points.shape[1])
            chosen = random_frequencies(family, self.given.bandwidth, shape, generator)
            turns = chosen / (2 * np.pi) @ self.points.T
        self._n_features = 2 * size
        bandwidth = self.options["bandwidth"]
        return RandomWaves(self.forecast, self.weight, bandwidth, self.scale, frequency, turns)

    # Values

    def values_of(self, outcomes: np.ndarray) -> np.ndarray:
        """Outcomes on the scale of the forecast's components, (R, n)."""
        values = self.data.values_of(outcomes)
        if self.is_of_pits:
            return values
        return np.array([self.forecast._match_scale(value) for value in values])

    def __call__(self, outcomes: np.ndarray) -> np.ndarray:
        """Values (R,) for R vectors of outcomes (R, n)."""
        values = self.values_of(outcomes)
        sums, diagonal = self._sums(values)
        is_biased = self.estimator == "biased"
        result = sums + diagonal if is_biased else sums / self.pair_weight
        check_finite_kernel(result)
        if is_biased:
            check_not_negative(result, len(self.weight) * diagonal)
            result = np.maximum(result, 0.0)
        return result

    def of_signs(self, signs: np.ndarray) -> np.ndarray:
        """Values (R,), up to a constant, if the terms h_ij of the observed outcomes are multiplied
        by the signs (R, n) of both samples.
        """
        forms, _ = gram_quadratic_forms(*self.gram_terms(), signs.T)
        return forms

    def _sums(self, values):
        """Σ_{i≠j} w_i w_j h_ij and Σ_i w_i² h_ii, each (R,)."""
        if self.waves is None:
            return self._sums_of_pairs(values)
        counts, together = self.waves.counts(values)
        most = 2 * self._n_features + _MORE_FEATURES
        if together <= most:
            return self._sums_of_features(values)
        if len(values) == 1:
            return self._sums_of_pairs(values)
        # some draws lie far out, or close together: a grid of frequencies for fewer of them
        order = np.argsort(counts, kind="stable")
        sums = np.empty((2, len(values)))
        for part in np.array_split(order, 2):
            sums[:, part] = self._sums(values[part])
        return sums

    def _sums_of_features(self, values):
        n_numbers = self._n_features * len(values)
        return feature_sums(self.waves.prepare(values), self.given, n_numbers)

    def _sums_of_pairs(self, values):
        """The same, from the terms of pairs."""
        if self.pairs is None:
            return np.transpose([self._sums_of(self._all_terms(value)) for value in values])
        if self.is_of_pits:
            values = self.pairs.intervals(values)
        each = [self._sums_of(partial(self.pairs.outcome_pairs, value)) for value in values]
        return np.transpose(each) + np.array(self._sums_of_forecasts)[:, None]

    @cached_property
    def _sums_of_forecasts(self):
        """The part of the sums that does not depend on the outcomes."""
        return self._sums_of(self.pairs.forecast_pairs)

    def _sums_of(self, terms):
        return term_sums(terms, self.given, self.weight)

    def _all_terms(self, value):
        """ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij as a function of indices."""
        pairs = self._pairs_for(value)
        if self.is_of_pits:
            value = pairs.intervals(value[None])[0]
        return lambda i, j: pairs.outcome_pairs(value, i, j) + pairs.forecast_pairs(i, j)

    def _pairs_for(self, value):
        """The target, whose bandwidth may depend on the outcomes (n,)."""
        if self.pairs is not None:
            return self.pairs
        bandwidth = self.options["bandwidth"]
        if bandwidth == "median":
            bandwidth = outcome_bandwidth(value, self.weight, self.forecast)
        return OutcomePairs(self.forecast, self.options["kernel"], bandwidth, self.scale)

    def _mass(self, values):
        """w_i ρ_i for all draws, (R, C, n)."""
        rows_of = self.waves.prepare(values)
        return all_rows(rows_of, len(self.weight), self._n_features * len(values))

    def gram_terms(self) -> tuple[Callable, np.ndarray, np.ndarray]:
        """A kernel, points (n, d) and mass (n, C) with w_i w_j h_ij = k(i, j) ⟨mass_i, mass_j⟩.

        These are the terms for the outcomes that were observed.
        """
        values = self.values_of(self.data.outcome[None])
        if self.waves is not None:
            return self.given.kernel, self.given.points, self._mass(values)[0].T
        kernel = times_given(self._all_terms(values[0]), self.given)
        return kernel, np.arange(len(self.weight))[:, None], self.weight[:, None]

    def at_rows(self, rows: np.ndarray) -> "MatchingError":
        """The statistic of some samples, with all bandwidths as they are."""
        part = copy(self)
        vars(part).pop("_sums_of_forecasts", None)
        part.data = self.data.take(rows)
        part.weight = part.data.weight
        part.given = self.given._replace(points=self.given.points[rows], features=None)
        part.options = self.options | {"method": "exact"}
        if self.forecast is not None:
            part.forecast = self.forecast[rows]
            if self.has_features:
                part.waves = self.waves.at_rows(rows, part.weight)
                return part
            if self.options["bandwidth"] == "median":
                value = self.values_of(self.data.outcome[None])[0]
                bandwidth = outcome_bandwidth(value, self.weight, self.forecast)
                part.options["bandwidth"] = bandwidth
        part.waves, part.pairs = part._target()
        return part

    def term_matrices(self, outcomes: np.ndarray) -> np.ndarray:
        """w_i w_j h_ij for R vectors of outcomes (R, n), (R, n, n)."""
        values = self.values_of(outcomes)
        near = self.given.kernel(self.given.points, self.given.points)
        if self.waves is not None:
            mass = self._mass(values)
            return near * (mass.transpose(0, 2, 1) @ mass)
        index = np.arange(len(self.weight))
        terms = np.array([self._all_terms(value)(index, index) for value in values])
        return near * np.outer(self.weight, self.weight) * terms
