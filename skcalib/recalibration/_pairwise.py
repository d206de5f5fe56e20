"""Softmax of log-probabilities and their products in pairs."""

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._data import ClassData
from .._inputs.scikit_learn import HasMethods, estimator_class
from .._inputs.warnings import check_memory, warn
from .._numerics import logits
from .._numerics.scaling import separate_preconditioner, softmax_regression
from .._numerics.scaling_designs import Affine
from ._base import Recalibrator, is_smooth
from ._binning import check_has_classes
from ._either import calibrate, to_fit_data
from ._maps import Composition, Pairs, state_map
from ._scaling import MatrixScalingRecalibrator

# Products are of logarithms of probabilities that are at least this: others would be all that
# counts.
_MIN_PRODUCT_PROBABILITY = 1e-5

# Directions of less than this fraction of the largest variance are rounding errors, mostly: the
# logarithms of a row have mean 0, so that K of the products are sums of others.
_VARIANCE_RTOL = 1e-13

# The default base, which is copied before it is fitted.
WEAKLY_PENALISED = MatrixScalingRecalibrator(
    diagonal_penalty=1.0, off_diagonal_penalty=1.0, intercept_penalty=1.0
)


@estimator_class()
class PairwiseScalingRecalibrator(Recalibrator):
    r"""Recalibration by products of the log-probabilities of two classes.

    Squares and products of log-probabilities are added to those of another recalibrator, by default
    matrix scaling.

    Parameters
    ----------
    base : estimator, default=None
        The recalibrator that is fitted first, on the same samples. By default a
        :class:`MatrixScalingRecalibrator` with all three penalties 1.

    penalty : float, default=0.1
        Strength that pulls the result to that of `base`, which it is with ``numpy.inf``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    base_ : estimator
        The fitted `base`.

    coef_ : ndarray of shape (n_classes * (n_classes + 1) / 2, n_classes)
        Column k holds the factors :math:`A_{ijk}` of class k, for the pairs i ≤ j in the order of
        ``numpy.triu_indices(n_classes)``.

    intercept_ : ndarray of shape (n_classes,)
        b, the shifts.

    smallest_probability_ : float
        Before logarithms, results of `base_` are clipped this far from 0 and 1: machine epsilon,
        half of the smallest positive one if there are zeros, or less for smaller ones of more than
        two classes.

    smallest_of_products_ : float
        ε, the smallest result of `base_` at fit, at least 1e-5. In products, smaller ones count as
        ε, so that the products do not grow beyond those of the fit.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    MatrixScalingRecalibrator : The linear map of log-probabilities.
    QuadraticRecalibrator : Squares of the log-odds of one class.

    Notes
    -----
    With the probabilities q of `base_`, and :math:`u_k = \log \max(q_k, ε) - \frac1K \sum_l \log
    \max(q_l, ε)`, the calibrated probabilities are

    .. math::
        \mathrm{softmax}\Bigl(\log q_k + b_k + \sum_{i \le j} A_{ijk} u_i u_j\Bigr)_k, \qquad
        b_k = -\sum_{i \le j} A_{ijk} \, \overline{u_i u_j},

    with the weighted means of the products over the calibration data. With weights :math:`w_i` that
    sum to 1 (:math:`\sum_i w_i^2 = 1/n` if equal), the fit minimises

    .. math::
        L(A) + \frac{\lambda K}{2} \sum_i w_i^2 \sum_k \sum_{i \le j} (4 s^2 A_{ijk})^2,

    where L is the log loss of the labels, λ the `penalty` and s the weighted root mean square of
    all u.

    The cost is :math:`O(n K^4)` once and some steps of :math:`O(n K^3 / 2)`, in memory for :math:`2
    n K^2` numbers. With more than a hundred classes, or fewer than ten samples for each, use the
    :class:`MatrixScalingRecalibrator`.

    Examples
    --------
    >>> from skcalib.recalibration import PairwiseScalingRecalibrator
    >>> proba = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> recalibrator = PairwiseScalingRecalibrator().fit(proba, ["a", "b", "b", "c"])
    >>> recalibrator.predict_proba([[0.8, 0.1, 0.1]]).round(2)
    array([[0.73, 0.17, 0.1 ]])
    """

    _parameter_constraints = {"base": [HasMethods(["fit", "predict_proba"]), None]}

    _starts_near = True

    base: Any = None
    _: KW_ONLY
    penalty: float = 0.1

    @property
    def _base_recalibrator(self) -> Any:
        """The recalibrator of which a copy is fitted first."""
        return WEAKLY_PENALISED if self.base is None else self.base

    def _fit(self, data: ClassData) -> None:
        data = data.sort_samples()
        weight, n_classes = data.weight, len(data.classes)
        task = f"Pairwise scaling of {len(weight):,} samples of {n_classes} classes"
        check_memory(8.0 * len(weight) * n_classes**2, task, "Take a MatrixScalingRecalibrator.")
        near = self._neighbour
        near_base = None if near is None else near.base_
        self.base_ = to_fit_data(data).fit_clone(self._base_recalibrator, warm_start_from=near_base)
        check_has_classes(self.base_, data.classes)
        self._is_smooth = is_smooth(self.base_)
        inverse_size, label = data.inverse_effective_size, data.label
        proba = calibrate(self.base_, data.columns, data.classes)
        self.smallest_probability_ = logits.smallest_probability(proba, logits.MIN_POSITIVE_PROBA)
        log_proba = logits.log_probabilities(proba, self.smallest_probability_)
        self.smallest_of_products_ = max(_MIN_PRODUCT_PROBABILITY, float(proba.min()))
        relative = self._relative(log_proba)
        log_proba = np.asfortranarray(log_proba)
        del data, proba  # they would take as much memory as is needed below
        scale = 4 * float(weight @ (relative**2).mean(axis=1)) or 1.0
        m = n_classes * (n_classes + 1) // 2
        blocks = list(logits.iter_row_blocks(len(weight), m, min_rows=m))
        centre = sum(weight[rows] @ _products(relative[rows]) for rows in blocks) / scale
        rotation = _principal_directions(
            np.sqrt(weight[rows, None]) * (_products(relative[rows]) / scale - centre)
            for rows in blocks
        )
        inputs = np.empty((len(weight), rotation.shape[1]), order="F")
        for rows in blocks:
            inputs[rows] = (_products(relative[rows]) / scale - centre) @ rotation
        del relative
        start = np.zeros((rotation.shape[1] + 1, n_classes))
        penalty = np.full_like(start, self.penalty * n_classes * inverse_size)
        penalty[-1] = np.inf  # no intercept
        parameters, change = softmax_regression(
            Affine,
            inputs,
            np.asfortranarray(np.eye(n_classes)[label]),
            weight,
            start,
            penalty,
            separate_preconditioner,
            log_proba,
            None if near is None else np.vstack([rotation.T @ near.coef_ * scale, start[-1]]),
        )
        if change == np.inf:
            warn(
                "The fit of PairwiseScalingRecalibrator has not reached its optimum; the last step "
                "is kept. Choose a larger penalty.",
                ConvergenceWarning,
            )
        coef = rotation @ parameters[:-1]
        self.coef_, self.intercept_ = coef / scale, -centre @ coef

    def _map(self, proba: np.ndarray) -> np.ndarray:
        mapped = calibrate(self.base_, proba, self.classes_)
        for rows in logits.iter_row_blocks(len(mapped), len(self.coef_)):
            scores = logits.log_probabilities(mapped[rows], self.smallest_probability_)
            scores += np.einsum("nm,mk->nk", _products(self._relative(scores)), self.coef_)
            scores += self.intercept_
            mapped[rows] = logits.clip_proba(logits.softmax_in_place(scores))
        return mapped

    def _relative(self, log_proba: np.ndarray) -> np.ndarray:
        """Return log p (n, K) less row means, of probabilities raised to the least in products."""
        log_proba = np.maximum(log_proba, np.log(self.smallest_of_products_))
        return log_proba - log_proba.mean(axis=1, keepdims=True)

    def _state_map(self) -> Composition:
        smallest, floor = self.smallest_probability_, self.smallest_of_products_
        return Composition(
            state_map(self.base_), Pairs(self.coef_, self.intercept_, smallest, floor)
        )


def _products(values: np.ndarray) -> np.ndarray:
    """The products of two columns, or of a column with itself, (n, K (K + 1) / 2)."""
    first, second = np.triu_indices(values.shape[1])
    return values[:, first] * values[:, second]


def _principal_directions(blocks: Iterator[np.ndarray]) -> np.ndarray:
    """Directions (m, d) along which values (n, m) vary, and do so independently of each other.

    They come in blocks of at least m rows, or in one.
    """
    values = next(blocks)
    n, m = values.shape
    if n >= m:
        square = sum((block.T @ block for block in blocks), values.T @ values)
        variance, directions = np.linalg.eigh(square)
    else:
        variance, coordinates = np.linalg.eigh(values @ values.T)
        directions = values.T @ coordinates
    is_relevant = variance > _VARIANCE_RTOL * variance[-1]
    directions = directions[:, is_relevant]
    return directions / np.linalg.norm(directions, axis=0)
