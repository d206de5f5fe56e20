"""Ordinary classifiers on the data that come with scikit-learn, before and after recalibration."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from .._sklearn import check_matplotlib_support
from ..display import ReliabilityDisplay
from ..recalibration import RecalibratedClassifier
from ..report import calibration_report
from ..report._text import format_report, format_row

# The numbers that the table of changes shows.
_CHANGES = ("smooth_calibration_error", "expected_calibration_error", "log_loss", "p_value")


class Stage(NamedTuple):
    """A model on the test data, before or after recalibration."""

    name: str
    y_true: np.ndarray
    y_proba: np.ndarray
    numbers: dict[str, Any]


def run(path: str) -> Iterator[str]:
    """The text of each problem as soon as it is known; at last the figure is written."""
    check_matplotlib_support("python -m skcalib demo")
    outcomes = {}
    for title, stages in _problems():
        outcomes[title] = stages
        yield _text(title, stages)
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
            models = {"before": classifier, "after": RecalibratedClassifier(classifier)}
            stages = []
            for name, model in models.items():
                proba = model.fit(X_train, y_train).predict_proba(X_test)
                numbers = calibration_report(y_test, proba, random_state=0, output_dict=True)
                stages.append(Stage(name, y_test, proba, cast(dict[str, Any], numbers)))
            yield f"{type(classifier).__name__} on {data_name}", stages


def _text(title: str, stages: list[Stage]) -> str:
    rule = "=" * 72
    lines = [rule, title, rule]
    for stage in stages:
        lines += ["", f"--- {stage.name} recalibration ---", format_report(stage.numbers)]
    before, after = (stage.numbers for stage in stages)
    lines += ["", "--- what changed ---", f"{'':<48}{'before':>9}  {'after':>9}"]
    lines += [format_row(n, before[n], after[n]) for n in before if n.startswith(_CHANGES)]
    return "\n".join([*lines, ""])


def _draw(outcomes: dict[str, list[Stage]], path: str) -> None:
    """Reliability diagrams, one column for each problem, before recalibration above after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(outcomes), 8), layout="constrained")
    axes = figure.subplots(2, len(outcomes), squeeze=False)
    for column, (title, stages) in zip(axes.T, outcomes.items(), strict=True):
        for ax, stage in zip(column, stages, strict=True):
            ReliabilityDisplay.from_predictions(stage.y_true, stage.y_proba, random_state=0, ax=ax)
            ax.set_title(f"{title}\n{stage.name} recalibration")
    figure.savefig(path, dpi=100)
