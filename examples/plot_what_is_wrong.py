"""
===========================================================
What is wrong with my probabilities, and is it only chance?
===========================================================

A random forest and gradient boosting tell odd handwritten digits from even ones. Both are right
equally often, and both are miscalibrated, but in opposite directions. One figure shows where
probabilities are wrong, another one whether a calibrated model could look like that by chance.
"""

# %%
# Two classifiers
# ---------------
# To make it harder, they see only the upper three of eight rows of pixels.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

from skcalib.display import NullDistributionDisplay, WitnessDisplay
from skcalib.hypothesis_tests import CalibrationTest

X, digit = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X[:, :24], digit % 2, test_size=0.5, random_state=0
)
models = {
    "forest": RandomForestClassifier(random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
for name, model in models.items():
    accuracy = model.fit(X_train, y_train).score(X_test, y_test)
    print(f"{name:9} right {accuracy:.0%} of the time")

# %%
# Where, and in which direction?
# ------------------------------
# The curve is above 0 where odd digits are more frequent than predicted, and below 0 where they are
# less frequent. That of the forest rises: odd digits are rarer than predicted where it says 20 %,
# and more frequent where it says 80 %. It is underconfident. That of boosting falls: it is
# overconfident. The strip below shows the same, times how many predictions are there.

_, ax = plt.subplots(figsize=(6.4, 6.4), layout="constrained")
for name, model in models.items():
    WitnessDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax)
plt.show()

# %%
# Could it be chance?
# -------------------
# The test draws labels from the predictions of boosting, again and again, as if they were
# calibrated. In each panel a statistic of these draws is a histogram, and that of the data the
# line. Where the line is far outside, that is not chance. The p-values in the figure are adjusted
# for the number of statistics.

proba = models["boosting"].predict_proba(X_test)
test = CalibrationTest(n_resamples=499, random_state=0).fit(proba, y_test)
print(f"boosting: p = {test.p_value_:.3f}")

_, ax = plt.subplots(figsize=(6.4, 6), layout="constrained")
NullDistributionDisplay.from_test(test, name="boosting", ax=ax)
plt.show()
