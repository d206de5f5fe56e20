"""Cross-fitting: predictions of samples that the estimator was not fitted on."""

from copy import copy
from dataclasses import replace
from functools import partial
from inspect import signature
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.utils import Bunch, Tags, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._inputs.annotations import BaseEstimator, CrossValidator, Estimator, MetaEstimatorMixin
from .._inputs.arrays import ArrayLike
from .._inputs.by import Columns, check_by, check_groups
from .._inputs.checks import check_sample_weight
from .._inputs.labels import encode_labels
from .._inputs.scikit_learn import (
    CheckedParameters,
    Parallel,
    check_method_params,
    delay,
    safe_split,
)
from .._inputs.warnings import warn
from .._numerics.temperature import scale_by_temperature
from ..forecasts._transformed import concatenate
from . import _checks
from ._auto import AutoRecalibrator
from ._base import clone_for, declines
from ._folds import check_folds, check_partition, find_blocks, reads_units
from ._responses import FittedClassifier, check_response, fit_classifier
from ._scaling import TemperatureRecalibrator

# The largest temperature of decision scores: those that tell nothing must stay different.
_MAX_SCORE_TEMPERATURE = 10.0


# Folds of more groups than this are not stratified, as that would take seconds.
_MAX_STRATIFIED_GROUPS = 5000


class CrossFitting(CheckedParameters, MetaEstimatorMixin, BaseEstimator):
    """Base of meta-estimators with an estimator and folds; routes metadata to both."""

    _parameter_constraints = {"cv": ["cv_object"]}

    estimator: Any
    recalibrator: Any
    recalibrator_: Any
    cv: CrossValidator
    n_jobs: int | None

    # True if folds hold the same share of each class.
    _is_stratified = False

    # For messages: an example of an estimator, the method that a recalibrator must have (none if
    # there is no recalibrator), and how subgroups are passed.
    _example_estimator, _recalibrator_method, _by_example = "Ridge()", "", ""

    # Methods that fit the estimator; the last one also splits the samples.
    _fit_methods: tuple[str, ...] = ("fit",)

    def __new__(cls, *_: Any, **params: Any) -> Self:
        """Refuse scikit-learn's argument `method`, with a remedy, unless a subclass has it."""
        if "method" in params and "method" not in signature(cls.__init__).parameters:
            name, needed = params["method"], cls._recalibrator_method
            remedy = f"response_method={name!r}"
            if needed:
                remedy = f"recalibrator={_checks.suggest_recalibrator(name, needed)}"
            raise TypeError(
                f"{cls.__name__} has no argument method; found method={name!r}. Pass {remedy}."
            )
        return super().__new__(cls)

    def _validate_params(self) -> None:
        """Check parameters with plainer messages; scikit-learn calls this before a fit."""
        _checks.check_is_object(self, "estimator", ["fit"], self._example_estimator)
        if self._recalibrator_method:
            _checks.check_recalibrator(self, self._recalibrator_method)
        _checks.check_cv_is_no_string(self)
        super()._validate_params()

    def _route(self, method: str, params: dict[str, Any]) -> Any:
        """Return the parameters of the estimator's fit and those of the splitter."""
        if get_config()["enable_metadata_routing"]:
            # before 1.9 scikit-learn copies what routes, and an iterator of splits has no copy
            router = copy(self)
            has_splitter = hasattr(self.cv, "split")
            router.cv = self.cv if has_splitter else GroupKFold() if "groups" in params else None
            if not router.get_metadata_routing().consumes(method, ["groups"]):
                params = {name: value for name, value in params.items() if name != "groups"}
            return process_routing(router, method, **params)
        split = {"groups": params["groups"]} if "groups" in params else {}
        fit = {name: value for name, value in params.items() if name != "groups"}
        return Bunch(estimator=Bunch(fit=fit), splitter=Bunch(split=split))

    def _supports_weights(self) -> bool:
        """True if the estimator gets the weights; warn if it cannot take them."""
        if get_config()["enable_metadata_routing"]:
            return True
        if isinstance(self.estimator, FrozenEstimator):
            return True  # they count in the scale of a classifier's scores
        takes_weights = has_fit_parameter(self.estimator, "sample_weight")
        if not takes_weights:
            warn(
                f"{type(self.estimator).__name__} takes no sample_weight: the weights are used for "
                "the recalibrator only. With metadata routing, what is inside a pipeline or a "
                "search can request them."
            )
        return takes_weights

    def _prepare(self, y: Any, sample_weight: Any, arguments: dict[str, Any], params: dict) -> Any:
        """Return the unfitted recalibrator, its weights and groups, and the routed parameters."""
        recalibrator = AutoRecalibrator() if self.recalibrator is None else self.recalibrator
        _checks.check_supports_arguments(recalibrator, arguments, "fit(X, y, by=...)")
        if "by" in arguments:
            check_by(arguments["by"], len(y), sample_weight)
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, len(y))
            if self._supports_weights():
                params["sample_weight"] = sample_weight
            if declines(recalibrator, "sample_weight"):
                sample_weight = None
        uses_groups = reads_units(recalibrator) and not declines(recalibrator, "groups")
        groups = params.get("groups") if uses_groups else None
        groups = None if groups is None else check_groups(groups, len(y))
        return recalibrator, sample_weight, groups, self._route("fit", params)

    def _row_arguments(self, X: ArrayLike, by: Columns | None) -> dict[str, Any]:
        """Return what the recalibrator is told of each row, as keywords: subgroups, if any."""
        return {} if by is None else {"by": by}

    def _predict_arguments(self, X: ArrayLike, by: Columns | None) -> dict[str, Any]:
        """Return what the fitted recalibrator is told of each row, checked."""
        check_is_fitted(self)
        arguments = self._row_arguments(X, by)
        _checks.check_supports_arguments(self.recalibrator_, arguments, self._by_example)
        return arguments

    def _splitter(self, groups: ArrayLike | None) -> Any:
        """Return `cv`; of a number of folds with groups, a splitter that divides none of them."""
        if groups is None or not (self.cv is None or isinstance(self.cv, Integral)):
            return self.cv
        is_stratified = self._is_stratified and len(np.unique(groups)) <= _MAX_STRATIFIED_GROUPS
        splitter = StratifiedGroupKFold if is_stratified else GroupKFold
        return splitter(5 if self.cv is None else int(self.cv))

    def _folds(self, X: ArrayLike, y: Any, routed: Bunch) -> list[tuple[np.ndarray, np.ndarray]]:
        check_enough_samples(self.cv, len(y))
        split = dict(routed.splitter.split)
        if "groups" in split and not hasattr(self.cv, "split"):
            split["groups"] = check_groups(split["groups"], len(y))  # whatever their names
        cv = check_cv(self._splitter(split.get("groups")), y, classifier=self._is_stratified)
        try:
            folds = list(cv.split(X, y, **split))
        except ValueError as error:
            raise ValueError(
                f"cv must split the samples of each class; found cv={self.cv!r}, which fails: "
                f"{error} Choose fewer folds, or collect more samples."
            ) from error
        return check_folds(folds)

    def _fit_out_of_fold(
        self, fit: Any, estimator: Estimator, X: Any, y: Any, routed: Bunch, **options: str
    ) -> Any:
        """Return the fit to all samples, the response of one without each sample, and test sets.

        `fit` gets an estimator, data and parameters. Its result has a method `response` and
        `response_options`, by which further fits respond in the same form.
        """
        params = routed.estimator.fit
        if isinstance(estimator, FrozenEstimator):
            whole = fit(estimator, X, y, params)
            return whole, whole.response(X), []
        folds = self._folds(X, y, routed)  # before anything is fitted
        tests = [test for _, test in folds]
        rows = check_partition(tests, len(y), **options)
        whole = fit(clone(estimator), X, y, params)
        fits_of_folds = self._cross_fit(
            partial(fit, **whole.response_options), estimator, X, y, folds, routed
        )
        is_array = isinstance(fits_of_folds[0], np.ndarray)  # else a forecast
        return whole, (np.concatenate if is_array else concatenate)(fits_of_folds)[rows], tests

    def _find_units(
        self, groups: np.ndarray | None, tests: list[np.ndarray], rows: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return for predictions of some rows what no fold of the recalibrator divides.

        These are groups, or the copies of a row; and the test sets of a splitter if there are no
        groups, as they may be blocks of time.
        """
        if groups is not None:
            return {"groups": groups[rows]}
        units = {} if len(np.unique(rows)) == len(rows) else {"groups": rows}
        if self.cv is not None and not isinstance(self.cv, Integral) and tests:
            units["blocks"] = find_blocks(tests, int(rows.max()) + 1)[rows]
        return units

    def _cross_fit(
        self, fit: Any, estimator: Any, X: Any, y: Any, folds: Any, routed: Any, keep: bool = False
    ) -> Any:
        """Return for each fold the response of a fit without it; with `keep`, also the fit.

        Labels are not encoded: class weights and scorers of a classifier may name them.
        """
        return Parallel(n_jobs=self.n_jobs)(
            delay(_fit_fold)(fit, estimator, X, y, train, test, routed.estimator.fit, keep)
            for train, test in folds
        )

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            What this object uses itself, and what is passed on to the estimator and the splitter.
        """
        fits, splits = MethodMapping(), MethodMapping()
        for method in self._fit_methods:
            fits.add(caller=method, callee="fit")
        splits.add(caller=method, callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=fits)
        return router.add(splitter=self.cv, method_mapping=splits)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):  # not an estimator of skpro
            tags.input_tags = get_tags(self.estimator).input_tags
        tags.target_tags.required = True
        return tags


class ClassifierCrossFitting(CrossFitting):
    """Cross-fitting of a classifier, by its probabilities or decision scores."""

    response_method: str

    _is_stratified = True

    _example_estimator = "LogisticRegression()"

    def _check_data(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Return indexable features, labels as an array of one type, and the classes."""
        check_response(self.estimator, self.response_method, fitted=False)
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
        if len(shape) == 2 and shape[1] > 1:
            raise ValueError(
                f"y must have one label per sample; found shape {tuple(shape)}. Recalibrate each "
                "of several labels by itself, MultiOutputClassifier(RecalibratedClassifier("
                "classifier)); of one-hot rows pass y.argmax(axis=1)."
            )
        X, y = indexable(X, column_or_1d(y, warn=True))
        classes, code = encode_labels(y, name="y", partner="X")
        return X, classes[code], classes

    def _fit_classifier(self, classes: np.ndarray | None = None) -> Any:
        return partial(fit_classifier, response_method=self.response_method, classes=classes)


def _fit_fold(
    fit: Any, estimator: Any, X: ArrayLike, y: Any, train: Any, test: Any, params: Any, keep: bool
) -> Any:
    """Return the response in a fold; with `keep`, also the fit, which may take much memory."""
    params = check_method_params(X, params, indices=train)
    X_train, y_train = safe_split(estimator, X, y, train)
    X_test, _ = safe_split(estimator, X, y, test, train)
    fitted = fit(clone(estimator), X_train, y_train, params)
    response = fitted.response(X_test)
    return (fitted, response) if keep else response


def rescale_scores(
    classifiers: list[FittedClassifier], proba: np.ndarray, y: ArrayLike, classes: Any, weight: Any
) -> tuple[list[FittedClassifier], np.ndarray, float]:
    """Make the probabilities (n, K) of decision scores those of the likeliest temperature.

    The samples were not used to fit the classifiers, which get the temperature as part of their
    scale. It is also returned; 1 if the classifiers were asked for probabilities.
    """
    if classifiers[0].scale is None:
        return classifiers, proba, 1.0
    recalibrator = clone_for(TemperatureRecalibrator(prior_weight=None), classes)
    best_temperature = recalibrator.fit(proba, y, weight).temperature_
    temperature = min(best_temperature, _MAX_SCORE_TEMPERATURE)
    rescaled = [replace(fitted, scale=temperature * fitted.scale) for fitted in classifiers]
    with np.errstate(divide="ignore"):  # classes that a training fold lacks
        log_proba = np.log(proba)
    return rescaled, scale_by_temperature(log_proba, temperature), temperature


def adopt_features(estimator: BaseEstimator, fitted: BaseEstimator) -> None:
    """Copy `n_features_in_` and `feature_names_in_` from a fitted estimator, or delete them."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))
        elif hasattr(estimator, name):
            delattr(estimator, name)


def check_enough_samples(cv: Any, n: int) -> None:
    """Refuse more folds than samples."""
    if isinstance(cv, Integral) and n < int(cv):
        raise ValueError(
            f"cv={cv} needs at least {cv} samples; found {n} sample(s) (n_samples={n}). Choose "
            "fewer folds, or freeze a fitted estimator (FrozenEstimator)."
        )
