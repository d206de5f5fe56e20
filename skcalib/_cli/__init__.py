"""The command line: ``skcalib demo`` and ``skcalib report FILE``, also ``python -m skcalib``."""

from .commands import main

__all__ = ["main"]
