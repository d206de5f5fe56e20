"""Labels and probabilities from a table."""

import contextlib
import re
from collections.abc import Sequence

import numpy as np

from .._inputs.arrays import listed
from .._inputs.probabilities import SUM_TOLERANCE, divide_by_sums
from .files import Rows, as_numbers
from .further import Table, is_missing

# A larger miss is refused. Rounding can cause one if there are many classes and few digits, but
# dividing by the sum would not bring back what was rounded away.
_LARGEST_MISS = 0.05


def read_predictions(
    table: Table, label_column: str, proba_columns: Sequence[str], pos_label: str | None = None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Labels (n,), probabilities (n,) or (n, K), and the classes in the order of the columns.

    One column of probabilities is of the class `pos_label` (by default the larger of two labels).
    Several columns are named like the labels, possibly after a common prefix that ends in a
    separator or before a number: "proba_cat", "proba_dog"; "p0", "p1". Labels that are whole
    numbers are the same however they are written: "1", "01" and "1.0".

    The sum of a row may miss 1 by what rounding to the digits of the file makes; it is then divided
    by its sum.
    """
    if len(proba_columns) > 1 and pos_label is not None:
        raise ValueError(
            f"--pos-label is for a single column of probabilities; found {len(proba_columns)} "
            "columns. Leave it out."
        )
    labels: list[str] = []
    parts: list[np.ndarray] = []
    spellings = _Spellings()
    for rows, label_texts, *texts in table.parts([label_column, *proba_columns]):
        labels += _labels(rows, label_texts, label_column, spellings)
        named = zip(proba_columns, texts, strict=True)
        columns = [_probabilities(rows, column, name) for name, column in named]
        many = len(columns) > 1
        parts.append(_summing_to_1(rows, np.column_stack(columns), texts) if many else columns[0])
    observed = sorted(set(labels))
    if len(proba_columns) == 1:
        classes = _two_classes(observed, pos_label)
    else:
        classes = _classes_of_columns(observed, proba_columns)
    return np.array(labels, dtype=object), np.concatenate(parts), classes


class _Spellings(dict):
    """The label that each text stands for, None if it is missing."""

    def __missing__(self, text: str) -> str | None:
        label = text.strip()
        self[text] = None if is_missing(label) else _canonical(label)
        return self[text]


def _canonical(label: str) -> str:
    """The shortest text of a whole number: "1" for "01", "+1" and "1.0"."""
    number = re.fullmatch(r"([+-]?)0*([0-9]+)(\.0*)?", label.strip())
    if number is None:
        return label.strip()
    sign, digits, _ = number.groups()
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def _labels(rows: Rows, texts: Sequence[str], name: str, spellings: _Spellings) -> list[str]:
    labels = [spellings[text] for text in texts]
    if None in labels:
        row = labels.index(None)
        raise ValueError(
            f"Column {name!r} must hold a label in every row; found {texts[row]!r} in "
            f"{rows.name(row)}. Remove the rows without a label."
        )
    return labels


def _probabilities(rows: Rows, texts: Sequence[str], name: str) -> np.ndarray:
    return as_numbers(rows, texts, name, "a probability in [0, 1]", lambda p: (p >= 0) & (p <= 1))


def _summing_to_1(rows: Rows, proba: np.ndarray, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Rows divided by their sums, which may miss 1 by what rounding to the digits makes."""
    total = proba.sum(axis=1)
    miss = np.abs(total - 1)
    if miss.max() <= SUM_TOLERANCE:
        return proba
    tolerance = np.clip(_rounding(proba, texts).sum(axis=1), SUM_TOLERANCE, _LARGEST_MISS)
    row = int(np.argmax(miss - tolerance))
    if miss[row] > tolerance[row] * (1 + 1e-9):
        raise ValueError(
            f"The probabilities of a row must sum to 1; found a sum of {total[row]:.6g} in "
            f"{rows.name(row)}, which rounding to the digits of the file does not explain. Name "
            "the columns of all classes, and write their values with more digits or divided by "
            "their sum."
        )
    return divide_by_sums(proba, total)


def _rounding(proba: np.ndarray, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Half a unit in the last digit of each probability, (n, K).

    Files may be written with a fixed number of decimals or of significant digits. The place of the
    last digit follows from the largest number of either in the file; of the two places, the coarser
    one counts.
    """
    decimals = significant = 0
    for text in set().union(*texts):
        mantissa, _, exponent = text.strip().lower().partition("e")
        whole, _, fraction = mantissa.partition(".")
        decimals = max(decimals, len(fraction) - int(exponent or 0))
        significant = max(significant, len((whole + fraction).lstrip("+-0")))
    magnitude = np.floor(np.log10(np.where(proba > 0, proba, 1e-300))) + 1
    return 0.5 * 10.0 ** np.maximum(-decimals, magnitude - significant)


def _two_classes(observed: list[str], pos_label: str | None) -> list[str]:
    with contextlib.suppress(ValueError):  # words stay in the order of the alphabet
        observed = sorted(observed, key=float)
    if pos_label is None:
        if len(observed) == 2:
            return observed
        if set(observed) <= {"0", "1"}:
            return ["0", "1"]
        raise ValueError(
            f"One column of probabilities is for two labels; found {len(observed)}: "
            f"{listed(observed)}. Pass one column for each class, or name the class of the column "
            "with --pos-label."
        )
    pos_label = _canonical(pos_label)
    others = [label for label in observed if label != pos_label]
    if len(observed) > 2 or len(others) > 1:
        raise ValueError(
            f"--pos-label {pos_label!r} must be one of two labels; found {listed(observed)}."
        )
    return [*(others or [f"not {pos_label}"]), pos_label]


def _classes_of_columns(observed: list[str], columns: Sequence[str]) -> list[str]:
    """The names of the columns without a common prefix, such that every label is among them."""
    prefixes = [columns[0][:end] for end in range(len(columns[0]), -1, -1)]
    shared = [
        prefix
        for prefix in prefixes
        if all(name.startswith(prefix) for name in columns) and _ends_a_prefix(prefix, columns)
    ]
    candidates = [[_canonical(name[len(prefix) :]) for name in columns] for prefix in shared]
    for classes in candidates:
        if set(observed) <= set(classes):
            return classes
    unknown = [label for label in observed if label not in candidates[0]]
    raise ValueError(
        f"Every label must match a column of probabilities; found {listed(unknown)}, and columns "
        f"for {listed(candidates[0])}. Name each column like its label, or proba_ and the label."
    )


def _ends_a_prefix(prefix: str, columns: Sequence[str]) -> bool:
    """Whether names of classes may begin behind it: "p_" of "p_cat", and "p" of "p0", "p1"."""
    rests = [name[len(prefix) :] for name in columns]
    return not prefix[-1:].isalnum() or (
        prefix[-1].isalpha() and all(rest[:1].isdigit() for rest in rests)
    )
