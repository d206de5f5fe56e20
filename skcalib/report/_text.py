"""The text of a report."""

import textwrap

import numpy as np
from sklearn.metrics import roc_auc_score

from ..metrics._registry import METRICS
from ._findings import LEVEL

# What to do about miscalibration; for predictions that have been recalibrated, more data.
REMEDY = (
    "Recalibrate on data that the classifier was not fitted on, for instance with "
    "RecalibratedClassifier."
)


def advice(numbers, predictions, found):
    """A verdict by the p-value, what was found to be wrong, and a remedy."""
    p_value = numbers["p_value"]
    if _ranks_backwards(predictions):
        return (
            "The probabilities rank the labels backwards: what is predicted to be more likely "
            "happens less often. Check which column, and which pos_label, they belong to before "
            "anything else."
        )
    if p_value >= LEVEL:
        return (
            f"No evidence of miscalibration (p = {p_value:.3g}): a calibrated model often deviates "
            "as much. Few samples cannot show more."
        )
    verdict = f"Miscalibrated (p = {p_value:.3g})"
    what = "; ".join(found) or "several small differences add up"
    size = _smooth_error(numbers)
    if size < _SMALL:
        what += (
            f". By the smooth calibration error of {size:.2g} that is little, and may not matter: "
            f"{numbers['n_tested']} samples can see small differences"
        )
    return f"{verdict}: {what}. {REMEDY}"


# A smooth calibration error below this is called small.
_SMALL = 0.01

# Probabilities rank labels backwards if their area under the curve is this many standard deviations
# below one half.
_CLEAR = 4.0


def _smooth_error(numbers):
    """That of the confidence, if there are more than two classes."""
    names = ("smooth_calibration_error", "smooth_calibration_error_confidence")
    return next(numbers[name] for name in names if name in numbers)


def _ranks_backwards(predictions):
    """Whether, of two classes, the one predicted to be less likely clearly happens more often."""
    if not predictions.is_binary or predictions.label.min() == predictions.label.max():
        return False
    weight, label = predictions.weight, predictions.label
    area = roc_auc_score(label, predictions.proba, sample_weight=weight)
    parts = [weight[label == k] / weight[label == k].sum() for k in (0, 1)]
    deviation = np.sqrt(sum(part @ part for part in parts) / 12)  # that of ranks without a relation
    return area < 0.5 - _CLEAR * deviation


_TITLES = {
    "accuracy": "accuracy",
    "mean_confidence": "mean confidence",
    "brier_score_loss": "Brier score",
    "log_loss": "log loss",
    **{name: entry.title for name, entry in METRICS.items() if entry.in_report},
    "distance_lower_bound": "distance to calibration{}, at least",
    "distance_upper_bound": "distance to calibration{}, at most",
    "p_value": "p-value of the calibration test",
    "p_value_skce": "  of its kernel error (adjusted)",
    "p_value_log_loss": "  of its log loss",
    "p_value_level_and_spread": "  of level and spread of each class",
    "p_value_local": "  of gaps in ranges of confidence",
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
    return f"{_title(key):<48}" + "  ".join(format(value, "9.4f") for value in values)


def format_report(numbers):
    n_samples, n_tested = numbers["n_samples"], numbers["n_tested"]
    lines = [f"Calibration of {n_samples} predictions, {numbers['n_classes']} classes", ""]
    lines += [format_row(key, value) for key, value in numbers.items() if _title(key)]
    if n_tested < n_samples:
        lines.append(f"(the p-values are of {n_tested} samples, chosen at random)")
    return "\n".join([*lines, "", textwrap.fill(numbers["advice"], width=76)])
