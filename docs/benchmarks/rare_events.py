"""How often tests with groups reject calibrated models where events are few, and others.

pip install . && python docs/benchmarks/rare_events.py
"""

import sys
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import norm

from skcalib.hypothesis_tests import CalibrationTest, SubgroupCalibrationTest, _base

N_REPETITIONS = 150
LEVEL = 0.05
GROUPS = ((20, 5), (50, 20), (500, 2))  # how many, and their size


def problem(rng, n_groups, size, rate, correlation, n_classes=2, power=1.0, weighted=False):
    """Predictions, labels, groups and weights; an event is that the likeliest class does not come.

    Labels of a group come from normal variables with this correlation. The true probabilities are
    those that are predicted, to this power.
    """
    n = n_groups * size
    groups = np.repeat(np.arange(n_groups), size)
    chance = np.minimum(rate * rng.uniform(0.2, 1.8, size=n), 0.98)
    likeliest = np.zeros(n, int) if n_classes == 2 else rng.integers(n_classes, size=n)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    proba[np.arange(n), likeliest] = 0.0
    proba *= (chance / proba.sum(axis=1))[:, None]
    proba[np.arange(n), likeliest] = 1 - chance
    truth = proba**power
    bounds = np.cumsum(truth / truth.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    common = np.sqrt(correlation) * rng.normal(size=n_groups)[groups]
    uniform = norm.cdf(common + np.sqrt(1 - correlation) * rng.normal(size=n))
    label = (uniform[:, None] >= bounds).sum(axis=1)
    weight = rng.exponential(size=n) + 0.05 if weighted else None
    return proba, label, groups, weight


def p_values(seed, statistic="omnibus", alternative="two-sided", **options):
    """Of independent labels, of signs alone, of the test, and the smallest adjusted one."""
    proba, label, groups, weight = problem(np.random.default_rng([7, seed]), **options)
    test = CalibrationTest(statistic, alternative=alternative, n_resamples=59, random_state=seed)
    test.set_params(labels=np.arange(proba.shape[1]))
    alone = test.fit(proba, label, weight).p_value_
    judge = _base.select_largest_p_value
    with patch.object(_base, "select_largest_p_value", side_effect=judge) as judged:
        test.fit(proba, label, weight, groups=groups)
    by_signs = judged.call_args.args[0][0]["p_value_"]
    of_components = getattr(test, "adjusted_p_values_", {"": test.p_value_}).values()
    return alone, by_signs, test.p_value_, min(of_components)


def p_values_of_subgroups(seed, **options):
    """Of eight subgroups: without groups, and with them."""
    proba, label, groups, _ = problem(np.random.default_rng([8, seed]), **options)
    test = SubgroupCalibrationTest(n_resamples=59, labels=[0, 1], random_state=seed)
    by = np.arange(len(label)) % 8
    alone = test.fit(proba, label, by=by).p_value_
    return alone, test.fit(proba, label, by=by, groups=groups).p_value_


def rates(parallel, function, n_repetitions, **options):
    found = parallel(delayed(function)(seed, **options) for seed in range(n_repetitions))
    return np.mean(np.array(found) <= LEVEL + 1e-9, axis=0)


def table(title, columns, rows):
    print(f"{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for names, values in rows:
        cells = [*map(str, names), *(f"{value:.3f}" for value in values)]
        print(f"| {' | '.join(cells)} |", flush=True)
    print()


def cells(quick):
    for events in (2,) if quick else (0.5, 2, 5, 10, 20, 50):
        for n_groups, size in GROUPS[: 1 if quick else 3]:
            for correlation in (0.6,) if quick else (0.0, 0.6, 0.95):
                rate = events / (n_groups * size)
                shared = {"n_groups": n_groups, "size": size, "correlation": correlation}
                yield (events, f"{n_groups} × {size}", correlation), shared | {"rate": rate}


FURTHER = {
    "log_loss, less": {"statistic": "log_loss", "alternative": "less"},
    "log_loss, greater": {"statistic": "log_loss", "alternative": "greater"},
    "weights": {"weighted": True},
    "3 classes": {"n_classes": 3},
    "5 classes": {"n_classes": 5},
    "10 classes": {"n_classes": 10},
}

POWER = [  # groups, their size, rate, correlation, power to which the truth is taken
    (60, 5, 0.5, 0.0, 1.4),
    (60, 5, 0.5, 0.3, 1.4),
    (60, 5, 0.5, 0.3, 0.6),
    (50, 20, 0.1, 0.0, 1.15),
    (50, 20, 0.1, 0.3, 0.8),
    (200, 5, 0.05, 0.3, 1.2),
    (200, 5, 0.05, 0.3, 0.8),
    (100, 5, 0.1, 0.3, 1.2),
    (100, 5, 0.1, 0.3, 0.8),
]


def main(quick=False):
    parallel = Parallel(n_jobs=2)
    n = 4 if quick else N_REPETITIONS
    columns = ["without groups", "signs alone", "with groups", "a component"]
    deviations = 4 * np.sqrt(LEVEL * (1 - LEVEL) / n)
    print("# Rare events\n\n## Tests with groups\n")
    table(
        f"Calibrated models rejected at {LEVEL}; four standard deviations are {deviations:.3f}.",
        ["events", "groups", "correlation", *columns],
        ((names, rates(parallel, p_values, n, **options)) for names, options in cells(quick)),
    )
    shared = {"n_groups": 50, "size": 4, "correlation": 0.6}
    table(
        "Other statistics and data, 50 groups of 4, correlation 0.6.",
        ["test", "events", *columns],
        (
            ((name, events), rates(parallel, p_values, n, rate=events / 200, **shared, **further))
            for name, further in FURTHER.items()
            for events in ((2,) if quick else (2, 10))
        ),
    )
    table(
        "`SubgroupCalibrationTest`, eight subgroups, any of them rejected.",
        ["events", "groups", "correlation", "without groups", "with groups"],
        (
            (names, rates(parallel, p_values_of_subgroups, n, **options))
            for names, options in cells(quick)
            if names[0] in (2, 10) and names[2] != 0.95 and names[1] != "500 × 2"
        ),
    )
    table(
        "Models that are wrong: the true probabilities are the predicted ones to a power.",
        ["groups", "event", "correlation", "power", *columns],
        (
            (
                (f"{n_groups} × {size}", rate, correlation, power),
                rates(
                    parallel,
                    p_values,
                    n,
                    n_groups=n_groups,
                    size=size,
                    rate=rate,
                    correlation=correlation,
                    power=power,
                ),
            )
            for n_groups, size, rate, correlation, power in (POWER[:1] if quick else POWER)
        ),
    )


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
