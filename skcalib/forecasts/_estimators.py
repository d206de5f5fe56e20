"""The forecasts of fitted estimators."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._inputs.annotations import Estimator
from .._inputs.arrays import ArrayLike
from .._inputs.probabilities import is_forecast
from ._as_forecast import as_forecast
from ._base import Forecast


def get_forecast(estimator: Estimator, X: ArrayLike) -> Forecast:
    """Forecast of a fitted estimator.

    What the estimator knows of the outcomes is taken in this order: its `predict_forecast`; the
    distribution of NGBoost's `pred_dist`; the normal distribution of ``predict(X,
    return_std=True)``; the distribution of skpro's `predict_proba`. Pipelines, searches, feature
    eliminations and frozen estimators are looked into. For a recalibrator of forecasts it is the
    result of `transform`.

    Parameters
    ----------
    estimator : object
        A fitted estimator.

    X : array-like of shape (n_samples, n_features)
        Features, as `predict` of the estimator takes them; or forecasts, as `transform` of a
        recalibrator takes them.

    Returns
    -------
    forecast : Forecast
        A predictive distribution for each sample.

    Raises
    ------
    TypeError
        If the estimator has none of these methods, or is a
        :class:`~sklearn.compose.TransformedTargetRegressor`: the forecast of the regressor inside
        is one of the transformed outcomes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skcalib.forecasts import get_forecast
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y)
    >>> get_forecast(model, X)
    GaussianForecast(n_samples=442)
    """
    steps, last = _find_predictor(estimator, fitted=True)
    maps_forecasts = hasattr(last, "transform") and not hasattr(last, "predict")
    predict = last.transform if maps_forecasts and is_forecast(X) else check_has_forecast(last)
    for step in steps:
        X = step.transform(X)
    return as_forecast(predict(X))


def has_forecast(estimator: Estimator) -> bool:
    """True if `get_forecast` finds a forecast in an estimator, which may be unfitted."""
    return _forecast_method(_find_predictor(estimator, fitted=False)[1]) is not None


def _find_predictor(estimator: BaseEstimator, *, fitted: bool) -> tuple[list, Any]:
    """Return the steps through which the features pass, and the estimator that predicts.

    The estimator inside a search is the best one if that must be `fitted`, else the one to fit.
    """
    steps: list = []
    while not hasattr(estimator, "predict_forecast"):
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            # a step may be "passthrough", or choose samples in fit alone
            steps += [step for _, step in estimator.steps[:-1] if hasattr(step, "transform")]
            estimator = estimator.steps[-1][1]
        elif isinstance(estimator, RFE):
            steps.append(estimator)
            estimator = estimator.estimator_ if fitted else estimator.estimator
        elif _is_search(estimator):
            if fitted:
                check_search(estimator)
            estimator = estimator.best_estimator_ if fitted else estimator.estimator
        else:
            break
    return steps, estimator


def _is_search(estimator: Estimator) -> bool:
    """True for searches of scikit-learn, and those of other packages that look like them."""
    return all(hasattr(estimator, name) for name in ("estimator", "refit", "cv"))


def _forecast_method(estimator: Estimator) -> Callable | None:
    """Return the method that tells most about the distribution of the outcomes, or None."""
    if isinstance(estimator, DummyRegressor):
        return None  # its standard deviations are 0
    for name in ("predict_forecast", "pred_dist"):
        if hasattr(estimator, name):
            return getattr(estimator, name)
    # looked up by name: an estimator that hands on any argument may hand this one on to another
    predict = getattr(estimator, "predict", None)
    if predict is not None and "return_std" in inspect.signature(predict).parameters:
        return partial(predict, return_std=True)
    # skpro's estimators have no tags; those of classifiers have, and predict an array
    has_tags = hasattr(estimator, "__sklearn_tags__")
    if not (has_tags and is_classifier(estimator)):
        return getattr(estimator, "predict_proba", None)
    return None


def check_search(search: Any) -> None:
    """Refuse a search without a best estimator, which is set by `fit` if `refit` is not False."""
    if not hasattr(search, "best_estimator_"):
        check_is_fitted(search)
        raise TypeError(
            f"estimator must keep its best estimator; found {type(search).__name__} with refit="
            f"{search.refit!r}. Pass refit=True, or the name of a metric."
        )


def check_has_forecast(estimator: Estimator) -> Callable:
    """Return the method that predicts distributions of the outcomes; refuse estimators without."""
    name = type(estimator).__name__
    if isinstance(estimator, TransformedTargetRegressor):
        raise TypeError(
            f"estimator must have a forecast of y itself; found {name}, whose regressor has one of "
            "the transformed y at most. Transform y beforehand, or wrap it in "
            "skcalib.recalibration.RecalibratedRegressor, which learns a forecast."
        )
    method = _forecast_method(estimator)
    if method is None:
        raise TypeError(
            "estimator must have a forecast: predict_forecast, pred_dist, predict with return_std, "
            f"or a predict_proba that returns a distribution; found {name}, which has none of "
            "them. Wrap it in skcalib.recalibration.RecalibratedRegressor, which learns a forecast."
        )
    return method
