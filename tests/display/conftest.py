"""Figures are closed after each test, and laid out where that is what is tested."""

import matplotlib as mpl
import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture
def layout():
    """For tests of where things are."""


@pytest.fixture(autouse=True)
def figures(request, monkeypatch):
    """Close all figures; without `layout` nothing is placed, which takes most of the time."""
    if "layout" not in request.fixturenames:
        monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda self, figure: None)
    # the jackknife of intervals leaves out ten parts of the samples in turn, not a hundred
    monkeypatch.setattr("skcalib.uncertainty._units._N_BLOCKS", 10)
    yield
    plt.close("all")
