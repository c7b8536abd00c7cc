"""The imports of Weft's modules, read from their source."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from weft.host.garbage_collection import uncollected

ROOT: Final = Path(__file__).resolve().parent.parent


@functools.cache
def texts() -> dict[str, str]:
    """The source of each module."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "weft").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text()
    return found


@functools.cache
@uncollected
def modules() -> dict[str, ast.Module]:
    """The syntax tree of each module, out of the way of later garbage collections."""
    gc.collect()
    trees = {name: ast.parse(text) for name, text in texts().items()}
    gc.freeze()
    return trees


def imports(tree: ast.AST, function: str = "") -> Iterator[tuple[str, str]]:
    """Imports, each with the function that contains it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from [(alias.name, function) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from [(f"{node.module}.{alias.name}", function) for alias in node.names]
            yield node.module, function
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(node, node.name)
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from imports(node, function)


@functools.cache
def imported(tree: ast.Module) -> tuple[str, ...]:
    """The modules that a module imports, and the modules of imported names."""
    return tuple([name for name, _ in imports(tree)])
