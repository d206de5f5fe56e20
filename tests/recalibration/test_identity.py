import numpy as np
import pytest
from problems import random_problem, two_columns
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline

from skcalib import recalibration
from skcalib.recalibration import (
    AutoRecalibrator,
    FeatureRecalibrator,
    IdentityRecalibrator,
    PredictProba,
    RecalibratedClassifier,
    SigmoidRecalibrator,
    SubgroupRecalibrator,
)
from skcalib.recalibration._base import Recalibrator
from skcalib.recalibration._registry import RECALIBRATORS, default_candidates


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_stay(n_classes):
    label, proba = random_problem(np.random.default_rng(0), 20, n_classes)
    fitted = IdentityRecalibrator().fit(proba, label)
    expected = two_columns(proba) if n_classes == 2 else proba
    calibrated = fitted.predict_proba(proba)
    np.testing.assert_array_equal(calibrated, expected)
    assert not np.shares_memory(calibrated, proba)


def test_in_a_grid_it_scores_as_the_classifier_alone():
    X, y = load_breast_cancer(return_X_y=True)
    steps = [("classifier", PredictProba(GaussianNB())), ("recalibrator", SigmoidRecalibrator())]
    grid = {"recalibrator": [IdentityRecalibrator(), SigmoidRecalibrator()]}
    options = {"scoring": "neg_log_loss", "cv": 3}
    search = GridSearchCV(Pipeline(steps), grid, **options).fit(X, y)
    alone = GridSearchCV(GaussianNB(), {}, **options).fit(X, y)
    score = search.cv_results_["mean_test_score"]
    assert score[0] == pytest.approx(alone.best_score_, rel=1e-12)
    assert score[1] > score[0]


def test_a_classifier_that_is_not_recalibrated():
    X, y = load_breast_cancer(return_X_y=True)
    model = RecalibratedClassifier(GaussianNB(), IdentityRecalibrator(), ensemble=False).fit(X, y)
    expected = GaussianNB().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-15)


def test_every_recalibrator_is_registered():
    public = [getattr(recalibration, name) for name in recalibration.__all__]
    classes = {c for c in public if isinstance(c, type) and issubclass(c, Recalibrator)}
    expected = classes - {AutoRecalibrator, FeatureRecalibrator, SubgroupRecalibrator}
    assert {type(entry.recalibrator) for entry in RECALIBRATORS.values()} == expected


def test_default_candidates_derive_from_the_registry(monkeypatch):
    label, proba = random_problem(np.random.default_rng(0), 30)
    new = RECALIBRATORS["identity"]._replace(for_two_classes=True)
    monkeypatch.setitem(RECALIBRATORS, "new", new)
    assert AutoRecalibrator().fit(proba, label).results_["name"][-1] == "new"
    assert "new" not in default_candidates(is_binary=False)
