"""The forecast of an estimator is found wherever it hides, and never replaced by another one."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectKBest, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.forecasts import DistributionForecast, GaussianForecast, QuantileForecast, get_forecast
from skcalib.forecasts._estimators import has_forecast
from skcalib.metrics import get_scorer
from skcalib.recalibration import LocationScaleRecalibrator, PITRecalibrator


class Forecaster(RegressorMixin, BaseEstimator):
    """Has a forecast of its own, and a mean and standard deviation that say less."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y):
        self.inner_ = BayesianRidge().fit(X, y)
        self.coef_ = self.inner_.coef_
        return self

    def predict(self, X, return_std=False):
        return self.inner_.predict(X, return_std=return_std)

    def predict_forecast(self, X):
        quartiles = self.predict(X)[:, None] + self.shift + [-1.0, 0.0, 2.0]
        return QuantileForecast(quartiles, [0.25, 0.5, 0.75])


@pytest.fixture(scope="module")
def data():
    return make_regression(60, 4, noise=5.0, random_state=0)


def search(estimator, name):
    return GridSearchCV(estimator, {name: [0.0, 1.0]}, cv=2)


WRAPPED = {
    "itself": Forecaster(),
    "pipeline": make_pipeline(StandardScaler(), Forecaster()),
    "pipeline of pipelines": make_pipeline(
        make_pipeline(StandardScaler(), SelectKBest(f_regression, k=2)),
        make_pipeline(StandardScaler(), Forecaster()),
    ),
    "skipped steps": Pipeline([("a", "passthrough"), ("b", None), ("c", Forecaster())]),
    "search": search(Forecaster(), "shift"),
    "random search": RandomizedSearchCV(Forecaster(), {"shift": [1.0, 2.0]}, n_iter=1, cv=2),
    "search of a pipeline": search(
        make_pipeline(StandardScaler(), Forecaster()), "forecaster__shift"
    ),
    "pipeline with a search": make_pipeline(StandardScaler(), search(Forecaster(), "shift")),
    "search of a search": search(
        GridSearchCV(make_pipeline(StandardScaler(), Forecaster()), {}, cv=2),
        "estimator__forecaster__shift",
    ),
    "elimination": RFE(
        make_pipeline(Forecaster()), importance_getter="named_steps.forecaster.coef_"
    ),
}


def last_step(model, X):
    """The forecaster inside and the features that it gets, by the classes that are tested."""
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return last_step(model.steps[-1][1], X)
    if isinstance(model, GridSearchCV | RandomizedSearchCV):
        return last_step(model.best_estimator_, X)
    if isinstance(model, RFE):
        return last_step(model.estimator_, model.transform(X))
    return model, X


@pytest.mark.filterwarnings("ignore::FutureWarning")  # an unused step
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("model", WRAPPED.values(), ids=WRAPPED)
def test_forecasts_are_found_wherever_they_hide(model, frozen, data):
    X, y = data
    assert has_forecast(model)
    model = model.fit(X, y)
    inner, features = last_step(model, X)
    expected = inner.predict_forecast(features)
    if frozen:
        model = FrozenEstimator(make_pipeline(FrozenEstimator(model)))
    actual = get_forecast(model, X)
    assert has_forecast(model)
    assert type(actual) is QuantileForecast
    np.testing.assert_array_equal(actual.values, expected.values)
    np.testing.assert_allclose(actual.values[:, 1], model.predict(X) + inner.shift, atol=1e-9)


@pytest.mark.parametrize("inner", [BayesianRidge(), GaussianProcessRegressor(alpha=1.0)], ids=str)
def test_mean_and_standard_deviation_make_a_normal_forecast(inner, data):
    X, y = data
    model = make_pipeline(StandardScaler(), inner).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    forecast = get_forecast(GridSearchCV(model, {}, cv=2).fit(X, y), X)
    assert type(forecast) is GaussianForecast
    np.testing.assert_allclose(forecast.mean(), mean)
    np.testing.assert_allclose(forecast.std(), std)


class Gumbel:
    """What packages of distributions return: an object with the methods of a distribution."""

    def __init__(self, loc):
        self.loc = loc
        self.shape = loc.shape

    def cdf(self, y):
        return np.exp(-np.exp(self.loc - y))

    def ppf(self, level):
        return self.loc - np.log(-np.log(level))


@pytest.mark.parametrize("name", ["pred_dist", "predict_proba"])
def test_distributions_of_other_packages(name, data):
    class Other(LinearRegression):
        pass

    setattr(Other, name, lambda self, X: Gumbel(self.predict(X)))
    X, y = data
    model = make_pipeline(StandardScaler(), Other())
    assert has_forecast(model)
    forecast = get_forecast(model.fit(X, y), X)
    assert type(forecast) is DistributionForecast
    np.testing.assert_allclose(forecast.ppf(np.exp(-1.0)), model.predict(X), rtol=1e-12)


def test_estimators_of_skpro_and_ngboost(data):
    residual = pytest.importorskip("skpro.regression.residual")
    ngboost = pytest.importorskip("ngboost")
    X, y = data
    with np.errstate(all="ignore"):
        of_skpro = residual.ResidualDouble(LinearRegression()).fit(X, y)
        of_ngboost = ngboost.NGBRegressor(n_estimators=5, verbose=False).fit(X, y)
    for model in (of_skpro, of_ngboost):
        mean = np.ravel(model.predict(X))
        np.testing.assert_allclose(get_forecast(model, X).mean(), mean, rtol=1e-6)


class HandsOn(BaseEstimator):
    """A wrapper that hands any argument on, and so a request for standard deviations, too."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        return self

    def predict(self, X, **params):
        return self.estimator.predict(X, **params)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        RandomForestRegressor(2),
        make_pipeline(StandardScaler(), LinearRegression()),
        HandsOn(Forecaster()),
    ],
    ids=str,
)
def test_estimators_without_a_forecast_are_refused(model, data):
    X, y = data
    assert not has_forecast(model)
    name = type(last_step(model, X[:0])[0] if not isinstance(model, Pipeline) else model[-1])
    with pytest.raises(TypeError, match=f"found {name.__name__}, which has none.*Recalibrated"):
        get_forecast(model.fit(X, y), X)


def test_classifiers_are_refused(data):
    X, y = data
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y > 0)
    assert not has_forecast(model)
    with pytest.raises(TypeError, match=r"must have a forecast.*found LogisticRegression"):
        get_forecast(model, X)


@pytest.mark.parametrize("inner", [Forecaster(), BayesianRidge()], ids=str)
def test_forecasts_of_transformed_outcomes_are_refused(inner, data):
    X, y = data
    model = TransformedTargetRegressor(inner, func=np.arcsinh, inverse_func=np.sinh)
    model = make_pipeline(StandardScaler(), model)
    assert not has_forecast(model)
    with pytest.raises(TypeError, match=r"found TransformedTargetRegressor.*Transform y"):
        get_forecast(FrozenEstimator(model.fit(X, y)), X)


def test_searches_must_have_kept_the_best_estimator(data):
    X, y = data
    model = GridSearchCV(Forecaster().fit(X, y), {}, cv=2)
    with pytest.raises(NotFittedError):
        get_forecast(model, X)
    model.set_params(refit=False).fit(X, y)
    with pytest.raises(TypeError, match=r"found GridSearchCV with refit=False\. Pass refit=True"):
        get_forecast(model, X)


def test_a_search_over_a_recalibrator_scores_what_it_returns():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=60)
    forecast, y = GaussianForecast(mean, 1.0), rng.normal(mean, 3.0)
    grid = {"scale_only": [True, False]}
    scorer = get_scorer("neg_continuous_ranked_probability_loss")
    recalibrator = LocationScaleRecalibrator()
    search = GridSearchCV(recalibrator, grid, scoring=scorer, error_score="raise").fit(forecast, y)
    expected = GridSearchCV(recalibrator, grid).fit(forecast, y)
    score = "mean_test_score"
    np.testing.assert_allclose(search.cv_results_[score], expected.cv_results_[score])
    fitted = make_pipeline(LocationScaleRecalibrator(), PITRecalibrator("beta")).fit(forecast, y)
    found = get_forecast(fitted, forecast).crps(y)
    np.testing.assert_array_equal(found, fitted.transform(forecast).crps(y))
    with pytest.raises(TypeError, match="must have a forecast"):  # features are no forecasts
        get_forecast(StandardScaler().fit(np.eye(2)), np.eye(2))
    with pytest.raises(NotFittedError):
        get_forecast(recalibrator, forecast)


def test_a_dummy_has_no_forecast(data):
    with pytest.raises(TypeError, match="must have a forecast"):
        get_forecast(DummyRegressor().fit(*data), data[0])
