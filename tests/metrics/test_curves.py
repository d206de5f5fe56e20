"""Decision curves and PIT histograms, without matplotlib."""

import itertools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from problems import random_problem
from scipy import stats

from skcalib.datasets import make_forecasts
from skcalib.display import DecisionDisplay, PITHistogramDisplay
from skcalib.metrics import decision_calibration, decision_curve, pit_histogram


def test_net_benefit_is_that_of_its_definition():
    label, proba = random_problem(np.random.default_rng(0), 60)
    weight, proba = np.random.default_rng(1).random(60), proba.round(1)  # some are thresholds
    curve = decision_curve(label, proba, sample_weight=weight, thresholds=[0.6, 0.2])
    np.testing.assert_array_equal(curve.threshold, [0.2, 0.6])
    for k, t in enumerate(curve.threshold):
        realised = expected = always = 0.0
        for y, p, w in zip(label, proba, weight / weight.sum(), strict=True):
            always += w * (y - (1 - y) * t / (1 - t))
            if p >= t:
                realised += w * (y - (1 - y) * t / (1 - t))
                expected += w * (p - (1 - p) * t / (1 - t))
        found = curve.realised[k], curve.expected[k], curve.treat_all[k], curve.treat_none[k]
        assert found == pytest.approx((realised, expected, always, 0), abs=1e-14)
    frame = curve.to_frame()
    assert frame.columns.tolist() == [
        *("threshold", "realised", "expected", "low", "high", "treat_all", "treat_none")
    ]
    np.testing.assert_allclose(frame["high"] - frame["low"], 2 * curve.margin)


@pytest.mark.parametrize("kind", ["net-benefit", "loss"])
def test_case_control_data_have_the_prevalence_of_the_population(kind):
    # dcurves documents -0.1333333 for treating all at prevalence 0.15 and threshold 0.25
    label, proba = random_problem(np.random.default_rng(2), 80)
    t, prevalence = np.array([0.0, 0.25, 0.6]), 0.15
    options = {"thresholds": t, "kind": kind}
    curve = decision_curve(label, proba, prevalence=prevalence, **options)
    hits = [np.mean(proba[label == 1] >= threshold) for threshold in t]
    alarms = [np.mean(proba[label == 0] >= threshold) for threshold in t]
    benefit = np.multiply(hits, prevalence) - np.multiply(alarms, (1 - prevalence) * t / (1 - t))
    always = prevalence - (1 - prevalence) * t / (1 - t)
    assert always[1] == pytest.approx(-0.1333333, abs=5e-8)
    if kind == "net-benefit":
        np.testing.assert_allclose(curve.realised, benefit, atol=1e-14)
        np.testing.assert_allclose(curve.treat_all, always, atol=1e-14)
    np.testing.assert_allclose(curve.net_benefit_per_event, benefit / prevalence, atol=1e-13)
    # fewer true negatives than without any model, at the price of false negatives
    spared = (1 - prevalence) * (1 - np.array(alarms))
    missed = prevalence * (1 - np.array(hits))
    avoided = spared - missed * np.r_[0, (1 - t[1:]) / t[1:]]
    np.testing.assert_allclose(curve.interventions_avoided, avoided, atol=1e-13)
    assert np.isnan(curve.margin).all()
    own = decision_curve(label, proba, prevalence=label.mean(), **options)
    np.testing.assert_allclose(own.realised, decision_curve(label, proba, **options).realised)
    with pytest.raises(ValueError, match="both outcomes if prevalence is given; found the class 1"):
        decision_curve(np.ones(10, int), np.full(10, 0.7), prevalence=0.1, labels=[0, 1])


def test_at_the_lowest_risk_all_are_treated():
    curve = decision_curve([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.9], thresholds=[0, 0.2])
    np.testing.assert_array_equal(curve.realised, curve.treat_all)
    assert curve.realised[0] == 0.5


def test_margins_cover_where_few_act_and_fewer_have_the_event():
    # 20 of 500 act, and in half of the draws none of them has the event (0.1 s)
    rng = np.random.default_rng(0)
    proba = rng.beta(0.5, 99, size=500)
    options = {"thresholds": [0.02], "labels": [0, 1]}
    curves = [decision_curve(rng.random(500) < proba, proba, **options) for _ in range(200)]
    covered = [abs(c.realised - c.expected)[0] <= c.margin[0] for c in curves]
    assert np.mean(covered) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 200)


def margins_by_enumeration(proba, weight, slope, columns):
    """Standard deviations of Σ w s (y − p) for labels that all follow one number in each group.

    The variance of crossed columns is the sum of both, less that of the groups in which both agree.
    """
    n = len(proba)

    def variance(code):
        edges = np.unique([0.0, *proba, 1.0])  # between these no label changes
        n_groups = len(np.unique(code))
        total = second = 0.0
        for pieces in itertools.product(range(len(edges) - 1), repeat=n_groups):
            chance = np.prod(np.diff(edges)[list(pieces)])
            below = (edges[:-1] + edges[1:])[list(pieces)] / 2
            number = below[np.unique(code, return_inverse=True)[1]]
            value = weight * slope @ ((number < proba) - proba)
            total, second = total + chance * value, second + chance * value**2
        return second - total**2

    columns = [np.asarray(column) for column in columns]
    if len(columns) == 1:
        return np.sqrt(variance(columns[0]))
    first, second = map(variance, columns)
    return np.sqrt(max(first + second - variance(n * columns[0] + columns[1]), first, second))


@pytest.mark.parametrize("kind", ["net-benefit", "loss"])
def test_margins_of_labels_that_follow_one_number(kind):
    # equal probabilities in a group: labels that are all equal show the whole dependence
    proba, group = np.repeat([0.3, 0.6, 0.8], 2), np.repeat([0, 1, 2], 2)
    label, weight = np.repeat([1, 1, 0], 2), np.repeat([1, 2, 1], 2) / 8
    t = 0.4
    slope = (proba > t) / (1 - t) if kind == "net-benefit" else np.where(proba > t, -t, 1 - t)
    options = {"sample_weight": weight, "kind": kind, "thresholds": [t]}
    margin = decision_curve(label, proba, **options).margin[0]
    single = margins_by_enumeration(proba, weight, slope, [np.arange(6)])
    assert margin == pytest.approx(stats.norm.isf(0.025) * single, rel=1e-12)
    quantile = stats.t.isf(0.025, 1 / np.sum(np.array([0.25, 0.5, 0.25]) ** 2) - 1)
    for groups in (group, np.array(list("cab"))[group], pd.DataFrame({"site": group})):
        margin = decision_curve(label, proba, groups=groups, **options).margin[0]
        together = margins_by_enumeration(proba, weight, slope, [group])
        assert margin == pytest.approx(quantile * together, rel=1e-12)
    assert together > 1.3 * single


def test_margins_of_crossed_groups():
    # all labels agree with one number: the dependence is whole in rows, columns and cells
    row, column = np.repeat([0, 1, 2], 4), np.tile([0, 0, 1, 1], 3)
    proba, label, weight = np.full(12, 0.3), np.ones(12, dtype=int), np.full(12, 1 / 12)
    crossed = np.column_stack([row, column])
    options = {"thresholds": [0.2], "labels": [0, 1]}
    margin = decision_curve(label, proba, groups=crossed, **options).margin[0]
    exact = margins_by_enumeration(proba, weight, np.full(12, 1 / 0.8), [row, column])
    assert margin == pytest.approx(stats.t.isf(0.025, 1) * exact, rel=1e-12)  # two columns
    for groups in (crossed[:, ::-1], {"patient": row, "reader": column}, [row, column]):
        other = decision_curve(label, proba, groups=groups, **options).margin[0]
        assert other == pytest.approx(margin, rel=1e-12)
    # a column within another adds nothing, nor does the same again
    alone = decision_curve(label, proba, groups=column, **options).margin[0]
    same = decision_curve(label, proba, groups=np.column_stack([column] * 2), **options).margin[0]
    assert same == pytest.approx(alone, rel=1e-12)
    # cells agree, and columns are made of opposite ones: no less than the variance of the rows
    row, column = np.repeat([0, 1], 40), np.tile(np.repeat(np.arange(10), 4), 2)
    args = (row + column) % 2, np.full(80, 0.5)
    alone = decision_curve(*args, groups=row, **options).margin[0]
    both = decision_curve(*args, groups=np.column_stack([row, column]), **options).margin[0]
    assert both == pytest.approx(alone, rel=1e-12)


def test_margins_by_hand():
    # of three pairs one agrees. Their products sum to −2/4 of 6/4, and to 2/4 of 10/4 with the two
    # pairs that are added: the dependence is 1/5, and each pair varies by 2/4 + 1/5 · 2/4
    label, pair = [1, 1, 1, 0, 1, 0], np.repeat([0, 1, 2], 2)
    options = {"thresholds": [0.2], "groups": pair}
    margin = decision_curve(label, np.full(6, 0.5), **options).margin[0]
    assert margin == pytest.approx(stats.t.isf(0.025, 2) * np.sqrt(3 * 0.6) / 6 / 0.8, rel=1e-12)
    # a miss costs 1 − t and a false alarm t: both happen together, so their deviations add up
    margin = decision_curve([1, 0] * 3, [0.1, 0.5] * 3, kind="loss", **options).margin[0]
    deviation = 0.8 * 0.3 + 0.2 * 0.5
    assert margin == pytest.approx(stats.t.isf(0.025, 2) * np.sqrt(3) * deviation / 6, rel=1e-12)


def test_margins_cover_in_unequal_groups():
    # a few large groups of one mind beside pairs: 0.34 are covered if groups are ignored (0.2 s)
    rng = np.random.default_rng(1)
    size = np.repeat([60, 2], [8, 100])
    group, shared = (
        np.repeat(np.arange(108), size),
        np.repeat(np.repeat([0.9, 0.0], [8, 100]), size),
    )
    covered = []
    for _ in range(60):
        proba = rng.beta(1, 9, size=len(group))
        score = np.sqrt(shared) * rng.normal(size=108)[group]
        score += np.sqrt(1 - shared) * rng.normal(size=len(group))
        label = stats.norm.cdf(score) < proba
        table = decision_calibration(
            label, proba, loss=[[0, 19], [1, 0]], labels=[0, 1], groups=group
        )
        curve = decision_curve(label, proba, thresholds=[0.05], labels=[0, 1], groups=group)
        width = stats.t.isf(0.025, 14.8) * table.standard_error[1]  # 680² / Σ n_g² − 1
        covered.append(
            [
                abs(curve.realised - curve.expected)[0] <= curve.margin[0],
                abs(table.realised - table.expected)[1] <= width,
            ]
        )
    assert (np.mean(covered, axis=0) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 60)).all()


@pytest.mark.parametrize("kind", ["net-benefit", "loss"])
def test_display_draws_the_decision_curve(kind):
    label, proba = random_problem(np.random.default_rng(0), 60)
    names = np.array(["yes", "no"])[label]  # "yes" is 0, and the last in order
    options = {"kind": kind, "labels": ["no", "yes"]}
    curve = decision_curve(names, 1 - proba, **options)
    same = decision_curve(label, proba, kind=kind, pos_label=0)
    drawn = DecisionDisplay.from_predictions(names, 1 - proba, **options)
    groups = np.column_stack([np.arange(60) // 3, np.arange(60) % 3])
    grouped = DecisionDisplay.from_predictions(names, 1 - proba, groups=groups, **options)
    margin = decision_curve(names, 1 - proba, groups=groups, **options).margin
    np.testing.assert_array_equal(grouped.margin, margin)
    assert (margin > curve.margin).any()
    for name in ("realised", "expected", "margin", "treat_all", "treat_none"):
        np.testing.assert_array_equal(getattr(curve, name), getattr(drawn, name))
    np.testing.assert_array_equal(drawn.line_.get_ydata(), curve.realised)
    np.testing.assert_allclose(same.realised, decision_curve(1 - label, proba, kind=kind).realised)


@pytest.mark.parametrize("problem", ["gaussian", "ensemble", "counts"])
def test_display_draws_the_histogram(problem):
    y, forecast = make_forecasts(40, problem=problem, random_state=0)
    histogram = pit_histogram(y, forecast, random_state=0, n_resamples=9)
    drawn = PITHistogramDisplay.from_predictions(y, forecast, random_state=0, n_resamples=9)
    np.testing.assert_array_equal(histogram.density, drawn.density)
    np.testing.assert_array_equal(histogram.band.lower_of_all, drawn.band.lower_of_all)
    frame = histogram.to_frame()
    assert (frame["end"] - frame["start"]) @ frame["density"] == pytest.approx(1)
    assert (frame["lower"] <= frame["upper"]).all()
    assert "lower" not in pit_histogram(y, forecast, confidence_level=None).to_frame()


def test_matplotlib_is_not_needed():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import skcalib.metrics as m;"
        "m.reliability_curve([0, 1], [0.2, 0.7]); m.pit_histogram([0, 1], ([0, 1], 1));"
        "print(m.decision_curve([0, 1], [0.2, 0.7], thresholds=[0.5]).realised.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0.5]\n"


def test_bad_input():
    with pytest.raises(ValueError, match="y_proba must hold the probabilities of two classes"):
        decision_curve([0, 1, 2], np.eye(3))
    with pytest.raises(ValueError, match=r"thresholds must be a list of numbers in \[0, 1\)"):
        decision_curve([0, 1], [0.2, 0.7], thresholds=[0.5, 1])
    for groups, match in (
        (np.zeros((2, 3)), "one column, or two that cross each other.* found 3"),
        ([1, 1], "at least two groups .* found 1"),
        (np.array([[1, 5], [2, 5]]), "at least two groups .* found 1"),
    ):
        with pytest.raises(ValueError, match=match):
            decision_curve([0, 1], [0.2, 0.7], groups=groups)
    with pytest.raises(ValueError, match="'atoms' parameter of pit_histogram"):
        pit_histogram([0.0], ([0.0], 1.0), atoms="drop")
    with pytest.raises(TypeError, match="y_forecast must be a forecast"):
        pit_histogram([0, 1], np.ones((2, 2)))
