"""The scorers equal their metrics inside scikit-learn's cross-validation and routing."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import make_scorer as sklearn_make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB

from skcalib import metrics
from skcalib.metrics import get_scorer, get_scorer_names, make_scorer, smooth_calibration_error


@pytest.fixture(params=["binary", "strings", "three classes"])
def data(request):
    X, y = (load_iris if request.param == "three classes" else load_breast_cancer)(return_X_y=True)
    return X, np.array(["no", "yes"])[y] if request.param == "strings" else y


@pytest.mark.parametrize("name", get_scorer_names())
def test_scorers_equal_their_metrics(name, data):
    X, y = data
    model = GaussianNB().fit(X, y)
    metric = getattr(metrics, name.removeprefix("neg_"))
    expected = -metric(y, model.predict_proba(X))
    assert get_scorer(name)(model, X, y) == expected
    assert make_scorer(metric)(model, X, y) == expected
    in_sklearn = sklearn_make_scorer(
        metric, response_method="predict_proba", greater_is_better=False
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
    scoring = {name: get_scorer(name) for name in get_scorer_names()}
    result = cross_validate(GaussianNB(), *data, scoring=scoring, error_score="raise")
    for name in scoring:
        assert np.isfinite(result[f"test_{name}"]).all()


@pytest.mark.parametrize("name", get_scorer_names())
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


def test_unknown_name():
    with pytest.raises(ValueError, match=r"scoring must be one of .* found 'smooth'"):
        get_scorer("smooth")
    with pytest.raises(ValueError, match=r"scoring must be one of .* found \['smooth'\]"):
        get_scorer(["smooth"])


def test_get_scorer_returns_a_copy():
    with config_context(enable_metadata_routing=True):
        get_scorer("neg_smooth_calibration_error").set_score_request(sample_weight=True)
        request = get_scorer("neg_smooth_calibration_error").get_metadata_routing()
        assert request.score.requests.get("sample_weight") is not True
