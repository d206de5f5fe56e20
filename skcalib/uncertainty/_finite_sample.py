"""Bounds on the error of an estimate at any number of samples, with explicit constants."""

import math
from numbers import Real
from typing import Any, Literal, NamedTuple

from .._inputs.scikit_learn import Interval, validate_params
from ..metrics._interval import largest_exponent
from ..metrics._registry import METRICS, RadiusRule
from ._measured import RESAMPLING_CONSTRAINTS


class FiniteSampleRadius(NamedTuple):
    """The truth lies between the estimate minus `below` and the estimate plus `above`.

    Parameters
    ----------
    below : float
        How far the truth may be below the estimate.

    above : float
        How far the truth may be above the estimate.

    See Also
    --------
    finite_sample_radius : The function that returns it.

    Examples
    --------
    >>> from skcalib.uncertainty import FiniteSampleRadius
    >>> FiniteSampleRadius(below=0.05, above=0.03).above
    0.03
    """

    below: float
    above: float


@validate_params(
    RESAMPLING_CONSTRAINTS
    | {"metric": [str], "n_samples": [Interval(Real, 1, None, closed="left")]}
)
def finite_sample_radius(
    metric: str,
    n_samples: float,
    *,
    metric_params: dict | None = None,
    confidence_level: float = 0.95,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
) -> FiniteSampleRadius:
    r"""Radius of a confidence interval that holds for every distribution and every n.

    The interval from estimate − below to estimate + above contains the value of the metric on the
    whole distribution with at least the given probability, whatever the distribution. It needs no
    resampling and no large n, and it is wide: see the benchmark "How loose is the radius that holds
    at every number of samples?"

    Parameters
    ----------
    metric : str
        The name of one of the metrics below.

    n_samples : int or float
        Number of independent samples.

    metric_params : dict, default=None
        Further arguments of `metric`, for instance `n_bins`, `multi_class` or `pos_label`.

    confidence_level : float in (0, 1), default=0.95
        Probability with which the interval is to cover the value.

    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        Which ends the interval has. "greater": a lower end alone, "less": an upper end alone; the
        other radius is infinite.

    Returns
    -------
    radius : FiniteSampleRadius
        The numbers `below` and `above`, in the units of the metric. As errors are not negative, an
        interval may be clipped at 0.

    Raises
    ------
    ValueError
        If no radius is known for the metric with these arguments.

    See Also
    --------
    confidence_interval : The interval itself, with ``method="finite-sample"``, or a narrower one.

    Notes
    -----
    Section 9 of [1]_ shows such convergence up to constants, which are derived here. Let
    :math:`P_n` be the law of n independent samples of P, :math:`r = y - p`, and write
    :math:`Q g = \mathrm{E}_Q\, g(p, y)`. Let :math:`\delta_a` and :math:`\delta_b` be the
    probabilities of error above and below, half of 1 − `confidence_level` each if there are two
    ends.

    **Suprema of means.** Most of the errors are :math:`T(Q) = \sup_{g \in G} Q g` for a class G of
    functions. If one sample changes :math:`T(P_n)` by at most R/n, and B bounds :math:`\sqrt{n}
    \,\mathrm{E} \sup_g (P_n - P) g`,

    .. math::
        \mathrm{above} = R \sqrt{\frac{\log(1 / \delta_a)}{2 n}}, \qquad
        \mathrm{below} = \frac{B}{\sqrt n} + R \sqrt{\frac{\log(1 / \delta_b)}{2 n}}.

    For by McDiarmid's inequality [2]_ :math:`T(P_n)` deviates from its mean to one side by more
    than :math:`R \sqrt{\log(1/\delta) / (2n)}` with probability at most δ, and its mean lies
    between T(P), T being convex, and :math:`T(P) + B / \sqrt n`. So above needs no B at all.

    - *Smooth error*: R = 2, B = 3/2. The functions are :math:`g(p, 0) = -p f(p)` and :math:`g(p,
      1) = (1 - p) f(p)`, with f bounded by 1 and 1-Lipschitz. As g(0, 0) = 0 = g(1, 1), they are
      integrals: :math:`g(p, 0) = \int g'(t, 0) 1[p > t] dt`, with slopes of at most 1 + t, and
      :math:`g(p, 1) = -\int g'(t, 1) 1[p < t] dt`, with slopes of at most 2 − t. So :math:`\sup_g
      (P_n - P) g \le \int (1 + t) |S_0(t)| + (2 - t) |S_1(t)| dt` with :math:`S_0(t) = (P_n - P)
      1[y = 0, p > t]` and :math:`S_1(t) = (P_n - P) 1[y = 1, p < t]`. A frequency has a standard
      deviation of at most :math:`1 / (2 \sqrt n)`, hence :math:`\mathrm{E} \sup \le \frac{1}{2
      \sqrt n} \int 3\, dt`. (In one dimension this replaces symmetrisation and chaining, which give
      larger constants.)
    - *Lower distance*: R = 2, B = 1; `tol` is added above, as the number returned may be smaller
      than the exact one by that. :math:`g(p, y) = f_y(p)` with the potentials of equation 21 of
      [1]_. They may be taken as :math:`f_y(p) = \min_v |p - v| + (y - v) s(v)` with :math:`|s| \le
      1`: choose s(v) between :math:`f_1(v) / (1 - v)` and :math:`-f_0(v) / v`, and clip it to [−1,
      1]; no value of f becomes smaller. Then they are 1-Lipschitz, :math:`f_0(0) = 0 = f_1(1)`, and
      all values lie in [−1, 1]. As above, with slopes of at most 1: :math:`\mathrm{E} \sup \le
      \frac{1}{2 \sqrt n} \int 2\, dt`.
    - *Laplace kernel error*, exact and not squared: :math:`R = \sqrt{2 + 2 e^{-1/h}}`, B = 1. T(Q)
      is the norm of :math:`\mathrm{E}_Q\, r k_p` in the space of the kernel, with :math:`\|k_p\| =
      1`. So :math:`\mathrm{E} \|(P_n - P) r k_p\| \le \sqrt{\mathrm{E} r^2 / n}`, and R is the
      largest distance of :math:`r k_p` and :math:`r' k_{p'}`: that of p = 0, y = 1 from p = 1, y
      = 0.
    - *Kernel error* with a named kernel and a number as `bandwidth` (the median follows the data,
      so it has no radius): :math:`R = 2 \sqrt 2`, :math:`B = \sqrt 2`, in the same way, as
      :math:`\|e_y - p\| \le \sqrt 2`. It holds for any number of classes.
    - *Cumulative error*: R = 2, B = 2.365 for "max" and 2.954 for "range". :math:`r 1[a < p \le b]`
      is :math:`\int 1[y = 1, a < p \le \min(b, 1 - s)] - 1[y = 0, \max(a, s) < p \le b]\, ds`, so
      the supremum is at most that of the intervals of the two laws of p with y = 1 and with y = 0:
      the sum of the largest rise and the largest fall of an empirical distribution function, or one
      of these for the intervals that begin at 0. Their means follow from Massart's inequalities
      [3]_, :math:`\mathrm{E} \sup |F_n - F| \le 0.889 / \sqrt n` and :math:`\mathrm{E} \sup (F_n -
      F) \le 0.739 / \sqrt n`.
    - *Interval error, "random-grid"*: R = 2, :math:`B = \sqrt J`, :math:`J = \lceil 1 /
      \varepsilon \rceil + 1` being the largest number of intervals that meet [0, 1], as
      :math:`\sum_j \mathrm{E} |(P_n - P) r 1_{I_j}| \le \sum_j (\mathrm{E} r^2 1_{I_j} / n)^{1/2}
      \le (J / n)^{1/2}` by the inequality of Cauchy and Schwarz.

    **Interval error, "surrogate".** It is the minimum of :math:`R_k + 2^{-k}` over k, where
    :math:`R_k`, the error of the grid of width :math:`2^{-k}`, does not decrease in k. *Above*: the
    first K + 1 of the :math:`R_k(P)` exceed :math:`R_k(P_n)` by at most :math:`u_K = \sqrt{2
    \log((K + 1) / \delta_a) / n}`, with probability :math:`1 - \delta_a`. If the sample's minimum
    is at a larger k, :math:`T(P) \le R_K(P) + 2^{-K} \le T(P_n) + u_K + 2^{-K}`. So *above* is the
    least of :math:`u_K + 2^{-K}` over K. With a `precision`, k has a largest value; for K at that
    value, :math:`2^{-K}` falls away. *Below*: if the minimum for P is at l, any :math:`k \le l`
    gives :math:`\mathrm{E}\, T(P_n) \le T(P) + \sqrt{(2^k + 1) / n} + 2^{-k} - 2^{-l}`. The least
    over k and the largest over l, of order :math:`n^{-1/3}`, is the bound on the bias, to which
    :math:`2 \sqrt{\log(1 / \delta_b) / (2n)}` is added.

    **More than two classes.** "confidence" is a problem of two classes. For the mean over classes
    ("classwise" with "macro") R and B are the means of those of the classes, so the same radius
    holds (not for "surrogate"). For "top-label", where the classes' shares are random, and for
    weights by class there is none here.

    **Weights.** If weights :math:`w_i`, with sum 1, were fixed without regard to predictions and
    labels, and the samples are draws from P all the same, everything but the cumulative error
    holds with :math:`n = 1 / \sum_i w_i^2`. For weights that depend on the sample, such as
    importance weights, it does not hold: the estimate is then a quotient of two means.

    There is no radius for binned errors whose bins follow the data, for debiased estimates, for the
    expected calibration error over level sets, which no sample can estimate (Section 1 of [1]_),
    nor for the exact interval error, which would have to hold over all partitions at once: use its
    surrogate, which is never smaller.

    References
    ----------
    .. [1] J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023). A Unifying Theory of Distance from
       Calibration. STOC 2023. :arxiv:`2211.16886`
    .. [2] C. McDiarmid (1989). On the Method of Bounded Differences. Surveys in Combinatorics,
       148–188. :doi:`10.1017/CBO9781107359949.008`
    .. [3] P. Massart (1990). The Tight Constant in the Dvoretzky-Kiefer-Wolfowitz Inequality.
       Annals of Probability 18(3). :doi:`10.1214/aop/1176990746`

    Examples
    --------
    >>> from skcalib.uncertainty import finite_sample_radius
    >>> finite_sample_radius("smooth_calibration_error", 10_000)
    FiniteSampleRadius(below=0.042..., above=0.027...)
    """
    (rule, params), n = check_has_radius(metric, metric_params or {}), n_samples
    error = (1 - confidence_level) / (2 if alternative == "two-sided" else 1)
    if params.get("method") == "surrogate":
        below, above = _surrogate_radius(n, error, params["precision"])
    else:
        bias, change, slack = rule.bounds(params)
        deviation = change * math.sqrt(math.log(1 / error) / (2 * n))
        below, above = bias / math.sqrt(n) + deviation, deviation + slack
    if alternative == "greater":
        above = math.inf
    if alternative == "less":
        below = math.inf
    return FiniteSampleRadius(below, above)


_MULTI_CLASS_OPTIONS = {"multi_class": ["classwise", "confidence"], "average": ["auto", "macro"]}


def _surrogate_radius(n: Any, error: Any, precision: Any) -> Any:
    last = largest_exponent(precision)
    widths = [2.0**-k for k in range(last + 1)]
    ends = last if precision else math.inf  # there is no width after this k
    above = min(
        math.sqrt(2 * math.log((k + 1) / error) / n) + (0.0 if k == ends else width)
        for k, width in enumerate(widths)
    )
    bias = 0.0
    for end, narrowest in enumerate([*widths, 0.0]):
        if precision and end > last:
            continue
        allowed = widths[: end + 1]
        bias = max(
            bias, min(math.sqrt((1 / width + 1) / n) + width - narrowest for width in allowed)
        )
    return bias + 2 * math.sqrt(math.log(1 / error) / (2 * n)), above


def check_has_radius(
    metric: str, metric_params: dict[str, Any]
) -> tuple[RadiusRule, dict[str, Any]]:
    """The rule of a metric, and all its options, which must be those with a known radius."""
    rules = {name: entry.radius for name, entry in METRICS.items() if entry.radius is not None}
    if metric not in rules:
        raise ValueError(
            f"metric must be one with a known radius: {sorted(rules)}; found {metric!r}. "
            "Choose one of them, or an interval by resampling."
        )
    defaults, allowed = METRICS[metric].options, _MULTI_CLASS_OPTIONS | rules[metric].options
    options = {key: metric_params[key] for key in metric_params.keys() - {"labels", "pos_label"}}
    changed = {name for name, value in options.items() if value is not defaults.get(name, options)}
    if changed - allowed.keys():
        raise ValueError(
            f"metric_params must be among {sorted(allowed)}, with which {metric} has a known "
            f"radius; found {sorted(changed - allowed.keys())}. Leave them out, or choose an "
            "interval by resampling."
        )
    params = METRICS[metric].validate_options(options)
    if params.get("method") == "surrogate":
        allowed["multi_class"] = ["confidence"]
    for name, values in allowed.items():
        if values is not None and params[name] not in values:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, values))} for the radius of {metric}; "
                f"found {params[name]!r}. Choose one of these, or an interval by resampling."
            )
    if params.get("method") == "random-grid" and params["width"] is None:
        raise ValueError(
            "metric_params must hold the width of method='random-grid'; found none. Pass "
            "{'method': 'random-grid', 'width': 0.1}, for instance."
        )
    if params.get("bandwidth") == "median":
        raise ValueError(
            f"bandwidth must be a number for the radius of {metric}; found 'median', which "
            "follows the data. Pass a number that does not."
        )
    return rules[metric], params
