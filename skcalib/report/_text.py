"""The text of a report."""

import textwrap

from ._titles import title_of_number

# As many of the worst classes are shown, and of the subgroups with the smallest p-values.
N_WORST, _MOST_SUBGROUPS = 5, 20

NOTE_ON_INTERVALS = "(a range after a number is its 95 % confidence interval)"


def format_row(key, *values):
    """A line of the report: the title of a number, and its values."""
    return f"{title_of_number(key):<48}" + "  ".join(format(value, "9.4f") for value in values)


def format_report(numbers, intervals, advice, subgroups=(), classes=()):
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
        lines.append(NOTE_ON_INTERVALS)
    if n_tested < n_samples:
        lines.append(f"(the p-values are of {n_tested} samples, chosen at random)")
    if classes:
        lines += ["", _format_classes(classes)]
    if subgroups:
        lines += ["", format_subgroups(subgroups)]
    return "\n".join([*lines, "", textwrap.fill(advice, width=76)])


def title_of_classes(classes):
    """What the table of classes is called."""
    n = len(classes)
    return f"worst of {n} classes" if n > N_WORST else "class, the worst first"


def _format_classes(classes):
    title, shown = title_of_classes(classes), classes[:N_WORST]
    width = max(len(title), *(len(str(one["class"])) for one in shown))
    lines = [f"{title:{width}}  observed  predicted  smooth calibration error"]
    for one in shown:
        lines.append(
            f"{one['class']!s:{width}}  {one['observed_share']:8.4f}  {one['mean_prediction']:9.4f}"
            f"  {one['smooth_calibration_error']:.4f}"
        )
    return "\n".join(lines)


def shown_subgroups(subgroups):
    """All in their order, or of many those that are most conspicuous."""
    if len(subgroups) <= _MOST_SUBGROUPS:
        return subgroups
    return sorted(subgroups, key=lambda one: (one["p_value"], -one["estimate"]))[:_MOST_SUBGROUPS]


def title_of_subgroups(subgroups):
    """The columns that make the subgroups, if they have names."""
    title = "subgroup" if subgroups[0]["by"] == "by" else subgroups[0]["by"]
    n = len(subgroups)
    return f"{title} ({_MOST_SUBGROUPS} of {n})" if n > _MOST_SUBGROUPS else title


def format_subgroups(subgroups):
    title, measure = title_of_subgroups(subgroups), title_of_measure(subgroups)
    shown, note = shown_subgroups(subgroups), note_on_tested(subgroups)
    width = max(len(title), *(len(one["subgroup"]) for one in shown))
    lines = [f"{title:{width}}  samples  {measure:<36}adjusted p-value"]
    for one in shown:
        ends = "too few for an interval"
        if one["low"] == one["low"]:
            ends = f"{one['low']:.4f} to {one['high']:.4f}"
        lines.append(
            f"{one['subgroup']:{width}}  {one['n_samples']:7d}  {one['estimate']:.4f}   {ends:<24}"
            f"{one['p_value']:9.3g}"
        )
    return "\n".join([*lines, note] if note else lines)


def title_of_measure(subgroups):
    """What is measured of each subgroup."""
    return subgroups[0]["measure"].replace("_", " ")


def note_on_tested(subgroups):
    """How many samples the p-values are of, if not of all."""
    if all(one["n_tested"] == one["n_samples"] for one in subgroups):
        return ""
    most = max(one["n_tested"] for one in subgroups)
    return f"(their p-values are of at most {most} samples of each, chosen at random)"
