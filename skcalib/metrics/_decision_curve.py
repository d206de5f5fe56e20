"""Decision curves: expected and realised values of decisions along a cost ratio."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from .._data import AnyData, ForecastData, check_predictions, with_groups
from .._inputs.annotations import DataFrame
from .._inputs.arrays import ArrayLike, convert_numbers, format_value, import_package
from .._inputs.scikit_learn import Interval, Label, validate_params
from .._numerics.dependence import GroupedSums
from ..forecasts._decisions import DecisionLoss

_THRESHOLDS = np.linspace(0.01, 0.99, 99)
_SHARE_OF_EVENTS = Interval(Real, 0, 1, closed="neither")


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """The numbers of a decision curve: what :func:`decision_curve` returns.

    Parameters
    ----------
    threshold : ndarray of shape (n_thresholds,)
        The probabilities from which on one acts, sorted.

    realised : ndarray of shape (n_thresholds,)
        Net benefit, or mean loss, of acting where the prediction is at least the threshold.

    expected : ndarray of shape (n_thresholds,)
        What the predictions expect it to be.

    margin : ndarray of shape (n_thresholds,)
        Half-widths of the intervals around what is realised. They say how far it may be from what
        is expected, if labels are drawn from the predictions, as dependent as the groups show. NaN
        with `prevalence`, as the labels of a case-control study are not drawn.

    treat_all : ndarray of shape (n_thresholds,)
        What it is for acting always.

    treat_none : ndarray of shape (n_thresholds,)
        What it is for acting never.

    Examples
    --------
    >>> from skcalib.metrics import decision_curve
    >>> curve = decision_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], thresholds=[0.2, 0.5])
    >>> curve.realised, curve.treat_all
    (array([0.4375, 0.    ]), array([0.375, 0.   ]))
    """

    threshold: np.ndarray
    realised: np.ndarray
    expected: np.ndarray
    margin: np.ndarray
    treat_all: np.ndarray
    treat_none: np.ndarray

    @property
    def net_benefit_per_event(self) -> np.ndarray:
        """The net benefit divided by the prevalence: at most 1, what perfect predictions have."""
        realised, treat_all = self._net_benefits
        return realised / (treat_all * (1 - self.threshold) + self.threshold)

    @property
    def interventions_avoided(self) -> np.ndarray:
        """Treatments avoided per sample, compared with treating all at the same net benefit.

        True negatives, less the false negatives at their price in true negatives; 0 at threshold 0.
        """
        realised, treat_all = self._net_benefits
        odds = self.threshold / (1 - self.threshold)
        return np.divide(realised - treat_all, odds, out=np.zeros(len(odds)), where=odds > 0)

    @property
    def _net_benefits(self) -> np.ndarray:
        values = np.stack([self.realised, self.treat_all])
        is_loss = self.treat_none.any()
        return (self.treat_none - values) / (1 - self.threshold) if is_loss else values

    def to_frame(self) -> DataFrame:
        """The curve as a data frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each threshold, with the columns "threshold", "realised", "expected",
            "low" and "high", the ends of the interval, "treat_all" and "treat_none".
        """
        pd = import_package("pandas", "to_frame()", "pandas")
        columns = dict(vars(self))
        margin = columns.pop("margin")
        frame = pd.DataFrame(columns)
        frame.insert(3, "low", self.realised - margin)
        frame.insert(4, "high", self.realised + margin)
        return frame


@validate_params({"thresholds": ["array-like", None], "prevalence": [_SHARE_OF_EVENTS, None]})
def decision_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    kind: Literal["net-benefit", "loss"] = "net-benefit",
    thresholds: ArrayLike | None = None,
    prevalence: float | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> DecisionCurve:
    r"""Decision curve: the net benefit of acting from a threshold of the probability on.

    For two classes; also the net benefit that is expected from the predictions.

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

    kind : {"net-benefit", "loss"}, default="net-benefit"
        The net benefit, in true alarms per sample; or the mean loss, if a false alarm costs t and a
        miss 1 − t.

    thresholds : array-like of shape (n_thresholds,), default=None
        Thresholds t in [0, 1): one acts if the event has at least this probability. By default
        0.01, …, 0.99.

    prevalence : float in (0, 1), default=None
        Share of events in the population, if that of the samples was chosen, as in a case-control
        study. Events and others are weighted to have it.

    groups : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Groups of samples that are not independent, such as the rows of a patient; at least 10. Two
        columns cross each other, such as patients and readers.

    confidence_level : float, default=0.95
        Probability with which the interval at one threshold covers the expected value if it is
        right.

    Returns
    -------
    curve : DecisionCurve
        Its `threshold`, `realised`, `expected`, `margin`, `treat_all` and `treat_none`;
        `net_benefit_per_event` and `interventions_avoided`. Its method `to_frame` makes a data
        frame.

    See Also
    --------
    skcalib.display.DecisionDisplay : Draws it, also for forecasts of a number.
    decision_calibration : For the losses of any actions.

    Notes
    -----
    With weights :math:`w_i` that sum to 1, the net benefit at the threshold t is [1]_

    .. math:: \sum_i w_i 1[p_i \ge t] \Big(y_i - \frac{t}{1 - t} (1 - y_i)\Big),

    and the expected one is the same with :math:`p_i` in place of :math:`y_i`. Acting never has the
    net benefit 0. The margin is a normal quantile times the standard deviation of the difference of
    both if the predictions are right and samples independent,
    :math:`\sqrt{\sum_i w_i^2 s_i^2 p_i (1 - p_i)}`, where s is the slope of a term in y. Few alarms
    have a margin, too, even if none of them is false.

    With `groups`, terms of a group may depend on each other. How much is estimated from the
    products of residuals in all groups of half to twice the weight, and in two added groups whose
    labels all agree. The variance of two columns is the sum of both less that of the groups in
    which both agree, but no less than either. The quantile is Student's, with 1 less degree of
    freedom than :math:`1 / \sum_g W_g^2` groups of weights W; the smaller of two.

    References
    ----------
    .. [1] Vickers and Elkin (2006). Decision Curve Analysis: A Novel Method for Evaluating
       Prediction Models. Medical Decision Making. :doi:`10.1177/0272989X06295361`

    Examples
    --------
    >>> from skcalib.metrics import decision_curve
    >>> decision_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], thresholds=[0.2]).realised
    array([0.4375])
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    data = with_groups(data, y_true, groups, sample_weight)
    options = DecisionLoss("zero-one"), kind, thresholds, confidence_level
    if prevalence is None:
        return make_decision_curve(data, *options)
    _, is_event = _two_classes(data, options[0])
    share = data.weight @ is_event
    if is_event.all() or not is_event.any():
        raise ValueError(
            "y_true must hold both outcomes if prevalence is given; found the class "
            f"{data.classes[round(share)]} alone. Leave out prevalence."
        )
    factor = np.where(is_event, prevalence / share, (1 - prevalence) / (1 - share))
    curve = make_decision_curve(replace(data, weight=data.weight * factor), *options)
    return replace(curve, margin=np.full_like(curve.margin, np.nan))


def make_decision_curve(
    data: AnyData, decision: DecisionLoss, kind: str, thresholds: Any, level: float
) -> DecisionCurve:
    """The numbers of two classes, or of whether the outcome exceeds the number of the decision."""
    proba, label = _two_classes(data, decision)
    t = _THRESHOLDS if thresholds is None else _check_thresholds(thresholds)
    sums = GroupedSums(data.weight, data.groups)
    values = [_compare_at_ratio(proba, label, sums, threshold, kind) for threshold in t]
    expected, realised, deviation = np.transpose(values)
    base_rate = float(data.weight @ label)
    always, never = (1 - base_rate) * t, base_rate * (1 - t)
    if kind == "net-benefit":
        always, never = base_rate - always / (1 - t), np.zeros_like(t)
    margin = sums.quantile(level) * deviation
    return DecisionCurve(t, realised, expected, margin, always, never)


def _two_classes(data: AnyData, decision: DecisionLoss) -> tuple[Any, ...]:
    """Probabilities of the second class, and whether it is the outcome."""
    if isinstance(data, ForecastData):
        if callable(decision.loss):
            raise ValueError(
                "loss must be a number c for forecasts along a cost ratio, where the decision is "
                "whether the outcome exceeds c; found a callable. Pass kind='actions'."
            )
        decision.check_is_of_numbers()
        return data.forecast.sf(decision.loss), data.value > decision.loss
    if not data.is_binary:
        raise ValueError(
            "y_proba must hold the probabilities of two classes for a decision curve; found "
            f"{len(data.classes)} classes. Pass the labels y == k with the probability of class k, "
            "or take decision_calibration, or kind='actions' of DecisionDisplay."
        )
    return data.proba, data.label == 1


def _compare_at_ratio(
    proba: np.ndarray, label: np.ndarray, sums: GroupedSums, t: float, kind: str
) -> tuple[Any, ...]:
    """Expected and realised value, and the deviation of their difference if labels are drawn."""
    acts = proba >= t
    if kind == "loss":
        slope = np.where(acts, -t, 1 - t)  # of the loss in y
        start = np.where(acts, t, 0.0)
    else:
        slope = acts / (1 - t)
        start = acts * (-t / (1 - t))
    expected, realised = start + slope * proba, start + slope * label
    residual = sums.weight * (realised - expected)
    spread = sums.weight * np.abs(slope) * np.sqrt(proba * (1 - proba))
    means = sums.weight @ expected, sums.weight @ realised
    return *means, sums.standard_deviation(residual, spread)


def _check_thresholds(thresholds: ArrayLike | None) -> np.ndarray:
    """Sorted numbers in [0, 1)."""
    values = convert_numbers(np.asarray(thresholds))
    is_list = values.ndim == 1 and len(values) > 0 and values.dtype.kind in "iuf"
    if not is_list or not ((values >= 0) & (values < 1)).all():
        raise ValueError(
            f"thresholds must be a list of numbers in [0, 1); found {format_value(thresholds)}. A "
            "threshold of 0.2 stands for a miss that costs four times as much as a false alarm."
        )
    return np.sort(values.astype(np.float64))
