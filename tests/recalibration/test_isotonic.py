import numpy as np
import pytest
from helpers import random_problem, two_columns
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import IsotonicRecalibrator


def test_two_classes_equal_scikit_learn():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 300)
    weight = rng.random(300)
    oracle = IsotonicRegression(out_of_bounds="clip").fit(proba, label, sample_weight=weight)
    recalibrator = IsotonicRecalibrator().fit(proba, label, sample_weight=weight)
    query = np.linspace(0, 1, 200)
    np.testing.assert_allclose(
        recalibrator.predict_proba(query), two_columns(oracle.predict(query)), atol=1e-12
    )


def test_several_classes_are_one_against_the_rest():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 300, 4)
    columns = [
        IsotonicRegression(out_of_bounds="clip").fit(proba[:, k], label == k).predict(proba[:, k])
        for k in range(4)
    ]
    expected = np.column_stack(columns)
    expected /= expected.sum(axis=1, keepdims=True)
    actual = IsotonicRecalibrator().fit(proba, label).predict_proba(proba)
    np.testing.assert_allclose(actual, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_no_monotone_map_is_better(seed):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, 40)
    recalibrator = IsotonicRecalibrator().fit(proba, label)
    fitted = recalibrator.predict_proba(proba)[:, 1]
    best = brier_score_loss(label, fitted)
    order = np.argsort(proba)
    for _ in range(200):
        moved = fitted.copy()
        first, last = np.sort(rng.integers(0, 41, size=2))
        moved[order[first:last]] += rng.normal() * 10 ** rng.uniform(-4, -1)
        moved[order] = np.maximum.accumulate(np.clip(moved[order], 0, 1))
        assert brier_score_loss(label, moved) >= best - 1e-12


def test_the_sample_itself_becomes_calibrated():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 500)
    assert smooth_calibration_error(label, proba) > 0.05
    fitted = IsotonicRecalibrator().fit(proba, label).predict_proba(proba)
    assert smooth_calibration_error(label, fitted) < 1e-12


def test_row_without_any_probability_keeps_its_prediction():
    # every class occurs where its probability is 0.36 and never where it is 0.34 or less
    proba = np.array([[0.36, 0.34, 0.3], [0.3, 0.36, 0.34], [0.34, 0.3, 0.36]])
    recalibrator = IsotonicRecalibrator().fit(proba, ["a", "b", "c"])
    query = np.array([[1, 1, 1], [0.99, 1.01, 1.0], [0.9, 0.9, 1.2]]) / 3
    expected = [[1 / 3, 1 / 3, 1 / 3], [0.33, 1.01 / 3, 1 / 3], [0, 0, 1]]
    np.testing.assert_allclose(recalibrator.predict_proba(query), expected, atol=1e-15)


def test_extremes_are_data():
    recalibrator = IsotonicRecalibrator().fit([0.0, 0.0, 1.0, 1.0], [0, 1, 1, 1])
    np.testing.assert_array_equal(recalibrator.predict_proba([0.0, 1.0])[:, 1], [0.5, 1.0])


def test_absent_class_needs_a_name_and_gets_no_probability():
    proba = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1]])
    with pytest.raises(ValueError, match=r"y holds only 2 distinct label.*labels=\[...\]"):
        IsotonicRecalibrator().fit(proba, ["a", "b", "a"])
    recalibrator = IsotonicRecalibrator(labels=["a", "b", "c"]).fit(proba, ["a", "b", "a"])
    assert recalibrator.classes_.tolist() == ["a", "b", "c"]
    assert (recalibrator.predict_proba(proba)[:, 2] == 0).all()


@pytest.mark.parametrize("query", [[[0.2, 0.3, 0.5]], [0.2]])
def test_columns_are_those_of_fit(query):
    label, proba = random_problem(np.random.default_rng(0), 30, 4)
    recalibrator = IsotonicRecalibrator().fit(proba, label)
    with pytest.raises(ValueError, match="X must hold the probabilities of the 4 classes"):
        recalibrator.predict_proba(query)
