"""Collective calls of a recorded program, which ranks compare before its first run."""

from __future__ import annotations

from weft.eager.record.structure import Structure, expand
from weft.ops.communication.sequence import call_sequence
from weft.transport import session
from weft.transport.sequence import CallSequence


def collective_calls(structure: Structure, as_rows: bool) -> CallSequence | None:
    """The collective calls of a program; `None` if it makes none or there are no other ranks."""
    if not session.monitors:
        return None
    return call_sequence(expand(structure, as_rows).graph.nodes)
