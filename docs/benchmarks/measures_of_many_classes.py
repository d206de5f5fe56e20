"""A thousand classes: time and memory of measures and of a temperature, beside other packages.

The data are those of many_classes.py: single-precision probabilities of 50 000 samples of 1000
classes, 200 MB. Each row runs in a process of its own; its memory is the highest that the process
held, beyond what it held before the call. Run in an environment with the peers (those that are
missing are left out):

    pip install . netcal relplot uncertainty-calibration
    python docs/benchmarks/measures_of_many_classes.py

A part of the name of a row, as an argument, restricts the table to what contains it.
"""

import contextlib
import io
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from many_classes import problem, scikit_learn
from scipy.special import softmax

from skcalib import metrics
from skcalib.recalibration import TemperatureRecalibrator

warnings.simplefilter("ignore")


def skcalib(name, label, proba, **options):
    return getattr(metrics, name)(label, proba, labels=np.arange(proba.shape[1]), **options)


def classwise(name, label, proba, **options):
    return skcalib(name, label, proba, multi_class="classwise", **options)


def fourier(name, label, proba):
    return skcalib(name, label, proba, method="fourier", random_state=0)


def temperature(label, proba):
    classes = np.arange(proba.shape[1])
    return TemperatureRecalibrator(labels=classes).fit(proba, label).temperature_


def temperature_of_scikit_learn(label, proba):
    scikit_learn(proba, None, label)
    return np.nan


def temperature_of_netcal(label, proba):
    from netcal.scaling import TemperatureScaling

    return float(TemperatureScaling().fit(proba, label).temperature[0])


def smooth_expected_of_relplot(label, proba):
    import relplot

    return relplot.smECE(proba.max(axis=1).astype(float), (proba.argmax(axis=1) == label) * 1.0)


def binned_of_netcal(label, proba):
    from netcal.metrics import ECE

    return ECE(15).measure(proba, label)


def binned_of_uncertainty_calibration(label, proba):
    import calibration

    return calibration.get_calibration_error(proba, label, p=1, debias=False, mode="marginal")


SMOOTH, BINNED = "smooth_calibration_error", "expected_calibration_error"

ROWS = {
    "smooth, confidence": partial(skcalib, SMOOTH),
    "smooth, classwise": partial(classwise, SMOOTH),
    "smooth, classwise, n_jobs=2": partial(classwise, SMOOTH, n_jobs=2),
    "smooth expected, confidence": partial(skcalib, "smooth_expected_calibration_error"),
    "smooth expected, confidence: relplot": smooth_expected_of_relplot,
    "binned, confidence": partial(skcalib, BINNED, multi_class="confidence"),
    "binned, confidence: netcal": binned_of_netcal,
    "binned, classwise": partial(classwise, BINNED),
    "binned, classwise: uncertainty-calibration": binned_of_uncertainty_calibration,
    "lower distance, classwise": partial(classwise, "lower_distance_to_calibration"),
    "squared kernel, classwise": partial(classwise, "squared_kernel_calibration_error"),
    "squared kernel, Fourier": partial(fourier, "squared_kernel_calibration_error"),
    "CKCE, Fourier": partial(fourier, "conditional_kernel_calibration_error"),
    "temperature": temperature,
    "temperature: scikit-learn": temperature_of_scikit_learn,
    "temperature: netcal": temperature_of_netcal,
}


def megabytes(name):
    """What this process holds now (VmRSS), or held at most (VmHWM), as Linux tells."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (words,) = (line.split() for line in lines if line.startswith(name))
    return int(words[1]) * 1024 / 1e6


def measure(name, folder):
    """One line of the table; nothing if the package is missing."""
    label, proba = (np.load(Path(folder) / f"{part}.npy") for part in ("label", "proba"))
    few = label[:200] % 20, np.full((200, 20), 0.05, dtype=np.float32)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            ROWS[name](*few)  # what is loaded at the first call is not counted
        except ImportError:
            return
        before = megabytes("VmRSS")
        start, cpu = time.perf_counter(), time.process_time()
        value = ROWS[name](label, proba)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    held = megabytes("VmHWM") - before
    print(f"| {name} | {seconds:.2f} | {cpu:.2f} | {max(held, 0):.0f} | {value:.9g} |")


def write_data(folder, n, n_classes):
    label, logits = problem(n, n_classes, seed=1)
    proba = np.empty(logits.shape, dtype=np.float32)
    for rows in np.array_split(np.arange(n), -(-n // 5000)):
        proba[rows] = softmax(logits[rows], axis=1)
    np.save(Path(folder) / "label.npy", label)
    np.save(Path(folder) / "proba.npy", proba)


def main(quick=False, only=""):
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder, *((300, 20) if quick else (50_000, 1000)))
        print("| measure | seconds | CPU seconds | MB | value |")
        print("|---|---|---|---|---|", flush=True)
        for name in ROWS:
            if only in name and quick:
                measure(name, folder)
            elif only in name:
                subprocess.run([sys.executable, __file__, "--row", name, folder], check=True)


if __name__ == "__main__":
    if "--row" in sys.argv:
        measure(*sys.argv[2:])
    else:
        main("--quick" in sys.argv, "".join(a for a in sys.argv[1:] if a[0] != "-"))
