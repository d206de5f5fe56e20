"""
==============================================
How far, at most, is my model from calibrated?
==============================================

Replace each prediction by the mean outcome of an interval around it, and the sample is perfectly
calibrated. How far predictions move on the way bounds how far they are from calibration. So a
partition into intervals is a recalibrator and a certificate at once. The best certificate is one
thing, and the best recalibrator another.
"""

# %%
# A forest that is not sure enough
# --------------------------------
# A random forest tells odd handwritten digits from even ones by the upper three of eight rows of
# pixels. What 80 % of its trees vote for is right more often than that.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

from skcalib.metrics import interval_calibration_error
from skcalib.recalibration import IntervalBinningRecalibrator

X, digit = load_digits(return_X_y=True)
X, y = X[:, :24], digit % 2
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=1400, random_state=0)
forest = RandomForestClassifier(random_state=0).fit(X_train, y_train)
proba, proba_test, y_calibration, y_test = train_test_split(
    forest.predict_proba(X_rest)[:, 1], y_rest, test_size=700, random_state=0
)

# %%
# Three partitions and their certificates
# ---------------------------------------
# Recalibration moves a prediction by the mean residual of its interval and, as all of them become
# the same there, by no more than the interval's width. The means of the two over the calibration
# data are the binned error and the mean width; their sum is the certificate: the predictions are at
# most so far from calibration. Wide intervals cost width; narrow ones cost binned error, as in few
# outcomes noise does not cancel. No partition has a smaller sum than "optimal", whose certificate
# is the interval calibration error. The map moves the predictions by no more than it says.

recalibrators = {
    "optimal": IntervalBinningRecalibrator(),
    "equal width": IntervalBinningRecalibrator("uniform"),
    "equal mass": IntervalBinningRecalibrator("quantile"),
}
for name, recalibrator in recalibrators.items():
    certificate = recalibrator.fit(proba, y_calibration).certificate_
    print(
        f"{name:12} {len(recalibrator.values_):2} intervals: "
        f"{certificate.binned_error:.3f} binned error + {certificate.mean_width:.3f} mean width = "
        f"{certificate.distance_bound:.3f}, moved by {certificate.movement:.3f}"
    )
print(f"interval calibration error: {interval_calibration_error(y_calibration, proba):.3f}")

# %%
# What they look like
# -------------------
# Each bar is an interval of the calibration data, from its smallest to its largest prediction, at
# the mean outcome; a dot marks one whose predictions are all the same. Grey are the predictions, by
# label. Where the residuals of neighbours have the same sign, a cut between them costs nothing and
# saves width: "optimal" cuts there down to single votes.

figure, axes = plt.subplots(
    2, 2, figsize=(6.4, 6.6), layout="constrained", sharex=True, sharey=True
)
jitter = np.random.default_rng(0).uniform(-0.03, 0.03, size=len(proba))
for ax, (name, recalibrator) in zip(axes.flat, recalibrators.items(), strict=False):
    low, high = recalibrator.partition_.T
    single = low == high
    ax.plot(proba, 1.16 * y_calibration - 0.08 + jitter, ".", color="0.7", markersize=2)
    ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle=":", label="calibrated")
    ax.hlines(recalibrator.values_, low, high, color="C0", linewidth=3, label="mean outcome")
    ax.plot(low[single], recalibrator.values_[single], "o", color="C0", markersize=3.5)
    bound = recalibrator.certificate_.distance_bound
    ax.set(title=f"{name}: certificate {bound:.3f}", xlabel="predicted probability of odd")
    ax.xaxis.set_tick_params(labelbottom=True)
for ax in axes[:, 0]:
    ax.set_ylabel("observed frequency")
axes[1, 1].axis("off")
axes[1, 1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", frameon=False)

# %%
# On new data
# -----------
# The certificate is about the calibration data. Elsewhere the mean outcomes of few samples do not
# hold so well: "optimal" certifies best, but wider intervals recalibrate better. Mean outcomes of
# exactly 0 or 1 would make the log loss infinite: so by default there is one sample more in each
# interval, with a label as the interval's mean prediction says.

candidates = {"as predicted": proba_test}
for name, recalibrator in recalibrators.items():
    recalibrator.fit(proba, y_calibration)
    candidates[name] = recalibrator.predict_proba(proba_test)[:, 1]
for name, p in candidates.items():
    print(f"{name:12} Brier {brier_score_loss(y_test, p):.4f}, log loss {log_loss(y_test, p):.4f}")
plt.show()
