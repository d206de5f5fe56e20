"""Bounds on the error of an estimate at any number of samples, with explicit constants."""

import math
from numbers import Real
from typing import Any, Literal, NamedTuple

from .._inputs.scikit_learn import Interval, validate_params
from ..metrics._interval import largest_exponent
from ..metrics._registry import METRICS, RadiusRule
from ._limits import find_interval
from ._measured import LIMITS_CONSTRAINTS


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
    LIMITS_CONSTRAINTS | {"metric": [str], "n_samples": [Interval(Real, 1, None, closed="left")]}
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

    The interval from estimate − below to estimate + above contains the metric of the whole
    distribution with at least the given probability. It is wide.

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
        The numbers `below` and `above`, in the units of the metric.

    Raises
    ------
    ValueError
        If no radius is known for the metric with these arguments.

    See Also
    --------
    confidence_interval : The interval itself, or a narrower one.

    Notes
    -----
    Let :math:`\delta_a` and :math:`\delta_b` be the probabilities of error above and below, half of
    1 − `confidence_level` each if there are two ends. Most errors are suprema of means. By
    McDiarmid's inequality [2]_, if one sample changes the error by at most R/n, and its bias is at
    most :math:`B / \sqrt n`,

    .. math::
        \mathrm{above} = R \sqrt{\frac{\log(1 / \delta_a)}{2 n}}, \qquad
        \mathrm{below} = \frac{B}{\sqrt n} + R \sqrt{\frac{\log(1 / \delta_b)}{2 n}}.

    - *Smooth error*: R = 2, B = 3/2.
    - *Lower distance* [1]_: R = 2, B = 1; `tol` is added above.
    - *Laplace kernel error*, exact and not squared: :math:`R = \sqrt{2 + 2 e^{-1/h}}`, B = 1.
    - *Kernel error* with a named kernel and a number as `bandwidth`: :math:`R = 2 \sqrt 2`,
      :math:`B = \sqrt 2`, for any number of classes.
    - *Cumulative error* [3]_: R = 2, B = 2.365 for "max" and 2.954 for "range".
    - *Interval error, "random-grid"*: R = 2, :math:`B = \sqrt{\lceil 1 / \varepsilon \rceil + 1}`.
    - *Interval error, "surrogate"*: above is the least of :math:`u_K + 2^{-K}` over K, with
      :math:`u_K = \sqrt{2 \log((K + 1) / \delta_a) / n}`; below is of order :math:`n^{-1/3}`.

    **More than two classes.** The same radius holds for "confidence", and for "classwise" with
    "macro" (not for "surrogate"). There is none for "top-label" and for weights by class, for bins
    that follow the data, for debiased errors, nor for the level set and the exact interval error.

    The constants: theory page *what each measure is*.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu and Nakkiran (2023). A Unifying Theory of Distance from Calibration.
       STOC. :arxiv:`2211.16886`
    .. [2] McDiarmid (1989). On the Method of Bounded Differences. Surveys in Combinatorics,
       148–188. :doi:`10.1017/CBO9781107359949.008`
    .. [3] Massart (1990). The Tight Constant in the Dvoretzky-Kiefer-Wolfowitz Inequality. Annals
       of Probability. :doi:`10.1214/aop/1176990746`

    Examples
    --------
    >>> from skcalib.uncertainty import finite_sample_radius
    >>> finite_sample_radius("smooth_calibration_error", 10_000)
    FiniteSampleRadius(below=0.042..., above=0.027...)
    """
    (rule, params), n = check_has_radius(metric, metric_params or {}), n_samples

    def ends(error: float) -> tuple[float, float]:
        if params.get("method") == "surrogate":
            return _surrogate_ends(n, error, params["precision"])
        bias, change, slack = rule.bounds(params)
        deviation = change * math.sqrt(math.log(1 / error) / (2 * n))
        return -bias / math.sqrt(n) - deviation, deviation + slack

    low, high = find_interval(ends, confidence_level, alternative)
    return FiniteSampleRadius(-low, high)


_MULTI_CLASS_OPTIONS = {"multi_class": ["classwise", "confidence"], "average": ["auto", "macro"]}


def _surrogate_ends(n: float, error: float, precision: float) -> tuple[float, float]:
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
    return -bias - 2 * math.sqrt(math.log(1 / error) / (2 * n)), above


def check_has_radius(
    metric: str, metric_params: dict[str, Any]
) -> tuple[RadiusRule, dict[str, Any]]:
    """The rule of a metric, and all its options, which must be those with a known radius."""
    rules = {name: entry.radius for name, entry in METRICS.items() if entry.radius is not None}
    if metric not in rules:
        raise ValueError(
            f"metric must be one with a known radius: {sorted(rules)}; found {metric!r}. "
            "Choose one of them, or pass method='auto' to confidence_interval."
        )
    defaults, allowed = METRICS[metric].options, _MULTI_CLASS_OPTIONS | rules[metric].options
    options = {key: metric_params[key] for key in metric_params.keys() - {"labels", "pos_label"}}
    changed = {name for name, value in options.items() if value is not defaults.get(name, options)}
    if changed - allowed.keys():
        raise ValueError(
            f"metric_params must be among {sorted(allowed)}, with which {metric} has a known "
            f"radius; found {sorted(changed - allowed.keys())}. Leave them out, or pass "
            "method='auto' to confidence_interval."
        )
    params = METRICS[metric].validate_options(options)
    if params.get("method") == "surrogate":
        allowed["multi_class"] = ["confidence"]
    for name, values in allowed.items():
        if values is not None and params[name] not in values:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, values))} for the radius of {metric}; "
                f"found {params[name]!r}. Choose one of these, or pass method='auto' to "
                "confidence_interval."
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
