"""Prior samples, whose labels follow the predictions, and outcomes pooled with them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning

from .._data import ClassData, ForecastData
from .._inputs.warnings import warn
from .._numerics import logits
from .._numerics.array_api import Array, doubles
from .._numerics.sorting import pool_label_weights, pool_ties
from .._numerics.temperature import TemperingProblem, scale_by_temperature
from ._base import log_matrix

# Default number of prior samples of a temperature, also of one that other maps shrink to.
TEMPERATURE_PRIOR_WEIGHT = 8.0

# Default number of prior samples of maps with parameters for each class, for two classes.
CLASS_PRIOR_WEIGHT = 16.0

# A slope with less information than this, one over its variance, holds between the ends of the fit
# alone. It may be noise; but some models, such as AdaBoost, do squeeze all predictions together.
MIN_INFORMATION = 1.0


def prior_share(data: ClassData | ForecastData, prior_weight: float) -> float:
    """Return the fraction of the total weight that prior samples carry.

    The outcomes of prior samples are distributed as predicted. A fit aims at the observed outcomes
    mixed with the predictions in this proportion.
    """
    prior = float(prior_weight) * data.inverse_effective_size
    return prior / (1 + prior)


def least_probability(data: ClassData, prior_weight: float | None) -> float:
    """Return the probability below which a fit to these data tells none apart.

    Where predictions are almost certain, log-odds are mostly extrapolated. So with two classes and
    few samples for each one of the prior, they hardly reach further than one column can say.
    """
    prior = (prior_weight or 0.0) * data.inverse_effective_size
    if len(data.classes) > 2 or prior == 0:
        return logits.MIN_POSITIVE_PROBA
    return max(logits.EPSILON * np.exp(-1 / prior), logits.MIN_POSITIVE_PROBA)


def class_prior(log_proba: Array, data: ClassData, prior_weight: float) -> tuple[float, Array]:
    """Return the share of the prior in the labels, and the probabilities of its labels (n, K).

    With K classes there are K/2 times as many prior samples, so that each class gets equally many.
    Their labels follow the predictions at the best temperature, which all classes share. For two
    classes a temperature is almost the map to be fitted, so their labels follow the predictions.
    """
    n_classes = log_proba.shape[1]
    share = prior_share(data, prior_weight * n_classes / 2)
    if n_classes == 2 or share == 0:
        return share, logits.softmax_in_place(doubles(log_proba, copy=True))
    problem = TemperingProblem(
        lambda rows: doubles(log_proba[rows, ...], copy=True),
        data.label,
        data.weight,
        prior_share(data, TEMPERATURE_PRIOR_WEIGHT),
    )
    expected = scale_by_temperature(log_proba, problem.best_temperature())
    return share, logits.clip_proba(expected, out=expected)


class PooledOutcomes(NamedTuple):
    """Distinct predictions, the mass of outcomes 0 and 1 at each, and 1 / effective size."""

    log_odds: np.ndarray  # (m,), finite
    mass: np.ndarray  # (2, m)
    share: float

    @property
    def hardly_tells_slope(self) -> bool:
        """True if log-odds vary so little that the standard error of a slope is above 1."""
        total = self.mass.sum(axis=0)
        centred = self.log_odds - total @ self.log_odds
        centred *= centred
        variance = float(total @ centred)
        return self.mass.sum(axis=1).prod() * variance < MIN_INFORMATION * self.share


def iter_pooled_outcomes(
    data: ClassData, prior_weight: float, smallest: float
) -> Iterator[PooledOutcomes]:
    """Yield the pooled labels of two classes, or of each class, mixed with prior samples.

    The labels of prior samples follow the predictions, or `class_prior`. Both masses are
    positive if there is a prior, and keep every digit.
    """
    if data.is_binary:
        yield _pool_two_classes(data, prior_weight, smallest)
        return
    share, expected = class_prior(log_matrix(data.proba, smallest), data, prior_weight)
    for k, (_, problem) in enumerate(data.iter_one_vs_rest()):
        proba = logits.clip_proba(problem.proba, smallest)
        label_proba = np.stack([1 - expected[:, k], expected[:, k]])
        points, mass, _ = pool_label_weights(proba, problem.label, problem.weight, problem.square)
        mass = (1 - share) * mass + share * pool_ties(proba, problem.weight * label_proba)[1]
        yield PooledOutcomes(logit(points), mass, problem.inverse_effective_size)


def _pool_two_classes(data: ClassData, prior_weight: float, smallest: float) -> PooledOutcomes:
    sample = data.label, data.weight
    if data.complement is None:
        proba = logits.clip_proba(data.proba, smallest)
        points, mass, _ = pool_label_weights(proba, *sample, data.square)
        points = logit(points)
    else:
        log_odds = logits.column_log_odds(data.matrix, smallest)
        points, mass, _ = pool_label_weights(log_odds, *sample, data.squares)
    share, expected = prior_share(data, prior_weight), expit(np.stack([-points, points]))
    expected *= share * mass.sum(axis=0)
    mass *= 1 - share
    mass += expected
    return PooledOutcomes(points, mass, data.inverse_effective_size)


def warn_unless_converged(recalibrator: Any, converged: bool) -> None:
    # with a prior there is always a maximum, and the last step was within rounding of it
    if not converged and recalibrator.prior_weight == 0:
        warn(
            f"The likelihood of {type(recalibrator).__name__} has no maximum, as the outcomes can "
            "be separated; the last step is kept. Set a positive prior_weight, which keeps the fit "
            "finite.",
            ConvergenceWarning,
        )
