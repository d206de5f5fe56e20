"""The functions of skcalib give the exact values of the test vectors."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pages import read_page
from vectors.calls import call_vector, skcalib_calls

FILE = Path(__file__).parent / "calibration_vectors.json"
TABLE = json.loads(FILE.read_text(encoding="utf-8"))
CALLS = skcalib_calls()


@pytest.mark.parametrize("measure", TABLE["measures"])
def test_values_are_exact(measure):
    tolerance = TABLE["measures"][measure]["tolerance"]
    for vector in TABLE["vectors"]:
        if vector["measure"] == measure:
            value = call_vector(CALLS, vector, TABLE["inputs"])
            assert value == pytest.approx(vector["value"], rel=0, abs=tolerance), vector


def test_every_measure_has_vectors_and_a_call():
    assert {vector["measure"] for vector in TABLE["vectors"]} == set(TABLE["measures"])
    assert set(CALLS) == set(TABLE["measures"])


def test_inputs_are_probabilities():
    for data in TABLE["inputs"].values():
        for p in np.ravel(data.get("p", data.get("P", 0))):
            assert float(p).as_integer_ratio()[1] <= 64  # a double holds it exactly
        if "P" in data:
            assert all(sum(row) == 1 for row in data["P"])


@pytest.mark.slow
def test_the_file_is_what_its_script_writes(tmp_path):
    script = tmp_path / "vectors.py"
    script.write_text(read_page("docs/benchmarks/_vectors.py"), encoding="utf-8")
    subprocess.run([sys.executable, script, tmp_path / "again.json"], check=True)
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == FILE.read_text(encoding="utf-8")
