"""The search for the column along which calibration differs most."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.utils import check_random_state

from .._inputs.arrays import as_array, check_same_length, column_names, is_number
from .._inputs.by import encode_column, title_of
from .._inputs.checks import check_predictions, rows_that_count
from .._inputs.constraints import METRIC_CONSTRAINTS, IntegerInterval
from .._inputs.groups import codes_by_appearance
from .._inputs.predictions import Predictions
from .._inputs.probabilities import check_no_forecast, is_forecast
from .._numerics.logits import log_odds
from .._redraw import draw_labels, seeded_batches
from .._sklearn import validate_params
from .._types import RandomState
from ..forecasts._either import with_groups
from ..metrics._clinical import logistic_line
from ._base import TIE
from ._subgroups import standardised

# Columns of more distinct numbers are divided into ranges.
_MOST_NUMBERS = 10

# What is left of a variance by less than this share is rounding.
_ROUNDING = 1e-9


class Candidate(NamedTuple):
    column: Any
    subgroup: str
    rows: np.ndarray


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
        For each column the same, for its most conspicuous subgroup; the smallest one first.

    column : list
        The column of each subgroup; the most conspicuous subgroup is the first.

    subgroup : list of str
        Which values the subgroup has, such as "female" or "> 3.2".

    n_samples : ndarray of shape (n_subgroups,)
        Number of samples of positive weight.

    predicted : ndarray of shape (n_subgroups,)
        The mean prediction: for more than two classes, the mean confidence.

    observed : ndarray of shape (n_subgroups,)
        The frequency of the positive class: for more than two classes, the accuracy.

    p_values : ndarray of shape (n_subgroups,)
        P-value of each subgroup, which account for the search.

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

    def to_frame(self) -> Any:
        """Return the table as a data frame of pandas, which must be installed.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_subgroups, 6)
            A row for each subgroup, the most conspicuous one first.
        """
        import pandas as pd

        names = ("column", "subgroup", "n_samples", "predicted", "observed", "p_values")
        values = {name: getattr(self, name) for name in names}
        return pd.DataFrame(values).rename(columns={"p_values": "p_value"})

    def __repr__(self) -> str:
        rows = [
            (str(column), subgroup, f"{n:d}", *(f"{value:.3f}" for value in numbers))
            for column, subgroup, n, *numbers in zip(
                self.column[:10],
                self.subgroup,
                self.n_samples,
                self.predicted,
                self.observed,
                self.p_values,
                strict=False,
            )
        ]
        table = [("column", "subgroup", "samples", "predicted", "observed", "p-value"), *rows]
        width = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(
                text.ljust(size) if k < 2 else text.rjust(size)
                for k, (text, size) in enumerate(zip(row, width, strict=True))
            )
            for row in table
        ]
        return "\n".join(lines)


@validate_params(
    METRIC_CONSTRAINTS
    | {
        "X": "no_validation",
        "groups": "no_validation",
        "recalibrate": ["boolean"],
        "n_bins": [IntegerInterval(2)],
        "min_samples": [IntegerInterval(1)],
        "n_resamples": [IntegerInterval(1)],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def find_miscalibrated_subgroups(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    X: Any,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    recalibrate: bool = True,
    n_bins: int = 4,
    min_samples: int = 20,
    n_resamples: int = 999,
    random_state: RandomState = None,
) -> SubgroupSearch:
    r"""Find the column along which calibration differs most, and the subgroups that stand out.

    Every category and every range of every column is a candidate. Among many, some stand out by
    chance; so the same is done with labels drawn from the predictions, and the p-values say how
    often the best of all candidates is as conspicuous there.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1. Of more than two classes,
        the calibration of the confidence is what is looked at.

    X : array-like of shape (n_samples, n_columns), dict of columns or data frame
        Columns to search, whether the model knows them or not: categories or numbers. Missing
        values are a subgroup of their own.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`.

    groups : array-like of shape (n_samples,), default=None
        Labels of groups, such as patients or sites, whose samples are not independent of each
        other: residuals of whole groups are then multiplied by random signs, in place of drawing
        labels.

    recalibrate : bool, default=True
        True: what all samples have in common does not count. Predictions that are everywhere too
        high or too sure are first corrected by an intercept and a slope of their log-odds, and
        labels are drawn from the corrected ones. False: labels are drawn from the predictions as
        they are. Then the p-values are exact, but also small if all subgroups are
        miscalibrated alike.

    n_bins : int, default=4
        Number of ranges with about as many samples each, into which columns of more than 10
        distinct numbers are divided.

    min_samples : int, default=20
        Candidates with fewer samples, or with all but fewer, are left out.

    n_resamples : int, default=999
        Number of vectors of labels that are drawn. The smallest possible p-value is then
        ``1 / (n_resamples + 1)``.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The result does not depend on the order of the samples, unless
        predictions are tied.

    Returns
    -------
    result : SubgroupSearch
        A table of all candidates, the most conspicuous one first, and p-values.

    See Also
    --------
    SubgroupCalibrationTest : Tests subgroups that are named beforehand.
    skcalib.uncertainty.confidence_intervals_by : How large the error of each subgroup is.

    Notes
    -----
    Candidates are the categories of each column; for numbers the ranges, and what lies on the
    smaller side of each of their limits.
    The statistic of a candidate is the score statistic of an intercept and a slope of its own, in a
    logistic regression on the log-odds of the predictions in which all samples have an intercept
    and a slope in common. It is made of the sums of the residuals :math:`w_i (y_i - p_i)` over
    the candidate, without and with the log-odds as a factor, minus what the common intercept and
    slope explain of them. Statistics are made comparable, and p-values are found, as in
    :class:`SubgroupCalibrationTest`, but without stepping down: a p-value is the share of the
    :math:`B + 1` vectors of labels whose most conspicuous candidate is at least as conspicuous.
    Candidates overlap, and columns are related. So a small p-value says that calibration
    differs, and where it shows, not why.

    With `recalibrate`, the p-values are those of a parametric bootstrap: they are right for many
    samples, as only two numbers are fitted.

    The cost is that of drawing :math:`n B` labels and adding them up in each column: about a second
    for 10 000 samples and 20 columns.

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
    check_no_forecast(is_forecast(y_proba), y_proba, "y_proba")
    data = check_predictions(y_true, y_proba, sample_weight=sample_weight, labels=labels)
    data = with_groups(data, y_true, groups, sample_weight)
    n = np.shape(y_true)[0]
    used = np.arange(n)[rows_that_count(sample_weight, n)]
    if not data.is_binary:
        data = replace(data.confidence(), groups=data.groups)
    order = data.canonical_order()
    data, used = data.take(order), used[order]
    candidates = [
        candidate
        for name, column in _columns(X, n).items()
        for candidate in _candidates(name, column, n, used, n_bins)
        if min_samples <= candidate.rows.sum() <= len(data.weight) - min_samples
    ]
    _check_some(candidates, min_samples)
    scores = CandidateScores(_recalibrated(data) if recalibrate else data, candidates)
    values = np.concatenate([scores.of_data(), scores.draw(n_resamples, random_state)])
    standard = np.column_stack([standardised(column) for column in values.T])
    largest = np.sort(standard.max(axis=1))
    best = np.argsort(-standard[0], kind="stable")
    above = len(largest) - np.searchsorted(largest, standard[0] * (1 - TIE))
    p_values = above / len(largest)
    return _result(data, [candidates[c] for c in best], p_values[best])


def _result(data: Predictions, candidates: list[Candidate], p_values: np.ndarray) -> SubgroupSearch:
    by_column: dict[Any, float] = {}
    for candidate, p_value in zip(candidates, p_values.tolist(), strict=True):
        by_column.setdefault(candidate.column, p_value)
    inside = np.stack([candidate.rows for candidate in candidates])
    weight = inside @ data.weight
    return SubgroupSearch(
        float(p_values[0]),
        by_column,
        [candidate.column for candidate in candidates],
        [candidate.subgroup for candidate in candidates],
        inside.sum(axis=1),
        inside @ (data.weight * data.proba) / weight,
        inside @ (data.weight * data.label) / weight,
        p_values,
    )


class CandidateScores:
    """The score statistics of all candidates as functions of the residuals."""

    def __init__(self, data: Predictions, candidates: list[Candidate]) -> None:
        self.data = data
        weight, proba = data.weight, data.proba
        spread = log_odds(proba)
        information = weight * proba * (1 - proba)
        if information.any():
            spread = spread - information @ spread / information.sum()
        features = np.stack([np.ones_like(spread), spread])  # (2, n)
        inside = csr_array(np.stack([candidate.rows for candidate in candidates]).astype(float))
        self.sums = [inside.multiply(one[None]).tocsr() for one in features]  # 2 of (C, n)
        self.features = features
        pairs = features[:, None] * features  # (2, 2, n)
        flat = pairs.reshape(4, -1)
        own = (inside @ (information * flat).T).reshape(-1, 2, 2)
        common = np.sum(information * pairs, axis=2)
        self.explained = own @ np.linalg.pinv(common, hermitian=True)  # (C, 2, 2)
        noise = weight * information
        own = (inside @ (noise * flat).T).reshape(-1, 2, 2)
        common = np.sum(noise * pairs, axis=2)
        cross = self.explained @ own
        variance = own - cross - np.swapaxes(cross, 1, 2)
        variance += self.explained @ common @ np.swapaxes(self.explained, 1, 2)
        level = variance[:, 0, 0]
        one_label = data.share_of_one_sample / len(weight)
        safe = np.where(level > _ROUNDING * own[:, 0, 0], level, np.inf)
        self.ratio = variance[:, 0, 1] / safe
        rest = variance[:, 1, 1] - self.ratio * variance[:, 0, 1]
        rest = np.where(rest > _ROUNDING * own[:, 1, 1], rest, np.inf)
        self.scale = np.stack([safe, rest]) * (1 + one_label / safe)
        # only impossible labels differ where nothing can vary, and one of them is enough
        farthest = np.abs(spread).max()
        self.scale[:, own[:, 0, 0] == 0] = one_label * np.array([[1.0], [farthest**2]])

    def __call__(self, residuals: np.ndarray) -> np.ndarray:
        """Values (R, C) for weighted residuals (R, n)."""
        total = self.features @ residuals.T  # (2, R)
        sums = np.stack([one @ residuals.T for one in self.sums])  # (2, C, R)
        sums -= np.einsum("cij,jr->icr", self.explained, total)
        sums[1] -= self.ratio[:, None] * sums[0]
        return np.sum(sums**2 / self.scale[:, :, None], axis=0).T

    def of_data(self) -> np.ndarray:
        return self(self.data.signed_mass[None])

    def draw(self, n_resamples: int, random_state: RandomState) -> np.ndarray:
        """Values (n_resamples, C) for drawn labels, or for drawn signs of groups."""
        data = self.data
        rng = check_random_state(random_state)
        values = []
        for size, seed in seeded_batches(n_resamples, len(data.weight), 1, rng):
            generator = np.random.default_rng(seed)
            if data.groups is None:
                residuals = draw_labels(data.proba, size, generator) - data.proba
                residuals *= data.weight
            else:
                code = codes_by_appearance(data.groups)
                signs = generator.choice([-1.0, 1.0], size=(size, int(code.max()) + 1))
                residuals = signs[:, code] * data.signed_mass
            values.append(self(residuals))
        return np.concatenate(values)


def _recalibrated(data: Predictions) -> Predictions:
    """The predictions with the likeliest intercept and slope of their log-odds."""
    intercept, slope = logistic_line(data)
    slope = 1.0 if np.isnan(slope) else slope
    if not np.isfinite(intercept) or not np.isfinite(slope):  # labels that can be separated
        return data
    return replace(data, proba=expit(intercept + slope * log_odds(data.proba)))


def _columns(X: Any, n: int) -> dict[Any, Any]:
    if isinstance(X, dict):
        return X
    names = column_names(X)
    if names:
        return {name: X[name] for name in names}
    table = as_array(X, "X")
    if table.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, with one column for each candidate; found shape "
            f"{table.shape}. Pass a single column as {{'name': column}}."
        )
    check_same_length({"y_true": n, "X": len(table)})
    return {f"x{k}": column for k, column in enumerate(table.T)}


def _candidates(name: Any, column: Any, n: int, used: Any, n_bins: int) -> Iterator[Candidate]:
    """The subgroups that a column makes, by masks (n,) of the samples that count."""
    labels, code = encode_column(column, n, f"X[{name!r}]", may_be_quantity=True)
    code = code[used]
    numbers = [label for label in labels if is_number(label)]
    if len(numbers) <= _MOST_NUMBERS or len(numbers) < len(labels) - (labels[-1] is None):
        for k, label in enumerate(labels):
            yield Candidate(name, title_of(label), code == k)
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


def _check_some(candidates: list[Candidate], min_samples: int) -> None:
    if not candidates:
        raise ValueError(
            f"X must have some subgroup of at least min_samples={min_samples} samples that leaves "
            "out as many; found none. Pass other columns, or a smaller min_samples."
        )
