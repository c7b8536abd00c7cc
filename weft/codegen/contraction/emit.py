"""Small pieces that all contraction kernels write: bounds, conversions, copies."""

from __future__ import annotations

from weft.codegen.builder import Builder, Reg, integer, memory_type, vector
from weft.codegen.microkernel import first_lanes, load_masked, store_masked
from weft.codegen.target import Target
from weft.ir.dtype import DType


def fixed(value: Reg) -> int | None:
    """The number that an integer register holds, if it is a constant."""
    return int(value.text) if value.text.lstrip("-").isdigit() else None


def smaller(b: Builder, x: Reg, y: Reg | int) -> Reg:
    """The lesser of two `i64`."""
    y = integer(y) if isinstance(y, int) else y
    p, q = fixed(x), fixed(y)
    if p is not None and q is not None:
        return integer(min(p, q))
    return b.call("i64", "llvm.smin.i64", (x, y))


def subtract(b: Builder, x: Reg, y: Reg) -> Reg:
    """`x - y`, folded where both are constants."""
    p, q = fixed(x), fixed(y)
    if q is not None:
        return b.add(x, -q) if p is None else integer(p - q)
    return b.binary("sub nsw", x, y)


def divide(b: Builder, x: Reg, y: Reg) -> tuple[Reg, Reg]:
    """Quotient and remainder of two `i64` that are not negative."""
    p, q = fixed(x), fixed(y)
    if q == 1:
        return x, integer(0)
    if p is not None and q is not None:
        return integer(p // q), integer(p % q)
    quotient = b.binary("udiv", x, y)
    return quotient, subtract(b, x, b.mul(quotient, y))


def scaled(b: Builder, pointer: Reg, index: Reg, stride: Reg | int, size: int) -> Reg:
    """The address `index * stride` elements of `size` bytes after `pointer`."""
    return b.offset(pointer, b.mul(b.mul(index, stride), size))


def read(b: Builder, pointer: Reg, lanes: int, source: DType, to: DType, mask: Reg | None) -> Reg:
    """Load elements of `source` and widen them to `to`."""
    type_ = memory_type(source, lanes)
    if source is to:
        return load(b, type_, pointer, source.size, mask)
    bits = load(b, vector("i16", lanes), pointer, 2, mask)
    if source.name == "float16":
        half = b.emit(type_, f"bitcast {bits} to {type_}")
        wide = memory_type(to, lanes)
        return b.emit(wide, f"fpext {half} to {wide}")
    word, wide = vector("i32", lanes), memory_type(to, lanes)
    high = b.binary("shl", b.emit(word, f"zext {bits} to {word}"), splat_int(16, word))
    return b.emit(wide, f"bitcast {high} to {wide}")


def load(b: Builder, type_: str, pointer: Reg, align: int, mask: Reg | None) -> Reg:
    """Load a vector, or the lanes of `mask` with 0 elsewhere."""
    return b.load(type_, pointer, align) if mask is None else load_masked(b, type_, pointer, mask)


def write(b: Builder, value: Reg, pointer: Reg, to: DType, mask: Reg | None) -> None:
    """Round a value to the type `to` (half to even) and store it."""
    value = rounded(b, value, to)
    if mask is None:
        b.store(value, pointer, to.size)
    else:
        store_masked(b, value, pointer, mask)


def rounded(b: Builder, value: Reg, to: DType) -> Reg:
    """A float32 value rounded to half precision, as 16-bit words; other types as they are."""
    if to.size != 2 or not to.is_floating:
        return value
    lanes = int(value.type[1:].split(" x ")[0]) if value.type.startswith("<") else 1
    if to.name == "float16":
        half, word = memory_type(to, lanes), vector("i16", lanes)
        narrow = b.emit(half, f"fptrunc {value} to {half}")
        return b.emit(word, f"bitcast {narrow} to {word}")
    return _bfloat(b, value, lanes)


def _bfloat(b: Builder, value: Reg, lanes: int) -> Reg:
    """Round half to even by integer arithmetic: the instruction would flush small numbers to 0."""
    word = vector("i32", lanes)
    bits = b.emit(word, f"bitcast {value} to {word}")
    odd = b.binary("and", b.binary("lshr", bits, splat_int(16, word)), splat_int(1, word))
    up = b.binary("add", b.binary("add", bits, splat_int(0x7FFF, word)), odd)
    nan = b.compare("fcmp uno", value, value)
    quiet = b.binary("or", bits, splat_int(0x400000, word))
    chosen = b.emit(word, f"select {nan}, {quiet}, {up}")
    high = b.binary("lshr", chosen, splat_int(16, word))
    narrow = vector("i16", lanes)
    return b.emit(narrow, f"trunc {high} to {narrow}")


def splat_int(value: int, type_: str) -> Reg:
    """An integer constant in every lane."""
    if not type_.startswith("<"):
        return integer(value, type_)
    return Reg(type_, f"splat ({type_.split(' x ')[1][:-1]} {value})")


def copy_run(
    b: Builder, target: Target, source: Reg, to: Reg, count: Reg, dtypes: tuple[DType, DType]
) -> None:
    """Copy `count` neighbouring elements, widening from the first type to the second."""
    narrow, wide = dtypes
    lanes = target.lanes(wide.size)
    whole = b.binary("and", count, integer(-lanes))
    with b.loop(0, whole, lanes) as loop:
        value = read(b, b.offset(source, b.mul(loop.index, narrow.size)), lanes, narrow, wide, None)
        b.store(value, b.offset(to, b.mul(loop.index, wide.size)), wide.size)
    if target.masked:
        with b.when(b.compare("icmp slt", whole, count)):
            mask = first_lanes(b, subtract(b, count, whole), lanes)
            value = read(b, scaled(b, source, whole, 1, narrow.size), lanes, narrow, wide, mask)
            store_masked(b, value, scaled(b, to, whole, 1, wide.size), mask)
        return
    with b.loop(whole, count) as loop:
        value = read(b, b.offset(source, b.mul(loop.index, narrow.size)), 1, narrow, wide, None)
        b.store(value, b.offset(to, b.mul(loop.index, wide.size)), wide.size)
