"""Elements of computed tensors, read and written without being recorded.

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
from weft.eager.record.global_mark import inferring
from weft.eager.record.state import computing, trace
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
    """A tensor of rank 0 whose fields are not set yet; its class becomes `Tensor` when they are."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        self.fill()
        return getattr(self, name)

    def fill(self) -> None:
        """Set the fields, unless another thread has done so."""
        raise NotImplementedError

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


class Element(Unfilled):
    """An element of a tensor that was computed when `x[i]` was called.

    Fields:
        source: the tensor.
        place: the key.
        flows: the grad mode, as of `View`.
    """

    __slots__ = ()

    def fill(self) -> None:
        """See `Unfilled`."""
        with computing:
            if type(self) is not Element:
                return
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
            self.__class__ = Tensor  # type: ignore[assignment]
            del self.source, self.place, self.flows

    def number(self) -> tuple[Any, np.dtype[Any]] | None:
        """See `Unfilled`."""
        base = self.source
        lazy = base.shown
        array = lazy.array
        if array is None or lazy.tracked or base.window is not None:
            return None
        if aloft:
            land_for(id(array))
        return array.item(self.place), array.dtype

    def write(self, result: Scalar) -> bool:
        """See `Unfilled`."""
        return put_element(self.source, self.place, result)

    def item(self) -> Any:
        """See `Tensor.item`."""
        base = self.source
        array = base.shown.array
        if array is None or base.window is not None:
            self.fill()
            return self.item()
        if aloft:
            land_for(id(array))
        return array.item(self.place)


class Scalar(Unfilled):
    """A number that was calculated.

    Fields:
        source: its dtype.
        place: the number, not yet rounded to float32.
    """

    __slots__ = ()

    def fill(self) -> None:
        """See `Unfilled`."""
        with computing:
            if type(self) is Scalar:
                self.adopt(leaf(np.array(self.place, self.source)))
                if inferring.used:
                    self.inferred = False  # wherever it is filled
                self.__class__ = Tensor  # type: ignore[assignment]
                del self.source, self.place

    def number(self) -> tuple[Any, np.dtype[Any]]:
        """See `Unfilled`."""
        return self.item(), self.source

    def write(self, result: Scalar) -> bool:
        """See `Unfilled`."""
        self.place = result.place
        return self.source is result.source

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


def _place(key: Any) -> Any:
    """A subscript as integers; `None` if it is anything else."""
    kind = type(key)
    if kind is tuple and _INT.issuperset(map(type, key)):
        return key
    found = key.number() if kind is Element or kind is Scalar else None
    return found[0] if found is not None and found[1] in INTEGERS else None


def element(x: Tensor, key: Any) -> Element | None:
    """`x[key]`, if it is an element of a computed tensor with memory of its own."""
    if type(key) is not int:
        key = _place(key)
        if key is None:
            return None
    lazy, now = x.shown, trace.now
    array = lazy.array
    if array is None or lazy.tracked or x.window is not None or type(lazy.type) is not TensorType:
        return None
    if now.depth or now.inspect is not None or inferring.used:
        return None
    try:
        if type(array[key]) not in READABLE:
            return None
    except IndexError:
        return None
    found = _new(Element)
    found.source, found.place, found.flows = x, key, now.grad_mode
    x.views += 1
    return found


def put_element(x: Tensor, key: Any, value: Any) -> bool:
    """`x[key] = value`, if that writes a number to memory that nothing else reads."""
    if type(key) is not int:
        key = _place(key)
        if key is None:
            return False
    kind, dtype = type(value), None
    if kind is Scalar:
        value, dtype = value.place, value.source
    elif kind is Element:
        if value.source is x and value.place == key and not x.shown.tracked:
            return True  # at the end of `x[key] += 1`
        found = value.number()
        if found is None:
            return False
        value, dtype = found
    elif kind is not float and kind is not int:
        return False
    with computing:
        array = None if inferring.used else x.own_memory()
        if array is None or (dtype is not None and dtype is not array.dtype):
            return False
        try:
            array[key] = value
        except IndexError:
            return False
        x.touch()
    return True
