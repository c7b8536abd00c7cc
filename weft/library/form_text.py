"""Forms as text, from which groups of any sizes are made again."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from typing import Any, Final, cast

import numpy as np

from weft.ir.dtype import DType, as_dtype
from weft.ir.node import Literal, Node, TensorType, Value
from weft.ir.signed_zero import MinusZero, told_apart
from weft.passes.group import Group

LARGEST: Final = 64
"""Elements of a constant that is written down."""


class NoTextError(Exception):
    """A form has a part that is not written down, such as a large constant."""


def as_text(key: Hashable) -> str:
    """The text of a form's key.

    Raises:
        NoTextError: it has none.
    """
    return json.dumps(plain(key), separators=(",", ":"))


def plain(part: Any, largest: int = LARGEST) -> Any:
    """A form's key, or a part of one, as data for JSON.

    Args:
        largest: elements of a constant.

    Raises:
        NoTextError: it has none.
    """
    if isinstance(part, tuple):
        return [plain(x, largest) for x in cast("tuple[Any, ...]", part)]
    if isinstance(part, DType):
        return {"d": part.name}
    if isinstance(part, Literal) and part.array.size <= largest:
        array = part.array
        numbers = [plain(x) for x in array.ravel().tolist()]
        return {"a": array.dtype.name, "of": numbers, "s": list(array.shape)}
    if isinstance(part, MinusZero) or (isinstance(part, float) and not math.isfinite(part)):
        return {"f": repr(part)}
    if part is None or type(part) in (bool, int, float, str):
        return part
    raise NoTextError


def part_of(text: Any) -> Any:
    """What `plain` gave as data."""
    if isinstance(text, list):
        return tuple([part_of(x) for x in cast("list[Any]", text)])
    if not isinstance(text, dict):
        return text
    found = cast("dict[str, Any]", text)
    if "d" in found:
        return as_dtype(found["d"])
    if "f" in found:
        return told_apart(float(found["f"]))
    numbers = [part_of(x) for x in found["of"]]
    return Literal(np.array(numbers, as_dtype(found["a"]).numpy).reshape(found["s"]))


def group_of(text: str, sizes: Sequence[int]) -> Group:
    """The group of a form at some sizes."""
    return group_at(part_of(json.loads(text)), sizes)


def group_at(key: Any, sizes: Sequence[int]) -> Group:
    """The group of a form's key at some sizes."""
    read, nodes, outputs, cuts = key
    marks = {f"@{i}": size for i, size in enumerate(sizes)}
    values: list[Value] = []
    for dtype, shape in read:
        kind = TensorType(dtype, _sized(shape, marks))
        attrs = {"dtype": kind.dtype, "shape": kind.shape}
        values.append(Node("placeholder", (), attrs, (kind,), f"x{len(values)}").outputs[0])
    inputs = tuple(values)
    made: list[Node] = []
    for op, operands, attrs, types in nodes:
        kinds = tuple([TensorType(dtype, _sized(shape, marks)) for dtype, shape in types])
        given = {name: _sized(x, marks) for name, x in attrs}
        own = tuple([values[i] for i in operands])
        made.append(Node(op, own, given, kinds, f"{op}{len(made)}"))
        values += made[-1].outputs
    (before, _), results = cuts, tuple([values[i] for i in outputs])
    return Group(tuple(made[before:]), inputs, results, tuple(made[:before]))


def _sized(part: Any, marks: dict[str, int]) -> Any:
    if isinstance(part, tuple):
        return tuple([_sized(x, marks) for x in cast("tuple[Any, ...]", part)])
    return marks.get(part, part) if isinstance(part, str) else part
