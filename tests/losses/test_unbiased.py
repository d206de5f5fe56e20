"""The unbiased estimates have the same expectation for every size of a batch, 0 if calibrated."""

import itertools

import numpy as np
import pytest
from loss_cases import CLASS_CASES, FORECAST_CASES, value

from skcalib.losses import (
    SampledForecast,
    conditional_kernel_calibration_loss,
    distribution_matching_loss,
)

PROBA = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
TRUTH = np.array([[0.3, 0.3, 0.4], [0.2, 0.1, 0.7], [0.5, 0.2, 0.3]])
COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5]])


def expectation(truth, options):
    """Over all labels of a batch."""
    total = 0.0
    for labels in itertools.product(range(3), repeat=3):
        chance = np.prod([truth[i, k] for i, k in enumerate(labels)])
        total += chance * distribution_matching_loss(
            PROBA, np.array(labels), input_type="probabilities", **options
        )
    return total


def test_conditional_loss_has_mean_and_gradient_0_at_calibrated_predictions():
    labels = list(itertools.product(range(3), repeat=3))
    chance = [np.prod(PROBA[np.arange(3), list(label)]) for label in labels]
    options = {"estimation": "unbiased", "regularization": 0.1, "input_type": "probabilities"}

    def mean(proba):
        values = [
            conditional_kernel_calibration_loss(proba, np.array(one), **options) for one in labels
        ]
        return chance @ np.array(values)

    assert mean(PROBA) == pytest.approx(0, abs=1e-14)
    step = 1e-4 * np.array([[1.0, -1.0, 0.0], [0.5, 0.5, -1.0], [0.0, 1.0, -1.0]])
    assert mean(PROBA + step) == pytest.approx(mean(PROBA - step), abs=1e-11)


CLASS_OPTIONS = {
    "canonical": {},
    "weighted": {"class_kernel": np.diag([1.0, 5.0, 2.0]), "given_kernel": "exponential"},
    "marginal": {"calibration": "marginal"},
    "marginal by pairs": {"calibration": "marginal", "given_kernel": "laplacian"},
    "top-label": {"calibration": "top-label"},
    "group": {"calibration": "group", "given": np.array([0, 1, 0])},
    "decision": {"calibration": "decision", "loss": COSTS},
}


@pytest.mark.parametrize("name", CLASS_OPTIONS)
def test_classes_by_enumeration(name):
    options = CLASS_OPTIONS[name]
    assert expectation(PROBA, options) == pytest.approx(0, abs=1e-15)
    if name != "canonical":
        assert abs(expectation(TRUTH, options)) > 1e-3
        return
    gap = TRUTH - PROBA
    pairs = list(itertools.combinations(range(3), 2))
    terms = [
        np.exp(-np.sum((PROBA[i] - PROBA[j]) ** 2) / (2 * 0.4**2)) * (gap[i] @ gap[j])
        for i, j in pairs
    ]
    assert expectation(TRUTH, options) == pytest.approx(np.mean(terms), abs=1e-15)


@pytest.mark.parametrize(
    "options",
    [
        {"calibration": "distribution", "bandwidth": 1.0, "given_bandwidth": 1.0},
        {"calibration": "quantile"},
        {"calibration": "marginal", "kernel": "moments"},
        {
            "calibration": "marginal",
            "kernel": "tanh",
            "bandwidth": 1.0,
            "thresholds": np.array([0.5]),
        },
    ],
    ids=["distribution", "quantile", "moments", "tanh"],
)
def test_normal_forecasts_by_quadrature(options):
    # 24 Gauss–Hermite nodes for each of two outcomes, without those of negligible weight
    mean, std = np.array([0.2, -0.3]), np.array([1.0, 0.7])
    node, share = np.polynomial.hermite_e.hermegauss(24)
    share = share / share.sum()
    node, share = node[share > 1e-8], share[share > 1e-8]
    total = 0.0
    for (a, s), (b, t) in itertools.product(zip(node, share, strict=True), repeat=2):
        y = mean + std * np.array([a, b])
        total += s * t * distribution_matching_loss((mean, std), y, **options)
    assert total == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "energy", "moments"])
def test_draws_by_enumeration(kernel):
    """Outcomes and two draws of 0 or 2, with probabilities that differ from sample to sample."""
    chance, truth = np.array([0.3, 0.6]), np.array([0.5, 0.9])
    parameters = np.array([[0.3], [0.6]])
    options = {"kernel": kernel, "given_bandwidth": 0.5}
    if kernel == "rbf":
        options["bandwidth"] = 1.5

    def mean(truth):
        total = 0.0
        for bits in itertools.product([0, 1], repeat=6):
            outcome, drawn = np.array(bits[:2]), np.array(bits[2:]).reshape(2, 2)
            weight = np.prod(np.where(outcome == 1, truth, 1 - truth))
            weight *= np.prod(np.where(drawn == 1, chance[:, None], 1 - chance[:, None]))
            draws = SampledForecast(2.0 * drawn, parameters=parameters)
            total += weight * distribution_matching_loss(draws, 2.0 * outcome, **options)
        return total

    # for two atoms the term is the product of the gaps and of ⟨φ(2) − φ(0), φ(2) − φ(0)⟩
    square = {"rbf": 2 - 2 * np.exp(-4 / (2 * 1.5**2)), "energy": 4.0, "moments": 4.0 + 16.0}
    near = np.exp(-(0.3**2) / (2 * 0.5**2))
    assert mean(chance) == pytest.approx(0, abs=1e-14)
    assert mean(truth) == pytest.approx(near * 0.2 * 0.3 * square[kernel], abs=1e-13)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize(
    "name",
    [
        "normal distribution rbf",
        "normal quantile rbf",
        "normal threshold energy",
        "normal decision tanh",
        "draws marginal laplacian",
        "classes canonical rbf",
        "classes marginal rbf",
        "classes top-label laplacian",
        "classes decision rbf",
    ],
)
def test_the_mean_over_all_batches_is_the_loss_of_all_samples(name, size):
    case = (FORECAST_CASES | CLASS_CASES)[name]
    case = case._replace(options=case.options | {"sample_weight": None})
    n = len(case.target)
    values = []
    for batch in itertools.combinations(range(n), size):
        rows = list(batch)
        options = {
            k: v[rows] if isinstance(v, np.ndarray) and k == "given" else v
            for k, v in case.options.items()
        }
        part = case._replace(target=case.target[rows], options=options)
        values.append(value(part, tuple(array[rows] for array in case.prediction)))
    assert np.mean(values) == pytest.approx(value(case, case.prediction), abs=1e-13)


def test_normal_draws_have_the_mean_of_the_closed_form():
    rng = np.random.default_rng(0)
    mean, std, n = np.array([0.0, 0.5, -1.0]), np.array([1.0, 0.5, 0.8]), 500
    y = mean + 2.0
    options = {"calibration": "marginal", "kernel": "energy"}
    values = [
        distribution_matching_loss(
            SampledForecast(mean[:, None] + std[:, None] * rng.normal(size=(3, 16))), y, **options
        )
        for _ in range(n)
    ]
    exact = distribution_matching_loss((mean, std), y, **options)
    assert abs(np.mean(values) - exact) < 4 * np.std(values) / np.sqrt(n)
    assert abs(exact) > 10 * np.std(values) / np.sqrt(n)  # so that 0 would not pass


def test_shapes_of_mixtures_are_seen_if_they_are_given():
    # skewed to one side where the outcomes are skewed to the other, with mean 0 and equal spread
    values, n = [], 100
    for seed in range(8):
        rng = np.random.default_rng(seed)
        side, is_far = rng.choice([-1.0, 1.0], n), rng.random(n) < 0.2
        y = -side * (np.where(is_far, 2.0, -0.5) + 0.5 * rng.normal(size=n))
        mixture = side[:, None] * [-0.5, 2.0], np.full((n, 2), 0.5), np.tile([0.8, 0.2], (n, 1))
        values.append(
            [
                distribution_matching_loss(
                    mixture,
                    y,
                    calibration=calibration,
                    given=given,
                    bandwidth=1.0 if calibration == "distribution" else None,
                    given_bandwidth=1.0,
                )
                for calibration in ("distribution", "local")
                for given in (None, side)
            ]
        )
    blind, seeing, blind_pit, seeing_pit = np.mean(values, axis=0)
    assert abs(blind) < 0.0064  # four standard errors
    assert seeing == pytest.approx(0.08, abs=0.01)
    assert blind_pit == pytest.approx(0.02, abs=0.01)
    assert seeing_pit == pytest.approx(0.08, abs=0.01)
