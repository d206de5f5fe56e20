"""The metrics by name, and as scorers for model selection."""

import inspect
from copy import deepcopy

from .._sklearn import Scorer
from ._binned import expected_calibration_error
from ._conditional import conditional_kernel_calibration_error, joint_kernel_calibration_error
from ._cumulative import cumulative_calibration_error
from ._distance import lower_distance_to_calibration
from ._interval import interval_calibration_error
from ._kernel import kernel_calibration_error, squared_kernel_calibration_error
from ._laplace import laplace_kernel_calibration_error
from ._level_set import level_set_calibration_error
from ._smooth import smooth_calibration_error
from ._smooth_expected import smooth_expected_calibration_error

METRICS = {
    metric.__name__: metric
    for metric in (
        conditional_kernel_calibration_error,
        cumulative_calibration_error,
        expected_calibration_error,
        interval_calibration_error,
        joint_kernel_calibration_error,
        kernel_calibration_error,
        laplace_kernel_calibration_error,
        level_set_calibration_error,
        lower_distance_to_calibration,
        smooth_calibration_error,
        smooth_expected_calibration_error,
        squared_kernel_calibration_error,
    )
}


class _ClassAwareScorer(Scorer):
    """scikit-learn's scorer, which also tells the metric the classes of the estimator."""

    def _score(self, method_caller, estimator, X, y_true, **kwargs):
        given = self._kwargs.keys() | kwargs.keys()
        if (
            "labels" in inspect.signature(self._score_func).parameters
            and not given & {"labels", "pos_label"}
            and hasattr(estimator, "classes_")
        ):
            kwargs = kwargs | {"labels": estimator.classes_}
        return super()._score(method_caller, estimator, X, y_true, **kwargs)


def make_scorer(score_func, *, response_method="predict_proba", greater_is_better=False, **kwargs):
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


_SCORERS = {f"neg_{name}": make_scorer(metric) for name, metric in METRICS.items()}


def get_scorer(scoring):
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


def get_scorer_names():
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
