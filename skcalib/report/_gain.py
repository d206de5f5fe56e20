"""What recalibration would gain, by cross-validation."""

import numpy as np
from sklearn.model_selection import GroupKFold, KFold

from .._inputs.predictions import Predictions
from .._numerics.proper import PROPER_LOSSES
from ..recalibration import AutoRecalibrator

_N_FOLDS = 5

# As many samples of two classes are recalibrated; of more, fewer by the square of their number.
_MOST_SAMPLES = 5000

# Fewer samples of each class say nothing.
_FEWEST_OF_A_CLASS = 10


def recalibration_gain(
    predictions: Predictions, rng: np.random.RandomState
) -> tuple[float, float, float] | None:
    """The mean log loss that `AutoRecalibrator` gains on samples it has not seen, and an interval.

    Of many samples a random part is used. None if there are too few for their number of classes.
    """
    n, n_classes = len(predictions.label), len(predictions.classes)
    most = max(4 * _MOST_SAMPLES // n_classes**2, 200)
    if min(n, most) < _FEWEST_OF_A_CLASS * n_classes:
        return None
    if n > most:
        predictions = predictions.take(rng.permutation(n)[:most])
    proba, label, weight = predictions.proba, predictions.label, predictions.weight
    folds = KFold(_N_FOLDS, shuffle=True, random_state=rng)
    if predictions.groups is not None:
        folds = GroupKFold(min(_N_FOLDS, len(np.unique(predictions.groups))))
    after = np.empty(len(label), dtype=np.float64)
    for train, test in folds.split(proba, label, predictions.groups):
        model = AutoRecalibrator(labels=np.arange(n_classes))
        model.fit(proba[train], label[train], sample_weight=weight[train] / weight[train].max())
        moved = model.predict_proba(proba[test])
        moved = moved[:, 1] if predictions.is_binary else moved
        after[test] = PROPER_LOSSES["log_loss"](moved, label[test])
    gain = PROPER_LOSSES["log_loss"](proba, label) - after
    mean = float(weight @ gain)
    if predictions.groups is None:
        parts = weight * (gain - mean)
    else:
        parts = np.bincount(predictions.groups, weight * (gain - mean)).astype(np.float64)
    error = float(np.sqrt(np.sum(parts**2)))
    return mean, mean - 1.96 * error, mean + 1.96 * error
