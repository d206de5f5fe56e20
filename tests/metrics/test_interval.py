"""The interval calibration error is the least over all partitions into intervals."""

import itertools

import numpy as np
import pytest
from oracles import interval_error_by_enumeration, normalised
from problems import small_case
from scipy.integrate import quad

from skcalib._numerics import interval
from skcalib.metrics import (
    expected_calibration_error,
    interval_calibration_error,
    lower_distance_to_calibration,
)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.25, 0.4, 0.5])
def test_two_points_by_hand(epsilon):
    # Definition 1.1 of Błasiok et al. (2023): one interval costs 2ε, two cost ½ − ε
    error = interval_calibration_error([0, 1], [0.5 - epsilon, 0.5 + epsilon])
    assert error == pytest.approx(min(2 * epsilon, 0.5 - epsilon), abs=1e-15)


@pytest.mark.parametrize("precision", [0, 0.2123])
@pytest.mark.parametrize("start", [0, 100])
def test_equals_the_best_of_all_partitions(start, precision, monkeypatch):
    for seed in range(start, start + 30):
        proba, outcome, weight = (x if x is None else x[:8] for x in small_case(seed))
        used = slice(None) if weight is None else weight > 0
        expected = interval_error_by_enumeration(
            proba[used], outcome[used], None if weight is None else weight[used], precision
        )
        for block in (1, 3, 128):
            monkeypatch.setattr(interval, "_RUN_BLOCK_SIZE", block)
            error = interval_calibration_error(
                outcome, proba, sample_weight=weight, labels=[0, 1], precision=precision
            )
            assert error == pytest.approx(expected, abs=1e-14), (seed, block)


def quadratic_programme(proba, outcome):
    """The dynamic programme without leaving anything out, for distinct predictions."""
    order = np.argsort(proba)
    point, mass = proba[order], (outcome - proba)[order] / len(proba)
    best = [0.0]
    for b in range(len(point)):
        tail = np.abs(np.cumsum(mass[b::-1]))[::-1]  # of the intervals that start at 0, …, b
        extent = (point[b] - point[: b + 1]) * np.arange(b + 1, 0, -1) / len(point)
        best.append(np.min(np.array(best) + tail + extent))
    return best[-1]


@pytest.mark.parametrize("kind", ["calibrated", "overconfident", "noise", "one class"])
def test_equals_the_full_programme_on_a_larger_case(kind):
    rng = np.random.default_rng(0)
    proba = rng.random(1500)
    chance = {"calibrated": proba, "overconfident": 0.25 + proba / 2, "one class": 0 * proba + 1}
    outcome = (rng.random(1500) < chance.get(kind, 0.9 + 0 * proba)).astype(int)
    error = interval_calibration_error(outcome, proba, labels=[0, 1])
    assert error == pytest.approx(quadratic_programme(proba, outcome), abs=1e-13)


def test_cells_only_raise_the_error():
    rng = np.random.default_rng(0)
    proba = rng.random(5000)
    outcome = (rng.random(5000) < 0.1 + 0.8 * proba).astype(int)
    errors = [
        interval_calibration_error(outcome, proba, precision=precision)
        for precision in (0, 1e-5, 1e-3, 1e-2, 1e-1, 1)
    ]
    assert errors == sorted(errors)
    assert errors[1] == errors[0] < errors[2] < errors[-1]
    whole = abs(np.mean(outcome - proba)) + np.ptp(proba)  # a single interval
    assert errors[-1] == pytest.approx(whole, abs=1e-12)


def test_default_precision_depends_on_the_number_of_distinct_predictions(monkeypatch):
    rng = np.random.default_rng(0)
    proba, outcome = rng.random(400), rng.integers(0, 2, size=400)
    exact = interval_calibration_error(outcome, proba)
    monkeypatch.setattr(interval, "_MAX_CUTS", 399)
    monkeypatch.setattr(interval, "_DEFAULT_PRECISION", 0.05)
    coarse = interval_calibration_error(outcome, proba)
    assert coarse == interval_calibration_error(outcome, proba, precision=0.05) > exact
    assert interval_calibration_error(outcome, proba, precision=0) == exact
    rounded = np.round(proba, 2)  # 101 distinct
    assert interval_calibration_error(outcome, rounded) == interval_calibration_error(
        outcome, rounded, precision=0
    )


def test_a_heavy_prediction_is_a_cell_of_its_own():
    cells = interval.cell_starts(
        np.array([0.1, 0.2, 0.21, 0.9]), np.array([0.1, 0.7, 0.1, 0.1]), 0.25
    )
    np.testing.assert_array_equal(cells, [0, 2, 3])


def shifted_error(proba, mass, width, shift):
    """Σ_j |mass in [shift + j·width, shift + (j + 1)·width)|."""
    bins = np.floor((proba - shift) / width)
    return sum(abs(mass[bins == j].sum()) for j in np.unique(bins))


def shifted_errors_by_quadrature(proba, mass, width):
    """Its mean over uniform shifts, between the shifts at which a point changes its interval."""
    breaks = np.unique(np.concatenate([[0, width], proba % width]))
    pieces = [
        quad(lambda r: shifted_error(proba, mass, width, r), a, b, epsabs=1e-12)[0]
        for a, b in itertools.pairwise(breaks)
        if b - a > 1e-14
    ]
    return sum(pieces) / width


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("width", "stretch"), [(1.0, 2**15), (0.25, 3), (2**-5, 1)])
def test_mean_over_shifts_equals_quadrature(seed, width, stretch, monkeypatch):
    monkeypatch.setattr(interval, "_STRETCH_SIZE", stretch)
    proba, outcome, weight = small_case(seed)
    mass = normalised(weight, len(proba)) * (outcome - proba)
    order = np.argsort(proba)
    exact = interval.mean_partition_sum(proba[order], mass[order], width)
    assert exact == pytest.approx(shifted_errors_by_quadrature(proba, mass, width), abs=1e-9)


@pytest.mark.parametrize("seed", range(0, 40, 3))
@pytest.mark.parametrize("precision", [None, 0, 0.3, 0.01, 1.0])
def test_surrogate_is_the_least_over_the_widths(seed, precision):
    proba, outcome, weight = small_case(seed)
    mass = normalised(weight, len(proba)) * (outcome - proba)
    order = np.argsort(proba)
    # Theorem 6.12: ε/4 < 2^{−k*} ≤ ε/2
    narrowest = int(np.ceil(np.log2(2 / precision))) if precision else 24
    values = [
        interval.mean_partition_sum(proba[order], mass[order], 2.0**-k) + 2.0**-k
        for k in range(narrowest + 1)
    ]
    if not precision:  # the limit of narrow intervals: every prediction is alone
        values.append(sum(abs(mass[proba == p].sum()) for p in set(proba)))
    error = interval_calibration_error(
        outcome, proba, sample_weight=weight, labels=[0, 1], method="surrogate", precision=precision
    )
    assert error == pytest.approx(min(values), abs=1e-12)


def test_surrogate_in_the_limit_of_narrow_intervals():
    # as long as 0.5 and 0.5 + 1e-9 share an interval they cancel
    error = interval_calibration_error([0, 1], [0.5, 0.5 + 1e-9], method="surrogate")
    expected = min(2.0**-k + 0.5e-9 * 2**k for k in range(25))  # apart for 1e-9/width of the shifts
    assert error == pytest.approx(expected, rel=1e-4)
    assert interval_calibration_error([1, 1, 0], [0.75] * 3, method="surrogate") == pytest.approx(
        1 / 12, abs=1e-15
    )


def test_parity_of_the_bins_does_not_matter_here():
    outcome = np.array([0, 1] * 50)
    proba = 0.5 + np.array([-1e-3, 1e-3] * 50)
    assert expected_calibration_error(outcome, proba, n_bins=10) > 0.49
    assert expected_calibration_error(outcome, proba, n_bins=11) < 1e-9
    assert interval_calibration_error(outcome, proba) == pytest.approx(2e-3, abs=1e-12)


@pytest.mark.parametrize("precision", [-0.1, 1.5, np.nan, "fine"])
def test_bad_precision_is_refused(precision):
    with pytest.raises(ValueError, match="'precision' parameter"):
        interval_calibration_error([0, 1], [0.2, 0.9], precision=precision)


def test_bad_method_is_refused():
    with pytest.raises(ValueError, match="'method' parameter"):
        interval_calibration_error([0, 1], [0.2, 0.9], method="random")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("width", [0.3, 0.07])
def test_random_grid_equals_quadrature_over_the_shift(seed, width):
    proba, outcome, weight = small_case(seed)
    mass = normalised(weight, len(proba)) * (outcome - proba)
    error = interval_calibration_error(
        outcome, proba, sample_weight=weight, labels=[0, 1], method="random-grid", width=width
    )
    assert error == pytest.approx(shifted_errors_by_quadrature(proba, mass, width), abs=1e-9)


def test_random_grid_by_hand():
    # 0.4 and 0.6 share an interval of width 0.5 for the part 1 − 0.2/0.5 of the shifts: 0 then
    error = interval_calibration_error([0, 1], [0.4, 0.6], method="random-grid", width=0.5)
    assert error == pytest.approx(0.4 * 0.4, abs=1e-15)
    # never for a width below 0.2
    error = interval_calibration_error([0, 1], [0.4, 0.6], method="random-grid", width=0.1)
    assert error == pytest.approx(0.4, abs=1e-15)


def drawn_errors(proba, mass, width, n_draws, rng):
    shifts = rng.uniform(0, width, size=n_draws)
    return [shifted_error(proba, mass, width, shift) for shift in shifts]


@pytest.mark.parametrize("seed", range(0, 40, 7))
@pytest.mark.parametrize("width", [1.0, 0.3])
def test_drawn_grid_is_the_mean_over_the_shifts_drawn(seed, width):
    proba, outcome, weight = small_case(seed)
    mass = normalised(weight, len(proba)) * (outcome - proba)
    options = {"sample_weight": weight, "labels": [0, 1], "method": "random-grid", "width": width}
    error = interval_calibration_error(outcome, proba, n_draws=5, random_state=3, **options)
    expected = drawn_errors(proba, mass, width, 5, np.random.RandomState(3))
    assert error == pytest.approx(np.mean(expected), abs=1e-14)


def test_drawn_grid_converges_to_the_mean_over_all_shifts():
    rng = np.random.default_rng(0)
    proba = rng.random(200)
    outcome = rng.integers(0, 2, size=200)
    mass = (outcome - proba) / 200
    options = {"method": "random-grid", "width": 0.13}
    exact = interval_calibration_error(outcome, proba, **options)
    drawn = interval_calibration_error(outcome, proba, n_draws=2000, random_state=0, **options)
    deviation = np.std(drawn_errors(proba, mass, 0.13, 300, np.random.RandomState(1)))
    assert drawn == pytest.approx(exact, abs=4 * deviation / np.sqrt(2000))
    assert drawn != exact


@pytest.mark.parametrize("precision", [0.3, 0.01, 1.0])
def test_drawn_surrogate_is_that_of_the_paper(precision):
    # Theorem 6.12: for k = 0, …, k*, with ε/4 < 2^{−k*} ≤ ε/2, shifts uniform in [0, 2^{−k})
    rng = np.random.default_rng(0)
    proba = np.round(rng.random(30), 2)
    outcome = rng.integers(0, 2, size=30)
    random_state = np.random.RandomState(5)
    values = []
    for k in range(int(np.ceil(np.log2(2 / precision))) + 1):
        errors = drawn_errors(proba, (outcome - proba) / 30, 2.0**-k, 4, random_state)
        values.append(np.mean(errors) + 2.0**-k)
    options = {"method": "surrogate", "precision": precision, "random_state": 5}
    error = interval_calibration_error(outcome, proba, n_draws=4, **options)
    assert error == pytest.approx(min(values), abs=1e-14)


def test_drawn_surrogate_without_precision_ends_with_single_predictions():
    error = interval_calibration_error(
        [1, 1, 0], [0.75] * 3, method="surrogate", n_draws=2, random_state=0
    )
    assert error == pytest.approx(1 / 12, abs=1e-15)


@pytest.mark.parametrize("width", [1, 0.1])
def test_random_grid_lies_between_its_bounds(width):
    # Claim 6.6 and Lemma 6.7: intCE − ε ≤ RintCE(ε) ≤ (1 + 2/ε) dCE_low; halving never lowers it
    for seed in range(20):
        proba, outcome, weight = small_case(seed)
        options = {"sample_weight": weight, "labels": [0, 1]}
        grid = {"method": "random-grid"} | options
        error = interval_calibration_error(outcome, proba, width=width, **grid)
        assert interval_calibration_error(outcome, proba, **options) <= error + width + 1e-12
        lower = lower_distance_to_calibration(outcome, proba, tol=1e-3, **options)
        assert error <= (1 + 2 / width) * (lower + 1e-3)
        half = interval_calibration_error(outcome, proba, width=width / 2, **grid)
        assert error <= half + 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "random-grid"}, "width must be given"),
        ({"method": "random-grid", "width": 0.0}, "'width' parameter"),
        ({"method": "random-grid", "width": 1.5}, "'width' parameter"),
        ({"method": "random-grid", "width": np.nan}, "'width' parameter"),
        (
            {"method": "random-grid", "width": 0.1, "precision": 0.1},
            "precision must be left out for method",
        ),
        ({"width": 0.1}, "width must be left out for method='exact'"),
        ({"method": "surrogate", "width": 0.1}, "width must be left out for method"),
        ({"n_draws": 3}, "n_draws must be left out for method='exact'"),
        ({"method": "surrogate", "n_draws": 0}, "'n_draws' parameter"),
    ],
)
def test_options_that_do_not_fit_the_method_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        interval_calibration_error([0, 1], [0.2, 0.9], **options)
