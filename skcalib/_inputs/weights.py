"""Sample weights."""

from typing import Any

import numpy as np

from .arrays import as_array, check_same_length, numbers_of_objects


def check_sample_weight(sample_weight: Any, n: int) -> np.ndarray:
    """Finite weights of shape (n,), none negative and not all zero."""
    weight = as_array(sample_weight, "sample_weight")
    if weight.dtype.kind == "O":
        weight = numbers_of_objects(weight)
    if weight.dtype.kind not in "biuf":
        raise ValueError(
            f"sample_weight must hold numbers; found type {weight.dtype}. Pass one number for each "
            "sample."
        )
    with np.errstate(over="ignore"):  # long doubles become infinite, which is refused
        weight = weight.astype(np.float64, copy=False)
    if weight.ndim != 1:
        raise ValueError(
            "sample_weight must be 1-D, one weight for each sample; found shape "
            f"{weight.shape}. Pass one column."
        )
    check_same_length({"the predictions": n, "sample_weight": len(weight)})
    if not np.isfinite(weight).all():
        row = int(np.argmin(np.isfinite(weight)))
        raise ValueError(
            f"sample_weight must be finite; found {weight[row]} (NaN or infinity) in row {row}. "
            "Remove the sample, or give it weight 0."
        )
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(
            f"sample_weight must not be negative; found {float(weight[row])!r} in row {row}. Give "
            "a sample that should not count the weight 0."
        )
    if not weight.any():
        raise ValueError(
            "sample_weight must have a positive, finite sum; found 0.0: all weights are zero. Give "
            "some sample a positive weight."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError(
            f"sample_weight must have a positive, finite sum; found one that overflows, with "
            f"weights up to {weight.max():.3g}. Divide the weights by the largest one."
        )
    return weight
