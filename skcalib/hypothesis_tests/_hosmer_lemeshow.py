"""The test of Hosmer and Lemeshow."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from .._inputs.constraints import IntegerInterval
from .._inputs.types import RandomState
from .._numerics.bins import quantile_bins
from .._numerics.sorting import first_of_ties
from ._classical import ClassicalTest, z_scores


class HosmerLemeshowTest(ClassicalTest):
    r"""Hosmer–Lemeshow test of whether outcomes and predictions agree in groups of equal mass.

    The statistic is about the number of groups if the model is calibrated, and larger if not. Its
    value, and sometimes its verdict, depends on the number of groups; errors that cancel within a
    group stay unseen. It is binary: of more than two classes, the probability of the predicted
    class is tested against whether it was right.

    Parameters
    ----------
    n_bins : int, default=10
        Number of groups of equal mass (total weight).

    method : {"conditional", "asymptotic"}, default="conditional"
        How the p-value is found. "conditional": by labels drawn from the predictions as they are;
        exact for every number of samples. "asymptotic": by the distribution that the statistic
        approaches for many samples.

    n_resamples : int, default=999
        Number of vectors of labels that are drawn by the method "conditional". No p-value is then
        below ``1 / (n_resamples + 1)``.

    ddof : int, default=0
        What is subtracted from the number of groups to get the degrees of freedom, for the method
        "asymptotic" only. 0 is for predictions that do not depend on the labels `y`, such as those
        of a model for held-out data, which the method "conditional" needs; 2 for those of a
        logistic regression (with however many coefficients) that was fitted to these same labels.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The result does not depend on the order of the samples.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the drawn labels. Only with the method "conditional".

    degrees_of_freedom_ : int
        The number of groups whose outcomes can vary, minus `ddof`.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    CalibrationTest : Exact for any number of samples and classes, with any statistic.
    skcalib.metrics.expected_calibration_error : The gaps of the groups as a measure.

    Notes
    -----
    For predictions p and outcomes y, 0 or 1, with weights w, let :math:`S_j = \sum_{i \in B_j}
    w_i^2` and :math:`\bar p_j = \sum_{i \in B_j} w_i^2 p_i / S_j` in group j. The statistic is

    .. math::
        \sum_j \frac{\left(\sum_{i \in B_j} w_i (y_i - p_i)\right)^2}
                    {S_j \, \bar p_j (1 - \bar p_j)},

    which for equal weights is the classical :math:`\sum_j (O_j - E_j)^2 / (n_j \bar p_j (1 - \bar
    p_j))` with observed and expected numbers [1]_.

    **Conditional.** With the statistics T* of B vectors of labels drawn from the predictions, the
    p-value is :math:`(1 + \#\{T^*_b \ge T\}) / (1 + B)`. The test is exact for every number of
    samples and any weights, as described for :class:`CalibrationTest`, if labels are independent
    given the predictions. The cost is :math:`O(n (B + \log n))`.

    **Asymptotic.** The p-value is that of the chi-squared distribution, which the statistic
    approaches if every group has many samples of both outcomes. Where predictions crowd at 0 or 1,
    or weights are very unequal, that can take many samples, and until then a calibrated model is
    rejected too often at small levels; fewer groups help. The cost is :math:`O(n \log n)`.

    The denominator exceeds the variance of the numerator, :math:`\sum w_i^2 p_i (1 - p_i)`, by
    the spread of the predictions in the group, :math:`\sum w_i^2 (p_i - \bar p_j)^2`; so with wide
    groups the asymptotic test rejects a calibrated model slightly too rarely. With the degrees of
    freedom for a model that was fitted to the same labels, calibrated models are rejected too often
    on held-out data [2]_.

    Group j holds the predictions below which lies a share of the weight in [j/B, (j+1)/B): ties are
    never separated, and groups can be empty. A share that falls short of j/B by less than 1e-9/B
    counts as j/B: it may be a rounding error of the sum of the weights. A group of predictions that
    are all 0 or all 1 does not count, unless one was wrong, which is impossible under the null
    hypothesis: the statistic is then infinite. As p-values are positive, an asymptotic one of 0 is
    reported as the smallest normal number in double precision, 2.2e-308.

    References
    ----------
    .. [1] D. W. Hosmer and S. Lemeshow (1980). Goodness of fit tests for the multiple logistic
       regression model. Communications in Statistics – Theory and Methods 9(10), 1043–1069.
       :doi:`10.1080/03610928008827941`
    .. [2] D. W. Hosmer, S. Lemeshow and R. X. Sturdivant (2013). Applied Logistic Regression, third
       edition. Wiley. :doi:`10.1002/9781118548387`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import HosmerLemeshowTest
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < 0.1 + 0.8 * proba  # overconfident
    >>> test = HosmerLemeshowTest(random_state=0).fit(proba, y)
    >>> test.statistic_, test.p_value_
    (16.16..., 0.1)
    >>> test.set_params(method="asymptotic").fit(proba, y).p_value_
    0.094...
    """

    _parameter_constraints: dict = {
        **ClassicalTest._parameter_constraints,
        "n_bins": [IntegerInterval(1)],
        "ddof": [IntegerInterval(0)],
    }

    def __init__(
        self,
        n_bins: int = 10,
        *,
        method: str = "conditional",
        n_resamples: int = 999,
        ddof: int = 0,
        labels: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_bins = n_bins
        self.method = method
        self.n_resamples = n_resamples
        self.ddof = ddof
        self.labels = labels
        self.random_state = random_state

    def _statistic(self, data):
        proba, weight = data.proba, data.weight  # sorted, so that each group is a range
        start = np.flatnonzero(first_of_ties(quantile_bins(proba, weight, self.n_bins)))
        positive = np.add.reduceat(weight**2 * proba, start)  # (B,)
        negative = np.add.reduceat(weight**2 * (1 - proba), start)
        product = positive * negative
        variance = np.divide(product, positive + negative, out=product, where=product > 0)
        n_groups = int(np.sum(variance > 0))
        check_degrees_of_freedom(n_groups, self.ddof, self.method)
        self.degrees_of_freedom_ = n_groups - self.ddof

        def statistic(labels):
            mass = labels - proba  # (R, n)
            mass *= weight
            gap = np.add.reduceat(mass, start, axis=1)
            with np.errstate(over="ignore"):  # wrong predictions next to 0
                return np.sum(z_scores(gap, variance) ** 2, axis=1)

        return statistic

    def _asymptotic_p_value(self):
        # where no outcome can vary, the statistic is 0 or infinite, and any distribution will do
        return chi2.sf(self.statistic_, max(self.degrees_of_freedom_, 1))


def check_degrees_of_freedom(n_groups, ddof, method):
    """A positive `ddof` must leave the chi-squared distribution a degree of freedom."""
    if method == "conditional" and ddof > 0:
        raise ValueError(
            f"ddof must be 0 for method='conditional', which draws labels from predictions that do "
            f"not depend on them; found ddof={ddof}. Use method='asymptotic' for a model that was "
            "fitted to the same labels, and ddof=0 for all others."
        )
    if 0 < ddof >= n_groups:
        raise ValueError(
            f"ddof must be less than the number of groups whose outcomes can vary; found ddof="
            f"{ddof} and {n_groups} group(s). Choose more bins, if the predictions are not tied; "
            "for predictions that do not depend on the labels, ddof=0."
        )
