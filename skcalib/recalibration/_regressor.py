"""A regressor whose forecasts are recalibrated."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, column_or_1d, get_tags, indexable

from .._inputs.annotations import BaseEstimator, CrossValidator, Estimator, RegressorMixin
from .._inputs.arrays import ArrayLike
from .._inputs.by import Columns
from .._inputs.scikit_learn import estimator_class, fit_context
from .._inputs.warnings import warn
from ..forecasts import Forecast, QuantileForecast, ResidualForecast, get_forecast
from ..forecasts._base import check_coverage, check_outcomes
from ..forecasts._estimators import has_forecast
from ..forecasts._quantile import check_quantile_levels
from ._cross_fitting import CrossFitting, adopt_features
from ._folds import fit_with_units


@estimator_class()
class RecalibratedRegressor(RegressorMixin, CrossFitting):
    """A regressor whose forecasts are recalibrated by cross-fitting.

    A regressor that is fitted already is fitted anew, on the data passed to :meth:`fit`, unless it
    is frozen: ``RecalibratedRegressor(FrozenEstimator(model))``.

    The forecast of any regressor comes from :func:`skcalib.forecasts.get_forecast`, or is its
    prediction plus out-of-fold residuals.

    Parameters
    ----------
    estimator : estimator
        A regressor. With a :class:`sklearn.frozen.FrozenEstimator`, the recalibrator is fitted on
        all data passed to :meth:`fit`.

    recalibrator : estimator, default=None
        A recalibrator of forecasts. None stands for an :class:`AutoRecalibrator`.

    level_parameter : str, default=None
        For a regressor of quantiles, the parameter that holds its level, such as "quantile" of
        :class:`~sklearn.ensemble.HistGradientBoostingRegressor`, or in a pipeline
        "gradientboostingregressor__alpha". One regressor is then fitted for each of `levels`.

    levels : array-like of shape (n_levels,), \
            default=(0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
        Levels in (0, 1), increasing; they count only with a `level_parameter`.

    cv : int, cross-validation generator or iterable, default=5
        A number of folds, or a splitter whose test sets are a partition of the samples, for the
        forecasts that the recalibrator is fitted on. A number with `groups` at :meth:`fit` is a
        :class:`~sklearn.model_selection.GroupKFold`. If the recalibrator makes folds itself, they
        divide no group or, without groups, no test set of a splitter.

    n_jobs : int, default=None
        Number of jobs that fit the folds; see :obj:`joblib.parallel_backend`.

    Attributes
    ----------
    estimator_ : estimator
        The regressor, fitted on all samples. With a `level_parameter`, its `estimators_` are the
        regressors of the levels.

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
    The regressor is fitted once for each fold, and once more on all samples. What
    :meth:`predict_interval` and :meth:`predict_quantiles` guarantee, on average over samples:

    - With a frozen regressor and ``PITRecalibrator()`` (for continuous forecasts, or predictions of
      a number) or a :class:`QuantileRecalibrator`, intervals cover at least what is asked for, and
      quantiles are at most 1/(n + 1) away from it, if the samples given to :meth:`fit` and new ones
      are exchangeable and none was used to fit the regressor.
    - With cross-fitting no such bound holds.
    - With the default recalibrator, or a step before the conformal one that is fitted on the same
      samples, nothing is guaranteed.

    Quantiles that cross are sorted in each row, which never increases their mean pinball loss [1]_.
    Where only quantiles are known, :meth:`predict` returns the median.

    References
    ----------
    .. [1] Chernozhukov, Fernández-Val and Galichon (2010). Quantile and probability curves without
       crossing. :doi:`10.3982/ECTA7880`

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> from skcalib.recalibration import RecalibratedRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RecalibratedRegressor(BayesianRidge()).fit(X[:300], y[:300])
    >>> low, high = model.predict_interval(X[300:], 0.9)

    Guaranteed intervals, from samples that a frozen regressor has not seen:

    >>> from sklearn.frozen import FrozenEstimator
    >>> from skcalib.recalibration import PITRecalibrator
    >>> frozen = FrozenEstimator(BayesianRidge().fit(X[:150], y[:150]))
    >>> model = RecalibratedRegressor(frozen, PITRecalibrator()).fit(X[150:300], y[150:300])
    >>> model.predict_quantiles(X[300:302], [0.1, 0.9]).round(-1)
    array([[150., 300.],
           [ 50., 200.]])
    """

    _parameter_constraints = {"level_parameter": [str, None], "levels": ["array-like"]}

    _recalibrator_method = "transform"
    _by_example = "predict_forecast(X, by=...), then .interval(0.9)"

    estimator: Estimator
    recalibrator: Estimator | None = None
    _: KW_ONLY
    level_parameter: str | None = None
    levels: ArrayLike = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    cv: CrossValidator = 5
    n_jobs: int | None = None

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: ArrayLike,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        by: Columns | None = None,
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
            requests them), for the regressor. With metadata routing, a recalibrator gets
            none after its ``set_fit_request(sample_weight=False)``.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            The subgroup of each sample, for a recalibrator that takes them, such as a
            :class:`SubgroupRecalibrator`.

        **params : dict
            Passed to the regressor's `fit`. `groups` go to the splitter and to the recalibrator
            instead, for which samples count as fewer, the more those of a group agree. With
            metadata routing, parameters go to whatever requests them.

        Returns
        -------
        self : object
            The fitted regressor.
        """
        check_regressor(self.estimator)
        regressor = self._regressor()
        y = column_or_1d(y, warn=True)
        X, y = indexable(X, check_outcomes(y, len(y), "y"))
        recalibrator, sample_weight, groups, routed = self._prepare(
            y, sample_weight, self._row_arguments(X, by), params
        )
        fitted, predicted, tests = self._fit_out_of_fold(
            FittedRegressor.make, regressor, X, y, routed, response="forecasts", alternative=""
        )
        if not has_forecast(regressor):
            # with the own residual of a row, too: otherwise all rows would need different samples
            fitted = replace(fitted, residuals=y - predicted, weight=sample_weight)
            predicted = ResidualForecast(predicted, y - predicted, sample_weight)
        fit_params: dict[str, Any] = {"sample_weight": sample_weight, "by": by}
        fit_params = {name: value for name, value in fit_params.items() if value is not None}
        units = self._find_units(groups, tests, np.arange(len(y)))
        self.recalibrator_ = fit_with_units(
            clone(recalibrator), predicted, y, **units, **fit_params
        )
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

    def _regressor(self) -> Any:
        """Return the estimator to clone and fit: the regressor, or a regressor of all levels."""
        if self.level_parameter is None:
            return self.estimator
        check_level_parameter(self.estimator, self.level_parameter)
        levels = check_quantile_levels(self.levels, np.size(self.levels))
        return QuantileRegressors(self.estimator, self.level_parameter, levels)

    def predict_forecast(self, X: ArrayLike, *, by: Columns | None = None) -> Forecast:
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
        arguments = self._predict_arguments(X, by)
        return self.recalibrator_.transform(self._fitted.forecast(X), **arguments)

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Means of the forecasts, or medians where only quantiles are known.

        If the level 0.5 is not among these, a line between its neighbours stands for the median,
        with a warning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        return_std : bool, default=False
            Whether to return the standard deviations as well.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted outcomes.

        std : ndarray of shape (n_samples,)
            Standard deviations of the forecasts, if asked for.
        """
        forecast = self.predict_forecast(X)
        if return_std:
            return forecast.mean(), forecast.std()
        if not forecast._has_quantiles_only:
            return forecast.mean()
        if not np.isclose(forecast.levels, 0.5).any():
            warn(
                "The forecast has no quantile at the level 0.5: what is predicted lies on a line "
                "between those next to it. Forecast that level, too, for medians."
            )
        return forecast.ppf(0.5)

    def predict_quantiles(self, X: ArrayLike, levels: ArrayLike) -> np.ndarray:
        """Quantiles of the forecasts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        levels : array-like of shape (n_levels,)
            Probabilities in [0, 1].

        Returns
        -------
        y : ndarray of shape (n_samples, n_levels)
            Quantiles, in the units of the outcome.
        """
        return self.predict_forecast(X).quantiles(levels)

    def predict_interval(
        self, X: ArrayLike, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Central prediction intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        coverage : float, default=0.9
            Probability of the intervals, in (0, 1).

        Returns
        -------
        low, high : ndarray of shape (n_samples,)
            Ends of the intervals, in the units of the outcome. They are infinite, with a warning,
            if the forecasts were recalibrated conformally with too few samples. Between levels of
            a quantile forecast they are interpolated linearly.
        """
        check_coverage(coverage)
        return self.predict_forecast(X).interval(coverage)


@dataclass(frozen=True, eq=False)
class FittedRegressor:
    """A fitted regressor, with its residuals if it only predicts a number."""

    estimator: Any
    residuals: np.ndarray | None = None
    weight: np.ndarray | None = None

    response_options: ClassVar[dict[str, Any]] = {}

    @classmethod
    def make(cls, estimator: Estimator, X: Any, y: Any, params: Any) -> "FittedRegressor":
        return cls(estimator.fit(X, y, **params))

    def response(self, X: ArrayLike) -> Any:
        """Return the forecast, or predicted numbers (n,) of a regressor without forecasts."""
        if has_forecast(self.estimator):
            return get_forecast(self.estimator, X)
        return column_or_1d(self.estimator.predict(X))

    def forecast(self, X: ArrayLike) -> Forecast:
        response = self.response(X)
        if self.residuals is None:
            return response
        return ResidualForecast(response, self.residuals, self.weight)


class QuantileRegressors(BaseEstimator):
    """One regressor for each level, whose predictions together are quantile forecasts."""

    def __init__(self, estimator: Estimator, parameter: str, levels: np.ndarray) -> None:
        self.estimator = estimator
        self.parameter = parameter
        self.levels = levels

    def fit(self, X: ArrayLike, y: np.ndarray, **params: Any) -> Self:
        self.estimators_ = [
            clone(self.estimator).set_params(**{self.parameter: level}).fit(X, y, **params)
            for level in self.levels.tolist()
        ]
        adopt_features(self, self.estimators_[0])
        return self

    def predict_forecast(self, X: ArrayLike) -> Forecast:
        columns = [column_or_1d(regressor.predict(X)) for regressor in self.estimators_]
        return QuantileForecast(np.sort(np.column_stack(columns), axis=1), self.levels)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def check_level_parameter(estimator: Estimator, name: str) -> None:
    """Refuse unknown parameters and, such as the strength of a penalty, those of no level."""
    owner = type(estimator).__name__
    if isinstance(estimator, FrozenEstimator):
        raise ValueError(
            "level_parameter must be None for a frozen estimator, as one regressor is fitted for "
            f"each level; found {name!r}. Pass the regressor itself."
        )
    estimator_params = estimator.get_params()
    if name not in estimator_params:
        raise ValueError(
            f"level_parameter must be a parameter of {owner}, the one that holds the level of its "
            f"quantile; found {name!r}. Pass a name such as 'quantile', or in a pipeline "
            "'gradientboostingregressor__alpha'."
        )
    path, _, parameter = name.rpartition("__")
    loss_names = [f"{path}__{loss}" if path else loss for loss in ("loss", "objective")]
    losses = {loss: estimator_params[loss] for loss in loss_names if loss in estimator_params}
    # alpha is the strength of a penalty, unless there is a loss of quantiles
    is_penalty = not losses and parameter == "alpha"
    if is_penalty or not all("quantile" in str(loss) for loss in losses.values()):
        stated = ", ".join(f"{loss}={value!r}" for loss, value in losses.items()) or "no such loss"
        raise ValueError(
            f"level_parameter must hold a level, in a regressor whose loss is that of quantiles; "
            f"found {name!r} of {owner}, which has {stated}. Pass loss='quantile' to the "
            "regressor, or choose a regressor of quantiles such as QuantileRegressor."
        )


def check_regressor(estimator: Estimator) -> None:
    """Refuse classifiers and objects that predict nothing; skpro's estimators have no tags."""
    name = type(estimator).__name__
    if hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator):
        raise ValueError(
            f"estimator must be a regressor; found the classifier {name}. Use "
            "RecalibratedClassifier for classes."
        )
    if not (has_forecast(estimator) or hasattr(estimator, "predict")):
        raise ValueError(
            f"estimator must be a regressor, with predict or a method for get_forecast; found "
            f"{name}, which has neither. Pass a regressor."
        )
