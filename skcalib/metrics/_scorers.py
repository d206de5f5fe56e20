"""The metrics as scorers for model selection."""

from collections.abc import Callable
from typing import Any

from .._inputs.scikit_learn import Scorer, find_shared_cache
from .._inputs.warnings import warn
from ..forecasts import get_forecast
from ._registry import ALL_METRICS, Metric, check_name, find_entry, resolve_metric

# The methods of an estimator that may return a forecast, by scikit-learn's rules for scorers.
_FORECAST_METHODS = ("predict_forecast", "predict_proba", "predict")


class _ClassAwareScorer(Scorer):
    """A scorer of scikit-learn that also passes the classes of the estimator to the metric."""

    @property
    def _metric(self) -> Metric:
        return resolve_metric(self._score_func)[0]

    def _score(
        self, method_caller: Callable, estimator: Any, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        arguments = self._kwargs.keys() | kwargs.keys()
        if (
            "labels" in self._metric.parameters
            and not arguments & {"labels", "pos_label"}
            and hasattr(estimator, "classes_")
        ):
            kwargs = kwargs | {"labels": estimator.classes_}
        return super()._score(method_caller, estimator, X, y_true, **kwargs)


class _ForecastScorer(_ClassAwareScorer):
    """A scorer of forecasts, or of a classifier's probabilities if the metric takes these, too."""

    def _score(
        self, method_caller: Callable, estimator: Any, X: Any, y_true: Any, **kwargs: Any
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
    greater_is_better: bool = False,
    **kwargs: Any,
) -> Scorer:
    """Make a scorer from a metric of probabilities or forecasts.

    The same as :func:`sklearn.metrics.make_scorer`, with the two defaults that calibration errors
    need. A metric that takes `labels` gets the classes of the estimator, so that a test set need
    not contain all of them. A metric of forecasts gets what
    :func:`skcalib.forecasts.get_forecast` finds in the estimator, and one that requires `given`
    gets the features for it, unless others are passed.

    Parameters
    ----------
    score_func : callable or str
        A function ``score_func(y_true, y_proba, **kwargs) -> float``, or one of forecasts; or the
        name of a metric in :mod:`skcalib.metrics`.

    response_method : str or sequence of str, default=None
        The method of the estimator whose output is passed to `score_func`. None stands for
        "predict_forecast" if that is a metric of forecasts in :mod:`skcalib.metrics`, else for
        "predict_proba". "predict_forecast" stands for all ways to a forecast.

    greater_is_better : bool, default=False
        Whether larger values are better. If not, the scorer returns the negative value.

    **kwargs : dict
        Further arguments of `score_func`, for instance `multi_class`, `labels` or `pos_label`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y_true) -> float``, larger is better.

    See Also
    --------
    get_scorer : Ready-made scorers.

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
        check_name("score_func", score_func, ALL_METRICS, "Pass one of these, or a function.")
        score_func = ALL_METRICS[score_func].function
    sign = 1 if greater_is_better else -1
    entry = find_entry(score_func)
    if response_method is None:
        takes_forecasts = entry is not None and "forecasts" in entry.takes
        response_method = "predict_forecast" if takes_forecasts else "predict_proba"
    if response_method == "predict_forecast":
        return _ForecastScorer(score_func, sign, kwargs, _FORECAST_METHODS)
    return _ClassAwareScorer(score_func, sign, kwargs, response_method)


def get_scorer(scoring: str) -> Scorer:
    """Get a ready-made scorer by name.

    Parameters
    ----------
    scoring : str
        One of the names of :func:`get_scorer_names`, such as "neg_smooth_calibration_error".

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y_true) -> float``, larger is better. A new one, so that changing its
        metadata request changes nothing else.

    Raises
    ------
    ValueError
        If there is no scorer of that name.

    Examples
    --------
    >>> from skcalib.metrics import get_scorer
    >>> get_scorer("neg_smooth_calibration_error")
    make_scorer(smooth_calibration_error, greater_is_better=False, response_method='predict_proba')
    """
    check_name(
        "scoring",
        scoring,
        get_scorer_names(),
        "scikit-learn's own scorers come from sklearn.metrics.get_scorer; any metric becomes one "
        "with make_scorer.",
    )
    return make_scorer(scoring.removeprefix("neg_"))


def get_scorer_names() -> list[str]:
    """Names of the ready-made scorers.

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
    return sorted(f"neg_{name}" for name in ALL_METRICS)
