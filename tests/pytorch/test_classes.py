"""Penalties for classes, as modules."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode

from skcalib import losses
from skcalib.torch import (
    CalibrationPenalty as Penalty,
    CalibrationRegularizedLoss,
    DistributionMatchingLoss,
    set_value_checks,
)

# Modules, with the functions that they stand for.
PAIRS = {
    "canonical": (DistributionMatchingLoss("canonical"), {"calibration": "canonical"}),
    "top-label": (DistributionMatchingLoss("top-label"), {"calibration": "top-label"}),
    "marginal": (
        DistributionMatchingLoss("marginal", given_kernel="laplacian", given_bandwidth=0.2),
        {"calibration": "marginal", "given_kernel": "laplacian", "given_bandwidth": 0.2},
    ),
    "decision": (
        DistributionMatchingLoss("decision", loss=[[0.0, 1.0, 1.0], [0.3, 0.3, 0.4]]),
        {"calibration": "decision", "loss": np.array([[0.0, 1.0, 1.0], [0.3, 0.3, 0.4]])},
    ),
    "weighted": (
        DistributionMatchingLoss(class_weight=[0.0, 1.0, 3.0], estimation="biased"),
        {"class_kernel": np.diag([0.0, 1.0, 3.0]), "estimation": "biased"},
    ),
    "smooth": (
        Penalty("smooth", bandwidth=0.05),
        losses.smooth_calibration_loss,
        {"bandwidth": 0.05},
    ),
    "mmce": (
        Penalty("mmce", multi_class="classwise"),
        losses.maximum_mean_calibration_loss,
        {"multi_class": "classwise"},
    ),
    "conditional": (
        Penalty("conditional", regularization=0.1),
        losses.conditional_kernel_calibration_loss,
        {"regularization": 0.1},
    ),
    "kde": (Penalty("kde", order=2.0), losses.kde_calibration_loss, {"order": 2.0}),
    "soft": (Penalty("soft-binned", n_bins=5), losses.soft_binned_calibration_loss, {"n_bins": 5}),
}
MODULES = {name: case[0] for name, case in PAIRS.items()}


def batch(n=64, n_classes=3, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn((n, n_classes), generator=generator, dtype=dtype)
    return logits, torch.randint(0, n_classes, (n,), generator=generator)


def gradient(loss, logits, labels, **sides):
    logits = logits.clone().requires_grad_()
    value = loss(logits, labels, **sides)
    return value.detach(), torch.autograd.grad(value, logits)[0]


@pytest.mark.parametrize("name", PAIRS)
def test_modules_are_the_functions(name):
    module, *function, options = PAIRS[name]
    function = function[0] if function else losses.distribution_matching_loss
    logits, labels = batch()
    weight = torch.rand(64, dtype=torch.float64)
    value = module(logits, labels, sample_weight=weight)
    expected = function(logits.numpy(), labels.numpy(), sample_weight=weight.numpy(), **options)
    assert value.ndim == 0
    assert value.item() == pytest.approx(float(expected), abs=1e-12)
    single = module(logits.float(), labels, sample_weight=weight)
    assert single.dtype == torch.float32
    assert single.item() == pytest.approx(float(expected), abs=1e-5)


def test_by_hand():
    # residuals (−½, ½) and (½, −½), kernel 1
    half, labels = torch.zeros(2), torch.tensor([1, 0])
    assert DistributionMatchingLoss()(half, labels).item() == pytest.approx(-0.5)
    assert DistributionMatchingLoss()(half, torch.tensor([1, 1])).item() == pytest.approx(0.5)
    weighted = DistributionMatchingLoss(class_weight=[3, 0])
    assert weighted(half, labels).item() == pytest.approx(-0.75)


@pytest.mark.parametrize("name", MODULES)
def test_gradients_are_those_of_finite_differences(name):
    logits, labels = batch(n=8)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: MODULES[name](x, labels), logits)


def test_all_ways_to_write_two_classes_agree():
    logits, labels = batch(n_classes=2)
    odds = logits[:, 1] - logits[:, 0]
    for module in (DistributionMatchingLoss("top-label"), Penalty("mmce"), Penalty("kde")):
        expected = module(logits, labels).item()
        column, target = odds[:, None], labels[:, None].double()  # as BCEWithLogitsLoss takes them
        assert module(odds, labels).item() == pytest.approx(expected, abs=1e-12)
        assert module(column, target).item() == pytest.approx(expected, abs=1e-12)
        module.input_type = "probabilities"
        assert module(logits.softmax(1), labels).item() == pytest.approx(expected, abs=1e-12)
        assert module(odds.sigmoid(), labels > 0).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", MODULES)
def test_samples_that_are_ignored_or_weigh_nothing_change_nothing(name):
    logits, labels = batch(n=30)
    expected = MODULES[name](logits[:20], labels[:20]).item()
    masked = torch.where(torch.arange(30) < 20, labels, -100)
    assert MODULES[name](logits, masked).item() == pytest.approx(expected, abs=1e-12)
    weight = (torch.arange(30) < 20).float() * 3
    value = MODULES[name](logits, labels, sample_weight=weight)
    assert value.item() == pytest.approx(expected, abs=1e-7)


def test_what_belongs_to_ignored_samples_is_left_out_too():
    penalty = DistributionMatchingLoss("group", ignore_index=0)
    logits, labels = batch(n=30)
    group, weight = torch.arange(30) % 2, torch.rand(30)
    kept = labels != 0
    value = penalty(logits, labels, given=group, sample_weight=weight)
    sides = {"given": group[kept], "sample_weight": weight[kept]}
    assert value.item() == pytest.approx(penalty(logits[kept], labels[kept], **sides).item())


SATURATED = [
    module
    for make, kernel in itertools.product(
        [DistributionMatchingLoss], ["rbf", "laplacian", "exponential", "total-variation"]
    )
    for module in (make("canonical", given_kernel=kernel), make("marginal", given_kernel=kernel))
]
SATURATED += [
    DistributionMatchingLoss("top-label"),
    DistributionMatchingLoss("canonical", n_draws=2),
]
SATURATED += [MODULES[name] for name in ("decision", "weighted", "smooth", "mmce", "soft")]
SATURATED += [MODULES["conditional"], Penalty("conditional", estimation="unbiased")]
SATURATED += [Penalty("kde"), Penalty("kde", order=2.0)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("module", SATURATED, ids=repr)
def test_saturated_logits_have_small_gradients(module, dtype):
    signs, labels = batch(dtype=dtype)
    labels[0] = 2
    for logits in (1e4 * signs, 1e4 * signs.sign(), torch.full_like(signs, -1e4)):
        value, slope = gradient(module, logits, labels)
        assert 0 <= abs(value) <= 4
        assert torch.isfinite(slope).all()
        assert slope.abs().max() < 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("module", SATURATED, ids=repr)
def test_probabilities_0_and_1_have_finite_gradients(module, dtype):
    _, labels = batch(dtype=dtype)
    proba = torch.nn.functional.one_hot(labels.flip(0), 3).to(dtype)
    module.input_type = "probabilities"
    value, slope = gradient(module, proba, labels)
    module.input_type = "logits"
    assert 0 <= abs(value) <= 4
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("name", MODULES)
def test_mixed_precision_is_computed_in_single_precision(name):
    half, labels = batch(dtype=torch.bfloat16)
    logits, weight = half.float().requires_grad_(), torch.rand(64)
    expected = MODULES[name](logits, labels, sample_weight=weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = MODULES[name](logits, labels, sample_weight=weight)
        of_half = MODULES[name](half, labels, sample_weight=weight.bfloat16().float())
        of_rounded = MODULES[name](half, labels, sample_weight=weight.bfloat16())
    assert value.dtype == of_half.dtype == torch.float32
    assert value == expected
    assert of_half == of_rounded
    slope, expected_slope = (torch.autograd.grad(v, logits)[0] for v in (value, expected))
    assert torch.equal(slope, expected_slope)
    unweighted = MODULES[name](half.half(), labels)
    assert unweighted.item() == pytest.approx(MODULES[name](half.half().float(), labels).item())


def calibrated(n, generator):
    """Logits, and labels drawn from their probabilities, with many of one class."""
    logits = torch.randn((n, 3), generator=generator) + torch.tensor([2.0, 0.0, 0.0])
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    return logits, labels


def mean_over_batches(value, n_batches=300):
    generator = torch.Generator().manual_seed(1)
    values = np.array([value(generator) for _ in range(n_batches)])
    return values.mean(), values.std() / np.sqrt(n_batches)


@pytest.mark.parametrize("n_draws", [None, 1])
@pytest.mark.parametrize("form", ["canonical", "marginal", "top-label", "decision"])
def test_calibrated_models_have_expectation_0_in_small_batches(form, n_draws):
    torch.manual_seed(0)
    loss = [[0.0, 1.0, 1.0], [0.3, 0.3, 0.4]] if form == "decision" else None
    weight = [1.0, 2.0, 3.0] if form == "canonical" else None
    options = {"loss": loss, "class_weight": weight, "n_draws": n_draws}
    unbiased = DistributionMatchingLoss(form, **options)
    biased = DistributionMatchingLoss(form, estimation="biased", **options)
    mean, error = mean_over_batches(lambda g: unbiased(*calibrated(6, g)).item())
    assert abs(mean) < 4 * error
    mean, error = mean_over_batches(lambda g: biased(*calibrated(6, g)).item())
    assert mean > 4 * error


def test_class_weights_keep_calibrated_models_at_0_and_weights_by_label_do_not():
    weight = torch.tensor([1.0, 1.0, 20.0])

    def by_label(generator):
        logits, labels = calibrated(32, generator)
        return DistributionMatchingLoss()(logits, labels, sample_weight=weight[labels]).item()

    mean, error = mean_over_batches(by_label)
    assert mean > 4 * error
    penalty = DistributionMatchingLoss(class_weight=weight)
    mean, error = mean_over_batches(lambda g: penalty(*calibrated(32, g)).item())
    assert abs(mean) < 4 * error


@pytest.mark.parametrize("form", ["canonical", "marginal", "top-label"])
def test_draws_are_unbiased(form):
    torch.manual_seed(0)
    logits, labels = batch(n=12)
    expected = DistributionMatchingLoss(form)(logits, labels).item()
    drawn = DistributionMatchingLoss(form, n_draws=2)
    values = np.array([drawn(logits, labels).item() for _ in range(300)])
    assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(300)
    drawn = DistributionMatchingLoss(form, n_draws=2000, gumbel_temperature=0.1)
    value, slope = gradient(drawn, logits, labels)
    assert value.item() == pytest.approx(expected, abs=0.01)
    _, exact = gradient(DistributionMatchingLoss(form), logits, labels)
    assert torch.corrcoef(torch.stack([slope.ravel(), exact.ravel()]))[0, 1] > 0.95


def test_conditions_are_standardized_as_the_training_data():
    logits, labels = batch(n=40)
    features = torch.randn((40, 3), dtype=torch.float64) * 100 + 7
    features[:, 2] = 5.0
    penalty = DistributionMatchingLoss("individual", given_kernel="laplacian")
    assert penalty.fit(labels, given=features) is penalty
    points = ((features - features.mean(0)) / features.std(0, correction=0))[:, :2]
    distance = torch.nn.functional.pdist(points, p=1)
    middle = distance.sort().values[[389, 390]].mean().item()  # of 780 pairs
    for rows in (slice(None), slice(7)):  # batches of any size have the same bandwidth
        expected = losses.distribution_matching_loss(
            logits[rows],
            labels[rows],
            calibration="individual",
            given=points[rows],
            given_kernel="laplacian",
            given_bandwidth=middle,
        )
        value = penalty(logits[rows], labels[rows], given=features[rows].float())
        assert value.item() == pytest.approx(expected.item(), abs=1e-6)


def test_gradients_flow_through_conditions_unless_they_are_detached():
    logits, labels = batch()
    features = torch.randn((64, 2), dtype=torch.float64, requires_grad=True)
    for is_detached in (False, True):
        penalty = DistributionMatchingLoss(
            "individual", given_bandwidth=1.0, detach_given=is_detached
        )
        value = penalty(logits.requires_grad_(), labels, given=features)
        slope = torch.autograd.grad(value, features, allow_unused=True)[0]
        assert (slope is None) == is_detached


def test_an_optimizer_calibrates():
    # 95 % sure, right in 60 %: a penalty alone brings the confidence down
    labels = (torch.rand(100, generator=torch.Generator().manual_seed(0)) < 0.6).long()
    for penalty in (DistributionMatchingLoss(), MODULES["smooth"]):
        logit = torch.tensor(3.0, requires_grad=True)
        optimizer = torch.optim.Adam([logit], lr=0.2)
        for _ in range(50):
            optimizer.zero_grad()
            penalty(logit.expand(100), labels).backward()
            optimizer.step()
        assert logit.sigmoid().item() == pytest.approx(labels.double().mean().item(), abs=0.02)


class HostReads(TorchDispatchMode):
    """Counts how often the host waits for a value."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += "_local_scalar_dense" in str(function)
        return function(*args, **(kwargs or {}))


@pytest.fixture
def unchecked():
    set_value_checks(False)
    yield
    set_value_checks(True)


@pytest.mark.parametrize("name", PAIRS)
def test_no_value_is_looked_at_without_checks(name, unchecked):
    (logits, labels), penalty = batch(), PAIRS[name][0]
    with HostReads() as reads:
        penalty(logits, labels)
    assert reads.count == 0
    assert torch.isnan(penalty(torch.full_like(logits, torch.nan), labels))


@pytest.mark.parametrize("name", PAIRS)
def test_ignored_samples_have_no_weight_without_checks(name):
    (logits, labels), penalty = batch(), PAIRS[name][0]
    labels[:3] = -100
    weight = torch.linspace(1, 2, len(labels), dtype=logits.dtype)
    for given in ({}, {"sample_weight": weight}):
        expected = penalty(logits, labels, **given)
        set_value_checks(False)
        found = penalty(logits, labels, **given)
        set_value_checks(True)
        assert found.item() == pytest.approx(expected.item(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
def test_compiled_modules_give_the_same_number():
    logits, labels = batch()
    loss = CalibrationRegularizedLoss(torch.nn.CrossEntropyLoss(), DistributionMatchingLoss())
    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    assert compiled(logits, labels).item() == pytest.approx(loss(logits, labels).item(), abs=1e-12)


def test_the_representation_names_what_is_not_the_default():
    assert repr(Penalty("kde")) == "CalibrationPenalty('kde')"
    shown = "CalibrationPenalty('mmce', bandwidth=0.2, ignore_index=3)"
    assert repr(Penalty("mmce", bandwidth=0.2, multi_class="confidence", ignore_index=3)) == shown
