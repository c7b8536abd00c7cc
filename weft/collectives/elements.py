"""Tensors as NumPy arrays, for collectives that run immediately."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.mode import no_grad
from weft.eager.record.pending.state import flush, trace
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.tensor import Tensor
from weft.errors import DTypeError
from weft.ir.dtype import as_dtype
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group, bytes_of


def compute_pending() -> None:
    """Compute all recorded operations, so that collectives run in program order."""
    if trace.now.pending:
        flush()


def array(tensor: Tensor) -> Array:
    """A tensor's elements as a contiguous array; recorded operations are computed first.

    Raises:
        DTypeError: it is not a tensor.
    """
    if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DTypeError.here(f"expected a tensor of weft, got {tensor!r:.200}")
    compute_pending()
    elements = array_of(tensor.lazy)
    return elements if elements.flags.c_contiguous else elements.copy()


def put(tensor: Tensor, values: Array) -> None:
    """Overwrite a tensor's elements."""
    with no_grad():
        memory = tensor.own_memory()
        if memory is not None:
            np.copyto(memory, values)
            tensor.touch()
            return
        tensor.copy_(wrap(leaf(values)))


def room_of(tensor: Tensor) -> Array:
    """Memory for a tensor's new elements, its own if that is writable; pass it to `fill`."""
    with no_grad():
        memory = tensor.own_memory()
    return np.empty_like(array(tensor)) if memory is None else memory


def fill(tensor: Tensor, values: Array) -> None:
    """Make the memory that `room_of` returned the tensor's elements."""
    with no_grad():
        if values is tensor.own_memory():
            tensor.touch()
            return
    put(tensor, values)


def put_all(tensors: Sequence[Tensor], values: Sequence[Array]) -> None:
    """Overwrite the elements of several tensors."""
    for tensor, array in zip(tensors, values, strict=True):
        put(tensor, array)


def kind(x: Array) -> str:
    """Type and shape, as `float32[2,3]`."""
    return f"{as_dtype(x.dtype)}[{','.join(map(str, x.shape))}]"


def take_from_first(tensors: Sequence[Tensor], group: Group, root: int = 0) -> None:
    """Broadcast the tensors of the group's first member, or another one, in one message."""
    if not tensors or group.size == 1:
        return
    parts = [bytes_of(array(t)) for t in tensors]
    flat = np.concatenate(parts)
    collective.broadcast(group, flat, root, f"broadcast of {len(parts)} tensors, {flat.size} bytes")
    if group.index != root:
        ends = np.cumsum([0, *[p.size for p in parts]]).tolist()
        for tensor, (begin, end) in zip(tensors, itertools.pairwise(ends), strict=True):
            old = array(tensor)
            put(tensor, flat[begin:end].view(old.dtype).reshape(old.shape).copy())
