"""The test of the default rates of a rating, grade by grade."""

import sys
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._data import ClassData, with_groups
from .._inputs.arrays import ArrayLike, check_same_length
from .._inputs.by import format_bounded, format_columns, read_categories
from .._inputs.drawing import estimate_group_dependence, make_batches
from .._inputs.labels import encode_labels
from .._inputs.scikit_learn import Interval, RandomState, fit_context
from .._numerics.sorting import codes_by_appearance
from .._numerics.vasicek import default_rate_limits, log_tail, sum_tails
from ..uncertainty._default_rates import check_correlation
from ._base import HypothesisTest, check_class_input, draw_signs, monte_carlo_p_value, select_side

# The traffic lights of banking supervision: green above both, red at most the second.
_YELLOW, _RED = 0.05, 0.001

# Quantiles of the normal distribution between which that of a default rate is sought.
_MAX_QUANTILE = 12.0


@dataclass(kw_only=True, eq=False, repr=False)
class RatingGradeTest(HypothesisTest):
    r"""Test of whether each grade of a rating has as many defaults as predicted.

    A grade is a set of samples with nearly the same prediction, its PD; the positive outcome is a
    default. By default it finds grades with more defaults than their PD allows (risk is
    underestimated). With more than two classes, it tests the probability of the predicted class.

    Parameters
    ----------
    method : {"binomial", "jeffreys"}, default="binomial"
        "binomial": the p-value of a grade is a tail of the binomial distribution; exact.
        "jeffreys": of the posterior under Jeffreys' prior, as European supervisors ask for; for
        grades in which several defaults are expected.

    correlation : float in [0, 1), default=0.0
        Correlation ρ of the assets of any two debtors, in the one-factor model of Vasicek: 0 for
        independent defaults, 0.12 to 0.24 for companies under Basel II. With ``method="binomial"``
        only.

    alternative : {"greater", "less", "two-sided"}, default="greater"
        "greater": more outcomes than predicted (risk is underestimated); "less": fewer;
        "two-sided": either.

    confidence_level : float in (0, 1), default=0.95
        Probability with which an interval is to cover the default rate.

    n_resamples : int, default=999
        Number of draws if there are `groups`; the smallest p-value is ``1 / (n_resamples + 1)``:
        pass 9999 for several grades, of which any could be red.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws, which only `groups` need.

    Attributes
    ----------
    p_value_ : float
        The p-value of the rating, in (0, 1]: the smallest of `adjusted_p_values_`.

    grades_ : ndarray of shape (n_grades,)
        The grades: their labels in the order of their mean predictions, or of ordered categories;
        else the distinct predictions.

    table_ : dict
        A table with a row for each grade, ready for :class:`pandas.DataFrame`: "grade", "n"
        (samples), "PD" (mean prediction), "defaults", "rate" (observed), "low" and "high" (its
        confidence interval), "p_value", "adjusted_p_value" and "light": "green" if that is above
        0.05, "red" if at most 0.001, else "yellow".

    total_ : dict
        A row of the same columns for the whole portfolio, as if it were one grade of its mean
        prediction, which is conservative if predictions differ and the correlation is at most 0.5.
        It is a test by itself: `p_value_` and the adjusted p-values do not count it.

    n_samples_ : ndarray of shape (n_grades,)
        Number of samples of each grade.

    n_positives_ : ndarray of shape (n_grades,)
        Number of positive outcomes (defaults) of each grade.

    predicted_rates_ : ndarray of shape (n_grades,)
        The mean prediction of each grade.

    p_values_ : ndarray of shape (n_grades,)
        The p-value of each grade alone, in (0, 1].

    adjusted_p_values_ : ndarray of shape (n_grades,)
        The p-values of the grades, adjusted for their number by Holm's method.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationInTheLargeTest : Tests the whole portfolio at once.
    HosmerLemeshowTest : Adds up the gaps of groups, in either direction.
    skcalib.uncertainty.most_prudent_default_rates : PDs for grades with few defaults or none.

    Notes
    -----
    A grade has N samples, D positive outcomes and the mean prediction π.

    **Binomial** [1]_. The p-value for "greater" is :math:`P(D' \ge D)` for a binomial D' with N
    trials of probability π, and for "less" :math:`P(D' \le D)`. It is valid for every N if all
    samples of a grade have the same prediction, and conservative for small ones [2]_.

    **Jeffreys** [3]_. The p-value for "greater" is the posterior probability of a default rate of
    at most π under Beta(D + ½, N − D + ½). It rejects calibrated grades at times more often than at
    the level: without any default, if fewer than 0.002 are expected.

    **Correlation** [4]_. Given the economy Z, standard normal, a debtor defaults with the
    probability :math:`\Phi((\Phi^{-1}(\pi) - \sqrt{\rho} Z) / \sqrt{1 - \rho})`, independently of
    others. For this model the two levels of the lights were proposed [5]_. A PD is the mean over
    all economies ("through the cycle").

    **Groups.** If debtors occur several times, pass them as `groups`; p-values are as in
    :class:`CalibrationTest`.

    **Periods.** The defaults of a grade are the sum of those of its periods, each with its mean
    prediction there and a factor of its own; p-values are right to 1e-10. The interval is that of a
    rate that all periods share.

    **Intervals.** Those of "binomial" cover with at least the confidence level: without correlation
    those of Clopper and Pearson, with `groups` for the effective number of samples [7]_
    (approximate). Those of "jeffreys" are quantiles of the posterior.

    The p-value for "two-sided" is twice the smaller one; Holm's method is [6]_. Without
    `correlation` and `groups`, calibrated ratings with dependent outcomes are rejected too often.
    Cost: :math:`O(n \log n)`.

    References
    ----------
    .. [1] Basel Committee on Banking Supervision (2005). Studies on the Validation of Internal
       Rating Systems. Working Paper 14.
    .. [2] Hoeffding (1956). On the Distribution of the Number of Successes in Independent Trials.
       Annals of Mathematical Statistics. :doi:`10.1214/aoms/1177728178`
    .. [3] European Central Bank (2019). Instructions for reporting the validation results of
       internal models: IRB Pillar I models for credit risk.
    .. [4] Vasicek (2002). The distribution of loan portfolio value. Risk 15(12), 160–162.
    .. [5] Tasche (2003). A traffic lights approach to PD validation. :arxiv:`cond-mat/0305038`
    .. [6] Holm (1979). A Simple Sequentially Rejective Multiple Test Procedure. Scandinavian
       Journal of Statistics 6(2), 65–70.
    .. [7] Korn and Graubard (1998). Confidence intervals for proportions with small expected number
       of positive counts estimated from survey data. Survey Methodology 24(2), 193–201.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import RatingGradeTest
    >>> n_samples, n_defaults = [2000, 1000, 400], [3, 19, 22]
    >>> proba = np.repeat([0.001, 0.01, 0.05], n_samples)
    >>> y = np.concatenate([np.arange(n) < d for n, d in zip(n_samples, n_defaults)])
    >>> test = RatingGradeTest().fit(proba, y)
    >>> test.p_values_.round(4)
    array([0.3233, 0.0069, 0.3541])
    >>> test.adjusted_p_values_.round(4)
    array([0.6466, 0.0207, 0.6466])
    """

    _parameter_constraints = {"correlation": [Interval(Real, 0, 1, closed="left")]}

    method: Literal["binomial", "jeffreys"] = "binomial"
    correlation: float = 0.0
    alternative: Literal["greater", "less", "two-sided"] = "greater"
    confidence_level: float = 0.95
    n_resamples: int = 999
    labels: ArrayLike | None = None
    random_state: RandomState = None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        grades: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        periods: ArrayLike | None = None,
    ) -> Self:
        """Compute the p-value of each grade.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one-dimensional ones are of the last class.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            None, or equal for all samples, as outcomes are counted. For counts, repeat the rows:
            take all arrays at ``np.repeat(np.arange(n), counts)``.

        grades : array-like of shape (n_samples,), default=None
            The grade of each sample: text or whole numbers. By default samples of equal predictions
            are a grade.

        groups : array-like of shape (n_samples,), default=None
            Labels of groups of samples that are not independent of each other, such as the rows of
            one debtor. None with a `correlation`, which says itself how defaults depend on each
            other, and for ``method="jeffreys"``.

        periods : array-like of shape (n_samples,), default=None
            The period of each sample, such as its year, if there are several: each has a factor of
            its own, independent of those of the others. With a `correlation` only.

        Returns
        -------
        self : object
            The fitted test.
        """
        check_correlation(self.correlation)
        self._check_independence(groups, periods)
        predictions = check_class_input(self, X, y, sample_weight)
        check_equal_weights(predictions.weight, np.shape(y)[0])
        data = predictions if predictions.is_binary else predictions.confidence()
        data = with_groups(data, y, groups, sample_weight, may_be_crossed=False)
        if grades is None:
            self.grades_, code = np.unique(data.proba, return_inverse=True)
        else:
            self.grades_, code = encode_labels(grades, name="grades", partner="y")
            check_same_length({"y": len(data.label), "grades": len(code)})
            order = np.argsort(rank_grades(self.grades_, code, grades, data.proba), kind="stable")
            self.grades_, code = self.grades_[order], np.argsort(order)[code]
        period = None
        if periods is not None:
            period = encode_labels(periods, name="periods", partner="y")[1]
            check_same_length({"y": len(data.label), "periods": len(period)})
        table, total = (self._test(data, column, period) for column in (code, np.zeros_like(code)))
        self.n_samples_, self.n_positives_ = table["n"], table["defaults"]
        self.predicted_rates_, self.p_values_ = table["PD"], table["p_value"]
        self.adjusted_p_values_ = holm(self.p_values_)
        self.p_value_ = float(self.adjusted_p_values_.min())
        self.table_ = {"grade": self.grades_} | add_lights(table, self.adjusted_p_values_)
        columns = add_lights(total, total["p_value"])
        self.total_ = {"grade": "total"} | {name: value.item() for name, value in columns.items()}
        return self

    def _test(
        self, data: ClassData, code: np.ndarray, period: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Counts, rates, intervals and p-values of grades with these codes."""
        n = np.bincount(code)
        defaults = np.bincount(code[data.label == 1], minlength=len(n))
        predicted, tail = np.bincount(code, weights=data.proba) / n, (1 - self.confidence_level) / 2
        if period is not None:
            columns = np.array([data.proba, data.label, period])  # (3, n)
            grades = (columns[:, code == k] for k in range(len(n)))
            tails = [tails_of_periods(grade, tail, self.correlation) for grade in grades]
            greater, less, low, high = np.transpose(tails)
            p_values = select_side(greater, less, self.alternative)
        elif data.groups is None:
            sides, limits = TAILS[self.method], LIMITS[self.method]
            greater, less = sides(n, defaults, predicted, self.correlation)
            p_values = select_side(greater, less, self.alternative)
            p_values = np.maximum(p_values, sys.float_info.min)
            low, high = limits(n, defaults, tail, self.correlation)
        else:
            p_values = self._group_p_values(data, code)
            share = effective_sizes(data, code) / n
            low, high = default_rate_limits(share * n, share * defaults, tail, 0.0)
        return {
            "n": n,
            "PD": predicted,
            "defaults": defaults,
            "rate": defaults / n,
            "low": low,
            "high": high,
            "p_value": p_values,
        }

    def summary(self) -> str:
        """Return `table_` as a text, a line for each grade.

        Returns
        -------
        text : str
            To be printed.
        """
        check_is_fitted(self)
        columns = []
        for name, values in self.table_.items():
            cells = [*values.tolist(), self.total_[name]]
            if "p_value" in name:
                cells = [format_bounded(value, digits=4).removeprefix("= ") for value in cells]
            elif name in ("PD", "rate", "low", "high"):
                cells = [f"{100 * value:.3g} %" for value in cells]
            columns.append([name, *map(str, cells)])
        lines = format_columns(list(zip(*columns, strict=True)), n_texts=0)
        percent = f"{100 * self.confidence_level:.4g} %"
        lights = f"light by the adjusted p-value: yellow <= {_YELLOW}, red <= {_RED}"
        return "\n".join([*lines, f"low to high: {percent} interval of the rate", lights])

    def _group_p_values(self, data: ClassData, code: np.ndarray) -> np.ndarray:
        """The p-value of each grade from signs of groups and from simulated labels; the larger."""
        order = data.canonical_order()
        data, code = data.take(order), code[order]
        in_grade = csr_array((np.ones(len(code)), (np.arange(len(code)), code)))
        residuals = data.label - data.proba
        random_state = check_random_state(self.random_state)
        batches = make_batches(self.n_resamples, len(code), 1, random_state)

        def draw(coupled: ClassData | None, size: int, seed: int) -> np.ndarray:
            generator = np.random.default_rng(seed)
            if coupled is None:
                return residuals * draw_signs(data.groups, size, generator) @ in_grade
            return (coupled.simulate_outcomes(generator, size) - data.proba) @ in_grade

        p_values = []
        for coupled in (None, *data.iter_couplings()):
            null_values = [draw(coupled, *batch) for batch in batches]
            values = np.concatenate([(residuals @ in_grade)[None], *null_values])
            p_values.append([monte_carlo_p_value(column, self.alternative) for column in values.T])
        return np.max(p_values, axis=0)

    def _check_independence(self, groups: ArrayLike | None, periods: ArrayLike | None) -> None:
        if periods is not None and self.correlation == 0:
            raise ValueError(
                "periods need a correlation above 0; found 0. Leave them out: independent defaults "
                "are alike in one period and in many."
            )
        if self.correlation > 0 and (groups is not None or self.method == "jeffreys"):
            other = "method='jeffreys'" if groups is None else "groups"
            raise ValueError(
                f"correlation must be 0 with {other}; found {self.correlation!r}. Leave out one of "
                "both: the one-factor model says itself how defaults depend on each other, and "
                "Jeffreys' posterior assumes that they do not."
            )
        if groups is not None and self.method == "jeffreys":
            raise ValueError(
                "method must be 'binomial' with groups; found 'jeffreys', whose posterior assumes "
                "independent samples. Pass method='binomial', or leave groups out."
            )


def tails_of_periods(grade: np.ndarray, tail: float, correlation: float) -> tuple[float, ...]:
    """P(D' ≥ D) and P(D' ≤ D) of a grade, and the ends of the interval of its rate.

    The grade holds predictions, labels and periods, (3, n).
    """
    proba, label, period = grade
    code = np.unique(period, return_inverse=True)[1]
    sizes, events = np.bincount(code), int(label.sum())

    def tails(threshold: np.ndarray | float) -> tuple[float, float]:
        return sum_tails(sizes, events, np.broadcast_to(threshold, sizes.shape), correlation)

    low, high = (
        ndtr(brentq(lambda c, k=k: tails(c)[k] - tail, -_MAX_QUANTILE, _MAX_QUANTILE, xtol=1e-8))
        if events != impossible
        else certain
        for k, (impossible, certain) in enumerate([(0, 0.0), (len(label), 1.0)])
    )
    return *tails(ndtri(np.bincount(code, weights=proba) / sizes)), low, high


def binomial_tails(
    n: np.ndarray, positives: np.ndarray, rate: np.ndarray, correlation: float
) -> Any:
    """P(D' ≥ D) and P(D' ≤ D)."""
    if correlation > 0:
        threshold = ndtri(rate)
        greater = log_tail(n, positives, threshold, correlation)
        return np.exp(greater), np.exp(log_tail(n, n - positives, -threshold, correlation))
    return binom.sf(positives - 1, n, rate), binom.cdf(positives, n, rate)


def jeffreys_tails(n: np.ndarray, positives: np.ndarray, rate: np.ndarray, _: float) -> Any:
    """The posterior probabilities of a rate of at most, and of at least, the predicted one."""
    posterior = beta(positives + 0.5, n - positives + 0.5)
    certain = (rate == positives / n) & ((rate == 0) | (rate == 1))
    return np.where(certain, 1.0, posterior.cdf(rate)), np.where(certain, 1.0, posterior.sf(rate))


def jeffreys_limits(n: np.ndarray, positives: np.ndarray, tail: float, _: float) -> Any:
    """Quantiles of the posterior distribution; 0 and 1 if all outcomes are alike."""
    posterior = beta(positives + 0.5, n - positives + 0.5)
    low, high = np.where(positives > 0, posterior.ppf(tail), 0.0), posterior.isf(tail)
    return low, np.where(positives < n, high, 1.0)


def rank_grades(
    labels: np.ndarray, code: np.ndarray, grades: ArrayLike, proba: np.ndarray
) -> np.ndarray:
    """The rank (m,) of each label: in the order of ordered categories, else by mean prediction."""
    categories = read_categories(grades, ordered=True)
    if categories and set(labels.tolist()) <= set(categories):
        return np.array([categories.index(label) for label in labels.tolist()])
    return (np.bincount(code, weights=proba) / np.bincount(code)).round(12)  # equal if they are


def add_lights(table: dict[str, np.ndarray], p_values: np.ndarray) -> dict[str, np.ndarray]:
    """The table with the p-values that decide, and their lights."""
    level = np.searchsorted([_RED, _YELLOW], p_values)
    light = np.array(["red", "yellow", "green"])[level]
    return table | {"adjusted_p_value": p_values, "light": light}


TAILS = {"binomial": binomial_tails, "jeffreys": jeffreys_tails}
LIMITS = {"binomial": default_rate_limits, "jeffreys": jeffreys_limits}


def effective_sizes(data: ClassData, code: np.ndarray) -> np.ndarray:
    """Numbers of independent samples whose default rates are as precise as those of grades, (m,).

    Two labels of a group have the correlation that all groups of similar size show.
    """
    groups = codes_by_appearance(np.asarray(data.groups))
    dependence = estimate_group_dependence(data.matrix, data.label, groups, data.weight)
    cell, size = np.unique(np.stack([code, groups]), axis=1, return_counts=True)
    variance = np.bincount(cell[0], size + dependence[cell[1]] * (size**2 - size))
    return np.bincount(code) ** 2 / variance


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values (m,)."""
    order = np.argsort(p_values)
    factor = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.maximum.accumulate(np.minimum(factor * p_values[order], 1.0))
    return adjusted


def check_equal_weights(weight: np.ndarray, n: int) -> None:
    if len(weight) < n or np.ptp(weight) > 0:
        raise ValueError(
            "sample_weight must be equal for all samples, as the outcomes of a grade are counted; "
            "found weights that vary. Leave it out, or test the whole portfolio with "
            "CalibrationInTheLargeTest, which takes weights."
        )
