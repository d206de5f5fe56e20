"""
============================================================
Which of two language models states its confidence rightly?
============================================================

Two models answer the same 600 questions and state how sure they are. Each is right on questions of
its own; hard questions are hard for both. The answers are simulated.

"""

# %%
# Model A is overconfident, model B is calibrated. Both outcomes go in as a tuple, paired by
# question.
import numpy as np
from matplotlib import pyplot as plt
from scipy.special import expit
from sklearn.metrics import precision_score

from skcalib.display import ReliabilityDisplay
from skcalib.uncertainty import compare_models

rng = np.random.default_rng(0)
ease = rng.normal(1, 1, size=600)  # of each question
logits = ease + rng.normal(0, 0.7, size=(2, 600))
right_a, right_b = rng.random((2, 600)) < expit(logits)
stated_a, stated_b = expit(2 * logits[0] + 0.5), expit(logits[1])
result = compare_models(
    "smooth_calibration_error", (right_a, right_b), stated_a, stated_b, random_state=0
)
print(result)

# %%
# Where each is wrong, and how many answers are wrong if only confident ones are used.
_, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for name, right, stated in (("A", right_a, stated_a), ("B", right_b, stated_b)):
    ReliabilityDisplay.from_predictions(right, stated, name=f"model {name}", ax=axes[0])
    thresholds = np.quantile(stated, np.linspace(0, 0.9, 19))
    risk = [1 - precision_score(right, stated >= threshold) for threshold in thresholds]
    axes[1].plot(np.linspace(1, 0.1, 19), risk, label=f"model {name}")
axes[1].set(xlabel="coverage: share of questions answered", ylabel="risk: share of wrong answers")
axes[1].legend()
plt.show()
