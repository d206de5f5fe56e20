"""Warnings name the user's own line."""

import sys
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import count
from threading import Barrier, Event
from time import sleep
from types import ModuleType

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from skcalib import recalibration
from skcalib._inputs.scikit_learn import Parallel, delay
from skcalib._inputs.warnings import warn
from skcalib.hypothesis_tests import (
    CalibrationTest,
    SpiegelhalterTest,
    find_miscalibrated_subgroups,
)
from skcalib.metrics import distribution_matching_error, expected_calibration_error, make_scorer
from skcalib.recalibration import (
    AutoRecalibrator,
    PairwiseScalingRecalibrator,
    RecalibratedClassifier,
    SigmoidRecalibrator,
    SubgroupRecalibrator,
    TemperatureRecalibrator,
)
from skcalib.uncertainty import confidence_interval

PROBA, COLUMN = np.array([0.2, 0.7, 0.6]), np.array([[0], [1], [0]])


@pytest.mark.parametrize("name", ["SigmoidRecalibrator", "BetaRecalibrator"])
def test_options_in_single_precision_leak_no_warning(name):
    recalibrator = getattr(recalibration, name)
    fits = [
        recalibrator(prior_weight=w).fit([0.2, 0.6, 0.9], [0, 1, 1]) for w in (0.5, np.float32(0.5))
    ]
    first, second = (fit.predict_proba([0.4]) for fit in fits)
    np.testing.assert_array_equal(first, second)


def test_huge_options_leak_no_warning():
    rng = np.random.default_rng(59)
    proba, label = rng.dirichlet(np.full(5, 0.3), 100), rng.integers(0, 5, 100)
    maps = [
        recalibration.MatrixScalingRecalibrator(diagonal_penalty=w, off_diagonal_penalty=0.1)
        for w in (1e12, 1e50, 1.7e308)
    ]
    first, *others = (fit.fit(proba, label).predict_proba(proba) for fit in maps)
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-9)
    y, forecast = proba[:, 0], (proba[:, 1], np.ones(100))
    options = {"estimation": "standardized", "random_state": 0}
    wide = distribution_matching_error(y, forecast, bandwidth=1.79e308, **options)
    assert np.isfinite(wide)
    outcome, columns = (label > 1).astype(int), {"a": np.arange(100) % 3}
    tiny = np.full(100, 1e-310)
    found = find_miscalibrated_subgroups(
        outcome, tiny, columns, recalibrate=False, n_resamples=19, random_state=0
    )
    assert found.p_value <= 0.05


def test_a_warning_has_the_message_the_category_and_the_file_of_the_caller():
    with pytest.warns(RuntimeWarning, match="something happened") as caught:
        warn("something happened", RuntimeWarning)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="something happened"):
        warn("something happened")


@pytest.mark.parametrize(
    "fit",
    [
        lambda: TemperatureRecalibrator().fit(PROBA, COLUMN),
        lambda: TemperatureRecalibrator().fit_transform(PROBA, COLUMN),
        lambda: SpiegelhalterTest().fit(PROBA, COLUMN),
        lambda: make_pipeline(FunctionTransformer(), TemperatureRecalibrator()).fit(
            PROBA[:, None], COLUMN
        ),
    ],
    ids=["fit", "fit_transform", "test", "pipeline"],
)
def test_warnings_name_the_line_that_called_skcalib(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    (warning,) = (w for w in caught if w.category is DataConversionWarning)
    assert warning.filename == __file__


LABEL = np.arange(40) % 2
AUTO = AutoRecalibrator([("sigmoid", SigmoidRecalibrator())])
FROZEN = FrozenEstimator(GaussianNB().fit(np.arange(40.0)[:, None], LABEL))
CANDIDATES = [("pairs", PairwiseScalingRecalibrator()), ("sigmoid", SigmoidRecalibrator())]
MANY = np.random.default_rng(0).dirichlet(np.ones(13), size=40)
SURE, EVEN = LABEL[::-1].astype(float), np.linspace(0.1, 0.9, 40)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expected_calibration_error(LABEL, SURE), "All values of y_proba are 0 or 1"),
        (lambda: expected_calibration_error(LABEL, np.eye(2)[LABEL]), "are 0 or 1"),
        (lambda: SpiegelhalterTest(random_state=0).fit(SURE, LABEL), "All values of X are 0 or 1"),
        (lambda: SigmoidRecalibrator().fit(SURE, LABEL), "All values of X are 0 or 1"),
        (lambda: AUTO.fit(SURE, LABEL), "X are 0 or 1"),
        (lambda: SigmoidRecalibrator().fit(EVEN, np.ones(40)), "y holds one class only, 1"),
        (lambda: AUTO.fit(EVEN, 0 * LABEL), "one class only, 0"),
        (
            lambda: SigmoidRecalibrator(labels=["a", "b"]).fit(EVEN, ["b"] * 40),
            "y holds no sample of 1 of the 2 classes: ['a']. Their",
        ),
        (
            lambda: AutoRecalibrator(CANDIDATES, labels=range(13)).fit(MANY, LABEL),
            "of 11 of the 13 classes: [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …]. Their",
        ),
        (
            lambda: RecalibratedClassifier(FROZEN, AUTO).fit(EVEN[:, None], 0 * LABEL),
            "2 classes: [1]",
        ),
    ],
)
def test_data_that_are_likely_a_mistake_warn_once(call, message):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert [message in str(one.message) for one in caught] == [True]
    assert caught[0].filename == __file__


def test_the_outputs_of_sure_models_are_no_mistake():
    X = np.random.default_rng(0).normal(size=(40, 2))
    scores = cross_val_score(
        DecisionTreeClassifier(), X, LABEL, scoring=make_scorer(expected_calibration_error)
    )
    assert len(scores) == 5
    expected_calibration_error(LABEL, SURE, labels=[0, 1])
    expected_calibration_error(LABEL[:9], SURE[:9])
    # of one subgroup all labels are the same
    by = LABEL * (EVEN > 0.5)
    SubgroupRecalibrator(SigmoidRecalibrator()).fit(EVEN, LABEL, by=by)


def test_a_fold_without_a_class_does_not_warn():
    label = np.minimum(np.arange(40), 2)  # two classes have a single sample
    three = MANY[:, :3] / MANY[:, :3].sum(axis=1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AutoRecalibrator(CANDIDATES).fit(three, label)
        by = LABEL[::-1] * (label > 0)
        recalibrator = SubgroupRecalibrator(SigmoidRecalibrator(), labels=[0, 1])
        recalibrator.fit(EVEN, LABEL, by=by)


class Bar(nullcontext):
    """Stands for a bar of tqdm."""

    def __init__(self, total, delay):
        super().__init__(self)
        self.total, self.n = total, 0

    def update(self, steps):
        self.n += steps


@pytest.fixture
def bars(monkeypatch):
    shown = []
    tqdm = ModuleType("tqdm")
    tqdm.tqdm = lambda **options: shown.append(Bar(**options)) or shown[-1]
    monkeypatch.setitem(sys.modules, "tqdm", tqdm)
    return shown


X = np.random.default_rng(0).normal(size=(40, 2))
LONG = {
    "test": lambda: CalibrationTest("log_loss", random_state=0).fit(EVEN, LABEL),
    "interval": lambda: confidence_interval(
        "smooth_calibration_error", LABEL, EVEN, n_resamples=20, random_state=0
    ),
    "search": lambda: find_miscalibrated_subgroups(LABEL, EVEN, {"first": X[:, 0]}, random_state=0),
    "choice": lambda: AUTO.fit(EVEN, LABEL),
    "classifier": lambda: RecalibratedClassifier(GaussianNB(), SigmoidRecalibrator()).fit(X, LABEL),
}


@pytest.mark.parametrize("name", LONG)
def test_progress_is_shown_where_it_is_asked_for(name, bars, capfd):
    LONG[name]()
    assert bars == []
    for settings in ({}, {"n_jobs": 2, "backend": "threading"}):
        with parallel_config(verbose=1, **settings):
            LONG[name]()
        assert bars != []
        assert all(bar.n == bar.total for bar in bars)
        bars.clear()
    assert capfd.readouterr().err == ""


def test_progress_of_one_test(bars):
    CalibrationTest("log_loss", random_state=0, verbose=1).fit(EVEN, LABEL)
    assert [bar.n for bar in bars] == [bars[0].total]


class AtOnce(TemperatureRecalibrator):
    """It fits in two threads at once, and the first to enter leaves first. Each fit warns."""

    turns, both_inside = count(), Barrier(2, timeout=60)

    def _fit(self, data):
        turn = next(self.turns) % 2
        self.both_inside.wait()
        warn("The fit is tried out.", ConvergenceWarning)
        warn("The data are odd.")
        super()._fit(data)
        sleep(0.005 * turn)


def test_fits_in_threads_leave_the_process_as_it_was():
    rng = np.random.default_rng(0)
    proba = rng.random(40)
    label = (rng.random(40) < proba).astype(int)
    model = AutoRecalibrator(candidates=[("twin", AtOnce())], trees=False, cv=2)
    with (
        warnings.catch_warnings(record=True) as caught,
        ThreadPoolExecutor(2) as pool,
    ):
        warnings.simplefilter("always")
        before = list(warnings.filters)  # all threads share them
        for fit in [pool.submit(clone(model).fit, proba, label) for _ in range(2)]:
            fit.result()
        assert warnings.filters == before
        LogisticRegression(max_iter=1).fit(rng.normal(size=(40, 3)), label)
    messages = Counter(str(warning.message).partition(".")[0] for warning in caught)
    # each thread fits without the first fold, without the second, and to all samples
    assert messages["The data are odd"] == 2 * 3
    assert messages["The fit is tried out"] == 2 * 1
    assert sum(messages.values()) == 2 * 3 + 2 * 1 + 1
    assert caught[-1].category is ConvergenceWarning


def test_tasks_in_threads_leave_the_filters_of_the_process():
    first_inside, second_inside, first_left = Event(), Event(), Event()

    def run_first():
        Parallel()([delay(lambda: first_inside.set() or second_inside.wait(60))()])
        first_left.set()

    def run_second():
        first_inside.wait(60)
        Parallel()([delay(lambda: second_inside.set() or first_left.wait(60))()])

    with warnings.catch_warnings(), ThreadPoolExecutor(2) as pool:
        filters = warnings.filters
        for run in [pool.submit(run_first), pool.submit(run_second)]:
            run.result()
        assert warnings.filters is filters
