"""The test of calibration for data that arrive over time, at which one may look at any time."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, clone

from .._data import ClassData, ForecastData, check_forecasts, check_predictions
from .._inputs.annotations import Estimator
from .._inputs.arrays import ArrayLike
from .._inputs.probabilities import is_forecast
from .._inputs.scikit_learn import IntegerInterval, Interval, check_feature_names, fit_context
from .._numerics.vasicek import log_likelihood
from ..recalibration import (
    InterceptRecalibrator,
    SigmoidRecalibrator,
    TemperatureRecalibrator,
    VectorScalingRecalibrator,
)
from ._base import HypothesisTest, as_p_value, check_test_input, delete_results

# Share of the predictions as they are in what they are compared with.
_SHARE_OF_PREDICTIONS = 0.01

# A recalibrator is fitted anew when this share of its window is new, but not for fewer samples.
_MIN_NEW_SAMPLES = 50
_SHARE_NEW = 0.1

# Numbers of bins within which a density that bets on PIT values is constant.
_BETS_ON_FORECASTS = (2, 4, 10)


@dataclass(eq=False, repr=False)
class SequentialCalibrationTest(HypothesisTest):
    r"""Test of calibration that may be looked at after every batch, and stopped at any time.

    For a calibrated model, the probability that `p_value_` is ever at most :math:`\alpha` is at
    most :math:`\alpha`, however often one looks. The test bets: recalibrators that were fitted on
    the past predict each batch, too. If they are better than the model, it was miscalibrated.

    Parameters
    ----------
    recalibrators : list of recalibrators, default=None
        What bets against probabilities. By default a temperature, an intercept, and a sigmoid (of
        two classes) or vector scaling. For forecasts of a number, None: histograms bet on them.

    windows : tuple of int, default=(500, 10000)
        Numbers of latest samples on which each recalibrator is fitted: short windows find a drift
        soon, long ones small errors.

    correlation : float in [0, 1), default=0.0
        Correlation ρ of the assets of any two debtors, in the one-factor model of Vasicek: 0 for
        independent labels. Above 0, the labels of a batch share one factor, and those of different
        batches none: take all debtors of a period as one batch. For two classes.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in the first
        `y`.

    Attributes
    ----------
    p_value_ : float
        The anytime-valid p-value, in (0, 1]: one over the largest e-value so far.

    e_value_ : float
        The evidence against calibration now, with an expectation of at most 1 for a calibrated
        model.

    log_e_value_ : float
        Its logarithm, which does not overflow.

    n_seen_ : int
        Number of samples so far.

    history_ : dict of str to list
        "n_seen", "log_e_value" and "p_value" after each call of `partial_fit`.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationTest : More powerful, for a fixed number of samples.

    Notes
    -----
    Let :math:`q_s` be a prediction that is made from :math:`p_s` and from what was seen before.
    If the model is calibrated, each factor of

    .. math:: \prod_{s = t_0}^{t} \frac{q_s(y_s)}{p_s(y_s)}

    has conditional expectation of at most 1: the product is a supermartingale, and by Ville's
    inequality it ever exceeds :math:`1/\alpha` with a probability of at most :math:`\alpha` [1]_
    [2]_. The same holds for averages of such products. The e-value is the average over the
    recalibrators and windows, and over the batch with which the bets begin, with weight :math:`1/(k
    (k + 1))` for the k-th. Before the first fit :math:`q = p`. :math:`q_s` is 0.99 times the
    recalibrated prediction plus 0.01 times :math:`p_s`.

    Forecasts of a number are tested by their PIT values [2]_: the factor is a density, which is
    constant within 2, 4 or 10 bins, at the PIT value; where the PIT value is uniform between two
    bounds, as for counts and ensembles, it is the mean density there. So nothing is drawn, and the
    expectation is 1 exactly.

    Within a batch the samples are taken in their order, and recalibrators are fitted anew when
    their window has changed by a tenth, but by at least 50 samples. The order must not depend on
    the labels. After a label of probability 0 the e-value is infinite, and the p-value the smallest
    positive number.

    E-values of several sites combine to their product if the sites are independent, else to their
    mean [3]_.

    Labels must be independent given the predictions and the past, or their batch must follow the
    one-factor model: with a correlation of 0, the test rejects calibrated predictions if labels of
    a batch share a cause, as defaults of one year do. With a correlation, the factor of a batch is
    the ratio of the likelihoods of all its labels, :math:`\int \prod_s q_s(y_s \mid z) \, d\Phi(z)
    / \int \prod_s p_s(y_s \mid z) \, d\Phi(z)` with :math:`p_s(1 \mid z) = \Phi((\Phi^{-1}(p_s) -
    \sqrt{\rho} z) / \sqrt{1 - \rho})`, and bets begin with the second batch. Weights are not
    supported. The cost is that of the fits; memory is that of the longest window.

    References
    ----------
    .. [1] Shafer and Vovk (2019). Game-Theoretic Foundations for Probability and Finance. Wiley.
       :doi:`10.1002/9781118548035`
    .. [2] Arnold, Henzi and Ziegel (2023). Sequentially valid tests for forecast calibration.
       Annals of Applied Statistics. :doi:`10.1214/22-AOAS1697`
    .. [3] Vovk and Wang (2021). E-values: Calibration, combination and applications. Annals of
       Statistics. :doi:`10.1214/20-AOS2020`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import SequentialCalibrationTest
    >>> rng = np.random.default_rng(0)
    >>> test = SequentialCalibrationTest(labels=[0, 1])
    >>> for week in range(30):
    ...     proba = rng.random(100)
    ...     truth = proba if week < 10 else proba**2  # drift
    ...     test = test.partial_fit(proba, (rng.random(100) < truth).astype(int))
    ...     if test.p_value_ <= 0.01:
    ...         break
    >>> week
    12
    """

    _parameter_constraints = {
        "recalibrators": [list, tuple, None],
        "windows": [tuple, list],
        "correlation": [Interval(Real, 0, 1, closed="left")],
    }

    recalibrators: Sequence[Estimator] | None = None
    _: KW_ONLY
    windows: Sequence[int] = (500, 10000)
    correlation: float = 0.0
    labels: ArrayLike | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget what was seen, and take a first batch.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predicted probabilities; one-dimensional ones are of the last class. Or forecasts.

        y : array-like of shape (n_samples,)
            Labels, or outcomes.

        Returns
        -------
        self : object
            The test.
        """
        delete_results(self)
        return self.partial_fit(X, y)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Take a batch of predictions and what became of them.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes), or forecast
            Predicted probabilities; one-dimensional ones are of the last class. Or forecasts.

        y : array-like of shape (n_samples,)
            Labels, or outcomes.

        Returns
        -------
        self : object
            The test.
        """
        if not hasattr(self, "n_seen_"):
            batch = check_test_input(self, X, y, None)
            self._initialize(batch)
        else:
            batch = self._check_later(X, y)
        for bettor in self._bettors:
            bettor.begin(len(self.history_["n_seen"]))
        step = batch.n_samples if self.correlation > 0 else _MIN_NEW_SAMPLES
        for start in range(0, batch.n_samples, step):
            self._bet(batch.take(slice(start, start + step)))
        self.n_seen_ += batch.n_samples
        self._record()
        return self

    def _check_later(self, X: ArrayLike, y: ArrayLike) -> ClassData | ForecastData:
        """A batch after the first one, which must be like it."""
        if is_forecast(X) == hasattr(self, "classes_"):
            kind = "probabilities" if hasattr(self, "classes_") else "forecasts of a number"
            raise ValueError(
                f"X must hold {kind}, as the first batch did; found {type(X).__name__}. Call fit "
                "to begin anew."
            )
        if is_forecast(X):
            return check_forecasts(y, X, names=("y", "X"))
        check_feature_names(self, X, reset=False)
        n_columns = int(np.prod(np.shape(X)[1:]))
        if n_columns != self.n_features_in_:
            raise ValueError(
                f"X must have as many columns as in the first batch, {self.n_features_in_}; found "
                f"{n_columns}. Call fit to begin anew."
            )
        return check_predictions(y, X, labels=self.classes_, names=("y", "X"))

    def _initialize(self, batch: ClassData | ForecastData) -> None:
        check_windows(self.windows)
        if self.correlation > 0 and (batch.is_forecast or not batch.is_binary):
            raise ValueError(
                f"correlation must be 0 except for two classes; found {self.correlation:g}. Test "
                "one of several classes, y == class, with its column."
            )
        self.n_seen_, self._largest = 0, 0.0
        self.history_: dict[str, list] = {"n_seen": [], "log_e_value": [], "p_value": []}
        self._past = tuple(column[:0] for column in read_columns(batch))
        self._bettors = list(self._make_bettors(batch))

    def _make_bettors(self, batch: ClassData | ForecastData) -> Iterator[Any]:
        recalibrators = self.recalibrators
        if batch.is_forecast:
            if recalibrators is not None:
                raise ValueError(
                    "recalibrators must be None for forecasts of a number, on which histograms "
                    f"bet; found {recalibrators!r:.80}. Leave them out."
                )
            for n_bins, window in itertools.product(_BETS_ON_FORECASTS, self.windows):
                yield BettingHistogram(n_bins, window)
            return
        if recalibrators is None:
            last = SigmoidRecalibrator() if batch.is_binary else VectorScalingRecalibrator()
            recalibrators = [TemperatureRecalibrator(), InterceptRecalibrator(), last]
        are_objects = [hasattr(r, "fit") and not isinstance(r, type) for r in recalibrators]
        if not are_objects or not all(are_objects):
            raise ValueError(
                "recalibrators must hold recalibrators, at least one, such as "
                f"[TemperatureRecalibrator()]; found {recalibrators!r:.80}. Pass objects, or None."
            )
        for recalibrator, window in itertools.product(recalibrators, self.windows):
            fresh = clone(recalibrator).set_params(labels=batch.classes)
            yield BettingRecalibrator(fresh, window, self.correlation)

    def _bet(self, batch: ClassData | ForecastData) -> None:
        """Bet on a few samples, and learn from them."""
        for bettor in self._bettors:
            bettor.bet(batch)
        columns = zip(self._past, read_columns(batch), strict=True)
        longest = max(self.windows)
        self._past = tuple(np.concatenate(pair)[-longest:] for pair in columns)
        for bettor in self._bettors:
            bettor.learn(*self._past, batch.n_samples)

    def _record(self) -> None:
        """The evidence after a batch."""
        n_batches = len(self.history_["n_seen"]) + 1
        waiting = -np.log(n_batches + 1)  # the weight of the batches yet to come
        logs = [np.logaddexp(bettor.log_wealth, waiting) for bettor in self._bettors]
        self.log_e_value_ = float(logsumexp(logs) - np.log(len(logs)))
        with np.errstate(over="ignore"):
            self.e_value_ = float(np.exp(self.log_e_value_))
        self._largest = max(self._largest, self.log_e_value_)
        self.p_value_ = as_p_value(np.exp(-self._largest))
        self.history_["n_seen"].append(self.n_seen_)
        self.history_["log_e_value"].append(self.log_e_value_)
        self.history_["p_value"].append(self.p_value_)


def read_columns(batch: ClassData | ForecastData) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions and labels of classes, or the bounds of PIT values, (n, ...) each."""
    if batch.is_forecast:
        return batch.forecast.pit_bounds(batch.value)
    return batch.proba, batch.label


class Bettor:
    """A player who bets on the next labels by the past ones, from any batch on."""

    log_wealth = -np.inf

    def begin(self, k: int) -> None:
        """The bet that begins with batch k joins those that run, with the weight it has."""
        self.log_wealth = float(np.logaddexp(self.log_wealth, -np.log((k + 1) * (k + 2))))


class BettingHistogram(Bettor):
    """A density of PIT values that is constant within bins, each with one half sample more.

    A PIT value that is uniform between two bounds multiplies the stake by the mean density there.
    """

    def __init__(self, n_bins: int, window: int) -> None:
        self.window = window
        self.density = np.ones(n_bins)

    def bet(self, batch: ForecastData) -> None:
        share = self._shares(*read_columns(batch))
        self.log_wealth += float(np.sum(np.log(share @ self.density)))

    def learn(self, low: np.ndarray, high: np.ndarray, _: int) -> None:
        count = self._shares(low[-self.window :], high[-self.window :]).sum(axis=0) + 0.5
        self.density = count / count.mean()

    def _shares(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The share of each interval that lies in each bin, (n, n_bins)."""
        n_bins = len(self.density)
        edges = np.arange(n_bins + 1) / n_bins
        within = np.clip(edges, low[:, None], high[:, None])
        length = np.where(high > low, high - low, 1.0)[:, None]
        is_in_bin = np.clip(np.floor(low * n_bins), 0, n_bins - 1)[:, None] == np.arange(n_bins)
        return np.where((high > low)[:, None], np.diff(within, axis=1) / length, is_in_bin)


class BettingRecalibrator(Bettor):
    """A recalibrator that bets on what it has learned."""

    def __init__(self, recalibrator: BaseEstimator, window: int, correlation: float = 0.0) -> None:
        self.recalibrator = recalibrator
        self.window = window
        self.correlation = correlation
        self.n_new = 0  # samples since the last fit
        self.is_fitted = False

    def bet(self, batch: ClassData) -> None:
        rows = np.arange(len(batch.label))
        predicted = batch.simplex[rows, batch.label]
        if (predicted == 0).any():
            self.log_wealth = np.inf
        if not self.is_fitted or np.isinf(self.log_wealth):
            return
        recalibrated = self.recalibrator.predict_proba(batch.proba)[rows, batch.label]
        mixed = (1 - _SHARE_OF_PREDICTIONS) * recalibrated + _SHARE_OF_PREDICTIONS * predicted
        reached = self._log_likelihood(mixed, batch)
        self.log_wealth += reached - self._log_likelihood(predicted, batch)

    def _log_likelihood(self, proba: np.ndarray, batch: ClassData) -> float:
        """log P(labels), where each has this probability (n,)."""
        if self.correlation > 0:
            return log_likelihood(proba, batch.label == 1, self.correlation)
        return float(np.sum(np.log(proba)))

    def learn(self, proba: np.ndarray, label: np.ndarray, n_new: int) -> None:
        """Fit to the last samples, if enough of them are new."""
        self.n_new += n_new
        n = min(len(label), self.window)
        if self.n_new < max(_MIN_NEW_SAMPLES, _SHARE_NEW * n) and self.is_fitted:
            return
        self.recalibrator.fit(proba[-n:], self.recalibrator.labels[label[-n:]])
        self.n_new, self.is_fitted = 0, True


def check_windows(windows: Sequence[int]) -> None:
    """Each window is a number of samples from which something can be learned."""
    is_size = IntegerInterval(_MIN_NEW_SAMPLES).is_satisfied_by
    if len(windows) == 0 or not all(map(is_size, windows)):
        raise ValueError(
            f"windows must be whole numbers of at least {_MIN_NEW_SAMPLES} samples; found "
            f"{windows!r}. The default is (500, 10000)."
        )
