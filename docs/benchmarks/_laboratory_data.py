"""The kinds of data of `laboratory.py`: right and wrong predictions, dependence, weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.signal import lfilter

from skcalib.forecasts import EnsembleForecast, QuantileForecast

LEVELS = np.linspace(0.05, 0.95, 19)
RISK_SHIFT = 0.3  # of log-odds, up and down, of two models that are wrong on opposite sides
TWIN_FACTOR = 1.5  # by which each of two equal models is too sharp or too flat, at random by row


def beta(a, b):
    return lambda rng, n: two_columns(rng.beta(a, b, size=n))


def tenths(rng, n):
    return two_columns(rng.integers(1, 10, size=n) / 10)


def simplex(n_classes):
    return lambda rng, n: rng.dirichlet(np.full(n_classes, 0.5), size=n)


def two_columns(proba):
    return np.column_stack([1 - proba, proba])


def tempered(proba, inverse_temperature, shift=0.0):
    """Log-probabilities times a number, or one for each row; that of the last class is shifted."""
    logits = np.log(np.maximum(proba, 1e-12)) * np.reshape(inverse_temperature, (-1, 1))
    logits[:, -1] += shift
    sharp = np.exp(logits - logits.max(axis=1, keepdims=True))
    return sharp / sharp.sum(axis=1, keepdims=True)


def in_groups(sizes, correlation, n_readers=0):
    """Normal scores of labels that are alike within groups, and within those who read them."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    reader = np.arange(len(group)) % n_readers if n_readers else None
    share = np.broadcast_to(correlation, len(sizes))[group]

    def score(rng):
        common = np.sqrt(share) * rng.normal(size=len(sizes))[group]
        rest = 1 - share
        if n_readers:  # half of what is common is the reader's
            common = (common + np.sqrt(share) * rng.normal(size=n_readers)[reader]) / np.sqrt(2)
        return common + np.sqrt(rest) * rng.normal(size=len(group))

    return {
        "n": len(group),
        "score": score,
        "groups": np.column_stack([group, reader]) if n_readers else group,
    }


def in_series(n, correlation, block_length):
    """Normal scores that follow an autoregression, which are grouped by blocks."""

    def score(rng):
        noise = np.sqrt(1 - correlation**2) * rng.normal(size=n)
        start = [correlation * rng.normal()]
        return lfilter([1], [1, -correlation], noise, zi=start)[0]

    return {"n": n, "score": score, "groups": np.arange(n) // block_length}


@dataclass(frozen=True)
class Classes:
    """Labels drawn from true probabilities, what a model predicts, and another model."""

    draw: Callable  # true probabilities (n, K) of a generator and n
    n: int
    sharpness: float = 1.0  # the inverse temperature of the predictions
    shift: float = 0.0  # of their log-odds; the other model is wrong on the other side
    score: Callable | None = None  # normal scores (n,) of the labels, independent if None
    groups: np.ndarray | None = None  # (n,) or (n, 2)
    weight_deviation: float = 0.0  # of the logarithms of weights
    kept: tuple[float, ...] = ()  # chance of each class to be sampled; weights are its inverse
    copies: int = 1
    title: str = ""
    takes = "classes"

    @property
    def n_classes(self):
        return self.draw(np.random.default_rng(0), 1).shape[1]

    @property
    def is_right(self):
        return self.sharpness == 1 and self.shift == 0

    def predict(self, truth, rng):
        """The predictions of the model, of the other one, and of two that are equally good."""
        model = tempered(truth, self.sharpness, self.shift)
        other = truth
        if self.shift:
            other = tempered(truth, 1, -self.shift)
        elif self.is_right:  # it knows nothing but how frequent classes are
            model = truth
            frequency = self.draw(np.random.default_rng(1), 20_000).mean(axis=0)
            other = np.broadcast_to(frequency, truth.shape)
        factor = TWIN_FACTOR ** rng.choice([-1.0, 1.0], size=len(truth))
        twins = tempered(model, factor), tempered(model, 1 / factor)
        columns = (lambda p: p[:, 1]) if truth.shape[1] == 2 else (lambda p: p)
        p, other = columns(model), columns(other)
        return {
            "p": p,
            "other": other,
            "models": (p, other),
            "twins": tuple(map(columns, twins)),
            "given": truth[:, 0],
            "labels": np.arange(truth.shape[1]),
        }

    def sample(self, rng):
        truth = self.draw(rng, self.n)
        score = rng.normal(size=self.n) if self.score is None else self.score(rng)
        below = truth.cumsum(axis=1)[:, :-1]
        label = np.sum(stats.norm.cdf(score)[:, None] > below, axis=1)
        data = self.predict(truth, rng) | {"y": label}
        if self.groups is not None:
            data["groups"] = self.groups
        if self.weight_deviation:
            data["sample_weight"] = np.exp(self.weight_deviation * rng.normal(size=self.n))
        rows = np.repeat(np.arange(self.n), self.copies)
        if self.copies > 1:
            data["groups"] = np.arange(self.n)
        if self.kept:
            chance = np.asarray(self.kept)[label]
            data["sample_weight"] = 1 / chance
            rows = np.flatnonzero(rng.random(self.n) < chance)
        return taken(data, rows) | {"by": rng.choice(["a", "b"], size=len(rows))}

    def population(self, rng, n_rows):
        """All outcomes of each prediction, whose weights are their true probabilities."""
        truth = self.draw(rng, n_rows // self.n_classes)
        n, n_classes = truth.shape
        data = taken(self.predict(truth, rng), np.tile(np.arange(n), n_classes))
        return data | {"y": np.repeat(np.arange(n_classes), n), "sample_weight": truth.T.ravel()}


def taken(data, rows):
    """The rows of all that has rows."""
    pairs = {name: tuple(p[rows] for p in data[name]) for name in ("models", "twins")}
    columns = {name: data[name][rows] for name in data.keys() - {"labels", *pairs}}
    return columns | pairs | {"labels": data["labels"]}


@dataclass(frozen=True)
class Forecasts:
    """Outcomes drawn from a normal law, or wider than the forecasts say, and another model."""

    carrier: Callable  # the forecasts of locations, scales and a generator
    n: int = 200
    sharpness: float = 1.0  # how many times the forecasts are too narrow
    group_size: int = 1
    title: str = ""
    takes, n_classes = "forecasts", 0

    @property
    def is_right(self):
        return self.sharpness == 1

    def _model(self, rng, score):
        n = len(score)
        shared, more = rng.normal(size=(2, n))
        location, scale = 0.6 * shared + 0.8 * more, np.exp(0.3 * rng.normal(size=n))
        factor = TWIN_FACTOR ** rng.choice([-1.0, 1.0], size=n)
        other = location, scale
        if self.is_right:  # it does not know a part of what the model knows
            other = 0.6 * shared, np.sqrt(0.64 + scale**2)
        told = scale / self.sharpness
        p, other = self.carrier(location, told, rng), self.carrier(*other, rng)
        return {
            "y": location + scale * score,
            "p": p,
            "other": other,
            "models": (p, other),
            "twins": tuple(self.carrier(location, told * f, rng) for f in (factor, 1 / factor)),
            "given": location,
        }

    def sample(self, rng):
        score = rng.normal(size=self.n)
        groups = {}
        if self.group_size > 1:
            group = np.arange(self.n) // self.group_size
            score = np.sqrt(0.5) * (score + rng.normal(size=group[-1] + 1)[group])
            groups = {"groups": group}
        by = rng.choice(["a", "b"], size=self.n)
        return self._model(rng, score) | groups | {"by": by}

    def population(self, rng, n_rows):
        return self._model(rng, stats.norm.ppf((rng.permutation(n_rows) + 0.5) / n_rows))


def gaussian(location, scale, rng):
    return location, scale


def quantiles(location, scale, rng):
    return QuantileForecast(location[:, None] + scale[:, None] * stats.norm.ppf(LEVELS), LEVELS)


def ensemble(location, scale, rng):
    members = rng.normal(size=(len(location), 20))
    return EnsembleForecast(location[:, None] + scale[:, None] * members)


UNEQUAL = in_groups([60] * 20 + [2] * 380, [0.9] * 20 + [0.0] * 380)
FEWER_UNEQUAL = in_groups([60] * 10 + [2] * 190, [0.9] * 10 + [0.0] * 190)
EQUAL = in_groups([8] * 50, 0.4)
KINDS = {
    "independent 300": Classes(beta(1, 3), 300),
    "n 50": Classes(beta(1, 1), 50),
    "n 2000": Classes(beta(1, 3), 2000),
    "ties": Classes(tenths, 300),
    "4 events of 200": Classes(beta(1, 49), 200),
    "all on one side": Classes(beta(1, 19), 400),
    "weights sd 1": Classes(beta(1, 3), 400, weight_deviation=1),
    "weights sd 2": Classes(beta(1, 3), 1000, weight_deviation=2),
    "weights by outcome": Classes(beta(1, 9), 4000, kept=(0.1, 1)),
    "groups 50x8": Classes(beta(1, 4), **EQUAL),
    "groups 6x50": Classes(beta(1, 4), **in_groups([50] * 6, 0.5)),
    "groups 20x60 + 380x2": Classes(beta(1.5, 98.5), **UNEQUAL),
    "groups 10x60 + 190x2": Classes(beta(1, 9), **FEWER_UNEQUAL),
    "crossed 50x12": Classes(beta(1, 4), **in_groups([12] * 50, 0.4, n_readers=12)),
    "series .7 in blocks": Classes(beta(1, 3), **in_series(600, 0.7, 30)),
    "copies x3": Classes(beta(1, 3), 200, copies=3),
    "3 classes": Classes(simplex(3), 300),
    "10 classes": Classes(simplex(10), 400),
    "30 classes": Classes(simplex(30), 500),
    "100 classes": Classes(simplex(100), 500),
    "3 classes, groups 50x8": Classes(simplex(3), **EQUAL),
    "3 classes, weights by outcome": Classes(simplex(3), 600, kept=(0.2, 1, 1)),
    "wrong: too sharp": Classes(beta(1, 3), 300, sharpness=2),
    "wrong: too flat": Classes(beta(1, 1), 300, sharpness=0.5),
    "wrong: opposite sides": Classes(beta(1, 3), 300, shift=RISK_SHIFT),
    "wrong: too sharp, weights sd 1": Classes(beta(1, 3), 400, sharpness=2, weight_deviation=1),
    "wrong: too sharp, groups 50x8": Classes(beta(1, 4), sharpness=2, **EQUAL),
    "wrong: 3 classes too sharp": Classes(simplex(3), 300, sharpness=2),
    "wrong: 10 classes too sharp": Classes(simplex(10), 400, sharpness=2),
    "gaussian": Forecasts(gaussian),
    "quantiles": Forecasts(quantiles),
    "ensemble": Forecasts(ensemble),
    "gaussian, groups 25x8": Forecasts(gaussian, group_size=8),
    "wrong: gaussian too narrow": Forecasts(gaussian, sharpness=1.5),
    "wrong: gaussian too narrow, groups 25x8": Forecasts(gaussian, sharpness=1.5, group_size=8),
}
KINDS = {title: replace(kind, title=title) for title, kind in KINDS.items()}
