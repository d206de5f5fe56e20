import numpy as np
import pytest
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skcalib import recalibration
from skcalib.forecasts import GaussianForecast, QuantileForecast
from skcalib.recalibration import (
    AutoRecalibrator,
    IdentityRecalibrator,
    IsotonicRecalibrator,
    PairwiseScalingRecalibrator,
    PITRecalibrator,
    PredictProba,
    RecalibratedClassifier,
    RecalibratedRegressor,
    ScalingBinningRecalibrator,
    SigmoidRecalibrator,
)
from skcalib.recalibration._base import ForecastRecalibrator
from skcalib.recalibration._checks import suggest_recalibrator
from skcalib.recalibration._registry import FORECAST_RECALIBRATORS, RECALIBRATORS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] > RNG.normal(size=40)).astype(int)
FITTED = LogisticRegression().fit(X, Y)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("isotonic", "IsotonicRecalibrator()"),
        ("IsotonicRecalibrater", "IsotonicRecalibrator()"),
        ("sigmoid", "SigmoidRecalibrator()"),
        ("Sigmoyd", "SigmoidRecalibrator()"),
        ("temprature", "TemperatureRecalibrator()"),
        ("vector", "VectorScalingRecalibrator()"),
        ("venn-abers", "VennAbersRecalibrator()"),
        ("dirichlet", "DirichletRecalibrator()"),
        ("auto", "AutoRecalibrator()"),
        ("identity", "IdentityRecalibrator()"),
        ("platt", "SigmoidRecalibrator()"),
        ("histogram", "IntervalBinningRecalibrator()"),
        ("logistic", "SigmoidRecalibrator()"),
        ("something", "IsotonicRecalibrator()"),
        ("te", "IsotonicRecalibrator()"),
        ("", "IsotonicRecalibrator()"),
    ],
)
def test_names_of_recalibrators(name, expected):
    assert suggest_recalibrator(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quantile", "QuantileRecalibrator()"),
        ("conformal", "PITRecalibrator()"),
        ("auto", "AutoRecalibrator()"),
        ("isotonic", "PITRecalibrator()"),
    ],
)
def test_names_of_recalibrators_of_forecasts(name, expected):
    assert suggest_recalibrator(name, "transform") == expected


def test_every_recalibrator_of_forecasts_is_in_the_registry():
    public = (getattr(recalibration, name) for name in recalibration.__all__)
    expected = {
        cls for cls in public if isinstance(cls, type) and issubclass(cls, ForecastRecalibrator)
    }
    registered = {type(recalibrator) for recalibrator in FORECAST_RECALIBRATORS.values()}
    assert registered - {IdentityRecalibrator} == expected


# Those that jump somewhere, or put a prediction together in a way of their own.
NO_MODULES = {"isotonic", "binning", "scaling-binning", "Venn-Abers", "decision", "any decision"}
NO_MODULES |= {"problems of a lens"}


@pytest.mark.parametrize("name", sorted(NO_MODULES))
def test_maps_that_are_no_modules_name_those_that_are(name):
    fitted = clone(RECALIBRATORS[name].recalibrator).fit(FITTED.predict_proba(X), Y)
    with pytest.raises(TypeError, match=rf"{type(fitted).__name__} is not. Fit a Temperature"):
        fitted.to_module()


def test_a_map_inside_that_is_no_module_is_named():
    base = make_pipeline(SigmoidRecalibrator())
    fitted = PairwiseScalingRecalibrator(base).fit(FITTED.predict_proba(X), Y)
    with pytest.raises(TypeError, match=r"Pipeline is not\. Fit a Temperature"):
        fitted.to_module()


def test_forecasts_have_no_module():
    rng = np.random.default_rng(0)
    forecast, y = GaussianForecast(rng.normal(size=40), 1.0), rng.normal(size=40)
    with pytest.raises(TypeError, match="IdentityRecalibrator is not"):
        IdentityRecalibrator().fit(forecast, y).to_module()


@pytest.mark.parametrize("name", FORECAST_RECALIBRATORS)
def test_the_order_of_forecasts_does_not_matter(name):
    rng, level = np.random.default_rng(1), [0.05, 0.3, 0.8]
    (location, y), weight, order = rng.normal(size=(2, 60)), rng.random(60), rng.permutation(60)

    def quantiles(rows):
        forecast = GaussianForecast(location[rows], 1.5)
        recalibrator = clone(FORECAST_RECALIBRATORS[name])
        if name == "quantiles":
            forecast = QuantileForecast(forecast.quantiles(level), level)
        fitted = recalibrator.fit(forecast, y[rows], sample_weight=weight[rows])
        return fitted.transform(forecast).quantiles(level)

    np.testing.assert_allclose(quantiles(order), quantiles(np.arange(60))[order], rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (
            RecalibratedClassifier(LogisticRegression(), "sigmoid"),
            r"The 'recalibrator' parameter of RecalibratedClassifier must be an object with fit "
            r"and predict_proba; found the string 'sigmoid'\. Pass an object such as "
            r"SigmoidRecalibrator\(\)",
        ),
        (
            RecalibratedClassifier(LogisticRegression(), IsotonicRecalibrator),
            r"'recalibrator'.*found the class Iso.*Pass an object, IsotonicRecalibrator\(\)",
        ),
        (
            RecalibratedClassifier(LogisticRegression(), IsotonicRegression()),
            r"'recalibrator'.*found IsotonicRegr.*object such as IsotonicRecalibrator\(\)",
        ),
        (
            RecalibratedClassifier(LogisticRegression(), PITRecalibrator()),
            r"'recalibrator' .*an object with fit and predict_proba; found PITRecalibrator",
        ),
        (
            RecalibratedClassifier("isotonic"),
            r"'estimator' .*an object with fit; found the string 'isotonic'.*LogisticRegr",
        ),
        (
            RecalibratedClassifier(LogisticRegression),
            r"'estimator'.*found the class LogisticRegr.*an object, LogisticRegression\(\)",
        ),
        (
            RecalibratedRegressor(Ridge(), "pit"),
            r"'recalibrator' .*an object with fit and transform; found the string 'pit'\. "
            r"Pass an object such as PITRecalibrator\(\)",
        ),
        (
            RecalibratedRegressor("ridge"),
            r"'estimator' parameter of .* must.*'ridge'\. Pass .*such as Ridge\(\)",
        ),
        (
            RecalibratedRegressor(Ridge),
            r"'estimator' parameter of .* must.*found the class Ridge\. .*Ridge\(\)",
        ),
        (PredictProba("nb"), r"'estimator'.*found the string 'nb'\. .*LogisticRegression\(\)"),
    ],
    ids=str,
)
def test_a_name_or_a_class_is_no_estimator(model, match):
    with pytest.raises(TypeError, match=match):
        model.fit(X, Y)


@pytest.mark.parametrize(
    "fit",
    [
        RecalibratedClassifier(FITTED, cv="prefit").fit,
        RecalibratedRegressor(Ridge().fit(X, Y), cv="prefit").fit,
        PredictProba(FITTED, cv="prefit").fit,
        PredictProba(FITTED, cv="prefit").fit_transform,
    ],
)
def test_prefit_is_a_frozen_estimator(fit):
    with pytest.raises(
        ValueError, match=r"'cv' parameter of .* must be .*found 'prefit'\..*FrozenEstimator\(estim"
    ):
        fit(X, Y)


def test_other_words_for_folds():
    with pytest.raises(
        ValueError, match=r"'cv' parameter of .* must be .*found 'loo'\. Pass the number of folds"
    ):
        RecalibratedClassifier(FITTED, cv="loo").fit(X, Y)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: RecalibratedClassifier(LogisticRegression(), method="isotonic"),
            r"RecalibratedClassifier has no argument method; found method='isotonic'\. Pass "
            r"recalibrator=IsotonicRecalibrator\(\)",
        ),
        (
            lambda: RecalibratedRegressor(Ridge(), method="conformal"),
            r"found method='conformal'\. Pass recalibrator=PITRecalibrator\(\)",
        ),
        (
            lambda: PredictProba(LogisticRegression(), method="decision_function"),
            r"PredictProba has no argument method.*Pass response_method='decision_function'",
        ),
        (
            lambda: RecalibratedClassifier(LogisticRegression(), methods="isotonic"),
            "unexpected keyword argument 'methods'",
        ),
    ],
)
def test_arguments_of_other_packages(call, match):
    with pytest.raises(TypeError, match=match):
        call()


def test_a_subclass_may_have_an_argument_method():
    class Subclass(PredictProba):
        def __init__(self, estimator, method):
            super().__init__(estimator)
            self.method = method

    assert clone(Subclass(LogisticRegression(), method="mine")).method == "mine"


def test_the_signature_is_as_before():
    model = RecalibratedClassifier(LogisticRegression(), SigmoidRecalibrator(), cv=3)
    assert "method" not in model.get_params()
    assert clone(model).cv == 3
    assert "recalibrator" in RecalibratedClassifier._get_param_names()


@pytest.mark.parametrize(
    ("candidates", "match"),
    [
        ("isotonic", r"must be a list.*found 'isotonic'\. .*\[\('isotonic', IsotonicRecalib"),
        (["sigmoid"], r"must be pairs.*found 'sigmoid'\. .*\[\('sigmoid', SigmoidRecalib"),
        ([("a", "sigmoid")], r"must be objects.*found 'sigmoid' under the name 'a'"),
        ({"a": SigmoidRecalibrator()}, r"must be a list of pairs.*found \{'a': Sigmoid"),
        (SigmoidRecalibrator(), r"must be a list of pairs.*or None; found SigmoidRecalibrator"),
        ([SigmoidRecalibrator()], r"must be pairs of a name and a recalibrator; found Sigmoid"),
        ([("a", SigmoidRecalibrator)], r"must be objects with the methods fit and predict_proba"),
    ],
)
def test_candidates(candidates, match):
    with pytest.raises(ValueError, match=f"candidates {match}"):
        AutoRecalibrator(candidates).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 0, 1])


def test_candidates_of_forecasts():
    model = RecalibratedRegressor(Ridge(), AutoRecalibrator(["pit"]))
    with pytest.raises(ValueError, match=r"found 'pit'\. .*\[\('pit', PITRecalibrator\(\)\)\]"):
        model.fit(X, Y)


def test_names_in_a_grid_search():
    search = GridSearchCV(
        RecalibratedClassifier(LogisticRegression()),
        {"recalibrator": ["isotonic", SigmoidRecalibrator()]},
        error_score="raise",
    )
    with pytest.raises(TypeError, match=r"found the string 'isotonic'.*IsotonicRecalibrator\(\)"):
        search.fit(X, Y)


@pytest.mark.parametrize(
    "outer",
    [
        lambda inner: AutoRecalibrator([("mine", inner)]),
        PairwiseScalingRecalibrator,
        ScalingBinningRecalibrator,
    ],
    ids=["auto", "pairwise", "binning"],
)
def test_weights_are_declined_outside_of_other_recalibrators(outer):
    """What is inside of another recalibrator gets the weights that this one gets."""
    proba = RNG.dirichlet([1, 1], 40)
    with config_context(enable_metadata_routing=True):
        inner = SigmoidRecalibrator().set_fit_request(sample_weight=False)
        match = r"found a request for none by SigmoidRecalibrator\. Set the request of the outer"
        with pytest.raises(ValueError, match=match):
            outer(inner).fit(proba, Y)
    outer(inner).fit(proba, Y)  # nothing is routed


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stack_of_models_is_no_row_of_probabilities(n_classes):
    """Of two classes scikit-learn's stack holds one column for each model, else all columns."""
    shift = RNG.normal(size=(100, 2, n_classes)) + 3 * RNG.normal(size=(100, 1, n_classes))
    stack = softmax(shift, axis=2)
    stack = stack[:, :, 1] if n_classes == 2 else stack.reshape(100, -1)
    label = np.arange(100) % n_classes
    with pytest.raises(
        ValueError, match=r"models are features.*RecalibratedClassifier\(StackingCl"
    ):
        AutoRecalibrator().fit(stack, label)
    scores = stack[:, :3] * 0.9
    with pytest.raises(ValueError, match=r"Divide each row by its sum, .* one-vs-rest scores"):
        AutoRecalibrator().fit(scores / 2, label)
