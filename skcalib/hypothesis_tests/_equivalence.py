"""The test whether a model is calibrated within a margin."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.metrics import roc_auc_score

from .._data import AnyData
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Interval, RandomState, fit_context
from ..metrics._registry import ALL_METRICS, MetricNames, find_arguments, find_entry, to_function
from ..uncertainty._measured import MeasuredModels
from ._base import HypothesisTest, as_p_value, check_test_input


@dataclass(eq=False, repr=False)
class EquivalenceTest(HypothesisTest):
    r"""Test whether the predictions are calibrated within a margin.

    The null hypothesis is that the metric is `margin` or more on the whole distribution: a small
    p-value shows that the model is calibrated *well enough*.

    Parameters
    ----------
    metric : str or callable, default="smooth_calibration_error"
        The name of a metric of :mod:`skcalib.metrics`, or a callable ``metric(y_true, y_proba,
        **metric_params) -> float``, as :func:`skcalib.uncertainty.confidence_interval` takes it; an
        error, 0 for calibrated models.

    margin : float
        Miscalibration that would matter, positive, in the units of the metric; choose it before the
        data are seen.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which `upper_limit_` is to be above the value of the metric on the whole
        distribution.

    n_resamples : int, default=199
        Number of draws of outcomes, which bound the variance of the metric from below.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. None
        for forecasts.

    random_state : int, RandomState instance or None, default=None
        Seed of these draws, for any `n_jobs`.

    n_jobs : int, default=None
        Number of jobs of joblib; see :obj:`joblib.parallel_backend`.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The metric of the data, biased upwards as most calibration errors are.

    upper_limit_ : float
        The upper confidence limit of the metric. It is at most `margin` if and only if the p-value
        is at most 1 − `confidence_level`.

    classes_ : ndarray of shape (n_classes,)
        The classes. Not for forecasts.

    n_features_in_ : int
        Number of columns of `X` (1 for forecasts).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationTest : Tests whether there is any miscalibration.
    skcalib.uncertainty.confidence_interval : With ``alternative="less"``, the same limit.

    Notes
    -----
    The test inverts the upper confidence limit of :func:`skcalib.uncertainty.confidence_interval`:
    the p-value is the largest of those that Student's t and the score interval (of a squared kernel
    error also those of its root) give the value `margin`. The limit does not subtract the upward
    bias of the metric. At least 10 samples, or groups, are needed.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.hypothesis_tests import EquivalenceTest
    >>> y, proba = make_temperature_family(2000, random_state=0)
    >>> test = EquivalenceTest(margin=0.05, random_state=0).fit(proba, y)
    >>> test.p_value_, test.upper_limit_
    (2.2...e-08, 0.0192...)
    """

    _redraws_outcomes = False

    _parameter_constraints = {
        "metric": [MetricNames("metric", ALL_METRICS), callable],
        "margin": [Interval(Real, 0, None, closed="neither")],
    }

    metric: str | Callable = "smooth_calibration_error"
    _: KW_ONLY
    margin: float
    metric_params: dict | None = None
    confidence_level: float = 0.95
    n_resamples: int = 199
    labels: ArrayLike | None = None
    random_state: RandomState = None
    n_jobs: int | None = None

    @fit_context(prefer_skip_nested_validation=False)  # the metric judges its `metric_params`
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        given: ArrayLike | None = None,
    ) -> Self:
        """Find the upper confidence limit and the p-value.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predicted probabilities; one-dimensional ones are of the last class. Or a forecast of
            a number, as :func:`skcalib.forecasts.as_forecast` takes it.

        y : array-like of shape (n_samples,)
            Labels, or outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
            Groups of samples that are not independent, such as the rows of a patient; at least 10.
            Two columns are crossed groups, such as patients and readers.

        given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
            What calibration of forecasts is conditioned on, for a metric that takes it.

        Returns
        -------
        self : object
            The fitted test.
        """
        check_is_distance(self.metric)
        multi_class = find_arguments(self.metric, self.metric_params).get("multi_class")
        data = check_test_input(self, X, y, sample_weight, groups, given, multi_class)
        measured = MeasuredModels.make(
            self.metric,
            self.metric_params,
            models=[_sort_canonically(data)],
            as_matrix=[self.n_features_in_ > 1],
            weighted=sample_weight is not None,
        )
        drawing = {"n_resamples": self.n_resamples, "random_state": self.random_state}
        limits = measured.limits(**drawing, n_jobs=self.n_jobs, name="y")
        self.statistic_ = limits.estimate
        self.upper_limit_ = measured.clip(*limits.interval(self.confidence_level, "less"))[1]
        p_value = limits.p_value(self.margin, "less") if self.margin < measured.largest else 0.0
        self.p_value_ = as_p_value(p_value)
        return self


def check_is_distance(metric: Callable | str) -> None:
    """Refuse a metric that is not 0 for calibrated models and larger for worse ones."""
    entry, function = find_entry(metric), to_function(metric)
    if function is roc_auc_score or (entry is not None and not entry.lower_is_better):
        raise ValueError(
            "metric must be 0 for calibrated models and larger for worse ones, as its upper limit "
            f"is compared with the margin; found {entry.name if entry else metric}, "
            "which has another best value. Use a calibration error, or compare both ends of an "
            "interval of clinical_calibration with your own margins."
        )


def _sort_canonically(data: AnyData) -> Any:
    """The samples in an order that does not follow theirs, so that neither do blocks of them."""
    data = data.take(np.lexsort(np.atleast_2d(data.outcome.T)))
    return data.take(data.canonical_order())
