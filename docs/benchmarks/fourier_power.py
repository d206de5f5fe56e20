"""How much power random Fourier features cost the squared kernel error.

The exact statistic and those of random features test the same predictions, the same labels and the
same drawn labels, so that differences in power are far more certain than the powers. Each vector of
predictions has frequencies of its own. The kinds of miscalibration, their strengths and the
predictions are those of `test_power.py`. A second table has the power of the default test, whose
kernel error is exact for few samples and by 32 random features for more.

    python docs/benchmarks/fourier_power.py [--quick] [--jobs N]
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
from skcalib._statistics.fourier_error import FourierKernelError
from skcalib._statistics.omnibus import omnibus
from skcalib._statistics.squared_error import SquaredKernelError

N_DRAWS = 199
N_PREDICTIONS = {2000: 20, 10_000: 8}  # vectors of predictions for each distribution and K, by n
N_LABELS = 40  # of each kind, for each vector of predictions
N_COMPONENTS = (32, 50, 200, 1000)
TRUTHS = ("overconfident", "shift", "classes swapped")
SETTING = ["n", "K", "predictions", "truth"]
NAMES = ["exact", *map(str, N_COMPONENTS)]

# Of the default test: vectors of predictions by n, with the exact error below about 1400 samples of
# ten classes and 999 draws, and below 4472 in versions before. Few draws keep the exact error here.
N_PREDICTIONS_OF_DEFAULT = {1500: 24, 4000: 8}
N_LABELS_OF_DEFAULT = 20
TRUTHS_OF_DEFAULT = ("overconfident", "shift", "wave", "classes swapped", "local")


def rejections(distribution, n_classes, n, strengths, n_labels, seed):
    """A row for each kind, with the share of its vectors of labels that each statistic rejects."""
    rng = np.random.default_rng([seed, n, n_classes, len(distribution)])
    p = predictions(distribution, n_classes, n, rng)
    data = check_predictions(np.zeros(n, int), p, labels=range(n_classes))
    truths = [KINDS[kind][0](p, strength) for kind, strength in strengths.items()]
    labels = np.concatenate(
        [draw(q, k, rng) for q, k in [(p, N_DRAWS)] + [(q, n_labels) for q in truths]]
    )
    bandwidth = SquaredKernelError(data).options["bandwidth"]
    statistics = {"exact": SquaredKernelError(data, bandwidth=bandwidth)} | {
        str(d): FourierKernelError(
            data, bandwidth=bandwidth, n_components=d, seed=int(rng.integers(2**31))
        )
        for d in N_COMPONENTS
    }
    found = {}
    for name, statistic in statistics.items():
        values = np.concatenate(
            [statistic(labels[i : i + 100]) for i in range(0, len(labels), 100)]
        )
        found[name] = np.split(shares_beyond(values, N_DRAWS) <= LEVEL, len(truths))
    return [
        {
            **dict(zip(SETTING, (n, n_classes, distribution, kind), strict=True)),
            **{name: found[name][number].mean() for name in NAMES},
        }
        for number, kind in enumerate(strengths)
    ]


def rejections_of_default(n, strengths, n_labels, seed):
    """Shares that the default test rejects, (kinds, 2): exact, and with random features."""
    rng = np.random.default_rng([seed, n])
    p = predictions("uniform", 10, n, rng)
    data = check_predictions(np.zeros(n, int), p, labels=range(10))
    null = draw(p, N_DRAWS, rng)
    labels = [draw(KINDS[kind][0](p, s), n_labels, rng) for kind, s in strengths.items()]
    shares = []
    for n_resamples in (1, 10**6):  # the cost of all draws decides which error is taken
        test = omnibus(data, n_resamples=n_resamples, seed=lambda: int(rng.integers(2**31)))
        null_values = test(null)
        for alternative in labels:
            p_values = []
            for row in test(alternative):
                values = np.concatenate([row[None], null_values])
                p_values.append(share_above(test.combine_components(values[:1], values)[0]))
            shares.append(np.mean(np.array(p_values) <= LEVEL))
    return np.reshape(shares, (2, -1)).T


def print_default(sizes, n_labels, n_jobs):
    print("\nThe default test, ten classes, uniform predictions:\n")
    print_row("n", "truth", "exact", "D = 32")
    print("|" + 4 * "---|")
    for n, n_vectors in sizes.items():
        many = predictions("uniform", 10, 20_000, np.random.default_rng(0))
        strengths = {kind: strength_of(kind, many, n) for kind in TRUTHS_OF_DEFAULT}
        shares = Parallel(n_jobs)(
            delayed(rejections_of_default)(n, strengths, n_labels, seed)
            for seed in range(n_vectors)
        )
        shares = np.array(shares)  # (vectors, kinds, 2)
        for number, kind in enumerate(strengths):
            exact, features = pd.DataFrame(shares[:, number]).items()
            print_row(n, kind, with_error(exact[1])[1:], with_error(features[1] - exact[1]))


def measure(n, n_classes, distribution, n_vectors, n_labels, n_jobs):
    """For each kind, a row for each vector of predictions."""
    rng = np.random.default_rng(0)
    many = predictions(distribution, n_classes, 20_000, rng)
    strengths = {kind: strength_of(kind, many, n) for kind in TRUTHS}
    parts = Parallel(n_jobs)(
        delayed(rejections)(distribution, n_classes, n, strengths, n_labels, seed)
        for seed in range(n_vectors)
    )
    return pd.DataFrame([row for part in parts for row in part])


def with_error(values):
    """The mean, and its standard error from what vectors of predictions differ by."""
    return f"{values.mean():+.3f} ± {values.sem():.3f}"


def compared(rows):
    """The power of the exact statistic, and by how much others are above it."""
    return [with_error(rows.exact)[1:]] + [
        with_error(rows[name] - rows.exact) for name in NAMES[1:]
    ]


def print_row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def print_header(*names):
    print_row(*names, "exact", *(f"D = {d}" for d in N_COMPONENTS))
    print("|" + "---|" * (len(names) + len(NAMES)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that it runs")
    parser.add_argument("--jobs", type=int, default=1, help="number of jobs")
    options = parser.parse_args()
    sizes, n_labels = ({300: 2}, 4) if options.quick else (N_PREDICTIONS, N_LABELS)
    means = {}
    print_header(*SETTING)
    for n, n_classes, distribution in product(sizes, (3, 10), DISTRIBUTIONS):
        rows = measure(n, n_classes, distribution, sizes[n], n_labels, options.jobs)
        for kind, part in rows.groupby("truth", sort=False):
            print_row(n, n_classes, distribution, kind, *compared(part))
        means.setdefault(n, []).append(
            rows.groupby(np.arange(len(rows)) // len(TRUTHS))[NAMES].mean()
        )
    print("\nMeans of all rows:\n")
    print_header("n")
    for n, parts in means.items():
        print_row(n, *compared(pd.concat(parts)))
    if options.quick:
        print_default({300: 2}, 4, options.jobs)
    else:
        print_default(N_PREDICTIONS_OF_DEFAULT, N_LABELS_OF_DEFAULT, options.jobs)


if __name__ == "__main__":
    main()
