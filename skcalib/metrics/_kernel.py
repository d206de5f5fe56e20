"""Kernel calibration errors."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.options import OptionsOf, check_options_of
from .._inputs.scikit_learn import Average, Count, IntegerInterval, Label, RandomState, StrOptions
from .._statistics import kernels, squared_error
from .._statistics.base import Statistic
from .._statistics.fourier_error import N_COMPONENTS, check_fourier, make_kernel_error
from .._statistics.gram import gram_product
from .._statistics.kernels import KERNEL_CONSTRAINTS, KERNELS, Kernel, kernel_function
from ..lenses import Lens
from ._reductions import SampleRequirement, average_over_reductions
from ._registry import RadiusRule, register_metric, select_data, select_options
from ._terms import Witness, make_square_witness, witness_terms

CONDITIONAL_CONSTRAINTS: dict = KERNEL_CONSTRAINTS | {
    "kernel": [StrOptions({"linear-rbf", "linear", *KERNELS}), callable]
}


# Options that only some values of other options read.
KERNEL_OPTIONS: OptionsOf = {
    "kernel": {"linear": (), "intersection": (), "callable": (), "rbf": ("bandwidth",)},
    "multi_class": {"canonical": ("class_kernel",), "confidence": (), "classwise": ()},
}
_ESTIMATOR_OPTIONS: OptionsOf = {
    "estimation": {"unbiased": (), "biased": (), "linear": (), "block": ("block_size",)},
    "method": {"exact": (), "fourier": ("n_components",)},
}


def _linear(s: np.ndarray, t: np.ndarray) -> np.ndarray:
    return s @ t.T


def _linear_plus(s: np.ndarray, t: np.ndarray, kernel: Kernel) -> np.ndarray:
    return s @ t.T + kernel(s, t)


def conditional_kernel(data: ClassData, kernel: str | Kernel, bandwidth: float | str) -> Kernel:
    """Return the kernel as a function of rows of probabilities, also "linear-rbf"."""
    if kernel == "linear":
        return _linear
    if kernel == "linear-rbf":
        return partial(_linear_plus, kernel=kernel_function(data, "rbf", bandwidth))
    return kernel_function(data, kernel, bandwidth)


def _squared_error(data: ClassData, **options: Any) -> float:
    estimation = options["estimation"]
    if data.n_samples < _min_samples(estimation, options["block_size"]):
        return np.nan  # there are no pairs
    if estimation == "unbiased" and squared_error.has_negligible_pairs(data):
        return np.nan
    error = make_kernel_error(data, **options)
    return float(error(error.data.label[None, :])[0])


def _canonical_statistic(
    make: Callable, data: ClassData, *, multi_class: str | Lens, average: Average, **options: Any
) -> Statistic | None:
    """Make the error of batches of labels of all classes at once; None for other reductions."""
    check_options_of(kernel_calibration_error, {"kernel": KERNEL_OPTIONS["kernel"]}, options)
    return make(data, **options) if multi_class == "canonical" else None


class _RootOfError(Statistic):
    """The kernel error of batches of labels, whose kernel is known once."""

    def __init__(self, data: ClassData, **options: Any) -> None:
        self.error = squared_error.SquaredKernelError(data, estimation="biased", **options)
        self.data, self.options = self.error.data, options
        self.supports = self.error.supports & {"any-order", "counts"}

    @property
    def numbers_per_draw(self) -> int:
        return self.error.numbers_per_draw

    def __call__(self, outcomes: np.ndarray) -> np.ndarray:
        """Values (R,) for R label vectors (R, n)."""
        return np.sqrt(self.error(outcomes))


def _min_samples(estimation: str, block_size: int | None) -> int:
    """Return the smallest number of samples for which the estimate has a pair."""
    if estimation == "biased":
        return 1
    return block_size if estimation == "block" and block_size is not None else 2


def _squared_kernel_calibration_error(data: ClassData, **options: Any) -> float | np.ndarray:
    all_options = KERNEL_OPTIONS | _ESTIMATOR_OPTIONS
    check_options_of(squared_kernel_calibration_error, all_options, options)
    estimation, block_size = options["estimation"], options["block_size"]
    squared_error.check_enough_for_estimation(data, estimation, block_size)
    check_fourier(options["method"], options["kernel"], estimation)
    n_required = _min_samples(estimation, block_size)
    needs = SampleRequirement(f"at least {n_required} samples", "use estimation='biased'")
    return average_over_reductions(_squared_error, data, needs=needs, **options)


def _kernel_error(data: ClassData, **options: Any) -> float:
    square = _squared_error(data, estimation="biased", block_size=None, **options)
    return float(np.sqrt(max(square, 0.0)))


def _find_square_witness(
    data: ClassData,
    *,
    kernel: str | Kernel,
    bandwidth: float | str,
    class_kernel: np.ndarray | None = None,
    estimation: str = "unbiased",
    method: str = "exact",
    takes_root: bool = False,
    **_: object,
) -> Witness | None:
    is_unbiased = estimation == "unbiased"
    if method != "exact" or not (is_unbiased or estimation == "biased"):
        return None
    if is_unbiased and (data.square is not None or len(data.weight) < 2):
        return None
    error = squared_error.SquaredKernelError(
        data, kernel=kernel, bandwidth=bandwidth, class_kernel=class_kernel, estimation=estimation
    )
    if error.uses_sorted_algorithm:
        points, mass = data.pool_residuals()
        product = error.family.product(points, mass, error.length)
        product = product[np.searchsorted(points, data.proba)]
        product = error.scale * (product - is_unbiased * data.weighted_residuals)
    else:
        mass = error.weighted_residuals(data.label[None])[:, 0]
        product = gram_product(error.kernel, data.matrix, mass, is_unbiased)
        product = product if error.root is None else product @ error.root.T
    return make_square_witness(data, product, takes_root=takes_root, is_unbiased=is_unbiased)


def _find_joint_witness(
    data: ClassData, kernel: str | Kernel, bandwidth: float | str
) -> Witness | None:
    if kernel in ("linear", "linear-rbf"):
        kernel = conditional_kernel(data, kernel, bandwidth)
    return _find_square_witness(data, kernel=kernel, bandwidth=bandwidth)


def _max_square(options: dict[str, Any]) -> float:
    """Return the largest value with a named kernel, which is at most 1; otherwise infinity."""
    is_known = isinstance(options["kernel"], str) and options["class_kernel"] is None
    return 2.0 if is_known else math.inf


_ERROR_CONSTRAINTS: dict = KERNEL_CONSTRAINTS | {"class_kernel": ["array-like", None]}
_ERROR_CONSTRAINTS["kernel"] = [StrOptions(set(kernels.SIMPLEX_KERNELS)), callable]


@register_metric(
    _squared_kernel_calibration_error,
    _ERROR_CONSTRAINTS | {"block_size": [IntegerInterval(2), None], "n_components": [Count(1)]},
    cost="n²",
    largest=_max_square,
    statistic=partial(_canonical_statistic, make_kernel_error),
    supports_counts=True,
    terms=witness_terms(_find_square_witness),
    root="kernel_calibration_error",
    supports_groups=True,
)
def squared_kernel_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    kernel: str | Callable = "total-variation",
    bandwidth: float | Literal["median"] = "median",
    estimation: Literal["unbiased", "biased", "linear", "block"] = "unbiased",
    block_size: int | None = None,
    class_kernel: ArrayLike | None = None,
    method: Literal["exact", "fourier"] = "exact",
    n_components: int = N_COMPONENTS,
    random_state: RandomState = None,
    multi_class: Literal["canonical", "confidence", "top-label", "classwise"] | Lens = "canonical",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Squared kernel calibration error (SKCE) of all class probabilities jointly.

    Its expectation is 0 exactly if the model is calibrated in the strongest sense (canonically),
    for a universal kernel such as the default. The unbiased estimate can be negative; the biased
    one is too large by :math:`O(1/n)`. The number has no natural scale: judge it by a
    :class:`skcalib.hypothesis_tests.CalibrationTest`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    kernel : {"total-variation", "exponential", "laplacian", "rbf", "intersection"} or callable, \
            default="total-variation"
        Kernel on the probability vectors: exp(−d/ν) with the total variation distance d = ½‖s −
        t‖₁, with the Euclidean distance, or with ‖s − t‖₁; or exp(−‖s − t‖₂²/(2ν²)); or 1 − ½‖s −
        t‖₁, which is the sum of min(s, t) over the classes. Or a
        :class:`sklearn.gaussian_process.kernels.Kernel` without a `WhiteKernel`, or any positive
        definite function of arrays of shapes (a, n_classes) and (b, n_classes) with values of shape
        (a, b), or with matrices of shape (a, b, n_classes, n_classes).

    bandwidth : "median" or float, default="median"
        The ν of a named kernel; "intersection" has none. "median" is the median distance between
        predictions, but at least a tenth of the root mean square distance. Fix it to compare
        models.

    estimation : {"unbiased", "biased", "linear", "block"}, default="unbiased"
        Which pairs are averaged. "unbiased": all pairs of different samples; "biased": also each
        sample with itself; "linear": the first sample with the second, the third with the fourth,
        and so on; "block": all pairs within blocks. "linear" and "block" depend on the order of the
        samples.

    block_size : int, default=None
        Number of samples in a "block"; None means :math:`\lfloor\sqrt n\rfloor`.

    class_kernel : array-like of shape (n_classes, n_classes), default=None
        A positive semi-definite matrix M over the classes; None is the identity. For
        ``multi_class="canonical"`` only.

    method : {"exact", "fourier"}, default="exact"
        "fourier" uses random features of a named kernel, in linear time, if `estimation` is
        "unbiased" or "biased".

    n_components : int, default=200
        Number of random frequencies of "fourier".

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
        Smaller is better; at most 2 for the named kernels, or with a class kernel M the largest
        :math:`M_{kk} + M_{ll} - 2 M_{kl}`.

    Raises
    ------
    ValueError
        If there are not enough samples for the estimate; with "top-label", if no class has enough.

    Warns
    -----
    UndefinedMetricWarning
        If the average leaves out a class that is predicted too rarely for the estimate.

    See Also
    --------
    kernel_calibration_error : The root of the biased estimate.
    skcalib.hypothesis_tests.CalibrationTest : The p-value of this number.
    smooth_calibration_error : A distance on the scale of probabilities.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, the residual :math:`r_i = e_{y_i} - p_i` of the one-hot
    label and :math:`h_{ij} = k(p_i, p_j) \, r_i^\top M r_j`,

    .. math::
        \mathrm{biased} = \sum_{i,j} w_i w_j h_{ij}, \qquad
        \mathrm{unbiased} = \frac{\sum_{i \ne j} w_i w_j h_{ij}}{\sum_{i \ne j} w_i w_j}

    (Table 1 of [1]_). For the unbiased estimate a weight of 2 is not the same as a sample that
    occurs twice. A callable with matrices for values has :math:`h_{ij} = r_i^\top k(p_i, p_j) r_j`;
    it must be positive semi-definite with :math:`k(s, t) = k(t, s)^\top`, without `class_kernel`.

    For two classes the number is twice that with residuals :math:`y_i - p_i`; "confidence" is twice
    the squared MMCE with ``kernel="total-variation"``, ``bandwidth=0.4`` and
    ``estimation="biased"``.

    Half of the biased estimate of two classes with "intersection" is the averaged two-bin error
    (ATB) [3]_. With more classes this kernel compares one probability at a time, so the error can
    be 0 for a model that is not calibrated canonically. Biased estimates with a named kernel are
    truthful, with "canonical" and with the plain mean of "classwise": no predictions have a lower
    expected value than the true probabilities. Unbiased estimates and roots are not truthful
    (theory page *what each measure is*).

    Two classes cost :math:`O(n \log n)`, except with "rbf" and callables; otherwise "unbiased" and
    "biased" cost :math:`O(n^2 K)`, without a matrix of all pairs, "linear" :math:`O(n K)` and
    "block" :math:`O(n B K)` for blocks of size B. "fourier" [2]_ costs :math:`O(n D K)` for D
    frequencies, with a standard error of at most :math:`\sqrt{1/D}` times the biased estimate with
    k = 1.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification:
       A unifying framework. NeurIPS. :arxiv:`1910.11385`
    .. [2] Rahimi and Recht (2007). Random features for large-scale kernel machines. NeurIPS 2007.
    .. [3] Hartline, Hu and Wu (2026). A Perfectly Truthful Calibration Measure. COLT.
       :arxiv:`2508.13100`

    Examples
    --------
    >>> from skcalib.metrics import squared_kernel_calibration_error
    >>> y_true, y_proba = [0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9]
    >>> squared_kernel_calibration_error(y_true, y_proba)
    -0.068...
    >>> squared_kernel_calibration_error(y_true, y_proba, estimation="biased")
    0.115...
    """
    data = check_predictions(**select_data(locals()), multi_class=multi_class, on_device=True)
    return _squared_kernel_calibration_error(data, **select_options(locals()))


def _kernel_calibration_error(data: ClassData, **options: Any) -> float | np.ndarray:
    check_options_of(kernel_calibration_error, KERNEL_OPTIONS, options)
    return average_over_reductions(_kernel_error, data, **options)


@register_metric(
    _kernel_calibration_error,
    _ERROR_CONSTRAINTS,
    cost="n²",
    largest=lambda options: math.sqrt(_max_square(options)),
    statistic=partial(_canonical_statistic, _RootOfError),
    terms=witness_terms(partial(_find_square_witness, estimation="biased", takes_root=True)),
    supports_counts=True,
    radius=RadiusRule(
        lambda options: (math.sqrt(2), 2 * math.sqrt(2), 0.0),
        {
            "kernel": sorted(KERNELS),
            "bandwidth": None,
            "multi_class": ["canonical", "classwise", "confidence"],
        },
    ),
)
def kernel_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    kernel: str | Callable = "total-variation",
    bandwidth: float | Literal["median"] = "median",
    class_kernel: ArrayLike | None = None,
    multi_class: Literal["canonical", "confidence", "top-label", "classwise"] | Lens = "canonical",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Kernel calibration error (KCE) of all class probabilities jointly.

    The root of the biased :func:`squared_kernel_calibration_error`: the largest residual that the
    unit ball of the kernel's Hilbert space can see. It is 0 if, at every prediction, labels and
    predictions agree on average; on samples of a calibrated model it is positive, of order
    :math:`n^{-1/2}` (biased upwards).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    kernel : {"total-variation", "exponential", "laplacian", "rbf", "intersection"} or callable, \
            default="total-variation"
        Kernel on the probability vectors, as in :func:`squared_kernel_calibration_error`.

    bandwidth : "median" or float, default="median"
        The ν of a named kernel; "median" as in :func:`squared_kernel_calibration_error`. Fix it to
        compare models.

    class_kernel : array-like of shape (n_classes, n_classes), default=None
        A positive semi-definite matrix M over the classes, in the order of `labels`; None is the
        identity. For ``multi_class="canonical"`` only.

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
        At least 0, which is best; at most :math:`\sqrt 2` for the named kernels without a class
        kernel.

    See Also
    --------
    squared_kernel_calibration_error : Also unbiased, of the square.
    laplace_kernel_calibration_error : With residuals y − p.

    Notes
    -----
    With weights :math:`w_i` that sum to 1 and the residual :math:`r_i = e_{y_i} - p_i`,

    .. math:: \mathrm{KCE}^2 = \sum_{i,j} w_i w_j k(p_i, p_j) \, r_i^\top M r_j

    (Lemma 1 of [1]_). Cost, ties and the case of two classes are those of
    :func:`squared_kernel_calibration_error`.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification:
       A unifying framework. NeurIPS. :arxiv:`1910.11385`

    Examples
    --------
    >>> from skcalib.metrics import kernel_calibration_error
    >>> kernel_calibration_error([0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9])
    0.34...
    """
    data = check_predictions(**select_data(locals()), multi_class=multi_class, on_device=True)
    return _kernel_calibration_error(data, **select_options(locals()))


def _joint_error(data: ClassData, kernel: str | Kernel, bandwidth: float | str) -> float:
    if kernel in ("linear", "linear-rbf"):
        kernel = conditional_kernel(data, kernel, bandwidth)
    options = {"kernel": kernel, "bandwidth": bandwidth, "estimation": "unbiased"}
    return _squared_error(data, block_size=None, **options)


def _joint_kernel_calibration_error(data: ClassData, **options: Any) -> float | np.ndarray:
    check_options_of(joint_kernel_calibration_error, KERNEL_OPTIONS, options)
    if len(data.weight) < 2:
        raise ValueError(
            "y_true must hold at least 2 samples of positive weight, as pairs of different samples "
            "are averaged; found 1. Collect more, or use the conditional error."
        )
    needs = SampleRequirement("at least 2 samples", "use the conditional error")
    return average_over_reductions(_joint_error, data, needs=needs, **options)


@register_metric(
    _joint_kernel_calibration_error,
    CONDITIONAL_CONSTRAINTS,
    cost="n²",
    terms=witness_terms(_find_joint_witness),
)
def joint_kernel_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    kernel: str | Callable = "linear-rbf",
    bandwidth: float | Literal["median"] = "median",
    multi_class: Literal["canonical", "confidence", "top-label", "classwise"] | Lens = "canonical",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Joint kernel calibration error (JKCE): the counterpart of CKCE for joint distributions.

    The unbiased estimate of the squared distance between the joint distributions of (prediction,
    label) and (prediction, label drawn from the prediction). It is 0 on average for a calibrated
    model, and can be negative. Unlike :func:`conditional_kernel_calibration_error` it depends on
    the distribution of the predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    kernel : {"linear-rbf", "linear", "rbf", "total-variation", "exponential", "laplacian"} or \
            callable, default="linear-rbf"
        Kernel on the probability vectors, as in :func:`conditional_kernel_calibration_error`.

    bandwidth : "median" or float, default="median"
        The γ of the Gaussian kernel, or the ν of another; "median" as in
        :func:`squared_kernel_calibration_error`. Fix it to compare models.

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
        Smaller is better.

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
    squared_kernel_calibration_error : Other kernels and estimates.

    Notes
    -----
    This is the unbiased :func:`squared_kernel_calibration_error`, with the Kronecker kernel on the
    labels. Weights, cost and ties are as there; linear kernels cost :math:`O(n^2 K)`.

    References
    ----------
    .. [1] Moskvichev and Sejdinovic (2025). All Models Are Miscalibrated, But Some Less So:
       Comparing Calibration with Conditional Mean Operators. :arxiv:`2502.11465`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.metrics import joint_kernel_calibration_error
    >>> y_true, y_proba = make_temperature_family(500, inverse_temperature=4, random_state=0)
    >>> joint_kernel_calibration_error(y_true, y_proba)
    0.047...
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _joint_kernel_calibration_error(data, **select_options(locals()))
