"""Distribution matching: forecasts and outcomes compared by a kernel."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from .._data import AnyData, ClassData, ForecastData, check_data
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Label, RandomState
from .._numerics.median_distance import pair_weight
from .._statistics.matching import ClassKernelErrors, MatchingError, make_matching_error
from .._statistics.matching_checks import MATCHING_CONSTRAINTS, MatchingForm, MatchingOptions
from ._decisions import are_classes_reversed
from ._registry import register_metric, select_options

# The variance of the error is estimated from all pairs of at most this many samples.
_MAX_PAIRED_SAMPLES = 1024

# Outcomes that are drawn: their number times that of the samples is at least this.
_DRAWN = 2**14
_DRAWN_FOR_PAIRS = 2**12  # where terms are computed pair by pair

# Entries of the matrices of terms that are held at once.
_MAX_MATCHING_ENTRIES = 2**20


def _distribution_matching_error(
    data: ForecastData | ClassData,
    *,
    estimation: str,
    random_state: RandomState = None,
    **options: Any,
) -> float:
    standardize, seeds = estimation == "standardized", check_random_state(random_state)
    options["estimation"] = "unbiased" if standardize else estimation
    error = make_matching_error(data, MatchingOptions(**options), seeds)
    value = float(error(data.outcome[None])[0])
    if not standardize:
        return value
    deviation = null_deviation(error, np.random.default_rng(seeds.randint(2**31 - 1)))
    return value / deviation if deviation > 0 else 0.0  # no pairs are compared


def _matching_statistic(data: AnyData, *, random_state: Any = None, **options: Any) -> Any:
    """The error of batches of outcomes of forecasts; None if each is standardised by itself."""
    if options["estimation"] == "standardized" or not data.is_forecast:
        return None
    return make_matching_error(data, MatchingOptions(**options), check_random_state(random_state))


@register_metric(
    _distribution_matching_error,
    MATCHING_CONSTRAINTS,
    cost="n²",
    takes=("forecasts", "classes"),
    statistic=_matching_statistic,
)
def distribution_matching_error(
    y_true: ArrayLike,
    y_pred: object,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    calibration: MatchingForm = "distribution",
    given: ArrayLike | None = None,
    loss: Any = None,
    thresholds: float | ArrayLike | None = None,
    kernel: str | Callable = "rbf",
    bandwidth: float | Literal["median"] = "median",
    given_kernel: str | Callable = "rbf",
    given_bandwidth: float | Literal["median"] = "median",
    estimation: Literal["unbiased", "biased", "standardized"] = "unbiased",
    method: Literal["exact", "fourier"] = "exact",
    n_components: int = 200,
    random_state: RandomState = None,
) -> float:
    r"""Distribution matching error: how far outcomes and forecasts are apart, by a kernel.

    The squared maximum mean discrepancy between outcomes and draws from the forecasts, given what a
    form of calibration is conditioned on [1]_. For characteristic kernels such as the defaults, its
    expectation is 0 exactly if forecasts are calibrated in that form. The unbiased estimate can be
    negative. It has no natural scale.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities of the positive class, or of all classes (rows sum to 1). Or a forecast of a
        number, as :func:`skcalib.forecasts.as_forecast` takes it.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_pred`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    calibration : {"distribution", "quantile", "threshold", "marginal", "decision", "group", \
            "individual", "local", "canonical", "top-label"}, default="distribution"
        The form of calibration. "canonical" and "top-label" are for classes only, "quantile",
        "threshold" and "local" for forecasts only.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What is conditioned on: for "group" (labels) and "individual" (features); optional for
        "distribution" and "local", in place of the forecast's parameters.

    loss : float, callable, array-like, or list of these, default=None
        The losses of ``calibration="decision"`` and ``kernel="loss"``, as
        :class:`skcalib.decisions.DecisionLoss` takes them. For a list, the kernel is averaged.

    thresholds : float or array-like of shape (n_thresholds,), default=None
        The outcomes around which ``kernel="tanh"`` rises. For several, the kernel is averaged.

    kernel : {"rbf", "laplacian", "energy", "moments", "thresholds", "tanh", "loss"} or callable, \
            default="rbf"
        Kernel on the outcomes, or on their probability integral transforms (PITs): exp(−d²/(2ν²)),
        exp(−d/ν) or −d of the distance d. Kernels of decisions, for outcomes only: "moments" (mean
        and mean square), "thresholds" (whether outcomes exceed 64 quantiles of all forecasts),
        "tanh" (around `thresholds`) and "loss" (the losses of all actions). Labels have the
        kernel 1 if equal and 0 if not, or "loss". A callable takes arrays of shapes (a, 1) and (b,
        1) and returns values of shape (a, b).

    bandwidth : "median" or float, default="median"
        The ν of `kernel`, in the units of the outcomes. "median" is their median distance, but at
        least a tenth of the root mean square one. "tanh" needs a number.

    given_kernel : {"rbf", "laplacian", "exponential", "total-variation", "wasserstein"} or \
            callable, default="rbf"
        Kernel on what is conditioned on, if that is numbers: the names of
        :func:`squared_kernel_calibration_error`, or "wasserstein" for exp(−W/ν) of the Wasserstein
        distance W of order 2. Or a callable.

    given_bandwidth : "median" or float, default="median"
        The ν of `given_kernel`. "median" first divides each column by its standard deviation.

    estimation : {"unbiased", "biased", "standardized"}, default="unbiased"
        "unbiased" averages over all pairs of different samples; "biased" also pairs each sample
        with itself. "standardized" divides the unbiased estimate by its standard deviation under
        calibration, so that values above 2 are rare.

    method : {"exact", "fourier"}, default="exact"
        "fourier" uses random Fourier features of `given_kernel`, in linear time.

    n_components : int, default=200
        Number of frequencies of "fourier".

    random_state : int, RandomState instance or None, default=None
        Seed of "fourier" and of "standardized".

    Returns
    -------
    error : float
        Smaller is better, and 0 is expected under calibration.

    See Also
    --------
    distribution_matching_witness : Where outcomes and forecasts differ.
    squared_kernel_calibration_error : The same for classes, with more estimates.
    skcalib.hypothesis_tests.CalibrationTest : The p-value.

    Notes
    -----
    The forms compare something with its forecast, given something else (Tables 1 and 2 of [1]_):

    ============== ================ ========================================================
    calibration    compared         given
    ============== ================ ========================================================
    quantile       PITs             nothing
    threshold      PITs             whether F(t) ≤ α, for all t and levels α
    marginal       outcomes         nothing (labels: each class's probability)
    decision       outcomes         the action with the least expected loss
    group          outcomes         the group
    distribution   outcomes         the forecast: its mean and log standard deviation
    individual     outcomes         features
    local          PITs             features, or the forecast
    canonical      labels           all class probabilities
    top-label      predicted class  its probability
    ============== ================ ========================================================

    ``given_kernel="wasserstein"`` sees more of forecasts than mean and standard deviation. The
    error is the average over pairs, for independent draws :math:`Y_i` from the forecasts, of

    .. math::
        k(z_i, z_j) \, [\ell(y_i, y_j) - E \ell(Y_i, y_j) - E \ell(y_i, Y_j) + E \ell(Y_i, Y_j')].

    Outcomes of a quantile forecast are compared as cells; it has no kernels of decisions but
    "thresholds". An ensemble without weights is calibrated if the outcome is exchangeable with its
    members.

    With "rbf" on outcomes and the kernels of decisions, the cost is :math:`O(n r)` for r features
    if nothing or groups are given, or with "fourier", and else at most :math:`O(n^2 r)`. Other
    kernels take :math:`O(n^2)` times the square of the number of components of a forecast.

    References
    ----------
    .. [1] Marx, Zalouk and Ermon (2023). Calibration by Distribution Matching: Trainable Kernel
       Calibration Metrics. NeurIPS. :arxiv:`2310.20211`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import distribution_matching_error
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=500)
    >>> y = mean + rng.normal(size=500)
    >>> forecast = mean, np.full(500, 0.5)  # half the true standard deviation
    >>> distribution_matching_error(y, forecast)
    0.009...
    """
    data = check_data(y_true, y_pred, sample_weight, pos_label, labels, given, may_be_numbers=True)
    if loss is not None and are_classes_reversed(data, labels, pos_label):
        loss = [decision.with_classes_reversed() for decision in MatchingOptions(loss=loss).losses]
    return _distribution_matching_error(data, **select_options(locals()))


def null_deviation(
    error: MatchingError | ClassKernelErrors, generator: np.random.Generator
) -> float:
    """The root of 2 Σ_{i≠j} w_i² w_j² E h_ij² / (Σ_{i≠j} w_i w_j)², from redrawn outcomes.

    The terms h_ij have mean 0 given either sample and are uncorrelated, so that their squares give
    the variance: a few draws of outcomes suffice, where a sample of the error itself needs many.
    """
    weight = error.data.weight
    n = len(weight)
    m = min(n, _MAX_PAIRED_SAMPLES)
    rows = np.sort(generator.choice(n, m, replace=False)) if m < n else np.arange(n)
    subset = error.take(rows)
    n_draws = max(1, (_DRAWN if subset.has_features else _DRAWN_FOR_PAIRS) // m)
    size = max(1, _MAX_MATCHING_ENTRIES // m**2)
    squares = 0.0
    for start in range(0, n_draws, size):
        outcomes = subset.data.simulate_outcomes(generator, min(size, n_draws - start))
        terms = subset.term_matrices(outcomes)
        np.einsum("rii->ri", terms)[:] = 0.0  # a sample makes no pair with itself
        squares += np.sum(terms**2)
    all_pairs = n * (n - 1) / (m * (m - 1)) * weight[rows].sum() ** 4
    return float(np.sqrt(2 * all_pairs * squares / n_draws) / pair_weight(weight))
