"""Does the advice of the guide hold for real networks? Run on fourteen networks for CIFAR-10.

The networks are those of Widmann, Lindsten and Zachariah (2019). The folder holds
cifar10_probs.npz.

    python docs/benchmarks/advice_on_networks.py FOLDER [--quick] [--only SECTION ...]
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _networks import (
    CLASSES,
    log_loss,
    mean_and_error,
    print_table,
    read_networks,
)
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from skcalib import CalibrationTest, confidence_interval
from skcalib.hypothesis_tests import SequentialCalibrationTest, required_sample_size
from skcalib.metrics import (
    decision_calibration,
    expected_calibration_error,
    lower_distance_to_calibration,
    smooth_calibration_error,
)
from skcalib.recalibration import (
    AutoRecalibrator,
    DecisionRecalibrator,
    IntervalBinningRecalibrator,
    MatrixScalingRecalibrator,
    PriorShiftRecalibrator,
    ScalingBinningRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
    VennAbersRecalibrator,
)
from skcalib.uncertainty import compare_models

ECE_BINS = (5, 10, 15, 20, 30, 50)
LEVEL = 0.05
N_REPEATS = 3
smooth_error = partial(smooth_calibration_error, labels=CLASSES)
ece = partial(expected_calibration_error, labels=CLASSES)


def draw_labels(proba, rng):
    return np.minimum((rng.random((len(proba), 1)) > proba.cumsum(axis=1)).sum(axis=1), 9)


def covers(interval, value):
    return interval.low <= value <= interval.high


def show_errors(label, networks, first, second, rng):
    """Bins, numbers of samples, easy images, lenses, and the best of many."""
    values = {n: np.array([ece(label, p, n_bins=n) for p in networks.values()]) for n in ECE_BINS}
    smooth = np.array([smooth_error(label, p) for p in networks.values()])
    rows = [
        [
            str(n),
            f"{np.mean(v):.4f}",
            f"{np.mean(v / smooth):.3f}",
            f"{spearmanr(v, smooth)[0]:.3f}",
        ]
        for n, v in values.items()
    ]
    header = ["bins", "mean ECE", "over the smooth error", "rank agreement with it"]
    print_table("Number of bins, all images", header, rows)

    rows = []
    for n in (100, 300, 1000, 10_000):
        observed, drawn = [], []
        for proba in networks.values():
            for _ in range(1 if n == len(label) else N_REPEATS):
                sample = rng.permutation(len(label))[:n]
                truth = draw_labels(proba[sample], rng)
                errors = smooth_error, partial(ece, n_bins=15)
                observed.append([error(label[sample], proba[sample]) for error in errors])
                drawn.append([error(truth, proba[sample]) for error in errors])
        cells = np.concatenate([np.mean(observed, axis=0), np.mean(drawn, axis=0)])
        rows.append([str(n), *(f"{value:.4f}" for value in cells)])
    header = ["samples", "smooth error", "ECE", "smooth error, labels drawn", "ECE, labels drawn"]
    print_table("Number of samples", header, rows)

    confidence = np.mean([proba.max(axis=1) for proba in networks.values()], axis=0)
    is_easy = confidence > np.median(confidence)
    rows = []
    for name, rows_used in (("easier half", is_easy), ("harder half", ~is_easy)):
        errors = [smooth_error(label[rows_used], p[rows_used]) for p in networks.values()]
        rows.append([name, mean_and_error(errors, 4)])
    print_table("Smooth error on easy and hard images", ["images", "mean"], rows)

    rows = []
    for lens in ("confidence", "top-label", "classwise"):
        errors = [smooth_error(label, p, multi_class=lens) for p in networks.values()]
        rows.append([lens, f"{np.mean(errors):.4f}", f"{spearmanr(errors, smooth)[0]:.2f}"])
    print_table("Lenses", ["lens", "mean smooth error", "rank agreement with confidence"], rows)

    chosen = []
    for _ in range(20 * N_REPEATS):
        order = rng.permutation(len(label))
        here, elsewhere = order[:500], order[500:]
        errors = [smooth_error(label[here], p[here]) for p in networks.values()]
        best = list(networks.values())[int(np.argmin(errors))]
        chosen.append([min(errors), smooth_error(label[elsewhere], best[elsewhere])])
    here, elsewhere = np.mean(chosen, axis=0)
    print(f"\nBest of all on 500 images: {here:.4f} there, {elsewhere:.4f} on the others.")


def show_orders(label, networks, first, second, rng):
    """Calibrated or good? Orders of the networks before and after a temperature."""
    columns = {"smooth error": [], "log loss": [], "log loss, recalibrated": [], "error rate": []}
    columns["smooth error, recalibrated"], temperatures = [], []
    for proba in networks.values():
        scaling = TemperatureRecalibrator(labels=CLASSES).fit(proba[first], label[first])
        after = scaling.predict_proba(proba[second])
        temperatures.append(scaling.temperature_)
        columns["smooth error"].append(smooth_error(label[second], proba[second]))
        columns["smooth error, recalibrated"].append(smooth_error(label[second], after))
        columns["log loss"].append(log_loss(label[second], proba[second]))
        columns["log loss, recalibrated"].append(log_loss(label[second], after))
        columns["error rate"].append(np.mean(after.argmax(axis=1) != label[second]))
    rows = [
        [name, f"{np.mean(v):.4f}", *(f"{spearmanr(v, w)[0]:.2f}" for w in columns.values())]
        for name, v in columns.items()
    ]
    print_table("Orders of the networks", ["", "mean", *columns], rows)
    print(f"\nTemperatures: {min(temperatures):.2f} to {max(temperatures):.2f}.")


TESTS = {
    "default": ("auto", {}, "two-sided"),
    "skce": ("skce", {}, "two-sided"),
    "skce, random frequencies": ("skce", {"method": "fourier"}, "two-sided"),
    "log_loss": ("log_loss", {}, "two-sided"),
    "log_loss, greater": ("log_loss", {}, "greater"),
    "Brier score": ("brier_score_loss", {}, "two-sided"),
    "smooth error, confidence": ("smooth_calibration_error", {}, "two-sided"),
    "smooth error, classwise": (
        "smooth_calibration_error",
        {"multi_class": "classwise"},
        "two-sided",
    ),
    "ECE, 15 bins": ("expected_calibration_error", {"n_bins": 15}, "two-sided"),
}


def fit_test(name, label, proba, seed):
    statistic, params, alternative = TESTS[name]
    test = CalibrationTest(
        statistic,
        metric_params=params or None,
        alternative=alternative,
        n_resamples=99,
        labels=CLASSES,
        random_state=seed,
    )
    return test.fit(proba, label)


def rejects(p_value):
    return p_value <= LEVEL + 1e-9


def show_power(label, networks, first, second, rng):
    """How often each test rejects networks, scaled networks, and calibrated ones."""
    cases = {"n = 50": 50, "n = 100": 100, "scaled, n = 2000": 2000, "drawn, n = 100": 100}
    rates = {}
    for proba in networks.values():
        scaling = TemperatureRecalibrator(labels=CLASSES).fit(proba[first], label[first])
        for repeat in range(N_REPEATS):
            for case, n in cases.items():
                sample = rng.permutation(second)[:n]
                p, y = proba[sample], label[sample]
                if case.startswith("scaled"):
                    if repeat > 0:
                        continue
                    p = scaling.predict_proba(p)
                if case.startswith("drawn"):
                    y = draw_labels(p, rng)
                for name in TESTS:
                    test = fit_test(name, y, p, repeat)
                    p_values = {name: test.p_value_}
                    if name == "default":
                        components = test.adjusted_p_values_.items()
                        p_values |= {f"default, its {key}": value for key, value in components}
                    for key, p_value in p_values.items():
                        rates.setdefault(key, {}).setdefault(case, []).append(rejects(p_value))
    rows = [
        [name, *(f"{np.mean(rates_of_test[case]):.2f}" for case in cases)]
        for name, rates_of_test in rates.items()
    ]
    print_table("How often tests reject at 0.05", ["test", *cases], rows)


def show_sample_sizes(label, networks, first, second, rng):
    """Sizes for power 0.8 where a temperature from other images is true, and the rates there."""
    sizes, rates = [], []
    for proba in networks.values():
        scaling = TemperatureRecalibrator(labels=CLASSES).fit(proba[first], label[first])
        test = CalibrationTest(
            "log_loss", alternative="greater", n_resamples=99, labels=CLASSES, random_state=0
        )
        size = required_sample_size(
            proba[first], scaling.predict_proba, test=test, n_simulations=100, random_state=0
        )
        sizes.append(size.n_samples)
        for repeat in range(5 * N_REPEATS):
            sample = rng.permutation(second)[: size.n_samples]
            test = fit_test("log_loss, greater", label[sample], proba[sample], repeat)
            rates.append(rejects(test.p_value_))
    print(f"\nRequired sizes: {min(sizes)} to {max(sizes)}; rejected there: {np.mean(rates):.2f}.")


def show_sequential(label, networks, first, second, rng):
    """Images until the sequential test rejects: as they are, and recalibrated."""
    stops, stops_after = [], []
    for proba in networks.values():
        scaling = AutoRecalibrator(labels=CLASSES).fit(proba[first[:1000]], label[first[:1000]])
        for stream, stopped in ((proba, stops), (scaling.predict_proba(proba), stops_after)):
            watch, n_seen = SequentialCalibrationTest(labels=CLASSES), np.inf
            for start in range(0, 3000, 100):
                batch = second[start : start + 100]
                if watch.partial_fit(stream[batch], label[batch]).p_value_ <= LEVEL:
                    n_seen = start + 100
                    break
            stopped.append(n_seen)
    print(
        f"\nSequential test, batches of 100: rejects after {np.median(stops):.0f} images (median; "
        f"{min(stops):.0f} to {max(stops):.0f}); after recalibration in "
        f"{np.sum(np.isfinite(stops_after))} of {len(stops_after)} within 3000."
    )


RECALIBRATORS = {
    "Auto": AutoRecalibrator,
    "Auto, keep_order": partial(AutoRecalibrator, keep_order=True),
    "temperature": TemperatureRecalibrator,
    "vector scaling": VectorScalingRecalibrator,
    "matrix scaling": MatrixScalingRecalibrator,
    "Venn-Abers": VennAbersRecalibrator,
    "interval binning": IntervalBinningRecalibrator,
    "scaling-binning": ScalingBinningRecalibrator,
}
SIZES = (30, 100, 300, 1000, 5000)
HUMAN = np.vstack([1 - np.eye(10), np.full(10, 0.1)])  # or ask a human, for a tenth of an error


def show_recalibrators(label, networks, first, second, rng):
    """Change of log loss, smooth error and accuracy on the second half, and costs of decisions."""
    changes, costs = {}, {}
    for proba in networks.values():
        before = score(label[second], proba[second])
        for n in SIZES:
            learn = rng.permutation(first)[:n]
            maps = {"as it is": proba[second]} if n == 1000 else {}
            for name, recalibrator in RECALIBRATORS.items():
                if name == "Auto, keep_order" and n < 1000:
                    continue
                fitted = recalibrator(labels=CLASSES).fit(proba[learn], label[learn])
                maps[name] = fitted.predict_proba(proba[second])
                change = score(label[second], maps[name]) - before
                changes.setdefault(name, {}).setdefault(n, []).append(change)
            if n == 1000:
                decision = DecisionRecalibrator(loss=HUMAN, labels=CLASSES)
                for name in ("as it is", "temperature", "Auto"):
                    costs.setdefault(name, []).append(cost(label[second], maps[name]))
                fitted = decision.fit(proba[learn], label[learn])
                after = fitted.predict_proba(proba[second])
                costs.setdefault("DecisionRecalibrator", []).append(cost(label[second], after))
    for k, title in enumerate(("log loss", "smooth error", "accuracy")):
        rows = [
            [name, *(mean_and_error(np.array(of[n])[:, k], 4) if n in of else "" for n in SIZES)]
            for name, of in changes.items()
        ]
        print_table(f"Change of the {title}", ["recalibrator", *map(str, SIZES)], rows)
    rows = [
        [name, *(str(np.sum(np.array(of[n])[:, 0] > 0)) if n in of else "" for n in SIZES)]
        for name, of in changes.items()
    ]
    title = f"Networks of {len(networks)} whose log loss rose"
    print_table(title, ["recalibrator", *map(str, SIZES)], rows)
    rows = [[name, *(f"{v:.4f}" for v in np.mean(of, axis=0))] for name, of in costs.items()]
    header = ["1000 samples", "expected loss", "realised loss"]
    print_table("Decide, or ask a human at a tenth of the cost of an error", header, rows)


def cost(label, proba):
    table = decision_calibration(label, proba, loss=HUMAN, labels=CLASSES)
    return table.expected_loss, table.realised_loss


def score(label, proba):
    accuracy = np.mean(proba.argmax(axis=1) == label)
    return np.array([log_loss(label, proba), smooth_error(label, proba), accuracy])


def show_guarantees(label, networks, first, second, rng):
    """Of confidence and correctness, from 1000 images and from 100."""
    is_bound, is_between, widths = [], [], []
    for proba in networks.values():
        confidence, is_right = proba.max(axis=1), (proba.argmax(axis=1) == label).astype(int)
        learn = rng.permutation(first)[:1000]
        binning = IntervalBinningRecalibrator(labels=[0, 1])
        bound = binning.fit(confidence[learn], is_right[learn]).certificate_.distance_bound
        is_bound.append(
            bound >= lower_distance_to_calibration(is_right[second], confidence[second])
        )
        venn_abers = VennAbersRecalibrator(labels=[0, 1])
        venn_abers.fit(confidence[learn[:100]], is_right[learn[:100]])
        low, high = venn_abers.predict_interval(confidence[second])
        is_between.append(low.mean() <= is_right[second].mean() <= high.mean())
        widths.append(np.mean(high - low))
    print(
        f"\nThe certificate of 1000 images is at least the lower distance of 5000 others: "
        f"{sum(is_bound)} of {len(is_bound)}. Venn-Abers from 100 images: the accuracy of 5000 "
        f"others is between the mean ends in {sum(is_between)}; mean width {np.mean(widths):.3f}."
    )


def show_intervals(label, networks, first, second, rng):
    """Coverage of what all images have, by intervals of 500 of them."""
    names = list(networks)
    covered, bootstrap, begins, differences, widths = [], [], [], [], []
    for k, proba in enumerate(networks.values()):
        other = networks[names[k - 1]]
        value, other_value = smooth_error(label, proba), smooth_error(label, other)
        for repeat in range(N_REPEATS):
            sample = rng.permutation(len(label))[:500]
            y, p, q = label[sample], proba[sample], other[sample]
            options = {"labels": CLASSES, "n_resamples": 99, "random_state": repeat}
            interval = confidence_interval("smooth_calibration_error", y, p, **options)
            covered.append(covers(interval, value))
            draws = (rng.integers(500, size=500) for _ in range(99))
            values = [smooth_error(y[d], p[d]) for d in draws]
            low, high = np.quantile(values, [0.025, 0.975])
            bootstrap.append(low <= value <= high)
            truth = draw_labels(p, rng)
            drawn = confidence_interval("smooth_calibration_error", truth, p, **options)
            draws = (rng.integers(500, size=500) for _ in range(99))
            values = [smooth_error(truth[d], p[d]) for d in draws]
            begins.append((drawn.low <= 0, np.quantile(values, 0.025) <= 0))
            result = compare_models("smooth_calibration_error", y, p, q, **options)
            differences.append(covers(result, value - other_value))
            separate = confidence_interval("smooth_calibration_error", y, q, **options)
            both = interval.high - interval.low + separate.high - separate.low
            widths.append((result.high - result.low) / both)
    print(
        f"\nIntervals of 500 images: cover {np.mean(covered):.2f}, a plain bootstrap "
        f"{np.mean(bootstrap):.2f}. Labels drawn: 0 is inside in {np.mean(begins, axis=0)[0]:.2f}, "
        f"a plain bootstrap {np.mean(begins, axis=0)[1]:.2f}. Differences of two networks: covered "
        f"{np.mean(differences):.2f}, as wide as {np.mean(widths):.2f} of both widths together."
    )


def show_prior_shift(label, networks, first, second, rng):
    """A tenth of the images of five classes; log loss of networks, and of scaled ones."""
    keep = np.where(label < 5, 0.1, 1.0) > rng.random(len(label))
    here = second[keep[second]]
    learn, test = here[:300], here[300:]
    prevalence = np.bincount(label[here], minlength=10) / len(here)
    losses = {}
    for proba in networks.values():
        scaling = TemperatureRecalibrator(labels=CLASSES).fit(proba[first], label[first])
        for name, p in (("as it is", proba), ("scaled", scaling.predict_proba(proba))):
            known = PriorShiftRecalibrator(prevalence=prevalence, labels=CLASSES)
            estimated = PriorShiftRecalibrator(labels=CLASSES)
            maps = {
                "nothing": lambda x: x,
                "prevalence known": known.fit(p[first], label[first]).predict_proba,
                "without labels": estimated.fit(p[first], label[first])
                .adapt(p[test])
                .predict_proba,
                "Auto, 300 labels": AutoRecalibrator(labels=CLASSES)
                .fit(p[learn], label[learn])
                .predict_proba,
            }
            for title, apply in maps.items():
                loss = log_loss(label[test], apply(p[test]))
                losses.setdefault((title, name), []).append(loss)
    titles = list(dict.fromkeys(title for title, _ in losses))
    rows = [
        [title, *(f"{np.mean(losses[title, name]):.4f}" for name in ("as it is", "scaled"))]
        for title in titles
    ]
    header = ["log loss", "network as it is", "temperature before"]
    print_table("Other shares of the classes", header, rows)


def show_stacking(label, networks, first, second, rng):
    """One from all networks: log loss and error rate on the second half."""
    stacked = np.hstack(list(networks.values()))
    mean = np.mean(list(networks.values()), axis=0)
    rows = []
    for n in (300, 5000):
        learn = first[:n]
        regression = LogisticRegression(max_iter=500).fit(stacked[learn], label[learn])
        recalibrated = AutoRecalibrator(labels=CLASSES).fit(mean[learn], label[learn])
        losses = {name: log_loss(label[learn], p[learn]) for name, p in networks.items()}
        best = networks[min(losses, key=losses.get)]
        single = AutoRecalibrator(labels=CLASSES).fit(best[learn], label[learn])
        row = [
            log_loss(label[second], regression.predict_proba(stacked[second])),
            log_loss(label[second], recalibrated.predict_proba(mean[second])),
            log_loss(label[second], mean[second]),
            log_loss(label[second], single.predict_proba(best[second])),
        ]
        rows.append([str(n), *(f"{value:.4f}" for value in row)])
    header = ["samples", "logistic regression", "mean, Auto", "mean", "best network, Auto"]
    print_table("One from all networks: log loss", header, rows)


SECTIONS = {
    "recalibrators": show_recalibrators,
    "stacking": show_stacking,
    "errors": show_errors,
    "orders": show_orders,
    "power": show_power,
    "intervals": show_intervals,
    "guarantees": show_guarantees,
    "prior": show_prior_shift,
    "sizes": show_sample_sizes,
    "sequential": show_sequential,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="with cifar10_probs.npz")
    parser.add_argument("--quick", action="store_true", help="two networks")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    arguments = parser.parse_args()
    if arguments.folder is None:
        print("not run: benchmark advice_on_networks (needs the folder of the predictions)")
        return
    warnings.simplefilter("ignore")
    label, networks = read_networks(arguments.folder)
    if arguments.quick:
        networks = dict(list(networks.items())[:2])
    first, second = np.split(np.random.default_rng(0).permutation(len(label)), 2)
    for number, (name, show) in enumerate(SECTIONS.items()):
        if name in arguments.only:
            show(label, networks, first, second, np.random.default_rng([1, number]))


if __name__ == "__main__":
    main()
