"""What CONTRIBUTING.md shows is run: its snippets compute what the package computes."""

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from problems import problem
from scipy import stats

import skcalib
from skcalib._data import ClassData
from skcalib.forecasts import DistributionForecast
from skcalib.hypothesis_tests import CalibrationTest, HosmerLemeshowTest
from skcalib.metrics import (
    _registry,
    continuous_ranked_probability_loss,
    cumulative_calibration_error,
    distribution_matching_error,
    interval_loss,
    local_calibration_error,
    negative_log_likelihood,
    quantile_calibration_error,
    score_decomposition,
)
from skcalib.recalibration import (
    AutoRecalibrator,
    IsotonicRecalibrator,
    LocationScaleRecalibrator,
    PITRecalibrator,
    _registry as _recalibrators,
)
from skcalib.recalibration._registry import RECALIBRATORS
from skcalib.report import calibration_report
from skcalib.uncertainty import confidence_interval

PAGE = Path(skcalib.__file__).parent.parent / "CONTRIBUTING.md"
if not PAGE.exists():
    pytest.skip("the page is not installed", allow_module_level=True)

SNIPPETS = [
    re.sub(r"(?m)^ {3}", "", snippet) if snippet.startswith("   ") else snippet
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
]


def run_snippet(start, module, **more_names):
    """Run the snippet that begins so with what the module imports, and return its names."""
    (snippet,) = (snippet for snippet in SNIPPETS if re.match(rf"\s*{re.escape(start)}", snippet))
    types = {"ClassData": ClassData, "Callable": Callable}
    names = types | vars(importlib.import_module(module)) | more_names
    exec(compile(snippet, PAGE.name, "exec"), names)
    return names


def test_metric(monkeypatch):
    kernel = run_snippet("def _cumulative_error", "skcalib.metrics._cumulative")
    for name in ("ALL_METRICS", "METRICS"):  # the snippet registers its metric, for this test only
        monkeypatch.setattr(_registry, name, dict(getattr(_registry, name)))
    monkeypatch.setattr(_registry, "_ALL_ENTRIES", [*_registry._ALL_ENTRIES])
    computed = {"_cumulative_calibration_error": kernel["_cumulative_calibration_error"]}
    names = run_snippet("@register_metric", "skcalib.metrics._cumulative", **computed)
    for n_classes in (2, 3):
        metric, data = names["cumulative_calibration_error"], problem(n_classes)
        assert metric is not cumulative_calibration_error
        assert metric(*data) == cumulative_calibration_error(*data)
        assert metric(*data, kind="range") == cumulative_calibration_error(*data, kind="range")


def test_test():
    names = run_snippet("class HosmerLemeshowTest", "skcalib.hypothesis_tests._classical")
    label, proba = problem(n=80)
    for method in ("conditional", "asymptotic"):
        options = {"method": method, "n_resamples": 49, "random_state": 0}
        test = names["HosmerLemeshowTest"](alternative="greater", **options).fit(
            proba[3:], label[3:]
        )
        expected = HosmerLemeshowTest(**options).fit(proba[3:], label[3:])
        assert test.p_value_ == pytest.approx(expected.p_value_, rel=1e-12)


def test_recalibrator():
    names = run_snippet("class IsotonicRecalibrator", "skcalib.recalibration._isotonic")
    label, proba = problem()
    for strict in (True, False):
        new = names["IsotonicRecalibrator"](strict=strict).fit(proba, label)
        expected = IsotonicRecalibrator(strict=strict).fit(proba, label)
        np.testing.assert_array_equal(new.transform(proba), expected.transform(proba))
    (entry,) = (snippet for snippet in SNIPPETS if snippet.startswith('"isotonic": Entry('))
    entries = eval(f"{{{entry}}}", vars(_recalibrators))
    assert entries["isotonic"].for_more_classes == RECALIBRATORS["isotonic"].for_more_classes


def test_every_snippet_is_run():
    assert len(SNIPPETS) == 6


def make_logistic():
    names = run_snippet("from scipy.special import log_expit, logit", "skcalib.forecasts._gaussian")
    return names["LogisticForecast"]


def test_forecast():
    rng = np.random.default_rng(0)
    location, scale = rng.normal(size=30), 0.5 + rng.random(30)
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
    assert len(AutoRecalibrator().fit(forecast, y).transform(forecast)) == 30
    assert "30 forecasts" in str(calibration_report(y, forecast, random_state=0))
