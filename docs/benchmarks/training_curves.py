"""Decision and local calibration of a network over the epochs of its training.

Figures 2 and 3 of Marx, Zalouk and Ermon (2023), on small data: no early stopping, and one weight
for each penalty. It needs Matplotlib for the figure only.

    python docs/benchmarks/training_curves.py [--quick] [--repeats N] [--figure FILE]
"""

import argparse
import warnings

import pandas as pd
import torch
from _training import (
    N_EPOCHS,
    decision,
    fit,
    matching_given_features,
    normal,
    problems,
    quantile,
    split,
)
from _training_tables import print_table, with_error

from skcalib.forecasts import GaussianForecast
from skcalib.losses import distribution_matching_loss
from skcalib.metrics import decision_calibration_error, local_calibration_error

NAMES = ("diabetes", "made, unequal spread")
WEIGHT = 10.0
SHOWN = (2, 10, 20, 40, 60)

# Locally means near in this feature: the body mass index, or the one that sets the spread.
LOCATION, NEAR = 2, 0.5


def local(output, y, X, parts, bandwidth):
    return distribution_matching_loss(
        normal(output),
        y,
        calibration="local",
        given=X[:, [LOCATION]],
        given_bandwidth=bandwidth,
    )


OBJECTIVES = {
    "plain": (None, None),
    "rbf given x": (matching_given_features, 1.0),
    "tanh given x": (decision, 1.0),
    "quantile": (quantile, 0.2236),
    "local": (local, NEAR),
}
MEASURES = {"DCE": OBJECTIVES.keys() - {"quantile", "local"}, "LCE": {"plain", "quantile", "local"}}


def errors(net, X, y, parts):
    with torch.no_grad():
        forecast = GaussianForecast(*(column.double().numpy() for column in normal(net(X))))
    location = X[:, [LOCATION]].double().numpy()
    return {
        "DCE": decision_calibration_error(y.numpy(), forecast, loss=float(parts.threshold[0])),
        "LCE": local_calibration_error(y.numpy(), forecast, given=location, bandwidth=NEAR),
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
            print(f"### {measure} of {problem}, {part}\n")
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
    colors = dict(zip(OBJECTIVES, ("black", "C0", "C1", "C2", "C3"), strict=True))
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
    figure.legend(handles.values(), handles, loc="lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="four epochs, to see that it runs")
    parser.add_argument("--repeats", type=int, default=10, help="number of splits")
    parser.add_argument("--figure", help="where to save the figure")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    n_epochs = 4 if options.quick else N_EPOCHS
    rows = pd.DataFrame(
        row
        for problem in problems()
        if problem.name in NAMES
        for seed in range(2 if options.quick else options.repeats)
        for row in curves(problem, seed, n_epochs)
    )
    print_curves(rows)
    if options.figure:
        save_figure(rows, options.figure)


if __name__ == "__main__":
    main()
