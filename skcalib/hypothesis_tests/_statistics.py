"""What the test of calibration measures, by name."""

from ..metrics._registry import ALL_METRICS, requires, takes, with_params
from ..metrics._statistic import MetricStatistic

# What the test hands to a statistic itself; labels are drawn for the classes in their order.
_OWN = ("y_true", "y_proba", "y_forecast", "sample_weight", "labels", "pos_label", "given")

# What "skce" stands for.
_KERNEL_ERRORS = {
    "classes": "squared_kernel_calibration_error",
    "forecasts": "distribution_matching_error",
}

STATISTICS = {"skce", *ALL_METRICS}


def statistic_of(test, data, *, weighted):
    """What a test measures of these data, as an object that takes batches of outcomes."""
    metric = _metric_of(test.statistic, data.kind)
    defaults = type(test)().get_params()
    own = {name: getattr(test, name) for name in ("kernel", "bandwidth", "estimator")}
    chosen = {name: value for name, value in own.items() if value != defaults[name]}
    chosen |= test.metric_params or {}
    check_takes_given(test.statistic if metric is None else metric.function, data.known)
    batched = metric.statistic if metric else None
    if batched and chosen.keys() <= set(batched.parameter_constraints):
        return batched.from_options(data, **chosen)
    return MetricStatistic(
        data,
        with_params(metric.function if metric else test.statistic, chosen, _OWN),
        as_matrix=test.n_features_in_ > 1,
        weighted=weighted,
    )


def _metric_of(statistic, kind):
    """The entry of a metric by name, which must take this kind of predictions; else None."""
    if callable(statistic):
        return None
    name = _KERNEL_ERRORS[kind] if statistic == "skce" else statistic
    check_takes_kind(ALL_METRICS[name], kind)
    return ALL_METRICS[name]


def check_takes_kind(metric, kind):
    """Metrics of classes take no forecasts, and most metrics of forecasts no classes."""
    if kind in metric.takes:
        return
    known = sorted(name for name, entry in ALL_METRICS.items() if kind in entry.takes)
    remedy = (
        "To measure classes, pass forecast.at_threshold(t) and y > t."
        if kind == "forecasts"
        else "Forecasts of a number are made by skcalib.forecasts."
    )
    raise ValueError(
        f"statistic must be a metric of {kind}, as these were passed as X; found {metric.name!r}. "
        f"Choose one of {known}. {remedy}"
    )


def check_takes_given(metric, known):
    """Nothing that is given may be ignored, and nothing that is required be missing."""
    name = getattr(metric, "__name__", "the statistic")
    if "given" in known and not takes(metric, "given"):
        raise ValueError(
            f"given must be None for a statistic that does not condition on anything; found one, "
            f"while {name} has no such argument. Leave it out, or choose another statistic."
        )
    if "given" not in known and requires(metric, "given"):
        raise ValueError(
            f"given must be passed to fit for {name}, which conditions on it; found None. Pass the "
            "features, fit(forecast, y, given=X)."
        )
