"""A classifier as a transformer."""

from dataclasses import KW_ONLY
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._inputs.annotations import CrossValidator, Estimator, TransformerMixin
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import estimator_class, fit_context
from ._base import probability_names
from ._cross_fitting import ClassifierCrossFitting, adopt_features, rescale_scores


@estimator_class()
class PredictProba(TransformerMixin, ClassifierCrossFitting):
    """A classifier as a transformer, from features to probabilities.

    The first half of a calibrated classifier in a pipeline: :meth:`fit_transform` returns
    out-of-fold probabilities, and :meth:`transform` those of the classifier fitted on everything.

    Parameters
    ----------
    estimator : estimator
        A classifier with `predict_proba` or `decision_function`. A
        :class:`sklearn.frozen.FrozenEstimator` is used as it is, without cross-fitting.

    response_method : {"predict_proba", "decision_function"}, default="predict_proba"
        The method of the classifier that is called. Decision scores s become expit(s / r), or
        softmax(s / r) for more than two classes, with the scale r of the Notes.

    cv : int, cross-validation generator or iterable, default=5
        The folds of :meth:`fit_transform`: a number of (stratified) folds, or a splitter whose test
        sets are a partition of the samples; `groups` are passed there, and no fold divides one.

    n_jobs : int, default=None
        Number of jobs that fit the folds; see :obj:`joblib.parallel_backend`.

    Attributes
    ----------
    estimator_ : estimator
        The classifier fitted on all samples.

    scale_ : float or None
        The r of its decision scores; None for `predict_proba`.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of features, if the classifier knows it.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the classifier knows them.

    See Also
    --------
    RecalibratedClassifier : The same as one meta-estimator, with an ensemble on request.

    Notes
    -----
    :meth:`fit` fits the classifier once, :meth:`fit_transform` once more for each fold. A class
    that the training part of a fold lacks gets probability 0 there.

    The scale r of decision scores is that of :class:`RecalibratedClassifier`, with the temperature
    after `fit_transform` only.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skcalib.recalibration import PredictProba, SigmoidRecalibrator
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), PredictProba(GaussianNB()), SigmoidRecalibrator())
    >>> model.fit(X, y).predict_proba(X).shape
    (569, 2)
    """

    _fit_methods = ("fit", "fit_transform")

    estimator: Estimator
    _: KW_ONLY
    response_method: Literal["predict_proba", "decision_function"] = "predict_proba"
    cv: CrossValidator = 5
    n_jobs: int | None = None

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: ArrayLike, y: ArrayLike, **params: Any) -> Self:
        """Fit the classifier on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        y : array-like of shape (n_samples,)
            Labels.

        **params : dict
            Passed to the classifier's `fit`, but for `groups`, which nothing needs here; with
            metadata routing, to whatever requests them.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        X, y, _ = self._check_data(X, y)
        params = self._route("fit", params).estimator.fit
        self._adopt(self._fit_classifier()(clone(self.estimator), X, y, params))
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def fit_transform(self, X: ArrayLike, y: ArrayLike, **params: Any) -> np.ndarray:
        """Fit the classifier on all samples, and return out-of-fold probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        y : array-like of shape (n_samples,)
            Labels.

        **params : dict
            Passed to the classifier's `fit`, but `groups` to the splitter; with metadata routing,
            to whatever requests them.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            For each sample the probabilities of a classifier fitted without its fold.
        """
        X, y, _ = self._check_data(X, y)
        routed = self._route("fit_transform", params)
        fit = self._fit_classifier()
        fitted, proba, _ = self._fit_out_of_fold(fit, self.estimator, X, y, routed)
        weight = routed.estimator.fit.get("sample_weight")
        [fitted], proba, _ = rescale_scores([fitted], proba, y, fitted.classes, weight)
        self._adopt(fitted)
        return proba

    def _adopt(self, fitted: Any) -> None:
        self._fitted = fitted
        self.classes_ = fitted.classes
        adopt_features(self, fitted.estimator)

    @property
    def estimator_(self) -> Any:
        """The classifier fitted on all samples."""
        return self._fitted.estimator

    @property
    def scale_(self) -> float | None:
        """The scale that its decision scores are divided by; None for `predict_proba`."""
        return self._fitted.scale

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Probabilities of the classifier fitted on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Predicted probabilities; a data frame after ``set_output``.
        """
        check_is_fitted(self)
        return self._fitted.response(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Names of the columns that :meth:`transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Ignored; the columns are the classes.

        Returns
        -------
        names : ndarray of shape (n_classes,) of str
            ``"proba_"`` followed by the class.
        """
        check_is_fitted(self)
        return probability_names(self.classes_)
