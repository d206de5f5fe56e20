"""Tables of the rows that benchmarks of training measure, in Markdown."""

import numpy as np


def with_error(values):
    """Mean and standard error over seeds."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.4f} ± {error:.4f}"


def print_table(rows, columns):
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def by_case(chosen):
    return {
        case: part.set_index("seed")
        for case, part in chosen.groupby(["objective", "after"], sort=False)
    }


def difference(rows, reference, names):
    """Seeds × names: what the means over problems differ by."""
    return rows[names].groupby("seed").mean() - reference[names].groupby("seed").mean()


def print_differences(chosen, names, after="none"):
    """The plain network with one recalibrator, and the paired differences of all others."""
    cases = by_case(chosen)
    reference = cases["plain", after]
    values = reference[names].groupby("seed").mean()
    lines = [["plain", after, *(with_error(values[name]) for name in names)]]
    for case in dict.fromkeys(zip(chosen.objective, chosen.after, strict=True)):
        if case != ("plain", after):
            change = difference(cases[case], reference, names)
            lines.append([*case, *(with_error(change[name]) for name in names)])
    print_table(lines, ["objective", "afterwards", *names])


def print_counts(chosen, names):
    cases, lines = by_case(chosen), []
    for (objective, after), case in cases.items():
        if objective != "plain":
            ours = case.set_index("problem", append=True)[names]
            plain = cases["plain", after].set_index("problem", append=True)[names]
            change = (ours - plain).groupby("problem")
            ratio = change.mean() / change.sem()
            counts = zip((ratio < -2).sum(), (ratio > 2).sum(), strict=True)
            lines.append([objective, after, *(f"{low} / {high}" for low, high in counts)])
    print_table(lines, ["objective", "afterwards", *names])


def print_contrast(chosen, names, first, second):
    rows = chosen[chosen.after == "none"]
    lines = []
    for problem, part in rows.groupby("problem", sort=False):
        cases = by_case(part)
        change = difference(cases[first, "none"], cases[second, "none"], names)
        lines.append([problem, *(with_error(change[name]) for name in names)])
    print_table(lines, ["problem", *names])


def print_weights(rows, names):
    plain, lines = rows[rows.objective == "plain"].set_index("seed"), []
    n_choices = len(plain)
    for (objective, weight), part in rows.groupby(["objective", "weight"], sort=False):
        if objective != "plain":
            change = difference(part.set_index("seed"), plain, names)
            cells = (with_error(change[name]) for name in names)
            lines.append([objective, weight, f"{part.chosen.sum() / n_choices:.2f}", *cells])
    print_table(lines, ["objective", "weight", "share chosen", *names])


def print_times(rows):
    times = rows.groupby(["problem", "seed", "objective"], sort=False)["seconds"].median()
    times = times.unstack("objective")[list(dict.fromkeys(rows.objective))]
    ratio = times.div(times["plain"], axis=0)
    ratio["plain"] = 1000 * times["plain"]
    lines = [
        [name, *(f"{value:.1f}" for value in row)]
        for name, row in ratio.groupby("problem", sort=False).median().iterrows()
    ]
    print_table(lines, ["problem", "plain, ms", *ratio.columns[1:]])


def print_draws(rows, names):
    closed, lines = rows[rows.weight == 0].set_index("seed"), []
    for n_draws, part in rows.groupby("weight"):
        part = part.set_index("seed")
        change = part[names] if n_draws == 0 else part[names] - closed[names]
        times = f"{(part.seconds / closed.seconds).median():.1f}"
        cells = (with_error(change[name]) for name in names)
        lines.append([int(n_draws) or "closed form", *cells, times])
    print_table(lines, ["draws", *names, "time"])
