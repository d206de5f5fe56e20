"""How often tests of calibration find miscalibration of different kinds (their power).

The kinds, the distributions of the predictions and their strengths were fixed before any power was
measured. How strong a kind is follows from no test in the table: a test that knew the truth, that
of Neyman and Pearson, would find it with probability 0.99 (or as near to that as the kind allows).
Matplotlib is needed for the figure only.

    python docs/benchmarks/test_power.py [--quick] [--jobs N] [--figure FILE]
"""

import argparse
from itertools import product

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from skcalib._data import check_predictions
from skcalib._inputs.drawing import draw_labels
from skcalib._statistics.omnibus import omnibus
from skcalib._statistics.residuals import ScoreExcess
from skcalib.hypothesis_tests import CoxTest, HosmerLemeshowTest, SpiegelhalterTest, UCMETest
from skcalib.metrics import (
    cumulative_calibration_error,
    expected_calibration_error,
    smooth_calibration_error,
    smooth_expected_calibration_error,
)

LEVEL = 0.05
N_DRAWS = 199
N_PREDICTIONS = 24  # vectors of predictions for each distribution, n and K
N_LABELS = 20  # of each kind, for each vector of predictions
N_PREDICTIONS_OF_SLOW = 8  # for statistics that take long
N_DRAWS_OF_SLOW = 99
MUCH = 0.08  # a difference in power
POSSIBLE = 0.99  # power of a test that knows the truth
N_WAVES = 4

# Concentrations of a Dirichlet distribution of the predictions.
DISTRIBUTIONS = {
    "uniform": lambda n_classes: np.ones(n_classes),
    "dominated": lambda n_classes: np.array([n_classes] + [0.5] * (n_classes - 1)),
}


# What is true where p (n, K) is predicted. The strength is 0 if the model is calibrated.


def tempered(p, power):
    q = p ** np.broadcast_to(power, len(p))[:, None]
    return q / q.sum(axis=1, keepdims=True)


def with_probability(p, column, value):
    """The probabilities with new ones of one class in each row; the others keep their ratios."""
    rows = np.arange(len(p))
    q = p * ((1 - value) / (1 - p[rows, column]))[:, None]
    q[rows, column] = value
    return q


def watched(p):
    """The predicted class, of two classes the second one, its probability and the rank of that."""
    column = p.argmax(axis=1) if p.shape[1] > 2 else np.ones(len(p), int)
    c = p[np.arange(len(p)), column]
    return column, c, (c.argsort().argsort() + 0.5) / len(c)


def shifted(p, strength):
    return with_probability(p, np.zeros(len(p), int), expit(logit(p[:, 0]) + strength))


def wave(p, strength):
    column, c, rank = watched(p)
    return with_probability(
        p, column, c + strength * c * (1 - c) * np.sin(2 * np.pi * N_WAVES * rank)
    )


def swapped(p, strength):
    q = p.copy()
    q[:, :2] += strength * (p[:, 1::-1] - p[:, :2])
    return q


def one_class(p, strength):
    centre, own = logit(p[:, 1].mean()), logit(p[:, 1])
    value = expit(centre + (own - centre) / (1 + strength))
    return with_probability(p, np.ones(len(p), int), value)


def one_side(p, strength):
    return tempered(p, np.where(watched(p)[2] > 0.5, 1 / (1 + strength), 1.0))


def local(p, strength):
    column, c, rank = watched(p)
    is_near = (rank > 0.3) & (rank < 0.4)
    return with_probability(p, column, c + strength * (1 - c) * is_near)


# Each with its largest strength; those without one have a fixed strength.
KINDS = {
    "calibrated": (lambda p, _: p, None),
    "temperature 1.3": (lambda p, _: tempered(p, 1 / 1.3), None),
    "temperature 1/1.3": (lambda p, _: tempered(p, 1.3), None),
    "overconfident": (lambda p, strength: tempered(p, 1 / (1 + strength)), 9.0),
    "underconfident": (lambda p, strength: tempered(p, 1 + strength), 9.0),
    "one side overconfident": (one_side, 9.0),
    "shift": (shifted, 5.0),
    "wave": (wave, 1.0),
    "classes swapped": (swapped, 1.0),
    "one bad class": (one_class, 9.0),
    "local": (local, 0.95),
}


def predictions(distribution, n_classes, n, rng):
    p = rng.dirichlet(DISTRIBUTIONS[distribution](n_classes), size=n)
    return np.maximum(p, 1e-6) / np.maximum(p, 1e-6).sum(axis=1, keepdims=True)


def possible_power(p, q, n):
    """That of the likelihood ratio of q (N, K) and p for n samples, by its normal approximation."""
    ratio = np.log(q / p)
    means = [np.sum(proba * ratio, axis=1) for proba in (p, q)]
    variances = [
        np.sum(proba * ratio**2, axis=1) - mean**2
        for proba, mean in zip((p, q), means, strict=True)
    ]
    gap = np.sqrt(n) * np.mean(means[1] - means[0])
    deviations = np.sqrt(np.mean(variances, axis=1))
    return norm.sf((norm.isf(LEVEL) * deviations[0] - gap) / deviations[1])


def strength_of(kind, p, n):
    """That which a test that knows the truth finds with probability `POSSIBLE`, or the largest."""
    truth, largest = KINDS[kind]
    if largest is None:
        return 0.0

    def excess(strength):
        return possible_power(p, truth(p, strength), n) - POSSIBLE

    return largest if excess(largest) < 0 else brentq(excess, 1e-4, largest, xtol=1e-4)


class Statistics:
    """All statistics of the same predictions, in batches of labels."""

    slow = {
        "smooth CE": (smooth_calibration_error, {}),
        "smECE": (smooth_expected_calibration_error, {}),
        "ECE, 15 bins": (expected_calibration_error, {"n_bins": 15}),
        "cumulative": (cumulative_calibration_error, {}),
    }
    two_sided = ("Brier excess", "Spiegelhalter")

    def __init__(self, p, rng):
        n_classes = p.shape[1]
        data = check_predictions(
            np.zeros(len(p), int), p if n_classes > 2 else p[:, 1], labels=range(n_classes)
        )
        self.omnibus = omnibus(data)
        self.two = omnibus(data)
        self.two.components = {key: self.two.components[key] for key in ("skce", "log_loss")}
        self.two.weights = (1.0, 1.0)
        # confidence and whether the prediction is right, or the probability of the second class
        binary = data if data.is_binary else data.confidence()
        self.hit = 1 if data.is_binary else p.argmax(axis=1)
        self.order = binary.canonical_order()
        binary = binary.take(self.order)
        self.proba = binary.proba
        points = rng.dirichlet(np.ones(n_classes), size=10)
        codes = rng.integers(n_classes, size=10)
        self.of_labels = {
            "Brier excess": ScoreExcess(data, "brier_score_loss"),
            "UCME": UCMETest()._statistic(data, points, codes),
        }
        self.bin_hits = {
            "Cox": CoxTest()._statistic(binary),
            "Spiegelhalter": SpiegelhalterTest()._statistic(binary),
            "Hosmer–Lemeshow": HosmerLemeshowTest()._statistic(binary),
        }

    def hits(self, labels):
        return (labels == self.hit)[:, self.order].astype(np.int32)

    def p_values(self, null, labels):
        """Of each vector of labels (R, n) among those that were drawn from the predictions."""
        everything = np.concatenate([null, labels])
        hits, found = self.hits(everything), {}
        for statistics, drawn in ((self.of_labels, everything), (self.bin_hits, hits)):
            for name, statistic in statistics.items():
                values = statistic(drawn)
                found[name] = shares_beyond(values, len(null), name in self.two_sided)
        values = self.omnibus(everything)
        rows = [self.combine_components(row, values[: len(null)]) for row in values[len(null) :]]
        return found | {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def slow_p_values(self, null, labels):
        hits, found = self.hits(np.concatenate([null, labels])), {}
        for name, (metric, options) in self.slow.items():
            values = np.array([metric(hit, self.proba, **options) for hit in hits])
            found[name] = shares_beyond(values, len(null))
        return found

    def combine_components(self, row, null):
        """The omnibus, its components, and other combinations of these."""
        values = np.concatenate([row[None], null])
        together, found = self.omnibus.combine_components(values[:1], values)
        two, _ = self.two.combine_components(values[:1, :2], values[:, :2])
        return {
            "omnibus": share_above(together),
            **found["component_p_values_"],
            "smallest of four": min(found["adjusted_p_values_"].values()),
            "skce and log_loss": share_above(two),
        }


def shares_beyond(values, n_null, is_two_sided=False):
    """P-values of all but the first values, which were drawn under the hypothesis."""
    slack = 1e-10 * np.abs(values).max()
    null, ours = np.sort(values[:n_null]), values[n_null:]
    count = 1 + n_null - np.searchsorted(null, ours - slack, side="left")
    if is_two_sided:
        count = 2 * np.minimum(count, 1 + np.searchsorted(null, ours + slack, side="right"))
    return count / (1 + n_null)


def share_above(values):
    return np.mean(values >= values[0] * (1 - 1e-12))


COMPONENTS = ["skce", "log_loss", "level_and_spread", "local"]
OTHERS = [*Statistics.slow, "Brier excess", "Cox", "Spiegelhalter", "Hosmer–Lemeshow", "UCME"]
DEFAULTS = ["omnibus", *COMPONENTS, *OTHERS]
COMBINATIONS = ["smallest of four", "skce and log_loss"]
COLUMNS = [*DEFAULTS, *COMBINATIONS, "possible"]
SETTING = ["n", "K", "predictions", "kind"]


def rejections(distribution, n_classes, n, strengths, n_labels, seed):
    """A row for each kind, with the share of its vectors of labels that each test rejects."""
    rng = np.random.default_rng([seed, n, n_classes, len(distribution)])
    p = predictions(distribution, n_classes, n, rng)
    statistics = Statistics(p, rng)
    null = draw(p, N_DRAWS, rng)
    truths = [KINDS[kind][0](p, strength) for kind, strength in strengths.items()]
    labels = [draw(q, n_labels, rng) for q in truths]
    p_values = statistics.p_values(null, np.concatenate(labels))
    if seed < N_PREDICTIONS_OF_SLOW:
        p_values |= statistics.slow_p_values(null[:N_DRAWS_OF_SLOW], np.concatenate(labels))
    found = {name: np.split(values <= LEVEL, len(labels)) for name, values in p_values.items()}
    found["possible"] = [
        most_powerful(np.log(q / p), null, drawn) for q, drawn in zip(truths, labels, strict=True)
    ]
    return [
        {
            **dict(zip(SETTING, (n, n_classes, distribution, kind), strict=True)),
            "strength": strength,
            **{name: found[name][number].mean() for name in COLUMNS if name in found},
        }
        for number, (kind, strength) in enumerate(strengths.items())
    ]


def most_powerful(ratio, null, labels):
    """Whether the likelihood ratio (n, K) rejects each vector of labels."""
    rows = np.arange(len(ratio))
    values = np.array([ratio[rows, y].sum() for y in (*null, *labels)])
    if not ratio.any():
        return np.full(len(labels), np.nan)
    return shares_beyond(values, len(null)) <= LEVEL


def draw(p, n_draws, rng):
    return draw_labels(p if p.shape[1] > 2 else p[:, 1], n_draws, rng)


def measure(quick, n_jobs):
    """The mean rates of rejection, and the largest standard error of each column."""
    n_vectors, n_labels = (2, 2) if quick else (N_PREDICTIONS, N_LABELS)
    tasks = []
    for n, n_classes, distribution in product((100, 1000), (2, 5, 10), DISTRIBUTIONS):
        rng = np.random.default_rng(0)
        many = predictions(distribution, n_classes, 2000 if quick else 20_000, rng)
        strengths = {kind: strength_of(kind, many, n) for kind in KINDS}
        setting = (distribution, n_classes, n, strengths, n_labels)
        tasks += [delayed(rejections)(*setting, seed) for seed in range(n_vectors)]
    rows = pd.DataFrame([row for part in Parallel(n_jobs)(tasks) for row in part])
    rows = rows.groupby([*SETTING, "strength"], sort=False)[COLUMNS]
    return rows.mean().reset_index(), rows.sem().max()


# ---- what is printed


def print_table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_powers(table):
    print("## All rates\n")
    header = ["n", "K", "predictions", "truth", "strength", *COLUMNS]
    print_table(
        header,
        (
            [str(row.n), str(row.K), row.predictions, row.kind]
            + [f"{row.strength:.2f}" if row.strength else ""]
            + [shown(row[name]) for name in COLUMNS]
            for _, row in table.iterrows()
        ),
    )


def shown(rate):
    return "" if np.isnan(rate) else f"{rate:.2f}"


def print_means(table):
    print("## Means over K and predictions\n")
    means = table.groupby(["n", "kind"], sort=False)[COLUMNS].mean()
    print_table(
        ["n", "truth", *COLUMNS],
        ([str(n), kind, *map(shown, row)] for (n, kind), row in means.iterrows()),
    )


def print_behind(table, ours, best, title):
    gap = best - ours
    behind = table[gap > MUCH]
    print(f"## {title}\n\n{len(behind)} of {len(table)} rows. ", end="")
    print(f"In all rows it is {gap.mean():.3f} behind on average, {gap.max():.3f} at most.\n")
    if len(behind):
        print_table(
            ["n", "K", "predictions", "truth", "omnibus", *COMPONENTS],
            (
                [str(row.n), str(row.K), row.predictions, row.kind]
                + [f"{row[name]:.2f}" for name in ("omnibus", *COMPONENTS)]
                for _, row in behind.iterrows()
            ),
        )


def print_regret(table):
    print("## As defaults\n")
    best = table[DEFAULTS].max(axis=1)
    lines = []
    for name in [*DEFAULTS, *COMBINATIONS]:
        regret = best - table[name]
        by_n = [regret[table.n == n].mean() for n in (100, 1000)]
        numbers = [table[name].mean(), regret.mean(), *by_n, regret.max()]
        row = table.loc[regret.idxmax()]
        worst = f"{row.kind}, {row.predictions}, n = {row.n}, K = {row.K}"
        far = str(np.sum(regret > MUCH))
        lines.append([name, *(f"{number:.3f}" for number in numbers), far, worst])
    header = "statistic|mean power|mean regret|n = 100|n = 1000|worst regret|rows|worst at"
    print_table(header.split("|"), lines)


def save_figure(table, path):
    """Heat maps of the means over predictions: a panel a kind, a row a statistic, columns n, K."""
    import matplotlib.pyplot as plt

    means = table.groupby(["kind", "n", "K"], sort=False)[COLUMNS].mean()
    kinds = list(KINDS)
    settings = list(product((100, 1000), (2, 5, 10)))
    names = [*DEFAULTS, "possible"]
    figure, axes = plt.subplots(
        3, 4, figsize=(15, 13), sharey=True, gridspec_kw={"hspace": 0.28, "wspace": 0.05}
    )
    for axis, kind in zip(axes.flat, kinds, strict=False):
        values = np.array([means.loc[(kind, *setting), names] for setting in settings]).T
        image = axis.imshow(values, cmap="cividis", vmin=0, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            text = {"ha": "center", "va": "center", "fontsize": 9}
            text["color"] = "white" if value < 0.5 else "black"
            axis.text(column, row, shown(value).removeprefix("0"), **text)
        axis.axvline(2.5, color="white", lw=3)
        for line in (0.5, len(COMPONENTS) + 0.5, len(DEFAULTS) - 0.5):
            axis.axhline(line, color="white", lw=2)
        axis.set_title(kind, fontsize=11)
        axis.set_yticks(range(len(names)), names, fontsize=9)
        axis.set_xticks(range(len(settings)), [f"K={k}" for _, k in settings], fontsize=8)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        for column, n in ((1, 100), (4, 1000)):
            axis.text(column, len(names) + 0.9, f"n = {n}", ha="center", va="top", fontsize=9)
    rest = axes.flat[len(kinds)]
    rest.axis("off")
    inner = rest.inset_axes((0.1, 0.6, 0.8, 0.05))
    figure.colorbar(image, cax=inner, orientation="horizontal", label="share rejected at 0.05")
    figure.savefig(path, dpi=80, bbox_inches="tight")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that it runs")
    parser.add_argument("--jobs", type=int, default=1, help="number of jobs")
    parser.add_argument("--figure", help="where to save the figure")
    options = parser.parse_args()
    everything, errors = measure(options.quick, options.jobs)
    table = everything[everything.kind != "calibrated"].reset_index(drop=True)
    quick = [name for name in DEFAULTS if name not in (*Statistics.slow, "UCME")]
    for names in (quick, ["UCME"], [*Statistics.slow]):
        print(f"Standard errors are at most {errors[names].max():.3f} for {', '.join(names)}.")
    print()
    print_regret(table)
    print_means(everything)
    best = table[COMPONENTS].max(axis=1)
    title = f"The omnibus more than {MUCH} behind its best component"
    print_behind(table, table.omnibus, best, title)
    title = f"The squared kernel error more than {MUCH} behind the omnibus"
    print_behind(table, table.skce, table.omnibus, title)
    print_powers(everything)
    if options.figure:
        save_figure(everything, options.figure)


if __name__ == "__main__":
    main()
