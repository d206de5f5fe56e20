"""Imports point downwards, and importing skcalib loads nothing heavy."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import skcalib

ROOT = Path(skcalib.__file__).parent

# From the ground up; a module may import from its own package and from the layers before it.
LAYERS = [
    ["_guesses", "_versions"],
    ["_numerics"],
    ["_inputs"],
    ["forecasts"],
    ["_data"],
    ["decisions"],
    ["_statistics"],
    ["datasets", "function_classes", "lenses", "losses"],
    ["torch"],
    ["metrics"],
    ["recalibration", "streaming", "uncertainty"],
    ["hypothesis_tests"],
    ["display"],
    ["report"],
    ["_cli"],
    ["__main__"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# The only file that imports private names of scikit-learn.
SCIKIT_LEARN = ROOT / "_inputs" / "scikit_learn.py"

FILES = sorted(ROOT.rglob("*.py"))
MODULES = [path for path in FILES if path != ROOT / "__init__.py"]


def package_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports_of(path):
    """Absolute names of the modules that a file imports."""
    return list(_imports_of(path))


def _imports_of(path):
    package = ["skcalib", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, [alias.name.split(".")[-1]]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, [alias.name for alias in node.names]


def internal_imports(path):
    for module, names in imports_of(path):
        parts = module.split(".")
        if parts[0] == "skcalib":
            yield from [parts[1]] if len(parts) > 1 else names


def files_in(folder):
    return sorted((ROOT / folder).rglob("*.py"))


# every file is read: 0.4 s
def test_imports_point_downwards():
    for path in MODULES:
        own = package_of(path)
        for imported in internal_imports(path):
            assert imported == own or LEVEL[imported] < LEVEL[own], f"{path} imports {imported}"


def file_of(name):
    """The file of a module, or None."""
    path = ROOT.parent.joinpath(*name.split("."))
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.exists()), None)


def test_no_files_import_each_other_in_a_circle():
    # an import within a function counts, too: it hides a circle, and does not cut it
    graph = {}
    for path in MODULES:
        imported = {
            file_of(f"{module}.{name}") or file_of(module)
            for module, names in imports_of(path)
            for name in names
        }
        graph[path] = imported - {path, None}
    TopologicalSorter(graph).prepare()


def test_private_names_of_scikit_learn_enter_through_one_file():
    for path in MODULES:
        if path == SCIKIT_LEARN:
            continue
        for module, names in imports_of(path):
            parts = module.split(".") + names
            is_private = any(part.startswith("_") for part in parts)
            assert not (module.startswith("sklearn") and is_private), f"{path}: {module} {names}"


def test_numerics_judge_nothing():
    for path in files_in("_numerics"):
        assert not any(module.startswith("sklearn") for module, _ in imports_of(path)), path
        tree = tree_of(path)
        assert not any(isinstance(node, ast.Raise) for node in ast.walk(tree)), path


def test_inputs_know_no_model():
    for path in files_in("_inputs"):
        if path == SCIKIT_LEARN:
            continue
        used = {module for module, _ in imports_of(path) if module.startswith("sklearn.")}
        allowed = ("sklearn.utils", "sklearn.exceptions")
        assert all(module.startswith(allowed) for module in used), path


def test_every_module_has_a_layer():
    assert {package_of(path) for path in MODULES} == set(LEVEL)


HEAVY = {"matplotlib", "cvxpy", "torch", "pandas", "polars"}


def test_modules_import_what_is_heavy_when_it_is_used():
    for path in MODULES:  # only losses, and maps as modules, are made of torch
        is_torch = package_of(path) == "losses" or path.stem == "_torch_modules"
        own = {"torch"} if is_torch else set()
        first = re.findall(
            r"^(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert not (HEAVY - own) & set(first), path


@pytest.mark.integration
def test_imports_are_light():
    # scikit-learn itself imports pandas if it is installed; skcalib.torch is made of torch
    names = ["skcalib", *(f"skcalib.{name}" for name in LEVEL if name != "torch")]
    code = (
        "import importlib, sys, sklearn.model_selection\n"
        "before = set(sys.modules)\n"
        f"for name in {names}:\n"
        "    importlib.import_module(name)\n"
        f"    print(*({HEAVY} & (set(sys.modules) - before)), end='|')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert dict(zip(names, done.stdout.split("|"), strict=False)) == dict.fromkeys(names, "")


def test_import_of_the_package_loads_nothing_at_all():
    code = f"import sys, skcalib; print(*({HEAVY | {'numpy', 'sklearn'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# Rooms of one file, in which a name without an underscore is for users.
PUBLIC_FILES = {"decisions", "function_classes", "lenses", "torch"}


def test_underscored_names_stay_in_their_room():
    for path in MODULES:
        for module, names in imports_of(path):
            room = [*module.split("."), ""][1] if module.startswith("skcalib.") else ""
            if room and room not in {package_of(path), *PUBLIC_FILES}:
                private = [name for name in names if re.match("_[^_]", name)]
                assert not private, f"{path} imports {private} of {module}"
