"""The smooth calibration error, and the function that attains it."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import numpy as np

from .._data import ClassData, check_predictions
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Average, Label, validate_params
from .._numerics.smooth import lipschitz_maxima, lipschitz_maximiser
from ..lenses import Lens
from ._reductions import average_each, map_reduction
from ._registry import RadiusRule, register_metric, select_options
from ._terms import Witness, witness_terms


def smooth_errors(problems: Iterable[ClassData]) -> list[float]:
    """Return the errors of binary problems; small ones are solved together."""
    return lipschitz_maxima(problem.pool_residuals() for problem in problems)


_smooth_calibration_errors = partial(average_each, smooth_errors)


def _smooth_calibration_error(data: ClassData, **options: Any) -> Any:
    return _smooth_calibration_errors([data], **options)[0]


def _smooth_calibration_witness(data: ClassData) -> tuple[np.ndarray, np.ndarray]:
    points, mass = data.pool_residuals()
    return points, lipschitz_maximiser(points, mass)


def _find_smooth_witness(data: ClassData, n_jobs: int | None = None) -> Witness:
    points, function = _smooth_calibration_witness(data)
    return Witness(function[np.searchsorted(points, data.proba)])


@register_metric(
    _smooth_calibration_error,
    compute_each=_smooth_calibration_errors,
    largest=1.0,
    cost="n log n",
    in_report=True,
    supports_counts=True,
    lipschitz_constant=2.0,
    radius=RadiusRule(lambda options: (1.5, 2.0, 0.0)),
    terms=witness_terms(_find_smooth_witness),
)
def smooth_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
    n_jobs: int | None = None,
) -> float | np.ndarray:
    r"""Smooth calibration error (smCE): the largest residual that a Lipschitz function can see.

    It is 0 if, at every prediction, outcomes and prediction agree on average; on samples of a
    calibrated model it is positive, of order :math:`n^{-1/2}` (biased upwards). It is at most twice
    the distance to calibration, and changes continuously with the predictions [1]_; there is
    nothing to tune. With two classes it is about the positive class, not the confidence.

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
    smooth_calibration_witness : The function that attains the maximum.
    lower_distance_to_calibration : Between half and twice this error.
    expected_calibration_error : The binned measure.
    squared_kernel_calibration_error : All classes at once.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, predictions :math:`p_i` and outcomes :math:`y_i \in
    \{0, 1\}`,

    .. math:: \mathrm{smCE} = \max_f \sum_i w_i f(p_i) (y_i - p_i)

    over all :math:`f: [0, 1] \to [-1, 1]` with Lipschitz constant 1 (Definition 7.2 of [1]_). It is
    exact; the cost is :math:`O(n \log n)`, memory :math:`O(n)`. Ties are pooled; p ∈ {0, 1} needs
    no clipping.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`
    .. [2] Hu, Jambulapati, Tian and Yang (2024). Testing Calibration in Nearly-Linear Time.
       NeurIPS. :arxiv:`2402.13187`

    Examples
    --------
    >>> from skcalib.metrics import smooth_calibration_error
    >>> smooth_calibration_error([0, 1], [0.4, 0.6])
    0.0399...
    >>> smooth_calibration_error(["no", "yes", "yes"], [0.25, 0.5, 0.75], pos_label="yes")
    0.1875
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _smooth_calibration_error(data, **select_options(locals()))


@validate_params()
def smooth_calibration_witness(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
) -> tuple[np.ndarray, np.ndarray] | list[tuple[np.ndarray, np.ndarray] | None]:
    r"""Witness of the smooth calibration error: where, and in which direction, the model errs.

    The weight function that attains the maximum in :func:`smooth_calibration_error`. Where it is
    high, outcomes are more frequent than predicted, where it is low, less frequent.

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

    multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; or each class against the rest. Or a lens of
        :mod:`skcalib.lenses`.

    Returns
    -------
    predictions : ndarray of shape (n_distinct,)
        The sorted distinct predictions. With "top-label" and "classwise" for more than two classes,
        a list of such pairs, with None for a class never predicted.

    values : ndarray of shape (n_distinct,)
        The function at these predictions, between −1 and 1, with Lipschitz constant 1.

    See Also
    --------
    smooth_calibration_error : The residual that this function sees.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, :math:`\sum_i w_i f(p_i) (y_i - p_i)` equals the smooth
    calibration error. If it is not unique, it is the largest one if outcomes are on the whole more
    frequent than predicted, otherwise the smallest. Cost: :math:`O(n \log n)`.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.metrics import smooth_calibration_witness
    >>> smooth_calibration_witness([1, 1, 0], [0.2, 0.3, 0.9])
    (array([0.2, 0.3, 0.9]), array([1. , 0.9, 0.3]))
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return map_reduction(_smooth_calibration_witness, data, multi_class)
