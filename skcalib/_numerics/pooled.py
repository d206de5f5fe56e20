"""Samples of two classes, summed wherever their predictions are tied."""

from typing import NamedTuple

import numpy as np

from .sorting import pool_sorted, pool_ties, sort_labelled


class Pooled(NamedTuple):
    """What measures of one probability need to know of the samples.

    The squares say how many samples stand behind a weight. Tables of different samples are merged
    by summing their rows at equal points.
    """

    points: np.ndarray  # (m,), sorted and distinct
    weight: np.ndarray  # (2, m), sum of the weights of the samples with label 0, and with label 1
    square: np.ndarray  # (2, m), sum of their squared weights

    @property
    def total(self) -> np.ndarray:
        """The weight at each point, whatever the label, (m,)."""
        return self.weight.sum(axis=0)


def pooled(
    points: np.ndarray, labels: np.ndarray, weight: np.ndarray, square: np.ndarray | None = None
) -> Pooled:
    """The table of samples with predictions (n,), labels 0 or 1 (n,), and weights (n,).

    If a row stands for several samples, `square` (n,) is the sum of their squared weights.
    """
    if square is not None or not (weight == weight[0]).all():
        square = weight**2 if square is None else square
        is_of = labels == [[0], [1]]  # (2, n)
        distinct, sums = pool_ties(points, np.concatenate([weight * is_of, square * is_of]))
        return Pooled(distinct, sums[:2], sums[2:])
    ordered, labels = sort_labelled(points, labels)  # no weights to sort along
    distinct, mass = pool_sorted(ordered, weight[0] * np.stack([1 - labels, labels]))
    return Pooled(distinct, mass, weight[0] * mass)
