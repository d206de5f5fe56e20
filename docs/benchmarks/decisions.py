"""Losses of decisions on new data, with no recalibrator and after several.

Each problem is split at random into three parts, stratified: one to fit a classifier, one to
recalibrate it, one to measure. The losses of the actions are drawn anew for each split.

    python docs/benchmarks/decisions.py [--quick] [n_repeats]
"""

import sys
import warnings

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.decisions import bayes_action
from skcalib.metrics import decision_calibration
from skcalib.recalibration import (
    AutoRecalibrator,
    DecisionRecalibrator,
    IdentityRecalibrator,
    TemperatureRecalibrator,
)

CLASSIFIERS = {
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(100, random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "balanced": make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000)
    ),
}

NAMES = ("none", "temperature", "auto", "decision", "auto + decision")


def problems():
    """Features and labels."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    yield "breast cancer", X, y
    X, progress = datasets.load_diabetes(return_X_y=True)
    yield "diabetes, high", X, (progress > np.quantile(progress, 0.8)).astype(int)
    X, y = datasets.load_digits(return_X_y=True)
    yield "digits, noisy", X + np.random.default_rng(0).normal(scale=6, size=X.shape), y
    X, y = datasets.make_classification(
        3000, 10, n_informative=4, weights=[0.9], flip_y=0.05, random_state=0
    )
    yield "made, 10 %", X, y
    X, y = datasets.make_classification(
        3000, 10, n_informative=5, n_classes=4, weights=[0.6, 0.2, 0.1], random_state=1
    )
    yield "made, 4 classes", X, y


def drawn_loss(n_classes, rng):
    """Two classes: to miss the second one costs 1 to 20 times a false alarm. More: at random."""
    if n_classes == 2:
        return np.array([[0, np.exp(rng.uniform(0, np.log(20)))], [1, 0]])
    loss = rng.exponential(size=(n_classes + 1, n_classes))
    np.fill_diagonal(loss, 0)
    loss[-1] = 0.3  # to pass the case on
    return loss


def recalibrated(proba, label, new, loss, labels):
    """The new probabilities after each recalibrator."""
    decision = DecisionRecalibrator(loss=loss, labels=labels)
    auto = AutoRecalibrator(labels=labels).fit(proba, label)
    after, new_after = auto.transform(proba), auto.transform(new)
    return {
        "none": IdentityRecalibrator(labels=labels).fit(proba, label).transform(new),
        "temperature": TemperatureRecalibrator(labels=labels).fit(proba, label).transform(new),
        "auto": new_after,
        "decision": clone(decision).fit(proba, label).transform(new),
        "auto + decision": clone(decision).fit(after, label).transform(new_after),
    }


def results(X, y, classifier, seed):
    """Realised loss, its distance from the expected loss, and regret, for each recalibrator."""
    loss, labels = drawn_loss(len(np.unique(y)), np.random.default_rng(seed)), np.unique(y)
    X_fit, X_rest, y_fit, y_rest = train_test_split(
        X, y, stratify=y, test_size=0.6, random_state=seed
    )
    X_cal, X_new, y_cal, y_new = train_test_split(
        X_rest, y_rest, stratify=y_rest, test_size=0.5, random_state=seed
    )
    model = clone(classifier).fit(X_fit, y_fit)
    all_new = recalibrated(
        model.predict_proba(X_cal), y_cal, model.predict_proba(X_new), loss, labels
    )
    rows = []
    for name in NAMES:
        table = decision_calibration(y_new, all_new[name], loss=loss, labels=labels)
        cost = loss[bayes_action(all_new[name], loss=loss), np.searchsorted(labels, y_new)].mean()
        rows.append([cost, abs(table.realised_loss - table.expected_loss), table.regret])
    return np.array(rows)


def as_text(values):
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return [f"{m:.4f} ± {e:.4f}" for m, e in zip(mean, error, strict=True)]


def print_row(cells):
    print(f"| {' | '.join(cells)} |", flush=True)


def main(n_repeats):
    warnings.simplefilter("ignore")
    everything = []
    print("Mean loss on new data; for the others the paired difference from none.\n")
    print_row(["problem", "classifier", *NAMES])
    print_row(["---"] * (2 + len(NAMES)))
    for problem, X, y in problems():
        for name, classifier in CLASSIFIERS.items():
            found = np.array([results(X, y, classifier, seed) for seed in range(n_repeats)])
            everything.append(found / found[:, :1, :1].mean())
            cost = found[:, :, 0]
            gain = cost[:, 1:] - cost[:, :1]
            print_row([problem, name, as_text(cost)[0], *as_text(gain)])
    everything = np.mean(everything, axis=0)  # (repeats, recalibrators, numbers)
    print("\nMeans over all of these, in units of the mean loss of none:\n")
    print_row(["", *NAMES])
    print_row(["---"] * (1 + len(NAMES)))
    for k, title in enumerate(("loss", "gap between expected and realised loss", "regret")):
        print_row([title, *as_text(everything[:, :, k])])
    better = everything[:, 1:, 0] - everything[:, :1, 0]
    print_row(["loss, difference from none", "", *as_text(better)])


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    main(2 if "--quick" in sys.argv else (numbers or [20])[0])
