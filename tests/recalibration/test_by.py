"""Subgroups reach the recalibrator of a meta-estimator, row by row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.recalibration import (
    FeatureRecalibrator,
    LocationScaleRecalibrator,
    RecalibratedClassifier,
    RecalibratedRegressor,
    SigmoidRecalibrator,
    SubgroupRecalibrator,
    TemperatureRecalibrator,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 2))
site = rng.choice(["north", "south"], 240)
y = (X[:, 0] + np.where(site == "north", 1.0, -1.0) + rng.logistic(size=240) > 0).astype(int)
outcome = X[:, 0] + rng.normal(0, np.where(site == "north", 3.0, 1.0))
weight = rng.random(240)

CLASSIFIER = LogisticRegression()
SUBGROUPS = SubgroupRecalibrator(SigmoidRecalibrator(), prior_weight=4.0)


def recalibrated(**options):
    return RecalibratedClassifier(CLASSIFIER, SUBGROUPS, cv=KFold(3), **options)


@pytest.fixture(scope="module")
def expected_of_sites():
    return recalibrated().fit(X, y, by=site).predict_proba(X, by=site)


@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_fold_probabilities_meet_their_subgroups(weighted):
    own = weight if weighted else None
    model = recalibrated(ensemble=False).fit(X, y, own, by=site)
    params = {"sample_weight": own} if weighted else {}
    proba = cross_val_predict(CLASSIFIER, X, y, cv=KFold(3), method="predict_proba", params=params)
    expected = clone(SUBGROUPS).fit(proba, y, own, by=site)
    whole = CLASSIFIER.fit(X, y, own).predict_proba(X)
    np.testing.assert_allclose(
        model.predict_proba(X, by=site), expected.predict_proba(whole, by=site), rtol=1e-12
    )
    assert model.recalibrator_.subgroups_ == ["north", "south"]
    np.testing.assert_array_equal(
        model.predict(X, by=site), model.predict_proba(X, by=site).argmax(axis=1)
    )
    hits = model.predict(X, by=site) == y
    assert model.score(X, y, own, by=site) == pytest.approx(np.average(hits, weights=own))


def test_an_ensemble_averages_what_the_recalibrator_says_of_each_subgroup():
    model = recalibrated(ensemble=True).fit(X, y, by=site)
    parts = [
        model.recalibrator_.predict_proba(one.predict_proba(X), by=site)
        for one in model.estimators_
    ]
    np.testing.assert_allclose(model.predict_proba(X, by=site), np.mean(parts, axis=0), rtol=1e-12)
    with_overlaps = RecalibratedClassifier(
        CLASSIFIER, SUBGROUPS, cv=ShuffleSplit(3, test_size=0.4, random_state=0)
    ).fit(X, y, by=site)
    rows = np.concatenate([test for _, test in with_overlaps.cv.split(X)])
    proba = np.concatenate(
        [
            clone(CLASSIFIER).fit(X[train], y[train]).predict_proba(X[test])
            for train, test in with_overlaps.cv.split(X)
        ]
    )
    share = 1 / np.bincount(rows)[rows]
    expected = clone(SUBGROUPS).fit(proba, y[rows], share, by=site[rows], groups=rows)
    np.testing.assert_allclose(
        with_overlaps.recalibrator_.predict_proba(proba, by=site[rows]),
        expected.predict_proba(proba, by=site[rows]),
        rtol=1e-12,
    )


def test_a_nested_ensemble_predicts_each_fold_with_its_subgroups():
    model = recalibrated(ensemble="nested").fit(X, y, by=site)
    folds = [test for _, test in KFold(3).split(X)]
    proba = np.empty((240, 2))
    for i, test in enumerate(folds):
        parts = []
        for j in {0, 1, 2} - {i}:
            train = folds[3 - i - j]
            one = clone(CLASSIFIER).fit(X[train], y[train]).predict_proba(X[test])
            parts.append(model.recalibrator_.predict_proba(one, by=site[test]))
        proba[test] = np.mean(parts, axis=0)
    expected = TemperatureRecalibrator().fit(proba, y)
    assert model.temperature_ == pytest.approx(expected.temperature_, rel=1e-9)


@pytest.mark.parametrize(
    "container",
    [
        list,
        lambda column: pd.Series(column, index=np.arange(240)[::-1], name="site"),
        lambda column: pd.DataFrame({"site": pd.Categorical(column, ["south", "north"])}),
        lambda column: pl.DataFrame({"site": column}),
        lambda column: {"site": column},
        lambda column: [column, list(column)],
        lambda column: np.column_stack([column, column]),
    ],
)
def test_containers(container, expected_of_sites):
    model = recalibrated().fit(X, y, by=container(site))
    np.testing.assert_allclose(
        model.predict_proba(X, by=container(site)), expected_of_sites, rtol=1e-10
    )


def test_a_frozen_classifier():
    frozen = FrozenEstimator(LogisticRegression().fit(X[:100], y[:100]))
    model = RecalibratedClassifier(frozen, SUBGROUPS).fit(X[100:], y[100:], by=site[100:])
    direct = clone(SUBGROUPS).fit(frozen.predict_proba(X[100:]), y[100:], by=site[100:])
    expected = direct.predict_proba(frozen.predict_proba(X[:100]), by=site[:100])
    np.testing.assert_array_equal(model.predict_proba(X[:100], by=site[:100]), expected)


def test_forecasts():
    recalibrator = SubgroupRecalibrator(LocationScaleRecalibrator())
    model = RecalibratedRegressor(BayesianRidge(), recalibrator, cv=KFold(3))
    model.fit(X, outcome, weight, by=site)
    forecast = model.predict_forecast(X, by=site)
    low, high = forecast.interval(0.8)
    width = high - low
    assert width[site == "north"].mean() > 2 * width[site == "south"].mean()
    assert model.recalibrator_.subgroups_ == ["north", "south"]
    mean, std = np.empty((2, 240))
    for train, test in KFold(3).split(X):
        one = BayesianRidge().fit(X[train], outcome[train], weight[train])
        mean[test], std[test] = one.predict(X[test], return_std=True)
    expected = clone(recalibrator).fit((mean, std), outcome, weight, by=site)
    whole = BayesianRidge().fit(X, outcome, weight).predict(X, return_std=True)
    np.testing.assert_allclose(
        forecast.quantiles([0.1, 0.7]),
        expected.transform(whole, by=site).quantiles([0.1, 0.7]),
        rtol=1e-10,
    )
    for call in (model.predict, model.predict_interval):
        with pytest.raises(ValueError, match=r"predict_forecast\(X, by=...\), then .interval"):
            call(X)


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="older pipelines do not hand metadata on to the score of their last step",
)
def test_routing_through_a_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        last = recalibrated().set_fit_request(by=True).set_predict_proba_request(by=True)
        last.set_score_request(by=True)
        model = make_pipeline(StandardScaler(), last).fit(X, y, by=site)
        proba = model.predict_proba(X, by=site)
        assert 0.5 < model.score(X, y, by=site) <= 1
    scaled = StandardScaler().fit_transform(X)
    expected = recalibrated().fit(scaled, y, by=site).predict_proba(scaled, by=site)
    np.testing.assert_allclose(proba, expected, rtol=1e-12)


def test_bad_input():
    with pytest.raises(ValueError, match=r"by must be None for .*; found subgroups for Sigmoid"):
        RecalibratedClassifier(CLASSIFIER, SigmoidRecalibrator()).fit(X, y, by=site)
    with pytest.raises(
        ValueError, match=r"found subgroups for AutoRecalibrator\. Choose a Subgroup"
    ):
        RecalibratedClassifier(CLASSIFIER).fit(X, y, by=site)
    with pytest.raises(ValueError, match=r"for SubgroupRecalibrator; found None. .*fit\(X, y, by="):
        recalibrated().fit(X, y)
    with pytest.raises(ValueError, match="the predictions: 240"):
        recalibrated().fit(X, y, by=site[:100])
    model = recalibrated().fit(X, y, by=site)
    for call in (model.predict_proba, model.predict):
        with pytest.raises(ValueError, match=r"found None. .*predict_proba\(X, by="):
            call(X)
    with pytest.raises(ValueError, match="SubgroupRecalibrator; found None"):
        RecalibratedRegressor(BayesianRidge(), SubgroupRecalibrator()).fit(X, outcome)
    plain = RecalibratedRegressor(BayesianRidge(), LocationScaleRecalibrator()).fit(X, outcome)
    with pytest.raises(ValueError, match=r"by must be None .*LocationScaleRecalibrator"):
        plain.predict_forecast(X, by=site)


# Subgroups and features from the columns of X


def make_frame(n=600):
    rng = np.random.default_rng(0)
    site = rng.choice(["a", "b"], n)
    x = rng.normal(size=n)
    odds = np.exp(np.where(site == "a", 3, 0.5) * x)
    label = rng.random(n) < odds / (1 + odds)
    return pd.DataFrame({"x": x, "site": site}, index=rng.permutation(n) + 7), label


def classifier_of_x():
    return make_pipeline(ColumnTransformer([("x", "passthrough", ["x"])]), LogisticRegression())


def test_subgroups_from_a_column_equal_subgroups_passed():
    X, label = make_frame()
    plain = RecalibratedClassifier(classifier_of_x(), SubgroupRecalibrator(), cv=3)
    plain.fit(X, label, by=X["site"])
    expected = plain.predict_proba(X, by=X["site"])
    for by in ("site", ["site"], lambda frame: frame["site"]):
        model = RecalibratedClassifier(classifier_of_x(), SubgroupRecalibrator(), cv=3, by=by)
        np.testing.assert_array_equal(model.fit(X, label).predict_proba(X), expected)
    scores = cross_validate(model, X, label, cv=3, scoring="neg_log_loss", error_score="raise")
    assert (scores["test_score"] > -0.6).all()
    nested = clone(model).set_params(ensemble="nested").fit(X, label)
    assert nested.predict_proba(X).shape == (600, 2)


def test_features_from_columns_of_x():
    X, label = make_frame()
    recalibrator = FeatureRecalibrator(random_state=0)
    model = RecalibratedClassifier(
        classifier_of_x(), recalibrator, cv=3, ensemble=False, given=["site"]
    ).fit(X, label)
    proba = model.estimators_[0].predict_proba(X)
    expected = model.recalibrator_.predict_proba(proba, given=X[["site"]])
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    array = X[["x"]].to_numpy()
    whole = RecalibratedClassifier(LogisticRegression(), recalibrator, cv=3, given="X")
    assert whole.fit(array, label).predict_proba(array).shape == (600, 2)
    assert "site" in model.recalibrator_.given_columns_


@pytest.mark.parametrize(
    ("options", "fit_options", "message"),
    [
        ({"by": "site"}, {"by": ["a"] * 600}, "by must be passed once"),
        ({"by": "ward"}, {}, "by must name columns of X, .* found 'ward'"),
        ({"given": "X"}, {"by": ["a"] * 600}, "given must be None for a recalibrator whose fit"),
        ({"by": 3}, {}, "'by' parameter"),
    ],
)
def test_bad_columns_of_x(options, fit_options, message):
    X, label = make_frame()
    model = RecalibratedClassifier(classifier_of_x(), SubgroupRecalibrator(), **options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, label, **fit_options)
