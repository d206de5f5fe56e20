"""What decisions by fourteen networks will cost: an estimate without labels beside the loss itself.

Half of the test images of CIFAR-10 recalibrate the predictions by their labels. On the other half,
the loss is estimated from the predictions alone, and then measured with the labels. The folder is
that of widmann2019.py.

    python docs/benchmarks/losses_without_labels.py FOLDER [--quick]
"""

import argparse
from pathlib import Path

import numpy as np

from skcalib.decisions import bayes_action, expected_loss
from skcalib.recalibration import TemperatureRecalibrator

K = 10
RECALIBRATORS = {"none": None, "temperature": TemperatureRecalibrator()}
LOSSES = {
    "1 for each error": 1 - np.eye(K),
    "1 for each error, 0.1 to ask a person": np.vstack([1 - np.eye(K), np.full(K, 0.1)]),
    "1 for each error, 10 for a missed plane": (1 - np.eye(K)) * np.where(np.arange(K) == 0, 10, 1),
}


def measure(proba, label, n_splits):
    """Expected and realised losses, {recalibrator: {loss: (n_splits, 2)}}."""
    values = {name: {loss: [] for loss in LOSSES} for name in RECALIBRATORS}
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(label))
        old, new = np.array_split(order, 2)
        for name, recalibrator in RECALIBRATORS.items():
            predicted = proba[new]
            if recalibrator is not None:
                predicted = recalibrator.fit(proba[old], label[old]).predict_proba(proba[new])
            for loss, table in LOSSES.items():
                action = bayes_action(predicted, loss=table)
                realised = table[action, label[new]].mean()
                values[name][loss].append((expected_loss(predicted, loss=table).mean(), realised))
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="with the predictions")
    parser.add_argument("--quick", action="store_true", help="two networks and 1000 images")
    arguments = parser.parse_args()
    if arguments.folder is None:
        print("not run: benchmark losses_without_labels (needs the folder of the predictions)")
        return
    with np.load(arguments.folder / "cifar10_probs.npz") as file:
        networks = {name: file[name].astype(np.float64) for name in file.files if name != "labels"}
        label = file["labels"]
    n, n_splits = len(label), 5
    if arguments.quick:
        networks, n, n_splits = dict(list(networks.items())[:2]), 1000, 1
    results = {}
    for name, proba in networks.items():
        results[name] = measure(proba[:n], label[:n], n_splits)
        print(".", end="", flush=True)
    print(
        "\n\n| costs | recalibrated by | mean loss | mean gap | mean absolute gap | largest gap |"
    )
    print("|---|---|---|---|---|---|")
    for loss in LOSSES:
        for name in RECALIBRATORS:
            pairs = np.array(
                [result[name][loss] for result in results.values()]
            )  # (networks, s, 2)
            gap = (pairs[..., 0] - pairs[..., 1]) / pairs[..., 1]
            print(
                f"| {loss} | {name} | {pairs[..., 1].mean():.4f} | {gap.mean():+.0%} | "
                f"{abs(gap).mean():.0%} | {abs(gap).max():.0%} |"
            )


if __name__ == "__main__":
    main()
