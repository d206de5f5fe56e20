"""Kernel calibration error and its tests: time and memory, beside probcal.

Run in an environment with probcal:

    pip install . probcal && python docs/benchmarks/kernel_calibration_error.py
"""

import resource
import sys
import time
import warnings

import numpy as np

from skcalib.hypothesis_tests import CalibrationTest, UCMETest
from skcalib.metrics import squared_kernel_calibration_error

warnings.simplefilter("ignore")
from probcal import metrics as probcal  # noqa: E402


def sample(n, n_classes, rng):
    if n_classes == 2:
        y_proba = rng.random(n)
        return (rng.random(n) < y_proba).astype(int), y_proba
    y_proba = rng.dirichlet(np.ones(n_classes), size=n)
    below = rng.random((n, 1)) > np.cumsum(y_proba, axis=1)
    return np.minimum(below.sum(axis=1), n_classes - 1), y_proba


def best_time(function, repetitions):
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main(quick=False):
    shrink = 10 if quick else 1
    rng = np.random.default_rng(0)
    small, large, huge = (sample(n // shrink, 10, rng) for n in (10**3, 10**4, 10**5))
    binary = sample(10**4 // shrink, 2, rng)

    def skce(data, estimation="unbiased"):
        return squared_kernel_calibration_error(*data, estimation=estimation)

    def test(data, **options):
        return CalibrationTest("skce", random_state=0, **options).fit(*data[::-1])

    cases = [
        ("biased SKCE, n = 10³, K = 10", lambda: skce(small, "biased"), 20),
        ("unbiased SKCE, n = 10⁴, K = 10", lambda: skce(large), 3),
        ("linear SKCE, n = 10⁴, K = 10", lambda: skce(large, "linear"), 3),
        (
            "asymptotic p-value, 1000 resamples, n = 10⁴, K = 10",
            lambda: test(large, method="asymptotic", n_resamples=1000),
            1,
        ),
        ("conditional p-value, 999 resamples, n = 10⁴, K = 10", lambda: test(large), 1),
        ("UCME, 10 locations, n = 10⁵, K = 10", lambda: UCMETest().fit(*huge[::-1]), 1),
        ("unbiased SKCE, n = 10⁵, K = 10", lambda: skce(huge), 1),
    ]
    if quick:
        print("All sizes n are a tenth of those named.\n")
    print("| what | s | peak memory of the process so far, MB |")
    print("|---|---|---|")
    for name, function, repetitions in cases:
        seconds = best_time(function, repetitions)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {name} | {seconds:.3f} | {peak:.0f} |", flush=True)

    print("\nTwo classes, n = 10⁴ (the test with 99 resamples):\n")
    y_true, y_proba = binary
    ours = best_time(lambda: skce(binary), 5)
    theirs = best_time(lambda: probcal.skce(y_true, y_proba), 1)
    print(
        f"- unbiased SKCE: skcalib {ours:.4f} s, probcal {theirs:.2f} s, {theirs / ours:.0f} times"
    )
    ours = best_time(lambda: test(binary, n_resamples=99), 3)
    theirs = best_time(lambda: probcal.skce_test(y_true, y_proba, n_boot=99), 1)
    print(f"- test: skcalib {ours:.4f} s, probcal {theirs:.2f} s, {theirs / ours:.0f} times")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
