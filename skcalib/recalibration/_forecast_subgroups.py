"""Recalibration of the forecasts of each subgroup."""

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._inputs.by import check_by
from .._inputs.constraints import IntegerInterval
from .._inputs.scikit_learn import HasMethods, Interval, fit_context
from ..forecasts import Forecast, as_forecast
from ..forecasts._concatenate import concatenate
from ..forecasts._data import ForecastData, check_forecasts
from ._forecast_auto import AutoForecastRecalibrator
from ._forecast_base import fitted_on
from ._habits import check_is_object, recalibrator_named
from ._subgroups import rows_of_known


class SubgroupForecastRecalibrator(TransformerMixin, BaseEstimator):
    r"""Recalibrates the forecasts of each subgroup.

    Intervals that cover 90 % of all outcomes may cover 98 % of those of one subgroup and 80 % of
    those of another. With a conformal recalibrator of its own, each subgroup has its own guaranteed
    coverage.

    Parameters
    ----------
    recalibrator : estimator, default=None
        Any recalibrator of forecasts; each subgroup has one of its own. None stands for an
        :class:`AutoForecastRecalibrator`, which guarantees nothing; :class:`PITRecalibrator` and
        :class:`QuantileRecalibrator` do.

    prior_weight : float, default=0.0
        Number of samples that all samples of other subgroups together count as, in the fit of a
        subgroup. They draw it to the common recalibrator, so that small subgroups borrow; the
        guarantees of conformal recalibrators need 0.

    min_samples : int, default=20
        Subgroups with fewer samples of positive weight get the common recalibrator.

    Attributes
    ----------
    recalibrator_ : estimator
        The common recalibrator, fitted on all samples; for subgroups that are small, or that did
        not occur at :meth:`fit`.

    subgroup_recalibrators_ : dict of subgroup to estimator
        The recalibrators of the subgroups that have their own.

    subgroups_ : list
        The subgroups in their order: values of the column, or tuples of one value for each of
        several columns; None stands for a missing value.

    subgroup_columns_ : list
        Names of the columns that make the subgroups.

    See Also
    --------
    SubgroupRecalibrator : The same for probabilities of classes.
    skcalib.hypothesis_tests.SubgroupCalibrationTest : Whether it is needed.

    Notes
    -----
    With ``PITRecalibrator()`` and ``prior_weight=0``, the quantile at the level α of a subgroup
    with m samples covers its outcomes with a probability between α and :math:`α + 1/(m + 1)`, if
    they are exchangeable with new ones of this subgroup and were not used to fit the model. This
    holds on average over the samples of each subgroup, while that of one common recalibrator
    holds on average over all.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.forecasts import GaussianForecast
    >>> from skcalib.recalibration import PITRecalibrator, SubgroupForecastRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> site = np.array(["coast", "hills"] * 500)
    >>> y = rng.normal(0, np.where(site == "hills", 2.0, 1.0))
    >>> forecast = GaussianForecast(np.zeros(1000), 1.5)
    >>> recalibrator = SubgroupForecastRecalibrator(PITRecalibrator())
    >>> recalibrator.fit(forecast[:500], y[:500], by=site[:500])
    SubgroupForecastRecalibrator(recalibrator=PITRecalibrator())
    >>> new = recalibrator.transform(forecast[500:], by=site[500:])
    >>> low, high = new.interval(0.9)
    >>> is_covered = (low <= y[500:]) & (y[500:] <= high)
    >>> for one in ("coast", "hills"):
    ...     print(one, is_covered[site[500:] == one].mean())
    coast 0.912
    hills 0.892
    """

    _parameter_constraints: dict = {
        "recalibrator": [HasMethods(["fit", "transform"]), None],
        "prior_weight": [Interval(Real, 0, None, closed="left")],
        "min_samples": [IntegerInterval(1)],
    }

    def __init__(
        self, recalibrator: Any = None, *, prior_weight: float = 0.0, min_samples: int = 20
    ) -> None:
        self.recalibrator = recalibrator
        self.prior_weight = prior_weight
        self.min_samples = min_samples

    def _validate_params(self) -> None:
        if self.recalibrator is not None:

            def named(name: Any) -> str:
                return recalibrator_named(name, "transform")

            check_is_object(self, "recalibrator", ["fit", "transform"], named)
        super()._validate_params()

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, by: Any) -> Self:
        """Learn the map from forecasts to calibrated forecasts for each subgroup.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts of samples that the model was not fitted on: whatever
            :func:`~skcalib.forecasts.as_forecast` takes.

        y : array-like of shape (n_samples,)
            Outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample: a column, or several, which make their crossings. Rows
            count by their position. Missing values are a subgroup of their own; continuous numbers
            are refused.

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        data = check_forecasts(y, X, sample_weight=sample_weight, names=("y", "X"))
        subgroups = check_by(by, np.shape(y)[0], sample_weight)
        self.subgroups_ = list(subgroups.labels)
        self.subgroup_columns_ = list(subgroups.names)
        chosen = AutoForecastRecalibrator() if self.recalibrator is None else self.recalibrator
        self.recalibrator_ = fitted_on(chosen, data)
        self.subgroup_recalibrators_ = {
            label: fitted_on(chosen, self._own(data, rows))
            for label, rows in zip(self.subgroups_, subgroups.rows(), strict=True)
            if len(rows) >= self.min_samples
        }
        return self

    def _own(self, data: ForecastData, rows: np.ndarray) -> ForecastData:
        """The samples of a subgroup, and all others with less weight."""
        if self.prior_weight == 0 or len(rows) == data.n_samples:
            return data.take(rows)
        is_own = np.zeros(data.n_samples, dtype=bool)
        is_own[rows] = True
        weight = data.weight / data.share_of_one_sample  # about 1
        share = min(1.0, self.prior_weight / weight[~is_own].sum())
        weight = np.where(is_own, weight, share * weight)
        return replace(data, weight=weight / weight.sum())

    def transform(self, X: Any, *, by: Any) -> Forecast:
        """Calibrated forecasts.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts of the same kind as at :meth:`fit`.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample, in the columns that it had at :meth:`fit`.

        Returns
        -------
        forecast : Forecast
            Calibrated forecasts of the same samples.
        """
        check_is_fitted(self)
        forecast = as_forecast(X, name="X")
        n = len(forecast)
        parts = list(rows_of_known(self, by, n, self.subgroup_recalibrators_))
        is_own = np.zeros(n, dtype=bool)
        for rows, _ in parts:
            is_own[rows] = True
        if not is_own.all():
            parts.append((np.flatnonzero(~is_own), self.recalibrator_))
        place = np.argsort(np.concatenate([rows for rows, _ in parts]))
        return concatenate([one.transform(forecast[rows]) for rows, one in parts])[place]

    def fit_transform(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, by: Any
    ) -> Forecast:
        """Learn the maps, and return calibrated forecasts of the same samples.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts.

        y : array-like of shape (n_samples,)
            Outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample.

        Returns
        -------
        forecast : Forecast
            Calibrated forecasts of the same samples.
        """
        return self.fit(X, y, sample_weight, by=by).transform(X, by=by)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, by: Any
    ) -> float:
        """Minus the mean continuous ranked probability score of the calibrated forecasts.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts of the same kind as at :meth:`fit`.

        y : array-like of shape (n_samples,)
            Outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample, in the columns that it had at :meth:`fit`.

        Returns
        -------
        score : float
            At most 0, which is best; in the units of the outcome.
        """
        forecast = self.transform(X, by=by)
        data = check_forecasts(y, forecast, sample_weight=sample_weight, names=("y", "X"))
        return -float(data.weight @ data.forecast.crps(data.value))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags
