"""The number of labels that makes the intervals of a clinical validation narrow enough."""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

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
        The largest one of the numbers below.

    n_events : float
        The number of events to be expected among these samples.

    observed_expected_ratio : int
        Number of samples for the O:E ratio.

    calibration_slope : int
        Number of samples for the calibration slope.

    area_under_roc_curve : int
        Number of samples for the C-statistic.

    net_benefit : int or None, default=None
        Number of samples for the standardised net benefit; None without `threshold`.

    See Also
    --------
    sample_size_for_precision : The function that returns it.

    Examples
    --------
    >>> from skcalib.hypothesis_tests import PrecisionSampleSize
    >>> PrecisionSampleSize(2136, 918.5, 510, 2136, 402).n_samples
    2136
    """

    n_samples: int
    n_events: float
    observed_expected_ratio: int
    calibration_slope: int
    area_under_roc_curve: int
    net_benefit: int | None = None


_WIDTH, _PROBABILITY = (Interval(Real, 0, end, closed="neither") for end in (None, 1))
_WIDTHS = ("ratio_width", "slope_width", "auc_width", "net_benefit_width")


@validate_params(
    {name: [_WIDTH] for name in _WIDTHS}
    | {"prevalence": [_PROBABILITY, None], "threshold": [_PROBABILITY, None]}
)
def sample_size_for_precision(
    y_proba: ArrayLike,
    *,
    ratio_width: float = 0.2,
    slope_width: float = 0.2,
    auc_width: float = 0.1,
    net_benefit_width: float = 0.2,
    prevalence: float | None = None,
    threshold: float | None = None,
    confidence_level: float = 0.95,
) -> PrecisionSampleSize:
    r"""Sample size of an external validation: how many labels make the intervals narrow.

    So many samples give the confidence intervals of O:E ratio, calibration slope, C-statistic and
    net benefit the wanted widths, if the model is calibrated (Riley et al. [1]_).

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

    auc_width : float, default=0.1
        Width of the interval of the C-statistic, the area under the ROC curve.

    net_benefit_width : float, default=0.2
        Width of the interval of the net benefit divided by the prevalence.

    prevalence : float in (0, 1), default=None
        Share of events in the validation; by default the mean prediction.

    threshold : float in (0, 1), default=None
        The risk from which on one acts; by default the net benefit is not planned.

    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals.

    Returns
    -------
    size : PrecisionSampleSize
        The number of samples for all, `n_samples`, and for each.

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
    With the quantile z of the normal distribution and the prevalence φ, the interval of the
    O:E ratio is :math:`e^{\pm z s}` for the standard error s of its logarithm, which is of width w
    if :math:`s = \mathrm{arsinh}(w / 2) / z`. That needs :math:`n = (1 - \phi) / (\phi s^2)`
    samples. For the slope, with log-odds :math:`L` and :math:`v = p (1 - p)`, let :math:`I_\alpha =
    \mathrm{E}\,v`, :math:`I_{\alpha\beta} = \mathrm{E}\,L v`, :math:`I_\beta = \mathrm{E}\,L^2 v`,
    and :math:`s = w / (2 z)`. Then :math:`n = I_\alpha / (s^2 (I_\alpha I_\beta -
    I_{\alpha\beta}^2))`.

    C-statistic C, sensitivity a and specificity b at the threshold t are those to be expected from
    the predictions. The variance of C is Newcombe's,

    .. math:: \frac{C (1 - C)}{n^2 \phi (1 - \phi)} \Bigl(1 + \bigl(\frac n2 - 1\bigr)
        \bigl(\frac{1 - C}{2 - C} + \frac{C}{1 + C}\bigr)\Bigr).

    That of the standardised net benefit is :math:`(a (1 - a) / \phi + w^2 b (1 - b) / (1 - \phi) +
    w^2 (1 - b)^2 / (\phi (1 - \phi))) / n`
    with :math:`w = \frac{1 - \phi}{\phi} \frac{t}{1 - t}`. Cost O(n log n).

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
    share = float(proba.mean()) if prevalence is None else prevalence
    variance = proba * (1 - proba)
    level = np.mean(variance)
    centred = logits - np.mean(logits * variance) / level
    slope = (2 * quantile / slope_width) ** 2 / np.mean(centred**2 * variance)
    ratio = (1 - share) / share * (quantile / np.arcsinh(ratio_width / 2)) ** 2
    labels, weight = np.repeat([1, 0], len(proba)), np.concatenate([proba, 1 - proba])
    area = roc_auc_score(labels, np.tile(proba, 2), sample_weight=weight)
    precision = (2 * quantile / auc_width) ** 2 * area * (1 - area) / (share * (1 - share))
    pairs = (1 - area) / (2 - area) + area / (1 + area)
    auc = precision * pairs / 4 + np.sqrt((precision * pairs / 4) ** 2 + precision * (1 - pairs))
    sizes = [ratio, slope, auc]
    if threshold is not None:
        acts = proba >= threshold
        hit, alarm = (acts @ mass / mass.sum() for mass in (proba, 1 - proba))
        price = (1 - share) / share * threshold / (1 - threshold)
        terms = hit * (1 - hit) / share + (price * alarm) ** 2 / (share * (1 - share))
        terms += price**2 * alarm * (1 - alarm) / (1 - share)
        sizes.append((2 * quantile / net_benefit_width) ** 2 * terms)
    numbers = [int(np.ceil(size)) for size in sizes]
    return PrecisionSampleSize(max(numbers), max(numbers) * share, *numbers)
