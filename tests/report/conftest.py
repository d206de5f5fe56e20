"""Reports as they are, but for intervals, whose jackknife takes most of the time."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def few_parts():
    """The jackknife leaves out ten parts of the samples in turn, not a hundred."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skcalib.uncertainty._units._N_BLOCKS", 10)
        yield
