"""How scores depend on parameters: designs of a softmax regression, and their preconditioners."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .array_api import Array

# Keeps the preconditioner away from singular, relative to its largest entry.
_RIDGE = 1e-9

# Keeps quotients from being infinite.
_TINY = 1e-100

# Sums of squares below this fraction of those of the inputs are rounding errors.
_LOST = 1e-13

Solve = Callable[[np.ndarray], np.ndarray]


class CommonlyScaledAndShifted:
    """Scores a x + b of inputs x (n, K), with parameters (a, b) (2, K); the first row repeats a."""

    mixes_classes = False

    @staticmethod
    def scores(parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        return inputs * parameters[0].mean() + parameters[1]

    @staticmethod
    def adjoint(residual: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        common = np.full(inputs.shape[1], np.vdot(residual, inputs) / inputs.shape[1])
        return np.stack([common, residual.sum(axis=0)])

    @staticmethod
    def preconditioner(spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> Solve:
        """Inverse of the diagonal of the shifts, bordered by a."""
        first = np.einsum("nk,nk->k", spread, inputs)
        second = float(np.einsum("nk,nk,nk->", spread, inputs, inputs))
        zeroth = spread.sum(axis=0) + penalty[1]
        ridge = _RIDGE * max(second, zeroth.max()) + _TINY
        zeroth += ridge
        curvature = second - float(first @ (first / zeroth)) + ridge + float(penalty[0].sum())

        def solve(residual: np.ndarray) -> np.ndarray:
            shift = residual[1] - residual[1].mean()
            common = (residual[0].sum() - first @ (shift / zeroth)) / curvature
            step = (shift - common * first) / zeroth
            return np.stack([np.full(len(step), common), step - step.mean()])

        return solve


class ScaledAndShifted:
    """Scores v∘x + b of inputs x (n, K), with parameters (v, b) (2, K)."""

    mixes_classes = False

    @staticmethod
    def scores(parameters: Array, inputs: Array) -> Array:
        scores = inputs * parameters[0, :]
        scores += parameters[1, :]
        return scores

    scores_of_rows = scores

    @staticmethod
    def adjoint(residual: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        return np.stack([np.einsum("nk,nk->k", residual, inputs), residual.sum(axis=0)])

    @staticmethod
    def preconditioner(spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> Solve:
        """Inverse of the two by two blocks, on shifts with mean 0: a common one has no effect."""
        first = np.einsum("nk,nk->k", spread, inputs)
        second = np.einsum("nk,nk,nk->k", spread, inputs, inputs) + penalty[0]
        zeroth = spread.sum(axis=0) + penalty[1]
        ridge = _RIDGE * max(second.max(), zeroth.max()) + _TINY
        second += ridge
        zeroth += ridge
        determinant = second * zeroth - first**2

        def solve(residual: np.ndarray) -> np.ndarray:
            scale, shift = residual[0], residual[1] - residual[1].mean()
            solution = np.stack([zeroth * scale - first * shift, second * shift - first * scale])
            solution /= determinant
            solution[1] -= solution[1].mean()
            return solution

        return solve


class Affine:
    """Scores W x + b of inputs x (n, K), with parameters (W, b)ᵀ (K + 1, K)."""

    mixes_classes = True

    @staticmethod
    def scores(parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        scores = inputs @ parameters[:-1]
        scores += parameters[-1]
        return scores

    @staticmethod
    def scores_of_rows(parameters: Array, inputs: Array) -> Array:
        """The same; the scores of a row do not depend, to the last bit, on the other rows.

        On other devices than NumPy's they do.
        """
        if isinstance(inputs, np.ndarray):
            return np.einsum("nk,kl->nl", inputs, parameters[:-1]) + parameters[-1]
        return inputs @ parameters[:-1, :] + parameters[-1, :]

    @staticmethod
    def adjoint(residual: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        return np.vstack([inputs.T @ residual, residual.sum(axis=0)])

    @staticmethod
    def preconditioner(spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> Solve:
        """Inverse of the blocks of the classes, simplified."""
        return ClassBlocks.of(spread, inputs, penalty).solve


class AffineAndCommon:
    """Scores (β I + W) x + b, with parameters (W, b, β)ᵀ (K + 2, K); the last row repeats β.

    A penalty on the diagonal of W draws the factors of the classes to a common one, and W stays
    exact, however little they differ from it.
    """

    mixes_classes = True

    @staticmethod
    def scores(parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        scores = Affine.scores(parameters[:-1], inputs)
        scores += parameters[-1].mean() * inputs
        return scores

    @staticmethod
    def adjoint(residual: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        common = np.full(inputs.shape[1], np.vdot(residual, inputs) / inputs.shape[1])
        return np.vstack([Affine.adjoint(residual, inputs), common])

    @staticmethod
    def preconditioner(spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> Solve:
        """That of `Affine`, bordered by β.

        To move β is to move the diagonal of W without its penalty λ. If S_k is the curvature of
        the loss along W_kk, the other parameters of class k following, that of β is Σ_k λ S_k/(λ +
        S_k): a part of the move is taken back by the diagonal.
        """
        blocks = ClassBlocks.of(spread, inputs, penalty[:-1])
        image = blocks.image_of_diagonal()
        follow = blocks.solve(image)
        own = blocks.curvature_of_diagonal()
        with np.errstate(divide="ignore", over="ignore"):
            curvature = float((own / (1 + own / np.diagonal(penalty))).sum())
        if curvature <= _LOST * own.sum():
            curvature = np.inf  # β and the mean of the diagonal are the same: only that moves

        def solve(residual: np.ndarray) -> np.ndarray:
            pull = residual[-1].sum() - np.vdot(residual[:-1], follow)
            common = pull / curvature
            step = blocks.solve(residual[:-1]) - common * follow
            return np.vstack([step, np.full(step.shape[1], common)])

        return solve


@dataclass(frozen=True, eq=False)
class ClassBlocks:
    """The curvature in the parameters of each class alone, with no covariances of inputs.

    That of class k is Σ_j (a_jk + λ_jk) W_kj² + z_k (b_k + Σ_j c_jk W_kj)² + μ_k b_k², with the
    weighted mean c and variance a/z of the inputs. Its second term matters: where all inputs are
    far from 0, factors and intercept are almost the same.
    """

    centre: np.ndarray  # c (K, K)
    variance: np.ndarray  # a (K, K)
    total: np.ndarray  # z (K,)
    penalty: np.ndarray  # λ and below it μ (K + 1, K), possibly infinite

    @classmethod
    def of(cls, spread: np.ndarray, inputs: np.ndarray, penalty: np.ndarray) -> "ClassBlocks":
        origin = inputs.mean(axis=0)  # squares of deviations from it keep more digits
        moved = inputs - origin
        total = spread.sum(axis=0) + _TINY
        first = moved.T @ spread
        centre = first / total
        variance = np.maximum((moved**2).T @ spread - centre * first, 0.0)
        noise = _LOST * float(origin @ origin) * total.max()
        variance += _RIDGE * variance.max() + noise + _TINY
        total += _RIDGE * total.max()
        return cls(centre + origin[:, None], variance, total, penalty)

    @cached_property
    def own(self) -> np.ndarray:
        """The curvature in single factors, (K, K)."""
        return self.variance + self.penalty[:-1]

    @cached_property
    def joint(self) -> np.ndarray:
        """The curvature in Σ_j c_jk W_kj if the intercept follows, (K,): 1/(1/z + 1/μ)."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.total / (1 + self.total / self.penalty[-1])

    def solve(self, residual: np.ndarray) -> np.ndarray:
        """The inverse, by the formula of Sherman and Morrison."""
        factor, shift = residual[:-1], residual[-1]
        held = self.total + self.penalty[-1]
        factor = factor - self.centre * (self.total / held * shift)
        leverage = self.centre / self.own
        strength = self.joint / (1 + self.joint * np.einsum("jk,jk->k", leverage, self.centre))
        solution = factor / self.own
        solution -= leverage * (strength * np.einsum("jk,jk->k", leverage, factor))
        shift = shift - self.total * np.einsum("jk,jk->k", self.centre, solution)
        return np.vstack([solution, shift / held])

    def image_of_diagonal(self) -> np.ndarray:
        """The product of the matrix, but for the penalty, with a 1 for each W_kk, (K + 1, K)."""
        pull = self.total * np.diagonal(self.centre)
        image = np.vstack([self.centre * pull, pull])
        np.fill_diagonal(image, np.diagonal(image) + np.diagonal(self.variance))
        return image

    def curvature_of_diagonal(self) -> np.ndarray:
        """The curvature of the loss in each W_kk if the other parameters follow, (K,)."""
        taken = self.centre**2 / self.own
        np.fill_diagonal(taken, 0.0)
        strength = self.joint / (1 + self.joint * taken.sum(axis=0))
        return np.diagonal(self.variance) + strength * np.diagonal(self.centre) ** 2


Design = (
    type[CommonlyScaledAndShifted] | type[ScaledAndShifted] | type[Affine] | type[AffineAndCommon]
)
