"""
===============================
How strong should a penalty be?
===============================

A network of skorch is a scikit-learn estimator, also when it is trained towards calibration. So
pipelines take it, and a grid search finds the weight of the penalty by cross-validation.

This example needs PyTorch and skorch: ``pip install "skcalib[torch]" skorch``. It takes about
half a minute.
"""

# %%
# A network as an estimator
# -------------------------
# The criterion is the cross-entropy plus a penalty; both take logits. skorch turns them into
# probabilities only if it knows the criterion, so it has to be told: without
# ``predict_nonlinearity`` the method `predict_proba` would return logits.

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.metrics import get_scorer, smooth_calibration_error
from skcalib.recalibration import RecalibratedClassifier, TemperatureRecalibrator

try:
    import torch
    from skorch import NeuralNetClassifier
except ImportError:
    raise SystemExit(
        'This example needs PyTorch and skorch: pip install "skcalib[torch]" skorch'
    ) from None

from skcalib.torch import CalibrationRegularizedLoss, DistributionMatchingLoss

X, y = make_classification(
    3000, n_features=20, n_informative=6, n_classes=3, flip_y=0.25, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(
    X.astype(np.float32), y, train_size=1000, random_state=0
)


class Network(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))


network = NeuralNetClassifier(
    Network,
    criterion=CalibrationRegularizedLoss,
    criterion__base=torch.nn.CrossEntropyLoss(),
    criterion__penalty=DistributionMatchingLoss("canonical"),
    predict_nonlinearity=partial(torch.softmax, dim=-1),
    optimizer=torch.optim.Adam,
    lr=0.01,
    max_epochs=20,
    train_split=None,
    verbose=0,
)
pipeline = make_pipeline(StandardScaler(), network)

# %%
# The search
# ----------
# The log loss decides: it is a proper score, and counts calibration together with sharpness. The
# calibration error alone would like any network that says how frequent the classes are. Bars are
# standard errors over the five folds.

torch.manual_seed(0)
weights = [0.0, 3.0, 10.0, 30.0, 100.0]
search = GridSearchCV(
    pipeline,
    {"neuralnetclassifier__criterion__weight": weights},
    scoring={"loss": "neg_log_loss", "error": get_scorer("neg_smooth_calibration_error")},
    refit="loss",
    cv=5,
).fit(X_train, y_train)

figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.6), layout="constrained")
for ax, name, title in zip(
    axes, ["loss", "error"], ["log loss", "smooth calibration error"], strict=True
):
    mean = -search.cv_results_[f"mean_test_{name}"]
    error = search.cv_results_[f"std_test_{name}"] / 5**0.5
    ax.errorbar(np.arange(len(weights)), mean, yerr=error, marker="o", capsize=3)
    ax.set(title=title, xlabel="weight of the penalty")
    ax.set_xticks(np.arange(len(weights)), [f"{weight:g}" for weight in weights])
axes[0].axvline(search.best_index_, color="grey", linestyle=":", label="chosen")
axes[0].legend(loc="lower left", frameon=False)
plt.show()
# sphinx_gallery_thumbnail_path = "_static/tiles/search_for_the_weight.png"

# %%
# And recalibration afterwards?
# -----------------------------
# :class:`~skcalib.recalibration.RecalibratedClassifier` fits a temperature to out-of-fold
# predictions of the network. With and without a penalty, this is how they do on new data: the
# temperature alone gets further in log loss than the penalty alone, and together they do no better.

for weight in (0.0, search.best_params_["neuralnetclassifier__criterion__weight"]):
    pipeline.set_params(neuralnetclassifier__criterion__weight=weight)
    with_temperature = RecalibratedClassifier(pipeline, TemperatureRecalibrator(), cv=5)
    for name, model in (("alone", pipeline), ("with a temperature", with_temperature)):
        torch.manual_seed(0)
        proba = model.fit(X_train, y_train).predict_proba(X_test)
        error = smooth_calibration_error(y_test, proba)
        print(f"weight {weight:g}, {name}: log loss {log_loss(y_test, proba):.3f}, {error:.3f}")
