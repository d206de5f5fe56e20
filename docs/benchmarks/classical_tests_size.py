"""How often the classical tests reject calibrated models (their size) and others (their power).

pip install . && python docs/benchmarks/classical_tests_size.py
"""

import sys
import time

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from skcalib.hypothesis_tests import (
    CalibrationInTheLargeTest,
    CalibrationSlopeTest,
    CoxTest,
    HosmerLemeshowTest,
    SpiegelhalterTest,
    UCMETest,
)

LEVELS = (0.01, 0.05, 0.10)

TESTS = {
    "Spiegelhalter": SpiegelhalterTest(),
    "in the large": CalibrationInTheLargeTest(),
    "slope": CalibrationSlopeTest(),
    "Cox": CoxTest(),
    "Hosmer–Lemeshow": HosmerLemeshowTest(),
    "UCME": UCMETest(),
}
METHODS = {"asymptotic": {}, "conditional": {"n_resamples": 199}}

# Parameter of the Dirichlet law of the predictions, and whether weights are those of an effective
# size of n/6: exp(1.34 Z) for normal Z.
SIZE_SETTINGS = {
    "uniform": (1.0, False),
    "uniform, weights": (1.0, True),
    "corners": (0.01, False),
    "corners, weights": (0.01, True),
}

# The labels are drawn from expit(shift + slope · logit p): the power, for uniform predictions.
TRUTHS = {"slope 0.8": (0.0, 0.8), "slope 1.25": (0.0, 1.25), "shift 0.3": (0.3, 1.0)}


def problem(seed, n, law, weighted=False, shift=0.0, slope=1.0):
    rng = np.random.default_rng(seed)
    negative, positive = rng.dirichlet([law, law], size=n).T
    odds = np.exp(shift) * positive**slope
    truth = odds / (odds + negative**slope)
    weight = np.exp(1.34 * rng.normal(size=n)) if weighted else None
    return positive, (rng.random(n) < truth).astype(int), weight


def p_values(seeds, *setting):
    """For each of the tests, by each method, in columns."""
    rows = []
    for seed in seeds:
        proba, label, weight = problem(seed, *setting)
        rows.append([])
        for test in TESTS.values():
            for method, options in METHODS.items():
                one = clone(test).set_params(method=method, labels=[0, 1], random_state=seed)
                one.set_params(**options).fit(proba, label, sample_weight=weight)
                rows[-1].append(one.p_value_)
    return rows


def show(title, n, parallel, n_repetitions, *setting):
    chunks = np.array_split(np.arange(n_repetitions), 20)
    columns = np.vstack(parallel(delayed(p_values)(seeds, n, *setting) for seeds in chunks)).T
    for k, name in enumerate(TESTS):
        rates = [
            " | ".join(f"{np.mean(column <= level):.3f}" for level in LEVELS)
            for column in columns[2 * k : 2 * k + 2]
        ]
        print(f"| {title} | {n} | {name} | {rates[0]} | {rates[1]} |", flush=True)


def head(first):
    levels = " | ".join(f"{method} {level}" for method in METHODS for level in LEVELS)
    print(f"\n| {first} | n | test | {levels} |")
    print("|---|---|---|" + "---|" * 6)


def show_times(sizes):
    print("\n| seconds for 999 draws | " + " | ".join(f"n = {n}" for n in sizes) + " |")
    print("|---|" + "---|" * len(sizes))
    for name, test in TESTS.items():
        seconds = []
        for n in sizes:
            proba, label, _ = problem(0, n, 1.0)
            start = time.perf_counter()
            clone(test).set_params(random_state=0).fit(proba, label)
            seconds.append(f"{time.perf_counter() - start:.2f}")
        print(f"| {name} | " + " | ".join(seconds) + " |", flush=True)


def main(quick=False):
    n_repetitions = 20 if quick else 600
    parallel = Parallel(n_jobs=2)
    head("calibrated")
    for title, (law, weighted) in SIZE_SETTINGS.items():
        for n in (10, 50) if quick else (10, 50, 200):
            show(title, n, parallel, n_repetitions, law, weighted)
    head("truth")
    for title, (shift, slope) in TRUTHS.items():
        show(title, 50 if quick else 200, parallel, n_repetitions, 1.0, False, shift, slope)
    print(f"\n{n_repetitions} repetitions; four binomial standard deviations are, at these levels,")
    print(", ".join(f"{4 * np.sqrt(v * (1 - v) / n_repetitions):.3f}" for v in LEVELS) + ".")
    show_times((1000,) if quick else (1000, 10**5))


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
