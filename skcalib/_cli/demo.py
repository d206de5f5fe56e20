"""Ordinary classifiers on the data that come with scikit-learn, before and after recalibration."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from .._inputs.scikit_learn import check_matplotlib_support
from ..display import ReliabilityDisplay
from ..recalibration import RecalibratedClassifier
from ..report import ComparisonReport, calibration_report
from ..report._sections import LEVEL, error_name
from ..report._text import format_p_value

_HORIZONTAL_RULE = "=" * 72

_NEXT = """
Why not all? GaussianNB takes its features for independent. Recalibration sees
its probabilities alone, and no map of these undoes all that this does to them.
What next: take a classifier that does not, such as the forest on the same data.
"""


class Outcome(NamedTuple):
    """A model on the test data, "before" and "after" recalibration."""

    y_true: np.ndarray
    y_proba: dict[str, np.ndarray]
    report: ComparisonReport


def run_demo(path: str) -> Iterator[str]:
    """Yield the text of each problem; at last the figure is written."""
    check_matplotlib_support("skcalib demo")
    outcomes = {}
    for title, outcomes[title] in _iter_problems():
        yield f"{_HORIZONTAL_RULE}\n{outcomes[title].report}\n"
    yield _format_summary(outcomes)
    _draw_figure(outcomes, path)
    yield f"Reliability diagrams before and after: {path}"


def _iter_problems() -> Iterator[tuple[str, Outcome]]:
    for data_name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        data = load()
        X_train, X_test, y_train, y_test = train_test_split(
            data.data,
            data.target_names[data.target],
            test_size=0.5,
            stratify=data.target,
            random_state=0,
        )
        for classifier in (RandomForestClassifier(random_state=0), GaussianNB()):
            models = {
                "before": classifier,
                "after": RecalibratedClassifier(classifier, ensemble="nested"),
            }
            proba = {
                name: model.fit(X_train, y_train).predict_proba(X_test)
                for name, model in models.items()
            }
            title = f"{type(classifier).__name__} on {data_name}"
            report: Any = calibration_report(
                y_test, proba, recalibrated=True, name=title, random_state=0
            )
            yield title, Outcome(y_test, proba, report)


def _format_summary(outcomes: dict[str, Outcome]) -> str:
    """Return the error of each model before and after, and whether the second may be chance."""
    lines = [_HORIZONTAL_RULE, "What is left", _HORIZONTAL_RULE, ""]
    lines += [f"{'smooth calibration error':<48}{'before':>9}  {'after':>9}"]
    n_failed = 0
    for title, outcome in outcomes.items():
        numbers = [report.numbers for report in outcome.report.reports.values()]
        before, after = (values[error_name(values)] for values in numbers)
        failed = numbers[-1]["p_value"] < LEVEL
        n_failed += failed
        conclusion = "chance seldom leaves" if failed else "may be chance"
        p_value = format_p_value(numbers[-1]["p_value"])
        lines.append(f"{title:<48}{before:9.4f}  {after:9.4f}")
        lines.append(f"    {after / before:.0%} is left, which {conclusion} (p {p_value})")
    n = len(outcomes)
    lines += ["", f"{n - n_failed} of {n} models pass the test of calibration now."]
    return "\n".join([*lines, _NEXT if n_failed else ""])


def _draw_figure(outcomes: dict[str, Outcome], path: str) -> None:
    """Write reliability diagrams, a column for each problem, before recalibration above after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(outcomes), 11), layout="constrained")
    axes = figure.subplots(2, len(outcomes), squeeze=False)
    for column, (title, outcome) in zip(axes.T, outcomes.items(), strict=True):
        for ax, (name, proba) in zip(column, outcome.y_proba.items(), strict=True):
            # the same axes for both
            ReliabilityDisplay.from_predictions(
                outcome.y_true, proba, axis_scale="linear", random_state=0, ax=ax
            )
            ax.set_title(f"{title}\n{name} recalibration")
    figure.savefig(path, dpi=100)
