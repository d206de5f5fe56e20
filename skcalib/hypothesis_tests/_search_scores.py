"""Score statistics of the candidates of a search, for the data and for draws."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import rankdata

from .._data import ClassData, ForecastData
from .._numerics.logits import log_odds
from .._numerics.pit import pit_cdf, pit_laws
from .._statistics.base import Statistic
from ..lenses import _check_all_rows, _get_lens
from ..recalibration import SplineRecalibrator
from ..recalibration._either import to_fit_data

# A remainder of less than this share of a variance is rounding.
_REMAINDER_RTOL = 1e-9

# Numbers that are held for each candidate and draw: of level and slope, or spread.
_SUMS_PER_CANDIDATE = 2

# A sample with less information varies as little as one whose label is certain.
_MIN_INFORMATION = 1e-150

# Level of the central intervals whose coverage is shown.
_INTERVAL_LEVEL = 0.8


class Candidate(NamedTuple):
    column: Any
    subgroup: str
    rows: np.ndarray


class CandidateScores:
    """The score statistics of all candidates as functions of the residuals."""

    def __init__(self, data: ClassData, candidates: list[Candidate]) -> None:
        weight, proba = data.weight, data.proba
        spread = log_odds(proba)
        information = weight * proba * (1 - proba)
        information[information < _MIN_INFORMATION] = 0  # whose inverses overflow
        if information.any():
            spread = spread - information @ spread / information.sum()
        features = np.stack([np.ones_like(spread), spread])  # (2, n)
        inside = _inside(candidates)
        self.sums = [inside.multiply(feature[None]).tocsr() for feature in features]  # 2 of (C, n)
        self.features = features
        pairs = features[:, None] * features  # (2, 2, n)

        def sum_pairs(factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """Sums of pairs times a factor (n,), inside of the candidates and over all samples."""
            product = factor * pairs
            return (inside @ product.reshape(4, -1).T).reshape(-1, 2, 2), product.sum(axis=2)

        sums_inside, common = sum_pairs(information)
        self.explained = sums_inside @ np.linalg.pinv(common, hermitian=True)  # (C, 2, 2)
        sums_inside, common = sum_pairs(weight * information)
        cross = self.explained @ sums_inside
        variance = sums_inside - cross - np.swapaxes(cross, 1, 2)
        variance += self.explained @ common @ np.swapaxes(self.explained, 1, 2)
        level = variance[:, 0, 0]
        one_label = data.inverse_effective_size / len(weight)
        safe = np.where(level > _REMAINDER_RTOL * sums_inside[:, 0, 0], level, np.inf)
        self.ratio = variance[:, 0, 1] / safe
        slope_variance = variance[:, 1, 1] - self.ratio * variance[:, 0, 1]
        least = _REMAINDER_RTOL * sums_inside[:, 1, 1]
        slope_variance = np.where(slope_variance > least, slope_variance, np.inf)
        self.scale = np.stack([safe, slope_variance]) * (1 + one_label / safe)
        # only impossible labels differ where nothing can vary, and one of them is enough
        farthest = np.abs(spread).max()
        self.scale[:, sums_inside[:, 0, 0] == 0] = one_label * np.array([[1.0], [farthest**2]])

    def __call__(self, residuals: np.ndarray) -> np.ndarray:
        """Values (R, C) for weighted residuals (R, n)."""
        total = self.features @ residuals.T  # (2, R)
        sums = np.stack([matrix @ residuals.T for matrix in self.sums])  # (2, C, R)
        sums -= np.einsum("cij,jr->icr", self.explained, total)
        sums[1] -= self.ratio[:, None] * sums[0]
        return np.sum(sums**2 / self.scale[:, :, None], axis=0).T


class Search(Statistic):
    """A value (C,) for each candidate, in the order of its data."""

    supports: frozenset[str] = frozenset()

    candidates: list[Candidate]

    @property
    def numbers_per_draw(self) -> int:
        n, n_sums = self.data.n_samples, _SUMS_PER_CANDIDATE * len(self.candidates)
        return max(n, n_sums) * (1 if self.data.is_forecast else self.data.proba.size // n)


class ClassSearch(Search):
    """The candidates in predictions of classes: of two, or of each problem of a lens."""

    def __init__(
        self, data: ClassData, candidates: list[Candidate], lens: Any, *, recalibrate: bool
    ) -> None:
        self.candidates, self.lens = candidates, lens
        self.names, self.shown = self._problems(data)
        self.data = _recalibrate(data) if recalibrate else data
        _, self.problems = self._problems(self.data)
        self.scores = [CandidateScores(problem, candidates) for problem in self.problems]

    def __call__(self, label: np.ndarray) -> np.ndarray:
        """Values (R, C) for labels (R, n); all candidates for each problem."""
        pairs = zip(self._iter_events(label), self.problems, strict=True)
        residuals = ((event - problem.proba) * problem.weight for event, problem in pairs)
        return self._values_from_residuals(residuals)

    def _problems(self, data: ClassData) -> tuple[list[Any] | None, list[ClassData]]:
        """The names of the problems, None if the data are the only one, and their data."""
        if self.lens._is_identity(data):
            return None, [data]
        names, _, problems = zip(*data.iter_problems(self.lens), strict=True)
        _check_all_rows(problems, data, self.lens)
        return list(names), list(problems)

    def _iter_events(self, label: np.ndarray) -> Iterator[np.ndarray]:
        """The events (R, n) of each problem, for labels (R, n)."""
        if self.names is None:
            yield label
        elif self.lens is _get_lens("classwise"):
            for k in range(len(self.names)):
                yield label == k
        else:
            reduced = [self.data.with_outcome(row).iter_problems(self.lens) for row in label]
            for problems in zip(*reduced, strict=True):
                yield np.stack([problem.label for *_, problem in problems])

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        """Values (R, C) for the observed residuals, multiplied by signs (R, n)."""
        residuals = (signs * problem.weighted_residuals for problem in self.problems)
        return self._values_from_residuals(residuals)

    def _values_from_residuals(self, residuals: Iterable[np.ndarray]) -> np.ndarray:
        pairs = zip(self.scores, residuals, strict=True)
        return np.hstack([scores_of_class(rows) for scores_of_class, rows in pairs])

    def numbers(self) -> dict[str, Any]:
        """Predicted and observed numbers of each candidate, (C,)."""
        samples = ((problem.weight, problem.proba, problem.label) for problem in self.shown)
        means = [_means(self.candidates, *arrays) for arrays in samples]
        predicted, observed = np.hstack(means)
        columns = {"predicted": predicted, "observed": observed}
        if self.names is None:
            return columns
        return columns | {"label": [name for name in self.names for _ in self.candidates]}


def _recalibrate(data: ClassData) -> ClassData:
    """The predictions by a smooth curve of their log-odds, the same for all samples."""
    recalibrator = to_fit_data(data).fit_clone(SplineRecalibrator())
    proba = recalibrator.predict_proba(data.proba)
    return data.with_proba(proba[:, 1] if data.is_binary else proba)


class ForecastSearch(Search):
    """The candidates in forecasts: how far the transforms of their outcomes are from uniform.

    The statistic is that of the first two terms of Neyman's smooth test: Legendre polynomials,
    which are uncorrelated and have mean 0 and variance 1 for a uniform transform. To recalibrate
    is to replace transforms by ranks, and to subtract what is common to all samples.
    """

    can_simulate = True

    def __init__(
        self,
        data: ForecastData,
        candidates: list[Candidate],
        *,
        recalibrate: bool,
        random_state: np.random.RandomState,
    ) -> None:
        self.data, self.candidates = data, candidates
        lower, upper = data.forecast.pit_bounds(data.value)
        position = random_state.random_sample(len(lower))  # of a jump, so that all laws are alike
        self.transform = lower + (upper - lower) * position
        self.recalibrate = recalibrate
        if recalibrate:
            self.transform = (rankdata(self.transform) - 0.5) / len(lower)
        self.inside = _inside(candidates)
        weight = data.weight
        self.share = self.inside @ weight if recalibrate else np.zeros(len(candidates))
        inside_square = self.inside @ weight**2
        self.variance = inside_square * (1 - 2 * self.share) + self.share**2 * (weight @ weight)

    def __call__(self, terms: np.ndarray) -> np.ndarray:
        """Values (R, C) for polynomials (2, R, n)."""
        values = np.zeros((len(self.candidates), terms.shape[1]))
        for term in terms:
            residuals = (term * self.data.weight).T  # (n, R)
            centred = self.inside @ residuals - self.share[:, None] * residuals.sum(axis=0)
            values += centred**2 / self.variance[:, None]
        return values.T

    def simulate(self, order: Any, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        """Values (n_draws, C) for drawn or permuted transforms."""
        shape = n_draws, self.data.n_samples
        if not self.recalibrate:
            return self(legendre(generator.random(shape)))
        return self(legendre(generator.permuted(np.broadcast_to(self.transform, shape), axis=1)))

    def flip_signs(self, signs: np.ndarray) -> np.ndarray:
        """Values (R, C) for the polynomials of the data, multiplied by signs (R, n)."""
        return self(legendre(self.transform[None]) * signs)

    def numbers(self) -> dict[str, Any]:
        """Predicted and observed numbers of each candidate, (C,)."""
        data = self.data
        try:
            mean = data.forecast.mean()
        except ValueError:  # quantiles do not know it
            mean = np.full(data.n_samples, np.nan)
        folded = pit_laws(*data.forecast.pit_bounds(data.value), folded=True)
        covered = pit_cdf(folded, _INTERVAL_LEVEL)
        means = _means(self.candidates, data.weight, mean, data.value, covered)
        return dict(zip(("predicted", "observed", "coverage"), means, strict=True))


def legendre(transform: np.ndarray) -> np.ndarray:
    """√3 v and √5 (3v² − 1) / 2 of v = 2u − 1, for level and spread, (2, ...)."""
    v = 2 * transform - 1
    return np.stack([np.sqrt(3) * v, np.sqrt(5) * (3 * v**2 - 1) / 2])


def _inside(candidates: list[Candidate]) -> Any:
    return csr_array(np.array([candidate.rows for candidate in candidates])).astype(np.float64)


def _means(candidates: list[Candidate], weight: np.ndarray, *values: np.ndarray) -> np.ndarray:
    """Weighted means over each candidate, (V, C)."""
    inside = _inside(candidates)
    return np.stack([inside @ (weight * row) for row in values]) / (inside @ weight)
