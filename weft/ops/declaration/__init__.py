"""What a declaration of an operation is written with: `defop`, its rules and its lowerings."""

from weft.ops.declaration.constant import constant_of
from weft.ops.declaration.defop import defop
from weft.ops.declaration.face import Face, Out, Takes, exported, exports
from weft.ops.declaration.family import (
    HOSTED,
    REGION,
    family_of,
    fault_of,
    inner_nodes,
    is_hosted,
    is_region,
    op_of,
    writes_into,
)
from weft.ops.declaration.gradient_mark import BY_BODY, BY_EXPANSION, NO_GRADIENT
from weft.ops.declaration.lowering import (
    Alias,
    Boundary,
    Composite,
    Elementwise,
    Lowering,
    Opaque,
    Pull,
    Reduce,
)
from weft.ops.declaration.op import REGISTRY, Array, Case, Op, as_given, catalogue

__all__ = [
    "BY_BODY",
    "BY_EXPANSION",
    "HOSTED",
    "NO_GRADIENT",
    "REGION",
    "REGISTRY",
    "Alias",
    "Array",
    "Boundary",
    "Case",
    "Composite",
    "Elementwise",
    "Face",
    "Lowering",
    "Op",
    "Opaque",
    "Out",
    "Pull",
    "Reduce",
    "Takes",
    "as_given",
    "catalogue",
    "constant_of",
    "defop",
    "exported",
    "exports",
    "family_of",
    "fault_of",
    "inner_nodes",
    "is_hosted",
    "is_region",
    "op_of",
    "writes_into",
]
