"""How scores depend on parameters: designs of a softmax regression, and their preconditioners."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .array_api import (
    MIN_DENOMINATOR,
    Array,
    array_namespace,
    asarray_like,
    column_dots,
    dot,
    identity_like,
    product,
)
from .newton import Solve

# Keeps the preconditioner away from singular, relative to its largest entry.
_RIDGE_RTOL = 1e-9

# Sums of squares below this fraction of those of the inputs are rounding errors.
_SQUARES_RTOL = 1e-13


class CommonlyScaledAndShifted:
    """Scores a x + b of inputs x (n, K), with parameters (a, b) (2, K); the first row repeats a."""

    mixes_classes = False

    @staticmethod
    def scores(parameters: Array, inputs: Array) -> Array:
        xp = array_namespace(inputs)
        return inputs * xp.mean(parameters[0, :]) + parameters[1, :]

    @staticmethod
    def adjoint(residual: Array, inputs: Array) -> Array:
        xp, total = array_namespace(inputs), array_namespace(inputs).sum(residual, axis=0)
        common = xp.full_like(total, dot(residual, inputs) / inputs.shape[1])
        return xp.stack([common, total])

    @staticmethod
    def preconditioner(spread: Array, inputs: Array, penalty: Array) -> Solve:
        """Inverse of the diagonal of the shifts, bordered by a."""
        xp = array_namespace(inputs)
        first = column_dots(spread, inputs)
        second = dot(spread * inputs, inputs)
        zeroth = xp.sum(spread, axis=0) + penalty[1, :]
        ridge = _RIDGE_RTOL * max(second, float(xp.max(zeroth))) + MIN_DENOMINATOR
        zeroth += ridge
        curvature = second - float(first @ (first / zeroth)) + ridge
        curvature += float(xp.sum(penalty[0, :]))

        def solve(residual: Array) -> Array:
            shift = residual[1, :] - xp.mean(residual[1, :])
            common = (xp.sum(residual[0, :]) - first @ (shift / zeroth)) / curvature
            step = (shift - common * first) / zeroth
            return xp.stack([xp.ones_like(step) * common, step - xp.mean(step)])

        return solve


class ScaledAndShifted:
    """Scores v∘x + b of inputs x (n, K), with parameters (v, b) (2, K)."""

    mixes_classes = False

    @staticmethod
    def scores(parameters: Array, inputs: Array) -> Array:
        scores = inputs * parameters[0, :]
        scores += parameters[1, :]
        return scores

    @staticmethod
    def scores_of_rows(parameters: np.ndarray, inputs: Array) -> Array:
        """`scores` for parameters in an array of NumPy."""
        return ScaledAndShifted.scores(asarray_like(inputs, parameters), inputs)

    @staticmethod
    def adjoint(residual: Array, inputs: Array) -> Array:
        xp = array_namespace(inputs)
        return xp.stack([column_dots(residual, inputs), xp.sum(residual, axis=0)])

    @staticmethod
    def preconditioner(spread: Array, inputs: Array, penalty: Array) -> Solve:
        """Inverse of the two by two blocks, on shifts with mean 0: a common one has no effect."""
        xp = array_namespace(inputs)
        first = column_dots(spread, inputs)
        second = column_dots(spread * inputs, inputs) + penalty[0, :]
        zeroth = xp.sum(spread, axis=0) + penalty[1, :]
        ridge = _RIDGE_RTOL * max(float(xp.max(second)), float(xp.max(zeroth))) + MIN_DENOMINATOR
        second += ridge
        zeroth += ridge
        determinant = second * zeroth - first**2

        def solve(residual: Array) -> Array:
            scale, shift = residual[0, :], residual[1, :] - xp.mean(residual[1, :])
            scale_step = (zeroth * scale - first * shift) / determinant
            shift_step = (second * shift - first * scale) / determinant
            return xp.stack([scale_step, shift_step - xp.mean(shift_step)])

        return solve


class Affine:
    """Scores W x + b of inputs x (n, K), with parameters (W, b)ᵀ (K + 1, K)."""

    mixes_classes = True

    @staticmethod
    def scores(parameters: Array, inputs: Array) -> Array:
        scores = product(inputs, parameters[:-1, :])
        scores += parameters[-1, :]
        return scores

    @staticmethod
    def scores_of_rows(parameters: np.ndarray, inputs: Array) -> Array:
        """`scores` for parameters in an array of NumPy.

        With NumPy the scores of a row do not depend, to the last bit, on the other rows.
        """
        if isinstance(inputs, np.ndarray):
            return np.einsum("nk,kl->nl", inputs, parameters[:-1]) + parameters[-1]
        return Affine.scores(asarray_like(inputs, parameters), inputs)

    @staticmethod
    def adjoint(residual: Array, inputs: Array) -> Array:
        xp = array_namespace(inputs)
        return xp.concat([inputs.T @ residual, xp.sum(residual, axis=0)[None, :]])

    @staticmethod
    def preconditioner(spread: Array, inputs: Array, penalty: Array) -> Solve:
        """Inverse of the blocks of the classes, simplified."""
        return ClassBlocks.make(spread, inputs, penalty).solve


class Diagonal(ScaledAndShifted):
    """`Affine` if W is diagonal: parameters (v, b) (2, K), with v that diagonal."""

    preconditioner = staticmethod(Affine.preconditioner)


class AffineAndCommon:
    """Scores (β I + W) x + b, with parameters (W, b, β)ᵀ (K + 2, K); the last row repeats β.

    A penalty on the diagonal of W draws the factors of the classes to a common one, and W stays
    exact, however little they differ from it.
    """

    mixes_classes = True
    _others: type[Affine] | type[ScaledAndShifted] = Affine

    @classmethod
    def scores(cls, parameters: Array, inputs: Array) -> Array:
        scores = cls._others.scores(parameters[:-1, :], inputs)
        scores += array_namespace(inputs).mean(parameters[-1, :]) * inputs
        return scores

    @classmethod
    def adjoint(cls, residual: Array, inputs: Array) -> Array:
        xp, affine = array_namespace(inputs), cls._others.adjoint(residual, inputs)
        common = xp.full_like(affine[:1, :], dot(residual, inputs) / inputs.shape[1])
        return xp.concat([affine, common])

    @staticmethod
    def preconditioner(spread: Array, inputs: Array, penalty: Array) -> Solve:
        """The preconditioner of `Affine`, bordered by β.

        To move β is to move the diagonal of W without its penalty λ. If S_k is the curvature of
        the loss along W_kk, the other parameters of class k following, that of β is Σ_k λ S_k/(λ +
        S_k): a part of the move is taken back by the diagonal.
        """
        xp = array_namespace(inputs)
        blocks = ClassBlocks.make(spread, inputs, penalty[:-1, :])
        image = blocks.image_of_diagonal()
        response = blocks.solve(image)
        diagonal_curvature = blocks.curvature_of_diagonal()
        with np.errstate(divide="ignore", over="ignore"):
            damping = 1 + diagonal_curvature / blocks.diagonal(penalty[:-2, :])
            curvature = float(xp.sum(diagonal_curvature / damping))
        if curvature <= _SQUARES_RTOL * float(xp.sum(diagonal_curvature)):
            curvature = np.inf  # β and the mean of the diagonal are the same: only that moves

        def solve(residual: Array) -> Array:
            pull = float(xp.sum(residual[-1, :])) - dot(residual[:-1, :], response)
            common = pull / curvature
            step = blocks.solve(residual[:-1, :]) - common * response
            return xp.concat([step, xp.full_like(step[:1, :], common)])

        return solve


class DiagonalAndCommon(AffineAndCommon):
    """`AffineAndCommon` if W is diagonal: parameters (v, b, β) (3, K), with v that diagonal."""

    mixes_classes = False
    _others = ScaledAndShifted


@dataclass(frozen=True, eq=False)
class ClassBlocks:
    """The curvature in the parameters of each class alone, with no covariances of inputs.

    That of class k is Σ_j (a_jk + λ_jk) W_kj² + z_k (b_k + Σ_j c_jk W_kj)² + μ_k b_k², with the
    weighted mean c and variance a/z of the inputs. Its second term matters: where all inputs are
    far from 0, factors and intercept are almost the same. If W is diagonal, matrices have one row,
    that of j = k.
    """

    centre: Array  # c (K, K), or (1, K)
    variance: Array  # a (K, K), or (1, K)
    total: Array  # z (K,)
    penalty: Array  # λ and below it μ (K + 1, K), or (2, K), possibly infinite

    @classmethod
    def make(cls, spread: Array, inputs: Array, penalty: Array) -> "ClassBlocks":
        xp, is_diagonal = array_namespace(inputs), penalty.shape[0] == 2

        def sums(values: Array) -> Array:
            return column_dots(values, spread)[None, :] if is_diagonal else values.T @ spread

        origin = xp.mean(inputs, axis=0)  # squares of deviations from it keep more digits
        centred = inputs - origin
        total = xp.sum(spread, axis=0) + MIN_DENOMINATOR
        first = sums(centred)
        centre = first / total
        variance = sums(centred**2) - centre * first
        variance = xp.where(variance > 0, variance, 0.0)
        noise = _SQUARES_RTOL * float(origin @ origin) * float(xp.max(total))
        variance += _RIDGE_RTOL * float(xp.max(variance)) + noise + MIN_DENOMINATOR
        total += _RIDGE_RTOL * xp.max(total)
        return cls(centre + (origin if is_diagonal else origin[:, None]), variance, total, penalty)

    @cached_property
    def own(self) -> Array:
        """The curvature in single factors, (K, K)."""
        return self.variance + self.penalty[:-1, :]

    @cached_property
    def joint(self) -> Array:
        """The curvature in Σ_j c_jk W_kj if the intercept follows, (K,): 1/(1/z + 1/μ)."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.total / (1 + self.total / self.penalty[-1, :])

    def solve(self, residual: Array) -> Array:
        """The inverse, by the formula of Sherman and Morrison."""
        factor, shift = residual[:-1, :], residual[-1, :]
        intercept_curvature = self.total + self.penalty[-1, :]
        factor = factor - self.centre * (self.total / intercept_curvature * shift)
        leverage = self.centre / self.own
        strength = self.joint / (1 + self.joint * column_dots(leverage, self.centre))
        solution = factor / self.own
        solution -= leverage * (strength * column_dots(leverage, factor))
        shift = shift - self.total * column_dots(self.centre, solution)
        return array_namespace(shift).concat([solution, (shift / intercept_curvature)[None, :]])

    def image_of_diagonal(self) -> Array:
        """The product of the matrix, but for the penalty, with a 1 for each W_kk, (K + 1, K)."""
        pull = self.total * self.diagonal(self.centre)
        diagonal_term = self.variance * self._identity
        return array_namespace(pull).concat([self.centre * pull + diagonal_term, pull[None, :]])

    def curvature_of_diagonal(self) -> Array:
        """The curvature of the loss in each W_kk if the other parameters follow, (K,)."""
        xp = array_namespace(self.centre)
        taken = self.centre**2 / self.own * (1 - self._identity)
        strength = self.joint / (1 + self.joint * xp.sum(taken, axis=0))
        return self.diagonal(self.variance) + strength * self.diagonal(self.centre) ** 2

    @staticmethod
    def diagonal(matrix: Array) -> Array:
        """The entries of each class's own factor, (K,)."""
        is_row = matrix.shape[0] == 1
        return matrix[0, :] if is_row else array_namespace(matrix).linalg.diagonal(matrix)

    @cached_property
    def _identity(self) -> Array:
        return identity_like(self.centre, self.centre.shape[0])


Design = (
    type[CommonlyScaledAndShifted] | type[ScaledAndShifted] | type[Affine] | type[AffineAndCommon]
)
