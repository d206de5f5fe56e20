"""What a statistic is: a number or several for each vector of outcomes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._inputs.drawing import draw_by_sample
from .._numerics.array_api import Array, contiguous, count_like, rows_of

# Statistics that are sums over samples see one block of samples at a time, with the labels of all
# draws of a batch: at most this many labels (16 MB).
_BLOCK = 2**22

# So the number of draws in a batch depends on the number of samples only up to here.
_ENOUGH = 2**14

# The sums of a batch hold at most this many times `_BATCH` numbers (128 MB).
_SUMS = 4


class SumOverSamples:
    """A statistic of labels that is a function of sums over samples.

    So no more than a block of the samples is needed at once, with the labels of many draws. What
    inherits this has `data`, and the four methods that know what the sums are.
    """

    data: Any

    @property
    def adds_up(self) -> bool:
        """Whether the statistic of these data is computed in this way."""
        return True

    @property
    def n_sums(self) -> int:
        """Numbers in the sums of one draw."""
        raise NotImplementedError

    def start(self, n_draws: int) -> Any:
        """The sums before the first block."""
        raise NotImplementedError

    def add(self, sums: Any, rows: Array, labels: Array) -> None:
        """Add labels (m, n_draws) of the samples `rows` (m,) to the sums."""
        raise NotImplementedError

    def finish(self, sums: Any) -> np.ndarray:
        """The values (n_draws, …)."""
        raise NotImplementedError

    @property
    def numbers_per_draw(self) -> int:
        return max(min(self.data.weight.shape[0], _ENOUGH), -(-self.n_sums // _SUMS))

    def __call__(self, labels: Array) -> np.ndarray:
        """Values (R, …) for R label vectors (R, n)."""
        n_draws, n = labels.shape
        sums = self.start(n_draws)
        for rows in blocks_of_samples(count_like(labels, n), n_draws):
            self.add(sums, rows, contiguous(rows_of(labels.T, rows)))
        return self.finish(sums)

    def of_redrawn(self, order: Array, n_draws: int, generator: np.random.Generator) -> Any:
        """Values (n_draws, …) for labels drawn from the predictions, in this order of them."""
        sums = self.start(n_draws)
        for rows in blocks_of_samples(order, n_draws):
            labels = draw_by_sample(self.data.proba, n_draws, generator, rows)
            self.add(sums, rows, labels)
        return self.finish(sums)


def blocks_of_samples(order: Array, n_draws: int) -> Iterator[Array]:
    """The samples in this order, in blocks of at most `_BLOCK` labels."""
    n, per_block = order.shape[0], max(1, _BLOCK // n_draws)
    for start in range(0, n, per_block):
        yield order[start : min(start + per_block, n)]
