"""Which package gives which of the exact test vectors, and by which definition it differs."""

import argparse
import importlib.metadata
import json
import warnings

import numpy as np
from _vector_packages import FOLDER, PACKAGES, calls

# Where a package computes less exactly by design: single precision, predictions moved by 1e-8 to
# break ties, an optimiser's default, a search for the width in steps of 0.001.
TOLERANCES = {
    ("torchmetrics", None): 1e-6,
    ("MAPIE", None): 1e-7,
    ("netcal", "inverse_temperature"): 1e-3,
    ("relplot", "smooth_ece"): 2e-3,
}


def count(package, measures, content):
    """Number of vectors that agree and number asked, for each measure, and those that do not."""
    counts, others = {}, []
    for vector in content["vectors"]:
        name = vector["measure"]
        if name not in measures or (
            package != "skcalib" and "w" in content["inputs"][vector["input"]]
        ):
            continue
        coarser = TOLERANCES.get((package, name), TOLERANCES.get((package, None), 0))
        tolerance = max(content["measures"][name]["tolerance"], coarser)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = float(calls.call_vector(measures, vector, content["inputs"]))
        except Exception as error:
            value = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
        agrees = not isinstance(value, str) and abs(value - vector["value"]) <= tolerance
        same, asked = counts.get(name, (0, 0))
        counts[name] = same + agrees, asked + 1
        if not agrees:
            others.append((name, vector["input"], vector["parameters"], vector["value"], value))
    return counts, others


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds")
    parser.add_argument("--differences", action="store_true", help="list every vector that differs")
    arguments = parser.parse_args()
    content = json.loads((FOLDER / "calibration_vectors.json").read_text(encoding="utf-8"))
    columns, listed, missing = {}, [], []
    for package, load in PACKAGES.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                measures = load()
        except ImportError:
            missing.append(package)
            continue
        columns[package], others = count(package, measures, content)
        listed += [(package, *other) for other in others]
    peers = [name for name in columns if name != "skcalib"]
    versions = (
        ", ".join(f"{name} {importlib.metadata.version(name)}" for name in peers) or "no peer"
    )
    print(f"{len(content['vectors'])} vectors of {len(content['measures'])} measures; {versions}.")
    if missing:
        print(f"Not installed: {', '.join(missing)}.")
    print(f"\n| measure | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name in content["measures"]:
        cells = [columns[package].get(name) for package in columns]
        if sum(cell is not None for cell in cells) > 1 or len(columns) == 1:
            shown = ("" if cell is None else f"{cell[0]} of {cell[1]}" for cell in cells)
            print(f"| `{name}` | {' | '.join(shown)} |")
    if arguments.differences:
        for package, name, key, parameters, expected, value in listed:
            print(f"\n{package}, {name}, {key}, {parameters}: {value}, not {expected}", end="")


if __name__ == "__main__":
    main()
