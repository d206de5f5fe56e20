"""From an intercept to a flexible map: how far to update predictions, by a closed test."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.stats import chi2

from .._data import AnyData, ClassData
from .._inputs.scikit_learn import estimator_class
from .._numerics.array_api import Array
from .._numerics.logits import iter_row_blocks, log_softmax, softmax_in_place
from .._numerics.scaling import softmax_regression
from .._numerics.scaling_designs import CommonlyScaledAndShifted, Design, ScaledAndShifted
from ._logits import LogScaleRecalibrator
from ._maps import ClassFactors, Map
from ._scaling import CONSTANT

# The updates that change something, each a special case of the next one.
_UPDATES = ("intercept", "intercept and slope", "flexible")


@estimator_class(kw_only=True)
class InterceptRecalibrator(LogScaleRecalibrator):
    r"""Recalibration in the large: one intercept is fitted, and the slope stays 1.

    For predictions that are too high or too low on the whole. The log-odds of all samples move by
    the same number; with more than two classes, the log-probability of each class.

    Parameters
    ----------
    prior_weight : float, default=1.0
        Number of additional samples in the fit, with labels distributed as predicted. 0 is maximum
        likelihood.

    input_type : {"probabilities", "logits"}, default="probabilities"
        What `X` holds. Logits are scores before the softmax, from -1e6 to 1e6, or in one column the
        log-odds of the last class.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,) or (n_classes,)
        For two classes what is added to the log-odds of the last class; else what is added to the
        log-probability of each class, with mean 0.

    smallest_probability_ : float
        Probabilities are clipped this far from 0 and 1: machine epsilon, half of the smallest
        positive one if there are zeros, or less for smaller ones in several columns; 0 with logits.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    Warns
    -----
    ConvergenceWarning
        If there is no minimum (possible with ``prior_weight=0``), or it is not reached; the last
        step is kept.

    See Also
    --------
    SigmoidRecalibrator : Intercept and slope.
    ClosedTestingRecalibrator : Tests whether an intercept is enough.
    PriorShiftRecalibrator : The same map, from prevalences in place of labels.

    Notes
    -----
    The calibrated probabilities are :math:`\mathrm{softmax}(\log p + b)` with the b of the least
    log loss of the labels and the prior; for two classes, :math:`\operatorname{logit} p` plus an
    intercept [1]_. Results stay 2.2e-16 away from 0 and 1. A class without labels needs a positive
    `prior_weight`. The cost is some steps of :math:`O(n K)`.

    References
    ----------
    .. [1] Steyerberg et al. (2004). Validation and updating of predictive logistic regression
       models. Statistics in Medicine. :doi:`10.1002/sim.1844`

    Examples
    --------
    One in four has the disease where one in ten was predicted:

    >>> from skcalib.recalibration import InterceptRecalibrator
    >>> recalibrator = InterceptRecalibrator(prior_weight=0).fit([0.1] * 4, [0, 0, 0, 1])
    >>> recalibrator.intercept_.round(3)  # the odds of 1/9 become 1/3
    array([1.099])
    >>> recalibrator.predict_proba([0.1, 0.5])[:, 1]
    array([0.25, 0.75])
    """

    _fits_on_device = False

    prior_weight: float = 1.0

    def _regress(self, log_proba: np.ndarray, target: np.ndarray, data: ClassData) -> float:
        _, shift, change = _fit_update("intercept", log_proba, target, data.weight)
        self.intercept_ = shift[1:] - shift[:1] if len(shift) == 2 else shift
        return change

    def _linear_map(self) -> tuple[np.ndarray, np.ndarray]:
        shift = self.intercept_
        if len(shift) == 1:
            shift = np.array([-0.5, 0.5]) * shift
        return np.ones(len(shift)), shift


@estimator_class(kw_only=True)
class ClosedTestingRecalibrator(LogScaleRecalibrator):
    r"""The least update that the data do not reject: none, intercept, slope or a flexible map.

    For another population. Likelihood-ratio tests compare each update with the flexible one, in
    this order, and the first that is not rejected is kept.

    Parameters
    ----------
    alpha : float in (0, 1], default=0.05
        Probability of any update if the predictions are calibrated.

    prior_weight : float, default=1.0
        Number of additional samples in the fit, with labels distributed as predicted. 0 is maximum
        likelihood.

    input_type : {"probabilities", "logits"}, default="probabilities"
        What `X` holds. Logits are scores before the softmax, from -1e6 to 1e6, or in one column the
        log-odds of the last class.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    chosen_ : {"none", "intercept", "intercept and slope", "flexible"}
        The update that is kept.

    p_values_ : dict of str to float
        For each update but the last one, the p-value of the hypothesis that it is enough.

    statistics_ : dict of str to float
        Their likelihood-ratio statistics.

    degrees_of_freedom_ : dict of str to int
        Their degrees of freedom.

    coef_ : ndarray of shape (n_classes,)
        v, the factors of the log-probabilities in the chosen update.

    intercept_ : ndarray of shape (n_classes,)
        b, the shifts of the log-probabilities; their mean is 0.

    smallest_probability_ : float
        Probabilities are clipped this far from 0 and 1: machine epsilon, half of the smallest
        positive one if there are zeros, or less for smaller ones in several columns; 0 with logits
        or without an update.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    Warns
    -----
    ConvergenceWarning
        If a fit has no minimum (possible with ``prior_weight=0``), or does not reach it. Its last
        step is kept.

    See Also
    --------
    InterceptRecalibrator : The first update.
    VectorScalingRecalibrator : The flexible one.
    AutoRecalibrator : Weighs recalibrators by what predicts best.

    Notes
    -----
    All updates are of the form :math:`\mathrm{softmax}(v \circ \log p + b)`: "intercept" has v = 1
    and K − 1 parameters, "intercept and slope" the same v for all classes and K, "flexible" any v
    and 2K − 1. Of two classes, "flexible" is :math:`a \log p - b \log(1 - p) + c`.

    With the least mean log losses :math:`L_m` of the updates, the statistic :math:`2 n (L_m -
    L_{\text{flexible}})` is compared with the chi-squared distribution [1]_ of 2K − 1, K and K − 1
    degrees of freedom; parameters without effect do not count. The tests are asymptotic: they need
    some five labels of each class for each parameter. For unequal weights, the statistic is divided
    by its mean inflation [2]_.

    Where the log-probabilities vary too little to tell v, it holds within their range in the fit
    only (see :class:`VectorScalingRecalibrator`).
    Without an update the predictions stay exactly as they are; else results stay 2.2e-16 away from
    0 and 1. The cost is some steps of :math:`O(n K)`, and :math:`O(n K^2)` for unequal weights.

    References
    ----------
    .. [1] Vergouwe et al. (2017). A closed testing procedure to select an appropriate method for
       updating prediction models. Statistics in Medicine. :doi:`10.1002/sim.7179`
    .. [2] Rao and Scott (1984). On Chi-Squared Tests for Multiway Contingency Tables. Annals of
       Statistics. :doi:`10.1214/aos/1176346391`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.recalibration import ClosedTestingRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> odds = 0.5 * proba / (1 - proba)  # half of what is predicted
    >>> y = rng.random(500) < odds / (1 + odds)
    >>> recalibrator = ClosedTestingRecalibrator().fit(proba, y)
    >>> recalibrator.chosen_
    'intercept'
    >>> {update: round(p, 3) for update, p in recalibrator.p_values_.items()}
    {'none': 0.0, 'intercept': 0.83, 'intercept and slope': 0.82}
    >>> recalibrator.predict_proba([0.5])
    array([[0.6..., 0.3...]])
    """

    _fits_on_device = False

    alpha: float = 0.05
    prior_weight: float = 1.0

    def _regress(self, log_proba: np.ndarray, target: np.ndarray, data: ClassData) -> float:
        n_classes = log_proba.shape[1]
        updates = {"none": (np.ones(n_classes), np.zeros(n_classes), 0.0)}
        for name in _UPDATES:
            updates[name] = _fit_update(name, log_proba, target, data.weight)
        self._test(updates, log_proba, target, data)
        rejected = [p <= self.alpha for p in self.p_values_.values()]
        self.chosen_ = list(updates)[[*rejected, False].index(False)]
        self.coef_, self.intercept_, _ = updates[self.chosen_]
        if self.chosen_ == "none":
            self.smallest_probability_ = 0.0
        return max(change for _, _, change in updates.values())

    def _test(self, updates: Any, log_proba: Any, target: Any, data: AnyData) -> None:
        """Each update against the last one."""
        parameters = numbers_of_parameters(log_proba)
        losses = [cross_entropy(each, log_proba, target, data.weight) for each in updates.values()]
        self.p_values_, self.statistics_, self.degrees_of_freedom_ = {}, {}, {}
        for k, name in enumerate([*updates][:-1]):
            freedom = parameters[-1] - parameters[k]
            scale, shift, _ = updates[name]
            inflation, ratio = data.inverse_effective_size, data.squares / data.weight
            if freedom and np.ptp(ratio) > 0:
                effects = sandwich_traces(scale, shift, log_proba, data.weight, data.squares)
                inflation = (effects[-1] - effects[k]) / freedom
                # a mean of weights, but for directions that almost certain predictions hide
                inflation = np.clip(inflation, ratio.min(), ratio.max())
            statistic = 2 * max(losses[k] - losses[-1], 0.0) / inflation
            self.statistics_[name] = statistic
            self.degrees_of_freedom_[name] = freedom
            p_value = chi2.sf(statistic, freedom) if freedom else 1.0
            self.p_values_[name] = max(float(p_value), np.finfo(np.float64).tiny)

    def _map(self, proba: Array) -> Array:
        if self.chosen_ == "none" and self.input_type == "probabilities":
            return array_namespace(proba).asarray(proba, copy=True)
        return super()._map(proba)

    def _state_map(self) -> Map:
        if self.chosen_ == "none" and self.input_type == "probabilities":
            return ClassFactors.identity(len(self.classes_))
        return super()._state_map()


def _fit_update(
    update: str, log_proba: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The scale and the shift (K,) of least loss, and how much the scores moved at the end."""
    design: Design = ScaledAndShifted if update == "flexible" else CommonlyScaledAndShifted
    # standardised columns, so that those of narrow range move as easily as others
    centre = weight @ log_proba
    spread = np.sqrt(weight @ (log_proba - centre) ** 2)
    if update != "flexible":
        spread[:] = spread.max()
    spread[spread <= CONSTANT * np.abs(centre).max()] = 1.0
    start = np.stack([spread, centre - centre.mean()])
    penalty = np.zeros_like(start)
    if update == "intercept":
        penalty[0] = np.inf  # the scale stays
    inputs = (log_proba - centre) / spread
    (scale, shift), change = softmax_regression(design, inputs, target, weight, start, penalty)
    scale = scale / spread
    shift = shift - scale * centre
    return scale, shift - shift.mean(), change


# Columns are constant, or multiples of each other, up to this fraction of the largest number.
_COLUMN_RTOL = 1e-12

# Directions with less than this fraction of the largest information count as not determined.
_INFORMATION_RTOL = 1e-10


def numbers_of_parameters(log_proba: np.ndarray) -> tuple[int, int, int, int]:
    """Count the parameters of scores v∘x + b of rows x (n, K) that have an effect.

    With b = 0 and v = 1; with v = 1; with all v equal; and without restrictions. A number added to
    all scores of a row has no effect. Thus a scale of a constant column is a shift, scales of
    columns that are multiples of each other change all scores of a row alike, and so on.
    """
    n_classes = log_proba.shape[1]
    centred = log_proba - log_proba.mean(axis=0)
    size = np.abs(centred).max(axis=0)
    is_constant = size <= _COLUMN_RTOL * np.abs(log_proba).max()
    n_constant = int(is_constant.sum())
    scales = n_classes - n_constant
    if n_constant == 0:
        longest = centred[:, np.argmax(size)]
        residual = centred - np.outer(longest, longest @ centred / (longest @ longest))
        scales -= bool(np.abs(residual).max() <= _COLUMN_RTOL * np.abs(log_proba).max())
    shifts = n_classes - 1
    return 0, shifts, shifts + min(scales, 1), shifts + scales


def cross_entropy(
    update: tuple[np.ndarray, ...], log_proba: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> float:
    """Σ_i w_i (log Σ_k exp s_ik − Σ_k t_ik s_ik) of scores s = v∘x + b and targets t (n, K)."""
    (scale, shift, _), loss = update, 0.0
    for rows in iter_row_blocks(*target.shape):
        log_share = log_softmax(scale * log_proba[rows] + shift)
        loss -= weight[rows] @ np.einsum("nk,nk->n", target[rows], log_share)
    return float(loss)


def sandwich_traces(
    scale: np.ndarray,
    shift: np.ndarray,
    log_proba: np.ndarray,
    weight: np.ndarray,
    square: np.ndarray,
) -> list[float]:
    """tr(I⁻¹J) of the parameters of each of these four updates, at the given one.

    I is the information with weights w (n,), and J that with w² (n,), or the parts of rows in those
    of groups. For equal weights it is the number of parameters divided by n.
    """
    n_classes = len(scale)
    proba = softmax_in_place(scale * log_proba + shift)
    centred = log_proba - weight @ log_proba
    information = _information(proba, centred, weight)
    noise = _information(proba, centred, square)
    scales, shifts = np.split(np.eye(2 * n_classes), 2, axis=1)
    common = scales.sum(axis=1, keepdims=True)
    bases = shifts[:, :0], shifts, np.hstack([common, shifts]), np.hstack([scales, shifts])
    return [_trace(basis.T @ information @ basis, basis.T @ noise @ basis) for basis in bases]


def _information(proba: np.ndarray, inputs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Σ w times the covariance of the derivatives of the scores in v and b, (2K, 2K)."""
    weighted_proba = proba * weight[:, None]
    slopes = np.hstack([inputs * proba, proba])  # (n, 2K)
    second, first = (weighted_proba * inputs**2).sum(axis=0), (weighted_proba * inputs).sum(axis=0)
    blocks = np.block(
        [[np.diag(second), np.diag(first)], [np.diag(first), np.diag(weighted_proba.sum(axis=0))]]
    )
    return blocks - slopes.T @ (weight[:, None] * slopes)


def _trace(information: np.ndarray, noise: np.ndarray) -> float:
    """The trace of I⁻¹J in the directions that are determined."""
    diagonal = np.diagonal(information)
    is_known = diagonal > _COLUMN_RTOL * diagonal.max(initial=0.0)
    block = np.ix_(is_known, is_known)
    size = np.sqrt(np.outer(diagonal[is_known], diagonal[is_known]))
    inverse = np.linalg.pinv(information[block] / size, rcond=_INFORMATION_RTOL, hermitian=True)
    return float(np.vdot(inverse, noise[block] / size))
