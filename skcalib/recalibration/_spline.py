"""A smooth curve on the logit scale."""

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from .._data import ClassData
from .._inputs.scikit_learn import Count, Interval, estimator_class
from .._numerics.logistic import newton, orthonormal_basis
from .._numerics.logits import iter_row_blocks
from ._logistic import LogisticRecalibrator
from ._maps import Curve
from ._prior import PooledOutcomes, warn_unless_converged


@estimator_class()
class SplineRecalibrator(LogisticRecalibrator):
    r"""Recalibration by a smooth curve on the logit scale.

    The calibrated log-odds are a natural cubic spline of the predicted ones, as smooth as the data
    suggest. More than two classes: one against the rest, and rows divided by their sums.

    Parameters
    ----------
    n_knots : int, default=10
        Largest number of knots, at least 2, at quantiles of the distinct predictions.

    smoothing : float, default=None
        The factor λ of the curvature in the loss: 0 for a regression spline, a very large number
        for a straight line. By default it is estimated from the data.

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

    maps_ : list of (knots, values)
        Calibrated logits (values) at sorted predicted ones (knots): one pair for the last of two
        classes; else one for each class.

    smoothing_ : ndarray of shape (1,) or (n_classes,)
        The factors λ.

    smallest_probability_ : float
        Probabilities are clipped this far from 0 and 1: machine epsilon, half of the smallest
        positive one if there are zeros, or less for smaller ones in both columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    SigmoidRecalibrator : The straight line.
    IsotonicRecalibrator : Any nondecreasing map.

    Notes
    -----
    With the likelihood :math:`\ell(q)` that :class:`SigmoidRecalibrator` maximises, the spline [1]_
    is

    .. math::
        \min_f -\ell(q) + \frac{\lambda}{2} \int f''(x)^2 \, dx, \qquad
        \operatorname{logit} q_i = f(\operatorname{logit} p_i).

    By default λ is the mode of its posterior distribution: the marginal likelihood by Laplace's
    approximation [2]_, times a prior that favours the straight line [3]_.

    Beyond the first and the last knot the curve is straight, with slope 1 where the predicted
    logits vary too little to tell a slope (see :class:`SigmoidRecalibrator`).

    Ties are pooled. The cost is :math:`O(n K^2)` for K knots and each of some forty steps of
    Newton's method. With ``prior_weight=0`` there may be no minimum: a warning tells, and the last
    step is kept. Equal predictions are shifted. Results stay 2.2e-16 away from 0 and 1.

    References
    ----------
    .. [1] Green and Silverman (1993). Nonparametric Regression and Generalized Linear Models.
       Chapman and Hall. :doi:`10.1201/b15710`
    .. [2] Wood (2011). Fast stable restricted maximum likelihood and marginal likelihood estimation
       of semiparametric generalized linear models. Journal of the Royal Statistical Society B.
       :doi:`10.1111/j.1467-9868.2010.00749.x`
    .. [3] Simpson, Rue, Riebler, Martins and Sørbye (2017). Penalising Model Component Complexity.
       Statistical Science. :arxiv:`1403.4630`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.recalibration import SplineRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(500)
    >>> y = rng.random(500) < proba**2
    >>> recalibrator = SplineRecalibrator().fit(proba, y)
    >>> recalibrator.predict_proba([0.1, 0.5, 0.9])[:, 1]
    array([0.02..., 0.25..., 0.83...])
    """

    _parameter_constraints = {
        "n_knots": [Count(2)],
        "smoothing": [Interval(Real, 0, None, closed="left"), None],
    }

    _degree = 0

    n_knots: int = 10
    _: KW_ONLY
    smoothing: float | None = None

    def _fit_outcomes(self, problem: PooledOutcomes) -> Any:
        points = problem.log_odds
        knots = quantile_knots(points, self.n_knots)
        values, smoothing, converged = logistic_spline(
            points, problem.mass, knots, problem.share, self.smoothing
        )
        warn_unless_converged(self, converged)
        return knots, values, smoothing

    def _fit(self, data: ClassData) -> None:
        super()._fit(data)
        self.smoothing_ = np.array([smoothing for _, _, smoothing in self.maps_])
        self.maps_ = [(knots, values) for knots, values, _ in self.maps_]

    def _curve(self, params: Any) -> Curve:
        knots, values, _ = params
        return spline_curve(knots, values)


# Knots are at least this far apart: no curve of interest bends in between.
_MIN_KNOT_GAP = 0.01

# The scales σ of the curvature that are tried. Their prior distribution is exponential, with the
# rate below.
_SCALES = 2.0 ** np.arange(-8, 4)

_RATE = 2.0

# Logits that hardly differ are measured in units of their standard deviation, or in this one.
_MIN_UNIT = 1e-3

# To compare scales, a fit is close enough if its last step lowered the log-likelihood by less than
# this: what is left is about the square of it.
_NEARLY = 1e-4

# A factor of the curvature above this gives a straight line, up to rounding.
_STRAIGHT = 1e15


def quantile_knots(points: np.ndarray, n_knots: int) -> np.ndarray:
    """At most n_knots quantiles of sorted distinct points (m,), the first and last included.

    There are at least two knots: a single point gets a neighbour.
    """
    first, *inner, last = np.quantile(points, np.linspace(0, 1, max(2, min(n_knots, len(points)))))
    if first == last:
        return np.array([first, first + 1])
    knots = [first]
    for knot in inner:
        if knot - knots[-1] > _MIN_KNOT_GAP and last - knot > _MIN_KNOT_GAP:
            knots.append(knot)
    return np.array([*knots, last])


def logistic_spline(
    points: np.ndarray,
    mass: np.ndarray,
    knots: np.ndarray,
    share: float,
    smoothing: float | None = None,
) -> tuple[np.ndarray, float, bool]:
    """Values at the knots (K,) of the spline that minimises the log loss + λ/2 ∫f''(x)² dx.

    The sorted distinct points (m,) carry the mass of either outcome (2, m), and `share` is the
    share of one sample in the total mass. Also returns the λ, and whether there is a minimum.

    If `smoothing` is None, λ is chosen by the largest posterior density. With σ² = share u³/λ, the
    penalty is the prior of a curve whose curvature is white noise of scale σ, and Laplace's
    approximation gives the likelihood of σ. The unit u is the standard deviation of the points, at
    most 1. The prior of σ itself is exponential: it draws towards the straight line, σ = 0
    (Simpson, Rue, Riebler, Martins and Sørbye 2017). Without it, nearly
    separated outcomes would be taken for steps.
    """
    design, bend = spline_basis(points, knots)
    basis, triangle = orthonormal_basis(design, mass.sum(axis=0), overwrite=True)
    root = np.linalg.solve(triangle.T, bend.T).T
    position = triangle[:, 1]  # where f(x) = x
    n_bends = len(knots) - 2
    scales = _SCALES if n_bends else _SCALES[:1]
    spread = np.sqrt(np.cov(points, aweights=mass.sum(axis=0), ddof=0))
    penalties = share * np.clip(spread, _MIN_UNIT, 1) ** 3 / scales**2
    if smoothing is not None:
        penalties = np.array([min(smoothing, _STRAIGHT)])
    cache: dict = {}
    fits, surprise = [], np.zeros(len(penalties))
    for k, penalty in enumerate(penalties):
        moments, _ = newton(
            basis, mass, position, np.sqrt(penalty) * root, cache=cache, min_promise=_NEARLY * share
        )
        position = moments.position
        fits.append(position)
        volume = np.abs(moments.root.diagonal()) + np.finfo(np.float64).tiny
        log_volume = np.log(volume).sum() + n_bends * np.log(scales[k])
        surprise[k] = moments.loss / share + log_volume + _RATE * scales[k]
    best = int(surprise.argmin())
    moments, converged = newton(
        basis, mass, fits[best], np.sqrt(penalties[best]) * root, cache=cache
    )
    values = values_at_knots(np.linalg.solve(triangle, moments.position), knots)
    return values, float(penalties[best]), converged


def spline_basis(points: np.ndarray, knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The splines with K knots as a design (m, K), and the root D (2(K − 1), K) of their curvature.

    The columns are 1, x, and for each inner knot the spline that is 1 there and 0 at the others.
    With coefficients β, |Dβ|² = ∫f''(x)² dx: the second derivative is linear between knots, and two
    Gauss nodes integrate its square exactly.
    """
    inner = natural_spline(knots, np.eye(len(knots))[:, 1:-1])
    design = np.ones((len(points), len(knots)), order="F")
    design[:, 1] = points
    for rows in iter_row_blocks(*design.shape):
        design[rows, 2:] = inner(points[rows])
    half = np.diff(knots) / 2
    middle = knots[:-1] + half
    nodes = np.concatenate([middle - half / np.sqrt(3), middle + half / np.sqrt(3)])
    bend = np.tile(np.sqrt(half), 2)[:, None] * inner(nodes, 2)
    return design, np.column_stack([np.zeros((len(nodes), 2)), bend])


def values_at_knots(coefficients: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Values at the knots (K,) of the spline with these coefficients (K,) in the basis."""
    values = coefficients[0] + coefficients[1] * knots
    values[1:-1] += coefficients[2:]
    return values


def natural_spline(knots: np.ndarray, values: np.ndarray) -> CubicSpline:
    return CubicSpline(knots, values, bc_type="natural")


def spline_curve(knots: np.ndarray, values: np.ndarray) -> Curve:
    """The natural spline through the values (K,) at the knots (K,), straight outside of them."""
    spline = natural_spline(knots, values)
    first, last = ([spline(end), spline(end, 1), 0, 0] for end in knots[[0, -1]])
    return Curve(np.vstack([first, spline.c[::-1].T, last]), knots)
