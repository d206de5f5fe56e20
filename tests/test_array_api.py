"""Arrays of other packages, under scikit-learn's `array_api_dispatch`, against those of NumPy."""

import re
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
import scipy
import sklearn
from cases import RECALIBRATOR_CASES
from pages import read_page
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

from skcalib._data import check_predictions
from skcalib._inputs.drawing import draw_labels
from skcalib._inputs.probabilities import check_probabilities
from skcalib._numerics.array_api import to_numpy
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    conditional_kernel_calibration_error,
    kernel_calibration_error,
    squared_kernel_calibration_error,
)
from skcalib.recalibration import (
    ClosedTestingRecalibrator,
    DirichletRecalibrator,
    EnsembleTemperatureRecalibrator,
    InterceptRecalibrator,
    IsotonicRecalibrator,
    MatrixScalingRecalibrator,
    PredictProba,
    RecalibratedClassifier,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)

pytestmark = pytest.mark.skipif(
    parse_version(scipy.__version__) < parse_version("1.14"), reason="scikit-learn needs SciPy 1.14"
)

# The largest error next to the largest term.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


def devices():
    """The package, the device and the precision of the arrays that are tried."""
    names = []
    if find_spec("torch"):
        import torch

        names += ["torch"] + ["cuda"] * torch.cuda.is_available()
    cases = [(name, dtype) for name in names for dtype in TOLERANCE]
    if find_spec("array_api_strict"):
        cases += [("array_api_strict", "float64")]
    return cases or [pytest.param(("none", "none"), marks=pytest.mark.skip("no package"))]


class Package:
    """Makes arrays of a package, with numbers of one precision."""

    def __init__(self, name, dtype):
        self.name, self.dtype, self.tolerance = name, dtype, TOLERANCE[dtype]

    def __call__(self, values):
        values = np.array(values)
        values = values.astype(self.dtype) if values.dtype.kind == "f" else values
        if self.name == "array_api_strict":
            import array_api_strict

            return array_api_strict.asarray(values)
        import torch

        return torch.tensor(values, device="cuda" if self.name == "cuda" else "cpu")


@pytest.fixture(params=devices(), ids="-".join)
def package(request, monkeypatch):
    """A package whose arrays are computed on where they are."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield Package(*request.param)


@pytest.fixture
def stays(package, monkeypatch):
    """Call it to forbid that matrices of fifty samples become NumPy's."""
    if package.name == "array_api_strict":
        pytest.skip("its arrays are those of NumPy")
    import torch

    def forbidden(name):
        method = getattr(torch.Tensor, name)

        def checked(tensor, *args, **kwargs):
            if tensor.ndim > 1 and max(tensor.shape) >= 50:
                raise RuntimeError(f"{name} of a matrix")
            return method(tensor, *args, **kwargs)

        monkeypatch.setattr(torch.Tensor, name, checked)

    def forbid():
        for name in ("numpy", "__array__", "tolist", "__dlpack__", "cpu"):
            forbidden(name)

    return forbid


def problem(n, n_classes, seed=0, spread=2.0):
    """Logits and labels that follow other ones; for two classes log-odds (n,)."""
    rng = np.random.default_rng(seed)
    logits = spread * rng.normal(size=(n, n_classes))
    truth = softmax(0.7 * logits + 0.3 * np.arange(n_classes))
    label = np.minimum((rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1), n_classes - 1)
    return (logits[:, 1] - logits[:, 0] if n_classes == 2 else logits), label


def softmax(logits):
    if logits.ndim == 1:
        return 1 / (1 + np.exp(-logits))
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True)


def same_precision(values, package):
    """What NumPy gets: the same numbers."""
    return values.astype(package.dtype)


# Those of logits as well; updates of an old model have a test of their own.
FITTED_ON_DEVICE = [
    DirichletRecalibrator,
    MatrixScalingRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
]
FITTED_BY_NUMPY = [  # they convert once, at fit
    ClosedTestingRecalibrator,
    EnsembleTemperatureRecalibrator,
    InterceptRecalibrator,
]
RECALIBRATORS = FITTED_ON_DEVICE + FITTED_BY_NUMPY


@pytest.mark.parametrize(
    ("input_type", "n_classes"), [("probabilities", 2), ("probabilities", 4), ("logits", 4)]
)
@pytest.mark.parametrize("recalibrator", RECALIBRATORS)
def test_scaling(recalibrator, input_type, n_classes, package):
    logits, y = problem(60, n_classes)
    X = logits if input_type == "logits" else softmax(logits)
    X = same_precision(X, package)
    expected = recalibrator(input_type=input_type).fit(X, y)
    fitted = recalibrator(input_type=input_type).fit(package(X), package(y))
    given = package(X)
    result = fitted.predict_proba(given)
    assert type(result) is type(given)
    assert result.dtype == given.dtype
    assert result.device == given.device
    np.testing.assert_array_equal(to_numpy(given), X)  # nothing is written into it
    atol = package.tolerance
    np.testing.assert_allclose(to_numpy(result), expected.predict_proba(X), rtol=0, atol=atol)
    np.testing.assert_array_equal(to_numpy(fitted.transform(given)), to_numpy(result))
    labels = fitted.predict(given)
    assert type(labels) is type(given)
    np.testing.assert_array_equal(to_numpy(labels), np.argmax(to_numpy(result), axis=1))


@pytest.mark.parametrize("recalibrator", RECALIBRATORS)
def test_scaling_converts_no_matrix(recalibrator, package, stays):
    logits, y = problem(50, 3)
    X, y = package(softmax(logits)), package(y)
    fitted = recalibrator()
    if recalibrator in FITTED_BY_NUMPY:
        fitted.fit(X, y)
    stays()
    if recalibrator in FITTED_ON_DEVICE:
        fitted.fit(X, y)
    assert fitted.predict_proba(X).shape == (50, 3)
    assert fitted.predict(X).shape == (50,)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("recalibrator", RECALIBRATORS)
def test_weighted_samples(recalibrator, n_classes, package):
    logits, y = problem(60, n_classes)
    X = same_precision(softmax(logits), package)
    weight = np.random.default_rng(1).integers(0, 3, size=60).astype(package.dtype)
    expected = recalibrator().fit(X, y, weight)
    fitted = recalibrator().fit(package(X), package(y), package(weight))
    attributes = vars(expected).keys() & {"temperature_", "coef_", "intercept_"}
    assert attributes
    for name in attributes:
        value = getattr(fitted, name)
        assert isinstance(value, float | np.ndarray)
        np.testing.assert_allclose(value, getattr(expected, name), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("recalibrator", [InterceptRecalibrator, ClosedTestingRecalibrator])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_calibrated", [False, True])
def test_updating_stays_after_fit(recalibrator, n_classes, is_calibrated, package):
    logits, y = problem(200, n_classes)
    proba = softmax(logits)
    if is_calibrated:  # the closed test changes nothing
        y = draw_labels(proba, 1, np.random.default_rng(0))[0]
    X = same_precision(proba, package)
    fitted = recalibrator().fit(X, y)
    if is_calibrated:
        assert getattr(fitted, "chosen_", "none") == "none"
    expected = fitted.predict_proba(X)
    result = recalibrator().fit(package(X), package(y)).predict_proba(package(X))
    assert result.dtype == package(X).dtype
    np.testing.assert_allclose(to_numpy(result), expected, rtol=0, atol=package.tolerance)


def test_temperature_zero_and_zeros(package):
    X = np.array([[0.5, 0.25, 0.25], [0.0, 0.75, 0.25], [0.25, 0.25, 0.5]])
    fitted = TemperatureRecalibrator(prior_weight=0).fit(package(X), [0, 1, 2])
    assert fitted.temperature_ == 0
    assert fitted.smallest_probability_ == 0.125
    result = to_numpy(fitted.predict_proba(package(X)))
    np.testing.assert_allclose(result, np.eye(3), atol=1e-15)


def test_one_column_with_gradients_and_strings(package):
    logits, y = problem(100, 2)
    X = same_precision(softmax(logits), package)
    names = np.array(["no", "yes"])[y]
    column = package(X)[:, None]
    if package.name != "array_api_strict":
        column.requires_grad_()
    fitted = TemperatureRecalibrator(labels=["no", "yes"]).fit(column, names)
    expected = TemperatureRecalibrator(labels=["no", "yes"]).fit(X, names)
    assert fitted.temperature_ == pytest.approx(expected.temperature_, rel=package.tolerance)
    np.testing.assert_array_equal(fitted.predict(column), expected.predict(X))
    assert isinstance(fitted.predict(column), np.ndarray)  # strings have no other place


BAD = {
    "NaN": ([[0.5, 0.5, np.nan], [0.5, 0.25, 0.25]], "probabilities", "found nan"),
    "sums": ([[0.5, 0.5, 0.5], [0.5, 0.25, 0.25]], "probabilities", "sum to 1"),
    "range": ([[1.5, -0.25, -0.25], [0.5, 0.25, 0.25]], "probabilities", "must lie in"),
    "columns": ([[0.5, 0.5], [0.25, 0.75]], "probabilities", "labels"),
    "whole numbers": ([[1, 0, 0], [0, 1, 0]], "probabilities", "of type int64"),
    "cube": (np.full((2, 3, 1), 1 / 3), "probabilities", "one or two dimensions"),
    "too large": ([[1e7, 0.0, 0.0], [0.0, 1.0, 0.0]], "logits", "between -1e\\+06 and 1e\\+06"),
    "shares": ([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]], "logits", "hold logits, as declared"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_as_ever(case, package):
    values, input_type, message = BAD[case]
    X = package(values)
    recalibrator = TemperatureRecalibrator(input_type=input_type, labels=[0, 1, 2])
    with pytest.raises(ValueError, match=message):
        recalibrator.fit(X, [0, 1])


def test_rows_that_miss_one_are_divided(package):
    """Single precision may miss 1 by more than double precision may."""
    X = softmax(problem(20, 3)[0]).astype(np.float32)
    X *= 1 + 1e-4 * np.arange(20, dtype=np.float32)[:, None] / 20
    y = np.arange(20) % 3
    if package.dtype == "float64":
        with pytest.raises(ValueError, match="sum to 1"):
            TemperatureRecalibrator().fit(package(X), y)
        return
    result = to_numpy(check_probabilities(package(X), on_device=True))
    np.testing.assert_allclose(result, check_probabilities(X), rtol=0, atol=1e-7)


def test_tiny_probabilities_are_not_zero(package):
    """1 − p is 1 in single precision; what takes the place of zeros must not depend on that."""
    X = np.array([1e-10, 0.25, 0.5, 0.75], dtype=package.dtype)
    y = np.array([0, 0, 1, 1])
    expected = TemperatureRecalibrator().fit(X, y)
    fitted = TemperatureRecalibrator().fit(package(X), y)
    assert fitted.smallest_probability_ == expected.smallest_probability_ < 1e-15


@pytest.mark.parametrize("recalibrator", RECALIBRATORS)
def test_blocks_of_rows(recalibrator, package, monkeypatch):
    monkeypatch.setattr("skcalib._numerics.logits._DEVICE_BLOCK_ENTRIES", 64)
    logits, y = problem(100, 3)
    X = same_precision(softmax(logits), package)
    expected = recalibrator().fit(X, y).predict_proba(X)
    result = recalibrator().fit(package(X), y).predict_proba(package(X))
    np.testing.assert_allclose(to_numpy(result), expected, rtol=0, atol=package.tolerance)


def test_half_precision(package):
    if package.name == "array_api_strict" or package.dtype == "float64":
        pytest.skip("has none")
    logits, y = problem(50, 3)
    X = package(logits).half()
    fitted = TemperatureRecalibrator(input_type="logits").fit(X, y)
    expected = TemperatureRecalibrator(input_type="logits").fit(X.cpu().numpy(), y)
    assert fitted.temperature_ == pytest.approx(expected.temperature_, rel=1e-5)
    assert fitted.predict_proba(X).dtype == package(logits).dtype  # sums need more than half


def test_everything_else_is_converted(package):
    logits, y = problem(50, 3)
    X = softmax(logits)
    result = IsotonicRecalibrator().fit(package(X), package(y)).predict_proba(package(X))
    assert isinstance(result, np.ndarray)
    with sklearn.config_context(array_api_dispatch=False):
        result = TemperatureRecalibrator().fit(package(X), package(y)).predict_proba(package(X))
    assert isinstance(result, np.ndarray)


# Kernel errors


def multiclass(package, n=150, n_classes=4, binary=False):
    """Labels, probabilities in the precision of the package, and weights, in arrays of NumPy."""
    logits, y = problem(n, 2 if binary else n_classes, spread=1.0)
    weight = np.random.default_rng(2).integers(0, 4, size=n) / 4
    return y, same_precision(softmax(logits), package), weight


def on_device(function, package, y, proba, weight=None, **options):
    weight = None if weight is None else package(weight)
    return function(package(y), package(proba), sample_weight=weight, **options)


def assert_same(function, package, y, proba, weight=None, largest=1.0, **options):
    """The value is NumPy's up to the tolerance of the largest term.

    Random features of the squared error are in single precision everywhere.
    """
    tolerance = package.tolerance
    if function is squared_kernel_calibration_error and "method" in options:
        tolerance = max(tolerance, 1e-8)
    expected = function(y, proba, sample_weight=weight, **options)
    value = on_device(function, package, y, proba, weight, **options)
    assert isinstance(value, float | np.ndarray)
    np.testing.assert_allclose(value, expected, rtol=0, atol=largest * tolerance)


def short(options):
    """A name for the test, the same in all processes."""
    shown = {"class_kernel": "matrix"}
    return "-".join(
        f"{name}={shown.get(name, 'function' if callable(value) else value)}"
        for name, value in options.items()
    )


KERNEL_OPTIONS = [
    {},
    {"estimation": "biased"},
    {"kernel": "rbf", "bandwidth": 0.3},
    {"kernel": "exponential", "class_kernel": np.diag([1.0, 2.0, 3.0, 4.0])},
    {"kernel": "laplacian", "estimation": "linear"},
    {"method": "fourier", "random_state": 0},
    {
        "method": "fourier",
        "estimation": "biased",
        "class_kernel": np.diag([1.0, 2.0, 3.0, 4.0]),
        "random_state": 0,
    },
    {"kernel": lambda s, t: s @ t.T, "estimation": "block"},
]


@pytest.mark.parametrize("options", KERNEL_OPTIONS, ids=short)
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_kernel_calibration_error(options, weighted, package):
    y, proba, weight = multiclass(package)
    error = squared_kernel_calibration_error
    assert_same(error, package, y, proba, weight if weighted else None, largest=2.0, **options)


def test_parameters_may_be_numbers_of_numpy(package):
    """NumPy must not take over where its numbers meet arrays of others."""
    y, proba, _ = multiclass(package, n=60)
    X, options = package(proba), {"bandwidth": np.float64(0.3), "random_state": 0}
    for recalibrator in RECALIBRATORS:
        weight = np.float64(4.0)
        result = recalibrator(prior_weight=weight).fit(X, package(y)).predict_proba(X)
        expected = recalibrator(prior_weight=weight).fit(proba, y).predict_proba(proba)
        np.testing.assert_allclose(to_numpy(result), expected, rtol=0, atol=package.tolerance)
    for method in ({"method": "exact"}, {"method": "fourier", "n_components": np.int64(5)}):
        given = options | method
        assert_same(squared_kernel_calibration_error, package, y, proba, largest=2.0, **given)
        given |= {"kernel": "rbf", "regularization": np.float64(0.1)}
        assert_same(conditional_kernel_calibration_error, package, y, proba, **given)


@pytest.mark.parametrize("method", ["exact", "fourier"])
def test_tiles(method, package, monkeypatch):
    """The sum over tiles is that over all pairs; draws are taken in parts."""
    monkeypatch.setattr("skcalib._statistics.gram._TILE_ON_DEVICE", 16)
    monkeypatch.setattr("skcalib._statistics.fourier_error._SUMS_ON_DEVICE", 1)
    monkeypatch.setattr("skcalib._statistics.fourier_error._SINGLE_BLOCK_SIZE", 16)
    y, proba, weight = multiclass(package, n=50)
    options = {"method": method, "random_state": 0}
    assert_same(squared_kernel_calibration_error, package, y, proba, weight, largest=2.0, **options)
    test = CalibrationTest("skce", metric_params={"method": method}, n_resamples=9, random_state=0)
    expected = clone(test).fit(proba, y)
    assert test.fit(package(proba), y).p_value_ == expected.p_value_


@pytest.mark.parametrize("multi_class", ["confidence", "top-label", "classwise"])
def test_binary_problems_are_converted(multi_class, package):
    y, proba, _ = multiclass(package)
    for error in (squared_kernel_calibration_error, conditional_kernel_calibration_error):
        assert_same(error, package, y, proba, multi_class=multi_class)


def test_kernel_calibration_error(package):
    y, proba, weight = multiclass(package)
    expected = kernel_calibration_error(y, proba, sample_weight=weight)
    value = on_device(kernel_calibration_error, package, y, proba, weight)
    assert value**2 == pytest.approx(expected**2, abs=2 * package.tolerance)


CONDITIONAL_OPTIONS = [
    {},
    {"kernel": "linear"},
    {"kernel": "total-variation", "bandwidth": 0.3},
    {"method": "fourier", "random_state": 0},
    {"method": "fourier", "kernel": "rbf", "bandwidth": 0.2, "random_state": 0},
    {"method": "nystroem"},
    {"kernel": lambda s, t: s @ t.T},
    {"estimation": "standardized"},
    {"estimation": "standardized", "method": "fourier", "random_state": 0},
    {"regularization": "cv"},
]


@pytest.mark.parametrize("options", CONDITIONAL_OPTIONS, ids=short)
@pytest.mark.parametrize("binary", [False, True])
def test_conditional_kernel_calibration_error(options, binary, package):
    y, proba, weight = multiclass(package, binary=binary)
    assert_same(conditional_kernel_calibration_error, package, y, proba, weight, **options)


@pytest.mark.parametrize(
    "function", [squared_kernel_calibration_error, conditional_kernel_calibration_error]
)
@pytest.mark.parametrize("method", ["exact", "fourier"])
def test_kernel_errors_convert_no_matrix(function, method, package, stays):
    """With a bandwidth; its median is that of points that are sorted."""
    y, proba, _ = multiclass(package, n=50)
    y, proba = package(y), package(proba)
    options = {"kernel": "rbf", "bandwidth": 0.2, "method": method, "random_state": 0}
    stays()
    assert np.isfinite(function(y, proba, **options))


def test_scores_of_scikit_learn(package):
    """They take such arrays themselves, and need no counterpart here."""
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("since scikit-learn 1.8")
    y, proba, _ = multiclass(package)
    for score in (log_loss, brier_score_loss):
        value = score(package(y), package(proba))
        assert value == pytest.approx(score(y, proba), rel=10 * package.tolerance)


# The test by drawn labels


TEST_OPTIONS = [
    {"bandwidth": 0.3},
    {"estimation": "biased"},
    {"estimation": "linear"},
    {"metric_params": {"method": "fourier", "n_components": 20}},
    {"metric_params": {"multi_class": "confidence"}},
]


@pytest.mark.parametrize("options", TEST_OPTIONS, ids=short)
def test_calibration_test_draws_the_same_labels(options, package):
    y, proba, weight = multiclass(package, n=80)
    proba[:20] = proba[20:40]  # ties, which other columns and weights break
    proba[40:60] = proba[20:40, ::-1]
    test = CalibrationTest("skce", n_resamples=19, random_state=0, **options)
    expected = clone(test).fit(proba, y, weight)
    test.fit(package(proba), package(y), package(weight))
    assert test.p_value_ == expected.p_value_
    assert isinstance(test.null_distribution_, np.ndarray)
    tolerance = max(package.tolerance, 1e-8 * ("method" in options.get("metric_params", {})))
    np.testing.assert_allclose(
        test.null_distribution_, expected.null_distribution_, rtol=0, atol=2 * tolerance
    )


def test_several_bandwidths(package):
    y, proba, _ = multiclass(package, n=60)
    test = CalibrationTest("skce", bandwidth="multiple", n_resamples=19, random_state=0)
    expected = clone(test).fit(proba, y)
    test.fit(package(proba), package(y))
    assert test.p_value_ == expected.p_value_
    for name, null in test.component_null_distributions_.items():
        other = expected.component_null_distributions_[name]
        np.testing.assert_allclose(null, other, rtol=0, atol=2 * package.tolerance)


@pytest.mark.parametrize("statistic", ["auto", "log_loss", "smooth_calibration_error"])
def test_other_statistics_are_converted(statistic, package):
    y, proba, _ = multiclass(package, n=60)
    test = CalibrationTest(statistic, n_resamples=9, random_state=0)
    assert test.fit(package(proba), package(y)).p_value_ == clone(test).fit(proba, y).p_value_


def test_groups_and_two_classes_are_converted(package):
    test = CalibrationTest("skce", n_resamples=9, random_state=0)
    y, proba, _ = multiclass(package, n=60)
    groups = np.arange(60) // 3
    expected = clone(test).fit(proba, y, groups=groups).p_value_
    assert test.fit(package(proba), y, groups=groups).p_value_ == expected
    with pytest.raises(ValueError, match="given must be None unless the metric has an argument"):
        test.fit(package(proba), y, groups=groups, given=proba)
    y, proba, _ = multiclass(package, n=60, binary=True)
    expected = clone(test).fit(proba, y).p_value_
    assert test.fit(package(proba), package(y)).p_value_ == expected


@pytest.mark.parametrize("method", ["exact", "fourier"])
def test_calibration_test_converts_no_matrix(method, package, stays):
    y, proba, _ = multiclass(package, n=50)
    y, proba = package(y), package(proba)
    test = CalibrationTest(
        "skce", bandwidth=0.3, n_resamples=9, random_state=0, metric_params={"method": method}
    )
    stays()
    assert 0.1 <= test.fit(proba, y).p_value_ <= 1


class OfTensors(ClassifierMixin, BaseEstimator):
    """A classifier that returns the probabilities it gets, in arrays of a package."""

    def __init__(self, package=None):
        self.package = package

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return self.package(X)


def test_classifiers_convert(package):
    y, proba, _ = multiclass(package, n=60, n_classes=3)
    for ensemble in (True, False):
        classifier = OfTensors(package), TemperatureRecalibrator()
        fitted = RecalibratedClassifier(*classifier, ensemble=ensemble, cv=3).fit(proba, y)
        assert isinstance(fitted.predict_proba(proba), np.ndarray)


def test_the_code_of_the_guide_runs(package):
    text = read_page("docs/guide/large_data.md")
    (block,) = re.findall(r"```python\n(import sklearn\n.*?)```", text, flags=re.DOTALL)
    logits, y = problem(40, 3)
    names = {"logits": package(logits), "labels": package(y)}
    exec(block.replace('"method": "fourier"}', '"method": "fourier"}, n_resamples=9'), names)
    assert type(names["proba"]) is type(names["logits"])
    assert names["test"].p_value_ >= 0.1


class Ones:
    """A generator of the largest number below 1."""

    def random(self, shape):
        return np.full(shape, 1 - 2.0**-53)


def test_impossible_classes_are_never_drawn(package):
    """Rows may sum to a little less than 1."""
    proba = np.array([[0.5, 0.5 - 5e-6, 0.0], [0.5 - 5e-6, 0.0, 0.5]])
    for values in (proba, package(proba)):
        np.testing.assert_array_equal(to_numpy(draw_labels(values, 2, Ones())), [[1, 2]] * 2)


def test_rows_are_taken(package):
    proba = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    predictions = check_predictions([0, 1, 2], package(proba), on_device=True)
    some = predictions.take(package(np.array([2, 0]))).to_numpy()
    np.testing.assert_array_equal(some.proba, proba[[2, 0]])
    np.testing.assert_array_equal(some.label, [2, 0])
    np.testing.assert_allclose(some.weight, [0.5, 0.5])


def test_tags_name_the_recalibrators_that_keep_tensors_on_their_device():
    for recalibrator in RECALIBRATOR_CASES.values():
        keeps = type(recalibrator) in FITTED_ON_DEVICE
        assert get_tags(recalibrator).array_api_support == keeps
        if "input_type" in recalibrator.get_params():
            assert recalibrator._maps_on_device == (type(recalibrator) in RECALIBRATORS)


@pytest.mark.parametrize(
    "options", [{}, {"ensemble": False}, {"response_method": "decision_function"}], ids=str
)
def test_classifiers_of_tensors_are_recalibrated(package, options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).astype(package.dtype)
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(int) + (X[:, 1] > 1)
    make = partial(
        RecalibratedClassifier,
        LinearDiscriminantAnalysis(),
        TemperatureRecalibrator(),
        cv=3,
        **options,
    )
    actual = make().fit(package(X), package(y))
    expected = make().fit(X, y)
    tolerance = 1e-9 if package.dtype == "float64" else 1e-3
    np.testing.assert_allclose(
        actual.predict_proba(package(X)), expected.predict_proba(X), atol=tolerance
    )
    np.testing.assert_array_equal(actual.classes_, expected.classes_)
    if not options:
        fitted = LinearDiscriminantAnalysis().fit(package(X), package(y))
        frozen = RecalibratedClassifier(FrozenEstimator(fitted), TemperatureRecalibrator())
        assert frozen.fit(package(X), package(y)).predict(package(X)).shape == (90,)
        proba = PredictProba(LinearDiscriminantAnalysis()).fit_transform(package(X), package(y))
        assert proba.shape == (90, 3)
