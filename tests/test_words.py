"""Names are the field's words: the glossary of CONTRIBUTING.md, held by walking the AST."""

import ast
import importlib
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import skcalib

ROOT = Path(skcalib.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Words that the glossary replaces; no function, class, method or constant is called so.
RETIRED = {
    "announce", "asked", "back", "become", "check_either", "check_told_apart", "counted", "forget",
    "formulas_of", "forth", "given_of", "in_place", "is_hopeless", "judge", "judged", "layered_of",
    "learned", "let", "mistake", "most_cautious", "near_points", "nothing", "of_each",
    "of_redrawn", "of_taken", "redraw", "resolved_bandwidth", "share_of_one",
    "share_of_one_sample", "signed_mass", "stays", "told", "told_apart",
}  # fmt: skip

# A limit is MAX_ or MIN_, a tolerance _RTOL or _ATOL.
SUPERLATIVES = re.compile(
    r"_?(MOST|LARGEST|SMALLEST|LEAST|FEWEST|FARTHEST|LONGEST|MANY|FEW|ENOUGH|OFTEN|TINY|NONE|LOST"
    r"|FLAT|ROUNDING)(_|$)"
)

# A local name says what it holds.
VAGUE = {
    "about", "chosen", "drawn", "found", "how", "item", "kept", "known", "learned", "more",
    "moved", "obj", "one", "others", "own", "part", "parts", "place", "places", "rest", "seen",
    "shown", "some", "tmp", "told", "what",
}  # fmt: skip

# Verbs in -ed that are adjectives of the field, and verbs or nouns that only look like participles.
ADJECTIVES = {
    "biased", "bounded", "cached", "censored", "exceed", "feed", "fixed", "need", "nested",
    "normalized", "paired", "seed", "signed", "speed", "squared", "standardized", "truncated",
    "weighted",
}  # fmt: skip
PARTICIPLES = {
    "bound", "chosen", "cut", "drawn", "found", "given", "held", "hidden", "kept", "known", "left",
    "lost", "made", "met", "put", "seen", "shown", "spread", "taken", "told", "written",
}  # fmt: skip
PREPOSITIONS = {
    "about", "above", "after", "against", "alone", "among", "around", "at", "before", "below",
    "beside", "between", "beyond", "by", "for", "in", "like", "near", "of", "on", "out", "over",
    "per", "under", "up", "within", "without",
}  # fmt: skip


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes_of(kind):
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, kind):
                yield path.relative_to(ROOT), node


def module_names(path):
    """The functions, classes and constants that a module defines at its top level."""
    for node in tree_of(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def first_word(name):
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().strip("_").split("_")[0]


def test_no_retired_word_is_a_name():
    used = [
        f"{path}:{node.lineno} {node.name}"
        for path, node in nodes_of((ast.FunctionDef, ast.ClassDef))
        if node.name.strip("_") in RETIRED
    ]
    assert used == []


def test_constants_are_no_superlatives():
    used = [
        f"{path.relative_to(ROOT)} {name}"
        for path in FILES
        for name in module_names(path)
        if name.isupper() and SUPERLATIVES.match(name)
    ]
    assert used == []


def names_stored_in(function):
    """The names that a function assigns to, also in its loops and comprehensions."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node


def test_local_names_say_what_they_hold():
    used = [
        f"{path}:{name.lineno} {name.id}"
        for path, function in nodes_of(ast.FunctionDef)
        for name in names_stored_in(function)
        if name.id in VAGUE
    ]
    assert used == []


@cache
def public_names():
    """What users see: exported names, and the methods of exported classes."""
    names = set()
    for package in ROOT.iterdir():
        module = f"skcalib.{package.stem}" if not package.stem.startswith("_") else "skcalib"
        if package.suffix in ("", ".py") and package.stem not in ("torch", "__pycache__"):
            for name in getattr(importlib.import_module(module), "__all__", []):
                members = vars(getattr(importlib.import_module(module), name, None) or object)
                names |= {name, *(member for member in members if not member.startswith("_"))}
    return names


def test_functions_begin_with_a_verb_or_are_the_noun_that_they_return():
    def is_odd(name):
        word = first_word(name)
        is_participle = word in PARTICIPLES or (word.endswith("ed") and word not in ADJECTIVES)
        return is_participle or word in PREPOSITIONS

    used = [
        f"{path}:{node.lineno} {node.name}"
        for path, node in nodes_of(ast.FunctionDef)
        if is_odd(node.name) and node.name.lstrip("_") not in public_names()
    ]
    assert used == []


def test_a_name_is_defined_in_one_file():
    files = defaultdict(set)
    for path in FILES:
        for name in module_names(path):
            if not name.startswith("__") and name != "_":  # of singledispatch
                files[name].add(str(path.relative_to(ROOT)))
    assert {name: sorted(paths) for name, paths in files.items() if len(paths) > 1} == {}


# Parameters of the package that are annotated `Any`, at most; none of them is called data.
MAX_ANY = 517


def test_parameters_have_types():
    untyped = [
        node.arg
        for _, node in nodes_of(ast.arg)
        if node.annotation is not None and ast.unparse(node.annotation) == "Any"
    ]
    assert len(untyped) <= MAX_ANY
    assert "data" not in untyped
