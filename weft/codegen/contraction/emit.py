"""Code that all contraction kernels use: bounds, conversions, copies."""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.builder import Builder, Reg, constant, element, integer, vector
from weft.codegen.loop.convert import loaded, storage_type, stored
from weft.codegen.microkernel import first_lanes, load_masked, store_masked
from weft.codegen.target import Target
from weft.ir.dtype import DType


def fixed(value: Reg) -> int | None:
    """The value of an integer register, if it is a constant."""
    return int(value.text) if value.text.lstrip("-").isdigit() else None


def smaller(b: Builder, x: Reg, y: Reg | int) -> Reg:
    """The minimum of two `i64`."""
    y = integer(y) if isinstance(y, int) else y
    p, q = fixed(x), fixed(y)
    if p is not None and q is not None:
        return integer(min(p, q))
    return b.call("i64", "llvm.smin.i64", (x, y))


def larger(b: Builder, x: Reg, y: Reg | int) -> Reg:
    """The maximum of two `i64`."""
    y = integer(y) if isinstance(y, int) else y
    p, q = fixed(x), fixed(y)
    if p is not None and q is not None:
        return integer(max(p, q))
    return b.call("i64", "llvm.smax.i64", (x, y))


def subtract(b: Builder, x: Reg, y: Reg) -> Reg:
    """`x - y`, folded if both are constants."""
    p, q = fixed(x), fixed(y)
    if q is not None:
        return b.add(x, -q) if p is None else integer(p - q)
    return b.binary("sub nsw", x, y)


def divide(b: Builder, x: Reg, y: Reg) -> tuple[Reg, Reg]:
    """Quotient and remainder of two nonnegative `i64`."""
    p, q = fixed(x), fixed(y)
    if q == 1:
        return x, integer(0)
    if p is not None and q is not None:
        return integer(p // q), integer(p % q)
    quotient = b.binary("udiv", x, y)
    return quotient, subtract(b, x, b.mul(quotient, y))


def without(b: Builder, mask: Reg, other: Reg) -> Reg:
    """The lanes of `mask` that are not in `other`."""
    return b.emit(mask.type, f"select {other}, {mask.type} zeroinitializer, {mask}")


def scaled(b: Builder, pointer: Reg, index: Reg, stride: Reg | int, size: int) -> Reg:
    """The address `index * stride` elements of `size` bytes after `pointer`."""
    return b.offset(pointer, b.mul(b.mul(index, stride), size))


def read(b: Builder, pointer: Reg, lanes: int, source: DType, to: DType, mask: Reg | None) -> Reg:
    """Loads elements of `source` (with `mask`, those lanes and 0 elsewhere), widened to `to`."""
    type_ = storage_type(source, lanes)
    if mask is None:
        value = b.load(type_, pointer, source.size)
    elif type_.endswith("half>"):
        bits = load_masked(b, vector("i16", lanes), pointer, mask)
        value = b.emit(type_, f"bitcast {bits} to {type_}")
    else:
        value = load_masked(b, type_, pointer, mask)
    return value if source is to else loaded(b, value, source)


def write(b: Builder, value: Reg, pointer: Reg, to: DType, mask: Reg | None) -> None:
    """Rounds a value to the type `to` (half to even) and stores it, or the lanes of `mask`."""
    value = stored(b, value, to)
    if mask is None:
        b.store(value, pointer, to.size)
        return
    if to.name == "float16":
        words = value.type.replace("half", "i16")
        value = b.emit(words, f"bitcast {value} to {words}")
    store_masked(b, value, pointer, mask)


def first(b: Builder, value: Reg) -> Reg:
    """Lane 0 of a vector."""
    return b.emit(element(value.type), f"extractelement {value}, i64 0")


def weave(b: Builder, run: Reg, apart: Reg | None, lanes: int, mask: Reg | None) -> Reg:
    """Interleaves 16-bit elements of a run and of the one `apart` bytes after it, as 32-bit lanes.

    Without `apart`, zeros replace the other run.
    """
    word = vector("i16", lanes)

    def load(place: Reg) -> Reg:
        return b.load(word, place, 2) if mask is None else load_masked(b, word, place, mask)

    even = load(run)
    odd = constant(0, word) if apart is None else load(b.offset(run, apart))
    if lanes == 1:
        low, high = (b.emit("i32", f"zext {half} to i32") for half in (even, odd))
        pair = b.binary("or", low, b.binary("shl", high, integer(16, "i32")))
        return b.emit("float", f"bitcast {pair} to float")
    picked = ", ".join(f"i32 {i // 2 + i % 2 * lanes}" for i in range(2 * lanes))
    both = vector("i16", 2 * lanes)
    pairs = b.emit(both, f"shufflevector {even}, {odd}, <{2 * lanes} x i32> <{picked}>")
    return b.emit(vector("float", lanes), f"bitcast {pairs} to {vector('float', lanes)}")


Load = Callable[[Reg, Reg, int, DType, Reg | None], Reg]
"""Loads lanes from an address: run number, count, type and mask are given."""


def copy_run(
    b: Builder,
    target: Target,
    source: Reg,
    to: Reg,
    count: Reg,
    dtypes: tuple[DType, DType],
    load: Load | None = None,
) -> None:
    """Copies `count` contiguous elements, widening from the first type to the second."""
    narrow, wide = dtypes
    lanes = target.lanes(wide.size)

    def take(index: Reg, lanes: int, mask: Reg | None) -> Reg:
        place = scaled(b, source, index, 1, narrow.size)
        if load is not None:
            return load(place, index, lanes, wide, mask)
        return read(b, place, lanes, narrow, wide, mask)

    whole = b.binary("and", count, integer(-lanes))
    with b.loop(0, whole, lanes) as loop:
        value = take(loop.index, lanes, None)
        b.store(value, b.offset(to, b.mul(loop.index, wide.size)), wide.size)
    if target.masked:
        with b.when(b.compare("icmp slt", whole, count)):
            mask = first_lanes(b, subtract(b, count, whole), lanes)
            value = take(whole, lanes, mask)
            store_masked(b, value, scaled(b, to, whole, 1, wide.size), mask)
        return
    with b.loop(whole, count) as loop:
        value = take(loop.index, 1, None)
        b.store(value, b.offset(to, b.mul(loop.index, wide.size)), wide.size)
