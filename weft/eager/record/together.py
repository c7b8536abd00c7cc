"""What a recorded program does together with other ranks: they compare it before it runs."""

from __future__ import annotations

from weft.eager.record.structure import Structure, expand
from weft.ops.communication.sequence import call_sequence
from weft.transport import session
from weft.transport.sequence import CallSequence


def calls_together(structure: Structure, as_rows: bool) -> CallSequence | None:
    """The calls that a program makes together with others; `None` where it makes none."""
    if not session.monitors:
        return None
    return call_sequence(expand(structure, as_rows).graph.nodes)
