"""What all tests share."""

import numpy as np
from sklearn.base import BaseEstimator


class HypothesisTest(BaseEstimator):
    """An estimator of probabilities and labels."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags


def positive(p_value):
    """A p-value that is positive also where it underflows, or where the data are impossible."""
    return max(float(p_value), np.finfo(np.float64).tiny)
