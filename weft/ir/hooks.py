"""The functions that lower layers call and higher ones provide: imports run downwards.

Each field says who sets it, when imported, and who calls it. (The front end `tf1` and the recording
in `eager.record` have records of their own.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


def _no_operators(op: str, *_operands: object) -> Any:
    raise RuntimeError(f"operator {op}: import weft.ops first")


def _no_namespace() -> Any:
    raise RuntimeError("array namespace: import weft first")


@dataclass
class Hooks:
    """Functions of higher layers. Until one is set, its default holds."""

    operator: Callable[..., Any] = _no_operators
    """Applies an operation, by its name, to values: `x + y`.

    Set by `weft.ops.elementwise.operator`, called by `weft.ir.node.Value`.
    """
    function: Callable[..., Any] | None = None
    """Makes a function of inputs, outputs, nodes and details that its text told.

    Set by `weft.ops.call`, called by `weft.ir.parser`, which makes a plain `Function` without it.
    """
    memory: Callable[[Any], Any] | None = None
    """Makes what remembers the calls of a function of tensors; without it nothing is remembered.

    Set by `weft.eager.functions.recall`, called by `weft.ops.refusal`.
    """
    declared: Callable[[Any], None] = lambda op: None
    """Is told of each operation (an `Op`) that is declared: tensors get its method.

    Set by `weft.eager.functions.table`, called by `weft.ops.declaration.defop`.
    """
    before_end: Callable[[], None] = lambda: None
    """Does what is recorded and other ranks wait for, before this process leaves the job.

    Set by `weft.eager.tensor.rank_call`, called by `weft.transport.session`.
    """
    array_namespace: Callable[[], Any] = _no_namespace
    """Gives the module of the array API standard: `weft.numpy`.

    Set by `weft`, which would import that module, and by the module itself; called by tensors.
    """


HOOKS: Final = Hooks()
