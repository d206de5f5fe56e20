"""The command line: ``python -m skcalib demo`` and ``python -m skcalib report FILE``."""

from .commands import main

__all__ = ["main"]
