"""A regressor whose forecasts are recalibrated."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._inputs.by import check_by
from .._inputs.scikit_learn import HasMethods, check_method_params, fit_context, safe_split
from .._inputs.weights import check_sample_weight
from ..forecasts import Forecast, ResidualForecast, forecast_of
from ..forecasts._checks import check_outcome_values
from ..forecasts._concatenate import concatenate
from ..forecasts._estimators import has_forecast
from ..forecasts._forecaster_base import ForecastingRegressor, adopt_features
from ._by import check_takes_by
from ._cross_fitting import CrossFitting, check_partition
from ._forecast_auto import AutoForecastRecalibrator
from ._habits import recalibrator_named, without


class RecalibratedRegressor(ForecastingRegressor, CrossFitting):
    """A regressor whose forecasts are recalibrated by cross-fitting.

    Any regressor will do. It is asked for a forecast, a distribution of the outcome, by the method
    that tells the most (:func:`skcalib.forecasts.forecast_of`); to one that only predicts a number,
    its out-of-fold residuals are added.

    Parameters
    ----------
    estimator : estimator
        A regressor. A :class:`sklearn.frozen.FrozenEstimator` is used as it is; the recalibrator is
        then fitted on all data passed to :meth:`fit`.

    recalibrator : estimator, default=None
        Any recalibrator of forecasts: it is fitted on forecasts and outcomes, and transforms
        forecasts. None stands for an :class:`AutoForecastRecalibrator`, which chooses one.

    cv : int, cross-validation generator or iterable, default=5
        The folds whose forecasts the recalibrator is fitted on: a number of folds, or a splitter
        whose test sets are a partition of the samples; `groups` are passed to :meth:`fit`.

    n_jobs : int, default=None
        Number of jobs that fit the folds; None means 1 unless in a :obj:`joblib.parallel_backend`
        context.

    Attributes
    ----------
    estimator_ : estimator
        The regressor, fitted on all samples.

    recalibrator_ : estimator
        The recalibrator, fitted on the out-of-fold forecasts.

    residuals_ : ndarray of shape (n_samples,) or None
        Out-of-fold residuals of a regressor that only predicts a number.

    n_features_in_ : int
        Number of features, if the regressor knows it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the regressor knows them.

    See Also
    --------
    RecalibratedClassifier : The same for classifiers.

    Notes
    -----
    The regressor is fitted once for each fold, and once more on all samples; the recalibrator is
    fitted once, on the out-of-fold forecasts of all samples.

    What :meth:`predict_interval` and :meth:`predict_quantiles` guarantee:

    - With a frozen regressor and ``PITRecalibrator()`` (of continuous forecasts) or a
      :class:`QuantileRecalibrator`, coverage is at least what is asked for, and at most 1/(n + 1)
      more for a quantile, if the samples given to :meth:`fit` and new ones are exchangeable
      and none of them was used to fit the regressor.
    - With cross-fitting no such bound holds: the regressor that predicts is not the one
      whose forecasts were ranked. Coverage is mostly a little above what is asked for, as the
      regressor of all samples is the better one: 90 % intervals of a ``BayesianRidge`` with 8
      features and ``PITRecalibrator()`` covered 95.0 % for 30 samples, 90.6 % for 100. The
      bound :math:`1 - 2α` of [1]_ is that of intervals which put together the regressors of all
      folds (CV+); it does not carry over to this single one.
    - With the default recalibrator, or any step before the conformal one that is fitted on the same
      samples, nothing is guaranteed either (the default covered 87.7 % and 89.3 % there).

    All these are statements on average over samples. A map of levels cannot mend standard
    deviations that are many times too small; the default also tries to move the scale first.

    The residuals of a regressor that only predicts a number are its forecast for all samples,
    these included. For that forecast there is little left to calibrate.

    References
    ----------
    .. [1] Barber, Candès, Ramdas and Tibshirani (2021). Predictive inference with the jackknife+.
       :doi:`10.1214/20-AOS1965`

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> from skcalib.recalibration import RecalibratedRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RecalibratedRegressor(BayesianRidge()).fit(X[:300], y[:300])
    >>> low, high = model.predict_interval(X[300:], 0.9)
    >>> print(f"{((y[300:] >= low) & (y[300:] <= high)).mean():.2f}")
    0.91

    Guaranteed intervals, from samples that a frozen regressor has not seen:

    >>> from sklearn.frozen import FrozenEstimator
    >>> from skcalib.recalibration import PITRecalibrator
    >>> frozen = FrozenEstimator(BayesianRidge().fit(X[:150], y[:150]))
    >>> model = RecalibratedRegressor(frozen, PITRecalibrator()).fit(X[150:300], y[150:300])
    >>> model.predict_quantiles(X[300:302], [0.1, 0.9]).round(-1)
    array([[150., 300.],
           [ 50., 200.]])
    """

    _parameter_constraints: dict = {
        **CrossFitting._parameter_constraints,
        "recalibrator": [HasMethods(["fit", "transform"]), None],
    }

    @without(method=lambda name: f"recalibrator={recalibrator_named(name, 'transform')}")
    def __init__(
        self,
        estimator: Any,
        recalibrator: Any = None,
        *,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        by: Any = None,
        **params: Any,
    ) -> Self:
        """Fit the regressor and the recalibrator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        y : array-like of shape (n_samples,)
            Outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, for the recalibrator and, if it takes them (with metadata routing:
            requests them), for the regressor.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            The subgroup of each sample, for a recalibrator that takes them, such as a
            :class:`SubgroupForecastRecalibrator`.

        **params : dict
            Passed to the regressor's `fit`, but `groups` to the splitter; with metadata routing,
            to whatever requests them.

        Returns
        -------
        self : object
            The fitted regressor.
        """
        check_regressor(self.estimator)
        y = column_or_1d(y, warn=True)
        X, y = indexable(X, check_outcome_values(y, len(y), "y"))
        chosen = AutoForecastRecalibrator() if self.recalibrator is None else self.recalibrator
        check_takes_by(chosen, by, "fit(X, y, by=...)")
        if by is not None:
            check_by(by, len(y), sample_weight)
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, len(y))
            if self._takes_weights():
                params["sample_weight"] = sample_weight
        routed = self._route("fit", params)
        fitted, predicted = self._fit_out_of_fold(X, y, routed)
        if not has_forecast(self.estimator):
            # each sample's own residual is among them: without it, rows would need other samples
            fitted = _Fitted(fitted.estimator, y - predicted, sample_weight)
            predicted = ResidualForecast(predicted, y - predicted, sample_weight)
        fit_params = {"sample_weight": sample_weight, "by": by}
        fit_params = {name: value for name, value in fit_params.items() if value is not None}
        self.recalibrator_ = clone(chosen).fit(predicted, y, **fit_params)
        self._fitted = fitted
        adopt_features(self, fitted.estimator)
        return self

    @property
    def estimator_(self) -> Any:
        """The regressor, fitted on all samples."""
        return self._fitted.estimator

    @property
    def residuals_(self) -> np.ndarray | None:
        """Out-of-fold residuals of a regressor that only predicts a number."""
        return self._fitted.residuals

    def _fit_out_of_fold(self, X: Any, y: Any, routed: Any) -> tuple["_Fitted", Any]:
        """The regressor of all samples, and what regressors fitted without it say of each."""
        respond = forecast_of if has_forecast(self.estimator) else _numbers
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
            return _Fitted(self.estimator), respond(self.estimator, X)
        folds = self._folds(X, y, routed)
        rows = check_partition([test for _, test in folds], len(y), "forecasts", "")
        whole = clone(self.estimator).fit(X, y, **routed.estimator.fit)
        parts = Parallel(n_jobs=self.n_jobs)(
            delayed(_predict_fold)(
                clone(self.estimator), respond, X, y, train, test, routed.estimator.fit
            )
            for train, test in folds
        )
        join = concatenate if has_forecast(self.estimator) else np.concatenate
        return _Fitted(whole), join(parts)[rows]

    def predict_forecast(self, X: ArrayLike, *, by: Any = None) -> Forecast:
        """Recalibrated forecasts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            The subgroup of each sample, in the columns that it had at :meth:`fit`. The forecasts
            tell means, quantiles and intervals, which other methods here find without `by`.

        Returns
        -------
        forecast : Forecast
            A distribution of the outcome for each sample.
        """
        check_is_fitted(self)
        check_takes_by(self.recalibrator_, by, "predict_forecast(X, by=...), then .interval(0.9)")
        subgroups = {} if by is None else {"by": by}
        return self.recalibrator_.transform(self._fitted.forecast(X), **subgroups)

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            What the recalibrator uses (`sample_weight` and `by`), and what is passed on to the
            regressor and the splitter.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A fitted regressor, and its residuals if it only predicts a number."""

    estimator: Any
    residuals: np.ndarray | None = None
    weight: np.ndarray | None = None

    def forecast(self, X: Any) -> Forecast:
        if self.residuals is None:
            return forecast_of(self.estimator, X)
        return ResidualForecast(_numbers(self.estimator, X), self.residuals, self.weight)


def check_regressor(estimator: Any) -> None:
    """Something that predicts a number, or its distribution; skpro's estimators have no tags."""
    name = type(estimator).__name__
    if hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator):
        raise ValueError(
            f"estimator must be a regressor; found the classifier {name}. Use "
            "RecalibratedClassifier for classes."
        )
    if not (has_forecast(estimator) or hasattr(estimator, "predict")):
        raise ValueError(
            f"estimator must be a regressor, with predict or a method for forecast_of; found "
            f"{name}, which has neither. Pass a regressor."
        )


def _numbers(estimator: Any, X: Any) -> np.ndarray:
    """The predictions of a regressor, (n,)."""
    return column_or_1d(estimator.predict(X))


def _predict_fold(
    estimator: Any, respond: Any, X: Any, y: Any, train: Any, test: Any, fit_params: Any
) -> Any:
    """What the regressor fitted on the other folds says of this one."""
    fit_params = check_method_params(X, fit_params, indices=train)
    X_train, y_train = safe_split(estimator, X, y, train)
    X_test, _ = safe_split(estimator, X, y, test, train)
    return respond(estimator.fit(X_train, y_train, **fit_params), X_test)
