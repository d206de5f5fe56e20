"""Tests whose null distribution comes from drawing labels."""

from functools import partial
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._numerics.null import draw_labels
from .._validation import (
    Interval,
    StrOptions,
    check_fit_input,
    check_statistic_values,
    check_two_samples,
    fit_context,
)
from ..metrics._kernel import KERNEL_CONSTRAINTS, SquaredKernelError
from ..metrics._scorers import METRICS

# Entries in the residuals of one batch of resamples (32 MB).
_BATCH = 2**22

# Into so many batches, which jobs share and progress counts, go resamples evaluated one at a time.
_BATCHES = 64

# Values of the statistic that differ only by rounding count as tied.
_TIE = 1e-12


class CalibrationTest(BaseEstimator):
    r"""Test of the null hypothesis that the predictions are calibrated.

    If the model is calibrated, the labels are independent given the predictions, each drawn from
    its own prediction. Labels drawn in this way, with the predictions held fixed, give the exact
    null distribution of any statistic, and a p-value that is valid for every number of samples and
    classes.

    Parameters
    ----------
    statistic : str or callable, default="skce"
        What measures miscalibration; large values speak against the hypothesis. "skce" is
        :func:`skcalib.metrics.squared_kernel_calibration_error` with `kernel`, `bandwidth` and
        `estimator`. Otherwise the name of a metric of :mod:`skcalib.metrics`, or a callable
        ``statistic(y_true, y_proba) -> float``. A callable gets resampled labels of the same type
        and the probabilities, in one column or in several as `fit` got them; not every class need
        occur among the labels. If `fit` gets weights, so does the callable, as `sample_weight`.

    method : {"conditional"}, default="conditional"
        How the p-value is found: by labels drawn from the predictions as they are.

    kernel : str or callable, default="total-variation"
        Kernel of the "skce" statistic, as in
        :func:`skcalib.metrics.squared_kernel_calibration_error`.

    bandwidth : "median" or float, default="median"
        Bandwidth of the "skce" statistic.

    estimator : {"unbiased", "biased"}, default="unbiased"
        Estimator of the "skce" statistic.

    n_resamples : int, default=999
        Number of label vectors drawn. The smallest possible p-value is ``1 / (n_resamples + 1)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The result does not depend on `n_jobs` nor, for a statistic that does
        not depend on the order of the samples, on that order.

    n_jobs : int, default=None
        Number of jobs among which joblib spreads the draws; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    verbose : int, default=0
        Progress messages of joblib; 0 means none.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic of the data.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the drawn labels.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    skcalib.metrics.squared_kernel_calibration_error : The default statistic.

    Notes
    -----
    With B resamples the p-value is :math:`(1 + \#\{T^*_b \ge T\}) / (1 + B)`, where values that
    differ by rounding count as equal. The test is exact: at any level :math:`\alpha` for which
    :math:`\alpha (B + 1)` is a whole number, and a statistic without ties, it rejects a calibrated
    model with probability :math:`\alpha`; with ties, with at most that. The "skce" statistic of
    all resamples is computed in matrix products: for two classes (except with the kernel "rbf" or
    a callable) at :math:`O(n (B + \log n))`, otherwise :math:`O(n^2 K B)`; memory is :math:`O(n
    K)` and a few times 32 MB for each job.

    This is not consistency resampling [2]_, which also redraws the predictions and rejects
    calibrated models too often [1]_.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten and D. Zachariah (2019). Calibration tests in multi-class
       classification: A unifying framework. NeurIPS 2019. :arxiv:`1910.11385`
    .. [2] J. Bröcker and L. A. Smith (2007). Increasing the Reliability of Reliability Diagrams.
       Weather and Forecasting 22(3). :doi:`10.1175/WAF993.1`

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
        "statistic": [StrOptions({"skce", *METRICS}), callable],
        "method": [StrOptions({"conditional"})],
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
        self.n_resamples = n_resamples
        self.labels = labels
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Draw the null distribution and compute the p-value.

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
        statistic, n_batches = self._statistic_of_labels(
            predictions, as_matrix=self.n_features_in_ > 1, weighted=sample_weight is not None
        )
        sizes = _batch_sizes(self.n_resamples, predictions.proba.size, n_batches)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=len(sizes))
        order = _canonical_order(predictions)
        proba = predictions.proba[order]
        null = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(_null_batch)(statistic, proba, order, size, seed)
            for size, seed in zip(sizes, seeds, strict=True)
        )
        self.classes_ = predictions.classes
        self.statistic_ = float(statistic(predictions.label[None])[0])
        self.null_distribution_ = np.concatenate(null)
        self.p_value_ = _monte_carlo_p_value(self.statistic_, self.null_distribution_)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags

    def _statistic_of_labels(self, predictions, as_matrix, weighted):
        """The statistic as a function of label vectors (R, n), and the least number of batches."""
        metric = self.statistic
        if metric in ("skce", "squared_kernel_calibration_error"):
            if self.estimator == "unbiased":
                check_two_samples(predictions)
            error = SquaredKernelError(predictions, self.kernel, self.bandwidth, self.estimator)
            return error, 1
        if not callable(metric):
            metric = partial(METRICS[metric], labels=predictions.classes)
        if weighted:
            metric = partial(metric, sample_weight=predictions.weight)
        proba = (predictions.matrix if as_matrix else predictions.proba).view()
        proba.flags.writeable = False  # it may be the caller's
        one_by_one = partial(
            _metric_of_labels, metric=metric, proba=proba, classes=predictions.classes
        )
        return one_by_one, _BATCHES


def _metric_of_labels(labels, metric, proba, classes):
    values = np.array([metric(classes[row], proba) for row in labels])
    return check_statistic_values(values)


def _batch_sizes(n_resamples, entries_per_resample, at_least):
    largest = max(1, _BATCH // entries_per_resample)
    n_batches = min(n_resamples, max(at_least, -(-n_resamples // largest)))
    small, n_larger = divmod(n_resamples, n_batches)
    return [small + (batch < n_larger) for batch in range(n_batches)]


def _canonical_order(predictions):
    """Order of the samples in which labels are drawn, the same however they come."""
    proba = predictions.proba.reshape(len(predictions.proba), -1)
    return np.lexsort((predictions.weight, *proba.T))


def _null_batch(statistic, ordered_proba, order, n_draws, seed):
    drawn = draw_labels(ordered_proba, n_draws, np.random.default_rng(seed))
    labels = np.empty_like(drawn)
    labels[:, order] = drawn
    return statistic(labels)


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
