"""The metrics as scorers for model selection."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from .._sklearn import Scorer
from ._registry import METRICS, takes_classes


class _ClassAwareScorer(Scorer):
    """scikit-learn's scorer, which also tells the metric the classes of the estimator."""

    def _score(self, method_caller, estimator, X, y_true, **kwargs):
        given = self._kwargs.keys() | kwargs.keys()
        if (
            takes_classes(self._score_func)
            and not given & {"labels", "pos_label"}
            and hasattr(estimator, "classes_")
        ):
            kwargs = kwargs | {"labels": estimator.classes_}
        return super()._score(method_caller, estimator, X, y_true, **kwargs)


def make_scorer(
    score_func: Callable,
    *,
    response_method: str | list[str] | tuple[str, ...] = "predict_proba",
    greater_is_better: bool = False,
    **kwargs: Any,
) -> Scorer:
    """Make a scorer from a metric of probabilities.

    The same as :func:`sklearn.metrics.make_scorer`, with the two defaults that calibration errors
    need. A metric that takes `labels` gets the classes of the estimator, so that a test set need
    not contain all of them.

    Parameters
    ----------
    score_func : callable
        A function ``score_func(y_true, y_proba, **kwargs) -> float``.

    response_method : str or sequence of str, default="predict_proba"
        The method of the estimator whose output is passed to `score_func`.

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
    sign = 1 if greater_is_better else -1
    return _ClassAwareScorer(score_func, sign, kwargs, response_method)


_SCORERS = {
    f"neg_{name}": make_scorer(entry.function, response_method=entry.response_method)
    for name, entry in METRICS.items()
}


def get_scorer(scoring: str) -> Scorer:
    """Get a ready-made scorer by name.

    Parameters
    ----------
    scoring : str
        One of the names of :func:`get_scorer_names`, such as "neg_smooth_calibration_error".

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y_true) -> float``, larger is better. A copy, so that changing its
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
    if not isinstance(scoring, str) or scoring not in _SCORERS:
        raise ValueError(
            f"scoring must be one of {get_scorer_names()}; found {scoring!r}. scikit-learn's own "
            "scorers come from sklearn.metrics.get_scorer; any metric becomes one with "
            "make_scorer."
        )
    return deepcopy(_SCORERS[scoring])


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
    return sorted(_SCORERS)
