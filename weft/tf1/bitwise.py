"""`tf.bitwise`: operations on the bits of integers."""

from weft.tf1.elementwise.arithmetic import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
)  # fmt: skip

__all__ = [
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift",
]  # fmt: skip
