"""Measures and tests of forecasts: numbers and time, beside other packages.

All get the same normal forecasts, whose standard deviations are too small by a fifth. Run in an
environment with the peers (those that are missing are left out):

    pip install . scoringrules numba properscoring uncertainty-toolbox && \
        python docs/benchmarks/forecast_metrics.py

scoringrules computes with NumPy, or with numba if that is asked for; both are measured.
properscoring takes numba if it is installed. The calls take turns. A time is in CPU seconds, the
shortest of five; of a p-value there is one.
"""

import itertools
import sys
import time
import warnings
from importlib import import_module

import numpy as np

from skcalib.forecasts import EnsembleForecast, GaussianForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    distribution_matching_error,
    local_calibration_error,
    quantile_calibration_error,
    score_decomposition,
)

warnings.simplefilter("ignore")

N_MEMBERS = 50


def problem(n, seed=0):
    """Outcomes, means and standard deviations, members and features."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    y = mean + std * rng.normal(size=n)
    members = mean[:, None] + std[:, None] * rng.normal(size=(n, N_MEMBERS))
    return y, mean, 0.8 * std, members, rng.normal(size=(n, 2))


def scoringrules_normal(backend):
    def score(y, mean, std, members, x):
        scoringrules = import_module("scoringrules")
        import_module(backend)
        return scoringrules.crps_normal(y, mean, std, backend=backend).mean()

    return score


def scoringrules_ensemble(backend):
    def score(y, mean, std, members, x):
        scoringrules = import_module("scoringrules")
        import_module(backend)
        return scoringrules.crps_ensemble(y, members, backend=backend).mean()

    return score


def properscoring_ensemble(y, mean, std, members, x):
    import properscoring

    return properscoring.crps_ensemble(y, members).mean()


def toolbox(y, mean, std, members, x):
    import uncertainty_toolbox

    return uncertainty_toolbox.mean_absolute_calibration_error(
        mean, std, y, num_bins=100, prop_type="quantile"
    )


def matching(**options):
    return lambda y, mean, std, members, x: distribution_matching_error(y, (mean, std), **options)


def p_value(**params):
    def run(y, mean, std, members, x):
        test = CalibrationTest("skce", random_state=0, metric_params=params)
        return test.fit(GaussianForecast(mean, std), y).p_value_

    return run


# name: function, largest number of samples
METHODS = {
    "CRPS, normal": (
        lambda y, mean, std, *_: continuous_ranked_probability_loss(y, (mean, std)),
        10**6,
    ),
    "CRPS, normal, scoringrules with numba": (scoringrules_normal("numba"), 10**6),
    "CRPS, normal, scoringrules with NumPy": (scoringrules_normal("numpy"), 10**6),
    f"CRPS, {N_MEMBERS} members": (
        lambda y, m, s, members, x: continuous_ranked_probability_loss(
            y, EnsembleForecast(members)
        ),
        10**5,
    ),
    f"CRPS, {N_MEMBERS} members, scoringrules with numba": (scoringrules_ensemble("numba"), 10**5),
    f"CRPS, {N_MEMBERS} members, scoringrules with NumPy": (scoringrules_ensemble("numpy"), 10**5),
    f"CRPS, {N_MEMBERS} members, properscoring": (properscoring_ensemble, 10**5),
    "CRPS decomposition": (
        lambda y, mean, std, *_: score_decomposition(y, (mean, std), score="crps").miscalibration,
        10**4,
    ),
    "quantile calibration error, all levels": (
        lambda y, mean, std, *_: quantile_calibration_error(y, (mean, std)),
        10**6,
    ),
    "quantile calibration error, 100 levels, uncertainty-toolbox": (toolbox, 10**6),
    "local calibration error": (
        lambda y, mean, std, members, x: local_calibration_error(y, (mean, std), given=x),
        10**4,
    ),
    "matching error, exact": (matching(), 10**4),
    "matching error, Fourier": (matching(method="fourier", random_state=0), 10**6),
    "matching error, quantile": (matching(calibration="quantile"), 10**6),
    "p-value, 999 draws, exact": (p_value(), 10**3),
    "p-value, 999 draws, Fourier": (p_value(method="fourier", random_state=0), 10**4),
}


def main(quick=False):
    sizes = [10**3] if quick else [10**3, 10**4, 10**5, 10**6]
    print("| n | what | number | seconds |\n|---|---|---|---|")
    for n in sizes:
        data = problem(n)
        methods = {
            name: function
            for name, (function, largest) in METHODS.items()
            if n <= largest and not (quick and name.startswith("p-value"))
        }
        seconds, values = {name: np.inf for name in methods}, {}
        for turn, name in itertools.product(range(5), methods):
            if name in seconds and not (turn and name.startswith("p-value")):
                start = time.process_time()
                try:
                    values[name] = methods[name](*data)
                except ImportError:
                    del seconds[name]
                    continue
                seconds[name] = min(seconds[name], time.process_time() - start)
        for name, best in seconds.items():
            print(f"| {n} | {name} | {values[name]:.6g} | {best:.2g} |", flush=True)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
