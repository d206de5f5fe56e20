"""Tells whoever listens which part of a report is being made."""

from collections.abc import Callable
from contextvars import ContextVar

LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar("LISTENER", default=None)


def stage(title: str) -> None:
    """Called before a part that may take seconds."""
    tell = LISTENER.get()
    if tell is not None:
        tell(title)
