"""Tensors are taken like arrays, and fitted maps become modules with the same probabilities."""

import copy
import io
import warnings
from functools import cache

import numpy as np
import pytest
from problems import logit_problem
from scipy.special import softmax
from sklearn.base import clone

from skcalib.recalibration import (
    AutoRecalibrator,
    BetaRecalibrator,
    DirichletRecalibrator,
    IsotonicRecalibrator,
    MatrixScalingRecalibrator,
    PairwiseScalingRecalibrator,
    PriorShiftRecalibrator,
    QuadraticRecalibrator,
    SplineRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)
from skcalib.recalibration._registry import RECALIBRATORS

torch = pytest.importorskip("torch")

CASES = {
    "temperature": TemperatureRecalibrator(),
    "vector": VectorScalingRecalibrator(),
    "matrix": MatrixScalingRecalibrator(),
    "Dirichlet": DirichletRecalibrator(),
}

# Maps with jumps, or of parts that a lens puts together: tests/recalibration/test_habits.py.
NO_MODULES = {
    "isotonic",
    "binning",
    "scaling-binning",
    "Venn-Abers",
    "decision",
    "any decision",
    "problems of a lens",
}

all_cases = pytest.mark.parametrize("recalibrator", CASES.values(), ids=CASES)
both_kinds = pytest.mark.parametrize("n_classes", [2, 4])


def fitted_on(recalibrator, input_type, n_classes):
    label, logits = logit_problem(n_classes)
    X = logits if input_type == "logits" else softmax(logits, axis=1)
    return clone(recalibrator).set_params(input_type=input_type).fit(X, label)


@all_cases
@both_kinds
@pytest.mark.parametrize("input_type", ["logits", "probabilities"])
def test_modules_return_the_same_probabilities(recalibrator, n_classes, input_type):
    fitted = fitted_on(recalibrator, input_type, n_classes)
    _, logits = logit_problem(n_classes, n=200, seed=1)
    for scale in (1, 30):  # some probabilities are clipped
        X = scale * logits if input_type == "logits" else softmax(scale * logits, axis=1)
        expected = fitted.predict_proba(X)
        # 1 - p, with p the probability of the last of two classes, has few digits left
        exact = 1e-12 if scale == 1 or n_classes > 2 or input_type == "logits" else 1e-7
        for dtype, tolerance in ((torch.float64, exact), (torch.float32, 1e-6 * scale)):
            module = fitted.to_module(dtype=dtype)
            result = module(torch.tensor(scale * logits, dtype=dtype))
            assert result.dtype == dtype
            proba = torch.softmax(result.double(), dim=1).numpy()
            np.testing.assert_allclose(proba, expected, atol=tolerance)


@all_cases
def test_modules_tell_tiny_probabilities_apart(recalibrator):
    label, logits = logit_problem(4)
    fitted = clone(recalibrator).fit(softmax(40 * logits, axis=1), label)
    assert fitted.smallest_probability_ < 1e-30
    expected = fitted.predict_proba(softmax(40 * logits, axis=1))
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        result = fitted.to_module(dtype=dtype)(torch.tensor(40 * logits, dtype=dtype))
        proba = torch.softmax(result.double(), dim=1).numpy()
        np.testing.assert_allclose(proba, expected, atol=tolerance)


@all_cases
def test_log_odds_keep_their_shape(recalibrator):
    fitted = fitted_on(recalibrator, "logits", 2)
    odds = torch.linspace(-5, 5, 7, dtype=torch.float64)
    expected = fitted.predict_proba(odds)[:, 1]
    for form in (odds, odds[:, None]):
        result = fitted.to_module(dtype=torch.float64)(form)
        assert result.shape == form.shape
        np.testing.assert_allclose(result.sigmoid().ravel(), expected, atol=1e-14)


def test_infinite_temperature_is_uniform_and_temperature_zero_has_no_logits():
    fitted = TemperatureRecalibrator(prior_weight=0).fit([0.9, 0.8, 0.3], [0, 0, 1])
    assert fitted.temperature_ == np.inf
    assert fitted.to_module()(torch.tensor([-1e4, 0.3])).tolist() == [0, 0]
    fitted.fit([0.9, 0.8, 0.3], [1, 1, 0])
    with pytest.raises(ValueError, match=r"temperature_ must be positive .* found 0"):
        fitted.to_module()


@all_cases
def test_parameters_are_saved_and_not_trained(recalibrator):
    fitted = fitted_on(recalibrator, "logits", 4)
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), fitted.to_module())
    assert "n_classes=4" in repr(network)
    inputs = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    expected = network(inputs)
    expected.sum().backward()
    assert [name for name, _ in network.named_parameters()] == ["0.weight", "0.bias"]
    other = fitted_on(recalibrator, "probabilities", 4).to_module()
    other.load_state_dict(network[1].state_dict())
    assert torch.equal(other(network[0](inputs)), expected)
    file = io.BytesIO()
    torch.save(network, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(inputs), expected)
    exported = torch.export.export(network, (inputs,)).module()
    torch.testing.assert_close(exported(inputs), expected)


@all_cases
@both_kinds
def test_gradients(recalibrator, n_classes):
    module = fitted_on(recalibrator, "logits", n_classes).to_module(dtype=torch.float64)
    logits = torch.tensor(logit_problem(n_classes, n=5)[1], requires_grad=True)
    assert torch.autograd.gradcheck(module, (logits,))
    saturated = (1e4 * logits.detach().sign()).requires_grad_()
    result = module(saturated)
    result.sum().backward()
    assert result.isfinite().all()
    assert saturated.grad.isfinite().all()


def test_types_and_shapes():
    module = fitted_on(TemperatureRecalibrator(), "logits", 4).to_module()
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert module(logits.to(dtype)).dtype == torch.float32
    for wrong in (logits[:, :3], logits[:, 0], logits[:, :1], logits.T[None]):
        with pytest.raises(ValueError, match="one column for each class seen at fit"):
            module(wrong)


TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@all_cases
def test_logits_in_tensors(recalibrator, dtype):
    label, logits = logit_problem(4)
    tensor = torch.tensor(logits, dtype=dtype, requires_grad=True)
    array = tensor.detach().double().numpy()
    weight = np.linspace(0, 1, len(label))
    recalibrator = clone(recalibrator).set_params(input_type="logits")
    expected = clone(recalibrator).fit(array, label, weight)
    fitted = recalibrator.fit(tensor, torch.tensor(label), torch.tensor(weight))
    assert isinstance(fitted.predict_proba(tensor), np.ndarray)
    np.testing.assert_array_equal(fitted.predict_proba(tensor), expected.predict_proba(array))
    assert type(fitted.classes_) is np.ndarray


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@both_kinds
def test_probabilities_in_tensors(n_classes, dtype):
    label, logits = logit_problem(n_classes)
    proba = torch.softmax(torch.tensor(logits, requires_grad=True), dim=1).to(dtype)
    tolerance = 0.0
    if dtype == torch.bfloat16:  # NumPy lacks it: rows that miss 1 by more than 1e-5 are divided
        array, tolerance = proba.detach().double().numpy(), 1e-4
        array /= array.sum(axis=1, keepdims=True)
    else:
        array = proba.detach().numpy()
    expected = SplineRecalibrator().fit(array, label).predict_proba(array)
    fitted = SplineRecalibrator().fit(proba, torch.tensor(label)).predict_proba(proba)
    np.testing.assert_allclose(fitted, expected, rtol=0, atol=tolerance)


def test_bad_tensors_are_refused_by_name():
    label, logits = logit_problem(2)
    with pytest.raises(ValueError, match=r"X must lie in \[0, 1\]"):
        SplineRecalibrator().fit(torch.tensor(logits, requires_grad=True), torch.tensor(label))
    with pytest.raises(TypeError, match="X must be an array of one or two dimensions"):
        SplineRecalibrator().fit(torch.eye(3).to_sparse(), [0, 1, 2])


SMOOTH = {
    name: entry.recalibrator for name, entry in RECALIBRATORS.items() if name not in NO_MODULES
} | {
    "beta, am": BetaRecalibrator("am"),
    "pairwise with splines": PairwiseScalingRecalibrator(SplineRecalibrator()),
    "another population": PriorShiftRecalibrator(prevalence="of the test"),
    "average": AutoRecalibrator(
        [
            ("spline", SplineRecalibrator()),
            ("quadratic", QuadraticRecalibrator()),
            ("pairwise", PairwiseScalingRecalibrator()),
        ]
    ),
}


@cache
def fit_smooth(name, n_classes):
    recalibrator = clone(SMOOTH[name])
    if name == "another population":
        recalibrator.set_params(prevalence=np.arange(n_classes) / sum(range(n_classes)))
    label, logits = logit_problem(n_classes)
    return recalibrator.fit(softmax(logits, axis=1), label)


@pytest.mark.parametrize("name", SMOOTH)
@both_kinds
def test_every_smooth_map_is_a_module(name, n_classes):
    fitted = fit_smooth(name, n_classes)
    module = fitted.to_module(dtype=torch.float64)
    other = logit_problem(n_classes, n=200, seed=1)[1]
    for scale in (1, 20):  # also beyond the outer knots, and clipped
        X = torch.tensor(scale * other, requires_grad=True)
        result = module(X)
        expected = fitted.predict_proba(softmax(scale * other, axis=1))
        proba = torch.softmax(result, dim=1).detach().numpy()
        np.testing.assert_allclose(proba, expected, atol=1e-12 if scale == 1 else 1e-7)
        result[:, 0].sum().backward()
        assert X.grad.isfinite().all()
    for scale in (1, 5):  # 1 - p is less than single precision tells from 0
        X = torch.tensor(scale * other, requires_grad=True)
        single = fitted.to_module()(X)
        assert single.dtype == torch.float32
        single[:, 0].sum().backward()
        assert X.grad.isfinite().all()
        proba = torch.softmax(single.double(), dim=1).detach().numpy()
        expected = fitted.predict_proba(softmax(scale * other, axis=1))
        np.testing.assert_allclose(proba, expected, atol=2e-5)
    if n_classes == 2:
        odds = torch.tensor(other[:, 1] - other[:, 0])
        np.testing.assert_allclose(
            module(odds).sigmoid(), torch.softmax(module(X / 5), 1)[:, 1].detach(), atol=1e-12
        )


@pytest.mark.parametrize("name", SMOOTH)
@both_kinds
def test_every_module_is_traced_without_a_warning_and_shows_what_it_learned(name, n_classes):
    fitted = fit_smooth(name, n_classes)
    module = fitted.to_module(dtype=torch.float64)
    few, many = (torch.tensor(logit_problem(n_classes, n=n)[1]) for n in (5, 9))
    forms = [lambda x: x]
    if n_classes == 2:
        forms += [lambda x: x[:, 1] - x[:, 0], lambda x: x[:, 1:] - x[:, :1]]
    for form in forms:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer releases say so of tracing
            traced = torch.jit.trace(module, (form(few),))
        torch.testing.assert_close(traced(form(many)), module(form(many)), equal_nan=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(module)
    learned = {name for name, x in module.named_buffers() if name != "limits" and x.numel() > 0}
    shown = repr(module).replace("temperature=", "factor=")
    for buffer in {name.rpartition(".")[2] for name in learned} - {"limits", "knots"}:
        assert f"{buffer}=" in shown
    for each in module.modules():  # what is learned is saved, and exact in every export
        assert not [name for name, value in vars(each).items() if isinstance(value, float)]
    assert repr(copy.deepcopy(module).to("meta"))  # without numbers


def test_modules_show_few_numbers_and_the_shape_of_many():
    fitted = fitted_on(TemperatureRecalibrator(), "logits", 4)
    shown = f"Scaling(n_classes=4, temperature={fitted.temperature_:.4g}, shift=0)"
    assert repr(fitted.to_module()) == shown
    fitted = fitted_on(VectorScalingRecalibrator(), "logits", 4)
    factor = np.round(fitted.to_module().factor.tolist(), 4).tolist()
    assert f"factor={factor}" in repr(fitted.to_module())
    fitted = fitted_on(MatrixScalingRecalibrator(), "logits", 4)
    assert "factor=tensor of shape (4, 4)" in repr(fitted.to_module())


@pytest.mark.parametrize("name", ["spline", "average", "pairwise scaling"])
def test_smooth_modules_have_true_gradients_and_are_stored(name):
    label, logits = logit_problem(3)
    module = clone(SMOOTH[name]).fit(softmax(logits, axis=1), label).to_module(dtype=torch.float64)
    X = torch.tensor(logits[:5], requires_grad=True)
    assert torch.autograd.gradcheck(module, (X,))
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(X), module(X))
    exported = torch.export.export(module, (X.detach(),)).module()
    torch.testing.assert_close(exported(X), module(X))


def test_averages_with_a_map_that_is_no_module_name_it():
    candidates = [("isotonic", IsotonicRecalibrator()), ("spline", SplineRecalibrator())]
    label, logits = logit_problem(2)
    fitted = AutoRecalibrator(candidates).fit(softmax(logits, axis=1), label)
    with pytest.raises(TypeError, match="IsotonicRecalibrator is not"):
        fitted.to_module()
