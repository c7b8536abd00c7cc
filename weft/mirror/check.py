"""`weft run --check`: names of other libraries that a program uses and Weft lacks, by its text."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weft.errors import ConfigError
from weft.mirror import table
from weft.mirror.uses import Use, uses


@dataclass(frozen=True)
class Source:
    """A file of Python.

    Attributes:
        path: where it is.
        root: the folder that its imports begin at.
    """

    path: Path
    root: Path

    def tree(self) -> ast.Module:
        """Its syntax.

        Raises:
            ConfigError: it is not Python.
        """
        try:
            return ast.parse(self.path.read_bytes(), str(self.path))
        except (SyntaxError, ValueError) as error:
            raise ConfigError(f"run: expected Python, got {self.path}: {error}") from None


def report(scripts: Sequence[str], packages: Sequence[str], is_module: bool, out: IO[str]) -> int:
    """Write the names that programs use and Weft lacks, a line each, and how many there are.

    Args:
        scripts: programs; modules beside them that they import are read, too.
        packages: installed packages that are read, too.
        is_module: whether the first program is a module's name.
        out: where to.

    Returns:
        The exit status: 1 if there are any, or if a file is not Python, which is told.

    Raises:
        ConfigError: there is no such program or package.
    """
    sources = [_script(s, is_module and i == 0) for i, s in enumerate(scripts)]
    sources += [source for name in packages for source in _package(name)]
    found: list[tuple[Path, Use]] = []
    refused: list[ConfigError] = []
    seen = files = 0
    for source, tree in _walked(sources, refused.append):
        used = uses(tree)
        seen, files = seen + len(used), files + 1
        found += [(source.path, use) for use in used if use.missing]
    for error in refused:
        out.write(f"{error}\n")
    for path, use in found:
        out.write(f"{path}:{use.line}: {use.missing}\n")
    names = len({use.missing for _, use in found})
    what = "name that Weft lacks" if names == 1 else "names that Weft lacks"
    out.write(f"{names} {what}, of {seen} uses in {files} files\n")
    return 1 if found or refused else 0


def files_of(script: str, is_module: bool) -> Iterator[ast.Module]:
    """The syntax of a program, and of the modules beside it that it imports.

    Raises:
        ConfigError: there is no such program, or it is not Python.
    """
    for _, tree in _walked([_script(script, is_module)]):
        yield tree


def _walked(
    pending: list[Source], refused: Callable[[ConfigError], object] | None = None
) -> Iterator[tuple[Source, ast.Module]]:
    """Files, and those beside them that they import, each once.

    Args:
        refused: is told of files that are not Python; they raise if it is `None`.
    """
    done: set[Path] = set()
    while pending:
        source = pending.pop(0)
        if source.path not in done:
            done.add(source.path)
            try:
                tree = source.tree()
            except ConfigError as error:
                if refused is None:
                    raise
                refused(error)
                continue
            pending += [local for local in _locals(tree, source) if local.path not in done]
            yield source, tree


def _script(script: str, is_module: bool) -> Source:
    if is_module:
        spec = importlib.util.find_spec(script)
        origin = None if spec is None else spec.origin
        if origin is None:
            raise ConfigError(f"run: expected a module that can be run, got {script!r}")
        return Source(Path(origin), Path.cwd())
    path = Path(script)
    if not path.is_file():
        raise ConfigError(f"run: expected a Python program, got {script!r}: there is no such file")
    return Source(path, path.resolve().parent)


def _package(name: str) -> Iterator[Source]:
    """The files of an installed package."""
    spec = None if name in table.LIBRARIES else importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ConfigError(f"run: expected an installed package, got {name!r}: it is not installed")
    if spec.submodule_search_locations is None:
        yield Source(Path(spec.origin), Path(spec.origin).parent)
    for folder in spec.submodule_search_locations or ():
        for path in sorted(Path(folder).rglob("*.py")):
            yield Source(path, Path(folder).parent)


def _locals(tree: ast.Module, source: Source) -> Iterator[Source]:
    """The files beside a program that it imports."""
    for node in ast.walk(tree):
        names: list[str] = []
        root = source.root
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                root = source.path.resolve().parents[node.level - 1]
            names = [module, *[f"{module}.{alias.name}".strip(".") for alias in node.names]]
        for name in names:
            parts = name.split(".")
            for n in range(1, len(parts) + 1):
                base = root.joinpath(*parts[:n])
                for path in (base.with_suffix(".py"), base / "__init__.py"):
                    if parts != [""] and path.is_file() and not _is_installed(path):
                        yield Source(path, source.root)


def _is_installed(path: Path) -> bool:
    """Whether a file lies in a folder of installed packages, in Python's own, or in Weft."""
    places = [Path(p).resolve() for p in (sys.prefix, sys.base_prefix, Path(__file__).parents[1])]
    return any(path.resolve().is_relative_to(place) for place in places)
