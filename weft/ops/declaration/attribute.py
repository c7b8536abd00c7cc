"""Attributes: what is statically known of them, and the form in which nodes store them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

from weft.host.garbage_collection import FirstRead
from weft.ir.dtype import DType
from weft.ir.node import Literal, Node, Value
from weft.ir.shape import Shape
from weft.ir.signed_zero import MinusZero, told_apart

Array = np.ndarray[Any, Any]


class _Sentinel:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


REQUIRED: Final = _Sentinel("REQUIRED")
"""The default of a required attribute."""
UNKNOWN: Final = _Sentinel("UNKNOWN")
"""The value, during inference, of an attribute that a node supplies and that is unknown."""

KINDS: Final[dict[Any, tuple[type, ...]]] = {
    "int": (int,),
    "int | None": (int, type(None)),
    "float": (float, int),
    "float | None": (float, int, type(None)),
    "str": (str,),
}
"""The checked classes of attributes, by annotation in the reference."""


def freeze(value: Any) -> Any:
    """An attribute as nodes store it: hashable, with lists as tuples and arrays as literals."""
    if isinstance(value, list | tuple):
        return tuple([freeze(v) for v in cast("list[Any]", value)])
    if isinstance(value, np.ndarray):
        return Literal(value)
    return told_apart(value.item() if isinstance(value, np.generic) else value)


def operand_attribute(array: Array) -> Any:
    """The attribute for a computed operand: a number, or nested tuples of numbers."""
    return freeze(array.tolist())


def is_complete(known: Any) -> bool:
    """Whether an attribute is fully known."""
    if isinstance(known, tuple):
        return not any(v is None or not is_complete(v) for v in cast("tuple[Any, ...]", known))
    return known is not UNKNOWN


KNOWN_RULES: dict[str, Callable[[Node], Any]] = {}
"""For each operation, a rule for what is statically known of an integer output.

A rule returns an int, a tuple of `int | None`, nested tuples of them, or `UNKNOWN`; for several
outputs, a list with one for each."""


class _Knowledge(threading.local):
    """Results of the current call of `known_value`, so that shared nodes are visited once."""

    found = FirstRead[dict[Node, Any]](dict)
    depth: int = 0


_knowledge = _Knowledge()
_DEEPEST = 40  # shape arithmetic is shallow; the limit bounds the recursion


def known_value(value: Value) -> Any:
    """What is known of a value at construction: an int, a tuple of `int | None`, or `UNKNOWN`.

    Shape arithmetic such as `stack([shape(x)[0], 784])` gives `(None, 784)`.
    """
    node = value.node
    if node.op == "constant":
        array: Array = node.attrs["value"].array
        return freeze(array.tolist())
    rule = KNOWN_RULES.get(node.op)
    if rule is None or not value.dtype.is_integer or _knowledge.depth > _DEEPEST:
        return _of_shape(value.shape)
    if node not in _knowledge.found:
        _knowledge.depth += 1
        try:
            found = rule(node)
        finally:
            _knowledge.depth -= 1
        _knowledge.found[node] = found
    result = _knowledge.found[node]
    if len(node.types) > 1 and result is not UNKNOWN:
        result = result[value.index]
    if _knowledge.depth == 0:
        _knowledge.found.clear()
    return _of_shape(value.shape) if result is UNKNOWN else result


_LONGEST = 64  # entries of an attribute; shapes and paddings are far shorter


def _of_shape(shape: Shape) -> Any:
    """A value of which only the shape is known: nested tuples of `None`."""
    if shape is None or len(shape) not in (1, 2) or None in shape:
        return UNKNOWN
    dims = cast("tuple[int, ...]", shape)
    if max(dims) > _LONGEST:
        return UNKNOWN
    entry: Any = None
    for d in reversed(dims):
        entry = (entry,) * d
    return entry


# Keys

_EXACT: Final = frozenset((bool, int, str, type(None), DType, MinusZero))
"""Classes of attributes whose equality means identity (not so for 0.0 and -0.0)."""
_exact: Final[set[tuple[type, ...]]] = set()  # tuples of such classes seen so far
_MOST: Final = 1024  # of them


def signature(attrs: Mapping[str, Any]) -> Any:
    """Attributes as a key that tells 1 from 1.0 and True; `None` if there is no such key."""
    values = tuple(attrs.values())
    kinds = _kinds(values)
    return None if kinds is None else (tuple(attrs), values, kinds)


def _kinds(items: tuple[Any, ...]) -> Any:
    """The part of a key that tells equal entries of a tuple apart; `None` if unknown."""
    kinds = tuple(map(type, items))
    if kinds in _exact:
        return kinds
    if _EXACT.issuperset(kinds):
        if len(_exact) < _MOST:
            _exact.add(kinds)
        return kinds
    inner: list[Any] = []
    for kind, item in zip(kinds, items, strict=True):
        if kind is tuple:
            kind = _kinds(item)
        elif kind is float:
            kind = repr(item)
        elif kind not in _EXACT:
            kind = None
        if kind is None:
            return None
        inner.append(kind)
    return tuple(inner)
