"""What the test of calibration measures, by name."""

from functools import partial
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from ..metrics._registry import ALL_METRICS, takes, with_params
from ..metrics._statistic import MetricStatistic, check_takes_given, check_takes_kind
from ._omnibus import Omnibus
from ._residual_sums import ScoreExcess

# What the test hands to a statistic itself; labels are drawn for the classes in their order.
_OWN = ("y_true", "y_proba", "y_forecast", "sample_weight", "labels", "pos_label", "given")

# What "skce" stands for.
_KERNEL_ERRORS = {
    "classes": "squared_kernel_calibration_error",
    "forecasts": "distribution_matching_error",
}

# Values of a statistic that differ by less than this share are equal but for rounding.
_ROUNDING = 1e-9

# Proper scores minus what the predictions expect of them.
_SCORES = ("log_loss", "brier_score_loss")

STATISTICS = {"auto", "omnibus", "skce", *_SCORES, *ALL_METRICS}


def statistic_of(test, data, *, weighted):
    """What a test measures of these data, as an object that takes batches of outcomes."""
    defaults = type(test)().get_params()
    names = [name for name in ("kernel", "bandwidth", "estimator") if name in defaults]
    own = {name: getattr(test, name) for name in names}
    chosen = {name: value for name, value in own.items() if value != defaults[name]}
    chosen |= test.metric_params or {}
    name = test.statistic
    if isinstance(name, str) and name == "auto":
        is_plain = data.kind == "classes" and test.method == "conditional" and not chosen
        name = "omnibus" if is_plain else "skce"
    if isinstance(name, str) and name in ("omnibus", *_SCORES):
        return _of_residual_sums(name, test, data, chosen)
    metric = _metric_of(name, data.kind)
    function = metric.function if metric else name
    is_random = data.kind == "forecasts" or chosen.get("method") == "fourier"
    if is_random and takes(function, "random_state"):
        chosen = {"random_state": _seed_apart(test.random_state)} | chosen
    batched = metric.statistic if metric else None
    if (
        batched
        and batched.kind in (data.kind, None)
        and chosen.keys() <= set(batched.parameter_constraints)
    ):
        check_takes_given(function, data)
        return batched.from_options(data, **chosen)
    function = with_params(function, chosen, _OWN)
    check_takes_given(function, data)
    return MetricStatistic(data, function, as_matrix=test.n_features_in_ > 1, weighted=weighted)


def _of_residual_sums(name, test, data, chosen):
    """The omnibus, or a score minus its expectation."""
    if data.kind != "classes":
        raise ValueError(
            f"statistic={name!r} is for probabilities of classes; found a forecast. Use 'skce', or "
            "the name of a metric of forecasts."
        )
    if data.given is not None:
        raise ValueError(
            "given must be None unless the statistic has an argument of this name; found one, "
            f"while {name!r} has none. Leave it out, or choose another statistic."
        )
    if test.method != "conditional":
        raise ValueError(
            f"method={test.method!r} is not for statistic={name!r}, whose law is only known by "
            "draws. Use method='conditional', which is exact."
        )
    if name == "omnibus":
        seed = partial(_seed_apart, test.random_state)  # asked for only where it is needed
        return Omnibus(data, n_resamples=test.n_resamples, seed=seed, **chosen)
    if chosen:
        raise ValueError(
            f"statistic={name!r} has no options; found {', '.join(map(repr, chosen))}. Leave them "
            "out, or use 'skce'."
        )
    return ScoreExcess(data, name)


def check_knows_draws(statistic, data, name):
    """Draws from quantiles are cells, so the statistic must not see where in them outcomes lie."""
    if data.kind == "classes" or data.forecast._as_drawn(data.value) is data.value:
        return
    outcomes = np.array([data.value, data.forecast._as_drawn(data.value)])
    value, as_drawn = statistic(outcomes)
    if abs(value - as_drawn) > max(statistic.resolution, _ROUNDING * abs(value)):
        raise ValueError(
            "statistic must depend on nothing but the cells between quantiles in which the "
            "outcomes lie: a QuantileForecast knows no more of them, so that cells are what is "
            f"drawn; found {name!r}, which depends on where in the cells they lie. Use 'skce' or "
            "'quantile_calibration_error', or forecasts of another kind."
        )


def _seed_apart(random_state):
    """A seed of what is random in the statistic, whose numbers are not those of the draws."""
    if isinstance(random_state, Integral):
        random_state = np.random.RandomState([int(random_state), 1])
    return int(check_random_state(random_state).randint(2**31 - 1))


def _metric_of(statistic, kind):
    """The entry of a metric by name, which must take this kind of predictions; else None."""
    if callable(statistic):
        return None
    name = _KERNEL_ERRORS[kind] if statistic == "skce" else statistic
    check_takes_kind(ALL_METRICS[name], kind, "statistic")
    return ALL_METRICS[name]
