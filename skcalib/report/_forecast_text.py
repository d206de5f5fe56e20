"""The text of a report on forecasts."""

import textwrap

from ..metrics._registry import FORECAST_METRICS

_LEVEL = 0.05

_TITLES = {
    **{name: entry.title for name, entry in FORECAST_METRICS.items() if entry.in_report},
    "mean_z": "mean standardised error",
    "rms_z": "root mean square standardised error",
    "mean_std": "mean standard deviation",
    "distribution_matching_error": "distribution matching error",
    "distribution_matching_ratio": "the same over its standard deviation by chance",
    "p_value": "p-value of the calibration test",
    "quantile_p_value": "p-value of the test of quantiles",
}


def forecast_advice(numbers: dict, found: list[str]) -> str:
    """A verdict by both p-values, what was found to be wrong, and a remedy."""
    p_values = [numbers[key] for key in ("p_value", "quantile_p_value") if key in numbers]
    p_value = min(1.0, len(p_values) * min(p_values))
    if p_value >= _LEVEL:
        return (
            f"No evidence of miscalibration (p = {p_value:.3g}): a calibrated forecast often "
            "deviates as much. Few samples cannot show more."
        )
    kind = "; ".join(found) or (
        "though spread and level agree with the outcomes on average, so the shape of the "
        "distributions is wrong, or they are wrong for a part of the samples"
    )
    return (
        f"Miscalibrated (p = {p_value:.3g}); {kind}. Recalibrate on data that the regressor was "
        "not fitted on, for instance with RecalibratedRegressor."
    )


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


def format_forecast_report(numbers: dict, advice: str) -> str:
    n_samples, n_tested = numbers["n_samples"], numbers["n_tested"]
    lines = [f"Calibration of {n_samples} forecasts", ""]
    for key, value in numbers.items():
        if (title := title_of_forecast_number(key)) is not None:
            lines.append(f"{title:<48}{value:{digits_of_forecast_number(key)}}")
    if n_tested < n_samples:
        lines.append(f"(tests, and the matching error, of {n_tested} samples chosen at random)")
    return "\n".join([*lines, "", textwrap.fill(advice, width=76)])
