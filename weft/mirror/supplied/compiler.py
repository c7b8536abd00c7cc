"""`torch.compiler` and `torch._dynamo`: nothing is traced."""

from __future__ import annotations

from weft.mirror.supplied.same import no, nothing, same

__all__ = [
    "allow_in_graph", "assume_constant_result", "cudagraph_mark_step_begin", "disable",
    "graph_break", "is_compiling", "is_dynamo_compiling", "is_exporting", "mark_dynamic",
    "mark_static", "mark_static_address", "reset", "substitute_in_graph",
]  # fmt: skip


is_compiling = is_dynamo_compiling = is_exporting = no
disable = allow_in_graph = assume_constant_result = same
reset = mark_dynamic = mark_static = mark_static_address = nothing
graph_break = cudagraph_mark_step_begin = nothing


def substitute_in_graph(original: object, **options: object) -> object:
    """A decorator that returns the function: calls are not replaced."""
    del original, options
    return same()
