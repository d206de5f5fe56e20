"""
===========================
Where is my forecast wrong?
===========================

A forecast of crop yields may be calibrated on the whole, too high in some regions and too low in
others. No histogram of all PITs shows that; a map does. Figure 1 of Marx, Zalouk and Ermon,
`Calibration by Distribution Matching <https://arxiv.org/abs/2310.20211>`_ (2023), draws such maps
to compare training objectives on crop yields. Here fields are simulated, and nothing is trained.
"""

# %%
# Simulated fields
# ----------------
# Yields differ from field to field for reasons that the forecasts know, and from region to region
# for reasons that they do not know. Their standard deviations allow for both.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from skcalib.datasets import make_forecasts
from skcalib.display import PITHistogramDisplay
from skcalib.forecasts import GaussianForecast
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    local_calibration,
    local_calibration_error,
    quantile_calibration_error,
)

y, forecast, positions = make_forecasts(
    4000, problem="spatial", return_positions=True, random_state=1
)
learn, test = slice(0, 3000), slice(3000, None)

# %%
# Learn where it is wrong
# -----------------------
# On some of the fields, neighbours tell by how many standard deviations yields are higher than
# forecast in a region, and how much they vary around that. The other fields test it.

z = (y - forecast.mean()) / forecast.std()
neighbours = KNeighborsRegressor(60).fit(positions[learn], np.column_stack([z, z**2])[learn])
mean, square = neighbours.predict(positions).T
after = GaussianForecast(
    forecast.mean() + mean * forecast.std(), np.sqrt(square - mean**2) * forecast.std()
)
stages = {"before": forecast[test], "after": after[test]}

# %%
# All fields together
# -------------------
# Before and after, the histogram of PITs is flat: nothing seems wrong.

_, axes = plt.subplots(1, 2, figsize=(6.4, 4.4), layout="constrained", sharey=True)
for ax, (name, stage) in zip(axes, stages.items(), strict=True):
    PITHistogramDisplay.from_predictions(y[test], stage, ax=ax, name=name, random_state=0)
plt.show()

# %%
# The maps
# --------
# In each cell of a grid, ``local_calibration`` compares outcomes and forecasts of the fields near
# its centre. Before, yields are higher than forecast in the middle (red) and lower in the corners
# (blue). Afterwards most of the map is grey: what remains may be chance.


def draw_map(ax, y, forecast, positions, name, *, n_cells=15, bandwidth=0.1):
    """Draw the mean PIT minus 1/2 in each cell; cells whose bias may be chance stay grey."""
    center = (np.arange(n_cells) + 0.5) / n_cells
    query = np.column_stack([c.ravel() for c in np.meshgrid(center, center)])
    result = local_calibration(
        y,
        forecast,
        given=positions,
        query=query,
        bandwidth=bandwidth,
        n_resamples=99,
        random_state=0,
    )
    bias = np.ma.masked_where(result.p_value > 0.05, result.bias).reshape(n_cells, n_cells)
    ax.set_facecolor("0.85")
    edges = np.linspace(0, 1, n_cells + 1)
    mesh = ax.pcolormesh(edges, edges, bias, cmap="RdBu_r", vmin=-0.35, vmax=0.35)
    ax.set(xlabel="west to east", ylabel="south to north", aspect="equal", title=name)
    return mesh


figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.6), layout="constrained", sharey=True)
for ax, (name, stage) in zip(axes, stages.items(), strict=True):
    mesh = draw_map(ax, y[test], stage, positions[test], name)
figure.colorbar(mesh, ax=axes, label="bias: mean PIT − ½", location="bottom", shrink=0.6)
plt.show()

# %%
# The numbers
# -----------
# The quantile calibration error sees no difference, the local one does. So does the CRPS: forecasts
# that know the region are sharper.

for name, stage in stages.items():
    local = local_calibration_error(
        y[test], stage, given=positions[test], bandwidth=0.1, estimation="debiased"
    )
    overall = quantile_calibration_error(y[test], stage, norm="l2", estimation="debiased")
    crps = continuous_ranked_probability_loss(y[test], stage)
    print(f"{name:7} overall {overall:.3f}, local {local:.3f}, CRPS {crps:.3f}")
