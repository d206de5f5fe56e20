"""Recalibration given features."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from problems import first_column, labels_of, random_problem
from scipy.special import expit, logit, softmax
from scipy.stats import binom, combine_pvalues, norm
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from test_estimator_laws import EXPECTED_OF_ALL, EXPECTED_OF_CLASSIFIERS, REFUSALS, causes

from skcalib._data import check_predictions
from skcalib.recalibration import (
    AutoRecalibrator,
    FeatureRecalibrator,
    IdentityRecalibrator,
    PredictProba,
    RecalibratedClassifier,
    ScalingBinningRecalibrator,
    SigmoidRecalibrator,
    SubgroupRecalibrator,
    TemperatureRecalibrator,
    _features,
    _trees,
    export_sql,
)
from skcalib.recalibration._folds import assign_folds


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    """Enough to see that it works, in a tenth of the time."""
    reduce_time(monkeypatch)


def reduce_time(patch, most_rounds=8):
    patch.setattr(_trees, "_MAX_ROUNDS", most_rounds)
    patch.setattr(_features, "_N_TEST_ROUNDS", 5)
    patch.setattr(_features, "_N_SIMULATIONS", 99)


def planted(rng, n, strength=2.0):
    """Predictions, their true log-odds of men above 60 shifted, and the features."""
    proba = rng.random(n)
    X = {"sex": rng.choice(["f", "m"], n), "age": rng.uniform(18, 90, n)}
    truth = expit(logit(proba) + strength * ((X["sex"] == "m") & (X["age"] > 60)))
    return proba, truth, labels_of(truth, rng), X


def rows_of(X, rows):
    return {name: column[rows] for name, column in X.items()}


def fitted(proba, y, X, *, plain=None, random_state=0, **options):
    recalibrator = FeatureRecalibrator(
        plain or IdentityRecalibrator(labels=[0, 1]), random_state=random_state, **options
    )
    return recalibrator.fit(proba, y, given=X)


@pytest.fixture(scope="module")
def example():
    """A problem, and a recalibrator that is fitted to half of it."""
    rng = np.random.default_rng(0)
    proba, truth, y, X = planted(rng, 1200)
    first = np.arange(600)
    with pytest.MonkeyPatch.context() as patch:
        reduce_time(patch, most_rounds=30)
        plain = SigmoidRecalibrator()
        recalibrator = fitted(proba[first], y[first], rows_of(X, first), plain=plain)
    return proba, truth, y, X, recalibrator


def test_errors_of_a_subgroup_are_mended(example):
    proba, truth, _, X, recalibrator = example
    second = np.arange(600, 1200)
    given = rows_of(X, second)
    new = recalibrator.predict_proba(proba[second], given=given)[:, 1]
    plain = recalibrator.recalibrator_.predict_proba(proba[second])[:, 1]
    assert recalibrator.p_value_ <= 0.01
    assert recalibrator.n_rounds_ >= 2
    # beyond the entropy of the truth, less than a third is left of what the plain map loses
    loss = {
        name: -np.mean(truth[second] * np.log(q) + (1 - truth[second]) * np.log(1 - q))
        for name, q in {"truth": truth[second], "plain": plain, "new": new}.items()
    }
    assert loss["new"] - loss["truth"] < (loss["plain"] - loss["truth"]) / 3


def test_three_classes():
    rng = np.random.default_rng(0)
    n = 600
    z, sex = rng.normal(size=(n, 3)), rng.choice([0, 1], n)
    y = labels_of(softmax(z + 2 * sex[:, None] * [1, 0, 0], axis=1), rng)
    proba = softmax(z, axis=1)
    plain = TemperatureRecalibrator(labels=[0, 1, 2])
    new = fitted(proba, y, sex, plain=plain).predict_proba(proba, given=sex)
    np.testing.assert_allclose(new.sum(axis=1), 1)
    gap = [np.abs(np.eye(3)[y[sex == 1]] - q[sex == 1]).sum() for q in (new, proba)]
    assert gap[0] < gap[1]
    assert log_loss(y, new) < log_loss(y, proba) - 0.05


def test_without_a_small_p_value_the_plain_map_is_all():
    rng = np.random.default_rng(1)
    y, proba = random_problem(rng, 200)
    X = rng.normal(size=(200, 2))
    recalibrator = fitted(proba, y, X, plain=SigmoidRecalibrator(labels=[0, 1]), alpha=0.01)
    assert recalibrator.p_value_ > 0.01
    assert recalibrator.n_rounds_ == 0
    expected = SigmoidRecalibrator().fit(proba, y).predict_proba(proba)
    np.testing.assert_allclose(
        recalibrator.predict_proba(proba, given=X), expected, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_samples_get_the_plain_map(n_classes):
    y, proba = random_problem(np.random.default_rng(0), 99, n_classes)
    recalibrator = FeatureRecalibrator(TemperatureRecalibrator(), alpha=1.0).fit(proba, y, given=y)
    assert recalibrator.p_value_ == 1.0
    expected = TemperatureRecalibrator().fit(proba, y).predict_proba(proba)
    found = recalibrator.predict_proba(proba, given=y)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def recorded_looks(monkeypatch):
    """The folds of trees that the test grows, as they are made."""
    looks = []

    class Recorded(_trees.BoostedFold):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            looks.append(self)
            self.all_weights = args[2]
            self.start = self.test_scores

        @property
        def test_scores(self):
            return np.log(self.proba[self.test])

        @property
        def test_design(self):
            return self.design[self.test]

    monkeypatch.setattr(_features, "BoostedFold", Recorded)
    return looks


def look(y, proba, X, n_train, plain=None):
    data, is_train = check_predictions(y, proba, None), np.arange(len(y)) < n_train
    rng = np.random.RandomState(0)
    plain = plain or IdentityRecalibrator()
    return _features._feature_p_value(plain, data, X.astype(np.float32), ~is_train, rng)


def test_p_value_of_a_look_is_that_of_the_normal_limit(monkeypatch):
    """The statistic is a sum of independent terms, whose variances are known."""
    monkeypatch.setattr(_features, "_N_SIMULATIONS", 9999)
    rng, looks = np.random.default_rng(0), recorded_looks(monkeypatch)
    y, proba = random_problem(rng, 500, 3, calibrated=True)
    p_value = look(y, proba, proba.round(1), 250)
    statistic = variance = 0.0
    for correction, label, q in zip(
        looks[0].test_scores - looks[0].start, y[250:], proba[250:], strict=True
    ):
        mean = correction @ q
        statistic += correction[label] - mean
        variance += (correction - mean) ** 2 @ q
    expected = norm.sf(statistic / np.sqrt(variance))
    assert 0.01 < expected < 0.99
    assert p_value == pytest.approx(expected, abs=0.015)


@pytest.mark.filterwarnings("ignore:.*no sample")
def test_labels_of_the_test_are_conditioned_on_the_classes_that_occur(monkeypatch):
    rng, looks = np.random.default_rng(0), recorded_looks(monkeypatch)
    proba, X = rng.dirichlet(np.ones(4), 300), rng.normal(size=(300, 9))
    recalibrator = FeatureRecalibrator(IdentityRecalibrator(), labels=range(4), random_state=0)
    recalibrator.fit(proba, labels_of(proba[:, :3], rng), given=X)
    p_values = []
    for look in looks:
        label, weight = look.label[look.test], look.all_weights[look.test]
        q, correction = np.exp(look.start[:, :3]), (look.test_scores - look.start)[:, :3]
        q /= q.sum(axis=1, keepdims=True)
        mean = (q * correction).sum(axis=1)
        statistic = weight @ (correction[np.arange(len(label)), label] - mean)
        variance = weight**2 @ (q * (correction - mean[:, None]) ** 2).sum(axis=1)
        p_values.append(norm.sf(statistic / np.sqrt(variance)))
    assert recalibrator.p_value_ == pytest.approx(combine_pvalues(p_values).pvalue, abs=0.03)


def test_test_samples_teach_nothing(monkeypatch):
    rng, looks = np.random.default_rng(0), recorded_looks(monkeypatch)
    y, proba = random_problem(rng, 200)
    X, other = rng.random((200, 1)).round(1), y.copy()
    other[150:] = 1 - other[150:]
    for labels in (y, other):
        look(labels, proba, X, 150, SigmoidRecalibrator())
    np.testing.assert_array_equal(looks[0].test_scores, looks[1].test_scores)
    np.testing.assert_array_equal(looks[0].start, looks[1].start)
    assert np.ptp(looks[0].test_scores - looks[0].start) > 0.1


def test_labels_do_not_tell_folds(monkeypatch):
    """Else the p-value would not be exact for a given seed."""
    rng, looks = np.random.default_rng(0), recorded_looks(monkeypatch)
    y, proba = random_problem(rng, 200)
    for labels in (y, 1 - y, rng.permutation(y)):
        fitted(proba, labels, rng.random(200) * 0)
    assert len(looks) == 9
    for first, other in zip(looks[:3] * 2, looks[3:], strict=True):
        np.testing.assert_array_equal(first.test_design, other.test_design)
        np.testing.assert_array_equal(first.start, other.start)


# The trees themselves have a twin in test_trees.
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_result_is_that_of_boosting_fold_by_fold(monkeypatch, n_classes):
    reduce_time(monkeypatch, most_rounds=40)
    rng, n = np.random.default_rng(1), 300
    proba, X, weight = rng.dirichlet(np.ones(n_classes), n), rng.integers(3, size=n), rng.random(n)
    y = labels_of(proba * np.where(np.arange(n_classes) == 0, 1 + 5 * X[:, None], 1), rng)
    order = np.lexsort((y, weight, X, *proba.T))
    proba, X, weight, y = proba[order], X[order], weight[order], y[order]
    plain = TemperatureRecalibrator(labels=np.arange(n_classes))
    model = FeatureRecalibrator(plain, alpha=1.0, random_state=0).fit(proba, y, weight, given=X)

    n_rounds, fold = model.n_rounds_, assign_folds(check_predictions(y, proba, weight), 5)
    assert 0 < n_rounds < 40
    cuts = [np.unique(np.quantile(column, np.arange(1, 256) / 256, method="inverted_cdf"))
            for column in proba.T[n_classes == 2 :]]  # fmt: skip
    ranks = [
        [np.sum(cut < p) for cut, p in zip(cuts, row[n_classes == 2 :], strict=True)]
        for row in proba
    ]
    design = np.column_stack([ranks, X]).astype(np.float32)
    plain_proba = clone(plain).fit(proba, y, weight).predict_proba(proba)
    scores, held_out = np.log(plain_proba), np.zeros((n_rounds + 1, n, n_classes))
    for k in range(5):
        test = fold == k
        cross_fitted = clone(plain).fit(proba[~test], y[~test], weight[~test])
        held_out[:, test] = np.log(cross_fitted.predict_proba(proba[test]))
        for t, (tree, value) in enumerate(model._trees._trees[k * n_rounds : (k + 1) * n_rounds]):
            step = value[tree.apply(design)]
            np.testing.assert_allclose(step.sum(axis=1), 0, atol=1e-6)
            scores += step / 5
            held_out[t + 1 :, test] += step[test]
    np.testing.assert_allclose(
        model.predict_proba(proba, given=X), softmax(scores, axis=1), atol=1e-6
    )
    losses = [-weight @ np.log(softmax(held, axis=1)[np.arange(n), y]) for held in held_out]
    assert np.argmin(losses) == n_rounds


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibrated_predictions_are_rejected_as_often_as_the_level_says(n_classes):
    rng, n_draws, n_rejected = np.random.default_rng(0), 200, 0
    for seed in range(n_draws):
        y, proba = random_problem(rng, 200, n_classes, calibrated=True)
        plain = IdentityRecalibrator(labels=np.arange(n_classes))
        X = np.column_stack([proba, rng.normal(size=200)])
        n_rejected += fitted(proba, y, X, plain=plain, random_state=seed, alpha=0.1).p_value_ <= 0.1
    assert binom.sf(n_rejected - 1, n_draws, 0.1) > 3e-5


def test_order_weights_names_and_containers_do_not_matter():
    rng = np.random.default_rng(0)
    proba, _, y, X = planted(rng, 200)
    X["age"][:20] = np.nan
    frame = pd.DataFrame(X, index=rng.permutation(200))
    frame.loc[frame.index[:30], "sex"] = None
    new = frame.iloc[:50]
    options = {"alpha": 1.0}
    expected = fitted(proba, y, frame, **options).predict_proba(proba[:50], given=new)
    assert np.ptp(expected[:, 1] - proba[:50]) > 0.01

    def assert_same(recalibrator, p=proba[:50], given=new):
        np.testing.assert_allclose(recalibrator.predict_proba(p, given=given), expected, atol=1e-12)

    order = rng.permutation(200)
    assert_same(fitted(proba[order], y[order], frame.iloc[order], **options))
    both = np.column_stack([1 - proba, proba])
    as_words = frame.assign(sex=frame.sex.astype("category"))
    names = FeatureRecalibrator(IdentityRecalibrator(), random_state=0, **options)
    named = names.fit(both, np.array(["no", "yes"])[y], given=as_words)
    assert_same(pickle.loads(pickle.dumps(named)), both[:50], as_words.iloc[:50])
    assert_same(named, both[:50], pl.from_pandas(new.reset_index(drop=True)))
    assert_same(named, both[:50], new.to_numpy())  # unnamed columns count by their order
    more = np.r_[np.arange(200), np.arange(20)]
    weighted = clone(names).set_params(recalibrator=IdentityRecalibrator(labels=[0, 1]))
    weighted.fit(proba[more], y[more], 3.0 * (np.arange(220) < 200), given=frame.iloc[more])
    assert_same(weighted)


def test_new_categories_are_missing_ones(example):
    proba, _, _, _, recalibrator = example
    age = np.full(2, 75.0)
    new, gap = (
        recalibrator.predict_proba(proba[:2], given={"sex": sex, "age": age})
        for sex in (["other", "m"], [None, "m"])
    )
    np.testing.assert_array_equal(new, gap)
    assert np.isfinite(new).all()


@pytest.mark.parametrize(("name", "gap", "present"), [("sex", None, 0), ("age", np.nan, 1)])
def test_columns_that_are_missing_altogether(name, gap, present):
    """Or in all training samples of some fold."""
    rng = np.random.default_rng(0)
    proba, _, y, X = planted(rng, 200)
    empty = X | {name: np.where(np.arange(200) < present, X[name], gap)}
    new = empty | {name: np.full(200, gap)}
    model = fitted(proba, y, empty, alpha=1.0)
    found = model.predict_proba(proba, given=new)
    assert model.n_rounds_ > 0
    assert np.isfinite(found).all()
    others = np.arange(200) >= present
    expected = model.predict_proba(proba, given=empty)
    np.testing.assert_array_equal(found[others], expected[others])


def test_words_where_nothing_counts():
    """In samples of weight 0 the argument is named, and a column without any value takes them."""
    rng = np.random.default_rng(0)
    y, proba = random_problem(rng, 200)
    X = np.array([*proba[:199], "x"], dtype=object)
    weight = (np.arange(200) < 199).astype(float)
    with pytest.raises(ValueError, match=r"given\['x'\] must hold values of the type"):
        FeatureRecalibrator(IdentityRecalibrator()).fit(proba, y, weight, given={"x": X})
    empty = fitted(proba, y, {"x": [None] * 200})
    found = empty.predict_proba(proba[:2], given={"x": ["a", None]})
    np.testing.assert_array_equal(found[0], empty.predict_proba(proba[:1], given={"x": [None]})[0])


def test_ranks_and_indicators():
    numbers = _features.Feature("x", np.arange(1000.0), 1000)
    ranks = numbers.numbers(np.array([-5.0, 0.0, 999.0, 5000.0, np.nan, np.inf]), 6)
    np.testing.assert_array_equal(ranks[:, 0], [0, 0, 255, 255, -64, 255])
    assert np.ptp(np.bincount(numbers.numbers(np.arange(1000.0), 1000)[:, 0].astype(int))) <= 1
    few = _features.Feature("x", [3, 1, 3, 7], 4)
    np.testing.assert_array_equal(few.numbers([1, 2, 3, 7, 9], 5)[:, 0], [0, 1, 1, 2, 3])
    names = [f"c{k}" for k in range(80)] + ["c70", "c71"]
    words = _features.Feature("x", names, 82).numbers(["c70", "c71", "c0", "c79", None], 5)
    expected = np.zeros((5, 63))
    expected[np.arange(3), np.arange(3)] = 1
    np.testing.assert_array_equal(words, expected)
    declared = _features.Feature("x", pd.Series([1, 2, 1], dtype="category"), 3)
    assert (declared.is_category, few.is_category) == (True, False)


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({}, {"x": [1.0]}, r"given\['x'\] must have the same length.*200, given\['x'\]: 1\)"),
        ({}, "sex", "given must hold the features of each sample; found 'sex'"),
        ({}, None, "given must hold the features of each sample; found None"),
        ({}, {}, "given must name at least one column"),
        ({"alpha": 0.0}, np.zeros(200), "'alpha' parameter"),
        ({"recalibrator": "sigmoid"}, np.zeros(200), r"such as SigmoidRecalibrator\(\)"),
    ],
)
def test_bad_input(options, given, message):
    y, proba = random_problem(np.random.default_rng(0), 200)
    with pytest.raises(ValueError, match=message):
        FeatureRecalibrator(**options).fit(proba, y, given=given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sex": ["f", "m"]}, r"given must have the columns .*\['sex', 'age'\]; found \['sex'\]"),
        ({"age": [1, 2], "sex": ["f", "m"]}, r"in the same order.*found \['age', 'sex'\]"),
        ({"sex": ["f", "m"], "years": [1, 2]}, r"found \['sex', 'years'\]"),
        (np.zeros((2, 3)), r"found \['given0', 'given1', 'given2'\]"),
        ({"sex": [0, 1], "age": [1, 2]}, r"given\['sex'\] must hold .*\['str'\]; found \['number'"),
        ({"sex": ["f", "m"], "age": ["1", "2"]}, r"given\['age'\] must hold .*found \['str'\]"),
        ({"sex": ["f", "m"], "age": [1, 2, 3]}, r"the predictions: 2, given\['age'\]: 3"),
        (None, "given must hold the features"),
    ],
)
def test_features_must_be_those_of_fit(example, given, message):
    proba, *_, recalibrator = example
    with pytest.raises(ValueError, match=message):
        recalibrator.predict_proba(proba[:2], given=given)


def test_methods_agree(example):
    proba, _, y, X, recalibrator = example
    expected = recalibrator.predict_proba(proba, given=X)
    np.testing.assert_array_equal(recalibrator.transform(proba, given=X), expected)
    label = recalibrator.predict(proba, given=X)
    np.testing.assert_array_equal(label, expected.argmax(axis=1))
    assert recalibrator.score(proba, y, given=X) == -log_loss(y, expected)
    few = clone(recalibrator).fit_transform(proba[:50], y[:50], given=rows_of(X, slice(50)))
    plain = SigmoidRecalibrator().fit(proba[:50], y[:50]).predict_proba(proba[:50])
    np.testing.assert_allclose(few, plain, atol=1e-12)
    with pytest.raises(ValueError, match="FeatureRecalibrator"):
        export_sql(recalibrator)


def test_fit_changes_no_parameter():
    y, proba = random_problem(np.random.default_rng(0), 40)
    recalibrator = FeatureRecalibrator(SigmoidRecalibrator())
    before = joblib.hash(recalibrator.get_params())
    assert recalibrator.fit(proba, y, given=proba) is recalibrator
    assert joblib.hash(recalibrator.get_params()) == before


def test_pipeline_hands_features_on():
    rng = np.random.default_rng(0)
    X, sex = rng.normal(size=(300, 1)), rng.choice(["f", "m"], 300)
    y = labels_of(expit(X[:, 0] + 2.0 * (sex == "m")), rng)
    recalibrator = FeatureRecalibrator(SigmoidRecalibrator(), random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        recalibrator.set_fit_request(given=True).set_predict_proba_request(given=True)
        pipeline = make_pipeline(PredictProba(LogisticRegression(), cv=3), recalibrator)
        proba = pipeline.fit(X, y, given=sex).predict_proba(X, given=sex)[:, 1]
    assert proba[sex == "m"].mean() == pytest.approx(y[sex == "m"].mean(), abs=0.1)
    assert proba[sex == "m"].mean() - proba[sex == "f"].mean() > 0.1


def test_a_classifier_that_hands_no_features_on_is_refused():
    y, proba = random_problem(np.random.default_rng(0), 40)
    model = RecalibratedClassifier(LogisticRegression(), FeatureRecalibrator())
    with pytest.raises(
        ValueError, match=r"found FeatureRecalibrator, which requires given\. Pass Rec"
    ):
        model.fit(proba[:, None], y)


class OfFirstColumn(FeatureRecalibrator):
    """Finds the features itself, as the checks of scikit-learn pass none."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight, given=first_column(X))

    def predict_proba(self, X, given=None):
        return super().predict_proba(X, given=first_column(X))

    def transform(self, X):
        return self.predict_proba(X)

    def fit_transform(self, X, y, sample_weight=None):
        return self.fit(X, y, sample_weight).transform(X)

    def predict(self, X):
        return super().predict(X, given=None)

    def score(self, X, y, sample_weight=None):
        return np.average(self.predict(X) == y, weights=sample_weight)


@pytest.mark.filterwarnings("ignore")
def test_probability_estimators_fail_declared_checks_only():
    results = check_estimator(
        OfFirstColumn(SigmoidRecalibrator(), random_state=0),
        expected_failed_checks=EXPECTED_OF_ALL | EXPECTED_OF_CLASSIFIERS,
        on_fail=None,
        on_skip=None,
    )
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    refused = [" | ".join(causes(r["exception"])) for r in results if r["status"] == "xfail"]
    assert [text for text in refused if not any(one in text for one in REFUSALS)] == []


@pytest.mark.parametrize(
    "outer", [AutoRecalibrator, FeatureRecalibrator, ScalingBinningRecalibrator]
)
@pytest.mark.parametrize("inner", [SubgroupRecalibrator(), FeatureRecalibrator()], ids=str)
def test_recalibrators_that_need_columns_are_refused_inside_of_others(outer, inner):
    rng = np.random.default_rng(0)
    proba, y = rng.random(40), rng.integers(2, size=40)
    recalibrator = outer([("inner", inner)]) if outer is AutoRecalibrator else outer(inner)
    columns = {"given": rng.random(40)} if outer is FeatureRecalibrator else {}
    with pytest.raises(ValueError, match=f"found {type(inner).__name__}, which needs (by|given)"):
        recalibrator.fit(proba, y, **columns)
