"""The problems of two classes that small multiples show: classes, or subgroups of the samples."""

from dataclasses import dataclass

from .._inputs.by import Subgroups
from .._inputs.predictions import Predictions


@dataclass(frozen=True)
class Problem:
    """Predictions of two classes, and what a figure calls them."""

    predictions: Predictions
    names: tuple[str, str]  # of what is predicted, and of the rest
    x_label: str
    title: str | None = None


def problems_of(
    predictions: Predictions, multi_class: str, subgroups: Subgroups | None
) -> list[Problem]:
    """One problem, or one for each class or subgroup that has samples."""
    if subgroups is not None:
        titles = subgroups.titles
        return [
            _whole(predictions.take(rows), titles[k]) for k, rows in enumerate(subgroups.rows())
        ]
    if predictions.is_binary or multi_class == "confidence":
        return [_whole(predictions)]
    is_top = multi_class == "top-label"
    of_classes = predictions.top_label() if is_top else predictions.classwise()
    problems = []
    for name, (_, problem) in zip(predictions.classes.tolist(), of_classes, strict=True):
        if problem is not None:
            names = ("right", "wrong") if is_top else (f"{name}", "others")
            x_label = "confidence if predicted" if is_top else "predicted probability"
            problems.append(Problem(problem, names, x_label, f"{name}"))
    return problems


def _whole(predictions: Predictions, title: str | None = None) -> Problem:
    if predictions.is_binary:
        other, event = map(str, predictions.classes.tolist())
        return Problem(predictions, (event, other), f"predicted probability of {event}", title)
    return Problem(predictions.confidence(), ("right", "wrong"), "confidence", title)


def check_subgroups_fit(subgroups: Subgroups | None, predictions: Predictions, multi_class: str):
    """A grid shows either subgroups or classes."""
    if subgroups is not None and not predictions.is_binary and multi_class != "confidence":
        raise ValueError(
            f"by must be None with multi_class={multi_class!r}: the grid shows either subgroups or "
            f"classes; found {len(subgroups.labels)} subgroups and {len(predictions.classes)} "
            "classes. Pass multi_class='confidence', or the samples of one subgroup."
        )
