"""Collectives on nested structures of numbers, strings and tensors, without pickle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.collectives.elements import array, compute_pending
from weft.collectives.object_types import described, with_types
from weft.collectives.process_group import for_members, member, root_of
from weft.eager.tensor.device import check_device
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, ShapeError
from weft.formats.nested_arrays import built, parts
from weft.ir.dtype import NAMED, as_dtype
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"]


@for_members
def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Overwrite the i-th item of the list with the object of rank i.

    Objects are dicts, lists and tuples of tensors, arrays, numbers, strings, booleans and `None`,
    named tuples, and the dicts of `collections`; they keep their types.

    Args:
        object_list: a list with one item for each rank, which is overwritten.
        obj: this rank's object.

    Raises:
        DTypeError: an object contains something else.
        ShapeError: the list does not have one item for each rank.

    Example:
        >>> import weft.distributed as dist
        >>> dist.init_process_group()
        >>> objects = [None]
        >>> dist.all_gather_object(objects, {"loss": 0.5, "names": ["a", "b"]})
        >>> objects
        [{'loss': 0.5, 'names': ['a', 'b']}]
        >>> dist.destroy_process_group()
    """
    members = member(group, "all_gather_object")
    _check(object_list, members.size, "all_gather_object")
    data = encoded(obj, "all_gather_object")
    compute_pending()
    object_list[:] = [decoded(d) for d in collective.all_gather_bytes(members, data, "objects")]


@for_members
def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
    group: Group | None = None, group_dst: int | None = None,
) -> None:  # fmt: skip
    """Overwrite the i-th item of rank `dst`'s list with the object of rank i.

    Args:
        obj: this rank's object.
        object_gather_list: on rank `dst` a list with one item for each rank; else `None`.
        dst: the global rank that receives, by default 0; or pass `group_dst`.
    """
    members = member(group, "gather_object")
    root = root_of(members, dst, group_dst, "gather_object", 0)
    data = encoded(obj, "gather_object")
    compute_pending()
    every = collective.all_gather_bytes(members, data, "objects")
    if members.index == root:
        places = [] if object_gather_list is None else object_gather_list
        _check(places, members.size, "gather_object")
        places[:] = [decoded(d) for d in every]


@for_members
def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Group | None = None, device: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Overwrite the list with that of rank `src`.

    Args:
        object_list: the objects that are sent or overwritten; of equal length on all ranks.
        src: the global rank that sends; or pass `group_src`.
        device: has no effect.
    """
    members = member(group, "broadcast_object_list")
    check_device(device)
    root = root_of(members, src, group_src, "broadcast_object_list", 0)
    data = encoded(object_list, "broadcast_object_list") if members.index == root else b""
    compute_pending()
    every = collective.all_gather_bytes(members, data, f"objects of rank {members.ranks[root]}")
    if members.index != root:
        objects = decoded(every[root])
        _check(object_list, len(objects), "broadcast_object_list")
        object_list[:] = objects


@for_members
def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None, group: Group | None = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Overwrite the first item of rank i's output list with the i-th input of rank `src`.

    Args:
        scatter_object_output_list: a list, whose first item is overwritten.
        scatter_object_input_list: on rank `src` one object for each rank; else `None`.
        src: the global rank that sends, by default 0; or pass `group_src`.
    """
    members = member(group, "scatter_object_list")
    objects = list(scatter_object_input_list or ())
    root = root_of(members, src, group_src, "scatter_object_list", 0)
    if members.index == root:
        _check(objects, members.size, "scatter_object_list")
    else:
        objects = [None] * members.size
    broadcast_object_list(objects, group=members, group_src=root)
    scatter_object_output_list[0] = objects[members.index]


def _check(objects: Sequence[Any], count: int, name: str) -> None:
    if len(objects) != count:
        raise ShapeError.here(f"{name}: expected a list of {count}, got {len(objects)}")


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Handle | np.ndarray | np.generic)


def _array(x: Any) -> Array:
    return array(x) if isinstance(x, Handle) else np.asarray(x)  # pyright: ignore


def encoded(obj: Any, name: str) -> bytes:
    """An object as bytes: the length of a header, the header, then the arrays."""
    arrays: dict[str, Array] = {}
    forms: list[str] = []

    def taken(x: Any) -> Array:
        forms.append("tensor" if isinstance(x, Handle) else type(x).__name__)
        return _array(x)

    try:
        tree = list(parts(obj, _is_tensor, taken, arrays))
        types = described(obj)
    except DTypeError as error:
        raise DTypeError(str(error).replace("save", name, 1)) from None
    pairs = zip(arrays.items(), forms, strict=True)
    kinds = [(k, as_dtype(a.dtype).name, a.shape, form) for (k, a), form in pairs]
    header = json.dumps([tree, kinds, types]).encode()
    return b"".join(
        [len(header).to_bytes(8, "little"), header, *[a.tobytes() for a in arrays.values()]]
    )


def decoded(data: bytes) -> Any:
    begin = 8 + int.from_bytes(data[:8], "little")
    tree, kinds, types = json.loads(data[8:begin])
    tensors: dict[str, Any] = {}
    for name, dtype, shape, form in kinds:
        element_type = NAMED[dtype].numpy
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(data, element_type, count, begin).reshape(shape)
        begin += array.nbytes
        tensors[name] = _formed(array.copy(), form)
    return with_types(built(tree, tensors), types)


def _formed(x: Array, form: str) -> Any:
    """An array as the type that was sent: a tensor, an array, or a NumPy number."""
    if form == "tensor":
        return wrap(leaf(x))
    return x if form == "ndarray" else x[()]
