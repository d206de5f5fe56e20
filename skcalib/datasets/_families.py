"""Probabilities of classes, calibrated or wrong in known ways."""

from numbers import Real
from typing import Literal

import numpy as np
from scipy.special import expit
from scipy.stats import truncnorm
from sklearn.utils import check_random_state

from .._inputs.drawing import draw_labels
from .._inputs.scikit_learn import Count, Interval, RandomState, validate_params
from .._inputs.warnings import check_memory


@validate_params({"location": [Interval(Real, -1, 1, closed="both")]})
def make_covariate_shift(
    n_samples: int = 1000,
    *,
    location: float = 0.0,
    return_true_proba: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    r"""Binary predictions of one overconfident model, for inputs that shift.

    The distributions of outcome and prediction given the input stay the same, while inputs move, as
    in Section 5.2 of [1]_.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    location : float in [-1, 1], default=0.0
        The :math:`\alpha` of [1]_, around which the inputs lie.

    return_true_proba : bool, default=False
        Whether to return the true probabilities too.

    random_state : int, RandomState instance or None, default=None
        Draws the inputs, then the outcomes.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Outcomes, 0 or 1.

    y_proba : ndarray of shape (n_samples,)
        Predicted probabilities of outcome 1.

    true_proba : ndarray of shape (n_samples,)
        True probabilities of outcome 1. Only if `return_true_proba` is True.

    Notes
    -----
    Inputs x are normal with mean `location` and standard deviation 0.25, truncated to [−1, 1];
    the outcome is 1 with probability :math:`1 / (1 + e^{-x})`, the prediction :math:`1 / (1 +
    e^{-5x})`.

    References
    ----------
    .. [1] Moskvichev and Sejdinovic (2025). All Models Are Miscalibrated, But Some Less So.
       :arxiv:`2502.11465`

    Examples
    --------
    >>> from skcalib.datasets import make_covariate_shift
    >>> from skcalib.metrics import conditional_kernel_calibration_error as ckce
    >>> from skcalib.metrics import joint_kernel_calibration_error as jkce
    >>> for location in [-1, 0, 1]:
    ...     y_true, y_proba = make_covariate_shift(location=location, random_state=0)
    ...     print(round(ckce(y_true, y_proba), 2), round(jkce(y_true, y_proba), 2))
    0.09 0.24
    0.09 0.03
    0.11 0.29
    """
    rng = check_random_state(random_state)
    low, high = (-1 - location) / 0.25, (1 - location) / 0.25
    x = truncnorm.rvs(low, high, loc=location, scale=0.25, size=n_samples, random_state=rng)
    true_proba = expit(x)
    y_true = (rng.uniform(size=n_samples) < true_proba).astype(int)
    y_proba = expit(5 * x)
    return (y_true, y_proba, true_proba) if return_true_proba else (y_true, y_proba)


@validate_params({"n_classes": [Count(2, 10**4)]})
def make_dirichlet_family(
    n_samples: int = 250,
    *,
    n_classes: int = 10,
    model: Literal["M1", "M2", "M3"] = "M1",
    return_true_proba: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    r"""Multi-class predictions from a Dirichlet distribution, of three models.

    The predictions are the same, the labels differ (see Notes), as in Section 7 of [1]_.

    Parameters
    ----------
    n_samples : int, default=250
        Number of samples.

    n_classes : int, default=10
        Number of classes K, at least 2.

    model : {"M1", "M2", "M3"}, default="M1"
        Which model; only the first one is calibrated.

    return_true_proba : bool, default=False
        Whether to return the true probabilities too.

    random_state : int, RandomState instance or None, default=None
        Draws the predictions, then the labels. An integer gives the same predictions for every
        model.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Labels from 0 to ``n_classes - 1``. In a small sample some may be missing: pass
        ``labels=range(n_classes)`` to the metrics.

    y_proba : ndarray of shape (n_samples, n_classes)
        Predicted probabilities.

    true_proba : ndarray of shape (n_samples, n_classes)
        Probabilities of the labels given the predictions. Only if `return_true_proba` is True.

    Notes
    -----
    .. math::
        p \sim \mathrm{Dir}(0.1, \dots, 0.1), \quad
        \mathrm{M1}: y \sim \mathrm{Cat}(p), \quad
        \mathrm{M2}: y \sim \tfrac12 \mathrm{Cat}(p) + \tfrac12 \delta_0, \quad
        \mathrm{M3}: y \sim \mathrm{Cat}(\tfrac1K, \dots, \tfrac1K).

    The expected calibration error, in total variation, is 0 for M1, :math:`(1 - 1/K) / 2` for M2,
    and for M3 with ten classes 0.71.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification.
       NeurIPS. :arxiv:`1910.11385`

    Examples
    --------
    >>> from skcalib.datasets import make_dirichlet_family
    >>> from skcalib.metrics import squared_kernel_calibration_error
    >>> for model in ["M1", "M2", "M3"]:
    ...     y_true, y_proba = make_dirichlet_family(model=model, random_state=0)
    ...     print(model, round(squared_kernel_calibration_error(y_true, y_proba), 3))
    M1 0.0
    M2 0.086
    M3 0.016
    """
    size_text = f"n_samples={n_samples} with n_classes={n_classes}"
    check_memory(24.0 * n_samples * n_classes, size_text, "Choose fewer.")
    rng = check_random_state(random_state)
    y_proba = rng.dirichlet(np.full(n_classes, 0.1), size=n_samples)
    if model == "M1":
        true_proba = y_proba
    elif model == "M2":
        true_proba = (y_proba + np.eye(n_classes)[0]) / 2
    else:
        true_proba = np.full_like(y_proba, 1 / n_classes)
    y_true = draw_labels(true_proba, 1, rng)[0].astype(int)
    return (y_true, y_proba, true_proba) if return_true_proba else (y_true, y_proba)


@validate_params({"inverse_temperature": [Interval(Real, 0, None, closed="left")]})
def make_temperature_family(
    n_samples: int = 1000,
    *,
    inverse_temperature: float = 1.0,
    return_true_proba: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    r"""Binary predictions that are a calibrated model's at another temperature.

    The prediction multiplies the logit of the true probability by the inverse temperature, as in
    Section 10.1 of [1]_: 1 gives a calibrated model, more an overconfident and less an
    underconfident one; 0 always predicts 1/2, which is calibrated too.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    inverse_temperature : float, default=1.0
        The :math:`\beta \ge 0` of [1]_, which is 1 / temperature.

    return_true_proba : bool, default=False
        Whether to return the true probabilities too.

    random_state : int, RandomState instance or None, default=None
        Draws the true probabilities, then the outcomes. An integer gives the same ones at every
        inverse temperature.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Outcomes, 0 or 1.

    y_proba : ndarray of shape (n_samples,)
        Predicted probabilities of outcome 1.

    true_proba : ndarray of shape (n_samples,)
        True probabilities of outcome 1. Only if `return_true_proba` is True.

    Notes
    -----
    .. math:: f \sim \mathrm{U}[0, 1], \quad y \sim \mathrm{Bernoulli}(f), \quad
        p = \frac{f^\beta}{f^\beta + (1 - f)^\beta}

    (equation 34 of [1]_). The expected calibration error of the whole distribution is
    :math:`\mathrm{E}|f - p|` unless :math:`\beta = 0`, such as 0.097 at :math:`\beta = 2`.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.metrics import smooth_calibration_error
    >>> y_true, y_proba = make_temperature_family(10_000, inverse_temperature=2, random_state=0)
    >>> smooth_calibration_error(y_true, y_proba)
    0.04...
    """
    rng = check_random_state(random_state)
    true_proba = rng.uniform(size=n_samples)
    y_true = (rng.uniform(size=n_samples) < true_proba).astype(int)
    y_proba = _sharpen(true_proba, inverse_temperature)
    return (y_true, y_proba, true_proba) if return_true_proba else (y_true, y_proba)


def _sharpen(proba: np.ndarray, beta: float) -> np.ndarray:
    """Return p^β / (p^β + (1 − p)^β) from the odds: powers may overflow, but are never 0/0."""
    with np.errstate(divide="ignore", over="ignore"):
        return 1 / (1 + ((1 - proba) / proba) ** beta)
