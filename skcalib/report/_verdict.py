"""The verdict of a report: what the test says, how much it matters, and what to do."""

from collections.abc import Sequence
from typing import Any

from .._inputs.predictions import Predictions
from ._findings import LEVEL, impossible
from ._mistakes import mistake

# What to do about miscalibration, before and after recalibration.
REMEDY = (
    "Recalibrate on data that the classifier was not fitted on, for instance with "
    "RecalibratedClassifier."
)
MORE_DATA = "More data to recalibrate on would leave less."

# A calibration error is little if it is below this, and below this part of the share of the
# rarer outcome: 0.002 is much for a disease that one in a thousand has.
SMALL, _SMALL_PART = 0.01, 0.1

# The errors of more samples are those of the model, but for the last digits.
_MANY = 10_000


def advice(
    numbers: dict[str, Any],
    intervals: dict[str, tuple[float, float]],
    predictions: Predictions,
    found: Sequence[str],
    *,
    recalibrated: bool,
) -> str:
    """A verdict by the p-value, what was found to be wrong, and a remedy."""
    wrong_columns = mistake(predictions)
    if wrong_columns is not None:
        return wrong_columns
    p_value, name = numbers["p_value"], _smooth_error(numbers)
    is_certain = impossible(predictions).any()
    if p_value >= LEVEL and not is_certain:
        limit = what_may_be("smooth calibration error", name, numbers, intervals)
        return (
            f"No evidence of miscalibration (p = {p_value:.3g}): a calibrated model often deviates "
            f"as much. {limit}"
        )
    verdict = "Still miscalibrated" if recalibrated else "Miscalibrated"
    if p_value < LEVEL:  # otherwise it is that of a test of groups, which such labels do not decide
        verdict += f" (p = {p_value:.3g})"
    what = "; ".join(found) or "several small differences add up"
    remedy = MORE_DATA if recalibrated else REMEDY + gain_in_words("log loss", numbers, intervals)
    if not is_certain and _is_small(numbers[name], predictions):
        what += (
            f". That is little, and may not matter: {numbers['n_tested']} samples can see a smooth "
            f"calibration error of {numbers[name]:.2g}"
        )
        remedy = "" if recalibrated else f"If it matters, {remedy[0].lower()}{remedy[1:]}"
    return f"{verdict}: {what}. {remedy}".rstrip()


def what_may_be(
    title: str,
    name: str,
    numbers: dict[str, Any],
    intervals: dict[str, tuple[float, float]],
) -> str:
    """How large an error is at most that a test did not see."""
    if name in intervals:
        return f"The {title} may be up to {intervals[name][1]:.2g}, by its interval."
    if numbers["n_samples"] > _MANY:  # too many for an interval
        return f"The {title} of all {numbers['n_samples']} samples is {numbers[name]:.2g}."
    return "Few samples cannot show more."


def _smooth_error(numbers: dict[str, Any]) -> str:
    """The name of that of the confidence, if there are more than two classes."""
    names = ("smooth_calibration_error", "smooth_calibration_error_confidence")
    return next(name for name in names if name in numbers)


def _is_small(error: float, predictions: Predictions) -> bool:
    binary = predictions if predictions.is_binary else predictions.confidence()
    share = float(binary.weight @ binary.label)
    return error < min(SMALL, _SMALL_PART * min(share, 1 - share))


def gain_in_words(
    loss: str, numbers: dict[str, Any], intervals: dict[str, tuple[float, float]]
) -> str:
    """What recalibration did to samples that it had not seen."""
    if "gain" not in numbers:
        return ""
    if intervals["gain"][0] > 0:
        return f" In cross-validation that lowers the {loss} by {numbers['gain']:.2g}."
    return f" In cross-validation it is not clear that this lowers the {loss}."
