"""Single precision of many classes: not copied, and computed in double precision."""

import tracemalloc
from functools import cache, partial

import numpy as np
import pytest

from skcalib._data import check_predictions
from skcalib._inputs.drawing import draw_labels
from skcalib._numerics.logits import PROPER_LOSSES
from skcalib._numerics.median_distance import MAX_MEDIAN_POINTS, median_distance
from skcalib.lenses import _get_lens, class_groups, top_k
from skcalib.metrics import (
    conditional_kernel_calibration_error,
    expected_calibration_error,
    smooth_calibration_error,
)
from skcalib.metrics._registry import resolve_metric
from skcalib.recalibration import (
    IsotonicRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)


@cache
def problem(n, n_classes):
    """Labels, and probabilities in single precision."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(n_classes, 0.3), size=n).astype(np.float32)
    return rng.integers(n_classes, size=n), proba


def checked(label, proba):
    return check_predictions(label, proba, labels=np.arange(max(2, np.shape(proba)[1])))


def test_it_is_kept_and_shares_its_memory():
    label, proba = problem(50, 4)
    data = checked(label, proba)
    assert data.proba.dtype == np.float32
    assert np.shares_memory(data.proba, proba)


def test_two_classes_and_rows_that_are_divided_are_double():
    label, proba = problem(50, 2)
    assert checked(label, proba).proba.dtype == np.float64
    label, proba = problem(50, 4)
    proba = proba.copy()
    proba[7] *= 1.0001
    data = checked(label, proba)
    assert data.proba.dtype == np.float64
    expected = proba[7].astype(np.float64) / proba[7].astype(np.float64).sum()
    np.testing.assert_array_equal(data.proba[7], expected)
    np.testing.assert_array_equal(data.proba[8], proba[8])


def test_all_other_precisions_become_double():
    row = [0.25, 0.125, 0.5, 0.125]  # exact in all of them
    for dtype in (np.float16, np.longdouble):
        for proba in (row, np.reshape(row, (4, 1)), [[0.25, 0.75]] * 4, [row] * 4):
            labels = range(4) if np.size(proba) == 16 else range(2)
            data = check_predictions([0, 1, 0, 1], np.array(proba, dtype), labels=labels)
            assert data.proba.dtype == np.float64


def test_what_is_computed_with_is_double():
    label, proba = problem(50, 4)
    data = checked(label, proba)
    double = proba.astype(np.float64)
    for values in (data.matrix, np.column_stack(list(data.iter_class_proba()))):
        assert values.dtype == np.float64
        np.testing.assert_array_equal(values, double)
    assert abs(data.simplex.sum(axis=1) - 1).max() < 1e-15
    np.testing.assert_array_equal(data.proba, proba)  # not changed by the division
    assert data.confidence().proba.dtype == np.float64
    problems = [
        problem
        for lens in ("classwise", "top-label")
        for *_, problem in data.iter_problems(_get_lens(lens))
        if problem
    ]
    assert {problem.proba.dtype for problem in problems} == {np.dtype(np.float64)}


def test_only_functions_of_others_are_shown_double_precision():
    label, proba = problem(50, 4)
    data = checked(label, proba)
    assert np.shares_memory(data.proba, proba)
    shown = []
    metric, _ = resolve_metric(lambda y, p: shown.append(p))
    metric.measure(data)
    np.testing.assert_array_equal(shown[0], data.simplex)
    assert not shown[0].flags.writeable


def test_columns_that_do_not_fit_into_a_block(monkeypatch):
    monkeypatch.setattr("skcalib._data.classes._COLUMNS", 120)
    label, proba = problem(50, 7)  # two columns in a block, and one in the last
    columns = list(checked(label, proba).iter_class_proba())
    np.testing.assert_array_equal(columns, proba.T)


@pytest.mark.parametrize("score", PROPER_LOSSES)
def test_losses(score):
    label, proba = problem(200, 300)  # several blocks of rows
    expected = PROPER_LOSSES[score](proba.astype(np.float64), label)
    np.testing.assert_allclose(PROPER_LOSSES[score](proba, label), expected, rtol=1e-14)


def test_median_distance_of_a_subset():
    """Hashes, which decide what the subset is, are those of double precision."""
    _, proba = problem(MAX_MEDIAN_POINTS + 200, 4)
    weight = np.ones(len(proba))
    expected = median_distance(proba.astype(np.float64), weight, "euclidean")
    assert median_distance(proba, weight, "euclidean") == expected


def test_drawn_labels():
    _, proba = problem(300, 40)
    single, double = (
        draw_labels(values, 3, np.random.default_rng(0))
        for values in (proba, proba.astype(np.float64))
    )
    np.testing.assert_array_equal(single, double)


@pytest.mark.integration
@pytest.mark.parametrize(
    "measure",
    [
        smooth_calibration_error,
        partial(expected_calibration_error, multi_class="classwise"),
        partial(
            conditional_kernel_calibration_error, method="fourier", n_components=5, bandwidth=0.5
        ),
        lambda y, p, labels: TemperatureRecalibrator(labels=labels).fit(p, y),
        lambda y, p, labels: IsotonicRecalibrator(labels=labels).fit(p, y),
    ],
    ids=["confidence", "classwise", "ckce", "temperature", "one against the rest"],
)
def test_no_copy_in_double_precision(measure):
    label, proba = problem(50_000, 100)
    peak = most_memory(measure, label, proba, labels=np.arange(100))
    assert peak < 1.5 * proba.nbytes  # a copy in double precision alone takes 2


def test_reductions_need_the_memory_of_some_classes():
    data = checked(
        np.zeros(50_000, dtype=int), np.eye(100, dtype=np.float32)[np.zeros(50_000, int)]
    )
    for reduction in (
        data.confidence,
        lambda: next(data.iter_class_proba()),
        lambda: next(data.iter_problems(_get_lens("top-label"))),
    ):
        assert most_memory(reduction) < 0.6 * data.proba.nbytes  # in double precision they take 2


def most_memory(function, *data, **options):
    """The bytes that NumPy takes at once, beyond the data."""
    tracemalloc.start()
    try:
        function(*data, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("recalibrator", [TemperatureRecalibrator, VectorScalingRecalibrator])
def test_results_of_scalings_are_made_in_blocks(recalibrator):
    label, proba = problem(5000, 100)
    recalibrator = recalibrator(labels=np.arange(100)).fit(proba[:200], label[:200])
    expected = recalibrator.predict_proba(proba.astype(np.float64))
    np.testing.assert_array_equal(recalibrator.predict_proba(proba), expected)
    one_by_one = np.vstack([recalibrator.predict_proba(row[None]) for row in proba[320:340]])
    np.testing.assert_array_equal(expected[320:340], one_by_one)  # around the end of a block
    assert most_memory(recalibrator.predict_proba, proba) < 1.5 * expected.nbytes


def test_logits_are_converted_in_blocks():
    label, proba = problem(5000, 100)
    logits = np.log(proba + np.float32(1e-6))
    fitted, double = (
        TemperatureRecalibrator(labels=np.arange(100), input_type="logits").fit(values, label)
        for values in (logits, logits.astype(np.float64))
    )
    assert fitted.temperature_ == double.temperature_
    expected = double.predict_proba(logits.astype(np.float64))
    np.testing.assert_array_equal(fitted.predict_proba(logits), expected)
    # the logarithms of the probabilities, and these: two arrays in double precision
    assert most_memory(fitted.fit, logits, label) < 2.5 * expected.nbytes


def test_lenses_look_at_blocks():
    label, proba = problem(5000, 100)
    groups = [list(range(50)), list(range(50, 100))]
    for lens, options in (top_k, {"k": 3}), (class_groups, {"partition": groups}):
        options["labels"] = np.arange(100)
        seen, single = lens(label, proba, **options)
        expected_seen, expected = lens(label, proba.astype(np.float64), **options)
        np.testing.assert_array_equal(seen, expected_seen)
        np.testing.assert_array_equal(single, expected)
        assert most_memory(lens, label, proba, **options) < proba.nbytes
