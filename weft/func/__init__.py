"""Functional transformations of functions of tensors, nested in any order."""

from __future__ import annotations

from weft.func.checkpoint import checkpoint
from weft.func.control.associative_scan import associative_scan
from weft.func.control.branch import cond, switch
from weft.func.control.loop import fori_loop, map, scan, while_loop
from weft.func.custom import custom_vjp
from weft.func.derivative import hessian, hessian_vector_product, jacfwd, jacobian
from weft.func.gradient import (
    elementwise_grad,
    grad,
    grad_and_value,
    jvp,
    linearize,
    make_jvp,
    make_vjp,
    value_and_grad,
    vjp,
)
from weft.func.jit import jit
from weft.func.module import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from weft.func.primitive import defvjp, primitive
from weft.func.ranks.axis import axis_index, axis_size
from weft.func.ranks.collective import (
    all_gather,
    all_to_all,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    psum_scatter,
)
from weft.func.ranks.mapped import pmap, shard_map
from weft.func.ranks.partition import PartitionSpec
from weft.func.tree import map_structure
from weft.func.vmap import vmap
from weft.ops.refusal import guard

jacrev = jacobian

__all__ = [
    "PartitionSpec",
    "all_gather",
    "all_to_all",
    "associative_scan",
    "axis_index",
    "axis_size",
    "checkpoint",
    "cond",
    "custom_vjp",
    "defvjp",
    "elementwise_grad",
    "fori_loop",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "hessian_vector_product",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linearize",
    "make_jvp",
    "make_vjp",
    "map",
    "map_structure",
    "pmap",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "primitive",
    "psum",
    "psum_scatter",
    "replace_all_batch_norm_modules_",
    "scan",
    "shard_map",
    "stack_module_state",
    "switch",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

guard(globals())
