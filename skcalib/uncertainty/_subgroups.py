"""A metric of each subgroup, with intervals."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.by import check_by, title_of
from .._inputs.scikit_learn import validate_params
from .._inputs.types import RandomState
from ._confidence_interval import (
    INTERVAL_CONSTRAINTS,
    ConfidenceInterval,
    check_independent,
    interval_of,
)
from ._resampling import Estimates, check_metric_values, check_models, has_several_columns


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupIntervals(Mapping):
    """A metric of each subgroup with its interval: what :func:`confidence_intervals_by` returns.

    Printed, it is a table. It is also a mapping from subgroups to :class:`ConfidenceInterval`
    objects, such as ``result["female"]`` or ``result["female", "18-30"]``.

    Parameters
    ----------
    names : tuple
        Names of the columns that make the subgroups.

    subgroups : tuple
        The subgroups in their order: values of the column, or tuples of one value for each of
        several columns; None stands for a missing value.

    n_samples : ndarray of shape (n_subgroups,)
        Number of samples of positive weight.

    share : ndarray of shape (n_subgroups,)
        Share of the total weight, in (0, 1].

    estimate : ndarray of shape (n_subgroups,)
        The metric of each subgroup; NaN where it cannot be computed.

    low : ndarray of shape (n_subgroups,)
        Lower ends of the intervals; NaN where there is none.

    high : ndarray of shape (n_subgroups,)
        Upper ends of the intervals; NaN where there is none.

    notes : tuple of str
        Why there is no interval; empty where there is one.

    whole : ConfidenceInterval
        The metric of all samples together.

    confidence_level : float
        The probability with which each interval is meant to cover its own value.

    See Also
    --------
    confidence_intervals_by : The function that returns it.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import confidence_intervals_by
    >>> y_true, y_proba = make_temperature_family(300, random_state=0)
    >>> site = ["north", "north", "south"] * 100
    >>> result = confidence_intervals_by(
    ...     "smooth_calibration_error", y_true, y_proba, by=site, n_resamples=99, random_state=0
    ... )
    >>> list(result), result.n_samples.tolist()
    (['north', 'south'], [200, 100])
    """

    names: tuple[Any, ...]
    subgroups: tuple[Any, ...]
    n_samples: np.ndarray
    share: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    notes: tuple[str, ...]
    whole: ConfidenceInterval
    confidence_level: float

    def __getitem__(self, subgroup: Any) -> ConfidenceInterval:
        try:
            k = self.subgroups.index(subgroup)
        except ValueError:
            raise KeyError(subgroup) from None
        estimate, low, high = (float(ends[k]) for ends in (self.estimate, self.low, self.high))
        return ConfidenceInterval(estimate, low, high, self.confidence_level)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.subgroups)

    def __len__(self) -> int:
        return len(self.subgroups)

    def to_frame(self) -> Any:
        """Return the table as a data frame of pandas, which must be installed.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_subgroups, 6)
            A row for each subgroup, which is its label, and the columns `n_samples`, `share`,
            `estimate`, `low`, `high` and `note`.
        """
        import pandas as pd

        names = list(self.names)
        if len(names) == 1:
            index = pd.Index(self.subgroups, name=names[0], dtype=None)
        else:
            index = pd.MultiIndex.from_tuples(self.subgroups, names=names)
        columns = ("n_samples", "share", "estimate", "low", "high")
        values: dict[str, Any] = {name: getattr(self, name) for name in columns}
        return pd.DataFrame(values | {"note": list(self.notes)}, index=index)

    def __repr__(self) -> str:
        head = ", ".join(map(str, self.names))
        titles = [title_of(label) for label in self.subgroups]
        width = max(len(title) for title in [head, "all", *titles])
        lines = [
            f"{head:{width}} {'samples':>8} {'share':>6} {'estimate':>9} {'low':>9} {'high':>9}"
        ]
        ends = np.column_stack([self.estimate, self.low, self.high])
        whole = (self.whole.estimate, self.whole.low, self.whole.high)
        rows = [*zip(titles, self.n_samples, self.share, ends, self.notes, strict=True)]
        for title, n, share, numbers, note in [*rows, ("all", self.n_samples.sum(), 1, whole, "")]:
            written = " ".join(f"{number:9.4g}" for number in numbers)
            lines.append(f"{title:{width}} {n:8d} {share:6.3f} {written}  {note}".rstrip())
        return "\n".join(lines)


@validate_params(
    INTERVAL_CONSTRAINTS | {"by": "no_validation"}, prefer_skip_nested_validation=False
)
def confidence_intervals_by(
    metric: str | Callable,
    y_true: ArrayLike,
    y_proba: Any,
    *,
    by: Any,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    given: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    metric_params: dict | None = None,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    method: str = "auto",
    n_resamples: int = 999,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> SubgroupIntervals:
    """Confidence intervals for a metric of calibration, one for each subgroup.

    Small subgroups look worse than they are, as the estimates of most calibration errors are biased
    upwards. So compare intervals rather than estimates; and whether any subgroup is
    miscalibrated at all, a :class:`~skcalib.hypothesis_tests.SubgroupCalibrationTest` tells.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of :mod:`skcalib.metrics`, or a callable ``metric(y_true, y_proba,
        **metric_params) -> float``. It gets `sample_weight` if weights are given, and the classes
        if it takes an argument `labels`.

    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1. Or a forecast of a number,
        as :func:`skcalib.forecasts.as_forecast` takes it.

    by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
        The subgroup of each sample: a column, or several, which make their crossings. Rows count by
        their position. Missing values are a subgroup of their own; continuous numbers are refused.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied. None for forecasts.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What calibration of forecasts is conditioned on, for a metric that has an argument of this
        name: groups, or features.

    groups : array-like of shape (n_samples,), default=None
        Labels of groups of samples that are not independent of each other, such as the rows of one
        patient: whole groups are drawn and left out. At least 10 in a subgroup.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which each interval is to cover its own value. For all S of them at once,
        pass :math:`1 - 0.05 / S`.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        Which ends the intervals have, as in :func:`confidence_interval`.

    method : {"auto", "resampling", "jackknife", "finite-sample"}, default="auto"
        How the intervals are found, as in :func:`confidence_interval`.

    n_resamples : int, default=999
        Number of subsamples of "resampling", for each subgroup.

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. The result does not depend on `n_jobs`.

    n_jobs : int, default=None
        Number of jobs among which joblib spreads the resamples; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    Returns
    -------
    result : SubgroupIntervals
        A table, and a mapping from subgroups to their intervals. A subgroup with less than 10
        samples, or groups, has NaN as ends, and a note that says so.

    See Also
    --------
    confidence_interval : The interval of all samples together.
    skcalib.hypothesis_tests.SubgroupCalibrationTest : Whether all subgroups are calibrated.
    skcalib.recalibration.SubgroupRecalibrator : Recalibrates each subgroup.

    Notes
    -----
    With an integer as `random_state`, the interval of a subgroup is that of
    :func:`confidence_interval` for its samples. What a metric takes from the data, such as a
    bandwidth, it takes from each subgroup anew.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.uncertainty import confidence_intervals_by
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(1000)
    >>> age = rng.choice(["18-30", "31-65", "over 65"], size=1000, p=[0.395, 0.6, 0.005])
    >>> y = rng.random(1000) < np.where(age == "18-30", proba**2, proba)
    >>> by = {"age": age}  # or a column of a data frame
    >>> confidence_intervals_by(
    ...     "smooth_calibration_error", y, proba, by=by, n_resamples=99, random_state=0
    ... )
    age      samples  share  estimate       low      high
    18-30        435  0.435    0.165...  0.10...  0.22...
    31-65        560  0.560    0.0044...       0  0.02...
    over 65        5  0.005    0.420...      nan      nan  y_true must hold at least 10 samples ...
    all         1000  1.000    0.070...  0.03...  0.09...
    """
    data = check_models({"y_proba": y_proba}, y_true, sample_weight, labels, given, groups)[0]
    subgroups = check_by(by, np.shape(y_true)[0], sample_weight)
    if method == "finite-sample":
        check_independent(sample_weight, groups)

    def estimates_of(part: Any) -> Estimates:
        return Estimates(
            metric,
            [part],
            metric_params,
            as_matrix=[has_several_columns(y_proba)],
            weighted=sample_weight is not None,
        )

    def interval(estimates: Estimates) -> ConfidenceInterval:
        return interval_of(
            estimates,
            metric,
            metric_params,
            confidence_level=confidence_level,
            alternative=alternative,
            method=method,
            n_resamples=n_resamples,
            random_state=random_state,
            n_jobs=n_jobs,
        )

    whole = interval(estimates_of(data))  # so what fails below is due to the subgroup
    found, notes = [], []
    for rows in subgroups.rows():
        estimate, low, high, note = np.nan, np.nan, np.nan, ""
        try:
            estimates = estimates_of(data.take(rows))
            estimate = float(check_metric_values([estimates.of_data()])[0, 0])
            one = interval(estimates)
            low, high = one.low, one.high
        except ValueError as error:
            note = _reason(str(error))
        found.append((estimate, low, high))
        notes.append(note)
    estimate, low, high = np.array(found).T
    return SubgroupIntervals(
        subgroups.names,
        subgroups.labels,
        np.bincount(subgroups.code),
        np.bincount(subgroups.code, data.weight),
        estimate,
        low,
        high,
        tuple(notes),
        whole,
        confidence_level,
    )


def _reason(message: str) -> str:
    """What an error says, without the remedy."""
    return message.partition(". ")[0]
