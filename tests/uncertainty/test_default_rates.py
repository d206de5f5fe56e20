"""The most prudent default rates of a rating are those of Pluto and Tasche."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from skcalib.uncertainty import most_prudent_default_rates

LEVELS = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999]

# Pluto and Tasche (2005), three grades of 100, 400 and 300 obligors, no default: in percent, for
# grades A, B and C, at the levels above.
PUBLISHED = [
    [0.09, 0.17, 0.29, 0.37, 0.57, 0.86],
    [0.10, 0.20, 0.33, 0.43, 0.66, 0.98],
    [0.23, 0.46, 0.76, 0.99, 1.52, 2.28],
]


def test_published_rates_without_defaults():
    rates = [
        most_prudent_default_rates([100, 400, 300], [0, 0, 0], confidence_level=level)
        for level in LEVELS
    ]
    np.testing.assert_allclose(100 * np.transpose(rates), PUBLISHED, atol=0.005)


# The same grades with an asset correlation of 12 %, which the authors integrated less exactly.
PUBLISHED_CORRELATED = [
    [0.15, 0.40, 0.86, 1.31, 2.65, 5.29],
    [0.17, 0.45, 0.96, 1.45, 2.92, 5.77],
    [0.37, 0.92, 1.89, 2.78, 5.30, 9.84],
]


def test_published_rates_with_correlation():
    rates = [
        most_prudent_default_rates(
            [100, 400, 300], [0, 0, 0], confidence_level=level, correlation=0.12
        )
        for level in LEVELS
    ]
    np.testing.assert_allclose(100 * np.transpose(rates), PUBLISHED_CORRELATED, atol=0.007)


def test_a_large_portfolio_with_correlation():
    # P. Windridge, "Fast Pluto-Tasche PD calculator for Excel", whose simulation has 0.95002
    rates = most_prudent_default_rates([9810], [35], confidence_level=0.95, correlation=0.15)
    assert rates == pytest.approx([0.0334], abs=5e-5)


def test_rates_never_fall_from_a_better_grade_to_a_worse_one():
    rates = most_prudent_default_rates([100, 100, 100], [10, 0, 1], confidence_level=0.9)
    (best,) = most_prudent_default_rates([300], [11], confidence_level=0.9)
    assert rates == pytest.approx([best] * 3)


@pytest.mark.parametrize("correlation", [0.0, 0.12])
@pytest.mark.parametrize("defaults", [[0, 0, 0], [0, 2, 1], [0, 1, 3], [0, 0, 3]])
def test_bounds_leave_few_defaults_with_the_remaining_probability(defaults, correlation):
    rates = most_prudent_default_rates(
        [100, 400, 300], defaults, confidence_level=0.9, correlation=correlation
    )
    node, weight = np.polynomial.legendre.leggauss(20)
    z = np.arange(-9, 9, 0.25)[:, None] + 0.125 * (1 + node)  # of the common factor
    for k, rate in enumerate(rates):
        n, d = [800, 700, 300][k], sum(defaults[k:])
        proba = norm.cdf((norm.ppf(rate) - correlation**0.5 * z) / (1 - correlation) ** 0.5)
        total = 0.125 * np.sum(weight * norm.pdf(z) * binom.cdf(d, n, proba))
        assert total == pytest.approx(0.1, rel=1e-8)


def test_extremes():
    assert most_prudent_default_rates([1, 1], [0, 1], confidence_level=0.9)[1] == 1
    assert most_prudent_default_rates([1], [0], confidence_level=0.9) == pytest.approx([0.9])
    # one obligor defaults with the same probability whatever the correlation
    assert most_prudent_default_rates(
        [1], [0], confidence_level=0.9, correlation=0.3
    ) == pytest.approx([0.9])
    many = most_prudent_default_rates([10**6], [0], confidence_level=0.9)
    assert many == pytest.approx([-np.expm1(np.log(0.1) / 10**6)], rel=1e-9)


BAD = {
    "shapes": (([1, 2], [1]), "n_obligors and n_defaults must be 1-D"),
    "table": (([[1]], [[0]]), "n_obligors and n_defaults must be 1-D"),
    "empty": (([], []), "n_obligors and n_defaults must be 1-D"),
    "rates": (([10], [0.5]), "n_defaults must hold whole numbers; found .*not rates"),
    "missing": (([10], [np.nan]), "n_defaults must hold whole numbers"),
    "text": ((["a"], [0]), "n_obligors must hold whole numbers"),
    "too many": (([2], [3]), "n_defaults from 0 to n_obligors"),
    "empty grade": (([0, 2], [0, 1]), "n_obligors must be at least 1"),
    "number": ((3, 1), "The 'n_obligors' parameter"),
}


@pytest.mark.parametrize(("counts", "message"), BAD.values(), ids=BAD)
def test_bad_counts(counts, message):
    with pytest.raises(ValueError, match=message):
        most_prudent_default_rates(*counts)


def test_bad_correlation():
    with pytest.raises(ValueError, match="correlation must be 0 or at least"):
        most_prudent_default_rates([3], [1], correlation=1e-9)
