"""
======================================
Which of several models should I take?
======================================

The one with the lowest proper score, of course. But is its lead more than chance? And would another
one win after recalibration? Four classifiers of handwritten digits, in two figures.
"""

# %%
# Four classifiers
# ----------------
# They tell odd digits from even ones by the upper three of eight rows of pixels.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.display import ComparisonDisplay, ScoreDecompositionDisplay

X, digit = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X[:, :24], digit % 2, test_size=0.5, random_state=0
)
models = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "neighbours": KNeighborsClassifier(15),
    "forest": RandomForestClassifier(random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
probas = {
    name: model.fit(X_train, y_train).predict_proba(X_test)[:, 1] for name, model in models.items()
}

# %%
# What would recalibration change?
# --------------------------------
# The Brier score is miscalibration − discrimination + uncertainty. The uncertainty is the same for
# all, so each model is a point, and models on one line have the same score. Higher is better, and
# so is further left. Recalibration can move a point to the left, about as far as the mark at the
# end of its line: that is where a calibrated model would be. It cannot move it upwards: what a
# model does not tell apart, no recalibration does. So the logistic regression stays behind, and the
# forest would come close to boosting.

_, ax = plt.subplots(figsize=(6.4, 6.4), layout="constrained")
for name, proba in probas.items():
    ScoreDecompositionDisplay.from_predictions(
        y_test, proba, score="brier", kind="points", random_state=0, name=name, ax=ax
    )
plt.show()

# %%
# Is the difference more than chance?
# -----------------------------------
# Each row is a model minus boosting, with a 95 % interval. An interval on the right of 0 says that
# boosting is better. That is sure for the Brier score of logistic regression. The lead over the
# other two may be chance, and so may all differences in calibration.

_, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ComparisonDisplay.from_predictions(
    y_test,
    probas,
    metrics=[brier_score_loss, "smooth_calibration_error"],
    reference="boosting",
    n_resamples=199,
    random_state=0,
    ax=ax,
)
plt.show()
