"""The door of forecasts: what it recognises, and what it refuses."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score

from skcalib._data import check_forecasts
from skcalib._inputs.probabilities import is_forecast
from skcalib.forecasts import (
    DistributionForecast,
    EnsembleForecast,
    GaussianForecast,
    GaussianMixtureForecast,
    QuantileForecast,
    ResidualForecast,
    as_forecast,
)
from skcalib.forecasts._derived import AffineForecast
from skcalib.hypothesis_tests import CalibrationTest
from skcalib.metrics import (
    conditional_kernel_calibration_error,
    continuous_ranked_probability_loss,
    local_calibration_error,
    sharpness,
)
from skcalib.recalibration import PITRecalibrator

MEAN, STD = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 0.5])

HAS_NEW_STYLE = hasattr(stats, "make_distribution")  # since SciPy 1.15


def new_style_gamma(shape):
    return stats.make_distribution(stats.gamma)(a=shape)


@pytest.mark.parametrize(
    "made",
    [
        (MEAN, STD),
        (pd.Series(MEAN, index=[5, 6, 7]), pd.Series(STD, index=[7, 6, 5])),
        (MEAN.tolist(), STD.tolist()),
        (MEAN[:, None], STD[:, None]),
        stats.norm(MEAN, STD),
        stats.norm(loc=MEAN, scale=STD),
        *([stats.Normal(mu=MEAN, sigma=STD)] if HAS_NEW_STYLE else []),
        GaussianForecast(MEAN, STD),
        GaussianForecast(MEAN.astype(np.float32), STD.astype(np.float32)),
    ],
)
def test_normal_distributions_are_recognised(made):
    forecast = as_forecast(made)
    assert isinstance(forecast, GaussianForecast)
    np.testing.assert_array_equal(forecast.loc, MEAN)
    np.testing.assert_array_equal(forecast.scale, STD)


def test_one_parameter_may_be_the_same_for_all():
    for made in (stats.norm(MEAN), stats.norm(0, STD), (MEAN, 1.0)):
        assert len(as_forecast(made)) == 3
    if HAS_NEW_STYLE:
        assert len(as_forecast(stats.Normal(mu=MEAN))) == 3


class TorchLike:
    """What a distribution of torch looks like from outside, with arrays for tensors."""

    class Tensor(np.ndarray):
        def new_tensor(self, values):
            return np.asarray(values, dtype=self.dtype).view(TorchLike.Tensor)

        def double(self):
            return self.astype(np.float64)

        def detach(self):
            return self

        def cpu(self):
            return self

        def numpy(self):
            return np.asarray(self)

    class Distribution:
        def cdf(self, y):
            raise RuntimeError

        def icdf(self, y):
            raise RuntimeError


class Exponential(TorchLike.Distribution):
    arg_constraints = ("rate",)
    batch_shape = (3,)
    support = SimpleNamespace(is_discrete=False)

    def __init__(self, dtype=np.float64):
        self.rate = STD.astype(dtype).view(TorchLike.Tensor)
        self.mean = 1 / self.rate
        self.stddev = 1 / self.rate

    def cdf(self, y):
        return 1 - np.exp(-self.rate * y)

    def icdf(self, u):
        return -np.log1p(-u) / self.rate

    def log_prob(self, y):
        return np.log(self.rate) - self.rate * y


class SkproLike:
    """What a Laplace distribution of skpro looks like from outside: tables in, tables out."""

    class Rows:
        def __init__(self, dist):
            self.dist = dist

        def __getitem__(self, place):
            return SkproLike(self.dist.centre[place[0]], self.dist.scale[place[0]])

    def __init__(self, centre, scale):
        self.centre, self.scale, self.shape = centre, scale, (len(centre), 1)
        self.iloc = self.Rows(self)
        law = stats.laplace(centre[:, None], scale[:, None])
        self.cdf, self.ppf, self.log_pdf = map(self.of_tables, (law.cdf, law.ppf, law.logpdf))
        self.mean, self.var = (lambda: pd.DataFrame(law.mean())), (lambda: pd.DataFrame(law.var()))

    def of_tables(self, method):
        def on_device(values):
            assert values.shape == self.shape
            return pd.DataFrame(method(values))

        return on_device

    def get_tag(self, name, default):
        return default


@pytest.mark.parametrize(
    ("made", "law", "parameters"),
    [
        (Exponential(), lambda scale: stats.expon(scale=scale), (1 / STD,)),
        (SkproLike(MEAN, STD), stats.laplace, (MEAN, STD)),
    ],
    ids=["tensors", "tables"],
)
def test_tensors_and_tables_come_and_go(made, law, parameters):
    forecast, twin, y = as_forecast(made), law(*parameters), np.array([0.1, 1.0, 3.0])
    for name, arguments in (("cdf", y), ("logpdf", y), ("ppf", 0.3), ("mean", None), ("std", None)):
        found, expected = (
            getattr(one, name)(*([] if arguments is None else [arguments]))
            for one in (forecast, twin)
        )
        np.testing.assert_allclose(found, expected)
    rows = [2, 2, 0]
    expected = law(*(values[rows] for values in parameters)).cdf(y)
    np.testing.assert_allclose(forecast[rows].cdf(y), expected)
    np.testing.assert_array_equal(check_forecasts(y, forecast).value, y)  # they are no counts


def test_parameters_in_single_precision_have_finite_quantiles():
    forecast, twin = as_forecast(Exponential(np.float32)), stats.expon(scale=1 / STD)
    y = np.array([0.1, 1.0, 3.0])
    np.testing.assert_allclose(forecast.crps(y), as_forecast(twin).crps(y), rtol=1e-8)


def test_infinite_quantiles_are_refused():
    class Single:
        def cdf(self, y):
            return stats.expon(scale=STD).cdf(y)

        def ppf(self, level):
            return stats.expon(scale=STD).ppf(np.float32(level))

    forecast = as_forecast(Single())
    assert np.isinf(forecast.ppf(1.0)).all()
    with pytest.raises(ValueError, match=r"infinite one at 0.999999.* in row 0 of a Single"):
        forecast.crps(np.ones(3))


class Gamma(Exponential):
    cdf = TorchLike.Distribution.cdf
    icdf = TorchLike.Distribution.icdf


def test_saturated_transforms_are_refused_where_nothing_else_is_known():
    class OnlyCdf:
        def cdf(self, y):
            return stats.logistic(MEAN, STD).cdf(y)

        def ppf(self, level):
            return stats.logistic(MEAN, STD).ppf(level)

    forecast, exact = DistributionForecast(OnlyCdf()), stats.logistic(MEAN, STD)
    y = np.array([0.5, -3.0, 3.0])
    expected = exact.logcdf(y) - exact.logsf(y)
    np.testing.assert_allclose(forecast.pit_log_odds(y), expected, rtol=1e-10)
    for method in ("logpdf", "entropy"):
        with pytest.raises(ValueError, match=f"{method} is not known"):
            getattr(forecast, method)(*([y] if method == "logpdf" else []))
    np.testing.assert_allclose(forecast.mean(), MEAN, atol=1e-6)
    np.testing.assert_allclose(forecast.std(), exact.std(), rtol=1e-5)
    with pytest.raises(ValueError, match=r"outcome 99 in row 1 is impossible.*logcdf and logsf"):
        forecast.pit_log_odds([0.0, 99.0, 0.0])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((3, 2)), "an array of shape (3, 2).*look alike.*EnsembleForecast(members)"),
        (pd.DataFrame({"mean": MEAN, "std": STD}), "an array of shape (3, 2).*look alike"),
        (MEAN, "an array of shape (3,), which does not say what it holds"),
        (MEAN.tolist(), "an array of shape (3,)"),
        ((MEAN, STD, STD), "a tuple of 3 values"),
        (stats.norm, "parameters of shape (n_samples,); found shape ()"),
        (GaussianForecast, "the class GaussianForecast itself"),
        ("normal", "found str"),
        (None, "found NoneType"),
        (stats.norm(0, 1), "(n_samples,); found shape ()"),
        (stats.norm(np.zeros((3, 2)), 1), "found shape (3, 2)"),
        (stats.norm(MEAN, -1), "std must be positive; found -1 in row 0"),
        (Gamma(), "must know its cdf and icdf; found Gamma of torch"),
    ],
)
def test_what_is_no_forecast_is_refused(wrong, message):
    pattern = ".*".join(map(re.escape, message.split(".*")))
    with pytest.raises((TypeError, ValueError), match=pattern):
        as_forecast(wrong)


TOO_LARGE, SIZE = "must lie within ±1e+150.*1e+200", "size must be a whole number of at least 1"


def local(given=MEAN, **options):
    return local_calibration_error(MEAN, (MEAN, STD), given=given, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianForecast(MEAN, [1, 0, 1]), "std must be positive; found 0 in row 1"),
        (lambda: GaussianForecast(MEAN, -1.0), "std must be positive; found -1 in row 0"),
        (lambda: GaussianForecast(MEAN, [1, np.nan, 1]), "std must be finite; found nan"),
        (lambda: GaussianForecast([0, np.inf], 1.0), "mean must be finite.*row 1"),
        (lambda: GaussianForecast(MEAN, [1, 2]), "std must have the same shape.*found shape (2,)"),
        (lambda: GaussianForecast(["a"], 1.0), "mean must hold numbers; found type"),
        (lambda: GaussianForecast([], 1.0), "mean must be 1-D.*at least one value"),
        (lambda: GaussianForecast(np.zeros((3, 2)), 1.0), "mean must be 1-D"),
        (lambda: GaussianMixtureForecast([[0, 1]], 1.0, [1, -1]), "not be negative.*found -1"),
        (lambda: GaussianMixtureForecast([[0, 1]], 1.0, [0, 0]), "not all be 0"),
        (lambda: GaussianMixtureForecast([[0, 1]], 1.0, [1]), "shape (2,) or (1, 2)"),
        (lambda: GaussianMixtureForecast(MEAN, 1.0), "mean must be 2-D"),
        (lambda: EnsembleForecast([[1.0], [2.0]]), "at least 2 columns.*found 1"),
        (lambda: EnsembleForecast([[1.0, np.inf]]), "members must be finite"),
        (
            lambda: EnsembleForecast([[1, 2], [np.nan, np.nan]]),
            "2 numbers in each row; found 0 in row 1",
        ),
        (lambda: EnsembleForecast([[1, 2, np.nan]], [0.0, 0.0, 1.0]), "not all be 0 in a row"),
        (lambda: EnsembleForecast([[1.0, np.nan, 2.0, 1e200]]), "±1e+150"),
        (lambda: ResidualForecast(MEAN, [1.0]), "residuals must hold at least 2 values"),
        (lambda: QuantileForecast([[1, 2]], [0.1, 1.0]), "levels must lie in (0, 1)"),
        (lambda: QuantileForecast([[1, 2]], [10, 90]), "levels must lie in (0, 1); found [10"),
        (lambda: QuantileForecast([[1, 2]], [0.1, np.nan]), "levels must lie in (0, 1)"),
        (lambda: QuantileForecast([[1, 2]], [0.9, 0.1]), "levels must increase"),
        (lambda: QuantileForecast([[1, 2]], [0.5, 0.5]), "levels must increase"),
        (lambda: QuantileForecast([[1, 2]], [0.5]), "one level for each of the 2 columns"),
        (
            lambda: QuantileForecast([[1, 2], [3, 2]], [0.1, 0.9]),
            "found 3 at 0.1 and 2 at 0.9 in row",
        ),
        (lambda: GaussianForecast([0, 1e200], 1.0), TOO_LARGE),
        (lambda: GaussianForecast([0.0, 1.0], [1.0, 1e200]), TOO_LARGE),
        (lambda: GaussianMixtureForecast([[0.0, -1e200]], [[1.0, 1.0]]), TOO_LARGE),
        (lambda: EnsembleForecast([[0.0, 1e200]]), TOO_LARGE),
        (lambda: ResidualForecast([0.0], [0.0, -1e200]), TOO_LARGE),
        (lambda: QuantileForecast([[0.0, 1e200]], [0.1, 0.9]), TOO_LARGE),
        (lambda: GaussianForecast([[1], [2, 3]], [1.0, 1.0]), "mean must be an array"),
        (lambda: DistributionForecast(3), "must have the methods of a distribution"),
        (lambda: GaussianForecast(MEAN, STD).ppf(1.5), "level must lie in [0, 1]; found 1.5"),
        (lambda: GaussianForecast(MEAN, STD).interval(90), "coverage must be a number in (0, 1)"),
        (lambda: GaussianForecast(MEAN, STD).quantiles(np.zeros((3, 2))), "levels must be 1-D"),
        (lambda: GaussianForecast(MEAN, STD).crps(MEAN, estimation="fair"), "has no members"),
        (
            lambda: EnsembleForecast([[1, 2]], [1, 1]).crps([1.0], estimation="fair"),
            "estimation='fair' is not known.*has weights",
        ),
        (lambda: GaussianForecast(MEAN, STD).crps(MEAN, estimation="bogus"), "must be 'ecdf' or"),
        (
            lambda: EnsembleForecast([[1, 2]] * 3).crps(MEAN, estimation="bogus"),
            "must be 'ecdf' or",
        ),
        (lambda: GaussianForecast(MEAN, STD).crps(0.5), "y must be 1-D.*found shape ()"),
        (lambda: continuous_ranked_probability_loss(MEAN, (MEAN, STD), levels=[]), "must hold"),
        *((lambda n=n: GaussianForecast(MEAN, STD).sample(n), SIZE) for n in (0, -1, 2.5, True)),
        (lambda: DistributionForecast(stats.gamma(STD)).components(0), "n_nodes must be a whole"),
        (lambda: check_forecasts([], GaussianForecast(MEAN, STD)[:0]), "at least one outcome"),
        (lambda: local(query=np.empty((0, 1))), "query must be 2-D.*at least one"),
        (lambda: local(query=MEAN[:2] + 1e200), "query must lie within ±1e+150"),
        (lambda: local(given=MEAN + 1e200, query=MEAN[:2]), "given must lie within ±1e+150"),
    ],
)
def test_bad_forecasts_and_arguments_are_refused(make, message):
    pattern = ".*".join(map(re.escape, message.split(".*")))
    with pytest.raises((ValueError, TypeError), match=pattern):
        make()


def test_outcomes_are_judged():
    forecast = GaussianForecast(MEAN, STD)
    for y, message in (
        ([0.0, 1.0], "one outcome for each of the 3 forecasts; found shape (2,)"),
        ([0.0, np.nan, 1.0], "y_true must be finite; found nan"),
        (["a", "b", "c"], "y_true must hold numbers"),
        (np.zeros((3, 2)), "y_true must be 1-D"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            check_forecasts(y, forecast)
    gamma = stats.gamma(STD)
    with pytest.raises(ValueError, match=r"support of its forecast; found -1 in row 2.*from 0 to"):
        check_forecasts([1.0, 1.0, -1.0], gamma)
    # 1/3 is the end of the support, up to rounding
    shifted = AffineForecast(as_forecast(gamma), np.array([1 / 3, 0, 0]), np.array([0.1, 1, 1]))
    check_forecasts([1 / 3, 1.0, 1.0], shifted)
    with pytest.raises(ValueError, match=r"found 0\.3 in row 0.*from 0\.333333 to inf"):
        check_forecasts([0.3, 1.0, 1.0], shifted)
    # of counts only the ends count, as a + b Y holds no whole numbers
    counts = AffineForecast(as_forecast(stats.poisson(STD)), np.full(3, 0.5), np.full(3, 1.1))
    check_forecasts([1.0, 2.0, 3.0], counts)
    with pytest.raises(ValueError, match=r"found 0 in row 0.*from 0\.5 to inf"):
        check_forecasts([0.0, 2.0, 3.0], counts)


def test_rows_of_weight_zero_are_left_out():
    data = check_forecasts(MEAN, (MEAN, STD), sample_weight=[1, 0, 3], given=[[1], [2], [3]])
    np.testing.assert_array_equal(data.value, MEAN[[0, 2]])
    np.testing.assert_array_equal(data.forecast.scale, STD[[0, 2]])
    np.testing.assert_array_equal(data.weight, [0.25, 0.75])
    np.testing.assert_array_equal(data.given, [[1], [3]])


def test_an_exchanged_outcome_changes_the_forecast():
    members = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    data = check_forecasts([10.0, 20.0, 30.0], EnsembleForecast(members))
    assert data.outcome.tolist() == [0, 0, 0]
    drawn_data = data.with_outcome(np.array([0, 1, 2]))
    y, forecast = drawn_data.value, drawn_data.forecast
    assert y.tolist() == [10.0, 3.0, 6.0]
    assert forecast.members.tolist() == [[1, 2], [20, 4], [5, 30]]
    assert data.to_outcome_values(np.array([[0, 1, 2], [2, 0, 0]])).tolist() == [
        [10, 3, 6],
        [2, 20, 30],
    ]
    drawn = data.simulate_outcomes(np.random.default_rng(0), 3000)
    assert (np.abs([np.mean(drawn == k) for k in range(3)] - np.full(3, 1 / 3)) < 0.02).all()
    weighted = check_forecasts([1.0, 3.0, 5.0], EnsembleForecast(members, [1, 1]))
    assert np.isin(weighted.simulate_outcomes(np.random.default_rng(0), 5), members).all()


def test_probabilities_are_no_forecasts():
    for proba in ([0.1, 0.9], np.zeros((3, 2)), pd.DataFrame(np.zeros((3, 2))), ((0.1, 0.9),) * 2):
        assert not is_forecast(proba)
    for forecast in ((MEAN, STD), stats.norm(MEAN, STD), GaussianForecast(MEAN, STD)):
        assert is_forecast(forecast)


class Shift(BaseEstimator):
    """An estimator of forecasts: it subtracts a number from the outcomes."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y):
        return self

    def score(self, X, y):
        return -X.crps(np.asarray(y) - self.shift).mean()


@pytest.mark.parametrize("kind", ["Gaussian", "ensemble", "gamma"])
def test_forecasts_go_through_model_selection_as_x(kind):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=60)
    forecast = {
        "Gaussian": GaussianForecast(mean, 1.0),
        "ensemble": EnsembleForecast(mean[:, None] + rng.normal(size=(60, 20))),
        "gamma": DistributionForecast(stats.gamma(mean**2 + 3, loc=mean - 3)),
    }[kind]
    y = pd.Series(mean + 5 + rng.normal(size=60), index=np.arange(60) + 7)
    assert cross_val_score(Shift(), forecast, y, cv=3).shape == (3,)
    search = GridSearchCV(Shift(), {"shift": [0.0, 5.0]}, cv=3).fit(forecast, y)
    assert search.best_params_ == {"shift": 5.0}


@pytest.mark.parametrize(
    "dist",
    [
        stats.gamma([1.0, np.nan, 2.0]),
        stats.gamma([1.0, -1.0, 2.0]),
        stats.t(3, MEAN, [1.0, -1.0, 1.0]),
        *([new_style_gamma(np.array([1.0, -1.0, 2.0]))] if HAS_NEW_STYLE else []),
        stats.poisson([1.0, -1.0, 2.0]),
    ],
)
def test_invalid_parameters_are_no_silent_nan(dist):
    forecast = DistributionForecast(dist)
    for use in (
        lambda: forecast.cdf(1.0),
        lambda: forecast.ppf(0.5),
        lambda: forecast.crps([1.0, 1.0, 1.0]),
        lambda: forecast.pit([1.0, 1.0, 1.0]),
    ):
        with pytest.raises(ValueError, match=r"valid parameters; found .* to be NaN in row 1"):
            use()


def test_counts_are_whole_numbers():
    with pytest.raises(ValueError, match=r"whole numbers.*found 1.5 in row 1"):
        check_forecasts([1.0, 1.5, 2.0], stats.poisson(STD))
    shifted = check_forecasts([1.5, 2.5, 0.5], stats.poisson(STD, loc=0.5))
    np.testing.assert_allclose(shifted.forecast.pit_bounds(shifted.value)[0][2], 0.0)


@pytest.mark.skipif(not HAS_NEW_STYLE, reason="distributions of the new style")
def test_counts_of_the_new_style_are_those_of_the_old_style():
    trials, share, rate = np.array([3, 5, 8]), np.array([0.3, 0.3, 0.4]), np.array([0.3, 1.0, 20.0])
    y = np.array([0.0, 2.0, 5.0])
    new_poisson = stats.make_distribution(stats.poisson)(mu=rate)
    new_binomial = getattr(stats, "Binomial", None)  # its cdf interpolates between whole numbers
    pairs = [(new_poisson, stats.poisson(rate))]
    if new_binomial is not None:
        pairs.append((new_binomial(n=trials, p=share), stats.binom(trials, share)))
    for new, old in (map(as_forecast, pair) for pair in pairs):
        np.testing.assert_allclose(new.crps(y), old.crps(y), rtol=1e-12)
        np.testing.assert_allclose(new.sf(0.5), old.sf(0.5), rtol=1e-12)
        np.testing.assert_allclose(new.pit_bounds(y), old.pit_bounds(y), rtol=1e-12)
        with pytest.raises(ValueError, match=r"whole numbers.*found 0.5 in row 1"):
            check_forecasts([0.0, 0.5, 1.0], new)


def test_discrete_distributions_may_be_of_other_numbers():
    class Halves:
        is_continuous = False

        def cdf(self, y):
            return stats.poisson(STD).cdf(2 * y)

        def ppf(self, level):
            return stats.poisson(STD).ppf(level) / 2

    forecast = as_forecast(Halves())
    check_forecasts([0.5, 1.0, 1.5], forecast)
    lower, upper = forecast.pit_bounds([0.5, 1.0, 1.5])
    np.testing.assert_allclose(upper - lower, stats.poisson(STD).pmf([1, 2, 3]), rtol=1e-12)


def test_counts_that_rounding_has_moved_count():
    forecast = as_forecast(stats.poisson(STD))
    counts = np.array([1.0, 2.0, 3.0])
    for moved in (np.nextafter(counts, 0), np.nextafter(counts, 9)):
        np.testing.assert_allclose(forecast.pit_bounds(moved), forecast.pit_bounds(counts))


def test_tests_of_ensembles_depend_on_the_order_of_neither_rows_nor_members():
    rng = np.random.default_rng(0)
    members, y = np.round(rng.normal(size=(25, 3))), np.round(rng.normal(size=25))
    p_values = set()
    for rows in (np.arange(25), rng.permutation(25)):
        for some in (members, members[:, ::-1]):
            test = CalibrationTest(n_resamples=49, random_state=3)
            p_values.add(test.fit(EnsembleForecast(some[rows]), y[rows]).p_value_)
    assert len(p_values) == 1


def test_kernels_of_outcomes_may_return_lists():
    def kernel(a, b):
        return np.exp(-((a - b.T) ** 2))

    def listed(a, b):
        return kernel(a, b).tolist()

    forecast, y = ResidualForecast(MEAN, [-1.0, 0.0, 2.0]), MEAN + 0.5
    expected, found = (
        conditional_kernel_calibration_error(y, forecast, outcome_kernel=one)
        for one in (kernel, listed)
    )
    assert found == expected


def test_narrow_integers_count_resamples():
    test = CalibrationTest(n_resamples=np.int8(9), random_state=0).fit((MEAN, STD), MEAN)
    assert 0.1 <= test.p_value_ <= 1


def test_outcomes_beyond_all_standard_deviations_have_a_probability_of_zero():
    mean, std, y = np.array([0.0, 1.0]), np.full(2, 1e-300), np.array([-1e10, 1e10])
    mixture = GaussianMixtureForecast(np.stack([mean, mean], axis=1), np.stack([std, std], axis=1))
    for forecast in (GaussianForecast(mean, std), mixture):
        np.testing.assert_array_equal(forecast.cdf(y), [0, 1])
        np.testing.assert_array_equal(forecast.logpdf(y), [-np.inf, -np.inf])
        np.testing.assert_allclose(forecast.crps(y), [1e10, 1e10 - 1])


def test_weights_may_be_as_large_as_their_sum():
    large = sharpness(([0.0, 1.0], [1e140, 1e150]), sample_weight=[5e-324, 1e300])
    assert large.std == 1e150
    assert np.isfinite(large.width).all()


@pytest.mark.parametrize(
    "values",
    [np.zeros((2, 2, 2)), np.float32(0.5), np.ma.masked_array([0.5, 0.7], [False, True])],
    ids=["three dimensions", "a number", "masked"],
)
def test_a_recalibrator_calls_a_bad_forecast_by_the_name_of_its_argument(values):
    with pytest.raises((TypeError, ValueError), match=r"^X must"):
        PITRecalibrator().fit(values, [0.0, 1.0])
