"""Probabilities that belong to other classes than they are said to."""

import numpy as np
from sklearn.metrics import roc_auc_score

from .._inputs.predictions import Predictions

# What is this many standard deviations away from chance is a mistake, not a bad model.
_CLEAR = 4.0

# As many columns are named.
_MOST_NAMED = 3


def mistake(predictions: Predictions) -> str | None:
    """What must be wrong with the columns or with `pos_label`, if anything."""
    return _backwards(predictions) if predictions.is_binary else _out_of_order(predictions)


def _backwards(predictions: Predictions) -> str | None:
    """Whether, of two classes, the one predicted to be less likely clearly happens more often."""
    weight, label = predictions.weight, predictions.label
    if label.min() == label.max():
        return None
    area = roc_auc_score(label, predictions.proba, sample_weight=weight)
    parts = [weight[label == k] / weight[label == k].sum() for k in (0, 1)]
    deviation = np.sqrt(sum(part @ part for part in parts) / 12)  # that of ranks without a relation
    if area >= 0.5 - _CLEAR * deviation:
        return None
    return (
        "The probabilities rank the labels backwards: what is predicted to be more likely happens "
        f"less often (the area under the ROC curve is {area:.2g}). Check which column, and which "
        "pos_label, they belong to before anything else."
    )


def _out_of_order(predictions: Predictions) -> str | None:
    """Whether some columns clearly belong to each other's classes.

    The samples of each of these classes have their highest probability in the column of another
    one of them more often than in their own.
    """
    n_classes = len(predictions.classes)
    cell = predictions.label * n_classes + np.argmax(predictions.proba, axis=1)
    shape = n_classes, n_classes
    mass, squares = (
        np.bincount(cell, predictions.weight**power, n_classes**2).reshape(shape)
        for power in (1, 2)
    )
    k = np.arange(n_classes)
    highest = np.argmax(mass, axis=1)
    excess = mass[k, highest] - mass[k, k]
    deviation = np.sqrt(squares[k, highest] + squares[k, k])
    moved = np.flatnonzero((highest != k) & (excess > _CLEAR * deviation))
    if len(moved) == 0 or (np.sort(highest[moved]) != moved).any():
        return None
    names = predictions.classes.tolist()
    pairs = [f"for class {names[k]} that of {names[highest[k]]}" for k in moved[:_MOST_NAMED]]
    more = len(moved) - len(pairs)
    return (
        "The columns of the probabilities are in another order than the classes: the column that "
        f"is highest most often is {', '.join(pairs)}{f', and {more} more' if more else ''}. Check "
        "`labels` and the order of the columns before anything else."
    )
