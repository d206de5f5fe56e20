"""Sorting and pooling: what every cumulative computation starts with."""

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
