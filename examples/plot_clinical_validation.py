"""
=================================================
Does a risk model hold in each of six hospitals?
=================================================

A model predicts the risk of recurrence within three years, and 555 patients of six hospitals are
followed. The data are simulated like such a validation: risks are underestimated by about a tenth,
and hospitals differ.

"""

# %%
# The table has each hospital, all patients, the mean over hospitals and what is to be expected in a
# new one.
import numpy as np
from matplotlib import pyplot as plt
from scipy.special import expit, logit

from skcalib.display import DecisionDisplay, ForestDisplay, ReliabilityDisplay
from skcalib.uncertainty import clinical_calibration

rng = np.random.default_rng(0)
hospital = np.repeat([f"hospital {name}" for name in "ABCDEF"], [150, 120, 100, 85, 60, 40])
risk = expit(rng.normal(-0.5, 0.8, size=555))
shift = dict(zip(np.unique(hospital), rng.normal(0.2, 0.25, size=6), strict=True))
recurred = rng.random(555) < expit(logit(risk) + [shift[name] for name in hospital])
result = clinical_calibration(recurred, risk, by=hospital, n_resamples=199, random_state=0)
print(result)

# %%
# Forest plot: the prediction interval is wider than the interval of the mean, as hospitals differ.
ForestDisplay.from_result(result)

# %%
# The smooth curve with its band, and the decision curve: is the model worth using?
_, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
ReliabilityDisplay.from_predictions(recurred, risk, method="smooth", band="confidence", ax=axes[0])
DecisionDisplay.from_predictions(recurred, risk, kind="net-benefit", ax=axes[1])
plt.show()
