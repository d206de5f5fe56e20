"""The report on forecasts shows the numbers of the metrics and gives the advice they call for."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sklearn
from matplotlib.figure import Figure
from scipy.stats import cauchy
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import train_test_split

from skcalib.datasets import (
    make_count_forecasts,
    make_ensemble_forecasts,
    make_forecaster_family,
    make_gaussian_forecasts,
)
from skcalib.display import PITHistogramDisplay
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    QuantileForecast,
)
from skcalib.forecasts._data import check_forecasts
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    distribution_matching_error,
    quantile_calibration_error,
    sharpness,
)
from skcalib.report import calibration_report
from skcalib.report._forecast_numbers import diagnose, measure_forecasts, standardized_errors
from skcalib.report._forecast_text import forecast_advice


def grid_of(problem, levels):
    y, forecast = problem
    return y, QuantileForecast(forecast.quantiles(levels), levels)


@pytest.fixture
def few_resamples(monkeypatch):
    """Tests draw 99 times; the default number is that of the tests without this."""
    test = partial(CalibrationTest, n_resamples=99)
    monkeypatch.setattr("skcalib.report._forecast_numbers.CalibrationTest", test)
    return test


def test_numbers_are_those_of_the_metrics(few_resamples):
    y, forecast = make_gaussian_forecasts(80, dispersion=0.7, random_state=0)
    weight = np.random.default_rng(0).random(80)
    numbers = calibration_report(y, forecast, sample_weight=weight, random_state=0).numbers
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
    ratio = test.statistic_ / test.null_distribution_.std()
    assert numbers["distribution_matching_ratio"] == pytest.approx(ratio, rel=1e-6)
    test = few_resamples("quantile_calibration_error", random_state=rng)
    test.fit(forecast, y, sample_weight=weight)
    assert numbers["quantile_p_value"] == test.p_value_
    others = {"p_value", "quantile_p_value", "distribution_matching_ratio"}
    assert set(numbers) == {*expected} | others


@pytest.mark.usefixtures("few_resamples")
def test_text_shows_the_numbers():
    y, forecast = make_gaussian_forecasts(50, random_state=0)
    numbers = calibration_report(y, forecast, random_state=0).numbers
    text = str(calibration_report(y, (forecast.mean(), forecast.std()), random_state=0))
    shown = [float(line.split()[-1]) for line in text.split("\n\n")[1].split("\n")]
    values = [value for value in numbers.values() if isinstance(value, float)]
    np.testing.assert_allclose(shown, values, rtol=5e-4, atol=5e-5)
    assert f"{numbers['distribution_matching_error']:.1e}\n" in text
    advice = calibration_report(y, forecast, random_state=0).advice
    assert advice.split() == text.split("\n\n")[-1].split()
    assert text.startswith("Calibration of 50 forecasts\n")
    assert "coverage of the 80 % intervals" in text


@pytest.mark.parametrize(
    ("problem", "phrases"),
    [
        (make_gaussian_forecasts(2000, random_state=1), []),
        (
            make_gaussian_forecasts(2000, dispersion=1 / 6.2, random_state=0),
            ["standard deviations are too small by a factor 6."],
        ),
        (
            make_gaussian_forecasts(2000, dispersion=2, random_state=0),
            ["standard deviations are too large by a factor 2.0"],
        ),
        (
            make_gaussian_forecasts(2000, bias=-0.5, random_state=0),
            ["outcomes are higher than forecast, by 0.5"],
        ),
        (
            make_gaussian_forecasts(2000, bias=1, dispersion=0.5, random_state=0),
            ["too small by a factor 2.0", "lower than forecast, by 2 standard deviations"],
        ),
        (
            make_ensemble_forecasts(2000, n_members=5, dispersion=0.5, random_state=0),
            # errors of variance σ² + 0.25 σ² / 5, 3/2 of a mean variance of 0.25 σ² · 4/5: 1.87
            ["standard deviations are too small by a factor 1.9"],
        ),
        (make_ensemble_forecasts(2000, n_members=2, random_state=1), []),
        (
            make_count_forecasts(2000, overdispersion=1, forecast_overdispersion=0, random_state=0),
            ["standard deviations are too small by a factor"],
        ),
        (
            grid_of(make_gaussian_forecasts(2000, dispersion=0.5, random_state=0), [0.1, 0.9]),
            ["intervals are too narrow: those of 80 % hold 47"],
        ),
        (
            grid_of(make_gaussian_forecasts(2000, dispersion=2, random_state=0), [0.1, 0.9]),
            ["intervals are too wide: those of 80 % hold 99"],
        ),
        (
            make_forecaster_family(2000, forecaster="sign-reversed", random_state=0),
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
    narrow = advice(make_gaussian_forecasts(50, dispersion=0.3, random_state=0))
    assert narrow.startswith("Miscalibrated (p = 0.002); standard deviations are too small by a")
    assert "RecalibratedRegressor" in narrow


@pytest.mark.usefixtures("few_resamples")
def test_verdict_on_calibrated_forecasts():
    calibrated = advice(make_gaussian_forecasts(50, random_state=1))
    assert calibrated.startswith("No evidence of miscalibration (p = ")


def test_verdict_is_by_twice_the_smaller_p_value():
    numbers = {"p_value": 0.03, "quantile_p_value": 0.5}
    assert "No evidence of miscalibration (p = 0.06)" in forecast_advice(numbers, [])
    numbers = {"p_value": 0.5, "quantile_p_value": 0.02}
    assert "Miscalibrated (p = 0.04); though spread and level agree" in forecast_advice(numbers, [])
    assert "(p = 1)" in forecast_advice({"p_value": 0.8, "quantile_p_value": 0.7}, [])


def test_standardised_errors_of_exchangeable_members_have_mean_square_1():
    y, forecast = make_ensemble_forecasts(20_000, n_members=3, random_state=0)
    mean, square, noise, noise_of_square = standardized_errors(check_forecasts(y, forecast))
    assert abs(mean) < 4 * noise
    assert abs(square - 1) < 4 * noise_of_square
    weighted = EnsembleForecast(forecast.members, np.ones(3))
    found = standardized_errors(check_forecasts(y, weighted))
    assert found[1] == pytest.approx(2 * square, rel=1e-9)  # (3 + 1) / (3 − 1)


@pytest.mark.usefixtures("few_resamples")
def test_what_forecasts_cannot_know_is_left_out():
    y, forecast = grid_of(make_gaussian_forecasts(50, random_state=0), [0.05, 0.25, 0.75, 0.95])
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
    y, forecast = grid_of((y, make_gaussian_forecasts(50, random_state=0)[1]), [0.1, 0.5])
    data = check_forecasts(y, forecast)
    assert not any(key.startswith("coverage") for key in measure_forecasts(data))
    assert diagnose(data) == []
    data = check_forecasts(y, DistributionForecast(cauchy(y)))
    assert "rms_z" not in measure_forecasts(data)
    report = calibration_report(y, data.forecast, random_state=0)
    assert "p_value" not in report.numbers
    assert f"(p = {report.numbers['quantile_p_value']:.3g})" in report.advice


def test_members_that_agree():
    # a standard deviation of 0 in some rows, or in all
    members = np.zeros((30, 4))
    assert standardized_errors(check_forecasts(np.ones(30), EnsembleForecast(members))) is None
    members[:10] = [-1, 0, 0, 1]
    assert np.isfinite(
        standardized_errors(check_forecasts(np.ones(30), EnsembleForecast(members)))
    )[1]


@pytest.mark.usefixtures("few_resamples")
def test_large_problems_are_tested_on_a_part(monkeypatch):
    monkeypatch.setattr("skcalib.report._forecast_numbers._MOST_TESTED", 20)
    text = str(calibration_report(*make_gaussian_forecasts(50, random_state=0), random_state=0))
    assert "(tests, and the matching error, of 20 samples chosen at random)" in text


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="the Gaussian process of scikit-learn 1.6 predicts other numbers",
)
def test_readme_shows_lines_of_the_report():
    X, y = load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    regressor = GaussianProcessRegressor(alpha=0.5, normalize_y=True).fit(X_train, y_train)
    forecast = regressor.predict(X_test, return_std=True)
    report = str(calibration_report(y_test, forecast, random_state=0))
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(Calibration of \d+ forecasts\n.*?)```", readme, re.DOTALL)
    for line in shown.replace("...\n", "").rstrip("\n").split("\n"):
        assert line in report.split("\n"), line


@pytest.mark.usefixtures("few_resamples")
def test_one_sample():
    report = calibration_report([0.5], GaussianForecast([0.0], 1.0))
    assert str(report).startswith("Calibration of 1 forecasts")


def test_bad_input():
    y, forecast = make_gaussian_forecasts(10, random_state=0)
    for name, value in (("pos_label", 1), ("labels", [0, 1])):
        with pytest.raises(ValueError, match=f"{name} must be None for forecasts of a number"):
            calibration_report(y, forecast, **{name: value})
    with pytest.raises(ValueError, match="y_true must be 1-D, with one outcome for each of the 10"):
        calibration_report(y[1:], forecast)


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_errors_that_do_not_vary_are_told_without_a_factor(shift):
    mean = np.random.default_rng(0).normal(size=30)
    data = check_forecasts(mean + shift, GaussianForecast(mean, 1.0))
    first, *_ = diagnose(data)
    assert first == "standard deviations are too large: the errors do not vary at all"


def test_page_shows_the_numbers_and_the_histogram():
    y, forecast = make_gaussian_forecasts(60, dispersion=0.5, random_state=0)
    report = calibration_report(y, forecast, random_state=0)
    html = report.to_html()
    for line in str(report).split("\n\n")[1].split("\n"):
        title, value = line[:48].strip(), line[48:].strip()
        assert f"<th scope='row'>{title}</th><td class='number'>{value}</td>" in html
    ax = Figure().subplots()
    density = PITHistogramDisplay.from_predictions(y, forecast, random_state=0, ax=ax).density
    assert ", ".join(f"{height:.2g}" for height in density) in html
    assert html.count("<svg") == 1
