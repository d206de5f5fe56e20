"""States of streams: time and memory of 10⁹ predictions, accuracy, merging, resuming, and Dask.

Times are of the processor, as other work on the machine changes these less. The last table has
elapsed times, too.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import dask
import numpy as np
import pyarrow
import pyarrow.parquet
from dask.distributed import Client, LocalCluster
from scipy.special import expit
from sklearn.metrics import brier_score_loss

from skcalib import metrics
from skcalib.streaming import CalibrationState

CHUNK = 10**6
N_CLASSES = 10

# What changes by at most the stated bound, and one measure that has none.
MEASURES = [
    (metrics.smooth_calibration_error, {}),
    (metrics.lower_distance_to_calibration, {}),
    (metrics.laplace_kernel_calibration_error, {}),
    (metrics.squared_kernel_calibration_error, {"bandwidth": 1.0}),
    (brier_score_loss, {}),
    (metrics.expected_calibration_error, {}),
]


def cpu_time(function, *arguments, **options):
    start = time.process_time()
    result = function(*arguments, **options)
    return time.process_time() - start, result


def chunks(n, seed=0):
    """Labels and predictions, which are overconfident (temperature 1.2) and off every grid.

    Predictions are those of a table, which begins elsewhere in each chunk: this costs nothing.
    """
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=2 * CHUNK)
    table, truth = expit(1.2 * logits), expit(logits).astype(np.float32)
    for start in range(0, n, CHUNK):
        rows = slice(first := rng.integers(CHUNK), first + min(CHUNK, n - start))
        yield rng.random(rows.stop - first, dtype=np.float32) < truth[rows], table[rows]


def stream(n):
    state, counts = CalibrationState(labels=[False, True]), np.zeros(10_000, dtype=np.int64)
    seconds = np.zeros(3)
    before = time.process_time()
    for label, proba in chunks(n):
        made = time.process_time()
        state.update(label, proba)
        kept = time.process_time()
        counts += np.histogram(proba, bins=len(counts), range=(0, 1))[0]
        counted = time.process_time()
        seconds += made - before, kept - made, counted - kept
        before = counted
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if state.n_samples != n or counts.sum() != n:
        raise RuntimeError("samples were lost")
    print(f"\n{n:.0e} predictions in chunks of {CHUNK:.0e}, one process\n")
    print("| | s of one core | predictions per second |\n|---|---|---|")
    names = "simulation", "`CalibrationState.update`", "`numpy.histogram`, 10 000 equal bins"
    for name, spent in zip(names, seconds, strict=True):
        print(f"| {name} | {spent:.1f} | {n / spent:.1e} |")
    spent, (value, bound) = cpu_time(state.evaluate, "smooth_calibration_error")
    print(f"\nPeak memory of the process, imports included: {peak:.0f} MB.")
    print(f"Smooth calibration error {value:.6f} ± {bound:.6f} in {spent:.2f} s.", flush=True)


def accuracy(n):
    state = CalibrationState(labels=[False, True])
    parts = []
    for label, proba in chunks(n, seed=1):
        state.update(label, proba)
        parts.append((label, proba))
    label, proba = (np.concatenate(part) for part in zip(*parts, strict=True))
    print(f"\n{n:.0e} predictions: the state beside all rows\n")
    print(
        "| measure | all rows | s | state | s | difference | bound |\n|---|---|---|---|---|---|---|"
    )
    for metric, params in MEASURES:
        slow, exact = cpu_time(metric, label, proba, **params)
        fast, (value, bound) = cpu_time(state.evaluate, metric, **params)
        print(
            f"| {metric.__name__.replace('_', ' ')} | {exact:.6f} | {slow:.2f} | {value:.6f} "
            f"| {fast:.2f} | {abs(value - exact):.1e} | {bound:.1e} |",
            flush=True,
        )


def are_same(first, second):
    """Whether the counts agree to the last bit."""
    return first.to_arrow().equals(second.to_arrow(), check_metadata=False)


def merged(states):
    whole = CalibrationState()
    for state in states:
        whole.merge(state)
    return whole


def merging(n, folder):
    parts = [CalibrationState([False, True]).update(*chunk) for chunk in chunks(n, seed=2)]
    whole = CalibrationState([False, True])
    for k, chunk in enumerate(chunks(n, seed=2)):
        whole.update(*chunk)
        if k == len(parts) // 2:  # the process dies here, and another goes on
            pyarrow.parquet.write_table(whole.to_arrow(), folder / "state.parquet")
            table = pyarrow.parquet.read_table(folder / "state.parquet")
            whole = CalibrationState.from_arrow(table)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(parts)) for _ in range(20)]
    results = [merged(parts[k] for k in order) for order in orders]
    half = len(parts) // 2
    results.append(merged([merged(parts[:half]), merged(parts[half:])]))
    values = [state.evaluate("smooth_calibration_error") for state in [whole, *results]]
    print(f"\n{len(parts)} states merged in {len(orders)} orders, and as a tree\n")
    print(f"- equal to the last bit: {all(are_same(whole, state) for state in results)}")
    print(f"- largest difference of the smooth error: {np.ptp([v for v, _ in values]):.1e}")
    print(f"- largest difference of its bound: {np.ptp([bound for _, bound in values]):.1e}")
    size = (folder / "state.parquet").stat().st_size / 1024
    print(f"- one of them was interrupted, and went on from a file of {size:.0f} KB", flush=True)


def write_classes(path, n, seed):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(N_CLASSES, 0.3), n)
    label = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    columns = {f"p{k}": column for k, column in enumerate(proba.T.astype(np.float32))}
    table = pyarrow.table({"label": np.minimum(label, N_CLASSES - 1)} | columns)
    pyarrow.parquet.write_table(table, path, use_dictionary=False)


def state_of_file(path):
    state = CalibrationState(range(N_CLASSES))
    file = pyarrow.parquet.ParquetFile(path, pre_buffer=False)
    for batch in file.iter_batches(2**16):
        label, *proba = (column.to_numpy() for column in batch.columns)
        state.update(label, np.column_stack(proba))
    return state


def workers(n, folder):
    paths = [folder / f"{k}.parquet" for k in range(8)]
    for k, path in enumerate(paths):
        write_classes(path, n // 8, seed=k)
    # Dask makes its workers return memory at once, which costs as much time as the states do
    environment = {"distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1}}
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set(environment),
        LocalCluster(**options) as cluster,
        Client(cluster) as client,
    ):

        def one_process():
            return merged(map(state_of_file, paths))

        def two_workers():
            states = client.map(state_of_file, paths, pure=False)
            return client.submit(merged, states).result()

        def clocks():
            spent = client.run(time.process_time)
            return np.array([time.perf_counter(), time.process_time(), *spent.values()])

        two_workers()  # imports, and reads once
        times, states = {}, []
        for function in [one_process, two_workers] * 3:
            before = clocks()
            states.append(function())
            spent = clocks() - before
            times.setdefault(function.__name__, []).append((spent[0], spent[1:].max()))
    print(f"\n{n:.0e} predictions of {N_CLASSES} classes in 8 Parquet files, the best of three\n")
    print("| | s elapsed | s of the processor in the busiest process |\n|---|---|---|")
    best = {name: np.min(spent, axis=0) for name, spent in times.items()}
    for name, (elapsed, busiest) in best.items():
        print(f"| {name.replace('_', ' ')} | {elapsed:.2f} | {busiest:.2f} |")
    ratios = best["one_process"] / best["two_workers"]
    print(f"\nEqual to the last bit: {all(are_same(states[0], state) for state in states)}.")
    print(f"Speed-up: {ratios[0]:.2f} elapsed, {ratios[1]:.2f} by the busiest process.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few predictions, to see that it runs")
    shrink = 500 if parser.parse_args().quick else 1
    with tempfile.TemporaryDirectory() as folder:
        stream(10**9 // shrink)
        accuracy(max(10**7 // shrink, 10**5))
        merging(10**7 if shrink == 1 else 4 * CHUNK, Path(folder))
        workers(2 * 10**6 // shrink, Path(folder))


if __name__ == "__main__":
    main()
