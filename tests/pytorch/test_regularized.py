"""Sums of a proper loss and a penalty, in loops and as estimators of skorch."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

torch = pytest.importorskip("torch")
from torch import nn

from skcalib.metrics import make_scorer, quantile_calibration_error, smooth_calibration_error
from skcalib.torch import (
    CalibrationPenalty,
    CalibrationRegularizedLoss,
    DistributionMatchingLoss,
    NegativeLogLikelihoodLoss,
)

GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn((20, 3), generator=GENERATOR)
LABELS = torch.randint(0, 3, (20,), generator=GENERATOR)
WEIGHT = torch.rand(20, generator=GENERATOR)


def test_the_sum():
    base, penalty = nn.CrossEntropyLoss(), CalibrationPenalty("mmce")
    loss = CalibrationRegularizedLoss(base, penalty, weight=0.5)
    expected = base(LOGITS, LABELS) + 0.5 * penalty(LOGITS, LABELS)
    assert loss(LOGITS, LABELS) == expected
    assert repr(loss).startswith("CalibrationRegularizedLoss(\n  weight=0.5\n  (base): CrossE")
    loss.weight = 0.0
    assert loss(LOGITS, LABELS) == base(LOGITS, LABELS)


def test_without_weight_the_penalty_is_not_computed():
    def penalty(logits, labels):
        raise RuntimeError

    loss = CalibrationRegularizedLoss(nn.functional.cross_entropy, penalty, weight=0)
    assert loss(LOGITS, LABELS) == nn.functional.cross_entropy(LOGITS, LABELS)


def test_both_parts_are_weighted():
    base, penalty = nn.CrossEntropyLoss(reduction="none"), CalibrationPenalty("mmce")
    loss = CalibrationRegularizedLoss(base, penalty)
    value = loss(LOGITS, LABELS, sample_weight=WEIGHT)
    expected = (WEIGHT * base(LOGITS, LABELS)).sum() / WEIGHT.sum()
    expected = expected + penalty(LOGITS, LABELS, sample_weight=WEIGHT)
    assert value.item() == pytest.approx(expected.item(), abs=1e-6)


def test_ignored_samples_are_not_in_the_mean():
    masked = torch.where(torch.arange(20) < 15, LABELS, -100)
    mean = CalibrationRegularizedLoss(nn.CrossEntropyLoss(), CalibrationPenalty("mmce"))
    none = CalibrationRegularizedLoss(
        nn.CrossEntropyLoss(reduction="none"), CalibrationPenalty("mmce")
    )
    assert none(LOGITS, masked).item() == pytest.approx(mean(LOGITS, masked).item(), abs=1e-6)
    assert none(LOGITS, masked).item() == pytest.approx(
        mean(LOGITS[:15], LABELS[:15]).item(), abs=1e-6
    )


def test_columns_of_two_classes():
    logits, labels = LOGITS[:, :1], (LABELS[:, None] > 0).float()
    base = nn.BCEWithLogitsLoss(reduction="none")
    loss = CalibrationRegularizedLoss(base, DistributionMatchingLoss())
    expected = base(logits, labels).mean() + DistributionMatchingLoss()(logits, labels)
    assert loss(logits, labels).item() == pytest.approx(expected.item(), abs=1e-6)


def test_conditions_reach_the_penalty():
    penalty = DistributionMatchingLoss("group")
    loss = CalibrationRegularizedLoss(nn.CrossEntropyLoss(), penalty)
    group = torch.arange(20) % 2
    expected = nn.CrossEntropyLoss()(LOGITS, LABELS) + penalty(LOGITS, LABELS, given=group)
    assert loss(LOGITS, LABELS, given=group) == expected


class MeanAndSpread(nn.Module):
    """The same standard deviation for all inputs."""

    def __init__(self, n_features):
        super().__init__()
        self.mean = nn.Linear(n_features, 1)
        self.log_std = nn.Parameter(torch.zeros(()))

    def forward(self, X):
        return self.mean(X)[:, 0], self.log_std.exp().expand(len(X))


def test_classifiers_of_skorch_in_searches():
    skorch = pytest.importorskip("skorch")
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X.astype(np.float32)[:200], y[:200]
    network = skorch.NeuralNetClassifier(
        nn.Linear,
        module__in_features=30,
        module__out_features=2,
        criterion=CalibrationRegularizedLoss,
        criterion__base=nn.CrossEntropyLoss(),
        criterion__penalty=DistributionMatchingLoss(),
        predict_nonlinearity=partial(torch.softmax, dim=-1),
        lr=0.1,
        max_epochs=5,
        train_split=None,
        verbose=0,
    )
    search = GridSearchCV(
        make_pipeline(StandardScaler(), network),
        {"neuralnetclassifier__criterion__weight": [0.0, 50.0]},
        scoring={"loss": "neg_log_loss", "error": make_scorer(smooth_calibration_error)},
        refit="loss",
        cv=2,
    )
    torch.manual_seed(0)
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_error"]).all()
    assert np.ptp(search.cv_results_["mean_test_loss"]) > 1e-6  # the weight has an effect
    proba = search.predict_proba(X)
    assert proba.sum(axis=1) == pytest.approx(1, abs=1e-6)
    assert search.best_estimator_.score(X, y) > 0.9


def test_regressors_of_skorch_as_forecasters():
    skorch = pytest.importorskip("skorch")

    class Forecaster(skorch.NeuralNetRegressor):
        def predict(self, X, return_std=False):
            mean, std = (part.numpy() for part in self.forward(X))
            return (mean, std) if return_std else mean

    X, y = load_diabetes(return_X_y=True)
    X, y = X.astype(np.float32), ((y - y.mean()) / y.std()).astype(np.float32)
    network = Forecaster(
        MeanAndSpread,
        module__n_features=10,
        criterion=CalibrationRegularizedLoss,
        criterion__base=NegativeLogLikelihoodLoss(),
        criterion__penalty=DistributionMatchingLoss().fit(y),
        batch_size=64,
        lr=0.2,
        max_epochs=10,
        train_split=None,
        verbose=0,
    )
    search = GridSearchCV(
        make_pipeline(StandardScaler(), network),
        {"forecaster__criterion__weight": [0.0, 1.0]},
        scoring=make_scorer(quantile_calibration_error),
        cv=2,
    ).fit(X, y)
    mean, std = search.best_estimator_.predict(X, return_std=True)
    assert mean.shape == std.shape == y.shape
    assert search.best_score_ > -0.1
