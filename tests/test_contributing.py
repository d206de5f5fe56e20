"""What CONTRIBUTING.md shows is run: its snippets compute what the package computes."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import skcalib
from skcalib.forecasts import DistributionForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    distribution_matching_error,
    interval_loss,
    local_calibration_error,
    negative_log_likelihood,
    quantile_calibration_error,
    score_decomposition,
)
from skcalib.recalibration import AutoRecalibrator, LocationScaleRecalibrator, PITRecalibrator
from skcalib.report import calibration_report
from skcalib.uncertainty import confidence_interval

PAGE = Path(skcalib.__file__).parent.parent / "CONTRIBUTING.md"
if not PAGE.exists():
    pytest.skip("the page is not installed", allow_module_level=True)

SNIPPETS = [
    re.sub(r"(?m)^ {3}", "", snippet) if snippet.startswith("   ") else snippet
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
]


def run_snippet(start, module):
    """Run the snippet that begins so with what the module imports, and return its names."""
    (snippet,) = (snippet for snippet in SNIPPETS if re.match(rf"\s*{re.escape(start)}", snippet))
    names = dict(vars(importlib.import_module(module)))
    exec(compile(snippet, PAGE.name, "exec"), names)
    return names


def make_logistic():
    names = run_snippet("from scipy.special import log_expit, logit", "skcalib.forecasts._gaussian")
    return names["LogisticForecast"]


def test_forecast():
    rng = np.random.default_rng(0)
    location, scale = rng.normal(size=80), 0.5 + rng.random(80)
    y = stats.logistic(location, 1.3 * scale).rvs(random_state=rng)
    forecast = make_logistic()(location, scale)
    twin = DistributionForecast(stats.logistic(location, scale))
    for measure in (
        lambda f: f.mean(),
        lambda f: f.std(),
        lambda f: f.pit(y),
        lambda f: f.cdf(y),
        lambda f: f.interval(0.9),
        lambda f: f.pit_log_odds(y),
        lambda f: continuous_ranked_probability_loss(y, f, average=None),
        lambda f: negative_log_likelihood(y, f, average=None),
        lambda f: interval_loss(y, f),
        lambda f: quantile_calibration_error(y, f),
        lambda f: distribution_matching_error(y, f),
        lambda f: local_calibration_error(y, f, given=location[:, None]),
        lambda f: score_decomposition(y, f, score="crps").miscalibration,
        lambda f: (
            CalibrationTest("quantile_calibration_error", n_resamples=19, random_state=0)
            .fit(f, y)
            .p_value_
        ),
        lambda f: LocationScaleRecalibrator().fit(f, y).transform(f).ppf(0.8),
        lambda f: PITRecalibrator().fit(f, y).transform(f).ppf(0.8),
        lambda f: confidence_interval(continuous_ranked_probability_loss, y, f, random_state=0).low,
    ):
        np.testing.assert_allclose(measure(forecast), measure(twin), rtol=1e-6, atol=1e-8)
    assert CalibrationTest(n_resamples=19, random_state=0).fit(forecast, y).p_value_ <= 1
    assert len(AutoRecalibrator().fit(forecast, y).transform(forecast)) == 80
    assert "80 forecasts" in str(calibration_report(y, forecast, random_state=0))
