"""Forecasts from the results of other packages and models."""

import numpy as np

from .._inputs.arrays import as_array
from ._base import Forecast
from ._distribution import DistributionForecast
from ._foreign import is_distribution, normal_parameters, unwrap_ngboost
from ._gaussian import GaussianForecast

_CONSTRUCTORS = (
    "(mean, std) or GaussianForecast(mean, std) for normal distributions, "
    "EnsembleForecast(members), QuantileForecast(quantiles, levels), "
    "GaussianMixtureForecast(mean, std, weights) or DistributionForecast(dist)"
)


def as_forecast(obj: object, *, name: str = "y_forecast") -> Forecast:
    """Make a forecast of what models return.

    Parameters
    ----------
    obj : object
        A forecast of this module, which is returned as it is; the pair ``(mean, std)`` that
        ``predict(X, return_std=True)`` returns; or an object that holds the distributions of all
        samples, as :class:`DistributionForecast` takes it. Normal distributions of any package
        become a :class:`GaussianForecast`.

    name : str, default="y_forecast"
        What the argument is called in error messages.

    Returns
    -------
    forecast : Forecast
        One of the classes of this module.

    Raises
    ------
    TypeError
        If this is no forecast. An array of two dimensions is refused, as members, quantiles, and
        columns of means and standard deviations look alike.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> from skcalib.forecasts import as_forecast
    >>> X, y = load_diabetes(return_X_y=True)
    >>> as_forecast(BayesianRidge().fit(X, y).predict(X, return_std=True))
    GaussianForecast(n_samples=442)
    """
    if isinstance(obj, Forecast):
        return obj
    if isinstance(obj, tuple) and len(obj) == 2:
        return GaussianForecast(*obj)
    if is_distribution(obj):
        normal = normal_parameters(obj)
        if normal is not None and np.ndim(normal[0]) == 1:
            return GaussianForecast(*normal)
        return DistributionForecast(unwrap_ngboost(obj))
    raise TypeError(
        f"{name} must be a forecast; found {_format_type(obj, name)}. Pass {_CONSTRUCTORS}."
    )


def _format_type(obj: object, name: str) -> str:
    if isinstance(obj, tuple):
        return f"a tuple of {len(obj)} values"
    if isinstance(obj, type):
        return f"the class {obj.__name__} itself"
    if not isinstance(obj, str) and (hasattr(obj, "__array__") or isinstance(obj, list)):
        shape = as_array(obj, name).shape
        kinds = " (members, quantiles or columns of mean and std look alike)" * (len(shape) == 2)
        return f"an array of shape {shape}, which does not say what it holds{kinds}"
    return f"{type(obj).__name__}"
