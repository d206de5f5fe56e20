"""How many labels a design saves on fourteen networks: estimates, intervals and tests.

Of 10,000 predictions 300 are labelled. The probability of each row is a mixture of a constant, with
the given share, and of √(p (1 − p)), where p is the confidence; rows weigh 1/probability. Share 1
is the uniform draw. The folder holds cifar10_probs.npz, as for widmann2019.py.

    python docs/benchmarks/labels_by_design.py FOLDER [--quick]
"""

import argparse
import warnings
from pathlib import Path

import _networks
import numpy as np

from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import calibration_in_the_large, smooth_calibration_error
from skcalib.uncertainty import confidence_interval

BUDGET = 300
SHARES = 1, 0, 0.2, 0.5  # of the uniform draw
SHARE = 0.5  # what the guide recommends


def inclusion_probabilities(confidence, share):
    """A probability for each row, with the sum `BUDGET`; no row needs more than 1 here."""
    spread = np.sqrt(confidence * (1 - confidence))
    return BUDGET / len(confidence) * (share + (1 - share) * spread / spread.mean())


def draw_systematically(probability, rng):
    """`BUDGET` rows, each with its probability: steps of 1 along the sums of a random order."""
    order = rng.permutation(len(probability))
    steps = rng.random() + np.arange(BUDGET)
    return order[np.searchsorted(np.cumsum(probability[order]), steps)]


def draw_independently(probability, rng):
    """Each row by itself, so that the number of rows varies."""
    return np.flatnonzero(rng.random(len(probability)) < probability)


def measure_estimates(confidence, correct, n_draws, rng):
    """Of each design: standard deviation of the gap, of the total, bias of the gap, smooth error.

    The total is the weighted sum of the residuals over the known number of all rows. The gap is
    their weighted mean. The smooth error is a root mean squared one, of every fifth draw.
    """
    true_gap = calibration_in_the_large(correct, confidence)
    true_error = smooth_calibration_error(correct, confidence)
    numbers = {}
    designs = [(share, draw_systematically) for share in SHARES] + [(SHARE, draw_independently)]
    for share, draw in designs:
        probability = inclusion_probabilities(confidence, share)
        gaps, totals, errors = [], [], []
        for k in range(n_draws):
            chosen = draw(probability, rng)
            data = correct[chosen], confidence[chosen]
            weight = 1 / probability[chosen]
            gaps.append(calibration_in_the_large(*data, sample_weight=weight))
            totals.append(gaps[-1] * weight.sum() / len(confidence))
            if k % 5 == 0:
                error = smooth_calibration_error(*data, sample_weight=weight, labels=[0, 1])
                errors.append(error - true_error)
        numbers[share, draw] = {
            "gap": np.std(gaps),
            "total": np.std(totals),
            "bias": np.mean(gaps) - true_gap,
            "smooth": np.sqrt(np.mean(np.square(errors))),
        }
    return numbers


def covers(confidence, correct, share, n_draws, rng):
    """How often the interval of 0.95 covers the mean gap of all rows, and its mean length."""
    true_gap = calibration_in_the_large(correct, confidence)
    probability = inclusion_probabilities(confidence, share)
    is_covered, lengths = [], []
    for _ in range(n_draws):
        chosen = draw_independently(probability, rng)
        data = correct[chosen], confidence[chosen]
        weight = 1 / probability[chosen]
        interval = confidence_interval("calibration_in_the_large", *data, sample_weight=weight)
        is_covered.append(interval.low <= true_gap <= interval.high)
        lengths.append(interval.high - interval.low)
    return np.mean(is_covered), np.mean(lengths)


def p_values(confidence, n_draws, rng):
    """Of the default test, on labels that are drawn anew from the confidence each time."""
    probability = inclusion_probabilities(confidence, SHARE)
    values = []
    for _ in range(n_draws):
        chosen = draw_independently(probability, rng)
        correct = rng.random(len(chosen)) < confidence[chosen]
        test = CalibrationTest(n_resamples=99, random_state=int(rng.integers(2**31)))
        test.fit(confidence[chosen], correct, sample_weight=1 / probability[chosen])
        values.append(test.p_value_)
    return np.array(values)


def print_table(title, columns, rows):
    print(f"\n## {title}\n\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def print_estimates(networks, n_draws, rng):
    numbers = {name: measure_estimates(*data, n_draws, rng) for name, data in networks.items()}
    titles = {
        "gap": "Labels that the weighted mean gap saves",
        "total": "Labels that the weighted total over all rows saves",
        "smooth": "By how much the root mean squared error of the smooth error falls",
    }
    designs = [key for key in next(iter(numbers.values())) if key != (1, draw_systematically)]
    columns = [
        f"share {share}" + (", independent" if draw is draw_independently else "")
        for share, draw in designs
    ]
    for key, title in titles.items():
        power = 1 if key == "smooth" else 2  # labels go with the variance
        rows, falls = [], []
        for name, row in numbers.items():
            uniform = row[1, draw_systematically][key]
            falls.append([1 - (row[design][key] / uniform) ** power for design in designs])
            rows.append([name, f"{uniform:.4f}", *(f"{fall:.2f}" for fall in falls[-1])])
        rows.append(["mean", "", *(f"{fall:.2f}" for fall in np.mean(falls, axis=0))])
        for name, end in (("least", np.min), ("most", np.max)):
            rows.append([name, "", *(f"{fall:.2f}" for fall in end(falls, axis=0))])
        print_table(title, ["network", "uniform", *columns], rows)
    biases = [abs(row[key]["bias"]) / row[key]["gap"] for row in numbers.values() for key in row]
    print(f"\nLargest bias of a gap, of its standard deviation: {max(biases):.2f}.")


def print_intervals(networks, n_draws, rng):
    rows, values = [], []
    for name, data in networks.items():
        cells = [covers(*data, share, n_draws, rng) for share in (1, SHARE)]
        values.append(cells)
        rows.append([name, *(f"{cell[0]:.2f}, {cell[1]:.3f}" for cell in cells)])
    rows.append(["mean", *(f"{cell[0]:.3f}, {cell[1]:.3f}" for cell in np.mean(values, axis=0))])
    title = "Coverage of the mean gap by intervals of 0.95, and their mean length"
    print_table(title, ["network", "uniform", f"share {SHARE}"], rows)


def print_tests(networks, n_draws, rng):
    values = []
    for confidence, _ in networks.values():
        values.append(p_values(confidence, n_draws, rng))
    values = np.concatenate(values)
    rows = []
    for level in (0.05, 0.1):
        error = np.sqrt(level * (1 - level) / len(values))
        rows.append([f"{level}", f"{np.mean(values <= level):.3f} ± {error:.3f}"])
    columns = ["level", f"rejected of {len(values)}, share {SHARE}"]
    print_table("The default test of calibrated labels", columns, rows)


def read_networks(folder, n_networks=None):
    """The confidence of each network, and whether it is correct."""
    label, networks = _networks.read_networks(folder)
    return {
        name: (networks[name].max(axis=1), (networks[name].argmax(axis=1) == label).astype(int))
        for name in sorted(networks)[:n_networks]
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="with the predictions")
    parser.add_argument("--quick", action="store_true", help="two networks, few draws")
    arguments = parser.parse_args()
    if arguments.folder is None:
        print("not run: benchmark labels_by_design (needs the folder of the predictions)")
        return
    warnings.simplefilter("ignore")
    networks = read_networks(arguments.folder, 2 if arguments.quick else None)
    n_estimates, n_tests, n_intervals = (20, 2, 5) if arguments.quick else (800, 25, 100)
    print_estimates(networks, n_estimates, np.random.default_rng(0))
    print_tests(networks, n_tests, np.random.default_rng(1))
    print_intervals(networks, n_intervals, np.random.default_rng(2))


if __name__ == "__main__":
    main()
