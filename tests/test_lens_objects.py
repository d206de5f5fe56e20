"""Lenses as objects: all that has `multi_class` takes each of them, or refuses it plainly."""

import inspect
import operator
import pickle
from functools import partial, reduce

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, norm
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from skcalib import metrics
from skcalib.display import ComparisonDisplay, ReliabilityDisplay, WitnessDisplay
from skcalib.forecasts import EnsembleForecast
from skcalib.hypothesis_tests import (
    CalibrationTest,
    EquivalenceTest,
    SubgroupCalibrationTest,
)
from skcalib.lenses import BinaryProblem, ClassGroups, Multilabel, Ordinal, TopK, top_k
from skcalib.metrics import (
    continuous_ranked_probability_loss,
    cumulative_calibration_error,
    expected_calibration_error,
    score_decomposition,
    smooth_calibration_error,
    squared_kernel_calibration_error,
)
from skcalib.streaming import CalibrationState
from skcalib.uncertainty import compare_models, confidence_interval, finite_sample_radius

TAKERS = {
    name: function
    for name, function in inspect.getmembers(metrics, inspect.isfunction)
    if "multi_class" in inspect.signature(function).parameters
}


def problem(n=40, n_classes=4, seed=0):
    """Labels of a calibrated model, and probabilities with ties."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n).round(2)
    proba[:, -1] = 1 - proba[:, :-1].sum(axis=1)
    proba = proba.clip(0, 1)
    proba /= proba.sum(axis=1, keepdims=True)
    return np.array([rng.choice(n_classes, p=row) for row in proba]), proba


def multilabel_problem(n=40, n_labels=3, seed=0, dependence=0.9):
    """Labels of a calibrated model, which depend on each other by a Gaussian copula."""
    rng = np.random.default_rng(seed)
    proba = rng.uniform(0.05, 0.95, (n, n_labels)).round(2)
    common = rng.normal(size=(n, 1)) * np.sqrt(dependence)
    noise = common + rng.normal(size=proba.shape) * np.sqrt(1 - dependence)
    return (norm.cdf(noise) < proba).astype(int), proba


class WithinTop:
    """Is the label among the likeliest classes? A lens of a user."""

    def __init__(self, k):
        self.k = k

    def reduce(self, data):
        order = np.argsort(-data.matrix, axis=1)[:, : self.k]
        event = (order == data.label[:, None]).any(axis=1)
        proba = np.take_along_axis(data.matrix, order, axis=1).sum(axis=1)
        yield BinaryProblem(event, proba, name=f"top {self.k}")


class Halves:
    """Problems of unequal weights on some of the rows, and one without rows."""

    def reduce(self, data):
        rows = np.arange(len(data.label))
        for name, mask, weight in (
            ("first", rows % 2 == 0, 3.0),
            ("second", rows % 2 == 1, 1.0),
            ("none", rows < 0, 5.0),
        ):
            yield BinaryProblem(data.label[mask] == 0, data.matrix[mask, 0], weight, name, mask)


LENSES = {
    "top k": TopK(2),
    "groups": ClassGroups([[0, 3], [1], [2]]),
    "ordinal": Ordinal(),
    "own": WithinTop(2),
    "own, rows": Halves(),
}
all_lenses = pytest.mark.parametrize("lens", LENSES.values(), ids=LENSES)


def add(values):
    """Their sum in turn: since Python 3.12, `sum` rounds less, and other rows would be tied."""
    return reduce(operator.add, values)


def problems_by_loops(name, label, proba):
    """The event and the probability of each problem, by the definitions."""
    n, n_classes = len(proba), len(proba[0])
    if name == "top k":
        order = [sorted(range(n_classes), key=lambda j, p=p: (-p[j], j)) for p in proba]
        for r in range(2):
            yield (
                [int(order[i][r] == label[i]) for i in range(n)],
                [proba[i][order[i][r]] for i in range(n)],
            )
    elif name == "groups":
        for group in ([0, 3], [1], [2]):
            yield [int(y in group) for y in label], [add(p[j] for j in group) for p in proba]
    else:
        for k in range(n_classes - 1):
            yield [int(y <= k) for y in label], [add(p[: k + 1]) for p in proba]


def call(function, y, proba, lens, n=None, **options):
    parameters = inspect.signature(function).parameters
    if "random_state" in parameters:
        options["random_state"] = 0
    options = {name: value for name, value in options.items() if name in parameters}
    return function(y[:n], proba[:n], multi_class=lens, **options)


def flatten(value):
    """The numbers of a value, an array, a certificate or several of them."""
    if isinstance(value, str | None):
        return np.empty(0)
    if isinstance(value, np.ndarray | float | int | np.number):
        return np.ravel(value).astype(float)
    values = value if isinstance(value, list | tuple) else vars(value).values()
    return np.concatenate([flatten(entry) for entry in values])


@pytest.mark.parametrize("name", TAKERS)
def test_every_function_measures_each_problem_as_a_binary_one(name):
    function, (y, proba) = TAKERS[name], problem()
    n = 12 if name == "weighted_calibration_error" else None
    weight = np.random.default_rng(1).random(40)[:n]
    options = {"sample_weight": weight, "average": None, "labels": range(4)}
    of_two = {**options, "labels": [0, 1]}
    for lens in ("top k", "groups", "ordinal"):
        values = call(function, y, proba, LENSES[lens], n, **options)
        each = [
            flatten(
                call(function, np.array(event), np.array(p).clip(0, 1), "confidence", n, **of_two)
            )
            for event, p in problems_by_loops(lens, y.tolist(), proba.tolist())
        ]
        if isinstance(values, list):  # of witnesses or certificates
            expected, actual = np.concatenate(each), flatten(values)
        else:
            expected, actual = np.transpose(each).ravel(), flatten(values)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", TAKERS)
def test_every_function_takes_each_object(name):
    function, (y, proba) = TAKERS[name], problem()
    n = 12 if name == "weighted_calibration_error" else None
    for lens in LENSES.values():
        call(function, y, proba, lens, n, labels=range(4))
    matrix, p = multilabel_problem()
    values = call(function, matrix, p, Multilabel(), n, average=None)
    each = [flatten(call(function, matrix[:, k], p[:, k], "confidence", n)) for k in range(3)]
    expected = np.concatenate(each) if isinstance(values, list) else np.transpose(each).ravel()
    np.testing.assert_array_equal(flatten(values), expected)


@pytest.mark.parametrize("name", TAKERS)
def test_two_classes_are_the_binary_case_to_the_last_bit(name):
    function, (y, proba) = TAKERS[name], problem(n_classes=2)
    n = 12 if name == "weighted_calibration_error" else None
    default = inspect.signature(function).parameters["multi_class"].default
    expected = call(function, y, proba, default, n)
    for lens in (Ordinal(), Ordinal([1, 0]), TopK(1), ClassGroups([[0], [1]])):
        assert str(call(function, y, proba, lens, n)) == str(expected)
    with pytest.raises(ValueError, match="k must be at most"):
        call(function, y, proba, TopK(3), n)


def test_top_1_is_the_confidence():
    y, proba = problem()
    expected = smooth_calibration_error(y, proba)
    assert smooth_calibration_error(y, proba, multi_class=TopK(1)) == expected


def test_ranked_probability_score_is_the_sum_of_the_brier_scores():
    y, proba = problem()
    cumulative, event = proba.cumsum(axis=1), y[:, None] <= np.arange(4)
    expected = ((cumulative - event) ** 2).sum(axis=1).mean()  # the last column is 0
    members = np.tile(
        np.arange(4.0), (len(y), 1)
    )  # the score is the CRPS of the classes as numbers
    forecast = EnsembleForecast(members, proba)
    assert continuous_ranked_probability_loss(y, forecast) == pytest.approx(expected, abs=1e-12)
    parts = score_decomposition(y, proba, multi_class=Ordinal())
    assert 3 * parts.score == pytest.approx(expected, abs=1e-12)
    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert total == pytest.approx(parts.score, abs=1e-12)


def test_order_of_classes():
    y, proba = problem()
    expected = smooth_calibration_error(y, proba, multi_class=Ordinal(), average=None)
    names = np.array(["none", "mild", "severe", "fatal"])
    lens = Ordinal(names)
    actual = smooth_calibration_error(names[y], proba, labels=names, multi_class=lens, average=None)
    np.testing.assert_array_equal(actual, expected)
    order = [2, 0, 3, 1]  # numbers are in their own order, whatever that of the columns
    for lens in (Ordinal(), Ordinal([0, 1, 2, 3])):
        actual = smooth_calibration_error(
            y, proba[:, order], labels=order, multi_class=lens, average=None
        )
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)
    with pytest.raises(
        ValueError, match=r"ranking must list the classes .* Pass Ordinal\(ranking="
    ):
        smooth_calibration_error(names[y], proba, labels=names, multi_class=Ordinal())
    for wrong in ([0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 3, 4], ["0", "1", "2", "3"]):
        with pytest.raises(ValueError, match="ranking must list each of the classes"):
            smooth_calibration_error(y, proba, multi_class=Ordinal(wrong))


def test_classes_without_labels_are_ordered_too():
    y, proba = problem()
    few = np.where(y == 1, 0, y)  # class 1 never occurs
    actual = smooth_calibration_error(
        few, proba, labels=range(4), multi_class=Ordinal(), average=None
    )
    expected = [
        smooth_calibration_error(few <= k, proba[:, : k + 1].sum(axis=1).clip(0, 1))
        for k in range(3)
    ]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_averages_use_the_weights_of_problems():
    y, proba = problem()
    value = partial(expected_calibration_error, y, proba, multi_class=Halves())
    first, second, none = value(average=None)
    assert np.isnan(none)
    assert value() == pytest.approx((3 * first + second) / 4)
    assert value(average="macro") == pytest.approx((first + second) / 2)
    each = expected_calibration_error(y, proba, multi_class=Ordinal(), average=None)
    assert expected_calibration_error(y, proba, multi_class=Ordinal()) == pytest.approx(each.mean())


def test_groups_must_be_a_partition():
    y, proba = problem()
    with pytest.raises(ValueError, match=r"partition must hold every class; found no group"):
        smooth_calibration_error(y, proba, multi_class=ClassGroups([[0, 1], [2]]))
    with pytest.raises(ValueError, match="k must be at most the number of classes; found k=5"):
        smooth_calibration_error(y, proba, multi_class=TopK(5))
    rank, top = top_k(y, proba, 2)
    expected = smooth_calibration_error(rank, top, multi_class="classwise", average=None)
    actual = smooth_calibration_error(y, proba, multi_class=TopK(2), average=None)
    np.testing.assert_array_equal(actual, expected[:2])


class Yields:
    def __init__(self, *problems):
        self.problems = problems

    def reduce(self, data):
        return self.problems


@pytest.mark.parametrize(
    ("lens", "error", "message"),
    [
        (Ordinal, TypeError, r"multi_class must be an object; .* Write Ordinal\(\)"),
        (Ordinal(3), ValueError, "ranking must"),
        (ClassGroups(3), TypeError, "partition must be a dict or a list of lists"),
        (5, ValueError, "The 'multi_class' parameter .* implementing 'reduce'"),
        (Yields(), ValueError, "must yield at least one BinaryProblem"),
        (Yields(7), TypeError, r"must yield BinaryProblem\("),
        (Yields(([0, 1], [0.5, 0.5])), ValueError, "one for each of the 40 rows"),
        (Yields(([0, 2] * 20, [0.5] * 40)), ValueError, "events 0 or 1"),
        (Yields(([0, 1] * 20, [1.5] * 40)), ValueError, r"probabilities in \[0, 1\]"),
        (Yields(([0, 1] * 20, [np.nan] * 40)), ValueError, r"probabilities in \[0, 1\]"),
        (Yields(([0, 1] * 20, [0.5] * 40, -1)), ValueError, "the weight -1"),
        (Yields(([0, 1] * 20, ["a"] * 40)), TypeError, r"must yield BinaryProblem\("),
        (Yields(([0, 1] * 20, ["0.5"] * 40)), TypeError, "y_proba must hold numbers"),
        (Yields(([0, 1] * 20, [0.5] * 40, 10**400)), TypeError, r"must yield BinaryProblem\("),
        (Yields(([0, 1] * 20, [0.5] * 40, 1, "", 3)), ValueError, "one for each of the 1 rows"),
        (Yields(([0], [0.5], 1, "", [99])), TypeError, r"must yield BinaryProblem\("),
        (Multilabel(), ValueError, "y_true must be an indicator matrix"),
    ],
)
def test_bad_lenses_are_refused(lens, error, message):
    y, proba = problem()
    with pytest.raises(error, match=message):
        smooth_calibration_error(y, proba, multi_class=lens)


def test_lens_of_a_user_cannot_change_the_data():
    class Overwrite:
        def reduce(self, data):
            data.matrix[:] = 0.5
            yield BinaryProblem(data.label == 0, data.matrix[:, 0])

    y, proba = problem()
    with pytest.raises(ValueError, match="read-only"):
        smooth_calibration_error(y, proba, multi_class=Overwrite())


# Several labels


def test_label_matrices_in_other_containers():
    y, proba = multilabel_problem()
    value = partial(smooth_calibration_error, multi_class=Multilabel(), average=None)
    expected = [smooth_calibration_error(y[:, k], proba[:, k]) for k in range(3)]
    pairs = [np.column_stack([1 - p, p]) for p in proba.T]
    names = ["a", "b", "c"]
    frame = pd.DataFrame(y, index=np.arange(40) + 7, columns=names)
    for matrix, p in (
        (y, proba),
        (y.astype(bool), pairs),
        (y.tolist(), proba.tolist()),
        (csr_array(y), proba),
        (frame, pd.DataFrame(proba, columns=names)),
    ):
        np.testing.assert_array_equal(value(matrix, p), expected)
    with pytest.raises(ValueError, match="columns in the order of y_true"):
        value(frame, pd.DataFrame(proba, columns=names)[["b", "a", "c"]])
    weight = np.random.default_rng(0).integers(0, 3, 40)
    repeated = value(np.repeat(y, weight, axis=0), np.repeat(proba, weight, axis=0))
    np.testing.assert_allclose(value(y, proba, sample_weight=weight), repeated, atol=1e-12)


def test_single_labels_and_labels_without_events():
    y, proba = multilabel_problem(n_labels=1)
    value = partial(smooth_calibration_error, multi_class=Multilabel())
    assert value(y, proba) == smooth_calibration_error(y[:, 0], proba[:, 0])
    none = np.zeros_like(y)
    assert value(none, proba) == pytest.approx(proba.mean())
    with pytest.raises(ValueError, match=r"average='weighted' needs .* positive"):
        value(none, proba, average="weighted")


@pytest.mark.parametrize(
    ("y", "proba", "options", "message"),
    [
        ([0, 1], [0.5, 0.5], {}, "shape .n_samples, n_labels. .*; found .2,."),
        (np.empty((0, 2)), np.empty((0, 2)), {}, "at least one prediction; .* check the filter"),
        ([[0, 2]], [[0.5, 0.5]], {}, "must hold 0 and 1"),
        ([[0, np.nan]], [[0.5, 0.5]], {}, "y_true must"),
        ([["a", "b"]], [[0.5, 0.5]], {}, "must hold 0 and 1"),
        ([[0, pd.NA]], [[0.5, 0.5]], {}, "must hold 0 and 1"),
        ([[0, 1]], [[0.5, 1.5]], {}, r"must lie in \[0, 1\]; found 1.5 in row 0"),
        ([[0, 1]], [[0.5, np.nan]], {}, "NaN"),
        ([[0, 1]], [[0.5, 0.5, 0.5]], {}, r"found shapes \(1, 2\) and \(1, 3\)"),
        ([[0, 1]], [[[0.5, 0.5]], [[1.0]]], {}, "an array .n_samples, 2. for each label"),
        ([[0, 1]], [[0.5, 0.5]], {"pos_label": 1}, "pos_label must be None"),
        ([[0, 1]], [[0.5, 0.5]], {"labels": ["a"]}, "labels must name each of the 2 columns once"),
        ([[0, 1]], [[0.5, 0.5]], {"labels": ["a", "a"]}, "labels must name each"),
        ([[0, 1]], [[0.5, 0.5]], {"sample_weight": [0.0]}, "sample_weight must have a positive"),
    ],
)
def test_bad_label_matrices_are_refused(y, proba, options, message):
    with pytest.raises(ValueError, match=message):
        smooth_calibration_error(y, proba, multi_class=Multilabel(), **options)


# Tests, intervals, curves


def test_each_label_is_tested_alone_and_all_by_bonferroni():
    y, proba = multilabel_problem(100)
    proba[:, 2] **= 2
    options = {"n_resamples": 99, "random_state": 0}
    for statistic in ("auto", "smooth_calibration_error"):
        test = CalibrationTest(statistic, metric_params={"multi_class": Multilabel()}, **options)
        test.fit(proba, y)
        alone = [CalibrationTest(statistic, **options).fit(proba[:, k], y[:, k]) for k in range(3)]
        p_values = [one.p_value_ for one in alone]
        assert [one.p_value_ for one in test.label_tests_.values()] == p_values
        assert test.label_p_values_ == {k: min(1, 3 * p) for k, p in enumerate(p_values)}
        assert test.p_value_ == min(1, 3 * min(p_values))
        assert test.statistic_ == alone[int(np.argmin(p_values))].statistic_
    fixed = partial(smooth_calibration_error, multi_class=Multilabel())
    assert CalibrationTest(fixed, **options).fit(proba, y).p_value_ == test.p_value_
    test.set_params(metric_params=None).fit(proba[:, 0], y[:, 0])
    assert not hasattr(test, "label_p_values_")


def test_what_joins_labels_has_no_p_value():
    y, proba = multilabel_problem()
    params = {"multi_class": Multilabel(), "average": "macro"}
    with pytest.raises(ValueError, match=r"average must be left out .* law together"):
        CalibrationTest("smooth_calibration_error", metric_params=params).fit(proba, y)
    params = {"multi_class": Multilabel()}
    test = SubgroupCalibrationTest("smooth_calibration_error", metric_params=params)
    with pytest.raises(ValueError, match="no p-value for what joins labels"):
        test.fit(proba, y, by=np.arange(40) % 2)


def count_rejections(make_data, test, n_seeds, alpha):
    rejected = 0
    for seed in range(n_seeds):
        y, proba = make_data(seed=seed)
        rejected += clone(test).set_params(random_state=seed).fit(proba, y).p_value_ <= alpha
    return rejected


@pytest.mark.parametrize("dependence", [0.0, 0.99])
def test_size_with_labels_that_depend_on_each_other(dependence):
    # together at most the level, whatever the dependence: 0.4 s for each
    test = CalibrationTest(
        "cumulative_calibration_error",
        metric_params={"multi_class": Multilabel()},
        n_resamples=19,
    )
    make = partial(multilabel_problem, 20, 2, dependence=dependence)
    rejected = count_rejections(make, test, 100, 0.2)
    assert rejected <= binom.isf(1e-4, 100, 0.2)
    assert rejected >= binom.ppf(1e-4, 100, 0.1)  # one label alone rejects a tenth


@all_lenses
def test_size_and_power_of_the_test_of_a_lens(lens):
    test = CalibrationTest(
        "cumulative_calibration_error",
        metric_params={"multi_class": lens},
        n_resamples=9,
        labels=range(4),
    )
    rejected = count_rejections(partial(problem, 25), test, 60, 0.2)
    assert binom.ppf(1e-4, 60, 0.2) <= rejected <= binom.isf(1e-4, 60, 0.2)
    _, proba = problem(200)
    label = np.random.default_rng(9).integers(0, 4, 200)
    test.set_params(n_resamples=49, random_state=0)
    assert test.fit(proba, label).p_value_ == 0.02


@pytest.mark.parametrize("lens", [*LENSES.values(), Multilabel()], ids=[*LENSES, "multilabel"])
def test_intervals_and_comparisons(lens):
    y, proba = multilabel_problem(30) if isinstance(lens, Multilabel) else problem(30)
    options = {"metric_params": {"multi_class": lens}, "n_resamples": 19, "random_state": 0}
    name, expected = (
        "cumulative_calibration_error",
        cumulative_calibration_error(y, proba, multi_class=lens),
    )
    interval = confidence_interval(name, y, proba, **options)
    assert interval.estimate == expected
    assert interval.low <= expected <= interval.high
    by = confidence_interval(name, y, proba, by=np.arange(30) % 2, **options)
    assert by.estimate[1] == cumulative_calibration_error(y[1::2], proba[1::2], multi_class=lens)
    other = proba[:, ::-1]
    result = compare_models(name, y, proba, other, **options)
    difference = expected - cumulative_calibration_error(y, other, multi_class=lens)
    assert result.difference == pytest.approx(difference, abs=1e-12)
    equivalence = EquivalenceTest(name, margin=0.5, **options)
    orders = [np.arange(30), np.random.default_rng(0).permutation(30)]
    limits = [equivalence.fit(proba[rows], y[rows]).upper_limit_ for rows in orders]
    if not isinstance(lens, Halves):  # which follows the order
        assert limits[0] == pytest.approx(limits[1], rel=1e-9)
    fixed = partial(cumulative_calibration_error, multi_class=lens)
    options["metric_params"] = None
    assert confidence_interval(fixed, y, proba, **options).high == interval.high


def test_intervals_of_labels_without_events_reach_above_zero():
    y, proba = np.zeros((40, 2), dtype=int), np.full((40, 2), 1e-4)
    interval = confidence_interval(
        "smooth_calibration_error",
        y,
        proba,
        metric_params={"multi_class": Multilabel()},
        n_resamples=49,
        random_state=0,
    )
    alone = confidence_interval(
        "smooth_calibration_error", y[:, 0], proba[:, 0], n_resamples=49, random_state=0
    )
    assert interval.high >= alone.high / 2 > 0.01  # the mean of two, one of which may be rare


def test_curves():
    pytest.importorskip("matplotlib").use("agg")
    y, proba = problem(100)
    for display in (ReliabilityDisplay, WitnessDisplay):
        shown = display.from_predictions(y, proba, multi_class=Ordinal())
        assert {curve.title for curve in shown.curves} == {f"at most {k}" for k in range(3)}
        matrix, p = multilabel_problem(100)
        shown = display.from_predictions(
            matrix, p, labels=["a", "b", "c"], multi_class=Multilabel()
        )
        assert {curve.title for curve in shown.curves} == {"a", "b", "c"}
        with pytest.raises(ValueError, match="by must be None"):
            display.from_predictions(y, proba, multi_class=Ordinal(), by=y % 2)
    shown = ComparisonDisplay.from_predictions(
        matrix,
        {"model": p},
        metrics=["smooth_calibration_error"],
        metric_params={"smooth_calibration_error": {"multi_class": Multilabel()}},
        n_resamples=19,
    )
    expected = smooth_calibration_error(matrix, p, multi_class=Multilabel())
    assert shown.estimate[0, 0] == expected


def test_those_that_take_names_only_say_so():
    for lens in LENSES.values():
        with pytest.raises(ValueError, match="multi_class must be 'classwise' or 'confidence' for"):
            finite_sample_radius(
                "smooth_calibration_error", 100, metric_params={"multi_class": lens}
            )


# States


def merged_state(lens, y, proba, weight):
    """The state of two halves, one of which was pickled; labels are named by positions."""
    labels = range(proba.shape[1])
    halves = [
        CalibrationState(labels, multi_class=lens).update(y[rows], proba[rows], weight[rows])
        for rows in (slice(0, None, 2), slice(1, None, 2))
    ]
    return halves[0].merge(pickle.loads(pickle.dumps(halves[1])))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_states_count_the_problems_of_a_lens(n_classes):
    weight = np.random.default_rng(0).random(60)
    lenses = [Ordinal(), Ordinal(np.arange(n_classes)), TopK(2), WithinTop(1), Multilabel()]
    for lens in lenses:
        make = multilabel_problem if isinstance(lens, Multilabel) else problem
        y, proba = make(60, n_classes)
        state = merged_state(lens, y, proba, weight)
        for average in ("auto", "macro", "weighted", None):
            options = {"multi_class": lens, "average": average}
            value, bound = state.evaluate("smooth_calibration_error", **options)
            expected = smooth_calibration_error(y, proba, sample_weight=weight, **options)
            np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12)
            assert np.max(bound) < 1e-15
        if not isinstance(lens, Multilabel):  # names are taken as before
            assert state.evaluate("smooth_calibration_error").value == pytest.approx(
                smooth_calibration_error(y, proba, sample_weight=weight), abs=1e-12
            )
    y, proba = multilabel_problem(60, 2)
    state = CalibrationState(multi_class=Multilabel()).update(y, proba + 1e-6, by=y[:, 0])
    assert not state.is_binary
    assert state.mean_rounding == pytest.approx(1e-6)
    part = state.subgroups[1].evaluate("smooth_calibration_error", multi_class=Multilabel())
    rows = y[:, 0] == 1
    expected = smooth_calibration_error(y[rows], proba[rows] + 1e-6, multi_class=Multilabel())
    assert abs(part.value - expected) <= part.bound == pytest.approx(2e-6)


class Unnamed:
    """Two problems without a name, and with weights of their own."""

    def reduce(self, data):
        for k, weight in ((0, 1.0), (1, 3.0)):
            yield BinaryProblem(data.label == k, data.matrix[:, k], weight)


def test_states_take_problems_without_names():
    y, proba = problem(60)
    state = merged_state(Unnamed(), y, proba, np.ones(60))
    value, _ = state.evaluate("smooth_calibration_error", multi_class=Unnamed())
    expected = smooth_calibration_error(y, proba, multi_class=Unnamed())
    assert value == pytest.approx(expected, abs=1e-12)


class FirstClasses:
    """As many problems as there are labels in the batch."""

    def reduce(self, data):
        for k in np.unique(data.label):
            yield BinaryProblem(data.label == k, data.matrix[:, k], name=k)


def test_states_refuse_other_lenses():
    y, proba = problem()
    state = CalibrationState(multi_class=Ordinal()).update(y, proba)
    for lens in (TopK(2), Ordinal([3, 2, 1, 0]), Multilabel(), WithinTop(2)):
        with pytest.raises(ValueError, match="or the lens whose problems the state counts"):
            state.evaluate("smooth_calibration_error", multi_class=lens)
    with pytest.raises(ValueError, match="must have the same multi_class"):
        state.merge(CalibrationState(multi_class=TopK(2)))
    with pytest.raises(ValueError, match="to_arrow needs a state without multi_class"):
        state.to_arrow()
    with pytest.raises(ValueError, match="resolution must be 0 for a state with multi_class"):
        CalibrationState.from_counts(
            y, proba, np.ones(40), resolution=0.01, multi_class=Ordinal(), labels=range(4)
        )
    with pytest.raises(ValueError, match="must yield problems of all samples"):
        CalibrationState(multi_class=Halves()).update(y, proba)
    state = CalibrationState(range(4), multi_class=FirstClasses()).update(y, proba)
    with pytest.raises(ValueError, match="must yield the same problems for all updates"):
        state.update(y[y < 2], proba[y < 2])
    state = CalibrationState(multi_class=Multilabel()).update(*multilabel_problem())
    for read in (state.confidence, state.to_arrays, state.sample, state.classwise):
        with pytest.raises(ValueError, match="classes that exclude each other; found one of Multi"):
            read()
    with pytest.raises(ValueError, match="classes that exclude each other"):
        state.evaluate("smooth_calibration_error")
    test = CalibrationTest("smooth_calibration_error")
    with pytest.raises(ValueError, match="A test of a state needs two classes"):
        test.fit(state)


# scikit-learn


def test_objects_are_cloned_and_pickled():
    for lens in (*LENSES.values(), Multilabel()):
        copy = pickle.loads(pickle.dumps(lens))
        test = clone(CalibrationTest(metric_params={"multi_class": lens}))
        if not isinstance(lens, WithinTop | Halves):
            assert copy == lens == test.metric_params["multi_class"]
            assert eval(repr(lens)) == lens


def test_scorers():
    y, proba = problem(100)
    model = GaussianNB().fit(proba, y)
    scorer = metrics.make_scorer(smooth_calibration_error, multi_class=Ordinal())
    rows = y != 2  # a class may be absent
    expected = smooth_calibration_error(
        y[rows], model.predict_proba(proba[rows]), labels=range(4), multi_class=Ordinal()
    )
    assert scorer(model, proba[rows], y[rows]) == -expected
    X, y = make_multilabel_classification(100, n_classes=3, random_state=0)
    model = MultiOutputClassifier(LogisticRegression()).fit(X, y)
    scorer = metrics.make_scorer(smooth_calibration_error, multi_class=Multilabel())
    expected = smooth_calibration_error(y, model.predict_proba(X), multi_class=Multilabel())
    assert scorer(model, X, y) == -expected


def test_measures_of_all_classes_see_the_problems_of_a_lens():
    y, proba = problem()
    actual = squared_kernel_calibration_error(y, proba, multi_class=Ordinal(), bandwidth=0.5)
    expected = [
        squared_kernel_calibration_error(
            y <= k, proba[:, : k + 1].sum(axis=1).clip(0, 1), bandwidth=0.5
        )
        for k in range(3)
    ]
    assert actual == pytest.approx(np.mean(expected), abs=1e-12)


@pytest.mark.parametrize(
    ("make", "argument", "change"),
    [
        (ClassGroups, [[0], [1, 2, 3]], lambda groups: groups[0].append(groups[1].pop())),
        (ClassGroups, {"a": [0], "b": [1, 2, 3]}, lambda groups: groups.pop("b")),
        (Ordinal, [0, 1, 2, 3], list.reverse),
        (Ordinal, np.arange(4), lambda ranking: ranking.put([0, 3], [3, 0])),
    ],
)
def test_a_lens_does_not_see_later_changes_of_its_argument(make, argument, change):
    y, proba = problem()
    lens, twin = make(argument), make(pickle.loads(pickle.dumps(argument)))
    change(argument)
    assert repr(lens) == repr(twin) == repr(clone(lens, safe=False))
    values = [smooth_calibration_error(y, proba, multi_class=x) for x in (lens, twin)]
    assert values[0] == values[1]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ClassGroups(group for group in [[0], [1, 2, 3]]), "partition"),
        (lambda: Ordinal(dict.fromkeys(range(4)).keys()), "ranking"),
    ],
)
def test_arguments_that_cannot_be_copied_are_refused_by_name(make, name):
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        smooth_calibration_error(*problem(), multi_class=make())
