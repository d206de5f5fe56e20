"""A report on calibration, in the manner of scikit-learn's `classification_report`."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .._inputs.by import Subgroups, check_by
from .._inputs.checks import check_predictions
from .._inputs.constraints import METRIC_CONSTRAINTS
from .._inputs.predictions import Predictions
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import num_samples, validate_params
from .._inputs.types import Label, RandomState
from ..forecasts._data import ForecastData, check_forecasts, check_no_labels, with_groups
from ._audit import audit_trail
from ._calibration_report import CalibrationReport
from ._classes import class_rows
from ._findings import LEVEL, impossible
from ._forecast_numbers import (
    check_groups_can_be_tested,
    diagnose,
    forecast_subgroup_rows,
    measure_forecasts,
    run_forecast_test,
)
from ._forecast_text import forecast_advice, forecast_p_value, format_forecast_report
from ._gain import forecast_gain, recalibration_gain
from ._intervals import forecast_intervals, intervals
from ._mistakes import mistake
from ._numbers import measure, most_tested, run_test
from ._pictures import forecast_pictures, pictures
from ._progress import stage
from ._subgroups import subgroup_advice, subgroup_rows
from ._text import format_report
from ._verdict import advice


@validate_params(
    METRIC_CONSTRAINTS
    | {
        "by": "no_validation",
        "groups": "no_validation",
        "recalibrated": ["boolean"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def calibration_report(
    y_true: ArrayLike,
    y_proba: Any,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    by: Any = None,
    groups: ArrayLike | None = None,
    recalibrated: bool = False,
    random_state: RandomState = None,
) -> CalibrationReport:
    """Report how well probabilities or forecasts are calibrated, and whether that could be chance.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1. Or a forecast of a number,
        as :func:`skcalib.forecasts.as_forecast` takes it.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class whose probability a one-dimensional `y_proba` holds. By default the last of
        `labels`.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
            default=None
        Subgroups to report apart: a column, or several, which make their crossings.

    groups : array-like of shape (n_samples,), default=None
        Labels of groups of samples that are not independent of each other, such as the rows of one
        patient. They widen the intervals and change the test. Refused for forecasts without a
        finite mean and standard deviation.

    recalibrated : bool, default=False
        Whether the predictions have been recalibrated: then the report does not advise that.

    random_state : int, RandomState instance or None, default=None
        Seed of what is resampled. Pass an int for a report that can be repeated.

    Returns
    -------
    report : CalibrationReport
        ``print(report)`` shows it as a text, and a notebook as a page; `to_html` writes that page,
        and `to_dict` and `to_json` hold its numbers: "n_samples", "n_classes", "accuracy",
        "mean_confidence", "brier_score_loss", "log_loss", "smooth_calibration_error",
        "expected_calibration_error" (for more than two classes these two end in "_confidence" and
        "_classwise"), "distance_lower_bound", "distance_upper_bound" (between which the distance to
        calibration lies; for more than two classes they end in "_confidence"), "p_value", and the
        adjusted p-values of the components of the test, "p_value_skce", "p_value_log_loss",
        "p_value_level_and_spread" and "p_value_local", "n_tested" (the number of samples in these),
        with `by` "subgroup_p_value", and for miscalibrated predictions "gain". Besides,
        "intervals", "findings", "classes", "subgroups", "advice" and "audit".

        For forecasts the numbers are "n_samples", "continuous_ranked_probability_loss",
        "quantile_calibration_error", "coverage_50", "coverage_80", "coverage_95" (shares of the
        outcomes in central intervals), "mean_width_50", "mean_width_80", "mean_width_95",
        "mean_std", "mean_z", "rms_z" (of standardised errors), "distribution_matching_error",
        "distribution_matching_ratio" (to its standard deviation for calibrated forecasts),
        "p_value", "n_tested" (the number of samples in these three), "quantile_p_value",
        "quantile_n_tested", with `by` "subgroup_p_value", and for miscalibrated forecasts "gain".
        What forecasts cannot know is left out. Quantiles at given levels have the intervals between
        these.

    See Also
    --------
    skcalib.metrics : The measures one by one.
    skcalib.hypothesis_tests.CalibrationTest : The test, with all its options.

    Notes
    -----
    The p-value is that of ``CalibrationTest()``. With many samples (more than 900 000, in
    groups 600 000, or of a thousand classes 100 000) the test uses a random part of them, so that
    the report takes seconds; the report says how many. A label that had probability 0 is certain
    evidence, so a sample with such a label is always in that part. The log loss is scikit-learn's,
    which keeps probabilities 2.2e-16 away from 0 and 1 and so is finite.

    Intervals cover with probability 0.95; they are those of
    :func:`skcalib.uncertainty.confidence_interval` with 199 subsamples, for measures of at most
    200 000 values. The gain is that of :class:`skcalib.recalibration.AutoRecalibrator` in log loss,
    by cross-validation on at most 5000 samples (of K classes, at most 20 000/K², but 200). Of
    subgroups the smooth calibration error is shown, with the p-values of
    :class:`skcalib.hypothesis_tests.SubgroupCalibrationTest`, which are of at most half as many
    samples. If that needs a part, every subgroup has the same number of samples in it, or all that
    it has. The audit trail holds a hash of the labels, probabilities and weights in their order, so
    that anybody who has the data can check that these are what was reported on.

    Of forecasts, at most 1000 samples are tested by ``CalibrationTest()``, and for
    "quantile_p_value" at most 10 000 by ``CalibrationTest("quantile_calibration_error")``, which
    finds what is wrong in the same way everywhere in fewer samples. The p-value in the advice is
    twice the smaller of the two. Forecasts without a finite mean and standard deviation get the
    second only, and forecasts in `groups` the first only, as only it knows of dependent samples.
    Of subgroups the quantile calibration error is shown, with the p-values of
    ``SubgroupCalibrationTest("quantile_calibration_error")`` on at most 10 000 samples; with
    `groups`, with those of ``SubgroupCalibrationTest()`` on at most 1000. The gain is that of
    :class:`skcalib.recalibration.AutoRecalibrator` in the continuous ranked probability
    score (CRPS), by cross-validation on at most 1000 samples, or 200 of a ``DistributionForecast``.

    Coverage counts PITs: outcomes of positive probability count in part, and outcomes of an
    ensemble without weights by their rank, so it may differ from the share of outcomes between the
    ends of the intervals. A standardised error is (outcome − mean) / standard deviation. Errors of
    ensembles and discrete forecasts are divided by the root mean square standard deviation instead.
    For s members without weights that is multiplied by :math:`\\sqrt{(s + 1) / (s - 1)}`: so the
    mean square is 1 if the outcome is exchangeable with the members.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.report import calibration_report
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(1000)
    >>> y = rng.random(1000) < proba
    >>> print(calibration_report(y, proba, random_state=0))
    Calibration of 1000 predictions, 2 classes
    ...
    >>> mean = rng.normal(size=200)
    >>> y = rng.normal(mean, 1.0)
    >>> forecast = mean, np.full(200, 0.4)
    >>> calibration_report(y, forecast, random_state=0).advice
    'Miscalibrated (p = 0.002); standard deviations are too small by a factor 2...'
    """
    rng = check_random_state(random_state)
    if is_forecast(y_proba):
        check_no_labels(labels, pos_label)
        data = check_forecasts(
            y_true, y_proba, sample_weight=sample_weight, names=("y_true", "y_proba")
        )
        data = with_groups(data, y_true, groups, sample_weight)
        check_groups_can_be_tested(data)
        subgroups = None if by is None else check_by(by, num_samples(y_true), sample_weight)
        return forecast_report(
            data, subgroups, rng, num_samples(y_true), random_state, recalibrated=recalibrated
        )
    predictions = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    predictions = with_groups(predictions, y_true, groups, sample_weight)
    n_rows = num_samples(y_true)
    subgroups = None if by is None else check_by(by, n_rows, sample_weight)
    stage("measuring")
    numbers, of_classes = measure(predictions)
    classes = [] if of_classes is None else class_rows(predictions, of_classes)
    stage("testing")
    tested, found = run_test(predictions, rng)
    numbers |= tested
    rows: list[dict[str, Any]] = []
    if subgroups is not None:
        stage("testing subgroups")
        rows, numbers["subgroup_p_value"] = subgroup_rows(
            replace(predictions, classes=np.arange(len(predictions.classes))),
            subgroups,
            rng,
            metric="smooth_calibration_error",
            statistic="auto",
            most_tested=most_tested(predictions) // 2,  # beside the test of all samples
            first=impossible(predictions),
        )
    ends = intervals(predictions, rng)
    if numbers["p_value"] < LEVEL and mistake(predictions) is None:
        stage("recalibrating")
        add_gain(recalibration_gain(predictions, rng), numbers, ends)
    verdict = advice(numbers, ends, predictions, found, recalibrated=recalibrated)
    verdict = subgroup_advice(verdict, rows, "SubgroupRecalibrator recalibrates each of them.")
    return CalibrationReport(
        numbers,
        ends,
        found,
        verdict,
        classes,
        rows,
        audit_trail(
            [predictions.label, predictions.proba, predictions.weight],
            n_rows,
            len(predictions.label),
            random_state,
            pos_label=pos_label,
            classes=predictions.classes.tolist(),
            **_samples_together(subgroups, predictions),
        ),
        format_report(numbers, ends, verdict, rows, classes),
        partial(pictures, predictions),
    )


def forecast_report(
    data: ForecastData,
    subgroups: Subgroups | None,
    rng: np.random.RandomState,
    n_rows: int,
    random_state: RandomState,
    *,
    recalibrated: bool,
) -> CalibrationReport:
    stage("measuring")
    numbers = measure_forecasts(data)
    stage("testing")
    numbers |= run_forecast_test(data, rng)
    rows: list[dict[str, Any]] = []
    if subgroups is not None:
        stage("testing subgroups")
        rows, numbers["subgroup_p_value"] = forecast_subgroup_rows(data, subgroups, rng)
    ends = forecast_intervals(data, numbers, rng)
    if forecast_p_value(numbers) < LEVEL:
        stage("recalibrating")
        add_gain(forecast_gain(data, rng), numbers, ends)
    found = diagnose(data)
    verdict = forecast_advice(numbers, ends, found, recalibrated=recalibrated)
    remedy = "SubgroupRecalibrator recalibrates each of them."
    verdict = subgroup_advice(verdict, rows, remedy)
    audit = audit_trail(
        [data.value, *data.forecast._sort_keys(), data.weight],
        n_rows,
        len(data.value),
        random_state,
        what="outcomes, forecasts and weights",
        forecast=type(data.forecast).__name__,
        **_samples_together(subgroups, data),
    )
    text = format_forecast_report(numbers, ends, verdict, rows)
    draw = partial(forecast_pictures, data)
    return CalibrationReport(numbers, ends, found, verdict, [], rows, audit, text, draw)


def add_gain(
    gain: tuple[float, float, float] | None,
    numbers: dict[str, Any],
    ends: dict[str, tuple[float, float]],
) -> None:
    """Among the numbers and the intervals, if it is known."""
    if gain is not None:
        numbers["gain"], *interval = gain
        ends["gain"] = interval[0], interval[1]


def _samples_together(
    subgroups: Subgroups | None, data: Predictions | ForecastData
) -> dict[str, Any]:
    """Settings of the audit trail: what makes subgroups, and how many groups there are."""
    n_groups = None if data.groups is None else len(np.unique(data.groups))
    return {"by": None if subgroups is None else subgroups.title, "number of groups": n_groups}
