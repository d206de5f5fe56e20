"""The test of calibration in the large."""

from ._classical import ResidualTest


class CalibrationInTheLargeTest(ResidualTest):
    r"""Test of calibration in the large: whether outcomes are as frequent as predicted.

    The statistic z is 0 on average if the model is calibrated, positive if outcomes are more
    frequent than predicted, so that risk is underestimated, and negative if they are less frequent.
    It compares one sum with its expectation: predictions that are too high for some and too low
    for others pass unseen if that cancels. It is binary: of more than two classes, the probability
    of the predicted class is tested against whether it was right.

    Parameters
    ----------
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        What speaks against calibration: "greater", that outcomes are more frequent than predicted
        (risk is underestimated); "less", that they are less frequent; "two-sided", either.

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
    CalibrationSlopeTest : Tests the spread of the predictions, whatever their mean.
    CoxTest : Tests for both at once.
    GradeTest : Tests each grade of a rating.

    Notes
    -----
    For predictions p and outcomes y, 0 or 1, with weights w,

    .. math:: z = \frac{\sum_i w_i (y_i - p_i)}{\sqrt{\sum_i w_i^2 p_i (1 - p_i)}},

    the observed number of outcomes minus the expected one, in standard deviations [1]_. "Mean
    calibration", "calibration in the large" and "O:E = 1" name the same hypothesis [2]_. For equal
    weights :math:`z^2` is also the score statistic of the intercept in the logistic regression on
    :math:`\operatorname{logit} p` with slope 1 [1]_. Ties need no special treatment.

    **Conditional.** With the values z* of B vectors of labels drawn from the predictions, the
    p-value is :math:`(1 + \#\{z^*_b \ge z\}) / (1 + B)` for "greater", the same with ≤ for "less",
    and twice the smaller one, at most 1, for "two-sided". The test is exact for every number of
    samples and any weights, as described for :class:`CalibrationTest`, if labels are independent
    given the predictions. The cost is :math:`O(n B)`.

    **Asymptotic.** For many samples z approaches the standard normal distribution, of which the
    p-value is the tail: :math:`2 \Phi(-|z|)` if it is two-sided. The cost is :math:`O(n \log n)`.

    A prediction of 0 or 1 adds nothing to the variance. If all are 0 or 1, z is 0 and the p-value
    1, unless the sums differ, which is impossible under the null hypothesis: z is then infinite. As
    p-values are positive, an asymptotic one of 0 is reported as the smallest normal number in
    double precision, 2.2e-308.

    References
    ----------
    .. [1] D. R. Cox (1958). Two further applications of a model for binary regression. Biometrika
       45(3/4), 562–565. :doi:`10.1093/biomet/45.3-4.562`
    .. [2] B. Van Calster, D. Nieboer, Y. Vergouwe, B. De Cock, M. J. Pencina and E. W. Steyerberg
       (2016). A calibration hierarchy for risk models was defined: from utopia to empirical data.
       Journal of Clinical Epidemiology 74, 167–176. :doi:`10.1016/j.jclinepi.2015.12.005`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import CalibrationInTheLargeTest
    >>> rng = np.random.default_rng(0)
    >>> proba = 0.2 * rng.random(500)
    >>> y = rng.random(500) < 1.5 * proba  # 15 % where 10 % are predicted
    >>> test = CalibrationInTheLargeTest(alternative="greater", random_state=0).fit(proba, y)
    >>> test.statistic_, test.p_value_
    (3.09..., 0.004)
    """

    def _weight_of_residuals(self, proba):
        return 1.0
