"""Smooth calibration error: time and memory against n, beside relplot's smECE.

relplot.smECE is an approximate measure of the same kind (a kernel smoothing on a grid). It is not
the same number; it is what people use for speed. Run in an environment with relplot:

    pip install . relplot && python docs/benchmarks/smooth_calibration_error.py
"""

import sys
import time
import tracemalloc
import warnings

import numpy as np

from skcalib.metrics import smooth_calibration_error

warnings.simplefilter("ignore")
import relplot  # noqa: E402

# From uniform numbers to predictions and the true probabilities.
PROBLEMS = {
    "calibrated": lambda u: (u, u),
    "pure noise": lambda u: (u, np.full_like(u, 0.5)),
    "overconfident": lambda u: (u, 0.25 + u / 2),
    "biased": lambda u: (u, 0.15 + 0.8 * u),
    "wavy": lambda u: (u, np.clip(u + 0.1 * np.sin(20 * u), 0, 1)),
    "two decimals": lambda u: (np.round(u, 2), np.round(u, 2)),
    "all positive": lambda u: (u, np.ones_like(u)),
}


def best_time(function, repetitions):
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_arrays(function, n):
    """Peak of the memory that the call allocates, in arrays of n doubles."""
    tracemalloc.start()
    function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (8 * n)


def main(quick=False):
    sizes = (10**4, 10**5) if quick else (10**4, 10**5, 10**6, 10**7)
    rng = np.random.default_rng(0)
    print(
        "| predictions | n | skcalib, s | relplot.smECE, s | one argsort, s | peak, arrays of n |"
    )
    print("|---|---|---|---|---|---|")
    growth = {}
    for name, problem in PROBLEMS.items():
        for n in sizes:
            y_proba, truth = problem(rng.random(n))
            y_true = (rng.random(n) < truth).astype(int)
            outcome = y_true.astype(float)
            repetitions = 20 if n <= 10**5 else 7 if n == 10**6 else 3

            def ours(y_true=y_true, y_proba=y_proba):
                return smooth_calibration_error(y_true, y_proba, labels=[0, 1])

            def theirs(y_proba=y_proba, outcome=outcome):
                return relplot.smECE(y_proba, outcome)

            ours()
            theirs()
            seconds = best_time(ours, repetitions)
            growth.setdefault(name, []).append(seconds)
            print(
                f"| {name} | 1e{np.log10(n):.0f} | {seconds:.4f} | "
                f"{best_time(theirs, repetitions):.4f} | "
                f"{best_time(lambda p=y_proba: np.argsort(p), repetitions):.4f} | "
                f"{peak_arrays(ours, n):.1f} |",
                flush=True,
            )
    print(f"\nGrowth exponents, fitted from {sizes[0]:.0e} to {sizes[-1]:.0e}:\n")
    for name, seconds in growth.items():
        slope = np.polyfit(np.log10(sizes), np.log10(seconds), 1)[0]
        print(f"- {name}: {slope:.2f}")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
