"""A classifier whose probabilities are recalibrated."""

import itertools
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from .._inputs.arrays import listed
from .._inputs.by import check_by
from .._inputs.scikit_learn import HasMethods, StrOptions, fit_context
from .._inputs.weights import check_sample_weight
from .._numerics.logits import log_probabilities
from .._numerics.softmax import softmax
from ._auto import AutoRecalibrator
from ._base import clone_for
from ._by import check_takes_by, of_rows
from ._cross_fitting import (
    CrossFittingMetaEstimator,
    adopt_features,
    aligned_proba,
    check_partition,
    fit_fold,
    predict_fold,
)
from ._habits import recalibrator_named, without
from ._temperature import TemperatureRecalibrator


class RecalibratedClassifier(ClassifierMixin, CrossFittingMetaEstimator):
    """A classifier whose probabilities are recalibrated by cross-fitting.

    Parameters
    ----------
    estimator : estimator
        A classifier with `predict_proba` or `decision_function`. A
        :class:`sklearn.frozen.FrozenEstimator` is used as it is; the recalibrator is then fitted on
        all data passed to :meth:`fit`.

    recalibrator : estimator, default=None
        Any recalibrator: it is fitted on probabilities and labels, and has `predict_proba`. None
        stands for an :class:`AutoRecalibrator`, which averages several. If it has a parameter
        `labels`, that becomes the classes.

    response_method : {"predict_proba", "decision_function"}, default="predict_proba"
        The method of the classifier that is called. Decision scores s, such as those of a support
        vector machine, become the probabilities expit(s / r), or softmax(s / r) for more than two
        classes, which are for a recalibrator to calibrate (the scale r is explained in the Notes).
        Scores are declared here, never guessed from their values.

    cv : int, cross-validation generator or iterable, default=5
        The folds whose probabilities the recalibrator is fitted on: a number of (stratified)
        folds, or a splitter; `groups` are passed to :meth:`fit`.

    ensemble : bool, "nested" or "auto", default="auto"
        One recalibrator is fitted on all out-of-fold probabilities. True: it is applied to each of
        the classifiers that gave them, and the results are averaged. False: it is applied to one
        more classifier, fitted on everything. "nested": as True, and a temperature makes up for
        what averaging does to the confidence; it is found by further classifiers, each fitted
        without two of the folds. For all but True the test sets of `cv` must be a partition of the
        samples. "auto" is False for a frozen estimator, which has nothing to fit, and True
        otherwise.

    n_jobs : int, default=None
        Number of jobs that fit the folds; None means 1 unless in a :obj:`joblib.parallel_backend`
        context.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result: sorted, or those of a frozen
        estimator.

    estimators_ : list of estimator
        The fitted classifiers; one without an ensemble.

    recalibrator_ : estimator
        The recalibrator, fitted on out-of-fold probabilities.

    temperature_ : float or None
        What a "nested" ensemble divides the logarithms of its probabilities by.

    scales_ : list of float or None
        For each classifier the r that its decision scores are divided by; None if it is asked for
        `predict_proba`.

    n_features_in_ : int
        Number of features, if the classifier knows it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the classifier knows them.

    See Also
    --------
    PredictProba : The same in a pipeline, whose steps a grid search can reach.

    Notes
    -----
    The classifier is fitted once for each of k folds, without an ensemble once more, and for a
    "nested" one k(k − 1)/2 times more. A class that the training part of a fold lacks gets
    probability 0 there. :class:`sklearn.calibration.CalibratedClassifierCV` has an ensemble whose
    calibrators each see one fold only; one that sees all of them has k times as many samples.

    Averages of probabilities are less confident than what is averaged, so that the mean of
    calibrated classifiers is underconfident. If the recalibrator is a smooth map, logarithms of
    probabilities are averaged instead, which changes the confidence less. If it is a step function,
    is not one of this package, or some classifier lacks a class, probabilities are averaged.

    Where test sets of `cv` overlap, the predictions of a sample share its weight.

    Multiplying all weights by the same number changes nothing. So a sample of weight 2 is not the
    same as two samples for a recalibrator that depends on the number of samples, such as one with a
    prior, or the default with its cross-validation. It is for an :class:`IsotonicRecalibrator`.

    The scale r of decision scores is their root mean square over the samples that the classifier
    was fitted on (for a frozen one, the samples passed to `fit`), with the same weights, and 1 if
    all scores are 0. For more than two classes the mean of each row is subtracted first, which
    softmax ignores. So the units of the scores do not matter, and the log-odds that a recalibrator
    sees are the scores up to a factor.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.recalibration import RecalibratedClassifier, SigmoidRecalibrator
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB(), SigmoidRecalibrator()).fit(X, y)
    >>> model.predict_proba(X).shape
    (569, 2)

    A classifier without probabilities, whose scores are declared:

    >>> from sklearn.linear_model import RidgeClassifier
    >>> model = RecalibratedClassifier(
    ...     RidgeClassifier(), SigmoidRecalibrator(), response_method="decision_function"
    ... ).fit(X, y)
    >>> model.predict_proba(X).shape
    (569, 2)
    """

    _parameter_constraints: dict = {
        **CrossFittingMetaEstimator._parameter_constraints,
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "ensemble": ["boolean", StrOptions({"auto", "nested"})],
    }

    @without(method=lambda name: f"recalibrator={recalibrator_named(name)}")
    def __init__(
        self,
        estimator: Any,
        recalibrator: Any = None,
        *,
        response_method: str = "predict_proba",
        cv: Any = 5,
        ensemble: bool | str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.response_method = response_method
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        by: Any = None,
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
            requests them), for the classifier.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            The subgroup of each sample, for a recalibrator that takes them, such as a
            :class:`SubgroupRecalibrator`.

        **params : dict
            Passed to the classifier's `fit`, but `groups` to the splitter; with metadata routing,
            to whatever requests them.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        X, y, self.classes_ = self._check_data(X, y)
        chosen = AutoRecalibrator() if self.recalibrator is None else self.recalibrator
        check_takes_by(chosen, by, "fit(X, y, by=...)")
        if by is not None:
            check_by(by, len(y), sample_weight)
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator)
            check_labels_of_frozen(self.classes_, self.estimator)
            self.classes_ = self.estimator.classes_
        check_two_classes(self.classes_)
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, len(y))
            if not frozen:
                check_two_classes(np.unique(y[sample_weight > 0]), " in samples of positive weight")
            if self._takes_weights():
                params["sample_weight"] = sample_weight
        routed = self._route("fit", params)
        ensemble = not frozen if self.ensemble == "auto" else self.ensemble
        if ensemble:
            check_not_pairwise(self.estimator)
            folds = self._folds(X, y, routed)
            rows = np.concatenate([test for _, test in folds])
            if ensemble == "nested":
                check_partition([test for _, test in folds], len(y))
                check_three_folds(folds)
            fitted, probas = zip(
                *self._cross_fit(fit_fold, X, y, folds, routed, self.classes_), strict=True
            )
            self._fitted, proba = list(fitted), np.concatenate(probas)
        else:
            classifier, proba = self._fit_out_of_fold(X, y, routed, self.classes_)
            self._fitted, rows = [classifier], np.arange(len(y))
        weight = shared_weights(rows, sample_weight)
        fit_params = of_rows(by, len(y), rows)
        if weight is not None:
            fit_params["sample_weight"] = weight
        self.recalibrator_ = clone_for(chosen, self.classes_).fit(proba, y[rows], **fit_params)
        self._temperature = None
        if ensemble == "nested":
            proba = self._nested_proba(X, y, by, folds, routed)
            temperature = clone_for(TemperatureRecalibrator(), self.classes_)
            self._temperature = temperature.fit(proba, y, sample_weight)
        adopt_features(self, self.estimators_[0])
        return self

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

    def _nested_proba(self, X: Any, y: Any, by: Any, folds: Any, routed: Any) -> np.ndarray:
        """For each sample what an ensemble says that has not seen its fold, (n, K).

        The classifier of folds i and j is fitted on all others; a sample of fold i is predicted by
        those of i and any other fold.
        """
        tests = [test for _, test in folds]
        couples = list(itertools.combinations(range(len(folds)), 2))
        nested = [
            (np.intersect1d(folds[i][0], folds[j][0]), np.concatenate([tests[i], tests[j]]))
            for i, j in couples
        ]
        fitted = self._cross_fit(predict_fold, X, y, nested, routed, self.classes_)
        parts: list[list[np.ndarray]] = [[] for _ in folds]
        for (i, j), proba in zip(couples, fitted, strict=True):
            parts[i].append(proba[: len(tests[i])])
            parts[j].append(proba[len(tests[i]) :])
        combined = np.empty((len(y), len(self.classes_)))
        for test, probas in zip(tests, parts, strict=True):
            combined[test] = self._combined(probas, **of_rows(by, len(y), test))
        return combined

    def _combined(self, probas: list[np.ndarray], **subgroups: Any) -> np.ndarray:
        """The mean of what the recalibrator makes of the probabilities of classifiers, (n, K)."""
        mapped = [
            aligned_proba(self.recalibrator_, proba, self.classes_, **subgroups) for proba in probas
        ]
        if len(mapped) == 1:
            return mapped[0]
        if self._averages_logarithms:
            return softmax(np.mean([log_probabilities(proba) for proba in mapped], axis=0))
        return np.mean(mapped, axis=0)

    @property
    def _averages_logarithms(self) -> bool:
        knows_all = all(
            len(classifier.classes_) == len(self.classes_) for classifier in self.estimators_
        )
        return knows_all and getattr(self.recalibrator_, "_is_smooth", False)

    def predict_proba(self, X: ArrayLike, *, by: Any = None) -> np.ndarray:
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            The subgroup of each sample, in the columns that it had at :meth:`fit`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; rows sum to 1.
        """
        check_is_fitted(self)
        check_takes_by(self.recalibrator_, by, "predict_proba(X, by=...)")
        subgroups = {} if by is None else {"by": by}
        probas = [fitted.proba(X, self.classes_) for fitted in self._fitted]
        proba = self._combined(probas, **subgroups)
        return proba if self._temperature is None else self._temperature.predict_proba(proba)

    def predict(self, X: ArrayLike, *, by: Any = None) -> np.ndarray:
        """The class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame, \
                default=None
            The subgroup of each sample, in the columns that it had at :meth:`fit`.

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
            The subgroup of each sample, in the columns that it had at :meth:`fit`.

        Returns
        -------
        score : float
            The share of labels that are predicted, in [0, 1].
        """
        return accuracy_score(y, self.predict(X, by=by), sample_weight=sample_weight)

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            What the recalibrator uses (`sample_weight` and `by`), and what is passed on to the
            classifier and the splitter.
        """
        fit_to_fit = MethodMapping().add(caller="fit", callee="fit")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=fit_to_fit)
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )


def check_labels_of_frozen(observed: np.ndarray, estimator: Any) -> None:
    """A fitted classifier knows no further classes."""
    unknown = sorted(set(observed.tolist()) - set(estimator.classes_.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"y must hold classes of the frozen estimator, {listed(estimator.classes_)}; found "
            f"{listed(np.array(unknown))}. Name the classes as when it was fitted."
        )


def check_not_pairwise(estimator: Any) -> None:
    if get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            f"ensemble must be False for {estimator!r}, whose X holds the distances or kernel "
            "values of all pairs of samples: the classifiers of an ensemble would each need "
            "other columns."
        )


def check_two_classes(classes: np.ndarray, where: str = "") -> None:
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes{where}; found 1 class, {listed(classes)}. There is "
            "nothing to classify."
        )


def check_three_folds(folds: Any) -> None:
    """A classifier that is fitted without two folds needs a third one."""
    if len(folds) < 3:
        raise ValueError(
            f"cv must have at least 3 folds for ensemble='nested'; found {len(folds)}. Choose more "
            "folds, or ensemble=True."
        )


def shared_weights(rows: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
    """The weights of predictions of samples, who may have several; None if all are equal."""
    count = np.bincount(rows)[rows]
    if sample_weight is None:
        return None if (count == 1).all() else 1 / count
    return sample_weight[rows] / count
