"""Kinds of lowering to machine code, for `defop(lower=...)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weft.ir.dtype import DType
from weft.ir.node import Node
from weft.ops.declaration.fact import Ability

__all__ = ["Alias", "Boundary", "Composite", "Elementwise", "Lowering", "Opaque", "Pull", "Reduce"]


@dataclass(frozen=True)
class Elementwise:
    """`rule(b, *scalars, **attrs)` computes one element from one element of each input.

    Inputs broadcast. `b` is the emitter of `weft.ops.declaration.emitter`.
    """

    rule: Callable[..., Any]


@dataclass(frozen=True)
class Pull:
    """`rule(b, index, *inputs, **attrs)` computes the output element at `index`.

    `index` is a tuple of `Index`. Each input is a function from a tuple of `Index` or int to a
    scalar, with `.shape` (concrete) and `.dtype`. Movement, iota and random bits are of this kind.
    """

    rule: Callable[..., Any]


@dataclass(frozen=True)
class Reduce:
    """A reduction over `attrs["axes"]` with `attrs["keepdims"]`.

    `combine` is `add`, `multiply`, `maximum` or `minimum`.
    """

    combine: str

    def is_ordered(self, dtype: DType) -> bool:
        """Whether the bits of a result of this type depend on the order of the elements."""
        return dtype.is_inexact and self.combine in ("add", "multiply")


@dataclass(frozen=True)
class Opaque:
    """A kernel family of the code generator, by name (matmul, convolution, sort, ...).

    `expand`, if given, writes the operation in others, for a gradient `BY_EXPANSION`. `combine` is
    how it combines elements, if its family has variants: as for `Reduce`, or "" if the last one
    wins. `abilities` are what else its kernels can do. `fault(node, position, value)` is the error
    message for a bad value that the kernel reports.

    Of a call into Python, `into(inputs, outputs, **attrs)` does the same as the reference in memory
    that is given: the last output may be that of the last input, the one before it that of the
    input before it, and so on. `native(node)` gives a call that native code can make instead, as a
    `weft.transport.shared_call.SharedCall`, or `None`.
    """

    family: str
    expand: Callable[..., Any] | None = None
    abilities: Ability = Ability.NONE
    combine: str = ""
    fault: Callable[[Node, int, int], str] | None = None
    into: Callable[..., None] | None = None
    native: Callable[[Node], Any] | None = None


@dataclass(frozen=True)
class Alias:
    """The output is the first input's memory with another shape (reshape, identity, read)."""


@dataclass(frozen=True)
class Boundary:
    """Not computed: a placeholder or constant, or only a control dependency."""


@dataclass(frozen=True)
class Composite:
    """`expand(*values, **attrs)` rewrites the operation in others, once shapes are concrete."""

    expand: Callable[..., Any]


Lowering = Elementwise | Pull | Reduce | Opaque | Alias | Boundary | Composite
