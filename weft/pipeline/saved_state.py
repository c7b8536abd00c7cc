"""States that JSON can represent: lists, dicts, numbers and strings."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.ir.dtype import as_dtype
from weft.pipeline.structure import rebuilt

_HELD: Final = "held elements"
_PLAIN: Final = (str, int, float, bool, type(None))
_KINDS: Final = "biufcSUMm"  # of element types whose names NumPy reads


class Held(list[Any]):
    """Elements that a stage holds back, in its state; they may be of any type."""


class Opaque:
    """An element of a type that JSON lacks; a state with it can be pickled."""

    def __init__(self, value: Any) -> None:
        self.value = value


def to_json(state: Any) -> Any:
    """A state with its held elements and NumPy numbers in JSON's types.

    >>> import json
    >>> state = to_json({"draws": np.int64(3), "held": Held([np.arange(2)])})
    >>> from_json(json.loads(json.dumps(state)))
    {'draws': 3, 'held': [array([0, 1])]}
    """
    if isinstance(state, Held):
        return {_HELD: [_described(x) for x in state]}
    if type(state) is dict:
        return {key: to_json(x) for key, x in state.items()}
    if type(state) in (list, tuple):
        return [to_json(x) for x in state]
    return state.item() if isinstance(state, np.generic) else state


def from_json(state: Any) -> Any:
    """The state of `to_json`."""
    if isinstance(state, dict):
        encoded: dict[str, Any] = state
        if encoded.keys() == {_HELD}:
            return Held([_built(x) for x in encoded[_HELD]])
        return {key: from_json(x) for key, x in encoded.items()}
    return [from_json(x) for x in state] if isinstance(state, list) else state


def _described(x: Any) -> Any:
    if type(x) in _PLAIN:
        return x
    if type(x) in (tuple, list):
        return [type(x).__name__, *[_described(part) for part in x]]
    if type(x) is dict:
        return ["dict", *[[_described(key), _described(part)] for key, part in x.items()]]
    if type(x) is bytes:
        return ["bytes", _text(x)]
    if type(x) is complex:
        return ["complex", x.real, x.imag]
    name = _name(x.dtype) if isinstance(x, np.ndarray | np.generic) else None
    if name is None:
        return Opaque(x)
    shape_type = "array" if isinstance(x, np.ndarray) else "scalar"
    if name == "object":
        parts = [_described(part) for part in np.asarray(x).ravel()]
        return ["objects", list(x.shape), *parts]
    return [shape_type, name, list(x.shape), _text(np.ascontiguousarray(x).tobytes())]


def _name(dtype: np.dtype[Any]) -> str | None:
    """A name that `_dtype` converts to the element type; None if there is none."""
    if dtype.kind == "O":
        return "object"
    if dtype.kind in _KINDS:
        return dtype.str
    try:
        return as_dtype(dtype).name
    except DTypeError:
        return None


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(name) if name[0] in "<>|=" else as_dtype(name).numpy


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _built(x: Any) -> Any:
    if isinstance(x, Opaque):
        return x.value
    return _BUILDERS[x[0]](*x[1:]) if isinstance(x, list) else x


def _array(name: str, shape: list[int], text: str) -> Any:
    flat = np.frombuffer(bytearray(base64.b64decode(text)), _dtype(name))
    return flat.reshape(shape)


def _objects(shape: list[int], *parts: Any) -> Any:
    out = np.empty(len(parts), object)
    out[:] = [_built(part) for part in parts]
    return out.reshape(shape)


_BUILDERS: Final[dict[str, Callable[..., Any]]] = {
    "tuple": lambda *parts: rebuilt((), [_built(part) for part in parts]),
    "list": lambda *parts: [_built(part) for part in parts],
    "dict": lambda *pairs: {_built(key): _built(part) for key, part in pairs},
    "bytes": base64.b64decode,
    "complex": complex,
    "array": _array,
    "scalar": lambda name, shape, text: _array(name, shape, text)[()],
    "objects": _objects,
}
