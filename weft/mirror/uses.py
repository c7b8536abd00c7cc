"""What a program uses of other libraries, by its text: only what is certain."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from weft.eager.functions.out_argument import FIRST, RENAMED
from weft.mirror import table
from weft.mirror.mirror import found, has

_MAKERS: Final = frozenset(
    ("arange", "as_tensor", "cat", "empty", "eye", "from_numpy", "full", "linspace", "ones",
     "ones_like", "rand", "randint", "randn", "randperm", "stack", "tensor", "zeros", "zeros_like"),
)  # fmt: skip
"""Functions at the top of `torch` that return a tensor, whatever their arguments."""
_GUARDS: Final = frozenset(("AttributeError", "BaseException", "Exception", "ImportError",
                            "ModuleNotFoundError"))  # fmt: skip
"""Exceptions whose handlers answer for a name that is absent."""


@dataclass(frozen=True)
class Use:
    """A use of a name.

    Attributes:
        line: where.
        missing: what Weft lacks, and what to write; empty if it has the name.
    """

    line: int
    missing: str


def uses(tree: ast.Module) -> list[Use]:
    """The uses of other libraries' names in a file, by line.

    >>> [use.missing for use in uses(ast.parse("import torch\\ntorch.ones(2).foo()"))]
    ['', 'torch.Tensor.foo: Weft has none']
    """
    reader = _Reader(_names(tree))
    reader.visit(tree)
    return sorted(set(reader.uses), key=lambda use: use.line)


def dotted_names(tree: ast.Module) -> Iterator[str]:
    """Other libraries' names that a file imports, and the longest that it writes out."""
    names = _names(tree)
    yield from names.values()
    inner: set[ast.expr] = set()
    for node in ast.walk(tree):  # an attribute comes before what it is of
        if isinstance(node, ast.Attribute):
            inner.add(node.value)
            path = "" if node in inner else _path(node, names)
            if path:
                yield path


def _path(node: ast.expr, names: dict[str, str]) -> str:
    """The dotted name of an attribute chain; empty if it is none of another library."""
    match node:
        case ast.Name(name):
            return names.get(name, "")
        case ast.Attribute(value, name):
            owner = _path(value, names)
            return f"{owner}.{name}" if owner else ""
        case _:
            return ""


def _names(tree: ast.Module) -> dict[str, str]:
    """The file's names for other libraries' modules and names; those that are bound once."""
    named: dict[str, set[str]] = {}
    for name, path in _bindings(tree):
        named.setdefault(name, set()).add(path)
    return {
        name: path for name, paths in named.items() for path in paths if len(paths) == 1 if path
    }


def _bindings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each binding of a name in a file: what is imported, an empty text for anything else."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(aliases):
                for alias in aliases:
                    root = alias.name.partition(".")[0]
                    path = alias.name if alias.asname else root
                    yield alias.asname or root, path if root in table.LIBRARIES else ""
            case ast.ImportFrom(module, aliases, level):
                ours = not level and str(module).partition(".")[0] in table.LIBRARIES
                for alias in aliases:
                    yield alias.asname or alias.name, f"{module}.{alias.name}" if ours else ""
            case ast.Name(name, ast.Store() | ast.Del()) | ast.arg(name):
                yield name, ""
            case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name):
                yield name, ""
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name, ""
            case _:
                pass


class _Reader(ast.NodeVisitor):
    """Collects uses; leaves out what a program does only where a name or a device is there."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.uses: list[Use] = []
        self.tensors: set[str] = set()  # of the function that is read

    def visit_Import(self, node: ast.Import) -> None:
        """Checks modules."""
        for alias in node.names:
            if alias.name.partition(".")[0] in table.LIBRARIES:
                self._add(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Checks names, or the module if it is absent."""
        module = node.module or ""
        if node.level or module.partition(".")[0] not in table.LIBRARIES:
            return
        if module not in table.modules():
            self._add(node, module)
            return
        for alias in node.names:
            if alias.name != "*":
                self._add(node, f"{module}.{alias.name}")

    def visit_Try(self, node: ast.Try) -> None:
        """Leaves out what a handler answers for."""
        caught = {_name(e) for h in node.handlers for e in _kinds(h.type)}
        parts = [*node.orelse, *node.finalbody] if caught & _GUARDS else [node]
        if parts == [node]:
            self.generic_visit(node)
        for part in (*parts, *node.handlers) if parts != [node] else ():
            self.visit(part)

    def visit_If(self, node: ast.If) -> None:
        """Leaves out what needs a device that is absent, or a name that the program asks for."""
        self._choice(node, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The same for `this if condition else that`."""
        self._choice(node, [node.orelse])

    def _choice(self, node: ast.If | ast.IfExp, otherwise: Sequence[ast.AST]) -> None:
        if not _is_question(node.test):
            self.generic_visit(node)
            return
        self.visit(node.test)
        for part in otherwise:
            self.visit(part)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Knows the tensors of a function: names bound once, to what returns a tensor."""
        outer, self.tensors = self.tensors, self._tensors(node)
        self.generic_visit(node)
        self.tensors = outer

    def visit_Module(self, node: ast.Module) -> None:
        """The same for the file."""
        self.tensors = self._tensors(node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Checks an attribute chain, or a tensor's method."""
        path = _path(node, self.names)
        if path:
            self._add(node, path)
            return
        if self._is_tensor(node.value) and not hasattr(found("torch.Tensor"), node.attr):
            self.uses.append(Use(node.lineno, table.missing(f"torch.Tensor.{node.attr}")))
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Names were checked where they are imported."""

    def visit_Call(self, node: ast.Call) -> None:
        """Checks the names of arguments, too."""
        path = _path(node.func, self.names)
        if path and path not in table.modules() and has(path):
            self._arguments(node, path)
        self.generic_visit(node)

    def _arguments(self, node: ast.Call, path: str) -> None:
        function = found(path)
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            return
        known = {p.name for p in parameters}
        if hasattr(function, "__wrapped__"):  # see `with_outlet`
            known |= {*FIRST, "out", *[other for other, name in RENAMED if name in known]}
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in known:
                text = f"{path}({keyword.arg}=): Weft has no such argument"
                self.uses.append(Use(keyword.value.lineno, text))

    def _add(self, node: ast.stmt | ast.expr, path: str) -> None:
        self.uses.append(Use(node.lineno, _missing(path)))

    def _tensors(self, scope: ast.FunctionDef | ast.Module) -> set[str]:
        """Names that a function or file binds once, to what returns a tensor."""
        bound: dict[str, list[ast.expr | None]] = {}
        for node in _own_nodes(scope):
            match node:
                case ast.Assign([ast.Name(name)], value):
                    bound.setdefault(name, []).append(value)
                case ast.Name(name, ast.Store()):
                    bound.setdefault(name, []).append(None)
                case _:
                    pass
        # An assignment is seen twice: with its value, and as the name that it stores
        return {n for n, values in bound.items() if len(values) == 2 and self._makes(values[0])}

    def _makes(self, node: ast.expr | None) -> bool:
        """Whether an expression is a call that returns a tensor."""
        if not isinstance(node, ast.Call):
            return False
        owner, _, name = _path(node.func, self.names).rpartition(".")
        return owner == "torch" and name in _MAKERS

    def _is_tensor(self, node: ast.expr) -> bool:
        return self._makes(node) or (isinstance(node, ast.Name) and node.id in self.tensors)


def _own_nodes(scope: ast.FunctionDef | ast.Module) -> Iterator[ast.AST]:
    """The nodes of a function or file, parents first, without those of functions inside."""
    pending: list[ast.AST] = list(scope.body)
    while pending:
        node = pending.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending += ast.iter_child_nodes(node)


def _missing(path: str) -> str:
    """What Weft lacks of a dotted name: the first part that it has not; empty if it has all."""
    parts = path.split(".")
    for n in range(1, len(parts) + 1):
        part = ".".join(parts[:n])
        if part in table.modules():
            continue
        if not has(part):
            known = vars(ModuleType(part))  # `__name__` and its like: each module has them
            return "" if parts[n - 1] in {*known, "__file__", "__path__"} else table.missing(part)
        value: Any = found(part)
        rest = parts[n:]
        if rest and isinstance(value, type) and not hasattr(value, rest[0]):
            return table.missing(f"{part}.{rest[0]}")
        return ""
    return ""


def _kinds(node: ast.expr | None) -> list[ast.expr | None]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _name(node: ast.expr | None) -> str:
    """The name of a kind of exceptions; a bare `except` catches all."""
    if node is None:
        return "BaseException"
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_question(test: ast.expr) -> bool:
    """Whether a condition asks for a device or a name, alone or with others."""
    match test:
        case ast.Call(ast.Attribute(attr="is_available")) | ast.Call(ast.Name("hasattr")):
            return True
        case ast.BoolOp(ast.And(), values):
            return any(_is_question(value) for value in values)
        case _:
            return False
