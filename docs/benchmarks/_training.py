"""Data, networks and penalties for the benchmarks of training, after Marx, Zalouk and Ermon."""

import copy
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn import datasets

from skcalib.torch import (
    CalibrationPenalty,
    CalibrationRegularizedLoss,
    DistributionMatchingLoss,
    NegativeLogLikelihoodLoss,
)

# As in the authors' code, but for the number of epochs and the patience.
WIDTH, BATCH, LEARNING_RATE, DECAY, CLIP = 256, 64, 1e-3, 5e-4, 0.5
LARGE, N_EPOCHS, PATIENCE = 3000, {False: 100, True: 30}, {False: 10, True: 5}  # is it large?
MOST_ROWS = 6000  # of a table; others are drawn from it


class Problem(NamedTuple):
    name: str
    X: np.ndarray
    y: np.ndarray
    is_number: bool = False
    location: slice | None = None  # columns of longitude and latitude


def _of_table(name, table, target, location=None, is_number=False):
    """Rows without missing values, columns of text as indicators."""
    table = table.dropna().infer_objects()
    if len(table) > MOST_ROWS:
        table = table.sample(MOST_ROWS, random_state=0)
    X = pd.get_dummies(table.drop(columns=target)).to_numpy(float)
    y = table[target].to_numpy(float) if is_number else pd.factorize(table[target], sort=True)[0]
    return Problem(name, X, y, is_number, location)


def problems(folder):
    """The authors' data sets; the README of the folder says what is in its files."""
    folder = Path(folder)
    table = pd.read_csv(folder / "wdbc.csv", header=None)
    yield _of_table("breast-cancer", table.drop(columns=0), 1)
    table = pd.read_csv(folder / "heart_disease.csv").drop(columns=["id", "dataset"])
    yield _of_table("heart-disease", table, "num")
    crime = pd.read_csv(folder / "crime.csv.gz")
    yield _of_table("crime", crime, crime.columns[-1], slice(0, 2), True)
    yields = pd.read_csv(folder / "crop_yield.csv.gz").drop(columns=["FIPS", "Year", "crop"])
    yield _of_table("crop-yield", yields, "yield", slice(0, 2), True)
    table = pd.read_csv(folder / "online_shoppers.csv.gz")
    yield _of_table("online-shoppers", table, "Revenue")
    yield _of_table("dry-bean", pd.read_csv(folder / "dry_bean.csv.gz"), "Class")
    path = folder / "adult.data.gz"
    adult = pd.read_csv(path, header=None, skipinitialspace=True, na_values="?")
    yield _of_table("adult", adult, 14)


def small_problems():
    """Of scikit-learn, to see that everything runs."""
    yield Problem("wine", *datasets.load_wine(return_X_y=True))
    yield Problem("diabetes", *datasets.load_diabetes(return_X_y=True), True, slice(0, 2))


class Split(NamedTuple):
    """Tensors of features and outcomes, standardised by all rows, as in the authors' code."""

    train: tuple
    validation: tuple
    test: tuple
    problem: Problem
    n_outputs: int
    center: float  # of the outcomes: their median, at which the decision changes
    scale: float


def split(problem, seed):
    """70, 10 and 20 % at random."""
    n = len(problem.y)
    order = np.random.default_rng(seed).permutation(n)
    parts = np.split(order, [int(0.7 * n), int(0.7 * n) + int(0.1 * n)])
    spread = problem.X.std(axis=0)
    X = (problem.X - problem.X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(problem.y)
    n_outputs, center, scale = len(np.unique(problem.y)), 0.0, 1.0
    if problem.is_number:
        center, scale = float(np.median(problem.y)), float(problem.y.std())
        y, n_outputs = ((y - center) / scale).float(), 2
    return Split(*((X[rows], y[rows]) for rows in parts), problem, n_outputs, center, scale)


def prediction_of(output, is_number):
    """Logits, or mean and standard deviation."""
    return (output[:, 0], torch.exp(output[:, 1])) if is_number else output


class Diagonal(torch.nn.Module):
    """A reward of mass near the outcome: −2/n of the mean of k(y, Y') over the batch.

    The penalty of numbers is this if its pairs of a forecast and an outcome hold those of a sample
    with itself, and the kernel on the features is 0 for all others. The authors' first release has
    these pairs, the second has such narrow kernels; none has both.
    """

    def __init__(self, bandwidth):  # k is exp(−d²/bandwidth)
        super().__init__()
        self.bandwidth = bandwidth

    def forward(self, prediction, target):
        mean, std = prediction
        wide = self.bandwidth + 2 * std**2
        near = torch.sqrt(self.bandwidth / wide) * torch.exp(-((target - mean) ** 2) / wide)
        return -2 / len(target) * near.mean()


# Penalties of a split, by the bandwidth that they are tried with.


def given_features(parts, bandwidth):
    return DistributionMatchingLoss("individual", given_bandwidth=(bandwidth / 2) ** 0.5)


def given_predictions(parts, bandwidth):
    return DistributionMatchingLoss("canonical", given_bandwidth=bandwidth)


def mmce(parts, bandwidth):
    return CalibrationPenalty("mmce", bandwidth=bandwidth)


class Balanced(torch.nn.Module):
    """The balanced MMCE of the confidence, of two classes, too: with a third that never occurs."""

    def __init__(self, bandwidth):
        super().__init__()
        self.penalty = CalibrationPenalty("mmce", bandwidth=bandwidth, balanced=True)

    def forward(self, logits, target):
        return self.penalty(torch.nn.functional.pad(logits, (0, 1), value=-1e4), target)


def balanced_mmce(parts, bandwidth):
    return Balanced(bandwidth)


class ProgramMMCE(torch.nn.Module):
    """The balanced MMCE of the authors' program: residuals over the square of their number."""

    def __init__(self, bandwidth):
        super().__init__()
        self.bandwidth = bandwidth

    def forward(self, logits, target):
        confidence, predicted = logits.softmax(dim=1).max(dim=1)
        hit = (predicted == target).to(confidence)
        n_of_kind = torch.where(hit > 0, hit.sum(), (1 - hit).sum())
        part = (hit - confidence) / n_of_kind**2
        near = torch.exp(-torch.abs(confidence[:, None] - confidence) / self.bandwidth)
        return (part @ near @ part + 1e-10).sqrt()


def program_mmce(parts, bandwidth):
    return ProgramMMCE(bandwidth)


def kde(parts, bandwidth):
    return CalibrationPenalty("kde", bandwidth=bandwidth)


def numbers_given_features(parts, bandwidth, n_draws=None):
    loss = DistributionMatchingLoss("individual", bandwidth=bandwidth, n_draws=n_draws)
    return loss.fit(parts.train[1], given=parts.train[0])


def diagonal(parts, bandwidth):
    return Diagonal(bandwidth / parts.scale**2)


def decision(parts, bandwidth):
    """tanh of the distance from the median, in the units of the outcomes over the bandwidth."""
    options = {"kernel": "tanh", "bandwidth": bandwidth / parts.scale, "thresholds": [0.0]}
    return DistributionMatchingLoss("individual", **options).fit(
        parts.train[1], given=parts.train[0]
    )


def numbers_given_forecast(parts, bandwidth):
    return DistributionMatchingLoss("distribution", bandwidth=bandwidth).fit(parts.train[1])


def local(parts, bandwidth):
    """PITs, given the location."""
    return DistributionMatchingLoss("local", given_bandwidth=bandwidth)


GIVEN = {
    given_features: lambda X, parts: X,
    numbers_given_features: lambda X, parts: X,
    decision: lambda X, parts: X,
    local: lambda X, parts: X[:, parts.problem.location],
}


class Fitted(NamedTuple):
    net: torch.nn.Module
    validation: float  # the proper loss
    n_epochs: int
    seconds: float  # median over epochs, of the processor


def fit(parts, penalty=None, weight=0.0, bandwidth=1.0, *, seed, decay=None, **options):
    """The network at the epoch with the least proper loss on the validation part.

    Options: `n_epochs`, `stop` (default True: the last epoch if False), `n_draws` of the penalty,
    and `watch`, which is called with the network after each epoch.
    """
    is_number, is_large = parts.problem.is_number, len(parts.train[1]) > LARGE
    base = NegativeLogLikelihoodLoss() if is_number else torch.nn.CrossEntropyLoss()
    loss, sides = base, None
    if penalty is not None:
        more = {"n_draws": options["n_draws"]} if "n_draws" in options else {}
        loss = CalibrationRegularizedLoss(base, penalty(parts, bandwidth, **more), weight)
        sides = GIVEN.get(penalty)
    torch.manual_seed(seed)
    X, y = parts.train
    layers = []
    for n_inputs in (X.shape[1], WIDTH, WIDTH):
        layers += [torch.nn.Linear(n_inputs, WIDTH), torch.nn.BatchNorm1d(WIDTH), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, parts.n_outputs))
    kind = torch.optim.Adam if decay is None else torch.optim.AdamW
    optimizer = kind(net.parameters(), lr=LEARNING_RATE, weight_decay=decay or DECAY)
    order = torch.Generator().manual_seed(seed)
    least, best_epoch, best, seconds = np.inf, 0, None, []
    for epoch in range(options.get("n_epochs", N_EPOCHS[is_large])):
        net.train()
        start = time.process_time()
        shuffled = torch.randperm(len(y), generator=order)
        for rows in shuffled[: len(y) // BATCH * BATCH].split(BATCH):
            prediction = prediction_of(net(X[rows]), is_number)
            given = {} if sides is None else {"given": sides(X[rows], parts)}
            optimizer.zero_grad()
            loss(prediction, y[rows], **given).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP)
            optimizer.step()
        seconds.append(time.process_time() - start)
        net.eval()
        with torch.no_grad():
            prediction = prediction_of(net(parts.validation[0]), is_number)
            value = float(base(prediction, parts.validation[1]))
        if "watch" in options:
            options["watch"](net)
        if value < least or not options.get("stop", True):
            least, best_epoch, best = value, epoch, copy.deepcopy(net.state_dict())
        elif epoch - best_epoch >= PATIENCE[is_large]:
            break
    net.load_state_dict(best)
    return Fitted(net, least, len(seconds), float(np.median(seconds)))
