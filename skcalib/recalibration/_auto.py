"""The choice among recalibrators by cross-validation."""

import warnings
from itertools import chain
from typing import Any, Literal, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._data import ClassData, ForecastData
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import (
    N_JOBS,
    BaseComposition,
    IntegerInterval,
    Parallel,
    StrOptions,
    delayed,
)
from ._base import Recalibrator, is_smooth
from ._checks import check_can_keep_order, check_candidates
from ._either import (
    ClassOrForecastRecalibrator,
    FitData,
    IdentityRecalibrator,
    calibrate,
    to_fit_data,
)
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

# Trees join the default candidates from the first number of samples on, up to the second one of
# classes, and up to the third one of probabilities.
_MIN_SAMPLES_FOR_TREES, _MAX_CLASSES_FOR_TREES, _MAX_ENTRIES_FOR_TREES = 300, 100, 2 * 10**6

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


class AutoRecalibrator(BaseComposition, ClassOrForecastRecalibrator):
    r"""An average of recalibrators, weighted by a cross-validated proper score.

    It tries several recalibrators, and none at all: each is fitted on parts of the calibration data
    and scored on the rest, and then on all of it. The calibrated probability is the mean of what
    they say, with weights that tell how likely each is the best. With few samples several share the
    weight, with many one of them has it, and calibrated predictions mostly stay as they are. Of
    forecasts of a number, which are not averaged, it takes the candidate of the surest gain.

    Parameters
    ----------
    candidates : list of (str, estimator), default=None
        Names and recalibrators, or searches over their parameters. No recalibration at all,
        "none", is always among the candidates. By default, for two classes temperature, sigmoid,
        spline, isotonic and ensemble temperature; for more temperature, ensemble temperature,
        isotonic, vector scaling, matrix scaling with penalties 10 and 1, Dirichlet, and pairwise
        scaling on matrix scaling and on isotonic followed by matrix scaling (penalties 1); pairwise
        scaling only if a fit has 10 samples for each class, isotonic only if it has 2, and all that
        have matrices only if they do not take too long; and `trees`. For forecasts "scale",
        "location and scale"
        (:class:`LocationScaleRecalibrator`), "levels" (:class:`PITRecalibrator` with
        ``method="beta"``, so that forecasts with a density keep one), and "location, scale and
        levels". For quantile forecasts the levels are moved by a :class:`QuantileRecalibrator`; for
        discrete ones, only "levels" is tried. If a fit has fewer than 50 samples, "scale" alone is
        tried; for discrete ones nothing if it has fewer than 16.

    scoring : {"log_loss", "brier", "crps"}, default=None
        The proper score that decides: "log_loss", the default for probabilities, or "brier"; for
        forecasts "crps", the default, which is the continuous ranked probability score, or
        "log_loss", minus the log density.

    ensemble : bool, default=True
        False: only one candidate is taken, that of the surest gain, and none unless it gains more
        than the standard error of the gain. Forecasts are never averaged.

    keep_order : bool, default=False
        True: in each row the order of the classes stays, and so does every predicted class. By
        default the candidates are then temperature and ensemble temperature, and own ones must be
        among those two and :class:`IdentityRecalibrator`. Not for forecasts.

    trees : bool, default=True
        Of more than two classes, boosted trees on the probabilities are mixed with the average of
        the default candidates, from 300 samples and up to 100 classes and two million
        probabilities. False: they are not, so that :func:`export_sql` can write the map down. They
        need ``ensemble=True``, the log loss and ``keep_order=False``.

    cv : int, default=5
        The number of folds, at most that of the samples. Samples are dealt to the folds at random
        within each class, in a way that depends neither on their order, nor on the names of the
        classes, nor on a seed.

    n_jobs : int, default=None
        Number of jobs that fit candidates to folds; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.
        Needed if a class does not occur in the calibration data.

    Attributes
    ----------
    weights_ : dict
        The candidates that entered, by name, with their weights. They sum to 1, less
        `uniform_share_`.

    uniform_share_ : float
        The share of equal probabilities in the average; for more than two classes 0 unless the
        candidates are the default ones.

    recalibrators_ : dict
        The same candidates, fitted on all samples; of "trees", the mean of the models of the folds.

    best_name_ : str
        The name of the candidate of the largest weight.

    best_recalibrator_ : estimator
        The same candidate, fitted on all samples.

    results_ : dict
        A table, ready for :class:`pandas.DataFrame`. It has a row for each candidate: its "name",
        its mean "loss" on samples that it was not fitted on, its "gain" over no recalibration, the
        standard error of the gain, "gain_error", the number of "folds" in which it was scored, and
        its "weight" in the average. A candidate that was stopped has the gain of fewer folds; its
        loss is that of no recalibration in all of them, less the gain.

    left_out_ : list of str
        The names of default candidates that were not tried, as they would have taken too long.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result.

    n_features_in_ : int
        Number of columns of `X` at `fit` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    IdentityRecalibrator : No recalibration, the candidate "none".
    FeatureRecalibrator : Adds trees that see features, too.
    RecalibratedClassifier : A classifier together with a recalibrator.
    RecalibratedRegressor : A regressor together with a recalibrator.

    Notes
    -----
    A proper score decides, and not a calibration error: the constant prediction of the class
    frequencies is calibrated, and useless. A proper score adds the miscalibration and the
    information that the predictions lack (:func:`skcalib.metrics.score_decomposition`), so better
    calibration lowers it and lost information raises it. Unlike a calibration error it is a mean
    over samples, so that its cross-validated estimate is unbiased.

    The weights are the mean, over 200 Bayesian bootstraps of the samples [1]_, of

    .. math::
        w_c \propto e^{b_c - n \bar L_c / 2},

    with the mean :math:`\bar L_c` of the cross-validated losses of candidate c, and the number n of
    samples, :math:`1 / \sum_i w_i^2` of weighted ones. With the log loss, :math:`e^{-n \bar L_c}`
    is the likelihood of the predictions; its root makes the weights less extreme. :math:`b_c` is 3
    for no recalibration and else 0: with few samples every recalibrator adds noise. Candidates
    whose weight would be below 0.01 are left out. Once 200 samples are scored, those are stopped
    after a fold that would be left out even if they were less far behind, by three standard errors
    of the difference to the best one. To choose one candidate loses more where several
    are almost as good, and most where a wrong one seems best by chance (measured in the guide
    "Which recalibrator should I take?").

    Of two classes, each candidate but "none" is mixed with equal probabilities, which get the share
    1/(n + 1): before there is a sample, nothing is known of the outcomes. (Of weighted samples, n
    is as above; in the folds, it is that of the samples in a fit.) With few samples this keeps
    candidates from too much certainty; with many it is nothing. On ten data sets that served to
    choose defaults, it lowered the log loss by 0.0079 ± 0.0021 with 10 samples, 0.0028 ± 0.0006
    with 30 and 0.0018 ± 0.0008 with 100. Of more classes, the average of the default candidates is
    mixed with equal probabilities, "none" included, which get the share 0.1/(n + 1): few samples
    that are all predicted right by luck do not tell that no prediction is wrong.

    The trees of more than two classes see the rank of each probability among 256 quantiles, and not
    the labels of one fold. In each round, an extremely randomised tree with 16 leaves, which tries
    the root of K classes at each cut, is grown to the residuals on 2000 samples or half of them,
    and has a value for each class in each leaf: 0.3 times the Newton step
    :math:`G / (H + 2) \cdot (1 - 1/K)`, with the sums G of residuals and H of
    p(1 − p) over all samples. All folds have the number of rounds of the least out-of-fold loss (at
    most 150; 300 with more than 10 000 samples). The map is the mean of the folds' scores, and
    needs no fit to all samples. Its share in the mixture with the average is that of most
    likelihood of the out-of-fold probabilities, with two more samples that speak for the average;
    below 0.01 it is 0. The weights are then of the mixture. Nothing is drawn from a seed, and the
    order of rows and classes does not matter.

    With ``ensemble=False``, and of forecasts, the candidate is taken whose gain over no
    recalibration, less the standard error of the gain, is largest. The candidates share folds, so
    this is the standard error of a paired difference. It ignores that fits to overlapping parts of
    the data depend on each other: as an error of the gain of the final fit it is mostly 1.2 to 1.6
    times too small.

    For forecasts, scale comes before levels, as a map of levels cannot mend standard deviations
    that are many times too small. The result is chosen on the same samples that it is fitted on, so
    no bound on coverage holds for it; for one, choose ``PITRecalibrator()`` yourself.

    With few samples the gain in score is seldom sure, also where intervals are much too short. So
    forecasts of the wrong spread do not stay as they are: if default candidates are tried and none
    of them is taken by its gain, "scale" is, or "levels" for quantiles, unless it loses more than
    the standard error of its gain. The spread is wrong if :math:`\sum_i z_i^2`, with the normal
    scores :math:`z_i = Φ^{-1}(F_i(y_i))`, has a p-value below 0.01 in a two-sided :math:`χ^2` test;
    where :math:`F_i(y_i)` is only known to lie in an interval, :math:`z_i^2` is a mean over it.

    Predicted classes may change. On the data sets that served to choose defaults, with 10 to 1000
    samples, 1 to 4 % of them changed on average for two classes, and 3 to 29 % for more; up to 17
    and 95 % for a single model. Accuracy rose on average, by 0.001 to 0.009 and by 0.002 to 0.06.
    But with 10 to 100 samples it fell by more than half a point for 2 to 8 % of the models of two
    classes, and for 9 to 25 % of those of more. With ``keep_order=True`` none changes: in each row
    the order of the classes stays, up to rounding. The choice is then among a temperature, a
    mixture with one, and nothing; a millionth of the predictions as they are is always mixed in, so
    that no classes become equal. That kept nine tenths of the gain in log loss. The ranking of
    samples by the probability of a class is kept for two classes only.

    The Brier score of two classes is :math:`(y - p)^2`, of more the sum of that over the classes.
    The cost is that of the candidates, times one more than the number of folds; a candidate that is
    the `base` of a :class:`PairwiseScalingRecalibrator` among them is fitted with that in the
    folds. Matrix scaling and Dirichlet multiply matrices of all classes. With n samples and K
    classes they are left out by default if :math:`n K^2` exceeds 5e8, as with 2000 samples of 500
    classes or more: they would take minutes or hours. Pairwise scaling is left out if :math:`n K^3`
    exceeds 5e8, as with 18 600 samples of 30 classes. Pass them as `candidates` to try them all
    the same.

    References
    ----------
    .. [1] D. B. Rubin (1981). The Bayesian Bootstrap. The Annals of Statistics 9(1), 130–134.
       :doi:`10.1214/aos/1176345338`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.recalibration import AutoRecalibrator
    >>> y, proba = make_temperature_family(2000, inverse_temperature=2, random_state=0)
    >>> auto = AutoRecalibrator().fit(proba, y)
    >>> auto
    AutoRecalibrator()  # 0.28 temperature + 0.25 ensemble temperature + 0.23 sigmoid + 0.23 spline
    >>> for name, loss, weight in zip(*(auto.results_[key] for key in ("name", "loss", "weight"))):
    ...     print(f"{name:20} {loss:.4f} {weight:.2f}")
    none                 0.5359 0.00
    temperature          0.4780 0.28
    sigmoid              0.4782 0.23
    spline               0.4782 0.23
    isotonic             0.4823 0.00
    ensemble temperature 0.4781 0.25

    Forecasts of a number whose standard deviations are three times too small:

    >>> import numpy as np
    >>> from skcalib.forecasts import GaussianForecast
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=5000)
    >>> y = rng.normal(mean, 3)
    >>> auto = AutoRecalibrator().fit(GaussianForecast(mean, np.ones(5000)), y)
    >>> auto.best_name_
    'scale'
    >>> auto.transform(GaussianForecast([0.0], [1.0])).std().round(1)
    array([3.])
    """

    _parameter_constraints: dict = {
        **Recalibrator._parameter_constraints,
        "candidates": "no_validation",
        "scoring": [StrOptions({"log_loss", "brier", "crps"}), None],
        "ensemble": ["boolean"],
        "keep_order": ["boolean"],
        "trees": ["boolean"],
        "cv": [IntegerInterval(2)],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        candidates: list | tuple | None = None,
        *,
        scoring: Literal["log_loss", "brier", "crps"] | None = None,
        ensemble: bool = True,
        keep_order: bool = False,
        trees: bool = True,
        cv: int = 5,
        n_jobs: int | None = None,
        labels: ArrayLike | None = None,
    ) -> None:
        self.candidates = candidates
        self.scoring = scoring
        self.ensemble = ensemble
        self.keep_order = keep_order
        self.trees = trees
        self.cv = cv
        self.n_jobs = n_jobs
        self.labels = labels

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

    # True if the out-of-fold probabilities (n, K) of the average are wanted, as `_out_of_fold`.
    _keeps_out_of_fold = False

    def _fit(self, data: ClassData | ForecastData) -> None:
        scoring = check_scoring(self.scoring, data.is_forecast)
        check_can_be_split(data)
        if self.keep_order:
            check_can_keep_order(self.candidates or (), data.is_forecast)
        examples, fold = to_fit_data(data), assign_folds(data, self.cv)
        named_candidates: Any = self.candidates
        self.left_out_: list[str] = []
        averages = self.ensemble and not data.is_forecast
        with_trees = averages and scoring == "log_loss" and self._tries_trees(data)
        if named_candidates is None and self.keep_order:
            named_candidates = _ORDER_PRESERVING
        elif named_candidates is None:
            n_train = len(fold) - int(np.bincount(fold).max())
            defaults, left_out = select_candidates(data, n_train, scoring, with_trees=with_trees)
            self.left_out_ = left_out + self.left_out_
            named_candidates = list(defaults.items())
        checked_candidates = check_candidates(
            named_candidates, self._response_method, self.get_params(deep=False)
        )
        candidates = {"none": IdentityRecalibrator(), **checked_candidates}
        names = list(candidates)
        mixes = averages and len(self.classes_) == 2
        shared = examples, fold, scoring, self.n_jobs, data.weight if averages else None
        loss, proba = cross_validated_losses(
            list(candidates.values()), *shared, mixes=mixes, keeps_proba=self._keeps_out_of_fold
        )
        self.results_, surest = summarize_losses(names, loss, data.weight, fold)
        if surest == 0 and self.candidates is None and data.is_forecast:
            remedy = names.index(find_spread_remedy(data, names))
            at_best = self.results_["gain"][remedy] + self.results_["gain_error"][remedy]
            surest = remedy if at_best > 0 else 0
        weight = np.eye(len(names))[surest]
        if averages:
            weight, is_complete = np.zeros(len(names)), ~np.isnan(loss).any(axis=1)
            weight[is_complete] = average_weights(
                loss[is_complete], data.weight, _canonical_order(data)[0]
            )
        if self.keep_order:
            weight = (1 - _IDENTITY_TRACE) * weight + _IDENTITY_TRACE * np.eye(len(names))[0]
        self.uniform_share_ = 0.0
        if mixes:
            weight[1:] *= 1 - uniform_weight(data.weight)
        elif averages and self.candidates is None:
            weight *= 1 - _MULTICLASS_UNIFORM * uniform_weight(data.weight)
        if averages:
            self.uniform_share_ = max(0.0, 1 - float(weight.sum()))
        trees = TreeRecalibrator(labels=self.labels)
        if with_trees:
            weight, tree_proba = self._mix_trees(trees, weight, loss, data, fold)
            names = self.results_["name"]
            proba += [tree_proba]
        self.results_["weight"] = weight
        if self._keeps_out_of_fold:
            average = sum(w * p for w, p in zip(weight, proba, strict=True) if w > 0)
            self._out_of_fold = average + self.uniform_share_ / len(self.classes_)
        selected = [names[c] for c in np.flatnonzero(weight)]
        self.weights_ = dict(zip(selected, weight[weight > 0].tolist(), strict=True))
        self.recalibrators_ = {
            name: trees if name == "trees" and with_trees else examples.fit_clone(candidates[name])
            for name in selected
        }
        self.best_name_ = names[int(weight.argmax())]
        self.best_recalibrator_ = self.recalibrators_[self.best_name_]
        smooth = list(map(is_smooth, self.recalibrators_.values()))
        self._is_smooth = bool(weight[weight > 0] @ smooth + self.uniform_share_ > 0.5)

    def _tries_trees(self, data: Any) -> bool:
        """True if trees join the default candidates."""
        n_classes, size = len(self.classes_), 1 / data.inverse_effective_size
        is_default = self.candidates is None and not self.keep_order and self.trees
        if not is_default or n_classes == 2 or size < _MIN_SAMPLES_FOR_TREES:
            return False
        is_small = n_classes <= _MAX_CLASSES_FOR_TREES
        if not is_small or len(data.label) * n_classes > _MAX_ENTRIES_FOR_TREES:
            self.left_out_.append("trees")
            return False
        return True

    def _mix_trees(
        self, trees: TreeRecalibrator, weight: np.ndarray, loss: np.ndarray, data: Any, fold: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fit trees, who join the table; return the weights (c + 1,) of the average and of them.

        Also return their out-of-fold probabilities (n, K).
        """
        rows, proba = _canonical_order(data)[0], np.empty((len(fold), len(self.classes_)))
        proba[rows] = trees.fit_folds(data.take(rows), fold[rows], _canonical_class_order(data))
        label_proba = proba[np.arange(len(fold)), data.label]
        used = weight > 0
        average = weight[used] @ np.exp(-loss[used]) + self.uniform_share_ / len(self.classes_)
        share = likeliest_share(average, label_proba, data.weight / data.inverse_effective_size)
        share = share if share >= _MIN_CANDIDATE_WEIGHT else 0.0
        self.uniform_share_ *= 1 - share
        losses = np.stack([loss[0], -np.log(label_proba)])
        table, _ = summarize_losses(["none", "trees"], losses, data.weight, fold)
        for column, values in table.items():
            both = [*self.results_[column], values[1]]
            self.results_[column] = both if column == "name" else np.array(both)
        return np.append((1 - share) * weight, share), proba

    def _map(self, data: Any) -> Any:
        if self._is_forecast:
            return self.best_recalibrator_.transform(data)
        mapped = (
            self.weights_[name] * calibrate(recalibrator, data, self.classes_)
            for name, recalibrator in self.recalibrators_.items()
        )
        return np.sum(list(mapped), axis=0) + self.uniform_share_ / len(self.classes_)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "weights_"):
            return super().__repr__(N_CHAR_MAX)
        # the labels may be those that a classifier has passed on
        text = super(AutoRecalibrator, clone(self).set_params(labels=None)).__repr__(N_CHAR_MAX)
        by_weight = sorted(self.weights_.items(), key=lambda pair: -pair[1])
        terms = [f"{weight:.2f} {name}" for name, weight in by_weight if weight > _IDENTITY_TRACE]
        text += "  # " + " + ".join(terms)
        return text + f"; not tried: {', '.join(self.left_out_)}" * bool(self.left_out_)


def average_weights(loss: np.ndarray, weight: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the weight of each candidate (c,), from losses (c, n); sample weights sum to 1.

    It is the mean of softmax(−n/2 · loss) over Bayesian bootstraps (Rubin 1981), where n is the
    effective sample size; the first candidate, the identity, is favoured. `order` sorts the samples
    by their values, so that the order of rows does not matter.
    """
    generator = np.random.default_rng(0)
    size, total = 1 / float(weight @ weight), np.zeros(len(loss))
    loss, weight = loss[:, order], weight[order]
    for _ in range(_N_BOOTSTRAPS):
        bootstrap_weight = weight * generator.exponential(size=len(weight))
        score = -_LIKELIHOOD_EXPONENT * size * (loss @ (bootstrap_weight / bootstrap_weight.sum()))
        score[0] += _IDENTITY_LOG_ODDS
        total += softmax(score)
    total[total < _MIN_CANDIDATE_WEIGHT * _N_BOOTSTRAPS] = 0.0
    return total / total.sum()


def cross_validated_losses(
    candidates: list[Any],
    examples: FitData,
    fold: np.ndarray,
    scoring: str,
    n_jobs: int | None,
    weight: np.ndarray | None,
    *,
    mixes: bool,
    keeps_proba: bool,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the loss of each sample under each candidate, fitted without its fold, (c, n).

    With `keeps_proba`, also return the probabilities (n, K) under each candidate.

    If `weight` (n,) is given, dominated candidates stop after a fold; their losses in further folds
    are NaN. If `mixes`, all candidates but the first one are mixed with equal probabilities. A
    candidate that is the base of another one is fitted with it.
    """
    losses = np.full((len(candidates), len(fold)), np.nan)
    n_classes = len(examples.classes) if keeps_proba and examples.classes is not None else 0
    proba = np.zeros((*losses.shape, n_classes))
    running = np.arange(len(candidates))
    base_recalibrators = [
        candidate._base_recalibrator if isinstance(candidate, Recalibrator) else None
        for candidate in candidates
    ]
    bases = {
        c: candidates.index(base) for c, base in enumerate(base_recalibrators) if base in candidates
    }
    for k in range(fold.max() + 1):
        uniform = uniform_weight(weight[fold != k]) if mixes and weight is not None else 0.0
        pairs: list[Any] = [[c, bases[c]] for c in running.tolist() if bases.get(c) in running]
        groups = pairs + [[c] for c in running if c not in np.ravel(pairs)]
        results = Parallel(n_jobs=n_jobs)(
            delayed(_losses_of_fold)(
                candidates[c], examples, fold == k, scoring, uniform * bool(c), bool(base)
            )
            for c, *base in groups
        )
        for c, (loss, fold_proba) in zip(np.concatenate(groups), chain(*results), strict=True):
            losses[c, fold == k] = loss
            if keeps_proba:
                proba[c, fold == k] = fold_proba
        if weight is not None:
            running = running[~is_dominated(losses[running], weight, fold <= k)]
    return losses, list(proba)


def is_dominated(loss: np.ndarray, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Mask the candidates (c,) whose weight would be too small, by the losses (c, n) in rows (n,).

    Their mean loss exceeds the smallest one by too many standard errors. The first candidate, the
    identity, is never dominated.
    """
    fold_loss, share = loss[:, rows], weight[rows] / weight[rows].sum()
    excess = fold_loss - fold_loss[np.argmin(fold_loss @ share)]
    mean = excess @ share
    error = np.sqrt((excess - mean[:, None]) ** 2 @ share**2)
    log_weight = (
        -_LIKELIHOOD_EXPONENT / float(weight @ weight) * (mean - _STOP_STANDARD_ERRORS * error)
    )
    dominated = (log_weight < np.log(_MIN_CANDIDATE_WEIGHT)) & (rows.sum() >= _MIN_SAMPLES_TO_STOP)
    dominated[0] = False
    return dominated


def summarize_losses(
    names: list[str], loss: np.ndarray, weight: np.ndarray, fold: np.ndarray
) -> tuple[dict, int]:
    """Return a table of mean losses and gains over the first candidate, and the surest candidate.

    The surest candidate has the largest gain minus its standard error. Gains are means over the
    folds in which losses (c, n) are not NaN.
    """
    table = []
    for candidate_loss in loss:
        is_measured = ~np.isnan(candidate_loss)
        gain, share = (loss[0] - candidate_loss)[is_measured], weight[is_measured]
        share = share / share.sum()
        mean = gain @ share
        with np.errstate(invalid="ignore"):  # an infinite loss
            error = np.sqrt((gain - mean) ** 2 @ share**2)
        mean_loss = candidate_loss @ weight if is_measured.all() else loss[0] @ weight - mean
        table.append([mean_loss, mean, error, len(np.unique(fold[is_measured]))])
    mean_loss, gain, error, n_folds = map(np.array, zip(*table, strict=True))
    results = {"name": names, "loss": mean_loss, "gain": gain, "gain_error": error}
    surest = np.where(np.isfinite(gain - error), gain - error, -np.inf)
    return results | {"folds": n_folds}, int(surest.argmax())


def uniform_weight(weight: np.ndarray) -> float:
    """Return the weight of equal probabilities: 1/(n + 1) for n samples of equal weight."""
    square = float(weight @ weight)
    return square / (weight.sum() ** 2 + square)


def _losses_of_fold(
    model: Any, examples: FitData, test: np.ndarray, scoring: str, uniform: float, with_base: bool
) -> list[tuple[np.ndarray, Any]]:
    """Return the losses (m,) of a fold, and probabilities (m, K), under a candidate.

    With `with_base`, also under its base.
    """
    with warnings.catch_warnings():  # a selected fit without an optimum warns once more
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = examples.fit_clone(model, ~test)
    recalibrators = [fitted, fitted.base_] if with_base else [fitted]
    return [examples.losses(recalibrator, test, scoring, uniform) for recalibrator in recalibrators]


def assign_folds(data: Any, n_folds: int) -> np.ndarray:
    """Return the fold of each sample (n,), random within each class, for any order of the rows."""
    order, class_rank = _canonical_order(data)
    shuffled = np.random.default_rng(0).permutation(order)
    shuffled = shuffled[np.argsort(class_rank[shuffled], kind="stable")]
    fold = np.empty(len(shuffled), dtype=np.intp)
    fold[shuffled] = np.arange(len(shuffled)) % n_folds
    return fold


def _canonical_order(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return indices (n,) that sort the samples by all their values but the names of classes.

    Also return the rank (n,) of the class of each sample in an order that does not depend on names;
    0 for forecasts of a number.
    """
    if not data.is_forecast:
        classes = _canonical_class_order(data)
        class_rank = np.argsort(classes)[data.label]
        return np.lexsort((class_rank, data.weight, *data.matrix.T[classes])), class_rank
    order = np.lexsort((data.value, data.weight, *data.forecast._sort_keys()))
    return order, np.zeros_like(order)


def _canonical_class_order(data: ClassData) -> np.ndarray:
    """Return indices (K,) that sort the classes, whatever their names.

    The keys are two moments of probabilities and labels; hardly any two classes share both.
    """
    matrix = data.matrix
    label_proba = matrix[np.arange(len(matrix)), data.label]
    square = np.einsum("n,nk,nk->k", data.weight, matrix, matrix)
    last, first = (
        square + np.bincount(data.label, data.weight * (shift + label_proba) ** 2, len(square))
        for shift in (np.pi, 1)  # whole numbers of certain predictions would be shared by chance
    )
    return np.lexsort((last.round(12), first.round(12)))


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


def check_can_be_split(data: ClassData | ForecastData) -> None:
    """Refuse a single sample: at least one is fitted and another one scored."""
    if len(data.weight) < 2:
        raise ValueError(
            "X must hold at least 2 samples of positive weight, to fit on one and score the other; "
            "found 1 sample. Choose a recalibrator yourself, or collect more."
        )
