"""Recorded calls that other ranks take part in: none is left out on one rank only.

They run when somebody looks at anything, in the order of the program. Where nobody does, the end
of the job or the next collective on tensors runs them.
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
    """See that what computes a value runs, though nobody may look at anything that needs it."""
    _expected[:] = [x for x in _expected if x.lazy.array is None]
    if not trace.now.depth:
        _expected.append(wrap(x))


def settle() -> None:
    """Run what is recorded, if any of it waits for other ranks."""
    if any(x.lazy.array is None for x in _expected):
        flush()
    _expected.clear()


session.before_end.append(settle)
