"""Which errors compare networks that were tested on different images?

The fourteen networks of Widmann, Lindsten and Zachariah (2019) predict the same 10,000 images of
CIFAR-10. The images are split in two, by class, by difficulty, by size or by chance, and each
network is measured on both parts. Two questions: is a pair of networks, each measured on its own
part, in the order that the same measure gives on all images? And do the two parts rank all
networks alike? The folder holds cifar10_probs.npz.

    python docs/benchmarks/networks_on_other_data.py FOLDER [--quick]
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from _networks import (
    CLASSES,
    brier_score,
    log_loss,
    mean_and_error,
    print_table,
    read_networks,
)
from scipy.stats import spearmanr

from skcalib.metrics import (
    conditional_kernel_calibration_error,
    expected_calibration_error,
    joint_kernel_calibration_error,
    smooth_calibration_error,
    smooth_expected_calibration_error,
    squared_kernel_calibration_error,
)

FOURIER = {"method": "fourier", "random_state": 0, "labels": CLASSES}
FIXED = FOURIER | {"bandwidth": 0.5, "regularization": 5000**-0.25}
PAPER_BINS = {"n_bins": 4, "multi_class": "canonical", "distance": "cityblock", "labels": CLASSES}

ckce = conditional_kernel_calibration_error
MEASURES = {
    "CKCE, fixed": partial(ckce, **FIXED),
    "CKCE, fixed, debiased": partial(ckce, **FIXED, estimation="debiased"),
    "CKCE, median bandwidth": partial(ckce, **FOURIER),
    "SKCE": partial(squared_kernel_calibration_error, kernel="rbf", bandwidth=0.5, **FOURIER),
    "smooth error, confidence": partial(smooth_calibration_error, labels=CLASSES),
    "smooth error, classwise": partial(
        smooth_calibration_error, multi_class="classwise", labels=CLASSES
    ),
    "smECE": partial(smooth_expected_calibration_error, labels=CLASSES),
    "ECE, 15 bins": partial(expected_calibration_error, n_bins=15, labels=CLASSES),
    "ECE, 4 bins of each class": partial(expected_calibration_error, **PAPER_BINS),
    "Brier score": brier_score,
    "log loss": log_loss,
}


def part_by_class(label, difficulty, rng):
    return np.isin(label, rng.permutation(10)[:5])


def part_by_difficulty(label, difficulty, rng):
    """A chance of 0.3 for the easiest image to 0.7 for the hardest."""
    return rng.random(len(label)) < 0.3 + 0.4 * difficulty


def part_by_size(label, difficulty, rng):
    return rng.permutation(len(label)) < 1000


def part_by_chance(label, difficulty, rng):
    return rng.permutation(len(label)) < len(label) // 2


PARTITIONS = {
    "other classes": (part_by_class, 10),
    "harder images": (part_by_difficulty, 4),
    "1000 and 9000": (part_by_size, 4),
    "random halves": (part_by_chance, 4),
}


def share_in_order(first, second, everywhere):
    """Of all pairs: network i in the first part and j in the second ordered as on all images."""
    order = np.sign(first[:, None] - second) == np.sign(everywhere[:, None] - everywhere)
    return np.mean(order[~np.eye(len(first), dtype=bool)])


def compare_partitions(label, networks, quick):
    confidence = np.mean([proba.max(axis=1) for proba in networks.values()], axis=0)
    difficulty = np.argsort(np.argsort(-confidence)) / len(label)
    everywhere = measure_all(label, networks, slice(None))
    in_order, rank_agreement, log_ratio = {}, {}, {}
    rng = np.random.default_rng(0)
    for title, (draw_part, n_repeats) in PARTITIONS.items():
        for _ in range(2 if quick else n_repeats):
            is_first = draw_part(label, difficulty, rng)
            first = measure_all(label, networks, is_first)
            second = measure_all(label, networks, ~is_first)
            for name, values in first.items():
                key = name, title
                share = share_in_order(values, second[name], everywhere[name])
                in_order.setdefault(key, []).append(share)
                rank_agreement.setdefault(key, []).append(spearmanr(values, second[name])[0])
                ratio = np.maximum(values, 1e-9) / np.maximum(second[name], 1e-9)
                power = 0.5 if "KCE" in name else 1.0  # kernel errors are squares
                log_ratio.setdefault(key, []).append(power * np.mean(np.abs(np.log(ratio))))
    header = ["measure", *PARTITIONS]
    for title, table in (
        ("Pairs ordered as on all images", in_order),
        ("Rank agreement of all networks between the two parts", rank_agreement),
        ("How far the number moves between the two parts: mean absolute log ratio", log_ratio),
    ):
        rows = [[name, *(mean_and_error(table[name, t]) for t in PARTITIONS)] for name in MEASURES]
        print_table(title, header, rows)
    return everywhere


def measure_all(label, networks, rows):
    return {
        name: np.array([measure(label[rows], proba[rows]) for proba in networks.values()])
        for name, measure in MEASURES.items()
    }


def show_table_1(label, networks):
    """Accuracy, cross entropy, CKCE, JKCE and ECE of each network and of the marginal model."""
    marginal = np.full((len(label), 10), 0.1)
    rows, columns = [], []
    for name, proba in (*networks.items(), ("marginal", marginal)):
        is_marginal = name == "marginal"  # the median distance of equal predictions is 0
        bandwidth = 1.0 if is_marginal else "median"
        values = [
            np.mean(proba.argmax(axis=1) == label),
            log_loss(label, proba),
            ckce(label, proba, **FOURIER, bandwidth=bandwidth),
            joint_kernel_calibration_error(label, proba, bandwidth=bandwidth, labels=CLASSES),
            expected_calibration_error(label, proba, **PAPER_BINS),
        ]
        formats = ".4f", ".3f", ".4f", ".5f", ".3f"
        cells = [format(value, form) for value, form in zip(values, formats, strict=True)]
        rows.append([name, *cells])
        if not is_marginal:
            columns.append(values)
    header = ["network", "accuracy", "cross entropy", "CKCE", "JKCE", "ECE"]
    print_table("Table 1 of the paper, with these networks", header, rows)
    return dict(zip(header[1:], np.array(columns).T, strict=True))


def show_agreement(table, everywhere):
    columns = {"error rate": 1 - table["accuracy"], **table}
    del columns["accuracy"]
    columns["smooth error"] = everywhere["smooth error, confidence"]
    rows = [
        [name, *(f"{spearmanr(values, other)[0]:.2f}" for other in columns.values())]
        for name, values in columns.items()
    ]
    print_table("Rank agreement of measures, on all images", ["", *columns], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="with cifar10_probs.npz")
    parser.add_argument("--quick", action="store_true", help="three networks, few partitions")
    arguments = parser.parse_args()
    if arguments.folder is None:
        print("not run: benchmark networks_on_other_data (needs the folder of the predictions)")
        return
    label, networks = read_networks(arguments.folder)
    if arguments.quick:
        networks = dict(list(networks.items())[:3])
    everywhere = compare_partitions(label, networks, arguments.quick)
    show_agreement(show_table_1(label, networks), everywhere)


if __name__ == "__main__":
    main()
