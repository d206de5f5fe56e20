"""Losses of actions, the best action for each prediction, and the loss to expect of it."""

from typing import Any

import numpy as np

from .._inputs.arrays import (
    ArrayLike,
    as_array,
    check_numbers,
    convert_numbers,
    format_value,
    format_values,
    is_missing,
    is_number,
)
from .._inputs.checks import check_column_order
from .._inputs.labels import as_labels
from .._inputs.probabilities import check_probabilities, is_forecast
from .._inputs.scikit_learn import validate_params
from ._as_forecast import as_forecast
from ._base import Forecast

# Expected losses that differ by less than this share of the larger one are equal.
_LOSS_RTOL = 1e-12


class DecisionLoss:
    """The losses of some actions, for each outcome.

    Every argument `loss` of skcalib also takes what this class takes as its first parameter. The
    class itself gives names to actions, and makes losses of an action and an outcome.

    Parameters
    ----------
    loss : array-like of shape (n_actions, n_classes), float, callable, or "zero-one"
        An array holds the loss of each action for each class, in the order of `labels`. "zero-one"
        has an action for each class, with loss 1 if it is another one. A number c has the actions 0
        and 1, with loss 1 if action 1 is taken for an outcome of at most c, or action 0 for a
        greater one. A callable is ``loss(y)``, the losses of all actions for m outcomes, of shape
        (m, n_actions); with `actions` it is ``loss(action, y)`` of shape (m,).

    actions : array-like of shape (n_actions,), default=None
        The actions, as :func:`bayes_action` returns them. By default 0, 1, and so on.

    breakpoints : array-like of shape (n_breakpoints,), default=None
        Outcomes at which a callable has a step or a kink. The expected losses of continuous
        forecasts are integrated between them, and sooner exact.

    See Also
    --------
    bayes_action : The action of the least expected loss.
    expected_loss : What it is expected to cost.
    skcalib.metrics.decision_calibration_error : Whether the expectation is right.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.decisions import DecisionLoss, bayes_action
    >>> credit = DecisionLoss([[0, 5], [1, 0]], actions=["grant", "refuse"])
    >>> bayes_action([0.1, 0.4], loss=credit)
    array(['grant', 'refuse'], dtype=object)

    How many to order, if one too many costs 1, and one too few costs 3:

    >>> def cost(order, demand):
    ...     return np.where(demand > order, 3.0, 1.0) * np.abs(demand - order)
    >>> stock = np.arange(0, 20)
    >>> order = DecisionLoss(cost, actions=stock, breakpoints=stock)
    >>> bayes_action((np.array([8.0, 12.0]), 2.0 * np.ones(2)), loss=order)
    array([ 9, 13])
    """

    def __init__(
        self, loss: Any, actions: ArrayLike | None = None, *, breakpoints: ArrayLike | None = None
    ) -> None:
        self.loss: Any = check_loss(loss)
        self.actions = None if actions is None else check_actions(actions)
        if is_number(loss) or isinstance(self.loss, np.ndarray):
            self._check_number_of_actions(2 if is_number(loss) else len(self.loss))
        self.breakpoints = check_breakpoints([] if breakpoints is None else breakpoints)

    def __repr__(self) -> str:
        name = getattr(self.loss, "__name__", repr(self.loss))
        return f"DecisionLoss({name})"

    @property
    def is_of_classes(self) -> bool:
        """True if it cannot be a loss of forecasts of a number."""
        return not callable(self.loss) and not is_number(self.loss)

    def _check_number_of_actions(self, n_losses: int) -> None:
        if self.actions is not None and len(self.actions) != n_losses:
            raise ValueError(
                f"actions must name one action for each of the {n_losses} that have losses; found "
                f"{len(self.actions)} actions. Name the others, or leave actions out."
            )

    def of_classes(self, classes: np.ndarray | None, n_classes: int) -> np.ndarray:
        """Losses of all actions for each class.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,), or None
            The classes; None if they are not known.

        n_classes : int
            Their number.

        Returns
        -------
        losses : ndarray of shape (n_classes, n_actions)
            One row for each class.
        """
        if isinstance(self.loss, str):
            losses = 1 - np.eye(n_classes)
        elif isinstance(self.loss, np.ndarray):
            if self.loss.shape[1] != n_classes:
                raise ValueError(
                    "loss must be a finite matrix with one row for each action and one column for "
                    f"each of the {n_classes} classes; found shape {self.loss.shape}. Use "
                    "np.array([[...], [...]])."
                )
            losses = self.loss.T
        elif classes is None:
            raise ValueError(
                "labels must be given for a loss that is a number or a callable, which need the "
                "classes; found None. Pass the classes in the order of the columns."
            )
        elif is_number(self.loss):
            losses = _threshold_losses(_number_classes(classes, self.loss), self.loss)
        else:
            losses = self._call_loss(classes)
        self._check_number_of_actions(losses.shape[1])
        return losses

    def at_outcomes(self, y: np.ndarray) -> np.ndarray:
        """Losses of all actions for each outcome.

        Parameters
        ----------
        y : ndarray of shape (m,)
            Outcomes of a forecast of a number.

        Returns
        -------
        losses : ndarray of shape (m, n_actions)
            One row for each outcome.
        """
        self.check_is_of_numbers()
        return _threshold_losses(y, self.loss) if is_number(self.loss) else self._call_loss(y)

    def expected_of(self, forecast: Forecast) -> np.ndarray:
        """Expected losses of all actions for each forecast.

        Parameters
        ----------
        forecast : Forecast
            The forecasts of a number.

        Returns
        -------
        losses : ndarray of shape (n_samples, n_actions)
            One row for each forecast.
        """
        self.check_is_of_numbers()
        if is_number(self.loss):
            return np.column_stack([forecast.sf(self.loss), forecast.cdf(self.loss)])
        if forecast._has_quantiles_only:
            raise ValueError(
                "loss must be a number (a threshold) for a QuantileForecast, which knows no "
                "expected losses; found a callable. Pass a threshold, or an EnsembleForecast."
            )

        def losses(y: np.ndarray, row: np.ndarray) -> np.ndarray:
            return self._call_loss(y.ravel()).T.reshape(-1, *y.shape)

        return forecast._expect(losses, np.tile(self.breakpoints, (len(forecast), 1)))

    def best_for(self, forecast: Forecast) -> np.ndarray:
        """Numbers of the actions of the least expected loss.

        Parameters
        ----------
        forecast : Forecast
            The forecasts of a number.

        Returns
        -------
        action : ndarray of shape (n_samples,)
            From 0 to n_actions − 1; the first of several that are equally good.
        """
        if is_number(self.loss) and forecast._has_quantiles_only:
            return (forecast.ppf(0.5) > self.loss).astype(np.intp)  # known without tails
        return argmin_first(self.expected_of(forecast))

    def with_classes_reversed(self) -> "DecisionLoss":
        """Losses with the two classes in the other order.

        Returns
        -------
        loss : DecisionLoss
            Itself, if it knows the classes by their names.
        """
        if not self.is_of_classes:
            return self
        return DecisionLoss(self.of_classes(None, 2).T[:, ::-1], self.actions)

    def named(self, action: np.ndarray) -> np.ndarray:
        """The actions of these numbers.

        Parameters
        ----------
        action : ndarray of shape (n_samples,)
            Numbers of actions.

        Returns
        -------
        action : ndarray of shape (n_samples,)
            The actions themselves, if they have names.
        """
        return action if self.actions is None else self.actions[action]

    def numbered(self, action: Any, n_samples: int, n_actions: int) -> np.ndarray:
        """The numbers of these actions.

        Parameters
        ----------
        action : scalar or array-like of shape (n_samples,)
            Actions as `bayes_action` returns them.

        n_samples : int
            Number of samples.

        n_actions : int
            Number of actions.

        Returns
        -------
        action : ndarray of shape (n_samples,)
            From 0 to n_actions − 1.
        """
        names = list(range(n_actions)) if self.actions is None else self.actions.tolist()
        is_list = hasattr(action, "__len__") and not isinstance(action, str | bytes)
        values = as_labels(action if is_list else [action], "action")
        if values.ndim != 1 or len(values) not in (1, n_samples):
            raise ValueError(
                f"action must be one action, or one for each of the {n_samples} samples; found "
                f"shape {values.shape}. Pass what bayes_action returns."
            )
        unknown = [value for value in values.tolist() if is_missing(value) or value not in names]
        if unknown:
            raise ValueError(
                f"action must be among those that have losses, {format_values(names)}; found "
                f"{unknown[0]!r}. Pass what bayes_action returns."
            )
        numbers = np.array([names.index(value) for value in values.tolist()], dtype=np.intp)
        return np.broadcast_to(numbers, (n_samples,))

    def _call_loss(self, y: np.ndarray) -> np.ndarray:
        """Call the user's function for outcomes (m,), and check its losses (m, n_actions)."""
        if self.actions is None:
            values = np.asarray(self.loss(y), dtype=np.float64)
            is_right = values.ndim == 2 and len(values) == len(y) and values.shape[1] > 0
        else:
            columns = [np.asarray(self.loss(a, y), dtype=np.float64) for a in self.actions]
            is_right = all(column.shape in ((), (len(y),)) for column in columns)
            values = np.empty((len(y), len(columns)))
            if is_right:
                for k, column in enumerate(columns):
                    values[:, k] = column
        if not is_right or not np.isfinite(values).all():
            shape = values.shape if self.actions is None else [column.shape for column in columns]
            raise ValueError(
                "loss must return the finite losses of all actions, of shape (m, n_actions) for "
                "outcomes of shape (m,), or of one action, of shape (m,), if actions are given; "
                f"found {shape} for m = {len(y)}, or values that are not finite. Use "
                "np.column_stack([loss_of_action_0(y), loss_of_action_1(y)])."
            )
        return values

    def check_is_of_numbers(self) -> None:
        """Raise an error for losses of classes."""
        if self.is_of_classes:
            raise ValueError(
                "loss must be a finite number (a threshold) or a callable for forecasts of a "
                f"number; found {format_value(self)}. A callable returns the losses of all "
                "actions, (m, n_actions), for outcomes (m,)."
            )


def _threshold_losses(y: np.ndarray, threshold: float) -> np.ndarray:
    """Return losses of the actions 0 and 1 if 1 is right above the threshold, (m, 2)."""
    is_above = y > threshold
    return np.column_stack([is_above, ~is_above]).astype(np.float64)


def _number_classes(classes: np.ndarray, threshold: float) -> np.ndarray:
    """Return classes as numbers; refuse those that lie on one side of the threshold."""
    values = convert_numbers(classes)
    if values.dtype.kind not in "iuf" or not values.min() <= threshold < values.max():
        raise ValueError(
            "loss must be a number with classes on both sides of it, as it is held against the "
            f"classes themselves; found {threshold!r} and the classes {format_values(classes)}. To "
            "act where the probability of the second class exceeds t, pass [[0, 1 - t], [t, 0]]."
        )
    return values


def argmin_first(expected: np.ndarray) -> np.ndarray:
    """Return the first of the actions with the least expected loss, (n,) from (n, n_actions)."""
    lowest = expected.min(axis=1, keepdims=True)
    slack = _LOSS_RTOL * np.maximum(np.abs(expected), np.abs(lowest))
    return np.argmax(expected - lowest <= slack, axis=1)


def as_loss(loss: Any) -> DecisionLoss:
    """Return a loss as a `DecisionLoss`, which checks it."""
    return loss if isinstance(loss, DecisionLoss) else DecisionLoss(loss)


def check_loss(loss: Any) -> Any:
    """Return a callable, "zero-one", a finite threshold, or losses (n_actions, n_classes)."""
    if callable(loss) or isinstance(loss, str):
        if isinstance(loss, str) and loss != "zero-one":
            raise ValueError(
                f"loss must be 'zero-one', a matrix, a number or a callable; found {loss!r}. Pass "
                "the losses as an array (n_actions, n_classes)."
            )
        return loss
    if is_number(loss):
        loss = loss.item() if isinstance(loss, np.generic) else loss  # compared as doubles
        if not abs(loss) <= float(np.finfo(np.float64).max):
            raise ValueError(
                f"loss must be a finite number (a threshold); found {loss!r}. Pass the threshold."
            )
        return float(loss)
    is_array = loss is not None and not isinstance(loss, bool)
    values = convert_numbers(as_array(loss, "loss") if is_array else np.empty(0))
    problem = format_value(loss)
    if values.ndim == 2 and values.size > 0 and values.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # long doubles become infinite, which is refused
            values = values.astype(np.float64)
        is_finite = np.isfinite(values).all(axis=1)
        if is_finite.all():
            return values
        problem = f"NaN or infinity for action {int(np.argmin(is_finite))}"
    raise ValueError(
        "loss must be a finite matrix with one row for each action and one column for each class, "
        "a finite number (a threshold), or a callable that returns the losses of all actions; "
        f"found {problem}. Use np.array([[...], [...]]), with large numbers for what must not "
        "happen."
    )


def check_actions(actions: ArrayLike) -> np.ndarray:
    """Return names of actions; refuse repeated ones."""
    names = as_labels(actions, "actions")
    action_list = names.tolist()
    if names.ndim != 1 or not action_list or len(set(action_list)) < len(action_list):
        raise ValueError(
            f"actions must list each action once; found {format_values(np.ravel(names))}. Pass one "
            "name for each action."
        )
    return names


def check_breakpoints(breakpoints: ArrayLike) -> np.ndarray:
    """Return finite numbers in increasing order, each of them once."""
    array = as_array(breakpoints, "breakpoints")
    if array.size == 0:
        return np.empty(0)
    return np.unique(check_numbers(array, "breakpoints", ndim=1, rows="outcomes in a list"))


def class_expected_losses(matrix: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Return expected losses (n, n_actions) from probabilities (n, K) and losses (K, n_actions)."""
    return np.einsum("nk,ka->na", matrix, losses)


@validate_params()
def bayes_action(y_pred: object, *, loss: Any, labels: ArrayLike | None = None) -> np.ndarray:
    r"""The action of the least expected loss for each prediction.

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities in [0, 1]. One-dimensional: of the second class. Two-dimensional: one column
        for each class; rows sum to 1. Or a forecast of a number, as
        :func:`skcalib.forecasts.as_forecast` takes it.

    loss : array-like of shape (n_actions, n_classes), "zero-one", float, callable or DecisionLoss
        The losses of the actions, as :class:`DecisionLoss` takes them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_pred`. Only needed if `loss` is a number or
        a callable.

    Returns
    -------
    action : ndarray of shape (n_samples,)
        The actions of `loss` if they have names, else their numbers from 0. The first of several
        that are equally good, up to rounding: list the one first that is taken at ties. To act
        where :math:`p \ge t`, as :func:`skcalib.metrics.decision_curve` does, the losses are
        ``[[t, 0], [0, 1 - t]]``.

    See Also
    --------
    expected_loss : What the actions are expected to cost.

    Notes
    -----
    Cost: O(n_samples · n_classes · n_actions), and for callables and forecasts all members, all
    likely counts, or 64 nodes and more in place of the classes (see :func:`expected_loss`).

    Examples
    --------
    >>> from skcalib.decisions import bayes_action
    >>> bayes_action([0.1, 0.3], loss=[[0, 5], [1, 0]])  # to miss the second class costs 5
    array([0, 1])
    """
    decision = as_loss(loss)
    if is_forecast(y_pred):
        return decision.named(decision.best_for(as_forecast(y_pred, name="y_pred")))
    return decision.named(argmin_first(_class_expected_losses(y_pred, decision, labels)))


@validate_params()
def expected_loss(
    y_pred: object, *, loss: Any, action: Any = None, labels: ArrayLike | None = None
) -> np.ndarray:
    r"""The loss to expect of each prediction, for which no outcomes are needed.

    Its mean estimates the loss where outcomes are not known yet. For the best action the estimate
    is unbiased if the predictions are calibrated for the decision [1]_ [2]_ (see
    :func:`skcalib.metrics.decision_calibration_error`); if they are overconfident, it is too small.

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities in [0, 1]. One-dimensional: of the second class. Two-dimensional: one column
        for each class; rows sum to 1. Or a forecast of a number, as
        :func:`skcalib.forecasts.as_forecast` takes it.

    loss : array-like of shape (n_actions, n_classes), "zero-one", float, callable or DecisionLoss
        The losses of the actions, as :class:`DecisionLoss` takes them.

    action : scalar or array-like of shape (n_samples,), default=None
        The actions taken, as :func:`bayes_action` returns them; one stands for all samples. By
        default those of the least expected loss.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_pred`. Only needed if `loss` is a number or
        a callable.

    Returns
    -------
    loss : ndarray of shape (n_samples,)
        Expected losses, in the units of `loss`.

    See Also
    --------
    bayes_action : The actions.
    skcalib.metrics.decision_calibration : The mean beside the loss itself, once labels are known.

    Notes
    -----
    :math:`E \ell(a_i, Y_i)` with :math:`Y_i \sim Q_i`, the prediction. It is exact for classes, for
    a number, for ensembles, and for distributions of whole numbers. Otherwise a callable is
    integrated over levels of the quantile function, in pieces between the breakpoints of `loss`,
    each with 32 nodes, which are halved until they are exact to 1e-7 of the integral; a warning
    says where more than 1e-6 remains. Steps and kinks that are no breakpoints take many pieces, and
    some ten times as long; those of a window that falls between nodes, with a probability of less
    than 1/20, are not seen at all.

    References
    ----------
    .. [1] Zhao, Kim, Sahoo, Ma and Ermon (2021). Calibrating Predictions to Decisions. NeurIPS.
       :arxiv:`2107.05719`
    .. [2] Marx, Zalouk and Ermon (2023). Calibration by Distribution Matching: Trainable Kernel
       Calibration Metrics. NeurIPS. :arxiv:`2310.20211`

    Examples
    --------
    >>> from skcalib.decisions import expected_loss
    >>> expected_loss([0.1, 0.3], loss=[[0, 5], [1, 0]])
    array([0.5, 0.7])
    >>> expected_loss([0.1, 0.3], loss=[[0, 5], [1, 0]], action=0)
    array([0.5, 1.5])
    """
    decision = as_loss(loss)
    if is_forecast(y_pred):
        expected = decision.expected_of(as_forecast(y_pred, name="y_pred"))
    else:
        expected = _class_expected_losses(y_pred, decision, labels)
    index = argmin_first(expected) if action is None else decision.numbered(action, *expected.shape)
    return expected[np.arange(len(expected)), index]


def _class_expected_losses(y_pred: Any, decision: DecisionLoss, labels: Any) -> np.ndarray:
    """Return expected losses (n, n_actions) of class probabilities."""
    proba = check_probabilities(y_pred, name="y_pred", partner="labels")
    matrix = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    classes = None if labels is None else as_labels(labels, "labels")
    if classes is not None and classes.shape != (matrix.shape[1],):
        raise ValueError(
            f"labels must name one class for each of the {matrix.shape[1]} columns of y_pred; "
            f"found shape {classes.shape}. Give the classes in the order of the columns."
        )
    check_column_order(y_pred, np.arange(matrix.shape[1]) if classes is None else classes, "y_pred")
    return class_expected_losses(matrix, decision.of_classes(classes, matrix.shape[1]))
