"""The omnibus statistic: several statistics, each for another kind of miscalibration."""

from collections.abc import Callable

import numpy as np

from .._inputs.predictions import Predictions
from .._inputs.scikit_learn import validate_parameter_constraints
from .._statistics.base import Statistic
from .._statistics.fourier_error import AnyKernelError, FourierKernelError
from .._statistics.functions import KERNELS
from .._statistics.squared_error import SquaredKernelError
from ._base import TIE
from ._residual_cells import MOST_CELLS, LocalGaps, PooledKernelError
from ._residual_sums import LevelAndSpread, ScoreExcess

# Multiplications of the exact kernel error that take about ten seconds.
_MULTIPLICATIONS = 2e11

# Random frequencies of the kernel error where it would take longer.
_N_COMPONENTS = 32


class Omnibus(Statistic):
    """The values of all components, (R, C)."""

    takes_signs = True

    def __init__(
        self, data: Predictions, *, n_resamples: int = 999, seed: Callable[[], int] = int, **options
    ) -> None:
        check_kernel_options(options)
        components = {
            "skce": _kernel_error(data, n_resamples, seed, options),
            "log_loss": ScoreExcess(data, "log_loss"),
            "level_and_spread": LevelAndSpread(data),
            "local": LocalGaps(data),
        }
        self._set(data, components)

    @classmethod
    def of_components(cls, data: Predictions, components: dict) -> "Omnibus":
        omnibus = cls.__new__(cls)
        omnibus._set(data, components)
        return omnibus

    def _set(self, data, components):
        self.data, self.components = data, components
        self.n_columns = len(components)
        self.takes_counts = components["skce"].takes_counts
        self.adds_up = all(one.adds_up for one in components.values())

    @property
    def kernel_method(self) -> str:
        """How the kernel error is computed: of all pairs, of cells, or by random features."""
        kinds = {PooledKernelError: "pooled", FourierKernelError: "fourier"}
        return kinds.get(type(self.components["skce"]), "exact")

    @property
    def numbers_per_draw(self) -> int:
        return max(one.numbers_per_draw for one in self.components.values())

    def on(self, data: Predictions) -> "Omnibus":
        components = {name: one.on(data) for name, one in self.components.items()}
        return Omnibus.of_components(data, components)

    def __call__(self, labels):
        return np.column_stack([one(labels) for one in self.components.values()])

    def start(self, n_draws):
        return {name: one.start(n_draws) for name, one in self.components.items()}

    def add(self, sums, rows, labels):
        for name, one in self.components.items():
            one.add(sums[name], rows, labels)

    def finish(self, sums):
        values = [one.finish(sums[name]) for name, one in self.components.items()]
        return np.column_stack(values)

    def of_signs(self, signs):
        return np.column_stack([one.of_signs(signs) for one in self.components.values()])

    def p_values(self, values: np.ndarray) -> np.ndarray:
        """Of each component and each of the B + 1 values (B + 1, C)."""
        return self._by_component(p_values, values)

    def evidence(self, values: np.ndarray) -> np.ndarray:
        """What all components say together of each of the B + 1 rows of values, (B + 1,).

        The mean of the reciprocal p-values is about that of the smallest one, but larger if several
        are small. No p-value is below 1/(B + 1), however large the value is: so the reciprocal is
        multiplied by one plus the distance to the next value, in standard deviations.
        """
        reciprocal = (1 + self._by_component(distances, values)) / self.p_values(values)
        return reciprocal.mean(axis=1)

    def _by_component(self, function, values):
        columns = zip(values.T, self.components.values(), strict=True)
        return np.column_stack(
            [
                function(column, is_signed=one.is_signed, resolution=one.resolution)
                for column, one in columns
            ]
        )


def p_values(values, *, is_signed, resolution=0.0):
    """The share of values that are at least as large as each; twice the smaller one of both sides
    for what has a sign.
    """
    slack, ordered = _slack(values, resolution), np.sort(values)
    above = len(values) - np.searchsorted(ordered, values - slack, side="left")
    if not is_signed:
        return above / len(values)
    below = np.searchsorted(ordered, values + slack, side="right")
    return np.minimum(2 * np.minimum(above, below) / len(values), 1.0)


def distances(values, *, is_signed, resolution=0.0):
    """How far the largest value lies above all others, in standard deviations; 0 for the others.

    For what has a sign, also how far the smallest one lies below.
    """
    slack, ordered = _slack(values, resolution), np.sort(values)
    distance = values - ordered[-2]
    if is_signed:
        distance = np.maximum(distance, ordered[1] - values)
    deviation = np.std(values, where=np.isfinite(values))
    return np.where(distance > slack, distance, 0.0) / max(deviation, np.finfo(np.float64).tiny)


def _slack(values, resolution):
    """Values that differ by less are equal but for rounding."""
    return max(TIE * np.abs(values).max(where=np.isfinite(values), initial=0.0), resolution)


def adjusted_p_values(p_values: np.ndarray) -> np.ndarray:
    """P-values (C,) of the first row, adjusted for their number (Westfall and Young 1993).

    Each is the share of rows whose smallest p-value is as small.
    """
    smallest = np.sort(p_values.min(axis=1))
    return np.searchsorted(smallest, p_values[0], side="right") / len(smallest)


def check_kernel_options(options):
    """The options of the omnibus are those of its kernel error, which sums over all pairs."""
    known = ("kernel", "bandwidth", "class_kernel", "estimator")
    unknown = sorted(options.keys() - set(known))
    if unknown:
        raise TypeError(
            f"The options of statistic='omnibus' must be among {', '.join(known)}; found "
            f"{', '.join(unknown)}. Leave them out, or choose the statistic that takes them."
        )
    constraints = {name: SquaredKernelError.parameter_constraints[name] for name in options}
    validate_parameter_constraints(constraints, options, caller_name="CalibrationTest")
    if options.get("estimator") in ("linear", "block"):
        raise ValueError(
            "estimator must be 'unbiased' or 'biased' for statistic='omnibus', whose other "
            f"components do not depend on the order of the samples; found "
            f"{options['estimator']!r}. Use statistic='skce'."
        )


def _kernel_error(data, n_resamples, seed, options):
    """The exact squared kernel error, or what takes its place where that would take long.

    That is the error of pooled predictions for two classes, else that of random features.
    """
    kernel = options.get("kernel", "total-variation")
    is_plain = not options.keys() - {"kernel", "bandwidth"} and not callable(kernel)
    n = len(data.weight)
    if is_plain and data.is_binary and not KERNELS[kernel].is_gaussian:
        if n > MOST_CELLS:
            bandwidth = options.get("bandwidth", "median")
            return PooledKernelError(data, kernel=kernel, bandwidth=bandwidth)
    elif is_plain and n**2 * len(data.classes) * n_resamples > _MULTIPLICATIONS:
        fourier = {"method": "fourier", "n_components": _N_COMPONENTS, "random_state": seed()}
        options = options | fourier
    if n == 1:
        options = options | {"estimator": "biased"}
    return AnyKernelError.from_options(data, **options)
