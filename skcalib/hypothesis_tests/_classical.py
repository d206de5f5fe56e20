"""The classical tests of binary predictions, each with a null distribution for many samples."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit
from scipy.stats import chi2, norm
from sklearn.exceptions import ConvergenceWarning

from .._inputs.constraints import IntegerInterval
from .._numerics.bins import binned_sums, quantile_bins
from .._numerics.logistic import logistic_fit
from .._numerics.logits import log_odds
from .._sklearn import fit_context
from .._warnings import warn
from ._base import HypothesisTest, as_p_value, check_class_input

_MOST_STEPS = 200

# Nodes of the mean over a circle, which converges faster than any power of their number.
_N_ANGLES = 1000


class _ClassicalTest(HypothesisTest):
    """With more than two classes, the confidence is tested against whether it was right."""

    _parameter_constraints: dict = {"labels": ["array-like", None]}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the statistic and the p-value.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one-dimensional ones are of the last class.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Importance weights of the samples; only their ratios matter. A weight of 2 is not the
            same as a sample that occurs twice.

        Returns
        -------
        self : object
            The fitted test.
        """
        predictions = check_class_input(self, X, y, sample_weight)
        self.classes_ = predictions.classes
        p_value = self._test(predictions if predictions.is_binary else predictions.confidence())
        self.p_value_ = as_p_value(p_value)
        return self


class SpiegelhalterTest(_ClassicalTest):
    r"""Spiegelhalter's z-test of whether the Brier score is what the predictions expect.

    The statistic z is 0 on average if the model is calibrated, positive if it is overconfident
    (predictions too close to 0 and 1), and negative if it is underconfident; both are rejected.
    The test needs no bins, but it sees only what does not cancel in one weighted sum of residuals,
    in which predictions of 1/2 do not count at all. It is binary: of more than two classes, the
    probability of the predicted class is tested against whether it was right.

    Parameters
    ----------
    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.

    Attributes
    ----------
    p_value_ : float
        The two-sided p-value, in (0, 1].

    statistic_ : float
        The statistic z.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    CalibrationTest : Exact for any number of samples and classes, with any statistic.
    CoxTest : Tests for a shift and a wrong spread of the predictions at once.

    Notes
    -----
    For predictions p and outcomes y, 0 or 1, with weights w [1]_,

    .. math::
        z = \frac{\sum_i w_i (y_i - p_i)(1 - 2 p_i)}
                 {\sqrt{\sum_i w_i^2 (1 - 2 p_i)^2 p_i (1 - p_i)}},

    whose numerator is the weighted sum of the squared errors minus its expectation under the null
    hypothesis, and whose denominator is the standard deviation of that, for any weights. The
    p-value :math:`2 \Phi(-|z|)` is that of the normal distribution, which z approaches for many
    samples. Its cost is :math:`O(n)`, and ties need no special treatment.

    A prediction of 0 or 1 adds nothing to the variance. If no prediction adds to it, all being 0,
    1/2 or 1, z is 0 and the p-value 1, unless a prediction of 0 or 1 was wrong, which is impossible
    under the null hypothesis: z is then infinite. As p-values are positive, one of 0 is reported
    as the smallest normal number in double precision, 2.2e-308.

    References
    ----------
    .. [1] D. J. Spiegelhalter (1986). Probabilistic prediction in patient management and clinical
       trials. Statistics in Medicine 5(5), 421–433. :doi:`10.1002/sim.4780050506`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import SpiegelhalterTest
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < 0.1 + 0.8 * proba  # overconfident
    >>> test = SpiegelhalterTest().fit(proba, y)
    >>> test.statistic_, test.p_value_
    (2.58..., 0.0098...)
    """

    def __init__(self, *, labels: ArrayLike | None = None) -> None:
        self.labels = labels

    def _test(self, predictions):
        proba = predictions.proba
        slope = 1 - 2 * proba  # (n,)
        gap = predictions.signed_mass @ slope
        variance = (predictions.weight * slope) ** 2 @ (proba * (1 - proba))
        self.statistic_ = float(_z_scores(gap, variance))
        return 2 * norm.sf(abs(self.statistic_))


class HosmerLemeshowTest(_ClassicalTest):
    r"""Hosmer–Lemeshow test of whether outcomes and predictions agree in groups of equal mass.

    The statistic is about the number of groups if the model is calibrated, and larger if not. Its
    value, and sometimes its verdict, depends on the number of groups; errors that cancel within a
    group stay unseen. It is binary: of more than two classes, the probability of the predicted
    class is tested against whether it was right.

    Parameters
    ----------
    n_bins : int, default=10
        Number of groups of equal mass (total weight).

    ddof : int, default=0
        What is subtracted from the number of groups to get the degrees of freedom. 0 is for
        predictions that do not depend on the labels `y`, such as those of a model for held-out
        data; 2 for those of a logistic regression (with however many coefficients) that was fitted
        to these same labels.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic.

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
    p_j))` with observed and expected numbers [1]_. The p-value is that of the chi-squared
    distribution, which the statistic approaches if every group has many samples of both outcomes.
    Where predictions crowd at 0 or 1, or weights are very unequal, that can take many samples, and
    until then a calibrated model is rejected too often at small levels; fewer groups help, and so
    does :class:`CalibrationTest`, which makes the test exact (see the examples).

    The denominator exceeds the variance of the numerator, :math:`\sum w_i^2 p_i (1 - p_i)`, by
    the spread of the predictions in the group, :math:`\sum w_i^2 (p_i - \bar p_j)^2`; so with wide
    groups a calibrated model is rejected slightly too rarely. With the degrees of freedom for a
    model that was fitted to the same labels, calibrated models are rejected too often on held-out
    data [2]_.

    Group j holds the predictions below which lies a share of the weight in [j/B, (j+1)/B): ties are
    never separated, and groups can be empty. A share that falls short of j/B by less than 1e-9/B
    counts as j/B: it may be a rounding error of the sum of the weights. A group of predictions that
    are all 0 or all 1 does not count, unless one was wrong, which is impossible under the null
    hypothesis: the statistic is then infinite. As p-values are positive, one of 0 is reported as
    the smallest normal number in double precision, 2.2e-308. The cost is :math:`O(n \log n)`.

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
    >>> test = HosmerLemeshowTest().fit(proba, y)
    >>> test.statistic_, test.degrees_of_freedom_, test.p_value_
    (16.16..., 10, 0.094...)

    The same statistic with its exact null distribution:

    >>> from skcalib.hypothesis_tests import CalibrationTest
    >>> def statistic(y_true, y_proba):
    ...     return HosmerLemeshowTest(labels=[False, True]).fit(y_proba, y_true).statistic_
    >>> CalibrationTest(statistic, random_state=0).fit(proba, y).p_value_
    0.09
    """

    _parameter_constraints: dict = {
        **_ClassicalTest._parameter_constraints,
        "n_bins": [IntegerInterval(1)],
        "ddof": [IntegerInterval(0)],
    }

    def __init__(self, n_bins: int = 10, *, ddof: int = 0, labels: ArrayLike | None = None) -> None:
        self.n_bins = n_bins
        self.ddof = ddof
        self.labels = labels

    def _test(self, predictions):
        proba, weight = predictions.proba, predictions.weight
        bins = quantile_bins(proba, weight, self.n_bins)
        gap = binned_sums(bins, predictions.signed_mass, self.n_bins)  # (B,)
        positive = binned_sums(bins, weight**2 * proba, self.n_bins)
        negative = binned_sums(bins, weight**2 * (1 - proba), self.n_bins)
        product = positive * negative
        variance = np.divide(product, positive + negative, out=product, where=product > 0)
        n_groups = int(np.sum(variance > 0))
        check_degrees_of_freedom(n_groups, self.ddof)
        self.degrees_of_freedom_ = n_groups - self.ddof
        with np.errstate(over="ignore"):  # wrong predictions next to 0
            self.statistic_ = float(np.sum(_z_scores(gap, variance) ** 2))
        # where no outcome can vary, the statistic is 0 or infinite, and any distribution will do
        return chi2.sf(self.statistic_, max(self.degrees_of_freedom_, 1))


class CoxTest(_ClassicalTest):
    r"""Cox's test of whether a logistic regression on the logit leaves the predictions as they are.

    The regression P(y = 1) = expit(intercept + slope · logit p) has intercept 0 and slope 1 if the
    model is calibrated, a slope below 1 if it is overconfident, one above 1 if it is
    underconfident, and another intercept if it is too high or too low on the whole. The
    likelihood-ratio test sees errors of these two kinds only, and those best. It is binary: of
    more than two classes, the probability of the predicted class is tested against whether it was
    right.

    Parameters
    ----------
    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.

    Attributes
    ----------
    p_value_ : float
        The p-value of intercept 0 and slope 1, in (0, 1].

    statistic_ : float
        The likelihood-ratio statistic; with unequal weights, divided by their mean effect.

    intercept_ : float
        The intercept of largest likelihood; it can be infinite, or NaN (see the notes).

    slope_ : float
        The slope of largest likelihood; it can be infinite, or NaN (see the notes).

    degrees_of_freedom_ : int
        2, or 1 if all predictions are equal.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    CalibrationTest : Exact for any number of samples and classes, with any statistic.
    SpiegelhalterTest : Tests whether the Brier score is as expected.

    Notes
    -----
    The regression is Cox's [1]_; the joint test of its two parameters is that of [2]_. With weights
    w that sum to 1, and the log-likelihood :math:`\ell(a, b) = \sum_i w_i \log P_{a,b}(y_i)`, the
    statistic is

    .. math:: T = 2 \, \frac{\max_{a,b} \ell(a, b) - \ell(0, 1)}{\bar \lambda},

    where :math:`\bar \lambda` is the mean of the two eigenvalues of :math:`I^{-1} J`, with :math:`I
    = \sum_i w_i p_i (1 - p_i) x_i x_i^\top`, :math:`J = \sum_i w_i^2 p_i (1 - p_i) x_i x_i^\top`
    and :math:`x_i = (1, \operatorname{logit} p_i)`. For equal weights both are 1/n, T is the usual
    likelihood-ratio statistic, and the p-value that of the chi-squared distribution with two
    degrees of freedom, which T approaches for many samples. For other weights T approaches the
    weighted sum of two squared normal variables, with weights :math:`1 \pm \rho` [3]_, for which

    .. math::
        P(T > t) = \frac{1}{\pi} \int_0^\pi
        \exp\left(-\frac{t}{2 (1 + \rho \cos \varphi)}\right) d\varphi.

    The maximum is found by Newton's method, at :math:`O(n)` for each of a few steps. Ties need no
    special treatment. Only where the logit is taken, probabilities are clipped to [ε, 1 − ε], with
    ε the machine epsilon of double precision, 2.2e-16.

    If all predictions are equal, so that the slope cannot be known, `slope_` is NaN, the intercept
    is the best one with slope 1, and it is tested with one degree of freedom. If a threshold on the
    predictions separates the outcomes (but for ties at the threshold), the likelihood has no
    maximum, but still a finite supremum [4]_, which takes its place: `slope_` is then ∞ or −∞ and
    `intercept_` NaN. If only one outcome occurs, `intercept_` is ∞ or −∞ and `slope_` NaN. As
    p-values are positive, one that underflows is reported as the smallest normal number in double
    precision, 2.2e-308.

    References
    ----------
    .. [1] D. R. Cox (1958). Two further applications of a model for binary regression. Biometrika
       45(3/4), 562–565. :doi:`10.1093/biomet/45.3-4.562`
    .. [2] M. E. Miller, S. L. Hui and W. M. Tierney (1991). Validation techniques for logistic
       regression models. Statistics in Medicine 10(8), 1213–1226. :doi:`10.1002/sim.4780100805`
    .. [3] J. N. K. Rao and A. J. Scott (1984). On Chi-Squared Tests for Multiway Contingency Tables
       with Cell Proportions Estimated from Survey Data. Annals of Statistics 12(1), 46–60.
       :doi:`10.1214/aos/1176346391`
    .. [4] A. Albert and J. A. Anderson (1984). On the existence of maximum likelihood estimates in
       logistic regression models. Biometrika 71(1), 1–10. :doi:`10.1093/biomet/71.1.1`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import CoxTest
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < 0.1 + 0.8 * proba  # overconfident
    >>> test = CoxTest().fit(proba, y)
    >>> test.intercept_, test.slope_, test.p_value_
    (-0.011..., 0.756..., 0.0158...)
    """

    def __init__(self, *, labels: ArrayLike | None = None) -> None:
        self.labels = labels

    def _test(self, predictions):
        label, weight = predictions.label, predictions.weight
        logits = log_odds(predictions.proba)
        self.intercept_, self.slope_, fitted = _logistic_fit(logits, label, weight)
        sign = 2 * label - 1
        gain = weight @ (log_expit(sign * fitted) - log_expit(sign * logits))
        if logits.min() == logits.max():
            self.degrees_of_freedom_ = 1
            self.statistic_ = max(2 * float(gain / predictions.share_of_one_sample), 0.0)
            return chi2.sf(self.statistic_, 1)
        self.degrees_of_freedom_ = 2
        scale, spread = _null_scales(logits, weight)
        self.statistic_ = max(2 * float(gain / scale), 0.0)
        return _two_squares_sf(self.statistic_, spread)


def _z_scores(gaps, variances):
    """Gaps in standard deviations; where nothing can vary, 0 if there is no gap, else infinite."""
    # where the variance of predictions next to 0 underflows, the square of their gap is 0 too
    impossible = np.where(np.square(gaps) > 0, np.copysign(np.inf, gaps), 0.0)
    return np.divide(gaps, np.sqrt(variances), out=impossible, where=variances > 0)


def _logistic_fit(x, label, weight):
    """Intercept, slope and linear predictor (n,) of the likeliest logistic regression on x (n,).

    Where the likelihood has no maximum, the linear predictor is that of its supremum, infinite
    where the outcome becomes certain. What the data do not determine is NaN: the intercept if the
    slope is infinite, and the slope if all x or all labels are equal. If all x are equal, the
    intercept is that for a slope of 1.
    """
    if x.min() == x.max():
        log_odds = _log_odds(label, weight)
        return log_odds - float(x[0]), np.nan, np.full(len(x), log_odds)
    certain = np.where(label == 1, np.inf, -np.inf)
    if label.min() == label.max():
        return float(certain[0]), np.nan, certain
    negative, positive = x[label == 0], x[label == 1]
    for slope, below, above in ((np.inf, negative, positive), (-np.inf, positive, negative)):
        threshold = above.min()
        if below.max() <= threshold:
            tied = x == threshold
            return np.nan, slope, np.where(tied, _log_odds(label[tied], weight[tied]), certain)
    return _newton_fit(x, label, weight)


def _newton_fit(x, label, weight):
    """`_logistic_fit` by Newton's method, if the maximum exists."""
    centre = float(weight @ x)
    x = x - centre  # keeps every digit if all x are nearly equal
    design = np.column_stack([np.ones(len(x)), x])
    mass = weight * np.stack([1 - label, label])
    fit = logistic_fit(design, mass, np.zeros(2), _MOST_STEPS)
    if not fit.converged:
        warn(
            f"The logistic regression did not converge in {_MOST_STEPS} steps of Newton's method; "
            "the last step is kept.",
            ConvergenceWarning,
        )
    level, slope = fit.coefficients.tolist()
    return level - slope * centre, slope, level + slope * x


def _log_odds(label, weight):
    with np.errstate(divide="ignore"):
        return float(np.log(weight @ label) - np.log(weight @ (1 - label)))


def _null_scales(x, weight):
    """Mean λ and ρ of the eigenvalues λ(1 ± ρ) of I⁻¹J under the null hypothesis.

    In the basis 1, z that is orthonormal under the information, I is the identity.
    """
    information = weight * expit(x) * expit(-x)
    information /= information.sum()
    z = x - information @ x
    z /= np.sqrt(information @ z**2)
    information *= weight
    level, cross, slope = information.sum(), information @ z, information @ z**2
    mean = (level + slope) / 2
    return mean, np.hypot((level - slope) / 2, cross) / mean


def _two_squares_sf(value, spread):
    """P((1 + ρ) Z₁² + (1 − ρ) Z₂² > value) for independent normal variables.

    In polar coordinates: the mean over the angle of the probability that the radius is large.
    """
    cosine = np.cos((np.arange(_N_ANGLES) + 0.5) * np.pi / _N_ANGLES)
    return np.mean(np.exp(-0.5 * value / (1 + spread * cosine)))


def check_degrees_of_freedom(n_groups, ddof):
    """A positive `ddof` must leave the chi-squared distribution a degree of freedom."""
    if 0 < ddof >= n_groups:
        raise ValueError(
            f"ddof must be less than the number of groups whose outcomes can vary; found ddof="
            f"{ddof} and {n_groups} group(s). Choose more bins, if the predictions are not tied; "
            "for predictions that do not depend on the labels, ddof=0."
        )
