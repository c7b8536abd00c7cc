"""`explain`: what the compiler makes of a function of tensors, stage by stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weft.eager.record.pending.access import array_of
from weft.eager.record.run.stitched_tier import tier_of
from weft.errors import ArgumentError
from weft.func.function import take_apart, trace_function
from weft.ir.graph import Graph
from weft.ops.boundary.state import placeholder
from weft.ops.declaration import catalogue
from weft.runtime.engine import Function, State
from weft.runtime.explanation import Explanation
from weft.transform.interpreter import needs_interpreter


def explain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Explanation:
    """What the compiler makes of `function(*args, **kwargs)`; printing it shows every stage.

    The function is traced, as `jit` does, and not run: no tensor changes. It may be a whole
    training step. The result has `kernels`, the names of the kernels, `llvm_ir(name)` and
    `assembly(name)`; `tier` says what computes its calls if it is run as it is.

    Args:
        function: a function of tensors, a method or a module.
        args, kwargs: its arguments, which may be nested.

    Raises:
        ArgumentError: it computes complex numbers, which are never compiled.
        TracerError: the function reads the value of a tensor that it computes.

    >>> import weft as wf
    >>> stages = wf.explain(lambda x, w: (x @ w).relu().sum(), wf.ones(8, 4), wf.ones(4, 2))
    >>> [stage.name for stage in stages.stages][:3]
    ['specialized', 'prune', 'fold']
    >>> stages.tier
    'library kernels at first: 2 launches; later this program'
    >>> "define" in stages.llvm_ir(stages.kernels[0])
    True
    """
    arguments = take_apart((args, kwargs))
    traced = trace_function(function, arguments)
    graph = Graph()
    with graph.as_default():
        inputs = [placeholder(dtype=t.dtype, shape=t.shape) for t in traced.function.input_types]
        outputs = catalogue.call.all(*inputs, function=traced.function)
    if needs_interpreter(graph):
        raise ArgumentError.here(
            "explain: expected numbers that are compiled, got complex ones, which NumPy computes "
            "between library kernels"
        )
    arrays = [array_of(x) for x in (*arguments.lazies, *traced.captured)]
    found = Function(graph, outputs, feeds=inputs).explain(arrays, State())
    assert isinstance(found, Explanation)  # of one device
    return replace(found, tier=tier_of(graph, outputs, inputs))
