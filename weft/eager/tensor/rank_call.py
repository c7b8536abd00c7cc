"""Recorded collectives: all ranks run the same ones.

They run in program order when any value is read. If none is read, the next collective on tensors or
the end of the job runs them.
"""

from __future__ import annotations

from typing import Any, Final

from weft.eager.record.lazy import Lazy
from weft.eager.record.state import flush, trace
from weft.eager.tensor.dispatch import wrap
from weft.transport import session

_expected: Final[list[Any]] = []
"""Tensors that show results which may not be computed yet."""


def await_result(x: Lazy) -> None:
    """Make sure that a value is computed even if nothing that needs it is read."""
    _expected[:] = [x for x in _expected if x.lazy.array is None]
    if not trace.now.depth:
        _expected.append(wrap(x))


def settle() -> None:
    """Run what is recorded, if it contains collectives."""
    if any(x.lazy.array is None for x in _expected):
        flush()
    _expected.clear()


session.before_end.append(settle)
