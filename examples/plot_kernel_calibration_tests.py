"""
====================================================
Which calibration test can be trusted for K classes?
====================================================

One calibrated model and two that are not, ten classes, 250 samples: how estimates of the
calibration error scatter, and how often tests reject. These are Figures 1 and 2 of Widmann,
Lindsten and Zachariah, `Calibration tests in multi-class classification
<https://arxiv.org/abs/1910.11385>`_ (2019), with the exact test by conditional resampling added.
"""

# %%
# Three models
# ------------
# Predictions are the same for all three, most of them with one or two large probabilities. Labels
# are drawn from the predictions (M1, calibrated), from the predictions in half of the cases and
# otherwise always the first class (M2), or uniformly from all classes (M3).

import matplotlib.pyplot as plt
import numpy as np

from skcalib.datasets import make_dirichlet_family
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import expected_calibration_error, squared_kernel_calibration_error

MODELS = ("M1", "M2", "M3")
n_data_sets = 100
classes = range(10)
data = {
    model: [make_dirichlet_family(250, model=model, random_state=k) for k in range(n_data_sets)]
    for model in MODELS
}

# %%
# Estimates
# ---------
# The dashed line is the true error (of the kernel, the mean of the unbiased estimates), the solid
# one the mean of the estimates. The binned error on the simplex is far above the truth: nearly
# every sample is alone in its bin. The biased kernel estimate is above it too, by a little; the
# unbiased ones scatter around it, the linear one, which looks at 125 pairs only, widely.


def canonical_ece(y_true, y_proba):
    return expected_calibration_error(
        y_true, y_proba, labels=classes, multi_class="canonical", n_bins=10
    )


def kernel_error(estimator):
    def error(y_true, y_proba):
        return squared_kernel_calibration_error(
            y_true, y_proba, labels=classes, estimator=estimator
        )

    return error


measures = {"ECE": canonical_ece}
measures |= {f"SKCE, {name}": kernel_error(name) for name in ("biased", "unbiased", "linear")}

estimates = {
    (name, model): [measure(*sample) for sample in data[model]]
    for name, measure in measures.items()
    for model in MODELS
}
true_ece = {"M1": 0.0, "M2": 0.45, "M3": 0.71}
figure, axes = plt.subplots(4, 3, figsize=(9, 8), layout="constrained")
for row, name in zip(axes, measures, strict=True):
    for ax, model in zip(row, MODELS, strict=True):
        values = estimates[name, model]
        print(f"{name:15} {model}: mean {np.mean(values):8.4f}, sd {np.std(values):.4f}")
        ax.hist(values, bins=20, color="C0", alpha=0.6)
        ax.axvline(np.mean(values), color="C1")
        truth = true_ece[model] if name == "ECE" else np.mean(estimates["SKCE, unbiased", model])
        ax.axvline(truth, color="black", linestyle="--")
        ax.set_yticks([])
    row[0].set_ylabel(name)
for ax, model in zip(axes[0], MODELS, strict=True):
    ax.set_title(model)
plt.show()

# %%
# Tests
# -----
# The share of the data sets in which a test rejects, against its level: it should be on the
# diagonal for M1, and high for M2 and M3.

tests = {
    "conditional": CalibrationTest(n_resamples=199),
    "asymptotic": CalibrationTest(method="asymptotic", n_resamples=199),
    "asymptotic, linear": CalibrationTest(method="asymptotic", estimator="linear"),
    "distribution-free": CalibrationTest(method="distribution-free"),
    "consistency, ECE": CalibrationTest(canonical_ece, method="consistency", n_resamples=39),
}
levels = np.linspace(0, 1, 201)
figure, axes = plt.subplots(1, 3, figsize=(10, 4.5), layout="constrained", sharey=True)
for ax, model in zip(axes, MODELS, strict=True):
    for style, (name, test) in zip(("-", "-", "-", ":", "--"), tests.items(), strict=True):
        test.set_params(labels=classes)
        p_values = []
        for seed, (y_true, y_proba) in enumerate(data[model]):
            p_values.append(test.set_params(random_state=seed).fit(y_proba, y_true).p_value_)
        rejected = np.mean(np.array(p_values)[:, None] <= levels, axis=0)
        print(f"{model} {name:20} rejects {np.mean(np.array(p_values) <= 0.05):.2f} at level 0.05")
        ax.plot(levels, rejected, style, label=name)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, zorder=0)
    ax.set(title=model, xlabel="level")
axes[0].set_ylabel("share of data sets rejected")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %%
# What one sees
# -------------
# The conditional and the asymptotic tests keep their level. Consistency resampling with the binned
# error rejects the calibrated model nearly always, because it redraws the predictions too, and
# repeated ones share their bins. The distribution-free bounds reject none of the three models. Of
# the tests that can be trusted, the one from conditional
# resampling has at least the power of the asymptotic one, and it is exact at every sample size.
