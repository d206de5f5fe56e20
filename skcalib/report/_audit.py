"""How a report came about, so that it can be checked and repeated."""

import hashlib
import platform
from typing import Any

import numpy as np
import scipy
import sklearn

from .._inputs.types import RandomState


def audit_trail(
    arrays: list[np.ndarray],
    n_rows: int,
    n_used: int,
    random_state: RandomState,
    what: str = "labels, probabilities and weights",
    **settings: Any,
) -> dict[str, Any]:
    """Versions, settings, rows, and a hash of the data in their order."""
    from .. import __version__

    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.dtype).encode() + str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    left_out = n_rows - n_used
    return {
        "skcalib": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "random_state": repr(random_state),
        **{name: repr(value) for name, value in settings.items() if value is not None},
        "rows": n_rows,
        "rows left out": f"{left_out} (of weight 0)" if left_out else 0,
        f"sha256 of {what}": digest.hexdigest(),
    }
