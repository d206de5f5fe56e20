"""The pictures of guide pages, one function for each page."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib.datasets import make_forecasts, make_temperature_family
from skcalib.display import (
    ComparisonDisplay,
    DecisionDisplay,
    ForestDisplay,
    NullDistributionDisplay,
    PITHistogramDisplay,
    QuantileReliabilityDisplay,
    RatingGradeDisplay,
    ReliabilityDisplay,
    SequentialTestDisplay,
)
from skcalib.forecasts import EnsembleForecast
from skcalib.hypothesis_tests import CalibrationTest, RatingGradeTest, SequentialCalibrationTest
from skcalib.metrics import expected_calibration_error, smooth_calibration_error
from skcalib.recalibration import (
    IsotonicRecalibrator,
    PriorShiftRecalibrator,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
)
from skcalib.uncertainty import clinical_calibration, confidence_interval


def make_panels(n_panels, height=3.6):
    """Return axes of panels side by side."""
    return plt.subplots(1, n_panels, figsize=(9, height), layout="constrained")[1]


def clinical_validation():
    """Draw the smooth curve of a model that underestimates risk, and its net benefit."""
    rng = np.random.default_rng(0)
    risk = expit(rng.normal(-1.5, 1, size=1000))
    died = rng.random(1000) < expit(logit(risk) + 0.5)
    curve, benefit = make_panels(2, 5)
    ReliabilityDisplay.from_predictions(
        died, risk, method="smooth", band="confidence", ax=curve, name="model", random_state=0
    )
    DecisionDisplay.from_predictions(died, risk, kind="net-benefit", ax=benefit, name="model")


def hospitals():
    """Draw the O:E ratio of each hospital and of all, as a forest plot."""
    rng = np.random.default_rng(0)
    hospital = np.repeat(["Aachen", "Bonn", "Cologne", "Dortmund", "Essen"], 250)
    risk = expit(rng.normal(-1.5, 1, size=1250))
    shift = np.repeat([0.1, 0.6, 0.2, 0.5, 0.3], 250)
    died = rng.random(1250) < expit(logit(risk) + shift)
    result = clinical_calibration(died, risk, by=hospital, n_resamples=99, random_state=0)
    ForestDisplay.from_result(result)


def rating_grades():
    """Draw the default rate of each grade with its interval and light, and the assigned PD."""
    n_debtors, n_defaults = [3000, 2000, 1000, 400], [3, 9, 21, 40]
    pd_assigned = np.repeat([0.001, 0.004, 0.01, 0.05], n_debtors)
    default = np.concatenate([np.arange(n) < d for n, d in zip(n_debtors, n_defaults, strict=True)])
    grades = np.repeat(["A", "B", "C", "D"], n_debtors)
    RatingGradeDisplay.from_test(RatingGradeTest().fit(pd_assigned, default, grades=grades))


def rank_histograms():
    """Draw the rank histograms of ensembles that are too narrow, calibrated and biased."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(2000, 1))
    outcome = signal[:, 0] + rng.normal(size=2000)
    kinds = {"underdispersed": (0, 0.6), "calibrated": (0, 1), "biased": (0.4, 1)}
    for ax, (title, (bias, spread)) in zip(make_panels(3, 4), kinds.items(), strict=True):
        members = signal + bias + spread * rng.normal(size=(2000, 9))
        PITHistogramDisplay.from_predictions(outcome, EnsembleForecast(members), ax=ax, name=title)
        ax.set_title(title)


def forecasts():
    """Draw the PIT histogram and the quantile reliability of forecasts that are too narrow."""
    y, forecast = make_forecasts(500, dispersion=0.6, random_state=0)
    histogram, curve = make_panels(2, 5)
    PITHistogramDisplay.from_predictions(y, forecast, ax=histogram)
    QuantileReliabilityDisplay.from_predictions(y, forecast, ax=curve)


def class_imbalance():
    """Draw predictions that balanced weights moved far from the diagonal, and the prior shift."""
    rng = np.random.default_rng(0)
    risk = expit(rng.normal(-3, 1.5, size=5000))
    event = rng.random(5000) < risk
    odds = (1 - event.mean()) / event.mean()
    models = {"class_weight='balanced'": expit(logit(risk) + np.log(odds)), "prior corrected": risk}
    ReliabilityDisplay.from_predictions(
        event, models, band=None, axis_scale="linear", random_state=0
    )


def language_models():
    """Draw stated confidences and how often answers were right."""
    rng = np.random.default_rng(0)
    values, shares = [0.5, 0.7, 0.8, 0.9, 0.95, 0.99], [0.05, 0.05, 0.2, 0.3, 0.25, 0.15]
    stated = rng.choice(values, size=1000, p=shares)
    is_right = rng.random(1000) < 0.35 + 0.5 * stated
    ReliabilityDisplay.from_predictions(is_right, stated, name="stated confidence", random_state=0)


def worst_classes():
    """Draw the confidence of ten classes, and the two classes with the largest errors."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    proba = GaussianNB().fit(X_train, y_train).predict_proba(X_test)
    panels = {"confidence": (y_test, proba)}
    panels |= {f"class {k}": (y_test == k, proba[:, k]) for k in (8, 2)}
    for ax, (title, predictions) in zip(make_panels(3, 3.8), panels.items(), strict=True):
        ReliabilityDisplay.from_predictions(
            *predictions, axis_scale="linear", ax=ax, random_state=0
        )
        ax.set_title(title)


def subgroups():
    """Draw a model that is right on the whole and wrong in both of two subgroups."""
    rng = np.random.default_rng(0)
    risk = expit(rng.normal(0, 1.2, size=4000))
    is_old = rng.random(4000) < 0.5
    is_ill = rng.random(4000) < expit(logit(risk) + np.where(is_old, 0.7, -0.7))
    panels = {"all": np.ones(4000, bool), "the young": ~is_old, "the old": is_old}
    for ax, (title, rows) in zip(make_panels(3, 3.8), panels.items(), strict=True):
        ReliabilityDisplay.from_predictions(is_ill[rows], risk[rows], ax=ax, random_state=0)
        ax.set_title(title)


def decisions():
    """Draw the net benefit of a model, of treating all and of treating none."""
    rng = np.random.default_rng(0)
    truth = rng.beta(1, 6, size=2000)
    y, proba = rng.random(2000) < truth, truth / 2
    DecisionDisplay.from_predictions(y, proba, kind="net-benefit", name="model")


def monitoring():
    """Draw the evidence of a sequential test, week by week, with a drift in week 10."""
    rng = np.random.default_rng(0)
    watch = SequentialCalibrationTest(labels=[0, 1])
    for week in range(20):
        proba = rng.random(100)
        truth = proba if week < 10 else proba**2
        watch = watch.partial_fit(proba, (rng.random(100) < truth).astype(int))
    SequentialTestDisplay.from_test(watch)


def null_distributions():
    """Draw the components of the default test beside their values for calibrated models."""
    y, p = make_temperature_family(1000, inverse_temperature=1.3, random_state=2)
    NullDistributionDisplay.from_test(CalibrationTest(random_state=0).fit(p, y))


def temperature():
    """Draw a network before and after its logits are divided by a temperature."""
    rng = np.random.default_rng(0)
    odds = 2 * rng.normal(size=3000)
    y = rng.random(3000) < expit(odds)
    network = expit(3 * odds)
    scaled = TemperatureRecalibrator().fit(network, y).predict_proba(network)[:, 1]
    models = {"network": network, "divided by a temperature": scaled}
    ReliabilityDisplay.from_predictions(y, models, band=None, axis_scale="linear", random_state=0)


def compared_models():
    """Draw two models of which the better calibrated one has the larger log loss."""
    rng = np.random.default_rng(0)
    known, unknown = rng.normal(size=(2, 2000))
    y = rng.random(2000) < expit(known + 2 * unknown)
    models = {"linear": expit(0.6 * known), "forest": expit(1.6 * (known + 2 * unknown))}
    metrics = ["smooth_calibration_error", log_loss]
    ComparisonDisplay.from_predictions(y, models, metrics=metrics, n_resamples=99, random_state=0)


def dependent_samples():
    """Draw p-values of calibrated models whose labels depend on each other, by patient."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(50), 10)
    test = CalibrationTest("skce", n_resamples=99, random_state=0)
    p_values = {"without groups": [], "groups=patient": []}
    for _ in range(100):
        p = rng.uniform(0.2, 0.8, size=500)
        y = np.repeat(rng.uniform(size=50), 10) < p
        for name, groups in zip(p_values, (None, patient), strict=True):
            p_values[name].append(test.fit(p, y, groups=groups).p_value_)
    panels = make_panels(2, 3)
    for ax, (name, values) in zip(panels, p_values.items(), strict=True):
        ax.hist(values, bins=np.linspace(0, 1, 21), edgecolor="white")
        ax.axhline(5, color="black", linestyle=":")
        ax.set(title=name, xlabel="p-value", ylim=(0, 45))
    panels[0].set_ylabel("calibrated models (of 100)")


def another_population():
    """Draw a model where the disease is rarer than where it was learned, and the prior shift."""
    rng = np.random.default_rng(0)
    y_old, p_old = make_temperature_family(5000, random_state=0)
    y, p = make_temperature_family(10_000, random_state=3)
    is_seen = rng.random(10_000) < np.where(y == 1, 0.1, 0.9)
    shift = PriorShiftRecalibrator(prevalence=0.1).fit(p_old, y_old)
    models = {"as learned": p[is_seen], "prior shifted": shift.predict_proba(p[is_seen])[:, 1]}
    ReliabilityDisplay.from_predictions(
        y[is_seen], models, band=None, axis_scale="linear", random_state=0
    )


def chance():
    """Draw the smooth and the binned error of calibrated models, by the number of samples."""
    sizes = [100, 300, 1000, 3000, 10_000]
    samples = [[make_temperature_family(n, random_state=k) for k in range(20)] for n in sizes]
    ax = plt.subplots(figsize=(6, 3.6), layout="constrained")[1]
    for measure, name in [
        (expected_calibration_error, "binned (ECE)"),
        (smooth_calibration_error, "smooth"),
    ]:
        errors = [[measure(*sample) for sample in of_size] for of_size in samples]
        ax.plot(sizes, np.mean(errors, axis=1), "o-", label=name)
        ax.fill_between(sizes, *np.quantile(errors, [0.05, 0.95], axis=1), alpha=0.2)
    ax.set(xscale="log", ylim=(0, None), xlabel="samples", ylabel="error of calibrated models")
    ax.legend()


def intervals():
    """Draw intervals of an overconfident and a calibrated model, by the number of samples."""
    ax = plt.subplots(figsize=(6, 3.2), layout="constrained")[1]
    for name, sharpness, offset in [("overconfident", 2, -0.12), ("calibrated", 1, 0.12)]:
        ends = []
        for n in (300, 1000, 3000):
            sample = make_temperature_family(n, inverse_temperature=sharpness, random_state=1)
            ends.append(
                confidence_interval(
                    "smooth_calibration_error", *sample, n_resamples=199, random_state=0
                )
            )
        estimates, lows, highs = np.transpose([(end.estimate, end.low, end.high) for end in ends])
        errors = [estimates - lows, highs - estimates]
        ax.errorbar(np.arange(3) + offset, estimates, errors, fmt="o", capsize=4, label=name)
    ax.set(ylabel="smooth calibration error", xticks=range(3), ylim=(-0.002, None))
    ax.set_xticklabels([f"{n} samples" for n in (300, 1000, 3000)])
    ax.legend()


def ordered_classes():
    """Draw the reliability of the problems into which ordered classes are cut."""
    rng = np.random.default_rng(0)
    score, limits = rng.normal(size=1000), np.array([-1.0, 0.0, 1.5])
    right = expit(limits - score[:, None])
    said = expit(3 * (limits - score[:, None]))
    stage = (rng.random((1000, 1)) > right).sum(axis=1)
    panels = make_panels(3, 3.8)
    names = "none", "at most mild", "at most moderate"
    for k, (ax, name) in enumerate(zip(panels, names, strict=True)):
        ReliabilityDisplay.from_predictions(
            stage <= k, said[:, k], axis_scale="linear", ax=ax, random_state=0
        )
        ax.set_title(name)


def deployed_map():
    """Draw the map of a score to a recalibrated probability."""
    label, score = make_temperature_family(500, inverse_temperature=2, random_state=0)
    grid = np.linspace(0.001, 0.999, 500)
    ax = plt.subplots(figsize=(4, 4), layout="constrained")[1]
    ax.plot([0, 1], [0, 1], "k:")
    for method, line in [(SigmoidRecalibrator(), "-"), (IsotonicRecalibrator(), "--")]:
        values = method.fit(score, label).predict_proba(grid)[:, 1]
        ax.plot(grid, values, line, label=type(method).__name__)
    ax.set(xlabel="score of the model", ylabel="recalibrated probability", aspect="equal")
    ax.legend(loc="upper left")


def numbers_of_bins():
    """Draw the binned errors of one model by the number and kind of their bins."""
    y, p = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    sizes = range(2, 51)
    ax = plt.subplots(figsize=(6, 3.2), layout="constrained")[1]
    for strategy, name in [("uniform", "equal width"), ("quantile", "equal mass")]:
        errors = [expected_calibration_error(y, p, n_bins=n, strategy=strategy) for n in sizes]
        ax.plot(sizes, errors, label=name)
    ax.set(xlabel="number of bins", ylabel="ECE of one model", ylim=(0, None))
    ax.legend()


def before_and_after():
    """Draw the overconfident model of a report, and what it becomes."""
    rng = np.random.default_rng(0)
    proba = rng.random(1000)
    after = expit(0.5 * logit(proba))
    y = rng.random(1000) < after
    models = {"before": proba, "after": after}
    ReliabilityDisplay.from_predictions(y, models, axis_scale="linear", random_state=0)
