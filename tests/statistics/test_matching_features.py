"""The kernels of decisions equal their definitions, for all kinds of forecasts and batches."""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.stats import norm

from skcalib._data import check_forecasts
from skcalib._statistics.matching import MatchingError
from skcalib.decisions import DecisionLoss
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
)
from skcalib.forecasts._transformed import ConcatenatedForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    decision_calibration_error,
    distribution_matching_error,
    distribution_matching_witness,
)
from skcalib.metrics._matching import null_deviation
from skcalib.metrics._registry import ALL_METRICS

N = 5
RNG = np.random.default_rng(3)
MEAN, STD, X = RNG.normal(size=N), RNG.uniform(0.5, 2, size=N), RNG.normal(size=(N, 2))
Y, WEIGHT = MEAN + 1.5 * STD * RNG.normal(size=N), RNG.random(N)
MEMBERS = MEAN[:, None] + RNG.normal(size=(N, 4))
LEVELS = (np.arange(64) + 0.5) / 64

FORECASTS = {
    "normal": GaussianForecast(MEAN, STD),
    "mixture": GaussianMixtureForecast(np.c_[MEAN, MEAN + 1], np.c_[STD, 2 * STD], [0.4, 0.6]),
    "ensemble": EnsembleForecast(MEMBERS),
    "weighted": EnsembleForecast(MEMBERS, [1, 2, 3, 4]),
    "residual": ResidualForecast(MEAN, [-1.0, 0.1, 0.4]),
}


def costs(y):
    """Of ordering 0, 1 or 2, if too little costs three times what too much does."""
    gap = y[:, None] - np.array([0.0, 1.0, 2.0])
    return np.maximum(3 * gap, -gap)


CASES = {
    "moments": {"kernel": "moments"},
    "thresholds": {"kernel": "thresholds"},
    "tanh": {"kernel": "tanh", "thresholds": 0.3, "bandwidth": 0.4},
    "tanh, two": {"kernel": "tanh", "thresholds": [-0.5, 0.3], "bandwidth": 1.5},
    "loss": {"kernel": "loss", "loss": 0.3},
    "losses": {"kernel": "loss", "loss": [0.3, DecisionLoss(costs, breakpoints=[0, 1, 2])]},
}

all_cases = pytest.mark.parametrize("case", CASES)


def kernel_of(case, kind):
    """ℓ(y, y') itself, and the points at which it has a step or a kink."""
    if case == "moments":
        return lambda a, b: a * b + a**2 * b**2, []
    if case == "thresholds":
        t = thresholds(kind)
        # as many t are at least a and b as are at least the larger one
        return lambda a, b: 1 - np.maximum(np.searchsorted(t, a), np.searchsorted(t, b)) / 64, t
    if case in ("tanh", "tanh, two"):
        places, scale = ([0.3], 0.4) if case == "tanh" else ([-0.5, 0.3], 1.5)
        return lambda a, b: sum(
            np.tanh((a - c) / scale) * np.tanh((b - c) / scale) / len(places) for c in places
        ), places
    if case == "loss":  # one of the two actions is wrong, the same one on either side
        return lambda a, b: (a > 0.3) == (b > 0.3), [0.3]

    def both(a, b):
        same = np.equal(a > 0.3, b > 0.3)
        product = costs(np.ravel(a)) @ costs(np.ravel(b)).T
        return (same + product.reshape(same.shape)) / 2

    return both, [0, 0.3, 1, 2]


def thresholds(kind):
    """64 quantiles of all forecasts pooled; members and their outcome together."""
    if kind in ("normal", "mixture"):
        return weighted_quantiles(FORECASTS[kind].quantiles(LEVELS))
    values, share = atoms(kind)
    if kind == "ensemble":
        values, share = np.column_stack([values, Y]), np.full((N, 5), 0.2)
    pooled = []
    for row, mass in zip(values, share, strict=True):
        order = np.argsort(row)
        place = np.searchsorted(np.cumsum(mass[order]) - 1e-12, LEVELS)
        pooled.append(row[order][place])
    return weighted_quantiles(np.array(pooled))


def weighted_quantiles(values):
    weight = np.repeat(WEIGHT, values.shape[1])
    return np.quantile(values.ravel(), LEVELS, weights=weight, method="inverted_cdf")


def atoms(kind):
    if kind == "residual":
        return MEAN[:, None] + [-1.0, 0.1, 0.4], np.full((N, 3), 1 / 3)
    share = [0.1, 0.2, 0.3, 0.4] if kind == "weighted" else [0.25] * 4
    return MEMBERS, np.tile(share, (N, 1))


def points_of(kind, breaks):
    """Points (s,) and weights for means under each forecast: its atoms, or nodes of quadrature."""
    if kind not in ("normal", "mixture"):
        return list(zip(*atoms(kind), strict=True))
    node, share = np.polynomial.legendre.leggauss(9)
    out = []
    for m, s in zip(MEAN, STD, strict=True):
        parts = [(1.0, m, s)] if kind == "normal" else [(0.4, m, s), (0.6, m + 1, 2 * s)]
        ends = [mean + std * np.arange(-8, 9) for _, mean, std in parts]
        ends = np.unique(np.concatenate([*ends, breaks]))
        width = np.diff(ends)[:, None]
        x = ends[:-1, None] + width * (node + 1) / 2
        density = sum(w * norm.pdf(x, mean, std) for w, mean, std in parts)
        out.append((x.ravel(), (width * share / 2 * density).ravel()))
    return out


def literal_terms(case, kind):
    """ℓ(y_i, y_j) − e_i(y_j) − e_j(y_i) + c_ij, by loops over pairs of samples."""
    kernel, breaks = kernel_of(case, kind)
    points = points_of(kind, breaks)
    terms = np.empty((N, N))
    for i, j in itertools.combinations_with_replacement(range(N), 2):
        (x, mass), (other, other_mass) = points[i], points[j]
        terms[i, j] = kernel(Y[i], Y[j]) + mass @ kernel(x[:, None], other) @ other_mass
        terms[i, j] -= mass @ kernel(x, Y[j]) + other_mass @ kernel(Y[i], other)
        terms[j, i] = terms[i, j]
    return terms


def average(terms, estimation):
    weight = WEIGHT / WEIGHT.sum()
    pairs = np.outer(weight, weight) * (1 if estimation == "biased" else 1 - np.eye(N))
    return np.sum(pairs * terms) / pairs.sum()


@all_cases
@pytest.mark.parametrize("kind", FORECASTS)
def test_errors_equal_loops(kind, case):  # up to half a second: nodes on all pieces of a loss
    terms = literal_terms(case, kind)
    near = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / (2 * 0.9**2))
    for estimation, options, gram in (
        ("biased", {"calibration": "marginal"}, 1.0),
        ("unbiased", {"calibration": "individual", "given": X, "given_bandwidth": 0.9}, near),
    ):
        options = CASES[case] | options | {"sample_weight": WEIGHT, "estimation": estimation}
        actual = distribution_matching_error(Y, FORECASTS[kind], **options)
        expected = average(terms * gram, estimation)
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)


def biased(y, forecast, **options):
    return distribution_matching_error(
        y, forecast, **{"calibration": "marginal", "estimation": "biased"} | options
    )


def test_numbers_by_hand():
    # members 0 and 2 have means 1 and 2 of y and y²; the outcomes 1 and 2 have 1.5 and 2.5
    forecast = EnsembleForecast([[0.0, 2.0], [0.0, 2.0]], weights=[1, 1])
    assert biased([1, 2], forecast, kernel="moments") == pytest.approx(0.5**2 + 0.5**2)
    # half of the thresholds are 0 and half 2; no outcome is at most 0, and half were forecast
    assert biased([1, 2], forecast, kernel="thresholds") == pytest.approx(0.5 * 0.5**2)
    # one of two outcomes exceeds 1, as forecast; two exceed 0.5
    assert biased([1, 2], forecast, kernel="loss", loss=1) == pytest.approx(0, abs=1e-15)
    assert biased([1, 2], forecast, kernel="loss", loss=0.5) == pytest.approx(2 * 0.5**2)
    step = (np.tanh(0.5) + np.tanh(1.5)) / 2 - (np.tanh(-0.5) + np.tanh(1.5)) / 2
    value = biased([1, 2], forecast, kernel="tanh", thresholds=0.5, bandwidth=1.0)
    assert value == pytest.approx(step**2)


def test_thresholds_are_the_cramer_von_mises_distance():
    pooled = norm.ppf(LEVELS, MEAN[:, None], STD[:, None])
    t = np.quantile(pooled, LEVELS, method="averaged_inverted_cdf")
    gap = np.mean(Y[:, None] <= t, axis=0) - np.mean(norm.cdf(t, MEAN[:, None], STD[:, None]), 0)
    actual = biased(Y, (MEAN, STD), kernel="thresholds")
    np.testing.assert_allclose(actual, np.mean(gap**2), rtol=1e-12)


@pytest.mark.parametrize("kind", FORECASTS)
@pytest.mark.parametrize("loss", [0.3, costs])
def test_losses_are_the_squared_decision_calibration_error(kind, loss):
    forecast, options = FORECASTS[kind], {"loss": loss, "sample_weight": WEIGHT}
    expected = decision_calibration_error(Y, forecast, **options) ** 2
    np.testing.assert_allclose(biased(Y, forecast, kernel="loss", **options), expected, rtol=1e-10)
    if not forecast.is_exchangeable:  # whose decision comes from the members and the outcome
        expected = decision_calibration_error(Y, forecast, given="action", **options) ** 2
        actual = biased(Y, forecast, kernel="loss", calibration="decision", **options)
        np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_quantile_forecasts_are_compared_by_cells():
    values = np.sort(RNG.normal(size=(N, 3)), axis=1)
    bounds = np.array([0.1, 0.5, 0.7, 1.0])
    forecast = QuantileForecast(values, bounds[:-1])
    ends = bounds[np.searchsorted(bounds, LEVELS)]
    cell = bounds[(values < Y[:, None]).sum(axis=1)]
    gap = np.mean(cell[:, None] <= ends, axis=0) - ends
    actual = biased(Y, forecast, kernel="thresholds")
    np.testing.assert_allclose(actual, np.mean(gap**2), rtol=1e-12)
    test = CalibrationTest("skce", kernel="thresholds", n_resamples=19, random_state=0)
    assert 0 < test.fit(forecast, Y).p_value_ <= 1


@pytest.mark.parametrize("scale", [1e-4, 0.3])
def test_steps_of_other_distributions_equal_quadrature(scale):
    shapes, c = (0.8, 2.5), 1.2
    forecast = DistributionForecast(stats.gamma(np.array(shapes)))
    mean = []
    for shape in shapes:
        ends = np.unique(np.clip(c + scale * np.array([-30, -9, -2, 0, 2, 9, 30]), 0, 60))
        law = stats.gamma(shape)

        def step(x, law=law):
            return np.tanh((x - c) / scale) * law.pdf(x)

        rest = [quad(step, *pair, epsabs=1e-13)[0] for pair in itertools.pairwise(ends)]
        mean.append(sum(rest) + law.sf(ends[-1]) - law.cdf(ends[0]))
    y = np.array([0.5, 3.0])
    expected = np.mean(np.tanh((y - c) / scale) - mean) ** 2
    options = {"kernel": "tanh", "thresholds": c, "bandwidth": scale}
    np.testing.assert_allclose(biased(y, forecast, **options), expected, rtol=1e-9)
    # beside normal forecasts each kind keeps its own way
    both = ConcatenatedForecast([FORECASTS["normal"], forecast])
    normal = [np.sqrt(biased(Y[i : i + 1], FORECASTS["normal"][[i]], **options)) for i in range(N)]
    other = [np.sqrt(biased(y[i : i + 1], forecast[[i]], **options)) for i in range(2)]
    together = np.concatenate([Y, y])
    groups = {"calibration": "group", "given": np.arange(N + 2)}
    expected = np.sum(np.square(normal + other)) / (N + 2) ** 2
    np.testing.assert_allclose(biased(together, both, **groups, **options), expected, rtol=1e-9)


# Batches, tests and standard deviations


def error_of(kind, case, **options):
    data = check_forecasts(Y, FORECASTS[kind], sample_weight=WEIGHT)
    metric = ALL_METRICS["distribution_matching_error"]
    params = {"calibration": "marginal"} | CASES[case] | options
    return metric.statistic(data, **metric.validate_options(params))


@all_cases
@pytest.mark.parametrize("kind", ["normal", "ensemble", "weighted", "residual"])
def test_batches_equal_the_metric_of_each_draw(kind, case):
    error = error_of(kind, case, calibration="distribution")
    drawn = error.data.simulate_outcomes(np.random.default_rng(0), 4)
    expected = []
    for row in drawn:
        drawn_data = error.data.with_outcome(row)
        y, forecast = drawn_data.value, drawn_data.forecast
        expected.append(
            distribution_matching_error(y, forecast, sample_weight=WEIGHT, **CASES[case])
        )
    np.testing.assert_allclose(error(drawn), expected, rtol=1e-9, atol=1e-12)


@all_cases
def test_the_mean_over_all_swaps_with_members_is_zero(case):
    y, members = np.array([-0.2, 0.5, 1.1]), np.array([[0.1, 1.0], [0.9, -1.3], [0.2, 0.4]])
    for form in ("marginal", "distribution"):
        values = []
        for place in itertools.product(range(3), repeat=3):
            pool = np.column_stack([y, members])
            outcome = pool[np.arange(3), place].copy()
            pool[np.arange(3), place] = y
            values.append(
                distribution_matching_error(
                    outcome, EnsembleForecast(pool[:, 1:]), calibration=form, **CASES[case]
                )
            )
        np.testing.assert_allclose(np.mean(values), 0, atol=1e-12 * np.ptp(values) + 1e-13)
        assert np.ptp(values) > 1e-3


@all_cases
def test_some_samples_keep_the_features_of_all(case):
    error, rows = error_of("normal", case), np.array([0, 2, 3])
    outcomes = error.data.simulate_outcomes(np.random.default_rng(0), 2)
    part = error.take(rows)
    weight = error.data.weight[rows]
    share = np.outer(weight, weight) / weight.sum() ** 2
    whole = error.term_matrices(outcomes)[:, rows][:, :, rows]
    whole /= np.outer(weight, weight)
    np.testing.assert_allclose(part.term_matrices(outcomes[:, rows]), whole * share, rtol=1e-12)


def test_the_standard_deviation_of_one_pair():
    # outcomes exceed the threshold or not: h = 2 (1[y > c] − p)(1[y' > c] − p')
    proba = norm.sf(0.3, MEAN[:2], STD[:2])
    data = check_forecasts(Y[:2], FORECASTS["normal"][:2])
    error = MatchingError(data, calibration="marginal", kernel="loss", loss=0.3)
    expected = 2 * np.sqrt(np.prod(proba * (1 - proba)))
    actual = null_deviation(error, np.random.default_rng(0))
    np.testing.assert_allclose(actual, expected, rtol=0.03)


@pytest.mark.parametrize(
    ("case", "bound"),
    [("thresholds", 1), ("tanh", 4), ("tanh, two", 4), ("loss", 2), ("moments", None),
     ("losses", None)],
)  # fmt: skip
def test_bounds_on_terms_are_sharp(case, bound):
    assert error_of("ensemble", case).largest_term == bound
    assert error_of("ensemble", case).tie_tolerance == 0
    if bound is None:
        return
    # forecasts far below and far above, and outcomes on the other side
    forecast = EnsembleForecast([[-99.0, -99.0], [99.0, 99.0]], [1, 1])
    low, high = (biased([y], forecast[[i]], **CASES[case]) for i, y in enumerate((100.0, -100.0)))
    assert max(low, high) <= bound + 1e-12
    assert max(low, high) > 0.99 * bound
    options = {"calibration": "individual", "given_bandwidth": 1.0}
    options["given_kernel"] = lambda s, t: 9 * s @ t.T
    data = check_forecasts(Y, FORECASTS["normal"], given=MEAN)
    metric = ALL_METRICS["distribution_matching_error"]
    error = metric.statistic(data, **metric.validate_options(CASES[case] | options))
    assert error.largest_term == pytest.approx(9 * np.max(MEAN**2) * bound)


def test_laws_are_known_where_they_should_be():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=60)
    forecast, y = GaussianForecast(mean, 1.0), mean + 2 + rng.normal(size=60)
    for kernel in ("moments", "thresholds"):
        test = CalibrationTest(kernel=kernel, method="asymptotic", n_resamples=99, random_state=0)
        assert test.fit(forecast, y).p_value_ == 0.01
    bounded = CalibrationTest(kernel="thresholds", method="distribution-free", estimation="biased")
    value = distribution_matching_error(y, forecast, kernel="thresholds", estimation="biased")
    expected = np.exp(-((np.sqrt(60 * value) - 1) ** 2) / 2)
    np.testing.assert_allclose(bounded.fit(forecast, y).p_value_, expected)
    with pytest.raises(ValueError, match=r"needs a named kernel.*'moments'"):
        CalibrationTest(kernel="moments", method="distribution-free").fit(forecast, y)


@all_cases
def test_random_features_have_the_exact_mean(case):
    options = CASES[case] | {"sample_weight": WEIGHT}
    exact = distribution_matching_error(Y, (MEAN, STD), **options)
    fourier = partial(distribution_matching_error, method="fourier", n_components=500)
    drawn = [fourier(Y, (MEAN, STD), random_state=seed, **options) for seed in range(30)]
    error = np.std(drawn) / np.sqrt(30)
    assert error > 0
    assert abs(np.mean(drawn) - exact) < 4 * error
    with pytest.raises(ValueError, match=r"method must be left out .*'marginal'"):
        fourier(Y, (MEAN, STD), calibration="marginal", **options)


@all_cases
@pytest.mark.parametrize("kind", ["normal", "ensemble"])
def test_the_witness_is_the_mean_gap(kind, case):
    kernel, breaks = kernel_of(case, kind)
    points, grid, weight = (
        points_of(kind, breaks),
        np.array([-1.0, 0.2, 1.7]),
        WEIGHT / WEIGHT.sum(),
    )
    expected = [
        sum(weight[i] * (kernel(Y[i], t) - points[i][1] @ kernel(points[i][0], t))
            for i in range(N))
        for t in grid
    ]  # fmt: skip
    witness = distribution_matching_witness(
        Y, FORECASTS[kind], sample_weight=WEIGHT, calibration="marginal", y_grid=grid, **CASES[case]
    )
    np.testing.assert_allclose(witness.value[0], expected, rtol=1e-7, atol=1e-9)


# Classes

PROBA = RNG.dirichlet(np.ones(3), size=N)
LABEL = np.array([0, 2, 1, 1, 2])
TABLE = np.array([[0, 1, 4], [2, 0, 1]])  # actions × classes


@pytest.mark.parametrize("estimation", ["unbiased", "biased"])
def test_losses_of_classes_equal_loops(estimation):
    residual = np.eye(3)[LABEL] - PROBA
    other = 1 - np.eye(3)  # "zero-one"
    terms = residual @ (TABLE.T @ TABLE + other @ other) @ residual.T / 2
    action, guess = np.argmin(PROBA @ TABLE.T, axis=1), np.argmax(PROBA, axis=1)
    agree = (np.equal.outer(action, action) + 1.0 * np.equal.outer(guess, guess)) / 2
    near = {"features": X, "probabilities": PROBA}
    near = {
        name: np.exp(-np.sum((points[:, None] - points) ** 2, axis=2) / (2 * 0.5**2))
        for name, points in near.items()
    }
    group = np.array(list("abaab"))
    for form, gram, options in (
        ("marginal", 1.0, {}),
        ("decision", agree, {}),
        ("canonical", near["probabilities"], {"given_bandwidth": 0.5}),
        ("distribution", near["probabilities"], {"given_bandwidth": 0.5}),
        ("individual", near["features"], {"given": X, "given_bandwidth": 0.5}),
        ("group", np.equal.outer(group, group), {"given": group}),
    ):
        actual = distribution_matching_error(
            LABEL, PROBA, kernel="loss", loss=[TABLE, "zero-one"], calibration=form,
            sample_weight=WEIGHT, estimation=estimation, **options,
        )  # fmt: skip
        np.testing.assert_allclose(actual, average(terms * gram, estimation), rtol=1e-10)


def test_losses_of_classes_are_the_squared_decision_calibration_error():
    for y, proba, options in (
        (LABEL, PROBA, {"loss": TABLE}),
        (LABEL == 2, PROBA[:, 2], {"loss": [[0, 5], [1, 0]]}),
        (LABEL == 2, PROBA[:, 2], {"loss": [[0, 5], [1, 0]], "pos_label": False}),
        (LABEL == 2, PROBA[:, 2], {"loss": [[0, 5], [1, 0]], "labels": [True, False]}),
    ):
        shared = {"sample_weight": WEIGHT, **options}
        expected = decision_calibration_error(y, proba, **shared) ** 2
        np.testing.assert_allclose(biased(y, proba, kernel="loss", **shared), expected, rtol=1e-10)
        expected = decision_calibration_error(y, proba, given="action", **shared) ** 2
        actual = biased(y, proba, kernel="loss", calibration="decision", **shared)
        np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_the_standard_deviation_of_losses_of_classes():
    label, proba = LABEL[:3], PROBA[:3]
    options = {"kernel": "loss", "loss": TABLE, "calibration": "marginal", "labels": [0, 1, 2]}
    raw = distribution_matching_error(label, proba, **options)
    deviation = raw / distribution_matching_error(
        label, proba, estimation="standardized", random_state=0, **options
    )
    variance = 0.0
    for drawn in itertools.product(range(3), repeat=3):
        value = distribution_matching_error(drawn, proba, **options)
        variance += np.prod(proba[np.arange(3), drawn]) * value**2
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=0.05)


# Bad input, and numbers far out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "loss"}, "loss must be given"),
        ({"kernel": "tanh", "bandwidth": 1.0}, "thresholds must be given for .*found None"),
        ({"kernel": "moments", "loss": 0.3}, "loss must be left out"),
        ({"kernel": "loss", "loss": []}, "found an empty list"),
        ({"kernel": "tanh", "thresholds": 0.3}, "bandwidth must be a number with kernel='tanh'"),
        (
            {"kernel": "tanh", "thresholds": costs, "bandwidth": 1.0},
            "thresholds must hold numbers",
        ),
        (
            {"kernel": "tanh", "thresholds": np.inf, "bandwidth": 1.0},
            "thresholds must be finite",
        ),
        ({"kernel": "loss", "loss": [[0, 1], [1, 0]]}, "a callable for forecasts of a number"),
        ({"kernel": "loss", "loss": lambda y: y}, "loss must return the finite losses"),
        ({"kernel": "loss", "loss": lambda y: 1e80 * costs(y)}, "loss must be at most 1e"),
        ({"kernel": "moments", "bandwidth": 1.0}, "bandwidth must be left out"),
        ({"kernel": "thresholds", "bandwidth": 1.0}, "bandwidth must be left out"),
        ({"kernel": "loss", "loss": 0, "bandwidth": 1.0}, "bandwidth must be left out"),
        ({"kernel": "thresholds", "calibration": "quantile"}, "compares PITs; found 'thresholds'"),
        ({"kernel": "moments", "calibration": "local", "given": X}, "PITs; found 'moments'"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        distribution_matching_error(Y, FORECASTS["normal"], **options)


def test_bad_input_with_other_data():
    cells = QuantileForecast(MEMBERS[:, :1], [0.5])
    for case in ("moments", "tanh", "loss"):
        with pytest.raises(ValueError, match="is not known for this forecast: a QuantileForecast"):
            distribution_matching_error(Y, cells, calibration="marginal", **CASES[case])
    cauchy = DistributionForecast(stats.cauchy(MEAN))
    with pytest.raises(ValueError, match="forecasts whose means are finite"):
        biased(Y, cauchy, kernel="moments")
    assert biased(Y, cauchy, kernel="thresholds") < 1
    for options, message in (
        ({"kernel": "moments"}, "compares labels; found 'moments'"),
        ({"kernel": "loss", "loss": TABLE, "bandwidth": 1.0}, "bandwidth must be left out"),
        ({"kernel": "loss", "loss": TABLE, "calibration": "top-label"}, "kernel must be 'rbf'"),
        ({"kernel": "loss"}, "loss must be given"),
        ({"kernel": "loss", "loss": np.eye(2)}, "one column for each of the 3 classes"),
        ({"kernel": "loss", "loss": 1e80 * TABLE}, "loss must be at most 1e"),
    ):
        with pytest.raises(ValueError, match=message):
            distribution_matching_error(LABEL, PROBA, **options)


def test_far_numbers_are_right_or_refused():
    far = {"estimation": "standardized", "random_state": 0}
    moments = partial(biased, kernel="moments")
    unit = 1e34
    expected = unit**4 * np.mean(Y**2 - MEAN**2 - STD**2) ** 2  # next to which the mean is nothing
    actual = moments(unit * Y, (unit * MEAN, unit * STD))
    np.testing.assert_allclose(actual, expected, rtol=1e-10)
    assert np.isfinite(moments(unit * Y, (unit * MEAN, unit * STD), **far))
    with pytest.raises(ValueError, match=r"y_true must lie within ±1e\+35"):
        moments(1e36 * Y, (MEAN, STD))
    with pytest.raises(ValueError, match=r"standard deviations are finite and at most 1e\+35"):
        moments(Y, (MEAN, 1e36 * STD))
    step = {"kernel": "tanh", "thresholds": 0.0}
    expected = biased(Y, (MEAN, STD), bandwidth=0.7, **step)
    for unit in (1e149, 1e-149):
        actual = biased(unit * Y, (unit * MEAN, unit * STD), bandwidth=0.7 * unit, **step)
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
    sharp = biased(Y, (MEAN, STD), kernel="loss", loss=0.0)
    for scale in (1e-9, 1e-140):  # sign(y) = 2 · 1[y > 0] − 1 has twice the squared difference
        actual = biased(Y, (MEAN, STD), bandwidth=scale, **step)
        np.testing.assert_allclose(actual, 2 * sharp, rtol=1e-7)
    with pytest.raises(ValueError, match="bandwidth must be at least 1e-150 times"):
        biased(1e10 * Y, (1e10 * MEAN, 1e10 * STD), bandwidth=1e-145, **step)
    mean = biased([1e149, -1e149, 3.0], (np.zeros(3), np.ones(3)), kernel="thresholds")
    assert 0 <= mean <= 1
