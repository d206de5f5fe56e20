"""Parameters that all metrics share, as scikit-learn's constraints."""

import numbers

from .._sklearn import StrOptions

# What every metric takes; `check_predictions` judges the values.
METRIC_CONSTRAINTS: dict = {
    "y_true": "no_validation",
    "y_proba": "no_validation",
    "sample_weight": "no_validation",
    "pos_label": [numbers.Real, str, bytes, "boolean", None],
    "labels": ["array-like", None],
}

REDUCTION_CONSTRAINTS: dict = {
    "multi_class": [StrOptions({"confidence", "top-label", "classwise"})],
    "average": [StrOptions({"auto", "macro", "weighted"}), None],
}

# Of measures that see all classes at once, too.
CANONICAL_CONSTRAINTS: dict = REDUCTION_CONSTRAINTS | {
    "multi_class": [StrOptions({"canonical", "confidence", "top-label", "classwise"})],
}
