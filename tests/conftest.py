"""One thread of BLAS for each process: the workers of pytest-xdist share the cores already."""

import os

# They are read when NumPy is imported, and inherited by subprocesses.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
