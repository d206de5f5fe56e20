"""Logits are taken where they are declared, however large they are."""

import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from oracles import labels_of_prior
from problems import logit_problem
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from skcalib import calibration_report, recalibration
from skcalib._numerics.logits import MIN_POSITIVE_PROBA
from skcalib.metrics import smooth_calibration_error
from skcalib.recalibration import (
    AutoRecalibrator,
    DirichletRecalibrator,
    MatrixScalingRecalibrator,
    RecalibratedClassifier,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)

CASES = {
    "temperature": TemperatureRecalibrator(),
    "vector": VectorScalingRecalibrator(),
    "matrix": MatrixScalingRecalibrator(),
    "Dirichlet": DirichletRecalibrator(),
}

all_cases = pytest.mark.parametrize("recalibrator", CASES.values(), ids=CASES)
both_kinds = pytest.mark.parametrize("n_classes", [2, 4])


def declared(recalibrator, **params):
    return clone(recalibrator).set_params(input_type="logits", **params)


def test_temperature_by_hand():
    # two of three are right where odds of 4 are claimed: odds of 2, the square root
    odds = np.log(4) * np.array([1, 1, -1])
    recalibrator = TemperatureRecalibrator(prior_weight=0, input_type="logits")
    recalibrator.fit(odds, [1, 0, 0])
    assert recalibrator.temperature_ == pytest.approx(2, rel=1e-14)
    np.testing.assert_allclose(recalibrator.predict_proba(odds[:1]), [[1 / 3, 2 / 3]], rtol=1e-14)
    # the same odds of 2, from log-odds that no probability can hold
    recalibrator.fit([1e4, 1e4, -1e4], [1, 0, 0])
    assert recalibrator.temperature_ == pytest.approx(1e4 / np.log(2), rel=1e-14)
    assert recalibrator.smallest_probability_ == 0
    np.testing.assert_allclose(recalibrator.predict_proba([1e4]), [[1 / 3, 2 / 3]], rtol=1e-14)


@pytest.mark.parametrize("prior_weight", [0.0, 3.0])
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_temperature_equals_a_root_finder(n_classes, scale, prior_weight):
    label, logits = logit_problem(n_classes)
    logits *= scale
    weight = np.random.default_rng(1).random(len(label))
    weight /= weight.sum()
    share = prior_weight * (weight**2).sum()
    target = (np.eye(n_classes)[label] + share * softmax(logits, axis=1)) / (1 + share)

    def slope(inverse):
        residual = softmax(inverse * logits, axis=1) - target
        return weight @ (residual * logits).sum(axis=1)

    root = brentq(slope, 0.01 / scale, 20 / scale, xtol=1e-15 / scale)
    recalibrator = TemperatureRecalibrator(prior_weight=prior_weight, input_type="logits")
    recalibrator.fit(logits, label, sample_weight=weight)
    assert recalibrator.temperature_ * root == pytest.approx(1, rel=1e-11)
    expected = softmax(logits * root, axis=1)
    np.testing.assert_allclose(recalibrator.predict_proba(logits), expected, atol=1e-10)


@both_kinds
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_gradient_vanishes_at_scalings_of_logits(n_classes, scale):
    label, logits = logit_problem(n_classes)
    logits *= scale
    log_proba = log_softmax(logits, axis=1)
    share = n_classes / len(label)  # two prior samples of two classes, one more for each further
    expected = labels_of_prior(log_proba, label, np.full(len(label), 1 / len(label)))
    target = (np.eye(n_classes)[label] + share * expected) / (1 + share)
    vector = VectorScalingRecalibrator(prior_weight=2, input_type="logits").fit(logits, label)
    residual = softmax(log_proba * vector.coef_ + vector.intercept_, axis=1) - target
    size = np.abs(residual).mean(axis=0)
    assert (np.abs(residual.mean(axis=0)) < 1e-7 * size).all()
    assert (np.abs((residual * log_proba).mean(axis=0)) < 1e-7 * size * scale).all()
    dirichlet = DirichletRecalibrator(prior_weight=2, input_type="logits").fit(logits, label)
    residual = softmax(log_proba @ dirichlet.coef_.T + dirichlet.intercept_, axis=1) - target
    gradient = residual.T @ log_proba / len(label)
    gradient += 200 * (1 - np.eye(n_classes)) * dirichlet.coef_ / (n_classes * (n_classes - 1))
    assert (np.abs(gradient) < 1e-7 * scale).all()
    gradient = residual.mean(axis=0) + 2 * dirichlet.intercept_ / n_classes
    assert (np.abs(gradient) < 1e-7).all()


@both_kinds
def test_a_matrix_without_freedom_is_the_temperature(n_classes):
    label, logits = logit_problem(n_classes)
    logits *= 1e4
    held = dict.fromkeys(["diagonal_penalty", "off_diagonal_penalty", "intercept_penalty"], np.inf)
    matrix = MatrixScalingRecalibrator(prior_weight=1, input_type="logits", **held)
    temperature = TemperatureRecalibrator(prior_weight=1, input_type="logits").fit(logits, label)
    fitted = matrix.fit(logits, label).predict_proba(logits)
    np.testing.assert_allclose(fitted, temperature.predict_proba(logits), atol=1e-7)


@all_cases
@both_kinds
def test_logits_are_worth_their_probabilities(recalibrator, n_classes):
    label, logits = logit_problem(n_classes)
    proba = softmax(logits, axis=1)
    expected = clone(recalibrator).fit(proba, label).predict_proba(proba)
    fitted = declared(recalibrator).fit(logits, label)
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, atol=1e-9)
    # what the softmax ignores
    moved = logits + np.linspace(-50, 50, len(label))[:, None]
    again = declared(recalibrator).fit(moved, label).predict_proba(moved)
    np.testing.assert_allclose(again, expected, atol=1e-9)


@all_cases
def test_one_column_holds_the_log_odds_of_the_last_class(recalibrator):
    label, logits = logit_problem(2)
    odds = logits[:, 1] - logits[:, 0]
    expected = declared(recalibrator).fit(logits, label).predict_proba(logits)
    for form in (odds, odds[:, None], np.column_stack([np.zeros(len(odds)), odds])):
        fitted = declared(recalibrator).fit(form, label)
        np.testing.assert_array_equal(fitted.predict_proba(form), expected)
        assert fitted.n_features_in_ == (1 if form.ndim == 1 else form.shape[1])


@all_cases
def test_rows_of_weight_zero_do_not_count(recalibrator):
    label, logits = logit_problem(3)
    weight = np.arange(len(label)) % 3.0
    used = weight > 0
    fitted = declared(recalibrator).fit(logits, label, sample_weight=weight)
    expected = declared(recalibrator).fit(logits[used], label[used], sample_weight=weight[used])
    np.testing.assert_array_equal(fitted.predict_proba(logits), expected.predict_proba(logits))


@all_cases
def test_containers_and_types(recalibrator):
    label, logits = logit_problem(3)
    logits = np.round(logits)
    expected = declared(recalibrator).fit(logits, label).predict_proba(logits)
    frame = pd.DataFrame(logits.astype(int), columns=["a", "b", "c"])
    names = np.array(["a", "b", "c"])[label]
    fitted = declared(recalibrator).fit(frame, names)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(frame), expected)
    for other in (logits.astype(np.float32), logits.astype(object), logits.tolist()):
        np.testing.assert_array_equal(
            declared(recalibrator).fit(other, label).predict_proba(other), expected
        )
    with pytest.raises(ValueError, match="must be in the order of the classes"):
        declared(recalibrator).fit(frame[["c", "a", "b"]], names)


@all_cases
@both_kinds
def test_the_linear_map_of_logits_gives_the_probabilities(recalibrator, n_classes):
    label, logits = logit_problem(n_classes)
    fitted = declared(recalibrator).fit(logits, label)
    factor, shift = fitted._linear_map()
    log_proba = log_softmax(logits, axis=1)
    scores = (log_proba * factor if factor.ndim == 1 else log_proba @ factor.T) + shift
    expected = fitted.predict_proba(logits)
    np.testing.assert_allclose(softmax(scores, axis=1), expected, atol=1e-13)


@pytest.mark.parametrize("kind", ["temperature", "vector", "matrix"])
def test_tiny_probabilities_of_more_classes_are_worth_their_logits(kind):
    """As those of naive Bayes are, which is sure of most: 1e-20 is not 1e-35."""
    label, logits = logit_problem(4)
    logits = 6 * logits
    recalibrator = clone(CASES[kind]).set_params(input_type="probabilities")
    of_proba = recalibrator.fit(softmax(logits, axis=1), label)
    assert MIN_POSITIVE_PROBA < of_proba.smallest_probability_ < 1e-20
    of_logits = clone(recalibrator).set_params(input_type="logits").fit(logits, label)
    expected = of_logits.predict_proba(logits)
    np.testing.assert_allclose(of_proba.predict_proba(softmax(logits, axis=1)), expected, atol=1e-8)


def test_modules_need_pytorch(monkeypatch):
    fitted = TemperatureRecalibrator().fit([0.9, 0.9, 0.9, 0.1], [1, 1, 0, 0])
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, f"{recalibration.__name__}._torch_modules", raising=False)
    monkeypatch.delattr(recalibration, "_torch_modules", raising=False)
    with pytest.raises(ImportError, match=r'pip install "skcalib\[torch\]"'):
        fitted.to_module()


def test_only_probabilities_are_positive():
    assert get_tags(TemperatureRecalibrator()).input_tags.positive_only
    assert not get_tags(TemperatureRecalibrator(input_type="logits")).input_tags.positive_only


GOOD = np.array([[1.0, 2.0, -3.0], [0.5, -1.0, 2.0], [3.0, 1.0, 1.0]])


def with_entry(value):
    logits = GOOD.copy()
    logits[1, 2] = value
    return logits


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (with_entry(np.nan), r"X must be finite; found nan .* in row 1"),
        (with_entry(-np.inf), r"found -inf in row 1\. Replace .*-1e4, as with np\.clip"),
        (with_entry(np.inf), r"found inf in row 1\. Replace"),
        (with_entry(-2e6), r"between -1e\+06 and 1e\+06; found -2000000.0 in row 1.*-1e4"),
        (GOOD.astype(str), "must hold logits as numbers; found type <U"),
        (GOOD > 0, "must hold logits as numbers; found type bool"),
        (softmax(GOOD, axis=1), "must hold logits, as declared; .* sum to 1. Declare them"),
        (GOOD[:, :2], "has 2 columns and stands for 2 classes, but y holds 3"),
        (GOOD[:, 0], "is 1-D and so stands for 2 classes, but y holds 3"),
        (GOOD[:0], "at least one prediction"),
        (GOOD[None], "one or two dimensions"),
        (np.where(GOOD < 0, None, GOOD), r"found nan .*Leave out these rows, in all arguments"),
    ],
)
def test_bad_logits(logits, message):
    recalibrator = TemperatureRecalibrator(input_type="logits")
    with pytest.raises(ValueError, match=message):
        recalibrator.fit(logits, [0, 1, 2][: len(logits)] if logits.ndim == 2 else [0, 1, 2])
    recalibrator.fit(GOOD, [0, 1, 2])
    with pytest.raises(ValueError, match=r"X must|one or two dimensions"):
        recalibrator.predict_proba(logits)


def test_declarations_are_checked():
    with pytest.raises(ValueError, match="'input_type' parameter"):
        TemperatureRecalibrator(input_type="scores").fit(GOOD, [0, 1, 2])
    # a single row may sum to 1 by chance, and so may rows that are no fractions
    recalibrator = TemperatureRecalibrator(input_type="logits").fit(GOOD, [1, 2, 0])
    assert recalibrator.predict_proba([[0.5, 0.3, 0.2]]).shape == (1, 3)
    assert recalibrator.predict_proba(np.eye(3)).argmax(axis=1).tolist() == [0, 1, 2]


def test_logits_that_nobody_declared():
    with pytest.raises(ValueError, match=r"or logits if input_type='logits'.*softmax\("):
        TemperatureRecalibrator().fit(GOOD, [0, 1, 2])
    with pytest.raises(ValueError, match=r"softmax\(logits, axis=1\), or expit for one column\.$"):
        SigmoidRecalibrator().fit(GOOD, [0, 1, 2])
    with pytest.raises(ValueError, match=r"softmax\(logits, axis=1\)"):
        smooth_calibration_error([0, 1, 1], GOOD[:, 0])


def test_a_column_of_log_probabilities_is_told():
    log_proba = np.log([0.96, 0.4, 0.8, 0.9, 0.7, 0.95])
    y = [1, 0, 1, 1, 0, 1]
    for function in (smooth_calibration_error, calibration_report):
        with pytest.raises(ValueError, match=r"all at most 0 .*: pass np\.exp of them\."):
            function(y, log_proba)
    with pytest.warns(UserWarning, match=r"pass np\.exp of them, with input_type='probabilities'"):
        TemperatureRecalibrator(input_type="logits").fit(log_proba, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TemperatureRecalibrator(input_type="logits").fit(log_proba - 2, [0, 0, 1, 0, 0, 0])
        tensor = pytest.importorskip("torch").linspace(-3, 3, 50)
        TemperatureRecalibrator(input_type="logits").fit(tensor, np.arange(50) > 9)


@both_kinds
def test_what_is_made_of_classifiers_refuses_declared_logits(n_classes):
    label, logits = logit_problem(n_classes)
    inner = TemperatureRecalibrator(input_type="logits")
    with pytest.raises(ValueError, match="as declared; found rows between 0 and 1"):
        RecalibratedClassifier(LogisticRegression(), inner).fit(logits, label)
    with pytest.raises(ValueError, match="as declared; found rows between 0 and 1"):
        AutoRecalibrator([("temperature", inner)]).fit(softmax(logits, axis=1), label)
