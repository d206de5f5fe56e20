"""Calibration for decisions: whether losses are as expected from the predictions."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._data import AnyData, ClassData, ForecastData, check_data, check_predictions, with_groups
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Count, Label, validate_params
from .._numerics.dependence import GroupedSums
from .._numerics.policies import best_actions, worst_policies
from .._statistics.decisions import DecisionGaps, WorstDecisionGap
from ..forecasts._decisions import DecisionLoss, as_loss
from ._registry import register_metric
from ._terms import MetricTerms, Witness, witness_terms


@dataclass(frozen=True)
class DecisionCalibration:
    """Expected and realised losses of the actions that predictions call for.

    Parameters
    ----------
    actions : ndarray of shape (n_actions,)
        The actions.

    share : ndarray of shape (n_actions,)
        Share of the samples for which the action has the least expected loss.

    expected : ndarray of shape (n_actions,)
        Mean expected loss of the action among these samples; NaN if there are none.

    realised : ndarray of shape (n_actions,)
        Mean loss of the action among these samples.

    standard_error : ndarray of shape (n_actions,)
        Of the difference between the two, if outcomes are drawn from the predictions; NaN for an
        action that is never best.

    gaps : ndarray of shape (n_actions, n_actions)
        For the samples for which the action of the row is best: the mean over all samples of
        realised minus expected loss of the action of the column, 0 for all other samples.

    expected_loss : float
        Mean expected loss of the best actions.

    realised_loss : float
        Mean loss of the best actions.

    standard_error_of_loss : float
        Of the difference between the two.

    error : float
        Root of the sum of the squared gaps: the decision calibration error given the action.

    regret : float
        What these samples would have gained, had another action been taken wherever one is best:
        the most over all such replacements. Biased upwards.

    regret_bound : float
        Twice the sum over rows of the largest absolute gap. The regret is not larger.

    See Also
    --------
    decision_calibration : The function that returns it.

    Examples
    --------
    >>> from skcalib.metrics import decision_calibration
    >>> table = decision_calibration([0, 1, 1, 1], [0.1, 0.1, 0.8, 0.8], loss=[[0, 5], [1, 0]])
    >>> table.expected.round(3).tolist(), table.realised.tolist()
    ([0.5, 0.2], [2.5, 0.0])
    """

    actions: np.ndarray
    share: np.ndarray
    expected: np.ndarray
    realised: np.ndarray
    standard_error: np.ndarray
    gaps: np.ndarray
    expected_loss: float
    realised_loss: float
    standard_error_of_loss: float
    error: float
    regret: float
    regret_bound: float


def check_decision_data(
    y_true: ArrayLike,
    y_pred: object,
    loss: Any,
    sample_weight: ArrayLike | None,
    pos_label: Label | None,
    labels: ArrayLike | None,
    given: ArrayLike | None = None,
) -> tuple[AnyData, DecisionLoss]:
    """Return the data, and the loss with its columns in the order of the classes of the data."""
    decision = as_loss(loss)
    may_be_numbers = not decision.is_of_classes
    data = check_data(
        y_true, y_pred, sample_weight, pos_label, labels, given, may_be_numbers=may_be_numbers
    )
    if are_classes_reversed(data, labels, pos_label):
        decision = decision.with_classes_reversed()
    return data, decision


def are_classes_reversed(data: AnyData, labels: ArrayLike | None, pos_label: Label | None) -> bool:
    """True if `pos_label` is the first of the labels, or of the sorted classes without labels."""
    if pos_label is None or isinstance(data, ForecastData):
        return False
    first, second = data.classes.tolist()
    if labels is not None:
        return np.asarray(labels).tolist()[0] != first
    return first is not None and first > second


def _decision_calibration_error(
    data: AnyData, loss: Any, given: str | None = None, compared_actions: str = "all"
) -> float:
    gaps = DecisionGaps(data, loss=loss, given=given, compared_actions=compared_actions)
    return float(np.sqrt(np.sum(gaps.gaps() ** 2)))


def _find_decision_witness(
    data: AnyData, loss: object, compared_actions: str, given: str | None = None
) -> Witness | MetricTerms:
    gaps = DecisionGaps(data, loss=loss, given=given, compared_actions=compared_actions)
    by_group = gaps.gaps()[0]  # (G, A), or (G, 1) of the actions taken
    direction = (by_group / (np.linalg.norm(by_group) or 1.0))[gaps.code]
    if isinstance(data, ForecastData):
        terms = np.einsum("na,na->n", direction, gaps.terms()[0])
        return MetricTerms(data.weight, terms, None, None)
    losses = gaps.compute_losses(np.arange(len(data.classes)))  # (K, A)
    if compared_actions == "chosen":
        return Witness(direction * losses.T[gaps.action])
    return Witness(direction @ losses.T)


@register_metric(
    _decision_calibration_error,
    cost="n",
    takes=("classes", "forecasts"),
    statistic=DecisionGaps,
    terms=witness_terms(_find_decision_witness),
)
def decision_calibration_error(
    y_true: ArrayLike,
    y_pred: object,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    loss: Any = "zero-one",
    given: str | ArrayLike | None = None,
    compared_actions: Literal["all", "chosen"] = "all",
) -> float:
    r"""Decision calibration error (DCE): how far realised losses are from expected ones.

    It is 0 if the mean loss of every action is what the predictions expect. On samples of
    calibrated predictions it is positive, of order :math:`n^{-1/2}` (biased upwards).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities of the positive class, or of all classes (rows sum to 1). Or a forecast of a
        number, as :func:`skcalib.forecasts.as_forecast` takes it.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_pred`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    loss : array-like of shape (n_actions, n_classes), float, callable or DecisionLoss, \
            default="zero-one"
        The losses of the actions, as :class:`skcalib.decisions.DecisionLoss` takes them, with the
        columns of an array in the order of `labels`. "zero-one" is for classes only. A number c
        stands for the decision whether the outcome exceeds c, with loss 1 if that is wrong.

    given : "action" or array-like of shape (n_samples,) or (n_samples, n_features), default=None
        "action" compares losses separately among samples with the same best action; an array,
        among samples with equal values.

    compared_actions : {"all", "chosen"}, default="all"
        "all" compares the expected and realised losses of every action, for each sample. "chosen"
        compares only those of the best action.

    Returns
    -------
    error : float
        In units of the loss; 0 is best.

    See Also
    --------
    any_decision_calibration_error : If losses are not known.
    decision_calibration : The expected and realised loss of each action.
    skcalib.recalibration.DecisionRecalibrator : Makes the error small.
    skcalib.hypothesis_tests.CalibrationTest : Whether the error is more than chance.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, :math:`Y_i` drawn from the i-th prediction, and groups
    :math:`g_i` (all; the best action :math:`\delta_i`; or those given), the gaps are

    .. math::
        D_g(a) = \sum_i w_i 1[g_i = g] (\ell(a, y_i) - E \ell(a, Y_i)), \qquad
        \mathrm{error} = \Big(\sum_g \sum_a D_g(a)^2\Big)^{1/2}.

    Without `given` it is equation 19 of [1]_. Given the action [2]_, no replacement of actions by
    others gains more than :math:`2 \sqrt{A}` times the error, for A actions. With "chosen" the sum
    over a has one term, that of :math:`\delta_i`.

    Ties go to the first of the best actions. With an ensemble of few members, the expected loss of
    the best action is too small, because the same members choose this action.
    ``CalibrationTest(method="asymptotic")`` tests only that all gaps are 0. Cost: :math:`O(n A)`,
    after the expected losses.

    References
    ----------
    .. [1] Marx, Zalouk and Ermon (2023). Calibration by Distribution Matching: Trainable Kernel
       Calibration Metrics. NeurIPS. :arxiv:`2310.20211`
    .. [2] Zhao, Kim, Sahoo, Ma and Ermon (2021). Calibrating Predictions to Decisions: A Novel
       Approach to Multi-Class Calibration. NeurIPS. :arxiv:`2107.05719`

    Examples
    --------
    Four loans, granted (0) or refused (1):

    >>> from skcalib.metrics import decision_calibration_error
    >>> y, proba, loss = [0, 1, 1, 1], [0.1, 0.1, 0.8, 0.8], [[0, 5], [1, 0]]
    >>> decision_calibration_error(y, proba, loss=loss, given="action")
    1.140...
    >>> decision_calibration_error(y, proba, loss=loss, compared_actions="chosen")
    0.89...
    """
    name = given if isinstance(given, str) else None
    data, decision = check_decision_data(
        y_true, y_pred, loss, sample_weight, pos_label, labels, given if name is None else None
    )
    return _decision_calibration_error(data, decision, name, compared_actions)


def _any_decision_calibration_error(data: ClassData, n_actions: int = 2) -> float:
    data = data.sort_samples()
    return float(WorstDecisionGap(data, n_actions=n_actions)(data.label[None])[0])


def _find_policy_witness(data: ClassData, n_actions: int) -> Witness:
    ordered, matrix = data.sort_samples(), data.matrix
    _, policy = worst_policies(ordered.matrix, ordered.weight, ordered.label[None], n_actions)
    is_taken = best_actions(matrix, policy[0])[:, None] == np.arange(n_actions)  # (n, A)
    residual = data.weight[:, None] * (np.eye(matrix.shape[1])[data.label] - matrix)
    gap = is_taken.T @ residual  # (A, K)
    length = np.linalg.norm(gap, axis=1, keepdims=True)
    return Witness(is_taken @ (gap / np.where(length > 0, length, 1.0)))


@register_metric(
    _any_decision_calibration_error,
    {"n_actions": [Count(1, 50)]},
    cost="n log n",
    statistic=WorstDecisionGap,
    largest=np.sqrt(2),
    terms=witness_terms(_find_policy_witness),
)
def any_decision_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    n_actions: int = 2,
) -> float:
    r"""Error of expected losses for the worst of all decisions with a few actions.

    Whoever chooses among at most `n_actions` actions, by whatever losses, finds their mean loss as
    expected, up to this error times the size of the losses. On samples of calibrated predictions
    it is positive, of order :math:`n^{-1/2}` (biased upwards), the more so the more actions and
    classes. For two classes it is exact; for more, a lower bound from a local search.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    n_actions : int, default=2
        The largest number of actions, at most 50. 1 leaves the mean of the residuals.

    Returns
    -------
    error : float
        Between 0 and :math:`\sqrt 2`; 0 is best.

    See Also
    --------
    decision_calibration_error : For known losses, in their units.
    skcalib.recalibration.AnyDecisionRecalibrator : Makes the error small.
    skcalib.hypothesis_tests.CalibrationTest : Whether the error is more than chance.

    Notes
    -----
    For A actions, the largest gap between the mean loss of the chosen actions and the one
    expected, over all losses with :math:`\|\ell(a, \cdot)\|_2 \le 1` for each a, is

    .. math::
        \sup_\delta \sum_{a=1}^A \Big\| \sum_i w_i 1[\delta(p_i) = a] (e_{y_i} - p_i) \Big\|_2,

    with weights that sum to 1, and policies :math:`\delta(p) = \operatorname{argmax}_a \theta_a
    \cdot p`. It is 0 for decision calibration with respect to all losses with A actions ([1]_,
    Definition A.1 of [2]_).

    With two classes, a dynamic programme finds the best intervals in :math:`O(n (\log n + A))`.
    With more, a local search that begins at cuts of the probability of a class moves one
    :math:`\theta_a` at a time, at :math:`O(n K^2 A^2)` for each sweep.

    References
    ----------
    .. [1] Zhao, Kim, Sahoo, Ma and Ermon (2021). Calibrating Predictions to Decisions: A Novel
       Approach to Multi-Class Calibration. NeurIPS. :arxiv:`2107.05719`
    .. [2] Marx, Zalouk and Ermon (2023). Calibration by Distribution Matching: Trainable Kernel
       Calibration Metrics. NeurIPS. :arxiv:`2310.20211`

    Examples
    --------
    Half are positive, as predicted, but below 1/2 there are too few, and above too many:

    >>> from skcalib.metrics import any_decision_calibration_error
    >>> y, proba = [0, 0, 1, 1], [0.4, 0.4, 0.6, 0.6]
    >>> any_decision_calibration_error(y, proba, n_actions=1)
    0.0
    >>> any_decision_calibration_error(y, proba)
    0.56...
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    return _any_decision_calibration_error(data, n_actions=n_actions)


@validate_params()
def decision_calibration(
    y_true: ArrayLike,
    y_pred: object,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    loss: Any = "zero-one",
    groups: ArrayLike | None = None,
) -> DecisionCalibration:
    r"""Expected and realised losses of each action.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities of the positive class, or of all classes (rows sum to 1). Or a forecast of a
        number, as :func:`skcalib.forecasts.as_forecast` takes it.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_pred`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    loss : array-like of shape (n_actions, n_classes), float, callable or DecisionLoss, \
            default="zero-one"
        The losses of the actions, as in :func:`decision_calibration_error`.

    groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Groups of samples that are not independent, such as the rows of a patient; at least 10. Two
        columns cross each other, such as patients and readers.

    Returns
    -------
    table : DecisionCalibration
        One value for each action, and the totals.

    See Also
    --------
    decision_calibration_error : One number, with its test and confidence interval.
    skcalib.decisions.expected_loss : The expected losses, for which no labels are needed.
    skcalib.display.DecisionDisplay : The same as a figure.

    Notes
    -----
    The formulas are those of :func:`decision_calibration_error`. The standard errors say how far
    realised losses may be from expected ones, if outcomes are drawn from the predictions: without
    `groups`, :math:`\sqrt{\sum_i w_i^2 \operatorname{Var} \ell(a_i, Y_i)}` over the samples with an
    action, divided by their share. So few losses have a standard error, too, even if all are alike.
    An ensemble without weights is held to be a sample of something unknown: there, the squared
    differences of realised and expected losses take the place of the variances. With `groups`,
    outcomes depend on each other as in :func:`decision_curve`.

    Examples
    --------
    >>> from skcalib.metrics import decision_calibration
    >>> table = decision_calibration([0, 1, 1, 1], [0.1, 0.1, 0.8, 0.8], loss=[[0, 5], [1, 0]])
    >>> table.expected_loss, table.realised_loss
    (0.35, 1.25)
    >>> table.regret, round(table.regret_bound, 2)
    (1.0, 3.0)
    """
    data, decision = check_decision_data(y_true, y_pred, loss, sample_weight, pos_label, labels)
    data = with_groups(data, y_true, groups, sample_weight)
    return decision_table(DecisionGaps(data, loss=decision, given="action"))


def decision_table(measure: DecisionGaps) -> DecisionCalibration:
    """Return the table of gaps that are conditioned on the action."""
    n_actions, weight, action = measure.n_actions, measure.data.weight, measure.action
    rows = np.arange(len(action))
    expected, realised = measure.expected, measure.compute_losses()[0]
    sums = GroupedSums(weight, measure.data.groups)
    taken_expected, taken = expected[rows, action], realised[rows, action]
    residual = weight * (taken - taken_expected)
    deviation = weight * np.sqrt(measure.loss_variances())
    gaps = np.zeros((n_actions, n_actions))
    gaps[measure.groups] = measure.gaps()[0]
    share = np.bincount(action, weight, n_actions)
    out = np.full((3, n_actions), np.nan)
    mean_of_all = np.zeros((n_actions, n_actions))
    for a in np.flatnonzero(share):
        is_taken = action == a
        action_share = weight[is_taken] / weight[is_taken].sum()
        out[:2, a] = action_share @ taken_expected[is_taken], action_share @ taken[is_taken]
        out[2, a] = sums.standard_deviation(is_taken * residual, is_taken * deviation) / share[a]
        mean_of_all[a] = weight[is_taken] @ realised[is_taken]
    regret = float(np.sum(np.diag(mean_of_all) - mean_of_all.min(axis=1)))
    return DecisionCalibration(
        actions=measure.loss.named(np.arange(n_actions)),
        share=share,
        expected=out[0],
        realised=out[1],
        standard_error=out[2],
        gaps=gaps,
        expected_loss=float(weight @ taken_expected),
        realised_loss=float(weight @ taken),
        standard_error_of_loss=sums.standard_deviation(residual, deviation),
        error=float(np.sqrt(np.sum(gaps**2))),
        regret=regret,
        regret_bound=float(2 * np.abs(gaps).max(axis=1).sum()),
    )
