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

from skcalib import metrics
from skcalib.datasets import make_temperature_family

temperatures = np.geomspace(0.1, 100, 25)
samples = [
    make_temperature_family(10_000, inverse_temperature=1 / temperature, random_state=0)
    for temperature in temperatures
]


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
# The figure
# ----------
# Left: the measures of the paper's Figure 2, with 20 bins. Right: the lower distance and the
# interval calibration error, between which the distance of the sample lies, whatever the features
# that the model saw; and two measures that the paper does not have.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained", sharey=True)
left = {
    "binned + width": "C3--",
    "binned": "C3",
    "surrogate interval": "C0",
    "Laplace kernel": "C2",
    "smooth": "C1",
}
right = {"cumulative": "C5", "interval": "C0", "smooth ECE": "C4", "lower distance": "C0:"}
for ax, styles in zip(axes, (left, right), strict=True):
    for name, style in styles.items():
        ax.plot(temperatures, curves[name], style, label=name)
    ax.axvline(1, color="0.6", linewidth=1, zorder=0)
    ax.set(xscale="log", xlabel="temperature", ylim=(0, 0.42))
axes[1].fill_between(
    temperatures, curves["lower distance"], curves["interval"], alpha=0.2, label="the distance"
)
axes[0].set(title="Figure 2 of the paper", ylabel="calibration error")
axes[1].set(title="the bracket on the distance")
for ax in axes:
    ax.legend(loc="upper right", ncols=2)
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
