"""The fast ways to the matching error equal the slow ones, for whole batches of outcomes."""

import itertools

import numpy as np
import pytest

from skcalib._data import check_forecasts
from skcalib._statistics import matching, matching_given, matching_pairs
from skcalib._statistics.kernels import KERNELS, kernel_values
from skcalib._statistics.matching import MatchingError
from skcalib.forecasts import (
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
)
from skcalib.metrics import distribution_matching_error
from skcalib.metrics._matching import null_deviation
from skcalib.metrics._registry import ALL_METRICS

N = 20
RNG = np.random.default_rng(0)
MEAN, STD, X = RNG.normal(size=N), RNG.uniform(0.5, 2, size=N), RNG.normal(size=(N, 2))
Y, WEIGHT = MEAN + STD * RNG.normal(size=N), RNG.random(N)

FORECASTS = {
    "normal": GaussianForecast(MEAN, STD),
    "mixture": GaussianMixtureForecast(np.c_[MEAN, MEAN + 1], np.c_[STD, 2 * STD], [0.4, 0.6]),
    "ensemble": EnsembleForecast(MEAN[:, None] + RNG.normal(size=(N, 4))),
    "weighted": EnsembleForecast(MEAN[:, None] + RNG.normal(size=(N, 4)), [1, 2, 3, 4]),
    "quantile": QuantileForecast(MEAN[:, None] + [-1, 0, 2], [0.2, 0.5, 0.9]),
    "residual": ResidualForecast(MEAN, RNG.normal(size=7)),
}

FORMS = {
    "distribution": {},
    "median": {"given": X},
    "marginal": {},
    "group": {"given": np.arange(N) % 3},
    "quantile": {},
    "threshold": {},
    "local": {"given": X},
}


def data_of(kind, form="distribution"):
    given = FORMS[form].get("given")
    return check_forecasts(Y, FORECASTS[kind], sample_weight=WEIGHT, given=given)


def matching_error(data, **options):
    """The statistic of the test of calibration."""
    metric = ALL_METRICS["distribution_matching_error"]
    return metric.statistic(data, **metric.validate_options(options))


def calibration(form):
    return "individual" if form == "median" else form


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "energy"])
@pytest.mark.parametrize("kind", FORECASTS)
def test_batches_equal_the_metric_of_each_draw(kind, kernel):
    for form in FORMS if kernel == "rbf" else ("distribution", "quantile"):
        data = data_of(kind, form)
        for estimation in ("unbiased", "biased") if kernel == "rbf" else ("unbiased",):
            error = matching_error(
                data, calibration=calibration(form), kernel=kernel, estimation=estimation
            )
            drawn = data.simulate_outcomes(np.random.default_rng(0), 2)
            expected = []
            for row in drawn:
                drawn_data = data.with_outcome(row)
                y, forecast = drawn_data.value, drawn_data.forecast
                expected.append(
                    distribution_matching_error(
                        y,
                        forecast,
                        sample_weight=WEIGHT,
                        calibration=calibration(form),
                        kernel=kernel,
                        estimation=estimation,
                        **FORMS[form],
                    )
                )
            np.testing.assert_allclose(error(drawn), expected, atol=1e-9)


@pytest.mark.parametrize("kind", FORECASTS)
def test_features_equal_terms_of_pairs(kind, monkeypatch):
    for form in FORMS:
        data = data_of(kind, form)
        fast = MatchingError(data, calibration=calibration(form))
        with monkeypatch.context() as patch:
            patch.setattr(matching, "MAX_FEATURES", 0)
            patch.setattr(matching, "_MAX_FEATURES_OF_MEMBERS", 0)
            if form == "quantile":
                patch.setattr(matching_pairs, "_MAX_PAIR_BLOCK_ENTRIES", 7)
            slow = MatchingError(data, calibration=calibration(form))
            assert slow.features is None
            drawn = data.simulate_outcomes(np.random.default_rng(0), 2)
            np.testing.assert_allclose(fast(drawn), slow(drawn), atol=2e-9)
            of_terms = [error.gram_terms() for error in (fast, slow)]
        sums = [
            np.sum(kernel(points, points) * (mass @ mass.T)) for kernel, points, mass in of_terms
        ]
        np.testing.assert_allclose(sums[0], sums[1], atol=2e-9)


def test_blocks_of_rows_and_sorted_thresholds(monkeypatch):
    for form in FORMS:
        data = data_of("normal", form)
        error = MatchingError(data, calibration=calibration(form))
        outcomes = data.simulate_outcomes(np.random.default_rng(0), 2)
        expected = error(outcomes)
        with monkeypatch.context() as patch:
            patch.setattr(matching_given, "_MAX_CONDITION_ENTRIES", 1)
            patch.setattr(matching_given, "_MIN_BLOCK_ROWS", 7)
            patch.setattr(matching_given, "_MAX_THRESHOLD_PAIRS", 0)
            np.testing.assert_allclose(error(outcomes), expected, atol=1e-12)


PAIR = np.array([0.0, 0.5]), np.array([1.0, 2.0])


def test_draws_that_need_many_features_are_taken_by_pairs():
    # two outcomes that all but agree have a tiny median distance
    data = check_forecasts([0.0, 1.0], PAIR)
    error = MatchingError(data)
    outcomes = np.array([[0.0, 1.0], [0.3, 0.3 + 1e-9], [1e5, 2.0], [0.2, 3.0]])
    expected = [distribution_matching_error(row, PAIR) for row in outcomes]
    np.testing.assert_allclose(error(outcomes), expected, atol=1e-9)
    np.testing.assert_allclose(error(outcomes[1:2]), expected[1], atol=1e-9)


def test_pivots_stand_for_the_kernel_if_they_are_few():
    rng = np.random.default_rng(0)
    weight = np.full(600, 1 / 600)
    for dimension, bandwidth, is_low_rank in ((2, 1.0, True), (2, 0.01, False), (4, 3.0, False)):
        points = rng.normal(size=(600, dimension))
        given = matching_given.point_kernel(points, weight, "rbf", bandwidth)
        assert (given.features is not None) == is_low_rank
    given = matching_given.point_kernel(points[:, :2], weight, "rbf", 1.0)
    features = given.features(slice(None))
    exact = kernel_values(points[:, :2], points[:, :2], KERNELS["rbf"], 1.0)
    np.testing.assert_allclose(features @ features.T, exact, atol=1e-9)
    np.testing.assert_allclose(given.diagonal, np.sum(features**2, axis=1))


@pytest.mark.parametrize("name", KERNELS)
def test_random_waves_have_the_kernel_as_their_mean_product(name):
    points = X[:5]
    given = matching_given.random_feature_kernel(points, name, 0.8, 40_000, 0)
    features = given.features(slice(None))
    exact = kernel_values(points, points, KERNELS[name], 0.8)
    np.testing.assert_allclose(features @ features.T, exact, atol=0.03)
    held = matching_given._waves_of_rows
    np.testing.assert_allclose(np.sum(features**2, axis=1), 1, rtol=1e-4)
    frequencies = 1e5 * RNG.normal(size=(3, 2))  # thousands of turns keep their phase
    wave = held(points, frequencies, slice(1, 4))
    phase = points[1:4] @ frequencies.T
    expected = np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(3)
    np.testing.assert_allclose(wave, expected, atol=1e-6)


def test_codes_agree_in_the_share_of_their_columns():
    codes = np.array([[0, 1], [0, 0], [2, 1]])
    given = matching_given.group_kernel(codes)
    expected = [[1, 0.5, 0.5], [0.5, 1, 0], [0.5, 0, 1]]
    np.testing.assert_allclose(given.kernel(given.points, given.points), expected)
    features = given.features(slice(None))
    np.testing.assert_allclose((features @ features.T).toarray(), expected)


@pytest.mark.parametrize(
    ("kernel", "n_nodes", "tolerance"),
    [
        ("rbf", 24, 1e-7),
        pytest.param("energy", 40, 0.01, marks=pytest.mark.slow),  # its kink needs many nodes
    ],
)
def test_the_mean_of_the_biased_error_under_calibration(kernel, n_nodes, tolerance):
    # spec 4.8: Σ w_i² k_ii (ℓ(0) − c_ii), from all pairs of quadrature nodes of two samples
    mean, std = np.array([0.0, 1.0]), np.array([0.7, 1.5])
    data = check_forecasts([0.0, 0.0], (mean, std), sample_weight=[1, 3])
    node, share = np.polynomial.hermite_e.hermegauss(n_nodes)
    bandwidth = 0.8 if kernel == "rbf" else "median"
    error = MatchingError(data, kernel=kernel, bandwidth=bandwidth, estimation="biased")
    outcomes = mean + std * np.array(list(itertools.product(node, node)))
    weight = np.outer(share, share).ravel() / share.sum() ** 2
    own = 0.8 / np.sqrt(0.64 + 2 * std**2) if kernel == "rbf" else -2 * std / np.sqrt(np.pi)
    at_zero = 1.0 if kernel == "rbf" else 0.0
    expected = np.array([1, 9]) / 16 @ (at_zero - own)
    np.testing.assert_allclose(weight @ error(outcomes), expected, rtol=tolerance)
    unbiased = MatchingError(data, kernel=kernel, bandwidth=bandwidth)
    np.testing.assert_allclose(weight @ unbiased(outcomes), 0, atol=0.01 * tolerance)


def test_the_standard_deviation_of_two_samples():
    # one pair: the standard deviation of h_12, by quadrature
    node, share = np.polynomial.hermite_e.hermegauss(40)
    mean, std = np.array([0.0, 1.0]), np.array([0.7, 1.5])
    data = check_forecasts([0.0, 0.0], (mean, std))
    error = MatchingError(data, bandwidth=0.8)
    outcomes = mean + std * np.array(list(itertools.product(node, node)))
    weight = np.outer(share, share).ravel() / share.sum() ** 2
    expected = np.sqrt(weight @ error(outcomes) ** 2)
    actual = null_deviation(error, np.random.default_rng(0))
    np.testing.assert_allclose(actual, expected, rtol=0.03)


def test_the_standard_deviation_from_a_part_of_the_samples(monkeypatch):
    n = 400
    data = check_forecasts(np.tile(Y, 20), (np.tile(MEAN, 20), np.tile(STD, 20)),
                           sample_weight=RNG.uniform(1, 2, size=n))  # fmt: skip
    error = MatchingError(data)
    whole = null_deviation(error, np.random.default_rng(0))
    monkeypatch.setattr("skcalib.metrics._matching._MAX_PAIRED_SAMPLES", 150)
    draws = [null_deviation(error, np.random.default_rng(seed)) for seed in range(5)]
    np.testing.assert_allclose(np.mean(draws), whole, rtol=0.05)


def test_equal_outcomes_have_the_bandwidth_of_the_forecasts():
    data = check_forecasts(np.ones(3), (np.zeros(3), np.full(3, 2.0)))
    fixed = MatchingError(data, bandwidth=2.0)
    np.testing.assert_allclose(
        MatchingError(data)(data.outcome[None]), fixed(data.outcome[None]), rtol=1e-9
    )


def test_far_outcomes_and_equal_samples_are_no_trouble():
    for y, mean, std in ((1e6, 0.0, 1.0), (0.0, 0.0, 1.0), (3.0, 3.0, 1e-9), (1.0, 0.0, 1e9)):
        forecast = np.full(4, mean), np.full(4, std)
        for form in ("distribution", "quantile", "threshold", "marginal"):
            value = distribution_matching_error(np.full(4, y), forecast, calibration=form)
            assert np.isfinite(value)
    alone = {"calibration": "group", "given": [0, 1], "estimation": "biased"}
    assert distribution_matching_error([0, 1], FORECASTS["normal"][:2], **alone) > 0


def test_random_features_stand_for_the_kernel_of_pairs_as_well():
    # an outcome far out needs too many features of the target: its terms come pair by pair
    rng = np.random.default_rng(0)
    mean, y = rng.normal(size=(2, 30))
    y[0] = 1e6
    data = check_forecasts(y, (mean, np.ones(30)))
    error = MatchingError(data, method="fourier", n_components=5, seed=3, bandwidth=1.0)

    def smoothed(gap, variance):
        return np.exp(-(gap**2) / (2 * (1 + variance))) / np.sqrt(1 + variance)

    own, between = smoothed(y[:, None] - y, 0.0), smoothed(y[:, None] - mean, 1.0)
    terms = own - between - between.T + smoothed(mean[:, None] - mean, 2.0)
    features = error.given.features(slice(None)).astype(np.float64)
    terms *= features @ features.T
    expected = (terms.sum() - np.trace(terms)) / (30 * 29)
    np.testing.assert_allclose(error(y[None]), [expected], rtol=1e-4)
