"""The numbers of a reliability diagram, without matplotlib."""

import numpy as np
import pytest
from problems import random_problem
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression

from skcalib.display import ReliabilityDisplay
from skcalib.metrics import expected_calibration_error, reliability_curve


def test_isotonic_curve_is_isotonic_regression():
    label, proba = random_problem(np.random.default_rng(0), 60)
    weight = np.random.default_rng(1).random(60)
    curve = reliability_curve(label, proba, sample_weight=weight, band=None)
    model = IsotonicRegression().fit(proba, label, sample_weight=weight)
    np.testing.assert_allclose(curve.observed, model.predict(curve.predicted), atol=1e-12)
    assert set(curve.predicted) <= set(proba)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_are_those_of_scikit_learn(strategy):
    label, proba = random_problem(np.random.default_rng(0), 200)
    curve = reliability_curve(label, proba, method="binned", n_bins=5, strategy=strategy)
    observed, predicted = calibration_curve(label, proba, n_bins=5, strategy=strategy)
    if strategy == "uniform":
        np.testing.assert_allclose(curve.predicted, predicted, atol=1e-12)
        np.testing.assert_allclose(curve.observed, observed, atol=1e-12)
    assert curve.share @ abs(curve.observed - curve.predicted) == pytest.approx(
        expected_calibration_error(label, proba, n_bins=5, strategy=strategy)
    )
    frame = curve.to_frame()
    assert frame.columns.tolist() == [
        *("predicted", "observed", "share", "start", "end", "low", "high")
    ]
    assert (frame["start"] <= frame["predicted"]).all()
    assert (frame["low"] <= frame["high"]).all()


@pytest.mark.parametrize("method", ["isotonic", "smooth", "binned"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_figure_draws_the_same_numbers(method, n_classes):
    label, proba = random_problem(np.random.default_rng(0), 80, n_classes)
    options = {"method": method, "random_state": 0, "n_resamples": 9}
    curve = reliability_curve(label, proba, **options)
    drawn = ReliabilityDisplay.from_predictions(
        label, proba, axis_scale="linear", **options
    ).curves[0]
    for name in ("predicted", "observed", "edges", "events"):
        np.testing.assert_array_equal(getattr(curve, name), getattr(drawn, name))
    np.testing.assert_array_equal(curve.band.lower, drawn.band.lower)
    assert (curve.error, curve.title, curve.x_label) == (drawn.error, drawn.title, drawn.x_label)


def test_bad_options():
    with pytest.raises(ValueError, match="'method' parameter of reliability_curve"):
        reliability_curve([0, 1], [0.2, 0.7], method="spline")
    with pytest.raises(ValueError, match=r"y_proba must lie in \[0, 1\]"):
        reliability_curve([0, 1], [0.2, 1.7])
