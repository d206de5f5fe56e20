"""The text of a report, and the words and digits of its numbers."""

import textwrap
from itertools import chain
from typing import Any, NamedTuple

from .._inputs.by import format_columns, printable
from ..hypothesis_tests import CalibrationTest
from ..metrics._registry import ALL_METRICS

# The smallest p-value that a test of the report can have.
_MIN_P_VALUE = 1 / (1 + CalibrationTest().n_resamples)

# The most subgroups, and classes, that a table shows.
_MAX_SUBGROUPS, _MAX_CLASSES = 20, 5

# Numbers that are called what their names say.
_NAMES = ["prevalence", "mean_prediction", "calibration_intercept", "calibration_slope", "accuracy"]
_NAMES += ["mean_confidence", "log_loss", "distribution_matching_error"]
_MEASURE_TITLES = {
    **{name: name.replace("_", " ") for name in _NAMES},
    **{name: entry.title for name, entry in ALL_METRICS.items() if entry.in_report},
    "n_events": "events",
    "observed_expected_ratio": "O:E ratio",
    "integrated_calibration_index": "integrated calibration index (ICI)",
    "area_under_roc_curve": "AUC (ranking, which is not calibration)",
    "brier_score_loss": "Brier score",
    "distance_lower_bound": "distance to calibration{}, at least",
    "distance_upper_bound": "distance to calibration{}, at most",
    "mean_z": "mean standardised error",
    "rms_z": "root mean square standardised error",
    "mean_std": "mean standard deviation",
    "distribution_matching_ratio": "the same over its standard deviation by chance",
    "p_value": "p-value of the calibration test",
    "p_value_skce": "  of its kernel error (adjusted)",
    "p_value_log_loss": "  of its log loss",
    "p_value_level_and_spread": "  of level and spread of each class",
    "p_value_local": "  of gaps in ranges of confidence",
    "p_value_pit": "  of its PITs",
    "p_value_bias_and_spread": "  of bias, spread and skewness",
    "quantile_p_value": "p-value of the test of quantiles",
    "moments_p_value": "p-value of bias, spread and skewness",
    "subgroup_p_value": "p-value of the test of all subgroups",
    "share_between_members": "share to expect between all members",
}

# The numbers, by how their keys begin, of what may be a part of the samples, and its size.
_SIZE_KEYS = {
    "p_value": "n_tested",
    "distribution_matching": "n_tested",
    "quantile_p_value": "quantile_n_tested",
    "gain": "n_recalibrated",
}


class Line(NamedTuple):
    """A number of the report, as texts."""

    title: str
    value: str
    ends: str  # of its interval, if it has one
    note: str  # what it is of, if not of all samples


class TextTable(NamedTuple):
    """Texts of a table; each row begins with its name."""

    head: list[str]
    rows: list[list[str]]
    note: str = ""


def format_p_value(p_value: float, n_tests: int = 1) -> str:
    """Format a p-value with its relation sign; the smallest one of `n_tests` tests is a bound."""
    return f"{'≤' if p_value <= n_tests * _MIN_P_VALUE * (1 + 1e-9) else '='} {p_value:.3g}"


def measure_title(key: str, numbers: dict[str, Any]) -> str | None:
    """Return the title of one of the numbers; None if it has no line of its own.

    For more than two classes the key of a binary measure ends in the reduction.
    """
    if key == "accuracy" and numbers["n_classes"] == 2:
        return "accuracy at threshold 0.5"  # labels may say whether an answer was right
    if key == "gain":
        loss = "log loss" if "n_classes" in numbers else "CRPS"
        return f"decrease of the {loss} by recalibration"
    for start, title in (("coverage_", "coverage of the"), ("mean_width_", "mean width of the")):
        if key.startswith(start):
            return f"{title} {key.removeprefix(start)} % intervals"
    for reduction in ("confidence", "classwise"):
        name = key.removesuffix(f"_{reduction}")
        if name != key and name in _MEASURE_TITLES:
            title, note = _MEASURE_TITLES[name], f" ({reduction})"
            return title.format(note) if "{}" in title else title + note
    return _MEASURE_TITLES[key].format("") if key in _MEASURE_TITLES else None


def measure_lines(numbers: dict[str, Any], intervals: dict[str, tuple[float, float]]) -> list[Line]:
    """Return a line for each number that has one."""
    lines = []
    for key, value in numbers.items():
        title = measure_title(key, numbers)
        if title is not None:
            text = _format_number(key, value, numbers)
            ends = " to ".join(_format_number(key, end, numbers) for end in intervals.get(key, ()))
            lines.append(Line(title, text, ends, _note(key, numbers)))
    return lines


def _format_number(key: str, value: float, numbers: dict[str, Any], sign: str = "") -> str:
    """Format a number, or an end of its interval, with the digits of its measure."""
    if "p_value" in key and format_p_value(value)[0] == "≤":
        return format_p_value(value)
    digits = ".4f" if "n_classes" in numbers else _forecast_digits(key)
    return format(value, sign + ("d" if isinstance(value, int) else digits))


def _note(key: str, numbers: dict[str, Any]) -> str:
    if key == "n_events":
        return f"class {printable(str(numbers['event']))}"
    n = numbers["n_samples"]
    sizes = [numbers.get(size, n) for start, size in _SIZE_KEYS.items() if key.startswith(start)]
    return f"{sizes[0]} of {n} samples, at random" if sizes and sizes[0] < n else ""


def _forecast_digits(key: str) -> str:
    """Return the format: four decimals for numbers in [0, 1], four digits for those with units."""
    if key == "distribution_matching_error":
        return ".1e"
    in_unit = key.startswith(("coverage_", "p_value"))
    in_unit |= key.endswith(("p_value", "calibration_error"))
    return ".4f" if in_unit else "#.4g"


def format_comparison(head: list[str], verdicts: dict[str, str], tables: list[TextTable]) -> str:
    lines = list(head)
    for name, advice in verdicts.items():
        text = f"{printable(str(name))}: {advice}"
        lines += ["", textwrap.fill(text, width=76, break_on_hyphens=False)]
    return "\n".join([*lines, *chain(*map(format_table, tables))])


def format_head(numbers: dict[str, Any], name: str | None, date: str | None) -> list[str]:
    """Return the first lines: model, number of predictions and classes, and the date, if any."""
    size_text = f"{numbers['n_samples']} forecasts"
    if "n_classes" in numbers:
        size_text = f"{numbers['n_samples']} predictions, {numbers['n_classes']} classes"
    title = f"{printable(name)}: " if name else ""
    return [f"Calibration of {title}{size_text}", *([date] if date else [])]


def format_report(
    head: list[str],
    numbers: dict[str, Any],
    intervals: dict[str, tuple[float, float]],
    advice: str,
    subgroups: list[dict[str, Any]],
    classes: list[dict[str, Any]],
) -> str:
    lines = [*head, "", textwrap.fill(advice, width=76, break_on_hyphens=False), ""]
    for line in measure_lines(numbers, intervals):
        cells = [f"{line.title:<48}{line.value:>9}", line.ends, line.note and f"({line.note})"]
        lines.append("   ".join(filter(None, cells)))
    if intervals:
        lines.append("(a range after a number is its 95 % confidence interval)")
    if classes:
        lines += format_table(class_table(classes))
    if subgroups:
        lines += format_table(subgroup_table(subgroups))
    return "\n".join(lines)


def change_tables(
    numbers: dict[str, dict[str, Any]], changes: list[dict[str, Any]]
) -> list[TextTable]:
    """Return a table for each model but the first: numbers, and differences from the first."""
    first, *later = numbers
    return [_change_table(numbers, first, name, changes) for name in later]


def _change_table(
    numbers: dict[str, dict[str, Any]], first: str, name: str, changes: list[dict[str, Any]]
) -> TextTable:
    before, after = numbers[first], numbers[name]
    rows = []
    if "prevalence" in before:
        shares = [
            _format_number("prevalence", model["prevalence"], model) for model in (before, after)
        ]
        rows.append([_MEASURE_TITLES["prevalence"], *shares, "", ""])
    for change in changes:
        if change["model"] == name:
            key = change["measure"]
            values = [_format_number(key, change[end], before) for end in ("reference", "value")]
            difference, low, high = (
                _format_number(key, change[end], before, "+z")
                for end in ("difference", "low", "high")
            )
            ends = f"{low} to {high}" if change["low"] == change["low"] else ""
            rows.append([str(measure_title(key, before)), *values, difference, ends])
    p_values = [_format_number("p_value", model["p_value"], model) for model in (before, after)]
    rows.append([_MEASURE_TITLES["p_value"], *p_values, "", ""])
    models = [printable(str(model)) for model in (first, name)]
    return TextTable(["measure", *models, "difference", "95 % interval"], rows)


def class_table(classes: list[dict[str, Any]]) -> TextTable:
    n = len(classes)
    title = f"worst of {n} classes" if n > _MAX_CLASSES else "class, the worst first"
    keys = ("observed_share", "mean_prediction", "smooth_calibration_error")
    rows = [
        [printable(str(row["class"])), *(f"{row[key]:.4f}" for key in keys)]
        for row in classes[:_MAX_CLASSES]
    ]
    return TextTable([title, *(key.replace("_", " ") for key in keys)], rows)


def subgroup_table(subgroups: list[dict[str, Any]]) -> TextTable:
    """Return the table of subgroups; of more than 20 those with the smallest p-values."""
    n, first = len(subgroups), subgroups[0]
    title = "subgroup" if first["by"] == "by" else printable(first["by"])
    note = ""
    if n > _MAX_SUBGROUPS:
        title = f"{title} ({_MAX_SUBGROUPS} of {n})"
        subgroups = sorted(subgroups, key=lambda row: (row["p_value"], -row["estimate"]))
    if any(row["n_tested"] != row["n_samples"] for row in subgroups):
        most = max(row["n_tested"] for row in subgroups)
        note = f"(their p-values are of at most {most} samples of each, chosen at random)"
    rows = [
        [
            row["subgroup"],
            str(row["n_samples"]),
            f"{row['estimate']:.4f}",
            f"{row['low']:.4f} to {row['high']:.4f}" if row["low"] == row["low"] else "too few",
            _format_number("p_value", row["p_value"], {}),
        ]
        for row in subgroups[:_MAX_SUBGROUPS]
    ]
    measure = first["measure"].replace("_", " ")
    return TextTable([title, "samples", measure, "95 % interval", "p-value (adjusted)"], rows, note)


def format_table(table: TextTable) -> list[str]:
    """Format the table as text: names on the left, numbers on the right of their columns."""
    lines = map(str.rstrip, format_columns([table.head, *table.rows]))
    return ["", *lines, *([table.note] if table.note else [])]
