"""The choice among recalibrators by cross-validation."""

from collections.abc import Iterable
from copy import copy
from dataclasses import KW_ONLY
from itertools import chain
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from .._data import AnyData, ClassData
from .._inputs.annotations import CrossValidator
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import (
    BaseComposition,
    HasMethods,
    IntegerInterval,
    Parallel,
    delay,
    estimator_class,
    fit_context,
)
from .._inputs.warnings import record_warnings, warn
from .._numerics.dependence import UnitSums
from .._numerics.sorting import codes_by_appearance
from . import _either
from ._base import Recalibrator, is_smooth
from ._checks import check_can_keep_order, check_candidates, check_cv_is_no_string
from ._folds import add_units, assign_folds, canonical_class_order, canonical_order
from ._maps import Map, mix, state_map
from ._registry import RECALIBRATORS, find_spread_remedy, select_candidates
from ._trees import TreeRecalibrator, likeliest_share

# The proper scores that may decide which candidates are averaged; the first is the default.
_CLASS_SCORES = ("log_loss", "brier")
_FORECAST_SCORES = ("crps", "log_loss")

# Samples of the Bayesian bootstrap.
_N_BOOTSTRAPS = 200

# Prior log-odds of the identity against each other candidate.
_IDENTITY_LOG_ODDS = 3.0

# The likelihood is raised to this power: its square root makes the weights less extreme.
_LIKELIHOOD_EXPONENT = 0.5

# Candidates below this weight are left out.
_MIN_CANDIDATE_WEIGHT = 0.01

# After folds of this many samples in all, a candidate stops if it would be below that weight even
# if its mean loss were smaller by this many standard errors.
_MIN_SAMPLES_TO_STOP, _STOP_STANDARD_ERRORS = 200, 3.0

# Of more than two classes, the share of equal probabilities is this part of that of two.
_MULTICLASS_UNIFORM = 0.1

# With `keep_order` the identity keeps this weight, so that an infinite temperature cannot make
# classes equal.
_IDENTITY_TRACE = 1e-6

_ORDER_PRESERVING = [
    (name, entry.recalibrator)
    for name, entry in RECALIBRATORS.items()
    if entry.recalibrator._is_order_preserving and name != "identity"
]


@estimator_class()
class AutoRecalibrator(BaseComposition, _either.ClassOrForecastRecalibrator):
    r"""An average of recalibrators, weighted by a cross-validated proper score.

    The result is the weighted mean of the probabilities of several recalibrators, and of the
    predictions themselves. For forecasts of a number, the candidate of the surest gain is used
    alone.

    Parameters
    ----------
    candidates : list of (str, estimator), default=None
        Names and recalibrators, or searches over their parameters; "none", no recalibration, is
        always added. See Notes for the defaults.

    scoring : {"log_loss", "brier", "crps"}, default=None
        The proper score that decides: "log_loss", the default for probabilities, or "brier"; for
        forecasts "crps" (continuous ranked probability score), the default, or "log_loss" (minus
        the log density).

    ensemble : bool, default=True
        False: only the candidate of the surest gain is used, and none unless its gain exceeds the
        standard error.

    keep_order : bool, default=False
        True: the order of the classes in each row stays. The candidates are then temperature and
        ensemble temperature; own ones must be among these and :class:`IdentityRecalibrator`. Not
        for forecasts.

    trees : bool, default=True
        Whether boosted trees on the probabilities join the default candidates, for 3 to 100
        classes, from 300 samples and up to two million probabilities; :func:`export_sql` cannot
        write them. They need ``ensemble=True``, the log loss and ``keep_order=False``.

    cv : int, splitter or iterable of splits, default=5
        Number of folds, at most that of the samples; random within each class, whatever the order
        of samples. They divide no group. Without groups, they divide no samples of equal
        predictions, if these seem to be copies: their outcomes agree, and there are at least 20
        distinct predictions for each fold. Or a splitter, or its splits, with each sample in
        exactly one test set.

    n_jobs : int, default=None
        Number of jobs that fit candidates to folds; see :obj:`joblib.parallel_backend`.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    weights_ : dict
        The candidates in the average, by name, with their weights; the sum is 1 − `uniform_share_`.

    uniform_share_ : float
        The share of equal probabilities.

    recalibrators_ : dict
        The candidates in the average, fitted on all samples ("trees": on folds).

    best_name_ : str
        Name of the candidate with the largest weight.

    best_recalibrator_ : estimator
        That candidate.

    results_ : dict
        A table for :class:`pandas.DataFrame`, with a row for each candidate: its "name", mean
        out-of-fold "loss", "gain" over no recalibration, its standard error "gain_error", the
        number of "folds" with a score, and the "weight".

    left_out_ : list of str
        Default candidates that were too slow to try.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    FeatureRecalibrator : Adds trees that see features, too.

    Notes
    -----
    **Default candidates.** For two classes: temperature, sigmoid, spline, isotonic, ensemble
    temperature, and Venn-Abers in fits to at most 400 samples. For more: temperature, ensemble
    temperature, isotonic, vector scaling, matrix scaling with penalties 10 and 1, Dirichlet,
    pairwise scaling on matrix scaling and on isotonic followed by matrix scaling, and trees.
    Isotonic needs 2 samples for each class, pairwise scaling 10, of more than 50 classes other maps
    of a matrix 1; above 50 samples for each, penalties of 10 and Dirichlet are left out. With n
    samples and K classes, maps of a matrix are left out if :math:`n K^2` exceeds 5e8, pairwise
    scaling if :math:`n K^3` does.
    For forecasts: "scale", "location and scale" (:class:`LocationScaleRecalibrator`), "levels"
    (:class:`PITRecalibrator` with ``method="beta"``, :class:`QuantileRecalibrator` for quantiles),
    and "location, scale and levels"; below 50 samples only "scale"; for discrete forecasts only
    "levels", from 16 samples.

    **The weights** are the mean over 200 Bayesian bootstraps [1]_ of

    .. math::
        w_c \propto e^{b_c - n \bar L_c / 2},

    with the mean cross-validated loss :math:`\bar L_c` of candidate c and the number n of samples
    (:math:`1 / \sum_i w_i^2` if weighted). :math:`b_c` is 3 for no recalibration, else 0. Groups
    are resampled as a whole, and n is :math:`1 / \sum_{ij} w_i w_j \rho_{ij}`, where
    :math:`\rho_{ij}` is 1 if i = j, the correlation of residuals within groups for other pairs of a
    group, else 0; so for all priors of the candidates. Weights below 0.01 become 0. Equal
    probabilities are mixed in with the share 1/(n + 1) for two classes (not into "none"), and
    0.1/(n + 1) for more (default candidates only).

    **One candidate.** With ``ensemble=False``, and for forecasts, the largest gain minus its
    standard error decides. Coverage has no bound; for one, use ``PITRecalibrator()``. If the spread
    of forecasts is significantly wrong, "scale" (for quantiles "levels") is preferred to "none"
    among the defaults, unless it loses more than its standard error.

    **A class without samples**, of more than two, keeps its probabilities after the best
    temperature if there are at least 200 samples, and at least 20 of them were expected in this
    class, both before and after that temperature. Otherwise it may be a rare class that the model
    overrates, and the candidates learn that it is rare. They also do if a candidate of your own
    takes no sample weights, or is a search.

    Predicted classes may change, for more than two classes often. With ``keep_order=True`` a
    millionth of the predictions is mixed in, so that no classes become equal.

    The cost is that of the candidates, times one more than the number of folds.

    References
    ----------
    .. [1] Rubin (1981). The Bayesian Bootstrap. The Annals of Statistics.
       :doi:`10.1214/aos/1176345338`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.recalibration import AutoRecalibrator
    >>> y, proba = make_temperature_family(2000, inverse_temperature=2, random_state=0)
    >>> auto = AutoRecalibrator().fit(proba, y)
    >>> auto
    AutoRecalibrator()  # 0.28 temperature + 0.25 ensemble temperature + 0.23 sigmoid + 0.23 spline
    >>> auto.results_["name"]
    ['none', 'temperature', 'sigmoid', 'spline', 'isotonic', 'ensemble temperature']
    >>> auto.results_["loss"].round(3)
    array([0.536, 0.478, 0.478, 0.478, 0.482, 0.478])
    """

    _parameter_constraints = {
        "cv": [IntegerInterval(2), HasMethods(["split", "get_n_splits"]), Iterable]
    }

    candidates: list | tuple | None = None
    _: KW_ONLY
    scoring: Literal["log_loss", "brier", "crps"] | None = None
    ensemble: bool = True
    keep_order: bool = False
    trees: bool = True
    cv: CrossValidator = 5
    n_jobs: int | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters of this object and of the candidates.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return those of the candidates, too, as ``<name>__<parameter>``.

        Returns
        -------
        params : dict
            Parameters and their values.
        """
        return self._get_params("candidates", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this object and of the candidates.

        Parameters
        ----------
        **params : dict
            Parameters and their values; those of a candidate as ``<name>__<parameter>``.

        Returns
        -------
        self : object
            This object.
        """
        self._set_params("candidates", **params)
        return self

    _for_sql = False

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose among the candidates, and fit those that are chosen.

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

        groups : array-like of shape (n_samples,), default=None
            Groups of samples that are not independent, such as the visits of a patient, or copies
            that differ by rounding. No fold divides a group. The more the residuals within groups
            agree, the smaller is the effective number of samples, see Notes.

        Returns
        -------
        self : object
            The fitted recalibrator.

        Warns
        -----
        UserWarning
            Without groups, if all distinct predictions occur equally often, more than once, and
            always with the same outcome, as in a joined table.
        """
        check_cv_is_no_string(self)
        data = self._check(X, y, sample_weight)
        self._fit(add_units(self, data, y, sample_weight, groups))
        return self

    def _fit(self, data: AnyData) -> None:
        self._fit_average(data)

    def _fit_average(self, data: AnyData, *, keeps_proba: bool = False) -> np.ndarray | None:
        """Fit; return the out-of-fold probabilities (n, K) of the average if they are wanted."""
        scoring = check_scoring(self.scoring, data.is_forecast)
        check_can_be_split(data)
        cv, blocks = self.cv, np.asarray(data.blocks)
        n_folds = int(cv) if isinstance(cv, Integral) else len(np.unique(blocks))
        examples, fold = _either.to_fit_data(data), assign_folds(data, n_folds)
        units = UnitSums(data.weight, data.groups, data.squares)
        candidates, trees = self._choose_candidates(data, units, fold, scoring)
        averages = self.ensemble and not data.is_forecast
        loss, probas, neighbours = CrossValidation(
            examples, fold, scoring, self.n_jobs, units if averages else None, keeps_proba
        ).find_losses(list(candidates.values()))
        weight = self._weigh(list(candidates), loss, data, units, fold)
        if trees is not None and not data.is_forecast:
            weight, tree_proba = self._mix_trees(trees, weight, loss, data, units, fold)
            probas.append(tree_proba)
        self._fit_selected(candidates, trees, weight, examples, neighbours)
        if not keeps_proba:
            return None
        average = sum(w * p for w, p in zip(weight, probas, strict=True) if w > 0)
        return average + self.uniform_share_ / len(self.classes_)

    def _choose_candidates(
        self, data: AnyData, units: UnitSums, fold: np.ndarray, scoring: str
    ) -> tuple[dict[str, Any], TreeRecalibrator | None]:
        """The candidates by name, the identity first; and trees, or None."""
        named_candidates, trees = self.candidates, None
        self.left_out_: list[str] = []
        if self.keep_order:
            check_can_keep_order(self.candidates or (), data.is_forecast)
        if named_candidates is None and self.keep_order:
            named_candidates = _ORDER_PRESERVING
        elif named_candidates is None:
            fold_of_unit = fold[np.unique(units.code, return_index=True)[1]]
            n_train = units.number - int(np.bincount(fold_of_unit).max())
            if data.groups is not None:  # a group may count as several samples
                inverse_size = float(units.share @ units.share)
                n_train = round(n_train * inverse_size / data.inverse_effective_size)
            with_trees = self.trees and self.ensemble
            defaults, self.left_out_ = select_candidates(
                data, n_train, scoring, with_trees=with_trees, for_sql=self._for_sql
            )
            trees = defaults.pop("trees", None)
            named_candidates = list(defaults.items())
        checked_candidates = check_candidates(
            named_candidates, self._response_method, self.get_params(deep=False)
        )
        trees = None if trees is None else trees.set_params(labels=self.labels)
        return {"none": _either.IdentityRecalibrator(), **checked_candidates}, trees

    def _weigh(
        self, names: list[str], loss: np.ndarray, data: AnyData, units: UnitSums, fold: np.ndarray
    ) -> np.ndarray:
        """The weight of each candidate (c,), and the share of equal probabilities."""
        self.results_, surest = summarize_losses(names, loss, units, fold)
        self.uniform_share_ = 0.0
        if data.is_forecast or not self.ensemble:
            if surest == 0 and self.candidates is None and data.is_forecast:
                remedy = names.index(find_spread_remedy(data, names))
                at_best = self.results_["gain"][remedy] + self.results_["gain_error"][remedy]
                surest = remedy if at_best > 0 else 0
            return self._keep_trace(np.eye(len(names))[surest])
        weight, is_complete = np.zeros(len(names)), ~np.isnan(loss).any(axis=1)
        order = canonical_order(data)[0]
        weight[is_complete] = average_weights(loss[is_complete], units, order)
        weight = self._keep_trace(weight)
        if len(self.classes_) == 2:
            weight[1:] *= 1 - uniform_weight(units)
        elif self.candidates is None:
            weight *= 1 - _MULTICLASS_UNIFORM * uniform_weight(units)
        self.uniform_share_ = max(0.0, 1 - float(weight.sum()))
        return weight

    def _keep_trace(self, weight: np.ndarray) -> np.ndarray:
        """Weights (c,) with a trace of the identity, if the order of the classes must stay."""
        trace = _IDENTITY_TRACE * self.keep_order
        return (1 - trace) * weight + trace * np.eye(len(weight))[0]

    def _mix_trees(
        self,
        trees: TreeRecalibrator,
        weight: np.ndarray,
        loss: np.ndarray,
        data: ClassData,
        units: UnitSums,
        fold: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fit trees and add them to the table; return the weights (c + 1,) of all candidates.

        Also return the out-of-fold probabilities (n, K) of the trees.
        """
        used = weight > 0
        average = weight[used] @ np.exp(-loss[used]) + self.uniform_share_ / len(self.classes_)
        rows, proba = canonical_order(data)[0], np.empty((len(fold), len(self.classes_)))
        proba[rows] = trees.fit_folds(
            data.take(rows), fold[rows], canonical_class_order(data), average[rows]
        )
        label_proba = proba[np.arange(len(fold)), data.label]
        share = likeliest_share(average, label_proba, data.weight * units.effective_size)
        self.uniform_share_ *= 1 - share
        self.results_, _ = summarize_losses(
            [*self.results_["name"], "trees"], np.vstack([loss, -np.log(label_proba)]), units, fold
        )
        return np.append((1 - share) * weight, share), proba

    def _fit_selected(
        self,
        candidates: dict[str, Any],
        trees: TreeRecalibrator | None,
        weight: np.ndarray,
        examples: _either.FitData,
        neighbours: list[Any],
    ) -> None:
        """Fit the candidates of positive weight to all samples; trees are fitted already."""
        self.results_["weight"], names = weight, self.results_["name"]
        selected = np.flatnonzero(weight)
        self.weights_ = {names[c]: float(weight[c]) for c in selected}
        self.recalibrators_ = {
            name: examples.fit_clone(candidate, warm_start_from=neighbour)
            for (name, candidate), neighbour in zip(candidates.items(), neighbours, strict=True)
            if name in self.weights_
        }
        if trees is not None and weight[-1] > 0:
            self.recalibrators_["trees"] = trees
        self.best_name_ = names[int(weight.argmax())]
        self.best_recalibrator_ = self.recalibrators_[self.best_name_]
        smooth = list(map(is_smooth, self.recalibrators_.values()))
        self._is_smooth = bool(weight[selected] @ smooth + self.uniform_share_ > 0.5)

    def _map(self, proba: Any) -> Any:
        if self._is_forecast:
            return self.best_recalibrator_.transform(proba)
        mapped = (
            self.weights_[name] * _either.calibrate(recalibrator, proba, self.classes_)
            for name, recalibrator in self.recalibrators_.items()
        )
        return np.sum(list(mapped), axis=0) + self.uniform_share_ / len(self.classes_)

    def _state_map(self) -> Map:
        members, weights = list(self.recalibrators_.values()), list(self.weights_.values())
        return mix(list(map(state_map, members)), weights, self.uniform_share_, len(self.classes_))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "weights_"):
            return super().__repr__(N_CHAR_MAX)
        # the labels may be those that a classifier has passed on
        text = super(AutoRecalibrator, copy(self).set_params(labels=None)).__repr__(N_CHAR_MAX)
        by_weight = sorted(self.weights_.items(), key=lambda pair: -pair[1])
        terms = [f"{weight:.2f} {name}" for name, weight in by_weight if weight > _IDENTITY_TRACE]
        text += "  # " + " + ".join(terms)
        return text + f"; not tried: {', '.join(self.left_out_)}" * bool(self.left_out_)


class SQLAutoRecalibrator(AutoRecalibrator):
    """The average without the default candidates whose SQL would be too long to be of use."""

    _for_sql = True


def average_weights(loss: np.ndarray, units: UnitSums, order: np.ndarray) -> np.ndarray:
    """Return the weight of each candidate (c,), from losses (c, n); sample weights sum to 1.

    It is the mean of softmax(−n/2 · loss) over Bayesian bootstraps (Rubin 1981) of the units, where
    n is their effective number; the first candidate, the identity, is favoured. `order` sorts the
    samples by their values, so that the order of rows does not matter.
    """
    generator, total = np.random.default_rng(0), np.zeros(len(loss))
    loss, weight = loss[:, order], units.weight[order]
    code = codes_by_appearance(units.code[order]) if units.has_groups else slice(None)
    for _ in range(_N_BOOTSTRAPS):
        bootstrap_weight = weight * generator.exponential(size=units.number)[code]
        bootstrap_weight /= bootstrap_weight.sum()
        score = -_LIKELIHOOD_EXPONENT * units.effective_size * (loss @ bootstrap_weight)
        score[0] += _IDENTITY_LOG_ODDS
        total += softmax(score)
    total[total < _MIN_CANDIDATE_WEIGHT * _N_BOOTSTRAPS] = 0.0
    return total / total.sum()


class CrossValidation(NamedTuple):
    """The data and folds on which candidates are fitted and scored, one fold left out in turn."""

    examples: _either.FitData
    fold: np.ndarray  # (n,)
    scoring: str
    n_jobs: int | None
    units: UnitSums | None  # None if none stops early
    keeps_proba: bool

    def find_losses(self, candidates: list[Any]) -> tuple[np.ndarray, list[np.ndarray], list[Any]]:
        """Return the losses (c, n) of all samples under candidates fitted without their fold.

        Also return the probabilities of each candidate (n, K), empty unless `keeps_proba`, and
        neighbours: fits from which later ones may start, or None.

        If there are `units`, dominated candidates stop after a fold; their losses in further folds
        are NaN. Of two classes, all candidates but the first one are mixed with equal probabilities
        then. A candidate that is the base of another one is fitted with it.
        """
        fold, units, classes = self.fold, self.units, self.examples.classes
        losses = np.full((len(candidates), len(fold)), np.nan)
        n_classes = 0 if classes is None else len(classes)
        proba = np.zeros((*losses.shape, n_classes * self.keeps_proba))
        running, neighbours = np.arange(len(candidates)), [None] * len(candidates)
        base_recalibrators = [
            candidate._base_recalibrator if isinstance(candidate, Recalibrator) else None
            for candidate in candidates
        ]
        bases = {
            c: candidates.index(base)
            for c, base in enumerate(base_recalibrators)
            if base in candidates
        }
        for k in range(fold.max() + 1):
            uniform = uniform_weight(units, fold != k) if units and n_classes == 2 else 0.0
            pairs: list[Any] = [[c, bases[c]] for c in running.tolist() if bases.get(c) in running]
            groups = pairs + [[c] for c in running if c not in np.ravel(pairs)]
            results = Parallel(n_jobs=self.n_jobs)(
                delay(self._fit_without)(
                    fold == k, candidates[c], neighbours[c], uniform * bool(c), bool(base)
                )
                for c, *base in groups
            )
            for c, result in zip(np.concatenate(groups), chain(*results), strict=True):
                losses[c, fold == k], fold_proba, neighbours[c] = result
                if self.keeps_proba:
                    proba[c, fold == k] = fold_proba
            if units is not None:
                running = running[~is_dominated(losses[running], units, fold <= k)]
        return losses, list(proba), neighbours

    def _fit_without(
        self, test: np.ndarray, model: Any, neighbour: Any, uniform: float, with_base: bool
    ) -> list[tuple[np.ndarray, Any, Any]]:
        """Return the losses (m,) of a fold, and probabilities (m, K) or None, under a candidate.

        Also return the fit if the next one can start from it, else None. With `with_base`, return
        all this for its base, too.
        """
        fitted, record = record_warnings(
            self.examples.fit_clone, model, ~test, warm_start_from=neighbour
        )
        for message, category in record:
            if category is not ConvergenceWarning:  # the final fit warns again if needed
                warn(message, category)
        results = []
        for recalibrator in [fitted, fitted.base_] if with_base else [fitted]:
            loss, proba = self.examples.losses(recalibrator, test, self.scoring, uniform)
            starts_near = isinstance(recalibrator, Recalibrator) and recalibrator._starts_near
            next_neighbour = recalibrator if starts_near else None
            results.append((loss, proba if self.keeps_proba else None, next_neighbour))
        return results


def is_dominated(loss: np.ndarray, units: UnitSums, rows: np.ndarray) -> np.ndarray:
    """Mask the candidates (c,) whose weight would be too small, by the losses (c, n) in rows (n,).

    Their mean loss exceeds the smallest one by too many standard errors. The first candidate, the
    identity, is never dominated.
    """
    best = loss[np.argmin(loss[:, rows] @ units.weight[rows])]
    estimates = np.array([estimate_mean(candidate - best, units, rows) for candidate in loss])
    least = estimates @ [1, -_STOP_STANDARD_ERRORS]
    log_weight = -_LIKELIHOOD_EXPONENT * units.effective_size * least
    n_units = np.count_nonzero(np.bincount(units.code[rows]))
    dominated = (log_weight < np.log(_MIN_CANDIDATE_WEIGHT)) & (n_units >= _MIN_SAMPLES_TO_STOP)
    dominated[0] = False
    return dominated


def estimate_mean(values: np.ndarray, units: UnitSums, rows: np.ndarray) -> tuple[float, float]:
    """Return the mean of the values (n,) in some rows, and its standard error by units."""
    share = units.weight[rows] / units.weight[rows].sum()
    mean = values[rows] @ share
    with np.errstate(invalid="ignore"):  # an infinite loss
        total = np.bincount(units.code[rows], share * (values[rows] - mean))
    return float(mean), float(np.sqrt(total @ total))


def summarize_losses(
    names: list[str], loss: np.ndarray, units: UnitSums, fold: np.ndarray
) -> tuple[dict, int]:
    """Return a table of mean losses and gains over the first candidate, and the surest candidate.

    The surest candidate has the largest gain minus its standard error. Gains are means over the
    folds in which losses (c, n) are not NaN.
    """
    table = []
    for candidate_loss in loss:
        is_measured = ~np.isnan(candidate_loss)
        mean, mean_error = estimate_mean(loss[0] - candidate_loss, units, is_measured)
        is_complete = is_measured.all()
        mean_loss = candidate_loss @ units.weight if is_complete else loss[0] @ units.weight - mean
        table.append([mean_loss, mean, mean_error, len(np.unique(fold[is_measured]))])
    mean_loss, gain, error, n_folds = map(np.array, zip(*table, strict=True))
    results = {"name": names, "loss": mean_loss, "gain": gain, "gain_error": error}
    surest = np.where(np.isfinite(gain - error), gain - error, -np.inf)
    return results | {"folds": n_folds}, int(surest.argmax())


def uniform_weight(units: UnitSums, rows: np.ndarray | slice = slice(None)) -> float:
    """Return the weight of equal probabilities: 1/(n + 1) for n samples of equal weight."""
    square = float(units.square[rows].sum())
    return square / (float(units.weight[rows].sum()) ** 2 + square)


def check_scoring(scoring: str | None, is_forecast: bool) -> str:
    """Return the proper score for this kind of data, by default the first one."""
    scores = _FORECAST_SCORES if is_forecast else _CLASS_SCORES
    if scoring is None:
        return scores[0]
    if scoring not in scores:
        data_name = "forecasts" if is_forecast else "probabilities of classes"
        raise ValueError(
            f"scoring must be {scores[0]!r} or {scores[1]!r} for {data_name}; found {scoring!r}. "
            "Leave it out, or choose one of these."
        )
    return scoring


def check_can_be_split(data: AnyData) -> None:
    """Refuse a single sample: at least one is fitted and another one scored."""
    if len(data.weight) < 2:
        raise ValueError(
            "X must hold at least 2 samples of positive weight, to fit on one and score the other; "
            "found 1 sample. Choose a recalibrator yourself, or collect more."
        )
