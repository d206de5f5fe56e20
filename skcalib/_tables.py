"""Labels and probabilities from a file of comma-separated values."""

import csv
from operator import itemgetter

import numpy as np


def read_predictions(path, label_column, proba_columns, positive=None):
    """Labels (n,), probabilities (n,) or (n, K), and the classes in the order of the columns.

    One column of probabilities is of the class `positive` (by default the larger of two labels).
    Several columns are named like the labels, possibly after a common prefix that ends in a
    separator: "proba_cat", "proba_dog".
    """
    labels, texts = _read_columns(path, label_column, proba_columns)
    if "" in labels:
        raise ValueError(
            f"Column {label_column!r} must hold a label in every row; it is empty in line "
            f"{labels.index('') + 2}. Remove the rows without a label."
        )
    proba = _parse_probabilities(texts, proba_columns)
    if len(proba_columns) == 1:
        classes = _two_classes(labels, positive)
        return np.array(labels), proba[:, 0], classes
    if positive is not None:
        raise ValueError(
            f"--positive is for a single column of probabilities; found {len(proba_columns)} "
            "columns. Leave it out."
        )
    return np.array(labels), proba, _classes_of_columns(sorted(set(labels)), proba_columns)


def _read_columns(path, label_column, proba_columns):
    wanted = [label_column, *proba_columns]
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"Each column must be named once; found {', '.join(wanted)}.")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = [name.strip() for name in next(rows, [])]
            missing = [name for name in wanted if name not in header]
            if missing:
                raise ValueError(
                    f"{path} has no column {', '.join(map(repr, missing))}; its columns are "
                    f"{', '.join(map(repr, header))}. Values are separated by commas."
                )
            pick = itemgetter(*(header.index(name) for name in wanted))
            records = []
            for row in rows:
                if len(row) != len(header):
                    if not row:
                        continue
                    raise ValueError(
                        f"Every row must have the {len(header)} columns of the header; found "
                        f"{len(row)} in line {rows.line_num} of {path}."
                    )
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
    return [label.strip() for label in labels], texts


def _parse_probabilities(texts, columns):
    proba = np.empty((len(texts[0]), len(columns)))
    for k, (name, column) in enumerate(zip(columns, texts, strict=True)):
        try:
            proba[:, k] = np.array(column, dtype=float)
        except ValueError:
            row, text = next((i, text) for i, text in enumerate(column) if not _is_number(text))
            found = "nothing" if not text.strip() else repr(text)
            raise ValueError(
                f"Column {name!r} must hold a probability in every row; found {found} in line "
                f"{row + 2}. Remove or repair the row."
            ) from None
    return proba


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _two_classes(labels, positive):
    observed = sorted(
        set(labels), key=lambda label: (float(label) if _is_number(label) else 0, label)
    )
    if positive is None:
        if len(observed) == 2:
            return observed
        if set(observed) <= {"0", "1"}:
            return ["0", "1"]
        raise ValueError(
            f"One column of probabilities is for two labels; found {len(observed)}: "
            f"{', '.join(observed[:10])}. Pass one column for each class, or name the class of "
            "the column with --positive."
        )
    others = [label for label in observed if label != positive]
    if len(others) != 1 or len(observed) > 2:
        raise ValueError(
            f"--positive {positive} must be one of two labels; found {', '.join(observed[:10])}."
        )
    return [*others, positive]


def _classes_of_columns(observed, columns):
    if set(observed) <= set(columns):
        return list(columns)
    classes = _without_common_prefix(columns)
    unknown = [label for label in observed if label not in classes]
    if unknown:
        raise ValueError(
            "Every label must match a column of probabilities; found "
            f"{', '.join(map(repr, unknown[:10]))}, and columns for "
            f"{', '.join(map(repr, classes))}. Name each column like its label, or proba_ and the "
            "label."
        )
    return classes


def _without_common_prefix(names):
    """The names less the longest prefix that all share and that ends in a separator."""
    first = names[0]
    for end in range(len(first), 0, -1):
        shared = all(name.startswith(first[:end]) for name in names)
        if shared and not first[end - 1].isalnum():
            return [name[end:] for name in names]
    return list(names)
