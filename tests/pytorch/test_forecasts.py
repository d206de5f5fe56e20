"""Penalties for forecasts of a number, as modules, and their training data."""

import copy
import io
import itertools
import math
import pickle
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import distributions

from skcalib import losses
from skcalib.losses import SampledForecast
from skcalib.torch import DistributionMatchingLoss, NegativeLogLikelihoodLoss

# Forms and kernels that together take every path.
CASES = [
    ("distribution", "rbf"),
    ("distribution", "laplacian"),
    ("marginal", "energy"),
    ("decision", "moments"),
    ("decision", "tanh"),
    ("group", "thresholds"),
    ("individual", "rbf"),
    ("quantile", "rbf"),
    ("threshold", "energy"),
    ("local", "laplacian"),
]


def batch(n=48, dtype=torch.float64, seed=0):
    """Means, standard deviations, outcomes, and what may be given."""
    generator = torch.Generator().manual_seed(seed)
    mean, noise, spread = torch.randn((3, n), generator=generator, dtype=dtype)
    std = (0.3 * spread).exp()
    given = {
        "group": torch.arange(n) % 3,
        "individual": torch.stack([mean, std], dim=1),
        "local": mean,
    }
    return mean, std, mean + 1.5 * noise, given


def fitted(form, kernel="rbf", **options):
    _, _, y, given = batch(n=500, seed=1)
    return DistributionMatchingLoss(form, kernel=kernel, **options).fit(y, given=given.get(form))


@pytest.mark.parametrize(("form", "kernel"), CASES)
def test_with_numbers_modules_are_the_function(form, kernel):
    mean, std, y, given = batch()
    weight, thresholds = torch.rand(48, dtype=torch.float64), np.array([-1.0, 0.0, 1.5])
    options = {"calibration": form, "kernel": kernel}
    if form in ("threshold", "decision") or kernel in ("thresholds", "tanh"):
        options["thresholds"] = thresholds
    if kernel in ("rbf", "laplacian", "tanh"):
        options["bandwidth"] = 0.7
    if form in ("distribution", "individual", "local"):
        options["given_bandwidth"] = 1.2
    module = DistributionMatchingLoss(**options)
    value = module((mean, std), y, given=given.get(form), sample_weight=weight)
    expected = losses.distribution_matching_loss(
        (mean.numpy(), std.numpy()),
        y.numpy(),
        given=given[form].numpy() if form in given else None,
        sample_weight=weight.numpy(),
        **options,
    )
    assert value.item() == pytest.approx(float(expected), abs=1e-12)
    single = module((mean.float(), std.float()), y.float(), given=given.get(form))
    double = module((mean, std), y, given=given.get(form))
    assert single.item() == pytest.approx(double.item(), abs=1e-5)


@pytest.mark.parametrize("ratio", [0, 1, 3, 10, 30])
def test_local_acts_on_the_spread_however_sharp_the_forecasts_are(ratio):
    generator = torch.Generator().manual_seed(0)
    mean, noise = torch.randn((2, 400), generator=generator, dtype=torch.float64)
    mean = ratio * mean
    y, slopes = mean + noise, {}
    for form in ("distribution", "local"):
        log_std = torch.tensor(math.log(0.5), dtype=torch.float64, requires_grad=True)
        penalty = DistributionMatchingLoss(form).double().fit(y)
        penalty((mean, log_std.exp().expand(400)), y).backward()
        slopes[form] = log_std.grad.item()
    assert -0.3 < slopes["local"] < -0.08  # towards larger ones
    assert ratio < 10 or abs(slopes["distribution"]) < 1e-4


def test_what_fit_takes_from_the_training_data():
    penalty = DistributionMatchingLoss().fit([0.0, 1.0, 3.0])  # distances 1, 2 and 3
    assert penalty.outcome_bandwidth.item() == 2.0
    y = torch.linspace(0, 1, 6401)
    penalty.fit(y)
    assert penalty.thresholds.shape == (64,)
    assert penalty.thresholds[:2].tolist() == pytest.approx([0.5 / 64, 1.5 / 64], abs=1e-6)
    own = DistributionMatchingLoss(kernel="tanh", thresholds=[2.0]).fit(y)
    assert own.thresholds.tolist() == [2.0]
    assert DistributionMatchingLoss().fit([3.0, 3.0]).outcome_bandwidth.item() == 1.0


@pytest.mark.parametrize("unit", [1e-30, 1e-9, 1e9])
def test_bandwidths_are_in_the_units_of_the_training_data(unit):
    mean, std, y, given = batch()
    features = given["individual"]
    one, other = (DistributionMatchingLoss("individual") for _ in range(2))
    one.fit(y, given=features)
    other.fit(unit * y, given=unit * features)
    assert other.outcome_bandwidth.item() == pytest.approx(unit * one.outcome_bandwidth.item())
    expected = one((mean, std), y, given=features).item()
    rescaled = other((unit * mean, unit * std), unit * y, given=unit * features).item()
    assert rescaled == pytest.approx(expected, abs=1e-6)
    parameters = DistributionMatchingLoss().fit(unit * y)
    assert parameters((unit * mean, unit * std), unit * y).item() == pytest.approx(
        DistributionMatchingLoss().fit(y)((mean, std), y).item(), abs=1e-6
    )


def test_outcomes_that_are_equal_but_for_rounding_are_not_in_units_of_it():
    assert DistributionMatchingLoss().fit([0.1] * 3).parameter_factor.tolist() == [1.0, 1.0]


def test_parameters_are_in_units_of_the_outcomes():
    mean, std, y, _ = batch()
    penalty = DistributionMatchingLoss().fit(y)
    spread = y.std(correction=0)
    expected = losses.distribution_matching_loss(
        (mean, std),
        y,
        bandwidth=penalty.outcome_bandwidth.item(),
        given=torch.stack([mean / spread, std.log()], dim=1),
        given_bandwidth=1.0,
    )
    assert penalty((mean, std), y).item() == pytest.approx(expected.item(), abs=1e-7)
    rescaled = DistributionMatchingLoss().fit(1000 * y)
    assert rescaled((1000 * mean, 1000 * std), 1000 * y).item() == pytest.approx(
        expected.item(), abs=1e-6
    )
    laplace = distributions.Laplace(mean, std)
    centre = penalty.fit(y, prediction=laplace).parameter_centre
    expected_centre = [mean.mean().item(), (2**0.5 * std).log().mean().item()]
    assert centre.tolist() == pytest.approx(expected_centre, abs=1e-6)


def test_parameters_may_be_in_units_of_forecasts_of_the_training_data():
    mean, std, y, _ = batch()
    penalty = DistributionMatchingLoss()
    penalty.fit(y, prediction=(mean, std))
    parameters = torch.stack([mean, std.log()], dim=1)
    points = (parameters - parameters.mean(0)) / parameters.std(0, correction=0)
    distance = torch.nn.functional.pdist(points).sort().values
    assert penalty.parameter_median.item() == pytest.approx(distance[563:565].mean().item())
    expected = losses.distribution_matching_loss(
        (mean, std),
        y,
        bandwidth=penalty.outcome_bandwidth.item(),
        given=points,
        given_bandwidth=penalty.parameter_median.item(),
    )
    assert penalty((mean, std), y).item() == pytest.approx(expected.item(), abs=1e-7)


@pytest.mark.parametrize(("form", "kernel"), CASES)
def test_gradients_are_those_of_finite_differences(form, kernel):
    mean, std, y, given = batch(n=6)
    loss = fitted(form, kernel)
    given = given.get(form)
    inputs = (mean.requires_grad_(), std.requires_grad_())
    assert torch.autograd.gradcheck(lambda m, s: loss((m, s), y, given=given), inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("form", "kernel"), [case for case in CASES if case[1] != "moments"])
def test_extreme_forecasts_have_finite_gradients(form, kernel, dtype):
    mean, std, y, given = batch(dtype=dtype)
    loss = fitted(form, kernel)
    given = given.get(form)
    cases = [
        (mean, torch.full_like(std, 1e-30), y),
        (mean, std, y + 1e10),
        (mean, torch.full_like(std, 1e-30), 1e10 * y),
        (mean, torch.full_like(std, 1e15), y),
        (1e10 * mean, std, y),
        (y, torch.full_like(std, 1e-30), y),
    ]
    for case in cases:
        m, s, target = (part.clone().requires_grad_() for part in case)
        value = loss((m, s), target.detach(), given=given)
        slopes = torch.autograd.grad(value, (m, s))
        assert torch.isfinite(value)
        unit = 1.0 if kernel != "energy" else abs(value.item()) + 1
        assert all(bool((slope.abs() <= unit).all()) for slope in slopes), case


@pytest.mark.parametrize(("form", "kernel"), CASES)
def test_autocast_changes_nothing(form, kernel):
    mean, std, y, given = batch(dtype=torch.bfloat16)
    loss, given = fitted(form, kernel), given.get(form)
    expected = loss((mean.float(), std.float()), y.float(), given=given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss((mean, std), y, given=given)
        of_normal = loss(distributions.Normal(mean, std), y, given=given)
    assert value.dtype == torch.float32
    assert value == of_normal == expected


def test_all_ways_to_write_normal_distributions_agree():
    mean, std, y, _ = batch()
    loss, base = fitted("distribution"), NegativeLogLikelihoodLoss("none")
    expected = loss((mean, std), y)
    normal = distributions.Normal(mean[:, None], std[:, None])
    for prediction in (
        [mean, std],
        (mean[:, None], std[:, None]),
        distributions.Normal(mean, std),
        normal,
        distributions.Independent(normal, 1),
    ):
        assert loss(prediction, y[:, None]) == expected
        density = base(prediction, y[:, None])
        assert torch.allclose(density, -distributions.Normal(mean, std).log_prob(y))
    one = torch.tensor(0.5, dtype=torch.float64)
    assert loss((mean, one), y) == loss((mean, one.expand(48)), y)


def test_numbers_of_the_log_density():
    loss = NegativeLogLikelihoodLoss()
    value = loss((torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0])), torch.tensor([1.0, 1.0]))
    expected = math.log(2 * math.pi) / 2 + (0.5 + math.log(2)) / 2
    assert value.item() == pytest.approx(expected)
    rate = torch.tensor([0.5, 2.0])
    half = (torch.full((3,), 0.3).half(), torch.full((3,), 1.7).half())
    of_half = loss(half, torch.full((3,), 2.9).half())
    single = loss(tuple(part.float() for part in half), torch.full((3,), 2.9).half().float())
    assert of_half.dtype == torch.float32
    assert of_half == single
    value = loss(distributions.Exponential(rate), torch.tensor([2.0, 2.0]))
    assert value.item() == pytest.approx((1 - math.log(0.5) + 4 - math.log(2)) / 2)


DRAWN = {
    "gamma": lambda a, b: distributions.Gamma(a.exp(), b),
    "laplace": lambda a, b: distributions.Laplace(a, b),
    "lognormal": lambda a, b: distributions.LogNormal(a, b),
    "student": lambda a, b: distributions.StudentT(3.0, a, b),
    "independent": lambda a, b: distributions.Independent(
        distributions.Laplace(a[:, None], b[:, None]), 1
    ),
}


@pytest.mark.parametrize("kernel", ["rbf", "energy", "tanh", "moments"])
@pytest.mark.parametrize("name", DRAWN)
def test_distributions_are_drawn_from(name, kernel):
    torch.manual_seed(0)
    a, b, y, _ = batch()
    a.requires_grad_(), b.requires_grad_()
    loss = fitted("distribution", kernel, n_draws=4)
    value = loss(DRAWN[name](a, b), y.abs())
    slopes = torch.autograd.grad(value, (a, b))
    assert torch.isfinite(value)
    assert all(bool(torch.isfinite(slope).all() and slope.any()) for slope in slopes)


def mixture_of(part, a, b, logits):
    """Two components with the places a and a + 1."""
    places = torch.stack([a, a + 1], dim=1)
    parts = part(places, torch.stack([b, 2 * b], dim=1))
    return distributions.MixtureSameFamily(distributions.Categorical(logits=logits), parts)


@pytest.mark.parametrize(("form", "kernel"), CASES)
def test_mixtures_of_normal_distributions_are_closed_forms(form, kernel):
    mean, std, y, given = batch(n=12)
    logits = torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(12, 2)
    penalty, sides = fitted(form, kernel), {"given": given.get(form)}
    value = penalty(mixture_of(distributions.Normal, mean, std, logits), y, **sides)
    column = mean[:, None], std[:, None], logits[:, None]
    parts = distributions.Normal(
        torch.stack([column[0], column[0] + 1], dim=-1), torch.stack([std, 2 * std], 1)[:, None]
    )
    other = distributions.MixtureSameFamily(distributions.Categorical(logits=column[2]), parts)
    assert penalty(other, y[:, None], **sides).item() == pytest.approx(value.item(), abs=1e-12)
    assert torch.autograd.gradcheck(
        lambda *t: penalty(mixture_of(distributions.Normal, *t), y, **sides),
        [tensor.clone().requires_grad_() for tensor in (mean, std, logits)],
    )
    # a component without weight, and one for all samples
    alone = torch.tensor([0.0, -1e4], dtype=torch.float64)
    reduced = penalty(mixture_of(distributions.Normal, mean, std, alone.expand(12, 2)), y, **sides)
    assert reduced.item() == pytest.approx(penalty((mean, std), y, **sides).item(), abs=1e-12)
    shared = penalty(mixture_of(distributions.Normal, mean, std, alone), y, **sides)
    assert shared.item() == reduced.item()


def gradients(loss, tensors):
    tensors = [tensor.clone().requires_grad_() for tensor in tensors]
    value = loss(*tensors)
    return torch.cat([slope.reshape(-1) for slope in torch.autograd.grad(value, tensors)])


@pytest.mark.parametrize("kernel", ["rbf", "energy", "moments"])
def test_the_score_function_is_unbiased_by_enumeration(kernel):
    # two draws of 0 or 1 for each of three forecasts, and a condition that depends on them, too
    chance = torch.tensor([0.3, 0.6, 0.5], dtype=torch.float64)
    y = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    options = {"kernel": kernel, "given_bandwidth": 0.5}
    options |= {"bandwidth": 0.7} if kernel == "rbf" else {}
    loss = DistributionMatchingLoss(**options)

    def exact(p):
        values = torch.tensor([0.0, 1.0], dtype=torch.float64).expand(3, 2)
        weight = torch.stack([1 - p, p], dim=1)
        return loss(SampledForecast(values, parameters=p[:, None], weight=weight), y)

    class Known(distributions.Binomial):
        def sample(self, shape):
            return drawn.T

    def estimate(p):
        return loss(Known(1, p), y, given=p[:, None])

    loss.n_draws, mean, value = 2, 0.0, 0.0
    for bits in itertools.product([0.0, 1.0], repeat=6):
        drawn = torch.tensor(bits, dtype=torch.float64).reshape(3, 2)
        share = distributions.Binomial(1, chance).log_prob(drawn.T).sum().exp()
        mean = mean + share * gradients(estimate, [chance])
        value = value + share * estimate(chance)
    expected = gradients(exact, [chance])
    assert value.item() == pytest.approx(exact(chance).item(), abs=1e-14)
    torch.testing.assert_close(mean, expected, atol=1e-13, rtol=0)
    assert expected.abs().min() > 1e-2


DRAWN_WITH_WEIGHTS = {
    "mixture of normal": partial(mixture_of, distributions.Normal),
    "mixture of laplace": partial(mixture_of, distributions.Laplace),
    "mixture of poisson": lambda a, b, logits: mixture_of(
        lambda place, spread: distributions.Poisson(place.exp() + spread), a, b, logits
    ),
    "poisson": lambda a, b, logits: distributions.Poisson(a.exp() + b),
}


@pytest.mark.parametrize("name", DRAWN_WITH_WEIGHTS)
def test_draws_and_their_gradients_are_unbiased(name):
    """The mean for few draws is that for many, within four standard errors."""
    torch.manual_seed(0)
    mean, std, y, _ = batch(n=5)
    logits = torch.linspace(-1, 1, 10, dtype=torch.float64).reshape(5, 2)
    make, inputs = DRAWN_WITH_WEIGHTS[name], [mean, std, logits]
    inputs = inputs[: 2 if name == "poisson" else 3]
    few, many = (fitted("marginal", n_draws=n) for n in (2, 50))

    def slopes(loss):
        return gradients(lambda *t: loss(make(*t, *[logits][len(t) - 2 :]), y.abs()), inputs)

    found = torch.stack([slopes(few) for _ in range(300)])
    expected = torch.stack([slopes(many) for _ in range(60)])
    error = (found.var(dim=0) / 300 + expected.var(dim=0) / 60).sqrt()
    gap = found.mean(dim=0) - expected.mean(dim=0)
    assert (gap.abs() < 4 * error).all()
    assert (expected.mean(dim=0).abs() > 4 * error).any()
    if name == "mixture of normal":
        exact = gradients(
            lambda *t: fitted("marginal")(mixture_of(distributions.Normal, *t), y.abs()), inputs
        )
        assert ((found.mean(dim=0) - exact).abs() < 4 * error).all()


def test_distribution_functions_need_no_draws():
    mean, std, y, given = batch()
    mixture = distributions.MixtureSameFamily(
        distributions.Categorical(torch.ones(48, 1, dtype=torch.float64)),
        distributions.Normal(mean[:, None], std[:, None]),
    )
    for form, kernel in (("quantile", "rbf"), ("threshold", "rbf"), ("group", "thresholds")):
        loss, sides = fitted(form, kernel), {"given": given.get(form)}
        expected = loss((mean, std), y, **sides).item()
        assert loss(mixture, y, **sides).item() == pytest.approx(expected, abs=1e-12)
    laplace = distributions.Laplace(mean, std)
    columns = distributions.Laplace(mean[:, None], std[:, None])
    value = fitted("threshold")(laplace, y)
    assert value.item() == pytest.approx(fitted("threshold")(columns, y).item(), abs=1e-12)
    slope = -1 * torch.sign(y - mean) * torch.expm1(-(y - mean).abs() / std)
    pit = 0.5 + 0.5 * slope
    expected = losses.distribution_matching_loss(
        SampledForecast(pit[:, None], lambda points: pit), y, calibration="quantile"
    )
    value = fitted("quantile")(laplace, y)
    assert value.item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize(
    ("form", "kernel"), [("distribution", "rbf"), ("marginal", "energy"), ("decision", "tanh")]
)
def test_draws_are_unbiased(form, kernel):
    torch.manual_seed(0)
    mean, std, y, _ = batch(n=12)
    std = 4 * std
    exact, drawn = fitted(form, kernel), fitted(form, kernel, n_draws=2)
    values = np.array([drawn((mean, std), y).item() for _ in range(300)])
    expected = exact((mean, std), y).item()
    assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(300)
    # draws of our own
    noise = torch.randn((12, 300), dtype=torch.float64)
    prediction = SampledForecast(
        mean[:, None] + std[:, None] * noise,
        distributions.Normal(mean[:, None], std[:, None]).cdf,
        torch.stack([mean, std.log()], dim=1),
    )
    assert exact(prediction, y).item() == pytest.approx(expected, abs=0.03)


def rational(s, t):
    return 1 / (1 + torch.cdist(s, t, compute_mode="donot_use_mm_for_euclid_dist") ** 2)


def costs(y):
    return torch.stack([(y - 1) ** 2, (y + 1).abs()], dim=1)


def test_a_callable_kernel_is_averaged_over_draws():
    torch.manual_seed(0)
    mean, std, y, _ = batch(n=8)
    penalty = DistributionMatchingLoss("individual", kernel=rational, given_kernel=rational)
    penalty.fit(y, given=mean)
    values = np.array([penalty((mean, std), y, given=mean).item() for _ in range(200)])
    points = (mean - mean.mean()) / mean.std(correction=0)  # standardized by fit
    expected = losses.distribution_matching_loss(
        (mean, std),
        y,
        calibration="individual",
        kernel=rational,
        given=points,
        given_kernel=rational,
    )
    assert abs(values.mean() - expected.item()) < 4 * values.std() / np.sqrt(200)
    assert abs(expected.item()) > 8 * values.std() / np.sqrt(200)
    normal = distributions.Normal(mean, std)
    many = DistributionMatchingLoss("marginal", kernel=rational, n_draws=300)(normal, y).item()
    nodes = losses.distribution_matching_loss(
        (mean, std), y, calibration="marginal", kernel=rational
    )
    assert many == pytest.approx(nodes.item(), abs=0.02)


@pytest.mark.parametrize("form", ["distribution", "decision"])
def test_losses_of_decisions_about_a_number(form):
    mean, std, y, _ = batch(n=12)
    near = {"given_bandwidth": 1.0} if form == "distribution" else {}
    penalty = DistributionMatchingLoss(form, kernel="loss", loss=costs, **near)
    value = penalty(distributions.Normal(mean, std), y)
    expected = losses.distribution_matching_loss(
        (mean, std), y, calibration=form, kernel="loss", loss=costs, **near
    )
    assert value.item() == pytest.approx(expected.item(), abs=1e-12)
    slopes = gradients(lambda m, s: penalty((m, s), y), (mean, std))
    assert bool(torch.isfinite(slopes).all() and slopes.any())
    laplace = distributions.Laplace(mean, std)
    if form == "distribution":
        assert torch.isfinite(penalty(laplace, y))
    else:
        with pytest.raises(ValueError, match=r"needs normal distributions .* found draws"):
            penalty(laplace, y)


def test_functions_of_users_have_finite_values():
    mean, std, y, _ = batch(n=12)
    for options in (
        {"kernel": lambda s, t: rational(s, t) / 0},
        {"kernel": "loss", "loss": lambda y: costs(y) / 0},
    ):
        name = "loss" if "loss" in options else "kernel"
        with pytest.raises(ValueError, match=f"values of {name} must be finite"):
            DistributionMatchingLoss("marginal", **options)((mean, std), y)


@pytest.mark.parametrize("n_draws", [None, 1])
@pytest.mark.parametrize("form", ["distribution", "quantile"])
def test_calibrated_forecasts_have_expectation_0_in_small_batches(form, n_draws):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)

    def values(loss):
        for _ in range(300):
            mean, noise = torch.randn((2, 5), generator=generator)
            yield loss((mean, torch.ones(5)), mean + noise).item()

    unbiased = np.fromiter(values(fitted(form, n_draws=n_draws)), float)
    assert abs(unbiased.mean()) < 4 * unbiased.std() / np.sqrt(300)
    biased = np.fromiter(values(fitted(form, n_draws=n_draws, estimation="biased")), float)
    assert biased.mean() > 4 * biased.std() / np.sqrt(300)


def saved_and_loaded(module):
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other = DistributionMatchingLoss("individual")
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


@pytest.mark.parametrize(
    "copied",
    [saved_and_loaded, copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))],
    ids=["state", "deepcopy", "pickle"],
)
def test_what_is_learned_is_kept(copied):
    mean, std, y, given = batch()
    loss = fitted("individual")
    other = copied(loss)
    expected = loss((mean, std), y, given=given["individual"])
    assert other((mean, std), y, given=given["individual"]) == expected
    names = {"outcome_bandwidth", "thresholds", "given_centre", "given_factor", "given_median"}
    assert names <= set(other.state_dict())
    other.to(torch.float64)
    assert other.given_centre.dtype == torch.float64
    assert other((mean, std), y, given=given["individual"]).item() == pytest.approx(expected.item())


def test_a_state_replaces_another():
    mean, std, y, _ = batch()
    first, second = DistributionMatchingLoss().fit(y), DistributionMatchingLoss().fit(100 * y)
    second.load_state_dict(first.state_dict())
    assert second((mean, std), y) == first((mean, std), y)


def test_the_representation_names_what_is_not_the_default():
    loss = DistributionMatchingLoss("decision", loss=[[0, 1], [1, 0]], detach_given=True)
    expected = "calibration='decision', loss=tensor of shape (2, 2), detach_given=True"
    assert repr(loss) == f"DistributionMatchingLoss({expected})"


def test_an_optimizer_finds_the_spread():
    y = 3 * torch.randn(64, generator=torch.Generator().manual_seed(0))
    loss = DistributionMatchingLoss("quantile")
    log_std = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.Adam([log_std], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        loss((torch.zeros(64), log_std.exp()), y).backward()
        optimizer.step()
    assert log_std.exp().item() == pytest.approx(y.std().item(), rel=0.2)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_what_half_precision_does_not_hold_is_refused(unit):
    mean, std, y, _ = batch()
    penalty = DistributionMatchingLoss().fit(unit * y).half()
    with pytest.raises(ValueError, match=r"must be finite and not 0; .* in torch.float16\. Keep"):
        penalty((unit * mean, unit * std), unit * y)
