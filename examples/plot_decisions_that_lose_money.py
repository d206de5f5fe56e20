"""
===============================================
Why does a calibrated-looking model lose money?
===============================================

A lender earns a little on each loan that is paid back, and loses much on each that is not. So it
acts on small probabilities, where an error of two points decides between profit and loss. A
reliability diagram or a binned error hardly shows such an error. The decision calibration error is
in money.
"""

# %%
# A model from better times
# -------------------------
# The model was fitted when few loans failed. Now more do, for all kinds of applicants. The first
# 4000 whose outcome is known serve to look and to repair; later ones show what that is worth.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skcalib.decisions import DecisionLoss, bayes_action, expected_loss
from skcalib.display import DecisionDisplay, ReliabilityDisplay
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import decision_calibration, expected_calibration_error
from skcalib.recalibration import DecisionRecalibrator, TemperatureRecalibrator
from skcalib.uncertainty import confidence_interval

rng = np.random.default_rng(0)


def applicants(n, log_odds):
    X = rng.normal(size=(n, 3))
    risk = log_odds + 0.7 * X[:, 0] + 0.5 * X[:, 1]
    return X, (rng.random(n) < 1 / (1 + np.exp(-risk))).astype(int)


model = LogisticRegression().fit(*applicants(8000, -3.7))
X, failed = applicants(4000, -2.9)
proba = model.predict_proba(X)[:, 1]
print(f"expected calibration error: {expected_calibration_error(failed, proba):.3f}")

_, ax = plt.subplots(figsize=(4.8, 5.6), layout="constrained")
ReliabilityDisplay.from_predictions(failed, proba, axis_scale="logit", random_state=0, ax=ax)
plt.show()

# %%
# What is expected, and what it costs
# -----------------------------------
# A loan that is paid back earns 300, one that is not costs 8000. Granting is best as long as the
# probability of failure is below 3.6 %. Losses are negative where money is earned.

loss = DecisionLoss([[-300, 8000], [0, 0]], actions=["grant", "refuse"])
table = decision_calibration(failed, proba, loss=loss)
for action, share, expected, realised in zip(
    table.actions, table.share, table.expected, table.realised, strict=True
):
    print(f"{action}: {share:.0%}, expected {expected:.0f}, realised {realised:.0f} per loan")
error = {"loss": loss, "given": "action"}
print(confidence_interval("decision_calibration_error", failed, proba, metric_params=error,
                          n_resamples=99, random_state=0))  # fmt: skip
test = CalibrationTest("decision_calibration_error", metric_params=error, random_state=0)
print(f"p-value: {test.fit(proba, failed).p_value_:.3f}")

_, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
DecisionDisplay.from_predictions(failed, proba, loss=loss, ax=ax)
plt.show()

# %%
# At every threshold
# ------------------
# The same for other costs: how much better it is to act on the model than never to act, for each
# probability at which acting begins to pay. The model brings more than it leads to expect.

_, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
thresholds = np.linspace(0.005, 0.2, 60)
DecisionDisplay.from_predictions(failed, proba, kind="net-benefit", thresholds=thresholds, ax=ax)
ax.set_xlim(0, 0.2)
plt.show()

# %%
# What the repair is worth
# ------------------------
# :class:`~skcalib.recalibration.DecisionRecalibrator` shifts the probabilities of those who would
# get a loan, and of those who would not, until each decision costs as much as expected. On new
# applicants the lender earns again instead of losing, and knows about how much before any loan is
# due. A temperature does the same here, as all applicants have become riskier alike; the shifts
# need no such assumption.

X_new, failed_new = applicants(20_000, -2.9)
recalibrators = {"none": None, "temperature": TemperatureRecalibrator()}
recalibrators["decision"] = DecisionRecalibrator(loss=loss)
for name, recalibrator in recalibrators.items():
    new = model.predict_proba(X_new)
    if recalibrator is not None:
        new = recalibrator.fit(proba, failed).transform(new)
    action = bayes_action(new, loss=loss)
    earned = -loss.loss[(action == "refuse").astype(int), failed_new]
    print(
        f"{name}: expected {-expected_loss(new, loss=loss).sum() / 1e6:.2f} million, earned "
        f"{earned.sum() / 1e6:.2f} ± {earned.std() * len(earned) ** 0.5 / 1e6:.2f}"
    )
