"""How often every number with an interval or a p-value misses the truth, on every kind of data.

python docs/benchmarks/laboratory.py list
python docs/benchmarks/laboratory.py one NUMBER DATA R
python docs/benchmarks/laboratory.py smoke [SECONDS]   each cell once; so does --quick
python docs/benchmarks/laboratory.py full HOURS        goes on with laboratory.csv, if there is one
python docs/benchmarks/laboratory.py page              writes laboratory.md from it
"""

import csv
import signal
import sys
import time
import warnings
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from _laboratory_data import KINDS
from _laboratory_numbers import ALL_ROWS, make_numbers
from run import with_tables_apart
from scipy.stats import binom

PATH = Path(__file__).with_suffix(".csv")
COLUMNS = ("number", "data", "mark", "R", "missed", "share", "seconds", "message")
MARKS = {
    "INVALID": "Missed more often than chance explains",
    "watch": "Missed more often than promised, perhaps by chance",
    "ERROR": "Errors",
    "not finite": "No interval, or ends that are not finite",
    "wide": "More careful than need be",
    "refused": "Refused",
    "slow": "Too slow to be measured",
}
# Of marks that stay: patterns of number and data, and why.
REASONS = (
    (
        "equal models: calibration_slope",
        "wrong: *weights*",
        "few weights make up most of the variance of a slope",
    ),
    (
        "margin: *",
        "weights by outcome",
        "hardly any prediction exceeds 0.5, and those without an event weigh ten times as much",
    ),
)
ALPHA, END_ATOL = 0.05, 1e-12
MIN_SECONDS, MAX_FAILURES = 0.02, 20  # of a cell
PAGE = """# Do intervals and tests hold on every kind of data?

Each number with an interval or a p-value is measured on each kind of data. If all is well, at
most 0.05 of the intervals at 0.95 miss the truth, and at most 0.05 of the p-values are 0.05 or
less. A cell is invalid if chance explains its misses with a probability below 0.001, which happens
to one in a thousand cells that just hold. It is watched if the probability is below 0.05.

```text
python docs/benchmarks/laboratory.py full HOURS
python docs/benchmarks/laboratory.py page
```

[_laboratory_numbers.py](_laboratory_numbers.py) lists the numbers, all metrics, lenses and tests of
the package; [_laboratory_data.py](_laboratory_data.py) draws the data. The truth of an error is 0
for calibrated models; for wrong ones it is the error of many predictions with all outcomes as
expected. That of a mean is its average over the repetitions. "Equal models" are too sharp and too
flat on rows that are chosen at random, so that none is better.
"""


class TooSlow(BaseException):
    """Not an Exception, which the code that is measured may catch."""


def list_cells():
    """All pairs of a number and a kind of data, in a random order that is always the same."""
    numbers = make_numbers().items()
    cells = [(name, kind) for name, n in numbers for kind in KINDS if n.visits(KINDS[kind])]
    return [cells[i] for i in np.random.default_rng(0).permutation(len(cells))]


def raise_too_slow(*_):
    if is_measuring:
        raise TooSlow


def measure_cell(cell, n_repetitions, seconds, n_resamples=99, max_rows=ALL_ROWS):
    """A row of the table: how often a number misses, in repetitions within some CPU seconds."""
    global is_measuring
    number, kind = make_numbers()[cell[0]], KINDS[cell[1]]
    values, failures, start, row = [], Counter(), time.process_time(), dict.fromkeys(COLUMNS, "")
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again, should a callback swallow it
    is_measuring = True
    try:
        for seed in range(n_repetitions):
            sample = kind.sample(np.random.default_rng([1, seed]))
            sample |= {"n_resamples": n_resamples, "random_state": seed}
            try:
                truth = sample["margin"] = number.truth(kind, max_rows)
                values.append(number.run(sample))
            except Exception as error:  # what is raised is what the table shows
                if time.process_time() - start >= seconds:  # NumPy makes its own of what is raised
                    raise TooSlow from error
                failures[f"{type(error).__name__}: {error}"[:100].replace("|", "/")] += 1
                if not values and failures.total() == MAX_FAILURES:
                    break
    except TooSlow:
        pass
    finally:
        is_measuring = False  # a signal that has come may be handled after the timer is off
        signal.setitimer(signal.ITIMER_PROF, 0)
    spent = (time.process_time() - start) / max(len(values), 1)
    row |= {"number": cell[0], "data": cell[1], "R": len(values), "seconds": f"{spent:.3f}"}
    if failures:
        row["message"] = " × ".join(map(str, failures.most_common(1)[0][::-1]))
    if not all(message.startswith(("ValueError", "InvalidParameter")) for message in failures):
        return row | {"mark": "ERROR"}
    if not values:
        return row | {"mark": "refused" if failures else "slow"}
    return row | judge(np.array(values, float), truth)


def judge(values, truth):
    """How often p-values are at most α or intervals miss the truth, and whether by chance."""
    columns = values.reshape(len(values), -1)  # an end may be infinite, an estimate may not
    lost = np.isnan(columns).any(axis=1) | ~np.isfinite(columns[:, -1])
    values = values[~lost]
    if len(values) == 0:
        return {"mark": "not finite"}
    missed = values <= ALPHA
    if values.ndim == 2:
        low, high, estimate = values.T
        truth = np.mean(estimate) if truth is None else truth
        missed = ~((low - END_ATOL <= truth) & (truth <= high + END_ATOL))
    n, count = len(missed), int(missed.sum())
    error = np.sqrt(max(count / n * (1 - count / n), ALPHA * (1 - ALPHA)) / n)
    worse = binom.sf(count - 1, n, ALPHA)  # the probability of so many misses by chance
    mark = "INVALID" if worse < 1e-3 else "watch" if worse < 0.05 else ""
    if not mark and lost.any():
        mark = "not finite"
    elif n >= 100 and binom.cdf(count, n, ALPHA) < 1e-3:
        mark = "wide"
    return {"R": n, "missed": count, "share": f"{count / n:.3f} ± {error:.3f}", "mark": mark}


def iter_rows(cells, seconds, n_repetitions, **options):
    """Each cell may take twice its share of the CPU seconds that are left."""
    end = time.process_time() + float(seconds)
    for done, cell in enumerate(cells):
        share = (end - time.process_time()) / (len(cells) - done)
        yield measure_cell(cell, n_repetitions, max(2 * share, MIN_SECONDS), **options)


def show_list():
    cells = list_cells()
    print(f"{len(make_numbers())} numbers, {len(KINDS)} kinds of data, {len(cells)} cells\n")
    print("\n".join([*make_numbers(), "", *KINDS]))


def one(name, title, n_repetitions):
    row = measure_cell((name, title), int(n_repetitions), 1e9)
    print("\n".join(f"{column}: {row[column]}" for column in COLUMNS))


def smoke(seconds=240):
    """Few resamples. What must not be is an error."""
    start, marks = time.process_time(), Counter()
    print(format_row(COLUMNS), format_row(["---"] * len(COLUMNS)), sep="\n")
    for row in iter_rows(list_cells(), seconds, 1, n_resamples=19, max_rows=1000):
        marks[row["mark"] or "fine"] += 1
        if row["mark"] in ("ERROR", "not finite"):
            print(format_row(row.values()), flush=True)
    counts = ", ".join(f"{count} {mark}" for mark, count in marks.most_common())
    print(f"\n{marks.total()} cells in {time.process_time() - start:.0f} CPU seconds: {counts}")
    return marks["ERROR"] > 0


def read_rows():
    if not PATH.exists():
        return []
    with PATH.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def full(hours=4):
    """Add the cells that the table lacks, each as soon as it is measured."""
    old = {(row["number"], row["data"]) for row in read_rows()}
    cells = [cell for cell in list_cells() if cell not in old]
    with PATH.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if file.tell() == 0:
            writer.writeheader()
        for row in iter_rows(cells, 3600 * float(hours), 400):
            writer.writerow(row)
            file.flush()
            if row["mark"] in ("INVALID", "ERROR", "not finite"):
                print(format_row(row.values()), file=sys.stderr, flush=True)


def format_row(cells):
    return f"| {' | '.join(map(str, cells))} |"


def make_page():
    rows, lines = read_rows(), [PAGE]
    counts = Counter(row["mark"] or "as promised" for row in rows)
    measured = [int(row["R"]) for row in rows if int(row["R"])]
    lines.append(
        f"{len(rows)} cells, half of them with {np.median(measured):.0f} or more "
        f"repetitions: {', '.join(f'{n} {mark}' for mark, n in counts.most_common())}.\n"
    )
    for mark, title in MARKS.items():
        cells = sorted((row["number"], row["data"], row) for row in rows if row["mark"] == mark)
        if cells:
            head = ("number", "data", "R", "missed", "why")
            lines += [f"## {title}\n", format_row(head), format_row(["---"] * len(head))]
        for name, kind, row in cells:
            why = [reason for n, d, reason in REASONS if fnmatch(name, n) and fnmatch(kind, d)]
            shown = (name, kind, row["R"], row["share"], (*why, row["message"])[0])
            lines.append(format_row(shown))
        lines += [""] * bool(cells)
    return "\n".join(lines)


def page():
    path = PATH.with_suffix(".md")
    path.write_text(with_tables_apart(make_page(), path.parent, path.stem), encoding="utf-8")


def full_and_page():
    full()
    print(make_page())


COMMANDS = {"list": show_list, "one": one, "smoke": smoke, "full": full, "page": page}
COMMANDS |= {"--quick": smoke, "": full_and_page}  # as run.py calls it

if __name__ == "__main__":
    warnings.filterwarnings("ignore")  # much of the data is small or rare on purpose
    signal.signal(signal.SIGPROF, raise_too_slow)
    command, *arguments = sys.argv[1:] or [""]
    sys.exit(COMMANDS[command](*arguments))
