"""The decision tree of the page on recalibrators, as a figure."""

import matplotlib.pyplot as plt

QUESTIONS = [
    ("labels of the new population?", "no", "PriorShiftRecalibrator"),
    ("must predicted classes stay?", "yes", "keep_order=True"),
    ("a guarantee or an interval?", "yes", "VennAbers, IntervalBinning"),
    ("a short formula?", "yes", "Sigmoid, Temperature"),
    ("errors that depend on features?", "yes", "FeatureRecalibrator"),
]


def draw_tree():
    """Draw the questions below each other, and what to take beside them."""
    box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": "black"}
    leaf = box | {"facecolor": "#cfe0f2"}
    arrow = {"arrowstyle": "->", "shrinkA": 12, "shrinkB": 12}
    figure, ax = plt.subplots(figsize=(7, 4.6))
    depth = len(QUESTIONS)
    for k, (question, answer, recalibrator) in enumerate(QUESTIONS):
        ax.text(0, -k, question, ha="center", va="center", bbox=box)
        ax.text(2.4, -k, recalibrator, ha="center", va="center", bbox=leaf)
        ax.annotate("", (1.55, -k), (1.0, -k), arrowprops=arrow)
        ax.text(1.27, -k + 0.12, answer, ha="center")
        ax.annotate("", (0, -k - 1), (0, -k), arrowprops=arrow)
    ax.text(0, -depth, "AutoRecalibrator (the default)", ha="center", va="center", bbox=leaf)
    ax.set(xlim=(-1.1, 3.5), ylim=(-depth - 0.4, 0.4))
    ax.set_axis_off()
    return figure


draw_tree()
