"""Logistic regression on features of the predicted probability."""

from typing import Any, Literal

import numpy as np
from scipy.special import expit, log_expit

from .._data import ClassData
from .._inputs.scikit_learn import estimator_class
from .._numerics.logistic import LogisticFit, logistic_fit
from .._numerics.logits import EPSILON, clip_proba, column_log_odds, smallest_probability
from . import _prior
from ._base import Recalibrator, one_vs_rest
from ._maps import Curve, LogOdds

# Distances from 0 and 1 that are tried where some predictions are 0, up to half the share of the
# rarest class.
_FLOORS = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08)

# Which of a and b are not held at 0.
_FACES = [(1, 1), (1, 0), (0, 1), (0, 0)]


@estimator_class(kw_only=True)
class LogisticRecalibrator(Recalibrator):
    """The calibrated log-odds are a function of the prediction of largest likelihood.

    By default a polynomial of the logit of degree `_degree`; a map without coefficients has degree
    0. For more than two classes there is one function for each, and rows are divided by their sums.
    """

    prior_weight: float = _prior.CLASS_PRIOR_WEIGHT
    _is_smooth = True
    _degree = 1

    def _fit(self, data: ClassData) -> None:
        least = _prior.least_probability(data, self.prior_weight) if data.is_binary else EPSILON
        smallest = smallest_probability(data.columns, least)
        if self._degree:  # a spline bends where the data do
            smallest = likeliest_floor(data, self.prior_weight, smallest)
        self.smallest_probability_ = smallest
        problems = _prior.iter_pooled_outcomes(data, self.prior_weight, smallest)
        self.maps_, self._curves = [], []
        for problem in problems:
            self.maps_.append(self._fit_outcomes(problem))
            curve = self._curve(self.maps_[-1])
            if self.prior_weight and problem.hardly_tells_slope:
                curve = curve.parallel_beyond(problem.log_odds[[0, -1]])
            self._curves.append(curve)
        if self._degree:
            table = np.array(self.maps_)
            self.intercept_, self.coef_ = table[:, 0].copy(), table[:, 1:].copy()

    def _fit_outcomes(self, problem: _prior.PooledOutcomes) -> Any:
        """The map of one class: the coefficients of the log-odds, the intercept first."""
        fit = fit_polynomial(problem, self._degree)
        _prior.warn_unless_converged(self, fit.converged)
        return fit.coefficients

    def _map(self, proba: np.ndarray) -> np.ndarray:
        if len(self._curves) == 1:
            return self._map_binary(proba, self._curves[0])
        return one_vs_rest(self._map_binary, self._curves, proba)

    def _map_binary(self, columns: np.ndarray, curve: Curve) -> np.ndarray:
        """From predictions, (n,) or both columns (n, 2), to those of the last class (n,)."""
        log_odds = column_log_odds(columns, self.smallest_probability_)
        return clip_proba(expit(curve.evaluate(log_odds)))

    def _curve(self, params: Any) -> Curve:
        """The calibrated log-odds of one class, as a function of the predicted ones."""
        return Curve(np.array([params]))

    def _state_map(self) -> LogOdds:
        return LogOdds(self._curves, self.smallest_probability_)


def likeliest_floor(data: ClassData, prior_weight: float, smallest: float) -> float:
    """Return how far from 0 and 1 predictions are clipped: further than `smallest` if some are 0.

    A forest says 0.01 where one of 100 trees disagrees, and 0 where none does. Such log-odds are
    mostly noise, and a map that fits the others is too steep for them.
    """
    largest = np.bincount(data.label, data.weight, len(data.classes)).min() / 2
    larger = [floor for floor in _FLOORS if EPSILON < smallest < floor < largest]

    def line_loss(floor: float) -> float:
        problems = _prior.iter_pooled_outcomes(data, prior_weight, floor)
        return sum(fit_polynomial(problem, 1).loss for problem in problems)

    return min([smallest, *larger], key=line_loss) if larger else smallest


def fit_polynomial(problem: _prior.PooledOutcomes, degree: int) -> LogisticFit:
    design = np.vander(problem.log_odds, degree + 1, increasing=True)
    return logistic_fit(design, problem.mass, np.eye(degree + 1)[1])


class SigmoidRecalibrator(LogisticRecalibrator):
    r"""Recalibration by a logistic regression on the logit (Platt scaling).

    The calibrated log-odds are an intercept plus a slope times the predicted ones. It keeps the
    ranking, unless outcomes fall with the predictions; if some predictions are 0 or 1, those next
    to 0 and 1 may become equal. More than two classes: one against the rest, and rows divided by
    their sums.

    Parameters
    ----------
    prior_weight : float, default=16.0
        Number of additional samples in the fit, with labels distributed as predicted; for K > 2
        classes K/2 times as many, as the best temperature predicts. 0 is maximum likelihood.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercept: for two classes that of the last class, else one for each class.

    coef_ : ndarray of shape (1, 1) or (n_classes, 1)
        The slope, likewise.

    maps_ : list of ndarray
        For each map, the intercept followed by the coefficients.

    smallest_probability_ : float
        Probabilities are clipped this far from 0 and 1: machine epsilon, or less for smaller ones
        in both columns; if there are zeros, half of the smallest positive one, or up to 0.08 where
        a logistic regression on the clipped ones is likelier.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    BetaRecalibrator : Bends the two ends differently, and keeps the ranking.
    QuadraticRecalibrator : One coefficient more.
    SplineRecalibrator : Any smooth curve.

    Notes
    -----
    With predictions p, outcomes y, 0 or 1, and weights w that sum to 1,

    .. math::
        \max_{a, b} \sum_i w_i \left(t_i \log q_i + (1 - t_i) \log(1 - q_i)\right), \qquad
        \operatorname{logit} q_i = a + b \operatorname{logit} p_i, \qquad
        t_i = \frac{y_i + \pi p_i}{1 + \pi},

    where :math:`\pi` is `prior_weight` times :math:`\sum_i w_i^2`, or 1/n for equal weights. Platt
    [1]_ regressed on decision scores.

    If some predictions are 0 or 1, as shares of the votes of a forest may be, all are first clipped
    at a distance from 0 and 1: half of the smallest positive one, or a larger one of 0.0025, 0.005,
    0.01, ..., 0.08 below half the share of the rarest class, where the fit is likeliest. Clipped
    ones become equal.

    A steep slope may be noise if its standard error is above 1, as for predicted logits x with
    :math:`n \bar y (1 - \bar y) \operatorname{Var}(x) < 1`. Then it holds between the smallest and
    the largest x of the fit only, and beyond them the slope is 1, unless `prior_weight` is 0.

    The cost is a sort, and :math:`O(n)` for each of a few Newton steps. Ties are pooled. With
    ``prior_weight=0`` there may be no maximum: a warning tells, and the last step is kept. If all
    predictions are equal, the slope is 1. Results stay 2.2e-16 away from 0 and 1.

    References
    ----------
    .. [1] Platt (2000). Probabilities for SV Machines. Advances in Large Margin Classifiers, MIT
       Press. :doi:`10.7551/mitpress/1113.003.0008`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.recalibration import SigmoidRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < 0.1 + 0.8 * proba  # overconfident
    >>> recalibrator = SigmoidRecalibrator().fit(proba, y)
    >>> recalibrator.intercept_, recalibrator.coef_
    (array([-0.01...]), array([[0.76...]]))
    >>> recalibrator.predict_proba([0.1, 0.9])[:, 1]
    array([0.15..., 0.84...])
    """


class QuadraticRecalibrator(LogisticRecalibrator):
    r"""Recalibration by a logistic regression on the logit and its square.

    The calibrated log-odds are a quadratic polynomial of the predicted ones, so that low and high
    predictions are corrected differently; beyond the predictions of the fit they are a straight
    line. It need not keep the ranking. More than two classes: one against the rest, and rows
    divided by their sums.

    Parameters
    ----------
    prior_weight : float, default=16.0
        Number of additional samples in the fit, with labels distributed as predicted; for K > 2
        classes K/2 times as many, as the best temperature predicts. 0 is maximum likelihood.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercept: for two classes that of the last class, else one for each class.

    coef_ : ndarray of shape (1, 2) or (n_classes, 2)
        The coefficients of the logit and of its square, likewise.

    ends_ : ndarray of shape (1, 2) or (n_classes, 2)
        The least and the greatest logit of the fit, likewise.

    maps_ : list of ndarray
        For each map, the intercept, the coefficients and the ends.

    smallest_probability_ : float
        Probabilities are clipped this far from 0 and 1: machine epsilon, or less for smaller ones
        in both columns; if there are zeros, half of the smallest positive one, or up to 0.08 where
        a logistic regression on the clipped ones is likelier.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    SigmoidRecalibrator : Without the square.
    BetaRecalibrator : As many coefficients, and keeps the ranking.
    SplineRecalibrator : Any smooth curve.

    Notes
    -----
    The fit is that of :class:`SigmoidRecalibrator` [1]_, with

    .. math::
        \operatorname{logit} q_i = a + b x_i + c x_i^2, \qquad x_i = \operatorname{logit} p_i.

    A square grows fast, and turns back. So beyond an end e of the fit the calibrated logit is that
    of e plus :math:`s (x - e)`, where s is the slope :math:`b + 2ce` at this end, but at least 0
    and at most 1: it never falls there, nor rises faster than the predicted logit. Where
    the logits vary too little to tell a slope (see :class:`SigmoidRecalibrator`), s is 1.

    With two distinct predictions c is 0, with one b is 1, too. Cost, ties, bounds and warnings are
    those of :class:`SigmoidRecalibrator`.

    References
    ----------
    .. [1] Berta, Holzmüller, Jordan and Bach (2025). Structured Matrix Scaling for Multi-Class
       Calibration. :arxiv:`2511.03685`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.recalibration import QuadraticRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < proba**2
    >>> recalibrator = QuadraticRecalibrator().fit(proba, y)
    >>> recalibrator.predict_proba([0.1, 0.5, 0.9])[:, 1]
    array([0.01..., 0.25..., 0.82...])
    """

    _degree = 2

    def _fit(self, data: ClassData) -> None:
        super()._fit(data)
        self.coef_, self.ends_ = map(np.copy, np.hsplit(self.coef_, 2))

    def _fit_outcomes(self, problem: _prior.PooledOutcomes) -> np.ndarray:
        ends = problem.log_odds.min(), problem.log_odds.max()
        return np.append(super()._fit_outcomes(problem), ends)

    def _curve(self, params: np.ndarray) -> Curve:
        (a, b, c), ends = params[:3], params[3:]
        value, slope = a + (b + c * ends) * ends, b + 2 * c * ends
        low, high = np.clip(slope, 0, 1)
        pieces = [[value[0], low, 0], [value[0], slope[0], c], [value[1], high, 0]]
        return Curve(np.array(pieces), ends)


@estimator_class()
class BetaRecalibrator(LogisticRecalibrator):
    r"""Recalibration by the likelihood ratio of two beta distributions.

    The calibrated log-odds are :math:`a \log p - b \log(1 - p) + c` with :math:`a, b \ge 0`. This
    bends the curve differently near 0 and near 1, and keeps the ranking. More than two classes: one
    against the rest, and rows divided by their sums.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        What is fitted: all three coefficients; two with a = b, a :class:`SigmoidRecalibrator`
        without negative slopes; or two with c such that 1/2 stays 1/2.

    prior_weight : float, default=16.0
        Number of additional samples in the fit, with labels distributed as predicted; for K > 2
        classes K/2 times as many, as the best temperature predicts. 0 is maximum likelihood.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercept c: for two classes that of the last class, else one for each class.

    coef_ : ndarray of shape (1, 2) or (n_classes, 2)
        The coefficients a and b, likewise.

    maps_ : list of ndarray
        For each map, the intercept followed by the coefficients.

    smallest_probability_ : float
        Probabilities are clipped this far from 0 and 1: machine epsilon, or less for smaller ones
        in both columns; if there are zeros, half of the smallest positive one, or up to 0.08 where
        a logistic regression on the clipped ones is likelier.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    SigmoidRecalibrator : The case a = b.
    QuadraticRecalibrator : As many coefficients, without the ranking.
    SplineRecalibrator : Any smooth curve.

    Notes
    -----
    The fit [1]_ is that of :class:`SigmoidRecalibrator`, with

    .. math::
        \operatorname{logit} q_i = a \log p_i - b \log(1 - p_i) + c, \qquad a, b \ge 0.

    If both a and b are 0, as where outcomes fall with the predictions, all results are equal.
    Where the predicted logits vary too little to tell a slope (see :class:`SigmoidRecalibrator`),
    a = b, and beyond the fit the slope is 1.

    With two distinct predictions a = b, with one both are 1. Cost, ties, bounds and warnings are
    those of :class:`SigmoidRecalibrator`.

    References
    ----------
    .. [1] Kull, Silva Filho and Flach (2017). Beyond sigmoids. Electronic Journal of Statistics.
       :doi:`10.1214/17-EJS1338SI`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.recalibration import BetaRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < proba**2
    >>> recalibrator = BetaRecalibrator().fit(proba, y)
    >>> recalibrator.predict_proba([0.1, 0.5, 0.9])[:, 1]
    array([0.01..., 0.25..., 0.81...])
    """

    parameters: Literal["abm", "am", "ab"] = "abm"

    def _fit_outcomes(self, problem: _prior.PooledOutcomes) -> np.ndarray:
        # logs of probabilities relative to the one that c need not move
        offset = np.log(2) if self.parameters == "ab" else 0.0
        rising = log_expit(problem.log_odds) + offset
        falling = -log_expit(-problem.log_odds) - offset
        is_line = self.parameters == "am" or (self.prior_weight and problem.hardly_tells_slope)
        if is_line:
            rising = falling = (rising + falling) / 2
        fits = []
        for free in [(1, 1), (0, 0)] if is_line else _FACES:
            fit = self._fit_face(rising * free[0], falling * free[1], problem.mass)
            a, b = fit.coefficients[1:] * free
            c = fit.coefficients[0] + (a - b) * offset
            if min(a, b) >= 0:
                fits.append(fit._replace(coefficients=np.array([c, a, b])))
                if free == (1, 1):
                    break
        best = min(fits, key=lambda fit: fit.loss)
        _prior.warn_unless_converged(self, best.converged)
        return best.coefficients

    def _fit_face(self, rising: np.ndarray, falling: np.ndarray, mass: np.ndarray) -> LogisticFit:
        """The unconstrained fit. In this order of columns, undetermined are a − b, then a + b."""
        constant = np.full(len(rising), self.parameters != "ab")
        design = np.column_stack([constant, rising + falling, rising - falling])
        fit = logistic_fit(design, mass, np.array([0.0, 1.0, 0.0]))
        c, mean, half = fit.coefficients
        return fit._replace(coefficients=np.array([c, mean + half, mean - half]))

    def _curve(self, params: Any) -> Curve:
        c, a, b = params
        slope = a if a == b else 0.0
        return Curve(np.array([[c, slope]]), a=a - slope, b=b - slope)
