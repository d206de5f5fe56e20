"""Warnings of the package name the line of the caller, not a line inside the package."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skcalib._warnings import warn
from skcalib.metrics import _distance, calibration_distance_bounds, lower_distance_to_calibration


def test_a_direct_warning_points_at_its_caller():
    with pytest.warns(UserWarning, match="by hand") as caught:
        warn("by hand")
    assert caught[0].filename == __file__


@pytest.mark.parametrize("metric", [lower_distance_to_calibration, calibration_distance_bounds])
@pytest.mark.parametrize("multi_class", ["confidence", "classwise"])
def test_the_bracket_warning_points_at_the_caller(metric, multi_class, monkeypatch):
    monkeypatch.setattr(_distance, "least_calibrating_transport", lambda *_: (0.1, 0.2))
    proba = [[0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.6, 0.2, 0.2]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metric([0, 1, 2], proba, multi_class=multi_class)
    assert {item.category for item in caught} == {ConvergenceWarning}
    assert {item.filename for item in caught} == {__file__}


def test_a_certificate_that_is_too_wide_is_warned_about(monkeypatch):
    nodes = np.array([0.0, 1.0])
    wide = (0.1, 0.2, nodes, np.array([0.5, 0.5]), np.zeros((2, 2)))
    monkeypatch.setattr(_distance, "certified_transport", lambda *_: wide)
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-04: it lies in \[0.1, 0.2\]") as caught:
        _, certificate = lower_distance_to_calibration([0, 1], [0.2, 0.9], return_certificate=True)
    assert caught[0].filename == __file__
    assert (certificate.lower, certificate.upper) == (0.1, 0.2)
