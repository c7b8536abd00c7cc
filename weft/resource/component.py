"""The components of an element: their types and shapes, checks, batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.ir.dtype import NAMED
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Array

Element = tuple[Array, ...]
Dims = tuple[int | None, ...]
_OBJECT: Final = np.dtype(object)
_NUMPY: Final = {"string": _OBJECT, "variant": _OBJECT, "resource": _OBJECT}


def numpy_type(name: str) -> np.dtype[Any]:
    """The NumPy type of an element type's name; texts are objects."""
    return _NUMPY[name] if name in _NUMPY else NAMED[name].numpy


class Components:
    """What each element of a queue consists of.

    Attributes:
        names: the element types.
        dtypes: the same as NumPy types.
        shapes: of the components of one element, or `None` if any will do.
    """

    def __init__(self, names: Sequence[str], shapes: Sequence[Dims] | None) -> None:
        self.names: Final = tuple(names)
        self.dtypes: Final = tuple([numpy_type(name) for name in names])
        self.shapes: Final = None if shapes is None else tuple(shapes)

    @classmethod
    def of(cls, spec: ResourceSpec) -> Components:
        """Those that the options `dtypes` and `shapes` tell; no shapes tell nothing."""
        return cls(spec.option("dtypes"), spec.option("shapes") or None)

    def element(self, arrays: Sequence[Array]) -> Element:
        """One element, copied: its arrays may be memory that the next step writes.

        Raises:
            ArgumentError: number, type or shape of a component is wrong.
        """
        self._check_types(arrays)
        for number, shape in enumerate(self.shapes or ()):
            if not fits(arrays[number].shape, shape):
                raise _misshapen(number, shape, arrays[number].shape)
        return tuple([np.array(x) for x in arrays])

    def rows(self, arrays: Sequence[Array]) -> list[Element]:
        """The elements of a batch, copied.

        Raises:
            ArgumentError: number, type or shape of a component is wrong, or lengths differ.
        """
        self.check_rows(arrays)
        owned = [np.array(x) for x in arrays]
        return [tuple([x[i, ...] for x in owned]) for i in range(len(owned[0]))]

    def check_rows(self, arrays: Sequence[Array]) -> None:
        """Check the arrays of a batch.

        Raises:
            ArgumentError: number, type or shape of a component is wrong, or lengths differ.
        """
        self._check_types(arrays)
        for number, x in enumerate(arrays):
            if x.ndim == 0:
                text = f"component {number} must have at least one dimension, got a scalar"
                raise ArgumentError(f"enqueue_many: {text}")
        size = arrays[0].shape[0]
        for number, shape in enumerate(self.shapes or ()):
            if not fits(arrays[number].shape, (size, *shape)):
                raise _misshapen(number, (size, *shape), arrays[number].shape)
        for number, x in enumerate(arrays):
            if x.shape[0] != size:
                raise ArgumentError(
                    "All input tensors must have the same size in the 0th dimension. Component "
                    f"{number} has {x.shape[0]}, and should have {size}"
                )

    def batch(self, elements: Sequence[Element], pad: bool = False) -> list[Array]:
        """Elements as one array a component; with `pad`, each the size of the largest."""
        found: list[Array] = []
        for number, dtype in enumerate(self.dtypes):
            parts = [element[number] for element in elements]
            shape = self._shape(number, parts) if pad or not parts else parts[0].shape
            found.append(_stacked(parts, shape, dtype, pad))
        return found

    def _shape(self, number: int, parts: Sequence[Array]) -> tuple[int, ...]:
        told = () if self.shapes is None else self.shapes[number]
        return tuple(
            [
                max([x.shape[axis] for x in parts], default=0) if size is None else size
                for axis, size in enumerate(told)
            ]
        )

    def _check_types(self, arrays: Sequence[Array]) -> None:
        if len(arrays) != len(self.dtypes):
            raise ArgumentError(
                "Wrong number of components in tuple. "
                f"Expected {len(self.dtypes)}, got {len(arrays)}"
            )
        for number, (x, dtype) in enumerate(zip(arrays, self.dtypes, strict=True)):
            if x.dtype != dtype:
                got = "string" if x.dtype == _OBJECT else x.dtype.name
                raise ArgumentError(
                    f"Type mismatch in tuple component {number}. "
                    f"Expected {self.names[number]}, got {got}"
                )


def _misshapen(number: int, expected: Dims, got: tuple[int, ...]) -> ArgumentError:
    text = f"Expected {brackets(expected)}, got {brackets(got)}"
    return ArgumentError(f"Shape mismatch in tuple component {number}. {text}")


def brackets(shape: Dims) -> str:
    """A shape as messages tell it: `[?,2]`."""
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def fits(shape: tuple[int, ...], dims: Dims) -> bool:
    """Whether a shape has these dimensions, as far as they are known."""
    return len(shape) == len(dims) and all(
        d is None or n == d for n, d in zip(shape, dims, strict=True)
    )


def _stacked(
    parts: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any], pad: bool
) -> Array:
    if not pad:
        for other in [x.shape for x in parts if x.shape != shape]:
            text = f"shapes {brackets(shape)} and {brackets(other)} do not fit in a batch"
            raise ArgumentError(f"dequeue: {text}")
    if shape and parts and not pad and dtype != _OBJECT:
        return np.concatenate(parts).reshape(len(parts), *shape)
    found = np.empty((len(parts), *shape), dtype)
    if pad:
        found.fill(b"" if dtype == _OBJECT else 0)
    for row, part in enumerate(parts):
        place = tuple([slice(size) for size in part.shape]) if pad else ()
        found[(row, *place, ...)] = part  # the dots: the part itself would be put in otherwise
    return found
