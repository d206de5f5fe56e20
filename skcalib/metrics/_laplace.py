"""The calibration error of the Laplace kernel on the line."""

import math
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.options import OptionsOf, check_options_of
from .._inputs.scikit_learn import Average, Interval, Label, RandomState
from .._numerics.laplace import laplace_pair_sum, laplace_product
from .._numerics.sorting import first_of_ties
from .._statistics.kernels import MIN_KERNEL_BANDWIDTH
from ..lenses import Lens
from ._reductions import average_over_reductions
from ._registry import RadiusRule, register_metric, select_options
from ._terms import Witness, make_square_witness, witness_terms

# Pairs of samples in one block of draws; an array of them takes 8 MB.
_MAX_BLOCK_PAIRS = 2**20


def _subsample_square(
    data: ClassData, bandwidth: float, n_draws: int, rng: np.random.RandomState
) -> float:
    """Return the mean of r_i r_j exp(−|p_i − p_j|/h) over pairs drawn by weight, equation 29."""
    # sorted, so that the order of the samples does not matter
    order = np.lexsort((data.label, data.proba))
    proba = data.proba[order]
    residual = data.label[order] - proba
    cumulative = np.cumsum(data.weight[order])
    cumulative[-1] = 1.0
    total = 0.0
    for start in range(0, n_draws, _MAX_BLOCK_PAIRS):
        uniforms = rng.uniform(size=(2, min(_MAX_BLOCK_PAIRS, n_draws - start)))
        i, j = np.searchsorted(cumulative, uniforms, side="right")
        kernel = np.exp(-np.abs(proba[i] - proba[j]) / bandwidth)
        total += float(np.sum(residual[i] * residual[j] * kernel))
    return total / n_draws


def _fourier_square(
    data: ClassData, bandwidth: float, n_draws: int, rng: np.random.RandomState
) -> float:
    """Return the mean of |Σ_i c_i exp(−iω p_i)|² over Cauchy frequencies ω, Algorithm 1."""
    points, mass = data.pool_residuals()
    total = 0.0
    for frequency in rng.standard_cauchy(size=n_draws) / bandwidth:
        phase = frequency * points
        total += (mass @ np.cos(phase)) ** 2 + (mass @ np.sin(phase)) ** 2
    return float(total / n_draws)


def _binning_square(
    data: ClassData, bandwidth: float, n_draws: int, rng: np.random.RandomState
) -> float:
    """Return the mean of Σ_bins (Σ_{i ∈ bin} c_i)² over random bins, Algorithm 2."""
    points, mass = data.pool_residuals()
    total = 0.0
    widths = rng.gamma(shape=2, scale=bandwidth, size=n_draws)
    for width, shift in zip(widths, rng.uniform(size=n_draws), strict=True):
        is_first = first_of_ties(np.floor(points / width + shift))
        sums = np.add.reduceat(mass, np.flatnonzero(is_first))
        total += float(sums @ sums)
    return float(total / n_draws)


_ESTIMATORS = {
    "subsample": _subsample_square,
    "fourier": _fourier_square,
    "binning": _binning_square,
}

_LAPLACE_OPTIONS: OptionsOf = {"method": {"exact": (), **dict.fromkeys(_ESTIMATORS, ("n_draws",))}}


def _binary_laplace_error(
    data: ClassData,
    bandwidth: float,
    method: str,
    n_draws: int | None,
    squared: bool,
    rng: np.random.RandomState,
) -> float:
    if method == "exact":
        points, mass = data.pool_residuals()
        square = float(laplace_pair_sum(points, mass, bandwidth) + mass @ mass)
    else:
        bandwidth = max(bandwidth, MIN_KERNEL_BANDWIDTH)
        if n_draws is None:
            n_draws = 10 * len(data.proba) if method == "subsample" else 100
        square = _ESTIMATORS[method](data, bandwidth, n_draws, rng)
    return square if squared else float(np.sqrt(max(square, 0.0)))


def _laplace_kernel_calibration_error(
    data: ClassData, *, random_state: RandomState = None, **options: Any
) -> float | np.ndarray:
    check_options_of(laplace_kernel_calibration_error, _LAPLACE_OPTIONS, options)
    rng = check_random_state(random_state)
    return average_over_reductions(_binary_laplace_error, data, rng=rng, **options)


def _find_laplace_witness(
    data: ClassData, *, bandwidth: float, method: str, squared: bool, **_: object
) -> Witness | None:
    if method != "exact":
        return None
    points, mass = data.pool_residuals()
    product = laplace_product(points, mass, bandwidth)[np.searchsorted(points, data.proba)]
    return make_square_witness(data, product, takes_root=not squared)


@register_metric(
    _laplace_kernel_calibration_error,
    {"bandwidth": [Interval(Real, 0, None, closed="neither")]},
    largest=1.0,
    cost="n log n",
    terms=witness_terms(_find_laplace_witness),
    supports_counts=True,
    radius=RadiusRule(
        lambda options: (1.0, math.sqrt(2 + 2 * math.exp(-1 / options["bandwidth"])), 0.0),
        {"bandwidth": None, "method": ["exact"]},
    ),
)
def laplace_kernel_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    bandwidth: float = 1.0,
    method: Literal["exact", "subsample", "fourier", "binning"] = "exact",
    n_draws: int | None = None,
    squared: bool = False,
    random_state: RandomState = None,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
) -> float | np.ndarray:
    r"""Laplace kernel calibration error (kCE): the largest residual that its unit ball can see.

    It is 0 if, at every prediction, outcomes and prediction agree on average; on samples of a
    calibrated model it is positive, of order :math:`n^{-1/2}` (biased upwards). With `bandwidth` 1
    it is a consistent measure of the distance from calibration [1]_. With two classes it is about
    the positive class, not the confidence.

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

    bandwidth : float, default=1.0
        The h of the kernel :math:`e^{-|s - t|/h}`, in units of probability.

    method : {"exact", "subsample", "fourier", "binning"}, default="exact"
        Exact, or one of the paper's random estimates, for comparison, each unbiased for the
        square: random pairs of samples, random Fourier features, or bins of random width and shift.

    n_draws : int, default=None
        Number of pairs, frequencies or partitions that a random estimate averages over. By default
        ten times the number of samples for "subsample", otherwise 100.

    squared : bool, default=False
        Return the square. That of "subsample" can be negative; its root is then 0.

    random_state : int, RandomState instance or None, default=None
        Seed of the random estimates.

    multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; or each class against the rest. Or a lens of
        :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        "macro" is the mean over classes. "weighted" weights classes by their share of the
        predictions ("top-label") or labels ("classwise"). "auto" is "weighted" for "top-label",
        else "macro". None returns the array of all values, even if there is only one. A class that
        is never predicted is NaN, and left out of means.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Between 0 and 1 (a random estimate of the square also below 0); 0 is best.

    See Also
    --------
    smooth_calibration_error : At most :math:`\sqrt 2` times this error at `bandwidth` 1.
    squared_kernel_calibration_error : All classes at once, other kernels.

    Notes
    -----
    With weights :math:`w_i` that sum to 1 and :math:`c_i = w_i (y_i - p_i)`,

    .. math:: \mathrm{kCE}^2 = \sum_{i,j} c_i c_j e^{-|p_i - p_j|/h}

    (Definition 8.1 and equation 28 of [1]_; MMCE [2]_ is the same for the confidence, with h =
    0.4). It is half of the biased :func:`squared_kernel_calibration_error`, whose residuals are
    vectors.

    The exact sum costs :math:`O(n \log n)`. With M draws, "subsample" costs :math:`O(n \log n + M
    \log n)`, the others :math:`O(n \log n + n M)`. Ties are pooled.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`
    .. [2] Kumar, Sarawagi and Jain (2018). Trainable Calibration Measures for Neural Networks from
       Kernel Mean Embeddings. ICML 2018. https://proceedings.mlr.press/v80/kumar18a.html

    Examples
    --------
    >>> from skcalib.metrics import laplace_kernel_calibration_error
    >>> laplace_kernel_calibration_error([0, 1], [0.4, 0.6])
    0.120...
    >>> laplace_kernel_calibration_error([0, 1], [0.4, 0.6], method="fourier", random_state=0)
    0.1...
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _laplace_kernel_calibration_error(data, **select_options(locals()))
