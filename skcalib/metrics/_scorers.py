"""The metrics as scorers for model selection."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import sklearn.metrics
from sklearn.base import BaseEstimator

from .._inputs.annotations import Scorer as ScorerLike
from .._inputs.arrays import format_value
from .._inputs.scikit_learn import Scorer, find_shared_cache, validate_params
from .._inputs.warnings import warn
from ..forecasts import get_forecast
from ._registry import (
    ALL_METRICS,
    FOREIGN_METRICS,
    Metric,
    check_name,
    find_arguments,
    find_entry,
    resolve_metric,
    to_function,
    unwrap_partial,
)

# The methods of an estimator that may return a forecast, by scikit-learn's rules for scorers.
_FORECAST_METHODS = ("predict_forecast", "predict_proba", "predict")


class _ClassAwareScorer(Scorer):
    """A scorer of scikit-learn that also passes the classes of the estimator to the metric."""

    @property
    def _metric(self) -> Metric:
        return resolve_metric(self._score_func)[0]

    def _score(
        self, method_caller: Callable, estimator: BaseEstimator, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        arguments = self._kwargs.keys() | kwargs.keys()
        multi_class = find_arguments(self._score_func, self._kwargs | kwargs).get("multi_class")
        are_fixed = arguments & {"labels", "pos_label"} or not hasattr(estimator, "classes_")
        has_indicator = getattr(multi_class, "needs_indicator", False)
        if "labels" in self._metric.parameters and not are_fixed and not has_indicator:
            kwargs = kwargs | {"labels": estimator.classes_}
        return super()._score(method_caller, estimator, X, y_true, **kwargs)


class _ForecastScorer(_ClassAwareScorer):
    """A scorer of forecasts, or of a classifier's probabilities if the metric takes these, too."""

    def _score(
        self, method_caller: Callable, estimator: BaseEstimator, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        entry = find_entry(self._score_func)
        if entry is not None and "classes" in entry.takes and hasattr(estimator, "classes_"):
            return super()._score(method_caller, estimator, X, y_true, **kwargs)
        self._warn_overlap("Arguments of make_scorer are also passed as metadata.", kwargs)
        cache = find_shared_cache(method_caller)
        if "forecast" not in cache:
            cache["forecast"] = get_forecast(estimator, X)
        features = {"given": X} if self._metric.requires_given else {}
        arguments = features | self._kwargs | kwargs
        if cache["forecast"]._has_quantiles_only and self._metric.sums_over_levels(arguments):
            warn(
                f"The score of quantiles at {len(cache['forecast'].levels)} levels is comparable "
                "with scores at the same levels only, as that of few levels is better. To "
                f"search among others, too, use make_scorer({self._metric.name}, levels=[...])."
            )
        return self._sign * self._score_func(y_true, cache["forecast"], **arguments)


def make_scorer(
    score_func: Callable | str,
    *,
    response_method: str | list[str] | tuple[str, ...] | None = None,
    greater_is_better: bool | None = None,
    **kwargs: Any,
) -> ScorerLike:
    """Make a scorer from a metric of probabilities or forecasts.

    As :func:`sklearn.metrics.make_scorer`. A metric that takes `labels` gets the classes of the
    estimator; a metric of forecasts what :func:`skcalib.forecasts.get_forecast` finds in it; and
    one that requires `given` the features, unless others are passed.

    Parameters
    ----------
    score_func : callable or str
        A function ``score_func(y_true, y_proba, **kwargs) -> float``, or one of forecasts; or the
        name of a metric in :mod:`skcalib.metrics`.

    response_method : str or sequence of str, default=None
        The method of the estimator whose output is passed to `score_func`. None stands for
        "predict_forecast" if that is a metric of forecasts in :mod:`skcalib.metrics`, else for
        "predict_proba". "predict_forecast" stands for all ways to a forecast.

    greater_is_better : bool, default=None
        If larger values are not better, the scorer returns the negative value. None is for metrics
        of skcalib, of which lower is better.

    **kwargs : dict
        Further arguments of `score_func`, for instance `multi_class`, `labels` or `pos_label`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y_true) -> float``, larger is better.

    Raises
    ------
    ValueError
        If `greater_is_better` is missing for a function of your own, or True for one of
        :mod:`skcalib.metrics`; for measures such as :func:`calibration_slope`, whose best value
        lies inside of their range.

    See Also
    --------
    get_scorer : Ready-made scorers.

    Notes
    -----
    Search for models by a proper score, such as "neg_log_loss". A calibration error can be gamed:
    the base rate for everybody is calibrated, and with few samples some wrong predictions have a
    lower expected smooth or binned error than the true probabilities (theory page *what each
    measure is*). Biased squared kernel errors are truthful: no predictions have a lower expected
    value than the true probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.metrics import expected_calibration_error, make_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> cross_val_score(GaussianNB(), X, y, scoring=make_scorer(expected_calibration_error)).shape
    (5,)
    """
    if not callable(score_func):
        check_name("score_func", score_func, ALL_METRICS | FOREIGN_METRICS, "Pass one of these.")
        score_func = to_function(score_func)
    entry = find_entry(score_func)
    sign = _find_sign(score_func, entry, greater_is_better)
    check_response_method(response_method)
    if response_method is None:
        takes_forecasts = entry is not None and "forecasts" in entry.takes
        response_method = "predict_forecast" if takes_forecasts else "predict_proba"
    if response_method == "predict_forecast":
        return _ForecastScorer(score_func, sign, kwargs, _FORECAST_METHODS)
    return _ClassAwareScorer(score_func, sign, kwargs, response_method)


def _find_sign(
    score_func: Callable, entry: Metric | None, greater_is_better: bool | None
) -> Literal[1, -1]:
    """1 if larger values are better, and −1 if not, as for all metrics of ours."""
    if greater_is_better is not None and not isinstance(greater_is_better, bool | np.bool):
        raise TypeError(
            "greater_is_better must be True, False or None; found "
            f"{format_value(greater_is_better)}. Pass True for a score, False for a loss."
        )
    name = getattr(unwrap_partial(score_func)[0], "__name__", "score_func")
    if greater_is_better is None and entry is None:
        raise ValueError(
            f"greater_is_better must be passed for {name}, which is none of skcalib.metrics; found "
            "None. Pass True for a score such as roc_auc_score, False for an error or a loss."
        )
    if entry is not None and not entry.lower_is_better:
        raise ValueError(
            f"score_func must be best at one end of its range; found {name}, of which values too "
            "low and too high are wrong alike. Pass a function of its distance from the best value."
        )
    if greater_is_better and entry is not None:
        raise ValueError(
            f"greater_is_better must be False for {name}, of which lower values are better; found "
            "True. Leave it out."
        )
    return 1 if greater_is_better else -1


def get_scorer(scoring: str) -> ScorerLike:
    """Get a ready-made scorer by name.

    Parameters
    ----------
    scoring : str
        One of the names of :func:`get_scorer_names`, such as "neg_smooth_calibration_error", or of
        :func:`sklearn.metrics.get_scorer_names`, such as "neg_log_loss".

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y_true) -> float``, larger is better. A new one, so that changing its
        metadata request changes nothing else.

    Raises
    ------
    ValueError
        If there is no scorer of that name.

    Notes
    -----
    A search by a calibration error, such as "neg_smooth_calibration_error", can be gamed: see
    :func:`make_scorer`.

    Examples
    --------
    >>> from skcalib.metrics import get_scorer
    >>> get_scorer("neg_smooth_calibration_error")
    make_scorer(smooth_calibration_error, greater_is_better=False, response_method='predict_proba')
    """
    if isinstance(scoring, str) and scoring in sklearn.metrics.get_scorer_names():
        return sklearn.metrics.get_scorer(scoring)
    remedy = "Any metric becomes a scorer with make_scorer."
    check_name("scoring", scoring, get_scorer_names(), remedy)
    return make_scorer(scoring.removeprefix("neg_"))


@validate_params()
def get_scorer_names(*, takes: Literal["classes", "forecasts"] | None = None) -> list[str]:
    """Names of the ready-made scorers.

    Parameters
    ----------
    takes : {"classes", "forecasts"}, default=None
        Only those that work for all classifiers, or for all forecasts of a number. None means all.

    Returns
    -------
    names : list of str
        The names that :func:`get_scorer` takes, sorted.

    Examples
    --------
    >>> from skcalib.metrics import get_scorer_names
    >>> "neg_smooth_calibration_error" in get_scorer_names()
    True
    """
    return sorted(
        f"neg_{name}"
        for name, entry in ALL_METRICS.items()
        # the default loss of decisions is that of classes: forecasts need one of their own
        if takes in (None, *entry.takes)
        and (takes, entry.options.get("loss")) != ("forecasts", "zero-one")
    )


def check_response_method(response_method: object) -> None:
    """The method that predicts has a name, or is one of several with names."""
    names = response_method if isinstance(response_method, (list, tuple)) else [response_method]
    if response_method is not None and not (names and all(isinstance(n, str) for n in names)):
        raise TypeError(
            "response_method must be the name of a method, such as 'predict_proba', or several; "
            f"found {response_method!r:.80}. Leave it out for the default."
        )
