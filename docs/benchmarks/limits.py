"""What public calls take, beside what the machine allows and beside other packages.

Each call is timed in CPU seconds on one thread; the shortest run counts. Its limit is the time of
what no implementation can do without: a sort of the predictions, a pass over them, the random
numbers of the draws. Memory is the peak of what NumPy and Python hold beyond the input. With the
folder of another version, such as a `git worktree`, that version runs in turn with this one, and
the table shows its times and the largest relative difference of the results. Peers that are missing
are left out:

    pip install . scoringrules relplot probcal betacal venn-abers
    python docs/benchmarks/limits.py [--quick] [--before FOLDER] [NAME ...]
"""

import argparse
import json
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr, softmax

from skcalib import hypothesis_tests, metrics, recalibration, uncertainty
from skcalib.forecasts import EnsembleForecast
from skcalib.report import calibration_report
from skcalib.streaming import CalibrationState

warnings.simplefilter("ignore")

N_MEMBERS = 50
QUICK_SIZE = 200

# A call is run until all runs took half a second, and again if the slowest version took less than
# four seconds.
MIN_SECONDS, MAX_SECONDS, MAX_RUNS = 0.5, 4.0, 9
MAX_TRACED_SECONDS = 3.0


class Call(NamedTuple):
    """A public call on some data, its limit by name, and the call of a peer on the same data."""

    data: Callable
    sizes: tuple
    ours: Callable
    limit: str
    peer: tuple = ()  # name and function
    before_up_to: float = np.inf  # the largest size at which another version is run


# Data: functions of the number of samples.


@cache
def binary(n):
    """Labels and probabilities of two classes, overconfident."""
    rng = np.random.default_rng(0)
    log_odds = 1.5 * rng.normal(size=n)
    return (rng.random(n) < expit(0.8 * log_odds)).astype(int), expit(log_odds)


@cache
def classes(n, n_classes):
    """Labels and probabilities (n, K), overconfident."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(n, n_classes))
    cumulative = np.cumsum(softmax(0.8 * logits, axis=1), axis=1)
    y = np.minimum((rng.random((n, 1)) > cumulative).sum(axis=1), n_classes - 1)
    y[:n_classes] = np.arange(n_classes)[:n]
    return y, softmax(logits, axis=1)


@cache
def normals(n):
    """Outcomes, and normal forecasts whose standard deviations are too small by a fifth."""
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    return mean + std * rng.normal(size=n), (mean, 0.8 * std)


@cache
def ensembles(n):
    """Outcomes, and ensembles of the same normal distributions as forecasts."""
    rng = np.random.default_rng(1)
    y, (mean, std) = normals(n)
    return y, EnsembleForecast(mean[:, None] + std[:, None] * rng.normal(size=(n, N_MEMBERS)))


@cache
def columns(n):
    """Five columns of features."""
    return np.random.default_rng(2).normal(size=(n, 5))


# Limits: functions of what the data functions return.


def numbers(y_pred):
    """The array behind predictions or forecasts."""
    if isinstance(y_pred, EnsembleForecast):
        return y_pred.members
    return y_pred[0] if isinstance(y_pred, tuple) else y_pred


def passes(count, y, y_pred):
    for _ in range(count):
        expit(numbers(y_pred))


def draws(count, y, y_pred):
    """The random numbers of `count` vectors of labels, compared with the predictions."""
    rng = np.random.default_rng(0)
    proba = numbers(y_pred)
    threshold = proba if proba.ndim == 1 else proba[:, 0]
    for _ in range(count):
        _ = rng.random(len(threshold)) < threshold


def sorts(count, y, y_pred):
    for _ in range(count):
        np.sort(numbers(y_pred), axis=0)


def pair_exponentials(y, y_pred):
    """exp of all pairs, in blocks; of three and more classes, after their products."""
    proba = numbers(y_pred)
    for start in range(0, len(proba), 256):
        block = proba[start : start + 256]
        np.exp(block @ proba.T if proba.ndim == 2 else block[:, None] - proba)


def cosines(count, y, y_pred):
    """The cosines of `count` random features."""
    proba = numbers(y_pred)
    frequencies = np.random.default_rng(0).normal(size=(proba.shape[1], count))
    for start in range(0, len(proba), 1024):
        np.cos(proba[start : start + 1024] @ frequencies)


def cholesky(y, y_pred):
    n = len(y)
    np.linalg.cholesky(np.eye(n) + np.ones((n, n)))


LIMITS = {
    "sort": partial(sorts, 1),
    "sort of rows": lambda y, y_pred: np.sort(numbers(y_pred), axis=1),
    "histogram": lambda y, y_pred: np.histogram(y_pred, 15),
    "pass": partial(passes, 1),
    "5 passes": partial(passes, 5),
    "10 passes": partial(passes, 10),
    "normal cdf and sort": lambda y, y_pred: np.sort(ndtr((y - y_pred[0]) / y_pred[1])),
    "99 draws": partial(draws, 99),
    "999 draws": partial(draws, 999),
    "100 sorts": partial(sorts, 100),
    "exp of pairs": pair_exponentials,
    "200 cosines": partial(cosines, 200),
    "Cholesky": cholesky,
}


# Calls. Their numbers are compared between versions, so random ones get a seed.


def measure(name, **options):
    return lambda y, y_pred: getattr(metrics, name)(y, y_pred, **options)


def random_measure(name, **options):
    return measure(name, random_state=0, **options)


def p_value(test, *arguments, **options):
    def run(y, y_pred):
        fitted = getattr(hypothesis_tests, test)(*arguments, random_state=0, **options)
        return fitted.fit(y_pred, y).p_value_

    return run


def subgroup_test(y, y_pred):
    test = hypothesis_tests.SubgroupCalibrationTest(random_state=0)
    return test.fit(y_pred, y, by=np.arange(len(y)) % 8).p_value_


def subgroup_search(y, y_pred):
    search = hypothesis_tests.find_miscalibrated_subgroups
    return search(y, y_pred, columns(len(y)), random_state=0).p_value


def sequential_test(y, y_pred):
    test = hypothesis_tests.SequentialCalibrationTest(labels=[0, 1])
    for rows in np.array_split(np.arange(len(y)), 20):
        test.partial_fit(y_pred[rows], y[rows])
    return test.log_e_value_


def fit(name, **options):
    """Fits a recalibrator; its number is the mean loss of the recalibrated predictions."""

    def run(y, y_pred):
        model = getattr(recalibration, f"{name}Recalibrator")(**options).fit(y_pred, y)
        return lambda: mean_loss(y, model.transform(y_pred))

    return run


def mean_loss(y, y_pred):
    if isinstance(y_pred, np.ndarray):
        proba = y_pred if y_pred.ndim == 2 else np.column_stack([1 - y_pred, y_pred])
        return -np.log(np.maximum(proba[np.arange(len(y)), y], 1e-15)).mean()
    return metrics.continuous_ranked_probability_loss(y, y_pred)


@cache
def classifier(n):
    """Features, labels, and classifiers fitted to them: with skcalib, and with scikit-learn."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression

    X, (y, _) = columns(n), binary(n)
    sigmoid = recalibration.SigmoidRecalibrator()
    model = recalibration.RecalibratedClassifier(LogisticRegression(), sigmoid, ensemble=True)
    return X, y, model, CalibratedClassifierCV(LogisticRegression(), ensemble=True)


def classifier_fit(which, y, y_pred):
    X, y, *models = classifier(len(y))
    return models[which].fit(X, y).predict_proba(X[:5]).ravel()


@cache
def fitted_classifier(n, which):
    X, y, *models = classifier(n)
    return models[which].fit(X, y)


def classifier_predict(which, y, y_pred):
    return fitted_classifier(len(y), which).predict_proba(columns(len(y))).ravel()[:5]


def interval(metric):
    def run(y, y_pred):
        result = uncertainty.confidence_interval(metric, y, y_pred, random_state=0)
        return [result.low, result.high]

    return run


def comparison(metric):
    def run(y, y_pred):
        result = uncertainty.compare_models(metric, y, y_pred, y_pred**1.3, random_state=0)
        return [result.low, result.high, result.p_value]

    return run


def clinical(y, y_pred):
    result = uncertainty.clinical_calibration(y, y_pred, random_state=0)
    return [result.calibration_slope.low, result.calibration_slope.high, result.e90.high]


def report(y, y_pred):
    return calibration_report(y, y_pred, random_state=0).numbers["p_value"]


def state(n_classes, y, y_pred):
    return CalibrationState(labels=range(n_classes)).update(y, y_pred).mean_rounding


# Peers, imported where they are called.


def probcal_metric(name, *arguments):
    def run(y, y_pred):
        import probcal.metrics

        return getattr(probcal.metrics, name)(y, y_pred, *arguments)

    return run


def probcal_fit(name):
    def run(y, y_pred):
        import probcal

        return getattr(probcal, f"{name}Calibrator")().fit(y_pred, y)

    return run


def relplot_error(y, y_pred):
    import relplot

    return relplot.smECE(y_pred, y.astype(float))


def scoringrules_normal(y, y_pred):
    import scoringrules

    return scoringrules.crps_normal(y, *y_pred).mean()


def scoringrules_ensemble(y, y_pred):
    import scoringrules

    return scoringrules.crps_ensemble(y, y_pred.members).mean()


def venn_abers_fit(y, y_pred):
    import venn_abers

    return venn_abers.VennAbers().fit(np.column_stack([1 - y_pred, y_pred]), y)


def betacal_fit(y, y_pred):
    import betacal

    return betacal.BetaCalibration("abm").fit(y_pred, y)


def isotonic_fit(y, y_pred):
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression(out_of_bounds="clip").fit(y_pred, y)


def sigmoid_fit(y, y_pred):
    from sklearn.calibration import _SigmoidCalibration

    return _SigmoidCalibration().fit(y_pred, y)


def logistic_fit(y, y_pred):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000).fit(np.log(y_pred), y)


def temperature_fit(y, y_pred):
    from sklearn.calibration import _TemperatureScaling

    scores = y_pred if y_pred.ndim == 2 else np.column_stack([1 - y_pred, y_pred])
    return _TemperatureScaling().fit(np.log(scores), y)


SCIKIT_LEARN = "scikit-learn"
TEN, HUNDRED, THOUSAND = (partial(classes, n_classes=k) for k in (10, 100, 1000))
SMALL, LARGE = (10**3, 10**5), (10**3, 10**5, 10**6)

CALLS = {
    "smooth": Call(binary, LARGE, measure("smooth_calibration_error"), "sort"),
    "smooth classwise, K = 10": Call(
        TEN, SMALL, measure("smooth_calibration_error", multi_class="classwise"), "sort"
    ),
    "smooth classwise, K = 1000": Call(
        THOUSAND,
        (10**3, 10**4),
        measure("smooth_calibration_error", multi_class="classwise", labels=range(1000)),
        "sort",
    ),
    "interval": Call(binary, LARGE, measure("interval_calibration_error"), "sort"),
    "lower distance": Call(binary, LARGE, measure("lower_distance_to_calibration"), "sort"),
    "upper distance": Call(binary, LARGE, measure("upper_distance_to_calibration"), "sort"),
    "distance bounds": Call(binary, LARGE, measure("calibration_distance_bounds"), "sort"),
    "weighted error, default": Call(
        binary, (10**3, 10**4, 10**5), measure("weighted_calibration_error"), "sort", (), 10**4
    ),
    "Laplace": Call(binary, LARGE, measure("laplace_kernel_calibration_error"), "sort"),
    "smooth ECE": Call(
        binary,
        LARGE,
        measure("smooth_expected_calibration_error"),
        "sort",
        ("relplot", relplot_error),
    ),
    "ECE": Call(
        binary,
        LARGE,
        measure("expected_calibration_error"),
        "histogram",
        ("probcal", probcal_metric("ece")),
    ),
    "cumulative": Call(
        binary,
        LARGE,
        measure("cumulative_calibration_error"),
        "sort",
        ("probcal", probcal_metric("ecce")),
    ),
    "SKCE, two classes": Call(
        binary, (10**3, 10**4), measure("squared_kernel_calibration_error"), "sort"
    ),
    "SKCE, K = 10": Call(
        TEN, (10**3, 10**4), measure("squared_kernel_calibration_error"), "exp of pairs"
    ),
    "SKCE by features, K = 10": Call(
        TEN,
        SMALL,
        random_measure("squared_kernel_calibration_error", method="fourier"),
        "200 cosines",
    ),
    "CKCE, two classes": Call(
        binary, (10**3, 3000), measure("conditional_kernel_calibration_error"), "Cholesky"
    ),
    "ICI": Call(
        binary,
        LARGE,
        measure("integrated_calibration_index"),
        "sort",
        ("probcal", probcal_metric("ici")),
        10**5,
    ),
    "calibration slope": Call(
        binary,
        LARGE,
        measure("calibration_slope"),
        "5 passes",
        ("probcal", probcal_metric("calibration_slope")),
    ),
    "decision calibration, K = 10": Call(TEN, SMALL, measure("decision_calibration_error"), "pass"),
    "local calibration error": Call(
        normals,
        (10**3, 10**4),
        lambda y, y_pred: metrics.local_calibration_error(y, y_pred, given=columns(len(y))[:, :2]),
        "exp of pairs",
    ),
    "quantile error, normals": Call(
        normals, LARGE, measure("quantile_calibration_error"), "normal cdf and sort"
    ),
    "CRPS, normals": Call(
        normals,
        LARGE,
        measure("continuous_ranked_probability_loss"),
        "normal cdf and sort",
        ("scoringrules", scoringrules_normal),
    ),
    "CRPS, 50 members": Call(
        ensembles,
        SMALL,
        measure("continuous_ranked_probability_loss"),
        "sort of rows",
        ("scoringrules", scoringrules_ensemble),
    ),
    "interval loss, 50 members": Call(ensembles, SMALL, measure("interval_loss"), "sort of rows"),
    "sharpness, 50 members": Call(
        ensembles, SMALL, lambda y, y_pred: metrics.sharpness(y_pred).std, "sort of rows"
    ),
    "default test, two classes": Call(binary, SMALL, p_value("CalibrationTest"), "999 draws"),
    "default test, K = 10, 99 draws": Call(
        TEN, (10**3, 4000, 10**4), p_value("CalibrationTest", n_resamples=99), "99 draws"
    ),
    "default test, K = 10": Call(TEN, (10**3, 4000), p_value("CalibrationTest"), "999 draws"),
    "test of the smooth error": Call(
        binary, (10**3,), p_value("CalibrationTest", "smooth_calibration_error"), "999 draws"
    ),
    "Spiegelhalter's test": Call(binary, SMALL, p_value("SpiegelhalterTest"), "999 draws"),
    "Cox's test": Call(binary, (10**3, 10**4, 10**5), p_value("CoxTest"), "999 draws", (), 10**5),
    "subgroup test, 8 groups": Call(binary, SMALL, subgroup_test, "999 draws"),
    "search for subgroups, 5 columns": Call(binary, SMALL, subgroup_search, "999 draws"),
    "sequential test, 20 batches": Call(binary, SMALL, sequential_test, "10 passes"),
    "isotonic fit": Call(binary, LARGE, fit("Isotonic"), "sort", (SCIKIT_LEARN, isotonic_fit)),
    "temperature fit, K = 10": Call(
        TEN, SMALL, fit("Temperature"), "5 passes", (SCIKIT_LEARN, temperature_fit)
    ),
    "sigmoid fit": Call(binary, LARGE, fit("Sigmoid"), "5 passes", (SCIKIT_LEARN, sigmoid_fit)),
    "beta fit": Call(binary, LARGE, fit("Beta"), "10 passes", ("betacal", betacal_fit)),
    "spline fit": Call(
        binary, LARGE, fit("Spline"), "10 passes", ("probcal", probcal_fit("Spline")), 10**6
    ),
    "Dirichlet fit, K = 10": Call(
        TEN, SMALL, fit("Dirichlet"), "10 passes", (SCIKIT_LEARN, logistic_fit)
    ),
    "pairwise fit, K = 10": Call(TEN, SMALL, fit("PairwiseScaling"), "10 passes"),
    "Venn–Abers fit": Call(binary, LARGE, fit("VennAbers"), "sort", ("venn-abers", venn_abers_fit)),
    "Auto fit, two classes": Call(binary, SMALL, fit("Auto"), "10 passes"),
    "Auto fit, K = 10": Call(TEN, (10**3,), fit("Auto"), "10 passes"),
    "Auto fit, normals": Call(normals, (10**3, 10**4), fit("Auto"), "10 passes"),
    "Auto fit, 50 members": Call(ensembles, (10**3, 10**4), fit("Auto"), "10 passes"),
    "location and scale, 50 members": Call(ensembles, SMALL, fit("LocationScale"), "sort of rows"),
    "RecalibratedClassifier.fit": Call(
        binary,
        SMALL,
        partial(classifier_fit, 0),
        "10 passes",
        (SCIKIT_LEARN, partial(classifier_fit, 1)),
    ),
    "its predict_proba, 5 members": Call(
        binary,
        (10**3, 2 * 10**4, 10**5),
        partial(classifier_predict, 0),
        "5 passes",
        (SCIKIT_LEARN, partial(classifier_predict, 1)),
    ),
    "interval of the smooth error": Call(
        binary, SMALL, interval("smooth_calibration_error"), "100 sorts"
    ),
    "comparison by the smooth error": Call(
        binary, SMALL, comparison("smooth_calibration_error"), "100 sorts"
    ),
    "clinical_calibration": Call(binary, SMALL, clinical, "100 sorts"),
    "report, two classes": Call(binary, SMALL, report, "100 sorts"),
    "report, K = 10": Call(TEN, (10**3,), report, "100 sorts"),
    "report, K = 100": Call(HUNDRED, (10**3,), report, "100 sorts"),
    "report, normals": Call(normals, (10**3,), report, "100 sorts"),
    "report, 50 members": Call(ensembles, (10**3,), report, "100 sorts"),
    "CalibrationState.update, K = 10": Call(TEN, SMALL, partial(state, 10), "pass"),
}


# A worker runs what it reads from its input, once, and writes the seconds and the result as JSON.


def work():
    answers = os.fdopen(os.dup(1), "w")  # solvers print to the output of the process
    os.dup2(2, 1)
    for line in sys.stdin:
        kind, name, n = json.loads(line)
        call = CALLS[name]
        y, y_pred = call.data(n)
        if isinstance(y_pred, EnsembleForecast):  # a new one, as it keeps its sorted members
            y_pred = EnsembleForecast(y_pred.members)
        function = {"ours": call.ours, "memory": call.ours, "limit": LIMITS[call.limit]}.get(kind)
        if kind == "peer":
            function = call.peer[1]
        if kind == "memory":
            tracemalloc.start()
        answer = {}
        start = time.process_time()
        try:
            result = function(y, y_pred)
            answer["seconds"] = time.process_time() - start
            if kind == "ours":
                result = result() if callable(result) else result
                answer["result"] = np.ravel(result).astype(float).tolist()
        except ImportError as error:
            answer["missing"] = str(error)
        if kind == "memory":
            answer["peak"] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    def __init__(self, folder=None):
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        path = {"PYTHONPATH": str(folder.resolve())} if folder else {}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "--work"],
            env=os.environ | threads | path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, kind, name, n):
        self.process.stdin.write(json.dumps([kind, name, n]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def best_seconds(runs, max_runs):
    """The shortest CPU seconds of each of several runs that take turns, and the last results."""
    seconds, results = {key: [] for key in runs}, {}
    for number in range(max_runs):
        for key, run in list(runs.items()):
            answer = run()
            if "missing" in answer:
                del runs[key]
                continue
            seconds[key].append(answer["seconds"])
            results[key] = answer.get("result")
        slowest = max(sum(seconds[key]) for key in runs)
        if slowest > MAX_SECONDS or (number > 0 and sum(seconds["now"]) > MIN_SECONDS):
            break
    return {key: min(values) for key, values in seconds.items() if values}, results


def show_seconds(seconds):
    return "–" if seconds is None else f"{1000 * seconds:.3g}"


def show_ratio(seconds, other):
    return "–" if seconds is None or other is None else f"{seconds / max(other, 1e-9):.2g}"


def measured_row(name, n, now, before, max_runs):
    """The cells of one call at one size."""
    call = CALLS[name]
    runs = {"now": partial(now.run, "ours", name, n), "limit": partial(now.run, "limit", name, n)}
    if before and n <= call.before_up_to:
        runs["before"] = partial(before.run, "ours", name, n)
    if call.peer:
        now.run("peer", name, n)  # the first call may compile
        runs["peer"] = partial(now.run, "peer", name, n)
    seconds, results = best_seconds(runs, max_runs)
    cells = [name, f"{n}", show_seconds(seconds["now"])]
    if before:
        difference = "–"
        if "before" in results:
            pair = np.array([results["now"], results["before"]])
            scale = np.maximum(np.abs(pair).max(axis=0), 1e-300)
            difference = f"{np.max(np.abs(pair[0] - pair[1]) / scale):.1g}"
        cells += [show_seconds(seconds.get("before")), difference]
    cells += [call.limit, show_ratio(seconds["now"], seconds["limit"])]
    peer = seconds.get("peer")
    cells += [call.peer[0] if peer else "–", show_ratio(seconds["now"], peer)]
    is_largest = n == max(call.sizes) or n == QUICK_SIZE
    if is_largest and seconds["now"] < MAX_TRACED_SECONDS:
        cells.append(f"{now.run('memory', name, n)['peak'] / 1e6:.0f}")
    else:
        cells.append("–")
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=[""], help="names of calls, or parts of them")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--before", type=Path, help="the folder of another version")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
        return
    now, before = Worker(), Worker(options.before) if options.before else None
    head = ["call", "n", "ms", *(["before, ms", "difference"] if before else [])]
    head += ["limit", "× limit", "peer", "× peer", "memory, MB"]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for name, call in CALLS.items():
        if any(part == name or (part in name and part not in CALLS) for part in options.names):
            for n in (QUICK_SIZE,) if options.quick else call.sizes:
                cells = measured_row(name, n, now, before, 1 if options.quick else MAX_RUNS)
                print(f"| {' | '.join(cells)} |", flush=True)
    for worker in filter(None, (now, before)):
        worker.close()


if __name__ == "__main__":
    main()
