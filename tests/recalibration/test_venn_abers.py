"""Venn-Abers recalibration equals one isotonic regression for each query and each label."""

import numpy as np
import pytest
from problems import random_problem
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss

from skcalib.recalibration import VennAbersRecalibrator


def refitted(proba, label, query, weight=None):
    """scikit-learn's isotonic regression once more for each query and each label, (n, 2)."""
    weight = np.full(len(proba), 1.0) if weight is None else weight
    one_more = (weight**2).sum() / weight.sum()
    return np.array(
        [
            [
                IsotonicRegression(out_of_bounds="clip")
                .fit(np.append(proba, q), np.append(label, y), np.append(weight, one_more))
                .predict([q])[0]
                for y in (0, 1)
            ]
            for q in query
        ]
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_two_classes_equal_isotonic_regression_for_each_query(decimals, weighted):
    rng = np.random.default_rng(decimals)
    label, proba = random_problem(rng, 30)
    proba = np.round(proba, decimals)
    weight = rng.random(30) if weighted else None
    query = np.concatenate([proba[:10], rng.random(10), [0, 1]])
    recalibrator = VennAbersRecalibrator().fit(proba, label, sample_weight=weight)
    interval = np.stack(recalibrator.predict_interval(query), axis=-1)
    expected = refitted(proba, label, query, weight)
    np.testing.assert_allclose(interval, expected, atol=1e-12)
    lower, upper = expected.T
    merged = recalibrator.predict_proba(query)[:, 1]
    np.testing.assert_allclose(merged, upper / (1 - lower + upper), atol=1e-12)
    assert (interval[:, 0] <= merged).all()
    assert (merged <= interval[:, 1]).all()


def test_several_classes_are_one_against_the_rest():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 40, 3)
    recalibrator = VennAbersRecalibrator().fit(proba, label)
    query = proba[:10]
    interval = np.stack(recalibrator.predict_interval(query), axis=-1)
    assert interval.shape == (10, 3, 2)
    for k in range(3):
        expected = refitted(proba[:, k], label == k, query[:, k])
        np.testing.assert_allclose(interval[:, k], expected, atol=1e-12)
    lower, upper = np.moveaxis(interval, 2, 0)
    merged = upper / (1 - lower + upper)
    merged /= merged.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(recalibrator.predict_proba(query), merged, atol=1e-12)


def test_by_hand():
    # at 0.25 the labels 1 ? 0 are pooled, at 0.8 ? 1; a 1 at the end stands alone
    recalibrator = VennAbersRecalibrator().fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    np.testing.assert_allclose(
        recalibrator.predict_interval([0.25, 0.8, 0.9]),
        [[1 / 3, 0.5, 0.5], [2 / 3, 1, 1]],
        rtol=1e-15,
    )
    np.testing.assert_allclose(
        recalibrator.predict_proba([0.25, 0.8])[:, 1], [0.5, 2 / 3], rtol=1e-15
    )


def test_merger_has_the_least_regret():
    label, proba = random_problem(np.random.default_rng(0), 50)
    recalibrator = VennAbersRecalibrator().fit(proba, label)
    lower, upper = recalibrator.predict_interval(proba)
    merged = recalibrator.predict_proba(proba)[:, 1]

    def regret(p):
        return np.maximum(np.log((1 - lower) / (1 - p)), np.log(upper / p))

    for epsilon in (1e-6, -1e-6):
        assert (regret(merged + epsilon) > regret(merged)).all()


@pytest.mark.slow
def test_the_fit_of_the_true_label_is_calibrated():
    # E[Y | p_Y] = p_Y, so E[f(p_Y) (Y − p_Y)] = 0 for every f, at n = 15 and a useless order
    rng = np.random.default_rng(0)
    repetitions = 4000
    residual = np.empty((repetitions, 3))
    for i in range(repetitions):
        proba = rng.random(16)
        label = (rng.random(16) < 0.3 + 0.4 * np.sin(7 * proba) ** 2).astype(int)
        fitted = VennAbersRecalibrator(labels=[0, 1]).fit(proba[1:], label[1:])
        p = fitted.predict_interval(proba[:1])[label[0]][0]
        residual[i] = (label[0] - p) * np.array([1, p, p > 0.5])
    z = residual.mean(axis=0) / residual.std(axis=0) * np.sqrt(repetitions)
    assert (np.abs(z) < 4).all()


DIFFICULT = {
    "one sample": ([0.3], [1]),
    "two samples": ([0.3, 0.4], [1, 0]),
    "certain and right": ([0.0, 1.0], [0, 1]),
    "certain and wrong": ([0.0, 1.0], [1, 0]),
    "constant": ([0.4] * 6, [0, 1, 0, 0, 0, 1]),
    "constant zeros": ([0.0] * 4, [0, 0, 1, 0]),
    "separable": ([0.1, 0.2, 0.3, 0.6, 0.9], [0, 0, 0, 1, 1]),
    "one class": ([0.1, 0.2, 0.8], [0, 0, 0]),
    "tiny": ([5e-324, 1e-310, 1e-300, 0.5], [0, 1, 0, 1]),
}


@pytest.mark.parametrize(("proba", "label"), DIFFICULT.values(), ids=DIFFICULT)
def test_difficult_data(proba, label):
    query = np.concatenate([proba, np.linspace(0, 1, 101)])
    for weight in (None, np.full(len(proba), 1e-300), np.linspace(1e-12, 1e12, len(proba))):
        recalibrator = VennAbersRecalibrator(labels=[0, 1])
        calibrated = recalibrator.fit(proba, label, sample_weight=weight).predict_proba(query)
        assert ((calibrated > 0) & (calibrated < 1)).all()
        np.testing.assert_allclose(calibrated.sum(axis=1), 1, atol=1e-15)
        assert np.isfinite(log_loss([0, 1], calibrated[:2]))
        lower, upper = recalibrator.predict_interval(query)
        assert ((lower >= 0) & (lower < upper) & (upper <= 1)).all()


def test_separable_data_are_as_sure_as_they_are_many():
    n = 50
    recalibrator = VennAbersRecalibrator().fit(np.arange(2 * n) / (2 * n), [0] * n + [1] * n)
    # behind all data a 1 has the fit 1, and a 0 is pooled with the ones: n/(n + 1)
    upper = recalibrator.predict_proba([1.0])[0, 1]
    assert upper == pytest.approx(1 / (2 - n / (n + 1)), abs=1e-14)


def test_absent_class_is_improbable():
    label, proba = random_problem(np.random.default_rng(0), 200, 3)
    recalibrator = VennAbersRecalibrator(labels=[0, 1, 2]).fit(proba, label % 2)
    assert (recalibrator.predict_interval(proba)[0][:, 2] == 0).all()
    assert (recalibrator.predict_proba(proba)[:, 2] > 0).all()


def test_columns_are_those_of_fit():
    label, proba = random_problem(np.random.default_rng(0), 30, 4)
    recalibrator = VennAbersRecalibrator().fit(proba, label)
    with pytest.raises(ValueError, match="X must hold the probabilities of the 4 classes"):
        recalibrator.predict_interval([[0.2, 0.3, 0.5]])
