"""
=========================================
Do outcomes fall where my regressor says?
=========================================

Two regressors forecast how a disease progresses, as a mean and a standard deviation. A forecast is
calibrated if outcomes fall where it says: 80 % of them in the intervals that should hold 80 %. Two
figures, some numbers and a test tell whether that is so.
"""

# %%
# Two regressors
# --------------
# Both return a standard deviation from ``predict(X, return_std=True)``. The Gaussian process
# believes that a tenth of the variance is noise. Half of it is.

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.display import PITHistogramDisplay, QuantileReliabilityDisplay
from skcalib.forecasts import get_forecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.report import calibration_report

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
process = GaussianProcessRegressor(RBF(3.0) + WhiteKernel(0.1), normalize_y=True, optimizer=None)
models = {
    "Bayesian ridge": BayesianRidge(),
    "Gaussian process": make_pipeline(StandardScaler(), process),
}
forecasts = {name: get_forecast(m.fit(X_train, y_train), X_test) for name, m in models.items()}

# %%
# Where do outcomes fall?
# -----------------------
# The PIT of an outcome is the probability that its forecast gave to less. PITs of a calibrated
# forecast are uniform, up to chance: the grey bands show how much that is. Bars that are high at
# both ends are outcomes far outside of the forecasts, which are too narrow. The second row shows
# how often intervals hold the outcome.

figure, axes = plt.subplots(2, 2, figsize=(6.4, 8.6), layout="constrained")
for (top, bottom), (name, forecast) in zip(axes.T, forecasts.items(), strict=True):
    PITHistogramDisplay.from_predictions(y_test, forecast, ax=top, name=name, random_state=0)
    QuantileReliabilityDisplay.from_predictions(
        y_test, forecast, level_type="interval", ax=bottom, name=name, random_state=0
    )
plt.show()

# %%
# Could it be chance?
# -------------------
# A test draws outcomes from the forecasts and compares. Calibrated forecasts get a p-value below
# 0.05 in one of twenty cases, whatever the number of samples. The quantile calibration error sees
# what the figures see. The default also sees whether outcomes follow the forecast given the
# forecast, and finds a fault of the ridge regression.

for name, forecast in forecasts.items():
    for statistic in ("quantile_calibration_error", "auto"):
        test = CalibrationTest(statistic, random_state=0).fit(forecast, y_test)
        print(f"{name}, {statistic}: p = {test.p_value_:.3f}")

# %%
# Its standard deviation is nearly the same for everyone. But outcomes vary less where the forecast
# is low.

ridge = forecasts["Bayesian ridge"]
is_low = ridge.mean() < 100
error = y_test - ridge.mean()
print(f"standard deviation forecast: {ridge.std().min():.0f} to {ridge.std().max():.0f}")
print(f"of the errors: {error[is_low].std():.0f} below 100, {error[~is_low].std():.0f} above")

# %%
# All numbers at once
# -------------------
# The report also says what is wrong.

print(calibration_report(y_test, forecasts["Gaussian process"], random_state=0))

# %%
# A small error is not all
# ------------------------
# The forecast that gives every sample the distribution of all outcomes is calibrated, and useless.
# Among calibrated forecasts the sharper one is better. The CRPS counts both, calibration and
# sharpness: of two forecasts, prefer the one with the lower CRPS.
