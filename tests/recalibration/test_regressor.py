"""RecalibratedRegressor cross-fits, and its forecasts are those of its parts."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import stats
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_regressor
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression, QuantileRegressor, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from skcalib.forecasts import EnsembleForecast, GaussianForecast, QuantileForecast, ResidualForecast
from skcalib.recalibration import (
    AutoRecalibrator,
    IdentityRecalibrator,
    LocationScaleRecalibrator,
    PITRecalibrator,
    QuantileRecalibrator,
    RecalibratedRegressor,
)

X, y = load_diabetes(return_X_y=True)
X, y = X[:90], y[:90]
NONE, SCALE = IdentityRecalibrator(), LocationScaleRecalibrator(scale_only=True)


def out_of_fold(regressor, cv):
    mean, std = np.empty(len(y)), np.empty(len(y))
    for train, test in KFold(cv).split(X):
        mean[test], std[test] = (
            clone(regressor).fit(X[train], y[train]).predict(X[test], return_std=True)
        )
    return GaussianForecast(mean, std)


def test_cross_fitting():
    model = RecalibratedRegressor(BayesianRidge(), LocationScaleRecalibrator(), cv=4).fit(X, y)
    expected = LocationScaleRecalibrator().fit(out_of_fold(BayesianRidge(), 4), y)
    whole = BayesianRidge().fit(X, y).predict(X, return_std=True)
    forecast = model.predict_forecast(X)
    np.testing.assert_allclose(forecast.mean(), expected.transform(whole).mean(), rtol=1e-9)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, forecast.mean())
    np.testing.assert_array_equal(mean, model.predict(X))
    np.testing.assert_array_equal(std, forecast.std())
    np.testing.assert_array_equal(model.predict_quantiles(X, [0.3]), forecast.quantiles([0.3]))
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), forecast.interval(0.8))
    np.testing.assert_array_equal(model.predict_interval(X), forecast.interval(0.9))
    assert model.residuals_ is None
    assert model.n_features_in_ == 10


def test_folds_in_any_order():
    cv = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = RecalibratedRegressor(BayesianRidge(), LocationScaleRecalibrator(), cv=cv).fit(X, y)
    mean, std = np.empty(len(y)), np.empty(len(y))
    for train, test in cv:
        fitted = BayesianRidge().fit(X[train], y[train])
        mean[test], std[test] = fitted.predict(X[test], return_std=True)
    expected = LocationScaleRecalibrator().fit((mean, std), y)
    assert model.recalibrator_.factor_ == pytest.approx(expected.factor_, rel=1e-9)


def test_frozen_regressors_are_used_as_they_are():
    frozen = FrozenEstimator(BayesianRidge().fit(X[:60], y[:60]))
    model = RecalibratedRegressor(frozen, PITRecalibrator()).fit(X[60:], y[60:])
    expected = PITRecalibrator().fit(frozen.predict(X[60:], return_std=True), y[60:])
    new = expected.transform(frozen.predict(X, return_std=True))
    np.testing.assert_array_equal(model.predict_quantiles(X, [0.9]), new.quantiles([0.9]))
    # rank 28 of 31: the share of the calibration samples themselves
    # (one of them is the quantile, but for rounding)
    share = np.mean(y[60:] <= model.predict_quantiles(X[60:], [0.9])[:, 0] + 1e-9)
    assert share == 28 / 30


@pytest.mark.parametrize("regressor", [Ridge(), DummyRegressor()], ids=["ridge", "dummy"])
def test_conformal_intervals_of_regressors_that_predict_a_number(regressor):
    # split conformal prediction: the prediction plus the ⌈(n + 1) α⌉-th smallest residual
    frozen = FrozenEstimator(regressor.fit(X[:60], y[:60]))
    model = RecalibratedRegressor(frozen, PITRecalibrator()).fit(X[60:], y[60:])
    residuals = np.sort(y[60:] - frozen.predict(X[60:]))
    assert len(residuals) == 30
    expected = frozen.predict(X)[:, None] + residuals[[3, 15, 27]]
    np.testing.assert_allclose(model.predict_quantiles(X, [0.1, 0.5, 0.9]), expected)
    low, high = model.predict_interval(X, 0.8)
    np.testing.assert_allclose(
        np.column_stack([low, high]), frozen.predict(X)[:, None] + residuals[[2, 27]]
    )


def test_conformal_intervals_where_all_residuals_are_the_same():
    frozen = FrozenEstimator(DummyRegressor(strategy="constant", constant=1.0).fit(X, y))
    model = RecalibratedRegressor(frozen, PITRecalibrator()).fit(X, np.full(len(X), 3.0))
    np.testing.assert_allclose(model.predict_quantiles(X[:2], [0.1, 0.9]), 3)


def test_conformal_intervals_with_cross_fitting():
    model = RecalibratedRegressor(Ridge(), PITRecalibrator()).fit(X, y)
    residuals = np.sort(y - cross_val_predict(Ridge(), X, y, cv=5))
    expected = Ridge().fit(X, y).predict(X) + residuals[int(np.ceil(0.9 * (len(y) + 1))) - 1]
    np.testing.assert_allclose(model.predict_quantiles(X, [0.9])[:, 0], expected)


@pytest.mark.parametrize("frozen", [False, True])
def test_regressors_that_predict_a_number(frozen):
    regressor = Ridge().fit(X[:60], y[:60])
    rows = slice(60, None) if frozen else slice(None)
    given = FrozenEstimator(regressor) if frozen else Ridge()
    model = RecalibratedRegressor(given, NONE).fit(X[rows], y[rows])
    predicted = regressor.predict(X[rows]) if frozen else cross_val_predict(Ridge(), X, y)
    np.testing.assert_allclose(model.residuals_, y[rows] - predicted)
    forecast = model.predict_forecast(X)
    assert isinstance(forecast, ResidualForecast)
    whole = regressor if frozen else Ridge().fit(X, y)
    np.testing.assert_allclose(forecast.location, whole.predict(X))
    np.testing.assert_allclose(model.predict(X), whole.predict(X) + model.residuals_.mean())


class Members(RegressorMixin, BaseEstimator):
    """Forecasts the predictions of the trees of a forest."""

    def __init__(self, forest):
        self.forest = forest

    def fit(self, X, y):
        self.forest_ = clone(self.forest).fit(X, y)
        return self

    def predict_forecast(self, X):
        trees = [tree.predict(X) for tree in self.forest_.estimators_]
        return EnsembleForecast(np.column_stack(trees))


@pytest.mark.parametrize(
    ("regressor", "kind"),
    [
        (make_pipeline(StandardScaler(), BayesianRidge()), GaussianForecast),
        (GaussianProcessRegressor(alpha=0.5, normalize_y=True), GaussianForecast),
        (Members(RandomForestRegressor(5, random_state=0)), EnsembleForecast),
        (KNeighborsRegressor(), ResidualForecast),
        (GridSearchCV(BayesianRidge(), {"tol": [1e-3, 1e-2]}, cv=2), GaussianForecast),
    ],
    ids=["pipeline", "process", "forest", "neighbours", "search"],
)
def test_any_regressor(regressor, kind):
    auto = AutoRecalibrator([("scale", SCALE)], cv=2)
    model = RecalibratedRegressor(regressor, auto, cv=3).fit(X, y)
    plain = RecalibratedRegressor(regressor, NONE, cv=3).fit(X, y)
    assert isinstance(plain.predict_forecast(X), kind)
    low, high = model.predict_interval(X, 0.8)
    assert 0.6 < np.mean((y >= low) & (y <= high)) <= 1
    assert model.score(X, y) > 0.2
    np.testing.assert_allclose(model.predict(X[:7]), model.predict(X)[:7], rtol=1e-9)


def test_estimators_without_tags():
    """Those of skpro have none, and their `predict_proba` returns a distribution."""

    class Foreign:
        def get_params(self, deep=True):
            return {}

        def fit(self, X, y):
            self.ridge = BayesianRidge().fit(X, y)
            return self

        def predict_proba(self, X):
            return stats.norm(*self.ridge.predict(X, return_std=True))

    model = RecalibratedRegressor(Foreign(), LocationScaleRecalibrator()).fit(X, y)
    expected = RecalibratedRegressor(BayesianRidge(), LocationScaleRecalibrator()).fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X))
    assert is_regressor(model)


LEVELS = [0.1, 0.5, 0.9]
BOOSTING = HistGradientBoostingRegressor(loss="quantile", max_iter=3)
PIPELINE = make_pipeline(
    StandardScaler(), GradientBoostingRegressor(loss="quantile", n_estimators=3, random_state=0)
)


@pytest.mark.parametrize(
    ("regressor", "name"), [(BOOSTING, "quantile"), (PIPELINE, "gradientboostingregressor__alpha")]
)
def test_one_regressor_for_each_level(regressor, name):
    weight = np.random.default_rng(0).random(len(y))
    data = {} if regressor is PIPELINE else {"sample_weight": weight}
    plan = {"level_parameter": name, "levels": LEVELS, "cv": 3}
    model = RecalibratedRegressor(regressor, NONE, **plan).fit(X, y, **data)
    columns = [
        clone(regressor).set_params(**{name: level}).fit(X, y, **data).predict(X)
        for level in LEVELS
    ]
    forecast = model.predict_forecast(X)
    np.testing.assert_array_equal(forecast.values, np.sort(np.column_stack(columns), axis=1))
    assert len(model.estimator_.estimators_) == 3
    assert model.n_features_in_ == 10
    moved = RecalibratedRegressor(regressor, QuantileRecalibrator(), **plan).fit(X, y, **data)
    out = np.empty((len(y), 3))
    for train, test in KFold(3).split(X):
        fit = {key: value[train] for key, value in data.items()}
        for k, level in enumerate(LEVELS):
            one = clone(regressor).set_params(**{name: level}).fit(X[train], y[train], **fit)
            out[test, k] = one.predict(X[test])
    expected = QuantileRecalibrator().fit(QuantileForecast(np.sort(out, axis=1), LEVELS), y, **data)
    np.testing.assert_array_equal(
        moved.predict_forecast(X).values, expected.transform(forecast).values
    )
    assert clone(moved).get_params()["level_parameter"] == name


def test_quantiles_that_cross_are_sorted():
    tree = GradientBoostingRegressor(loss="quantile", n_estimators=5, random_state=0)
    plan = {"level_parameter": "alpha", "levels": [0.4, 0.45, 0.5, 0.55], "cv": 2}
    model = RecalibratedRegressor(tree, NONE, **plan).fit(X, y)
    values = np.column_stack([one.predict(X) for one in model.estimator_.estimators_])
    assert (np.diff(values) < 0).any()
    assert (np.diff(model.predict_forecast(X).values) >= 0).all()


@pytest.mark.parametrize(
    ("regressor", "name", "message"),
    [
        (Ridge(), "alpha", r"must hold a level.*'alpha' of Ridge, which has no such loss"),
        (QuantileRegressor(), "alpha", r"'alpha' of QuantileRegressor, which has no such loss"),
        (Ridge(), "quantile", "level_parameter must be a parameter of Ridge"),
        (HistGradientBoostingRegressor(), "quantile", "which has loss='squared_error'"),
        (make_pipeline(Ridge()), "ridge__alpha", "'ridge__alpha' of Pipeline"),
        (FrozenEstimator(BOOSTING), "quantile", "must be None for a frozen estimator"),
    ],
)
def test_levels_of_other_parameters_are_refused(regressor, name, message):
    with pytest.raises(ValueError, match=message):
        RecalibratedRegressor(regressor, level_parameter=name).fit(X, y)


def test_levels_increase():
    with pytest.raises(ValueError, match="levels must"):
        RecalibratedRegressor(BOOSTING, level_parameter="quantile", levels=[0.9, 0.1]).fit(X, y)


def test_medians_where_only_quantiles_are_known():
    model = RecalibratedRegressor(
        QuantileRegressor(alpha=0),
        QuantileRecalibrator(),
        level_parameter="quantile",
        levels=LEVELS,
    ).fit(X, y)
    np.testing.assert_allclose(model.predict(X), model.predict_forecast(X).values[:, 1])
    with pytest.raises(ValueError, match="mean is not known"):
        model.predict(X, return_std=True)


def test_too_narrow_forecasts_are_widened():
    class Narrow(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            self.ridge_ = BayesianRidge().fit(X, y)
            return self

        def predict(self, X, return_std=False):
            mean, std = self.ridge_.predict(X, return_std=True)
            return (mean, std / 6) if return_std else mean

    narrow = Narrow().fit(X, y).predict(X, return_std=True)
    model = RecalibratedRegressor(Narrow()).fit(X, y)
    assert isinstance(model.recalibrator_, AutoRecalibrator)
    low, high = model.predict_interval(X, 0.9)
    assert np.mean((y >= low) & (y <= high)) > 0.8
    low, high = GaussianForecast(*narrow).interval(0.9)
    assert np.mean((y >= low) & (y <= high)) < 0.3


def test_a_median_that_is_not_forecast_is_expected():
    levels = [0.1, 0.9]
    model = RecalibratedRegressor(BayesianRidge(), QuantileRecalibrator(levels=levels)).fit(X, y)
    low, high = model.predict_quantiles(X, levels).T
    with pytest.warns(UserWarning, match=r"no quantile at the level 0.5"):
        np.testing.assert_allclose(model.predict(X), (low + high) / 2)
    with pytest.raises(ValueError, match=r"coverage must be a number in \(0, 1\).*found 90"):
        model.predict_interval(X, coverage=90)


def test_weights_reach_the_regressor_and_the_recalibrator():
    weight = np.random.default_rng(0).random(len(y))
    model = RecalibratedRegressor(BayesianRidge(), LocationScaleRecalibrator(), cv=3)
    model.fit(X, y, sample_weight=weight)
    mean, std = np.empty(len(y)), np.empty(len(y))
    for train, test in KFold(3).split(X):
        fitted = BayesianRidge().fit(X[train], y[train], sample_weight=weight[train])
        mean[test], std[test] = fitted.predict(X[test], return_std=True)
    expected = LocationScaleRecalibrator().fit((mean, std), y, sample_weight=weight)
    assert model.recalibrator_.coef_ == pytest.approx(expected.coef_, rel=1e-9)
    residual = RecalibratedRegressor(Ridge(), NONE).fit(X, y, sample_weight=weight)
    forecast = residual.predict_forecast(X[:1])
    np.testing.assert_allclose(np.sort(forecast.weights), np.sort(weight / weight.sum()))
    with pytest.warns(UserWarning, match="KNeighborsRegressor takes no sample_weight"):
        RecalibratedRegressor(KNeighborsRegressor(), NONE).fit(X, y, sample_weight=weight)


def test_searches_reach_the_parts():
    model = RecalibratedRegressor(BayesianRidge(), LocationScaleRecalibrator())
    grid = {"recalibrator__scale_only": [False, True], "estimator__tol": [1e-3], "cv": [3]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_estimator_.predict_forecast(X).shape == (90,)
    pipeline = make_pipeline(StandardScaler(), model)
    assert np.isfinite(cross_val_score(pipeline, X, y, cv=3)).all()


def test_metadata_routing():
    groups = np.arange(len(y)) % 7
    by_group = RecalibratedRegressor(BayesianRidge(), NONE, cv=GroupKFold(3))
    by_group.fit(X, y, groups=groups)
    weight = np.random.default_rng(0).random(len(y))
    with config_context(enable_metadata_routing=True):
        regressor = BayesianRidge().set_fit_request(sample_weight=True)
        recalibrator = LocationScaleRecalibrator()
        model = RecalibratedRegressor(regressor, recalibrator, cv=GroupKFold(3))
        model.fit(X, y, sample_weight=weight, groups=groups)
    expected = RecalibratedRegressor(BayesianRidge(), recalibrator, cv=GroupKFold(3))
    expected.fit(X, y, sample_weight=weight, groups=groups)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("estimator", [BayesianRidge(), Ridge()], ids=["forecasts", "residuals"])
def test_weights_that_the_recalibrator_declines(estimator):
    weight = np.random.default_rng(0).random(len(y))
    with config_context(enable_metadata_routing=True):
        regressor = clone(estimator).set_fit_request(sample_weight=False)
        recalibrator = LocationScaleRecalibrator().set_fit_request(sample_weight=False)
        model = RecalibratedRegressor(regressor, recalibrator)
        model.fit(X, y, sample_weight=weight)
    expected = RecalibratedRegressor(estimator, LocationScaleRecalibrator()).fit(X, y)
    quantiles = expected.predict_quantiles(X, [0.1, 0.9])
    np.testing.assert_array_equal(model.predict_quantiles(X, [0.1, 0.9]), quantiles)


def test_data_frames_and_pickles():
    frame = pd.DataFrame(X, index=np.arange(len(y)) + 5).add_prefix("x")
    series = pd.Series(y, index=frame.index)
    model = RecalibratedRegressor(BayesianRidge(), LocationScaleRecalibrator()).fit(frame, series)
    assert model.feature_names_in_[0] == "x0"
    expected = RecalibratedRegressor(BayesianRidge(), LocationScaleRecalibrator()).fit(X, y)
    np.testing.assert_allclose(model.predict(frame), expected.predict(X))
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))


def test_bad_input():
    model = RecalibratedRegressor(BayesianRidge())
    with pytest.raises(NotFittedError):
        model.predict_forecast(X)
    with pytest.raises(ValueError, match="y must be finite"):
        model.fit(X, np.where(y > 100, np.nan, y))
    with pytest.raises(ValueError, match="cv=5 needs at least 5 samples"):
        model.fit(X[:4], y[:4])
    overlapping = RecalibratedRegressor(BayesianRidge(), cv=ShuffleSplit(3, random_state=0))
    with pytest.raises(ValueError, match="exactly one test set, for out-of-fold forecasts"):
        overlapping.fit(X, y)
    with pytest.raises(ValueError, match="'recalibrator' parameter"):
        RecalibratedRegressor(BayesianRidge(), "scale").fit(X, y)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        model.fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(NotFittedError):
        RecalibratedRegressor(FrozenEstimator(BayesianRidge())).fit(X, y)


# BayesianRidge itself fails this check once a standard deviation is asked for.
OF_BAYESIAN_RIDGE = {"check_dtype_object": "numbers of type object are not converted"}
if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
    OF_BAYESIAN_RIDGE |= {
        "check_regressor_data_not_an_array": "its standard deviations need arrays",
        "check_sample_weight_equivalence_on_dense_data": "weights are no repetitions",
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "failing"),
    [
        (RecalibratedRegressor(BayesianRidge(), SCALE, cv=2), OF_BAYESIAN_RIDGE),
        pytest.param(RecalibratedRegressor(Ridge(), NONE, cv=2), {}, marks=pytest.mark.slow),
    ],
    ids=["with std", "predict only"],
)  # a second: scikit-learn's sixty checks find what no other test looks for
def test_passes_every_check(model, failing):
    results = check_estimator(model, expected_failed_checks=failing, on_fail=None, on_skip=None)
    bad = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert bad == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_default_passes_every_check_but_repetition():
    failing = OF_BAYESIAN_RIDGE | {
        "check_sample_weight_equivalence_on_dense_data": "folds are dealt to rows",
        "check_sample_weight_equivalence_on_sparse_data": "folds are dealt to rows",
    }
    results = check_estimator(
        RecalibratedRegressor(BayesianRidge()),
        expected_failed_checks=failing,
        on_fail=None,
        on_skip=None,
    )
    bad = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert bad == {}


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LogisticRegression(), r"estimator must be a regressor; found the classifier LogisticRegr"),
        (make_pipeline(StandardScaler(), LogisticRegression()), r"RecalibratedClassifier"),
        (StandardScaler(), "estimator must be a regressor, .*found StandardScaler, which has ne"),
    ],
)
def test_what_is_no_regressor_is_refused(estimator, message):
    labels = (y > 100).astype(int)
    for given in (estimator, FrozenEstimator(clone(estimator).fit(X, labels))):
        with pytest.raises(ValueError, match=message if given is estimator else "must be a reg"):
            RecalibratedRegressor(given).fit(X, labels)


def test_dummies_get_residuals_though_they_return_a_std():
    # its standard deviations are 0, which is no distribution
    model = RecalibratedRegressor(DummyRegressor(), NONE).fit(X, y)
    np.testing.assert_allclose(model.residuals_, y - cross_val_predict(DummyRegressor(), X, y))
    assert isinstance(model.predict_forecast(X), ResidualForecast)
