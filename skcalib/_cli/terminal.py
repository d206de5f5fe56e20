"""What reaches the terminal."""

import contextlib
import os
import sys

# What a shell reports of a program that a closed pipe ended, as in ``| head -1``: 128 + SIGPIPE.
CLOSED_PIPE = 141


def escaped(text: str) -> str:
    r"""One line of text with control characters such as escape written out: "\x1b"."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def discard_output() -> None:
    """Send what is still to be printed nowhere, so that Python does not fail at its exit."""
    with contextlib.suppress(OSError, ValueError):  # a standard output that is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
