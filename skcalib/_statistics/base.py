"""The base of all statistics: a number, or several, for each vector of outcomes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self

import numpy as np

from .._data import Data
from .._inputs.drawing import draw_by_sample
from .._numerics.array_api import Array, arange_like, contiguous, take_rows

# Labels in one block of samples, with all draws of a batch (16 MB).
_MAX_BLOCK_LABELS = 2**22

# The number of draws in a batch depends on the number of samples only up to here.
_MAX_SAMPLES_FOR_BATCH_SIZE = 2**14

# The sums of a batch hold at most this many times the numbers of a batch (128 MB).
_MAX_SUMS_PER_NUMBER = 4


# Values that differ by less than this share are tied, but for rounding.
TIE_RTOL = 1e-12


@dataclass(frozen=True)
class BlockSums:
    """Sums over samples that a statistic is a function of; it needs one block at a time."""

    size: int  # numbers in the sums of one draw

    init: Callable[[int], Any]  # from n_draws to their sums before the first block

    update: Callable[[Any, Array, Array], None]  # adds labels (m, n_draws) of the samples (m,)

    values: Callable[[Any], np.ndarray]  # from the sums to the values (n_draws, …)


class Statistic(Generic[Data]):
    """A function of the outcomes of given data, evaluated for many vectors of outcomes at once.

    Calling it with R vectors of outcomes (R, n) returns R values, (R,) or (R, n_columns). The
    constructor computes once what does not depend on the outcomes.

    `supports` says what tests may ask for: "groups" (signs of residuals can be flipped), "counts"
    (shares of events at each prediction are enough), "any-order" (the order of samples does not
    matter), "pair-terms" (`gram_terms` give the limit law and a bound), "asymptotic" (the statistic
    draws from its limit law by `resample_null`).
    """

    data: Any

    options: dict[str, Any] = {}  # arguments of the constructor, beside the data

    supports: frozenset[str] = frozenset({"any-order"})

    is_two_sided = False  # if values on both sides of 0 speak against calibration

    n_columns = 1  # values for each vector of outcomes

    tie_tolerance = 0.0  # values that differ by at most this count as equal

    min_batches = 1  # into which draws are split, so that jobs can share them

    @property
    def sums(self) -> BlockSums | None:
        """Sums over samples that the statistic is a function of; None if it is not."""
        return None

    @property
    def can_simulate(self) -> bool:
        """True if `simulate` works, so that only a block of the labels is held at once."""
        return self.sums is not None

    @property
    def numbers_per_draw(self) -> int:
        """Numbers that are held for each draw: they decide how many draws are a batch."""
        n, sums = self.data.weight.shape[0], self.sums
        if sums is None:
            return n
        return max(min(n, _MAX_SAMPLES_FOR_BATCH_SIZE), -(-sums.size // _MAX_SUMS_PER_NUMBER))

    def with_data(self, data: Data) -> Self:
        """Return the same statistic of other data."""
        return type(self)(data, **self.options)  # type: ignore[call-arg]

    def __call__(self, outcomes: Array) -> np.ndarray:
        """Return the values (R, …) of R vectors of outcomes (R, n)."""
        n_draws, n = outcomes.shape
        return self._sum_blocks(
            arange_like(outcomes, n), n_draws, lambda rows: contiguous(take_rows(outcomes.T, rows))
        )

    def simulate(self, order: Array, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        """Return the values (n_draws, …) of labels that are drawn from the predictions.

        The samples are drawn in the given order, (n,).
        """
        draw = partial(draw_by_sample, self.data.proba, n_draws, generator)
        return self._sum_blocks(order, n_draws, draw)

    def _sum_blocks(
        self, order: Array, n_draws: int, labels_of: Callable[[Array], Array]
    ) -> np.ndarray:
        """Return the values of labels (m, n_draws) that are given for blocks of the samples."""
        sums = self.sums
        if sums is None:
            raise NotImplementedError
        totals = sums.init(n_draws)
        for rows in iter_sample_blocks(order, n_draws):
            sums.update(totals, rows, labels_of(rows))
        return sums.values(totals)

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        """Return the values (R, …) if the observed residuals are multiplied by signs (R, n)."""
        raise NotImplementedError

    def combine_components(
        self, observed: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Return one number for each of the B + 1 compared values, and attributes of a test.

        `observed` is the value of the data, (1, …), which is also the first of the values.
        """
        return values, {}


def iter_sample_blocks(order: Array, n_draws: int) -> Iterator[Array]:
    """The samples in this order, in blocks of at most `_MAX_BLOCK_LABELS` labels."""
    n, per_block = order.shape[0], max(1, _MAX_BLOCK_LABELS // n_draws)
    for start in range(0, n, per_block):
        yield order[start : min(start + per_block, n)]
