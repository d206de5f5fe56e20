"""How much power several bandwidths of the kernel test have beside one, and beside the default.

All statistics test the same predictions, the same labels and the same drawn labels, so that
differences in power are far more certain than the powers. The kinds of miscalibration, their
strengths and the predictions are those of `test_power.py`.

    python docs/benchmarks/kernel_bandwidths.py [--quick] [--jobs N]
"""

import argparse
from itertools import product

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from test_power import (
    DISTRIBUTIONS,
    KINDS,
    LEVEL,
    draw,
    predictions,
    share_above,
    shares_beyond,
    strength_of,
)

from skcalib._data import check_predictions
from skcalib.metrics._statistic import make_statistic

N_DRAWS = 199
N_PREDICTIONS = 12  # vectors of predictions for each distribution, n and K
N_LABELS = 20  # of each kind, for each vector of predictions
SIZES, CLASSES = (100, 300, 1000), (2, 4, 10)
TRUTHS = ("calibrated", *(kind for kind in KINDS if not kind.startswith(("cal", "temp"))))
SETTING = ["n", "K", "predictions", "truth"]
NAMES = ["median", "median/4", "median/16", "multiple", "default"]


def rejections(distribution, n_classes, n, strengths, n_labels, seed):
    """A row for each kind, with the share of its vectors of labels that each statistic rejects."""
    rng = np.random.default_rng([seed, n, n_classes, len(distribution)])
    p = predictions(distribution, n_classes, n, rng)
    proba = p if n_classes > 2 else p[:, 1]
    data = check_predictions(np.zeros(n, int), proba, labels=range(n_classes))
    truths = [KINDS[kind][0](p, strength) for kind, strength in strengths.items()]
    labels = np.concatenate(
        [draw(q, k, rng) for q, k in [(p, N_DRAWS)] + [(q, n_labels) for q in truths]]
    )
    options = {"as_matrix": True, "weighted": False, "n_resamples": N_DRAWS, "random_state": 0}
    several = make_statistic("skce", data, {"bandwidth": "multiple"}, **options)
    default = make_statistic("omnibus", data, {}, **options)
    values = several(labels)
    p_values = {
        name: shares_beyond(column, N_DRAWS) for name, column in zip(NAMES, values.T, strict=False)
    }
    p_values["multiple"] = together(several, values)
    p_values["default"] = together(default, default(labels))
    found = {name: np.split(p_values[name] <= LEVEL, len(truths)) for name in NAMES}
    return [
        {
            **dict(zip(SETTING, (n, n_classes, distribution, kind), strict=True)),
            **{name: found[name][number].mean() for name in NAMES},
        }
        for number, kind in enumerate(strengths)
    ]


def together(statistic, values):
    """P-values of all but the first values, which were drawn under the hypothesis."""
    null, found = values[:N_DRAWS], []
    for row in values[N_DRAWS:]:
        evidence, _ = statistic.combine_components(row[None], np.concatenate([row[None], null]))
        found.append(share_above(evidence))
    return np.array(found)


def measure(quick, n_jobs):
    """A row for each kind and each vector of predictions."""
    n_vectors, n_labels = (1, 2) if quick else (N_PREDICTIONS, N_LABELS)
    tasks = []
    for n, n_classes, distribution in product(SIZES, CLASSES, DISTRIBUTIONS):
        many = predictions(distribution, n_classes, 20_000, np.random.default_rng(0))
        strengths = {
            kind: strength_of(kind, many, n) if kind != "calibrated" else 0.0 for kind in TRUTHS
        }
        setting = (distribution, n_classes, n, strengths, n_labels)
        tasks += [delayed(rejections)(*setting, seed) for seed in range(n_vectors)]
    return pd.DataFrame([row for part in Parallel(n_jobs)(tasks) for row in part])


def print_table(rows, by):
    print("| " + " | ".join([*by, *NAMES]) + " |")
    print("|" + "---|" * (len(by) + len(NAMES)))
    for key, row in rows.groupby(by, sort=False)[NAMES].mean().iterrows():
        cells = [str(one) for one in np.atleast_1d(np.array(key, dtype=object))]
        print("| " + " | ".join([*cells, *(f"{rate:.2f}" for rate in row)]) + " |")
    print(flush=True)


def print_behind(rows):
    """By how much the power is below that of the best bandwidth of the row."""
    means = rows.groupby(SETTING, sort=False)[NAMES].mean()
    behind = -means[NAMES[:4]].sub(means[NAMES[:3]].max(axis=1), axis=0)
    print("| bandwidth | on average | at worst |\n|---|---|---|")
    for name in behind:
        print(f"| {name} | {behind[name].mean():.3f} | {behind[name].max():.2f} |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that it runs")
    parser.add_argument("--jobs", type=int, default=1, help="number of jobs")
    options = parser.parse_args()
    rows = measure(options.quick, options.jobs)
    wrong = rows[rows.truth != "calibrated"]
    print("## Means over n, K and predictions\n")
    print_table(rows, ["truth"])
    print("## Behind the best single bandwidth\n")
    print_behind(wrong)
    print("## By number of samples and classes\n")
    print_table(wrong, ["n", "K"])
    print("## All rows\n")
    print_table(rows, SETTING)


if __name__ == "__main__":
    main()
