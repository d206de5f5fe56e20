"""Errors say what was found in a batch, and what to do about it."""

import pytest

torch = pytest.importorskip("torch")
from torch import distributions

from skcalib.losses import SampledForecast
from skcalib.torch import (
    CalibrationPenalty,
    CalibrationRegularizedLoss,
    DistributionMatchingLoss,
    NegativeLogLikelihoodLoss,
)

MMCE = CalibrationPenalty("mmce")
LOGITS = torch.tensor([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
LABELS = torch.tensor([0, 1, 2])
MEAN, STD, Y = torch.zeros(3), torch.ones(3), torch.tensor([0.0, 1.0, 3.0])
NAN, INFINITY = torch.tensor(float("nan")), torch.tensor(float("inf"))


def with_entry(tensor, value):
    changed = tensor.clone()
    changed.view(-1)[-1] = value
    return changed


def with_entry_of_mixture(name, value):
    parts = {"loc": MEAN[:, None], "scale": STD[:, None]}
    parts[name] = with_entry(parts[name], value)
    return distributions.MixtureSameFamily(
        distributions.Categorical(torch.ones(3, 1)),
        distributions.Normal(**parts, validate_args=False),
        validate_args=False,
    )


class OnlyCdf(distributions.Distribution):
    def __init__(self):
        super().__init__(torch.Size([3]), validate_args=False)

    def cdf(self, value):
        return value.sigmoid()


ONLY_CDF = OnlyCdf()


@pytest.mark.parametrize("module", [DistributionMatchingLoss(), MMCE, CalibrationPenalty("kde")])
@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (with_entry(LOGITS, NAN), LABELS, "prediction must be finite; found NaN or infinity in 1"),
        (with_entry(LOGITS, INFINITY), LABELS, "lower the learning rate"),
        (LOGITS, torch.tensor([0, 1, 3]), "labels 0 to 2 for 3 classes; found 3"),
        (LOGITS, torch.tensor([0, 1, -1]), "found -1. Encode labels"),
        (LOGITS[:, 0], torch.tensor([0.0, 1.0, 0.5]), "labels 0 to 1 for 2 classes; found 0.5"),
        (LOGITS[:, 0], with_entry(Y, NAN), "found nan"),
        (LOGITS[:1], LABELS[:1], "at least 2 samples, as .* found 1. Drop"),
        (LOGITS, torch.tensor([0, -100, -100]), "at least 2 samples other than"),
        (LOGITS, LOGITS.softmax(1), r"target must have shape \(n_samples,\)"),
        (LOGITS[:2], LABELS, r"found .*2, 3"),
        (LOGITS[None], LABELS, "Flatten axes"),
        (LOGITS, [0, 1, 2], "target must be a tensor; found list"),
        (LOGITS[:0], LABELS[:0], "at least 2 samples, as .* found 0. Drop"),
        ("logits", LABELS, "prediction must be a tensor of class scores; found str"),
        (LOGITS[:, :2], Y / 2, "found 0.5.* For forecasts of a number pass a tuple"),
        (LOGITS, Y, "integers 0, …, 2 for 3 classes.* pass a tuple"),
        (LOGITS.softmax(1), LABELS, "must hold logits; found rows between 0 and 1 that sum to 1"),
        (LOGITS.softmax(1).half(), LABELS, "declare input_type='probabilities'"),
    ],
)
def test_batches_of_classes(module, logits, labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        module(logits, labels)


def test_logits_of_which_some_look_like_probabilities():
    proba = LOGITS.softmax(1)
    for changed in (with_entry(proba, 1.1), with_entry(proba, -0.1), with_entry(proba, 0.9)):
        assert torch.isfinite(MMCE(changed, LABELS))


def test_classes_are_no_forecasts_of_numbers():
    with pytest.raises(TypeError, match=r"found tuple. For .* to DistributionMatchingLoss"):
        MMCE((MEAN, STD), Y)


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        (LOGITS, "found 2. If these are logits, pass input_type='logits'"),
        (-LOGITS, "found -2. If these are logits"),
        (LOGITS.sigmoid(), "sum to 1 for each sample; found a sum of 1.88"),
    ],
)
def test_probabilities(proba, message):
    with pytest.raises(ValueError, match=message):
        CalibrationPenalty("smooth", input_type="probabilities")(proba, LABELS)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.tensor([1.0, -1.0, 1.0]), "sample_weight must be non-negative; found -1"),
        (torch.tensor([1.0, 0.0, 0.0]), "positive for at least 2 samples.* found 1"),
        (with_entry(STD, NAN), "sample_weight must be finite"),
        (STD[:2], "sample_weight must have shape .* for the 3 samples"),
        (STD[:, None], r"sample_weight must have shape \(n_samples,\) .* found \(3, 1\)"),
        (STD.numpy(), "sample_weight must be a tensor; found ndarray"),
    ],
)
def test_weights(weight, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MMCE(LOGITS, LABELS, sample_weight=weight)
    with pytest.raises((ValueError, TypeError), match=message):
        DistributionMatchingLoss("quantile")((MEAN, STD), Y, sample_weight=weight)


@pytest.mark.parametrize("weight_of_penalty", [0.0, 1.0])
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.tensor([1.0, -1.0, 1.0]), "sample_weight must be non-negative; found -1"),
        (with_entry(STD, NAN), "sample_weight must be finite"),
        (STD[:2], "sample_weight must have shape .* for the 3 samples"),
        (STD[:, None], r"sample_weight must have shape \(n_samples,\) .* found \(3, 1\)"),
        (STD.numpy(), "sample_weight must be a tensor; found ndarray"),
        (0 * STD, "must have a sample that counts, .* found none of 3"),
    ],
)
def test_weights_of_sums(weight_of_penalty, weight, message):
    base = torch.nn.CrossEntropyLoss(reduction="none")
    loss = CalibrationRegularizedLoss(base, MMCE, weight=weight_of_penalty)
    with pytest.raises((ValueError, TypeError), match=message):
        loss(LOGITS, LABELS, sample_weight=weight)


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("labels", [torch.full((3,), -100), LABELS[:0]])
def test_batches_of_which_nothing_counts(reduction, labels):
    base = torch.nn.CrossEntropyLoss(reduction=reduction)
    loss = CalibrationRegularizedLoss(base, MMCE, weight=0.0)
    with pytest.raises(ValueError, match="sample"):
        loss(LOGITS[: len(labels)], labels)


@pytest.mark.parametrize(
    ("prediction", "y", "message"),
    [
        ((with_entry(MEAN, NAN), STD), Y, "mean of prediction must be finite"),
        ((MEAN, with_entry(STD, 0.0)), Y, "std of prediction must be positive; found 0. Let"),
        ((MEAN, -STD), Y, "found -1. Let the network return log std"),
        ((MEAN, STD, STD), Y, r"tuple \(mean, std\); found 3 entries"),
        ((MEAN[:2], STD), Y, r"found mean of shape \(2,\)"),
        ((MEAN, STD[:2]), Y, r"found std of shape \(2,\)"),
        ((MEAN, STD), with_entry(Y, INFINITY), "target must be finite"),
        ((MEAN[:1], STD[:1]), Y[:1], "at least 2 samples, as .* found 1. Drop"),
        (distributions.Categorical(torch.ones(3, 2)), Y, "found Categorical. For classes, pass lo"),
        (distributions.Bernoulli(STD / 2), Y, "found Bernoulli. For classes, pass logits"),
        (ONLY_CDF, Y, "sample and log_prob, .* choose calibration='quantile', which takes the cdf"),
        (with_entry_of_mixture("scale", 0.0), Y, "std of prediction must be positive; found 0"),
        (with_entry_of_mixture("loc", NAN), Y, "mean of prediction must be finite"),
        (
            SampledForecast(MEAN[:, None], weight=MEAN),
            Y,
            "weight of SampledForecast must have two axes",
        ),
        (
            SampledForecast(MEAN[:, None], weight=torch.ones(3, 2)),
            Y,
            r"weight .* the shape \(3, 1\) of values",
        ),
        (distributions.MultivariateNormal(MEAN, torch.eye(3)), Y, r"event shape \(3,\)"),
        ((MEAN.reshape(1, 3), STD), Y, r"found mean of shape \(1, 3\)"),
        ((MEAN[:0], STD[:0]), Y[:0], "at least 2 samples, as .* found 0. Drop"),
        (
            SampledForecast(MEAN[:, None].numpy()),
            Y,
            "values of SampledForecast must be a tensor; found ndarray",
        ),
        (SampledForecast(MEAN[:, None] + NAN), Y, "values of SampledForecast must be finite"),
        (
            SampledForecast(MEAN[:, None], parameters=MEAN[:, None] + NAN),
            Y,
            "parameters of SampledForecast must be f",
        ),
        (distributions.Laplace(MEAN[:2], 1.0), Y, "one number for each of the 3 samples"),
        (distributions.Cauchy(MEAN, STD), Y, "given must hold what the distributions depend on"),
    ],
)
def test_batches_of_numbers(prediction, y, message):
    loss = DistributionMatchingLoss().fit(Y)
    with pytest.raises((ValueError, TypeError), match=message):
        loss(prediction, y)


def test_distributions_without_a_distribution_function():
    loss = DistributionMatchingLoss("quantile")
    with pytest.raises(ValueError, match=r"with cdf .* none for StudentT\. Choose"):
        loss(distributions.StudentT(3.0, MEAN, STD), Y)
    with pytest.raises(ValueError, match=r"n_draws must be at least 2 .* found 1"):
        DistributionMatchingLoss(n_draws=1).fit(Y)(distributions.Poisson(STD), Y)
    with pytest.raises(ValueError, match=r"with cdf .* none for Poisson\. .* take one with cdf"):
        loss(distributions.Poisson(STD), Y)


@pytest.mark.parametrize(
    ("value", "message"), [(NAN, "be finite"), (1.5, "found 1.5"), (-0.5, "found -0.5")]
)
def test_draws_with_bad_distribution_functions(value, message):
    draws = SampledForecast(MEAN[:, None], cdf=lambda points: with_entry(points.sigmoid(), value))
    with pytest.raises(ValueError, match=f"cdf of SampledForecast must .*{message}"):
        DistributionMatchingLoss("quantile")(draws, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "bandwidth='median' stands for the median distance .* Call fit with the target"),
        ({"bandwidth": 1.0}, "given_bandwidth='median' stands for .* Call fit with the target of"),
        ({"calibration": "threshold"}, "thresholds=None stands for quantiles .* Call fit"),
        ({"calibration": "marginal", "kernel": "tanh", "bandwidth": 1.0}, "thresholds=None"),
    ],
)
def test_medians_before_fit(options, message):
    with pytest.raises(ValueError, match=message):
        DistributionMatchingLoss(**options)((MEAN, STD), Y)


def test_what_is_given():
    individual = DistributionMatchingLoss("individual")
    individual.fit(Y)
    with pytest.raises(ValueError, match="Call fit with the target and given of the training"):
        individual((MEAN, STD), Y, given=LOGITS)
    individual.fit(Y, given=LOGITS)
    with pytest.raises(ValueError, match="given must have the 3 features that fit saw; found 2"):
        individual((MEAN, STD), Y, given=LOGITS[:, :2])
    with pytest.raises(ValueError, match="given must be finite"):
        individual((MEAN, STD), Y, given=with_entry(LOGITS, NAN))
    with pytest.raises(ValueError, match=r"given must have shape .* found \(3, 1, 3\)"):
        individual((MEAN, STD), Y, given=LOGITS[:, None])
    with pytest.raises(ValueError, match="given must hold features"):
        individual((MEAN, STD), Y)
    with pytest.raises(ValueError, match="given must be None for CalibrationPenalty"):
        MMCE(LOGITS, LABELS, given=LOGITS)


@pytest.mark.parametrize(
    ("target", "given", "message"),
    [
        ([0.0], None, "target must have one row for each of .* at least 2; found"),
        ([0.0, float("nan")], None, "target must be finite"),
        ([[0.0, 1.0], [0.0, 1.0]], None, r"target must be 1-D.* found shape \(2, 2\)"),
        (["a", "b"], None, "target must hold numbers; found type <U1"),
        ([0.0, 1.0], LOGITS, "given must have one row for each of the 2 samples"),
    ],
)
def test_training_data(target, given, message):
    with pytest.raises(ValueError, match=message):
        DistributionMatchingLoss("individual").fit(target, given=given)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (DistributionMatchingLoss, {"calibration": "perfect"}, "calibration"),
        (DistributionMatchingLoss, {"bandwidth": 0.0}, "bandwidth"),
        (DistributionMatchingLoss, {"given_bandwidth": None}, "given_bandwidth"),
        (DistributionMatchingLoss, {"n_draws": 0}, "n_draws"),
        (DistributionMatchingLoss, {"loss": [1.0, 2.0]}, "loss must have 2 axes and some entries"),
        (DistributionMatchingLoss, {"thresholds": [NAN]}, "thresholds must be finite"),
        (DistributionMatchingLoss, {"thresholds": {"a": 1}}, "thresholds must hold numbers"),
        (DistributionMatchingLoss, {"class_weight": [1.0, -1.0]}, "non-negative; found -1"),
        (
            DistributionMatchingLoss,
            {"calibration": "marginal", "class_weight": [1.0, 1.0]},
            "class_weight must be None for calibration='marginal'",
        ),
        (CalibrationPenalty, {"name": "smooth", "bandwidth": 1e-9}, "bandwidth"),
        (CalibrationPenalty, {"name": "mmce", "multi_class": "top-label"}, "multi_class"),
        (CalibrationPenalty, {"name": "kde", "order": 0.5}, "order"),
        (CalibrationPenalty, {"name": "kde", "n_bins": 5}, "among bandwidth, order, .* n_bins"),
        (CalibrationPenalty, {"name": "brier"}, "'name' parameter of CalibrationPenalty"),
        (CalibrationPenalty, {"name": "mmce", "input_type": "scores"}, "input_type"),
        (CalibrationPenalty, {"name": "mmce", "ignore_index": 0.5}, "ignore_index"),
        (NegativeLogLikelihoodLoss, {"reduction": "sum"}, "reduction"),
    ],
)
def test_options(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_losses_and_weights_of_other_numbers_of_classes():
    with pytest.raises(ValueError, match="with 3 classes; found"):
        DistributionMatchingLoss("decision", loss=[[0, 1], [1, 0]])(LOGITS, LABELS)
    with pytest.raises(ValueError, match="class_weight must have one entry for each of the 3"):
        DistributionMatchingLoss(class_weight=[1.0, 2.0])(LOGITS, LABELS)
    with pytest.raises(ValueError, match="thresholds must be left out for class probabilities"):
        DistributionMatchingLoss(thresholds=[0.0])(LOGITS, LABELS)


def test_moments_that_would_overflow():
    loss = DistributionMatchingLoss("marginal", kernel="moments")
    with pytest.raises(ValueError, match="Standardize the outcomes"):
        loss((MEAN, STD), 1e10 * Y)
    assert torch.isfinite(loss((MEAN.double(), STD.double()), 1e10 * Y.double()))


def test_sums_of_losses():
    penalty = MMCE
    weight = torch.ones(3)
    regularized = CalibrationRegularizedLoss(torch.nn.CrossEntropyLoss(), penalty)
    with pytest.raises(ValueError, match=r"is a mean already; .* reduction='none'"):
        regularized(LOGITS, LABELS, sample_weight=weight)
    with pytest.raises(TypeError, match=r"Pass DistributionMatchingLoss\(\)"):
        CalibrationRegularizedLoss(torch.nn.CrossEntropyLoss(), DistributionMatchingLoss)
    with pytest.raises(ValueError, match="weight"):
        CalibrationRegularizedLoss(torch.nn.CrossEntropyLoss(), penalty, weight=-1.0)
    regularized = CalibrationRegularizedLoss(torch.nn.MSELoss(reduction="none"), penalty)
    with pytest.raises(ValueError, match=r"one for each of the 3 samples; found shape \(3, 3\)"):
        regularized(LOGITS, LOGITS)


def test_parts_in_the_wrong_places():
    with pytest.raises(TypeError, match=r"found CalibrationPenalty, which is a penalty. Swap"):
        CalibrationRegularizedLoss(MMCE, torch.nn.CrossEntropyLoss())
    with pytest.raises(ValueError, match="found reduction='sum'"):
        CalibrationRegularizedLoss(torch.nn.CrossEntropyLoss(reduction="sum"), MMCE)
    CalibrationRegularizedLoss(MMCE, CalibrationPenalty("kde"))


def test_log_densities():
    joint = distributions.MultivariateNormal(MEAN, torch.eye(3))
    with pytest.raises(ValueError, match=r"independent of each other; .* event shape \(3,\)"):
        NegativeLogLikelihoodLoss()(joint, Y)
    with pytest.raises(ValueError, match="at least 1 sample; found 0"):
        NegativeLogLikelihoodLoss()((MEAN[:0], STD[:0]), Y[:0])
    with pytest.raises(ValueError, match="target must be finite"):
        NegativeLogLikelihoodLoss()((MEAN, STD), with_entry(Y, NAN))
    with pytest.raises(ValueError, match="one number for each of the 3 samples"):
        NegativeLogLikelihoodLoss()(distributions.Laplace(MEAN[:2], 1.0), Y)
    with pytest.raises(ValueError, match="std of prediction must be positive"):
        NegativeLogLikelihoodLoss()((MEAN, -STD), Y)


def test_rounding_beyond_0_and_1_is_no_error():
    module = CalibrationPenalty("smooth", input_type="probabilities")
    labels = torch.tensor([1, 0, 1, 0])
    rounded = torch.tensor([1 + 2**-23, -1e-8, 0.4, 0.3])
    torch.testing.assert_close(module(rounded, labels), module(rounded.clip(0, 1), labels))
    with pytest.raises(ValueError, match=r"between 0 and 1; found -1\.01e-06"):
        module(rounded - torch.tensor([0, 1e-6, 0, 0]), labels)
