"""Tables of the benchmarks of training."""

from pathlib import Path

import numpy as np
import pandas as pd

PAPER = Path(__file__).parent / "tables" / "marx2023_paper.csv"
# What the paper calls an objective, a recalibration and a measure, and what is recorded beside it.
OBJECTIVES = {"XE": "plain", "XE + MMCE": "MMCE, program", "XE + ECE KDE": "ECE-KDE"}
OBJECTIVES |= {"XE + MMD": "MMD given x", "NLL": "plain", "NLL + MMD": "MMD given x"}
OBJECTIVES |= {"NLL + MMD, rbf": "MMD given x", "NLL + MMD, tanh": "MMD tanh given x"}
AFTER = {"none": "none", "temperature": "temperature", "isotonic": "isotonic PIT"}
MEASURES = {"accuracy": "accuracy", "ECE": "ECE of 8", "entropy": "entropy", "KCE": "1000 KCE of 8"}
MEASURES |= {"NLL": "NLL", "QCE": "QCE by histogram", "DCE": "DCE summed"}
IF_CALIBRATED = {"ECE": "if calibrated"}
IF_CALIBRATED |= {name: f"{MEASURES[name]}, if calibrated" for name in ("QCE", "DCE")}
WITHOUT_SCALE = ("KCE",)  # the paper scales it by an unknown factor for each data set
NO_DATA, NO_TIME, NO_DENSITY = "no data", "not run", "no density"
NOT_STOPPED = ", not stopped"
CLASS_NAMES = ("log loss", "accuracy", "ECE of 8", "entropy", "1000 KCE of 8")
CLASS_NAMES += ("ECE", "smECE", "1000 SKCE")
NUMBER_NAMES = ("NLL", "CRPS", "QCE by histogram", "DCE summed", "QCE", "DCE", "LCE")
DIGITS = {"accuracy": 1, "1000 KCE of 8": 2, "1000 SKCE": 2, "smECE": 4, "ECE": 4}
DIGITS |= {"QCE": 4, "DCE": 4, "LCE": 4, "CRPS": 4}


def with_error(values, digits=3):
    """Mean and standard error over splits; nothing if a split has no value."""
    values = np.asarray(values, dtype=float)
    if np.isnan(values).any():
        return ""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"


def print_table(rows, columns):
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def case(rows, objective, after="none"):
    part = rows[(rows.objective == objective) & (rows.after == after)]
    return part.set_index(["problem", "seed"])


def cells(values, names):
    """Over seeds, after the mean over problems."""
    means = values[list(names)].groupby("seed").mean()
    return [with_error(means[name], DIGITS.get(name, 3)) for name in names]


def print_differences(chosen, names, cases, reference="plain"):
    """The reference as it is, and paired differences of other cases from it."""
    plain = case(chosen, reference)
    lines = [[reference, "none", *cells(plain, names)]]
    for objective, after in cases:
        change = case(chosen, objective, after)[list(names)] - plain[list(names)]
        lines.append([objective, after, *cells(change, names)])
    print_table(lines, ["objective", "afterwards", *names])


def print_values(chosen, names):
    lines = []
    for (problem, after, objective), part in chosen.groupby(
        ["problem", "after", "objective"], sort=False
    ):
        lines.append([problem, objective, after, *cells(part.set_index("seed"), names)])
    print_table(lines, ["data", "objective", "afterwards", *names])


def print_counts(chosen, names, objectives):
    plain, lines = case(chosen, "plain")[list(names)], []
    for objective in objectives:
        change = (case(chosen, objective)[list(names)] - plain).groupby("problem")
        ratio = change.mean() / change.sem()
        counts = zip((ratio < -2).sum(), (ratio > 2).sum(), strict=True)
        lines.append([objective, *(f"{low} / {high}" for low, high in counts)])
    print_table(lines, ["objective", *names])


def read_paper(number):
    """The cells of a table of the paper, as printed: `value` and `error` are texts."""
    paper = pd.read_csv(PAPER, comment="#", dtype=str, keep_default_na=False)
    return paper[paper.table == str(number)]


def standard_errors_apart(values, paper, error):
    """Our mean less the paper's value, over the standard error of this difference.

    All starts of the paper share one split, so its value varies as much as that of one split here.
    """
    values = np.asarray(values, dtype=float)
    between = np.std(values, ddof=1) * (1 + 1 / len(values)) ** 0.5
    return (values.mean() - float(paper)) / np.hypot(between, float(error or 0))


def print_beside_paper(rows, number):
    """Each row of a table of the paper, what is recorded beside it, and how far they are apart."""
    paper = read_paper(number)
    measures = list(dict.fromkeys(paper.measure))
    keys = ["data", "objective", *{3: ["afterwards"], 6: ["draws"]}.get(number, [])]
    columns, lines, apart = list(keys), [], {measure: [] for measure in measures}
    for measure in measures:
        columns += [f"paper: {measure}", f"here: {'1000 ' if measure == 'KCE' else ''}{measure}"]
        columns += ["if calibrated"] * (measure in IF_CALIBRATED)
        columns += ["apart"] * (measure not in WITHOUT_SCALE)
    order = {name: k for k, name in enumerate(dict.fromkeys(paper.data))}
    paper = paper.sort_values("data", key=lambda names: names.map(order), kind="stable")
    for names, cells_of_row in paper.groupby(keys, sort=False):
        data, objective, *more = names
        name = f"{more[0]} draws" if number == 6 else OBJECTIVES[objective]
        after = AFTER[cells_of_row.afterwards.iloc[0]]
        recorded = rows[rows.problem == data]
        reason = NO_TIME if len(recorded) else NO_DATA
        recorded = recorded[(recorded.objective == name) & (recorded.after == after)]
        line = list(names)
        for cell in cells_of_row.itertuples():
            values = recorded[MEASURES[cell.measure]]
            ours = with_error(values, DIGITS.get(MEASURES[cell.measure], 3)) if len(values) else ""
            is_known = ours != ""
            line.append(f"{cell.value} ± {cell.error}" if cell.error else cell.value)
            line.append(ours if is_known else NO_DENSITY if len(values) else reason)
            if cell.measure in IF_CALIBRATED:
                line.append(with_error(recorded[IF_CALIBRATED[cell.measure]]) if is_known else "")
            if cell.measure not in WITHOUT_SCALE:
                if is_known:
                    distance = standard_errors_apart(values, cell.value, cell.error)
                    apart[cell.measure].append(abs(distance))
                line.append(f"{distance:.1f}" if is_known else "")
        lines.append(line)
    print_table(lines, columns)
    print("At most two standard errors apart:")
    for measure, distances in apart.items():
        if distances:
            n_near = np.sum(np.array(distances) <= 2)
            print(f"{measure} {n_near} of {len(distances)}, largest {max(distances):.1f}.")
    print()


def print_changes_beside_paper(chosen):
    """Changes from the plain network, means over the data sets, beside those of the paper."""
    lines, measures = [], ("accuracy", "ECE", "entropy")
    names = [MEASURES[measure] for measure in measures]
    for number, after in ((4, "none"), (5, "temperature")):
        paper = read_paper(number).set_index(["measure", "objective", "data"])
        paper = paper[["value", "error"]].astype(float)
        plain = case(chosen, "plain", after)[names]
        for objective in ("XE + MMCE", "XE + ECE KDE", "XE + MMD"):
            ours = case(chosen, OBJECTIVES[objective], after)[names] - plain
            ours = ours.groupby("seed").mean()
            line = [objective, after]
            for measure in measures:
                penalized, unpenalized = paper.loc[(measure, objective)], paper.loc[(measure, "XE")]
                change = (penalized.value - unpenalized.value).mean()
                squares = (penalized.error**2 + unpenalized.error**2).sum()
                error, digits = squares**0.5 / len(penalized), DIGITS.get(MEASURES[measure], 3)
                values = ours[MEASURES[measure]]
                line += [f"{change:.{digits}f} ± {error:.{digits}f}", with_error(values, digits)]
                line.append(f"{standard_errors_apart(values, change, error):.1f}")
            lines.append(line)
    columns = [f"{name}{measure}" for measure in measures for name in ("paper: ", "here: ", "")]
    columns = ["apart" if name in measures else name for name in columns]
    print_table(lines, ["objective", "afterwards", *columns])
    paper = read_paper(4).set_index(["measure", "objective", "data"]).value.astype(float)
    for measure in measures:
        change = (paper.loc[(measure, "XE + MMD")] - paper.loc[(measure, "XE")]).abs()
        share = change[["breast-cancer", "heart-disease"]].sum() / change.sum()
        print(f"{measure}: {share:.2f} of the paper's changes are on the two smallest data sets.")
    for number, after in ((4, "none"), (5, "temperature")):
        paper = read_paper(number).set_index(["measure", "objective", "data"]).value.astype(float)
        theirs = paper.loc[("KCE", "XE + MMD")] - paper.loc[("KCE", "XE")]
        column = MEASURES["KCE"]
        ours = case(chosen, "MMD given x", after)[column] - case(chosen, "plain", after)[column]
        n_lower, ours = np.sum(theirs < 0), ours.groupby("problem").mean()
        print(f"KCE with MMD, {after} afterwards: lower on {n_lower} of {len(theirs)} data sets in")
        print(f"the paper, on {np.sum(ours < 0)} of {len(ours)} here.")
    print()


def print_choice_by_accuracy(rows, names):
    """What changes if the setting is chosen by the accuracy, as in the paper."""
    settings, lines = rows[rows.after == "none"], []
    by_loss = settings[settings.chosen]
    order = settings.sort_values("validation accuracy", ascending=False, kind="stable")
    by_accuracy = order.groupby(["problem", "seed", "objective"], sort=False).head(1)
    for objective in dict.fromkeys(settings.objective):
        if objective != "plain":
            names = list(names)
            change = case(by_accuracy, objective)[names] - case(by_loss, objective)[names]
            lines.append([objective, *cells(change, names)])
    print_table(lines, ["objective", *names])


def print_weights(rows, names):
    settings, lines = rows[rows.after == "none"], []
    plain = case(settings, "plain")[list(names)]
    for (objective, weight), part in settings.groupby(["objective", "weight"], sort=False):
        if objective != "plain":
            change = part.set_index(["problem", "seed"])[list(names)] - plain
            share = f"{part.chosen.mean():.2f}"
            lines.append([objective, f"{weight:g}", share, *cells(change, names)])
    print_table(lines, ["objective", "weight", "share chosen", *names])


def print_times(rows):
    times = rows[rows.after == "none"].groupby(["problem", "seed", "objective"], sort=False)
    times = times["seconds"].median().unstack("objective")[list(dict.fromkeys(rows.objective))]
    ratio = times.div(times["plain"], axis=0)
    ratio["plain"] = 1000 * times["plain"]
    lines = []
    for name, part in ratio.groupby("problem", sort=False):
        lines.append([name, *(f"{part[objective].median():.1f}" for objective in ratio)])
    print_table(lines, ["data", "plain, ms", *ratio.columns[1:]])


def print_draws(rows, names):
    lines = []
    for problem, its in rows.groupby("problem", sort=False):
        closed = its[its.objective == "no draws"].set_index("seed")
        lines.append([problem, "closed form", *cells(closed, names), "1.0"])
        for objective, part in its[its.objective != "no draws"].groupby("objective", sort=False):
            part = part.set_index("seed")
            ratio = (part.seconds / closed.seconds).median()
            change = part[list(names)] - closed[list(names)]
            lines.append([problem, objective.split()[0], *cells(change, names), f"{ratio:.1f}"])
    print_table(lines, ["data", "draws", *names, "time"])


def print_classes(rows):
    is_stopped = ~rows.objective.str.endswith(NOT_STOPPED)
    last, rows = rows[~is_stopped], rows[is_stopped]
    chosen = rows[rows.chosen]
    objectives = [name for name in dict.fromkeys(rows.objective) if name != "plain"]
    if "adult" in set(rows.problem):
        for number in (4, 5):
            print(f"## Table {number} beside the paper\n")
            print_beside_paper(chosen, number)
        print("## Tables 4 and 5: changes beside the paper's, means over the data sets\n")
        print_changes_beside_paper(chosen)
    print("## Tables 4 and 5: classes, means over the data sets\n")
    print("First the plain network, then paired differences from it.\n")
    cases = [(name, "none") for name in objectives]
    cases += [(name, "temperature") for name in ("plain", *objectives)] + [("plain", "auto")]
    print_differences(chosen, CLASS_NAMES, cases)
    print("Data sets on which a value is lower / higher than plain by two standard errors:\n")
    print_counts(chosen, CLASS_NAMES, objectives)
    print("Chosen by the accuracy of the validation part, less chosen by its log loss:\n")
    print_choice_by_accuracy(rows, CLASS_NAMES)
    if len(last):
        print("## Classes, without early stopping\n")
        print("The last of 30 epochs, then paired differences from it.\n")
        plain, penalized = dict.fromkeys(last.objective)
        cases = [(penalized, "none"), (plain, "temperature"), (penalized, "temperature")]
        print_differences(last, CLASS_NAMES, cases, plain)
    print("## Classes, each weight\n\nChosen or not, paired differences from plain:\n")
    print_weights(rows, CLASS_NAMES)
    print("## Classes, each data set\n")
    print_values(chosen, CLASS_NAMES)


def print_numbers(rows):
    is_draws = rows.objective.str.endswith("draws")
    draws, rows = rows[is_draws], rows[~is_draws]
    chosen = rows[rows.chosen]
    objectives = [name for name in dict.fromkeys(rows.objective) if name != "plain"]
    if "crime" in set(rows.problem):
        for number in (3, 6, 7):
            print(f"## Table {number} beside the paper\n")
            print_beside_paper(draws if number == 6 else chosen, number)
    for problem, part in chosen.groupby("problem", sort=False):
        print(f"## Tables 3 and 7: {problem}\n")
        print("First the plain network, then paired differences from it.\n")
        cases = [(name, "none") for name in objectives]
        cases += [("plain", after) for after in dict.fromkeys(part.after) if after != "none"]
        cases += [("MMD given x", after) for _, after in cases[-3:-1]]
        print_differences(part, NUMBER_NAMES, cases)
    if len(draws):
        print("## Table 6: draws\n\nThe closed form, then paired differences from it.\n")
        print_draws(draws, NUMBER_NAMES)
    print("## Numbers, each weight\n\nChosen or not, paired differences from plain:\n")
    print_weights(rows, NUMBER_NAMES)
    print("## Numbers, each data set\n")
    print_values(chosen, NUMBER_NAMES)


def print_all(rows):
    is_number = rows["NLL"].notna() | rows["CRPS"].notna()
    for part, show in ((rows[~is_number], print_classes), (rows[is_number], print_numbers)):
        if len(part):
            show(part)
    print("## Time of an epoch\n\nOf the processor; others in units of the plain network's.\n")
    for part in (rows[~is_number], rows[is_number]):
        part = part[~part.objective.str.endswith((NOT_STOPPED, "draws"))]
        if len(part):
            print_times(part)
