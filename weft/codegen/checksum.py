"""A kernel that computes a 32-bit CRC by carry-less multiplication, 16 to 256 bytes at once.

The bytes of a message are a polynomial over GF(2), whose highest coefficient is the lowest bit of
the first byte; the checksum is its remainder modulo some polynomial P. Bytes that come T bits
before others may be added to them after multiplication by x^T mod P. So a few vectors fold the
message: each is multiplied and added to the next bytes, and at the end the vectors are added.

A lane of 128 bits is two words; the first is multiplied by x^(T + 64), the other by x^T. The
instruction's product has one factor x too many, which the constants compensate.

Source: Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ" (Intel, 2009).
"""

from __future__ import annotations

import string
from typing import Final

from weft.passes.launch import SYMBOL, Kernel

ACCUMULATORS: Final = 4  # vectors: a multiplication takes 6 to 8 cycles; one can start every cycle
_DEGREE: Final = 32


def table(polynomial: int) -> list[int]:
    """The state after each byte value, from state 0; `polynomial` is reflected."""
    found: list[int] = []
    for state in range(256):
        for _ in range(8):
            state = state >> 1 ^ (polynomial if state & 1 else 0)
        found.append(state)
    return found


def power(polynomial: int, exponent: int) -> int:
    """x^exponent mod P, reflected: the lowest bit is the coefficient of x^31."""
    value = 1 << (_DEGREE - 1)
    for _ in range(exponent):
        value = value >> 1 ^ (polynomial if value & 1 else 0)
    return value


def constants(polynomial: int, distance: int) -> tuple[int, int]:
    """The factors for both words of a lane that move it `distance` bytes on."""
    bits = 8 * distance
    front, back = bits + 63, bits - 1
    return power(polynomial, front) << _DEGREE, power(polynomial, back) << _DEGREE


_TEXT: Final = string.Template("""
@bytes = internal constant [256 x i32] [$TABLE]
declare $VECTOR @$PRODUCT($VECTOR, $VECTOR, i8)
declare <2 x i64> @llvm.x86.pclmulqdq(<2 x i64>, <2 x i64>, i8)

define internal i32 @one_byte(i32 %state, i8 %byte) alwaysinline {
  %wide = zext i8 %byte to i32
  %mixed = xor i32 %state, %wide
  %index = and i32 %mixed, 255
  %place = getelementptr i32, ptr @bytes, i32 %index
  %looked = load i32, ptr %place
  %rest = lshr i32 %state, 8
  %next = xor i32 %looked, %rest
  ret i32 %next
}

; `%lane` 16 bytes later, and added to what stands there.
define internal <2 x i64> @fold(<2 x i64> %lane, <2 x i64> %more) alwaysinline #0 {
  %a = call <2 x i64> @llvm.x86.pclmulqdq(<2 x i64> %lane, <2 x i64> $LANE, i8 0)
  %b = call <2 x i64> @llvm.x86.pclmulqdq(<2 x i64> %lane, <2 x i64> $LANE, i8 17)
  %c = xor <2 x i64> %a, %b
  %d = xor <2 x i64> %c, %more
  ret <2 x i64> %d
}

define internal $VECTOR @fold_vector($VECTOR %v, $VECTOR %k, $VECTOR %more) alwaysinline #0 {
  %a = call $VECTOR @$PRODUCT($VECTOR %v, $VECTOR %k, i8 0)
  %b = call $VECTOR @$PRODUCT($VECTOR %v, $VECTOR %k, i8 17)
  %c = xor $VECTOR %a, %b
  %d = xor $VECTOR %c, %more
  ret $VECTOR %d
}

; (bytes, how many, the state before) -> the state behind them.
define i32 @$SYMBOL(ptr %data, i64 %size, i32 %state) nounwind #0 {
entry:
  %wide = zext i32 %state to i64
  %end = getelementptr i8, ptr %data, i64 %size
  %is.long = icmp uge i64 %size, $BLOCK
  br i1 %is.long, label %begin, label %short

begin:
$BEGIN
  %first = xor $VECTOR %v0, %mixed
  br label %long

long:
  %at = phi ptr [ %data, %begin ], [ %here, %more ]
$PHIS
  %here = getelementptr i8, ptr %at, i64 $BLOCK
  %behind = getelementptr i8, ptr %here, i64 $BLOCK
  %goes.on = icmp ule ptr %behind, %end
  br i1 %goes.on, label %more, label %join

more:
$MORE
  br label %long

join:
$JOIN
  br label %lanes

short:
  %is.lane = icmp uge i64 %size, 16
  br i1 %is.lane, label %one.lane, label %few

one.lane:
  %raw = load <2 x i64>, ptr %data, align 1
  %put = insertelement <2 x i64> zeroinitializer, i64 %wide, i32 0
  %lane0 = xor <2 x i64> %raw, %put
  %second = getelementptr i8, ptr %data, i64 16
  br label %lanes

lanes:
  %lane = phi <2 x i64> [ $JOINED, %join ], [ %lane0, %one.lane ], [ %folded, %next.lane ]
  %place = phi ptr [ %here, %join ], [ %second, %one.lane ], [ %after, %next.lane ]
  %after = getelementptr i8, ptr %place, i64 16
  %has.lane = icmp ule ptr %after, %end
  br i1 %has.lane, label %next.lane, label %reduce

next.lane:
  %content = load <2 x i64>, ptr %place, align 1
  %folded = call <2 x i64> @fold(<2 x i64> %lane, <2 x i64> %content)
  br label %lanes

reduce:
$REDUCE
  br label %tail

few:
  br label %tail

tail:
  %from = phi ptr [ %place, %reduce ], [ %data, %few ]
  %start = phi i32 [ $REDUCED, %reduce ], [ %state, %few ]
  br label %each

each:
  %p = phi ptr [ %from, %tail ], [ %p.next, %byte ]
  %s = phi i32 [ %start, %tail ], [ %s.next, %byte ]
  %is.over = icmp eq ptr %p, %end
  br i1 %is.over, label %done, label %byte

byte:
  %value = load i8, ptr %p
  %s.next = call i32 @one_byte(i32 %s, i8 %value)
  %p.next = getelementptr i8, ptr %p, i64 1
  br label %each

done:
  ret i32 %s
}
attributes #0 = { "target-features"="$FEATURES" }
""")


def kernel(polynomial: int, lanes: int = 1, features: str = "+sse4.1,+pclmul") -> Kernel:
    """The kernel for a reflected polynomial.

    Args:
        lanes: of 128 bits in a vector: 1, or 4 if the processor has VPCLMULQDQ.
        features: LLVM's names of the required instruction sets.
    """
    vector = f"<{2 * lanes} x i64>"
    size = 16 * lanes
    block = ACCUMULATORS * size
    far, near = (_vector(constants(polynomial, n), lanes) for n in (block, size))
    loads = [_load(vector, "%data", f"%v{u}", u * size) for u in range(ACCUMULATORS)]
    mixed = f"  %mixed = insertelement {vector} zeroinitializer, i64 %wide, i32 0"
    starts = ["%first", *[f"%v{u}" for u in range(1, ACCUMULATORS)]]
    phis = [
        f"  %a{u} = phi {vector} [ {start}, %begin ], [ %b{u}, %more ]"
        for u, start in enumerate(starts)
    ]
    more = [_load(vector, "%here", f"%m{u}", u * size) for u in range(ACCUMULATORS)]
    more += [_fold(vector, f"%b{u}", f"%a{u}", far, f"%m{u}") for u in range(ACCUMULATORS)]
    last = "%a0"
    join: list[str] = []
    for u in range(1, ACCUMULATORS):
        join.append(_fold(vector, f"%j{u}", last, near, f"%a{u}"))
        last = f"%j{u}"
    join += [_lane(vector, last, i) for i in range(lanes)]
    for i in range(1, lanes):
        before = "%lane.0" if i == 1 else f"%sum.{i - 1}"
        join.append(f"  %sum.{i} = call <2 x i64> @fold(<2 x i64> {before}, <2 x i64> %lane.{i})")
    text = _TEXT.substitute(
        SYMBOL=SYMBOL, VECTOR=vector, BLOCK=block, FEATURES=features,
        PRODUCT="llvm.x86.pclmulqdq" + (f".{128 * lanes}" if lanes > 1 else ""),
        TABLE=", ".join([f"i32 {value}" for value in table(polynomial)]),
        LANE=_vector(constants(polynomial, 16), 1), BEGIN="\n".join([*loads, mixed]),
        PHIS="\n".join(phis), MORE="\n".join(more), JOIN="\n".join(join),
        JOINED=f"%sum.{lanes - 1}" if lanes > 1 else "%lane.0",
        REDUCE=_reduced(), REDUCED="%r16",
    )  # fmt: skip
    if lanes == 1:  # declared once
        text = text.replace(
            f"declare {vector} @llvm.x86.pclmulqdq({vector}, {vector}, i8)\n", "", 1
        )
    return Kernel(f"crc_{polynomial:08x}_{lanes}", text)


def _vector(pair: tuple[int, int], lanes: int) -> str:
    return "<" + ", ".join([f"i64 {word}" for word in pair * lanes]) + ">"


def _load(vector: str, pointer: str, name: str, offset: int) -> str:
    return (
        f"  {name}.p = getelementptr i8, ptr {pointer}, i64 {offset}\n"
        f"  {name} = load {vector}, ptr {name}.p, align 1"
    )


def _fold(vector: str, name: str, value: str, factor: str, more: str) -> str:
    arguments = ", ".join([f"{vector} {x}" for x in (value, factor, more)])
    return f"  {name} = call {vector} @fold_vector({arguments})"


def _lane(vector: str, value: str, number: int) -> str:
    """One lane of a vector."""
    if vector == "<2 x i64>":
        return f"  %lane.{number} = xor {vector} {value}, zeroinitializer"
    mask = f"<2 x i32> <i32 {2 * number}, i32 {2 * number + 1}>"
    return f"  %lane.{number} = shufflevector {vector} {value}, {vector} poison, {mask}"


def _reduced() -> str:
    """The remainder of 16 bytes, byte by byte."""
    lines = ["  %sixteen = bitcast <2 x i64> %lane to <16 x i8>"]
    for i in range(16):
        lines.append(f"  %x{i} = extractelement <16 x i8> %sixteen, i32 {i}")
        before = f"%r{i}" if i else "0"
        lines.append(f"  %r{i + 1} = call i32 @one_byte(i32 {before}, i8 %x{i})")
    return "\n".join(lines)
