"""What `DecisionRecalibrator` promises: less error, nothing significant left, no needless shift."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from skcalib.decisions import bayes_action
from skcalib.metrics import decision_calibration
from skcalib.recalibration import DecisionRecalibrator
from skcalib.recalibration._decision import best_shift, loss_directions, onto_simplex

RNG = np.random.default_rng(0)


def draw(proba, generator):
    return np.argmax(np.cumsum(proba, axis=1) > generator.random((len(proba), 1)), axis=1)


def overconfident(n, n_classes, seed, power=2.0):
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet(np.full(n_classes, 0.7), size=n)
    proba = truth**power
    return proba / proba.sum(axis=1, keepdims=True), draw(truth, generator), truth


def test_one_shift_by_hand():
    # 8 of 40 loans fail where 0.04 is expected; the second group is right
    proba = np.r_[np.full(40, 0.04), np.full(40, 0.5)]
    failed = np.r_[np.arange(40) < 8, np.arange(40) < 20]
    fitted = DecisionRecalibrator(loss=[[0, 9], [1, 0]]).fit(proba, failed)
    assert fitted.n_rounds_ == 1
    np.testing.assert_allclose(fitted.shifts_, [[[-0.16, 0.16], [0, 0]]], atol=1e-15)
    np.testing.assert_allclose(fitted.predict_proba([0.04, 0.5])[:, 1], [0.2, 0.5])


def test_the_surprise_is_the_squared_z_score_of_two_classes():
    p, n = 0.3, 50
    label = (np.arange(n) < 22).astype(int)
    shift = best_shift(
        np.tile([1 - p, p], (n, 1)), label, np.ones(n), np.ones(n), loss_directions(np.eye(2))
    )
    from scipy.stats import norm

    shifted = 0.44  # varies more
    z = (0.44 - p) / np.sqrt(shifted * (1 - shifted) / n)
    assert shift.p_value == pytest.approx(2 * norm.sf(z), rel=1e-6)
    np.testing.assert_allclose(shift.vector, [-0.14, 0.14])


def test_directions_are_those_in_which_losses_change():
    losses = RNG.normal(size=(5, 2)) @ RNG.normal(size=(2, 4)) + RNG.normal(size=4)
    directions = loss_directions(losses)
    assert directions.shape == (5, 2)
    np.testing.assert_allclose(directions.T @ directions, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(directions.sum(axis=0), 0, atol=1e-12)
    residual = RNG.normal(size=5)
    residual -= residual.mean()
    seen = directions @ (directions.T @ residual)
    np.testing.assert_allclose(seen @ losses, residual @ losses, atol=1e-12)
    assert loss_directions(np.full((3, 2), 7.0)).shape == (3, 0)


def test_the_nearest_probabilities():
    points = RNG.normal(size=(6, 4)) * 0.5 + 0.25
    points += (1 - points.sum(axis=1, keepdims=True)) / 4
    for point, nearest in zip(points, onto_simplex(points), strict=True):
        found = minimize(
            lambda q, point=point: np.sum((q - point) ** 2),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(nearest, found.x, atol=1e-6)
    inside = RNG.dirichlet(np.ones(4), size=3)
    assert onto_simplex(inside) is inside


@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_round_lowers_the_squared_error_by_its_share(n_classes):
    for seed in range(2):
        proba, label, _ = overconfident(400, n_classes, seed)
        loss = np.random.default_rng(seed).random((3, n_classes))
        fitted = DecisionRecalibrator(loss=loss, alpha=1.0, max_rounds=500).fit(proba, label)
        onehot = np.eye(n_classes)[label]
        matrix = proba
        error = np.mean(np.sum((onehot - matrix) ** 2, axis=1))
        for shift in fitted.shifts_:
            action = bayes_action(matrix, loss=loss)
            promised = np.mean(np.sum(shift[action] ** 2, axis=1))
            matrix = onto_simplex(matrix + shift[action])
            new = np.mean(np.sum((onehot - matrix) ** 2, axis=1))
            assert new <= error - promised + 1e-12
            error = new
        np.testing.assert_allclose(fitted.transform(proba), matrix, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_without_a_test_nothing_is_left(weighted):
    for seed in range(2):
        proba, label, _ = overconfident(300, 4, seed)
        generator = np.random.default_rng(seed)
        loss = generator.random((3, 4))
        weight = generator.random(300) if weighted else None
        fitted = DecisionRecalibrator(loss=loss, alpha=1.0, max_rounds=2000)
        after = fitted.fit(proba, label, sample_weight=weight).transform(proba)
        table = decision_calibration(label, after, loss=loss, sample_weight=weight)
        assert table.error < 1e-7
        assert table.regret < 1e-7
        assert table.realised_loss == pytest.approx(table.expected_loss, abs=1e-7)


def test_at_the_end_nothing_is_significant():
    proba, label, _ = overconfident(2000, 3, 0)
    loss = np.array([[0, 4, 9], [2, 1, 2], [5, 3, 0]])
    fitted = DecisionRecalibrator(loss=loss, alpha=0.05).fit(proba, label)
    before = decision_calibration(label, proba, loss=loss)
    after_proba = fitted.transform(proba)
    after = decision_calibration(label, after_proba, loss=loss)
    assert fitted.n_rounds_ >= 1
    assert after.error < before.error / 2
    assert DecisionRecalibrator(loss=loss, alpha=0.05).fit(after_proba, label).n_rounds_ == 0
    action = bayes_action(after_proba, loss=loss)
    for a in np.unique(action):
        rows = action == a
        residual = (np.eye(3)[label] - after_proba)[rows]
        z = residual.mean(axis=0) / (residual.std(axis=0) / np.sqrt(rows.sum()))
        assert np.abs(z).max() < 3


@pytest.mark.parametrize(("n", "n_classes"), [(60, 2), (400, 4)])
def test_calibrated_probabilities_stay_as_they_are(n, n_classes):
    generator = np.random.default_rng(n + n_classes)
    moved = 0
    for _ in range(80):
        proba = generator.dirichlet(np.full(n_classes, 0.3), size=n)
        label = draw(proba, generator)
        recalibrator = DecisionRecalibrator(
            loss=generator.random((3, n_classes)), alpha=0.1, labels=np.arange(n_classes)
        )
        fitted = recalibrator.fit(proba, label)
        if fitted.n_rounds_:
            moved += 1
        else:
            np.testing.assert_allclose(fitted.transform(proba), proba, atol=1e-15)
    assert moved / 80 <= 0.1 + 4 * np.sqrt(0.1 * 0.9 / 80)


def test_new_data_cost_less():
    # as after training on classes whose frequencies were evened out
    gains, gaps = [], []
    for seed in range(10):
        _, label, truth = overconfident(1000, 3, seed)
        _, _, new_truth = overconfident(4000, 3, 1000 + seed)
        proba, new = (part * [0.3, 1, 4] for part in (truth, new_truth))
        proba, new = (part / part.sum(axis=1, keepdims=True) for part in (proba, new))
        loss = np.array([[0, 4, 9], [2, 1, 2], [5, 3, 0]])
        fitted = DecisionRecalibrator(loss=loss).fit(proba, label)
        cost = new_truth @ loss.T  # expected, by the true probabilities
        rows, mended = np.arange(4000), fitted.transform(new)
        action = bayes_action(new, loss=loss), bayes_action(mended, loss=loss)
        before, after = (cost[rows, one].mean() for one in action)
        gains.append(before - after)
        expected = [np.min(one @ loss.T, axis=1).mean() for one in (new, mended)]
        gaps.append([abs(expected[0] - before), abs(expected[1] - after)])
    assert np.mean(gains) > 4 * np.std(gains, ddof=1) / np.sqrt(10)
    assert np.mean(gaps, axis=0)[1] < np.mean(gaps, axis=0)[0] / 3


def test_too_few_rounds_give_a_warning():
    proba, label, _ = overconfident(500, 4, 3)
    recalibrator = DecisionRecalibrator(loss=RNG.random((3, 4)), alpha=1.0, max_rounds=1)
    with pytest.warns(ConvergenceWarning, match="not ended after max_rounds=1 rounds"):
        recalibrator.fit(proba, label)
    assert recalibrator.n_rounds_ == 1


def test_losses_that_never_differ_change_nothing():
    proba, label, _ = overconfident(300, 3, 0)
    fitted = DecisionRecalibrator(loss=np.ones((2, 3))).fit(proba, label)
    np.testing.assert_array_equal(fitted.transform(proba), proba)


def test_impossible_labels_are_significant():
    proba = np.tile([1.0, 0.0], (30, 1))
    fitted = DecisionRecalibrator(labels=[False, True]).fit(proba, np.arange(30) < 10)
    np.testing.assert_allclose(fitted.transform([[1.0, 0.0]]), [[2 / 3, 1 / 3]])


def test_bad_losses():
    proba, label, _ = overconfident(30, 3, 0)
    for loss, message in (
        ([[0, 1]], "one column for each of the 3 classes"),
        ("hinge", "loss must be 'zero-one'"),
        (7, "classes on both sides"),
    ):
        with pytest.raises(ValueError, match=message):
            DecisionRecalibrator(loss=loss).fit(proba, label)
