"""Prints the rows of the table of licences in RELEASING.md, from the metadata of what is installed.

pip install -e ".[test,torch,jax]" && python .ci/licences.py
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

EXTRAS = ("arrow", "tables", "onnx", "plot", "jax", "torch", "test")


def licence_of(metadata):
    """The licence that a package states: as an expression, by classifiers, or as free text."""
    classifiers = [name.split(" :: ") for name in metadata.get_all("Classifier", [])]
    names = [parts[-1] for parts in classifiers if parts[0] == "License" and len(parts) > 2]
    fallback = (metadata.get("License") or "not stated").strip().splitlines()[0]
    return metadata.get("License-Expression") or " or ".join(names) or fallback


def add_packages(requirement, licences):
    """Add the licence of a required package, and of those that it requires."""
    name = re.sub(r"[-_.]+", "-", requirement.name).lower()
    if name in licences or name == "skcalib":
        return
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        licences[name] = "not installed"
        return
    licences[name] = licence_of(installed.metadata)
    for text in installed.requires or []:
        needed = Requirement(text)
        environments = [{"extra": extra} for extra in requirement.extras or {""}]
        if needed.marker is None or any(map(needed.marker.evaluate, environments)):
            add_packages(needed, licences)


def main():
    path = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    groups = {"skcalib": project["dependencies"]}
    groups |= {f"`[{name}]`": project["optional-dependencies"][name] for name in EXTRAS}
    licences = {}
    for group, requirements in groups.items():
        before = set(licences)
        for text in requirements:
            add_packages(Requirement(text), licences)
        for name in sorted(licences.keys() - before):
            print(f"| {group} | {name} | {licences[name]} |")


if __name__ == "__main__":
    main()
