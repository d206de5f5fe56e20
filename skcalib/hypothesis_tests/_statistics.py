"""What the test of calibration measures, by name."""

from ..metrics._registry import ALL_METRICS, with_params
from ..metrics._statistic import MetricStatistic, check_takes_given, check_takes_kind

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
    function = metric.function if metric else test.statistic
    batched = metric.statistic if metric else None
    if (
        batched
        and batched.kind == data.kind
        and chosen.keys() <= set(batched.parameter_constraints)
    ):
        check_takes_given(function, data)
        return batched.from_options(data, **chosen)
    function = with_params(function, chosen, _OWN)
    check_takes_given(function, data)
    return MetricStatistic(data, function, as_matrix=test.n_features_in_ > 1, weighted=weighted)


def _metric_of(statistic, kind):
    """The entry of a metric by name, which must take this kind of predictions; else None."""
    if callable(statistic):
        return None
    name = _KERNEL_ERRORS[kind] if statistic == "skce" else statistic
    check_takes_kind(ALL_METRICS[name], kind, "statistic")
    return ALL_METRICS[name]
