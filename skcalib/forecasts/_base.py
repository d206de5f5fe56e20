"""The base class of all forecasts, and the checks that several kinds share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, Self

import numpy as np

from .._inputs.arrays import ArrayLike, check_numbers, format_value, is_number
from .._inputs.drawing import draw_seed
from .._inputs.scikit_learn import RandomState
from .._inputs.warnings import check_memory, warn
from .._numerics import crps
from .._numerics.array_api import root_mean_square

# Standard deviations below this share of their root mean square have the logarithm of that share.
_MIN_RELATIVE_SPREAD = 1e-6

# Quantiles that stand for a forecast where its Wasserstein distances have no closed form.
_WASSERSTEIN_NODES = 64

# Nodes of components unless asked for, and levels that tell the location and the spread.
_N_NODES, _PROBE_LEVELS = 64, (0.001, 0.25, 0.5, 0.75, 0.999)

# The most rows whose expectations are integrated at a time.
_MAX_EXPECTED_ROWS = 2**9

# The largest number of a forecast, or of a feature, whose square is finite.
MAX_NUMBER = 1e150

# Maps outcomes (n,) to the loss of each forecast, and to its derivative in the outcome.
ScoreWithSlope = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

# Functions of outcomes (m, q) and the rows (m,) to which they belong, (m, q) or (a, m, q).
RowFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Components(NamedTuple):
    """Forecasts as mixtures of normal distributions.

    Parameters
    ----------
    location : ndarray of shape (n_samples, n_components)
        Means of the components.

    variance : ndarray of shape (n_samples, n_components)
        Variances of the components, 0 for a single value.

    weight : ndarray of shape (n_samples, n_components)
        Weights of the components; rows sum to 1.

    See Also
    --------
    DistributionForecast.components : The method of all forecasts that returns it.

    Examples
    --------
    >>> from skcalib.forecasts import EnsembleForecast
    >>> EnsembleForecast([[1.0, 2.0]]).components().weight
    array([[0.5, 0.5]])
    """

    location: np.ndarray
    variance: np.ndarray
    weight: np.ndarray

    def _mean(self) -> np.ndarray:
        return np.einsum("nc,nc->n", self.weight, self.location)

    def _std(self) -> np.ndarray:
        centred = self.location - self._mean()[:, None]
        return root_mean_square(self.weight, np.hypot(centred, np.sqrt(self.variance)))


class Forecast(ABC):
    """Predictive distributions, one for each sample: what all kinds of forecasts share.

    A forecast behaves like a one-dimensional array of distributions: it has a length and a shape,
    and rows are taken with brackets. So it goes through scikit-learn's cross-validation and
    searches as X.

    Attributes
    ----------
    is_continuous : bool
        Whether every single outcome has probability 0.

    is_exchangeable : bool
        Whether the outcome is compared with the members as with a sample that it belongs to (see
        :class:`EnsembleForecast`).

    See Also
    --------
    as_forecast : Makes forecasts of what models return.

    Examples
    --------
    >>> from skcalib.forecasts import Forecast, GaussianForecast
    >>> forecast = GaussianForecast([0.0, 1.0, 2.0], 1.0)
    >>> isinstance(forecast, Forecast), len(forecast), forecast[[0, 2]].shape
    (True, 3, (2,))
    """

    # Subclasses define `_cdf` or `_logcdf`, `_sf` or `_logsf`, and `_ppf`. They get arrays (n, m):
    # m values for each row.

    # True if each outcome has probability 0. If not, PITs are intervals.
    is_continuous: bool = True

    # True if outcomes are taken to be exchangeable with the members, rather than drawn from them.
    is_exchangeable: bool = False

    # True if only quantiles are known, `values` at `levels`, and so no mean, density or draws.
    _has_quantiles_only: ClassVar[bool] = False
    levels: np.ndarray
    values: np.ndarray

    # What only exchangeable forecasts have: members (n, s), NaN if missing, and their number (s_i).
    members: np.ndarray
    _n_members: Any
    # True if all outcomes are whole numbers, from the least one up.
    _is_of_counts: bool = False

    # Names of the attributes that hold something for each row, which rows are taken from.
    _row_attributes: ClassVar[tuple[str, ...]] = ()

    @property
    def shape(self) -> tuple[int]:
        """``(n_samples,)``: with scikit-learn, forecasts behave like a one-dimensional array."""
        return (len(self),)

    def __len__(self) -> int:
        return len(getattr(self, self._row_attributes[0]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_samples={len(self)})"

    def __getitem__(self, rows: ArrayLike | slice) -> Self:
        return self._take(check_rows(rows, len(self)))

    # Without these, Python and NumPy would go through the rows by number, and find none.

    def __iter__(self) -> NoReturn:
        raise TypeError(
            f"A {type(self).__name__} is no sequence of numbers, and cannot be iterated over. Take "
            "rows of it with forecast[[0, 1]], or ask it for its mean() or quantiles(levels)."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"A {type(self).__name__} holds distributions, and is no array of numbers. Ask it for "
            "its mean(), quantiles(levels) or sample(size)."
        )

    def _take(self, rows: np.ndarray) -> Self:
        columns = {
            name: take_attribute_rows(getattr(self, name), rows) for name in self._row_attributes
        }
        return self._with_state(self._state() | columns)

    def _state(self) -> dict[str, Any]:
        """Return all attributes but those that can be computed again."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_cached")}

    @property
    def _holds_arrays(self) -> bool:
        """True if all attributes with one entry per row are arrays."""
        rows = [getattr(self, name) for name in self._row_attributes]
        return bool(rows) and all(isinstance(values, np.ndarray) for values in rows)

    def _with_state(self, state: dict[str, Any]) -> Self:
        """Return a forecast of the same kind with these attributes, which are not checked again."""
        forecast = object.__new__(type(self))
        forecast.__dict__.update(state)
        return forecast

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """The probability of at most y.

        Parameters
        ----------
        y : float, or array-like of shape (n_samples,) or (n_samples, m)
            One value for all rows, one for each row, or m for each row.

        Returns
        -------
        probability : ndarray of shape (n_samples,) or (n_samples, m)
            Values in [0, 1].
        """
        return self._evaluate(self._cdf, y)

    def logcdf(self, y: ArrayLike) -> np.ndarray:
        """The logarithm of the probability of at most y, accurate where that underflows.

        Parameters
        ----------
        y : float, or array-like of shape (n_samples,) or (n_samples, m)
            One value for all rows, one for each row, or m for each row.

        Returns
        -------
        log_probability : ndarray of shape (n_samples,) or (n_samples, m)
            Values of at most 0.
        """
        return self._evaluate(self._logcdf, y)

    def logsf(self, y: ArrayLike) -> np.ndarray:
        """The logarithm of the probability of more than y, accurate where that underflows.

        Parameters
        ----------
        y : float, or array-like of shape (n_samples,) or (n_samples, m)
            One value for all rows, one for each row, or m for each row.

        Returns
        -------
        log_probability : ndarray of shape (n_samples,) or (n_samples, m)
            Values of at most 0.
        """
        return self._evaluate(self._logsf, y)

    def logpdf(self, y: ArrayLike) -> np.ndarray:
        """The logarithm of the density at y (of the probability, for discrete forecasts).

        Parameters
        ----------
        y : float, or array-like of shape (n_samples,) or (n_samples, m)
            One value for all rows, one for each row, or m for each row.

        Returns
        -------
        log_density : ndarray of shape (n_samples,) or (n_samples, m)
            Negative infinity where the density is 0.
        """
        return self._evaluate(self._logpdf, y)

    def ppf(self, level: ArrayLike) -> np.ndarray:
        """Quantiles: the least y whose cdf is at least the level.

        Parameters
        ----------
        level : float, or array-like of shape (n_samples,) or (n_samples, m)
            Probabilities in [0, 1]: one for all rows, one for each row, or m for each row.
            :meth:`quantiles` takes the same levels for all rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, m)
            Quantiles, in the units of the outcome.
        """
        return self._evaluate(self._ppf, check_levels(level, "level"), "level")

    def quantiles(self, levels: ArrayLike) -> np.ndarray:
        """Quantiles at the same levels for all rows.

        Parameters
        ----------
        levels : array-like of shape (m,)
            Probabilities in [0, 1].

        Returns
        -------
        y : ndarray of shape (n_samples, m)
            Quantiles, in the units of the outcome.
        """
        levels = check_common_levels(levels)
        return self._ppf(np.broadcast_to(levels, (len(self), len(levels))))

    def interval(self, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        """Central prediction intervals.

        Parameters
        ----------
        coverage : float in (0, 1)
            Probability of the interval. Half of the rest lies on either side.

        Returns
        -------
        low, high : ndarray of shape (n_samples,)
            Ends of the intervals, in the units of the outcome.
        """
        check_coverage(coverage)
        low, high = self.quantiles([(1 - coverage) / 2, (1 + coverage) / 2]).T
        return low, high

    def mean(self) -> np.ndarray:
        """Means, in the units of the outcome.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            One for each row.
        """
        if self._has_quantiles_only:
            self._raise_unknown("mean", "has quantiles only, and no tails", "Use ppf(0.5).")
        atoms, centre = self._atoms(), self._centre_and_unit()[0]
        if atoms is not None:
            return atoms._mean()
        return centre + self._expect(lambda y, row: y - centre[row, None])[:, 0]

    def std(self) -> np.ndarray:
        """Standard deviations, in the units of the outcome.

        Returns
        -------
        std : ndarray of shape (n_samples,)
            One for each row.
        """
        if self._has_quantiles_only:
            self._raise_unknown("std", "has quantiles only, and no tails", "Use interval.")
        atoms = self._atoms()
        if atoms is not None:
            return atoms._std()
        mean, unit = self.mean(), self._centre_and_unit()[1]
        square = self._expect(lambda y, row: ((y - mean[row, None]) / unit[row, None]) ** 2)
        return unit * np.sqrt(square[:, 0])

    def entropy(self) -> np.ndarray:
        """Differential entropy: minus the mean of the log density, in nats.

        Returns
        -------
        entropy : ndarray of shape (n_samples,)
            One for each row; smaller is sharper.
        """
        self._raise_unknown("entropy", "has no closed form of it", "Use interval.")

    def sample(self, size: int | None = None, random_state: RandomState = None) -> np.ndarray:
        """Independent draws from the forecasts.

        Parameters
        ----------
        size : int, default=None
            Number of draws for each row; None stands for one.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, size)
            Draws; one-dimensional if `size` is None.
        """
        seed = draw_seed(random_state)
        if size is not None:
            check_count(size, "size")
            check_memory(24.0 * min(size, 10**30) * len(self), f"size={size}", "Draw less at once.")
        draws = self._sample(np.random.default_rng(seed), 1 if size is None else size)
        return draws[:, 0] if size is None else draws

    def pit(self, y: ArrayLike, random_state: RandomState = None) -> np.ndarray:
        """The probability integral transform: where the outcomes lie in their forecasts.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Outcomes.

        random_state : int, RandomState instance or None, default=None
            Seed for outcomes of positive probability, whose transform is drawn uniformly from the
            interval of :meth:`pit_bounds`.

        Returns
        -------
        u : ndarray of shape (n_samples,)
            Values in [0, 1]; uniform if the forecasts are calibrated.
        """
        lower, upper = self.pit_bounds(y)
        if self.is_continuous:
            return upper
        # the same seed may have drawn the outcomes, so another stream is used here
        seed = draw_seed(random_state)
        uniform = np.random.default_rng(seed).random(len(self))
        return lower + uniform * (upper - lower)

    def pit_bounds(self, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """The probabilities of less than y and of at most y.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Outcomes.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,)
            Ends of the interval in which the transform of each outcome lies; equal where the
            outcome has probability 0.
        """
        return self._pit_bounds(self._outcomes(y))

    def pit_log_odds(self, y: ArrayLike) -> np.ndarray:
        """Log odds of the transform of the outcome, which do not saturate: logcdf − logsf.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Outcomes.

        Returns
        -------
        log_odds : ndarray of shape (n_samples,)
            In (−∞, ∞).
        """
        if not self.is_continuous:
            why = "has outcomes of positive probability"
            self._raise_unknown("pit_log_odds", why, "Use pit_bounds.")
        return self._log_odds(self._outcomes(y)[:, None])[:, 0]

    def sf(self, threshold: ArrayLike) -> np.ndarray:
        """The probability that the outcome exceeds a threshold.

        It makes every measure of two classes one of forecasts:
        ``smooth_calibration_error(y > t, forecast.sf(t))``.

        Parameters
        ----------
        threshold : float or array-like of shape (n_samples,)
            Threshold in the units of the outcome.

        Returns
        -------
        proba : ndarray of shape (n_samples,)
            Probabilities in [0, 1].
        """
        return self._evaluate(self._sf, threshold, "threshold")

    def crps(self, y: ArrayLike, estimation: Literal["ecdf", "fair"] = "ecdf") -> np.ndarray:
        """Continuous ranked probability score of each forecast.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Outcomes.

        estimation : {"ecdf", "fair"}, default="ecdf"
            For ensembles: the score of the members' empirical distribution, or an unbiased estimate
            of the score of the distribution that they were drawn from.

        Returns
        -------
        score : ndarray of shape (n_samples,)
            Scores in the units of the outcome; 0 is best.
        """
        if estimation not in ("ecdf", "fair"):
            raise ValueError(
                f"estimation must be 'ecdf' or 'fair'; found {estimation!r}. Leave it out for the "
                "score of the forecast as it is."
            )
        y = check_numbers(self._outcomes(y), "y", most=MAX_NUMBER)
        return self._crps(y) if estimation == "ecdf" else self._fair_crps(y)

    def components(self, n_nodes: int | None = None) -> Components:
        """The forecasts as mixtures of normals, which may have the variance 0.

        Parameters
        ----------
        n_nodes : int, default=None
            Number of quadrature nodes, for distributions that are not such a mixture. By default 64
            of smooth quantile functions, and as many as it takes near jumps and kinks of others,
            with a warning if these are too many.

        Returns
        -------
        components : Components
            Arrays `location`, `variance` and `weight` of shape (n_samples, n_components).
        """
        atoms = self._atoms()
        if atoms is not None:
            return atoms
        n = len(self)
        check_count(_N_NODES if n_nodes is None else n_nodes, "n_nodes")
        level, weight = (np.tile(a, (n, 1)) for a in crps.quantile_nodes(n_nodes or _N_NODES))
        if n_nodes is None:
            is_rough = self._is_of_counts  # with jumps, more than can be summed
            if not is_rough:
                pieces, is_rough = self._find_pieces()
            self._warn_of(np.full(n, is_rough), "components")
            if not is_rough:
                level, weight = crps.nodes_of_pieces(pieces, n)
        # not `quantiles`, which may be those of ranks, and infinite
        location = self._ppf(level)
        return Components(location, np.zeros_like(location), weight)

    def _find_pieces(self) -> tuple[np.ndarray, bool]:
        """Return pieces of levels, and True if quantile functions are not smooth within some."""
        centre, unit = (values[:, None] for values in self._centre_and_unit())

        def bounded(level: np.ndarray, row: np.ndarray) -> np.ndarray:
            z = (self._ppf_at(level, row) - centre[row]) / unit[row]
            return 2 + z / np.hypot(1, z)

        _, is_rough, pieces = crps.integrate_levels(bounded, self._kink_levels())
        return pieces, bool(is_rough.any())

    def _centre_and_unit(self) -> tuple[np.ndarray, np.ndarray]:
        """Return medians and positive numbers of the size of the spread, (n,) each."""
        low, *quartiles, high = self._ppf(np.tile(_PROBE_LEVELS, (len(self), 1))).T
        unit = quartiles[2] - quartiles[0] + (high - low) / 1000
        return quartiles[1], np.where(unit > 0, unit, 1.0)

    def _kink_levels(self) -> np.ndarray:
        """Return levels (n, k) at which quantile functions have kinks."""
        return np.full((len(self), 1), 0.5)  # those of two halves have one, as that of a Laplace

    def _expect(self, function: RowFunction, kinks: np.ndarray | None = None) -> np.ndarray:
        """Return E f(Y_i), (n, a).

        The functions may have kinks or jumps at the outcomes (n, k).
        """
        values, is_rough = [], np.zeros(len(self), dtype=bool)
        for rows, forecast, atoms in self._iter_blocks():
            if atoms is not None:
                value = function(atoms.location, rows).reshape(-1, *atoms.location.shape)
                values.append(np.einsum("anc,nc->na", value, atoms.weight))
                continue
            outcomes = np.empty((len(rows), 0)) if kinks is None else kinks[rows]
            value, is_rough[rows], _ = crps.integrate_levels(
                lambda level, row, f=forecast, r=rows: function(f._ppf_at(level, row), r[row]),  # type: ignore[misc]
                np.column_stack([forecast._kink_levels(), forecast._cdf(outcomes)]),
            )
            values.append(value.T)
        self._warn_of(is_rough, "expectations")
        return np.concatenate(values)

    def _iter_blocks(self) -> Iterator[tuple[np.ndarray, Self, Components | None]]:
        """Yield few rows, their forecasts, and their members or all their likely counts."""
        n = len(self)
        atoms = self._atoms() if n <= _MAX_EXPECTED_ROWS else None
        if n == 1 or atoms is not None or (n <= _MAX_EXPECTED_ROWS and not self._is_of_counts):
            yield np.arange(n), self, atoms
            return
        for half in np.array_split(np.arange(n), 2):
            for rows, forecast, atoms in self[half]._iter_blocks():
                yield half[rows], forecast, atoms

    def _parameters(self) -> np.ndarray:
        """Return the mean and the log deviation, on which calibration conditions, (n, 2)."""
        mean, std = self.mean(), self.std()
        if not (np.isfinite(mean).all() and np.isfinite(std).all()):
            why = "has no finite mean and standard deviation"
            self._raise_unknown("parameters", why, "Pass given=[...].")
        min_std = _MIN_RELATIVE_SPREAD * root_mean_square(1 / len(std), std) or 1.0
        return np.column_stack([mean, np.log(np.maximum(std, min_std))])

    def _match_scale(self, y: np.ndarray) -> np.ndarray:
        """Put outcomes (n,) on the scale of `components`; only quantile forecasts change them."""
        return y

    def _simulate(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Draw independent outcomes from the forecasts, (size, n)."""
        return np.ascontiguousarray(self._sample(generator, size).T)

    def _simulate_at(self, level: np.ndarray) -> np.ndarray:
        """Draw outcomes by uniform numbers, (size, n) each; they rise with the numbers."""
        return np.ascontiguousarray(self._ppf(level.T).T)

    def _to_simulated(self, y: np.ndarray) -> np.ndarray:
        """Return the draws (n,) that outcomes count as; only quantile forecasts change them."""
        return y

    def _wasserstein_points(self) -> np.ndarray:
        """Return points (n, d) whose Euclidean distances are Wasserstein distances of order 2."""
        node, share = crps.gauss_legendre(_WASSERSTEIN_NODES)
        # not `quantiles`, which may be those of ranks, and infinite
        return self._ppf(np.broadcast_to(node, (len(self), len(node)))) * np.sqrt(share)

    def _support(self) -> tuple[Any, Any]:
        """Return the least and the largest possible outcome of each row, if they are known."""
        return -np.inf, np.inf

    def _check_outcomes(self, y: np.ndarray, name: str, *, may_be_impossible: bool) -> None:
        """Refuse outcomes (n,) beyond the support of the forecasts, and counts that are none."""
        if may_be_impossible:
            return
        low, high = self._support()
        is_outside = (y < low) | (y > high)
        if is_outside.any():
            row = int(np.argmax(is_outside))
            low, high = np.broadcast_to(low, y.shape)[row], np.broadcast_to(high, y.shape)[row]
            raise ValueError(
                f"{name} must lie in the support of its forecast; found {y[row]:.6g} in row {row}, "
                f"whose forecast reaches from {low:.6g} to {high:.6g}. Use a forecast that "
                "holds such outcomes to be possible."
            )

    def _sort_keys(self) -> list[np.ndarray]:
        """Return columns (n,) that tell the forecasts apart, to sort rows by."""
        if self._holds_arrays:
            return list(np.column_stack([getattr(self, name) for name in self._row_attributes]).T)
        quantiles = self.quantiles([0.1, 0.5, 0.9])
        if self.is_continuous:
            return list(quantiles.T)
        # discrete forecasts that differ may share quantiles
        return [*quantiles.T, self.cdf(np.median(quantiles))]

    def _evaluate(
        self, method: Callable[[np.ndarray], np.ndarray], values: ArrayLike, name: str = "y"
    ) -> np.ndarray:
        array = check_numbers(values, name, finite=False)
        if np.isnan(array).any():
            raise ValueError(f"{name} must not be NaN; found NaN. Remove the samples.")
        if array.ndim > 2 or (array.ndim > 0 and len(array) != len(self)):
            raise ValueError(
                f"{name} must be a number, or have one row for each of the {len(self)} forecasts; "
                f"found shape {array.shape}. Pass (n_samples,), one value for each forecast, or "
                "(n_samples, m)."
            )
        if array.ndim == 2:
            return method(array)
        return method(np.broadcast_to(array, (len(self),))[:, None])[:, 0]

    def _outcomes(self, y: ArrayLike) -> np.ndarray:
        return check_outcomes(y, len(self), "y")

    def _raise_unknown(self, attribute: str, why: str, remedy: str) -> NoReturn:
        name = type(self).__name__
        raise ValueError(f"{attribute} is not known for this forecast: {name} {why}. {remedy}")

    @abstractmethod
    def _ppf(self, level: np.ndarray) -> np.ndarray:
        """Return quantiles (n, m) at levels (n, m)."""

    def _atoms(self) -> Components | None:
        """Return members, or all likely counts in increasing order if they are few; else None."""
        return None

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return np.exp(self._logcdf(y))

    def _sf(self, y: np.ndarray) -> np.ndarray:
        return np.exp(self._logsf(y))

    def _logcdf(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self._cdf(y))

    def _logsf(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self._sf(y))

    def _log_odds(self, y: np.ndarray) -> np.ndarray:
        return self._logcdf(y) - self._logsf(y)

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        self._raise_unknown("logpdf", "has no density", "Use a proper score such as crps.")

    def _sample(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return self._ppf(generator.random((len(self), size)))

    def _pit_bounds(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        upper = self._cdf(y[:, None])[:, 0]
        return upper, upper

    def _crps(self, y: np.ndarray) -> np.ndarray:
        atoms = self._atoms()
        if atoms is not None:
            return crps.crps_ensemble(y, atoms.location, atoms.weight)
        # quantile functions made of two halves, as that of a Laplace, have a kink at the median
        levels = np.column_stack([self._cdf(y[:, None]), np.full(len(y), 0.5)])
        return self._crps_by_quantiles(y, levels, -np.inf, np.inf)

    def _crps_by_quantiles(
        self, y: np.ndarray, levels: np.ndarray, low: float | np.ndarray, high: float | np.ndarray
    ) -> np.ndarray:
        if not self._is_of_counts:
            score, is_rough = crps.crps_ppf_between(y, self._ppf_at, levels, low, high)
            self._warn_of(is_rough, "CRPS")
            return score
        scores = []
        for rows, _, atoms in self._iter_blocks():
            if atoms is None:
                raise ValueError(
                    "forecasts of counts must have at most 2²² likely ones in each row for their "
                    f"CRPS; found more in row {rows[0]}. Pass a continuous distribution near it, "
                    "or an EnsembleForecast of its quantiles."
                )
            first, last = (np.broadcast_to(end, len(y))[rows] for end in (low, high))
            members = np.clip(atoms.location, first[:, None], last[:, None])
            scores.append(crps.crps_ensemble(np.clip(y[rows], first, last), members, atoms.weight))
        return np.concatenate(scores)

    def _ppf_at(self, level: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Return quantiles (m, q) at levels (m, q) of rows (m,)."""
        n = len(self)
        if np.array_equal(row, np.repeat(np.arange(n), len(row) // n)):  # so that errors name rows
            return self._ppf(level.reshape(n, -1)).reshape(level.shape)
        return self[row]._ppf(level)

    def _warn_of(self, is_rough: np.ndarray, what: str) -> None:
        if is_rough.any():
            warn(
                f"The {what} of {is_rough.sum()} forecasts, the first in row "
                f"{np.argmax(is_rough)}, "
                "may not be exact to six digits, as their quantile functions have too many jumps "
                "or kinks, or too heavy tails. Pass an EnsembleForecast of their quantiles."
            )

    def _make_crps_with_slope(self) -> ScoreWithSlope:
        """Return the CRPS as a function of outcomes (n,), with its derivatives 2F(y) − 1."""
        return lambda y: (self.crps(y), 2 * self.cdf(y) - 1)

    def _fair_crps(self, y: np.ndarray) -> np.ndarray:
        self._raise_unknown("estimation='fair'", "has no members", "Use estimation='ecdf'.")


def take_attribute_rows(values: Any, rows: np.ndarray) -> Any:
    """Return some rows of an array or a forecast; an array of equal rows takes no memory again."""
    if isinstance(values, np.ndarray) and values.strides[0] == 0 and len(values):
        return np.broadcast_to(values[0], (len(rows), *values.shape[1:]))
    return values[rows]


def check_rows(rows: ArrayLike | slice, n: int) -> np.ndarray:
    """Return indices of rows from the value in brackets; `[rows, ...]` is the same as `[rows]`."""
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    array = np.asarray(rows)
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.intp)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise IndexError(
            "Forecasts must be indexed by a slice, a list of row numbers or a mask of shape "
            f"({n},); found {format_value(rows)}. Pass forecast[[i]] for a single row."
        )
    if array.dtype.kind == "b":
        if len(array) != n:
            raise IndexError(
                f"A mask must have one value for each of the {n} forecasts; found {len(array)}. "
                "Build it from the same rows."
            )
        return np.flatnonzero(array)
    if array.size and not (-n <= array.min() and array.max() < n):
        row = array[(array < -n) | (array >= n)][0]
        raise IndexError(
            f"Row numbers must lie between 0 and {n - 1}, as there are {n} forecasts; found {row}. "
            "Make the forecasts and the outcomes of the same rows."
        )
    return array


def check_outcomes(y: ArrayLike, n: int, name: str) -> np.ndarray:
    """Return the outcomes of n forecasts as doubles (n,)."""
    rows = f"one outcome for each of the {n} forecasts"
    return check_numbers(y, name, ndim=1, length=n, rows=rows)


def check_common_levels(levels: ArrayLike) -> np.ndarray:
    """Return probabilities in [0, 1] that are the same for all rows, (m,)."""
    array = check_levels(levels, "levels")
    if array.ndim != 1:
        raise ValueError(
            f"levels must be 1-D, the same for all rows; found shape {array.shape}. Use ppf for "
            "levels that differ between rows."
        )
    return array


def check_levels(levels: ArrayLike, name: str) -> np.ndarray:
    """Return levels as doubles; refuse those outside of [0, 1]."""
    array = check_numbers(levels, name, finite=False)
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError(
            f"{name} must lie in [0, 1]; found {array[~((array >= 0) & (array <= 1))][0]}. Pass "
            "0.05 for 5 %."
        )
    return array


def check_coverage(coverage: Any, name: str = "coverage") -> None:
    """Refuse a probability of an interval that is not in (0, 1)."""
    if not is_number(coverage) or not 0 < coverage < 1:
        raise ValueError(
            f"{name} must be a number in (0, 1), the probability of the interval; found "
            f"{format_value(coverage)}. Pass 0.9 for 90 %."
        )


def check_count(count: object, name: str) -> None:
    """Refuse a number of draws or nodes that is not a positive integer."""
    if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
        raise ValueError(
            f"{name} must be a whole number of at least 1; found {count!r}. Leave it out for the "
            "default."
        )
