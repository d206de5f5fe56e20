"""How each of more than two classes is calibrated against the rest."""

from typing import Any

from .._inputs.predictions import Predictions
from ..metrics import smooth_calibration_error


def class_rows(predictions: Predictions) -> list[dict[str, Any]]:
    """What is observed and predicted of each class, the worst ones first; none for two classes."""
    if predictions.is_binary:
        return []
    rows = [
        {
            "class": name,
            "observed_share": share,
            "mean_prediction": float(problem.weight @ problem.proba),
            "smooth_calibration_error": smooth_calibration_error(
                problem.label, problem.proba, sample_weight=problem.weight, labels=[0, 1]
            ),
        }
        for name, (share, problem) in zip(
            predictions.classes.tolist(), predictions.classwise(), strict=True
        )
        if problem is not None
    ]
    return sorted(rows, key=lambda row: -row["smooth_calibration_error"])
