"""
============================================
What changes with a hundred classes or more?
============================================

Estimates of calibration errors for a calibrated model of 10, 100 and 1000 classes, and the p-values
of few samples: section 7.3 of Widmann, Lindsten and Zachariah, `Calibration tests in multi-class
classification <https://arxiv.org/abs/1910.11385>`_ (2019), and a third approximation of the p-value
that the paper names and does not try. For ten classes, the figures of the paper are in
:ref:`sphx_glr_auto_examples_plot_kernel_calibration_tests.py`, and the networks of its appendix J.3
are in :doc:`a benchmark </benchmarks/widmann2019>`.
"""

# %%
# More classes
# ------------
# The paper's model M1 again: 250 predictions from a Dirichlet distribution with all parameters 0.1,
# and labels drawn from them. The true error is 0.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import pearson3

from skcalib.datasets import make_dirichlet_family
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import expected_calibration_error, squared_kernel_calibration_error

SIZES = {10: 400, 100: 400, 1000: 150}  # numbers of classes, and of data sets
# the means that the authors publish with their figures (second release), of 10 000 data sets
published_means = {
    "ECE": (0.4395, 0.8990, 0.7712),
    "SKCE, unbiased": (-0.0009, 0.0002, 0.0001),  # times 100
    "SKCE, linear": (0.0160, 0.0018, 0.0009),
}
measures = {
    "ECE": (expected_calibration_error, {"multi_class": "canonical", "n_bins": 10}),
    "SKCE, unbiased": (squared_kernel_calibration_error, {}),
    "SKCE, linear": (squared_kernel_calibration_error, {"estimation": "linear"}),
}
values = {(name, size): [] for name in measures for size in SIZES}
coincidences = {size: [] for size in SIZES}
for size in SIZES:
    for seed in range(SIZES[size]):
        y_true, y_proba = make_dirichlet_family(250, n_classes=size, random_state=seed)
        coincidences[size].append(np.sum(y_true[::2] == y_true[1::2]))
        for name, (measure, options) in measures.items():
            value = measure(y_true, y_proba, labels=range(size), **options)
            values[name, size].append(value)

figure, axes = plt.subplots(3, 3, figsize=(6.4, 5.4), layout="constrained")
print("estimate       classes  mean here          published  standard errors apart")
for row, name in zip(axes, measures, strict=True):
    for ax, size, theirs in zip(row, SIZES, published_means[name], strict=True):
        sample = (1 if name == "ECE" else 100) * np.array(values[name, size])
        error = sample.std() / np.sqrt(len(sample))
        mean = f"{sample.mean():7.4f} ± {error:.4f}"
        print(f"{name:15} {size:6}  {mean} {theirs:9.4f}  {(sample.mean() - theirs) / error:4.1f}")
        ax.hist(sample, bins=30, color="#a6cee3", label="estimates")
        ax.axvline(sample.mean(), color="#d95f02", label="their mean")
        ax.axvline(0, color="black", linestyle="--", label="true error")
        ax.locator_params(nbins=2)
    row[0].set_ylabel(f"{name}\ndata sets")
for ax, size in zip(axes[0], SIZES, strict=True):
    ax.set_title(f"{size} classes")
axes[-1, 1].set_xlabel("estimate of the calibration error; SKCE times 100")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()

# %%
# All nine means are within 1.2 standard errors of those that the authors `published
# <https://github.com/devmotion/CalibrationPaper>`_. The binned error of a calibrated model is near
# 0.8 or 0.9 now. The unbiased kernel estimate stays at 0. So does the mean of the linear one; but
# with 1000 classes its values fall into groups.

# %%
# Where the groups come from
# --------------------------
# The linear estimate looks at 125 pairs of samples. Of many classes, a pair hardly adds anything
# unless both samples have the same label. So the estimate counts coincidences:

for size, most in ((100, 3), (1000, 1)):
    for count in range(most + 1):
        is_in_group = np.array(coincidences[size]) == count
        group = 100 * np.array(values["SKCE, linear", size])[is_in_group]
        print(
            f"{size:4} classes, {count} coincidences: {len(group):3} data sets, "
            f"mean {group.mean():6.3f}, sd {group.std():.3f}"
        )

# %%
# With 1000 classes most data sets have none, and some have one: 0.88 and 0.11 of them, as among the
# 10 000 of the paper (0.879 and 0.115). With 100 there are groups, too, but they overlap. The mean
# of such terms is far from normal, so the asymptotic test of the linear estimate is too careful: at
# level 0.05 it rejected 1 of 200 data sets of M1 with 1000 classes. Take the unbiased estimate, or
# the default test.

# %%
# Three p-values of the unbiased estimate
# ---------------------------------------
# Its law is bootstrapped in the paper, which also names Pearson curves: a distribution with the
# moments of the null law. Here is the one with the first three of them, beside the bootstrap and
# the conditional redraw, with 25 samples of ten classes.


def pearson_p_value(y_true, y_proba):
    distance = np.abs(y_proba[:, None] - y_proba).sum(axis=2) / 2
    n, residual = len(y_true), np.eye(y_proba.shape[1])[y_true] - y_proba
    h = np.exp(-distance / np.median(distance[np.triu_indices(n, 1)])) * (residual @ residual.T)
    np.fill_diagonal(h, 0)
    pairs = n * (n - 1)
    variance = 2 * np.sum(h**2) / pairs**2
    third_moment = 4 * (np.sum(h**3) + 2 * np.sum((h @ h) * h)) / pairs**3
    skewness = third_moment / variance**1.5
    return pearson3.sf(h.sum() / pairs / np.sqrt(variance), skewness)


p_values = {"Pearson": [], "asymptotic": [], "conditional": []}
for seed in range(400):
    y_true, y_proba = make_dirichlet_family(25, random_state=seed)
    p_values["Pearson"].append(pearson_p_value(y_true, y_proba))
    for method in ("asymptotic", "conditional"):
        test = CalibrationTest("skce", method=method, n_resamples=199, labels=range(10))
        p_values[method].append(test.set_params(random_state=seed).fit(y_proba, y_true).p_value_)
for name, found in p_values.items():
    rejected = (f"{level}: {np.mean(np.array(found) <= level):.4f}" for level in (0.1, 0.05, 0.01))
    print(f"{name:12} rejections of M1 at level {', '.join(rejected)}")

# %%
# With so few samples the bootstrap is too careful by far; the Pearson curve is close to the levels,
# and needs no draws. But of 100 classes it, too, rejected M1 in 0.005 of 800 data sets at level
# 0.05. The redraw needs no approximation: its level is exact, whatever the number of samples and
# classes. So Pearson curves are not offered.
