"""Local calibration: quantile calibration among samples with similar features."""

from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np

from .._data import ForecastData, check_forecasts, check_given
from .._inputs.annotations import SampleAverage
from .._inputs.arrays import ArrayLike, as_array, check_numbers
from .._inputs.drawing import draw_seed
from .._inputs.options import OptionsOf, check_options_of
from .._inputs.scikit_learn import Count, RandomState, StrOptions, num_samples, validate_params
from .._inputs.warnings import warn_if_slow
from .._numerics.pit import PitLaw, pit_laws
from .._statistics.kernels import KERNELS, Kernel, kernel_values, median_bandwidth
from .._statistics.matching_checks import MATCHING_CONSTRAINTS
from .._statistics.matching_given import standardization
from ..forecasts._base import MAX_NUMBER
from ._quantile import Gaps, divide_by_dof, resolve_levels
from ._registry import register_metric, root_of_estimate

# Numbers in the curves of one block of query points (8 MB).
_MAX_CURVE_ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class LocalCalibration:
    """Calibration around points: what :func:`local_calibration` returns.

    All arrays have shape (n_points,), and are NaN where no sample is near.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        The points, in the units of the features.

    error : ndarray of shape (n_points,)
        Root mean square gap over the levels of the quantiles, not debiased.

    squared_error : ndarray of shape (n_points,)
        Mean square gap, debiased: possibly negative. NaN where one sample has all of the weight.

    bias : ndarray of shape (n_points,)
        Mean PIT − 1/2; positive where outcomes are higher than forecast.

    spread : ndarray of shape (n_points,)
        Variance of the PITs in units of the uniform distribution's, minus 1; positive where
        forecasts are too narrow. NaN where one sample has all of the weight.

    effective_sample_size : ndarray of shape (n_points,)
        Number of equally weighted samples that would tell as much; 0 where no sample is near.

    p_value : ndarray of shape (n_points,), default=None
        Share of outcomes drawn from the forecasts whose `squared_error` is at least as large. None
        if none were drawn.

    See Also
    --------
    local_calibration : The function that returns it.

    Examples
    --------
    >>> from skcalib.metrics import local_calibration
    >>> around = local_calibration([0.5, 1.0], ([0.0, 0.0], 1.0), given=[0.0, 1.0])
    >>> around.bias.round(2)
    array([0.24, 0.29])
    """

    points: np.ndarray
    error: np.ndarray
    squared_error: np.ndarray
    bias: np.ndarray
    spread: np.ndarray
    effective_sample_size: np.ndarray
    p_value: np.ndarray | None = None


class Locations(NamedTuple):
    """Points around which calibration is measured, and the samples in the same units."""

    raw: np.ndarray  # (m, d), the points in the user's units
    query: np.ndarray  # (m, d), in those of the kernel
    points: np.ndarray  # (n, d)
    kernel: Kernel


def _local_calibration(
    data: ForecastData, locations: Locations, null_laws: list[PitLaw]
) -> np.ndarray:
    """Return error, squared error, bias, spread, effective sample size and p-value, (6, m)."""
    law, levels = pit_laws(*data.forecast.pit_bounds(data.value)), resolve_levels(data.forecast)
    order = np.lexsort((law.start, law.stop))  # each block needs them sorted
    law, weight = PitLaw(*(x[order] for x in law)), data.weight[order]
    query, points, kernel = locations.query, locations.points[order], locations.kernel
    null = [Gaps(PitLaw(*(x[order] for x in pit_law)), levels) for pit_law in null_laws]
    gaps = Gaps(law, levels)
    mean = (law.start + law.stop) / 2
    width = law.stop - law.start
    rows = max(1, _MAX_CURVE_ENTRIES // max(gaps.width, len(weight)))
    blocks, start = [], perf_counter()
    for first in range(0, len(query), rows):
        near = np.asarray(kernel(query[first : first + rows], points), dtype=np.float64) * weight
        total = near.sum(axis=1, keepdims=True)
        # (B, n), NaN where no sample is near
        local = np.divide(near, total, out=np.full(near.shape, np.nan), where=total > 0)
        square, debiased = gaps.squares(local)
        share = np.square(local).sum(axis=1)
        centre = local @ mean
        between = divide_by_dof(local @ mean**2 - centre**2, 1 - share)
        spread = local @ width**2 + 12 * between - 1
        exceeds = sum((pit_law.squares(local)[1] >= debiased).astype(float) for pit_law in null)
        p_value = np.where(np.isnan(debiased), np.nan, (1 + exceeds) / (1 + len(null)))
        size = np.where(np.isnan(share), 0.0, 1 / share)
        blocks.append([np.sqrt(square), debiased, centre - 0.5, spread, size, p_value])
        if first == 0:
            warn_if_slow(
                (perf_counter() - start) * len(query) / rows,
                f"Local calibration at {len(query)} query points",
                "Pass fewer points as query: a thousand samples, drawn at random, tell much.",
            )
    return np.concatenate(blocks, axis=1)


_KERNEL_CONSTRAINTS: dict = {
    "kernel": [StrOptions({"rbf", "laplacian", "exponential"}), callable],
    "bandwidth": [*MATCHING_CONSTRAINTS["given_bandwidth"], StrOptions({"auto"})],
}


@validate_params(_KERNEL_CONSTRAINTS | {"n_resamples": [Count(0, 10**9)]})
def local_calibration(
    y_true: ArrayLike,
    y_forecast: object,
    *,
    given: ArrayLike,
    query: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    kernel: str | Kernel = "rbf",
    bandwidth: float | Literal["auto", "median"] = "auto",
    n_resamples: int = 0,
    random_state: RandomState = None,
) -> LocalCalibration:
    r"""Calibration around points in the space of the features: error, bias and spread.

    Among similar samples with calibrated forecasts, bias, spread and squared error are 0 on
    average; the error is positive.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Outcomes.

    y_forecast : forecast
        A forecast, as :func:`~skcalib.forecasts.as_forecast` takes it, such as (mean, std).

    given : array-like of shape (n_samples,) or (n_samples, n_features)
        Features in which samples are similar.

    query : array-like of shape (n_points,) or (n_points, n_features), default=None
        The points, in the units of `given`. By default the samples' own features.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    kernel : {"rbf", "laplacian", "exponential"} or callable, default="rbf"
        Weight of a sample by its distance to a point, as in :func:`local_calibration_error`.

    bandwidth : float, "auto" or "median", default="auto"
        The ν of a named kernel, as in :func:`local_calibration_error`.

    n_resamples : int, default=0
        Number of times that outcomes are drawn from the forecasts, for `p_value`.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    around : LocalCalibration
        With the arrays `points`, `error`, `squared_error`, `bias`, `spread`,
        `effective_sample_size`, and `p_value`.

    See Also
    --------
    local_calibration_error : The error at the points, or its mean, as one metric.

    Notes
    -----
    The formulas of `error` and `squared_error` are those of :func:`local_calibration_error`. With
    the local weights :math:`\omega_i`, which sum to 1, and the PITs :math:`u_i` with the mean
    :math:`\bar u`, the bias is :math:`\bar u - 1/2`, the effective sample size :math:`1 / \sum_i
    \omega_i^2` and the spread

    .. math::
        12 \Big[\sum_i \omega_i (u_i - \bar u)^2 \Big/ \Big(1 - \sum_i \omega_i^2\Big)\Big] - 1.

    A p-value is exact for a single point and independent outcomes; among many points some are small
    by chance. For n samples and m points the cost is :math:`O(m n)`, also of each resample; memory
    is :math:`O(n)`.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import local_calibration
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=1000)
    >>> y = rng.normal(scale=np.where(x < 0, 2.0, 0.5))  # but 1.0 is forecast
    >>> around = local_calibration(y, (np.zeros(1000), 1.0), given=x, query=[-0.5, 0.5])
    >>> (around.spread > 0).tolist()
    [True, False]
    """
    data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight, given=given)
    query = _all_features(query, given, sample_weight)
    locations = _make_locations(data, query, kernel, bandwidth)
    seed = draw_seed(random_state)
    null_laws = []  # the laws of the PITs of outcomes drawn from the forecasts
    for outcome in data.simulate_outcomes(np.random.default_rng(seed), n_resamples):
        simulated = data.with_outcome(outcome)
        null_laws.append(pit_laws(*simulated.forecast.pit_bounds(simulated.value)))
    error, squared, bias, spread, size, p_value = _local_calibration(data, locations, null_laws)
    p_values = p_value if n_resamples else None
    return LocalCalibration(locations.raw, error, squared, bias, spread, size, p_values)


def _local_calibration_error(
    data: ForecastData,
    query: ArrayLike | None,
    kernel: str | Kernel,
    bandwidth: float | str,
    estimation: str,
    average: str | None,
    signed: bool = False,
) -> float | np.ndarray:
    locations = _make_locations(data, query, kernel, bandwidth)
    root, debiased, *_ = _local_calibration(data, locations, [])
    square = debiased if estimation == "debiased" else root**2
    if average is None:
        return root_of_estimate(square, signed)
    share = data.weight if query is None else np.ones(len(square))
    return _average_error(square, share, average, signed)


@register_metric(
    _local_calibration_error,
    _KERNEL_CONSTRAINTS,
    cost="n²",
    takes=("forecasts",),
    clips_square=lambda options: options["estimation"] == "debiased",
)
def local_calibration_error(
    y_true: ArrayLike,
    y_forecast: object,
    *,
    given: ArrayLike,
    query: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    kernel: str | Kernel = "rbf",
    bandwidth: float | Literal["auto", "median"] = "auto",
    estimation: Literal["biased", "debiased"] = "biased",
    average: Literal["root-mean-square"] | SampleAverage = "mean",
) -> float | np.ndarray:
    r"""Local calibration error (LCE): the quantile error among samples with similar features.

    It is 0 if, around every point, quantiles of all levels cover as they say. On samples of a
    calibrated forecast it is positive (biased upwards), the more so the smaller the bandwidth (see
    `estimation`).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Outcomes.

    y_forecast : forecast
        A forecast, as :func:`~skcalib.forecasts.as_forecast` takes it, such as (mean, std).

    given : array-like of shape (n_samples,) or (n_samples, n_features)
        Features in which samples are similar.

    query : array-like of shape (n_points,) or (n_points, n_features), default=None
        The points, in the units of `given`. By default the samples' own features.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    kernel : {"rbf", "laplacian", "exponential"} or callable, default="rbf"
        Weight of a sample by its distance to a point: exp(−d²/(2ν²)) with the Euclidean distance d,
        exp(−d/ν) with the sum of the absolute differences ("laplacian"), or with the Euclidean
        distance ("exponential"). A callable ``kernel(query, given)`` returns the weights of all
        pairs, as an array of shape (n_points, n_samples).

    bandwidth : float, "auto" or "median", default="auto"
        The ν of a named kernel. A number, at least 1e-150, is in the units of the features. With
        "auto" and "median" they are standardised first. "median" is the median distance between
        samples, but at least a tenth of the root mean square distance; "auto" is that times
        :math:`n^{-1/(d+4)}` for d features and the effective number n of samples.

    estimation : {"biased", "debiased"}, default="biased"
        "debiased" subtracts what the finite sample adds to the mean square gap around each point,
        and reads `sample_weight` as importance weights.

    average : {"mean", "root-mean-square"} or None, default="mean"
        How the values are averaged, with the weights of the samples. None returns all values.

    Returns
    -------
    error : float or ndarray of shape (n_points,)
        Between 0 and 3^(−1/2); 0 is best. The value is NaN at a point without a sample near it or,
        if "debiased", with a single one; averages leave such points out.

    See Also
    --------
    local_calibration : Also bias, spread and p-values.
    quantile_calibration_error : The same for all samples at once.

    Notes
    -----
    With weights :math:`w_i`, PITs :math:`u_i = F_i(y_i)`, features :math:`x_i` and a kernel k, the
    samples have the weights :math:`\omega_i \propto w_i k(x_i, x)` around a point x, which sum to
    1. The error there is [1]_ [2]_

    .. math:: \Big(\int_0^1 \Big(\sum_i \omega_i 1[u_i \le p] - p\Big)^2 dp\Big)^{1/2},

    the :func:`quantile_calibration_error` with `norm="l2"` and these weights, which also explains
    "debiased". "root-mean-square" averages the squares; if "debiased", only their mean is clipped
    at 0. "mean" averages the roots of clipped squares. For n samples and m points the cost is
    :math:`O(m n)`, the memory :math:`O(n)`.

    References
    ----------
    .. [1] Marx, Zalouk and Ermon (2023). Calibration by Distribution Matching: Trainable Kernel
       Calibration Metrics. NeurIPS. :arxiv:`2310.20211`
    .. [2] Luo, Bhatnagar, Bai, Zhao, Wang, Xiong, Savarese, Ermon, Schmerling and Pavone (2022).
       Local Calibration: Metrics and Recalibration. UAI. :arxiv:`2102.10809`

    Examples
    --------
    Half of the forecasts are too high, half too low:

    >>> from scipy.stats import norm
    >>> from skcalib.metrics import local_calibration_error, quantile_calibration_error
    >>> y, x = norm.ppf([0.125, 0.375, 0.625, 0.875]), [0, 0, 1, 1]
    >>> forecast = ([0.0, 0.0, 0.0, 0.0], 1.0)
    >>> round(quantile_calibration_error(y, forecast, norm="l2"), 3)
    0.072
    >>> round(local_calibration_error(y, forecast, given=x, bandwidth=0.1), 3)
    0.315
    """
    data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight, given=given)
    points = _all_features(query, given, sample_weight) if average is None else query
    return _local_calibration_error(data, points, kernel, bandwidth, estimation, average)


def _average_error(square: np.ndarray, share: np.ndarray, average: str, signed: bool) -> float:
    """Return the mean over the points where the error is known."""
    is_known = ~np.isnan(square)
    if not is_known.any():
        return float("nan")
    square, share = square[is_known], share[is_known] / share[is_known].sum()
    if average == "mean":
        return float(share @ root_of_estimate(square, signed))
    return float(root_of_estimate(share @ square, signed))


def _all_features(query: Any, given: Any, sample_weight: Any) -> Any:
    """Return the query; by default the features of all samples, also of those of weight 0."""
    if query is not None or given is None or sample_weight is None:
        return query
    return check_given(given, num_samples(sample_weight))


def _make_locations(
    data: ForecastData, query: Any, kernel: str | Kernel, bandwidth: float | str
) -> Locations:
    """Return the points and the samples in the units of the kernel."""
    if data.given is None:
        raise ValueError(
            "given must hold the features in which samples are similar; found None. Pass a column "
            "for each feature."
        )
    points = _check_features(data.given, "given")
    raw = points if query is None else _check_features(as_array(query, "query"), "query")
    if raw.shape[1] != points.shape[1]:
        raise ValueError(
            f"query must have the {points.shape[1]} feature(s) of given; found {raw.shape[1]}. "
            "Pass one column for each feature, in the same order."
        )
    bandwidth_of: OptionsOf = {"kernel": {"rbf": ("bandwidth",), "callable": ()}}
    check_options_of(local_calibration_error, bandwidth_of, locals())
    if callable(kernel):
        return Locations(raw, raw, points, partial(_check_kernel_weights, kernel))
    scaled, family = raw, KERNELS[kernel]
    if bandwidth in ("auto", "median"):
        centre, spread = standardization(points, data.weight)
        varies = np.isfinite(spread)
        spread[~varies] = 1.0  # the query may differ in a feature that is constant
        points, scaled = (points - centre) / spread, (raw - centre) / spread
        on_a_line = points[:, 0] if points.shape[1] == 1 else points
        rate = 1 / (varies.sum() + 4) if bandwidth == "auto" else 0.0
        median = median_bandwidth(on_a_line, data.weight, family.metric, family.scale)
        bandwidth = median * data.inverse_effective_size**rate
    values = partial(kernel_values, family=family, bandwidth=float(bandwidth))
    return Locations(raw, scaled, points, values)


def _check_features(values: np.ndarray, name: str) -> np.ndarray:
    """Return finite numbers (m, d); truth values count as 0 and 1."""
    values = values.astype(np.int8) if values.dtype.kind == "b" else values
    values = values[:, None] if values.ndim == 1 else values
    return check_numbers(values, name, ndim=2, rows="one row for each point", most=MAX_NUMBER)


def _check_kernel_weights(kernel: Kernel, query: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the values of a user's kernel; refuse what is no weight."""
    values = np.asarray(kernel(query, points))
    expected = (len(query), len(points))
    if values.shape != expected or values.dtype.kind not in "biuf":
        raise ValueError(
            f"kernel must return the weights of all pairs, of shape {expected} here; found shape "
            f"{values.shape} and type {values.dtype}. Return one row for each point of query."
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(
            "kernel must return finite weights, none of them negative; found "
            f"{values[~(np.isfinite(values) & (values >= 0))][0]}. Choose another kernel."
        )
    return values
