"""What a declaration of an operation is written with: `defop`, its rules and its lowerings."""

from weft import exports as _exports
from weft.ops.declaration.constant import constant_of as constant_of
from weft.ops.declaration.defop import *
from weft.ops.declaration.face import *
from weft.ops.declaration.family import *
from weft.ops.declaration.gradient_mark import *
from weft.ops.declaration.lowering import *
from weft.ops.declaration.op import *

_exports.gather(globals())
