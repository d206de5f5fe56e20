"""A metric of given predictions as a function of what is observed."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from .._statistics.base import Statistic
from ._registry import ALL_METRICS, Metric, entry_of, requires, takes, with_known


class MetricStatistic(Statistic):
    """Any metric, evaluated for one vector of outcomes at a time.

    The metric gets labels and probabilities as the user passed them: labels of the same type, the
    probabilities in one column or in several, and weights if there were any. For forecasts it gets
    outcomes and forecasts, and what these are conditioned on if it takes that.
    """

    # enough batches for jobs to share, and for progress to be shown
    least_batches = 64
    depends_on_order = True  # unless known otherwise

    def __init__(self, data, metric: str | Callable, *, as_matrix, weighted) -> None:
        entry = entry_of(metric)
        self.takes_counts = entry is not None and entry.of_counts
        self.data = data
        self.options = {"metric": metric, "as_matrix": as_matrix, "weighted": weighted}
        # scikit-learn's metrics warn if rows sum to 1 in single precision only
        self.shown = data.shown(as_matrix=as_matrix, as_simplex=not _is_own(metric))
        known = data.known
        if _is_of_sklearn(metric) and data.kind == "classes":
            known, self.shown = _in_sorted_order(data.classes, self.shown[0])
        self.metric = with_known(metric, known)
        if weighted:
            self.metric = partial(self.metric, sample_weight=data.weight)

    @property
    def numbers_per_draw(self):
        return math.prod(self.data.arguments(self.data.outcome, *self.shown)[1].shape)

    def __call__(self, outcomes):
        """One value for each vector of outcomes (R, n)."""
        outcomes = outcomes.view()
        outcomes.flags.writeable = False  # they may be those of the data
        arguments = (self.data.arguments(row, *self.shown) for row in outcomes)
        return np.array([self.metric(*pair) for pair in arguments])


def _unwrapped(metric):
    while isinstance(metric, partial):
        metric = metric.func
    return metric


def _is_of_sklearn(metric):
    return getattr(_unwrapped(metric), "__module__", "").startswith("sklearn.")


def _in_sorted_order(classes, proba):
    """Known arguments and shown probabilities for the functions of scikit-learn, which take columns
    in the order of the sorted labels, and a single one for the last of these.
    """
    order = np.argsort(classes)
    known = {"labels": classes[order]}
    if proba.ndim == 1:
        known["pos_label"] = classes[order[-1]]
        proba = proba if order[-1] == 1 else 1 - proba
    elif (np.diff(order) < 0).any():
        proba = proba[:, order]
    proba = proba.view()
    proba.flags.writeable = False
    return known, (proba,)


def _is_own(metric):
    return getattr(_unwrapped(metric), "__module__", "").startswith("skcalib.")


def check_takes_kind(metric: Metric, kind: str, name: str) -> None:
    """Metrics of classes take no forecasts, and most metrics of forecasts no classes."""
    if kind in metric.takes:
        return
    known = sorted(one for one, entry in ALL_METRICS.items() if kind in entry.takes)
    remedy = {
        "forecasts": "A metric of classes takes y > t and forecast.at_threshold(t).",
        "classes": "Forecasts of a number are made with skcalib.forecasts.",
    }
    raise ValueError(
        f"{name} must be a metric of {kind}, which is what the predictions are; found "
        f"{metric.name!r}. Choose one of {known}. {remedy[kind]}"
    )


def check_takes_given(metric: Callable, data) -> None:
    """Nothing that is given may be ignored, and nothing that is required be missing."""
    name = getattr(_unwrapped(metric), "__name__", "the metric")
    if "given" in data.known and not takes(metric, "given"):
        raise ValueError(
            f"given must be None unless the metric has an argument of this name; found one, while "
            f"{name} has none. Leave it out, or choose another metric."
        )
    if "given" not in data.known and requires(metric, "given"):
        raise ValueError(
            f"given must hold what {name} conditions on; found None. Pass the features of the "
            "samples, given=X."
        )
