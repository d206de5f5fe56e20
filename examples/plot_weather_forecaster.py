"""
========================================================
Weather forecaster: is the spread of my ensemble right?
========================================================

Eleven members forecast the square root of three days' rain. They are simulated, with faults that
real ensembles have: a bias and too little spread, on days of which many are dry. The rank histogram
and the relation of spread and skill show them; ensemble model output statistics (EMOS), censored at
0, correct them.
"""

import matplotlib.pyplot as plt
import numpy as np

from skcalib.display import PITHistogramDisplay
from skcalib.forecasts import EnsembleForecast
from skcalib.recalibration import NonhomogeneousRegressionRecalibrator

rng = np.random.default_rng(0)
signal, spread = 1.3 + 1.6 * rng.normal(size=4000), np.exp(0.4 * rng.normal(size=4000))
y = np.maximum(signal + 1.7 * spread**0.4 * rng.normal(size=4000), 0)
members = 0.8 + signal[:, None] + 0.9 * spread[:, None] * rng.normal(size=(4000, 11))
ensemble = EnsembleForecast(np.maximum(members, 0))
emos = NonhomogeneousRegressionRecalibrator(censored_at=0).fit(ensemble[:2000], y[:2000])
forecasts = {"ensemble": ensemble[2000:], "EMOS": emos.transform(ensemble[2000:])}
fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for column, (name, forecast) in enumerate(forecasts.items()):
    score = forecast.crps(y[2000:]).mean()
    PITHistogramDisplay.from_predictions(y[2000:], forecast, ax=axes[0, column], name=name)
    axes[0, column].set_title(f"{name}: CRPS {score:.2f}")
    bins = np.array_split(np.argsort(forecast.std()), 10)
    std, error = forecast.std(), y[2000:] - forecast.mean()
    x = [np.sqrt(np.mean(std[rows] ** 2)) for rows in bins]
    axes[1, column].plot(x, [np.sqrt(np.mean(error[rows] ** 2)) for rows in bins], "o-")
    axes[1, column].axline((1, 1), slope=1, color="gray", linestyle="--")
    axes[1, column].set(xlabel="Spread", ylabel="Skill: root mean square error")
plt.show()

# %%
# In the rank histogram of the ensemble both ends are high: outcomes lie outside of all members too
# often, and more often below them. In the lower row its errors exceed its spread everywhere; after
# EMOS the points lie near the diagonal, where spread and error agree.
