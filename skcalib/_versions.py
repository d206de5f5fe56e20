"""The version of this package, and those that a bug report needs."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

__version__ = "0.1.0.dev0"

_PACKAGES = (
    "skcalib",
    "numpy",
    "scipy",
    "scikit-learn",
    "cvxpy",
    "highspy",
    "clarabel",
    "joblib",
    "threadpoolctl",
    "array-api-compat",
    "pandas",
    "matplotlib",
    "torch",
)


def show_versions() -> None:
    """Print the versions of Python, of the system and of the packages that skcalib uses.

    Paste what it prints into a bug report.

    Examples
    --------
    >>> import skcalib
    >>> skcalib.show_versions()  # doctest: +SKIP
    python: 3.13.1
    system: Linux-6.8-x86_64
    ...
    """
    lines = [f"python: {sys.version.split()[0]}", f"system: {platform.platform()}"]
    for package in _PACKAGES:
        try:
            release = version(package)
        except PackageNotFoundError:
            release = "not installed"
        lines.append(f"{package}: {release}")
    print("\n".join(lines))  # noqa: T201
