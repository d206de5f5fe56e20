"""
=======================================================
Which measures know how far a model is from calibrated?
=======================================================

One family of models, from overconfident to underconfident, and all measures of its miscalibration:
the experiment of Section 10 of Błasiok, Gopalan, Hu and Nakkiran, `A Unifying Theory of Distance
from Calibration <https://arxiv.org/abs/2211.16886>`_ (2023), with exact values where the paper
sampled pairs or shifts, and with the bracket on the distance beside it.
"""

# %%
# The family
# ----------
# True probabilities f are uniform, and a calibrated model would predict f. At temperature T the
# logit of the prediction is divided by T: below 1 the model is overconfident, above 1 it is
# underconfident, and at high temperatures all predictions are close to ½. Since half of the
# outcomes are 1, to predict ½ is calibrated: on the right the distance to calibration tends to 0.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

from skcalib import metrics
from skcalib.datasets import make_temperature_family

temperatures = np.geomspace(0.1, 100, 25)
samples = [
    make_temperature_family(10_000, inverse_temperature=1 / temperature, random_state=0)
    for temperature in temperatures
]

figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
prediction = np.linspace(0.001, 0.999, 999)
for temperature, color in ((0.25, "#d95f02"), (1, "black"), (4, "#1f4e9c")):
    truth = expit(temperature * logit(prediction))
    density = temperature * truth * (1 - truth) / (prediction * (1 - prediction))
    left.plot(prediction, truth, color=color, label=f"temperature {temperature}")
    right.plot(prediction, density, color=color)
left.set(xlabel="prediction", ylabel="true probability", aspect="equal")
right.set(xlabel="prediction", ylabel="density of the predictions", ylim=(0, 5))
figure.suptitle("Błasiok et al. (2023), Figure 1")
figure.legend(loc="outside lower center", ncols=3, frameon=False)
plt.show()

# %%
# On the left, a curve below the diagonal means predictions that are too high. On the right,
# overconfident predictions gather at 0 and 1, underconfident ones around ½. The figures below
# follow this family from one end to the other.


def curve(measure, **parameters):
    return np.array([measure(y_true, y_proba, **parameters) for y_true, y_proba in samples])


curves = {
    "binned + width": curve(metrics.expected_calibration_error, n_bins=20, add_bin_width=True),
    "binned": curve(metrics.expected_calibration_error, n_bins=20),
    "surrogate interval": curve(metrics.interval_calibration_error, method="surrogate"),
    "Laplace kernel": curve(metrics.laplace_kernel_calibration_error),
    "smooth": curve(metrics.smooth_calibration_error),
    "cumulative": curve(metrics.cumulative_calibration_error),
    "interval": curve(metrics.interval_calibration_error),
    "smooth ECE": curve(metrics.smooth_expected_calibration_error),
    "lower distance": curve(metrics.lower_distance_to_calibration),
}

shown = range(0, 25, 4)
print(f"{'temperature':20}", *(f"{temperatures[k]:7.2f}" for k in shown))
for name, values in curves.items():
    print(f"{name:20}", *(f"{values[k]:7.4f}" for k in shown))

# %%
# The paper's figure
# ------------------
# With 20 bins, as there. The paper draws shifts of the bins and pairs of samples at random, where
# the surrogate and the Laplace kernel error are exact here.


def draw(ax, styles):
    for name, (style, color) in styles.items():
        line = {"color": color, "markevery": 4, "markersize": 5}
        ax.plot(temperatures, curves[name], style, label=name, **line)
    ax.axvline(1, color="0.7", linewidth=1, zorder=0)
    ax.set(xscale="log", xlabel="temperature", ylabel="calibration error", ylim=(0, 0.31))
    ax.set_xlim(temperatures[0], temperatures[-1])


figure, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
draw(
    ax,
    {
        "binned + width": ("--", "0.4"),
        "binned": ("-", "0.4"),
        "surrogate interval": ("s-", "#1f4e9c"),
        "Laplace kernel": ("^-", "#d95f02"),
        "smooth": ("o-", "black"),
    },
)
ax.set_title("Błasiok et al. (2023), Figure 2")
figure.legend(loc="outside lower center", ncols=3, frameon=False)
plt.show()

# %%
# The bracket on the distance
# ---------------------------
# The distance of the sample lies between the lower distance and the interval calibration error,
# whatever the features that the model saw. Two measures that the paper does not compute are beside
# it.

figure, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
bracket = (curves["lower distance"], curves["interval"])
ax.fill_between(temperatures, *bracket, color="#c6dbef", label="the distance")
draw(
    ax,
    {
        "interval": ("s-", "#1f4e9c"),
        "smooth ECE": ("^-", "#d95f02"),
        "cumulative": ("-", "0.4"),
        "lower distance": ("o-", "black"),
    },
)
figure.legend(loc="outside lower center", ncols=3, frameon=False)
plt.show()

# %%
# What one sees
# -------------
# All measures dip at temperature 1, where only chance (and the added width of 0.05) keeps them
# above 0. For overconfident models they rise together: at temperature 0.1 those made of gaps
# (binned, interval, smooth ECE) are about twice the others.
#
# For underconfident models they part. At temperature 100 the predictions are within a few
# hundredths of ½, and the consistent measures have fallen again: the smooth calibration error and
# the lower distance to what chance alone makes of them. The binned error has risen to 0.24 and the
# cumulative one to 0.12: one only asks on which side of ½, an edge, a prediction lies, the other in
# which order predictions are, and neither how far apart. In between the ends of the bracket are up
# to eleven times apart: there the interval calibration error is about the square root of the lower
# distance.
#
# The surrogate may only use intervals of equal width, so it is larger than the interval calibration
# error, three times at temperature 100. The Laplace kernel error is close to the smooth calibration
# error below temperature 1, and up to three times as large above.
