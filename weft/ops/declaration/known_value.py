"""Static evaluation of integer values, so that shape arithmetic gives static shapes.

`reshape(x, shape=[shape_of(x)[0], 784])` has the type `(?, 784)` at once. Small integer arrays are
evaluated through movement and arithmetic as NumPy arrays of Python ints, with `None` for unknown
entries.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.dtype import DType
from weft.ir.extent import varies
from weft.ir.node import Node, Value
from weft.ir.shape import is_static, known
from weft.ops.declaration.attribute import KNOWN_RULES, UNKNOWN, known_value
from weft.ops.declaration.family import op_of
from weft.ops.declaration.op import Array

LARGEST: Final = 256  # elements of an array that is evaluated; shapes are far smaller

Rule = Callable[..., Any]


def _array(value: Value) -> Array | None:
    """What is known of a value, as an array of objects; `None` if its shape is unknown."""
    if not is_static(value.shape) or varies(value.shape) or math.prod(known(value.shape)) > LARGEST:
        return None
    found = known_value(value)
    shape = known(value.shape)
    return np.empty(shape, object) if found is UNKNOWN else np.array(found, object).reshape(shape)


def _known(array: Any, dtype: DType) -> Any:
    """An array of objects for `known_value`; numbers that the dtype cannot hold are unknown."""
    limits = np.iinfo(dtype.numpy)
    return _within(array.tolist(), limits.min, limits.max)


def _within(entry: Any, least: int, most: int) -> Any:
    if isinstance(entry, list):
        return tuple([_within(part, least, most) for part in entry])
    return entry if isinstance(entry, int) and least <= entry <= most else None


def follow(node: Node, rule: Rule) -> Any:
    """What is known of a node's outputs, by its rule on arrays of objects."""
    if any([varies(kind.shape) for kind in node.types]):
        return UNKNOWN
    arrays = [_array(v) for v in node.data_inputs]
    small = all(is_static(t.shape) and math.prod(known(t.shape)) <= LARGEST for t in node.types)
    if node.operands or not small or any(a is None for a in arrays):
        return UNKNOWN
    found = rule(*arrays, **{**op_of(node).attrs, **node.attrs})
    outputs: Sequence[Any] = found if len(node.types) > 1 else (found,)
    results = [
        _known(np.asarray(y, object).reshape(known(t.shape)), t.dtype)
        for y, t in zip(outputs, node.types, strict=True)
    ]
    results = [UNKNOWN if r is None else r for r in results]
    return results if len(node.types) > 1 else results[0]


def _by_reference(node: Node) -> Any:
    """Movement operations work the same on objects as on numbers."""
    return follow(node, op_of(node).reference)


def _entrywise(function: Callable[..., int]) -> Callable[[Node], Any]:
    """Arithmetic on Python ints; unknown if an operand is or if there is no result."""

    def entry(*operands: Any) -> Any:
        if any(not isinstance(x, int) for x in operands):
            return None
        try:
            return function(*operands)
        except ZeroDivisionError:
            return None

    def array(*arrays: Any, **_: Any) -> Any:
        wide = np.broadcast_arrays(*arrays)
        rows = zip(*[a.reshape(-1).tolist() for a in wide], strict=True)
        return np.array([entry(*row) for row in rows], object).reshape(wide[0].shape)

    return lambda node: follow(node, array)


def _folding(function: Callable[[Sequence[int]], int]) -> Callable[[Node], Any]:
    """A reduction of all entries."""

    def array(x: Any, axes: Any, keepdims: bool) -> Any:
        if axes == ():
            return x
        entries = list(x.reshape(-1))
        complete = all(isinstance(e, int) for e in entries)
        whole = axes is None or x.ndim == 1
        y = function(entries) if complete and whole else None
        return np.full((1,) * x.ndim if keepdims else (), y, object) if whole else None

    return lambda node: (
        UNKNOWN if len(node.data_inputs[0].shape or ()) != 1 else follow(node, array)
    )


def _shape(node: Node) -> Any:
    x = node.inputs[0].shape
    return UNKNOWN if x is None else x


def _size(node: Node) -> Any:
    x = node.inputs[0].shape
    return math.prod(known(x)) if is_static(x) else UNKNOWN


def _rank(node: Node) -> Any:
    x = node.inputs[0].shape
    return UNKNOWN if x is None else len(x)


def _gathered(node: Node) -> Any:
    def array(x: Any, indices: Any, axis: int, batch_dims: int) -> Any:
        places = indices.reshape(-1)
        inside = all(isinstance(i, int) and 0 <= i < x.shape[axis] for i in places)
        if not inside or batch_dims:
            return np.full(known(node.types[0].shape), None, object)
        return np.take(x, indices.astype(np.int64), axis)

    return follow(node, array)


_MOVES: Final = (
    "reshape", "expand_dims", "squeeze", "transpose", "broadcast_to", "slice", "concatenate",
    "stack", "unstack", "split", "flip", "tile", "identity", "stop_gradient",
)  # fmt: skip
_ARITHMETIC: Final[dict[str, Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "maximum": max,
    "minimum": min,
    "negative": operator.neg,
    "cast": int,
}

KNOWN_RULES.update({name: _by_reference for name in _MOVES})
KNOWN_RULES.update({name: _entrywise(function) for name, function in _ARITHMETIC.items()})
KNOWN_RULES.update({"sum": _folding(sum), "prod": _folding(math.prod)})
KNOWN_RULES.update({"max": _folding(max), "min": _folding(min)})
KNOWN_RULES.update({"shape_of": _shape, "size_of": _size, "rank_of": _rank, "gather": _gathered})
KNOWN_RULES["arange"] = lambda node: follow(node, op_of(node).reference)
