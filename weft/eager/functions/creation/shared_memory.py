"""Tensors that share the memory of other objects, or copy it if they cannot."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.eager.functions.creation.constructor import (
    array_from,
    finished,
    floating,
    showing,
    warn_of_read_only,
)
from weft.eager.record.pending.lazy import Array
from weft.eager.record.pending.state import flush
from weft.eager.tensor.device import check_device, number_of
from weft.eager.tensor.dispatch import leaf
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange.interchange import from_dlpack, is_capsule
from weft.errors import AliasError, DTypeError
from weft.ir.dtype import DType, as_dtype

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = ["asarray", "from_file", "frombuffer"]


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A vector that shares the memory of an object with the buffer protocol.

    Args:
        count: how many elements; -1 for all that are left.
        offset: how many bytes to skip at the start.

    Raises:
        AliasError: no such object, or too few bytes.

    Example:
        >>> import weft as wf
        >>> wf.frombuffer(bytearray(b"abc"), dtype=wf.uint8).tolist()
        [97, 98, 99]
    """
    kind = as_dtype(dtype)
    try:
        size = memoryview(buffer).nbytes
    except TypeError:
        text = f"expected an object with the buffer protocol, got {type(buffer).__name__}"
        raise AliasError.here(f"frombuffer: {text}") from None
    rest = size - offset
    whole = rest % kind.size == 0 if count < 0 else count * kind.size <= rest
    if not (count and 0 <= offset < size and whole):
        raise AliasError.here(
            f"frombuffer: expected bytes for at least one {kind}, and for all that are asked for, "
            f"got {size} of them, count {count} and offset {offset}"
        )
    array = np.frombuffer(buffer, kind.numpy, count, offset)
    warn_of_read_only("frombuffer", array)
    return showing(array).requires_grad_(requires_grad)


def from_file(
    filename: str | os.PathLike[str], shared: bool = False, size: int = 0, *, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A vector on a memory-mapped file.

    Args:
        shared: whether changes are written to the file, which is created or extended to `size`.
        size: how many elements.

    Raises:
        AliasError: the file holds fewer.
    """
    check_device(device)
    kind = floating(dtype)
    path = pathlib.Path(filename)
    flush()  # pending changes of other tensors on the file
    if shared and (not path.exists() or path.stat().st_size < size * kind.size):
        with path.open("ab") as file:
            file.truncate(size * kind.size)
    if path.stat().st_size < size * kind.size:
        text = f"from_file: expected {size} elements of {kind}, got {path.stat().st_size} bytes"
        raise AliasError.here(text)
    mode: Any = "r+" if shared else "c"
    mapped = np.memmap(path, np.uint8, mode, shape=(size * kind.size,)) if size else np.empty(0)
    return showing(np.asarray(mapped).view(kind.numpy)).requires_grad_(requires_grad)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor from a tensor, an array, a DLPack capsule, a buffer, numbers or lists of them.

    Args:
        copy: `True` copies, `False` shares memory, `None` shares it if possible.
        requires_grad: by default as the given tensor; `False` detaches the result from it.

    Raises:
        AliasError: `copy=False`, but memory cannot be shared.

    Example:
        >>> import numpy as np
        >>> import weft as wf
        >>> wf.asarray(np.zeros(2), dtype=wf.float32).dtype
        float32
    """
    number = None if device is None else number_of(device)
    kind = None if dtype is None else as_dtype(dtype)
    found = _shared(obj, kind)
    if found is None:
        if copy is False:
            raise AliasError.here(f"asarray: cannot share memory of {obj!r:.60}")
        return finished(leaf(array_from(obj, kind, copy=True)), bool(requires_grad), device)
    if number is not None and number != number_of(found.device):
        if copy is False:
            raise AliasError.here(f"asarray: cannot share memory of {found.device} on {device}")
        found = found.to(device)
    if kind is not None and kind is not found.dtype:
        if copy is False:
            raise AliasError.here(f"asarray: cannot share memory of {found.dtype} as {kind}")
        found = found.to(kind)
    elif copy:
        found = found.clone()
    if found.requires_grad and requires_grad is False:
        return found.detach()
    return found.requires_grad_() if requires_grad else found


def _shared(obj: Any, dtype: DType | None) -> Any:
    """A tensor on the memory of an object; `None` if it has none to share."""
    if isinstance(obj, Handle):
        return obj
    if is_capsule(obj):
        return from_dlpack(obj)
    array = obj if isinstance(obj, np.ndarray) else _buffered(obj, dtype)
    if array is None:
        return None
    try:
        return showing(array_from(array, None, copy=False))
    except DTypeError:
        return None


def _buffered(obj: Any, dtype: DType | None) -> Array | None:
    """The elements of an object's buffer as a dtype, by default its own."""
    if dtype is None or isinstance(obj, np.generic):
        return None
    try:
        view = memoryview(obj)
    except TypeError:
        return None
    return np.frombuffer(view, dtype.numpy)
