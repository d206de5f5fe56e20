"""Figures of all displays: that their texts can be read, and a script that draws them.

    python tests/figures.py FOLDER [NAME ...]

draws every figure, or those named, in colour, in greyscale and 360 pixels wide. A new display adds
a function of the figure's width in inches to `FIGURES`.
"""

import sys
from itertools import combinations
from pathlib import Path
from unittest import mock

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from skcalib import datasets, display
from skcalib.hypothesis_tests import CalibrationTest, RatingGradeTest, SequentialCalibrationTest
from skcalib.uncertainty import clinical_calibration

WIDTHS = (2.2, 3.2, 4.0, 8.0)

# Width of the figures that the script draws, in inches.
_SHOWN = 4.5

# Extents of texts reach this far beyond their letters, in units of their height.
_SLACK = 0.15

# Less of a pixel cannot be seen.
_PIXEL = 0.5


def drawn_texts(figure):
    """The texts that are drawn, and their extents in pixels."""
    found = {}
    draw = Text.draw

    def record(text, renderer, *args, **kwargs):
        draw(text, renderer, *args, **kwargs)
        if text.get_visible() and text.get_text().strip():
            found[text] = text.get_window_extent(renderer)

    with mock.patch.object(Text, "draw", record):
        figure.canvas.draw()
    return found


def assert_texts_are_clear(figure):
    """No text overlaps another one or is cut off by the end of the figure."""
    letters = {text: _letters(text, box) for text, box in drawn_texts(figure).items()}
    whole = figure.bbox
    for text, box in letters.items():
        is_inside = (box.min >= whole.min - _PIXEL).all() and (box.max <= whole.max + _PIXEL).all()
        assert is_inside, f"{text.get_text()!r} is cut off: {box.extents} in {whole.extents}"
    for (one, box), (other, other_box) in combinations(letters.items(), 2):
        overlap = Bbox.intersection(box, other_box)
        is_apart = overlap is None or min(overlap.size) <= 0
        assert is_apart, f"{one.get_text()!r} and {other.get_text()!r} overlap"


def assert_legends_hide_no_curve(figure):
    """No legend lies over a line of any axes, in a figure that is drawn."""
    legends = [one for one in figure.findobj(Legend) if one.get_visible()]
    boxes = [legend.get_window_extent() for legend in legends]
    for ax in figure.findobj(mpl.axes.Axes):
        for line in ax.lines:
            path = line.get_transform().transform_path(line.get_path())
            hidden = [box for box in boxes if path.intersects_bbox(box, filled=False)]
            assert not hidden, f"a legend hides the curve {line.get_label()!r}"


def _letters(text, box):
    margin = _SLACK * text.get_size() * text.figure.dpi / 72
    return Bbox.from_extents(box.x0, box.y0, box.x1, box.y1).padded(-margin)


def two_classes(n=300, sharpness=2.0):
    """Names of classes, and predictions of one of them that are overconfident."""
    generator = np.random.default_rng(0)
    logit = generator.normal(0, 1.5, n)
    label = generator.random(n) < 1 / (1 + np.exp(-logit))
    return label.astype(int), 1 / (1 + np.exp(-sharpness * logit))


def several_classes(n=400, n_classes=6):
    generator = np.random.default_rng(0)
    logit = generator.normal(0, 2, (n, n_classes))
    proba = np.exp(logit) / np.exp(logit).sum(axis=1, keepdims=True)
    label = (proba.cumsum(axis=1) > generator.random((n, 1))).argmax(axis=1)
    sharper = proba**1.7
    return np.array(list("abcdef"))[label], sharper / sharper.sum(axis=1, keepdims=True)


def _axes(width, height):
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _height(width):
    """Narrow figures have room for a legend or colour bar below."""
    return width if width > 3 else 1.8 * width


def _reliability(*data, ratio=1.35, **options):
    def draw(width):
        ax = _axes(width, ratio * width)
        drawn = {} if options.get("band") == "confidence" else {"n_resamples": 20}
        options_of_all = {"random_state": 0} | drawn | options
        made = display.ReliabilityDisplay.from_predictions(*data, ax=ax, **options_of_all)
        return made.figure_

    return draw


def _two_models(width):
    ax = _axes(width, 1.4 * width)
    for name, sharpness in (("forest", 2.0), ("logistic", 0.5)):
        options = {"band": "confidence", "name": name, "ax": ax}
        display.ReliabilityDisplay.from_predictions(*two_classes(sharpness=sharpness), **options)
    return ax.figure


def _classes(width):
    """At most as many panels as there is room for."""
    ax = _axes(width, 1.5 * width if width < 4 else 0.9 * width if width < 8 else 1.4 * width)
    options = {"multi_class": "classwise", "random_state": 0, "n_resamples": 20}
    options["max_panels"] = 1 if width < 4 else 2 if width < 8 else 4
    made = display.ReliabilityDisplay.from_predictions(*several_classes(), ax=ax, **options)
    return made.figure_


def _subgroups(width):
    label, proba = two_classes()
    sex = np.where(np.arange(len(label)) % 3 > 0, "female", "male")
    ax = _axes(width, 0.95 * width if width >= 4 else 3.6)
    options = {"by": sex, "method": "binned", "shade": True, "max_panels": 1 if width < 4 else 2}
    options |= {"random_state": 0, "n_resamples": 20, "n_bins": 8}
    return display.ReliabilityDisplay.from_predictions(label, proba, ax=ax, **options).figure_


def _decisions(kind):
    def draw(width):
        options = {"kind": kind, "loss": [[0, 1], [5, 0]] if kind == "actions" else "zero-one"}
        ax = _axes(width, _height(width))
        return display.DecisionDisplay.from_predictions(*two_classes(), ax=ax, **options).figure_

    return draw


def _forecasts(name, **options):
    def draw(width):
        data = datasets.make_forecasts(200, dispersion=0.7, random_state=0)
        options_of_all = {"random_state": 0, "name": "forest"} | options
        ax = _axes(width, _height(width))
        return getattr(display, name).from_predictions(*data, ax=ax, **options_of_all).figure_

    return draw


def _witness(*models):
    def draw(width):
        ax = _axes(width, 1.1 * width if width > 3 else 1.6 * width)
        for name, data in models:
            display.WitnessDisplay.from_predictions(*data, name=name, ax=ax)
        return ax.figure

    return draw


def _witness_of_classes(width):
    ax = _axes(width, 1.5 * width if width >= 4 else 2.5 * width)
    panels = 1 if width < 4 else 2 if width < 6 else 6
    y, proba = several_classes()
    return display.WitnessDisplay.from_predictions(
        y, proba, multi_class="classwise", max_panels=panels, name="forest", ax=ax
    ).figure_


def _null_distribution(statistic, ratio):
    def draw(width):
        label, proba = two_classes(sharpness=1.5)
        test = CalibrationTest(statistic, n_resamples=199, random_state=0).fit(proba, label)
        ax = _axes(width, ratio * width if width > 3.5 else 3.5 * ratio * width)
        return display.NullDistributionDisplay.from_test(test, name="forest", ax=ax).figure_

    return draw


def _sequential(width):
    ax = _axes(width, 2.5 if width > 3 else 4)
    for name, drift in {"site A": 1.0, "site B, updated": 1.6}.items():
        test = SequentialCalibrationTest(labels=[0, 1])
        for week in range(6):
            label, proba = datasets.make_temperature_family(
                100, inverse_temperature=1.0 if week < 3 else drift, random_state=week
            )
            test.partial_fit(proba, label)
        drawn = display.SequentialTestDisplay.from_test(test, name=name, ax=ax)
    return drawn.figure_


def _rating_grades(width):
    n_debtors, n_defaults = [3000, 2000, 1000, 400], [0, 9, 21, 40]
    pd_assigned = np.repeat([0.001, 0.004, 0.01, 0.05], n_debtors)
    pairs = zip(n_debtors, n_defaults, strict=True)
    default = np.concatenate([np.arange(n) < d for n, d in pairs])
    grades = np.repeat(["AA", "A", "B", "watch list"], n_debtors)
    test = RatingGradeTest().fit(pd_assigned, default, grades=grades)
    ax = _axes(width, 2.5 if width > 3 else 4)
    return display.RatingGradeDisplay.from_test(test, name="scorecard", ax=ax).figure_


def _comparison(**options):
    def draw(width):
        label, _ = two_classes(n=60)
        sharpness = {"logistic": 1.0, "forest": 2.0, "naive Bayes": 4.0}
        models = {name: two_classes(60, value)[1] for name, value in sharpness.items()}
        measures = ["smooth_calibration_error", "smooth_expected_calibration_error"]
        ax = _axes(width, 2.5 if width > 3 else 4)
        made = display.ComparisonDisplay.from_predictions(
            label, models, metrics=measures, n_resamples=9, random_state=0, ax=ax, **options
        )
        return made.figure_

    return draw


def _forest(width):
    label, proba = two_classes(n=400)
    site = np.repeat(["Aachen", "Bonn", "Cologne", "Dortmund"], 100)
    found = clinical_calibration(label, proba, by=site, n_resamples=5, random_state=0)
    ax = _axes(width, 2.8 if width > 3 else 5.5)
    return display.ForestDisplay.from_result(found, ax=ax).figure_


def _score_plane(width):
    ax = _axes(width, width if width > 3 else 1.9 * width)
    for name, sharpness in (("forest", 2.0), ("logistic", 1.0), ("naive Bayes", 0.4)):
        label, proba = two_classes(sharpness=sharpness)
        proba = np.clip(proba + 0.1 * np.sin(40 * sharpness * proba), 0, 1)
        options = {"kind": "points", "n_resamples": 5, "random_state": 0, "name": name, "ax": ax}
        display.ScoreDecompositionDisplay.from_predictions(label, proba, **options)
    return ax.figure


def _simplex(width):
    label, proba = several_classes(1500, 3)
    names = dict(zip("abc", ("malignant", "benign", "unclear"), strict=True))
    label, order = np.array([names[one] for one in label]), list(names.values())
    ax = _axes(width, 1.2 * width if width > 3 else 1.7 * width)
    options = {"labels": order, "n_resamples": 50, "random_state": 0, "name": "forest"}
    return display.SimplexDisplay.from_predictions(label, proba, ax=ax, **options).figure_


# What draws a figure of a given width, in inches.
FIGURES = {
    "comparison": _comparison(),
    "forest": _forest,
    "comparison_reference": _comparison(reference="logistic"),
    "decisions": _decisions("actions"),
    "decisions_loss": _decisions("loss"),
    "decisions_net_benefit": _decisions("net-benefit"),
    "null_distribution": _null_distribution("log_loss", 0.7),
    "null_distribution_omnibus": _null_distribution("omnibus", 1.1),
    "pit_histogram": _forecasts("PITHistogramDisplay"),
    "quantile_reliability": _forecasts("QuantileReliabilityDisplay"),
    "rating_grades": _rating_grades,
    "reliability": _reliability(*two_classes()),
    "reliability_smooth": _reliability(*two_classes(), method="smooth", shade=True, name="forest"),
    "reliability_binned": _reliability(*two_classes(), method="binned", shade=True),
    "reliability_confidence": _reliability(*two_classes(), band="confidence"),
    "reliability_logit": _reliability(*two_classes(sharpness=5.0), axis_scale="logit"),
    "reliability_two_models": _two_models,
    "reliability_classes": _classes,
    "reliability_subgroups": _subgroups,
    "score_plane": _score_plane,
    "sequential_test": _sequential,
    "simplex": _simplex,
    "witness": _witness((None, two_classes())),
    "witness_classes": _witness_of_classes,
    "witness_two_models": _witness(
        ("forest", two_classes()), ("logistic", two_classes(sharpness=0.5))
    ),
}


def main(folder, *names):
    mpl.use("Agg")
    from PIL import Image

    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or FIGURES:
        figure = FIGURES[name](_SHOWN)
        for suffix, pixels in (("", 900), ("_360", 360)):
            path = Path(folder, f"{name}{suffix}.png")
            figure.savefig(path, dpi=pixels / _SHOWN)
        with Image.open(Path(folder, f"{name}.png")) as picture:
            picture.convert("L").save(Path(folder, f"{name}_grey.png"))
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
