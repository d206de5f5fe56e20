"""The list of all recalibrators. A new one adds a line."""

from typing import NamedTuple

from ._base import Recalibrator
from ._binning import IntervalBinningRecalibrator
from ._decision import DecisionRecalibrator
from ._identity import IdentityRecalibrator
from ._isotonic import IsotonicRecalibrator
from ._logistic import BetaRecalibrator, QuadraticRecalibrator, SigmoidRecalibrator
from ._prior_shift import PriorShiftRecalibrator
from ._scaling import (
    DirichletRecalibrator,
    MatrixScalingRecalibrator,
    VectorScalingRecalibrator,
)
from ._scaling_binning import ScalingBinningRecalibrator
from ._spline import SplineRecalibrator
from ._temperature import TemperatureRecalibrator
from ._temperature_ensemble import EnsembleTemperatureRecalibrator
from ._updating import ClosedTestRecalibrator, InterceptRecalibrator
from ._venn_abers import VennAbersRecalibrator


class Entry(NamedTuple):
    """A recalibrator, with the setting in which an `AutoRecalibrator` tries it, if it does."""

    recalibrator: Recalibrator
    for_two_classes: bool = False
    for_more_classes: bool = False
    has_matrix: bool = False  # each class depends on each other one


# Matrices are tried by default if a product with one costs at most this many multiplications: then
# all fits take less than a few minutes.
_MOST_MULTIPLICATIONS = 5 * 10**8

# All but AutoRecalibrator, which chooses among them, in the order in which it lists them.
RECALIBRATORS = {
    "temperature": Entry(TemperatureRecalibrator(), for_two_classes=True, for_more_classes=True),
    "sigmoid": Entry(SigmoidRecalibrator(), for_two_classes=True),
    "beta": Entry(BetaRecalibrator()),
    "quadratic": Entry(QuadraticRecalibrator()),
    "spline": Entry(SplineRecalibrator(), for_two_classes=True),
    "isotonic": Entry(IsotonicRecalibrator(), for_two_classes=True, for_more_classes=True),
    "ensemble temperature": Entry(EnsembleTemperatureRecalibrator()),
    "vector scaling": Entry(VectorScalingRecalibrator(), for_more_classes=True),
    "matrix scaling": Entry(MatrixScalingRecalibrator(), for_more_classes=True, has_matrix=True),
    "Dirichlet": Entry(DirichletRecalibrator(), for_more_classes=True, has_matrix=True),
    "binning": Entry(IntervalBinningRecalibrator()),
    "scaling-binning": Entry(ScalingBinningRecalibrator()),
    "Venn-Abers": Entry(VennAbersRecalibrator()),
    "intercept": Entry(InterceptRecalibrator()),
    "closed test": Entry(ClosedTestRecalibrator()),
    "prior shift": Entry(PriorShiftRecalibrator()),
    "decision": Entry(DecisionRecalibrator()),
    "identity": Entry(IdentityRecalibrator()),
}


def default_candidates(is_binary: bool) -> dict[str, Recalibrator]:
    """The recalibrators that an `AutoRecalibrator` tries by default, by name."""
    return {
        name: entry.recalibrator
        for name, entry in RECALIBRATORS.items()
        if (entry.for_two_classes if is_binary else entry.for_more_classes)
    }


def slow_candidates(n_samples: int, n_classes: int) -> list[str]:
    """Those of them that would take too long."""
    if n_samples * n_classes**2 <= _MOST_MULTIPLICATIONS:
        return []
    candidates = default_candidates(is_binary=n_classes == 2)
    return [name for name in candidates if RECALIBRATORS[name].has_matrix]
