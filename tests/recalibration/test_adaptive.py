"""Adaptive conformal inference: the bound of Gibbs and Candès (2021), and a loop over rows."""

import numpy as np
import pytest

from skcalib.forecasts import QuantileForecast, concatenate
from skcalib.recalibration import (
    AutoRecalibrator,
    PITRecalibrator,
    QuantileRecalibrator,
    SubgroupRecalibrator,
)

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
RATES = np.array([0.1, 0.5])
NORMAL_QUANTILES = np.array([-1.645, -0.674, 0, 0.674, 1.645])


def grid(n):
    return QuantileForecast(np.tile(NORMAL_QUANTILES, (n, 1)), LEVELS)


def sequence(kind, n, rng):
    """Outcomes of a series, as a function of the step and the current intervals (2, 2)."""
    noise = rng.normal(size=n)
    return {
        "calm": lambda t, ends: noise[t],
        "break": lambda t, ends: noise[t] * (1 if t < n // 2 else 4),
        "growth": lambda t, ends: noise[t] + 1.1 ** min(t, 300),
        "always outside": lambda t, ends: ends[:, 1].max() + 1,
        "always inside": lambda t, ends: 0.0,
        "now and then": lambda t, ends: ends[:, 1].max() + 1 if (t // 50) % 2 else 0.0,
    }[kind]


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize(
    "kind", ["calm", "break", "growth", "always outside", "always inside", "now and then"]
)
def test_the_bound_holds_for_any_sequence(kind, rows):
    n, step = 420, 0.05
    rng = np.random.default_rng(0)
    recalibrator = QuantileRecalibrator("interval", step_size=step)
    recalibrator.fit(grid(60), rng.normal(size=60))
    outcome, misses = sequence(kind, n, rng), []
    for start in range(0, n, rows):
        # before nesting; an interval that must be infinite counts as one that holds all
        low = NORMAL_QUANTILES[:2] + recalibrator.offsets_[:2]
        high = NORMAL_QUANTILES[::-1][:2] + recalibrator.offsets_[::-1][:2]
        ends = np.clip(np.column_stack([low, high]), -1e6, 1e6)
        y = np.array([outcome(t, ends) for t in range(start, start + rows)])
        misses += [(value < low) | (value > high) for value in y]
        recalibrator.partial_fit(grid(rows), y)
    bound = (np.maximum(RATES, 1 - RATES) + rows * step) / (step * n)
    assert (np.abs(np.mean(misses, axis=0) - RATES) <= bound + 1e-12).all()


def test_a_loop_over_rows():
    rng = np.random.default_rng(1)
    y = rng.normal(size=150) * np.linspace(1, 3, 150)
    recalibrator = QuantileRecalibrator("interval", step_size=0.02).fit(grid(50), y[:50])
    scores, rate = list(np.abs(y[:50]) - 1.645), 0.1
    for value in y[50:]:
        rank = int(np.ceil(51 * (1 - rate) - 1e-9))
        distance = np.inf if rank > 50 else np.sort(scores)[rank - 1]
        assert recalibrator.offsets_[-1] == pytest.approx(distance)
        rate += 0.02 * (0.1 - (abs(value) - 1.645 > distance))
        scores = [*scores[1:], abs(value) - 1.645]
        recalibrator.partial_fit(grid(1), [value])
        assert recalibrator.miss_rates_[0] == pytest.approx(rate)


@pytest.mark.filterwarnings("ignore:Intervals were missed so often")
def test_intervals_cover_after_a_break():
    covered = {"fixed": [], "adaptive": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=1200) * np.repeat([1.0, 2.0], [600, 600])
        fixed = QuantileRecalibrator("interval").fit(grid(200), y[:200])
        adaptive = QuantileRecalibrator("interval", step_size=0.02).fit(grid(200), y[:200])
        for start in range(200, 1200, 10):
            for name, model in (("fixed", fixed), ("adaptive", adaptive)):
                low, high = model.transform(grid(10)).interval(0.9)
                value = y[start : start + 10]
                if start >= 600:
                    covered[name] += [*((low <= value) & (value <= high))]
            adaptive.partial_fit(grid(10), y[start : start + 10])
    assert np.mean(covered["fixed"]) < 0.7
    assert np.mean(covered["adaptive"]) > 0.85


def test_the_first_call_fits():
    y = np.random.default_rng(2).normal(size=40)
    first = QuantileRecalibrator("interval").partial_fit(grid(40), y)
    expected = QuantileRecalibrator("interval").fit(grid(40), y)
    np.testing.assert_array_equal(first.offsets_, expected.offsets_)


def test_intervals_that_must_be_infinite_end_at_the_largest_score():
    recalibrator = QuantileRecalibrator("interval", step_size=0.2).fit(grid(20), np.zeros(20))
    recalibrator.partial_fit(grid(3), [50.0, 99.0, -60.0])
    assert recalibrator.offsets_[-1] == np.inf
    with pytest.warns(UserWarning, match="would have to be infinite now.*last 20 scores"):
        low, high = recalibrator.transform(grid(1)).interval(0.9)
    np.testing.assert_allclose([low[0], high[0]], [-99, 99])


def test_intervals_that_must_be_empty_end_at_the_smallest_score():
    recalibrator = QuantileRecalibrator("interval", step_size=0.5).fit(grid(20), np.ones(20))
    recalibrator.partial_fit(grid(20), np.full(20, 0.7))  # inside, by 0.945
    assert recalibrator.offsets_[-1] == -np.inf
    low, high = recalibrator.transform(grid(1)).interval(0.9)
    np.testing.assert_allclose([low[0], high[0]], [-0.7, 0.7])


@pytest.mark.parametrize(
    ("method", "weight", "found"),
    [
        ("quantile", None, "level_type='quantile'"),
        ("interval", np.arange(1, 41), "unequal weights"),
    ],
)
def test_what_does_not_follow_a_series(method, weight, found):
    y = np.random.default_rng(2).normal(size=40)
    recalibrator = QuantileRecalibrator(method).fit(grid(40), y, sample_weight=weight)
    with pytest.raises(ValueError, match=f"partial_fit must follow a fit.*found.*{found}"):
        recalibrator.partial_fit(grid(1), [0.0])


def test_each_horizon_follows_its_own_series():
    rng = np.random.default_rng(3)
    horizon = np.arange(90) % 3
    y = rng.normal(size=90) * (1 + horizon)
    plain = QuantileRecalibrator("interval", step_size=0.02)
    fitted = SubgroupRecalibrator(plain).partial_fit(grid(90), y, by=horizon)
    alone = {k: QuantileRecalibrator("interval", step_size=0.02) for k in (0, 1, 2, "all")}
    rows_of = {k: horizon == k for k in range(3)} | {"all": np.full(90, True)}
    for k, rows in rows_of.items():
        alone[k].fit(grid(rows.sum()), y[rows])
    days = []
    for day in range(5):
        outcome = (1 + day) * rng.normal(size=4) * [1, 2, 3, 4]
        days.append(fitted.transform(grid(4), by=[0, 1, 2, 3]))
        for k in range(3):
            expected = alone[k].transform(grid(1)).values
            np.testing.assert_array_equal(days[-1].values[[k]], expected)
        np.testing.assert_array_equal(days[-1].values[[3]], alone["all"].transform(grid(1)).values)
        fitted.partial_fit(grid(4), outcome, by=[0, 1, 2, 3])  # the last one is new
        for k in range(3):
            alone[k].partial_fit(grid(1), outcome[[k]])
        alone["all"].partial_fit(grid(4), outcome)
    assert type(concatenate(days)) is QuantileForecast
    assert len(concatenate(days)) == 20


def test_subgroups_follow_a_series_only_if_their_recalibrator_does():
    assert hasattr(SubgroupRecalibrator(QuantileRecalibrator("interval")), "partial_fit")
    for recalibrator in (None, AutoRecalibrator(), PITRecalibrator()):
        assert not hasattr(SubgroupRecalibrator(recalibrator), "partial_fit")
    y, by = np.random.default_rng(2).normal(size=80), np.arange(80) % 2
    shared = SubgroupRecalibrator(QuantileRecalibrator("interval"), prior_weight=3)
    shared.fit(grid(80), y, by=by)
    with pytest.raises(ValueError, match=r"found.*unequal weights"):
        shared.partial_fit(grid(2), [0.0, 9.0], by=[0, 1])
