"""Cox's test, and the logistic regression on the logit of the predictions."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import chi2

from .._inputs.types import RandomState
from .._numerics.logistic_batch import likelihood_gains
from .._numerics.logits import log_odds
from ..metrics._clinical import logistic_line
from ._classical import ClassicalTest

# Nodes of the mean over a circle, which converges faster than any power of their number.
_N_ANGLES = 1000


class CoxTest(ClassicalTest):
    r"""Cox's test of whether a logistic regression on the logit leaves the predictions as they are.

    The regression P(y = 1) = expit(intercept + slope · logit p) has intercept 0 and slope 1 if the
    model is calibrated, a slope below 1 if it is overconfident, one above 1 if it is
    underconfident, and another intercept if it is too high or too low on the whole. The
    likelihood-ratio test sees errors of these two kinds only, and those best. It is binary: of
    more than two classes, the probability of the predicted class is tested against whether it was
    right.

    Parameters
    ----------
    method : {"conditional", "asymptotic"}, default="conditional"
        How the p-value is found. "conditional": by labels drawn from the predictions as they are;
        exact for every number of samples. "asymptotic": by the distribution that the statistic
        approaches for many samples.

    n_resamples : int, default=999
        Number of vectors of labels that are drawn by the method "conditional". No p-value is then
        below ``1 / (n_resamples + 1)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The result does not depend on the order of the samples.

    Attributes
    ----------
    p_value_ : float
        The p-value of intercept 0 and slope 1, in (0, 1].

    statistic_ : float
        The likelihood-ratio statistic; with unequal weights, divided by their mean effect.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the drawn labels. Only with the method "conditional".

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
    CalibrationInTheLargeTest : Tests whether outcomes are as frequent as predicted.
    CalibrationSlopeTest : Tests the slope alone.

    Notes
    -----
    The regression is Cox's [1]_; the joint test of its two parameters is that of [2]_. With weights
    w that sum to 1, and the log-likelihood :math:`\ell(a, b) = \sum_i w_i \log P_{a,b}(y_i)`, the
    statistic is

    .. math:: T = 2 \, \frac{\max_{a,b} \ell(a, b) - \ell(0, 1)}{\bar \lambda},

    where :math:`\bar \lambda` is the mean of the two eigenvalues of :math:`I^{-1} J`, with :math:`I
    = \sum_i w_i p_i (1 - p_i) x_i x_i^\top`, :math:`J = \sum_i w_i^2 p_i (1 - p_i) x_i x_i^\top`
    and :math:`x_i = (1, \operatorname{logit} p_i)`. For equal weights both are 1/n, and T is the
    usual likelihood-ratio statistic.

    **Conditional.** With the statistics T* of B vectors of labels drawn from the predictions, the
    p-value is :math:`(1 + \#\{T^*_b \ge T\}) / (1 + B)`. The test is exact for every number of
    samples and any weights, as described for :class:`CalibrationTest`, if labels are independent
    given the predictions. The cost is :math:`O(n B)` for each of a few steps.

    **Asymptotic.** For equal weights the p-value is that of the chi-squared distribution with two
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
    p-values are positive, an asymptotic one that underflows is reported as the smallest normal
    number in double precision, 2.2e-308.

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
    >>> test = CoxTest(random_state=0).fit(proba, y)
    >>> test.intercept_, test.slope_, test.p_value_
    (-0.011..., 0.756..., 0.01...)
    >>> test.set_params(method="asymptotic").fit(proba, y).p_value_
    0.0158...
    """

    _n_arrays = 4

    def __init__(
        self,
        *,
        method: str = "conditional",
        n_resamples: int = 999,
        labels: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.method = method
        self.n_resamples = n_resamples
        self.labels = labels
        self.random_state = random_state

    def _statistic(self, data):
        weight, logits = data.weight, log_odds(data.proba)  # ascending
        self.intercept_, self.slope_ = logistic_line(data)
        if logits[0] == logits[-1]:
            self.degrees_of_freedom_ = 1
            scale, self._spread = data.share_of_one_sample, 0.0
        else:
            self.degrees_of_freedom_ = 2
            scale, self._spread = _null_scales(logits, weight)

        def statistic(labels):
            return np.maximum(2 * likelihood_gains(logits, labels, weight) / scale, 0.0)

        return statistic

    def _asymptotic_p_value(self):
        if self.degrees_of_freedom_ == 1:
            return chi2.sf(self.statistic_, 1)
        return _two_squares_sf(self.statistic_, self._spread)


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
