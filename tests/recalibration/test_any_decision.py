"""What `AnyDecisionRecalibrator` promises: less error of the worst decision, no needless shift."""

import itertools

import numpy as np
import pytest
from problems import labels_of, random_problem
from sklearn.exceptions import ConvergenceWarning, EfficiencyWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skcalib.metrics import any_decision_calibration_error, make_scorer
from skcalib.recalibration import (
    AnyDecisionRecalibrator,
    AutoRecalibrator,
    PredictProba,
    TemperatureRecalibrator,
)
from skcalib.recalibration._decision import onto_simplex


def test_two_classes_equal_a_naive_twin():
    label, proba = random_problem(np.random.default_rng(0), 40)
    proba = np.round(proba, 1)
    fitted = AnyDecisionRecalibrator(alpha=1.0, max_rounds=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="not ended after max_rounds=3 rounds"):
        fitted.fit(proba, label)
    twin = proba.copy()
    for _ in range(3):
        best, shifts = -1.0, None
        for cut in itertools.chain(np.unique(twin), [2.0]):
            cells = [np.flatnonzero(twin < cut), np.flatnonzero(twin >= cut)]
            sums = [np.sum((label - twin)[cell]) for cell in cells]
            if np.abs(sums).sum() >= best - 1e-12:  # the last one, if several are equal
                best = np.abs(sums).sum()
                shifts = [(cell, np.mean((label - twin)[cell])) for cell in cells if len(cell)]
        for cell, shift in shifts:
            twin[cell] = np.clip(twin[cell] + shift, 0, 1)
    np.testing.assert_allclose(fitted.transform(proba)[:, 1], twin, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_round_lowers_the_squared_error_by_that_of_the_decision(n_classes):
    label, proba = random_problem(np.random.default_rng(1), 150, n_classes)
    fitted = AnyDecisionRecalibrator(random_state=0).fit(proba, label)
    assert fitted.n_rounds_ >= 1
    matrix = np.column_stack([1 - proba, proba]) if n_classes == 2 else proba
    onehot = np.eye(n_classes)[label]
    for policy, shift in zip(fitted.policies_, fitted.shifts_, strict=True):
        action = np.argmax(matrix @ policy.T, axis=1)
        sums = [(onehot - matrix)[action == a].sum(axis=0) for a in range(2)]
        error = any_decision_calibration_error(label, matrix)
        assert sum(map(np.linalg.norm, sums)) / 150 == pytest.approx(error, abs=1e-9)
        before = np.mean(np.sum((onehot - matrix) ** 2, axis=1))
        matrix = onto_simplex(matrix + shift[action])
        after = np.mean(np.sum((onehot - matrix) ** 2, axis=1))
        assert after <= before - error**2 + 1e-9
    np.testing.assert_allclose(fitted.transform(proba), matrix, atol=1e-12)


def test_without_a_test_nothing_is_left():
    label, proba = random_problem(np.random.default_rng(2), 60)
    proba = np.round(proba, 1)
    weight = np.random.default_rng(3).random(60)
    fitted = AnyDecisionRecalibrator(alpha=1.0, n_actions=3, max_rounds=1000)
    after = fitted.fit(proba, label, sample_weight=weight).transform(proba)
    error = any_decision_calibration_error(label, after, n_actions=3, sample_weight=weight)
    assert error < 1e-7


def test_calibrated_probabilities_stay_as_they_are():
    generator = np.random.default_rng(4)
    recalibrator = AnyDecisionRecalibrator(labels=[0, 1], random_state=generator.integers(2**31))
    n_moved = 0
    for _ in range(100):
        label, proba = random_problem(generator, 30, calibrated=True)
        fitted = recalibrator.fit(proba, label)
        n_moved += fitted.n_rounds_ > 0
        if fitted.n_rounds_ == 0:
            np.testing.assert_allclose(fitted.transform(proba)[:, 1], proba, atol=1e-15)
    assert n_moved / 100 <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_new_data_are_expected_better(n_classes):
    label, proba = random_problem(np.random.default_rng(5), 800, n_classes)
    recalibrator = AnyDecisionRecalibrator(random_state=0).fit(proba[:300], label[:300])
    after = recalibrator.transform(proba[300:])
    error = any_decision_calibration_error(label[300:], after)
    assert error < any_decision_calibration_error(label[300:], proba[300:]) * 0.7


def test_pipelines_and_searches():
    generator = np.random.default_rng(6)
    X = generator.normal(size=(200, 2))
    y = generator.random(200) < 1 / (1 + np.exp(-3 * X[:, 0]))
    model = make_pipeline(
        PredictProba(LogisticRegression(C=0.03), cv=2), AnyDecisionRecalibrator(random_state=0)
    )
    search = GridSearchCV(
        model,
        {"anydecisionrecalibrator__n_actions": [1, 2]},
        scoring=make_scorer(any_decision_calibration_error),
        cv=2,
    ).fit(X, y)
    errors = -search.cv_results_["mean_test_score"]
    assert errors[1] < errors[0]  # an intercept does not mend what is not sure enough
    assert search.best_estimator_[-1].policies_.shape[1] == 2


def test_a_long_fit_is_expected_from_a_part_of_the_draws(monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    proba = proba[:, [1, 2, 0]]  # of other classes, so that there is something to shift
    once = AnyDecisionRecalibrator(random_state=0).fit(proba, label)
    monkeypatch.setattr("skcalib.recalibration._decision._N_TIMED_PROBABILITIES", 300)
    monkeypatch.setattr("skcalib._inputs.warnings.MAX_SILENT_SECONDS", 0.0)
    with pytest.warns(EfficiencyWarning, match=r"max_rounds=100, if .* larger alpha") as found:
        parts = AnyDecisionRecalibrator(random_state=0).fit(proba, label)
    assert len(found) == 1
    np.testing.assert_array_equal(parts.shifts_, once.shifts_)
    np.testing.assert_array_equal(parts.policies_, once.policies_)


@pytest.mark.slow  # the sentence of the guide what_will_it_cost
def test_held_out_errors_of_the_guide():
    errors = []
    for n_classes, seed in itertools.product([2, 3], range(3)):
        generator = np.random.default_rng(seed)
        n_new = 10000 if n_classes == 2 else 3000
        truth = generator.dirichlet(np.full(n_classes, 0.7), size=1000 + n_new)
        label = labels_of(truth, generator)
        weights = np.r_[0.2, np.ones(n_classes - 2), 3]
        for proba in (truth**2, truth**0.5, truth * weights):
            proba /= proba.sum(axis=1, keepdims=True)
            maps = AnyDecisionRecalibrator(random_state=0), TemperatureRecalibrator()
            fitted = [one.fit(proba[:1000], label[:1000]) for one in (*maps, AutoRecalibrator())]
            after = [one.transform(proba[1000:]) for one in fitted]
            all_of_them = (proba[1000:], *after, truth[1000:])
            errors.append([any_decision_calibration_error(label[1000:], p) for p in all_of_them])
    expected = [0.228, 0.052, 0.111, 0.029, 0.020]
    np.testing.assert_allclose(np.mean(errors, axis=0), expected, atol=0.005)
