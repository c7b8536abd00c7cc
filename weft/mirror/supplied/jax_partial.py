"""JAX's evaluation of functions for some known arguments, by which packages find constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.jax.device import ShapeDtypeStruct, make_jaxpr
from weft.jax.numpy.api import zeros
from weft.jax.tree_util import PyTreeDef, tree_flatten
from weft.mirror.supplied.same import nothing

__all__ = [
    "PartialVal", "debug_info", "flatten_fun", "flatten_fun_nokwargs", "trace_to_jaxpr_nounits",
    "wrap_init",
]  # fmt: skip

debug_info = nothing


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

    The function is called twice: traced, and with zeros, which the known results do not see.
    """
    unknown = [aval for aval, _ in pvals if aval is not None]

    def of(xs: Sequence[Any]) -> list[Any]:
        rest = iter(xs)
        return fun(*[const if aval is None else next(rest) for aval, const in pvals])

    jaxpr = make_jaxpr(lambda *xs: of(xs))(*unknown)
    graph = jaxpr.function
    moved = set(graph.inputs[: len(unknown)])
    for node in graph.nodes:
        if not moved.isdisjoint(node.inputs):
            moved.update(node.outputs)
    values = of([zeros(aval.shape, aval.dtype) for aval in unknown])
    rows = [
        (ShapeDtypeStruct(y.shape, y.dtype), None) if y in moved else (None, value)
        for y, value in zip(graph.outputs, values, strict=True)
    ]
    return jaxpr, rows, []
