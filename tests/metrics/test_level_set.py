"""The expected calibration error of Definition 1.1: every distinct prediction is its own bin."""

import numpy as np
import pytest
from oracles import normalised, smooth_calibration_program
from problems import random_problem, small_case

from skcalib.function_classes import Bounded
from skcalib.metrics import (
    expected_calibration_error,
    interval_calibration_error,
    level_set_calibration_error,
    smooth_calibration_error,
    weighted_calibration_error,
)


def error_by_loops(label, proba, weight=None):
    """Σ over level sets of half the L1 norm of Σ w_i (e_y − p), for rows of probabilities."""
    weight = normalised(weight, len(label))
    levels = {}
    for row, y, w in zip(proba, label, weight, strict=True):
        residual = levels.setdefault(tuple(row), np.zeros(len(row)))
        residual += w * (np.eye(len(row))[y] - row)
    return sum(np.abs(residual).sum() / 2 for residual in levels.values())


def test_by_hand():
    # two samples at 0.5, one of them 1: no residual; one at 0.2 with outcome 1: 0.8 / 3
    assert level_set_calibration_error([0, 1, 1], [0.5, 0.5, 0.2]) == pytest.approx(0.8 / 3)
    # Section 1 of Błasiok et al. (2023): ½ is calibrated, ½ ± ε is about ½ from it
    assert level_set_calibration_error([0, 1], [0.5, 0.5]) == 0
    assert level_set_calibration_error([0, 1], [0.5 - 1e-6, 0.5 + 1e-6]) == pytest.approx(0.5, 1e-5)


def test_canonical_error_by_hand():
    proba = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]
    # residuals: (1 − 1, 1 − 0.6, −0.4)/3 at the first vector, (−0.1, −0.2, 0.3)/3 at the second
    error = level_set_calibration_error([0, 1, 2], proba, multi_class="canonical")
    assert error == pytest.approx((0.4 + 0.3) / 3)


def test_two_classes_equal_the_sum_of_masses():
    for seed in range(60):
        proba, outcome, weight = small_case(seed)
        mass, _ = smooth_calibration_program(proba, outcome, weight)
        error = level_set_calibration_error(outcome, proba, sample_weight=weight, labels=[0, 1])
        assert error == pytest.approx(np.abs(mass).sum(), abs=1e-15), seed


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_canonical_error_equals_loops(n_classes, weighted):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), size=7)[rng.integers(0, 7, size=60)]
    label = rng.integers(0, n_classes, size=60)
    weight = rng.random(60) if weighted else None
    error = level_set_calibration_error(
        label, proba, sample_weight=weight, labels=range(n_classes), multi_class="canonical"
    )
    assert error == pytest.approx(error_by_loops(label, proba, weight), abs=1e-14)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_is_the_convex_programme_of_bounded_functions(n_classes):
    rng = np.random.default_rng(1)
    label, proba = random_problem(rng, 40, n_classes)
    proba = np.round(proba, 1) if n_classes == 2 else proba[rng.integers(0, 9, size=40)]
    programme = weighted_calibration_error(
        label, proba, function_class=Bounded(), labels=range(n_classes)
    )
    # for vectors the bounded functions see the L1 norm, twice the total variation
    error = level_set_calibration_error(
        label, proba, labels=range(n_classes), multi_class="canonical"
    )
    assert (1 if n_classes == 2 else 2) * error == pytest.approx(programme, abs=1e-9)


def test_is_the_limit_of_narrow_bins_and_bounds_the_other_errors():
    for seed in range(40):
        proba, outcome, weight = small_case(seed)
        proba = np.round(proba, 3)
        options = {"sample_weight": weight, "labels": [0, 1]}
        error = level_set_calibration_error(outcome, proba, **options)
        narrow = expected_calibration_error(outcome, proba, n_bins=10**4, **options)
        assert error == pytest.approx(narrow, abs=1e-14)
        assert smooth_calibration_error(outcome, proba, **options) <= error + 1e-14
        assert interval_calibration_error(outcome, proba, **options) <= error + 1e-14
