"""
============================================================
How do I see the calibration of three classes in one figure?
============================================================

A reliability diagram shows one probability at a time. With three classes there is room for all of
them: predictions are points in a triangle, and an arrow leads from what was predicted to what
happened.
"""

# %%
# Small, medium and large digits
# ------------------------------
# Is a handwritten digit 0 to 2, 3 to 6 or 7 to 9? The models see only the upper three of eight rows
# of pixels. Each digit is predicted by a model that was fitted on others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from skcalib.display import SimplexDisplay

X, digit = load_digits(return_X_y=True)
X, y = X[:, :24], np.array(["small", "medium", "large"])[np.digitize(digit, (3, 7))]
models = {
    "naive Bayes": GaussianNB(var_smoothing=0.01),
    "forest": RandomForestClassifier(random_state=0, min_samples_leaf=3),
}
probas = {
    name: cross_val_predict(model, X, y, cv=5, method="predict_proba")
    for name, model in models.items()
}

# %%
# From predicted to observed
# --------------------------
# Predictions near each other share an arrow, whose dot is larger the more there are. Arrows that
# are not grey are longer than chance explains. The large dots of naive Bayes are in the corners,
# and their arrows lead to the middle: it is overconfident.


def draw(name):
    _, ax = plt.subplots(figsize=(6.4, 6.4), layout="constrained")
    SimplexDisplay.from_predictions(y, probas[name], random_state=0, name=name, ax=ax)
    plt.show()


draw("naive Bayes")

# %%
# The arrows of the forest are shorter and lead outwards: it could be surer.

draw("forest")
