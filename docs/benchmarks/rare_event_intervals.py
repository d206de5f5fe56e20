"""How often intervals cover the truth where events, or wrong predictions, are rare.

pip install . && python docs/benchmarks/rare_event_intervals.py [--quick] [SECTION ...]
"""

import sys
import time

import numpy as np
from scipy import special, stats
from sklearn import config_context
from sklearn.metrics import brier_score_loss, log_loss

from skcalib import metrics
from skcalib.datasets import make_temperature_family
from skcalib.uncertainty._measured import MeasuredModels, check_predicted

N_RESAMPLES = 79  # so that tails of 0.05 and 0.025 are met exactly
LEVEL = 0.95
METRICS = {
    "smooth": ("smooth_calibration_error", {}),
    "binned (15)": ("expected_calibration_error", {}),
    "Laplace kernel": ("laplace_kernel_calibration_error", {}),
    "SKCE": ("squared_kernel_calibration_error", {}),
    "SKCE, bandwidth 0.3": ("squared_kernel_calibration_error", {"bandwidth": 0.3}),
    "Brier score": (brier_score_loss, {}),
    "log loss": (log_loss, {}),
}
CELLS = {  # mean prediction, by what the risk is multiplied, n
    "smooth": (
        (0.002, 1, 300), (0.002, 3, 1000), (0.005, 1, 100), (0.005, 2, 300), (0.02, 1, 30),
        (0.02, 0.5, 100), (0.02, 2, 300), (0.05, 1, 100), (0.05, 3, 300), (0.98, 1, 100),
        (0.98, 2, 300),
    ),
    "binned (15)": ((0.005, 1, 100), (0.02, 2, 100), (0.05, 1, 300), (0.98, 3, 100)),
    "Laplace kernel": ((0.005, 2, 100), (0.02, 1, 100)),
    "SKCE": ((0.02, 1, 100), (0.02, 3, 100)),
    "SKCE, bandwidth 0.3": ((0.005, 2, 100), (0.02, 3, 300), (0.05, 0.5, 100)),
    "Brier score": ((0.02, 1, 200), (0.005, 2, 100), (0.05, 3, 300)),
    "log loss": ((0.02, 1, 200), (0.005, 2, 100), (0.05, 3, 300), (0.98, 0.5, 100)),
}  # fmt: skip


def ends(name, y_true, y_proba, seed, params=None, sample_weight=None, groups=None):
    """Both ends and the one-sided upper end."""
    metric, own = METRICS[name]
    labels = np.arange(2 if y_proba.ndim == 1 else y_proba.shape[1])
    data = {"sample_weight": sample_weight, "labels": labels, "given": None, "groups": groups}
    with config_context(skip_parameter_validation=True):
        models = check_predicted({"y_proba": y_proba}, y_true, **data)
        measured = MeasuredModels.make(metric, own | (params or {}), **models)
        limits = measured.limits(n_resamples=N_RESAMPLES, random_state=seed)
        highest = measured.clip(*limits.interval(LEVEL, "less"))[1]
        return *measured.clip(*limits.interval(LEVEL)), highest


def print_header(*columns):
    columns += ("truth", "covered", "missed below, above", "size of equivalence", "mean width")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def print_row(columns, value, rows, weights=None):
    low, high, highest = np.array(rows).T
    slack = 1e-9
    below, above = (
        np.average(one, weights=weights) for one in (low > value + slack, high < value - slack)
    )
    size = f"{np.average(highest <= value, weights=weights):.3f}" if value > 0 else ""
    width = np.average(high - low, weights=weights)
    cells = [*columns, f"{value:.5f}", f"{1 - below - above:.3f}", f"{below:.3f}, {above:.3f}"]
    print(f"| {' | '.join(map(str, [*cells, size, f'{width:.4f}']))} |", flush=True)


def every_number_of_events(quick):
    """One prediction for all: exact, by the binomial law of the number of events."""
    print_header("metric", "prediction", "n", "risk is")
    for name in ("smooth", "Brier score"):
        for mean in (0.005, 0.02, 0.05, 0.98)[: 1 if quick else None]:
            for n in (30, 100, 300)[: 1 if quick else None]:
                kept = np.arange(n + 1)
                laws = {}
                for factor in (1, 2, 3, 0.5):
                    truth = factor * mean if mean < 0.5 else 1 - factor * (1 - mean)
                    laws[factor] = truth, stats.binom.pmf(kept, n, truth)
                kept = np.flatnonzero(sum(law for _, law in laws.values()) > 1e-4)
                order = np.random.default_rng(0).permutation(n)
                rows = [
                    ends(name, (order < count).astype(int), np.full(n, mean), 0) for count in kept
                ]
                for factor, (truth, law) in laws.items():
                    value = abs(truth - mean)
                    if name == "Brier score":
                        value = truth * (1 - mean) ** 2 + (1 - truth) * mean**2
                    weights = law[kept] / law[kept].sum()
                    print_row((name, mean, n, f"{factor} times"), value, rows, weights)


def risks(mean, factor, uniform):
    """Predictions with a beta law, and the risks; of wrong predictions if the mean is above 1/2."""
    rare = min(mean, 1 - mean)
    proba = stats.beta.ppf(uniform, 2, 2 * (1 - rare) / rare)
    risk = np.minimum(factor * proba, 1)
    return (proba, risk) if mean < 0.5 else (1 - proba, 1 - risk)


def population_value(name, proba, risk):
    metric, params = METRICS[name]
    function = metric
    if isinstance(metric, str):
        if np.array_equal(proba, risk):
            return 0.0
        function = getattr(metrics, metric)
    if name.startswith("SKCE"):
        params = params | {"estimation": "biased"}
    weight = np.concatenate([1 - risk, risk])
    y_true = np.repeat([0, 1], len(risk))
    return function(y_true, np.tile(proba, 2), sample_weight=weight, **params)


def rare_events(quick):
    """Predictions with a beta law of shape 2."""
    print_header("metric", "mean prediction", "n", "risk is")
    for name, cells in CELLS.items():
        n_points = 2000 if name.startswith("SKCE") else 100_000
        for mean, factor, n in cells[: 1 if quick else None]:
            grid = (np.arange(n_points) + 0.5) / n_points
            rows = []
            for seed in range(2 if quick else 100):
                rng = np.random.default_rng(seed)
                proba, risk = risks(mean, factor, rng.random(n))
                rows.append(ends(name, (rng.random(n) < risk).astype(int), proba, seed))
            value = population_value(name, *risks(mean, factor, grid))
            print_row((name, mean, n, f"{factor} times"), value, rows)


def scale_of(n_classes, accuracy):
    """The factor of normal logits with which calibrated predictions are right so often."""
    logits = np.random.default_rng(1).normal(size=(20_000, n_classes))
    low, high = 0.1, 200.0
    for _ in range(30):
        middle = np.sqrt(low * high)
        is_low = special.softmax(middle * logits, axis=1).max(axis=1).mean() < accuracy
        low, high = (middle, high) if is_low else (low, middle)
    return low


def drawn_classes(n, n_classes, scale, beta, rng):
    logits = scale * rng.normal(size=(n, n_classes))
    truth = special.softmax(logits, axis=1)
    return truth, special.softmax(beta * logits, axis=1)


def accurate_classifiers(quick):
    """Classifiers that are nearly always right: softmax of normal logits, made sharper by β."""
    print_header("metric", "K", "accuracy", "n", "β")
    cells = (
        ("confidence", 3, 0.9, 100), ("confidence", 5, 0.98, 100), ("confidence", 5, 0.98, 300),
        ("confidence", 10, 0.95, 100), ("confidence", 10, 0.99, 300), ("classwise", 3, 0.98, 100),
    )  # fmt: skip
    for kind, n_classes, accuracy, n in cells[: 1 if quick else None]:
        scale = scale_of(n_classes, accuracy)
        for beta in (1, 2):
            value = 0.0
            if beta > 1:
                rng = np.random.default_rng(2)
                truth, proba = drawn_classes(20_000, n_classes, scale, beta, rng)
                value = metrics.smooth_calibration_error(
                    np.repeat(np.arange(n_classes), len(truth)),
                    np.tile(proba, (n_classes, 1)),
                    sample_weight=truth.T.ravel(),
                    multi_class=kind,
                )
            rows = []
            for seed in range(2 if quick else 60):
                rng = np.random.default_rng(seed)
                truth, proba = drawn_classes(n, n_classes, scale, beta, rng)
                y_true = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
                y_true = np.minimum(y_true, n_classes - 1)
                rows.append(ends("smooth", y_true, proba, seed, {"multi_class": kind}))
            print_row((f"smooth, {kind}", n_classes, accuracy, n, beta), value, rows)


def groups_and_weights(quick):
    """Groups whose labels have normal scores with correlation 0.5, and log-normal weights."""
    print_header("samples", "mean prediction", "risk is")
    for title, size in (("50 groups of 4", 4), ("weights, n = 200", 1)):
        for mean, factor in ((0.01, 1), (0.01, 3), (0.05, 1), (0.05, 3)):
            rows = []
            for seed in range(2 if quick else 60):
                rng = np.random.default_rng(seed)
                proba, risk = risks(mean, factor, rng.random(200))
                group = np.arange(200) // size
                score = np.sqrt(0.5) * (rng.normal(size=200) + rng.normal(size=200)[group])
                y_true = (stats.norm.cdf(score) < risk).astype(int)
                data = {"groups": group if size > 1 else None}
                data["sample_weight"] = None if size > 1 else rng.lognormal(size=200)
                rows.append(ends("smooth", y_true, proba, seed, **data))
            grid = (np.arange(100_000) + 0.5) / 100_000
            value = population_value("smooth", *risks(mean, factor, grid))
            print_row((title, mean, f"{factor} times"), value, rows)


def false_alarms(quick):
    """Comparisons of models whose errors are equal: the share of p-values of at most 0.05."""
    print("| metric | mean risk | n | two-sided | one-sided |\n|---|---|---|---|---|")
    for name in ("smooth", "log loss"):
        metric = METRICS[name][0]
        for mean, n in ((0.01, 50), (0.02, 200), (0.05, 400)):
            found = []
            # constants at equal distances, in the error or in the loss, from the true risk
            low = mean / 2
            high = mean * 1.5
            if name == "log loss":
                trial = np.linspace(mean, 10 * mean, 100_001)
                loss = -mean * np.log(trial) - (1 - mean) * np.log1p(-trial)
                at_low = -mean * np.log(low) - (1 - mean) * np.log1p(-low)
                high = trial[np.argmin(abs(loss - at_low))]
            for seed in range(2 if quick else 100):
                rng = np.random.default_rng(seed)
                y_true = (rng.random(n) < mean).astype(int)
                models = {"a": np.full(n, high), "b": np.full(n, low)}
                data = check_predicted(
                    models, y_true, sample_weight=None, labels=[0, 1], given=None, groups=None
                )
                measured = MeasuredModels.make(metric, {}, **data)
                limits = measured.limits(n_resamples=N_RESAMPLES, random_state=seed)
                found.append([limits.p_value(0.0, side) for side in ("two-sided", "greater")])
            rates = np.mean(np.array(found) <= 0.05 + 1e-9, axis=0)
            shown = " | ".join(f"{one:.3f}" for one in rates)
            print(f"| {name} | {mean} | {n} | {shown} |", flush=True)


def not_rare(quick):
    """Uniform predictions, of which a quarter are wrong."""
    print_header("metric", "n", "β")
    for name in ("smooth", "log loss"):
        for n in (30, 60, 100, 200):
            for beta in (1, 2):
                rows = []
                for seed in range(2 if quick else 30):
                    y, p = make_temperature_family(n, inverse_temperature=beta, random_state=seed)
                    rows.append(ends(name, y, p, seed))
                truth = (np.arange(100_000) + 0.5) / 100_000
                proba = truth if beta == 1 else special.expit(beta * special.logit(truth))
                print_row((name, n, beta), population_value(name, proba, truth), rows)


def overconfident(quick):
    """Log loss of models that are overconfident: normal log-odds, times β."""
    print_header("metric", "n", "β", "wrong, expected")
    grid = 2.5 * stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    for n in (60, 100, 300, 1000)[: 1 if quick else None]:
        for beta in (1, 1.6, 2.5)[: 1 if quick else None]:
            rows = []
            for seed in range(2 if quick else 400):
                rng = np.random.default_rng(seed)
                z = 2.5 * rng.normal(size=n)
                y_true = (rng.random(n) < special.expit(z)).astype(int)
                rows.append(ends("log loss", y_true, special.expit(beta * z), seed))
            value = population_value("log loss", special.expit(beta * grid), special.expit(grid))
            wrong = round(n * np.mean(special.expit(-np.abs(grid))))
            print_row(("log loss", n, beta, wrong), value, rows)


SECTIONS = (
    every_number_of_events,
    rare_events,
    accurate_classifiers,
    groups_and_weights,
    false_alarms,
    not_rare,
    overconfident,
)


def main(names, quick):
    for section in SECTIONS:
        if names and section.__name__ not in names:
            continue
        start = time.perf_counter()
        print(f"## {section.__doc__}\n", flush=True)
        section(quick)
        print(f"\n{time.perf_counter() - start:.0f} s\n", flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main([one for one in arguments if one != "--quick"], "--quick" in arguments)
