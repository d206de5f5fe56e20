"""Forecasters say what their regressors say, and are regressors for scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import BayesianRidge, LinearRegression, QuantileRegressor, Ridge
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

from skcalib.forecasts import (
    EnsembleForecast,
    EnsembleForecaster,
    ForestForecaster,
    GaussianMixtureForecast,
    QuantileForecaster,
    ResidualForecast,
    ResidualForecaster,
    forecast_of,
)

X, y = load_diabetes(return_X_y=True)
X, y, X_NEW = X[:100], y[:100], X[100:130]
WEIGHT = np.random.default_rng(0).random(100)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("forest", [RandomForestRegressor, ExtraTreesRegressor])
def test_forest_weights_equal_loops(forest, weighted):
    given = {"sample_weight": WEIGHT} if weighted else {}
    weight = WEIGHT if weighted else np.ones(100)
    model = ForestForecaster(forest(7, min_samples_leaf=4, random_state=0)).fit(X, y, **given)
    forecast = model.predict_forecast(X_NEW)
    fitted = forest(7, min_samples_leaf=4, random_state=0).fit(X, y, **given)
    expected = np.zeros((30, 100))
    for tree in fitted.estimators_:
        train, new = tree.apply(X), tree.apply(X_NEW)
        for i in range(30):
            same = (train == new[i]) * weight
            expected[i] += same / same.sum() / 7
    np.testing.assert_allclose(forecast.mean(), expected @ y)
    for level in (0.1, 0.5, 0.9):
        order = np.argsort(y)
        place = (np.cumsum(expected[:, order], axis=1) < level - 1e-12).sum(axis=1)
        np.testing.assert_array_equal(forecast.ppf(level), y[order][place])
    np.testing.assert_allclose(forecast.cdf(150.0), expected @ (y <= 150))
    np.testing.assert_array_equal(model.predict(X_NEW), forecast.mean())
    assert not forecast.is_exchangeable


def test_forests_of_a_constant_outcome():
    forecast = ForestForecaster(RandomForestRegressor(3)).fit(X, np.full(100, 2.0))
    np.testing.assert_array_equal(forecast.predict_forecast(X_NEW).mean(), 2)


@pytest.mark.parametrize(
    ("estimator", "parameter"),
    [
        (QuantileRegressor(alpha=0), "quantile"),
        (GradientBoostingRegressor(loss="quantile", n_estimators=5, random_state=0), "alpha"),
    ],
)
def test_quantiles_are_those_of_the_regressors(estimator, parameter):
    levels = [0.1, 0.5, 0.9]
    model = QuantileForecaster(estimator, levels=levels).fit(X, y, sample_weight=WEIGHT)
    columns = [
        estimator.set_params(**{parameter: level}).fit(X, y, sample_weight=WEIGHT).predict(X_NEW)
        for level in levels
    ]
    forecast = model.predict_forecast(X_NEW)
    np.testing.assert_allclose(forecast.values, np.sort(np.column_stack(columns), axis=1))
    np.testing.assert_allclose(model.predict(X_NEW), forecast.values[:, 1])
    np.testing.assert_allclose(model.predict_interval(X_NEW, 0.8)[0], forecast.values[:, 0])


def test_quantiles_that_cross_are_sorted():
    tree = GradientBoostingRegressor(loss="quantile", n_estimators=20, random_state=0)
    model = QuantileForecaster(tree, levels=[0.4, 0.45, 0.5, 0.55]).fit(X, y)
    columns = np.column_stack([estimator.predict(X_NEW) for estimator in model.estimators_])
    assert (np.diff(columns, axis=1) < 0).any()
    np.testing.assert_array_equal(model.predict_forecast(X_NEW).values, np.sort(columns, axis=1))


def test_the_default_is_boosting():
    model = QuantileForecaster(levels=[0.1, 0.9]).fit(X, y)
    assert isinstance(model.estimators_[0], HistGradientBoostingRegressor)
    assert [one.quantile for one in model.estimators_] == [0.1, 0.9]
    inside = make_pipeline(StandardScaler(), QuantileRegressor(alpha=0))
    model = QuantileForecaster(
        inside, levels=[0.2, 0.8], parameter="quantileregressor__quantile"
    ).fit(X, y)
    assert [one[-1].quantile for one in model.estimators_] == [0.2, 0.8]


def test_members_of_ensembles():
    bagging = BaggingRegressor(DecisionTreeRegressor(), 6, max_features=0.5, random_state=0)
    forecast = EnsembleForecaster(bagging).fit(X, y).predict_forecast(X_NEW)
    fitted = bagging.fit(X, y)
    columns = [
        member.predict(X_NEW[:, features])
        for member, features in zip(fitted.estimators_, fitted.estimators_features_, strict=True)
    ]
    np.testing.assert_array_equal(forecast.members, np.column_stack(columns))
    assert forecast.is_exchangeable
    np.testing.assert_allclose(forecast.mean(), fitted.predict(X_NEW))


def test_members_with_standard_deviations():
    ensemble = BaggingRegressor(BayesianRidge(), 4, random_state=0)
    forecast = EnsembleForecaster(ensemble).fit(X, y).predict_forecast(X_NEW)
    assert isinstance(forecast, GaussianMixtureForecast)
    parts = [member.predict(X_NEW, return_std=True) for member in ensemble.fit(X, y).estimators_]
    np.testing.assert_allclose(forecast.loc, np.column_stack([mean for mean, _ in parts]))
    np.testing.assert_allclose(forecast.scale, np.column_stack([std for _, std in parts]))


def test_members_know_names_or_not():
    frame = pd.DataFrame(X).add_prefix("x")
    new = pd.DataFrame(X_NEW).add_prefix("x")
    for ensemble in (
        VotingRegressor([("a", Ridge()), ("b", LinearRegression())]),
        BaggingRegressor(Ridge(), 3, random_state=0),
    ):
        model = EnsembleForecaster(ensemble).fit(frame, y)
        assert model.feature_names_in_[0] == "x0"
        expected = EnsembleForecaster(ensemble).fit(X, y).predict_forecast(X_NEW)
        np.testing.assert_allclose(model.predict_forecast(new).members, expected.members)
        with pytest.raises(ValueError, match="feature names"):
            model.predict_forecast(new.rename(columns={"x0": "z"}))


def test_residuals_are_out_of_fold():
    model = ResidualForecaster(Ridge(), cv=4).fit(X, y, sample_weight=WEIGHT)
    predicted = cross_val_predict(Ridge(), X, y, cv=4, params={"sample_weight": WEIGHT})
    np.testing.assert_allclose(model.residuals_, y - predicted)
    forecast = model.predict_forecast(X_NEW)
    assert isinstance(forecast, ResidualForecast)
    location = Ridge().fit(X, y, sample_weight=WEIGHT).predict(X_NEW)
    np.testing.assert_allclose(forecast.location, location)
    expected = location + np.average(y - predicted, weights=WEIGHT)
    np.testing.assert_allclose(model.predict(X_NEW), expected)
    mean, std = model.predict(X_NEW, return_std=True)
    np.testing.assert_allclose(mean, expected)
    assert np.ptp(std) < 1e-9


def test_scorers_and_pipelines_find_the_forecast():
    pipeline = make_pipeline(StandardScaler(), EnsembleForecaster(BaggingRegressor(Ridge(), 3)))
    assert isinstance(forecast_of(pipeline.fit(X, y), X_NEW), EnsembleForecast)


def test_metadata_routing():
    with config_context(enable_metadata_routing=True):
        forest = RandomForestRegressor(5, random_state=0).set_fit_request(sample_weight=True)
        model = ForestForecaster(forest).fit(X, y, sample_weight=WEIGHT)
    forest = RandomForestRegressor(5, random_state=0)
    expected = ForestForecaster(forest).fit(X, y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(model.predict(X_NEW), expected.predict(X_NEW))


def test_bad_input():
    with pytest.raises(NotFittedError):
        ForestForecaster().predict_forecast(X)
    with pytest.raises(ValueError, match="parameter must name the level among the parameters of"):
        QuantileForecaster(LinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match="loss='squared_error', for which quantile is not the"):
        QuantileForecaster(HistGradientBoostingRegressor()).fit(X, y)
    with pytest.raises(ValueError, match="levels must increase"):
        QuantileForecaster(levels=[0.9, 0.1]).fit(X, y)
    with pytest.raises(ValueError, match="which has stages that are added up"):
        EnsembleForecaster(GradientBoostingRegressor(n_estimators=3)).fit(X, y)
    with pytest.raises(ValueError, match="which has none"):
        EnsembleForecaster(Ridge()).fit(X, y)
    with pytest.raises(ValueError, match="'estimator' parameter"):
        ForestForecaster(Ridge()).fit(X, y)
    with pytest.raises(ValueError, match="cv=5 needs at least 5 samples"):
        ResidualForecaster(Ridge()).fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="y must be finite"):
        ResidualForecaster(Ridge()).fit(X, y * np.nan)


OF_BOOTSTRAP = dict.fromkeys(
    [
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ],
    "bootstrap samples are drawn by rows",
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "failing"),
    [
        (ForestForecaster(RandomForestRegressor(2, bootstrap=False, random_state=0)), {}),
        (
            EnsembleForecaster(BaggingRegressor(None, 2, max_features=0.8, random_state=0)),
            OF_BOOTSTRAP,
        ),
        (EnsembleForecaster(VotingRegressor([("a", Ridge()), ("b", LinearRegression())])), {}),
        (QuantileForecaster(QuantileRegressor(alpha=0), levels=[0.5]), {}),
        (ResidualForecaster(Ridge(), cv=2), {}),
    ],
    ids=["forest", "bagging", "voting", "quantiles", "residual"],
)
def test_passes_every_check(model, failing):
    results = check_estimator(model, expected_failed_checks=failing, on_fail=None, on_skip=None)
    bad = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert bad == {}
