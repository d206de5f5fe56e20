"""
====================================
Are the PDs of these grades too low?
====================================

A rating has seven grades. One year is observed, in which the economy was bad: defaults depend on
each other. The best grade had no default at all.
"""

# %%
# A simulated portfolio
# ---------------------
# All debtors share one normal factor (Vasicek's model). Grade 5 has twice the PD that was assigned.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from skcalib.display import RatingGradeDisplay
from skcalib.hypothesis_tests import RatingGradeTest
from skcalib.uncertainty import most_prudent_default_rates

rng = np.random.default_rng(1)
n = np.array([300, 900, 1500, 1500, 900, 400, 150])
pd_assigned = np.array([0.0003, 0.001, 0.003, 0.008, 0.02, 0.05, 0.12])
quantile = norm.ppf(pd_assigned * [1, 1, 1, 1, 2, 1, 1])
given_year = norm.cdf((quantile + np.sqrt(0.12) * 0.8) / np.sqrt(1 - 0.12))
grade = np.repeat(np.arange(1, 8), n)
proba, default = pd_assigned[grade - 1], rng.random(len(grade)) < given_year[grade - 1]

# %%
# With and without correlation
# ----------------------------
# If defaults were independent, grade 5 would be refuted beyond doubt. But a bad year explains as
# many defaults: with the correlation no light is red. One year does not show that a PD is half of
# what it should be.

for correlation in (0, 0.12):
    test = RatingGradeTest(correlation=correlation).fit(proba, default, grades=grade)
    print(test.summary())

# %%
# The table as a figure
# ---------------------
# And the most prudent PDs of Pluto and Tasche, which are never 0.

shown = RatingGradeDisplay.from_test(test)
defaults = test.table_["defaults"]
prudent = most_prudent_default_rates(n, defaults, confidence_level=0.75, correlation=0.12)
shown.ax_.plot(prudent, "bv", label="most prudent PD (75 %)")
shown.ax_.legend()
plt.show()
