"""Prior shift: Bayes' theorem by hand, and the prevalence of largest likelihood."""

import numpy as np
import pandas as pd
import pytest
from problems import random_problem, two_columns
from scipy.optimize import brentq, minimize
from scipy.special import logit
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.hypothesis_tests import CalibrationTest, CoxTest
from skcalib.recalibration import (
    InterceptRecalibrator,
    PredictProba,
    PriorShiftRecalibrator,
    RecalibratedClassifier,
    _prior_shift,
)

THREE = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])


def fitted(n_classes, **parameters):
    """With a given source prevalence, the labels at fit only name the classes."""
    proba = np.full((n_classes, n_classes), 1 / n_classes)
    return PriorShiftRecalibrator(**parameters).fit(proba, np.arange(n_classes))


def draw(proba, generator):
    return np.argmax(np.cumsum(proba, axis=1) > generator.random((len(proba), 1)), axis=1)


def test_two_classes_by_hand():
    # odds of 1 : 1 and 9 : 1 in a study of cases and controls; where one in ten is ill, a ninth
    moved = fitted(2, prevalence=0.1).predict_proba([0.5, 0.9])
    np.testing.assert_allclose(moved, [[0.9, 0.1], [0.5, 0.5]], atol=1e-15)


def test_three_classes_by_hand():
    moved = fitted(3, prevalence=[1 / 6, 2 / 6, 3 / 6]).predict_proba(THREE)
    expected = [[5 / 17, 6 / 17, 6 / 17], [1 / 27, 2 / 27, 24 / 27], [0, 0.4, 0.6], [1, 0, 0]]
    np.testing.assert_allclose(moved, expected, atol=1e-15)


def test_log_odds_move_by_the_difference_of_those_of_the_prevalences():
    proba = np.random.default_rng(0).random(50)
    recalibrator = fitted(2, prevalence=0.03, source_prevalence=0.4)
    shift = logit(recalibrator.predict_proba(proba)[:, 1]) - logit(proba)
    np.testing.assert_allclose(shift, logit(0.03) - logit(0.4), rtol=1e-12)
    # the map of an intercept of this size
    intercept = InterceptRecalibrator().fit(proba, np.arange(50) % 2)
    intercept.intercept_ = np.array([logit(0.03) - logit(0.4)])
    same = intercept.predict_proba(proba)
    np.testing.assert_allclose(recalibrator.predict_proba(proba), same, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_map_is_bayes_theorem(n_classes):
    rng = np.random.default_rng(n_classes)
    proba = rng.dirichlet(np.full(n_classes, 0.3), size=30)
    old, new = rng.dirichlet(np.ones(n_classes), size=2)
    recalibrator = fitted(n_classes, prevalence=new, source_prevalence=old)
    moved = recalibrator.predict_proba(proba)
    for row, result in zip(proba, moved, strict=True):
        odds = [row[k] * new[k] / old[k] for k in range(n_classes)]
        np.testing.assert_allclose(result, [x / sum(odds) for x in odds], rtol=1e-12, atol=1e-15)
    # a way back, alone or in any order
    back = fitted(n_classes, prevalence=old, source_prevalence=new)
    np.testing.assert_allclose(back.predict_proba(moved), proba, atol=1e-12)
    alone = np.vstack([recalibrator.predict_proba(row[None]) for row in proba])
    np.testing.assert_array_equal(alone, moved)


def test_the_prevalence_in_all_forms():
    names = np.array(["a", "b", "c"])
    expected = fitted(3, prevalence=[0.2, 0.5, 0.3]).predict_proba(THREE)
    for prevalence in (
        {"c": 0.3, "a": 0.2, "b": 0.5},
        pd.Series([0.2, 0.5, 0.3], index=[7, 8, 9]),
        np.array([0.2, 0.5, 0.3], dtype=np.float32),
    ):
        recalibrator = PriorShiftRecalibrator(prevalence).fit(np.full((3, 3), 1 / 3), names)
        np.testing.assert_allclose(recalibrator.predict_proba(THREE), expected, atol=1e-7)
    expected = fitted(2, prevalence=[0.7, 0.3]).predict_proba([0.6])
    for prevalence in (0.3, {0: 0.7, 1: 0.3}):
        np.testing.assert_array_equal(
            fitted(2, prevalence=prevalence).predict_proba([[0.4, 0.6]]), expected
        )


def test_the_old_prevalence_is_that_of_the_labels():
    proba, y, weight = [0.2, 0.6, 0.4, 0.5], [0, 1, 0, 1], [1, 1, 3, 0]
    recalibrator = PriorShiftRecalibrator(0.5).fit(proba, y, sample_weight=weight)
    np.testing.assert_allclose(recalibrator.source_prevalence_, [0.8, 0.2])
    np.testing.assert_allclose(recalibrator.predict_proba([0.2])[0], [0.5, 0.5])
    given = PriorShiftRecalibrator(0.5, source_prevalence=0.4).fit(proba, y, sample_weight=weight)
    np.testing.assert_allclose(given.predict_proba([0.4])[0], [0.5, 0.5])


def test_without_a_prevalence_the_predictions_stay():
    label, proba = random_problem(np.random.default_rng(0), 40, 3)
    recalibrator = PriorShiftRecalibrator(labels=[0, 1, 2, 3])
    matrix = np.column_stack([proba, np.zeros(40)])
    np.testing.assert_array_equal(recalibrator.fit(matrix, label).transform(matrix), matrix)


def test_a_class_that_the_new_population_lacks():
    recalibrator = fitted(3, prevalence=[0.0, 0.25, 0.75])
    moved = recalibrator.predict_proba(THREE)
    np.testing.assert_allclose(moved[0], [0, 0.25, 0.5] / np.float64(0.75), atol=1e-15)
    np.testing.assert_array_equal(moved[3], [0, 0.25, 0.75])  # was certain of it


def test_a_class_that_the_old_population_lacks_is_refused():
    for recalibrator in (PriorShiftRecalibrator(0.3, labels=["no", "yes"]),):
        with pytest.raises(
            ValueError, match=r"must be at least 1e-100 for every class; found 0 .*'yes'"
        ):
            recalibrator.fit([0.1, 0.2], ["no", "no"])
    recalibrator = PriorShiftRecalibrator(labels=["no", "yes"]).fit([0.1, 0.2], ["no", "no"])
    with pytest.raises(ValueError, match="fit on labels of all classes"):
        recalibrator.adapt([0.1, 0.2])


def test_estimates_by_hand():
    # certain predictions: the shares of the classes, mixed with pseudo-counts of 0.5 and 0.5
    certain = [1.0, 1.0, 0.0, 1.0]
    for pseudo_count, expected in ((0, 0.75), (1, 3.5 / 5), (4, 5 / 8)):
        recalibrator = fitted(2, pseudo_count=pseudo_count).adapt(certain)
        assert recalibrator.prevalence_[1] == pytest.approx(expected, abs=1e-14)
    weighted = fitted(2, pseudo_count=0).adapt(certain, sample_weight=[1, 0, 3, 1])
    assert weighted.prevalence_[1] == pytest.approx(0.4, abs=1e-14)
    # π' = (2π'/(2π' + (1 − π')/2) + (π'/2)/(π'/2 + 2(1 − π')))/2 has the root 1/2
    assert fitted(2, pseudo_count=0).adapt([0.8, 0.2]).prevalence_[1] == pytest.approx(0.5)


def test_one_row_alone():
    for n_classes in (2, 3):
        row = np.eye(n_classes)[:1] * 0.4 + 0.6 / n_classes
        recalibrator = fitted(n_classes, pseudo_count=0).adapt(row)
        np.testing.assert_allclose(recalibrator.prevalence_, np.eye(n_classes)[0], atol=1e-14)
        kept = fitted(n_classes).adapt(row).prevalence_
        assert kept.min() > 0.5 / n_classes / 2


def log_likelihood(share, proba, old, weight, pseudo_count):
    gamma = pseudo_count * np.sum(weight**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        prior = gamma * np.sum(old * np.log(share)) if gamma else 0.0
    return weight @ np.log(proba @ (share / old)) + prior


def shifted_problem(n_classes, n, seed, weighted=True):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    old = rng.dirichlet(np.full(n_classes, 3.0))
    weight = rng.random(n) if weighted else np.ones(n)
    return proba, old, weight / weight.sum()


# SciPy before 1.14 warns of its own steps beyond the bounds
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
@pytest.mark.parametrize("pseudo_count", [0.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_estimate_is_the_maximum_that_an_optimiser_finds(n_classes, pseudo_count):
    for seed in range(3):
        proba, old, weight = shifted_problem(n_classes, 40, seed)
        recalibrator = fitted(n_classes, source_prevalence=old, pseudo_count=pseudo_count)
        share = recalibrator.adapt(proba, sample_weight=5 * weight).prevalence_
        data = proba, old, weight, pseudo_count
        oracle = minimize(
            lambda x, data=data: -log_likelihood(x, *data),
            old,
            bounds=[(1e-12, 1)] * n_classes,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        assert log_likelihood(share, *data) >= -oracle.fun - 1e-14
        np.testing.assert_allclose(share, oracle.x, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_estimate_is_where_em_ends(n_classes):
    proba, old, weight = shifted_problem(n_classes, 100, 0, weighted=False)
    share = old
    for _ in range(5000):  # Saerens et al. (2002), equations 2.6
        moved = proba * share / old
        moved /= moved.sum(axis=1, keepdims=True)
        share = weight @ moved
    recalibrator = fitted(n_classes, source_prevalence=old, pseudo_count=0).adapt(proba)
    np.testing.assert_allclose(recalibrator.prevalence_, share, atol=1e-12)


def test_predictions_that_tell_little_give_all_digits_too():
    for seed in range(20):
        proba = 0.5 + np.random.default_rng(seed).uniform(-0.02, 0.021, size=200)

        def slope(share, proba=proba):
            return np.mean((2 * proba - 1) / (share * proba + (1 - share) * (1 - proba)))

        ends = slope(0.0), slope(1.0)
        share = fitted(2, pseudo_count=0).adapt(proba).prevalence_[1]
        root = brentq(slope, 0, 1, xtol=1e-15) if ends[0] > 0 > ends[1] else float(ends[1] > 0)
        assert share == pytest.approx(root, abs=1e-11)


HARD_CASES = {
    "hardly any information": (1e-3, 30),
    "almost certain": (0.02, 200),
    "few rows": (0.5, 3),
    "many rows": (1.0, 20_000),
}


@pytest.mark.parametrize("n_classes", [2, 3, 8])
@pytest.mark.parametrize("case", HARD_CASES)
def test_the_mean_of_the_moved_predictions_is_the_estimate(case, n_classes):
    concentration, n = HARD_CASES[case]
    rng = np.random.default_rng(n_classes)
    proba = rng.dirichlet(np.full(n_classes, concentration), size=n)
    if case == "hardly any information":
        proba = 1 / n_classes + concentration * (proba - 1 / n_classes)
    old = proba.mean(axis=0) * rng.uniform(0.9, 1.1, n_classes)
    old /= old.sum()
    recalibrator = fitted(n_classes, source_prevalence=old, pseudo_count=0).adapt(proba)
    share = recalibrator.prevalence_
    assert share.sum() == pytest.approx(1, abs=1e-14)
    moved = recalibrator.predict_proba(proba)
    np.testing.assert_allclose(moved.mean(axis=0), share, atol=1e-12)
    # and the maximum: no class could have more
    slope = np.mean((proba / old) / (proba @ (share / old))[:, None], axis=0)
    assert slope.max() <= 1 + 1e-12


def test_what_the_data_do_not_determine_stays():
    old = np.array([0.5, 0.3, 0.2])
    recalibrator = fitted(3, source_prevalence=old, pseudo_count=0)
    np.testing.assert_array_equal(recalibrator.adapt(np.tile(old, (4, 1))).prevalence_, old)
    # the ratio of the last two does not matter to any row
    proba = np.array([[0.9, 0.06, 0.04], [0.1, 0.54, 0.36], [0.9, 0.06, 0.04]])
    share = recalibrator.adapt(proba).prevalence_
    assert share[0] > 0.6
    assert share[1] / share[2] == pytest.approx(1.5, rel=0.01)


def test_a_fit_that_is_cut_short_warns(monkeypatch):
    proba, old, _ = shifted_problem(4, 50, 0)
    monkeypatch.setattr(_prior_shift, "_MAX_PREVALENCE_STEPS", 1)
    recalibrator = fitted(4, source_prevalence=old)
    with pytest.warns(ConvergenceWarning, match="has not reached its optimum"):
        recalibrator.adapt(proba)
    assert recalibrator.prevalence_.sum() == pytest.approx(1, abs=1e-15)


def test_a_step_of_em_where_newton_fails(monkeypatch):
    density, weight, start = np.array([[1.0, 0.2], [0.5, 1.0]]), np.full(2, 0.5), np.full(2, 0.5)
    monkeypatch.setattr(_prior_shift, "line_search", lambda *args, **options: None)
    monkeypatch.setattr(_prior_shift, "_MAX_PREVALENCE_STEPS", 1)
    share = _prior_shift.likeliest_shares(density, weight, start).share
    np.testing.assert_allclose(share, start * ((density / (start @ density)) @ weight))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_of_the_new_population(n_classes):
    rng = np.random.default_rng(0)
    proba, old, _ = shifted_problem(n_classes, 30, 1)
    weight = rng.integers(0, 4, size=30)
    recalibrator = fitted(n_classes, source_prevalence=old, pseudo_count=0)
    expected = recalibrator.adapt(np.repeat(proba, weight, axis=0)).prevalence_
    actual = recalibrator.adapt(proba, sample_weight=weight).prevalence_
    np.testing.assert_allclose(actual, expected, atol=1e-12)
    order = rng.permutation(30)
    mixed = recalibrator.adapt(proba[order], sample_weight=1e9 * weight[order]).prevalence_
    np.testing.assert_allclose(mixed, expected, atol=1e-12)


def mixture(n, prevalence, seed):
    """Scores N(0, 1) and N(1.5, 1) of two classes, and their posterior at prevalence ½."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < prevalence).astype(int)
    score = rng.normal(size=n) + 1.5 * label
    return label, 1 / (1 + np.exp(-1.5 * (score - 0.75)))


def test_a_shift_is_found_within_its_standard_error_and_mended():
    old_label, old_proba = mixture(4000, 0.5, 0)
    recalibrator = PriorShiftRecalibrator(source_prevalence=0.5).fit(old_proba, old_label)
    z_scores = []
    for seed in range(1, 21):
        label, proba = mixture(1500, 0.1, seed)
        share = recalibrator.adapt(proba).prevalence_[1]
        score = (proba - (1 - proba)) / (share * proba + (1 - share) * (1 - proba))
        z_scores.append((share - 0.1) * np.sqrt(np.sum(score**2)))
    assert np.abs(z_scores).max() < 4
    assert 0.5 < np.std(z_scores) < 1.6
    moved = recalibrator.predict_proba(proba)[:, 1]
    assert CoxTest(method="asymptotic").fit(proba, label).p_value_ < 1e-10
    assert CoxTest(method="asymptotic").fit(moved, label).p_value_ > 0.01
    test = CalibrationTest(n_resamples=199, random_state=0)
    assert test.fit(moved[:500], label[:500]).p_value_ > 0.01


def test_in_a_pipeline():
    X, y = load_breast_cancer(return_X_y=True)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    pipeline = make_pipeline(
        PredictProba(classifier, cv=3), InterceptRecalibrator(), PriorShiftRecalibrator(0.2)
    ).fit(X, y)
    proba = pipeline[:-1].transform(X)
    source = pipeline[-1].source_prevalence_
    odds = proba * [0.8, 0.2] / source
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pipeline.predict_proba(X), expected, atol=1e-12)
    pipeline.set_params(priorshiftrecalibrator__prevalence=None).fit(X, y)
    pipeline[-1].adapt(pipeline[:-1].transform(X[y == 1]))
    assert pipeline[-1].prevalence_[1] > 0.98
    model = RecalibratedClassifier(classifier, PriorShiftRecalibrator(0.2), cv=3).fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() < y.mean() - 0.05


def test_predictions_that_are_not_calibrated_give_a_warning_when_they_are_moved():
    rng = np.random.default_rng(0)
    proba = rng.random(1000)
    y = rng.random(1000) < proba**2
    with pytest.warns(UserWarning, match=r"True has the share 0.3\d* of the labels, but .* 0.5"):
        PriorShiftRecalibrator(0.1).fit(proba, y)
    quiet = PriorShiftRecalibrator().fit(proba, y)
    with pytest.warns(UserWarning, match="Recalibrate before this step"):
        quiet.adapt(proba)
    PriorShiftRecalibrator(0.1, source_prevalence=0.5).fit(proba, y).predict_proba(proba)


def test_calibrated_predictions_give_no_warning():
    PriorShiftRecalibrator(0.5).fit([0.01, 0.01], [0, 1])  # happens once in fifty times
    rng = np.random.default_rng(0)
    for n in (3, 10, 100, 1000):
        for _ in range(50):
            proba = rng.dirichlet([0.1, 0.1, 3.0], size=n)
            y = draw(proba, rng)
            weight = rng.exponential(size=n) ** 2
            recalibrator = PriorShiftRecalibrator(np.full(3, 1 / 3), labels=[0, 1, 2])
            if len(set(y)) == 3:
                recalibrator.fit(proba, y, sample_weight=weight)


BAD_PREVALENCES = {
    "sum": ([0.5, 0.4, 0.2], "must sum to 1; found .* with sum 1.1. Divide counts"),
    "negative": ([0.5, 0.7, -0.2], "must not be negative"),
    "nan": ([0.5, 0.5, np.nan], "must not be negative and must sum to 1"),
    "length": ([0.5, 0.5], r"one number for each of the 3 classes; found .* shape \(2,\)"),
    "words": (["a", "b", "c"], "must hold one number for each"),
    "number": (0.3, "must be an array or a dictionary for more than two classes"),
    "keys": ({0: 0.5, 1: 0.5}, r"one entry for each class, \[0, 1, 2\]; found .* \[0, 1\]"),
    "outside": (1.5, r"parameter .* in the range \[0.0, 1.0\]"),
}


@pytest.mark.parametrize("case", BAD_PREVALENCES)
@pytest.mark.parametrize("name", ["prevalence", "source_prevalence"])
def test_bad_prevalences_are_refused(name, case):
    value, message = BAD_PREVALENCES[case]
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        fitted(3, **{name: value})


@pytest.mark.parametrize("share", [5e-324, 1e-300])
def test_source_prevalences_that_overflow_are_refused(share):
    recalibrator = fitted(2, source_prevalence=share)
    with pytest.raises(ValueError, match=r"source_prevalence must be at least 1e-100 .* \[1\]"):
        recalibrator.adapt([0.2, 0.7])
    with pytest.raises(ValueError, match="source_prevalence must be at least 1e-100"):
        fitted(2, prevalence=0.5, source_prevalence=share)


def test_bad_calls_of_adapt_are_refused():
    with pytest.raises(NotFittedError):
        PriorShiftRecalibrator().adapt([0.5])
    with pytest.raises(ValueError, match="prevalence must be None if it is to be estimated"):
        fitted(2, prevalence=0.1).adapt([0.5])
    recalibrator = fitted(3)
    for X, weight, message in (
        (two_columns(np.array([0.5])), None, "of the 3 classes seen at fit"),
        (THREE * 2, None, r"X must lie in \[0, 1\]"),
        (THREE, [1.0], "same length"),
        (THREE, [1, 1, 1, -1], "must not be negative"),
    ):
        with pytest.raises(ValueError, match=message):
            recalibrator.adapt(X, sample_weight=weight)
    with pytest.raises(ValueError, match="pseudo_count"):
        fitted(3, pseudo_count=-1)
