"""Doctests run in the modules of the package, not in second copies of them."""

import contextlib
import importlib
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent


def pytest_collect_file(file_path):
    """Import a module by its name, as pytest would run it once more beside what its package holds.

    Tests that patch a module would otherwise patch one copy, and use the other.
    """
    if file_path.is_relative_to(_ROOT / "skcalib") and not file_path.name.startswith("__"):
        parts = file_path.relative_to(_ROOT).with_suffix("").parts
        with contextlib.suppress(ImportError):  # of PyTorch, without which doctests are left out
            importlib.import_module(".".join(parts))


@pytest.fixture(autouse=True)
def close_figures():
    """Close what a doctest has drawn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
