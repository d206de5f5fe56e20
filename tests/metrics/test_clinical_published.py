"""The clinical measures equal numbers that R printed in the documentation of pmcalibration 0.2.0.

The data of its examples are simulated, and R's generator of random numbers is imitated here.
https://github.com/stephenrho/pmcalibration, README.md and reference/loess_cal.html
"""

import numpy as np
import pytest
from oracles import loess
from scipy.special import expit, ndtri

from skcalib.hypothesis_tests import CoxTest
from skcalib.metrics import calibration_intercept, calibration_slope, integrated_calibration_index


class GeneratorOfR:
    """The default of R: Mersenne Twister, normal variables by inversion of two numbers."""

    def __init__(self, seed):
        state = []
        for _ in range(50 + 625):
            seed = (69069 * seed + 1) % 2**32
            state.append(seed)
        self.twister = np.random.MT19937()
        key = np.array(state[51:], dtype=np.uint32)
        self.twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}

    def uniform(self, n):
        return self.twister.random_raw(n) * 2.3283064365386963e-10

    def normal(self, n):
        large, small = self.uniform(2 * n).reshape(n, 2).T
        return ndtri((np.floor(2**27 * large) + small) / 2**27)

    def binary(self, p):
        is_rare = self.uniform(len(p)) >= 1 - np.minimum(p, 1 - p)
        return np.where(p > 0.5, ~is_rare, is_rare).astype(int)


def simulated(generator, n, intercept, interaction, interaction_in_model):
    """Labels, and predictions of a model that gets the interaction wrong."""
    first, second = generator.normal(n), generator.normal(n)
    truth = expit(intercept + first + second + interaction * first * second)
    model = expit(intercept + first + second + interaction_in_model * first * second)
    return generator.binary(truth), model


def test_generator():
    np.testing.assert_allclose(  # set.seed(2345); rnorm(2)
        GeneratorOfR(2345).normal(2), [-1.19142464, 0.54930055], atol=5e-9
    )


def test_intercept_and_slope():
    y, p = simulated(GeneratorOfR(2345), 1000, -3, 0.3, 0)
    assert np.mean((y - p) ** 2) == pytest.approx(0.057594793, abs=5e-10)  # Brier
    # logistic_cal, and rms::val.prob, whose intercept is that of a free slope
    assert calibration_intercept(y, p) == pytest.approx(-0.044, abs=5e-4)
    assert calibration_slope(y, p) == pytest.approx(1.336388397, abs=5e-10)
    assert CoxTest().fit(p, y).intercept_ == pytest.approx(0.528823286, abs=1e-8)


def test_loess_and_its_distances():
    generator = GeneratorOfR(1014)
    generator.uniform(7700)  # drawn by the examples of other pages, with one seed for all
    y, p = simulated(generator, 500, 0.5, 0.2, 0.1)
    curve = loess(p, y, np.ones(500))
    first = [0.9626989, 0.6699426, 0.1766650, 1.0030631, 0.5601595, 0.5763390, 0.7149617]
    np.testing.assert_allclose(curve[:7], first, atol=6e-8)
    np.testing.assert_allclose(curve[-3:], [0.5150510, 0.3616908, 0.5611887], atol=6e-8)
    gap = np.abs(curve - p)
    assert gap.mean() == pytest.approx(0.03791931, abs=6e-9)  # Eavg
    assert np.mean(gap**2) == pytest.approx(0.0018294715, abs=6e-11)  # ECI / 100
    for level, printed in ((0.5, 0.03865253), (0.9, 0.06905480), (1, 0.09524226)):
        index = integrated_calibration_index(y, p, quantile=level)
        assert index == pytest.approx(printed, abs=6e-9)
    # the curve exceeds 1 at 14 predictions, where ours is cut off
    excess = np.sum(np.maximum(curve - 1, 0)) / 500
    assert integrated_calibration_index(y, p) == pytest.approx(gap.mean() - excess)
    assert excess < 4e-4
