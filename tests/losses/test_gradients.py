"""Derivatives of the losses by torch and JAX."""

import numpy as np
import pytest
from loss_cases import CASES, LABEL, LOGITS, MEAN, STD, WEIGHT, value
from loss_packages import FRAMEWORKS, converted

from skcalib.losses._baselines import _likely_width

if not FRAMEWORKS:
    pytest.skip("needs torch or JAX", allow_module_level=True)

# What is conditioned on is held fixed: the derivative is not that of the value.
DETACHED = {name for name in CASES if "detached" in name}

frameworks = pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=FRAMEWORKS)
WHOLE = [name for name in CASES if name not in DETACHED]


def gradients_of(case, framework):
    convert = converted(framework)
    with framework.double():
        return framework.gradients(lambda *t: value(case, t, convert), case.prediction)


def differences(function, arrays, step=1e-5):
    """Derivatives by differences of the sixth order."""
    gradients = []
    for k, array in enumerate(arrays):
        gradient = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            for m, share in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
                for sign in (1, -1):
                    moved = [a.copy() for a in arrays]
                    moved[k][place] += sign * m * step
                    gradient[place] += sign * share * function(*moved) / step
        gradients.append(gradient)
    return gradients


@frameworks
@pytest.mark.parametrize("name", WHOLE)
def test_derivatives_equal_differences(name, framework):
    case = CASES[name]
    result, gradients = gradients_of(case, framework)
    assert result == pytest.approx(value(case, case.prediction), abs=1e-12)
    expected = differences(lambda *arrays: value(case, arrays), case.prediction)
    for gradient, exact in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, exact, atol=1e-8)


@frameworks
@pytest.mark.parametrize("name", sorted(DETACHED))
def test_what_is_detached_has_no_derivative(name, framework):
    """It is as if the same numbers were passed as features, but for "marginal"."""
    case = CASES[name]
    options = case.options | {"calibration": "distribution", "detach_given": False}
    if len(case.prediction) == 1:
        points = np.exp(case.prediction[0])
        options |= {"given": points / points.sum(axis=1, keepdims=True), "given_bandwidth": 0.4}
    else:
        options["given"] = np.column_stack([MEAN, np.log(STD)])
    _, gradients = gradients_of(case, framework)
    if case.options["calibration"] == "marginal":
        _, attached = gradients_of(
            case._replace(options=case.options | {"detach_given": False}), framework
        )
        assert not np.allclose(gradients[0], attached[0], atol=1e-6)
        return
    _, expected = gradients_of(case._replace(options=options), framework)
    for gradient, exact in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, exact, atol=1e-12)


@pytest.mark.parametrize("name", WHOLE if "torch" in FRAMEWORKS else [])
def test_gradcheck_passes(name):
    import torch

    case = CASES[name]
    tensors = tuple(torch.tensor(array, requires_grad=True) for array in case.prediction)
    assert torch.autograd.gradcheck(lambda *t: value(case, t, torch.tensor), tensors)


@pytest.mark.parametrize("name", CASES if len(FRAMEWORKS) > 1 else [])
def test_frameworks_agree(name):
    case = CASES[name]
    (_, ours), (_, theirs) = (gradients_of(case, framework) for framework in FRAMEWORKS.values())
    for gradient, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(gradient, other, atol=1e-10)


@frameworks
@pytest.mark.parametrize("given_kernel", ["rbf", "exponential", "laplacian"])
@pytest.mark.parametrize("farthest", [1e19, 1e36])
def test_derivatives_are_finite_where_distances_overflow(framework, given_kernel, farthest):
    """In single precision."""
    convert = converted(framework, np.float32)
    options = {"given_kernel": given_kernel, "sample_weight": None}
    case = CASES["normal distribution rbf"]
    mean = (farthest * MEAN).astype(np.float32)
    result, gradients = framework.gradients(
        lambda *t: value(case, t, convert, **options), (mean, STD.astype(np.float32))
    )
    assert np.isfinite(result)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@frameworks
def test_the_likely_bandwidth_is_a_constant(framework):
    """The derivative is that at the bandwidth as a number."""
    case = CASES["kde 1.0"]
    probability = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    is_other = ~np.eye(len(LABEL), dtype=bool) & (WEIGHT > 0)
    products = np.where(is_other, np.log(probability) @ probability.T, -np.inf)
    width = _likely_width(probability, products, WEIGHT / WEIGHT.sum())
    values, gradients = zip(
        *(
            gradients_of(case._replace(options=case.options | {"bandwidth": h}), framework)
            for h in ("likelihood", float(width))
        ),
        strict=True,
    )
    assert values[0] == pytest.approx(values[1], abs=1e-12)
    np.testing.assert_allclose(gradients[0][0], gradients[1][0], atol=1e-10)
