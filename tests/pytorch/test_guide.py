"""The code of the guides that needs other packages runs, where these are installed."""

import re

import pytest
from pages import read_page


@pytest.mark.parametrize(
    ("page", "packages"),
    [
        ("training_for_calibration", ("torch", "skorch")),
        ("training_for_calibration", ("jax",)),
        ("logits", ("torch", "skorch")),
    ],
    ids=str,
)
def test_the_code_of_the_guide_runs(page, packages):
    for package in packages:
        pytest.importorskip(package)
    text = read_page(f"docs/guide/{page}.md")
    blocks = re.findall(r"```python\n(?!>>>)(.*?)```", text, flags=re.DOTALL)
    chosen = [block for block in blocks if ("jax" in block) == ("jax" in packages)]
    assert chosen
    exec("\n".join(chosen), {"__name__": "guide"})
