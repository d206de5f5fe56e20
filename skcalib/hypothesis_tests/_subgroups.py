"""The test that all subgroups are calibrated at once."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from .._data import AnyData
from .._inputs.arrays import ArrayLike
from .._inputs.by import Columns, Subgroups, check_by
from .._inputs.scikit_learn import RandomState, fit_context
from .._statistics.base import TIE_RTOL, Statistic
from .._statistics.omnibus import compute_p_values
from ..metrics._registry import MetricNames, find_arguments
from ..metrics._statistic import STATISTICS, make_statistic
from . import _base
from ._calibration import check_depends_on_cells, check_takes_groups


@dataclass(eq=False, repr=False)
class SubgroupCalibrationTest(_base.HypothesisTest):
    r"""Test of the null hypothesis that the predictions are calibrated in every subgroup.

    The most conspicuous subgroup is compared with that of labels drawn from the predictions, so the
    p-value is exact for independent samples, whatever the number and sizes of subgroups.

    Parameters
    ----------
    statistic : str or callable, default="auto"
        What measures the miscalibration of each subgroup, as in :class:`CalibrationTest`: "auto" is
        "omnibus".

    metric_params : dict, default=None
        Further arguments of the statistic, such as `kernel` of "skce".

    n_resamples : int, default=999
        Number of draws; the smallest p-value is ``1 / (n_resamples + 1)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. None
        for forecasts.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws, for any `n_jobs`.

    n_jobs : int, default=None
        Number of jobs of joblib; see :obj:`joblib.parallel_backend`.

    verbose : int, default=0
        Above 0, progress is shown.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1]: the smallest one in `subgroup_p_values_`.

    subgroups_ : list
        The subgroups: values of the column, or tuples of several; None stands for a missing value.

    subgroup_p_values_ : dict of subgroup to float
        P-values adjusted for the number of subgroups [1]_.

    subgroup_statistics_ : dict of subgroup to float
        The statistic of each subgroup; of "omnibus", its combination.

    subgroup_sizes_ : dict of subgroup to int
        The number of samples of positive weight.

    statistic_ : float
        The largest standardised statistic (see the notes).

    null_distribution_ : ndarray of shape (n_resamples,)
        The same of each draw; with groups, of the draws with the largest p-value.

    classes_ : ndarray of shape (n_classes,)
        The classes. Not for forecasts.

    n_features_in_ : int
        Number of columns of `X` (1 for forecasts).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationTest : The test of all samples together.
    find_miscalibrated_subgroups : Searches for subgroups.
    skcalib.uncertainty.confidence_interval : With `by`, their errors.
    skcalib.recalibration.SubgroupRecalibrator : Fixes it.

    Notes
    -----
    **Standardisation.** Errors of small subgroups are large by chance alone, so each subgroup's
    values of the data and of the B draws are ranked first. With k the number of the B + 1 values
    that are at least as large, and t the standardised value, the value is replaced by

    .. math:: \frac{B + 1}{k - s}, \quad s = \frac12 \Bigl(1 + \frac{t}{1 + |t|}\Bigr),

    but :math:`(B + 1) \max(t, 1)` if no other value is as large: about the reciprocal of the
    subgroup's own p-value. The largest one is `statistic_`, for the data and for every draw.

    **Which subgroups.** The adjusted p-values are those of the step-down procedure of [1]_. Their
    error rate holds exactly at every number of samples.

    **Groups.** With `groups`, each p-value is the largest of those that :class:`CalibrationTest`
    explains. They hold in the limit of many groups with events.

    Cost: about that of a :class:`CalibrationTest`. A subgroup of certain predictions has the
    p-value 1.

    References
    ----------
    .. [1] Westfall and Young (1993). Resampling-Based Multiple Testing. Wiley.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import SubgroupCalibrationTest
    >>> rng = np.random.default_rng(1)
    >>> proba = rng.random(1000)
    >>> sex = rng.choice(["female", "male"], size=1000)
    >>> y = rng.random(1000) < np.where(sex == "male", proba**1.5, proba)
    >>> test = SubgroupCalibrationTest(random_state=0).fit(proba, y, by=sex)
    >>> test.p_value_
    0.001
    >>> test.subgroup_p_values_
    {'female': 0.79..., 'male': 0.001}
    """

    _parameter_constraints = {"statistic": [MetricNames("statistic", STATISTICS), callable]}

    statistic: str | Callable = "auto"
    _: KW_ONLY
    metric_params: dict | None = None
    n_resamples: int = 999
    labels: ArrayLike | None = None
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    @fit_context(prefer_skip_nested_validation=False)  # the metric judges its `metric_params`
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        by: Columns,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Find the null distribution and compute the p-values.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predicted probabilities; one-dimensional ones are of the last class. Or a forecast of
            a number, as :func:`skcalib.forecasts.as_forecast` takes it.

        y : array-like of shape (n_samples,)
            Labels, or outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample: a column, or several, which make their crossings. Rows
            count by their position. Missing values are a subgroup of their own; continuous numbers
            are refused.

        groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
            Labels of groups, such as patients or sites, whose samples are not independent of each
            other (see the notes); two columns are crossed groups, such as patients and readers.

        Returns
        -------
        self : object
            The fitted test.
        """
        multi_class = find_arguments(self.statistic, self.metric_params).get("multi_class")
        data = _base.check_test_input(self, X, y, sample_weight, groups, multi_class=multi_class)
        subgroups = check_by(by, np.shape(y)[0], sample_weight)
        as_matrix, weighted = self.n_features_in_ > 1, sample_weight is not None
        return self._fit(data, subgroups, as_matrix=as_matrix, weighted=weighted)

    def _fit(
        self, data: AnyData, subgroups: Subgroups, *, as_matrix: bool = False, weighted: bool = True
    ) -> Self:
        """Fit to checked data; the options say what a metric that is not ours gets."""
        call_options: Any = {"as_matrix": as_matrix, "weighted": weighted}
        call_options |= {"n_resamples": self.n_resamples, "random_state": self.random_state}
        order = np.argsort(subgroups.code, kind="stable")
        data, code = data.take(order), subgroups.code[order]
        rows_of_subgroups = [
            slice(*np.searchsorted(code, [k, k + 1])) for k in range(len(subgroups.labels))
        ]
        statistics = [
            self._statistic(data.take(rows), title, call_options)
            for rows, title in zip(rows_of_subgroups, subgroups.phrases, strict=True)
        ]
        statistic = SubgroupStatistic(data, statistics, rows_of_subgroups)
        order = data.canonical_order()
        order = order[np.argsort(code[order], kind="stable")]
        value = statistic(data.outcome[None])
        compared = _base.compute_null_values(self, statistic, value, order)
        judged = [_make_result(subgroups, statistic, values) for values in compared]
        result = _base.select_largest_p_value(judged)
        self.__dict__.update(result, subgroups_=list(subgroups.labels))
        self.p_value_ = min(self.subgroup_p_values_.values())
        return self

    def _statistic(self, data: AnyData, title: str, call_options: Any) -> Any:
        """The statistic of one subgroup."""
        try:
            params = self.metric_params or {}
            statistic = make_statistic(self.statistic, data, params, **call_options)
        except ValueError as error:
            raise ValueError(
                f"{error} (In {title}; metric_params holds options of the statistic)"
            ) from error
        if data.groups is not None:
            check_takes_groups(self, statistic)
        if data.is_forecast:
            check_depends_on_cells(self, statistic)
        return statistic


def _make_result(
    subgroups: Subgroups, statistic: "SubgroupStatistic", values: np.ndarray
) -> dict[str, Any]:
    """The fitted attributes, from the values (B + 1, C) of the data and of the draws."""
    columns = statistic.split_columns(values)
    sides_and_ties = ((each.is_two_sided, each.tie_tolerance) for each in statistic.statistics)
    pairs = zip(columns, sides_and_ties, strict=True)
    standard = np.column_stack([standardize(column, *options) for column, options in pairs])
    largest = standard.max(axis=1)
    adjusted = step_down_p_values(standard)
    by_subgroup = {
        "subgroup_p_values_": adjusted.tolist(),
        "subgroup_statistics_": [float(column[0]) for column in columns],
        "subgroup_sizes_": np.bincount(subgroups.code).tolist(),
    }
    return {
        "p_value_": float(adjusted.min()),
        "statistic_": float(largest[0]),
        "null_distribution_": largest[1:],
    } | {
        name: dict(zip(subgroups.labels, numbers, strict=True))
        for name, numbers in by_subgroup.items()
    }


class SubgroupStatistic(Statistic):
    """The statistics of all subgroups side by side, for samples that are sorted by subgroup."""

    def __init__(self, data: AnyData, statistics: Any, rows_of_subgroups: Any) -> None:
        self.data = data
        self.statistics = statistics
        self.rows_of_subgroups = rows_of_subgroups  # slices of the samples
        self.supports = frozenset.intersection(*(s.supports for s in statistics)) & {"any-order"}
        self.n_columns = sum(statistic.n_columns for statistic in statistics)
        self.min_batches = max(statistic.min_batches for statistic in statistics)

    @property
    def numbers_per_draw(self) -> int:
        return sum(statistic.numbers_per_draw for statistic in self.statistics)

    def with_data(self, data: AnyData) -> "SubgroupStatistic":
        """Return the same statistics of other data, which are sorted by subgroup as well."""
        pairs = zip(self.statistics, self.rows_of_subgroups, strict=True)
        statistics = [statistic.with_data(data.take(rows)) for statistic, rows in pairs]
        return SubgroupStatistic(data, statistics, self.rows_of_subgroups)

    def __call__(self, outcomes: np.ndarray) -> np.ndarray:
        return self._side_by_side(lambda statistic, rows: statistic(outcomes[:, rows]))

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        return self._side_by_side(lambda statistic, rows: statistic.flip_signs(signs[:, rows]))

    def _side_by_side(self, evaluate: Callable) -> np.ndarray:
        """Values (R, C), where the omnibus of a subgroup has several columns."""
        pairs = zip(self.statistics, self.rows_of_subgroups, strict=True)
        return np.column_stack([evaluate(statistic, rows) for statistic, rows in pairs])

    def split_columns(self, values: np.ndarray) -> list[Any]:
        """One column of B + 1 values for each subgroup, of those side by side."""
        columns, first = [], 0
        for statistic in self.statistics:
            subgroup_values = values[:, first : first + statistic.n_columns]
            subgroup_values = subgroup_values if statistic.n_columns > 1 else subgroup_values[:, 0]
            columns.append(statistic.combine_components(subgroup_values[:1], subgroup_values)[0])
            first += statistic.n_columns
        return columns


def standardize(
    values: np.ndarray, is_two_sided: bool = False, tie_tolerance: float = 0.0
) -> np.ndarray:
    """Values (B + 1,) of one statistic, on a scale on which different statistics can be compared.

    About the reciprocals of their p-values among themselves; what they add decides between equal
    ranks. The order of the values does not matter, which makes tests exact.
    """
    values = _base.clip_infinite(values)
    _base.monte_carlo_p_value(values)  # refuses what is not a number
    n = len(values)
    rank = np.rint(n * compute_p_values(values, is_two_sided, tie_tolerance)[0])
    distance = values - np.mean(values)
    if is_two_sided:
        distance = np.abs(distance)
    index = n - 1 - max(1, n // 100)  # of the largest hundredth
    usual = np.sort(distance)[[max(index - 1, 0), index]].mean()
    rounding = TIE_RTOL * np.abs(values).max()  # of values that are all equal
    distance = distance / (usual if usual > rounding else 1.0)
    is_beyond_all = rank <= (2 if is_two_sided else 1)
    share = np.where(is_beyond_all, 0.0, (1 + distance / (1 + np.abs(distance))) / 2)
    return n * np.where(is_beyond_all, np.maximum(distance, 1.0), 1.0) / (rank - share)


def step_down_p_values(standard: np.ndarray) -> np.ndarray:
    """P-values (S,) of the first of the rows (B + 1, S), adjusted (Westfall and Young 1993).

    From the largest one on, each is compared with the largest of itself and all smaller ones.
    """
    order = np.argsort(-standard[0], kind="stable")
    largest = np.maximum.accumulate(standard[:, order[::-1]], axis=1)[:, ::-1]
    share = np.mean(largest >= standard[0, order] * (1 - TIE_RTOL), axis=0)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(share)
    return adjusted
