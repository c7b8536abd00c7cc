"""What a session holds of a variable, as tensors that it feeds itself."""

from __future__ import annotations

import numpy as np

from weft.ir.shape import Shape
from weft.ir.shape import known as known_shape
from weft.tf1.framework.dtypes import DType
from weft.tf1.framework.graph import Graph, control_dependencies
from weft.tf1.framework.tensor import Operation, Tensor


def make_probe(
    graph: Graph, op: Operation, key: str, kind: DType, dims: Shape
) -> tuple[Tensor, Tensor]:
    """Whether a session has given a variable a value, and that value or zeros."""
    name, shape = op.name, known_shape(dims)
    near = graph.colocate_with(op)
    with graph.as_default(), near, control_dependencies(None), graph.name_scope(name + "/"):
        flag = graph.emit("IsVariableInitialized", (), "placeholder", name="is_initialized",
                          dtype="bool", shape=()).outputs[0]  # fmt: skip
        held = graph.emit("Switch", (), "placeholder", name="held", dtype=kind.ir,
                          shape=shape).outputs[0]  # fmt: skip
    return feed_probe(graph, flag, held, key)


def feed_probe(graph: Graph, flag: Tensor, held: Tensor, key: str) -> tuple[Tensor, Tensor]:
    """Lets sessions feed the two tensors of a probe."""
    shape, kind = known_shape(held.value.shape), held.value.dtype.numpy
    feeds = graph.keys.setdefault("implicit", {})
    feeds[flag.value] = lambda state: np.array(key in state)
    feeds[held.value] = lambda state: (
        np.asarray(state[key]) if key in state else np.zeros(shape, kind)
    )
    return flag, held
