"""What the command line writes: files that are whole, and lines for people to read."""

import contextlib
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path

from ._sections import LISTENER

# What every page has after its style, and hardly any other file.
_MARK_OF_A_PAGE = b"<main class='skcalib'>"


def check_target(path: str, *, force: bool) -> None:
    """Refuse a path that cannot be written to, and one of a file that may be dear to somebody."""
    target = Path(path)
    if target.is_file() and not force:
        with open(target, "rb") as file:
            if _MARK_OF_A_PAGE not in file.read(2**16):
                raise ValueError(
                    f"{path} must not be replaced, as it exists and is not a page of a report. "
                    "Name another file, or pass --force."
                )
    is_pipe = target.exists() and not target.is_file() and not target.is_dir()
    folder = Path(os.path.realpath(target)).parent
    can_hold = folder.is_dir() and os.access(folder, os.W_OK)
    if target.is_dir() or not (is_pipe or can_hold):
        raise ValueError(
            f"{path} must be a file in a folder that exists and can be written to. Name another "
            "one."
        )


def write_whole(path: str | PathLike, text: str) -> None:
    """Write a text to a file of its own, which then takes the place of the path.

    So nothing that was there is lost unless all is written. Pipes and devices are written to.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        Path(path).write_text(text, encoding="utf-8")
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    part = target.with_name(f".skcalib-{secrets.token_hex(8)}")
    try:
        part.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def say(text: str) -> None:
    """A line on the standard error, where it does not mix with the report; lost if that is full."""
    with contextlib.suppress(OSError):
        print(f"skcalib: {escaped(text)}", file=sys.stderr)


def show(text: str, written: Callable[[str], str] = ascii) -> None:
    r"""Lines on the standard output, where what it has no code for is written out, as "\xe9"."""
    encoding = sys.stdout.encoding or "utf-8"  # a text in memory has none
    shown = escaped(text, "\n", written)
    print("".join(c if c.encode(encoding, "ignore") else written(c)[1:-1] for c in shown))


def escaped(text: str, kept: str = "", written: Callable[[str], str] = ascii) -> str:
    r"""Text with control characters such as escape written out, as "\x1b" or as JSON does."""
    return "".join(c if c.isprintable() or c in kept else written(c)[1:-1] for c in text)


@contextlib.contextmanager
def progress() -> Iterator[None]:
    """Show on one line of a terminal what is being done, and nothing where errors are piped."""
    if not sys.stderr.isatty():
        yield
        return
    erase = "\r\x1b[K"
    before = LISTENER.set(
        lambda title: print(f"{erase}{escaped(title)} ...", end="", file=sys.stderr, flush=True)
    )
    try:
        yield
    finally:
        LISTENER.reset(before)
        print(erase, end="", file=sys.stderr, flush=True)
