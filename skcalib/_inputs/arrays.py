"""Arrays of any origin, and how messages show them."""

import contextlib
from collections.abc import Hashable, Sequence
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_strict_namespace,
    is_cupy_array,
    is_torch_array,
)
from sklearn import get_config
from sklearn.utils import check_array

from .._numerics.array_api import Array, promote_to_float, stop_gradient, to_numpy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
else:

    class ArrayLike:
        """Anything that becomes an array. NumPy's name fills a screen with `help` of a function."""

        __module__ = "builtins"  # shown as a name alone


# Outcomes with this many distinct values are taken for numbers, not classes; this many
# probabilities that are 0 or 1 for labels.
MIN_DISTINCT_NUMBERS = 10

# The largest number of values that a message lists.
_MAX_LISTED_VALUES = 10

PIXELS_REMEDY = (
    "Pass one row for each sample. Where each pixel or token is a sample, pass labels.reshape(-1), "
    "and p.reshape(-1, n_classes) with the classes on the last axis: from axis 1, "
    "np.moveaxis(p, 1, -1) moves them there, or p.movedim(1, -1) of a tensor."
)


def as_array(values: object, name: str) -> np.ndarray:
    """Return an array of any type; refuse, by the name of the argument, what cannot become one.

    A tensor of PyTorch may be on any device, carry gradients, and hold numbers of a type that NumPy
    lacks.
    """
    if type(values) is np.ndarray and values.dtype.kind in "biuf" and values.ndim in (1, 2):
        return values  # check_array takes 20 times as long to return the same
    shape = getattr(values, "shape", ())
    if not isinstance(values, type) and shape[1:] == (0,):
        return np.empty(shape)  # a data frame without columns has no dtype
    rows = values if isinstance(values, list | tuple) else [values]
    n_masked = sum(np.ma.count_masked(row) for row in rows if isinstance(row, np.ma.MaskedArray))
    if n_masked:
        raise ValueError(
            f"{name} must not have masked values; found {n_masked}. Remove these samples."
        )
    if isinstance(values, set | frozenset):
        raise ValueError(
            f"{name} must have an order; found a {type(values).__name__}, which has none. Pass a "
            "list."
        )
    try:
        array = check_array(
            to_numpy(values),
            dtype=None,
            ensure_2d=False,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )
        if array.dtype.kind == "O" and {*map(type, array.flat)} in ({list}, {np.ndarray}):
            array = np.array(array.tolist())  # rows that pyarrow or pandas hold as objects
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # tensors raise the last
        kind = TypeError if isinstance(error, TypeError) else ValueError
        reason = str(error).partition("\n")[0]  # not the array itself
        reason += f" {PIXELS_REMEDY}" if "<= 2" in reason else ""
        raise kind(f"{name} must be an array of one or two dimensions: {reason}") from error
    if array.ndim == 0:
        raise ValueError(
            f"{name} must be a list or an array; found {type(values).__name__}. Pass a list of the "
            "values."
        )
    return array


def is_device_array(values: object) -> bool:
    """True for device arrays of torch and CuPy; all others are converted to NumPy.

    They stay where they are if scikit-learn's `array_api_dispatch` is set, on devices that
    know double precision, in which sums are taken.
    """
    if not get_config()["array_api_dispatch"]:
        return False
    is_supported = is_torch_array(values) or is_cupy_array(values)
    if hasattr(values, "__array_namespace__"):  # the package that tests for the standard
        is_supported |= is_array_api_strict_namespace(values.__array_namespace__())
    return is_supported and getattr(device(values), "type", "") != "mps"


def as_device_floats(values: Any) -> Array | None:
    """Return numbers (n,) or (n, K), K ≥ 2, on their own device; None for all other values."""
    if not is_device_array(values) or values.ndim not in (1, 2) or 0 in values.shape:
        return None
    if not array_namespace(values).isdtype(values.dtype, "real floating"):
        return None
    (numbers,) = promote_to_float(stop_gradient(values))
    return numbers[:, 0] if numbers.shape[1:] == (1,) else numbers


def check_numbers(
    values: ArrayLike,
    name: str,
    *,
    ndim: int | None = None,
    length: int | None = None,
    rows: str | None = None,
    finite: bool = True,
    allow_nan: bool = False,
    most: float = np.inf,
) -> np.ndarray:
    """Return real numbers as doubles, of any shape unless `ndim` or `length` asks for one.

    A single column is taken for one dimension. `rows` says in messages what there is: one value,
    or one row, for each sample by default.
    Text is refused, also if it could be read as a number.
    """
    is_scalar = False
    with contextlib.suppress(ValueError):  # rows of unequal lengths, which as_array refuses by name
        is_scalar = np.ndim(values) == 0
    array = np.asarray(values) if is_scalar else as_array(values, name)
    if array.dtype.kind == "O" and not any(isinstance(entry, str | bytes) for entry in array.flat):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} must hold numbers; found type {array.dtype}. Convert it, or remove what is "
            "not a number."
        )
    with np.errstate(over="ignore"):  # long doubles become infinite, which is refused
        array = array.astype(np.float64)
    if ndim == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    has_rows = array.size > 0 if length is None else array.shape[:1] == (length,)
    if ndim is not None and not (array.ndim == ndim and has_rows):
        rows = rows or f"one {'value' if ndim == 1 else 'row'} for each sample"
        reason = "" if length is None else ", inconsistent numbers of samples"
        raise ValueError(
            f"{name} must be {ndim}-D, with {rows}; found shape {array.shape}{reason}. Pass an "
            f"array of shape {('(n_samples,)', '(n_samples, n_columns)')[ndim - 1]} with at least "
            "one value."
        )
    is_refused = np.isinf(array) if allow_nan else ~np.isfinite(array)
    if finite and is_refused.any():
        first = tuple(np.argwhere(is_refused)[0].tolist())
        location = f" in row {first[0]}" if first else ""
        raise ValueError(
            f"{name} must be finite; found {array[first]} (NaN or infinity){location}. Leave out "
            "the sample, in all arguments, or repair the value; only features may be imputed."
        )
    # `fmax` ignores NaN
    if not np.isinf(most) and array.size and np.fmax.reduce(np.abs(array), axis=None) > most:
        raise ValueError(
            f"{name} must lie within ±{most:g}, as squares of larger numbers overflow; found "
            f"{array[np.abs(array) > most][0]:g}. Pass all numbers in a larger unit."
        )
    return array


def import_package(name: str, caller: str, requirement: str) -> Any:
    """Import an optional package; if it is missing, say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{caller} needs {name}; it is not installed. Run pip install {requirement}."
        ) from error


def column_names(table: object) -> list[Any]:
    """Return the names of the columns of a data frame or a pyarrow table; none for other arrays."""
    names = getattr(table, "column_names", None)  # pyarrow's `columns` are the columns themselves
    if names is None:
        names = getattr(table, "columns", []) if hasattr(table, "shape") else []  # none if lazy
    if callable(names) or not all(isinstance(name, Hashable) for name in names):
        return []
    return list(names)


def is_number(value: object) -> bool:
    """True for integers and floats of Python and of NumPy, but not for truth values."""
    return isinstance(value, Integral | float | np.floating) and not isinstance(value, bool)


def is_missing(value: object) -> bool:
    """True for None, NaN, pandas' NA and a missing time."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # whether pandas' NA equals itself is not known
        return True


def find_missing(values: np.ndarray) -> np.ndarray:
    """True where a value is missing."""
    with np.errstate(invalid="ignore"):  # Python 3.14 may signal a comparison of NaN
        return np.vectorize(is_missing, otypes=[bool])(values)


def fill_missing(values: np.ndarray) -> np.ndarray:
    """Return the values, with NaN for missing objects."""
    return np.where(find_missing(values), np.nan, values) if values.dtype.kind == "O" else values


def is_pair(values: Any) -> bool:
    """True for the arrays of two samples, or None for one that has none."""
    is_of_two = isinstance(values, tuple | list) and len(values) == 2
    return is_of_two and all(each is None or np.ndim(each) > 0 for each in values)


def convert_numbers(values: np.ndarray) -> np.ndarray:
    """Return objects as numbers in their own precision, or unchanged if some are no numbers."""
    flat = values.ravel().tolist()
    return np.array(flat).reshape(values.shape) if all(map(is_number, flat)) else values


def are_probably_measurements(values: object) -> bool:
    """True for many distinct numbers, not all of them whole, which labels never are."""
    values = _as_doubles(values)
    return len(np.unique(values)) >= MIN_DISTINCT_NUMBERS and bool((values % 1 != 0).any())


def are_counts(values: object) -> bool:
    """True for more than two distinct numbers; digits in strings are names of classes."""
    dtype = values.dtype if hasattr(values, "dtype") else np.asarray(values).dtype
    is_text = getattr(dtype, "kind", "f") in "USO"  # tensors have types of their own
    return not is_text and len(np.unique(_as_doubles(values))) > 2


def are_probably_probabilities(values: object) -> bool:
    """True for fractions between 0 and 1, which labels never are."""
    values = _as_doubles(values)
    in_range = values.size > 0 and values.min() >= 0 and values.max() <= 1
    return bool(in_range and (values % 1 != 0).any())


def _as_doubles(values: object) -> np.ndarray:
    """Return the values as doubles; an empty array if they are no numbers."""
    try:
        return np.asarray([] if values is None else to_numpy(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return np.empty(0)


def check_same_length(lengths: dict[str, int], remedy: str = "") -> None:
    """Refuse arguments of different lengths; `lengths` holds them by name."""
    if len(set(lengths.values())) > 1:
        lengths_text = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise ValueError(
            f"{' and '.join(lengths)} must have the same length; found inconsistent numbers of "
            f"samples ({lengths_text}). {remedy or 'Pass one value of each for every sample.'}"
        )


def format_values(values: Sequence[Any] | np.ndarray) -> str:
    """Return values as a message lists them, "[1, 2, 3]"; only the first ten of many."""
    first = values[:_MAX_LISTED_VALUES]
    texts = [repr(value) for value in (first.tolist() if isinstance(first, np.ndarray) else first)]
    if len(values) > _MAX_LISTED_VALUES:
        texts.append("…")
    return f"[{', '.join(texts)}]"


def format_value(value: object) -> str:
    """The value on one line of a message, cut if it is long."""
    return f"{' '.join(repr(value).split()):.80}"
