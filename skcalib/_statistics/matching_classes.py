"""The distribution matching error of class probabilities as a function of the labels."""

from copy import copy

import numpy as np

from .base import Statistic
from .matching import MatchingError
from .matching_features import LossResiduals, loss_table
from .matching_given import same_group
from .matching_losses import as_losses, class_actions
from .matching_target import Residuals
from .squared_error import SquaredKernelError


class ClassMatchingError(MatchingError):
    """Residuals of labels, or of losses, given nothing, groups, features or decisions."""

    def _forecast_held_fixed(self):
        return None, 1.0

    def _given(self):
        if self.options["calibration"] == "decision":
            losses = as_losses(self.options["loss"])
            return same_group(class_actions(losses, self.data.classes, self.data.matrix))
        return super()._given()

    @property
    def has_features(self) -> bool:
        return False

    def _target(self):
        if self.options["kernel"] == "loss":
            table = loss_table(self.options["loss"], self.data.classes)
            self._n_features = table.shape[1]
            return LossResiduals(self.data.matrix, self.weight, table), None
        self._n_features = len(self.data.classes)
        return Residuals(self.data.matrix, self.weight), None

    def values_of(self, outcomes: np.ndarray) -> np.ndarray:
        return outcomes


class MeanOfClasses(Statistic):
    """The mean over classes of the squared kernel error of each class against the rest."""

    def __init__(self, predictions, **options):
        self.data = predictions
        self.errors = [
            SquaredKernelError(problem, **options) for _, problem in predictions.classwise()
        ]

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        return np.mean([error(labels == k) for k, error in enumerate(self.errors)], axis=0)

    def at_rows(self, rows: np.ndarray) -> "MeanOfClasses":
        """The statistic of some samples, with the same bandwidths."""
        part = copy(self)
        part.data = self.data.take(rows)
        part.errors = [error.on(error.data.take(rows)) for error in self.errors]
        return part

    def term_matrices(self, outcomes: np.ndarray) -> np.ndarray:
        """w_i w_j h_ij for R vectors of labels (R, n), (R, n, n)."""
        problems = enumerate(self.errors)
        return np.mean([_terms(error, outcomes == k) for k, error in problems], axis=0)


class OneError(MeanOfClasses):
    """The squared kernel error of all classes at once."""

    def __init__(self, predictions, **options):
        self.data = predictions
        self.errors = [SquaredKernelError(predictions, **options)]

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        return self.errors[0](labels)

    def term_matrices(self, outcomes: np.ndarray) -> np.ndarray:
        return _terms(self.errors[0], outcomes)


class TopLabelError(OneError):
    """The squared kernel error of the predicted class: its probability, and whether it is right."""

    def __init__(self, predictions, **options):
        self.data = predictions
        self.errors = [SquaredKernelError(predictions.confidence(), **options)]

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        return self.errors[0](self._hits(labels))

    def term_matrices(self, outcomes: np.ndarray) -> np.ndarray:
        return _terms(self.errors[0], self._hits(outcomes))

    def _hits(self, labels):
        return labels == np.argmax(self.data.proba, axis=1)


def _terms(error, labels):
    kernel, points = error.kernel, error.data.matrix
    mass = error.weighted_residuals(labels).transpose(1, 0, 2)  # (R, n, K)
    return kernel(points, points) * (mass @ mass.transpose(0, 2, 1))
