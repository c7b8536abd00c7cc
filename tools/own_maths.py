"""`python -m tools.own_maths` lists functions of front ends that contain formulas.

Formulas belong in `weft/ops`, on graph values, where every front end finds them. A function counts
if its body has three steps or more: arithmetic operators on anything but plain numbers, and calls
named like operations that compute.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from weft import ops
from weft.host.garbage_collection import uncollected
from weft.ops.declaration import REGISTRY, Alias, Pull

ROOT: Final = Path(ops.__file__).parents[2]
FRONT_ENDS: Final = (
    "weft/eager/functions", "weft/nn", "weft/numpy", "weft/scipy", "weft/signal", "weft/func",
    "weft/fft.py", "weft/linalg.py", "weft/sparse.py", "weft/special.py", "weft/tf1",
    "weft/metrics", "weft/models", "weft/jax",
)  # fmt: skip
LEAST: Final = 3
ARITHMETIC: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult)
# Moving, converting or selecting elements is not a formula
MOVING: Final = frozenset({
    "cast", "check", "complex", "identity", "imag", "masked_fill", "real", "select",
    "stop_gradient",
})  # fmt: skip
COMPUTING: Final = frozenset(
    {n for n, op in REGISTRY.items() if not isinstance(op.lower, Alias | Pull)} - MOVING
)
# Functions that return plain numbers, such as sizes
PLAIN_CALLS: Final = frozenset({
    "axes_of", "axis_of", "bool", "concrete", "dims_of", "float", "getattr", "int", "integer",
    "isinstance", "known", "len", "normal_axis", "range", "rank_of", "sizes", "str",
})  # fmt: skip
PLAIN_IF_ARGUMENTS: Final = frozenset({
    "abs", "dict", "enumerate", "iter", "list", "max", "min", "next", "reversed", "round", "set",
    "sorted", "sum", "tuple", "zip",
})  # fmt: skip
PLAIN_ATTRIBUTES: Final = frozenset({"ndim", "ndims", "rank", "shape", "size"})
PLAIN_METHODS: Final = frozenset({"as_list", "bit_length", "get", "item", "numpy"})
PLAIN_TYPES: Final = (
    "Array", "Axes", "DType", "None", "Sequence[float", "Sequence[int", "Shape", "bool", "complex",
    "float", "int", "str", "tuple[float", "tuple[int",
)  # fmt: skip


class _Body:
    """One function: which of its names are plain numbers, and how many steps it computes."""

    def __init__(self, function: ast.FunctionDef, constants: set[str]) -> None:
        self.plain = set(constants)
        nodes = list(ast.walk(function))
        inner = [n for n in nodes if isinstance(n, ast.FunctionDef)]
        for arguments in [n.args for n in inner]:
            for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if a.annotation is not None and _is_plain_type(a.annotation):
                    self.plain.add(a.arg)
        for _ in range(3):  # names of names of names
            known = len(self.plain)
            self._learn(nodes)
            if len(self.plain) == known:
                break

    def _learn(self, nodes: list[ast.AST]) -> None:
        found: dict[str, list[bool]] = {}
        for node in nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._bind(target, value, found)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._bind(target, value, found)
                case (
                    ast.AugAssign(target=target, value=value)
                    | ast.NamedExpr(target=target, value=value)
                ):
                    self._bind(target, value, found)
                case (
                    ast.For(target=target, iter=value)
                    | ast.comprehension(target=target, iter=value)
                ):
                    self._bind(target, value, found)
                case _:
                    pass
        self.plain |= {name for name, plain in found.items() if all(plain)}

    def _bind(self, target: ast.expr, value: ast.expr, found: dict[str, list[bool]]) -> None:
        match target, value:
            case ast.Name(id=name), _:
                found.setdefault(name, []).append(self.is_plain(value))
            case ast.Starred(value=inner), _:
                self._bind(inner, value, found)
            case ast.Tuple(elts=names), ast.Tuple(elts=parts) if len(names) == len(parts):
                for one, part in zip(names, parts, strict=True):
                    self._bind(one, part, found)
            case ast.Tuple(elts=names), ast.Call(func=ast.Name(id="zip"), args=parts) if len(
                names
            ) == len(parts):
                for one, part in zip(names, parts, strict=True):
                    self._bind(one, part, found)
            case ast.Tuple(elts=[number, rest]), ast.Call(func=ast.Name(id="enumerate"), args=args):
                self._bind(number, ast.Constant(0), found)
                self._bind(rest, args[0], found)
            case ast.Tuple(elts=names), _:
                for one in names:
                    self._bind(one, value, found)
            case _:
                pass

    def is_plain(self, node: ast.AST) -> bool:
        """Whether an expression consists of Python numbers, strings or NumPy arrays."""
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Compare():
                return True
            case ast.Name(id=name):
                return (
                    name in self.plain
                    or name in ("builtins", "math", "np")
                    or (name.isupper() and len(name) > 1)
                )
            case ast.Attribute(value=value, attr=name):
                return name in PLAIN_ATTRIBUTES or self.is_plain(value)
            case ast.Call(func=ast.Name(id=name), args=args):
                alike = name in PLAIN_IF_ARGUMENTS and all(map(self.is_plain, args))
                return name in PLAIN_CALLS or alike
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                return name in PLAIN_METHODS or self.is_plain(value)
            case ast.BinOp(left=left, right=right):
                return self.is_plain(left) and self.is_plain(right)
            case ast.IfExp(body=one, orelse=other):
                return self.is_plain(one) and self.is_plain(other)
            case (
                ast.Subscript(value=inner)
                | ast.Starred(value=inner)
                | ast.UnaryOp(operand=inner)
                | ast.ListComp(elt=inner)
                | ast.GeneratorExp(elt=inner)
            ):
                return self.is_plain(inner)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.BoolOp(values=parts):
                return all(map(self.is_plain, parts))
            case _:
                return False

    def steps(self, node: ast.AST) -> int:
        """The number of computing steps in a node."""
        if isinstance(node, ast.Raise | ast.arguments):
            return 0
        return self._is_step(node) + sum(map(self.steps, ast.iter_child_nodes(node)))

    def _is_step(self, node: ast.AST) -> bool:
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                lists = _is_list(left) or _is_list(right)
                return isinstance(op, ARITHMETIC) and not lists and not self.is_plain(node)
            case ast.Call(func=ast.Name(id=name)):
                return _computes(name) and not self.is_plain(node)
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=name), attr="all")):
                return _computes(name)  # catalogue.sort.all(...)
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                return _computes(name) and not self.is_plain(value)
            case _:
                return False


def _may_be_step(node: ast.AST) -> bool:
    """Whether a node is a step if what it works on is not plain: cheap to ask."""
    match node:
        case ast.BinOp(op=op):
            return isinstance(op, ARITHMETIC)
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=name), attr="all")):
            return _computes(name)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return _computes(name)
        case _:
            return False


def _computes(name: str) -> bool:
    return name.removeprefix("reduce_") in COMPUTING


def _is_list(node: ast.expr) -> bool:
    match node:
        case ast.BinOp(left=left, right=right):
            return _is_list(left) or _is_list(right)
        case ast.Constant(value=str()):
            return True
        case _:
            return isinstance(node, ast.List | ast.Tuple | ast.ListComp | ast.JoinedStr)


def _is_plain_type(annotation: ast.expr) -> bool:
    parts = ast.unparse(annotation).split(" | ")
    return all([part.startswith(PLAIN_TYPES) for part in parts])


def _functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name):
                yield prefix + name, node
            case ast.ClassDef(name=name, body=inner):
                yield from _functions(inner, f"{prefix}{name}.")
            case _:
                pass


def own_maths(text: str) -> dict[str, int]:
    """The number of steps of each function of a module, if there are many."""
    tree = ast.parse(text)
    constants = {
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
        for name in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(name, ast.Name)
    }
    found: dict[str, int] = {}
    for name, function in _functions(tree.body):
        if sum(map(_may_be_step, ast.walk(function))) < LEAST:
            continue
        body = _Body(function, constants)
        count = sum(map(body.steps, function.body))
        if count >= LEAST:
            found[name] = count
    return found


@functools.cache
@uncollected
def in_front_ends() -> dict[str, int]:
    """The functions of front ends that contain formulas, as `path:name`."""
    found: dict[str, int] = {}
    for place in FRONT_ENDS:
        at = ROOT / place
        for file in sorted(at.rglob("*.py")) if at.is_dir() else [at]:
            shown = file.relative_to(ROOT / "weft").as_posix()
            found |= {f"{shown}:{n}": c for n, c in own_maths(file.read_text()).items()}
    return found


if __name__ == "__main__":
    for _name, _count in in_front_ends().items():
        print(_count, _name)
