"""What a kernel must satisfy."""

import numpy as np

# The largest number of points on which a kernel is tried.
_TRIED = 100


def check_kernel(kernel, points):
    """A kernel must return a positive semi-definite matrix; it is tried on a few points (n, K)."""
    rows, columns = points[:3], points[:2]
    values = np.asarray(kernel(rows, columns))
    if values.shape != (len(rows), len(columns)) or values.dtype.kind not in "biuf":
        raise ValueError(
            "kernel must return the values for all pairs of rows, of shape (a, b) for arrays of "
            f"shapes (a, n_classes) and (b, n_classes); found shape {values.shape} and type "
            f"{values.dtype} for a = {len(rows)} and b = {len(columns)}."
        )
    _check_diagonal(kernel, rows)
    some = points[np.linspace(0, len(points) - 1, min(len(points), _TRIED)).astype(np.intp)]
    values = np.asarray(kernel(some, some))
    check_finite_kernel(values)
    rounding = 1e-4 if values.dtype == np.float32 else 1e-8
    check_semidefinite(values.astype(np.float64), "kernel", rounding)
    return kernel


def _check_diagonal(kernel, rows):
    """A sample with itself must have the same value as two equal samples.

    Kernels of scikit-learn may know that a sample is compared with itself: `WhiteKernel` does.
    """
    if not hasattr(kernel, "diag"):
        return
    own, equal = kernel.diag(rows), np.diagonal(kernel(rows, rows))
    if not np.allclose(own, equal, rtol=1e-12, atol=0.0, equal_nan=True):
        raise ValueError(
            "kernel must have the same value for a sample with itself as for two equal samples; "
            f"found {float(own[0]):.6g} and {float(equal[0]):.6g}, as a WhiteKernel makes them. "
            "Leave the WhiteKernel out."
        )


def check_finite_kernel(sums):
    """Values of a user's kernel, and sums of them, must be finite."""
    if not np.isfinite(sums).all():
        raise ValueError(
            "kernel must have finite values; found NaN or infinity among the pairs of samples."
        )


def check_semidefinite(matrix, name, rounding=1e-8):
    """Eigenvalues and eigenvectors of a class kernel, or of a kernel's values for all pairs.

    The matrix may miss symmetry by `rounding` times its largest entry, and semi-definiteness by
    `rounding` times its largest eigenvalue.
    """
    of_pairs = " of its values for all pairs of predictions" * (name == "kernel")
    asymmetry, largest = np.abs(matrix - matrix.T).max(), np.abs(matrix).max()
    if not asymmetry <= rounding * largest:  # NaN too
        raise ValueError(
            f"{name} must be finite and symmetric; found a difference of {asymmetry:.3g} between "
            f"entries{of_pairs} that should be equal. Choose another one."
        )
    eigenvalue, vector = np.linalg.eigh(matrix)
    if eigenvalue[0] < -rounding * eigenvalue[-1]:
        raise ValueError(
            f"{name} must be positive semi-definite; found the eigenvalue {eigenvalue[0]:.3g} (the "
            f"largest is {eigenvalue[-1]:.3g}){of_pairs}. Choose another one, computed in double "
            "precision."
        )
    return eigenvalue, vector
