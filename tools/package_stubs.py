"""`python -m tools.package_stubs`: writes the stubs of packages that type checkers cannot follow.

Those have names that are imported on first use (`exports.lazy`), or a list of imports without `as`,
which type checkers take for private. A stub holds imports alone, so that editors find signatures
and docstrings where names are defined; a test compares it.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from tools.imports import modules
from tools.stubs import write
from weft import Tensor

MADE: Final = ("weft.jax.lax.api", "weft.jax.numpy.api")
"""Packages with names that no statement defines."""
HEAD: Final = '"""Made by `python -m tools.package_stubs`."""\n\n'


class Import(NamedTuple):
    """`from module import name as called`."""

    module: str
    name: str
    called: str


def rendered() -> dict[Path, str]:
    """The text of each stub, by its path."""
    stubs: dict[Path, str] = {}
    for name, tree in modules().items():
        if gathers(tree):
            package = importlib.import_module(name)
            text = _stub(package, tree)
            if text:
                stubs[Path(str(package.__file__)).with_suffix(".pyi")] = HEAD + text
    return stubs


def gathers(tree: ast.Module) -> bool:
    """Whether a module's names are those that it imports, or those of one other module."""
    calls = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Expr)]
    return any(call.startswith(("_exports.gather(", "_exports.lazy_whole(")) for call in calls)


def public_imports(package: ModuleType, tree: ast.Module) -> Iterator[tuple[Import, bool]]:
    """Imports of public names, each with whether type checkers see that it is public."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                called = alias.asname or alias.name
                if called == "*" or called in package.__all__:
                    seen = called == "*" or alias.asname == alias.name
                    yield Import(node.module, alias.name, called), seen


def assigned(node: ast.stmt) -> list[str]:
    """The names that a statement gives values to."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [name.id for t in targets for name in ast.walk(t) if isinstance(name, ast.Name)]


def _stub(package: ModuleType, tree: ast.Module) -> str:
    """The text of a package's stub; none where its source says the same."""
    whole = vars(package).get("__whole__")
    if whole:
        return f"from {whole} import *\n"
    imports = [*public_imports(package, tree)]
    lazy: dict[str, str] = vars(package).get("__lazy__", {})
    made = _made(package, tree) if package.__name__ in MADE else []
    if not lazy and not made and all(seen for _, seen in imports):
        return ""
    text = "".join([_text(row) for row, _ in imports])
    text += "".join([_text(Import(module, name, name)) for name, module in lazy.items()])
    for node in () if made else tree.body:
        if any(name in package.__all__ for name in assigned(node)):
            text += ast.unparse(node) + "\n"
    if made:
        text = "from typing import Any\n" + text + "".join([f"{name}: Any\n" for name in made])
    return _eager_names() + text if package.__name__ == "weft" else text


def _made(package: ModuleType, tree: ast.Module) -> list[str]:
    """Public names that no statement defines: tables give them to functions of other packages."""
    sources, told = modules(), {row.called for row, _ in public_imports(package, tree)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.names[0].name == "*":
            body = sources[node.module].body
            lists = [each for each in body if "__all__" in ast.unparse(each)]
            if len(lists) == 1 and _is_plain(lists[0]):
                offered = importlib.import_module(node.module).__all__
                told |= {name for each in body for name in _told(each)}.intersection(offered)
    return [name for name in sorted(dir(package)) if name[0] != "_" and name not in told]


def _is_plain(node: ast.stmt) -> bool:
    """Whether a statement gives a name a list of texts."""
    value = node.value if isinstance(node, ast.Assign) else None
    return isinstance(value, ast.List) and all(isinstance(x, ast.Constant) for x in value.elts)


def _told(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return assigned(node)


def _text(row: Import) -> str:
    module, name, called = row
    if name == "*":
        return f"from {module} import *\n"
    if name == called:
        return f"from {module} import {name} as {name}\n"
    # An import under another name would be private.
    return f"from {module} import {name} as _{called}\n{called} = _{called}\n"


def _eager_names() -> str:
    """The functions of tensors, which `weft` loads by a rule."""
    in_place = [name for name in dir(Tensor) if name.endswith("_") and name[0] != "_"]
    lines = [f"{name} = Tensor.{name}\n" for name in in_place]
    return "from weft.eager.functions.api import *\n" + "".join(lines)


if __name__ == "__main__":
    write(rendered())
