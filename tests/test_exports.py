"""A name is public where it is defined, and packages offer what they import (weft/exports.py)."""

import ast
import importlib
from types import ModuleType

import pytest

from tools.imports import modules
from tools.package_stubs import gathers, public_imports, rendered

PACKAGES = sorted(name for name, tree in modules().items() if gathers(tree))


def offered(package: ModuleType, tree: ast.Module) -> dict[str, set[str]]:
    """Each name that a type checker sees in a package, with the modules that it comes from."""
    sources: dict[str, set[str]] = {}
    for (module, name, called), _ in public_imports(package, tree):
        listed = importlib.import_module(module).__all__ if name == "*" else [called]
        for each in listed:
            sources.setdefault(each, set()).add(f"{module}.{name}" if name != each else module)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0])[0] != "_":
            sources.setdefault(ast.unparse(node.targets[0]), set())
    return sources


def faults(package: ModuleType, tree: ast.Module) -> list[str]:
    seen = offered(package, tree)
    seen.update({name: set() for name in vars(package).get("__lazy__", ())})
    hidden = [
        f"{name} is not seen by type checkers" for name in package.__all__ if name not in seen
    ]
    lazy = vars(package).get("__lazy__", {})
    more = [f"{n} is not in __all__" for n in seen if n not in package.__all__ and n not in lazy]
    twice = [f"{n} comes from {sorted(s)}" for n, s in seen.items() if len(s) > 1]
    return hidden + more + twice


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_offers_what_it_imports_and_each_name_once(name):
    assert faults(importlib.import_module(name), modules()[name]) == []


def test_the_faults_are_found():
    package = ModuleType("p")
    package.__all__ = ["relu", "sqrt", "hidden"]
    text = "from weft.nn.functional import relu as relu\nfrom math import sqrt as sqrt"
    text += "\nfrom weft import sqrt as sqrt\nextra = sqrt"
    assert faults(package, ast.parse(text)) == [
        "hidden is not seen by type checkers",
        "extra is not in __all__",
        "sqrt comes from ['math', 'weft']",
    ]


# Their owners list what they import by hand until they gather it.
BY_HAND = (
    "weft.horovod",
    "weft.metrics",
    "weft.nn",
    "weft.optim",
    "weft.tf1.keras",
    "weft.tf1.layers",
)


def repeats(name: str, tree: ast.Module) -> bool:
    """Whether a module lists by hand what it imports, which is more than one name.

    Its own submodules do not count: `gather` must be told which are public, too.
    """
    listed = [
        n.value for n in tree.body if isinstance(n, ast.Assign) and "__all__" in ast.unparse(n)
    ]
    imports = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module != name]
    names = {alias.asname or alias.name for n in imports for alias in n.names} - {"annotations"}
    return len(names) > 1 and names == {*ast.literal_eval(listed[0])} if listed else False


def test_no_package_lists_by_hand_what_it_imports():
    others = {n: tree for n, tree in modules().items() if not n.startswith(BY_HAND)}
    assert [name for name, tree in others.items() if repeats(name, tree)] == []
    assert repeats("c", ast.parse("from a import b\nfrom c.d import e as f\n__all__ = ['b', 'f']"))


def test_the_stubs_are_current():
    for path, text in rendered().items():
        assert path.read_text() == text, "run python -m tools.package_stubs"
