"""The test of calibration, by resampling or by known laws of the kernel statistic."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone

from .._data import AnyData, MultilabelData
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import RandomState, fit_context
from .._statistics.base import Statistic
from ..metrics._registry import MetricNames, find_arguments, metrics_of_counts, unwrap_partial
from ..metrics._statistic import RESIDUAL_STATISTICS, STATISTICS, make_statistic
from . import _base
from ._asymptotic import NULL_METHODS, check_null_method

# Options of the statistic that are parameters of the test.
_STATISTIC_OPTIONS = ("kernel", "bandwidth", "estimation")

# Values of a statistic that differ by less than this share are equal but for rounding.
_STATISTIC_RTOL = 1e-9


@dataclass(eq=False, repr=False)
class CalibrationTest(_base.HypothesisTest):
    r"""Test of the null hypothesis that the predictions are calibrated.

    Labels drawn from the predictions, or outcomes from forecasts, give the exact null distribution
    of any statistic, and a valid p-value for every number of samples and classes.

    Parameters
    ----------
    statistic : str or callable, default="auto"
        What measures miscalibration: large if there is any. "auto" is "omnibus" with the default
        method, else "skce". "omnibus" joins statistics for several kinds of error. "skce" is the
        squared kernel error of classes, or the distribution matching error of forecasts. "log_loss"
        and "brier_score_loss", for classes, are the loss minus its expectation: positive for
        overconfident predictions. Or a metric of :mod:`skcalib.metrics` by name, or a callable
        ``statistic(y_true, y_proba) -> float``, which also gets `sample_weight` if `fit` does, and
        `labels` if it takes them.

    method : {"conditional", "asymptotic", "distribution-free", "consistency"}, \
            default="conditional"
        "conditional": the p-value is found by outcomes drawn from the predictions; exact.
        "asymptotic": for "skce" and "decision_calibration_error". "distribution-free": for "skce",
        by loose bounds. "consistency": by drawing the predictions, too; for comparison, as it
        rejects too often [2]_.

    kernel : str or callable, default=None
        Kernel of "skce", as :func:`skcalib.metrics.squared_kernel_calibration_error` or
        :func:`skcalib.metrics.distribution_matching_error` takes it.

    bandwidth : "median", "multiple" or float, default=None
        Bandwidth of the kernel. "multiple", for classes and "skce", joins the median distance, 1/4
        and 1/16 of it.

    estimation : {"unbiased", "biased", "linear", "block"}, default=None
        Which pairs the statistic averages; "linear" and "block" depend on the order of the samples.

    metric_params : dict, default=None
        Further arguments of the statistic, such as `n_bins` of "expected_calibration_error".

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        For the two losses: "greater" finds overconfident predictions, "less" underconfident ones.

    n_resamples : int, default=999
        Number of draws; the smallest p-value is ``1 / (n_resamples + 1)``, or twice that.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. None
        for forecasts.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws, for any `n_jobs`.

    n_jobs : int, default=None
        Number of jobs of joblib; see :obj:`joblib.parallel_backend`.

    verbose : int, default=0
        Above 0, progress is shown.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic of the data; of several components, their combination.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the draws.

    component_p_values_ : dict of str to float
        Of "omnibus", or several bandwidths: the p-value of each component.

    label_p_values_ : dict
        With ``multi_class=Multilabel()`` in `metric_params`: for each label, its p-value times
        their number, at most 1.

    label_tests_ : dict
        Also with it: the fitted test of each label alone.

    adjusted_p_values_ : dict of str to float
        The p-values of the components, adjusted for their number [4]_.

    component_statistics_ : dict of str to float
        The values of the components.

    component_null_distributions_ : dict of str to ndarray of shape (n_resamples,)
        The same of the draws.

    kernel_method_ : {"exact", "pooled", "fourier"}
        How the kernel error was computed: large samples of two classes are pooled in cells, those
        of more use Fourier frequencies.

    classes_ : ndarray of shape (n_classes,)
        The classes. Not for forecasts.

    n_features_in_ : int
        Number of columns of `X` (1 for forecasts).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    UCMETest : A test in linear time, for many samples.
    skcalib.metrics.squared_kernel_calibration_error : The statistic "skce" for classes.
    skcalib.metrics.distribution_matching_error : The statistic "skce" for forecasts.

    Notes
    -----
    **Conditional.** With B draws the p-value is :math:`(1 + \#\{T^*_b \ge T\}) / (1 + B)`; values
    that differ by rounding count as equal.

    **Omnibus.** The components of classes are "skce"; "log_loss"; "level_and_spread", the largest
    score statistic of intercept and slope; and "local", gaps between confidence and accuracy in
    groups of equal mass. Those of forecasts are "skce", given mean and standard deviation; "pit",
    the local matching error of probability integral transforms; and "bias_and_spread", the largest
    score of bias, spread or skewness. `statistic_` is a weighted mean of about the reciprocal
    p-values, in which "skce" counts half.

    **Forecasts.** The hypothesis is auto-calibration: :math:`y_i \mid Q_i \sim Q_i`, independently,
    for the forecast :math:`Q_i`. To test weaker notions (marginal, group, decision, threshold), use
    "asymptotic". The CRPS of quantiles is refused.

    **Groups.** Residuals of a group get a common random sign, for each of two columns in turn, or
    outcomes are drawn with the dependence that the groups show, of both columns at once; the
    largest p-value counts. For "omnibus", "skce" and the two losses. For a series, pass blocks.

    **Weights.** Outcomes are drawn with the weights held. That is exact for weights that say
    nothing of the outcome beyond the prediction; a warning tells of others.

    **Asymptotic and distribution-free** [1]_. The law of "linear" and "block" is Student's t, that
    of "unbiased" and of decisions is bootstrapped [3]_, for equal weights.

    **Cost.** For B draws, "skce" costs :math:`O(n (B + \log n))` for two classes, else :math:`O(n^2
    K B)`, or :math:`O(n D B)` with ``metric_params={"method": "fourier"}`` and D frequencies; the
    bootstrap of "asymptotic" costs :math:`O(n^2 (K + B))`, for two classes, too.

    See the theory page *why the tests are exact*.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification:
       A unifying framework. NeurIPS. :arxiv:`1910.11385`
    .. [2] Bröcker and Smith (2007). Increasing the Reliability of Reliability Diagrams. Weather and
       Forecasting. :doi:`10.1175/WAF993.1`
    .. [3] Arcones and Giné (1992). On the Bootstrap of U and V Statistics. Annals of Statistics.
       :doi:`10.1214/aos/1176348650`
    .. [4] Westfall and Young (1993). Resampling-Based Multiple Testing. Wiley.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import CalibrationTest
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < proba**2
    >>> test = CalibrationTest(random_state=0).fit(proba, y)
    >>> test.p_value_
    0.001
    >>> test.adjusted_p_values_
    {'skce': 0.001, 'log_loss': 0.75..., 'level_and_spread': 0.001, 'local': 0.001}
    """

    _parameter_constraints = {
        "statistic": [MetricNames("statistic", STATISTICS), callable],
        "estimation": "no_validation",  # the statistic checks its options
    }

    statistic: str | Callable = "auto"
    _: KW_ONLY
    method: Literal["conditional", "consistency", "asymptotic", "distribution-free"] = "conditional"
    kernel: str | Callable | None = None
    bandwidth: float | Literal["median", "multiple"] | None = None
    estimation: Literal["unbiased", "biased", "linear", "block"] | None = None
    metric_params: dict | None = None
    alternative: Literal["two-sided", "less", "greater"] = "two-sided"
    n_resamples: int = 999
    labels: ArrayLike | None = None
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    @fit_context(prefer_skip_nested_validation=False)  # the metric judges its `metric_params`
    def fit(
        self,
        X: object,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        given: ArrayLike | None = None,
    ) -> Self:
        """Find the null distribution and compute the p-value.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predicted probabilities; one-dimensional ones are of the last class. Or a forecast of a
            number, as :func:`skcalib.forecasts.as_forecast` takes it. Or a
            :class:`skcalib.streaming.CalibrationState` of two classes, alone, with equal weights
            and all predictions on its grid.

        y : array-like of shape (n_samples,)
            Labels, or outcomes. None for a state, which holds them.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
            Labels of groups, such as patients or sites, whose samples are not independent of each
            other (see the notes); two columns are crossed groups, such as patients and readers.

        given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
            What calibration of forecasts is conditioned on: groups, or features. Numbers are
            features, so pass the codes of groups as strings. For "omnibus", and statistics that
            have an argument of this name.

        Returns
        -------
        self : object
            The fitted test.
        """
        if hasattr(X, "_to_test_data"):  # a state of a stream, which holds counts
            check_takes_no_samples(
                self, y=y, sample_weight=sample_weight, groups=groups, given=given
            )
            data: Any = X._to_test_data(find_arguments(self.statistic, self.metric_params))
            _base.delete_results(self)
            self.classes_, self.n_features_in_ = data.classes, 1
        else:
            lens = find_arguments(self.statistic, self.metric_params).get("multi_class")
            data = _base.check_test_input(self, X, y, sample_weight, groups, given, lens)
        as_matrix, weighted = self.n_features_in_ > 1, sample_weight is not None
        if isinstance(data, MultilabelData):
            return self._fit_labels(data, weighted)
        return self._fit(data, as_matrix=as_matrix, weighted=weighted)

    def _fit(self, data: AnyData, *, as_matrix: bool = False, weighted: bool = True) -> Self:
        """Fit to checked data; the options say what a metric that is not ours gets."""
        name, options = self._resolve_statistic()
        call_options: Any = {"as_matrix": as_matrix, "weighted": weighted}
        call_options |= {"n_resamples": self.n_resamples, "random_state": self.random_state}
        statistic = make_statistic(name, data, options, **call_options)
        data = statistic.data  # where the statistic needs them
        self._check(statistic, data)
        value = statistic(data.outcome[None, :])
        if self.method in NULL_METHODS:
            self.statistic_ = float(value[0])
            self.p_value_, null = NULL_METHODS[self.method](statistic, self.statistic_, self)
            if null is not None:
                self.null_distribution_ = null
            return self
        is_resampled = self.method == "consistency"
        compared = _base.compute_null_values(
            self, statistic, value, data.canonical_order(), resampled=is_resampled
        )
        judged = [self._make_result(statistic, value, values) for values in compared]
        self.__dict__.update(_base.select_largest_p_value(judged))
        return self

    def _fit_labels(self, data: MultilabelData, weighted: bool) -> Self:
        """Fit a copy to each label; the smallest p-value is multiplied by their number."""
        statistic = unwrap_partial(self.statistic)[0]
        params = find_arguments(self.statistic, self.metric_params)
        average = params.pop("average", "auto")
        if average != "auto":
            raise ValueError(
                "average must be left out with multi_class=Multilabel(): each label is tested "
                "alone, as what joins labels has no p-value without their law together; found "
                f"{average!r}. Leave it out, or take a confidence_interval."
            )
        lens = params.pop("multi_class")
        self.label_tests_ = {}
        for name, _, problem in data.iter_problems(lens):
            test = clone(self).set_params(
                statistic=statistic, metric_params=params, random_state=self.random_state
            )
            test.classes_, test.n_features_in_ = problem.classes, 1
            test._fit(problem, weighted=weighted)
            self.label_tests_[name] = test
        n_labels = len(self.label_tests_)
        self.label_p_values_ = {
            name: min(1.0, n_labels * test.p_value_) for name, test in self.label_tests_.items()
        }
        name = min(self.label_p_values_, key=lambda label: self.label_tests_[label].p_value_)
        self.statistic_ = self.label_tests_[name].statistic_
        self.p_value_ = self.label_p_values_[name]
        return self

    def _make_result(self, statistic: Any, value: np.ndarray, values: np.ndarray) -> dict[str, Any]:
        """The fitted attributes, from the values (B + 1, …) of the data and of the draws."""
        evidence, findings = statistic.combine_components(value, values)
        result = {
            "statistic_": float(value[0] if value.ndim == 1 else evidence[0]),
            "null_distribution_": evidence[1:],
        }
        if statistic.is_two_sided or statistic.n_columns > 1:  # infinite for impossible labels
            evidence = _base.clip_infinite(evidence)
        side = self.alternative if statistic.is_two_sided else "greater"
        p_value = _base.monte_carlo_p_value(evidence, side, statistic.tie_tolerance)
        return {"p_value_": p_value, **result, **findings}

    def _resolve_statistic(self) -> tuple[str | Callable, dict[str, Any]]:
        """The statistic, and its options: `metric_params`, and those that the test takes itself."""
        options = dict(self.metric_params or {})
        for name in _STATISTIC_OPTIONS:
            value = getattr(self, name)
            if value is None:
                continue
            if name in options:
                raise ValueError(
                    f"{name} must be passed once; found {name}={value!r} and metric_params="
                    f"{self.metric_params!r}. Leave one of them out."
                )
            options[name] = value
        is_single = self.statistic == "auto" and self.method != "conditional"
        return "skce" if is_single else self.statistic, options

    @property
    def _fits_on_device(self) -> bool:
        """True if tensors stay on their device: for kernel errors of labels that are drawn."""
        return (
            self.method == "conditional"
            and self.statistic in ("skce", "squared_kernel_calibration_error")
            and not {"multi_class", "average"} & set(self.metric_params or ())
        )

    def _check(self, statistic: Statistic, data: AnyData) -> None:
        if self.method != "conditional" and self.statistic in RESIDUAL_STATISTICS:
            raise ValueError(
                f"method={self.method!r} is not for statistic={self.statistic!r}, whose law is "
                "only known by draws. Use method='conditional', which is exact."
            )
        if self.method in NULL_METHODS:
            check_null_method(self, statistic)
        elif data.is_forecast:
            check_depends_on_cells(self, statistic)
        if self.alternative != "two-sided" and not statistic.is_two_sided:
            raise ValueError(
                f"alternative={self.alternative!r} needs a statistic with a sign, 'log_loss' or "
                f"'brier_score_loss'; found statistic={self.statistic!r}, of which only large "
                "values speak against calibration. Leave alternative out; for the direction of an "
                "error there are CalibrationInTheLargeTest and CalibrationSlopeTest."
            )
        if not data.is_forecast and data.count is not None:
            check_takes_counts(self, statistic)
        if data.groups is not None:
            check_takes_groups(self, statistic)


def check_takes_no_samples(test: _base.HypothesisTest, **data_args: Any) -> None:
    """Refuse what belongs to single samples beside a state, which holds counts of them."""
    for name, value in data_args.items():
        if value is not None:
            raise ValueError(
                f"{name} must be None for a CalibrationState, which holds all that is known of the "
                f"samples; found {type(value).__name__}. Leave it out."
            )
    if test.method != "conditional":
        raise ValueError(
            f"method={test.method!r} needs the samples themselves; found a CalibrationState. Use "
            "method='conditional', which is exact."
        )


def check_takes_counts(test: _base.HypothesisTest, statistic: Statistic) -> None:
    """The statistic must be a function of the number of events at each prediction."""
    _base.check_supports(
        statistic,
        "counts",
        "The statistic of a test of a CalibrationState must be 'omnibus', 'skce' (of all pairs "
        "of samples, with a kernel that is not Gaussian), 'log_loss', 'brier_score_loss' or "
        f"one of {metrics_of_counts()}; found {test.statistic!r} with the options "
        f"{statistic.options!r:.200}. Choose one of these, or test a part of the rows.",
    )


def check_depends_on_cells(test: _base.HypothesisTest, statistic: Statistic) -> None:
    """Draws from quantiles are cells: the statistic must not see where in them outcomes lie."""
    data = statistic.data
    if data.forecast._to_simulated(data.value) is data.value:
        return
    value, as_drawn = statistic(np.array([data.value, data.forecast._to_simulated(data.value)]))
    slack = np.maximum(statistic.tie_tolerance, _STATISTIC_RTOL * np.abs(value))
    if (np.abs(value - as_drawn) > slack).any():
        raise ValueError(
            "statistic must depend on nothing but the cells between quantiles in which the "
            "outcomes lie: a QuantileForecast knows no more of them, so that cells are what is "
            f"drawn; found {test.statistic!r}, which depends on where in the cells they lie. Use "
            "'skce' or 'quantile_calibration_error', or forecasts of another kind."
        )


def check_takes_groups(test: _base.HypothesisTest, statistic: Statistic) -> None:
    """Labels that depend on each other cannot be drawn from the predictions."""
    method = getattr(test, "method", "conditional")
    if method != "conditional":
        raise ValueError(
            f"method={method!r} takes the samples for independent, and so needs groups=None; "
            "found groups. Use method='conditional'."
        )
    _base.check_supports(
        statistic,
        "groups",
        "groups need a statistic that is made of residuals: 'omnibus', 'skce' (with "
        "estimation='unbiased' or 'biased'), 'log_loss' or 'brier_score_loss'; found "
        f"{test.statistic!r}. Choose one of these, or leave groups out if the samples are "
        "independent given the predictions.",
    )
