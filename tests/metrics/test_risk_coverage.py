"""The risk–coverage curve follows its definition, sample by sample."""

import numpy as np
import pytest
from scipy.stats import binomtest

from skcalib.metrics import risk_coverage_curve
from skcalib.uncertainty import compare_models, confidence_interval


def area_of(y_true, y_proba):
    return risk_coverage_curve(y_true, y_proba).area


def test_by_hand():
    # used: 0.9 (right), 0.8 twice (right, wrong), 0.1 (wrong); the two tied ones together
    curve = risk_coverage_curve([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.8])
    np.testing.assert_array_equal(curve.threshold, [0.9, 0.8, 0.1])
    np.testing.assert_allclose(curve.coverage, [1 / 4, 3 / 4, 1])
    np.testing.assert_allclose(curve.risk, [0, 1 / 3, 1 / 2])
    assert curve.area == pytest.approx((0 + 1 / 3 + 1 / 3 + 1 / 2) / 4)


@pytest.mark.parametrize("seed", range(5))
def test_equals_loops(seed):
    rng = np.random.default_rng(seed)
    stated, right = np.round(rng.random(30), 1), rng.integers(0, 2, 30)
    weight = rng.integers(1, 4, 30)
    rows = list(zip(stated, right, weight, strict=True))
    risks = []
    for threshold in stated:
        used = [(w, 1 - y) for p, y, w in rows if p >= threshold]
        risks.append(sum(w * e for w, e in used) / sum(w for w, _ in used))
    curve = risk_coverage_curve(right, stated, sample_weight=weight)
    assert curve.area == pytest.approx(np.average(risks, weights=weight), abs=1e-12)
    expected = dict(zip(stated, risks, strict=True))
    np.testing.assert_allclose(curve.risk, [expected[t] for t in curve.threshold], atol=1e-12)
    repeated = risk_coverage_curve(np.repeat(right, weight), np.repeat(stated, weight))
    np.testing.assert_allclose(repeated.coverage, curve.coverage, atol=1e-12)
    assert repeated.area == pytest.approx(curve.area, abs=1e-12)
    order = risk_coverage_curve(right, stated**3, sample_weight=weight)  # only the order counts
    assert order.area == pytest.approx(curve.area, abs=1e-12)


def test_intervals_are_those_of_clopper_and_pearson():
    rng = np.random.default_rng(0)
    stated = rng.choice([0.5, 0.8, 0.95], size=60)
    right = (rng.random(60) < stated).astype(int)
    curve = risk_coverage_curve(right, stated, confidence_level=0.9)
    for k, threshold in enumerate(curve.threshold):
        used = stated >= threshold
        n_wrong = (1 - right[used]).sum()
        expected = binomtest(n_wrong, used.sum()).proportion_ci(0.9)
        assert (curve.lower[k], curve.upper[k]) == pytest.approx(np.nan_to_num(expected), abs=1e-9)


def test_the_best_order_has_the_published_area():
    # Geifman, Uziel and El-Yaniv (2019), equation (5): r + (1 − r) ln(1 − r) for many samples
    n, r = 20_000, 0.3
    right = np.arange(n) >= r * n
    best = risk_coverage_curve(right, (np.arange(n) + 1) / (n + 1)).area
    assert best == pytest.approx(r + (1 - r) * np.log(1 - r), abs=1e-4)
    assert risk_coverage_curve(right, np.full(n, 0.7)).area == pytest.approx(r)


def test_classes_have_the_confidence_in_the_predicted_one():
    rng = np.random.default_rng(0)
    proba, label = rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40)
    right = label == proba.argmax(axis=1)
    assert area_of(label, proba) == area_of(right, proba.max(axis=1))
    frame = risk_coverage_curve(label, proba).to_frame()
    assert list(frame) == ["threshold", "coverage", "risk", "lower", "upper"]


def test_the_area_has_an_interval_and_a_comparison():
    rng = np.random.default_rng(0)
    stated = rng.random(200)
    right, noise = (rng.random(200) < stated).astype(int), rng.random(200)
    interval = confidence_interval(area_of, right, stated, groups=np.arange(200) // 2)
    assert interval.low < interval.estimate == area_of(right, stated) < interval.high
    paired = compare_models(area_of, right, stated, noise)
    unpaired = compare_models(area_of, (right, right[:150]), stated, noise[:150])
    assert max(paired.high, unpaired.high) < 0  # noise does not tell right from wrong
