"""Results of a map are replaced by the means of their bins."""

import numpy as np
import pytest
from problems import random_problem
from sklearn.linear_model import LogisticRegression

from skcalib.metrics import level_set_calibration_error
from skcalib.recalibration import (
    IdentityRecalibrator,
    IsotonicRecalibrator,
    ScalingBinningRecalibrator,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
)


def weighted_problem(n_classes, n=60, seed=0):
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n, n_classes)
    label[:n_classes] = range(n_classes)
    return label, proba, rng.random(n) + 0.1


def binned_by_loops(results, weight, n_bins, query):
    """Sort, deal ranks to bins by the share below them, and take the mean of the nearest bin."""
    points = sorted(set(results))
    bins = {}
    for point in points:
        below = sum(w for r, w in zip(results, weight, strict=True) if r < point) / sum(weight)
        bins.setdefault(int(np.floor(n_bins * below + 1e-9)), []).append(point)
    means = []
    for members in bins.values():
        inside = [(r, w) for r, w in zip(results, weight, strict=True) if r in members]
        means.append(sum(r * w for r, w in inside) / sum(w for _, w in inside))
    out = []
    for q in query:
        distance = [min(abs(q - member) for member in members) for members in bins.values()]
        out.append(means[len(distance) - 1 - int(np.argmin(distance[::-1]))])
    return np.array(out)


@pytest.mark.parametrize("n_bins", [1, 5, 1000])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_equals_loops(n_classes, n_bins):
    label, proba, weight = weighted_problem(n_classes)
    fitted = ScalingBinningRecalibrator(n_bins=n_bins).fit(proba, label, sample_weight=weight)
    inner = SigmoidRecalibrator() if n_classes == 2 else TemperatureRecalibrator()
    inner.fit(proba, label, sample_weight=weight)
    query = random_problem(np.random.default_rng(1), 40, n_classes)[1]
    results, new = inner.predict_proba(proba), inner.predict_proba(query)
    columns = [
        binned_by_loops(results[:, k], weight, n_bins, new[:, k])
        for k in ([1] if n_classes == 2 else range(n_classes))
    ]
    if n_classes == 2:
        expected = np.column_stack([1 - columns[0], columns[0]])
    else:
        expected = np.column_stack(columns) / np.sum(columns, axis=0)[:, None]
    np.testing.assert_allclose(fitted.predict_proba(query), expected, atol=1e-12)


def test_by_hand():
    proba = [0.1, 0.3, 0.5, 0.9]
    fitted = ScalingBinningRecalibrator(IdentityRecalibrator(), n_bins=2).fit(proba, [0, 1, 1, 1])
    np.testing.assert_allclose(fitted.values_, [0.2, 0.7], atol=1e-15)
    np.testing.assert_allclose(fitted.maps_[0].cuts, [0.4], atol=1e-15)
    # from the cut on, predictions belong to the upper bin; outcomes have no say
    mapped = fitted.predict_proba([0.0, 0.39, 0.41, 1.0])[:, 1]
    np.testing.assert_allclose(mapped, [0.2, 0.2, 0.7, 0.7], atol=1e-15)


def test_the_calibration_error_of_few_values_can_be_measured():
    label, proba, _ = weighted_problem(2, n=4000)
    fitted = ScalingBinningRecalibrator(n_bins=10).fit(proba[:2000], label[:2000])
    binned = fitted.predict_proba(proba[2000:])
    assert len(np.unique(binned[:, 1])) == len(fitted.values_) == 10
    assert (np.diff(fitted.values_) > 0).all()
    # that of a map without ties is mere noise: each sample is a level of its own
    smooth = fitted.recalibrator_.predict_proba(proba[2000:])
    error = [level_set_calibration_error(label[2000:], p) for p in (binned, smooth)]
    assert error[0] < 0.05 < 0.2 < error[1]


def test_ties_and_constant_predictions():
    fitted = ScalingBinningRecalibrator(IdentityRecalibrator(), n_bins=3)
    np.testing.assert_array_equal(fitted.fit([0.25] * 4, [0, 1, 0, 1]).values_, [0.25])
    assert len(fitted.fit([0.25] * 4 + [0.75], [0, 1, 0, 1, 1]).values_) == 2


def test_results_that_differ_by_rounding_are_tied():
    # more samples of one result than fit into a bin, in digits that depend on the machine
    results = 0.3 + np.array([-1, 0, 0, 1]) * 2**-54
    assert len(np.unique(results)) > 1
    fitted = ScalingBinningRecalibrator(IdentityRecalibrator(), n_bins=6)
    fitted.fit([0.1, *results, 0.9], [0, 1, 0, 1, 0, 1])
    np.testing.assert_allclose(fitted.values_, [0.1, 0.3, 0.9], atol=1e-15)
    np.testing.assert_allclose(fitted.maps_[0].cuts, [0.2, 0.6], atol=1e-15)


def test_rows_of_zeros_keep_the_results_of_the_map():
    # every class alone is almost always 0, and so is the mean of its lower bin
    proba = np.repeat(np.eye(3), 4, axis=0)
    fitted = ScalingBinningRecalibrator(IdentityRecalibrator(), n_bins=2, labels=[0, 1, 2])
    fitted.fit(proba, proba.argmax(axis=1))
    query = np.array([[0.3, 0.3, 0.4], [1, 0, 0]])
    np.testing.assert_allclose(fitted.predict_proba(query), query, atol=1e-15)


def test_other_maps():
    label, proba, _ = weighted_problem(3)
    odds = LogisticRegression()
    fitted = ScalingBinningRecalibrator(odds).fit(proba, label)
    results = LogisticRegression().fit(proba, label).predict_proba(proba)
    assert fitted.values_[0].min() >= results[:, 0].min()
    few = ScalingBinningRecalibrator(odds, labels=range(4))
    wider = np.column_stack([proba * 0.9, np.full(60, 0.1)])
    with pytest.raises(ValueError, match=r"classes \[0, 1, 2, 3\]; Logistic.* \[0, 1, 2\]"):
        few.fit(wider, label)
    with pytest.raises(ValueError, match="'recalibrator' parameter"):
        ScalingBinningRecalibrator("sigmoid").fit(proba, label)
    with pytest.raises(TypeError, match=r"recalibrator must be an .* class .* IsotonicR.*\(\)"):
        ScalingBinningRecalibrator(IsotonicRecalibrator).fit(proba, label)
    with pytest.raises(ValueError, match="'n_bins' parameter"):
        ScalingBinningRecalibrator(n_bins=0).fit(proba, label)
