"""Tests of many predictions and of a thousand classes: time, memory, and growth with the number.

Each row is measured in a process of its own, on one thread, with predictions that it reads from a
file. CPU seconds are those of user and system together. Memory is the largest resident set, less
what it was when the predictions had been read. The peer of the linear forms is the exact statistic,
as no other package has the squared kernel error of more than two classes in less than quadratic
time.

    python docs/benchmarks/large_tests.py [--quick] [NAME]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from many_classes import problem
from scipy.special import softmax

from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import squared_kernel_calibration_error
from skcalib.report import calibration_report

FOURIER = {"method": "fourier", "n_components": 50}


def sample(n, n_classes):
    """Calibrated predictions; of a thousand classes, those of a network that is overconfident."""
    if n_classes > 10:
        label, logits = problem(n, n_classes, seed=1)
        return softmax(logits, axis=1).astype(np.float32), label
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    label = (rng.random((n, 1)) > np.cumsum(proba, axis=1)).sum(axis=1)
    label = np.minimum(label, n_classes - 1)
    return (proba[:, 1] if n_classes == 2 else proba), label


def fitted(proba, label, *arguments, **options):
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    test = CalibrationTest(*arguments, labels=range(n_classes), random_state=0, **options)
    return test.fit(proba, label).p_value_


def default_test(proba, label):
    return fitted(proba, label)


def fourier_test(proba, label):
    return fitted(proba, label, "skce", metric_params=FOURIER)


def exact_test(proba, label):
    return fitted(proba, label, "skce")


def fourier_error(proba, label):
    return squared_kernel_calibration_error(
        label, proba, method="fourier", random_state=0, labels=range(proba.shape[1])
    )


def report(proba, label):
    found = calibration_report(label, proba, labels=range(proba.shape[1]), random_state=0)
    return f"{found.numbers['p_value']}, of {found.numbers['n_tested']} samples"


# What is measured, by name: the function, the number of classes, and the numbers of samples.
SIZES = (10**4, 10**5, 10**6)
CASES = {
    "default test": (default_test, 10, SIZES),
    "test of the kernel error, 50 frequencies": (fourier_test, 10, SIZES),
    "test of the exact kernel error": (exact_test, 10, SIZES[:1]),
    "default test, two classes": (default_test, 2, SIZES),
    "kernel error, 200 frequencies": (fourier_error, 10, SIZES),
    "default test, a thousand classes": (default_test, 1000, (50_000,)),
    "report, a thousand classes": (report, 1000, (50_000,)),
}


def used():
    """CPU seconds and the largest resident set in MB so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure_one(name, path):
    """Prints what one call takes, as JSON."""
    proba, label = np.load(f"{path}_proba.npy"), np.load(f"{path}_label.npy")
    (cpu, memory), start = used(), time.perf_counter()
    result = CASES[name][0](proba, label)
    seconds = time.perf_counter() - start
    more_cpu, more_memory = used()
    print(json.dumps([more_cpu - cpu, seconds, more_memory - memory, str(result)]))


def make(n, n_classes, path):
    for what, values in zip(("proba", "label"), sample(int(n), int(n_classes)), strict=True):
        np.save(f"{path}_{what}.npy", values)


def in_process(*arguments):
    """What this script prints in a process of its own, which a small one must start: a process
    starts with the largest resident set of what started it.
    """
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(
        command, env=os.environ | threads, check=True, stdout=subprocess.PIPE
    ).stdout


def measured(name, n, n_classes, folder):
    path = Path(folder, f"{n}_{n_classes}")
    if not path.with_name(f"{path.name}_label.npy").exists():
        in_process("--make", n, n_classes, path)
    return json.loads(in_process("--one", name, path))


def run(name_part, quick):
    exponents = []
    print("| what | K | n | CPU s | elapsed s | memory, MB | result |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, (_, n_classes, sizes) in CASES.items():
            if name_part not in name:
                continue
            if quick:
                n_classes, sizes = min(n_classes, 20), [sizes[0] // 100]
            cpu = []
            for n in sizes:
                *numbers, result = measured(name, n, n_classes, folder)
                cpu.append(numbers[0])
                shown = f"{numbers[0]:.2f} | {numbers[1]:.2f} | {numbers[2]:.0f}"
                print(f"| {name} | {n_classes} | {n} | {shown} | {result} |", flush=True)
            if len(sizes) > 1:
                growth = np.log(cpu[-1] / cpu[0]) / np.log(sizes[-1] / sizes[0])
                exponents.append(f"| {name} | {growth:.2f} |")
    print("\n| what | exponent of the CPU seconds, from the smallest n to the largest |\n|---|---|")
    print("\n".join(exponents))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="?", default="", help="a part of the names of what is run")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure_one(*options.one)
    elif options.make:
        make(*options.make)
    else:
        run(options.name, options.quick)


if __name__ == "__main__":
    main()
