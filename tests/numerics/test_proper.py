"""The mean log loss and the mean Brier score equal those of scikit-learn."""

import numpy as np
import pytest
from oracles import brier_score
from problems import random_problem, two_columns
from sklearn.metrics import log_loss

from skcalib._numerics.proper import PROPER_LOSSES


@pytest.mark.parametrize("n_classes", [2, 4])
def test_means_are_those_of_scikit_learn(n_classes):
    label, proba = random_problem(np.random.default_rng(0), 50, n_classes)
    labels = range(n_classes)
    brier, logarithm = (PROPER_LOSSES[name](proba, label) for name in ("brier", "log_loss"))
    assert brier.shape == logarithm.shape == (50,)
    assert brier.mean() == pytest.approx(brier_score(label, proba), abs=1e-14)
    matrix = two_columns(proba) if n_classes == 2 else proba
    assert logarithm.mean() == pytest.approx(log_loss(label, matrix, labels=labels), abs=1e-14)


def test_two_columns_are_two_classes_of_a_matrix():
    label, proba = random_problem(np.random.default_rng(0), 50)
    matrix = two_columns(proba)
    for name, factor in (("brier", 2), ("log_loss", 1)):
        one, two = (PROPER_LOSSES[name](p, label) for p in (proba, matrix))
        np.testing.assert_allclose(two, factor * one, rtol=1e-13, atol=1e-15)


def test_certain_and_wrong_is_finite():
    loss = PROPER_LOSSES["log_loss"](np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]))
    np.testing.assert_allclose(loss, [0, -np.log(np.finfo(float).eps)], atol=1e-15)
