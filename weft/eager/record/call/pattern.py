"""What recorded calls that differ only in sizes have in common."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.ir.node import TensorType
from weft.ir.shape import known
from weft.transform.gradient import Cotangent

Expand = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Cotangent]]
Static = dict[str, Any]


class Pattern:
    """What recorded calls that differ only in sizes have in common.

    Attributes:
        called: the operation or function that is called; `None` if calls of it share nothing.
        expand: adds the nodes to the current graph, given the inputs' values and the attributes.
        shared: whether calls that differ in sizes may share a program.
        boundless: whether a result is a view larger than its memory, such as an expanded tensor.
        differentiable: whether a gradient may flow through it.
        inexact: whether a result is floating-point or complex.
        flows: for each result, a bit mask of the inputs that its gradient may reach.
        single: whether it has one result, whose gradient reaches all inputs or none.
        continuous: whether it is `single` and the gradient reaches all inputs.
        follows: how many leading inputs it sees with their history, as a backward pass does.
        takes_rows: whether inputs may be `RowSparse`.
        needs_rows: whether inputs have to be, if their gradients are row-sparse.
        traced: whether it calls a traced function.
        variable: whether it marks a variable of differentiation.
    """

    __slots__ = (
        "__weakref__", "boundless", "called", "continuous", "differentiable", "expand", "flows",
        "follows", "inexact", "name", "needs_rows", "shared", "single", "takes_rows", "traced",
        "variable",
    )  # fmt: skip

    def __init__(
        self, name: str, types: Sequence[TensorType], expand: Expand, differentiable: bool = True,
        called: Any = None, shared: bool = False, flows: Sequence[int] | None = None,
        boundless: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.called = called
        self.expand = expand
        self.shared = shared
        self.boundless = boundless
        self.differentiable = differentiable
        self.inexact = any([t.dtype.is_inexact for t in types])
        self.single = len(types) == 1 and flows is None
        if flows is None:
            flows = [-1 if differentiable and t.dtype.is_inexact else 0 for t in types]
        self.flows = tuple(flows)
        self.continuous = self.single and self.flows[0] != 0
        self.follows = 0
        self.takes_rows = self.needs_rows = self.traced = self.variable = False


_patterns: Final[weakref.WeakValueDictionary[Any, Pattern]] = weakref.WeakValueDictionary()


def shared_pattern(
    key: Any, name: str, types: Sequence[TensorType], expand: Expand, differentiable: bool = True,
    called: Any = None, boundless: bool = False,
) -> Pattern:  # fmt: skip
    """The one pattern of calls with this key and with results like these, apart from sizes."""
    whole = (key, boundless, *[(t.dtype, len(known(t.shape))) for t in types])
    found = _patterns.get(whole)
    if found is None:
        found = Pattern(name, types, expand, differentiable, called, True, None, boundless)
        found = _patterns.setdefault(whole, found)
    return found
