"""Intercepts are the optimum of their written-out loss; the closed test is that of the paper."""

import itertools

import numpy as np
import pytest
from problems import random_problem, two_columns
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_softmax, logit, softmax
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from skcalib.recalibration import ClosedTestingRecalibrator, InterceptRecalibrator
from skcalib.recalibration._updating import numbers_of_parameters, sandwich_traces

NAMES = ["none", "intercept", "intercept and slope", "flexible"]

both_kinds = pytest.mark.parametrize("n_classes", [2, 3])


def weighted_problem(seed, n_classes, n=60):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n, n_classes)
    proba = two_columns(proba) if n_classes == 2 else proba
    label[:n_classes] = range(n_classes)
    weight = rng.random(n)
    return label, proba, weight / weight.sum()


def target_of(label, proba, weight, prior_weight):
    share = prior_weight * (weight**2).sum()
    return (np.eye(proba.shape[1])[label] + share * proba) / (1 + share)


def least_losses(log_proba, target, weight):
    """The least cross-entropy of each of the four updates, by a general optimiser."""
    n_classes = log_proba.shape[1]

    def loss(scale, shift):
        fitted = log_softmax(scale * log_proba + shift, axis=1)
        return -weight @ (target * fitted).sum(axis=1)

    ones, zeros = np.ones(n_classes), np.zeros(n_classes)
    forms = [
        (lambda x: (1.0, x), zeros),
        (lambda x: (x[0], x[1:]), np.append(1.0, zeros)),
        (lambda x: (x[:n_classes], x[n_classes:]), np.append(ones, zeros)),
    ]
    losses = [loss(1.0, zeros)]
    for form, start in forms:
        found = minimize(lambda x, form=form: loss(*form(x)), start, options={"gtol": 1e-9})
        losses.append(found.fun)
    return losses


def test_an_intercept_by_hand():
    # odds of 1/9 become 1/3, and odds of 1 become 3
    recalibrator = InterceptRecalibrator(prior_weight=0).fit([0.1] * 4, [0, 0, 0, 1])
    assert recalibrator.intercept_ == pytest.approx([np.log(3)], abs=1e-12)
    np.testing.assert_allclose(recalibrator.predict_proba([0.1, 0.5])[:, 1], [0.25, 0.75])
    # of three classes with the same rows, the shares
    proba = np.tile([0.5, 0.3, 0.2], (4, 1))
    recalibrator = InterceptRecalibrator(prior_weight=0).fit(proba, [0, 1, 1, 2])
    np.testing.assert_allclose(recalibrator.predict_proba(proba[:1]), [[0.25, 0.5, 0.25]])
    assert recalibrator.intercept_.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("prior_weight", [0.0, 3.0])
def test_an_intercept_equals_a_root_finder(prior_weight):
    label, proba, weight = weighted_problem(0, 2)
    target = target_of(label, proba, weight, prior_weight)[:, 1]
    scores = logit(proba[:, 1])
    root = brentq(lambda a: weight @ (expit(a + scores) - target), -9, 9, xtol=1e-14)
    recalibrator = InterceptRecalibrator(prior_weight=prior_weight)
    recalibrator.fit(proba, label, sample_weight=weight)
    assert recalibrator.intercept_ == pytest.approx([root], abs=1e-11)
    np.testing.assert_allclose(recalibrator.predict_proba(proba)[:, 1], expit(root + scores))


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_the_mean_becomes_the_frequencies(n_classes):
    # the condition of the optimum, and with a strictly convex loss enough for it
    label, proba, weight = weighted_problem(1, n_classes)
    recalibrator = InterceptRecalibrator().fit(proba, label, sample_weight=weight)
    expected = weight @ target_of(label, proba, weight, 1.0)
    np.testing.assert_allclose(weight @ recalibrator.predict_proba(proba), expected, atol=1e-10)
    shift = np.log(recalibrator.predict_proba(proba)) - np.log(proba)
    shift -= shift.mean(axis=1, keepdims=True)
    assert np.ptp(shift, axis=0).max() < 1e-10  # the same for all rows
    logits = InterceptRecalibrator(input_type="logits")
    logits.fit(np.log(proba) + 7, label, sample_weight=weight)
    np.testing.assert_allclose(logits.intercept_, recalibrator.intercept_, atol=1e-9)


def test_an_intercept_without_a_maximum():
    with pytest.warns(ConvergenceWarning, match="has no maximum"):
        InterceptRecalibrator(prior_weight=0, labels=[0, 1]).fit([0.2, 0.4], [0, 0])
    finite = InterceptRecalibrator(labels=[0, 1]).fit([0.2, 0.4], [0, 0])
    assert -3 < finite.intercept_[0] < 0


@pytest.mark.parametrize("prior_weight", [0.0, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_statistics_are_likelihood_ratios(n_classes, prior_weight):
    label, proba, _ = weighted_problem(2, n_classes, n=100)
    weight = np.full(100, 0.01)
    recalibrator = ClosedTestingRecalibrator(prior_weight=prior_weight).fit(proba, label)
    target = target_of(label, proba, weight, prior_weight)
    *smaller, flexible = least_losses(np.log(proba), target, weight)
    freedoms = 2 * n_classes - 1, n_classes, n_classes - 1
    for name, loss, freedom in zip(NAMES, smaller, freedoms, strict=False):
        statistic = 2 * 100 * (loss - flexible)
        assert recalibrator.statistics_[name] == pytest.approx(statistic, abs=1e-6)
        assert recalibrator.degrees_of_freedom_[name] == freedom
        expected = chi2.sf(statistic, freedom)
        assert recalibrator.p_values_[name] == pytest.approx(expected, rel=1e-6)
    assert [*recalibrator.p_values_] == NAMES[:-1]


@both_kinds
def test_the_update_is_the_first_that_is_not_rejected(n_classes):
    seen = set()
    for seed, level in itertools.product(range(3), [1e-9, 1e-3, 0.05, 0.5, 1.0]):
        label, proba, weight = weighted_problem(seed, n_classes)
        recalibrator = ClosedTestingRecalibrator(alpha=level).fit(proba, label, weight)
        p_values = list(recalibrator.p_values_.values())
        kept = [name for name, p in zip(NAMES, p_values, strict=False) if p > level]
        assert recalibrator.chosen_ == [*kept, "flexible"][0]
        seen.add(recalibrator.chosen_)
    assert len(seen) >= 3


@both_kinds
def test_each_update_is_of_its_form_and_the_best(n_classes):
    label, proba, _ = weighted_problem(3, n_classes)
    weight = np.full(60, 1 / 60)
    target = target_of(label, proba, weight, 1.0)
    losses = least_losses(np.log(proba), target, weight)
    found = {}
    p_values = ClosedTestingRecalibrator().fit(proba, label).p_values_.values()
    for level in [1e-300, *p_values, 1.0]:
        recalibrator = ClosedTestingRecalibrator(alpha=level).fit(proba, label)
        found[recalibrator.chosen_] = recalibrator
    assert {"none", "flexible"} < set(found)
    for name, recalibrator in found.items():
        scale, shift = recalibrator.coef_, recalibrator.intercept_
        assert shift.sum() == pytest.approx(0, abs=1e-12)
        if name != "flexible":
            assert np.ptp(scale) == 0
        if name in ("none", "intercept"):
            np.testing.assert_array_equal(scale, 1)
        expected = softmax(scale * np.log(proba) + shift, axis=1)
        actual = recalibrator.predict_proba(proba)
        np.testing.assert_allclose(actual, expected, atol=1e-12)
        loss = -weight @ (target * np.log(actual)).sum(axis=1)
        assert loss == pytest.approx(losses[NAMES.index(name)], abs=1e-9)


def test_without_an_update_predictions_stay_exactly():
    proba = np.array([0.0, 0.3, 0.7, 1.0, 0.5])
    recalibrator = ClosedTestingRecalibrator().fit(proba, [0, 0, 1, 1, 0])
    assert recalibrator.chosen_ == "none"
    np.testing.assert_array_equal(recalibrator.predict_proba(proba), two_columns(proba))
    assert recalibrator.smallest_probability_ == 0
    logits = ClosedTestingRecalibrator(input_type="logits").fit([-2.0, 1.0, 0.5], [0, 1, 1])
    assert logits.chosen_ == "none"
    np.testing.assert_allclose(logits.predict_proba([-2.0])[:, 1], expit([-2.0]), rtol=1e-12)


DEGENERATE = {
    "constant": (np.full(6, 0.3), {"none": 1, "intercept": 0, "intercept and slope": 0}),
    "two values": (
        np.array([0.2, 0.2, 0.2, 0.7, 0.7, 0.7]),
        {"none": 2, "intercept": 1, "intercept and slope": 0},
    ),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_parameters_without_effect_do_not_count(case):
    proba, freedoms = DEGENERATE[case]
    recalibrator = ClosedTestingRecalibrator(alpha=1.0).fit(proba, [0, 1, 1, 0, 0, 1])
    assert recalibrator.degrees_of_freedom_ == freedoms
    assert recalibrator.p_values_["intercept and slope"] == 1
    assert recalibrator.chosen_ == "flexible"  # a level of 1 rejects everything
    assert np.abs(recalibrator.coef_).max() < 30


def rows_of_rank(case, rng):
    proba = rng.dirichlet(np.ones(4), size=20)
    if case == "constant":
        proba[:] = proba[0]
    elif case == "two kinds":
        proba[:] = proba[rng.integers(0, 2, size=20)]
    elif case == "one constant column":
        proba[:, 1:] *= 0.6 / proba[:, 1:].sum(axis=1, keepdims=True)
        proba[:, 0] = 0.4
    return proba


@pytest.mark.parametrize("case", ["any", "constant", "two kinds", "one constant column"])
def test_numbers_of_parameters_are_ranks(case):
    proba = rows_of_rank(case, np.random.default_rng(0))
    log_proba = np.log(proba)
    n, n_classes = proba.shape
    scales = np.stack([np.where(np.arange(4) == k, log_proba, 0).ravel() for k in range(4)], axis=1)
    shifts = np.tile(np.eye(n_classes), (n, 1))
    rows = np.repeat(np.eye(n), n_classes, axis=0)  # added to all scores of a row
    ranks = [
        np.linalg.matrix_rank(np.hstack([rows, *columns])) - n
        for columns in ([], [shifts], [shifts, log_proba.reshape(-1, 1)], [shifts, scales])
    ]
    assert list(numbers_of_parameters(log_proba)) == ranks


@both_kinds
def test_the_effects_of_weights_are_traces(n_classes):
    _, proba, weight = weighted_problem(4, n_classes, n=30)
    rng = np.random.default_rng(0)
    scale, shift, log_proba = 1 + 0.2 * rng.random(n_classes), rng.random(n_classes), np.log(proba)
    fitted = softmax(scale * log_proba + shift, axis=1)
    information = noise = 0.0
    for x, p, w in zip(log_proba, fitted, weight, strict=True):
        gradient = np.hstack([np.diag(x), np.eye(n_classes)])  # of the scores, (K, 2K)
        covariance = gradient.T @ (np.diag(p) - np.outer(p, p)) @ gradient
        information, noise = information + w * covariance, noise + w**2 * covariance
    eye = np.eye(2 * n_classes)
    common = np.append(np.ones(n_classes), np.zeros(n_classes))[:, None]
    # shifts but for the last, which a common number replaces
    shifts = eye[:, n_classes:-1]
    bases = [np.hstack([shifts, common]), np.hstack([eye[:, :n_classes], shifts]), shifts]
    slope, flexible, intercept = (
        np.trace(np.linalg.solve(b.T @ information @ b, b.T @ noise @ b)) for b in bases
    )
    actual = sandwich_traces(scale, shift, log_proba, weight, weight**2)
    np.testing.assert_allclose(actual, [0, intercept, slope, flexible], rtol=1e-8)
    equal = sandwich_traces(scale, shift, log_proba, *np.full((30, 2), [1 / 30, 1 / 900]).T)
    np.testing.assert_allclose(equal, np.array(numbers_of_parameters(log_proba)) / 30, rtol=1e-8)


def test_nearly_equal_weights_are_nearly_none():
    label, proba, weight = weighted_problem(5, 3)
    plain = ClosedTestingRecalibrator().fit(proba, label)
    near = ClosedTestingRecalibrator().fit(proba, label, sample_weight=1 + 1e-9 * weight)
    for name in NAMES[:-1]:
        assert near.statistics_[name] == pytest.approx(plain.statistics_[name], rel=1e-6)


@both_kinds
def test_statistics_of_weighted_samples_are_divided_by_their_inflation(n_classes):
    label, proba, weight = weighted_problem(6, n_classes)
    recalibrator = ClosedTestingRecalibrator().fit(proba, label, sample_weight=weight)
    log_proba = np.log(proba)
    losses = least_losses(log_proba, target_of(label, proba, weight, 1.0), weight)
    moved = InterceptRecalibrator().fit(proba, label, sample_weight=weight).predict_proba(proba)
    shift = np.log(moved[0]) - log_proba[0]
    for k, at in enumerate((np.zeros(n_classes), shift)):
        effects = sandwich_traces(np.ones(n_classes), at, log_proba, weight, weight**2)
        freedom = 2 * n_classes - 1 if k == 0 else n_classes
        expected = 2 * (losses[k] - losses[-1]) * freedom / (effects[-1] - effects[k])
        assert recalibrator.statistics_[NAMES[k]] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.filterwarnings("ignore:The fit of:sklearn.exceptions.ConvergenceWarning")
def test_weighted_predictions_without_doubt_can_be_tested(n_classes):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        proba = softmax(200 * rng.normal(size=(5, n_classes)), axis=1)
        label, weight = proba.argmax(axis=1), rng.random(5)
        recalibrator = ClosedTestingRecalibrator(labels=range(n_classes))
        recalibrator.fit(proba, label, sample_weight=weight)
        assert recalibrator.chosen_ == "none"
        assert all(0 < p <= 1 for p in recalibrator.p_values_.values())


def test_an_update_goes_as_far_as_it_must():
    rng = np.random.default_rng(0)
    scores = 1.5 * rng.normal(size=2000)
    y = rng.random(2000) < expit(scores)
    for distort, expected in (
        (lambda s: s, "none"),
        (lambda s: s - 0.7, "intercept"),
        (lambda s: 1.5 * s + 0.3, "intercept and slope"),
        (lambda s: s + 0.5 * np.abs(s), "flexible"),
    ):
        recalibrator = ClosedTestingRecalibrator().fit(expit(distort(scores)), y)
        assert recalibrator.chosen_ == expected


def test_bad_levels():
    for level in (0, 1.5, "a"):
        with pytest.raises(ValueError, match="'alpha' parameter of ClosedTestingRecalibrator"):
            ClosedTestingRecalibrator(alpha=level).fit([0.2, 0.4, 0.8], [0, 1, 1])


def choices(n, n_classes, repeats, seed, distort=lambda scores: scores, weights=None):
    rng = np.random.default_rng(seed)
    chosen = []
    for _ in range(repeats):
        scores = rng.normal(size=(n, n_classes)) * 1.2 - np.arange(n_classes) / 2
        label = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
        proba = softmax(distort(scores), axis=1)
        weight = None if weights is None else weights(rng, proba)
        recalibrator = ClosedTestingRecalibrator(labels=np.arange(n_classes))
        chosen.append(recalibrator.fit(proba, label, sample_weight=weight).chosen_)
    return np.array(chosen)


def most(level, repeats):
    return level + 4 * np.sqrt(level * (1 - level) / repeats)


@pytest.mark.parametrize(
    ("n", "n_classes", "repeats"),
    [
        (100, 2, 60),  # 0.3 s: fewer repetitions hardly bound the share
        pytest.param(50, 2, 1000, marks=pytest.mark.slow),
        pytest.param(200, 2, 1000, marks=pytest.mark.slow),
        pytest.param(2000, 2, 400, marks=pytest.mark.slow),
        pytest.param(100, 4, 400, marks=pytest.mark.slow),
        pytest.param(1000, 4, 300, marks=pytest.mark.slow),
    ],
)
def test_calibrated_predictions_are_seldom_updated(n, n_classes, repeats):
    chosen = choices(n, n_classes, repeats, seed=n)
    assert np.mean(chosen != "none") <= most(0.05, repeats)


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights",
    [
        lambda rng, proba: rng.exponential(size=len(proba)) ** 2,
        lambda rng, proba: 1 / (0.05 + proba[:, 1]),
    ],
    ids=["independent", "inverse"],
)
def test_nor_are_weighted_ones(weights):
    chosen = choices(400, 2, 400, seed=0, weights=weights)
    assert np.mean(chosen != "none") <= most(0.06, 400)  # the shape is approximate


@pytest.mark.slow
@both_kinds
def test_updates_beyond_what_is_enough_are_rare(n_classes):
    shift = np.linspace(0, 0.8, n_classes)
    for distort, enough in (
        (lambda scores: scores + shift, "intercept"),
        (lambda scores: 1.5 * scores, "intercept and slope"),
    ):
        chosen = choices(1000, n_classes, 100, seed=1, distort=distort)
        order = np.array([NAMES.index(name) for name in chosen])
        assert np.mean(order > NAMES.index(enough)) <= most(0.05, 100)
        assert np.mean(order >= NAMES.index(enough)) > 0.95
