"""Networks trained towards calibration, with and without a recalibrator afterwards.

The experiments of Marx, Zalouk and Ermon (2023), Tables 3 to 7, on small data. Each split has 60 %
to train, 20 % to stop early, to choose the setting of a penalty and to recalibrate, and 20 % to
measure. A split starts all networks from the same weights. Another table is taken with --csv.

    python docs/benchmarks/training.py [--quick] [--repeats N] [--rows FILE]
        [--no-stopping] [--csv TABLE --target COLUMN [--regression]]
"""

import argparse
import itertools
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from _training import (
    N_EPOCHS,
    decision,
    fit,
    kde,
    matching,
    matching_given_features,
    matching_given_forecast,
    mmce,
    normal,
    problem_of_table,
    problems,
    quantile,
    smooth,
    soft_binned,
    split,
)
from _training_tables import (
    print_contrast,
    print_counts,
    print_differences,
    print_draws,
    print_times,
    print_weights,
)

from skcalib.forecasts import GaussianForecast
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    decision_calibration_error,
    expected_calibration_error,
    log_density_loss,
    quantile_calibration_error,
    smooth_expected_calibration_error,
    squared_kernel_calibration_error,
)
from skcalib.recalibration import (
    AutoRecalibrator,
    IdentityRecalibrator,
    LocationScaleRecalibrator,
    TemperatureRecalibrator,
)

# What is chosen among: six weight decays, and six pairs of a weight and a bandwidth.
DECAYS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
PENALTIES = {
    "matching": (matching, (0.1, 1, 10), (0.1, 0.4)),
    "MMCE": (mmce, (0.1, 0.3, 1), (0.2, 0.4)),
    "KDE": (kde, (0.03, 0.1, 0.3), (0.02, 0.1)),
    "smooth": (smooth, (0.1, 0.3, 1), (0.05, 0.1)),
    "soft-binned": (soft_binned, (0.1, 0.3, 1), (0.003, 0.01)),
}
NUMBER_PENALTIES = {
    "matching given x": (matching_given_features, (0.3, 3, 30), (0.5, 1.0)),
    "matching given Q": (matching_given_forecast, (0.3, 3, 30), (0.5, 1.0)),
    "quantile": (quantile, (0.3, 3, 30), (0.1, 0.2236)),
    "tanh given x": (decision, (0.3, 3, 30), (0.3, 1.0)),
}


def predictions(net, parts, is_number):
    """Probabilities or forecasts for the validation and the test part."""
    with torch.no_grad():
        outputs = [net(part[0]).double() for part in (parts.validation, parts.test)]
    if is_number:
        return [GaussianForecast(*(c.numpy() for c in normal(output))) for output in outputs]
    return [torch.softmax(output, dim=1).numpy() for output in outputs]


CLASS_MEASURES = ["log loss", "accuracy", "ECE", "smECE", "1000 SKCE", "entropy"]
NUMBER_MEASURES = ["NLL", "CRPS", "QCE", "DCE", "DCE by action", "mean std"]


def class_measures(y, proba, parts):
    labels = np.arange(parts.n_outputs)
    return {
        "log loss": -np.mean(np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12))),
        "accuracy": np.mean(proba.argmax(axis=1) == y),
        "ECE": expected_calibration_error(y, proba, labels=labels),
        "smECE": smooth_expected_calibration_error(y, proba, labels=labels),
        "1000 SKCE": 1000
        * squared_kernel_calibration_error(y, proba, labels=labels, kernel="rbf", bandwidth=0.4),
        "entropy": -np.mean(np.sum(proba * np.log(np.maximum(proba, 1e-12)), axis=1)),
    }


def number_measures(y, forecast, parts):
    threshold = float(parts.threshold[0])
    return {
        "NLL": log_density_loss(y, forecast),
        "CRPS": continuous_ranked_probability_loss(y, forecast),
        "QCE": quantile_calibration_error(y, forecast),
        "DCE": decision_calibration_error(y, forecast, loss=threshold),
        "DCE by action": decision_calibration_error(y, forecast, loss=threshold, given="action"),
        "mean std": np.mean(forecast.std()),
    }


def recalibrators(parts, is_number):
    if is_number:
        return {
            "none": IdentityRecalibrator(),
            "location, scale": LocationScaleRecalibrator(),
            "auto": AutoRecalibrator(),
        }
    labels = np.arange(parts.n_outputs)
    return {
        "none": IdentityRecalibrator(labels=labels),
        "temperature": TemperatureRecalibrator(labels=labels),
        "auto": AutoRecalibrator(labels=labels),
    }


def settings(is_number):
    """Objective, and the options of `fit` that it chooses among."""
    yield "plain", [{}]
    yield "weight decay", [{"decay": decay} for decay in DECAYS]
    penalties = NUMBER_PENALTIES if is_number else PENALTIES
    for name, (penalty, weights, bandwidths) in penalties.items():
        pairs = itertools.product(weights, bandwidths)
        yield name, [{"penalty": penalty, "weight": w, "bandwidth": b} for w, b in pairs]


def measured(problem, seed, stop, quick):
    """A row for each setting as it is, and for the chosen one after each recalibrator."""
    parts = split(problem, seed)
    y, y_new = parts.validation[1].numpy(), parts.test[1].numpy()
    measures = number_measures if problem.is_number else class_measures
    for objective, choices in settings(problem.is_number):
        found = []
        for options in choices[:: 5 if quick else 1]:
            n_epochs = 2 if quick else N_EPOCHS
            net, least, seconds = fit(parts, seed=seed, n_epochs=n_epochs, stop=stop, **options)
            before, new = predictions(net, parts, problem.is_number)
            found.append((least, seconds, options, before, new))
        chosen = min(range(len(found)), key=lambda k: found[k][0])
        for k, (least, seconds, options, before, new) in enumerate(found):
            row = {
                "problem": problem.name,
                "number": problem.is_number,
                "seed": seed,
                "objective": objective,
                "chosen": k == chosen,
                "seconds": seconds,
                "validation": least,
                "bandwidth": options.get("bandwidth", np.nan),
                "weight": options.get("weight", options.get("decay", 0.0)),
            }
            for after, recalibrator in recalibrators(parts, problem.is_number).items():
                if after == "none" or k == chosen:
                    recalibrated = recalibrator.fit(before, y).transform(new)
                    yield {**row, "after": after, **measures(y_new, recalibrated, parts)}


def measured_draws(problem, seed):
    """Table 6: matching given x at one setting, by draws and in closed form (0 draws)."""
    parts = split(problem, seed)
    y_new = parts.test[1].numpy()
    for n_draws in (1, 2, 5, 10, None):

        def penalty(*given, n_draws=n_draws):
            return matching_given_features(*given, n_draws=n_draws)

        net, least, seconds = fit(parts, penalty, 10.0, 1.0, seed=seed)
        new = predictions(net, parts, is_number=True)[1]
        yield {
            "problem": problem.name,
            "number": True,
            "seed": seed,
            "objective": "draws",
            "chosen": False,
            "seconds": seconds,
            "validation": least,
            "weight": n_draws or 0,
            "after": "none",
            **number_measures(y_new, new, parts),
        }


def all_rows(given, n_repeats, path, stop, quick):
    """Rows for all seeds and problems; those already in the file are not measured again."""
    rows = pd.read_csv(path) if path and path.exists() else pd.DataFrame({"seed": []})
    for seed, problem in itertools.product(range(n_repeats), given):
        if len(rows) and ((rows.seed == seed) & (rows.problem == problem.name)).any():
            continue
        new = list(measured(problem, seed, stop, quick))
        if problem.name in ("diabetes", "made, unequal spread") and stop and not quick:
            new += measured_draws(problem, seed)
        rows = pd.concat([rows, pd.DataFrame(new)], ignore_index=True)
        if path:
            rows.to_csv(path, index=False)
    return rows


def print_all(rows):
    for is_number, title in ((False, "Classes"), (True, "Numbers")):
        names = NUMBER_MEASURES if is_number else CLASS_MEASURES
        part = rows[(rows.number == is_number) & (rows.objective != "draws")]
        if len(part) == 0:
            continue
        chosen = part[part.chosen]
        print(f"## {title}: means over problems, {part.seed.nunique()} splits\n")
        print("First the plain network as it is, then paired differences from it:\n")
        print_differences(chosen, names)
        after = chosen.after.iloc[1]
        print(f"The same from the plain network with {after} afterwards:\n")
        print_differences(chosen, names, after)
        print("Problems on which a value is lower / higher than plain with the same recalibrator,")
        print("by more than two standard errors:\n")
        print_counts(chosen, names)
        if is_number:
            print("The kernel of the decision less the rbf kernel, nothing afterwards:\n")
            print_contrast(chosen, names, "tanh given x", "matching given x")
        print("Each weight, chosen or not, with nothing afterwards, means over bandwidths:\n")
        print_weights(part[part.after == "none"], names)
        print("Processor time per epoch of plain, and of the others in units of it:\n")
        print_times(part[part.after == "none"])
        for name, those in chosen.groupby("problem", sort=False):
            print(f"## {name}\n")
            print_differences(those, names)
    for name, part in rows[rows.objective == "draws"].groupby("problem", sort=False):
        print(f"## Draws, {name}\n\nThe closed form, and paired differences from it:\n")
        print_draws(part, NUMBER_MEASURES)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two epochs, to see that it runs")
    parser.add_argument("--repeats", type=int, default=10, help="number of splits")
    parser.add_argument("--rows", type=Path, help="keep what is measured, and continue from there")
    parser.add_argument("--no-stopping", action="store_true", help="train for all epochs")
    parser.add_argument("--csv", type=Path, help="a table to measure on, in place of the others")
    parser.add_argument("--target", help="its column to predict")
    parser.add_argument("--regression", action="store_true", help="the column is a number")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    given = list(problems())
    if options.csv:
        given = [problem_of_table(options.csv, options.target, options.regression)]
    n_repeats = 2 if options.quick else options.repeats
    if options.quick:
        given = [problem for problem in given if problem.name in ("wine", "diabetes")] or given
    print_all(all_rows(given, n_repeats, options.rows, not options.no_stopping, options.quick))


if __name__ == "__main__":
    main()
