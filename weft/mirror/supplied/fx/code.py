"""The Python text that does what a graph does."""

from __future__ import annotations

import builtins
import operator
import re
from collections.abc import Iterable
from typing import Any, Final

import weft
from weft.mirror.supplied.fx.node import INPUT, Node, map_arg
from weft.nn import functional

__all__ = ["code_of"]

_SIGNS: Final = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**",
    "matmul": "@", "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_INFIX: Final[dict[Any, str]] = {getattr(operator, name): sign for name, sign in _SIGNS.items()}
_PREFIX: Final[dict[Any, str]] = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}


def code_of(nodes: Iterable[Node]) -> str:
    """A function `forward` with a line for each call.

    A value is released on the line that uses it last.
    """
    nodes = list(nodes)
    last = _last_uses(nodes)
    inputs = [_parameter(node) for node in nodes if node.op == INPUT]
    lines: list[str] = []
    for node in nodes:
        if node.op == "output":
            lines.append(f"return {_text(node.args[0])}")
        elif node.op != INPUT:
            ended = [x.name for x in (*last.get(node, ()), *([] if node.users else [node]))]
            released = f";  {' = '.join([*ended, 'None'])}" if ended else ""
            lines.append(f"{node.name} = {_call(node)}{released}")
    body = "\n".join([f"    {line}" for line in lines or ["pass"]])
    return f"\n\n\ndef forward({', '.join(['self', *inputs])}):\n{body}\n    "


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """The values that each node is the last to use."""
    found: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                found.setdefault(node, []).append(used)
    return found


def _parameter(node: Node) -> str:
    return " = ".join([str(node.target), *[_text(x) for x in node.args]])


def _call(node: Node) -> str:
    """The expression of a node."""
    target, args = node.target, [_text(x) for x in node.args]
    given = ", ".join([*args, *[f"{name} = {_text(x)}" for name, x in node.kwargs.items()]])
    if node.op == "call_function":
        if target in _INFIX and len(args) == 2:
            return f"{args[0]} {_INFIX[target]} {args[1]}"
        if target in _PREFIX:
            return f"{_PREFIX[target]}{args[0]}"
        if target is operator.getitem:
            return f"{args[0]}[{args[1]}]"
        if target is getattr and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{args[0]}.{node.args[1]}"
        return f"{_name_of(target)}({given})"
    if node.op == "call_method":
        return f"{args[0]}.{target}({given.removeprefix(args[0]).removeprefix(', ')})"
    path = "self"
    for part in str(target).split("."):
        path = f"{path}.{part}" if part.isidentifier() else f'getattr({path}, "{part}")'
    return path if node.op == "get_attr" else f"{path}({given})"


def _name_of(function: Any) -> str:
    """What a function is called in the text: by its place in `torch`, or by its module and name."""
    name = getattr(function, "__name__", type(function).__name__)
    module = str(getattr(function, "__module__", ""))
    if module.startswith(functional.__name__) and hasattr(functional, name):
        return f"torch.nn.functional.{name}"
    if module.startswith(weft.__name__) and hasattr(weft, name):
        return f"torch.{name}"
    if module == builtins.__name__:
        return name
    return re.sub(r"\W", "_", f"{module}.{name}")


def _text(x: Any) -> str:
    """An argument as text: nodes by their names."""
    return repr(map_arg(x, lambda node: node))
