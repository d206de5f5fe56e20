"""Softmax of log-probabilities scaled by a temperature, a vector or a matrix, and mixtures."""

from functools import partial
from numbers import Real

import numpy as np
from array_api_compat import array_namespace

from .._data import ClassData
from .._inputs.scikit_learn import Interval, estimator_class
from .._numerics.array_api import Array, asarray_like, to_numpy
from .._numerics.logits import iter_row_blocks, softmax_in_place
from .._numerics.scaling import Point, matrix_preconditioner, softmax_regression
from .._numerics.scaling_designs import (
    Affine,
    AffineAndCommon,
    Design,
    Diagonal,
    DiagonalAndCommon,
    ScaledAndShifted,
)
from .._numerics.temperature import TemperingProblem, mix_tempered, scale_by_temperature
from ._base import RECALIBRATOR_CONSTRAINTS, log_matrix
from ._logits import LogScaleRecalibrator, linear_scores
from ._maps import LogLinear, Map, mix
from ._prior import CLASS_PRIOR_WEIGHT, TEMPERATURE_PRIOR_WEIGHT, prior_share


@estimator_class(kw_only=True)
class TemperatureRecalibrator(LogScaleRecalibrator):
    r"""Recalibration by a temperature.

    The order of the classes in each row stays.

    Parameters
    ----------
    prior_weight : float, default=8.0
        Number of additional samples, with labels distributed as predicted. 0 is maximum likelihood.
        None is the same, but 1 where maximum likelihood would end in certainty, at T = 0.

    input_type : {"probabilities", "logits"}, default="probabilities"
        What `X` holds. Logits are scores before the softmax, from -1e6 to 1e6, or in one column the
        log-odds of the last class.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    temperature_ : float
        T; above 1, the predictions were overconfident.

    smallest_probability_ : float
        Probabilities are clipped this far from 0 and 1: machine epsilon, half of the smallest
        positive one if there are zeros, or less for smaller ones in several columns; 0 with logits.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    VectorScalingRecalibrator : A scale and a shift for each class.
    MatrixScalingRecalibrator : Close to a temperature with few samples.

    Notes
    -----
    The calibrated probabilities are :math:`\mathrm{softmax}(\log p / T)` with the T in :math:`[0,
    \infty]` of the least log loss [1]_. The exact minimum takes a few steps of :math:`O(n K)`.
    :math:`T = \infty` means 1/K for all. :math:`T = 1` if all T fit equally well (constant rows).
    With `prior_weight=0`, :math:`T = 0` if every label has the largest probability of its row,
    which then gets everything; otherwise T is positive. Results stay 2.2e-16 away from 0 and 1.
    Where the log-probabilities vary too little to tell T, it holds within their range in the fit
    only (see :class:`VectorScalingRecalibrator`), which all classes share.

    References
    ----------
    .. [1] Guo, Pleiss, Sun and Weinberger (2017). On Calibration of Modern Neural Networks. ICML.
       :arxiv:`1706.04599`

    Examples
    --------
    >>> from skcalib.recalibration import TemperatureRecalibrator
    >>> recalibrator = TemperatureRecalibrator(prior_weight=0)
    >>> round(recalibrator.fit([0.9, 0.9, 0.9, 0.1], [1, 1, 0, 0]).temperature_, 6)
    2.0
    >>> recalibrator.predict_proba([0.9])
    array([[0.25, 0.75]])
    """

    _parameter_constraints = {"prior_weight": [*RECALIBRATOR_CONSTRAINTS["prior_weight"], None]}

    prior_weight: float | None = TEMPERATURE_PRIOR_WEIGHT

    _is_order_preserving = True

    def _fit_scores(self, data: ClassData) -> None:
        log_proba = partial(self._log_proba, data)
        for prior_weight in (0.0, 1.0) if self.prior_weight is None else (self.prior_weight,):
            prior = prior_share(data, prior_weight)
            problem = TemperingProblem(log_proba, data.label, data.weight, prior)
            self.temperature_ = problem.best_temperature()
            if self.temperature_ > 0:
                break

    def _map_scores(self, log_proba: Array) -> Array:
        return scale_by_temperature(log_proba, self.temperature_)

    def _linear_map(self) -> tuple[np.ndarray, np.ndarray]:
        if self.temperature_ == 0:
            raise ValueError(
                "temperature_ must be positive for a map of logits; found 0, which makes all of "
                "them infinite. Fit with a positive prior_weight, or with the default."
            )
        n_classes = len(self.classes_)
        return np.full(n_classes, 1 / self.temperature_), np.zeros(n_classes)


@estimator_class(kw_only=True)
class EnsembleTemperatureRecalibrator(LogScaleRecalibrator):
    r"""Recalibration by a mixture of tempered, given and uniform predictions.

    Ensemble temperature scaling: a temperature, and two shares for the predictions as they are and
    for equal probabilities of all classes. The order of the classes in each row stays.

    Parameters
    ----------
    prior_weight : float, default=8.0
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
    temperature_ : float
        T, positive; of no meaning if the share of tempered predictions is 0.

    shares_ : ndarray of shape (3,)
        The shares of tempered, given and uniform predictions in the mixture; at least 0, with sum
        1.

    smallest_probability_ : float
        Probabilities are clipped this far from 0 and 1: machine epsilon, half of the smallest
        positive one if there are zeros, or less for smaller ones in several columns; 0 with logits.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    TemperatureRecalibrator : The temperature alone.

    Notes
    -----
    The calibrated probabilities are

    .. math::
        q = w_1 \, \mathrm{softmax}(\log p / T) + w_2 \, p + w_3 / K, \qquad
        w_1, w_2, w_3 \ge 0, \quad w_1 + w_2 + w_3 = 1,

    with the least log loss of the labels and the prior [1]_.

    Where the log-probabilities vary too little to tell T, it holds within their range in the fit
    only (see :class:`TemperatureRecalibrator`).

    In T the loss can have several minima; the result is at least as good as a single temperature,
    and as [1]_. The search takes some 20 to 40 passes of :math:`O(n K)`. Results stay 2.2e-16 away
    from 0 and 1.

    References
    ----------
    .. [1] Zhang, Kailkhura and Han (2020). Mix-n-Match. ICML. :arxiv:`2003.07329`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.recalibration import EnsembleTemperatureRecalibrator
    >>> y, proba = make_temperature_family(20000, inverse_temperature=2, random_state=0)
    >>> y[::5] = 1 - y[::5]  # a fifth of the labels is wrong
    >>> recalibrator = EnsembleTemperatureRecalibrator().fit(proba, y)
    >>> recalibrator.shares_.round(1)
    array([0.6, 0. , 0.4])
    """

    prior_weight: float = TEMPERATURE_PRIOR_WEIGHT

    _is_order_preserving = True
    _fits_on_device = False

    def _fit_scores(self, predictions: ClassData) -> None:
        predictions = predictions.sort_samples()
        data, logs = (predictions.label, predictions.weight), self._log_proba(predictions)
        prior = prior_share(predictions, self.prior_weight)
        del predictions  # they take as much memory as their logarithms

        def log_proba(rows: slice) -> np.ndarray:
            return logs[rows].copy(order="K")

        problem = TemperingProblem(log_proba, *data, prior)
        start = problem.best_temperature()
        if start in (0, np.inf):
            start = 1.0
        self.temperature_, self.shares_ = problem.best_mixture(start)

    def _map_rows(self, proba: Array) -> Array:
        if self._bounds is None:
            return super()._map_rows(proba)
        tempered, given, uniform = self.shares_.tolist()
        logs = proba if self._expects_logits else log_matrix(proba, self.smallest_probability_)
        mixture = tempered * super()._map_rows(proba) + given * scale_by_temperature(logs, 1.0)
        return mixture + uniform / len(self.classes_)

    def _map_scores(self, log_proba: Array) -> Array:
        if self._bounds is not None:  # the other parts have none
            return scale_by_temperature(log_proba, self.temperature_)
        return mix_tempered(log_proba, self.temperature_, self.shares_)

    def _state_map(self) -> Map:
        ones, smallest = np.ones(len(self.classes_)), self.smallest_probability_
        members = [
            LogLinear(factor * ones, 0 * ones, smallest, self._bounds)
            for factor in (1 / self.temperature_, 1.0)
        ]
        return mix(members, self.shares_[:2], self.shares_[2], len(ones))


# A column is constant, up to rounding, if its spread is below this fraction of its mean.
CONSTANT = 1e-13


@estimator_class(kw_only=True)
class VectorScalingRecalibrator(LogScaleRecalibrator):
    r"""Recalibration by a scale and a shift of the log-probability of each class.

    Parameters
    ----------
    prior_weight : float, default=16.0
        Number of additional samples in the fit, with labels distributed as predicted; for K > 2
        classes K/2 times as many, as the best temperature predicts. 0 is maximum likelihood.

    input_type : {"probabilities", "logits"}, default="probabilities"
        What `X` holds. Logits are scores before the softmax, from -1e6 to 1e6, or in one column the
        log-odds of the last class.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes,)
        v, the factors of the log-probabilities.

    intercept_ : ndarray of shape (n_classes,)
        b, the shifts of the log-probabilities; their mean is 0.

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
    TemperatureRecalibrator : One number for all classes.
    MatrixScalingRecalibrator : Regularised, and better with few samples in each class.

    Notes
    -----
    The calibrated probabilities are :math:`\mathrm{softmax}(v \circ \log p + b)` with the least log
    loss [1]_ of the labels and the prior; for two classes this is a :class:`BetaRecalibrator`
    without fixed signs. The cost is some steps of :math:`O(n K)`. With a large `prior_weight` and K
    > 2 classes the map is a temperature. Results stay 2.2e-16 away from 0 and 1.

    Steep factors may be noise if their information is below 1. With the mean predictions
    :math:`\bar p`, and log-probabilities x less their means, it is
    :math:`\sum_i (\sum_k \bar p_k x_{ik}^2 - (\sum_k \bar p_k x_{ik})^2) / (K - 1)`.
    Then they hold between the smallest and the largest log-probability of each class in the fit
    only, and beyond them factors are 1, unless `prior_weight` is 0.

    References
    ----------
    .. [1] Guo, Pleiss, Sun and Weinberger (2017). On Calibration of Modern Neural Networks. ICML.
       :arxiv:`1706.04599`

    Examples
    --------
    >>> from skcalib.recalibration import VectorScalingRecalibrator
    >>> proba = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> recalibrator = VectorScalingRecalibrator().fit(proba, ["a", "b", "b", "c"])
    >>> recalibrator.predict_proba([[0.8, 0.1, 0.1]]).round(2)
    array([[0.74, 0.16, 0.1 ]])
    """

    _draws_to_temperature = True

    prior_weight: float = CLASS_PRIOR_WEIGHT

    def _regress(self, log_proba: Array, target: Array, data: ClassData) -> float:
        # standardised columns, so that those of narrow range move as easily as others
        weight, centre, spread = data.weight, *_centre_and_spread(log_proba, data)
        inputs = log_proba
        inputs -= asarray_like(inputs, centre)
        constant = spread <= CONSTANT * np.abs(centre)
        spread[constant] = 1.0
        scale, shift = self._first_map(np.ones(len(centre)))
        scale = np.where(constant, 1.0, scale)  # without effect on the loss
        shift = shift + scale * centre
        start = np.stack([scale * spread, shift - shift.mean()])
        inputs /= asarray_like(inputs, spread)
        (scale, shift), change = softmax_regression(ScaledAndShifted, inputs, target, weight, start)
        self.coef_ = scale / spread
        self.intercept_ = shift - self.coef_ * centre
        self.intercept_ -= self.intercept_.mean()
        return change


@estimator_class(kw_only=True)
class MatrixScalingRecalibrator(LogScaleRecalibrator):
    r"""Recalibration by a matrix that is drawn to a temperature.

    Structured matrix scaling [1]_: a temperature for all classes, deviations from it for single
    classes, shifts, and influences of one class on another. Penalties on the last three shrink with
    the number of samples.

    Parameters
    ----------
    diagonal_penalty : float, default=10.0
        Penalty on the differences between the factors of single classes; with ``numpy.inf`` they
        are equal.

    off_diagonal_penalty : float, default=10.0
        Penalty on influences of one class on another; with ``numpy.inf`` they are 0.

    intercept_penalty : float, default=10.0
        Penalty on the shifts; with ``numpy.inf`` they are 0.

    prior_weight : float, default=8.0
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
    coef_ : ndarray of shape (n_classes, n_classes)
        W, the factors of the log-probabilities; row j makes the score of class j.

    intercept_ : ndarray of shape (n_classes,)
        b, the shifts.

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
    TemperatureRecalibrator : One number for all classes.
    DirichletRecalibrator : Without a common temperature.

    Notes
    -----
    The calibrated probabilities are :math:`\mathrm{softmax}(W z + b)` of the log-probabilities
    relative to their mean, :math:`z_k = \log p_k - \frac1K \sum_l \log p_l`. With the log loss L of
    the labels and the prior, weights :math:`w_i` that sum to 1 (:math:`\sum_i w_i^2 = 1/n` if
    equal) and the mean :math:`\beta` of the diagonal, the fit minimises

    .. math::
        L(W, b) + \frac{K}{2} \sum_i w_i^2 \Bigl( \lambda_d \sum_k (W_{kk} - \beta)^2
        + \lambda_o (K - 1) \sum_{j \ne k} W_{jk}^2 + \lambda_b \sum_k b_k^2 \Bigr),

    where :math:`\lambda_d`, :math:`\lambda_o` and :math:`\lambda_b` are the three penalties in the
    order of the parameters. With many samples of many classes, try penalties of 1.
    Where the log-probabilities vary too little to tell W, it holds within their range in the fit
    only (see :class:`VectorScalingRecalibrator`).

    A step costs :math:`O(n K^2)`, with ``off_diagonal_penalty=np.inf`` :math:`O(n K)`, in
    :math:`O(n K + K^2)` memory. Results stay 2.2e-16 away from 0 and 1.

    References
    ----------
    .. [1] Berta, Holzmüller, Jordan and Bach (2025). Structured Matrix Scaling for Multi-Class
       Calibration. :arxiv:`2511.03685`

    Examples
    --------
    >>> from skcalib.recalibration import MatrixScalingRecalibrator
    >>> proba = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> recalibrator = MatrixScalingRecalibrator().fit(proba, ["a", "b", "b", "c"])
    >>> recalibrator.predict_proba([[0.8, 0.1, 0.1]]).round(2)
    array([[0.78, 0.11, 0.11]])
    """

    _parameter_constraints = {"diagonal_penalty": [Interval(Real, 0, None, closed="both")]}

    diagonal_penalty: float = 10.0
    off_diagonal_penalty: float = 10.0
    intercept_penalty: float = 10.0
    prior_weight: float = TEMPERATURE_PRIOR_WEIGHT

    def _regress(self, log_proba: Array, target: Array, data: ClassData) -> float:
        n_classes = log_proba.shape[1]
        strength = n_classes * data.inverse_effective_size
        penalty = np.zeros((n_classes + 2, n_classes))  # none on the common factor
        with np.errstate(over="ignore"):  # a product that overflows is infinite
            penalty[:n_classes] = strength * (n_classes - 1) * np.float64(self.off_diagonal_penalty)
            np.fill_diagonal(penalty, strength * np.float64(self.diagonal_penalty))
            penalty[n_classes] = strength * np.float64(self.intercept_penalty)
        start = np.zeros_like(penalty)
        start[-1] = 1.0
        coef, shift = self._first_map(np.eye(n_classes))
        common = np.full(n_classes, coef.diagonal().mean())
        guess = np.vstack([(coef - np.diag(common)).T, shift, common])
        design: Design = AffineAndCommon
        if np.isinf(penalty[1, 0]):  # the influences of other classes are 0
            design = DiagonalAndCommon
            penalty, start, guess = map(_keep_diagonal, (penalty, start, guess))
        parameters, change = softmax_regression(
            design,
            _center_rows(log_proba),
            target,
            data.weight,
            start,
            penalty,
            matrix_preconditioner if design is AffineAndCommon else Point.preconditioner,
            guess=guess,
        )
        *factors, self.intercept_, common = parameters
        class_factors = np.diag(*factors) if len(factors) == 1 else np.transpose(factors)
        self.coef_ = common.mean() * np.eye(n_classes) + class_factors
        return change

    def _map_scores(self, log_proba: Array) -> Array:
        return softmax_in_place(linear_scores(self.coef_, self.intercept_, _center_rows(log_proba)))

    def _linear_map(self) -> tuple[np.ndarray, np.ndarray]:
        return _center_rows(self.coef_), self.intercept_  # W (z - mean z) = (W - its row means) z


@estimator_class(kw_only=True)
class DirichletRecalibrator(LogScaleRecalibrator):
    r"""Recalibration by a matrix, as for predictions with Dirichlet distributions.

    The Dirichlet calibration of [1]_ with its regularisation of off-diagonal entries and
    intercepts (ODIR).

    Parameters
    ----------
    off_diagonal_penalty : float, default=100.0
        Penalty on influences of one class on another; with ``numpy.inf`` they are 0.

    intercept_penalty : float, default=1.0
        Penalty on the intercepts; with ``numpy.inf`` they are 0.

    prior_weight : float, default=16.0
        Number of additional samples in the fit, with labels distributed as predicted; for K > 2
        classes K/2 times as many, as the best temperature predicts. 0 is maximum likelihood.

    input_type : {"probabilities", "logits"}, default="probabilities"
        What `X` holds. Logits are scores before the softmax, from -1e6 to 1e6, or in one column the
        log-odds of the last class.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_classes)
        W, the factors of the log-probabilities; row j makes the score of class j.

    intercept_ : ndarray of shape (n_classes,)
        b, the intercepts.

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
    MatrixScalingRecalibrator : Regularises the diagonal, too, and all of it by the sample size.

    Notes
    -----
    The calibrated probabilities are :math:`\mathrm{softmax}(W \log p + b)`. With the log loss L of
    the labels and the prior, the fit minimises

    .. math::
        L(W, b) + \frac{\lambda}{K (K - 1)} \sum_{j \ne k} W_{jk}^2
        + \frac{\mu}{K} \sum_k b_k^2,

    where :math:`\lambda` is `off_diagonal_penalty` and :math:`\mu` is `intercept_penalty`. With
    many samples per class, try smaller ones.
    Where the log-probabilities vary too little to tell W, it holds within their range in the fit
    only (see :class:`VectorScalingRecalibrator`).

    A step costs :math:`O(n K^2)`, with ``off_diagonal_penalty=np.inf`` :math:`O(n K)`, in
    :math:`O(n K + K^2)` memory. Results stay 2.2e-16 away from 0 and 1.

    References
    ----------
    .. [1] Kull, Perello Nieto, Kängsepp, Silva Filho, Song and Flach (2019). Beyond Temperature
       Scaling. NeurIPS. :arxiv:`1910.12656`

    Examples
    --------
    >>> from skcalib.recalibration import DirichletRecalibrator
    >>> proba = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> recalibrator = DirichletRecalibrator().fit(proba, ["a", "b", "b", "c"])
    >>> recalibrator.predict_proba([[0.8, 0.1, 0.1]]).round(2)
    array([[0.76, 0.14, 0.09]])
    """

    _draws_to_temperature = True

    off_diagonal_penalty: float = 100.0
    intercept_penalty: float = 1.0
    prior_weight: float = CLASS_PRIOR_WEIGHT

    def _regress(self, log_proba: Array, target: Array, data: ClassData) -> float:
        n_classes = log_proba.shape[1]
        start = np.eye(n_classes + 1, n_classes)
        coef, shift = self._first_map(np.eye(n_classes))
        guess = np.vstack([coef.T, shift])
        penalty = np.empty_like(start)
        with np.errstate(over="ignore"):  # a product that overflows is infinite
            penalty[:] = 2 * np.float64(self.off_diagonal_penalty) / (n_classes * (n_classes - 1))
            # the free factor of a constant column is a shift: it stays 1, and the shift is free
            centre, spread = _centre_and_spread(log_proba, data)
            constant = spread <= CONSTANT * np.abs(centre)
            np.fill_diagonal(penalty, np.where(constant, np.inf, 0.0))
            penalty[-1] = 2 * np.float64(self.intercept_penalty) / n_classes
            penalty[-1, constant] = 0.0
        design: Design = Affine
        if np.isinf(penalty[1, 0]):  # the influences of other classes are 0
            design = Diagonal
            penalty, start, guess = map(_keep_diagonal, (penalty, start, guess))
        parameters, change = softmax_regression(
            design, log_proba, target, data.weight, start, penalty, guess=guess
        )
        self.coef_ = np.diag(parameters[0]) if design is Diagonal else parameters[:-1].T.copy()
        self.intercept_ = parameters[-1].copy()
        return change


def _centre_and_spread(log_proba: Array, data: ClassData) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of each column, (K,)."""
    weight = data.weight
    centre, square = weight @ log_proba, 0.0
    n, n_classes = log_proba.shape
    for rows in iter_row_blocks(n, n_classes, like=log_proba):
        square = square + weight[rows] @ (log_proba[rows, :] - centre) ** 2
    return to_numpy(centre), np.sqrt(to_numpy(square))


def _keep_diagonal(parameters: np.ndarray) -> np.ndarray:
    """The diagonal of the matrix (K, K) on top of parameters, and the rows below it."""
    return np.vstack([parameters.diagonal(), parameters[parameters.shape[1] :]])


def _center_rows(values: Array) -> Array:
    """Rows less their means."""
    return values - array_namespace(values).mean(values, axis=1, keepdims=True)
