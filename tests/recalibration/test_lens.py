"""The recalibrator of the problems of a lens equals loops over binary recalibrators."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from skcalib.lenses import BinaryProblem, ClassGroups, Multilabel, Ordinal, TopK
from skcalib.metrics import make_scorer, score_decomposition, smooth_calibration_error
from skcalib.recalibration import (
    IsotonicRecalibrator,
    LensRecalibrator,
    RecalibratedClassifier,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
)


def ordinal_problem(n, seed=0):
    """Labels by thresholds of a noisy score, and predictions that are overconfident."""
    rng = np.random.default_rng(seed)
    score, ends = rng.normal(size=n), np.array([-1.0, 0.0, 1.5])
    cumulative = np.pad(expit(ends - score[:, None]), [(0, 0), (1, 1)])
    cumulative[:, -1] = 1
    sure = np.pad(expit(3 * (ends - score[:, None])), [(0, 0), (1, 1)])
    sure[:, -1] = 1
    return (rng.random(n)[:, None] > cumulative[:, 1:-1]).sum(axis=1), np.diff(sure, axis=1)


def multilabel_problem(n, seed=0):
    """Labels that depend on each other, and predictions that are overconfident."""
    rng = np.random.default_rng(seed)
    proba = rng.uniform(0.05, 0.95, (n, 3))
    return (rng.random((n, 1)) < proba).astype(int), expit(2 * logit(proba))


def ranked_probability_score(y, proba):
    return np.mean(((proba.cumsum(axis=1) - (y[:, None] <= np.arange(4))) ** 2).sum(axis=1))


@pytest.mark.parametrize("inner", [SigmoidRecalibrator(), IsotonicRecalibrator(strict=False)])
def test_ordinal_equals_loops_over_thresholds(inner):
    rng = np.random.default_rng(1)
    y, proba, weight = rng.integers(0, 4, 80), rng.dirichlet(np.ones(4), 80), rng.random(80)
    fitted = LensRecalibrator(inner, multi_class=Ordinal()).fit(proba, y, weight)
    query = rng.dirichlet(np.ones(4), 200)
    columns = []
    for k in range(3):
        alone = type(inner)(**inner.get_params()).set_params(labels=[False, True])
        alone.fit(proba[:, : k + 1].sum(axis=1).clip(0, 1), y <= k, weight)
        columns.append(alone.predict_proba(query[:, : k + 1].sum(axis=1).clip(0, 1))[:, 1])
    expected, n_crossed = [], 0
    for row in np.transpose(columns):
        n_crossed += list(row) != sorted(row)
        ends = [0, *sorted(row), 1]
        expected.append([high - low for low, high in itertools.pairwise(ends)])
    assert n_crossed > 0
    actual = fitted.predict_proba(query)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)
    assert actual.min() >= 0
    np.testing.assert_allclose(actual.sum(axis=1), 1, rtol=0, atol=1e-12)


def test_ordered_names_in_any_order_of_columns():
    y, proba = ordinal_problem(80)
    expected = LensRecalibrator(multi_class=Ordinal()).fit(proba, y).predict_proba(proba)
    names = np.array(["none", "mild", "severe", "fatal"])
    fitted = LensRecalibrator(multi_class=Ordinal(names)).fit(proba[:, [3, 1, 0, 2]], names[y])
    assert fitted.classes_.tolist() == ["fatal", "mild", "none", "severe"]
    actual = fitted.predict_proba(proba[:, [3, 1, 0, 2]])
    np.testing.assert_allclose(actual, expected[:, [3, 1, 0, 2]], rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match=r"Pass Ordinal\(ranking="):
        LensRecalibrator(multi_class=Ordinal()).fit(proba[:, [3, 1, 0, 2]], names[y])


def test_multilabel_equals_loops_over_labels():
    y, proba = multilabel_problem(60)
    weight = np.random.default_rng(1).random(60)
    fitted = LensRecalibrator(multi_class=Multilabel()).fit(proba, y, weight)
    actual = fitted.predict_proba([np.column_stack([1 - p, p]) for p in proba.T])
    losses = []
    for k in range(3):
        alone = SigmoidRecalibrator().fit(proba[:, k], y[:, k], weight)
        expected = alone.predict_proba(proba[:, k])[:, 1]
        np.testing.assert_allclose(actual[:, k], expected, rtol=0, atol=1e-12)
        losses.append(log_loss(y[:, k], expected, sample_weight=weight))
    assert fitted.score(proba, y, weight) == pytest.approx(-np.mean(losses), abs=1e-12)
    np.testing.assert_array_equal(fitted.predict(proba), actual > 0.5)
    assert fitted.__sklearn_tags__().classifier_tags.multi_label


@pytest.mark.parametrize("lens", ["classwise", Ordinal(), Ordinal([1, 0]), TopK(1)], ids=str)
def test_two_classes_are_the_binary_recalibrator(lens):
    rng = np.random.default_rng(0)
    proba = rng.random(60)
    y = (rng.random(60) < proba**2).astype(int)
    expected = TemperatureRecalibrator().fit(proba, y).predict_proba(proba)
    actual = LensRecalibrator(TemperatureRecalibrator(), multi_class=lens).fit(proba, y)
    np.testing.assert_array_equal(actual.predict_proba(proba), expected)


def test_what_is_overconfident_becomes_better():
    (y, proba), (y_new, new) = ordinal_problem(500), ordinal_problem(2000, seed=1)
    mapped = LensRecalibrator(multi_class=Ordinal()).fit(proba, y).predict_proba(new)
    before, after = (ranked_probability_score(y_new, p) for p in (new, mapped))
    assert after < before - 0.01
    score = score_decomposition(y_new, mapped, multi_class=Ordinal()).score
    assert 3 * score == pytest.approx(after, abs=1e-12)
    (y, proba), (y_new, new) = multilabel_problem(500), multilabel_problem(2000, seed=1)
    mapped = LensRecalibrator(multi_class=Multilabel()).fit(proba, y).predict_proba(new)
    for k in range(3):
        assert log_loss(y_new[:, k], mapped[:, k]) < log_loss(y_new[:, k], new[:, k]) - 0.02


class Cumulative:
    """The ordinal problems, written by a user."""

    def reduce(self, data):
        for k in range(data.matrix.shape[1] - 1):
            yield BinaryProblem(data.label <= k, data.matrix[:, : k + 1].sum(axis=1))

    def combine(self, proba):
        return np.diff(np.sort(proba, axis=1), prepend=0, append=1)


class Half(Cumulative):
    def reduce(self, data):
        rows = np.arange(len(data.label)) % 2 == 0
        yield BinaryProblem(data.label[rows] == 0, data.matrix[rows, 0], rows=rows)


def test_lens_of_a_user():
    y, proba = ordinal_problem(80)
    expected, actual = (
        LensRecalibrator(multi_class=lens).fit(proba, y).predict_proba(proba)
        for lens in (Ordinal(), Cumulative())
    )
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("lens", "message"),
    [
        (TopK(2), "determine the probabilities of all classes"),
        (ClassGroups([[0, 1], [2, 3]]), "determine the probabilities of all classes"),
        (Half(), "problems of all samples"),
        ("top-label", "The 'multi_class' parameter of LensRecalibrator"),
        (Multilabel(), "y must be an indicator matrix"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_lenses_that_cannot_be_put_together_are_refused(lens, message):
    y, proba = ordinal_problem(80)
    with pytest.raises(ValueError, match=message):
        LensRecalibrator(multi_class=lens).fit(proba, y)


def test_labels_without_events_and_wrong_columns():
    y, proba = multilabel_problem(60)
    y[:, 1] = 0
    recalibrator = LensRecalibrator(multi_class=Multilabel())
    with pytest.warns(UserWarning, match=r"y holds one value only of the label.s. \[1\]"):
        fitted = recalibrator.fit(proba, y)
    assert fitted.predict_proba(proba)[:, 1].mean() < proba[:, 1].mean() / 2
    with pytest.raises(ValueError, match="X must hold the probabilities of the 3 classes"):
        fitted.predict_proba(proba[:, :2])
    with pytest.raises(ValueError, match=r"X must have shape .n_samples, n_labels."):
        fitted.predict_proba(proba[:, 0])


def test_single_and_two_labels_keep_their_columns():
    y, proba = multilabel_problem(60)
    three = LensRecalibrator(multi_class=Multilabel()).fit(proba, y).predict_proba(proba)
    for n_labels in (1, 2):
        fitted = LensRecalibrator(multi_class=Multilabel()).fit(
            proba[:, :n_labels], y[:, :n_labels]
        )
        actual = fitted.predict_proba(proba[:, :n_labels])
        np.testing.assert_allclose(actual, three[:, :n_labels], rtol=0, atol=1e-12)


def test_search_over_lenses():
    y, proba = ordinal_problem(300)
    scorer = make_scorer(smooth_calibration_error, multi_class=Ordinal())
    search = GridSearchCV(
        LensRecalibrator(), {"multi_class": ["classwise", Ordinal()]}, scoring=scorer, cv=3
    ).fit(proba, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert scores[0] != scores[1]
    assert search.best_estimator_.multi_class == ["classwise", Ordinal()][scores.argmax()]


def test_in_a_recalibrated_classifier():
    y, proba = ordinal_problem(300)
    X = proba + np.random.default_rng(0).normal(scale=0.3, size=proba.shape)
    model = RecalibratedClassifier(GaussianNB(), LensRecalibrator(multi_class=Ordinal()), cv=3)
    model.fit(X, y)
    assert model.combine_ == "log"
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
