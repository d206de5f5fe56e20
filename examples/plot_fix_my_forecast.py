"""
========================
How do I fix a forecast?
========================

Prediction intervals of a Gaussian process are too narrow. `RecalibratedRegressor` learns from
out-of-fold forecasts how to move and widen them, and is a regressor like any other.
"""

# %%
# Before and after
# ----------------
# By default the recalibration is chosen by the cross-validated CRPS: none, another location and
# scale, another shape, or both. So what is calibrated already stays as it is.

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.display import PITHistogramDisplay, ScoreDecompositionDisplay
from skcalib.forecasts import get_forecast
from skcalib.metrics import continuous_ranked_probability_loss, quantile_calibration_error
from skcalib.recalibration import RecalibratedRegressor

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
process = make_pipeline(
    StandardScaler(),
    GaussianProcessRegressor(RBF(3.0) + WhiteKernel(0.1), normalize_y=True, optimizer=None),
)
models = {"before": process, "after": RecalibratedRegressor(process, cv=5)}
forecasts = {name: get_forecast(m.fit(X_train, y_train), X_test) for name, m in models.items()}

figure, axes = plt.subplots(1, 2, figsize=(6.4, 4.4), layout="constrained", sharey=True)
for ax, (name, forecast) in zip(axes, forecasts.items(), strict=True):
    PITHistogramDisplay.from_predictions(y_test, forecast, ax=ax, name=name, random_state=0)

# %%
# What was gained
# ---------------
# The miscalibration falls towards what a calibrated model would show on as many samples: the line
# across its bar. The discrimination, what the forecasts know of the single outcome, stays.

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for name, forecast in forecasts.items():
    ScoreDecompositionDisplay.from_predictions(
        y_test, forecast, ax=ax, name=name, n_resamples=5, random_state=0
    )
    error = quantile_calibration_error(y_test, forecast)
    crps = continuous_ranked_probability_loss(y_test, forecast)
    print(f"{name:7} quantile calibration error {error:.3f}, CRPS {crps:.1f}")
plt.show()

# %%
# Intervals
# ---------
# `predict_interval` and `predict_quantiles` use the recalibrated forecast, and ``predict(X,
# return_std=True)`` its mean and standard deviation.

for level in (0.5, 0.8, 0.95):
    for name, forecast in forecasts.items():
        low, high = forecast.interval(level)
        covered = ((low <= y_test) & (y_test <= high)).mean()
        print(f"{name:7} {level:.0%} intervals hold {covered:.0%} of the outcomes")
