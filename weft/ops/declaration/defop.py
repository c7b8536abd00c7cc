"""`defop`: declares an operation and adds it to the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from weft.errors import GraphError
from weft.ir.dtype import as_dtype
from weft.ir.hooks import HOOKS
from weft.ops.declaration.face import FACES, Face
from weft.ops.declaration.fact import PLAIN, Autocast, Facts
from weft.ops.declaration.lowering import Alias, Boundary, Composite, Lowering, Opaque, Reduce
from weft.ops.declaration.op import REGISTRY, Case, Op, as_given

__all__ = ["defop"]


def defop(
    name: str,
    *,
    inputs: str,
    dtype: Callable[..., Any],
    shape: Callable[..., Any],
    reference: Callable[..., Any],
    vjp: Callable[..., Any],
    lower: Lowering,
    cases: Callable[[], Iterable[Case]],
    attrs: Mapping[str, Any] | None = None,
    outputs: int = 1,
    stateful: bool = False,
    partial: bool = False,
    normal: Callable[..., Mapping[str, Any]] = as_given,
    fast: Callable[..., Any] | None = None,
    facts: Facts = PLAIN,
    face: Face | None = None,
) -> Op:
    """Declare an operation and add it to the registry.

    Args:
        inputs: names of the data inputs, separated by spaces, such as `"x y"` or `"*xs"`. A bare
            number takes the type of the first input that is a value; `"condition:bool x y"` says
            that bare numbers for `condition` are booleans, and that it does not count here.
        attrs: attribute names with their defaults (`REQUIRED` if there is none).
        face: its public names; without it, no front end has the operation.

    Raises:
        GraphError: the name is taken, or a fact is missing.
    """
    if name in REGISTRY:
        raise GraphError(f"defop: {name!r} is declared twice")
    parts = [part.partition(":") for part in inputs.split()]
    literals = tuple(as_dtype(kind) if kind else None for _, _, kind in parts)
    if facts.autocast is None:
        facts = replace(facts, autocast=_usual_autocast(name, inputs, lower))
    op = Op(
        name, tuple(part[0] for part in parts), attrs or {}, dtype, shape, reference, vjp, lower,
        cases, outputs, stateful, partial, literals, normal, fast, facts,
        face and face.completed(name),
    )  # fmt: skip
    REGISTRY[name] = op
    if face is not None:
        FACES[name] = op
        HOOKS.declared(op)
    return op


def _usual_autocast(name: str, inputs: str, lower: Lowering) -> Autocast:
    """The default autocast policy; raises if that may lose digits."""
    if isinstance(lower, Reduce | Composite | Opaque):
        raise GraphError(
            f"defop: {name!r}: a {type(lower).__name__} may add up many terms: expected"
            " facts=Facts(autocast=...), in which type it does while casts are automatic"
        )
    several = " " in inputs or "*" in inputs
    alone = isinstance(lower, Alias | Boundary) or not several
    return Autocast.KEPT if alone else Autocast.WIDEST
