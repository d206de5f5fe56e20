"""Sorting and pooling: what every cumulative computation starts with."""

from typing import NamedTuple

import numpy as np


def first_of_ties(ordered: np.ndarray) -> np.ndarray:
    """Whether each of the sorted values (n,) differs from the one before it."""
    is_first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first


def last_of_ties(ordered: np.ndarray) -> np.ndarray:
    """Whether each of the sorted values (n,) differs from the one behind it."""
    return np.append(first_of_ties(ordered)[1:], True)


def last_of_runs(start: np.ndarray, n: int) -> np.ndarray:
    """The last index of each run, (r,), if `start` (r,) cuts 0, …, n − 1 into runs."""
    return np.append(start[1:], n) - 1


def sort_labelled(points: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points in [0, 1] sorted, and their labels, 0 or 1, in the same order.

    Non-negative doubles are ordered like the integers with the same bits, and below 2 their first
    two bits are 0. Shifted by one place, they have room for the label, and one sort of integers
    replaces an argsort and its random access to memory. The sign of −0.0 is shifted out.
    """
    key = points.view(np.int64) << 1
    key |= labels
    key.sort()
    labels = key & 1
    key >>= 1
    return key.view(np.float64), labels


def pool_sorted(points: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From sorted points (n,) and mass (..., n): distinct points (m,), mass at each (..., m)."""
    is_new = first_of_ties(points)
    if is_new.all():
        return points, mass
    start = np.flatnonzero(is_new)
    return points[start], np.add.reduceat(mass, start, axis=-1)


def pool_ties(points: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From points (n,) and mass (..., n): sorted distinct points (m,), mass at each (..., m)."""
    order = np.argsort(points)
    return pool_sorted(points[order], mass[..., order])


class Pooled(NamedTuple):
    """The weights of both labels at each distinct prediction.

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
