"""The search for the column along which calibration differs most."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from .._data import ForecastData, MultilabelData, check_data
from .._inputs import arrays
from .._inputs.annotations import DataFrame
from .._inputs.arrays import ArrayLike
from .._inputs.by import encode_column, format_columns, format_label
from .._inputs.checks import positive_weight_rows
from .._inputs.scikit_learn import Count, IntegerInterval, RandomState, validate_params
from .._inputs.warnings import check_memory
from .._statistics.base import TIE_RTOL
from ..lenses import Lens, _get_lens
from ._base import compute_null_values
from ._search_scores import Candidate, ClassSearch, ForecastSearch
from ._subgroups import SubgroupCalibrationTest, standardize
from ._weights import warn_of_weights

# Columns of more distinct numbers are divided into ranges.
_MAX_DISTINCT_NUMBERS = 10


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupSearch:
    """Subgroups by how much their calibration differs: see :func:`find_miscalibrated_subgroups`.

    Printed, it is a table of the first ten.

    Parameters
    ----------
    p_value : float
        P-value of the hypothesis that calibration differs along no column, which accounts for the
        search.

    column_p_values : dict of str to float
        For each column the same, for its most conspicuous subgroup; the smallest one first. With
        `crossings`, for each pair of columns as well.

    column : list
        The column of each subgroup, or a pair of columns; the most conspicuous subgroup is the
        first.

    subgroup : list of str
        Which values the subgroup has, such as "female", "> 3.2" or, of a pair, "female, > 3.2".

    n_samples : ndarray of shape (n_subgroups,)
        Number of samples of positive weight.

    predicted : ndarray of shape (n_subgroups,)
        The mean prediction: for more than two classes, the mean confidence, or the mean probability
        of the class or problem. For forecasts the mean of their means, NaN if they have none.

    observed : ndarray of shape (n_subgroups,)
        The frequency of the positive class: for more than two classes, the accuracy, or the
        frequency of the class. For forecasts the mean outcome.

    p_values : ndarray of shape (n_subgroups,)
        P-value of each subgroup, which account for the search.

    label : list, default=None
        The class of each row with ``multi_class="classwise"``, or the problem of a lens; a subgroup
        has a row for each.

    coverage : ndarray of shape (n_subgroups,), default=None
        For forecasts, the share of the outcomes in their central 80 % intervals, by their PIT.

    See Also
    --------
    find_miscalibrated_subgroups : The function that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import find_miscalibrated_subgroups
    >>> rng = np.random.default_rng(0)
    >>> X, proba = rng.random((500, 3)), rng.random(500)
    >>> y = rng.random(500) < proba
    >>> result = find_miscalibrated_subgroups(y, proba, X, random_state=0)
    >>> result.p_value > 0.05, len(result.subgroup)
    (True, 15)
    """

    p_value: float
    column_p_values: dict[Any, float]
    column: list[Any]
    subgroup: list[str]
    n_samples: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray
    p_values: np.ndarray
    label: list[Any] | None = None
    coverage: np.ndarray | None = None

    def to_frame(self) -> DataFrame:
        """Return the table as a data frame of pandas, which must be installed.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_subgroups, n_columns)
            A row for each subgroup, the most conspicuous one first: `column`, `subgroup`,
            `n_samples`, `predicted`, `observed` and `p_value`, and `label` or `coverage` if known.
        """
        pd = arrays.import_package("pandas", "to_frame()", "pandas")
        return pd.DataFrame(self._table()).rename(columns={"p_values": "p_value"})

    def _table(self) -> dict[str, Any]:
        names = ("column", "subgroup", "label", "n_samples", "predicted", "observed", "coverage")
        values = {name: getattr(self, name) for name in (*names, "p_values")}
        return {name: value for name, value in values.items() if value is not None}

    def __repr__(self) -> str:
        table = []
        for name, values in self._table().items():
            title = {"n_samples": "samples", "p_values": "p-value"}.get(name, name)
            table.append([title, *(_format_cell(value) for value in values[:10])])
        rows = list(zip(*table, strict=True))
        return "\n".join(format_columns(rows, n_texts=2 if self.label is None else 3))


def _format_cell(value: object) -> str:
    if isinstance(value, tuple):
        return format_label(value)
    return f"{value:.3f}" if isinstance(value, float) else str(value)


@validate_params({"n_bins": [Count(2)], "min_samples": [IntegerInterval(1)]})
def find_miscalibrated_subgroups(
    y_true: ArrayLike,
    y_pred: object,
    X: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    multi_class: Literal["confidence", "classwise"] | Lens = "confidence",
    recalibrate: bool = True,
    crossings: bool = False,
    n_bins: int = 4,
    min_samples: int = 20,
    n_resamples: int = 999,
    random_state: RandomState = None,
) -> SubgroupSearch:
    r"""Find the column along which calibration differs most, and the subgroups that stand out.

    The p-values account for the number of candidates, by labels drawn from the predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities of the positive class, or of all classes (rows sum to 1). Or a forecast of a
        number, as :func:`skcalib.forecasts.as_forecast` takes it.

    X : array-like of shape (n_samples, n_columns), dict of columns or data frame
        Columns to search, whether the model knows them or not: categories or numbers. Missing
        values are a subgroup of their own.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take all
        arrays at ``np.repeat(np.arange(n), counts)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_pred`. By default the sorted labels in
        `y_true`. None for forecasts.

    groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Groups of samples that are not independent, such as patients or sites, as in
        :class:`CalibrationTest`.

    multi_class : {"confidence", "classwise"} or Lens, default="confidence"
        More than two classes: the confidence and whether it was right, each class against the rest,
        or a lens of :mod:`skcalib.lenses` but :class:`~skcalib.lenses.Multilabel`.

    recalibrate : bool, default=True
        True: predictions are first corrected by a
        :class:`skcalib.recalibration.SplineRecalibrator`, so an error that all columns share does
        not count. False: they are not; the p-values are exact, but also small if all subgroups are
        miscalibrated alike.

    crossings : bool, default=False
        Also search crossings of two columns, such as women above 70. Errors of single columns are
        then found less often.

    n_bins : int, default=4
        Number of ranges of equal mass of columns with more than 10 distinct numbers.

    min_samples : int, default=20
        Candidates with fewer samples, or with all but fewer, are left out.

    n_resamples : int, default=999
        Number of draws; the smallest p-value is ``1 / (n_resamples + 1)``.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The order of the samples matters only for tied predictions.

    Returns
    -------
    result : SubgroupSearch
        A table of all candidates, the most conspicuous one first, and p-values.

    See Also
    --------
    SubgroupCalibrationTest : Tests subgroups that are named beforehand.
    skcalib.uncertainty.confidence_interval : With `by`, their errors.

    Notes
    -----
    Candidates are the categories of each column; for numbers the ranges, and what lies on the
    smaller side of each of their limits. The statistic of a candidate is the score statistic of an
    intercept and a slope of its own in a logistic regression on the log-odds of the predictions. A
    p-value is the share of the :math:`B + 1` vectors of labels whose most conspicuous candidate is
    at least as conspicuous. With `recalibrate`, the p-values are those of a parametric bootstrap:
    right for many samples if the common error is a smooth curve.

    **Forecasts.** The statistic of a candidate adds up the level and the spread of the probability
    integral transforms (PITs), by Neyman's smooth test [1]_. With `recalibrate`, PITs are replaced
    by their ranks, which are permuted; this is exact if the PITs are independent with the same
    distribution. Discrete forecasts get randomised PITs.

    The cost is that of drawing :math:`n B` labels and adding them up in each column.

    References
    ----------
    .. [1] Neyman (1937). "Smooth test" for goodness of fit. Skandinavisk Aktuarietidskrift 20.
       :doi:`10.1080/03461238.1937.10404821`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import find_miscalibrated_subgroups
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(2000)
    >>> X = {"age": rng.uniform(18, 90, 2000), "site": rng.choice(["north", "south"], 2000)}
    >>> y = rng.random(2000) < np.where(X["age"] > 70, proba**1.5, proba)
    >>> result = find_miscalibrated_subgroups(y, proba, X, random_state=0)
    >>> result.p_value, result.column[0], result.subgroup[0]
    (0.001, 'age', '> 7...')
    """
    data = check_data(
        y_true, y_pred, sample_weight, labels=labels, groups=groups, multi_class=multi_class
    )
    if isinstance(data, MultilabelData):
        raise ValueError(
            "multi_class must be a lens of classes that exclude each other, as labels are drawn "
            f"from the predictions; found {multi_class!r}. Search each label by itself: pass "
            "y_true[:, k] and y_pred[:, k]."
        )
    warn_of_weights(data, sample_weight)
    n = np.shape(y_true)[0]
    used = np.arange(n)[positive_weight_rows(sample_weight, n)]
    if not isinstance(data, ForecastData) and not data.is_binary and multi_class == "confidence":
        data = data.confidence()
    order = data.canonical_order()
    data, used = data.take(order), used[order]
    candidates = [
        candidate
        for name, column in _columns(X, n).items()
        for candidate in _candidates(name, column, n, used, n_bins)
        if min_samples <= candidate.rows.sum() <= len(data.weight) - min_samples
    ]
    if crossings:
        candidates += _cross_columns(candidates, min_samples)
    if not candidates:
        raise ValueError(
            f"X must have some subgroup of at least min_samples={min_samples} samples that leaves "
            "out as many; found none. Pass other columns, or a smaller min_samples."
        )
    rng = check_random_state(random_state)
    search: ClassSearch | ForecastSearch
    if isinstance(data, ForecastData):
        search = ForecastSearch(data, candidates, recalibrate=recalibrate, random_state=rng)
    else:
        search = ClassSearch(data, candidates, _get_lens(multi_class), recalibrate=recalibrate)
    observed = search.flip_signs(np.ones((1, len(order))))
    settings = SubgroupCalibrationTest(n_resamples=n_resamples, random_state=rng)
    return _result(search, compute_null_values(settings, search, observed, np.arange(len(order))))


def _result(search: ClassSearch | ForecastSearch, compared: list[np.ndarray]) -> SubgroupSearch:
    """The candidates by their values (B + 1, C), all of them for each class.

    Of several such arrays, the largest p-value and the smallest value count.
    """
    standard = [_standardize_candidates(values) for values in compared]
    value, p_values = np.transpose(standard, (1, 0, 2))
    value, p_values = value.min(axis=0), p_values.max(axis=0)
    best = np.lexsort((-value, p_values))
    p_values = p_values[best]
    candidates = [search.candidates[c % len(search.candidates)] for c in best]
    by_column: dict[Any, float] = {}
    for candidate, p_value in zip(candidates, p_values.tolist(), strict=True):
        by_column.setdefault(candidate.column, p_value)
    numbers: dict[str, Any] = {
        name: [values[c] for c in best] if isinstance(values, list) else values[best]
        for name, values in search.numbers().items()
    }
    return SubgroupSearch(
        float(p_values[0]),
        by_column,
        [candidate.column for candidate in candidates],
        [candidate.subgroup for candidate in candidates],
        np.array([candidate.rows.sum() for candidate in candidates]),
        p_values=p_values,
        **numbers,
    )


def _standardize_candidates(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised values of all candidates, (C,), and their p-values."""
    standard = np.column_stack([standardize(column) for column in values.T])
    largest = np.sort(standard.max(axis=1))
    above = len(largest) - np.searchsorted(largest, standard[0] * (1 - TIE_RTOL))
    return standard[0], above / len(largest)


def _columns(X: Any, n: int) -> dict[Any, Any]:
    if isinstance(X, dict):
        return X
    names = arrays.column_names(X)
    if names:
        return {name: X[name] for name in names}
    table = arrays.as_array(X, "X")
    if table.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, with one column for each candidate; found shape "
            f"{table.shape}. Pass a single column as {{'name': column}}."
        )
    arrays.check_same_length({"y_true": n, "X": len(table)})
    return {f"x{k}": column for k, column in enumerate(table.T)}


def _candidates(name: Any, column: object, n: int, used: Any, n_bins: int) -> Iterator[Candidate]:
    """The subgroups that a column makes, by masks (n,) of the samples that count."""
    labels, code = encode_column(column, n, f"X[{name!r}]", may_be_quantity=True)
    code = code[used]
    numbers = [label for label in labels if arrays.is_number(label)]
    if len(numbers) <= _MAX_DISTINCT_NUMBERS or len(numbers) < len(labels) - (labels[-1] is None):
        for k, label in enumerate(labels):
            yield Candidate(name, format_label(label), code == k)
        return
    value = np.array([np.nan if label is None else label for label in labels], dtype=float)[code]
    missing = np.isnan(value)
    if missing.any():
        yield Candidate(name, "missing", missing)
    levels = np.arange(1, n_bins) / n_bins
    ends = np.unique(np.quantile(value[~missing], levels, method="inverted_cdf"))
    for end in ends:  # the smaller side of each limit, as the other one has the same statistic
        below, above = value <= end, value > end
        if below.sum() <= above.sum():
            yield Candidate(name, f"<= {end:.4g}", below)
        else:
            yield Candidate(name, f"> {end:.4g}", above)
    for low, high in itertools.pairwise(ends):
        inside = (value > low) & (value <= high)
        yield Candidate(name, f"{low:.4g} to {high:.4g}", inside)


def _cross_columns(candidates: list[Candidate], min_samples: int) -> list[Candidate]:
    """Intersections of candidates of two columns that are less than each of them."""
    pairs = [
        (first, second)
        for first, second in itertools.combinations(candidates, 2)
        if first.column != second.column
    ]
    n_bytes = float(sum(first.rows.nbytes for first, _ in pairs))
    check_memory(n_bytes, "crossings=True", "Pass fewer columns, or a part of the samples.")
    crossed = []
    for first, second in pairs:
        rows = first.rows & second.rows
        if min_samples <= rows.sum() < min(first.rows.sum(), second.rows.sum()):
            columns = (first.column, second.column)
            crossed.append(Candidate(columns, f"{first.subgroup}, {second.subgroup}", rows))
    return crossed
