"""The gaps between realised and expected losses of decisions, as functions of the outcomes."""

from typing import Any

import numpy as np

from .._data import AnyData
from .._inputs.arrays import ArrayLike, is_number
from .._numerics.policies import worst_policies
from ..forecasts._decisions import DecisionLoss, argmin_first, as_loss, class_expected_losses
from .base import Statistic
from .matching_checks import check_size_of_losses

# Entries of the matrix of resampled counts that are held at once (128 MB).
_MAX_COUNT_ENTRIES = 2**24

# Numbers in one block of rows and outcomes (32 MB).
_MAX_BLOCK_NUMBERS = 2**22


class DecisionGaps(Statistic):
    r"""Mean gaps between realised and expected losses, for each group and action.

    D_g(a) = Σ_i w_i 1[g_i = g] (ℓ(a, y_i) − E ℓ(a, Y_i)) with Y_i drawn from the i-th prediction.
    The groups g are those that are given, or the actions of the least expected loss. With
    compared_actions="chosen" there is one gap for each group, that of the action taken.
    """

    supports = frozenset({"any-order", "asymptotic"})

    def __init__(
        self, data: AnyData, *, loss: Any, given: str | None = None, compared_actions: str = "all"
    ) -> None:
        check_gap_condition(data, given)
        self.data = data
        self.loss: DecisionLoss = as_loss(loss)
        options = {"given": given, "compared_actions": compared_actions}
        self.options: dict[str, Any] = {"loss": self.loss, **options}
        self.expected = self._compute_expected()  # (n, A)
        self.n_actions = self.expected.shape[1]
        self.action = argmin_first(self.expected)  # (n,)
        if given == "action":
            groups = self.action
        elif data.given is not None:
            groups = data.given
        else:
            groups = np.zeros(len(self.action), dtype=np.intp)
        axis = 0 if groups.ndim > 1 else None
        self.groups, code = np.unique(groups, axis=axis, return_inverse=True)
        self.code = code.reshape(-1)
        self._order = np.argsort(self.code, kind="stable")
        self._starts = np.searchsorted(self.code[self._order], np.arange(len(self.groups)))

    @property
    def numbers_per_draw(self) -> int:
        return self.expected.size

    def __call__(self, outcomes: np.ndarray) -> np.ndarray:
        """The root of the sum of squared gaps for R vectors of outcomes (R, n), (R,)."""
        if self.data.is_forecast and self.data.forecast.is_exchangeable:
            # outcomes are positions among the members, with which they change places
            changed = map(self.data.with_outcome, outcomes)
            return np.array([_norms(self.with_data(data).gaps())[0] for data in changed])
        size = max(1, _MAX_BLOCK_NUMBERS // self.expected.size)
        blocks = range(0, len(outcomes), size)
        return np.concatenate([_norms(self.gaps(outcomes[i : i + size])) for i in blocks])

    def gaps(self, outcomes: np.ndarray | None = None) -> np.ndarray:
        """D_g(a) for R vectors of outcomes (R, n), by default those of the data; (R, G, A)."""
        terms = self.data.weight[:, None] * self.terms(outcomes)
        return np.add.reduceat(terms[:, self._order], self._starts, axis=1)

    def terms(self, outcomes: np.ndarray | None = None) -> np.ndarray:
        """ℓ(a, y_i) − E ℓ(a, Y_i) for all actions, or for the one taken; (R, n, A) or (R, n, 1)."""
        losses = self.compute_losses(outcomes)
        return self.select_actions(losses) - self.select_actions(self.expected)

    def select_actions(self, losses: np.ndarray) -> np.ndarray:
        """The losses (…, n, A) of the actions that are compared."""
        if self.options["compared_actions"] == "all":
            return losses
        return losses[..., np.arange(len(self.action)), self.action, None]

    def compute_losses(self, outcomes: np.ndarray | None = None) -> np.ndarray:
        """ℓ(a, y_i) for R vectors of outcomes (R, n), by default those of the data; (R, n, A)."""
        if not self.data.is_forecast:
            return self._class_losses[self.data.outcome[None] if outcomes is None else outcomes]
        values = self.data.value[None] if outcomes is None else outcomes
        losses = self.loss.at_outcomes(values.ravel())
        check_size_of_losses(losses)
        return losses.reshape(*values.shape, -1)

    def _compute_expected(self) -> np.ndarray:
        if not self.data.is_forecast:
            classes = self.data.classes
            self._class_losses = self.loss.of_classes(classes, len(classes))  # (K, A)
            check_size_of_losses(self._class_losses)
            return class_expected_losses(self.data.matrix, self._class_losses)
        expected = self.loss.expected_of(self.data.forecast)
        check_size_of_losses(expected)
        return expected

    def loss_variances(self) -> np.ndarray:
        """Variances (n,) of realised minus expected losses of the actions taken, as predicted.

        Outcomes are drawn from the predictions. Ensembles without weights do not tell how far the
        outcome is from members by which the action was chosen: there, as the squares that are seen.
        """
        taken = np.arange(len(self.action)), self.action
        if not self.data.is_forecast:
            distance = self._class_losses.T[self.action] - self.expected[taken][:, None]  # (n, K)
            return np.einsum("nk,nk->n", self.data.matrix, distance**2)
        forecast, loss = self.data.forecast, self.loss
        if forecast.is_exchangeable:
            return (self.compute_losses()[0] - self.expected)[taken] ** 2
        if is_number(loss.loss):
            return self.expected.prod(axis=1)
        centre = self.expected.mean(axis=0)  # near the losses, so that squares keep their digits
        squares = DecisionLoss(lambda y: (loss.at_outcomes(y) - centre) ** 2)
        squares.breakpoints = loss.breakpoints
        variance = squares.expected_of(forecast) - (self.expected - centre) ** 2
        return np.maximum(variance[taken], 0.0)

    def resample_null(self, n_resamples: int, random_state: np.random.RandomState) -> np.ndarray:
        """The statistic of bootstrap samples whose gaps are centred at those of the data, (B,).

        With multinomial counts C it is the norm of Σ_i (C_i − 1) w_i φ_i, where w_i φ_i are the
        terms of the gaps.
        """
        terms = self.data.weight[:, None] * self.terms()[0]  # (n, A)
        order = np.lexsort((*terms.T, self.code))  # counts do not depend on that of the samples
        terms, code, n = terms[order], self.code[order], len(order)
        null = []
        for start in range(0, n_resamples, max(1, _MAX_COUNT_ENTRIES // n)):
            size = min(max(1, _MAX_COUNT_ENTRIES // n), n_resamples - start)
            counts = random_state.multinomial(n, np.full(n, 1 / n), size=size) - 1.0  # (B, n)
            members = (code == g for g in range(len(self.groups)))
            squares = sum(np.sum((counts[:, m] @ terms[m]) ** 2, axis=1) for m in members)
            null.append(np.sqrt(squares))
        return np.concatenate(null)


class WorstDecisionGap(Statistic):
    """The largest gap of any decision with some number of actions, and losses of norm 1.

    Σ_a ‖Σ_{i: δ(p_i) = a} w_i (e_{y_i} − p_i)‖ for the policy δ that makes it largest.
    """

    def __init__(self, data: AnyData, *, n_actions: int = 2) -> None:
        self.data = data
        self.options: dict[str, Any] = {"n_actions": n_actions}

    @property
    def numbers_per_draw(self) -> int:
        return self.data.matrix.size * self.options["n_actions"]

    def __call__(self, outcomes: np.ndarray) -> np.ndarray:
        """Values (R,) for R vectors of outcomes (R, n)."""
        data = self.data
        return worst_policies(data.matrix, data.weight, outcomes, **self.options)[0]


def _norms(gaps: np.ndarray) -> Any:
    """Roots of the sums of squared gaps (R, G, A), (R,)."""
    return np.sqrt(np.sum(gaps**2, axis=(1, 2)))


def check_gap_condition(data: AnyData, given: ArrayLike | None) -> None:
    """Gaps are given the action, which has a name, or given what is passed."""
    if given not in (None, "action"):
        raise ValueError(
            f"given must be None, 'action', or an array with the group of each sample; found "
            f"{given!r}. Pass the column itself."
        )
    if given is not None and data.given is not None:
        raise ValueError(
            "given must be 'action' or an array, not both; found both. To have groups and actions, "
            "pass np.column_stack([groups, bayes_action(...)])."
        )
