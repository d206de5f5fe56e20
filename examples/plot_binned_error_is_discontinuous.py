"""
==================================================
Why does the number of bins decide about my model?
==================================================

Two samples, labelled 0 and 1, are predicted with ½ − ε and ½ + ε. At ε = 0 both predictions are ½
and half of the labels are 1: perfectly calibrated. Move the predictions by a hair, and the binned
calibration error says either that nothing has happened or that the model could hardly be worse.
This is the example after Definition 1.1 of Błasiok, Gopalan, Hu and Nakkiran, `A Unifying Theory of
Distance from Calibration <https://arxiv.org/abs/2211.16886>`_ (2023).
"""

# %%
# The parity of the number of bins
# --------------------------------
# With an even number of bins of equal width, ½ is an edge and the two predictions fall into
# different bins: each is wrong by ½ + ε or ½ − ε, and the error is ½ − ε. With an odd number they
# share the middle bin, where the errors cancel. The smooth calibration error has no bins. It is
# ε(½ − ε), here 0.0049.

import matplotlib.pyplot as plt
import numpy as np

from skcalib.metrics import expected_calibration_error, smooth_calibration_error

y_true = [0, 1]


def predictions(epsilon):
    return [0.5 - epsilon, 0.5 + epsilon]


epsilon = 0.01
numbers_of_bins = range(1, 21)
binned = [
    expected_calibration_error(y_true, predictions(epsilon), n_bins=n_bins)
    for n_bins in numbers_of_bins
]
smooth = smooth_calibration_error(y_true, predictions(epsilon))
print(f"15 bins: {binned[14]:.4f}, 16 bins: {binned[15]:.4f}, smooth: {smooth:.4f}")

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.stem(numbers_of_bins, binned, linefmt="0.5", markerfmt="ko", basefmt=" ", label="binned")
ax.axhline(smooth, color="#d95f02", linewidth=2, zorder=4, label="smooth")
ax.set(
    title=f"predictions ½ ∓ {epsilon}",
    xlabel="number of bins",
    ylabel="calibration error",
    xticks=[1, 5, 10, 15, 20],
    ylim=(-0.02, 0.62),
)
ax.legend(loc="upper center", ncols=2, frameon=False)
plt.show()

# %%
# Continuity
# ----------
# As the predictions move away from ½, the error with 10 bins jumps from 0 (the dot) to ½ at once,
# and that with 11 bins when they leave the middle bin, at ε = 1/22. The smooth calibration error
# starts at 0 and never moves by more than half of what the predictions do.

epsilons = np.linspace(0, 0.1, 1001)
measures = {
    "10 bins": lambda y, p: expected_calibration_error(y, p, n_bins=10),
    "11 bins": lambda y, p: expected_calibration_error(y, p, n_bins=11),
    "smooth": smooth_calibration_error,
}
styles = {
    "10 bins": {"color": "black", "linewidth": 4},
    "11 bins": {"color": "#6baed6", "linewidth": 2, "linestyle": "--"},
    "smooth": {"color": "#d95f02", "linewidth": 2},
}
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for name, measure in measures.items():
    errors = np.array([measure(y_true, predictions(epsilon)) for epsilon in epsilons])
    jumps = np.flatnonzero(np.abs(np.diff(errors)) > 0.1) + 1
    print(f"{name}: jumps at {epsilons[jumps]}, ends at {errors[-1]:.4f}")
    broken = np.insert(epsilons, jumps, np.nan), np.insert(errors, jumps, np.nan)
    ax.plot(*broken, label=name, **styles[name])
ax.plot(0, 0, "ko", zorder=4)
ax.set(title="predictions ½ ∓ ε", xlabel="ε", ylabel="calibration error", ylim=(-0.02, 0.62))
ax.legend(loc="upper center", ncols=3, frameon=False)
plt.show()
