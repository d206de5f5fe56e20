"""Ordinary classifiers on the data that come with scikit-learn, before and after recalibration."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from .._inputs.scikit_learn import check_matplotlib_support
from ..display import ReliabilityDisplay
from ..recalibration import RecalibratedClassifier
from ._report import CalibrationReport, calibration_report
from ._sections import LEVEL, error_name
from ._text import p_text, title_of

# The numbers that the table of changes shows.
_CHANGES = ("smooth_calibration_error", "expected_calibration_error", "log_loss", "p_value")

_RULE = "=" * 72


class Stage(NamedTuple):
    """A model on the test data, before or after recalibration."""

    name: str
    y_true: np.ndarray
    y_proba: np.ndarray
    report: CalibrationReport


def run(path: str) -> Iterator[str]:
    """The text of each problem as soon as it is known; at last the figure is written."""
    check_matplotlib_support("skcalib demo")
    outcomes = {}
    for title, stages in _problems():
        outcomes[title] = stages
        yield _text(title, stages)
    yield _summary(outcomes)
    _draw(outcomes, path)
    yield f"Reliability diagrams before and after: {path}"


def _problems() -> Iterator[tuple[str, list[Stage]]]:
    for data_name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        data = load()
        X_train, X_test, y_train, y_test = train_test_split(
            data.data,
            data.target_names[data.target],
            test_size=0.5,
            stratify=data.target,
            random_state=0,
        )
        for classifier in (GaussianNB(), RandomForestClassifier(random_state=0)):
            models = {
                "before": classifier,
                "after": RecalibratedClassifier(classifier, ensemble="nested"),
            }
            stages = []
            for name, model in models.items():
                proba = model.fit(X_train, y_train).predict_proba(X_test)
                report = calibration_report(
                    y_test, proba, recalibrated=name == "after", random_state=0
                )
                stages.append(Stage(name, y_test, proba, report))
            yield f"{type(classifier).__name__} on {data_name}", stages


def _text(title: str, stages: list[Stage]) -> str:
    lines = [_RULE, title, _RULE]
    for stage in stages:
        lines += ["", f"--- {stage.name} recalibration ---", str(stage.report)]
    before, after = (stage.report.numbers for stage in stages)
    lines += ["", "--- what changed ---", f"{'':<48}{'before':>9}  {'after':>9}"]
    changes = [name for name in before if name.startswith(_CHANGES)]
    lines += [f"{title_of(n):<48}{before[n]:9.4f}  {after[n]:9.4f}" for n in changes]
    return "\n".join([*lines, ""])


def _summary(outcomes: dict[str, list[Stage]]) -> str:
    """Miscalibration of each model before and after, and whether what is left may be chance."""
    lines = [_RULE, "What is left", _RULE, ""]
    lines += [f"{'smooth calibration error':<48}{'before':>9}  {'after':>9}"]
    n_passed = 0
    for title, stages in outcomes.items():
        before, after = (one.report.numbers[error_name(one.report.numbers)] for one in stages)
        p_value = stages[-1].report.numbers["p_value"]
        passed = p_value >= LEVEL
        n_passed += passed
        found = "may be chance" if passed else "chance seldom leaves"
        lines += [
            f"{title:<48}{before:9.4f}  {after:9.4f}",
            f"    {after / before:.0%} is left, which {found} (p {p_text(p_value)})",
        ]
    lines += ["", f"{n_passed} of {len(outcomes)} models pass the test of calibration now."]
    return "\n".join([*lines, ""])


def _draw(outcomes: dict[str, list[Stage]], path: str) -> None:
    """Reliability diagrams, one column for each problem, before recalibration above after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(outcomes), 11), layout="constrained")
    axes = figure.subplots(2, len(outcomes), squeeze=False)
    for column, (title, stages) in zip(axes.T, outcomes.items(), strict=True):
        for ax, stage in zip(column, stages, strict=True):
            ReliabilityDisplay.from_predictions(stage.y_true, stage.y_proba, random_state=0, ax=ax)
            ax.set_title(f"{title}\n{stage.name} recalibration")
    figure.savefig(path, dpi=100)
