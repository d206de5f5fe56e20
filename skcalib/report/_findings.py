"""What the test of calibration found, in words."""

import numpy as np

from .._inputs.predictions import Predictions
from ..hypothesis_tests import CalibrationTest
from ..hypothesis_tests._residual_cells import ResidualCells
from ..hypothesis_tests._residual_sums import LevelAndSpread

LEVEL = 0.05

# Ranges of confidence among which the worst one is named.
_N_RANGES = 8

_MOST_DIGITS = 6


def impossible(predictions: Predictions) -> np.ndarray:
    """Whether the label of each sample had probability 0, (n,)."""
    if predictions.is_binary:
        return predictions.proba == 1 - predictions.label
    return predictions.proba[np.arange(len(predictions.label)), predictions.label] == 0


def certainties(predictions: Predictions) -> list[str]:
    """What no chance explains, whatever a test says."""
    count = np.count_nonzero(impossible(predictions))
    if not count:
        return []
    return [
        "a label that had probability 0 occurred, which a calibrated model rules out (in "
        f"{count} of {len(predictions.label)} samples)"
    ]


def findings(test: CalibrationTest, predictions: Predictions) -> list[str]:
    """A sentence for each component of the omnibus test that spoke, without a full stop."""
    spoke = [name for name, p in test.adjusted_p_values_.items() if p <= LEVEL]
    if np.isinf(test.component_statistics_.get("log_loss", 0.0)):
        spoke = [name for name in spoke if name != "log_loss"]  # said by `certainties`
    words = {
        "log_loss": lambda: _sureness(test.component_statistics_["log_loss"]),
        "level_and_spread": lambda: _worst_class(predictions),
        "local": lambda: _worst_range(predictions),
    }
    found = [words[name]() for name in spoke if name in words]
    if spoke == ["skce"]:
        found.append(
            "outcomes differ from predictions in a way that depends on the whole prediction, not "
            "on one class or on the confidence alone"
        )
    return found


def _sureness(excess: float) -> str:
    kind, direction = ("too", "higher") if excess > 0 else ("not", "lower")
    enough = "" if excess > 0 else " enough"
    return (
        f"the predictions are {kind} sure{enough}: the log loss is {abs(excess):.2g} {direction} "
        "than they expect"
    )


def _worst_class(predictions: Predictions) -> str:
    """Of the class whose intercept or slope differs most: how often it is observed, or how its
    probabilities spread.
    """
    statistic = LevelAndSpread(predictions)
    sums = statistic.by_class(predictions.label[None])[:, 0]  # (2, K)
    squares = sums**2 / statistic.scale
    worst = int(np.argmax(squares.sum(axis=0)))
    proba = predictions.proba if predictions.is_binary else predictions.proba[:, worst]
    k = 1 if predictions.is_binary else worst
    name = predictions.classes[k]
    if squares[0, worst] >= squares[1, worst]:
        observed = float(predictions.weight @ (predictions.label == k))
        expected = float(predictions.weight @ proba)
        seen, said = told_apart(observed, expected, 3)
        return f"class {name} is observed {seen} of the time, where the mean prediction is {said}"
    kind = "too far" if sums[1, worst] < 0 else "not far enough"
    return f"probabilities of class {name} are spread {kind}"


def _worst_range(predictions: Predictions) -> str:
    """Of a few ranges of confidence, that whose gap is the most standard deviations."""
    if predictions.is_binary:
        what, proba, hit = "probabilities", predictions.proba, predictions.label
    else:
        confidence = predictions.confidence()
        what, proba, hit = "confidences", confidence.proba, confidence.label
    cells = ResidualCells(proba, predictions.weight, predictions.squares, hit, _N_RANGES)
    gaps = cells.of_hits(hit[None])[0]
    deviation = np.sqrt(cells.variance)
    distance = np.divide(np.abs(gaps), deviation, out=np.zeros_like(gaps), where=deviation > 0)
    worst = int(np.argmax(distance))
    rows = slice(cells.start[worst], [*cells.start, len(proba)][worst + 1])
    low, high = cells.proba[rows].min(), cells.proba[rows].max()
    expected = cells.expected[worst] / cells.mass[worst]
    observed = expected + gaps[worst] / cells.mass[worst]
    ends = [f"{end:.2g}" for end in (low, high)]
    where = f"of about {ends[0]}" if ends[0] == ends[1] else f"from {ends[0]} to {ends[1]}"
    said, seen = told_apart(expected, observed, 2)
    return f"gaps are largest for {what} {where}, where {said} is predicted and {seen} observed"


def told_apart(one: float, other: float, digits: int) -> list[str]:
    """Two numbers with `digits` significant digits, or with more if they would look the same."""
    texts = [f"{value:.{digits}g}" for value in (one, other)]
    if texts[0] == texts[1] and digits < _MOST_DIGITS:
        return told_apart(one, other, digits + 1)
    return texts
