"""The distributions that show how far measures of calibration can be apart."""

import math
from numbers import Real
from typing import Literal

import numpy as np

from .._inputs.options import check_options_of
from .._inputs.scikit_learn import Interval, validate_params

# The options of each problem.
_HARD_INSTANCE_OPTIONS: dict[str, tuple[str, ...]] = {
    "near": ("offset", "separation", "return_inputs"),
    "far": ("offset", "return_inputs"),
    "gaussian-blind-spot": ("period",),
}


@validate_params(
    {
        "offset": [Interval(Real, 0, 0.5, closed="neither")],
        "separation": [Interval(Real, None, None, closed="neither")],
        "period": [Interval(Real, 0, 0.1, closed="right")],
    }
)
def make_hard_instance(
    problem: Literal["near", "far", "gaussian-blind-spot"] = "near",
    *,
    offset: float = 0.1,
    separation: float = 0.0,
    period: float = 0.01,
    return_inputs: bool = False,
) -> tuple[np.ndarray, ...]:
    r"""The models that show how far measures of calibration can be apart.

    It returns a whole distribution, not a sample: one row for each input and outcome, with its
    probability as the weight, for the lemmas of [1]_.

    Parameters
    ----------
    problem : {"near", "far", "gaussian-blind-spot"}, default="near"
        Two models of the same predictions and labels, one near to calibration and one far from it;
        or a miscalibrated model that a Gaussian kernel takes for calibrated.

    offset : float in (0, 0.5), default=0.1
        The :math:`\alpha` of "near" and "far": predictions are 1/2 ∓ α.

    separation : float in (-offset, 0.5 - offset], default=0.0
        The :math:`\beta` by which two predictions of "near" move away from 1/2, or towards it if
        negative.

    period : float in (0, 0.1], default=0.01
        The :math:`\varepsilon` of "gaussian-blind-spot": the period of its oscillation is :math:`2
        \pi \varepsilon`.

    return_inputs : bool, default=False
        Whether to return the inputs of "near" and "far" too.

    Returns
    -------
    y_true : ndarray of shape (n_rows,)
        Outcomes, 0 or 1.

    y_proba : ndarray of shape (n_rows,)
        Predicted probabilities of outcome 1.

    sample_weight : ndarray of shape (n_rows,)
        The probabilities of the rows, which sum to 1.

    inputs : ndarray of shape (n_rows,)
        The number of the input, 0 to 3. Only if `return_inputs` is True.

    See Also
    --------
    skcalib.metrics.calibration_distance_bounds : Gives both distances of "near" and "far".

    Notes
    -----
    **"near" and "far"** have four inputs, of the probabilities :math:`(1/2, \alpha, \alpha, 1/2) /
    (1 + 2 \alpha)`. The first two are predicted :math:`1/2 - \alpha`, the others :math:`1/2 +
    \alpha`. The true probabilities are 1/2 in "far", and :math:`1/2 - \alpha, 1, 0, 1/2 + \alpha`
    in "near". The distance to calibration is :math:`\alpha` in "far", and :math:`2 \alpha^2 / (1 +
    2 \alpha)` in "near" (Lemma 4.5). With :math:`\beta > 0` the interval calibration error of
    "near" is far larger than its distance (Lemma 6.8); with :math:`\beta < 0`, however small, it
    jumps (Lemma 6.9). For that lemma the paper has other models, in its Table 2: "near" behaves as
    the lemma says, but with other numbers.

    **"gaussian-blind-spot"** has residuals that oscillate with the predictions. These are uniform
    on :math:`m = \lceil 10 / \varepsilon \rceil` equally spaced points of [1/4, 3/4], which makes 2
    m rows, and

    .. math::
        \mathrm{E}[y \mid p] = p + \tfrac14 \sin\Big(\frac{p - 1/2}{\varepsilon}\Big)
        \exp\Big({-\frac{2 (p - 1/2)^2}{\varepsilon}}\Big).

    The smooth calibration error is at least :math:`0.3 \varepsilon^{3/2}`, the kernel error of
    :math:`e^{-(u - v)^2}` at most :math:`\sqrt\varepsilon\, e^{-1/(8 \varepsilon (1 +
    \varepsilon))}` (Theorem 8.6).

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.datasets import make_hard_instance
    >>> from skcalib.metrics import calibration_distance_bounds
    >>> for problem in ["near", "far"]:
    ...     y_true, y_proba, weight, inputs = make_hard_instance(problem, return_inputs=True)
    ...     for given in (None, inputs):
    ...         bounds = calibration_distance_bounds(
    ...             y_true, y_proba, sample_weight=weight, given=given
    ...         )
    ...         print(*(round(bound, 4) for bound in bounds))
    0.0167 0.1
    0.0167 0.0167
    0.0167 0.1
    0.1 0.1

    >>> from skcalib.metrics import kernel_calibration_error
    >>> y_true, y_proba, weight = make_hard_instance("gaussian-blind-spot", period=0.01)
    >>> kernel_calibration_error(
    ...     y_true, y_proba, kernel="rbf", bandwidth=1.0, sample_weight=weight
    ... ) < 1e-6
    True
    """
    check_options_of(make_hard_instance, {"problem": _HARD_INSTANCE_OPTIONS}, locals())
    if problem == "gaussian-blind-spot":
        n_points = math.ceil(10 / period)
        gap = (np.arange(n_points) + 0.5) / (2 * n_points) - 0.25  # from the middle, 1/2
        y_proba = 0.5 + gap
        true_proba = y_proba + np.sin(gap / period) * np.exp(-2 * gap**2 / period) / 4
        share = np.full(n_points, 1 / n_points)
    else:
        if not -offset < separation <= 0.5 - offset:
            raise ValueError(
                f"separation must be above {-offset:.4g} and at most {0.5 - offset:.4g}, which is "
                f"0.5 - offset; found {separation}. Choose a smaller separation or another offset."
            )
        shifted_offset = offset + separation
        y_proba = 0.5 + np.array([-offset, -shifted_offset, shifted_offset, offset])
        share = np.array([0.5, offset, offset, 0.5]) / (1 + 2 * offset)
        true_proba = np.array([0.5 - offset, 1.0, 0.0, 0.5 + offset])
        if problem == "far":
            true_proba = np.full(4, 0.5)
    y_true = np.repeat([0, 1], len(y_proba))
    weight = np.concatenate([share * (1 - true_proba), share * true_proba])
    extra = [np.tile(np.arange(4), 2)] * return_inputs
    return y_true, np.tile(y_proba, 2), weight, *extra
