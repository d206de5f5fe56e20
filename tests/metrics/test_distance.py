"""The smooth error and the lower distance to calibration equal their linear programs."""

import numpy as np
import pytest
from oracles import (
    law_of_predictions,
    lower_distance_by_joint_law,
    lower_distance_by_potentials,
    lower_distance_by_slopes,
    normalised,
    smooth_calibration_cvxpy,
    smooth_calibration_linprog,
)
from problems import small_case
from scipy.stats import wasserstein_distance
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from skcalib.metrics import (
    _distance,
    calibration_distance_bounds,
    distance_certificate,
    expected_calibration_error,
    interval_calibration_error,
    lower_distance_to_calibration,
    smooth_calibration_error,
    smooth_calibration_witness,
    upper_distance_to_calibration,
)


def some_by_default(n_cases, step, first=200):
    """Numbers of small cases; the first ones show every kind, the further ones are slow."""
    return [
        pytest.param(start, marks=pytest.mark.slow) if start >= first else start
        for start in range(0, n_cases, step)
    ]


@pytest.mark.parametrize("start", some_by_default(600, 50, first=100))
def test_smooth_error_equals_the_linear_program(start):
    for seed in range(start, start + 50):
        proba, outcome, weight = small_case(seed)
        expected = smooth_calibration_linprog(proba, outcome, weight)
        actual = smooth_calibration_error(outcome, proba, sample_weight=weight, labels=[0, 1])
        assert actual == pytest.approx(expected, abs=1e-9), seed


@pytest.mark.parametrize("seed", [11, 13, 17])
def test_smooth_error_equals_cvxpy(seed):
    proba, outcome, weight = small_case(seed)
    expected = smooth_calibration_cvxpy(proba, outcome, weight)
    actual = smooth_calibration_error(outcome, proba, sample_weight=weight, labels=[0, 1])
    assert actual == pytest.approx(expected, abs=1e-9)


def test_smooth_error_equals_the_linear_program_on_a_larger_case():
    rng = np.random.default_rng(0)
    proba = rng.random(400)
    outcome = (rng.random(400) < proba).astype(int)
    expected = smooth_calibration_linprog(proba, outcome)
    assert smooth_calibration_error(outcome, proba) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.25, 0.4, 0.5])
def test_smooth_error_of_two_points_by_hand(epsilon):
    # Definition 1.1 of Błasiok et al. (2023): residuals −(½ − ε) and ½ − ε, 2ε apart
    error = smooth_calibration_error([0, 1], [0.5 - epsilon, 0.5 + epsilon])
    assert error == pytest.approx(epsilon * (0.5 - epsilon), abs=1e-15)


def test_smooth_error_of_one_prediction_is_the_bias():
    assert smooth_calibration_error([0, 1, 1, 1], [0.5] * 4) == pytest.approx(0.25, abs=1e-15)


def test_smooth_error_is_continuous_where_binned_error_is_not():
    outcome = np.array([0, 1] * 50)
    shift = np.array([-1e-9, 1e-9] * 50)
    assert smooth_calibration_error(outcome, 0.5 + shift) < 1e-8
    assert expected_calibration_error(outcome, 0.5 + shift, n_bins=2) > 0.49


def test_smooth_error_lies_between_bias_and_mean_residual():
    # f = ±1 is among the functions, and none is larger than 1
    rng = np.random.default_rng(0)
    for _ in range(50):
        proba, outcome = rng.random(20), rng.integers(0, 2, size=20)
        bias = abs(np.mean(outcome - proba))
        worst = np.mean(np.abs(outcome - proba))
        assert bias - 1e-15 <= smooth_calibration_error(outcome, proba) <= worst


def test_smooth_error_of_confidence_by_hand():
    proba = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    # both predictions have confidence 0.5, one is right: calibrated; for "classwise" class a has
    # masses (1 − 0.5)/2 at 0.5 and −0.2/2 at 0.2: 0.15 discarded, 0.1 moved by 0.3
    assert smooth_calibration_error(["a", "b"], proba, labels=["a", "b", "c"]) == 0
    by_class = smooth_calibration_error(
        ["a", "b"], proba, labels=["a", "b", "c"], multi_class="classwise", average=None
    )
    expected = [0.15 + 0.1 * 0.3, 0.2, 0.35]  # b: one prediction, 0.3; c: masses −0.25, −0.1
    np.testing.assert_allclose(by_class, expected, atol=1e-15)


def test_averages_by_hand():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=30)
    label = rng.integers(0, 3, size=30)
    weight = rng.random(30)

    def error(multi_class, average):
        return smooth_calibration_error(
            label, proba, sample_weight=weight, multi_class=multi_class, average=average
        )

    def share(labels):
        return [weight[labels == k].sum() / weight.sum() for k in range(3)]

    top = proba.argmax(axis=1)
    for multi_class, shares, default in (
        ("top-label", share(top), "weighted"),
        ("classwise", share(label), "macro"),
    ):
        values = error(multi_class, None)
        assert error(multi_class, "macro") == pytest.approx(np.mean(values), abs=1e-15)
        assert error(multi_class, "weighted") == pytest.approx(values @ shares, abs=1e-15)
        assert error(multi_class, "auto") == error(multi_class, default)
    for k in range(3):
        alone = smooth_calibration_error(
            label[top == k] == k, proba[top == k, k], sample_weight=weight[top == k]
        )
        assert error("top-label", None)[k] == pytest.approx(alone, abs=1e-15)


def test_a_class_that_is_never_predicted_does_not_count():
    proba = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.8, 0.2, 0.0]])
    values = smooth_calibration_error([0, 1, 2], proba, multi_class="top-label", average=None)
    assert np.isnan(values[2])
    mean = smooth_calibration_error([0, 1, 2], proba, multi_class="top-label", average="macro")
    assert mean == pytest.approx(np.mean(values[:2]), abs=1e-15)


def test_a_useless_forecast_can_be_calibrated():
    label = np.array([0, 1, 2] * 10)
    proba = np.full((30, 3), 1 / 3)
    assert smooth_calibration_error(label, proba) == pytest.approx(0, abs=1e-15)
    assert log_loss(label, proba) > 1


def check_witness(proba, outcome, weight=None):
    points, values = smooth_calibration_witness(outcome, proba, sample_weight=weight, labels=[0, 1])
    used = np.ones(len(proba), dtype=bool) if weight is None else weight > 0
    np.testing.assert_array_equal(points, np.unique(proba[used]))
    assert np.abs(values).max() <= 1
    assert (np.abs(np.diff(values)) <= np.diff(points) + 1e-15).all()
    f = values[np.searchsorted(points, proba[used])]
    attained = np.average(
        f * (outcome - proba)[used], weights=None if weight is None else weight[used]
    )
    error = smooth_calibration_error(outcome, proba, sample_weight=weight, labels=[0, 1])
    assert attained == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("start", some_by_default(600, 100))
def test_witness_is_feasible_and_attains_the_error(start):
    for seed in range(start, start + 100):
        check_witness(*small_case(seed))


@pytest.mark.parametrize("decimals", [1, 3, 16])
def test_witness_of_a_large_sample(decimals):
    rng = np.random.default_rng(0)
    proba = np.round(rng.random(100_000), decimals)
    check_witness(proba, rng.random(100_000) < proba)
    check_witness(proba, rng.random(100_000) < 0.2 + 0.6 * proba, rng.random(100_000))


def test_witness_by_hand():
    # masses 0.8/3, 0.7/3, −0.9/3: what remains is discarded at the left, 0.9/3 moves by at most 0.7
    points, values = smooth_calibration_witness([1, 1, 0], [0.2, 0.3, 0.9])
    np.testing.assert_array_equal(points, [0.2, 0.3, 0.9])
    np.testing.assert_allclose(values, [1, 0.9, 0.3], atol=1e-15)
    np.testing.assert_array_equal(smooth_calibration_witness([0, 0], [0.5, 0.5])[1], [-1])


def test_witness_of_more_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=30) * [1, 1, 1e-3]
    proba /= proba.sum(axis=1, keepdims=True)
    label = rng.integers(0, 3, size=30)
    top = proba.argmax(axis=1)
    points, values = smooth_calibration_witness(label, proba)
    expected = smooth_calibration_witness(label == top, proba.max(axis=1))
    np.testing.assert_array_equal([points, values], expected)
    classwise = smooth_calibration_witness(label, proba, multi_class="classwise")
    for k in range(3):
        np.testing.assert_array_equal(
            classwise[k], smooth_calibration_witness(label == k, proba[:, k])
        )
    by_class = smooth_calibration_witness(label, proba, multi_class="top-label")
    assert by_class[2] is None
    np.testing.assert_array_equal(
        by_class[0], smooth_calibration_witness(label[top == 0] == 0, proba[top == 0, 0])
    )


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.25, 0.4, 0.5])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_lower_distance_of_two_points_by_hand(epsilon, tol):
    # Definition 1.1: the least transport merges parts of both points: 2ε(½ − ε)
    distance = lower_distance_to_calibration([0, 1], [0.5 - epsilon, 0.5 + epsilon], tol=tol)
    exact = 2 * epsilon * (0.5 - epsilon)
    assert exact - tol <= distance <= exact + 1e-15


def test_lower_distance_of_one_class_is_the_mean_distance_to_it():
    proba = np.array([0.1, 0.5, 0.9])
    expected = np.average(1 - proba, weights=[1, 2, 3])
    distance = lower_distance_to_calibration([1, 1, 1], proba, sample_weight=[1, 2, 3])
    assert distance == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("seed", "tol"), [(k, 1e-6 if k // 10 % 2 else 1e-3) for k in range(20)])
def test_lower_distance_equals_the_linear_programs(seed, tol):
    proba, outcome, weight = small_case(seed)
    distance = lower_distance_to_calibration(
        outcome, proba, sample_weight=weight, labels=[0, 1], tol=tol
    )
    # With v on a grid the distance is larger, with the constraint on a grid by at most h²/2.
    step = 1 / 50
    grid = np.union1d(proba, np.linspace(0, 1, 51))
    program = lower_distance_by_potentials(proba, outcome, weight, grid)  # equation 21
    assert program - step**2 / 2 - tol <= distance <= program + 1e-8


@pytest.mark.parametrize("seed", range(10, 40, 3))
def test_the_three_linear_programs_agree(seed):
    proba, outcome, weight = small_case(seed)
    grid = np.union1d(proba, np.linspace(0, 1, 11))
    potentials = lower_distance_by_potentials(proba, outcome, weight, grid)  # equation 21
    joint = lower_distance_by_joint_law(proba, outcome, weight, grid)  # equation 17
    slopes = lower_distance_by_slopes(proba, outcome, weight, grid)  # equation 18
    np.testing.assert_allclose([joint, slopes], potentials, atol=1e-7)


@pytest.mark.parametrize(
    ("n", "kind"),
    [(300, kind) for kind in ("calibrated", "overconfident", "noise", "rounded", "crowded")]
    + [(3000, "calibrated"), (10_000, "crowded")],
)
def test_lower_distance_bracket_is_as_narrow_as_asked_for(n, kind):
    rng = np.random.default_rng(0)
    proba = rng.random(n)
    if kind == "rounded":
        proba = np.round(proba, 2)
    if kind == "crowded":
        proba = proba**20
    chance = {"overconfident": 0.25 + proba / 2, "noise": np.full(n, 0.9)}.get(kind, proba)
    outcome = (rng.random(n) < chance).astype(int)
    fine = lower_distance_to_calibration(outcome, proba, tol=1e-5)
    coarse = lower_distance_to_calibration(outcome, proba, tol=1e-3)
    default = lower_distance_to_calibration(outcome, proba)
    assert coarse - 1e-5 <= default <= coarse + 1e-3
    assert default - 1e-5 <= fine <= default + 1e-4


def test_a_bracket_that_is_too_wide_is_warned_about(monkeypatch):
    bracket = 0.1, 0.2, np.array([0.0, 1.0]), np.zeros(2), np.zeros((2, 2))
    monkeypatch.setattr(_distance, "transport_bounds", lambda *_: bracket)
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-04: it lies in \[0.1, 0.2\]"):
        assert lower_distance_to_calibration([0, 1], [0.2, 0.9]) == 0.1


@pytest.mark.parametrize("tol", [0, 1e-7, -1, 2, np.nan, "small"])
@pytest.mark.parametrize("metric", [lower_distance_to_calibration, calibration_distance_bounds])
def test_bad_tolerances_are_refused(metric, tol):
    with pytest.raises(ValueError, match="'tol' parameter"):
        metric([0, 1], [0.2, 0.9], tol=tol)


def test_distance_bounds_are_their_two_measures():
    # of at most 12 distinct predictions each
    rng = np.random.default_rng(0)
    proba, label = rng.dirichlet(np.ones(3), 8)[rng.integers(0, 8, 60)], rng.integers(0, 3, 60)
    for options in ({}, {"multi_class": "classwise"}, {"multi_class": "top-label"}):
        bounds = calibration_distance_bounds(label, proba, **options)
        assert [type(bound) for bound in bounds] == [float, float]
        assert bounds == (
            pytest.approx(lower_distance_to_calibration(label, proba, **options), abs=1e-15),
            pytest.approx(upper_distance_to_calibration(label, proba, **options), abs=1e-15),
        )
    options = {"multi_class": "classwise", "average": None}
    lower, upper = calibration_distance_bounds(label, proba, **options)
    np.testing.assert_array_equal(lower, lower_distance_to_calibration(label, proba, **options))
    np.testing.assert_array_equal(upper, upper_distance_to_calibration(label, proba, **options))


def least_change_by_intervals(proba, outcome, weight=None):
    """min Σ w |p − mean outcome of its run| over all partitions into runs, by recursion."""
    points, law = law_of_predictions(proba, outcome, weight)
    total, positive, least = law.sum(axis=1), law[:, 1], [0.0]
    for stop in range(1, len(points) + 1):
        costs = []
        for start in range(stop):
            run = slice(start, stop)
            mean = positive[run].sum() / total[run].sum()
            costs.append(least[start] + total[run] @ np.abs(points[run] - mean))
        least.append(min(costs))
    return least[-1]


@pytest.mark.parametrize("n", [20, 60, 120])
def test_the_upper_bound_is_the_change_by_the_best_intervals(n):
    rng = np.random.default_rng(n)
    proba = rng.random(n)
    for chance in (proba, 0.25 + proba / 2):
        outcome, weight = (rng.random(n) < chance).astype(int), rng.random(n)
        lower, upper = calibration_distance_bounds(outcome, proba, sample_weight=weight)
        best = least_change_by_intervals(proba, outcome, weight)
        assert lower < best
        assert best - 1e-12 <= upper <= 1.05 * best  # it is searched for
        distance = upper_distance_to_calibration(outcome, proba, sample_weight=weight)
        assert distance <= upper <= interval_calibration_error(outcome, proba, sample_weight=weight)


def test_the_upper_bound_does_not_fall_to_the_lower_one_on_large_samples():
    # the distance of the population is 0.125 if predictions are all that is known
    rng = np.random.default_rng(0)
    proba = rng.random(3000)
    outcome = (rng.random(3000) < 0.25 + proba / 2).astype(int)
    lower, upper = calibration_distance_bounds(outcome, proba)
    assert lower < 0.07
    assert 0.11 < upper < interval_calibration_error(outcome, proba) < 0.15


def check_certificate(proba, outcome, weight, tol):
    """Both bounds evaluated on the samples themselves, by other means than the package's."""
    certificate = distance_certificate(outcome, proba, sample_weight=weight, labels=[0, 1], tol=tol)
    value = certificate.lower
    assert value == lower_distance_to_calibration(
        outcome, proba, sample_weight=weight, labels=[0, 1], tol=tol
    )
    assert certificate.upper <= certificate.lower + tol
    nodes, law, potentials = certificate.nodes, certificate.law, certificate.potentials
    assert (np.diff(nodes) > 0).all()
    assert (nodes[0], nodes[-1]) == (0, 1)
    share = normalised(weight, len(proba))

    # the law is calibrated with the labels' shares, and moving the samples to it costs `upper`
    assert (law >= 0).all()
    cost = 0.0
    for y, mass in enumerate([(1 - nodes) * law, nodes * law]):
        total = share[outcome == y].sum()
        assert mass.sum() == pytest.approx(total, abs=1e-12)
        if total > 0:
            mine = proba[outcome == y], nodes
            cost += total * wasserstein_distance(*mine, share[outcome == y], mass)
    assert cost == pytest.approx(certificate.upper, abs=1e-12)

    # the potentials are feasible everywhere, and their mean over the samples is `lower`
    fine = np.union1d(nodes, np.linspace(0, 1, 20_001))
    f0, f1 = (np.interp(fine, nodes, f) for f in potentials)
    assert np.max((1 - fine) * f0 + fine * f1) <= 1e-14
    assert np.max(np.abs(np.diff(potentials)) - np.diff(nodes)) <= 1e-14
    attained = sum(
        w * np.interp(p, nodes, potentials[y])
        for p, y, w in zip(proba, outcome, share, strict=True)
    )
    assert attained == pytest.approx(certificate.lower, abs=1e-12)


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_certificate_proves_both_bounds(tol):
    for seed in range(10):
        check_certificate(*small_case(seed), tol)
    check_certificate(np.full(2, 0.5), np.array([0, 1]), None, tol)  # calibrated
    rng = np.random.default_rng(0)
    proba = rng.random(2000) ** 3
    check_certificate(proba, (rng.random(2000) < 0.3 + proba / 2).astype(int), None, tol)


def test_certificate_by_hand():
    # ½ ± ε: the part 2ε of the samples moves to ½, and the rest is calibrated where it is
    epsilon = 0.1
    certificate = distance_certificate([0, 1], [0.5 - epsilon, 0.5 + epsilon])
    assert certificate.lower == pytest.approx(2 * epsilon * (0.5 - epsilon), abs=1e-4)
    near = np.interp([0.39, 0.41, 0.59, 0.61], certificate.nodes, np.cumsum(certificate.law))
    assert near[0] == pytest.approx(0, abs=1e-2)
    assert near[3] == pytest.approx(1, abs=1e-2)
    mean = certificate.nodes @ certificate.law
    assert mean == pytest.approx(0.5, abs=1e-12)


def test_certificates_of_more_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=40) * [1, 1, 1e-3]
    proba /= proba.sum(axis=1, keepdims=True)
    label = rng.integers(0, 3, size=40)
    certificate = distance_certificate(label, proba)
    assert certificate.lower == lower_distance_to_calibration(label, proba)
    for multi_class in ("top-label", "classwise"):
        certificates = distance_certificate(label, proba, multi_class=multi_class)
        assert [one is None for one in certificates] == [
            False,
            False,
            multi_class == "top-label",  # class 2 is never predicted
        ]
        by_class = [np.nan if one is None else one.lower for one in certificates]
        alone = lower_distance_to_calibration(label, proba, multi_class=multi_class, average=None)
        np.testing.assert_array_equal(by_class, alone)


def test_returned_bounds_are_quadratically_close_up_to_the_tolerance():
    # Theorem 6.2 holds of the exact lower distance, which is larger than the number by up to `tol`
    for tol in (1, 1e-2):
        for epsilon in (1e-2, 1e-6):
            bounds = calibration_distance_bounds([0, 1], [0.5 - epsilon, 0.5 + epsilon], tol=tol)
            assert bounds[1] <= 4 * np.sqrt(bounds[0] + tol)
    coarse = calibration_distance_bounds([0, 1], [0.49, 0.51], tol=1)
    assert coarse[1] > 4 * np.sqrt(coarse[0])
