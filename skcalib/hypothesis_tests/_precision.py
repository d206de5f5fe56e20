"""The number of labels that makes the intervals of O:E ratio and slope narrow enough."""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.stats import norm

from .._inputs.arrays import ArrayLike
from .._inputs.probabilities import check_probabilities
from .._inputs.scikit_learn import Interval, validate_params
from .._numerics.logits import log_odds
from ._power import take_one_column


@dataclass(frozen=True)
class PrecisionSampleSize:
    """Numbers of samples that make the intervals of a validation narrow enough.

    Parameters
    ----------
    n_samples : int
        The larger one of the two numbers below.

    n_events : float
        The number of events to be expected among these samples.

    observed_expected_ratio : int
        Number of samples for the O:E ratio.

    calibration_slope : int
        Number of samples for the calibration slope.

    See Also
    --------
    sample_size_for_precision : The function that returns it.

    Examples
    --------
    >>> from skcalib.hypothesis_tests import PrecisionSampleSize
    >>> PrecisionSampleSize(2136, 918.5, 510, 2136).n_samples
    2136
    """

    n_samples: int
    n_events: float
    observed_expected_ratio: int
    calibration_slope: int


@validate_params(
    {
        "ratio_width": [Interval(Real, 0, None, closed="neither")],
        "slope_width": [Interval(Real, 0, None, closed="neither")],
    }
)
def sample_size_for_precision(
    y_proba: ArrayLike,
    *,
    ratio_width: float = 0.2,
    slope_width: float = 0.2,
    confidence_level: float = 0.95,
) -> PrecisionSampleSize:
    r"""Sample size of an external validation: how many labels make the intervals narrow.

    So many samples give the confidence intervals of O:E ratio and calibration slope the wanted
    widths, if the model is calibrated (Riley et al. [1]_).

    Parameters
    ----------
    y_proba : array-like of shape (n_predictions,) or (n_predictions, 2)
        Predictions of two classes such as the model is to make in the validation; one-dimensional
        ones are of the event, as is the second column. Their distribution counts, not their
        number: a thousand or more from an earlier study, or drawn from an assumed distribution.

    ratio_width : float, default=0.2
        Width of the interval of the O:E ratio; 0.2 is from 0.905 to 1.105.

    slope_width : float, default=0.2
        Width of the interval of the calibration slope; 0.2 is from 0.9 to 1.1.

    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals.

    Returns
    -------
    size : PrecisionSampleSize
        The number of samples for both, `n_samples`, and for each.

    Raises
    ------
    ValueError
        If there are not two different predictions between 0 and 1.

    See Also
    --------
    required_sample_size : For the power of a test.
    skcalib.uncertainty.clinical_calibration : The intervals.

    Notes
    -----
    With the quantile z of the normal distribution and the mean prediction φ, the interval of the
    O:E ratio is :math:`e^{\pm z s}` for the standard error s of its logarithm, which is of width w
    if :math:`s = \mathrm{arsinh}(w / 2) / z`. That needs :math:`n = (1 - \phi) / (\phi s^2)`
    samples. For the slope, with log-odds :math:`L` and :math:`v = p (1 - p)`, let :math:`I_\alpha =
    \mathrm{E}\,v`, :math:`I_{\alpha\beta} = \mathrm{E}\,L v`, :math:`I_\beta = \mathrm{E}\,L^2 v`,
    and :math:`s = w / (2 z)`. Then :math:`n = I_\alpha / (s^2 (I_\alpha I_\beta -
    I_{\alpha\beta}^2))`. Cost O(n).

    References
    ----------
    .. [1] Riley, Debray, Collins, Archer, Ensor, van Smeden and Snell (2021). Minimum sample size
       for external validation of a clinical prediction model with a binary outcome. Statistics in
       Medicine. :doi:`10.1002/sim.9025`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.hypothesis_tests import sample_size_for_precision
    >>> y_proba = np.random.default_rng(0).beta(1.33, 1.75, size=100_000)
    >>> sample_size_for_precision(y_proba).calibration_slope
    21...
    """
    proba = take_one_column(check_probabilities(y_proba))
    if proba.ndim > 1 or len(np.unique(proba[(proba > 0) & (proba < 1)])) < 2:
        raise ValueError(
            "y_proba must hold at least two different probabilities of an event between 0 and 1, "
            f"as no slope can be estimated otherwise; found shape {proba.shape}, from "
            f"{proba.min():.3g} to {proba.max():.3g}. Pass predictions such as the model makes."
        )
    logits = log_odds(proba)
    quantile = norm.isf((1 - confidence_level) / 2)
    error = np.arcsinh(ratio_width / 2) / quantile
    ratio = (1 - proba.mean()) / (proba.mean() * error**2)
    variance = proba * (1 - proba)
    level = np.mean(variance)
    centred = logits - np.mean(logits * variance) / level
    slope = (2 * quantile / slope_width) ** 2 / np.mean(centred**2 * variance)
    sizes = int(np.ceil(ratio)), int(np.ceil(slope))
    return PrecisionSampleSize(max(sizes), float(max(sizes) * proba.mean()), *sizes)
