"""Cross-fitting: probabilities of samples that the classifier was not fitted on."""

from numbers import Integral

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.parallel import Parallel, delayed

from .._validation import (
    HasMethods,
    check_any_folds,
    check_enough_samples,
    check_method_params,
    check_partition,
    check_probabilities,
    safe_split,
    shown,
)


class CrossFittingMetaEstimator(MetaEstimatorMixin, BaseEstimator):
    """Holds a classifier with `predict_proba`, fits it with whatever metadata it asks for."""

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
    }

    def _route(self, method, params):
        """Which parameters go to the classifier's fit and which to the splitter."""
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, method, **params)
        return Bunch(estimator=Bunch(fit=params), splitter=Bunch(split={}))

    def _cross_fit(self, X, y, routed):
        """For each fold a classifier fitted on the others, the fold, and its probabilities there.

        The labels stay what they are: class weights and scorers of the classifier may name them.
        """
        check_enough_samples(self.cv, len(y))
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y, **routed.splitter.split))
        check_any_folds(folds)
        return Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_fold)(
                clone(self.estimator), self.classes_, X, y, train, test, routed.estimator.fit
            )
            for train, test in folds
        )

    def _out_of_fold(self, X, y, routed):
        """For each sample the probabilities of a classifier fitted without its fold."""
        if isinstance(self.estimator, FrozenEstimator):
            return aligned_proba(self.estimator, X, self.classes_)
        folds = self._cross_fit(X, y, routed)
        rows = check_partition([test for _, test, _ in folds], len(y))
        return np.concatenate([proba for _, _, proba in folds])[rows]

    def _adopt_features(self, fitted):
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.pairwise = inner.pairwise
        tags.input_tags.allow_nan = inner.allow_nan
        tags.target_tags.required = True
        return tags


def _fit_fold(estimator, classes, X, y, train, test, fit_params):
    fit_params = check_method_params(X, fit_params, indices=train)
    X_train, y_train = safe_split(estimator, X, y, train)
    X_test, _ = safe_split(estimator, X, y, test, train)
    estimator.fit(X_train, y_train, **fit_params)
    return estimator, test, aligned_proba(estimator, X_test, classes)


def aligned_proba(estimator, X, classes):
    """The estimator's probabilities with a column for each class, 0 for one it has not seen."""
    proba = estimator.predict_proba(X)
    check_probabilities(proba, name=f"The output of {type(estimator).__name__}.predict_proba")
    known = estimator.classes_
    if np.array_equal(known, classes):
        return proba
    column = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in known.tolist() if label not in column]
    if unknown:
        raise ValueError(
            f"estimator must have the classes of y, {shown(classes)}; {type(estimator).__name__} "
            f"also has {shown(np.array(unknown))}. Pass a classifier with more classes than y as "
            "FrozenEstimator itself, not inside another estimator."
        )
    aligned = np.zeros((len(proba), len(classes)), dtype=proba.dtype)
    aligned[:, [column[label] for label in known.tolist()]] = proba
    return aligned
