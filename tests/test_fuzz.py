"""Public calls with data in other containers: the same number, or an error that names an argument.

``python tests/fuzz.py`` makes as many such calls as it is asked for.
"""

import pytest
from fuzz import Fuzzer

SECONDS = 12  # of the processor


@pytest.mark.slow
def test_no_call_is_silently_wrong_or_ends_in_a_foreign_error():
    fuzzer = Fuzzer(seed=0, n_cases=40)
    _, findings = fuzzer.run(10**6, SECONDS)
    assert fuzzer.n_calls > 100
    assert not findings, "\n".join(" | ".join(finding) for finding in findings)
