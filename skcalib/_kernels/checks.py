"""What a kernel must satisfy."""

import numpy as np


def check_kernel(kernel, points):
    """A kernel must return a matrix; it is tried on a few points (n, K)."""
    rows, columns = points[:3], points[:2]
    values = np.asarray(kernel(rows, columns))
    if values.shape != (len(rows), len(columns)) or values.dtype.kind not in "biuf":
        raise ValueError(
            "kernel must return the values for all pairs of rows, of shape (a, b) for arrays of "
            f"shapes (a, n_classes) and (b, n_classes); found shape {values.shape} and type "
            f"{values.dtype} for a = {len(rows)} and b = {len(columns)}."
        )
    return kernel


def check_finite_kernel(sums):
    """What a kernel of the user's adds up to."""
    if not np.isfinite(sums).all():
        raise ValueError(
            "kernel must have finite values; found NaN or infinity among the pairs of samples."
        )


def check_semidefinite(matrix, name):
    """Eigenvalues and eigenvectors of a class kernel, or of a kernel's values for all pairs."""
    of_pairs = " of its values for all pairs of predictions" * (name == "kernel")
    asymmetry, largest = np.abs(matrix - matrix.T).max(), np.abs(matrix).max()
    if not asymmetry <= 1e-8 * largest:  # NaN too
        raise ValueError(
            f"{name} must be finite and symmetric; found a difference of {asymmetry:.3g} between "
            f"entries{of_pairs} that should be equal. Choose another one."
        )
    eigenvalue, vector = np.linalg.eigh(matrix)
    if eigenvalue[0] < -1e-8 * eigenvalue[-1]:  # more than rounding
        raise ValueError(
            f"{name} must be positive semi-definite; found the eigenvalue {eigenvalue[0]:.3g} (the "
            f"largest is {eigenvalue[-1]:.3g}){of_pairs}. Choose another one, computed in double "
            "precision."
        )
    return eigenvalue, vector
