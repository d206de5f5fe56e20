"""The base of all tests: their input, their draws and their p-values."""

import sys
from time import perf_counter

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.drawing import seeded_batches
from .._inputs.estimators import check_fit_input
from .._inputs.groups import codes_by_appearance
from .._inputs.predictions import Predictions
from .._inputs.probabilities import check_no_forecast, is_forecast
from .._inputs.warnings import announce
from .._statistics.base import TIE
from ..forecasts._data import ForecastData, check_forecasts, check_no_labels, with_given

# From this many batches of draws on, the first one is timed.
_MANY_BATCHES = 32


class HypothesisTest(BaseEstimator):
    """An estimator of probabilities and labels, or of forecasts and outcomes."""

    @property
    def _fits_in_place(self) -> bool:
        """True if tensors stay on their device."""
        return False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags


def forget(test, *names):
    """Delete what an earlier fit set, and this one may not set."""
    for name in names:
        if hasattr(test, name):
            delattr(test, name)


def check_test_input(test, X, y, sample_weight, given) -> Predictions | ForecastData:
    """The arguments of `fit` of a test that takes probabilities or forecasts.

    Sets what scikit-learn's estimators know of X, and the classes if there are any.
    """
    if not is_forecast(X):
        predictions = with_given(
            check_fit_input(test, X, y, sample_weight), y, given, sample_weight
        )
        test.classes_ = predictions.classes
        return predictions
    check_no_labels(test.labels)
    data = check_forecasts(y, X, sample_weight=sample_weight, given=given, names=("y", "X"))
    forget(test, "classes_", "feature_names_in_")
    test.n_features_in_ = 1  # as for a one-dimensional array
    return data


def check_class_input(test, X, y, sample_weight) -> Predictions:
    """The arguments of `fit` of a test that takes probabilities of classes only."""
    check_no_forecast(is_forecast(X), X, "X")
    return check_fit_input(test, X, y, sample_weight)


def as_p_value(probability):
    """A p-value as a float; positive also where it underflows, or where the data are impossible."""
    return max(float(probability), sys.float_info.min)


def monte_carlo_p_value(statistic, null, resolution=0.0):
    """(1 + #{T* ≥ T}) / (1 + B) for the statistic T of the data and B drawn values T*.

    Values that differ by at most the `resolution` count as equal, too.
    """
    values = np.append(null, statistic)
    if not np.isfinite(values).all():
        raise ValueError(
            f"statistic must be finite for every label vector; found {statistic!r} for the data "
            f"and {np.sum(~np.isfinite(null))} value(s) that are not finite among the resampled "
            "ones. If it fails where a class does not occur among the labels, let it take an "
            "argument `labels`, in which it gets the classes."
        )
    slack = max(TIE * np.abs(values).max(), resolution)
    return (1 + int(np.sum(null >= statistic - slack))) / (1 + len(null))


def redrawn_p_value(statistic, null, alternative="greater", resolution=0.0):
    """`monte_carlo_p_value` against one side, or twice the smaller one of both, at most 1.

    An infinite statistic belongs to impossible data, and counts as beyond all finite ones.
    """
    values = np.append(null, statistic)
    bound = 1 + 2 * np.abs(values).max(where=np.isfinite(values), initial=0.0)
    values = np.clip(values, -bound, bound)
    sides = {"greater": [1], "less": [-1], "two-sided": [1, -1]}[alternative]
    p_values = [
        monte_carlo_p_value(side * values[-1], side * values[:-1], resolution) for side in sides
    ]
    return min(1.0, len(sides) * min(p_values))


def draw_signs(groups, n_draws, generator):
    """Random signs (n_draws, n), the same for all samples of a group."""
    code = codes_by_appearance(groups)
    return generator.choice([-1.0, 1.0], size=(n_draws, int(code.max()) + 1))[:, code]


def draws(test, statistic, evaluate, data, order=None, least_batches=None):
    """The values of all draws of a test, (n_resamples, ...), spread among its jobs.

    `evaluate` is one of the functions below. The data are in canonical order if `order` is None.
    """
    batches = seeded_batches(
        test.n_resamples,
        statistic.numbers_per_draw,
        least_batches or statistic.least_batches,
        check_random_state(test.random_state),
    )
    first: list = []
    if len(batches) >= _MANY_BATCHES:  # the first one tells how long the others take
        start = perf_counter()
        first = [evaluate(statistic, data, order, *batches[0])]
        seconds = (perf_counter() - start) * len(batches) / effective_n_jobs(test.n_jobs)
        announce(
            seconds,
            f"n_resamples={test.n_resamples}",
            "Choose fewer, raise n_jobs, or pass a random subsample of the rows. For a kernel "
            "error of more than two classes, metric_params={'method': 'fourier'} is fast.",
        )
    null = Parallel(n_jobs=test.n_jobs, verbose=test.verbose)(
        delayed(evaluate)(statistic, data, order, *batch) for batch in batches[len(first) :]
    )
    return np.concatenate([*first, *null])


def of_redrawn_outcomes(statistic, data, order, size, seed):
    """Values for outcomes drawn in the canonical order."""
    generator = np.random.default_rng(seed)
    if statistic.adds_up:
        return statistic.of_redrawn(order, size, generator)
    if order is None:
        return statistic(data.redraw(generator, size))
    drawn = data.take(order).redraw(generator, size)
    outcomes = np.empty_like(drawn)
    outcomes[:, order] = drawn
    return statistic(outcomes)


def of_drawn_signs(statistic, data, order, size, seed):
    """Values for the observed residuals, those of a whole group multiplied by a random sign."""
    return statistic.of_signs(draw_signs(data.groups, size, np.random.default_rng(seed)))


def of_resampled_data(statistic, data, order, size, seed):
    """Values for predictions drawn from the predictions, and outcomes drawn from these."""
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(size):
        resample = data.take(order[generator.integers(len(order), size=len(order))])
        values.append(statistic.on(resample)(resample.redraw(generator, 1))[0])
    return np.array(values)
