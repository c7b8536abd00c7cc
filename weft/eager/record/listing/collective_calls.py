"""Collective calls of a recorded program, which ranks compare before its first run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.eager.record.listing.expansion import expand
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.recognition.structure import Structure, structure_of
from weft.ops.communication.sequence import call_sequence
from weft.passes.step import Request, needed
from weft.transport import session
from weft.transport.sequence import CallSequence


def collective_calls(structure: Structure, as_rows: bool) -> CallSequence | None:
    """The collective calls of a program; `None` if it makes none or there are no other ranks."""
    if not session.monitors:
        return None
    found = expand(structure, as_rows)
    return call_sequence(needed(Request(found.graph, found.outputs, (), found.feeds)))


MOST: Final = 512  # forgotten together
_known: Final[dict[Any, CallSequence]] = {}


def shared(calls: CallSequence) -> CallSequence:
    """The first of equal sequences: it is announced once."""
    if len(_known) >= MOST:
        _known.clear()
    return _known.setdefault(tuple(calls.of.items()), calls)


def calls_others(values: Sequence[Lazy]) -> bool:
    """Whether other ranks are called to compute these values."""
    if not (values and session.monitors):
        return False
    return collective_calls(structure_of(values), False) is not None
