"""Networks trained towards calibration on the data of Marx, Zalouk and Ermon (2023).

Their Tables 3 to 7: their objective (a kernel on the features) and the canonical one (a kernel on
the predictions), their errors (of batches) and ours. Without --data nothing is trained, and the
tables are those of the recorded rows.

    python docs/benchmarks/training.py [--quick] [--data FOLDER] [--rows FILE] [--repeats N]
        [--map FILE]
"""

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from _training import (
    balanced_mmce,
    decision,
    diagonal,
    fit,
    given_features,
    given_predictions,
    kde,
    local,
    mmce,
    numbers_given_features,
    numbers_given_forecast,
    prediction_of,
    problems,
    program_mmce,
    small_problems,
    split,
)
from _training_tables import NOT_STOPPED, print_all

from skcalib.forecasts import GaussianForecast
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    decision_calibration_error,
    expected_calibration_error,
    local_calibration,
    local_calibration_error,
    negative_log_likelihood,
    quantile_calibration_error,
    smooth_expected_calibration_error,
    squared_kernel_calibration_error,
)
from skcalib.recalibration import (
    AutoRecalibrator,
    IdentityRecalibrator,
    LocationScaleRecalibrator,
    PITRecalibrator,
    TemperatureRecalibrator,
)
from skcalib.torch import set_value_checks

RECORDED = Path(__file__).parent / "tables" / "training_rows.csv"

# Three settings for each: a weight and a bandwidth, or a weight decay.
DECAYS = (0.3, 3.0, 30.0)
CLASS_PENALTIES = {
    "MMCE": (mmce, [(0.3, 0.4), (1.0, 0.4), (4.0, 0.4)]),
    "MMCE, balanced": (balanced_mmce, [(0.3, 0.4), (1.0, 0.4), (4.0, 0.4)]),
    "MMCE, program": (program_mmce, [(4.0, 0.4)]),
    "ECE-KDE": (kde, [(0.03, 0.1), (0.1, "likelihood"), (0.3, 0.1)]),
    "MMD given x": (given_features, [(0.2, 10.0), (2.0, 10.0), (20.0, 10.0)]),
    "MMD given Q": (given_predictions, [(0.2, 0.4), (2.0, 0.4), (20.0, 0.4)]),
}
NUMBER_PENALTIES = {
    "MMD given x": (numbers_given_features, [(w, "median") for w in (0.2, 2.0, 20.0)]),
    "mass near the outcome": (diagonal, [(1.0, 1.0), (30.0, 1.0), (1000.0, 1.0)]),
    "MMD tanh given x": (decision, [(0.2, 1.0), (2.0, 1.0), (20.0, 1.0)]),
    "MMD given Q": (numbers_given_forecast, [(w, "median") for w in (0.2, 2.0, 20.0)]),
    "MMD local": (local, [(0.2, 0.5), (2.0, 0.5), (20.0, 0.5)]),
}
MAP_WEIGHT = 2.0
DRAWS = (1, 2, 5, 10, 20)
N_REDRAWN = 20  # data sets drawn from the predictions, for errors under calibration


# The errors of the authors' code


def batched_ece(hit, confidence, size=8, n_bins=20):
    """Mean over batches of the ECE of a batch; the last incomplete batch is left out."""
    n_batches = len(hit) // size
    gap = (hit - confidence)[: n_batches * size]
    bins = np.minimum((confidence[: n_batches * size] * n_bins).astype(int), n_bins - 1)
    sums = np.zeros((n_batches, n_bins))
    np.add.at(sums, (np.repeat(np.arange(n_batches), size), bins), gap)
    return np.abs(sums).sum() / (n_batches * size)


def batched_kce(residual, X, size=8, bandwidth=10.0):
    """Mean over batches of the penalty with the kernel exp(−d²/bandwidth) on features."""
    n_batches = len(X) // size
    r = residual[: n_batches * size].reshape(n_batches, size, -1)
    x = X[: n_batches * size].reshape(n_batches, size, -1)
    near = np.exp(-((x[:, :, None] - x[:, None]) ** 2).sum(axis=-1) / bandwidth)
    near *= 1 - np.eye(size)
    return np.mean(np.einsum("bik,bjk,bij->b", r, r, near)) / (size * (size - 1))


def histogram_distance(pit, n_bins=20):
    """Half of the L1 distance of a histogram of rounded PITs from the uniform one."""
    bins = np.minimum(np.rint(n_bins * pit), n_bins - 1).astype(int)
    counts = np.bincount(bins, minlength=n_bins)
    return np.abs(counts / len(pit) - 1 / n_bins).sum() / 2


def summed_dce(y, below, size=128):
    """Root of the sum over batches and actions of squared gaps of losses; below is the cdf at 0."""
    gaps = []
    for start in range(0, max(len(y) // size, 1) * size, size):
        rows = slice(start, start + size)
        for happens, chance in ((y < 0, below), (y > 0, 1 - below)):
            gaps.append(np.mean(happens[rows]) - np.mean(chance[rows]))
    return np.sqrt(np.sum(np.square(gaps)))


def class_measures(y, proba, parts):
    labels, rng = np.arange(parts.n_outputs), np.random.default_rng(0)
    confidence, predicted = proba.max(axis=1), proba.argmax(axis=1)
    X, residual = parts.test[0].double().numpy(), np.eye(parts.n_outputs)[y] - proba
    redrawn = [batched_ece(rng.random(len(y)) < confidence, confidence) for _ in range(N_REDRAWN)]
    return {
        "log loss": -np.mean(np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12))),
        "accuracy": 100 * np.mean(predicted == y),
        "ECE of 8": batched_ece(predicted == y, confidence),
        "if calibrated": np.mean(redrawn),
        "entropy": -np.mean(np.sum(proba * np.log(np.maximum(proba, 1e-12)), axis=1)),
        "1000 KCE of 8": 1000 * batched_kce(residual, X),
        "ECE": expected_calibration_error(y, proba, labels=labels),
        "smECE": smooth_expected_calibration_error(y, proba, labels=labels),
        "1000 SKCE": 1000
        * squared_kernel_calibration_error(y, proba, labels=labels, kernel="rbf", bandwidth=0.4),
    }


def log_density(y, forecast):
    try:
        return negative_log_likelihood(y, forecast)
    except ValueError:  # a forecast recalibrated by ranks has no density
        return np.nan


def number_measures(y, forecast, parts):
    rng, n = np.random.default_rng(0), len(y)
    below = forecast.cdf(np.zeros(n))
    location = parts.test[0][:, parts.problem.location].double().numpy()
    uniform = rng.random((N_REDRAWN, n))
    return {
        "NLL": log_density(y, forecast) + np.log(parts.scale),
        "CRPS": parts.scale * continuous_ranked_probability_loss(y, forecast),
        "QCE by histogram": histogram_distance(forecast.cdf(y)),
        "QCE by histogram, if calibrated": np.mean([histogram_distance(u) for u in uniform]),
        "QCE": quantile_calibration_error(y, forecast),
        "DCE summed": summed_dce(y, below),
        "DCE summed, if calibrated": np.mean([summed_dce(u - below, below) for u in uniform]),
        "DCE": decision_calibration_error(y, forecast, loss=0.0),
        "LCE": local_calibration_error(y, forecast, given=location, bandwidth=0.5),
        "mean std": parts.scale * np.mean(forecast.std()),
    }


# What is measured


def predictions(net, parts):
    """Probabilities or forecasts for the validation and the test part."""
    is_number = parts.problem.is_number
    with torch.no_grad():
        outputs = [net(part[0]).double() for part in (parts.validation, parts.test)]
    if is_number:
        found = [prediction_of(output, is_number) for output in outputs]
        return [GaussianForecast(mean.numpy(), std.numpy()) for mean, std in found]
    return [torch.softmax(output, dim=1).numpy() for output in outputs]


def recalibrators(parts):
    if parts.problem.is_number:
        return {
            "none": IdentityRecalibrator(),
            "isotonic PIT": PITRecalibrator(),
            "location, scale": LocationScaleRecalibrator(),
            "auto": AutoRecalibrator(),
        }
    labels = np.arange(parts.n_outputs)
    return {
        "none": IdentityRecalibrator(labels=labels),
        "temperature": TemperatureRecalibrator(labels=labels, prior_weight=0),
        "auto": AutoRecalibrator(labels=labels),
    }


def objectives(is_number):
    """Name, and the options of `fit` that it chooses among."""
    yield "plain", [{}]
    yield "weight decay", [{"decay": decay} for decay in DECAYS]
    for name, (penalty, pairs) in (NUMBER_PENALTIES if is_number else CLASS_PENALTIES).items():
        yield name, [{"penalty": penalty, "weight": w, "bandwidth": b} for w, b in pairs]


def not_stopped():
    """The last of 30 epochs, without a penalty and with one."""
    options = {"stop": False, "n_epochs": 30}
    yield f"plain{NOT_STOPPED}", [options]
    penalty = {"penalty": given_features, "weight": 2.0, "bandwidth": 10.0}
    yield f"MMD given x{NOT_STOPPED}", [{**penalty, **options}]


def draws_of_numbers():
    """Table 6: by draws, and in closed form."""
    for n_draws in (*DRAWS, None):
        options = {"penalty": numbers_given_features, "weight": 2.0, "bandwidth": "median"}
        yield f"{n_draws or 'no'} draws", [{**options, "n_draws": n_draws}]


def measured(parts, seed, objective, choices, short):
    """A row for each setting as it is, and for the chosen one after each recalibrator."""
    measures = number_measures if parts.problem.is_number else class_measures
    y, y_new = parts.validation[1].numpy(), parts.test[1].numpy()
    found = []
    choices = choices[:1] if short else choices
    for options in choices:
        fitted = fit(parts, seed=seed, **(options | ({"n_epochs": 2} if short else {})))
        found.append((fitted, *predictions(fitted.net, parts)))
    chosen = min(range(len(found)), key=lambda k: found[k][0].validation)
    for k, (options, (fitted, before, new)) in enumerate(zip(choices, found, strict=True)):
        accuracy = np.nan
        if not parts.problem.is_number:
            accuracy = np.mean(before.argmax(axis=1) == y)
        row = {
            "problem": parts.problem.name,
            "seed": seed,
            "objective": objective,
            "weight": options.get("weight", options.get("decay", 0.0)),
            "chosen": k == chosen,
            "validation loss": fitted.validation,
            "validation accuracy": accuracy,
            "epochs": fitted.n_epochs,
            "seconds": fitted.seconds,
        }
        for after, recalibrator in recalibrators(parts).items():
            if after == "none" or (k == chosen and "draws" not in objective):
                recalibrated = recalibrator.fit(before, y).transform(new)
                yield {**row, "after": after, **measures(y_new, recalibrated, parts)}


def all_rows(given, n_repeats, path, short=False):
    """Rows for all seeds and problems; those already in the file are not measured again."""
    rows = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["problem", "seed"])
    for seed in range(n_repeats):
        for problem in given:
            parts = split(problem, seed)
            is_known = (rows.problem == problem.name) & (rows.seed == seed)
            known = set(rows[is_known].objective) if len(rows) else set()
            cases = list(objectives(problem.is_number))
            cases += draws_of_numbers() if problem.is_number else not_stopped()
            new = [
                row
                for objective, choices in cases
                if objective not in known
                for row in measured(parts, seed, objective, choices, short)
            ]
            if new:
                rows = pd.concat([rows, pd.DataFrame(new)], ignore_index=True)
                rows.to_csv(path, index=False, float_format="%.5g")
    return rows


def save_map(problem, path):
    """Figure 1 as far as one year allows: local errors around the test counties of one split."""
    import matplotlib.pyplot as plt

    parts = split(problem, seed=0)
    y, location = parts.test[1].numpy(), parts.test[0][:, problem.location].double().numpy()
    cases = {
        "NLL": {},
        "NLL + MMD given x": {"penalty": numbers_given_features, "bandwidth": "median"},
        "NLL + MMD local": {"penalty": local, "bandwidth": 0.5},
    }
    figure, axes = plt.subplots(1, 3, figsize=(12, 3), sharey=True, layout="constrained")
    for axis, (name, options) in zip(axes, cases.items(), strict=True):
        net = fit(parts, seed=0, weight=MAP_WEIGHT, **options).net
        forecast = predictions(net, parts)[1]
        around = local_calibration(y, forecast, given=location, query=location, bandwidth=0.5)
        points = problem.X[:, problem.location].std(axis=0) * location
        points = points + problem.X[:, problem.location].mean(axis=0)
        shown = axis.scatter(*points.T[::-1], c=around.error, s=8, vmin=0, vmax=0.2)
        axis.set_title(f"{name}: {np.sqrt(np.mean(around.error**2)):.3f}", fontsize=10)
        axis.set_xlabel("longitude")
    axes[0].set_ylabel("latitude")
    figure.colorbar(shown, ax=axes, label="local calibration error")
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two epochs on two small data sets")
    parser.add_argument("--data", type=Path, help="the folder of the authors' data")
    parser.add_argument("--rows", type=Path, default=RECORDED, help="read, and continued")
    parser.add_argument("--repeats", type=int, default=5, help="number of splits")
    parser.add_argument("--map", type=Path, help="where to draw the map of crop yields")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    set_value_checks(False)
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            rows = all_rows(list(small_problems()), 2, Path(folder) / "rows.csv", short=True)
    elif options.data:
        given = {problem.name: problem for problem in problems(options.data)}
        rows = all_rows(list(given.values()), options.repeats, options.rows)
        if options.map:
            save_map(given["crop-yield"], options.map)
    else:
        print("Training was not run, as --data is not given; the tables are of recorded rows.\n")
        rows = pd.read_csv(options.rows)
    print_all(rows)


if __name__ == "__main__":
    main()
