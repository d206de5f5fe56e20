"""Recalibration of each subgroup, drawn towards what is common to all."""

from collections.abc import Iterable
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._inputs.arrays import is_number, listed
from .._inputs.by import Subgroups, check_by
from .._inputs.estimators import check_fit_input, check_predict_input
from .._inputs.predictions import Predictions
from .._inputs.scikit_learn import HasMethods, Interval, StrOptions, fit_context
from .._numerics.proper import PROPER_LOSSES
from ._auto import AutoRecalibrator, deal_folds, fit_data, fitted_on_rows
from ._base import probability_names
from ._cross_fitting import aligned_proba
from ._habits import check_is_object, recalibrator_named
from ._logistic import SigmoidRecalibrator
from ._scaling import VectorScalingRecalibrator

# The weights of the prior that are tried; without any map of subgroups, it is infinite.
_PRIOR_WEIGHTS = (np.inf, 256.0, 128.0, 64.0, 32.0, 16.0, 8.0)

_N_FOLDS = 5


class SubgroupRecalibrator(ClassifierMixin, TransformerMixin, BaseEstimator):
    r"""Recalibrates each subgroup, so that small subgroups borrow from the others.

    First a common map is fitted to all samples. Then each subgroup has a map of its own, of few
    parameters, which is drawn to the common one: it departs from it as far as the subgroup has
    samples that say so. A subgroup that did not occur at :meth:`fit` gets the common map.

    Parameters
    ----------
    recalibrator : estimator, default=None
        The recalibrator of all samples together. None stands for an :class:`AutoRecalibrator`.

    prior_weight : float or "auto", default="auto"
        Number of additional samples of each subgroup, with labels distributed as the common map
        predicts, that its own map treats as seen. 0 fits each subgroup alone, and infinity leaves
        it at the common map. "auto" chooses one of 8, 16, 32, …, 256 and infinity by the
        cross-validated log loss of all samples.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.
        Needed if a class does not occur in the calibration data.

    Attributes
    ----------
    recalibrator_ : estimator
        The common recalibrator, fitted on all samples.

    subgroup_recalibrators_ : dict of subgroup to estimator
        For each subgroup, what maps the results of the common recalibrator: a
        :class:`SigmoidRecalibrator`, or a :class:`VectorScalingRecalibrator` for more than two
        classes. Empty if `prior_weight_` is infinite.

    subgroups_ : list
        The subgroups in their order: values of the column, or tuples of one value for each of
        several columns; None stands for a missing value.

    subgroup_columns_ : list
        Names of the columns that make the subgroups.

    prior_weight_ : float
        The weight that was used.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result.

    n_features_in_ : int
        Number of columns of `X` at `fit` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    SubgroupForecastRecalibrator : The same for forecasts of a number.
    skcalib.hypothesis_tests.SubgroupCalibrationTest : Whether it is needed.

    Notes
    -----
    With the common map r, a subgroup s of two classes has the map :math:`\operatorname{logit}
    r_s(p) = a_s \operatorname{logit} r(p) + b_s`; with more classes, :math:`\mathrm{softmax}(v_s
    \circ \log r(p) + b_s)`. Its log loss is that of its own labels and of `prior_weight` samples
    more, for which it is least at :math:`a_s = 1, b_s = 0` (with K classes K/2 times as many, which
    draw to a common temperature). So the map of n samples is about n / (n + `prior_weight`) of the
    way to the one that is fitted alone.

    With "auto", 5 folds, dealt at random in a way that depends neither on the order of the samples
    nor on a seed, are each predicted by maps of subgroups fitted to the others. The cost is that of
    fitting the common map, and 36 small maps for each subgroup.

    In a pipeline, `by` is passed by scikit-learn's metadata routing: switch it on with
    ``sklearn.set_config(enable_metadata_routing=True)``, and request it with
    ``SubgroupRecalibrator().set_fit_request(by=True).set_predict_proba_request(by=True)``.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.recalibration import SubgroupRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(4000)
    >>> sex = rng.choice(["female", "male"], size=4000)
    >>> y = rng.random(4000) < np.where(sex == "male", proba**2, proba)
    >>> recalibrator = SubgroupRecalibrator().fit(proba, y, by=sex)
    >>> recalibrator.predict_proba([0.5, 0.5, 0.5], by=["female", "male", "unknown"])[:, 1].round(2)
    array([0.49, 0.26, 0.37])
    """

    _parameter_constraints: dict = {
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "prior_weight": [StrOptions({"auto"}), Interval(Real, 0, None, closed="both")],
        "labels": ["array-like", None],
    }

    def __init__(
        self,
        recalibrator: Any = None,
        *,
        prior_weight: float | str = "auto",
        labels: ArrayLike | None = None,
    ) -> None:
        self.recalibrator = recalibrator
        self.prior_weight = prior_weight
        self.labels = labels

    def _validate_params(self) -> None:
        if self.recalibrator is not None:
            check_is_object(self, "recalibrator", ["fit", "predict_proba"], recalibrator_named)
        super()._validate_params()

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, by: Any
    ) -> Self:
        """Learn the common map and those of the subgroups.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities of samples that the classifier was not fitted on;
            one-dimensional ones are of the last class.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample: a column, or several, which make their crossings. Rows
            count by their position. Missing values are a subgroup of their own; continuous numbers
            are refused.

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        predictions = check_fit_input(self, X, y, sample_weight)
        subgroups = check_by(by, np.shape(y)[0], sample_weight)
        self.classes_ = predictions.classes
        self.subgroups_ = list(subgroups.labels)
        self.subgroup_columns_ = list(subgroups.names)
        chosen = AutoRecalibrator() if self.recalibrator is None else self.recalibrator
        self.recalibrator_ = fitted_on_rows(chosen, fit_data(predictions))
        moved = self._common(predictions.matrix)
        binary = predictions.is_binary
        mapped = replace(predictions, proba=moved[:, 1] if binary else moved, log_proba=None)
        self.prior_weight_ = (
            _best_prior_weight(mapped, subgroups)
            if isinstance(self.prior_weight, str)
            else float(self.prior_weight)
        )
        fitted = _fitted_maps(mapped, subgroups, self.prior_weight_)
        self.subgroup_recalibrators_ = {
            label: one for label, one in zip(self.subgroups_, fitted, strict=True) if one
        }
        return self

    def _common(self, matrix: np.ndarray) -> np.ndarray:
        return aligned_proba(self.recalibrator_, matrix, self.classes_)

    def predict_proba(self, X: ArrayLike, *, by: Any) -> np.ndarray:
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities. For two classes one column, of the last class, and two columns
            are the same.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample, in the columns that it had at :meth:`fit`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; rows sum to 1.
        """
        proba = check_predict_input(self, X)
        calibrated = self._common(
            np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
        ).copy()
        for rows, one in rows_of_known(self, by, len(proba), self.subgroup_recalibrators_):
            calibrated[rows] = one.predict_proba(calibrated[rows])
        return calibrated

    def transform(self, X: ArrayLike, *, by: Any) -> np.ndarray:
        """Calibrated probabilities, the same as :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample, in the columns that it had at :meth:`fit`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; a data frame after ``set_output``.
        """
        return self.predict_proba(X, by=by)

    def fit_transform(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, by: Any
    ) -> np.ndarray:
        """Learn the maps, and return calibrated probabilities of the same samples.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; a data frame after ``set_output``.
        """
        return self.fit(X, y, sample_weight, by=by).predict_proba(X, by=by)

    def predict(self, X: ArrayLike, *, by: Any) -> np.ndarray:
        """The class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample, in the columns that it had at :meth:`fit`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels; the first of several classes with the same probability.
        """
        proba = self.predict_proba(X, by=by)
        return self.classes_[np.argmax(proba, axis=1)]

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, by: Any
    ) -> float:
        """Accuracy of the predicted classes.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample, in the columns that it had at :meth:`fit`.

        Returns
        -------
        score : float
            The share of labels that are predicted, in [0, 1].
        """
        return accuracy_score(y, self.predict(X, by=by), sample_weight=sample_weight)

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def _fitted_maps(predictions: Predictions, subgroups: Subgroups, prior_weight: float) -> list[Any]:
    """What maps the results of the common map, for each subgroup; None if nothing does."""
    if np.isinf(prior_weight):
        return [None] * len(subgroups.labels)
    family = SigmoidRecalibrator if predictions.is_binary else VectorScalingRecalibrator
    return [
        fitted_on_rows(family(prior_weight=prior_weight), fit_data(predictions.take(rows)))
        for rows in subgroups.rows()
    ]


def _best_prior_weight(predictions: Predictions, subgroups: Subgroups) -> float:
    """The one of least cross-validated log loss; the largest of those that are as good."""
    if len(predictions.weight) < 2:
        return np.inf
    fold = deal_folds(predictions, _N_FOLDS)
    matrix, loss = predictions.matrix, PROPER_LOSSES["log_loss"]
    losses = []
    for prior_weight in _PRIOR_WEIGHTS:
        mapped = matrix.copy()
        for k in range(fold.max() + 1):
            is_test = fold == k
            rows = np.flatnonzero(~is_test)
            train = subgroups.take(rows)
            maps = _fitted_maps(predictions.take(rows), train, prior_weight)
            place = subgroups.codes_among(train.labels)
            for position, one in enumerate(maps):
                own = is_test & (place == position)
                if one is not None and own.any():
                    mapped[own] = one.predict_proba(matrix[own])
        proba = mapped[:, 1] if predictions.is_binary else mapped
        losses.append(predictions.weight @ loss(proba, predictions.label))
    return _PRIOR_WEIGHTS[int(np.argmin(losses))]


def rows_of_known(
    estimator: Any, by: Any, n: int, known: dict[Any, Any]
) -> Iterable[tuple[np.ndarray, Any]]:
    """The rows of each known subgroup that occurs, with what is known of it."""
    subgroups = check_by(by, n)
    check_like_fitted(subgroups, estimator.subgroups_, estimator.subgroup_columns_)
    code = subgroups.codes_among(known)
    for k, value in enumerate(known.values()):
        rows = np.flatnonzero(code == k)
        if len(rows):
            yield rows, value


def check_like_fitted(subgroups: Subgroups, known: list[Any], columns: list[Any]) -> None:
    """Labels of another type, or of other columns, would all be taken for unknown subgroups."""
    found, expected = _kinds(subgroups.labels), _kinds(known)
    same_types = len(found) == len(expected) and all(
        not new or not old or new & old for new, old in zip(found, expected, strict=True)
    )
    in_other_order = list(subgroups.names) != columns and set(subgroups.names) == set(columns)
    if not same_types or in_other_order:
        raise ValueError(
            "by must have the columns that it had at fit, in the same order and of the same types: "
            f"{listed(columns)}, with subgroups {listed(known)}; found {listed(subgroups.names)}, "
            f"with subgroups such as {subgroups.labels[0]!r}. Pass the same columns."
        )


def _kinds(labels: Iterable[Any]) -> list[set[str]]:
    """The types of the labels in each column, without missing ones."""
    rows = [label if isinstance(label, tuple) else (label,) for label in labels]
    return [
        {"number" if is_number(value) else type(value).__name__ for value in column} - {"NoneType"}
        for column in zip(*rows, strict=True)
    ]
