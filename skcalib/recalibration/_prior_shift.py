"""Probabilities moved to a population with other class frequencies."""

from dataclasses import KW_ONLY
from numbers import Real
from typing import NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._data import ClassData
from .._inputs.arrays import ArrayLike, as_array, format_values
from .._inputs.checks import check_predict_input, check_sample_weight
from .._inputs.scikit_learn import Interval, estimator_class
from .._inputs.warnings import warn
from .._numerics.newton import LOSS_RTOL, line_search, nonnegative_step
from ._base import Recalibrator, to_matrix
from ._maps import ClassFactors

# Prevalences sum to 1 up to this.
_PREVALENCE_SUM_ATOL = 1e-6

# Classes that were rarer make numbers that overflow.
_MIN_PREVALENCE = 1e-100

# Calibrated predictions give the warning about their mean with at most this probability.
_FALSE_ALARM = 1e-4

_PREVALENCE = ["array-like", dict, Interval(Real, 0, 1, closed="both"), None]


@estimator_class()
class PriorShiftRecalibrator(Recalibrator):
    r"""Moves probabilities to a population in which the classes have another prevalence.

    If the features given the class are distributed alike in both populations (prior shift, or label
    shift), the new probabilities follow from the two prevalences. No labels of the new population
    are needed: its prevalence is known, or :meth:`adapt` estimates it from unlabelled predictions.

    Parameters
    ----------
    prevalence : array-like of shape (n_classes,), dict or float, default=None
        The prevalence of each class in the new population: in the order of the columns of `X`, as a
        dictionary, or for two classes that of the last one. None leaves predictions as they are
        until :meth:`adapt`.

    source_prevalence : array-like of shape (n_classes,), dict or float, default=None
        The prevalence in the old population, for which the predictions are calibrated; at least
        1e-100 for every class if predictions are moved. None uses the frequencies of the labels at
        `fit`.

    pseudo_count : float, default=1.0
        Number of additional samples in :meth:`adapt`, distributed over the classes as in the old
        population. 0 is maximum likelihood.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    prevalence_ : ndarray of shape (n_classes,)
        The prevalence in the new population; before :meth:`adapt`, by default that in the old one.

    source_prevalence_ : ndarray of shape (n_classes,)
        The prevalence of the classes in the old population.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    Warns
    -----
    UserWarning
        If predictions are moved without a `source_prevalence`, and the frequencies of the labels at
        `fit` differ from the mean predictions by more than chance.

    ConvergenceWarning
        If :meth:`adapt` has not reached the maximum; the last step is kept.

    See Also
    --------
    InterceptRecalibrator : The same map, learned from labels of the new population.
    ClosedTestingRecalibrator : How much to change, if there are such labels.

    Notes
    -----
    With prevalences :math:`\pi` of the old and :math:`\pi'` of the new population, probabilities p
    become

    .. math:: p'_k = \frac{p_k \pi'_k / \pi_k}{\sum_l p_l \pi'_l / \pi_l}.

    If the classifier was trained on balanced classes, pass the balanced prevalence as
    `source_prevalence`.

    **The estimate** of :meth:`adapt` is the likeliest :math:`\pi'` [1]_, which maximises

    .. math:: \sum_i w_i \log \sum_k \pi'_k p_{ik} / \pi_k + \gamma \sum_k \pi_k \log \pi'_k,

    where weights sum to 1 and γ is `pseudo_count` times :math:`\sum_i w_i^2`, or 1/n for equal
    weights. Newton's method takes some ten steps of :math:`O(n K^2)`. The estimate is consistent if
    p is calibrated in the old population, so recalibrate first [2]_.

    A probability of 0 stays 0. So does one of 1, unless its class has prevalence 0 in the new
    population.

    References
    ----------
    .. [1] Saerens, Latinne and Decaestecker (2002). Adjusting the Outputs of a Classifier to New a
       Priori Probabilities. Neural Computation. :doi:`10.1162/089976602753284446`
    .. [2] Alexandari, Kundaje and Shrikumar (2020). Maximum Likelihood with Bias-Corrected
       Calibration is Hard-To-Beat at Label Shift Adaptation. ICML. :arxiv:`1901.06852`

    Examples
    --------
    Half of the samples of a case-control study are cases, one in twenty patients is:

    >>> from skcalib.recalibration import PriorShiftRecalibrator
    >>> proba, y = [0.2, 0.8, 0.5, 0.5], [0, 1, 0, 1]
    >>> recalibrator = PriorShiftRecalibrator(prevalence=0.05).fit(proba, y)
    >>> recalibrator.predict_proba([0.5, 0.95])[:, 1]
    array([0.05, 0.5 ])

    The new prevalence, from predictions alone:

    >>> import numpy as np
    >>> from skcalib.datasets import make_temperature_family
    >>> y, proba = make_temperature_family(5000, random_state=0)
    >>> recalibrator = PriorShiftRecalibrator().fit(proba, y)
    >>> is_new = np.random.default_rng(0).random(5000) < np.where(y == 1, 0.1, 0.9)  # one in ten
    >>> recalibrator.adapt(proba[is_new]).prevalence_.round(2)
    array([0.9, 0.1])
    """

    _parameter_constraints = {"prevalence": _PREVALENCE, "source_prevalence": _PREVALENCE}

    prevalence: ArrayLike | dict | None = None
    _: KW_ONLY
    source_prevalence: ArrayLike | dict | None = None
    pseudo_count: float = 1.0

    def adapt(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the prevalence of a new population from its unlabelled predictions.

        From then on, predictions are moved to it. Another call, for another population, starts
        anew.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities that the classifier predicts for samples of the new population, not moved
            yet. The last step of a pipeline gets them by
            ``pipeline[-1].adapt(pipeline[:-1].transform(X))``.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        self : object
            The adapted recalibrator.
        """
        proba = to_matrix(check_predict_input(self, X))
        if self.prevalence is not None:
            raise ValueError(
                f"prevalence must be None if it is to be estimated; found {self.prevalence!r}. "
                "Leave prevalence out, or do not call adapt."
            )
        self._check_source()
        self._warn_of_gap()
        weight = np.ones(len(proba))
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, len(proba))
        weight = weight / weight.max()
        weight /= weight.sum()
        self.prevalence_ = self._estimate(proba, weight)
        return self

    def _estimate(self, proba: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The likeliest prevalence; pseudo-counts are samples that are certain of their class."""
        share = self.pseudo_count * float(weight @ weight)
        proba = np.vstack([proba, np.eye(proba.shape[1])])
        weight = np.append(weight, share * self.source_prevalence_) / (1 + share)
        used = weight > 0
        proba, weight = proba[used], weight[used]
        density = proba / self.source_prevalence_
        density /= density.max(axis=1, keepdims=True)
        shares = likeliest_shares(
            np.ascontiguousarray(density.T), weight, self.source_prevalence_.copy()
        )
        if shares.gap > _GAP:
            warn(
                "The estimate of the prevalence has not reached its optimum; the last step is "
                "kept. Its mean log-likelihood is below the maximum by up to "
                f"{shares.gap:.1e}. Set a positive pseudo_count, or merge rare classes.",
                ConvergenceWarning,
            )
        return shares.share

    def _fit(self, data: ClassData) -> None:
        classes = data.classes
        observed = np.bincount(data.label, data.weight, len(classes))
        self.source_prevalence_ = observed / observed.sum()
        self._gap = _gap_of_means(data, observed)
        if self.source_prevalence is not None:
            self._gap = ""
            self.source_prevalence_ = _as_prevalence(
                self.source_prevalence, classes, "source_prevalence"
            )
        self.prevalence_ = self.source_prevalence_
        if self.prevalence is not None:
            self.prevalence_ = _as_prevalence(self.prevalence, classes, "prevalence")
            self._check_source()
            self._warn_of_gap()

    def _warn_of_gap(self) -> None:
        if self._gap:
            warn(
                f"The predictions at fit are not calibrated: {self._gap}. Recalibrate before this "
                "step, or pass the prevalence for which the predictions are calibrated as "
                "source_prevalence."
            )

    def _check_source(self) -> None:
        least = self.source_prevalence_.min()
        if least < _MIN_PREVALENCE:
            rare = self.classes_[self.source_prevalence_ < _MIN_PREVALENCE]
            raise ValueError(
                f"source_prevalence must be at least {_MIN_PREVALENCE} for every class; found "
                f"{least:.3g} for {format_values(rare)}. Pass the prevalence in the population for "
                "which the predictions are calibrated, or fit on labels of all classes."
            )

    def _map(self, proba: np.ndarray) -> np.ndarray:
        matrix = to_matrix(proba)
        if np.array_equal(self.prevalence_, self.source_prevalence_):
            return matrix.copy()
        new, product = self.prevalence_, matrix * (self.prevalence_ / self.source_prevalence_)
        total = product.sum(axis=1, keepdims=True)
        return np.divide(product, total, out=np.tile(new, (len(matrix), 1)), where=total > 0)

    def _state_map(self) -> ClassFactors:
        new, old = self.prevalence_, self.source_prevalence_
        ratio = np.divide(new, old, out=np.ones(len(new)), where=new != old)
        return ClassFactors(ratio, new)


def _as_prevalence(value: object, classes: np.ndarray, name: str) -> np.ndarray:
    """The prevalence of each class (K,), from one of the forms in which it can be given."""
    names = classes.tolist()
    if isinstance(value, dict):
        if set(value) != set(names):
            raise ValueError(
                f"{name} must have one entry for each class, {format_values(names)}; found entries "
                f"for {format_values(list(value))}. Name every class once."
            )
        value = [value[label] for label in names]
    elif isinstance(value, Real):
        if len(names) != 2:
            raise ValueError(
                f"{name} must be an array or a dictionary for more than two classes; found the "
                f"number {value!r} and {len(names)} classes. Pass one number for each class."
            )
        value = [1 - float(value), float(value)]
    array = as_array(value, name)
    if array.dtype.kind not in "biuf" or array.shape != (len(names),):
        raise ValueError(
            f"{name} must hold one number for each of the {len(names)} classes; found type "
            f"{array.dtype} and shape {array.shape}. Pass them in the order of the columns."
        )
    prevalence = array.astype(np.float64)
    total = float(prevalence.sum())
    if not ((prevalence >= 0).all() and abs(total - 1) <= _PREVALENCE_SUM_ATOL):
        raise ValueError(
            f"{name} must not be negative and must sum to 1; found {format_values(prevalence)}, "
            f"with sum {total:.6g}. Divide counts by their sum."
        )
    return prevalence / total


def _gap_of_means(data: ClassData, observed: np.ndarray) -> str:
    """The class whose share of the labels differs most from the mean prediction, if by too much.

    By Bernstein's inequality, so that few samples raise no false alarm either.
    """
    proba, weight = data.matrix, data.weight
    expected = weight @ proba
    gap = np.abs(observed - expected)
    variance = weight**2 @ (proba * (1 - proba))
    exponent = np.log(2 * len(gap) / _FALSE_ALARM)
    single = exponent * weight.max() / 3
    excess = gap - single - np.sqrt(single**2 + 2 * exponent * variance)
    k = 1 if data.is_binary else int(np.argmax(excess))
    if excess[k] <= 0:
        return ""
    return (
        f"class {data.classes[k : k + 1].tolist()[0]!r} has the share {observed[k]:.3g} of "
        f"the labels, but the mean prediction {expected[k]:.3g}"
    )


# The fit ends when the loss is above its minimum by at most the first number, and a step does not
# halve that any more, or by at most the second one, which is rounding.
_GAP, _LEAST_GAP = 1e-12, 1e-15

_MAX_PREVALENCE_STEPS = 100

# Keeps the ratios of shares that the data do not determine, for shares above the second number.
_RIDGE, _SMALL_SHARE = 1e-12, 1e-6


class Shares(NamedTuple):
    """Shares x (K,), the loss −Σ_i w_i log Σ_k x_k d_ik, and its derivatives."""

    share: np.ndarray  # (K,), sums to 1
    loss: float
    slope: np.ndarray  # (K,), minus the gradient
    curvature: np.ndarray  # (K, K)

    @property
    def gap(self) -> float:
        """The loss is above its minimum by no more than this."""
        return max(float(self.slope.max()) - 1, 0.0)


def likeliest_shares(density: np.ndarray, weight: np.ndarray, start: np.ndarray) -> Shares:
    """The x (K,) with sum 1 of least loss for densities (K, n), or the last ones reached.

    The weights (n,) sum to 1; the start is positive with sum 1. Let D_k = Σ_i w_i d_ki / Σ_l x_l
    d_li. A step of EM replaces x_k by x_k D_k. At the minimum D_k ≤ 1, with equality where x_k > 0,
    and elsewhere max_k D_k − 1 bounds both the distance to the minimum and what EM would change.

    As EM needs thousands of steps where the classes overlap, the steps here are Newton's for the
    loss + (Σ_k x_k)²/2, whose minimum over x ≥ 0 sums to 1 by itself. O(nK²) a step.
    """

    def evaluate(share: np.ndarray) -> Shares:
        share = np.maximum(share, 0.0)
        share /= share.sum()
        mixed = share @ density
        with np.errstate(divide="ignore", invalid="ignore"):  # a row may have the probability 0
            ratio = density / mixed
            loss = -float(weight @ np.log(mixed))
        slope = (weight * ratio).sum(axis=1)  # D, more exact than a product with the weights
        ratio *= np.sqrt(weight)
        return Shares(share, loss, slope, ratio @ ratio.T)

    here, last = evaluate(start), np.inf
    for _ in range(_MAX_PREVALENCE_STEPS):
        if here.gap <= _LEAST_GAP or (here.gap <= _GAP and here.gap > last / 2):
            break
        last = here.gap
        ridge = np.diag(_RIDGE / np.maximum(here.share, _SMALL_SHARE))
        step = nonnegative_step(here.share, 1 - here.slope, 1 + here.curvature + ridge)
        promise, rounding = float((here.slope - 1) @ step), LOSS_RTOL * (1 + abs(here.loss))
        there = line_search(evaluate, here.share, step, here.loss, promise, rounding=rounding)
        here = evaluate(here.share * here.slope) if there is None else there
    return here
