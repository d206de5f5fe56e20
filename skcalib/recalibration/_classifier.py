"""A classifier whose probabilities are recalibrated."""

import itertools
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._inputs.annotations import ClassifierMixin, CrossValidator, Estimator
from .._inputs.arrays import ArrayLike, format_values
from .._inputs.by import Columns
from .._inputs.scikit_learn import estimator_class, fit_context, select_columns
from .._numerics.array_api import to_numpy
from .._numerics.logits import log_probabilities, softmax_in_place
from ._base import clone_for, is_smooth
from ._checks import take_row_arguments
from ._cross_fitting import ClassifierCrossFitting, adopt_features, rescale_scores
from ._folds import check_partition, fit_with_units
from ._responses import align_proba
from ._scaling import TemperatureRecalibrator
from ._scores import accuracy

# The probabilities of all classifiers are recalibrated in one call if they are no more numbers:
# of few rows, most of the time is that of the call.
_MAX_ENTRIES_OF_ONE_CALL = 2**16


@estimator_class()
class RecalibratedClassifier(ClassifierMixin, ClassifierCrossFitting):
    """A classifier whose probabilities are recalibrated by cross-fitting.

    A classifier that is fitted already is fitted anew, on the data passed to :meth:`fit`, unless it
    is frozen: ``RecalibratedClassifier(FrozenEstimator(model))``.

    Parameters
    ----------
    estimator : estimator
        A classifier with `predict_proba` or `decision_function`, without a threshold of its own,
        which would be lost. With a :class:`sklearn.frozen.FrozenEstimator`, the recalibrator is
        fitted on all data passed to :meth:`fit`.

    recalibrator : estimator, default=None
        A recalibrator with `predict_proba`, fitted on probabilities and labels. None stands for an
        :class:`AutoRecalibrator`. A parameter `labels` becomes the classes.

    response_method : {"predict_proba", "decision_function"}, default="predict_proba"
        The method of the classifier that is called. Decision scores s become expit(s / r), or
        softmax(s / r) for more than two classes, with the scale r of the Notes.

    cv : int, cross-validation generator or iterable, default=5
        A number of (stratified) folds, or a splitter, for the probabilities that the recalibrator
        is fitted on. A number with `groups` at :meth:`fit` is a
        :class:`~sklearn.model_selection.StratifiedGroupKFold`; with more than 5000 groups a
        :class:`~sklearn.model_selection.GroupKFold`. If the recalibrator makes folds itself, they
        divide no group or, without groups, no test set of a splitter.

    ensemble : bool, "nested" or "auto", default="auto"
        One recalibrator is fitted on all out-of-fold probabilities. True: it is applied to each
        classifier of the folds, and the results are averaged. False: it is applied to one more
        classifier, fitted on everything. "nested": as True, with a temperature of the average,
        found by further classifiers, each fitted without two folds. "auto" is False for a frozen
        estimator, else True. For all but True the test sets of `cv` must be a partition of the
        samples.

    by : str, list or callable, default=None
        For a :class:`SubgroupRecalibrator`: the columns of X that hold the subgroup of each sample
        (names, positions, or a function of X). The classifier sees these columns, too.

    given : "X", str, list or callable, default=None
        For a :class:`FeatureRecalibrator`: "X" for all of X, or its columns, as for `by`; a column
        named "X" is ["X"].

    combine : {"auto", "log", "mean"}, default="auto"
        How results of several classifiers are averaged: "log" averages logarithms of probabilities;
        "mean" averages probabilities. "auto" is "log" if the recalibrator is a smooth map of this
        package, such as a temperature, and every classifier knows all classes.

    n_jobs : int, default=None
        Number of jobs that fit the folds; see :obj:`joblib.parallel_backend`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns: sorted, or those of a frozen estimator.

    estimators_ : list of estimator
        The fitted classifiers; one without an ensemble.

    recalibrator_ : estimator
        The recalibrator, fitted on out-of-fold probabilities.

    combine_ : {"log", "mean"}
        How the results of several classifiers are averaged.

    temperature_ : float or None
        What a "nested" ensemble divides the logarithms of its probabilities by.

    scales_ : list of float or None
        The scale r of each classifier's scores; None for `predict_proba`.

    n_features_in_ : int
        Number of features, if the classifier knows it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the classifier knows them.

    See Also
    --------
    PredictProba : The same in a pipeline, whose steps a grid search can reach.

    Notes
    -----
    The classifier is fitted once for each of k folds, without an ensemble once more, and k(k − 1)/2
    times more if "nested". A class that the training part of a fold lacks gets probability 0 there.

    In a search, set ``scoring="neg_log_loss"``. Put a threshold around it:
    ``FixedThresholdClassifier(RecalibratedClassifier(classifier), threshold=0.2)``.

    The scale r of decision scores is their weighted root mean square over the samples that the
    classifier was fitted on (for a frozen one, those passed to `fit`), or 1 if all are 0, times the
    temperature, at most 10, at which out-of-fold labels are likeliest. For more than two classes
    the mean of each row is subtracted first.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.recalibration import RecalibratedClassifier, SigmoidRecalibrator
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB(), SigmoidRecalibrator()).fit(X, y)
    >>> model.predict_proba(X).shape
    (569, 2)
    """

    _parameter_constraints = {
        "by": [str, list, callable, None],
        "given": [str, list, callable, None],
    }

    _recalibrator_method, _by_example = "predict_proba", "predict_proba(X, by=...)"

    estimator: Estimator
    recalibrator: Estimator | None = None
    _: KW_ONLY
    response_method: Literal["predict_proba", "decision_function"] = "predict_proba"
    cv: CrossValidator = 5
    ensemble: bool | Literal["auto", "nested"] = "auto"
    by: Columns | None = None
    given: ArrayLike | None = None
    combine: Literal["auto", "log", "mean"] = "auto"
    n_jobs: int | None = None

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        by: Columns | None = None,
        **params: Any,
    ) -> Self:
        """Fit the classifier and the recalibrator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, for the recalibrator and, if it takes them (with metadata routing:
            requests them), for the classifier. With metadata routing, a recalibrator gets
            none after its ``set_fit_request(sample_weight=False)``.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            The subgroup of each sample, for a recalibrator that takes them, such as a
            :class:`SubgroupRecalibrator`.

        **params : dict
            Passed to the classifier's `fit`. `groups` go to the splitter and to the recalibrator
            instead, for which samples count as fewer, the more those of a group agree. With
            metadata routing, parameters go to whatever requests them.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        X, y, self.classes_ = self._check_data(X, y)
        arguments = self._row_arguments(X, by)
        recalibrator, weight, groups, routed = self._prepare(y, sample_weight, arguments, params)
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator)
            self.classes_ = check_labels_of_frozen(self.classes_, self.estimator)
        check_has_two_classes(self.classes_)
        if weight is not None and not frozen:
            check_has_two_classes(np.unique(y[weight > 0]), " in samples of positive weight")
        fit = self._fit_classifier(self.classes_)
        ensemble = not frozen if self.ensemble == "auto" else self.ensemble
        if ensemble:
            check_not_pairwise(self.estimator)
            folds = self._folds(X, y, routed)
            tests = [test for _, test in folds]
            rows = np.concatenate(tests)
            if ensemble == "nested":
                check_partition(tests, len(y))
                check_three_folds(folds)
            fits_of_folds = self._cross_fit(fit, self.estimator, X, y, folds, routed, keep=True)
            self._fitted = [fitted for fitted, _ in fits_of_folds]
            proba = np.concatenate([fold_proba for _, fold_proba in fits_of_folds])
        else:
            classifier, proba, tests = self._fit_out_of_fold(fit, self.estimator, X, y, routed)
            self._fitted, rows = [classifier], np.arange(len(y))
        fit_params = take_row_arguments(arguments, len(y), rows)
        row_weight = split_weights(rows, weight)
        self._fitted, proba, score_temperature = rescale_scores(
            self._fitted, proba, y[rows], self.classes_, row_weight
        )
        if row_weight is not None:
            fit_params["sample_weight"] = row_weight
        recalibrator = clone_for(recalibrator, self.classes_, is_inner=False)
        units = self._find_units(groups, tests, rows)
        self.recalibrator_ = fit_with_units(recalibrator, proba, y[rows], **units, **fit_params)
        self.combine_ = self._resolve_combine()
        self._temperature = None
        if ensemble == "nested":
            fit = partial(fit, temperature=score_temperature)
            proba = self._nested_proba(fit, X, y, arguments, folds, routed)
            temperature = clone_for(TemperatureRecalibrator(), self.classes_)
            self._temperature = temperature.fit(proba, y, weight)
        adopt_features(self, self.estimators_[0])
        return self

    def _row_arguments(self, X: ArrayLike, by: Columns | None) -> dict[str, Any]:
        """Return what the recalibrator is told of each row: subgroups, and features."""
        if self.by is not None:
            if by is not None:
                raise ValueError(
                    f"by must be passed once; found by={self.by!r:.200} of the constructor, and "
                    "subgroups for this method. Leave these out."
                )
            by = select_columns(X, self.by, "by")
        arguments = super()._row_arguments(X, by)
        if self.given is not None:
            is_whole = isinstance(self.given, str) and self.given == "X"
            arguments["given"] = X if is_whole else select_columns(X, self.given, "given")
        return arguments

    def _resolve_combine(self) -> str:
        if self.combine != "auto":
            return self.combine
        n_classes = len(self.classes_)
        have_all = all(classifier.classes_.shape[0] == n_classes for classifier in self.estimators_)
        return "log" if have_all and is_smooth(self.recalibrator_) else "mean"

    @property
    def estimators_(self) -> list[Any]:
        """The fitted classifiers."""
        return [classifier.estimator for classifier in self._fitted]

    @property
    def scales_(self) -> list[float | None]:
        """For each classifier the scale of its decision scores, or None."""
        return [classifier.scale for classifier in self._fitted]

    @property
    def temperature_(self) -> float | None:
        """The temperature of a nested ensemble, or None."""
        return None if self._temperature is None else self._temperature.temperature_

    def _nested_proba(
        self, fit: Any, X: ArrayLike, y: Any, arguments: dict[str, Any], folds: Any, routed: Any
    ) -> np.ndarray:
        """Return the probabilities (n, K) of ensembles that have not seen the fold of a sample.

        The classifier of folds i and j is fitted on all other folds; a sample of fold i is
        predicted by the classifiers of i and any other fold.
        """
        tests = [test for _, test in folds]
        fold_pairs = list(itertools.combinations(range(len(folds)), 2))
        nested = [
            (np.intersect1d(folds[i][0], folds[j][0]), np.concatenate([tests[i], tests[j]]))
            for i, j in fold_pairs
        ]
        responses = self._cross_fit(fit, self.estimator, X, y, nested, routed)
        proba_of_folds: list[list[np.ndarray]] = [[] for _ in folds]
        for (i, j), proba in zip(fold_pairs, responses, strict=True):
            proba_of_folds[i].append(proba[: len(tests[i])])
            proba_of_folds[j].append(proba[len(tests[i]) :])
        combined = np.empty((len(y), len(self.classes_)))
        for test, probas in zip(tests, proba_of_folds, strict=True):
            combined[test] = self._combine(probas, **take_row_arguments(arguments, len(y), test))
        return combined

    def _combine(self, probas: list[np.ndarray], **arguments: Any) -> np.ndarray:
        """Recalibrate the probabilities of each classifier, and return their mean, (n, K)."""
        shape = len(probas), *probas[0].shape
        is_small = np.prod(shape) <= _MAX_ENTRIES_OF_ONE_CALL and not arguments
        mapped = np.concatenate(
            [
                align_proba(self.recalibrator_, proba, self.classes_, **arguments)
                for proba in ([np.concatenate(probas)] if is_small else probas)
            ]
        ).reshape(shape)
        if len(mapped) == 1:
            return mapped[0]
        if self.combine_ == "log":
            return softmax_in_place(log_probabilities(mapped).mean(axis=0))
        return mapped.mean(axis=0)

    def predict_proba(self, X: ArrayLike, *, by: Columns | None = None) -> np.ndarray:
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            Subgroups, in the columns of :meth:`fit`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; rows sum to 1.
        """
        arguments = self._predict_arguments(X, by)
        probas = [fitted.response(X) for fitted in self._fitted]
        proba = self._combine(probas, **arguments)
        return proba if self._temperature is None else self._temperature.predict_proba(proba)

    def predict(self, X: ArrayLike, *, by: Columns | None = None) -> np.ndarray:
        """The class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            Subgroups, in the columns of :meth:`fit`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels; the first of several classes with the same probability.
        """
        proba = self.predict_proba(X, by=by)
        return self.classes_[np.argmax(proba, axis=1)]

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, by: Any = None
    ) -> float:
        """Accuracy of the predicted classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            Subgroups, in the columns of :meth:`fit`.

        Returns
        -------
        score : float
            The share of labels that are predicted, in [0, 1].
        """
        return accuracy(y, self.predict(X, by=by), self.classes_, sample_weight)


def check_labels_of_frozen(observed: np.ndarray, estimator: FrozenEstimator) -> np.ndarray:
    """Return the classes of a fitted classifier; refuse labels that it does not know."""
    classes = to_numpy(estimator.classes_)
    unknown = sorted(set(observed.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"y must hold classes of the frozen estimator, {format_values(classes)}; "
            f"found {format_values(np.array(unknown))}. Name the classes as when it was fitted."
        )
    return classes


def check_not_pairwise(estimator: Estimator) -> None:
    if get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            f"ensemble must be False for {estimator!r}, whose X holds the distances or kernel "
            "values of all pairs of samples: the classifiers of an ensemble would each need "
            "other columns."
        )


def check_has_two_classes(classes: np.ndarray, where: str = "") -> None:
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes{where}; found 1 class, {format_values(classes)}. "
            "There is nothing to classify."
        )


def check_three_folds(folds: Any) -> None:
    """Refuse fewer than three folds, as each classifier is fitted without two of them."""
    if len(folds) < 3:
        raise ValueError(
            f"cv must have at least 3 folds for ensemble='nested'; found {len(folds)}. Choose more "
            "folds, or ensemble=True."
        )


def split_weights(rows: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
    """Split the weight of a sample among its predictions; return None if all are equal."""
    count = np.bincount(rows)[rows]
    if sample_weight is None:
        return None if (count == 1).all() else 1 / count
    return sample_weight[rows] / count
