"""Parameters that all metrics share, as scikit-learn's constraints."""

import numbers

from .scikit_learn import Interval, StrOptions


class IntegerInterval(Interval):
    """An interval of integers. True and False do not count as integers, unlike in Python."""

    def __init__(self, left: int, right: int | None = None, *, closed: str = "left") -> None:
        super().__init__(numbers.Integral, left, right, closed=closed)

    def is_satisfied_by(self, value: object) -> bool:
        return not isinstance(value, bool) and super().is_satisfied_by(value)


# The arguments of every metric; `check_predictions` judges their values.
METRIC_CONSTRAINTS: dict = {
    "y_true": "no_validation",
    "y_proba": "no_validation",
    "sample_weight": "no_validation",
    "pos_label": [numbers.Real, str, bytes, "boolean", None],
    "labels": ["array-like", None],
}

# The further arguments of binary measures, which reduce more classes to problems of two.
REDUCTION_CONSTRAINTS: dict = {
    "multi_class": [StrOptions({"confidence", "top-label", "classwise"})],
    "average": [StrOptions({"auto", "macro", "weighted"}), None],
}

# The number of threads among which classes are spread.
JOBS_CONSTRAINTS: dict = {"n_jobs": [numbers.Integral, None]}

# The same arguments of measures that can also see all classes at once.
CANONICAL_CONSTRAINTS: dict = REDUCTION_CONSTRAINTS | {
    "multi_class": [StrOptions({"canonical", "confidence", "top-label", "classwise"})],
}
