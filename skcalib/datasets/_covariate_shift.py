"""One overconfident model, for inputs that shift."""

from numbers import Real

import numpy as np
from scipy.special import expit
from scipy.stats import truncnorm
from sklearn.utils import check_random_state

from .._inputs.constraints import IntegerInterval
from .._inputs.scikit_learn import Interval, validate_params
from .._inputs.types import RandomState


@validate_params(
    {
        "n_samples": [IntegerInterval(1)],
        "location": [Interval(Real, -1, 1, closed="both")],
        "return_true_proba": ["boolean"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_covariate_shift(
    n_samples: int = 1000,
    *,
    location: float = 0.0,
    return_true_proba: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    r"""Binary predictions of one overconfident model, for inputs that shift.

    The conditional distributions of outcome and prediction given the input stay the same, while the
    inputs move: a measure for comparing models should move little. This is the problem of Section
    5.2 of [1]_.

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
    .. [1] P. Moskvichev and D. Sejdinovic (2025). All Models Are Miscalibrated, But Some Less So:
       Comparing Calibration with Conditional Mean Operators. :arxiv:`2502.11465`

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
