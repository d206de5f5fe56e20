"""Risk–coverage curves: how often the most confident predictions are wrong."""

from dataclasses import dataclass

import numpy as np

from .._data import check_predictions
from .._inputs.annotations import DataFrame
from .._inputs.arrays import ArrayLike, import_package
from .._inputs.scikit_learn import Label, validate_params
from .._numerics.reliability import rate_bounds


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """The numbers of a risk–coverage curve: what :func:`risk_coverage_curve` returns.

    Parameters
    ----------
    threshold : ndarray of shape (n_thresholds,)
        The distinct confidences, falling; answers of at least this confidence are used.

    coverage : ndarray of shape (n_thresholds,)
        Share of the samples that are used, rising to 1.

    risk : ndarray of shape (n_thresholds,)
        Share of these that are wrong.

    lower : ndarray of shape (n_thresholds,)
        Lower end of the interval of the risk at each threshold.

    upper : ndarray of shape (n_thresholds,)
        Upper end of it.

    area : float
        Area under the curve (AURC): the mean risk over the confidences of all samples.

    Examples
    --------
    >>> from skcalib.metrics import risk_coverage_curve
    >>> risk_coverage_curve([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6]).risk.round(3)
    array([0.   , 0.5  , 0.333, 0.5  ])
    """

    threshold: np.ndarray
    coverage: np.ndarray
    risk: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    area: float

    def to_frame(self) -> DataFrame:
        """The curve as a data frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each threshold, with the columns "threshold", "coverage", "risk", "lower"
            and "upper"; ``frame.plot("coverage", ["risk", "lower", "upper"])`` draws it.
        """
        pd = import_package("pandas", "to_frame()", "pandas")
        return pd.DataFrame(vars(self)).drop(columns="area")


@validate_params()
def risk_coverage_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> RiskCoverageCurve:
    r"""Risk–coverage curve: how many are wrong of those that are at least so confident.

    For stated confidences, the labels say whether each answer was right. Of more than two classes
    the confidence is the probability of the predicted class; of a classifier of two, pass whether
    it was right, and the larger probability. The curve shows whether confidence tells right from
    wrong, which is not calibration: only the order of the confidences matters.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes (rows sum to 1).

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    confidence_level : float in (0, 1), default=0.95
        At each threshold the risk is in its interval with this probability.

    Returns
    -------
    curve : RiskCoverageCurve
        Its `threshold`, `coverage` and `risk`, the ends `lower` and `upper` of the interval at each
        threshold, and the `area`.

    See Also
    --------
    decision_curve : Net benefit at each threshold, which depends on calibration.
    skcalib.uncertainty.confidence_interval : The interval of the area, as in the examples.

    Notes
    -----
    With weights :math:`w_i` that sum to 1 and errors :math:`e_i`, 0 or 1, coverage and risk at the
    threshold t are :math:`c(t) = \sum_{p_i \ge t} w_i` and :math:`r(t) = \sum_{p_i \ge t} w_i e_i /
    c(t)`. The area [1]_ is :math:`\sum_i w_i r(p_i)`: tied confidences are used together. The best
    order of the same errors, of share r, has nearly the area :math:`r + (1 - r) \log(1 - r)`; what
    exceeds it is E-AURC [1]_.

    The intervals are those of Clopper and Pearson, for independent samples. Cost: :math:`O(n \log
    n)`.

    References
    ----------
    .. [1] Geifman, Uziel and El-Yaniv (2019). Bias-Reduced Uncertainty Estimation for Deep Neural
       Classifiers. ICLR. :arxiv:`1805.08206`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import risk_coverage_curve
    >>> rng = np.random.default_rng(0)
    >>> stated = rng.choice([0.5, 0.8, 0.95], size=300)
    >>> is_right = rng.random(300) < stated
    >>> curve = risk_coverage_curve(is_right, stated)
    >>> curve.coverage.round(2), curve.risk.round(2), round(curve.area, 3)
    (array([0.38, 0.7 , 1.  ]), array([0.08, 0.13, 0.26]), 0.149)

    The interval of the area; with `groups`, also of questions that belong together:

    >>> from skcalib.uncertainty import confidence_interval
    >>> low, high = confidence_interval(
    ...     lambda y, p: risk_coverage_curve(y, p).area, is_right, stated
    ... )
    """
    data = check_predictions(y_true, y_proba, sample_weight, pos_label, labels)
    problem = data if data.is_binary else data.confidence()
    points, weight, square = (values[..., ::-1] for values in problem.pool_label_weights())
    mass = weight.sum(axis=0)
    coverage = np.cumsum(mass)
    risk = np.cumsum(weight[0]) / coverage
    count = coverage**2 / np.cumsum(square.sum(axis=0))
    lower, upper = rate_bounds(np.minimum(risk, 1.0), count, (1 - confidence_level) / 2)
    return RiskCoverageCurve(points, coverage, risk, lower, upper, float(mass @ risk))
