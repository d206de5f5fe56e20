"""Spiegelhalter's test."""

from ._classical import ResidualTest


class SpiegelhalterTest(ResidualTest):
    r"""Spiegelhalter's z-test of whether the Brier score is what the predictions expect.

    The statistic z is 0 on average if the model is calibrated, positive if it is overconfident
    (predictions too close to 0 and 1), and negative if it is underconfident; by default both are
    rejected.
    The test needs no bins, but it sees only what does not cancel in one weighted sum of residuals,
    in which predictions of 1/2 do not count at all. It is binary: of more than two classes, the
    probability of the predicted class is tested against whether it was right.

    Parameters
    ----------
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        What speaks against calibration: "greater", that the model is overconfident; "less", that it
        is underconfident; "two-sided", either.

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
    CalibrationTest : Exact for any number of samples and classes, with any statistic.
    CalibrationSlopeTest : Tests for overconfidence, too, whatever the mean of the predictions.
    CoxTest : Tests for a shift and a wrong spread of the predictions at once.

    Notes
    -----
    For predictions p and outcomes y, 0 or 1, with weights w [1]_,

    .. math::
        z = \frac{\sum_i w_i (y_i - p_i)(1 - 2 p_i)}
                 {\sqrt{\sum_i w_i^2 (1 - 2 p_i)^2 p_i (1 - p_i)}},

    whose numerator is the weighted sum of the squared errors minus its expectation under the null
    hypothesis, and whose denominator is the standard deviation of that, for any weights. Ties need
    no special treatment.

    **Conditional.** With the values z* of B vectors of labels drawn from the predictions, the
    p-value is :math:`(1 + \#\{z^*_b \ge z\}) / (1 + B)` for "greater", the same with ≤ for "less",
    and twice the smaller one, at most 1, for "two-sided". The test is exact for every number of
    samples and any weights, as described for :class:`CalibrationTest`, if labels are independent
    given the predictions. The cost is :math:`O(n B)`.

    **Asymptotic.** For many samples z approaches the standard normal distribution, of which the
    p-value is the tail: :math:`2 \Phi(-|z|)` if it is two-sided. The cost is :math:`O(n \log n)`.

    A prediction of 0 or 1 adds nothing to the variance. If no prediction adds to it, all being 0,
    1/2 or 1, z is 0 and the p-value 1, unless a prediction of 0 or 1 was wrong, which is impossible
    under the null hypothesis: z is then infinite. As p-values are positive, an asymptotic one of 0
    is reported as the smallest normal number in double precision, 2.2e-308.

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
    >>> test = SpiegelhalterTest(random_state=0).fit(proba, y)
    >>> test.statistic_, test.p_value_
    (2.58..., 0.014)
    >>> SpiegelhalterTest(alternative="greater", method="asymptotic").fit(proba, y).p_value_
    0.0049...
    """

    def _weight_of_residuals(self, proba):
        return 1 - 2 * proba
