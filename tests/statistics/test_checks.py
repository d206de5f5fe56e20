"""What is said of kernels does not depend on their scale."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import DotProduct, WhiteKernel

from skcalib._statistics.kernels import check_kernel, check_semidefinite
from skcalib._statistics.squared_error import check_class_kernel


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_symmetry_is_judged_relative_to_the_largest_entry(scale):
    with pytest.raises(ValueError, match="must be finite and symmetric"):
        check_semidefinite(scale * np.array([[1.0, 0.1], [0.2, 1.0]]), "class_kernel")
    eigenvalue, _ = check_semidefinite(
        scale * np.array([[1.0, 0.5], [0.5 + 1e-12, 1.0]]), "class_kernel"
    )
    np.testing.assert_allclose(eigenvalue / scale, [0.5, 1.5], rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_class_kernel_must_tell_classes_apart_even_if_an_entry_is_0(scale):
    part = scale * np.array([0.0, 0.1, 0.7])
    with pytest.raises(ValueError, match="must tell classes apart"):
        check_class_kernel(part[:, None] + part, 3)


def test_the_two_values_of_a_white_kernel_belong_to_one_sample():
    points = np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])
    kernel = DotProduct(sigma_0=0) + WhiteKernel(0.25)
    with pytest.raises(ValueError, match=r"found 0\.75 and 0\.5,"):
        check_kernel(kernel, points)
