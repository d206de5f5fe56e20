"""Labels drawn from the predictions have the frequencies of the predictions."""

import numpy as np
import pytest
from scipy import stats

from skcalib._inputs.drawing import draw_by_sample, draw_labels


def rows_with_zeros(n_classes):
    """Rows that sum to 1, with classes that cannot occur: none, the first, the last, and most."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), size=4)
    proba[1, : n_classes // 2] = 0.0
    proba[2, n_classes // 2 :] = 0.0
    proba[3, rng.permutation(n_classes)[2:]] = 0.0
    return proba / proba.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [3, 64, 65, 200])  # bisection with more than 64
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_frequencies_are_the_probabilities(n_classes, dtype):
    proba = rows_with_zeros(n_classes).astype(dtype)
    drawn = draw_labels(proba, 20_000, np.random.default_rng(0))
    for row, labels in zip(proba.astype(np.float64), drawn.T, strict=True):
        count = np.bincount(labels, minlength=n_classes)
        assert count[row == 0].sum() == 0
        order = np.argsort(row)
        cell = np.empty(n_classes, int)  # rare classes share one
        cell[order] = (20_000 * np.cumsum(row[order])).astype(int) // 20
        cell = np.unique(cell, return_inverse=True)[1]
        expected = np.bincount(cell, 20_000 * row / row.sum())
        found = np.bincount(cell, count)
        expected, found = expected[expected > 1e-9], found[expected > 1e-9]
        if len(found) == 1:  # of three classes, one is certain in a row
            assert n_classes == 3
            continue
        assert stats.chisquare(found, expected).pvalue > 1e-4


class _Numbers:
    """A generator that gives numbers known beforehand."""

    def __init__(self, numbers):
        self.numbers = numbers.ravel()

    def random(self, shape):
        size = int(np.prod(shape))
        numbers, self.numbers = self.numbers[:size], self.numbers[size:]
        return numbers.reshape(shape)


@pytest.mark.parametrize("n_classes", [3, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_uniform_number_has_the_label_of_its_interval(n_classes, dtype, monkeypatch):
    monkeypatch.setattr("skcalib._inputs.drawing._CHUNK", 3 * max(n_classes, 7))  # several chunks
    proba = np.tile(rows_with_zeros(n_classes), (2, 1)).astype(dtype)
    upper = np.cumsum(proba.astype(np.float64), axis=1)
    upper /= upper[:, -1:]
    lower = np.column_stack([np.zeros(8), upper[:, :-1]])
    rng = np.random.default_rng(1)
    label = np.array([rng.choice(np.flatnonzero(row), size=7) for row in proba])
    low, high = (np.take_along_axis(bound, label, axis=1) for bound in (lower, upper))
    for numbers in (low, (low + high) / 2, np.nextafter(high, 0.0)):
        assert (draw_by_sample(proba, 7, _Numbers(numbers)) == label).all()
        order = rng.permutation(8)
        generator = _Numbers(numbers[order])
        parts = [draw_by_sample(proba, 7, generator, rows) for rows in (order[:3], order[3:])]
        assert (np.concatenate(parts) == label[order]).all()


def test_two_classes():
    proba = np.array([0.0, 0.25, 1.0])
    drawn = draw_labels(proba, 20_000, np.random.default_rng(0))
    by_sample = draw_by_sample(proba, 20_000, np.random.default_rng(0))
    for mean in (drawn.mean(axis=0), by_sample.mean(axis=1)):
        assert mean[0] == 0
        assert mean[2] == 1
        assert abs(mean[1] - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 20_000)


@pytest.mark.parametrize("n_classes", [11, 101])
def test_rounding_never_draws_an_impossible_class(n_classes):
    likely = n_classes - 1
    proba = np.full((3, n_classes), 1 / likely)
    proba[:, -1] = 0.0
    assert np.cumsum(proba[0])[-1] != 1  # 0.1 ten times adds up to less, 0.01 a hundred times more
    largest = np.full((3, 5), np.nextafter(1.0, 0.0))
    assert (draw_labels(proba, 5, _Numbers(largest)) == likely - 1).all()
