"""Deterministic mode, for the few results whose bits depend on more than calls and inputs.

All others have the same bits in every tier. The table of the others, with what it costs to give
them the same bits, is in docs/EAGER.md (Reproducible results).
"""

from __future__ import annotations

from weft import config
from weft.eager.record.pending.state import flush, trace
from weft.errors import ArgumentError


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Make equal calls on equal inputs give equal bits where that costs speed.

    Most do without: training in float32 that is resumed from a file gives the bits of training that
    was never interrupted. In this mode large embedding tables are updated whole, not only in rows
    with a gradient; calls in half precision are compiled before their first run, which takes long
    if sizes keep changing; and an optimizer step is computed at once, with all gradients.

    `warn_only` has no effect: every operation has a deterministic implementation.

    Raises:
        ArgumentError: `mode` is neither True nor False.

    >>> import weft as wf
    >>> wf.use_deterministic_algorithms(True)
    >>> wf.are_deterministic_algorithms_enabled()
    True
    >>> wf.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError.here(
            f"use_deterministic_algorithms: expected True or False, got {mode!r}"
        )
    config.change("deterministic", mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether all equal calls give equal bits; see `use_deterministic_algorithms`."""
    return bool(config.get("deterministic"))


def end_program() -> None:
    """In deterministic mode, compute what is pending, so that programs do not depend on reads.

    Otherwise a run that saves or loads its state would run other programs around that point than
    one that does not.
    """
    if are_deterministic_algorithms_enabled() and not trace.now.depth:
        flush()
