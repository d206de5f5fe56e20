"""The text of a report, and the words and digits of its numbers."""

import textwrap
from itertools import chain, groupby
from typing import Any, NamedTuple

from .._inputs.by import format_bounded, format_columns, printable
from ..hypothesis_tests import CalibrationTest
from ..metrics._registry import ALL_METRICS

# The smallest p-value that a test of the report can have.
_MIN_P_VALUE = 1 / (1 + CalibrationTest().n_resamples)

# The most subgroups, and classes, that a table shows.
_MAX_SUBGROUPS, _MAX_CLASSES = 20, 5

# The measures of the registry that a report shows: errors, and losses that are means.
_SHOWN = [entry for entry in ALL_METRICS.values() if entry.in_report]
_SHOWN_ERRORS = [entry.name for entry in _SHOWN if entry.chosen]
_SHOWN_LOSSES = [entry.name for entry in _SHOWN if not entry.chosen]

# The tables of a report: headings, and the titles of numbers by key. A key that ends in "_" is the
# beginning of several keys. "{}" is replaced by the rest of the key, or by a note. An empty title
# stands for the key itself, with spaces.
_TABLES = {
    "Is it calibrated?": {
        "p_value": "p-value of the omnibus test of calibration",
        "p_value_skce": "  adjusted: kernel error (SKCE)",
        "p_value_log_loss": "  adjusted: log loss (as Spiegelhalter)",
        "p_value_level_and_spread": "  adjusted: intercept and slope (as Cox)",
        "p_value_local": "  adjusted: gaps in bins (as Hosmer-Lemeshow)",
        "p_value_pit": "  adjusted: uniformity of PITs",
        "p_value_bias_and_spread": "  adjusted: bias, spread and skewness",
        "quantile_p_value": "p-value of the test of quantile calibration",
        "moments_p_value": "p-value of the test of bias, spread, skewness",
        "subgroup_p_value": "p-value of the test of all subgroups",
    },
    "How far from calibrated?": {
        **dict.fromkeys([*_SHOWN_ERRORS, "distribution_matching_error"], ""),
        "integrated_calibration_index": "integrated calibration index (ICI)",
        "distance_lower_bound": "distance to calibration{}, at least",
        "distance_upper_bound": "distance to calibration{}, at most",
        "distribution_matching_ratio": "distribution matching error in standard errors",
        "gain": "decrease of the {} by recalibration",
    },
    "In the large: level and spread": {
        **dict.fromkeys(["prevalence", "mean_prediction", "mean_confidence"], ""),
        **dict.fromkeys(["calibration_intercept", "calibration_slope"], ""),
        "n_events": "events",
        "observed_expected_ratio": "O:E ratio",
        "mean_z": "mean standardised error",
        "rms_z": "root mean square standardised error",
        "coverage_": "coverage of the {} % intervals",
        "expected_coverage_": "expected coverage of the {} % intervals",
        "share_between_members": "expected share between lowest and highest member",
    },
    "How good are the predictions?": {
        **dict.fromkeys([*_SHOWN_LOSSES, "log_loss"], ""),
        "area_under_roc_curve": "AUC (ranking, which is not calibration)",
        "accuracy": "accuracy{}",
        "brier_score_loss": "Brier score",
        "mean_width_": "mean width of the {} % intervals",
        "mean_std": "mean standard deviation",
    },
}

# Least width of the first column of a table, in characters, so that all tables are aligned.
_TITLE_WIDTH = 46

# The numbers, by how their keys begin, of what may be a part of the samples, and its size.
_SIZE_KEYS = {
    "p_value": "n_tested",
    "distribution_matching": "n_tested",
    "quantile_p_value": "quantile_n_tested",
    "gain": "n_recalibrated",
}


class TextTable(NamedTuple):
    """Texts of a table; each row begins with its name."""

    head: list[str]
    rows: list[list[str]]
    note: str = ""


def format_p_value(p_value: float, n_tests: int = 1) -> str:
    """Format a p-value with its relation sign; the smallest one of `n_tests` tests is a bound."""
    return format_bounded(p_value, n_tests * _MIN_P_VALUE)


def measure_title(key: str, numbers: dict[str, Any]) -> str | None:
    """Return the title of one of the numbers; None if it has no line of its own."""
    return _find_title(key, numbers)[1]


def _find_title(key: str, numbers: dict[str, Any]) -> tuple[str, str | None]:
    """Return the heading of the table that a number is in, and its title.

    For more than two classes the key of a binary measure ends in the reduction.
    """
    notes = {"gain": "log loss" if "n_classes" in numbers else "CRPS"}
    notes |= {"accuracy": " at threshold 0.5"} if numbers.get("n_classes") == 2 else {}
    reductions = {"": "", "_confidence": " (confidence)", "_classwise": " (classwise)"}
    for heading, titles in _TABLES.items():
        for name, title in titles.items():
            suffix = key.removeprefix(name)
            if key.startswith(name) and (suffix in reductions or name.endswith("_")):
                note = notes.get(key, reductions.get(suffix, suffix))
                title = title or name.replace("_", " ")
                return heading, title.format(note) if "{}" in title else title + note
    return "", None


def measure_tables(report: Any) -> list[TextTable]:
    """Return the tables of the numbers that have titles."""
    numbers, head = report.numbers, [f"{'value':>9}", "95 % interval", "of"]
    tables = {heading: [[heading.ljust(_TITLE_WIDTH), *head]] for heading in _TABLES}
    for key, value in numbers.items():
        heading, title = _find_title(key, numbers)
        if title is not None:
            texts = [_format_number(key, end, numbers) for end in report.intervals.get(key, ())]
            note = f"class {printable(report.event)}" if key == "n_events" else _note(key, numbers)
            row = [title, _format_number(key, value, numbers), " to ".join(texts), note]
            tables[heading].append(row)
    columns = ([c for c in zip(*rows, strict=True) if any(c[1:])] for rows in tables.values())
    filled = (list(map(list, zip(*c, strict=True))) for c in columns if c)
    return [TextTable(rows[0], rows[1:]) for rows in filled]


def _format_number(key: str, value: float, numbers: dict[str, Any], sign: str = "") -> str:
    """Format a number, or an end of its interval, with the digits of its measure."""
    if "p_value" in key and format_p_value(value)[0] == "≤":
        return format_p_value(value)
    digits = ".4f" if "n_classes" in numbers else _forecast_digits(key)
    return format(value, sign + ("d" if isinstance(value, int) else digits))


def _note(key: str, numbers: dict[str, Any]) -> str:
    if key == "subgroup_p_value" and numbers["n_subgroup_columns"] > 1:
        return f"{numbers['n_subgroup_columns']} tables, by Bonferroni"
    n = numbers["n_samples"]
    sizes = [numbers.get(size, n) for start, size in _SIZE_KEYS.items() if key.startswith(start)]
    return f"{sizes[0]} of {n} samples, at random" if sizes and sizes[0] < n else ""


def _forecast_digits(key: str) -> str:
    """Return the format: four decimals for numbers in [0, 1], four digits for those with units."""
    if key == "distribution_matching_error":
        return ".1e"
    in_unit = "coverage_" in key or "p_value" in key or key.endswith("calibration_error")
    return ".4f" if in_unit else "#.4g"


def format_comparison(head: list[str], reports: dict[str, Any], changes: list[TextTable]) -> str:
    lines, tables = list(head), list(changes)
    for name, report in reports.items():
        title = printable(str(name))
        lines += ["", _fill(f"{title}: {report.advice}")]
        rows = [row | {"by": f"{title}: {row['by']}"} for row in report.subgroups]
        tables += subgroup_tables(rows)
    return "\n".join([*lines, *chain(*map(format_table, tables))])


def format_head(numbers: dict[str, Any], name: str | None, date: str | None) -> list[str]:
    """Return the first lines: model, number of predictions and classes, and the date, if any."""
    size_text = f"{numbers['n_samples']} forecasts"
    if "n_classes" in numbers:
        size_text = f"{numbers['n_samples']} predictions, {numbers['n_classes']} classes"
    title = f"{printable(name)}: " if name else ""
    return [f"Calibration of {title}{size_text}", *([date] if date else [])]


def format_report(report: Any) -> str:
    head = format_head(report.numbers, report.name, report.date)
    tables = [*measure_tables(report), *class_tables(report.classes)]
    tables += subgroup_tables(report.subgroups)
    return "\n".join([*head, "", _fill(report.advice), *chain(*map(format_table, tables))])


def _fill(text: str) -> str:
    return textwrap.fill(text, width=76, break_on_hyphens=False)


def change_tables(
    numbers: dict[str, dict[str, Any]], changes: list[dict[str, Any]]
) -> list[TextTable]:
    """Return a table for each model but the first: numbers, and differences from the first."""
    first, *later = numbers
    return [_change_table(numbers, first, name, changes) for name in later]


def _change_table(
    numbers: dict[str, dict[str, Any]], first: str, name: str, changes: list[dict[str, Any]]
) -> TextTable:
    pair = before, _ = numbers[first], numbers[name]
    rows = [_pair_row("prevalence", pair)] if "prevalence" in before else []
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
    rows.append(_pair_row("p_value", pair))
    models = [printable(str(model)) for model in (first, name)]
    return TextTable(["measure", *models, "difference", "95 % interval"], rows)


def _pair_row(key: str, pair: tuple[dict[str, Any], ...]) -> list[str]:
    values = [_format_number(key, numbers[key], numbers) for numbers in pair]
    return [str(measure_title(key, pair[0])), *values, "", ""]


def class_tables(classes: list[dict[str, Any]]) -> list[TextTable]:
    """Return the table of more than two classes."""
    n = len(classes)
    title = f"{_MAX_CLASSES} of {n} classes" if n > _MAX_CLASSES else "class"
    title += ", largest error first"
    keys = ("observed_share", "mean_prediction", "smooth_calibration_error")
    rows = [
        [printable(str(row["class"])), *(f"{row[key]:.4f}" for key in keys)]
        for row in classes[:_MAX_CLASSES]
    ]
    table = TextTable([title, *(key.replace("_", " ") for key in keys)], rows)
    return [table] if classes else []


def subgroup_tables(subgroups: list[dict[str, Any]]) -> list[TextTable]:
    """Return a table for each column, or crossing of columns, that makes subgroups."""
    by_columns = groupby(subgroups, key=lambda row: row["by"])
    return [_subgroup_table(list(rows)) for _, rows in by_columns]


def _subgroup_table(subgroups: list[dict[str, Any]]) -> TextTable:
    """Return the table of subgroups; of more than 20 those with the smallest p-values."""
    n, first = len(subgroups), subgroups[0]
    title, note = first["by"], ""
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
