"""How messages list values."""

import numpy as np
import pytest

from skcalib._inputs.arrays import listed


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_values_are_listed_up_to_ten(kind):
    assert listed(kind([1, 2])) == "[1, 2]"
    assert listed(kind(["a"])) == "['a']"
    assert listed(kind([])) == "[]"
    assert listed(kind(range(10))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    assert listed(kind(range(11))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …]"
