"""`x[key] = value` of plain data, written to memory without being recorded."""

from __future__ import annotations

from typing import Any, Final

from weft.eager.functions.indexing.basic_index import out_of_range
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.fill import fill
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.view_transform import pasted, with_row
from weft.errors import ShapeError

UPDATES: Final = frozenset({pasted, with_row})
MOST_UPDATES: Final = 8  # in a row to a pending tensor, which is then computed


def put_at_once(x: Handle, entries: tuple[Any, ...], value: Any) -> bool:
    """Write plain data into memory that nothing else reads, instead of recording the change."""
    if _updates(x.lazy) >= MOST_UPDATES:
        array_of(x.lazy)
    plain = value.array if isinstance(value, Handle) and value.is_available else value
    if isinstance(plain, Handle):
        return False
    if x.shown.array is None:
        fill(x.shown)
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


def _updates(lazy: Lazy) -> int:
    """How many consecutive assignments a value depends on, up to the limit."""
    count = 0
    while count < MOST_UPDATES and lazy.array is None and lazy.record is not None:
        if lazy.tracked or trace.now.depth or lazy.record.plan.pattern.called not in UPDATES:
            break
        count += 1
        lazy = lazy.record.inputs[0]
    return count
