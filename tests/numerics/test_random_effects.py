"""The random-effects model of a meta-analysis, against metafor, statsmodels and a grid."""

import numpy as np
import pytest
from scipy import stats

from skcalib._numerics.random_effects import fit_random_effects

# Trials of the BCG vaccine against tuberculosis (Colditz et al. 1994; dat.bcg of the R package
# metafor): cases and others among the vaccinated, and among the controls.
BCG = np.array(
    [
        [4, 119, 11, 128], [6, 300, 29, 274], [3, 228, 11, 209], [62, 13536, 248, 12619],
        [33, 5036, 47, 5761], [180, 1361, 372, 1079], [8, 2537, 10, 619],
        [505, 87886, 499, 87892], [29, 7470, 45, 7232], [17, 1699, 65, 1600],
        [186, 50448, 141, 27197], [5, 2493, 3, 2338], [27, 16886, 29, 17825],
    ]
)  # fmt: skip


def log_relative_risks():
    a, b, c, d = BCG.T
    return np.log(a / (a + b) / (c / (c + d))), 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)


def test_published_numbers():
    # rma(measure="RR", ..., test="knha") of metafor prints tau^2 = 0.3132, estimate -0.7145,
    # se 0.1808 and the interval -1.1084 to -0.3206
    fit = fit_random_effects(*log_relative_risks())
    assert fit.between**2 == pytest.approx(0.3132, abs=5e-5)
    assert fit.mean == pytest.approx(-0.7145, abs=5e-5)
    assert fit.deviation == pytest.approx(0.1808, abs=5e-5)
    margin = stats.t.isf(0.025, 12) * fit.deviation
    assert fit.mean - margin == pytest.approx(-1.1084, abs=1e-4)
    assert fit.mean + margin == pytest.approx(-0.3206, abs=1e-4)


def restricted_deviance(estimate, variance, between):
    total = variance + between
    mean = np.sum(estimate / total) / np.sum(1 / total)
    quadratic = np.sum((estimate - mean) ** 2 / total)
    return np.log(total).sum() + np.log(np.sum(1 / total)) + quadratic


@pytest.mark.parametrize("k", [2, 3, 8])
@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
def test_no_grid_point_is_likelier(k, spread):
    rng = np.random.default_rng(k)
    variance = rng.gamma(1, 1, size=k)
    estimate = spread * rng.normal(size=k)
    fit = fit_random_effects(estimate, variance)
    best = restricted_deviance(estimate, variance, fit.between**2)
    grid = np.append(0, np.geomspace(1e-6, 1e5, 2000))
    others = [restricted_deviance(estimate, variance, between) for between in grid]
    assert best <= min(others) + 1e-9


def test_equal_variances_have_closed_forms():
    estimate = np.array([0.0, 1.0, 5.0, 2.0])
    fit = fit_random_effects(estimate, np.full(4, 0.5))
    assert fit.mean == pytest.approx(2.0)
    assert fit.between**2 == pytest.approx(np.var(estimate, ddof=1) - 0.5, rel=1e-6)
    assert fit.deviation == pytest.approx(np.std(estimate, ddof=1) / 2, rel=1e-6)


def test_the_standard_error_is_at_least_that_of_the_model():
    fit = fit_random_effects(np.array([1.0, 1.0, 1.0]), np.array([0.1, 0.2, 0.4]))
    assert fit.between == 0
    assert fit.deviation == pytest.approx((1 / 0.1 + 1 / 0.2 + 1 / 0.4) ** -0.5)
