"""Parameters that all metrics share, as scikit-learn's constraints."""

import numbers

from .scikit_learn import Interval, StrOptions


class IntegerInterval(Interval):
    """An interval of integers. True and False do not count as integers, unlike in Python."""

    def __init__(self, left: int, right: int | None = None, *, closed: str = "left") -> None:
        super().__init__(numbers.Integral, left, right, closed=closed)

    def is_satisfied_by(self, value: object) -> bool:
        return not isinstance(value, bool) and super().is_satisfied_by(value)


# The further arguments of binary measures, which reduce more classes to problems of two.
REDUCTION_CONSTRAINTS: dict = {
    "multi_class": [StrOptions({"confidence", "top-label", "classwise"})],
    "average": [StrOptions({"auto", "macro", "weighted"}), None],
}

# The arguments that metrics share, where a metric has them; the data are judged by
# `check_predictions`.
METRIC_CONSTRAINTS: dict = REDUCTION_CONSTRAINTS | {
    "sample_weight": "no_validation",
    "pos_label": [numbers.Real, str, bytes, "boolean", None],
    "labels": ["array-like", None],
    "n_jobs": [numbers.Integral, None],
}

# Measures that can also see all classes at once.
CANONICAL_CONSTRAINTS: dict = {
    "multi_class": [StrOptions({"canonical", "confidence", "top-label", "classwise"})],
}
