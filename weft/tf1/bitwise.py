"""`tf.bitwise`: operations on the bits of integers."""

from weft import exports as _exports
from weft.tf1.elementwise.declared import bitwise_and as bitwise_and
from weft.tf1.elementwise.declared import bitwise_or as bitwise_or
from weft.tf1.elementwise.declared import bitwise_xor as bitwise_xor
from weft.tf1.elementwise.declared import invert as invert
from weft.tf1.elementwise.declared import left_shift as left_shift
from weft.tf1.elementwise.declared import right_shift as right_shift

_exports.gather(globals())
