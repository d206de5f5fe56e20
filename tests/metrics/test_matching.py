"""The distribution matching error equals its definition, in all forms."""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import erf
from scipy.stats import expon, norm

from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
)
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    distribution_matching_error,
    distribution_matching_witness,
    squared_kernel_calibration_error,
)

LINE_KERNELS = {
    "rbf": lambda d, nu: np.exp(-(d**2) / (2 * nu**2)),
    "laplacian": lambda d, nu: np.exp(-np.abs(d) / nu),
    "energy": lambda d, nu: -np.abs(d),
}

N = 6
RNG = np.random.default_rng(1)
MEAN, STD, X = RNG.normal(size=N), RNG.uniform(0.5, 2, size=N), RNG.normal(size=(N, 2))
Y = MEAN + 1.5 * STD * RNG.normal(size=N)
WEIGHT = RNG.random(N)
GAUSSIAN = GaussianForecast(MEAN, STD)
PIT = norm.cdf(Y, MEAN, STD)


def average(terms, weight, estimation):
    """The estimators from the matrix of terms h, by loops."""
    weight = np.ones(len(terms)) if weight is None else weight
    weight = weight / weight.sum()
    total = mass = 0.0
    for i, j in itertools.product(range(len(terms)), repeat=2):
        if i != j or estimation == "biased":
            total += weight[i] * weight[j] * terms[i, j]
            mass += weight[i] * weight[j]
    return total / mass


@cache
def gaussian_terms(kernel, bandwidth):
    """ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij of normal forecasts, by quadrature."""

    node, share = np.polynomial.legendre.leggauss(200)

    def mean(shift, deviation):
        if deviation == 0:
            return LINE_KERNELS[kernel](shift, bandwidth)
        low, high = shift - 12 * deviation, shift + 12 * deviation
        middle = np.clip(0.0, low, high)  # where some kernels have a kink
        total = 0.0
        for start, stop in ((low, middle), (middle, high)):
            d = (start + stop) / 2 + (stop - start) / 2 * node
            density = np.exp(-(((d - shift) / deviation) ** 2) / 2) / deviation
            total += (stop - start) / 2 * share @ (LINE_KERNELS[kernel](d, bandwidth) * density)
        return total / np.sqrt(2 * np.pi)

    terms = np.empty((N, N))
    for i, j in itertools.product(range(N), repeat=2):
        terms[i, j] = mean(Y[i] - Y[j], 0) + mean(MEAN[i] - MEAN[j], np.hypot(STD[i], STD[j]))
        terms[i, j] -= mean(MEAN[i] - Y[j], STD[i]) + mean(MEAN[j] - Y[i], STD[j])
    return terms


def atom_terms(y, location, share, kernel, bandwidth):
    """The same for weighted members (n, s), by sums."""
    terms = np.empty((len(y), len(y)))
    for i, j in itertools.product(range(len(y)), repeat=2):
        own, other = np.append(location[i], y[i]), np.append(location[j], y[j])
        mass, other_mass = np.append(-share[i], 1), np.append(-share[j], 1)
        values = LINE_KERNELS[kernel](own[:, None] - other, bandwidth)
        terms[i, j] = mass @ values @ other_mass
    return terms


def uniform_terms(low, high, bandwidth):
    """The terms of PITs with the rbf kernel, atoms averaged, on a fine grid."""
    grid = (np.arange(1000) + 0.5) / 1000
    mass = np.full((len(low), 1000), -1 / 1000)
    for i, (a, b) in enumerate(zip(low, high, strict=True)):
        share = np.clip(np.minimum(b, grid + 0.0005) - np.maximum(a, grid - 0.0005), 0, None)
        mass[i] += share / share.sum()
    values = LINE_KERNELS["rbf"](grid[:, None] - grid, bandwidth)
    return mass @ values @ mass.T


def rbf_gram(points, bandwidth):
    return np.exp(-np.sum((points[:, None] - points) ** 2, axis=2) / (2 * bandwidth**2))


PARAMETERS = np.column_stack([MEAN, np.log(STD)])

estimators = pytest.mark.parametrize("estimation", ["unbiased", "biased"])


def test_numbers_by_hand():
    # members 0 and 2: h_11 = 2 · 0.5 at y = 1, h_22 = 2 · 1.5 at y = 3, h_12 = −2 + 2 + 1 − 1 = 0
    forecast = EnsembleForecast([[0.0, 2.0], [0.0, 2.0]], weights=[1, 1])
    options = {"calibration": "marginal", "kernel": "energy"}
    assert distribution_matching_error([1, 3], forecast, **options) == pytest.approx(0, abs=1e-15)
    biased = distribution_matching_error([1, 3], forecast, estimation="biased", **options)
    assert biased == pytest.approx(1.0)


@estimators
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize("kernel", LINE_KERNELS)
def test_normal_forecasts_equal_quadrature(kernel, weight, estimation):
    options = {} if kernel == "energy" else {"bandwidth": 0.7}
    terms = gaussian_terms(kernel, 0.7) * rbf_gram(PARAMETERS, 0.9)
    actual = distribution_matching_error(
        Y,
        GAUSSIAN,
        sample_weight=weight,
        kernel=kernel,
        given_bandwidth=0.9,
        estimation=estimation,
        **options,
    )
    np.testing.assert_allclose(actual, average(terms, weight, estimation), rtol=1e-8, atol=1e-10)


def members():
    location = RNG.normal(size=(N, 5))
    share = RNG.dirichlet(np.ones(5), size=N)
    return EnsembleForecast(location, share), location, share, Y


def residuals():
    residual, share = np.sort(RNG.normal(size=4)), RNG.dirichlet(np.ones(4))
    location = MEAN[:, None] + residual
    forecast = ResidualForecast(MEAN, residual, share)
    return forecast, location, np.broadcast_to(share, location.shape), Y


def cells():
    values = np.sort(RNG.normal(size=(N, 3)), axis=1)
    bounds = np.array([0, 0.1, 0.5, 0.7, 1])
    middle = (bounds[1:] + bounds[:-1]) / 2
    location = np.broadcast_to(middle, (N, 4))
    place = middle[(values < Y[:, None]).sum(axis=1)]
    forecast = QuantileForecast(values, bounds[1:-1])
    return forecast, location, np.broadcast_to(np.diff(bounds), (N, 4)), place


def nodes():
    forecast = DistributionForecast(expon(2 * MEAN, STD))
    parts = forecast.components()
    return forecast, parts.location, parts.weight, np.abs(Y) + 2 * MEAN


@pytest.mark.parametrize("make", [members, residuals, cells, nodes])
@pytest.mark.parametrize("kernel", LINE_KERNELS)
def test_members_and_nodes_equal_sums(kernel, make):
    forecast, location, share, place = make()
    y = place if make is nodes else Y
    options = {} if kernel == "energy" else {"bandwidth": 0.7}
    for estimation in ("unbiased", "biased"):
        actual = distribution_matching_error(
            y,
            forecast,
            given=X,
            given_bandwidth=0.9,
            sample_weight=WEIGHT,
            kernel=kernel,
            estimation=estimation,
            **options,
        )
        terms = atom_terms(place, location, share, kernel, 0.7) * rbf_gram(X, 0.9)
        np.testing.assert_allclose(actual, average(terms, WEIGHT, estimation), atol=2e-10)


def test_mixtures_equal_sums_over_components():
    # a normal is the limit of its nodes
    mean, std, share = RNG.normal(size=(N, 2)), RNG.uniform(0.5, 1, size=(N, 2)), [0.3, 0.7]
    node, weight = np.polynomial.hermite_e.hermegauss(50)
    location = (mean[..., None] + std[..., None] * node).reshape(N, -1)
    mass = np.outer(share, weight / weight.sum()).ravel()
    terms = atom_terms(Y, location, np.broadcast_to(mass, location.shape), "rbf", 0.9)
    actual = distribution_matching_error(
        Y, GaussianMixtureForecast(mean, std, share), calibration="marginal", bandwidth=0.9
    )
    np.testing.assert_allclose(actual, average(terms, None, "unbiased"), atol=1e-9)


def test_many_members_agree_with_the_distribution():
    # the middles of 1000 equally likely cells
    sample = MEAN[:, None] + STD[:, None] * norm.ppf((np.arange(1000) + 0.5) / 1000)
    ensemble = EnsembleForecast(sample, weights=np.ones(1000))
    for kernel in ("rbf", "energy"):
        options = {"calibration": "individual", "given": X, "kernel": kernel}
        expected = distribution_matching_error(Y, GAUSSIAN, **options)
        actual = distribution_matching_error(Y, ensemble, **options)
        np.testing.assert_allclose(actual, expected, atol=0.01)


def test_the_energy_of_one_sample_is_twice_its_crps():
    for forecast in (GAUSSIAN, members()[0], residuals()[0]):
        for i in range(N):
            actual = distribution_matching_error(
                Y[i : i + 1], forecast[[i]], kernel="energy", estimation="biased"
            )
            expected = 2 * continuous_ranked_probability_loss(Y[i : i + 1], forecast[[i]])
            assert actual == pytest.approx(expected, rel=1e-10)


def test_the_marginal_energy_is_the_cramer_von_mises_distance():
    t = np.linspace(-12, 12, 200_001)
    gap = np.mean([(y <= t) - norm.cdf(t, m, s) for y, m, s in zip(Y, MEAN, STD, strict=True)], 0)
    actual = distribution_matching_error(
        Y, GAUSSIAN, calibration="marginal", kernel="energy", estimation="biased"
    )
    assert actual == pytest.approx(2 * np.trapezoid(gap**2, t), rel=1e-3)


@estimators
@pytest.mark.parametrize(
    ("options", "gram"),
    [
        ({"calibration": "quantile"}, np.ones((N, N))),
        ({"calibration": "local", "given": X, "given_bandwidth": 0.8}, rbf_gram(X, 0.8)),
    ],
    ids=["quantile", "local"],
)
def test_pits_equal_the_closed_form(options, gram, estimation):
    # spec 4.5: m1 and m2 with b = 0.1 = 2ν²
    b = 0.1
    m1 = np.sqrt(np.pi * b) / 2 * (erf((1 - PIT) / np.sqrt(b)) + erf(PIT / np.sqrt(b)))
    m2 = np.sqrt(np.pi * b) * erf(1 / np.sqrt(b)) - b * (1 - np.exp(-1 / b))
    terms = np.exp(-((PIT[:, None] - PIT) ** 2) / b) - m1[:, None] - m1 + m2
    actual = distribution_matching_error(
        Y, GAUSSIAN, sample_weight=WEIGHT, estimation=estimation, **options
    )
    np.testing.assert_allclose(actual, average(terms * gram, WEIGHT, estimation), atol=2e-10)


@pytest.mark.parametrize("kernel", LINE_KERNELS)
def test_pits_with_atoms_are_averaged(kernel):
    forecast = EnsembleForecast(np.round(RNG.normal(size=(N, 4))))
    y = np.round(Y)
    low, high = forecast.pit_bounds(y)
    grid = (np.arange(1000) + 0.5) / 1000
    mass = np.array([(grid > a) & (grid < b) for a, b in zip(low, high, strict=True)], dtype=float)
    mass /= mass.sum(axis=1, keepdims=True)
    values = LINE_KERNELS[kernel](grid[:, None] - grid, 0.3)
    terms = (mass - 1 / 1000) @ values @ (mass - 1 / 1000).T
    options = {} if kernel == "energy" else {"bandwidth": 0.3}
    actual = distribution_matching_error(
        y, forecast, calibration="quantile", kernel=kernel, estimation="biased", **options
    )
    np.testing.assert_allclose(actual, average(terms, None, "biased"), atol=2e-6)


@pytest.mark.parametrize("n_values", [2**20, 300])
def test_callable_kernels_are_averaged_over_the_same_pits(n_values, monkeypatch):
    monkeypatch.setattr("skcalib._statistics.matching_pairs._MAX_PAIR_BLOCK_ENTRIES", n_values)
    forecast = EnsembleForecast(np.round(RNG.normal(size=(N, 3))))
    y = np.round(Y)
    named = {"calibration": "quantile", "bandwidth": 0.3}
    own = {"calibration": "quantile", "kernel": lambda s, t: np.exp(-((s - t.T) ** 2) / 0.18)}
    expected = distribution_matching_error(y, forecast, estimation="biased", **named)
    actual = distribution_matching_error(y, forecast, estimation="biased", **own)
    np.testing.assert_allclose(actual, expected, atol=1e-9)
    expected = distribution_matching_witness(y, forecast, y_grid=[0.2, 0.7], **named)
    actual = distribution_matching_witness(y, forecast, y_grid=[0.2, 0.7], **own)
    np.testing.assert_allclose(actual.value, expected.value, atol=1e-9)


def test_the_threshold_kernel_is_that_of_the_indicators():
    # 1[F(t) ≤ α] is the same for two samples with probability 1 − |F_i(t) − F_j(t)| over α
    levels = (np.arange(64) + 0.5) / 64
    pooled = norm.ppf(levels, MEAN[:, None], STD[:, None])
    thresholds = np.quantile(pooled, levels, method="averaged_inverted_cdf")
    alpha = (np.arange(1000) + 0.5) / 1000
    gram = np.zeros((N, N))
    for t in thresholds:
        below = norm.cdf(t, MEAN, STD)[:, None] <= alpha
        gram += np.mean(below[:, None] == below, axis=2) / 64
    terms = uniform_terms(PIT - 1e-6, PIT + 1e-6, np.sqrt(0.05)) * gram
    actual = distribution_matching_error(Y, GAUSSIAN, calibration="threshold", estimation="biased")
    np.testing.assert_allclose(actual, average(terms, None, "biased"), atol=5e-4)


@estimators
def test_groups_and_decisions_compare_equal_ones(estimation):
    group = np.array(["b", "a", "b", "c", "a", "b"])
    terms = gaussian_terms("rbf", 0.7)
    actual = distribution_matching_error(
        Y, GAUSSIAN, calibration="group", given=group, bandwidth=0.7, estimation=estimation
    )
    same = group[:, None] == group
    np.testing.assert_allclose(actual, average(terms * same, None, estimation), atol=1e-9)

    # costs of too little and too much, 3 and 1: ordering a, from 0 to 2
    def loss(y):
        order = np.array([0.0, 1.0, 2.0])
        gap = y[:, None] - order
        return np.maximum(3 * gap, -gap)

    node = np.linspace(-9, 9, 20_001)
    outcome = MEAN[:, None] + STD[:, None] * node
    losses = loss(outcome.ravel()).reshape(*outcome.shape, 3)
    expected = np.einsum("nma,m->na", losses, norm.pdf(node))
    action, above = np.argmin(expected, axis=1), MEAN > 0.2
    assert len(set(action)) > 1
    same = ((action[:, None] == action) + 1.0 * (above[:, None] == above)) / 2
    actual = distribution_matching_error(
        Y, GAUSSIAN, calibration="decision", loss=[0.2, loss], bandwidth=0.7, estimation=estimation
    )
    np.testing.assert_allclose(actual, average(terms * same, None, estimation), atol=1e-9)


def test_medians_are_of_outcomes_and_of_standardized_columns():
    pairs = np.triu_indices(N, 1)
    outcome = np.median(np.abs(Y[:, None] - Y)[pairs])
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    near = np.median(np.linalg.norm(scaled[:, None] - scaled, axis=2)[pairs])
    expected = distribution_matching_error(
        Y, GAUSSIAN, given=scaled, bandwidth=outcome, given_bandwidth=near
    )
    units = [1e3, 1e-3] * X + [5, 7]
    actual = distribution_matching_error(Y, GAUSSIAN, given=units)
    np.testing.assert_allclose(actual, expected, rtol=1e-8)


def test_the_wasserstein_kernel():
    distance = np.hypot(MEAN[:, None] - MEAN, STD[:, None] - STD)
    options = {"kernel": "energy", "given_kernel": "wasserstein", "given_bandwidth": 0.6}
    terms = gaussian_terms("energy", None)
    actual = distribution_matching_error(Y, GAUSSIAN, **options)
    expected = average(terms * np.exp(-distance / 0.6), None, "unbiased")
    np.testing.assert_allclose(actual, expected, rtol=1e-7)

    location = members()[1]
    location = np.sort(location, axis=1)
    forecast = EnsembleForecast(location, weights=np.ones(5))
    distance = np.sqrt(np.mean((location[:, None] - location) ** 2, axis=2))
    terms = atom_terms(Y, location, np.full((N, 5), 0.2), "energy", None)
    actual = distribution_matching_error(Y, forecast, **options)
    expected = average(terms * np.exp(-distance / 0.6), None, "unbiased")
    np.testing.assert_allclose(actual, expected, rtol=1e-9)
    place = QuantileForecast([[0.0, 1.0, 5.0], [3.0, 4.0, 8.0]], [0.1, 0.3, 0.8])
    assert np.linalg.norm(np.diff(place._wasserstein_points(), axis=0)) == pytest.approx(3)
    assert np.isfinite(distribution_matching_error(Y, cells()[0], given_kernel="wasserstein"))


def test_callable_kernels():
    def near(s, t):
        return np.exp(-((s - t.T) ** 2) / (2 * 0.49))

    def near_given(s, t):
        return np.exp(-np.sum((s[:, None] - t) ** 2, axis=2) / (2 * 0.81))

    for forecast in (GAUSSIAN, members()[0]):
        expected = distribution_matching_error(
            Y, forecast, given=X, bandwidth=0.7, given_bandwidth=0.9
        )
        actual = distribution_matching_error(
            Y, forecast, given=X, kernel=near, given_kernel=near_given, given_bandwidth=0.9
        )
        np.testing.assert_allclose(actual, expected, atol=1e-5)
    expected = distribution_matching_error(Y, GAUSSIAN, calibration="quantile", bandwidth=0.7)
    actual = distribution_matching_error(Y, GAUSSIAN, calibration="quantile", kernel=near)
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", LINE_KERNELS)
@pytest.mark.parametrize("form", ["marginal", "distribution", "quantile"])
def test_exchangeable_ensembles_have_mean_zero_over_all_swaps(form, kernel):
    values = np.random.default_rng(0).normal(size=(3, 3)) + np.array([[0], [1], [5]])
    options = {} if kernel == "energy" else {"bandwidth": 0.7}
    errors = []
    for places in itertools.product(range(3), repeat=3):
        y = values[np.arange(3), places]
        rest = np.array([np.delete(row, k) for row, k in zip(values, places, strict=True)])
        errors.append(
            distribution_matching_error(
                y, EnsembleForecast(rest), calibration=form, kernel=kernel, **options
            )
        )
    assert np.ptp(errors) > 0.01
    np.testing.assert_allclose(np.mean(errors), 0, atol=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_fourier_features_have_the_exact_value_as_their_mean(kernel):
    y, forecast = np.tile(Y, 5), GaussianForecast(np.tile(MEAN, 5), np.tile(STD, 5))
    options = {"kernel": kernel, "estimation": "biased"}
    for given_kernel in ("rbf", "exponential", "total-variation"):
        exact = distribution_matching_error(y, forecast, given_kernel=given_kernel, **options)
        draws = [
            distribution_matching_error(
                y,
                forecast,
                given_kernel=given_kernel,
                method="fourier",
                n_components=50,
                random_state=seed,
                **options,
            )
            for seed in range(30)
        ]
        assert abs(np.mean(draws) - exact) < 4 * np.std(draws) / np.sqrt(29)
        assert np.std(draws) < 0.3 * exact


@pytest.mark.parametrize(
    ("forecast", "options"),
    [
        (GAUSSIAN, {}),
        (GAUSSIAN, {"kernel": "laplacian", "bandwidth": 1.0, "sample_weight": WEIGHT}),
        (GAUSSIAN, {"calibration": "quantile"}),
        (GAUSSIAN, {"method": "fourier", "n_components": 100, "bandwidth": 1.0}),
        (EnsembleForecast(MEAN[:, None] + RNG.normal(size=(N, 3))), {"kernel": "energy"}),
    ],
    ids=["rbf", "laplacian", "quantile", "fourier", "ensemble"],
)
def test_standardized_errors_are_in_standard_deviations(forecast, options):
    raw = distribution_matching_error(Y, forecast, **options, random_state=0)
    deviation = raw / distribution_matching_error(
        Y, forecast, estimation="standardized", **options, random_state=0
    )
    params = {name: value for name, value in options.items() if name != "sample_weight"}
    if not params:  # the standard deviation is that for the bandwidth found
        params["bandwidth"] = np.median(np.abs(Y[:, None] - Y)[np.triu_indices(N, 1)])
    own = {name: params.pop(name) for name in ("kernel", "bandwidth") if name in params}
    null = (
        CalibrationTest(
            "skce", metric_params=params or None, n_resamples=499, random_state=0, **own
        )
        .fit(forecast, Y, sample_weight=options.get("sample_weight"))
        .null_distribution_
    )
    np.testing.assert_allclose(deviation, np.std(null), rtol=0.1)


def test_the_witness_is_its_definition_and_gives_the_error():
    options = {"given": X, "bandwidth": 0.7, "given_bandwidth": 0.9}
    node, share = np.polynomial.hermite_e.hermegauss(60)
    members = MEAN[:, None] + STD[:, None] * node
    near = rbf_gram(X, 0.9)
    biased = 0.0
    for i in range(N):
        witness = distribution_matching_witness(
            Y, GAUSSIAN, y_grid=np.append(Y[i], members[i]), given_grid=X[[i]], **options
        )
        gap = np.array(
            [
                np.exp(-((y - witness.y) ** 2) / 0.98)
                - share / share.sum() @ np.exp(-((x[:, None] - witness.y) ** 2) / 0.98)
                for y, x in zip(Y, members, strict=True)
            ]
        )
        np.testing.assert_allclose(witness.value[0], near[i] @ gap / N, atol=1e-8)
        biased += (witness.value[0, 0] - share / share.sum() @ witness.value[0, 1:]) / N
    expected = distribution_matching_error(Y, GAUSSIAN, estimation="biased", **options)
    assert biased == pytest.approx(expected, abs=1e-8)


def test_the_grids_of_the_witness():
    witness = distribution_matching_witness(Y, GAUSSIAN)
    assert witness.value.shape == (N, 101)
    np.testing.assert_allclose(witness.y[[0, -1]], [Y.min(), Y.max()])
    np.testing.assert_allclose(witness.given, PARAMETERS[np.lexsort(PARAMETERS.T[::-1])])
    pits = distribution_matching_witness(Y, GAUSSIAN, calibration="quantile")
    assert pits.given is None
    assert pits.value.shape == (1, 101)
    biased = distribution_matching_error(Y, GAUSSIAN, calibration="quantile", estimation="biased")
    at_pits = distribution_matching_witness(Y, GAUSSIAN, calibration="quantile", y_grid=PIT)
    uniform = np.polynomial.legendre.leggauss(60)
    at_uniform = distribution_matching_witness(
        Y, GAUSSIAN, calibration="quantile", y_grid=(uniform[0] + 1) / 2
    )
    squared = at_pits.value[0].mean() - uniform[1] / 2 @ at_uniform.value[0]
    assert squared == pytest.approx(biased, abs=1e-9)
    group = np.array(["b", "a", "b", "c", "a", "b"])
    groups = distribution_matching_witness(Y, GAUSSIAN, calibration="group", given=group)
    assert groups.given.tolist() == ["a", "b", "c"]
    alone = distribution_matching_witness(
        Y[3:4], GAUSSIAN[[3]], calibration="marginal", y_grid=groups.y, bandwidth=1.0
    )
    again = distribution_matching_witness(
        Y, GAUSSIAN, calibration="group", given=group, y_grid=groups.y, bandwidth=1.0
    )
    np.testing.assert_allclose(again.value[2], alone.value[0] / N, rtol=1e-12)
    scaled = distribution_matching_witness(Y, GAUSSIAN, given=X, given_grid=X)
    units = distribution_matching_witness(Y, GAUSSIAN, given=100 * X + 3, given_grid=100 * X + 3)
    np.testing.assert_allclose(units.value, scaled.value, rtol=1e-9)


# Classes

PROBA = RNG.dirichlet(np.ones(3), size=N)
LABEL = np.array([0, 1, 2, 2, 1, 0])
RESIDUAL = np.eye(3)[LABEL] - PROBA


@estimators
def test_forms_for_classes(estimation):
    group = np.array([3, 1, 3, 2, 1, 3])
    shared = {"sample_weight": WEIGHT, "estimation": estimation}
    products = RESIDUAL @ RESIDUAL.T
    loss = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0.5]])
    action = np.argmin(PROBA @ loss.T, axis=1)
    top = np.argmax(PROBA, axis=1)
    hit, best = (top == LABEL) - PROBA.max(axis=1), PROBA.max(axis=1)
    expected = {
        "canonical": products * rbf_gram(PROBA, 0.5),
        "distribution": products * rbf_gram(PROBA, 0.5),
        "individual": products * rbf_gram(X, 0.5),
        "group": products * (group[:, None] == group),
        "decision": products * (action[:, None] == action),
        # two classes: 2 r_i r_j, and distances between (1 − p, p), √2 |p − q|
        "top-label": 2 * np.outer(hit, hit) * rbf_gram(best[:, None], 0.5 / np.sqrt(2)),
        "marginal": np.mean(
            [
                2 * np.outer(r, r) * rbf_gram(p[:, None], 0.5 / np.sqrt(2))
                for r, p in zip(RESIDUAL.T, PROBA.T, strict=True)
            ],
            axis=0,
        ),
    }
    near = {"given_bandwidth": 0.5}
    own = {
        "individual": {"given": X, **near}, "group": {"given": group}, "decision": {"loss": loss},
    }  # fmt: skip
    for form, terms in expected.items():
        actual = distribution_matching_error(
            LABEL, PROBA, calibration=form, **shared, **own.get(form, near)
        )
        np.testing.assert_allclose(actual, average(terms, WEIGHT, estimation), rtol=1e-10)


def test_classes_equal_the_squared_kernel_error():
    for form, multi_class in (
        ("canonical", "canonical"),
        ("top-label", "confidence"),
        ("marginal", "classwise"),
    ):
        expected = squared_kernel_calibration_error(
            LABEL, PROBA, kernel="laplacian", multi_class=multi_class
        )
        actual = distribution_matching_error(
            LABEL, PROBA, given_kernel="laplacian", calibration=form
        )
        assert actual == expected
    proba = PROBA[:, 1]
    expected = squared_kernel_calibration_error(LABEL == 1, proba, kernel="rbf")
    assert distribution_matching_error(LABEL == 1, proba, pos_label=True) == expected
    weight = np.array([1, 0, 2, 1, 0, 3])
    kept = weight > 0
    whole = distribution_matching_error(
        LABEL, PROBA, calibration="individual", given=X, sample_weight=weight
    )
    part = distribution_matching_error(
        LABEL[kept], PROBA[kept], calibration="individual", given=X[kept],
        sample_weight=weight[kept], labels=[0, 1, 2],
    )  # fmt: skip
    assert whole == pytest.approx(part, rel=1e-12)


@pytest.mark.parametrize("form", ["canonical", "top-label", "marginal", "group"])
def test_standardized_errors_of_classes(form):
    label, proba = LABEL[:4], PROBA[:4]
    given = {"given": [0, 0, 1, 1]} if form == "group" else {"given_bandwidth": 0.5}
    options = {"calibration": form, "labels": [0, 1, 2], **given}
    raw = distribution_matching_error(label, proba, **options)
    deviation = raw / distribution_matching_error(
        label, proba, estimation="standardized", random_state=0, **options
    )
    variance = 0.0
    for drawn in itertools.product(range(3), repeat=4):
        error = distribution_matching_error(drawn, proba, **options)
        variance += np.prod(proba[np.arange(4), drawn]) * error**2
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=0.05)


def test_local_without_features_is_given_the_forecast():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=30), np.exp(rng.normal(size=30))
    y, forecast = rng.normal(mean, std), GaussianForecast(mean, std)
    options = {"calibration": "local"}
    expected = distribution_matching_error(
        y, forecast, given=np.column_stack([mean, np.log(std)]), **options
    )
    assert distribution_matching_error(y, forecast, **options) == pytest.approx(expected)


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calibration": "canonical"}, "is for classes"),
        ({"calibration": "individual"}, r"given must hold features"),
        ({"calibration": "group"}, "given must hold the group of each sample"),
        ({"calibration": "group", "given": range(6)}, "6 groups of one sample each"),
        ({"calibration": "group", "given": list("abcdef")}, "6 groups of one sample each"),
        ({"calibration": "quantile", "given": X}, "given must be left out"),
        ({"calibration": "individual", "given": np.array(list("abcdef"))}, "must hold numbers"),
        ({"calibration": "group", "given": ["a", None, "b"] * 2}, "given must .* NoneType, str"),
        (
            {"calibration": "group", "given": pd.DataFrame({"a": list("uvuvuv"), "b": range(6)})},
            "given must hold numbers, or one column of labels of groups; found 2 columns",
        ),
        ({"calibration": "decision"}, "loss must be given"),
        ({"calibration": "marginal", "loss": 0.5}, "loss must be left out"),
        ({"loss": np.eye(2)}, r"found array\(\[\[1., 0.\], \[0., 1.\]\]\)"),
        ({"calibration": "decision", "loss": []}, "found an empty list"),
        ({"calibration": "decision", "loss": np.nan}, "loss must be a finite number"),
        ({"calibration": "decision", "loss": lambda y: y}, "loss must return the finite losses"),
        ({"kernel": "energy", "bandwidth": 1.0}, "bandwidth must be left out .* found 1.0"),
        ({"kernel": lambda s, t: s @ t.T, "bandwidth": 1.0}, "bandwidth must be left out"),
        ({"kernel": "energy", "method": "fourier"}, "kernel must be .*'rbf'.*; found 'energy'"),
        ({"kernel": "laplacian", "method": "fourier", "calibration": "quantile"}, "kernel must be"),
        ({"given_kernel": lambda s, t: s @ t.T, "method": "fourier"}, "needs a named given_kernel"),
        ({"calibration": "threshold", "method": "fourier"}, "method must be left out"),
        ({"given_kernel": "wasserstein", "given": X}, "compares forecasts"),
        ({"kernel": lambda s, t: -np.abs(s - t.T)}, "must be positive semi-definite"),
        ({"labels": [0, 1]}, "labels must be None"),
        ({"given": X[:-1]}, "inconsistent numbers of samples"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"estimation": "linear"}, "estimation"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        distribution_matching_error(Y, GAUSSIAN, **options)


def test_bad_input_with_other_data():
    with pytest.raises(ValueError, match=r"y_true must lie within ±1e\+150"):
        distribution_matching_error(1e300 * Y, GAUSSIAN)
    with pytest.raises(ValueError, match=r"y_true must reach 1e-150 .* in a smaller unit"):
        distribution_matching_error(1e-200 * Y, (1e-200 * MEAN, 1e-200 * STD))
    assert distribution_matching_error(1e300 * Y, GAUSSIAN, calibration="quantile") > 0
    with pytest.raises(ValueError, match="at least 2 samples of positive weight"):
        distribution_matching_error(Y, GAUSSIAN, sample_weight=[1, 0, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="loss must be a number"):
        distribution_matching_error(
            Y, cells()[0], calibration="decision", loss=lambda y: np.column_stack([y, -y])
        )
    for options, message in (
        ({"calibration": "local", "given": X}, "is for forecasts of a number"),
        ({"kernel": "laplacian"}, "kernel must be 'loss' or 'rbf' .*compares labels"),
        ({"given_kernel": "wasserstein"}, "compares forecasts of a number"),
        ({"calibration": "decision", "loss": [[0, 1]]}, "loss must be a finite matrix"),
        ({"calibration": "decision", "loss": np.eye(2)}, "one column for each of the 3 classes"),
    ):
        with pytest.raises(ValueError, match=message):
            distribution_matching_error(LABEL, PROBA, **options)
    for options, message in (
        ({"calibration": "marginal", "given_grid": [[0, 0]]}, "given_grid must be None"),
        ({"given_grid": [[0.0, 0.0, 0.0]]}, r"given_grid must have the shape \(n_places, 2\)"),
        ({"y_grid": [[0.0]]}, r"y_grid must have the shape \(n_points,\)"),
        ({"y_grid": [np.nan]}, "y_grid must be finite"),
        ({"calibration": "threshold"}, "calibration"),
    ):
        with pytest.raises(ValueError, match=message):
            distribution_matching_witness(Y, GAUSSIAN, **options)


def test_bandwidths_of_single_precision_are_taken():
    for function in (distribution_matching_error, distribution_matching_witness):
        single, double = (
            function(Y, GAUSSIAN, bandwidth=kind(0.5)) for kind in (np.float32, np.float64)
        )
        if function is distribution_matching_error:
            assert single == double


def test_bandwidths_far_below_the_differences_are_taken():
    y, forecast = 1e149 * Y, (1e149 * MEAN, 1e149 * STD)
    for kernel in ("rbf", "laplacian"):
        value = distribution_matching_error(
            y, forecast, kernel=kernel, bandwidth=1e-150, estimation="biased"
        )
        assert value > 0
