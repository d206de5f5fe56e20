"""Prior samples, which draw a fit to the predictions, or with more classes to a temperature."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._inputs.predictions import Predictions
from .._numerics.array_api import Array, doubles
from .._numerics.logits import clipped, smallest_probability
from .._numerics.softmax import softmax
from .._numerics.sorting import pool_ties
from .._numerics.temperature import best_temperature, tempered
from ._base import OneVsRestRecalibrator, share_of_prior
from ._logits import log_matrix

# Prior samples of a temperature, by default and where other maps are drawn to one.
WEIGHT_OF_TEMPERATURE = 8.0

# Prior samples of maps with parameters for each class, for two classes.
WEIGHT_OF_CLASSES = 16.0


class Outcomes(NamedTuple):
    """Distinct predictions, the mass of outcomes 0 and 1 at each, and the share of one sample."""

    points: np.ndarray  # (m,), away from 0 and 1
    mass: np.ndarray  # (2, m)
    share: float


class DrawnOneVsRestRecalibrator(OneVsRestRecalibrator):
    """`_fit_binary` gets the `Outcomes` of a class, mixed with those of prior samples."""

    prior_weight: float

    def _fit(self, predictions: Predictions) -> None:
        self.smallest_probability_ = smallest_probability(predictions.proba)
        super()._fit(predictions)

    def _problems(self, predictions: Predictions) -> Iterator[Any]:
        smallest = self.smallest_probability_
        if predictions.is_binary:
            yield _outcomes(predictions, smallest, share_of_prior(predictions, self.prior_weight))
            return
        log_proba = log_matrix(predictions.proba, smallest)
        share, expected = prior_of_classes(log_proba, predictions, self.prior_weight)
        for k, problem in enumerate(super()._problems(predictions)):
            yield _outcomes(problem, smallest, share, expected[:, k])


def prior_of_classes(
    log_proba: Array, predictions: Predictions, prior_weight: float
) -> tuple[float, Array]:
    """The share of the prior in the labels, and the probabilities of its labels (n, K).

    With K classes there are K/2 times as many prior samples, so that each class gets as many. They
    lend each class what all say together: the best temperature. For two classes that would be
    hardly less than what is to be fitted, so that their labels are distributed as predicted.
    """
    n_classes = log_proba.shape[1]
    share = share_of_prior(predictions, prior_weight * n_classes / 2)
    if n_classes == 2 or share == 0:
        return share, softmax(doubles(log_proba, copy=True))
    temperature = best_temperature(
        lambda rows: doubles(log_proba[rows, ...], copy=True),
        predictions.label,
        predictions.weight,
        share_of_prior(predictions, WEIGHT_OF_TEMPERATURE),
    )
    expected = tempered(log_proba, temperature)
    return share, clipped(expected, out=expected)


def _outcomes(
    predictions: Predictions, smallest: float, share: float, expected: np.ndarray | None = None
) -> Outcomes:
    """The labels of two classes, mixed with expected ones (n,); None means those predicted.

    Both masses are positive if there is a prior, and keep every digit.
    """
    proba = clipped(predictions.proba, smallest)
    points, mass, _ = replace(predictions, proba=proba).pooled()
    if expected is None:
        drawn = mass.sum(axis=0) * np.stack([1 - points, points])
    else:
        drawn = pool_ties(proba, predictions.weight * np.stack([1 - expected, expected]))[1]
    mass = (1 - share) * mass + share * drawn
    return Outcomes(points, mass, predictions.share_of_one_sample)
