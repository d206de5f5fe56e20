"""A metric of given predictions as a function of what is observed."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ._registry import with_classes


class MetricStatistic:
    """Any metric, evaluated for one vector of outcomes at a time.

    The metric gets labels and probabilities as the user passed them: labels of the same type, the
    probabilities in one column or in several, and weights if there were any.
    """

    # enough batches for jobs to share, and for progress to be shown
    least_batches = 64
    has_known_law = False
    depends_on_order = True  # on that of the samples, unless known otherwise

    def __init__(self, data, metric: str | Callable, *, as_matrix, weighted) -> None:
        self.data = data
        self.options = {"metric": metric, "as_matrix": as_matrix, "weighted": weighted}
        # scikit-learn's metrics warn if rows sum to 1 in single precision only
        rows = "matrix" if _is_own(metric) else "simplex"
        proba = getattr(data, rows if as_matrix else "proba")
        self.proba = proba.view()
        self.proba.flags.writeable = False  # it may be the caller's
        self.metric = with_classes(metric, data.classes)
        if weighted:
            self.metric = partial(self.metric, sample_weight=data.weight)

    @property
    def numbers_per_draw(self):
        return self.proba.size

    def on(self, data):
        """The same statistic of other data."""
        return MetricStatistic(data, **self.options)

    def __call__(self, outcomes):
        """One value for each vector of outcomes (R, n)."""
        return np.array([self.metric(self.data.classes[row], self.proba) for row in outcomes])


def _is_own(metric):
    while isinstance(metric, partial):
        metric = metric.func
    return getattr(metric, "__module__", "").startswith("skcalib.")
