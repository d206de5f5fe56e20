"""The classical tests of two classes: z-tests, Cox's test, and that of Hosmer and Lemeshow."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import expit
from scipy.stats import chi2, norm
from sklearn.utils import check_random_state

from .._data import ClassData
from .._inputs.arrays import ArrayLike
from .._inputs.drawing import make_batches
from .._inputs.scikit_learn import Bins, IntegerInterval, RandomState, estimator_class, fit_context
from .._numerics.logistic_batch import LikelihoodCurve, likelihood_gains, slope_scores
from .._numerics.logits import log_odds
from .._numerics.sorting import bin_edges, first_of_ties, interval_bins, quantile_bins
from ..metrics._clinical import logistic_line
from . import _base

# Statistics of different batches that differ by less than this, relative to the largest, are tied:
# inverse covariances and fits enlarge the rounding errors of sums.
_BATCH_RTOL = 1e-9

# Nodes of the mean over a circle, which converges faster than any power of their number.
_N_ANGLES = 1000


@estimator_class(kw_only=True)
class ClassicalTest(_base.HypothesisTest):
    """A test whose statistic is computed for many vectors of labels at once.

    With more than two classes, the confidence is tested against whether it was right. Large values
    of the statistic speak against calibration, unless the test has an `alternative`.
    """

    method: Literal["conditional", "asymptotic"] = "conditional"
    n_resamples: int = 999
    labels: ArrayLike | None = None
    random_state: RandomState = None

    # The function from labels (R, n) to values (R,) of the data, and the p-value of `statistic_`.
    _statistic: ClassVar[Callable[..., Any]]
    _asymptotic_p_value: ClassVar[Callable[..., float]]

    # Arrays of one number for each label that the statistic of a batch needs at once.
    _n_arrays = 2

    _remedy = "Choose fewer."

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
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        Returns
        -------
        self : object
            The fitted test.
        """
        data = _base.check_class_input(self, X, y, sample_weight)
        binary = data if data.is_binary else data.confidence()
        self._evaluate(binary, check_random_state(self.random_state))
        return self

    def _evaluate(self, data: ClassData, random_state: Any, *options: Any) -> None:
        """Set the statistic and the p-value; the options are those of `_statistic`."""
        data = data.take(data.canonical_order())
        statistic = self._statistic(data, *options)
        self.statistic_ = float(statistic(data.label[None])[0])
        if self.method == "asymptotic":
            self.p_value_ = _base.as_p_value(self._asymptotic_p_value())
            return
        numbers = self._n_arrays * len(data.label)
        batches = make_batches(self.n_resamples, numbers, 1, random_state)
        evaluate = partial(_base.simulate_outcome_values, statistic, data, None)
        null_batches = _base.evaluate_draws(self, evaluate, batches)
        null = self.null_distribution_ = np.concatenate(null_batches)
        slack = _BATCH_RTOL * np.abs(null).max(where=np.isfinite(null), initial=0.0)
        compared = _base.clip_infinite(np.append(self.statistic_, null))
        side = getattr(self, "alternative", "greater")
        self.p_value_ = _base.monte_carlo_p_value(compared, side, slack)


@estimator_class(kw_only=True)
class SignedTest(ClassicalTest):
    """A test whose statistic is 0 on average, and nearly normal with standard deviation 1."""

    alternative: Literal["two-sided", "less", "greater"] = "two-sided"

    def _asymptotic_p_value(self) -> float:
        if self.alternative == "two-sided":
            return 2 * norm.sf(abs(self.statistic_))
        return norm.sf(self.statistic_ if self.alternative == "greater" else -self.statistic_)


def residual_scores(data: ClassData, factor: float | np.ndarray) -> Any:
    """z = Σ w_i g_i (y_i − p_i) in standard deviations, for factors g; a function of labels."""
    scale = data.weight * factor
    variance = scale**2 @ (data.proba * (1 - data.proba))

    def statistic(labels: np.ndarray) -> Any:
        return z_scores((labels - data.proba) @ scale, variance)

    return statistic


def z_scores(gaps: np.ndarray, variances: float | np.ndarray) -> np.ndarray:
    """Gaps in standard deviations; where nothing can vary, 0 if there is no gap, else infinite."""
    # where the variance of predictions next to 0 underflows, the square of their gap is 0 too
    impossible = np.where(np.square(gaps) > 0, np.copysign(np.inf, gaps), 0.0)
    return np.divide(gaps, np.sqrt(variances), out=impossible, where=variances > 0)


class CalibrationInTheLargeTest(SignedTest):
    r"""Test of calibration in the large: whether outcomes are as frequent as predicted.

    The statistic z is 0 on average if the model is calibrated, positive if risk is underestimated,
    negative if overestimated. Errors that cancel pass unseen. With more than two classes, it tests
    the probability of the predicted class.

    Parameters
    ----------
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        "greater": outcomes are more frequent than predicted (risk is underestimated); "less": less
        frequent; "two-sided": either.

    method : {"conditional", "asymptotic"}, default="conditional"
        "conditional": the p-value is found by labels drawn from the predictions; exact.
        "asymptotic": by the limit distribution.

    n_resamples : int, default=999
        Number of draws; the smallest p-value is ``1 / (n_resamples + 1)``, or twice that.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The order of the samples does not matter.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic z.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the draws, if "conditional".

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationSlopeTest : Tests the spread, whatever the level.
    CoxTest : Tests both at once.
    RatingGradeTest : Tests each grade of a rating.

    Notes
    -----
    For predictions p and outcomes y, 0 or 1, with weights w,

    .. math:: z = \frac{\sum_i w_i (y_i - p_i)}{\sqrt{\sum_i w_i^2 p_i (1 - p_i)}},

    observed minus expected outcomes, in standard deviations [1]_. "O:E = 1" is the same hypothesis
    [2]_.

    **Conditional.** With the values z* of B draws, the p-value is :math:`(1 + \#\{z^*_b \ge z\}) /
    (1 + B)` for "greater", with ≤ for "less", and twice the smaller one for "two-sided". It is
    exact for weights that say nothing of the outcome beyond the prediction; a warning tells of
    others. Cost: :math:`O(n B)`.

    **Asymptotic.** The p-value is the tail of the standard normal distribution. Cost: :math:`O(n
    \log n)`.

    If all predictions are 0 or 1, z is 0 and the p-value 1; if the sums differ, z is infinite.

    References
    ----------
    .. [1] Cox (1958). Two further applications of a model for binary regression. Biometrika.
       :doi:`10.1093/biomet/45.3-4.562`
    .. [2] Van Calster, Nieboer, Vergouwe, De Cock, Pencina and Steyerberg (2016). A calibration
       hierarchy for risk models was defined: from utopia to empirical data. Journal of Clinical
       Epidemiology. :doi:`10.1016/j.jclinepi.2015.12.005`

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

    def _statistic(self, data: ClassData) -> Any:
        return residual_scores(data, 1.0)


class SpiegelhalterTest(SignedTest):
    r"""Spiegelhalter's z-test of whether the Brier score is what the predictions expect.

    The statistic z is 0 on average if the model is calibrated, positive if it is overconfident
    (predictions too close to 0 and 1), and negative if underconfident. Predictions of 1/2 do not
    count, and errors that cancel are not seen. With more than two classes, it tests the probability
    of the predicted class.

    Parameters
    ----------
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        "greater": the model is overconfident; "less": underconfident; "two-sided": either.

    method : {"conditional", "asymptotic"}, default="conditional"
        "conditional": the p-value is found by labels drawn from the predictions; exact.
        "asymptotic": by the limit distribution.

    n_resamples : int, default=999
        Number of draws; the smallest p-value is ``1 / (n_resamples + 1)``, or twice that.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The order of the samples does not matter.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic z.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the draws, if "conditional".

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationTest : Takes any statistic, of any number of classes.
    CalibrationSlopeTest : Tests for overconfidence, whatever the level.
    CoxTest : Tests level and spread at once.

    Notes
    -----
    For predictions p and outcomes y, 0 or 1, with weights w [1]_,

    .. math::
        z = \frac{\sum_i w_i (y_i - p_i)(1 - 2 p_i)}
                 {\sqrt{\sum_i w_i^2 (1 - 2 p_i)^2 p_i (1 - p_i)}},

    the weighted sum of the squared errors minus its expectation, over the standard deviation of
    that.

    **Conditional.** With the values z* of B draws, the p-value is :math:`(1 + \#\{z^*_b \ge z\}) /
    (1 + B)` for "greater", with ≤ for "less", and twice the smaller one for "two-sided". It is
    exact for weights that say nothing of the outcome beyond the prediction; a warning tells of
    others. Cost: :math:`O(n B)`.

    **Asymptotic.** The p-value is the tail of the standard normal distribution. Cost: :math:`O(n
    \log n)`.

    If all predictions are 0, 1/2 or 1, z is 0 and the p-value 1; if one of 0 or 1 was wrong, z is
    infinite.

    References
    ----------
    .. [1] Spiegelhalter (1986). Probabilistic prediction in patient management and clinical trials.
       Statistics in Medicine. :doi:`10.1002/sim.4780050506`

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
    """

    def _statistic(self, data: ClassData) -> Any:
        return residual_scores(data, 1 - 2 * data.proba)


class CalibrationSlopeTest(SignedTest):
    r"""Test of whether the calibration slope is 1, whatever the intercept.

    The slope b of the regression P(y = 1) = expit(a + b · logit p) is 1 if the model is calibrated,
    below 1 if it is overconfident (predictions too close to 0 and 1), and above 1 if
    underconfident. The statistic z is 0 on average for a slope of 1, and has the sign of b − 1. A
    shift of all logits passes unseen. With more than two classes, it tests the probability of the
    predicted class.

    Parameters
    ----------
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        "less": a slope below 1 (overconfidence); "greater": above 1; "two-sided": either.

    method : {"conditional", "asymptotic"}, default="conditional"
        "conditional": the p-value is found by labels drawn from the predictions; exact.
        "asymptotic": by the limit distribution.

    n_resamples : int, default=999
        Number of draws; the smallest p-value is ``1 / (n_resamples + 1)``, or twice that.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The order of the samples does not matter.

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
        The statistic of the draws, if "conditional".

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationInTheLargeTest : Tests the level of the predictions.
    CoxTest : Tests both at once.
    SpiegelhalterTest : Tests the Brier score.

    Notes
    -----
    The regression is Cox's [1]_; its slope measures weak calibration [2]_. For predictions p with
    logits x, outcomes y, 0 or 1, and weights w, let q = expit(a + x), with the likeliest a for
    slope 1. Let :math:`v_i = q_i (1 - q_i)` and :math:`\bar x = \sum w_i v_i x_i / \sum w_i v_i`.
    Then Rao's score statistic [3]_ is

    .. math::
        z = \frac{\sum_i w_i (y_i - q_i)(x_i - \bar x)}
                 {\sqrt{\sum_i w_i^2 v_i (x_i - \bar x)^2}}.

    **Conditional.** With the values z* of B draws, the p-value is :math:`(1 + \#\{z^*_b \le z\}) /
    (1 + B)` for "less", with ≥ for "greater", and twice the smaller one for "two-sided". For the
    hypothesis that slope and intercept are calibrated it is exact, for weights that say nothing of
    the outcome beyond the prediction; a warning tells of others. Cost: :math:`O(n B)` for each
    Newton step.

    **Asymptotic.** The p-value is the tail of the standard normal distribution, for a slope of 1
    with any intercept.

    In logits, probabilities are clipped to [ε, 1 − ε], ε = 2.2e-16. If all predictions or all
    labels are equal, z is 0 and `slope_` NaN; in the first case `intercept_` is the best one with
    slope 1, in the second it is ∞ or −∞. If a threshold on the predictions separates the outcomes,
    `slope_` is ∞ or −∞ and `intercept_` NaN.

    References
    ----------
    .. [1] Cox (1958). Two further applications of a model for binary regression. Biometrika.
       :doi:`10.1093/biomet/45.3-4.562`
    .. [2] Van Calster, Nieboer, Vergouwe, De Cock, Pencina and Steyerberg (2016). A calibration
       hierarchy for risk models was defined: from utopia to empirical data. Journal of Clinical
       Epidemiology. :doi:`10.1016/j.jclinepi.2015.12.005`
    .. [3] Rao (1948). Large sample tests of statistical hypotheses concerning several parameters
       with applications to problems of estimation. Mathematical Proceedings of the Cambridge
       Philosophical Society. :doi:`10.1017/S0305004100023987`

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

    def _statistic(self, data: ClassData) -> Any:
        weight, logits = data.weight, log_odds(data.proba)  # ascending
        self.intercept_, self.slope_ = logistic_line(data)
        return partial(slope_scores, logits, weight=weight)


class CoxTest(ClassicalTest):
    r"""Cox's test of whether a logistic regression on the logit leaves the predictions as they are.

    The regression P(y = 1) = expit(intercept + slope · logit p) has intercept 0 and slope 1 if the
    model is calibrated, a slope below 1 if it is overconfident, above 1 if underconfident, and
    another intercept if predictions are too high or low. It sees errors of these two kinds only.
    With more than two classes, it tests the probability of the predicted class.

    Parameters
    ----------
    method : {"conditional", "asymptotic"}, default="conditional"
        "conditional": the p-value is found by labels drawn from the predictions; exact.
        "asymptotic": by the limit distribution.

    n_resamples : int, default=999
        Number of draws; the smallest p-value is ``1 / (n_resamples + 1)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The order of the samples does not matter.

    Attributes
    ----------
    p_value_ : float
        The p-value of intercept 0 and slope 1, in (0, 1].

    statistic_ : float
        The likelihood-ratio statistic; with unequal weights, divided by their mean effect.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the draws, if "conditional".

    intercept_ : float
        The intercept of largest likelihood; it can be infinite, or NaN (see the notes).

    slope_ : float
        The slope of largest likelihood; it can be infinite, or NaN (see the notes).

    degrees_of_freedom_ : int
        2, or 1 if all predictions are equal.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationTest : Takes any statistic, of any number of classes.
    CalibrationInTheLargeTest : Tests the level of the predictions.
    CalibrationSlopeTest : Tests the slope alone.

    Notes
    -----
    The regression is Cox's [1]_; the joint test of its two parameters is that of [2]_. With weights
    w that sum to 1, and the log-likelihood :math:`\ell(a, b) = \sum_i w_i \log P_{a,b}(y_i)`, the
    statistic is

    .. math:: T = 2 \, \frac{\max_{a,b} \ell(a, b) - \ell(0, 1)}{\bar \lambda},

    where :math:`\bar \lambda` is 1/n for equal weights, and else corrects for their variance.

    **Conditional.** The p-value is :math:`(1 + \#\{T^*_b \ge T\}) / (1 + B)` with the statistics T*
    of B draws. It is exact for weights that say nothing of the outcome beyond the prediction; a
    warning tells of others. Cost: :math:`O(n B)`.

    **Asymptotic.** The p-value is that of the chi-squared distribution with two degrees of freedom,
    or, for unequal weights, of the weighted sum of two squared normal variables [3]_. Cost:
    :math:`O(n)` for each of a few Newton steps.

    In logits, probabilities are clipped to [ε, 1 − ε], ε = 2.2e-16. If all predictions are equal,
    `slope_` is NaN, and the intercept is tested alone. If a threshold on the predictions separates
    the outcomes [4]_, `slope_` is ∞ or −∞ and `intercept_` NaN. If only one outcome occurs,
    `intercept_` is ∞ or −∞ and `slope_` NaN.

    References
    ----------
    .. [1] Cox (1958). Two further applications of a model for binary regression. Biometrika.
       :doi:`10.1093/biomet/45.3-4.562`
    .. [2] Miller, Hui and Tierney (1991). Validation techniques for logistic regression models.
       Statistics in Medicine. :doi:`10.1002/sim.4780100805`
    .. [3] Rao and Scott (1984). On Chi-Squared Tests for Multiway Contingency Tables with Cell
       Proportions Estimated from Survey Data. Annals of Statistics. :doi:`10.1214/aos/1176346391`
    .. [4] Albert and Anderson (1984). On the existence of maximum likelihood estimates in logistic
       regression models. Biometrika. :doi:`10.1093/biomet/71.1.1`

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
    """

    _n_arrays = 4

    def _statistic(self, data: ClassData) -> Any:
        weight, logits = data.weight, log_odds(data.proba)  # ascending
        self.intercept_, self.slope_ = logistic_line(data)
        if logits[0] == logits[-1]:
            self.degrees_of_freedom_ = 1
            scale, self._spread = data.inverse_effective_size, 0.0
        else:
            self.degrees_of_freedom_ = 2
            scale, self._spread = _null_scales(logits, weight)
        curve = LikelihoodCurve.make(logits, weight) if self.method == "conditional" else None

        def statistic(labels: np.ndarray) -> Any:
            return np.maximum(2 * likelihood_gains(logits, labels, weight, curve) / scale, 0.0)

        return statistic

    def _asymptotic_p_value(self) -> float:
        if self.degrees_of_freedom_ == 1:
            return chi2.sf(self.statistic_, 1)
        return _two_squares_sf(self.statistic_, self._spread)


def _null_scales(x: np.ndarray, weight: np.ndarray) -> tuple[Any, ...]:
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


def _two_squares_sf(value: float, spread: float) -> Any:
    """P((1 + ρ) Z₁² + (1 − ρ) Z₂² > value) for independent normal variables.

    In polar coordinates: the mean over the angle of the probability that the radius is large.
    """
    cosine = np.cos((np.arange(_N_ANGLES) + 0.5) * np.pi / _N_ANGLES)
    return np.mean(np.exp(-0.5 * value / (1 + spread * cosine)))


@estimator_class()
class HosmerLemeshowTest(ClassicalTest):
    r"""Hosmer–Lemeshow test of whether outcomes and predictions agree in groups of equal mass.

    The statistic is about the number of groups if the model is calibrated, and larger if not. Value
    and verdict depend on that number; errors that cancel within a group stay unseen. With more than
    two classes, it tests the probability of the predicted class.

    Parameters
    ----------
    n_bins : int, "auto" or array-like of shape (n_bins + 1,), default=10
        Number of groups of equal mass (total weight); or edges that increase from 0 to 1, for
        groups of predictions between them. "auto": the cube root of the effective number of
        samples, rounded up.

    method : {"conditional", "asymptotic"}, default="conditional"
        "conditional": the p-value is found by labels drawn from the predictions; exact.
        "asymptotic": by the limit distribution.

    n_resamples : int, default=999
        Number of draws; the smallest p-value is ``1 / (n_resamples + 1)``.

    ddof : int, default=0
        What is subtracted from the number of groups to get the degrees of freedom, for
        "asymptotic": 0 for held-out data; 2 for a logistic regression fitted to these labels.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The order of the samples does not matter.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the draws, if "conditional".

    degrees_of_freedom_ : int
        The number of groups whose outcomes can vary, minus `ddof`.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationTest : Takes any statistic, of any number of classes.

    Notes
    -----
    For predictions p and outcomes y, 0 or 1, with weights w, let
    :math:`S_j = \sum_{i \in B_j} w_i^2` and :math:`\bar p_j = \sum_{i \in B_j} w_i^2 p_i / S_j` in
    group j. The statistic is

    .. math::
        \sum_j \frac{\left(\sum_{i \in B_j} w_i (y_i - p_i)\right)^2}
                    {S_j \, \bar p_j (1 - \bar p_j)},

    which for equal weights is the classical one [1]_.

    **Conditional.** The p-value is :math:`(1 + \#\{T^*_b \ge T\}) / (1 + B)` with the statistics T*
    of B draws. It is exact for weights that say nothing of the outcome beyond the prediction; a
    warning tells of others. Cost: :math:`O(n (B + \log n))`.

    **Asymptotic.** The p-value is that of the chi-squared distribution [2]_; groups with few
    samples of an outcome reject too often. Cost: :math:`O(n \log n)`.

    Ties are never separated, and groups can be empty. A group of predictions that are all 0 or all
    1 does not count, unless one was wrong: the statistic is then infinite.

    References
    ----------
    .. [1] Hosmer and Lemeshow (1980). Goodness of fit tests for the multiple logistic regression
       model. Communications in Statistics – Theory and Methods. :doi:`10.1080/03610928008827941`
    .. [2] Hosmer, Lemeshow and Sturdivant (2013). Applied Logistic Regression, third edition.
       Wiley. :doi:`10.1002/9781118548387`

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
    """

    _parameter_constraints = {"n_bins": [Bins(1)], "ddof": [IntegerInterval(0)]}

    n_bins: int | Literal["auto"] | ArrayLike = 10
    _: KW_ONLY
    method: Literal["conditional", "asymptotic"] = "conditional"
    n_resamples: int = 999
    ddof: int = 0

    def _statistic(self, data: ClassData) -> Any:
        proba, weight = data.proba, data.weight  # sorted, so that each group is a range
        edges = bin_edges(self.n_bins, 1 / data.inverse_effective_size)
        bins = quantile_bins(proba, weight, len(edges) - 1)
        if np.ndim(self.n_bins):
            bins = interval_bins(proba, edges)
        start = np.flatnonzero(first_of_ties(bins))
        positive = np.add.reduceat(weight**2 * proba, start)  # (B,)
        negative = np.add.reduceat(weight**2 * (1 - proba), start)
        product = positive * negative
        variance = np.divide(product, positive + negative, out=product, where=product > 0)
        n_groups = int(np.sum(variance > 0))
        check_degrees_of_freedom(n_groups, self.ddof, self.method)
        self.degrees_of_freedom_ = n_groups - self.ddof

        def statistic(labels: np.ndarray) -> Any:
            mass = labels - proba  # (R, n)
            mass *= weight
            gap = np.add.reduceat(mass, start, axis=1)
            with np.errstate(over="ignore"):  # wrong predictions next to 0
                return np.sum(z_scores(gap, variance) ** 2, axis=1)

        return statistic

    def _asymptotic_p_value(self) -> float:
        # where no outcome can vary, the statistic is 0 or infinite, and any distribution will do
        return chi2.sf(self.statistic_, max(self.degrees_of_freedom_, 1))


def check_degrees_of_freedom(n_groups: int, ddof: int, method: str) -> None:
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
