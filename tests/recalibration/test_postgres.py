"""SQL in PostgreSQL is `predict_proba`: run by `.ci/run peers` where `initdb` is on the path.

The server lives in a folder of its own and listens on a socket there. It refuses to run as root: in
such a container it runs as nobody.
"""

import os
import shutil
import subprocess
import tempfile

import numpy as np
import pytest
from recalibration.test_formula import SQL_CASES, WRITABLE, problem, queries

from skcalib.recalibration import IsotonicRecalibrator, export_sql

pytestmark = pytest.mark.skipif(
    "SKCALIB_POSTGRES" not in os.environ, reason="SKCALIB_POSTGRES is not set"
)


@pytest.fixture(scope="module")
def server():
    """The folder of the socket of a running server."""
    folder = tempfile.mkdtemp(prefix="pg")  # a short path, as a socket needs it
    data = f"{folder}/data"
    options = {"cwd": folder, "check": True, "stdout": subprocess.DEVNULL}
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
        options["user"] = "nobody"
    create = ["initdb", "-D", data, "-A", "trust", "-U", "tests", "-E", "UTF8", "--locale=C"]
    control = ["pg_ctl", "-D", data, "-w", "-l", f"{folder}/log"]
    subprocess.run([*create, "--no-sync"], **options)
    subprocess.run([*control, "-o", f"-k {folder} -c listen_addresses=''", "start"], **options)
    yield folder
    subprocess.run([*control, "-m", "immediate", "stop"], **options)
    shutil.rmtree(folder)


def select(server, expressions, values, columns):
    names = [name.replace('"', '""') for name in columns]
    types = ", ".join(f'"{name}" double precision' for name in names)
    rows = [", ".join(f"'{value!r}'" for value in row) for row in values.tolist()]
    statements = [
        f"CREATE TEMPORARY TABLE scores (id integer, {types})",
        f"INSERT INTO scores VALUES {', '.join(f'({i}, {row})' for i, row in enumerate(rows))}",
        f"SELECT {', '.join(expressions)} FROM scores ORDER BY id;",
    ]
    client = ["psql", "-X", "-q", "-A", "-t", "-F,", "-v", "ON_ERROR_STOP=1"]
    client += ["-h", server, "-U", "tests", "-d", "postgres"]
    done = subprocess.run(client, input=";\n".join(statements), text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    cells = [line.split(",") for line in done.stdout.splitlines()]
    return np.array([[float(cell or "nan") for cell in row] for row in cells])


@pytest.mark.parametrize(("name", "n_classes"), SQL_CASES)
def test_sql_is_predict_proba(server, name, n_classes):
    proba, y = problem(n_classes)
    recalibrator = WRITABLE[name].fit(proba, y)
    query = queries(proba)
    query[query < 1e-300] = 0
    columns = ['le"ft', "mid", "right"][-n_classes:]
    expressions = export_sql(recalibrator, columns=columns)
    actual = select(server, expressions, query, columns)
    np.testing.assert_allclose(actual, recalibrator.predict_proba(query), rtol=1e-12, atol=1e-15)


def test_missing_and_invalid_predictions_are_null(server):
    recalibrator = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    expressions = export_sql(recalibrator, columns=["p"])
    query = np.array([[np.nan], [-0.1], [1.1], [0.2]])
    actual = select(server, expressions, query, ["p"])
    assert np.isnan(actual).all(axis=1).tolist() == [True, True, True, False]


def test_probabilities_too_small_for_a_product_are_errors(server):
    recalibrator = IsotonicRecalibrator(strict=True).fit(*problem(2))
    expressions = export_sql(recalibrator, columns=["p"])
    with pytest.raises(RuntimeError, match="value out of range: underflow"):
        select(server, expressions, np.array([[5e-324]]), ["p"])
