"""Tensors on a GPU beside arrays of NumPy: elapsed seconds, and how much results differ.

Each call gets the same numbers twice: in arrays of NumPy, and in tensors of PyTorch that are on the
device already. Without a GPU the tensors stay on the CPU.

    python docs/benchmarks/on_a_gpu.py [--quick]
"""

import argparse
import os
import time

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before scikit-learn is imported

import numpy as np
import sklearn
import torch
from many_classes import problem

from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    conditional_kernel_calibration_error,
    squared_kernel_calibration_error,
)
from skcalib.recalibration import MatrixScalingRecalibrator, TemperatureRecalibrator

KERNEL = {"bandwidth": 0.3, "random_state": 0}


def few_classes(n, n_classes):
    """Calibrated predictions, uniform on the simplex, in double precision."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    label = (rng.random((n, 1)) > np.cumsum(proba, axis=1)).sum(axis=1)
    return np.minimum(label, n_classes - 1), proba


def many_classes(n, n_classes):
    """Logits of a network that is overconfident, in single precision; every class occurs."""
    label, logits = problem(n, n_classes, seed=1)
    label[:n_classes] = np.arange(n_classes)
    return label, logits.astype(np.float32)


def shares(n, n_classes):
    label, logits = many_classes(n, n_classes)
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    return label, proba / proba.sum(axis=1, keepdims=True)


def kernel_error(label, proba, **options):
    return squared_kernel_calibration_error(label, proba, **KERNEL, **options)


def kernel_test(label, proba, **params):
    test = CalibrationTest("skce", bandwidth=0.3, random_state=0, metric_params=params)
    return test.fit(proba, label).null_distribution_


def conditional_error(label, proba, **options):
    return conditional_kernel_calibration_error(label, proba, **KERNEL, **options)


def temperature(label, logits):
    return TemperatureRecalibrator(input_type="logits").fit(logits, label).temperature_


def matrix(label, logits):
    return MatrixScalingRecalibrator(input_type="logits").fit(logits, label).coef_


FOURIER = {"method": "fourier", "n_components": 50}

# What is measured: the function, its options, the predictions, and the numbers of them and classes.
CASES = {
    "kernel error, exact": (kernel_error, {}, few_classes, 20_000, 10),
    "kernel error, 200 frequencies": (kernel_error, {"method": "fourier"}, few_classes, 10**5, 10),
    "999 resamples, exact": (kernel_test, {}, few_classes, 5000, 10),
    "999 resamples, 50 frequencies": (kernel_test, FOURIER, few_classes, 10**5, 10),
    "conditional error, exact": (conditional_error, {}, few_classes, 5000, 10),
    "conditional error, 100 frequencies": (
        conditional_error,
        {"method": "fourier"},
        shares,
        50_000,
        1000,
    ),
    "temperature": (temperature, {}, many_classes, 50_000, 1000),
    "matrix scaling": (matrix, {}, many_classes, 20_000, 100),
}


def timed(function, *arrays, **options):
    start = time.perf_counter()
    result = function(*arrays, **options)  # it waits for the GPU, as it returns NumPy's arrays
    return np.asarray(result), time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    has_gpu = torch.cuda.is_available()
    device = "cuda" if has_gpu else "cpu"
    print(f"NumPy on {os.cpu_count()} cores; tensors on ", end="")
    print(torch.cuda.get_device_name() if has_gpu else "the CPU", end="\n\n")
    print("| what | K | n | type | NumPy, s | tensors, s | largest difference | largest value |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (function, options, data, n, n_classes) in CASES.items():
        if quick:
            n, n_classes = n // 50, min(n_classes, 20)
        label, predicted = data(n, n_classes)
        tensors = [torch.tensor(array, device=device) for array in (label, predicted)]
        expected, seconds = timed(function, label, predicted, **options)
        with sklearn.config_context(array_api_dispatch=True):
            function(*tensors, **options)  # the first call prepares the device
            result, on_device = timed(function, *tensors, **options)
        difference = f"{np.abs(result - expected).max():.0e} | {np.abs(expected).max():.2g}"
        kind = predicted.dtype.name
        print(
            f"| {name} | {n_classes} | {n} | {kind} | {seconds:.2f} | {on_device:.2f} "
            f"| {difference} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
