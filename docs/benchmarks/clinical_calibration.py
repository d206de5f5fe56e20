"""How often the intervals of `clinical_calibration` cover the truth.

pip install . && python docs/benchmarks/clinical_calibration.py [--quick] [groups]
"""

import sys
import time
from dataclasses import astuple

import numpy as np
from joblib import Parallel, delayed
from scipy import special, stats

from skcalib import metrics
from skcalib._data import check_predictions, with_groups
from skcalib.uncertainty import clinical_calibration
from skcalib.uncertainty._closed_form import (
    MEASURES,
    SIGNED_MEASURES,
    TwoClasses,
    compute_intervals,
)

N_REPETITIONS = {100: 150, 500: 150, 2000: 150}
N_CURVES = 20  # of groups
N_RESAMPLES = 79  # so that tails of 0.025 are met exactly
SCENES = {"calibrated": (1.0, 0.0), "overconfident": (1.5, -0.3)}
EVENTS = stats.beta(1, 4)  # the true risks: a fifth of the samples are events


def predictions(truth, scene):
    scale, shift = SCENES[scene]
    return special.expit(scale * special.logit(truth) + shift)


def population_values(scene, n_points=20_000, law=EVENTS):
    """The measures of the whole distribution: every point of a fine grid, with both labels."""
    truth = law.ppf((np.arange(n_points) + 0.5) / n_points)
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
    *measures, _ = astuple(result)  # the last one is the number of effective events
    return [interval[:3] for interval in measures]


# numbers and sizes of groups with the correlation of normal scores within them, the mean of the
# true risks in per cent, and the predictions
GROUPS = {
    "20 of 60 (.9), 380 pairs, 1.5 %": (((20, 60, 0.9), (380, 2, 0)), 1.5, "calibrated"),
    "the same, log-odds .5 too low": (((20, 60, 0.9), (380, 2, 0)), 1.5, "too low"),
    "200 Pareto sizes (.9), 3 %": (((200, "Pareto", 0.9),), 3, "calibrated"),
    "10 of 60 (.9), 190 pairs, 10 %": (((10, 60, 0.9), (190, 2, 0)), 10, "calibrated"),
    "30 of 10 to 600 (.1), 5 %": (((30, (10, 600), 0.1),), 5, "calibrated"),
    "100 of 6 (.5), 5 %": (((100, 6, 0.5),), 5, "calibrated"),
    "the same, overconfident": (((100, 6, 0.5),), 5, "overconfident"),
    "10 of 40 (.9), 100 singles, 30 %": (((10, 40, 0.9), (100, 1, 0)), 30, "calibrated"),
    "40 of 6 (0), 20 %": (((40, 6, 0.0),), 20, "calibrated"),
    "60 of 1 to 12 (.3), 20 %": (((60, (1, 12), 0.3),), 20, "calibrated"),
    "200 of 3 (.3), 10 %": (((200, 3, 0.3),), 10, "calibrated"),
    "25 of 20 (.1), 20 %": (((25, 20, 0.1),), 20, "calibrated"),
    "80 of 5 (.5), 30 %, weights": (((80, 5, 0.5),), 30, "calibrated"),
    "50 of 8 (.2), 50 %, overconfident": (((50, 8, 0.2),), 50, "overconfident"),
}
SCENES["too low"] = (1.0, -0.5)


def law_of(percent):
    return stats.beta(1.5, 1.5 * (100 / percent - 1))


def grouped_intervals(cell, seed):
    """Low and high of all measures, (7, 2), those without the score (4, 2), and events."""
    kinds, percent, scene = GROUPS[cell]
    rng = np.random.default_rng(seed)
    sizes, correlations = [], []
    for number, size, correlation in kinds:
        if size == "Pareto":
            drawn = np.minimum(np.ceil(rng.pareto(1.2, number)).astype(int), 200)
        else:
            low, high = size if isinstance(size, tuple) else (size, size)
            drawn = rng.integers(low, high + 1, number)
        sizes.append(drawn)
        correlations += [correlation] * number
    group = np.repeat(np.arange(len(correlations)), np.concatenate(sizes))
    shared = np.array(correlations)[group]
    score = np.sqrt(shared) * rng.normal(size=len(correlations))[group]
    score += np.sqrt(1 - shared) * rng.normal(size=len(group))
    truth = law_of(percent).rvs(len(group), random_state=rng)
    y_true = (stats.norm.cdf(score) < truth).astype(int)
    weight = np.exp(rng.normal(size=len(group))) if "weights" in cell else None
    if y_true.min() == y_true.max():
        return None
    data = {"sample_weight": weight, "groups": group, "labels": [0, 1]}
    y_proba = predictions(truth, scene)
    checked = check_predictions(y_true, y_proba, sample_weight=weight, labels=[0, 1])
    checked = with_groups(checked, y_true, group, weight)
    classes = TwoClasses(checked)
    changes = [MEASURES[name](classes) for name in SIGNED_MEASURES]
    ratio = changes[1].estimate
    changes[1] = changes[1].scale(1 / ratio, np.log(ratio))
    alone = np.array([change.limits(classes.units).interval(0.95) for change in changes])
    alone[1] = np.exp(alone[1])
    rows, _ = compute_intervals(checked)
    distances = np.full((3, 2), np.nan)
    if seed < N_CURVES:  # they take most of the time
        result = clinical_calibration(y_true, y_proba, **data, n_resamples=39, random_state=seed)
        distances = np.array([one[1:3] for one in astuple(result)[4:7]])
    return np.concatenate([rows[:, 1:], distances]), alone, classes.effective_n_events


def cover(ends, values):
    """How often ends (R, C, 2) cover the values (C, 1)."""
    low, high = ends[:, :, 0], ends[:, :, 1]
    covered = (low <= values[:, 0] + 1e-9) & (values[:, 0] <= high + 1e-9)
    return np.nanmean(np.where(np.isnan(low), np.nan, covered), axis=0)


def groups(quick):
    """Labels that depend on each other within groups."""
    measures = ("in the large", "O:E", "intercept", "slope", "ICI", "E50", "E90")
    print(f"| groups, share of events | effective events | {' | '.join(measures)} | "
          "without the score | width of O:E beside it |")  # fmt: skip
    print(f"|{'---|' * 11}")
    for cell in GROUPS:
        _, percent, scene = GROUPS[cell]
        values = np.array([*population_values(scene, 2000, law_of(percent)).values()])[:, None]
        if scene == "calibrated":
            values[:, 0] = 0, 1, 0, 1, 0, 0, 0
        rows = Parallel(n_jobs=1 if quick else 2)(
            delayed(grouped_intervals)(cell, seed) for seed in range(2 if quick else 150)
        )
        result, alone, events = zip(*filter(None, rows), strict=True)
        ends, alone = np.array(result), np.array(alone)
        covered, before = cover(ends, values), cover(alone, values[:4])
        width, before_width = np.diff(ends[:, 1])[:, 0], np.diff(alone[:, 1])[:, 0]
        is_finite = np.isfinite(width)  # a part of the samples may have no event
        width = width[is_finite] / before_width[is_finite]
        print(
            f"| {cell} | {np.median(events):.1f} | {' | '.join(f'{c:.2f}' for c in covered)} | "
            f"{', '.join(f'{c:.2f}' for c in before)} | {np.median(width):.1f} |",
            flush=True,
        )


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
    if "groups" not in sys.argv:
        main(quick="--quick" in sys.argv)
    print()
    groups(quick="--quick" in sys.argv)
