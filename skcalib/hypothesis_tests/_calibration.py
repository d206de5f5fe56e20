"""The test of calibration, by resampling or by what is known of the kernel statistic's law."""

from dataclasses import replace
from functools import partial
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.estimators import check_fit_input
from .._kernels.functions import KERNEL_CONSTRAINTS, resolved_bandwidth
from .._kernels.squared_error import (
    CLASS_KERNEL_CONSTRAINTS,
    ESTIMATOR_CONSTRAINTS,
    SquaredKernelError,
    check_enough_for_estimator,
)
from .._redraw import batch_sizes, draw_labels
from .._sklearn import Interval, StrOptions, fit_context
from ..metrics._scorers import METRICS
from ._asymptotic import blocks_p_value, bootstrap_null, distribution_free_p_value, largest_term
from ._base import HypothesisTest
from ._statistics import MetricOfLabels

# Into so many batches, which jobs share and progress counts, go resamples evaluated one at a time.
_BATCHES = 64

# Values of the statistic that differ only by rounding count as tied.
_TIE = 1e-12


class CalibrationTest(HypothesisTest):
    r"""Test of the null hypothesis that the predictions are calibrated.

    If the model is calibrated, the labels are independent given the predictions, each drawn from
    its own prediction. Labels drawn in this way, with the predictions held fixed, give the exact
    null distribution of any statistic, and a p-value that is valid for every number of samples and
    classes. That is the default method; the others are those of the literature.

    Parameters
    ----------
    statistic : str or callable, default="skce"
        What measures miscalibration; large values speak against the hypothesis. "skce" is
        :func:`skcalib.metrics.squared_kernel_calibration_error` with `kernel`, `bandwidth`,
        `class_kernel`, `estimator` and `block_size`. Otherwise the name of a metric of
        :mod:`skcalib.metrics`, or a callable ``statistic(y_true, y_proba) -> float``. A callable
        gets resampled labels of the same type and the probabilities, in one column or in several as
        `fit` got them; not every class need occur among the labels. If `fit` gets weights, so does
        the callable, as `sample_weight`.

    method : {"conditional", "asymptotic", "distribution-free", "consistency"}, \
            default="conditional"
        How the p-value is found. "conditional": by labels drawn from the predictions as they are;
        exact. "asymptotic", for "skce" only: by the limit law of the statistic: of a mean of
        blocks for the estimators "linear" and "block", bootstrapped for "unbiased".
        "distribution-free", for "skce" only: by bounds that hold for every sample size and are
        very loose. "consistency": by predictions drawn from the predictions, and labels drawn from
        these; for comparison only, as with binned errors it rejects calibrated models nearly
        always (and with `sample_weight` draws them with their weights).

    kernel : str or callable, default="total-variation"
        Kernel of the "skce" statistic, as in
        :func:`skcalib.metrics.squared_kernel_calibration_error`.

    bandwidth : "median" or float, default="median"
        Bandwidth of the "skce" statistic.

    estimator : {"unbiased", "biased", "linear", "block"}, default="unbiased"
        Estimator of the "skce" statistic. With "linear" and "block" the result depends on the order
        of the samples.

    block_size : int, default=None
        Number of samples in a block of the estimator "block"; None means
        :math:`\lfloor\sqrt n\rfloor`.

    class_kernel : array-like of shape (n_classes, n_classes), default=None
        Positive semi-definite matrix over the classes of the "skce" statistic.

    n_resamples : int, default=999
        Number of label vectors or bootstrap samples drawn. The smallest possible p-value is then
        ``1 / (n_resamples + 1)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.

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
        The classes.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    UCMETest : A test in linear time, for many samples.
    skcalib.metrics.squared_kernel_calibration_error : The default statistic.

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

    **Consistency resampling** [2]_ also redraws the predictions. Repeated ones share their bins,
    which lowers a binned error: its null distribution lies too low, and calibrated models are
    rejected nearly always [1]_.

    **Asymptotic** [1]_. A mean over independent pairs or blocks divided by its sample standard
    deviation is asymptotically normal; the one-sided p-value is that of Student's t, which is the
    same in the limit (from about 50 samples on the size is right), and :math:`2^{-m}` if all m
    blocks are alike and positive. The unbiased estimate is a degenerate
    U-statistic under the hypothesis, whose law the bootstrap of [3]_ approximates at
    :math:`O(n^2 (K + B))`: with multinomial counts C, :math:`a = n / (n - 1)` and the terms
    :math:`h_{ij}` of the statistic, :math:`n^{-2} \sum_i C_i \sum_j (a (C_j - 1[i = j]) - 2) h_{ij}
    + n^{-2} \sum_{i,j} h_{ij}` is drawn for a times the estimate.

    **Distribution-free** [1]_. With :math:`|h_{ij}| \le b` (2 without a class kernel), values t
    have p-values of at most :math:`\exp(-\max(0, \sqrt{nt/b} - 1)^2 / 2)` for the biased estimate
    and :math:`\exp(-\lfloor n/2 \rfloor t^2 / (2 b^2))` for the unbiased and the linear one if
    :math:`t > 0`, and 1 if :math:`t \le 0`; in blocks, :math:`\lfloor n/2 \rfloor` becomes the
    number of disjoint pairs within blocks.

    The last two methods need equal weights, except the normal law.

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
    """

    _parameter_constraints: dict = {
        **KERNEL_CONSTRAINTS,
        **CLASS_KERNEL_CONSTRAINTS,
        **ESTIMATOR_CONSTRAINTS,
        "statistic": [StrOptions({"skce", *METRICS}), callable],
        "method": [StrOptions({"conditional", "asymptotic", "distribution-free", "consistency"})],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "labels": ["array-like", None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        statistic="skce",
        *,
        method="conditional",
        kernel="total-variation",
        bandwidth="median",
        estimator="unbiased",
        block_size=None,
        class_kernel=None,
        n_resamples=999,
        labels=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.statistic = statistic
        self.method = method
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.estimator = estimator
        self.block_size = block_size
        self.class_kernel = class_kernel
        self.n_resamples = n_resamples
        self.labels = labels
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find the null distribution and compute the p-value.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one-dimensional ones are of the last class.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the statistic.

        Returns
        -------
        self : object
            The fitted test.
        """
        predictions = check_fit_input(self, X, y, sample_weight)
        is_kernel = self.statistic in ("skce", "squared_kernel_calibration_error")
        check_test_method(self, predictions, is_kernel)
        if is_kernel:
            check_enough_for_estimator(predictions, self.estimator, self.block_size)
        vars(self).pop("null_distribution_", None)
        self.classes_ = predictions.classes
        if self.method in ("asymptotic", "distribution-free"):
            self._fit_kernel_law(predictions)
        else:
            self._fit_by_resampling(predictions, is_kernel, weighted=sample_weight is not None)
        return self

    def _fit_kernel_law(self, predictions):
        error = SquaredKernelError(predictions, **self._kernel_options())
        self.statistic_ = float(error(predictions.label[None])[0])
        if self.method == "distribution-free":
            self.p_value_ = distribution_free_p_value(
                self.statistic_,
                self.estimator,
                len(predictions.label),
                error.block_size,
                largest_term(self.class_kernel, len(predictions.classes)),
            )
        elif error.block_size:
            sums = error.block_sums(predictions.label[None])[:, 0]
            self.p_value_ = blocks_p_value(sums, error.pair_weight)
        else:
            self.null_distribution_ = bootstrap_null(
                error,
                predictions.label,
                _canonical_order(predictions),
                self.n_resamples,
                check_random_state(self.random_state),
            )
            self.p_value_ = _monte_carlo_p_value(self.statistic_, self.null_distribution_)

    def _fit_by_resampling(self, predictions, is_kernel, weighted):
        as_matrix = self.n_features_in_ > 1
        if is_kernel:
            options = self._kernel_options()
            options["bandwidth"] = resolved_bandwidth(predictions, self.kernel, self.bandwidth)
            statistic_of = partial(SquaredKernelError, **options)
            at_least = 1
        else:
            metric = METRICS.get(self.statistic, self.statistic)
            statistic_of = partial(
                MetricOfLabels,
                metric=metric,
                name_classes=metric is not self.statistic,
                as_matrix=as_matrix,
                weighted=weighted,
            )
            at_least = _BATCHES
        redraw = self.method == "consistency"
        statistic = statistic_of(predictions)
        sizes = batch_sizes(
            self.n_resamples, predictions.proba.size, _BATCHES if redraw else at_least
        )
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=len(sizes))
        order = _canonical_order(predictions)
        batch = (
            partial(_consistency_batch, statistic_of)
            if redraw
            else partial(_conditional_batch, statistic)
        )
        null = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(batch)(predictions, order, size, seed)
            for size, seed in zip(sizes, seeds, strict=True)
        )
        self.statistic_ = float(statistic(predictions.label[None])[0])
        self.null_distribution_ = np.concatenate(null)
        self.p_value_ = _monte_carlo_p_value(self.statistic_, self.null_distribution_)

    def _kernel_options(self):
        return {
            name: getattr(self, name)
            for name in ("kernel", "bandwidth", "class_kernel", "estimator", "block_size")
        }


def _canonical_order(predictions):
    """Order of the samples in which labels are drawn, the same however they come."""
    proba = predictions.proba.reshape(len(predictions.proba), -1)
    return np.lexsort((predictions.weight, *proba.T))


def _conditional_batch(statistic, predictions, order, n_draws, seed):
    drawn = draw_labels(predictions.proba[order], n_draws, np.random.default_rng(seed))
    labels = np.empty_like(drawn)
    labels[:, order] = drawn
    return statistic(labels)


def _consistency_batch(statistic_of, predictions, order, n_draws, seed):
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(n_draws):
        rows = order[generator.integers(len(order), size=len(order))]
        weight = predictions.weight[rows]
        label = draw_labels(predictions.proba[rows], 1, generator)
        resample = replace(
            predictions,
            proba=predictions.proba[rows],
            label=label[0],
            weight=weight / weight.sum(),
        )
        values.append(statistic_of(resample)(label)[0])
    return np.array(values)


def _monte_carlo_p_value(statistic, null):
    values = np.append(null, statistic)
    if not np.isfinite(values).all():
        raise ValueError(
            f"statistic must be finite for every label vector; found {statistic!r} for the data "
            f"and {np.sum(~np.isfinite(null))} value(s) that are not finite among the resampled "
            "ones. If it fails where a class does not occur among the labels, pass it the "
            "classes (functools.partial)."
        )
    slack = _TIE * np.abs(values).max()
    return (1 + int(np.sum(null >= statistic - slack))) / (1 + len(null))


def check_test_method(test, predictions, is_kernel):
    """Limit laws and bounds are known of the kernel statistic, and mostly of equal weights."""
    if not is_kernel:
        _check_no_kernel_options(test)
    if test.method in ("conditional", "consistency"):
        return
    if not is_kernel:
        raise ValueError(
            f"method={test.method!r} needs statistic='skce', whose law is known; found "
            f"statistic={test.statistic!r}. Use method='conditional', which takes any statistic."
        )
    if test.method == "distribution-free" and callable(test.kernel):
        raise ValueError(
            "method='distribution-free' needs a named kernel, which is at most 1; found a "
            f"callable, {test.kernel!r}. Use method='conditional'."
        )
    if test.method == "asymptotic" and test.estimator == "biased":
        raise ValueError(
            "method='asymptotic' needs an unbiased estimator; found estimator='biased'. Use "
            "'unbiased', or method='conditional'."
        )
    in_blocks = test.estimator in ("linear", "block")
    if not (test.method == "asymptotic" and in_blocks) and np.ptp(predictions.weight) > 0:
        raise ValueError(
            f"method={test.method!r} with estimator={test.estimator!r} needs equal weights; found "
            "a sample_weight that varies. Use method='conditional'."
        )
    n, smallest = len(predictions.weight), 4
    if test.method == "asymptotic" and in_blocks and test.block_size is not None:
        smallest = 2 * test.block_size if test.estimator == "block" else 4
    if test.method == "asymptotic" and in_blocks and n < smallest:
        raise ValueError(
            f"method='asymptotic' with estimator={test.estimator!r} needs at least two blocks, "
            f"that is {smallest} samples; found {n}. Use smaller blocks, or method='conditional'."
        )


def _check_no_kernel_options(test):
    """They would be ignored."""
    defaults = type(test)().get_params()
    for name in ("kernel", "bandwidth", "class_kernel", "estimator", "block_size"):
        value = getattr(test, name)
        if not (isinstance(value, str) and value == defaults[name]) and value is not defaults[name]:
            raise ValueError(
                f"{name} is an option of statistic='skce'; found {name}={value!r} with "
                f"statistic={test.statistic!r}. Leave it out, or pass the metric with its options "
                "(functools.partial)."
            )
