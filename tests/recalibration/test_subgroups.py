"""Recalibration of each subgroup."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from problems import first_column, random_problem, two_columns
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from test_estimator_laws import EXPECTED_OF_ALL, EXPECTED_OF_CLASSIFIERS, REFUSALS, causes

from skcalib.recalibration import (
    IdentityRecalibrator,
    PredictProba,
    SigmoidRecalibrator,
    SubgroupRecalibrator,
    VectorScalingRecalibrator,
)

SIZES = np.array([1500, 400, 100, 40, 40, 15, 15, 10])


def subgroup_problem(rng, slope, intercept, sizes=SIZES):
    """Predictions, probabilities, labels and subgroups; each subgroup has a map of its own."""
    code = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    proba = expit(rng.normal(0, 1.5, size=len(code)))
    truth = expit(slope[code] * logit(proba) + intercept[code])
    return proba, truth, (rng.random(len(code)) < truth).astype(int), code


def regret(proba, truth, weight):
    """Expected log loss beyond that of the truth."""
    proba = np.clip(proba, 1e-12, 1 - 1e-12)
    loss = truth * np.log(truth / proba) + (1 - truth) * np.log((1 - truth) / (1 - proba))
    return np.average(loss, weights=weight)


# 0.3 s: the regret of maps is that of a population of 2120 samples
def test_small_subgroups_borrow():
    rng = np.random.default_rng(0)
    maps = 0.8 + 0.15 * rng.normal(size=8), 0.3 + 0.35 * rng.normal(size=8)
    proba, _, y, by = subgroup_problem(rng, *maps)
    new, truth, _, new_by = subgroup_problem(rng, *maps, sizes=np.full(8, 300))
    drawn = SubgroupRecalibrator(SigmoidRecalibrator()).fit(proba, y, by=by)
    found = {
        "common": drawn.recalibrator_.predict_proba(new)[:, 1],
        "drawn": drawn.predict_proba(new, by=new_by)[:, 1],
        "separate": np.empty(len(new)),
    }
    for k in range(8):
        alone = SigmoidRecalibrator(labels=[0, 1]).fit(proba[by == k], y[by == k])
        found["separate"][new_by == k] = alone.predict_proba(new[new_by == k])[:, 1]
    regrets = {name: regret(one, truth, SIZES[new_by]) for name, one in found.items()}
    assert regrets["drawn"] < 0.9 * min(regrets["common"], regrets["separate"])


def test_auto_leaves_calibrated_subgroups_at_the_common_map():
    rng = np.random.default_rng(0)
    sizes = np.array([400, 100, 40, 15])
    proba, _, y, by = subgroup_problem(rng, np.full(4, 0.7), np.full(4, 0.3), sizes)
    recalibrator = SubgroupRecalibrator(SigmoidRecalibrator()).fit(proba, y, by=by)
    assert recalibrator.prior_weight_ == np.inf
    assert recalibrator.subgroup_recalibrators_ == {}
    common = SigmoidRecalibrator().fit(proba, y).predict_proba(proba)
    np.testing.assert_array_equal(recalibrator.predict_proba(proba, by=by), common)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_maps_are_those_of_the_samples_of_each_subgroup(n_classes, weighted):
    rng = np.random.default_rng(0)
    y, proba = random_problem(rng, 200, n_classes)
    by, weight = rng.choice(["a", "b"], size=200), rng.random(200) if weighted else None
    recalibrator = SubgroupRecalibrator(IdentityRecalibrator(), prior_weight=20.0)
    recalibrator.fit(proba, y, weight, by=by)
    family = SigmoidRecalibrator if n_classes == 2 else VectorScalingRecalibrator
    found = recalibrator.predict_proba(proba, by=by)
    for one in "ab":
        own = by == one
        alone = family(prior_weight=20.0)
        alone.fit(proba[own], y[own], weight[own] if weighted else None)
        np.testing.assert_allclose(found[own], alone.predict_proba(proba[own]), atol=1e-9)
    # who is not known gets the common map
    matrix = two_columns(proba) if n_classes == 2 else proba
    unknown = recalibrator.predict_proba(proba, by=["c", None] * 100)
    np.testing.assert_allclose(unknown, matrix, atol=1e-15)


def test_prior_weights_go_from_separate_to_common():
    rng = np.random.default_rng(0)
    proba, _, y, by = subgroup_problem(rng, np.ones(2), np.array([0.0, 1.0]), np.array([500, 30]))
    maps = {}
    for prior_weight in (0.0, 10.0, 1000.0, 1e9, np.inf):
        one = SubgroupRecalibrator(SigmoidRecalibrator(), prior_weight=prior_weight)
        maps[prior_weight] = one.fit(proba, y, by=by).predict_proba([0.4], by=[1])[0, 1]
    assert list(maps.values()) == sorted(maps.values(), reverse=True)
    assert maps[1e9] == pytest.approx(maps[np.inf], abs=1e-6)
    common = SigmoidRecalibrator().fit(proba, y).predict_proba(proba)
    own = by == 1
    alone = SigmoidRecalibrator(prior_weight=0).fit(common[own], y[own])
    moved = SigmoidRecalibrator().fit(proba, y).predict_proba([0.4])
    assert maps[0.0] == pytest.approx(alone.predict_proba(moved)[0, 1], rel=1e-9)


def test_subgroups_of_one_class_or_sample():
    rng = np.random.default_rng(0)
    y, proba = random_problem(rng, 30, 3)
    by = np.array(["a"] * 22 + ["b"] * 7 + ["c"])
    y[by == "b"] = 1
    recalibrator = SubgroupRecalibrator().fit(proba, y, by=by)
    found = recalibrator.predict_proba(proba, by=by)
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


def test_order_containers_and_weights_of_0_do_not_matter():
    rng = np.random.default_rng(0)
    proba, _, y, by = subgroup_problem(rng, np.ones(2), np.array([0.0, 1.0]), np.array([150, 60]))
    names = np.array(["young", "old"])[by]
    recalibrator = SubgroupRecalibrator(SigmoidRecalibrator())
    expected = recalibrator.fit(proba, y, by=names).predict_proba(proba, by=names)
    order = rng.permutation(210)
    other = clone(recalibrator).fit(proba[order], y[order], by=pl.Series(names[order]))
    assert other.prior_weight_ == recalibrator.prior_weight_
    found = other.predict_proba(proba, by=pd.Series(names, index=order))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    with_none = np.append(names, "none")
    other.fit(np.append(proba, 0.5), np.append(y, 0), np.append(np.ones(210), 0), by=with_none)
    assert other.subgroups_ == ["old", "young"]
    np.testing.assert_allclose(other.predict_proba(proba, by=names), expected, atol=1e-9)


def test_methods_agree():
    rng = np.random.default_rng(0)
    proba, _, y, by = subgroup_problem(rng, np.ones(2), np.array([0.0, 1.0]), np.array([150, 60]))
    recalibrator = SubgroupRecalibrator(SigmoidRecalibrator(), prior_weight=8.0)
    for method in (recalibrator.predict_proba, recalibrator.transform, recalibrator.predict):
        with pytest.raises(NotFittedError):
            method(proba, by=by)
    found = recalibrator.fit_transform(proba, y, by=by)
    np.testing.assert_array_equal(recalibrator.transform(proba, by=by), found)
    predicted = recalibrator.predict(proba, by=by)
    np.testing.assert_array_equal(predicted, found.argmax(axis=1))
    assert recalibrator.score(proba, y, by=by) == -log_loss(y, found)
    frame = recalibrator.set_output(transform="pandas").transform(proba, by=by)
    assert frame.columns.tolist() == ["proba_0", "proba_1"]
    alone = [recalibrator.predict_proba(proba[k : k + 1], by=by[k : k + 1])[0] for k in range(9)]
    np.testing.assert_array_equal(alone, found[:9])


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="older pipelines do not hand metadata on to the score of their last step",
)
def test_routing_through_a_pipeline_and_a_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    by = rng.choice(["a", "b"], size=300)
    y = rng.random(300) < expit(X[:, 0] + 2.0 * (by == "a"))
    recalibrator = SubgroupRecalibrator(SigmoidRecalibrator(), prior_weight=8.0)
    with sklearn.config_context(enable_metadata_routing=True):
        recalibrator.set_fit_request(by=True).set_predict_proba_request(by=True)
        recalibrator.set_score_request(by=True)
        pipeline = make_pipeline(PredictProba(LogisticRegression(), cv=3), recalibrator)
        proba = pipeline.fit(X, y, by=by).predict_proba(X, by=by)[:, 1]
        assert proba[by == "a"].mean() == pytest.approx(y[by == "a"].mean(), abs=0.05)
        assert proba[by == "b"].mean() == pytest.approx(y[by == "b"].mean(), abs=0.05)
        grid = {"subgrouprecalibrator__prior_weight": [0.0, np.inf]}
        search = GridSearchCV(pipeline, grid, cv=2).fit(X, y, by=by)
        assert search.best_params_ == {"subgrouprecalibrator__prior_weight": 0.0}


class OfFirstColumn(SubgroupRecalibrator):
    """Finds the subgroups itself, as the checks of scikit-learn pass none."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight, by=first_column(X))

    def predict_proba(self, X, by=None):
        return super().predict_proba(X, by=first_column(X))

    def transform(self, X):
        return self.predict_proba(X)

    def fit_transform(self, X, y, sample_weight=None):
        return self.fit(X, y, sample_weight).transform(X)

    def predict(self, X):
        return super().predict(X, by=None)

    def score(self, X, y, sample_weight=None):
        return np.average(self.predict(X) == y, weights=sample_weight)


@pytest.mark.filterwarnings("ignore")
def test_probability_estimators_fail_declared_checks_only():
    expected = EXPECTED_OF_ALL | EXPECTED_OF_CLASSIFIERS
    results = check_estimator(
        OfFirstColumn(SigmoidRecalibrator()),
        expected_failed_checks=expected,
        on_fail=None,
        on_skip=None,
    )
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    refused = [" | ".join(causes(r["exception"])) for r in results if r["status"] == "xfail"]
    assert [text for text in refused if not any(one in text for one in REFUSALS)] == []


def test_fit_changes_no_parameter():
    rng = np.random.default_rng(0)
    y, proba = random_problem(rng, 40, 2)
    recalibrator = SubgroupRecalibrator(SigmoidRecalibrator())
    before = joblib.hash(recalibrator.get_params())
    assert recalibrator.fit(proba, y, by=y) is recalibrator
    assert joblib.hash(recalibrator.get_params()) == before


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, {"by": ["a"]}, r"\(the predictions: 20, by: 1\)"),
        ({}, {"by": "sex"}, "by must hold the subgroup"),
        ({"prior_weight": -1.0}, {}, "'prior_weight' parameter"),
        ({"recalibrator": "isotonic"}, {}, r"such as IsotonicRecalibrator\(\)"),
    ],
)
def test_bad_input(options, arguments, message):
    y, proba = random_problem(np.random.default_rng(0), 20, 2)
    with pytest.raises(ValueError, match=message):
        SubgroupRecalibrator(**options).fit(proba, y, **({"by": ["a", "b"] * 10} | arguments))


@pytest.mark.parametrize("by", [[1, 2], [("a", 1), ("b", 1)]])
def test_subgroups_of_another_kind_are_refused_after_fit(by):
    y, proba = random_problem(np.random.default_rng(0), 20, 2)
    recalibrator = SubgroupRecalibrator(IdentityRecalibrator(), prior_weight=1)
    recalibrator.fit(proba, y, by=["a", "b"] * 10)
    with pytest.raises(ValueError, match="by must have the columns that it had at fit"):
        recalibrator.predict_proba(proba[:2], by=by)
    assert recalibrator.predict_proba(proba[:2], by=[None, None]).shape == (2, 2)


def test_maps_that_no_fold_needs_are_not_fitted(monkeypatch):
    """Each of 30 subgroups has one sample: no fold holds any of those that it was fitted to."""
    n_fits, fit = [], VectorScalingRecalibrator.fit
    monkeypatch.setattr(
        VectorScalingRecalibrator, "fit", lambda *one, **more: n_fits.append(1) or fit(*one, **more)
    )
    y, proba = random_problem(np.random.default_rng(0), 30, 3)
    fitted = SubgroupRecalibrator(IdentityRecalibrator()).fit(
        proba, y, by=[f"g{k}" for k in range(30)]
    )
    assert not n_fits
    assert fitted.prior_weight_ == np.inf


def test_subgroups_of_another_column_are_refused_after_fit():
    y, proba = random_problem(np.random.default_rng(0), 20, 2)
    recalibrator = SubgroupRecalibrator(IdentityRecalibrator(), prior_weight=1)
    recalibrator.fit(proba, y, by={"sex": ["F", 1] * 10})
    with pytest.raises(ValueError, match=r"at fit.*\['sex'\].*found \['stage'\]"):
        recalibrator.predict_proba(proba[:2], by={"stage": ["F", "I"]})
    with pytest.raises(ValueError, match=r"both True and 1.*found \[1, 'F', True, 'F'\]"):
        recalibrator.predict_proba(proba[:2], by={"sex": ["F", True]})
    with pytest.raises(ValueError, match="both True and 1"):
        recalibrator.fit(proba, y, by={"sex": ["F", True, 1, "F"] * 5})


def test_columns_in_another_order_are_refused_after_fit():
    y, proba = random_problem(np.random.default_rng(0), 20, 2)
    by = {"sex": ["f", "m"] * 10, "site": ["x"] * 10 + ["y"] * 10}
    recalibrator = SubgroupRecalibrator(IdentityRecalibrator(), prior_weight=1).fit(proba, y, by=by)
    assert recalibrator.subgroup_columns_ == ["sex", "site"]
    with pytest.raises(
        ValueError, match=r"in the same order .*\['sex', 'site'\].*\['site', 'sex'\]"
    ):
        recalibrator.predict_proba(proba, by=dict(reversed(by.items())))
    unnamed = np.column_stack(list(by.values()))
    expected = recalibrator.predict_proba(proba, by=by)
    np.testing.assert_array_equal(recalibrator.predict_proba(proba, by=unnamed), expected)
