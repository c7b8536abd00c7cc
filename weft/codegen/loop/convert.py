"""Between element types: registers and memory, casts, and rounding to half precision.

In registers a boolean is `i1`, and float16 and bfloat16 are `float`. Rounding to bfloat16 uses
integer arithmetic, because AVX512_BF16's instruction flushes subnormal numbers to zero.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.builder import Builder, Reg, constant, element, vector
from weft.ir.dtype import DType

_REGISTER: Final = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "float16": "float", "bfloat16": "float", "float32": "float", "float64": "double",
}  # fmt: skip


def register_type(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type of `lanes` elements in registers."""
    return vector(_REGISTER[dtype.name], lanes)


def storage_type(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type in which elements are loaded and stored."""
    if dtype.name == "bfloat16":
        return vector("i16", lanes)
    if dtype.name == "float16":
        return vector("half", lanes)
    return vector("i8" if dtype.kind == "b" else _REGISTER[dtype.name], lanes)


def lanes_of(type_: str) -> int:
    """Lanes of an LLVM type."""
    return int(type_[1:].split(" x ")[0]) if type_.startswith("<") else 1


def like(x: Reg, scalar: str) -> str:
    """The type with elements `scalar` and as many lanes as `x`."""
    return vector(scalar, lanes_of(x.type))


def number(x: Reg, value: float) -> Reg:
    """A constant of the type of `x`."""
    return constant(value, x.type)


def convert(f: Builder, opcode: str, x: Reg, scalar: str) -> Reg:
    """A conversion instruction such as `zext`, to elements of type `scalar`."""
    type_ = like(x, scalar)
    return x if type_ == x.type else f.emit(type_, f"{opcode} {x} to {type_}")


def choose(f: Builder, condition: Reg, x: Reg, y: Reg) -> Reg:
    """`x` if the condition holds, else `y`, lane by lane."""
    return f.emit(x.type, f"select {condition}, {x}, {y}")


def intrinsic(f: Builder, name: str, *args: Reg, type_: str = "") -> Reg:
    """Calls an overloaded LLVM intrinsic on operands of one type."""
    mangled = name + "." + mangle(args[0].type)
    if type_:
        mangled = f"{name}.{mangle(type_)}.{mangle(args[0].type)}"
    return f.call(type_ or args[0].type, mangled, args)


def mangle(type_: str) -> str:
    """A type as it appears in the name of an overloaded intrinsic."""
    scalar = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}
    name = scalar.get(element(type_), element(type_))
    lanes = lanes_of(type_)
    return name if lanes == 1 else f"v{lanes}{name}"


def loaded(f: Builder, x: Reg, dtype: DType) -> Reg:
    """Converts a loaded value to its register type."""
    if dtype.kind == "b":
        return f.compare("icmp ne", x, number(x, 0))
    if dtype.name == "float16":
        wide = convert(f, "fpext", x, "float")
    elif dtype.name == "bfloat16":
        bits = f.binary("shl", convert(f, "zext", x, "i32"), constant(16, like(x, "i32")))
        wide = convert(f, "bitcast", bits, "float")
    else:
        return x
    f.narrow[wide.text] = x
    return wide


def stored(f: Builder, x: Reg, dtype: DType) -> Reg:
    """Converts a register to its memory type, rounding to nearest even in half precision.

    A value that was only widened is not rounded again: shape operations, casts to half precision.
    """
    narrow = f.narrow.get(x.text)
    if narrow is not None and narrow.type == storage_type(dtype, lanes_of(x.type)):
        return narrow
    if dtype.kind == "b":
        return convert(f, "zext", x, "i8")
    if dtype.name == "float16":
        return convert(f, "fptrunc", x, "half")
    if dtype.name == "bfloat16":
        return _bfloat_bits(f, x)
    return x


def _bfloat_bits(f: Builder, x: Reg) -> Reg:
    bits = convert(f, "bitcast", x, "i32")
    odd = f.binary("and", f.binary("lshr", bits, number(bits, 16)), number(bits, 1))
    rounded = f.binary("add", f.binary("add", bits, number(bits, 0x7FFF)), odd)
    quiet = f.binary("or", bits, number(bits, 0x400000))
    bits = choose(f, f.compare("fcmp uno", x, x), quiet, rounded)
    return convert(f, "trunc", f.binary("lshr", bits, number(bits, 16)), "i16")


def rounded(f: Builder, x: Reg, dtype: DType) -> Reg:
    """A `float` or `double` register rounded to a half-precision type; the result is `float`."""
    if element(x.type) == "double":
        x = _to_odd(f, x)
    return loaded(f, stored(f, x, dtype), dtype)


def _to_odd(f: Builder, x: Reg) -> Reg:
    """double -> float, rounded to odd, so that rounding again is exact."""
    y = convert(f, "fptrunc", x, "float")
    back = convert(f, "fpext", y, "double")
    above = f.compare("fcmp ogt", intrinsic(f, "llvm.fabs", back), intrinsic(f, "llvm.fabs", x))
    bits = convert(f, "bitcast", y, "i32")
    down = f.binary("sub", bits, convert(f, "zext", above, "i32"))
    inexact = f.compare("fcmp one", back, x)
    odd = f.binary("or", down, convert(f, "zext", inexact, "i32"))
    return convert(f, "bitcast", odd, "float")


def cast(f: Builder, x: Reg, source: DType, target: DType) -> Reg:
    """`x` of type `source` as `target`: float to integer saturates, NaN becomes 0."""
    if target.kind == "b":
        compare = "fcmp une" if source.is_floating else "icmp ne"
        return x if source.kind == "b" else f.compare(compare, x, number(x, 0))
    scalar = register_type(target)
    if target.is_floating:
        return _to_float(f, x, source, target, scalar)
    if source.is_floating:
        name = "llvm.fptosi.sat" if target.kind == "i" else "llvm.fptoui.sat"
        return intrinsic(f, name, x, type_=like(x, scalar))
    if target.size > source.size or source.kind == "b":
        return convert(f, "sext" if source.kind == "i" else "zext", x, scalar)
    return convert(f, "trunc", x, scalar)


def _to_float(f: Builder, x: Reg, source: DType, target: DType, scalar: str) -> Reg:
    if not source.is_floating:
        x = convert(f, "sitofp" if source.kind == "i" else "uitofp", x, scalar)
    elif target.size == 2:
        return rounded(f, x, target)
    elif scalar == "double":
        return convert(f, "fpext", x, scalar)
    elif element(x.type) == "double":
        return convert(f, "fptrunc", x, scalar)
    return rounded(f, x, target) if target.size == 2 else x
