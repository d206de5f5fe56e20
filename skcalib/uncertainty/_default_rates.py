"""Upper bounds of the default rates of a rating with few defaults."""

from numbers import Real

import numpy as np

from .._inputs.arrays import ArrayLike, as_array, format_values
from .._inputs.scikit_learn import Interval, validate_params
from .._numerics.vasicek import default_rate_limits

# Below it, the integral over the common factor would need more than 10⁵ nodes.
_MIN_CORRELATION = 1e-6


@validate_params(
    {
        "n_obligors": ["array-like"],
        "n_defaults": ["array-like"],
        "correlation": [Interval(Real, 0, 1, closed="left")],
    }
)
def most_prudent_default_rates(
    n_obligors: ArrayLike,
    n_defaults: ArrayLike,
    *,
    confidence_level: float = 0.95,
    correlation: float = 0.0,
) -> np.ndarray:
    r"""Default probabilities (PDs) for grades with few defaults or none, by Pluto and Tasche.

    The estimate of a grade is the upper confidence bound of its PD if all worse grades were no
    worse: their obligors and defaults are added to its own [1]_. The bounds are binomial, or, with
    a correlation, those of the one-factor model of Vasicek.

    Parameters
    ----------
    n_obligors : array-like of shape (n_grades,)
        Number of obligors of each grade, from the best grade to the worst; whole numbers from 1.

    n_defaults : array-like of shape (n_grades,)
        Number of defaults of each grade; whole numbers from 0 to that of the obligors.

    confidence_level : float in (0, 1), default=0.95
        Probability with which each bound is at least the PD.

    correlation : float in [0, 1), default=0.0
        Correlation ρ of the assets of any two obligors; 0 if defaults are independent.

    Returns
    -------
    rates : ndarray of shape (n_grades,)
        The bounds, in (0, 1]; 1 if all obligors of a grade and of worse ones defaulted.

    See Also
    --------
    skcalib.hypothesis_tests.RatingGradeTest : Tests given PDs; its table has two-sided intervals.

    Notes
    -----
    With N obligors and D defaults in a grade and all worse ones, the bound is the PD π for which D
    defaults or fewer have the probability 1 − confidence level. For independent defaults it is the
    quantile of Beta(D + 1, N − D) at the confidence level: without defaults 1 − (1 − confidence
    level)^{1/N}. With a correlation, a bank in the economy Z, which is standard normal, has D
    defaults from the binomial distribution of probability
    :math:`\Phi((\Phi^{-1}(\pi) - \sqrt{\rho} Z) / \sqrt{1 - \rho})`.

    The bound covers the PD if worse grades have larger PDs. A bound below that of a better grade is
    raised to it. All are for one period. Cost: O(n_grades).

    References
    ----------
    .. [1] Pluto and Tasche (2005). Estimating probabilities of default for low default portfolios.
       :arxiv:`cond-mat/0411699`

    Examples
    --------
    The first example of the paper: three grades without any default.

    >>> from skcalib.uncertainty import most_prudent_default_rates
    >>> 100 * most_prudent_default_rates([100, 400, 300], [0, 0, 0], confidence_level=0.9).round(4)
    array([0.29, 0.33, 0.76])
    """
    check_correlation(correlation)
    n, defaults = check_grade_counts(n_obligors, n_defaults)
    pooled, pooled_defaults = (np.cumsum(counts[::-1])[::-1] for counts in (n, defaults))
    limits = default_rate_limits(pooled, pooled_defaults, 1 - confidence_level, correlation)[1]
    return np.maximum.accumulate(limits)


def check_correlation(correlation: float) -> None:
    """Refuse correlations that are almost 0."""
    if 0 < correlation < _MIN_CORRELATION:
        raise ValueError(
            f"correlation must be 0 or at least {_MIN_CORRELATION}; found {correlation!r}. Pass 0."
        )


def check_grade_counts(
    n_obligors: ArrayLike, n_defaults: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Check the counts of obligors and defaults, and return them as whole numbers."""
    n, defaults = as_array(n_obligors, "n_obligors"), as_array(n_defaults, "n_defaults")
    if n.ndim != 1 or n.shape != defaults.shape or not n.size:
        raise ValueError(
            "n_obligors and n_defaults must be 1-D, with a number for each grade; found the shapes "
            f"{n.shape} and {defaults.shape}. Pass two lists of the same length."
        )
    for name, counts in (("n_obligors", n), ("n_defaults", defaults)):
        if counts.dtype.kind not in "iuf" or not (counts == np.floor(counts)).all():
            raise ValueError(
                f"{name} must hold whole numbers; found {format_values(counts)}. Pass counts, not "
                "rates."
            )
    if not ((n >= 1) & (defaults >= 0) & (defaults <= n)).all():
        raise ValueError(
            "n_obligors must be at least 1, and n_defaults from 0 to n_obligors, in each grade; "
            f"found {format_values(n)} and {format_values(defaults)}. Merge empty grades with "
            "their neighbours."
        )
    return n.astype(np.int64), defaults.astype(np.int64)
