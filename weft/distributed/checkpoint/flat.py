"""State dicts as leaves by path: tensors, shards, and other values.

A path consists of the keys to a leaf, joined by dots, as in PyTorch. Dicts are inner nodes, and so
are lists and tuples that contain tensors or dicts; `[1, 2]` is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from weft.checkpoint.restoring import has_state
from weft.checkpoint.slices import PerRank, Slice
from weft.distributed.checkpoint.stored import Stored
from weft.distributed.tensor.dtensor import DTensor
from weft.distributed.tensor.layout import own_place
from weft.distributed.tensor.placement import Partial
from weft.eager.tensor.interchange.serialization import is_tensor
from weft.errors import ArgumentError, DTypeError, TreeError


class Left:
    """Replaces an omitted leaf."""


LEFT: Final = Left()


def is_inner(x: Any) -> bool:
    """Whether a value is an inner node."""
    if isinstance(x, Mapping):
        return True
    return isinstance(x, list | tuple) and any([_is_tensorlike(one) or is_inner(one) for one in x])


def _is_tensorlike(x: Any) -> bool:
    return is_tensor(x) or isinstance(x, Slice | PerRank | DTensor | Stored)


def nodes(state: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The inner nodes and the leaves of a state, by path; parents come first."""
    for key, item in _items(state):
        where = f"{path}.{key}" if path else str(key)
        yield where, item
        if is_inner(item):
            yield from nodes(item, where)


def leaves(state: Any) -> dict[str, Any]:
    """The leaves of a state by path.

    Raises:
        TreeError: two leaves have the same path.
    """
    by_path: dict[str, Any] = {}
    for path, item in nodes(state):
        if is_inner(item):
            continue
        if path in by_path:
            raise TreeError.here(
                f"checkpoint: expected different paths, got {path!r} twice; rename a key"
            )
        by_path[path] = item
    return by_path


def replaced(state: Any, change: Callable[[str, Any], Any], path: str = "") -> Any:
    """A copy of a state with other leaves.

    Args:
        change: returns the new leaf for a path and a leaf; `LEFT` omits it from a dict, and
            becomes `None` in a list.
    """
    entries: dict[Any, Any] = {}
    for key, item in _items(state):
        where = f"{path}.{key}" if path else str(key)
        entries[key] = replaced(item, change, where) if is_inner(item) else change(where, item)
    if isinstance(state, Mapping):
        return {key: item for key, item in entries.items() if item is not LEFT}
    items = [None if item is LEFT else item for item in entries.values()]
    return items if isinstance(state, list) else tuple(items)


def put(state: Any, values: Mapping[str, Any], path: str = "") -> Any:
    """Replace the leaves in `values`; dicts and lists are changed in place, tuples copied."""
    tuples = isinstance(state, tuple)
    into = list(state) if tuples else state
    for key, item in list(_items(into)):
        where = f"{path}.{key}" if path else str(key)
        new = put(item, values, where) if is_inner(item) else values.get(where, item)
        if new is not item:
            into[key] = new
    return tuple(into) if tuples else into


def _items(state: Any) -> Any:
    return state.items() if isinstance(state, Mapping) else enumerate(state)


def as_piece(path: str, x: Any) -> Any:
    """A `DTensor` as this rank's `Slice`, or `LEFT` outside its mesh; other leaves unchanged.

    Raises:
        ArgumentError: a `DTensor` of partial sums.
        DTypeError: an object with a state of its own.
    """
    if not isinstance(x, DTensor):
        if has_state(x):
            raise DTypeError.here(
                f"checkpoint: {path!r}: expected objects with state_dict at the top alone, got a "
                f"{type(x).__name__} below; give its state_dict()"
            )
        return x
    if any([isinstance(p, Partial) for p in x.placements]):
        raise ArgumentError.here(
            f"checkpoint: {path!r}: expected a DTensor of Shard and Replicate, got "
            f"{x.placements}; redistribute() it first"
        )
    if x.device_mesh.get_coordinate() is None:
        return LEFT
    place = own_place(x.shape, x.placements, x.device_mesh)
    return Slice(x.to_local(), x.shape, tuple([s.start for s in place]))
