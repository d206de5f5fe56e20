"""The report on forecasts shows the numbers of the metrics and gives the advice they call for."""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sklearn
from matplotlib.figure import Figure
from pages import read_page
from scipy import stats
from scipy.stats import cauchy
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import train_test_split

from skcalib._data import ForecastData, check_forecasts, with_groups
from skcalib.datasets import make_forecasts
from skcalib.display import PITHistogramDisplay
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    QuantileForecast,
    concatenate,
)
from skcalib.hypothesis_tests import CalibrationTest, SubgroupCalibrationTest
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    distribution_matching_error,
    quantile_calibration_error,
    sharpness,
)
from skcalib.report import calibration_report
from skcalib.report._findings import join_sentences
from skcalib.report._forecasts import (
    ForecastSections,
    diagnose,
    mean_margin,
    measure_forecasts,
    moments_p_value,
    standardized_errors,
)
from skcalib.report._sections import DRAWING, Sections
from skcalib.report._text import measure_title
from skcalib.uncertainty import confidence_interval


def sections(data):
    return ForecastSections(data, np.random.RandomState(0))


def forecast_gain(data):
    return Sections.gain(sections(data))


def forecast_advice(numbers, ends, found, recalibrated=False):
    y, forecast = make_forecasts(10, random_state=0)
    of = sections(check_forecasts(y, forecast))
    numbers = {"n_tested": 9} | numbers
    verdict = of.verdict(numbers, ends, [], [], recalibrated=recalibrated)
    return join_sentences(verdict, found)


def grid_of(problem, levels):
    y, forecast = problem
    return y, QuantileForecast(forecast.quantiles(levels), levels)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(ForecastSections, "gain", lambda _: None)


@pytest.fixture
def few_resamples(monkeypatch):
    """Tests draw 99 times; the default number is that of the tests without this."""
    test = partial(CalibrationTest, n_resamples=99)
    monkeypatch.setattr("skcalib.report._forecasts.CalibrationTest", test)
    of_subgroups = partial(SubgroupCalibrationTest, n_resamples=99)
    monkeypatch.setattr("skcalib.report._sections.SubgroupCalibrationTest", of_subgroups)
    monkeypatch.setitem(DRAWING, "n_resamples", 19)
    return test


def test_numbers_are_those_of_the_metrics(few_resamples):
    y, forecast = make_forecasts(80, dispersion=0.7, random_state=0)
    weight = np.random.default_rng(0).random(80)
    report = calibration_report(y, forecast, sample_weight=weight, random_state=0)
    numbers = report.numbers
    z = (y - forecast.mean()) / forecast.std()
    share = weight / weight.sum()
    expected = {"n_samples": 80, "n_tested": 80, "mean_z": share @ z}
    expected["rms_z"] = np.sqrt(share @ z**2)
    for metric in (
        quantile_calibration_error,
        continuous_ranked_probability_loss,
        distribution_matching_error,
    ):
        expected[metric.__name__] = metric(y, forecast, sample_weight=weight)
    sharp = sharpness(forecast, sample_weight=weight)
    expected["mean_std"] = sharp.std
    for level, width in zip((50, 80, 95), sharp.width, strict=True):
        low, high = forecast.interval(level / 100)
        expected[f"coverage_{level}"] = share @ ((low <= y) & (y <= high))
        expected[f"mean_width_{level}"] = width
    for key, value in expected.items():
        assert numbers[key] == pytest.approx(value, abs=1e-10), key
    rng = np.random.RandomState(0)
    test = few_resamples(random_state=rng).fit(forecast, y, sample_weight=weight)
    assert numbers["p_value"] == test.p_value_
    ratio = test.component_statistics_["skce"] / test.component_null_distributions_["skce"].std()
    assert numbers["distribution_matching_ratio"] == pytest.approx(ratio, rel=1e-6)
    adjusted = {f"p_value_{name}": p for name, p in test.adjusted_p_values_.items()}
    assert adjusted.items() <= numbers.items()
    said = {name for finding in report.findings for name in finding.values}
    assert set(numbers) == {*expected, *adjusted, *said, "p_value", "distribution_matching_ratio"}


@pytest.mark.usefixtures("few_resamples")
def test_text_shows_the_numbers():
    y, forecast = make_forecasts(50, random_state=0)
    numbers = calibration_report(y, forecast, random_state=0).numbers
    text = str(calibration_report(y, (forecast.mean(), forecast.std()), random_state=0))
    lines = [line for table in text.split("\n\n")[2:] for line in table.split("\n")[1:]]
    shown = {line[:46].rstrip(): float(line[46:].split()[0]) for line in lines}
    values = {measure_title(key, numbers): v for key, v in numbers.items() if key != "n_tested"}
    del values[None]  # the number of samples
    assert shown == pytest.approx(values, rel=5e-4, abs=5e-5)
    assert f"{numbers['distribution_matching_error']:.1e}\n" in text
    advice = calibration_report(y, forecast, random_state=0).advice
    assert advice.split() == text.split("\n\n")[1].split()
    assert text.startswith("Calibration of 50 forecasts\n")
    assert "coverage of the 80 % intervals" in text


@pytest.mark.parametrize(
    ("problem", "phrases"),
    [
        (make_forecasts(2000, random_state=1), []),
        (
            make_forecasts(2000, dispersion=1 / 6.2, random_state=0),
            ["standard deviations are too small by a factor 6."],
        ),
        (
            make_forecasts(2000, dispersion=2, random_state=0),
            ["standard deviations are too large by a factor 2.0"],
        ),
        (
            make_forecasts(2000, bias=-0.5, random_state=0),
            ["forecasts are too low, by 0.5"],
        ),
        (
            make_forecasts(2000, bias=1, dispersion=0.5, random_state=0),
            ["too small by a factor 2.0", "forecasts are too high, by 2 standard deviations"],
        ),
        (
            make_forecasts(2000, problem="ensemble", n_members=5, dispersion=0.5, random_state=0),
            # errors of variance σ² + 0.25 σ² / 5, 3/2 of a mean variance of 0.25 σ² · 4/5: 1.87
            ["standard deviations are too small by a factor 1.9"],
        ),
        (make_forecasts(2000, problem="ensemble", n_members=2, random_state=1), []),
        (
            make_forecasts(
                2000, problem="counts", overdispersion=1, forecast_overdispersion=0, random_state=0
            ),
            ["standard deviations are too small by a factor"],
        ),
        (
            grid_of(make_forecasts(2000, dispersion=0.5, random_state=0), [0.1, 0.9]),
            ["intervals hold too few outcomes: those of 80 % hold 47"],
        ),
        (  # not those of 50 %, which come first: Φ(0.34) − Φ(−0.34) is nearer to its level
            grid_of(
                make_forecasts(2000, dispersion=0.5, random_state=0), [0.025, 0.25, 0.75, 0.975]
            ),
            ["intervals hold too few outcomes: those of 95 % hold 67"],
        ),
        (
            grid_of(make_forecasts(2000, dispersion=2, random_state=0), [0.1, 0.9]),
            ["intervals hold too many outcomes: those of 80 % hold 99"],
        ),
        (
            make_forecasts(2000, problem="sign-reversed", random_state=0),
            ["standard deviations are too small by a factor 2.18"],  # near √5
        ),
    ],
)
def test_diagnosis(problem, phrases):
    found = diagnose(check_forecasts(*problem))
    assert len(found) == len(phrases), found
    for text, phrase in zip(found, phrases, strict=True):
        assert phrase in text


def advice(problem):
    return calibration_report(*problem, random_state=0).advice


def test_verdict():
    narrow = advice(make_forecasts(30, dispersion=0.3, random_state=0))
    assert narrow.startswith(
        "Miscalibrated (p ≤ 0.001): prediction intervals are too narrow: standard"
    )
    assert "RecalibratedRegressor" in narrow


@pytest.mark.usefixtures("few_resamples")
def test_verdict_on_calibrated_forecasts():
    calibrated = advice(make_forecasts(50, random_state=1))
    assert calibrated.startswith("No evidence of miscalibration (p = ")


def test_verdict_is_by_twice_the_smaller_p_value():
    def verdict(p_value, of_quantiles):
        numbers = {"p_value": p_value, "quantile_p_value": of_quantiles, "n_samples": 9}
        return forecast_advice(numbers | {"quantile_calibration_error": 0.1}, {}, ["x is y"])

    assert "No evidence of miscalibration (p = 0.06)" in verdict(0.03, 0.5)
    assert "Miscalibrated (p = 0.04): x is y. " in verdict(0.5, 0.02)
    assert "(p = 1)" in verdict(0.8, 0.7)


def test_moments_are_those_of_all_samples():
    # 3 % too narrow: seen by the p-value of all of 12 000 samples, mostly not by that of 1000
    rng = np.random.default_rng(4)
    x, z = rng.normal(size=(2, 12_000))
    z *= 1.03
    data = check_forecasts(x + z, GaussianForecast(x, 1.0))
    sums = np.array([z, (z**2 - 1) / np.sqrt(2), (z**3 - 3 * z) / np.sqrt(6)]).sum(axis=1)
    expected = 3 * 2 * stats.norm.sf(np.max(np.abs(sums)) / np.sqrt(12_000))
    assert moments_p_value(data) == pytest.approx(expected, rel=1e-6)
    assert expected < 1e-3
    numbers = {"p_value": 0.3, "quantile_p_value": 0.5, "n_samples": 12_000, "n_tested": 1000}
    numbers |= {"quantile_calibration_error": 0.03, "quantile_n_tested": 10_000}
    advice = forecast_advice(numbers | {"moments_p_value": expected}, {}, [])
    assert advice.startswith("Miscalibrated (p ≤ ")
    seen = ", by 10000 of 12000 samples, for bias, spread and skewness by all)"
    assert seen in advice
    assert seen in forecast_advice(numbers | {"moments_p_value": 0.4}, {}, [])
    del numbers["quantile_n_tested"], numbers["quantile_p_value"]
    assert "(p = 0.3, by 1000 of 12000 samples)" in forecast_advice(numbers, {}, [])


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize(("sign", "side"), [(1, "above"), (-1, "below")])
def test_skewed_errors_are_told(sign, side):
    rng = np.random.default_rng(1)
    x, error = rng.normal(size=200), rng.gamma(2, size=200) - 2
    text = advice((x + sign * error / np.sqrt(2), GaussianForecast(x, 1.0)))
    assert f": the errors are skewed: outcomes far {side} the forecasts are too frequent." in text


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize(("n", "bias"), [(8, 3), (60, 0.9)])
def test_a_bias_is_not_taken_for_skewness_or_for_narrow_intervals(n, bias):
    # 8 samples are too few for means; quantiles have none
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y, forecast = x + bias + rng.normal(size=n), GaussianForecast(x, 1.0)
    if n > 10:
        forecast = QuantileForecast(forecast.quantiles([0.05, 0.5, 0.95]), [0.05, 0.5, 0.95])
    text = advice((y, forecast))
    assert "the forecasts are too low" in text
    assert not re.search("skewed|narrow", text)


@pytest.mark.usefixtures("few_resamples")
def test_heavy_tails_get_no_factor():
    x = np.random.default_rng(0).normal(size=400)
    for seed in range(3):
        error = stats.t(3).rvs(400, random_state=seed) / np.sqrt(3)
        report = calibration_report(x + error, GaussianForecast(x, 1.0), random_state=0)
        (finding,) = report.findings
        assert finding.startswith("the errors have heavier tails than the forecasts, or")


@pytest.mark.usefixtures("few_resamples")
def test_findings_are_empty_without_evidence_and_never_empty_with_it():
    rng = np.random.default_rng(5)
    x = rng.normal(size=300)
    for y, is_wrong in (
        (x + rng.normal(size=300), False),
        (x + rng.choice([-1.0, 1.0], 300), True),
    ):
        report = calibration_report(y, GaussianForecast(x, 1.0), random_state=0)
        assert bool(report.findings) == is_wrong == report.advice.startswith("Miscalibrated")


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("bias", [0.8, 1.2])  # the larger one shows more in the spread
def test_a_bias_of_some_samples_is_told_beside_the_mean(bias):
    rng = np.random.default_rng(1019)
    mean = rng.uniform(0, 10, 500)
    y = mean + rng.normal(size=500) + bias * (mean > 7)
    found = calibration_report(y, GaussianForecast(mean, 1.0), random_state=0).findings
    assert "the forecasts are too low for some samples, less so or too high for others" in found


def test_verdict_tells_small_from_large_and_before_from_after():
    numbers = {"p_value": 0.5, "quantile_p_value": 0.001, "quantile_n_tested": 10_000}
    numbers |= {"moments_p_value": 0.5, "n_samples": 12_000}
    numbers["quantile_calibration_error"] = 0.008
    advice = forecast_advice(numbers, {}, ["forecasts are too low"])
    assert "This is small and may not matter: with 12000 samples, a quantile" in advice
    assert "If it matters, recalibrate on samples" in advice
    advice = forecast_advice(numbers, {}, [], recalibrated=True)
    assert advice.startswith("Still miscalibrated (p ≤ 0.003, by 10000 of 12000 samples, for ")
    assert "RecalibratedRegressor" not in advice
    for other in ({"p_value": 0.01}, {"quantile_calibration_error": 0.02}):
        assert "small" not in forecast_advice(numbers | other, {}, [])
    advice = forecast_advice(numbers | other, {}, [], recalibrated=True)
    assert "RecalibratedRegressor" not in advice
    ends = {"quantile_calibration_error": (0.0, 0.0344)}
    advice = forecast_advice(numbers | {"quantile_p_value": 0.5}, ends, [])
    assert "may be up to 0.034 (95 % interval)" in advice
    advice = forecast_advice(numbers | {"quantile_p_value": 0.5, "n_samples": 10**6}, {}, [])
    assert "The quantile calibration error of all 1000000 samples is 0.008." in advice


def test_standardised_errors_of_exchangeable_members_have_mean_square_1():
    y, forecast = make_forecasts(20_000, problem="ensemble", n_members=3, random_state=0)
    z = standardized_errors(check_forecasts(y, forecast))
    for deviations in (z, z**2 - 1):
        assert abs(deviations.mean()) < 4 * deviations.std() / np.sqrt(20_000)
    weighted = EnsembleForecast(forecast.members, np.ones(3))
    larger = standardized_errors(check_forecasts(y, weighted))
    np.testing.assert_allclose(larger, np.sqrt(2) * z, rtol=1e-9)  # √((3 + 1) / (3 − 1))


def test_coverage_is_that_of_the_intervals_whose_width_is_reported():
    y, forecast = make_forecasts(4000, problem="ensemble", n_members=5, random_state=0)
    numbers = measure_forecasts(check_forecasts(y, forecast))
    low, high = forecast.interval(0.8)
    assert numbers["mean_width_80"] == pytest.approx(np.mean(high - low))
    assert numbers["coverage_80"] == pytest.approx(np.mean((low <= y) & (y <= high)))
    assert numbers["share_between_members"] == pytest.approx(4 / 6)
    assert abs(numbers["coverage_80"] - 4 / 6) < 4 * np.sqrt(4 / 6 * 2 / 6 / 4000)


@pytest.mark.usefixtures("few_resamples")
def test_what_forecasts_cannot_know_is_left_out():
    y, forecast = grid_of(make_forecasts(50, random_state=0), [0.05, 0.25, 0.75, 0.95])
    numbers = measure_forecasts(check_forecasts(y, forecast))
    assert set(numbers) == {
        "n_samples",
        "quantile_calibration_error",
        "continuous_ranked_probability_loss",
        "coverage_50",
        "coverage_90",
        "mean_width_50",
        "mean_width_90",
    }
    inside = (forecast.values[:, 0] < y) & (y <= forecast.values[:, 3])
    assert numbers["coverage_90"] == pytest.approx(inside.mean())
    y, forecast = grid_of((y, make_forecasts(50, random_state=0)[1]), [0.1, 0.5])
    data = check_forecasts(y, forecast)
    assert not any(key.startswith("coverage") for key in measure_forecasts(data))
    assert diagnose(data) == []
    data = check_forecasts(y, DistributionForecast(cauchy(y)))
    assert "rms_z" not in measure_forecasts(data)
    report = calibration_report(y, data.forecast, random_state=0)
    assert not {"p_value_skce", "distribution_matching_error"} & set(report.numbers)
    assert f"(p = {report.numbers['p_value']:.3g})" in report.advice
    report = calibration_report(y, data.forecast, groups=np.arange(50) // 2, random_state=0)
    assert report.numbers["p_value"] < 0.05


def test_members_that_agree():
    # a standard deviation of 0 in some rows, or in all
    members = np.zeros((30, 4))
    assert standardized_errors(check_forecasts(np.ones(30), EnsembleForecast(members))) is None
    members[:10] = [-1, 0, 0, 1]
    z = standardized_errors(check_forecasts(np.ones(30), EnsembleForecast(members)))
    assert np.isfinite(z).all()


@pytest.mark.usefixtures("few_resamples")
def test_large_problems_are_tested_on_a_part(monkeypatch):
    monkeypatch.setattr("skcalib.report._forecasts._MAX_TESTED", 20)
    monkeypatch.setattr("skcalib.report._forecasts._MAX_TESTED_QUANTILES", 30)
    y, forecast = make_forecasts(50, random_state=0)
    by = np.repeat(["a", "b", "c"], [3, 7, 40])
    report = calibration_report(y, forecast, by=by, random_state=0)
    sizes = {line[:46].strip(): line for line in str(report).split("\n")}
    for name, size in (
        ("p-value of the omnibus test of calibration", 20),
        ("distribution matching error", 20),
        ("p-value of the test of quantile calibration", 30),
    ):
        assert sizes[name].endswith(f"  {size} of 50 samples, at random")
    assert [report.numbers[key] for key in ("n_tested", "quantile_n_tested")] == [20, 30]
    assert [one["n_tested"] for one in report.subgroups] == [3, 7, 20]
    assert [one["n_samples"] for one in report.subgroups] == [3, 7, 40]
    note = "(their p-values are of at most 20 samples of each, chosen at random)"
    assert note in str(report)
    assert note in report.to_html()


@pytest.mark.integration
@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="the Gaussian process of scikit-learn 1.6 predicts other numbers",
)
def test_readme_shows_lines_of_the_report(monkeypatch):
    monkeypatch.setattr("skcalib.uncertainty._units._N_BLOCKS", 100)
    monkeypatch.setattr(ForecastSections, "gain", Sections.gain)
    X, y = load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    regressor = GaussianProcessRegressor(alpha=0.5, normalize_y=True).fit(X_train, y_train)
    forecast = regressor.predict(X_test, return_std=True)
    report = str(calibration_report(y_test, forecast, random_state=0))
    readme = read_page("README.md")
    (shown,) = re.findall(r"```text\n(Calibration of \d+ forecasts\n.*?)```", readme, re.DOTALL)
    for line in shown.replace("...\n", "").rstrip("\n").split("\n"):
        assert line in report.split("\n"), line


@pytest.mark.usefixtures("few_resamples")
def test_subgroups_are_those_of_the_metric_and_the_test():
    y, forecast = make_forecasts(120, random_state=0)
    site = np.array(["north", "south", "<west>", "south"] * 30)
    site[0] = "=1+1"
    forecast = GaussianForecast(forecast.mean(), forecast.std() / (1 + 3 * (site == "<west>")))
    report = calibration_report(y, forecast, by={"site": site}, random_state=0)
    assert [one["subgroup"] for one in report.subgroups] == ["<west>", "=1+1", "north", "south"]
    assert "\nsite    samples  quantile calibration error" in str(report)
    for one in report.subgroups:
        rows = np.flatnonzero(site == one["subgroup"])
        expected = quantile_calibration_error(y[rows], forecast[rows])
        assert one["estimate"] == pytest.approx(expected, abs=1e-15)
        assert one["n_samples"] == one["n_tested"] == len(rows)
        if len(rows) > 1:
            interval = confidence_interval(
                "quantile_calibration_error", y[rows], forecast[rows], n_resamples=19
            )
            assert [one["low"], one["high"]] == pytest.approx(
                [interval.low, interval.high], abs=0.1
            )
    assert np.isnan(report.subgroups[1]["low"])
    test = SubgroupCalibrationTest("quantile_calibration_error", n_resamples=199, random_state=0)
    test.fit(forecast, y, by=site)
    found = [one["p_value"] for one in report.subgroups]
    np.testing.assert_allclose(found, list(test.subgroup_p_values_.values()), atol=0.12)
    assert report.numbers["subgroup_p_value"] == min(found) < 0.05
    html = report.to_html()
    assert "<th scope='col' class='number'>quantile calibration error</th>" in html
    assert "<th scope='row'>&lt;west&gt;</th>" in html
    assert "<west>" not in html
    assert json.loads(report.to_json())["subgroups"][1]["low"] is None


@pytest.mark.usefixtures("few_resamples")
def test_subgroups_that_cancel_are_told():
    y, forecast = make_forecasts(400, random_state=0)
    by = np.arange(400) % 2
    shifted = GaussianForecast(forecast.mean() + (by - 0.5) * 0.6 * forecast.std(), forecast.std())
    report = calibration_report(y, shifted, by=by, random_state=0)
    assert report.advice.startswith("No evidence of miscalibration")
    found = "test of subgroups (p = 0.01) finds miscalibration in 2 of 2: subgroup 0; subgroup 1."
    assert found in report.advice
    assert "SubgroupRecalibrator" in report.advice


def test_groups_widen_intervals_and_choose_the_test(few_resamples):
    rng = np.random.default_rng(0)
    mean, groups = rng.normal(size=120), np.repeat(np.arange(30), 4)
    y = mean + rng.normal(size=30)[groups]
    forecast = GaussianForecast(mean, 1.0)
    alone = calibration_report(y, forecast, random_state=0)
    by = np.where(np.arange(120) == 119, "one", np.where(groups < 1, "four", "all others"))
    report = calibration_report(y, forecast, groups=groups, by=by, random_state=0)
    width = [
        np.diff(one.intervals["continuous_ranked_probability_loss"]) for one in (alone, report)
    ]
    assert width[1] > 1.5 * width[0]
    assert [one["subgroup"] for one in report.subgroups] == ["all others", "four", "one"]
    for one in report.subgroups[1:]:  # the samples of a single group
        assert np.isnan(one["low"])
        assert one["p_value"] == 1
    test = few_resamples(random_state=np.random.RandomState(0)).fit(forecast, y, groups=groups)
    assert report.numbers["p_value"] == test.p_value_
    error = test.component_statistics_["skce"]
    assert report.numbers["distribution_matching_error"] == pytest.approx(error)
    assert not {"quantile_p_value", "distribution_matching_ratio"} & set(report.numbers)
    assert report.audit["number of groups"] == "30"
    assert report.audit["by"] == "'subgroup'"


def test_a_deviation_of_few_groups_is_not_clear():
    y = np.repeat([0.5, 0.9, -0.2, 0.4], 50)
    data = check_forecasts(y, GaussianForecast(np.zeros(200), 1.0))
    assert "forecasts are too low" in diagnose(data)[-1]  # 0.4 of 0.07
    grouped = with_groups(data, y, np.repeat(np.arange(4), 50), None)
    assert not any("too low" in one for one in diagnose(grouped))  # of 0.5
    levels = [0.1, 0.9]
    for together, n_found in ((data, 1), (grouped, 0)):
        grid = QuantileForecast(np.full((200, 2), [-0.3, 0.45]), levels)
        assert len(diagnose(replace(together, forecast=grid))) == n_found


def in_groups(z, groups, weight=None):
    """Outcomes z of forecasts N(0, 1)."""
    data = check_forecasts(z, GaussianForecast(np.zeros(len(z)), 1.0), sample_weight=weight)
    return with_groups(data, z, groups, weight)


def jackknife_margin(measure, z, weight, groups):
    """Student's margin of 95 %, by leaving out one group at a time."""
    labels = np.unique(groups)
    left = [measure(z[groups != k], weight[groups != k]) for k in labels]
    squares = (1 - 1 / len(labels)) * (np.array(left) - measure(z, weight)) ** 2
    degrees = 2 * squares.sum() ** 2 / np.sum((squares - squares.mean()) ** 2)
    share = np.bincount(groups, weight) / weight.sum()
    degrees = min(degrees, 1 / (share @ share) - 1)
    return stats.t.isf(0.025, degrees) * np.sqrt(squares.sum())


def mean(z, weight):
    return np.average(z, weights=weight)


def log_variance(z, weight):
    return np.log(np.average((z - mean(z, weight)) ** 2, weights=weight))


def test_margins_are_those_of_leaving_out_each_group():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), rng.integers(1, 9, 40))
    weight = rng.uniform(0.5, 2, len(groups))
    z = 3 * (rng.normal(size=40)[groups] + rng.normal(size=len(groups)))
    data = in_groups(z, groups, weight)
    expected = jackknife_margin(mean, z, weight, groups)
    assert mean_margin(data, z, 1.0) == pytest.approx(expected, rel=1e-12)
    squares = (z - mean(z, weight)) ** 2
    terms = squares / np.exp(log_variance(z, weight))
    expected = jackknife_margin(log_variance, z, weight, groups)
    assert mean_margin(data, terms, np.sqrt(2)) == pytest.approx(expected, rel=0.1)
    # groups that agree with each other vary no less than calibrated ones
    size = 1 / np.sum(np.bincount(groups, weight / weight.sum()) ** 2)
    expected = stats.t.isf(0.025, size - 1) * 0.4 / np.sqrt(size)
    assert mean_margin(data, np.ones(len(z)), 0.4) == pytest.approx(expected, rel=1e-12)


def test_bias_of_some_large_groups_is_not_that_of_all():
    # three of twenty groups hold 40 % of the samples, and their errors are seven times as large
    sizes, spread = np.repeat([34, 9], [3, 17]), np.repeat([2.1, 0.3], [3, 17])
    groups, n_repetitions = np.repeat(np.arange(20), sizes), 300
    rng = np.random.default_rng(0)
    n_told = 0
    for _ in range(n_repetitions):
        z = (spread * rng.normal(size=20))[groups] + 0.1 * rng.normal(size=len(groups))
        n_told += any("on average" in text for text in diagnose(in_groups(z, groups)))
    assert n_told / n_repetitions < 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_repetitions)


@pytest.mark.parametrize(("scale", "kind"), [(0.6, "wide"), (1.5, "narrow")])
def test_spread_is_told_of_groups_whose_samples_are_independent(scale, kind):
    z = scale * np.random.default_rng(0).normal(size=600)
    (text,) = diagnose(in_groups(z, np.arange(600) // 30))
    assert text.startswith(f"prediction intervals are too {kind}: standard")


PROBA = (np.arange(60) + 0.5) / 60


@pytest.mark.parametrize("levels", [None, [0.1, 0.9]])
@pytest.mark.parametrize(
    "z",
    [
        stats.norm.ppf(PROBA) * 1.1 + 0.15,  # not clear
        stats.norm.ppf(PROBA) * 1.5 + 0.5,
        stats.t(3).ppf(PROBA) * np.where(PROBA > 0.5, 1.7, 1.0),  # not clearly skewed
    ],
)
def test_samples_that_are_repeated_in_a_group_say_no_more(z, levels):
    rows = np.repeat(np.arange(60), 8)
    alone, repeated = in_groups(z, None), in_groups(z[rows], rows)
    if levels is not None:
        alone, repeated = (
            replace(data, forecast=QuantileForecast(data.forecast.quantiles(levels), levels))
            for data in (alone, repeated)
        )
    assert diagnose(repeated) == diagnose(alone)


def test_few_samples_do_not_show_an_average():
    z = np.array([4.0, 7, -5, 6, 3, 8, -4, 5, 6])
    assert diagnose(in_groups(z, None)) == []
    assert diagnose(in_groups(np.tile(z, 9), np.tile(np.arange(9), 9))) == []
    assert len(diagnose(in_groups(np.append(z, 5), None))) == 2


# five folds of an average of recalibrators, twice: 0.9 s
def test_gain_is_that_on_unseen_samples():
    y, forecast = make_forecasts(400, dispersion=0.4, random_state=0)
    truth = GaussianForecast(forecast.mean(), forecast.std() / 0.4)
    possible = np.mean(forecast.crps(y) - truth.crps(y))
    data = check_forecasts(y, forecast)
    gain, low, high = forecast_gain(data)
    assert gain == pytest.approx(possible, rel=0.05)
    assert low < possible < high
    error = np.std(forecast.crps(y) - truth.crps(y)) / np.sqrt(400)
    assert high - gain == pytest.approx(1.96 * error, rel=0.1)
    twice = ForecastData(concatenate([forecast] * 2), np.tile(y, 2), weight=np.full(800, 1 / 800))
    grouped = with_groups(twice, twice.value, np.tile(np.arange(400), 2), None)
    again, low_again, _ = forecast_gain(grouped)
    assert again - low_again == pytest.approx(gain - low, rel=0.1)


@pytest.mark.usefixtures("few_resamples")
def test_gain_is_told_or_left_out(monkeypatch):
    y, forecast = make_forecasts(60, dispersion=0.2, random_state=0)
    monkeypatch.setattr(ForecastSections, "gain", lambda _: (0.12, 0.07, 0.17))
    report = calibration_report(y, forecast, random_state=0)
    assert "lowers the CRPS by 0.12." in report.advice
    shown = " ".join(str(report).split())
    assert "decrease of the CRPS by recalibration 0.1200 0.07000 to 0.1700" in shown
    monkeypatch.setattr(ForecastSections, "gain", lambda _: (0.12, -0.1, 0.3))
    report = calibration_report(y, forecast, random_state=0)
    assert "it is not clear that this lowers the CRPS." in report.advice
    few = check_forecasts(y[:19], forecast[:19])
    assert forecast_gain(few) is None


@pytest.mark.usefixtures("few_resamples")
def test_audit_tells_forecasts_apart():
    y, forecast = make_forecasts(30, random_state=0)
    hashes = {
        calibration_report(y, (forecast.mean(), forecast.std() * k), random_state=0).audit[
            "sha256 of outcomes, forecasts and weights"
        ]
        for k in (1, 1, 1.1)
    }
    assert len(hashes) == 2


@pytest.mark.usefixtures("few_resamples")
def test_one_sample():
    report = calibration_report([0.5], GaussianForecast([0.0], 1.0))
    assert str(report).startswith("Calibration of 1 forecasts")


def test_bad_input():
    y, forecast = make_forecasts(10, random_state=0)
    for name, value in (("pos_label", 1), ("labels", [0, 1])):
        with pytest.raises(ValueError, match=f"{name} must be None for forecasts of a number"):
            calibration_report(y, forecast, **{name: value})
    with pytest.raises(ValueError, match="10"):
        calibration_report(y, forecast, by=["a", "b"])
    with pytest.raises(ValueError, match="y_true must be 1-D, with one outcome for each of the 10"):
        calibration_report(y[1:], forecast)


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_errors_that_do_not_vary_are_told_without_a_factor(shift):
    mean = np.random.default_rng(0).normal(size=30)
    data = check_forecasts(mean + shift, GaussianForecast(mean, 1.0))
    first, *_ = diagnose(data)
    assert first == "standard deviations are too large: the errors do not vary at all"


@pytest.mark.usefixtures("few_resamples")
def test_page_shows_the_numbers_and_the_histogram():
    y, forecast = make_forecasts(60, dispersion=0.5, random_state=0)
    report = calibration_report(y, forecast, random_state=0)
    html = report.to_html()
    for table in str(report).split("\n\n")[2:]:
        head, *lines = table.split("\n")
        assert f"<h2>{head[:46].rstrip()}</h2>" in html
        for line in lines:
            title, *cells = line[:46].rstrip(), *line[46:].strip().split("  ")
            cells = "".join(f"<td class='number'>{cell.strip()}</td>" for cell in cells)
            assert f"<th scope='row'>{title}</th>{cells}" in html
    ax = Figure().subplots()
    density = PITHistogramDisplay.from_predictions(y, forecast, random_state=0, ax=ax).density
    assert ", ".join(f"{height:.2g}" for height in density) in html
    assert html.count("<svg") == 1
