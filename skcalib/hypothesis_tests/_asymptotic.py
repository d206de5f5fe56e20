"""Known laws and bounds of kernel errors: of classes, and of forecasts."""

from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.utils import check_random_state

from .._statistics.gram import gram_own_terms, gram_quadratic_forms
from .._statistics.matching_checks import FEATURE_KERNELS
from ._base import HypothesisTest, as_p_value, check_supports, monte_carlo_p_value

# Entries of the matrix of resampled counts that are held at once (128 MB).
_MAX_BOOTSTRAP_ENTRIES = 2**24


def asymptotic(error: Any, statistic: float, test: HypothesisTest) -> tuple[Any, ...]:
    """The p-value by the limit law of the estimate, and the null distribution if one is drawn."""
    random_state = check_random_state(test.random_state)
    if "asymptotic" in error.supports:  # by a bootstrap of its own
        null = error.resample_null(test.n_resamples, random_state)
    elif error.block_size is None:
        null = bootstrap_null(error, test.n_resamples, random_state)
    else:
        sums = error.block_sums(error.data.outcome[None])[:, 0]
        return blocks_p_value(sums, error.pair_weight), None
    return monte_carlo_p_value(np.append(statistic, null)), null


def distribution_free(error: Any, statistic: float, test: HypothesisTest) -> tuple[Any, ...]:
    """The bound on the p-value that holds for every number of samples; nothing is drawn."""
    n = len(error.data.weight)
    options = error.estimation, n, error.block_size, error.largest_term
    return distribution_free_p_value(statistic, *options), None


NULL_METHODS = {"asymptotic": asymptotic, "distribution-free": distribution_free}


def check_null_method(test: Any, statistic: Any) -> None:
    """Laws and bounds are known for kernel statistics only, and most for equal weights only."""
    if test.method in statistic.supports:
        return
    check_supports(
        statistic,
        "pair-terms",
        f"method={test.method!r} needs statistic='skce', of all classes at once or with the "
        f"exact method, whose law is known; found statistic={test.statistic!r}, "
        f"bandwidth={test.bandwidth!r} and metric_params={test.metric_params!r}. Use "
        "method='conditional', which takes any statistic.",
    )
    estimation = statistic.estimation
    if test.method == "distribution-free":
        check_is_bounded(statistic)
    if test.method == "asymptotic" and estimation == "biased":
        raise ValueError(
            "method='asymptotic' needs an unbiased estimate; found estimation='biased'. Use "
            "'unbiased', or method='conditional'."
        )
    weight, block_size = statistic.data.weight, statistic.block_size
    is_mean_of_blocks = test.method == "asymptotic" and block_size is not None
    if not is_mean_of_blocks and np.ptp(weight) > 0:
        raise ValueError(
            f"method={test.method!r} with estimation={estimation!r} needs equal weights; found "
            "a sample_weight that varies. Use method='conditional'."
        )
    if is_mean_of_blocks and len(weight) < 2 * block_size:
        raise ValueError(
            f"method='asymptotic' with estimation={estimation!r} needs at least two blocks, "
            f"that is {2 * block_size} samples; found {len(weight)}. Use smaller blocks, or "
            "method='conditional'."
        )


def check_is_bounded(statistic: Any) -> None:
    """The bounds are for terms that are bounded, and do not depend on each other's outcomes."""
    options = statistic.options
    if statistic.largest_term is None:
        raise ValueError(
            "method='distribution-free' needs a named kernel of outcomes, which is at most 1; "
            f"found kernel={options['kernel']!r}. Use method='conditional'."
        )
    # of the outcomes: one of predictions is a number by now, and kernels of decisions have none
    has_none = callable(options["kernel"]) or options["kernel"] in FEATURE_KERNELS
    if options["bandwidth"] == "median" and not has_none:
        raise ValueError(
            "method='distribution-free' needs a bandwidth that does not depend on the outcomes; "
            "found 'median'. Pass a number, or use method='conditional'."
        )


def bootstrap_null(error: Any, n_resamples: int, random_state: np.random.RandomState) -> np.ndarray:
    """Bootstrap values of the unbiased estimate, a degenerate U-statistic (Arcones and Giné 1992).

    With multinomial counts C and a = n/(n − 1) the replicate is

        n⁻² Σ_i C_i Σ_j (a (C_j − 1[i = j]) − 2) h_ij + n⁻² Σ_{i,j} h_ij

    for a times the unbiased estimate. Its projection on single samples is subtracted.
    """
    order = error.data.canonical_order()
    n = len(order)
    kernel, points, mass = error.gram_terms()
    diagonal = gram_own_terms(kernel, points, mass[:, None])[:, 0]
    scale = n / (n - 1)
    null = []
    for start in range(0, n_resamples, max(1, _MAX_BOOTSTRAP_ENTRIES // n)):
        size = min(max(1, _MAX_BOOTSTRAP_ENTRIES // n), n_resamples - start)
        counts = np.empty((n, size))
        counts[order] = random_state.multinomial(n, np.full(n, 1 / n), size=size).T
        forms, row_sums = gram_quadratic_forms(kernel, points, mass, counts)
        projected = 2 * row_sums + scale * diagonal
        null.append((scale * forms - projected @ counts + row_sums.sum()) / scale)
    return np.concatenate(null)


def blocks_p_value(sums: np.ndarray, pair_weight: np.ndarray) -> float:
    """One-sided p-value of a mean over independent blocks, from their sample standard deviation."""
    mean = sums.sum() / pair_weight.sum()
    n_blocks = len(sums)
    deviation = np.sqrt(np.sum((sums - mean * pair_weight) ** 2) * n_blocks / (n_blocks - 1))
    if deviation == 0:  # all blocks are alike
        return as_p_value(0.5**n_blocks) if mean > 0 else 1.0
    return as_p_value(student.sf(sums.sum() / deviation, n_blocks - 1))


def distribution_free_p_value(
    statistic: float, estimation: str, n: int, block_size: int | None, bound: float
) -> float:
    """Bounds on the p-value from section 6 of Widmann et al. (2019), for terms |h| ≤ bound."""
    bound = bound or 1.0  # of a kernel that is 0
    if estimation == "biased":
        excess = max(0.0, np.sqrt(n * max(statistic, 0.0) / bound) - 1)
        return as_p_value(np.exp(-(excess**2) / 2))
    # number of pairs whose terms are independent of each other
    n_pairs = n // 2 if block_size is None else (n // block_size) * (block_size // 2)
    excess = max(statistic, 0.0)
    return as_p_value(np.exp(-n_pairs * (excess / bound) ** 2 / 2))
