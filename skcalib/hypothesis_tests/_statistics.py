"""What a test measures, as a function of the labels."""

from functools import partial

import numpy as np


class MetricOfLabels:
    """A metric as a function of the labels of given predictions, like `SquaredKernelError`."""

    def __init__(self, predictions, metric, name_classes, as_matrix, weighted):
        self.classes = predictions.classes
        self.metric = partial(metric, labels=self.classes) if name_classes else metric
        if weighted:
            self.metric = partial(self.metric, sample_weight=predictions.weight)
        self.proba = (predictions.matrix if as_matrix else predictions.proba).view()
        self.proba.flags.writeable = False  # it may be the caller's

    def __call__(self, labels):
        """Values (R,) for R label vectors (R, n)."""
        values = np.array([self.metric(self.classes[row], self.proba) for row in labels])
        return check_statistic_values(values)


def check_statistic_values(values):
    """What a statistic of the user's returned for several label vectors."""
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"statistic must return one number; found values of shape {values.shape[1:]} and type "
            f"{values.dtype}. Wrap it in a function that returns a float."
        )
    return values.astype(np.float64, copy=False)
