"""How often the classical tests reject calibrated models (their size) and others (their power).

pip install . && python docs/benchmarks/classical_tests_size.py
"""

import sys

import numpy as np
from joblib import Parallel, delayed

from skcalib.hypothesis_tests import CoxTest, HosmerLemeshowTest, SpiegelhalterTest

LEVELS = (0.01, 0.05, 0.10)
N_REPETITIONS = 2000

TESTS = {
    "Spiegelhalter": SpiegelhalterTest(labels=[0, 1]),
    "Hosmer–Lemeshow": HosmerLemeshowTest(labels=[0, 1]),
    "Hosmer–Lemeshow, 5 groups": HosmerLemeshowTest(5, labels=[0, 1]),
    "Hosmer–Lemeshow, ddof=2": HosmerLemeshowTest(ddof=2, labels=[0, 1]),
    "Cox": CoxTest(labels=[0, 1]),
}

# Law of the predictions, whether samples have exponential weights, and the slope of the truth on
# the logit scale: above 1 the model is underconfident, below 1 overconfident.
SETTINGS = [
    ("uniform", False, 1),
    ("uniform", True, 1),
    ("crowded", False, 1),
    ("crowded", True, 1),
    ("uniform", False, 1.25),
    ("uniform", False, 0.8),
]


def p_values(law, weighted, slope, n, seed):
    rng = np.random.default_rng(seed)
    proba = rng.random(n) if law == "uniform" else rng.beta(0.3, 0.3, size=n)
    truth = proba**slope / (proba**slope + (1 - proba) ** slope)
    label = (rng.random(n) < truth).astype(int)
    weight = rng.exponential(size=n) if weighted else None
    return [test.fit(proba, label, sample_weight=weight).p_value_ for test in TESTS.values()]


def main(quick=False):
    print("| predictions | weights | truth | n | test | rejected at 0.01 | 0.05 | 0.10 |")
    print("|---|---|---|---|---|---|---|---|")
    n_repetitions = 4 if quick else N_REPETITIONS
    parallel = Parallel(n_jobs=2)
    for law, weighted, slope in SETTINGS:
        for n in (200, 2000):
            p = np.array(
                parallel(
                    delayed(p_values)(law, weighted, slope, n, seed)
                    for seed in range(n_repetitions)
                )
            )
            weights = "exponential" if weighted else "equal"
            truth = "calibrated" if slope == 1 else f"slope {slope}"
            for name, column in zip(TESTS, p.T, strict=True):
                rates = " | ".join(f"{np.mean(column <= level):.4f}" for level in LEVELS)
                print(f"| {law} | {weights} | {truth} | {n} | {name} | {rates} |", flush=True)
    print(f"\n{n_repetitions} repetitions; four binomial standard deviations are, at these levels,")
    print(", ".join(f"{4 * np.sqrt(v * (1 - v) / n_repetitions):.4f}" for v in LEVELS) + ".")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
