"""The best action for each prediction, and the loss to expect of it."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.labels import as_labels
from .._inputs.probabilities import check_probabilities, is_forecast
from .._inputs.scikit_learn import validate_params
from ..forecasts._as_forecast import as_forecast
from ._loss import as_loss, expected_of_classes, least

_CONSTRAINTS: dict = {
    "y_proba": "no_validation",
    "loss": "no_validation",
    "labels": ["array-like", None],
}


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def bayes_action(y_proba: Any, *, loss: Any, labels: ArrayLike | None = None) -> np.ndarray:
    """The action of the least expected loss for each prediction.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities in [0, 1]. One-dimensional: of the second class. Two-dimensional: one column
        for each class; rows sum to 1. Or a forecast of a number, as
        :func:`skcalib.forecasts.as_forecast` takes it.

    loss : array-like of shape (n_actions, n_classes), "zero-one", float, callable or DecisionLoss
        The losses of the actions, as :class:`DecisionLoss` takes them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. Only needed if `loss` is a number or
        a callable.

    Returns
    -------
    action : ndarray of shape (n_samples,)
        The actions of `loss` if they have names, else their numbers from 0. The first of several
        that are equally good, up to rounding.

    See Also
    --------
    expected_loss : What the actions are expected to cost.

    Notes
    -----
    Cost: O(n_samples · n_classes · n_actions), and for callables and forecasts 64 nodes or all
    members in place of the classes.

    Examples
    --------
    >>> from skcalib.decisions import bayes_action
    >>> bayes_action([0.1, 0.3], loss=[[0, 5], [1, 0]])  # to miss the second class costs 5
    array([0, 1])
    """
    decision = as_loss(loss)
    if is_forecast(y_proba):
        return decision.named(decision.best_for(as_forecast(y_proba, name="y_proba")))
    return decision.named(least(_expected(y_proba, decision, labels)))


@validate_params(_CONSTRAINTS | {"action": "no_validation"}, prefer_skip_nested_validation=True)
def expected_loss(
    y_proba: Any, *, loss: Any, action: Any = None, labels: ArrayLike | None = None
) -> np.ndarray:
    r"""The loss to expect of each prediction, for which no outcomes are needed.

    Its mean estimates the loss where outcomes are not known yet. For the best action the estimate
    is unbiased if the predictions are calibrated for the decision [1]_ (see
    :func:`skcalib.metrics.decision_calibration_error`); overconfident ones announce too little.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities in [0, 1]. One-dimensional: of the second class. Two-dimensional: one column
        for each class; rows sum to 1. Or a forecast of a number, as
        :func:`skcalib.forecasts.as_forecast` takes it.

    loss : array-like of shape (n_actions, n_classes), "zero-one", float, callable or DecisionLoss
        The losses of the actions, as :class:`DecisionLoss` takes them.

    action : scalar or array-like of shape (n_samples,), default=None
        The actions taken, as :func:`bayes_action` returns them; one stands for all samples. By
        default those of the least expected loss.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. Only needed if `loss` is a number or
        a callable.

    Returns
    -------
    loss : ndarray of shape (n_samples,)
        Expected losses, in the units of `loss`.

    See Also
    --------
    bayes_action : The actions.

    Notes
    -----
    :math:`E \ell(a_i, Y_i)` with :math:`Y_i \sim Q_i`, the prediction. It is exact for classes, for
    a number, for ensembles, and for discrete distributions on not too many whole numbers. Otherwise
    a callable is integrated over 64 nodes of the quantile function, between each two of the
    breakpoints of `loss`. A step that is no breakpoint costs accuracy: about 0.02 of its height.

    References
    ----------
    .. [1] S. Zhao, M. P. Kim, R. Sahoo, T. Ma and S. Ermon (2021). Calibrating Predictions to
       Decisions: A Novel Approach to Multi-Class Calibration. NeurIPS 2021. :arxiv:`2107.05719`

    Examples
    --------
    >>> from skcalib.decisions import expected_loss
    >>> expected_loss([0.1, 0.3], loss=[[0, 5], [1, 0]])
    array([0.5, 0.7])
    >>> expected_loss([0.1, 0.3], loss=[[0, 5], [1, 0]], action=0)
    array([0.5, 1.5])
    """
    decision = as_loss(loss)
    if is_forecast(y_proba):
        expected = decision.expected_of(as_forecast(y_proba, name="y_proba"))
    else:
        expected = _expected(y_proba, decision, labels)
    chosen = least(expected) if action is None else decision.numbered(action, *expected.shape)
    return expected[np.arange(len(expected)), chosen]


def _expected(y_proba, decision, labels):
    """Expected losses (n, n_actions) of class probabilities."""
    proba = check_probabilities(y_proba, partner="labels")
    matrix = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    classes = None if labels is None else as_labels(labels, "labels")
    if classes is not None and classes.shape != (matrix.shape[1],):
        raise ValueError(
            f"labels must name one class for each of the {matrix.shape[1]} columns of y_proba; "
            f"found shape {classes.shape}. Give the classes in the order of the columns."
        )
    return expected_of_classes(matrix, decision.of_classes(classes, matrix.shape[1]))
