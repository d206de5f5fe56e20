"""Losses equal their definitions as loops, and the metrics of the same name."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from loss_cases import (
    CLASS_CASES,
    DRAWN,
    ERROR_CASES,
    FEATURES,
    FORECAST_CASES,
    LABEL,
    LOGITS,
    LOSS,
    MEAN,
    MIXTURE,
    PIT_FORMS,
    STD,
    THRESHOLDS,
    WEIGHT,
    Y,
    costs,
    rational,
    value,
)
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet, norm

from skcalib._statistics.matching_given import quantile_thresholds
from skcalib.forecasts import GaussianForecast, GaussianMixtureForecast
from skcalib.losses import (
    conditional_kernel_calibration_loss,
    distribution_matching_loss,
    kde_calibration_loss,
    maximum_mean_calibration_loss,
    smooth_calibration_loss,
    soft_binned_calibration_loss,
)
from skcalib.metrics import (
    conditional_kernel_calibration_error,
    distribution_matching_error,
    smooth_expected_calibration_error,
    squared_kernel_calibration_error,
)

PIT_BANDWIDTH = math.sqrt(0.05)

LINE_KERNELS = {
    "rbf": lambda d, nu: np.exp(-(d**2) / (2 * nu**2)),
    "laplacian": lambda d, nu: np.exp(-np.abs(d) / nu),
    "energy": lambda d, nu: -np.abs(d),
}

GIVEN_KERNELS = {
    "rbf": lambda s, t, nu: math.exp(-np.sum((s - t) ** 2) / (2 * nu**2)),
    "laplacian": lambda s, t, nu: math.exp(-np.sum(np.abs(s - t)) / nu),
    "exponential": lambda s, t, nu: math.exp(-math.sqrt(np.sum((s - t) ** 2)) / nu),
    "total-variation": lambda s, t, nu: math.exp(-np.sum(np.abs(s - t)) / 2 / nu),
}


def average(term, weight, estimation):
    """The estimators from h(i, j), by loops."""
    n = len(weight)
    total = mass = 0.0
    for i, j in itertools.product(range(n), repeat=2):
        if i != j or estimation == "biased":
            total += weight[i] * weight[j] * term(i, j)
            mass += weight[i] * weight[j]
    return total / mass


def density(x, mean, std):
    return np.exp(-(((x - mean) / std) ** 2) / 2) / (std * math.sqrt(2 * math.pi))


NODE, SHARE = np.polynomial.legendre.leggauss(120)


def integral(function, low, high, kink):
    """Gauss–Legendre on either side of a kink."""
    kink = min(max(kink, low), high)
    pieces = itertools.pairwise([low, (low + kink) / 2, kink, (kink + high) / 2, high])
    return sum((b - a) / 2 * SHARE @ function((a + b) / 2 + (b - a) / 2 * NODE) for a, b in pieces)


class NormalLaw:
    """E ℓ by quadrature; a law (mean, std), or a point (y, 0)."""

    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def product(self, other, kernel, nu):
        shift, std = self.mean - other.mean, math.hypot(self.std, other.std)
        if std == 0:
            return LINE_KERNELS[kernel](shift, nu)
        return integral(
            lambda d: LINE_KERNELS[kernel](d, nu) * density(d, shift, std),
            shift - 11 * std,
            shift + 11 * std,
            0.0,
        )

    def feature(self, kernel, threshold, scale):
        """The mean of one feature of a kernel of decisions."""
        if kernel == "thresholds":
            return norm.cdf(threshold, self.mean, self.std)
        low, high = self.mean - 11 * self.std, self.mean + 11 * self.std
        return integral(
            lambda y: np.tanh((y - threshold) / scale) * density(y, self.mean, self.std),
            low,
            high,
            threshold,
        )

    def moments(self):
        return self.mean, self.mean**2 + self.std**2

    def cdf(self, t):
        return norm.cdf(t, self.mean, self.std)

    def parameters(self):
        return np.array([self.mean, math.log(self.std)])


class MixtureLaw:
    """Sums over normal components."""

    def __init__(self, mean, std, weight):
        self.weight = weight / weight.sum()
        self.parts = [NormalLaw(*row) for row in zip(mean, std, strict=True)]

    def mixed(self, values):
        return sum(w * value for w, value in zip(self.weight, values, strict=True))

    def product(self, other, kernel, nu):
        if isinstance(other, MixtureLaw):
            return other.mixed([self.product(part, kernel, nu) for part in other.parts])
        return self.mixed([part.product(other, kernel, nu) for part in self.parts])

    def feature(self, kernel, threshold, scale):
        return self.mixed([part.feature(kernel, threshold, scale) for part in self.parts])

    def moments(self):
        return self.mixed([np.array(part.moments()) for part in self.parts])

    def cdf(self, t):
        return self.mixed([part.cdf(t) for part in self.parts])

    def parameters(self):
        mean, square = self.moments()
        return np.array([mean, math.log(square - mean**2) / 2])


class DrawnLaw:
    """E ℓ by sums over draws; the distribution function is a logistic one."""

    def __init__(self, values, mean, std):
        self.values, self.mean, self.std = values, mean, std

    def product(self, other, kernel, nu):
        others = other.values if isinstance(other, DrawnLaw) else [other.mean]
        pairs = itertools.product(self.values, others)
        return np.mean([LINE_KERNELS[kernel](a - b, nu) for a, b in pairs])

    def feature(self, kernel, threshold, scale):
        if kernel == "thresholds":
            return self.cdf(threshold)
        return np.mean([math.tanh((value - threshold) / scale) for value in self.values])

    def moments(self):
        return np.mean(self.values), np.mean(self.values**2)

    def cdf(self, t):
        return 1 / (1 + math.exp((self.mean - t) / self.std))

    def parameters(self):
        return np.array([self.mean, self.std])


def observed_features(kernel, y, scale):
    if kernel == "moments":
        return np.array([y, y**2])
    if kernel == "thresholds":
        return np.array([y <= t for t in THRESHOLDS]) / math.sqrt(3)
    return np.array([math.tanh((y - t) / scale) for t in THRESHOLDS]) / math.sqrt(3)


def expected_features(kernel, law, scale):
    if kernel == "moments":
        return np.array(law.moments())
    return np.array([law.feature(kernel, t, scale) for t in THRESHOLDS]) / math.sqrt(3)


LAWS = {
    "normal": [NormalLaw(*row) for row in zip(MEAN, STD, strict=True)],
    "draws": [DrawnLaw(*row) for row in zip(DRAWN, MEAN, STD, strict=True)],
    "mixture": [MixtureLaw(*row) for row in zip(*MIXTURE, strict=True)],
}


@cache
def terms_of(family, is_of_pits, kernel, nu):
    """The terms of all pairs, which several forms share."""
    laws = LAWS[family]
    term = pit_term(laws, kernel) if is_of_pits else outcome_term(laws, kernel, nu)
    return np.array([[term(i, j) for j in range(len(Y))] for i in range(len(Y))])


def outcome_term(laws, kernel, nu):
    points = [NormalLaw(y, 0.0) for y in Y]
    if kernel in LINE_KERNELS:
        return lambda i, j: (
            points[i].product(points[j], kernel, nu)
            - laws[i].product(points[j], kernel, nu)
            - laws[j].product(points[i], kernel, nu)
            + laws[i].product(laws[j], kernel, nu)
        )
    residual = [
        observed_features(kernel, y, nu) - expected_features(kernel, law, nu)
        for y, law in zip(Y, laws, strict=True)
    ]
    return lambda i, j: residual[i] @ residual[j]


def pit_term(laws, kernel):
    """ℓ(u, u') − m(u) − m(u') + ∫m with m(u) = ∫ℓ(u, t) dt."""
    pit = [law.cdf(y) for y, law in zip(Y, laws, strict=True)]

    def mean(u):
        return integral(lambda t: LINE_KERNELS[kernel](u - t, PIT_BANDWIDTH), 0.0, 1.0, u)

    node, share = np.polynomial.legendre.leggauss(60)
    whole = sum(s / 2 * mean((t + 1) / 2) for t, s in zip(node, share, strict=True))
    means = [mean(u) for u in pit]
    return lambda i, j: (
        LINE_KERNELS[kernel](pit[i] - pit[j], PIT_BANDWIDTH) - means[i] - means[j] + whole
    )


def near_forecasts(laws, options):
    """k(i, j) of the form."""
    form, given = options["calibration"], options.get("given")
    if form in ("quantile", "marginal"):
        return lambda i, j: 1.0
    if form == "group":
        return lambda i, j: float(given[i] == given[j])
    if form == "threshold":
        return lambda i, j: 1 - np.mean([abs(laws[i].cdf(t) - laws[j].cdf(t)) for t in THRESHOLDS])
    if form == "decision":
        return lambda i, j: np.mean(
            [(1 - laws[i].cdf(t) > 0.5) == (1 - laws[j].cdf(t) > 0.5) for t in THRESHOLDS]
        )
    points = [law.parameters() for law in laws] if given is None else given
    kernel = GIVEN_KERNELS[options.get("given_kernel", "rbf")]
    return lambda i, j: kernel(points[i], points[j], options["given_bandwidth"])


@pytest.mark.parametrize("name", FORECAST_CASES)
def test_forms_of_forecasts_equal_loops(name):
    case = FORECAST_CASES[name]
    options = case.options
    is_of_pits = options["calibration"] in PIT_FORMS
    family = name.split()[0]
    terms = terms_of(family, is_of_pits, options["kernel"], options.get("bandwidth"))
    near = near_forecasts(LAWS[family], options)
    expected = average(
        lambda i, j: near(i, j) * terms[i, j], WEIGHT, options.get("estimation", "unbiased")
    )
    assert value(case, case.prediction) == pytest.approx(expected, abs=1e-10)


def probabilities(case):
    """(n, K) from what the loss was given."""
    values = case.prediction[0].reshape(len(case.target), -1)
    if case.options.get("input_type") == "probabilities":
        return np.hstack([1 - values, values]) if values.shape[1] == 1 else values
    if values.shape[1] == 1:
        values = np.hstack([np.zeros_like(values), values])
    return np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)


def binary_problems(proba, label, multi_class):
    """Pairs of probabilities and residuals, one for each problem."""
    if proba.shape[1] == 2:
        return [(proba[:, 1], label - proba[:, 1])]
    if multi_class == "classwise":
        return [(p, (label == k) - p) for k, p in enumerate(proba.T)]
    top = proba.argmax(axis=1)
    confidence = np.array([row[k] for row, k in zip(proba, top, strict=True)])
    return [(confidence, (label == top) - confidence)]


def class_error(proba, label, weight, options):
    """The distribution matching error of classes."""
    form, given = options["calibration"], options.get("given")
    kernel, nu = GIVEN_KERNELS[options.get("given_kernel", "rbf")], options.get("given_bandwidth")
    nu = 0.4 if nu is None else nu
    estimation = options.get("estimation", "unbiased")
    if form in ("marginal", "top-label"):
        parts = binary_problems(proba, label, "classwise" if form == "marginal" else "confidence")
        errors = []
        for p, r in parts:
            points = np.column_stack([1 - p, p])
            errors.append(
                average(
                    lambda i, j, q=points, r=r: 2 * kernel(q[i], q[j], nu) * r[i] * r[j],
                    weight,
                    estimation,
                )
            )
        return np.mean(errors)
    residual = np.eye(proba.shape[1])[label] - proba
    matrix = options.get("class_kernel", np.eye(proba.shape[1]))
    if form == "group":
        points, near = given, lambda s, t, nu: float(s == t)
    elif form == "decision":
        points = [np.argmin(options["loss"] @ p) for p in proba]
        near = lambda s, t, nu: float(s == t)  # noqa: E731
    else:
        points, near = proba if given is None else given, kernel
    return average(
        lambda i, j: near(points[i], points[j], nu) * (residual[i] @ matrix @ residual[j]),
        weight,
        estimation,
    )


@pytest.mark.parametrize("name", CLASS_CASES)
def test_forms_of_classes_equal_loops(name):
    case = CLASS_CASES[name]
    weight = case.options.get("sample_weight", np.ones(len(case.target)))
    expected = class_error(probabilities(case), case.target, weight, case.options)
    assert value(case, case.prediction) == pytest.approx(expected, abs=1e-12)


def smooth_error(p, mass):
    """∫|r| with mirror images of all points at 0 and 1, by the midpoint rule."""
    t = (np.arange(20_000) + 0.5) / 20_000
    total = np.zeros_like(t)
    for m, (q, c) in itertools.product(range(-2, 3), zip(p, mass, strict=True)):
        total += c * (density(t, 2 * m + q, 0.1) + density(t, 2 * m - q, 0.1))
    return np.abs(total).mean()


def mean_map(p, r, weight):
    near = GIVEN_KERNELS["laplacian"]
    return math.sqrt(average(lambda i, j: near(p[i], p[j], 0.4) * r[i] * r[j], weight, "biased"))


def balanced_mean_map(p, r, weight):
    """MMCE_w of Kumar et al. 2018, section 3.2, with sums over misses and hits apart."""
    near = GIVEN_KERNELS["laplacian"]
    kinds = [np.flatnonzero(r < 0), np.flatnonzero(r > 0)]
    total = 0.0
    for one, other in itertools.product(kinds, repeat=2):
        for i, j in itertools.product(one, other):
            share = weight[i] / weight[one].sum() * weight[j] / weight[other].sum()
            total += share * r[i] * r[j] * near(p[i], p[j], 0.4)
    return math.sqrt(total)


def soft_bins(p, r, weight, n_bins, temperature):
    total = 0.0
    centre = [(m + 0.5) / n_bins for m in range(n_bins)]
    shares = [[math.exp(-((c - x) ** 2) / temperature) for x in centre] for c in p]
    for m in range(n_bins):
        size = gap = 0.0
        for share, residual, w in zip(shares, r, weight, strict=True):
            size += w * share[m] / sum(share)
            gap += w * share[m] / sum(share) * residual
        total += gap**2 / size
    return math.sqrt(total)


def kernel_density_error(proba, label, weight, bandwidth, order):
    """mean_j Σ_k |Σ_{i≠j} κ_ji 1[y_i = k] / Σ_{i≠j} κ_ji − p_jk|^q with Dirichlet densities κ."""
    n, n_classes = proba.shape
    total = 0.0
    for j in range(n):
        density_at = np.zeros(n)
        for i in set(range(n)) - {j}:
            a = proba[i] / bandwidth + 1
            log_beta = sum(gammaln(x) for x in a) - gammaln(sum(a))
            exponent = sum((a[k] - 1) * math.log(proba[j, k]) for k in range(n_classes))
            density_at[i] = weight[i] * math.exp(exponent - log_beta)
        for k in range(n_classes):
            share = density_at[label == k].sum() / density_at.sum()
            total += weight[j] * abs(share - proba[j, k]) ** order
    return total


def test_the_likely_bandwidth_is_the_best_of_a_fine_grid():
    # predictions of a spread that a bandwidth near 0.05 describes, and a weight of 0
    rng = np.random.default_rng(4)
    proba, label = rng.dirichlet([2.0, 3.0, 4.0], size=20), rng.integers(3, size=20)
    weight = np.r_[0.0, rng.random(19)]

    def likelihood(h):
        log_density = np.array([dirichlet.logpdf(proba.T, row / h + 1) for row in proba]).T
        log_density += np.log(weight, where=weight > 0, out=np.full(20, -np.inf))
        np.fill_diagonal(log_density, -np.inf)
        return weight @ logsumexp(log_density, axis=1)

    grid = np.geomspace(1e-5, 1, 200)
    best = grid[np.argmax([likelihood(h) for h in grid])]
    assert 0.01 < best < 0.3
    options = {"sample_weight": weight, "input_type": "probabilities"}
    found = kde_calibration_loss(proba, label, bandwidth="likelihood", **options)
    around = [
        kde_calibration_loss(proba, label, bandwidth=best * step, **options)
        for step in (0.93, 1.07)
    ]
    assert min(around) < found < max(around)
    assert max(around) - min(around) < 0.02
    other = kde_calibration_loss(proba, label, bandwidth=2 * best, **options)
    assert not min(around) < other < max(around)
    # the prediction without weight is like no other one, and changes nothing
    proba[0] = [1, 0, 0]
    assert kde_calibration_loss(proba, label, bandwidth="likelihood", **options) == found


def conditional_error(proba, label, weight, estimation, bandwidth, ridge):
    """The quadratic form of the residuals from explicit matrices; "unbiased" without i = j."""
    distance = np.sum((proba[:, None] - proba) ** 2, axis=2)
    root = np.sqrt(np.outer(weight, weight))
    gram = root * (proba @ proba.T + np.exp(-distance / (2 * bandwidth**2)))
    inverse = np.linalg.inv(gram + ridge * np.eye(len(weight)))
    residual = np.eye(proba.shape[1])[label] - proba
    terms = root * (inverse @ gram @ inverse) * (residual @ residual.T)
    return terms.sum() - (np.trace(terms) if estimation == "unbiased" else 0.0)


@pytest.mark.parametrize("name", ERROR_CASES)
def test_other_errors_equal_loops(name):
    case = ERROR_CASES[name]
    proba, label, options = probabilities(case), case.target, case.options
    weight = options.get("sample_weight", np.ones(len(label)))
    weight = weight / weight.sum()
    tolerance = 1e-9  # 1e-10 below the root
    if name.startswith("kde"):
        bandwidth, order = options.get("bandwidth", 0.1), options.get("order", 1.0)
        expected = kernel_density_error(proba, label, weight, bandwidth, order)
        tolerance = 1e-12
    elif name.startswith("conditional"):
        expected = conditional_error(
            proba,
            label,
            weight,
            options.get("estimation"),
            options.get("bandwidth", 0.4),
            options.get("regularization", len(label) ** -0.25),
        )
    else:
        problems = binary_problems(proba, label, options.get("multi_class"))
        if name.startswith("smooth"):
            # 32 steps to a bandwidth leave out part of the kinks of |r|
            expected = np.mean([smooth_error(p, weight * r) for p, r in problems])
            tolerance = 1e-4
        elif name.startswith("maximum"):
            twin = balanced_mean_map if options.get("balanced") else mean_map
            expected = np.mean([twin(p, r, weight) for p, r in problems])
        else:
            expected = np.mean([soft_bins(p, r, weight, 6, 0.02) for p, r in problems])
    assert value(case, case.prediction) == pytest.approx(expected, abs=tolerance)


# Metrics


GAUSSIAN = GaussianForecast(MEAN, STD)


# The metric has thresholds of its own for the kernel, whatever the decisions are.
SHARED = {name for name in FORECAST_CASES if not name.startswith("draws")}
SHARED -= {"normal decision thresholds"}


@pytest.mark.parametrize("name", sorted(SHARED))
def test_forms_of_forecasts_equal_the_metric(name):
    case = FORECAST_CASES[name]
    options = dict(case.options)
    options.pop("detach_given", None)
    forecast = GaussianMixtureForecast(*MIXTURE) if name.startswith("mixture") else GAUSSIAN
    thresholds = options.pop("thresholds", None)
    if options["calibration"] == "threshold" or options["kernel"] == "thresholds":
        weight = options.get("sample_weight", np.ones(len(forecast)))
        thresholds = quantile_thresholds(forecast, weight)  # the metric chooses them
    metric_options = dict(options)
    if options["calibration"] == "decision":
        metric_options["loss"] = list(thresholds)
    if options["kernel"] == "tanh":
        metric_options["thresholds"] = thresholds
    actual = distribution_matching_loss(case.prediction, Y, thresholds=thresholds, **options)
    # the metric has the rbf kernel by Fourier features, right to 1e-10
    tolerance = 1e-9 if options["kernel"] == "rbf" else 1e-12
    expected = distribution_matching_error(Y, forecast, **metric_options)
    assert actual == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("estimation", ["unbiased", "biased"])
@pytest.mark.parametrize("form", ["canonical", "marginal", "top-label", "group", "decision"])
def test_forms_of_classes_equal_the_metric(form, estimation):
    case = CLASS_CASES[f"classes {form} rbf"]
    options = case.options | {"estimation": estimation}
    if form not in ("group", "decision"):
        options["given_bandwidth"] = 0.4
    actual = distribution_matching_loss(LOGITS, LABEL, **options)
    expected = distribution_matching_error(
        LABEL, probabilities(case), labels=range(LOGITS.shape[1]), **options
    )
    assert actual == pytest.approx(expected, abs=1e-12)


# Kernels and losses of users


def rbf(s, t, nu=0.8):
    return np.exp(-((s[:, None] - t) ** 2).sum(axis=2) / (2 * nu**2))


@pytest.mark.parametrize(
    "name", [n for n in FORECAST_CASES if n.startswith("draws") and "rbf" in n]
)
def test_a_callable_kernel_is_that_of_its_name(name):
    case = FORECAST_CASES[name]
    options = case.options | {"kernel": rbf, "bandwidth": None}
    if case.options["calibration"] in PIT_FORMS:
        options["kernel"] = lambda s, t: rbf(s, t, PIT_BANDWIDTH)
    if case.options["calibration"] in ("distribution", "individual", "local"):
        options |= {"given_bandwidth": None, "given_kernel": lambda s, t: rbf(s, t, 1.1)}
    found = value(case._replace(options=options), case.prediction)
    assert found == pytest.approx(value(case, case.prediction), abs=1e-12)


USER_OPTIONS = {
    "kernel": {"kernel": rational},
    "kernel of a condition": {"kernel": rational, "given_kernel": rational, "given_bandwidth": 1.0},
    "individual": {"calibration": "individual", "kernel": rational, "given": FEATURES},
    "quantile": {"calibration": "quantile", "kernel": rational},
    "losses": {"kernel": "loss", "loss": costs, "given_bandwidth": 1.1},
    "decision": {"calibration": "decision", "kernel": "loss", "loss": costs},
    "decision rbf": {"calibration": "decision", "bandwidth": 0.8, "loss": costs},
}


@pytest.mark.parametrize("name", USER_OPTIONS)
def test_functions_of_users_equal_the_metric(name):
    options = {"sample_weight": WEIGHT} | USER_OPTIONS[name]
    if options.get("calibration") not in ("quantile", "decision"):
        options = {"given_bandwidth": 1.1} | options
    expected = distribution_matching_error(Y, GAUSSIAN, **options)
    if callable(options.get("given_kernel")):
        options["given_bandwidth"] = None  # which tells the metric not to standardize
    found = distribution_matching_loss((MEAN, STD), Y, **options)
    # with the named kernel the metric has Fourier features, right to 1e-10; it halves pieces of
    # levels until expected losses are right to 1e-7
    is_close = "decision" in name or name == "losses"
    assert found == pytest.approx(expected, abs=1e-7 if is_close else 1e-12)
    assert abs(found) > 1e-4


@pytest.mark.parametrize("form", ["canonical", "decision", "marginal", "group", "individual"])
def test_losses_of_classes_equal_the_metric(form):
    options = CLASS_CASES[f"classes {form} rbf"].options | {"kernel": "loss", "loss": LOSS}
    if form in ("canonical", "individual"):
        options["given_bandwidth"] = 0.4
    proba = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    expected = distribution_matching_error(LABEL, proba, labels=range(4), **options)
    found = distribution_matching_loss(LOGITS, LABEL, **options)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("form", ["canonical", "marginal", "top-label"])
def test_a_callable_condition_is_that_of_its_name(form):
    case = CLASS_CASES[f"classes {form} rbf"]
    own = case._replace(options=case.options | {"given_kernel": lambda s, t: rbf(s, t, 0.4)})
    expected = value(case, case.prediction)
    assert value(own, case.prediction) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_forbidden_action_changes_no_other(dtype):
    loss = np.array([[0, 5], [1, 0], [1e15, 1e15]], dtype=dtype)
    proba, label = np.array([0.05, 0.3, 0.1, 0.9], dtype=dtype), np.array([0, 1, 1, 0])
    options = {"calibration": "decision", "input_type": "probabilities"}
    with_it, without = (
        float(distribution_matching_loss(proba, label, loss=some, **options))
        for some in (loss, loss[:2])
    )
    assert with_it == without


@pytest.mark.parametrize("kernel", GIVEN_KERNELS)
def test_one_class_against_the_rest_is_a_pair(kernel):
    # ν belongs to the distance of the pairs (1 − c, c), as the documentation says
    proba, label, nu = np.array([0.2, 0.9]), np.array([1, 1]), 0.7
    times = {"rbf": 2**0.5, "exponential": 2**0.5, "laplacian": 2, "total-variation": 1}[kernel]
    d = times * 0.7 / nu
    near = math.exp(-(d**2) / 2) if kernel == "rbf" else math.exp(-d)
    options = {"calibration": "top-label", "given_kernel": kernel, "given_bandwidth": nu}
    found = distribution_matching_loss(proba, label, input_type="probabilities", **options)
    assert found == pytest.approx(2 * near * 0.8 * 0.1, rel=1e-12)
    assert found == pytest.approx(
        distribution_matching_error(label, proba, labels=[0, 1], **options)
    )


def test_the_mmce_is_a_matching_error_of_the_top_label():
    square = maximum_mean_calibration_loss(LOGITS, LABEL) ** 2 - 1e-10
    options = {"given_kernel": "total-variation", "given_bandwidth": 0.4, "estimation": "biased"}
    matching = distribution_matching_loss(LOGITS, LABEL, calibration="top-label", **options)
    assert matching == pytest.approx(2 * square, rel=1e-9)
    proba = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    kernel = {"kernel": "total-variation", "bandwidth": 0.4, "estimation": "biased"}
    shared = {"multi_class": "confidence", "labels": range(LOGITS.shape[1])}
    found = squared_kernel_calibration_error(LABEL, proba, **kernel, **shared)
    assert found == pytest.approx(2 * square, rel=1e-9)


def test_the_balanced_mmce_is_0_for_batches_of_one_kind_and_not_for_calibrated_models():
    logits = np.array([2.0, 0.5, 1.0])
    options = {"balanced": True}
    assert maximum_mean_calibration_loss(logits, np.ones(3, int), **options) < 1.1e-5
    # 9 of 10 hit at 0.9: the residuals of hits weigh 0.1, and those of misses 0.9
    proba, label = np.full(10, 0.9), np.r_[0, np.ones(9, int)]
    shared = {"input_type": "probabilities"}
    assert maximum_mean_calibration_loss(proba, label, **shared) < 1.1e-5
    balanced = maximum_mean_calibration_loss(proba, label, **shared, **options)
    assert balanced == pytest.approx(0.8)
    # two of three hit at 0.8, 0.6 and 0.7, by the confidence of two classes
    two = np.array([[0.2, 0.8, 0], [0.6, 0.4, 0], [0.3, 0.7, 0]])
    confidence, hit = two.max(axis=1), np.array([1, 1, 0])
    found = maximum_mean_calibration_loss(two, np.array([1, 0, 0]), **shared, **options)
    expected = balanced_mean_map(confidence, hit - confidence, np.ones(3))
    assert found == pytest.approx(expected, abs=1e-9)


def test_class_kernel_is_that_of_the_metrics():
    case = CLASS_CASES["classes weighted"]
    proba, matrix = probabilities(case), case.options["class_kernel"]
    actual = value(case, case.prediction)
    shared = {"sample_weight": WEIGHT, "labels": range(proba.shape[1])}
    expected = squared_kernel_calibration_error(
        LABEL, proba, kernel="rbf", bandwidth=0.4, class_kernel=matrix, **shared
    )
    assert actual == pytest.approx(expected, abs=1e-12)
    losses = distribution_matching_error(
        LABEL, proba, kernel="loss", loss=LOSS, given_bandwidth=0.4, **shared
    )
    assert actual == pytest.approx(losses, abs=1e-12)


@pytest.mark.parametrize("weight", [None, WEIGHT, WEIGHT * (np.arange(len(WEIGHT)) % 3 > 0)])
@pytest.mark.parametrize("regularization", [None, 1e-3])
def test_conditional_loss_equals_the_metric(weight, regularization):
    proba = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    options = {"sample_weight": weight, "bandwidth": 0.3, "regularization": regularization}
    expected = conditional_kernel_calibration_error(LABEL, proba, labels=range(4), **options)
    found = conditional_kernel_calibration_loss(LOGITS, LABEL, **options)
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 2.0])
def test_smooth_loss_equals_the_metric(bandwidth):
    # |r| at 32 steps to a bandwidth, and √(r² + 1e-12): within 1e-4
    rng = np.random.default_rng(3)
    p = rng.random(50)
    label = (rng.random(50) < p**2).astype(int)
    actual = smooth_calibration_loss(p, label, bandwidth=bandwidth, input_type="probabilities")
    expected = smooth_expected_calibration_error(label, p, bandwidth=bandwidth)
    assert actual == pytest.approx(expected, abs=1e-4)


def test_numbers_by_hand():
    # residuals ½ and −½ at p = ½: h_12 = −½, h_11 = h_22 = ½, all with k = 1
    label, half = np.array([1, 0]), np.array([0.5, 0.5])
    options = {"input_type": "probabilities"}
    assert distribution_matching_loss(half, label, **options) == pytest.approx(-0.5)
    biased = distribution_matching_loss(half, label, estimation="biased", **options)
    assert biased == pytest.approx(0, abs=1e-15)
    # one confidence of ¾ that is right and one that is not: the mean residual is −¼
    proba = np.array([[0.75, 0.2, 0.05], [0.75, 0.2, 0.05]])
    for loss in (
        smooth_calibration_loss,
        maximum_mean_calibration_loss,
        soft_binned_calibration_loss,
    ):
        assert loss(proba, np.array([0, 1]), **options) == pytest.approx(0.25, abs=1e-6)
    # the only other sample has the label 0: |1 − ½| + |0 − ½| at the first, and at the second too
    kde = kde_calibration_loss(half, label, **options)
    assert kde == pytest.approx(1.0)
    # a certain forecast of the outcome is right
    exact = distribution_matching_loss(
        (np.array([0.0, 1.0]), np.full(2, 1e-9)),
        np.array([0.0, 1.0]),
        calibration="marginal",
        kernel="energy",
    )
    assert exact == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("loss", [kde_calibration_loss, conditional_kernel_calibration_loss])
def test_long_doubles_are_taken_as_doubles(loss):
    assert loss(LOGITS.astype(np.longdouble), LABEL) == loss(LOGITS, LABEL)
