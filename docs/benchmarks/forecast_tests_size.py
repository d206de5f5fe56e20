"""How often CalibrationTest rejects calibrated forecasts (its size) and others (its power).

pip install . && python docs/benchmarks/forecast_tests_size.py
"""

import sys
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
)
from skcalib.hypothesis_tests import CalibrationTest

N_REPETITIONS = 300
LEVELS = np.arange(1, 20) / 20

STATISTICS = {
    "skce": CalibrationTest("skce"),
    "quantile, l2": CalibrationTest("quantile_calibration_error", metric_params={"norm": "l2"}),
    "CRPS": CalibrationTest("continuous_ranked_probability_loss"),
}
FURTHER = {
    "quantile, max": CalibrationTest("quantile_calibration_error", metric_params={"norm": "max"}),
}
GIVEN_X = {
    "individual": CalibrationTest("skce", metric_params={"calibration": "individual"}),
    "local": CalibrationTest("skce", metric_params={"calibration": "local"}),
    "local error": CalibrationTest("local_calibration_error"),
}


# Calibrated forecasts of every kind, and outcomes


def moments(rng, n):
    return rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))


def normal(rng, n):
    mean, std = moments(rng, n)
    return GaussianForecast(mean, std), rng.normal(mean, std)


def mixture(rng, n):
    mean, std = rng.normal(size=(n, 2)), rng.uniform(0.3, 1, size=(n, 2))
    rows = np.arange(n), (rng.random(n) < 0.7).astype(int)
    return GaussianMixtureForecast(mean, std, [0.3, 0.7]), rng.normal(mean[rows], std[rows])


def gamma(rng, n):
    shape = np.exp(rng.normal(size=n))
    return DistributionForecast(stats.gamma(shape)), rng.gamma(shape)


def poisson(rng, n):
    mean = np.exp(rng.normal(size=n))
    return DistributionForecast(stats.poisson(mean)), rng.poisson(mean).astype(float)


def grid(rng, n):
    forecast, y = normal(rng, n)
    return QuantileForecast(forecast.quantiles(LEVELS), LEVELS), y


def residuals(rng, n):
    location, pool = rng.normal(size=n), rng.normal(size=100)
    return ResidualForecast(location, pool), location + rng.choice(pool, size=n)


def weighted_ensemble(rng, n):
    members, weights = rng.normal(size=(n, 10)), rng.dirichlet(np.ones(10), size=n)
    chosen = (rng.random((n, 1)) > np.cumsum(weights, axis=1)[:, :-1]).sum(axis=1)
    return EnsembleForecast(members, weights), members[np.arange(n), chosen]


def ensemble(rng, n, size):
    mean, std = moments(rng, n)
    values = rng.normal(mean[:, None], std[:, None], size=(n, size + 1))
    return EnsembleForecast(values[:, 1:]), values[:, 0]


CALIBRATED = {
    "normal": normal,
    "mixture": mixture,
    "gamma": gamma,
    "Poisson": poisson,
    "19 quantiles": grid,
    "residuals": residuals,
    "weighted ensemble": weighted_ensemble,
    "2 members": partial(ensemble, size=2),
    "5 members": partial(ensemble, size=5),
    "50 members": partial(ensemble, size=50),
}


# Normal forecasts that are wrong, outcomes, and a feature


def wrong(name, rng, n):
    mean, std = moments(rng, n)
    x, noise = rng.normal(size=n), rng.normal(size=n)
    if name == "too narrow":
        noise *= 1.25
    elif name == "too wide":
        noise *= 0.8
    elif name == "biased":
        noise += 0.2
    elif name == "skewed":
        noise = (rng.gamma(2.0, size=n) - 2) / np.sqrt(2)
    elif name == "biased with x":
        noise += np.where(x > 0, 0.3, -0.3)
    elif name == "width off with x":
        noise *= np.where(x > 0, 1.4, 0.6)
    return GaussianForecast(mean, std), mean + std * noise, x[:, None]


ALTERNATIVES = (
    "calibrated",
    "too narrow",
    "too wide",
    "biased",
    "skewed",
    "biased with x",
    "width off with x",
)


def generator(name, n, seed):
    """One for each cell of a table, so that the cells are independent of each other."""
    return np.random.default_rng([seed, n, *name.encode()])


def p_values_of_calibrated(name, n, seed):
    forecast, y = CALIBRATED[name](generator(name, n, seed), n)
    p_values = []
    for statistic, test in STATISTICS.items():
        if statistic == "CRPS" and isinstance(forecast, QuantileForecast):
            p_values.append(np.nan)  # refused: draws from quantiles are cells
            continue
        test.set_params(n_resamples=19, random_state=seed)  # meets multiples of 0.05 exactly
        p_values.append(test.fit(forecast, y).p_value_)
    return p_values


def p_values_of_wrong(name, n, seed):
    forecast, y, x = wrong(name, generator(name, n, seed), n)
    values = []
    for test in (STATISTICS | FURTHER | GIVEN_X).values():
        given = x if test in GIVEN_X.values() else None
        test.set_params(n_resamples=99, random_state=seed)
        values.append(test.fit(forecast, y, given=given).p_value_)
    return values


def p_values_of_reversed(n, seed):
    """N(−x, 1) for N(x, 1): marginally calibrated, and nothing more."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    forecast, y = GaussianForecast(-x, np.ones(n)), rng.normal(x)
    test = CalibrationTest("skce", metric_params={"calibration": "marginal"}, n_resamples=99)
    return [
        test.set_params(method=method, random_state=seed).fit(forecast, y).p_value_
        for method in ("conditional", "asymptotic")
    ]


def rates(parallel, function, arguments, n_repetitions, level):
    """Shares of rejections at a level, one for each statistic."""
    p = np.array(parallel(delayed(function)(*arguments, seed) for seed in range(n_repetitions)))
    return np.where(np.isnan(p).any(axis=0), np.nan, np.mean(p <= level + 1e-9, axis=0))


def table(title, columns, rows):
    print(f"{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for names, values in rows:
        cells = [
            *map(str, names),
            *("–" if np.isnan(value) else f"{value:.3f}" for value in values),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
    print()


def main(quick=False):
    parallel = Parallel(n_jobs=2)
    n_repetitions = 4 if quick else N_REPETITIONS
    sizes = {5: 1} if quick else {5: 1, 10: 1, 50: 1, 500: 1 / 4}  # shares of the repetitions
    deviations = 4 * np.sqrt(0.1 * 0.9 / n_repetitions)
    table(
        f"Calibrated forecasts rejected at 0.1; four standard deviations are {deviations:.3f}, and "
        f"{2 * deviations:.3f} for n = 500.",
        ["forecast", "n", *STATISTICS],
        (
            (
                (name, n),
                rates(parallel, p_values_of_calibrated, (name, n), int(n_repetitions * share), 0.1),
            )
            for name in CALIBRATED
            for n, share in sizes.items()
        ),
    )
    n_repetitions = 4 if quick else N_REPETITIONS // 3
    deviations = 4 * np.sqrt(0.05 * 0.95 / n_repetitions)
    table(
        "Normal forecasts rejected at 0.05; four standard deviations are at most "
        f"{4 * np.sqrt(0.25 / n_repetitions):.3f}, for those that are calibrated {deviations:.3f}.",
        ["forecast", "n", *STATISTICS, *FURTHER, *GIVEN_X],
        (
            ((name, n), rates(parallel, p_values_of_wrong, (name, n), n_repetitions, 0.05))
            for name in ALTERNATIVES
            for n in ((10,) if quick else (100,))
        ),
    )
    n_repetitions = 4 if quick else N_REPETITIONS
    deviations = 4 * np.sqrt(0.05 * 0.95 / n_repetitions)
    table(
        "Forecasts that are only marginally calibrated, tested for that, rejected at 0.05; four "
        f"standard deviations are {deviations:.3f}.",
        ["n", "conditional", "asymptotic"],
        (
            ((n,), rates(parallel, p_values_of_reversed, (n,), n_repetitions, 0.05))
            for n in ((20,) if quick else (25, 100))
        ),
    )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
