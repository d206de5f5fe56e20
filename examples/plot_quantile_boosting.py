"""
=============================================
Do the quantiles of gradient boosting hold?
=============================================

Gradient boosting can predict quantiles, one model for each level. On few samples it learns the
training outcomes too well: a tenth of new outcomes should be above the 90 % quantile, but many more
are. Quantiles that are moved by what was seen on other samples hold.
"""

# %%
# Quantiles as a forecast
# -----------------------
# Told which parameter of a regressor holds the level, `RecalibratedRegressor` fits one regressor
# for each level. Its forecast is a `QuantileForecast`: nothing is known beyond the quantiles, and
# nothing is made up.

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from skcalib.display import QuantileReliabilityDisplay
from skcalib.forecasts import get_forecast
from skcalib.metrics import continuous_ranked_probability_loss, interval_loss
from skcalib.recalibration import (
    IdentityRecalibrator,
    QuantileRecalibrator,
    RecalibratedRegressor,
)

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
boosting = HistGradientBoostingRegressor(loss="quantile", max_iter=50, random_state=0)
models = {
    name: RecalibratedRegressor(boosting, recalibrator, level_parameter="quantile", cv=3)
    for name, recalibrator in [
        ("boosting", IdentityRecalibrator()),
        ("recalibrated", QuantileRecalibrator()),
    ]
}
forecasts = {name: get_forecast(m.fit(X_train, y_train), X_test) for name, m in models.items()}

# %%
# How often they hold
# -------------------
# To each quantile a number is added: the smallest that makes enough of the out-of-fold outcomes lie
# below it. The grey bands show what chance does to calibrated quantiles.

figure, axes = plt.subplots(1, 2, figsize=(6.4, 5.4), layout="constrained")
for ax, level_type in zip(axes, ("quantile", "interval"), strict=True):
    for (name, forecast), style in zip(forecasts.items(), ("--", "-"), strict=True):
        QuantileReliabilityDisplay.from_predictions(
            y_test,
            forecast,
            level_type=level_type,
            ax=ax,
            name=name,
            random_state=0,
            linestyle=style,
        )
plt.show()

# %%
# Was it worth it?
# ----------------
# Wider intervals hold more outcomes, but say less. Proper scores weigh one against the other.

for name, forecast in forecasts.items():
    low, high = forecast.interval(0.9)
    print(
        f"{name:13} CRPS {continuous_ranked_probability_loss(y_test, forecast):.2f}, "
        f"90 % intervals: width {(high - low).mean():.0f}, "
        f"hold {((low <= y_test) & (y_test <= high)).mean():.0%}, "
        f"interval loss {interval_loss(y_test, forecast, coverage=0.9):.0f}"
    )
