"""Python functions between programs: iterators, readers, decoders, texts, summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, string, variant
from weft.ir.node import Node
from weft.ir.shape import Shape, compatible, show
from weft.ops.boundary.state import call_vjp, from_outside, no_cases
from weft.ops.declaration import Array, Boundary, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Autocast, Facts


class HostFunction:
    """The function of a `host_value` node, called in every run that needs it."""

    def __init__(self, node: Node) -> None:
        attrs = node.attrs
        self._function, self._with_state = attrs["function"], attrs["with_state"]
        self._kinds = [(t.dtype, t.shape, None if t.dtype.is_hosted else t.dtype.numpy)
                       for t in node.types]  # fmt: skip
        self._fitting: list[Any] = [None for _ in node.types]  # the last array's shapes

    def __call__(self, arrays: Sequence[Array], state: Any) -> Sequence[Array]:
        """Its results as arrays of the declared types.

        Args:
            arrays: of the node's inputs.
            state: the variables of the run.
        """
        found = self._function(state, *arrays) if self._with_state else self._function(*arrays)
        kinds = self._kinds
        if len(kinds) == 1:
            return (self._typed(0, found),)
        if len(kinds) != len(found or ()):
            raise DTypeError(f"expected {len(kinds)} results, got {len(found or ())}")
        return [self._typed(i, y) for i, y in enumerate(found or ())]

    def _typed(self, number: int, value: Any) -> Array:
        dtype, shape, plain = self._kinds[number]
        if (
            value.__class__ is np.ndarray
            and value.dtype is plain
            and value.shape == self._fitting[number]
            and value.flags.c_contiguous
        ):
            return value
        array = as_typed(value, dtype, shape)
        self._fitting[number] = array.shape
        return array


def as_typed(value: Any, dtype: DType, shape: Shape) -> Array:
    """A result of Python as an array of this type.

    Raises:
        DTypeError: texts for numbers, or the reverse.
        ShapeError: it has another shape.
    """
    if dtype is string:
        array = text_array(value)
    elif dtype is variant:
        array = np.empty((), np.object_)
        array[()] = value
    else:
        array = np.asarray(value, order="C")
        if array.dtype != dtype.numpy:
            if array.dtype.kind in "OSU":
                raise DTypeError(f"expected numbers of type {dtype}, got {value!r:.80}")
            array = array.astype(dtype.numpy)
    if not compatible(array.shape, shape):
        raise ShapeError(f"expected an element of shape {show(shape)}, got {show(array.shape)}")
    return array


def text_array(value: Any) -> Array:
    """Texts, nested lists or an array of them, as an array of bytes objects.

    Raises:
        DTypeError: there is something else in it.
    """
    if isinstance(value, bytes | str):
        array = np.empty((), np.object_)
        array[()] = value.encode() if isinstance(value, str) else value
        return array
    given = np.asarray(value, np.object_)
    flat = [_as_bytes(x, value) for x in given.ravel().tolist()]
    array = np.empty(given.size, np.object_)
    array[:] = flat
    return array.reshape(given.shape)


def _as_bytes(x: Any, whole: Any) -> bytes:
    if isinstance(x, bytes):
        return bytes(x)
    if isinstance(x, str):
        return x.encode()
    raise DTypeError(f"expected texts, got {whole!r:.80}")


host_value = defop(
    "host_value",
    inputs="*xs",
    attrs={
        "function": REQUIRED,
        "dtypes": REQUIRED,
        "shapes": REQUIRED,
        "gradient": None,
        "title": "host_value",
        "with_state": False,
    },
    dtype=lambda *_, dtypes, **__: tuple(map(as_dtype, dtypes)),
    shape=lambda *_, shapes, **__: shapes,
    reference=from_outside,
    vjp=call_vjp,
    lower=Boundary(),
    cases=no_cases,
    outputs=-1,
    stateful=True,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, ordered=True, host=True),
)
"""`function(*arrays)`, called once per run in the client's process.

Attributes: `dtypes` and `shapes` of the results, of which the shapes may be unknown; `gradient`, as
for `host_call`; `with_state`: the function takes the run's variables before the arrays; `title`:
its name in messages.
"""
