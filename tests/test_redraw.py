"""Labels drawn from the predictions have the frequencies of the predictions."""

import numpy as np
from scipy import stats

from skcalib._redraw import draw_labels


def test_frequencies_are_the_probabilities():
    proba = np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    drawn = draw_labels(proba, 20_000, np.random.default_rng(0))
    for row, labels in zip(proba, drawn.T, strict=True):
        possible = row > 0
        count = np.bincount(labels, minlength=3)
        assert count[~possible].sum() == 0
        if possible.sum() > 1:
            assert stats.chisquare(count[possible], 20_000 * row[possible]).pvalue > 1e-4


def test_two_classes():
    drawn = draw_labels(np.array([0.0, 0.25, 1.0]), 20_000, np.random.default_rng(0))
    mean = drawn.mean(axis=0)
    assert mean[0] == 0
    assert mean[2] == 1
    assert abs(mean[1] - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 20_000)


class _Largest:
    """A generator whose numbers are as close to 1 as they can be."""

    def random(self, shape):
        return np.full(shape, np.nextafter(1.0, 0.0))


def test_rounding_never_draws_an_impossible_class():
    proba = np.tile(np.array([0.1] * 10 + [0.0]), (3, 1))  # ten times 0.1 adds up to less than 1
    assert (draw_labels(proba, 5, _Largest()) == 9).all()
