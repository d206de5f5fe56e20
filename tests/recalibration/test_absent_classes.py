"""Classes of which no calibration sample is there, although many are expected."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import has_fit_parameter

from skcalib.recalibration import (
    AutoRecalibrator,
    FeatureRecalibrator,
    SubgroupRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
    _registry,
)

# Of a mean probability of about .25, which those that learn per class take to .01 to .15 otherwise.
ATOL = 0.02

pytestmark = pytest.mark.filterwarnings("ignore:.*no sample")

RECALIBRATORS = {name: entry.recalibrator for name, entry in _registry.RECALIBRATORS.items()}
DEFAULTS = [*_registry.default_candidates(is_binary=False)]

# Alone, these keep an absent class: none of their parameters is learned from the labels of one
# class. All others map each class by its own labels, which say that it never comes: alone, a
# recalibrator is the estimate that its formula names.
KEEP_ALONE = ["temperature", "ensemble temperature", "scaling-binning", "prior shift", "identity"]


class Problem:
    """Sharp predictions of four classes, and n samples that lack the last one."""

    def __init__(self, n, effect=0.0):
        rng = np.random.default_rng(0)
        scores = rng.normal(size=(1200, 4)) * 1.5
        self.proba, feature = softmax(scores, axis=1), rng.normal(size=1200)
        scores[:, 0] += effect * np.sign(feature)
        truth = softmax(0.7 * scores, axis=1)
        label = (truth.cumsum(axis=1) < rng.random((1200, 1))).sum(axis=1)
        self.rows = np.flatnonzero(label < 3)[:n]
        self.label = label[self.rows]
        self.columns = {"given": feature, "by": feature > 0}
        self.expected = self.absent_proba(self.fit(TemperatureRecalibrator()))

    def columns_for(self, recalibrator, rows=slice(None)):
        names = [name for name in self.columns if has_fit_parameter(recalibrator, name)]
        return {name: self.columns[name][rows] for name in names}

    def fit(self, recalibrator, **weights):
        recalibrator = clone(recalibrator).set_params(labels=range(4))
        columns = self.columns_for(recalibrator, self.rows)
        return recalibrator.fit(self.proba[self.rows], self.label, **columns, **weights)

    def predict(self, fitted):
        return fitted.predict_proba(self.proba, **self.columns_for(fitted))

    def absent_proba(self, fitted):
        """Mean probability of the absent class."""
        return self.predict(fitted)[:, 3].mean()

    def is_kept(self, recalibrator):
        return abs(self.absent_proba(self.fit(recalibrator)) - self.expected) < ATOL


@pytest.fixture(scope="module")
def problem():
    problem = Problem(240)  # with more samples, two default candidates are not tried
    assert 0.2 < problem.expected < 0.3
    return problem


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_inside_of_another_one_all_keep_it(name, problem):
    recalibrator = RECALIBRATORS[name]
    assert problem.is_kept(AutoRecalibrator([("inner", recalibrator)], ensemble=False, cv=2))
    fitted = problem.fit(SubgroupRecalibrator(recalibrator, prior_weight=8))
    for part in (fitted.recalibrator_, fitted):  # the common map, and those of subgroups after it
        assert problem.absent_proba(part) == pytest.approx(problem.expected, abs=ATOL)


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_alone_those_that_learn_per_class_follow_the_labels(name, problem):
    assert problem.is_kept(RECALIBRATORS[name]) == (name in KEEP_ALONE)


@pytest.mark.parametrize("name", DEFAULTS)
def test_all_default_candidates_keep_it(name, problem, monkeypatch):
    entries = {name: _registry.default_candidates(is_binary=False)[name]}
    monkeypatch.setattr(_registry, "default_candidates", lambda is_binary: entries)
    is_trees = name == "trees"
    assert (Problem(300) if is_trees else problem).is_kept(AutoRecalibrator(trees=is_trees))


@pytest.mark.parametrize(
    ("recalibrator", "least_difference"),
    [
        (FeatureRecalibrator(VectorScalingRecalibrator(), random_state=0), 0.09),
        (SubgroupRecalibrator(VectorScalingRecalibrator(), prior_weight=8), 0.18),
    ],
)
def test_features_and_subgroups_tell_of_the_other_classes(recalibrator, least_difference):
    problem = Problem(300, effect=1.5)
    fitted = problem.fit(recalibrator)
    first, is_high = problem.predict(fitted)[:, 0], problem.columns["by"]
    assert first[is_high].mean() - first[~is_high].mean() > least_difference
    assert problem.absent_proba(fitted) == pytest.approx(problem.expected, abs=ATOL)


def test_a_class_that_few_samples_lack_is_taken_to_be_rare():
    problem, plain = Problem(199), VectorScalingRecalibrator()
    fitted = problem.fit(SubgroupRecalibrator(plain, prior_weight=np.inf))
    expected = problem.predict(problem.fit(plain))
    np.testing.assert_array_equal(problem.predict(fitted), expected)
    assert not problem.is_kept(AutoRecalibrator([("inner", plain)], cv=2))


@pytest.mark.parametrize(
    "inner",
    [
        LinearDiscriminantAnalysis(),
        GridSearchCV(VectorScalingRecalibrator(labels=range(4)), {"prior_weight": [1, 8]}, cv=2),
    ],
)
def test_what_takes_no_weights_learns_from_the_labels(inner, problem):
    auto = problem.fit(AutoRecalibrator([("inner", inner)]))
    assert problem.absent_proba(auto) < 0.1 * problem.expected


def test_samples_are_counted_once(problem):
    subgroups = SubgroupRecalibrator(TemperatureRecalibrator(), prior_weight=8)
    assert len(problem.fit(subgroups.set_params(min_samples=80)).subgroup_recalibrators_) == 2
    assert not problem.fit(subgroups.set_params(min_samples=160)).subgroup_recalibrators_


@pytest.mark.parametrize(
    "recalibrator",
    [
        AutoRecalibrator([("vector", VectorScalingRecalibrator())]),
        FeatureRecalibrator(TemperatureRecalibrator(), alpha=1, random_state=0),
        SubgroupRecalibrator(VectorScalingRecalibrator(), prior_weight=8),
    ],
)
def test_samples_of_weight_0_are_left_out(recalibrator):
    problem = Problem(300, effect=1.5)
    problem.label[problem.label == 2] = 1  # two classes are absent
    used = np.arange(300) % 4 > 0
    weighted = problem.predict(problem.fit(recalibrator, sample_weight=used))
    problem.rows, problem.label = problem.rows[used], problem.label[used]
    expected = problem.predict(problem.fit(recalibrator))
    np.testing.assert_allclose(weighted, expected, atol=1e-9)
