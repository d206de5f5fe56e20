"""A report on calibration, in the manner of scikit-learn's `classification_report`."""

import datetime
import hashlib
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from os import PathLike
from typing import Any, Literal, Protocol, cast, overload

import numpy as np
import scipy
import sklearn
from sklearn.utils import check_random_state

from .._inputs.annotations import Estimator, P
from .._inputs.arrays import ArrayLike
from .._inputs.by import Columns, check_by_each, printable
from .._inputs.missing import omit_missing
from .._inputs.probabilities import check_outcomes_by_model
from .._inputs.scikit_learn import Label, RandomState, num_samples, validate_params
from .._versions import __version__
from ..display._base import add_labels, check_models, response_of
from ..uncertainty._measured import check_predicted
from . import _html
from ._classes import ClassSections
from ._findings import Finding, collect_numbers, join_sentences, name_ends, say
from ._forecasts import ForecastSections
from ._pictures import render_model_curves
from ._sections import LEVEL, Sections, TableRows, joint_p_value, notify_progress
from ._text import change_tables, format_comparison, format_head, format_report


class _BaseReport:
    """Base of the reports: the text, the dictionary, JSON and the page of one or several models."""

    text: str
    to_dict: Callable[[], dict[str, Any]]
    draw: Callable[[], dict[str, str]]
    _body: Callable[[], str]

    @property
    def heading(self) -> str:
        """The first line of the text."""
        return self.text.split("\n", 1)[0]

    def __repr__(self) -> str:
        return self.text

    @cached_property
    def figures(self) -> dict[str, str]:
        """The pictures of the page, as SVG, by what they show; none without matplotlib."""
        notify_progress("drawing")
        return self.draw()

    def _repr_html_(self) -> str:
        return f"<style>{_html.STYLE}</style>\n<div class='skcalib'>\n{self._body()}\n</div>"

    def to_json(self) -> str:
        """`to_dict` as JSON; numbers that are not finite become null.

        Returns
        -------
        text : str
            A JSON object.
        """
        return json.dumps(_to_json_types(self.to_dict(), finite=True), indent=2, ensure_ascii=False)

    def to_html(self, path: str | PathLike | None = None) -> str:
        """The report as one self-contained page, which needs no network.

        Parameters
        ----------
        path : str or path-like, default=None
            Where the page is written, if anywhere. A file that is there is replaced once the page
            is whole.

        Returns
        -------
        html : str
            The page.
        """
        html = _html.render_page(self.heading, self._body())
        if path is not None:
            _html.write_atomically(path, html)
        return html


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationReport(_BaseReport):
    """A report on calibration: ``print`` shows its text, a notebook its page.

    Parameters
    ----------
    numbers : dict of str to float
        The measures and p-values by name.

    intervals : dict of str to tuple of (float, float)
        Ends of the 95 % confidence intervals of some of these.

    findings : list of str
        What is wrong, by the tests, by averages, or by outcomes of probability 0.

    sentences : list of str
        What `advice` is made of, `findings` included. Each has `values`, its numbers by their names
        in `numbers` and the ends of `intervals`; `choice`, the rule by which its class,
        range or level was chosen; and `evidence`, the name of the p-value that it rests on; both
        may be empty.

    advice : str
        The verdict, and what to do.

    classes : list of dict
        For more than two classes, the observed share of each, its mean prediction and its smooth
        calibration error against the rest, the worst ones first.

    subgroups : list of dict
        The smooth calibration error of each subgroup, with its interval and p-value, and the
        columns that make the subgroups; of two classes also the events and the O:E ratio.

    audit : dict of str to object
        How the report came about: versions, settings, the number of rows, and a hash of the data.

    draw : callable
        Makes the pictures of the page.

    name : str, default=None
        Name of the model.

    date : str, default=None
        The date that the report bears.

    event : str, default=None
        Of two classes, the name of the positive one.

    See Also
    --------
    calibration_report : The function that returns it.

    Examples
    --------
    >>> from skcalib.report import calibration_report
    >>> report = calibration_report([0, 1, 1, 0], [0.1, 0.6, 0.9, 0.4], random_state=0)
    >>> report.numbers["accuracy"]
    1.0
    >>> report.to_dict()["advice"]
    'No evidence of miscalibration...
    """

    numbers: dict[str, Any]
    intervals: dict[str, tuple[float, float]]
    findings: list[Finding]
    sentences: list[Finding]
    advice: str
    classes: list[dict[str, Any]]
    subgroups: list[dict[str, Any]]
    audit: dict[str, Any]
    draw: Callable[[], dict[str, str]]
    name: str | None = None
    date: str | None = None
    event: str | None = None

    @cached_property
    def text(self) -> str:  # type: ignore[override]
        """All of it as a text."""
        return format_report(self)

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, X: ArrayLike, y: ArrayLike, **options: Any
    ) -> "CalibrationReport":
        """Report on a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with `predict_proba`, or a regressor in which
            :func:`skcalib.forecasts.get_forecast` finds a forecast.

        X : array-like of shape (n_samples, n_features)
            Features of data that the estimator was not fitted on.

        y : array-like of shape (n_samples,)
            Labels, or outcomes.

        **options : dict
            The options of :func:`calibration_report`. `labels` are the classes of the estimator,
            and `name` is by default the name of its class.

        Returns
        -------
        report : CalibrationReport
            The report.
        """
        predicted, data_args = response_of(estimator, X, takes_classes=True)
        options = {"name": type(estimator).__name__} | add_labels(options, data_args)
        return cast(CalibrationReport, calibration_report(y, predicted, **options))

    def to_dict(self) -> dict[str, Any]:
        """The numbers; "name", "date", "findings", "advice", "intervals" and the other attributes.

        Returns
        -------
        report : dict
            Of numbers, strings, lists and dictionaries only.
        """
        attributes = ["name", "date", "event", "intervals", "findings", "advice", "classes"]
        attributes += ["subgroups", "audit"]
        return _to_json_types(
            self.numbers | {attribute: vars(self)[attribute] for attribute in attributes}
        )

    def _body(self) -> str:
        head = _html.render_head(self.heading, self.date)
        verdict = _html.render_verdict(self.advice, self.findings)
        tables = _html.render_tables(self), _html.render_audit({"": self.audit})
        return "\n".join([head, verdict, _html.render_figures(self.figures), *tables])


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonReport(_BaseReport):
    """A report on several models, or on one before and after recalibration.

    ``print`` shows what each is like and what changed, a notebook the page.

    Parameters
    ----------
    reports : dict of str to CalibrationReport
        The report on each model, by its name.

    changes : list of dict
        For each other model and each measure, "model", "measure", the "reference", which is the
        number of the first model, the "value" of this one, their "difference", and "low" and
        "high", the ends of its 95 % confidence interval.

    text : str
        The verdicts and what changed.

    draw : callable
        Makes the picture of the page.

    date : str, default=None
        The date that the report bears.

    See Also
    --------
    calibration_report : The function that returns it.
    skcalib.uncertainty.compare_models : The difference of a single measure.

    Examples
    --------
    >>> from skcalib.report import calibration_report
    >>> y, proba = [0, 1, 1, 0] * 5, [0.1, 0.6, 0.9, 0.4] * 5
    >>> after = [0.1, 0.8, 0.9, 0.2] * 5
    >>> found = calibration_report(y, {"before": proba, "after": after}, random_state=0)
    >>> round(found.changes[0]["difference"], 3), found.changes[0]["measure"]
    (0.0, 'observed_expected_ratio')
    >>> found.reports["after"].numbers["n_events"]
    10
    """

    reports: dict[str, CalibrationReport]
    changes: list[dict[str, Any]]
    text: str
    draw: Callable[[], dict[str, str]]
    date: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """ "reports" by the names of the models, "changes" and "date".

        Returns
        -------
        report : dict
            Of numbers, strings, lists and dictionaries only.
        """
        reports = {name: single.to_dict() for name, single in self.reports.items()}
        return _to_json_types({"reports": reports, "changes": self.changes, "date": self.date})

    def _body(self) -> str:
        changes = change_tables({k: v.numbers for k, v in self.reports.items()}, self.changes)
        return _html.render_comparison(self, changes)


def _to_json_types(value: object, *, finite: bool = False) -> Any:
    """Containers anew, with Python's numbers in place of NumPy's; None for NaN if `finite`."""
    if isinstance(value, dict):
        return {str(name): _to_json_types(entry, finite=finite) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json_types(entry, finite=finite) for entry in value]
    value = value.item() if isinstance(value, np.generic) else value
    value = value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
    return None if finite and isinstance(value, float) and not np.isfinite(value) else value


class _Reporting(Protocol[P]):
    """A function that returns a report: one of several models by name, or of one model."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, y_true: ArrayLike, y_pred: Mapping, **options: object
    ) -> ComparisonReport: ...

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> CalibrationReport: ...


def _refuse_estimators(function: Callable[P, Any]) -> _Reporting[P]:
    @wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        if args and hasattr(args[0], "fit"):
            raise TypeError(
                f"y_true must hold labels or outcomes; found {type(args[0]).__name__}, which is an "
                "estimator. Call CalibrationReport.from_estimator(estimator, X, y), or pass y and "
                "estimator.predict_proba(X)."
            )
        return function(*args, **options)

    return cast(Any, wrapper)


@_refuse_estimators
@validate_params({"name": [str, None], "date": [str, datetime.date, None]})
@omit_missing
def calibration_report(
    y_true: ArrayLike,
    y_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    by: Columns | None = None,
    by_each: Columns | None = None,
    groups: ArrayLike | None = None,
    recalibrated: bool = False,
    name: str | None = None,
    date: str | datetime.date | None = None,
    nan_policy: Literal["raise", "omit"] = "raise",
    random_state: RandomState = None,
) -> "CalibrationReport | ComparisonReport":
    """Report how well probabilities or forecasts are calibrated, and whether that could be chance.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or dict of them
        True labels: strings, integers or booleans. Outcomes, if the predictions are forecasts.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), forecast, or dict of them
        Probabilities of the positive class, or of all classes (rows sum to 1). Or a forecast of a
        number, as :func:`skcalib.forecasts.as_forecast` takes it.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take all
        arrays at ``np.repeat(np.arange(n), counts)``.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_pred`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
            default=None
        Subgroups to report apart: a column, or several, which make their crossings.

    by_each : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
            default=None
        Columns of subgroups to report each by itself, such as sex, and then stage.

    groups : array-like of shape (n_samples,), default=None
        Labels of groups of samples that are not independent of each other, such as the rows of one
        patient. They widen the intervals and change the test. Not for forecasts without a finite
        mean and standard deviation.

    recalibrated : bool, default=False
        Whether the predictions have been recalibrated: then the report does not advise that. Of
        several models, those of all but the first.

    name : str, default=None
        Name of the model, for the head of the report.

    date : str or datetime.date, default=None
        The date that the report bears, such as ``datetime.date.today()``; none by default.

    nan_policy : {"raise", "omit"}, default="raise"
        Refuse missing predictions (None or NaN), or leave out these rows, in all arguments, with a
        warning that counts them. Of forecasts they are always refused.

    random_state : int, RandomState instance or None, default=None
        Seed of what is resampled. Pass an int for a report that can be repeated.

    Returns
    -------
    report : CalibrationReport or ComparisonReport
        A :class:`ComparisonReport` for several models. ``print(report)`` shows it as a text, and a
        notebook as a page, which `to_html` writes; `to_dict` and `to_json` hold its numbers, listed
        in the notes. What the data or forecasts do not determine is left out.

    See Also
    --------
    skcalib.hypothesis_tests.CalibrationTest : The test, with all its options.

    Notes
    -----
    **Several models.** `y_pred` may be a dict of predictions for the same samples, such as
    ``{"before": p, "after": q}``. The others are compared with the first by
    :func:`skcalib.uncertainty.compare_models`. If each model has outcomes of its own, such as
    whether its answers were right, pass them as a dict with the same names in `y_true`.

    **Numbers of probabilities.** "n_samples", "n_classes"; for two classes "n_events",
    "prevalence", "mean_prediction", "observed_expected_ratio", "calibration_intercept",
    "calibration_slope", "area_under_roc_curve" and "integrated_calibration_index"; then "accuracy"
    (for two classes at the threshold 0.5), "mean_confidence" (for more), "brier_score_loss",
    "log_loss", "smooth_calibration_error", "expected_calibration_error" (for more than two classes
    these two end in "_confidence" and "_classwise"), "distance_lower_bound" and
    "distance_upper_bound" (for more than two classes with "_confidence"), "p_value", the adjusted
    p-values of its components, "p_value_skce", "p_value_log_loss", "p_value_level_and_spread" and
    "p_value_local", and "n_tested" (the number of samples in these); with `by` or `by_each`
    "subgroup_p_value" and "n_subgroup_columns"; for miscalibrated predictions "gain" and
    "n_recalibrated" (the number of samples on which it was found); and what the `sentences` of the
    report say, such as "gap_predicted" and "gap_observed". Besides, "name", "date", "event",
    "intervals", "findings", "classes", "subgroups", "advice" and "audit".

    **Numbers of forecasts.** "n_samples", "continuous_ranked_probability_loss",
    "quantile_calibration_error", "coverage_50", "coverage_80" and "coverage_95" (of the intervals
    of `forecast.interval`), for forecasts with mass at a point "expected_coverage_50" and so on
    (the probability of these intervals if the forecasts are calibrated), "mean_width_50",
    "mean_width_80", "mean_width_95", "mean_std", for s exchangeable members "share_between_members"
    ((s − 1)/(s + 1) if they are calibrated), "mean_z", "rms_z" (of standardised errors, (outcome −
    mean) / standard deviation), "distribution_matching_error", "distribution_matching_ratio" (to
    its standard deviation for calibrated forecasts), "p_value", "p_value_skce", "p_value_pit",
    "p_value_bias_and_spread" and "n_tested"; for more than 1000 samples "quantile_p_value",
    "quantile_n_tested" and "moments_p_value" (of bias, spread and skewness); "subgroup_p_value",
    "gain" and "n_recalibrated" as above. The findings count outcomes at an end of positive
    probability in part, and those of an ensemble without weights by their rank. Errors of ensembles
    and discrete forecasts are divided by the root mean square standard deviation, for s members
    without weights times :math:`\\sqrt{(s + 1) / (s - 1)}`.

    **Test.** The p-value is that of ``CalibrationTest()``, on a random part of more than 900 000
    samples (in groups 300 000, for a thousand classes 100 000), which always holds the samples
    whose label had probability 0. Forecasts are tested on at most 1000 samples; if there are more
    and no `groups`, ``CalibrationTest("quantile_calibration_error")`` tests at most 10 000, too,
    and the p-value in the advice is twice the smaller of the two.

    **Intervals** cover with probability 0.95: by :func:`skcalib.uncertainty.confidence_interval`
    with 199 draws of outcomes, for at most 200 000 values, and of the integrated calibration index
    for at most 50 000 samples. Those of O:E ratio, intercept, slope and area under the ROC curve
    have a closed form, that of :func:`skcalib.uncertainty.clinical_calibration`.

    **Subgroups** show the smooth calibration error, with the p-values of
    :class:`skcalib.hypothesis_tests.SubgroupCalibrationTest` on at most half as many samples as the
    test. Forecasts show the quantile calibration error, tested on at most 10 000 samples, or with
    `groups` by ``SubgroupCalibrationTest()`` on at most 1000. `by` and each column of `by_each`
    have a table. With k tables all p-values are multiplied by k (Bonferroni): the smallest,
    "subgroup_p_value", is valid for all of them.

    **Gain** is that of :class:`skcalib.recalibration.AutoRecalibrator`, by cross-validation: in log
    loss on at most 120 000 / (10 + K) samples of K classes, or in the continuous ranked probability
    score (CRPS) on at most 1000 samples, 200 of a ``DistributionForecast``.

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
    """
    several, outcomes, predictions = isinstance(y_pred, Mapping), None, {"y_pred": y_pred}
    if several:
        check_models(y_pred, "y_pred")
        predictions = {f"y_pred[{key!r}]": prediction for key, prediction in y_pred.items()}
    if isinstance(y_true, Mapping):
        check_outcomes_by_model(y_true, y_pred)
        outcomes = {f"y_true[{key!r}]": y_true[key] for key in y_pred}
        y_true = next(iter(outcomes.values()))
    checked = check_predicted(
        predictions,
        y_true,
        outcomes,
        may_be_crossed=False,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
        groups=groups,
    )
    n_rows = num_samples(y_true)
    subgroups = check_by_each(by, by_each, n_rows, sample_weight)
    date = None if date is None else printable(str(date))
    name = name and printable(" ".join(name.split()))
    sections: dict[Any, Sections] = {}
    reports: dict[Any, CalibrationReport] = {}
    for key, data in zip(y_pred if several else [name], checked["models"], strict=True):
        kind: type[Sections] = ForecastSections if data.is_forecast else ClassSections
        sections[key] = prediction = kind(data, check_random_state(random_state))
        audit = _audit_trail(prediction, n_rows, random_state, pos_label, subgroups)
        title = ", ".join(filter(None, [name, str(key)])) if several else name
        is_new = recalibrated and not (several and len(reports) == 0)
        reports[key] = _make_report(prediction, subgroups, is_new, title, date, audit)
    if not several:
        return reports[name]
    return _make_comparison(sections, reports, name, date, shares_outcomes=outcomes is None)


def _make_comparison(
    sections: dict, reports: dict, name: str | None, date: str | None, *, shares_outcomes: bool
) -> ComparisonReport:
    """The report on several models: that on each, and the differences of all from the first."""
    (first, before), *later = sections.items()
    numbers, changes = {key: entry.numbers for key, entry in reports.items()}, []
    for key, after in later:
        notify_progress(f"comparing {key} with {first}")
        ends = after.differences(before, shares_outcomes=shares_outcomes)
        measures = [entry for entry in numbers[first] if entry in ends and entry in numbers[key]]
        for measure in measures:
            value, reference = numbers[key][measure], numbers[first][measure]
            row = {"model": key, "measure": measure, "reference": reference, "value": value}
            low, high = ends[measure]
            changes.append(row | {"difference": value - reference, "low": low, "high": high})
    listed = " and ".join(", ".join(map(str, reports)).rsplit(", ", 1))
    head = format_head(numbers[first], f"{name or 'models'}, {listed}", date)
    text = format_comparison(head, reports, change_tables(numbers, changes))
    samples = {key: entry.data for key, entry in sections.items()}
    draw = partial(render_model_curves, samples, numbers)
    return ComparisonReport(reports, changes, text, draw, date)


def _make_report(
    sections: Sections, subgroups: list, recalibrated: bool, name: Any, date: Any, audit: dict
) -> CalibrationReport:
    """The report on one model."""
    notify_progress("measuring")
    numbers, classes = sections.measure()
    notify_progress("testing")
    tested, findings = sections.test()
    numbers |= tested
    rows: TableRows = []
    if subgroups:
        notify_progress("testing subgroups")
        rows = [row for each in subgroups for row in sections.subgroups(each)[0]]
        for row in rows:  # Bonferroni's correction for several columns
            row["p_value"] = min(1.0, len(subgroups) * row["p_value"])
        numbers["n_subgroup_columns"] = len(subgroups)
        numbers["subgroup_p_value"] = min(row["p_value"] for row in rows)
    intervals = sections.intervals(numbers)
    mistake = sections.find_mistake()
    is_significant = mistake is None and joint_p_value(numbers) < LEVEL
    if mistake or not (is_significant or sections.is_refuted()):
        findings = []
    elif not findings:
        findings = [say("unknown", sections.unknown)]
    if is_significant:
        notify_progress("recalibrating")
        gain = sections.gain()
        if gain is not None:
            numbers["gain"], intervals["gain"] = gain[0], gain[1:]
            _, most = sections.gain_sample_limits()
            numbers["n_recalibrated"] = min(sections.data.n_samples, most)
    verdict = (
        [mistake]
        if mistake
        else sections.verdict(numbers, intervals, rows, classes, recalibrated=recalibrated)
    )
    verdict[1:1] = sections.describe_copies()  # before what follows from the findings
    sentences = [verdict[0], *findings, *verdict[1:]]
    numbers |= collect_numbers(sentences, numbers | name_ends(intervals))
    event = str(sections.data.labels[1]) if "n_events" in numbers else None
    advice = join_sentences(verdict, findings)
    described = numbers, intervals, findings, sentences, advice, classes, rows, audit
    draw = partial(sections.pictures, numbers, intervals, rows)
    return CalibrationReport(*described, draw, name, date, event)


def _audit_trail(
    sections: Sections, n_rows: int, random_state: RandomState, pos_label: Any, subgroups: list
) -> dict[str, Any]:
    """Versions, settings, rows, and a hash of the data in their order."""
    hashed, arrays, settings = sections.audit_data()
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.dtype).encode() + str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    groups = sections.data.groups
    n_groups = None if groups is None else len(np.unique(groups))
    by = "; ".join(each.title for each in subgroups) or None
    settings = {"pos_label": pos_label} | settings | {"by": by, "number of groups": n_groups}
    left_out = n_rows - sections.data.n_samples
    return {
        "skcalib": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "random_state": repr(random_state),
        **{name: repr(value) for name, value in settings.items() if value is not None},
        "rows": n_rows,
        "rows left out": f"{left_out} (of weight 0)" if left_out else 0,
        f"sha256 of {hashed}": digest.hexdigest(),
    }
