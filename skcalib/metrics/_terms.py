"""Terms whose sum is a metric: of the outcome observed in each sample, and of each other one."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._data import AnyData, ClassData
from .._inputs.scikit_learn import Average
from ..lenses import Lens, _get_lens

# More numbers are not held: then the terms of the observed outcomes must do.
MAX_POSSIBLE = 2**25


class MetricTerms(NamedTuple):
    """Terms of entries: a sample, or a sample in one of the problems to which a lens reduces it.

    The metric is Σ weight · observed, near the outcomes observed. Given the predictions, the
    outcome j of an entry has the probability proba[:, j] and adds possible[:, j].
    """

    weight: np.ndarray  # (m,)
    observed: np.ndarray  # (m,)
    possible: np.ndarray | None  # (m, J); None if there are too many
    proba: np.ndarray | None  # (m, J)
    row: np.ndarray | None = None  # (m,), the sample of each entry; None if they are the samples

    def sum_by_sample(self, n: int) -> np.ndarray:
        """The weighted terms (n,) of n samples."""
        terms = self.weight * self.observed
        return terms if self.row is None else np.bincount(self.row, terms, n)


class Witness(NamedTuple):
    """Factors that make an error a sum over the samples, Σ w (⟨factor, 1[y] − p⟩ + offset).

    What is added by a sample, less the error, is how fast the error grows with its weight.
    """

    factor: np.ndarray  # (n,) of two classes, which multiplies y − p; or (n, K)
    offset: np.ndarray | float = 0.0  # (n,), what a sample adds on average over its outcomes


def witness_terms(find_witness: Callable[..., Any]) -> Callable[..., MetricTerms | None]:
    """Return the function that gives the terms of any number of classes, which are reduced to two.

    `find_witness` takes data of two classes and options; with "canonical", of all classes. It
    returns None if these options have no witness. Of forecasts it returns the terms themselves.
    """

    def find_terms(
        data: AnyData,
        *,
        multi_class: str | Lens = "canonical",
        average: Average = "auto",
        **options: object,
    ) -> MetricTerms | None:
        if not isinstance(data, ClassData):
            return find_witness(data, **options)
        data = data.to_numpy()
        lens = _get_lens(multi_class)
        if lens is None or lens._is_identity(data):
            witness = find_witness(data, **options)
            return None if witness is None else _to_terms(data, witness)
        if average is None and not lens.is_single:
            return None  # there are several numbers
        is_weighted = (lens.average if average == "auto" else average) == "weighted"
        problems, entries, share = [], [], []
        for event, proba, weight, _, rows in lens.reduce(data):
            if not len(event) or (is_weighted and weight == 0):
                continue
            problem = data._reduce(event, proba, rows)
            witness = find_witness(problem, **options)
            if witness is None:
                return None
            row = np.arange(len(data.weight))[slice(None) if rows is None else rows]
            problems.append(problem)
            entries.append(_to_terms(problem, witness)._replace(row=row))
            share.append(weight if is_weighted else 1.0)
        return _join_problems(data, problems, entries, np.array(share), is_weighted)

    return find_terms


def _join_problems(
    data: ClassData,
    problems: list[ClassData],
    entries: list[MetricTerms],
    share: np.ndarray,
    is_weighted: bool,
) -> MetricTerms:
    """Return the entries of all problems, whose values are averaged with these shares.

    One more sample changes the values of the problems that it belongs to; and the shares, if these
    are the weights of the samples of a problem, or of its events.
    """
    values = np.array([terms.weight @ terms.observed for terms in entries])
    members = np.array([data.weight[terms.row].sum() for terms in entries])
    events = np.array([problem.weight @ problem.label for problem in problems])
    has_members = is_weighted and np.allclose(share, members)
    has_events = is_weighted and not has_members and np.allclose(share, events)
    share = share / share.sum()
    value = share @ values
    offset = value * members / (members.sum() * share) - (value if has_members else values)
    slope = (values - value) / events if has_events else np.zeros(len(share))
    shift = np.column_stack([offset, offset + slope])  # of both outcomes
    problem = np.repeat(np.arange(len(share)), [len(terms.weight) for terms in entries])
    label = np.concatenate([binary.label for binary in problems])
    weight = share[problem] * np.concatenate([terms.weight for terms in entries])
    observed = shift[problem, label] + np.concatenate([terms.observed for terms in entries])
    row = np.concatenate([terms.row for terms in entries])
    if 2 * len(row) > MAX_POSSIBLE:
        return MetricTerms(weight, observed, None, None, row)
    possible = shift[problem] + np.concatenate([terms.possible for terms in entries])
    proba = np.concatenate([terms.proba for terms in entries])
    return MetricTerms(weight, observed, possible, proba, row)


def _to_terms(data: ClassData, witness: Witness) -> MetricTerms:
    factor, offset = witness
    if factor.ndim == 1:
        factor = np.column_stack([np.zeros(len(factor)), factor])
    mean = np.einsum("nk,nk->n", factor, data.matrix)
    possible = factor + (offset - mean)[:, None]
    observed = possible[np.arange(len(factor)), data.label]
    if factor.size > MAX_POSSIBLE:
        return MetricTerms(data.weight, observed, None, None)
    return MetricTerms(data.weight, observed, possible, data.matrix)


def make_square_witness(
    data: ClassData, product: np.ndarray, *, takes_root: bool = False, is_unbiased: bool = False
) -> Witness:
    """Return the witness of Σ_i w_i ⟨product_i, r_i⟩, or of its root, for the residuals r.

    The product with the i-th sample is a sum over all j. If the estimate is unbiased, the sum is
    over all j ≠ i, and is divided by Σ_{i≠j} w_i w_j. A new sample enters twice, as i and as j.
    """
    total = 1 - data.inverse_effective_size if is_unbiased else 1.0
    terms = _to_terms(data, Witness(product / total))
    square = float(terms.weight @ terms.observed)
    if takes_root:
        return Witness(product / (np.sqrt(max(square, 0.0)) or 1.0))
    return Witness(2 * product / total, -square)
