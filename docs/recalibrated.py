"""Reliability of a classifier before and after recalibration, the figure of the first page.

    python docs/recalibrated.py docs/_static/recalibrated.png

draws the one of the README. Its texts can be read where the figure is 360 pixels wide.
"""

import sys

import matplotlib.pyplot as plt
from matplotlib.text import Text
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib.display import ReliabilityDisplay
from skcalib.recalibration import RecalibratedClassifier

SIZE = 10  # of all texts, in points

X, y = make_classification(6000, n_informative=5, n_redundant=10, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    "naive Bayes": GaussianNB(),
    "recalibrated": RecalibratedClassifier(GaussianNB(), cv=5),
}
looks = [{"color": "C1", "band": None}, {"color": "C0", "band": "consistency"}]
figure, ax = plt.subplots(figsize=(3.8, 5), layout="constrained")
for (name, model), look in zip(models.items(), looks, strict=True):
    model.fit(X_train, y_train)
    ReliabilityDisplay.from_estimator(
        model, X_test, y_test, name=name, ax=ax, axis_scale="linear", random_state=0, **look
    )
for panel in figure.axes:
    panel.tick_params(labelsize=SIZE)
for text in figure.findobj(Text):
    text.set_fontsize(SIZE)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=150, bbox_inches="tight")
