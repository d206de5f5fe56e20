"""Maps of a probability that are linear in intervals, and the tables of these."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ._base import OneVsRestRecalibrator
from ._languages import Language


class Pieces(NamedTuple):
    """From each start to the next one, the map is value + slope · (p − start); the first is 0."""

    start: np.ndarray
    value: np.ndarray
    slope: np.ndarray


class PiecewiseRecalibrator(OneVsRestRecalibrator):
    """The map of a class is linear in intervals."""

    def _write_binary(self, language: Language, proba: str, learned: Any) -> str:
        start, value, slope = self._pieces(learned)
        pieces = [
            language.linear(v, [s], [language.from_point(proba, p)])
            for p, v, s in zip(start, value, slope, strict=True)
        ]
        return language.steps(proba, start[1:], pieces)

    @abstractmethod
    def _pieces(self, learned: Any) -> Pieces:
        """The map of one class."""
