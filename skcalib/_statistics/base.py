"""The base of all statistics: a number, or several, for each vector of outcomes."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

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


class Statistic:
    """A function of the outcomes of given data: what tests, intervals and reports evaluate.

    A statistic takes R vectors of outcomes (R, n) and returns values (R,), or (R, C) if it has
    several columns. What does not depend on the outcomes is computed once, by the constructor.

    A statistic that is a function of sums over samples says so by `adds_up`, and defines `start`,
    `add` and `finish` in place of `__call__`: then only a block of the samples is needed at once,
    with the labels of many draws.
    """

    data: Any

    options: dict[str, Any] = {}  # arguments of the constructor, beside the data

    kind: str | None = None  # of predictions; None if it takes any

    laws: frozenset[str] = frozenset()  # methods of a test, beside draws, that it knows itself

    has_known_law = False  # whether tests know its law from the terms of pairs

    is_signed = False  # whether values on both sides of 0 speak against calibration

    depends_on_order = False  # on that of the samples

    takes_counts = False  # whether shares of events at each prediction are enough

    takes_signs = False  # whether it is made of residuals, whose signs may change

    adds_up = False

    n_columns = 1  # values for each vector of outcomes

    n_sums = 0  # numbers in the sums of one draw, if it adds up

    resolution = 0.0  # values that differ by less are equal

    least_batches = 1  # into which draws are divided, so that jobs can share them

    @property
    def numbers_per_draw(self) -> int:
        """Numbers that are held for each draw: they decide how many draws are a batch."""
        n = self.data.weight.shape[0]
        return (
            max(min(n, _MAX_SAMPLES_FOR_BATCH_SIZE), -(-self.n_sums // _MAX_SUMS_PER_NUMBER))
            if self.adds_up
            else n
        )

    def on(self, data: Any) -> Self:
        """This statistic on other data, with its options."""
        return type(self)(data, **self.options)  # type: ignore[call-arg]

    def __call__(self, outcomes: Array) -> np.ndarray:
        """Values (R, …) for R vectors of outcomes (R, n)."""
        n_draws, n = outcomes.shape
        sums = self.start(n_draws)
        for rows in iter_sample_blocks(arange_like(outcomes, n), n_draws):
            self.add(sums, rows, contiguous(take_rows(outcomes.T, rows)))
        return self.finish(sums)

    def of_redrawn(self, order: Array, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        """Values (n_draws, …) for labels drawn from the predictions, in this order of them."""
        sums = self.start(n_draws)
        for rows in iter_sample_blocks(order, n_draws):
            labels = draw_by_sample(self.data.proba, n_draws, generator, rows)
            self.add(sums, rows, labels)
        return self.finish(sums)

    def of_signs(self, signs: np.ndarray) -> np.ndarray:
        """Values (R, …) for the observed residuals, multiplied by signs (R, n)."""
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

    def combined(self, value: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        """One number for each of the B + 1 values that are compared, (B + 1,), and findings.

        Findings are attributes of a test by name; `value` is that of the data, (1, …).
        """
        return values, {}


def iter_sample_blocks(order: Array, n_draws: int) -> Iterator[Array]:
    """The samples in this order, in blocks of at most `_MAX_BLOCK_LABELS` labels."""
    n, per_block = order.shape[0], max(1, _MAX_BLOCK_LABELS // n_draws)
    for start in range(0, n, per_block):
        yield order[start : min(start + per_block, n)]
