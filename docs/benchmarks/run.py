"""Runs the benchmarks of this folder, each in a process of its own, and shows what they print.

python docs/benchmarks/run.py --list
python docs/benchmarks/run.py [--quick] [--write FOLDER] [NAME ...]
"""

import argparse
import ast
import csv
import importlib.util
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
LONGEST_TABLE = 16  # rows that a page shows; longer tables lie beside it
BENCHMARKS = {path.stem: path for path in sorted(HERE.glob("[!_]*.py")) if path != Path(__file__)}


def summary(path):
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).partition("\n")[0]


def missing_packages(path):
    """What the script, or one of this folder that it imports, imports at its top and is missing."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.partition(".")[0])
    beside = {name for name in names if (HERE / f"{name}.py").exists()}
    missing = {name for name in names - beside if importlib.util.find_spec(name) is None}
    return sorted(missing.union(*(missing_packages(HERE / f"{name}.py") for name in beside)))


def run(path, options):
    """The output of the script, which is shown while it runs, and its exit status."""
    lines = []
    command = [sys.executable, "-X", "utf8", "-u", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return "".join(lines), process.returncode


def with_tables_apart(page, folder, name):
    """The page with its long tables replaced by links to CSV files, written to `folder`/tables."""
    stem, shown, table, used = name, [], [], {}
    for line in [*page.split("\n"), ""]:
        if line.startswith("|"):
            table.append(line)
            continue
        if len(table) - 2 > LONGEST_TABLE:
            used[stem] = used.get(stem, 0) + 1
            path = f"tables/{stem}{'' if used[stem] == 1 else f'_{used[stem]}'}.csv"
            rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
            (folder / "tables").mkdir(exist_ok=True)
            with (folder / path).open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([rows[0], *rows[2:]])
            shown.append(f"[The table]({path}) has {len(rows) - 2} rows.")
        else:
            shown += table
        table = []
        if line.startswith("##"):  # the first heading is the title of the page
            words = re.findall("[a-z0-9]+", line.lower())
            stem = "_".join([name, *words[:5]])
        shown.append(line)
    return "\n".join(shown[:-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to run; by default all")
    parser.add_argument("--list", action="store_true", help="list the benchmarks, and run none")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that they run")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write outputs there, too")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; --list shows the names")
    if arguments.list:
        for name, path in BENCHMARKS.items():
            print(f"{name}: {summary(path)}")
        return 0
    failed = []
    for name in arguments.names or BENCHMARKS:
        missing = missing_packages(BENCHMARKS[name])
        if missing:
            print(f"not run: benchmark {name} (needs {', '.join(missing)})\n", flush=True)
            continue
        print(f"# {name}\n", flush=True)
        start = time.perf_counter()
        output, status = run(BENCHMARKS[name], ["--quick"] if arguments.quick else [])
        print(f"\n({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)
        if status != 0:
            failed.append(name)
        elif arguments.write:
            arguments.write.mkdir(parents=True, exist_ok=True)
            page = with_tables_apart(output, arguments.write, name)
            (arguments.write / f"{name}.md").write_text(page, encoding="utf-8")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
