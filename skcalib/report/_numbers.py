"""The numbers of a report."""

from collections.abc import Callable

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss

from .._numerics.proper import PROPER_LOSSES
from ..hypothesis_tests import CalibrationTest, SubgroupCalibrationTest
from ..metrics import calibration_distance_bounds
from ..metrics._registry import METRICS
from ..uncertainty import confidence_interval, confidence_intervals_by
from ._findings import certainties, findings, impossible
from ._progress import stage
from ._titles import title_of_number

# Seconds that the test may take, and those for each drawn label: of one, and of each class.
_SECONDS = 20.0
_SECONDS_PER_LABEL = 3e-8
_SECONDS_PER_CLASS = 1e-9


def _reductions(predictions):
    """The reductions of binary measures, by the suffix that they add to the names."""
    if predictions.is_binary:
        return {"": "confidence"}
    return {"_confidence": "confidence", "_classwise": "classwise"}


def measure(predictions):
    """Scores and measures by name."""
    label, weight = predictions.label, predictions.weight
    proba = predictions.matrix
    classes = np.arange(proba.shape[1])
    simplex = proba / proba.sum(axis=1, keepdims=True)
    top = np.argmax(proba, axis=1)
    numbers = {
        "n_samples": len(label),
        "n_classes": len(classes),
        "accuracy": float(weight @ (top == label)),
        "mean_confidence": float(weight @ proba.max(axis=1)),
        "brier_score_loss": float(weight @ PROPER_LOSSES["brier"](predictions.proba, label)),
        "log_loss": float(log_loss(label, simplex, sample_weight=weight, labels=classes)),
    }
    for entry in METRICS.values():
        if not entry.in_report:
            continue
        for suffix, multi_class in _reductions(predictions).items():
            numbers[entry.name + suffix] = entry.function(
                label,
                predictions.proba,
                sample_weight=weight,
                labels=classes,
                multi_class=multi_class,
            )
    suffix = "" if predictions.is_binary else "_confidence"
    numbers["distance_lower_bound" + suffix], numbers["distance_upper_bound" + suffix] = (
        calibration_distance_bounds(label, predictions.proba, sample_weight=weight, labels=classes)
    )
    return numbers


# Resamples of the intervals, and values of predictions in the measures that get one.
_N_RESAMPLES = 199
_MOST_VALUES = 200_000

# Fewer independent samples say nothing about how a measure varies.
_FEWEST = 10


def intervals(predictions, rng):
    """The 95 % confidence intervals of scores and measures, by name, if they take seconds."""
    n_independent = 1 / predictions.share_of_one_sample
    if predictions.groups is not None:
        n_independent = len(np.unique(predictions.groups))
    if n_independent < _FEWEST:
        return {}
    weight = predictions.weight
    shared = {
        "sample_weight": None if np.ptp(weight) == 0 else weight,
        "labels": np.arange(len(predictions.classes)),
        "groups": predictions.groups,
        "n_resamples": _N_RESAMPLES,
        "random_state": rng,
    }
    wanted: dict[str, tuple[Callable, dict[str, str]]] = {
        "brier_score_loss": (
            brier_score_loss if predictions.is_binary else _brier_score_of_classes,
            {},
        ),
        "log_loss": (log_loss, {}),
    }
    for entry in METRICS.values():
        for suffix, multi_class in _reductions(predictions).items() if entry.in_report else ():
            n_values = predictions.proba.size if multi_class == "classwise" else len(weight)
            if n_values <= _MOST_VALUES:
                wanted[entry.name + suffix] = (entry.function, {"multi_class": multi_class})
    proba = predictions.proba if predictions.is_binary else predictions.simplex
    found = {}
    for name, (metric, params) in wanted.items():
        stage(f"finding the interval of the {title_of_number(name)}")
        method = "jackknife" if metric is _brier_score_of_classes else "auto"
        interval = confidence_interval(
            metric, predictions.label, proba, metric_params=params, method=method, **shared
        )
        found[name] = (interval.low, interval.high)
    return found


def _brier_score_of_classes(y_true, y_proba, *, sample_weight=None):
    """Scikit-learn's takes two classes only before 1.7."""
    return float(np.average(PROPER_LOSSES["brier"](y_proba, y_true), weights=sample_weight))


def subgroup_rows(predictions, subgroups, rng):
    """The smooth calibration error of each subgroup, and the test of all of them."""
    label, proba, weight = predictions.label, predictions.proba, predictions.weight
    weight = None if np.ptp(weight) == 0 else weight
    classes = np.arange(len(predictions.classes))
    code = np.array([f"{k:09d}" for k in range(len(subgroups.labels))])[subgroups.code]
    table = confidence_intervals_by(
        "smooth_calibration_error",
        label,
        proba,
        by=code,
        sample_weight=weight,
        labels=classes,
        groups=predictions.groups,
        n_resamples=_N_RESAMPLES,
        random_state=rng,
    )
    test = SubgroupCalibrationTest(labels=classes, random_state=rng)
    test.fit(proba, label, sample_weight=weight, by=code, groups=predictions.groups)
    p_values = [float(p) for p in test.subgroup_p_values_.values()]
    rows = [
        {
            "by": subgroups.title,
            "subgroup": title,
            "n_samples": int(table.n_samples[k]),
            "estimate": float(table.estimate[k]),
            "low": float(table.low[k]),
            "high": float(table.high[k]),
            "p_value": p_values[k],
        }
        for k, title in enumerate(subgroups.titles)
    ]
    return rows, test.p_value_


def run_test(predictions, random_state):
    """The numbers of the calibration test, and what it found, in words.

    They are of a random part of the samples, if all would take longer than a few seconds. A sample
    whose label had probability 0 is always in it. A calibrated model has none, so that does not
    change the size of the test.
    """
    n_classes = len(predictions.classes)
    test = CalibrationTest(labels=np.arange(n_classes), random_state=random_state)
    per_label = _SECONDS_PER_LABEL + n_classes * _SECONDS_PER_CLASS
    n_tested = min(len(predictions.label), int(_SECONDS / (per_label * test.n_resamples)))
    tested = predictions
    if n_tested < len(predictions.label):
        rows = random_state.permutation(len(predictions.label))
        ruled_out = impossible(predictions)[rows]
        tested = predictions.take(rows[np.argsort(~ruled_out, kind="stable")][:n_tested])
    test.fit(tested.proba, tested.label, sample_weight=tested.weight, groups=tested.groups)
    numbers = {"p_value": test.p_value_}
    numbers |= {f"p_value_{name}": p for name, p in test.adjusted_p_values_.items()}
    numbers["n_tested"] = n_tested
    return numbers, certainties(predictions) + findings(test, tested)
