"""Subgroups of samples that are reported apart, and groups of samples that belong together.

Subgroups are the values of a column, or crossings of several. The samples of a group are not
independent of each other.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from .._numerics.sorting import codes_by_appearance
from . import arrays
from .arrays import ArrayLike
from .checks import positive_weight_rows
from .labels import as_labels

# A column with more distinct whole numbers is taken for a quantity, or for names of samples.
_MAX_LABEL_NUMBERS = 100

# Smaller p-values are printed as this bound.
_MIN_PRINTED_P_VALUE = 1e-6

Columns = ArrayLike | Mapping  # one column or several, as `to_columns` takes them


@dataclass(frozen=True)
class Subgroups:
    """The subgroup of each sample.

    A label is the value of the column, or a tuple of one value for each of several columns; None
    stands for a missing value.
    """

    names: tuple[Any, ...]  # of the columns
    labels: tuple[Any, ...]  # of the subgroups that occur, in their natural order
    code: np.ndarray  # (n,), index into labels

    @property
    def title(self) -> str:
        """Names of the columns that define the subgroups, "sex, age", or "subgroup"."""
        names = ["subgroup"] if are_unnamed(self.names) else self.names
        return ", ".join(printable(str(name)) for name in names)

    @property
    def titles(self) -> list[str]:
        """The subgroups as tables and figures write them: "sex female & age 18-30"."""
        return [format_label(label, self.names) for label in self.labels]

    @property
    def phrases(self) -> list[str]:
        """The subgroups as sentences write them, always with the columns: "site 0"."""
        name = "" if len(self.names) > 1 else f"{self.title} "
        return [name + title for title in self.titles]

    def rows(self) -> list[np.ndarray]:
        """Return the indices of the samples of each subgroup, in their order."""
        order = np.argsort(self.code, kind="stable")
        counts = np.bincount(self.code, minlength=len(self.labels))
        return np.split(order, np.cumsum(counts)[:-1])

    def take(self, rows: np.ndarray | slice) -> "Subgroups":
        """Return some of the samples; subgroups without any are left out."""
        present, code = np.unique(self.code[rows], return_inverse=True)
        return Subgroups(self.names, tuple(self.labels[k] for k in present), code)

    def codes_among(self, labels: Iterable[Any]) -> np.ndarray:
        """Return the position of each sample's subgroup in other labels, −1 if it is not there."""
        position = {label: k for k, label in enumerate(labels)}
        return np.array([position.get(label, -1) for label in self.labels])[self.code]


def check_by(
    by: Columns, n: int, sample_weight: ArrayLike | None = None, name: str = "by"
) -> Subgroups:
    """Return the subgroups of n samples; samples of weight 0 are left out.

    `by` is a column or several: a list, an array of one or two dimensions, a Series, a data frame,
    a dictionary of columns, or a list of columns. Row labels of pandas are ignored: rows count by
    their position. Subgroups are sorted: numbers by size, strings as people do ("group 2" before
    "group 10"), categories of pandas and of polars' Enum in their own order. Missing values are a
    subgroup of their own, the last one. Columns of continuous numbers are refused.
    """
    columns = to_columns(by, n, name)
    code = np.zeros(n, dtype=np.intp)
    labels: list[tuple] = [()]
    for key, column in columns.items():
        argument = name if len(columns) == 1 else f"{name}[{key!r}]"
        column_labels, position = encode_column(column, n, argument)
        crossed = code * len(column_labels) + position
        present, code = np.unique(crossed, return_inverse=True)
        labels = [
            (*labels[k // len(column_labels)], column_labels[k % len(column_labels)])
            for k in present.tolist()
        ]
    subgroup_labels = [label[0] for label in labels] if len(columns) == 1 else labels
    subgroups = Subgroups(tuple(columns), tuple(subgroup_labels), code)
    return subgroups.take(positive_weight_rows(sample_weight, n))


def check_by_each(
    by: Columns | None, by_each: Columns | None, n: int, sample_weight: ArrayLike | None
) -> list[Subgroups]:
    """Return the subgroups of `by`, if there is any, and of each column of `by_each` by itself."""
    columns = {} if by_each is None else to_columns(by_each, n, "by_each")
    each = [check_by({name: c}, n, sample_weight, "by_each") for name, c in columns.items()]
    each = each if by is None else [check_by(by, n, sample_weight), *each]
    titles = [subgroups.title for subgroups in each]
    if len(set(titles)) < len(titles):
        raise ValueError(
            f"by and by_each must have columns of different names; found {titles}. Rename one, or "
            "leave it out."
        )
    return each


def check_distinct_keys(labels: Sequence[Any]) -> None:
    """Refuse both True and 1, or False and 0, which are one key of a dictionary."""
    rows = [label if isinstance(label, tuple) else (label,) for label in labels]
    typed_rows = {tuple((isinstance(entry, bool), entry) for entry in row) for row in rows}
    if len(set(rows)) < len(typed_rows):
        raise ValueError(
            "by must not hold both True and 1, or False and 0, which Python takes for the same "
            f"subgroup; found {arrays.format_values(labels)}. Turn them into strings."
        )


def format_label(label: object, names: Sequence[Any] = ()) -> str:
    """Return a label of a subgroup as text in one line; of several columns with their names."""
    values = label if isinstance(label, tuple) else (label,)
    texts = [printable("missing" if value is None else str(value)) for value in values]
    if len(texts) == 1 or are_unnamed(names):
        return ", ".join(texts)
    pairs = zip(names, texts, strict=True)
    return " & ".join(f"{printable(str(name))} {text}" for name, text in pairs)


def format_bounded(p_value: float, smallest: float = 0.0, digits: int = 3) -> str:
    """Return a p-value with "=", or with "≤" if a test can give no smaller one."""
    value = max(p_value, _MIN_PRINTED_P_VALUE)
    sign = "≤" if value <= max(smallest, _MIN_PRINTED_P_VALUE) * (1 + 1e-9) else "="
    return f"{sign} {value:.{digits}g}".replace("e-0", "e-")


def printable(
    text: str, allowed: str = "", escape: Callable[[str], str] = ascii, code: str = "utf-8"
) -> str:
    r"""Return the text without characters that steer a terminal, but for those in `allowed`.

    They are escaped, as "\x1b" or as JSON does, like those that the encoding has no code for.
    """
    plain = {c for c in set(text) if c.isprintable() and c.encode(code, "ignore")} | {*allowed}
    return "".join(c if c in plain else escape(c)[1:-1] for c in text)


def format_columns(rows: Sequence[Sequence[str]], n_texts: int = 1) -> list[str]:
    """Return the rows of a table as lines; numbers behind the first columns stand on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = "<" * n_texts + ">" * (len(widths) - n_texts)
    cells = (zip(row, sides, widths, strict=True) for row in rows)
    return ["  ".join(f"{text:{side}{width}}" for text, side, width in row) for row in cells]


def to_columns(
    by: Any, n: int, argument: str = "by", holds: str = "the subgroup of each sample"
) -> dict[Any, Any]:
    """Return the columns by name. Messages call them `argument`, and say what it holds."""
    if by is None or isinstance(by, str | bytes):
        raise ValueError(
            f"{argument} must hold {holds}; found {by!r}. Pass a column, such as X['sex'], or a "
            "data frame of several, X[['sex', 'age_band']]."
        )
    if isinstance(by, Mapping):
        return _name_columns(list(by), list(by.values()), argument)
    names = arrays.column_names(by)
    if names:
        if len(set(names)) < len(names):
            raise ValueError(
                f"The columns of {argument} must have different names; found {names}. Rename one "
                "of them."
            )
        return {name: by[name] for name in names}
    if isinstance(by, list | tuple) and _are_columns(by, n):
        names = [getattr(column, "name", None) for column in by]
        if None in names or len(set(names)) < len(names):
            names = [f"{argument}{k}" for k in range(len(by))]
        return dict(zip(names, by, strict=True))
    values = as_labels(by, argument)
    if values.ndim == 2:
        names = [f"{argument}{k}" for k in range(values.shape[1])]
        return _name_columns(names, list(values.T), argument)
    name = getattr(by, "name", None)
    return {argument if name is None else name: by}


def are_unnamed(columns: Sequence[Any], argument: str = "by") -> bool:
    """True if columns were passed without names, so that only their order identifies them."""
    return all(re.fullmatch(f"{argument}[0-9]*", str(name)) for name in columns)


def _name_columns(names: list, columns: list, argument: str) -> dict[Any, Any]:
    if not names:
        raise ValueError(
            f"{argument} must name at least one column; found none. Pass a column, or leave "
            f"{argument} out."
        )
    return dict(zip(names, columns, strict=True))


def _are_columns(values: list | tuple, n: int) -> bool:
    """True if the values are columns rather than labels or rows."""
    if not values or not all(hasattr(entry, "__len__") for entry in values):
        return False
    if all(hasattr(entry, "dtype") and getattr(entry, "shape", (0,)) != () for entry in values):
        return True
    return all(isinstance(entry, list | np.ndarray) and len(entry) == n for entry in values)


def encode_column(
    column: object, n: int, name: str, *, may_be_quantity: bool = False
) -> tuple[list[Any], np.ndarray]:
    """Return the sorted distinct values of a column, None if missing; and their codes (n,)."""
    remedy = "Pass several columns as a data frame or an array of two dimensions."
    distinct, code = _distinct(column, n, name, remedy)
    if getattr(getattr(column, "dtype", None), "kind", "") == "b":  # numbers, if some are missing
        distinct = [value if value is None else bool(value) for value in distinct]
    categories = read_categories(column)
    if categories and set(distinct) <= {*categories, None}:
        return _sort_labels(distinct, code, _category_sort_key(categories))
    if not may_be_quantity:
        _check_no_quantity([value for value in distinct if arrays.is_number(value)], name)
    return _sort_labels(distinct, code, _natural_sort_key)


def _distinct(column: object, n: int, name: str, remedy: str) -> tuple[list[Any], np.ndarray]:
    """Return the distinct values of a column, None for missing ones; and their codes (n,)."""
    values = as_labels(column, name)
    if values.ndim != 1:
        raise ValueError(
            f"{name} must be 1-D, one value for each sample; found shape {values.shape}. {remedy}"
        )
    arrays.check_same_length({"the predictions": n, name: len(values)})
    if values.dtype.kind in "biuf":
        distinct, code = np.unique(values, return_inverse=True)  # one NaN
        labels = distinct.tolist()
        if values.dtype.kind == "f":
            labels = list(map(_as_integer, labels))
        return labels, code
    if values.dtype.kind in "Mm":
        is_gap = np.isnat(values)
        if values.dtype.kind == "M":
            values = np.datetime_as_string(values, "auto")
        values = np.array(list(map(str, values)), dtype=object)
        values[is_gap] = None
    index: dict[Any, int] = {}
    code = np.empty(len(values), dtype=np.intp)
    for row, value in enumerate(values.tolist()):
        label = value.item() if isinstance(value, np.generic) else value
        label = _as_integer(float(label)) if isinstance(label, Decimal) else label
        label = None if arrays.is_missing(label) else label
        try:  # True equals 1, but is another label
            code[row] = index.setdefault((isinstance(label, bool), label), len(index))
        except TypeError as error:
            raise ValueError(
                f"{name} must hold labels that can be hashed, such as strings or numbers; found "
                f"{type(value).__name__} in row {row}. Turn them into strings."
            ) from error
    return [label for _, label in index], code


def _as_integer(label: float) -> Any:
    """Return whole numbers as integers, as they were before values were missing; None for NaN."""
    if arrays.is_missing(label):
        return None
    return int(label) if label % 1 == 0 else label


def _check_no_quantity(numbers: list[Any], name: str) -> None:
    """Refuse numbers that are measurements, or too many to be labels."""
    if arrays.are_probably_measurements(numbers) or len(numbers) > _MAX_LABEL_NUMBERS:
        raise ValueError(
            f"{name} must name subgroups; found {len(numbers)} distinct numbers, which looks like "
            "a quantity. Divide it into ranges, as pandas.qcut(column, 4) does, or turn labels "
            "into strings."
        )


def read_categories(column: object, *, ordered: bool = False) -> list[Any]:
    """Return the categories of a column that declares them, in their order.

    The categories of polars' Categorical are no array, and have no order. With `ordered`, those of
    pandas must be declared as ordered, too.
    """
    kind = getattr(column, "dtype", None)
    declared: Any = getattr(kind, "categories", None)
    is_refused = ordered and not getattr(kind, "ordered", True)
    return [] if is_refused or not hasattr(declared, "dtype") else list(declared)


def _category_sort_key(categories: list[Any]) -> Callable[[Any], Any]:
    rank = {category: k for k, category in enumerate(categories)}
    return lambda label: rank.get(label, len(rank))


def _natural_sort_key(label: object) -> Any:
    """Return the sort key of a label: its type, and numbers within strings by their size."""
    if isinstance(label, bool):
        return 0, "", label
    if arrays.is_number(label):
        return 1, "", label
    if isinstance(label, str):
        pieces = re.split("0*([0-9]+)", label)  # of numbers without zeros before them
        return 2, "", [(len(piece), piece) if k % 2 else piece for k, piece in enumerate(pieces)]
    return 3 if label is not None else 4, type(label).__name__, 0 if label is None else label


def _sort_labels(
    labels: list[Any], code: np.ndarray, key: Callable[[Any], Any]
) -> tuple[list[Any], np.ndarray]:
    try:
        order = sorted(range(len(labels)), key=lambda k: key(labels[k]))
    except TypeError:  # labels of a type that has no order
        order = sorted(range(len(labels)), key=lambda k: (labels[k] is None, str(labels[k])))
    rank = np.empty(len(labels), dtype=np.intp)
    rank[order] = np.arange(len(labels))
    return [labels[k] for k in order], rank[code]


def check_groups(groups: object, n: int, sample_weight: ArrayLike | None = None) -> np.ndarray:
    """Return codes 0 to G − 1 of shape (n,), in the order in which the groups first appear.

    So the codes do not depend on how the groups are called. The labels may be of any type that can
    be hashed, none of them missing. Samples of weight 0, and their groups, are left out.
    """
    remedy = "Pass one column: the one within whose groups samples depend on each other most."
    labels, code = _distinct(groups, n, "groups", remedy)
    if None in labels:
        row = int(np.argmax(code == labels.index(None)))
        raise ValueError(
            f"groups must not hold missing values; found {as_labels(groups, 'groups')[row]!r} in "
            f"row {row}. Give a sample that belongs to no group a label of its own."
        )
    code = codes_by_appearance(code[positive_weight_rows(sample_weight, n)])
    n_groups = int(code.max(initial=-1)) + 1
    if n_groups < 2:
        raise ValueError(
            "groups must name at least two groups of samples with positive weight; found "
            f"{n_groups}. One group is one observation: leave groups out if the "
            "samples are independent, or divide a series into blocks."
        )
    return code


def check_crossed_groups(
    groups: object, n: int, sample_weight: ArrayLike | None = None
) -> np.ndarray:
    """Return the codes (n,) of one column of groups, or (n, 2) of two that cross each other."""
    columns = list(to_columns(groups, n, "groups", "the groups of each sample").values())
    if len(columns) > 2:
        raise ValueError(
            "groups must be one column, or two that cross each other, such as patients and "
            f"readers; found {len(columns)}. Leave out those that matter least."
        )
    return np.column_stack([check_groups(c, n, sample_weight) for c in columns]).squeeze()
