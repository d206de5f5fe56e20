"""How often confidence intervals cover the truth, and how often comparisons raise false alarms.

pip install . && python docs/benchmarks/uncertainty_coverage.py [--quick] [SECTION ...]
"""

import sys
import time

import numpy as np
from joblib import Parallel, delayed
from scipy import special, stats
from scipy.optimize import brentq
from sklearn import config_context
from sklearn.metrics import log_loss

from skcalib import metrics
from skcalib.datasets import make_temperature_family
from skcalib.forecasts import GaussianForecast
from skcalib.hypothesis_tests import EquivalenceTest
from skcalib.recalibration import SigmoidRecalibrator
from skcalib.uncertainty import compare_models, confidence_interval
from skcalib.uncertainty._intervals import comparison_of
from skcalib.uncertainty._measured import MeasuredModels, check_predicted

LEVELS = (0.90, 0.95)
N_REPETITIONS = {100: 300, 1000: 300, 10_000: 100}
N_COMPARISONS = {100: 200, 1000: 200}
N_RESAMPLES = 79  # so that tails of 0.05 and 0.025 are met exactly
METRICS = {
    "smooth": ("smooth_calibration_error", {}),
    "binned (15)": ("expected_calibration_error", {}),
    "cumulative": ("cumulative_calibration_error", {}),
    "Laplace kernel": ("laplace_kernel_calibration_error", {}),
    "unbiased SKCE": ("squared_kernel_calibration_error", {"bandwidth": 0.3}),
}
SLOW_METRICS = {
    "smooth ECE (smECE)": ("smooth_expected_calibration_error", {}),
    "interval": ("interval_calibration_error", {}),
}
CORRELATION = 0.3  # of samples of a group


def predictions(truth, beta):
    return special.expit(beta * special.logit(truth))


def population_value(metric, params, beta, n_points=20_000):
    """The metric of the whole temperature family: every point of a fine grid, with both labels."""
    truth = (np.arange(n_points) + 0.5) / n_points
    if metric == "squared_kernel_calibration_error":
        params = params | {"estimator": "biased"}
    return getattr(metrics, metric)(
        np.repeat([0, 1], n_points),
        np.tile(predictions(truth, beta), 2),
        sample_weight=np.concatenate([1 - truth, truth]),
        **params,
    )


def ends(metric, params, y_true, y_proba, seed, sample_weight=None, groups=None):
    """The estimate, and the ends for each level: as `confidence_interval`, from one resampling."""
    labels = np.arange(2 if y_proba.ndim == 1 else y_proba.shape[1])
    with config_context(skip_parameter_validation=True):
        data = {"sample_weight": sample_weight, "labels": labels, "given": None, "groups": groups}
        models = check_predicted({"y_proba": y_proba}, y_true, **data)
        measured = MeasuredModels.make(metric, params, **models)
        limits = measured.limits(method="auto", n_resamples=N_RESAMPLES, random_state=seed)
    return limits.estimate, *np.maximum([limits.interval(level) for level in LEVELS], 0).ravel()


def print_header(*columns):
    columns += ("true value", "mean estimate", "covered at 0.90", "0.95")
    columns += ("missed below, above at 0.95", "median interval at 0.95")
    print(f"| {' | '.join(columns)} |")
    print(f"|{'---|' * len(columns)}")


def print_coverage(columns, value, rows):
    rows = np.array([row for row in rows if row is not None])
    low, high = rows[:, 1::2], rows[:, 2::2]
    covered = np.mean((low <= value) & (value <= high), axis=0)
    print(
        f"| {' | '.join(map(str, columns))} | {value:.4f} | {rows[:, 0].mean():.4f} | "
        f"{covered[0]:.3f} | {covered[1]:.3f} | {np.mean(low[:, 1] > value):.3f}, "
        f"{np.mean(high[:, 1] < value):.3f} | {np.median(low[:, 1]):.4f} to "
        f"{np.median(high[:, 1]):.4f} |",
        flush=True,
    )


def ends_in_family(metric, params, n, beta, seed):
    y_true, y_proba = make_temperature_family(n, inverse_temperature=beta, random_state=seed)
    return ends(metric, params, y_true, y_proba, seed)


def coverage(parallel, quick, chosen=METRICS, sizes=N_REPETITIONS, betas=(1, 2, 0.5)):
    """Single models of two classes."""
    print_header("metric", "n", "β")
    for title, (metric, params) in chosen.items():
        for beta in betas[:1] if quick else betas:
            # calibrated: the grid would leave a little of its own
            value = 0.0 if beta == 1 else population_value(metric, params, beta)
            for n, n_repetitions in ({100: 4} if quick else sizes).items():
                rows = parallel(
                    delayed(ends_in_family)(metric, params, n, beta, seed)
                    for seed in range(n_repetitions)
                )
                print_coverage((title, n, beta), value, rows)


def slow_coverage(parallel, quick):
    """Measures that vanish like n^(-1/3)."""
    coverage(parallel, quick, SLOW_METRICS, {100: 60, 1000: 60}, (1, 2))


def weighted_ends(metric, params, n, beta, kind, seed):
    y_true, y_proba = make_temperature_family(n, inverse_temperature=beta, random_state=seed)
    rng = np.random.default_rng(seed)
    if kind == "two values":
        weight = np.where(rng.random(n) < 0.1, 1.0, 0.05)
    else:
        weight = np.exp(np.sqrt(np.log(6)) * rng.normal(size=n))  # n Σ w² / (Σ w)² tends to 6
    if weight.sum() ** 2 < 10 * (weight @ weight):
        return None  # it is refused
    return ends(metric, params, y_true, y_proba, seed, sample_weight=weight)


def weights(parallel, quick):
    """Weights whose effective number is about a sixth of n."""
    print_header("metric", "weights", "n", "β")
    for title, kind, sizes, betas in (
        ("binned (15)", "log-normal", {600: 120, 3000: 80}, (1, 2)),
        ("binned (15)", "log-normal", {100: 150, 300: 150, 1000: 150}, (1,)),
        ("binned (15)", "two values", {100: 150, 300: 150, 1000: 150}, (1,)),
        ("smooth", "log-normal", {100: 150, 300: 150}, (1,)),
        ("smooth", "two values", {300: 150}, (1,)),
    ):
        metric, params = METRICS[title]
        for beta in betas:
            value = 0.0 if beta == 1 else population_value(metric, params, beta)
            for n, n_repetitions in ({300: 2} if quick else sizes).items():
                rows = parallel(
                    delayed(weighted_ends)(metric, params, n, beta, kind, seed)
                    for seed in range(n_repetitions)
                )
                print_coverage((title, kind, n, beta), value, rows)


def grouped_problem(n_groups, seed):
    """True probabilities and labels whose normal scores are correlated within groups."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), rng.integers(2, 51, size=n_groups))
    score = np.sqrt(CORRELATION) * rng.normal(size=n_groups)[group]
    score += np.sqrt(1 - CORRELATION) * rng.normal(size=len(group))
    truth = rng.random(len(group))
    return group, truth, (stats.norm.cdf(score) < truth).astype(int), rng


def grouped_ends(metric, params, n_groups, beta, with_groups, seed):
    group, truth, y_true, _ = grouped_problem(n_groups, seed)
    groups = group if with_groups else None
    return ends(metric, params, y_true, predictions(truth, beta), seed, groups=groups)


def groups(parallel, quick):
    """Labels that are correlated within groups of 2 to 50."""
    print_header("metric", "groups", "β", "passed as groups")
    for title in ("smooth", "binned (15)"):
        metric, params = METRICS[title]
        for beta in (1, 2):
            value = 0.0 if beta == 1 else population_value(metric, params, beta)
            for n_groups, n_repetitions in ({20: 2} if quick else {20: 80, 100: 40}).items():
                for passed in (True, False)[: 1 + (title == "smooth" and beta == 1)]:
                    rows = parallel(
                        delayed(grouped_ends)(metric, params, n_groups, beta, passed, seed)
                        for seed in range(n_repetitions)
                    )
                    print_coverage((title, n_groups, beta, "yes" if passed else "no"), value, rows)


def sharpened(truth, beta):
    return special.softmax(beta * np.log(truth), axis=1)


def classes_ends(metric, params, n_classes, n, beta, seed):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(n_classes), size=n)
    y_true = (rng.random((n, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    return ends(metric, params, y_true, sharpened(truth, beta), seed)


def value_of_classes(metric, params, n_classes, beta, n_points):
    """The metric of many random predictions, with all labels by their probabilities."""
    if beta == 1:
        return 0.0
    truth = np.random.default_rng(1).dirichlet(np.ones(n_classes), size=n_points)
    if metric == "squared_kernel_calibration_error":
        params = params | {"estimator": "biased"}
    return getattr(metrics, metric)(
        np.repeat(np.arange(n_classes), n_points),
        np.tile(sharpened(truth, beta), (n_classes, 1)),
        sample_weight=truth.T.ravel(),
        **params,
    )


def classes(parallel, quick):
    """More than two classes: predictions uniform on the simplex, made sharper by β."""
    print_header("metric", "K", "n", "β")
    for title, metric, params, n, n_points in (
        ("smooth, confidence", "smooth_calibration_error", {}, 500, 50_000),
        (
            "smooth, classwise",
            "smooth_calibration_error",
            {"multi_class": "classwise"},
            500,
            50_000,
        ),
        ("unbiased SKCE", *METRICS["unbiased SKCE"], 200, 400),
    ):
        for n_classes in (3,) if quick else (3, 10):
            for beta in (1, 2):
                value = value_of_classes(metric, params, n_classes, beta, n_points)
                rows = parallel(
                    delayed(classes_ends)(metric, params, n_classes, 50 if quick else n, beta, seed)
                    for seed in range(2 if quick else 30)
                )
                print_coverage((title, n_classes, n, beta), value, rows)


def losses_of(y_true, y_proba):
    return -np.log(np.where(y_true == 1, y_proba, 1 - y_proba))


def mean_loss(y_true, y_proba):
    return float(np.mean(losses_of(y_true, y_proba)))


def compared_means(n, beta, seed):
    """Widths of intervals for a mean relative to that of Student, whether they cover, p-values."""
    y_true, a = make_temperature_family(n, inverse_temperature=beta, random_state=seed)
    b = make_temperature_family(n, random_state=seed)[1]
    losses = losses_of(y_true, a)
    student = np.diff(stats.t.interval(0.95, n - 1, losses.mean(), stats.sem(losses)))[0]
    results = [1.0, stats.ttest_rel(losses, losses_of(y_true, b)).pvalue]
    options = {"n_resamples": N_RESAMPLES, "random_state": seed, "labels": [0, 1]}
    for metric, method in (
        (log_loss, "auto"),
        (mean_loss, "jackknife"),
        (mean_loss, "resampling"),
    ):
        one = confidence_interval(metric, y_true, a, method=method, **options)
        p = compare_models(metric, y_true, a, b, method=method, **options).p_value
        results += [(one.high - one.low) / student, p]
    return results


def means(parallel, quick):
    """Mean log losses: β against the true probabilities."""
    print("| n | β | interval | median width beside Student's | p ≤ 0.05 |\n|---|---|---|---|---|")
    for n, beta, n_repetitions in ((100, 2, 200), (1000, 1.3, 60)):
        repetitions = range(3 if quick else n_repetitions)
        rows = np.array(parallel(delayed(compared_means)(n, beta, seed) for seed in repetitions))
        names = ("Student's, paired", "log_loss", "a function, jackknife", "a function, resampling")
        for k, name in enumerate(names):
            width, power = np.median(rows[:, 2 * k]), np.mean(rows[:, 2 * k + 1] <= 0.05)
            print(f"| {n} | {beta} | {name} | {width:.3f} | {power:.3f} |", flush=True)


def grouped_p_values(n_groups, seed):
    """Two models of equal log loss: noise on the logits that is common to a group."""
    group, truth, y_true, rng = grouped_problem(n_groups, seed)
    logit = special.logit(truth)
    a, b = special.expit(logit + 0.7 * rng.normal(size=(2, n_groups))[:, group])
    return [
        compare_models(
            mean_loss, y_true, a, b, groups=of, method="jackknife", random_state=0
        ).p_value
        for of in (group, None)
    ]


def grouped_means(parallel, quick):
    """False alarms of comparisons of means with groups of 2 to 50."""
    print("| groups | p ≤ 0.05 | without groups |\n|---|---|---|")
    for n_groups, n_repetitions in {20: 300, 50: 300, 200: 150}.items():
        repetitions = range(3 if quick else n_repetitions)
        p = np.array(parallel(delayed(grouped_p_values)(n_groups, seed) for seed in repetitions))
        print(f"| {n_groups} | {' | '.join(f'{one:.3f}' for one in np.mean(p <= 0.05, axis=0))} |")


def autoregression(rng, n, coefficient=0.7):
    noise = rng.normal(size=n) * np.sqrt(1 - coefficient**2)
    values = np.empty(n)
    values[0] = rng.normal()
    for t in range(1, n):
        values[t] = coefficient * values[t - 1] + noise[t]
    return values


def diebold_mariano(differences):
    """The two-sided p-value of the textbook: a Bartlett kernel of ⌊n^(1/3)⌋ lags, normal limit."""
    n = len(differences)
    centred = differences - differences.mean()
    n_lags = int(n ** (1 / 3))
    variance = centred @ centred / n
    for lag in range(1, n_lags + 1):
        variance += 2 * (1 - lag / (n_lags + 1)) * (centred[lag:] @ centred[:-lag]) / n
    return 2 * stats.norm.sf(abs(differences.mean()) / np.sqrt(variance / n))


def series_p_values(n, worse, seed):
    """Forecasts of the same series whose errors have autoregressive means of the same size."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    a, b = (GaussianForecast(autoregression(rng, n) + size, 1.4) for size in (worse, 0.0))
    lengths = (1, int(np.ceil(n ** (1 / 3))), min(int(np.sqrt(n)), n // 10))
    results = [
        compare_models(
            "continuous_ranked_probability_loss",
            y,
            a,
            b,
            groups=np.arange(n) * (n // length) // n,
        ).p_value
        for length in lengths
    ]
    return [*results, diebold_mariano(a.crps(y) - b.crps(y))]


def series(parallel, quick):
    """Diebold-Mariano: the CRPS of two forecasts of a series, with autocorrelation of about 0.5."""
    print("| n | forecasts | single samples | blocks of n^(1/3) | of √n | Bartlett kernel |")
    print("|---|---|---|---|---|")
    for n, worse in ((200, 0.0), (500, 0.0), (2000, 0.0), (500, 0.7), (2000, 0.5)):
        repetitions = range(3 if quick else 600 if worse == 0 else 300 if n == 500 else 200)
        p = np.array(parallel(delayed(series_p_values)(n, worse, seed) for seed in repetitions))
        rates = " | ".join(f"{one:.3f}" for one in np.mean(p <= 0.05, axis=0))
        print(f"| {n} | {'equal' if worse == 0 else 'different'} | {rates} |", flush=True)


def upper_limit(n, beta, seed):
    y, p = make_temperature_family(n, inverse_temperature=beta, random_state=seed)
    test = EquivalenceTest(margin=1.0, n_resamples=79, labels=[0, 1], random_state=seed)
    return test.fit(p, y).upper_limit_


def equivalence(parallel, quick):
    """How often the upper limit of the smooth error is at most the margin."""
    print("| n | margin | at the margin | calibrated | half the margin |\n|---|---|---|---|---|")
    sizes = {100: 3} if quick else {100: 80, 1000: 50, 10_000: 12}

    def beta_of(value):
        def excess(beta):
            return population_value("smooth_calibration_error", {}, beta, 5000) - value

        return brentq(excess, 1.01, 30, xtol=1e-3)

    for n, n_repetitions in sizes.items():
        calibrated = parallel(delayed(upper_limit)(n, 1, seed) for seed in range(n_repetitions))
        for margin in {100: (0.1,), 1000: (0.05, 0.03)}.get(n, (0.02,)):
            rates = [
                parallel(
                    delayed(upper_limit)(n, beta_of(value), seed) for seed in range(n_repetitions)
                )
                for value in (margin, margin / 2)
            ]
            at_margin, half = (np.mean(np.array(one) <= margin) for one in rates)
            print(
                f"| {n} | {margin} | {at_margin:.3f} | "
                f"{np.mean(np.array(calibrated) <= margin):.3f} | {half:.3f} |",
                flush=True,
            )


MOVES = np.linspace(0, 2.4, 17)  # from the predictions (0) to the recalibrated ones (1) and beyond
N_DRAWS = 119


def binned_errors(residuals, member):
    """The binned error for each row of residuals y − p (R, n), from the members of bins (n, 15)."""
    return np.abs(residuals @ member).sum(axis=-1) / residuals.shape[-1]


def inverted_ends(y_true, y_proba, seed):
    """The binned errors on families of true probabilities with which the estimate agrees.

    Each family moves the predictions towards recalibrated ones: a fitted sigmoid, and the
    frequencies in the bins. As other predictions would have other errors, the distance of the
    estimate to each end is joined with the standard error of the end as a mean over the samples,
    as the sides of a right triangle.
    """
    rng = np.random.default_rng(seed)
    n = len(y_proba)
    member = np.eye(15)[np.minimum((15 * y_proba).astype(int), 14)]
    estimate = binned_errors(y_true - y_proba, member)
    sigmoid = SigmoidRecalibrator(labels=[0, 1]).fit(y_proba, y_true).predict_proba(y_proba)[:, 1]
    gap = (y_true - y_proba) @ member / np.maximum(member.sum(axis=0), 1)
    uniform = rng.random((N_DRAWS, n))
    found = []  # of each member of the families: its value, the standard error, the smaller tail
    for recalibrated in (sigmoid, y_proba + member @ gap):
        for move in MOVES:
            truth = np.clip(y_proba + move * (recalibrated - y_proba), 0, 1)
            drawn = binned_errors((uniform < truth) - y_proba, member)
            tails = [(1 + np.sum(drawn >= estimate)) / (1 + N_DRAWS)]
            if move > 0:  # the error cannot be less than that of the predictions themselves
                tails.append((1 + np.sum(drawn <= estimate)) / (1 + N_DRAWS))
            shares = (truth - y_proba) * (member @ np.sign((truth - y_proba) @ member))
            found.append((shares.mean(), shares.std() / np.sqrt(n), min(tails)))
    value, deviation, tail = np.array(found).T
    ends = []
    for level in LEVELS:
        kept = np.flatnonzero(tail > (1 - level) / 2)
        kept = kept if len(kept) else [0]
        lowest, highest = kept[np.argmin(value[kept])], kept[np.argmax(value[kept])]
        margin = stats.norm.isf((1 - level) / 2) * deviation
        below = np.hypot(max(estimate - value[lowest], 0), margin[lowest])
        above = np.hypot(max(value[highest] - estimate, 0), margin[highest])
        ends += [max(estimate - below, 0.0), estimate + above]
    return estimate, *ends


def true_probability(scene, y_proba):
    if scene == "wave":
        taper = np.minimum(1, 5 * np.minimum(y_proba, 1 - y_proba))
        return y_proba + 0.15 * np.sin(4 * np.pi * y_proba) * taper
    if scene == "turned":  # the ranking is wrong in the middle
        return np.where(np.abs(y_proba - 0.5) < 0.2, 1 - y_proba, y_proba)
    if scene == "rare, 1.6 times":
        return np.minimum(1.6 * y_proba, 1)
    return predictions(y_proba, 1 / float(scene[4:])) if "β" in scene else y_proba


def scene_of(scene, n, seed):
    """Labels and predictions; the true probabilities are uniform where a temperature is wrong."""
    rng = np.random.default_rng(seed)
    uniform = rng.random(n)
    y_proba = rng.beta(0.6, 6, size=n) if "rare" in scene else uniform
    if "β" in scene:
        y_proba = predictions(uniform, float(scene[4:]))
    truth = true_probability(scene, y_proba)
    return (rng.random(n) < truth).astype(int), y_proba, truth


def both_ends(scene, n, seed):
    y_true, y_proba, _ = scene_of(scene, n, seed)
    if y_true.min() == y_true.max():
        return None
    return (
        inverted_ends(y_true, y_proba, seed),
        ends("expected_calibration_error", {}, y_true, y_proba, seed),
    )


def inversion(parallel, quick):
    """A prototype for few samples: test inversion, for the binned error."""
    print_header("true probabilities", "n", "interval")
    for scene in (
        "calibrated", "β = 2", "β = 0.5", "wave", "turned", "rare, calibrated", "rare, 1.6 times"
    ):  # fmt: skip
        _, y_proba, truth = scene_of(scene, 400_000, 0)
        member = np.eye(15)[np.minimum((15 * y_proba).astype(int), 14)]
        value = binned_errors(truth - y_proba, member)
        repetitions = range(2 if quick else 120)
        rows = parallel(delayed(both_ends)(scene, 100, seed) for seed in repetitions)
        rows = [row for row in rows if row is not None]
        for k, name in enumerate(("inversion", "resampling")):
            print_coverage((scene, 100, name), value, [row[k] for row in rows])


def p_value(metric, params, scene, n, betas, seed):
    y_true, a, b = two_models(scene, n, betas, seed)
    with config_context(skip_parameter_validation=True):
        return compare_models(
            metric,
            y_true,
            a,
            b,
            labels=[0, 1],
            metric_params=params,
            n_resamples=N_RESAMPLES,
            random_state=seed,
        ).p_value


def two_models(scene, n, params, seed):
    """Labels, and predictions of two models; `params` is the pair of inverse temperatures."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    y_true = (rng.random(n) < truth).astype(int)
    if scene == "calibrated, sharp and coarse":
        return y_true, truth, (np.floor(4 * truth) + 0.5) / 4
    if scene == "independent noise":
        a, b = special.expit(special.logit(truth) + rng.normal(size=(2, n)))
        return y_true, a, b
    return y_true, *(predictions(truth, beta) for beta in params)


def comparisons(parallel, quick):
    """False alarms and power of comparisons."""
    print("| metric | models | n | p ≤ 0.05 |\n|---|---|---|---|")
    for title in ("smooth", "binned (15)"):
        metric, params = METRICS[title]

        def excess(beta, metric=metric, params=params):
            return population_value(metric, params, beta) - population_value(metric, params, 0.5)

        equal = (0.5, brentq(excess, 1.01, 4, xtol=1e-4))
        for scene, betas in (
            ("calibrated, sharp and coarse", None),
            ("independent noise", None),
            (f"equal errors, β = 0.5 and {equal[1]:.2f}", equal),
            ("different, β = 2 and 1", (2, 1)),
        ):
            for n, n_repetitions in ({100: 4} if quick else N_COMPARISONS).items():
                p = parallel(
                    delayed(p_value)(metric, params, scene, n, betas, seed)
                    for seed in range(n_repetitions)
                )
                print(
                    f"| {title} | {scene} | {n} | {np.mean(np.array(p) <= 0.05):.3f} |", flush=True
                )


def compared(metric, params, y_true, a, b, seed, **data):
    """The difference, and low, high and p-value of both methods alone and of `compare_models`."""
    data = {"sample_weight": None, "labels": [0, 1], "given": None, "groups": None} | data
    with config_context(skip_parameter_validation=True):
        models = check_predicted({"y_pred_a": a, "y_pred_b": b}, y_true, **data)
        measured = MeasuredModels.make(metric, params, **models)
        resamples = measured.resample(method="auto", n_resamples=N_RESAMPLES, random_state=seed)
        result = comparison_of(measured, method="auto", n_resamples=N_RESAMPLES, random_state=seed)
    limits = resamples.limits([1.0, -1.0])
    after = result.low, result.high, result.p_value
    return limits.estimate, *limits.interval(0.95), limits.p_value(0.0), *after


def compared_in_family(metric, params, n, betas, kind, seed):
    rng = np.random.default_rng(seed)
    data = {}
    if kind == "groups":
        group, truth, y_true, _ = grouped_problem(n, seed)
        data["groups"] = group
    elif kind == "classes":
        truth = rng.dirichlet(np.ones(3), size=n)
        y_true = (rng.random((n, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        models = [sharpened(truth, beta) for beta in betas]
        return compared(metric, params, y_true, *models, seed, labels=[0, 1, 2])
    else:
        truth = 0.05 + 0.9 * rng.random(n) if kind == "shift" else rng.random(n)
        y_true = (rng.random(n) < truth).astype(int)
    if kind == "weights":
        data["sample_weight"] = np.exp(rng.normal(size=n))
    if kind == "shift":
        return compared(metric, params, y_true, *(truth + beta for beta in betas), seed)
    return compared(
        metric, params, y_true, *(predictions(truth, beta) for beta in betas), seed, **data
    )


DIFFERENCES = (  # title, metric, options, pairs of temperatures, sizes, kind, repetitions
    ("binned (15)", "expected", {}, (2, 1), (100, 300, 1000), "", 200),
    ("binned (15)", "expected", {}, (1.4, 1), (100, 300, 1000, 3000), "", 200),
    ("binned (15)", "expected", {}, (1.1, 1), (1000,), "", 200),
    ("binned (50)", "expected", {"n_bins": 50}, (1.4, 1), (1000,), "", 200),
    ("binned (15)", "expected", {}, (2, 1.3), (300,), "", 200),
    ("binned (15)", "expected", {}, (1, 1.4), (300,), "", 200),
    ("binned (15), weights", "expected", {}, (1.4, 1), (300,), "weights", 200),
    ("binned (15), groups", "expected", {}, (1.4, 1), (30,), "groups", 200),
    ("binned (15), K = 3", "expected", {}, (1.4, 1), (1000,), "classes", 200),
    ("quantile bins (10)", "expected", {"n_bins": 10, "strategy": "quantile"}, (1.4, 1), (300,),
     "", 200),
    ("quantile bins (10)", "expected", {"n_bins": 10, "strategy": "quantile"}, (2, 1), (300,),
     "", 60),
    ("binned (15)", "expected", {}, (2, 1), (3000,), "", 60),
    ("debiased l2", "expected", {"norm": "l2", "debias": True}, (1.4, 1), (300,), "", 100),
    ("cumulative", "cumulative", {}, (1.4, 1), (300,), "", 200),
    ("Laplace kernel", "laplace_kernel", {}, (1.4, 1), (300,), "", 200),
    ("Laplace kernel", "laplace_kernel", {}, (1.1, 1), (300,), "", 200),
    ("Laplace kernel", "laplace_kernel", {}, (2, 1), (300,), "", 60),
    ("smooth", "smooth", {}, (1.4, 1), (300,), "", 150),
    ("smooth", "smooth", {}, (2, 1), (300,), "", 150),
)  # fmt: skip


def differences(parallel, quick):
    """A model compared with a better calibrated one: coverage of the difference at 0.95."""
    print("| metric | β | n | true | mean estimate | covered by both methods alone | covered | "
          "missed below, above | mean width alone | width | p ≤ 0.05 |")  # fmt: skip
    print(f"|{'---|' * 11}")
    for title, name, params, betas, sizes, kind, n_repetitions in DIFFERENCES:
        metric = f"{name}_calibration_error"
        if kind == "classes":
            values = [value_of_classes(metric, params, 3, beta, 200_000) for beta in betas]
        else:
            plain = params | ({"debias": False} if "debias" in params else {})
            values = [0.0 if b == 1 else population_value(metric, plain, b) for b in betas]
        for n in (100,) if quick and not kind else sizes:
            rows = np.array(parallel(
                delayed(compared_in_family)(metric, params, n, betas, kind, seed)
                for seed in range(2 if quick else n_repetitions)
            ))  # fmt: skip
            print_difference(f"{title} | {betas[0]}, {betas[1]} | {n}", np.subtract(*values), rows)


def print_difference(title, value, rows):
    estimate, *alone, low, high, p = rows.T
    covered = [np.mean((a <= value) & (value <= b)) for a, b in (alone[:2], (low, high))]
    print(
        f"| {title} | {value:.4f} | {estimate.mean():.4f} | {covered[0]:.3f} | {covered[1]:.3f} | "
        f"{np.mean(low > value):.3f}, {np.mean(high < value):.3f} | "
        f"{np.mean(alone[1] - alone[0]):.4f} | {np.mean(high - low):.4f} | "
        f"{np.mean(p <= 0.05):.3f} |",
        flush=True,
    )


OPPOSITE = (  # title, metric, options, cells of n and pairs, repetitions
    ("Laplace kernel", *METRICS["Laplace kernel"], ((300, (0.02, -0.02)), (1000, (0.02, -0.02)),
     (1000, (0.01, -0.01)), (300, (2, 1)), (1000, (1.4, 1))), 200),
    ("smooth", *METRICS["smooth"], ((300, (0.02, -0.02)), (1000, (0.02, -0.02)), (300, (2, 1))),
     150),
    ("cumulative", *METRICS["cumulative"], ((300, (0.02, -0.02)), (1000, (0.02, -0.02)),
     (300, (1.8, 1)), (1000, (1.4, 1))), 120),
    ("kernel", "kernel_calibration_error", {"bandwidth": 0.3}, ((300, (0.02, -0.02)),
     (300, (1.8, 1))), 80),
    ("any decision", "any_decision_calibration_error", {}, ((300, (0.02, -0.02)), (300, (1.8, 1))),
     80),
    ("decision", "decision_calibration_error", {}, ((300, (0.02, -0.02)),), 60),
    ("one bin", "expected_calibration_error", {"n_bins": 1}, ((300, (0.02, -0.02)),), 80),
    ("two bins", "expected_calibration_error", {"n_bins": 2}, ((300, (0.02, -0.02)),), 80),
    ("binned (15)", *METRICS["binned (15)"], ((300, (0.02, -0.02)), (1000, (0.02, -0.02)),
     (300, (2, 1)), (1000, (1.4, 1))), 200),
    ("ICI", "integrated_calibration_index", {}, ((300, (0.02, -0.02)),), 100),
    ("smooth ECE", "smooth_expected_calibration_error", {}, ((300, (0.02, -0.02)),), 30),
    ("interval", "interval_calibration_error", {}, ((300, (0.02, -0.02)),), 40),
)  # fmt: skip

OPPOSITE_FORECASTS = (  # n, biases and standard deviations of both models, repetitions
    (300, ((0.05, 1), (-0.05, 1)), 120),
    (1000, ((0.05, 1), (-0.05, 1)), 60),
    (300, ((0, 0.8), (0, 1)), 120),
    (300, ((0.12, 1), (0, 1)), 120),
)


def compared_forecasts(n, pair, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y_true = x + rng.normal(size=n)
    models = [GaussianForecast(x + bias, std * np.ones(n)) for bias, std in pair]
    return compared("quantile_calibration_error", {}, y_true, *models, seed, labels=None)


def opposite(parallel, quick):
    """False alarms and power where models are wrong on opposite sides, and before and after."""
    print("| metric | models | n | repetitions | p ≤ 0.05 without halves | p ≤ 0.05 |")
    print("|---|---|---|---|---|---|")

    def show(title, models, n, n_repetitions, function, *arguments):
        rows = np.array(parallel(
            delayed(function)(*arguments, seed) for seed in range(2 if quick else n_repetitions)
        ))  # fmt: skip
        before, after = np.mean(rows[:, [3, 6]] <= 0.05, axis=0)
        print(f"| {title} | {models} | {n} | {n_repetitions} | {before:.3f} | {after:.3f} |",
              flush=True)  # fmt: skip

    for title, metric, params, cells, n_repetitions in OPPOSITE:
        for n, pair in cells[:1] if quick else cells:
            is_shift = sum(pair) == 0
            models = f"± {pair[0]}" if is_shift else f"β = {pair[0]} and {pair[1]}"
            show(title, models, n, n_repetitions, compared_in_family, metric, params, n, pair,
                 "shift" if is_shift else "")  # fmt: skip
    for n, pair, n_repetitions in OPPOSITE_FORECASTS[: 1 if quick else None]:
        models = " and ".join(f"bias {bias}, sd × {std}" for bias, std in pair)
        show("quantile", models, n, n_repetitions, compared_forecasts, n, pair)


L2 = {"norm": "l2"}
OPTIONS = (  # metric, sets of options, repetitions; in each cell model A is wrong and B is right
    ("expected_calibration_error", ({"norm": "l2"}, {"norm": "max"}, L2 | {"debias": True},
     {"strategy": "quantile"}, {"strategy": "quantile", "norm": "max"},
     {"strategy": "median-variance"}, {"distance": "cityblock"}, {"distance": "sqeuclidean"},
     {"add_bin_width": True}), 40),
    ("cumulative_calibration_error", ({"kind": "max"}, {"kind": "range"}), 40),
    ("laplace_kernel_calibration_error", ({"bandwidth": 0.1}, {"squared": True}), 40),
    ("kernel_calibration_error", ({"bandwidth": 0.3},), 40),
    ("squared_kernel_calibration_error", ({"bandwidth": 0.3}, {"bandwidth": 0.3, "estimator":
     "biased"}), 40),
    ("any_decision_calibration_error", ({"n_actions": 2}, {"n_actions": 3}), 40),
    ("integrated_calibration_index", ({}, {"quantile": 0.5}, {"quantile": 0.9}), 30),
    ("smooth_expected_calibration_error", ({}, {"bandwidth": 0.05}), 10),
    ("interval_calibration_error", ({}, {"method": "surrogate"}), 10),
    ("lower_distance_to_calibration", ({"tol": 1e-3},), 5),
    ("quantile_calibration_error", ({"norm": "l1"}, L2, {"norm": "max"}, L2 | {"debias": True},
     L2 | {"debias": True, "squared": True}, {"kind": "interval"}, L2 | {"kind": "interval",
     "debias": True}, {"norm": "max", "levels": [0.1, 0.5, 0.9]}), 40),
    ("local_calibration_error", ({"bandwidth": 1.0}, {"bandwidth": 1.0, "debias": True},
     {"bandwidth": 1.0, "debias": True, "average": "root-mean-square"}), 20),
)  # fmt: skip


def forecast_value(params, std, n_points=100_000):
    """The quantile error of standard normal forecasts of outcomes with another deviation."""
    y_true = std * stats.norm.ppf((np.arange(n_points) + 0.5) / n_points)
    forecast = GaussianForecast(np.zeros(n_points), np.ones(n_points))
    return metrics.quantile_calibration_error(y_true, forecast, **params)


def option_values(metric, params):
    """The value of the model that is wrong, and that of the other one, as no estimate has them."""
    params = {k: v for k, v in params.items() if k != "debias"}
    if metric == "local_calibration_error":
        return forecast_value(L2, 1.1), 0.0
    if metric == "quantile_calibration_error":
        return forecast_value(params, 1.1), 0.0
    n_points = 400 if "kernel" in metric and "laplace" not in metric else 20_000
    n_points = 2000 if metric in ("any_decision_calibration_error",
                                  "lower_distance_to_calibration") else n_points  # fmt: skip
    right = population_value(metric, params, 1, n_points) if params.get("add_bin_width") else 0.0
    return population_value(metric, params, 1.4, n_points), right


def covered_option(metric, params, seed):
    """Low and high of one model, and low, high and p-value of the difference."""
    data = {}
    if metric in ("quantile_calibration_error", "local_calibration_error"):
        rng = np.random.default_rng(seed)
        x, noise = rng.normal(size=(2, 300))
        y_true = x + 1.1 * noise
        models = [GaussianForecast(x, std * np.ones(300)) for std in (1.0, 1.1)]
        data = {"given": x} if metric == "local_calibration_error" else {}
    else:
        y_true, wrong = make_temperature_family(300, inverse_temperature=1.4, random_state=seed)
        models = [wrong, make_temperature_family(300, random_state=seed)[1]]
        data["labels"] = [0, 1]
    data |= {"metric_params": params, "n_resamples": N_RESAMPLES, "random_state": seed}
    single = confidence_interval(metric, y_true, models[0], **data)
    both = compare_models(metric, y_true, *models, **data)
    return single.low, single.high, both.low, both.high, both.p_value


def options(parallel, quick):
    """Every option of every error: β = 1.4 beside 1, or deviations too small by 1.1, n = 300."""
    print("| metric | options | repetitions | true value | covered | median interval | "
          "true difference | covered | median interval | p ≤ 0.05 |")  # fmt: skip
    print(f"|{'---|' * 10}")
    for metric, sets, n_repetitions in OPTIONS:
        for params in sets[:1] if quick else sets:
            n_repetitions = 1 if quick else n_repetitions
            value, right = option_values(metric, params)
            rows = np.array(parallel(
                delayed(covered_option)(metric, params, seed) for seed in range(n_repetitions)
            ))  # fmt: skip
            cells = [metric.replace("_", " "), ", ".join(f"{k}={v}" for k, v in params.items())]
            cells.append(n_repetitions)
            for true, (low, high) in ((value, rows.T[:2]), (value - right, rows.T[2:4])):
                cells += [f"{true:.4f}", f"{np.mean((low <= true) & (true <= high)):.3f}"]
                cells.append(f"{np.median(low):.4f} to {np.median(high):.4f}")
            cells.append(f"{np.mean(rows[:, 4] <= 0.05):.3f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def debiased(parallel, quick):
    """The root mean square error of 15 bins without the bias of its square."""
    params = {"norm": "l2", "debias": True}
    print_header("n", "β")
    for n, beta, n_repetitions in (
        (100, 1.4, 200), (100, 2, 200), (300, 1, 300), (300, 1.4, 300), (300, 2, 200),
        (1000, 1.4, 200),
    ):  # fmt: skip
        plain = {"norm": "l2"}
        value = 0.0 if beta == 1 else population_value("expected_calibration_error", plain, beta)
        rows = parallel(
            delayed(ends_in_family)("expected_calibration_error", params, n, beta, seed)
            for seed in range(2 if quick else n_repetitions)
        )
        print_coverage((n, beta), value, rows)


def levels_ends(n, n_levels, beta, seed):
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    if n_levels:
        truth = (np.floor(n_levels * truth) + 0.5) / n_levels
    y_true = (rng.random(n) < truth).astype(int)
    return ends("level_set_calibration_error", {}, y_true, predictions(truth, beta), seed)


def levels(parallel, quick):
    """The level set error of predictions that hardly repeat."""
    print_header("distinct predictions", "n", "β")
    for n, n_levels, beta in (
        (300, 0, 1), (300, 0, 2), (60, 400, 1), (300, 400, 1), (1000, 400, 1), (1000, 400, 2),
        (3000, 400, 1), (300, 30, 1), (1000, 30, 1),
    ):  # fmt: skip
        truth = (np.arange(n_levels or 4000) + 0.5) / (n_levels or 4000)
        value = float(np.mean(np.abs(truth - predictions(truth, beta))))
        rows = parallel(
            delayed(levels_ends)(n, n_levels, beta, seed) for seed in range(2 if quick else 150)
        )
        print_coverage((n_levels or "all", n, beta), value, rows)


SECTIONS = (
    comparisons,
    differences,
    opposite,
    debiased,
    options,
    levels,
    coverage,
    slow_coverage,
    weights,
    groups,
    classes,
    means,
    grouped_means,
    series,
    equivalence,
    inversion,
)


def main(names, quick):
    parallel = Parallel(n_jobs=1 if quick else 2)
    for section in SECTIONS:
        if names and section.__name__ not in names:
            continue
        start = time.perf_counter()
        print(f"{section.__name__}: {section.__doc__}\n", flush=True)
        section(parallel, quick)
        print(f"\n{time.perf_counter() - start:.0f} s\n", flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main([one for one in arguments if one != "--quick"], "--quick" in arguments)
