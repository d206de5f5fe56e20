"""The power of a test against a miscalibration, and the number of labels that it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._inputs.annotations import Estimator
from .._inputs.arrays import ArrayLike
from .._inputs.drawing import draw_labels
from .._inputs.probabilities import check_probabilities
from .._inputs.scikit_learn import (
    Count,
    HasMethods,
    IntegerInterval,
    Interval,
    Parallel,
    RandomState,
    clone_instance,
    delay,
    validate_params,
)
from ._base import HypothesisTest
from ._calibration import CalibrationTest
from ._equivalence import EquivalenceTest

# The search begins with this many samples, and simulates this often at each doubling.
_MIN_SAMPLES = 16
_N_GLANCES = 25

# The curve is fitted this many times.
_N_ROUNDS = 5

_POWER_CONSTRAINTS: dict = {
    "test": [HasMethods(["fit", "get_params"]), None],
    "alpha": [Interval(Real, 0, 1, closed="neither")],
    "n_simulations": [Count(1)],
}


@dataclass(frozen=True, eq=False)
class RequiredSampleSize:
    """Number of samples that a test needs, and the search for it.

    Parameters
    ----------
    n_samples : int
        The number of samples with which the test has the power; 16 if fewer would do.

    power : float
        The power with that number of samples, by the curve that was fitted to the search.

    standard_error : float
        Standard error of the power.

    n_samples_searched : ndarray of shape (n_steps,)
        The numbers of samples that were simulated, ascending.

    powers : ndarray of shape (n_steps,)
        The share of simulations that were rejected with each of them.

    n_simulated : ndarray of shape (n_steps,)
        The number of simulations with each of them.

    See Also
    --------
    required_sample_size : The function that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import RequiredSampleSize
    >>> size = RequiredSampleSize(
    ...     150, 0.8, 0.02, np.array([128, 150, 256]), np.array([0.7, 0.8, 0.96]), np.full(3, 100)
    ... )
    >>> size.n_samples
    150
    """

    n_samples: int
    power: float
    standard_error: float
    n_samples_searched: np.ndarray
    powers: np.ndarray
    n_simulated: np.ndarray


@validate_params(
    _POWER_CONSTRAINTS | {"n_samples": [Count(1, 10**8)]}, prefer_skip_nested_validation=False
)
def power_of_test(
    y_proba: ArrayLike,
    true_proba: ArrayLike | Callable | Estimator,
    n_samples: int,
    *,
    test: HypothesisTest | None = None,
    alpha: float = 0.05,
    n_simulations: int = 500,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> float:
    r"""Probability with which a test finds a given miscalibration.

    Samples are simulated from your predictions, with labels drawn from what would be true, and
    tested.

    Parameters
    ----------
    y_proba : array-like of shape (n_predictions,) or (n_predictions, n_classes)
        Predictions such as the model makes; one-dimensional ones are of the last class. Each
        simulated sample is one of these rows, drawn with replacement.

    true_proba : array-like of the shape of `y_proba`, callable or estimator
        The probabilities that would be true where `y_proba` is predicted; a function of `y_proba`
        that returns them; or a fitted estimator whose `predict_proba` does, such as a recalibrator.

    n_samples : int
        Number of samples of each simulation.

    test : estimator, default=None
        A test with ``fit(X, y)`` and `p_value_`. It is cloned, and gets the classes 0, 1, … as
        `labels` and a `random_state`, if it has these. None means
        ``CalibrationTest(n_resamples=199)``.

    alpha : float in (0, 1), default=0.05
        The test rejects if the p-value is at most this.

    n_simulations : int, default=500
        Number of simulations.

    random_state : int, RandomState instance or None, default=None
        Seed of the simulations, for any `n_jobs`.

    n_jobs : int, default=None
        Number of jobs of joblib; see :obj:`joblib.parallel_backend`.

    Returns
    -------
    power : float
        The share of simulations in which the test rejects.

    See Also
    --------
    required_sample_size : Finds the number of samples for a given power.

    Notes
    -----
    With the power β and N simulations, the standard error is :math:`\sqrt{\beta (1 - \beta) / N}`.
    The cost is that of N tests. Pass enough rows to represent what the model predicts.

    Examples
    --------
    How often 200 labels show that 60 % happen where 50 % are predicted:

    >>> from skcalib.hypothesis_tests import CalibrationInTheLargeTest, power_of_test
    >>> test = CalibrationInTheLargeTest(alternative="greater", method="asymptotic")
    >>> power_of_test([0.5], [0.6], 200, test=test, random_state=0)
    0.9...
    """
    trials = Trials(y_proba, true_proba, test, alpha, random_state, n_jobs)
    return trials.rejections(n_samples, n_simulations) / n_simulations


@validate_params(
    _POWER_CONSTRAINTS
    | {
        "power": [Interval(Real, 0, 1, closed="neither")],
        "max_samples": [IntegerInterval(_MIN_SAMPLES)],
    },
    prefer_skip_nested_validation=False,
)
def required_sample_size(
    y_proba: ArrayLike,
    true_proba: ArrayLike | Callable | Estimator,
    *,
    test: HypothesisTest | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    max_samples: int = 100_000,
    n_simulations: int = 500,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> RequiredSampleSize:
    r"""Find how many labels a test needs to see a given miscalibration.

    Samples are simulated from your predictions, with labels drawn from what would be true, until
    the test rejects with the wanted probability.

    Parameters
    ----------
    y_proba : array-like of shape (n_predictions,) or (n_predictions, n_classes)
        Predictions such as the model makes; one-dimensional ones are of the last class. Each
        simulated sample is one of these rows, drawn with replacement.

    true_proba : array-like of the shape of `y_proba`, callable or estimator
        The probabilities that would be true where `y_proba` is predicted; a function of `y_proba`
        that returns them; or a fitted estimator whose `predict_proba` does, such as a recalibrator.

    test : estimator, default=None
        A test with ``fit(X, y)`` and `p_value_`. It is cloned, and gets the classes 0, 1, … as
        `labels` and a `random_state`, if it has these. None means
        ``CalibrationTest(n_resamples=199)``.

    power : float in (0, 1), default=0.8
        The probability with which the test is to reject; more than `alpha`.

    alpha : float in (0, 1), default=0.05
        The test rejects if the p-value is at most this.

    max_samples : int, default=100000
        Where the search ends with an error; at least 16.

    n_simulations : int, default=500
        Number of simulations near the solution, after 25 at each of 16, 32, 64, … samples.

    random_state : int, RandomState instance or None, default=None
        Seed of the simulations, for any `n_jobs`.

    n_jobs : int, default=None
        Number of jobs of joblib; see :obj:`joblib.parallel_backend`.

    Returns
    -------
    size : RequiredSampleSize
        With `n_samples`, the power and its standard error, and what was simulated.

    See Also
    --------
    power_of_test : The power for a given number of samples.
    sample_size_for_precision : For intervals of O:E ratio and slope of a given width.

    Notes
    -----
    The numbers of samples 16, 32, 64, … are simulated until the share of rejections reaches the
    `power`. Then, in five rounds, the curve :math:`\Phi(a + b \sqrt{n})` is fitted to the shares,
    and a fifth of the simulations is made where it crosses the `power`. With 500 simulations the
    standard error of the power is about 0.02, and that of the number of samples about 5 %. The cost
    is that of some 700 tests.

    Examples
    --------
    How many labels show that the logits are 1.5 times too large:

    >>> import numpy as np
    >>> from scipy.special import expit, logit
    >>> from skcalib.hypothesis_tests import SpiegelhalterTest, required_sample_size
    >>> y_proba = np.random.default_rng(0).random(1000)
    >>> test = SpiegelhalterTest(alternative="greater", method="asymptotic")
    >>> size = required_sample_size(
    ...     y_proba, lambda p: expit(logit(p) / 1.5), test=test, random_state=0
    ... )
    >>> bool(150 < size.n_samples < 250)
    True
    """
    if power <= alpha:
        raise ValueError(
            f"power must be more than alpha, with which calibrated models are rejected; found "
            f"power={power} and alpha={alpha}. The usual ones are 0.8 and 0.05."
        )
    trials = Trials(y_proba, true_proba, test, alpha, random_state, n_jobs)
    check_can_be_found(trials)
    n = _MIN_SAMPLES
    while (n_rejected := trials.rejections(n, _N_GLANCES)) < power * _N_GLANCES:
        if n == max_samples:
            raise _too_few(power, max_samples, f"{n_rejected} of {_N_GLANCES}")
        n = min(2 * n, max_samples)
    curve = trials.curve(power, float(n))
    for size in np.diff(np.linspace(0, n_simulations, _N_ROUNDS + 1).astype(int)).tolist():
        if size:
            trials.rejections(_clip_size(curve.middle, max_samples), size)
            curve = trials.curve(power, curve.middle)
    if curve.middle > max_samples:
        raise _too_few(power, max_samples, f"a share of {curve.evaluate(max_samples):.2f}")
    n_samples = _clip_size(curve.middle, max_samples)
    searched, rejected, simulated = trials.table()
    table = searched, rejected / simulated, simulated
    return RequiredSampleSize(n_samples, curve.evaluate(n_samples), curve.standard_error, *table)


class PowerCurve(NamedTuple):
    """power(n) = Φ(z + slope (√(n / middle) − 1)), where z is the quantile of the wanted power."""

    middle: float  # where the wanted power is reached
    slope: float
    error: float  # standard error of log(middle)
    wanted: float  # z

    def evaluate(self, n: float) -> float:
        return float(norm.cdf(self.wanted + self.slope * (np.sqrt(n / self.middle) - 1)))

    @property
    def standard_error(self) -> float:
        """The standard error of the power at the middle."""
        return float(norm.pdf(self.wanted) * self.slope / 2 * self.error)


def fit_power_curve(
    n: np.ndarray,
    rejected: np.ndarray,
    simulated: np.ndarray,
    *,
    power: float,
    alpha: float,
    guess: float,
) -> PowerCurve:
    """The likeliest curve for the numbers of rejections at numbers of samples near `guess`.

    For the mean of n normal variables, tested on one side, the curve is exact, and the slope is the
    sum of the normal quantiles of the power and of 1 − alpha. Other slopes must be spoken for by
    the rejections.
    """
    wanted, usual = norm.ppf(power), np.log(norm.ppf(power) + norm.isf(alpha))
    is_near = (n <= _WINDOW * guess) & (n >= guess / _WINDOW)
    n, rejected, simulated = n[is_near], rejected[is_near], simulated[is_near]

    def probits(parameters: np.ndarray) -> np.ndarray:
        ratio = np.sqrt(n / guess) * np.exp(-parameters[0] / 2)
        return wanted + np.exp(parameters[1]) * (ratio - 1)

    def negative_log_posterior(parameters: np.ndarray) -> float:
        probit = probits(parameters)
        likelihood = rejected * norm.logcdf(probit) + (simulated - rejected) * norm.logsf(probit)
        prior = ((parameters[1] - usual) / _SPREAD_OF_SLOPES) ** 2 / 2
        return prior + parameters[0] ** 2 / 8 - likelihood.sum()  # middle within e^±2 of guess

    best = minimize(negative_log_posterior, [0.0, usual], method="Nelder-Mead").x
    middle, slope = guess * np.exp(best[0]), np.exp(best[1])
    probit, ratio = probits(best), np.sqrt(n / middle)
    gradient = np.stack([-slope * ratio / 2, slope * (ratio - 1)])
    weight = simulated * np.exp(2 * norm.logpdf(probit) - norm.logcdf(probit) - norm.logsf(probit))
    information = weight * gradient @ gradient.T
    information += np.diag([0.25, 1 / _SPREAD_OF_SLOPES**2])
    error = np.sqrt(np.linalg.inv(information)[0, 0])
    return PowerCurve(float(middle), float(slope), float(error), float(wanted))


class Trials:
    """Simulated samples that are tested, and the number of those that were rejected."""

    def __init__(
        self, y_proba: Any, true_proba: Any, test: Any, alpha: float, random_state: Any, n_jobs: Any
    ) -> None:
        self.proba, self.truth = check_truth(y_proba, true_proba)
        test = CalibrationTest(n_resamples=199) if test is None else test
        self.test = clone_instance(test, "test")
        check_can_reject(self.test, alpha)
        if "labels" in self.test.get_params():
            n_classes = 2 if self.proba.ndim == 1 else self.proba.shape[1]
            self.test.set_params(labels=np.arange(n_classes))
        self.alpha, self.n_jobs = alpha, n_jobs
        self.random_state = check_random_state(random_state)
        self.found: dict[int, list[int]] = {}

    def rejections(self, n_samples: int, n_simulations: int) -> int:
        seeds = self.random_state.randint(2**31 - 1, size=n_simulations).tolist()
        p_values = Parallel(n_jobs=self.n_jobs)(
            delay(_p_value)(self.test, self.proba, self.truth, n_samples, seed) for seed in seeds
        )
        rejected = int(np.sum(np.array(p_values) <= self.alpha))
        counts = self.found.setdefault(n_samples, [0, 0])
        counts[0] += rejected
        counts[1] += n_simulations
        return rejected

    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of samples, ascending, of rejections and of simulations."""
        numbers = sorted(self.found)
        rejected, simulated = np.array([self.found[n] for n in numbers]).T
        return np.array(numbers), rejected, simulated

    def curve(self, power: float, guess: float) -> PowerCurve:
        return fit_power_curve(*self.table(), power=power, alpha=self.alpha, guess=guess)


def _p_value(test: Any, proba: np.ndarray, truth: np.ndarray, n_samples: int, seed: int) -> float:
    generator = np.random.default_rng(seed)
    rows = generator.integers(len(proba), size=n_samples)
    label = draw_labels(truth[rows], 1, generator)[0]
    test = clone(test)
    if "random_state" in test.get_params():
        test.set_params(random_state=int(generator.integers(2**31)))
    return test.fit(proba[rows], label).p_value_


def _clip_size(n: float, most: int) -> int:
    return int(np.clip(np.ceil(n), _MIN_SAMPLES, most))


def _too_few(power: float, max_samples: int, n_rejected: str) -> Any:
    return ValueError(
        f"power must be reached with at most max_samples={max_samples}; found {n_rejected} "
        f"rejected there, less than power={power}. The test has little power against this "
        "miscalibration, or it is too small: choose another test, or raise max_samples."
    )


def check_truth(y_proba: ArrayLike, true_proba: Any) -> tuple[Any, ...]:
    """Predicted and true probabilities, (n,) or (n, K)."""
    proba = take_one_column(check_probabilities(y_proba, partner="true_proba"))
    if hasattr(true_proba, "predict_proba"):
        true_proba = true_proba.predict_proba(y_proba)
    elif callable(true_proba):
        true_proba = true_proba(np.asarray(y_proba))
    truth = check_probabilities(true_proba, name="true_proba", partner="y_proba")
    truth = take_one_column(truth)
    if truth.shape != proba.shape:
        raise ValueError(
            "true_proba must have the shape of y_proba, a row for each prediction; found "
            f"{truth.shape} and {proba.shape}. Pass what is true for each row of y_proba."
        )
    return proba, truth


def take_one_column(proba: np.ndarray) -> np.ndarray:
    return proba[:, 1] if proba.shape[1:] == (2,) else proba


def check_can_reject(test: HypothesisTest, alpha: float) -> None:
    """The smallest p-value of a test by resampling is 1 / (n_resamples + 1), or twice that."""
    parameters = test.get_params()
    n_resamples = parameters.get("n_resamples")
    if n_resamples is None or parameters.get("method") in ("asymptotic", "distribution-free"):
        return
    has_sign = parameters.get("statistic", "log_loss") in ("log_loss", "brier_score_loss")
    n_sides = 2 if has_sign and parameters.get("alternative") == "two-sided" else 1
    if alpha * (n_resamples + 1) < n_sides:
        raise ValueError(
            f"alpha must be at least {n_sides} / (n_resamples + 1), the smallest p-value of the "
            f"test; found {alpha} and n_resamples={n_resamples}. Pass a test with more resamples."
        )


def check_can_be_found(trials: Trials) -> None:
    """Calibrated models are rejected at the level only, however many samples there are."""
    if np.array_equal(trials.truth, trials.proba) and not isinstance(trials.test, EquivalenceTest):
        raise ValueError(
            "true_proba must differ from y_proba; found the same probabilities, which are "
            "calibrated, and so are rejected with probability `alpha` at every number of samples. "
            "Pass what would be true if the model were miscalibrated; for showing that it is not, "
            "EquivalenceTest."
        )


# Prior of the logarithm of the slope, around that of a mean compared with a known value.
_SPREAD_OF_SLOPES = 0.5

# Numbers of samples that differ by more than this factor say nothing about the curve here.
_WINDOW = 4.0
