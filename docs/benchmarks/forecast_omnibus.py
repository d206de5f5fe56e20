"""How much power the default test of forecasts has, beside each of its components.

pip install . && python docs/benchmarks/forecast_omnibus.py [--quick] [third_moment]
"""

import sys

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from skcalib._statistics.omnibus_forecasts import BiasAndSpread
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
)
from skcalib.hypothesis_tests import CalibrationTest

N_SAMPLES, N_REPETITIONS, N_CALIBRATED = 200, 40, 300
LEVELS = np.arange(1, 10) / 10
SEED = 2026
COMPONENTS = ["skce", "pit", "bias_and_spread"]
MUCH = 0.15


# What is wrong: standardised errors in the place of those forecast; x moves the forecast's mean.

WRONG = {
    "calibrated": lambda rng, e, x: e,
    "width x 0.5": lambda rng, e, x: 2.0 * e,
    "width x 0.8": lambda rng, e, x: 1.25 * e,
    "width x 1.25": lambda rng, e, x: 0.8 * e,
    "width x 2": lambda rng, e, x: 0.5 * e,
    "bias of 0.2": lambda rng, e, x: e + 0.2,
    "bias with the mean": lambda rng, e, x: e + np.where(x > 0, 0.3, -0.3),
    "bias in hidden halves": lambda rng, e, x: e + rng.choice([-1.0, 1.0], len(e)),
    "width with the mean": lambda rng, e, x: e * np.where(x > 0, 1.5, 1 / 1.5),
    "width in hidden halves": lambda rng, e, x: e * rng.choice([1.6, 0.5], len(e)),
    "skewed": lambda rng, e, x: (rng.gamma(2.0, size=len(e)) - 2) / np.sqrt(2),
    "t3 errors": lambda rng, e, x: rng.standard_t(3, size=len(e)) / np.sqrt(3),
    "other way for half": lambda rng, e, x: e * np.where(rng.random(len(e)) < 0.5, -1, 1),
}
OF_ALL = [name for name in WRONG if name not in ("calibrated", "other way for half")]
FEW = ["width x 0.8", "width x 1.25", "bias of 0.2", "bias with the mean", "skewed"]


def moments(rng, n, ratio):
    """Means and standard deviations, and what moves the means."""
    x = rng.normal(size=n)
    return ratio * x, np.exp(0.5 * rng.normal(size=n)), x


def normal(rng, n, ratio, wrong):
    mean, std, x = moments(rng, n, ratio)
    return GaussianForecast(mean, std), mean + std * WRONG[wrong](rng, rng.normal(size=n), x)


def grid(rng, n, ratio, wrong):
    forecast, y = normal(rng, n, ratio, wrong)
    return QuantileForecast(forecast.quantiles(LEVELS), LEVELS), y


def ensemble(rng, n, ratio, wrong):
    forecast, y = normal(rng, n, ratio, wrong)
    return EnsembleForecast(forecast.sample(9, random_state=rng.integers(2**31))), y


def mixture(rng, n, ratio, wrong):
    """A narrow and a wide part; each forecast is skewed to the left or to the right."""
    mean, std, x = moments(rng, n, ratio)
    side, place = rng.choice([-1.0, 1.0], n), np.array([-0.4, 1.6]) / np.sqrt(0.89)
    width = 0.5 / np.sqrt(0.89)
    location = mean[:, None] + (side * std)[:, None] * place
    forecast = GaussianMixtureForecast(location, np.tile(width * std[:, None], 2), [0.8, 0.2])
    error = side * (place[(rng.random(n) < 0.2).astype(int)] + width * rng.normal(size=n))
    return forecast, mean + std * WRONG[wrong](rng, error, x)


def student(rng, n, ratio, wrong):
    """Five degrees of freedom; or four and thirty, of which the outcomes have the other."""
    mean, std, x = moments(rng, n, ratio)
    freedom = other = np.full(n, 5.0)
    if wrong == "swapped":
        freedom = rng.choice([4.0, 30.0], n)
        other = 34.0 - freedom
    error = rng.standard_t(other) * np.sqrt(1 - 2 / other)
    if wrong != "swapped":
        error = WRONG[wrong](rng, error, x)
    scale = std * np.sqrt(1 - 2 / freedom)
    return DistributionForecast(stats.t(freedom, loc=mean, scale=scale)), mean + std * error


def poisson(rng, n, ratio, wrong):
    x = rng.normal(size=n)
    mean = np.exp(1 + 0.5 * x) if ratio < 3 else np.minimum(np.exp(3 + 0.9 * x), 400)
    true = {"too low": 1.08 * mean, "flat": mean * np.exp(0.12 * x)}.get(wrong, mean)
    if wrong == "too narrow":
        true = 0.5 * rng.gamma(mean / 0.5)
    y = rng.poisson(true).astype(float)
    if wrong == "zeros":
        y[rng.random(n) < 0.06] = 0
    return DistributionForecast(stats.poisson(mean)), y


ROWS = [
    *((normal, ratio, wrong) for ratio in (0.3, 1, 3, 10, 30) for wrong in OF_ALL),
    *((mixture, ratio, "other way for half") for ratio in (0.3, 1, 3, 10, 30)),
    *((mixture, ratio, wrong) for ratio in (1, 10) for wrong in ("width x 0.8", "bias of 0.2")),
    *((student, ratio, wrong) for ratio in (3, 30) for wrong in ("swapped", *FEW[:3])),
    *((ensemble, ratio, wrong) for ratio in (0.3, 3, 30) for wrong in FEW),
    *((grid, ratio, wrong) for ratio in (0.3, 3, 30) for wrong in FEW),
    *(
        (poisson, ratio, wrong)
        for ratio in (1, 10)
        for wrong in ("too low", "flat", "too narrow", "zeros")
    ),
]
CALIBRATED = [(kind, 3) for kind in (normal, mixture, ensemble, grid)] + [(poisson, 1)]


def p_values(kind, ratio, wrong, n, seed):
    """Of the test, and of each component by itself."""
    forecast, y = kind(np.random.default_rng([seed, SEED]), n, ratio, wrong)
    test = CalibrationTest(n_resamples=99, random_state=seed).fit(forecast, y)
    return [test.p_value_, *(test.component_p_values_[name] for name in COMPONENTS)]


def powers(parallel, kind, ratio, wrong, n, n_repetitions):
    found = parallel(
        delayed(p_values)(kind, ratio, wrong, n, seed) for seed in range(n_repetitions)
    )
    return np.mean(np.array(found) <= 0.05 + 1e-9, axis=0)


def print_table(columns, rows):
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        cells = (f"{cell:.2f}" if isinstance(cell, np.floating) else str(cell) for cell in row)
        print(f"| {' | '.join(cells)} |", flush=True)
    print()


SHARP = {  # standardised errors of normal forecasts whose mean is the ratio times x
    "Γ(2)": lambda rng, x: (rng.gamma(2, size=len(x)) - 2) / np.sqrt(2),
    "Γ(8)": lambda rng, x: (rng.gamma(8, size=len(x)) - 8) / np.sqrt(8),
    "t3, variance right": lambda rng, x: rng.standard_t(3, size=len(x)) / np.sqrt(3),
    "2 % of outcomes + 4 sd": lambda rng, x: (
        rng.normal(size=len(x)) + 4 * (rng.random(len(x)) < 0.02)
    ),
    "sd × 1.15": lambda rng, x: 1.15 * rng.normal(size=len(x)),
    "sd × 0.87": lambda rng, x: 0.87 * rng.normal(size=len(x)),
    "sd by |x|": lambda rng, x: rng.normal(size=len(x)) * np.where(np.abs(x) > 0.6745, 1.4, 0.72),
    "bias 0.22 sd": lambda rng, x: rng.normal(size=len(x)) + 0.22,
    "bias 0.8 sd where x > 1": lambda rng, x: rng.normal(size=len(x)) + 0.8 * (x > 1),
    "bimodal": lambda rng, x: (
        0.8 * np.sign(rng.normal(size=len(x))) + 0.6 * rng.normal(size=len(x))
    ),
    "calibrated": lambda rng, x: rng.normal(size=len(x)),
}

# Faults that are looked at, with some of those, at all ratios.
MORE_SHARP = {
    "sd by exp(.5 x)": lambda rng, x: rng.normal(size=len(x)) * np.exp(0.5 * x - 0.25),
    "bimodal, parts at ± .9 sd": lambda rng, x: (
        0.9 * np.sign(rng.normal(size=len(x))) + np.sqrt(0.19) * rng.normal(size=len(x))
    ),
    "outcomes above 1 sd + .8": lambda rng, x: add_to_upper_tail(rng.normal(size=len(x))),
    "4 % of outcomes + 4 sd": lambda rng, x: (
        rng.normal(size=len(x)) + 4 * (rng.random(len(x)) < 0.04)
    ),
    "bias 1 sd where x > 1": lambda rng, x: rng.normal(size=len(x)) + (x > 1),
    "sd by a hidden half": lambda rng, x: (
        rng.normal(size=len(x)) * np.where(rng.random(len(x)) < 0.5, 1.3, 0.55)
    ),
    "bias by a hidden half": lambda rng, x: (
        rng.normal(size=len(x)) + np.where(rng.random(len(x)) < 0.5, 0.8, -0.8)
    ),
}
AT_ALL_RATIOS = (*MORE_SHARP, "sd by |x|", "t3, variance right", "Γ(2)", "calibrated")


def add_to_upper_tail(errors):
    return errors + 0.8 * (errors > 1)


def sharp_p_values(wrong, ratio, seed):
    """P-values of the default test and of bias and spread, without and with the third moment."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=150)
    y = ratio * x + (SHARP | MORE_SHARP)[wrong](rng, x)
    sum_scores, values = BiasAndSpread._sum_scores, []
    for n_moments in (2, 3):
        BiasAndSpread._sum_scores = lambda self, scores, m=n_moments: sum_scores(self, scores)[:m]
        test = CalibrationTest(n_resamples=99, random_state=seed)
        test.fit(GaussianForecast(ratio * x, np.ones(150)), y)
        values += [test.p_value_, test.component_p_values_["bias_and_spread"]]
    BiasAndSpread._sum_scores = sum_scores
    return values


def third_moment(quick=False):
    """What the third moment finds, and what it costs."""
    columns = ["errors", "ratio", "without", "default", "component without", "with"]
    cells = [(wrong, ratio) for wrong in list(SHARP)[:: 5 if quick else 1]
             for ratio in ((0.1, 3, 30) if wrong == "Γ(2)" else (30,))]  # fmt: skip
    print("## The third moment\n")
    print_table(columns, sharp_powers(cells, range(100, 102 if quick else 200), quick))
    cells = [(wrong, ratio) for wrong in AT_ALL_RATIOS for ratio in (0.1, 3, 30)]
    print("## At three ratios\n")
    seeds = range(200, 202 if quick else 240)
    print_table(columns, sharp_powers(cells[:: 9 if quick else 1], seeds, quick))


def sharp_powers(cells, seeds, quick):
    """Rows of an error, a ratio, and the power without and with the third moment."""
    for wrong, ratio in cells:
        p = Parallel(n_jobs=1 if quick else 2)(
            delayed(sharp_p_values)(wrong, ratio, seed) for seed in seeds
        )
        yield wrong, ratio, *np.mean(np.array(p)[:, [0, 2, 1, 3]] <= 0.05, axis=0)


def main(quick=False):
    parallel = Parallel(n_jobs=1 if quick else 2)
    n, n_repetitions = (30, 1) if quick else (N_SAMPLES, N_REPETITIONS)
    rows = ROWS[::9] if quick else ROWS
    power = np.array([powers(parallel, *row, n, n_repetitions) for row in rows])
    best = power[:, 1:].max(axis=1)
    behind = best - power[:, 0]
    print("# The default test of forecasts and its components\n")
    print(
        f"Rejections at 0.05 of forecasts that are wrong, with {n} samples, 99 draws and "
        f"{n_repetitions} repetitions. The ratio is that of the standard deviation of the means "
        "to the typical one of the forecasts. `skce` is the distribution matching error, which was "
        "the default alone.\n"
    )
    print("## In short\n")
    ratios = np.array([row[1] for row in rows])
    parts = {"all": ratios > 0} | {f"ratio {one}": ratios == one for one in np.unique(ratios)}
    names = ["default", *COMPONENTS, "best component"]
    print_table(
        ["rows", *names, "behind the best", "at most"],
        [
            (
                f"{title} ({some.sum()})",
                *power[some].mean(axis=0),
                best[some].mean(),
                behind[some].mean(),
                behind[some].max(),
            )
            for title, some in parts.items()
        ],
    )
    print(f"## More than {MUCH} behind\n")
    worst = [k for k in np.argsort(-behind) if behind[k] > MUCH]
    texts = [(kind.__name__, ratio, wrong) for kind, ratio, wrong in rows]
    columns = ["forecast", "ratio", "what is wrong", *names[:-1]]
    print_table(columns, [(*texts[k], *power[k]) for k in worst[:12]])
    print("## All rows\n")
    print_table(columns, [(*text, *values) for text, values in zip(texts, power, strict=True)])
    print("## Calibrated forecasts\n")
    n_repetitions = 2 if quick else N_CALIBRATED
    deviation = 4 * np.sqrt(0.05 * 0.95 / n_repetitions)
    print(
        f"40 samples, {n_repetitions} repetitions; four standard deviations are {deviation:.3f}.\n"
    )
    print_table(
        ["forecast", *names[:-1]],
        [
            (kind.__name__, *powers(parallel, kind, ratio, "calibrated", 40, n_repetitions))
            for kind, ratio in CALIBRATED
        ],
    )


if __name__ == "__main__":
    if "third_moment" not in sys.argv:
        main(quick="--quick" in sys.argv)
    third_moment(quick="--quick" in sys.argv)
