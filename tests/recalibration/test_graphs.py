"""Models of ONNX are `predict_proba`, in onnxruntime."""

import sys
from functools import cache

import numpy as np
import pytest
from recalibration.test_formula import CASES, STATED, problem, queries
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

from skcalib.recalibration import (
    AutoRecalibrator,
    EnsembleTemperatureRecalibrator,
    IntervalBinningRecalibrator,
    PairwiseScalingRecalibrator,
    RecalibratedClassifier,
    ScalingBinningRecalibrator,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
    export_onnx,
    export_sql,
)

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


@cache
def session_options():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return options


def calibrated(recalibrator, proba):
    """The results of a graph that a runtime has read from its bytes."""
    model = export_onnx(recalibrator).SerializeToString()
    session = onnxruntime.InferenceSession(model, session_options())
    return session.run(["calibrated"], {"proba": proba})[0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", STATED)
def test_a_graph_is_predict_proba(name, n_classes):
    proba, y = problem(n_classes)
    recalibrator = STATED[name].fit(proba, y)
    query = queries(proba)
    query /= query.sum(axis=1, keepdims=True)
    expected = recalibrator.predict_proba(query)
    np.testing.assert_allclose(calibrated(recalibrator, query), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", STATED)
def test_a_graph_reads_both_columns_or_the_last_one(name):
    tiny = 10.0 ** -np.arange(3, 40, 3)
    proba = np.column_stack([tiny, 1 - tiny])
    proba = np.vstack([proba, proba[:, ::-1], [[0.3, 0.7], [0.6, 0.4], [0, 1]]])
    y = (np.arange(len(proba)) % 3 == 0).astype(int)
    for X in (proba, proba[:, 1]):
        recalibrator = STATED[name].fit(X, y)
        expected = recalibrator.predict_proba(proba)
        np.testing.assert_allclose(calibrated(recalibrator, proba), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", STATED)
def test_a_graph_is_predict_proba_where_probabilities_are_tiny(name):
    proba, y = problem(3, 30)
    proba[::2, 0] *= 10.0 ** -np.arange(0, 60, 4)
    proba[::2, 1] += 1 - proba[::2].sum(axis=1)
    recalibrator = STATED[name].fit(proba, y)
    expected = recalibrator.predict_proba(proba)
    np.testing.assert_allclose(calibrated(recalibrator, proba), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("total", [1.0, 1 + 8e-6])
def test_rows_of_zeros_keep_their_probabilities_divided_by_their_sum(total):
    # no sample with a probability in one of these bins had that label
    recalibrator = IntervalBinningRecalibrator("uniform", n_bins=10, pseudo_count=0)
    proba = [[0.4, 0.4, 0.2], [0.2, 0.2, 0.6], [0.1, 0.5, 0.4]]
    recalibrator.set_params(labels=[0, 1, 2]).fit(proba, [2, 2, 1])
    zeros = np.array([[0.4, 0.2, 0.4]])
    actual = calibrated(recalibrator, total * zeros)
    np.testing.assert_allclose(actual, zeros, rtol=1e-14)
    expected = recalibrator.predict_proba(total * zeros)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_what_predict_proba_refuses_is_nan():
    fitted = SigmoidRecalibrator().fit([0.1, 0.4, 0.3, 0.8], [0, 1, 0, 1])
    rows = np.array([[0.5, 0.5], [np.nan, 0.5], [1.2, -0.2], [0.5, 0.6], [0.5, 0.5 + 1e-7]])
    is_nan = np.isnan(calibrated(fitted, rows)).all(axis=1)
    assert is_nan.tolist() == [False, True, True, True, False]


def test_a_recalibrated_classifier_is_one_map():
    X, y = load_breast_cancer(return_X_y=True)
    model = RecalibratedClassifier(GaussianNB(), SigmoidRecalibrator(), ensemble=False).fit(X, y)
    scores = model.estimators_[0].predict_proba(X)
    np.testing.assert_allclose(calibrated(model, scores), model.predict_proba(X), atol=1e-9)


def test_what_states_no_map_is_refused():
    proba, y = problem(3)
    with pytest.raises(ValueError, match=r"ONNX can express; found DecisionRecalibrator\. Call"):
        export_onnx(CASES["decision"].fit(proba, y))
    logits = TemperatureRecalibrator(input_type="logits").fit([-1.0, 2.0, 3.0], [0, 1, 0])
    with pytest.raises(ValueError, match=r"found input_type='logits'\. Fit it on scipy"):
        export_onnx(logits)


def test_onnx_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    fitted = SigmoidRecalibrator().fit([0.1, 0.4, 0.3, 0.8], [0, 1, 0, 1])
    with pytest.raises(ImportError, match=r'pip install "skcalib\[onnx\]"'):
        export_onnx(fitted)


def test_the_share_of_equal_probabilities_may_be_all():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(3, 0.2), 2000)
    fitted = EnsembleTemperatureRecalibrator().fit(proba, rng.integers(3, size=2000))
    fitted.shares_ = np.array([0.0, 0.0, 1.0])  # as labels of no relation to predictions have it
    np.testing.assert_allclose(calibrated(fitted, proba[:5]), np.full((5, 3), 1 / 3), rtol=1e-12)


@pytest.mark.parametrize("export", [export_onnx, export_sql])
@pytest.mark.parametrize(
    "outer",
    [
        AutoRecalibrator([("inner", VectorScalingRecalibrator(input_type="logits"))]),
        ScalingBinningRecalibrator(TemperatureRecalibrator(input_type="logits")),
        PairwiseScalingRecalibrator(TemperatureRecalibrator(input_type="logits")),
    ],
    ids=lambda outer: type(outer).__name__,
)
def test_logits_are_refused_within_another_map(outer, export):
    p = np.linspace(0.05, 0.95, 40)  # which passes as log-odds
    with pytest.raises(ValueError, match=r"Recalibrator of logits\. Fit it on scipy"):
        export(outer.fit(p, np.arange(40) % 3 > 0))
