"""The expected calibration error after smoothing the residuals with a kernel."""

from numbers import Real
from typing import Literal

import numpy as np

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Average, Interval, Label
from .._numerics.smooth_expected import (
    MIN_SMOOTHING_BANDWIDTH,
    smooth_absolute_mass,
    smooth_absolute_mass_fixed_point,
)
from ..lenses import Lens
from ._reductions import reduce_classes
from ._registry import register_metric, select_options


def _smooth_expected_error(data: ClassData, bandwidth: float | None) -> float:
    proba, mass = data.proba, data.weighted_residuals
    if bandwidth is None:
        return smooth_absolute_mass_fixed_point(proba, mass)
    return smooth_absolute_mass(proba, mass, float(bandwidth))


_smooth_expected_calibration_error = reduce_classes(_smooth_expected_error)


@register_metric(
    _smooth_expected_calibration_error,
    {"bandwidth": [Interval(Real, MIN_SMOOTHING_BANDWIDTH, None, closed="left"), None]},
    cost="n",
    largest=1.0,
    supports_counts=True,
)
def smooth_expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    bandwidth: float | None = None,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
    n_jobs: int | None = None,
) -> float | np.ndarray:
    r"""Smooth expected calibration error (smECE): mean absolute residual after smoothing.

    It is 0 if, at every prediction, outcomes and prediction agree on average; on samples of a
    calibrated model it is positive, of order :math:`n^{-1/3}` (biased upwards). The bandwidth is
    the one that equals the error [1]_. With two classes it is about the positive class, not the
    confidence.

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

    bandwidth : float, default=None
        Standard deviation of the Gaussian kernel, on the scale of the probabilities; at least 1e-5.
        By default the error itself.

    multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; or each class against the rest. Or a lens of
        :mod:`skcalib.lenses`.

    average : {"auto", "macro", "weighted"} or None, default="auto"
        "macro" is the mean over classes. "weighted" weights classes by their share of the
        predictions ("top-label") or labels ("classwise"). "auto" is "weighted" for "top-label",
        else "macro". None returns the array of all values, even if there is only one. A class that
        is never predicted is NaN, and left out of means.

    n_jobs : int, default=None
        Number of threads for the classes; see :obj:`joblib.parallel_backend`.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        Between 0 and 1; 0 is best.

    See Also
    --------
    smooth_calibration_error : Largest residual that a Lipschitz function can see.
    expected_calibration_error : The binned measure.

    Notes
    -----
    With weights :math:`w_i` that sum to 1 and a Gaussian kernel :math:`K_\sigma` that is reflected
    at 0 and 1,

    .. math::
        \mathrm{smECE}_\sigma =
        \int_0^1 \Bigl| \sum_i w_i (y_i - p_i) K_\sigma(t, p_i) \Bigr| \, dt,

    and smECE is the only solution of :math:`\sigma = \mathrm{smECE}_\sigma`. With :math:`c =
    \sqrt{2/\pi}` and the smooth calibration error smCE,

    .. math::
        \mathrm{smCE} / (1 + c) \le \mathrm{smECE}
        \le \max\bigl(\mathrm{smCE}, \sqrt{c \, \mathrm{smCE}}\bigr).

    The value is right to 1e-7. Cost: :math:`O(n + s \log s)`, :math:`s = 1 / \sigma`; errors below
    8e-4 take an additional :math:`O(n \log n)`. p ∈ {0, 1} needs no clipping.

    References
    ----------
    .. [1] Błasiok and Nakkiran (2024). Smooth ECE: Principled Reliability Diagrams via Kernel
       Smoothing. ICLR. :arxiv:`2309.12236`

    Examples
    --------
    >>> from skcalib.metrics import smooth_expected_calibration_error
    >>> smooth_expected_calibration_error([0, 1], [0.4, 0.6])
    0.17...
    >>> smooth_expected_calibration_error([0, 1], [0.4, 0.6], bandwidth=0.05)
    0.38...
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _smooth_expected_calibration_error(data, **select_options(locals()))
