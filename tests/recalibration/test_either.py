"""Auto, Subgroup and Identity map whichever they are fitted on: probabilities or forecasts."""

import pickle

import numpy as np
import pytest
from problems import random_problem, two_columns
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from skcalib.forecasts import Forecast, GaussianForecast
from skcalib.recalibration import (
    AutoRecalibrator,
    IdentityRecalibrator,
    LocationScaleRecalibrator,
    SubgroupRecalibrator,
    TemperatureRecalibrator,
)

LABEL, PROBA = random_problem(np.random.default_rng(0), 60)
RNG = np.random.default_rng(1)
MEAN = RNG.normal(size=60)
FORECAST, OUTCOME = GaussianForecast(MEAN, np.ones(60)), RNG.normal(MEAN, 2.0)

EITHER = [AutoRecalibrator([]), IdentityRecalibrator()]


@pytest.mark.parametrize("recalibrator", EITHER, ids=str)
def test_what_comes_back_is_what_was_passed(recalibrator):
    own = clone(recalibrator)
    with pytest.raises(NotFittedError):
        own.transform(FORECAST)
    assert is_classifier(own)
    np.testing.assert_array_equal(own.fit(PROBA, LABEL).transform(PROBA), two_columns(PROBA))
    assert own.classes_.tolist() == [0, 1]
    # fitted again on forecasts, it knows no classes
    own.set_output(transform="pandas").fit(FORECAST, OUTCOME)
    assert own.transform(FORECAST) is FORECAST
    assert own.fit_transform(FORECAST, OUTCOME) is FORECAST
    assert own.score(FORECAST, OUTCOME) == pytest.approx(-FORECAST.crps(OUTCOME).mean())
    assert not is_classifier(own)
    for name in ("classes_", "n_features_in_", "predict", "predict_proba", "get_feature_names_out"):
        assert not hasattr(own, name)
    with pytest.raises(AttributeError, match=r"no attribute 'predict_proba'") as caught:
        own.predict_proba(PROBA)
    assert "fitted on forecasts of a number" in str(caught.value.__cause__)
    copy = pickle.loads(pickle.dumps(own))
    assert isinstance(copy.transform((MEAN, np.ones(60))), Forecast)
    frame = own.fit(PROBA, LABEL).transform(PROBA)
    assert frame.columns.tolist() == ["proba_0", "proba_1"]
    assert own.score(PROBA, LABEL) == -log_loss(LABEL, own.predict_proba(PROBA))


@pytest.mark.parametrize("pair", [(MEAN, np.ones(60)), (MEAN.tolist(), [1.0] * 60)])
def test_pairs_are_means_and_standard_deviations(pair):
    assert isinstance(IdentityRecalibrator().fit(pair, OUTCOME).transform(pair), GaussianForecast)


def test_two_samples_of_two_classes_in_a_tuple():
    rows = ((0.2, 0.8), (0.7, 0.3))
    found = IdentityRecalibrator().fit(rows, [1, 0]).transform(rows)
    np.testing.assert_allclose(found, rows)


def test_kinds_are_not_mixed():
    recalibrator = AutoRecalibrator([("t", TemperatureRecalibrator())])
    with pytest.raises(ValueError, match="must be objects with the methods fit and transform"):
        AutoRecalibrator([("t", object())]).fit(FORECAST, OUTCOME)
    recalibrator.fit(PROBA, LABEL)
    with pytest.raises(ValueError, match="forecast"):
        recalibrator.transform(FORECAST)
    recalibrator.set_params(candidates=[("s", LocationScaleRecalibrator(scale_only=True))])
    with pytest.raises(ValueError, match="objects with the methods fit and predict_proba"):
        recalibrator.fit(PROBA, LABEL)
    with pytest.raises(TypeError, match="X must be a forecast"):
        recalibrator.fit(FORECAST, OUTCOME).transform(PROBA)


def test_cross_validation_of_forecasts():
    scores = cross_val_score(IdentityRecalibrator(), FORECAST, OUTCOME, cv=2)
    expected = [-FORECAST[rows].crps(OUTCOME[rows]).mean() for rows in np.split(np.arange(60), 2)]
    np.testing.assert_allclose(scores, expected)


@pytest.mark.parametrize("least", [None, 25])
def test_small_subgroups_of_classes_get_the_common_map(least):
    by = np.repeat(["few", "many"], [20, 40])
    plan = {"prior_weight": 4.0, "min_samples": least}
    own = SubgroupRecalibrator(IdentityRecalibrator(), **plan).fit(PROBA, LABEL, by=by)
    assert list(own.subgroup_recalibrators_) == (["many"] if least else ["few", "many"])
    found = own.predict_proba(PROBA, by=by)
    assert np.array_equal(found[:20], two_columns(PROBA)[:20]) == bool(least)
