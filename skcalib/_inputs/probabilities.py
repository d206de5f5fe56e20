"""Predicted probabilities."""

import numpy as np

from .arrays import as_array, floats_of_objects, look_like_probabilities

# Rows of double precision that sum to 1 miss it by less than this.
_ROUNDING = 1e-12


def check_probabilities(y_proba, *, name="y_proba", partner="y_true", partner_values=None):
    """Probabilities as float64, `(n,)` for the positive class or `(n, K)` with K ≥ 2."""
    proba = as_array(y_proba, name)
    if proba.dtype.kind == "O":
        proba = floats_of_objects(proba)
    if proba.dtype.kind != "f" and proba.size > 0:
        remedy = (
            "Pass the output of predict_proba; in make_scorer set response_method='predict_proba'; "
            "convert true probabilities with .astype(float)."
        )
        if look_like_probabilities(partner_values):
            remedy = f"{partner} and {name} look swapped: exchange them."
        (first,) = proba.ravel()[:1].tolist()
        raise ValueError(
            f"{name} must hold probabilities as floating-point numbers; found {first!r} of type "
            f"{proba.dtype}, which is taken for a class label. {remedy}"
        )
    if proba.ndim == 2 and proba.shape[1] == 1:
        proba = proba[:, 0]
    if proba.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (n,) or (n, K); found shape {proba.shape}. Pass the "
            "probability of the positive class, or one column for each class."
        )
    if len(proba) == 0 or proba.shape[-1] == 0:
        missing = "sample" if len(proba) == 0 else "feature"
        raise ValueError(
            f"{name} must hold at least one prediction; found 0 {missing}(s) "
            f"(shape={proba.shape}) while a minimum of 1 is required. Check the filter or the "
            "split that produced it."
        )
    tolerance = np.sqrt(max(np.finfo(proba.dtype).eps, np.finfo(np.float32).eps))
    proba = proba.astype(np.float64, copy=False)
    _check_range(proba, name)
    if proba.ndim == 2:
        total = _check_row_sums(proba, tolerance, name)
        if proba.shape[1] > 2 and np.abs(total - 1).max() > _ROUNDING:
            proba = proba / total[:, None]  # predictions in single precision come like this
    return proba


def _check_range(proba, name):
    low, high = proba.min(), proba.max()
    if low >= 0 and high <= 1:
        return
    row = np.unravel_index(np.argmin((proba >= 0) & (proba <= 1)), proba.shape)
    if not np.isfinite(proba).all():
        row = np.unravel_index(np.argmin(np.isfinite(proba)), proba.shape)
        raise ValueError(
            f"{name} must be finite; found {proba[row]} (NaN or infinity) in row {row[0]}, and "
            f"{np.sum(~np.isfinite(proba))} such value(s) in all. Remove or impute these "
            "predictions."
        )
    raise ValueError(
        f"{name} must lie in [0, 1]; found {float(proba[row])!r} in row {row[0]}. Map scores or "
        "logits to probabilities first; clip rounding errors with np.clip(..., 0, 1)."
    )


def _check_row_sums(proba, tolerance, name):
    total = proba.sum(axis=1)
    worst = np.argmax(np.abs(total - 1))
    if abs(total[worst] - 1) > tolerance:
        raise ValueError(
            f"The rows of {name} must sum to 1 (within {tolerance:.0e}); found a sum of "
            f"{total[worst]:.10g} in row {worst}. Divide each row by its sum, or pass the columns "
            "of one-vs-rest scores one at a time."
        )
    return total
