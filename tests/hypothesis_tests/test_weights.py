"""Weights that say something of the outcome: what warns, and what is right in their place."""

import numpy as np
import pytest
from scipy.special import expit, logit

from skcalib import CalibrationTest
from skcalib._data import check_predictions
from skcalib.forecasts import GaussianForecast
from skcalib.hypothesis_tests import (
    CalibrationInTheLargeTest,
    CalibrationSlopeTest,
    EquivalenceTest,
    SubgroupCalibrationTest,
    UCMETest,
    find_miscalibrated_subgroups,
)
from skcalib.hypothesis_tests._weights import find_kind_of_weights
from skcalib.lenses import Multilabel
from skcalib.recalibration import PriorShiftRecalibrator
from skcalib.uncertainty import confidence_interval


def two_classes(rng, n=400):
    proba = rng.beta(1, 4, n)
    return (rng.random(n) < proba).astype(int), proba


def three_classes(rng, n=400):
    proba = rng.dirichlet(np.ones(3), n)
    return (rng.random(n)[:, None] > proba.cumsum(axis=1)[:, :-1]).sum(axis=1), proba


def lognormal(rng, n, sd=0.5):
    return np.exp(sd * rng.standard_normal(n))


def extreme(rng):
    # the only event has an extreme weight, by chance
    weight = np.where(np.arange(100) == 0, 1e-9, lognormal(rng, 100))
    return (np.arange(100) == 0).astype(int), np.full(100, 0.01), weight


def by_prediction(rng):
    # overconfident, and weighted by the prediction: neither says that weights follow outcomes
    label, proba = two_classes(rng, 2000)
    return label, expit(2 * logit(proba) + 1), 1 / proba


def soft(rng):
    proba, share = rng.beta(2, 2, 100), np.round(rng.uniform(0.1, 0.9, 100), 2)
    return np.repeat([1, 0], 100), np.tile(proba, 2), np.concatenate([share, 1 - share])


def censored(rng):
    # an event at time t is seen with probability exp(−t/2), no event up to 1 with exp(−½)
    proba = rng.beta(2, 5, 600)
    time = rng.exponential(1, 600) / -np.log1p(-proba)
    is_seen = np.minimum(time, 1) < rng.exponential(2, 600)
    return (time < 1)[is_seen].astype(int), proba[is_seen], np.exp(np.minimum(time, 1)[is_seen] / 2)


def of_classes(make, weights, sd):
    def draw(rng):
        label, proba = make(rng)
        return label, proba, np.array(weights)[label] * lognormal(rng, len(label), sd)

    return draw


def with_weight(make, weight):
    return lambda rng: (*make(rng), weight(rng))


COUNTS, SOFT = r"whole numbers.*np\.repeat", "soft labels.*p-values are not"
OUTCOMES = "go with the outcome.*PriorShift"
KINDS = {
    "counts": (with_weight(two_classes, lambda rng: rng.integers(1, 6, 400)), COUNTS),
    "soft labels": (soft, SOFT),
    "a weight for each class": (of_classes(two_classes, [10.0, 1.0], 0), OUTCOMES),
    "a weight for each of three": (of_classes(three_classes, [1.0, 2.0, 4.0], 0), OUTCOMES),
    "non-response": (of_classes(two_classes, [1.0, 2.0], 0.3), OUTCOMES),
    "non-response, three classes": (of_classes(three_classes, [1.0, 1.0, 2.0], 0.3), OUTCOMES),
    "censoring": (censored, OUTCOMES),
    "of no outcome": (with_weight(two_classes, lambda rng: lognormal(rng, 400)), None),
    "few counts": (with_weight(two_classes, lambda rng: 1.0 + (rng.random(400) < 0.3)), None),
    "equal whole numbers": (with_weight(two_classes, lambda rng: np.full(400, 3.0)), None),
    "of three classes, no outcome": (with_weight(three_classes, lambda r: lognormal(r, 400)), None),
    "of the prediction": (by_prediction, None),
    "an extreme weight": (extreme, None),
    "a label for each class": (lambda rng: (np.arange(9), np.eye(9), rng.random(9)), None),
}


@pytest.mark.parametrize(("make", "match"), KINDS.values(), ids=KINDS)
def test_each_kind_of_weights_has_its_remedy(make, match):
    label, proba, weight = make(np.random.default_rng(0))
    test = CalibrationTest("brier_score_loss", n_resamples=3, random_state=0)
    if match is None:
        test.fit(proba, label, sample_weight=weight)
        return
    with pytest.warns(UserWarning, match=match):
        test.fit(proba, label, sample_weight=weight)


@pytest.mark.parametrize("make", [two_classes, three_classes])
def test_weights_that_say_nothing_hardly_ever_warn(make):
    # beyond 5 standard deviations: in 1e-4 of these data sets together, if scores are normal
    rng = np.random.default_rng(1)
    for n in np.repeat([12, 60, 400], 20):
        label, proba = make(rng, n)
        data = check_predictions(label, proba, labels=[0, 1] if proba.ndim == 1 else [0, 1, 2])
        assert {find_kind_of_weights(data, lognormal(rng, n, sd)) for sd in (0.3, 1.5)} == {""}


def test_whatever_draws_outcomes_warns_and_intervals_do_not():
    rng = np.random.default_rng(0)
    label, proba, weight = of_classes(two_classes, [10.0, 1.0], 0)(rng)
    columns = {"site": rng.integers(3, size=400)}
    few = {"n_resamples": 3, "random_state": 0}
    tests = {
        "all": lambda: UCMETest(**few).fit(proba, label, weight),
        "by": lambda: SubgroupCalibrationTest(**few).fit(proba, label, weight, by=columns["site"]),
        "search": lambda: find_miscalibrated_subgroups(
            label, proba, columns, sample_weight=weight, **few
        ),
    }
    for run in tests.values():
        with pytest.warns(UserWarning, match=OUTCOMES):
            run()
    EquivalenceTest("expected_calibration_error", margin=0.2, n_resamples=20, random_state=0).fit(
        proba, label, sample_weight=weight
    )
    confidence_interval("observed_expected_ratio", label, proba, sample_weight=weight)


def test_labels_that_do_not_exclude_each_other_and_forecasts():
    rng = np.random.default_rng(0)
    proba = rng.random((300, 2))
    label = (rng.random((300, 2)) < proba).astype(int)
    test = CalibrationTest(
        "brier_score_loss", metric_params={"multi_class": Multilabel()}, n_resamples=3
    )
    with pytest.warns(UserWarning, match=OUTCOMES):
        test.fit(proba, label, sample_weight=np.where(label[:, 1], 0.3, 0.9))
    test.fit(proba, label, sample_weight=lognormal(rng, 300))
    test, forecast = CalibrationTest("skce", n_resamples=3), GaussianForecast(np.zeros(30), 1.0)
    with pytest.warns(UserWarning, match=COUNTS):
        test.fit(forecast, rng.standard_normal(30), sample_weight=np.arange(30))


@pytest.mark.parametrize("rates", [(0.1, 1.0), (1.0, 0.2)])
def test_predictions_at_the_prior_of_the_sample_are_calibrated(rates):
    # who takes part depends on the outcome: p r₁ / (p r₁ + (1 − p) r₀) by Bayes' theorem
    rng = np.random.default_rng(0)
    label, proba = two_classes(rng, 50_000)
    takes_part = rng.random(50_000) < np.array(rates)[label]
    label, proba = label[takes_part], proba[takes_part]
    shift = PriorShiftRecalibrator(
        prevalence=label.mean(),
        source_prevalence=np.average(label, weights=1 / np.array(rates)[label]),
    )
    at_prior = shift.fit(proba, label).transform(proba)[:, 1]
    exact = proba * rates[1] / (proba * rates[1] + (1 - proba) * rates[0])
    np.testing.assert_allclose(at_prior, exact, rtol=1e-10)
    for test in (CalibrationInTheLargeTest, CalibrationSlopeTest):
        assert abs(test(method="asymptotic").fit(at_prior, label).statistic_) < 4
    in_the_large = CalibrationInTheLargeTest(method="asymptotic")
    assert abs(in_the_large.fit(proba, label).statistic_) > 10
