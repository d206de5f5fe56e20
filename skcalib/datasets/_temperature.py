"""A calibrated model's predictions at another temperature."""

from numbers import Real

import numpy as np
from sklearn.utils import check_random_state

from .._inputs.constraints import IntegerInterval
from .._inputs.scikit_learn import Interval, validate_params
from .._inputs.types import RandomState


@validate_params(
    {
        "n_samples": [IntegerInterval(1)],
        "inverse_temperature": [Interval(Real, 0, None, closed="left")],
        "return_true_proba": ["boolean"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_temperature_family(
    n_samples: int = 1000,
    *,
    inverse_temperature: float = 1.0,
    return_true_proba: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    r"""Binary predictions that are a calibrated model's at another temperature.

    The true probability f is uniform on [0, 1]; the prediction is what a model that knows f would
    say if its logit were multiplied by the inverse temperature. 1 gives a calibrated model, more an
    overconfident and less an underconfident one; 0 always predicts 1/2, which is calibrated too,
    since half of the outcomes are 1. This is the family of Section 10.1 of [1]_.

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
        inverse temperature, so that only the predictions differ.

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

    (equation 34 of [1]_). As f can be recovered from p unless :math:`\beta = 0`, the expected
    calibration error of the whole distribution is :math:`\mathrm{E}|f - p|`: for example
    :math:`(\ln 2) / 2 - 1/4 \approx 0.097` at :math:`\beta = 2`, and 1/4 in the limit
    :math:`\beta \to \infty`, where predictions are 0 and 1. As :math:`\beta \to 0` it tends to 1/4
    too, while the distance to the nearest calibrated predictor tends to 0.

    References
    ----------
    .. [1] J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023). A Unifying Theory of Distance from
       Calibration. STOC 2023. :arxiv:`2211.16886`

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.metrics import smooth_calibration_error
    >>> y_true, y_proba = make_temperature_family(10_000, random_state=0)
    >>> smooth_calibration_error(y_true, y_proba)
    0.00...
    >>> y_true, y_proba = make_temperature_family(10_000, inverse_temperature=2, random_state=0)
    >>> smooth_calibration_error(y_true, y_proba)
    0.04...
    """
    rng = check_random_state(random_state)
    true_proba = rng.uniform(size=n_samples)
    y_true = (rng.uniform(size=n_samples) < true_proba).astype(int)
    y_proba = _at_inverse_temperature(true_proba, inverse_temperature)
    return (y_true, y_proba, true_proba) if return_true_proba else (y_true, y_proba)


def _at_inverse_temperature(proba, beta):
    """p^β / (p^β + (1 − p)^β) through the odds, whose powers may overflow but never are 0/0."""
    with np.errstate(divide="ignore", over="ignore"):
        return 1 / (1 + ((1 - proba) / proba) ** beta)
