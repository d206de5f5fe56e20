"""Names that other packages have, and what to write for them here."""

import importlib
import sys
from difflib import get_close_matches
from functools import partial
from typing import NoReturn

MODULES = (
    "metrics",
    "recalibration",
    "hypothesis_tests",
    "display",
    "uncertainty",
    "report",
    "forecasts",
    "decisions",
    "losses",
    "streaming",
    "datasets",
    "lenses",
    "function_classes",
)

_TEMPERATURE = "skcalib.recalibration.TemperatureRecalibrator"
_SIGMOID = "skcalib.recalibration.SigmoidRecalibrator"
_BINNING = "skcalib.recalibration.IntervalBinningRecalibrator"
_VENN_ABERS = "skcalib.recalibration.VennAbersRecalibrator"
_ECE = "skcalib.metrics.expected_calibration_error"
_DECOMPOSITION = "skcalib.metrics.score_decomposition"
_CRPS = "skcalib.metrics.continuous_ranked_probability_loss"
_RELIABILITY = "skcalib.display.ReliabilityDisplay"
_CURVE = "skcalib.metrics.reliability_curve"
_DECISIONS = "skcalib.metrics.decision_curve"

# In lower case, without underscores.
WRITE_INSTEAD = {
    "adaptivecalibrationerror": f'{_ECE}, with strategy="quantile"',
    "betacalibration": "skcalib.recalibration.BetaRecalibrator",
    "brierscoredecomposition": _DECOMPOSITION,
    "brierscoreloss": "sklearn.metrics.brier_score_loss",
    "calibratedclassifier": "skcalib.recalibration.RecalibratedClassifier",
    "calibratedclassifiercv": "skcalib.recalibration.RecalibratedClassifier",
    "calibrationcurve": _CURVE,
    "calibrationdisplay": _RELIABILITY,
    "calibrationtest": "skcalib.hypothesis_tests.CalibrationTest",
    "classwisecalibrationerror": f'{_ECE}, with multi_class="classwise"',
    "compare": "skcalib.compare_models",
    "coverage": "skcalib.metrics.quantile_calibration_error",
    "crps": _CRPS,
    "continuousrankedprobabilityscore": _CRPS,
    "decisioncurve": _DECISIONS,
    "decisioncurvedisplay": 'skcalib.display.DecisionDisplay, with kind="net-benefit"',
    "dirichletcalibration": "skcalib.recalibration.DirichletRecalibrator",
    "ece": _ECE,
    "histogrambinning": _BINNING,
    "histogram": _BINNING,
    "ici": "skcalib.metrics.integrated_calibration_index",
    "intervalcoverage": "skcalib.metrics.quantile_calibration_error",
    "isotoniccalibration": "skcalib.recalibration.IsotonicRecalibrator",
    "isotonicregression": "skcalib.recalibration.IsotonicRecalibrator",
    "logistic": _SIGMOID,
    "logloss": "sklearn.metrics.log_loss",
    "makescorer": "skcalib.metrics.make_scorer",
    "maximumcalibrationerror": f'{_ECE}, with norm="max"',
    "mce": f'{_ECE}, with norm="max"',
    "netbenefit": _DECISIONS,
    "normalforecast": "skcalib.forecasts.GaussianForecast",
    "platt": _SIGMOID,
    "plattscaling": _SIGMOID,
    "pithistogram": "skcalib.metrics.pit_histogram",
    "rankhistogram": "skcalib.metrics.pit_histogram",
    "reliabilitycurve": _CURVE,
    "reliabilitydiagram": _RELIABILITY,
    "sigmoidcalibrator": _SIGMOID,
    "skce": "skcalib.metrics.squared_kernel_calibration_error",
    "smece": "skcalib.metrics.smooth_expected_calibration_error",
    "temperaturescaling": _TEMPERATURE,
    "temperature": _TEMPERATURE,
    "vectorscaling": "skcalib.recalibration.VectorScalingRecalibrator",
    "vennabers": _VENN_ABERS,
    "vennaberscalibrator": _VENN_ABERS,
}


def guess_other_names(module: str) -> None:
    """Let a module refuse the names that it has not; type checkers, which know all, see nothing."""
    vars(sys.modules[module])["__getattr__"] = partial(raise_no_attribute, module)


def raise_no_attribute(module: str, name: str) -> NoReturn:
    """Refuse a name, and say what to write.

    Names of other packages raise an ImportError, whose text `from ... import` shows, too. Names of
    ours raise an AttributeError, as tools ask every module whether it has them.
    """
    foreign = WRITE_INSTEAD.get(_key(name))
    if foreign is not None:
        raise ImportError(f"{module} has no {name!r}. Use {foreign}.")
    public = None if name.startswith("_") else find_own_name(name)
    remedy = "" if public is None else f". Use {public}"
    raise AttributeError(f"module {module!r} has no attribute {name!r}{remedy}")


def find_own_name(name: str) -> str | None:
    """The public name of ours that is this one or resembles it; None if there is none."""
    homes = {
        public: home
        for home in MODULES
        for public in importlib.import_module(f"skcalib.{home}").__all__
    }
    by_key = {_key(public): public for public in homes}
    similar = get_close_matches(_key(name), by_key, n=1, cutoff=0.85)
    return f"skcalib.{homes[by_key[similar[0]]]}.{by_key[similar[0]]}" if similar else None


def _key(name: str) -> str:
    return name.lower().replace("_", "")
