"""How often the intervals of `clinical_calibration` cover the truth, and margins of decisions.

pip install . && python docs/benchmarks/clinical_calibration.py [--quick] [groups] [margins] [sites]
"""

import sys
import time
from dataclasses import astuple

import numpy as np
from joblib import Parallel, delayed
from scipy import special, stats

from skcalib import metrics
from skcalib._data import check_predictions, with_groups
from skcalib.decisions import bayes_action, expected_loss
from skcalib.forecasts import EnsembleForecast, GaussianForecast
from skcalib.uncertainty import clinical_calibration
from skcalib.uncertainty._clinical import combine_sites
from skcalib.uncertainty._closed_form import (
    MEASURES,
    SIGNED_MEASURES,
    TwoClasses,
    signed_limits,
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
    alone = np.array([change.limits().ends(0.025) for change in changes])
    alone[1] = np.exp(alone[1])
    signed = np.array([limits.interval(0.95) for limits in signed_limits((checked,))])
    distances = np.full((3, 2), np.nan)
    if seed < N_CURVES:  # they take most of the time
        result = clinical_calibration(y_true, y_proba, **data, n_resamples=39, random_state=seed)
        distances = np.array([one[1:3] for one in astuple(result)[4:7]])
    return np.concatenate([signed, distances]), alone, classes.effective_n_events


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


# the law of the predictions, groups (number, size, correlation), the logarithms' deviation of
# weights, thresholds
MARGINS = {
    "uniform, n 50": ((1, 1), ((50, 1, 0),), 0, (0.2, 0.8, 0.95)),
    "Beta(1, 19), n 100": ((1, 19), ((100, 1, 0),), 0, (0.02, 0.1, 0.2)),
    "Beta(.5, 99), n 1000": ((0.5, 99), ((1000, 1, 0),), 0, (0.005, 0.02, 0.04)),
    "uniform, n 500, weights": ((1, 1), ((500, 1, 0),), 1.5, (0.5, 0.8, 0.95)),
    "10 %, 50 of 10 (.3)": ((1, 9), ((50, 10, 0.3),), 0, (0.1, 0.3)),
    "10 %, 8 of 60 (.9), 100 pairs": ((1, 9), ((8, 60, 0.9), (100, 2, 0)), 0, (0.05, 0.1, 0.3)),
    "20 %, 6 of 50 (.5)": ((2, 8), ((6, 50, 0.5),), 0, (0.1, 0.3)),
    "10 %, 50 of 10 (0)": ((1, 9), ((50, 10, 0.0),), 0, (0.1, 0.3)),
    "25 %, 50 of 12 (.0) × 12 (.0)": ((1, 3), ((50, 12, 0.0),), 0, (0.1, 0.3)),
    "25 %, 50 of 12 (.2) × 12 (.2)": ((1, 3), ((50, 12, 0.2),), 0, (0.1, 0.3)),
    "25 %, 50 of 12 (.1) × 12 (.4)": ((1, 3), ((50, 12, 0.1),), 0, (0.1, 0.3)),
}


def margin_sample(cell, rng):
    """Predictions, labels of which they are true, weights or None, and groups (n, 1) or (n, 2)."""
    law, kinds, deviation, _ = MARGINS[cell]
    size = np.concatenate([np.full(number, size) for number, size, _ in kinds])
    within = np.concatenate([np.full(number, shared) for number, _, shared in kinds])
    group = np.repeat(np.arange(len(size)), size)
    n, within = len(group), within[group]
    proba = rng.beta(*law, size=n)
    score = np.sqrt(within) * rng.normal(size=len(size))[group]
    across = float(cell[-3:-1]) if "×" in cell else 0.0
    reader = np.arange(n) % 12
    score += np.sqrt(across) * rng.normal(size=12)[reader]
    score += np.sqrt(1 - within - across) * rng.normal(size=n)
    weight = np.exp(deviation * rng.normal(size=n)) if deviation else None
    groups = np.column_stack([group, reader]) if "×" in cell else group
    return proba, (stats.norm.cdf(score) < proba).astype(int), weight, groups


def empirical_error(weight, gap):
    """The standard error of a mean, from how the terms differ from each other."""
    weight = weight / weight.sum()
    return np.sqrt(weight**2 @ (gap - weight @ gap) ** 2 / (1 - weight @ weight))


def curve_margins(cell, seed):
    """(T, 3, 2): whether each margin covers, and its width; independent, with groups, one column.

    The first row is of thresholds, and the last that of the actions of a loss.
    """
    proba, label, weight, groups = margin_sample(cell, np.random.default_rng([3, seed]))
    data = {"sample_weight": weight, "labels": [0, 1]}
    is_grouped = len(np.unique(groups)) < len(label)
    passed = [None, groups if is_grouped else None, groups if groups.ndim == 1 else groups[:, 0]]
    rows = []
    for one in passed[: 3 if groups.ndim > 1 else 2]:
        curve = metrics.decision_curve(
            label, proba, thresholds=list(MARGINS[cell][3]), groups=one, **data
        )
        gap = np.abs(curve.realised - curve.expected)
        rows.append(np.column_stack([gap <= curve.margin + 1e-12, curve.margin]))
    rows += [rows[-1]] * (3 - len(rows))
    acting = [np.sum(proba > t) for t in MARGINS[cell][3]]
    return np.stack(rows, axis=1), acting


def table_margins(cell, t, seed):
    """Whether each interval covers the expected loss of acting, and its width: (3, 2).

    By terms that are seen, by outcomes drawn from the predictions, and by these with groups.
    """
    proba, label, weight, groups = margin_sample(cell, np.random.default_rng([4, seed]))
    options = {"loss": [[0, 1 - t], [t, 0]], "sample_weight": weight, "labels": [0, 1]}
    acts = proba > t
    if np.sum(acts) < 2:
        return None
    weight = np.ones(len(label)) if weight is None else weight
    seen = empirical_error(weight[acts], t * (proba - label)[acts])
    rows = [(seen, stats.norm.isf(0.025))]
    is_grouped = len(np.unique(groups)) < len(label)
    for one in (None, groups if is_grouped else None):
        table = metrics.decision_calibration(label, proba, groups=one, **options)
        columns = [] if one is None else np.atleast_2d(groups.T)
        size = [1 / np.sum((np.bincount(c, weight) / weight.sum()) ** 2) for c in columns]
        degrees = min(size, default=np.inf) - 1
        rows.append((table.standard_error[1], stats.t.isf(0.025, degrees)))
    width = np.array([error * quantile for error, quantile in rows])
    gap = abs(table.realised[1] - table.expected[1])
    return np.column_stack([gap <= width + 1e-12, width])


def squares(y):
    return np.column_stack([(y - 0.5) ** 2, (y + 0.5) ** 2])


def late(y):
    """One action costs 1; the other 20 if the outcome exceeds 2, which is rare."""
    return np.column_stack([np.ones(len(y)), 20.0 * (y > 2)])


def forecast_margins(kind, loss, n, seed):
    """As `table_margins`, of the action taken most, for forecasts of a number."""
    rng = np.random.default_rng([5, seed])
    mean = rng.normal(size=n)
    forecast = GaussianForecast(mean, 0.7)
    if kind != "Gaussian":
        members = mean[:, None] + 0.7 * rng.normal(size=(n, kind))
        forecast = EnsembleForecast(members)
    y = rng.normal(mean, 0.7)
    table = metrics.decision_calibration(y, forecast, loss=loss)
    action, expected = bayes_action(forecast, loss=loss), expected_loss(forecast, loss=loss)
    a = int(np.argmax(table.share))
    taken = action == a
    gap = (loss(y) if callable(loss) else np.column_stack([y > loss, y <= loss]))[:, a] - expected
    seen = empirical_error(np.ones(taken.sum()), gap[taken])
    width = stats.norm.isf(0.025) * np.array([seen, table.standard_error[a]])
    return np.column_stack([abs(gap[taken].mean()) <= width + 1e-12, width])


def margins(quick):
    """Margins about the values that are expected of calibrated predictions."""
    parallel, n = Parallel(n_jobs=1 if quick else 2), 2 if quick else 400
    print("| predictions | t | acting | groups ignored | with groups | one column | width |")
    print(f"|{'---|' * 7}")
    for cell, (*_, thresholds) in MARGINS.items():
        rows, acting = zip(
            *parallel(delayed(curve_margins)(cell, seed) for seed in range(n)), strict=True
        )
        covered = np.mean(rows, axis=0)  # (T, 3, 2)
        for k, t in enumerate(thresholds):
            shown = [f"{x:.3f}" for x in covered[k, : 3 if "×" in cell else 2, 0]] + ["–"]
            ratio = covered[k, 1, 1] / covered[k, 0, 1]
            print(f"| {cell} | {t} | {np.mean(acting, axis=0)[k]:.1f} | {' | '.join(shown[:3])} | "
                  f"{ratio:.2f} |", flush=True)  # fmt: skip
    print("\n| predictions | t | terms seen | terms drawn | with groups | widths |")
    print("|---|---|---|---|---|---|")
    for cell, (*_, thresholds) in MARGINS.items():
        for t in thresholds:
            found = parallel(delayed(table_margins)(cell, t, seed) for seed in range(n))
            found = [rows for rows in found if rows is not None] or [np.full((3, 2), np.nan)]
            result = np.mean(found, axis=0)
            covered = " | ".join(f"{x:.3f}" for x in result[:, 0])
            ratios = ", ".join(f"{x:.2f}" for x in result[1:, 1] / result[0, 1])
            print(f"| {cell} | {t} | {covered} | {ratios} |", flush=True)
    print("\n| forecasts | n | terms seen | terms drawn | width |\n|---|---|---|---|---|")
    for kind in ("Gaussian", 5, 20):
        for name, loss in (("squares", squares), ("> 2.5", 2.5), ("rare and costly", late)):
            for size in (30, 300):
                run = delayed(forecast_margins)
                found = np.mean(parallel(run(kind, loss, size, seed) for seed in range(n)), axis=0)
                title = kind if kind == "Gaussian" else f"{kind} members"
                print(f"| {title}, {name} | {size} | {found[0, 0]:.3f} | {found[1, 0]:.3f} | "
                      f"{found[1, 1] / found[0, 1]:.2f} |", flush=True)  # fmt: skip


# Number of sites, fewest and most rows in each: the logarithm of the size is uniform
SITES = [
    (3, 60, 200),
    (4, 30, 60),
    (10, 8, 25),
    (10, 2, 200),
    (40, 3, 6),
    (30, 2, 10),
    (60, 2, 200),
]
SITE_MEASURES = {  # the mean, and standard deviations between sites
    "calibration_intercept": (0.3, (0.0, 0.4, 0.8)),
    "observed_expected_ratio": (np.log(1.3), (0.0, 0.3)),
    "calibration_slope": (0.8, (0.0, 0.3)),
}


def site_sample(measure, design, between, seed):
    """Labels, predictions and sites, with at least 30 events and 30 others."""
    rng = np.random.default_rng([6, seed])
    k, *sizes = design
    mean = SITE_MEASURES[measure][0]
    while True:
        size = np.exp(rng.uniform(*np.log(np.add(sizes, (0, 1))), size=k)).astype(int)
        site = np.repeat(np.arange(k), size)
        value = (mean + between * rng.normal(size=k))[site]
        logits = rng.normal(-0.7, 0.8, size=len(site))
        if measure == "observed_expected_ratio":
            logits -= 0.5
            truth = np.minimum(special.expit(logits) * np.exp(value), 1)
        elif measure == "calibration_slope":
            truth = special.expit(value * logits + 0.3 * rng.normal(size=k)[site])
        else:
            truth = special.expit(value + logits)
        label = (rng.random(len(site)) < truth).astype(int)
        if 30 <= label.sum() <= len(label) - 30:
            return label, special.expit(logits), site


def random_effect(measure, design, between, seed):
    """The error of the mean, how its interval and that of a new site cover, and their widths."""
    label, proba, site = site_sample(measure, design, between, seed)
    data = check_predictions(label, proba)
    sites = [data.take(np.flatnonzero(site == k)) for k in range(design[0])]
    unknown = np.ones(design[0])  # not used below 100 events
    result = combine_sites(measure, sites, range(design[0]), unknown, np.nan * unknown, 0.95)
    ends = [*vars(result).values()][:5]
    is_ratio = measure == "observed_expected_ratio"
    estimate, low, high, new_low, new_high = np.log(ends) if is_ratio else ends
    mean = SITE_MEASURES[measure][0]
    law = stats.norm(mean, max(between, 1e-9))
    new = law.cdf(new_high) - law.cdf(new_low)
    return estimate - mean, low <= mean <= high, new, high - low, new_high - new_low


def sites(quick):
    """The mean over many small sites, and a new site."""
    run, n = delayed(random_effect), 4 if quick else 300
    print("| measure | sites | rows in each | τ | bias | covered: mean | a new site | widths |")
    print(f"|{'---|' * 8}")
    for measure, (_, deviations) in SITE_MEASURES.items():
        for design in SITES:
            for between in deviations:
                rows = Parallel(1)(run(measure, design, between, seed) for seed in range(n))
                bias, mean, new, *_ = np.mean(rows, axis=0)
                widths = np.median(rows, axis=0)[3:]
                print(f"| {measure} | {design[0]} | {design[1]} to {design[2]} | {between} | "
                      f"{bias:.3f} | {mean:.3f} | {new:.3f} | {widths[0]:.2f}, {widths[1]:.2f} |",
                      flush=True)  # fmt: skip


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
    functions = {"": main, "groups": groups, "margins": margins, "sites": sites}
    names = set(functions) & set(sys.argv)
    for name, function in functions.items():
        if not names or name in names:
            function(quick="--quick" in sys.argv)
            print()
