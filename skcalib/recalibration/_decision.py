"""Probabilities adjusted until losses are as expected from them."""

from collections.abc import Callable
from numbers import Real
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from .._data import ClassData
from .._inputs.drawing import draw_seed
from .._inputs.scikit_learn import Count, Interval, RandomState, estimator_class
from .._inputs.warnings import check_memory, warn, warn_if_slow
from .._numerics.logits import clip_proba
from .._numerics.policies import best_actions, worst_policies
from ..forecasts._decisions import argmin_first, as_loss, class_expected_losses
from ._base import Recalibrator, to_matrix

# A smaller shift is rounding.
_MIN_SHIFT = 1e-9

# Probabilities, counted once for each draw, that are searched first, to foretell the whole time.
_N_TIMED_PROBABILITIES = 200_000


@estimator_class(kw_only=True)
class DecisionRecalibrator(Recalibrator):
    r"""Recalibration for a decision: shifts for each action, until its losses are as expected.

    Samples with the same best action get the same shift of their probabilities, until no shift is
    significant.

    Parameters
    ----------
    loss : array-like of shape (n_actions, n_classes), float, callable or DecisionLoss, \
            default="zero-one"
        The losses of the actions, as :class:`skcalib.decisions.DecisionLoss` takes them. "zero-one"
        stands for the decision which class it is.

    alpha : float in (0, 1], default=0.05
        Probability of any shift if the predictions are calibrated. With 1 all shifts are made,
        `max_rounds` times at most.

    max_rounds : int, default=100
        The largest number of rounds.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    shifts_ : ndarray of shape (n_rounds, n_actions, n_classes)
        What is added in each round to the probabilities of the samples with each action.

    n_rounds_ : int
        Number of rounds with a shift.

    losses_ : ndarray of shape (n_classes, n_actions)
        The losses.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    skcalib.metrics.decision_calibration_error : What is made small, given the action.
    AnyDecisionRecalibrator : For all decisions with a few actions.

    Notes
    -----
    This is the algorithm of [1]_ for one loss, with a test in place of a tolerance. In each round
    let :math:`\delta_i` be the action of the least expected loss, and

    .. math:: b_a = P \Big(\sum_{\delta_i = a} w_i (e_{y_i} - p_i) \Big/ \sum_{\delta_i = a} w_i
        \Big),

    where P projects on the directions in which expected losses change. If :math:`b_a` is
    significant at `alpha` divided by the number of actions, by a :math:`\chi^2` test, the samples
    with :math:`\delta_i = a` get the probabilities next to :math:`p_i + b_a`.

    If `max_rounds` is reached, a warning tells.

    Use :class:`AutoRecalibrator` first. Results stay 2.2e-16 away from 0 and 1. The cost is
    :math:`O(n K A)` for each of a few rounds, with A actions.

    References
    ----------
    .. [1] Zhao, Kim, Sahoo, Ma and Ermon (2021). Calibrating Predictions to Decisions. NeurIPS.
       :arxiv:`2107.05719`

    Examples
    --------
    Loans of which one in five fails, where one in twenty-five is predicted:

    >>> import numpy as np
    >>> from skcalib.decisions import bayes_action
    >>> from skcalib.recalibration import DecisionRecalibrator
    >>> proba, failed = np.full(200, 0.04), np.arange(200) % 5 == 0
    >>> loss = [[0, 9], [1, 0]]  # grant or refuse
    >>> recalibrator = DecisionRecalibrator(loss=loss).fit(proba, failed)
    >>> recalibrator.predict_proba([0.04]).round(3)
    array([[0.8, 0.2]])
    >>> bayes_action([0.04], loss=loss), bayes_action(recalibrator.transform([0.04]), loss=loss)
    (array([0]), array([1]))
    """

    loss: Any = "zero-one"
    alpha: float = 0.05
    max_rounds: int = 100

    def _fit(self, data: ClassData) -> None:
        classes = data.classes
        self.losses_ = as_loss(self.loss).of_classes(classes, len(classes))
        directions = loss_directions(self.losses_)

        def next_round(matrix: np.ndarray) -> tuple[Any, ...]:
            action = self._best(matrix)
            return action, self._shifts(data, matrix, action, directions)

        shifts = _iterate_shifts(self, data.matrix, next_round)
        self.shifts_ = np.array(shifts).reshape(-1, *self.losses_.T.shape)
        self.n_rounds_ = len(shifts)

    def _best(self, matrix: np.ndarray) -> np.ndarray:
        return argmin_first(class_expected_losses(matrix, self.losses_))

    def _shifts(
        self, data: ClassData, matrix: np.ndarray, action: np.ndarray, directions: np.ndarray
    ) -> np.ndarray:
        """The shift of the samples with each action, (A, K); 0 if it is not significant."""
        shifts = np.zeros(self.losses_.T.shape)
        if directions.shape[1] == 0:  # all classes cost the same
            return shifts
        for a in np.unique(action):
            rows = action == a
            sample = matrix[rows], data.label[rows], data.weight[rows], data.squares[rows]
            shift = best_shift(*sample, directions)
            adjusted = min(shift.p_value * len(shifts), 1.0)  # Bonferroni
            if adjusted <= self.alpha and np.abs(shift.vector).max() > _MIN_SHIFT:
                shifts[a] = shift.vector
        return shifts

    def _map(self, proba: np.ndarray) -> np.ndarray:
        matrix = to_matrix(proba)
        for shift in self.shifts_:
            matrix = _apply_shift(matrix, shift[self._best(matrix)])
        return matrix


@estimator_class(kw_only=True)
class AnyDecisionRecalibrator(Recalibrator):
    r"""Recalibration for all decisions with a few actions: shifts where the worst one is wrong.

    Parameters
    ----------
    n_actions : int, default=2
        The largest number of actions of a decision, at most 20.

    alpha : float in [1e-4, 1], default=0.05
        Probability of any shift if the predictions are calibrated. With 1 all shifts are made,
        `max_rounds` times at most.

    max_rounds : int, default=100
        The largest number of rounds.

    random_state : int, RandomState instance or None, default=None
        Seed of the labels that are drawn from the predictions.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    policies_ : ndarray of shape (n_rounds, n_actions, n_classes)
        The worst decision of each round: the action with the largest product of its row and the
        probabilities.

    shifts_ : ndarray of shape (n_rounds, n_actions, n_classes)
        What is added in each round to the probabilities of the samples with each action.

    n_rounds_ : int
        Number of rounds with a shift.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    skcalib.metrics.any_decision_calibration_error : What is made small.

    DecisionRecalibrator : For a decision with known losses.

    Notes
    -----
    This is the algorithm of [1]_, with a test in place of a tolerance. In each round let
    :math:`\delta` be the worst decision, of :func:`skcalib.metrics.any_decision_calibration_error`.
    Samples with :math:`\delta(p_i) = a` get the probabilities next to :math:`p_i + b_a`, with

    .. math:: b_a = \sum_{\delta(p_i) = a} w_i (e_{y_i} - p_i) \Big/ \sum_{\delta(p_i) = a} w_i.

    It ends if the error is not larger than that of all :math:`\lceil 1 / \mathrm{alpha} \rceil - 1`
    label vectors drawn from the current probabilities. In the first round this is an exact test.

    For more than two classes a worse decision may be missed. Results stay 2.2e-16 away from 0 and
    1. A round of 1000 samples takes 0.01 s for two classes, 4 s for ten.

    References
    ----------
    .. [1] Zhao, Kim, Sahoo, Ma and Ermon (2021). Calibrating Predictions to Decisions. NeurIPS.
       :arxiv:`2107.05719`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import any_decision_calibration_error
    >>> from skcalib.recalibration import AnyDecisionRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(4000)
    >>> y, proba = rng.random(4000) < truth, 0.25 + truth / 2  # underconfident
    >>> recalibrator = AnyDecisionRecalibrator(random_state=0).fit(proba[:2000], y[:2000])
    >>> after = recalibrator.transform(proba[2000:])
    >>> [round(any_decision_calibration_error(y[2000:], p), 3) for p in (proba[2000:], after)]
    [0.161, 0.039]
    """

    _parameter_constraints = {
        "n_actions": [Count(1, 20)],
        "alpha": [Interval(Real, 1e-4, 1, closed="both")],
    }

    n_actions: int = 2
    alpha: float = 0.05
    max_rounds: int = 100
    random_state: RandomState = None

    def _fit(self, data: ClassData) -> None:
        data = data.sort_samples()  # draws follow their order
        generator = np.random.default_rng(draw_seed(self.random_state))
        n_draws = int(np.ceil(1 / self.alpha)) - 1
        needed = 32.0 * n_draws * data.matrix.size
        check_memory(needed, f"alpha={self.alpha}", "Choose a larger alpha, which draws less.")
        n_timed = 1 + _N_TIMED_PROBABILITIES // data.matrix.size
        policies: list[np.ndarray] = []

        def next_round(matrix: np.ndarray) -> tuple[Any, ...]:
            now = data.with_proba(matrix[:, 1] if data.is_binary else matrix)
            outcomes = np.vstack([now.label, now.simulate_outcomes(generator, n_draws)])
            start = perf_counter()
            values, policies_of_draws = worst_policies(
                matrix, now.weight, outcomes[:n_timed], self.n_actions
            )
            if not policies:
                warn_if_slow(
                    (perf_counter() - start) * len(outcomes) / len(values) * self.max_rounds,
                    f"max_rounds={self.max_rounds}, if all are needed,",
                    "Choose fewer rounds, a larger alpha, fewer actions or fewer samples.",
                )
            if n_timed < len(outcomes):
                untimed_values, _ = worst_policies(
                    matrix, now.weight, outcomes[n_timed:], self.n_actions
                )
                values = np.append(values, untimed_values)
            policies.append(policies_of_draws[0])
            action = best_actions(matrix, policies_of_draws[0])
            shift = np.zeros(policies_of_draws[0].shape)
            if values[0] > max(_MIN_SHIFT, (1 + _MIN_SHIFT) * values[1:].max(initial=0.0)):
                for a in np.unique(action):
                    shift[a] = _mean_residual(now, matrix, action == a)
            return action, shift

        shifts = _iterate_shifts(self, data.matrix, next_round)
        shape = (-1, self.n_actions, len(data.classes))
        self.shifts_ = np.array(shifts).reshape(shape)
        self.policies_ = np.array(policies[: len(shifts)]).reshape(shape)
        self.n_rounds_ = len(shifts)

    def _map(self, proba: np.ndarray) -> np.ndarray:
        matrix = to_matrix(proba)
        for policy, shift in zip(self.policies_, self.shifts_, strict=True):
            matrix = _apply_shift(matrix, shift[best_actions(matrix, policy)])
        return matrix


def _mean_residual(data: ClassData, matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The weighted mean of e_y − p of some rows, (K,)."""
    share = data.weight[rows] / data.weight[rows].sum()
    observed = np.bincount(data.label[rows], share, matrix.shape[1])
    return observed - share @ matrix[rows]


def _iterate_shifts(
    recalibrator: BaseEstimator, matrix: np.ndarray, next_round: Callable[[np.ndarray], tuple]
) -> list[np.ndarray]:
    """The shifts (A, K) of all rounds, until one of them is 0, or `max_rounds` are made.

    A round finds the actions (n,) of probabilities (n, K), and the shift of each action.
    """
    shifts: list[np.ndarray] = []
    while len(shifts) <= recalibrator.max_rounds:
        action, shift = next_round(matrix)
        if not shift.any():
            return shifts
        shifts.append(shift)
        matrix = _apply_shift(matrix, shift[action])
    warn(
        f"{type(recalibrator).__name__} has not ended after max_rounds={recalibrator.max_rounds} "
        "rounds; the shifts so far are kept. Set a larger max_rounds, or a smaller alpha.",
        ConvergenceWarning,
    )
    return shifts[:-1]


def _apply_shift(matrix: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Probabilities (n, K) next to those plus shifts (n, K); rows without a shift stay."""
    moves = shift.any(axis=1)
    out = matrix.copy()
    out[moves] = clip_proba(onto_simplex(matrix[moves] + shift[moves]))
    return out


# Variance of one residual below which a prediction counts as certain.
_MIN_RESIDUAL_VARIANCE = 1e-9

# Directions in which losses differ by less than this share of the largest difference.
_RANK_TOLERANCE = 1e-10


class Shift(NamedTuple):
    """The vector to add to the probabilities of the samples with one action."""

    vector: np.ndarray  # (K,), sums to 0
    p_value: float  # of the hypothesis that nothing need be added


def loss_directions(losses: np.ndarray) -> np.ndarray:
    """Orthonormal directions (K, d) of probabilities in which some expected loss changes.

    Parameters: losses (K, A). Probabilities sum to 1, so the directions sum to 0.
    """
    centred = losses - losses.mean(axis=0)
    vectors, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    return vectors[:, sizes > _RANK_TOLERANCE * np.abs(losses).max(initial=0.0)]


def best_shift(
    matrix: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    square: np.ndarray,
    directions: np.ndarray,
) -> Shift:
    """The mean residual e_y − p in the given directions, and whether it is more than chance.

    Parameters: probabilities (m, K), labels (m,), positive weights (m,) and their squares, or parts
    of those of groups (m,), directions (K, d). The sum of residuals divided by its standard
    deviation is held against χ²_d, with labels drawn from the probabilities as they are, or from
    the shifted ones if these vary more. (With rare classes a single label would else look like a
    great surprise.)
    """
    total = weight.sum()
    share, square = weight / total, square / total**2
    mean = share @ directions[label] - (share @ matrix) @ directions  # (d,)
    vector = directions @ mean
    shifted = onto_simplex(matrix + vector)
    squares = min(_mahalanobis_square(mean, rows, square, directions) for rows in (matrix, shifted))
    return Shift(vector, float(chi2.sf(squares, directions.shape[1])))


def _mahalanobis_square(
    mean: np.ndarray, matrix: np.ndarray, square: np.ndarray, directions: np.ndarray
) -> float:
    """mᵀ C⁻¹ m with the covariance C of the mean residual if labels follow these probabilities."""
    projected = matrix @ directions  # (m, d)
    second = directions.T @ ((square @ matrix)[:, None] * directions)
    covariance = second - (projected * square[:, None]).T @ projected
    covariance += _MIN_RESIDUAL_VARIANCE * square.sum() * np.eye(len(mean))
    return float(mean @ np.linalg.solve(covariance, mean))


def onto_simplex(points: np.ndarray) -> np.ndarray:
    """The nearest probabilities to points (m, K) whose rows sum to 1.

    Held, Wolfe and Crowder (1974): max(x − t, 0) with the t for which rows sum to 1. Rows without
    negative entries stay as they are.
    """
    outside = (points < 0).any(axis=1)
    if not outside.any():
        return points
    points = points.copy()
    rows = points[outside]
    falling = -np.sort(-rows, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    counts = np.arange(1, rows.shape[1] + 1)
    size = np.sum(falling * counts > excess, axis=1)
    level = excess[np.arange(len(rows)), size - 1] / size
    points[outside] = np.maximum(rows - level[:, None], 0.0)
    return points
