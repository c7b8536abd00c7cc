"""Deterministic mode: results depend on the program and its inputs alone, not on earlier runs.

By default library kernels run a structure before it is compiled, and one kernel may serve many
sizes. So the last bits of a result can depend on how often, and in which sizes, the same calls ran
before.
A run resumed from a file has another history.
"""

from __future__ import annotations

from weft import config
from weft.eager.record.state import flush, trace
from weft.errors import ArgumentError


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Make equal calls on equal inputs give equal bits, whatever the process ran before.

    Training resumed from a file then gives the same bits as training that was never interrupted.
    Each program is compiled before its first run, for its own sizes, which takes long if sizes keep
    changing. An optimizer step is computed at once, with all gradients.

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
    """Whether equal calls give equal bits; see `use_deterministic_algorithms`."""
    return bool(config.get("deterministic"))


def end_program() -> None:
    """In deterministic mode, compute what is pending, so that programs do not depend on reads.

    Otherwise a run that saves or loads its state would run other programs around that point than
    one that does not.
    """
    if are_deterministic_algorithms_enabled() and not trace.now.depth:
        flush()
