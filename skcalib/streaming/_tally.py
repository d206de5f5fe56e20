"""Counts and sums of weights by key."""

from typing import NamedTuple

import numpy as np

# New tables wait until they hold more keys than this, and more than the sorted table.
_WAITING = 2**16

# Small ones wait until there are more of them than this, and more than one for every 16 sorted
# keys. Each takes some hundred bytes.
_TABLES = 2**8
_SORTED_AGAIN = 2**4

# Keys are counted in a table of all possible keys if it has at most this many for each sample.
_SPARSE = 4


class Sums(NamedTuple):
    """What stands behind the keys that occur."""

    key: np.ndarray  # (m,), ascending
    samples: np.ndarray  # (m,), how many
    weight: np.ndarray | None  # (2, m), sums of weights and squared weights; None if all are 1

    @property
    def weights(self) -> np.ndarray:
        """Sums of weights, and of squared weights, (2, m)."""
        if self.weight is None:
            return np.stack([self.samples, self.samples]).astype(np.float64)
        return self.weight


_NONE = Sums(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), None)


class Tally:
    """Sums by key, to which more can be added. Memory grows with the number of keys that occur.

    What is new waits in a list until there is as much of it as there is in the sorted table: so a
    sample costs the same on average whether it comes alone or with a million others.
    """

    def __init__(self, sums: Sums = _NONE) -> None:
        self._sorted = sums
        self._new: list[Sums] = []
        self._n_new = 0

    def merge(self, sums: Sums) -> None:
        self._new.append(sums)
        self._n_new += len(sums.key)
        n_sorted = len(self._sorted.key)
        has_many = len(self._new) > max(_TABLES, n_sorted // _SORTED_AGAIN)
        if has_many or self._n_new > max(_WAITING, n_sorted):
            self._sort()

    @property
    def sums(self) -> Sums:
        self._sort()
        return self._sorted

    def _sort(self) -> None:
        if self._new:
            self._sorted = merged([self._sorted, *self._new])
            self._new, self._n_new = [], 0


def sums_of(
    key: np.ndarray, n_keys: int, count: np.ndarray | None, weight: np.ndarray | None
) -> Sums:
    """The sums of rows with keys (n,) of 0, …, n_keys − 1.

    A row is one sample if `count` (n,) is None; `weight` holds weights and squared weights (2, n),
    None if all are 1.
    """
    if n_keys <= _SPARSE * len(key):
        place, occurs = key, None
    else:
        occurs, place = np.unique(key, return_inverse=True)
        n_keys = len(occurs)
    counts = np.bincount(place, count, n_keys).astype(np.int64, copy=False)  # exact below 2^53
    sums = None
    if weight is not None:
        sums = np.stack([np.bincount(place, part, n_keys) for part in weight])
    if occurs is None:
        occurs = np.flatnonzero(counts)
        counts, sums = counts[occurs], None if sums is None else sums[:, occurs]
    return Sums(occurs.astype(np.int64, copy=False), counts, sums)


def merged(parts: list[Sums]) -> Sums:
    """The sums of several tables."""
    key = np.concatenate([part.key for part in parts])
    if len(key) == 0:
        return _NONE
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    count = np.concatenate([part.samples for part in parts])
    weight = None
    if any(part.weight is not None for part in parts):
        weight = np.concatenate([part.weights for part in parts], axis=1)
        weight = np.add.reduceat(weight[:, order], start, axis=1)
    return Sums(key[order][start], np.add.reduceat(count[order], start), weight)
