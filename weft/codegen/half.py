"""float16 conversions for processors without them (x86-64-v2), as functions of the kernel's module.

LLVM would call `__extendhfsf2` and `__truncsfhf2`, which no library of the process has. Integer
arithmetic, rounding to nearest even, after F. Giesen's "half to float done quick".
"""

from __future__ import annotations

from typing import Final

_SOURCE: Final = """
define internal float @__extendhfsf2(half %x) nounwind {
  %half = bitcast half %x to i16
  %word = zext i16 %half to i32
  %moved = shl i32 %word, 13
  %size = and i32 %moved, 268427264          ; exponent and mantissa in a float's places
  %float = bitcast i32 %size to float
  %scaled = fmul float %float, 0x46F0000000000000 ; 2**112, the difference of the biases
  %special = fcmp oge float %scaled, 65536.0
  %bits = bitcast float %scaled to i32
  %raised = or i32 %bits, 2139095040         ; infinity and NaN keep the largest exponent
  %number = select i1 %special, i32 %raised, i32 %bits
  %masked = and i32 %word, 32768
  %sign = shl i32 %masked, 16
  %whole = or i32 %number, %sign
  %result = bitcast i32 %whole to float
  ret float %result
}

define internal half @__truncsfhf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %sign = and i32 %bits, -2147483648
  %size = xor i32 %bits, %sign
  %float = bitcast i32 %size to float
  %aligned = fadd float %float, 0.5          ; rounds to a multiple of 2**-24, the least half
  %aligned.bits = bitcast float %aligned to i32
  %small = sub i32 %aligned.bits, 1056964608
  %shifted = lshr i32 %size, 13
  %odd = and i32 %shifted, 1
  %biased = add i32 %size, -939520001        ; the other bias, and half a unit less a bit
  %even = add i32 %biased, %odd
  %normal = lshr i32 %even, 13
  %is.small = icmp ult i32 %size, 947912704  ; 2**-14
  %finite = select i1 %is.small, i32 %small, i32 %normal
  %is.large = icmp uge i32 %size, 1199570944 ; 65520 rounds to infinity
  %is.nan = icmp ugt i32 %size, 2139095040
  %special = select i1 %is.nan, i32 32256, i32 31744
  %number = select i1 %is.large, i32 %special, i32 %finite
  %sign.half = lshr i32 %sign, 16
  %whole = or i32 %number, %sign.half
  %narrow = trunc i32 %whole to i16
  %result = bitcast i16 %narrow to half
  ret half %result
}
"""


def with_conversions(ir: str, cpu: str, features: str) -> str:
    """The module, with the conversions if it may need them and the processor lacks them."""
    lacks = cpu == "x86-64-v2" or "-f16c" in features.split(",")
    return ir + _SOURCE if lacks and "half" in ir else ir
