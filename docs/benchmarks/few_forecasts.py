"""Recalibration of forecasts with 10 to 300 samples.

Three regressors are fitted to a part of each data set, the recalibrators to n others, and measured
on the rest. What the defaults are was chosen on the first half of the data sets. Two of them, one
in each half, come from the code of Marx, Zalouk and Ermon (2023); without a folder that holds them
they are left out:

    pip install . tabulate
    python docs/benchmarks/few_forecasts.py [--quick] [folder]
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import BayesianRidge

from skcalib.forecasts import GaussianForecast
from skcalib.recalibration import AutoRecalibrator, LocationScaleRecalibrator, PITRecalibrator

warnings.simplefilter("ignore")

RECALIBRATORS = {
    "scale, no prior": LocationScaleRecalibrator(scale_only=True, prior_weight=0),
    "scale": LocationScaleRecalibrator(scale_only=True),
    "location and scale, no prior": LocationScaleRecalibrator(prior_weight=0),
    "location and scale": LocationScaleRecalibrator(),
    "levels (beta)": PITRecalibrator("beta"),
    "auto": AutoRecalibrator(),
}
# The same tables have other numbers of draws: few samples vary most.
REPEATS = {10: 6, 30: 4, 100: 2, 300: 1}
MOST_SAMPLES, MOST_MEASURED = 1200, 400


def unequal_spread(heavy_tails, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 6))
    mean = 2 * X[:, 0] + np.sin(2 * X[:, 1]) * X[:, 2]
    if heavy_tails:
        std, noise = 0.5 * (1 + X[:, 4] ** 2), rng.standard_t(4, size=1500) / np.sqrt(2)
    else:
        std, noise = np.exp(0.5 * X[:, 3] + 0.3 * X[:, 0]), rng.normal(size=1500)
    return X, mean + std * noise


def problems(folder):
    """The half, name, features and outcomes of each data set."""
    yield "chosen on", "friedman 1", *datasets.make_friedman1(1500, noise=1.0, random_state=0)
    yield "chosen on", "unequal spread", *unequal_spread(False, 1)
    cancer = datasets.load_breast_cancer().data
    yield "chosen on", "cancer", np.delete(cancer, [8, 18, 28], axis=1), cancer[:, 28]
    yield "judged on", "diabetes", *datasets.load_diabetes(return_X_y=True)
    yield "judged on", "heavy tails", *unequal_spread(True, 2)
    yield "judged on", "friedman 2", *datasets.make_friedman2(1500, noise=125.0, random_state=1)
    if folder is None:
        print("not run: crop yields and crime (need the folder that holds them)\n")
        return
    for half, name, target in (("chosen on", "crop_yield", "yield"), ("judged on", "crime", None)):
        table = pd.read_csv(Path(folder) / f"{name}.csv.gz").select_dtypes("number").dropna(axis=1)
        target = target or table.columns[-1]
        yield half, name, table.drop(columns=target).to_numpy(float), table[target].to_numpy(float)


def forecasts(X, y):
    """Forecasts by three models of the samples that they were not fitted on, and the outcomes."""
    order = np.random.default_rng(0).permutation(len(y))[:MOST_SAMPLES]
    X, y = X[order], (y[order] - y.mean()) / y.std()
    n = 100 if len(y) < 600 else 300
    X = (X - X[:n].mean(axis=0)) / (X[:n].std(axis=0) + 1e-9)
    past, new = (X[:n], y[:n]), X[n:]
    ridge = BayesianRidge().fit(*past)
    yield "ridge", GaussianForecast(*ridge.predict(new, return_std=True)), y[n:]
    forest = RandomForestRegressor(60, min_samples_leaf=2, random_state=0).fit(*past)
    members = np.array([tree.predict(new) for tree in forest.estimators_])
    yield "forest", GaussianForecast(members.mean(axis=0), members.std(axis=0) + 0.02), y[n:]
    boosting = GradientBoostingRegressor(n_estimators=200, random_state=0).fit(*past)
    too_small = np.std(past[1] - boosting.predict(past[0]))
    yield "boosting", GaussianForecast(boosting.predict(new), too_small), y[n:]


def measured(forecast, y):
    inside = np.abs(forecast.pit(y) - 0.5) < 0.45
    with np.errstate(divide="ignore"):
        return np.array([forecast.crps(y).mean(), -forecast.logpdf(y).mean(), inside.mean()])


def rows(folder, quick):
    for half, problem, X, y in problems(folder):
        for model, forecast, outcome in forecasts(X, y):
            for n, repeats in REPEATS.items():
                for repeat in range(1 if quick else repeats):
                    order = np.random.default_rng([repeat, n]).permutation(len(outcome))
                    fit, rest = order[:n], order[n:][:MOST_MEASURED]
                    if len(rest) < 100:
                        continue
                    before = measured(forecast[rest], outcome[rest])
                    yield half, n, "none", problem, model, 1.0, 0.0, before[2]
                    for name, recalibrator in RECALIBRATORS.items():
                        recalibrator.fit(forecast[fit], outcome[fit])
                        after = measured(recalibrator.transform(forecast[rest]), outcome[rest])
                        ratio, change = after[0] / before[0], after[1] - before[1]
                        yield half, n, name, problem, model, ratio, change, after[2]
        print(problem, "done", file=sys.stderr, flush=True)
        if quick:
            return


def main(folder=None, quick=False):
    columns = ["half", "n", "method", "problem", "model", "ratio", "change", "coverage"]
    table = pd.DataFrame(rows(folder, quick), columns=columns)
    narrow = table.model == "boosting"  # whose log score without recalibration says nothing
    table["worse"], table["NLL"] = table.ratio > 1.01, table.change.mask(narrow)
    table["narrow"] = table.coverage.where(narrow)
    for half, part in table.groupby("half", sort=False):
        summary = part.groupby(["n", "method"], sort=False).agg(
            **{
                "CRPS": ("ratio", "mean"),
                "worst": ("ratio", "max"),
                "worse by 1 %": ("worse", "mean"),
                "change of NLL": ("NLL", "mean"),
                "largest": ("NLL", "max"),
                "coverage": ("coverage", "mean"),
                "of boosting": ("narrow", "mean"),
            }
        )
        print(f"\n## Data sets {half}\n")
        summary = summary.reset_index()
        print("| " + " | ".join(summary.columns) + " |\n" + "|---" * summary.shape[1] + "|")
        for row in summary.itertuples(index=False):
            cells = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row)
            print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(*[one for one in sys.argv[1:] if one != "--quick"][:1], quick="--quick" in sys.argv)
