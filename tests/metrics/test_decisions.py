"""The decision calibration error against enumeration, the regret bound, its test and interval."""

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import cross_val_score

from skcalib.decisions import DecisionLoss, bayes_action, expected_loss
from skcalib.forecasts import EnsembleForecast, GaussianForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    decision_calibration,
    decision_calibration_error,
    distribution_matching_error,
    get_scorer,
    make_scorer,
)
from skcalib.uncertainty import compare_models, confidence_interval

RNG = np.random.default_rng(0)
N, K = 60, 3
PROBA = RNG.dirichlet(np.ones(K), size=N)
LABEL = np.argmax(
    np.cumsum(PROBA**2 / np.sum(PROBA**2, axis=1)[:, None], axis=1) > RNG.random((N, 1)), axis=1
)
WEIGHT = RNG.random(N)
GROUP = np.arange(N) % 4
LOSS = np.array([[0, 4, 9], [2, 1, 2], [5, 3, 0]])
MEAN = RNG.normal(size=N)
Y = RNG.normal(MEAN, 1)


def squares(y):
    return np.column_stack([(y - a) ** 2 for a in (-1, 0, 1)])


def gaps_by_loops(loss_at, expected, weight, groups):
    """D_g(a) as sums over samples; loss_at[i][a] and expected[i][a]."""
    total = {}
    weight = np.asarray(weight) / np.sum(weight)
    for i in range(len(weight)):
        for a in range(len(expected[i])):
            gap = weight[i] * (loss_at[i][a] - expected[i][a])
            total[groups[i], a] = total.get((groups[i], a), 0.0) + gap
    return total


def error_by_loops(*arguments):
    return np.sqrt(sum(gap**2 for gap in gaps_by_loops(*arguments).values()))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_classes_equal_loops(weight):
    weights = np.ones(N) if weight is None else weight
    loss_at = [[LOSS[a, y] for a in range(3)] for y in LABEL]
    expected = [[sum(p[k] * LOSS[a, k] for k in range(K)) for a in range(3)] for p in PROBA]
    action = np.argmin(expected, axis=1)
    for given, groups in ((None, np.zeros(N)), ("action", action), (GROUP, GROUP)):
        actual = decision_calibration_error(
            LABEL, PROBA, loss=LOSS, given=given, sample_weight=weight
        )
        assert actual == pytest.approx(
            error_by_loops(loss_at, expected, weights, groups), abs=1e-12
        )
        own = [[loss_at[i][action[i]]] for i in range(N)]
        own_expected = [[expected[i][action[i]]] for i in range(N)]
        actual = decision_calibration_error(
            LABEL, PROBA, loss=LOSS, given=given, compared_actions="chosen", sample_weight=weight
        )
        assert actual == pytest.approx(
            error_by_loops(own, own_expected, weights, groups), abs=1e-12
        )


def test_forecasts_equal_loops():
    expected = np.column_stack([(MEAN - a) ** 2 + 0.25 for a in (-1, 0, 1)])
    action = expected.argmin(axis=1)
    for given, groups in ((None, np.zeros(N)), ("action", action), (GROUP, GROUP)):
        actual = decision_calibration_error(Y, (MEAN, np.full(N, 0.5)), loss=squares, given=given)
        exact = error_by_loops(squares(Y), expected, np.ones(N), groups)
        assert actual == pytest.approx(exact, rel=1e-6)


def test_a_threshold_is_root_two_times_the_difference_of_frequencies():
    gap = np.mean(Y > 0.3) - np.mean(stats.norm.sf(0.3, MEAN, 0.5))
    error = decision_calibration_error(Y, GaussianForecast(MEAN, 0.5), loss=0.3)
    assert error == pytest.approx(np.sqrt(2) * abs(gap), abs=1e-14)
    as_classes = decision_calibration_error(Y > 0.3, stats.norm.sf(0.3, MEAN, 0.5))
    assert error == pytest.approx(as_classes, abs=1e-14)


def test_an_outcome_at_the_threshold_does_not_exceed_it():
    table = decision_calibration([0.0, 0.0], EnsembleForecast([[0.0, 1.0, 2.0]] * 2), loss=0.0)
    assert (table.actions[table.share > 0], table.realised_loss) == (1, 1.0)
    assert table.expected_loss == pytest.approx(1 / 3)


def test_the_own_loss_gap_is_expected_against_realised():
    expected = expected_loss(PROBA, loss=LOSS).mean()
    realised = LOSS[bayes_action(PROBA, loss=LOSS), LABEL].mean()
    gap = decision_calibration_error(LABEL, PROBA, loss=LOSS, compared_actions="chosen")
    assert gap == pytest.approx(abs(expected - realised), abs=1e-14)
    table = decision_calibration(LABEL, PROBA, loss=LOSS)
    assert (table.expected_loss, table.realised_loss) == pytest.approx((expected, realised))


def test_the_table_by_loops():
    table = decision_calibration(LABEL, PROBA, loss=LOSS, sample_weight=WEIGHT)
    action, expected = bayes_action(PROBA, loss=LOSS), PROBA @ LOSS.T
    weight = WEIGHT / WEIGHT.sum()
    for a in range(3):
        rows = np.flatnonzero(action == a)
        share = sum(weight[i] for i in rows)
        assert table.share[a] == pytest.approx(share)
        assert table.expected[a] == pytest.approx(weight[rows] @ expected[rows, a] / share)
        assert table.realised[a] == pytest.approx(weight[rows] @ LOSS[a, LABEL[rows]] / share)
        for b in range(3):
            gap = weight[rows] @ (LOSS[b, LABEL[rows]] - expected[rows, b])
            assert table.gaps[a, b] == pytest.approx(gap, abs=1e-14)
    error = decision_calibration_error(
        LABEL, PROBA, loss=LOSS, given="action", sample_weight=WEIGHT
    )
    assert table.error == pytest.approx(error, abs=1e-14)


def test_standard_errors_are_those_of_drawn_labels():
    # all 81 label vectors of four samples, each with its probability
    proba, weight = PROBA[:4], np.array([1.0, 2.0, 3.0, 4.0])
    action, share = bayes_action(proba, loss=LOSS), weight / 10
    drawn = {labels: 0.0 for labels in itertools.product(range(K), repeat=4)}
    for labels in drawn:
        drawn[labels] = np.prod(proba[np.arange(4), labels])
    losses = np.array([LOSS[action, labels] for labels in drawn])  # (81, 4)
    chance = np.array(list(drawn.values()))
    for labels in ((0, 0, 0, 0), (2, 1, 0, 1)):  # which are seen does not matter
        table = decision_calibration(
            labels, proba, loss=LOSS, sample_weight=weight, labels=range(K)
        )
        for a in np.unique(action):
            taken = action == a
            mean = losses[:, taken] @ share[taken] / share[taken].sum()
            exact = np.sqrt(chance @ (mean - chance @ mean) ** 2)
            assert table.standard_error[a] == pytest.approx(exact, rel=1e-12)
        total = losses @ share
        exact = np.sqrt(chance @ (total - chance @ total) ** 2)
        assert table.standard_error_of_loss == pytest.approx(exact, rel=1e-12)
        assert np.isnan(table.standard_error[np.setdiff1d(range(3), action)]).all()


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_standard_errors_of_forecasts(offset):
    mean, std = np.array([-0.9, -0.3, 0.1, 0.8]), np.array([0.5, 1.0, 0.2, 0.7])
    y = mean.copy()  # no outcome is a surprise
    table = decision_calibration(y, GaussianForecast(mean, std), loss=0.2)
    p = stats.norm.sf(0.2, mean, std)
    assert table.standard_error_of_loss == pytest.approx(np.sqrt(p @ (1 - p)) / 4, rel=1e-12)

    def loss(y):
        return squares(y) + offset

    table = decision_calibration(y, GaussianForecast(mean, std), loss=loss)
    distance = mean - np.clip(np.rint(mean), -1, 1)
    variance = 2 * std**4 + 4 * std**2 * distance**2  # of (Y − a)²
    assert table.standard_error_of_loss == pytest.approx(np.sqrt(variance.sum()) / 4, rel=1e-4)
    first = np.rint(mean) == -1
    assert table.standard_error[0] == pytest.approx(np.sqrt(variance[first][0]), rel=1e-4)
    # a weighted ensemble is a law, and one without weights is judged by what is seen
    members, weight = mean[:, None] + [-0.3, 0.0, 0.2], [0.2, 0.5, 0.3]
    taken = loss(members.ravel()).reshape(4, 3, 3)
    expected = np.einsum("nma,m->na", taken, weight)
    a, rows = expected.argmin(axis=1), np.arange(4)
    variance = (taken[rows, :, a] - expected[rows, a, None]) ** 2 @ weight
    table = decision_calibration(y, EnsembleForecast(members, weight), loss=loss)
    assert table.standard_error_of_loss == pytest.approx(np.sqrt(variance.sum()) / 4, rel=1e-7)
    table = decision_calibration(y, EnsembleForecast(members), loss=loss)
    expected = taken.mean(axis=1)
    a = expected.argmin(axis=1)
    gap = loss(y)[rows, a] - expected[rows, a]
    assert table.standard_error_of_loss == pytest.approx(np.sqrt(gap @ gap) / 4, rel=1e-7)


def test_no_replacement_of_actions_gains_more_than_the_bound():
    rng = np.random.default_rng(1)
    tightest = 0.0
    for _ in range(100):
        n_actions, n_classes = rng.integers(2, 5, size=2)
        loss = rng.normal(size=(n_actions, n_classes))
        proba = rng.dirichlet(np.full(n_classes, 0.5), size=15)
        label = rng.integers(n_classes, size=15)
        table = decision_calibration(label, proba, loss=loss, labels=np.arange(n_classes))
        action = bayes_action(proba, loss=loss)
        realised = loss[action, label].mean()
        others = itertools.product(range(n_actions), repeat=n_actions)
        gains = [realised - loss[np.array(other)[action], label].mean() for other in others]
        assert table.regret == pytest.approx(max(gains), abs=1e-12)
        assert max(gains) <= table.regret_bound + 1e-12
        assert table.regret_bound <= 2 * np.sqrt(n_actions) * table.error + 1e-12
        tightest = max(tightest, max(gains) / table.regret_bound)
    assert tightest > 0.4  # the bound is of the right size


def test_calibrated_means_have_no_gap():
    # all label vectors of three samples, each with its probability
    proba = np.array([0.2, 0.5, 0.9])
    total = 0.0
    for labels in itertools.product([0, 1], repeat=3):
        chance = np.prod(np.where(labels, proba, 1 - proba))
        total += (
            chance * decision_calibration(labels, proba, loss=[[0, 3], [1, 0]], labels=[0, 1]).gaps
        )
    np.testing.assert_allclose(total, 0, atol=1e-15)


def test_columns_of_losses_are_in_the_order_of_labels():
    y, p = LABEL > 0, PROBA[:, 0]
    loss, swapped = [[0, 5], [1, 0]], [[5, 0], [0, 1]]
    names = np.where(y, "b", "a")
    expected = decision_calibration_error(y, 1 - p, loss=loss, given="action")
    both = np.column_stack([p, 1 - p])
    for options in (
        {"y_pred": both, "loss": loss},
        {"y_pred": p, "loss": loss, "pos_label": "a"},
        {"y_pred": both, "loss": loss, "pos_label": "a"},
        {"y_pred": both[:, ::-1], "loss": swapped, "labels": ["b", "a"]},
        {"y_pred": p, "loss": swapped, "labels": ["b", "a"]},
        {"y_pred": 1 - p, "loss": swapped, "labels": ["b", "a"], "pos_label": "b"},
    ):
        actual = decision_calibration_error(names, given="action", **options)
        assert actual == pytest.approx(expected, abs=1e-13)
    named = DecisionLoss(loss, actions=["grant", "refuse"])
    for event in "ab":
        proba = p if event == "a" else 1 - p
        classes = DecisionLoss("zero-one", actions=["say a", "say b"])
        table = decision_calibration(names, proba, loss=classes, pos_label=event)
        assert table.share[0] == pytest.approx(np.mean(p > 0.5))
        assert table.actions.tolist() == ["say a", "say b"]
    table = decision_calibration(names, p, loss=named, pos_label="a")
    assert table.actions.tolist() == ["grant", "refuse"]
    assert table.error == pytest.approx(expected, abs=1e-13)


def test_groups_and_actions():
    action = bayes_action(PROBA, loss=LOSS)
    both = decision_calibration_error(
        LABEL, PROBA, loss=LOSS, given=np.column_stack([GROUP, action])
    )
    squared = []
    for g in range(4):
        rows = np.flatnonzero(g == GROUP)
        of_group = decision_calibration_error(LABEL[rows], PROBA[rows], loss=LOSS, given="action")
        squared.append((len(rows) / N * of_group) ** 2)
    assert both == pytest.approx(np.sqrt(sum(squared)), abs=1e-13)
    names = np.array(list("abcd"))[GROUP]
    assert decision_calibration_error(LABEL, PROBA, loss=LOSS, given=names) == pytest.approx(
        decision_calibration_error(LABEL, PROBA, loss=LOSS, given=GROUP), abs=1e-14
    )


FORMS = {"marginal": {}, "by action": {"given": "action"}, "chosen": {"compared_actions": "chosen"}}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["classes", "threshold", "callable", "ensemble"])
def test_the_statistic_of_the_test_is_the_metric(form, kind):
    ensemble = EnsembleForecast(MEAN[:, None] + RNG.normal(size=(N, 4)))
    y, predicted, loss = {
        "classes": (LABEL, PROBA, LOSS),
        "threshold": (Y, GaussianForecast(MEAN, 0.7), 0.1),
        "callable": (Y, GaussianForecast(MEAN, 0.7), squares),
        "ensemble": (Y, ensemble, squares),
    }[kind]
    params = {"loss": loss, **FORMS[form]}

    def slow(y_true, y_proba):
        return decision_calibration_error(y_true, y_proba, **params)

    test = CalibrationTest(
        "decision_calibration_error", metric_params=params, n_resamples=20, random_state=0
    ).fit(predicted, y)
    assert test.statistic_ == pytest.approx(slow(y, predicted), abs=1e-13)
    twin = CalibrationTest(slow, n_resamples=20, random_state=0).fit(predicted, y)
    # the batches of the twin have other seeds, but their law is the same
    assert twin.statistic_ == pytest.approx(test.statistic_, abs=1e-13)
    assert stats.ks_2samp(twin.null_distribution_, test.null_distribution_).pvalue > 1e-4


def test_small_blocks_of_draws(monkeypatch):
    test = CalibrationTest(
        "decision_calibration_error", metric_params={"loss": LOSS}, n_resamples=30, random_state=0
    )
    expected = test.fit(PROBA, LABEL).null_distribution_
    monkeypatch.setattr("skcalib._statistics.decisions._MAX_BLOCK_NUMBERS", 1)
    np.testing.assert_allclose(test.fit(PROBA, LABEL).null_distribution_, expected, atol=1e-14)


def rejections(method, draw, n_runs, labels=None, **params):
    test = CalibrationTest(
        "decision_calibration_error",
        metric_params=params,
        method=method,
        labels=labels,
        n_resamples=19 if method == "conditional" else 99,
        random_state=0,
    )
    return sum(test.fit(*draw()).p_value_ <= 0.05 for _ in range(n_runs)) / n_runs


def test_sizes_of_the_exact_test():  # 0.4 s: fewer than a hundred tests hardly bound a size
    rng = np.random.default_rng(2)

    def classes():
        proba = rng.dirichlet(np.ones(3), size=10)
        return proba, np.argmax(np.cumsum(proba, axis=1) > rng.random((10, 1)), axis=1)

    def ensembles():
        values = rng.normal(size=(10, 4))
        return EnsembleForecast(values[:, 1:]), values[:, 0]

    slack = 4 * np.sqrt(0.05 * 0.95 / 100)
    for share in (
        rejections("conditional", classes, 100, [0, 1, 2], loss=LOSS, given="action"),
        rejections("conditional", ensembles, 100, loss=squares, given="action"),
    ):
        assert abs(share - 0.05) <= slack


def test_asymptotic_tests_the_gaps_alone():
    # N(−x, 1) for N(x, 1): right on average, so that a threshold has no gap, and wrong given x
    rng = np.random.default_rng(3)

    def reflected():
        x = 2 * rng.normal(size=200)
        return GaussianForecast(-x, 0.5), rng.normal(x, 0.5)

    slack = 4 * np.sqrt(0.05 * 0.95 / 100)
    assert abs(rejections("asymptotic", reflected, 150, loss=0.0) - 0.05) <= slack
    assert rejections("conditional", reflected, 50, loss=0.0) > 0.2
    assert rejections("asymptotic", reflected, 20, loss=0.0, given="action") == 1


def test_the_bootstrap_is_centred_at_the_gaps():
    from skcalib._data import check_predictions
    from skcalib._statistics.decisions import DecisionGaps

    gaps = DecisionGaps(check_predictions(LABEL, PROBA), loss=LOSS, given="action")
    null = gaps.resample_null(20000, np.random.RandomState(0))
    terms, code = gaps.terms()[0] / N, gaps.code
    variance = 0.0
    for g in range(len(gaps.groups)):
        own = terms * (code == g)[:, None]
        variance += N * np.var(own, axis=0).sum()
    assert np.mean(null**2) == pytest.approx(variance, rel=0.03)


def test_the_order_of_samples_does_not_matter_to_the_bootstrap():
    test = CalibrationTest(
        "decision_calibration_error",
        metric_params={"loss": LOSS, "given": "action"},
        method="asymptotic",
        random_state=0,
    )
    order = RNG.permutation(N)
    null = test.fit(PROBA, LABEL, sample_weight=WEIGHT).null_distribution_
    again = test.fit(PROBA[order], LABEL[order], sample_weight=WEIGHT[order]).null_distribution_
    np.testing.assert_allclose(again, null, atol=1e-13)


def test_power():
    rng = np.random.default_rng(4)
    proba = rng.random(300)
    y = rng.random(300) < proba**2
    for method in ("conditional", "asymptotic"):
        test = CalibrationTest(
            "decision_calibration_error",
            metric_params={"loss": [[0, 5], [1, 0]]},
            method=method,
            n_resamples=99,
            random_state=0,
        )
        assert test.fit(proba, y).p_value_ == 0.01


def test_intervals_and_comparisons():
    rng = np.random.default_rng(5)
    proba = rng.random(400)
    y = rng.random(400) < proba**2
    params = {"loss": [[0, 5], [1, 0]], "given": "action"}
    interval = confidence_interval(
        "decision_calibration_error", y, proba, metric_params=params, n_resamples=60, random_state=0
    )
    assert 0 < interval.low < interval.estimate < interval.high
    assert interval.estimate == decision_calibration_error(y, proba, **params)
    difference = compare_models(
        "decision_calibration_error",
        y,
        proba,
        proba**2,
        metric_params=params,
        n_resamples=60,
        random_state=0,
    )
    assert difference.p_value < 0.05
    group = np.arange(400) % 3
    by_group = confidence_interval(
        "decision_calibration_error",
        y,
        proba,
        given=group,
        metric_params={"loss": params["loss"]},
        n_resamples=60,
        random_state=0,
    )
    assert by_group.estimate == decision_calibration_error(
        y, proba, loss=params["loss"], given=group
    )


def test_scorers():
    X, y = np.arange(20)[:, None], np.arange(20) % 3
    model = DummyClassifier(strategy="prior").fit(X, y)
    proba = model.predict_proba(X)
    scorer = make_scorer(decision_calibration_error, loss=LOSS, given="action")
    assert scorer(model, X, y) == -decision_calibration_error(y, proba, loss=LOSS, given="action")
    ready = get_scorer("neg_decision_calibration_error")
    assert ready(model, X, y) == -decision_calibration_error(y, proba)
    assert cross_val_score(model, X, y, scoring=scorer, cv=3).shape == (3,)


def test_distribution_matching_takes_the_same_losses():
    def error(loss):
        return distribution_matching_error(LABEL, PROBA, calibration="decision", loss=loss)

    expected = error(LOSS)
    assert error(LOSS.tolist()) == expected
    assert error([LOSS]) == expected
    assert error(DecisionLoss(LOSS, actions=["a", "b", "c"])) == expected
    group = bayes_action(PROBA, loss=0.5, labels=[0, 1, 2])
    by_group = distribution_matching_error(LABEL, PROBA, calibration="group", given=group)
    assert error(0.5) == pytest.approx(by_group, abs=1e-14)


BAD = {
    "another shape": ({"loss": [[0, 1]]}, "one column for each of the 3 classes"),
    "given": ({"given": "actions"}, "given must be None, 'action', or an array"),
    "given length": ({"given": [1, 2]}, "inconsistent numbers of samples"),
    "threshold": ({"loss": 5}, "classes on both sides"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        decision_calibration_error(LABEL, PROBA, **options)


def test_large_integers_are_thresholds():
    assert DecisionLoss(10**30).loss == 1e30
    with pytest.raises(ValueError, match="loss must be a finite number"):
        DecisionLoss(10**400)


def test_bad_input_of_forecasts_and_tests():
    forecast = GaussianForecast(MEAN, 1.0)
    with pytest.raises(ValueError, match="loss must be a finite number"):
        decision_calibration_error(Y, forecast)
    with pytest.raises(ValueError, match="pos_label must be None"):
        decision_calibration_error(Y, forecast, loss=0.5, pos_label=1)
    with pytest.raises(ValueError, match="labels must be None"):
        decision_calibration_error(Y, forecast, loss=0.5, labels=[0, 1])
    test = CalibrationTest(
        "decision_calibration_error", metric_params={"loss": LOSS, "given": "action"}
    )
    with pytest.raises(ValueError, match="given must be 'action' or an array, not both"):
        test.fit(PROBA, LABEL, given=GROUP)
    with pytest.raises(ValueError, match=r"metric_params must not hold data.*'given'"):
        test.set_params(metric_params={"loss": LOSS, "given": GROUP}).fit(PROBA, LABEL)
    with pytest.raises(ValueError, match="method='distribution-free' needs"):
        test.set_params(metric_params={"loss": LOSS}, method="distribution-free").fit(PROBA, LABEL)
