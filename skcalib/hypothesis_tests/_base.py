"""What all tests share."""

import sys

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

# Values of the statistic that differ only by rounding count as tied.
_TIE = 1e-12


class HypothesisTest(BaseEstimator):
    """An estimator of probabilities and labels."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags


def as_p_value(probability):
    """A p-value as a float; positive also where it underflows, or where the data are impossible."""
    return max(float(probability), sys.float_info.min)


def monte_carlo_p_value(statistic, null):
    """(1 + #{T* ≥ T}) / (1 + B) for the statistic T of the data and B drawn values T*."""
    values = np.append(null, statistic)
    if not np.isfinite(values).all():
        raise ValueError(
            f"statistic must be finite for every label vector; found {statistic!r} for the data "
            f"and {np.sum(~np.isfinite(null))} value(s) that are not finite among the resampled "
            "ones. If it fails where a class does not occur among the labels, let it take an "
            "argument `labels`, in which it gets the classes."
        )
    slack = _TIE * np.abs(values).max()
    return (1 + int(np.sum(null >= statistic - slack))) / (1 + len(null))
