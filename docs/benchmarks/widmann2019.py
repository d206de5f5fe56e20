"""The fourteen networks of Widmann, Lindsten and Zachariah (2019), beside the published numbers.

Their appendix J.3: errors, bounds and p-values of networks on CIFAR-10. The folder holds
cifar10_probs.npz, with `labels` and the float32 predictions of each network, and the tables of the
authors, expected_errors.csv and expected_pvalues.csv.

    python docs/benchmarks/widmann2019.py FOLDER [--quick]
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.exceptions import EfficiencyWarning

from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import expected_calibration_error, squared_kernel_calibration_error

UNIFORM = {"n_bins": 10, "multi_class": "canonical"}
DYNAMIC = {"strategy": "median-variance", "min_bin_size": 100, "multi_class": "canonical"}
ESTIMATORS = {"b": "biased", "uq": "unbiased", "ul": "linear"}


def median_distance(proba):
    """Of all n² entries of the matrix of total variation distances, as the authors take it."""
    distance = np.empty((len(proba), len(proba)), dtype=np.float32)
    for start in range(0, len(proba), 500):
        distance[start : start + 500] = cdist(proba[start : start + 500], proba, "cityblock") / 2
    return float(np.median(distance, overwrite_input=True))


def measure(proba, label, n_resamples):
    """The columns of the two published tables."""
    kernel = {"bandwidth": median_distance(proba)}
    values = {
        "ECE_uniform": expected_calibration_error(label, proba, **UNIFORM),
        "ECE_dynamic": expected_calibration_error(label, proba, **DYNAMIC),
    }
    p_values = {}
    for name, estimation in ESTIMATORS.items():
        column = f"SKCE{name}_median"
        values[column] = squared_kernel_calibration_error(
            label, proba, estimation=estimation, **kernel
        )
        bound = CalibrationTest("skce", method="distribution-free", estimation=estimation, **kernel)
        p_values[f"{column}_distribution_free"] = bound.fit(proba, label).p_value_
    draws = {"n_resamples": n_resamples, "random_state": 0}
    normal = CalibrationTest("skce", method="asymptotic", estimation="linear", **kernel)
    p_values["SKCEul_median_asymptotic"] = normal.fit(proba, label).p_value_
    bootstrap = CalibrationTest("skce", method="asymptotic", **kernel, **draws)
    p_values["SKCEuq_median_asymptotic"] = bootstrap.fit(proba, label).p_value_
    for name, options in (("ECE_uniform", UNIFORM), ("ECE_dynamic", DYNAMIC)):
        consistency = CalibrationTest(
            "expected_calibration_error", method="consistency", metric_params=options, **draws
        )
        p_values[name] = consistency.fit(proba, label).p_value_
    return values, p_values


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        rows = {row.pop("model"): row for row in csv.DictReader(file)}
    return {name: {key: float(value) for key, value in row.items()} for name, row in rows.items()}


def print_table(title, columns, ours, theirs, form):
    print(f"\n## {title}\n")
    print("| network |" + "".join(f" {name} | published |" for name in columns))
    print("|---|" + "---|---|" * len(columns))
    for network, row in ours.items():
        cells = ((row[key], theirs[network][key]) for key in columns.values())
        print(f"| {network} |" + "".join(f" {form(a)} | {form(b)} |" for a, b in cells))
    for name, key in columns.items():
        pairs = [(row[key], theirs[network][key]) for network, row in ours.items()]
        absolute = max(abs(a - b) for a, b in pairs)
        relative = max(abs(a - b) / abs(b) if b else float(a != b) for a, b in pairs)
        print(f"\n{name}: largest difference {absolute:.1e}, relative {relative:.1e}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="with the predictions and tables")
    parser.add_argument("--quick", action="store_true", help="two networks, fewer draws")
    arguments = parser.parse_args()
    if arguments.folder is None:
        print("not run: benchmark widmann2019 (needs the folder of the predictions)")
        return
    with np.load(arguments.folder / "cifar10_probs.npz") as stored:
        label = stored["labels"].astype(int)
        # the shortest decimal form is what the authors' program read from its files
        networks = {k: stored[k].astype(str).astype(float) for k in stored if k != "labels"}
    errors = read(arguments.folder / "expected_errors.csv")
    p_values = read(arguments.folder / "expected_pvalues.csv")
    names = sorted(networks)[: 2 if arguments.quick else None]
    warnings.simplefilter("ignore", EfficiencyWarning)  # all pairs of 10,000 rows: some seconds
    n_resamples = 99 if arguments.quick else 199
    both = {name: measure(networks[name], label, n_resamples) for name in names}
    our_errors = {name: values for name, (values, _) in both.items()}
    our_p_values = {name: values for name, (_, values) in both.items()}

    columns = {
        "ECE, uniform bins": "ECE_uniform",
        "ECE, bins of median and variance": "ECE_dynamic",
    }
    print_table("ECE in total variation", columns, our_errors, errors, "{:.12f}".format)
    columns = {f"SKCE_{name}": f"SKCE{name}_median" for name in ESTIMATORS}
    print_table("Squared kernel calibration errors", columns, our_errors, errors, "{:.8e}".format)
    columns = {f"D_{name}": f"SKCE{name}_median_distribution_free" for name in ESTIMATORS}
    title = "p-values by bounds that hold for every number of samples"
    print_table(title, columns, our_p_values, p_values, "{:.10f}".format)
    columns = {
        "A_l": "SKCEul_median_asymptotic",
        "A_uq": "SKCEuq_median_asymptotic",
        "C, uniform bins": "ECE_uniform",
        "C, bins of median and variance": "ECE_dynamic",
    }
    title = "Asymptotic p-values, and those of consistency resampling"
    print_table(title, columns, our_p_values, p_values, "{:.6g}".format)


if __name__ == "__main__":
    main()
