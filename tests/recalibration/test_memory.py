"""Fits take a bounded multiple of the memory of their input."""

import gc
import tracemalloc

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from skcalib.recalibration import (
    AutoRecalibrator,
    BetaRecalibrator,
    EnsembleTemperatureRecalibrator,
    IdentityRecalibrator,
    PairwiseScalingRecalibrator,
    SigmoidRecalibrator,
    SplineRecalibrator,
)


def two_classes():
    rng = np.random.default_rng(0)
    proba = expit(rng.normal(0, 1.5, 50_000))
    return proba, (rng.random(50_000) < expit(0.8 * logit(proba))).astype(int)


def ten_classes():
    rng = np.random.default_rng(0)
    scores = 1.5 * rng.normal(size=(20_000, 10))
    label = (softmax(0.8 * scores, axis=1).cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    return softmax(scores, axis=1), label.clip(0, 9)


@pytest.mark.parametrize(
    ("recalibrator", "problem"),
    [
        (SigmoidRecalibrator(), two_classes),
        (BetaRecalibrator(), two_classes),
        (SplineRecalibrator(), two_classes),
        (PairwiseScalingRecalibrator(), ten_classes),
    ],
)
def test_a_fit_takes_less_than_eleven_times_the_memory_of_its_input(recalibrator, problem):
    proba, label = problem()
    tracemalloc.start()
    recalibrator.fit(proba, label)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # 9.6 of all classes with NumPy 2.4 on Python 3.11, 10.4 with NumPy 2.5 on Python 3.14
    assert peak < 11 * (proba.nbytes + label.nbytes)


def test_the_search_for_a_mixture_leaves_no_data_behind():
    """Else the fits of all folds hold theirs until garbage is collected."""
    proba, label = (column[:5000] for column in ten_classes())
    EnsembleTemperatureRecalibrator().fit(proba[:100], label[:100])  # imports what it needs
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        EnsembleTemperatureRecalibrator().fit(proba, label)
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert left < proba.nbytes / 2


def test_probabilities_of_folds_are_not_kept():
    """Only the losses of candidates are compared."""
    proba, label = (column[:5000] for column in ten_classes())
    candidates = [(f"candidate {k}", IdentityRecalibrator()) for k in range(20)]
    tracemalloc.start()
    AutoRecalibrator(candidates, ensemble=False).fit(proba, label)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * proba.nbytes
