"""Operations on complex numbers have no kernels: programs call their NumPy references instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.ir.node import Node
from weft.ir.record import record
from weft.ops.boundary.host import Host
from weft.ops.boundary.state import host_call
from weft.ops.declaration import REGISTRY, Alias, Boundary, inner_nodes, op_of


@record
@dataclass(frozen=True)
class Reference:
    """The NumPy reference of an operation, as a function of arrays."""

    op: str
    attrs: tuple[tuple[str, Any], ...]

    def __call__(self, *arrays: Any) -> Any:
        """The results; a tuple if there are several."""
        op = REGISTRY[self.op]
        with np.errstate(all="ignore"):
            found = op.reference(*arrays, **{**op.attrs, **dict(self.attrs)})
        return found if op.outputs == 1 else tuple(found)


def is_complex(node: Node) -> bool:
    """Whether a node computes with complex numbers, itself or inside."""
    values = (*[v.type for v in node.inputs], *node.types)
    return any([t.dtype.is_complex for t in values]) or any(map(is_complex, inner_nodes(node)))


def without_complex(node: Node) -> Node:
    """The node, or the call of Python that computes it if it computes with complex numbers."""
    op = op_of(node)
    if op is host_call or isinstance(op.lower, Alias | Boundary) or not is_complex(node):
        return node
    types = tuple([(t.dtype, t.shape or ()) for t in node.types])
    attrs = {
        "function": Host(Reference(node.op, tuple(node.attrs.items())), types, False),
        "dtypes": tuple([dtype for dtype, _ in types]),
        "shapes": tuple([shape for _, shape in types]),
        "gradient": None,
        "title": node.op,
    }
    return Node(
        host_call.name, node.inputs, attrs, node.types, node.name, (), node.control, node.device,
        node.source,
    )  # fmt: skip
