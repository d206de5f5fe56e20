"""What the numbers of a report on probabilities are called."""

from ..metrics._registry import METRICS

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
    "subgroup_p_value": "p-value of the test of all subgroups",
    "gain": "log loss that recalibration would gain",
}


def title_of_number(key: str) -> str | None:
    """The title of a number; None if it has no line of its own.

    For more than two classes the key of a binary measure ends in the reduction.
    """
    for reduction in ("confidence", "classwise"):
        name = key.removesuffix(f"_{reduction}")
        if name != key and name in _TITLES:
            title, note = _TITLES[name], f" ({reduction})"
            return title.format(note) if "{}" in title else title + note
    return _TITLES[key].format("") if key in _TITLES else None
