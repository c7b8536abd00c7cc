"""Functional transformations of functions of tensors, nested in any order."""

from __future__ import annotations

from weft import exports as _exports
from weft.func.checkpoint import checkpoint as checkpoint
from weft.func.control.associative_scan import associative_scan as associative_scan
from weft.func.control.branch import *
from weft.func.control.loop import *
from weft.func.custom import custom_vjp as custom_vjp
from weft.func.derivative import *
from weft.func.gradient import *
from weft.func.jit import jit as jit
from weft.func.module import *
from weft.func.primitive import *
from weft.func.ranks.axis import *
from weft.func.ranks.collective import *
from weft.func.ranks.mapped import *
from weft.func.ranks.partition import PartitionSpec as PartitionSpec
from weft.func.tree import map_structure as map_structure
from weft.func.vmap import vmap as vmap
from weft.ops.refusal import guard

jacrev = jacobian

_exports.gather(globals())
guard(globals())
