"""The conditional kernel error of forecasts equals its definition, and that of classes."""

import itertools

import numpy as np
import pytest
from oracles import normalised

from skcalib.forecasts import EnsembleForecast, QuantileForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import conditional_kernel_calibration_error, distribution_matching_error

N = 9
RNG = np.random.default_rng(3)
X, STD = RNG.normal(size=N), RNG.uniform(0.5, 2, size=N)
Y = X + RNG.normal(size=N)
WEIGHT = RNG.random(N)
MEMBERS, SHARES = RNG.normal(size=(N, 4)), RNG.dirichlet(np.ones(4), N)

OUTCOME_KERNELS = {
    "rbf": lambda s, t: np.exp(-((s - t.T) ** 2) / (2 * 0.7**2)),
    "laplacian": lambda s, t: np.exp(-np.abs(s - t.T) / 0.7),
    "callable": lambda s, t: (1 + s @ t.T) ** 2,
}


def equal(s, t):
    return (s == t.T).astype(float)


def ensemble(weights):
    return EnsembleForecast(MEMBERS, SHARES if weights else None)


def by_loops(residuals, inner, weight, kernel, penalty, gamma=0.8):
    """min Σ w ‖ρ − M φ‖² + λ ‖M‖² solved for equal roles of all pairs, term by term."""
    n, w = len(inner), normalised(weight, len(inner))
    near = np.empty((n, n))
    for i, j in itertools.product(range(n), repeat=2):
        square = inner[i, i] + inner[j, j] - 2 * inner[i, j]
        gaussian = np.exp(-square / (2 * gamma**2))
        kinds = {"linear": inner[i, j], "rbf": gaussian, "linear-rbf": inner[i, j] + gaussian}
        near[i, j] = kinds[kernel]
    # M = Σ_i ρ_i ⊗ Σ_j A_ij φ_j with A = (λ W⁻¹ + K)⁻¹
    coefficients = np.linalg.inv(near + penalty * np.diag(1 / w))
    return np.trace(coefficients @ residuals @ coefficients @ near)


def of_atoms(function, values, shares):
    """⟨ρ_i, ρ_j⟩ and ⟨μ_i, μ_j⟩ for laws of finitely many values."""
    residuals, inner = np.empty((2, N, N))
    for i, j in itertools.product(range(N), repeat=2):
        points = [np.append(Y[k], values[k])[:, None] for k in (i, j)]
        masses = [np.append(1.0, -shares[k]) for k in (i, j)]
        residuals[i, j] = masses[0] @ function(*points) @ masses[1]
        inner[i, j] = masses[0][1:] @ function(*points)[1:, 1:] @ masses[1][1:]
    return residuals, inner


@pytest.mark.parametrize("outcome_kernel", OUTCOME_KERNELS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "linear-rbf"])
def test_equals_its_definition_for_atoms(kernel, outcome_kernel):
    function = OUTCOME_KERNELS[outcome_kernel]
    expected = by_loops(*of_atoms(function, MEMBERS, SHARES), WEIGHT, kernel, 0.3)
    options = {"kernel": kernel, "regularization": 0.3, "sample_weight": WEIGHT}
    if kernel != "linear":
        options["bandwidth"] = 0.8
    named = {"outcome_kernel": outcome_kernel, "outcome_bandwidth": 0.7}
    if outcome_kernel == "callable":
        named = {"outcome_kernel": function}
    actual = conditional_kernel_calibration_error(Y, ensemble(True), **options, **named)
    assert actual == pytest.approx(expected, rel=1e-10)


def test_equals_its_definition_for_normal_forecasts():
    def mean(distance, variance):
        spread = 0.7**2 + variance
        return 0.7 / np.sqrt(spread) * np.exp(-(distance**2) / (2 * spread))

    inner = mean(X[:, None] - X, STD[:, None] ** 2 + STD**2)
    cross = mean(Y[:, None] - X, STD**2)
    residuals = mean(Y[:, None] - Y, 0) - cross - cross.T + inner
    expected = by_loops(residuals, inner, None, "linear-rbf", N**-0.25)
    options = {"bandwidth": 0.8, "outcome_bandwidth": 0.7}
    actual = conditional_kernel_calibration_error(Y, (X, STD), **options)
    assert actual == pytest.approx(expected, rel=1e-12)


def test_exchangeable_members_are_compared_as_they_are_and_given_with_the_outcome():
    function = OUTCOME_KERNELS["rbf"]
    residuals, _ = of_atoms(function, MEMBERS, np.full((N, 4), 0.25))
    _, inner = of_atoms(function, np.column_stack([MEMBERS, Y]), np.full((N, 5), 0.2))
    expected = by_loops(residuals, inner, None, "linear-rbf", N**-0.25)
    options = {"bandwidth": 0.8, "outcome_bandwidth": 0.7}
    actual = conditional_kernel_calibration_error(Y, ensemble(False), **options)
    assert actual == pytest.approx(expected, rel=1e-12)


def test_given_features_it_is_the_distance_of_two_conditional_laws():
    features = np.column_stack([X, STD])
    centred = features - features.mean(axis=0)
    residuals, _ = of_atoms(OUTCOME_KERNELS["rbf"], MEMBERS, SHARES)
    expected = by_loops(residuals, centred @ centred.T, None, "linear-rbf", N**-0.25)
    options = {"bandwidth": 0.8, "outcome_bandwidth": 0.7, "given": features}
    actual = conditional_kernel_calibration_error(Y, ensemble(True), **options)
    assert actual == pytest.approx(expected, rel=1e-12)
    # with "median" the unit of each feature does not matter
    options["bandwidth"] = "median"
    values = [
        conditional_kernel_calibration_error(Y, ensemble(True), **options | {"given": given})
        for given in (features, features * [1e3, 1e-3] + [5, 7])
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"bandwidth": 0.8},
        {"kernel": "linear", "regularization": 0.1},
        {"kernel": "rbf", "regularization": "cv"},
        {"estimation": "debiased"},
    ],
    ids=str,
)
def test_classes_given_features_are_weighted_ensembles(n_classes, options):
    proba = np.random.default_rng(n_classes).dirichlet(np.ones(n_classes), N)
    label = np.arange(N) % n_classes
    data = {"given": np.column_stack([X, STD]), "sample_weight": WEIGHT} | options
    members = np.tile(np.arange(n_classes), (N, 1))
    expected = conditional_kernel_calibration_error(
        label,
        EnsembleForecast(members, proba),
        outcome_kernel=equal,
        **data,
    )
    actual = conditional_kernel_calibration_error(label, proba, **data)
    assert actual == pytest.approx(expected, rel=1e-9)
    if n_classes == 2:
        binary = conditional_kernel_calibration_error(label, proba[:, 1], **data)
        assert binary == pytest.approx(expected, rel=1e-9)
    if "estimation" not in options and "bandwidth" in options:
        centred = data["given"] - np.average(data["given"], axis=0, weights=WEIGHT)
        residuals = np.eye(n_classes)[label] - proba
        loops = by_loops(
            residuals @ residuals.T, centred @ centred.T, WEIGHT, "linear-rbf", N**-0.25
        )
        assert actual == pytest.approx(loops, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "linear", "regularization": 0.01},
        {"kernel": "rbf", "bandwidth": 0.3, "estimation": "debiased"},
        {"regularization": "cv"},
    ],
    ids=str,
)
def test_finitely_many_outcomes_are_classes(n_classes, options):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), 60)
    label, weight = rng.integers(n_classes, size=60), rng.exponential(size=60)
    options = options | {"sample_weight": weight}
    expected = conditional_kernel_calibration_error(label, proba, **options)
    forecast = EnsembleForecast(np.tile(np.arange(n_classes), (60, 1)), proba)
    actual = conditional_kernel_calibration_error(label, forecast, outcome_kernel=equal, **options)
    assert actual == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", equal], ids=["rbf", "callable"])
@pytest.mark.parametrize("weighted", [True, False])
def test_debiased_mean_is_zero_over_all_outcomes(kernel, weighted):
    members = np.array([[0.0, 1.0], [0.5, 2.0], [-1.0, 0.3]])
    shares = np.array([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1]])
    outcome = np.array([0.2, 1.1, 0.3])
    pooled = members if weighted else np.column_stack([outcome, members])
    options = {} if callable(kernel) else {"outcome_bandwidth": 0.7}
    total = 0.0
    for places in itertools.product(range(pooled.shape[1]), repeat=3):
        rows = np.arange(3)
        drawn = pooled[rows, places]
        others = [np.delete(row, place) for row, place in zip(pooled, places, strict=True)]
        forecast = EnsembleForecast(members, shares) if weighted else EnsembleForecast(others)
        chance = np.prod(shares[rows, places]) if weighted else 1 / 27
        value = conditional_kernel_calibration_error(
            drawn, forecast, outcome_kernel=kernel, estimation="debiased", **options
        )
        total += chance * value
    assert abs(total) < 1e-12


def test_what_is_right_on_average_and_wrong_given_the_forecast():
    rng = np.random.default_rng(2)
    x = rng.normal(size=100)
    y = x + rng.normal(size=100)
    right, wrong = (x, np.ones(100)), (-x, np.ones(100))  # both have the law of y on average
    test = CalibrationTest("conditional_kernel_calibration_error", n_resamples=19, random_state=0)
    assert test.fit(wrong, y).p_value_ == 1 / 20
    options = {"outcome_bandwidth": 1.0, "bandwidth": 0.5, "estimation": "debiased"}
    low, high = (
        conditional_kernel_calibration_error(y, forecast, **options) for forecast in (right, wrong)
    )
    assert abs(low) < 0.02
    assert high > 0.2
    marginal = {"calibration": "marginal", "estimation": "standardized", "random_state": 0}
    assert distribution_matching_error(y, wrong, **marginal) < 3
    # the climate is calibrated given itself, but wrong given x
    climate = np.zeros(100), np.full(100, np.sqrt(2))
    assert conditional_kernel_calibration_error(y, climate, **options) < 0.01
    assert conditional_kernel_calibration_error(y, climate, given=x, **options) > 0.05


def test_the_shape_of_a_forecast_is_seen():
    # skewed forecasts of equal mean and spread, half of them to each side; all to the wrong one
    rng = np.random.default_rng(0)
    side, skewed = rng.choice([-1.0, 1.0], 200), rng.choice([-0.5, 2.0], 200, p=[0.8, 0.2])
    forecast = EnsembleForecast(np.outer(side, [-0.5, 2.0]), weights=[0.8, 0.2])
    y = -side * skewed
    error = conditional_kernel_calibration_error(
        y, forecast, outcome_bandwidth=0.3, estimation="debiased"
    )
    assert error > 0.05
    assert distribution_matching_error(y, forecast, estimation="standardized", random_state=0) < 3


def test_quantile_forecasts_are_told_by_their_quantiles():
    rng = np.random.default_rng(0)
    levels = np.arange(1, 10) / 10
    x = rng.normal(size=120)
    cells = QuantileForecast(x[:, None] + np.quantile(rng.normal(size=4000), levels), levels)
    options = {"outcome_bandwidth": 0.3, "estimation": "debiased"}
    y = x + rng.normal(size=120)
    right = conditional_kernel_calibration_error(y, cells, **options)
    wrong = conditional_kernel_calibration_error(y - 2 * x, cells, **options)
    assert abs(right) < 0.005 < 0.02 < wrong


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimation": "standardized"}, "estimation must be 'biased' or 'debiased'"),
        ({"method": "fourier"}, "method must be 'exact' for forecasts of a number"),
        ({"multi_class": "classwise"}, "multi_class must be 'canonical'"),
        ({"average": None}, "average must be 'auto'"),
        ({"kernel": "laplacian"}, "kernel must be 'linear-rbf' or 'linear' or 'rbf' for forecasts"),
        ({"kernel": equal}, "kernel must be 'linear-rbf' or 'linear' or 'rbf' for forecasts"),
        ({"estimation": "debiased"}, "outcome_bandwidth that does not depend on outcomes"),
        (
            {"estimation": "debiased", "regularization": "cv", "outcome_bandwidth": 1.0},
            "found 'cv'",
        ),
        ({"given": ["a"] * N}, r"given must hold numbers; found \['a'\]\. Encode groups as"),
        ({"labels": [0, 1]}, "labels must be None for forecasts"),
        ({"outcome_kernel": lambda s, t: np.ones(3)}, "kernel must return the values for all"),
    ],
)
def test_refuses_what_forecasts_do_not_have(options, message):
    with pytest.raises(ValueError, match=message):
        conditional_kernel_calibration_error(Y, (X, STD), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcome_kernel": "laplacian"}, "outcome_kernel must be 'rbf' for prob"),
        ({"outcome_kernel": equal}, "outcome_kernel must be 'rbf' for prob"),
        ({"outcome_bandwidth": 1.0}, "outcome_bandwidth must be 'median' for prob"),
        ({"given": [1.0, 2.0, 3.0], "kernel": equal}, "kernel must be .* given features"),
        ({"given": [1.0, 2.0, 3.0], "method": "fourier"}, "method must be 'exact' for prob"),
        (
            {"given": ["a", "b", "b"]},
            r"given must hold numbers; found \['a', 'b'\]\. Encode groups",
        ),
    ],
)
def test_refuses_what_classes_do_not_have(options, message):
    with pytest.raises(ValueError, match=message):
        conditional_kernel_calibration_error([0, 1, 1], [0.1, 0.6, 0.7], **options)


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", ["median", 1.0])
def test_size(bandwidth):
    rng = np.random.default_rng(0)
    params = {"outcome_bandwidth": bandwidth}
    rejected = 0
    for _ in range(400):
        x = rng.normal(size=20)
        test = CalibrationTest(
            "conditional_kernel_calibration_error",
            n_resamples=19,
            metric_params=params,
            random_state=rng.integers(2**31),
        )
        rejected += test.fit((x, np.ones(20)), x + rng.normal(size=20)).p_value_ <= 0.1
    assert abs(rejected / 400 - 0.1) < 4 * np.sqrt(0.09 / 400)
