"""The test of calibration, by resampling or by known laws of the kernel statistic."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone

from .._data import ClassData, MultilabelData
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import N_JOBS, Count, RandomState, StrOptions, fit_context
from ..metrics._registry import MetricNames, find_multi_class, unwrap_partial
from ..metrics._statistic import RESIDUAL_STATISTICS, STATISTICS, make_statistic
from ..streaming import CalibrationState
from ..streaming._checks import check_can_be_tested
from ..streaming._evaluate import SUPPORTED_METRICS, check_metric_params
from ._asymptotic import NULL_METHODS, check_null_method
from ._base import (
    HypothesisTest,
    check_supports,
    check_test_input,
    clip_infinite,
    compute_null_values,
    delete_attributes,
    monte_carlo_p_value,
    select_largest_p_value,
)

# Options of the statistic that are parameters of the test.
_STATISTIC_OPTIONS = ("kernel", "bandwidth", "estimator")

# Values of a statistic that differ by less than this share are equal but for rounding.
_STATISTIC_RTOL = 1e-9


class CalibrationTest(HypothesisTest):
    r"""Test of the null hypothesis that the predictions are calibrated.

    If the model is calibrated, the labels are independent given the predictions, each drawn from
    its own prediction. Labels drawn in this way, with the predictions held fixed, give the exact
    null distribution of any statistic, and a p-value that is valid for every number of samples and
    classes. That is the default method; the others are those of the literature. Forecasts of a
    number are tested in the same way, by outcomes drawn from them.

    Parameters
    ----------
    statistic : str or callable, default="auto"
        What measures miscalibration; large values speak against the hypothesis.

        ==================  ==========================================================
        statistic           what it is
        ==================  ==========================================================
        "auto"              "omnibus"; "skce" with "asymptotic", "distribution-free"
                            and "consistency"
        "omnibus"           four statistics together, or three of forecasts, each of
                            which finds another kind of error (see the notes)
        "skce"              the squared kernel error of classes, or the distribution
                            matching error of forecasts
        "log_loss"          scikit-learn's loss minus its expectation: positive if the
                            predictions are too sure, negative if they are not sure
                            enough; for classes
        "brier_score_loss"  the same with this loss
        name of a metric    a metric of :mod:`skcalib.metrics`
        callable            ``statistic(y_true, y_proba) -> float``
        ==================  ==========================================================

        A callable gets resampled labels of the same type, and the probabilities in one column or in
        several as `fit` got them; of forecasts, resampled outcomes and the forecasts. Not every
        class need occur among the labels: if the callable has an argument `labels`, it gets the
        classes. If `fit` gets weights, so does the callable, as `sample_weight`.

    method : {"conditional", "asymptotic", "distribution-free", "consistency"}, \
            default="conditional"
        How the p-value is found. "conditional": by outcomes drawn from the predictions as they are;
        exact. "asymptotic", for "skce" and "decision_calibration_error" only: by the limit law of
        the statistic, which is that of a mean of blocks for the estimators "linear" and "block",
        and is bootstrapped for "unbiased" and for decisions.
        "distribution-free", for "skce" only: by bounds that hold for every sample size and are very
        loose. "consistency": by predictions drawn from the predictions, and labels drawn from
        these; for comparison only, as with binned errors it may reject calibrated models too often
        (see the notes). A prediction that is drawn keeps its `sample_weight`.

    kernel : str or callable, default=None
        Kernel of the statistic, as the metric takes it: for "skce" that of
        :func:`skcalib.metrics.squared_kernel_calibration_error`, for forecasts that of
        :func:`skcalib.metrics.distribution_matching_error`. None means the default of the
        statistic. A statistic without a kernel refuses it.

    bandwidth : "median", "multiple" or float, default=None
        Bandwidth of the statistic, handed on like `kernel`. "multiple" takes three bandwidths at
        once, for classes and "skce" only: the median, 1/4 and 1/16 of it (see the notes).

    estimator : {"unbiased", "biased", "linear", "block"}, default=None
        Estimator of the statistic, handed on like `kernel`. With "linear" and "block" the result
        depends on the order of the samples.

    metric_params : dict, default=None
        Further arguments of the statistic, as the metric of that name takes them: `block_size`,
        `class_kernel`, and ``"method": "fourier"`` with `n_components` of "skce", `n_bins` of
        "expected_calibration_error", `calibration` of "skce" for forecasts. It may hold the three
        above, if they are not passed beside it. A callable gets them as keyword arguments.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        Which values of "log_loss" and "brier_score_loss" speak against the hypothesis: "greater"
        finds predictions that are too sure, "less" those that are not sure enough. Other statistics
        have no sign, and only large values count.

    n_resamples : int, default=999
        Number of vectors of labels or outcomes, or of bootstrap samples, that are drawn. The
        smallest possible p-value is then ``1 / (n_resamples + 1)``; of "log_loss" and
        "brier_score_loss" against both sides, twice that. Below the level 0.05 take 999 or more.

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
        Above 0, progress is shown: a bar if tqdm is installed, else messages of joblib.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic of the data; of "omnibus" and several bandwidths, the combination in the
        notes.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the drawn samples, if any are drawn: not with "distribution-free", nor with
        "asymptotic" for the estimators "linear" and "block". With groups, of those draws that have
        the largest p-value (see the notes).

    component_p_values_ : dict of str to float
        Of "omnibus", or of several bandwidths: the p-value of each component by itself.

    label_p_values_ : dict
        With ``multi_class=Multilabel()`` in `metric_params`: for each label, its p-value times the
        number of labels, at most 1; `p_value_` is the smallest, and `statistic_` that label's.

    label_tests_ : dict
        With it, too: the fitted test of each label alone, whose `p_value_` is exact.

    adjusted_p_values_ : dict of str to float
        The same, adjusted for their number [4]_. At the level :math:`\alpha`, a component spoke if
        this is at most :math:`\alpha`: with probability :math:`1 - \alpha`, none does if the model
        is calibrated.

    component_statistics_ : dict of str to float
        The values of the components.

    component_null_distributions_ : dict of str to ndarray of shape (n_resamples,)
        The values of the components for the drawn samples.

    kernel_method_ : {"exact", "pooled", "fourier"}
        Of "omnibus", or of several bandwidths: how the kernel error was computed (see the notes).

    classes_ : ndarray of shape (n_classes,)
        The classes. Not for forecasts.

    n_features_in_ : int
        Number of columns of `X` (1 if one-dimensional, as forecasts are).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    UCMETest : A test in linear time, for many samples.
    skcalib.metrics.squared_kernel_calibration_error : The statistic "skce" for classes.
    skcalib.metrics.distribution_matching_error : The statistic "skce" for forecasts.

    Notes
    -----
    **Conditional.** With B resamples the p-value is :math:`(1 + \#\{T^*_b \ge T\}) / (1 + B)`,
    where values that differ by rounding count as equal. The test is exact: at any level
    :math:`\alpha` for which :math:`\alpha (B + 1)` is a whole number, and a statistic without
    ties, it rejects a calibrated model with probability :math:`\alpha`; with ties, with at most
    that. The "skce" statistic of all resamples is computed in matrix products: for two classes
    (except with the kernel "rbf" or a callable, or in blocks) at :math:`O(n (B + \log n))`,
    otherwise :math:`O(n^2 K B)`, or n times the size of a block; memory is :math:`O(n K)` and a
    few times 32 MB for each job. With ``metric_params={"method": "fourier"}`` it costs
    :math:`O(n D B)` for D frequencies, whatever the number of classes, and the p-value is as exact:
    the labels of a block of samples are drawn and summed together, so that besides the predictions
    memory is that of a block and of the sums, a few times 32 MB up to 128 MB for each job.

    **Omnibus.** Every statistic finds some errors well and others hardly at all. So four of them
    are computed for the same drawn labels, at little more than the cost of drawing:

    - "skce": the squared kernel error, which finds any error if there are enough samples, and
      smooth ones and shifts well; of two classes, more than 4096 samples are pooled in as many
      cells of similar predictions, and of more classes random Fourier features (32 frequencies)
      take the place of the kernel where all pairs would take more than about a second;
    - "log_loss": the log loss minus its expectation :math:`\sum_i w_i H(p_i)`, which finds
      predictions that are too sure or not sure enough;
    - "level_and_spread": for each class, the score statistics of intercept and slope of a logistic
      regression on its log-odds, of which the largest sum of squares counts; it finds single
      classes, classes that are confused, and shifts;
    - "local": gaps between the confidence and the accuracy (of two classes: the probability and
      the frequency of the second) in 1, 2, 4, … up to about :math:`\sqrt n` groups of equal mass,
      all together, or the largest one in a group or in two or three neighbours merged; it finds
      waves and errors in a small range.

    With :math:`p_c` the p-value of a component among all B + 1 vectors of labels, `statistic_` is
    the mean of :math:`(1 + d_c) / p_c`, the reciprocal of a harmonic mean, in which "skce" has half
    the weight of each other, as it seldom speaks alone. Here :math:`d_c` is 0 unless the value lies
    beyond all others; then it is the distance to the next one, in standard deviations of all. It is
    computed in the same way for every drawn vector, so the test is exact.
    Against an error that a single component finds, the power is a little below that of this
    component; the guide *which test has power against what* has a table.

    **Several bandwidths.** No bandwidth finds all errors: a wide kernel finds shifts, a narrow one
    waves and errors in a small range. With ``bandwidth="multiple"`` the kernel errors with the
    median distance, 1/4 and 1/16 of it are computed for the same drawn labels, and combined like
    the components of the omnibus, with equal weights. The test is exact, and no correction is to be
    chosen: the draws tell how the errors depend on each other. It takes three times as long.

    **Omnibus of forecasts.** The matching error alone is blind to spread and shape where the means
    of the forecasts differ much more than outcomes differ from them. So three statistics are
    computed for the same draws, in at most about twice its time, and combined in the same way; the
    first counts half:

    - "skce": the distribution matching error of outcomes, given the mean and the standard deviation
      of the forecast; left out for forecasts that have none;
    - "pit": the matching error of probability integral transforms (PITs), in its form "local",
      given three properties of the forecast: the standardised principal components of its
      quantiles, which are mostly location, spread and shape (of exchangeable members the first
      two);
    - "bias_and_spread": the largest squared score. With the normal scores
      :math:`z_i = \Phi^{-1}(u_i)` of the PITs, averaged over intervals of PITs, scores are the sums
      of :math:`w_i z_i f_i` and :math:`w_i (z_i^2 - 1) f_i` divided by their standard deviations,
      where f is 1 or one of the three properties, and of :math:`w_i (z_i^3 - 3 z_i)`. It finds
      forecasts that are too low or high, or too narrow or wide: all of them, or some more than
      others; and outcomes that reach further on one side, which costs other errors up to 0.04
      of their power.

    What is `given` takes the place of the properties, in all components: features, or labels of
    groups.

    **Tensors** stay on their device under scikit-learn's `array_api_dispatch` with the statistic
    "skce", as far as :func:`skcalib.metrics.squared_kernel_calibration_error` says. They are
    converted once for everything else. NumPy draws the uniform numbers that the labels are made of.

    **Groups.** If samples of a group depend on each other, their labels cannot be drawn one by one.
    The hypothesis is that each label follows its own prediction; the groups are independent. Three
    p-values are found, from `n_resamples` draws each, and the largest one counts, also of each
    component.

    - *Signs.* The residuals of each group, :math:`w_i (1[y_i = k] - p_{ik})`, are multiplied by a
      random sign (a wild cluster bootstrap). That is exact if the residuals of a group are as
      likely as their negatives, and otherwise holds in the limit of many groups, whatever the
      dependence. Where events are few it does not hold: without any event, all residuals of a class
      have one sign, which is rare among random ones.
    - *Labels.* With the probability :math:`\delta_g`, all labels of the group g are drawn with the
      same uniform number, otherwise each with its own. It is estimated from the groups h of at
      least half and at most twice its size :math:`s_g`, which is the total weight over the mean
      weight of a sample (the number of samples, if all weigh the same):

      .. math:: \delta_g = \frac{2 v_g + \sum_h v_h (a_h - d_h)}{2 v_g + \sum_h v_h (a_h - t_h)}

      but at least 0 and at most 1, with :math:`v_h = s_h^2 / n_h` for :math:`n_h` samples. The
      number of distinct labels in a group is d. If labels are independent, a of them are expected,
      and t if one number decides those of a group: for predictions that are multiplied, class by
      class, by the observed over the expected number of labels, and normalised. A group in which
      more than one label is expected that is not the likeliest is divided into runs with one each,
      of similar confidence. So :math:`\delta_g` is 1 if there is no event in groups of this size,
      as nothing is known of dependence then.
    - *Ranks.* The same, but the common number decides whether the likeliest class of each sample
      comes, the second one, and so on, and :math:`\delta_g` is estimated by whether the likeliest
      class came: a group may be wrong in all of its samples, some of which are predicted high and
      others low. Left out where it would change nothing, as the same one of two classes is the
      likeliest of all samples.

    Outcomes of forecasts are drawn independently of each other, in place of labels and ranks.

    The benchmarks *rare events* and *groups of unequal size* show how often calibrated models are
    rejected: hardly ever if there are few events. Few large groups with few events among many small
    ones cost power, as little is known of their dependence then. Only "omnibus", "skce" and the two
    scores can be tested so. Of m groups there are :math:`2^{m-1}` different signs: with fewer than
    ten groups, small p-values cannot occur. For a time series, pass blocks of consecutive samples
    as groups. Which draws belong to which group may depend on the order of the samples where
    predictions are tied.

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
    which lowers a binned error where bins hold few samples: its null distribution lies too low,
    and calibrated models are rejected too often [1]_. With two classes and 15 bins the size is
    about right, in joint bins of ten classes calibrated models are always rejected.

    **Asymptotic** [1]_. A mean over independent pairs or blocks divided by its sample standard
    deviation is asymptotically normal; the one-sided p-value is that of Student's t, which is the
    same in the limit (from about 50 samples on the size is right), and :math:`2^{-m}` if all m
    blocks are alike and positive. The bootstrap of the decision calibration error is that of its
    mean gaps, centred at those of the data. The unbiased estimate is a degenerate
    U-statistic under the hypothesis, whose law the bootstrap of [3]_ approximates at
    :math:`O(n^2 (K + B))`: with multinomial counts C, :math:`a = n / (n - 1)` and the terms
    :math:`h_{ij}` of the statistic, :math:`n^{-2} \sum_i C_i \sum_j (a (C_j - 1[i = j]) - 2) h_{ij}
    + n^{-2} \sum_{i,j} h_{ij}` is drawn for a times the estimate.

    **Distribution-free** [1]_. With :math:`|h_{ij}| \le b` (2 without a class kernel; for a kernel
    of your own, times the largest value of a prediction with itself, as a semi-definite kernel has
    none above it; given the predictions, that is all that the proof of Lemma 2 needs), values t
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
    .. [4] P. H. Westfall and S. S. Young (1993). Resampling-Based Multiple Testing. Wiley.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import CalibrationTest
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < proba**2
    >>> CalibrationTest(random_state=0).fit(proba, y).p_value_
    0.001

    What is wrong with them:

    >>> CalibrationTest(random_state=0).fit(proba, y).adjusted_p_values_
    {'skce': 0.001, 'log_loss': 0.75..., 'level_and_spread': 0.001, 'local': 0.001}

    A normal forecast that is too narrow, and what tells:

    >>> from skcalib.forecasts import GaussianForecast
    >>> mean = rng.normal(size=100)
    >>> y = rng.normal(mean, 1.0)
    >>> CalibrationTest(random_state=0).fit(GaussianForecast(mean, 0.5), y).adjusted_p_values_
    {'skce': 0.001, 'pit': 0.001, 'bias_and_spread': 0.001}
    """

    null_distribution_: np.ndarray

    _parameter_constraints: dict = {
        "statistic": [MetricNames("statistic", STATISTICS), callable],
        "kernel": "no_validation",  # the statistic judges its options
        "bandwidth": "no_validation",
        "estimator": "no_validation",
        "method": [StrOptions({"conditional", "consistency", *NULL_METHODS})],
        "metric_params": [dict, None],
        "alternative": [StrOptions({"two-sided", "less", "greater"})],
        "n_resamples": [Count(1, 10**9)],
        "labels": ["array-like", None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        statistic: str | Callable = "auto",
        *,
        method: str = "conditional",
        kernel: str | Callable | None = None,
        bandwidth: float | str | None = None,
        estimator: Literal["unbiased", "biased", "linear", "block"] | None = None,
        metric_params: dict | None = None,
        alternative: Literal["two-sided", "less", "greater"] = "two-sided",
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
        self.alternative = alternative
        self.n_resamples = n_resamples
        self.labels = labels
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)  # the metric judges its `metric_params`
    def fit(
        self,
        X: Any,
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
            Predicted probabilities; one-dimensional ones are of the last class. Or a forecast of
            a number, as :func:`skcalib.forecasts.as_forecast` takes it. Or a
            :class:`skcalib.streaming.CalibrationState`, alone: of two classes, with equal weights
            and all predictions on its grid.

        y : array-like of shape (n_samples,)
            Labels, or outcomes. None for a state, which holds them.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the statistic.

        groups : array-like of shape (n_samples,), default=None
            Labels of groups, such as patients or sites, whose samples are not independent of each
            other (see the notes).

        given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
            What calibration of forecasts is conditioned on: groups, or features. Numbers are
            features, so pass the codes of groups as strings. For "omnibus", and statistics that
            have an argument of this name.

        Returns
        -------
        self : object
            The fitted test.
        """
        data: Any
        if isinstance(X, CalibrationState):
            data = predictions_from_state(
                self, X, y=y, sample_weight=sample_weight, groups=groups, given=given
            )
        else:
            lens = find_multi_class(self.statistic, self.metric_params)
            data = check_test_input(self, X, y, sample_weight, groups, given, lens)
        as_matrix, weighted = self.n_features_in_ > 1, sample_weight is not None
        if isinstance(data, MultilabelData):
            return self._fit_labels(data, weighted)
        return self._fit(data, as_matrix=as_matrix, weighted=weighted)

    def _fit(self, data: Any, *, as_matrix: bool = False, weighted: bool = True) -> Self:
        """Fit to checked data; the options say what a metric that is not ours gets."""
        name, options = self._resolve_statistic()
        statistic = make_statistic(
            name,
            data,
            options,
            as_matrix=as_matrix,
            weighted=weighted,
            n_resamples=self.n_resamples,
            random_state=self.random_state,
        )
        data = statistic.data  # where the statistic needs them
        self._check(statistic, data)
        delete_attributes(self, *_OPTIONAL_ATTRIBUTES)
        value = statistic(data.outcome[None, :])
        if self.method in NULL_METHODS:
            self.statistic_ = float(value[0])
            self.p_value_, null = NULL_METHODS[self.method](statistic, self.statistic_, self)
            if null is not None:
                self.null_distribution_ = null
            return self
        is_resampled = self.method == "consistency"
        compared = compute_null_values(
            self, statistic, value, data.canonical_order(), resampled=is_resampled
        )
        judged = [self._make_result(statistic, value, values) for values in compared]
        self.__dict__.update(select_largest_p_value(judged))
        return self

    def _fit_labels(self, data: MultilabelData, weighted: bool) -> Self:
        """Fit a copy to each label; the smallest p-value is multiplied by their number."""
        statistic, params = self.statistic, dict(self.metric_params or {})
        if callable(statistic):
            statistic, fixed = unwrap_partial(statistic)
            params = fixed | params
        average = params.pop("average", "auto")
        if average != "auto":
            raise ValueError(
                "average must be left out with multi_class=Multilabel(): each label is tested "
                "alone, as what joins labels has no p-value without their law together; found "
                f"{average!r}. Leave it out, or take an interval by resampling."
            )
        lens = params.pop("multi_class")
        delete_attributes(self, *_OPTIONAL_ATTRIBUTES)
        self.label_tests_ = {}
        for name, _, problem in data.iter_problems(lens):
            test = clone(self).set_params(
                statistic=statistic, metric_params=params, random_state=self.random_state
            )
            test.classes_, test.n_features_in_ = problem.classes, 1
            test._fit(replace(problem, groups=data.groups), weighted=weighted)
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
            evidence = clip_infinite(evidence)
        side = self.alternative if statistic.is_two_sided else "greater"
        p_value = monte_carlo_p_value(evidence, side, statistic.tie_tolerance)
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
        if not isinstance(self.statistic, str) or self.statistic != "auto":
            return self.statistic, options
        return ("omnibus" if self.method == "conditional" else "skce"), options

    @property
    def _fits_on_device(self) -> bool:
        """True if tensors stay on their device: for kernel errors of labels that are drawn."""
        return (
            self.method == "conditional"
            and self.statistic in ("skce", "squared_kernel_calibration_error")
            and not {"multi_class", "average"} & set(self.metric_params or ())
        )

    def _check(self, statistic: Any, data: Any) -> None:
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


# Attributes that only some statistics and methods set.
_OPTIONAL_ATTRIBUTES = (
    "null_distribution_",
    "component_p_values_",
    "adjusted_p_values_",
    "component_statistics_",
    "component_null_distributions_",
    "label_p_values_",
    "label_tests_",
    "kernel_method_",
)


def predictions_from_state(test: Any, state: CalibrationState, **data_args: Any) -> ClassData:
    """The counts of a state, from which numbers of events are drawn."""
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
    check_can_be_tested(state)
    test.classes_, test.n_features_in_ = state.classes, 1
    delete_attributes(test, "feature_names_in_")
    return state._tally.shares(state.classes)


def check_takes_counts(test: Any, statistic: Any) -> None:
    """The statistic must be a function of the number of events at each prediction."""
    check_metric_params(statistic.options.get("params", {}))
    check_supports(
        statistic,
        "counts",
        "The statistic of a test of a CalibrationState must be 'omnibus', 'skce' (of all pairs "
        "of samples, with a kernel that is not Gaussian), 'log_loss', 'brier_score_loss' or "
        f"one of {SUPPORTED_METRICS}; found {test.statistic!r} with the options "
        f"{statistic.options!r:.200}. Choose one of these, or test a part of the rows.",
    )


def check_depends_on_cells(test: Any, statistic: Any) -> None:
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


def check_takes_groups(test: Any, statistic: Any) -> None:
    """Labels that depend on each other cannot be drawn from the predictions."""
    method = getattr(test, "method", "conditional")
    if method != "conditional":
        raise ValueError(
            f"method={method!r} takes the samples for independent, and so needs groups=None; "
            "found groups. Use method='conditional'."
        )
    check_supports(
        statistic,
        "groups",
        "groups need a statistic that is made of residuals: 'omnibus', 'skce' (with the "
        "estimator 'unbiased' or 'biased'), 'log_loss' or 'brier_score_loss'; found "
        f"{test.statistic!r}. Choose one of these, or leave groups out if the samples are "
        "independent given the predictions.",
    )
