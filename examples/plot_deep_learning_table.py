"""
======================================
ECE, NLL and Brier of a neural network
======================================

The table and the diagram that papers on deep learning show, before and after temperature scaling.
"""

# %%
# A network that is overconfident
# -------------------------------

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from skcalib.display import ReliabilityDisplay
from skcalib.metrics import metric_table
from skcalib.recalibration import TemperatureRecalibrator

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X[:, :24], y, train_size=600, random_state=0)
X_held, X_test, y_held, y_test = train_test_split(X_rest, y_rest, random_state=0)
network = MLPClassifier((128,), alpha=0, max_iter=2000, random_state=0).fit(X_train, y_train)
before = network.predict_proba(X_test)
temperature = TemperatureRecalibrator().fit(network.predict_proba(X_held), y_held)
models = {"before": before, "after": temperature.predict_proba(before)}

# %%
# One call for the table
# ----------------------

for column, values in metric_table(y_test, models).items():
    print(f"{column:14}", *(f"{v:.4f}" if isinstance(v, float) else f"{v:>6}" for v in values))

# %%
# Bars with gaps
# --------------
# As in Guo et al. (2017): the red part of each bin is its gap.

figure, axes = plt.subplots(1, 2, figsize=(9, 6), layout="constrained")
for ax, (name, proba) in zip(axes, models.items(), strict=True):
    ReliabilityDisplay.from_predictions(
        y_test, proba, method="binned", shade="bars", band=None, name=name, ax=ax
    )
plt.show()
