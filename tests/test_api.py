"""The public names are those of ``__all__``, with numpydoc docstrings and promised signatures."""

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pkgutil import resolve_name as load

import numpy as np
import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate
from pages import read_page

import skcalib
from skcalib import hypothesis_tests, metrics
from skcalib._guesses import WRITE_INSTEAD
from skcalib.metrics._registry import ALL_METRICS, METRICS

MODULES = [
    "skcalib.metrics",
    "skcalib.hypothesis_tests",
    "skcalib.recalibration",
    "skcalib.display",
    "skcalib.report",
    "skcalib.datasets",
    "skcalib.decisions",
    "skcalib.forecasts",
    "skcalib.function_classes",
    "skcalib.lenses",
    "skcalib.losses",
    "skcalib.streaming",
    "skcalib.uncertainty",
]
if find_spec("torch"):
    MODULES.append("skcalib.torch")


def public_members(name):
    """What a module defines without an underscore, by its names."""
    elsewhere = {"skcalib.decisions": "skcalib.forecasts", "skcalib.torch": "skcalib.losses"}
    home = elsewhere.get(name, name)  # an alias of some names
    return {
        key: value
        for key, value in vars(importlib.import_module(name)).items()
        if not key.startswith("_")
        and not inspect.ismodule(value)
        and getattr(value, "__module__", "").startswith(home)
    }


PUBLIC = [f"{module}.{name}" for module in MODULES for name in sorted(public_members(module))]

# Conventions of numpydoc that scikit-learn does not follow either
IGNORED = {
    "ES01",  # no extended summary
    "GL01",  # summary starts on the first line
    "SA01",  # no "See Also" section
    "EX01",  # no examples (methods)
    "RT02",  # named return values
    "SS05",  # takes plural nouns for verbs
}


@pytest.mark.parametrize("name", MODULES)
def test_all_is_what_is_public_but_for_what_functions_return(name):
    names = importlib.import_module(name).__all__
    assert list(names) == sorted(names)
    members = public_members(name)
    assert set(names) <= set(members)
    for result in set(members) - set(names):
        assert inspect.isclass(members[result])
        makers = [own for own in names if re.search(rf"\b{result}\b", docs_of(f"{name}.{own}"))]
        assert makers, result
        assert any(own in inspect.getdoc(members[result]) for own in makers), result


# More names are harder to find. Whoever meets this number asks in the pull request: which name
# goes, or why is the new one worth it? It is raised there, if so.
MAX_PUBLIC_NAMES = 161


def test_public_names_are_few():
    modules = [importlib.import_module(name) for name in MODULES if name != "skcalib.torch"]
    assert sum(len(module.__all__) for module in modules) <= MAX_PUBLIC_NAMES


def docs_of(name):
    return "".join(inspect.getdoc(load(own)) for own in documented(name))


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", skcalib.__version__)


def test_the_names_used_daily_are_at_the_top():
    assert set(skcalib.__all__) == {*skcalib._USED_DAILY, "show_versions"}
    assert list(skcalib.__all__) == sorted(skcalib.__all__)
    for name in skcalib.__all__:
        assert callable(getattr(skcalib, name))
    readme = read_page("README.md")
    for names in re.findall(r"from skcalib import (.*)", readme):
        assert set(names.split(", ")) <= set(skcalib.__all__)
    assert set(dir(skcalib)) == {*skcalib.__all__, *skcalib._SUBMODULES, "__version__"}


@pytest.mark.parametrize("name", sorted(WRITE_INSTEAD.values()))
def test_what_guesses_are_answered_with_exists(name):
    module, _, attribute = name.partition(",")[0].rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize(
    ("guess", "answer"),
    [
        ("skcalib.TemperatureScaling", r"Use skcalib\.recalibration\.TemperatureRecalibrator\."),
        ("skcalib.metrics.ece", r"Use skcalib\.metrics\.expected_calibration_error\."),
        ("skcalib.metrics.log_loss", r"Use sklearn\.metrics\.log_loss\."),
        ("skcalib.metrics.weighted_interval_score", r'with level_weights="equal" \(twice'),
        ("skcalib.metrics.winkler_score", r"Use skcalib\.metrics\.interval_loss\."),
        ("skcalib.display.DecisionCurveDisplay", r'DecisionDisplay, with kind="net-benefit"\.'),
    ],
)
def test_names_of_other_packages_are_answered_with_ours(guess, answer):
    module, _, name = guess.rpartition(".")
    with pytest.raises(ImportError, match=answer):
        exec(f"from {module} import {name}")


HOMES = {name: importlib.import_module(f"skcalib.{name}") for name in skcalib._guesses.MODULES}


@pytest.mark.parametrize("module", HOMES)
def test_every_module_answers_by_the_same_function(module):
    function = HOMES[module].__getattr__
    assert function.func is skcalib._guesses.raise_no_attribute
    assert function.args == (f"skcalib.{module}",)
    for home in HOMES.values():
        for name in sorted({*home.__all__} - vars(HOMES[module]).keys())[:1]:
            with pytest.raises(ImportError, match=rf"Use {home.__name__}\.{name}\.$"):
                exec(f"from skcalib.{module} import {name}")


def test_every_name_of_ours_is_answered_elsewhere():
    for home in HOMES.values():
        for name in home.__all__:
            other = next(module for module in HOMES.values() if name not in vars(module))
            with pytest.raises(AttributeError) as refusal:  # as tools expect that ask for names
                getattr(other, name)
            assert str(refusal.value).endswith(f"Use {home.__name__}.{name}")


def test_names_like_ours_are_answered():
    with pytest.raises(ImportError, match=r"Use skcalib\.uncertainty\.confidence_interval\.$"):
        exec("from skcalib.metrics import confidence_intervals")
    with pytest.raises(ImportError, match=r"Use skcalib\.metrics\.reliability_curve\.$"):
        exec("from skcalib import reliability_curve")
    with pytest.raises(ImportError, match=r"^cannot import name 'nothing'"):
        exec("from skcalib.metrics import nothing")
    with pytest.raises(ImportError, match=r"Use skcalib\.recalibration\.Nonhomogeneous"):
        exec("from skcalib.recalibration import EMOS")
    with pytest.raises(ImportError, match=r"Use skcalib\.uncertainty\.clinical_calibration\.$"):
        exec("from skcalib import val_prob")


def test_names_of_ours_are_found_elsewhere_and_refused_as_tools_expect():
    assert not hasattr(skcalib, "IsotonicRecalibrator")
    with pytest.raises(AttributeError, match=r"Use skcalib\.recalibration\.IsotonicRecalibrator$"):
        skcalib.IsotonicRecalibrator  # noqa: B018
    with pytest.raises(AttributeError, match=r"Use skcalib\.metrics\.smooth_calibration_error$"):
        skcalib.metrics.smooth_calibration_eror  # noqa: B018


def test_names_that_resemble_nothing_are_no_attributes():
    assert not hasattr(skcalib, "__wrapped__")
    assert not hasattr(skcalib, "xylophone")
    with pytest.raises(AttributeError, match=r"'skcalib\.metrics' has no attribute 'xylophone'"):
        skcalib.metrics.xylophone  # noqa: B018


def test_versions_are_shown(capsys):
    skcalib.show_versions()
    shown = capsys.readouterr().out
    assert f"numpy: {np.__version__}" in shown
    assert "skcalib: " in shown


def documented(name):
    yield name
    if inspect.isclass(load(name)):
        for method, value in inspect.getmembers(load(name), callable):
            is_ours = (getattr(value, "__module__", None) or "").startswith("skcalib")
            if is_ours and value.__doc__ and not method.startswith("_"):
                yield f"{name}.{method}"


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_are_numpydoc(name):
    for own in documented(name):
        errors = [error for error in validate(own)["errors"] if error[0] not in IGNORED]
        assert errors == [], own


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_are_given_and_documented_defaults_are_the_defaults(name):
    assert ">>> " in inspect.getdoc(load(name))
    parameters = inspect.signature(load(name)).parameters
    for described in NumpyDocString(inspect.getdoc(load(name)))["Parameters"]:
        _, _, documented_default = described.type.partition("default=")
        try:
            default = ast.literal_eval(documented_default)
        except (SyntaxError, ValueError):
            continue  # none, an expression, or on the next line
        assert default == parameters[described.name].default, described.name


@pytest.mark.parametrize("metric", [entry.function for entry in METRICS.values()], ids=METRICS)
def test_metrics_share_their_signature(metric):
    parameters = inspect.signature(metric).parameters
    names = list(parameters)[:5]
    assert names[1] in ("y_proba", "y_pred")
    assert names == ["y_true", names[1], "sample_weight", "pos_label", "labels"]
    for name in list(parameters)[2:]:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        if name in ("sample_weight", "pos_label", "labels"):
            assert parameters[name].default is None


def test_every_metric_is_registered():
    # the registry drives the scorers, the laws and the statistics of the tests
    others = {
        "calibration_distance_bounds",
        "calibration_in_the_large",  # signed: 0 or 1 is calibrated
        "calibration_intercept",
        "calibration_slope",
        "capabilities",
        "censoring_weights",
        "decision_calibration",
        "decision_curve",
        "distance_certificate",
        "distribution_matching_witness",
        "get_scorer",
        "get_scorer_names",
        "local_calibration",
        "make_scorer",
        "metric_table",
        "observed_expected_ratio",
        "pit_histogram",
        "reliability_curve",
        "risk_coverage_curve",
        "score_decomposition",
        "sharpness",
        "smooth_calibration_witness",
        "upper_distance_certificate",
        "weighted_calibration_error",  # for more than two classes too slow to be a default scorer
    }
    assert set(ALL_METRICS) | others == set(metrics.__all__)
    assert metrics.get_scorer_names() == sorted(f"neg_{name}" for name in ALL_METRICS)


@pytest.mark.integration
def test_submodules_are_loaded_when_used():
    code = "import skcalib; print(skcalib.metrics.smooth_calibration_error([0, 1], [0.0, 1.0]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.0"
    assert set(MODULES) <= {f"skcalib.{name}" for name in dir(skcalib)}
    for name in skcalib._USED_DAILY:
        assert any(name in importlib.import_module(module).__all__ for module in MODULES)
        assert getattr(skcalib, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = skcalib.nothing


def described(name):
    """The descriptions of the parameters of a public object or method."""
    parameters = NumpyDocString(inspect.getdoc(load(name)))["Parameters"]
    return {parameter.name: " ".join(parameter.desc) for parameter in parameters}


# Parameters that mean the same wherever these modules have them.
SAME_WORDS = {
    "y_true": ("metrics", "lenses", "report", "uncertainty"),
    "y_proba": ("metrics", "lenses", "uncertainty"),
    "y_pred": ("metrics", "report", "uncertainty"),
    "y_forecast": ("metrics",),
    "sample_weight": ("metrics",),
    "pos_label": ("metrics", "report"),
    "labels": ("metrics", "lenses", "report"),
    "average": ("metrics",),
    "metric_params": ("uncertainty",),
}


@pytest.mark.parametrize("parameter", SAME_WORDS)
def test_the_same_parameter_has_the_same_words(parameter):
    words = {"classes": {}, "forecasts": {}, "either": {}}
    for name in PUBLIC:
        if name.split(".")[1] in SAME_WORDS[parameter] and inspect.isfunction(load(name)):
            described_here = described(name)
            kind = "forecasts" if "y_forecast" in described_here else "classes"
            kind = "either" if any(key.startswith("y_pred") for key in described_here) else kind
            words[kind].setdefault(described_here.get(parameter), []).append(name)
    for of_kind in words.values():
        of_kind.pop(None, None)
        assert len(of_kind) <= 1, of_kind
    assert any(words.values())


def test_what_infers_says_how_counts_become_rows():
    line = "For counts, repeat the rows: take all arrays at ``np.repeat(np.arange(n), counts)``."
    words = {"Non-negative sample weights; only their ratios matter. " + line}
    words |= {"None, or equal for all samples, as outcomes are counted. " + line}  # of grades
    infers = [f"skcalib.{module}." for module in ("uncertainty", "hypothesis_tests", "report")]
    described_here = {
        function: " ".join(parameter.desc)
        for function, parameter in documented_parameters()
        if parameter.name == "sample_weight" and function.startswith((*infers, "skcalib.display."))
    }
    assert set(described_here.values()) == words
    assert len(described_here) >= 20
    venn_abers = inspect.getdoc(load("skcalib.recalibration.VennAbersRecalibrator"))
    assert line in " ".join(venn_abers.split())


# Which kinds of values the documented type of a parameter allows.
KINDS = {
    "truth value": r"\bbool\b",
    "word": r"\{|\bstr\b(?! to)|\"",
    "model": r"\bestimator\b",
    "values": r"\b(int|float|scalar|\w*array\S*|list|tuple|dict|forecast|DecisionLoss)\b",
}


@cache
def documented_parameters():
    """The parameters in all public docstrings, with what they are of."""
    return [
        (function, parameter)
        for name in PUBLIC
        for function in documented(name)
        for parameter in NumpyDocString(inspect.getdoc(load(function)))["Parameters"]
    ]


def test_no_parameter_means_two_things():
    kinds = {}
    for function, parameter in documented_parameters():
        if not dataclasses.is_dataclass(load(function)):
            allowed = parameter.type.partition("default=")[0]
            of_function = {kind for kind, words in KINDS.items() if re.search(words, allowed)}
            for name in parameter.name.split(", ") if of_function else []:
                kinds[name] = kinds.get(name, of_function) & of_function
    assert not {name for name, common in kinds.items() if not common}


def test_the_name_of_predictions_says_what_they_may_be():
    for function, parameter in documented_parameters():
        names = parameter.name.split(", ")
        is_result = dataclasses.is_dataclass(load(function)) or hasattr(load(function), "_fields")
        if re.match(r"y_(proba|pred|forecast)", names[0]) and not is_result:
            kinds = "array-like" in parameter.type, "forecast" in parameter.type
            expected = {(1, 0): "y_proba", (1, 1): "y_pred", (0, 1): "y_forecast"}[kinds]
            assert all(name.startswith(expected) for name in names), function


@pytest.mark.parametrize("parameter", ["labels", "prior_weight", "input_type"])
def test_the_same_parameter_of_recalibrators_has_the_same_words(parameter):
    # a temperature can do without, and maps with parameters for each class are drawn to it; those
    # of subgroups are drawn to each other, and those of forecasts to a scale
    # or to the outcomes that a forecast expects
    of_classes = {"Beta", "Dirichlet", "Quadratic", "Sigmoid", "Spline", "VectorScaling"}
    others = {"Temperature": 1, "Subgroup": 3, "LocationScale": 4, "NonhomogeneousRegression": 5}
    kinds = others | dict.fromkeys(of_classes, 2) if parameter[0] == "p" else {}
    words = {}
    for name in PUBLIC:
        module, _, own = name.rpartition(".")
        if module == "skcalib.recalibration" and parameter in described(name):
            kind = kinds.get(own.removesuffix("Recalibrator"), 0)
            words.setdefault(kind, set()).add(described(name)[parameter])
    assert set(words) == {0, *kinds.values()}
    assert all(len(of_kind) == 1 for of_kind in words.values()), words


def unannotated(function):
    """Parameters without an annotation, and "return" if there is none of that."""
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "cls") and parameter.annotation is parameter.empty:
            yield parameter.name
    if signature.return_annotation is signature.empty:
        yield "return"


@pytest.mark.parametrize("name", PUBLIC)
def test_the_public_api_is_annotated(name):
    value = load(name)
    if not inspect.isclass(value):
        assert list(unannotated(value)) == []
        return
    for method, function in vars(value).items():
        is_public = method == "__init__" or not method.startswith("_")
        if inspect.isfunction(function) and is_public:
            assert list(unannotated(function)) == [], method


def test_signatures_are_short():
    shown = str(inspect.signature(metrics.expected_calibration_error))
    assert shown.startswith(
        "(y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | "
    )


def test_each_call_for_users_of_other_packages_is_run():
    lines = read_page("docs/coming_from.md").splitlines()
    code = "\n".join(line[4:] for line in lines if line[:4] in (">>> ", "... "))
    rows = [line.split(" | ")[1] for line in lines if re.match(r"\| .* \| .* \|", line)]
    calls = [call for row in rows for call in re.findall(r"`([^`]+\))`", row)]
    assert len(calls) > 50
    assert [call for call in calls if call not in code] == []


def test_each_call_for_a_paper_is_compared_with_the_formula():
    lines = read_page("docs/coming_from_a_paper.md").splitlines()
    compared = "\n".join(
        line for line in lines if re.match(">>> (same|ours|found|test) ?[=(]", line)
    )
    calls = [
        call for line in lines if line[:2] == "| " for call in re.findall(r"`([^`]+\))`", line)
    ]
    assert len(calls) > 40
    assert [call for call in calls if call not in compared] == []


@pytest.mark.parametrize(
    "use",
    [
        lambda: metrics.get_scorer("neg_ece"),
        lambda: skcalib.CalibrationTest("ECE").fit([0.5, 0.5], [0, 1]),
        lambda: skcalib.uncertainty.confidence_interval("ECE", [0, 1], [0.5, 0.5]),
    ],
)
def test_errors_tell_the_names_of_what_papers_call_ece(use):
    with pytest.raises(ValueError, match=r"Did you mean '\w*expected_calibration_error' or '"):
        use()
    assert "(ECE)" in metrics.level_set_calibration_error.__doc__.partition("\n")[0]


def test_what_looks_like_a_parameter_of_a_test_is_one():
    for name in hypothesis_tests.__all__:
        test = getattr(hypothesis_tests, name)
        if inspect.isclass(test) and hasattr(test, "get_params"):
            names = set(inspect.signature(test).parameters)
            plain = {
                key
                for key, value in inspect.getmembers_static(test)
                if not key.startswith("_") and not callable(value) and not hasattr(value, "__get__")
            }
            assert plain <= names, name


def test_intervals_unpack_to_their_ends():
    y, proba = [0, 1, 1, 0] * 5, [0.2, 0.7, 0.6, 0.4] * 5
    interval = skcalib.confidence_interval("expected_calibration_error", y, proba)
    assert tuple(interval) == (interval.low, interval.high)
    difference = skcalib.compare_models("expected_calibration_error", y, proba, proba[::-1])
    assert tuple(difference) == (difference.low, difference.high)


def test_capabilities_are_those_of_the_functions():
    table = metrics.capabilities()
    assert len(set(map(len, table.values()))) == 1
    proba, y = [0.2, 0.7, 0.6, 0.4], [0, 1, 1, 0]
    for row, name in enumerate(table["name"]):
        parameters = inspect.signature(getattr(metrics, name)).parameters
        assert table["multi_class"][row] == ("multi_class" in parameters)
        state = skcalib.streaming.CalibrationState().update(y, proba)
        if table["streaming"][row]:
            assert np.isfinite(state.evaluate(name).value)
        else:
            with pytest.raises(ValueError, match=r"name|metric"):
                state.evaluate(name)
        for ability, use in (("finite_sample", try_radius), ("groups", try_groups)):
            assert table[ability][row] == use(name, table["classes"][row]), (name, ability)
    assert table["scorer"] == metrics.get_scorer_names()


def try_radius(name, takes_classes):
    """Whether some options of the metric have a finite-sample radius."""
    for options in ({}, {"method": "surrogate"}, {"bandwidth": 0.1}):
        with suppress(ValueError):
            return (
                skcalib.uncertainty.finite_sample_radius(name, 9, metric_params=options).above > 0
            )
    return False


def try_groups(name, takes_classes):
    rng, groups = np.random.default_rng(0), np.arange(30) // 3
    value, given = rng.random(30), rng.random((30, 1))
    X, y = (value, groups % 2) if takes_classes else ((value, value + 1), value)
    test = skcalib.CalibrationTest(name, n_resamples=3, random_state=0)
    try:
        test.fit(X, y, groups=groups, given=given if name == "local_calibration_error" else None)
    except ValueError as error:
        return "groups need a statistic that is made of residuals" not in str(error)
    return True
