"""How each subgroup is calibrated: its error with an interval, and the test of all of them."""

from typing import Any

import numpy as np

from .._inputs.by import Subgroups
from .._inputs.predictions import Predictions
from ..forecasts._data import ForecastData
from ..hypothesis_tests import SubgroupCalibrationTest
from ._findings import LEVEL
from ._intervals import subgroup_interval

# As many subgroups are named in the verdict.
_MOST_NAMED = 5


def subgroup_rows(
    data: Predictions | ForecastData,
    subgroups: Subgroups,
    random_state: np.random.RandomState,
    *,
    metric: str,
    statistic: str,
    most_tested: int,
    metric_params: dict[str, Any] | None = None,
    first: np.ndarray | None = None,
) -> tuple[list[dict[str, Any]], float]:
    """The metric of each subgroup with its interval and p-value, and the p-value of all of them.

    Of many samples a part is tested, and samples that come `first` are in it.
    """
    intervals = [
        subgroup_interval(metric, data.take(rows), random_state) for rows in subgroups.rows()
    ]
    rows = even_part(subgroups.code, most_tested, random_state, first)
    tested = data.take(rows)
    outcome, predicted = tested.arguments(tested.outcome)
    test = SubgroupCalibrationTest(
        statistic,
        metric_params=metric_params,
        labels=data.known.get("labels"),
        random_state=random_state,
    ).fit(
        predicted,
        outcome,
        sample_weight=None if np.ptp(data.weight) == 0 else tested.weight,
        by=np.array([f"{k:09d}" for k in range(len(subgroups.labels))])[subgroups.code[rows]],
        groups=tested.groups,
    )
    n_samples = np.bincount(subgroups.code).tolist()
    n_tested = list(test.subgroup_sizes_.values())
    p_values = list(test.subgroup_p_values_.values())
    found = [
        {
            "by": subgroups.title,
            "subgroup": title,
            "n_samples": n_samples[k],
            "measure": metric,
            "estimate": intervals[k].estimate,
            "low": intervals[k].low,
            "high": intervals[k].high,
            "p_value": p_values[k],
            "n_tested": n_tested[k],
        }
        for k, title in enumerate(subgroups.titles)
    ]
    return found, test.p_value_


def even_part(
    code: np.ndarray, most: int, random_state: np.random.RandomState, first: np.ndarray | None
) -> np.ndarray:
    """Random rows, the same number of each subgroup unless it is smaller, but at least one.

    Rows that come first (a mask) are chosen before others.
    """
    n, n_subgroups = len(code), int(code.max()) + 1
    if n <= most:
        return np.arange(n)
    order = random_state.permutation(n)
    last = np.zeros(n, dtype=bool) if first is None else ~first[order]
    order = order[np.lexsort((last, code[order]))]
    sizes = np.bincount(code)
    place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the subgroup
    return order[np.argsort(place, kind="stable")][: max(most, n_subgroups)]


def subgroup_advice(verdict: str, subgroups: list[dict[str, Any]], remedy: str) -> str:
    """The verdict, and what the test of subgroups found where that of all samples found nothing."""
    wrong = [one["subgroup"] for one in subgroups if one["p_value"] < LEVEL]
    if not wrong or not verdict.startswith("No evidence"):
        return verdict
    more = f" and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
    return (
        f"{verdict} But the test of subgroups finds miscalibration in {len(wrong)} of "
        f"{len(subgroups)}: {'; '.join(wrong[:_MOST_NAMED])}{more}. {remedy}"
    )
