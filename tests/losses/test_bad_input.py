"""Errors name the argument, the rule, what was found and the remedy."""

import numpy as np
import pytest
from loss_cases import (
    CASES,
    FEATURES,
    GROUP,
    LABEL,
    LOGITS,
    LOSS,
    MEAN,
    STD,
    THRESHOLDS,
    WEIGHT,
    N,
    Y,
    costs,
    rational,
    value,
)
from loss_packages import FRAMEWORKS, PACKAGES, converted

from skcalib.losses import (
    SampledForecast,
    distribution_matching_loss,
    kde_calibration_loss,
    smooth_calibration_loss,
)

NORMAL, DRAWS = (MEAN, STD), SampledForecast(np.ones((len(Y), 2)))
LINE = {"bandwidth": 1.0, "given_bandwidth": 1.0}
MARGINAL = {"calibration": "marginal", "bandwidth": 1.0}

BAD = {
    # kinds of arrays
    "a class": (np.ndarray, LABEL, {}, "prediction must be a dense array of NumPy"),
    "no target": (LOGITS, None, {}, "target must be a dense array of NumPy"),
    "objects": (LOGITS.astype(object), LABEL, {}, "prediction must hold real numbers.*object"),
    "masked": (
        LOGITS,
        np.ma.masked_array(LABEL),
        {},
        "target must hold real numbers, none .*masked",
    ),
    # shapes
    "target with two axes": (LOGITS, LABEL[:, None], {}, r"target must have shape \(n_samples,\)"),
    "target without axes": (LOGITS, np.array(1), {}, "target must have shape"),
    "batch of one": (LOGITS[:1], LABEL[:1], {}, "at least 2 samples.*found 1.*drop_last"),
    "more scores than labels": (LOGITS, LABEL[:5], {}, r"the 5 samples of target; found \(7, 4\)"),
    "images": (LOGITS[:, :, None], LABEL, {}, "Flatten axes such as those of pixels"),
    "weights": (LOGITS, LABEL, {"sample_weight": WEIGHT[:3]}, r"sample_weight must .*\(3,\)"),
    "labels of type float": (LOGITS, LABEL * 1.0, {}, "target must hold integers 0, …, 3"),
    "column of means": ((MEAN[:, None], STD), Y, LINE, r"mean must have shape .*\(7, 1\).*squeeze"),
    "one std": ((MEAN, STD[:1]), Y, LINE, r"std must have shape .* found \(1,\)"),
    "four arrays": ((MEAN,) * 4, Y, LINE, "tuple of 4. Pass means .*, and for mixtures weights"),
    "flat mixture": ((MEAN, STD, STD), Y, LINE, "mean must have two axes.*the components of"),
    "weights of other components": (
        (np.ones((7, 2)), np.ones((7, 2)), np.ones((7, 3))),
        Y,
        LINE,
        r"weight must have the shape \(7, 2\) of mean; found \(7, 3\)",
    ),
    "flat draws": (
        SampledForecast(MEAN),
        Y,
        MARGINAL,
        "values of SampledForecast must have two axes",
    ),
    "flat parameters": (
        SampledForecast(np.ones((7, 2)), parameters=MEAN),
        Y,
        LINE,
        "parameters of SampledForecast must have two axes",
    ),
    "cdf of another shape": (
        SampledForecast(np.ones((7, 2)), cdf=lambda t: np.ones(3)),
        Y,
        {"calibration": "quantile"},
        r"cdf of SampledForecast must return shape \(7,\) .* found \(3,\)",
    ),
    "number as threshold": (
        NORMAL,
        Y,
        MARGINAL | {"kernel": "tanh", "thresholds": np.array(0.0)},
        r"thresholds must have shape \(n_thresholds,\)",
    ),
    "wide given": (
        LOGITS,
        LABEL,
        {"calibration": "individual", "given": FEATURES[None]},
        "given must have shape .* or .*n_features",
    ),
    # types
    "list": ([MEAN, STD], Y, LINE, "prediction must be a dense array .*; found list"),
    "list of labels": (LOGITS, LABEL.tolist(), {}, "target must be a dense array .*; found list"),
    "list of thresholds": (
        NORMAL,
        Y,
        MARGINAL | {"kernel": "tanh", "thresholds": [0.0]},
        "thresholds must be a dense array",
    ),
    # forms
    "form of classes": (NORMAL, Y, {"calibration": "canonical"}, "is for classes; found forecasts"),
    "form of numbers": (LOGITS, LABEL, {"calibration": "quantile"}, "is for forecasts of a number"),
    "no form": (LOGITS, LABEL, {"calibration": "strong"}, "calibration"),
    "no groups": (NORMAL, Y, {"calibration": "group"}, "given must hold the group"),
    "groups": (NORMAL, Y, MARGINAL | {"given": GROUP}, "given must be left out .*'marginal'"),
    "draws without parameters": (DRAWS, Y, LINE, "given must hold what the distributions"),
    "no given bandwidth": (NORMAL, Y, {"bandwidth": 1.0}, "given_bandwidth must be a number"),
    "no bandwidth of features": (
        LOGITS,
        LABEL,
        {"calibration": "individual", "given": FEATURES},
        "given_bandwidth must be a number",
    ),
    "no thresholds": (NORMAL, Y, {"calibration": "decision"}, "thresholds must be given for cali"),
    # kernels
    "no bandwidth": (NORMAL, Y, {"given_bandwidth": 1.0}, "bandwidth must be a number for kernel"),
    "median": (NORMAL, Y, LINE | {"bandwidth": "median"}, "bandwidth"),
    "bandwidth of energy": (NORMAL, Y, MARGINAL | {"kernel": "energy"}, "bandwidth must be left"),
    "kernel of PITs": (
        NORMAL,
        Y,
        {"calibration": "quantile", "kernel": "moments"},
        "kernel must be .*'rbf' .* which compares PITs; found 'moments'",
    ),
    "draws without cdf": (DRAWS, Y, {"calibration": "quantile"}, "SampledForecast must have a cdf"),
    "kernel without thresholds": (
        NORMAL,
        Y,
        MARGINAL | {"kernel": "tanh"},
        "thresholds must be given for kernel='tanh'",
    ),
    "kernel of classes": (
        LOGITS,
        LABEL,
        {"kernel": "energy"},
        "which compares labels; found 'energy'",
    ),
    "thresholds of classes": (
        LOGITS,
        LABEL,
        {"thresholds": THRESHOLDS},
        "thresholds must be left out for class probabilities.*found array",
    ),
    # losses
    "no loss": (LOGITS, LABEL, {"calibration": "decision"}, "loss must be given .* found None"),
    "loss in vain": (LOGITS, LABEL, {"loss": LOSS}, "loss must be left out .* found array"),
    "transposed loss": (
        LOGITS,
        LABEL,
        {"calibration": "decision", "loss": LOSS.T},
        r"loss must have shape \(n_actions, n_classes\) with 4 classes; found \(4, 3\)",
    ),
    "loss of numbers": (NORMAL, Y, LINE | {"loss": LOSS}, "loss must be left out .* found array"),
    "no loss of numbers": (
        NORMAL,
        Y,
        {"calibration": "marginal", "kernel": "loss"},
        "loss must be a callable of outcomes for kernel='loss', .* found None",
    ),
    "callable in vain": (NORMAL, Y, LINE | {"loss": costs}, "loss must be left out .* found <func"),
    "decision of draws": (
        DRAWS,
        Y,
        {"calibration": "decision", "kernel": "loss", "loss": costs},
        "found draws, which would choose the action by their own luck",
    ),
    "losses of one action": (
        NORMAL,
        Y,
        {"calibration": "marginal", "kernel": "loss", "loss": np.abs},
        r"loss must return .* found shape \(7,\) for m = 7",
    ),
    "losses of classes by a callable": (
        LOGITS,
        LABEL,
        {"calibration": "decision", "loss": costs},
        r"found <function costs.*\. Pass an array",
    ),
    "losses of the top label": (
        LOGITS,
        LABEL,
        {"calibration": "top-label", "kernel": "loss", "loss": LOSS},
        "kernel must be 'rbf' .*'top-label'.*; found 'loss'",
    ),
    "kernel of the diagonal": (
        DRAWS,
        Y,
        {"calibration": "marginal", "kernel": lambda s, t: s[:, 0]},
        r"kernel and given_kernel must return .* found shape \(14,\) for a = 14, b = 7",
    ),
    "bandwidth of a callable": (
        NORMAL,
        Y,
        MARGINAL | {"kernel": rational},
        "^bandwidth must be left out .*kernel=<function rational",
    ),
    "bandwidth of a callable condition": (
        NORMAL,
        Y,
        LINE | {"given_kernel": rational},
        "given_bandwidth must be left out .*given_kernel=<function rational",
    ),
    "callable of classes": (
        LOGITS,
        LABEL,
        {"kernel": rational},
        "which compares labels; found <func",
    ),
    "class kernel of numbers": (
        NORMAL,
        Y,
        LINE | {"class_kernel": np.eye(2)},
        "class_kernel must be left out for forecasts",
    ),
    "flat class kernel": (
        LOGITS,
        LABEL,
        {"class_kernel": np.ones(4)},
        r"class_kernel must have shape .* found \(4,\).*diagonal",
    ),
    "class kernel of one class": (
        LOGITS,
        LABEL,
        {"calibration": "marginal", "class_kernel": np.eye(4)},
        "class_kernel must be left out .*calibration='marginal'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_of_matching(name):
    prediction, target, options, message = BAD[name]
    with pytest.raises((ValueError, TypeError), match=message):
        distribution_matching_loss(prediction, target, **options)


@pytest.mark.parametrize(
    ("loss", "prediction", "options", "message"),
    [
        (smooth_calibration_loss, LOGITS, {"bandwidth": 1e-6}, "bandwidth"),
        (smooth_calibration_loss, LOGITS, {"input_type": "scores"}, "input_type"),
        (smooth_calibration_loss, NORMAL, {}, "tuple"),
        (smooth_calibration_loss, LOGITS[:3], {}, "the 7 samples of target"),
        (kde_calibration_loss, LOGITS, {"order": 0.5}, "order"),
    ],
)
def test_bad_input_of_other_losses(loss, prediction, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        loss(prediction, LABEL, **options)


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="target must have at least 1 sample; found 0"):
        smooth_calibration_loss(LOGITS[:0], LABEL[:0])


@pytest.mark.skipif(not FRAMEWORKS, reason="needs torch or JAX")
def test_packages_are_not_mixed():
    package = next(iter(FRAMEWORKS.values()))
    with pytest.raises(TypeError, match="prediction and target must be arrays of the same package"):
        distribution_matching_loss(package.asarray(LOGITS), LABEL)


def on_device(array, entry):
    changed = array + 0 * entry  # floats if the entry is one
    changed[2] = entry
    return changed


def with_bad_values(case):
    """The case with a bad value of one sample, and the name of that."""
    weight = case.options.get("sample_weight", np.ones(N))
    changed = {"sample_weight": on_device(weight, -0.01)}
    yield "weight", case._replace(options=case.options | changed)
    if len(case.prediction) == 1:
        n_classes = 2 if case.prediction[0].ndim == 1 else case.prediction[0].shape[1]
        n_classes = max(n_classes, 2)
        for label in (-1, n_classes, 0.5) if n_classes == 2 else (-1, n_classes):
            yield f"label {label}", case._replace(target=on_device(case.target, label))
    elif not case.is_of_draws:
        mean, std, *weights = case.prediction
        for entry in (0.0, -1.0, np.nan):
            yield f"std {entry}", case._replace(prediction=(mean, on_device(std, entry), *weights))
        for weight in weights:
            changed = (mean, std, on_device(weight, -0.1))
            yield "negative weight", case._replace(prediction=changed)


@pytest.mark.parametrize(
    "package", sorted(PACKAGES.keys() - {"jax"})
)  # which compiles each, for long
@pytest.mark.parametrize("name", CASES)
def test_bad_values_lead_to_nan(name, package):
    convert = converted(PACKAGES[package])
    for what, case in with_bad_values(CASES[name]):
        assert np.isnan(float(value(case, tuple(map(convert, case.prediction)), convert))), what


@pytest.mark.parametrize("labels", [np.array(list("abcabca")), LABEL.astype(object), LABEL * 1j])
@pytest.mark.parametrize("scores", [LOGITS[:, :2], LOGITS[:, 0], LOGITS])
def test_labels_are_numbers(scores, labels):
    with pytest.raises(ValueError, match="Pass the indices of the classes"):
        smooth_calibration_loss(scores, labels)


@pytest.mark.parametrize("loss", [kde_calibration_loss, smooth_calibration_loss])
def test_bad_values_make_losses_nan_without_a_warning(loss):
    prediction = np.array([[np.inf, 1.0], [-np.inf, 1e300], [0.0, np.nan]])
    assert np.isnan(loss(prediction, np.array([0, 1, 1])))
