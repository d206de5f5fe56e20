"""The error of any decision against losses on a grid, all intervals and all half-spaces."""

import itertools

import numpy as np
import pytest
from problems import labels_of, random_problem

from skcalib._numerics.policies import best_actions, best_policies
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import any_decision_calibration_error, decision_calibration_error


def residuals(label, proba):
    """(e_y − p) / n as a matrix (n, K)."""
    matrix = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    return (np.eye(matrix.shape[1])[label] - matrix) / len(label)


def gap_of(cells, residual):
    """Σ_a ‖Σ of the residuals in cell a‖, by loops."""
    total = 0.0
    for a in set(cells.tolist()):
        total += np.sqrt(sum(sum(row) ** 2 for row in residual[cells == a].T))
    return total


def by_intervals(label, proba, n_actions):
    """The largest gap over all cuts of the sorted distinct predictions."""
    level = np.unique(proba, return_inverse=True)[1]
    residual, m = residuals(label, proba), level.max() + 1
    cuts = itertools.combinations_with_replacement(range(m + 1), n_actions - 1)
    return max(gap_of(np.searchsorted(cut, level, side="right"), residual) for cut in cuts)


def by_half_spaces(label, proba):
    """The largest gap over all lines through two points, with each of these on either side."""
    plane, residual = proba[:, :2], residuals(label, proba)
    total, n = residual.sum(axis=0), len(label)
    best = np.linalg.norm(total)
    for i, j in itertools.combinations(range(n), 2):
        along = plane[j] - plane[i]
        side = (plane - plane[i]) @ [-along[1], along[0]]
        side[[i, j]] = 0
        above = residual[side > 1e-15].sum(axis=0)
        for first, second in itertools.product([0, 1], repeat=2):
            part = above + first * residual[i] + second * residual[j]
            best = max(best, np.linalg.norm(part) + np.linalg.norm(total - part))
    return best


@pytest.mark.parametrize("n_actions", [1, 2, 3, 4])
def test_two_classes_equal_all_intervals(n_actions):
    for seed in range(8):
        label, proba = random_problem(np.random.default_rng(seed), 14)
        proba = np.round(proba, 1)  # with ties
        error = any_decision_calibration_error(label, proba, n_actions=n_actions, labels=[0, 1])
        assert error == pytest.approx(by_intervals(label, proba, n_actions), abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_loss_on_a_grid_has_a_larger_gap(n_classes):
    # The loss that is expected and the one by which actions are chosen are independent. Of the
    # former, the worst of norm 1 is that in the direction of the residuals of each action.
    label, proba = random_problem(np.random.default_rng(0), 25, n_classes)
    matrix = np.column_stack([1 - proba, proba]) if n_classes == 2 else proba
    residual, worst = residuals(label, proba), 0.0
    angle = np.linspace(0, 2 * np.pi, 25)
    if n_classes == 2:
        units = np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        height = np.linspace(-1, 1, 9)[:, None]
        flat = np.sqrt(1 - height**2)
        units = np.stack([flat * np.cos(angle), flat * np.sin(angle), height + 0 * angle], axis=-1)
    units = units.reshape(-1, n_classes)
    for difference in np.unique(np.round(units, 9), axis=0):
        for offset in np.linspace(-1, 1, 41):  # of the losses of two actions
            takes_second = matrix @ difference > offset
            sums = np.stack(
                [residual[~takes_second].sum(axis=0), residual[takes_second].sum(axis=0)]
            )
            worst = max(worst, (sums @ units.T).max(axis=1).sum())
    error = any_decision_calibration_error(label, proba)
    exact = by_intervals(label, proba, 2) if n_classes == 2 else by_half_spaces(label, proba)
    assert worst <= exact + 1e-12
    assert worst > 0.97 * exact  # the grid is fine enough to tell
    assert error == pytest.approx(exact, abs=1e-12)


def test_three_classes_against_all_half_spaces():
    shares = []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        label, proba = random_problem(generator, 20, 3, calibrated=seed % 2 == 0)
        exact = by_half_spaces(label, proba)
        error = any_decision_calibration_error(label, proba, labels=[0, 1, 2])
        assert error <= exact + 1e-12  # a lower value
        shares.append(error / exact)
    assert np.mean(shares) > 0.97
    assert np.mean(np.isclose(shares, 1)) >= 0.5


@pytest.mark.parametrize(("n_classes", "n_actions"), [(2, 3), (3, 2), (4, 3), (8, 2)])
def test_the_value_is_attained_by_the_policy(n_classes, n_actions):
    generator = np.random.default_rng(1)
    points = generator.dirichlet(np.full(n_classes, 0.7), size=30)
    points[0], points[1] = np.eye(n_classes)[:2]  # 0 and 1 among them
    mass = generator.normal(size=(3, 30, n_classes))
    mass -= mass.mean(axis=2, keepdims=True)
    values, policies = best_policies(points, mass, n_actions)
    for value, policy, one in zip(values, policies, mass, strict=True):
        assert gap_of(best_actions(points, policy), one) == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(best_policies(points, one[None], n_actions)[0], value)


@pytest.mark.parametrize(("n_classes", "n_actions"), [(2, 2), (3, 2), (4, 3), (8, 2)])
def test_the_order_of_the_classes_does_not_matter(n_classes, n_actions):
    generator = np.random.default_rng(5)
    label = generator.integers(0, n_classes, size=40)
    proba, turn = generator.dirichlet(np.ones(n_classes), size=40), np.arange(n_classes)[::-1]
    options = {"n_actions": n_actions, "labels": range(n_classes)}
    error = any_decision_calibration_error(label, proba, **options)
    turned = any_decision_calibration_error(turn[label], proba[:, turn], **options)
    assert turned == pytest.approx(error, abs=1e-12)


def test_classes_that_are_never_predicted():
    generator = np.random.default_rng(0)
    proba = np.column_stack([generator.dirichlet(np.ones(3), size=30), np.zeros(30)])
    label = generator.integers(0, 4, size=30)
    errors = [any_decision_calibration_error(label, proba, n_actions=a) for a in (1, 2, 3)]
    assert errors == sorted(errors)
    # certain, and always wrong: with three actions nothing cancels
    assert any_decision_calibration_error([1, 2, 0], np.eye(3), n_actions=3) == pytest.approx(
        np.sqrt(2)
    )


def test_more_actions_have_a_larger_gap():
    label, proba = random_problem(np.random.default_rng(2), 50)
    errors = [any_decision_calibration_error(label, proba, n_actions=a) for a in (1, 2, 3, 50)]
    assert errors == sorted(errors)
    # with an action for each prediction nothing cancels
    assert errors[-1] == pytest.approx(np.sum(np.linalg.norm(residuals(label, proba), axis=1)))
    assert errors[0] == pytest.approx(np.linalg.norm(residuals(label, proba).sum(axis=0)))


def test_no_listed_loss_is_worse():
    for seed in range(10):
        generator = np.random.default_rng(seed)
        label, proba = random_problem(generator, 60)
        loss = generator.normal(size=(2, 2))
        loss /= np.linalg.norm(loss, axis=1, keepdims=True)
        own = decision_calibration_error(label, proba, loss=loss, compared_actions="chosen")
        assert own <= any_decision_calibration_error(label, proba) + 1e-12


def test_zero_only_where_every_half_space_is_right():
    y, proba = [0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5]
    assert any_decision_calibration_error(y, proba, n_actions=5) == pytest.approx(0, abs=1e-15)
    # an error that is 0 on average, below a threshold and above it, is seen with three actions
    y, proba = np.array([0] * 4 + [1] * 4), np.repeat([0.25, 0.75], 4)
    twice = np.r_[y, 1 - y[::-1]], np.r_[proba, proba[::-1]]
    assert any_decision_calibration_error(*twice) > 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_statistic_of_the_test_is_the_metric(n_classes):
    label, proba = random_problem(np.random.default_rng(3), 40, n_classes)
    test = CalibrationTest("any_decision_calibration_error", n_resamples=19, random_state=0)
    assert test.fit(proba, label).statistic_ == any_decision_calibration_error(label, proba)
    batch, _ = best_policies(
        np.unique(proba, axis=0) if n_classes > 2 else np.column_stack([1 - proba, proba]),
        np.zeros((2, 40, n_classes)),
        2,
    )
    np.testing.assert_array_equal(batch, 0)


def rejections(draw, n_runs, n_classes=2, n_resamples=19):
    test = CalibrationTest(
        "any_decision_calibration_error",
        n_resamples=n_resamples,
        labels=list(range(n_classes)),
        random_state=0,
    )
    return np.mean([test.fit(*draw()[::-1]).p_value_ <= 0.05 for _ in range(n_runs)])


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_size_and_power(n_classes):
    generator = np.random.default_rng(n_classes)

    def calibrated():
        return random_problem(generator, 30, n_classes, calibrated=True)

    def too_flat():
        return random_problem(generator, 150, n_classes)

    slack = 4 * np.sqrt(0.05 * 0.95 / 300)
    assert abs(rejections(calibrated, 300, n_classes) - 0.05) <= slack
    assert rejections(too_flat, 50, n_classes) > 0.9


@pytest.mark.slow  # the table of the guide what_will_it_cost
@pytest.mark.parametrize(
    ("truth_of", "power"),
    [
        (lambda p: p**0.6 / (p**0.6 + (1 - p) ** 0.6), 0.73),
        (lambda p: p - 0.15 * (p > 0.7), 0.44),
        (lambda p: np.clip(p + 0.12 * np.sin(4 * np.pi * p), 0, 1), 0.24),
    ],
)
def test_power_in_the_guide(truth_of, power):
    generator = np.random.default_rng(1)

    def draw():
        proba = generator.random(200)
        return labels_of(truth_of(proba), generator), proba

    slack = 4 * np.sqrt(power * (1 - power) * (1 / 200 + 1 / 400))
    assert abs(rejections(draw, 200, n_resamples=99) - power) <= slack


def test_power_against_an_error_that_averages_out():
    # too low and too high in turn: no action of a threshold at a half costs more than expected
    generator = np.random.default_rng(4)
    proba = generator.random(2000)
    truth = np.clip(proba + 0.1 * np.sign(np.sin(4 * np.pi * proba)), 0, 1)
    label = labels_of(truth, generator)
    assert decision_calibration_error(label, proba, given="action") < 0.02
    test = CalibrationTest(
        "any_decision_calibration_error",
        metric_params={"n_actions": 4},
        n_resamples=99,
        random_state=0,
    )
    assert test.fit(proba, label).p_value_ == 0.01


def test_bad_input():
    with pytest.raises(ValueError, match="n_actions"):
        any_decision_calibration_error([0, 1], [0.2, 0.8], n_actions=0)
    with pytest.raises(ValueError, match="n_actions"):
        any_decision_calibration_error([0, 1], [0.2, 0.8], n_actions=10**4)
    with pytest.raises(ValueError, match="asymptotic"):
        CalibrationTest("any_decision_calibration_error", method="asymptotic").fit(
            [0.2, 0.8], [0, 1]
        )
