"""Of two classes both columns count: next to 1, only the other one has digits."""

import pickle
import sqlite3

import numpy as np
import pytest
from scipy.special import expit, log_expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from skcalib._numerics.logits import smallest_probability
from skcalib.recalibration import (
    AutoRecalibrator,
    BetaRecalibrator,
    DirichletRecalibrator,
    EnsembleTemperatureRecalibrator,
    IntervalBinningRecalibrator,
    IsotonicRecalibrator,
    MatrixScalingRecalibrator,
    PairwiseScalingRecalibrator,
    QuadraticRecalibrator,
    SigmoidRecalibrator,
    SplineRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
    VennAbersRecalibrator,
    export_sql,
)

EPS = np.finfo(float).eps

SYMMETRIC = [
    AutoRecalibrator(),
    IsotonicRecalibrator(),
    IsotonicRecalibrator(strict=False),
    VennAbersRecalibrator(),
    SigmoidRecalibrator(),
    BetaRecalibrator(),
    QuadraticRecalibrator(),
    SplineRecalibrator(),
    TemperatureRecalibrator(),
    EnsembleTemperatureRecalibrator(),
    VectorScalingRecalibrator(),
    MatrixScalingRecalibrator(),
    DirichletRecalibrator(),
    PairwiseScalingRecalibrator(),  # the last one has no SQL
]

names = pytest.mark.parametrize("recalibrator", SYMMETRIC, ids=str)


def sure_predictions(n=1000, scale=40.0, seed=0):
    """Log-odds that reach far beyond those of one column, twenty times overconfident."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale + 5, scale, n)
    y = (rng.random(n) < expit((z - scale - 5) / (scale / 2))).astype(int)
    return z, expit(np.outer(z, [-1, 1])), y


@names
def test_swapped_classes_get_the_swapped_map(recalibrator):
    _, proba, y = sure_predictions()
    weight = np.random.default_rng(1).random(len(y))
    found = recalibrator.fit(proba, y, weight).predict_proba(proba)
    swapped = recalibrator.fit(proba[:, ::-1], 1 - y, weight).predict_proba(proba[:, ::-1])
    np.testing.assert_allclose(found, swapped[:, ::-1], rtol=0, atol=1e-9)


@names
def test_columns_without_certain_predictions_are_one_column(recalibrator):
    _, proba, y = sure_predictions(300, scale=1.5)
    proba[:, 0] = 1 - proba[:, 1]
    both = recalibrator.fit(proba, y).predict_proba(proba)
    one = recalibrator.fit(proba[:, 1], y)
    np.testing.assert_allclose(both, one.predict_proba(proba[:, 1]), rtol=0, atol=1e-11)
    np.testing.assert_allclose(both, one.predict_proba(proba), rtol=0, atol=1e-11)


@names
def test_a_single_column_does_not_tell_more_than_it_holds(recalibrator):
    _, proba, y = sure_predictions()
    fitted = recalibrator.fit(proba[:, 1], y)
    likely = proba[:, 1] == 1
    found = fitted.predict_proba(proba[:, 1])[likely]
    assert likely.sum() > 100
    np.testing.assert_array_equal(found, np.broadcast_to(found[0], found.shape))
    both = recalibrator.fit(proba, y)
    if isinstance(both, IsotonicRecalibrator | VennAbersRecalibrator):
        np.testing.assert_array_equal(both.predict_proba(proba[:, 1])[likely], found)
    restored = pickle.loads(pickle.dumps(recalibrator.fit(proba, y)))
    assert len(np.unique(restored.predict_proba(proba)[likely], axis=0)) > 5


def test_isotonic_regression_orders_by_log_odds():
    z, proba, y = sure_predictions()
    oracle = IsotonicRegression().fit(z, y).predict(z)
    found = IsotonicRecalibrator(strict=False).fit(proba, y).predict_proba(proba)[:, 1]
    np.testing.assert_allclose(found, oracle, rtol=0, atol=1e-12)


def test_bins_of_equal_mass_part_what_rounds_to_1():
    z, proba, y = sure_predictions()
    recalibrator = IntervalBinningRecalibrator("quantile", n_bins=10, pseudo_count=0).fit(proba, y)
    tenths = np.argsort(np.argsort(z)) // 100
    expected = np.bincount(tenths, y)[tenths] / 100
    np.testing.assert_allclose(recalibrator.predict_proba(proba)[:, 1], expected, atol=1e-12)


@pytest.mark.parametrize("recalibrator", [SigmoidRecalibrator, BetaRecalibrator], ids=str)
def test_logistic_maps_use_the_log_odds(recalibrator):
    z, proba, y = sure_predictions(2000, scale=15.0)
    logs = np.column_stack([log_expit(z), -log_expit(-z)])
    inputs = z[:, None] if recalibrator is SigmoidRecalibrator else logs
    oracle = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000, solver="newton-cholesky")
    expected = oracle.fit(inputs, y).predict_proba(inputs)
    found = recalibrator(prior_weight=0).fit(proba, y).predict_proba(proba)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("proba", "expected"),
    [
        ([[1.0, 1e-30], [0.5, 0.5]], 1e-30),
        ([[1.0, 1e-30], [0.0, 1.0], [1e-90, 1.0]], 1.2e-38),
        ([[1.0, 1e-30], [0.0, 1.0], [2 * EPS, 1.0]], EPS),  # zeros of 1 − p
        ([[1.0, 1e-90], [0.5, 0.5]], 1.2e-38),
        ([[1.0, 0.0], [0.98, 0.02]], 0.01),
        ([[0.9, 0.1], [0.5, 0.5]], EPS),
    ],
)
def test_smallest_probability_of_two_columns(proba, expected):
    found = smallest_probability(np.array(proba), 1.1754943508222875e-38)
    assert found == pytest.approx(expected, rel=0.03)


def test_few_samples_do_not_reach_far():
    _, proba, y = sure_predictions(100)
    found = SigmoidRecalibrator().fit(proba, y).smallest_probability_
    assert found == pytest.approx(EPS * np.exp(-100 / 16), rel=1e-12)
    weighted = SigmoidRecalibrator().fit(np.repeat(proba, 2, axis=0), np.repeat(y, 2), [1, 0] * 100)
    assert weighted.smallest_probability_ == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize(
    "recalibrator",
    [*SYMMETRIC[:-1], IntervalBinningRecalibrator(), IntervalBinningRecalibrator("quantile")],
    ids=str,
)
def test_sql_reads_both_columns_or_the_last_one(recalibrator):
    _, proba, y = sure_predictions(200)
    recalibrator = recalibrator.fit(proba, y)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE scores (a REAL, b REAL)")
    database.executemany("INSERT INTO scores VALUES (?, ?)", proba.tolist())
    for columns, query in (["a", "b"], proba), (["b"], proba[:, 1]):
        expressions = export_sql(recalibrator, columns=columns)
        found = database.execute(f"SELECT {', '.join(expressions)} FROM scores").fetchall()
        expected = recalibrator.predict_proba(query)
        np.testing.assert_allclose(np.array(found), expected, rtol=0, atol=1e-9)
    database.close()


def test_sql_reads_one_column_where_two_tell_no_more():
    p = np.linspace(0.05, 0.95, 40)
    fitted = SigmoidRecalibrator().fit(np.column_stack([1 - p, p]), np.arange(40) % 3 > 0)
    assert "proba_False" not in "".join(export_sql(fitted))
    _, proba, y = sure_predictions(100)
    assert "proba_0" in export_sql(SigmoidRecalibrator().fit(proba, y))[1]
