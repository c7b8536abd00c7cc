"""Graphs as text, one node a line; `weft.ir.parser` reads it back.

    graph {
      %x: float32[?,784] = placeholder() {dtype: float32, shape: (None, 784)}
      %top: float32[?,3], int32[?,3] = top_k(%x:0) {k: 3} ^%check @"cpu:0" &%x !"train.py":31
      return %top:0, %top:1
    }

`^` marks control dependencies, `@` the device, `&` nodes on the same device, `!` the user's line.
Operands that supply attributes are written `shape=%s:0` among the inputs. Regions follow in braces.
A function as an attribute is written with its inputs, and its further data in brackets:

    {body: function(%x: float32[3], %w: float32[]) [captured: 1] {
      %multiply: float32[3] = multiply(%x:0, %w:0)
      return %multiply:0
    }}

Where the text is sent to another process, larger arrays travel beside it: `aside(3)` is the fourth.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np

from weft.ir.dtype import DType, as_dtype
from weft.ir.function import Function, functions
from weft.ir.node import Literal, Node, Region
from weft.ir.record import RECORDS

# Arrays of up to this many elements are written as numbers, larger ones as base64 of their bytes.
READABLE = 16


Aside = list[np.ndarray[Any, Any]]


def format_graph(graph: Region, indent: str = "", aside: Aside | None = None) -> str:
    """The whole graph as text that parses back.

    Args:
        indent: what lines begin with.
        aside: takes the arrays of more than `READABLE` elements, instead of the text.
    """
    inner = indent + "  "
    lines = [indent + "graph {"]
    together: dict[Node, list[Node]] = {}
    for node, other in graph.colocated():
        together.setdefault(node, []).append(other)
    for node in graph.nodes:
        extra = graph.edges.get(node, ())
        lines.append(inner + format_node(node, extra, inner, together.get(node, ()), aside))
    if graph.outputs:
        lines.append(inner + "return " + ", ".join(f"%{v.name}" for v in graph.outputs))
    lines.append(indent + "}")
    return "\n".join(lines)


def format_node(
    node: Node, extra: tuple[Node, ...] = (), indent: str = "", together: Sequence[Node] = (),
    aside: Aside | None = None,
) -> str:  # fmt: skip
    """One node as text.

    Args:
        extra: control dependencies added after it was built.
        together: nodes that it is colocated with.
        aside: as of `format_graph`.
    """
    data = [f"%{v.name}" for v in node.data_inputs]
    named = zip(node.operands, node.inputs[len(data) :], strict=True)
    inputs = ", ".join([*data, *(f"{name}=%{v.name}" for name, v in named)])
    types = ", ".join(map(str, node.types))
    head = f"%{node.name}: {types} = " if types else f"%{node.name} = "
    parts = [f"{head}{node.op}({inputs})"]
    if node.attrs:
        attrs = ", ".join(
            f"{k}: {format_attribute(v, indent, aside)}" for k, v in node.attrs.items()
        )
        parts.append("{" + attrs + "}")
    parts.extend(f"^%{before.name}" for before in (*node.control, *extra))
    if node.device:
        parts.append(f"@{quote(node.device)}")
    parts.extend(f"&%{other.name}" for other in together)
    if node.source is not None:
        parts.append(f"!{quote(node.source.file)}:{node.source.line}")
    for region in node.regions:
        parts.append(format_graph(region, indent, aside).lstrip())
    return " ".join(parts)


def format_attribute(value: Any, indent: str = "", aside: Aside | None = None) -> str:
    """An attribute value as text; Python objects that have none become `opaque(...)`."""
    if isinstance(value, Function):
        return _format_function(value, indent, aside)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Literal):
        return _format_array(value.array, aside)
    if isinstance(value, tuple):
        items: list[str] = [format_attribute(v, indent, aside) for v in value]
        return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if RECORDS.get(type(value).__name__) is type(value):
        return _format_record(value, indent, aside)
    return f"opaque({quote(type(value).__name__)})"


def without_text(node: Node) -> tuple[Node, str] | None:
    """The first attribute that is written as `opaque(...)`, of the node or one inside; its name."""
    inner = [without_text(x) for function in functions(node) for x in function.nodes]
    own = [(node, name) for name, value in node.attrs.items() if not _has_text(value)]
    return next((found for found in (*inner, *own) if found is not None), None)


def _has_text(value: Any) -> bool:
    if isinstance(value, Function):
        return value.details is not None and all(map(_has_text, value.details.values()))
    if isinstance(value, tuple):
        return all(map(_has_text, cast("tuple[Any, ...]", value)))
    if RECORDS.get(type(value).__name__) is type(value):
        return all([_has_text(getattr(value, field.name)) for field in fields(value)])
    plain = bool | int | float | str | DType | Literal
    return value is None or isinstance(value, plain)


def _format_record(value: Any, indent: str, aside: Aside | None) -> str:
    told = [(f.name, getattr(value, f.name)) for f in fields(value)]
    parts = [f"{name}: {format_attribute(part, indent, aside)}" for name, part in told]
    return f"{type(value).__name__}({', '.join(parts)})"


def _format_function(function: Function, indent: str, aside: Aside | None) -> str:
    details = function.details
    if details is None:
        return f"opaque({quote(type(function).__name__)})"
    inner = indent + "  "
    inputs = ", ".join([f"%{v.node.name}: {v.type}" for v in function.inputs])
    more = ", ".join([f"{k}: {format_attribute(v, indent, aside)}" for k, v in details.items()])
    lines = [f"function({inputs}) " + (f"[{more}] " if more else "") + "{"]
    lines += [inner + format_node(node, (), inner, aside=aside) for node in function.nodes]
    if function.outputs:
        lines.append(inner + "return " + ", ".join([f"%{v.name}" for v in function.outputs]))
    lines.append(indent + "}")
    return "\n".join(lines)


def _format_array(array: np.ndarray[Any, Any], aside: Aside | None) -> str:
    if array.dtype.hasobject:
        texts = [f'"{base64.b64encode(text).decode()}"' for text in array.ravel().tolist()]
        return f"texts({format_attribute(array.shape)}, [{', '.join(texts)}])"
    if aside is not None and array.size > READABLE:
        aside.append(array)
        return f"aside({len(aside) - 1})"
    dtype, shape = as_dtype(array.dtype).name, format_attribute(array.shape)
    if array.size <= READABLE:
        flat: list[Any] = _readable(array).ravel().tolist()
        return f"array({dtype}, {shape}, [{', '.join(map(repr, flat))}])"
    text = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return f'bytes({dtype}, {shape}, "{text}")'


def _readable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As integers, booleans or float64; complex numbers as interleaved real and imaginary parts."""
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind == "c":
        return array.ravel().astype(np.complex128).view(np.float64)
    return array.astype(np.float64)


def quote(text: str) -> str:
    """A string in double quotes, with backslashes before quotes and backslashes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
