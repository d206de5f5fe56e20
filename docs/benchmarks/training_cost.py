"""Losses for training towards calibration: time per batch beside a small network.

Each loss is taken of given logits, or means and standard deviations, with its derivatives. Beside
it stands one step of a network of three hidden layers of 64 units with its own loss, forward and
backward. All in single precision and on one thread; the least time of many calls. Packages that
are missing are left out:

    pip install ".[torch,jax]" && python docs/benchmarks/training_cost.py
"""

import os
import sys
import time
from functools import partial
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from skcalib.losses import (
    SampledForecast,
    distribution_matching_loss,
    kde_calibration_loss,
    maximum_mean_calibration_loss,
    smooth_calibration_loss,
    soft_binned_calibration_loss,
)

N_FEATURES, WIDTH, N_DRAWS = 20, 64, 16

THRESHOLDS = np.linspace(-2, 2, 64, dtype=np.float32)

CLASS_LOSSES = {
    "matching, canonical": distribution_matching_loss,
    "matching, marginal": partial(distribution_matching_loss, calibration="marginal"),
    "matching, top-label": partial(distribution_matching_loss, calibration="top-label"),
    "matching, canonical, total variation": partial(
        distribution_matching_loss, given_kernel="total-variation"
    ),
    "smooth": smooth_calibration_loss,
    "smooth, classwise": partial(smooth_calibration_loss, multi_class="classwise"),
    "MMCE": maximum_mean_calibration_loss,
    "KDE": kde_calibration_loss,
    "soft-binned": soft_binned_calibration_loss,
}


def of_draws(convert, noise, prediction, target, **options):
    mean, std = prediction
    values = mean[:, None] + std[:, None] * convert(noise)
    return distribution_matching_loss(SampledForecast(values), target, **options)


def number_losses(convert, n):
    """Losses of normal forecasts; what they need beside is converted to the package's arrays."""
    rng = np.random.default_rng(1)
    features = convert(rng.normal(size=(n, 5)).astype(np.float32))
    noise = rng.normal(size=(n, N_DRAWS)).astype(np.float32)
    given = {"given_bandwidth": 1.0}
    matching = partial(distribution_matching_loss, bandwidth=1.0)
    of_thresholds = partial(distribution_matching_loss, thresholds=convert(THRESHOLDS))
    return {
        "matching, rbf": partial(matching, **given),
        "matching, laplacian": partial(matching, kernel="laplacian", **given),
        "matching, energy": partial(distribution_matching_loss, kernel="energy", **given),
        "matching, tanh, one threshold": partial(
            matching, kernel="tanh", thresholds=convert(THRESHOLDS[:1]), **given
        ),
        "matching, thresholds": partial(of_thresholds, kernel="thresholds", **given),
        "matching given features": partial(
            matching, calibration="individual", given=features, **given
        ),
        f"matching, marginal, {N_DRAWS} draws": partial(
            of_draws, convert, noise, calibration="marginal", bandwidth=1.0
        ),
        "quantile": partial(distribution_matching_loss, calibration="quantile"),
        "local": partial(distribution_matching_loss, calibration="local", given=features, **given),
        "threshold": partial(of_thresholds, calibration="threshold"),
        "decision": partial(of_thresholds, calibration="decision", bandwidth=1.0),
    }


def least_seconds(function, budget):
    """The least time of a call, of as many as fit in a budget of seconds, and of 5 at least."""
    function()
    best, stop, n_calls = np.inf, time.perf_counter() + budget, 0
    while n_calls < 5 or time.perf_counter() < stop:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
        n_calls += 1
    return best


def batch(n, n_classes):
    """Features, targets and what a network might say of them; one class is a number."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    if n_classes > 1:
        return (
            features,
            rng.integers(n_classes, size=n),
            (2 * rng.normal(size=(n, n_classes)).astype(np.float32),),
        )
    mean = rng.normal(size=n).astype(np.float32)
    std = rng.uniform(0.5, 2, size=n).astype(np.float32)
    return features, mean + std * rng.normal(size=n).astype(np.float32), (mean, std)


class Torch:
    def __init__(self):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.torch, self.asarray = torch, torch.tensor

    def network_step(self, features, target, n_classes):
        nn = self.torch.nn
        sizes = [N_FEATURES, WIDTH, WIDTH, WIDTH]
        layers = []
        for fan_in, fan_out in pairwise(sizes):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
        network = nn.Sequential(*layers, nn.Linear(WIDTH, max(n_classes, 2)))
        inputs, target = self.asarray(features), self.asarray(target)

        def step():
            network.zero_grad()
            output = network(inputs)
            if n_classes > 1:
                loss = nn.functional.cross_entropy(output, target)
            else:
                loss = nn.functional.gaussian_nll_loss(output[:, 0], target, output[:, 1].exp())
            loss.backward()

        return step

    def loss_step(self, loss, prediction, target):
        tensors = [self.asarray(array).requires_grad_() for array in prediction]
        target = self.asarray(target)
        only = tuple(tensors) if len(tensors) > 1 else tensors[0]

        def step():
            for tensor in tensors:
                tensor.grad = None
            loss(only, target).backward()

        return step


class Jax:
    def __init__(self):
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        import jax

        self.jax, self.asarray = jax, jax.numpy.asarray

    def network_step(self, features, target, n_classes):
        jnp, nn = self.jax.numpy, self.jax.nn
        rng = np.random.default_rng(0)
        sizes = [N_FEATURES, WIDTH, WIDTH, WIDTH, max(n_classes, 2)]
        layers = [
            (jnp.asarray(rng.normal(size=shape) / 8, dtype="float32"), jnp.zeros(shape[1]))
            for shape in pairwise(sizes)
        ]

        def loss(layers, inputs, target):
            value = inputs
            for weight, bias in layers[:-1]:
                value = nn.relu(value @ weight + bias)
            output = value @ layers[-1][0] + layers[-1][1]
            if n_classes > 1:
                log_proba = nn.log_softmax(output)
                return -jnp.take_along_axis(log_proba, target[:, None], axis=1).mean()
            return (output[:, 1] + (target - output[:, 0]) ** 2 / jnp.exp(output[:, 1])).mean() / 2

        return self._step(loss, layers, self.asarray(features), self.asarray(target))

    def loss_step(self, loss, prediction, target):
        arrays = tuple(map(self.asarray, prediction))
        only = arrays if len(arrays) > 1 else arrays[0]
        return self._step(loss, only, self.asarray(target))

    def _step(self, loss, *arguments):
        compiled = self.jax.jit(self.jax.value_and_grad(loss))
        return lambda: self.jax.block_until_ready(compiled(*arguments))


def table(package, n_classes, sizes, budget):
    what = f"{n_classes} classes" if n_classes > 1 else "normal forecasts"
    names = ["network", *(CLASS_LOSSES if n_classes > 1 else number_losses(package.asarray, 2))]
    cells = {name: [] for name in names}
    for n in sizes:
        features, target, prediction = batch(n, n_classes)
        losses = CLASS_LOSSES if n_classes > 1 else number_losses(package.asarray, n)
        base = least_seconds(package.network_step(features, target, n_classes), budget)
        cells["network"].append(f"{1e3 * base:.2f} ms")
        for name, loss in losses.items():
            seconds = least_seconds(package.loss_step(loss, prediction, target), budget)
            cells[name].append(f"{1e3 * seconds:.2f} ms, {seconds / base:.1f}")
    print(f"| {what} | {' | '.join(f'batch of {n}' for n in sizes)} |")
    print("|---" * (1 + len(sizes)) + "|")
    for name in names:
        print(f"| {name} | {' | '.join(cells[name])} |", flush=True)
    print()


def main(quick=False):
    sizes, budget = ((64,), 0.0) if quick else ((64, 256, 1024), 0.5)
    packages = {"torch": Torch, "jax": Jax}
    packages = {name: made for name, made in packages.items() if find_spec(name)}
    if not packages:
        print("not run: benchmark training_cost (needs torch or jax)")
    for name, made in packages.items():
        print(f"{name}: milliseconds per batch, and how many times those of the network\n")
        package = made()
        for n_classes in (10,) if quick else (10, 1000, 1):
            table(package, n_classes, sizes, budget)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
