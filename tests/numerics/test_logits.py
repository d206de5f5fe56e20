"""Logarithms of probabilities keep their digits next to 0 and 1."""

import warnings

import numpy as np
import pytest

from skcalib._numerics.logits import clipped, log_odds, log_probabilities, smallest_probability

EPS = np.finfo(np.float64).eps


@pytest.mark.parametrize(
    ("proba", "expected"),
    [
        ([0.2, 0.7], EPS),  # no zero, no clipping
        ([1e-300, 1 - EPS], EPS),
        ([0.0, 0.02, 0.9], 0.01),  # half of the lowest level
        ([1.0, 0.02, 0.9], 0.01),
        ([1.0, 0.3, 0.75], 0.125),  # 1 − p is a probability, too
        ([0.0, 1e-300], EPS),
        ([[0.0, 0.5, 0.5], [0.9, 0.06, 0.04]], 0.02),
        ([[0.3, 0.3, 0.4], [0.9, 0.06, 0.04]], EPS),
        ([0.0, 0.5], 0.25),
        ([[0.5, 0.5, 0, 0, 0, 0]], 1 / 12),  # a larger probability than 1/K is not small
        ([1e-20, 0.02, 0.9], 0.01),  # as 1 − p is exactly 1
    ],
)
def test_what_a_probability_of_0_is_taken_for(proba, expected):
    assert smallest_probability(np.array(proba)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("proba", [[0.0, 0.0], [0.0, 1.0], np.eye(3)])
def test_certain_predictions_stay_certain(proba):
    assert smallest_probability(np.array(proba)) == EPS


@pytest.mark.parametrize("smallest", [EPS, 1e-3])
def test_probabilities_are_kept_away_from_0_and_1(smallest):
    proba = np.array([0.0, 1e-320, 1e-3, 0.3, 1 - EPS / 2, 1.0])
    before = proba.copy()
    expected = [min(max(p, smallest), 1 - smallest) for p in proba]
    np.testing.assert_array_equal(clipped(proba, smallest), expected)
    with warnings.catch_warnings(action="error"):
        np.testing.assert_allclose(log_probabilities(proba, smallest), np.log(expected), rtol=1e-14)
        odds = np.array(expected) / (1 - np.array(expected))
        np.testing.assert_allclose(log_odds(proba, smallest), np.log(odds), rtol=1e-12)
    np.testing.assert_array_equal(proba, before)


def test_log_odds_keep_their_digits():
    assert log_odds(np.array([1e-10]))[0] == pytest.approx(np.log(1e-10) + 1e-10, rel=1e-15)
    assert log_odds(np.array([0.5 + 1e-12]))[0] == pytest.approx(4e-12, rel=1e-4)
    assert log_odds(np.array([0.5]))[0] == 0
