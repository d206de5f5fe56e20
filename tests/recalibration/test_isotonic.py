"""Isotonic recalibration equals scikit-learn's, and its strict form keeps the ranking."""

import numpy as np
import pytest
from problems import random_problem, two_columns
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss, roc_auc_score

from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import IsotonicRecalibrator


def test_two_classes_equal_scikit_learn():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 300)
    weight = rng.random(300)
    oracle = IsotonicRegression(out_of_bounds="clip").fit(proba, label, sample_weight=weight)
    recalibrator = IsotonicRecalibrator(strict=False).fit(proba, label, sample_weight=weight)
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
    actual = IsotonicRecalibrator(strict=False).fit(proba, label).predict_proba(proba)
    np.testing.assert_allclose(actual, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_no_monotone_map_is_better(seed):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, 40)
    recalibrator = IsotonicRecalibrator(strict=False).fit(proba, label)
    fitted = recalibrator.predict_proba(proba)[:, 1]
    best = np.mean((fitted - label) ** 2)
    order = np.argsort(proba)
    for _ in range(200):
        moved = fitted.copy()
        first, last = np.sort(rng.integers(0, 41, size=2))
        moved[order[first:last]] += rng.normal() * 10 ** rng.uniform(-4, -1)
        moved[order] = np.maximum.accumulate(np.clip(moved[order], 0, 1))
        assert np.mean((moved - label) ** 2) >= best - 1e-12


def test_the_sample_itself_becomes_calibrated():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 500)
    assert smooth_calibration_error(label, proba) > 0.05
    fitted = IsotonicRecalibrator(strict=False).fit(proba, label).predict_proba(proba)
    assert smooth_calibration_error(label, fitted) < 1e-12


def test_row_without_any_probability_keeps_its_prediction():
    # every class occurs where its probability is 0.36 and never where it is 0.34 or less
    proba = np.array([[0.36, 0.34, 0.3], [0.3, 0.36, 0.34], [0.34, 0.3, 0.36]])
    recalibrator = IsotonicRecalibrator(strict=False).fit(proba, ["a", "b", "c"])
    query = np.array([[1, 1, 1], [0.99, 1.01, 1.0], [0.9, 0.9, 1.2]]) / 3
    expected = [[1 / 3, 1 / 3, 1 / 3], [0.33, 1.01 / 3, 1 / 3], [0, 0, 1]]
    np.testing.assert_allclose(recalibrator.predict_proba(query), expected, atol=1e-15)


def test_extremes_are_data():
    recalibrator = IsotonicRecalibrator(strict=False).fit([0.0, 0.0, 1.0, 1.0], [0, 1, 1, 1])
    np.testing.assert_array_equal(recalibrator.predict_proba([0.0, 1.0])[:, 1], [0.5, 1.0])


def test_absent_class_needs_a_name_and_gets_no_probability():
    proba = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1]])
    with pytest.raises(ValueError, match=r"y holds only 2 distinct label.*labels=\[...\]"):
        IsotonicRecalibrator(strict=False).fit(proba, ["a", "b", "a"])
    recalibrator = IsotonicRecalibrator(labels=["a", "b", "c"], strict=False).fit(
        proba, ["a", "b", "a"]
    )
    assert recalibrator.classes_.tolist() == ["a", "b", "c"]
    assert (recalibrator.predict_proba(proba)[:, 2] == 0).all()


@pytest.mark.parametrize("query", [[[0.2, 0.3, 0.5]], [0.2]])
def test_columns_are_those_of_fit(query):
    label, proba = random_problem(np.random.default_rng(0), 30, 4)
    recalibrator = IsotonicRecalibrator(strict=False).fit(proba, label)
    with pytest.raises(ValueError, match="X must hold the probabilities of the 4 classes"):
        recalibrator.predict_proba(query)


@pytest.mark.parametrize("seed", range(10))
def test_strict_keeps_the_ranking(seed):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, 300)
    proba[:100] = np.round(proba[:100], 1)  # ties, 0 and 1 among them
    weight = rng.random(300)
    recalibrator = IsotonicRecalibrator(strict=True).fit(proba, label, sample_weight=weight)
    query = np.unique(np.concatenate([proba, np.linspace(0, 1, 1001)]))
    calibrated = recalibrator.predict_proba(query)[:, 1]
    assert (np.diff(calibrated) > 0).all()
    assert 0 < calibrated[0] < calibrated[-1] < 1
    fitted = recalibrator.predict_proba(proba)[:, 1]
    assert roc_auc_score(label, fitted) == roc_auc_score(label, proba)
    plain = IsotonicRecalibrator(strict=False).fit(proba, label).predict_proba(proba)[:, 1]
    assert roc_auc_score(label, plain) != roc_auc_score(label, proba)


def test_strict_by_hand():
    # a 1 in front and a 0 behind: (1 0) (1 0) (1 0), one block of mean ½ at the mean prediction
    recalibrator = IsotonicRecalibrator(strict=True).fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    np.testing.assert_allclose(
        recalibrator.predict_proba([0, 0.175, 0.35, 0.675, 1])[:, 1],
        [0.25, 0.375, 0.5, 0.625, 0.75],
        rtol=1e-14,
    )


def test_strict_is_continuous_and_close_to_the_fit():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 20_000)
    strict = IsotonicRecalibrator(strict=True).fit(proba, label)
    grid = np.linspace(0, 1, 100_001)
    calibrated = strict.predict_proba(grid)[:, 1]
    assert np.diff(calibrated).max() < 1e-2
    assert np.mean(np.abs(calibrated - grid**2)) < 0.02


DIFFICULT = {
    "one sample": ([0.3], [1]),
    "certain and right": ([0.0, 1.0], [0, 1]),
    "certain and wrong": ([0.0, 1.0], [1, 0]),
    "constant": ([0.4] * 6, [0, 1, 0, 0, 0, 1]),
    "constant zeros": ([0.0] * 4, [0, 0, 1, 0]),
    "separable": ([0.1, 0.2, 0.3, 0.6, 0.9], [0, 0, 0, 1, 1]),
    "one class": ([0.1, 0.2, 0.8], [0, 0, 0]),
    "tiny": ([1e-320, 1e-310, 1e-300, 0.5], [0, 1, 0, 1]),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("proba", "label"), DIFFICULT.values(), ids=DIFFICULT)
def test_difficult_data(proba, label, strict):
    weights = [None, np.full(len(proba), 1e-300), np.linspace(1e-12, 1e12, len(proba))]
    query = np.concatenate([proba, np.linspace(0, 1, 101), np.geomspace(5e-324, 1, 400)])
    for weight in weights:
        recalibrator = IsotonicRecalibrator(strict=strict, labels=[0, 1])
        calibrated = recalibrator.fit(proba, label, sample_weight=weight).predict_proba(query)
        assert ((calibrated >= 0) & (calibrated <= 1)).all()
        np.testing.assert_allclose(calibrated.sum(axis=1), 1, atol=1e-15)
        if strict:
            assert ((calibrated > 0) & (calibrated < 1)).all()
            assert np.isfinite(log_loss(label, recalibrator.predict_proba(proba), labels=[0, 1]))


def test_strict_is_a_truth_value():
    with pytest.raises(ValueError, match="'strict' parameter"):
        IsotonicRecalibrator(strict="yes").fit([0.1, 0.9], [0, 1])


def test_the_samples_more_of_the_strict_form_have_the_weight_of_a_sample():
    recalibrator = IsotonicRecalibrator(strict=True)
    recalibrator.fit([0.2, 0.8, 0.9], [0, 1, 1], sample_weight=[3, 3, 1])
    # Σw² = 19/49 before the first sample of weight 21/49
    assert recalibrator.maps_[0][1][1] == pytest.approx(19 / 40, rel=1e-12)
