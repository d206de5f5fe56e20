"""Labels and probabilities from a file of comma-separated values."""

import contextlib
import csv
import re
from operator import itemgetter

import numpy as np

_MISSING = {"", "na", "n/a", "nan", "null", "<na>", "#n/a"}

# What rounding to a few digits leaves; the same as for single precision.
_ROW_SUM_TOLERANCE = 3e-4


def read_predictions(path, label_column, proba_columns, positive=None):
    """Labels (n,), probabilities (n,) or (n, K), and the classes in the order of the columns.

    One column of probabilities is of the class `positive` (by default the larger of two labels).
    Several columns are named like the labels, possibly after a common prefix that ends in a
    separator: "proba_cat", "proba_dog".
    """
    lines, labels, texts = _read_columns(path, label_column, proba_columns)
    for line, label in zip(lines, labels, strict=True):
        if label.lower() in _MISSING:
            raise ValueError(
                f"Column {label_column!r} must hold a label in every row; found {label!r} in line "
                f"{line}. Remove the rows without a label."
            )
    labels = [_canonical(label) for label in labels]
    proba = np.column_stack(
        [
            _probabilities(lines, column, name)
            for name, column in zip(proba_columns, texts, strict=True)
        ]
    )
    if len(proba_columns) == 1:
        return np.array(labels), proba[:, 0], _two_classes(labels, positive)
    if positive is not None:
        raise ValueError(
            f"--positive is for a single column of probabilities; found {len(proba_columns)} "
            "columns. Leave it out."
        )
    total = proba.sum(axis=1)
    row = int(np.argmax(np.abs(total - 1)))
    if abs(total[row] - 1) > _ROW_SUM_TOLERANCE:
        raise ValueError(
            f"The probabilities of a row must sum to 1; found a sum of {total[row]:.6g} in line "
            f"{lines[row]}. Name the columns of all classes, and write their values with more "
            "digits or divided by their sum."
        )
    return np.array(labels), proba, _classes_of_columns(sorted(set(labels)), proba_columns)


def _read_columns(path, label_column, proba_columns):
    """Line numbers, labels, and the texts of the other columns."""
    wanted = [label_column, *proba_columns]
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"Each column must be named once; found {', '.join(wanted)}.")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = [name.strip() for name in next(rows, [])]
            _check_header(path, header, wanted)
            pick = itemgetter(*(header.index(name) for name in wanted))
            lines, records = [], []
            for row in rows:
                if not row:
                    continue
                if len(row) != len(header):
                    raise ValueError(
                        f"Every row must have the {len(header)} columns of the header; found "
                        f"{len(row)} in line {rows.line_num} of {path}."
                    )
                lines.append(rows.line_num)
                records.append(pick(row))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is not a text file of comma-separated values: {error}."
        ) from error
    if not records:
        raise ValueError(f"{path} must hold at least one row below the header; found none.")
    labels, *texts = zip(*records, strict=True)
    return lines, [label.strip() for label in labels], texts


def _check_header(path, header, wanted):
    if not header:
        raise ValueError(f"{path} is empty; its first line must name the columns.")
    missing = [name for name in wanted if name not in header]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(map(repr, missing))}; its columns are "
            f"{', '.join(map(repr, header))}. Values are separated by commas."
        )
    twice = [name for name in wanted if header.count(name) > 1]
    if twice:
        raise ValueError(
            f"{path} must have one column of each name; found {header.count(twice[0])} named "
            f"{twice[0]!r}. Rename them."
        )


def _probabilities(lines, column, name):
    proba = np.empty(len(column))
    for row, text in enumerate(column):
        try:
            proba[row] = float(text)
        except ValueError:
            proba[row] = np.nan
        if not 0 <= proba[row] <= 1:
            found = repr(text) if text.strip() else "nothing"
            raise ValueError(
                f"Column {name!r} must hold a probability in [0, 1] in every row; found {found} in "
                f"line {lines[row]}. Remove or repair the row."
            )
    return proba


def _canonical(label):
    """A whole number without its decimal point: "1.0" is "1"."""
    return re.sub(r"^([+-]?\d+)\.0*$", r"\1", label.strip())


def _two_classes(labels, positive):
    observed = sorted(set(labels))
    with contextlib.suppress(ValueError):  # words stay in the order of the alphabet
        observed.sort(key=float)
    if positive is None:
        if len(observed) == 2:
            return observed
        if set(observed) <= {"0", "1"}:
            return ["0", "1"]
        raise ValueError(
            f"One column of probabilities is for two labels; found {len(observed)}: "
            f"{', '.join(observed[:10])}. Pass one column for each class, or name the class of the "
            "column with --positive."
        )
    positive = _canonical(positive)
    others = [label for label in observed if label != positive]
    if len(observed) > 2 or len(others) > 1:
        raise ValueError(
            f"--positive {positive} must be one of two labels; found {', '.join(observed[:10])}."
        )
    return [*(others or [f"not {positive}"]), positive]


def _classes_of_columns(observed, columns):
    """The columns less a common prefix, such that every label is among them."""
    prefixes = [columns[0][:end] for end in range(len(columns[0]), -1, -1)]
    shared = [
        prefix
        for prefix in prefixes
        if not prefix[-1:].isalnum() and all(name.startswith(prefix) for name in columns)
    ]
    candidates = [[_canonical(name[len(prefix) :]) for name in columns] for prefix in shared]
    for classes in candidates:
        if set(observed) <= set(classes):
            return classes
    unknown = [label for label in observed if label not in candidates[0]]
    raise ValueError(
        "Every label must match a column of probabilities; found "
        f"{', '.join(map(repr, unknown[:10]))}, and columns for "
        f"{', '.join(map(repr, candidates[0]))}. Name each column like its label, or proba_ and "
        "the label."
    )
