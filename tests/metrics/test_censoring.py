"""Weights against censoring: by hand, and against Kaplan–Meier of statsmodels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from skcalib.metrics import censoring_weights, observed_expected_ratio

RNG = np.random.default_rng(0)


def data(n, digits):
    event = RNG.exponential(size=n).round(digits)
    end = RNG.exponential(1.5, size=n).round(digits)
    return np.minimum(event, end), event <= end


def test_by_hand_with_ties():
    # at time 1 an event, then one of four left is censored; at 2 one of three, then nobody
    time, event = [1, 1, 2, 2, 2], [1, 0, 0, 1, 0]
    assert_allclose(censoring_weights(time, event, 2), [1, 0, 4 / 3, 4 / 3, 4 / 3])
    assert_allclose(censoring_weights(time, event, 1), np.ones(5))  # censored at the horizon
    assert_allclose(censoring_weights(time, event, 0.5), np.ones(5))


@pytest.mark.parametrize("digits", [1, 8])
@pytest.mark.parametrize("horizon", [0.3, 1.0, 1.1])
def test_weighted_events_are_kaplan_meier(digits, horizon):
    survival = pytest.importorskip("statsmodels.duration.survfunc")
    time, event = data(400, digits)
    by = np.arange(400) % 3
    weight = censoring_weights(time, event, horizon, by=by)
    for label in range(3):
        rows = by == label
        curve = survival.SurvfuncRight(time[rows], event[rows])
        risk = 1 - curve.surv_prob[curve.surv_times <= horizon][-1]
        occurs = event[rows] & (time[rows] <= horizon)
        assert weight[rows] @ occurs == pytest.approx(risk * rows.sum(), rel=1e-12)
        assert weight[rows].sum() == pytest.approx(rows.sum(), rel=1e-12)
        assert_allclose(weight[rows], censoring_weights(time[rows], event[rows], horizon))
    assert (weight[~event & (time < horizon)] == 0).all()
    if digits == 8:  # without ties, G is the curve of censoring
        curve = survival.SurvfuncRight(time, ~event)
        before = np.searchsorted(curve.surv_times, np.minimum(time, horizon))
        expected = np.where(event | (time >= horizon), 1 / np.r_[1, curve.surv_prob][before], 0)
        assert_allclose(censoring_weights(time, event, horizon), expected, rtol=1e-12)


def test_by_undoes_censoring_that_depends_on_risk():
    n = 40_000
    group = RNG.integers(3, size=n)
    risk = expit(group - 2.0)
    outcome = RNG.exponential(-1 / np.log1p(-risk))
    end = RNG.exponential(2.0 / (1 + group))
    time, event = np.minimum(outcome, end), outcome <= end
    ratio = {
        by is not None: observed_expected_ratio(
            event & (time <= 1), risk, sample_weight=censoring_weights(time, event, 1, by=by)
        )
        for by in (None, group)
    }
    assert abs(ratio[True] - 1) < 0.03 < abs(ratio[False] - 1)


@pytest.mark.parametrize(
    ("time", "event", "options", "message"),
    [
        ([1, 2], [0, 0], {"horizon": 3}, "horizon must not lie beyond.*found 3.*censored at 2"),
        ([1, 4], [0, 0], {"horizon": 3, "by": ["a", "b"]}, "of each subgroup.*censored at 1"),
        ([1, 2], [0, 3], {"horizon": 1}, "event must hold"),
        ([1, 2], [0, 1], {"horizon": np.inf}, "horizon"),
        ([1, 2], [0, 1], {"horizon": 1, "by": ["a"]}, "by"),
    ],
)
def test_refused(time, event, options, message):
    with pytest.raises(ValueError, match=message):
        censoring_weights(time, event, **options)


def test_all_may_have_events_before_the_horizon():
    assert_allclose(censoring_weights([1, 2, 3], [1, 0, 1], 5), [1, 0, 2])
