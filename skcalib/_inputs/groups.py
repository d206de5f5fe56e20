"""Groups of samples that belong together and are not independent of each other."""

from typing import Any

import numpy as np

from .arrays import check_same_length
from .labels import as_labels


def check_groups(groups: Any, n: int) -> np.ndarray:
    """Codes 0 to G − 1 of shape (n,), in the order in which the groups first appear.

    So the codes do not depend on how the groups are called. The labels may be of any type that can
    be hashed, none of them missing.
    """
    values = as_labels(groups, "groups")
    if values.ndim != 1:
        raise ValueError(
            f"groups must be 1-D, one label for each sample; found shape {values.shape}. Pass one "
            "column; join several into one label."
        )
    check_same_length({"the predictions": n, "groups": len(values)})
    if values.dtype.kind == "O":
        code = _codes_of_objects(values)
    else:
        missing = values != values  # as NaN and the missing time are
        if missing.any():
            _refuse_missing(values[missing][0], np.argmax(missing))
        code = codes_by_appearance(values)
    check_several_groups(code)
    return code


def codes_by_appearance(values: np.ndarray) -> np.ndarray:
    """The distinct values numbered in the order in which they first appear, (n,)."""
    _, first, code = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[code]


def _codes_of_objects(values: np.ndarray) -> np.ndarray:
    index: dict[Any, int] = {}
    code = np.empty(len(values), dtype=np.intp)
    for row, value in enumerate(values.tolist()):
        if is_missing(value):
            _refuse_missing(value, row)
        try:
            code[row] = index.setdefault(value, len(index))
        except TypeError as error:
            raise ValueError(
                "groups must hold labels that can be hashed, such as numbers or strings; found "
                f"{type(value).__name__} in row {row}. Turn them into strings."
            ) from error
    return code


def is_missing(value: Any) -> bool:
    """Whether this is None, NaN, pandas' NA or a missing time."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # whether pandas' NA equals itself is not known
        return True


def _refuse_missing(value: Any, row: int | np.intp) -> None:
    raise ValueError(
        f"groups must not hold missing values; found {value!r} in row {row}. Give a sample that "
        "belongs to no group a label of its own."
    )


def check_several_groups(code: np.ndarray) -> None:
    """Refuse a single group: it is one observation."""
    n_groups = int(code.max(initial=-1)) + 1
    if n_groups < 2:
        raise ValueError(
            "groups must name at least two groups of samples with positive weight; found "
            f"{n_groups}. One group is one observation: leave groups out if the "
            "samples are independent, or divide a series into blocks."
        )
