"""Without PyTorch, the import says how to install it."""

import sys

import pytest


def test_import_without_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("skcalib.torch")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r'Run pip install "skcalib\[torch\]"'):
        import skcalib.torch  # noqa: F401
