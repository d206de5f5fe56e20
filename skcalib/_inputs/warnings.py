"""Warnings that point at the user's line, or are recorded; limits of memory and time."""

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

import joblib
import sklearn
from sklearn.exceptions import EfficiencyWarning

# No computation takes more than this share of the machine's memory.
MAX_MEMORY_SHARE = 0.75

# A warning comes before computations that take more seconds than this.
MAX_SILENT_SECONDS = 600.0

_FOLDERS = Path(__file__).parent.parent, Path(sklearn.__file__).parent, Path(joblib.__file__).parent
_OWN_CODE = tuple(f"{folder}{os.sep}" for folder in _FOLDERS)

_RECORD: ContextVar[list | None] = ContextVar("_RECORD", default=None)


def record_warnings(function: Callable, *args: object, **kwargs: object) -> tuple[Any, list]:
    """Return the value of a function, and the warnings of `warn`, which are recorded, not issued.

    Python's own filters would also silence other threads.
    """
    record: list[tuple[str, type[Warning]]] = []
    context = copy_context()
    context.run(_RECORD.set, record)
    return context.run(function, *args, **kwargs), record


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside of skcalib, scikit-learn and joblib, or record it."""
    record = _RECORD.get()
    if record is not None:
        record.append((message, category))
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_CODE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_if_slow(seconds: float, argument: str, remedy: str) -> None:
    """Warn before something that takes more than `MAX_SILENT_SECONDS` seconds."""
    if seconds > MAX_SILENT_SECONDS:
        time = f"{seconds / 3600:.1f} hours" if seconds > 5400 else f"{seconds / 60:.0f} minutes"
        warn(f"{argument} will take some {time}. {remedy}", EfficiencyWarning)


def check_memory(needed: float, argument: str, remedy: str) -> None:
    """Refuse what needs more bytes than `MAX_MEMORY_SHARE` of those that the machine has.

    The message begins with the argument that leads there, and ends with what to do instead.
    """
    total = machine_memory()
    if needed > MAX_MEMORY_SHARE * total:
        raise MemoryError(
            f"{argument} needs {needed / 1e9:,.1f} GB of memory; found {total / 1e9:,.1f} GB in "
            f"this machine, of which it may take {MAX_MEMORY_SHARE:.0%}. {remedy}"
        )


def machine_memory() -> float:
    """Return all bytes of memory; infinity where the system does not tell."""
    with suppress(AttributeError, OSError, ValueError):
        total = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
        if total > 0:  # -1 stands for a number that is not known
            return total
    return float("inf")
