"""How often intervals cover: means, signed measures, errors, differences and crossed groups.

pip install . && python docs/benchmarks/uncertainty_coverage.py [--quick] [SECTION ...]
"""

import sys
import time

import numpy as np
from scipy import optimize, special, stats
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import expected_calibration_error, kernel_calibration_error
from skcalib.uncertainty import compare_models, confidence_interval

REPETITIONS = {"means": 300, "errors": 150, "differences": 80, "crossed": 200}
SIGNED = ("observed_expected_ratio", "calibration_intercept", "calibration_slope")
N_POPULATION = 200_000


def sharpen(proba, temperature, shift=0.0):
    """Predictions of two classes whose log-odds are multiplied, and shifted."""
    return special.expit(temperature * special.logit(np.clip(proba, 1e-9, 1 - 1e-9)) + shift)


def labels_of(truth, uniform):
    """Labels of two classes, or of as many as there are columns, from uniform numbers."""
    if truth.ndim == 1:
        return (uniform < truth).astype(int)
    return (uniform[:, None] > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)


# Two classes: sizes of groups, their correlations, the beta law of the truth, temperature, and the
# spread of log-normal weights.
def two_classes(sizes, correlation, law, temperature=1.0, weights=0.0, readers=(1, 0.0)):
    sizes = np.asarray(sizes)
    group = np.repeat(np.arange(len(sizes)), sizes)
    within = np.broadcast_to(correlation, len(sizes))[group]
    n_readers, between = readers

    def draw(rng):
        n = len(group)
        truth = rng.beta(*law, size=n)
        reader = np.arange(n) % n_readers
        score = np.sqrt(within) * rng.normal(size=len(sizes))[group]
        score += np.sqrt(between) * rng.normal(size=n_readers)[reader]
        score += np.sqrt(1 - within - between) * rng.normal(size=n)
        y = labels_of(truth, stats.norm.cdf(score))
        weight = rng.lognormal(sigma=weights, size=n) if weights else None
        groups = None if len(sizes) == n else group
        if n_readers > 1:
            groups = np.column_stack([group, reader])
        return sharpen(truth, temperature), y, {"sample_weight": weight, "groups": groups}

    return draw, law, temperature


def alone(n, law, temperature=1.0, weights=0.0):
    return two_classes(np.ones(n, dtype=int), 0.0, law, temperature, weights)


LARGE_AND_PAIRS = [60] * 20 + [2] * 380
MEANS = {
    "n 50, half": alone(50, (1, 1)),
    "n 100, 10 %": alone(100, (1, 9)),
    "n 200, 2 %": alone(200, (1, 49)),
    "n 500, 1 %": alone(500, (1, 99)),
    "n 2000, 2 %": alone(2000, (1, 49)),
    "n 2000, half": alone(2000, (1, 1)),
    "n 500, 20 %, temperature 2": alone(500, (1, 4), 2.0),
    "n 500, 20 %, weights 1.5": alone(500, (1, 4), weights=1.5),
    "n 500, 5 %, weights 1": alone(500, (1, 19), weights=1.0),
    "50 x 10 (.3), 20 %": two_classes([10] * 50, 0.3, (1, 4)),
    "100 x 6 (.5), 5 %": two_classes([6] * 100, 0.5, (1, 19)),
    "30 x 8 (.95), 5 %": two_classes([8] * 30, 0.95, (1, 19)),
    "20 x 60 (.9) + 380 x 2, 1.5 %": two_classes(
        LARGE_AND_PAIRS, np.r_[[0.9] * 20, [0.0] * 380], (1.5, 98.5)
    ),
    "10 x 60 (.9) + 190 x 2, 10 %": two_classes(
        [60] * 10 + [2] * 190, np.r_[[0.9] * 10, [0.0] * 190], (1, 9)
    ),
    "20 x 60 (.3) + 380 x 2, 20 %": two_classes(
        LARGE_AND_PAIRS, np.r_[[0.3] * 20, [0.0] * 380], (1, 4)
    ),
    "12 x 30 (.5), 20 %": two_classes([30] * 12, 0.5, (2, 8)),
    # not in any earlier table
    "n 30, 30 %": alone(30, (3, 7)),
    "n 1000, 0.5 %": alone(1000, (1, 199)),
    "n 300, 20 %, temperature 0.5": alone(300, (1, 4), 0.5),
    "15 x 20 (.8), 10 %": two_classes([20] * 15, 0.8, (1, 9)),
}
CROSSED = {
    "50 x 12 (.2) x 12 (.2)": two_classes([12] * 50, 0.2, (1, 3), readers=(12, 0.2)),
    "50 x 12 (.1) x 12 (.4)": two_classes([12] * 50, 0.1, (1, 3), readers=(12, 0.4)),
}

TESTED = {
    "100 x 20 (.3) x 20 (.1), uniform p": two_classes([20] * 100, 0.3, (1, 1), readers=(20, 0.1)),
    "40 x 30 (.3) x 30 (.3), uniform p": two_classes([30] * 40, 0.3, (1, 1), readers=(30, 0.3)),
    "60 x 10 (.2) x 10 (.2), p .06": two_classes([10] * 60, 0.2, (1, 15), readers=(10, 0.2)),
    "50 x 12 (0) x 12 (0)": two_classes([12] * 50, 0.0, (1, 3), readers=(12, 0.0)),
}


def true_values(law, temperature):
    """Values of a whole distribution, and the factor with which a model is as good as 1.3 times."""
    truth = np.random.default_rng(0).beta(*law, size=N_POPULATION)
    proba = sharpen(truth, temperature)
    weight = np.concatenate([1 - truth, truth])

    def measure(loss, values):
        return loss(np.repeat([0, 1], len(truth)), np.tile(values, 2), sample_weight=weight)

    larger = measure(log_loss, scale(proba, 1.3))
    values = {
        "log loss": measure(log_loss, proba),
        "Brier score": measure(brier_score_loss, proba),
        "difference": measure(log_loss, proba) - larger,
        "equal models": 0.0,
    }
    if temperature == 1:
        values |= dict(zip(SIGNED, (1.0, 0.0, 1.0), strict=True))
    factor = optimize.brentq(
        lambda c: measure(log_loss, scale(proba, c)) - larger, 0.02, 0.999, xtol=1e-6
    )
    return values, factor if temperature == 1 else None


def scale(proba, factor):
    return np.clip(factor * proba, 0, 0.999)


def measure_means(cells, repetitions):
    """Coverage and mean width of each number in each cell, as rows of a table."""
    rows = []
    for name, (draw, law, temperature) in cells.items():
        values, factor = true_values(law, temperature)
        ends = {}
        for seed in range(repetitions):
            proba, y, data = draw(np.random.default_rng([3, seed]))
            try:
                found = measure_sample(proba, y, data, temperature, factor)
            except ValueError:  # a few weights outweigh all others
                continue
            for title, interval in found.items():
                ends.setdefault(title, []).append(interval)
        rows.append([name, *(describe(ends.get(title), values.get(title)) for title in TITLES)])
        print(f"| {' | '.join(rows[-1])} |", flush=True)


def measure_sample(proba, y, data, temperature, factor):
    """The ends of the interval of each number."""
    losses, larger = {"log loss": log_loss, "Brier score": brier_score_loss}, scale(proba, 1.3)
    pairs = {"difference": (proba, larger)}
    if factor is not None:
        pairs["equal models"] = larger, scale(proba, factor)
    shared = {"labels": [0, 1], **data}
    intervals = {
        title: confidence_interval(loss, y, proba, **shared) for title, loss in losses.items()
    }
    intervals |= {
        title: compare_models(log_loss, y, *pair, **shared) for title, pair in pairs.items()
    }
    for title in SIGNED if temperature == 1 and 0 < y.sum() < len(y) else ():
        intervals[title] = confidence_interval(title, y, proba, **data)
    return {title: [*interval] for title, interval in intervals.items()}


TITLES = ("log loss", "Brier score", "difference", "equal models", *SIGNED)


def describe(ends, value):
    """The share of intervals that cover the value, and their mean width."""
    if ends is None:
        return ""
    low, high = np.transpose(ends)
    covered = np.mean((low <= value + 1e-12) & (value - 1e-12 <= high))
    return f"{covered:.3f} ({np.mean(high - low):.3g})"


def print_header(*titles):
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")


def means(repetitions):
    """Means and signed measures."""
    print_header("cell", *TITLES)
    measure_means(MEANS, repetitions)


def crossed(repetitions):
    """Crossed groups, passed as two columns, and the share that the default test rejects."""
    print_header("cell", *TITLES)
    measure_means(CROSSED, repetitions)
    print()
    print_header("cell", "first column", "second column", "both")
    for name, (draw, *_) in (CROSSED | TESTED).items():
        rejected = [
            test_columns(*draw(np.random.default_rng([3, seed]))) for seed in range(repetitions)
        ]
        print(f"| {name} | {' | '.join(f'{share:.3f}' for share in np.mean(rejected, axis=0))} |")


def test_columns(proba, y, options):
    """Whether the default test rejects at 0.05, with either column of groups and with both."""
    groups = options["groups"]
    tests = [
        CalibrationTest(n_resamples=199, random_state=0).fit(proba, y, groups=columns)
        for columns in (*groups.T, groups)
    ]
    return [test.p_value_ <= 0.05 for test in tests]


# Errors: the truth, the predictions, labels, weights and groups of a sample.
def problem(n, n_classes=2, temperatures=(1.0,), law=None, weights=0.0, groups=None, shifts=None):
    def draw(rng):
        if n_classes == 2:
            truth = rng.beta(*(law or (1, 1)), size=n)
            pairs = zip(temperatures, shifts or [0.0] * len(temperatures), strict=True)
            models = [sharpen(truth, *pair) for pair in pairs]
        else:
            truth = rng.dirichlet(np.full(n_classes, law or 0.5), size=n)
            logits = np.log(np.maximum(truth, 1e-12))
            models = [special.softmax(t * logits, axis=1) for t in temperatures]
        uniform, group = rng.random(n), None
        if groups is not None:  # a share of the groups follow one number each
            sizes, share = groups
            group = np.repeat(np.arange(len(sizes)), sizes)
            common, is_common = rng.random(len(sizes)), rng.random(len(sizes)) < share
            uniform = np.where(is_common[group], common[group], uniform)
        weight = rng.lognormal(sigma=weights, size=n) if weights else None
        return truth, models, labels_of(truth, uniform), {"sample_weight": weight, "groups": group}

    return draw


UNEQUAL = np.r_[[60] * 8, [2] * 100], np.r_[[0.7] * 8, [0.0] * 100]
EQUAL = np.full(60, 8), 0.4
ERRORS = {
    "2 classes, 15 bins, n 300": (problem(300), 15, None),
    "2 classes, 100 bins, n 300": (problem(300), 100, None),
    "2 classes, 15 bins, n 500, T 1.5": (problem(500, 2, (1.5,)), 15, None),
    "2 classes, 15 bins, n 2000, T 1.2": (problem(2000, 2, (1.2,)), 15, None),
    "2 classes, 15 bins, n 500, T 2": (problem(500, 2, (2.0,)), 15, None),
    "2 %, 15 bins, n 500": (problem(500, law=(1, 49)), 15, None),
    "10 %, 15 bins, n 200": (problem(200, law=(1, 9)), 15, None),
    "weights 1, 15 bins, n 500": (problem(500, weights=1.0), 15, None),
    "60 x 8 (.4), 15 bins": (problem(480, groups=EQUAL), 15, None),
    "8 x 60 (.7) + 100 x 2, 15 bins": (problem(680, groups=UNEQUAL), 15, None),
    "8 x 60 (.7) + 100 x 2, 15 bins, T 2": (problem(680, 2, (2.0,), groups=UNEQUAL), 15, None),
    "2 classes, kernel, n 300": (problem(300), 0, None),
    "2 classes, kernel, n 300, T 2": (problem(300, 2, (2.0,)), 0, None),
    "3 classes, classwise, n 200": (problem(200, 3), 15, "classwise"),
    "10 classes, classwise, n 300": (problem(300, 10), 15, "classwise"),
    "10 classes, classwise, n 300, T 1.4": (problem(300, 10, (1.4,)), 15, "classwise"),
    "30 classes, classwise, n 500": (problem(500, 30), 15, "classwise"),
    "30 classes, classwise, n 500, T 2": (problem(500, 30, (2.0,)), 15, "classwise"),
    "100 classes, classwise, n 500": (problem(500, 100, law=0.2), 15, "classwise"),
    "3 classes, canonical, n 200": (problem(200, 3), 5, "canonical"),
    "5 classes, canonical, n 500": (problem(500, 5), 5, "canonical"),
    "5 classes, canonical, n 500, T 2": (problem(500, 5, (2.0,)), 5, "canonical"),
    "10 classes, confidence, n 500": (problem(500, 10), 15, "confidence"),
    "10 classes, confidence, n 500, T 2": (problem(500, 10, (2.0,)), 15, "confidence"),
    # not in any earlier table
    "top label, 5 classes, n 300": (problem(300, 5), 15, "top-label"),
    "2 classes, 15 bins, n 60, T 3": (problem(60, 2, (3.0,)), 15, None),
}
DIFFERENCES = {
    "sharp, constant: 5 classes, canonical": (problem(500, 5, (1.0, 0.0)), 5, "canonical"),
    "sharp, constant: 10 classes, classwise": (problem(300, 10, (1.0, 0.0)), 15, "classwise"),
    "1 bin, opposite .05, n 300": (problem(300, 2, (1, 1), shifts=(0.05, -0.05)), 1, None),
    "1 bin, opposite .2, n 300": (problem(300, 2, (1, 1), shifts=(0.2, -0.2)), 1, None),
    "15 bins, opposite .3, n 500": (problem(500, 2, (1, 1), shifts=(0.3, -0.3)), 15, None),
    "kernel, opposite .05, n 300": (problem(300, 2, (1, 1), shifts=(0.05, -0.05)), 0, None),
    "kernel, opposite .3, n 300": (problem(300, 2, (1, 1), shifts=(0.3, -0.3)), 0, None),
    "15 bins, opposite .2, 60 x 8 (.4)": (
        problem(480, 2, (1, 1), shifts=(0.2, -0.2), groups=EQUAL), 15, None,
    ),
    "15 bins, T 2 and 1, n 500": (problem(500, 2, (2.0, 1.0)), 15, None),
    "15 bins, T 1.5 and 1, n 500": (problem(500, 2, (1.5, 1.0)), 15, None),
    "kernel, T 2 and 1, n 300": (problem(300, 2, (2.0, 1.0)), 0, None),
    "1 bin, .5 and 0, n 300": (problem(300, 2, (1, 1), shifts=(0.5, 0.0)), 1, None),
    "10 classes, classwise, T 2 and 1, n 300": (problem(300, 10, (2.0, 1.0)), 15, "classwise"),
    "10 classes, confidence, T 2 and 1, n 500": (problem(500, 10, (2.0, 1.0)), 15, "confidence"),
    "15 bins, T 2 and 1, 60 x 8 (.4)": (problem(480, 2, (2.0, 1.0), groups=EQUAL), 15, None),
    # not in any earlier table
    "15 bins, T 0.5 and 2, n 500": (problem(500, 2, (0.5, 2.0)), 15, None),
}  # fmt: skip


def metric_of(n_bins, kind):
    if not n_bins:
        return kernel_calibration_error, {"kernel": "rbf", "bandwidth": 0.2}
    params = {} if kind is None else {"multi_class": kind}
    return expected_calibration_error, {"n_bins": n_bins} | params


def true_error(draw, k, n_bins, kind):
    """The error of model k of many samples of which all outcomes are as expected."""
    metric, params = metric_of(n_bins, kind)
    samples = [draw(np.random.default_rng([7, r])) for r in range(4 if not n_bins else 40)]
    truth = np.concatenate([sample[0] for sample in samples])
    proba = np.concatenate([sample[1][k] for sample in samples])
    if truth.ndim == 1:
        truth = np.column_stack([1 - truth, truth])
    n, n_classes = truth.shape
    y = np.repeat(np.arange(n_classes), n)
    many = np.concatenate([proba] * n_classes)
    return metric(y, many, sample_weight=truth.T.ravel(), **params)


def measure_errors(cells, repetitions, is_pair):
    for name, (draw, n_bins, kind) in cells.items():
        metric, params = metric_of(n_bins, kind)
        errors = [true_error(draw, k, n_bins, kind) for k in range(1 + is_pair)]
        value = errors[0] - errors[1] if is_pair else errors[0]
        is_null = "opposite" in name or "sharp" in name if is_pair else "T" not in name
        value = 0.0 if is_null else value
        ends, start = [], time.process_time()
        for seed in range(repetitions):
            truth, models, y, data = draw(np.random.default_rng([11, seed]))
            labels = np.arange(2 if truth.ndim == 1 else truth.shape[1])
            options = {"labels": labels, "metric_params": params, "n_resamples": 199}
            function = compare_models if is_pair else confidence_interval
            ends.append(
                [*function(metric.__name__, y, *models, **data, **options, random_state=seed)]
            )
        seconds = (time.process_time() - start) / repetitions
        low, high = np.transpose(ends)
        outside = np.mean((low > 0) | (high < 0))
        covered = np.mean((low <= value + 1e-9) & (value - 1e-9 <= high))
        numbers = f"{value:.3f} | {covered:.3f} | {outside:.3f} | {np.mean(high - low):.4f}"
        print(f"| {name} | {numbers} | {seconds:.3f} |", flush=True)


def errors(repetitions):
    """Errors of calibrated models, whose value is 0, and of wrong ones."""
    print_header("cell", "true value", "covered", "0 excluded", "mean width", "seconds")
    measure_errors(ERRORS, repetitions, is_pair=False)


def differences(repetitions):
    """Differences of two errors."""
    print_header("cell", "true value", "covered", "0 excluded", "mean width", "seconds")
    measure_errors(DIFFERENCES, repetitions, is_pair=True)


SECTIONS = (means, crossed, errors, differences)


def main(names, quick):
    for section in SECTIONS:
        if names and section.__name__ not in names:
            continue
        start = time.process_time()
        print(f"## {section.__doc__}\n", flush=True)
        section(2 if quick else REPETITIONS[section.__name__])
        print(f"\n{time.process_time() - start:.0f} s\n", flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main([one for one in arguments if one != "--quick"], "--quick" in arguments)
