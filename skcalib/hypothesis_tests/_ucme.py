"""The test at chosen locations."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, Literal, Self

import numpy as np
from scipy.stats import chi2
from sklearn.utils import check_random_state

from .._data import ClassData
from .._inputs.arrays import ArrayLike, check_same_length
from .._inputs.checks import map_codes
from .._inputs.labels import encode_labels
from .._inputs.probabilities import check_probabilities
from .._inputs.scikit_learn import Count, estimator_class, fit_context
from .._inputs.warnings import check_memory
from .._statistics.kernels import KERNEL_CONSTRAINTS, check_finite_kernel, kernel_function
from ._base import check_class_input
from ._classical import ClassicalTest

# If the variance of the deviations in a direction is below this share of the sum of squares, they
# count as constant in it, and their mean must be 0.
_RANK = 1e-10

# In such a direction, a squared mean is more than rounding if it exceeds the smallest variance that
# counts by this factor.
_IMPOSSIBLE = 1e4


@estimator_class()
class UCMETest(ClassicalTest):
    r"""Test of calibration at a few random locations (unnormalised calibration mean embedding).

    Residuals, weighted by a kernel around each location, have mean 0 if the model is calibrated.
    The test is linear in the number of samples.

    Parameters
    ----------
    n_locations : int, default=10
        Number of test locations: probability vectors and classes, drawn uniformly.

    locations : tuple of (array-like of shape (m, n_classes), array-like of shape (m,)), \
            default=None
        Test locations instead of random ones: probability vectors and classes, chosen without the
        data.

    kernel : {"total-variation", "exponential", "laplacian", "rbf"} or callable, \
            default="total-variation"
        Kernel on the probability vectors, as in
        :func:`skcalib.metrics.squared_kernel_calibration_error`.

    bandwidth : "median" or float, default="median"
        The ν of a named kernel; "median" as in
        :func:`skcalib.metrics.squared_kernel_calibration_error`.

    method : {"conditional", "asymptotic"}, default="conditional"
        "conditional": the p-value is found by labels drawn from the predictions; exact.
        "asymptotic": by the limit distribution.

    n_resamples : int, default=999
        Number of draws; the smallest p-value is ``1 / (n_resamples + 1)``.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    random_state : int, RandomState instance or None, default=None
        Seed of the locations and draws. The order of the samples does not matter.

    Attributes
    ----------
    p_value_ : float
        The p-value, in (0, 1].

    statistic_ : float
        The statistic, which is asymptotically :math:`\chi^2` distributed.

    null_distribution_ : ndarray of shape (n_resamples,)
        The statistic of the draws, if "conditional".

    degrees_of_freedom_ : int
        The number of locations whose deviations vary independently.

    locations_ : tuple of (ndarray of shape (m, n_classes), ndarray of shape (m,))
        The test locations.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    CalibrationTest : Any statistic, at a cost that may grow faster.

    Notes
    -----
    With locations :math:`(t_l, s_l)` the deviations of sample i are :math:`z_{il} = k(t_l, p_i)
    (1[y_i = s_l] - p_i[s_l])`. Let m be their mean with weights :math:`w_i` that sum to 1. Given
    the predictions, its covariance under the hypothesis is known,

    .. math:: C_{lk} = \sum_i w_i^2 k(t_l, p_i) k(t_k, p_i) (1[s_l = s_k] p_i[s_l] - p_i[s_l]
        p_i[s_k]),

    and the statistic is :math:`T = m^\top C^{-1} m`. ([1]_ has the sample covariance for C.)
    Directions in which the deviations cannot vary are left out; if the mean differs from 0 in one
    of them, the statistic is infinite.

    **Conditional.** With the statistics T* of B draws, the p-value is :math:`(1 + \#\{T^*_b \ge
    T\}) / (1 + B)`. It is exact for weights that say nothing of the outcome beyond the
    prediction; a warning tells of others. Cost: :math:`O(n m (K + m + B))`.

    **Asymptotic.** For many samples T is :math:`\chi^2` distributed with as many degrees of freedom
    as locations. Calibrated predictions that crowd at the corners are rejected too often. Cost:
    :math:`O(n m (K + m))`.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2021). Calibration tests beyond classification. ICLR.
       :arxiv:`2210.13355`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import UCMETest
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(3), size=500)
    >>> y = rng.integers(3, size=500)
    >>> UCMETest(random_state=0).fit(proba, y).p_value_
    0.001
    """

    _parameter_constraints = {
        "n_locations": [Count(1)],
        "locations": [tuple, list, None],
        **KERNEL_CONSTRAINTS,
    }

    _n_arrays = 3

    n_locations: int = 10
    _: KW_ONLY
    locations: tuple | None = None
    kernel: str | Callable = "total-variation"
    bandwidth: float | Literal["median"] = "median"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the p-value.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one-dimensional ones are of the last class.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; only their ratios matter. For counts, repeat the rows: take
            all arrays at ``np.repeat(np.arange(n), counts)``.

        Returns
        -------
        self : object
            The fitted test.
        """
        data = check_class_input(self, X, y, sample_weight)
        n_classes = len(data.classes)
        random_state = check_random_state(self.random_state)
        if self.locations is None:
            points = random_state.dirichlet(np.ones(n_classes), size=self.n_locations)
            codes = random_state.randint(n_classes, size=self.n_locations)
        else:
            points, codes = check_locations(self.locations, data.classes)
        self.locations_ = points, data.classes[codes]
        self._evaluate(data, random_state, points, codes)
        return self

    def _statistic(self, data: ClassData, points: np.ndarray, codes: np.ndarray) -> Any:
        """mᵀ (Cov m)⁻¹ m, of which the covariance depends on the predictions only."""
        matrix, m = data.matrix, len(codes)
        # the values and their products with residuals, the covariance and what it is made of
        needed = 8.0 * (3 * len(matrix) * m + 4 * m**2)
        check_memory(needed, f"n_locations={m}", "Pass fewer locations: 10 is usual.")
        kernel = kernel_function(data, self.kernel, self.bandwidth)
        values = data.weight[:, None] * kernel(matrix, points)  # (n, m)
        check_finite_kernel(values)
        expected = values * matrix[:, codes]
        covariance = (codes[:, None] == codes) * (expected.T @ values) - expected.T @ expected
        variance, directions = np.linalg.eigh(covariance)
        smallest = _RANK * np.sum(values**2)
        varies = variance > smallest
        self.degrees_of_freedom_ = int(varies.sum())

        def statistic(labels: np.ndarray) -> Any:
            mean = np.empty((len(labels), len(codes)))
            for code in np.unique(codes):
                at = codes == code  # residuals are small where predictions are almost certain
                mean[:, at] = ((labels == code) - matrix[:, code]) @ values[:, at]
            coordinates = mean @ directions  # (R, m)
            total = np.sum(coordinates[:, varies] ** 2 / variance[varies], axis=1)
            impossible = coordinates[:, ~varies] ** 2 > _IMPOSSIBLE * smallest
            return np.where(impossible.any(axis=1), np.inf, total)

        return statistic

    def _asymptotic_p_value(self) -> float:
        if np.isinf(self.statistic_):
            return 0.0
        return chi2.sf(self.statistic_, self.degrees_of_freedom_) if self.degrees_of_freedom_ else 1


def check_locations(locations: tuple[Any, ...], classes: np.ndarray) -> tuple[Any, ...]:
    """Test locations as probability vectors (m, K) and indices of classes (m,)."""
    if len(locations) != 2:
        raise ValueError(
            "locations must be a pair, the probability vectors and the classes; found "
            f"{len(locations)} item(s)."
        )
    proba = check_probabilities(locations[0], name="locations[0]", partner="locations[1]")
    if proba.ndim == 1 or proba.shape[1] != len(classes):
        raise ValueError(
            f"locations[0] must hold probability vectors of {len(classes)} classes; found shape "
            f"{proba.shape}. Pass one row for each location."
        )
    observed, code = encode_labels(locations[1], name="locations[1]", partner="locations[0]")
    check_same_length({"locations[0]": len(proba), "locations[1]": len(code)})
    return proba, map_codes(observed, code, classes, name="locations[1]")
