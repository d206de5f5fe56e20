"""The test of all subgroups at once."""

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from test_estimator_laws import EXPECTED_OF_ALL, REFUSALS, causes

from skcalib._data import check_predictions
from skcalib._inputs.by import check_by
from skcalib._inputs.drawing import draw_labels
from skcalib._statistics.residuals import ScoreExcess
from skcalib._statistics.squared_error import SquaredKernelError
from skcalib.forecasts import GaussianForecast
from skcalib.hypothesis_tests import CalibrationTest, SubgroupCalibrationTest
from skcalib.hypothesis_tests._subgroups import SubgroupStatistic, standardize, step_down_p_values


def problem(rng, sizes, truth=lambda proba, code: proba, n_classes=2):
    """Probabilities, labels, and the subgroup of each sample, in random order."""
    code = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    proba = rng.dirichlet(np.ones(n_classes), size=len(code))
    proba = proba[:, 1] if n_classes == 2 else proba
    return proba, draw_labels(np.clip(truth(proba, code), 0, 1), 1, rng)[0], code


def shifted(subgroup, shift):
    return lambda proba, code: proba + shift * (code == subgroup)


def standardised_by_loops(values):
    n, mean, result = len(values), np.mean(values), []
    place = -1 - max(1, n // 100)
    usual = (sorted(values)[place - 1] + sorted(values)[place]) / 2 - mean
    for value in values:
        rank, t = sum(other >= value for other in values), (value - mean) / usual
        share = (1 + t / (1 + abs(t))) / 2
        result.append(n * max(t, 1) if rank == 1 else n / (rank - share))
    return result


def step_down_by_loops(standard):
    observed, remaining, adjusted, last = standard[0], set(range(standard.shape[1])), {}, 0.0
    while remaining:
        worst = max(remaining, key=lambda k: observed[k])
        largest = [max(row[k] for k in remaining) for row in standard]
        last = adjusted[worst] = max(last, np.mean([one >= observed[worst] for one in largest]))
        remaining.remove(worst)
    return [adjusted[k] for k in sorted(adjusted)]


def test_standardisation_equals_loops():
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=300), np.round(rng.exponential(size=20), 1)):
        np.testing.assert_allclose(standardize(values), standardised_by_loops(values), rtol=1e-12)
    # both sides count where there is a sign: 4 is as far out as -4
    signed = standardize(np.array([-4.0, -1, 0, 1, 4]), is_two_sided=True)
    np.testing.assert_allclose(signed, signed[::-1])
    assert (np.diff(signed[2:]) > 0).all()


def test_standardisation_keeps_the_order_and_takes_constants():
    rng = np.random.default_rng(0)
    values = np.sort(np.append(rng.exponential(size=50), np.inf))
    assert (np.diff(standardize(values)) > 0).all()
    np.testing.assert_array_equal(standardize(np.zeros(10)), 10 / 9.5)
    nearly_equal = 0.1 + 1e-16 * np.arange(10)
    np.testing.assert_allclose(standardize(nearly_equal), 10 / 9.5, rtol=1e-13)
    assert standardize(np.array([1.0, 2, 3, 4, 1e200]))[-1] > 1e100  # without a warning


def test_step_down_equals_loops():
    rng = np.random.default_rng(0)
    for _ in range(20):
        standard = rng.exponential(size=(15, 4))
        standard[0] *= 2
        np.testing.assert_allclose(step_down_p_values(standard), step_down_by_loops(standard))


def test_p_values_are_exactly_uniform_under_exchangeability():
    # every one of the B + 1 rows in turn as the data
    rng = np.random.default_rng(0)
    values = rng.exponential(size=(20, 3)) * [1.0, 100.0, 0.01]
    smallest = []
    for k in range(20):
        columns = np.roll(values, -k, axis=0).T
        standard = np.column_stack([standardize(column) for column in columns])
        smallest.append(step_down_p_values(standard).min())
    assert sorted(smallest) == pytest.approx(np.arange(1, 21) / 20)


@pytest.mark.parametrize("statistic", ["omnibus", "skce", "smooth_calibration_error"])
def test_a_single_subgroup_is_the_test_of_all_samples(statistic):
    proba, y, _ = problem(np.random.default_rng(1), [60], shifted(0, 0.1))
    options = {"n_resamples": 99, "random_state": 0}
    whole = CalibrationTest(statistic, **options).fit(proba, y)
    test = SubgroupCalibrationTest(statistic, **options).fit(proba, y, by=np.ones(60, int))
    assert test.p_value_ == whole.p_value_
    assert test.subgroup_p_values_ == {1: whole.p_value_}
    assert test.subgroup_sizes_ == {1: 60}
    if statistic != "omnibus":
        assert test.subgroup_statistics_[1] == pytest.approx(whole.statistic_, abs=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_statistics_are_those_of_the_samples_of_each_subgroup(n_classes):
    rng = np.random.default_rng(0)
    proba, y, code = problem(rng, [30, 5, 12], n_classes=n_classes)
    weight = rng.random(47)
    test = SubgroupCalibrationTest("skce", n_resamples=9, labels=range(n_classes))
    test.fit(proba, y, weight, by=np.array(["c", "a", "b"])[code])
    assert test.subgroups_ == ["a", "b", "c"]
    assert list(test.subgroup_sizes_.values()) == [5, 12, 30]
    for label, k in zip("cab", range(3), strict=True):
        own = code == k
        alone = CalibrationTest("skce", n_resamples=1, labels=range(n_classes))
        expected = alone.fit(proba[own], y[own], weight[own]).statistic_
        assert test.subgroup_statistics_[label] == pytest.approx(expected, rel=1e-12)


def test_draws_are_handed_to_their_subgroups():
    rng = np.random.default_rng(0)
    proba, y, code = problem(rng, [4, 7])
    order = np.argsort(code, kind="stable")
    data = check_predictions(y[order], proba[order], labels=[0, 1])
    parts = [slice(0, 4), slice(4, 11)]
    statistics = [
        ScoreExcess(data.take(parts[0]), "log_loss"),
        SquaredKernelError(data.take(parts[1])),
    ]
    together = SubgroupStatistic(data, statistics, parts)
    labels = draw_labels(data.proba, 5, rng)
    signs = rng.choice([-1.0, 1.0], size=(5, 11))
    for values, alone in (
        (together(labels), [statistics[0](labels[:, :4]), statistics[1](labels[:, 4:])]),
        (
            together.flip_signs(signs),
            [statistics[0].flip_signs(signs[:, :4]), statistics[1].flip_signs(signs[:, 4:])],
        ),
    ):
        np.testing.assert_array_equal(values.T, alone)
        np.testing.assert_array_equal(together.split_columns(values), alone)


def test_a_large_subgroup_is_found_among_small_ones():
    rng = np.random.default_rng(0)
    sizes = [600, *[20] * 10]
    proba, y, code = problem(rng, sizes, shifted(0, 0.12))
    test = SubgroupCalibrationTest(n_resamples=199, random_state=0).fit(proba, y, by=code)
    assert test.p_value_ == test.subgroup_p_values_[0] <= 0.01
    assert min(test.subgroup_p_values_[k] for k in range(1, 11)) > 0.05
    # the raw error of some small subgroup is nearly always the largest
    error = SubgroupCalibrationTest("kernel_calibration_error", n_resamples=1)
    statistics = error.fit(proba, y, by=code).subgroup_statistics_
    assert statistics[0] < max(statistics.values())


def test_a_small_subgroup_is_found_beside_a_large_one():
    rng = np.random.default_rng(0)
    proba, y, code = problem(rng, [600, 40], shifted(1, 0.4))
    test = SubgroupCalibrationTest(n_resamples=199, random_state=0).fit(proba, y, by=code)
    assert test.subgroup_p_values_[1] <= 0.01
    assert test.subgroup_p_values_[0] > 0.05


def test_order_containers_jobs_and_weights_of_0_do_not_matter():
    rng = np.random.default_rng(0)
    proba, y, code = problem(rng, [30, 20, 10], shifted(0, 0.2))
    frame = pd.DataFrame(
        {"a": code > 0, "b": np.array(list("xyz"))[code]}, index=rng.permutation(60)
    )
    test = SubgroupCalibrationTest(n_resamples=49, random_state=0)
    expected = test.fit(proba, y, by=frame).subgroup_p_values_
    assert list(expected) == [(False, "x"), (True, "y"), (True, "z")]
    order = rng.permutation(60)
    other = clone(test).set_params(n_jobs=2)
    by = {name: frame[name].iloc[order] for name in "ab"}
    with joblib.parallel_config("threading"):
        other.fit(proba[order], y[order], by=by)
    assert other.subgroup_p_values_ == expected
    weight = np.append(np.ones(60), 0.0)
    by = np.vstack([frame.to_numpy(dtype=object), [True, "more"]])
    other = clone(test)
    other.fit(np.append(proba, 0.5), np.append(y, 1), weight, by=by)
    assert other.subgroup_p_values_ == expected


def test_forecasts():
    rng = np.random.default_rng(0)
    mean, code = rng.normal(size=150), np.arange(150) % 3
    outcome = mean + rng.normal(size=150) * np.where(code == 1, 3.0, 1.0)
    test = SubgroupCalibrationTest(n_resamples=99, random_state=0)
    test.fit(GaussianForecast(mean, np.ones(150)), outcome, by=code)
    assert test.subgroup_p_values_[1] == 0.01
    assert min(test.subgroup_p_values_[0], test.subgroup_p_values_[2]) > 0.05


def test_certain_predictions_and_single_samples():
    test = SubgroupCalibrationTest(n_resamples=19, labels=[0, 1], random_state=0)
    test.fit([0.0, 1.0, 0.3, 0.6, 0.2], [0, 1, 1, 1, 0], by=list("aabcc"))
    assert test.subgroup_p_values_["a"] == 1
    assert 0 < test.p_value_ == min(test.subgroup_p_values_.values())
    impossible = clone(test).fit([0.0, 1.0, 0.3, 0.6, 0.2], [1, 1, 1, 1, 0], by=list("aabcc"))
    assert impossible.subgroup_p_values_["a"] == 0.05


def correlated(rng, n_groups):
    """Calibrated predictions, with labels that are the same within groups of 10, by halves."""
    group = np.repeat(np.arange(n_groups), 10)
    proba = rng.random(n_groups)[group]
    return proba, (rng.random(n_groups)[group] < proba).astype(int), group, group % 2


def test_groups_across_subgroups():
    proba, y, group, by = correlated(np.random.default_rng(3), 60)
    test = SubgroupCalibrationTest("skce", n_resamples=99, random_state=0)
    assert test.fit(proba, y, by=by, groups=group).p_value_ > 0.05
    assert test.fit(proba, y, by=by).p_value_ == 0.01  # a test that takes them for independent


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, {"by": [0, 1]}, r"same length; .*\(the predictions: 4, by: 2\)"),
        ({}, {"by": "sex"}, "by must hold the subgroup"),
        ({"statistic": "skce"}, {"by": [0, 0, 0, 1]}, r"at least 2 .*In subgroup 1; metric_params"),
        ({"statistic": lambda y, p: np.nan}, {"by": [0, 0, 1, 1]}, "statistic must be finite"),
        ({"statistic": lambda y, p: [1, 2]}, {"by": [0, 0, 1, 1]}, "must return one number"),
        ({"statistic": "smooth_calibration_error"}, {"groups": [0, 0, 1, 1]}, "made of residuals"),
    ],
)
def test_bad_input(options, arguments, message):
    arguments = {"by": [0, 0, 1, 1]} | arguments
    with pytest.raises(ValueError, match=message):
        SubgroupCalibrationTest(n_resamples=9, **options).fit(
            [0.2, 0.7, 0.4, 0.1], [0, 1, 1, 0], **arguments
        )


class OfFirstColumn(SubgroupCalibrationTest):
    """Finds the subgroups itself, as the checks of scikit-learn pass none."""

    def fit(self, X, y, sample_weight=None):
        array = np.asarray(X)
        by = np.zeros(len(array) if array.ndim else X.shape[0], dtype=bool)
        if array.dtype.kind == "f" and array.size:
            by = array.reshape(len(array), -1)[:, 0] > 0.5
        return super().fit(X, y, sample_weight, by=by)


@pytest.mark.filterwarnings("ignore")
def test_probability_estimators_fail_declared_checks_only():
    results = check_estimator(
        OfFirstColumn(n_resamples=9, random_state=0),
        expected_failed_checks=EXPECTED_OF_ALL,
        on_fail=None,
        on_skip=None,
    )
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    refused = [" | ".join(causes(r["exception"])) for r in results if r["status"] == "xfail"]
    assert [text for text in refused if not any(one in text for one in REFUSALS)] == []


def test_by_can_be_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        test = SubgroupCalibrationTest().set_fit_request(by=True, groups=True)
        assert test.get_metadata_routing().fit.requests["by"] is True


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["auto", "skce", "log_loss"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_size(statistic, n_classes):
    repetitions, level, rejected, wrong = 400, 0.1, 0, 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        proba, y, code = problem(rng, [60, 20, 8, 3], n_classes=n_classes)
        test = SubgroupCalibrationTest(
            statistic, n_resamples=19, labels=range(n_classes), random_state=seed
        )
        rejected += test.fit(proba, y, by=code).p_value_ <= level
        # a subgroup that is far off takes no error rate from the others
        if n_classes == 2:
            y[code == 0] = proba[code == 0] < 0.5
            p_values = test.fit(proba, y, by=code).subgroup_p_values_
            wrong += min(p_values[k] for k in (1, 2, 3)) <= level
    bound = level + 4 * np.sqrt(level * (1 - level) / repetitions)
    assert rejected / repetitions <= bound
    assert wrong / repetitions <= bound


@pytest.mark.slow
def test_size_with_groups():
    repetitions, level, rejected = 300, 0.1, 0
    for seed in range(repetitions):
        proba, y, group, by = correlated(np.random.default_rng(seed), 60)
        test = SubgroupCalibrationTest(n_resamples=19, labels=[0, 1], random_state=seed)
        rejected += test.fit(proba, y, by=by, groups=group).p_value_ <= level
    assert rejected / repetitions <= level + 4 * np.sqrt(level * (1 - level) / repetitions)


@pytest.mark.slow
def test_power_of_standardised_and_raw_maxima():
    """The figure behind the standardisation: a large subgroup beside smaller ones, off by 0.06."""
    n_raw = n_standardised = n_smallest = 0
    sizes, repetitions = [400, 200, 100, 50], 300
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        proba, y, code = problem(rng, sizes, shifted(0, 0.06))
        columns = []
        for rows in check_by(code, len(code)).rows():
            data = check_predictions(y[rows], proba[rows], labels=[0, 1])
            labels = np.vstack([data.label, draw_labels(data.proba, 99, rng)])
            columns.append(np.sqrt(SquaredKernelError(data, estimation="biased")(labels)))
        values = np.column_stack(columns)
        standard = np.column_stack([standardize(column) for column in columns])
        n_smallest += np.mean(values[1:].argmax(axis=1) == 3)
        n_raw += np.mean(values.max(axis=1) >= values[0].max()) <= 0.05
        n_standardised += step_down_p_values(standard).min() <= 0.05
    assert n_smallest / repetitions > 0.6
    assert n_raw / repetitions < 0.12
    assert n_standardised / repetitions > 2 * n_raw / repetitions + 0.1
