"""Isotonic regression and Venn–Abers prediction: time against n, beside scikit-learn's isotonic.

All of them sort the predictions and pool adjacent violators; Venn–Abers prediction does it twice,
with one sample more at each place. Times include validation.

    pip install . && python docs/benchmarks/isotonic.py
"""

import sys
import time

import numpy as np
from sklearn.isotonic import IsotonicRegression

from skcalib.recalibration import IsotonicRecalibrator, VennAbersRecalibrator

DECIMALS = {"distinct": 16, "four decimals": 4, "two decimals": 2}
METHODS = {
    "scikit-learn": IsotonicRegression(out_of_bounds="clip"),
    "isotonic": IsotonicRecalibrator(strict=False),
    "strict": IsotonicRecalibrator(strict=True),
    "Venn–Abers": VennAbersRecalibrator(),
}


def best_times(functions, repetitions):
    """The least seconds of each function, called in turn."""
    times = np.empty((repetitions, len(functions)))
    for row in times:
        for k, function in enumerate(functions):
            start = time.perf_counter()
            function()
            row[k] = time.perf_counter() - start
    return times.min(axis=0)


def main(quick=False):
    rng = np.random.default_rng(0)
    names = " | ".join(METHODS)
    print(f"| seconds | predictions | weights | n | {names} |")
    print("|---" * (4 + len(METHODS)) + "|")
    for kind, decimals in DECIMALS.items():
        for n in (10**4,) if quick else (10**4, 10**5, 10**6):
            proba = np.round(rng.random(n), decimals)
            label = (rng.random(n) < proba**2).astype(int)
            for weighted, weight in (("no", None), ("yes", rng.random(n))):
                fits = [
                    lambda m=m, p=proba, y=label, w=weight: m.fit(p, y, sample_weight=w)
                    for m in METHODS.values()
                ]
                maps = [lambda m=m, p=proba: m.predict(p) for m in [METHODS["scikit-learn"]]]
                maps += [
                    lambda m=m, p=proba: m.predict_proba(p) for m in list(METHODS.values())[1:]
                ]
                for what, functions in (("fit", fits), ("predict", maps)):
                    times = best_times(functions, 3 if n == 10**6 else 10)
                    cells = " | ".join(f"{seconds:.4f}" for seconds in times)
                    size = f"1e{np.log10(n):.0f}"
                    print(f"| {what} | {kind} | {weighted} | {size} | {cells} |", flush=True)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
