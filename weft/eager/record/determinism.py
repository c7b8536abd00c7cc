"""Deterministic mode: results depend on the program and its inputs alone, not on earlier runs.

By default a structure is interpreted before it is compiled, and where only sizes change, one
program may serve many: so the last bits of a result can depend on how often, and in which sizes,
the same calls came before. A run that goes on from a file has not been through that.
"""

from __future__ import annotations

from weft import config
from weft.eager.record.state import flush, trace
from weft.errors import ArgumentError
from weft.ops.base import at_user_line


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Whether equal calls on equal inputs give equal bits, whatever the process ran before.

    Then training that goes on from a file gives the bits of training that was never interrupted.
    Each program is compiled before its first run, and for its own sizes: where these change all
    the time, that takes long. An optimiser's step is computed at once, with all gradients.

    `warn_only` has no influence: there is no operation that could not do so.

    Raises:
        ArgumentError: `mode` is neither True nor False.

    >>> import weft as wf
    >>> wf.use_deterministic_algorithms(True)
    >>> wf.are_deterministic_algorithms_enabled()
    True
    >>> wf.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"use_deterministic_algorithms: expected True or False, got {mode!r}{at_user_line()}"
        )
    config.change("deterministic", mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether equal calls give equal bits; see `use_deterministic_algorithms`."""
    return bool(config.get("deterministic"))


def end_program() -> None:
    """Compute what is pending where programs are not to depend on when somebody looks.

    Else a run that writes its state to a file, or reads it, would compute other programs next to
    that than one that does not.
    """
    if are_deterministic_algorithms_enabled() and not trace.now.depth:
        flush()
