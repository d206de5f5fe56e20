"""Pooling by Rubin's rules, against mice's formula and by simulation."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from skcalib.uncertainty import ConfidenceInterval, clinical_calibration, pool_imputations


def interval(estimate, error, level=0.95, degrees=np.inf):
    margin = stats.t.ppf((1 + level) / 2, degrees) * error
    return ConfidenceInterval(estimate, estimate - margin, estimate + margin, level)


def naive_pool(estimates, errors, level, complete):
    """Mean and margin as in pool.scalar and barnard.rubin of the R package mice."""
    m = len(estimates)
    within = sum(error**2 for error in errors) / m
    mean = sum(estimates) / m
    between = sum((estimate - mean) ** 2 for estimate in estimates) / (m - 1)
    total = within + (1 + 1 / m) * between
    share = (1 + 1 / m) * between / total
    degrees = (m - 1) / share**2
    if np.isfinite(complete):
        observed = (complete + 1) / (complete + 3) * complete * (1 - share)
        degrees = degrees * observed / (degrees + observed)
    return mean, stats.t.ppf((1 + level) / 2, degrees) * np.sqrt(total)


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("complete", [12.5, 200, np.inf])
def test_rules_of_rubin_with_the_degrees_of_barnard_and_rubin(complete, level):
    rng = np.random.default_rng(0)
    estimates, errors = rng.normal(1, 0.1, size=5), rng.uniform(0.1, 0.2, size=5)
    mean, margin = naive_pool(estimates, errors, level, complete)
    results = [
        interval(*numbers, level, complete) for numbers in zip(estimates, errors, strict=True)
    ]
    pooled = pool_imputations(results, degrees_of_freedom=complete)
    expected = mean, mean - margin, mean + margin
    assert (pooled.estimate, *pooled) == pytest.approx(expected, rel=1e-12)
    for scale, back in (("log", np.exp), ("logit", expit)):
        on_scale = [ConfidenceInterval(*back([r.estimate, *r]), level) for r in results]
        pooled = pool_imputations(on_scale, transformation=scale, degrees_of_freedom=complete)
        assert (pooled.estimate, *pooled) == pytest.approx(back(expected), rel=1e-9)


def test_equal_results_stay_what_they_are():
    result = ConfidenceInterval(0.02, 0.0, 0.1, 0.95)  # asymmetric
    assert pool_imputations([result] * 3) == pytest.approx(result)
    errors = [result, ConfidenceInterval(0.1, 0.05, 0.2, 0.95)]
    assert pool_imputations(errors).low < 0
    assert pool_imputations(errors, transformation="error").low == 0
    certain = ConfidenceInterval(0.02, 0.02, 0.02, 0.95)
    assert pool_imputations([certain] * 3) == pytest.approx(certain)


def test_without_a_variance_within_that_between_decides():
    certain = [ConfidenceInterval(x, x, x, 0.95) for x in (0.8, 0.9, 1.1)]
    margin = stats.t.ppf(0.975, 2) * np.sqrt(4 / 3) * np.std([0.8, 0.9, 1.1], ddof=1)
    pooled = pool_imputations(certain)
    assert [*pooled] == pytest.approx([2.8 / 3 - margin, 2.8 / 3 + margin])
    low, high = pool_imputations(certain, degrees_of_freedom=50)  # of which none are left
    assert (low < -1e9) & (high > 1e9)


def test_clinical_measures_are_pooled_each_on_its_scale():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(-1, 1, size=(2, 150)))
    y = rng.random(150) < p[0]
    results = [clinical_calibration(y, row, n_resamples=9, random_state=0) for row in p]
    pooled = pool_imputations(results)
    ratios = [result.observed_expected_ratio for result in results]
    assert pooled.observed_expected_ratio == pool_imputations(ratios, transformation="log")
    for name, scale in {"calibration_slope": "identity", "e90": "error"}.items():
        same = pool_imputations([getattr(result, name) for result in results], transformation=scale)
        assert getattr(pooled, name) == same


GOOD = ConfidenceInterval(0.2, 0.1, 0.3, 0.95)


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        ([GOOD], {}, "at least two"),
        ([], {}, "at least two"),
        ([GOOD, 0.2], {}, "found .*0.2"),
        ([GOOD, ConfidenceInterval(0.2, 0.1, 0.3, 0.9)], {}, "of one confidence level"),
        (
            [GOOD, ConfidenceInterval(0.2, 0.0, 0.3, 0.95)],
            {"transformation": "log"},
            "finite on the scale",
        ),
        ([GOOD, ConfidenceInterval(0.2, 0.1, np.inf, 0.95)], {}, "finite on the scale"),
        ([GOOD, GOOD], {"transformation": "root"}, "transformation"),
        ([GOOD, GOOD], {"degrees_of_freedom": 0}, "degrees_of_freedom"),
        (GOOD, {}, "results"),
    ],
)
def test_bad_input(results, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        pool_imputations(results, **options)
