"""The conditional kernel calibration error, for the comparison of models."""

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._data import AnyData, ClassData, ForecastData, check_data
from .._inputs.arrays import ArrayLike
from .._inputs.options import OptionsOf, check_options_of
from .._inputs.scikit_learn import Average, Count, Interval, Label, RandomState, StrOptions
from .._inputs.warnings import check_memory, warn, warn_if_slow
from .._numerics import ridge
from .._numerics.array_api import Array, arange_like, asarray_like, doubles
from .._statistics import kernels
from .._statistics.conditional_forecasts import check_kind, condition_gram, error_of_forecasts
from .._statistics.gram import (
    compute_pivoted_cholesky,
    fourier_features,
    gram_diagonal,
    gram_matrix,
)
from .._statistics.kernels import MIN_KERNEL_BANDWIDTH, Kernel
from .._statistics.matching_checks import MATCHING_CONSTRAINTS
from ..lenses import Lens
from ._kernel import CONDITIONAL_CONSTRAINTS, KERNEL_OPTIONS, conditional_kernel
from ._reductions import average_over_reductions
from ._registry import register_metric, select_data, select_options

# "nystroem" adds pivots until its error is certainly below this share of the value.
_NYSTROEM_RTOL = 1e-3

# Seconds that a core takes for n³ operations of "exact", divided by n³.
_SECONDS_PER_CUBE = 1.5e-11

# Options that only some values of other options read.
_CONDITIONAL_OPTIONS: OptionsOf = KERNEL_OPTIONS | {
    "kernel": {"linear": (), "callable": ("method",), "rbf": ("bandwidth", "method")},
    "outcome_kernel": {"callable": (), "rbf": ("outcome_bandwidth",)},
    "method": {"exact": (), "fourier": ("n_components",)},
}


class _Regression(NamedTuple):
    """The ridge regression of the residuals, and the options of the value that it returns."""

    points: Array  # probabilities (n, K)
    label: Array  # (n,)
    weight: Array  # (n,)
    regularization: float | str
    estimation: str

    def proba(self, rows: slice) -> Array:
        """Return p in double precision, (b, K)."""
        return doubles(self.points[rows, :])

    def residuals(self, rows: slice) -> Array:
        """Return e_y − p, (b, K)."""
        classes = arange_like(self.points, self.points.shape[1])
        return doubles(self.label[rows, None] == classes) - self.proba(rows)

    def from_gram(self, gram: Array) -> float:
        """Return the value from the Gram matrix (n, n), which is overwritten."""
        residual, penalty = self.residuals(slice(None)), self.regularization
        if penalty == "cv":
            return ridge.cross_validated_norm(residual, self.weight, gram=gram)
        if self.estimation == "biased":
            return ridge.ridge_norm(gram, residual, self.weight, float(penalty))
        xp, form = array_namespace(gram), ridge.ridge_form(gram, self.weight, float(penalty))
        value = float(xp.sum(residual * (form @ residual)))
        pairs = partial(ridge.noise_of_pairs, lambda rows: form[rows, :])
        return self._subtract_noise(value, xp.linalg.diagonal(form), pairs)

    def from_features(self, features: Callable[[slice], Array]) -> float:
        """Return the value from features (b, d) of any rows."""
        penalty, rows = self.regularization, slice(0, self.weight.shape[0])
        if penalty != "cv" and self.estimation == "biased":
            return ridge.ridge_norm_of_features(
                features, self.residuals, self.weight, float(penalty)
            )
        first_row = features(slice(0, 1))
        task = f"estimation={self.estimation!r} and regularization={penalty!r} with features"
        remedy = "Choose fewer components, or pass a random subsample of the rows."
        check_memory(16.0 * rows.stop * first_row.shape[1], task, remedy)
        if penalty == "cv":
            return ridge.cross_validated_norm(
                self.residuals(rows), self.weight, features=features(rows)
            )
        xp = array_namespace(first_row)
        scores = ridge.ridge_scores(features(rows), self.weight, float(penalty))
        value = float(xp.sum((scores.T @ self.residuals(rows)) ** 2))
        diagonal = xp.sum(scores**2, axis=1)
        return self._subtract_noise(value, diagonal, partial(ridge.noise_of_scores, scores))

    def _subtract_noise(
        self, value: float, diagonal: Array, pairs: Callable[[Array], Array]
    ) -> float:
        """Return the value minus its mean under calibration, in standard deviations if asked."""
        proba = self.proba(slice(None))
        value -= float(array_namespace(proba).sum(diagonal * ridge.residual_variances(proba)))
        if self.estimation == "debiased":
            return value
        deviation = ridge.noise_variance(diagonal, pairs(proba), proba) ** 0.5
        if deviation == 0:  # probabilities 0 and 1: no label but the predicted one can be drawn
            return np.inf if value > 0 else 0.0
        return value / deviation


def _conditional_error(
    data: ClassData,
    kernel: str | Kernel,
    bandwidth: float | str,
    regularization: float | str | None,
    method: str,
    n_components: int,
    rng: np.random.RandomState,
    estimation: str,
) -> float:
    # a user's function, a search for pivots, and features that are an array of NumPy
    if callable(kernel) or method == "nystroem" or data.given is not None:
        data = data.to_numpy()
    label, weight = data.label, data.weight
    points = data.matrix if data.is_binary else data.proba
    if regularization is None:
        regularization = weight.shape[0] ** -0.25
    regression = _Regression(points, label, weight, regularization, estimation)
    if data.given is not None:
        check_matrix(points, 3)
        return regression.from_gram(condition_gram(data, kernel, bandwidth))
    if kernel == "linear":  # K features; the Gram matrix would cost more and lose digits
        return regression.from_features(regression.proba)
    task = f"method={method!r} with n_components={n_components}"
    if method == "fourier":
        gamma = max(kernels.resolve_bandwidth(data, "rbf", bandwidth), MIN_KERNEL_BANDWIDTH)
        check_memory(32.0 * n_components**2, task, "Choose fewer components.")
        frequencies = rng.standard_normal(size=(n_components, points.shape[1])) / gamma
        frequencies = asarray_like(weight, frequencies)

        def features(rows: slice) -> Array:
            block_proba = regression.proba(rows)
            waves = fourier_features(block_proba, frequencies)
            if kernel == "rbf":
                return waves
            return array_namespace(block_proba).concat([block_proba, waves], axis=1)

        return regression.from_features(features)
    if method == "exact":
        check_matrix(points, 3 if estimation != "biased" or regularization == "cv" else 1)
    elif method == "nystroem":
        needed = 8.0 * len(points) * min(n_components, len(points))
        remedy = "or pass method='fourier' or a random subsample of the rows."
        check_memory(needed, task, f"Choose fewer components, {remedy}")
    function = conditional_kernel(data, kernel, bandwidth)
    points = doubles(data.matrix)
    if method == "exact":
        gram = gram_matrix(function, points)
        if callable(kernel):
            kernels.check_finite_kernel(gram)
        try:
            return regression.from_gram(gram)
        except LinAlgError:
            kernels.check_semidefinite(gram_matrix(function, points), "kernel")
            raise
    return _nystroem(function, points, regression, n_components)


def _conditional_kernel_calibration_error(
    data: AnyData, *, random_state: RandomState = None, **options: Any
) -> float | np.ndarray:
    check_kind(data, options)
    check_options_of(conditional_kernel_calibration_error, _CONDITIONAL_OPTIONS, options)
    check_fourier_kernel(options["kernel"], options["method"])
    check_noise_options(data, options)
    if isinstance(data, ForecastData):
        check_matrix(data.weight, 4)
        return error_of_forecasts(data, options)
    class_options = {name: options[name] for name in options if not name.startswith("outcome_")}
    rng = check_random_state(random_state)
    return average_over_reductions(_conditional_error, data, rng=rng, **class_options)


def _nystroem(kernel: Kernel, points: Array, regression: _Regression, max_components: int) -> float:
    """Return the value from pivots of the Gram matrix, as many as its accuracy needs.

    Leaving out a part of the Gram matrix with trace e changes the value by at most 3 e Σ w‖r‖²/λ²,
    and its expectation by as much, with the expectation of ‖r‖².
    """
    rows, plain = slice(None), regression._replace(estimation="biased")
    squares = np.sum(regression.residuals(rows) ** 2, axis=1)
    if regression.estimation != "biased":
        squares += ridge.residual_variances(regression.proba(rows))
    factor = 3 * float(regression.weight @ squares) / float(regression.regularization) ** 2
    diagonal, tolerance = gram_diagonal(kernel, points), 1e-3
    while True:
        features, error = compute_pivoted_cholesky(
            kernel, points, diagonal, regression.weight, max_components, tolerance
        )
        kernels.check_finite_kernel(features)
        value = plain.from_features(features.__getitem__)
        is_close = factor * error <= _NYSTROEM_RTOL * value
        if is_close or error > tolerance or features.shape[1] == len(points):
            break
        tolerance = min(tolerance / 10, _NYSTROEM_RTOL * value / (2 * factor))
    if not is_close:
        can_grow = features.shape[1] < len(points)
        remedy = "Raise n_components." if can_grow else "What is left is rounding."
        warn(
            f"{features.shape[1]} components leave an error of at most {factor * error:.2g} in the "
            f"conditional kernel calibration error, {value:.4g}. {remedy}",
            ConvergenceWarning,
        )
    is_biased = regression.estimation == "biased"
    return value if is_biased else regression.from_features(features.__getitem__)


@register_metric(
    _conditional_kernel_calibration_error,
    CONDITIONAL_CONSTRAINTS
    | {
        "bandwidth": MATCHING_CONSTRAINTS["given_bandwidth"],
        "outcome_kernel": [StrOptions({"rbf", "laplacian"}), callable],
        "outcome_bandwidth": MATCHING_CONSTRAINTS["bandwidth"],
        "regularization": [Interval(Real, 1e-6, 1e6, closed="both"), StrOptions({"cv"}), None],
        "n_components": [Count(1)],
    },
    cost="n³",
    takes=("classes", "forecasts"),
)
def conditional_kernel_calibration_error(
    y_true: ArrayLike,
    y_pred: object,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    given: ArrayLike | None = None,
    kernel: str | Callable = "linear-rbf",
    bandwidth: float | Literal["median"] = "median",
    outcome_kernel: str | Callable = "rbf",
    outcome_bandwidth: float | Literal["median"] = "median",
    regularization: float | str | None = None,
    estimation: Literal["biased", "debiased", "standardized"] = "biased",
    method: Literal["exact", "fourier", "nystroem"] = "exact",
    n_components: int = 100,
    random_state: RandomState = None,
    multi_class: Literal["canonical", "confidence", "top-label", "classwise"] | Lens = "canonical",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Conditional kernel calibration error (CKCE), for comparing models.

    The squared norm of a kernel ridge regression of the residuals on the predictions: how far the
    conditional distribution of labels, or of outcomes, is from the predicted one [1]_. It depends
    less than other errors on how often each prediction occurs; a harder test set makes it larger,
    too. On samples of a calibrated model it is positive (biased upwards). It has no natural scale.

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

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        Features on which to condition in place of the predictions; needs ``method="exact"``.

    kernel : {"linear-rbf", "linear", "rbf", "total-variation", "exponential", "laplacian"} or \
            callable, default="linear-rbf"
        Kernel on the probability vectors: the inner product plus the Gaussian kernel exp(−‖s −
        t‖²/(2γ²)), one of these alone, or one of :func:`squared_kernel_calibration_error`. Only the
        first three are for forecasts of a number and for `given`.

    bandwidth : "median" or float, default="median"
        The γ of the Gaussian kernel, or the ν of another; "median" as in
        :func:`squared_kernel_calibration_error`. Fix it to compare models.

    outcome_kernel : {"rbf", "laplacian"} or callable, default="rbf"
        Kernel on the outcomes of forecasts: exp(−d²/(2ν²)), exp(−d/ν), or a callable as in
        :func:`distribution_matching_error`.

    outcome_bandwidth : "median" or float, default="median"
        The ν of a named `outcome_kernel`, in the units of the outcomes; "median" as in
        :func:`distribution_matching_error`.

    regularization : float in [1e-6, 1e6] or "cv", default=None
        The λ of the ridge regression; None means :math:`n^{-1/4}`. Fix it to compare samples of
        different sizes. "cv" chooses among 29 numbers from 1e-5 to 100 by leave-one-out
        cross-validation, for each model anew.

    estimation : {"biased", "debiased", "standardized"}, default="biased"
        "debiased" subtracts the expectation of the error for labels drawn from the predictions, so
        that the mean under calibration is 0. Forecasts then need a number as `outcome_bandwidth`.
        "standardized" also divides by the standard deviation, so that values above 2 are rare under
        calibration. It takes no forecasts.

    method : {"exact", "fourier", "nystroem"}, default="exact"
        Exact; with random Fourier features of the Gaussian kernel; or with features from chosen
        predictions and a bound on the error.

    n_components : int, default=100
        Number of frequencies for "fourier", or largest number of chosen predictions for "nystroem".

    random_state : int, RandomState instance or None, default=None
        Seed of "fourier".

    multi_class : {"canonical", "confidence", "top-label", "classwise"} or Lens, default="canonical"
        More than two classes: all at once, or the problems of :func:`smooth_calibration_error`. Or
        a lens of :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        "macro" is the mean over classes. "weighted" weights classes by their share of the
        predictions ("top-label") or labels ("classwise"). "auto" is "weighted" for "top-label",
        else "macro". None returns the array of all values, even if there is only one. A class that
        is never predicted is NaN, and left out of means.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Between 0, which is best, and :math:`1 / (2 \lambda)`, unless debiased.

    Warns
    -----
    ConvergenceWarning
        If "nystroem" leaves an error that may exceed a thousandth of the value.

    See Also
    --------
    joint_kernel_calibration_error : The same of joint distributions.
    skcalib.uncertainty.compare_models : Whether a difference could be chance.

    Notes
    -----
    With the Gram matrix K of the predictions, the residuals :math:`r_i = e_{y_i} - p_i`,
    :math:`R_{ij} = \langle r_i, r_j \rangle` and :math:`W = (K + \lambda n I)^{-1}`,

    .. math:: \mathrm{CKCE} = \mathrm{tr}(W R W K)

    (formula 7 of [1]_), which is :math:`\|M\|^2` for the operator M that minimises :math:`\sum_i
    w_i \|r_i - M \phi(p_i)\|^2 + \lambda \|M\|^2`.

    "exact" takes :math:`O(n^3)` time, and memory for an n × n matrix. "fourier" and "nystroem" take
    :math:`O(n d^2)` time for d features; "nystroem" adds predictions until the bound on its error
    is a thousandth of the value, or there are `n_components`.

    For forecasts of a number, the residuals and the kernel are those of embeddings, the means of
    the features of the `outcome_kernel`. An ensemble without weights is calibrated if its outcome
    is exchangeable with its members.

    With `given`, it is the squared distance (CMMD, equation 5 of [1]_) of the laws of labels and of
    predictions given the features.

    References
    ----------
    .. [1] Moskvichev and Sejdinovic (2025). All Models Are Miscalibrated, But Some Less So:
       Comparing Calibration with Conditional Mean Operators. :arxiv:`2502.11465`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.metrics import conditional_kernel_calibration_error
    >>> for beta in [1, 2, 4]:
    ...     y_true, y_proba = make_temperature_family(500, inverse_temperature=beta, random_state=0)
    ...     print(beta, round(conditional_kernel_calibration_error(y_true, y_proba), 3))
    1 0.001
    2 0.022
    4 0.051
    >>> conditional_kernel_calibration_error(y_true, y_proba, estimation="standardized")
    63.3...
    """
    data = check_data(
        **select_data(locals()),
        multi_class=multi_class,
        may_be_numbers=isinstance(y_pred, tuple),
        on_device=True,
    )
    return _conditional_kernel_calibration_error(data, **select_options(locals()))


def check_fourier_kernel(kernel: str | Kernel, method: str) -> None:
    """Refuse "fourier" except for the Gaussian kernel, and the linear one without features."""
    if method == "fourier" and (callable(kernel) or kernel not in ("linear-rbf", "linear", "rbf")):
        raise ValueError(
            "method='fourier' needs kernel='linear-rbf', 'rbf' or 'linear'; found "
            f"kernel={kernel!r}. Use method='nystroem', which takes any kernel."
        )


def check_noise_options(data: AnyData, options: dict[str, Any]) -> None:
    """Refuse corrections whose distribution is not known."""
    if options["regularization"] == "cv":
        if options["estimation"] != "biased":
            raise ValueError(
                f"estimation={options['estimation']!r} needs a regularization that does not "
                "depend on the labels, as the expectation of the error is unknown otherwise; "
                "found 'cv'. Pass a number or None."
            )
        if options["method"] == "nystroem" and options["kernel"] != "linear":
            raise ValueError(
                "regularization='cv' needs method='exact' or 'fourier', as the predictions that "
                "'nystroem' chooses depend on the regularization; found 'nystroem'. Pass another "
                "method, or a number."
            )
    is_reduced = options["multi_class"] not in ("canonical", "confidence")
    is_averaged = is_reduced and isinstance(data, ClassData) and not data.is_binary
    is_standardized = options["estimation"] == "standardized"
    if is_standardized and is_averaged and options["average"] is not None:
        raise ValueError(
            "estimation='standardized' needs average=None for the values of several classes, as "
            f"their average has another standard deviation; found {options['average']!r}. Pass "
            "average=None, or multi_class='canonical'."
        )


def check_matrix(points: Array, n_matrices: int) -> None:
    """Refuse matrices of all pairs (n, n) beyond the memory; warn if solving takes long."""
    n, task = points.shape[0], "method='exact'"
    remedy = "Pass method='fourier' or 'nystroem', or a random subsample of the rows."
    if isinstance(points, np.ndarray):
        check_memory(8.0 * n_matrices * n**2, task, remedy)
    warn_if_slow(_SECONDS_PER_CUBE * n_matrices**2 * n**3, task, remedy)
