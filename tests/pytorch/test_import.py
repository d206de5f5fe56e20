"""Without PyTorch, the import says how to install it."""

import sys

import pytest


def test_import_without_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "skcalib.torch", raising=False)
    with pytest.raises(ImportError, match=r'Run pip install "skcalib\[torch\]"'):
        import skcalib.torch  # noqa: F401
