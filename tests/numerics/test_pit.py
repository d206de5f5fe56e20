"""The distribution of PITs, and its gap to the uniform one, equal quadrature of the definition."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from skcalib._numerics.pit import (
    gap_integral,
    gap_square_integral,
    largest_gap,
    normal_scores,
    pit_cdf,
    pit_curve,
    pit_laws,
    pit_square_integrals,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
both_kinds = pytest.mark.parametrize("folded", [False, True])


def random_intervals(seed):
    """Steps, wide intervals and narrow ones; some share their ends."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    lower = rng.random(n)
    width = (1 - lower) * rng.uniform(0.1, 1, size=n) * 10.0 ** -rng.integers(0, 6, size=n)
    upper = np.where(rng.random(n) < 0.4, lower, lower + width)
    if seed % 4 == 0:
        lower, upper = np.round(lower, 1), np.round(upper, 1)
    weight = rng.random(n)
    return lower, upper, weight / weight.sum()


def share_below(p, lower, upper):
    """P(U ≤ p) of U uniform on [lower, upper]."""
    if upper > lower:
        return min(max((p - lower) / (upper - lower), 0.0), 1.0)
    return float(upper <= p)


def law(p, lower, upper, folded):
    """P(U ≤ p), or P(|2U − 1| ≤ p) = P((1 − p)/2 ≤ U ≤ (1 + p)/2)."""
    if not folded:
        return share_below(p, lower, upper)
    low, high = (1 - p) / 2, (1 + p) / 2
    below = share_below(low, lower, upper) if upper > lower else float(upper < low)
    return share_below(high, lower, upper) - below


def integrate(function, ends):
    """Over [0, 1], by pieces between these points."""
    ends = np.unique(np.concatenate([[0.0, 1.0], ends]))
    total = 0.0
    for a, b in itertools.pairwise(ends):
        values = [function(a + (b - a) * (x + 1) / 2) for x in NODES]
        total += (b - a) / 2 * (WEIGHTS @ values)
    return total


@both_kinds
@pytest.mark.parametrize("seed", range(16))
def test_equals_quadrature(seed, folded):
    lower, upper, weight = random_intervals(seed)
    laws = pit_laws(lower, upper, folded=folded)
    curve = pit_curve(laws, weight)
    ends = np.concatenate([lower, upper])
    ends = np.abs(2 * ends - 1) if folded else ends

    def laws_of(p):
        return np.array([law(p, a, b, folded) for a, b in zip(lower, upper, strict=True)])

    for p in np.random.default_rng(seed).random(10):
        np.testing.assert_allclose(pit_cdf(laws, p), laws_of(p), atol=1e-12)
        assert value_at(curve, p) == pytest.approx(weight @ laws_of(p), abs=1e-12)
    squares = [integrate(lambda p, i=i: (laws_of(p)[i] - p) ** 2, ends) for i in range(len(lower))]
    np.testing.assert_allclose(pit_square_integrals(laws), squares, atol=1e-12)
    square = integrate(lambda p: (weight @ laws_of(p) - p) ** 2, ends)
    assert gap_square_integral(curve) == pytest.approx(square, abs=1e-12)
    # the gap is linear between these ends and its own zeros
    zeros = zeros_of_gap(curve)
    absolute = integrate(lambda p: abs(weight @ laws_of(p) - p), np.append(ends, zeros))
    assert gap_integral(curve) == pytest.approx(absolute, abs=1e-12)
    sides = np.concatenate([[0.0], ends - 1e-13, ends + 1e-13])
    largest = max(abs(weight @ laws_of(p) - p) for p in sides[(sides >= 0) & (sides <= 1)])
    assert largest_gap(curve) == pytest.approx(largest, abs=1e-6)


def value_at(curve, p):
    k = np.searchsorted(curve.knots, p, side="right") - 1
    share = (p - curve.knots[k]) / (curve.knots[k + 1] - curve.knots[k])
    return curve.after[k] + share * (curve.before[k + 1] - curve.after[k])


def zeros_of_gap(curve):
    first, last = curve.after[:-1] - curve.knots[:-1], curve.before[1:] - curve.knots[1:]
    cross = first * last < 0
    length = np.diff(curve.knots)[cross]
    return curve.knots[:-1][cross] + length * first[cross] / (first[cross] - last[cross])


def test_by_hand():
    # F̂ = ½ on [¼, ¾): the gap runs from 0 to −¼, ¼ to −¼ and ¼ to 0
    curve = pit_curve(pit_laws(np.array([0.25, 0.75]), np.array([0.25, 0.75])), np.full(2, 0.5))
    assert gap_integral(curve) == 0.125
    assert gap_square_integral(curve) == pytest.approx(1 / 48, abs=1e-16)
    assert largest_gap(curve) == 0.25


@both_kinds
def test_an_even_spread_has_no_gap(folded):
    lower = np.arange(5) / 5
    laws = pit_laws(lower, lower + 0.2, folded=folded)
    curve = pit_curve(laws, np.full(5, 0.2))
    assert gap_integral(curve) == pytest.approx(0, abs=1e-15)
    assert largest_gap(curve) == pytest.approx(0, abs=1e-15)


def test_folded_halves_by_hand():
    # [¼, 1]: the central half is met twice as often up to ½ as behind it
    laws = pit_laws(np.array([0.25]), np.array([1.0]), folded=True)
    assert pit_cdf(laws, 0.5)[0] == pytest.approx(2 / 3, abs=1e-15)
    assert pit_cdf(laws, 0.75)[0] == pytest.approx(5 / 6, abs=1e-15)


@both_kinds
def test_levels_are_reached_whatever_the_last_bit(folded):
    # sums of 0.1 miss 0.3 and 0.8 by one bit; folded, 0.6 and 0.8 become 0.2 and 0.6
    upper = np.cumsum(np.full(10, 0.1))
    level = np.arange(11) / 10
    laws = pit_laws(upper, upper, folded=folded)
    expected = np.mean(np.abs(2 * np.arange(1, 11) - 10)[:, None] <= np.arange(11), axis=0)
    expected = expected if folded else level
    np.testing.assert_array_equal([pit_cdf(laws, p).mean() for p in level], expected)
    assert pit_cdf(pit_laws(np.array([1e-300]), np.array([1e-300])), 0.0) == 0


def test_steep_slopes_leave_nothing_behind():
    # widths from 1 to 1e-16 around each other: cumulated together, 1e16 would swamp all others
    width = 10.0 ** -np.arange(17)
    lower = 0.5 - width / 3
    upper = lower + width
    weight = np.full(17, 1 / 17)
    laws = pit_laws(np.maximum(lower, 0), np.minimum(upper, 1))
    curve = pit_curve(laws, weight)
    for p in (0.1, 0.3, 0.6, 0.9):
        assert value_at(curve, p) == pytest.approx(weight @ pit_cdf(laws, p), abs=1e-13)
    assert curve.after[-1] == pytest.approx(1, abs=1e-14)


def test_several_weights_at_once():
    lower, upper, _ = random_intervals(5)
    weight = np.random.default_rng(0).dirichlet(np.ones(len(lower)), size=4)
    for end in (upper, lower):
        laws = pit_laws(lower, end)
        squares = gap_square_integral(pit_curve(laws, weight))
        alone = [gap_square_integral(pit_curve(laws, row)) for row in weight]
        np.testing.assert_allclose(squares, alone, atol=1e-15)


def test_the_closed_form_of_steps():
    # Σ_k W_k² (u_(k+1) − u_(k)) − Σ w_i (1 − u_i²) + 1/3, and (u³ + (1 − u)³)/3
    rng = np.random.default_rng(0)
    u, weight = np.sort(rng.random(30)), rng.dirichlet(np.ones(30))
    laws = pit_laws(u, u)
    total = np.cumsum(weight) ** 2 @ np.diff(np.append(u, 1.0)) - weight @ (1 - u**2) + 1 / 3
    assert gap_square_integral(pit_curve(laws, weight)) == pytest.approx(total, abs=1e-15)
    np.testing.assert_allclose(pit_square_integrals(laws), (u**3 + (1 - u) ** 3) / 3, atol=1e-15)


def test_ties_and_the_ends_of_the_unit_interval():
    u = np.array([0.0, 0.0, 1.0, 1.0])
    curve = pit_curve(pit_laws(u, u), np.full(4, 0.25))
    assert largest_gap(curve) == 0.5
    assert gap_integral(curve) == 0.25
    everything = pit_curve(pit_laws(np.zeros(1), np.ones(1)), np.ones(1))
    assert gap_integral(everything) == 0


def test_normal_scores_are_means_over_intervals():
    cuts = np.array([0.0, 1e-9, 1e-4, 0.3, 0.3 + 1e-7, 0.5, 0.9, 1 - 1e-12, 1.0])
    scores = normal_scores(cuts[:-1], cuts[1:])
    total = scores @ np.diff(cuts)  # of a uniform PIT, which is clipped at the ends
    np.testing.assert_allclose(total[:2], 0, atol=1e-9)
    np.testing.assert_allclose(total[2], 0, atol=1e-8)
    for low, high, actual in zip(cuts[2:6], cuts[3:7], scores.T[2:6], strict=True):
        z = norm.ppf(low + (high - low) * (np.arange(10_000) + 0.5) / 10_000)
        expected = [z.mean(), np.mean(z**2 - 1) / np.sqrt(2), np.mean(z**3 - 3 * z) / np.sqrt(6)]
        np.testing.assert_allclose(actual, expected, rtol=1e-3)
    points = np.array([[0.0, 0.2, 0.8, 1.0]])
    level, spread, skewness = normal_scores(points, points)[:, 0]
    np.testing.assert_allclose(skewness, (level**3 - 3 * level) / np.sqrt(6))
    np.testing.assert_allclose(level, -level[::-1], rtol=1e-12)
    np.testing.assert_allclose(spread, (level**2 - 1) / np.sqrt(2))
    assert np.isfinite(level).all()
