"""Rows that belong together: copies, groups, and the test sets of an outer cross-validation."""

import inspect
import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
)
from sklearn.naive_bayes import GaussianNB

from skcalib import recalibration
from skcalib._data import check_forecasts, check_predictions
from skcalib._numerics.dependence import UnitSums
from skcalib.forecasts import GaussianForecast, QuantileForecast
from skcalib.recalibration import (
    AutoRecalibrator,
    FeatureRecalibrator,
    IdentityRecalibrator,
    RecalibratedClassifier,
    RecalibratedRegressor,
    SubgroupRecalibrator,
    TemperatureRecalibrator,
)
from skcalib.recalibration._auto import average_weights, estimate_mean
from skcalib.recalibration._base import Recalibrator
from skcalib.recalibration._folds import add_units, assign_folds, find_blocks, fit_with_units
from skcalib.recalibration._registry import FORECAST_RECALIBRATORS, RECALIBRATORS

N, N_NEW = 600, 4000
FOLDING = [
    estimator
    for name, estimator in vars(recalibration).items()
    if inspect.isclass(estimator)
    and issubclass(estimator, Recalibrator)
    and "groups" in inspect.signature(estimator.fit).parameters
]


def overconfident(n, n_classes, seed):
    """Predictions that are too sharp, and labels."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, n_classes))
    truth = softmax(0.6 * logits + np.linspace(-0.3, 0.3, n_classes), axis=1)
    label = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return softmax(logits, axis=1), label.clip(max=n_classes - 1)


def row_arguments(recalibrator, n, seed=0):
    """Random values of what `fit` needs besides predictions and labels."""
    rng = np.random.default_rng(seed)
    columns = {"by": rng.integers(3, size=n).astype(str), "given": rng.normal(size=(n, 2))}
    parameters = inspect.signature(recalibrator.fit).parameters
    return {name: column for name, column in columns.items() if name in parameters}


def log_loss(y, proba):
    return -np.mean(np.log(proba[np.arange(len(y)), y]))


class Case:
    """A recalibrator that is fitted to some of the rows, and judged on new ones."""

    def __init__(self, recalibrator, n_classes, seed=0):
        self.recalibrator = recalibrator
        if "random_state" in recalibrator.get_params():
            recalibrator.set_params(random_state=0)
        self.proba, self.y = overconfident(N, n_classes, seed)
        self.new_proba, self.new_y = overconfident(N_NEW, n_classes, 99)
        self.columns = row_arguments(recalibrator, N)
        self.new_columns = row_arguments(recalibrator, N_NEW, 1)
        self.nothing = log_loss(self.new_y, self.new_proba)

    def fit(self, rows, proba=None, recalibrator=None, **arguments):
        proba = self.proba[rows] if proba is None else proba
        columns = {name: column[rows] for name, column in self.columns.items()}
        recalibrator = clone(recalibrator or self.recalibrator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return recalibrator.fit(proba, self.y[rows], **columns, **arguments)

    def loss(self, rows, *args, **arguments):
        fitted = self.fit(rows, *args, **arguments)
        return log_loss(self.new_y, fitted.predict_proba(self.new_proba, **self.new_columns))


ROWS = np.arange(N)
CASES = [(estimator, n_classes) for estimator in FOLDING for n_classes in (2, 4)]
over_folding = pytest.mark.parametrize(("estimator", "n_classes"), CASES)


def test_all_that_make_folds_take_groups():
    assert {AutoRecalibrator, FeatureRecalibrator, SubgroupRecalibrator} == set(FOLDING)


@pytest.mark.slow
@over_folding
def test_rows_given_twice_are_no_worse_than_once(estimator, n_classes):
    # twice as many rows make all maps less careful: of four classes that costs 0.0005 to 0.0015
    # of the log loss with four seeds, and 0.0012 with this one; with groups it costs nothing
    case, rows = Case(estimator(), n_classes), np.r_[ROWS, ROWS]
    if estimator is SubgroupRecalibrator:  # with nothing to learn, noise chooses the prior
        case.recalibrator.set_params(prior_weight=np.inf)
    once = case.loss(ROWS)
    assert case.loss(rows) < once + 0.002
    assert case.loss(rows, groups=rows) == pytest.approx(once, abs=1e-9)


@pytest.mark.slow
@over_folding
def test_a_bootstrap_is_no_worse_than_weights(estimator, n_classes):
    case = Case(estimator(), n_classes)
    rows = np.random.default_rng(0).integers(N, size=N)
    count = np.bincount(rows, minlength=N)
    present = np.flatnonzero(count)
    weighted = case.loss(present, sample_weight=count[present])
    assert case.loss(rows) < weighted + 0.005


@pytest.mark.slow
@over_folding
def test_oversampling_does_not_harm(estimator, n_classes):
    case, rng = Case(estimator(), n_classes), np.random.default_rng(0)
    if estimator is SubgroupRecalibrator:  # with nothing to learn, noise chooses the prior
        case.recalibrator.set_params(prior_weight=np.inf)
    size = 2 * N // n_classes
    rows = np.concatenate([rng.choice(np.flatnonzero(case.y == k), size) for k in range(n_classes)])
    loss = case.loss(rows)
    assert loss < case.nothing
    if "recalibrator" in case.recalibrator.get_params():
        without = clone(case.recalibrator).set_params(recalibrator=AutoRecalibrator(trees=False))
    else:
        without = AutoRecalibrator(trees=False)
    assert loss < case.loss(rows, recalibrator=without) + 0.001


@pytest.mark.slow
@over_folding
def test_groups_of_near_copies_are_no_worse_than_one_of_each(estimator, n_classes):
    case, rng = Case(estimator(), n_classes), np.random.default_rng(0)
    rows = np.tile(ROWS, 5)
    noise = 1e-3 * rng.normal(size=(5 * N, n_classes))
    proba = softmax(np.log(case.proba[rows]) + noise, axis=1)
    assert case.loss(rows, proba, groups=rows) < case.loss(ROWS) + 0.005


@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_of_two_are_rows_given_twice(n_classes):
    case = Case(AutoRecalibrator(), n_classes)
    doubled = case.fit(np.r_[ROWS, ROWS]).predict_proba(case.new_proba)
    weighted = case.fit(ROWS, sample_weight=np.full(N, 2.0)).predict_proba(case.new_proba)
    assert np.mean(np.abs(doubled - weighted)) < 0.01


@pytest.mark.parametrize("digits", [1, 2])
def test_rounded_predictions_get_no_warning(digits):
    rng = np.random.default_rng(0)
    proba = np.round(rng.random(1000), digits)
    y = (rng.random(1000) < proba).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert AutoRecalibrator().fit(proba, y).weights_["none"] > 0.5


def test_few_grades_are_divided_at_random():
    rng = np.random.default_rng(0)
    proba = rng.choice(np.linspace(0.05, 0.9, 8), size=400)
    y = (rng.random(400) < proba).astype(int)
    data = with_copies(check_predictions(y, proba))
    assert data.blocks is None
    fold = assign_folds(data, 5)
    for grade in np.unique(proba):
        for label in (0, 1):
            count = np.bincount(fold[y == label], minlength=5)
            assert np.ptp(count) <= 1
            in_grade = (proba == grade) & (y == label)
            assert len(np.unique(fold[in_grade])) > 1 or in_grade.sum() < 5


def test_a_joined_table_gets_a_warning():
    proba, y = overconfident(100, 3, 0)
    rows = np.random.default_rng(0).permutation(np.tile(np.arange(100), 3))
    with pytest.warns(UserWarning, match="Each of 100 distinct predictions occurs 3 times"):
        AutoRecalibrator().fit(proba[rows], y[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AutoRecalibrator().fit(proba[rows], y[rows], groups=rows)
        AutoRecalibrator().fit(proba[rows[1:]], y[rows[1:]])
        other = np.where(np.arange(300) == 7, (y[rows] + 1) % 3, y[rows])
        AutoRecalibrator().fit(proba[rows], other)


def test_copied_forecasts_get_a_warning():
    rng = np.random.default_rng(0)
    mean, y = rng.normal(size=(2, 100))
    forecast = GaussianForecast(np.tile(mean, 2), 1.0)
    with pytest.warns(UserWarning, match="occurs 2 times, always with the same outcome"):
        AutoRecalibrator().fit(forecast, np.tile(y, 2))


# Folds


def with_copies(data):
    return add_units(AutoRecalibrator(), data, data.outcome, None, None)


def data_of(kind, rng):
    proba = rng.dirichlet(np.ones(3), size=300)
    y = rng.integers(3, size=300)
    if kind == "copies":
        rows = rng.integers(300, size=300)
        return with_copies(check_predictions(y[rows], proba[rows])), rows
    if kind == "forecasts":
        rows = rng.integers(300, size=300)
        value, mean = rng.normal(size=(2, 300))
        return with_copies(check_forecasts(value[rows], GaussianForecast(mean[rows], 1.0))), rows
    unit = rng.choice(60, size=300, p=rng.dirichlet(np.ones(60)))
    return add_units(AutoRecalibrator(), check_predictions(y, proba), y, None, unit), unit


@pytest.mark.parametrize("kind", ["copies", "forecasts", "groups"])
@pytest.mark.parametrize("seed", range(3))
def test_no_fold_divides_a_unit_for_any_order_of_rows(kind, seed):
    rng = np.random.default_rng(seed)
    data, unit = data_of(kind, rng)
    fold = assign_folds(data, 5)
    n_units = len(np.unique(unit))
    assert len(np.unique(np.stack([unit, fold]), axis=1).T) == n_units
    assert np.ptp(np.bincount(fold, minlength=5)) <= 3 * np.bincount(unit).max()
    first = np.unique(unit, return_index=True)[1]
    assert np.ptp(np.bincount(fold[first])) <= 3  # about as many units of each class
    order = rng.permutation(300)
    np.testing.assert_array_equal(assign_folds(data.take(order), 5), fold[order])


def test_single_samples_are_divided_as_without_groups():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), size=90), rng.integers(3, size=90)
    alone = add_units(AutoRecalibrator(), check_predictions(y, proba), y, None, rng.permutation(90))
    size = np.bincount(y)
    fold = assign_folds(alone, 3)
    for k in range(3):
        assert np.ptp(np.bincount(fold[y == k], minlength=3)) <= 1, size


def test_one_block_is_no_division():
    rng = np.random.default_rng(0)
    proba, y = rng.random(100), rng.integers(2, size=100)
    plain = AutoRecalibrator().fit(proba, y)
    in_block = AutoRecalibrator()
    in_block._outer_blocks = np.zeros(100)
    assert in_block.fit(proba, y).weights_ == plain.weights_


def test_the_first_test_set_of_a_row_is_its_block():
    tests = [np.array([0, 2]), np.array([1, 2]), np.array([0, 3])]
    np.testing.assert_array_equal(find_blocks(tests, 5), [0, 1, 0, 2, -1])


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_of_copies_weigh_candidates_as_one_of_each(weighted):
    rng = np.random.default_rng(0)
    loss, order = rng.exponential(size=(4, 40)), np.arange(40)
    weight = rng.random(40) if weighted else np.ones(40)
    weight /= weight.sum()
    once = average_weights(loss, UnitSums(weight, None), order)
    code, repeated = np.repeat(order, 5), np.repeat(weight / 5, 5)
    units = UnitSums(repeated, code)
    found = average_weights(np.repeat(loss, 5, axis=1), units, np.arange(200))
    np.testing.assert_allclose(found, once, rtol=1e-9)
    every = np.ones(200, dtype=bool)
    mean = estimate_mean(np.repeat(loss[0], 5), units, every)
    expected = estimate_mean(loss[0], UnitSums(weight, None), every[:40])
    np.testing.assert_allclose(mean, expected, rtol=1e-12)


# What is passed on


class Recorder(AutoRecalibrator):
    """Records its blocks and groups."""

    def fit(self, X, y, sample_weight=None, *, groups=None):
        Recorder.seen = self._outer_blocks, self._outer_groups
        return super().fit(X, y, sample_weight, groups=groups)


def people(n, visits, noise, seed=0):
    rng = np.random.default_rng(seed)
    coef = np.random.default_rng(77).normal(size=(8, 4))
    features = rng.normal(size=(n, 8))
    y = (0.5 * features @ coef + rng.gumbel(size=(n, 4))).argmax(axis=1)
    person = np.repeat(np.arange(n), visits)
    return features[person] + noise * rng.normal(size=(n * visits, 8)), y[person], person


@pytest.mark.parametrize("ensemble", [True, False, "nested"])
def test_groups_reach_the_recalibrator(ensemble):
    X, y, person = people(40, 2, 0.1)
    model = RecalibratedClassifier(
        GaussianNB(), Recorder(trees=False), cv=GroupKFold(4), ensemble=ensemble
    )
    model.fit(X, y, groups=[f"person {k}" for k in person])
    blocks, groups = Recorder.seen
    assert blocks is None
    assert len(np.unique(groups)) == 40
    assert model.recalibrator_._outer_blocks is model.recalibrator_._outer_groups is None


def test_groups_reach_the_recalibrator_of_a_frozen_model():
    X, y, person = people(40, 2, 0.1)
    model = RecalibratedClassifier(FrozenEstimator(GaussianNB().fit(X, y)), Recorder(trees=False))
    model.fit(X, y, groups=person)
    np.testing.assert_array_equal(Recorder.seen[1], person)


@pytest.mark.parametrize(
    ("cv", "n_blocks"), [(KFold(4), 4), (LeaveOneOut(), 60), (None, None), (3, None)]
)
def test_test_sets_of_a_splitter_are_blocks(cv, n_blocks):
    X, y, _ = people(60, 1, 0.1)
    y %= 2
    RecalibratedClassifier(GaussianNB(), Recorder(), cv=cv, ensemble=False).fit(X, y)
    blocks, groups = Recorder.seen
    assert groups is None
    assert (blocks is None) if n_blocks is None else len(np.unique(blocks)) == n_blocks


@pytest.mark.parametrize(
    "cv", [RepeatedKFold(n_splits=3, n_repeats=2), ShuffleSplit(4, random_state=0)]
)
def test_copies_of_a_row_are_a_group(cv):
    X, y, _ = people(60, 1, 0.1)
    RecalibratedClassifier(GaussianNB(), Recorder(trees=False), cv=cv).fit(X, y % 2)
    blocks, groups = Recorder.seen
    assert len(np.unique(groups)) < len(groups)
    for row in np.unique(groups):
        assert len(np.unique(blocks[groups == row])) == 1


def test_a_regressor_passes_groups_and_blocks():
    X, y = make_regression(80, 3, noise=5.0, random_state=0)
    person = np.repeat(np.arange(20), 4)
    RecalibratedRegressor(LinearRegression(), Recorder(), cv=GroupKFold(4)).fit(X, y, groups=person)
    np.testing.assert_array_equal(Recorder.seen[1], person)
    RecalibratedRegressor(LinearRegression(), Recorder(), cv=KFold(4)).fit(X, y)
    assert Recorder.seen[1] is None
    np.testing.assert_array_equal(Recorder.seen[0], np.repeat(np.arange(4), 20))


# A prior, a penalty or a test that counted the rows of a group would tell them from one row.


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", RECALIBRATORS)
def test_groups_of_copies_fit_as_one_of_each(name, n_classes, weighted):
    recalibrator, rows = RECALIBRATORS[name].recalibrator, np.tile(np.arange(120), 5)
    proba, y = overconfident(120, n_classes, 0)
    new = overconfident(500, n_classes, 9)[0]
    weight = np.random.default_rng(1).exponential(size=120) if weighted else np.ones(120)
    once = clone(recalibrator).fit(proba, y, sample_weight=weight).predict_proba(new)
    arguments = {"sample_weight": weight[rows], "groups": rows}
    copies = fit_with_units(clone(recalibrator), proba[rows], y[rows], **arguments)
    np.testing.assert_allclose(copies.predict_proba(new), once, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FORECAST_RECALIBRATORS)
def test_groups_of_copies_of_forecasts_fit_as_one_of_each(name, weighted):
    recalibrator, rows = FORECAST_RECALIBRATORS[name], np.tile(np.arange(60), 5)
    rng = np.random.default_rng(0)
    mean, std, levels = rng.normal(size=60), rng.uniform(0.5, 2, size=60), np.linspace(0.1, 0.9, 9)
    y = 0.3 + mean + 1.5 * std * rng.normal(size=60)
    weight = rng.exponential(size=60) if weighted else np.ones(60)
    forecast = GaussianForecast(mean, std)
    if name == "quantiles":
        forecast = QuantileForecast(forecast.quantiles(levels), levels)
    arguments = {"sample_weight": weight[rows], "groups": rows}
    copies = fit_with_units(clone(recalibrator), forecast[rows], y[rows], **arguments)
    once = clone(recalibrator).fit(forecast, y, sample_weight=weight)
    if name == "quantiles":  # an offset may lie within a group of copies, one rank further
        gap = np.sort(y[:, None] - forecast.values, axis=0)
        ranks = [(gap < fitted.offsets_).sum(axis=0) for fitted in (copies, once)]
        assert np.abs(ranks[0] - ranks[1]).max() <= 1
        return
    found, expected = (fitted.transform(forecast).quantiles(levels) for fitted in (copies, once))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_groups_reach_recalibrators_that_make_no_folds():
    X, y, person = people(40, 2, 0.0)
    model = RecalibratedClassifier(GaussianNB(), TemperatureRecalibrator(), cv=GroupKFold(4))
    with_groups = model.fit(X, y, groups=person).recalibrator_.temperature_
    without = clone(model).set_params(cv=list(GroupKFold(4).split(X, y, person))).fit(X, y)
    assert abs(np.log(with_groups)) < abs(np.log(without.recalibrator_.temperature_))


def test_recalibrators_inside_of_others_get_groups():
    proba, y = overconfident(200, 2, 0)
    groups = np.repeat(np.arange(50), 4)
    by = np.where(np.arange(200) < 100, "a", "b")
    SubgroupRecalibrator(Recorder()).fit(proba, y, by=by, groups=groups)
    np.testing.assert_array_equal(Recorder.seen[1], groups)
    FeatureRecalibrator(Recorder(), random_state=0).fit(proba, y, given=by, groups=groups)
    assert len(np.unique(Recorder.seen[1])) <= 50


def test_a_splitter_makes_the_folds():
    proba, y = overconfident(100, 2, 0)
    first = AutoRecalibrator(cv=KFold(4)).fit(proba, y)
    splits = list(KFold(4).split(proba))
    assert AutoRecalibrator(cv=splits).fit(proba, y).weights_ == first.weights_
    weight = np.where(np.arange(100) < 50, 1.0, 0.0)
    AutoRecalibrator(cv=KFold(4)).fit(proba, y, sample_weight=weight)
    with pytest.raises(ValueError, match="exactly one test set"):
        AutoRecalibrator(cv=ShuffleSplit(3)).fit(proba, y)
    with pytest.raises(ValueError, match="'cv' parameter of AutoRecalibrator"):
        AutoRecalibrator(cv="prefit").fit(proba, y)
    groups = np.repeat(np.arange(20), 5)
    AutoRecalibrator(cv=GroupKFold(4)).fit(proba, y, groups=groups)


@pytest.mark.slow
@pytest.mark.parametrize("model", [LogisticRegression(max_iter=500), GaussianNB()])
@pytest.mark.parametrize("ensemble", [True, False])
def test_people_with_visits_are_not_harmed(model, ensemble):
    X, y, person = people(300, 5, 0.02)
    new_X, new_y, _ = people(4000, 1, 0.0, 999)
    alone = log_loss(new_y, model.fit(X, y).predict_proba(new_X))
    recalibrated = RecalibratedClassifier(model, cv=GroupKFold(5), ensemble=ensemble)
    recalibrated.fit(X, y, groups=person)
    assert log_loss(new_y, recalibrated.predict_proba(new_X)) < alone + 0.002


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_blocks_of_a_series_are_not_harmed(seed):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(4500, 8))
    for row in range(1, 4500):
        noise[row] = 0.97 * noise[row - 1] + np.sqrt(1 - 0.97**2) * noise[row]
    X, y = noise[:, :4], (1.5 * noise[:, :4] + noise[:, 4:]).argmax(axis=1)
    model = GaussianNB().fit(X[:500], y[:500])
    alone = log_loss(y[500:], model.predict_proba(X[500:]).clip(1e-12))
    blocks = RecalibratedClassifier(model, cv=KFold(5)).fit(X[:500], y[:500])
    assert log_loss(y[500:], blocks.predict_proba(X[500:])) < alone


@pytest.mark.parametrize("routed", [False, True])
@pytest.mark.parametrize("cv", [None, 4])
def test_a_number_of_folds_divides_no_group(cv, routed):
    X, y, person = people(40, 2, 0.1)
    for model, splitter in (
        (
            RecalibratedClassifier(GaussianNB(), TemperatureRecalibrator()),
            StratifiedGroupKFold(cv or 5),
        ),
        (RecalibratedRegressor(LinearRegression(), IdentityRecalibrator()), GroupKFold(cv or 5)),
    ):
        with config_context(enable_metadata_routing=routed):
            found = clone(model).set_params(cv=cv).fit(X, y, groups=person)
            expected = clone(model).set_params(cv=splitter).fit(X, y, groups=person)
        if isinstance(model, RecalibratedClassifier):
            assert found.recalibrator_.temperature_ == expected.recalibrator_.temperature_
        else:
            np.testing.assert_array_equal(found.residuals_, expected.residuals_)


def test_independent_samples_of_few_groups_count_as_samples():
    # five sites of 200 samples: a map as careful as for five samples would hardly move, and gain a
    # third of the 0.08; with as little as five sites show of their dependence it loses 0.0024
    proba, y = overconfident(1000, 2, 0)
    new_proba, new_y = overconfident(N_NEW, 2, 99)
    losses = {}
    for groups in (None, np.repeat(np.arange(5), 200)):
        fitted = AutoRecalibrator().fit(proba, y, groups=groups)
        losses[groups is None] = log_loss(new_y, fitted.predict_proba(new_proba))
    assert losses[False] < losses[True] + 0.004 < log_loss(new_y, new_proba) - 0.05


def test_names_of_groups_do_not_matter():
    X, y, person = people(40, 2, 0.1)
    names = np.random.default_rng(0).permutation(40)
    mixed = [int(k) if k % 2 else f"person {k}" for k in names[person]]
    model = RecalibratedClassifier(LogisticRegression(), TemperatureRecalibrator(), cv=4)
    found = [model.fit(X, y, groups=groups).predict_proba(X) for groups in (person, mixed)]
    np.testing.assert_array_equal(*found)


def test_predictions_that_tell_all_labels_depend_on_no_rounding():
    y = np.arange(40) // 20
    groups, order = np.arange(40) // 4, np.random.default_rng(0).permutation(40)
    proba = np.where(y == 1, 0.7, 0.3)
    first, second = (
        AutoRecalibrator().fit(proba[rows], y[rows], groups=groups[rows]).predict_proba([0.3, 0.6])
        for rows in (np.arange(40), order)
    )
    np.testing.assert_allclose(first, second, atol=1e-12)


def test_few_groups_that_depend_on_each_other_do_no_harm():
    # a calibrated model, groups whose log-odds all differ by N(0, 1): two groups look alike often
    nodes, mass = np.polynomial.hermite_e.hermegauss(15)
    excess = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        z, new_z = 1.5 * rng.normal(size=200), 1.5 * rng.normal(size=4000)
        groups = np.repeat([0, 1], 100)
        y = rng.random(200) < expit(z + rng.normal(size=2)[groups])
        proba, new_proba = (expit(x[:, None] + nodes) @ mass / mass.sum() for x in (z, new_z))
        recalibrated = AutoRecalibrator(cv=2).fit(proba, y, groups=groups).predict_proba(new_proba)
        chance = np.column_stack([1 - new_proba, new_proba])
        excess.append(-np.mean((chance * np.log(recalibrated / chance)).sum(axis=1)))
    assert np.mean(excess) < 0.01


# Few units, other orders of rows, and routed metadata


@pytest.mark.parametrize("n_units", [2, 3, 4])
def test_features_with_few_units(n_units):
    proba, y = overconfident(200, 2, 0)
    given = np.random.default_rng(0).normal(size=(200, 2))
    groups = np.arange(200) % n_units
    model = FeatureRecalibrator(random_state=0).fit(proba, y, given=given, groups=groups)
    assert 0 < model.p_value_ <= 1
    in_blocks = RecalibratedClassifier(
        LogisticRegression(), FeatureRecalibrator(), cv=KFold(n_units), given="X"
    )
    assert in_blocks.fit(given, y).predict_proba(given).shape == (200, 2)


def test_features_get_the_splitter_of_the_plain_map():
    proba, y = overconfident(200, 2, 0)
    given, plain = np.arange(200) % 7, AutoRecalibrator(cv=list(KFold(3).split(proba)))
    fitted = FeatureRecalibrator(plain, random_state=0).fit(proba, y, given=given)
    alone = clone(plain).fit(proba, y)
    assert fitted.recalibrator_.weights_.keys() == alone.weights_.keys()


@pytest.mark.parametrize("estimator", FOLDING)
def test_the_order_of_tied_rows_in_groups_does_not_matter(estimator):
    rng = np.random.default_rng(0)
    proba = rng.random(400).round(1).clip(0.05, 0.95)
    y, groups = (rng.random(400) < proba**1.5).astype(int), rng.integers(60, size=400)
    new, order = np.linspace(0.05, 0.95, 9), rng.permutation(400)
    case = Case(estimator(), 2)
    columns = {name: column[:400] for name, column in case.columns.items()}
    new_columns = {name: column[:9] for name, column in columns.items()}
    first, second = (
        clone(case.recalibrator)
        .fit(
            proba[rows],
            y[rows],
            groups=groups[rows],
            **{name: column[rows] for name, column in columns.items()},
        )
        .predict_proba(new, **new_columns)
        for rows in (np.arange(400), order)
    )
    np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.slow
def test_labels_shared_in_groups_do_not_pass_for_features():
    # half of 25 groups of 16 share labels, and features say nothing of them: 0.05 of 40 are 2
    p_values = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        groups, proba = np.repeat(np.arange(25), 16), rng.random(400)
        uniform = np.where(groups < 12, rng.random(25)[groups], rng.random(400))
        given = rng.normal(size=(25, 3))[groups]
        model = FeatureRecalibrator(random_state=0)
        model.fit(proba, (uniform < proba).astype(int), given=given, groups=groups)
        p_values.append(model.p_value_)
    assert np.mean(np.array(p_values) <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)


def test_the_own_splitter_goes_before_the_test_sets_around_it():
    X, y, _ = people(60, 1, 0.1)
    own = AutoRecalibrator(cv=KFold(3))
    model = RecalibratedClassifier(GaussianNB(), own, cv=LeaveOneOut(), ensemble=False)
    assert max(model.fit(X, y % 2).recalibrator_.results_["folds"]) == 3  # not 60 fits


def test_blocks_without_weight_are_refused():
    proba, y = overconfident(90, 2, 0)
    thirds = np.arange(90) % 3
    with pytest.raises(ValueError, match="at least two test sets"):
        AutoRecalibrator(cv=PredefinedSplit(thirds)).fit(proba, y, (thirds == 0) * 1.0)


def test_groups_of_other_rows_are_refused_before_anything_is_fitted():
    X, y, person = people(40, 2, 0.1)
    for groups in (np.tile(person, 2), person[:30]):
        with pytest.raises(ValueError, match="same length"):
            RecalibratedClassifier(FrozenEstimator(GaussianNB().fit(X, y))).fit(X, y, groups=groups)
    frozen = RecalibratedClassifier(
        FrozenEstimator(GaussianNB().fit(X, y)), TemperatureRecalibrator()
    )
    with pytest.raises(ValueError, match="at least two groups"):
        frozen.fit(X, y, groups=np.zeros(80))


def test_fit_transform_takes_groups():
    proba, y = overconfident(150, 2, 0)
    groups = np.repeat(np.arange(50), 3)
    for recalibrator, columns in (
        (SubgroupRecalibrator(), {"by": np.arange(150) % 2}),
        (FeatureRecalibrator(random_state=0), {"given": np.arange(150) % 2}),
    ):
        found = clone(recalibrator).fit_transform(proba, y, groups=groups, **columns)
        fitted = recalibrator.fit(proba, y, groups=groups, **columns)
        np.testing.assert_array_equal(found, fitted.transform(proba, **columns))


def test_routed_groups_reach_the_recalibrator_unless_it_declines():
    X, y, person = people(40, 2, 0.1)
    with config_context(enable_metadata_routing=True):
        for recalibrator, cv, is_passed in (
            (Recorder(trees=False).set_fit_request(groups=True), 4, True),
            (Recorder(trees=False), GroupKFold(4), True),
            (Recorder(trees=False).set_fit_request(groups=False), GroupKFold(4), False),
        ):
            RecalibratedClassifier(GaussianNB(), recalibrator, cv=cv).fit(X, y, groups=person)
            assert (Recorder.seen[1] is not None) == is_passed


def test_a_generator_of_splits_is_shown():
    proba, y = overconfident(100, 2, 0)
    assert "generator" in repr(AutoRecalibrator(cv=KFold(3).split(proba)).fit(proba, y))
