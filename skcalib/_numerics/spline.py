"""Natural cubic splines: cubic between knots, linear beyond the first and the last one."""

import numpy as np
from scipy.interpolate import CubicSpline

from .logistic import newton, orthonormal_basis

# Knots are at least this far apart: no curve of interest bends in between.
_SMALLEST_GAP = 0.01

# The scales σ of the curvature that are tried. Their prior distribution is exponential, with the
# rate below.
_SCALES = 2.0 ** np.arange(-8, 4)

_RATE = 2.0

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
        if knot - knots[-1] > _SMALLEST_GAP and last - knot > _SMALLEST_GAP:
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

    If `smoothing` is None, λ is chosen by the largest posterior density. With σ² = share/λ, the
    penalty is the prior of a curve whose curvature is white noise of scale σ, and Laplace's
    approximation gives the likelihood of σ. The prior of σ itself is exponential: it draws towards
    the straight line, σ = 0 (Simpson, Rue, Riebler, Martins and Sørbye 2017). Without it, nearly
    separated outcomes would be taken for steps.
    """
    design, bend = spline_basis(points, knots)
    basis, triangle = orthonormal_basis(design, mass.sum(axis=0))
    root = np.linalg.solve(triangle.T, bend.T).T
    position = triangle[:, 1]  # where f(x) = x
    n_bends = len(knots) - 2
    scales = _SCALES if n_bends else _SCALES[:1]
    penalties = share / scales**2
    if smoothing is not None:
        penalties = np.array([min(smoothing, _STRAIGHT)])
    fits, surprise = [], np.zeros(len(penalties))
    for k, penalty in enumerate(penalties):
        position, moments, converged = newton(basis, mass, position, np.sqrt(penalty) * root)
        fits.append((position, converged))
        volume = np.abs(moments.root.diagonal()) + np.finfo(np.float64).tiny
        log_volume = np.log(volume).sum() + n_bends * np.log(scales[k])
        surprise[k] = moments.loss / share + log_volume + _RATE * scales[k]
    best = int(surprise.argmin())
    position, converged = fits[best]
    values = values_at_knots(np.linalg.solve(triangle, position), knots)
    return values, float(penalties[best]), converged


def spline_basis(points: np.ndarray, knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The splines with K knots as a design (m, K), and the root D (2(K − 1), K) of their curvature.

    The columns are 1, x, and for each inner knot the spline that is 1 there and 0 at the others.
    With coefficients β, |Dβ|² = ∫f''(x)² dx: the second derivative is linear between knots, and two
    Gauss nodes integrate its square exactly.
    """
    inner = natural_spline(knots, np.eye(len(knots))[:, 1:-1])
    design = np.column_stack([np.ones(len(points)), points, inner(points)])
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


def evaluate_spline(knots: np.ndarray, values: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The natural spline through the values (K,) at the knots (K,), at points (m,)."""
    spline = natural_spline(knots, values)
    inside = np.clip(points, knots[0], knots[-1])
    return spline(inside) + (points - inside) * spline(inside, 1)


def spline_pieces(knots: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
    """The K + 1 polynomials below the first knot, between each and the next, and above the last.

    Their coefficients, the lowest power first, are those of the distance from the knot where they
    begin; of the first polynomial, from the first knot.
    """
    spline = natural_spline(knots, values)
    first, last = (np.array([spline(end), spline(end, 1)]) for end in knots[[0, -1]])
    return [first, *spline.c[::-1].T, last]
