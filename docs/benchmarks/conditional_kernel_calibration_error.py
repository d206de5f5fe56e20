"""Conditional kernel calibration error: time, memory, accuracy, and what debiasing does for it.

python docs/benchmarks/conditional_kernel_calibration_error.py [--quick]
"""

import sys
import time
import tracemalloc
from functools import partial

import numpy as np
from scipy.special import expit
from scipy.stats import spearmanr, truncnorm

from skcalib.metrics import (
    conditional_kernel_calibration_error,
    expected_calibration_error,
    joint_kernel_calibration_error,
)

DISTRIBUTIONS = {
    "uniform": (1, 1),
    "Beta(20, 20)": (20, 20),
    "Beta(0.2, 0.2)": (0.2, 0.2),
    "Beta(2, 20)": (2, 20),
    "Beta(1, 60)": (1, 60),
}

ckce = partial(conditional_kernel_calibration_error, labels=[0, 1], bandwidth=0.3)
debiased = partial(ckce, estimation="debiased")
standardized = partial(ckce, estimation="standardized")


def sample(n, n_classes, rng):
    y_proba = rng.dirichlet(np.ones(n_classes), size=n)
    sharper = y_proba**0.5 / np.sum(y_proba**0.5, axis=1, keepdims=True)
    below = rng.random((n, 1)) > np.cumsum(sharper, axis=1)
    return np.minimum(below.sum(axis=1), n_classes - 1), y_proba


def methods(quick):
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
        print(
            f"| {n} | {method} | {seconds:.2f} | {peak:.0f} | {value:.6f} |",
            flush=True,
        )


def under_calibration(quick):
    """Labels drawn from the predictions. Features of the kernel where n is above 200."""
    print("\n## Under calibration\n")
    print("| predictions | n | mean | its error | deviation | its error | above 2 | CKCE |")
    print("|---|---|---|---|---|---|---|---|")
    rng, n_repeats = np.random.default_rng(0), 20 if quick else 200
    for name, parameters in DISTRIBUTIONS.items():
        for n in (50, 2000) if quick else (50, 100, 200, 500, 1000, 2000):
            values, plain = [], []
            for seed in range(n_repeats):
                p = rng.beta(*parameters, size=n)
                y = (rng.random(n) < p).astype(int)
                method = {"method": "exact" if n <= 200 else "fourier", "random_state": seed}
                values.append(standardized(y, p, **method))
                if seed < 20:
                    plain.append(ckce(y, p, **method))
            deviation = np.std(values)
            spread = np.std((values - np.mean(values)) ** 2) / (2 * deviation)
            print(
                f"| {name} | {n} | {np.mean(values):.3f} | {deviation / n_repeats**0.5:.3f} "
                f"| {deviation:.3f} | {spread / n_repeats**0.5:.3f} "
                f"| {np.mean(np.array(values) > 2):.3f} | {np.mean(plain):.5f} |",
                flush=True,
            )


def rare_errors():
    print("\n## Rare errors\n")
    print("0.9 is predicted where 0.5 is true, 0.2 where it is right; n = 2000.\n")
    print("| share of wrong predictions | CKCE | debiased | standardised | λ = 0.01 | debiased |")
    print("|---|---|---|---|---|---|")
    for share in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01):
        wrong = int(2000 * share)
        right, events = 2000 - wrong, int(0.8 * (2000 - wrong))
        p = np.repeat([0.9, 0.2], [wrong, right])
        y = np.repeat([0, 1, 0, 1], [wrong // 2, wrong - wrong // 2, events, right - events])
        small = {"regularization": 0.01}
        row = ckce(y, p), debiased(y, p), standardized(y, p), ckce(y, p, **small)
        cells = [f"{value:.4f}" for value in (*row, debiased(y, p, **small))]
        print(f"| {share} |", " | ".join(cells), "|", flush=True)


def same_map(quick):
    print("\n## The same map of errors\n")
    print("Events occur halfway between the prediction and ½; λ = 0.1, means of 10 samples.\n")
    print("| predictions | n | CKCE | debiased | standardised |\n|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for name, parameters in DISTRIBUTIONS.items():
        for n in (100,) if quick else (100, 400, 1600):
            rows = []
            for _ in range(10):
                p = rng.beta(*parameters, size=n)
                y = (rng.random(n) < (p + 0.5) / 2).astype(int)
                measures = ckce, debiased, standardized
                rows.append([measure(y, p, regularization=0.1) for measure in measures])
            cells = [f"{value:.4f}" for value in np.mean(rows, axis=0)]
            print(f"| {name} | {n} |", " | ".join(cells), "|", flush=True)


SLOPES = np.array([1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0])  # the true one is 1


def ranks(quick):
    """Eight models, ranked by each measure, whose true order is that of their slopes."""
    print("\n## Ranks of eight models\n")
    print("| test sets | ECE | JKCE | CKCE | debiased | standardised |\n|---|---|---|---|---|---|")
    measures = {
        "ECE": partial(expected_calibration_error, labels=[0, 1]),
        "JKCE": partial(joint_kernel_calibration_error, labels=[0, 1], bandwidth=0.3),
        "CKCE": partial(ckce, regularization=0.1),
        "debiased": partial(debiased, regularization=0.1),
        "standardised": partial(standardized, regularization=0.1),
    }
    rng = np.random.default_rng(0)
    for name, shifted, sized in (
        ("the same", False, False),
        ("shifted", True, False),
        ("of other sizes", False, True),
        ("shifted, of other sizes", True, True),
    ):
        rows = []
        for _ in range(2 if quick else 30):
            values = []
            common = truncnorm.rvs(-4, 4, scale=0.25, size=500, random_state=rng)
            common_y = rng.random(500) < expit(common)
            for slope in SLOPES:
                n = int(np.exp(rng.uniform(np.log(50), np.log(1000)))) if sized else 500
                x, y = common, common_y
                if shifted or sized:
                    place = rng.uniform(-1, 1) if shifted else 0.0
                    ends = (np.array([-1, 1]) - place) / 0.25
                    x = truncnorm.rvs(*ends, loc=place, scale=0.25, size=n, random_state=rng)
                    y = rng.random(n) < expit(x)
                p = expit(slope * x)
                values.append([measure(y.astype(int), p) for measure in measures.values()])
            rows.append([spearmanr(SLOPES, column).statistic for column in np.transpose(values)])
        error = np.std(rows, axis=0) / len(rows) ** 0.5
        cells = [f"{m:.2f} ± {e:.2f}" for m, e in zip(np.mean(rows, axis=0), error, strict=True)]
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def main(quick=False):
    methods(quick)
    under_calibration(quick)
    rare_errors()
    same_map(quick)
    ranks(quick)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
