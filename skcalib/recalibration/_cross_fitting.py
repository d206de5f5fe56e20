"""Cross-fitting: predictions of samples that the estimator was not fitted on."""

from copy import copy
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, Tags, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from .._inputs.arrays import listed
from .._inputs.labels import check_labels
from .._inputs.probabilities import check_probabilities
from .._inputs.scikit_learn import HasMethods, StrOptions, check_method_params, safe_split
from .._inputs.warnings import warn
from .._numerics.array_api import to_numpy
from ._decision_scores import check_scores, proba_of_scores, scale_of_scores
from ._habits import check_cv_is_no_word, check_is_object, recalibrator_named


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """A fitted classifier, and the scale that its decision scores are divided by."""

    estimator: Any
    scale: float | None  # None if it is asked for probabilities

    def proba(self, X: ArrayLike, classes):
        """Probabilities with a column for each class, 0 for one that it has not seen."""
        if self.scale is None:
            return aligned_proba(self.estimator, X, classes)
        scores = check_scores(self.estimator.decision_function(X), self.estimator)
        return _aligned(proba_of_scores(scores, self.scale), self.estimator, classes)


class CrossFitting(MetaEstimatorMixin, BaseEstimator):
    """Holds an estimator and folds, and hands on whatever metadata they ask for."""

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"])],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
    }

    # Whether folds should hold the same share of each class.
    _is_stratified = False

    # An example of an estimator, and what a recalibrator is asked for.
    _such_as, _asks = "Ridge()", "transform"

    def _validate_params(self) -> None:
        """Says what is wrong more plainly than scikit-learn, which calls this before a fit."""
        check_is_object(self, "estimator", ["fit"], lambda _: self._such_as)
        if getattr(self, "recalibrator", None) is not None:
            named = partial(recalibrator_named, method=self._asks)
            check_is_object(self, "recalibrator", ["fit", self._asks], named)
        check_cv_is_no_word(self)
        super()._validate_params()

    def _route(self, method: str, params: Any) -> Any:
        """Which parameters go to the estimator's fit and which to the splitter."""
        if get_config()["enable_metadata_routing"]:
            # before 1.9 scikit-learn copies what routes, and an iterator of splits has no copy
            router = copy(self)
            router.cv = self.cv if hasattr(self.cv, "split") else None
            return process_routing(router, method, **params)
        split = {"groups": params["groups"]} if "groups" in params else {}
        fit = {name: value for name, value in params.items() if name != "groups"}
        return Bunch(estimator=Bunch(fit=fit), splitter=Bunch(split=split))

    def _takes_weights(self) -> bool:
        """Whether the estimator is offered the weights."""
        if get_config()["enable_metadata_routing"]:
            return True
        if isinstance(self.estimator, FrozenEstimator):
            return True  # they count in the scale of a classifier's scores
        takes_weights = has_fit_parameter(self.estimator, "sample_weight")
        if not takes_weights:
            warn(
                f"{type(self.estimator).__name__} takes no sample_weight: the weights are used for "
                "the recalibrator only. With metadata routing, what is inside a pipeline or a "
                "search can request them.",
            )
        return takes_weights

    def _folds(self, X: Any, y: Any, routed: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        check_enough_samples(self.cv, len(y))
        cv = check_cv(self.cv, y, classifier=self._is_stratified)
        return check_folds(list(cv.split(X, y, **routed.splitter.split)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):  # not an estimator of skpro
            tags.input_tags = get_tags(self.estimator).input_tags
        tags.target_tags.required = True
        return tags


class CrossFittingMetaEstimator(CrossFitting):
    """Holds a classifier, and fits it with whatever metadata it asks for."""

    _parameter_constraints: dict = {
        **CrossFitting._parameter_constraints,
        "response_method": [StrOptions({"predict_proba", "decision_function"})],
    }

    _is_stratified = True

    _such_as, _asks = "LogisticRegression()", "predict_proba"

    def _check_data(self, X: Any, y: Any) -> Any:
        """Features that can be indexed, labels as an array of one type, and the classes."""
        check_response(self.estimator, self.response_method, fitted=False)
        X, y = indexable(X, column_or_1d(y, warn=True))
        classes, code = check_labels(y, name="y", partner="X")
        return X, classes[code], classes

    def _fit_whole(self, X: Any, y: Any, routed: Any) -> FittedClassifier:
        """The `FittedClassifier` of all samples."""
        return _fit_classifier(
            clone(self.estimator), self.response_method, X, y, routed.estimator.fit
        )

    def _cross_fit(
        self, task: Any, X: Any, y: Any, folds: Any, routed: Any, classes: np.ndarray
    ) -> Any:
        """The results of the task, `fit_fold` or `predict_fold`, for each fold.

        Labels are not encoded: class weights and scorers of the classifier may name them.
        """
        return Parallel(n_jobs=self.n_jobs)(
            delayed(task)(
                clone(self.estimator),
                self.response_method,
                classes,
                X,
                y,
                train,
                test,
                routed.estimator.fit,
            )
            for train, test in folds
        )

    def _fit_out_of_fold(
        self, X: Any, y: Any, routed: Any, classes: np.ndarray | None = None
    ) -> tuple[FittedClassifier, np.ndarray]:
        """`_fit_whole`, and each sample's probabilities from a classifier fitted without its fold.

        Their columns are the `classes`, by default those of the classifier.
        """
        frozen = isinstance(self.estimator, FrozenEstimator)
        if not frozen:  # before anything is fitted
            folds = self._folds(X, y, routed)
            rows = check_partition([test for _, test in folds], len(y))
        fitted = self._fit_whole(X, y, routed)
        classes = fitted.estimator.classes_ if classes is None else classes
        if frozen:
            return fitted, fitted.proba(X, classes)
        proba = self._cross_fit(predict_fold, X, y, folds, routed, classes)
        return fitted, np.concatenate(proba)[rows]


def _fit_classifier(
    estimator: Any, response_method: str, X: Any, y: Any, fit_params: Any
) -> FittedClassifier:
    estimator.fit(X, y, **fit_params)
    check_response(estimator, response_method, fitted=True)
    if response_method == "predict_proba":
        return FittedClassifier(estimator, scale=None)
    scores = check_scores(estimator.decision_function(X), estimator)
    scale = scale_of_scores(scores, fit_params.get("sample_weight"))
    return FittedClassifier(estimator, scale)


def fit_fold(
    estimator: Any,
    response_method: str,
    classes: np.ndarray,
    X: Any,
    y: Any,
    train: Any,
    test: Any,
    fit_params: Any,
) -> tuple[FittedClassifier, np.ndarray]:
    """The classifier fitted on the other folds, and its probabilities in this one."""
    fit_params = check_method_params(X, fit_params, indices=train)
    X_train, y_train = safe_split(estimator, X, y, train)
    X_test, _ = safe_split(estimator, X, y, test, train)
    fitted = _fit_classifier(estimator, response_method, X_train, y_train, fit_params)
    return fitted, fitted.proba(X_test, classes)


def predict_fold(*args: Any) -> np.ndarray:
    """Only the probabilities, as a fitted classifier may take much memory."""
    return fit_fold(*args)[1]


def adopt_features(estimator: Any, fitted: Any) -> None:
    """Give an estimator the number and the names of the features of the one that it holds."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))
        elif hasattr(estimator, name):
            delattr(estimator, name)


def aligned_proba(estimator: Any, X: Any, classes: np.ndarray, **params: Any) -> np.ndarray:
    """The estimator's probabilities with a column for each class, 0 for one it has not seen."""
    proba = to_numpy(estimator.predict_proba(X, **params))
    check_probabilities(proba, name=f"The output of {type(estimator).__name__}.predict_proba")
    return _aligned(proba, estimator, classes)


def _aligned(proba: np.ndarray, estimator: Any, classes: np.ndarray) -> np.ndarray:
    known = estimator.classes_
    if np.array_equal(known, classes):
        return proba
    column = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in known.tolist() if label not in column]
    if unknown:
        raise ValueError(
            f"estimator must have the classes of y, {listed(classes)}; {type(estimator).__name__} "
            f"also has {listed(unknown)}. Pass a classifier with more classes than y as "
            "FrozenEstimator itself, not inside another estimator."
        )
    aligned = np.zeros((len(proba), len(classes)), dtype=proba.dtype)
    aligned[:, [column[label] for label in known.tolist()]] = proba
    return aligned


def check_response(estimator: Any, response_method: str, *, fitted: Any) -> None:
    """The classifier must have the method; some classifiers have it only once they are fitted."""
    if fitted and not hasattr(estimator, "classes_"):
        raise ValueError(
            f"estimator must be a classifier, with the attribute classes_ once it is fitted; found "
            f"{type(estimator).__name__}, which has none. Pass a classifier."
        )
    if hasattr(estimator, response_method):
        return
    if not fitted and hasattr(type(estimator), response_method):
        return
    other = {"predict_proba", "decision_function"}.difference([response_method]).pop()
    found, remedy = "neither that nor " + other, "Pass a classifier."
    if hasattr(estimator, other):
        found, remedy = other + " only", f"Pass response_method={other!r}."
    raise ValueError(
        f"estimator must have the method {response_method}, as response_method="
        f"{response_method!r}; found {type(estimator).__name__}, which has {found}. {remedy}"
    )


def check_enough_samples(cv: Any, n: int) -> None:
    """A number of folds must not exceed the number of samples."""
    if isinstance(cv, Integral) and n < int(cv):
        raise ValueError(
            f"cv={cv} needs at least {cv} samples; found {n} sample(s) (n_samples={n}). Choose "
            "fewer folds, or freeze a fitted estimator (FrozenEstimator)."
        )


def check_folds(folds: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of arrays of indices, none of them empty; masks become indices."""
    if not folds:
        raise ValueError(
            "cv must yield at least one split; found none. A generator can be used only once: pass "
            "a splitter or a list."
        )
    checked = []
    for k, pair in enumerate(folds):
        train, test = (
            np.flatnonzero(rows) if rows.dtype.kind == "b" else rows
            for rows in map(np.asarray, pair)
        )
        if len(train) == 0 or len(test) == 0:
            raise ValueError(
                f"cv must put samples into every training and test set; found {len(train)} and "
                f"{len(test)} in split {k}. Choose other folds."
            )
        checked.append((train, test))
    return checked


def check_partition(
    tests: list[np.ndarray],
    n: int,
    what: str = "probabilities",
    alternative: str = "; a RecalibratedClassifier with ensemble=True takes any",
) -> np.ndarray:
    """Positions of the samples 0..n−1 in the concatenated test sets, which must hold each once."""
    order = np.concatenate(tests)
    if len(order) != n or not np.array_equal(np.sort(order), np.arange(n)):
        raise ValueError(
            f"cv must put every sample into exactly one test set, for out-of-fold {what} of all; "
            f"found {len(order)} test samples, {len(np.unique(order))} of them distinct, for {n} "
            f"samples. Choose a splitter such as KFold{alternative}."
        )
    return np.argsort(order)
