"""Seconds and memory of a fit of the default recalibrator, where trees cannot help.

    python docs/benchmarks/_time_and_memory.py N_SAMPLES N_CLASSES

Labels are drawn from a softmax, and the predictions are 1.7 times too sure. Run it once for each
size, in one thread (OMP_NUM_THREADS=1), with each version that is to be compared.
"""

import resource
import sys
import time

import numpy as np
from scipy.special import softmax

from skcalib.recalibration import AutoRecalibrator


def main(n_samples, n_classes):
    rng = np.random.default_rng(0)
    scores = 2 * rng.normal(size=(n_samples, n_classes))
    truth = softmax(scores / 1.7, axis=1)
    y = (truth.cumsum(axis=1) > rng.random((n_samples, 1))).argmax(axis=1)
    proba, seconds = softmax(scores, axis=1), []
    del scores, truth
    for _ in range(1 + 3000 // n_samples if n_classes <= 10 else 1):
        start = time.process_time()
        AutoRecalibrator(labels=range(n_classes)).fit(proba, y)
        seconds.append(time.process_time() - start)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{n_samples} x {n_classes}: {min(seconds):.2f} s, {megabytes:.0f} MB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
