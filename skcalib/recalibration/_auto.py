"""The choice among recalibrators by cross-validation."""

import reprlib
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.constraints import IntegerInterval
from .._inputs.predictions import Predictions
from .._inputs.scikit_learn import StrOptions
from .._numerics.proper import PROPER_LOSSES
from ._averaging import weights_in_average
from ._base import Recalibrator, clone_for, no_formula
from ._cross_fitting import aligned_proba
from ._habits import recalibrator_named
from ._identity import IdentityRecalibrator
from ._languages import Language
from ._registry import default_candidates, slow_candidates


class AutoRecalibrator(Recalibrator):
    r"""An average of recalibrators, weighted by a cross-validated proper score.

    It tries several recalibrators, and none at all: each is fitted on parts of the calibration data
    and scored on the rest, and then on all of it. The calibrated probability is the mean of what
    they say, with weights that tell how likely each is the best. With few samples several share the
    weight, with many one of them has it, and calibrated predictions mostly stay as they are.

    Parameters
    ----------
    candidates : list of (str, estimator), default=None
        Names and recalibrators, or searches over their parameters. No recalibration at all,
        "none", is always among the candidates. By default, for two classes temperature, sigmoid,
        spline and isotonic; for more temperature, isotonic, vector and matrix scaling, Dirichlet,
        but the last two only where they do not take too long.

    scoring : {"log_loss", "brier"}, default="log_loss"
        The proper score that decides.

    average : bool, default=True
        False: only one candidate is taken, that of the surest gain, and none unless it gains more
        than the standard error of the gain.

    n_folds : int, default=5
        The number of folds, at most that of the samples. Samples are dealt to the folds at random
        within each class, in a way that depends neither on their order nor on a seed.

    n_jobs : int, default=None
        Number of jobs that fit candidates to folds; None means 1 unless in a
        :obj:`joblib.parallel_backend` context.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.
        Needed if a class does not occur in the calibration data.

    Attributes
    ----------
    weights_ : dict
        The candidates that entered, by name, with their weights, which sum to 1.

    recalibrators_ : dict
        The same candidates, fitted on all samples.

    best_name_ : str
        The name of the candidate of the largest weight.

    best_recalibrator_ : estimator
        The same candidate, fitted on all samples.

    results_ : dict
        A table, ready for :class:`pandas.DataFrame`. It has a row for each candidate: its "name",
        its mean "loss" on samples that it was not fitted on, its "gain" over no recalibration, the
        standard error of the gain, "gain_error", and its "weight" in the average.

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
    RecalibratedClassifier : A classifier together with a recalibrator.

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
    whose weight would be below 0.01 are left out. To choose one candidate loses more where several
    are almost as good, and most where a wrong one seems best by chance (measured in the guide
    "Which recalibrator should I take?").

    With ``average=False`` the candidate is taken whose gain over no recalibration, less the
    standard error of the gain, is largest. The candidates share folds, so this is the standard
    error of a paired difference. It ignores that fits to overlapping parts of the data depend on
    each other: as an error of the gain of the final fit it is mostly 1.2 to 1.6 times too small.

    The Brier score of two classes is :math:`(y - p)^2`, of more the sum of that over the classes.
    The cost is that of the candidates, times one more than the number of folds. Matrix scaling and
    Dirichlet multiply matrices of all classes. With n samples and K classes they are left out by
    default if :math:`n K^2` exceeds 5e8, as with 2000 samples of 500 classes or more: they would
    take minutes or hours. Pass them as `candidates` to try them all the same.

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
    AutoRecalibrator()  # 0.38 temperature + 0.31 sigmoid + 0.31 spline
    >>> for name, loss, weight in zip(*(auto.results_[key] for key in ("name", "loss", "weight"))):
    ...     print(f"{name:12} {loss:.4f} {weight:.2f}")
    none         0.5359 0.00
    temperature  0.4779 0.38
    sigmoid      0.4782 0.31
    spline       0.4782 0.31
    isotonic     0.4823 0.00
    """

    _parameter_constraints: dict = {
        **Recalibrator._parameter_constraints,
        "candidates": "no_validation",
        "scoring": [StrOptions(set(PROPER_LOSSES))],
        "average": ["boolean"],
        "n_folds": [IntegerInterval(2)],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        candidates: list | tuple | None = None,
        *,
        scoring: str = "log_loss",
        average: bool = True,
        n_folds: int = 5,
        n_jobs: int | None = None,
        labels: ArrayLike | None = None,
    ) -> None:
        self.candidates = candidates
        self.scoring = scoring
        self.average = average
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.labels = labels

    def _fit(self, predictions: Predictions) -> None:
        check_can_be_split(predictions)
        given: Any = self.candidates
        self.left_out_: list[str] = []
        if given is None:
            self.left_out_ = slow_candidates(len(predictions.label), len(predictions.classes))
            default = default_candidates(predictions.is_binary)
            given = [(name, default[name]) for name in default if name not in self.left_out_]
        candidates = {"none": IdentityRecalibrator(), **check_candidates(given)}
        data = fit_data(predictions)
        fold = deal_folds(predictions, self.n_folds)
        task = partial(_losses_of_fold, data=data, scoring=self.scoring)
        loss = out_of_fold_losses(task, candidates.values(), fold, self.n_jobs)
        names = list(candidates)
        self.results_, surest = results_of(names, loss, predictions.weight)
        weight = np.eye(len(names))[surest]
        if self.average:
            weight = weights_in_average(loss, predictions.weight, _any_order(predictions))
        self.results_["weight"] = weight
        entered = [names[c] for c in np.flatnonzero(weight)]
        self.weights_ = dict(zip(entered, weight[weight > 0].tolist(), strict=True))
        self.recalibrators_ = {name: fitted_on_rows(candidates[name], data) for name in entered}
        self.best_name_ = names[int(weight.argmax())]
        self.best_recalibrator_ = self.recalibrators_[self.best_name_]
        smooth = [getattr(one, "_is_smooth", False) for one in self.recalibrators_.values()]
        self._is_smooth = bool(weight[weight > 0] @ smooth > 0.5)

    def _map(self, proba: np.ndarray) -> np.ndarray:
        if proba.ndim == 1:
            proba = np.column_stack([1 - proba, proba])
        mapped = (
            self.weights_[name] * aligned_proba(recalibrator, proba, self.classes_)
            for name, recalibrator in self.recalibrators_.items()
        )
        return np.sum(list(mapped), axis=0)

    def _write(self, language: Language, proba: list[str]) -> list[str]:
        alone = self._alone
        if alone is self or not isinstance(alone, Recalibrator):
            raise no_formula(alone)
        return alone._write(language, proba)

    @property
    def _alone(self) -> Any:
        """The recalibrator that has all the weight; itself, if there are several."""
        return self.best_recalibrator_ if len(self.weights_) == 1 else self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "weights_"):
            return text
        by_weight = sorted(self.weights_.items(), key=lambda pair: -pair[1])
        text += "  # " + " + ".join(f"{weight:.2f} {name}" for name, weight in by_weight)
        return text + f"; not tried: {', '.join(self.left_out_)}" * bool(self.left_out_)


def out_of_fold_losses(task: Any, candidates: Any, fold: np.ndarray, n_jobs: int | None) -> Any:
    """The loss of each sample under each candidate, fitted without its fold, (c, n).

    The task gets a candidate and the mask of the samples to score, and returns their losses.
    """
    n_folds = fold.max() + 1
    parts = Parallel(n_jobs=n_jobs)(
        delayed(task)(candidate, is_test=fold == k)
        for candidate in candidates
        for k in range(n_folds)
    )
    losses = np.empty((len(candidates), len(fold)))
    for place, part in enumerate(parts):
        row, k = divmod(place, n_folds)
        losses[row, fold == k] = part
    return losses


def results_of(names: list[str], loss: np.ndarray, weight: np.ndarray) -> tuple[dict, int]:
    """The table of losses (c, n) and gains over the first candidate, and the surest gain."""
    gain = loss[0] - loss
    mean_gain = gain @ weight
    with np.errstate(invalid="ignore"):  # an infinite loss
        gain_error = np.sqrt((gain - mean_gain[:, None]) ** 2 @ weight**2)
    results = {"name": names, "loss": loss @ weight, "gain": mean_gain, "gain_error": gain_error}
    surest = mean_gain - gain_error
    return results, int(np.argmax(np.where(np.isfinite(surest), surest, -np.inf)))


class FitData(NamedTuple):
    """The data that candidates are fitted to and scored on; no weights if they are equal."""

    X: np.ndarray  # (n, K)
    y: np.ndarray  # (n,)
    label: np.ndarray  # (n,), index into classes
    weight: np.ndarray | None  # (n,), near 1
    classes: np.ndarray  # (K,)


def fit_data(predictions: Predictions) -> FitData:
    classes, label = predictions.classes, predictions.label
    weight = predictions.weight / predictions.share_of_one_sample
    varies = np.ptp(weight) > 0
    return FitData(predictions.matrix, classes[label], label, weight if varies else None, classes)


def fitted_on_rows(recalibrator: Any, data: FitData, rows: Any = slice(None)) -> Any:
    weights = {} if data.weight is None else {"sample_weight": data.weight[rows]}
    return clone_for(recalibrator, data.classes).fit(data.X[rows], data.y[rows], **weights)


def _losses_of_fold(
    recalibrator: Any, *, data: FitData, is_test: np.ndarray, scoring: str
) -> np.ndarray:
    fitted = fitted_on_rows(recalibrator, data, ~is_test)
    proba = aligned_proba(fitted, data.X[is_test], data.classes)
    if len(data.classes) == 2:
        proba = proba[:, 1]
    return PROPER_LOSSES[scoring](proba, data.label[is_test])


def deal_folds(predictions: Predictions, n_folds: int) -> np.ndarray:
    """The fold of each sample (n,), dealt at random within each class, whatever the row order."""
    label = predictions.label
    dealt = np.random.default_rng(0).permutation(_any_order(predictions))
    dealt = dealt[np.argsort(label[dealt], kind="stable")]
    fold = np.empty(len(dealt), dtype=np.intp)
    fold[dealt] = np.arange(len(dealt)) % n_folds
    return fold


def _any_order(predictions: Predictions) -> np.ndarray:
    """The samples (n,), sorted by all that is known of them."""
    return np.lexsort((predictions.label, predictions.weight, *predictions.matrix.T))


def check_candidates(candidates: Any, method: str = "predict_proba") -> dict[str, Any]:
    """Names and recalibrators, which are asked for `fit` and the method, as a dictionary."""

    def example(meant: Any) -> str:
        name = meant if isinstance(meant, str) else "my choice"
        return f"Pass a list such as [({name!r}, {recalibrator_named(meant, method)})]."

    if not isinstance(candidates, list | tuple):
        raise ValueError(
            "candidates must be a list of pairs of a name and a recalibrator, or None; found "
            f"{reprlib.repr(candidates)}. {example(candidates)}"
        )
    checked: dict[str, Any] = {}
    for item in candidates:
        if not (isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str)):
            raise ValueError(
                "candidates must be pairs of a name and a recalibrator; found "
                f"{reprlib.repr(item)}. {example(item)}"
            )
        name, recalibrator = item
        is_estimator = hasattr(recalibrator, "fit") and hasattr(recalibrator, method)
        if isinstance(recalibrator, type) or not is_estimator:
            raise ValueError(
                f"candidates must be objects with the methods fit and {method}; found "
                f"{reprlib.repr(recalibrator)} under the name {name!r}. {example(name)}"
            )
        if name == "none" or name in checked:
            raise ValueError(
                "candidates must have different names, none of them 'none', which stands for no "
                f"recalibration; found {name!r}{' twice' * (name in checked)}. Choose another name."
            )
        checked[name] = recalibrator
    return checked


def check_can_be_split(predictions: Predictions) -> None:
    """There must be one sample to fit and another one to score."""
    if len(predictions.weight) < 2:
        raise ValueError(
            "X must hold at least 2 samples of positive weight, to fit on one and score the other; "
            "found 1 sample. Choose a recalibrator yourself, or collect more."
        )
