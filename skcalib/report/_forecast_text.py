"""The text of a report on forecasts."""

import textwrap
from collections.abc import Sequence
from typing import Any

from ..metrics._registry import FORECAST_METRICS
from ._findings import LEVEL
from ._text import NOTE_ON_INTERVALS, format_subgroups
from ._verdict import MORE_DATA, SMALL, gain_in_words, what_may_be

_TITLES = {
    **{name: entry.title for name, entry in FORECAST_METRICS.items() if entry.in_report},
    "mean_z": "mean standardised error",
    "rms_z": "root mean square standardised error",
    "mean_std": "mean standard deviation",
    "distribution_matching_error": "distribution matching error",
    "distribution_matching_ratio": "the same over its standard deviation by chance",
    "p_value": "p-value of the calibration test",
    "quantile_p_value": "p-value of the test of quantiles",
    "subgroup_p_value": "p-value of the test of all subgroups",
    "gain": "CRPS that recalibration would gain",
}

_ERROR = "quantile_calibration_error"

_REMEDY = (
    "Recalibrate on data that the regressor was not fitted on, for instance with "
    "RecalibratedRegressor."
)


def forecast_advice(
    numbers: dict[str, Any],
    intervals: dict[str, tuple[float, float]],
    found: list[str],
    *,
    recalibrated: bool = False,
) -> str:
    """A verdict by all p-values, what was found to be wrong, and a remedy."""
    p_value = forecast_p_value(numbers)
    if p_value >= LEVEL:
        limit = what_may_be("quantile calibration error", _ERROR, numbers, intervals)
        return (
            f"No evidence of miscalibration (p = {p_value:.3g}): a calibrated forecast often "
            f"deviates as much. {limit}"
        )
    kind = "; ".join(found) or (
        "though spread and level agree with the outcomes on average, so the shape of the "
        "distributions is wrong, or they are wrong for a part of the samples"
    )
    verdict = "Still miscalibrated" if recalibrated else "Miscalibrated"
    remedy = MORE_DATA if recalibrated else _REMEDY + gain_in_words("CRPS", numbers, intervals)
    if numbers[_ERROR] < SMALL and numbers.get("p_value", 1.0) >= LEVEL:
        kind += (
            f". That is little, and may not matter: {numbers['quantile_n_tested']} samples can see "
            f"a quantile calibration error of {numbers[_ERROR]:.2g}"
        )
        remedy = "" if recalibrated else f"If it matters, {remedy[0].lower()}{remedy[1:]}"
    return f"{verdict} (p = {p_value:.3g}); {kind}. {remedy}".rstrip()


def forecast_p_value(numbers: dict[str, Any]) -> float:
    """That of both tests together."""
    p_values = [numbers[key] for key in ("p_value", "quantile_p_value") if key in numbers]
    return min(1.0, len(p_values) * min(p_values))


def title_of_forecast_number(key: str) -> str | None:
    """The title of a number; None if it has no line of its own."""
    for start, title in (("coverage_", "coverage of the"), ("mean_width_", "mean width of the")):
        if key.startswith(start):
            return f"{title} {key.removeprefix(start)} % intervals"
    return _TITLES.get(key)


def digits_of_forecast_number(key: str) -> str:
    """Four decimals of what lies in [0, 1], four digits of what has units."""
    if key == "distribution_matching_error":
        return "9.1e"
    in_unit = key.startswith("coverage_") or key.endswith(("p_value", "calibration_error"))
    return "9.4f" if in_unit else "#9.4g"


def format_forecast_report(
    numbers: dict,
    intervals: dict[str, tuple[float, float]],
    advice: str,
    subgroups: Sequence[dict[str, Any]] = (),
) -> str:
    n_samples, n_tested = numbers["n_samples"], numbers["n_tested"]
    lines = [f"Calibration of {n_samples} forecasts", ""]
    for key, value in numbers.items():
        if (title := title_of_forecast_number(key)) is not None:
            row = f"{title:<48}{value:{digits_of_forecast_number(key)}}"
            if key in intervals:
                row += f"   {forecast_ends(key, *intervals[key])}"
            lines.append(row)
    if intervals:
        lines.append(NOTE_ON_INTERVALS)
    if n_tested < n_samples:
        lines.append(
            f"(the matching error and its p-value are of {n_tested} samples, chosen at random)"
        )
    n_tested = numbers.get("quantile_n_tested", n_samples)
    if n_tested < n_samples:
        lines.append(f"(the test of quantiles is of {n_tested} samples, chosen at random)")
    if subgroups:
        lines += ["", format_subgroups(subgroups)]
    return "\n".join([*lines, "", textwrap.fill(advice, width=76)])


def forecast_ends(key: str, low: float, high: float) -> str:
    """An interval, with the digits of the number that it belongs to."""
    digits = digits_of_forecast_number(key)
    return f"{format(low, digits).strip()} to {format(high, digits).strip()}"
