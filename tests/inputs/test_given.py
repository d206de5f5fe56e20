"""Functions take `given` from any container, and refuse it without columns."""

import importlib
import inspect
from functools import cache, partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcalib import metrics
from skcalib.hypothesis_tests import CalibrationTest, EquivalenceTest
from skcalib.losses import distribution_matching_loss
from skcalib.recalibration import (
    FeatureRecalibrator,
    RecalibratedClassifier,
    TemperatureRecalibrator,
)
from skcalib.uncertainty import compare_models, confidence_interval

N, RNG = 20, np.random.default_rng(0)
PROBA, GIVEN, WEIGHT = RNG.random(N), np.round(RNG.normal(size=(N, 2))), 0.5 + RNG.random(N)
LABEL = (RNG.random(N) < PROBA).astype(int)
OUTCOME, FORECAST = RNG.normal(size=N), (np.zeros(N), np.ones(N))
CONDITIONAL, FEW = "conditional_kernel_calibration_error", {"n_resamples": 3, "random_state": 0}


def evaluate(function, given, y, weight):
    return function(y, PROBA, given=given, sample_weight=weight)


def evaluate_forecasts(function, given, y, weight):
    return function(y, FORECAST, given=given, sample_weight=weight)


def fit_test(test, given, y, weight):
    return test.fit(PROBA, y, sample_weight=weight, given=given).p_value_


@cache
def fitted():
    return FeatureRecalibrator(TemperatureRecalibrator(), random_state=0).fit(
        PROBA, LABEL, given=GIVEN
    )


def recalibrate(name, given, y, weight):
    if name == "fit":
        model = clone(fitted()).fit(PROBA, y, weight, given=given)
        return model.predict_proba(PROBA, given=GIVEN)
    model = clone(fitted()) if name == "fit_transform" else fitted()
    arguments = (PROBA, y, weight) if name in ("fit_transform", "score") else (PROBA,)
    return getattr(model, name)(*arguments, given=given)


def recalibrate_classifier(given, y, weight):
    model = RecalibratedClassifier(
        FrozenEstimator(LogisticRegression().fit(GIVEN, LABEL)),
        clone(fitted()),
        given=lambda X: given,
    )
    return model.fit(GIVEN, y, sample_weight=weight).predict_proba(GIVEN)


def compare(given, y, weight):
    models = PROBA, 1 - PROBA
    return compare_models(CONDITIONAL, y, *models, given=given, sample_weight=weight, **FEW)


def match(given, y, weight):
    widths = {"bandwidth": 1.0, "given_bandwidth": 1.0}
    return distribution_matching_loss(FORECAST, y, sample_weight=weight, given=given, **widths)


OF_CLASSES = {
    name: partial(evaluate, getattr(metrics, name))
    for name in (
        CONDITIONAL,
        "calibration_distance_bounds",
        "decision_calibration_error",
        "distribution_matching_error",
        "upper_distance_certificate",
        "upper_distance_to_calibration",
    )
}
OF_CLASSES |= {
    "CalibrationTest.fit": partial(fit_test, CalibrationTest(CONDITIONAL, **FEW)),
    "EquivalenceTest.fit": partial(fit_test, EquivalenceTest(CONDITIONAL, margin=0.1, **FEW)),
    "RecalibratedClassifier": recalibrate_classifier,
    "compare_models": compare,
    "confidence_interval": partial(evaluate, partial(confidence_interval, CONDITIONAL, **FEW)),
}
OF_CLASSES |= {
    f"FeatureRecalibrator.{name}": partial(recalibrate, name)
    for name in ("fit", "fit_transform", "predict", "predict_proba", "score", "transform")
}
OF_FORECASTS = {
    name: partial(evaluate_forecasts, getattr(metrics, name))
    for name in ("distribution_matching_witness", "local_calibration", "local_calibration_error")
}
OF_FORECASTS["distribution_matching_loss"] = match
CASES = OF_CLASSES | OF_FORECASTS


def y_of(name):
    return LABEL if name in OF_CLASSES else OUTCOME


def functions_that_take_given():
    for room in ("metrics", "hypothesis_tests", "recalibration", "uncertainty", "losses"):
        module = importlib.import_module(f"skcalib.{room}")
        for name in module.__all__:
            item = getattr(module, name)
            functions = [(name, item)]
            if inspect.isclass(item):
                functions += [(f"{name}.{key}", method) for key, method in vars(item).items()]
            for path, function in functions:
                is_public = callable(function) and not path.split(".")[-1].startswith("_")
                if is_public and "given" in inspect.signature(function).parameters:
                    yield path


def test_every_function_that_takes_given_is_among_the_cases():
    assert {*functions_that_take_given()} == {*CASES}


@pytest.mark.parametrize("name", CASES)
def test_no_column_is_refused(name):
    for given in (GIVEN[:, :0], pd.DataFrame(index=range(N)), [[]] * N):
        if name == "distribution_matching_loss" and not isinstance(given, np.ndarray):
            continue  # it takes arrays only
        with pytest.raises(ValueError, match=r"given must .*found (none|.*\(20, 0\))\. Pass"):
            CASES[name](given, y_of(name), WEIGHT)


@pytest.mark.filterwarnings("ignore:given should hold inputs that recur")
@pytest.mark.parametrize("name", sorted({*CASES} - {"distribution_matching_loss"}))
def test_containers_do_not_matter(name):
    strict = pytest.importorskip("array_api_strict")
    case, y = CASES[name], y_of(name)
    expected = repr(case(GIVEN, y, WEIGHT))
    assert repr(case(*map(strict.asarray, (GIVEN, y, WEIGHT)))) == expected
    assert repr(case(pa.array(GIVEN.tolist()), y, WEIGHT)) == expected  # an array of lists
