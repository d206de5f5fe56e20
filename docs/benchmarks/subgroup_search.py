"""How often a search for miscalibrated subgroups blames an innocent column, and finds a guilty one.

Three columns follow the log-odds of the prediction, with noise of 0.5, 1 and 2; the fourth is a
category that is independent of everything. Given the prediction no column matters, but for the last
rows, where the log-odds of one category are shifted.
"""

import argparse

import numpy as np
from scipy.special import expit, logit, softmax

from skcalib.hypothesis_tests import find_miscalibrated_subgroups

# The true log-odds where z is predicted.
ERRORS = {
    "none": lambda z: z,
    "intercept 0.4, slope 0.7": lambda z: 0.4 + 0.7 * z,
    "halved above 0": lambda z: np.where(z > 0, z / 2, z),
    "constant above p = 0.7": lambda z: np.where(z > logit(0.7), logit(0.55), z),
    "wave of p": lambda z: logit(
        np.clip(expit(z) + 0.1 * np.sin(6 * np.pi * expit(z)), 0.001, 0.999)
    ),
    "jumps at p = 0.5": lambda z: z + np.where(z > 0, 0.6, -0.6),
}
# error, shift of a category, distribution of p, samples
CELLS = [
    ("none", 0, (1, 1), 200),
    ("none", 0, (1, 30), 1000),
    ("none", 0, (0.2, 0.2), 1000),
    ("intercept 0.4, slope 0.7", 0, (1, 1), 1000),
    ("halved above 0", 0, (1, 1), 1000),
    ("halved above 0", 0, (1, 1), 5000),
    ("halved above 0", 0, (0.2, 0.2), 5000),
    ("constant above p = 0.7", 0, (1, 1), 3000),
    ("wave of p", 0, (1, 1), 2000),
    ("jumps at p = 0.5", 0, (1, 1), 3000),
    ("none", 0.6, (1, 1), 1000),
    ("halved above 0", 0.5, (1, 1), 2000),
    ("none", 1, (1, 30), 2000),
]

# What is wrong, the shift of the log-odds, samples; of people with an age, a sex and a site.
CROSSINGS = [
    ("nothing", lambda X: np.zeros(len(X["age"]), bool), 0.0, 600),
    ("nothing", lambda X: np.zeros(len(X["age"]), bool), 0.0, 1500),
    ("women", lambda X: X["sex"] == "female", 0.6, 800),
    ("age above 70", lambda X: X["age"] > 70, 0.6, 1500),
    ("women above 65", lambda X: (X["age"] > 65) & (X["sex"] == "female"), 1.2, 1500),
    ("sites a and b above 65", lambda X: (X["age"] > 65) & (X["site"] <= "b"), 1.2, 1500),
    ("site a above 65", lambda X: (X["age"] > 65) & (X["site"] == "a"), 1.2, 1500),
    ("site a above 65", lambda X: (X["age"] > 65) & (X["site"] == "a"), 1.2, 4000),
]


def columns(z, rng):
    found = {f"noise {s}": z + s * rng.normal(size=len(z)) for s in (0.5, 1, 2)}
    return found | {"category": rng.choice(list("abcd"), len(z))}


def found_column(error, shift, shape, n, seed):
    """The column that is blamed at the level .05, or None."""
    rng = np.random.default_rng(seed)
    proba = np.clip(rng.beta(*shape, n), 1e-4, 1 - 1e-4)
    X = columns(logit(proba), rng)
    truth = ERRORS[error](logit(proba)) + shift * (X["category"] == "a")
    y = rng.random(n) < expit(truth)
    result = find_miscalibrated_subgroups(
        y, proba, X, labels=[False, True], n_resamples=199, random_state=seed
    )
    return result.column[0] if result.p_value <= 0.05 else None


def found_class_column(temperature, n, n_classes, seed):
    """The same for classes, each of which is searched; all are overconfident where one is sure."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, n_classes))
    proba = softmax(z, axis=1)
    overconfident = proba.max(axis=1, keepdims=True) > 0.6
    truth = softmax(np.where(overconfident, z / temperature, z), axis=1)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=n_classes - 1)
    result = find_miscalibrated_subgroups(
        y,
        proba,
        columns(z[:, 0], rng),
        multi_class="classwise",
        labels=range(n_classes),
        n_resamples=199,
        random_state=seed,
    )
    return result.column[0] if result.p_value <= 0.05 else None


def searched_with_crossings(is_wrong, shift, n, seed):
    """P-values of the search of columns, and of columns and their crossings."""
    rng = np.random.default_rng(seed)
    proba = rng.beta(2, 3, n)
    X = {
        "age": rng.uniform(18, 90, n),
        "sex": rng.choice(["female", "male"], n),
        "site": rng.choice(list("abcdef"), n),
        "weight": rng.normal(75, 15, n),
        "smokes": rng.choice(["yes", "no"], n),
        "pressure": rng.normal(130, 15, n),
    }
    y = rng.random(n) < expit(logit(proba) + shift * is_wrong(X))
    return [
        find_miscalibrated_subgroups(
            y, proba, X, crossings=crossings, n_resamples=199, random_state=seed
        ).p_value
        for crossings in (False, True)
    ]


def row(repetitions, find, *arguments):
    found = [find(*arguments, seed) for seed in range(repetitions)]
    guilty = np.mean([column == "category" for column in found])
    innocent = np.mean([column not in (None, "category") for column in found])
    return f"{innocent:.2f} | {guilty:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that it runs")
    parser.add_argument("--repetitions", type=int, default=100)
    options = parser.parse_args()
    repetitions = 2 if options.quick else options.repetitions

    print(
        f"\nTwo classes, {repetitions} searches a row: share that blames a column that follows the"
    )
    print("risk, and the independent category\n")
    print("| common error | shift of the category | p | n | follows the risk | category |")
    print("|---|---|---|---|---|---|")
    for error, shift, shape, n in CELLS:
        cells = row(repetitions, found_column, error, shift, shape, n)
        print(f"| {error} | {shift} | Beta{shape} | {n} | {cells}", flush=True)

    print(f"\nClasses one by one, {repetitions} searches a row\n")
    print("| temperature where sure | classes | n | follows the risk | category |")
    print("|---|---|---|---|---|")
    for temperature, n_classes, n in [(1, 3, 1000), (2, 3, 2000), (2, 5, 2000)]:
        cells = row(repetitions, found_class_column, temperature, n, n_classes)
        print(f"| {temperature} | {n_classes} | {n} | {cells}", flush=True)

    print(f"\nSix columns and their crossings, {3 * repetitions} searches a row: rejected at .05\n")
    print("| wrong | shift | n | columns | and crossings |\n|---|---|---|---|---|")
    for name, is_wrong, shift, n in CROSSINGS:
        p_values = [searched_with_crossings(is_wrong, shift, n, s) for s in range(3 * repetitions)]
        alone, crossed = np.mean(np.array(p_values) <= 0.05, axis=0)
        print(f"| {name} | {shift} | {n} | {alone:.3f} | {crossed:.3f} |", flush=True)


if __name__ == "__main__":
    main()
