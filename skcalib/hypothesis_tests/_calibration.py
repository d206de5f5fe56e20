"""The test of calibration, by resampling or by known laws of the kernel statistic."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.constraints import IntegerInterval
from .._kernels.functions import KERNEL_CONSTRAINTS, KERNELS
from .._kernels.matching_checks import FEATURE_KERNELS
from .._kernels.squared_error import ESTIMATOR_CONSTRAINTS
from .._redraw import seeded_batches
from .._sklearn import StrOptions, fit_context
from .._types import RandomState
from ..metrics._statistic import MetricStatistic
from ._asymptotic import LAWS, check_law
from ._base import HypothesisTest, check_test_input, monte_carlo_p_value
from ._statistics import STATISTICS, check_knows_draws, statistic_of


class CalibrationTest(HypothesisTest):
    r"""Test of the null hypothesis that the predictions are calibrated.

    If the model is calibrated, the labels are independent given the predictions, each drawn from
    its own prediction. Labels drawn in this way, with the predictions held fixed, give the exact
    null distribution of any statistic, and a p-value that is valid for every number of samples and
    classes. That is the default method; the others are those of the literature. Forecasts of a
    number are tested in the same way, by outcomes drawn from them.

    Parameters
    ----------
    statistic : str or callable, default="skce"
        What measures miscalibration; large values speak against the hypothesis. "skce" is
        :func:`skcalib.metrics.squared_kernel_calibration_error` for classes, and
        :func:`skcalib.metrics.distribution_matching_error` for forecasts. Otherwise the name of a
        metric of :mod:`skcalib.metrics`, or a callable ``statistic(y_true, y_proba) -> float``. A
        callable gets resampled labels of the same type, and the probabilities in one column or in
        several as `fit` got them. Not every class need occur among the labels: if the callable has
        an argument `labels`, it gets the classes. For forecasts it gets resampled outcomes and
        the forecasts. If `fit` gets weights, so does the callable, as `sample_weight`.

    method : {"conditional", "asymptotic", "distribution-free", "consistency"}, \
            default="conditional"
        How the p-value is found. "conditional": by outcomes drawn from the predictions as they are;
        exact. "asymptotic", for "skce" and "decision_calibration_error" only: by the limit law of
        the statistic, which is that of a mean of blocks for the estimators "linear" and "block",
        and is bootstrapped for "unbiased" and for decisions.
        "distribution-free", for "skce" only: by bounds that hold for every sample size and are very
        loose. "consistency": by predictions drawn from the predictions, and labels drawn from
        these; for comparison only, as with binned errors it rejects calibrated models nearly
        always. A prediction that is drawn keeps its `sample_weight`.

    kernel : str or callable, default="total-variation"
        Kernel of the "skce" statistic, as in
        :func:`skcalib.metrics.squared_kernel_calibration_error`. Another statistic gets it too if
        it is not the default, and raises an error if it has no kernel. For forecasts the default
        stands for "rbf", and others are those of
        :func:`skcalib.metrics.distribution_matching_error`.

    bandwidth : "median" or float, default="median"
        Bandwidth of the "skce" statistic, handed on like `kernel`.

    estimator : {"unbiased", "biased", "linear", "block"}, default="unbiased"
        Estimator of the "skce" statistic, handed on like `kernel`. With "linear" and "block" the
        result depends on the order of the samples.

    metric_params : dict, default=None
        Further arguments of the statistic, as the metric of that name takes them: `block_size` and
        `class_kernel` of "skce", `n_bins` of "expected_calibration_error", `calibration` of
        "skce" for forecasts. A callable gets them as keyword arguments.

    n_resamples : int, default=999
        Number of vectors of labels or outcomes, or of bootstrap samples, that are drawn. The
        smallest possible p-value is then ``1 / (n_resamples + 1)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. None
        for forecasts.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The result does not depend on `n_jobs` nor, for a statistic that does
        not depend on the order of the samples, on that order.

    n_jobs : int, default=None
        Number of jobs among which joblib spreads the draws; None means 1 unless in a
        :obj:`joblib.parallel_backend` context. The bootstrap of "asymptotic" runs in one job.

    verbose : int, default=0
        Progress messages of joblib; 0 means none.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic of the data.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the drawn samples, if any are drawn: not with "distribution-free", nor with
        "asymptotic" for the estimators "linear" and "block".

    classes_ : ndarray of shape (n_classes,)
        The classes. Not for forecasts.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional, as forecasts are).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    UCMETest : A test in linear time, for many samples.
    skcalib.metrics.squared_kernel_calibration_error : The default statistic for classes.
    skcalib.metrics.distribution_matching_error : The default statistic for forecasts.

    Notes
    -----
    **Conditional.** With B resamples the p-value is :math:`(1 + \#\{T^*_b \ge T\}) / (1 + B)`,
    where values that differ by rounding count as equal. The test is exact: at any level
    :math:`\alpha` for which :math:`\alpha (B + 1)` is a whole number, and a statistic without
    ties, it rejects a calibrated model with probability :math:`\alpha`; with ties, with at most
    that. The "skce" statistic of all resamples is computed in matrix products: for two classes
    (except with the kernel "rbf" or a callable, or in blocks) at :math:`O(n (B + \log n))`,
    otherwise :math:`O(n^2 K B)`, or n times the size of a block; memory is :math:`O(n K)` and a
    few times 32 MB for each job.

    **Which hypothesis is tested, for forecasts.** The draws are from the forecast :math:`Q_i` of
    each sample, independently: the hypothesis is auto-calibration, :math:`y_i \mid Q_i \sim Q_i`
    (and :math:`y_i \mid x_i \sim Q_i` if that is what is `given`). It is tested exactly at every
    number of samples, with any statistic. What the statistic measures decides which departures are
    found, not what is assumed. For quantile and local calibration the test is exact under the
    weaker hypothesis as well, that PITs are uniform (given the features). Marginal, group,
    decision and threshold calibration may hold while auto-calibration does not, and then the test
    rejects too often: :math:`N(-x, \sigma^2)` forecast for :math:`N(x, \sigma^2)` is marginally
    calibrated, and is rejected at the level 0.05 with probability 0.167. The method "asymptotic"
    serves these weaker hypotheses.

    An ensemble without weights is calibrated if its outcome is exchangeable with the members. Then
    it is swapped with one of the s + 1 values that is drawn uniformly, itself included, which
    changes the forecast as well. An outcome that was drawn from the members themselves would never
    lie outside of them, and calibrated ensembles would be rejected nearly always. With weights the
    outcome is drawn from the members. For a quantile grid a cell between quantiles is drawn. A
    statistic that depends on where in its cell an outcome lies, such as the CRPS, is refused.
    Whatever a statistic takes from the data, such as a bandwidth, it takes from each draw anew.
    Outcomes must be independent given the forecasts; those of a time series seldom are.

    **Consistency resampling** [2]_ also redraws the predictions. Repeated ones share their bins,
    which lowers a binned error: its null distribution lies too low, and calibrated models are
    rejected nearly always [1]_.

    **Asymptotic** [1]_. A mean over independent pairs or blocks divided by its sample standard
    deviation is asymptotically normal; the one-sided p-value is that of Student's t, which is the
    same in the limit (from about 50 samples on the size is right), and :math:`2^{-m}` if all m
    blocks are alike and positive. The bootstrap of the decision calibration error is that of its
    mean gaps, centred at those of the data. The unbiased estimate is a degenerate
    U-statistic under the hypothesis, whose law the bootstrap of [3]_ approximates at
    :math:`O(n^2 (K + B))`: with multinomial counts C, :math:`a = n / (n - 1)` and the terms
    :math:`h_{ij}` of the statistic, :math:`n^{-2} \sum_i C_i \sum_j (a (C_j - 1[i = j]) - 2) h_{ij}
    + n^{-2} \sum_{i,j} h_{ij}` is drawn for a times the estimate.

    **Distribution-free** [1]_. With :math:`|h_{ij}| \le b` (2 without a class kernel), values t
    have p-values of at most :math:`\exp(-\max(0, \sqrt{nt/b} - 1)^2 / 2)` for the biased estimate
    and :math:`\exp(-\lfloor n/2 \rfloor t^2 / (2 b^2))` for the unbiased and the linear one if
    :math:`t > 0`, and 1 if :math:`t \le 0`; in blocks, :math:`\lfloor n/2 \rfloor` becomes the
    number of disjoint pairs within blocks.

    "asymptotic" and "distribution-free" need equal weights, except "asymptotic" with the estimators
    "linear" and "block". For forecasts b is 2 with "rbf", "laplacian" and the "loss" of numbers, 1
    with "thresholds" and 4 with "tanh"; others have no bound.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten and D. Zachariah (2019). Calibration tests in multi-class
       classification: A unifying framework. NeurIPS 2019. :arxiv:`1910.11385`
    .. [2] J. Bröcker and L. A. Smith (2007). Increasing the Reliability of Reliability Diagrams.
       Weather and Forecasting 22(3). :doi:`10.1175/WAF993.1`
    .. [3] M. A. Arcones and E. Giné (1992). On the Bootstrap of U and V Statistics. Annals of
       Statistics 20(2). :doi:`10.1214/aos/1176348650`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import CalibrationTest
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < proba**2
    >>> CalibrationTest(random_state=0).fit(proba, y).p_value_
    0.001

    A normal forecast that is too narrow:

    >>> from skcalib.forecasts import GaussianForecast
    >>> mean = rng.normal(size=100)
    >>> y = rng.normal(mean, 1.0)
    >>> test = CalibrationTest("quantile_calibration_error", random_state=0)
    >>> test.fit(GaussianForecast(mean, 0.5), y).p_value_
    0.001
    """

    null_distribution_: np.ndarray

    _parameter_constraints: dict = {
        **KERNEL_CONSTRAINTS,
        "kernel": [StrOptions({*KERNELS, "energy", *FEATURE_KERNELS}), callable],
        "estimator": ESTIMATOR_CONSTRAINTS["estimator"],
        "statistic": [StrOptions(STATISTICS), callable],
        "method": [StrOptions({"conditional", "consistency", *LAWS})],
        "metric_params": [dict, None],
        "n_resamples": [IntegerInterval(1)],
        "labels": ["array-like", None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        statistic: str | Callable = "skce",
        *,
        method: str = "conditional",
        kernel: str | Callable = "total-variation",
        bandwidth: float | str = "median",
        estimator: str = "unbiased",
        metric_params: dict | None = None,
        n_resamples: int = 999,
        labels: ArrayLike | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.statistic = statistic
        self.method = method
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.estimator = estimator
        self.metric_params = metric_params
        self.n_resamples = n_resamples
        self.labels = labels
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)  # the metric judges its `metric_params`
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        given: ArrayLike | None = None,
    ) -> Self:
        """Find the null distribution and compute the p-value.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predicted probabilities; one-dimensional ones are of the last class. Or a forecast of
            a number, as :func:`skcalib.forecasts.as_forecast` takes it.

        y : array-like of shape (n_samples,)
            Labels, or outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the statistic.

        given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
            What calibration of forecasts is conditioned on, for a statistic that has an argument
            of this name: groups, or features.

        Returns
        -------
        self : object
            The fitted test.
        """
        data = check_test_input(self, X, y, sample_weight, given)
        statistic = statistic_of(self, data, weighted=sample_weight is not None)
        if self.method in LAWS:
            check_law(self, statistic)
        else:
            check_knows_draws(statistic, data, self.statistic)
        self.statistic_ = float(check_statistic_values(statistic(data.outcome[None]))[0])
        if self.method in LAWS:
            self.p_value_, null = LAWS[self.method](statistic, self.statistic_, self)
        else:
            null = self._redraw(data, statistic)
            self.p_value_ = monte_carlo_p_value(self.statistic_, null, statistic.resolution)
        if hasattr(self, "null_distribution_"):
            del self.null_distribution_
        if null is not None:
            self.null_distribution_ = null
        return self

    def _redraw(self, data, statistic):
        """The statistic of outcomes drawn from the predictions, (n_resamples,)."""
        evaluate, least_batches = _of_redrawn_outcomes, statistic.least_batches
        if self.method == "consistency":
            evaluate, least_batches = _of_resampled_data, MetricStatistic.least_batches
        batches = seeded_batches(
            self.n_resamples,
            statistic.numbers_per_draw,
            least_batches,
            check_random_state(self.random_state),
        )
        order = data.canonical_order()
        if self.method == "conditional" and not statistic.depends_on_order:
            data = data.take(order)
            statistic, order = statistic.on(data), None
        null = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(evaluate)(statistic, data, order, *batch) for batch in batches
        )
        return check_statistic_values(np.concatenate(null))


def _of_redrawn_outcomes(statistic, data, order, size, seed):
    """Values for outcomes drawn in the canonical order; if `order` is None, the data are in it."""
    generator = np.random.default_rng(seed)
    if order is None:
        return statistic(data.redraw(generator, size))
    drawn = data.take(order).redraw(generator, size)
    outcomes = np.empty_like(drawn)
    outcomes[:, order] = drawn
    return statistic(outcomes)


def _of_resampled_data(statistic, data, order, size, seed):
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(size):
        resample = data.take(order[generator.integers(len(order), size=len(order))])
        values.append(statistic.on(resample)(resample.redraw(generator, 1))[0])
    return np.array(values)


def check_statistic_values(values):
    """What a statistic returned for several vectors of outcomes, (R,)."""
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"statistic must return one number; found values of shape {values.shape[1:]} and type "
            f"{values.dtype}. Wrap it in a function that returns a float."
        )
    return values.astype(np.float64, copy=False)
