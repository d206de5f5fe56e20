"""A classifier whose probabilities are recalibrated."""

import functools
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from .._inputs.arrays import listed
from .._inputs.weights import check_sample_weight
from .._sklearn import HasMethods, StrOptions, fit_context
from .._warnings import warn
from ..forecasts._forecaster_base import adopt_features
from ._auto import AutoRecalibrator
from ._base import clone_for
from ._cross_fitting import CrossFittingMetaEstimator, aligned_proba, fit_fold
from ._habits import recalibrator_named, without


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
        stands for an :class:`AutoRecalibrator`, which chooses one. If it has a parameter `labels`,
        that becomes the classes.

    response_method : {"predict_proba", "decision_function"}, default="predict_proba"
        The method of the classifier that is called. Decision scores s, such as those of a support
        vector machine, become the probabilities expit(s / r), or softmax(s / r) for more than two
        classes, which are for a recalibrator to calibrate (the scale r is explained in the Notes).
        Scores are declared here, never guessed from their values.

    cv : int, cross-validation generator or iterable, default=5
        The folds whose probabilities the recalibrator is fitted on: a number of (stratified)
        folds, or a splitter; `groups` are passed to :meth:`fit`.

    ensemble : bool or "auto", default="auto"
        True: for each fold a classifier fitted on the others and a recalibrator fitted on the
        fold; the predictions of all pairs are averaged. False: one recalibrator fitted on all
        out-of-fold probabilities, and one classifier fitted on everything (the test sets of `cv`
        must then be a partition of the samples, else any will do). "auto" is False for a frozen
        estimator, which has nothing to fit, and True otherwise.

    n_jobs : int, default=None
        Number of jobs that fit the folds; None means 1 unless in a :obj:`joblib.parallel_backend`
        context.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result: sorted, or those of a frozen
        estimator.

    pairs_ : list of (estimator, recalibrator)
        The fitted pairs, whose predictions are averaged.

    scales_ : list of float or None
        For each pair the r that the decision scores of its classifier are divided by; None if it is
        asked for `predict_proba`.

    n_features_in_ : int
        Number of features, if the classifier knows it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the classifier knows them.

    See Also
    --------
    PredictProba : The same in a pipeline, whose steps a grid search can reach.

    Notes
    -----
    The classifier is fitted once for each fold, and without an ensemble once more. This is the
    cross-fitting of :class:`sklearn.calibration.CalibratedClassifierCV`, with any recalibrator. A
    class that the training part of a fold lacks gets probability 0 there; a warning tells if a test
    part lacks a class, of which its recalibrator then learns nothing.

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
        "ensemble": ["boolean", StrOptions({"auto"})],
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
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
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

        **params : dict
            Passed to the classifier's `fit`, but `groups` to the splitter; with metadata routing,
            to whatever requests them.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        X, y, self.classes_ = self._check_data(X, y)
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
            calibration_sets: list[Any] = [test for _, test in folds]
            self._check_calibration_sets(calibration_sets, y, sample_weight)
            fitted = self._cross_fit(fit_fold, X, y, folds, routed, self.classes_)
        else:
            calibration_sets = [slice(None)]
            fitted = [self._fit_out_of_fold(X, y, routed, self.classes_)]
        self._fitted = [
            (classifier, self._fit_recalibrator(proba, y, sample_weight, rows))
            for (classifier, proba), rows in zip(fitted, calibration_sets, strict=True)
        ]
        adopt_features(self, self.pairs_[0][0])
        return self

    @property
    def pairs_(self) -> list[tuple[Any, Any]]:
        """The fitted pairs of a classifier and a recalibrator."""
        return [(classifier.estimator, recalibrator) for classifier, recalibrator in self._fitted]

    @property
    def scales_(self) -> list[float | None]:
        """For each pair the scale of the decision scores of its classifier, or None."""
        return [classifier.scale for classifier, _ in self._fitted]

    def _check_calibration_sets(self, tests: list[np.ndarray], y: Any, sample_weight: Any) -> None:
        """A recalibrator knows nothing of a class that its fold lacks."""
        if sample_weight is not None:
            check_weights_of_folds(sample_weight, tests)
            tests = [test[sample_weight[test] > 0] for test in tests]
        n_lacking = sum(len(np.unique(y[test])) < len(self.classes_) for test in tests)
        if n_lacking:
            warn(
                f"{n_lacking} of {len(tests)} test sets lack some class, of which their "
                "recalibrators learn nothing. Choose fewer or stratified folds, or ensemble=False.",
            )

    def _fit_recalibrator(self, proba: np.ndarray, y: Any, sample_weight: Any, rows: Any) -> Any:
        chosen = AutoRecalibrator() if self.recalibrator is None else self.recalibrator
        recalibrator = clone_for(chosen, self.classes_)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight[rows]}
        return recalibrator.fit(proba, y[rows], **weight)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities, the mean over the pairs; rows sum to 1.
        """
        check_is_fitted(self)
        probas = (
            aligned_proba(recalibrator, classifier.proba(X, self.classes_), self.classes_)
            for classifier, recalibrator in self._fitted
        )
        return functools.reduce(np.add, probas) / len(self._fitted)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels; the first of several classes with the same probability.
        """
        proba = self.predict_proba(X)
        return self.classes_[np.argmax(proba, axis=1)]

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            What the recalibrator uses (`sample_weight`), and what is passed on to the classifier
            and the splitter.
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


def check_weights_of_folds(sample_weight: Any, tests: list[np.ndarray]) -> None:
    """A recalibrator fitted on a fold needs a sample that counts."""
    for k, test in enumerate(tests):
        if not sample_weight[test].any():
            raise ValueError(
                "sample_weight must be positive for some sample of every test set of cv; found "
                f"zeros only in that of split {k}. Choose other folds, or ensemble=False."
            )
