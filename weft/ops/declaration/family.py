"""The operation that a node is an instance of, and its kernel family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.errors import GraphError
from weft.ir.function import functions
from weft.ir.node import Node
from weft.ir.shape import is_static
from weft.ops.declaration.lowering import Opaque
from weft.ops.declaration.op import REGISTRY, Op

__all__ = [
    "HOSTED", "REGION", "calls_python", "family_of", "fault_of", "inner_nodes", "is_hosted",
    "is_region", "op_of", "writes_into",
]  # fmt: skip


def op_of(node: Node) -> Op:
    """The operation that `node` is an instance of.

    Raises:
        GraphError: the catalogue has no such operation.
    """
    try:
        return REGISTRY[node.op]
    except KeyError:
        raise GraphError(f"{node.describe()}: the catalogue has no operation {node.op!r}") from None


HOSTED: Final = "host_call"
"""The family of operations that call Python in the middle of a program."""
HOST_CALL: Final = "host_call"
"""The operation of that family that is a function of arrays alone."""


REGION: Final = "region"
"""The family of loops and branches, which passes compile."""


def is_hosted(node: Node) -> bool:
    """Whether a node runs as its Python reference even inside compiled programs.

    A loop or branch does if a program cannot call, between the kernels of its body, what Python
    computes there.
    """
    family = family_of(node).family
    if family == HOSTED:
        return True
    inner = [n for n in inner_nodes(node) if is_hosted(n)]
    return bool(inner) and not (family == REGION and all(map(_may_be_inside, inner)))


def calls_python(node: Node) -> bool:
    """Whether a node, or one inside it, runs as its Python reference."""
    return family_of(node).family == HOSTED or any(map(calls_python, inner_nodes(node)))


def _may_be_inside(node: Node) -> bool:
    """Whether it is a function of arrays with known types that have kernels."""
    types = (*[v.type for v in node.inputs], *node.types)
    return node.op == HOST_CALL and all(
        [is_static(t.shape) and not (t.dtype.is_complex or t.dtype.is_hosted) for t in types]
    )


def inner_nodes(node: Node) -> list[Node]:
    """The nodes of the functions among a node's attributes."""
    return [n for function in functions(node) for n in function.nodes]


def writes_into(node: Node) -> Callable[..., None] | None:
    """The function that computes a Python call into given memory; `None` if it has none."""
    lower = op_of(node).lower
    return lower.into if isinstance(lower, Opaque) else None


def is_region(node: Node) -> bool:
    """Whether a node is a compiled loop or branch."""
    return family_of(node).family == REGION and not is_hosted(node)


_NO_FAMILY: Final = Opaque("")


def family_of(node: Node) -> Opaque:
    """The kernel family of a node; one without abilities if it has none."""
    lower = op_of(node).lower
    return lower if isinstance(lower, Opaque) else _NO_FAMILY


def fault_of(node: Node) -> Callable[[Node, int, int], str] | None:
    """The function that turns a bad value reported by a node's kernel into an error, if any."""
    how = op_of(node).lower
    return how.fault if isinstance(how, Opaque) else None
