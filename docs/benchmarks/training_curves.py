"""Decision and local calibration of a network over the epochs of its training.

Figures 2 and 3 of Marx, Zalouk and Ermon (2023) on their data: no early stopping, and one weight
for all penalties. Without --data nothing is trained, and the tables are those of the recorded rows.

    python docs/benchmarks/training_curves.py [--quick] [--data FOLDER] [--rows FILE]
        [--figure FILE]
"""

import argparse
import warnings
from pathlib import Path

import pandas as pd
import torch
from _training import (
    decision,
    fit,
    local,
    numbers_given_features,
    prediction_of,
    problems,
    small_problems,
    split,
)
from _training_tables import print_table, with_error

from skcalib.forecasts import GaussianForecast
from skcalib.metrics import decision_calibration_error, local_calibration_error
from skcalib.torch import set_value_checks

RECORDED = Path(__file__).parent / "tables" / "training_curves_rows.csv"
NAMES = ("crime", "crop-yield", "diabetes")
WEIGHT, N_EPOCHS, N_SPLITS, SHOWN, NEAR = 20.0, 40, 5, (2, 10, 20, 40), 0.5
MOST_POINTS = 200  # at which local calibration is measured
OBJECTIVES = {
    "plain": (None, 1.0),
    "MMD given x": (numbers_given_features, "median"),
    "MMD tanh given x": (decision, 1.0),
    "MMD local": (local, NEAR),
}
MEASURES = {
    "DCE": OBJECTIVES.keys() - {"MMD local"},
    "LCE": OBJECTIVES.keys() - {"MMD tanh given x"},
}


def errors(net, X, y, parts):
    with torch.no_grad():
        mean, std = prediction_of(net(X).double(), is_number=True)
    forecast, location = GaussianForecast(mean.numpy(), std.numpy()), X[:, parts.problem.location]
    location = location.double().numpy()
    near = {"given": location, "query": location[:MOST_POINTS], "bandwidth": NEAR}
    return {
        "DCE": decision_calibration_error(y.numpy(), forecast, loss=0.0),
        "LCE": local_calibration_error(y.numpy(), forecast, **near),
    }


def curves(problem, seed, n_epochs):
    """A row for each objective, second epoch, and part of the data."""
    parts = split(problem, seed)
    for objective, (penalty, bandwidth) in OBJECTIVES.items():
        rows, epoch = [], 0

        def watch(net, rows=rows, objective=objective):
            nonlocal epoch
            epoch += 1
            if epoch % 2 == 0:
                for part in ("train", "test"):
                    found = errors(net, *getattr(parts, part), parts)
                    rows.append({"objective": objective, "epoch": epoch, "part": part, **found})

        options = {"n_epochs": n_epochs, "stop": False, "watch": watch}
        fit(parts, penalty, WEIGHT, bandwidth, seed=seed, **options)
        yield from ({"problem": problem.name, "seed": seed, **row} for row in rows)


def print_curves(rows):
    for (problem, part), those in rows.groupby(["problem", "part"], sort=False):
        for measure, objectives in MEASURES.items():
            print(f"## {measure} of {problem}, {part}\n")
            lines = []
            for objective, its in those.groupby("objective", sort=False):
                if objective in objectives:
                    values = its.pivot(index="seed", columns="epoch", values=measure)
                    shown = [epoch for epoch in SHOWN if epoch in values]
                    lines.append([objective, *(with_error(values[epoch]) for epoch in shown)])
            print_table(lines, ["objective", *(f"epoch {epoch}" for epoch in shown)])


def save_figure(rows, path):
    import matplotlib.pyplot as plt

    panels = list(rows[["problem", "part"]].drop_duplicates().itertuples(index=False))
    figure, axes = plt.subplots(
        2, len(panels), figsize=(3 * len(panels), 5.4), sharex=True, sharey="row"
    )
    colors = dict(zip(OBJECTIVES, ("black", "C0", "C1", "C2"), strict=True))
    handles = {}
    for column, (problem, part) in enumerate(panels):
        those = rows[(rows.problem == problem) & (rows.part == part)]
        axes[0, column].set_title(f"{problem}, {part}", fontsize=10)
        axes[1, column].set_xlabel("epoch")
        for row, (measure, objectives) in enumerate(MEASURES.items()):
            for objective, its in those.groupby("objective", sort=False):
                if objective in objectives:
                    values = its.pivot(index="epoch", columns="seed", values=measure)
                    mean, error = values.mean(axis=1), values.sem(axis=1)
                    color, axis = colors[objective], axes[row, column]
                    handles[objective] = axis.plot(values.index, mean, color=color)[0]
                    axis.fill_between(
                        values.index, mean - error, mean + error, color=color, alpha=0.15, lw=0
                    )
    for axis, measure in zip(axes[:, 0], MEASURES, strict=True):
        axis.set_ylabel(measure)
        axis.set_ylim(bottom=0)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.legend(handles.values(), handles, loc="lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="four epochs, to see that it runs")
    parser.add_argument("--data", type=Path, help="the folder of the authors' data")
    parser.add_argument("--rows", type=Path, default=RECORDED, help="read, or written with --data")
    parser.add_argument("--figure", help="where to save the figure")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    set_value_checks(False)
    if options.quick or options.data:
        given = small_problems() if options.quick else problems(options.data)
        given = [problem for problem in given if problem.name in NAMES]
        n_splits, n_epochs = (2, 4) if options.quick else (N_SPLITS, N_EPOCHS)
        cases = [(problem, seed) for problem in given for seed in range(n_splits)]
        rows = pd.DataFrame(row for case in cases for row in curves(*case, n_epochs))
        if not options.quick:
            rows.to_csv(options.rows, index=False, float_format="%.4g")
    else:
        print("Training was not run, as --data is not given; the tables are of recorded rows.\n")
        rows = pd.read_csv(options.rows)
    print_curves(rows)
    if options.figure:
        save_figure(rows, options.figure)


if __name__ == "__main__":
    main()
