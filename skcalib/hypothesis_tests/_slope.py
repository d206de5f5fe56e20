"""The test of the calibration slope."""

from functools import partial

from .._numerics.logistic_batch import slope_scores
from .._numerics.logits import log_odds
from ..metrics._clinical import logistic_line
from ._classical import SignedTest


class CalibrationSlopeTest(SignedTest):
    r"""Test of whether the calibration slope is 1, whatever the intercept.

    The slope b of the regression P(y = 1) = expit(a + b · logit p) is 1 if the model is calibrated,
    below 1 if it is overconfident (predictions too close to 0 and 1, as of an overfitted model),
    and above 1 if it is underconfident. The statistic z is 0 on average for a slope of 1, and has
    the sign of b − 1. Errors that leave the slope at 1, as a shift of all logits does, pass
    unseen. It is binary: of more than two classes, the probability of the predicted class is tested
    against whether it was right.

    Parameters
    ----------
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        What speaks against calibration: "less", a slope below 1, that is, overconfidence;
        "greater", a slope above 1; "two-sided", either.

    method : {"conditional", "asymptotic"}, default="conditional"
        How the p-value is found. "conditional": by labels drawn from the predictions as they are;
        exact for every number of samples. "asymptotic": by the distribution that the statistic
        approaches for many samples.

    n_resamples : int, default=999
        Number of vectors of labels that are drawn by the method "conditional". No p-value is then
        below ``1 / (n_resamples + 1)``, or twice that if it is two-sided.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The result does not depend on the order of the samples.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic z.

    intercept_ : float
        The intercept a of largest likelihood; it can be infinite, or NaN (see the notes).

    slope_ : float
        The slope b of largest likelihood; it can be infinite, or NaN (see the notes).

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the drawn labels. Only with the method "conditional".

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    CalibrationInTheLargeTest : Tests whether outcomes are as frequent as predicted.
    CoxTest : Tests for intercept 0 and slope 1 at once.
    SpiegelhalterTest : Tests whether the Brier score is as expected.

    Notes
    -----
    The regression is Cox's [1]_; its slope measures weak calibration [2]_. For predictions p, their
    logits x and outcomes y, 0 or 1, with weights w, let q = expit(a + x), where the intercept a is
    that of largest likelihood if the slope is 1, so that :math:`\sum w_i (y_i - q_i) = 0`. Let
    :math:`v_i = q_i (1 - q_i)` and :math:`\bar x = \sum w_i v_i x_i / \sum w_i v_i`. Then

    .. math::
        z = \frac{\sum_i w_i (y_i - q_i)(x_i - \bar x)}
                 {\sqrt{\sum_i w_i^2 v_i (x_i - \bar x)^2}}

    is Rao's score statistic [3]_: the derivative of the likelihood along the slope, in standard
    deviations for any weights. Unlike the estimate of the slope it is finite for all labels. The
    intercept is found by Newton's method, at :math:`O(n)` for each of a few steps. Ties need no
    special treatment. Only where the logit is taken, probabilities are clipped to [ε, 1 − ε], with
    ε the machine epsilon of double precision, 2.2e-16.

    **Conditional.** With the values z* of B vectors of labels drawn from the predictions, the
    p-value is :math:`(1 + \#\{z^*_b \le z\}) / (1 + B)` for "less", the same with ≥ for "greater",
    and twice the smaller one, at most 1, for "two-sided". The null hypothesis is then that the
    model is calibrated, slope and intercept alike, and the test of it is exact for every number of
    samples and any weights, as described for :class:`CalibrationTest`, if labels are independent
    given the predictions. A model whose intercept alone is wrong is rejected about as often, for
    many samples. The cost is :math:`O(n B)` for each step.

    **Asymptotic.** For many samples z approaches the standard normal distribution, of which the
    p-value is the tail: :math:`2 \Phi(-|z|)` if it is two-sided. The null hypothesis is a slope of
    1 with any intercept.

    If all predictions or all labels are equal, so that the slope cannot be known, z is 0 and
    `slope_` NaN. In the first case `intercept_` is the best one with slope 1, in the second it is ∞
    or −∞. If a threshold on the predictions separates the outcomes (but for ties at
    the threshold), `slope_` is ∞ or −∞ and `intercept_` NaN. As p-values are positive, an
    asymptotic one that underflows is reported as the smallest normal number in double precision,
    2.2e-308.

    References
    ----------
    .. [1] D. R. Cox (1958). Two further applications of a model for binary regression. Biometrika
       45(3/4), 562–565. :doi:`10.1093/biomet/45.3-4.562`
    .. [2] B. Van Calster, D. Nieboer, Y. Vergouwe, B. De Cock, M. J. Pencina and E. W. Steyerberg
       (2016). A calibration hierarchy for risk models was defined: from utopia to empirical data.
       Journal of Clinical Epidemiology 74, 167–176. :doi:`10.1016/j.jclinepi.2015.12.005`
    .. [3] C. R. Rao (1948). Large sample tests of statistical hypotheses concerning several
       parameters with applications to problems of estimation. Mathematical Proceedings of the
       Cambridge Philosophical Society 44(1), 50–57. :doi:`10.1017/S0305004100023987`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import CalibrationSlopeTest
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < 0.1 + 0.8 * proba  # overconfident
    >>> test = CalibrationSlopeTest(alternative="less", random_state=0).fit(proba, y)
    >>> test.slope_, test.p_value_
    (0.756..., 0.004)
    """

    _n_arrays = 4

    def _statistic(self, data):
        weight, logits = data.weight, log_odds(data.proba)  # ascending
        self.intercept_, self.slope_ = logistic_line(data)
        return partial(slope_scores, logits, weight=weight)
