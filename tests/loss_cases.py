"""Every loss in every form, on a small batch, for the tests of `skcalib.losses`."""

from functools import partial
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from skcalib import losses
from skcalib.losses import SampledForecast, distribution_matching_loss

N, N_CLASSES, N_DRAWS = 7, 4, 3

RNG = np.random.default_rng(0)
MEAN, STD = RNG.normal(size=N), RNG.uniform(0.4, 1.5, size=N)
Y = MEAN + STD * RNG.normal(size=N)
MIXTURE = (
    MEAN[:, None] + np.array([-0.4, 0.9]),
    STD[:, None] * np.array([0.7, 1.2]),
    np.column_stack([np.linspace(0.2, 1.5, N), np.ones(N)]),
)
DRAWN = MEAN[:, None] + STD[:, None] * RNG.normal(size=(N, N_DRAWS))
LOGITS, LABEL = 2 * RNG.normal(size=(N, N_CLASSES)), RNG.integers(N_CLASSES, size=N)
FEATURES, GROUP, WEIGHT = RNG.normal(size=(N, 2)), np.arange(N) % 3, RNG.random(N)
THRESHOLDS = np.array([-0.8, 0.2, 0.9])
LOSS = RNG.random((3, N_CLASSES))
CLASS_KERNEL = LOSS.T @ LOSS

PIT_FORMS = ("quantile", "threshold", "local")
FORMS = ("distribution", "marginal", "decision", "group", "individual", *PIT_FORMS)
CLASS_FORMS = (
    "canonical",
    "decision",
    "distribution",
    "group",
    "individual",
    "marginal",
    "top-label",
)
LINE_KERNELS = ("rbf", "laplacian", "energy")
FEATURE_KERNELS = ("moments", "tanh", "thresholds")
GIVEN_KERNELS = ("rbf", "laplacian", "exponential", "total-variation")


class Case(NamedTuple):
    """A loss with its options, and the arrays that gradients are taken of."""

    function: object
    prediction: (
        tuple  # arrays: mean and std, of mixtures also weights; draws and what describes them;
        # logits or probabilities
    )
    target: np.ndarray
    options: dict

    @property
    def is_of_draws(self):
        return self.prediction[0] is DRAWN


def forecast_options(form, kernel):
    options = {"calibration": form, "kernel": kernel, "sample_weight": WEIGHT}
    if kernel in ("rbf", "laplacian", "tanh") and form not in PIT_FORMS:
        options["bandwidth"] = 0.8
    if form in ("distribution", "individual", "local"):
        options["given_bandwidth"] = 1.1
    options |= given_options(form)
    if kernel in ("tanh", "thresholds") or form in ("threshold", "decision"):
        options["thresholds"] = THRESHOLDS
    return options


def given_options(form):
    if form == "group":
        return {"given": GROUP}
    return {"given": FEATURES} if form in ("individual", "local") else {}


def class_options(form, given_kernel):
    options = {"calibration": form, "given_kernel": given_kernel, "sample_weight": WEIGHT}
    options |= given_options(form)
    if form == "individual":
        options["given_bandwidth"] = 0.7
    if form == "decision":
        options["loss"] = LOSS
    return options


def forecast_cases():
    normal = partial(Case, distribution_matching_loss, (MEAN, STD), Y)
    mixed = partial(Case, distribution_matching_loss, MIXTURE, Y)
    drawn = partial(Case, distribution_matching_loss, (DRAWN, MEAN, STD), Y)
    for form in FORMS:
        for kernel in LINE_KERNELS + (() if form in PIT_FORMS else FEATURE_KERNELS):
            options = forecast_options(form, kernel)
            yield f"normal {form} {kernel}", normal(options)
            if kernel == "rbf" or form == "marginal":
                yield f"draws {form} {kernel}", drawn(options)
                yield f"mixture {form} {kernel}", mixed(options)
    options = forecast_options("distribution", "rbf")
    for kernel in GIVEN_KERNELS[1:]:
        yield f"normal given {kernel}", normal(options | {"given_kernel": kernel})
    yield "normal given features", normal(options | {"given": FEATURES})
    yield "normal biased", normal(options | {"estimation": "biased"})
    yield "normal detached", normal(options | {"detach_given": True})


def class_cases():
    classes = partial(Case, distribution_matching_loss, (LOGITS,), LABEL)
    proba = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    for form in CLASS_FORMS:
        kernels = GIVEN_KERNELS if form in ("canonical", "marginal", "top-label") else ("rbf",)
        for kernel in kernels:
            yield f"classes {form} {kernel}", classes(class_options(form, kernel))
    options = class_options("canonical", "rbf")
    yield "classes weighted", classes(options | {"class_kernel": CLASS_KERNEL})
    yield "classes given features", classes(options | {"calibration": "distribution"} | GIVEN)
    yield "classes narrow canonical", classes(options | {"given_bandwidth": 0.04})
    narrow = {"calibration": "marginal", "given_bandwidth": 0.1}
    yield "classes narrow marginal", classes(options | narrow)
    yield "classes biased", classes(options | {"calibration": "marginal", "estimation": "biased"})
    yield "classes detached", classes(options | {"detach_given": True})
    detached = {"calibration": "marginal", "detach_given": True}
    yield "classes detached marginal", classes(options | detached)
    probabilities = options | {"input_type": "probabilities"}
    yield "classes probabilities", classes(probabilities)._replace(prediction=(proba,))
    for form in ("canonical", "marginal", "top-label"):
        binary = Case(distribution_matching_loss, (LOGITS[:, 0],), LABEL % 2, {"calibration": form})
        yield f"binary {form}", binary
    yield (
        "binary probabilities",
        binary._replace(
            prediction=(proba[:, :1],),
            options={"calibration": "canonical", "input_type": "probabilities"},
        ),
    )


GIVEN = {"given": FEATURES, "given_bandwidth": 0.7}


def error_cases():
    functions = {
        "smooth": losses.smooth_calibration_loss,
        "maximum mean": losses.maximum_mean_calibration_loss,
        "soft-binned": partial(losses.soft_binned_calibration_loss, n_bins=6, temperature=0.02),
    }
    weighted = {"sample_weight": WEIGHT}
    for name, function in functions.items():
        for multi_class in ("confidence", "classwise"):
            options = weighted | {"multi_class": multi_class}
            yield f"{name} {multi_class}", Case(function, (LOGITS,), LABEL, options)
        yield f"{name} binary", Case(function, (LOGITS[:, 0],), LABEL % 2, {})
    options = weighted | {"balanced": True}
    maximum_mean = losses.maximum_mean_calibration_loss
    yield "maximum mean balanced", Case(maximum_mean, (LOGITS,), LABEL, options)
    kde = losses.kde_calibration_loss
    for order in (1.0, 1.5, 2.0):
        yield f"kde {order}", Case(kde, (LOGITS,), LABEL, weighted | {"order": order})
    conditional = losses.conditional_kernel_calibration_loss
    for estimation in ("biased", "unbiased"):
        options = weighted | {"estimation": estimation, "regularization": 0.2}
        yield f"conditional {estimation}", Case(conditional, (LOGITS,), LABEL, options)
    yield "conditional binary", Case(conditional, (LOGITS[:, 0],), LABEL % 2, {"bandwidth": 0.3})
    yield "kde binary", Case(kde, (LOGITS[:, 0],), LABEL % 2, {"bandwidth": 0.3})


def rational(s, t):
    """A kernel of any package, for points (a, d) and (b, d)."""
    square = sum((s[:, k : k + 1] - t[:, k]) ** 2 for k in range(s.shape[1]))
    return 1 / (1 + square)


def costs(y):
    """The losses of three orders for a demand."""
    gaps = [y - order for order in (-0.5, 0.3, 1.0)]
    return array_namespace(y).stack([gap**2 + gap / 2 for gap in gaps], axis=1)


def user_cases():
    normal = partial(Case, distribution_matching_loss, (MEAN, STD), Y)
    drawn = partial(Case, distribution_matching_loss, (DRAWN, MEAN, STD), Y)
    classes = partial(Case, distribution_matching_loss, (LOGITS,), LABEL)
    own, losses_of = {"kernel": rational}, {"kernel": "loss", "loss": costs}
    near = {"calibration": "distribution", "given_kernel": rational}
    yield "normal quantile own", normal({"calibration": "quantile"} | own)
    yield "draws distribution own", drawn(near | own)
    yield "normal distribution losses", normal(near | losses_of | {"sample_weight": WEIGHT})
    mixed = partial(Case, distribution_matching_loss, MIXTURE, Y)
    yield "mixture decision losses", mixed({"calibration": "decision"} | losses_of)
    yield "classes losses", classes({"kernel": "loss", "loss": LOSS, "given_kernel": rational})


FORECAST_CASES, CLASS_CASES = dict(forecast_cases()), dict(class_cases())
ERROR_CASES = dict(error_cases())
CASES = FORECAST_CASES | CLASS_CASES | ERROR_CASES | dict(user_cases())


def logistic_cdf(mean, std, points):
    """A distribution function for draws, whose law it need not be."""
    column = (slice(None), None) if points.ndim == 2 else slice(None)
    xp = array_namespace(mean)
    return 1 / (1 + xp.exp((mean[column] - points) / std[column]))


def value(case, prediction, convert=lambda array: array, **changes):
    """The loss for arrays of some package, and what else it takes converted to that package."""
    options = case.options | changes
    options = {k: convert(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    if case.is_of_draws:
        drawn, mean, std = prediction
        parameters = array_namespace(mean).stack([mean, std], axis=1)
        prediction = (SampledForecast(drawn, partial(logistic_cdf, mean, std), parameters),)
    only = prediction[0] if len(prediction) == 1 else prediction
    return case.function(only, convert(case.target), **options)
