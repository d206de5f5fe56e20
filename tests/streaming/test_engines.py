"""States as reductions on engines: Dask, Spark, SQL, and Parquet files larger than memory."""

import os
import pickle
import subprocess
import sys
from functools import reduce

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from skcalib.hypothesis_tests import (
    CalibrationTest,
    EquivalenceTest,
    SubgroupCalibrationTest,
    power_of_test,
)
from skcalib.recalibration import AutoRecalibrator, RecalibratedClassifier
from skcalib.streaming import CalibrationState
from skcalib.uncertainty import compare_models, confidence_interval

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.integration


def table(n, seed=0):
    """Rows off the grid: rare events, two regions, and 0 and 1 among the predictions."""
    rng = np.random.default_rng(seed)
    proba = rng.random(n) ** 4
    proba[:2] = 0, 1
    label = (rng.random(n) < proba**1.2).astype(int)
    return pd.DataFrame({"y": label, "p": proba, "region": rng.choice(["north", "south"], n)})


def state_of(frame):
    return CalibrationState([0, 1]).update(frame["y"], frame["p"], by=frame["region"])


def merged(states):
    """All states in a new one: what an engine keeps must not change."""
    return reduce(CalibrationState.merge, states, CalibrationState([0, 1]))


def counts(state):
    return sorted(state.to_arrow().to_pylist(), key=repr)


def check_same(state, other):
    assert counts(state) == counts(other)
    assert state.n_samples == other.n_samples
    for metric in ("smooth_calibration_error", "squared_kernel_calibration_error"):
        value, bound = state.evaluate(metric)
        assert (value, bound) == pytest.approx(other.evaluate(metric), rel=1e-12)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predictions")
    for k in range(4):
        table(500, k).to_parquet(folder / f"{k}.parquet")
    return folder


@pytest.fixture(scope="module")
def one_process(files):
    return merged(state_of(pd.read_parquet(path)) for path in sorted(files.iterdir()))


@pytest.fixture(scope="module")
def workers():
    """Two workers of Dask, as threads of this process."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


# Dask


def test_dask_delayed(workers, files, one_process):
    dask = pytest.importorskip("dask")
    states = [
        dask.delayed(lambda path: state_of(pd.read_parquet(path)))(p) for p in files.iterdir()
    ]
    check_same(dask.delayed(merged)(states).compute(), one_process)


def test_dask_data_frame(workers, files, one_process):
    dask = pytest.importorskip("dask")
    frame = pytest.importorskip("dask.dataframe").read_parquet(files)
    states = [dask.delayed(state_of)(partition) for partition in frame.to_delayed()]
    assert len(states) == 4
    check_same(dask.delayed(merged)(states).compute(), one_process)


@pytest.mark.slow
def test_dask_processes(files, one_process):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as two,
        distributed.Client(two) as client,
    ):
        states = client.map(state_of, [pd.read_parquet(path) for path in sorted(files.iterdir())])
        check_same(client.submit(merged, states).result(), one_process)
        with joblib.parallel_config(backend="dask"):
            assert_array_equal(null_distribution(2), null_distribution(1))


# joblib


def sample(n=60):
    rng = np.random.default_rng(0)
    proba = rng.random(n)
    return (rng.random(n) < proba).astype(int), proba


def null_distribution(n_jobs):
    label, proba = sample()
    test = CalibrationTest("smooth_calibration_error", n_resamples=19, random_state=0)
    return test.set_params(n_jobs=n_jobs).fit(proba, label).null_distribution_


def with_jobs(n_jobs):
    """Everything that takes n_jobs, by name: numbers."""
    label, proba = sample()
    X = np.random.default_rng(1).normal(size=(len(label), 2))
    draws = {"random_state": 0, "n_jobs": n_jobs}
    name = "smooth_calibration_error"
    equivalence = EquivalenceTest(name, margin=0.1, n_resamples=99, **draws).fit(proba, label)
    by = np.arange(len(label)) % 2
    subgroups = SubgroupCalibrationTest(n_resamples=19, **draws).fit(proba, label, by=by)
    power = power_of_test(proba, proba**2, 40, n_simulations=5, **draws)
    classifier = RecalibratedClassifier(LogisticRegression(), cv=3, n_jobs=n_jobs)
    yield "test", null_distribution(n_jobs)
    yield "omnibus", CalibrationTest(n_resamples=19, **draws).fit(proba, label).p_value_
    yield "interval", confidence_interval(name, label, proba, n_resamples=99, **draws)
    yield "equivalence", equivalence.upper_limit_
    yield "subgroups", subgroups.p_value_
    yield "power", power
    yield (
        "comparison",
        compare_models(name, label, proba, proba**2, n_resamples=99, **draws).p_value,
    )
    yield "recalibrator", AutoRecalibrator(n_jobs=n_jobs).fit(proba, label).predict_proba(proba)
    yield "classifier", classifier.fit(X, label).predict_proba(X)


def test_jobs_of_dask_give_the_same_numbers(workers):
    alone = dict(with_jobs(None))
    with joblib.parallel_config(backend="dask"):
        for name, numbers in with_jobs(2):
            assert_array_equal(numbers, alone[name], err_msg=name)


# Spark


def states_of_batches(frames):
    """What mapInPandas calls for each partition: one row with a state."""
    state = CalibrationState([0, 1])
    for frame in frames:
        state.update(frame["y"], frame["p"], by=frame["region"])
    yield pd.DataFrame({"state": [pickle.dumps(state)]})


def test_batches_of_pandas(files, one_process):
    rows = []
    for path in sorted(files.iterdir()):
        frame = pd.read_parquet(path)
        batches = [frame[start : start + 90] for start in range(0, 500, 90)]
        rows.append(pd.concat(states_of_batches([frame[:0], *batches])))
    check_same(merged(map(pickle.loads, pd.concat(rows)["state"])), one_process)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark(files, one_process, monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    try:
        frame = session.read.parquet(str(files)).repartition(3)
        rows = frame.mapInPandas(states_of_batches, "state binary").collect()
    finally:
        session.stop()
    assert len(rows) == 3
    check_same(merged(pickle.loads(row["state"]) for row in rows), one_process)


# SQL


def test_duckdb_counts_on_the_grid(files, one_process):
    """The number of decimals grows by one for each decade nearer to 0 or 1, as in the grid."""
    duckdb = pytest.importorskip("duckdb")
    query = f"""
        SELECT y, region, count(*) AS n,
            round(p, greatest(4, 2 - floor(log10(nullif(least(p, 1 - p), 0))))::INT) AS proba
        FROM '{files}/*.parquet' GROUP BY ALL
    """
    columns = duckdb.sql(query).fetchnumpy()
    state = CalibrationState.from_counts(
        columns["y"], columns["proba"], columns["n"], by=columns["region"], resolution=1e-4
    )
    assert counts(state) == counts(one_process)
    value, bound = state.evaluate("smooth_calibration_error")
    exact, nearer = one_process.evaluate("smooth_calibration_error")
    assert value == pytest.approx(exact, rel=1e-12)
    assert nearer < bound == pytest.approx(1e-4)


def test_duckdb_sums_of_weights(files):
    duckdb = pytest.importorskip("duckdb")
    query = f"""
        SELECT y, round(p, 4) AS proba, count(*) AS n, sum(1 + p) AS w, sum((1 + p) ** 2) AS w2
        FROM '{files}/*.parquet' GROUP BY ALL
    """
    columns = duckdb.sql(query).fetchnumpy()
    state = CalibrationState.from_counts(
        *(columns[name] for name in ("y", "proba", "n")),
        weight=columns["w"],
        squared_weight=columns["w2"],
        resolution=1e-4,
    )
    rows = pd.read_parquet(files)
    proba = np.round(rows["p"], 4)
    expected = CalibrationState([0, 1]).update(rows["y"], proba, 1 + rows["p"])
    metric = "squared_kernel_calibration_error"
    assert state.evaluate(metric)[0] == pytest.approx(expected.evaluate(metric)[0], rel=1e-10)


def test_polars_counts(files):
    polars = pytest.importorskip("polars")
    frame = (
        polars.scan_parquet(files)
        .group_by("y", polars.col("p").round(4), "region")
        .len()
        .collect(engine="streaming")
    )
    state = CalibrationState.from_counts(
        frame["y"], frame["p"], frame["len"], by=frame["region"], resolution=1e-4
    )
    rows = pd.read_parquet(files)
    rows["p"] = np.round(rows["p"], 4)
    assert counts(state) == counts(state_of(rows))


# Memory

STREAM = """
import resource, sys
import numpy as np
import pyarrow.parquet
from skcalib.streaming import CalibrationState

path, beyond = sys.argv[1], int(sys.argv[2])
file = pyarrow.parquet.ParquetFile(path, pre_buffer=False)  # or it is read at once
CalibrationState([0, 1]).update([0, 1], [0.1, 0.2]).evaluate("smooth_calibration_error")
with open("/proc/self/statm") as statm:
    now = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + beyond, now + beyond))
state = CalibrationState([0, 1])
for batch in file.iter_batches(2**17, use_threads=False):
    state.update(batch["y"].to_numpy(), batch["p"].to_numpy())
print(state.n_samples, state.evaluate("smooth_calibration_error").value)
try:
    file.read(use_threads=False)
except MemoryError:
    print("too large")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is that of Linux")
def test_a_file_larger_than_memory(tmp_path):
    """The process may take 100 MB beyond what it has at the start, and the file has 160 MB."""
    path, limit, n = tmp_path / "large.parquet", 100 * 2**20, 2 * 10**5
    state = CalibrationState([0, 1])
    schema = pyarrow.schema({"y": pyarrow.int8(), "p": pyarrow.float64()})
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for seed in range(100):
            frame = table(n, seed)
            columns = {"y": frame["y"].to_numpy().astype(np.int8), "p": frame["p"].to_numpy()}
            writer.write_table(pyarrow.table(columns))
            state.update(columns["y"], columns["p"])
    assert path.stat().st_size > 1.5 * limit
    environment = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    output = subprocess.run(
        [sys.executable, "-c", STREAM, str(path), str(limit)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert int(output[0]) == 100 * n
    assert float(output[1]) == state.evaluate("smooth_calibration_error").value
    assert output[2:] == ["too", "large"]
