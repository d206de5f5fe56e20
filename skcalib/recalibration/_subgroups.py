"""Recalibration of each subgroup, drawn towards what is common to all."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._data import AnyData, ClassData, check_forecasts
from .._inputs.annotations import Estimator
from .._inputs.arrays import ArrayLike, format_values, is_number
from .._inputs.by import Columns, Subgroups, are_unnamed, check_by, check_distinct_keys
from .._inputs.checks import check_predict_input
from .._inputs.scikit_learn import (
    IntegerInterval,
    Interval,
    StrOptions,
    estimator_class,
    fit_context,
)
from .._numerics.logits import PROPER_LOSSES
from ..forecasts import as_forecast
from ..forecasts._transformed import concatenate
from ._auto import AutoRecalibrator
from ._checks import check_recalibrator
from ._either import ClassOrForecastRecalibrator, calibrate, check_fitted_on_classes, to_fit_data
from ._folds import add_units, assign_folds
from ._logistic import SigmoidRecalibrator
from ._scaling import VectorScalingRecalibrator
from ._scores import negative_crps, negative_log_loss

# Candidates of `prior_weight`; with an infinite one no subgroup has a map of its own.
_PRIOR_WEIGHTS = (np.inf, 256.0, 128.0, 64.0, 32.0, 16.0, 8.0)

_N_PRIOR_FOLDS = 5

# By default, subgroups with fewer forecasts have no map of their own.
_MIN_FORECASTS = 20


@estimator_class()
class SubgroupRecalibrator(ClassOrForecastRecalibrator):
    r"""Recalibrates each subgroup, so that small subgroups borrow from the others.

    Each subgroup has a map of few parameters, drawn to a common map; for forecasts of a number, its
    own copy of the recalibrator. A new subgroup gets the common map.

    Parameters
    ----------
    recalibrator : estimator, default=None
        The recalibrator of all samples together, and for forecasts of each subgroup. None stands
        for an :class:`AutoRecalibrator`; for guaranteed coverage, use :class:`PITRecalibrator` or
        :class:`QuantileRecalibrator`.

    prior_weight : float or "auto", default="auto"
        Number of additional samples of each subgroup, with labels distributed as the common map
        predicts. 0 fits each subgroup alone; infinity keeps the common map. "auto" chooses among 8,
        16, …, 256 and infinity by the cross-validated log loss. For forecasts, it is the number of
        samples that all other subgroups together count as; "auto" is then 0, which conformal
        guarantees need.

    min_samples : int, default=None
        Subgroups with fewer samples of positive weight get the common map. None is 1, and 20 for
        forecasts, whose subgroups borrow nothing by default.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    recalibrator_ : estimator
        The common recalibrator, fitted on all samples.

    subgroup_recalibrators_ : dict of subgroup to estimator
        For each subgroup with its own map, what maps the results of the common recalibrator: a
        :class:`SigmoidRecalibrator`, or a :class:`VectorScalingRecalibrator` for more classes. For
        forecasts, what replaces the common recalibrator.

    subgroups_ : list
        Values of the column, or tuples of several columns; None for a missing value.

    subgroup_columns_ : list
        Names of the columns that make the subgroups.

    prior_weight_ : float
        The weight that was used.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    skcalib.hypothesis_tests.SubgroupCalibrationTest : Whether it is needed.

    Notes
    -----
    With the common map r, a subgroup s of two classes has the map :math:`\operatorname{logit}
    r_s(p) = a_s \operatorname{logit} r(p) + b_s`; with more classes, :math:`\mathrm{softmax}(v_s
    \circ \log r(p) + b_s)`. With n samples it is about n / (n + `prior_weight`) of the way to the
    map that is fitted alone. With K > 2 classes the prior has K/2 times as many samples.

    A class that no subgroup has stays as in :class:`AutoRecalibrator`; one that a subgroup lacks,
    but others have, becomes rare in it.

    The cost is that of the common map, and 36 small maps for each subgroup.

    With ``PITRecalibrator()`` and ``prior_weight=0``, the quantile at the level α of a subgroup
    with m samples covers with a probability between α and :math:`α + 1/(m + 1)`, under the
    conditions of :class:`PITRecalibrator`.

    In a pipeline, switch on ``sklearn.set_config(enable_metadata_routing=True)``, and call
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

    _parameter_constraints = {
        "prior_weight": [StrOptions({"auto"}), Interval(Real, 0, None, closed="both")],
        "min_samples": [IntegerInterval(1), None],
    }

    recalibrator: Estimator | None = None
    _: KW_ONLY
    prior_weight: float | Literal["auto"] = "auto"
    min_samples: int | None = None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(  # type: ignore[override]
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        by: Columns,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the common map and those of the subgroups.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predictions of samples that the model was not fitted on: probabilities of classes,
            one-dimensional ones of the last class; or forecasts of a number, whatever
            :func:`~skcalib.forecasts.as_forecast` takes.

        y : array-like of shape (n_samples,)
            Labels; or outcomes, for forecasts.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample: a column, or several, which make their crossings. Rows
            count by their position. Missing values are a subgroup of their own; continuous numbers
            are refused.

        groups : array-like of shape (n_samples,), default=None
            Groups of samples that are not independent, which no fold divides.

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        data = add_units(self, self._check(X, y, sample_weight), y, sample_weight, groups)
        check_recalibrator(self, self._response_method)
        subgroups = check_by(by, np.shape(y)[0], sample_weight)
        check_distinct_keys(subgroups.labels)
        self.subgroups_ = list(subgroups.labels)
        self.subgroup_columns_ = list(subgroups.names)
        self.recalibrator_ = to_fit_data(data).fit_clone(self._plain_recalibrator)
        fitted = self._fit(data, subgroups)
        self.subgroup_recalibrators_ = {
            label: recalibrator
            for label, recalibrator in zip(self.subgroups_, fitted, strict=True)
            if recalibrator
        }
        return self

    def _fit(self, data: AnyData, subgroups: Any = None) -> Any:
        """Return the recalibrator of each subgroup, or None where the common one is used."""
        prior = self.prior_weight
        if data.is_forecast:
            min_samples = self.min_samples or _MIN_FORECASTS
            self.prior_weight_ = 0.0 if prior == "auto" else float(prior)
            plain = self._plain_recalibrator
            return _fit_subgroups(data, subgroups, plain, min_samples, self.prior_weight_)
        # rows that share labels with absent classes follow after those of the samples
        n_copies = len(data.weight) // len(subgroups.code)
        subgroups = subgroups.take(np.tile(np.arange(len(subgroups.code)), n_copies))
        matrix, min_samples = self._map_common(data.columns), n_copies * (self.min_samples or 1)
        data = data.with_proba(matrix[:, 1] if data.is_binary else matrix)
        self.prior_weight_ = (
            _best_prior_weight(data, subgroups, min_samples) if prior == "auto" else float(prior)
        )
        return _fit_maps(data, subgroups, self.prior_weight_, min_samples)

    @property
    def _plain_recalibrator(self) -> Any:
        return AutoRecalibrator() if self.recalibrator is None else self.recalibrator

    def _map_common(self, columns: np.ndarray) -> np.ndarray:
        return calibrate(self.recalibrator_, columns, self.classes_)

    def _map(self, proba: Any, by: Any = None) -> Any:
        n = len(proba)
        maps_of_rows = list(iter_known_subgroups(self, by, n))
        if not self._is_forecast:
            calibrated = self._map_common(proba).copy()
            for rows, recalibrator in maps_of_rows:
                calibrated[rows] = recalibrator.predict_proba(calibrated[rows])
            return calibrated
        new_rows = np.setdiff1d(range(n), np.concatenate([[], *(rows for rows, _ in maps_of_rows)]))
        if len(new_rows):
            maps_of_rows.append((new_rows, self.recalibrator_))
        original_order = np.argsort(np.concatenate([rows for rows, _ in maps_of_rows]))
        forecasts = [recalibrator.transform(proba[rows]) for rows, recalibrator in maps_of_rows]
        return concatenate(forecasts)[original_order]

    @available_if(lambda self: hasattr(self._plain_recalibrator, "partial_fit"))
    def partial_fit(self, X: ArrayLike, y: ArrayLike, *, by: Columns) -> Self:
        """Follow a series in each subgroup, and in all samples together.

        Only for a recalibrator with `partial_fit`, such as ``QuantileRecalibrator("interval")``.

        Parameters
        ----------
        X : forecast of shape (n_samples,)
            Forecasts as :meth:`transform` took them since the last call, before recalibration, in
            the order of time.

        y : array-like of shape (n_samples,)
            Their outcomes.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Subgroups, in the columns of :meth:`fit`. New ones, and small ones, move the common map
            alone.

        Returns
        -------
        self : object
            The recalibrator; if it was not fitted before, it is fitted to these rows.
        """
        if not hasattr(self, "subgroup_recalibrators_"):
            return self.fit(X, y, by=by)
        data = check_forecasts(y, X, names=("y", "X"))
        for rows, recalibrator in iter_known_subgroups(self, by, data.n_samples):
            recalibrator.partial_fit(data.forecast[rows], data.value[rows])
        self.recalibrator_.partial_fit(data.forecast, data.value)
        return self

    @available_if(check_fitted_on_classes)
    def predict_proba(self, X: ArrayLike, *, by: Columns) -> np.ndarray:
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities. For two classes both columns, or that of the last class alone.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Subgroups, in the columns of :meth:`fit`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; rows sum to 1.
        """
        return self._map(check_predict_input(self, X), by)

    def transform(self, X: ArrayLike, *, by: Columns) -> Any:  # type: ignore[override]
        """Calibrated probabilities, the same as :meth:`predict_proba`, or forecasts.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predictions of the same kind as at :meth:`fit`.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Subgroups, in the columns of :meth:`fit`.

        Returns
        -------
        calibrated : ndarray of shape (n_samples, n_classes), or Forecast
            Calibrated probabilities, a data frame after ``set_output``; or forecasts of the same
            samples.
        """
        check_is_fitted(self)
        if not self._is_forecast:
            return self.predict_proba(X, by=by)
        return self._map(as_forecast(X, name="X"), by)

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        by: Columns,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Learn the maps, and return calibrated predictions of the same samples.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predictions.

        y : array-like of shape (n_samples,)
            Labels or outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The subgroup of each sample.

        groups : array-like of shape (n_samples,), default=None
            Groups of samples, as in :meth:`fit`.

        Returns
        -------
        calibrated : ndarray of shape (n_samples, n_classes), or Forecast
            Calibrated probabilities, a data frame after ``set_output``; or forecasts.
        """
        return self.fit(X, y, sample_weight, by=by, groups=groups).transform(X, by=by)

    @available_if(check_fitted_on_classes)
    def predict(self, X: ArrayLike, *, by: Columns) -> np.ndarray:
        """The class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Subgroups, in the columns of :meth:`fit`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels; the first of several classes with the same probability.
        """
        proba = self.predict_proba(X, by=by)
        return self.classes_[proba.argmax(axis=1)]

    def score(  # type: ignore[override]
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, by: Columns
    ) -> float:
        """Minus the log loss of the probabilities, or minus the mean CRPS of the forecasts.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predictions of the same kind as at :meth:`fit`.

        y : array-like of shape (n_samples,)
            Labels or outcomes.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        by : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Subgroups, in the columns of :meth:`fit`.

        Returns
        -------
        score : float
            At most 0, which is best: minus the mean log loss, or minus the mean continuous ranked
            probability score (CRPS), in the units of the outcome.
        """
        if self._is_forecast:
            return negative_crps(self.transform(X, by=by), y, sample_weight)
        return negative_log_loss(y, self.predict_proba(X, by=by), self.classes_, sample_weight)


def _fit_subgroups(
    data: AnyData,
    subgroups: Subgroups,
    recalibrator: Estimator,
    min_samples: int,
    weight_of_others: float = 0.0,
) -> list:
    """Return for each subgroup the recalibrator fitted to its samples, or None if they are few."""
    return [
        to_fit_data(_add_other_samples(data, rows, weight_of_others)).fit_clone(recalibrator)
        if len(rows) >= min_samples
        else None
        for rows in subgroups.rows()
    ]


def _add_other_samples(data: AnyData, rows: np.ndarray, prior_weight: float) -> AnyData:
    """Return the samples of a subgroup, and with a prior also all others, with less weight."""
    if prior_weight == 0 or len(rows) == data.n_samples:
        return data.take(rows)
    is_own = np.isin(np.arange(data.n_samples), rows)
    weight = data.weight / data.inverse_effective_size  # about 1
    share = min(1.0, prior_weight / weight[~is_own].sum())
    weight = np.where(is_own, weight, share * weight)
    return replace(data, weight=weight / weight.sum())


def _fit_maps(data: ClassData, subgroups: Subgroups, prior_weight: float, min_samples: int) -> list:
    """Return for each subgroup a map of the results of the common map, or None."""
    if np.isinf(prior_weight):
        return [None] * len(subgroups.labels)
    family = SigmoidRecalibrator if data.is_binary else VectorScalingRecalibrator
    return _fit_subgroups(data, subgroups, family(prior_weight=prior_weight), min_samples)


def _best_prior_weight(data: ClassData, subgroups: Subgroups, min_samples: int) -> float:
    """Return the prior weight of least cross-validated log loss; of equal ones, the largest."""
    if len(data.weight) < 2:
        return np.inf
    fold = assign_folds(data, _N_PRIOR_FOLDS)
    matrix, loss = data.matrix, PROPER_LOSSES["log_loss"]
    losses = []
    for prior_weight in _PRIOR_WEIGHTS:
        mapped = matrix.copy()
        for k in range(fold.max() + 1):
            is_test = fold == k
            # other subgroups have no test sample
            is_needed = np.isin(subgroups.code, subgroups.code[is_test])
            rows = np.flatnonzero(~is_test & is_needed)
            if len(rows) == 0:
                continue
            train = subgroups.take(rows)
            maps = _fit_maps(data.take(rows), train, prior_weight, min_samples)
            train_code = subgroups.codes_among(train.labels)
            for position, candidate in enumerate(maps):
                test_rows = is_test & (train_code == position)
                if candidate is not None and test_rows.any():
                    mapped[test_rows] = candidate.predict_proba(matrix[test_rows])
        proba = mapped[:, 1] if data.is_binary else mapped
        losses.append(data.weight @ loss(proba, data.label))
    return _PRIOR_WEIGHTS[int(np.argmin(losses))]


def iter_known_subgroups(
    recalibrator: SubgroupRecalibrator, by: Columns, n: int
) -> Iterable[tuple[np.ndarray, Any]]:
    """Yield the rows and the recalibrator of each subgroup that has both."""
    subgroups = check_by(by, n)
    check_like_fitted(subgroups, recalibrator.subgroups_, recalibrator.subgroup_columns_)
    recalibrators = recalibrator.subgroup_recalibrators_
    code = subgroups.codes_among(recalibrators)
    for k, subgroup_recalibrator in enumerate(recalibrators.values()):
        rows = np.flatnonzero(code == k)
        if len(rows):
            yield rows, subgroup_recalibrator


def check_like_fitted(subgroups: Subgroups, fitted_labels: list[Any], columns: list[Any]) -> None:
    """Refuse labels of another type or column, which would all be unknown subgroups."""
    kinds, expected = _kinds(subgroups.labels), _kinds(fitted_labels)
    same_types = len(kinds) == len(expected) and all(
        not new or not old or new & old for new, old in zip(kinds, expected, strict=True)
    )
    names = list(subgroups.names)
    is_renamed = names != columns and not (are_unnamed(names) or are_unnamed(columns))
    if not same_types or is_renamed:
        raise ValueError(
            "by must have the columns that it had at fit, in the same order and of the same types: "
            f"{format_values(columns)}, with subgroups {format_values(fitted_labels)}; found "
            f"{format_values(names)}, with subgroups such as {subgroups.labels[0]!r}. Pass "
            "the same columns."
        )
    check_distinct_keys([*fitted_labels, *subgroups.labels])


def _kinds(labels: Iterable[Any]) -> list[set[str]]:
    """Return the types of the labels in each column, without missing ones."""
    rows = [label if isinstance(label, tuple) else (label,) for label in labels]
    return [
        {"number" if is_number(value) else type(value).__name__ for value in column} - {"NoneType"}
        for column in zip(*rows, strict=True)
    ]
