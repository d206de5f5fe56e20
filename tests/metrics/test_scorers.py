"""The scorers equal their metrics inside scikit-learn's cross-validation and routing."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.metrics import (
    brier_score_loss,
    get_scorer as get_sklearn_scorer,
    log_loss,
    make_scorer as sklearn_make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib import metrics
from skcalib.forecasts import GaussianForecast, QuantileForecast, get_forecast
from skcalib.hypothesis_tests import CalibrationTest, EquivalenceTest
from skcalib.metrics import get_scorer, get_scorer_names, make_scorer, smooth_calibration_error
from skcalib.metrics._registry import ALL_METRICS, FORECAST_METRICS, METRICS, find_entry
from skcalib.recalibration import QuantileRecalibrator, RecalibratedRegressor
from skcalib.streaming import CalibrationState
from skcalib.uncertainty import compare_models, confidence_interval

NAMES = [f"neg_{name}" for name in METRICS]
OF_FORECASTS = [f"neg_{name}" for name in FORECAST_METRICS]


def test_names_are_those_of_the_metrics():
    assert get_scorer_names() == sorted(NAMES + OF_FORECASTS)


@pytest.fixture(scope="module", params=["binary", "strings", "three classes"])
def data(request):
    load, step = (load_iris, 1) if request.param == "three classes" else (load_breast_cancer, 4)
    X, y = (column[::step] for column in load(return_X_y=True))
    return X, np.array(["no", "yes"])[y] if request.param == "strings" else y


@pytest.mark.parametrize("name", NAMES)
def test_scorers_equal_their_metrics(name, data):
    X, y = data
    model = GaussianNB().fit(X, y)
    metric = getattr(metrics, name.removeprefix("neg_"))
    expected = -metric(y, model.predict_proba(X))
    assert get_scorer(name)(model, X, y) == expected
    assert make_scorer(metric)(model, X, y) == expected
    event = {"pos_label": "yes"} if "yes" in y else {}  # scikit-learn passes one column
    in_sklearn = sklearn_make_scorer(
        metric, response_method="predict_proba", greater_is_better=False, **event
    )
    assert in_sklearn(model, X, y) == expected


def test_scorer_with_positive_label():
    X, y = load_breast_cancer(return_X_y=True)
    y = np.array(["malignant", "benign"])[y]
    model = GaussianNB().fit(X, y)
    scorer = make_scorer(smooth_calibration_error, pos_label="benign")
    expected = -smooth_calibration_error(y == "benign", model.predict_proba(X)[:, 0])
    assert scorer(model, X, y) == pytest.approx(expected, abs=1e-15)


def test_cross_validate_with_several_metrics(data):
    scoring = {name: get_scorer(name) for name in NAMES}
    result = cross_validate(GaussianNB(), *data, scoring=scoring, error_score="raise", cv=2)
    for name in scoring:
        assert np.isfinite(result[f"test_{name}"]).all()


@pytest.mark.parametrize("name", NAMES)
def test_test_sets_may_lack_classes(name):
    X, y = load_breast_cancer(return_X_y=True)
    metric = getattr(metrics, name.removeprefix("neg_"))
    model = GaussianNB().fit(X, y)
    reference = GaussianNB().fit(X, y + 1)  # labels 1 and 2: a lone 1 is the negative class
    rows = y == 0
    expected = -metric(y[rows], model.predict_proba(X[rows])[:, 1], labels=[0, 1])
    assert get_scorer(name)(model, X[rows], y[rows]) == expected
    assert get_scorer(name)(reference, X[rows], y[rows] + 1) == expected
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    rows = y > 0
    expected = -metric(y[rows], model.predict_proba(X[rows]), labels=[0, 1, 2])
    assert get_scorer(name)(model, X[rows], y[rows]) == expected


def test_sample_weight_is_routed():
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.random.default_rng(0).random(len(y))
    with config_context(enable_metadata_routing=True):
        scorer = get_scorer("neg_smooth_calibration_error").set_score_request(sample_weight=True)
        search = GridSearchCV(
            GaussianNB().set_fit_request(sample_weight=False),
            {"var_smoothing": [1e-9, 1e-3]},
            scoring=scorer,
            cv=StratifiedKFold(3),
            error_score="raise",
        ).fit(X, y, sample_weight=weight)
    expected = []
    for train, test in StratifiedKFold(3).split(X, y):
        proba = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
        expected.append(-smooth_calibration_error(y[test], proba, sample_weight=weight[test]))
    actual = [search.cv_results_[f"split{k}_test_score"][0] for k in range(3)]
    np.testing.assert_allclose(actual, expected, atol=1e-15)


def test_scikit_learn_default_passes_labels_which_is_refused():
    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="response_method='predict_proba'"):
        sklearn_make_scorer(smooth_calibration_error)(model, X, y)


def test_the_sign_of_a_foreign_metric_is_not_guessed():
    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="greater_is_better must be passed for roc_auc_score"):
        make_scorer(roc_auc_score)
    scorer = make_scorer(roc_auc_score, response_method="predict_proba", greater_is_better=True)
    assert scorer(model, X, y) == roc_auc_score(y, model.predict_proba(X)[:, 1])
    assert make_scorer(log_loss, greater_is_better=False)(model, X, y) == get_sklearn_scorer(
        "neg_log_loss"
    )(model, X, y)
    fixed = partial(metrics.expected_calibration_error, n_bins=5)
    assert make_scorer(fixed)(model, X, y) == -fixed(y, model.predict_proba(X))


def test_metrics_without_a_best_end_are_no_scores():
    for metric in (metrics.calibration_slope, metrics.observed_expected_ratio):
        with pytest.raises(ValueError, match=rf"best at one end .* found {metric.__name__}"):
            make_scorer(metric)
    with pytest.raises(ValueError, match="must be False for smooth_calibration_error"):
        make_scorer(smooth_calibration_error, greater_is_better=True)
    with pytest.raises(TypeError, match=r"greater_is_better must be True.*found array\(\[0, 1\]\)"):
        make_scorer(smooth_calibration_error, greater_is_better=np.array([0, 1]))


def test_unknown_name():
    with pytest.raises(ValueError, match=r"scoring must be one of .* found 'smooth'"):
        get_scorer("smooth")
    with pytest.raises(ValueError, match=r"scoring must be one of .* found \['smooth'\]"):
        get_scorer(["smooth"])
    for other in (7, pd.Series([1.0, 2.0]), pd.NA):
        with pytest.raises(ValueError, match=r"scoring must be one of .* found"):
            get_scorer(other)
    with pytest.raises(ValueError, match=r"score_func must be .* found 'bogus'\. Pass one of"):
        make_scorer("bogus")
    for other in (None, b"x"):
        with pytest.raises(ValueError, match=rf"score_func must be .* found {other}\. Pass one of"):
            make_scorer(other)


@pytest.mark.parametrize(
    "take",
    [
        make_scorer,
        lambda name: get_scorer(f"neg_{name}"),
        lambda name: CalibrationTest(name).fit([0.2, 0.7], [0, 1]),
        lambda name: EquivalenceTest(name, margin=0.1).fit([0.2, 0.7], [0, 1]),
        lambda name: confidence_interval(name, [0, 1], [0.2, 0.7]),
        lambda name: compare_models(name, [0, 1], [0.2, 0.7], [0.3, 0.6]),
    ],
    ids=["make_scorer", "get_scorer", "test", "equivalence", "interval", "compare"],
)
def test_a_name_that_is_mistyped(take):
    with pytest.raises(ValueError, match=r"Did you mean '(neg_)?smooth_calibration_error'\?$"):
        take("smoth_calibration_eror")


def test_a_metric_by_its_name():
    by_name = make_scorer("smooth_calibration_error")
    assert repr(by_name) == repr(make_scorer(smooth_calibration_error))
    for name, entry in ALL_METRICS.items():
        assert find_entry(name) is find_entry(entry.function) is entry


LABEL, PROBA = np.arange(40) * 7 % 5 < 2, np.linspace(0.1, 0.8, 40)
DRAWS = {"n_resamples": 9, "random_state": 0}
# All functions that take a metric, by name or as a function. Tests are left out: their statistics
# "log_loss" and "brier_score_loss" are these losses less their expectations.
DOORS = {
    "scorer": lambda metric: repr(make_scorer(metric, greater_is_better=False)),
    "table": lambda metric: metrics.metric_table(LABEL, PROBA, metrics={"value": metric}),
    "interval": lambda metric: confidence_interval(metric, LABEL, PROBA, **DRAWS),
    "comparison": lambda metric: compare_models(metric, LABEL, PROBA, PROBA**2, **DRAWS),
    "equivalence": lambda metric: vars(
        EquivalenceTest(metric, margin=0.1, **DRAWS).fit(PROBA, LABEL)
    )["upper_limit_"],
    "state": lambda metric: CalibrationState().update(LABEL, PROBA).evaluate(metric).value,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("function", [brier_score_loss, log_loss, roc_auc_score])
def test_functions_of_scikit_learn_by_their_names(door, function):
    if function is roc_auc_score and door == "equivalence":
        for metric in (function, function.__name__):
            with pytest.raises(ValueError, match=r"metric must be 0 for .* found .*roc_auc_score"):
                DOORS[door](metric)
        return
    assert DOORS[door](function.__name__) == DOORS[door](function)
    if function is brier_score_loss and door != "state":
        for name in ("brier", "brier_score", "neg_brier_score"):
            with pytest.raises(ValueError, match=r"Did you mean 'brier_score_loss'\?$"):
                DOORS[door](name)


def test_a_statistic_of_scikit_learn_by_its_name():
    by_name, of_function = (
        CalibrationTest(statistic, **DRAWS).fit(PROBA, LABEL)
        for statistic in ("roc_auc_score", roc_auc_score)
    )
    assert by_name.p_value_ == of_function.p_value_
    with pytest.raises(ValueError, match=r"Did you mean 'brier_score_loss'\?$"):
        CalibrationTest("brier").fit(PROBA, LABEL)


@pytest.mark.parametrize("function", [brier_score_loss, log_loss, roc_auc_score])
def test_functions_of_scikit_learn_take_no_forecasts(function):
    forecast = GaussianForecast(PROBA, PROBA)
    for metric in (function, function.__name__, partial(function, sample_weight=None)):
        for take in (
            lambda metric: CalibrationTest(metric, **DRAWS).fit(forecast, PROBA),
            lambda metric: confidence_interval(metric, PROBA, forecast, **DRAWS),
            lambda metric: compare_models(metric, PROBA, forecast, forecast, **DRAWS),
        ):
            with pytest.raises(ValueError, match=r"metric of forecasts"):
                take(metric)


def test_get_scorer_returns_a_copy():
    with config_context(enable_metadata_routing=True):
        get_scorer("neg_smooth_calibration_error").set_score_request(sample_weight=True)
        request = get_scorer("neg_smooth_calibration_error").get_metadata_routing()
        assert request.score.requests.get("sample_weight") is not True


def mean_width(y_true, y_forecast, *, sample_weight=None, level=0.5):
    """A metric that is not registered, and that a normal forecast would change."""
    low, high = y_forecast.interval(level)
    return float(np.average((high - low) * (y_true > 100), weights=sample_weight))


class Forecaster(RegressorMixin, BaseEstimator):
    """Its forecast is not the normal one of its mean and standard deviation."""

    n_calls = 0

    def __init__(self, width=1.0):
        self.width = width

    def fit(self, X, y):
        self.inner_ = BayesianRidge().fit(X, y)
        return self

    def predict(self, X, return_std=False):
        return self.inner_.predict(X, return_std=return_std)

    def predict_forecast(self, X):
        type(self).n_calls += 1
        step = self.width * np.arange(-4.0, 5.0)
        return QuantileForecast(self.predict(X)[:, None] + step, np.linspace(0.1, 0.9, 9))


@pytest.fixture(scope="module")
def regression():
    X, y = load_diabetes(return_X_y=True)
    return X[:120], y[:120]


def test_few_levels_win_no_search(regression):
    X, y = regression
    few = RecalibratedRegressor(BayesianRidge(), QuantileRecalibrator(levels=[0.2, 0.5, 0.8]), cv=2)
    few.fit(X, y)
    with pytest.warns(UserWarning, match=r"quantiles at 3 levels .* levels=\[...\]"):
        get_scorer("neg_continuous_ranked_probability_loss")(few, X, y)
    crps = metrics.continuous_ranked_probability_loss
    scorer = make_scorer(crps, levels=[0.2, 0.5, 0.8])
    assert scorer(few, X, y) == -crps(y, few.predict_forecast(X))
    whole = BayesianRidge().fit(X, y)
    expected = -crps(y, whole.predict(X, return_std=True), levels=[0.2, 0.5, 0.8])
    assert scorer(whole, X, y) == expected


@pytest.mark.parametrize("name", OF_FORECASTS)
def test_scorers_of_forecasts_equal_their_metrics(name, regression):
    X, y = regression
    X = X[:, :2]
    metric = getattr(metrics, name.removeprefix("neg_"))
    inner = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y)
    model = GridSearchCV(inner, {}, cv=2).fit(X, y)
    features = {"given": X} if name == "neg_local_calibration_error" else {}
    expected = -metric(y, inner.predict(X, return_std=True), **features)
    assert get_scorer(name)(model, X, y) == expected
    assert make_scorer(metric)(model, X, y) == expected


@pytest.mark.parametrize(
    "model",
    [
        Forecaster(),
        make_pipeline(StandardScaler(), Forecaster()),
        GridSearchCV(make_pipeline(StandardScaler(), Forecaster()), {}, cv=2),
    ],
    ids=["itself", "pipeline", "search"],
)
def test_a_forecast_is_not_replaced_by_a_normal_one(model, regression):
    X, y = regression
    model = model.fit(X, y)
    scorer = make_scorer(
        mean_width, response_method="predict_forecast", level=0.6, greater_is_better=False
    )
    assert scorer(model, X, y) == -mean_width(y, get_forecast(model, X), level=0.6)
    assert scorer(model, X, y) == pytest.approx(-6 * np.mean(y > 100))


def test_searches_by_a_score_of_forecasts(regression):
    scorer = make_scorer(mean_width, response_method="predict_forecast", greater_is_better=True)
    model = make_pipeline(StandardScaler(), Forecaster())
    search = GridSearchCV(model, {"forecaster__width": [1.0, 3.0, 2.0]}, scoring=scorer, cv=3)
    assert search.fit(*regression).best_params_ == {"forecaster__width": 3.0}


def test_several_scores_share_one_forecast(regression, monkeypatch):
    monkeypatch.setattr(Forecaster, "n_calls", 0)
    scoring = {
        f"level {level}": make_scorer(
            mean_width, response_method="predict_forecast", level=level, greater_is_better=False
        )
        for level in (0.2, 0.4, 0.6)
    }
    scoring["predict"] = "neg_mean_absolute_error"  # which must not get a forecast
    model = make_pipeline(StandardScaler(), Forecaster())
    result = cross_validate(model, *regression, scoring=scoring, cv=3, error_score="raise")
    assert Forecaster.n_calls == 3
    share = result["test_level 0.2"] / -2
    for level in (0.2, 0.4, 0.6):
        np.testing.assert_allclose(result[f"test_level {level}"], -10 * level * share)
    assert (result["test_predict"] < -10).all()


def test_sample_weight_is_routed_to_scores_of_forecasts(regression):
    X, y = regression
    weight = np.random.default_rng(0).random(len(y))
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(
            mean_width, response_method="predict_forecast", greater_is_better=False
        )
        scorer.set_score_request(sample_weight=True)
        result = cross_validate(
            Forecaster(), X, y, scoring=scorer, cv=KFold(3), params={"sample_weight": weight}
        )
    expected = []
    for train, test in KFold(3).split(X):
        forecast = Forecaster().fit(X[train], y[train]).predict_forecast(X[test])
        expected.append(-mean_width(y[test], forecast, sample_weight=weight[test]))
    np.testing.assert_allclose(result["test_score"], expected)


def test_metrics_that_require_given_get_the_features(regression):
    def gap(y_true, y_forecast, *, given, sample_weight=None):
        return float(np.max(given) + len(y_forecast))

    X, y = regression
    model = Forecaster().fit(X, y)
    scorer = make_scorer(gap, response_method="predict_forecast", greater_is_better=False)
    assert scorer(model, X, y) == -X.max() - len(y)
    with config_context(enable_metadata_routing=True):
        scorer = scorer.set_score_request(given=True)
        assert scorer(model, X, y, given=np.full(len(y), 7.0)) == -7 - len(y)
    fixed = make_scorer(
        gap, response_method="predict_forecast", given=[5.0], greater_is_better=False
    )
    assert fixed(model, X, y) == -5 - len(y)


def test_estimators_without_forecasts_are_refused_by_scores_of_forecasts(regression):
    model = LinearRegression().fit(*regression)
    with pytest.raises(TypeError, match=r"must have a forecast.*found LinearRegression"):
        make_scorer(mean_width, response_method="predict_forecast", greater_is_better=False)(
            model, *regression
        )


def test_scorers_of_forecasts_show_where_they_look():
    scorer = make_scorer(mean_width, response_method="predict_forecast", greater_is_better=False)
    assert repr(scorer) == (
        "make_scorer(mean_width, greater_is_better=False, "
        "response_method=('predict_forecast', 'predict_proba', 'predict'))"
    )


def test_metrics_of_both_kinds_get_what_the_estimator_predicts(data, regression):
    X, y = data
    scorer = get_scorer("neg_distribution_matching_error")
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(X, y)
    expected = -metrics.distribution_matching_error(y, model.predict_proba(X))
    assert scorer(model, X, y) == pytest.approx(expected, rel=1e-12)
    X, y = regression
    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y)
    expected = -metrics.distribution_matching_error(y, model.predict(X, return_std=True))
    assert scorer(model, X, y) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["ECE", "ece", "(ece)"])
def test_names_in_papers_are_suggested(name):
    if name == "(ece)":
        with pytest.raises(ValueError, match="score_func must be one of"):
            make_scorer(name)
        return
    with pytest.raises(ValueError, match=name) as refused:
        make_scorer(name)
    assert str(refused.value).endswith(
        "Did you mean 'expected_calibration_error' or 'level_set_calibration_error'?"
    )
    assert len(str(refused.value)) < 160
    with pytest.raises(ValueError, match="Did you mean 'neg_smooth_calibration_error'"):
        get_scorer("neg_smCE")


@pytest.mark.parametrize("method", [pd.NA, 3, [], ["predict_proba", None]])
def test_methods_that_predict_have_names(method):
    with pytest.raises(TypeError, match="response_method must be the name of a method"):
        make_scorer("smooth_calibration_error", response_method=method)


def test_names_of_scorers_by_kind_of_predictions():
    classes, forecasts = get_scorer_names(takes="classes"), get_scorer_names(takes="forecasts")
    assert sorted({*classes, *forecasts}) == get_scorer_names()
    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X[::4], y[::4])
    for name in classes:
        assert np.isfinite(get_scorer(name)(model, X[::4], y[::4]))
    regressor = BayesianRidge().fit(X[:100, :2], X[:100, 2])
    for name in forecasts:
        assert np.isfinite(get_scorer(name)(regressor, X[:100, :2], X[:100, 2]))


def test_scorers_of_scikit_learn_are_handed_on(data):
    X, y = data
    model = GaussianNB().fit(X, y)
    theirs = get_sklearn_scorer("neg_log_loss")
    assert get_scorer("neg_log_loss")(model, X, y) == theirs(model, X, y)


def test_searches_with_names_of_classes():
    """Ours pass the classes; those of scikit-learn, which pass one column, need its event."""
    X, code = make_classification(60, flip_y=0.3, random_state=0)
    names = np.array(["default", "non-default"])  # the event that is meant is not the last
    of_sklearn = partial(
        sklearn_make_scorer, response_method="predict_proba", greater_is_better=False
    )
    for event, y in (("non-default", code), ("default", 1 - code)):
        scoring = {"numbers": {}, "ours": {}, "theirs": {}}
        for name in NAMES:
            metric = getattr(metrics, name.removeprefix("neg_"))
            scoring["numbers"][name] = get_scorer(name)
            scoring["ours"][name] = make_scorer(metric, pos_label=event)
            scoring["theirs"][name] = of_sklearn(metric, pos_label=event)
        found = [
            GridSearchCV(
                GaussianNB(), {"var_smoothing": [1e-9, 1.0]}, scoring=scorers, refit=False, cv=2
            )
            .fit(X, y if kind == "numbers" else names[code])
            .cv_results_
            for kind, scorers in scoring.items()
        ]
        for name in NAMES:
            numbers, ours, theirs = (result[f"mean_test_{name}"] for result in found)
            np.testing.assert_allclose(ours, numbers, rtol=1e-9, atol=1e-12, err_msg=name)
            np.testing.assert_allclose(theirs, numbers, rtol=1e-9, atol=1e-12, err_msg=name)
    for name in NAMES:
        with pytest.raises(ValueError, match="pos_label is not specified"):
            of_sklearn(getattr(metrics, name.removeprefix("neg_")))(
                GaussianNB().fit(X, names[code]), X, names[code]
            )
