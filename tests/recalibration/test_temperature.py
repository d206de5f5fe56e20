"""The temperature is the optimum of its written-out loss."""

import numpy as np
import pandas as pd
import pytest
import scipy.special
from problems import random_problem, two_columns
from scipy.optimize import brentq
from sklearn.base import clone
from sklearn.metrics import log_loss

from skcalib.recalibration import (
    DirichletRecalibrator,
    MatrixScalingRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)

EPSILON = np.finfo(float).eps

CASES = {
    "temperature": TemperatureRecalibrator(),
    "temperature, prior": TemperatureRecalibrator(prior_weight=1.0),
    "vector": VectorScalingRecalibrator(),
    "matrix": MatrixScalingRecalibrator(),
    "Dirichlet": DirichletRecalibrator(),
}

all_cases = pytest.mark.parametrize("recalibrator", CASES.values(), ids=CASES)


def target_of(proba, label, weight, prior_weight):
    share = prior_weight * (weight**2).sum()
    return (np.eye(proba.shape[1])[label] + share * proba) / (1 + share)


def weighted_problem(seed, n=50, n_classes=3):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n, n_classes)
    proba = two_columns(proba) if n_classes == 2 else proba
    label[:n_classes] = range(n_classes)
    weight = rng.random(n)
    return label, proba, weight / weight.sum()


def test_temperature_by_hand():
    # two of three are right where odds of 4 are claimed: odds of 2, the square root
    recalibrator = TemperatureRecalibrator(prior_weight=0).fit([0.8, 0.8, 0.2], [1, 0, 0])
    assert recalibrator.temperature_ == pytest.approx(2, abs=1e-14)
    np.testing.assert_allclose(recalibrator.predict_proba([0.8]), [[1 / 3, 2 / 3]], atol=1e-15)


@pytest.mark.parametrize("prior_weight", [0.0, 3.0])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_temperature_equals_a_root_finder(n_classes, prior_weight):
    label, proba, weight = weighted_problem(0, 200, n_classes)
    target = target_of(proba, label, weight, prior_weight)

    def slope(inverse):
        residual = scipy.special.softmax(inverse * np.log(proba), axis=1) - target
        return weight @ (residual * np.log(proba)).sum(axis=1)

    root = brentq(slope, 0.01, 20, xtol=1e-15)
    recalibrator = TemperatureRecalibrator(prior_weight=prior_weight)
    recalibrator.fit(proba, label, sample_weight=weight)
    assert 1 / recalibrator.temperature_ == pytest.approx(root, rel=1e-12)


def test_no_temperature_is_better():
    label, proba, _ = weighted_problem(1, 100, 4)
    recalibrator = TemperatureRecalibrator(prior_weight=0).fit(proba, label)
    best = log_loss(label, recalibrator.predict_proba(proba))
    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2):
        moved = clone(recalibrator).fit(proba, label)
        moved.temperature_ *= factor
        assert log_loss(label, moved.predict_proba(proba)) > best


@pytest.mark.parametrize("names", [[-1, 0, 1], ["a", "b", "c"], [0.0, 1.0, 2.0]], ids=str)
@all_cases
def test_any_labels(recalibrator, names):
    label, proba, _ = weighted_problem(2)
    expected = clone(recalibrator).fit(proba, label).predict_proba(proba)
    index = np.random.default_rng(0).permutation(len(label)) + 100
    for y in (np.array(names)[label], pd.Series(np.array(names)[label], index=index)):
        np.testing.assert_array_equal(
            clone(recalibrator).fit(proba, y).predict_proba(proba), expected
        )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_none_the_prior_counts_where_certainty_would_be_best(n_classes):
    label, proba, weight = weighted_problem(3, n_classes=n_classes)
    default, plain, prior = (
        TemperatureRecalibrator(prior_weight=w, labels=range(n_classes)) for w in (None, 0.0, 1.0)
    )
    for y, same in ((label, plain), (proba.argmax(axis=1), prior)):
        for recalibrator in (default, plain, prior):
            recalibrator.fit(proba, y, sample_weight=weight)
        assert default.temperature_ == same.temperature_ > 0
        assert (plain.temperature_ == 0) == (same is prior)


@all_cases
def test_labels_of_minus_one_and_one(recalibrator):
    label, proba, _ = weighted_problem(2, n_classes=2)
    expected = clone(recalibrator).fit(proba, label).predict_proba(proba)
    signs = clone(recalibrator).fit(proba, 2 * label - 1)
    np.testing.assert_array_equal(signs.predict_proba(proba), expected)


def test_all_labels_on_top_are_temperature_zero():
    proba = np.array([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2]])
    recalibrator = TemperatureRecalibrator(prior_weight=0, labels=[0, 1, 2]).fit(proba, [0, 1])
    assert recalibrator.temperature_ == 0
    expected = [[1, EPSILON, EPSILON], [0.5, 0.5, EPSILON]]
    np.testing.assert_allclose(recalibrator.predict_proba(proba), expected, rtol=1e-15)
    # a sample without weight does not count
    proba, weight = np.vstack([proba, [[0.1, 0.1, 0.8]]]), [1, 1, 0]
    recalibrator.fit(proba, [0, 1, 0], sample_weight=weight)
    assert recalibrator.temperature_ == 0


def test_predictions_worse_than_none_are_temperature_infinity():
    recalibrator = TemperatureRecalibrator(prior_weight=0).fit([0.9, 0.8, 0.3], [0, 0, 1])
    assert recalibrator.temperature_ == np.inf
    np.testing.assert_array_equal(recalibrator.predict_proba([0.1, 0.9]), np.full((2, 2), 0.5))


def test_equal_classes_leave_the_temperature_at_one():
    recalibrator = TemperatureRecalibrator().fit(np.full((5, 3), 1 / 3), [0, 1, 2, 2, 2])
    assert recalibrator.temperature_ == 1


def test_order_of_the_classes_stays():
    label, proba, _ = weighted_problem(4, 100, 5)
    fitted = TemperatureRecalibrator().fit(proba, label).predict_proba(proba)
    np.testing.assert_array_equal(fitted.argsort(axis=1), proba.argsort(axis=1))


def test_zeros_are_half_of_the_smallest_vote():
    proba = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 0.2, 0.8], [0.1, 0.9, 0.0]])
    recalibrator = TemperatureRecalibrator().fit(proba, [0, 1, 2, 1])
    assert recalibrator.smallest_probability_ == 0.05
    fitted = recalibrator.predict_proba(proba)
    expected = np.clip(proba, 0.05, 0.95) ** (1 / recalibrator.temperature_)
    np.testing.assert_allclose(fitted, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
