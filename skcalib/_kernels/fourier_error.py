"""The squared kernel calibration error by random Fourier features, in linear time."""

from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from .._inputs.constraints import IntegerInterval
from .._numerics.picked import picked
from .._sklearn import StrOptions, validate_parameter_constraints
from .features import random_frequencies
from .functions import KERNEL_CONSTRAINTS, KERNELS, resolved_bandwidth
from .squared_error import (
    CLASS_KERNEL_CONSTRAINTS,
    SquaredKernelError,
    check_class_kernel,
    check_enough_for_estimator,
    pair_weight,
)

# Rows whose features are summed in single precision; the sums of such blocks are double.
_BLOCK = 2**14

# Sums of features of all classes that stay in the cache (512 kB) while rows are added.
_SUMS = 2**17

# Rounding errors of the sums, next to one term.
_ROUNDING = 1e-5

# Frequencies of the metric, if no number is chosen.
N_COMPONENTS = 200

FOURIER_CONSTRAINTS: dict = {
    "method": [StrOptions({"exact", "fourier"})],
    "n_components": [IntegerInterval(1)],
    "random_state": ["random_state"],
}


def check_fourier(method, kernel, estimator):
    """Random features are known for named kernels, and replace sums over all pairs."""
    if method != "fourier":
        return
    if callable(kernel):
        raise ValueError(
            f"method='fourier' needs a named kernel, one of {sorted(KERNELS)}, whose frequencies "
            f"are known; found {kernel!r}. Use method='exact'."
        )
    if estimator not in ("unbiased", "biased"):
        raise ValueError(
            f"method='fourier' is for the estimators 'unbiased' and 'biased'; found {estimator!r}, "
            "which takes linear or little time anyway. Use method='exact'."
        )


class FourierKernelError:
    """What `SquaredKernelError` is, with ⟨φ(p_i), φ(p_j)⟩ in place of the kernel.

    φ holds the cosines and sines of D random frequencies, so that the inner products have the
    kernel as their mean. A vector of labels enters by the sums of the rows φ(p_i) of each class:
    O(n D) for each draw of the labels, whatever the number of classes.
    """

    kind = "classes"
    has_known_law = False
    depends_on_order = False
    least_batches = 1

    parameter_constraints: ClassVar[dict] = {
        **KERNEL_CONSTRAINTS,
        **CLASS_KERNEL_CONSTRAINTS,
        **FOURIER_CONSTRAINTS,
        "kernel": [StrOptions(set(KERNELS))],
        "estimator": [StrOptions({"unbiased", "biased"})],
    }

    def __init__(
        self,
        predictions,
        *,
        kernel="total-variation",
        bandwidth="median",
        class_kernel=None,
        estimator="unbiased",
        n_components=N_COMPONENTS,
        seed=0,
    ):
        self.data = predictions
        self.estimator = estimator
        bandwidth = resolved_bandwidth(predictions, kernel, bandwidth)
        self.options = {
            "kernel": kernel,
            "bandwidth": bandwidth,
            "class_kernel": class_kernel,
            "estimator": estimator,
            "n_components": n_components,
            "seed": seed,
        }
        self.matrix = np.ascontiguousarray(predictions.matrix)
        n_classes = self.matrix.shape[1]
        self.class_kernel = None
        self.similarity = self.matrix  # M p_i
        if class_kernel is not None:
            self.class_kernel = check_class_kernel(class_kernel, n_classes)
            self.similarity = self.matrix @ self.class_kernel
        self.square = np.einsum("nk,nk->n", self.similarity, self.matrix)
        frequencies = random_frequencies(
            KERNELS[kernel], bandwidth, (n_components, n_classes), np.random.default_rng(seed)
        )
        weight = predictions.weight
        self.pair_weight = pair_weight(weight)
        self.rows = [slice(i, i + _BLOCK) for i in range(0, len(weight), _BLOCK)]
        # weights on the scale of 1, which single precision holds
        self.largest = float(weight.max())
        self.features = np.empty((len(weight), 2 * n_components), dtype=np.float32)
        self.expected = np.zeros((n_classes, 2 * n_components))
        for rows in self.rows:
            phase = self.matrix[rows] @ frequencies.T
            part = self.features[rows]
            np.cos(phase, out=part[:, :n_components], casting="same_kind")
            np.sin(phase, out=part[:, n_components:], casting="same_kind")
            part *= (weight[rows] / self.largest / np.sqrt(n_components)).astype(np.float32)[
                :, None
            ]
            self.expected += self.matrix[rows].T @ part

    @classmethod
    def from_options(cls, predictions, **options):
        """The error with a user's options, which are judged here."""
        validate_parameter_constraints(
            cls.parameter_constraints, options, caller_name="CalibrationTest"
        )
        options.pop("method", None)
        seed = check_random_state(options.pop("random_state", None)).randint(2**31 - 1)
        check_enough_for_estimator(predictions, options.get("estimator", "unbiased"))
        return cls(predictions, seed=seed, **options)

    def on(self, predictions):
        """The same statistic of other predictions, with the bandwidth already chosen."""
        return FourierKernelError(predictions, **self.options)

    @property
    def numbers_per_draw(self):
        return len(self.data.weight)

    @property
    def resolution(self):
        """Values that differ by less are equal but for the rounding of single precision."""
        return _ROUNDING * self.data.share_of_one_sample

    def __call__(self, labels):
        """Values (R,) for R label vectors (R, n)."""
        at_once = max(1, _SUMS // self.expected.size)
        parts = [labels[i : i + at_once] for i in range(0, len(labels), at_once)]
        return np.concatenate([self._values(part) for part in parts])

    def _values(self, labels):
        gaps = np.repeat(-self.expected[None], len(labels), axis=0)
        for rows in self.rows:
            gaps += self._class_sums(labels[:, rows], self.features[rows])
        return self._of_gaps(gaps, labels)

    def of_signs(self, signs):
        """Values (R,) if the residuals of the observed labels are multiplied by signs (R, n)."""
        label = self.data.label[None]
        gaps = np.zeros((len(signs), *self.expected.shape))
        for row, gap in zip(signs, gaps, strict=True):
            for rows in self.rows:
                part = self.features[rows] * row[rows, None].astype(np.float32)
                gap += self._class_sums(label[:, rows], part)[0] - self.matrix[rows].T @ part
        return self._of_gaps(gaps, label)

    def _class_sums(self, labels, features):
        """Sums of the feature rows of each class, (R, K, 2D), for labels (R, m)."""
        (n_draws, m), n_classes = labels.shape, len(self.expected)
        cell = labels.T + np.arange(0, n_draws * n_classes, n_classes, dtype=np.int32)  # (m, R)
        starts = np.arange(0, m * n_draws + 1, n_draws, dtype=np.int32)
        ones = np.ones(m * n_draws, dtype=np.float32)
        shape = (n_draws * n_classes, m)
        sums = sparse.csc_array((ones, cell.ravel(), starts), shape=shape) @ features
        return sums.reshape(n_draws, n_classes, -1)

    def _of_gaps(self, gaps, labels):
        other = gaps if self.class_kernel is None else self.class_kernel @ gaps
        squares = self.largest**2 * np.einsum("rkd,rkd->r", gaps, other)
        if self.estimator == "biased":
            return np.maximum(squares, 0.0)
        return (squares - self._diagonal(labels)) / self.pair_weight

    def _diagonal(self, labels):
        """Σ_i w_i² r_iᵀ M r_i: the features of a sample have the norm 1."""
        own = 1.0 if self.class_kernel is None else np.diagonal(self.class_kernel)[labels]
        norms = own - 2 * picked(self.similarity, labels) + self.square
        return norms @ self.data.weight**2


class AnyKernelError:
    """Makes the exact squared kernel error, or that of random features, as the options say."""

    kind = "classes"

    parameter_constraints: ClassVar[dict] = (
        SquaredKernelError.parameter_constraints | FOURIER_CONSTRAINTS
    )

    @staticmethod
    def from_options(predictions, **options):
        if options.get("method") == "fourier":
            check_fourier("fourier", options.get("kernel"), options.get("estimator", "unbiased"))
            return FourierKernelError.from_options(predictions, **options)
        for name in FOURIER_CONSTRAINTS:
            options.pop(name, None)
        return SquaredKernelError.from_options(predictions, **options)
