"""Intervals of each subgroup."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skcalib.forecasts import GaussianForecast
from skcalib.uncertainty import confidence_interval

OPTIONS = {"n_resamples": 19, "random_state": 0}


def problem(n=70, n_classes=2):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    y = (rng.random(n)[:, None] > np.cumsum(proba, axis=1)).sum(axis=1)
    by = rng.choice(["a", "b", "c"], size=n, p=[0.5, 0.45, 0.05])
    return y, proba[:, 1] if n_classes == 2 else proba, by, rng


@pytest.mark.parametrize(
    ("metric", "n_classes"),
    [("smooth_calibration_error", 2), ("squared_kernel_calibration_error", 3)],
)
def test_intervals_are_those_of_the_samples_of_each_subgroup(metric, n_classes):
    y, proba, by, rng = problem(n_classes=n_classes)
    weight = rng.random(70)
    options = OPTIONS | {"labels": range(n_classes), "confidence_level": 0.8}
    result = confidence_interval(metric, y, proba, by=by, sample_weight=weight, **options)
    whole = confidence_interval(metric, y, proba, sample_weight=weight, **options)
    assert result.whole == whole
    assert list(result) == ["a", "b", "c"]
    assert result.n_samples.tolist() == [np.sum(by == one) for one in "abc"]
    np.testing.assert_allclose(
        result.share, [weight[by == one].sum() / weight.sum() for one in "abc"]
    )
    for one in "ab":
        own = by == one
        alone = confidence_interval(
            metric, y[own], proba[own], sample_weight=weight[own], **options
        )
        found = result[one]
        assert (found.estimate, found.low, found.high) == pytest.approx(
            (alone.estimate, alone.low, alone.high), rel=1e-9
        )
        assert found.confidence_level == 0.8


def test_subgroups_that_are_too_small_have_an_estimate_and_a_note():
    y, proba, by, _ = problem()
    result = confidence_interval("smooth_calibration_error", y, proba, by=by, **OPTIONS)
    n = np.sum(by == "c")
    assert n < 10
    assert np.isfinite(result.estimate).all()
    assert np.isnan(result.low).tolist() == np.isnan(result.high).tolist() == [False, False, True]
    assert result.notes[:2] == ("", "")
    assert f"at least 10 samples of positive weight; found {n}" in result.notes[2]
    by[:] = "a"
    by[0] = "b"
    # a single sample has no pair
    result = confidence_interval("squared_kernel_calibration_error", y, proba, by=by, **OPTIONS)
    assert np.isnan([result["b"].estimate, result["b"].low, result["b"].high]).all()
    assert "at least 2 samples" in result.notes[1]


def test_groups_are_those_of_each_subgroup():
    y, proba, by, rng = problem()
    groups = rng.integers(40, size=70) + 40 * (by == "b")
    options = OPTIONS | {"metric_params": {"n_bins": 3}}
    metric = "expected_calibration_error"
    result = confidence_interval(metric, y, proba, by=by, groups=groups, **options)
    own = by == "b"
    alone = confidence_interval(metric, y[own], proba[own], groups=groups[own], **options)
    assert (result["b"].low, result["b"].high) == pytest.approx((alone.low, alone.high), rel=1e-9)


def test_forecasts_and_one_sided_intervals():
    rng = np.random.default_rng(0)
    mean, by = rng.normal(size=90), np.arange(90) % 3 > 0
    y = mean + rng.normal(size=90) * np.where(by, 1.0, 4.0)
    forecast = GaussianForecast(mean, np.ones(90))
    result = confidence_interval(
        "continuous_ranked_probability_loss", y, forecast, by=by, alternative="less", **OPTIONS
    )
    assert result[False].estimate == pytest.approx(forecast[~by].crps(y[~by]).mean(), rel=1e-12)
    assert result.low.tolist() == [0, 0]
    assert result[False].high > result[True].high


def test_table():
    y, proba, by, _ = problem()
    columns = {"site": by, "adult": np.arange(70) % 2 == 0}
    result = confidence_interval(
        "smooth_calibration_error", y, proba, by=pl.DataFrame(columns), **OPTIONS
    )
    assert result["b", True].estimate == result.estimate[list(result).index(("b", True))]
    with pytest.raises(KeyError):
        result["d", True]
    frame = result.to_frame()
    assert frame.index.names == ["site", "adult"]
    assert frame.loc[("b", True), "low"] == result["b", True].low
    assert frame["n_samples"].sum() == 70
    lines = repr(result).splitlines()
    assert lines[0].split() == ["site,", "adult", "samples", "share", "estimate", "low", "high"]
    assert [line.partition("  ")[0].strip() for line in lines[1:]] == [
        *(f"site {site} & adult {adult}" for site, adult in result),
        "all",
    ]
    assert all(line[: len(lines[0])].strip() for line in lines)
    assert "at least 10 samples" in repr(result)
    missing = confidence_interval(
        "smooth_calibration_error", y, proba, by=pd.Series(by).where(by != "a"), **OPTIONS
    )
    assert list(missing) == ["b", "c", None]
    assert "missing" in repr(missing)
    assert missing.to_frame().index.name == "by"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": ["a", "b"]}, r"\(the predictions: 70, by: 2\)"),
        ({"by": "site"}, "by must hold the subgroup"),
        ({"metric": "nothing"}, "metric must be one of"),
        ({"metric": lambda y, p: np.nan}, "metric must be finite"),
        ({"method": "finite-sample", "sample_weight": np.ones(70)}, "sample_weight=None"),
    ],
)
def test_bad_input(arguments, message):
    y, proba, by, _ = problem()
    arguments = {"metric": "smooth_calibration_error", "by": by} | arguments
    with pytest.raises(ValueError, match=message):
        confidence_interval(arguments.pop("metric"), y, proba, **arguments)
