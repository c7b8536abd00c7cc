"""Recorded collectives: all ranks run the same ones.

They run in program order when any value is read. If none is read, the next collective on tensors or
the end of the job runs them.
"""

from __future__ import annotations

from typing import Any, Final

from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import flush, trace
from weft.eager.tensor.dispatch import wrap
from weft.ir.hooks import HOOKS

_expected: Final[list[Any]] = []
"""Tensors with results of collectives that may still be pending."""


def await_result(x: Lazy) -> None:
    """Make sure that a value is computed even if nothing that needs it is read."""
    _expected[:] = _unfinished()
    if not trace.now.depth:
        _expected.append(wrap(x))


def run_pending_collectives() -> None:
    """Run what is recorded, if it contains collectives."""
    if _unfinished():
        flush()
    _expected.clear()


def _unfinished() -> list[Any]:
    """The tensors that are still pending; one that only its program reads never has an array."""
    pending = trace.now.pending
    if not pending:
        return []
    records = [(x, x.lazy.record) for x in _expected]
    return [x for x, r in records if r is not None and r.serial >= pending[0].serial]


HOOKS.before_end = run_pending_collectives
