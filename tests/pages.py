"""Files of the repository beside the tests; a distribution may test the package without them."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def read_page(name):
    """The text of a file of the repository; without it, the test that reads it is skipped."""
    path = ROOT / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the tests", allow_module_level=True)
    return path.read_text(encoding="utf-8")
