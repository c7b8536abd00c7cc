"""Element specs in tf.data's terms: types and shapes in the elements' structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.errors import DTypeError, ShapeError, TreeError
from weft.pipeline.structure import map_leaves

Dims = tuple[int | None, ...] | None


class Expected(NamedTuple):
    """A leaf's type, if given, and its dimensions; None allows anything."""

    dtype: np.dtype[Any] | None
    dims: Dims


class Signature:
    """A spec of elements.

    Args:
        types: one type, or a structure of them like the elements'; strings have `str` or `bytes`.
        shapes: the same structure; None for an unknown dimension or shape.
        specs: instead of both, a structure of objects with `dtype` and `shape`.

    Raises:
        DTypeError: not an array type.
        TreeError: the shapes' structure differs from the types'.
    """

    def __init__(self, types: Any = None, shapes: Any = None, specs: Any = None) -> None:
        if specs is not None:
            self.expected = map_leaves(lambda s: _leaf(s.dtype, s.shape), specs)
        else:
            self.expected = _joined(types, shapes, "output_shapes")

    def __call__(self, *parts: Any) -> Any:
        """An element, as `map` gets it, with its numbers as arrays of the given types.

        Raises:
            TreeError, ShapeError, DTypeError: it differs from the spec.
        """
        is_tuple = isinstance(self.expected, tuple) and not isinstance(self.expected, Expected)
        whole: Any = parts
        if len(parts) == 1 and not is_tuple:
            whole = parts[0]
        elif len(parts) == 1 and isinstance(parts[0], list) and len(self.expected) > 1:
            whole = parts[0]  # a list instead of a tuple; as a single part, it is an array
        return _conformed(self.expected, whole, "element")


def _leaf(dtype: Any, shape: Any) -> Expected:
    return Expected(_dtype(dtype), None if shape is None else tuple(_dims(shape)))


def _dtype(of: Any) -> np.dtype[Any] | None:
    numpy_type = getattr(of, "as_numpy_dtype", getattr(of, "numpy", of))
    try:
        dtype = np.dtype(numpy_type)
    except TypeError:
        raise DTypeError(f"from_generator: expected a type, got {of!r}") from None
    return np.dtype(object) if dtype.kind in "USO" else dtype


def _dims(shape: Any) -> Sequence[int | None]:
    dims = shape.as_list() if hasattr(shape, "as_list") else shape
    return [None if n is None or n < 0 else int(n) for n in dims]


def _joined(types: Any, shapes: Any, where: str) -> Any:
    """The structure of types with the known shapes."""
    if isinstance(types, tuple):
        parts = [None] * len(types) if shapes is None else shapes
        if not isinstance(parts, tuple | list) or len(parts) != len(types):
            raise TreeError(f"{where}: expected a tuple of {len(types)} shapes, got {shapes!r}")
        pairs = enumerate(zip(types, parts, strict=True))
        joined = [_joined(t, s, f"{where}[{i}]") for i, (t, s) in pairs]
        return type(types)(*joined) if hasattr(types, "_fields") else tuple(joined)
    if isinstance(types, dict):
        known: Any = dict.fromkeys(types) if shapes is None else shapes
        if not isinstance(known, dict) or known.keys() != types.keys():
            raise TreeError(f"{where}: expected a dict of {sorted(types)}, got {shapes!r}")
        return {key: _joined(t, known[key], f"{where}[{key!r}]") for key, t in types.items()}
    return _leaf(types, shapes)


def _conformed(expected: Any, element: Any, where: str) -> Any:
    if isinstance(expected, Expected):
        return _array(expected, element, where)
    if isinstance(expected, dict):
        if not isinstance(element, dict) or element.keys() != expected.keys():
            raise _other(where, f"a dict of {sorted(expected)}", element)
        return {k: _conformed(e, element[k], f"{where}[{k!r}]") for k, e in expected.items()}
    if not isinstance(element, tuple | list) or len(element) != len(expected):
        raise _other(where, f"a tuple of {len(expected)}", element)
    pairs = enumerate(zip(expected, element, strict=True))
    parts = [_conformed(e, x, f"{where}[{i}]") for i, (e, x) in pairs]
    return type(expected)(*parts) if hasattr(expected, "_fields") else tuple(parts)


def _other(where: str, expected: str, got: Any) -> TreeError:
    shown = f"{type(got).__name__} {got!r:.60}"
    return TreeError(f"from_generator: expected {where} to be {expected}, got {shown}")


def _array(expected: Expected, x: Any, where: str) -> Any:
    if isinstance(x, str | bytes) and expected.dtype in (None, np.dtype(object)):
        return x
    try:
        array = np.asarray(x.detach() if hasattr(x, "detach") else x)  # pyright: ignore
        converted = array if expected.dtype is None else _cast(array, expected.dtype)
    except (ValueError, TypeError):
        raise DTypeError(
            f"from_generator: expected {where} of type {expected.dtype}, got {x!r:.60}"
        ) from None
    if not _fits(converted.shape, expected.dims):
        raise ShapeError(
            f"from_generator: expected {where} of shape {expected.dims}, got {converted.shape}"
        )
    return converted


def _cast(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Numbers of another type; integers keep their values, and floats never become integers.

    Raises:
        TypeError: they cannot be converted.
    """
    if dtype.kind in "iu" and array.dtype.kind in "iu":
        converted = array.astype(dtype)
        if not np.array_equal(converted, array):
            raise TypeError
        return converted
    return array.astype(dtype, casting="same_kind", copy=False)


def _fits(shape: Sequence[int], dims: Dims) -> bool:
    if dims is None:
        return True
    return len(shape) == len(dims) and all(d in (None, n) for n, d in zip(shape, dims, strict=True))
