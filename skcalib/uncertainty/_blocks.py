"""Blocks of a series, as groups of samples that are not independent."""

import math

import numpy as np

from .._inputs.constraints import IntegerInterval
from .._inputs.scikit_learn import validate_params

# An interval needs as many groups.
_FEWEST_BLOCKS = 10


@validate_params(
    {"n_samples": [IntegerInterval(1)], "block_length": [IntegerInterval(1), None]},
    prefer_skip_nested_validation=True,
)
def consecutive_blocks(n_samples: int, *, block_length: int | None = None) -> np.ndarray:
    r"""Number the consecutive blocks of a series, as `groups` of its samples.

    Neighbours in a series depend on each other, but blocks that are long enough nearly do not.
    With these groups, intervals and comparisons hold for series.

    Parameters
    ----------
    n_samples : int
        Number of samples, in the order of time.

    block_length : int, default=None
        Number of samples in a block; some blocks are longer by a part if `n_samples` is no
        multiple. It should be several times the number of steps after which samples hardly depend
        on each other. By default the square root of `n_samples`, rounded down, but so that there
        are at least 10 blocks if there are as many samples.

    Returns
    -------
    groups : ndarray of shape (n_samples,)
        The number of the block of each sample, from 0 on.

    See Also
    --------
    compare : With ``groups=consecutive_blocks(len(y))``, a test of equal accuracy of two forecasts
        of a series.
    confidence_interval : The interval of one model.

    Notes
    -----
    The variance of the mean of blocks of length l misses a part c/l of the variance of the mean of
    the series (:math:`c = 2 \varphi / (1 - \varphi^2)` for an autoregression with coefficient
    :math:`\varphi`), and it is estimated from n/l blocks. The error of this estimate is least for
    :math:`l \propto n^{1/3}` [1]_. A test needs longer blocks, as Student's t allows for the small
    number of blocks, but nothing for what they miss; :math:`l \propto n^{1/2}` is the order
    that balances a test's two errors [2]_. What either does to the size is in
    the benchmark "Coverage of confidence intervals, and false alarms of comparisons".

    References
    ----------
    .. [1] E. Carlstein (1986). The Use of Subseries Values for Estimating the Variance of a General
       Statistic from a Stationary Sequence. Annals of Statistics 14(3).
       :doi:`10.1214/aos/1176350057`
    .. [2] E. Lazarus, D. J. Lewis, J. H. Stock and M. W. Watson (2018). HAR Inference:
       Recommendations for Practice. Journal of Business & Economic Statistics 36(4).
       :doi:`10.1080/07350015.2018.1506926`

    Examples
    --------
    >>> from skcalib.uncertainty import consecutive_blocks
    >>> consecutive_blocks(7, block_length=3)
    array([0, 0, 0, 0, 1, 1, 1])
    """
    if block_length is None:
        block_length = min(math.isqrt(n_samples), n_samples // _FEWEST_BLOCKS)
    n_blocks = max(1, n_samples // max(1, block_length))
    return np.arange(n_samples) * n_blocks // n_samples
