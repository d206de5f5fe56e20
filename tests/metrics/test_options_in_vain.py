"""No option in vain: it changes the result, or is refused by name where nothing reads it."""

import re
from functools import partial

import numpy as np
import pytest

from skcalib import metrics
from skcalib.display import ReliabilityDisplay
from skcalib.lenses import TopK
from skcalib.uncertainty import confidence_interval

RNG = np.random.default_rng(1)
N = 12
MEAN, STD, X = RNG.normal(size=N), RNG.uniform(0.5, 2, N), RNG.normal(size=(N, 2))
OUTCOME, GROUP, LABEL = MEAN + 1.5 * STD * RNG.normal(size=N), np.arange(N) % 3, np.arange(N) % 3
FORECAST, PROBA = (MEAN, STD), RNG.dirichlet(np.ones(3), N)
LOSS = RNG.random((3, 3))


def euclidean(s, t):
    return np.exp(-np.linalg.norm(s[:, None] - t[None], axis=2))


def kernel_of_classes(**options):
    return {
        "kernel": ["rbf", euclidean],
        "bandwidth": [0.7],
        "multi_class": ["confidence", "top-label", "classwise", TopK(2)],
        **options,
    }


MATCHING = {
    "given": [X],
    "bandwidth": [0.7],
    "given_kernel": ["laplacian", euclidean],
    "given_bandwidth": [2.0],
}
KERNELS_OF_NUMBERS = ["laplacian", "energy", "thresholds", "tanh", "loss"]
SQUARED = {
    "estimation": ["biased", "linear", "block"],
    "block_size": [4],
    "class_kernel": [np.diag([1.0, 2, 3])],
    "method": ["fourier"],
    "n_components": [7],
}
CONDITIONAL = {
    "regularization": [0.3],
    "estimation": ["debiased", "standardized"],
    "n_components": [7],
}
CURVE = {
    "method": ["smooth", "binned"],
    "n_bins": [4],
    "strategy": ["quantile"],
    "bandwidth": [0.2],
    "band": ["confidence", None],
    "confidence_level": [0.5],
    "n_resamples": [9],
}
OF_FORECASTS = {
    "outcome_kernel": ["laplacian", euclidean],
    "outcome_bandwidth": [2.0],
    "kernel": ["linear", "rbf"],
}


def with_few_resamples(function, **options):
    """The function, which is fast with few resamples, where it takes their number."""
    if options.get("band", "consistency") == "consistency":
        options.setdefault("n_resamples", 3)
    return function(LABEL, PROBA, random_state=0, **options)


# Of each function: the call, and values of each option other than its default. `random_state`,
# `n_jobs` and `verbose` are never in vain: loops over metrics pass them. Nor is `max_panels`, a
# limit, nor what names classes and weights.
CASES = {
    "matching": (
        partial(metrics.distribution_matching_error, OUTCOME, FORECAST, random_state=0),
        MATCHING
        | {
            "calibration": [
                "quantile",
                "threshold",
                "local",
                "marginal",
                "decision",
                "group",
                "individual",
            ],
            "kernel": KERNELS_OF_NUMBERS,
            "loss": [0.4],
            "thresholds": [0.3],
            "estimation": ["biased"],
            "method": ["fourier"],
            "n_components": [7],
        },
    ),
    "matching of classes": (
        partial(metrics.distribution_matching_error, LABEL, PROBA, random_state=0),
        MATCHING
        | {
            "calibration": [
                "marginal",
                "top-label",
                "decision",
                "group",
                "individual",
            ],
            "kernel": ["loss", "laplacian"],
            "loss": [1 - LOSS],
            "thresholds": [0.3],
            "estimation": ["biased", "standardized"],
            "method": ["fourier"],
            "n_components": [7],
        },
    ),
    "matching witness": (
        partial(metrics.distribution_matching_witness, OUTCOME, FORECAST, y_grid=[0.2, 0.7]),
        MATCHING
        | {
            "calibration": ["quantile", "local", "marginal", "decision", "group", "individual"],
            "kernel": KERNELS_OF_NUMBERS,
            "loss": [0.4],
            "thresholds": [0.3],
        },
    ),
    "squared": (
        partial(metrics.squared_kernel_calibration_error, LABEL, PROBA, random_state=0),
        kernel_of_classes(**SQUARED),
    ),
    "root": (
        partial(metrics.kernel_calibration_error, LABEL, PROBA),
        kernel_of_classes(class_kernel=SQUARED["class_kernel"]),
    ),
    "joint": (
        partial(metrics.joint_kernel_calibration_error, LABEL, PROBA),
        kernel_of_classes(kernel=["linear", "laplacian", euclidean]),
    ),
    "conditional": (
        partial(metrics.conditional_kernel_calibration_error, LABEL, PROBA, random_state=0),
        kernel_of_classes(
            **CONDITIONAL,
            kernel=["linear", "rbf", "laplacian", euclidean],
            method=["fourier", "nystroem"],
            outcome_kernel=["laplacian"],
            outcome_bandwidth=[2.0],
        ),
    ),
    "conditional, of forecasts": (
        partial(metrics.conditional_kernel_calibration_error, OUTCOME, FORECAST),
        kernel_of_classes(**OF_FORECASTS, n_components=[7], method=["fourier"], given=[X]),
    ),
    "local": (
        partial(metrics.local_calibration_error, OUTCOME, FORECAST, given=X),
        {
            "kernel": ["laplacian", euclidean],
            "bandwidth": [0.7, "median"],
            "estimation": ["debiased"],
            "average": ["root-mean-square", None],
            "query": [X[:3]],
        },
    ),
    "local, with p-values": (
        partial(metrics.local_calibration, OUTCOME, FORECAST, given=X),
        {"kernel": [euclidean], "bandwidth": [0.7], "n_resamples": [9], "query": [X[:3]]},
    ),
    "curve": (partial(with_few_resamples, metrics.reliability_curve), CURVE),
    "diagram": (
        partial(with_few_resamples, ReliabilityDisplay.from_predictions),
        CURVE,
    ),
}
# The options that decide what reads the others.
FORMS = {
    "calibration", "kernel", "given_kernel", "outcome_kernel", "method", "estimation",
    "multi_class", "band",
}  # fmt: skip
# What a value cannot do without.
NEEDS = {
    "group": {"given": GROUP},
    "individual": {"given": X},
    "decision": {"loss": 0.3},
    "loss": {"loss": 0.3},
    "tanh": {"thresholds": -0.5, "bandwidth": 0.6},
    "fourier": {"kernel": "rbf"},
}


def needs_of(case, setting):
    """The setting, with what its values cannot do without."""
    (value,) = setting.values()
    others = NEEDS.get(value, {}) if isinstance(value, str) else {}
    if "classes" in case and "loss" in others:
        others = {"loss": LOSS}
    return others | setting


def pairs_of(options):
    """Each form, or none, beside each value of another option."""
    forms = [{name: value} for name in FORMS & options.keys() for value in options[name]]
    return [
        (form, name, value)
        for form in [{}, *forms]
        for name, values in options.items()
        for value in values
        if name not in form and name != "calibration"
    ]


def numbers_in(result):
    """All that a result holds, as text that can be compared."""
    if isinstance(result, ReliabilityDisplay):
        result = result.curves[0]
    with np.printoptions(precision=17, threshold=10**6):
        return repr(vars(result) if hasattr(result, "__dict__") else result)


def outcome_of(function, options):
    """The numbers, or the message of a refusal."""
    try:
        return numbers_in(function(**options)), ""
    except ValueError as error:
        return None, str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_an_option_has_an_effect_or_is_refused_by_name(case, monkeypatch):
    monkeypatch.setattr(ReliabilityDisplay, "plot", lambda display, *_, **__: display)
    function, options = CASES[case]
    n_effective, n_refused, of_form = 0, 0, {}
    for form, name, value in pairs_of(options):
        form = needs_of(case, form) if form else {}
        if repr(form) not in of_form:
            of_form[repr(form)], _ = outcome_of(function, form)
        alone = of_form[repr(form)]
        if name in form or alone is None:
            continue
        both, message = outcome_of(function, needs_of(case, {name: value}) | form)
        assert both != alone, (form, name, value)
        is_named = any(re.search(rf"\b{option}\b", message) for option in (name, *form))
        assert both is not None or is_named, (form, name, message)
        n_effective += both is not None
        n_refused += both is None
    assert n_effective > 0
    assert n_refused > 0


def test_a_default_is_never_in_vain():
    metrics.reliability_curve(LABEL, PROBA, n_bins=np.int64(15), band=None, n_resamples=200)
    options = {"kernel": euclidean, "bandwidth": "median", "block_size": None, "n_components": 200}
    metrics.squared_kernel_calibration_error(LABEL, PROBA, **options)


def test_options_of_a_named_metric_are_refused_alike():
    with pytest.raises(
        ValueError, match=r"block_size must be left out for estimation='unbiased'.*5"
    ):
        confidence_interval(
            "squared_kernel_calibration_error", LABEL, PROBA, metric_params={"block_size": 5}
        )
