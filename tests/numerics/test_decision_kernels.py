"""The mean of a smooth step equals quadrature, for normals of any width."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf
from scipy.stats import norm

from skcalib._numerics.matching import normal_tanh_mean


def by_quadrature(mean, deviation):
    """E tanh(m + r Z), between the points at which the step begins, is halfway and ends."""
    points = -mean / deviation + np.array([-20, -3, 0, 3, 20]) / deviation
    breaks = np.unique(np.clip([-9.5, -3, 0, 3, 9.5, *points], -9.5, 9.5))
    return sum(
        quad(lambda z: np.tanh(mean + deviation * z) * norm.pdf(z), a, b, epsabs=1e-14)[0]
        for a, b in pairwise(breaks)
    )


@pytest.mark.parametrize("deviation", [1e-4, 0.1, 0.79, 0.81, 5.0, 20.0, 1e6])
def test_means_equal_quadrature(deviation):
    for mean in (0.0, 0.3, -1.7, -2 * deviation, 40.0):
        expected = by_quadrature(mean, deviation)
        for scale, threshold in ((1.0, 0.0), (0.01, 4.0)):
            location = np.array([threshold + mean * scale])
            actual = normal_tanh_mean(
                threshold, scale, location, np.array([(deviation * scale) ** 2])
            )
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_narrow_and_wide_limits():
    location = np.array([-2.0, 0.1, 30.0])
    expected = np.tanh((location - 0.5) / 0.7)
    np.testing.assert_array_equal(normal_tanh_mean(0.5, 0.7, location), expected)
    for variance in (0.0, 1e-300, 1e-20):
        actual = normal_tanh_mean(0.5, 0.7, location, np.array(variance))
        np.testing.assert_allclose(actual, expected, atol=5e-16)
    sign = erf(np.array([-1.0, 0.2, 1.0]) / np.sqrt(2))  # P(Y > c) − P(Y < c)
    far = np.array([-1.0, 0.2, 1.0]) * 1e150
    np.testing.assert_allclose(normal_tanh_mean(0.0, 1.0, far, np.array(1e300)), sign, atol=1e-14)


def test_arguments_are_broadcast_in_their_precision():
    location, variance = np.linspace(-2, 2, 5)[:, None], np.array([0.0, 0.3, 9.0])
    expected = normal_tanh_mean(0.2, 0.5, location, variance)
    assert expected.shape == (5, 3)
    for i, j in ((0, 0), (3, 1), (4, 2)):
        value = normal_tanh_mean(np.array(0.2), 0.5, location[i, 0], variance[j])
        np.testing.assert_allclose(expected[i, j], value, atol=1e-15)
    single = normal_tanh_mean(0.2, 0.5, location.astype(np.float32), variance.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=3e-7)


def test_torch_has_the_same_values_and_right_gradients():
    torch = pytest.importorskip("torch")
    location, variance = np.array([0.1, -3.0, 1e4, 0.5]), np.array([0.0, 0.2, 1e-10, 1e6])
    tensors = [torch.tensor(array, requires_grad=True) for array in (location, variance)]
    value = normal_tanh_mean(0.2, 0.3, *tensors)
    np.testing.assert_allclose(
        value.detach(), normal_tanh_mean(0.2, 0.3, location, variance), atol=1e-14
    )
    value.sum().backward()
    # at variance 0 the derivatives are tanh'/s and tanh''/(2 s²)
    step = np.tanh((0.1 - 0.2) / 0.3)
    slope = 1 - step**2
    np.testing.assert_allclose(tensors[0].grad[0], slope / 0.3, rtol=1e-7)
    np.testing.assert_allclose(tensors[1].grad[0], -step * slope / 0.3**2, rtol=1e-6)
    assert all(torch.isfinite(tensor.grad).all() for tensor in tensors)
    tensors = [
        torch.tensor(values, dtype=torch.float64, requires_grad=True)
        for values in ([0.1, 0.9, -1.0], [0.01, 0.2, 4.0])
    ]
    assert torch.autograd.gradcheck(lambda m, v: normal_tanh_mean(0.2, 0.7, m, v), tensors)


def test_jax_has_the_same_values_and_finite_gradients():
    jax = pytest.importorskip("jax")
    location, variance = np.array([0.1, -3.0, 1e4, 0.5]), np.array([0.0, 0.2, 1e-10, 1e6])
    expected = normal_tanh_mean(0.2, 0.3, location, variance)

    @jax.jit
    def total(mean, spread):
        return normal_tanh_mean(0.2, 0.3, mean, spread).sum()

    single = [jax.numpy.asarray(array) for array in (location, variance)]
    np.testing.assert_allclose(normal_tanh_mean(0.2, 0.3, *single), expected, atol=1e-6)
    gradients = jax.grad(total, (0, 1))(*single)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
