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
from sklearn.model_selection import cross_validate
from sklearn.naive_bayes import GaussianNB

from skcalib.metrics import get_scorer
from skcalib.recalibration import RecalibratedClassifier

X, y = load_breast_cancer(return_X_y=True)
models = {
    "forest": RandomForestClassifier(random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=50, random_state=0),
    "Bayes": GaussianNB(),
    "Bayes, recalibrated": RecalibratedClassifier(GaussianNB()),
}
metrics, board = ["neg_log_loss", "neg_smooth_calibration_error", "roc_auc"], {}
scoring = {metric: get_scorer(metric) for metric in metrics}
for name, model in models.items():
    scores = cross_validate(model, X, y, scoring=scoring)
    board[name] = [scores[f"test_{metric}"].mean() for metric in metrics]
ranked = sorted(board, key=board.get, reverse=True)

# %%
# The board
# ---------

for model in ranked:
    print(f"{model:20}", *(f"{value:8.4f}" for value in board[model]))
plt.bar(ranked, [-board[model][0] for model in ranked])
plt.ylabel("log loss in cross-validation (lower is better)")
plt.show()
