"""How often tests with groups of unequal size reject calibrated models, and find wrong ones.

pip install . && python docs/benchmarks/groups_of_unequal_size.py
"""

import argparse
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from scipy import special
from scipy.stats import norm

from skcalib._data import EvaluationData
from skcalib._inputs import drawing
from skcalib.hypothesis_tests import (
    CalibrationTest,
    SubgroupCalibrationTest,
    find_miscalibrated_subgroups,
)
from skcalib.report import calibration_report

LEVELS = (0.01, 0.05, 0.2)
RULES = ("one for all", "full", "by size")


def one_dependence(proba, label, code, weight):
    """The rule before: one dependence for all groups, by their samples."""
    independent, identical, observed = drawing._count_distinct_labels(proba, label, code)
    share = (np.sum(independent - observed) + 2) / (np.sum(independent - identical) + 2)
    return np.full(len(observed), np.clip(share, 0.0, 1.0))


def full_dependence(proba, label, code, weight):
    return np.ones(int(code.max()) + 1)


def use_rule(name):
    """The rule of now, or in its place one of one dependence, in which labels follow one number."""
    stack = ExitStack()
    if name != "by size":
        estimate = one_dependence if name == "one for all" else full_dependence
        stack.enter_context(patch.object(drawing, "estimate_group_dependence", estimate))
        stack.enter_context(
            patch("skcalib._data.ClassData.iter_couplings", EvaluationData.iter_couplings)
        )
    return stack


def pareto_sizes(rng, n_groups):
    return np.minimum(np.ceil(2 * rng.pareto(1.2, size=n_groups)) + 1, 80).astype(int)


def beta(rng, n, mean):
    return rng.beta(1.5, 1.5 / mean - 1.5, size=n)


def problem(
    rng,
    sizes,
    rate=0.1,
    correlation=0.9,
    *,
    events=None,
    n_classes=2,
    together=False,
    truth=None,
    weights=None,
):
    """Predictions, labels, groups and weights.

    Labels of a group come from normal variables with this correlation, one for all groups or one
    for each of their sizes. They decide the class, or, `together`, how likely the class is that
    comes. `rate` is the mean probability of the second class, or of all but the likeliest; None
    draws it uniformly; `events` is its sum. `truth` makes the true probabilities of those that are
    predicted.
    """
    sizes = pareto_sizes(rng, -sizes) if isinstance(sizes, int) else sizes
    sizes = sizes(rng) if callable(sizes) else np.asarray(sizes)
    groups, n = np.repeat(np.arange(len(sizes)), sizes), int(np.sum(sizes))
    rate = rate if events is None else min(events / n, 0.5)
    if n_classes == 2:
        event = rng.uniform(size=n) if rate is None else beta(rng, n, rate)
        if together:
            event = np.where(rng.random(n) < 0.5, event, 1 - event)
        proba = np.column_stack([1 - event, event])
    else:
        proba = rng.dirichlet(np.ones(n_classes), size=n)
        likeliest = rng.integers(n_classes, size=n)
        wrong = beta(rng, n, rate)
        proba[np.arange(n), likeliest] = 0.0
        proba *= (wrong / proba.sum(axis=1))[:, None]
        proba[np.arange(n), likeliest] = 1 - wrong
    true = proba if truth is None else truth(proba)
    if isinstance(correlation, dict):
        correlation = np.array([correlation.get(int(size), 0.0) for size in sizes])[groups]
    common = rng.normal(size=len(sizes))[groups]
    uniform = norm.cdf(
        np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=n)
    )
    order = np.argsort(-true, axis=1) if together else np.tile(np.arange(n_classes), (n, 1))
    bounds = np.cumsum(np.take_along_axis(true, order, axis=1), axis=1)[:, :-1]
    position = (uniform[:, None] >= bounds).sum(axis=1)
    label = np.take_along_axis(order, position[:, None], axis=1)[:, 0]
    weight = None if weights is None else rng.lognormal(sigma=weights, size=n)
    return proba, label, groups, weight


def at_temperature(temperature):
    """The probabilities at this temperature: above 1, the predicted ones are too extreme."""
    return lambda proba: special.softmax(np.log(np.maximum(proba, 1e-300)) / temperature, axis=1)


def shifted(amount):
    """Log-odds of the second class that are higher by this amount."""

    def truth(proba):
        event = special.expit(special.logit(np.clip(proba[:, 1], 1e-12, 1 - 1e-12)) + amount)
        return np.column_stack([1 - event, event])

    return truth


LARGE_AND_PAIRS = [60] * 20 + [2] * 380
FEW_LARGE = [60] * 10 + [2] * 190

SIZE = {
    "20 × 60 (.999), 380 pairs, p .015": {
        "sizes": LARGE_AND_PAIRS, "rate": 0.015, "correlation": {60: 0.999}
    },
    "20 × 60 (.9), 380 pairs, p .015": {
        "sizes": LARGE_AND_PAIRS, "rate": 0.015, "correlation": {60: 0.9}
    },
    "20 × 60 (.7), 380 pairs, p .015": {
        "sizes": LARGE_AND_PAIRS, "rate": 0.015, "correlation": {60: 0.7}
    },
    "20 × 60 (.5), 380 pairs, p .015": {
        "sizes": LARGE_AND_PAIRS, "rate": 0.015, "correlation": {60: 0.5}
    },
    "10 × 60 (.9), 190 pairs, p .03": {
        "sizes": FEW_LARGE, "rate": 0.03, "correlation": {60: 0.9}
    },
    "10 × 60 (.9), 190 pairs, p .1": {"sizes": FEW_LARGE, "correlation": {60: 0.9}},
    "10 × 60, 190 pairs, all .9, p .03": {"sizes": FEW_LARGE, "rate": 0.03},
    "20 × 30 (.9), 300 singles, p .03": {
        "sizes": [30] * 20 + [1] * 300, "rate": 0.03, "correlation": {30: 0.9}
    },
    "5 × 100, 30 × 20 (.95), 200 pairs, p .05": {
        "sizes": [100] * 5 + [20] * 30 + [2] * 200, "rate": 0.05, "correlation": {20: 0.95}
    },
    "errors together, 40 × 8 (.95), p .06": {
        "sizes": [8] * 40, "rate": 0.06, "correlation": 0.95, "together": True
    },
    "errors together, 40 × 8 (.95), p .125": {
        "sizes": [8] * 40, "rate": 0.125, "correlation": 0.95, "together": True
    },
    "errors together, 20 × 60 (.9), 380 pairs, p .03": {
        "sizes": LARGE_AND_PAIRS, "rate": 0.03, "correlation": {60: 0.9}, "together": True
    },
    "3 classes, 10 × 60 (.999), 190 pairs, p .04": {
        "sizes": FEW_LARGE, "rate": 0.04, "correlation": {60: 0.999}, "n_classes": 3
    },
    "8 classes, errors together, 60 × 8 (.95), p .06": {
        "sizes": [8] * 60, "rate": 0.06, "correlation": 0.95, "together": True, "n_classes": 8
    },
    "log loss, less: 20 × 60 (.9), 380 pairs, p .015": {
        "sizes": LARGE_AND_PAIRS, "rate": 0.015, "correlation": {60: 0.9},
        "statistic": "log_loss", "alternative": "less",
    },
    "log loss, less: errors together, 80 × 8 (.95), p .06": {
        "sizes": [8] * 80, "rate": 0.06, "correlation": 0.95, "together": True,
        "statistic": "log_loss", "alternative": "less",
    },
    "log loss, less: 60 Pareto sizes (.9), p .1": {
        "sizes": -60, "statistic": "log_loss", "alternative": "less"
    },
    "skce: 20 × 60 (.9), 380 pairs, p .015": {
        "sizes": LARGE_AND_PAIRS, "rate": 0.015, "correlation": {60: 0.9}, "statistic": "skce"
    },
    "60 × 5 (.3), uniform p": {"sizes": [5] * 60, "rate": None, "correlation": 0.3},
    "200 × 5 (.3), p .1": {"sizes": [5] * 200, "correlation": 0.3},
    "200 Pareto sizes (.5), p .1": {"sizes": -200, "correlation": 0.5},
    "100 Pareto sizes (.9), p .05, log-normal weights": {
        "sizes": -100, "rate": 0.05, "weights": 1.0
    },
    "3 classes, 100 × 8 (.3), p .2": {
        "sizes": [8] * 100, "rate": 0.2, "correlation": 0.3, "n_classes": 3
    },
}  # fmt: skip

ORDINARY = {
    f"{name}, {events} events, {n_classes} classes": options
    | {"events": events, "n_classes": n_classes}
    for name, options in {
        "15 groups of 1 to 12 (.3)": {
            "sizes": lambda rng: rng.integers(1, 13, size=15), "correlation": 0.3
        },
        "60 Pareto sizes (.9)": {"sizes": -60},
        "400 Pareto sizes (0)": {"sizes": -400, "correlation": 0.0},
        "5 × 60 (.9), 95 pairs (.9)": {"sizes": [60] * 5 + [2] * 95},
    }.items()
    for events in (0.3, 1, 3, 10, 30)
    for n_classes in (2, 3, 8)
    if n_classes < 8 or events <= 10
}  # fmt: skip

POWER = {
    "T 1.6, 60 × 5 (.3), uniform p": {
        "sizes": [5] * 60, "rate": None, "correlation": 0.3, "truth": at_temperature(1.6)
    },
    "T 1.6, 60 × 5 (0), uniform p": {
        "sizes": [5] * 60, "rate": None, "correlation": 0.0, "truth": at_temperature(1.6)
    },
    "T .7, 200 × 5 (.3), p .1": {
        "sizes": [5] * 200, "correlation": 0.3, "truth": at_temperature(0.7)
    },
    "T 1.3, 100 × 8 (.3), p .1": {
        "sizes": [8] * 100, "correlation": 0.3, "truth": at_temperature(1.3)
    },
    "log-odds + .5, 150 groups of 1 to 12 (.2), p .1": {
        "sizes": lambda rng: rng.integers(1, 13, size=150), "correlation": 0.2,
        "truth": shifted(0.5),
    },
    "log-odds + .5, 300 × 3 (0), p .05": {
        "sizes": [3] * 300, "rate": 0.05, "correlation": 0.0, "truth": shifted(0.5)
    },
    "3 classes, T 1.5, 80 × 5 (.2), p .3": {
        "sizes": [5] * 80, "rate": 0.3, "correlation": 0.2, "n_classes": 3,
        "truth": at_temperature(1.5),
    },
    "log-odds + .5, 150 × 5 (.2), p .1, log-normal weights": {
        "sizes": [5] * 150, "correlation": 0.2, "weights": 1.0, "truth": shifted(0.5)
    },
    "T 1.5, 20 × 30 (.1), 200 pairs (.1), p .2": {
        "sizes": [30] * 20 + [2] * 200, "rate": 0.2, "correlation": 0.1,
        "truth": at_temperature(1.5),
    },
    "T 1.4, 300 Pareto sizes (.2), p .3": {
        "sizes": -300, "rate": 0.3, "correlation": 0.2, "truth": at_temperature(1.4)
    },
    "log-odds + .5, 20 × 60 (.1), 380 pairs (0), p .03": {
        "sizes": LARGE_AND_PAIRS, "rate": 0.03, "correlation": {60: 0.1}, "truth": shifted(0.5)
    },
}  # fmt: skip


def calibration_p_values(
    seed, n_resamples, rules, statistic="auto", alternative="two-sided", **options
):
    """P-values of `CalibrationTest` by each rule."""
    proba, label, groups, weight = problem(np.random.default_rng([11, seed]), **options)
    test = CalibrationTest(statistic, alternative=alternative, n_resamples=n_resamples)
    test.set_params(labels=np.arange(proba.shape[1]), random_state=seed)
    p_values = []
    for rule in rules:
        with use_rule(rule):
            p_values.append(test.fit(proba, label, weight, groups=groups).p_value_)
    return p_values


def columns_of(groups, rng):
    """Three subgroups: large groups, and two halves of the others; and one column of noise."""
    is_large = np.bincount(groups)[groups] > 10
    half = rng.integers(2, size=groups.max() + 1)[groups]
    return np.where(is_large, "large", np.where(half == 1, "first", "second")), rng.random(
        len(groups)
    )


def subgroup_p_values(seed, n_resamples, truth=None, **options):
    """Of subgroups and of the search, by the rule before and by that of now."""
    rng = np.random.default_rng([12, seed])
    proba, label, groups, _ = problem(rng, **options)
    by, noise = columns_of(groups, rng)
    if truth is not None:
        wrong = by == "first"
        true = truth(proba)
        label = np.where(wrong, (rng.random((len(by), 1)) >= true.cumsum(1)[:, :-1]).sum(1), label)
    shared = {"labels": np.arange(proba.shape[1]), "n_resamples": n_resamples, "random_state": seed}
    p_values = []
    for rule in ("one for all", "by size"):
        with use_rule(rule):
            test = SubgroupCalibrationTest(**shared).fit(proba, label, by=by, groups=groups)
            columns = {"by": by, "noise": noise}
            search = find_miscalibrated_subgroups(label, proba, columns, groups=groups, **shared)
            p_values += [test.p_value_, search.p_value]
    return p_values


def report_rejections(seed, n_resamples, **options):
    """Whether the report says "Miscalibrated", by the rule before and by that of now: 0 if so."""
    proba, label, groups, _ = problem(np.random.default_rng([13, seed]), **options)
    verdicts = []
    for rule in ("one for all", "by size"):
        with use_rule(rule):
            report = calibration_report(label, proba, labels=[0, 1], groups=groups, random_state=0)
            verdicts.append(float(not report.advice.startswith("Miscalibrated")))
    return verdicts


def rates(parallel, function, n_repetitions, levels, **options):
    """The share of p-values up to each level, as a text for each p-value."""
    p_values = np.array(parallel(delayed(function)(s, **options) for s in range(n_repetitions)))
    rejected = np.mean(p_values[..., None] <= np.array(levels) + 1e-9, axis=0)
    return [" / ".join(f"{rate:.3f}" for rate in row) for row in rejected]


LARGE = {"sizes": LARGE_AND_PAIRS, "rate": 0.015, "correlation": {60: 0.9}}
FEW = {"sizes": FEW_LARGE, "rate": 0.1, "correlation": {60: 0.9}}

SUBGROUPS = {
    "calibrated, 20 × 60 (.9), 380 pairs, p .015": LARGE,
    "calibrated, 10 × 60 (.9), 190 pairs, p .1": FEW,
    "calibrated, errors together, 20 × 60 (.9), 380 pairs, p .03": LARGE
    | {"together": True, "rate": 0.03},
    "T 3 in one of three, 10 × 60 (.9), 190 pairs, p .1": FEW | {"truth": at_temperature(3)},
}

REPORTS = {
    "20 × 60 (.9), 380 pairs, p .015": LARGE,
    "10 × 60 (.9), 190 pairs, p .1": FEW,
}

# What is shown, columns, cells, p-values, levels, and how many times fewer repetitions.
TABLES = {
    "size": ("Calibrated models rejected", RULES, SIZE, calibration_p_values, LEVELS, 1),
    "ordinary": ("Calibrated models rejected", RULES, ORDINARY, calibration_p_values, LEVELS, 1),
    "power": ("Wrong models rejected", RULES, POWER, calibration_p_values, [0.05], 1),
    "subgroups": (
        "Three subgroups, of which some is rejected",
        ["subgroups: one for all", "search: one for all", "subgroups: by size", "search: by size"],
        SUBGROUPS,
        subgroup_p_values,
        [0.05],
        1,
    ),
    "report": (
        'Calibrated models that a report calls "Miscalibrated"',
        ["one for all", "by size"],
        REPORTS,
        report_rejections,
        [0.05],
        6,
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--n-resamples", type=int, default=99)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--cells", default="", help="only those that contain this text")
    parser.add_argument("--rules", nargs="*", default=RULES, choices=RULES, help="of three columns")
    options = parser.parse_args()
    parallel = Parallel(n_jobs=options.n_jobs)
    print("# Groups of unequal size\n")
    for table in options.tables:
        title, columns, cells, function, levels, divisor = TABLES[table]
        n = 2 if options.quick else options.repetitions // divisor
        shared = {"n_resamples": options.n_resamples}
        if columns is RULES:
            columns, shared["rules"] = options.rules, options.rules
        print(f"{title} at {', '.join(map(str, levels))}: {n} repetitions.\n")
        print(f"| groups (correlation) | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
        names = [name for name in cells if options.cells in name][: 1 if options.quick else None]
        for name in names:
            rejected = rates(parallel, function, n, levels, **cells[name], **shared)
            print(f"| {' | '.join([name, *rejected])} |", flush=True)
        print()


if __name__ == "__main__":
    main()
