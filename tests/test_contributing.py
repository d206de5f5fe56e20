"""What CONTRIBUTING.md shows is run: its snippets compute what the package computes."""

import importlib
import re
import sqlite3
import tomllib
from collections.abc import Callable
from dataclasses import fields
from doctest import DocTestFinder, DocTestRunner
from inspect import signature
from itertools import chain

import numpy as np
import pytest
from matplotlib import pyplot as plt
from pages import read_page
from problems import problem, two_columns
from scipy import stats
from scipy.special import log_expit, logit

from skcalib import metrics
from skcalib._data import ClassData
from skcalib.display import _base
from skcalib.forecasts import DistributionForecast
from skcalib.hypothesis_tests import CalibrationTest, SpiegelhalterTest
from skcalib.metrics import (
    _registry,
    continuous_ranked_probability_loss,
    distribution_matching_error,
    interval_loss,
    local_calibration_error,
    negative_log_likelihood,
    quantile_calibration_error,
    score_decomposition,
)
from skcalib.recalibration import (
    AutoRecalibrator,
    LocationScaleRecalibrator,
    PITRecalibrator,
    _registry as _recalibrators,
    export_sql,
)
from skcalib.report import calibration_report
from skcalib.streaming import CalibrationState
from skcalib.uncertainty import confidence_interval

PAGE = "CONTRIBUTING.md"
TEXT = read_page(PAGE)
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def run_snippet(start, module, **more_names):
    """Run the snippet that begins so with what the module imports, and return its names."""
    (snippet,) = (snippet for snippet in SNIPPETS if re.match(rf"\s*{re.escape(start)}", snippet))
    types = {"ClassData": ClassData, "Callable": Callable}
    # in a module of its own, so that its classes do not count as those of the package
    names = types | vars(importlib.import_module(module)) | {"__name__": PAGE} | more_names
    exec(compile(snippet, PAGE, "exec"), names)
    return names


@pytest.fixture
def first_metric(monkeypatch):
    """The first metric of the page, registered and public for one test."""
    name = "cramer_von_mises_calibration_error"
    for registry in (_registry.ALL_METRICS, _registry.METRICS):
        monkeypatch.setitem(registry, name, None)  # the decorator writes its entry there
    monkeypatch.setattr(_registry, "_ALL_ENTRIES", [*_registry._ALL_ENTRIES])
    names = run_snippet('"""The root mean', "skcalib.metrics._cumulative")
    monkeypatch.setattr(metrics, name, names[name], raising=False)
    return names[name]


def test_the_first_metric_passes_the_tests_that_the_page_shows(first_metric):
    names = run_snippet("import numpy as np\nimport pytest", "skcalib.metrics._cumulative")
    names["test_by_hand"]()
    for seed in range(10):
        names["test_equals_loops"](seed)
    (example,) = DocTestFinder().find(first_metric, "metric", module=False, globs={})
    assert DocTestRunner().run(example) == (0, 2)


def test_the_first_metric_has_what_the_page_says(first_metric):
    label, proba = problem()
    error = first_metric(label, proba)
    assert first_metric(*problem(3)) > 0
    assert confidence_interval(first_metric, label, proba, random_state=0).estimate == error
    state = CalibrationState().update(label, proba)
    assert state.evaluate(first_metric).value == pytest.approx(error, abs=1e-3)
    test = CalibrationTest(first_metric, n_resamples=19, random_state=0).fit(proba, label)
    assert test.statistic_ == error


def test_the_first_metric_shares_all_its_parameters(first_metric):
    assert "copy the texts of these seven from `cumulative_calibration_error`" in TEXT
    parameters = signature(first_metric).parameters
    shared = signature(metrics.cumulative_calibration_error).parameters
    assert parameters == {name: shared[name] for name in parameters}
    assert len(parameters) == 7


def test_every_field_of_the_registry_is_explained():
    made_by_the_decorator = {"function", "compute", "fixed"}
    names = {field.name for field in fields(_registry.Metric)} - made_by_the_decorator
    rows = re.findall(r"(?m)^\| (`.*?) \|", TEXT.partition("## Add a recalibrator")[0])
    assert names <= {name for row in rows for name in re.findall(r"`(\w+)", row)}


def test_test():
    names = run_snippet("class SpiegelhalterTest", "skcalib.hypothesis_tests._classical")
    label, proba = problem(n=80)
    for method in ("conditional", "asymptotic"):
        options = {"method": method, "n_resamples": 49, "random_state": 0}
        test = names["SpiegelhalterTest"](**options).fit(proba, label)
        expected = SpiegelhalterTest(**options).fit(proba, label)
        assert test.statistic_ == pytest.approx(expected.statistic_, rel=1e-12)
        assert test.p_value_ == pytest.approx(expected.p_value_, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_recalibrator(n_classes):
    names = run_snippet("class ShrinkageRecalibrator", "skcalib.recalibration._isotonic")
    label, proba = problem(n_classes)
    matrix = two_columns(proba) if n_classes == 2 else proba
    fitted = names["ShrinkageRecalibrator"]().fit(matrix, label)
    # the least Brier score among mixtures, by trying them
    shares, (share, prevalence) = np.linspace(0, 1, 1001), fitted.maps_[-1]
    mixtures = shares * np.mean(label == n_classes - 1) + (1 - shares) * matrix[:, -1:]
    scores = np.mean((mixtures - (label == n_classes - 1)[:, None]) ** 2, axis=0)
    assert prevalence == pytest.approx(np.mean(label == n_classes - 1))
    assert share == pytest.approx(shares[scores.argmin()], abs=1e-3)
    # what it states is what it does
    expected = fitted.predict_proba(matrix)
    columns = ["a", "b", "c"][:n_classes]
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE scores ({' DOUBLE, '.join(columns)} DOUBLE)")
    marks = ", ".join("?" * n_classes)
    database.executemany(f"INSERT INTO scores VALUES ({marks})", matrix.tolist())
    expressions = ", ".join(export_sql(fitted, columns=columns))
    rows = database.execute(f"SELECT {expressions} FROM scores").fetchall()
    database.close()
    np.testing.assert_allclose(rows, expected, rtol=1e-12)
    entry = re.search(r'"shrinkage": (Entry\(ShrinkageRecalibrator\(\)\))', TEXT)[1]
    assert not eval(entry, vars(_recalibrators) | names).for_two_classes


def test_figure():
    names = run_snippet(
        "@dataclass(eq=False, repr=False)", "skcalib.display._witness", **vars(_base)
    )
    y_true, y_proba = [0, 1, 1, 0], [0.25, 0.5, 0.5, 1.0]
    display = names["CumulativeDisplay"].from_predictions(y_true, y_proba, name="forest")
    np.testing.assert_allclose(display.line_.get_ydata(), [-1 / 16, 3 / 16, -1 / 16])
    assert [text.get_text() for text in display.ax_.get_legend().texts] == ["forest"]
    plt.close(display.figure_)


def test_every_snippet_is_run():
    assert len(SNIPPETS) == 6


def test_sentences_are_short():
    plain = re.sub(r"```.*?```", "\n", TEXT, flags=re.DOTALL)
    parts = re.split(r"\n\s*\n|\n\s*(?:[-#]|\d+\.) |\|", plain)
    sentences = [text for part in parts for text in re.split(r"(?<=[.?!])\W*\s", part)]
    assert [" ".join(text.split()) for text in sentences if len(text.split()) > 40] == []


def make_logistic():
    names = run_snippet(
        "class LogisticForecast", "skcalib.forecasts._gaussian", log_expit=log_expit, logit=logit
    )
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


WORKFLOWS = ("release.yml", "tests.yml")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_commit(name):
    text = read_page(f".github/workflows/{name}")
    actions = [line for line in text.splitlines() if re.search(r"\buses: (?!\./)", line)]
    assert len(actions) >= 4
    pinned = re.compile(r" *- uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in actions if not pinned.fullmatch(line)] == []


def test_the_tag_is_tested_before_it_is_published():
    yaml = pytest.importorskip("yaml")
    release, tests = (yaml.safe_load(read_page(f".github/workflows/{name}")) for name in WORKFLOWS)
    jobs = release["jobs"]
    assert {jobs[name].get("uses") for name in jobs["publish"]["needs"]} == {
        None,
        "./.github/workflows/tests.yml",
    }
    assert "workflow_call" in tests[True]  # YAML 1.1 reads the key `on` as True
    assert any(step.get("run") == "python -m pytest" for step in tests["jobs"]["newest"]["steps"])


def test_each_dependency_has_its_licence_in_the_table():
    project = tomllib.loads(read_page("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    groups = (extras[name] for name in ("arrow", "tables", "onnx", "plot", "jax", "torch", "test"))
    names = {re.match(r"[\w-]+", text)[0] for text in chain(project["dependencies"], *groups)}
    rows = re.findall(r"^\| \S+ \| (\S+) \| (.+) \|$", read_page("RELEASING.md"), re.MULTILINE)
    licences = dict(rows)
    assert names - {"skcalib"} <= set(licences)
    assert not {"not installed", "not stated"} & set(licences.values())
