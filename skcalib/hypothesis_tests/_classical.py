"""What the classical tests share: the null distribution of labels drawn from the predictions."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.utils import check_random_state

from .._inputs.constraints import IntegerInterval
from .._inputs.drawing import seeded_batches
from .._inputs.scikit_learn import StrOptions, fit_context
from .._inputs.types import RandomState
from ._base import HypothesisTest, as_p_value, check_class_input, redrawn_p_value

# Statistics of different batches that differ by less than this, relative to the largest, are tied:
# inverse covariances and fits enlarge the rounding errors of sums.
_TIE = 1e-9


class RedrawnTest(HypothesisTest):
    """A test whose statistic is computed for many vectors of labels at once."""

    null_distribution_: np.ndarray

    _parameter_constraints: dict = {
        "method": [StrOptions({"conditional", "asymptotic"})],
        "n_resamples": [IntegerInterval(1)],
        "labels": ["array-like", None],
        "random_state": ["random_state"],
    }

    # Arrays of one number for each label that the statistic of a batch needs at once.
    _n_arrays = 2

    def _judge(self, data, random_state, *options):
        """Set the statistic and the p-value, by two methods of the test.

        `_statistic(data, *options)` returns the function from labels (R, n) to values (R,), and
        `_asymptotic_p_value()` is that of `statistic_`.
        """
        data = data.take(data.canonical_order())
        statistic = self._statistic(data, *options)
        self.statistic_ = float(statistic(data.label[None])[0])
        if hasattr(self, "null_distribution_"):
            del self.null_distribution_
        if self.method == "asymptotic":
            self.p_value_ = as_p_value(self._asymptotic_p_value())
            return
        numbers = self._n_arrays * len(data.label)
        values = [
            statistic(data.redraw(np.random.default_rng(batch.seed), batch.size))
            for batch in seeded_batches(self.n_resamples, numbers, 1, random_state)
        ]
        null = self.null_distribution_ = np.concatenate(values)
        self.p_value_ = redrawn_p_value(
            self.statistic_,
            null,
            getattr(self, "alternative", "greater"),
            _TIE * np.abs(null).max(where=np.isfinite(null), initial=0.0),
        )


class ClassicalTest(RedrawnTest):
    """With more than two classes, the confidence is tested against whether it was right."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the statistic and the p-value.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one-dimensional ones are of the last class.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Importance weights of the samples; only their ratios matter. A weight of 2 is not the
            same as a sample that occurs twice.

        Returns
        -------
        self : object
            The fitted test.
        """
        predictions = check_class_input(self, X, y, sample_weight)
        self.classes_ = predictions.classes
        binary = predictions if predictions.is_binary else predictions.confidence()
        self._judge(binary, check_random_state(self.random_state))
        return self


class SignedTest(ClassicalTest):
    """A test whose statistic is 0 on average and has standard deviation 1, at least nearly."""

    _parameter_constraints: dict = {
        **ClassicalTest._parameter_constraints,
        "alternative": [StrOptions({"two-sided", "less", "greater"})],
    }

    def __init__(
        self,
        *,
        alternative: str = "two-sided",
        method: str = "conditional",
        n_resamples: int = 999,
        labels: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alternative = alternative
        self.method = method
        self.n_resamples = n_resamples
        self.labels = labels
        self.random_state = random_state

    def _asymptotic_p_value(self):
        if self.alternative == "two-sided":
            return 2 * norm.sf(abs(self.statistic_))
        return norm.sf(self.statistic_ if self.alternative == "greater" else -self.statistic_)


class ResidualTest(SignedTest):
    """z = Σ w_i g_i (y_i − p_i) in standard deviations, for weights g that follow p."""

    def _statistic(self, data):
        scale = data.weight * self._weight_of_residuals(data.proba)
        variance = scale**2 @ (data.proba * (1 - data.proba))

        def statistic(labels):
            return z_scores((labels - data.proba) @ scale, variance)

        return statistic


def z_scores(gaps, variances):
    """Gaps in standard deviations; where nothing can vary, 0 if there is no gap, else infinite."""
    # where the variance of predictions next to 0 underflows, the square of their gap is 0 too
    impossible = np.where(np.square(gaps) > 0, np.copysign(np.inf, gaps), 0.0)
    return np.divide(gaps, np.sqrt(variances), out=impossible, where=variances > 0)
