"""Data, networks and penalties for the benchmarks of training."""

import copy
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn import datasets
from sklearn.model_selection import train_test_split
from torch.nn.functional import cross_entropy, softplus

from skcalib.losses import (
    Draws,
    distribution_matching_loss,
    kde_calibration_loss,
    maximum_mean_calibration_loss,
    smooth_calibration_loss,
    soft_binned_calibration_loss,
)

WIDTH, BATCH, LEARNING_RATE, N_EPOCHS, PATIENCE = 64, 128, 3e-3, 60, 10


class Problem(NamedTuple):
    name: str
    X: np.ndarray
    y: np.ndarray
    is_number: bool


def problems():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    yield Problem("breast cancer", X, y, False)
    X, y = datasets.load_wine(return_X_y=True)
    yield Problem("wine", X, y, False)
    X, y = datasets.load_digits(return_X_y=True)
    noise = np.random.default_rng(0).normal(scale=6, size=X.shape)
    yield Problem("digits, noisy", X + noise, y, False)
    X, y = datasets.make_classification(
        1000, 20, n_informative=5, n_classes=3, flip_y=0.2, random_state=0
    )
    yield Problem("made, 3 classes", X, y, False)
    X, y = datasets.load_diabetes(return_X_y=True)
    yield Problem("diabetes", X, y, True)
    X, y = datasets.make_friedman1(800, noise=1.0, random_state=0)
    yield Problem("Friedman 1", X, y, True)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(800, 5))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + (0.1 + 0.9 * np.abs(X[:, 2])) * rng.normal(size=800)
    yield Problem("made, unequal spread", X, y, True)


def problem_of_table(path, target, is_number):
    """Columns of text become indicators, and rows with missing values are dropped."""
    table = pd.read_csv(path).dropna()
    X = pd.get_dummies(table.drop(columns=target)).to_numpy(float)
    y = table[target].to_numpy(float) if is_number else pd.factorize(table[target], sort=True)[0]
    return Problem(Path(path).stem, X, y, is_number)


class Split(NamedTuple):
    """Tensors of features and outcomes; everything is standardized by the training part."""

    train: tuple
    validation: tuple
    test: tuple
    n_outputs: int
    outcome_distance: float  # median over pairs of training samples
    feature_distance: float
    threshold: torch.Tensor  # (1,), the upper quartile of the outcomes


def split(problem, seed):
    labels = None if problem.is_number else problem.y
    rows = np.arange(len(problem.y))
    train, rest = train_test_split(rows, test_size=0.4, stratify=labels, random_state=seed)
    labels = None if labels is None else labels[rest]
    parts = train, *train_test_split(rest, test_size=0.5, stratify=labels, random_state=seed)
    X = problem.X[:, problem.X[train].std(axis=0) > 0]
    X = torch.tensor((X - X[train].mean(axis=0)) / X[train].std(axis=0), dtype=torch.float32)
    y = torch.tensor(problem.y)
    n_outputs, distance, threshold = len(np.unique(problem.y)), np.nan, None
    if problem.is_number:
        y = ((y - y[train].mean()) / y[train].std()).float()
        n_outputs, distance = 2, float(torch.pdist(y[train, None]).median())
        threshold = torch.quantile(y[train], 0.75)[None]
    tensors = [(X[rows], y[rows]) for rows in parts]
    return Split(*tensors, n_outputs, distance, float(torch.pdist(X[train]).median()), threshold)


def normal(output):
    """Mean and standard deviation from the two outputs of a network."""
    return output[:, 0], softplus(output[:, 1]) + 1e-3


def log_loss(output, y):
    if not y.is_floating_point():
        return cross_entropy(output, y)
    mean, std = normal(output)
    return torch.mean(torch.log(std) + ((y - mean) / std) ** 2 / 2) + np.log(2 * np.pi) / 2


# Penalties take outputs, outcomes, features, the split and a bandwidth.


def matching(output, y, X, parts, bandwidth):
    return distribution_matching_loss(output, y, given_bandwidth=bandwidth)


def mmce(output, y, X, parts, bandwidth):
    return maximum_mean_calibration_loss(output, y, bandwidth=bandwidth)


def kde(output, y, X, parts, bandwidth):
    return kde_calibration_loss(output, y, bandwidth=bandwidth)


def smooth(output, y, X, parts, bandwidth):
    return smooth_calibration_loss(output, y, bandwidth=bandwidth)


def soft_binned(output, y, X, parts, bandwidth):
    return soft_binned_calibration_loss(output, y, temperature=bandwidth)


def matching_given_features(output, y, X, parts, bandwidth, n_draws=None):
    forecast = normal(output)
    if n_draws is not None:
        mean, std = (column[:, None] for column in forecast)
        forecast = Draws(mean + std * torch.randn(len(y), n_draws))
    return distribution_matching_loss(
        forecast,
        y,
        calibration="individual",
        given=X,
        bandwidth=bandwidth * parts.outcome_distance,
        given_bandwidth=bandwidth * parts.feature_distance,
    )


def matching_given_forecast(output, y, X, parts, bandwidth):
    return distribution_matching_loss(
        normal(output),
        y,
        bandwidth=bandwidth * parts.outcome_distance,
        given_bandwidth=bandwidth,
    )


def quantile(output, y, X, parts, bandwidth):
    return distribution_matching_loss(
        normal(output), y, calibration="quantile", bandwidth=bandwidth
    )


def decision(output, y, X, parts, bandwidth):
    return distribution_matching_loss(
        normal(output),
        y,
        calibration="individual",
        given=X,
        kernel="tanh",
        bandwidth=bandwidth,
        thresholds=parts.threshold,
        given_bandwidth=parts.feature_distance,
    )


def fit(parts, penalty=None, weight=0.0, bandwidth=None, *, seed, decay=0.0, **options):
    """The network, its validation loss, and the median time of an epoch.

    Options: `n_epochs`, `stop` (default True: stop early, at the epoch with the least validation
    loss), and `watch`, which is called with the network after each epoch.
    """
    stop, watch = options.get("stop", True), options.get("watch")
    torch.manual_seed(seed)
    X, y = parts.train
    net = torch.nn.Sequential(
        *(torch.nn.Linear(X.shape[1], WIDTH), torch.nn.ReLU()),
        *(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()),
        *(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()),
        torch.nn.Linear(WIDTH, parts.n_outputs),
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, weight_decay=decay)
    order = torch.Generator().manual_seed(seed)
    least, best_epoch, best, seconds = np.inf, 0, None, []
    for epoch in range(options.get("n_epochs", N_EPOCHS)):
        start = time.process_time()
        shuffled = torch.randperm(len(y), generator=order)
        for rows in shuffled.tensor_split(max(1, round(len(y) / BATCH))):
            output = net(X[rows])
            loss = log_loss(output, y[rows])
            if penalty is not None:
                loss = loss + weight * penalty(output, y[rows], X[rows], parts, bandwidth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds.append(time.process_time() - start)
        with torch.no_grad():
            value = float(log_loss(net(parts.validation[0]), parts.validation[1]))
            if watch is not None:
                watch(net)
        if value < least or not stop:
            least, best_epoch, best = value, epoch, copy.deepcopy(net.state_dict())
        elif epoch - best_epoch >= PATIENCE:
            break
    net.load_state_dict(best)
    return net, least, np.median(seconds)
