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

# Names here, and what other packages call the same: in lower case, without underscores.
_NAMES_ELSEWHERE = {
    "compare_models": ["compare"],
    'display.DecisionDisplay, with kind="net-benefit"': ["decisioncurvedisplay"],
    "display.ReliabilityDisplay": ["calibrationdisplay", "reliabilitydiagram"],
    "forecasts.GaussianForecast": ["normalforecast"],
    "hypothesis_tests.CalibrationTest": ["calibrationtest"],
    "metrics.continuous_ranked_probability_loss": ["crps", "continuousrankedprobabilityscore"],
    "metrics.decision_curve": ["decisioncurve", "netbenefit"],
    "metrics.expected_calibration_error": ["ece"],
    'metrics.expected_calibration_error, with multi_class="classwise"': [
        "classwisecalibrationerror"
    ],
    'metrics.expected_calibration_error, with norm="max"': ["maximumcalibrationerror", "mce"],
    'metrics.expected_calibration_error, with strategy="quantile"': ["adaptivecalibrationerror"],
    "metrics.integrated_calibration_index": ["ici"],
    "metrics.make_scorer": ["makescorer"],
    "metrics.pit_histogram": ["pithistogram", "rankhistogram"],
    "metrics.quantile_calibration_error": ["coverage", "intervalcoverage"],
    "metrics.reliability_curve": ["calibrationcurve", "reliabilitycurve"],
    "metrics.score_decomposition": ["brierscoredecomposition"],
    "metrics.smooth_expected_calibration_error": ["smece"],
    "metrics.squared_kernel_calibration_error": ["skce"],
    "recalibration.BetaRecalibrator": ["betacalibration"],
    "recalibration.DirichletRecalibrator": ["dirichletcalibration"],
    "recalibration.IntervalBinningRecalibrator": ["histogrambinning", "histogram"],
    "recalibration.IsotonicRecalibrator": ["isotoniccalibration", "isotonicregression"],
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
