"""Weights that say something of the outcome, with which no p-value is right."""

import numpy as np
from scipy.stats import norm, rankdata

from .._data import AnyData, ClassData
from .._inputs.arrays import ArrayLike
from .._inputs.checks import check_sample_weight, positive_weight_rows
from .._inputs.warnings import warn
from .._numerics.sorting import quantile_bins

# Weights that have nothing to do with the outcome reach this score once in some million data sets.
_MAX_WEIGHT_SCORE = 5.0

# Bins of similar predictions, in which weights are compared.
_N_WEIGHT_BINS = 5

# Weights, or their sums, that differ by less than this are equal, up to this size.
_WEIGHT_ATOL, _MAX_COUNT = 1e-6, 1e6

_FINDINGS = {
    "counts": "whole numbers. If they count rows, repeat these: np.repeat(X, counts, axis=0).",
    "soft labels": "rows of the same prediction whose weights sum to whole numbers, as those of "
    "soft labels do. Metrics are right with them, p-values are not.",
    "outcomes": "weights that go with the outcome. If it decided who was sampled, as in a "
    "case-control sample, move the predictions to the prior of the sample with "
    "PriorShiftRecalibrator, and test without weights. With weights for censoring or non-response "
    "metrics and intervals are right, p-values are not.",
}


def warn_of_weights(data: AnyData, sample_weight: ArrayLike | None) -> None:
    """Warn of weights of a kind for which p-values are wrong, and name the remedy of that kind."""
    if sample_weight is None:
        return
    n = np.shape(sample_weight)[0]
    weight = check_sample_weight(sample_weight, n)[positive_weight_rows(sample_weight, n)]
    kind = "" if data.is_forecast else find_kind_of_weights(data.to_numpy(), weight)
    if not kind and np.median(weight) > 1 and is_whole(weight):
        kind = "counts"
    if kind and np.ptp(weight):
        warn(
            "sample_weight must be the importance of a sample, whatever its outcome, as tests "
            f"draw outcomes and keep the weights; found {_FINDINGS[kind]}"
        )


def find_kind_of_weights(data: ClassData, weight: np.ndarray) -> str:
    """Return "soft labels" or "outcomes" if the weights (n,) seem to depend on these, or ""."""
    proba, label = data.matrix, data.label
    total = np.bincount(np.unique(proba[:, 0], return_inverse=True)[1], weight)
    if is_whole(total) and not is_whole(weight) and len(total) > 1:
        return "soft labels"
    event = label if label.ndim == 2 else label[:, None] == np.arange(proba.shape[1])
    scores = [score_weights(*problem, weight) for problem in zip(event.T, proba.T, strict=True)]
    return "outcomes" if norm.sf(max(scores)) * len(scores) < norm.sf(_MAX_WEIGHT_SCORE) else ""


def is_whole(values: np.ndarray) -> bool:
    near = np.abs(values - np.rint(values)).max() <= _WEIGHT_ATOL
    return bool(near and values.max() <= _MAX_COUNT)


def score_weights(event: np.ndarray, proba: np.ndarray, weight: np.ndarray) -> float:
    """The covariance of ranks of weights and errors y − p within bins, in its standard deviations.

    The latter is that of errors that are permuted within their bins. A bin holds similar
    predictions, so that wrong predictions do not look like wrong weights; and ranks do not let a
    single extreme weight decide.
    """
    code = quantile_bins(proba, np.ones(len(proba)), _N_WEIGHT_BINS)
    number = np.maximum(np.bincount(code), 1)
    rank, error = (
        values - (np.bincount(code, values) / number)[code]
        for values in (rankdata(weight), event - proba)
    )
    squares = np.bincount(code, rank**2) * np.bincount(code, error**2)
    variance = np.sum(squares / np.maximum(number - 1, 1))
    return float(abs(rank @ error) / np.sqrt(variance)) if variance > 0 else 0.0
