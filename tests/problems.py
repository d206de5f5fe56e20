"""Simulated labels and probabilities: what the tests are run on."""

import numpy as np
from scipy.special import softmax


def labels_of(proba, rng):
    """Labels drawn from the predictions."""
    if proba.ndim == 1:
        return (rng.random(len(proba)) < proba).astype(int)
    cumulated = (proba / proba.sum(axis=1, keepdims=True)).cumsum(axis=1)
    return (cumulated / cumulated[:, -1:] <= rng.random((len(proba), 1))).sum(axis=1)


def random_problem(rng, n, n_classes=2, calibrated=False):
    """Labels and probabilities: (n,) for two classes, else (n, K)."""
    if n_classes == 2:
        proba = rng.random(n)
        truth = proba if calibrated else proba**2
    else:
        proba = rng.dirichlet(np.ones(n_classes), size=n)
        truth = proba if calibrated else proba**3 / (proba**3).sum(axis=1, keepdims=True)
    return labels_of(truth, rng), proba


def problem(n_classes=2, seed=0, n=40):
    """A random problem with everything special: ties, 0 and 1 among the probabilities, all classes.

    The probabilities are (n,) for two classes, else (n, K). Rows are tied with each other, and one
    row has equal probabilities.
    """
    rng = np.random.default_rng(seed)
    label, proba = random_problem(rng, n, n_classes)
    label[:n_classes] = range(n_classes)
    if n_classes == 2:
        proba = np.round(proba, 2)
        proba[:3] = 0, 1, 0.5
    else:
        proba[n // 4 : n // 2] = proba[0]
        proba[-2] = 1 / n_classes
        proba[-1] = np.eye(n_classes)[0]
    return label, proba


def logit_problem(n_classes, n=80, seed=0):
    """Labels drawn from softmax(z / 2), and z."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, n_classes))
    cumulated = softmax(logits / 2, axis=1).cumsum(axis=1)
    label = (cumulated[:, :-1] < rng.random((n, 1))).sum(axis=1)
    label[:n_classes] = range(n_classes)
    return label, logits


def small_case(seed):
    """A random small problem; the seed cycles through everything that is special."""
    rng = np.random.default_rng(seed)
    kind = seed % 10
    n = 1 if kind == 0 else int(rng.integers(2, 31))
    proba = rng.random(n)
    if kind in (1, 2):
        proba = np.round(proba, 1)  # ties, 0 and 1 among them
    if kind == 3:
        proba = rng.choice([0.0, 1.0, 0.5], size=n)
    if kind == 4:
        proba = 0.5 + 1e-3 * proba
    outcome = (rng.random(n) < (proba if kind % 2 else rng.random())).astype(int)
    if kind == 5:
        outcome[:] = seed // 10 % 2  # one class only
    if kind == 6:
        outcome[:] = 1  # all residuals positive
    weight = None
    if kind >= 7:
        weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
        weight[0] = 1.0
    return proba, outcome, weight


def two_columns(proba):
    return np.column_stack([1 - proba, proba])


def on_grid(n, seed=0):
    """Labels and predictions on the grid: many ties, 0 and 1, and rare events with two digits."""
    rng = np.random.default_rng(seed)
    proba = np.round(rng.beta(0.6, 0.9, n), 3)
    proba[:6] = 0, 1, 0.5, 1.2e-7, 0.00034, 1 - 1.2e-7
    return (rng.random(n) < proba**1.3).astype(int), proba


def classes_on_grid(n, n_classes=4, seed=0):
    """Labels and predictions (n, K) on the grid; half of them have few distinct values."""
    rng = np.random.default_rng(seed)
    proba = rng.multinomial(10_000, rng.dirichlet(np.ones(n_classes)), n) / 10_000
    certain = np.eye(n_classes)[rng.integers(n_classes, size=n // 2)] * (1 - 0.1 * n_classes)
    proba[: n // 2] = np.round(certain + 0.1, 1)  # ties
    label = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    label[:n_classes] = range(n_classes)
    return label, proba


def first_column(X):
    """Subgroups for the checks of scikit-learn, which pass none."""
    array = np.asarray(X)
    if array.dtype.kind != "f" or array.size == 0:  # what is refused later
        return np.zeros(len(array) if array.ndim else X.shape[0], dtype=bool)
    return array.reshape(len(array), -1)[:, 0] > 0.5
