"""Warnings name the user's own line."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skcalib._inputs.warnings import warn
from skcalib.hypothesis_tests import SpiegelhalterTest
from skcalib.recalibration import TemperatureRecalibrator

PROBA, COLUMN = np.array([0.2, 0.7, 0.6]), np.array([[0], [1], [0]])


def test_a_warning_has_the_message_the_category_and_the_file_of_the_caller():
    with pytest.warns(RuntimeWarning, match="something happened") as caught:
        warn("something happened", RuntimeWarning)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="something happened"):
        warn("something happened")


@pytest.mark.parametrize(
    "fit",
    [
        lambda: TemperatureRecalibrator().fit(PROBA, COLUMN),
        lambda: TemperatureRecalibrator().fit_transform(PROBA, COLUMN),
        lambda: SpiegelhalterTest().fit(PROBA, COLUMN),
        lambda: make_pipeline(FunctionTransformer(), TemperatureRecalibrator()).fit(
            PROBA[:, None], COLUMN
        ),
    ],
    ids=["fit", "fit_transform", "test", "pipeline"],
)
def test_warnings_name_the_line_that_called_skcalib(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    (warning,) = (w for w in caught if w.category is DataConversionWarning)
    assert warning.filename == __file__
