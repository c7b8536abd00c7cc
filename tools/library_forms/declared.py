"""Operations that no program has called: kernels for the examples in their declarations."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator

from weft.codegen.target import portable
from weft.errors import WeftError
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.library.routine import NoRoutineError, routine
from weft.ops.boundary.state import placeholder
from weft.ops.declaration import REGISTRY, Op

EXAMPLES = 2  # of each


def operations(forms: Iterable[str]) -> set[str]:
    """The names of the operations in forms."""
    return {node[0] for form in forms for node in json.loads(form)[1]}


def write(forms: Iterable[str]) -> None:
    """Writes the kernels of operations that are not in these forms."""
    known = operations(forms)
    for op in list(REGISTRY.values()):
        if op.name not in known and not op.stateful:
            for graph, xs, ys in _examples(op):
                with contextlib.suppress(WeftError, NoRoutineError):
                    routine(graph, ys, xs, portable()).at()


def _examples(op: Op) -> Iterator[tuple[Graph, list, list]]:
    for _, case in zip(range(EXAMPLES), op.cases(), strict=False):
        graph = Graph()
        with graph.as_default(), contextlib.suppress(WeftError):
            types = [TensorType(as_dtype(x.dtype), x.shape) for x in case.inputs]
            xs = [placeholder(dtype=t.dtype, shape=t.shape) for t in types]
            yield graph, xs, list(op.node(tuple(xs), dict(case.attrs)).outputs)
