"""NumPy, torch and JAX as packages of arrays; the latter two where they are installed."""

from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np


class Numpy:
    def asarray(self, array):
        return np.asarray(array)

    def numpy(self, array):
        return np.asarray(array)

    @contextmanager
    def double(self):
        """Where arrays may have double precision."""
        yield


class Torch(Numpy):
    def __init__(self):
        import torch

        self.torch = torch

    def asarray(self, array):
        return self.torch.tensor(array)

    def numpy(self, tensor):
        return tensor.detach().numpy()

    def gradients(self, function, arrays):
        """The value of a function, and its derivatives with respect to all arrays."""
        tensors = [self.asarray(array).requires_grad_() for array in arrays]
        result = function(*tensors)
        gradients = self.torch.autograd.grad(
            result, tensors, allow_unused=True, materialize_grads=True
        )
        return result.item(), [self.numpy(gradient) for gradient in gradients]


class Jax(Numpy):
    def __init__(self):
        import jax

        self.jax = jax
        jax.config.update("jax_disable_most_optimizations", True)  # compiles in half the time

    def asarray(self, array):
        return self.jax.numpy.asarray(array)

    @contextmanager
    def double(self):
        before = self.jax.config.jax_enable_x64
        self.jax.config.update("jax_enable_x64", True)
        yield
        self.jax.config.update("jax_enable_x64", before)

    def gradients(self, function, arrays):
        """The same, compiled."""
        compiled = self.jax.jit(self.jax.value_and_grad(function, argnums=range(len(arrays))))
        result, gradients = compiled(*map(self.asarray, arrays))
        return result.item(), [np.asarray(gradient) for gradient in gradients]


FRAMEWORKS = {
    name: made() for name, made in {"torch": Torch, "jax": Jax}.items() if find_spec(name)
}
PACKAGES = {"numpy": Numpy(), **FRAMEWORKS}


def in_type(array, dtype):
    return array.astype(dtype) if array.dtype.kind == "f" else array


def converted(package, dtype=np.float64):
    """A function that makes arrays of the package, with numbers of this type."""
    return lambda array: package.asarray(in_type(array, dtype))
