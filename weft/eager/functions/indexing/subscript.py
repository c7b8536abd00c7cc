"""`x[key]` and `x[key] = value`: NumPy's indexing on tensors.

Integers and slices give views; index arrays and masks copy. A mask's values decide the shape of the
result, so masks are computed and read.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

import numpy as np

from weft.eager.functions.indexing.basic_index import Part, lens_of
from weft.eager.functions.indexing.element import element, put_element
from weft.eager.functions.indexing.put_at_once import put_at_once
from weft.eager.functions.recall.memory import remembering
from weft.eager.record.call.placed_type import device_of
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.pending.state import computing, trace
from weft.eager.tensor.argument import check_same_type
from weft.eager.tensor.device import moved
from weft.eager.tensor.dispatch import converted, lazy_of, leaf, record, recorded
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.scalar import number
from weft.eager.tensor.tensor import Tensor
from weft.eager.tensor.view.inplace import check_writable
from weft.eager.tensor.view.view import View
from weft.eager.tensor.view.view_transform import show
from weft.errors import DTypeError, OutOfRangeError, SubscriptError
from weft.ir.dtype import bool_, uint8
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ir.shape import show as text
from weft.ops.declaration import REGISTRY
from weft.ops.indexing import assignment, subscript
from weft.ops.refusal import refusing
from weft.ops.warning import warn

RESHAPE: Final = REGISTRY["reshape"]
_BASIC: Final = (int, slice, type(None), type(Ellipsis))
_ARRAY: Final = "array"  # stands for an index array in a key of the program's structure


@remembering
def get(x: Handle, key: Any) -> Tensor:
    """`x[key]`.

    Raises:
        OutOfRangeError: an integer outside its dimension, or more subscripts than dimensions.
        SubscriptError: an invalid subscript.
    """
    entries = _entries(key, x.rules is TORCH)
    if _is_basic(entries):
        if x.is_available:
            return show(x, Part(entries))
        return show(x, lens_of(x.lazy, entries))
    if x.rules is TORCH and _is_split(entries):
        part, entries = _without_integers(x, entries)
        return get(part, entries)
    if any([_is_scalar_mask(e) for e in entries]):
        part, entries = _without_scalar_masks(x, entries)
        return get(part, entries)
    lazy = x.lazy
    arrays, static = _advanced(lazy, entries)
    if _is_picked(x, entries):
        return show(x, Picked(tuple(arrays), static))
    return _taken.on(x, lazy, *arrays, key=static)


def put(x: Handle, key: Any, value: Any) -> None:
    """`x[key] = value`, where the value broadcasts to `x[key]`.

    Raises:
        GradientError: `x` is a leaf that requires grad, outside `no_grad()`.
        OutOfRangeError, ShapeError, DTypeError: as for `get`, or the value does not fit.
    """
    with computing:  # other threads may assign to other elements
        _put(x, key, value)


def _put(x: Handle, key: Any, value: Any) -> None:
    check_writable(x, "x[...] = value")
    entries = _entries(key, x.rules is TORCH)
    if _is_basic(entries):
        if _is_own_view(x, entries, value) or put_at_once(x, entries, value):
            return
        View(x, lens_of(x.lazy, entries)).put(_update(x, value))
        trace.now.keep_up()
        return
    if len(entries) == 1 and _is_mask(entries[0]) and np.ndim(_plain(value)) == 0:
        mask = lazy_of(entries[0])
        if known(mask.type.shape) == known(x.lazy.type.shape)[: len(known(mask.type.shape))]:
            x.replace(_masked.record((x, mask, _update(x, value)), {})[0])
            return
    if x.rules is TORCH and _is_split(entries):
        part, entries = _without_integers(x, entries)
        return put(part, entries, value)
    if any([_is_scalar_mask(e) for e in entries]):
        part, entries = _without_scalar_masks(x, entries)
        return put(part, entries, value)
    arrays, static = _advanced(x.lazy, entries)
    if _is_picked(x, entries):
        View(x, Picked(tuple(arrays), static)).put(_update(x, value))
        return
    if not (any([_is_mask(e) for e in entries]) and np.size(_plain(value)) == 1):
        check_same_type("x[...] = value", x, value)
    x.replace(_updated.record((x, _update(x, value), *arrays), {"key": static})[0])


def accumulate(x: Handle, key: Any, value: Any) -> None:
    """`x[key] += value`; repeated indices accumulate."""
    check_writable(x, "index_put_")
    arrays, static = _advanced(x.lazy, _entries(key, x.rules is TORCH))
    inputs = (x, _update(x, value), *arrays)
    x.replace(_updated.record(inputs, {"key": static, "combine": "add"})[0])


def updated(x: Handle, key: Any, value: Any, combine: str = "set") -> Tensor:
    """`x` after `x[key] = value`, or `add`, `multiply`, `max` or `min` of what was there, anew."""
    arrays, static = _advanced(x.lazy, _entries(key, False))
    return _updated.on(x, x, _update(x, value), *arrays, key=static, combine=combine)


# Reading keys


def _entries(key: Any, torch: bool) -> tuple[Any, ...]:
    """The subscripts, with NumPy integers and scalar tensors as Python integers."""
    if type(key) is int:
        return (key,)
    if type(key) is slice:
        return (_bounds(key),)
    if torch and isinstance(key, list) and _is_sequence(cast("list[Any]", key)):
        text = (
            "a list of subscripts is a tuple of them here, as in PyTorch, where that is deprecated"
        )
        warn(f"{text}; use x[tuple(...)] or a tensor")
        key = tuple(cast("list[Any]", key))
    given = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    found: list[Any] = []
    for e in given:  # no comprehension: its frame would shift the line that a warning names
        found.append(_mask_of(e) if torch and isinstance(e, Handle) else e)
    return tuple([e if type(e) in _BASIC and type(e) is not slice else _entry(e) for e in found])


def _is_sequence(key: list[Any]) -> bool:
    """Whether PyTorch treats a list as a tuple of subscripts instead of an index array."""
    kinds = (Handle, list, tuple, slice, np.ndarray, type(None), type(Ellipsis))
    return len(key) < 32 and any([isinstance(e, kinds) for e in key])


def _mask_of(entry: Any) -> Any:
    """A uint8 tensor as a mask, as in PyTorch."""
    if entry.lazy.type.dtype is not uint8:
        return entry
    text = "a uint8 tensor is a mask here, as in PyTorch, where that is deprecated; use bool()"
    warn(text)
    return entry.bool()


def _entry(entry: Any) -> Any:
    if isinstance(entry, slice):
        return _bounds(entry)
    if isinstance(entry, Handle):
        kind = entry.lazy.type
        # A traced function reads it at each call, and a branch that is not taken does not at all.
        computed = entry.lazy.array is not None and not trace.now.depth
        if computed and kind.shape == () and kind.dtype.is_integer:
            return int(array_of(entry.lazy))
        return entry
    if isinstance(entry, bool | np.bool_):
        return np.array(entry)
    if isinstance(entry, np.integer):
        return int(entry)
    if isinstance(entry, range):
        return np.array(entry, np.int64)
    if isinstance(entry, list | tuple):
        found = [array_of(e.lazy) if isinstance(e, Handle) else e for e in cast("Any", entry)]
        array = np.array(found)
        return array if array.size else array.astype(np.int64)
    return entry


def _is_picked(x: Handle, entries: tuple[Any, ...]) -> bool:
    """Whether all subscripts are integers and slices, and some integers are not computed yet."""
    return x.rules is TORCH and all([_is_integer(e) for e in entries])


def _is_split(entries: tuple[Any, ...]) -> bool:
    """Whether integers are mixed with arrays and slices: the place of new axes is ambiguous."""
    kinds = {
        _BASIC.index(type(e)) if type(e) in _BASIC else 0 if _is_integer(e) else _ARRAY
        for e in entries
    }
    return 0 in kinds and _ARRAY in kinds and len(kinds) > 2


def _without_integers(x: Handle, entries: tuple[Any, ...]) -> tuple[Handle, tuple[Any, ...]]:
    """The part of `x` that integers select, and the other subscripts: integers are applied first.

    In PyTorch integers are no index arrays, so they do not affect where the axes of those go.
    """
    first: list[Any] = []
    for e in entries:
        if e is ... or _is_number(e):
            first.append(e)
        elif e is not None:
            first += [slice(None)] * (e.ndim if _is_mask(e) else 1)
    rest = tuple([e for e in entries if not _is_number(e)])
    return get(x, tuple(first)), rest


def _is_basic(entries: tuple[Any, ...]) -> bool:
    return all([type(e) in _BASIC for e in entries])


def _is_number(entry: Any) -> bool:
    """Whether it is an integer, or a scalar tensor of one."""
    return type(entry) is int or (isinstance(entry, Handle) and _is_integer(entry))


def _is_integer(entry: Any) -> bool:
    """Whether it is a scalar integer tensor, or no array."""
    if isinstance(entry, Handle):
        kind = entry.lazy.type
        return kind.shape == () and kind.dtype.is_integer
    return type(entry) in _BASIC


def _is_mask(entry: Any) -> bool:
    if isinstance(entry, Handle):
        return entry.lazy.type.dtype is bool_
    return isinstance(entry, np.ndarray) and entry.dtype.kind == "b"


_PLAIN: Final = frozenset((int, type(None)))


def _bounds(entry: slice) -> slice:
    """A slice whose bounds are Python integers."""
    parts = (entry.start, entry.stop, entry.step)
    if _PLAIN.issuperset(map(type, parts)):
        return entry
    try:
        return slice(*[None if v is None else operator.index(v) for v in parts])
    except TypeError:
        raise SubscriptError.here(f"x[...]: expected whole bounds, got {entry}") from None


# Arrays of indices and masks


def _is_scalar_mask(entry: Any) -> bool:
    return _is_mask(entry) and np.ndim(_plain(entry)) == 0


def _without_scalar_masks(x: Handle, entries: tuple[Any, ...]) -> tuple[Handle, tuple[Any, ...]]:
    """`x` with a new axis for each mask of rank 0, which becomes an array of one or no index."""
    first: list[Any] = []
    rest: list[Any] = []
    for e in entries:
        if e is None or e is ...:
            first.append(e)
        else:
            scalar = _is_scalar_mask(e)
            first += [None] if scalar else [slice(None)] * (_consumed((e,)))
        if _is_scalar_mask(e):
            rest.append(np.zeros(int(array_of(lazy_of(e))), np.int64))
        else:
            rest.append(slice(None) if e is None else e)
    return get(x, tuple(first)), tuple(rest)


@recorded
def _taken(x: Value, *arrays: Value, key: tuple[Any, ...]) -> Value:
    return subscript.subscript(x, _key(key, arrays))


@recorded
def _updated(
    x: Value, value: Value, *arrays: Value, key: tuple[Any, ...], combine: str = "set"
) -> Value:
    return assignment.subscript_update(x, _key(key, arrays), value, combine)


@recorded
def _masked(x: Value, mask: Value, value: Value) -> Value:
    return assignment.subscript_update(x, mask, value)


def _key(key: tuple[Any, ...], arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The subscript for graph values or arrays, from its static part and the index arrays."""
    rest = iter(arrays)
    found = [next(rest) if e is _ARRAY else slice(*e) if isinstance(e, tuple) else e for e in key]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Picked:
    """A subscript with pending scalar tensors, as a lens."""

    arrays: tuple[Lazy, ...]
    key: tuple[Any, ...]
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        found = _key(self.key, [int(array_of(a)) for a in self.arrays])
        return base[found if ... in found else (*found, ...)]

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return _taken.record((base, *self.arrays), {"key": self.key})[0]

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        return _updated.record((base, part, *self.arrays), {"key": self.key})[0]


def _advanced(x: Lazy, entries: tuple[Any, ...]) -> tuple[list[Lazy], tuple[Any, ...]]:
    """Index arrays as values, and the rest of the subscript as a key of the program's structure."""
    arrays: list[Lazy] = []
    static: list[Any] = []
    dims = known(x.type.shape)
    named = _consumed(entries)
    if named > len(dims):
        raise OutOfRangeError.here(f"x[...]: expected at most {len(dims)} subscripts, got {named}")
    axis = 0
    for entry in entries:
        if _is_mask(entry):
            mask = array_of(lazy_of(entry))
            _check_mask(mask, dims, axis)
            positions = mask.nonzero()
            arrays += [leaf(p, x) for p in positions]
            static += [_ARRAY] * len(positions)
            axis += mask.ndim
            continue
        axis += len(dims) - named if entry is ... else entry is not None
        if isinstance(entry, slice):
            static.append((entry.start, entry.stop, entry.step))
        elif type(entry) in _BASIC:
            static.append(entry)
        else:
            arrays.append(moved(_indices(entry, dims), device_of(x.type)))  # wherever it is
            static.append(_ARRAY)
    _check_together(arrays)
    return arrays, tuple(static)


def _check_together(arrays: list[Lazy]) -> None:
    """Refuse index arrays that do not broadcast.

    Raises:
        OutOfRangeError: names the shapes.
    """
    shapes = [known(a.type.shape) for a in arrays]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(map(text, shapes))
        raise OutOfRangeError.here(
            f"x[...]: shape mismatch: indices of these shapes do not broadcast: {listed}"
        ) from None


def _consumed(entries: tuple[Any, ...]) -> int:
    """How many dimensions the subscripts besides `...` consume."""
    rest = [e for e in entries if e is not None and e is not ...]
    return sum([e.ndim if _is_mask(e) else 1 for e in rest])


def _indices(entry: Any, dims: tuple[int, ...]) -> Lazy:
    try:
        lazy = lazy_of(entry)
    except DTypeError:
        lazy = None
    if lazy is None or not lazy.type.dtype.is_integer:
        raise SubscriptError.here(
            "x[...]: expected integers, slices, '...', None, or tensors of integers or booleans, "
            f"got {entry!r}"
        )
    return lazy


def _check_mask(mask: Array, dims: tuple[int, ...], axis: int) -> None:
    part = dims[axis : axis + mask.ndim]
    # As in NumPy, an empty axis of the mask selects nothing.
    fits = [m in (0, d) for m, d in zip(mask.shape, part, strict=False)]
    if len(part) != mask.ndim or not all(fits):
        raise OutOfRangeError.here(
            f"x[mask]: expected a mask of shape {text(part)}, got {text(mask.shape)}"
        )


# Assignment


def _plain(value: Any) -> Any:
    """A value as NumPy takes it, to find its shape."""
    return np.empty(known(value.lazy.type.shape), bool) if isinstance(value, Handle) else value


def _update(x: Handle, value: Any) -> Lazy:
    """The assigned value, cast to the dtype of the tensor."""
    dtype = x.lazy.type.dtype
    if isinstance(value, bool | int | float | complex):
        return number(value, dtype, x.rules)
    lazy = converted(lazy_of(value), dtype)
    shape = known(lazy.type.shape)
    while len(shape) > len(known(x.lazy.type.shape)) and shape[0] == 1:
        shape = shape[1:]
    return lazy if shape == lazy.type.shape else record(RESHAPE, (lazy,), {"shape": shape})[0]


def _is_own_view(x: Handle, entries: tuple[Any, ...], value: Any) -> bool:
    """Whether `value` is `x[key]` itself, as at the end of `x[key] += 1`."""
    view = value.window if isinstance(value, Handle) else None
    if view is None or view.base is not x or view.is_stale():
        return False
    lens: Any = view.lens
    if isinstance(lens, Part):
        return lens.entries == entries
    return lens == lens_of(x.lazy, entries)


class Methods(Handle):
    """Subscripts."""

    def __getitem__(self, key: Any) -> Tensor:
        x: Any = self
        found = None if type(key) is slice else element(x, key)
        return get(x, key) if found is None else found

    def __setitem__(self, key: Any, value: Any) -> None:
        x: Any = self
        if not put_element(x, key, value):
            put(x, key, value)

    def __len__(self) -> int:
        return _length(self)

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[i] for i in range(_length(self))])

    def __reversed__(self) -> Tensor:
        tensor: Any = self
        return tensor.flip(0) if tensor.ndim else tensor.clone()

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, Handle | bool | int | float | complex | np.generic):
            raise DTypeError.here(f"in: expected a tensor or a number, got {type(value).__name__}")
        return bool((self.array == (value.array if isinstance(value, Handle) else value)).any())

    __contains__ = refusing(__contains__, "in")


def _length(x: Handle) -> int:
    dims = known(x.lazy.type.shape)
    if not dims:
        raise DTypeError.here("len: a tensor of shape () has no length")
    return dims[0]
