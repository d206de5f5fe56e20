"""Labels drawn from the predictions have the frequencies of the predictions."""

import numpy as np
import pytest
from scipy import stats

from skcalib._inputs.drawing import (
    draw_by_sample,
    draw_labels,
    draw_labels_in_groups,
    estimate_group_dependence,
)


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
    monkeypatch.setattr(
        "skcalib._inputs.drawing._UNIFORM_BLOCK_SIZE", 3 * max(n_classes, 7)
    )  # several chunks
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


def runs_of_a_group(proba, chance, rows):
    """The rows of a group by confidence, divided where another surprise is expected."""
    surprises, last, runs = 0.0, -1, []
    for place, i in enumerate(sorted(rows, key=lambda i: proba[i].max())):
        surprises += (1 - chance[i].max()) * (place > 0)
        if int(surprises) > last:
            runs.append([])
            last = int(surprises)
        runs[-1].append(i)
    return runs


def dependence_by_loops(proba, label, code, weight):
    """The dependence of each group, from those of at least half and at most twice its weight."""
    n_classes = proba.shape[1]
    tilted = [proba[:, k] * np.sum(label == k) / proba[:, k].sum() for k in range(n_classes)]
    chance = np.transpose(tilted / np.sum(tilted, axis=0))
    size, vote, above_observed, above_identical = [], [], [], []
    for g in range(code.max() + 1):
        rows = np.flatnonzero(code == g)
        independent = identical = observed = 0.0
        for run in runs_of_a_group(proba, chance, rows):
            for k in range(n_classes):
                independent += 1 - np.prod(1 - chance[run, k])
                identical += chance[run, k].max()
                observed += (label[run] == k).any()
        size.append(sum(weight[rows]) / np.mean(weight))
        vote.append(size[-1] ** 2 / len(rows))
        above_observed.append(independent - observed)
        above_identical.append(independent - identical)
    dependence = []
    for g in range(len(size)):
        similar = [h for h in range(len(size)) if 0.4999 < size[h] / size[g] < 2.0001]
        missing = sum(vote[h] * above_observed[h] for h in similar) + 2 * vote[g]
        possible = sum(vote[h] * above_identical[h] for h in similar) + 2 * vote[g]
        dependence.append(min(max(missing / possible, 0), 1))
    return dependence


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_dependence_equals_loops(n_classes, weighted):
    rng = np.random.default_rng(0)
    code = rng.permutation(np.repeat(np.arange(12), [1, 1, 2, 2, 2, 3, 4, 5, 8, 8, 12, 24]))
    proba = rng.dirichlet(np.ones(n_classes), size=72)
    weight = rng.exponential(size=72) if weighted else np.full(72, 1 / 72)
    for _ in range(5):
        label = (rng.random((12, 1))[code] > proba.cumsum(axis=1)).sum(axis=1)
        label = np.where(rng.random(72) < 0.5, label, rng.integers(n_classes, size=72))
        expected = dependence_by_loops(proba, label, code, weight)
        dependence = estimate_group_dependence(proba, label, code, weight)
        np.testing.assert_allclose(dependence, expected, rtol=0, atol=1e-12)
        assert len(set(expected)) > 3


def test_dependence_by_hand():
    # ten groups of two, four events: 3.6 groups with an event and 9.6 without one are expected of
    # independent labels, and 2 and 8 of dependent ones. Two groups have both; four have one; none
    proba, code = np.full((20, 2), [0.8, 0.2]), np.repeat(np.arange(10), 2)
    label, weight = np.zeros((3, 20), int), np.full(20, 0.05)
    label[0, :4] = label[1, ::5] = 1
    for row, expected in zip(label, [1.0, 1.2 / 5.2, 1.0], strict=True):
        dependence = estimate_group_dependence(proba, row, code, weight)
        np.testing.assert_allclose(dependence, np.full(10, expected), rtol=1e-12)
    # what is impossible, and what is certain
    sure = np.full((20, 2), [1.0, 0.0])
    assert (estimate_group_dependence(sure, label[2], code, weight) == 1.0).all()
    certain = estimate_group_dependence(sure, label[0], code, weight)
    assert ((certain >= 0) & (certain <= 1)).all()


def test_many_small_groups_do_not_outvote_large_ones():
    # 60 pairs with different labels; four groups of eight, or of a pair's size and four times its
    # weight, with the same label in each
    label = np.tile([0, 1], 60)
    for n_rows, heavy in ((8, 1.0), (2, 4.0)):
        code = np.repeat(np.arange(64), [2] * 60 + [n_rows] * 4)
        labels = np.append(label, np.repeat([0, 1, 0, 1], n_rows))
        weight = np.where(code < 60, 1.0, heavy)
        half = np.full((len(code), 2), 0.5)
        dependence = estimate_group_dependence(half, labels, code, weight)
        assert dependence[:60].max() < 0.1
        assert dependence[60:].min() > 0.99


def test_draws_in_groups_follow_one_number():
    rng = np.random.default_rng(0)
    proba = np.tile(rng.dirichlet([2, 1, 1], size=5), (4, 1))
    code, label = np.tile(np.arange(5), 4), np.zeros(20, int)  # 0 is all that is seen
    drawn = draw_labels_in_groups(proba, label, code, np.ones(20), 4000, rng)
    assert drawn.shape == (4000, 20)
    assert (drawn.reshape(-1, 4, 5) == drawn[:, None, :5]).all()
    for k in range(3):
        error = 4 * np.sqrt(0.25 / 4000)
        np.testing.assert_allclose(np.mean(drawn == k, axis=0), proba[:, k], atol=error)
    # labels that differ within groups: each sample is drawn by itself, with the same frequencies
    half = np.full((2000, 2), 0.5)
    label, code = np.tile([0, 1], 1000), np.repeat(np.arange(1000), 2)
    drawn = draw_labels_in_groups(half, label, code, np.ones(2000), 50, rng).reshape(50, 1000, 2)
    assert abs(np.mean(drawn[..., 0] == drawn[..., 1]) - 0.5) < 4 * np.sqrt(0.25 / 50_000)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_draws_by_rank_are_wrong_together(n_classes):
    # four rows of a group have the same probabilities, of other classes each
    rng = np.random.default_rng(0)
    proba = np.tile(rng.dirichlet(2.0 ** np.arange(n_classes), size=5), (4, 1))
    proba = rng.permuted(proba, axis=1)
    code, label = np.tile(np.arange(5), 4), proba.argmax(axis=1)  # all are right
    drawn = draw_labels_in_groups(proba, label, code, np.ones(20), 4000, rng, by_rank=True)
    assert drawn.dtype == np.int32
    for k in range(n_classes):
        error = 4 * np.sqrt(0.25 / 4000)
        np.testing.assert_allclose(np.mean(drawn == k, axis=0), proba[:, k], atol=error)
    drawn_proba = proba[np.arange(20), drawn]
    assert (drawn_proba.reshape(-1, 4, 5) == drawn_proba[:, None, :5]).all()
    assert (drawn.reshape(-1, 4, 5) != drawn[:, None, :5]).any()
