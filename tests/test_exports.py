"""A name is public where it is defined, and packages offer what they import (weft/exports.py)."""

import ast
import importlib
import math
from types import ModuleType
from typing import Any

import pytest

from tools.imports import modules, texts
from tools.package_stubs import assigned, gathers, public_imports, rendered
from weft import exports

# By the text: collecting the tests need not parse all of Weft
PACKAGES = sorted(name for name, text in texts().items() if "\n_exports.gather(" in text)
WHOLE = sorted(name for name, text in texts().items() if "\n_exports.lazy_whole(" in text)


def offered(package: ModuleType, tree: ast.Module) -> dict[str, set[str]]:
    """Each name that a type checker sees in a package, with the modules that it comes from."""
    sources: dict[str, set[str]] = {}
    for (module, name, called), _ in public_imports(package, tree):
        for each in importlib.import_module(module).__all__ if name == "*" else [called]:
            sources.setdefault(each, set()).add(module)
    names = [name for node in tree.body for name in assigned(node) if name[0] != "_"]
    return {**{name: set() for name in names}, **sources}


def faults(package: ModuleType, tree: ast.Module) -> list[str]:
    seen = offered(package, tree)
    lazy = vars(package).get("__lazy__", {})
    hidden = {*package.__all__} - {*seen, *lazy}
    more = {*seen} - {*package.__all__, *lazy}
    return [
        *[f"{name} is not seen by type checkers" for name in hidden],
        *[f"{name} is not in __all__" for name in more],
        *[f"{name} comes from {sorted(s)}" for name, s in seen.items() if len(s) > 1],
    ]


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


def repeats(name: str, tree: ast.Module) -> bool:
    """Whether a module lists by hand what it imports, which is more than one name.

    Its own submodules do not count: `gather` must be told which are public, too.
    """
    lists = [node.value for node in tree.body if "__all__" in assigned(node)]
    listed = {
        text.value for each in lists for text in ast.walk(each) if isinstance(text, ast.Constant)
    }
    imports = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module != name]
    names = {alias.asname or alias.name for n in imports for alias in n.names} - {"annotations"}
    return len(names) > 1 and names == listed


def test_no_package_lists_by_hand_what_it_imports():
    assert [name for name, tree in modules().items() if repeats(name, tree)] == []
    assert repeats("c", ast.parse("from a import b\nfrom c.d import e as f\n__all__ = ['b', 'f']"))


def test_the_stubs_are_current():
    assert {name for name, tree in modules().items() if gathers(tree)} == {*PACKAGES, *WHOLE}
    for path, text in rendered().items():
        assert path.read_text() == text, "run python -m tools.package_stubs"


def test_what_is_loaded_on_first_use_is_asked_for_once():
    asked: list[str] = []
    package: Any = ModuleType("package")
    package.__all__ = []
    exports.lazy(vars(package), {"math": ["tau"]}, lambda name: asked.append(name) or name.upper())
    assert (package.sin, package.sin, package.tau) == ("SIN", "SIN", math.tau)
    assert asked == ["sin"]
