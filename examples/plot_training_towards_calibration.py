"""
====================================================================
What does a calibration penalty do to a network while it is trained?
====================================================================

A network that is trained for long becomes surer of its training data, and of all others, than it
should be. A penalty in the loss slows that down. What does it do to calibration, to sharpness and
to the log loss, epoch by epoch? And is anything left of it after a temperature, which costs
nothing?

This example needs PyTorch: ``pip install "skcalib[torch]"``. It takes about half a minute.
"""

# %%
# A small network and noisy labels
# --------------------------------
# A quarter of the labels are random, so that nobody can be sure. 1000 samples train the network,
# 1000 others choose the temperature, and 4000 judge.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import TemperatureRecalibrator

try:
    import torch
except ImportError:
    raise SystemExit('This example needs PyTorch: pip install "skcalib[torch]"') from None

from skcalib.torch import CalibrationRegularizedLoss, DistributionMatchingLoss

X, y = make_classification(
    6000, n_features=20, n_informative=6, n_classes=3, flip_y=0.25, random_state=0
)
X_train, X_validation, X_test = torch.as_tensor(X, dtype=torch.float32).split([1000, 1000, 4000])
y_train, y_validation, y_test = np.split(y, [1000, 2000])
labels = torch.as_tensor(y_train)

# %%
# An ordinary loop
# ----------------
# The loss is the cross-entropy plus the penalty times its weight. Nothing else changes. The penalty
# compares all pairs of a batch, so batches should have 64 samples or more. After each epoch the
# network is judged as it is, and with the temperature that suits the validation data.


def train(weight, n_epochs=40):
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(20, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, 3),
    )  # fmt: skip
    loss = CalibrationRegularizedLoss(
        torch.nn.CrossEntropyLoss(), DistributionMatchingLoss("canonical"), weight=weight
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    for _ in range(n_epochs):
        for batch in torch.randperm(len(X_train)).split(100):
            optimizer.zero_grad()
            loss(network(X_train[batch]), labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            validation, test = (
                network(X).double().softmax(dim=1).numpy() for X in (X_validation, X_test)
            )
        recalibrator = TemperatureRecalibrator().fit(validation, y_validation)
        yield (
            smooth_calibration_error(y_test, test),
            test.max(axis=1).mean(),
            log_loss(y_test, test),
            log_loss(y_test, recalibrator.transform(test)),
        )


weights = [0, 3, 10, 30]
curves = {weight: np.array(list(train(weight))) for weight in weights}

# %%
# Calibration, sharpness and log loss
# -----------------------------------
# Without a penalty the network is calibrated for a few epochs only; then its confidence runs away
# from its accuracy, which is about two thirds. The penalty delays that, but the network sees it on
# the training data, which it learns by heart in the end. A penalty that is too strong holds all
# predictions so close to each other that its kernel hardly tells them apart: the network says a
# third of whatever it predicts, and is right more often than that.
#
# A temperature takes away most of the difference in log loss, as the last panel shows, and whoever
# stops at the right epoch has little to gain from either. So look for the weight by the
# validation loss, and let 0 take part.

figure, axes = plt.subplots(2, 2, figsize=(6.4, 6), layout="constrained", sharex=True)
titles = ["smooth calibration error", "mean confidence", "log loss", "… after a temperature"]
epochs = np.arange(1, 41)
styles = ("o-", "s-", "^-", "D-")
colors = ("black", "#6baed6", "0.55", "#d95f02")
for weight, style, color in zip(weights, styles, colors, strict=True):
    line = {"color": color, "markersize": 4, "markevery": 5, "label": f"weight {weight}"}
    for ax, values in zip(axes.flat, curves[weight].T, strict=True):
        ax.plot(epochs, values, style, **line)
for ax, title in zip(axes.flat, titles, strict=True):
    ax.set_title(title)
for ax in axes[1]:
    ax.set(xlabel="epoch", ylim=(0.75, 1.55))
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()
# sphinx_gallery_thumbnail_path = "_static/tiles/training_towards_calibration.png"

for weight, curve in curves.items():
    print(
        f"weight {weight}: log loss {curve[:, 2].min():.3f} in the best epoch, "
        f"{curve[-1, 2]:.3f} in the last, {curve[-1, 3]:.3f} there after a temperature"
    )
