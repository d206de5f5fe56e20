"""A metric of one or several models, resampled."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.constraints import METRIC_CONSTRAINTS, IntegerInterval
from .._inputs.probabilities import is_forecast
from .._redraw import seeded_batches
from .._sklearn import Interval, StrOptions
from .._types import RandomState
from ..forecasts._either import check_either
from ..metrics._registry import ALL_METRICS, entry_of, with_params
from ..metrics._statistic import MetricStatistic, check_takes_given, check_takes_kind

# Samples in a subsample, in units of √n: a small part of all, but enough for 15 bins if n is 100.
_SUBSAMPLE = 3

# The number of groups of which the jackknife leaves out one at a time.
_GROUPS = 100

# The estimate of a calibrated model is taken to fall like n^-`_RATE` if the metric is unknown.
_RATE = 1 / 2

RESAMPLING_CONSTRAINTS = METRIC_CONSTRAINTS | {
    "metric": [StrOptions(set(ALL_METRICS)), callable],
    "given": "no_validation",
    "metric_params": [dict, None],
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    "n_resamples": [IntegerInterval(1)],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@dataclass(frozen=True, repr=False)
class Result:
    """Numbers by name, shown with four digits."""

    def __repr__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({', '.join(f'{k}={v:.4g}' for k, v in values)})"


class Estimates:
    """The metric of one or several models on the same samples, whole and resampled."""

    def __init__(
        self,
        metric: str | Callable,
        y_true: ArrayLike,
        probas,
        sample_weight: ArrayLike | None,
        labels: ArrayLike | None,
        given: ArrayLike | None,
        metric_params: dict | None,
    ) -> None:
        entry = entry_of(metric)
        function = with_params(
            ALL_METRICS[metric].function if isinstance(metric, str) else metric,
            metric_params or {},
            own=("y_true", "y_proba", "y_forecast", "sample_weight", "labels", "given"),
        )
        check_same_kind(probas)
        self.statistics = []
        for name, y_proba in probas.items():
            data = check_either(
                y_true,
                y_proba,
                sample_weight=sample_weight,
                labels=labels,
                given=given,
                names=("y_true", name),
            )
            labels = data.known.get("labels")  # the classes of the first model hold for the next
            if entry is not None:
                check_takes_kind(entry, data.kind, "metric")
            check_takes_given(function, data)
            self.statistics.append(
                MetricStatistic(
                    data,
                    function,
                    as_matrix=_n_columns(y_proba) > 1,
                    weighted=sample_weight is not None,
                )
            )
        self.n_samples = len(data.weight)
        self.is_mean = entry is not None and entry.is_mean
        self.is_error = entry is not None and not entry.is_mean  # a mean loss may be negative
        self.size = min(int(np.ceil(_SUBSAMPLE * np.sqrt(self.n_samples))), self.n_samples // 2)
        self.shrinkage = (self.size / self.n_samples) ** (entry.rate if entry else _RATE)

    def of_data(self):
        return [statistic(statistic.data.outcome[None])[0] for statistic in self.statistics]

    def of_rows(self, rows):
        parts = [statistic.on(statistic.data.take(rows)) for statistic in self.statistics]
        return [part(part.data.outcome[None])[0] for part in parts]

    def of_subsamples(self, size, seed):
        rng = np.random.default_rng(seed)
        return [
            self.of_rows(rng.choice(self.n_samples, self.size, replace=False)) for _ in range(size)
        ]

    def without_group(self, group, k: int):
        return [self.of_rows(np.flatnonzero(group != k))]

    def resample(self, n_resamples: int, random_state: RandomState, n_jobs: int | None):
        """Values (C,) of C models, (B, C) of subsamples and (G, C) without one of the groups."""
        check_enough_to_resample(self.n_samples)
        values = check_metric_values([self.of_data()])[0]
        rng = check_random_state(random_state)
        n_groups = min(self.n_samples, _GROUPS)
        group = rng.permutation(self.n_samples) % n_groups
        batches = []
        if not self.is_mean:  # the limit of a mean is normal in any case
            batches = seeded_batches(n_resamples, 1, MetricStatistic.least_batches, rng)
        tasks = [delayed(self.without_group)(group, k) for k in range(n_groups)]
        tasks += [delayed(self.of_subsamples)(*batch) for batch in batches]
        resampled = check_metric_values(
            [row for rows in Parallel(n_jobs=n_jobs)(tasks) for row in rows]
        )
        return values, resampled[n_groups:], resampled[:n_groups]


def _jackknife_deviation(jackknife):
    """Standard deviation of the estimate, from the values (G,) without one of the groups."""
    return np.sqrt((len(jackknife) - 1) * np.var(jackknife))


def _n_columns(y_proba):
    shape = y_proba.shape if hasattr(y_proba, "shape") else np.shape(y_proba)
    return shape[1] if len(shape) == 2 else 1


def hull(value, subsamples, jackknife, shrinkage, confidence_level):
    """The smallest interval that contains the normal one and that of the subsamples, if any."""
    tail = (1 - confidence_level) / 2
    margin = stats.t.isf(tail, len(jackknife) - 1) * _jackknife_deviation(jackknife)
    if len(subsamples) == 0:
        return value - margin, value + margin
    # for these order statistics, (1 + #{more extreme}) / (1 + B) equals the tail
    quantiles = np.quantile(subsamples, [1 - tail, tail], method="weibull")
    low, high = (value - shrinkage * quantiles) / (1 - shrinkage)
    return min(value - margin, low), max(value + margin, high)


def two_sided_p_value(value, subsamples, jackknife, shrinkage):
    """Two-sided p-value of the value 0, by both methods of `hull`."""
    deviation = max(_jackknife_deviation(jackknife), np.finfo(np.float64).tiny)
    null = shrinkage * subsamples
    one_sided = []
    for sign in (1, -1):
        normal = stats.t.sf(sign * value / deviation, len(jackknife) - 1)
        exceeding = (1 + np.sum(sign * null >= sign * value)) / (1 + len(null))
        one_sided.append(max(exceeding, normal) if len(null) else normal)
    return float(min(1.0, 2 * min(one_sided)))


# Fewer samples say nothing about how the estimate varies.
_FEWEST_TO_RESAMPLE = 10


def check_same_kind(probas):
    """Two models are compared on the same outcomes."""
    kinds = ["a forecast" if is_forecast(one) else "probabilities" for one in probas.values()]
    if len(set(kinds)) > 1:
        raise ValueError(
            f"{' and '.join(probas)} must be of the same kind; found {' and '.join(kinds)}. "
            "Compare forecasts with forecasts, and probabilities with probabilities."
        )


def check_enough_to_resample(n):
    """How an estimate varies is learnt from parts of the samples."""
    if n < _FEWEST_TO_RESAMPLE:
        raise ValueError(
            f"y_true must hold at least {_FEWEST_TO_RESAMPLE} samples of positive weight; found "
            f"{n}. So few samples say nothing about how the metric varies: collect more."
        )


def check_metric_values(values):
    """What a metric returned for several samples, (R, C)."""
    values = np.asarray(values)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"metric must return one number; found values of shape {values.shape[2:]} and type "
            f"{values.dtype}. With more than two classes choose an average; or wrap the metric in "
            "a function that returns a float."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "metric must be finite for every part of the samples; found "
            f"{np.sum(~np.isfinite(values))} of {values.size} value(s) that are not. If it fails "
            "where a class does not occur among the labels, let it take an argument `labels`, in "
            "which it gets the classes."
        )
    return values.astype(np.float64)
