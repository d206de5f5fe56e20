"""The test of the default rates of a rating, grade by grade."""

import sys
from typing import Any, Literal, Self

import numpy as np
from scipy.stats import beta, binom

from .._inputs.arrays import ArrayLike, check_same_length
from .._inputs.labels import encode_labels
from .._inputs.scikit_learn import StrOptions, fit_context
from ._base import HypothesisTest, check_class_input


class RatingGradeTest(HypothesisTest):
    r"""Test of whether each grade of a rating has as many defaults as predicted.

    A grade is a set of samples with the same, or nearly the same, prediction. Credit calls the
    positive outcome a default, and the prediction of a grade its PD. By default the question is
    whether risk is underestimated: whether a grade has more defaults than its prediction allows. It
    is binary: of more than two classes, the probability of the predicted class is tested against
    whether it was right.

    Parameters
    ----------
    method : {"binomial", "jeffreys"}, default="binomial"
        How the p-value of a grade is found. "binomial": by the tail of the binomial distribution;
        valid for every number of samples. "jeffreys": by the posterior distribution of the default
        rate under Jeffreys' prior, as European supervisors ask for; for grades in which several
        defaults are expected (see the notes).

    alternative : {"greater", "less", "two-sided"}, default="greater"
        What speaks against a grade: "greater", more outcomes than predicted (risk is
        underestimated); "less", fewer; "two-sided", either.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.

    Attributes
    ----------
    p_value_ : float
        The p-value of the rating, in (0, 1]: the smallest of `adjusted_p_values_`.

    grades_ : ndarray of shape (n_grades,)
        The grades, sorted: their labels if there are any, else the distinct predictions.

    n_samples_ : ndarray of shape (n_grades,)
        Number of samples of each grade.

    n_positives_ : ndarray of shape (n_grades,)
        Number of positive outcomes (defaults) of each grade.

    predicted_rates_ : ndarray of shape (n_grades,)
        The mean prediction of each grade.

    p_values_ : ndarray of shape (n_grades,)
        The p-value of each grade alone, in (0, 1].

    adjusted_p_values_ : ndarray of shape (n_grades,)
        The p-values of the grades by Holm's method: the probability that any grade of a calibrated
        rating has one of at most α is at most α.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    CalibrationInTheLargeTest : Tests the whole portfolio at once, with weights if need be.
    HosmerLemeshowTest : Adds up the gaps of groups, in either direction.

    Notes
    -----
    A grade has N samples, D positive outcomes and the mean prediction π.

    **Binomial** [1]_. The p-value for "greater" is :math:`P(D' \ge D)` for a binomial D' with N
    trials of probability π, and for "less" :math:`P(D' \le D)`. It is valid for every N, and
    conservative for small ones, as D' is a whole number. If predictions differ within the grade, D
    varies less than D', and the test is conservative as well: for tails that begin at least one
    outcome away from Nπ, by a theorem of Hoeffding [2]_.

    **Jeffreys** [3]_. The p-value for "greater" is the posterior probability of a default rate of
    at most π under the distribution Beta(D + ½, N − D + ½), and for "less" that of at least π. It
    lies between the binomial tails :math:`P(D' > D)` and :math:`P(D' \ge D)`. So it rejects more
    often than the binomial test, and calibrated grades at times more often than at the level. It
    needs expected defaults: for a grade without any default it is about erf(√(Nπ)), so that a grade
    of which fewer than 0.002 defaults are expected is rejected at 0.05 with none. Where π is 0 or 1
    and all outcomes are as predicted, the p-value is 1.

    The p-value for "two-sided" is twice the smaller one of both sides, at most 1. Holm's method
    multiplies the k-th smallest of m p-values by m + 1 − k, takes the running maximum, and at most
    1 [4]_. As p-values are positive, one of 0, as of an outcome whose probability is 0, is taken as
    the smallest normal number in double precision, 2.2e-308. The cost is :math:`O(n \log n)`.

    Outcomes are assumed to be independent given the predictions. Defaults of one year share its
    economy; then they vary more, and calibrated ratings are rejected too often.

    References
    ----------
    .. [1] Basel Committee on Banking Supervision (2005). Studies on the Validation of Internal
       Rating Systems. Working Paper 14.
    .. [2] W. Hoeffding (1956). On the Distribution of the Number of Successes in Independent
       Trials. Annals of Mathematical Statistics 27(3), 713–721. :doi:`10.1214/aoms/1177728178`
    .. [3] European Central Bank (2019). Instructions for reporting the validation results of
       internal models: IRB Pillar I models for credit risk.
    .. [4] S. Holm (1979). A Simple Sequentially Rejective Multiple Test Procedure. Scandinavian
       Journal of Statistics 6(2), 65–70.

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
    >>> grades = np.repeat(["A", "B", "C"], n_samples)
    >>> RatingGradeTest(method="jeffreys").fit(proba, y, grades=grades).p_values_.round(4)
    array([0.2202, 0.0048, 0.3135])
    """

    _parameter_constraints: dict = {
        "method": [StrOptions({"binomial", "jeffreys"})],
        "alternative": [StrOptions({"two-sided", "less", "greater"})],
        "labels": ["array-like", None],
    }

    def __init__(
        self,
        *,
        method: Literal["binomial", "jeffreys"] = "binomial",
        alternative: Literal["greater", "less", "two-sided"] = "greater",
        labels: ArrayLike | None = None,
    ) -> None:
        self.method = method
        self.alternative = alternative
        self.labels = labels

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        grades: ArrayLike | None = None,
    ) -> Self:
        """Compute the p-value of each grade.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one-dimensional ones are of the last class.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            None, or equal for all samples, as outcomes are counted.

        grades : array-like of shape (n_samples,), default=None
            The grade of each sample: text or whole numbers. By default samples of equal predictions
            are a grade.

        Returns
        -------
        self : object
            The fitted test.
        """
        predictions = check_class_input(self, X, y, sample_weight)
        check_equal_weights(predictions.weight, np.shape(y)[0])
        self.classes_ = predictions.classes
        data = predictions if predictions.is_binary else predictions.confidence()
        if grades is None:
            self.grades_, code = np.unique(data.proba, return_inverse=True)
        else:
            self.grades_, code = encode_labels(grades, name="grades", partner="y")
            check_same_length({"y": len(data.label), "grades": len(code)})
        self.n_samples_ = np.bincount(code)
        self.n_positives_ = np.bincount(code[data.label == 1], minlength=len(self.grades_))
        self.predicted_rates_ = np.bincount(code, weights=data.proba) / self.n_samples_
        self.p_values_ = self._p_values(self.n_samples_, self.n_positives_, self.predicted_rates_)
        self.adjusted_p_values_ = holm(self.p_values_)
        self.p_value_ = float(self.adjusted_p_values_.min())
        return self

    def _p_values(self, n: np.ndarray, positives: np.ndarray, rate: np.ndarray) -> np.ndarray:
        greater, less = SIDES[self.method](n, positives, rate)
        p_values = {
            "greater": greater,
            "less": less,
            "two-sided": np.minimum(1.0, 2 * np.minimum(greater, less)),
        }[self.alternative]
        return np.maximum(p_values, sys.float_info.min)


def binomial_sides(n: np.ndarray, positives: np.ndarray, rate: np.ndarray) -> tuple[Any, ...]:
    """P(D' ≥ D) and P(D' ≤ D)."""
    return binom.sf(positives - 1, n, rate), binom.cdf(positives, n, rate)


def jeffreys_sides(n: np.ndarray, positives: np.ndarray, rate: np.ndarray) -> tuple[Any, ...]:
    """The posterior probabilities of a rate of at most, and of at least, the predicted one."""
    posterior = beta(positives + 0.5, n - positives + 0.5)
    certain = (rate == positives / n) & ((rate == 0) | (rate == 1))
    return np.where(certain, 1.0, posterior.cdf(rate)), np.where(certain, 1.0, posterior.sf(rate))


SIDES = {"binomial": binomial_sides, "jeffreys": jeffreys_sides}


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
            "CalibrationInTheLargeTest, which takes any weights."
        )
