"""Memory and time that a computation takes, said before it starts."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sklearn.exceptions import EfficiencyWarning

from .warnings import warn

# No computation takes more than this share of the memory that is available.
SHARE = 0.75

# Computations that take more seconds than this are announced.
LONG = 600.0

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


def check_memory(needed: float, argument: str, remedy: str) -> None:
    """Refuse what needs more bytes than `SHARE` of those that are available.

    The message begins with the argument that leads there, and ends with what to do instead.
    """
    available = available_memory()
    if needed > SHARE * available:
        raise MemoryError(
            f"{argument} needs {_size(needed)} of memory; found {_size(available)} available, of "
            f"which it may take {SHARE:.0%}. {remedy}"
        )


def announce(seconds: float, argument: str, remedy: str) -> None:
    """Warn before something that takes more than `LONG` seconds."""
    if seconds > LONG:
        time = f"{seconds / 3600:.1f} hours" if seconds > 5400 else f"{seconds / 60:.0f} minutes"
        warn(f"{argument} will take some {time}. {remedy}", EfficiencyWarning)


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB"


def available_memory() -> float:
    """Bytes that can be had now: of the machine, or of its container if these are fewer.

    Infinite where the system does not tell.
    """
    return min([*_free_of_machine(), *_free_of_containers()], default=float("inf"))


def _free_of_machine() -> Iterator[float]:
    kilobytes = _numbers(_PROC / "meminfo").get("MemAvailable:")
    if kilobytes is not None:
        yield 1024.0 * kilobytes
        return
    with suppress(AttributeError, OSError, ValueError):  # all of it, where no more is known
        total = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
        if total > 0:  # -1 stands for a number that is not known
            yield total


def _free_of_containers() -> Iterator[float]:
    """Bytes left below the limit of each control group (version 1 or 2) around this process."""
    for line in _text(_PROC / "self" / "cgroup").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers == "":
            root, limit, used, cached = _CGROUPS, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, cached = _CGROUPS / "memory", "total_inactive_file"
            limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            most, now = _text(folder / limit).strip(), _text(folder / used).strip()
            if most.isdecimal() and now.isdecimal():  # not "max"
                in_use = float(now) - _numbers(folder / "memory.stat").get(cached, 0.0)
                yield max(float(most) - in_use, 0.0)


def _numbers(path: Path) -> dict[str, float]:
    """The first two words of each line of a file: a name and a number."""
    words = (line.split() for line in _text(path).splitlines())
    return {line[0]: float(line[1]) for line in words if len(line) > 1 and line[1].isdecimal()}


def _text(path: Path) -> str:
    """A file of the system; nothing where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
