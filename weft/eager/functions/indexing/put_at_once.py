"""`x[key] = value` of plain data, written to memory without being recorded."""

from __future__ import annotations

from typing import Any, Final

from weft.eager.functions.indexing.basic_index import out_of_range
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.view_transform import pasted, with_row
from weft.errors import ShapeError
from weft.ir.shape import known, size

UPDATES: Final = frozenset({pasted, with_row})
MOST_UPDATES: Final = 8  # in a row to a pending tensor, which is then computed
MOST_WRITTEN: Final = 1 << 14  # elements of a new tensor that is computed to be written into


def put_at_once(x: Handle, entries: tuple[Any, ...], value: Any) -> bool:
    """Write plain data into memory that nothing else reads, instead of recording the change."""
    if _updates(x.lazy) >= MOST_UPDATES or _is_new(x.lazy):
        array_of(x.lazy)
    plain = value.array if isinstance(value, Handle) and value.is_available else value
    if isinstance(plain, Handle):
        return False
    array = x.own_memory()
    if array is None:
        return False
    try:
        array[entries] = plain
    except IndexError as error:
        raise out_of_range(error, array.shape) from None
    except ValueError as error:
        raise ShapeError.here(f"x[...] = value: {error}") from None
    x.touch()
    return True


def _is_new(lazy: Lazy) -> bool:
    """Whether a small value such as `zeros(n)` is all that is pending: it is to be written into."""
    now, record = trace.now, lazy.record
    if lazy.array is not None or record is None or record.inputs or len(now.pending) > 1:
        return False
    return not (lazy.tracked or now.depth) and 0 < size(known(lazy.type.shape)) <= MOST_WRITTEN


def _updates(lazy: Lazy) -> int:
    """How many consecutive assignments a value depends on, up to the limit."""
    count = 0
    while count < MOST_UPDATES and lazy.array is None and lazy.record is not None:
        if lazy.tracked or trace.now.depth or lazy.record.plan.pattern.called not in UPDATES:
            break
        count += 1
        lazy = lazy.record.inputs[0]
    return count
