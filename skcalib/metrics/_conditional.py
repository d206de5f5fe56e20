"""Kernel calibration errors for the comparison of models."""

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._inputs.predictions import Predictions
from .._inputs.scikit_learn import (
    CANONICAL_CONSTRAINTS,
    IntegerInterval,
    Interval,
    Label,
    RandomState,
    StrOptions,
)
from .._inputs.warnings import announce, check_memory, warn
from .._numerics.array_api import Array, constant_like, count_like, doubles
from .._statistics.gram import fourier_features, gram_diagonal, gram_matrix, pivoted_cholesky
from .._statistics.kernels import (
    KERNEL_CONSTRAINTS,
    KERNELS,
    SMALLEST_BANDWIDTH,
    check_finite_kernel,
    check_semidefinite,
    kernel_function,
    resolved_bandwidth,
)
from .._statistics.squared_error import SquaredKernelError
from ._reductions import Needs, average_over_reductions, probability_metric

_CONSTRAINTS: dict = (
    CANONICAL_CONSTRAINTS
    | KERNEL_CONSTRAINTS
    | {"kernel": [StrOptions({"linear-rbf", "linear", *KERNELS}), callable]}
)

# "nystroem" adds pivots until its error is certainly below this share of the value.
_RELATIVE_ERROR = 1e-3

# Seconds that a core takes for n³ operations of "exact", divided by n³.
_SECONDS = 1.5e-11


def _linear(s, t):
    return s @ t.T


def _linear_plus(s, t, other):
    return s @ t.T + other(s, t)


def _conditional_kernel(predictions, kernel, bandwidth):
    """The kernel as a function of rows of probabilities, the combined one included."""
    if kernel == "linear":
        return _linear
    if kernel == "linear-rbf":
        return partial(_linear_plus, other=kernel_function(predictions, "rbf", bandwidth))
    return kernel_function(predictions, kernel, bandwidth)


def _conditional_error(
    predictions: Predictions, kernel, bandwidth, regularization, method, n_components, rng
) -> float:
    if callable(kernel) or method == "nystroem":  # a user's function, or a search for pivots
        predictions = predictions.on_host()
    label, weight = predictions.label, predictions.weight
    points = predictions.matrix if predictions.is_binary else predictions.proba
    classes, xp = count_like(points, points.shape[1]), array_namespace(points)
    regularization = weight.shape[0] ** -0.25 if regularization is None else float(regularization)

    def part(rows):
        """p in double precision, (b, K)."""
        return doubles(points[rows, :])

    def vectors(rows):
        """e_y − p, (b, K)."""
        return doubles(label[rows, None] == classes) - part(rows)

    if kernel == "linear":  # K features; the Gram matrix would cost more and lose digits
        return ridge_norm_of_features(part, vectors, weight, regularization)
    if method == "fourier":
        gamma = max(resolved_bandwidth(predictions, "rbf", bandwidth), SMALLEST_BANDWIDTH)
        frequencies = rng.standard_normal(size=(n_components, points.shape[1])) / gamma
        frequencies = constant_like(weight, frequencies)

        def features(rows):
            waves = fourier_features(part(rows), frequencies)
            return waves if kernel == "rbf" else xp.concat([part(rows), waves], axis=1)

        return ridge_norm_of_features(features, vectors, weight, regularization)
    if method == "exact":
        check_matrix(points)
    elif method == "nystroem":
        check_features(points, n_components)
    function = _conditional_kernel(predictions, kernel, bandwidth)
    points = doubles(predictions.matrix)
    if method == "exact":
        gram = gram_matrix(function, points)
        if callable(kernel):
            check_finite_kernel(gram)
        try:
            return ridge_norm(gram, vectors(slice(None)), weight, regularization)
        except LinAlgError:
            check_semidefinite(gram_matrix(function, points), "kernel")
            raise
    return _nystroem(function, points, vectors, weight, regularization, n_components)


def _conditional_kernel_calibration_error(
    predictions: Predictions, *, random_state: RandomState = None, **options: Any
) -> float | np.ndarray:
    check_fourier_kernel(options["kernel"], options["method"])
    rng = check_random_state(random_state)
    return average_over_reductions(_conditional_error, predictions, rng=rng, **options)


def _nystroem(kernel, points, vectors, weight, regularization, most):
    """The value from pivots of the Gram matrix, as many as its accuracy needs.

    Leaving out a part of the Gram matrix with trace e changes the value by at most 3 e Σ w‖r‖²/λ².
    """
    squares = float(np.sum(weight * np.sum(vectors(slice(None)) ** 2, axis=1)))
    factor = 3 * squares / regularization**2
    diagonal, tolerance = gram_diagonal(kernel, points), 1e-3
    while True:
        features, error = pivoted_cholesky(kernel, points, diagonal, weight, most, tolerance)
        check_finite_kernel(features)
        value = ridge_norm_of_features(features.__getitem__, vectors, weight, regularization)
        if factor * error <= _RELATIVE_ERROR * value:
            return value
        if error > tolerance or features.shape[1] == len(points):
            break
        tolerance = min(tolerance / 10, _RELATIVE_ERROR * value / (2 * factor))
    remedy = (
        "Raise n_components." if features.shape[1] < len(points) else "What is left is rounding."
    )
    warn(
        f"{features.shape[1]} components leave an error of at most {factor * error:.2g} in the "
        f"conditional kernel calibration error, {value:.4g}. {remedy}",
        ConvergenceWarning,
    )
    return value


def _joint_error(predictions: Predictions, kernel, bandwidth) -> float:
    if len(predictions.weight) < 2:
        return np.nan  # there are no pairs
    if kernel in ("linear", "linear-rbf"):
        kernel = _conditional_kernel(predictions, kernel, bandwidth)
    error = SquaredKernelError(predictions, kernel=kernel, bandwidth=bandwidth)
    return float(error(predictions.label[None])[0])


def _joint_kernel_calibration_error(predictions: Predictions, **options: Any) -> float | np.ndarray:
    check_two_samples(predictions)
    needs = Needs("at least 2 samples", "use the conditional error")
    return average_over_reductions(_joint_error, predictions, needs=needs, **options)


@probability_metric(
    _conditional_kernel_calibration_error,
    _CONSTRAINTS
    | {
        "regularization": [Interval(Real, 1e-6, 1e6, closed="both"), None],
        "method": [StrOptions({"exact", "fourier", "nystroem"})],
        "n_components": [IntegerInterval(1)],
        "random_state": ["random_state"],
    },
    cost="n³",
    in_place=True,
)
def conditional_kernel_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    kernel: str | Callable = "linear-rbf",
    bandwidth: float | str = "median",
    regularization: float | None = None,
    method: str = "exact",
    n_components: int = 100,
    random_state: RandomState = None,
    multi_class: str = "canonical",
    average: str | None = "auto",
) -> float | np.ndarray:
    r"""Conditional kernel calibration error (CKCE), for comparing models.

    The squared norm of a kernel ridge regression of the residuals on the predictions: how far the
    labels' conditional distribution is from the predicted one [1]_. It depends less than other
    errors on how often each prediction occurs, but it does: a wrong prediction that is rare beside
    the regularisation counts little. So compare models on different data only if sizes, bandwidth
    and regularisation are the same and the predictions are spread alike. It is 0 if all residuals
    are 0; on a finite sample of a calibrated model it is positive, so it is biased upwards. The
    number has no natural scale.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class whose probability a one-dimensional `y_proba` holds. By default the last of
        `labels`.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    kernel : {"linear-rbf", "linear", "rbf", "total-variation", "exponential", "laplacian"} or \
            callable, default="linear-rbf"
        Kernel on the probability vectors: the inner product plus the Gaussian kernel exp(−‖s −
        t‖²/(2γ²)) of [1]_, one of these alone, or one of
        :func:`squared_kernel_calibration_error`. The combination is what makes the measure robust.

    bandwidth : "median" or float, default="median"
        The γ of the Gaussian kernel, or the ν of another. "median" takes the median of the
        distances between predictions, over all pairs of samples (see the notes of
        :func:`squared_kernel_calibration_error`). It differs from model to model: fix the bandwidth
        to compare their errors.

    regularization : float in [1e-6, 1e6], default=None
        The λ of the ridge regression; None means :math:`n^{-1/4}`. It decides the scale of the
        number: compare models on samples of the same size, or give a number.

    method : {"exact", "fourier", "nystroem"}, default="exact"
        Exact; with random Fourier features of the Gaussian kernel (kernels "linear-rbf", "rbf" and
        "linear" only); or with features that approximate the kernel at chosen predictions, with a
        bound on the error.

    n_components : int, default=100
        Number of frequencies for "fourier", or the largest number of chosen predictions for
        "nystroem".

    random_state : int, RandomState instance or None, default=None
        Seed of the frequencies.

    multi_class : {"canonical", "confidence", "top-label", "classwise"}, default="canonical"
        For more than two classes: all classes at once, or the binary problems of
        :func:`smooth_calibration_error`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        How the values for single classes are averaged under "top-label" (over the classes that are
        predicted at all; "weighted" by their share of the predictions) and "classwise" ("weighted"
        by the share of the labels). "auto" is "weighted" for "top-label" and "macro" for
        "classwise", as these measures are defined. None returns the values of all classes, NaN for
        one that is never predicted.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        At least 0, which is best; at most :math:`1 / (2 \lambda)`. An array if `average` is None
        and there are values for several classes.

    Warns
    -----
    ConvergenceWarning
        If "nystroem" leaves an error that may exceed a thousandth of the value; it states the
        bound.

    See Also
    --------
    joint_kernel_calibration_error : The same comparison of joint distributions.
    skcalib.uncertainty.compare : Whether a difference between two models could be chance.

    Notes
    -----
    With the Gram matrix K of the predictions, the residuals :math:`r_i = e_{y_i} - p_i`,
    :math:`R_{ij} = \langle r_i, r_j \rangle` and :math:`W = (K + \lambda n I)^{-1}`,

    .. math:: \mathrm{CKCE} = \mathrm{tr}(W R W K)

    (formula 7 of [1]_). It equals :math:`\|M\|^2` for the operator M that minimises :math:`\sum_i
    w_i \|r_i - M \phi(p_i)\|^2 + \lambda \|M\|^2`, which is the definition for weights
    :math:`w_i`.

    "exact" solves with a Cholesky factor: :math:`O(n^3)` time, and memory for an n × n matrix.
    "fourier" has d = K + 2D features for D frequencies and sums over blocks of rows: :math:`O(n d^2
    + d^3)` time and :math:`O(d^2)` memory beside the data. The error of the value falls like
    :math:`D^{-1/2}`. "nystroem" has d chosen predictions (pivots of a Cholesky factorisation),
    :math:`O(n d^2)` time and :math:`O(n d)` memory. If e is the mean of the part of k(p, p) that
    they do not explain, the value is wrong by at most :math:`3 e \sum_i w_i \|r_i\|^2 / \lambda^2`;
    predictions are chosen until that is a thousandth of the value, or there are `n_components`.
    Ties need no special treatment, nor do probabilities 0 and 1.

    Under scikit-learn's `array_api_dispatch`, tensors stay on their device. They are converted once
    for "nystroem", a callable kernel and binary problems of more classes, and for the bandwidth
    "median", which sorts.

    References
    ----------
    .. [1] P. Moskvichev and D. Sejdinovic (2025). All Models Are Miscalibrated, But Some Less So:
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
    """


@probability_metric(_joint_kernel_calibration_error, _CONSTRAINTS, cost="n²")
def joint_kernel_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    kernel: str | Callable = "linear-rbf",
    bandwidth: float | str = "median",
    multi_class: str = "canonical",
    average: str | None = "auto",
) -> float | np.ndarray:
    r"""Joint kernel calibration error (JKCE): the counterpart of CKCE for joint distributions.

    The unbiased estimate of the squared distance between the joint distributions of (prediction,
    label) and (prediction, label drawn from the prediction). It scatters around 0 for a calibrated
    model and can be negative. Unlike :func:`conditional_kernel_calibration_error` it depends on
    the distribution of the predictions, which it is there to show.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class whose probability a one-dimensional `y_proba` holds. By default the last of
        `labels`.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    kernel : {"linear-rbf", "linear", "rbf", "total-variation", "exponential", "laplacian"} or \
            callable, default="linear-rbf"
        Kernel on the probability vectors, as in :func:`conditional_kernel_calibration_error`.

    bandwidth : "median" or float, default="median"
        The γ of the Gaussian kernel, or the ν of another. "median" takes the median of the
        distances between predictions, over all pairs of samples (see the notes of
        :func:`squared_kernel_calibration_error`). It differs from model to model: fix the bandwidth
        to compare their errors.

    multi_class : {"canonical", "confidence", "top-label", "classwise"}, default="canonical"
        For more than two classes: all classes at once, or the binary problems of
        :func:`smooth_calibration_error`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        How the values for single classes are averaged under "top-label" (over the classes that are
        predicted at all; "weighted" by their share of the predictions) and "classwise" ("weighted"
        by the share of the labels). "auto" is "weighted" for "top-label" and "macro" for
        "classwise", as these measures are defined. None returns the values of all classes, NaN for
        one that is never predicted.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Smaller is better. An array if `average` is None and there are values for several classes.

    Raises
    ------
    ValueError
        If there are not two samples; with "top-label", not in any class.

    Warns
    -----
    UndefinedMetricWarning
        If the average leaves out a class that is predicted for one sample only.

    See Also
    --------
    squared_kernel_calibration_error : The same with other kernels and estimators.

    Notes
    -----
    This is the unbiased :func:`squared_kernel_calibration_error`, with the Kronecker kernel on the
    labels. Weights, cost and ties are as there; the kernels with a linear part cost :math:`O(n^2
    K)`. With "top-label" the value of a class that is predicted for one sample only is NaN, and the
    average is taken over the other classes.

    References
    ----------
    .. [1] P. Moskvichev and D. Sejdinovic (2025). All Models Are Miscalibrated, But Some Less So:
       Comparing Calibration with Conditional Mean Operators. :arxiv:`2502.11465`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.metrics import joint_kernel_calibration_error
    >>> y_true, y_proba = make_temperature_family(500, inverse_temperature=4, random_state=0)
    >>> joint_kernel_calibration_error(y_true, y_proba)
    0.047...
    """


def check_fourier_kernel(kernel, method):
    """Refuse "fourier" but for the Gaussian kernel and the linear one, which needs no features."""
    if method == "fourier" and (callable(kernel) or kernel not in ("linear-rbf", "linear", "rbf")):
        raise ValueError(
            "method='fourier' needs kernel='linear-rbf', 'rbf' or 'linear'; found "
            f"kernel={kernel!r}. Use method='nystroem', which takes any kernel."
        )


def check_matrix(points):
    """Refuse, or announce, a matrix of all pairs (n, n) that is too large to solve with."""
    n, what = points.shape[0], "method='exact'"
    remedy = "Pass method='fourier' or 'nystroem', or a random subsample of the rows."
    if isinstance(points, np.ndarray):
        check_memory(8.0 * n**2, what, remedy)
    announce(_SECONDS * n**3, what, remedy)


def check_features(points, n_components):
    """Refuse features of all samples that do not fit into memory."""
    check_memory(
        8.0 * len(points) * min(n_components, len(points)),
        f"method='nystroem' with n_components={n_components}",
        "Choose fewer components, or pass method='fourier' or a random subsample of the rows.",
    )


def check_two_samples(predictions):
    """Refuse a single sample: the joint error averages over pairs."""
    if len(predictions.weight) < 2:
        raise ValueError(
            "y_true must hold at least 2 samples of positive weight, as pairs of different samples "
            "are averaged; found 1. Collect more, or use the conditional error."
        )


# Rows of features that are held at once.
_ROWS = 4096


def ridge_norm(gram: Array, vectors: Array, weight: Array, regularization: float) -> float:
    """‖M‖² of a kernel ridge regression, from its Gram matrix (n, n) and vectors (n, C) in O(n³).

    With weights w that sum to 1, vectors r_i and features φ with k(p, q) = ⟨φ(p), φ(q)⟩, the
    operator M minimises Σ_i w_i ‖r_i − M φ(p_i)‖² + λ‖M‖², and has the Hilbert-Schmidt norm ‖M‖.
    If the features have coordinates, M = C (S + λI)⁻¹ with C = Σ w r φᵀ and S = Σ w φ φᵀ. If only
    their Gram matrix K is known, ‖M‖² = Σ aᵀ (D^½ r − λ a) with D = diag(w) and
    a = (D^½ K D^½ + λI)⁻¹ D^½ r. For equal weights that is tr(W R W K) with W = (K + λ n I)⁻¹ and
    R_ij = ⟨r_i, r_j⟩. The Gram matrix is overwritten.
    """
    xp = array_namespace(gram)
    root = xp.sqrt(weight)[:, None]
    gram *= root
    gram *= root.T
    target = root * vectors
    solution = _solution(gram.T, regularization, target)  # transposed, in the order of LAPACK
    return max(float(xp.sum(solution * (target - regularization * solution))), 0.0)


def ridge_norm_of_features(
    features: Callable[[slice], Array],
    vectors: Callable[[slice], Array],
    weight: Array,
    regularization: float,
) -> float:
    """‖M‖² from features (b, d) and vectors (b, C) of any rows. Cost O(n d² + d³), memory O(d²)."""
    second = cross = 0.0
    for i in range(0, weight.shape[0], _ROWS):
        rows = slice(i, min(i + _ROWS, weight.shape[0]))
        block = features(rows)
        weighted = weight[rows, None] * block
        second = second + block.T @ weighted
        cross = cross + weighted.T @ vectors(rows)
    solution = _solution(second, regularization, cross)
    return float(array_namespace(solution).sum(solution**2))


def _solution(matrix: Array, ridge: float, right: Array) -> Array:
    """(matrix + ridge I)⁻¹ right of a semi-definite matrix, which is overwritten."""
    if isinstance(matrix, np.ndarray):
        np.einsum("ii->i", matrix)[:] += ridge
        factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
        return cho_solve(factor, right)
    xp = array_namespace(matrix)
    index = count_like(matrix, matrix.shape[0])
    return xp.linalg.solve(xp.where(index[:, None] == index, matrix + ridge, matrix), right)
