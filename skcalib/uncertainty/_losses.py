"""Losses of the outcomes that were observed, and of all that are possible."""

from typing import Any, cast

import numpy as np
from sklearn.metrics import log_loss

from .._data import AnyData, ClassData, ForecastData, MultilabelData
from .._numerics.logits import PROPER_LOSSES
from ..metrics._registry import Metric, unwrap_partial
from ..metrics._terms import MAX_POSSIBLE, MetricTerms
from ._limits import Changes, Hull, ScoreLimits
from ._units import Units

# Outcomes, of equal probability, that stand for all that a forecast finds possible.
_N_NODES = 20

# The mean of the losses may miss the metric by this share, for it is summed in another order.
_SHARE = 1e-9


def possible_outcomes(data: AnyData) -> tuple[np.ndarray, np.ndarray] | None:
    """Outcomes that the predictions find possible, (n, J), and their probabilities, (n, J).

    Of forecasts these are quantiles, or positions among the members of an ensemble. None if they
    are unknown, as those of forecasts without tails.
    """
    if isinstance(data, MultilabelData) or (data.is_forecast and data.forecast._has_quantiles_only):
        return None
    if isinstance(data, ClassData):
        proba = data.to_numpy().simplex
        return np.broadcast_to(np.arange(proba.shape[1], dtype=np.int32), proba.shape), proba
    if data.forecast.is_exchangeable:
        n_values = data.forecast._n_members + 1
        n_nodes = min(_N_NODES, np.max(n_values))
        nodes = np.outer(n_values, (np.arange(n_nodes) + 0.5) / n_nodes).astype(np.intp)
        outcomes = np.broadcast_to(nodes, (len(data.value), n_nodes))
    else:
        outcomes = data.forecast.quantiles((np.arange(_N_NODES) + 0.5) / _N_NODES)
    return outcomes, np.full(outcomes.shape, 1 / outcomes.shape[1])


def class_terms(
    name: str, data: ClassData, observed: np.ndarray, factor: float = 1.0
) -> MetricTerms:
    """Terms of the mean of losses, of which those of the observed labels (n,) are known.

    The name is "log_loss", "brier_score_loss" or "accuracy", which is a mean of hits.
    """
    data = data.to_numpy()
    if data.proba.size > MAX_POSSIBLE:
        return MetricTerms(data.weight, observed, None, None)
    proba = data.simplex
    n_classes = proba.shape[1]
    if name == "accuracy":
        possible = (np.arange(n_classes) == proba.argmax(axis=1)[:, None]).astype(np.float64)
    elif name == "log_loss":
        possible = -np.log(np.maximum(proba, np.finfo(np.float64).eps))
    else:
        square = np.einsum("nk,nk->n", proba, proba)[:, None]
        possible = factor * (1 + square - 2 * proba) / (2 if n_classes == 2 else 1)
    return MetricTerms(data.weight, observed, possible, proba)


def mean_terms(
    metric: Metric, data: AnyData, options: dict[str, Any], value: float
) -> MetricTerms | None:
    """Terms of a mean loss; None if it is not known what it is the mean of.

    Arguments of scikit-learn's functions may change that: then the mean differs from the value.
    """
    if isinstance(data, ForecastData):
        return forecast_terms(metric, data, options)
    if unwrap_partial(metric.function)[0] is log_loss:
        losses = PROPER_LOSSES["log_loss"](data.simplex, data.label)
        candidates = [("log_loss", np.minimum(losses, -np.log(np.finfo(np.float64).eps)), 1.0)]
    else:  # for two classes the half by default
        square = PROPER_LOSSES["brier"](data.proba, data.label)
        candidates = [("brier", factor * square, factor) for factor in (1.0, 0.5, 2.0)]
    for name, losses, factor in candidates:
        if np.isclose(data.weight @ losses, value, rtol=_SHARE, atol=0):
            return class_terms(name, data, losses, factor)
    return None


def forecast_terms(metric: Metric, data: ForecastData, options: dict[str, Any]) -> MetricTerms:
    def measure(outcome: ForecastData) -> np.ndarray:
        return metric.measure(outcome, **options | {"average": None})

    terms = MetricTerms(data.weight, measure(data), None, None)
    nodes = possible_outcomes(data)
    if nodes is None:
        return terms
    columns = [measure(data.with_outcome(np.ascontiguousarray(node))) for node in nodes[0].T]
    possible = np.column_stack(columns)
    least, most = data.weight @ np.sort(possible, axis=1)[:, [0, -1]]
    # if forecasts are much too sharp, no node has a loss as large as the observed one
    if np.isfinite(possible).all() and least < data.weight @ terms.observed < most:
        return terms._replace(possible=possible, proba=nodes[1])
    return terms


def subtract_terms(terms: list[MetricTerms], shares_outcomes: bool) -> MetricTerms:
    """Terms of the difference of two mean losses; of all outcomes, if they are the same labels."""
    a, b = terms
    observed = a.observed - b.observed
    if not shares_outcomes or a.possible is None or b.possible is None:
        return MetricTerms(a.weight, observed, None, None)
    proba = (cast(Any, a.proba) + b.proba) / 2
    return MetricTerms(a.weight, observed, a.possible - b.possible, proba)


def mean_limits(terms: MetricTerms, units: Units, kind: type[ScoreLimits] = ScoreLimits) -> Hull:
    """Limits of a sum whose terms are known, such as a mean; score limits are of this kind."""
    changes = Changes.from_terms(terms.sum_by_sample(len(units.weight)), units)
    return Hull(changes.estimate, [changes.limits(), *kind.find(terms, units)])
