"""What reaches the terminal."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator

from ..report._progress import LISTENER

# What a shell reports of a program that a closed pipe ended, as in ``| head -1``: 128 + SIGPIPE.
CLOSED_PIPE = 141


def escaped(text: str) -> str:
    r"""One line of text with control characters such as escape written out: "\x1b"."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def escaped_json(text: str) -> str:
    r"""Lines of JSON with control characters written as JSON does: "\u001b"."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def discard_output() -> None:
    """Send what is still to be printed nowhere, so that Python does not fail at its exit."""
    with contextlib.suppress(OSError, ValueError):  # a standard output that is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def progress() -> Iterator[None]:
    """Shows on one line of a terminal what is being done; shows nothing where errors are piped."""
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
