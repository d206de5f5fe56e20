"""The upper distance and the distance of known inputs equal the best of all partitions."""

import numpy as np
import pandas as pd
import pytest
from oracles import (
    law_of_predictions,
    least_change_by_enumeration,
    least_change_by_integer_program,
    least_change_of_split_points,
    upper_distance_by_enumeration,
)
from problems import small_case

from skcalib._numerics import interval, upper_distance
from skcalib._numerics.interval import best_partition
from skcalib.datasets import make_hard_instance
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    _upper_distance,
    calibration_distance_bounds,
    interval_calibration_error,
    lower_distance_to_calibration,
    upper_distance_certificate,
    upper_distance_to_calibration,
)


def levels_case(seed, n_levels):
    """Predictions with ties, outcomes and weights; half of the cases are miscalibrated."""
    rng = np.random.default_rng([seed, n_levels])
    points = rng.random(n_levels) if seed % 3 else np.round(rng.random(n_levels), 1)
    rows = np.concatenate([np.arange(n_levels), rng.integers(0, n_levels, 2 * n_levels)])
    proba = points[rows]
    outcome = (rng.random(len(rows)) < (proba if seed % 2 else 0.7 - proba / 2)).astype(int)
    return proba, outcome, rng.random(len(rows)) if seed % 5 else None


def grouped(proba, outcome, weight, inputs=None):
    """Prediction, weight and weight of outcome 1 of every input, by a loop."""
    weight = np.ones(len(proba)) if weight is None else np.asarray(weight)
    inputs = np.zeros(len(proba)) if inputs is None else inputs
    table = {}
    for p, x, y, w in zip(proba, inputs, outcome, weight / weight.sum(), strict=True):
        total, positive = table.get((p, x), (0.0, 0.0))
        table[p, x] = total + w, positive + w * y
    return (
        np.array([p for p, _ in table]),
        np.array([total for total, _ in table.values()]),
        np.array([positive for _, positive in table.values()]),
    )


def upper(proba, outcome, weight=None, **options):
    return upper_distance_to_calibration(
        outcome, proba, sample_weight=weight, labels=[0, 1], **options
    )


def certified(proba, outcome, weight=None, **options):
    return upper_distance_certificate(
        outcome, proba, sample_weight=weight, labels=[0, 1], **options
    )


def test_the_enumerations_and_the_integer_program_agree():
    for seed in range(6):
        case = levels_case(seed, 5)
        points, law = law_of_predictions(*case)
        of_law = points, law.sum(axis=1), law[:, 1]
        naive = upper_distance_by_enumeration(*case)
        assert least_change_by_enumeration(*of_law) == pytest.approx(naive, abs=1e-12)
        assert least_change_by_integer_program(*of_law) == pytest.approx(naive, abs=1e-9)


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 320), marks=pytest.mark.slow)], ids=str
)
def test_it_is_the_best_of_all_partitions(seeds):
    for seed in seeds:
        case = levels_case(seed, 2 + seed % (8 if seed >= 20 else 6))
        order = (1.0, 2.0, 3.5)[seed % 3]
        expected = least_change_by_enumeration(*grouped(*case), order)
        assert upper(*case, order=order) == pytest.approx(expected, rel=1e-9, abs=1e-12), seed


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 60), marks=pytest.mark.slow)], ids=str
)
def test_the_distance_of_known_inputs_is_the_integer_program(seeds):
    for seed in seeds:
        proba, outcome, weight = levels_case(seed, 3)
        inputs = np.random.default_rng(seed).integers(0, 3, len(proba))
        inputs[::2] = 0
        proba, inputs, outcome = (np.tile(x, 2) for x in (proba, inputs, outcome))  # they recur
        outcome[: len(inputs) // 3] = 0
        weight = None if weight is None else np.concatenate([weight, weight[::-1]])
        levels = grouped(proba, outcome, weight, inputs)
        expected = least_change_by_integer_program(*levels)
        assert len(levels[0]) <= 12
        assert upper(proba, outcome, weight, given=inputs) == pytest.approx(expected, abs=1e-9)
        assert calibration_distance_bounds(
            outcome, proba, sample_weight=weight, given=inputs
        ) == pytest.approx((expected, expected), abs=1e-9)
        # who knows more is no farther from a calibrated predictor
        assert expected <= upper(proba, outcome, weight) + 1e-9


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 200), marks=pytest.mark.slow)], ids=str
)
def test_the_search_brackets_the_best_of_all_partitions(seeds, monkeypatch):
    monkeypatch.setattr(upper_distance, "_MAX_COMPARED_LEVELS", 0)
    ratios = []
    for seed in seeds:
        case = levels_case(seed, 5 + seed % (5 if seed >= 8 else 2))
        certificate = certified(*case)
        expected = least_change_by_enumeration(*grouped(*case))
        assert certificate.lower <= expected + 1e-9, seed
        assert certificate.upper >= expected - 1e-12, seed
        ratios.append(certificate.upper / expected)
        root = certified(*case, order=2.0)
        best = least_change_by_enumeration(*grouped(*case), 2.0)
        assert root.lower - 1e-9 <= best <= root.upper + 1e-12, seed
    assert np.mean(np.array(ratios) < 1 + 1e-9) >= 0.85
    assert np.mean(ratios) <= 1.01


def test_the_lower_end_is_the_linear_program_of_levels_that_may_be_split():
    proba, outcome, weight = levels_case(4, 20)
    levels = grouped(proba, outcome, weight)
    assert np.mean(levels[2] / levels[1] % 1 > 0) > 0.1  # both labels occur at some
    found = certified(proba, outcome, weight).lower
    grid = np.union1d(levels[0], np.linspace(0, 1, 129))
    program = least_change_of_split_points(*levels, grid)
    assert program - 1e-3 <= found <= program + 1e-9
    # more than the lower distance, which splits the labels of a level, too
    assert found > 1.05 * lower_distance_to_calibration(outcome, proba, sample_weight=weight)


def test_without_a_solution_the_lower_end_is_the_lower_distance(monkeypatch):
    monkeypatch.setattr(upper_distance, "linprog", lambda *_, **__: pd.Series({"success": False}))
    proba, outcome, weight = levels_case(4, 20)
    lower = lower_distance_to_calibration(outcome, proba, sample_weight=weight)
    assert certified(proba, outcome, weight).lower == lower


@pytest.mark.parametrize(
    ("n", "kind", "most"),
    [
        (30, "calibrated", 3.0),
        (300, "calibrated", 1.15),
        (300, "overconfident", 1.15),
        (300, "rounded", 2.5),
        pytest.param(3000, "calibrated", 1.6, marks=pytest.mark.slow),
        pytest.param(3000, "overconfident", 1.1, marks=pytest.mark.slow),
    ],
)
def test_values_prove_the_upper_end_and_it_is_near_the_lower_one(n, kind, most):
    rng = np.random.default_rng(0)
    proba = np.round(rng.random(n), 2 if kind == "rounded" else 16)
    outcome = (rng.random(n) < (0.25 + proba / 2 if kind == "overconfident" else proba)).astype(int)
    weight = None if kind == "calibrated" else rng.random(n)
    certificate = certified(proba, outcome, weight)
    values, share = certificate.values, np.ones(n) if weight is None else weight
    assert np.average(np.abs(values - proba), weights=share) == pytest.approx(certificate.upper)
    for value in np.unique(np.round(values, 12)):
        cell = np.abs(values - value) < 2e-12
        assert np.average(outcome[cell], weights=share[cell]) == pytest.approx(value, abs=1e-11)
    assert len({*zip(proba, values, strict=True)}) == len(np.unique(proba))
    assert certificate.upper == upper(proba, outcome, weight)
    error = interval_calibration_error(outcome, proba, sample_weight=weight)
    assert certificate.lower <= certificate.upper <= min(error, most * certificate.lower)
    assert certificate.lower >= lower_distance_to_calibration(outcome, proba, sample_weight=weight)


def test_cells_are_built_from_a_law_with_nodes_close_to_each_other():
    # Nodes 4e-4 apart, which the tolerance allows, give 0.05478, and 6 % more at n = 10⁵.
    rng = np.random.default_rng(0)
    proba = rng.random(3000)
    y = rng.random(3000) < 0.25 + proba / 2
    assert upper_distance_to_calibration(y, proba) == pytest.approx(0.0545016, abs=1e-6)


def test_many_predictions_are_first_put_into_cells(monkeypatch):
    rng = np.random.default_rng(0)
    proba = rng.random(400)
    outcome = (rng.random(400) < 0.25 + proba / 2).astype(int)
    data = {"y_true": outcome, "y_proba": proba}
    exact = upper_distance_to_calibration(**data), calibration_distance_bounds(**data)
    n_cells = []

    def count(first, *args):
        n_cells.append(len(first))
        return best_partition(first, *args)

    monkeypatch.setattr(interval, "best_partition", count)
    monkeypatch.setattr(_upper_distance, "_MAX_EXACT_GUESS_POINTS", 399)
    monkeypatch.setattr(_upper_distance, "_GUESS_PRECISION", 0.01)
    assert (upper_distance_to_calibration(**data), calibration_distance_bounds(**data)) == exact
    assert len(n_cells) == 2
    assert max(n_cells) <= 202
    assert interval_calibration_error(**data, precision=0.01) >= exact[1][1]


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.24])
def test_lemma_4_5_inputs_tell_two_models_apart(alpha):
    near = 2 * alpha**2 / (1 + 2 * alpha)
    for problem, distance in (("near", near), ("far", alpha)):
        y_true, y_proba, weight, inputs = make_hard_instance(
            problem, offset=alpha, return_inputs=True
        )
        data = {"y_true": y_true, "y_proba": y_proba, "sample_weight": weight}
        assert upper_distance_to_calibration(**data) == pytest.approx(alpha, abs=1e-12)
        for given in (inputs, np.array(["a", "b", "c", "d"])[inputs], np.eye(4)[inputs]):
            found = upper_distance_to_calibration(**data, given=given)
            assert found == pytest.approx(distance, abs=1e-12)


def test_lemma_6_8_by_cells_that_are_no_intervals():
    y_true, y_proba, weight = make_hard_instance(separation=1e-3)
    data = {"y_true": y_true, "y_proba": y_proba, "sample_weight": weight}
    assert upper_distance_to_calibration(**data) == pytest.approx(0.2 * 0.101 / 1.2, abs=1e-12)
    assert interval_calibration_error(**data) > 0.1


def test_the_blind_spot_of_gaussian_kernels_is_nearer_than_its_intervals():
    # over- and underestimates alternate: cells of a half wave each pair what lies apart
    y_true, y_proba, weight = make_hard_instance("gaussian-blind-spot", period=0.1)
    data = {"y_true": y_true, "y_proba": y_proba, "sample_weight": weight}
    certificate = upper_distance_certificate(**data)
    assert certificate.lower <= certificate.upper <= 1.5 * certificate.lower
    assert interval_calibration_error(**data) > 1.7 * certificate.upper
    assert certificate.lower > 2 * lower_distance_to_calibration(**data)


def test_two_points_by_hand():
    # both move to ½, or each to its label
    for epsilon in (0.1, 0.25, 0.4):
        distance = upper([0.5 - epsilon, 0.5 + epsilon], [0, 1])
        assert distance == pytest.approx(min(epsilon, 0.5 - epsilon), abs=1e-15)
    assert upper([0.2, 0.2], [0, 1], order=2.0) == pytest.approx(0.3, abs=1e-15)


def test_more_classes_and_what_is_given_of_them():
    rng = np.random.default_rng(0)
    proba, label = rng.dirichlet(np.ones(3), 10)[rng.integers(0, 10, 80)], rng.integers(0, 3, 80)
    given = rng.integers(0, 2, 80)
    top = proba.argmax(axis=1)
    for known in (None, given):
        distance = upper_distance_to_calibration(label, proba, given=known)
        assert distance == upper(proba.max(axis=1), (label == top).astype(int), given=known)
        one = upper_distance_to_calibration(
            label, proba, given=known, multi_class="top-label", average=None
        )
        several = upper_distance_certificate(label, proba, given=known, multi_class="top-label")
        np.testing.assert_array_equal(one, [certificate.upper for certificate in several])
        rows = top == 1
        part = None if known is None else known[rows]
        alone = upper(proba[rows, 1], (label[rows] == 1).astype(int), given=part)
        assert one[1] == pytest.approx(alone, abs=1e-12)


def test_weight_zero_takes_away_what_is_given():
    proba, outcome, weight = levels_case(1, 3)
    given = np.arange(len(proba)) // 3 % 2
    proba, outcome, given = np.tile(proba, 2), np.tile(outcome, 2), np.tile(given, 2)
    weight = np.concatenate([weight, weight[::-1]])
    weight[[0, 5]] = 0
    used = weight > 0
    expected = upper(proba[used], outcome[used], weight[used], given=given[used])
    assert upper(proba, outcome, weight, given=given) == expected


def test_a_test_can_be_given_inputs():
    proba, outcome, _ = levels_case(1, 4)
    given = np.arange(len(proba)) % 2
    test = CalibrationTest("upper_distance_to_calibration", n_resamples=9, random_state=0)
    test.fit(proba, outcome, given=given)
    assert test.statistic_ == upper(proba, outcome, given=given)


def test_inputs_that_do_not_recur_are_warned_about():
    proba, outcome, _ = levels_case(1, 20)
    with pytest.warns(UserWarning, match="given should hold inputs that recur; found 60 of 60"):
        distance = upper(proba, outcome, given=np.arange(60))
    with pytest.warns(UserWarning, match="recur"):
        bounds = calibration_distance_bounds(outcome, proba, given=np.arange(60))
    assert bounds[1] == distance


@pytest.mark.parametrize("order", [0.5, 17, np.nan, np.inf, "l1"])
def test_bad_orders_are_refused(order):
    with pytest.raises(ValueError, match="'order' parameter"):
        upper([0.2, 0.9], [0, 1], order=order)


def test_given_must_be_of_the_same_length():
    with pytest.raises(ValueError, match="given"):
        upper([0.2, 0.9], [0, 1], given=[1])


def test_one_label_only():
    proba, _, weight = small_case(3)
    assert upper(proba, np.ones(len(proba), dtype=int), weight) == pytest.approx(
        np.average(1 - proba, weights=weight), abs=1e-12
    )


@pytest.mark.parametrize("n", [20, 80])
@pytest.mark.parametrize("light", [1e-16, 1e-20, 1e-100])
def test_samples_of_tiny_weight_move_nothing(n, light):
    rng = np.random.default_rng(0)
    proba = rng.random(n)
    outcome = (rng.random(n) < proba).astype(int)
    weight = np.where(np.arange(n) < 0.6 * n, 1.0, light)
    heavy = weight == 1
    bounds = calibration_distance_bounds(outcome, proba, sample_weight=weight)
    np.testing.assert_allclose(
        bounds[1], calibration_distance_bounds(outcome[heavy], proba[heavy])[1], rtol=1e-12
    )
    certificate = certified(proba, outcome, weight)
    means = [np.average(outcome[cell], weights=weight[cell]) for cell in as_cells(certificate)]
    assert set(np.round(means, 12)) == set(np.round(certificate.values, 12))
    np.testing.assert_allclose(
        certificate.upper, upper(proba[heavy], outcome[heavy]), atol=certificate.upper / 10
    )


def as_cells(certificate):
    return [np.flatnonzero(certificate.values == value) for value in set(certificate.values)]
