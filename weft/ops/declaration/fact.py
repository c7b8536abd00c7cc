"""Facts of an operation other than its rules, for passes and kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Any, TypeVar

Sizes = tuple[int, ...]
"""A concrete shape."""


class Autocast(Enum):
    """The autocast policy: the dtype of an operation's floating-point inputs.

    Rules and reasons are in `weft.ops.declaration.autocast`.
    """

    LOW = "low"
    """The half-precision dtype: matmuls, which accumulate in float32."""
    FLOAT32 = "float32"
    """float32 for half precision: wide range, large derivatives, many terms or many steps."""
    WIDEST = "widest"
    """The widest of the inputs' dtypes."""
    KEPT = "kept"
    """The dtype of each input as given."""


class Cost(Enum):
    """The cost of recomputing an element."""

    CHEAP = auto()
    """A cycle or two: less than reading it from memory."""
    USUAL = auto()
    EXPENSIVE = auto()
    """So much that no pass recomputes it."""


class Batching(Enum):
    """How an operation takes a leading batch axis, for `vmap`."""

    BROADCAST = auto()
    """Inputs broadcast, and so does the batch axis."""
    AXES = auto()
    """Its attribute `axes` is shifted by one; it has one input."""
    AXIS = auto()
    """Its attribute `axis` is shifted by one; all inputs are batched."""
    LEADING = auto()
    """It accepts any number of leading axes; all inputs are batched."""


class Ability(Flag):
    """What the kernels of a family can do besides their main computation."""

    NONE = 0
    EPILOGUE = auto()
    """An epilogue: elementwise operations before its store."""
    PROLOGUE = auto()
    """A prologue: elementwise operations while it reads its first operand (1x1 or depthwise)."""
    TURNS = auto()
    """It packs its weights itself, whatever their layout."""


@dataclass(frozen=True)
class Work:
    """The work of an operation: `products(*shapes, **attrs)` counts multiply-adds.

    `shapes` are those of the inputs, then of the outputs. NumPy takes `ns` nanoseconds for each
    multiply-add.
    """

    products: Callable[..., int]
    ns: float


@dataclass(frozen=True)
class Again:
    """How outputs are recomputed, in two parts with other work in between.

    Attributes:
        begin: `begin(ys, xs, **attrs)` returns values; `None` if the outputs are to be kept.
        end: `end(ys, begun, **attrs)` returns the outputs, from these values.
        ahead: `ahead(**attrs)` returns how many following recomputations start when this one ends.
    """

    begin: Callable[..., Any]
    end: Callable[..., Any]
    ahead: Callable[..., int]


@dataclass(frozen=True)
class Facts:
    """The facts of one operation.

    Attributes:
        autocast: required for reductions, composites and kernel families, which may sum many
            terms. For others, inputs are converted to the widest type; a single one keeps its own.
        linear: whether it is linear in all its floating inputs together; the other inputs are
            indices or conditions.
        cost: of recomputing an element.
        cancels: whether it adds terms that may cancel, so that errors are relative to the terms and
            not to the result.
        fresh: whether the reference's result never shares memory with an input.
        view: whether the result is a view of its input's memory, as in PyTorch, and so may be
            larger than the available memory.
        keeps_rows: whether the gradient of its result is that of its input, also if row-sparse.
        work: the multiply-adds of a product.
        ordered: whether it has effects outside the graph, on other ranks or in Python, so that the
            program's order must be kept.
        host: whether it runs on the host between programs and never inside one, because it may
            wait for other runs or handles what programs have not, such as texts.
        late: whether it waits for other ranks or threads, so that other work should run first.
        again: how to recompute the outputs for gradient rules that read them, instead of keeping
            them until then.
        runs: how often each function among its attributes runs, given the attributes; an estimate
            if that depends on values.
        unbounded: whether its running time depends on values, so that it may not end.
        batching: how it is batched, if in one of these ways. Otherwise elementwise operations and
            reductions broadcast, composites are batched by their parts, and others by a rule of
            `weft.transform.batching` or once per example.
    """

    autocast: Autocast | None = None
    linear: bool = False
    cost: Cost = Cost.USUAL
    cancels: bool = False
    fresh: bool = False
    view: bool = False
    keeps_rows: bool = False
    work: Work | None = None
    ordered: bool = False
    host: bool = False
    late: bool = False
    again: Again | None = None
    runs: Callable[..., float] | None = None
    unbounded: bool = False
    batching: Batching | None = None


PLAIN = Facts()
CHEAP = Facts(cost=Cost.CHEAP)
IN_FLOAT32 = Facts(autocast=Autocast.FLOAT32)
IN_WIDEST = Facts(autocast=Autocast.WIDEST)
AS_GIVEN = Facts(autocast=Autocast.KEPT)

Function = TypeVar("Function", bound=Callable[..., Any])


def autocasting(to: Autocast) -> Callable[[Function], Function]:
    """Declares the autocast policy of a function of values that is recorded as one call."""

    def declare(function: Function) -> Function:
        vars(function)["autocast"] = to
        return function

    return declare
