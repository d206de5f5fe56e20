import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from functools import partial
from inspect import signature
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import classes_on_grid, on_grid
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import brier_score_loss, log_loss

from skcalib import metrics
from skcalib.lenses import Multilabel
from skcalib.metrics._registry import metrics_of_counts
from skcalib.streaming import CalibrationState

# Everything of KNOWN, and its variants that depend on how many samples stand behind a weight.
MEASURES = [
    *((name, {}) for name in metrics_of_counts()),
    ("expected_calibration_error", {"estimation": "debiased", "norm": "l2"}),
    ("expected_calibration_error", {"distance": "sqeuclidean", "norm": "max"}),
    ("expected_calibration_error", {"norm": "max", "n_bins": 7, "strategy": "quantile"}),
    ("interval_calibration_error", {"method": "surrogate", "random_state": 0}),
    ("laplace_kernel_calibration_error", {"method": "subsample", "random_state": 0, "n_draws": 9}),
    ("lower_distance_to_calibration", {"tol": 1e-3}),
    ("laplace_kernel_calibration_error", {"bandwidth": 0.2, "squared": True}),
    ("cumulative_calibration_error", {"norm": "range"}),
    ("kernel_calibration_error", {"kernel": "exponential", "bandwidth": 0.3}),
    ("squared_kernel_calibration_error", {"estimation": "biased"}),
    ("squared_kernel_calibration_error", {"kernel": "rbf", "bandwidth": 0.5}),
    ("squared_kernel_calibration_error", {"kernel": "laplacian", "class_kernel": None}),
]


def rows_of(state):
    """Counts and sums of weights, but those of subgroups."""
    return [row for row in state.to_arrow().to_pylist() if row["subgroup"] is None]


def same(first, second):
    """Whether two states hold the same to the last bit, all their subgroups included."""
    return first.to_arrow().equals(second.to_arrow(), check_metadata=True)


pyarrow = pytest.importorskip("pyarrow")


# By hand


def test_counts_and_weights_by_hand():
    state = CalibrationState()
    state.update([0, 1, 1], [0.25, 0.25, 0.75], [1, 2, 0]).update([1], [0.25], [3])
    label, proba, weight = state.to_arrays()
    assert_array_equal(label, [0, 1])
    assert_array_equal(proba, [0.25, 0.25])
    assert_array_equal(weight, [1, 5])
    assert (state.n_samples, state.total_weight) == (3, 6)
    table = state.to_arrow().to_pydict()
    assert table["count"] == [1, 2]
    assert table["squared_weight"] == [1, 4 + 9]


@pytest.mark.parametrize(
    ("proba", "point"),
    [
        (0.12344, 0.1234),
        (0.12346, 0.1235),
        (0.0012344, 0.00123),
        (0.000123449, 0.000123),
        (1 - 0.0012344, 1 - 0.00123),
        (0.00004, 0.00004),
        (1e-30, 1e-13),
        (0.0, 0.0),
        (1 - 1e-16, 1 - 1e-13),
        (1.0, 1.0),
    ],
)
def test_points_of_the_grid(proba, point):
    state = CalibrationState().update([1], [proba])
    assert_array_equal(state.to_arrays()[1], [point])
    assert state.mean_rounding == state.max_rounding == abs(proba - point)


def test_moves_by_hand():
    state = CalibrationState(decimals=3).update([0, 1], [0.5004, 0.7], [3, 1])
    assert_allclose(state.mean_rounding, 0.0003, rtol=1e-9)
    assert_allclose(state.max_rounding, 0.0004, rtol=1e-9)
    assert_allclose(state.evaluate("smooth_calibration_error").bound, 2 * 0.0003, rtol=1e-9)
    assert_allclose(state.evaluate("lower_distance_to_calibration").bound, 0.0003, rtol=1e-9)
    assert state.evaluate("expected_calibration_error").bound == np.inf
    state.merge(CalibrationState(decimals=3).update([0, 1], [0.5004, 0.7003], [1, 3]))
    assert_allclose(state.mean_rounding, (4 * 0.0004 + 3 * 0.0003) / 8, rtol=1e-9)
    assert_allclose(state.max_rounding, 0.0004, rtol=1e-9)
    other = CalibrationState(decimals=3).update([0, 1], [0.5, 0.7]).merge(state)
    assert_allclose(other.max_rounding, 0.0004, rtol=1e-9)


def test_moves_of_confidences_by_hand():
    proba = [[0.5004, 0.2996, 0.2], [0.3, 0.6, 0.1]]
    state = CalibrationState([0, 1, 2], decimals=3).update([0, 1], proba, [3, 1])
    assert_allclose(state.mean_rounding, 0.0003, rtol=1e-9)
    assert_allclose(state.max_rounding, 0.0004, rtol=1e-9)


# Measures


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "params"), MEASURES)
def test_measures_are_those_of_the_rows(name, params, weighted):
    label, proba = on_grid(300)
    weight = np.random.default_rng(1).choice([0, 0.5, 1, 3], len(label)) if weighted else None
    state = CalibrationState().update(label, proba, weight)
    value, bound = state.evaluate(name, **params)
    exact = getattr(metrics, name)(label, proba, sample_weight=weight, **params)
    assert_allclose(value, exact, rtol=1e-10, atol=1e-14)
    assert bound == 0


@pytest.mark.parametrize("metric", [brier_score_loss, log_loss])
def test_measures_of_other_packages_get_arrays(metric):
    label, proba = on_grid(200)
    proba = np.clip(proba, 0.01, 0.99)
    state = CalibrationState().update(label, proba)
    assert_allclose(state.evaluate(metric).value, metric(label, proba), rtol=1e-12)


# The share of the bound that the grid uses up where all predictions move the same way.
@pytest.mark.parametrize(
    ("metric", "params", "share"),
    [
        ("smooth_calibration_error", {}, 0.45),
        ("lower_distance_to_calibration", {"tol": 1e-6}, 0.95),
        (brier_score_loss, {}, 0.95),
        (partial(metrics.smooth_calibration_error, n_jobs=1), {}, 0.45),
        ("laplace_kernel_calibration_error", {"squared": True}, 0.4),
        ("squared_kernel_calibration_error", {"bandwidth": 1.0, "estimation": "biased"}, 0.4),
        (
            "squared_kernel_calibration_error",
            {"kernel": "intersection", "estimation": "biased"},
            0.4,
        ),
    ],
)
def test_bounds_are_reached_but_not_exceeded(metric, params, share):
    proba = np.full(50, 0.0114999)  # moved to 0.011
    label = np.ones(50, dtype=int)
    value, bound = CalibrationState(decimals=3).update(label, proba).evaluate(metric, **params)
    function = getattr(metrics, metric) if isinstance(metric, str) else metric
    change = abs(value - function(label, proba, **params))
    assert share * bound <= change <= bound * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_off_the_grid(seed):
    rng = np.random.default_rng(seed)
    proba = rng.random(150) ** rng.integers(1, 6)
    label = (rng.random(150) < proba**0.7).astype(int)
    state = CalibrationState(decimals=3).update(label, proba)
    for name, params in MEASURES:
        value, bound = state.evaluate(name, **params)
        exact = getattr(metrics, name)(label, proba, **params)
        assert abs(value - exact) <= bound
        assert bound > 0


def test_bounds_of_what_is_not_known_are_infinite():
    state = CalibrationState(decimals=3).update([0, 1, 1], [0.2345, 0.2345, 0.7])

    def smooth_calibration_error(y_true, y_proba, sample_weight):
        return 0.0

    assert state.evaluate(smooth_calibration_error).bound == np.inf
    random = {"bandwidth": 0.5, "method": "fourier", "random_state": 0}
    assert state.evaluate("squared_kernel_calibration_error", **random).bound == np.inf


@pytest.mark.skipif(
    "scale_by_half" not in signature(brier_score_loss).parameters, reason="came in 1.7"
)
def test_the_bound_of_twice_the_brier_score_is_twice_as_large():
    state = CalibrationState(decimals=3).update([1], [0.0114999])
    for scale_by_half in (True, False):
        value, bound = state.evaluate(brier_score_loss, scale_by_half=scale_by_half)
        change = abs(value - brier_score_loss([1], [0.0114999], scale_by_half=scale_by_half))
        assert 0.95 * bound <= change <= bound


def test_classes_that_are_left_out_have_no_part_in_the_bound():
    label = [0, 1, 1, 2, 2]
    proba = [[0.6664, 0.1, 0.2336], *[[0.1, 0.7004, 0.1996]] * 2, *[[0.2, 0.2996, 0.5004]] * 2]
    state, name = (
        CalibrationState(decimals=3).update(label, proba),
        "squared_kernel_calibration_error",
    )
    params = {"multi_class": "top-label", "bandwidth": 0.5}
    with pytest.warns(UndefinedMetricWarning, match="leaves out the class"):
        value, bound = state.evaluate(name, **params)
    with pytest.warns(UndefinedMetricWarning, match="leaves out the class"):
        exact = metrics.squared_kernel_calibration_error(label, proba, **params)
    assert 0 < abs(value - exact) <= bound < 0.05
    biased = state.evaluate(name, **params, estimation="biased", average=None)
    exact = metrics.squared_kernel_calibration_error(
        label, proba, **params, estimation="biased", average=None
    )
    assert (abs(biased.value - exact) <= biased.bound).all()


# Chunks, and merging


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_chunks_do_not_matter(size, n_classes):
    label, proba = on_grid(200) if n_classes == 2 else classes_on_grid(60)
    whole = CalibrationState(range(n_classes)).update(label, proba)
    state = CalibrationState(range(n_classes))
    for start in range(0, len(label), size):
        state.update(label[start : start + size], proba[start : start + size])
    assert rows_of(whole) == rows_of(state)
    assert state.n_samples == len(label)
    if n_classes > 2:
        metric = "squared_kernel_calibration_error"
        assert_allclose(state.evaluate(metric).value, whole.evaluate(metric).value, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_merge_is_commutative_and_associative(n_classes):
    rng = np.random.default_rng(0)
    batches = []
    for seed in range(3):
        label, proba = on_grid(40, seed) if n_classes == 2 else classes_on_grid(40, 3, seed)
        if n_classes == 2:
            proba = np.abs(proba - rng.random(40) / 1e5)  # off the grid
        by = rng.choice(["a", "b", "c"], 40)
        batches.append((label, proba, by))

    def state(*which):
        made = CalibrationState(range(n_classes))
        for k in which:
            made.update(*batches[k][:2], by=batches[k][2])
        return made

    left = state(0).merge(state(1)).merge(state(2))
    right = state(0).merge(state(1).merge(state(2)))
    backward = state(2).merge(state(1)).merge(state(0))
    for other in (right, backward, state(0, 1, 2), CalibrationState(range(n_classes)).merge(left)):
        assert set(left.subgroups) == set(other.subgroups) == {"a", "b", "c"}
        pairs = [(left.subgroups[key], other.subgroups[key]) for key in left.subgroups]
        for first, second in [(left, other), *pairs]:
            assert rows_of(first) == rows_of(second)
            assert_allclose(first.mean_rounding, second.mean_rounding, rtol=1e-12)
            if n_classes > 2:
                assert_allclose(first._sums.gap, second._sums.gap, rtol=0, atol=1e-12)
                assert_allclose(first._sums.total, second._sums.total, rtol=1e-12)


@pytest.mark.parametrize("sample", [on_grid, classes_on_grid])
def test_merge_leaves_the_other_as_it_is(sample):
    first, second = (CalibrationState().update(*sample(30, seed=seed)) for seed in (0, 1))
    copy = pickle.loads(pickle.dumps(second))
    empty = CalibrationState().merge(second)
    empty.update(*sample(20, seed=3))
    first.merge(second).update(*sample(20, seed=4))
    assert same(second, copy)


def test_samples_at_one_point_are_pairs():
    for samples in ([1, 1], [1, 1, 1], [1, 1, 0]):
        proba = np.full(len(samples), 0.25)
        state = CalibrationState([0, 1]).update(samples, proba)
        metric = metrics.squared_kernel_calibration_error
        exact = metric(samples, proba, labels=[0, 1], bandwidth=1.0)
        assert_allclose(state.evaluate(metric, bandwidth=1.0).value, exact, rtol=1e-12)


@pytest.mark.parametrize("n", range(3, 30))
def test_a_single_sample_in_a_bin_is_no_pair(n):
    label, proba = np.r_[np.arange(n) % 2, 0], np.r_[np.full(n, 0.31), 0.95]
    metric, params = metrics.expected_calibration_error, {"norm": "l2", "estimation": "debiased"}
    value = CalibrationState().update(label, proba).evaluate(metric, **params).value
    assert_allclose(value, metric(label, proba, **params), rtol=1e-12, atol=1e-15)


def test_pairs_without_weight_are_refused():
    label, proba, weight = [0, 1, 1], [0.2, 0.2, 0.7], [1.0, 1e-12, 1e-13]
    state, name = (
        CalibrationState().update(label, proba, weight),
        "squared_kernel_calibration_error",
    )
    with pytest.raises(ValueError, match="found one sample with almost all weight"):
        state.evaluate(name)
    exact = metrics.squared_kernel_calibration_error(
        label, proba, sample_weight=weight, estimation="biased"
    )
    assert_allclose(state.evaluate(name, estimation="biased").value, exact, rtol=1e-12)


def test_merged_weights():
    label, proba = on_grid(100)
    weight = np.random.default_rng(0).random(100)
    whole = CalibrationState().update(label, proba, np.r_[np.ones(50), weight[50:]])
    state = CalibrationState().update(label[:50], proba[:50])
    state.merge(CalibrationState().update(label[50:], proba[50:], weight[50:]))
    for metric in ("smooth_calibration_error", "squared_kernel_calibration_error"):
        assert_allclose(state.evaluate(metric).value, whole.evaluate(metric).value, rtol=1e-12)


def test_a_state_does_not_grow():
    rng = np.random.default_rng(0)
    state = CalibrationState([0, 1])
    for _ in range(30):
        proba = rng.random(20_000) ** 8
        state.update(rng.random(20_000) < proba, proba)
    assert len(pickle.dumps(state)) < 1.5e6


def test_single_rows_do_not_pile_up():
    state = CalibrationState([0, 1])
    for _ in range(600):
        state.update([1], [0.25])
    assert len(pickle.dumps(state)) < 4e4
    assert_array_equal(state.to_arrays()[2], [600])


# Threads, and interruptions


def test_threads_lose_no_samples():
    """Without a lock more than half of them are lost."""
    rng = np.random.default_rng(0)
    batches = [(rng.integers(0, 2, 20_000), rng.random(20_000)) for _ in range(24)]
    state, alone = CalibrationState([0, 1], decimals=6), CalibrationState([0, 1], decimals=6)
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda batch: state.update(*batch), batches))
    for batch in batches:
        alone.update(*batch)
    assert state.n_samples == 480_000
    assert all(map(np.array_equal, state.to_arrays(), alone.to_arrays()))


@pytest.mark.parametrize("verb", ["update", "merge"])
def test_an_interrupted_update_counts_as_a_whole_or_not_at_all(verb):
    """Interrupted before any 23rd of its lines in turn."""
    (label, proba), by = classes_on_grid(6, 3), list("aabbbb")
    batch = CalibrationState([0, 1, 2]).update(label, proba, by=by)
    before = CalibrationState([0, 1, 2]).update(label[:4], proba[:4], by=by[:4])
    after, n_interrupted, line = deepcopy(before).merge(batch), 0, 0

    def interrupt(frame, event, _):
        nonlocal line
        if "streaming" not in frame.f_code.co_filename:
            return None
        line -= event == "line"
        if event == "line" and line == 0:
            raise KeyboardInterrupt
        return interrupt

    tracer = sys.gettrace()
    while True:
        state, line = deepcopy(before), 1 + 23 * n_interrupted
        sys.settrace(interrupt)
        try:
            state.merge(batch) if verb == "merge" else state.update(label, proba, by=by)
            break
        except KeyboardInterrupt:
            n_interrupted += 1
        finally:
            sys.settrace(tracer)
        assert same(state, before) or same(state, after)
    assert n_interrupted > 9


# More than two classes


@pytest.mark.parametrize("multi_class", ["confidence", "top-label", "classwise"])
@pytest.mark.parametrize("weighted", [False, True])
def test_reductions_are_those_of_the_rows(multi_class, weighted):
    label, proba = classes_on_grid(120)
    weight = np.random.default_rng(1).choice([0, 1, 3.5], len(label)) if weighted else None
    if weighted:
        weight[:4] = 1
    state = CalibrationState().update(label, proba, weight)
    averages = [None, "macro", "weighted"] if multi_class != "confidence" else ["auto"]
    for name, average in product(
        ["smooth_calibration_error", "squared_kernel_calibration_error"], averages
    ):
        params = {"multi_class": multi_class, "average": average}
        value, bound = state.evaluate(name, **params)
        exact = getattr(metrics, name)(label, proba, sample_weight=weight, **params)
        assert_allclose(value, exact, rtol=1e-10)
        assert_array_equal(bound, np.zeros_like(exact))


def test_parts_are_states_of_two_classes():
    label, proba = classes_on_grid(90)
    state = CalibrationState().update(label, proba)
    top = proba.argmax(axis=1)
    right = CalibrationState([False, True]).update(label == top, proba.max(axis=1))
    assert rows_of(state.confidence()) == rows_of(right)
    for k in range(4):
        occurred = CalibrationState([False, True]).update(label == k, proba[:, k])
        assert rows_of(state.classwise()[k]) == rows_of(occurred)
        assert state.top_label()[k].n_samples == np.sum(top == k)


def test_fourier_sums_against_every_pair():
    label, proba = classes_on_grid(40)
    weight = np.random.default_rng(2).random(40) + 0.5
    state = CalibrationState(n_components=8).update(label[:9], proba[:9], weight[:9])
    state.update(label[9:], proba[9:], weight[9:])
    frequencies = state._sums.frequencies
    total = pairs = 0.0
    for i in range(40):
        for j in range(40):
            kernel = np.mean(np.cos(frequencies @ (proba[i] - proba[j])))
            gaps = [np.eye(4)[label[k]] - proba[k] for k in (i, j)]
            if i != j:
                total += weight[i] * weight[j] * kernel * (gaps[0] @ gaps[1])
                pairs += weight[i] * weight[j]
    value, bound = state.evaluate("squared_kernel_calibration_error")
    assert_allclose(value, total / pairs, rtol=1e-10)
    assert bound == 0


@pytest.mark.parametrize("kernel", ["total-variation", "exponential", "rbf"])
def test_fourier_sums_are_close_to_the_kernel(kernel):
    """The standard error of a mean of 4000 cosines, weighted by residuals, is below 0.02."""
    label, proba = classes_on_grid(200)
    params = {"kernel": kernel, "bandwidth": 0.7}
    state = CalibrationState(n_components=4000, **params).update(label, proba)
    for estimation in ("biased", "unbiased"):
        metric = metrics.squared_kernel_calibration_error
        exact = metric(label, proba, estimation=estimation, **params)
        assert abs(state.evaluate(metric, estimation=estimation).value - exact) < 0.004
    root = state.evaluate("kernel_calibration_error").value
    biased = state.evaluate("squared_kernel_calibration_error", estimation="biased").value
    assert_allclose(root**2, biased, rtol=1e-12)


# Subgroups


def test_subgroups_are_states_of_their_rows():
    label, proba = on_grid(200)
    rng = np.random.default_rng(0)
    sex, age = rng.choice(["f", "m"], 200), rng.choice([30, 60], 200)
    weight = rng.choice([0, 1, 2.0], 200)
    state = CalibrationState([0, 1])
    for rows in np.array_split(np.arange(200), 3):
        by = {"sex": sex[rows], "age": age[rows]}
        state.update(label[rows], proba[rows], weight[rows], by=by)
    assert set(state.subgroups) == set(product(["f", "m"], [30, 60]))
    for (value, number), subgroup_state in state.subgroups.items():
        rows = (sex == value) & (age == number)
        expected = CalibrationState([0, 1]).update(label[rows], proba[rows], weight[rows])
        assert rows_of(subgroup_state) == rows_of(expected)
    assert sum(subgroup.n_samples for subgroup in state.subgroups.values()) == state.n_samples


# Storage


@pytest.mark.parametrize(
    "labels", [[0, 1], ["no", "yes"], [False, True], [-3, 7], ["a", "b", "c"], [0, 1, 2]]
)
def test_stored_and_resumed(labels, tmp_path):
    pytest.importorskip("pyarrow.parquet")
    n_classes = len(labels)
    code, proba = on_grid(90) if n_classes == 2 else classes_on_grid(90, n_classes)
    if n_classes == 2:
        proba[:45] = np.abs(proba[:45] - 0.00003)  # off the grid
    label = np.array(labels)[code]
    weight = np.random.default_rng(0).random(90)
    by = np.array(["x", 2, None, True], dtype=object)[np.arange(90) % 4]
    options = {"labels": labels if labels[0] == "no" else None}
    whole = CalibrationState(**options).update(label[:45], proba[:45], weight[:45], by=by[:45])
    pyarrow.parquet.write_table(whole.to_arrow(), tmp_path / "state.parquet")
    resumed = CalibrationState.from_arrow(pyarrow.parquet.read_table(tmp_path / "state.parquet"))
    pickled = pickle.loads(pickle.dumps(whole))
    for state in (whole, resumed, pickled):
        state.update(label[45:], proba[45:], weight[45:], by=by[45:])
    for state in (resumed, pickled):
        assert same(whole, state)
        assert state.classes.dtype == whole.classes.dtype
        assert list(map(repr, state.subgroups)) == list(map(repr, whole.subgroups))
        for metric in ("smooth_calibration_error", "squared_kernel_calibration_error"):
            assert state.evaluate(metric) == whole.evaluate(metric)


def test_an_empty_state_is_stored():
    assert CalibrationState.from_arrow(CalibrationState([0, 1]).to_arrow()).n_samples == 0


def test_numbers_of_numpy_are_stored():
    state = CalibrationState(decimals=np.int64(5), bandwidth=np.float32(0.5)).update(
        [0, 1, 1], [0.1, 0.5, 0.9]
    )
    assert same(CalibrationState.from_arrow(state.to_arrow()), state)


def test_metadata_are_json():
    table = CalibrationState().update([0, 1, 1], [0.1, 0.5, 0.9]).to_arrow()
    metadata = json.loads(table.schema.metadata[b"skcalib.CalibrationState"])
    assert metadata["version"] == 2
    assert metadata["states"][0]["options"]["decimals"] == 4


def test_no_attribute_hands_out_an_array_that_can_be_written():
    labels = np.array([0, 1, 2])
    state = CalibrationState(labels).update([0, 1, 2], np.eye(3), by=["a", "b", "b"])
    labels[0] = 7  # the caller's array; the state has a copy
    states = [state, state.confidence(), *state.classwise().values(), *state.top_label().values()]
    states += [CalibrationState().merge(state), *state.subgroups.values(), copy(state)]
    states += [CalibrationState(multi_class=Multilabel()).update([[0, 1], [1, 1]], np.eye(2))]
    states += [pickle.loads(pickle.dumps(state)), CalibrationState.from_arrow(state.to_arrow())]
    for each in states:
        values = [getattr(each, name) for name in dir(each) if not name.startswith("_")]
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        assert [array.flags.writeable for array in arrays] == [False]
    assert state.classes.tolist() == [0, 1, 2]


# Counts


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_samples(weighted):
    label, proba = on_grid(300)
    weight = np.random.default_rng(0).choice([1.0, 2.0], 300) if weighted else None
    key, row, count = np.unique(
        np.stack([proba, label]), axis=1, return_inverse=True, return_counts=True
    )
    sums = {}
    if weighted:
        sums["weight"] = np.bincount(row.ravel(), weight)
        sums["squared_weight"] = np.bincount(row.ravel(), weight**2)
    counted = CalibrationState.from_counts(key[1].astype(int), key[0], count, **sums)
    state = CalibrationState().update(label, proba, weight)
    assert rows_of(counted) == rows_of(state)
    assert (counted.n_samples, counted.total_weight) == (state.n_samples, state.total_weight)
    metric = "squared_kernel_calibration_error"
    assert counted.evaluate(metric) == state.evaluate(metric)


def test_counts_of_several_classes_and_subgroups():
    label, proba = classes_on_grid(60)
    count = np.arange(60) % 3
    by = np.array(["a", "b"])[np.arange(60) % 2]
    counted = CalibrationState.from_counts(label, proba, count, by=by)
    state = CalibrationState().update(
        *(np.repeat(array, count, axis=0) for array in (label, proba))
    )
    assert rows_of(counted) == rows_of(state)
    assert_allclose(counted._sums.gap, state._sums.gap, atol=1e-12)
    assert counted.subgroups["b"].n_samples == count[by == "b"].sum()


def test_rounding_may_change_the_predicted_class():
    proba, params = [[0.5, 0.49, 0.01], [0.1, 0.8, 0.1]], {"multi_class": "confidence"}
    for rows, bound in ((slice(0, 2), np.inf), (slice(1, 2), 2 * 0.005)):
        state = CalibrationState.from_counts(
            [0, 1][rows], proba[rows], [3, 4][rows], labels=[0, 1, 2], resolution=0.01
        )
        evaluation = state.evaluate("smooth_calibration_error", **params)
        assert_allclose(evaluation.bound, bound, rtol=1e-12)
        assert_allclose(
            state.evaluate("smooth_calibration_error", multi_class="classwise").bound, 0.01
        )


def test_counts_of_rounded_predictions_have_a_bound():
    state = CalibrationState.from_counts([0, 1], [0.25, 0.75], [5, 7], resolution=0.01)
    assert_allclose(state.evaluate("smooth_calibration_error").bound, 2 * 0.005, rtol=1e-12)
    assert state.max_rounding == 0.005
    classes = CalibrationState([0, 1, 2]).update([1], [[0.2, 0.5, 0.3]])
    assert classes.evaluate("kernel_calibration_error").bound == 0
    rounded = CalibrationState.from_counts([0, 1, 2], np.eye(3), [1, 2, 3], resolution=0.01)
    for state in (rounded, classes.merge(rounded), CalibrationState.from_arrow(classes.to_arrow())):
        assert state.evaluate("squared_kernel_calibration_error").bound == np.inf


def test_samples_of_a_state():
    label, proba = on_grid(80)
    state = CalibrationState().update(label, proba)
    samples = np.stack(state.sample())
    order, expected = np.lexsort(samples), np.stack([label, proba])
    assert_array_equal(samples[:, order], expected[:, np.lexsort(expected)])
    assert (np.diff(samples[1]) < 0).any()  # not sorted, which would mislead folds
    few = list(zip(*state.sample(30, random_state=0), strict=True))
    available = list(zip(label, proba, strict=True))
    assert len(few) == 30
    assert all(few.count(row) <= available.count(row) for row in few)
    assert len({tuple(state.sample(20, random_state=seed)[1]) for seed in range(100)}) == 100


def test_small_integers_are_decimals():
    label, proba = on_grid(20)
    state = CalibrationState(decimals=np.int8(4)).update(label, proba)
    assert state.to_arrow().equals(CalibrationState(decimals=4).update(label, proba).to_arrow())


def test_repr_says_what_is_counted():
    assert repr(CalibrationState()) == "CalibrationState(n_samples=0)"
    state = CalibrationState(labels=["a", "b"]).update(
        ["a", "b", "b"], [0.2, 0.7, 0.9], by=[1, 1, 2]
    )
    assert repr(state) == "CalibrationState(n_samples=3, classes=['a', 'b'], n_subgroups=2)"


def test_a_pickle_that_was_changed_is_refused():
    code, proba = on_grid(50)
    state = CalibrationState().update(code, proba)
    content = pickle.dumps(state)
    assert same(pickle.loads(content), state)
    assert same(deepcopy(state), state)
    # before the digest, and after the name of the class
    for position in np.linspace(100, len(content) - 60, 40).astype(int):
        changed = bytearray(content)
        changed[position] ^= 1
        with pytest.raises(ValueError, match="CalibrationState must be unchanged; found another"):
            pickle.loads(bytes(changed))
