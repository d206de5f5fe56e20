"""Conditional kernel calibration error: time, memory and accuracy of its three methods.

python docs/benchmarks/conditional_kernel_calibration_error.py
"""

import sys
import time
import tracemalloc

import numpy as np

from skcalib.metrics import conditional_kernel_calibration_error


def sample(n, n_classes, rng):
    y_proba = rng.dirichlet(np.ones(n_classes), size=n)
    sharper = y_proba**0.5 / np.sum(y_proba**0.5, axis=1, keepdims=True)
    below = rng.random((n, 1)) > np.cumsum(sharper, axis=1)
    return np.minimum(below.sum(axis=1), n_classes - 1), y_proba


def main(quick=False):
    print("| n | method | s | peak, MB | value |\n|---|---|---|---|---|")
    for n, method, n_components in (
        (2000, "exact", 100),
        (2000, "fourier", 100),
        (2000, "nystroem", 2000),
        (5000, "exact", 100),
        (10**5, "fourier", 100),
        (10**5, "nystroem", 500),
        (10**6, "fourier", 100),
    ):
        if quick and n > 2000:
            continue
        data = sample(n, 10, np.random.default_rng(0))
        options = {"method": method, "n_components": n_components, "random_state": 0}
        options |= {"bandwidth": 0.5, "regularization": 0.1}
        start = time.perf_counter()
        value = conditional_kernel_calibration_error(*data, **options)
        seconds = time.perf_counter() - start
        tracemalloc.start()
        conditional_kernel_calibration_error(*data, **options)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        print(f"| {n} | {method} | {seconds:.2f} | {peak:.0f} | {value:.6f} |", flush=True)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
