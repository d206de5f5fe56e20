"""
===============================
A leaderboard of several models
===============================

Several models by cross-validation: which has the best probabilities, and is it their calibration or
their ranking?
"""

# %%
# Five lines for the leaderboard
# ------------------------------
# All scores of skcalib are negative errors, so that larger is better, as scikit-learn has it.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.metrics import get_scorer
from skcalib.recalibration import RecalibratedClassifier

X, y = load_breast_cancer(return_X_y=True)
models = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=50, random_state=0),
    "Bayes": GaussianNB(),
    "Bayes, recalibrated": RecalibratedClassifier(GaussianNB()),
}
names = ["neg_log_loss", "neg_smooth_calibration_error", "roc_auc"]
scoring = {name: get_scorer(name) for name in names}
results = {name: cross_validate(model, X, y, scoring=scoring) for name, model in models.items()}
board = {m: [results[m][f"test_{name}"].mean() for name in names] for m in models}
ranked = sorted(board, key=lambda name: -board[name][0])

# %%
# The board
# ---------

for model in ranked:
    print(f"{model:20}", *(f"{value:8.4f}" for value in board[model]))
plt.barh(ranked[::-1], [-board[model][0] for model in ranked[::-1]])
plt.xlabel("log loss in cross-validation (lower is better)")
plt.tight_layout()
plt.show()
