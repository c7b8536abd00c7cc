"""Elements and rows of computed tensors, read and written without being recorded.

A loop such as `c[i] = a[i] + b[i]` reads numbers, computes a number and writes it: recording each
step took ten times as long. So `x[i]` of a computed tensor notes only where the element is, and the
sum of two such is a number (`weft.eager.functions.indexing.element_operator`). Both are tensors
whose fields are set when one of them is first read; then they are what recording gives, a view and
a leaf.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from weft.eager.functions.indexing.basic_index import Part, copied_part
from weft.eager.record.pending.global_mark import inferring
from weft.eager.record.pending.state import computing, trace
from weft.eager.tensor.dispatch import leaf
from weft.eager.tensor.tensor import Tensor
from weft.eager.tensor.view.view import View
from weft.ir.node import TensorType
from weft.runtime.flight import aloft, land_for

FLOAT32: Final = np.dtype(np.float32)
FLOAT64: Final = np.dtype(np.float64)
BOOL: Final = np.dtype(np.bool_)
INTEGERS: Final = tuple([np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)])
READABLE: Final = frozenset([d.type for d in (FLOAT32, FLOAT64, BOOL, *INTEGERS)] + [np.uint8])
"""Classes of NumPy's elements; others take the usual way."""
_INT: Final = frozenset([int])
_FLOAT32: Final = struct.Struct("f")
_new: Final = object.__new__


class Unfilled(Tensor):
    """A tensor whose fields are not set yet; its class becomes `Tensor` when they are."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __init_subclass__(cls) -> None:
        cls.__module__, cls.__name__, cls.__qualname__ = "weft", "Tensor", "Tensor"  # in messages

    def __getattr__(self, name: str) -> Any:
        with computing:
            kind: Any = type(self)
            if kind is not Tensor:  # no other thread has filled it
                self.fill()
                self.__class__ = Tensor  # type: ignore[assignment]
                del self.source, self.place
        return getattr(self, name)

    def fill(self) -> None:
        """Set the fields."""
        raise NotImplementedError


class Row(Unfilled):
    """`x[i]` or `x[i, j]` of a computed tensor that has more axes.

    Fields:
        source: the tensor, which is no view.
        place: the integers, in a tuple.
        flows: whether gradients may flow, as of `View`.
    """

    __slots__ = ()

    def fill(self) -> None:
        """See `Unfilled`."""
        base, key, flows = self.source, self.place, self.flows
        part = Part(key if type(key) is tuple else (key,))
        version, lazy, now = base.version, base.shown, trace.now
        if base.window is None and lazy.array is not None and not lazy.tracked:
            found = copied_part(lazy, part.entries)  # also while a function is traced
        else:
            before, now.grad_mode = now.grad_mode, flows
            try:
                found = part.take(base.lazy)
            finally:
                now.grad_mode = before
        view = View(base, part, version)
        view.flows = flows
        self.adopt(found)
        self.look(view)


class Number(Unfilled):
    """A tensor of rank 0."""

    __slots__ = ()

    def number(self) -> tuple[Any, np.dtype[Any]] | None:
        """The number and its dtype; `None` if it takes more than reading it."""
        raise NotImplementedError

    def write(self, result: Scalar) -> bool:
        """Change the number in place, if that is all it takes."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        item = self.item()
        return item if type(item) is int else Tensor.__index__(self)


class Element(Number):
    """An element of a computed tensor; its fields are those of `Row`, `place` may be an integer."""

    __slots__ = ()
    fill = Row.fill

    def number(self) -> tuple[Any, np.dtype[Any]] | None:
        """See `Number`."""
        base = self.source
        lazy = base.shown
        array = lazy.array
        if array is None or base.window is not None or (lazy.tracked and trace.now.grad_mode):
            return None
        if aloft:
            land_for(id(array))
        return array.item(self.place), array.dtype

    def write(self, result: Scalar) -> bool:
        """See `Number`."""
        return put_element(self.source, self.place, result)

    def item(self) -> Any:
        """See `Tensor.item`."""
        base = self.source
        array = base.shown.array
        if array is None or base.window is not None:
            return Tensor.item(self)
        if aloft:
            land_for(id(array))
        return array.item(self.place)


class Scalar(Number):
    """A number that was calculated.

    Fields:
        source: its dtype.
        place: the number, not yet rounded to float32.
    """

    __slots__ = ()

    def fill(self) -> None:
        """See `Unfilled`."""
        self.adopt(leaf(np.array(self.place, self.source)))
        if inferring.used:
            self.inferred = False  # wherever it is filled

    def number(self) -> tuple[Any, np.dtype[Any]]:
        """See `Number`."""
        return self.item(), self.source

    def write(self, result: Scalar) -> bool:
        """See `Number`."""
        if self.source is not result.source:
            return False
        self.place = result.place
        return True

    def item(self) -> Any:
        """See `Tensor.item`."""
        return rounded(self.place) if self.source is FLOAT32 else self.place


def scalar(number: Any, dtype: np.dtype[Any]) -> Scalar:
    """A tensor of rank 0 of a number that is this dtype's once it is rounded."""
    found = _new(Scalar)
    found.source, found.place = dtype, number
    return found


def rounded(number: float) -> float:
    """A number as float32 holds it.

    Raises:
        OverflowError: it is too large.
    """
    return _FLOAT32.unpack(_FLOAT32.pack(number))[0]


def _where(x: Any, key: Any) -> tuple[Tensor, Any, bool] | None:
    """Where `x[key]` is, if integers alone tell it.

    Returns:
        A tensor with memory of its own, integers within it, and whether gradients may flow.
    """
    if type(key) is not int:
        key = _integers(key)
        if key is None:
            return None
    kind = type(x)
    if kind is Row:
        outer, base, flows = x.place, x.source, x.flows
    elif kind is Element or kind is Scalar or x.kind is not Tensor:
        return None
    else:
        view = x.window
        if view is None:
            return x, key, True
        if type(view.lens) is not Part or not _INT.issuperset(map(type, view.lens.entries)):
            return None
        outer, base, flows = view.lens.entries, view.base, view.flows
    if base.window is not None or base.kind is not Tensor:
        return None
    return base, (*outer, *key) if type(key) is tuple else (*outer, key), flows


def _integers(key: Any) -> Any:
    """A subscript as integers; `None` if it is anything else."""
    kind = type(key)
    if kind is tuple and key and _INT.issuperset(map(type, key)):
        return key
    found = key.number() if kind is Element or kind is Scalar else None
    return found[0] if found is not None and found[1] in INTEGERS else None


def element(x: Tensor, key: Any) -> Any:
    """`x[key]` as an `Element` or `Row`; `None` if it is none."""
    base, place, flows, now = x, key, True, trace.now
    if type(key) is not int or type(x) is not Tensor or x.window is not None:  # a quick no
        where = _where(x, key)
        if where is None:
            return None
        base, place, flows = where
    if now.depth or now.inspect is not None or now.duals:
        return None
    lazy = base.shown
    array = lazy.array
    if array is None or type(lazy.type) is not TensorType:
        return None
    try:
        kind = type(array[place])
    except IndexError:
        return None
    if kind in READABLE:
        found = _new(Element)
    elif kind is np.ndarray:
        found = _new(Row)
        place = place if type(place) is tuple else (place,)
    else:
        return None
    found.source, found.place, found.flows = base, place, flows and now.grad_mode
    base.views += 1
    return found


def _given(value: Any) -> tuple[Any, np.dtype[Any] | None] | None:
    """A number and its dtype, if it has one; `None` if it takes more than reading it."""
    kind = type(value)
    if kind is Scalar:
        return value.place, value.source  # rounded where it is written
    if kind is Element:
        return value.number()
    return (value, None) if kind is float or kind is int else None


def put_element(x: Tensor, key: Any, value: Any) -> bool:
    """`x[key] = value`, if that writes a number to memory that nothing else reads."""
    base, place = x, key
    if type(key) is not int or type(x) is not Tensor or x.window is not None:  # a quick no
        where = _where(x, key)
        if where is None:
            return False
        base, place, _ = where
    own = type(value) is Element and value.source is base and value.place == place
    if own and not base.shown.tracked:
        return True  # at the end of `x[key] += 1`
    given = _given(value)
    if given is None:
        return False
    number, dtype = given
    if inferring.used and getattr(base, "inferred", False):
        return False
    with computing:
        array = base.own_memory()
        if array is None or (dtype is not None and dtype is not array.dtype):
            return False
        try:
            array[place] = number
        except IndexError:
            return False
        base.touch()
    return True
