"""Decision curves and PIT histograms, without matplotlib."""

import subprocess
import sys

import numpy as np
import pytest
from problems import random_problem

from skcalib.datasets import make_forecasts
from skcalib.display import DecisionDisplay, PITHistogramDisplay
from skcalib.metrics import decision_curve, pit_histogram


def test_net_benefit_is_that_of_its_definition():
    label, proba = random_problem(np.random.default_rng(0), 60)
    weight = np.random.default_rng(1).random(60)
    curve = decision_curve(label, proba, sample_weight=weight, thresholds=[0.6, 0.2])
    np.testing.assert_array_equal(curve.threshold, [0.2, 0.6])
    for k, t in enumerate(curve.threshold):
        realised = announced = always = 0.0
        for y, p, w in zip(label, proba, weight / weight.sum(), strict=True):
            always += w * (y - (1 - y) * t / (1 - t))
            if p > t:
                realised += w * (y - (1 - y) * t / (1 - t))
                announced += w * (p - (1 - p) * t / (1 - t))
        found = curve.realised[k], curve.announced[k], curve.treat_all[k], curve.treat_none[k]
        assert found == pytest.approx((realised, announced, always, 0), abs=1e-14)
    frame = curve.to_frame()
    assert frame.columns.tolist() == [
        *("threshold", "realised", "announced", "low", "high", "treat_all", "treat_none")
    ]
    np.testing.assert_allclose(frame["high"] - frame["low"], 2 * curve.margin)


def test_margins_cover_where_few_act_and_fewer_have_the_event():
    # 20 of 500 act, and in half of the draws none of them has the event (0.1 s)
    rng = np.random.default_rng(0)
    proba = rng.beta(0.5, 99, size=500)
    options = {"thresholds": [0.02], "labels": [0, 1]}
    curves = [decision_curve(rng.random(500) < proba, proba, **options) for _ in range(200)]
    covered = [abs(c.realised - c.announced)[0] <= c.margin[0] for c in curves]
    assert np.mean(covered) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 200)


@pytest.mark.parametrize("kind", ["net-benefit", "loss"])
def test_display_draws_the_decision_curve(kind):
    label, proba = random_problem(np.random.default_rng(0), 60)
    names = np.array(["yes", "no"])[label]  # "yes" is 0, and the last in order
    curve = decision_curve(names, 1 - proba, kind=kind)
    same = decision_curve(label, proba, kind=kind, pos_label=0)
    drawn = DecisionDisplay.from_predictions(names, 1 - proba, kind=kind)
    for name in ("realised", "announced", "margin", "treat_all", "treat_none"):
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
    with pytest.raises(ValueError, match=r"thresholds must be a list of numbers in \(0, 1\)"):
        decision_curve([0, 1], [0.2, 0.7], thresholds=[0, 0.5])
    with pytest.raises(ValueError, match="'atoms' parameter of pit_histogram"):
        pit_histogram([0.0], ([0.0], 1.0), atoms="drop")
    with pytest.raises(TypeError, match="y_forecast must be a forecast"):
        pit_histogram([0, 1], np.ones((2, 2)))
