"""Forecasts of other packages, where they are installed."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from skcalib.forecasts import DistributionForecast, GaussianForecast, as_forecast

X, Y = load_diabetes(return_X_y=True)


@pytest.mark.filterwarnings("ignore")  # of the other package
def test_ngboost():
    ngboost = pytest.importorskip("ngboost")
    model = ngboost.NGBRegressor(n_estimators=5, verbose=False).fit(X, Y)
    forecast = as_forecast(model.pred_dist(X))
    assert isinstance(forecast, GaussianForecast)
    np.testing.assert_allclose(forecast.loc, model.predict(X))
    model = ngboost.NGBRegressor(ngboost.distns.LogNormal, n_estimators=5, verbose=False)
    dist = model.fit(X, Y).pred_dist(X)
    forecast = as_forecast(dist)
    assert isinstance(forecast, DistributionForecast)
    np.testing.assert_allclose(forecast.cdf(Y), dist.cdf(Y))
    np.testing.assert_allclose(forecast[5:9].logpdf(Y[5:9]), dist.logpdf(Y)[5:9])


@pytest.mark.filterwarnings("ignore")
def test_skpro():
    pytest.importorskip("skpro")
    from skpro.distributions import Laplace, Poisson
    from skpro.regression.residual import ResidualDouble

    dist = ResidualDouble(LinearRegression()).fit(X, Y.reshape(-1, 1)).predict_proba(X[:50])
    forecast = as_forecast(dist)
    assert isinstance(forecast, GaussianForecast)
    np.testing.assert_allclose(forecast.mean(), np.asarray(dist.mean())[:, 0])
    mean, scale = np.arange(5.0), np.linspace(1, 2, 5)
    forecast = as_forecast(Laplace(mu=mean[:, None], scale=scale[:, None]))
    twin = stats.laplace(mean, scale)
    y = np.array([-1.0, 0, 3, 8, 4])
    for name in ("cdf", "logpdf"):
        np.testing.assert_allclose(getattr(forecast, name)(y), getattr(twin, name)(y))
    np.testing.assert_allclose(forecast.ppf(0.2), twin.ppf(0.2))
    np.testing.assert_allclose(forecast.std(), twin.std())
    np.testing.assert_allclose(
        forecast[[4, 0, 0]].cdf(y[:3]), twin.cdf(np.tile(y[:3], (5, 1)).T)[[0, 1, 2], [4, 0, 0]]
    )

    counts, old = as_forecast(Poisson(mu=scale[:, None])), as_forecast(stats.poisson(scale))
    y = np.arange(5.0)
    np.testing.assert_allclose(counts.crps(y), old.crps(y), rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_torch():
    torch = pytest.importorskip("torch")
    mean, scale = torch.arange(4.0), torch.ones(4)
    assert isinstance(as_forecast(torch.distributions.Normal(mean, scale)), GaussianForecast)
    forecast = as_forecast(torch.distributions.Laplace(mean.double(), scale.double()))
    twin = stats.laplace(np.arange(4.0))
    y = np.array([0.3, 1.0, -1.0, 4.0])
    np.testing.assert_allclose(forecast.cdf(y), twin.cdf(y))
    np.testing.assert_allclose(forecast.ppf(0.2), twin.ppf(0.2))
    np.testing.assert_allclose(forecast.logpdf(y), twin.logpdf(y))
    np.testing.assert_allclose(forecast.std(), twin.std())
    single = torch.distributions.Laplace(mean, scale)  # torch's default precision
    np.testing.assert_allclose(as_forecast(single).crps(y), as_forecast(twin).crps(y), rtol=1e-12)
    moved = torch.distributions.TransformedDistribution(
        single, [torch.distributions.AffineTransform(1.0, 2.0)]
    )
    np.testing.assert_allclose(as_forecast(moved).crps(2 * y + 1), 2 * as_forecast(twin).crps(y))
    with pytest.raises(ValueError, match="cdf and icdf"):
        as_forecast(torch.distributions.Gamma(scale, scale))
