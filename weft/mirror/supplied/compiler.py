"""`torch.compiler`, `torch._dynamo` and `torch.fx`'s decorators: nothing is traced."""

from __future__ import annotations

from weft.mirror.supplied.same import no, nothing, same

__all__ = [
    "GraphModule", "Node", "Proxy", "Tracer", "allow_in_graph", "assume_constant_result",
    "cudagraph_mark_step_begin", "disable", "graph_break", "is_compiling", "is_dynamo_compiling",
    "is_exporting", "mark_dynamic", "mark_static", "mark_static_address", "reset",
    "substitute_in_graph", "wrap",
]  # fmt: skip


class Proxy:
    """The class of values that are traced symbolically, of which there are none."""


class Tracer:
    """The class of symbolic tracers.

    Raises:
        NotImplementedError: one is made.
    """

    def __init__(self, *arguments: object, **options: object) -> None:
        raise NotImplementedError(
            "torch.fx.Tracer: Weft does not trace Python: weft.func.explain shows what a call "
            "computes"
        )


class GraphModule:
    """The class of modules made from a traced graph, of which there are none."""


class Node:
    """The class of nodes of a traced graph, of which there are none."""


is_compiling = is_dynamo_compiling = is_exporting = no
disable = allow_in_graph = assume_constant_result = wrap = same
reset = mark_dynamic = mark_static = mark_static_address = nothing
graph_break = cudagraph_mark_step_begin = nothing


def substitute_in_graph(original: object, **options: object) -> object:
    """A decorator that returns the function: calls are not replaced."""
    del original, options
    return same()
