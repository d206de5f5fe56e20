"""How often the intervals of `clinical_calibration` cover the truth.

pip install . && python docs/benchmarks/clinical_calibration.py
"""

import sys
import time
from dataclasses import astuple

import numpy as np
from joblib import Parallel, delayed
from scipy import special, stats

from skcalib import metrics
from skcalib.uncertainty import clinical_calibration

N_REPETITIONS = {100: 150, 500: 150, 2000: 150}
N_RESAMPLES = 79  # so that tails of 0.025 are met exactly
SCENES = {"calibrated": (1.0, 0.0), "overconfident": (1.5, -0.3)}
EVENTS = stats.beta(1, 4)  # the true risks: a fifth of the samples are events


def predictions(truth, scene):
    scale, shift = SCENES[scene]
    return special.expit(scale * special.logit(truth) + shift)


def population_values(scene, n_points=20_000):
    """The measures of the whole distribution: every point of a fine grid, with both labels."""
    truth = EVENTS.ppf((np.arange(n_points) + 0.5) / n_points)
    y_true = np.repeat([0, 1], n_points)
    y_proba = np.tile(predictions(truth, scene), 2)
    weight = np.concatenate([1 - truth, truth])
    distances = [
        metrics.integrated_calibration_index(y_true, y_proba, sample_weight=weight, quantile=level)
        for level in (None, 0.5, 0.9)
    ]
    return {
        "calibration in the large": metrics.calibration_in_the_large(
            y_true, y_proba, sample_weight=weight
        ),
        "O:E ratio": metrics.observed_expected_ratio(y_true, y_proba, sample_weight=weight),
        "calibration intercept": metrics.calibration_intercept(
            y_true, y_proba, sample_weight=weight
        ),
        "calibration slope": metrics.calibration_slope(y_true, y_proba, sample_weight=weight),
        # calibrated: the grid would leave a little of its own
        **dict(
            zip(
                ("ICI", "E50", "E90"),
                [0.0] * 3 if scene == "calibrated" else distances,
                strict=True,
            )
        ),
    }


def intervals(scene, n, seed):
    """Estimate, low and high of all measures, (7, 3)."""
    rng = np.random.default_rng(seed)
    truth = EVENTS.rvs(size=n, random_state=rng)
    y_true = (rng.random(n) < truth).astype(int)
    result = clinical_calibration(
        y_true,
        predictions(truth, scene),
        labels=[0, 1],
        n_resamples=N_RESAMPLES,
        random_state=seed,
    )
    return [one[:3] for one in astuple(result)]


def main(quick=False):
    start = time.perf_counter()
    sizes = {100: 4} if quick else N_REPETITIONS
    print("| predictions | measure | n | true value | mean estimate | covered at 0.95 | ", end="")
    print("missed below, above | median interval |\n|---|---|---|---|---|---|---|---|")
    for scene in SCENES:
        values = population_values(scene)
        results = {
            n: np.array(
                Parallel(n_jobs=1 if quick else 2)(
                    delayed(intervals)(scene, n, seed) for seed in range(n_repetitions)
                )
            )
            for n, n_repetitions in sizes.items()
        }
        for k, (measure, value) in enumerate(values.items()):
            for n, result in results.items():
                estimate, low, high = result[:, k].T
                true = round(value, 3) + 0.0  # not -0.0
                covered = np.mean((low <= value) & (value <= high))
                print(
                    f"| {scene} | {measure} | {n} | {true:.3f} | {estimate.mean():.3f} | "
                    f"{covered:.3f} | {np.mean(low > value):.3f}, {np.mean(high < value):.3f} | "
                    f"{np.median(low):.3f} to {np.median(high):.3f} |"
                )
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
