"""Public calls with data in other containers: the same number, or an error that names an argument.

``python tests/fuzz.py`` makes as many such calls as it is asked for.
"""

import pytest
from fuzz import Fuzzer

N_CALLS = 1000  # some 12 seconds


@pytest.mark.slow
def test_no_call_is_silently_wrong_or_ends_in_a_foreign_error():
    fuzzer = Fuzzer(seed=0, n_cases=40)
    _, findings = fuzzer.run(N_CALLS)
    assert fuzzer.n_calls == N_CALLS
    assert not findings, "\n".join(" | ".join(finding) for finding in findings)
