"""The decomposition of proper scores equals loops and pool-adjacent-violators."""

import itertools

import numpy as np
import pytest
from oracles import brier_score, normalised
from scipy.stats import norm, poisson
from sklearn.exceptions import EfficiencyWarning
from sklearn.metrics import brier_score_loss, log_loss

from skcalib._data import check_forecasts
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
)
from skcalib.metrics import (
    ScoreDecomposition,
    continuous_ranked_probability_loss,
    score_decomposition,
)
from skcalib.metrics._proper import crps_components

LOSS = {
    "brier": lambda y, p: (y - p) ** 2,
    "log_loss": lambda y, p: -np.log(min(max(p if y else 1 - p, 2**-52), 1 - 2**-52)),
}
PARTS = ("miscalibration", "discrimination", "uncertainty", "score")
both_scores = pytest.mark.parametrize("score", LOSS)


def random_case(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    proba = np.round(rng.random(n), 1 + seed % 6)
    outcome = (rng.random(n) < (proba if seed % 3 else 0.4)).astype(int)
    weight = None if seed % 2 else rng.choice([0.5, 1.0, 3.0], size=n)
    return proba, outcome, weight


def pool_adjacent_violators(proba, outcome, weight):
    """The isotonic fit at each prediction, tied ones pooled first."""
    blocks = []  # weight, sum of outcomes, predictions
    for point in sorted(set(proba)):
        rows = [i for i in range(len(proba)) if proba[i] == point]
        share = sum(weight[i] for i in rows)
        blocks.append([share, sum(weight[i] * outcome[i] for i in rows), [point]])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][0] >= blocks[-1][1] / blocks[-1][0]:
            share, total, points = blocks.pop()
            blocks[-1] = [blocks[-1][0] + share, blocks[-1][1] + total, blocks[-1][2] + points]
    fit = {point: total / share for share, total, points in blocks for point in points}
    return [fit[p] for p in proba]


def decomposition_by_loops(proba, outcome, weight, score):
    weight = normalised(weight, len(proba))

    def mean_loss(forecast):
        rows = zip(weight, outcome, forecast, strict=True)
        return sum(w * LOSS[score](y, p) for w, y, p in rows)

    recalibrated = mean_loss(pool_adjacent_violators(proba, outcome, weight))
    constant = mean_loss([sum(weight * outcome)] * len(proba))
    original = mean_loss(proba)
    return original - recalibrated, constant - recalibrated, constant, original


def values_of(decomposition):
    return np.array([getattr(decomposition, part) for part in PARTS])


@both_scores
@pytest.mark.parametrize("seed", range(24))
def test_equals_loops(score, seed):
    proba, outcome, weight = random_case(seed)
    parts = score_decomposition(outcome, proba, sample_weight=weight, labels=[0, 1], score=score)
    expected = decomposition_by_loops(proba, outcome, weight, score)
    np.testing.assert_allclose(values_of(parts), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_score_is_that_of_scikit_learn(seed):
    proba, outcome, weight = random_case(seed)
    options = {"sample_weight": weight, "labels": [0, 1]}
    brier = score_decomposition(outcome, proba, score="brier", **options).score
    assert brier == pytest.approx(
        brier_score_loss(outcome, proba, sample_weight=weight, pos_label=1), rel=1e-14, abs=1e-16
    )
    log = score_decomposition(outcome, proba, score="log_loss", **options).score
    assert log == pytest.approx(log_loss(outcome, proba, **options), rel=1e-14, abs=1e-16)


def test_by_hand():
    # the middle two are recalibrated to ½
    y_true, y_proba = [0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]
    brier = score_decomposition(y_true, y_proba)
    expected = [0.185 - 0.125, 0.25 - 0.125, 0.25, (2 * 0.1**2 + 2 * 0.6**2) / 4]
    np.testing.assert_allclose(values_of(brier), expected, atol=1e-15)
    log = score_decomposition(y_true, y_proba, score="log_loss")
    original, recalibrated, constant = -np.log(0.9 * 0.4) / 2, np.log(2) / 2, np.log(2)
    expected = [original - recalibrated, constant - recalibrated, constant, original]
    np.testing.assert_allclose(values_of(log), expected, atol=1e-15)


def test_weights_by_hand():
    # weights 3 and 1: the two predictions, in the wrong order, are recalibrated to ¾
    parts = score_decomposition([1, 0], [0.25, 0.5], sample_weight=[3, 1])
    score = (3 * 0.75**2 + 0.5**2) / 4
    np.testing.assert_allclose(values_of(parts), [score - 3 / 16, 0, 3 / 16, score], atol=1e-15)


@both_scores
def test_parts_add_up_and_are_not_negative(score):
    for seed in range(100):
        proba, outcome, weight = random_case(seed)
        parts = score_decomposition(
            outcome, proba, sample_weight=weight, labels=[0, 1], score=score
        )
        assert min(values_of(parts)) >= 0
        total = parts.miscalibration - parts.discrimination + parts.uncertainty
        assert total == pytest.approx(parts.score, abs=1e-12)


@both_scores
def test_no_nondecreasing_function_gains_more(score):
    rng = np.random.default_rng(0)
    proba, outcome, _ = random_case(7)
    parts = score_decomposition(outcome, proba, score=score)
    best = parts.score - parts.miscalibration
    fit = np.array(pool_adjacent_violators(proba, outcome, np.ones(len(proba))))
    for _ in range(200):
        table = np.sort(rng.random(11))
        step = rng.choice([1e-6, 1e-3, 0.1, 1.0])
        other = (1 - step) * fit + step * np.interp(proba, np.linspace(0, 1, 11), table)
        assert np.mean([LOSS[score](y, p) for y, p in zip(outcome, other, strict=True)]) > best


@both_scores
def test_ties_are_pooled(score):
    # scoringrules 0.10.0 gives both parts as 0.102 on such data; the order of rows matters there
    y_true = np.array([0, 1] * 50)
    for order in (np.arange(100), np.argsort(y_true), np.argsort(-y_true)):
        parts = score_decomposition(y_true[order], np.full(100, 0.5), score=score)
        assert parts.miscalibration == pytest.approx(0, abs=1e-15)
        assert parts.discrimination == pytest.approx(0, abs=1e-15)


@both_scores
def test_an_isotonic_forecast_is_calibrated(score):
    for seed in range(1, 30, 2):
        proba, outcome, _ = random_case(seed)
        fit = pool_adjacent_violators(proba, outcome, np.ones(len(proba)))
        parts = score_decomposition(outcome, fit, labels=[0, 1], score=score)
        assert parts.miscalibration == pytest.approx(0, abs=1e-14)


@both_scores
def test_an_increasing_transformation_changes_the_miscalibration_only(score):
    rng = np.random.default_rng(0)
    proba = rng.random(200)
    outcome = (rng.random(200) < proba).astype(int)
    parts = score_decomposition(outcome, proba, score=score)
    distorted = score_decomposition(outcome, proba**3, score=score)
    assert distorted.discrimination == pytest.approx(parts.discrimination, abs=1e-15)
    assert distorted.miscalibration > parts.miscalibration + 0.01


@pytest.mark.filterwarnings("error")
def test_certain_predictions_have_a_finite_log_loss():
    # one of four is wrong and costs −log ε; 0 is recalibrated to 0, and 1 to ⅔
    parts = score_decomposition([0, 1, 1, 0], [0.0, 1.0, 1.0, 1.0], score="log_loss")
    wrong = -np.log(np.finfo(float).eps)
    recalibrated = (-2 * np.log(2 / 3) - np.log(1 / 3)) / 4
    expected = [wrong / 4 - recalibrated, np.log(2) - recalibrated, np.log(2), wrong / 4]
    np.testing.assert_allclose(values_of(parts), expected, atol=1e-13)


@both_scores
def test_one_class_only(score):
    parts = score_decomposition([1, 1], [0.25, 0.75], labels=[0, 1], score=score)
    assert parts.uncertainty == pytest.approx(0, abs=1e-15)
    assert parts.discrimination == pytest.approx(0, abs=1e-15)
    assert parts.miscalibration == pytest.approx(parts.score, abs=1e-15)


def several_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=50)
    return rng.integers(0, 3, size=50), proba, rng.random(50)


@both_scores
@pytest.mark.parametrize("multi_class", ["top-label", "classwise"])
def test_parts_are_averaged_over_classes(score, multi_class):
    label, proba, weight = several_classes()
    top = proba.argmax(axis=1)

    def decomposed(average):
        return score_decomposition(
            label,
            proba,
            sample_weight=weight,
            score=score,
            multi_class=multi_class,
            average=average,
        )

    by_class = values_of(decomposed(None))  # (4, K)
    assert by_class.shape == (4, 3)
    for k in range(3):
        rows = top == k if multi_class == "top-label" else np.full(50, True)
        alone = score_decomposition(
            label[rows] == k, proba[rows, k], sample_weight=weight[rows], score=score
        )
        np.testing.assert_allclose(by_class[:, k], values_of(alone), atol=1e-14)
    group = top if multi_class == "top-label" else label
    share = normalised([weight[group == k].sum() for k in range(3)], 3)
    macro, weighted = values_of(decomposed("macro")), values_of(decomposed("weighted"))
    np.testing.assert_allclose(macro, by_class.mean(axis=1), atol=1e-15)
    np.testing.assert_allclose(weighted, by_class @ share, atol=1e-15)
    default = weighted if multi_class == "top-label" else macro
    np.testing.assert_array_equal(values_of(decomposed("auto")), default)


def test_confidence_is_the_default_of_several_classes():
    label, proba, _ = several_classes()
    hit, confidence = label == proba.argmax(axis=1), proba.max(axis=1)
    assert score_decomposition(label, proba) == score_decomposition(hit, confidence)


def test_classwise_brier_scores_add_up_to_that_of_scikit_learn():
    label, proba, weight = several_classes()
    macro = score_decomposition(label, proba, sample_weight=weight, multi_class="classwise")
    expected = brier_score(label, proba, weight)
    assert 3 * macro.score == pytest.approx(expected, abs=1e-14)


def test_a_class_that_is_never_predicted_does_not_count():
    proba = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.8, 0.2, 0.0]])
    by_class = score_decomposition([0, 1, 2], proba, multi_class="top-label", average=None)
    assert np.isnan(values_of(by_class)[:, 2]).all()
    mean = score_decomposition([0, 1, 2], proba, multi_class="top-label", average="macro")
    np.testing.assert_allclose(values_of(mean), values_of(by_class)[:, :2].mean(axis=1))


def test_decompositions_are_numbers_that_read_well():
    parts = score_decomposition([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    assert all(type(getattr(parts, part)) is float for part in PARTS)
    assert parts.expected_miscalibration is None
    assert parts == ScoreDecomposition(**vars(parts))
    assert repr(parts) == (
        "ScoreDecomposition(miscalibration=0.06, discrimination=0.125, uncertainty=0.25, "
        "score=0.185)"
    )
    with pytest.raises(AttributeError, match="cannot assign to field"):
        parts.score = 0.0
    label, proba, _ = several_classes()
    by_class = score_decomposition(label, proba, multi_class="classwise", average=None)
    assert "uncertainty=[0." in repr(by_class)


def test_bad_score():
    with pytest.raises(ValueError, match=r"'score' parameter .* must be a str among"):
        score_decomposition([0, 1], [0.1, 0.9], score="spherical")


def test_decompositions_of_several_classes_can_be_compared():
    y_true, y_proba = [0, 1, 2], np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.8, 0.1]])
    options = {"multi_class": "classwise", "average": None}
    parts = score_decomposition(y_true, y_proba, **options)
    assert parts == score_decomposition(y_true, y_proba, **options)
    assert parts != score_decomposition(y_true, y_proba[::-1], **options)
    assert parts != 1


# Forecasts of numbers


def normal_case(seed, n=15):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    weight = None if seed % 2 else rng.choice([0.5, 1.0, 3.0], size=n)
    return mean + std * rng.normal(size=n), GaussianForecast(mean, std), weight


@pytest.mark.parametrize("seed", range(2))
def test_crps_is_decomposed_at_every_threshold(seed):
    # pool-adjacent-violators at many thresholds, one at a time
    y, forecast, weight = normal_case(seed)
    weight = normalised(weight, len(y))
    edges = np.sort(np.concatenate([y, np.linspace(y.min(), y.max(), 400)]))
    recalibrated = uncertainty = 0.0
    for low, high in itertools.pairwise(edges):
        t = (low + high) / 2
        proba, event = norm.sf(t, forecast.loc, forecast.scale), (y > t).astype(float)
        fit = np.array(pool_adjacent_violators(proba, event, weight))
        recalibrated += (high - low) * (weight @ (fit - event) ** 2)
        uncertainty += (high - low) * (weight @ (weight @ event - event) ** 2)
    parts = score_decomposition(y, forecast, sample_weight=weight, score="crps")
    score = continuous_ranked_probability_loss(y, forecast, sample_weight=weight)
    expected = [score - recalibrated, uncertainty - recalibrated, uncertainty, score]
    np.testing.assert_allclose(values_of(parts), expected, atol=2e-4 * score)
    assert parts.score == pytest.approx(score, rel=1e-14)
    assert parts.uncertainty == pytest.approx(uncertainty, rel=1e-12)


def test_crps_of_ensembles_is_decomposed_exactly():
    # nothing changes between neighbours among outcomes and members
    rng = np.random.default_rng(0)
    members, y = rng.normal(size=(12, 4)), rng.normal(size=12)
    weight = normalised(None, 12)
    recalibrated = 0.0
    for low, high in itertools.pairwise(np.unique(np.append(members, y))):
        if y.min() <= low < y.max():
            t = (low + high) / 2
            event = (y > t).astype(float)
            fit = np.array(pool_adjacent_violators((members > t).mean(axis=1), event, weight))
            recalibrated += (high - low) * np.mean((fit - event) ** 2)
    parts = score_decomposition(y, EnsembleForecast(members), score="crps")
    assert parts.score - parts.miscalibration == pytest.approx(recalibrated, abs=1e-13)


def test_parts_of_the_crps_add_up_and_are_not_negative():
    rng = np.random.default_rng(0)
    forecasts = {
        "constant": (np.zeros(6), 1.0),
        "far": (np.full(6, 40.0), 0.1),
        "counts": DistributionForecast(poisson([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
        "members": EnsembleForecast(rng.integers(0, 6, size=(6, 3)).astype(float)),
        "certain": EnsembleForecast(np.arange(6.0)[:, None] * [1, 1]),
    }
    for name, forecast in forecasts.items():
        for y in (np.arange(6.0), np.array([2.0, 2, 2, 5, 5, 0]), np.full(6, 3.0)):
            parts = score_decomposition(y, forecast, score="crps")
            assert min(values_of(parts)) >= 0, name
            total = parts.miscalibration - parts.discrimination + parts.uncertainty
            assert total == pytest.approx(parts.score, abs=1e-14)
            uncertainty = np.abs(y[:, None] - y).mean() / 2
            assert parts.uncertainty == pytest.approx(uncertainty, abs=1e-14)
    parts = score_decomposition(np.arange(6.0), forecasts["certain"], score="crps")
    assert parts.miscalibration == pytest.approx(0, abs=1e-14)
    assert parts.discrimination == pytest.approx(parts.uncertainty, abs=1e-14)
    constant = score_decomposition(np.arange(6.0), forecasts["constant"], score="crps")
    assert constant.discrimination == pytest.approx(0, abs=1e-4)


def test_crps_of_one_sample():
    parts = score_decomposition([1.0], ([0.0], [1.0]), score="crps")
    assert parts.uncertainty == 0
    assert parts.miscalibration == parts.score


def test_the_mean_forecast_of_all_outcomes_is_calibrated():
    # each row forecasts the outcomes' own distribution: all of the score is uncertainty
    y = np.random.default_rng(0).normal(size=30)
    forecast = EnsembleForecast(np.tile(y, (30, 1)), np.ones(30))
    parts = score_decomposition(y, forecast, score="crps")
    np.testing.assert_allclose(
        values_of(parts), [0, 0, parts.uncertainty, parts.uncertainty], atol=1e-13
    )


def test_equal_forecasts_do_not_discriminate_whatever_the_order_of_their_parts():
    rng = np.random.default_rng(0)
    y, parts = rng.normal(size=30), rng.permuted(np.tile(np.arange(7), (30, 1)), axis=1)
    weight = rng.dirichlet(np.ones(7))
    mixture = GaussianMixtureForecast(rng.normal(size=7)[parts], np.ones((30, 7)), weight[parts])
    members = EnsembleForecast(rng.normal(size=7)[parts], weight[parts])
    for forecast in (mixture, members):
        found = score_decomposition(y, forecast, score="crps").discrimination
        assert found == pytest.approx(0, abs=1e-13)


def test_tiny_probabilities_discriminate():
    # 20 standard deviations away they are 1e-85 and less
    y = np.repeat([20.0, 21.0], 2)
    parts = score_decomposition(y, (y - 20.5 + np.array([0, 0, 0.1, 0.1]), 1.0), score="crps")
    assert parts.discrimination == pytest.approx(parts.uncertainty)


def test_small_and_large_probabilities_are_told_apart_alike():
    rng = np.random.default_rng(0)
    mean, noise = rng.normal(size=(2, 60))
    y = mean + noise + rng.exponential(size=60)
    for std in (1.0, 0.05):  # so that most probabilities are near 0 or 1
        parts = score_decomposition(y, (mean, std), score="crps")
        mirrored = score_decomposition(-y, (-mean, std), score="crps")
        np.testing.assert_allclose(values_of(mirrored), values_of(parts), rtol=1e-9)


def test_crps_laws():
    y, forecast, weight = normal_case(2)
    mean, std = forecast.loc, forecast.scale

    def parts(y, mean, std, weight):
        return values_of(score_decomposition(y, (mean, std), sample_weight=weight, score="crps"))

    expected = parts(y, mean, std, weight)
    order = np.random.default_rng(0).permutation(len(y))
    permuted = parts(y[order], mean[order], std[order], weight[order])
    np.testing.assert_allclose(permuted, expected, atol=1e-13)
    twice = np.repeat(np.arange(len(y)), (2 * weight).astype(int))
    np.testing.assert_allclose(parts(y[twice], mean[twice], std[twice], None), expected, atol=1e-12)
    np.testing.assert_allclose(parts(3 * y + 7, 3 * mean + 7, 3 * std, weight), 3 * expected)


def test_a_larger_sample_uses_cells_that_hold_several_outcomes(monkeypatch):
    y, forecast, weight = normal_case(4, n=40)
    options = {"sample_weight": weight, "score": "crps"}
    fine = values_of(score_decomposition(y, forecast, **options))
    monkeypatch.setattr("skcalib._numerics.crps._MAX_EDGES", 10)
    coarse = values_of(score_decomposition(y, forecast, **options))
    np.testing.assert_allclose(coarse, fine, atol=3e-4 * fine[3])
    np.testing.assert_array_equal(coarse[2:], fine[2:])


@pytest.mark.parametrize("std", [1e-150, 1e-16, 1e-3])
def test_narrow_forecasts_need_few_thresholds(std, monkeypatch):
    """Cells of even width would have to be as narrow as the forecasts, which took 18 s."""
    means, thresholds = np.array([0, 0.5]), []
    sf = GaussianForecast.sf

    def noted(self, threshold):
        thresholds.append(threshold)
        return sf(self, threshold)

    y = means + std * np.array([0.5, -1])
    forecast = GaussianForecast(means, np.full(2, std))
    monkeypatch.setattr(GaussianForecast, "sf", noted)
    parts = score_decomposition(y, forecast, score="crps")
    assert len(thresholds) < 1500
    assert parts.score == pytest.approx(forecast.crps(y).mean(), rel=1e-9)
    # forecasts in the order of the outcomes become steps, which hit them
    assert parts.miscalibration == pytest.approx(parts.score, rel=1e-3, abs=1e-16)


def test_the_error_of_few_cells_is_taken_off(monkeypatch):
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=500), np.exp(0.5 * rng.normal(size=500))
    y = mean + std * rng.normal(size=500)
    fine = score_decomposition(y, (mean, std), score="crps")
    monkeypatch.setattr("skcalib._numerics.crps._MAX_EDGES", 10)
    monkeypatch.setattr("skcalib.metrics._proper._CRPS_CELLS", (64,))
    coarse = score_decomposition(y, (mean, std), score="crps")
    # the error itself is 1e-3 of the score
    assert coarse.miscalibration == pytest.approx(fine.miscalibration, abs=4e-4 * fine.score)


def test_the_null_mean_of_the_miscalibration(monkeypatch):
    monkeypatch.setattr("skcalib.metrics._proper._CRPS_CELLS", (64,))
    y, forecast, _ = normal_case(1, n=20)
    options = {"score": "crps", "random_state": 0}
    parts = score_decomposition(y, forecast, n_resamples=10, **options)
    few = [score_decomposition(y, forecast, n_resamples=1, **options) for _ in range(2)]
    assert few[0] == few[1]
    assert "expected_miscalibration=0." in repr(parts)
    # by hand, from other draws
    rng = np.random.default_rng(1)
    null = []
    for _ in range(20):
        drawn = forecast.loc + forecast.scale * rng.normal(size=20)
        null.append(crps_components(check_forecasts(drawn, forecast), tolerance=0.005)[0])
    error = np.std(null) * np.sqrt(1 / 10 + 1 / 20)
    assert parts.expected_miscalibration == pytest.approx(np.mean(null), abs=4 * error)
    narrow = GaussianForecast(forecast.loc, forecast.scale / 5)
    parts = score_decomposition(y, narrow, n_resamples=3, **options)
    assert parts.miscalibration > 2 * parts.expected_miscalibration
    # a member changes places with the outcome
    members = EnsembleForecast(rng.normal(size=(20, 4)))
    parts = score_decomposition(rng.normal(size=20), members, n_resamples=3, **options)
    assert 0 < parts.expected_miscalibration < parts.score


def test_the_null_mean_of_probabilities():
    label, proba, weight = several_classes()
    options = {"sample_weight": weight, "n_resamples": 40, "random_state": 0}
    parts = score_decomposition(label, proba, multi_class="classwise", average=None, **options)
    assert parts.expected_miscalibration.shape == (3,)
    assert (parts.expected_miscalibration < parts.miscalibration).any()
    rng = np.random.default_rng(0)
    p = rng.random(100)
    drawn = [
        score_decomposition(rng.random(100) < p, p, labels=[False, True]).miscalibration
        for _ in range(80)
    ]
    parts = score_decomposition(rng.random(100) < p, p, n_resamples=80, random_state=0)
    error = np.std(drawn) * np.sqrt(2 / 80)
    assert parts.expected_miscalibration == pytest.approx(np.mean(drawn), abs=4 * error)


def test_forecasts_and_probabilities_have_their_own_scores():
    with pytest.raises(ValueError, match="score='brier' is for probabilities of classes"):
        score_decomposition([0.0, 1.0], GaussianForecast([0.0, 0.0], 1.0))
    with pytest.raises(TypeError, match="y_pred must be a forecast"):
        score_decomposition([0, 1], [0.2, 0.8], score="crps")
    with pytest.raises(ValueError, match="labels must be None for forecasts of a number"):
        score_decomposition([0.0], ([0.0], [1.0]), labels=[0, 1], score="crps")
    grid = QuantileForecast([[0.0, 1.0]], [0.2, 0.8])
    with pytest.raises(ValueError, match="found quantiles at 2 levels"):
        score_decomposition([0.0], grid, score="crps")


def test_many_cells_are_expected(monkeypatch):
    times = iter(np.arange(1000) * 400.0)
    monkeypatch.setattr("skcalib.metrics._proper.perf_counter", lambda: next(times))
    monkeypatch.setattr("skcalib.metrics._proper._CRPS_CELLS", (4, 8))
    y = np.linspace(0, 1, 5)
    with pytest.warns(EfficiencyWarning, match="8 cells for score='crps' will take some 13 min"):
        score_decomposition(y, (y, np.full(5, 1e-9)), score="crps")


def test_skill_score_by_hand():
    # Brier score (0.01 + 0.16 + 0.16 + 0.01) / 4 = 0.085, that of the prevalence 1/2 is 0.25
    result = score_decomposition([0, 1, 0, 1], [0.1, 0.6, 0.4, 0.9])
    assert result.skill_score == pytest.approx(1 - 0.085 / 0.25)
    assert score_decomposition([0, 1], [0.5, 0.5]).skill_score == 0
    assert np.isnan(score_decomposition([1, 1], [0.5, 0.5]).skill_score)
    label, proba = [0, 1, 2, 1], np.array([[0.6, 0.2, 0.2], [0.1, 0.8, 0.1]] * 2)
    options = {"multi_class": "classwise", "average": None}
    each = score_decomposition(label, proba, **options).skill_score
    one = score_decomposition(np.array(label) == 1, proba[:, 1]).skill_score
    assert each.shape == (3,)
    assert each[1] == pytest.approx(one)
