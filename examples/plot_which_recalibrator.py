"""
=================================================
What do ten recalibrators do to four classifiers?
=================================================

Four classifiers of handwritten digits, two tasks, ten ways to recalibrate. In short: take
:class:`~skcalib.recalibration.AutoRecalibrator`, or structured matrix scaling; for two classes and
at least 300 samples also the sigmoid. Isotonic regression and histogram binning can do harm.
"""

# %%
# Real classifiers
# ----------------
# A third of the data fits the classifier, a third the recalibrator, on a third it is measured; this
# three times. Whether a digit is odd is a task with two classes, which digit it is one with ten.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from skcalib import recalibration
from skcalib.display import ReliabilityDisplay

X, digit = load_digits(return_X_y=True)
X = X / 16
tasks = {"odd or even": digit % 2, "which digit": digit}
classifiers = {
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(random_state=0),
    "neighbours": KNeighborsClassifier(15),
    "network": MLPClassifier(50, max_iter=500, tol=1e-3, random_state=0),
}
recalibrators = {
    "auto": recalibration.AutoRecalibrator(),
    "temperature": recalibration.TemperatureRecalibrator(),
    "sigmoid": recalibration.SigmoidRecalibrator(),
    "beta": recalibration.BetaRecalibrator(),
    "spline": recalibration.SplineRecalibrator(),
    "matrix scaling": recalibration.MatrixScalingRecalibrator(),
    "Dirichlet": recalibration.DirichletRecalibrator(),
    "Venn–Abers": recalibration.VennAbersRecalibrator(),
    "isotonic": recalibration.IsotonicRecalibrator(),
    "histogram": recalibration.IntervalBinningRecalibrator("uniform"),
}


def losses(classifier, y, seed):
    """The log loss on new data, as predicted and after each recalibration."""
    X_train, X_rest, y_train, y_rest = train_test_split(
        X, y, train_size=1 / 3, stratify=y, random_state=seed
    )
    X_calibration, X_test, y_calibration, y_test = train_test_split(
        X_rest, y_rest, train_size=1 / 2, stratify=y_rest, random_state=seed
    )
    classifier.fit(X_train, y_train)
    seen, new = classifier.predict_proba(X_calibration), classifier.predict_proba(X_test)
    result = [log_loss(y_test, new)]
    for recalibrator in recalibrators.values():
        calibrated = recalibrator.fit(seen, y_calibration).predict_proba(new)
        result.append(log_loss(y_test, calibrated))
    return result


# %%
# How much each gains
# -------------------
# The log loss relative to that of the predictions as they are, the mean over three splits; left of
# the line is better. With two classes, every map that is smooth on the logit scale helps, and they
# differ little. With ten, it is safer to scale all classes at once than one against the rest. What
# says 0 or 1 where it has seen no counterexample pays for it.

names = ["none", *recalibrators]
figure, axes = plt.subplots(1, 2, figsize=(6.4, 4.8), layout="constrained", sharey=True)
styles = {"marker": ("o", "D", "^", "s"), "color": ("black", "#d95f02", "0.55", "#1f4e9c")}
for ax, (task, y) in zip(axes, tasks.items(), strict=True):
    for k, (title, classifier) in enumerate(classifiers.items()):
        mean = np.mean([losses(classifier, y, seed) for seed in range(3)], axis=0)
        print(f"{task}, {title}: " + ", ".join(map("{} {:.3f}".format, names, mean)))
        style = {name: values[k] for name, values in styles.items()}
        rows = np.arange(len(recalibrators))
        ax.plot(mean[1:] / mean[0], rows, linestyle="", fillstyle="none", label=title, **style)
    ax.axvline(1, color="0.5", linewidth=1)
    ax.set(xscale="log", title=task, xlim=(0.06, 2))
    ax.set_xticks([0.1, 0.3, 1], ["0.1", "0.3", "1"])
    ax.minorticks_off()
    ax.grid(axis="y", color="0.9")
axes[0].set_yticks(range(len(recalibrators)), recalibrators)
axes[0].invert_yaxis()
figure.supxlabel("log loss, relative to that without recalibration", fontsize="medium")
figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)

# %%
# Before and after
# ----------------
# The forest is not sure enough. In practice there is no need for a split by hand: a
# `RecalibratedClassifier` makes its own by cross-fitting.

X_train, X_test, y_train, y_test = train_test_split(X, digit % 2, random_state=0)
forest = classifiers["forest"]
recalibrated = recalibration.RecalibratedClassifier(forest, recalibration.AutoRecalibrator())
figure, axes = plt.subplots(1, 2, figsize=(6.4, 5.2), layout="constrained")
for ax, title, model in zip(axes, ("before", "after"), (forest, recalibrated), strict=True):
    ReliabilityDisplay.from_estimator(model.fit(X_train, y_train), X_test, y_test, ax=ax)
    ax.set_title(title)
plt.show()
