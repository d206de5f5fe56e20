"""Sums over units, such as groups of samples, whose terms may go together."""

from collections.abc import Iterable

import numpy as np
from scipy.stats import t

from .sorting import codes_by_appearance, cumulate

# Groups up to this many times as large or small tell how much labels of a group depend on each
# other; the remainder is for sums of weights that are equal but for rounding.
_MAX_SIZE_RATIO = 2.0000001

# Groups in which all goes together that are added to those of the data.
_N_ADDED_GROUPS = 2

# Where the effective number of samples is estimated, residuals of the added groups have only this
# correlation.
_ADDED_CORRELATION = 0.1


class UnitSums:
    """Sums over units: over groups of samples, or samples if there are none.

    Parameters: the weights (n,), and the groups (n,) or None. Those of two columns (n, 2) are the
    groups in which both agree. Squares (n,) have the sum 1 / the effective number of samples; by
    default that is the number of units.
    """

    def __init__(
        self, weight: np.ndarray, groups: np.ndarray | None, square: np.ndarray | None = None
    ) -> None:
        self.weight, self.has_groups = weight, groups is not None
        if groups is not None and groups.ndim > 1:
            groups = groups @ [groups.max() + 1, 1]
        self.code = np.arange(len(weight)) if groups is None else codes_by_appearance(groups)
        self.number = int(self.code.max()) + 1
        self.share = self.add(weight)
        self.square = weight * self.share[self.code] if square is None else square
        total = self.share @ self.share if square is None else square.sum()
        self.effective_size = float(1 / total)

    def add(self, terms: np.ndarray) -> np.ndarray:
        """The sums (U,) of terms (n,)."""
        return np.bincount(self.code, terms, self.number) if self.has_groups else terms

    def correlation(self, residuals: Iterable[np.ndarray], *, per_sample: bool = False) -> float:
        """The correlation within groups of residuals of mean 0, each (n,); from 0 to 1.

        Large groups count by their pairs, or with `per_sample` by their samples. By pairs it is at
        least the correlation with two more groups of a small one, as few groups show little.
        """
        products, most = 0.0, np.zeros(self.number)
        factor = 1 / np.maximum(np.bincount(self.code) - 1, 1) if per_sample else 1.0
        for residual in residuals:
            square = self.weight * residual**2
            same = self.add(self.weight * square)
            products += float(np.sum(factor * (self.add(self.weight * residual) ** 2 - same)))
            most += factor * (self.share * self.add(square) - same)
        total = float(most.sum())
        if total <= 0:
            return 1.0
        added = 0.0 if per_sample else _N_ADDED_GROUPS * float(most @ most) / total
        least = max(products, 0.0) + added * _ADDED_CORRELATION
        return min(max(products / total, least / (total + added)), 1.0)

    def dependence(self, residual: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        """The dependence of residuals (n,) with standard deviations (n,) in each unit, (U,).

        It is from 0 to 1, and compares the products of residuals within groups with their largest
        possible values, over all groups of at least half and at most twice the weight. Two groups
        of the same weight are added, in which residuals depend fully on each other.
        """
        if not self.has_groups:
            return np.zeros(self.number)
        most = self.add(deviation) ** 2 - self.add(deviation**2)
        products = self.add(residual) ** 2 - self.add(residual**2)
        products, most = sum_similar(self.share, np.stack([products, most]), most)
        ratio = np.divide(products, most, out=np.ones_like(most), where=most > 0)
        return np.clip(ratio, 0.0, 1.0)

    def variance(self, deviation: np.ndarray, dependence: np.ndarray) -> float:
        """The variance of the sum of terms of standard deviations (n,)."""
        if not self.has_groups:
            return float(deviation @ deviation)
        independent = self.add(deviation**2)
        return float(np.sum(independent + dependence * (self.add(deviation) ** 2 - independent)))


def sum_similar(size: np.ndarray, values: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Sums of values (k, G) over all groups of a similar size, plus added ones of the largest.

    For each of the groups these are those of at least half and at most twice its size.
    """
    order = np.argsort(size, kind="stable")
    first = np.searchsorted(size[order], size / _MAX_SIZE_RATIO)
    last = np.searchsorted(size[order], size * _MAX_SIZE_RATIO)
    total = cumulate(values.take(order, axis=1))
    return total.take(last, axis=1) - total.take(first, axis=1) + _N_ADDED_GROUPS * largest


def split_columns(groups: np.ndarray | None) -> list[np.ndarray | None]:
    """Return one column of groups, or two that cross each other, and both together."""
    if groups is None or groups.ndim < 2:
        return [groups]
    return [*groups.T, groups]


def cross_variances(first: float, second: float = 0.0, both: float = 0.0) -> float:
    """Return the variance of crossed groups, from those of either column and of both."""
    return max(first + second - both, first, second)


class GroupedSums:
    """The variance of sums over samples whose terms may depend on each other within groups.

    Parameters: the weights (n,), which sum to 1, and the groups: None, codes (n,), or codes (n, 2)
    of two columns that cross each other. The variance of these is the sum of both, less that of
    the groups in which both agree; but no less than either.
    """

    def __init__(self, weight: np.ndarray, groups: np.ndarray | None) -> None:
        self.weight = weight
        self.units = [UnitSums(weight, code) for code in split_columns(groups)]
        size = min(unit.effective_size for unit in self.units)
        self.degrees = np.inf if groups is None else size - 1

    def standard_deviation(self, residual: np.ndarray, deviation: np.ndarray) -> float:
        """Return how far a sum varies, of terms of standard deviations (n,) and residuals (n,)."""
        variances = [u.variance(deviation, u.dependence(residual, deviation)) for u in self.units]
        return float(np.sqrt(cross_variances(*variances)))

    def quantile(self, confidence_level: float) -> float:
        """Half the width of an interval, in standard deviations.

        It is Student's, with 1 less degree of freedom than the effective number of groups, the
        smaller of two; without groups it is normal.
        """
        return float(t.isf((1 - confidence_level) / 2, self.degrees))
