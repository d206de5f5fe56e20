"""NumPy, torch and JAX compute the same losses, in double and in single precision."""

import contextlib

import numpy as np
import pytest


class Numpy:
    def __init__(self):
        self.asarray, self.numpy, self.precision = np.asarray, np.asarray, contextlib.nullcontext


class Torch:
    def __init__(self):
        torch = pytest.importorskip("torch")
        self.asarray, self.precision = torch.tensor, contextlib.nullcontext

    def numpy(self, tensor):
        return tensor.detach().numpy()


class Jax:
    def __init__(self):
        jax = pytest.importorskip("jax")
        self.jax, self.asarray, self.numpy = jax, jax.numpy.asarray, np.asarray

    def precision(self, is_double=True):
        if hasattr(self.jax, "enable_x64"):
            return self.jax.enable_x64(is_double)
        return __import__("jax.experimental").experimental.enable_x64(is_double)
