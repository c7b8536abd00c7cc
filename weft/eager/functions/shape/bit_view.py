"""Views that reinterpret memory: parts of complex numbers, and other dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from weft.eager.record.call.plan import op_plan
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import lazy_of, leaf, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.view import Array
from weft.eager.tensor.view.view_transform import apply, placed, show
from weft.errors import DTypeError
from weft.ir.dtype import DType, bool_
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import REGISTRY, catalogue

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

BITCAST: Final = REGISTRY["bitcast"]


def _half(x: Value, *, imaginary: bool) -> Value:
    return catalogue.imag(x) if imaginary else catalogue.real(x)


def _with_half(x: Value, part: Value, *, imaginary: bool) -> Value:
    part = catalogue.broadcast_to(part, shape=known(x.shape))
    if imaginary:
        return catalogue.complex(catalogue.real(x), part)
    return catalogue.complex(part, catalogue.imag(x))


@dataclass(frozen=True, slots=True)
class Half:
    """The real or the imaginary parts of complex numbers."""

    imaginary: bool
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        size = base.dtype.itemsize // 2
        return base.view([("real", f"V{size}"), ("imag", f"V{size}")])[
            "imag" if self.imaginary else "real"
        ]

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(_half, (base,), imaginary=self.imaginary)

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(_with_half, (base, part), imaginary=self.imaginary)


def _pairs(x: Value) -> Value:
    return catalogue.stack(catalogue.real(x), catalogue.imag(x), axis=-1)


def _paired(x: Value) -> Value:
    return catalogue.complex(*catalogue.unstack.all(x, count=2, axis=-1))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Complex numbers as pairs of real ones along a new last axis."""

    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        pair = base[..., None].view([("part", f"V{base.dtype.itemsize // 2}", (2,))])["part"]
        return pair[..., 0, :]

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(_pairs, (base,))

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(_paired, (part,))


@dataclass(frozen=True, slots=True)
class Paired:
    """Pairs of real numbers along the last axis as complex ones."""

    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        return base.view(f"V{base.dtype.itemsize * 2}")[..., 0]

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(_paired, (base,))

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        return apply(_pairs, (part,))


@dataclass(frozen=True, slots=True)
class Bits:
    """The same bits as another dtype; no gradient flows through it.

    Cases without an operation are computed at once: dtypes of another size, bool, complex.
    """

    dtype: DType
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        return base.view(f"V{self.dtype.size}")

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return _cast(base, self.dtype)

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        return _cast(part, base.type.dtype)


def _cast(x: Lazy, to: DType) -> Lazy:
    """The bits of a value as another dtype."""
    old = x.type.dtype
    if old.size == to.size and not {old.kind, to.kind} & {"b", "c"}:
        before, trace.now.grad_mode = trace.now.grad_mode, False
        try:
            return trace.now.record(op_plan(BITCAST, (x.type,), {"dtype": to}), (x,))[0]
        finally:
            trace.now.grad_mode = before
    return leaf(np.array(array_of(x), order="C").view(to.numpy), x)


def view_bits(x: Any, dtype: DType) -> Tensor:
    """A view of the bits as another dtype.

    Raises:
        DTypeError: the dtype has another size, and the last axis cannot be split or joined.
    """
    tensor: Any = x if isinstance(x, Handle) else wrap(lazy_of(x))
    old = tensor.dtype
    if old.size != dtype.size:
        _check_last(tensor, old, dtype)
    if dtype is bool_ and old is not bool_ and tensor.array.view(np.uint8).max(initial=0) > 1:
        raise DTypeError.here("view: bits other than 0 and 1 are no booleans")
    return show(tensor, Bits(dtype))


def _check_last(x: Any, old: DType, new: DType) -> None:
    """Refuse an axis whose elements cannot be split or joined."""
    _, there, start = placed(x)
    ratio = new.size // old.size
    strides = [n // old.size for n in there.strides]
    if not there.ndim:
        text = "self.dim() cannot be 0"
    elif strides[-1] != 1 and there.size:
        text = f"self.stride(-1) must be 1, got {strides[-1]}"
    elif ratio > 1 and there.shape[-1] % ratio:
        text = f"self.size(-1) must be divisible by {ratio}, got {there.shape[-1]}"
    elif ratio > 1 and (start % new.size or any(n % ratio for n in strides[:-1])):
        text = f"self.storage_offset() and self.stride() must be divisible by {ratio}"
    else:
        return
    raise DTypeError.here(f"view: to show {old} as {new}, which has another size, {text}")
