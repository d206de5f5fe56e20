"""Imports point downwards and in no circle, and importing skcalib loads nothing heavy.

`pytest -n 0 -s tests/test_layers.py -k drawing` prints the rooms: on which floor each stands, what
it imports, and which share of the test functions a change in it can reach.
"""

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

TESTS = Path(__file__).parent
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


def statements_in(block):
    """All statements, those within others, too; expressions, which are many, are left out."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(block, field, []):
            yield node
            yield from statements_in(node)


def _imports_of(path):
    package = path.relative_to(ROOT.parent if path.is_relative_to(ROOT) else TESTS).parent.parts
    for node in statements_in(tree_of(path)):
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


@cache
def file_of(name):
    """The file of a module, of the package or of its tests, or None."""
    path = Path(*name.split("."))
    places = (path.with_suffix(".py"), path / "__init__.py")
    found = (root / place for root in (ROOT.parent, TESTS) for place in places)
    return next((file for file in found if file.is_file()), None)


@cache
def files_behind(module, name):
    """The files that `from module import name` leads to; the face of a package leads to others."""
    file = file_of(f"{module}.{name}") or file_of(module)
    if file is None or file.stem != "__init__":
        return {file} - {None}
    for other, names in imports_of(file):
        if name in names and other != module:
            return files_behind(other, name)
    return {file}


@cache
def imported_files(path):
    """The files of the names that a file imports, within functions, too."""
    pairs = [(module, name) for module, names in imports_of(path) for name in names]
    return set().union(*(files_behind(*pair) for pair in pairs)) - {path}


def test_no_files_import_each_other_in_a_circle():
    # an import within a function counts, too: it hides a circle, and does not cut it
    graph = {}
    for path in FILES:
        pairs = [(module, name) for module, names in imports_of(path) for name in names]
        graph[path] = {file_of(".".join(pair)) or file_of(pair[0]) for pair in pairs} - {path, None}
    TopologicalSorter(graph).prepare()


@cache
def all_imported_files(path):
    """The file, those that it imports, those that these import, and so on."""
    return {path}.union(*map(all_imported_files, imported_files(path)))


def room_of(path):
    return package_of(path) if path.is_relative_to(ROOT) else "tests"


@cache
def arrows():
    """The rooms that each room imports."""
    rooms = {name: set() for name in LEVEL}
    for path in MODULES:
        rooms[room_of(path)] |= {*internal_imports(path)} - {room_of(path)}
    return rooms


def share_of_tests_reached():
    """For each room, the share of the test functions whose imports lead to a file of it.

    It is that of the median file.
    """
    reached, total = dict.fromkeys(FILES, 0), 0
    for path in TESTS.rglob("test_*.py"):
        n_tests = len(re.findall("^def test_", path.read_text(encoding="utf-8"), re.MULTILINE))
        total += n_tests
        for file in all_imported_files(path) & reached.keys():
            reached[file] += n_tests
    rooms = {name: [reached[p] / total for p in MODULES if room_of(p) == name] for name in LEVEL}
    return {name: sorted(shares)[len(shares) // 2] for name, shares in rooms.items()}


# every file is read, and those of the tests: 1 s
def test_a_change_reaches_few_tests_and_the_drawing_of_the_rooms():
    shares, floor = share_of_tests_reached(), {}
    for room in TopologicalSorter(arrows()).static_order():
        floor[room] = 1 + max((floor[below] for below in arrows()[room]), default=0)
    for room in sorted(floor, key=floor.get):
        below = ", ".join(sorted(arrows()[room], key=floor.get)) or "nothing"
        print(f"{floor[room]:3} {room:17} {shares[room]:4.0%} of tests; imports {below}")
    n_arrows = sum(map(len, arrows().values()))
    n_floors = max(floor.values())
    print(f"{len(floor)} rooms on {n_floors} floors; {n_arrows} arrows, none up or in a circle")
    limits = dict.fromkeys(["streaming", "losses", "display", "report"], 0.17)
    for room, limit in (limits | {"recalibration": 0.4}).items():
        assert shares[room] <= limit, room


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
        if path in (SCIKIT_LEARN, SCIKIT_LEARN.with_name("annotations.py")):
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


# Functions and attributes that change state which all threads of a process share.
SHARED = (
    "catch_warnings simplefilter filterwarnings resetwarnings showwarning rc_context rc style "
    "environ putenv chdir umask dup2 seterr set_printoptions setlocale setrecursionlimit set_state "
    "set_config set_num_threads manual_seed set_default_dtype"
)
ALLOWED = {
    "_cli/command_line.py": {"catch_warnings", "showwarning", "dup2"},  # no other threads
    "metrics/_weighted.py": {"dup2"},  # once in a process, and locked
}


def test_no_thread_changes_the_process_of_the_others():
    for path in MODULES:
        names = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
        names |= {name for _, imported in imports_of(path) for name in imported}
        used = names & {*SHARED.split()}
        assert used == ALLOWED.get(path.relative_to(ROOT).as_posix(), set()), path


# Rooms of one file, in which a name without an underscore is for users.
PUBLIC_FILES = {"decisions", "function_classes", "lenses", "torch"}


def test_underscored_names_stay_in_their_room():
    for path in MODULES:
        for module, names in imports_of(path):
            room = [*module.split("."), ""][1] if module.startswith("skcalib.") else ""
            if room and room not in {package_of(path), *PUBLIC_FILES}:
                private = [name for name in names if re.match("_[^_]", name)]
                assert not private, f"{path} imports {private} of {module}"
