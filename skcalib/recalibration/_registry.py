"""What recalibrators there are: one entry each, from which candidates and laws derive."""

from dataclasses import dataclass

from ._base import Recalibrator
from ._binning import IntervalBinningRecalibrator
from ._identity import IdentityRecalibrator
from ._isotonic import IsotonicRecalibrator
from ._logistic import BetaRecalibrator, QuadraticRecalibrator, SigmoidRecalibrator
from ._scaling import (
    DirichletRecalibrator,
    MatrixScalingRecalibrator,
    VectorScalingRecalibrator,
)
from ._spline import SplineRecalibrator
from ._temperature import TemperatureRecalibrator
from ._venn_abers import VennAbersRecalibrator


@dataclass(frozen=True)
class Entry:
    """A recalibrator, and for which problems `AutoRecalibrator` tries it."""

    name: str
    recalibrator: Recalibrator
    for_two_classes: bool = False
    for_more_classes: bool = False


# Auto prefers the first of several that gain the same.
RECALIBRATORS = (
    Entry("none", IdentityRecalibrator(), for_two_classes=True, for_more_classes=True),
    Entry("temperature", TemperatureRecalibrator(), for_two_classes=True, for_more_classes=True),
    Entry("sigmoid", SigmoidRecalibrator(), for_two_classes=True, for_more_classes=True),
    Entry("beta", BetaRecalibrator(), for_two_classes=True),
    Entry("quadratic", QuadraticRecalibrator(), for_two_classes=True),
    Entry("spline", SplineRecalibrator(), for_two_classes=True),
    Entry("isotonic", IsotonicRecalibrator(strict=True), for_two_classes=True),
    Entry("matrix scaling", MatrixScalingRecalibrator(), for_more_classes=True),
    Entry("Dirichlet", DirichletRecalibrator(), for_more_classes=True),
    Entry("vector scaling", VectorScalingRecalibrator()),
    Entry("Venn-Abers", VennAbersRecalibrator()),
    Entry("interval binning", IntervalBinningRecalibrator()),
)


def candidates(is_binary):
    """Names and recalibrators that `AutoRecalibrator` tries by default."""
    return {
        entry.name: entry.recalibrator
        for entry in RECALIBRATORS
        if (entry.for_two_classes if is_binary else entry.for_more_classes)
    }
