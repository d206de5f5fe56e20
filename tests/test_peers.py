"""The metrics equal those of other packages, where they are installed.

The packages are mapie, model-diagnostics, pycalib and uncertainty-calibration.
"""

import numpy as np
import pytest
from problems import random_problem
from sklearn.datasets import load_diabetes
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from skcalib.metrics import (
    cumulative_calibration_error,
    expected_calibration_error as ece,
    score_decomposition,
)
from skcalib.recalibration import PITRecalibrator, RecalibratedRegressor

# what the peers warn about is theirs
pytestmark = pytest.mark.filterwarnings("ignore")


def peer(module):
    return pytest.importorskip(module, exc_type=ImportError)


def binary(n=600, decimals=None, calibrated=True):
    """Without ties unless rounded; gaps of both signs if calibrated, so that the bins matter."""
    outcome, proba = random_problem(np.random.default_rng(0), n, calibrated=calibrated)
    return outcome, proba if decimals is None else np.round(proba, decimals)


def multi_class():
    return random_problem(np.random.default_rng(1), 600, 4, calibrated=True)


def close(value):
    return pytest.approx(value, abs=1e-12)


# Bins of equal width. PyCalib's are [a, b) like ours; those of MAPIE and uncertainty-calibration
# are (a, b]. All agree unless a prediction is the edge of a bin.


@pytest.mark.parametrize("n_bins", [5, 10, 15])
def test_binary_error_of_pycalib(n_bins):
    metrics = peer("pycalib.metrics")
    y, p = binary()
    assert ece(y, p, n_bins=n_bins) == close(metrics.binary_ECE(y, p, bins=n_bins))
    largest = ece(y, p, n_bins=n_bins, norm="max")
    assert largest == close(metrics.binary_MCE(y, p, bins=n_bins))
    # its power=2 takes no root
    square = metrics.binary_ECE(y, p, power=2, bins=n_bins)
    assert ece(y, p, n_bins=n_bins, norm="l2") ** 2 == close(square)


@pytest.mark.parametrize("n_bins", [5, 10, 15])
def test_multi_class_errors_of_pycalib(n_bins):
    metrics = peer("pycalib.metrics")
    y, p = multi_class()
    assert ece(y, p, n_bins=n_bins) == close(metrics.conf_ECE(y, p, bins=n_bins))
    classwise = ece(y, p, n_bins=n_bins, multi_class="classwise")
    assert classwise == close(metrics.classwise_ECE(y, p, bins=n_bins))


def predictions_at_edges(module):
    y, p = np.array([1, 0]), np.array([0.4, 0.5])
    if module == "pycalib.metrics":  # [a, b), but its edges are moved up by a relative 1e-8
        return peer(module).binary_ECE(y, p, bins=2)
    if module == "mapie.metrics.calibration":
        return peer(module).expected_calibration_error(y, p, num_bins=3)
    return peer(module).get_ece(p, y, num_bins=2)


@pytest.mark.parametrize("module", ["pycalib.metrics", "mapie.metrics.calibration", "calibration"])
def test_predictions_at_edges_are_one_bin_lower(module):
    assert predictions_at_edges(module) == close((0.6 - 0.5) / 2)
    assert ece([1, 0], [0.4, 0.5], n_bins=2) == close((0.6 + 0.5) / 2)


@pytest.mark.parametrize("n_bins", [5, 10, 15])
def test_errors_of_mapie_have_one_bin_more(n_bins):
    # num_bins is the number of edges; the first argument says whether the prediction was right
    metrics = peer("mapie.metrics.calibration")
    y, p = binary()
    theirs = metrics.expected_calibration_error(y, p, num_bins=n_bins + 1)
    assert ece(y, p, n_bins=n_bins) == close(theirs)
    y, p = multi_class()
    right = (y == p.argmax(axis=1)).astype(int)
    theirs = metrics.expected_calibration_error(right, p, num_bins=n_bins + 1)
    assert ece(y, p, n_bins=n_bins) == close(theirs)
    theirs = metrics.expected_calibration_error(
        right, p, num_bins=n_bins + 1, classwise=True, class_labels=y
    )
    assert ece(y, p, n_bins=n_bins, multi_class="classwise") == close(theirs)


def test_conformal_intervals_of_mapie():
    regression, scores = peer("mapie.regression"), peer("mapie.conformity_scores")
    X, y = load_diabetes(return_X_y=True)
    linear = LinearRegression().fit(X[:150], y[:150])
    ours = RecalibratedRegressor(FrozenEstimator(linear), PITRecalibrator())
    low, high = ours.fit(X[150:300], y[150:300]).predict_interval(X[300:], 0.9)
    score = scores.AbsoluteConformityScore(sym=False)
    theirs = regression.SplitConformalRegressor(
        linear, confidence_level=0.9, conformity_score=score, prefit=True
    ).conformalize(X[150:300], y[150:300])
    intervals = theirs.predict_interval(X[300:])[1][:, :, 0]
    np.testing.assert_allclose(np.column_stack([low, high]), intervals)


def test_default_bins_of_mapie():
    metrics = peer("mapie.metrics.calibration")
    y, p = multi_class()
    options = {"n_bins": 49, "multi_class": "top-label", "average": "macro"}
    assert ece(y, p, **options) == close(metrics.top_label_ece(y, p))


def test_exact_zeros_have_their_own_bin_in_mapie():
    metrics = peer("mapie.metrics.calibration")
    y, p = np.array([1, 0]), np.array([0.0, 0.05])
    assert metrics.expected_calibration_error(y, p, num_bins=11) == close((1 + 0.05) / 2)
    assert ece(y, p, n_bins=10) == close((1 - 0.05) / 2)


@pytest.mark.parametrize("n_bins", [5, 10, 15])
def test_errors_of_uncertainty_calibration(n_bins):
    calibration = peer("calibration")
    y, p = binary()
    assert ece(y, p, n_bins=n_bins) == close(calibration.get_ece(p, y, num_bins=n_bins))
    equal_mass = calibration.get_ece_em(p, y, num_bins=n_bins)
    assert ece(y, p, n_bins=n_bins, strategy="quantile") == close(equal_mass)
    y, p = multi_class()
    assert ece(y, p, n_bins=n_bins) == close(calibration.get_ece(p, y, num_bins=n_bins))
    marginal = calibration.get_ece(p, y, num_bins=n_bins, mode="marginal")
    assert ece(y, p, n_bins=n_bins, multi_class="classwise") == close(marginal)


@pytest.mark.parametrize("n", [600, 30])
def test_debiased_error_of_uncertainty_calibration(n):
    # of bins of equal mass it makes the first ones larger if their number does not divide n
    calibration = peer("calibration")
    y, p = binary(n, calibrated=False)
    theirs = calibration.get_calibration_error(p, y)
    assert ece(y, p, norm="l2", estimation="debiased", strategy="quantile") == close(theirs)


@pytest.mark.parametrize("n", [600, 30])
def test_debiased_error_of_uncertainty_calibration_in_uniform_bins(n):
    # bins of a single sample, among 30, contribute 0 to both
    calibration = peer("calibration")
    y, p = binary(n)
    y = 1 - y  # far from calibrated
    theirs = calibration.lower_bound_scaling_ce(
        p, y, num_bins=10, binning_scheme=calibration.get_equal_prob_bins
    )
    assert theirs > 0.1
    assert (1 in np.bincount((10 * p).astype(int))) == (n == 30)
    assert ece(y, p, norm="l2", estimation="debiased", n_bins=10) == close(theirs)


def test_marginal_error_of_uncertainty_calibration_is_a_root_mean_square_over_classes():
    calibration = peer("calibration")
    y, p = multi_class()
    options = {"norm": "l2", "estimation": "debiased", "strategy": "quantile"}
    top = calibration.get_calibration_error(p, y, mode="top-label")
    assert ece(y, p, **options) == close(top)
    by_class = ece(y, p, multi_class="classwise", average=None, **options)
    marginal = calibration.get_calibration_error(p, y, mode="marginal")
    assert np.sqrt(np.mean(by_class**2)) == close(marginal)
    assert np.mean(by_class) < marginal - 1e-5


def test_uncertainty_calibration_takes_few_values_for_bins():
    # of fewer distinct predictions than a quarter of the samples each is a bin; n_bins is ignored
    calibration = peer("calibration")
    y, p = binary(decimals=1, calibrated=False)
    ours = ece(y, p, norm="l2", estimation="debiased", n_bins=1000)
    assert ours == close(calibration.get_calibration_error(p, y))
    assert abs(ece(y, p, norm="l2", estimation="debiased", strategy="quantile") - ours) > 1e-4


def torchmetrics_error(y_true, y_proba, n_bins):
    """The bins of torchmetrics 1.9.0: [a, b), and 1.0 in one of its own."""
    bins = np.searchsorted(np.linspace(0, 1, n_bins + 1), y_proba, side="right") - 1
    return np.abs(np.bincount(bins, weights=y_true - y_proba)).sum() / len(y_true)


def test_probability_one_has_its_own_bin_in_torchmetrics():
    y, p = binary()
    assert ece(y, p) == close(torchmetrics_error(y, p, 15))
    y, p = np.array([1, 0]), np.array([0.95, 1.0])
    assert torchmetrics_error(y, p, 10) == close((0.05 + 1) / 2)
    assert ece(y, p, n_bins=10) == close((1 - 0.05) / 2)


# MAPIE perturbs the predictions by about 1e-8 to break ties, and divides by the standard deviation.


def test_kolmogorov_smirnov_statistic_of_mapie():
    metrics = peer("mapie.metrics.calibration")
    y, p = binary()
    theirs = metrics.kolmogorov_smirnov_statistic(y, p) * metrics.length_scale(p)
    assert cumulative_calibration_error(y, p) == pytest.approx(theirs, abs=1e-8)
    assert metrics.length_scale(p) == close(np.sqrt(np.sum(p * (1 - p))) / len(p))


def test_kuiper_statistic_of_mapie_leaves_out_the_zero():
    metrics = peer("mapie.metrics.calibration")
    y, p = np.array([1, 1]), np.array([0.25, 0.75])
    theirs = metrics.kuiper_statistic(y, p) * metrics.length_scale(p)
    # sums ⅜ and ½
    assert theirs == pytest.approx(0.5 - 0.375, abs=1e-7)
    assert cumulative_calibration_error(y, p, labels=[0, 1], norm="range") == 0.5
    y, p = binary()
    # here the sums begin with a positive one and end below 0: the zero is inside
    y[np.argmin(p)] = 1
    theirs = metrics.kuiper_statistic(y, p) * metrics.length_scale(p)
    assert cumulative_calibration_error(y, p, norm="range") == pytest.approx(theirs, abs=1e-8)


def test_tied_predictions_in_mapie_depend_on_the_order_of_rows():
    metrics = peer("mapie.metrics.calibration")
    rng = np.random.default_rng(0)
    y, p = np.array([0, 1] * 100), np.full(200, 0.5)
    values = [metrics.kolmogorov_smirnov_statistic(rng.permutation(y), p) for _ in range(5)]
    assert min(values) > 0.5
    assert max(values) > min(values) + 0.1
    assert cumulative_calibration_error(y, p) == close(0)


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("score", "name"), [("brier", "SquaredError"), ("log_loss", "LogLoss")])
def test_decomposition_of_model_diagnostics(score, name, weighted, decimals):
    scoring = peer("model_diagnostics.scoring")
    y, p = binary(decimals=decimals)
    if score == "log_loss":
        p = np.clip(p, 0.05, 0.95)  # it does not clip: certain and wrong costs infinity
    weight = np.random.default_rng(2).integers(1, 5, size=len(y)) if weighted else None
    theirs = scoring.decompose(y, p, weights=weight, scoring_function=getattr(scoring, name)())
    ours = score_decomposition(y, p, sample_weight=weight, score=score)
    theirs = theirs.row(0, named=True)
    assert {part: getattr(ours, part) for part in theirs} == close(theirs)
