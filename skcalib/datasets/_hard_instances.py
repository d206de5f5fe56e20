"""The distributions that show how far measures of calibration can be apart.

Each generator returns a whole distribution, not a sample: one row for each input and outcome, with
its probability as the weight. So the measures return the quantities of the lemmas exactly.
"""

import math
from numbers import Real

import numpy as np

from .._inputs.scikit_learn import Interval, StrOptions, validate_params


def _distribution(y_proba, true_proba, share):
    """Labels, predictions and weights of inputs (m,), all with outcome 0 first: (2 m,) each."""
    y_true = np.repeat([0, 1], len(y_proba))
    weight = np.concatenate([share * (1 - true_proba), share * true_proba])
    return y_true, np.tile(y_proba, 2), weight


def _four_inputs(alpha):
    """Shares and true probabilities of four inputs; the mean outcome of either half is 1/2."""
    share = np.array([0.5, alpha, alpha, 0.5]) / (1 + 2 * alpha)
    true_proba = np.array([0.5 - alpha, 1.0, 0.0, 0.5 + alpha])
    return share, true_proba


@validate_params(
    {
        "alpha": [Interval(Real, 0, 0.5, closed="neither")],
        "model": [StrOptions({"near", "far"})],
        "return_inputs": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def make_indistinguishable_models(
    alpha: float = 0.1, *, model: str = "near", return_inputs: bool = False
) -> tuple[np.ndarray, ...]:
    r"""Two models with the same law of predictions and labels, near calibration and far from it.

    Both predict :math:`1/2 - \alpha` or :math:`1/2 + \alpha`, and at either prediction half of the
    outcomes are 1. One is at a distance of :math:`2 \alpha^2 / (1 + 2 \alpha)` from a calibrated
    predictor, the other of :math:`\alpha`. No measure of predictions and labels alone can tell them
    apart, so none can determine the distance better than up to its square (Lemma 4.5 of [1]_).

    Parameters
    ----------
    alpha : float in (0, 0.5), default=0.1
        The :math:`\alpha`, which is the larger of the two distances.

    model : {"near", "far"}, default="near"
        Which of the two models.

    return_inputs : bool, default=False
        Whether to return the inputs too, on which the distance depends.

    Returns
    -------
    y_true : ndarray of shape (8,)
        Outcomes, 0 or 1.

    y_proba : ndarray of shape (8,)
        Predicted probabilities of outcome 1.

    sample_weight : ndarray of shape (8,)
        The probabilities of the rows, which sum to 1.

    inputs : ndarray of shape (8,)
        The number of the input, 0 to 3. Only if `return_inputs` is True.

    See Also
    --------
    skcalib.metrics.calibration_distance_bounds : Here it gives both distances, as its two bounds.

    Notes
    -----
    The inputs 0 to 3 have probabilities :math:`(1/2, \alpha, \alpha, 1/2) / (1 + 2 \alpha)`. The
    first two are predicted :math:`1/2 - \alpha`, the others :math:`1/2 + \alpha`. In the model that
    is far, every outcome is 1 with probability 1/2, so only the constant 1/2 is calibrated. In the
    model that is near, these probabilities are :math:`1/2 - \alpha, 1, 0, 1/2 + \alpha`: it becomes
    calibrated if the predictions of inputs 1 and 2 move to 1/2. [1]_ has a construction of this
    kind, with a distance of at most :math:`2 \alpha^2`.

    References
    ----------
    .. [1] J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023). A Unifying Theory of Distance from
       Calibration. STOC 2023. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.datasets import make_indistinguishable_models
    >>> from skcalib.metrics import calibration_distance_bounds
    >>> for model in ["near", "far"]:
    ...     y_true, y_proba, sample_weight = make_indistinguishable_models(0.1, model=model)
    ...     bounds = calibration_distance_bounds(y_true, y_proba, sample_weight=sample_weight)
    ...     print(*(round(bound, 4) for bound in bounds))
    0.0167 0.1
    0.0167 0.1
    """
    share, true_proba = _four_inputs(alpha)
    if model == "far":
        true_proba = np.full(4, 0.5)
    y_proba = 0.5 + alpha * np.array([-1.0, -1.0, 1.0, 1.0])
    distribution = _distribution(y_proba, true_proba, share)
    return (*distribution, np.tile(np.arange(4), 2)) if return_inputs else distribution


@validate_params(
    {
        "alpha": [Interval(Real, 0, 0.5, closed="neither")],
        "separation": [Interval(Real, 0, 0.5, closed="neither")],
    },
    prefer_skip_nested_validation=True,
)
def make_interval_error_gap(
    alpha: float = 0.1, *, separation: float = 1e-3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""A model whose interval calibration error is about the root of its distance to calibration.

    With a small separation β, its distance to calibration is at most :math:`2 \alpha (\alpha +
    \beta) / (1 + 2 \alpha)`, even if equal predictions must stay equal. Its interval calibration
    error is :math:`\alpha + 2 \alpha \beta / (1 + 2 \alpha)`. So the bounds between the two cannot
    be improved, constants apart (Lemma 6.8 of [1]_).

    Parameters
    ----------
    alpha : float in (0, 0.5), default=0.1
        The :math:`\alpha`, about the interval calibration error.

    separation : float in (0, 0.5), default=1e-3
        The :math:`\beta`, the distance of predictions that are nearly equal; at most
        :math:`1/2 - \alpha`.

    Returns
    -------
    y_true : ndarray of shape (8,)
        Outcomes, 0 or 1.

    y_proba : ndarray of shape (8,)
        Predicted probabilities of outcome 1.

    sample_weight : ndarray of shape (8,)
        The probabilities of the rows, which sum to 1.

    See Also
    --------
    make_indistinguishable_models : The same model without the separation.

    Notes
    -----
    The predictions :math:`1/2 - \alpha - \beta, 1/2 - \alpha, 1/2 + \alpha, 1/2 + \alpha + \beta`
    have the probabilities :math:`(\alpha, 1/2, 1/2, \alpha) / (1 + 2 \alpha)`, and outcomes are 1
    with the probabilities :math:`1, 1/2 - \alpha, 1/2 + \alpha, 0`. Moving the two outer
    predictions to 1/2 calibrates the model. No interval holds both of them without the inner ones,
    so intervals cannot do the same.

    References
    ----------
    .. [1] J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023). A Unifying Theory of Distance from
       Calibration. STOC 2023. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.datasets import make_interval_error_gap
    >>> from skcalib.metrics import interval_calibration_error, lower_distance_to_calibration
    >>> y_true, y_proba, sample_weight = make_interval_error_gap(0.1)
    >>> round(interval_calibration_error(y_true, y_proba, sample_weight=sample_weight), 4)
    0.1002
    >>> round(lower_distance_to_calibration(y_true, y_proba, sample_weight=sample_weight), 4)
    0.0168
    """
    check_separation(alpha, separation)
    share, true_proba = _four_inputs(alpha)
    y_proba = 0.5 + np.array([-alpha, -alpha - separation, alpha + separation, alpha])
    return _distribution(y_proba, true_proba, share)


def check_separation(alpha, separation):
    """Predictions lie in [0, 1]."""
    if alpha + separation > 0.5:
        raise ValueError(
            f"separation must be at most {0.5 - alpha:.4g}, which is 0.5 - alpha; found "
            f"{separation}. Choose a smaller separation or alpha."
        )


@validate_params(
    {
        "alpha": [Interval(Real, 0, 0.5, closed="neither")],
        "shift": [Interval(Real, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def make_interval_error_jump(
    alpha: float = 0.1, *, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""A model whose interval calibration error jumps when its predictions move by a hair.

    It is :math:`\alpha` if the shift is 0, and :math:`4 \alpha (\alpha - \delta) / (1 + 2 \alpha)`
    for a shift :math:`\delta > 0`, however small, which moves no prediction by more than δ. So the
    interval calibration error is not continuous in the predictions (Lemma 6.9 of [1]_).

    Parameters
    ----------
    alpha : float in (0, 0.5), default=0.1
        The :math:`\alpha`, which is the error without a shift.

    shift : float in [0, alpha), default=0.0
        The :math:`\delta`, by which two of the predictions move towards 1/2.

    Returns
    -------
    y_true : ndarray of shape (8,)
        Outcomes, 0 or 1.

    y_proba : ndarray of shape (8,)
        Predicted probabilities of outcome 1.

    sample_weight : ndarray of shape (8,)
        The probabilities of the rows, which sum to 1.

    See Also
    --------
    make_interval_error_gap : Two of the predictions move away from 1/2.

    Notes
    -----
    The predictions :math:`1/2 - \alpha, 1/2 - \alpha + \delta, 1/2 + \alpha - \delta, 1/2 + \alpha`
    have the probabilities :math:`(1/2, \alpha, \alpha, 1/2) / (1 + 2 \alpha)`, and outcomes are 1
    with the probabilities :math:`1/2 - \alpha, 1, 0, 1/2 + \alpha`. With a shift, an interval may
    hold the two inner ones, whose errors cancel, without the outer ones, which are calibrated.
    Without a shift it cannot.

    References
    ----------
    .. [1] J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023). A Unifying Theory of Distance from
       Calibration. STOC 2023. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.datasets import make_interval_error_jump
    >>> from skcalib.metrics import interval_calibration_error
    >>> for shift in [0.0, 1e-9]:
    ...     y_true, y_proba, weight = make_interval_error_jump(0.1, shift=shift)
    ...     print(round(interval_calibration_error(y_true, y_proba, sample_weight=weight), 4))
    0.1
    0.0333
    """
    check_shift(alpha, shift)
    share, true_proba = _four_inputs(alpha)
    y_proba = 0.5 + np.array([-alpha, shift - alpha, alpha - shift, alpha])
    return _distribution(y_proba, true_proba, share)


def check_shift(alpha, shift):
    """Predictions must stay on their side of 1/2."""
    if shift >= alpha:
        raise ValueError(
            f"shift must be below alpha={alpha}; found {shift}. Choose a smaller shift."
        )


@validate_params(
    {"scale": [Interval(Real, 0, 0.1, closed="right")]}, prefer_skip_nested_validation=True
)
def make_gaussian_kernel_blind_spot(
    scale: float = 0.01,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""A miscalibrated model that the Gaussian kernel takes for a calibrated one.

    The residuals oscillate with the predictions, at a scale ε. The smooth calibration error is at
    least :math:`0.3 \varepsilon^{3/2}`, the kernel calibration error of the kernel :math:`e^{-(u -
    v)^2}` at most :math:`\sqrt\varepsilon\, e^{-1/(8 \varepsilon (1 + \varepsilon))}`. So the
    Gaussian kernel, unlike that of Laplace, does not give a consistent measure (Theorem 8.6 of
    [1]_).

    Parameters
    ----------
    scale : float in (0, 0.1], default=0.01
        The :math:`\varepsilon`: the period of the oscillation is :math:`2 \pi \varepsilon`.

    Returns
    -------
    y_true : ndarray of shape (n_rows,)
        Outcomes, 0 or 1.

    y_proba : ndarray of shape (n_rows,)
        Predicted probabilities of outcome 1.

    sample_weight : ndarray of shape (n_rows,)
        The probabilities of the rows, which sum to 1.

    See Also
    --------
    skcalib.metrics.laplace_kernel_calibration_error : A kernel that sees every miscalibration.

    Notes
    -----
    The predictions are uniform on :math:`m = \lceil 10 / \varepsilon \rceil` equally spaced points
    of [1/4, 3/4], which makes 2 m rows, and

    .. math::
        \mathrm{E}[y \mid p] = p + \tfrac14 \sin\Big(\frac{p - 1/2}{\varepsilon}\Big)
        \exp\Big({-\frac{2 (p - 1/2)^2}{\varepsilon}}\Big).

    The smooth calibration error is at least what the function :math:`\varepsilon \sin((p - 1/2) /
    \varepsilon)` sees. The Fourier transform of the residuals is concentrated about the frequencies
    :math:`\pm 1 / \varepsilon`, where that of a Gaussian kernel vanishes. The proof in [1]_ has an
    oscillation of this kind, with a smaller amplitude. A squared error below 1e-16 is lost in
    rounding: that is so for scales below about 0.005.

    References
    ----------
    .. [1] J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023). A Unifying Theory of Distance from
       Calibration. STOC 2023. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.datasets import make_gaussian_kernel_blind_spot
    >>> from skcalib.metrics import kernel_calibration_error, laplace_kernel_calibration_error
    >>> y_true, y_proba, sample_weight = make_gaussian_kernel_blind_spot(0.01)
    >>> laplace_kernel_calibration_error(y_true, y_proba, sample_weight=sample_weight) > 1e-3
    True
    >>> kernel_calibration_error(
    ...     y_true, y_proba, kernel="rbf", bandwidth=1.0, sample_weight=sample_weight
    ... ) < 1e-6
    True
    """
    n_points = math.ceil(10 / scale)
    offset = (np.arange(n_points) + 0.5) / (2 * n_points) - 0.25  # from the middle, 1/2
    residual = np.sin(offset / scale) * np.exp(-2 * offset**2 / scale) / 4
    share = np.full(n_points, 1 / n_points)
    return _distribution(0.5 + offset, 0.5 + offset + residual, share)
