"""The measures of the distance from calibration: time against n, beside the packages on PyPI.

The other packages' functions are what people use for the same purpose; most are approximate or
random forms, not the same numbers. Run in an environment with them:

    pip install . relplot MAPIE pycalib==0.1.0.dev6
    python docs/benchmarks/distance_from_calibration.py
"""

import sys
import time
import warnings

import cvxpy
import numpy as np

from skcalib import metrics

warnings.simplefilter("ignore")
import relplot  # noqa: E402
from mapie.metrics import calibration as mapie  # noqa: E402
from pycalib.metrics import binary_ECE  # noqa: E402
from scipy.optimize import brentq  # noqa: E402

SIZES = (10**4, 10**5, 10**6, 10**7)

# From uniform numbers to predictions and the true probabilities.
PROBLEMS = {
    "calibrated": lambda u: (u, u),
    "overconfident": lambda u: (u, 0.25 + u / 2),
    "two decimals": lambda u: (np.round(u, 2), np.round(u, 2)),
}

OURS = {
    "smooth": metrics.smooth_calibration_error,
    "Laplace": metrics.laplace_kernel_calibration_error,
    "smooth ECE": metrics.smooth_expected_calibration_error,
    "surrogate": lambda y, p, labels: metrics.interval_calibration_error(
        y, p, labels=labels, method="surrogate"
    ),
    "interval": metrics.interval_calibration_error,
    "cumulative": metrics.cumulative_calibration_error,
    "binned": metrics.expected_calibration_error,
    "lower": metrics.lower_distance_to_calibration,
}
THEIRS = {
    "relplot.smECE": lambda y, p: relplot.smECE(p, y.astype(float)),
    "relplot intCE_rand": lambda y, p: relplot.metrics.intCE_rand(p, y.astype(float)),
    "MAPIE KS": lambda y, p: mapie.kolmogorov_smirnov_statistic(y, p),
    "PyCalib binary_ECE": lambda y, p: binary_ECE(y, p, bins=15),
}


def best_time(function, *arguments, **options):
    """The best of as many calls as take a second, three to twenty."""
    times = []
    while len(times) < 3 or (len(times) < 20 and sum(times) < 1):
        start = time.perf_counter()
        function(*arguments, **options)
        times.append(time.perf_counter() - start)
    return min(times)


def sample(problem, n, rng):
    y_proba, truth = problem(rng.random(n))
    return (rng.random(n) < truth).astype(int), y_proba


def table(functions, sizes, rng, **options):
    growth = {}
    print(f"| predictions | n | {' | '.join(functions)} |")
    print("|---" * (2 + len(functions)) + "|")
    for name, problem in PROBLEMS.items():
        for n in sizes:
            y_true, y_proba = sample(problem, n, rng)
            seconds = [best_time(f, y_true, y_proba, **options) for f in functions.values()]
            growth.setdefault(name, []).append(seconds)
            row = " | ".join(f"{s:.4f}" for s in seconds)
            print(f"| {name} | 1e{np.log10(n):.0f} | {row} |", flush=True)
    return growth


def smooth_ece_by_quadrature(y_true, y_proba):
    """The fixed point, the kernel summed over its images, in 20 000 bins of the predictions."""
    bins = np.minimum((20_000 * y_proba).astype(int), 19_999)
    mass = np.bincount(bins, y_true - y_proba, 20_000) / len(y_true)
    point = (np.arange(20_000) + 0.5) / 20_000
    position = np.linspace(0, 1, 4001)

    def error(bandwidth):
        smoothed = np.zeros(4001)
        for image in (point - 2, -point, point, 2 - point, 2 + point):
            for rows in np.array_split(np.arange(4001), 40):
                distance = (position[rows, None] - image) / bandwidth
                smoothed[rows] += np.exp(-(distance**2) / 2) @ mass
        return np.trapezoid(np.abs(smoothed), position) / (bandwidth * np.sqrt(2 * np.pi))

    return brentq(lambda bandwidth: error(bandwidth) - bandwidth, 1e-3, 0.5, xtol=1e-6)


def main(quick=False):
    sizes = SIZES[:2] if quick else SIZES
    rng = np.random.default_rng(0)
    warm_up = sample(PROBLEMS["calibrated"], 1000, rng)
    for function in OURS.values():
        function(*warm_up, labels=[0, 1])
    for function in THEIRS.values():
        function(*warm_up)

    print("Seconds of skcalib:\n")
    growth = table(OURS, sizes, rng, labels=[0, 1])
    print(f"\nGrowth exponents, fitted from {sizes[0]:.0e} to {sizes[-1]:.0e}:\n")
    for name, seconds in growth.items():
        slopes = np.polyfit(np.log10(sizes), np.log10(seconds), 1)[0]
        print(f"- {name}:", ", ".join(f"{m} {s:.2f}" for m, s in zip(OURS, slopes, strict=True)))
    print("\nSeconds of others:\n")
    table(THEIRS, sizes[:-1], rng)
    if quick:
        return

    print("\nSmooth ECE at n = 10⁶ against quadrature:\n")
    for name, problem in PROBLEMS.items():
        data = sample(problem, 10**6, rng)
        exact = smooth_ece_by_quadrature(*data)
        ours = metrics.smooth_expected_calibration_error(*data)
        theirs = THEIRS["relplot.smECE"](*data)
        print(f"- {name}: quadrature {exact:.6f}, skcalib {ours:.6f}, relplot {theirs:.6f}")

    print("\nSmooth calibration error at n = 10⁴ as a linear program in CVXPY:\n")
    for name, problem in PROBLEMS.items():
        y_true, y_proba = sample(problem, 10**4, rng)
        points, index = np.unique(y_proba, return_inverse=True)
        mass = np.bincount(index, y_true - y_proba) / len(y_true)
        z = cvxpy.Variable(len(points))
        constraints = [cvxpy.abs(z) <= 1, cvxpy.abs(cvxpy.diff(z)) <= np.diff(points)]
        seconds = {"skcalib": best_time(OURS["smooth"], y_true, y_proba)}
        for solver in ("CLARABEL", "SCIPY", "HIGHS"):
            if solver in cvxpy.installed_solvers():
                start = time.perf_counter()
                program = cvxpy.Problem(cvxpy.Maximize(mass @ z), constraints)
                program.solve(solver=solver)
                seconds[solver] = time.perf_counter() - start
        print(f"- {name}:", ", ".join(f"{key} {s:.4f} s" for key, s in seconds.items()))


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
