"""What a report says of recalibration, which it cross-validates."""

import numpy as np
import pytest

from skcalib.report import calibration_report


def test_a_report_without_events_warns_once():
    proba = np.random.default_rng(0).random(300) / 5
    with pytest.warns(UserWarning, match="no sample of 1 of the 2 classes") as caught:
        calibration_report(np.zeros(300, dtype=int), proba, labels=[0, 1], random_state=0)
    assert len(caught) == 1
