"""Local quadratic regression on one variable: loess with the defaults of R.

At a point q, a parabola is fitted to the three quarters of the samples that are nearest to q, with
the weight (1 − (d/h)³)³ for a sample at the distance d, if h is that of the farthest of them. As in
R (`surface = "interpolate"`), this is done at some points only, the vertices, and a cubic with the
values and the slopes of the parabolas connects two neighbours. The vertices are the ends of the
range, moved outwards a little, and the medians at which the samples are cut into ever smaller cells
(Cleveland and Grosse 1991, Computational Methods for Local Regression, doi:10.1007/BF01890836).

Where R gives up or takes a pseudoinverse, as fewer than three distinct points have a positive
weight, the polynomial has a lower degree here.
"""

import numpy as np

_SPAN = 0.75

# A cell that holds more than this share of the samples is cut: the span times `cell = 0.2` of R.
_MAX_CELL_SHARE = _SPAN * 0.2

# The outer vertices lie beyond the range by this fraction of it. The range counts as at least the
# second number times the largest point, plus the third.
_RANGE_MARGIN = 0.005
_MIN_RELATIVE_RANGE, _MIN_RANGE = 1e-10, 1e-30

# A polynomial is a combination of those of lower degree if a smaller fraction of it is left when
# these are projected out.
_DEGREE_RTOL = 1e-13

# More samples are summed in blocks of `_MAX_ROWS` rows, which stay in the cache. A sum of squares
# or of fourth powers that is below this share of another one has lost digits.
_MAX_ROWS, _MIN_MOMENT_SHARE = 2**13, 1e-3

# Distances in memory at the same time, unless there are more samples.
_MAX_BLOCK_DISTANCES = 2**16


def loess_of_sorted(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The smoothed values (n,) at sorted points x (n,), of values y with weights w."""
    vertices = _vertices(x)
    n_rows = max(_MAX_BLOCK_DISTANCES // len(x), 1) if _SPAN * len(x) <= _MAX_ROWS else 1
    blocks = [vertices[k : k + n_rows] for k in range(0, len(vertices), n_rows)]
    value, slope = np.hstack([_local_fits(x, y, w, block) for block in blocks])
    right = np.searchsorted(vertices, x)  # for Hermite's interpolation
    left = right - 1
    width = vertices[right] - vertices[left]
    t = (x - vertices[left]) / width
    bend = (1 - t) * slope[left] - t * slope[right]
    rise = value[right] - value[left]
    return value[left] + t**2 * (3 - 2 * t) * rise + t * (1 - t) * width * bend


def _vertices(x: np.ndarray) -> np.ndarray:
    """The ends of all cells, sorted, for sorted points."""
    low, high = float(x[0]), float(x[-1])
    min_range = _MIN_RELATIVE_RANGE * max(abs(low), abs(high)) + _MIN_RANGE
    margin = _RANGE_MARGIN * max(high - low, min_range)
    max_size = int(_MAX_CELL_SHARE * len(x))
    vertices = {low - margin, high + margin}
    cells = [(0, len(x), low - margin, high + margin)]
    while cells:
        first, end, left, right = cells.pop()
        if end - first <= max_size:
            continue
        last = _last_of_lower_half(x[first:end]) + first
        cut = float(x[last])
        if left < cut < right:
            vertices.add(cut)
            cells += [(first, last + 1, left, cut), (last + 1, end, cut, right)]
    return np.array(sorted(vertices))


def _last_of_lower_half(x: np.ndarray) -> int:
    """The index of the last sample of the lower half, moved to where two neighbours differ.

    Places are tried by turns on the right and on the left, until the right is exhausted. If none
    is found, ties are separated.
    """
    n = len(x)
    middle = (n - 1) // 2
    differs = x[1:] != x[:-1]
    right = differs[middle:]
    left = differs[:middle][::-1]
    tried = len(right)
    to_right = int(np.argmax(right)) if right.any() else tried
    to_left = int(np.argmax(left[:tried])) + 1 if left[:tried].any() else tried
    if min(to_right, to_left) == tried:
        return middle
    return middle + to_right if to_right <= to_left else middle - to_left


def _local_fits(
    x: np.ndarray, y: np.ndarray, w: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes at q (V,) of the parabolas that are fitted to the samples near each.

    The nearest k of sorted samples are next to each other: those from l on for the first l at which
    x_l is not farther from q than x_(l + k).
    """
    n_near = max(int(_SPAN * len(x)), 1)
    first = np.searchsorted(x[: len(x) - n_near] + x[n_near:], 2 * q)
    windows = [slice(start, start + n_near) for start in first]
    if n_near > _MAX_ROWS:  # a single q
        fit = _fit_by_moments(x[windows[0]], y[windows[0]], w[windows[0]], float(q[0]))
        if fit is not None:
            return fit
    x_near, y_near, w_near = (
        values[None, windows[0]] if len(windows) == 1 else np.array([values[k] for k in windows])
        for values in (x, y, w)
    )
    gap = x_near - q[:, None]  # (V, n_near)
    distance = np.abs(gap)
    radius = np.maximum(distance[:, :1], distance[:, -1:])
    if (distance.min(axis=1)[:, None] < radius).all():
        kernel = distance / radius
        kernel *= kernel * kernel
        np.subtract(1.0, kernel, out=kernel)
        kernel *= kernel * kernel
        kernel *= w_near
        return _fit_parabolas(gap, kernel, y_near)
    # if all are equally near, a slightly larger radius would give them and their ties equal weights
    gap = x - q[:, None]  # (V, n)
    distance = np.abs(gap)
    ratio = np.divide(distance, radius, out=np.ones_like(distance), where=distance < radius)
    has_near = distance.min(axis=1)[:, None] < radius
    kernel = np.where(has_near, (1 - ratio**3) ** 3, distance == radius)
    return _fit_parabolas(gap, kernel * w, np.broadcast_to(y, gap.shape))


def _fit_by_moments(
    x: np.ndarray, y: np.ndarray, w: np.ndarray, q: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Value and slope (1,) at q of the parabola of `_fit_parabolas`, for sorted x (n_near,).

    It needs sums of u, …, u⁴, where u is the gap divided by the radius, and these are taken of rows
    that fit into the cache. None if differences of the sums would lose digits.
    """
    if x[0] == x[-1]:
        return None
    radius = max(abs(x[0] - q), abs(x[-1] - q))
    moments, products = np.zeros((3, 3)), np.zeros(3)
    for start in range(0, len(x), _MAX_ROWS):
        rows = slice(start, start + _MAX_ROWS)
        gap = x[rows] - q
        gap /= radius
        powers = np.stack([np.ones_like(gap), gap, gap * gap])  # (3, rows)
        kernel = np.abs(gap)
        kernel *= powers[2]
        np.subtract(1.0, kernel, out=kernel)
        kernel *= kernel * kernel
        kernel *= w[rows]
        weighted = kernel * powers
        moments += weighted @ powers.T
        products += weighted @ (y[rows] - y[0])
    (total, m1, m2), (m3, m4) = moments[0].tolist(), moments[2, 1:].tolist()
    if total <= 0:  # all are equally far
        return None
    a = m1 / total
    size = m2 - a * m1
    if size <= _MIN_MOMENT_SHARE * m2:
        return None
    b, c = (m3 - a * (2 * m2 - a * m1)) / size, size / total
    bend = m4 - (a + b) * m3 + (a * b - c) * m2
    if bend <= _MIN_MOMENT_SHARE * m4:
        return None
    slope = (products[1] - a * products[0]) / size
    curvature = (products[2] - (a + b) * products[1] + (a * b - c) * products[0]) / bend
    value = y[0] + products[0] / total - a * slope + (a * b - c) * curvature
    return np.array([value]), np.array([(slope - (a + b) * curvature) / radius])


def _fit_parabolas(
    gap: np.ndarray, kernel: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes (V,) at gap 0 of parabolas, or lines, or constants if no more is possible.

    Gaps, weights and values are (V, m). The polynomials of a basis are orthogonal, P_0 = 1,
    P_1 = g − a and P_2 = (g − b)P_1 − c with the gap g = x − q, so that a coefficient is a mean.
    """
    level = y[:, :1]  # without it, equal values keep every digit
    weighted = kernel * (y - level)
    total = kernel.sum(axis=1)
    a = np.einsum("vn,vn->v", kernel, gap) / total
    first = gap - a[:, None]
    square = kernel * first
    square *= first
    size = square.sum(axis=1)
    distance_square = gap * gap
    is_line = size > _DEGREE_RTOL**2 * np.einsum("vn,vn->v", kernel, distance_square)
    b = _quotient(np.einsum("vn,vn->v", square, gap), size, is_line)
    c = size / total
    second = gap - b[:, None]
    second *= first
    second -= c[:, None]
    bend = np.einsum("vn,vn,vn->v", kernel, second, second)
    distance_square *= distance_square
    is_parabola = bend > _DEGREE_RTOL**2 * np.einsum("vn,vn->v", kernel, distance_square)
    slope = _quotient(np.einsum("vn,vn->v", weighted, first), size, is_line)
    curvature = _quotient(np.einsum("vn,vn->v", weighted, second), bend, is_parabola)
    value = level[:, 0] + weighted.sum(axis=1) / total - a * slope + (a * b - c) * curvature
    return value, slope - (a + b) * curvature


def _quotient(numerator: np.ndarray, denominator: np.ndarray, where: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=where)
