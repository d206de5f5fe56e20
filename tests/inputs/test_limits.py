"""Memory and time are judged before a computation starts."""

from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import EfficiencyWarning

from skcalib import metrics
from skcalib._inputs import warnings as own_warnings
from skcalib._inputs.warnings import check_memory, machine_memory, warn_if_slow
from skcalib.datasets import make_covariate_shift, make_dirichlet_family, make_forecasts
from skcalib.display import ReliabilityDisplay, ScoreDecompositionDisplay
from skcalib.forecasts import GaussianForecast
from skcalib.function_classes import Bounded, Lipschitz, RKHSBall
from skcalib.hypothesis_tests import (
    CalibrationTest,
    CoxTest,
    EquivalenceTest,
    HosmerLemeshowTest,
    UCMETest,
    find_miscalibrated_subgroups,
)
from skcalib.losses import soft_binned_calibration_loss
from skcalib.metrics import (
    any_decision_calibration_error,
    conditional_kernel_calibration_error,
    laplace_kernel_calibration_error,
    local_calibration_error,
    squared_kernel_calibration_error,
    weighted_calibration_error,
)
from skcalib.recalibration import (
    AnyDecisionRecalibrator,
    PairwiseScalingRecalibrator,
    ScalingBinningRecalibrator,
)
from skcalib.streaming import CalibrationState
from skcalib.uncertainty import confidence_interval


def problem(n, n_classes=3):
    rng = np.random.default_rng(0)
    return np.arange(n) % n_classes, rng.dirichlet(np.ones(n_classes), size=n)


@pytest.mark.parametrize(("n_pages", "expected"), [(1000, 4096 * 1000), (-1, np.inf)])
def test_memory_of_the_machine(n_pages, expected, monkeypatch):
    known = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": n_pages}  # -1 stands for an unknown number
    monkeypatch.setattr("os.sysconf", known.__getitem__, raising=False)
    assert machine_memory() == expected


def test_memory_of_an_unknown_system_has_no_limit(monkeypatch):
    monkeypatch.delattr("os.sysconf", raising=False)
    assert machine_memory() == np.inf
    check_memory(1e30, "method='exact'", "Take less.")


def test_memory_of_this_machine():
    assert machine_memory() > 1e7


def test_message_of_memory(monkeypatch):
    monkeypatch.setattr(own_warnings, "machine_memory", lambda: 4e9)
    check_memory(3e9, "method='exact'", "Take less.")
    with pytest.raises(MemoryError) as error:
        check_memory(3.01e12, "method='exact'", "Take less.")
    assert str(error.value) == (
        "method='exact' needs 3,010.0 GB of memory; found 4.0 GB in this machine, of which it may "
        "take 75%. Take less."
    )


@pytest.mark.parametrize(("seconds", "time"), [(660, "11 minutes"), (36000, "10.0 hours")])
def test_message_of_time(seconds, time):
    with pytest.warns(EfficiencyWarning, match=rf"^All pairs will take some {time}\. Take less\.$"):
        warn_if_slow(seconds, "All pairs", "Take less.")


def test_short_times_are_not_expected():
    warn_if_slow(600, "All pairs", "Take less.")


def test_exact_conditional_error_needs_memory(monkeypatch):
    label, proba = problem(100)
    monkeypatch.setattr(own_warnings, "machine_memory", lambda: 1.9 * 8 * 100**2)
    conditional_kernel_calibration_error(label, proba)
    monkeypatch.setattr(own_warnings, "machine_memory", lambda: 1.1 * 8 * 100**2)
    with pytest.raises(MemoryError, match=r"method='exact' .* Pass method='fourier' or 'nystroem'"):
        conditional_kernel_calibration_error(label, proba)
    few = {"method": "fourier", "random_state": 0, "n_components": 40}
    conditional_kernel_calibration_error(label, proba, **few)
    with pytest.raises(MemoryError, match=r"n_components=60 needs .* Choose fewer components"):
        conditional_kernel_calibration_error(label, proba, **few | {"n_components": 60})
    conditional_kernel_calibration_error(label, proba, kernel="linear")  # needs no such matrix


def test_many_components_need_memory(monkeypatch):
    label, proba = problem(100)
    monkeypatch.setattr(own_warnings, "machine_memory", lambda: 1.4 * 8 * 100 * 20)
    options = {"method": "nystroem", "kernel": "rbf", "bandwidth": 1.0, "regularization": 1.0}
    conditional_kernel_calibration_error(label, proba, n_components=20, **options)
    with pytest.raises(MemoryError, match=r"n_components=30 needs .* Choose fewer components"):
        conditional_kernel_calibration_error(label, proba, n_components=30, **options)


@pytest.mark.parametrize(
    ("function_class", "n_matrices"),
    [(Lipschitz() & Bounded(), 6), (RKHSBall(), 4)],
    ids=["Lipschitz", "RKHSBall"],
)
def test_programs_of_all_pairs_need_memory(function_class, n_matrices, monkeypatch):
    pytest.importorskip("cvxpy")
    label, proba = problem(70)
    least = n_matrices * 8 * 70**2 / own_warnings.MAX_MEMORY_SHARE
    monkeypatch.setattr(own_warnings, "machine_memory", lambda: 1.01 * least)
    weighted_calibration_error(label, proba, function_class=function_class)
    monkeypatch.setattr(own_warnings, "machine_memory", lambda: 0.99 * least)
    with pytest.raises(MemoryError, match=r"at 70 distinct predictions needs .* subsample"):
        weighted_calibration_error(label, proba, function_class=function_class)


LABEL, PROBA = np.arange(30) % 2, np.linspace(0, 1, 30)


@pytest.mark.parametrize("number", [10**8, 2**31, 2**63])
@pytest.mark.parametrize(
    ("call", "name", "most"),
    [
        (partial(metrics.expected_calibration_error, LABEL, PROBA), "n_bins", "1,000,000"),
        (partial(metrics.laplace_kernel_calibration_error, LABEL, PROBA), "n_draws", "10,000,000"),
        (partial(metrics.squared_kernel_calibration_error, LABEL, PROBA), "n_components", "1,0"),
        (partial(soft_binned_calibration_loss, PROBA, LABEL), "n_bins", "10,000"),
        (CalibrationState, "n_components", "1,000,000"),
        (lambda **one: UCMETest(**one).fit(PROBA, LABEL), "n_locations", "1,000,000"),
        (lambda **one: HosmerLemeshowTest(**one).fit(PROBA, LABEL), "n_bins", "1,000,000"),
        (lambda **one: ScalingBinningRecalibrator(**one).fit(PROBA, LABEL), "n_bins", "1,000,000"),
        (partial(ReliabilityDisplay.from_predictions, LABEL, PROBA), "n_bins", "1,000"),
        (partial(find_miscalibrated_subgroups, LABEL, PROBA, PROBA), "n_bins", "1,000,000"),
    ],
)
def test_numbers_beyond_memory_and_time_are_refused(call, name, most, number):
    with pytest.raises(
        ValueError, match=f"'{name}' .* to {most}.* takes memory and time.*{number}"
    ):
        call(**{name: number})


def test_samples_of_a_state_need_memory():
    state = CalibrationState.from_counts([0, 1], [0.1, 0.5], [10**15, 10**15])
    with pytest.raises(MemoryError, match=r"A sample of 2,000,000,000,000,000 .* Pass n_samples"):
        state.sample()
    assert len(state.sample(10)[0]) == 10


def test_functions_of_many_points_need_memory_and_time(monkeypatch):
    pytest.importorskip("cvxpy")
    monkeypatch.setattr(own_warnings, "MAX_SILENT_SECONDS", 0)
    lipschitz = Lipschitz() & Bounded(0.5)
    with pytest.warns(EfficiencyWarning, match=r"at 30 distinct .* call smooth_calibration_error"):
        weighted_calibration_error(LABEL, PROBA, function_class=lipschitz)
    monkeypatch.setattr(own_warnings, "machine_memory", lambda: 1e5)
    with pytest.raises(MemoryError, match=r"Lipschitz\(\) at 30 distinct predictions needs"):
        weighted_calibration_error(LABEL, PROBA, function_class=lipschitz)


def test_exact_conditional_error_warns_of_its_time(monkeypatch):
    monkeypatch.setattr(own_warnings, "MAX_SILENT_SECONDS", 0)
    with pytest.warns(EfficiencyWarning, match=r"method='exact' will take .*method='fourier'"):
        conditional_kernel_calibration_error(*problem(100))


def test_sums_over_pairs_warn_of_their_time(monkeypatch):
    label, proba = problem(600)  # three rows of tiles
    squared_kernel_calibration_error(label, proba)
    monkeypatch.setattr(own_warnings, "MAX_SILENT_SECONDS", 0)
    with pytest.warns(EfficiencyWarning, match=r"all pairs of 600 samples .*method='fourier'"):
        squared_kernel_calibration_error(label, proba)


def test_draws_of_a_test_warn_of_their_time(monkeypatch):
    label, proba = problem(50, 2)
    monkeypatch.setattr("skcalib._inputs.drawing._MAX_BATCH_RESIDUALS", 2 * 50)  # two draws
    test = CalibrationTest("skce", n_resamples=99, random_state=0)
    expected = test.fit(proba, label).p_value_
    monkeypatch.setattr(own_warnings, "MAX_SILENT_SECONDS", 1e-9)
    with pytest.warns(EfficiencyWarning, match=r"n_resamples=99 will take .* 'fourier'"):
        assert test.fit(proba, label).p_value_ == expected


@pytest.mark.parametrize(
    "call",
    [
        partial(confidence_interval, "smooth_calibration_error", PROBA > 0, np.full(30, 0.6)),
        lambda **options: EquivalenceTest(margin=0.1, **options).fit(np.full(30, 0.6), PROBA > 0),
    ],
    ids=["interval", "test"],
)
def test_draws_warn_of_their_time(call, monkeypatch):
    monkeypatch.setattr(own_warnings, "MAX_SILENT_SECONDS", 0)
    with pytest.warns(EfficiencyWarning) as record:
        call(n_resamples=64, random_state=0)
    (expected,) = [str(one.message) for one in record]
    assert "n_resamples=64 will take " in expected


def test_local_error_warns_of_its_time(monkeypatch):
    rng = np.random.default_rng(0)
    feature = rng.normal(size=300)
    forecast = feature, np.ones(300)
    monkeypatch.setattr("skcalib.metrics._local._MAX_CURVE_ENTRIES", 30_000)  # several blocks
    monkeypatch.setattr(own_warnings, "MAX_SILENT_SECONDS", 0)
    with pytest.warns(EfficiencyWarning, match=r"300 query points .* query"):
        local_calibration_error(rng.normal(size=300), forecast, given=feature)


HUGE = 10**400  # no double


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(any_decision_calibration_error, [0, 1], [0.2, 0.7], n_actions=10**9), "n_actions"),
        (lambda: AnyDecisionRecalibrator(n_actions=10**9).fit([0.2, 0.7], [0, 1]), "n_actions"),
        (lambda: AnyDecisionRecalibrator(alpha=5e-324).fit([0.2, 0.7], [0, 1]), "alpha"),
        (
            partial(laplace_kernel_calibration_error, [0, 1], [0.2, 0.7], bandwidth=HUGE),
            "bandwidth",
        ),
        (lambda: HosmerLemeshowTest(n_bins=HUGE).fit([0.2, 0.7], [0, 1]), "n_bins"),
        (partial(make_dirichlet_family, n_classes=2**62), "n_classes"),
        (partial(make_covariate_shift, 2**62), "n_samples"),
        (partial(make_forecasts, n_members=2**62, problem="ensemble"), "n_members"),
    ],
)
def test_numbers_that_no_machine_bears_are_refused(call, message):
    with pytest.raises(ValueError, match=rf"The '{message}' parameter .*must be"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AnyDecisionRecalibrator(alpha=1e-3).fit([0.2, 0.7], [0, 1]), "alpha=0.001 needs"),
        (partial(make_dirichlet_family, 50), "n_samples=50 with n_classes=10 needs"),
        (lambda: GaussianForecast([0.0], [1.0]).sample(10**30), f"size={10**30} needs"),
        (
            lambda: PairwiseScalingRecalibrator().fit(np.full((99, 5), 0.2), np.arange(99) % 5),
            "Pairwise scaling of 99 samples of 5 classes needs",
        ),
        (lambda: CoxTest(n_resamples=10**6).fit([0.2, 0.7], [0, 1]), "n_resamples=1000000 needs"),
        (
            lambda: CalibrationTest(n_resamples=10**6).fit([0.2, 0.7], [0, 1]),
            "n_resamples=1000000 needs",
        ),
        (
            lambda: EquivalenceTest(margin=0.1, n_resamples=10**6).fit(PROBA, LABEL),
            "n_resamples=1000000 needs",
        ),
        (
            lambda: metrics.local_calibration(
                [0.1, 0.9], ([0.0, 1.0], [1.0, 1.0]), given=[0.0, 1.0], n_resamples=10**6
            ),
            "n_resamples=1000000 needs",
        ),
        (
            partial(
                ScoreDecompositionDisplay.from_predictions, [0, 1], [0.2, 0.7], n_resamples=10**6
            ),
            "n_resamples=1000000 needs",
        ),
    ],
)
def test_draws_need_memory(call, message, monkeypatch):
    monkeypatch.setattr(own_warnings, "machine_memory", lambda: 1e4)
    with pytest.raises(MemoryError, match=message):
        call()


def test_draws_of_classical_tests_warn_of_their_time(monkeypatch):
    label, proba = problem(50, 2)
    monkeypatch.setattr(own_warnings, "MAX_SILENT_SECONDS", 0)
    monkeypatch.setattr(
        "skcalib._inputs.drawing._MAX_BATCH_RESIDUALS", 1
    )  # each draw is a batch of its own
    with pytest.warns(EfficiencyWarning, match=r"n_resamples=39 will take .*Choose fewer\.$"):
        CoxTest(n_resamples=39, random_state=0).fit(proba, label)
