"""How loose the radius is that holds at every number of samples.

pip install . && python docs/benchmarks/finite_sample_radius.py [--quick]
"""

import sys

import numpy as np

from skcalib import metrics
from skcalib.uncertainty import finite_sample_radius

N_REPETITIONS = {10**2: 200, 10**3: 200, 10**4: 100, 10**5: 40, 10**6: 20}
METRICS = {
    "smooth": (metrics.smooth_calibration_error, {}),
    "lower distance": (metrics.lower_distance_to_calibration, {}),
    "Laplace kernel": (metrics.laplace_kernel_calibration_error, {}),
    "interval, surrogate": (metrics.interval_calibration_error, {"method": "surrogate"}),
    "interval, grid of 0.1": (
        metrics.interval_calibration_error,
        {"method": "random-grid", "width": 0.1},
    ),
    "cumulative": (metrics.cumulative_calibration_error, {}),
}
# From predictions, uniform on [0, 1], to the probability of outcome 1.
LAWS = {"calibrated": lambda p: p, "overconfident": lambda p: 0.25 + p / 2}
N_POINTS = 100_000  # the whole distribution, for the value that is estimated


def whole(metric, params, chance):
    """The value on the whole distribution, on a fine grid of predictions."""
    points = (np.arange(N_POINTS) + 0.5) / N_POINTS
    weight = np.concatenate([1 - chance(points), chance(points)])
    y_true = np.repeat([0, 1], N_POINTS)
    return metric(y_true, np.tile(points, 2), sample_weight=weight, **params)


def errors(metric, params, chance, n, n_repetitions):
    """Estimates from as many samples."""
    for seed in range(n_repetitions):
        rng = np.random.default_rng(seed)
        proba = rng.random(n)
        outcome = (rng.random(n) < chance(proba)).astype(int)
        yield metric(outcome, proba, labels=[0, 1], **params)


def main(quick=False):
    sizes = {100: 5} if quick else N_REPETITIONS
    for law, chance in LAWS.items():
        heads = ["metric", "value", *(f"n = {n:,}" for n in sizes)]
        print(f"\n{law}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        for name, (metric, params) in METRICS.items():
            truth = whole(metric, params, chance)
            cells = []
            for n, n_repetitions in sizes.items():
                estimates = list(errors(metric, params, chance, n, n_repetitions))
                deviation = np.array(estimates) - truth
                actual = np.quantile(np.abs(deviation), 0.95)
                below, above = finite_sample_radius(metric.__name__, n, metric_params=params)
                covered = np.mean((deviation <= below) & (deviation >= -above))
                radius = max(below, above)
                cells.append(f"{radius:.2g} / {actual:.2g} = {radius / actual:.1f}")
                cells[-1] += "" if covered == 1 else f" (covers {covered:.2f})"
            print(f"| {name} | {truth:.4f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
