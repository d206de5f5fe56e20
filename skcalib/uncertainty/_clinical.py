"""The calibration measures of a clinical validation, with intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._data import ClassData, check_predictions, with_groups
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import Label, RandomState, validate_params
from ..metrics._clinical import (
    check_two_classes,
    compute_calibration_in_the_large,
    compute_calibration_intercept,
    compute_calibration_slope,
    compute_observed_expected_ratio,
    distances_from_curve,
)
from ._group_scores import MIN_EFFECTIVE_EVENTS, GroupScores
from ._intervals import ConfidenceInterval
from ._measured import RESAMPLING_CONSTRAINTS
from ._resampling import Limits, Measure, Units, jackknife_deviation, resample

# Titles of the rows, and the values of calibrated predictions.
_ROW_TITLES = {
    "calibration_in_the_large": ("calibration in the large", 0),
    "observed_expected_ratio": ("O:E ratio", 1),
    "calibration_intercept": ("calibration intercept", 0),
    "calibration_slope": ("calibration slope", 1),
    "integrated_calibration_index": ("ICI", 0),
    "e50": ("E50", 0),
    "e90": ("E90", 0),
}


@dataclass(frozen=True, repr=False)
class ClinicalCalibration:
    """The measures of calibration of a clinical validation, with confidence intervals.

    Printed, it is a table. ``vars(result)`` is the dictionary of all that follows.

    Parameters
    ----------
    calibration_in_the_large : ConfidenceInterval
        The observed frequency minus the mean prediction; 0 is calibrated.

    observed_expected_ratio : ConfidenceInterval
        Observed divided by predicted number of events; 1 is calibrated.

    calibration_intercept : ConfidenceInterval
        What is missing in the log-odds; 0 is calibrated.

    calibration_slope : ConfidenceInterval
        The factor that is missing in the log-odds; 1 is calibrated.

    integrated_calibration_index : ConfidenceInterval
        Mean distance (ICI) between predictions and a smooth curve; 0 is calibrated.

    e50 : ConfidenceInterval
        The median of these distances.

    e90 : ConfidenceInterval
        The 90 % quantile of these distances.

    effective_n_events : float or None, default=None
        How many independent events vary as much as those expected in the groups (or non-events, if
        these are less); None without groups. If it is below 10, the intervals rest on a guess of
        how the labels of a group depend on each other, and the table says so.

    See Also
    --------
    clinical_calibration : The function that returns it.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import clinical_calibration
    >>> y_true, y_proba = make_temperature_family(200, random_state=0)
    >>> result = clinical_calibration(y_true, y_proba, n_resamples=99, random_state=0)
    >>> round(result.calibration_slope.estimate, 2)
    1.02
    """

    calibration_in_the_large: ConfidenceInterval
    observed_expected_ratio: ConfidenceInterval
    calibration_intercept: ConfidenceInterval
    calibration_slope: ConfidenceInterval
    integrated_calibration_index: ConfidenceInterval
    e50: ConfidenceInterval
    e90: ConfidenceInterval
    effective_n_events: float | None = None

    def __repr__(self) -> str:
        lines = [f"{'':24} {'estimate':>9} {'low':>9} {'high':>9} {'calibrated':>11}"]
        for name, (title, ideal) in _ROW_TITLES.items():
            interval = getattr(self, name)
            ends = " ".join(
                f"{value:9.3f}" for value in (interval.estimate, interval.low, interval.high)
            )
            lines.append(f"{title:24} {ends} {ideal:11}")
        n_events = self.effective_n_events
        if n_events is not None and n_events < MIN_EFFECTIVE_EVENTS:
            lines.append(f"Few events: the groups count as {n_events:.2g} independent ones.")
        return "\n".join(lines)


@validate_params(RESAMPLING_CONSTRAINTS)
def clinical_calibration(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> ClinicalCalibration:
    r"""Calibration as clinical validations report it: O:E ratio, slope, ICI and more.

    Guidelines such as TRIPOD+AI [1]_ ask for calibration in the large, the calibration slope and a
    smooth curve, with their uncertainty [2]_. The numbers are those of the metrics of the same
    names, for two classes; together they say whether predictions are too high or too low
    (calibration in the large, O:E ratio, intercept), too extreme (a slope below 1), and how far
    they are from the curve (ICI, E50, E90).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class whose probability a one-dimensional `y_proba` holds. By default the last of
        `labels`.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    groups : array-like of shape (n_samples,), default=None
        Labels of groups of samples that are not independent of each other, such as the rows of one
        patient: whole groups are drawn and left out. At least 10. For a series,
        numbers of blocks, such as ``np.arange(n) // length``.

    confidence_level : float in (0, 1), default=0.95
        Probability with which each interval is to cover its value.

    n_resamples : int, default=999
        Number of subsamples for ICI, E50 and E90.

    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. The result does not depend on `n_jobs`.

    n_jobs : int, default=None
        Number of jobs among which joblib spreads the resamples; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    Returns
    -------
    result : ClinicalCalibration
        One :class:`ConfidenceInterval` for each measure, as attributes; printed, a table.

    See Also
    --------
    skcalib.metrics.integrated_calibration_index : The curve, and the distances from it.
    skcalib.metrics.calibration_slope : When it is infinite or NaN.
    skcalib.hypothesis_tests.CalibrationTest : Whether the model may be calibrated after all.

    Notes
    -----
    Calibration in the large, the logarithm of the O:E ratio, intercept and slope are smooth
    functions of means. Their intervals are those of Student's t with the delete-a-group jackknife
    (100 groups, or single samples if n is smaller). It takes the observed frequencies as they are,
    so it holds for miscalibrated models, too. With `groups` they are the hull of these and of score
    intervals, as a jackknife does not see how many events a large group may have that happened to
    have none. With :math:`p(\alpha) = \mathrm{expit}(\mathrm{logit}\,p + \alpha)`, the ends
    :math:`\alpha` of the intercept are those where :math:`|\sum w y - \sum w p(\alpha)|` is 1.96
    standard deviations; O:E ratio and calibration in the large are those of :math:`\sum w
    p(\alpha)`, and the slope varies by its influence values in place of w. The variance of a group
    lies between that of independent labels and that of labels which all follow one number, by its
    dependence, which is estimated from the groups of at least half and at most twice its weight.
    Below ten effective events, :math:`(\sum w p)^2` by the variance, coverage rests on the score
    intervals, and the table says so. ICI, E50 and E90 are positive even for a calibrated
    model; theirs are those of :func:`confidence_interval`, which allow for that. E50 is estimated
    too low if the curve crosses the diagonal by chance: with 100 overconfident predictions its
    interval covered 0.87 instead of 0.95. All coverage that was measured is in
    the benchmark "Coverage of the intervals of a clinical validation".

    An interval is unbounded (from 0 to ∞ for the O:E ratio) if the measure has no finite value
    without one of the groups: if only one outcome is left, or the predictions separate the
    outcomes. So few events say nothing about it.

    Cost: 101 times that of the metrics, and `n_resamples` curves of subsamples.

    References
    ----------
    .. [1] G. S. Collins et al. (2024). TRIPOD+AI statement: updated guidance for reporting clinical
       prediction models that use regression or machine learning methods. BMJ 385, e078378.
       :doi:`10.1136/bmj-2023-078378`
    .. [2] B. Van Calster, D. J. McLernon, M. van Smeden, L. Wynants and E. W. Steyerberg (2019).
       Calibration: the Achilles heel of predictive analytics. BMC Medicine 17, 230.
       :doi:`10.1186/s12916-019-1466-7`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.uncertainty import clinical_calibration
    >>> y_true, y_proba = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    >>> clinical_calibration(y_true, y_proba, random_state=0)
                              estimate       low      high  calibrated
    calibration in the large    -0.023    -0.054     0.008           0
    O:E ratio                    0.954     0.894     1.018           1
    calibration intercept       -0.213    -0.503     0.077           0
    calibration slope            0.438     0.384     0.493           1
    ICI                          0.110     0.073     0.136           0
    E50                          0.103     0.059     0.141           0
    E90                          0.160     0.076     0.204           0
    """
    data = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    check_two_classes(data)
    data = with_groups(data, y_true, groups, sample_weight)
    units = Units(data)
    check_both_outcomes(data)
    rng = check_random_state(random_state)
    limits = jackknife_limits(data, units, rng, n_jobs)
    values = np.array(_distances(data))
    resamples = resample(
        _distances,
        data,
        units,
        values,
        n_resamples=n_resamples,
        rng=rng,
        n_jobs=n_jobs,
        models=[data],
        is_error=True,
    )
    limits += [resamples.limits(limit) for limit in np.eye(len(values)).tolist()]
    ends = np.array([limit.interval(confidence_level) for limit in limits])
    n_events = None
    if data.groups is not None:
        scores = GroupScores.make(data)
        ends[:4] = scores.widen(ends[:4], confidence_level)
        n_events = scores.effective_n_events
    rows = np.column_stack([[limit.estimate for limit in limits], ends])
    rows[1] = np.exp(rows[1])
    rows[4:] = np.clip(rows[4:], 0.0, 1.0)
    intervals = (
        ConfidenceInterval(estimate, low, high, confidence_level)
        for estimate, low, high in rows.tolist()
    )
    return ClinicalCalibration(
        **dict(zip(_ROW_TITLES, intervals, strict=True)), effective_n_events=n_events
    )


def _distances(data: ClassData) -> list[float]:
    """ICI, E50 and E90, from one curve."""
    return distances_from_curve(data, [None, 0.5, 0.9])


def differentiable_measures(data: ClassData) -> list[float]:
    """The measures without absolute values, the ratio as its logarithm."""
    with np.errstate(divide="ignore"):  # no events
        log_ratio = float(np.log(compute_observed_expected_ratio(data)))
    functions = (
        compute_calibration_in_the_large,
        compute_calibration_intercept,
        compute_calibration_slope,
    )
    in_the_large, *line = (measure(data) for measure in functions)
    return [in_the_large, log_ratio, *line]


def jackknife_limits(
    data: Any,
    units: Units,
    rng: np.random.RandomState,
    n_jobs: int | None,
    measures: Measure = differentiable_measures,
) -> list[Limits]:
    """Jackknife limits; infinite ones if a part of the samples has no finite value."""
    without, degrees = units.leave_block_out_means(measures, data, rng, n_jobs)
    values = np.array(without)  # (G, C)
    deviation = np.full(values.shape[1], np.inf)
    is_finite = np.isfinite(values).all(axis=0)
    deviation[is_finite] = jackknife_deviation(values[:, is_finite])
    return [
        Limits(estimate, float(std), degrees, np.empty(0))
        for estimate, std in zip(measures(data), deviation, strict=True)
    ]


def check_both_outcomes(data: ClassData) -> None:
    """Refuse data without events, or without non-events: no measure is finite then."""
    n_events = int(data.label.sum())
    if n_events in (0, len(data.label)):
        raise ValueError(
            f"y_true must hold both outcomes; found {n_events} events among "
            f"{len(data.label)} samples of positive weight. Collect more samples; the "
            "metrics themselves, such as observed_expected_ratio, take one outcome, too."
        )
