"""checkpoint: recompute in the backward pass instead of keeping intermediates."""

from __future__ import annotations

from typing import Any

from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.tracing import subgraph_plan
from weft.func.function import Function, finished, take_apart, trace_function
from weft.func.transformed import transformed


def checkpoint(fun: Function) -> Function:
    """Keep only the arguments of `fun` for the backward pass, and recompute the rest.

    This saves memory for one more forward pass. The result and its gradients are the same, bit for
    bit, random numbers included. (Chen et al., "Training Deep Nets with Sublinear Memory Cost",
    2016.)

    Raises:
        TracerError: the function reads the value of an argument.

    >>> import weft as wf
    >>> x = wf.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda x: wf.exp(wf.tanh(x)))(x).sum().backward()
    """

    @transformed(fun, "checkpoint")
    def again(*args: Any, **kwargs: Any) -> Any:
        apart = take_apart((args, kwargs))
        traced = trace_function(fun, apart)
        function = traced.function.with_gradient(traced.function.backward, rematerialize=True)
        found = trace.now.record(subgraph_plan(function), (*apart.lazies, *traced.captured))
        return finished(traced, found, apart.likes)

    return again
