"""JAX's evaluation of functions for some known arguments, by which packages find constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.tracing import subgraph_plan
from weft.func.function import finished, take_apart, trace_function
from weft.jax.core import Tracer
from weft.jax.device import ShapeDtypeStruct
from weft.jax.numpy.api import zeros
from weft.jax.transform import arrays
from weft.jax.tree_util import PyTreeDef, tree_flatten
from weft.mirror.supplied.same import nothing

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "debug_info", "flatten_fun",
    "flatten_fun_nokwargs", "trace_to_jaxpr_nounits", "wrap_init",
]  # fmt: skip

debug_info = nothing
JaxprTracer = DynamicJaxprTracer = Tracer


class PartialVal:
    """Arguments of `trace_to_jaxpr_nounits`: values, or shapes of values to come."""

    @staticmethod
    def known(const: Any) -> tuple[Any, Any]:
        """A value."""
        return None, const

    @staticmethod
    def unknown(aval: Any) -> tuple[Any, Any]:
        """A shape and a dtype."""
        return aval, None


def wrap_init(f: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """The function."""
    return f


def flatten_fun(f: Callable[..., Any], in_tree: PyTreeDef) -> tuple[Any, Any]:
    """A function of leaves to leaves, and one that gives the structure of its last result."""
    return _flat(lambda both: f(*both[0], **both[1]), in_tree)


def flatten_fun_nokwargs(f: Callable[..., Any], in_tree: PyTreeDef) -> tuple[Any, Any]:
    """The same for positional arguments alone."""
    return _flat(lambda args: f(*args), in_tree)


def _flat(f: Callable[[Any], Any], in_tree: PyTreeDef) -> tuple[Any, Any]:
    trees: list[PyTreeDef] = []

    def flat(*leaves: Any) -> list[Any]:
        found, tree = tree_flatten(f(in_tree.unflatten(leaves)))
        trees[:] = [tree]
        return found

    return flat, lambda: trees[0]


def trace_to_jaxpr_nounits(
    fun: Callable[..., Any], pvals: Sequence[tuple[Any, Any]], **_: Any
) -> tuple[Any, list[tuple[Any, Any]], list[Any]]:
    """A function's graph, and its results: known where they depend on no unknown argument.

    The function is called once; the known results do not see the zeros that it is run with.
    """
    unknown = [aval for aval, _ in pvals if aval is not None]

    def of(*xs: Any) -> list[Any]:
        rest = iter(xs)
        return arrays(fun(*[const if a is None else next(rest) for a, const in pvals]))

    apart = take_apart((tuple([zeros(a.shape, a.dtype) for a in unknown]), {}))
    traced = trace_function(of, apart)
    graph = traced.function
    found = trace.now.record(subgraph_plan(graph), (*apart.lazies, *traced.captured))
    moved = set(graph.inputs[: len(unknown)])
    for node in graph.nodes:
        if not moved.isdisjoint(node.inputs):
            moved.update(node.outputs)
    rows = [
        (ShapeDtypeStruct(y.shape, y.dtype), None) if y in moved else (None, value)
        for y, value in zip(graph.outputs, finished(traced, found, apart.likes), strict=True)
    ]
    return graph, rows, []
