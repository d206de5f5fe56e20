"""The sections of a report on forecasts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import chi2

from .._data import ForecastData
from .._numerics.dependence import UnitSums
from .._numerics.pit import normal_scores, pit_cdf, pit_laws
from .._statistics.omnibus_forecasts import ForecastOmnibus
from ..forecasts import DistributionForecast, EnsembleForecast
from ..hypothesis_tests import CalibrationTest
from ..metrics import Sharpness, sharpness
from ..metrics._registry import FORECAST_METRICS
from ..metrics._terms import MetricTerms
from ..recalibration import AutoRecalibrator
from ..recalibration._folds import fit_with_units
from ..uncertainty._limits import Changes
from ..uncertainty._losses import forecast_terms
from ..uncertainty._units import Units
from . import _sections
from ._findings import Finding, say
from ._pictures import render_forecast_pictures
from ._sections import CLEAR_GAP, LEVEL, Intervals, Numbers, ReportMeasure, Sections, TableRows

# Tests of more samples take more than a few seconds: the default one, and that of quantiles.
_MAX_TESTED = 1000
_MAX_TESTED_QUANTILES = 10_000

# The gain of recalibration is found on at most this many forecasts; `DistributionForecast` is slow.
# Fewer forecasts say nothing.
_MOST_SLOW, _MOST_RECALIBRATED, _FEWEST = 200, 1000, 20

# Fourth powers of errors of this many standard deviations overflow.
_MAX_SCORE = 1e70

# A standardised sum of errors times a property of forecasts is clear above this.
_CLEAR_BIAS = 4.0

# An excess kurtosis above this is that of heavy tails: the standard deviation says little then.
_HEAVY_KURTOSIS, _CLEAR_KURTOSIS, _CLEAR_SKEWNESS = 2.0, 3.0, 1.5

# A variance of less than this times the mean square is 0 but for rounding.
_VARIANCE_RTOL_OF_SCORES = 1e-12

# The positions of the first and the third moment among normal scores.
_FIRST_MOMENT, _SKEWNESS = 0, 2

# The losses that a report shows.
_LOSSES = [loss for loss in FORECAST_METRICS.values() if loss.in_report and not loss.chosen]


class ForecastSections(Sections):
    """The sections of a report on `ForecastData`."""

    error = "quantile calibration error"
    loss = "CRPS"
    unknown = (
        "no clear error of level or spread on average: the shape of the distributions is wrong, or "
        "level and spread are wrong for some samples"
    )
    sides = "outcomes are higher than predicted in {more}, lower in {less}"
    remedy = (
        "Recalibrate on samples unseen in training: AutoRecalibrator takes forecasts, "
        "RecalibratedRegressor a regressor."
    )
    data: ForecastData

    def measure(self) -> tuple[Numbers, TableRows]:
        return measure_forecasts(self.data), []

    def residual(self) -> np.ndarray:
        return np.mean(self.data.forecast.pit_bounds(self.data.value), axis=0) - 0.5

    def test(self) -> tuple[Numbers, list[Finding]]:
        """Return the numbers of the default test, and what is wrong.

        Of more samples than it takes, the test of quantiles sees more, and that of moments all.
        These take samples for independent, and are left out if they are in groups.
        """
        data, n = self.data, self.data.n_samples
        order = self.rng.permutation(n) if n > _MAX_TESTED else np.arange(n)
        tested = _sections.take_samples(data, order[:_MAX_TESTED])
        test = CalibrationTest(random_state=self.rng)._fit(tested)
        numbers: Numbers = {"n_tested": tested.n_samples, "p_value": test.p_value_}
        numbers |= {f"p_value_{name}": p for name, p in test.adjusted_p_values_.items()}
        if "skce" in test.component_statistics_:
            numbers["distribution_matching_error"] = error = test.component_statistics_["skce"]
            if data.groups is None:  # otherwise draws are known up to a constant
                chance = float(test.component_null_distributions_["skce"].std())
                numbers["distribution_matching_ratio"] = error / chance if chance > 0 else 0.0
        if data.groups is None and n > _MAX_TESTED:
            subsample = data.take(order[:_MAX_TESTED_QUANTILES])
            quantile_test = CalibrationTest("quantile_calibration_error", random_state=self.rng)
            numbers["quantile_p_value"] = quantile_test._fit(subsample).p_value_
            numbers["quantile_n_tested"] = subsample.n_samples
            numbers["moments_p_value"] = moments_p_value(data)
        averages = diagnose(data)
        names = [finding.name for finding in averages]
        return numbers, averages + forecast_findings(test, tested, names)

    def subgroup_test(self) -> tuple[str, dict[str, Any] | None, int, np.ndarray | None]:
        if self.data.groups is None:
            return "quantile_calibration_error", None, _MAX_TESTED_QUANTILES, None
        return "auto", None, _MAX_TESTED, None

    def score_terms(self) -> dict[str, MetricTerms]:
        return {loss.name: forecast_terms(loss, self.data, {}) for loss in _LOSSES}

    def measures(self) -> Iterator[ReportMeasure]:
        for entry in FORECAST_METRICS.values():
            if entry.in_report and entry.chosen:
                yield ReportMeasure(entry.name, entry, {}, self.data, self.data.n_samples)

    def gain_sample_limits(self) -> tuple[int, int]:
        is_slow = isinstance(self.data.forecast, DistributionForecast)
        return _FEWEST, _MOST_SLOW if is_slow else _MOST_RECALIBRATED

    def losses(self, data: ForecastData, train: ForecastData | None = None) -> np.ndarray:
        forecast = data.forecast
        if train is not None:
            model, sample_weight = AutoRecalibrator(), {"sample_weight": train.weight}
            units = {"groups": train.groups, "blocks": train.blocks}
            fit_with_units(model, train.forecast, train.value, **units, **sample_weight)
            forecast = model.transform(forecast)
        return forecast.crps(data.value)

    def is_small(self, numbers: Numbers, classes: TableRows) -> bool:
        error = numbers["quantile_calibration_error"]
        return error < _sections.SMALL_ERROR and numbers.get("p_value", 1.0) >= LEVEL

    def audit_data(self) -> tuple[str, list[np.ndarray], dict[str, Any]]:
        data = self.data
        arrays = [data.value, *data.forecast._sort_keys(), data.weight]
        settings = {"forecast": type(data.forecast).__name__}
        return "outcomes, forecasts and weights", arrays, settings

    def pictures(self, numbers: Numbers, ends: Intervals, rows: TableRows) -> dict[str, str]:
        return render_forecast_pictures(self.data, numbers)


def measure_forecasts(data: ForecastData) -> dict:
    """Return scores, errors, coverage and sharpness by name."""
    numbers: dict = {"n_samples": data.n_samples}
    for entry in FORECAST_METRICS.values():
        if entry.in_report:
            numbers[entry.name] = entry.measure(data)
    sharp = _sharpness(data)
    if sharp is not None:
        names = [f"{100 * level:.4g}" for level in sharp.levels]
        for name, level in zip(names, sharp.levels, strict=True):
            low, high = ends = data.forecast.interval(level)
            numbers[f"coverage_{name}"] = data.mean((low <= data.value) & (data.value <= high))
            if not (data.forecast.is_continuous or data.forecast._has_quantiles_only):
                probability = _interval_probability(data, level, ends)
                numbers[f"expected_coverage_{name}"] = data.mean(probability)
        numbers |= {f"mean_width_{n}": w for n, w in zip(names, sharp.width.tolist(), strict=True)}
        numbers["mean_std"] = sharp.std
    if data.forecast.is_exchangeable:
        share = (data.forecast._n_members - 1) / (data.forecast._n_members + 1)
        numbers["share_between_members"] = data.mean(np.broadcast_to(share, data.n_samples))
    z = standardized_errors(data)
    if z is not None:
        numbers |= {"mean_z": float(data.weight @ z), "rms_z": float(np.sqrt(data.weight @ z**2))}
    return {name: number for name, number in numbers.items() if not np.isnan(number)}


def _interval_probability(data: ForecastData, level: float, ends: tuple) -> np.ndarray:
    """Return the probability (n,) of each closed interval if the forecasts are calibrated.

    With s exchangeable members, each of the s + 1 values is the outcome with equal probability, and
    the s others make the interval. Its ends have fixed ranks among these: an outcome at or below
    the lower end's rank moves that end to the next of the s + 1 sorted values.
    """
    if not data.forecast.is_exchangeable:
        return data.forecast.pit_bounds(ends[1])[1] - data.forecast.pit_bounds(ends[0])[0]
    values = np.sort(data.exchangeable_values(), axis=1)  # (n, s + 1), missing ones last
    size = np.reshape(data.forecast._n_members, (-1, 1))  # (1, 1) or (n, 1)
    rank = np.arange(values.shape[1] - 1.0)
    ranks = EnsembleForecast(np.where(rank < size, rank, np.nan)).interval(level)
    index = np.add(np.transpose(ranks).astype(int), [1, 0])  # (1, 2) or (n, 2)
    low, high = np.take_along_axis(values, index, axis=1).T[:, :, None]
    return ((low <= values) & (values <= high)).sum(axis=1) / (size[:, 0] + 1)


def _sharpness(data: ForecastData) -> Sharpness | None:
    """Return the sharpness; None for quantiles at levels that make no central interval."""
    try:
        return sharpness(data.forecast, sample_weight=data.weight)
    except ValueError:
        return None


def standardized_errors(data: ForecastData) -> np.ndarray | None:
    """Return (outcome − mean) / std, (n,).

    None for forecasts that have no finite mean and standard deviation. The forecasts of ensembles
    and discrete outcomes may have a standard deviation of 0 in some rows, so these are divided by
    the root mean square of all standard deviations. The mean of s exchangeable members errs by
    (s + 1) / (s − 1) times the variance of the members, on average.
    """
    forecast, weight = data.forecast, data.weight
    try:
        error, std = data.value - forecast.mean(), forecast.std()
    except ValueError:
        return None
    if forecast.is_exchangeable:
        std = std * np.sqrt((forecast._n_members + 1) / (forecast._n_members - 1))
    if not forecast.is_continuous:
        std = np.full(len(std), np.sqrt(weight @ std**2))
    is_known = np.isfinite(error).all() and np.isfinite(std).all() and (std > 0).all()
    if not is_known or (np.abs(error) / _MAX_SCORE > std).any():
        return None
    return error / std


def mean_margin(data: ForecastData, terms: np.ndarray, deviation: float) -> float:
    """Return half the width of the 95 % interval of a mean of terms (n,).

    It is at least that of terms of this standard deviation, which those of calibrated forecasts
    have, as if all samples of a group agreed.
    """
    units = Units(data)
    least = deviation**2 / units.effective_size
    limits = Changes.from_terms(data.weight * terms, units, least).limits()
    return limits.ends(LEVEL / 2)[1] - limits.estimate


def moments_p_value(data: ForecastData) -> float:
    """Return the p-value of bias, spread and skewness, by normal scores of PITs.

    It is three times that of the largest standardised sum, which is normal for many samples.
    """
    scores = normal_scores(*data.forecast.pit_bounds(data.value))
    square = (scores @ data.weight) ** 2 / data.inverse_effective_size
    return max(min(1.0, len(square) * float(chi2.sf(square.max(), 1))), np.finfo(float).tiny)


def diagnose(data: ForecastData) -> list[Finding]:
    """Return sentences on what is clearly wrong with the forecasts on average.

    None on too few samples.
    """
    if _sections.inverse_effective_size(data) > _sections.MAX_SAMPLE_SHARE:
        return []
    z = standardized_errors(data)
    if z is None:
        return _diagnose_coverage(data)
    results = []
    mean = float(data.weight @ z)
    squares = (z - mean) ** 2
    variance = float(data.weight @ squares)
    if variance <= _VARIANCE_RTOL_OF_SCORES * (variance + mean**2):  # no factor would do
        text = "standard deviations are too large: the errors do not vary at all"
        results.append(say("spread", text))
    elif _has_heavy_tails(data):
        text = "the errors have heavier tails than the forecasts, or more spread for some samples"
        results.append(say("tails", text))
    # logarithms of variances are nearly normal
    elif abs(np.log(variance)) > mean_margin(data, squares / variance, np.sqrt(2)):
        width, size = ("narrow", "small") if variance > 1 else ("wide", "large")
        text = (
            f"prediction intervals are too {width}: standard deviations are too {size} by a factor "
            "{std_factor:.2f}"
        )
        factor = float(np.sqrt(max(variance, 1 / variance)))
        results.append(say("spread", text, {"std_factor": factor}))
    if abs(mean) > mean_margin(data, z, 1.0):
        direction = "low" if mean > 0 else "high"
        text = f"forecasts are too {direction}, by {{mean_z:|.2g}} standard deviations on average"
        results.append(say("level", text, {"mean_z": mean}))
    return results


def _has_heavy_tails(data: ForecastData) -> bool:
    """True if normal scores of the PITs of continuous forecasts have a large excess kurtosis.

    Those of skewed errors do not count.
    """
    if not data.forecast.is_continuous:
        return False
    score, weight = normal_scores(*data.forecast.pit_bounds(data.value))[0], data.weight
    score = score - weight @ score
    units = UnitSums(weight, data.groups)
    square, cubes = float(weight @ score**2), units.add(weight * score**3)
    if abs(cubes.sum()) > _CLEAR_SKEWNESS * np.sqrt(cubes @ cubes):
        return False
    kurtosis = max(_HEAVY_KURTOSIS, _CLEAR_KURTOSIS * np.sqrt(24 / units.effective_size))
    return float(weight @ score**4) > (3 + kurtosis) * square**2


def forecast_findings(test: CalibrationTest, data: ForecastData, names: list[str]) -> list[Finding]:
    """Return a sentence for each significant component that averages do not explain.

    The names are those of the findings on averages. The coverage alone explains neither
    level nor spread: a bias lowers it, too.
    """
    significant = [name for name, p in test.adjusted_p_values_.items() if p <= LEVEL]
    results = []
    if "bias_and_spread" in significant:
        scores: Any = ForecastOmnibus(data).components["bias_and_spread"]
        # (3, C), of all samples first
        sums = scores.standardized_sums(scores.error.observed[None])[:, 0]
        size = np.abs(sums)
        score = normal_scores(*data.forecast.pit_bounds(data.value))[_FIRST_MOMENT]
        # a bias also moves the means of z² − 1 and z³ − 3 z
        if abs(_sections.standardized_sum(data, score)) > CLEAR_GAP:
            size[1:, 0] = 0.0
        if size[0, 1:].max(initial=0.0) > _CLEAR_BIAS:  # this moves z² − 1, too
            size[:, 0] = size[1:] = 0.0
        kind, column = np.unravel_index(np.argmax(size), sums.shape)
        is_positive = sums[kind, column] > 0
        if kind != _FIRST_MOMENT and _has_heavy_tails(data):
            pass  # few errors decide on these
        elif kind == _SKEWNESS:
            side = "above" if is_positive else "below"
            text = f"the errors are skewed: outcomes far {side} the forecasts are too frequent"
            results.append(say("skewness", text, evidence="p_value_bias_and_spread"))
        elif column or names in ([], ["coverage"]):
            name, *words = [("level", "low", "high"), ("spread", "narrow", "wide")][kind]
            first, second = words if sums[kind, 0] > 0 else words[::-1]  # those on average
            addition = f" for some samples, less so or too {second} for others" if column else ""
            text = f"the forecasts are too {first}{addition}"
            results.append(say(name, text, evidence="p_value_bias_and_spread"))
    if significant == ["pit"] and not names:
        text = "the shape of the distributions is wrong; level and spread show no clear error"
        results.append(say("shape", text, evidence="p_value_pit"))
    return results


def _diagnose_coverage(data: ForecastData) -> list[Finding]:
    sharp = _sharpness(data)
    if sharp is None:
        return []
    law = pit_laws(*data.forecast.pit_bounds(data.value), folded=True)
    inside = np.array([pit_cdf(law, level) for level in sharp.levels])
    terms = zip(inside, np.sqrt(sharp.levels * (1 - sharp.levels)), strict=True)
    distance = (inside @ data.weight - sharp.levels) / [mean_margin(data, *pair) for pair in terms]
    worst = int(np.argmax(np.abs(distance)))
    if abs(distance[worst]) <= 1:
        return []
    many = "few" if distance[worst] < 0 else "many"
    text = (
        f"prediction intervals hold too {many} outcomes: those of {{interval_level:percent}} hold "
        "{pit_coverage:percent}"
    )
    coverage = float(inside[worst] @ data.weight)
    numbers = {"interval_level": float(sharp.levels[worst]), "pit_coverage": coverage}
    choice = "the level whose coverage is farthest from it, in standard errors"
    return [say("coverage", text, numbers, choice=choice)]
