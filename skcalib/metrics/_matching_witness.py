"""The witness of the matching error: where outcomes and forecasts differ most."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._data import check_forecasts
from .._inputs.arrays import ArrayLike, check_numbers
from .._inputs.options import select_arguments
from .._inputs.scikit_learn import validate_params
from .._statistics.matching import MatchingError
from .._statistics.matching_checks import MATCHING_CONSTRAINTS, MatchingOptions, check_matching
from ..forecasts._base import MAX_NUMBER

# Points of the grids if none are passed.
_OUTCOMES, _PLACES = 101, 50

# Kernel values that are held at once.
_MAX_WITNESS_ENTRIES = 2**20

_OWN = ("kernel", "bandwidth", "given_kernel", "given_bandwidth", "loss", "thresholds")


@dataclass(frozen=True)
class MatchingWitness:
    """The witness function of a distribution matching error, on a grid.

    Parameters
    ----------
    y : ndarray of shape (n_points,)
        Outcomes; probability integral transforms for "quantile" and "local", and levels for
        quantile forecasts.

    given : ndarray of shape (n_places, n_features) or (n_places,), or None
        What is conditioned on: features, the parameters of the forecast, groups, or the numbers of
        the actions. None if nothing is.

    value : ndarray of shape (n_places, n_points)
        The function: positive where there are more outcomes than forecast.

    See Also
    --------
    distribution_matching_witness : The function that returns it.

    Examples
    --------
    >>> from skcalib.metrics import distribution_matching_witness
    >>> witness = distribution_matching_witness(
    ...     [2.0, 3.0], ([0.0, 0.5], [1.0, 1.0]), calibration="marginal", y_grid=[0.0, 2.5]
    ... )
    >>> witness.value.round(2)
    array([[-0.61,  0.68]])
    """

    y: np.ndarray
    given: np.ndarray | None
    value: np.ndarray


@validate_params(
    MATCHING_CONSTRAINTS | {"y_grid": ["array-like", None], "given_grid": ["array-like", None]}
)
def distribution_matching_witness(
    y_true: ArrayLike,
    y_forecast: object,
    *,
    sample_weight: ArrayLike | None = None,
    calibration: Literal[
        "distribution", "quantile", "marginal", "decision", "group", "individual", "local"
    ] = "distribution",
    given: ArrayLike | None = None,
    loss: Any = None,
    thresholds: float | ArrayLike | None = None,
    kernel: str | Callable = "rbf",
    bandwidth: float | Literal["median"] = "median",
    given_kernel: str | Callable = "rbf",
    given_bandwidth: float | Literal["median"] = "median",
    y_grid: ArrayLike | None = None,
    given_grid: ArrayLike | None = None,
) -> MatchingWitness:
    r"""Witness of the matching error: it shows where outcomes and forecasts differ most.

    Of all functions of what is given and of the outcome, with norm 1 in the space of the kernels,
    it has (times a constant) the largest gap between its means over outcomes and over draws from
    the forecasts. It is positive where there are more outcomes than forecast, negative where fewer.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Outcomes.

    y_forecast : forecast
        A forecast, as :func:`~skcalib.forecasts.as_forecast` takes it, such as (mean, std).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    calibration : {"distribution", "quantile", "marginal", "decision", "group", "individual", \
            "local"}, default="distribution"
        The form of calibration, as in :func:`distribution_matching_error`.

    given : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        What is conditioned on, as in :func:`distribution_matching_error`.

    loss : float, callable, or list of these, default=None
        The losses of ``calibration="decision"`` and ``kernel="loss"``.

    thresholds : float or array-like of shape (n_thresholds,), default=None
        The outcomes around which ``kernel="tanh"`` rises. For several, the kernel is averaged.

    kernel : {"rbf", "laplacian", "energy", "moments", "thresholds", "tanh", "loss"} or callable, \
            default="rbf"
        Kernel on the outcomes, as in :func:`distribution_matching_error`.

    bandwidth : "median" or float, default="median"
        The ν of `kernel`, as in :func:`distribution_matching_error`.

    given_kernel : {"rbf", "laplacian", "exponential", "total-variation", "wasserstein"} or \
            callable, default="rbf"
        Kernel on what is conditioned on.

    given_bandwidth : "median" or float, default="median"
        The ν of `given_kernel`, as in :func:`distribution_matching_error`.

    y_grid : array-like of shape (n_points,), default=None
        Outcomes (PITs for "quantile" and "local", levels for quantile forecasts) at which the
        function is evaluated. By default 101 points from the least outcome to the largest, or from
        0 to 1.

    given_grid : array-like of shape (n_places, n_features) or (n_places,), default=None
        Where it is evaluated: features, or mean and log standard deviation of a forecast; by
        default those of at most 50 different samples. It must be None for groups, actions, and
        forms without a condition: all are evaluated.

    Returns
    -------
    witness : MatchingWitness
        Arrays `y`, `given` and `value`.

    See Also
    --------
    distribution_matching_error : Its squared norm.
    smooth_calibration_witness : The same for two classes.

    Notes
    -----
    In the notation of :func:`distribution_matching_error`, the value is

    .. math:: f(z, y) = \sum_i w_i \, k(z_i, z) \, [\ell(y_i, y) - E \ell(Y_i, y)]

    (section 2 of [1]_), and the biased error is :math:`\sum_i w_i \, [f(z_i, y_i) - E f(z_i,
    Y_i)]`. The cost for a grid of m outcomes and g places is :math:`O(n m (c + g))` for forecasts
    with c components.

    References
    ----------
    .. [1] Gretton, Borgwardt, Rasch, Schölkopf and Smola (2012). A Kernel Two-Sample Test. JMLR 13.
       https://jmlr.org/papers/v13/gretton12a.html

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import distribution_matching_witness
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=300)
    >>> witness = distribution_matching_witness(
    ...     y, (np.zeros(300), np.full(300, 2.0)), calibration="marginal"
    ... )
    >>> float(abs(witness.y[witness.value[0].argmax()])) < 0.3  # too many outcomes near 0
    True
    """
    data = check_forecasts(y_true, y_forecast, sample_weight=sample_weight, given=given)
    shared = select_arguments(locals(), _OWN)
    options = MatchingOptions(calibration=calibration, estimation="biased", **shared)
    check_matching(data, options)
    error = MatchingError(data, **vars(options))
    grid = _outcomes(error) if y_grid is None else _check_grid(y_grid, "y_grid", 1)
    raw_grid, grid_points = _places(error, given_grid)
    return MatchingWitness(grid, raw_grid, _values(error, grid, grid_points))


def _values(error: MatchingError, grid: np.ndarray, grid_points: np.ndarray) -> np.ndarray:
    """Σ_i w_i k(z_i, z) [ℓ(y_i, t) − e_i(t)] for places z (g, d) and points t (m,), (g, m)."""
    value, target = error.observed, error.features
    if not error.matching_options.has_decision_kernel:
        target = error.pairs_for(value)
        value = target.points(value[None])[0]
    total = np.zeros((len(grid_points), len(grid)))
    size = max(1, _MAX_WITNESS_ENTRIES // max(len(grid_points), len(grid)))
    for start in range(0, len(value), size):
        rows = np.arange(start, min(start + size, len(value)))
        near = error.given.kernel(grid_points, error.given.points[rows]) * error.mass[rows]
        total += near @ target.gaps(value, rows, grid)
    return total


def _outcomes(error: Any) -> Any:
    if error.matching_options.is_of_pits or error.forecast._has_quantiles_only:
        return np.linspace(0.0, 1.0, _OUTCOMES)
    return np.linspace(error.data.value.min(), error.data.value.max(), _OUTCOMES)


def _places(error: Any, given_grid: ArrayLike | None) -> Any:
    """The places as the user sees them, and as the kernel takes them."""
    form, raw = error.matching_options.calibration, error.given.raw
    if raw is None:
        if given_grid is not None:
            raise ValueError(
                f"given_grid must be None for calibration={form!r}, where all groups or actions "
                "are evaluated; found an array. Leave it out."
            )
        codes, first = np.unique(error.given.points, axis=0, return_index=True)
        if form == "group":
            return error.data.given[first], codes
        return (codes.astype(np.intp) if form == "decision" else None), codes
    if given_grid is None:
        distinct = np.unique(raw, axis=0)
        index = np.linspace(0, len(distinct) - 1, min(len(distinct), _PLACES)).round()
        grid_points = distinct[index.astype(np.intp)]
    else:
        grid_points = _check_grid(given_grid, "given_grid", 2, raw.shape[1])
    return grid_points, (grid_points - error.given.centre) / error.given.spread


def _check_grid(values: ArrayLike, name: str, n_dimensions: int, n_columns: int = 1) -> Any:
    """A finite grid of numbers, with this number of columns if it has two dimensions."""
    grid = check_numbers(values, name, most=MAX_NUMBER)
    grid = grid[:, None] if n_dimensions == 2 and grid.ndim == 1 else grid
    if grid.ndim != n_dimensions or len(grid) == 0 or grid.shape[1:] not in ((), (n_columns,)):
        shape = "(n_points,)" if n_dimensions == 1 else f"(n_places, {n_columns})"
        raise ValueError(
            f"{name} must have the shape {shape}; found {grid.shape}. Leave it out to get one "
            "from the data."
        )
    return grid
