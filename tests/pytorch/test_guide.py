"""The code of the guide runs, where its packages are installed."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "training_for_calibration.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("packages", [("torch", "skorch"), ("jax",)], ids=str)
def test_the_code_of_the_guide_runs(packages):
    for package in packages:
        pytest.importorskip(package)
    is_jax = "jax" in packages
    blocks = [block for block in BLOCKS if ("jax" in block) == is_jax]
    assert blocks
    exec("\n".join(blocks), {"__name__": "guide"})
