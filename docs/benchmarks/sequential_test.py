"""Size under weekly looks over ten years, and weeks until a drift is found.

A model predicts 50 patients a week. Beside the sequential test stands what is often done: a test
of each week's patients at the level 0.05 (the log loss against its expectation, by its normal
limit), and one test of all patients at a date that was fixed beforehand.
"""

import argparse

import numpy as np
from scipy.special import expit, logit, xlogy
from scipy.stats import norm

from skcalib.hypothesis_tests import SequentialCalibrationTest

N_PER_WEEK = 50
LEVEL = 0.05

# What is true instead of p from the week of the drift on, of patients in two wards.
DRIFTS = {
    "none": lambda p, ward: p,
    "overconfident (temperature 1.3)": lambda p, ward: expit(logit(p) / 1.3),
    "overconfident (temperature 2)": lambda p, ward: expit(logit(p) / 2),
    "shift of the log-odds by 0.3": lambda p, ward: expit(logit(p) + 0.3),
    "shift by 1 in a quarter of the patients": lambda p, ward: expit(logit(p) + (ward == 0)),
}


def weeks(rng, n_weeks, drift, begin):
    """Predictions and labels, each (n_weeks, N_PER_WEEK)."""
    proba = expit(1.5 * rng.normal(size=(n_weeks, N_PER_WEEK)))
    ward = rng.integers(4, size=proba.shape)
    truth = proba.copy()
    truth[begin:] = DRIFTS[drift](proba[begin:], ward[begin:])
    return proba, (rng.random(proba.shape) < truth).astype(int)


def z_scores(proba, label):
    """The log loss minus its expectation, in standard deviations, of each row."""
    loss = -(xlogy(label, proba) + xlogy(1 - label, 1 - proba))
    entropy = -(xlogy(proba, proba) + xlogy(1 - proba, 1 - proba))
    variance = proba * (1 - proba) * logit(proba) ** 2
    return (loss - entropy).sum(axis=-1) / np.sqrt(variance.sum(axis=-1))


def first_week(found, begin):
    """Weeks from the beginning of the drift until the first that is found; NaN if none is."""
    hits = np.flatnonzero(found)
    return hits[0] - begin + 1 if len(hits) else np.nan


def sequential(proba, label):
    """Whether the sequential test has rejected by the end of each week."""
    test = SequentialCalibrationTest(labels=[0, 1])
    found = np.zeros(len(proba), dtype=bool)
    for week, batch in enumerate(zip(proba, label, strict=True)):
        test.partial_fit(*batch)
        found[week] = test.p_value_ <= LEVEL
        if found[week]:
            found[week:] = True
            break
    return found


def weekly(proba, label):
    return 2 * norm.sf(np.abs(z_scores(proba, label))) <= LEVEL


def at_the_end(proba, label):
    return 2 * norm.sf(abs(z_scores(proba.ravel(), label.ravel()))) <= LEVEL


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that it runs")
    parser.add_argument("--years", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=100)
    options = parser.parse_args()
    years, repetitions = (1, 3) if options.quick else (options.years, options.repetitions)

    print(f"\nCalibrated for {years} years, {repetitions} models: share ever rejected\n")
    print("| sequential test | test of each week | test at the end |\n|---|---|---|")
    shares = []
    for seed in range(repetitions):
        proba, label = weeks(np.random.default_rng(seed), 52 * years, "none", 0)
        rejected = (
            sequential(proba, label)[-1],
            weekly(proba, label).any(),
            at_the_end(proba, label),
        )
        shares.append(rejected)
    print("| " + " | ".join(f"{share:.2f}" for share in np.mean(shares, axis=0)) + " |")

    print("\nA drift after one year: share found within the next year, and weeks until then\n")
    print(
        "| drift | found | median week | 90 % by week | each week's test: false alarm before "
        "| one test after two years |\n|---|---|---|---|---|---|"
    )
    begin, n_weeks = (10, 20) if options.quick else (52, 104)
    for drift in list(DRIFTS)[1:]:
        delays, alarms, ends = [], [], []
        for seed in range(repetitions):
            proba, label = weeks(np.random.default_rng(1000 + seed), n_weeks, drift, begin)
            found = sequential(proba, label)
            delays.append(np.nan if found[begin - 1] else first_week(found, begin))
            alarms.append(weekly(proba[:begin], label[:begin]).any())
            ends.append(at_the_end(proba, label))
        late = np.where(np.isnan(delays), np.inf, delays)
        middle, most = np.quantile(late, [0.5, 0.9], method="higher")
        print(
            f"| {drift} | {np.mean(np.isfinite(late)):.2f} | {middle:.0f} | {most:.0f} "
            f"| {np.mean(alarms):.2f} | {np.mean(ends):.2f} |"
        )


if __name__ == "__main__":
    main()
