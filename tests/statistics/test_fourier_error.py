"""The squared kernel error by random features."""

import numpy as np
import pytest
from joblib import parallel_backend
from problems import random_problem

from skcalib._data import check_predictions
from skcalib._inputs.drawing import draw_labels
from skcalib._statistics.fourier_error import FourierKernelError
from skcalib._statistics.gram import random_frequencies
from skcalib._statistics.kernels import KERNELS
from skcalib._statistics.omnibus import omnibus
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import squared_kernel_calibration_error


def by_loops(data, labels, error):
    """The estimate in double precision, from the same frequencies."""
    options, matrix, weight = error.options, data.matrix, data.weight
    frequencies = random_frequencies(
        KERNELS[options["kernel"]],
        options["bandwidth"],
        (options["n_components"], matrix.shape[1]),
        np.random.default_rng(options["seed"]),
    )
    kernel = np.cos((matrix[:, None] - matrix) @ frequencies.T).mean(axis=2)
    residual = (labels[:, None] == np.arange(matrix.shape[1])) - matrix
    m = options["class_kernel"]
    terms = kernel * (residual @ (np.eye(len(matrix.T)) if m is None else m) @ residual.T)
    terms *= np.outer(weight, weight)
    if options["estimation"] == "biased":
        return terms.sum()
    np.fill_diagonal(terms, 0.0)
    return terms.sum() / (1 - weight @ weight)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("estimation", ["biased", "unbiased"])
@pytest.mark.parametrize("with_class_kernel", [False, True])
def test_sums_by_class_equal_loops(n_classes, kernel, estimation, with_class_kernel, monkeypatch):
    monkeypatch.setattr("skcalib._statistics.fourier_error._SINGLE_BLOCK_SIZE", 7)  # several blocks
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 40, n_classes)
    data = check_predictions(label, proba, sample_weight=rng.random(40))
    root = rng.normal(size=(n_classes, n_classes))
    error = FourierKernelError(
        data,
        kernel=kernel,
        estimation=estimation,
        n_components=6,
        seed=1,
        class_kernel=root @ root.T if with_class_kernel else None,
    )
    labels = draw_labels(data.proba, 3, rng)
    expected = [by_loops(data, row, error) for row in labels]
    np.testing.assert_allclose(error(labels), expected, atol=2e-6)
    ones = error.flip_signs(np.ones((1, 40)))
    np.testing.assert_allclose(ones, error(data.label[None]), atol=1e-7)


def test_waves_are_made_for_blocks_of_rows(monkeypatch):
    label = np.arange(40_000) % 2
    error = FourierKernelError(check_predictions(label, label / 2), n_components=1, seed=0)
    sizes, waves = [], error.waves
    monkeypatch.setattr(error, "waves", lambda rows: sizes.append(len(rows)) or waves(rows))
    error(label[None])
    assert (sum(sizes), max(sizes) <= 20_000) == (40_000, True)


def test_signs_multiply_residuals():
    rng = np.random.default_rng(0)
    label, proba = random_problem(rng, 30, 3)
    data = check_predictions(label, proba)
    error = FourierKernelError(data, n_components=5, estimation="biased")
    features = error.waves(np.arange(30)).astype(float) * error.largest
    residual = (label[:, None] == np.arange(3)) - data.matrix
    signs = rng.choice([-1.0, 1.0], size=(4, 30))
    expected = [np.sum(((features * row[:, None]).T @ residual) ** 2) for row in signs]
    np.testing.assert_allclose(error.flip_signs(signs), expected, rtol=1e-5)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_mean_over_frequencies_is_the_exact_error(kernel):
    label, proba = random_problem(np.random.default_rng(0), 60, 3)
    exact = squared_kernel_calibration_error(label, proba, kernel=kernel)
    drawn = [
        squared_kernel_calibration_error(
            label, proba, kernel=kernel, method="fourier", n_components=100, random_state=seed
        )
        for seed in range(60)
    ]
    assert np.mean(drawn) == pytest.approx(exact, abs=4 * np.std(drawn) / np.sqrt(60))
    assert np.std(drawn) < 0.1 * squared_kernel_calibration_error(
        label, proba, kernel=kernel, estimation="biased"
    )


def test_test_by_random_features():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=300)
    options = {"metric_params": {"method": "fourier", "n_components": 50}, "random_state": 0}
    test = CalibrationTest("skce", n_resamples=99, **options)
    calibrated = draw_labels(proba, 1, rng)[0]
    assert test.fit(proba, calibrated).p_value_ > 0.05
    metric = squared_kernel_calibration_error(
        calibrated, proba, method="fourier", n_components=50, random_state=0
    )
    assert abs(test.statistic_ - metric) < 1e-3  # other frequencies
    order = rng.permutation(300)
    p_value = test.p_value_
    assert test.fit(proba[order], calibrated[order]).p_value_ == p_value
    assert test.fit(proba, rng.integers(4, size=300)).p_value_ == 0.01


@pytest.mark.parametrize("statistic", ["skce", "log_loss", "brier_score_loss", "omnibus"])
@pytest.mark.parametrize("concentration", [1.0, 0.05])  # certain predictions are summed otherwise
def test_sums_over_blocks_of_samples(statistic, concentration, monkeypatch):
    monkeypatch.setattr("skcalib._statistics.omnibus._MULTIPLICATIONS", 0)
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(4, concentration), size=60).astype(np.float32)
    label = draw_labels(proba, 1, rng)[0]
    options = {"n_resamples": 39, "random_state": 0, "labels": range(4)}
    if statistic == "skce":
        options["metric_params"] = {"method": "fourier", "n_components": 5}

    def fitted(proba, rows=slice(None), **further):
        return CalibrationTest(statistic, **options, **further).fit(proba[rows], label[rows])

    test = fitted(proba)
    order = rng.permutation(60)
    others = [fitted(proba.astype(np.float64)), fitted(proba, order)]
    monkeypatch.setattr("skcalib._statistics.base._MAX_BLOCK_LABELS", 7 * 39)
    monkeypatch.setattr("skcalib._numerics.logits._CACHE_BLOCK_ENTRIES", 3 * 39)
    others.append(fitted(proba))
    monkeypatch.setattr("skcalib._inputs.drawing._MAX_BATCH_RESIDUALS", 10 * 60)
    with parallel_backend("threading"):
        others += [fitted(proba, n_jobs=2)]
    alone = fitted(proba)
    for other in others[:-1]:
        np.testing.assert_allclose(other.null_distribution_, test.null_distribution_, rtol=1e-4)
        assert other.p_value_ == test.p_value_
    assert (others[-1].null_distribution_ == alone.null_distribution_).all()
    assert not np.allclose(alone.null_distribution_, test.null_distribution_)  # other seeds


def test_omnibus_takes_random_features_where_pairs_would_take_long(monkeypatch):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=100)
    label = draw_labels(proba, 1, rng)[0]
    test = CalibrationTest(n_resamples=19, random_state=0).fit(proba, label)
    assert test.kernel_method_ == "exact"
    exact = test.component_statistics_["skce"]
    monkeypatch.setattr("skcalib._statistics.omnibus._MULTIPLICATIONS", 1e4)
    test.fit(proba, label)
    assert test.kernel_method_ == "fourier"
    assert test.component_statistics_["skce"] == pytest.approx(exact, abs=3e-3)
    assert test.component_statistics_["skce"] != exact


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": lambda s, t: s @ t.T}, "needs a named kernel"),
        ({"estimation": "linear"}, "'unbiased' or 'biased'; found 'linear'"),
        ({"n_components": 0}, "'n_components'"),
    ],
)
def test_bad_options(options, message):
    label, proba = random_problem(np.random.default_rng(0), 20, 3)
    with pytest.raises(ValueError, match=message):
        squared_kernel_calibration_error(label, proba, method="fourier", **options)
    with pytest.raises(ValueError, match=message):
        _fourier_test(**options).fit(proba, label)


@pytest.mark.parametrize(("n_samples", "method"), [(1300, "exact"), (1500, "fourier")])
def test_omnibus_chooses_by_the_cost_of_all_draws(n_samples, method):
    proba = np.full((n_samples, 10), 0.1)
    data = check_predictions(np.arange(n_samples) % 10, proba)
    assert omnibus(data, bandwidth=1.0).kernel_method == method


def _fourier_test(n_components=200, **options):
    params = {"method": "fourier", "n_components": n_components}
    return CalibrationTest("skce", metric_params=params, **options)
