"""Recalibrators on real predictions, beside those of other packages.

Each problem is split at random into three parts, stratified: one to fit a classifier, one to
recalibrate it, one to measure. Run in an environment with the other packages:

    pip install . probcal betacal venn-abers netcal probmetrics numba splinecalib
    python docs/benchmarks/recalibration.py [--quick] [n_repeats] [table.csv]
"""

import sys
import time
import warnings
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib import recalibration
from skcalib.metrics import smooth_calibration_error

warnings.simplefilter("ignore")
import netcal.binning  # noqa: E402
import netcal.scaling  # noqa: E402
import probcal  # noqa: E402
import splinecalib  # noqa: E402
from probmetrics.calibrators import get_calibrator  # noqa: E402

CLASSIFIERS = {
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(100, random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosting": HistGradientBoostingClassifier(max_iter=60, random_state=0),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
    "network": make_pipeline(StandardScaler(), MLPClassifier(50, max_iter=150, random_state=0)),
}


def moved_digits(n_copies=3):
    """The digits, and copies of them shifted by a pixel and with noise: images and groups."""
    images, y = datasets.load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    copies = [
        np.roll(images.reshape(-1, 8, 8), rng.integers(-1, 2, size=2), axis=(1, 2)).reshape(-1, 64)
        + rng.normal(scale=2.5, size=images.shape)
        for _ in range(n_copies)
    ]
    return np.concatenate([images, *copies]), np.tile(y, n_copies + 1)


def problems():
    """Features, labels, and the group of each row: rows of a group stay together."""
    digits, digit = datasets.load_digits(return_X_y=True)
    moved, moved_digit = moved_digits()
    group = np.tile(np.arange(len(digit)), len(moved) // len(digit))
    diabetes, progress = datasets.load_diabetes(return_X_y=True)
    for name, load in (
        ("breast cancer", datasets.load_breast_cancer),
        ("wine", datasets.load_wine),
        ("iris", datasets.load_iris),
    ):
        X, y = load(return_X_y=True)
        yield name, X, y, np.arange(len(y))
    yield "diabetes", diabetes, (progress > np.median(progress)).astype(int), np.arange(442)
    yield "digits", digits, digit, np.arange(len(digit))
    yield "digits, odd", digits, digit % 2, np.arange(len(digit))
    yield "digits, 8", digits, (digit == 8).astype(int), np.arange(len(digit))
    yield "moved digits", moved, moved_digit, group
    yield "moved digits, odd", moved, moved_digit % 2, group
    yield "moved digits, 8", moved, (moved_digit == 8).astype(int), group


class Case(NamedTuple):
    """A fitted classifier, and features, probabilities and labels of the calibration data."""

    classifier: object
    X: np.ndarray
    proba: np.ndarray
    y: np.ndarray


def ours(recalibrator, case, X_test, proba_test):
    recalibrator.set_params(labels=np.arange(case.proba.shape[1]))
    return recalibrator.fit(case.proba, case.y).predict_proba(proba_test)


def scikit_learn(method, case, X_test, proba_test):
    model = CalibratedClassifierCV(FrozenEstimator(case.classifier), method=method)
    return model.fit(case.X, case.y).predict_proba(X_test)


def of_probcal(name, case, X_test, proba_test):
    if proba_test.shape[1] > 2:
        raise NotImplementedError("two classes only")
    calibrator = getattr(probcal, name)().fit(case.proba[:, 1], case.y)
    positive = calibrator.predict_proba(proba_test[:, 1])
    return positive if positive.ndim == 2 else np.column_stack([1 - positive, positive])


def of_splinecalib(case, X_test, proba_test):
    if proba_test.shape[1] > 2:
        raise NotImplementedError("two classes only")
    calibrator = splinecalib.SplineCalib()
    calibrator.fit(case.proba[:, 1], case.y)
    positive = calibrator.calibrate(proba_test[:, 1])
    return np.column_stack([1 - positive, positive])


def of_netcal(calibrator, case, X_test, proba_test):
    calibrator = calibrator()
    columns = 1 if proba_test.shape[1] == 2 else slice(None)
    calibrator.fit(case.proba[:, columns], case.y)
    result = np.asarray(calibrator.transform(proba_test[:, columns]))
    return np.column_stack([1 - result, result]) if columns == 1 else result


def of_probmetrics(name, case, X_test, proba_test):
    return np.asarray(get_calibrator(name).fit(case.proba, case.y).predict_proba(proba_test))


METHODS = {
    "none": lambda case, X_test, proba_test: proba_test,
    **{
        f"skcalib {name}": partial(ours, getattr(recalibration, f"{name}Recalibrator")())
        for name in (
            "Auto",
            "Temperature",
            "EnsembleTemperature",
            "Sigmoid",
            "Quadratic",
            "Beta",
            "Spline",
            "VectorScaling",
            "MatrixScaling",
            "Dirichlet",
            "Isotonic",
            "VennAbers",
            "IntervalBinning",
            "ScalingBinning",
        )
    },
    "skcalib Isotonic, strict": partial(ours, recalibration.IsotonicRecalibrator(strict=True)),
    **{
        f"scikit-learn {method}": partial(scikit_learn, method)
        for method in ("sigmoid", "isotonic", "temperature")
    },
    **{
        f"probcal {name}": partial(of_probcal, f"{name}Calibrator")
        for name in (
            "Platt",
            "Temperature",
            "Beta",
            "Isotonic",
            "CenteredIsotonic",
            "Spline",
            "VennAbers",
        )
    },
    "splinecalib": of_splinecalib,
    **{
        f"netcal {name}": partial(of_netcal, getattr(module, name))
        for module, name in (
            (netcal.scaling, "TemperatureScaling"),
            (netcal.scaling, "LogisticCalibration"),
            (netcal.scaling, "BetaCalibration"),
            (netcal.binning, "IsotonicRegression"),
            (netcal.binning, "BBQ"),
        )
    },
    **{
        f"probmetrics {name}": partial(of_probmetrics, name)
        for name in (
            "temp-scaling",
            "ts-mix",
            "affine-scaling",
            "quadratic-scaling",
            "beta",
            "svs",
            "sms",
            "logistic",
            "cir",
            "ivap",
        )
    },
}


def scores(y, proba):
    labels = np.arange(proba.shape[1])
    proba = proba / proba.sum(axis=1, keepdims=True)
    return (
        log_loss(y, proba, labels=labels),
        brier_score_loss(y, proba, labels=labels, scale_by_half=True),
        smooth_calibration_error(y, proba, labels=labels),
    )


def split(y, group, seed):
    """Three parts of the rows, stratified by label; rows of a group in the same one."""
    first = np.unique(group, return_index=True)[1]
    train, rest = train_test_split(first, train_size=1 / 3, stratify=y[first], random_state=seed)
    calibration, test = train_test_split(rest, train_size=0.5, stratify=y[rest], random_state=seed)
    return (np.flatnonzero(np.isin(group, group[part])) for part in (train, calibration, test))


def measure(n_repeats, n_problems=None):
    """Rows: problem, classifier, repeat, method, log loss, Brier score, smooth error, seconds."""
    for problem, X, y, group in islice(problems(), n_problems):
        for repeat in range(n_repeats):
            train, calibration, test = split(y, group, repeat)
            for name, classifier in CLASSIFIERS.items():
                classifier.fit(X[train], y[train])
                seen, new = (classifier.predict_proba(X[rows]) for rows in (calibration, test))
                case = Case(classifier, X[calibration], seen, y[calibration])
                for method, recalibrate in METHODS.items():
                    start = time.perf_counter()
                    try:
                        proba = recalibrate(case, X[test], new)
                    except NotImplementedError:
                        continue
                    except Exception as error:
                        print(problem, name, method, repr(error)[:90], file=sys.stderr)
                        continue
                    seconds = time.perf_counter() - start
                    valid = np.isfinite(proba).all() and proba.min() >= 0
                    values = scores(y[test], proba) if valid else (np.nan,) * 3
                    yield problem, name, repeat, method, *values, seconds
        print(problem, "done", file=sys.stderr, flush=True)


COLUMNS = ["problem", "classifier", "repeat", "method", "log loss", "Brier", "smooth", "seconds"]
MEASURES = COLUMNS[4:7]


def table(rows):
    """One row for each method: means over all cases, and how often it was worse than nothing."""
    cells = rows.groupby(["problem", "classifier", "method"])[MEASURES].mean().unstack("method")
    result = pd.DataFrame({name: cells[name].mean() for name in MEASURES})
    loss = cells["log loss"]
    result["worse than none"] = loss.gt(loss["none"], axis=0).mean()
    result["ms"] = 1000 * rows.groupby("method")["seconds"].median()
    complete = loss.notna().all()
    return result[complete].sort_values("log loss")


def duel(rows, measure):
    """On each problem the best method of skcalib and the best of the others, and their difference.

    The standard error is that of the mean over repeats, each of which averages the classifiers.
    """
    means = rows.pivot_table(measure, ["problem", "repeat"], "method", aggfunc="mean")
    is_ours = means.columns.str.startswith("skcalib")
    others = means.columns[~is_ours & (means.columns != "none")]
    result = {}
    for problem, values in means.groupby("problem"):
        mean = values.mean()
        our_best, their_best = mean[is_ours].idxmin(), mean[others].idxmin()
        difference = values[our_best] - values[their_best]
        result[problem] = {
            "none": mean["none"],
            "Auto": mean["skcalib Auto"],
            "skcalib": our_best.removeprefix("skcalib "),
            "value": mean[our_best],
            "others": their_best,
            "their value": mean[their_best],
            "difference": difference.mean(),
            "standard error": difference.sem(),
        }
    return pd.DataFrame(result).T


def against_nothing(rows, method, measure="log loss"):
    """How much worse than nothing a method was in each case, in standard errors over repeats."""
    chosen = rows[rows.method.isin([method, "none"])]
    values = chosen.pivot_table(measure, ["problem", "classifier", "repeat"], "method")
    cells = (values[method] - values["none"]).groupby(["problem", "classifier"])
    return (cells.mean() / cells.sem().where(cells.sem() > 0, np.inf)).sort_values()


def main(n_repeats=10, path=None, quick=False):
    measured = measure(2, n_problems=3) if quick else measure(n_repeats)
    rows = pd.DataFrame(measured, columns=COLUMNS)
    if path is not None:
        rows.to_csv(path, index=False)
    n_classes = {name: len(np.unique(y)) for name, _, y, _ in problems()}
    binary = rows.problem.map(n_classes) == 2
    for title, part in (("Two classes", rows[binary]), ("More classes", rows[~binary])):
        print(f"\n## {title}\n\n{table(part).to_markdown(floatfmt='.4f')}")
    for name in MEASURES:
        print(f"\n## {name}\n\n{duel(rows, name).to_markdown(floatfmt='.4f')}")
    print("\n## AutoRecalibrator against nothing, in standard errors\n")
    print(against_nothing(rows, "skcalib Auto").tail(12).to_string())


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--quick"]
    main(*map(int, arguments[:1]), *arguments[1:2], quick="--quick" in sys.argv)
