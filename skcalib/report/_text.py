"""The text of a report."""

import textwrap

import numpy as np
from sklearn.metrics import roc_auc_score

from ._findings import LEVEL
from ._titles import title_of_number

# What to do about miscalibration, before and after recalibration.
REMEDY = (
    "Recalibrate on data that the classifier was not fitted on, for instance with "
    "RecalibratedClassifier."
)
MORE_DATA = "More data to recalibrate on would leave less."


def advice(numbers, predictions, found, *, recalibrated):
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
    verdict = f"{'Still miscalibrated' if recalibrated else 'Miscalibrated'} (p = {p_value:.3g})"
    what = "; ".join(found) or "several small differences add up"
    size = _smooth_error(numbers)
    if size < _SMALL:
        what += (
            f". By the smooth calibration error of {size:.2g} that is little, and may not matter: "
            f"{numbers['n_tested']} samples can see small differences"
        )
    return f"{verdict}: {what}. {MORE_DATA if recalibrated else REMEDY}"


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


def format_row(key, *values):
    """A line of the report: the title of a number, and its values."""
    return f"{title_of_number(key):<48}" + "  ".join(format(value, "9.4f") for value in values)


def format_report(numbers, intervals, advice, subgroups=()):
    n_samples, n_tested = numbers["n_samples"], numbers["n_tested"]
    lines = [f"Calibration of {n_samples} predictions, {numbers['n_classes']} classes", ""]
    for key, value in numbers.items():
        if title_of_number(key):
            row = format_row(key, value)
            if key in intervals:
                low, high = intervals[key]
                row += f"   {low:.4f} to {high:.4f}"
            lines.append(row)
    if intervals:
        lines.append("(after some of them, the interval that covers with probability 0.95)")
    if n_tested < n_samples:
        lines.append(f"(the p-values are of {n_tested} samples, chosen at random)")
    if subgroups:
        lines += ["", _format_subgroups(subgroups)]
    return "\n".join([*lines, "", textwrap.fill(advice, width=76)])


def _format_subgroups(subgroups):
    width = max(len(one["subgroup"]) for one in subgroups)
    lines = [f"{'subgroup':{width}}  samples  smooth calibration error            adjusted p-value"]
    for one in subgroups:
        ends = "too few for an interval"
        if one["low"] == one["low"]:
            ends = f"{one['low']:.4f} to {one['high']:.4f}"
        lines.append(
            f"{one['subgroup']:{width}}  {one['n_samples']:7d}  {one['estimate']:.4f}   {ends:<24}"
            f"{one['p_value']:9.3g}"
        )
    return "\n".join(lines)
