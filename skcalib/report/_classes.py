"""How each of more than two classes is calibrated against the rest."""

from typing import Any

import numpy as np

from .._inputs.predictions import Predictions


def class_rows(predictions: Predictions, errors: np.ndarray) -> list[dict[str, Any]]:
    """What is observed and predicted of each class, and its error (K,), the worst ones first."""
    rows = [
        {
            "class": name,
            "observed_share": share,
            "mean_prediction": float(problem.weight @ problem.proba),
            "smooth_calibration_error": error,
        }
        for name, (share, problem), error in zip(
            predictions.classes.tolist(), predictions.classwise(), errors.tolist(), strict=True
        )
    ]
    return sorted(rows, key=lambda row: -row["smooth_calibration_error"])
