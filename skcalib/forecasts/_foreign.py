"""Calls of other packages' distributions, without importing these packages."""

from functools import cached_property
from typing import Any

import numpy as np

from .._inputs.arrays import ArrayLike, check_numbers

# Levels whose quantiles tell whether a discrete distribution is one of whole numbers.
_PROBE_LEVELS = np.linspace(0.05, 0.95, 19)

# Whole numbers that were computed miss one by less than this share.
_INTEGER_RTOL = 1e-9

# Names of each method in other packages, in order of preference.
_METHOD_NAMES = {
    "cdf": ("cdf",),
    "ppf": ("ppf", "icdf", "quantile"),
    "sf": ("sf", "ccdf"),
    "logcdf": ("logcdf", "log_cdf"),
    "logsf": ("logsf", "logccdf", "log_sf"),
    "logpdf": ("logpdf", "log_pdf", "log_prob"),
    "mean": ("mean",),
    "std": ("std", "standard_deviation", "stddev"),
    "entropy": ("entropy",),
}


class DistributionAdapter:
    """A distribution whose methods broadcast against (n_rows,).

    Rows are not taken from its parameters, whose names differ between packages. Values are put
    where their row is, in as many copies of all rows as the most frequent row needs.
    """

    def __init__(self, dist: Any, n_rows: int, rows: np.ndarray | None = None) -> None:
        self.dist = dist
        self.n_all = n_rows
        self.rows = np.arange(n_rows) if rows is None else rows
        self.is_continuous = self._is_continuous()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: np.ndarray) -> "DistributionAdapter":
        return type(self)(self.dist, self.n_all, self.rows[rows])

    def _is_continuous(self) -> bool:
        kinds = {kind.__name__ for kind in type(self.dist).__mro__}
        return bool(getattr(self.dist, "is_continuous", "DiscreteDistribution" not in kinds))

    @cached_property
    def has_whole_numbers(self) -> bool:
        """True if all outcomes are whole numbers, counted from the least one."""
        if self.is_continuous:
            return False
        quantiles = self.call("ppf", np.tile(_PROBE_LEVELS, (len(self), 1)))
        return bool(self.is_possible(quantiles).all())

    def round_down(self, values: np.ndarray) -> np.ndarray:
        """Round values (n, m) down to the next whole number, counted from the least outcome."""
        least = np.broadcast_to(self.support()[0], len(self))[:, None]
        least = np.where(np.isfinite(least), least, 0.0)
        return least + np.floor(values - least)

    def is_possible(self, values: np.ndarray) -> np.ndarray:
        """True where values (n, m) are such whole numbers, up to rounding."""
        nearest = self.round_down(values + 0.5)
        return np.isclose(values, nearest, rtol=_INTEGER_RTOL, atol=_INTEGER_RTOL)

    def _method(self, name: str) -> Any:
        candidates = (getattr(self.dist, alias, None) for alias in _METHOD_NAMES[name])
        return next((method for method in candidates if method is not None), None)

    def has(self, name: str) -> bool:
        """True if the distribution has the method."""
        return self._method(name) is not None

    def call(self, name: str, values: np.ndarray) -> np.ndarray:
        """Call the method for values (n, m) of the rows."""
        n_values = values.shape[1]
        copy = _number_of_repetition(self.rows)
        fill = float(values.flat[0]) if values.size else 0.5  # for entries that are not read
        table = np.full((n_values * (copy.max(initial=0) + 1), self.n_all), fill)
        positions = copy[:, None] * n_values + np.arange(n_values)
        table[positions, self.rows[:, None]] = values
        return self._array(self._method(name)(self._argument(table)))[positions, self.rows[:, None]]

    def moment(self, name: str) -> np.ndarray:
        """Return a property of each row, (n,)."""
        value = self._method(name)
        value = self._array(value() if callable(value) else value)
        return np.broadcast_to(value, self.n_all)[self.rows].copy()

    def support(self) -> tuple[Any, Any]:
        """Return the least and the largest possible outcome of each row, if they are known."""
        support = getattr(self.dist, "support", None)
        if not callable(support):
            return -np.inf, np.inf
        low, high = (np.broadcast_to(bound, self.n_all)[self.rows] for bound in support())
        return low, high

    def _argument(self, values: np.ndarray) -> Any:
        return values

    def _array(self, values: Any) -> np.ndarray:
        return np.asarray(values, dtype=np.float64)


class ScipyFrozen(DistributionAdapter):
    """A frozen distribution of scipy.stats, whose parameters are arrays."""

    def _is_continuous(self) -> bool:
        return not hasattr(self.dist.dist, "pmf")

    @property
    def has_whole_numbers(self) -> bool:
        return not self.is_continuous

    def _method(self, name: str) -> Any:
        if name == "logpdf" and not self.is_continuous:
            return self.dist.logpmf
        return super()._method(name)

    def __getitem__(self, rows: np.ndarray) -> "ScipyFrozen":
        def take(values: ArrayLike) -> np.ndarray:
            values = np.asarray(values)
            return values if values.ndim == 0 else np.broadcast_to(values, self.n_all)[rows]

        kwds = {name: take(value) for name, value in self.dist.kwds.items()}
        args = tuple(take(value) for value in self.dist.args)
        return ScipyFrozen(self.dist.dist(*args, **kwds), len(rows))

    def call(self, name: str, values: np.ndarray) -> np.ndarray:
        return self._array(self._method(name)(values.T)).T


class Skpro(DistributionAdapter):
    """A distribution of skpro, which holds a table of one column and takes such tables."""

    def _is_continuous(self) -> bool:
        return self.dist.get_tag("distr:measuretype", "continuous") == "continuous"

    @cached_property
    def has_whole_numbers(self) -> bool:
        kind = self.dist.get_tag("distr:measuretype", "continuous")
        return kind == "discrete" and super().has_whole_numbers

    def _method(self, name: str) -> Any:
        if name == "logpdf" and not self.is_continuous:
            return self.dist.log_pmf
        if name == "std":
            return lambda: np.sqrt(self._array(self.dist.var()))
        return None if name in ("sf", "entropy") else super()._method(name)

    def __getitem__(self, rows: np.ndarray) -> "Skpro":
        return Skpro(self.dist.iloc[rows, :], len(rows))

    def call(self, name: str, values: np.ndarray) -> np.ndarray:
        method = self._method(name)
        columns = [self._array(method(column[:, None])) for column in values.T]
        return np.column_stack(columns)

    def support(self) -> tuple[Any, Any]:
        return -np.inf, np.inf

    def moment(self, name: str) -> np.ndarray:
        return self._array(self._method(name)()).reshape(-1)

    def _array(self, values: Any) -> np.ndarray:
        values = np.asarray(values, dtype=np.float64)
        return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


class Torch(DistributionAdapter):
    """A distribution of torch, which takes tensors of its own type."""

    def _is_continuous(self) -> bool:
        return not self.dist.support.is_discrete

    def has(self, name: str) -> bool:
        # torch declares methods for all distributions that only some of them define
        if name in ("cdf", "ppf"):
            declared = getattr(type(self.dist), {"ppf": "icdf"}.get(name, name))
            return declared.__qualname__.split(".")[-2] != "Distribution"
        return name in ("logpdf", "mean", "std")

    def _argument(self, values: np.ndarray) -> Any:
        dist = self.dist
        while not dist.arg_constraints:  # those of a transformed distribution lie within
            dist = dist.base_dist
        parameter = next(getattr(dist, name) for name in dist.arg_constraints)
        return parameter.double().new_tensor(values)  # levels near 1 would be 1 in single precision

    def _array(self, values: Any) -> np.ndarray:
        return np.asarray(values.detach().cpu().numpy(), dtype=np.float64)


def _number_of_repetition(rows: np.ndarray) -> np.ndarray:
    """Count for each entry (n,) how often it has occurred before."""
    order = np.argsort(rows, kind="stable")
    ordered, repetition = rows[order], np.empty_like(order)
    repetition[order] = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
    return repetition


def is_scipy_frozen(dist: object) -> bool:
    return all(hasattr(dist, name) for name in ("dist", "args", "kwds"))


def is_torch(dist: object) -> bool:
    return all(hasattr(dist, name) for name in ("log_prob", "batch_shape", "arg_constraints"))


def is_skpro(dist: object) -> bool:
    return all(hasattr(dist, name) for name in ("log_pdf", "iloc", "get_tag"))


def is_distribution(dist: object) -> bool:
    """True if an object has the methods of a distribution."""
    return callable(getattr(dist, "cdf", None)) and not isinstance(dist, type)


def unwrap_ngboost(dist: Any) -> Any:
    """Return the distribution of scipy inside one of NGBoost; others as they are."""
    inner = getattr(dist, "dist", None)
    return inner if inner is not None and is_scipy_frozen(inner) else dist


def wrap(dist: Any) -> DistributionAdapter:
    """Wrap a distribution, so that all can be called alike."""
    dist = unwrap_ngboost(dist)
    if not is_distribution(dist):
        raise TypeError(
            f"dist must have the methods of a distribution, cdf among them; found "
            f"{type(dist).__name__}. Pass a frozen distribution of scipy.stats, or an object with "
            "cdf and ppf."
        )
    if is_scipy_frozen(dist):
        return ScipyFrozen(dist, _rows_of_shape(_shape_of_parameters(dist)))
    if is_torch(dist):
        adapter = Torch(dist, _rows_of_shape(tuple(dist.batch_shape)))
        if not (adapter.has("cdf") and adapter.has("ppf")):
            raise ValueError(
                f"dist must know its cdf and icdf; found {type(dist).__name__} of torch, which "
                "does not. Use GaussianMixtureForecast for a mixture of normals, or draw samples "
                "for an EnsembleForecast."
            )
        return adapter
    if is_skpro(dist):
        shape = tuple(dist.shape)
        return Skpro(dist, _rows_of_shape(shape[:1] if shape[1:] == (1,) else shape))
    method = next(
        (getattr(dist, name) for name in _METHOD_NAMES["ppf"] if hasattr(dist, name)), None
    )
    if method is None:
        raise ValueError(
            f"dist must have the method ppf (or icdf), which gives its quantiles; found "
            f"{type(dist).__name__} without it. Draw samples for an EnsembleForecast."
        )
    return DistributionAdapter(dist, _rows_of_shape(np.shape(method(0.5))))


def _shape_of_parameters(dist: Any) -> tuple[int, ...]:
    return np.broadcast_shapes(*(np.shape(value) for value in (*dist.args, *dist.kwds.values())))


def _rows_of_shape(shape: tuple[int, ...]) -> int:
    if len(shape) != 1 or shape[0] == 0:
        raise ValueError(
            "dist must hold one distribution for each sample, with parameters of shape "
            f"(n_samples,); found shape {shape}. Pass arrays as parameters, "
            "for instance norm(loc=mean, scale=std)."
        )
    return shape[0]


def normal_parameters(dist: Any) -> tuple[Any, Any] | None:
    """Return means and standard deviations (n,) of normal distributions, None for all others."""
    dist = unwrap_ngboost(dist)
    if is_scipy_frozen(dist):
        if getattr(dist.dist, "name", "") != "norm":
            return None
        parameters = dict(zip(("loc", "scale"), dist.args, strict=False)) | dist.kwds
        centre = np.broadcast_to(parameters.get("loc", 0.0), _shape_of_parameters(dist))
        return centre, parameters.get("scale", 1.0)
    if type(dist).__name__ != "Normal":
        return None
    for mean, std in (("loc", "scale"), ("mu", "sigma")):
        if hasattr(dist, mean) and hasattr(dist, std):
            values = tuple(_detach(getattr(dist, name)) for name in (mean, std))
            shape = np.broadcast_shapes(*(value.shape for value in values))
            if is_skpro(dist):
                shape = (dist.shape[0],)
                values = tuple(v[:, 0] if v.ndim == 2 else v for v in values)
            loc, scale = (np.broadcast_to(value, shape) for value in values)
            return loc, scale
    return None


def _detach(values: Any) -> np.ndarray:
    values = values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
    return check_numbers(values, "dist")
