"""Tables of the benchmarks of training."""

import numpy as np

# Accuracy, ECE, entropy and KCE of the plain network, and with the penalty of the paper (Table 4).
PAPER_CLASSES = {
    ("breast-cancer", "plain"): (95.372, 0.194, 0.453),
    ("breast-cancer", "MMD given x"): (95.789, 0.052, 0.006),
    ("heart-disease", "plain"): (55.904, 0.373, 1.512),
    ("heart-disease", "MMD given x"): (61.516, 0.261, 0.945),
    ("online-shoppers", "plain"): (89.816, 0.129, 0.221),
    ("online-shoppers", "MMD given x"): (89.976, 0.127, 0.218),
    ("dry-bean", "plain"): (92.071, 0.113, 0.264),
    ("dry-bean", "MMD given x"): (92.894, 0.089, 0.174),
    ("adult", "plain"): (84.528, 0.186, 0.320),
    ("adult", "MMD given x"): (84.565, 0.178, 0.315),
}
# NLL, QCE and DCE of crime (Tables 3 and 7).
PAPER_CRIME = {
    ("plain", "none"): (-0.716, 0.220, 0.151),
    ("plain", "isotonic PIT"): (-0.387, 0.154, 0.089),
    ("MMD given x", "none"): (-0.778, 0.164, 0.042),
    ("MMD given x", "isotonic PIT"): (-0.660, 0.105, 0.041),
    ("MMD tanh given x", "none"): (-0.657, None, 0.027),
}
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


def print_beside_paper(chosen):
    lines = []
    for (problem, objective), (accuracy, ece, entropy) in PAPER_CLASSES.items():
        part = case(chosen, objective)
        if problem in part.index:
            own = part.loc[problem]
            names = ("accuracy", "entropy", "ECE of 8", "if calibrated", "ECE")
            found = [with_error(own[name], DIGITS.get(name, 3)) for name in names]
            lines.append([problem, objective, accuracy, entropy, ece, *found])
    columns = ["data", "objective", "paper: accuracy", "entropy", "ECE"]
    columns += ["here: accuracy", "entropy", "ECE of 8", "if calibrated", "ECE of all"]
    print_table(lines, columns)


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
    print("## Table 4: the errors of the paper\n")
    print_beside_paper(chosen)
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


def print_crime(chosen):
    lines = []
    for (objective, after), paper in PAPER_CRIME.items():
        own = case(chosen, objective, after).loc["crime"]
        names = ("NLL", "QCE by histogram", "QCE by histogram, if calibrated")
        names += ("DCE summed", "DCE summed, if calibrated")
        found = [with_error(own[name]) for name in names]
        lines.append([objective, after, *("" if x is None else x for x in paper), *found])
    columns = ["objective", "afterwards", "paper: NLL", "QCE", "DCE", "here: NLL"]
    columns += ["QCE by histogram", "if calibrated", "DCE summed", "if calibrated"]
    print_table(lines, columns)


def print_numbers(rows):
    is_draws = rows.objective.str.endswith("draws")
    draws, rows = rows[is_draws], rows[~is_draws]
    chosen = rows[rows.chosen]
    objectives = [name for name in dict.fromkeys(rows.objective) if name != "plain"]
    if "crime" in set(rows.problem):
        print("## Table 3: crime beside the paper\n")
        print_crime(chosen)
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
