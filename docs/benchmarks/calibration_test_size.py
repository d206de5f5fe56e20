"""How often CalibrationTest rejects calibrated models (its size) and others (its power).

pip install . && python docs/benchmarks/calibration_test_size.py
"""

import sys
import time

import numpy as np
from joblib import Parallel, delayed

from skcalib.hypothesis_tests import CalibrationTest

LEVELS = (0.01, 0.05, 0.10)
N_REPETITIONS = 2000
N_RESAMPLES = 99  # levels that are multiples of 0.01 are met exactly


def draw(proba, rng):
    uniform = rng.random((len(proba), 1))
    return (uniform >= np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1)


def p_value(n, n_classes, power, seed):
    """Predictions from a uniform distribution on the simplex; the truth is sharper by `power`."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    truth = proba**power / (proba**power).sum(axis=1, keepdims=True)
    test = CalibrationTest(n_resamples=N_RESAMPLES, random_state=seed, labels=np.arange(n_classes))
    return test.fit(proba, draw(truth, rng)).p_value_


def main(quick=False):
    print("| n | K | model | rejected at 0.01 | 0.05 | 0.10 | one test, s |")
    print("|---|---|---|---|---|---|---|")
    n_repetitions = 4 if quick else N_REPETITIONS
    parallel = Parallel(n_jobs=2)
    for power, model in ((1, "calibrated"), (1.25, "sharper truth")):
        for n in (20, 200, 2000):
            for n_classes in (2, 5):
                start = time.perf_counter()
                p_value(n, n_classes, power, 0)
                seconds = time.perf_counter() - start
                p = np.array(
                    parallel(
                        delayed(p_value)(n, n_classes, power, seed) for seed in range(n_repetitions)
                    )
                )
                rates = " | ".join(f"{np.mean(p <= level):.4f}" for level in LEVELS)
                print(f"| {n} | {n_classes} | {model} | {rates} | {seconds:.3f} |", flush=True)
    print(f"\n{n_repetitions} repetitions; four binomial standard deviations are, at these levels,")
    print(", ".join(f"{4 * np.sqrt(v * (1 - v) / n_repetitions):.4f}" for v in LEVELS) + ".")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
