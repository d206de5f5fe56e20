"""Recalibration given features: a plain map, and trees where it is wrong."""

from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import combine_pvalues
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import check_random_state

from .._inputs.arrays import ArrayLike, format_values, is_number
from .._inputs.by import are_unnamed, encode_column, to_columns
from .._inputs.checks import check_predict_input, positive_weight_rows
from .._inputs.drawing import draw_labels, make_batches
from .._inputs.scikit_learn import Interval, RandomState, fit_context
from .._numerics.logits import log_probabilities, log_softmax, softmax_in_place
from .._statistics.base import TIE_RTOL
from ._auto import AutoRecalibrator
from ._base import Recalibrator, check_calibration_data, negative_log_loss, to_matrix
from ._checks import check_recalibrator
from ._either import FitData, calibrate, to_fit_data

_N_BOOSTING_FOLDS = 5

# The test scores the folds from this one on, each with a model fitted on the folds before it.
_FIRST_TEST_FOLD = 2

# Simulated label vectors of the test.
_N_SIMULATIONS = 999

# With fewer samples only the plain map is fitted, as trees could hardly be tested.
_MIN_SAMPLES_FOR_TREES = 100

# A number has at most this many bins, and a category fewer values; further values are missing.
_MAX_BINS = 64

# Options of a round of trees, after which residuals are computed anew.
_TREES = {
    "max_iter": 10,
    "learning_rate": 0.1,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 20,
    "l2_regularization": 10.0,
    "max_bins": _MAX_BINS,
    "early_stopping": False,
    "random_state": 0,  # matters to more than 200 000 samples only
}

# Rounds of the test; limit of rounds; and rounds without improvement that end the search.
_N_TEST_ROUNDS, _MAX_ROUNDS, _PATIENCE = 4, 50, 2

# Newton steps divide by p (1 − p), but by no less.
_MIN_CURVATURE = 1e-6


class FeatureRecalibrator(Recalibrator):
    r"""Recalibrates given features: also subgroups that nobody has named.

    Predictions may be calibrated on the whole, and wrong for some subgroup. A plain map is fitted
    first. Then an exact test, on samples that no fit has seen, asks whether features tell anything
    about the labels beyond the plain map. If they do, gradient boosting learns corrections of the
    logits from the prediction and the features; else the plain map is all there is. This is
    multicalibration by boosting, as in MCGrad [1]_.

    Parameters
    ----------
    recalibrator : estimator, default=None
        The plain map of predictions. None stands for an :class:`AutoRecalibrator` with
        ``trees=False``.

    alpha : float in (0, 1], default=0.05
        Features are used if the p-value of the test is at most this. Where they tell nothing, the
        probability that they are used is about `alpha`. With 1, they are used whenever they lower
        the cross-validated log loss.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the labels that the test draws. The result does not depend on the
        order of the samples.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.
        Needed if a class does not occur in the calibration data.

    Attributes
    ----------
    recalibrator_ : estimator
        The plain map, fitted on all samples.

    p_value_ : float
        P-value of the hypothesis that features tell nothing beyond the plain map. 1 for fewer than
        100 samples, or a single class.

    n_rounds_ : int
        Number of rounds of ten trees; 0 if the plain map is all there is.

    scale_ : float
        The factor of the corrections, between 0 and 1.

    given_columns_ : list
        Names of the features.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result.

    n_features_in_ : int
        Number of columns of `X` at `fit` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    SubgroupRecalibrator : For subgroups that are named; needs fewer samples.
    skcalib.hypothesis_tests.find_miscalibrated_subgroups : Shows which subgroups stand out.

    Notes
    -----
    With the plain map r and features x, probabilities are

    .. math:: q(p, x) = \mathrm{softmax}\Big(\log r(p) + \frac{s}{5} \sum_{k=1}^5 \sum_{t=1}^T
        F_{kt}(p, x)\Big).

    :math:`F_{kt}` is what ten small regression trees, fitted without fold k, say of the Newton step
    :math:`(1[y = c] - q_c) / (q_c (1 - q_c))` of each class c, with weights :math:`q_c (1 - q_c)`
    (for two classes, of the log-odds alone). The number of rounds T is that of the least log loss
    of left-out folds, where each fold has a plain map of its own, and the factor s the one that
    lowers this loss most. The result is the mean of five boosted models rather than one that is
    fitted again.

    The test does not use its data twice: a plain map and four rounds of trees are fitted to the
    first two fifths of the samples, and judged on the third fifth, then to three fifths and judged
    on the fourth, and to four fifths and judged on the last one. The statistic is the sum of
    :math:`w_i (F(p_i, x_i)_{y_i} - \mathrm{E}_{y \sim r(p_i)} F(p_i, x_i)_y)`: the weighted
    calibration error for the function F of prediction and features. Each p-value is exact for
    the hypothesis that labels follow the plain map, as labels are drawn from it, and independent of
    those before; they are combined by Fisher's rule. If samples are alike in all but the label, it
    is so on average over seeds, as the order of these samples must be that of their labels. What
    the plain map itself has missed counts as well. Cross-validation comes afterwards and can only
    leave out the features again.

    Numbers are divided into at most 64 ranges with about as many samples each. The 63 most frequent
    categories are told apart. Missing values go wherever the trees have learned that they belong;
    rarer and new categories are taken for missing ones. Features should not be labels in disguise:
    whatever tells of the label will be used, and what is learned is a better model, not only a
    calibrated one.

    Trees see the predictions in any case. So ``given=proba`` asks whether predictions alone tell
    more than the plain map makes of them. Of 128 models of 3 to 15 classes, that lowered the log
    loss by 0.013 ± 0.006 with 3000 samples and by 0.028 ± 0.013 with 10 000, and raised none by
    more than 0.0005.

    The cost is that of four plain maps and 12 rounds of trees for the test, and of four more plain
    maps and 5 T rounds if features are used. A round takes some 25 ms for 5000 samples of two
    classes, and K times as much for K > 2. Forecasts of a number are not taken;
    :class:`SubgroupRecalibrator` takes them.

    In a pipeline, scikit-learn's metadata routing hands on features: with
    ``sklearn.set_config(enable_metadata_routing=True)``, call
    ``FeatureRecalibrator().set_fit_request(given=True).set_predict_proba_request(given=True)``.

    References
    ----------
    .. [1] N. Tax, L. Perini, F. Linder, D. Haimovich, D. Karamshuk, N. Okati, M. Vojnovic and P. A.
       Apostolopoulos (2026). MCGrad: Multicalibration at Web Scale. KDD 2026. :arxiv:`2509.19884`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.recalibration import FeatureRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> proba, age = rng.random(3000), rng.uniform(18, 90, 3000)
    >>> sex = rng.choice(["female", "male"], 3000)
    >>> is_wrong = (sex == "male") & (age > 60)
    >>> y = rng.random(3000) < np.where(is_wrong, proba**2, proba)
    >>> X = {"sex": sex, "age": age}
    >>> recalibrator = FeatureRecalibrator(random_state=0).fit(proba, y, given=X)
    >>> recalibrator.p_value_ < 0.001
    True
    >>> new = {"sex": ["male", "male", "female"], "age": [75, 25, 75]}
    >>> recalibrator.predict_proba([0.5, 0.5, 0.5], given=new)[:, 1].round(1)
    array([0.3, 0.5, 0.5])
    """

    _parameter_constraints: dict = {
        **Recalibrator._parameter_constraints,
        "recalibrator": "no_validation",
        "alpha": [Interval(Real, 0, 1, closed="right")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        recalibrator: Any = None,
        *,
        alpha: float = 0.05,
        random_state: RandomState = None,
        labels: ArrayLike | None = None,
    ) -> None:
        self.recalibrator = recalibrator
        self.alpha = alpha
        self.random_state = random_state
        self.labels = labels

    @fit_context(prefer_skip_nested_validation=True)
    def fit(  # type: ignore[override]
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, given: Any
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

        Returns
        -------
        self : object
            The fitted recalibrator.
        """
        check_recalibrator(self, "predict_proba")
        data = check_calibration_data(self, X, y, sample_weight)
        self.classes_ = data.classes
        n = np.shape(y)[0]
        columns, used = _feature_columns(given, n), positive_weight_rows(sample_weight, n)
        self.given_columns_ = list(columns)
        self._given = [Feature(name, column, n, used) for name, column in columns.items()]
        self._predicted = [
            Feature("X", column, len(column)) for column in _free_columns(data.matrix)
        ]
        design = self._design(data.matrix, columns, n, used)
        # labels come last, so that they do not tell which fold a sample is in
        order = np.lexsort((data.label, data.weight, *design.T, *data.matrix.T))
        self._fit(data.take(order), design[order])
        return self

    def _fit(self, data: Any, design: Any = None) -> None:
        plain = AutoRecalibrator(trees=False) if self.recalibrator is None else self.recalibrator
        examples = to_fit_data(data)
        self.recalibrator_ = examples.fit_clone(plain)
        self.p_value_, self.n_rounds_, self.scale_ = 1.0, 0, 0.0
        self._rounds: list[list[Any]] = []
        if len(data.label) < _MIN_SAMPLES_FOR_TREES or np.ptp(data.label) == 0:
            return
        rng = check_random_state(self.random_state)
        fold = rng.permutation(len(data.label)) % _N_BOOSTING_FOLDS
        is_category = [feature.is_category for feature in (*self._predicted, *self._given)]

        def make_run(is_train: np.ndarray, k: int) -> _BoostingRun:
            return _BoostingRun(examples, plain, design, is_category, is_train, fold == k)

        test_runs = [make_run(fold < k, k) for k in range(_FIRST_TEST_FOLD, _N_BOOSTING_FOLDS)]
        self.p_value_ = float(combine_pvalues([run.p_value(rng) for run in test_runs]).pvalue)
        if self.p_value_ > self.alpha:
            return
        runs = [make_run(fold != k, k) for k in range(_N_BOOSTING_FOLDS - 1)] + test_runs[-1:]

        def loss(n_rounds: int, scale: float = 1.0) -> float:
            return sum(run.loss(n_rounds, scale) for run in runs)

        losses = [loss(0)]
        while len(losses) <= min(_MAX_ROUNDS, int(np.argmin(losses)) + _PATIENCE):
            losses.append(loss(len(losses)))
        self.n_rounds_ = int(np.argmin(losses))
        if self.n_rounds_:
            optimum = minimize_scalar(
                lambda scale: loss(self.n_rounds_, scale), bounds=(0, 1), method="bounded"
            )
            self.scale_ = float(optimum.x)
            self._rounds = [trees for run in runs for trees in run.rounds[: self.n_rounds_]]

    def _design(self, matrix: np.ndarray, columns: dict, n: int, used: Any) -> np.ndarray:
        """Return codes (m, d) of the predictions (m, K), and of the features in the used rows."""
        predicted_columns = zip(self._predicted, _free_columns(matrix), strict=True)
        given_columns = zip(self._given, columns.values(), strict=True)
        codes = [feature.codes(column, len(matrix)) for feature, column in predicted_columns]
        return np.column_stack(
            [*codes, *(feature.codes(column, n)[used] for feature, column in given_columns)]
        )

    def _map(self, proba: Any, given: Any = None) -> Any:
        n = len(proba)
        columns, expected = _feature_columns(given, n), self.given_columns_
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
        correction = sum(_correction(trees, design) for trees in self._rounds)
        return softmax_in_place(
            log_probabilities(calibrated) + self.scale_ / _N_BOOSTING_FOLDS * correction
        )

    def predict_proba(  # type: ignore[override]
        self, X: ArrayLike, *, given: Any
    ) -> np.ndarray:
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities. For two classes both columns, or that of the last class alone.

        given : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The features that were given at :meth:`fit`, in the same order.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; rows sum to 1.
        """
        return self._map(check_predict_input(self, X), given)

    def transform(self, X: ArrayLike, *, given: Any) -> np.ndarray:  # type: ignore[override]
        """Calibrated probabilities, the same as :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        given : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The features that were given at :meth:`fit`, in the same order.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; a data frame after ``set_output``.
        """
        return self.predict_proba(X, given=given)

    def fit_transform(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, given: Any
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

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Calibrated probabilities; a data frame after ``set_output``.
        """
        return self.fit(X, y, sample_weight, given=given).transform(X, given=given)

    def predict(self, X: ArrayLike, *, given: Any) -> np.ndarray:  # type: ignore[override]
        """The class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        given : array-like of shape (n_samples,) or (n_samples, n_columns), dict or data frame
            The features that were given at :meth:`fit`, in the same order.

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
            The features that were given at :meth:`fit`, in the same order.

        Returns
        -------
        score : float
            Minus the mean log loss, at most 0, which is best; probabilities of 0 count as the
            precision of their type, as in :func:`sklearn.metrics.log_loss`.
        """
        proba = self.predict_proba(X, given=given)
        return negative_log_loss(y, proba, self.classes_, sample_weight)


class _BoostingRun:
    """A plain map and corrections of it, fitted to training samples and scored on test samples."""

    def __init__(
        self,
        examples: FitData,
        plain: Any,
        design: np.ndarray,
        is_category: list[bool],
        is_train: np.ndarray,
        is_test: np.ndarray,
    ) -> None:
        fitted = examples.fit_clone(plain, is_train)
        self.plain = log_probabilities(calibrate(fitted, examples.X, np.asarray(examples.classes)))
        self.correction = np.zeros_like(self.plain)
        self.examples, self.design, self.is_category = examples, design, is_category
        self.train, self.test = np.flatnonzero(is_train), np.flatnonzero(is_test)
        self.weight = np.ones(len(design)) if examples.weight is None else examples.weight
        self.rounds: list[list[Any]] = []  # of trees, one for each class
        self.tested = [self.correction[self.test]]  # after each number of rounds

    def grow(self) -> None:
        """Add a round of trees."""
        rows, train_design = self.train, self.design[self.train]
        is_empty = np.isnan(train_design).all(axis=0)  # scikit-learn refuses such columns
        train_design[:, is_empty] = 0.0
        proba = softmax_in_place(self.plain[rows] + self.correction[rows])
        trees = []
        for k in range(proba.shape[1])[-1 if proba.shape[1] == 2 else 0 :]:
            curvature = np.maximum(proba[:, k] * (1 - proba[:, k]), _MIN_CURVATURE)
            step = ((self.examples.code[rows] == k) - proba[:, k]) / curvature
            model = HistGradientBoostingRegressor(categorical_features=self.is_category, **_TREES)
            trees.append(model.fit(train_design, step, self.weight[rows] * curvature))
        self.correction += _correction(trees, self.design)
        self.rounds.append(trees)
        self.tested.append(self.correction[self.test])

    def test_correction(self, n_rounds: int) -> np.ndarray:
        """Return the corrections of the test samples, (m, K), after some rounds."""
        while len(self.rounds) < n_rounds:
            self.grow()
        return self.tested[n_rounds]

    def loss(self, n_rounds: int, scale: float) -> float:
        """Return the weighted sum of the log losses of the test samples."""
        log_proba = log_softmax(self.plain[self.test] + scale * self.test_correction(n_rounds))
        code = self.examples.code[self.test]
        return -float(self.weight[self.test] @ log_proba[np.arange(len(code)), code])

    def p_value(self, rng: np.random.RandomState) -> float:
        """Return the p-value of the hypothesis that test labels follow the plain map."""
        correction, weight = self.test_correction(_N_TEST_ROUNDS), self.weight[self.test]
        rows, proba = np.arange(len(weight)), softmax_in_place(self.plain[self.test])
        observed = correction[rows, self.examples.code[self.test]] @ weight
        n_extreme = 0
        for size, seed in make_batches(_N_SIMULATIONS, proba.size, 1, rng):
            label = draw_labels(proba, size, np.random.default_rng(seed))
            n_extreme += np.sum(
                correction[rows, label] @ weight >= observed - TIE_RTOL * abs(observed)
            )
        return (1 + n_extreme) / (1 + _N_SIMULATIONS)


def _correction(trees: list[Any], design: np.ndarray) -> np.ndarray:
    """Return what a round of trees adds to the logits, (n, K); rows sum to 0."""
    values = np.column_stack([tree.predict(design) for tree in trees])
    if values.shape[1] == 1:
        return values * [-0.5, 0.5]
    return (values - values.mean(axis=1, keepdims=True)) * (1 - 1 / values.shape[1])


def _feature_columns(given: Any, n: int) -> dict[Any, Any]:
    return to_columns(given, n, "given", "the features of each sample")


def _free_columns(matrix: np.ndarray) -> np.ndarray:
    """Return the columns of probabilities; of two, only the last one."""
    return matrix.T[-1:] if matrix.shape[1] == 2 else matrix.T


class Feature:
    """The bins of a column of numbers, or its most frequent categories."""

    def __init__(self, name: Any, column: Any, n: int, used: Any = slice(None)) -> None:
        self.name = f"given[{name!r}]"
        labels, code = self._encode(column, n)
        count = np.bincount(code[used], minlength=len(labels))
        frequent = np.argsort(-count, kind="stable")
        frequent_labels = [labels[k] for k in frequent if count[k] and labels[k] is not None]
        self.kinds = {_kind(label) for label in frequent_labels}
        is_declared = hasattr(getattr(column, "dtype", None), "categories")
        self.is_category = is_declared or not self.kinds <= {"number"}
        if self.is_category:
            self.position = {
                label: float(k) for k, label in enumerate(frequent_labels[: _MAX_BINS - 1])
            }
        else:
            value = np.sort(_numbers(labels)[code[used]])
            value = value[: len(value) - np.isnan(value).sum()]
            self.bin_edges = np.unique(value)[:-1]
            if len(self.bin_edges) >= _MAX_BINS:
                cut_index = np.arange(1, _MAX_BINS) * len(value) // _MAX_BINS
                self.bin_edges = np.unique(value[cut_index])

    def codes(self, column: Any, n: int) -> np.ndarray:
        """Return the index of the bin or category of each sample; NaN if missing or unknown."""
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
            return np.array([self.position.get(label, np.nan) for label in labels])[code]
        value = _numbers(labels)
        return np.where(np.isnan(value), np.nan, np.searchsorted(self.bin_edges, value))[code]

    def _encode(self, column: Any, n: int) -> tuple[list[Any], np.ndarray]:
        return encode_column(column, n, self.name, may_be_quantity=True)


def _kind(label: Any) -> str:
    return "number" if is_number(label) else type(label).__name__


def _numbers(labels: list[Any]) -> np.ndarray:
    return np.array([label if is_number(label) else np.nan for label in labels], dtype=np.float64)
