"""The text of a report."""

import textwrap

import numpy as np

from ..metrics._registry import METRICS

LEVEL = 0.05

# What to do about miscalibration; for predictions that have been recalibrated, more data.
REMEDY = (
    "Recalibrate on data that the classifier was not fitted on, for instance with "
    "RecalibratedClassifier."
)


def advice(numbers, predictions):
    p_value = numbers["p_value"]
    matrix, label = predictions.matrix, predictions.label
    n_impossible = np.sum(matrix[np.arange(len(label)), label] == 0)
    if n_impossible:
        verdict = f"Miscalibrated: {n_impossible} label(s) occurred that had probability 0"
    elif p_value < LEVEL:
        verdict = f"Miscalibrated (p = {p_value:.3g})"
    else:
        return (
            f"No evidence of miscalibration (p = {p_value:.3g}): a calibrated model often deviates "
            "as much. Few samples cannot show more."
        )
    confidence = matrix.max(axis=1)
    noise = np.sqrt(np.sum(predictions.weight**2 * confidence * (1 - confidence)))
    excess = numbers["mean_confidence"] - numbers["accuracy"]
    if abs(excess) > 2 * noise:
        direction = "overconfident" if excess > 0 else "underconfident"
        kind = f"on average it is {direction} by {abs(excess):.3f}"
    else:
        kind = "though the mean confidence agrees with the accuracy"
    return f"{verdict}; {kind}. {REMEDY}"


_TITLES = {
    "accuracy": "accuracy",
    "mean_confidence": "mean confidence",
    "brier_score_loss": "Brier score",
    "log_loss": "log loss",
    **{name: entry.title for name, entry in METRICS.items() if entry.in_report},
    "distance_lower_bound": "distance to calibration{}, at least",
    "distance_upper_bound": "distance to calibration{}, at most",
    "squared_kernel_calibration_error": METRICS["squared_kernel_calibration_error"].title,
    "p_value": "p-value of the calibration test",
}


def _title(key):
    """The title of a number; None if it has no line of its own.

    For more than two classes the key of a binary measure ends in the reduction.
    """
    for reduction in ("confidence", "classwise"):
        name = key.removesuffix(f"_{reduction}")
        if name != key and name in _TITLES:
            title, note = _TITLES[name], f" ({reduction})"
            return title.format(note) if "{}" in title else title + note
    return _TITLES[key].format("") if key in _TITLES else None


def format_row(key, *values):
    """A line of the report: the title of a number, and its values."""
    digits = "9.1e" if key == "squared_kernel_calibration_error" else "9.4f"
    return f"{_title(key):<48}" + "  ".join(format(value, digits) for value in values)


def format_report(numbers):
    n_samples, n_tested = numbers["n_samples"], numbers["n_tested"]
    lines = [f"Calibration of {n_samples} predictions, {numbers['n_classes']} classes", ""]
    lines += [format_row(key, value) for key, value in numbers.items() if _title(key)]
    if n_tested < n_samples:
        lines.append(f"(the last two numbers are of {n_tested} samples, chosen at random)")
    return "\n".join([*lines, "", textwrap.fill(numbers["advice"], width=76)])
