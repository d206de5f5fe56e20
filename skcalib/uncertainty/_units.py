"""The units that vary: groups of samples, or samples if there are none."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._data import AnyData
from .._inputs.scikit_learn import Parallel, delay
from .._numerics.dependence import UnitSums

# The number of parts of which the jackknife leaves out one at a time.
_N_BLOCKS = 100

# Fewer units say nothing about how the estimate varies.
_MIN_UNITS = 10

# Effective numbers that miss a whole number by less are that number.
_SIZE_ATOL = 1e-6


class Units(UnitSums):
    """The units of data, of which there must be enough; `name` is that of the outcomes."""

    def __init__(self, data: AnyData, name: str = "y_true") -> None:
        super().__init__(np.asarray(data.weight), data.groups)
        check_enough_units(self, name)

    def jackknife(
        self, measured: Any, n_jobs: int | None, scale: Callable[[np.ndarray], Any] = np.asarray
    ) -> tuple[np.ndarray, float]:
        """The changes of values (C,) by at most 100 blocks of units, (G, C); effective number.

        The squared changes sum to the jackknife's variance. Blocks are the same in each call, so
        the order of the samples matters, but no seed.
        """
        n_blocks = min(self.number, _N_BLOCKS)
        block = (np.random.default_rng(0).permutation(self.number) % n_blocks)[self.code]
        measure = delay(lambda rows: measured.take(rows).values())
        tasks = (measure(np.flatnonzero(block != k)) for k in range(n_blocks))
        values = scale(check_finite_values(Parallel(n_jobs=n_jobs)(tasks)))
        share = np.bincount(block, self.weight)
        changes = np.sqrt(1 - 1 / n_blocks) * (values.mean(axis=0) - values)
        return changes, float(1 / (share @ share))


def check_enough_units(units: Units, name: str) -> None:
    """Refuse too few samples, or groups, to learn from parts of them how an estimate varies."""
    n_samples, fewest = len(units.weight), _MIN_UNITS
    if n_samples < fewest:
        raise ValueError(
            f"{name} must hold at least {fewest} samples of positive weight; found "
            f"{n_samples}. So few samples say nothing about how the metric varies: "
            "collect more."
        )
    if units.number < fewest:
        raise ValueError(
            f"groups must name at least {fewest} groups of samples with positive weight; found "
            f"{units.number}. So few groups say nothing about how the metric varies: collect "
            "more, or number shorter blocks of a series, as numpy.arange(n) // length does."
        )
    if units.effective_size < fewest - _SIZE_ATOL:
        kind = "samples" if not units.has_groups else "groups"
        cause = "sample_weight" if not units.has_groups else "groups and sample_weight"
        raise ValueError(
            f"{cause} must leave an effective number of {kind}, (Σ W)² / Σ W² of their weights W, "
            f"of at least {fewest}; found {units.effective_size:.3g} of {units.number}. "
            f"A few {kind} outweigh all others: collect more, or limit the largest weights."
        )


def check_finite_values(results: list | np.ndarray) -> np.ndarray:
    """The values (R, C) of a metric, which must be finite numbers."""
    values = np.asarray(results)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"metric must return one number; found values of shape {values.shape[2:]} and type "
            f"{values.dtype}. With more than two classes choose an average; or wrap the metric in "
            "a function that returns a float."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "metric must be finite for every part of the samples; found "
            f"{np.sum(~np.isfinite(values))} of {values.size} value(s) that are not. If it fails "
            "where a class does not occur among the labels, let it take an argument `labels`, in "
            "which it gets the classes."
        )
    return values.astype(np.float64)
