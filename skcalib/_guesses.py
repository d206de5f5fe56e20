"""Names that other packages have, and what to write for them here."""

import importlib
import sys
from difflib import get_close_matches
from dis import opmap
from functools import cache, partial
from typing import Any, NoReturn, cast

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

# Names here, and what other packages call the same: in lower case, without underscores.
_NAMES_ELSEWHERE = {
    "compare_models": ["compare"],
    'display.DecisionDisplay, with kind="net-benefit"': ["decisioncurvedisplay"],
    "display.ReliabilityDisplay": ["calibrationdisplay", "reliabilitydiagram"],
    'display.ReliabilityDisplay, with band="confidence"': ["calibrationbelt"],
    "forecasts.GaussianForecast": ["normalforecast"],
    "hypothesis_tests.CalibrationTest": ["calibrationtest"],
    "metrics.continuous_ranked_probability_loss": ["crps", "continuousrankedprobabilityscore"],
    "metrics.decision_curve": ["decisioncurve", "netbenefit", "dca"],
    "metrics.expected_calibration_error": ["ece"],
    'metrics.expected_calibration_error, with multi_class="classwise"': [
        "classwisecalibrationerror"
    ],
    'metrics.expected_calibration_error, with norm="max"': ["maximumcalibrationerror", "mce"],
    'metrics.expected_calibration_error, with strategy="quantile"': ["adaptivecalibrationerror"],
    "metrics.integrated_calibration_index": ["ici", "eci"],
    "metrics.integrated_calibration_index, with quantile=1": ["emax"],
    "metrics.make_scorer": ["makescorer"],
    "metrics.pit_histogram": ["pithistogram", "rankhistogram"],
    "metrics.observed_expected_ratio": ["oeratio", "eoratio"],
    "metrics.quantile_calibration_error": ["coverage", "intervalcoverage", "picp"],
    "metrics.reliability_curve": ["calibrationcurve", "reliabilitycurve"],
    "metrics.risk_coverage_curve": ["aurc", "eaurc", "riskcoverage"],
    "metrics.score_decomposition": ["brierscoredecomposition"],
    "metrics.score_decomposition, whose skill_score it is": ["brierskillscore"],
    "metrics.smooth_expected_calibration_error": ["smece"],
    "metrics.squared_kernel_calibration_error": ["skce"],
    "recalibration.BetaRecalibrator": ["betacalibration"],
    "recalibration.DirichletRecalibrator": ["dirichletcalibration"],
    "recalibration.IntervalBinningRecalibrator": ["histogrambinning", "histogram"],
    "recalibration.IsotonicRecalibrator": ["isotoniccalibration", "isotonicregression"],
    "recalibration.NonhomogeneousRegressionRecalibrator": ["emos"],
    "recalibration.RecalibratedClassifier": ["calibratedclassifier", "calibratedclassifiercv"],
    "recalibration.SigmoidRecalibrator": ["logistic", "platt", "plattscaling", "sigmoidcalibrator"],
    "recalibration.TemperatureRecalibrator": ["temperaturescaling", "temperature"],
    "recalibration.VectorScalingRecalibrator": ["vectorscaling"],
    "recalibration.VennAbersRecalibrator": ["vennabers", "vennaberscalibrator"],
    'metrics.continuous_ranked_probability_loss, with level_weights="equal" (twice the mean)': [
        *("weightedintervalscore", "wis", "pinballloss", "quantileloss", "quantilescore")
    ],
    "metrics.continuous_ranked_probability_loss, with thresholds=": ["twcrps"],
    "metrics.interval_loss": ["intervalscore", "winklerscore", "winkler"],
    "uncertainty.clinical_calibration": ["valprob"],
    "uncertainty.compare_models, whose result has a skill_score": ["crpss", "skillscore"],
}
WRITE_INSTEAD = {
    "brierscoreloss": "sklearn.metrics.brier_score_loss",
    "logloss": "sklearn.metrics.log_loss",
    **{other: f"skcalib.{name}" for name, others in _NAMES_ELSEWHERE.items() for other in others},
}


def guess_other_names(module: str) -> None:
    """Make a module refuse names that it lacks, with advice; type checkers do not see this."""
    vars(sys.modules[module])["__getattr__"] = partial(raise_no_attribute, module)


def raise_no_attribute(module: str, name: str) -> NoReturn:
    """Refuse a name, and say what to write.

    `from ... import` shows the text of an ImportError alone. Names of other packages always raise
    one; names of ours elsewhere an AttributeError, as tools ask every module whether it has them.
    """
    is_private = name.startswith("_")  # what the import of a module asks it for
    foreign = None if is_private or name in _find_homes() else WRITE_INSTEAD.get(_key(name))
    public = foreign or (None if is_private else find_own_name(name))
    caller = sys._getframe(1)
    if caller.f_code.co_name == "__getattr__":
        caller = cast(Any, caller.f_back)
    is_imported = caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]
    if foreign or (public and is_imported):
        raise ImportError(f"{module} has no {name!r}. Use {public}.")
    remedy = "" if public is None else f". Use {public}"
    raise AttributeError(f"module {module!r} has no attribute {name!r}{remedy}")


@cache
def _find_homes() -> dict[str, str]:
    """The public names of ours, and the modules that have them."""
    modules = {home: importlib.import_module(f"skcalib.{home}") for home in MODULES}
    return {name: home for home, module in modules.items() for name in module.__all__}


def find_own_name(name: str) -> str | None:
    """The public name of ours that is this one or resembles it; None if there is none."""
    homes = _find_homes()
    by_key = {_key(public): public for public in homes}
    similar = (by_key[key] for key in get_close_matches(_key(name), by_key, n=1, cutoff=0.85))
    public = name if name in homes else next(similar, None)
    return public and f"skcalib.{homes[public]}.{public}"


def _key(name: str) -> str:
    return name.lower().replace("_", "")
