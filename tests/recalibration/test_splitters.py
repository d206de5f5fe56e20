"""Any splitter of scikit-learn's deals the folds, with groups and with weights."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skcalib.recalibration import IsotonicRecalibrator, PredictProba, RecalibratedClassifier
from skcalib.recalibration._folds import fit_with_units

X, y = (column[::2] for column in load_breast_cancer(return_X_y=True))

GROUPS = np.arange(len(y)) // 10 % 7

PARTITIONS = {
    "int": 4,
    "none": None,
    "k-fold": KFold(4, shuffle=True, random_state=0),
    "groups": GroupKFold(3),
    "one group out": LeaveOneGroupOut(),
    "stratified groups": StratifiedGroupKFold(3),
    "predefined": PredefinedSplit(np.arange(len(y)) % 3),
    "pairs": list(KFold(3).split(X)),
    "lists": [(train.tolist(), test.tolist()) for train, test in KFold(3).split(X)],
    "masks": [(np.arange(len(y)) % 3 != k, np.arange(len(y)) % 3 == k) for k in range(3)],
}

OTHER_SPLITTERS = {
    "time series": TimeSeriesSplit(4),
    "shuffled": ShuffleSplit(4, random_state=0),
    "repeated": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "predefined in part": PredefinedSplit(np.arange(len(y)) % 4 - 1),
}

NEED_GROUPS = ("groups", "one group out", "stratified groups")


def pairs_of(name):
    """The folds as index pairs, straight from the splitter."""
    if name in ("int", "none"):
        return list(StratifiedKFold(4 if name == "int" else 5).split(X, y))
    if name in ("pairs", "lists"):
        return PARTITIONS["pairs"]
    if name == "masks":
        return [tuple(map(np.flatnonzero, pair)) for pair in PARTITIONS["masks"]]
    groups = GROUPS if name in NEED_GROUPS else None
    return list((PARTITIONS | OTHER_SPLITTERS)[name].split(X, y, groups))


@pytest.mark.parametrize(
    ("name", "weighted"),
    [(name, k % 2 == 0) for k, name in enumerate(PARTITIONS | OTHER_SPLITTERS)]
    + [("none", False), ("repeated", True)],
)
def test_ensemble_with_any_splitter(name, weighted):
    weight = np.random.default_rng(0).random(len(y)) if weighted else np.ones(len(y))
    cv = (PARTITIONS | OTHER_SPLITTERS)[name]
    params = {"groups": GROUPS} if name in NEED_GROUPS else {}
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=cv)
    model.fit(X, y, sample_weight=weight if weighted else None, **params)
    classifiers, proba, rows = [], [], []
    for train, test in pairs_of(name):
        classifiers.append(GaussianNB().fit(X[train], y[train], sample_weight=weight[train]))
        proba.append(classifiers[-1].predict_proba(X[test]))
        rows.extend(test)
    count = np.bincount(rows)[rows]
    row_arguments = {"sample_weight": weight[rows] / count}
    if name in NEED_GROUPS or count.max() > 1:
        row_arguments["groups"] = (GROUPS if name in NEED_GROUPS else np.arange(len(y)))[rows]
    recalibrator = fit_with_units(
        IsotonicRecalibrator(), np.vstack(proba), y[rows], **row_arguments
    )
    expected = [recalibrator.predict_proba(one.predict_proba(X)) for one in classifiers]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(expected, axis=0), atol=1e-10)


@pytest.mark.parametrize("name", PARTITIONS)
def test_out_of_fold_with_any_partition(name):
    cv = PARTITIONS[name]
    params = {"groups": GROUPS} if name in NEED_GROUPS else {}
    expected = np.empty((len(y), 2))
    for train, test in pairs_of(name):
        expected[test] = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
    transformer = PredictProba(GaussianNB(), cv=cv)
    np.testing.assert_array_equal(transformer.fit_transform(X, y, **params), expected)
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=cv, ensemble=False)
    model.fit(X, y, **params)
    maps = fit_with_units(IsotonicRecalibrator(), expected, y, **params).maps_
    np.testing.assert_array_equal(model.recalibrator_.maps_[0], maps[0])


@pytest.mark.parametrize("name", OTHER_SPLITTERS)
def test_other_splitters_have_no_out_of_fold_probabilities(name):
    cv = OTHER_SPLITTERS[name]
    message = "Choose a splitter such as KFold; a RecalibratedClassifier with ensemble=True takes"
    for model in (
        PredictProba(GaussianNB(), cv=cv),
        RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=cv, ensemble=False),
    ):
        fit = getattr(model, "fit_transform", model.fit)
        with pytest.raises(ValueError, match=message):
            fit(X, y)


def test_groups_in_a_pipeline_without_routing():
    pipeline = make_pipeline(PredictProba(GaussianNB(), cv=GroupKFold(3)), IsotonicRecalibrator())
    pipeline.fit(X, y, predictproba__groups=GROUPS)
    model = RecalibratedClassifier(
        GaussianNB(), IsotonicRecalibrator(), cv=GroupKFold(3), ensemble=False
    ).fit(X, y, groups=pd.Series(GROUPS, index=np.arange(len(y)) + 7))
    proba = pipeline[0].fit_transform(X, y, groups=GROUPS)
    expected = fit_with_units(IsotonicRecalibrator(), proba, y, groups=GROUPS)
    new_proba = pipeline[0].transform(X)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(new_proba))
    np.testing.assert_allclose(pipeline.predict_proba(X), model.predict_proba(X), atol=0.03)
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        model.fit(X, y)


def test_groups_in_a_search():
    with config_context(enable_metadata_routing=True):
        model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=GroupKFold(3))
        search = GridSearchCV(
            model, {"estimator__var_smoothing": [1e-9, 1e-3]}, cv=GroupKFold(2), error_score="raise"
        )
        search.fit(X, y, groups=GROUPS)
    assert len(search.best_estimator_.estimators_) == 3


@pytest.mark.parametrize("pair", [([], [0, 1]), ([0, 1], []), (np.zeros(569, dtype=bool), [0, 1])])
def test_empty_folds_are_refused(pair):
    model = RecalibratedClassifier(GaussianNB(), IsotonicRecalibrator(), cv=[pair])
    with pytest.raises(ValueError, match="cv must put samples into every training and test set"):
        model.fit(X, y)


def test_what_a_splitter_refuses_names_cv():
    label = np.resize([0, 0, 0, 0, 1], 5)
    with pytest.raises(ValueError, match=r"found cv=5, which fails: n_splits=5 cannot be .* fewer"):
        RecalibratedClassifier(GaussianNB(), cv=5).fit(np.ones((5, 1)), label)
