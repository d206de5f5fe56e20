"""Imports point downwards, and importing skcalib loads nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import skcalib

ROOT = Path(skcalib.__file__).parent

# From the ground up; a module may import from its own package and from the layers before it.
LAYERS = [
    ["_types", "_warnings"],
    ["_numerics", "_sklearn"],
    ["_redraw"],
    ["_inputs"],
    ["_kernels"],
    ["datasets", "function_classes", "lenses"],
    ["metrics"],
    ["hypothesis_tests", "recalibration", "uncertainty"],
    ["display", "report"],
    ["_cli"],
    ["__main__"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def package_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports_of(path):
    """Absolute names of the modules that a file imports."""
    package = ["skcalib", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path):
    own = package_of(path)
    for imported in internal_imports(path):
        assert imported == own or LEVEL[imported] < LEVEL[own], f"{own} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_private_names_of_scikit_learn_enter_through_one_file(path):
    if package_of(path) == "_sklearn":
        return
    for module, names in imports_of(path):
        if module.startswith("sklearn"):
            parts = module.split(".") + names
            assert not any(part.startswith("_") for part in parts), f"{module}: {names}"


@pytest.mark.parametrize("path", sorted((ROOT / "_numerics").rglob("*.py")), ids=lambda p: p.name)
def test_numerics_judge_nothing(path):
    assert not any(module.startswith("sklearn") for module, _ in imports_of(path))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not any(isinstance(node, ast.Raise) for node in ast.walk(tree))


@pytest.mark.parametrize("path", sorted((ROOT / "_inputs").rglob("*.py")), ids=lambda p: p.name)
def test_inputs_know_no_model(path):
    used = {module for module, _ in imports_of(path) if module.startswith("sklearn")}
    assert all(module.startswith(("sklearn.utils", "sklearn.exceptions")) for module in used)


def test_every_module_has_a_layer():
    assert {package_of(path) for path in MODULES} == set(LEVEL)


HEAVY = {"matplotlib", "cvxpy", "torch", "pandas", "polars"}


def test_imports_are_light():
    # scikit-learn itself imports pandas if it is installed
    names = ["skcalib", *(f"skcalib.{name}" for name in LEVEL)]
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
