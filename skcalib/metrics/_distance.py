"""Bounds on the distance to the nearest calibrated predictor."""

from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._data import ClassData, check_predictions, with_given
from .._inputs.annotations import annotate_each
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Average, Interval, Label, validate_params
from .._inputs.warnings import warn
from .._numerics.distance import transport_bounds
from ..lenses import Lens
from ._reductions import average_over_reductions, map_reduction, reduce_classes
from ._registry import RadiusRule, register_metric, select_options
from ._terms import Witness, witness_terms
from ._upper_distance import interval_change, make_certificate

_TOL_CONSTRAINTS: dict = {"tol": [Interval(Real, 1e-6, 1, closed="both")]}


@dataclass(frozen=True, eq=False)
class DistanceCertificate:
    r"""Certificate of the bracket on the lower distance to calibration.

    The potentials prove the lower end and the law proves the upper end; both can be checked with a
    few lines of NumPy, without trusting the solver that found them.

    Parameters
    ----------
    lower : float
        Lower end of the bracket, which :func:`lower_distance_to_calibration` returns.

    upper : float
        Upper end of the bracket.

    nodes : ndarray of shape (n_nodes,)
        Increasing numbers from 0 to 1.

    law : ndarray of shape (n_nodes,)
        Mass :math:`\mu` of the calibrated predictions at each node. It sums to 1.

    potentials : ndarray of shape (2, n_nodes)
        Values of :math:`f_0` and :math:`f_1` at the nodes; between nodes they are linear.

    See Also
    --------
    distance_certificate : The function that returns it.

    Notes
    -----
    With the weights :math:`w_i` that sum to 1, and :math:`\Gamma_y` the weight of the predictions
    with label y, rounding apart,

    .. math::
        \mathrm{lower} = \sum_i w_i f_{y_i}(p_i), \quad
        \mathrm{upper} = W_1(\Gamma_0, (1 - v) \mu) + W_1(\Gamma_1, v \mu).

    Both functions have Lipschitz constant 1, and :math:`(1 - v) f_0(v) + v f_1(v) \le 0` on [0, 1].
    A share :math:`v` of the mass at each node v has label 1, so the law is calibrated.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import distance_certificate
    >>> y_true, y_proba = np.array([0, 1]), np.array([0.4, 0.6])
    >>> certificate = distance_certificate(y_true, y_proba)
    >>> f0, f1 = (np.interp(y_proba, certificate.nodes, f) for f in certificate.potentials)
    >>> bool(np.isclose(np.mean(np.where(y_true, f1, f0)), certificate.lower))
    True
    """

    lower: float
    upper: float
    nodes: np.ndarray
    law: np.ndarray
    potentials: np.ndarray


def _lower_distance(data: ClassData, tol: float) -> float:
    return _distance_certificate(data, tol).lower


def _distance_certificate(data: ClassData, tol: float) -> DistanceCertificate:
    certificate = DistanceCertificate(*transport_bounds(*data.pool_label_weights()[:2], tol))
    lower, upper = certificate.lower, certificate.upper
    if upper - lower > tol:
        warn(
            f"The lower distance to calibration could not be found to tol={tol:.0e}: it lies in "
            f"[{lower!r}, {upper!r}], of which the lower end is returned.",
            ConvergenceWarning,
        )
    return certificate


def _binary_bounds(data: ClassData, tol: float) -> np.ndarray:
    if data.given is not None:
        certificate = make_certificate(data)
        return np.array([certificate.lower, certificate.upper])
    lower = _lower_distance(data, tol)
    upper = interval_change(data)
    return np.array([min(lower, upper), upper])


def compute_distance_bounds(data: ClassData, tol: float = 1e-4, **reduction: Any) -> tuple:
    bounds = average_over_reductions(_binary_bounds, data, tol=tol, **reduction)
    return tuple(bounds.T if bounds.ndim == 2 else bounds.tolist())


_lower_distance_to_calibration = reduce_classes(_lower_distance)


def _find_distance_witness(data: ClassData, tol: float, n_jobs: int | None = None) -> Witness:
    certificate = transport_bounds(*data.pool_label_weights()[:2], tol)
    nodes, potentials = certificate.nodes, certificate.potentials
    factor = np.stack([np.interp(data.proba, nodes, f) for f in potentials], axis=1)
    return Witness(factor, np.einsum("nk,nk->n", factor, data.matrix))


@register_metric(
    _lower_distance_to_calibration,
    _TOL_CONSTRAINTS,
    largest=1.0,
    cost="n log n",
    supports_counts=True,
    lipschitz_constant=1.0,
    radius=RadiusRule(lambda options: (1.0, 2.0, options["tol"]), {"tol": None}),
    terms=witness_terms(_find_distance_witness),
)
def lower_distance_to_calibration(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    tol: float = 1e-4,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
    n_jobs: int | None = None,
) -> float | np.ndarray:
    r"""Lower distance to calibration: the least change of the predictions that calibrates them.

    It is 0 if, at every prediction, outcomes and prediction agree on average; on samples of a
    calibrated model it is positive, of order :math:`n^{-1/2}` (biased upwards). It is the best
    lower bound on the distance to calibration that predictions and labels alone allow [1]_. With
    two classes it is about the positive class, not the confidence.

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

    tol : float in [1e-6, 1], default=1e-4
        Largest width of the certified bracket. The lower end of the bracket is returned, so the
        exact number is at most this much larger, and never smaller.

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
    distance : float or ndarray of shape (n_classes,)
        Between 0 and 1, in units of probability; 0 is best.

    Warns
    -----
    ConvergenceWarning
        If rounding prevents a bracket of width `tol`; the warning states the bracket.

    See Also
    --------
    calibration_distance_bounds : This with an upper bound on the distance.
    distance_certificate : What proves the number.
    smooth_calibration_error : Between half and twice this distance.

    Notes
    -----
    The distance is the infimum of :math:`E|u - v|` over the joint laws of (u, v, y) in which (u, y)
    has the law of predictions and labels, and v is a perfectly calibrated prediction of y
    (Definition 5.3 of [1]_). With :math:`\Gamma_y` the weight of the predictions with label y and
    the Wasserstein distance :math:`W_1`,

    .. math:: \min_\mu W_1(\Gamma_0, (1 - v) \mu) + W_1(\Gamma_1, v \mu).

    An interior point method solves the dual on at most about 8/tol nodes, and evaluates both ends
    of the bracket on the data. Cost: sorting, then :math:`O(n)`. Ties are pooled.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.metrics import lower_distance_to_calibration
    >>> round(lower_distance_to_calibration([0, 1], [0.4, 0.6]), 4)
    0.08
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    return _lower_distance_to_calibration(data, **select_options(locals()))


@validate_params(_TOL_CONSTRAINTS)
def distance_certificate(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    tol: float = 1e-4,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    n_jobs: int | None = None,
) -> DistanceCertificate | list[DistanceCertificate | None]:
    """Certificate of the lower distance to calibration: what proves both ends of its bracket.

    Anyone can check it with a few lines of NumPy, without trusting the solver.

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

    tol : float in [1e-6, 1], default=1e-4
        Largest width of the certified bracket. The lower end of the bracket is returned, so the
        exact number is at most this much larger, and never smaller.

    multi_class : {"confidence", "top-label", "classwise"} or Lens, default="confidence"
        More than two classes: the predicted class's probability and whether it was right; the same
        for each predicted class; or each class against the rest. Or a lens of
        :mod:`skcalib.lenses`.

    n_jobs : int, default=None
        Number of threads for the classes; see :obj:`joblib.parallel_backend`.

    Returns
    -------
    certificate : DistanceCertificate
        The bracket, and what proves it. With "top-label" and "classwise" for more than two classes,
        a list of them, with None for a class never predicted.

    Warns
    -----
    ConvergenceWarning
        If rounding prevents a bracket of width `tol`; the warning states the bracket.

    See Also
    --------
    lower_distance_to_calibration : The lower end of the bracket.

    Notes
    -----
    The formulas are those of :class:`DistanceCertificate`, the cost is that of
    :func:`lower_distance_to_calibration`.

    Examples
    --------
    >>> from skcalib.metrics import distance_certificate
    >>> certificate = distance_certificate([0, 1], [0.4, 0.6])
    >>> round(certificate.lower, 4), round(certificate.upper, 4)
    (0.08, 0.08)
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    measure = partial(_distance_certificate, tol=tol)
    return map_reduction(measure, data, multi_class, n_jobs)


@annotate_each(tuple[np.ndarray, np.ndarray])
@validate_params(_TOL_CONSTRAINTS)
def calibration_distance_bounds(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    given: ArrayLike | None = None,
    tol: float = 1e-4,
    multi_class: Literal["confidence", "top-label", "classwise"] | Lens = "confidence",
    average: Average = "auto",
    n_jobs: int | None = None,
) -> tuple[float, float]:
    r"""Bounds on the distance to calibration, the mean change to the nearest calibrated predictor.

    On samples of a calibrated model both are positive. With two classes they are about the positive
    class, not the confidence.

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

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What the calibrated predictor may know beside the prediction, such as the inputs of the
        model or groups: equal rows are the same input, and both bounds are equal for up to 12
        inputs. By default nothing.

    tol : float in [1e-6, 1], default=1e-4
        Accuracy of the lower bound, which holds in any case.

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
    lower : float or ndarray of shape (n_classes,)
        :func:`lower_distance_to_calibration`; with `given`, the lower end of
        :func:`upper_distance_certificate`.

    upper : float or ndarray of shape (n_classes,)
        The least change that is found by a map which is constant on intervals; for up to 12
        distinct predictions, and with `given`, :func:`upper_distance_to_calibration`.

    Warns
    -----
    UserWarning
        If more than half of the samples are alone at their `given`.

    See Also
    --------
    upper_distance_to_calibration : The best upper bound, where predictions recur.
    distance_certificate : What proves the lower bound.
    smooth_calibration_error : Within a factor 2 of the lower bound.

    Notes
    -----
    The distance to calibration is :math:`\min_g E|g(x) - p(x)|` over all predictors g of the inputs
    x that are perfectly calibrated [1]_. Predictions and labels alone do not determine it, but
    lower ≤ distance ≤ upper ≤ :func:`interval_calibration_error`, and upper :math:`\le 4
    \sqrt{lower + tol}` (Theorem 6.2), for up to 4096 distinct predictions.

    The map that gives every prediction the mean outcome of its interval of a partition is
    calibrated, so its mean change :math:`\sum_i w_i |p_i - \bar y_{I(p_i)}|` is an upper bound; the
    least that a search over partitions finds is returned. The cost is half a second for 100 000
    predictions. Ties are pooled.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.metrics import calibration_distance_bounds
    >>> lower, upper = calibration_distance_bounds([0, 1], [0.4, 0.6])
    >>> round(lower, 4), round(upper, 4)
    (0.08, 0.1)
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels, multi_class)
    data = with_given(data, y_true, given, sample_weight)
    return compute_distance_bounds(data, **select_options(locals()))
