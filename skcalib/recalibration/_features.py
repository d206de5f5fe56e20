"""Recalibration given features: a plain map, and trees where it is wrong."""

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from scipy.stats import combine_pvalues
from sklearn.utils import check_random_state

from .._data import ClassData
from .._inputs.annotations import Estimator
from .._inputs.arrays import ArrayLike, format_values, is_number
from .._inputs.by import are_unnamed, encode_column, to_columns
from .._inputs.checks import check_predict_input, positive_weight_rows
from .._inputs.drawing import make_batches
from .._inputs.scikit_learn import RandomState, estimator_class, fit_context
from .._numerics.logits import clip_proba, log_probabilities, softmax_in_place
from .._numerics.sorting import codes_by_appearance
from .._statistics.base import TIE_RTOL
from ._auto import AutoRecalibrator
from ._base import Recalibrator, check_calibration_data, clone_for, to_matrix
from ._checks import check_recalibrator
from ._either import calibrate, to_fit_data
from ._folds import add_units, assign_folds, find_units
from ._scores import negative_log_loss
from ._trees import BoostedFold, BoostedTrees, quantile_cuts

_N_FOLDS = 5

# The test scores the folds from this one on, each with a model fitted on the folds before it.
_FIRST_TEST_FOLD = 2

# Simulated label vectors of the test.
_N_SIMULATIONS = 999

# With fewer samples only the plain map is fitted, as trees could hardly be tested.
_MIN_SAMPLES_FOR_TREES = 100

# Categories of a column that are told apart; and the rank of missing numbers.
_MAX_CATEGORIES, _MISSING_RANK = 63, -64.0

# The argument that holds features, and its description in messages.
_GIVEN = "given", "the features of each sample"

# Trees of the test.
_N_TEST_ROUNDS = 30


@estimator_class()
class FeatureRecalibrator(Recalibrator):
    r"""Recalibrates given features: also subgroups that nobody has named.

    A plain map of the predictions is fitted first. If an exact test on held-out samples finds that
    features tell more, boosted trees learn corrections of the logits from prediction and features.
    This is multicalibration by boosting, as in MCGrad [1]_.

    Parameters
    ----------
    recalibrator : estimator, default=None
        The plain map of predictions. None stands for an :class:`AutoRecalibrator`.

    alpha : float in (0, 1], default=0.05
        Features are used if the p-value of the test is at most this. With 1, they are used whenever
        they lower the cross-validated log loss.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the labels drawn by the test.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    recalibrator_ : estimator
        The plain map, fitted on all samples.

    p_value_ : float
        P-value of the hypothesis that features tell nothing beyond the plain map; 1 for fewer than
        100 samples, or a single class.

    n_rounds_ : int
        Number of trees of each fold; 0 if the plain map is all there is.

    given_columns_ : list
        Names of the features.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    SubgroupRecalibrator : For subgroups that are named; needs fewer samples.
    skcalib.hypothesis_tests.find_miscalibrated_subgroups : Shows which subgroups stand out.

    Notes
    -----
    With the plain map r and features x, probabilities are

    .. math:: q(p, x) = \mathrm{softmax}\Big(\log r(p) + \frac{1}{5} \sum_{k=1}^5 \sum_{t=1}^T
        F_{kt}(p, x)\Big).

    The tree :math:`F_{kt}` is fitted without fold k. The number of rounds T, at most 150 (300 with
    more than 10 000 samples), has the least log loss of left-out folds.

    The test fits plain map and trees to the first two, three and four fifths of the samples, and
    tests them on the next fifth; Fisher's rule combines the p-values.

    A class without samples stays as in :class:`AutoRecalibrator`, and the test is conditioned on
    the other classes.

    Trees see ranks of probabilities and numbers, and indicators of the 63 most frequent categories.
    Exclude features that reveal the label. Of more than two classes, the predictions alone as
    features add nothing to an :class:`AutoRecalibrator`, which has trees on them.

    The cost is that of 2.8 plain maps and 8 folds of trees. For forecasts of a number, use
    :class:`SubgroupRecalibrator`.

    In a pipeline, switch on ``sklearn.set_config(enable_metadata_routing=True)``, and call
    ``FeatureRecalibrator().set_fit_request(given=True).set_predict_proba_request(given=True)``.

    References
    ----------
    .. [1] Tax et al. (2026). MCGrad: Multicalibration at Web Scale. KDD. :arxiv:`2509.19884`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.recalibration import FeatureRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> proba, sex = rng.random(3000), rng.choice(["female", "male"], 3000)
    >>> y = rng.random(3000) < np.where(sex == "male", proba**2, proba)
    >>> recalibrator = FeatureRecalibrator(random_state=0).fit(proba, y, given={"sex": sex})
    >>> recalibrator.p_value_ < 0.001
    True
    >>> recalibrator.predict_proba([0.5, 0.5], given={"sex": ["male", "female"]})[:, 1].round(1)
    array([0.3, 0.5])
    """

    recalibrator: Estimator | None = None
    _: KW_ONLY
    alpha: float = 0.05
    random_state: RandomState = None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(  # type: ignore[override]
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        given: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the plain map and, if features tell more, its corrections.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities of samples that the classifier was not fitted on;
            one-dimensional ones are of the last class.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        given : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Features, whether the classifier knows them or not: numbers or categories, some of
            which may be missing. Rows count by their position.

        groups : array-like of shape (n_samples,), default=None
            Groups of samples that are not independent, which no fold divides. The test draws labels
            that depend on each other within groups as much as the observed ones do.

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        check_recalibrator(self, "predict_proba")
        data = check_calibration_data(self, X, y, sample_weight)
        data, n = add_units(self, data, y, sample_weight, groups), np.shape(y)[0]
        self.classes_ = data.classes
        columns, used = to_columns(given, n, *_GIVEN), positive_weight_rows(sample_weight, n)
        self.given_columns_ = list(columns)
        self._given = [Feature(name, column, n, used) for name, column in columns.items()]
        self._cuts = [quantile_cuts(column) for column in _free_columns(data.matrix)]
        # rows that share labels with absent classes follow after those of the samples
        row = np.arange(n)[used]
        design = self._design(data.matrix, columns, n, np.resize(row, len(data.label)))
        is_added = np.arange(len(data.label)) >= len(row)
        # labels come last, so that they do not tell which fold a sample is in
        order = np.lexsort((data.label, data.weight, *design.T, *data.matrix.T))
        self._fit(data.take(order), design[order], is_added[order])
        return self

    def _fit(self, data: ClassData, design: Any = None, is_added: Any = None) -> None:
        plain = AutoRecalibrator() if self.recalibrator is None else self.recalibrator
        self.p_value_, self.n_rounds_ = 1.0, 0
        if len(data.label) < _MIN_SAMPLES_FOR_TREES or np.ptp(data.label) == 0:
            self.recalibrator_ = to_fit_data(data).fit_clone(plain)
            return
        self.recalibrator_, start, fold = _cross_fit(plain, data)
        rng = check_random_state(self.random_state)
        unit = find_units(data)
        unit = np.arange(len(data.label)) if unit is None else codes_by_appearance(unit)
        test_fold = (rng.permutation(unit.max() + 1) % _N_FOLDS)[unit]
        p_values, absent = [], np.unique(data.label[is_added])
        last = int(test_fold.max())
        for k in range(min(_FIRST_TEST_FOLD, last), last + 1):
            rows = np.flatnonzero((test_fold < k) | (test_fold == k) & ~is_added)
            look = data.take(rows), design[rows], test_fold[rows] == k
            p_values.append(_feature_p_value(plain, *look, rng, absent))
        self.p_value_ = float(combine_pvalues(p_values).pvalue)
        if self.p_value_ <= self.alpha:
            weight = data.weight / data.inverse_effective_size
            self._trees = BoostedTrees()
            self._trees.fit(design, data.label, weight, start, fold)
            self.n_rounds_ = self._trees.n_rounds

    def _design(self, matrix: np.ndarray, columns: dict, n: int, used: Any) -> np.ndarray:
        """Return ranks of the predictions (m, K), and the features in the used rows, (m, d)."""
        predicted_columns = zip(self._cuts, _free_columns(matrix), strict=True)
        given_columns = zip(self._given, columns.values(), strict=True)
        ranks = [np.searchsorted(*pair) for pair in predicted_columns]
        given = [feature.numbers(column, n)[used] for feature, column in given_columns]
        return np.column_stack([*ranks, *given]).astype(np.float32)

    def _map(self, proba: np.ndarray, given: ArrayLike | None = None) -> Any:
        n = len(proba)
        columns, expected = to_columns(given, n, *_GIVEN), self.given_columns_
        names = list(columns)
        is_unnamed = are_unnamed(names, "given") or are_unnamed(expected, "given")
        if len(names) != len(expected) or not (names == expected or is_unnamed):
            raise ValueError(
                "given must have the columns that it had at fit, in the same order: "
                f"{format_values(expected)}; found {format_values(names)}. Pass the same columns."
            )
        design = self._design(to_matrix(proba), columns, n, slice(None))
        calibrated = calibrate(self.recalibrator_, proba, self.classes_)
        if not self.n_rounds_:
            return calibrated
        return softmax_in_place(log_probabilities(calibrated) + self._trees.correction(design))

    def predict_proba(  # type: ignore[override]
        self, X: ArrayLike, *, given: ArrayLike | None
    ) -> np.ndarray:
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities. For two classes both columns, or that of the last class alone.

        given : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Features, in the order of :meth:`fit`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; rows sum to 1.
        """
        return self._map(check_predict_input(self, X), given)

    def transform(self, X: ArrayLike, *, given: ArrayLike | None) -> np.ndarray:  # type: ignore[override]
        """Calibrated probabilities, the same as :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        given : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Features, in the order of :meth:`fit`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; a data frame after ``set_output``.
        """
        return self.predict_proba(X, given=given)

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        given: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:
        """Learn the map, and return calibrated probabilities of the same samples.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        given : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Features.

        groups : array-like of shape (n_samples,), default=None
            Groups of samples, as in :meth:`fit`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; a data frame after ``set_output``.
        """
        fitted = self.fit(X, y, sample_weight, given=given, groups=groups)
        return fitted.transform(X, given=given)

    def predict(self, X: ArrayLike, *, given: ArrayLike | None) -> np.ndarray:  # type: ignore[override]
        """The class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        given : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Features, in the order of :meth:`fit`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels; the first of several classes with the same probability.
        """
        proba = self.predict_proba(X, given=given)
        return self.classes_[proba.argmax(axis=1)]

    def score(  # type: ignore[override]
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, given: Any
    ) -> float:
        """Minus the log loss of the calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        given : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            Features, in the order of :meth:`fit`.

        Returns
        -------
        score : float
            Minus the mean log loss, at most 0, which is best; probabilities of 0 count as in
            :func:`sklearn.metrics.log_loss`.
        """
        proba = self.predict_proba(X, given=given)
        return negative_log_loss(y, proba, self.classes_, sample_weight)


def _cross_fit(plain: Estimator, data: ClassData) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the fitted plain map, its out-of-fold probabilities (n, K), and the folds (n,)."""
    examples, fold = to_fit_data(data), assign_folds(data, _N_FOLDS)
    if type(plain) is AutoRecalibrator:  # others may fit otherwise
        fitted = clone_for(plain, data.classes)
        checked = fitted._check(examples.X, examples.y, examples.weight)
        checked = replace(checked, groups=data.groups, blocks=data.blocks, square=data.square)
        return fitted, clip_proba(fitted._fit_average(checked, keeps_proba=True)), fold
    proba = np.empty((len(fold), len(data.classes)))
    for k in range(fold.max() + 1):
        model = examples.fit_clone(plain, fold != k)
        proba[fold == k] = calibrate(model, examples.X[fold == k], data.classes)
    return examples.fit_clone(plain), clip_proba(proba), fold


def _feature_p_value(
    plain: Any,
    data: ClassData,
    design: np.ndarray,
    test: np.ndarray,
    rng: np.random.RandomState,
    absent: ArrayLike = (),
) -> float:
    """Return the p-value of the hypothesis that test labels follow the plain map of the others.

    They are conditioned on not being of the absent classes.
    """
    fitted, train_start, _ = _cross_fit(plain, data.take(np.flatnonzero(~test)))
    proba = calibrate(fitted, data.columns[test], data.classes)
    start = np.empty((len(test), len(data.classes)), dtype=np.float32)
    start[~test], start[test] = train_start, clip_proba(proba)
    weight = data.weight / data.inverse_effective_size
    run, memory = BoostedFold(design, data.label, weight, start, test, seed=0), np.empty_like(start)
    for _ in range(_N_TEST_ROUNDS):
        run.grow(memory)
    correction = np.log(run.proba[test] / start[test])
    if np.size(absent):  # labels are drawn from the others
        proba = clip_proba(proba)
        proba[:, np.asarray(absent)] = 0
    rows, predicted = np.arange(len(proba)), data.take(np.flatnonzero(test))
    predicted = predicted.with_proba(proba[:, 1] if data.is_binary else proba)
    observed, n_extreme = correction[rows, data.label[test]] @ weight[test], 0
    for size, seed in make_batches(_N_SIMULATIONS, proba.size, 1, rng):
        label = predicted.simulate_outcomes(np.random.default_rng(seed), size)
        null_values = correction[rows, label] @ weight[test]
        n_extreme += np.sum(null_values >= observed - TIE_RTOL * abs(observed))
    return (1 + n_extreme) / (1 + _N_SIMULATIONS)


def _free_columns(matrix: np.ndarray) -> np.ndarray:
    """Return the columns of probabilities; of two, only the last one."""
    return matrix.T[-1:] if matrix.shape[1] == 2 else matrix.T


class Feature:
    """The quantiles of a column of numbers, or its most frequent categories."""

    def __init__(self, name: str, column: object, n: int, used: Any = slice(None)) -> None:
        self.name = f"given[{name!r}]"
        labels, code = self._encode(column, n)
        count = np.bincount(code[used], minlength=len(labels))
        frequent = np.argsort(-count, kind="stable")
        frequent_labels = [labels[k] for k in frequent if count[k] and labels[k] is not None]
        self.kinds = {_kind(label) for label in frequent_labels}
        is_declared = hasattr(getattr(column, "dtype", None), "categories")
        self.is_category = is_declared or not self.kinds <= {"number"}
        self.categories = frequent_labels[:_MAX_CATEGORIES]
        if not self.is_category:
            value = _numbers(labels)[code[used]]
            self.cuts = quantile_cuts(value[~np.isnan(value)]) if self.kinds else np.empty(0)

    def numbers(self, column: object, n: int) -> np.ndarray:
        """Return the rank (n, 1) of numbers, or indicators (n, m) of categories.

        Missing numbers rank far below; missing and unknown categories have no indicator.
        """
        labels, code = self._encode(column, n)
        kinds = {_kind(label) for label in labels if label is not None}
        is_like = kinds & self.kinds if self.is_category else kinds <= {"number"}
        if kinds and self.kinds and not is_like:
            raise ValueError(
                f"{self.name} must hold values of the type that it had at fit, "
                f"{format_values(sorted(self.kinds))}; found {format_values(sorted(kinds))}. "
                "Convert the column."
            )
        if self.is_category:
            table = [[label == category for category in self.categories] for label in labels]
            return np.array(table, dtype=np.float32)[code]
        value = _numbers(labels)
        rank = np.where(np.isnan(value), _MISSING_RANK, np.searchsorted(self.cuts, value))
        return rank[code, None]

    def _encode(self, column: object, n: int) -> tuple[list[Any], np.ndarray]:
        return encode_column(column, n, self.name, may_be_quantity=True)


def _kind(label: object) -> str:
    return "number" if is_number(label) else type(label).__name__


def _numbers(labels: list[Any]) -> np.ndarray:
    return np.array([label if is_number(label) else np.nan for label in labels], dtype=np.float64)
