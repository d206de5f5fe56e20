"""One thread of BLAS for each process, and no search for doctests in tests."""

import gc
import os

import pytest

# The workers of pytest-xdist share the cores already. NumPy reads these names when it is imported,
# and subprocesses inherit them.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Collect tests alone: the search for doctests would pass over a file that fails to import."""
    return [collector for collector in (yield) if type(collector) is pytest.Module]


def pytest_collection_finish():
    """Collect garbage less often, as modules and thousands of tests last."""
    gc.set_threshold(50_000, 50, 50)
