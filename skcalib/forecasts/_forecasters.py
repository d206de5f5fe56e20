"""Regressors with `predict_forecast` from regressors as they are."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.model_selection import cross_val_predict
from sklearn.utils import column_or_1d
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from .._inputs.scikit_learn import HasMethods
from ._as_forecast import forecast_of, has_forecast
from ._base import Forecast
from ._concatenate import mixture_of
from ._ensemble import EnsembleForecast, ResidualForecast
from ._forecaster_base import Forecaster
from ._quantile import QuantileForecast, check_grid


class QuantileForecaster(Forecaster):
    """Quantile forecasts: one quantile regressor for each level.

    Parameters
    ----------
    estimator : estimator, default=None
        A regressor of one quantile. By default a
        :class:`~sklearn.ensemble.HistGradientBoostingRegressor` with ``loss="quantile"``.

    levels : array-like of shape (n_levels,), \
            default=(0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
        Levels in (0, 1), increasing.

    parameter : str, default=None
        The parameter of the regressor that holds the level. By default "quantile", or else
        "alpha". In a pipeline it is named like "gradientboostingregressor__alpha".

    n_jobs : int, default=None
        Number of jobs that fit the regressors; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    Attributes
    ----------
    estimators_ : list of estimator
        The fitted regressors, one for each level.

    levels_ : ndarray of shape (n_levels,)
        The levels.

    n_features_in_ : int
        Number of features, if the regressors know it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the regressors know them.

    See Also
    --------
    skcalib.recalibration.QuantileRecalibrator : Gives the quantiles guaranteed coverage.

    Notes
    -----
    Quantiles that cross are sorted in each row, which never makes their mean pinball loss larger
    [1]_. `predict` returns the median. The cost is that of one fit for each level.

    References
    ----------
    .. [1] Chernozhukov, Fernández-Val and Galichon (2010). Quantile and probability curves without
       crossing. :doi:`10.3982/ECTA7880`

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import QuantileRegressor
    >>> from skcalib.forecasts import QuantileForecaster
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = QuantileForecaster(QuantileRegressor(alpha=0), levels=[0.1, 0.5, 0.9]).fit(X, y)
    >>> model.predict_forecast(X)
    QuantileForecast(n_samples=442)
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "levels": ["array-like"],
        "parameter": [str, None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        levels: ArrayLike = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95),
        parameter: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.levels = levels
        self.parameter = parameter
        self.n_jobs = n_jobs

    def _unfitted(self) -> Any:
        if self.estimator is None:
            return HistGradientBoostingRegressor(loss="quantile", quantile=0.5)
        return self.estimator

    def _fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, params: dict) -> Any:
        self.levels_ = check_grid(self.levels, np.size(self.levels))
        estimator = self._unfitted()
        name = check_parameter(estimator, self.parameter)
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fitted)(clone(estimator).set_params(**{name: level}), X, y, params)
            for level in self.levels_.tolist()
        )
        return self.estimators_[0]

    def _forecast(self, X: Any) -> Forecast:
        columns = [column_or_1d(estimator.predict(X)) for estimator in self.estimators_]
        return QuantileForecast(np.sort(np.column_stack(columns), axis=1), self.levels_)


class ForestForecaster(Forecaster):
    """Forecasts of a forest: the outcomes of the training samples that share leaves.

    A training sample counts as often as it falls into the leaf of the new one, in proportion to its
    share of that leaf: the quantile regression forest [1]_.

    Parameters
    ----------
    estimator : estimator, default=None
        A forest: it has a method `apply` that returns the leaf of each sample in each tree. By
        default a :class:`~sklearn.ensemble.RandomForestRegressor` with ``min_samples_leaf=5``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted forest.

    outcomes_ : ndarray of shape (n_outcomes,)
        The distinct outcomes of the training samples, sorted.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if they are strings.

    See Also
    --------
    EnsembleForecaster : Predictions of the trees instead, which lack the noise of the outcomes.

    Notes
    -----
    All training samples count in their leaves, not only those that a tree was grown on. So the mean
    of a forecast differs a little from the prediction of the forest. Leaves of a single sample make
    forecasts too narrow for the training samples, but not for others. The forecasts of n samples
    take :math:`O(nm)` memory for m distinct outcomes.

    References
    ----------
    .. [1] Meinshausen (2006). Quantile regression forests. Journal of Machine Learning Research 7.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skcalib.forecasts import ForestForecaster
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ForestForecaster().fit(X[:300], y[:300])
    >>> model.predict_forecast(X[300:])
    EnsembleForecast(n_samples=142)
    """

    _parameter_constraints: dict = {"estimator": [HasMethods(["fit", "apply"]), None]}

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def _unfitted(self) -> Any:
        return (
            RandomForestRegressor(min_samples_leaf=5) if self.estimator is None else self.estimator
        )

    def _fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, params: dict) -> Any:
        self.estimator_ = clone(self._unfitted()).fit(X, y, **params)
        leaves = self.estimator_.apply(X)  # (n, trees)
        # leaves of different trees become different columns
        self._ends = np.cumsum([0, *(leaves.max(axis=0) + 1)])
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.outcomes_, code = np.unique(y, return_inverse=True)
        held = self._indicator(leaves, np.broadcast_to(weight[:, None], leaves.shape))
        total = np.asarray(held.sum(axis=0)).ravel()
        share = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)
        member = sparse.csr_array(
            (np.ones(len(y)), (code, np.arange(len(y)))), shape=(len(self.outcomes_), len(y))
        )
        self._shares = (member @ held @ sparse.diags_array(share)).tocsr()  # (m, leaves)
        return self.estimator_

    def _indicator(self, leaves: np.ndarray, value: np.ndarray) -> sparse.csr_array:
        """(n, leaves of all trees), the value where a sample falls into the leaf."""
        n, n_trees = leaves.shape
        column = (leaves + self._ends[:-1]).ravel()
        start = np.arange(0, n * n_trees + 1, n_trees)
        return sparse.csr_array((value.ravel(), column, start), shape=(n, self._ends[-1]))

    def _forecast(self, X: Any) -> Forecast:
        leaves = self.estimator_.apply(X)
        reached = self._indicator(leaves, np.ones(leaves.shape))
        weight = (reached @ self._shares.T).toarray()
        members = np.broadcast_to(self.outcomes_, weight.shape)
        if len(self.outcomes_) == 1:  # an ensemble has at least two members
            members, weight = np.tile(members, 2), np.tile(weight, 2)
        return EnsembleForecast(members, weight)


class EnsembleForecaster(Forecaster):
    """Forecasts of an ensemble: what its members predict.

    Parameters
    ----------
    estimator : estimator, default=None
        An ensemble: once fitted, it has its members as `estimators_`, which predict the outcome
        itself. By default a :class:`~sklearn.ensemble.BaggingRegressor`. A deep ensemble is
        ``BaggingRegressor(MLPRegressor(), bootstrap=False)``, whose members differ by their seeds.

    Attributes
    ----------
    estimator_ : estimator
        The fitted ensemble.

    n_features_in_ : int
        Number of features, if the ensemble knows it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the ensemble knows them.

    See Also
    --------
    ForestForecaster : Outcomes in the leaves of a forest.
    skcalib.recalibration.RecalibratedRegressor : Widens the forecasts by the noise that they lack.

    Notes
    -----
    Members that only predict a number make an :class:`EnsembleForecast`. Its spread is that of the
    fitted means, without the noise of the outcomes, so it is too narrow and needs recalibration.
    Members that predict a mean and a standard deviation make a :class:`GaussianMixtureForecast`.
    The weights of members, if the ensemble has any, do not count.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import BaggingRegressor
    >>> from sklearn.linear_model import BayesianRidge
    >>> from skcalib.forecasts import EnsembleForecaster
    >>> X, y = load_diabetes(return_X_y=True)
    >>> EnsembleForecaster().fit(X, y).predict_forecast(X)
    EnsembleForecast(n_samples=442)
    >>> EnsembleForecaster(BaggingRegressor(BayesianRidge())).fit(X, y).predict_forecast(X)
    GaussianMixtureForecast(n_samples=442)
    """

    _parameter_constraints: dict = {"estimator": [HasMethods(["fit", "predict"]), None]}

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def _unfitted(self) -> Any:
        return BaggingRegressor() if self.estimator is None else self.estimator

    def _fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, params: dict) -> Any:
        self.estimator_ = clone(self._unfitted()).fit(X, y, **params)
        check_members(self.estimator_)
        return self.estimator_

    def _forecast(self, X: Any) -> Forecast:
        members = self.estimator_.estimators_
        chosen = getattr(self.estimator_, "estimators_features_", [slice(None)] * len(members))
        if hasattr(members[0], "feature_names_in_"):
            given = [X] * len(members)
        else:
            array = validate_data(
                self.estimator_,
                X,
                reset=False,
                dtype=None,
                accept_sparse="csr",
                ensure_all_finite=False,
            )
            given = [array[:, columns] for columns in chosen]
        pairs = list(zip(members, given, strict=True))
        if all(has_forecast(member) for member in members):
            return mixture_of([forecast_of(*pair) for pair in pairs])
        columns = [column_or_1d(member.predict(values)) for member, values in pairs]
        return EnsembleForecast(np.column_stack(columns))


class ResidualForecaster(Forecaster):
    """Forecasts of a regressor that predicts a number: its residuals are added to that.

    Parameters
    ----------
    estimator : estimator
        A regressor.

    cv : int, cross-validation generator or iterable, default=5
        The folds of the residuals: each is that of a regressor fitted without the sample.

    n_jobs : int, default=None
        Number of jobs that fit the folds; None means 1 unless in a :obj:`joblib.parallel_backend`
        context.

    Attributes
    ----------
    estimator_ : estimator
        The regressor, fitted on all samples.

    residuals_ : ndarray of shape (n_samples,)
        Out-of-fold residuals.

    n_features_in_ : int
        Number of features, if the regressor knows it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the regressor knows them.

    See Also
    --------
    skcalib.recalibration.RecalibratedRegressor : Does the same, and recalibrates the result.

    Notes
    -----
    All samples share one sample of residuals: the forecasts of n samples take :math:`O(n + m)`
    memory for m residuals. They are as wide everywhere.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from skcalib.forecasts import ResidualForecaster
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ResidualForecaster(Ridge()).fit(X, y)
    >>> low, high = model.predict_interval(X, 0.9)
    >>> print(f"{((y >= low) & (y <= high)).mean():.2f}")
    0.91
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"])],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
    }

    def __init__(self, estimator: Any, *, cv: Any = 5, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.cv = cv
        self.n_jobs = n_jobs

    def _fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None, params: dict) -> Any:
        check_enough_to_split(self.cv, len(y))
        predicted = cross_val_predict(
            self.estimator, X, y, cv=self.cv, n_jobs=self.n_jobs, params=params
        )
        self.residuals_ = y - column_or_1d(predicted)
        self._weight = sample_weight
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return self.estimator_

    def _forecast(self, X: Any) -> Forecast:
        location = column_or_1d(self.estimator_.predict(X))
        return ResidualForecast(location, self.residuals_, self._weight)


def _fitted(estimator: Any, X: Any, y: np.ndarray, params: dict) -> Any:
    return estimator.fit(X, y, **params)


def check_parameter(estimator: Any, name: str | None) -> str:
    """The parameter of the level, which must not be one without effect."""
    known = estimator.get_params()
    name = name or next((own for own in ("quantile", "alpha") if own in known), "")
    if name not in known:
        raise ValueError(
            f"parameter must name the level among the parameters of {type(estimator).__name__}; "
            f"found {name or None!r}. Pass a regressor of quantiles, or such as "
            "parameter='gradientboostingregressor__alpha'."
        )
    loss = known.get(name[: name.rfind("_") + 1] + "loss", "quantile")
    if loss != "quantile":
        raise ValueError(
            f"estimator must be a regressor of quantiles; found {type(estimator).__name__} with "
            f"loss={loss!r}, for which {name} is not the level. Pass loss='quantile'."
        )
    return name


def check_members(estimator: Any) -> None:
    """Members that predict the outcome, of which there are at least two."""
    members = getattr(estimator, "estimators_", None)
    if members is None or np.ndim(members) != 1:
        found = "none" if members is None else "stages that are added up"
        raise ValueError(
            "estimator must be an ensemble, whose fitted attribute estimators_ lists members that "
            f"predict the outcome; found {type(estimator).__name__}, which has {found}. Pass a "
            "BaggingRegressor or the like."
        )


def check_enough_to_split(cv: Any, n: int) -> None:
    if isinstance(cv, Integral) and n < int(cv):
        raise ValueError(
            f"cv={cv} needs at least {cv} samples; found {n} sample(s) (n_samples={n}). Choose "
            "fewer folds."
        )
