"""How often the classical tests reject calibrated models (their size), and what the draws cost.

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
SETTINGS = {
    "uniform": (1.0, False),
    "uniform, weights": (1.0, True),
    "corners": (0.01, False),
    "corners, weights": (0.01, True),
}


def calibrated_problem(seed, n, law, weighted=False):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([law, law], size=n)[:, 1]
    weight = np.exp(1.34 * rng.normal(size=n)) if weighted else None
    return proba, (rng.random(n) < proba).astype(int), weight


def p_values(seeds, *setting):
    """For each of the tests, by each method, in columns."""
    rows = []
    for seed in seeds:
        proba, label, weight = calibrated_problem(seed, *setting)
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


def show_times(sizes):
    print("\n| CPU seconds for 999 draws | " + " | ".join(f"n = {n}" for n in sizes) + " |")
    print("|---|" + "---|" * len(sizes))
    for name, test in TESTS.items():
        seconds = []
        for n in sizes:
            proba, label, _ = calibrated_problem(0, n, 1.0)
            start = time.process_time()
            clone(test).set_params(random_state=0).fit(proba, label)
            seconds.append(f"{time.process_time() - start:.2f}")
        print(f"| {name} | " + " | ".join(seconds) + " |", flush=True)


def main(quick=False):
    n_repetitions = 20 if quick else 400
    parallel = Parallel(n_jobs=2)
    levels = " | ".join(f"{method} {level}" for method in METHODS for level in LEVELS)
    print(f"| predictions | n | test | {levels} |")
    print("|---|---|---|" + "---|" * 6)
    for title, (law, weighted) in SETTINGS.items():
        for n in (10, 50):
            show(title, n, parallel, n_repetitions, law, weighted)
    print(f"\n{n_repetitions} repetitions; four binomial standard deviations are, at these levels,")
    print(", ".join(f"{4 * np.sqrt(v * (1 - v) / n_repetitions):.3f}" for v in LEVELS) + ".")
    show_times((1000,) if quick else (1000, 10**5))


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
