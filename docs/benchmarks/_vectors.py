"""Writes the test vectors of calibration: small inputs and the exact values of what is measured.

python docs/benchmarks/_vectors.py tests/vectors/calibration_vectors.json

Everything here is slow and plain on purpose: fractions, enumeration of all cases, sums over all
pairs in 30 digits. Nothing of skcalib is imported. It needs mpmath.
"""

import itertools
import json
import math
import random
import sys
from fractions import Fraction
from pathlib import Path

import mpmath as mp

mp.mp.dps = 30
LICENSE = "CC0-1.0: https://creativecommons.org/publicdomain/zero/1.0/"
RATIONAL, DIGITS = "rational arithmetic", "30 digits of mpmath"
THEORY, SKCE = "arXiv:2211.16886", "arXiv:1910.11385"


# Inputs. All probabilities and weights are dyadic, so that a double holds them exactly.


def draw(rng, number):
    return int(rng.random() * number)


def binary_inputs():
    def make(labels, numerators, denominator, weights=None):
        proba = [Fraction(k, denominator) for k in numerators]
        weight = weights or [1] * len(labels)
        return {"y": labels, "p": proba, "w": [Fraction(w) for w in weight]}

    def make_random(seed, n, denominator, power, weighted=False):
        """Labels whose probability is that of the odds to a power."""
        rng = random.Random(seed)
        numerators = [1 + draw(rng, denominator - 1) for _ in range(n)]
        odds = [(k / (denominator - k)) ** power for k in numerators]
        labels = [int(rng.random() < o / (1 + o)) for o in odds]
        weights = [1 + draw(rng, 4) for _ in range(n)] if weighted else None
        return make(labels, numerators, denominator, weights)

    return {
        "two": make([0, 1], [3, 5], 8),
        "ties": make(
            [0, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1], [6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9], 16
        ),
        "edges of bins": make([0, 1, 0, 1, 1, 0, 1, 1], [2, 2, 4, 4, 5, 6, 6, 7], 8),
        "overconfident": make_random(4, 10, 64, 0.3),
        "underconfident": make_random(5, 10, 64, 3),
        "coarse": make_random(2, 24, 8, 0.5),
        "constant": make([0, 1, 0, 0, 1, 0, 0], [5] * 7, 16),
        "perfect": make([0, 0, 1, 1, 1], [0, 0, 1, 1, 1], 1),
        "certain and wrong": make([0, 1, 0, 1, 0, 1], [0, 0, 8, 8, 16, 16], 16),
        "ends": make([1, 0, 1, 0, 1, 0], [0, 1, 2, 14, 15, 16], 16),
        "one class": make([1, 1, 1, 1], [4, 8, 12, 14], 16),
        "weights": make_random(13, 12, 16, 0.5, weighted=True),
    }


def class_inputs():
    def make_random(seed, n, n_classes, denominator, power, weighted=False):
        rng, rows, labels = random.Random(seed), [], []
        while len(rows) < n:
            cuts = sorted(draw(rng, denominator + 1) for _ in range(n_classes - 1))
            row = [b - a for a, b in itertools.pairwise([0, *cuts, denominator])]
            if 0 in row or sorted(row)[-1] == sorted(row)[-2]:  # one predicted class
                continue
            mass = [k**power for k in row]
            threshold = rng.random() * sum(mass)
            labels.append(sum(threshold >= total for total in itertools.accumulate(mass)))
            rows.append([Fraction(k, denominator) for k in row])
        weight = [Fraction(1 + draw(rng, 3) if weighted else 1) for _ in range(n)]
        return {"y": labels, "P": rows, "w": weight}

    return {
        "three classes": make_random(1, 8, 3, 16, 0.5),
        "three classes, ties": make_random(12, 16, 3, 8, 2),
        "four classes": make_random(3, 12, 4, 32, 0.5),
        "three classes, weights": make_random(4, 10, 3, 16, 0.5, weighted=True),
    }


def forecast_inputs():
    rng = random.Random(0)

    def sixteenths(n, least, most):
        return [Fraction(least * 16 + draw(rng, (most - least) * 16 + 1), 16) for _ in range(n)]

    return {
        "normal": {
            "y": sixteenths(6, -2, 2),
            "mean": sixteenths(6, -1, 1),
            "std": sixteenths(6, 1, 2),
        },
        "normal, far": {
            "y": sixteenths(4, 8, 30),
            "mean": sixteenths(4, -1, 1),
            "std": sixteenths(4, 1, 2),
        },
        "ensemble": {
            "y": sixteenths(5, -2, 2),
            "members": [sixteenths(4, -2, 2) for _ in range(5)],
        },
        "ensemble, ties": {
            "y": [Fraction(0)] * 3,
            "members": [
                [Fraction(0)] * 4,
                [Fraction(0)] * 2 + [Fraction(1)] * 2,
                [Fraction(-1), *[Fraction(1)] * 3],
            ],
        },
        "intervals": {
            "y": sixteenths(6, -3, 3),
            "low": sixteenths(6, -2, 0),
            "high": sixteenths(6, 1, 2),
        },
        "mixture": {
            "y": sixteenths(4, -3, 3),
            "weight": [Fraction(1, 4), Fraction(3, 4)],
            "mean": [sixteenths(2, -2, 2) for _ in range(4)],
            "std": [sixteenths(2, 1, 2) for _ in range(4)],
        },
    }


# Two classes: labels y, probabilities p of label 1, weights w.


def to_mp(value):
    return mp.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value


def share(data):
    return [w / sum(data["w"]) for w in data["w"]]


def residuals(data):
    return [w * (y - p) for w, y, p in zip(share(data), data["y"], data["p"], strict=True)]


def gaps_of_bins(data, bin_of):
    """Σ w and Σ w (y − p) of each bin."""
    bins = {}
    for p, w, r in zip(data["p"], share(data), residuals(data), strict=True):
        mass, gap = bins.get(bin_of(p), (0, 0))
        bins[bin_of(p)] = mass + w, gap + r
    return list(bins.values())


def right_open(n_bins):
    return lambda p: min(math.floor(p * n_bins), n_bins - 1)


def left_open(n_bins):
    return lambda p: max(math.ceil(p * n_bins) - 1, 0)


def equal_mass(data, n_bins):
    def bin_of(p):
        below = sum(w for q, w in zip(data["p"], share(data), strict=True) if q < p)
        return math.floor(n_bins * below)

    return bin_of


def ece(data, bin_of):
    return sum(abs(gap) for _, gap in gaps_of_bins(data, bin_of))


def rms_error(data, bin_of):
    return mp.sqrt(to_mp(sum(gap**2 / mass for mass, gap in gaps_of_bins(data, bin_of))))


def largest_error(data, bin_of):
    return max(abs(gap) / mass for mass, gap in gaps_of_bins(data, bin_of))


def debiased_rms_error(data, bin_of):
    """Kumar, Liang and Ma (2019), equal weights; a bin of one sample contributes 0."""
    total, n = Fraction(0), len(data["y"])
    for j in {bin_of(p) for p in data["p"]}:
        rows = [i for i in range(n) if bin_of(data["p"][i]) == j]
        if len(rows) > 1:
            mean = Fraction(sum(data["y"][i] for i in rows), len(rows))
            gap = mean - sum(data["p"][i] for i in rows) / len(rows)
            total += Fraction(len(rows), n) * (gap**2 - mean * (1 - mean) / (len(rows) - 1))
    return mp.sqrt(to_mp(max(total, Fraction(0))))


def levels_of(data):
    """Distinct predictions, the weight and the weight of label 1 at each, in order."""
    rows = list(zip(data["p"], share(data), data["y"], strict=True))
    return [
        (v, sum(w for p, w, _ in rows if p == v), sum(w * y for p, w, y in rows if p == v))
        for v in sorted(set(data["p"]))
    ]


def set_partitions(items):
    if not items:
        yield []
        return
    for partition in set_partitions(items[1:]):
        yield [[items[0]], *partition]
        for k in range(len(partition)):
            yield [*partition[:k], [items[0], *partition[k]], *partition[k + 1 :]]


def upper_distance(data):
    """The least Σ w|p − g(p)| over all perfectly calibrated g: all partitions of the levels."""

    def cost(cell):
        mean = sum(positive for _, _, positive in cell) / sum(mass for _, mass, _ in cell)
        return sum(mass * abs(v - mean) for v, mass, _ in cell)

    return min(sum(map(cost, partition)) for partition in set_partitions(levels_of(data)))


def interval_error(data):
    """The least Σ |gap| + mass · width over all partitions of the levels into intervals."""
    levels, best = levels_of(data), None
    for cuts in itertools.product([False, True], repeat=len(levels) - 1):
        ends = [0, *(k + 1 for k, cut in enumerate(cuts) if cut), len(levels)]
        cost = Fraction(0)
        for start, stop in itertools.pairwise(ends):
            cell = levels[start:stop]
            cost += abs(sum(positive - mass * v for v, mass, positive in cell))
            cost += sum(mass for _, mass, _ in cell) * (cell[-1][0] - cell[0][0])
        best = cost if best is None else min(best, cost)
    return best


def smooth_error(data):
    """The largest Σ w (y − p) f(p), |f| ≤ 1, Lipschitz 1.

    The constraints are differences with whole right-hand sides in units of the grid of the
    predictions, so that a vertex lies on the grid: trying all its values is exact.
    """
    unit = math.lcm(*(v.denominator for v in data["p"]))
    levels = [(int(v * unit), positive - mass * v) for v, mass, positive in levels_of(data)]
    values = range(-unit, unit + 1)
    best, before = dict.fromkeys(values, Fraction(0)), None
    for v, residual in levels:
        reach = 2 * unit if before is None else v - before
        best = {
            f: residual * Fraction(f, unit) + max(best[g] for g in values if abs(f - g) <= reach)
            for f in values
        }
        before = v
    return max(best.values())


def kernel_error(data, kernel):
    terms = list(zip(data["p"], residuals(data), strict=True))
    total = mp.mpf(0)
    for (p, r), (q, s) in itertools.product(terms, terms):
        total += to_mp(r) * to_mp(s) * kernel(to_mp(p - q))
    return mp.sqrt(max(total, mp.mpf(0)))


def smooth_expected_error(data):
    """σ = ∫ |Σ w (y − p) K_σ(t, p)| dt, by the zeros of the integrand and its antiderivative."""
    terms = [(float(p), float(r)) for p, r in zip(data["p"], residuals(data), strict=True)]

    def error(width):
        images = [
            (r, sign * p + 2 * k)
            for p, r in terms
            for sign in (-1, 1)
            for k in range(-1 - math.ceil(5 * width), 2 + math.ceil(5 * width))
        ]

        def density(t):
            return sum(r * math.exp(-(((t - c) / width) ** 2) / 2) for r, c in images)

        def integral(t):
            return sum(r * math.erf((t - c) / width / math.sqrt(2)) for r, c in images) / 2

        grid = [k / 300 for k in range(301)]
        value, ends = [density(t) for t in grid], [0.0]
        for k in range(300):
            if value[k] * value[k + 1] < 0:
                low, high = grid[k], grid[k + 1]
                for _ in range(50):
                    middle = (low + high) / 2
                    low, high = (low, middle) if density(middle) * value[k] < 0 else (middle, high)
                ends.append(low)
        parts = [integral(t) for t in [*ends, 1.0]]
        return sum(abs(b - a) for a, b in itertools.pairwise(parts))

    low, high = 0.0, 1.0
    for _ in range(48):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > middle else (low, middle)
    return high


def cumulative_sums(data):
    return [Fraction(0), *itertools.accumulate(pos - mass * v for v, mass, pos in levels_of(data))]


def isotonic_fit(data):
    """The max-min formula: at level k the largest, over starts, of the least mean over stops."""
    levels = levels_of(data)

    def mean(start, stop):
        cell = levels[start:stop]
        return sum(pos for _, _, pos in cell) / sum(mass for _, mass, _ in cell)

    n = len(levels)
    fit = [
        max(min(mean(i, j) for j in range(k + 1, n + 1)) for i in range(k + 1)) for k in range(n)
    ]
    return {level[0]: value for level, value in zip(levels, fit, strict=True)}


def brier(data, proba=None):
    proba = data["p"] if proba is None else proba
    return sum(w * (y - p) ** 2 for w, y, p in zip(share(data), data["y"], proba, strict=True))


def base_rate(data):
    return sum(w * y for w, y in zip(share(data), data["y"], strict=True))


def brier_parts(data):
    fit = isotonic_fit(data)
    recalibrated = brier(data, [fit[p] for p in data["p"]])
    uncertainty = brier(data, [base_rate(data)] * len(data["p"]))
    return brier(data) - recalibrated, uncertainty - recalibrated, uncertainty


def log_loss(data):
    terms = zip(share(data), data["y"], data["p"], strict=True)
    return -mp.fsum(to_mp(w) * mp.log(to_mp(p if y else 1 - p)) for w, y, p in terms)


def spiegelhalter_z(data):
    top = sum((y - p) * (1 - 2 * p) for y, p in zip(data["y"], data["p"], strict=True))
    return to_mp(top) / mp.sqrt(to_mp(sum((1 - 2 * p) ** 2 * p * (1 - p) for p in data["p"])))


def hosmer_lemeshow(data, n_bins):
    bin_of, total = equal_mass(data, n_bins), Fraction(0)
    for j in {bin_of(p) for p in data["p"]}:
        rows = [i for i, p in enumerate(data["p"]) if bin_of(p) == j]
        expected = sum(data["p"][i] for i in rows)
        gap = sum(data["y"][i] for i in rows) - expected
        total += gap**2 / (expected * (1 - expected / len(rows)))
    return total


def likelihood_gradient(data, a, b):
    """Derivatives in a and b of the log-likelihood of the log-odds a + b logit(p)."""
    terms = zip(share(data), data["y"], data["p"], strict=True)
    rows = [(to_mp(w), y, mp.log(to_mp(p / (1 - p)))) for w, y, p in terms]
    gaps = [(w * (y - 1 / (1 + mp.exp(-a - b * x))), x) for w, y, x in rows]
    return [mp.fsum(gap for gap, _ in gaps), mp.fsum(gap * x for gap, x in gaps)]


def logistic_intercept(data):
    return mp.findroot(lambda a: likelihood_gradient(data, a, 1)[0], mp.mpf(0))


def logistic_slope(data):
    return mp.findroot(lambda a, b: likelihood_gradient(data, a, b), (mp.mpf(0), mp.mpf(1)))[1]


def inverse_temperature(data):
    """Maximum likelihood of b logit(p) over b ≥ 0; it is concave."""
    best = mp.findroot(lambda b: likelihood_gradient(data, 0, b)[1], mp.mpf(1))
    return max(best, mp.mpf(0))


# More classes: labels y, rows P of probabilities, weights w.


def to_confidence(data):
    """The problem of two classes: was the predicted class right, and its probability."""
    top = [max(range(len(row)), key=row.__getitem__) for row in data["P"]]
    hit = [int(y == k) for y, k in zip(data["y"], top, strict=True)]
    return {"y": hit, "p": [max(row) for row in data["P"]], "w": data["w"], "top": top}


def one_class(data, k):
    return {
        "y": [int(y == k) for y in data["y"]],
        "p": [row[k] for row in data["P"]],
        "w": data["w"],
    }


def classwise(data, measure):
    n_classes = len(data["P"][0])
    return sum(measure(one_class(data, k)) for k in range(n_classes)) / n_classes


def top_label(data, bin_of):
    """Σ over predicted classes and bins of |Σ w (hit − confidence)|."""
    binary, bins = to_confidence(data), {}
    for top, p, r in zip(binary["top"], binary["p"], residuals(binary), strict=True):
        bins[top, bin_of(p)] = bins.get((top, bin_of(p)), 0) + r
    return sum(map(abs, bins.values()))


def top_label_macro(data, bin_of):
    """The mean over predicted classes of the error among the samples where it is predicted."""
    binary, errors = to_confidence(data), []
    for k in set(binary["top"]):
        rows = [i for i, top in enumerate(binary["top"]) if top == k]
        errors.append(ece({key: [binary[key][i] for i in rows] for key in "ypw"}, bin_of))
    return sum(errors) / len(errors)


def class_residuals(data):
    return [
        [w * ((k == y) - p) for k, p in enumerate(row)]
        for w, y, row in zip(share(data), data["y"], data["P"], strict=True)
    ]


def canonical(data, bin_of):
    bins = {}
    for row, gaps in zip(data["P"], class_residuals(data), strict=True):
        cell = tuple(map(bin_of, row))
        bins[cell] = [a + b for a, b in zip(bins.get(cell, [0] * len(row)), gaps, strict=True)]
    return sum(sum(map(abs, gaps)) for gaps in bins.values()) / 2


def multi_brier(data):
    return sum(
        w * sum(((k == y) - p) ** 2 for k, p in enumerate(row))
        for w, y, row in zip(share(data), data["y"], data["P"], strict=True)
    )


def total_variation(row, other):
    return sum(abs(a - b) for a, b in zip(row, other, strict=True)) / 2


def pair_terms(data, kernel):
    """w_i w_j, and (e_y − P)_i · (e_y − P)_j k(P_i, P_j), of all pairs."""
    weight = share(data)
    scaled = [[r / w for r in row] for row, w in zip(class_residuals(data), weight, strict=True)]
    for i, j in itertools.product(range(len(weight)), repeat=2):
        inner = sum(a * b for a, b in zip(scaled[i], scaled[j], strict=True))
        yield i, j, to_mp(weight[i] * weight[j]), to_mp(inner) * kernel(data["P"][i], data["P"][j])


def skce(data, estimation, kernel):
    pairs = [
        (w, h)
        for i, j, w, h in pair_terms(data, kernel)
        if estimation == "biased"
        or (i != j if estimation == "unbiased" else j == i + 1 and i % 2 == 0)
    ]
    return mp.fsum(w * h for w, h in pairs) / mp.fsum(w for w, _ in pairs)


def tv_kernel(row, other):
    return mp.exp(-to_mp(total_variation(row, other)) / mp.mpf("0.5"))


def linear_rbf_kernel(row, other):
    inner = to_mp(sum(a * b for a, b in zip(row, other, strict=True)))
    square = to_mp(sum((a - b) ** 2 for a, b in zip(row, other, strict=True)))
    return inner + mp.exp(-square / (2 * mp.mpf("0.5") ** 2))


def ckce(data):
    """tr(W R W G), W = (G + n^(3/4) I)^(−1), R the products of the residuals; equal weights."""
    n = len(data["y"])
    gram = mp.matrix(n, n)
    for i, j in itertools.product(range(n), repeat=2):
        gram[i, j] = linear_rbf_kernel(data["P"][i], data["P"][j])
    rows = [[to_mp(r * n) for r in row] for row in class_residuals(data)]
    products = mp.matrix(rows) * mp.matrix(rows).T
    inverse = mp.inverse(gram + mp.mpf(n) ** mp.mpf("0.75") * mp.eye(n))
    total = inverse * products * inverse * gram
    return mp.fsum(total[i, i] for i in range(n))


def decision_error(data, loss):
    """√ Σ over actions a of |Σ over samples that take a of w (loss − expected loss)|², vectors."""
    actions, total = range(len(loss)), Fraction(0)
    best = [
        min(actions, key=lambda a, row=row: sum(c * p for c, p in zip(loss[a], row, strict=True)))
        for row in data["P"]
    ]
    gaps = class_residuals(data)
    for a, b in itertools.product(actions, repeat=2):
        rows = [gap for gap, action in zip(gaps, best, strict=True) if action == b]
        total += sum(sum(c * r for c, r in zip(loss[a], gap, strict=True)) for gap in rows) ** 2
    return mp.sqrt(to_mp(total))


# Forecasts of a number.


def mean_of(values):
    values = list(values)
    return mp.fsum(map(to_mp, values)) / len(values)


def crps_of_cdf(cdf, y):
    """∫ (F(t) − 1[t ≥ y])² dt, to 40 units on both sides, where F is 0 or 1 to 30 digits."""
    low = [-40, y - 8, y - 2, y] if y > -40 else [-40, y]
    left = mp.quad(lambda t: cdf(t) ** 2, sorted(low))
    return left + mp.quad(lambda t: (1 - cdf(t)) ** 2, [y, y + 2, y + 8, y + 40])


def crps_of_mixture(data):
    def mixture(means, stds):
        return lambda t: mp.fsum(
            to_mp(w) * mp.ncdf(t, to_mp(m), to_mp(s))
            for w, m, s in zip(data["weight"], means, stds, strict=True)
        )

    rows = zip(data["y"], data["mean"], data["std"], strict=True)
    return mean_of(crps_of_cdf(mixture(m, s), to_mp(y)) for y, m, s in rows)


def of_normal(data, value):
    rows = zip(data["y"], data["mean"], data["std"], strict=True)
    return mean_of(value(to_mp(y), to_mp(m), to_mp(s)) for y, m, s in rows)


def crps_of_ensemble(data, fair):
    def crps(y, members):
        s = len(members)
        spread = sum(abs(a - b) for a, b in itertools.product(members, repeat=2))
        return sum(abs(y - x) for x in members) / s - spread / (2 * s * (s - 1 if fair else s))

    rows = list(zip(data["y"], data["members"], strict=True))
    return sum(itertools.starmap(crps, rows)) / len(rows)


def interval_score(data, miss):
    """Width plus 2/miss times the distance to the interval (Gneiting and Raftery 2007)."""
    rows = list(zip(data["y"], data["low"], data["high"], strict=True))
    scores = [high - low + 2 / miss * (max(low - y, 0) + max(y - high, 0)) for y, low, high in rows]
    return sum(scores) / len(scores)


def gaps_of_pits(data, norm):
    """Of |share of PITs below level − level| over all levels: the mean, the RMS, the largest."""
    pits = sorted(
        mp.ncdf(to_mp(y), to_mp(m), to_mp(s))
        for y, m, s in zip(data["y"], data["mean"], data["std"], strict=True)
    )
    ends, total = [mp.mpf(0), *pits, mp.mpf(1)], []
    for k, (low, high) in enumerate(itertools.pairwise(ends)):
        height = mp.mpf(k) / len(pits)
        if norm == "max":
            total += [abs(height - low), abs(height - high)]
        elif norm == "l2":
            total.append(((high - height) ** 3 - (low - height) ** 3) / 3)
        else:
            middle = min(max(height, low), high)
            total.append(((middle - low) * abs(2 * height - low - middle)) / 2)
            total.append(((high - middle) * abs(high + middle - 2 * height)) / 2)
    return (
        max(total) if norm == "max" else mp.sqrt(mp.fsum(total)) if norm == "l2" else mp.fsum(total)
    )


LOSS = [[0, 5, 1], [1, 0, 1], [2, 2, 0]]


def is_inside(data):
    return all(0 < p < 1 for p in data["p"])


def has_equal_weights(data):
    return len(set(data["w"])) == 1


def is_overlapping(data):
    """Whether the maximum of the likelihood of intercept and slope exists."""
    zeros, ones = ([p for p, y in zip(data["p"], data["y"], strict=True) if y == k] for k in (0, 1))
    return is_inside(data) and zeros and ones and min(ones) < max(zeros) and min(zeros) < max(ones)


def always(data):
    return True


# name: (kind of input, definition, source, tolerance, parameters and values, condition)
def definitions():
    def of_bins(measure, choose=right_open):
        return lambda n_bins: lambda data: measure(data, choose(n_bins))

    def plain(value):
        return [({}, value)]

    def each(make, *numbers):
        return [({"n_bins": number}, make(number)) for number in numbers]

    guo = "arXiv:1706.04599, " + RATIONAL
    brier_source = "Dimitriadis, Gneiting and Jordan 2021 (CORP), max-min formula, " + RATIONAL
    likelihood = "root of the derivative of the likelihood, " + DIGITS
    gneiting = "Gneiting and Raftery 2007, "
    return {
        "ece_right_open": (
            "binary",
            "Σ over bins of |Σ w (y − p)|, weights w that sum to 1, bins [j/B, (j+1)/B), "
            "the last one closed",
            guo,
            1e-12,
            each(of_bins(ece), 4, 10),
            always,
        ),
        "ece_left_open": (
            "binary",
            "Σ over bins of |Σ w (y − p)|, bins (j/B, (j+1)/B], the first one closed",
            guo,
            1e-12,
            each(of_bins(ece, left_open), 4),
            always,
        ),
        "rms_error_right_open": (
            "binary",
            "root of Σ over bins of (Σ w (y − p))² / Σ w, bins [j/B, (j+1)/B), the last one closed",
            "arXiv:1909.10155, " + RATIONAL,
            1e-12,
            each(of_bins(rms_error), 4),
            always,
        ),
        "max_error_right_open": (
            "binary",
            "largest |Σ w (y − p)| / Σ w of a bin, bins [j/B, (j+1)/B), the last one closed",
            guo,
            1e-12,
            each(of_bins(largest_error), 4),
            always,
        ),
        "debiased_rms_error": (
            "binary",
            "root of max(0, Σ over bins of n_j/n ((mean y − mean p)² − mean y (1 − mean "
            "y)/(n_j − 1))), bins of one sample left out, bins [j/B, (j+1)/B)",
            "arXiv:1909.10155, " + RATIONAL,
            1e-8,
            each(of_bins(debiased_rms_error), 2),
            lambda d: (
                has_equal_weights(d)
                and max(sum(right_open(2)(p) == j for p in d["p"]) for j in (0, 1)) > 1
            ),
        ),
        "ece_equal_mass": (
            "binary",
            "Σ over bins of |Σ w (y − p)|, bin = floor(B · weight of the predictions below)",
            RATIONAL,
            1e-12,
            each(lambda b: lambda d: ece(d, equal_mass(d, b)), 4),
            always,
        ),
        "level_set_ece": (
            "binary",
            "Σ over distinct predictions of |Σ w (y − p)|",
            THEORY + ", Definition 1.1, " + RATIONAL,
            1e-12,
            plain(lambda d: ece(d, lambda p: p)),
            always,
        ),
        "upper_distance": (
            "binary",
            "least Σ w |p − g(p)| over perfectly calibrated functions g of p",
            THEORY + ", all partitions, " + RATIONAL,
            1e-12,
            plain(upper_distance),
            lambda d: len(set(d["p"])) <= 10,
        ),
        "interval_error": (
            "binary",
            "least Σ over intervals of |Σ w (y − p)| + Σ w · (largest − smallest p), over "
            "all partitions into intervals",
            THEORY + ", all partitions, " + RATIONAL,
            1e-12,
            plain(interval_error),
            always,
        ),
        "smooth_error": (
            "binary",
            "largest Σ w (y − p) f(p) over f with |f| ≤ 1 and Lipschitz constant 1",
            THEORY + ", all functions on the grid, " + RATIONAL,
            1e-9,
            plain(smooth_error),
            always,
        ),
        "laplace_kernel_error": (
            "binary",
            "root of Σ r_i r_j exp(−|p_i − p_j|), r = w (y − p)",
            THEORY + ", all pairs, " + DIGITS,
            1e-8,
            plain(lambda d: kernel_error(d, lambda u: mp.exp(-abs(u)))),
            always,
        ),
        "gaussian_kernel_error": (
            "binary",
            "root of Σ r_i r_j exp(−(p_i − p_j)²), r = w (y − p)",
            THEORY + ", all pairs, " + DIGITS,
            1e-8,
            plain(lambda d: kernel_error(d, lambda u: mp.exp(-(u**2)))),
            always,
        ),
        "smooth_ece": (
            "binary",
            "the σ that equals ∫ |Σ w (y − p) K_σ(t, p)| dt over [0, 1], K_σ the Gaussian "
            "reflected at 0 and 1",
            "arXiv:2309.12236, zeros and antiderivative of the integrand in double precision",
            1e-6,
            plain(smooth_expected_error),
            lambda d: any(residuals(d)),
        ),
        "cumulative_max": (
            "binary",
            "largest |sum of w (y − p)| over predictions up to any level, equal predictions"
            " together",
            "arXiv:2205.09680, " + RATIONAL,
            1e-12,
            plain(lambda d: max(map(abs, cumulative_sums(d)))),
            always,
        ),
        "cumulative_range": (
            "binary",
            "largest minus smallest of the sums of cumulative_max, 0 among them",
            "arXiv:2205.09680, " + RATIONAL,
            1e-12,
            plain(lambda d: max(cumulative_sums(d)) - min(cumulative_sums(d))),
            always,
        ),
        "brier_score": ("binary", "Σ w (y − p)²", RATIONAL, 1e-12, plain(brier), always),
        "brier_miscalibration": (
            "binary",
            "Brier score minus that of the isotonic regression of y on p",
            brier_source,
            1e-12,
            plain(lambda d: brier_parts(d)[0]),
            always,
        ),
        "brier_discrimination": (
            "binary",
            "Brier score of the mean of y minus that of the isotonic regression",
            brier_source,
            1e-12,
            plain(lambda d: brier_parts(d)[1]),
            always,
        ),
        "brier_uncertainty": (
            "binary",
            "Brier score of the mean of y",
            brier_source,
            1e-12,
            plain(lambda d: brier_parts(d)[2]),
            always,
        ),
        "log_loss": (
            "binary",
            "−Σ w log of the probability of the label",
            DIGITS,
            1e-12,
            plain(log_loss),
            is_inside,
        ),
        "observed_expected_ratio": (
            "binary",
            "Σ w y / Σ w p",
            RATIONAL,
            1e-12,
            plain(
                lambda d: base_rate(d) / sum(w * p for w, p in zip(share(d), d["p"], strict=True))
            ),
            always,
        ),
        "spiegelhalter_z": (
            "binary",
            "Σ (y − p)(1 − 2p) / root of Σ (1 − 2p)² p (1 − p)",
            "Spiegelhalter 1986, " + RATIONAL,
            1e-10,
            plain(spiegelhalter_z),
            lambda d: has_equal_weights(d) and is_inside(d),
        ),
        "hosmer_lemeshow": (
            "binary",
            "Σ over bins of (Σ y − Σ p)² / (Σ p (1 − mean p)), bin = floor(B · share of the"
            " predictions below)",
            "Hosmer and Lemeshow 1980, " + RATIONAL,
            1e-10,
            each(lambda b: lambda d: hosmer_lemeshow(d, b), 4),
            lambda d: has_equal_weights(d) and is_inside(d),
        ),
        "calibration_in_the_large": (
            "binary",
            "Σ w (y − p)",
            RATIONAL,
            1e-12,
            plain(lambda d: sum(residuals(d))),
            always,
        ),
        "calibration_intercept": (
            "binary",
            "intercept a of the likelihood of the log-odds a + logit p",
            "Cox 1958, slope 1, " + likelihood,
            1e-7,
            plain(logistic_intercept),
            lambda d: is_inside(d) and 0 < base_rate(d) < 1,
        ),
        "calibration_slope": (
            "binary",
            "slope b of the likelihood of the log-odds a + b logit p",
            "Cox 1958, " + likelihood,
            1e-7,
            plain(logistic_slope),
            is_overlapping,
        ),
        "inverse_temperature": (
            "binary",
            "b ≥ 0 of the likelihood of the log-odds b logit p, one over the temperature",
            likelihood,
            1e-6,
            plain(inverse_temperature),
            is_overlapping,
        ),
        "confidence_ece": (
            "classes",
            "ece_right_open of whether the predicted class was right and its probability",
            guo,
            1e-12,
            each(lambda b: lambda d: ece(to_confidence(d), right_open(b)), 4, 10),
            always,
        ),
        "confidence_ece_left_open": (
            "classes",
            "ece_left_open of whether the predicted class was right and its probability",
            guo,
            1e-12,
            each(lambda b: lambda d: ece(to_confidence(d), left_open(b)), 4),
            always,
        ),
        "confidence_max_error": (
            "classes",
            "max_error_right_open of whether the predicted class was right and its probability",
            guo,
            1e-12,
            each(lambda b: lambda d: largest_error(to_confidence(d), right_open(b)), 5),
            always,
        ),
        "classwise_ece": (
            "classes",
            "mean over the classes of ece_right_open of each class against the rest",
            "arXiv:1910.12656, " + RATIONAL,
            1e-12,
            each(lambda b: lambda d: classwise(d, lambda c: ece(c, right_open(b))), 5),
            always,
        ),
        "top_label_ece": (
            "classes",
            "Σ over predicted classes and bins of the confidence of |Σ w (right − "
            "confidence)|, bins [j/B, (j+1)/B)",
            "arXiv:2107.08353, " + RATIONAL,
            1e-12,
            each(lambda b: lambda d: top_label(d, right_open(b)), 5),
            always,
        ),
        "top_label_ece_macro": (
            "classes",
            "mean over predicted classes of ece_right_open of the samples where the class "
            "is predicted",
            "arXiv:2107.08353, " + RATIONAL,
            1e-12,
            each(lambda b: lambda d: top_label_macro(d, right_open(b)), 5),
            always,
        ),
        "canonical_ece": (
            "classes",
            "Σ over products of bins of half of Σ over classes of |Σ w (label is k − p_k)|,"
            " bins [j/B, (j+1)/B)",
            SKCE + ", section 4.3, " + RATIONAL,
            1e-12,
            each(lambda b: lambda d: canonical(d, right_open(b)), 3),
            always,
        ),
        "multiclass_brier_score": (
            "classes",
            "Σ w Σ over classes of (label is k − p_k)²",
            RATIONAL,
            1e-12,
            plain(multi_brier),
            always,
        ),
        "skce": (
            "classes",
            "mean, with the products of the weights, of (e_y − P)_i · (e_y − P)_j exp(−2 "
            "TV(P_i, P_j)) over all pairs, over i ≠ j, over (1, 2), (3, 4), …",
            SKCE + ", Table 1, " + DIGITS,
            1e-12,
            [
                ({"estimation": e}, lambda d, e=e: skce(d, e, tv_kernel))
                for e in ("biased", "unbiased", "linear")
            ],
            has_equal_weights,
        ),
        "mmce": (
            "classes",
            "root of Σ r_i r_j exp(−|c_i − c_j| / 0.4), c the confidence, r = w (right − c)",
            "Kumar, Sarawagi and Jain 2018, all pairs, " + DIGITS,
            1e-8,
            plain(
                lambda d: kernel_error(to_confidence(d), lambda u: mp.exp(-abs(u) / mp.mpf("0.4")))
            ),
            always,
        ),
        "jkce": (
            "classes",
            "mean over i ≠ j of (e_y − P)_i · (e_y − P)_j (P_i · P_j + exp(−2 |P_i − P_j|²))",
            "arXiv:2502.11465, " + DIGITS,
            1e-12,
            plain(lambda d: skce(d, "unbiased", linear_rbf_kernel)),
            has_equal_weights,
        ),
        "ckce": (
            "classes",
            "tr(W R W G), G that kernel, W = (G + n^(3/4) I)⁻¹, R = (e_y − P)(e_y − P)ᵀ",
            "arXiv:2502.11465, " + DIGITS,
            1e-10,
            plain(ckce),
            has_equal_weights,
        ),
        "decision_error": (
            "classes",
            "root of Σ over actions a and chosen actions b of (Σ over samples with b of w "
            "(loss of a − expected loss of a))²",
            "arXiv:2107.05719, " + RATIONAL,
            1e-12,
            [({"loss": LOSS}, lambda d: decision_error(d, LOSS))],
            lambda d: len(d["P"][0]) == 3,
        ),
        "crps_normal": (
            "normal",
            "mean of ∫ (F(t) − 1[t ≥ y])² dt",
            gneiting + "quadrature in 30 digits",
            1e-10,
            plain(
                lambda d: of_normal(d, lambda y, m, s: crps_of_cdf(lambda t: mp.ncdf(t, m, s), y))
            ),
            always,
        ),
        "log_score_normal": (
            "normal",
            "mean of −log f(y)",
            gneiting + DIGITS,
            1e-10,
            plain(lambda d: of_normal(d, lambda y, m, s: -mp.log(mp.npdf(y, m, s)))),
            always,
        ),
        "quantile_calibration_error": (
            "normal",
            "of |share of PITs at most the level − level| over all levels in [0, 1]: the "
            "mean, the root mean square, the largest",
            "piecewise integrals, " + DIGITS,
            1e-10,
            [
                ({"norm": norm}, lambda d, norm=norm: gaps_of_pits(d, norm))
                for norm in ("l1", "l2", "max")
            ],
            always,
        ),
        "crps_ensemble": (
            "ensemble",
            "mean of the mean |y − x| minus half of the mean |x − x′| over all pairs of members",
            gneiting + RATIONAL,
            1e-12,
            plain(lambda d: crps_of_ensemble(d, False)),
            always,
        ),
        "fair_crps_ensemble": (
            "ensemble",
            "crps_ensemble with the mean |x − x′| over pairs of different members",
            "Ferro 2014, " + RATIONAL,
            1e-12,
            plain(lambda d: crps_of_ensemble(d, True)),
            always,
        ),
        "interval_score": (
            "interval",
            "mean of width + (2/α) · distance to the interval, α = 1 − coverage",
            gneiting + RATIONAL,
            1e-12,
            [
                ({"coverage": c}, lambda d, c=c: interval_score(d, 1 - Fraction(c)))
                for c in (0.5, 0.75)
            ],
            always,
        ),
        "crps_mixture": (
            "mixture",
            "mean of ∫ (F(t) − 1[t ≥ y])² dt",
            "quadrature in 30 digits",
            1e-10,
            plain(crps_of_mixture),
            always,
        ),
    }


def kind_of(data):
    for key, kind in (
        ("p", "binary"),
        ("P", "classes"),
        ("members", "ensemble"),
        ("low", "interval"),
        ("weight", "mixture"),
    ):
        if key in data:
            return kind
    return "normal"


def as_json(value):
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value if isinstance(value, int) else float(value)  # labels; numbers


def make_vectors():
    inputs = {**binary_inputs(), **class_inputs(), **forecast_inputs()}
    table, described = [], {}
    for name, (kind, text, source, tolerance, cases, applies) in definitions().items():
        described[name] = {"definition": text, "source": source, "tolerance": tolerance}
        for key, data in inputs.items():
            if kind_of(data) != kind or not applies(data):
                continue
            for parameters, measure in cases:
                value = measure(data)
                entry = {"measure": name, "input": key, "parameters": parameters}
                exact = str(value) if isinstance(value, Fraction) else mp.nstr(value, 25)
                table.append({**entry, "value": float(value), "exact": exact})
    stored = {
        key: {k: as_json(v) for k, v in data.items() if k != "w" or not has_equal_weights(data)}
        for key, data in inputs.items()
    }
    return {
        "license": LICENSE,
        "about": (
            "Small inputs and exact values of calibration measures. y: labels 0, 1, … or "
            "outcomes; p: probability of label 1; P: rows of probabilities; w: weights. |ours −"
            " value| ≤ tolerance."
        ),
        "measures": described,
        "inputs": stored,
        "vectors": table,
    }


def write(path, content):
    """JSON with one line for each measure, input and vector."""
    parts = []
    for key, value in content.items():
        if isinstance(value, str):
            body = json.dumps(value, ensure_ascii=False)
        elif isinstance(value, dict):
            rows = (
                f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items()
            )
            body = "{\n    " + ",\n    ".join(rows) + "\n  }"
        else:
            body = "[\n    " + ",\n    ".join(map(json.dumps, value)) + "\n  ]"
        parts.append(f'  "{key}": {body}')
    Path(path).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1], make_vectors())
