"""The choice among recalibrators of forecasts by cross-validation."""

import warnings
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._inputs.constraints import IntegerInterval
from .._inputs.scikit_learn import StrOptions
from ..forecasts import EnsembleForecast, Forecast, QuantileForecast, ResidualForecast
from ..forecasts._data import ForecastData
from ._auto import check_candidates, out_of_fold_losses, results_of
from ._forecast_base import (
    ForecastRecalibrator,
    IdentityForecastRecalibrator,
    RecalibratorChain,
    check_enough_outcomes,
    fitted_on,
)
from ._forecast_quantile import QuantileRecalibrator, least_samples
from ._location_scale import LocationScaleRecalibrator
from ._pit import PITRecalibrator


class AutoForecastRecalibrator(ForecastRecalibrator):
    """The recalibrator of forecasts with the best cross-validated score, or none.

    It tries to move the location and scale of the forecasts, to map their levels, and to do both in
    this order. Each candidate is fitted on parts of the data and scored on the rest, and the best
    is fitted on all of them. The forecasts stay as they are unless they gain more than the standard
    error of the gain.

    Parameters
    ----------
    candidates : list of (str, estimator), default=None
        Names and recalibrators of forecasts. No recalibration at all, "none", is always among
        the candidates. By default "scale", "location and scale"
        (:class:`LocationScaleRecalibrator`), "levels" (:class:`PITRecalibrator` with
        ``method="beta"``, so that forecasts with a density keep one), and "location, scale and
        levels". For quantile forecasts the levels are moved by a :class:`QuantileRecalibrator`; for
        discrete ones, only "levels" is tried.

    scoring : {"crps", "log"}, default="crps"
        The proper score that decides: the continuous ranked probability score, or minus the log
        density.

    n_folds : int, default=5
        The number of folds, at most that of the samples. Samples are dealt to the folds at random,
        in a way that depends neither on their order nor on a seed.

    n_jobs : int, default=None
        Number of jobs that fit candidates to folds; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    Attributes
    ----------
    best_name_ : str
        The name of the best candidate.

    best_recalibrator_ : estimator
        The best candidate, fitted on all samples.

    results_ : dict
        A table, ready for :class:`pandas.DataFrame`. It has a row for each candidate: its "name",
        its mean "loss" on samples that it was not fitted on, its "gain" over no recalibration, and
        the standard error of the gain, "gain_error".

    See Also
    --------
    AutoRecalibrator : The same for probabilities of classes.
    RecalibratedRegressor : A regressor together with a recalibrator.

    Notes
    -----
    The rule, and its reasons, are those of :class:`AutoRecalibrator`: the candidate is taken whose
    gain over no recalibration, less the standard error of the gain, is largest. Scale comes before
    levels, as a map of levels cannot mend standard deviations that are many times too small.

    The result is chosen on the same samples that it is fitted on, so no bound on coverage holds for
    it; for one, choose ``PITRecalibrator()`` yourself. The cost is that of the candidates, times
    one more than the number of folds.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.forecasts import GaussianForecast
    >>> from skcalib.recalibration import AutoForecastRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=5000)
    >>> y = rng.normal(mean, 3)
    >>> auto = AutoForecastRecalibrator().fit(GaussianForecast(mean, np.ones(5000)), y)
    >>> auto.best_name_
    'scale'
    >>> recalibrated = auto.transform(GaussianForecast([0.0], [1.0]))
    >>> recalibrated.std().round(1)
    array([3.])
    """

    _parameter_constraints: dict = {
        "candidates": "no_validation",
        "scoring": [StrOptions({"crps", "log"})],
        "n_folds": [IntegerInterval(2)],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        candidates: list | tuple | None = None,
        *,
        scoring: str = "crps",
        n_folds: int = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.candidates = candidates
        self.scoring = scoring
        self.n_folds = n_folds
        self.n_jobs = n_jobs

    def _fit(self, data: ForecastData) -> None:
        check_enough_outcomes(data, 2, "to fit on one and score the other")
        n_folds = min(self.n_folds, data.n_samples)
        fold = _folds(data, n_folds)
        n_train = data.n_samples - int(np.bincount(fold).max())
        given: Any = self.candidates
        if given is None:
            defaults = default_forecast_candidates(data.forecast, n_train, self.scoring)
            given = list(defaults.items())
        others = check_candidates(given, "transform")
        candidates = {"none": IdentityForecastRecalibrator(), **others}
        task = partial(_losses_of_fold, data=data, scoring=self.scoring)
        loss = out_of_fold_losses(task, candidates.values(), fold, self.n_jobs)
        self.results_, best = results_of(list(candidates), loss, data.weight)
        self.best_name_ = list(candidates)[best]
        self.best_recalibrator_ = fitted_on(candidates[self.best_name_], data)

    def _map(self, forecast: Forecast) -> Forecast:
        return self.best_recalibrator_.transform(forecast)


def default_forecast_candidates(forecast: Forecast, n: int, scoring: str) -> dict[str, Any]:
    """What an `AutoForecastRecalibrator` tries by default, fitted on n samples, by name."""
    has_members = isinstance(forecast, EnsembleForecast | ResidualForecast | QuantileForecast)
    if not forecast.is_continuous and not has_members:  # counts stay whole numbers
        return {"levels": PITRecalibrator("beta")} if n >= _FEWEST_TO_MOVE else {}
    scale = LocationScaleRecalibrator(scoring, scale_only=True)
    location_scale = LocationScaleRecalibrator(scoring)
    candidates: dict[str, Any] = {"scale": scale}
    if n >= _FEWEST_TO_MOVE:
        candidates["location and scale"] = location_scale
    levels: Any = PITRecalibrator("beta")
    enough = _FEWEST_TO_MOVE
    if isinstance(forecast, QuantileForecast):
        levels = QuantileRecalibrator()
        enough = max(enough, least_samples(forecast.levels, "levels"))
    if n >= enough:
        candidates["levels"] = levels
        candidates["location, scale and levels"] = RecalibratorChain(location_scale, levels)
    return candidates


# Below, four parameters would be fitted to hardly more samples.
_FEWEST_TO_MOVE = 8


def _losses_of_fold(
    recalibrator: Any, *, data: ForecastData, is_test: np.ndarray, scoring: str
) -> np.ndarray:
    with warnings.catch_warnings():  # a fit without an optimum loses, or warns when it is chosen
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = fitted_on(recalibrator, data, ~is_test)
    forecast, y = fitted.transform(data.forecast[is_test]), data.value[is_test]
    return forecast.crps(y) if scoring == "crps" else -forecast.logpdf(y)


def _folds(data: ForecastData, n_folds: int) -> np.ndarray:
    """The fold of each sample (n,), dealt at random, whatever the order of the rows."""
    order = np.lexsort((data.value, data.weight, *data.forecast._sort_keys()))
    fold = np.empty(data.n_samples, dtype=np.intp)
    fold[np.random.default_rng(0).permutation(order)] = np.arange(data.n_samples) % n_folds
    return fold
