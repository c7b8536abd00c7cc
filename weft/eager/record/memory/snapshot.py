"""Memory that others may write to: a record reads what it held when its line ran.

A NumPy array that shares memory with a tensor may be overwritten at the next line, while records
are computed later. So a record reads a copy, taken when it is recorded. Further records share that
copy as long as the elements are the same. A record with a large input and a small result, such as a
lookup of a few rows, is computed at once instead, unless other ranks would have to be called for
that, whose arrays may be smaller. So are in-place changes of such memory: see
`State.keep_up`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from functools import partial
from types import FrameType
from typing import Final
from weakref import ref

import numpy as np

from weft.eager.record.call.interned_type import intern
from weft.eager.record.call.plan import Plan, op_plan
from weft.eager.record.listing.collective_calls import calls_others
from weft.eager.record.memory.memory_pool import copied, is_lent
from weft.eager.record.pending.lazy import Array, Lazy, Loan, Record, begun, entry, serials
from weft.eager.record.pending.state import compute, flush, set_reader, trace
from weft.ir.dtype import bool_
from weft.ir.shape import known, size
from weft.ops.declaration import REGISTRY

IDENTITY: Final = REGISTRY["identity"]
# A program for one record takes 40 us; a copy of 400 KB takes 11 us, of 3 MB 230 us. So above this
# size a record is computed at once if its result is small: a step of logistic regression on 7.8 MB
# takes 1.0 ms, 1.2 with a copy.
LARGE: Final = 1 << 20  # bytes
SMALL: Final = 4  # times the result must be less than what is read


class Borrowed(Lazy):
    """Memory of others that a record reads without a copy, as it is computed at once."""

    __slots__ = ()


class _Late:
    """Whether any gradient reads memory of others without a copy."""

    met = False


_loans: Final[dict[int, ref[Loan]]] = {}


def loan_of(array: Array) -> Loan:
    """The loan of an array, shared by all tensors on that array."""
    key = id(array)
    known = _loans.get(key)
    found = None if known is None else known()
    if found is None:
        found = Loan()
        _loans[key] = ref(found, partial(_end, key))
    return found


def _end(key: int, loan: ref[Loan]) -> None:
    if _loans.get(key) is loan:  # else the identity is that of another array by now
        del _loans[key]


def is_open(lazy: Lazy) -> bool:
    """Whether others may still write to a value's array, since they refer to it."""
    if lazy.loan is None or lazy.array is None:
        return False
    if is_alone(lazy) or not is_lent(lazy.array):
        lazy.loan = None
    return lazy.loan is not None


def is_alone(lazy: Lazy) -> bool:
    """Whether nobody else refers to a value's array, nor can any more."""
    return _references(lazy) <= _OWN[0]


def _references(lazy: Lazy) -> float:
    """The reference count of the array that owns a value's memory."""
    array = lazy.array
    return math.inf if array is None or array.base is not None else sys.getrefcount(array)


def _references_of_own() -> float:
    """That count if only the value refers to the array."""
    lazy = begun(Lazy(), intern(bool_, ()))
    lazy.array = np.zeros((), np.bool_)
    return _references(lazy)


_OWN: Final = [_references_of_own()]


def as_now(lazy: Lazy) -> Lazy:
    """A snapshot of a value that others may write to; any other value itself."""
    return lazy if lazy.loan is None else recorded_copy(lazy)


def recorded_copy(lazy: Lazy) -> Lazy:
    """The same value, newly recorded."""
    return trace.now.record(op_plan(IDENTITY, (lazy.type,), {}), (lazy,))[0]


def compute_readers(array: Array) -> None:
    """Compute what is pending if it reads an array that is about to be shared."""
    now = trace.now
    if not now.depth and any([x.array is array for r in now.pending for x in r.inputs]):
        flush()


def compute_late_gradients(records: Iterable[Record]) -> None:
    """Compute gradients just recorded if the `records` that they differentiate read such memory."""
    if _Late.met and not trace.now.depth and any([_is_late(x) for r in records for x in r.inputs]):
        flush()


def note_late() -> None:
    """Note that gradients may flow through a value in memory of others."""
    _Late.met = True


def _is_late(lazy: Lazy) -> bool:
    return type(lazy) is Borrowed or (lazy.loan is not None and lazy.record is not None)


def _read(plan: Plan, inputs: tuple[Lazy, ...], frame: FrameType | None) -> tuple[Lazy, ...]:
    """Record a call with inputs that others may write to."""
    now = trace.now
    lent = [x for x in inputs if x.loan is not None and is_open(x)]
    if not lent:
        return now.record_at(plan, inputs, frame)
    flows = plan.pattern.differentiable and now.grad_mode
    at_once = now.prompt or (_gives_little(plan, lent) and not calls_others(_pending(inputs)))
    stand_in = _borrowed if at_once else _copied
    safe = tuple([x if x.loan is None else stand_in(x, flows and x.tracked) for x in inputs])
    found = now.record_at(plan, safe, frame)
    if now.prompt:
        now.due = True
    elif at_once:
        _Late.met = _Late.met or any([y.tracked for y in found])
        compute(found)
    return found


set_reader(_read)


def _gives_little(plan: Plan, lazies: Iterable[Lazy]) -> bool:
    """Whether the inputs are large and the result is small."""
    read = sum([x.array.nbytes for x in lazies if x.array is not None])
    if read <= LARGE:
        return False
    return read >= SMALL * sum([size(known(t.shape)) * t.dtype.size for t in plan.types])


def _pending(inputs: Iterable[Lazy]) -> list[Lazy]:
    return [x for x in inputs if x.array is None]


def _borrowed(lazy: Lazy, flows: bool) -> Lazy:
    """A value's memory, to be read at once without a copy."""
    found = begun(Borrowed(), lazy.type)
    found.array = lazy.array
    return _joined(found, lazy) if flows else found


def _copied(lazy: Lazy, flows: bool) -> Lazy:
    """A copy of a value as it is now: the last copy, if it still has the same elements."""
    loan, array = lazy.loan, lazy.array
    assert loan is not None and array is not None
    last = None if loan.last is None else loan.last()
    if last is None or last.type is not lazy.type or not _are_same(last.array, array):
        last, same = None, copied(array, array.dtype)
    else:
        same = last.array
    if last is not None and (_is_joined(last, lazy) if flows else not last.tracked):
        return last
    found = begun(Lazy(), lazy.type)
    found.array = same
    loan.last = ref(found)
    return _joined(found, lazy) if flows else found


def _joined(copy: Lazy, lazy: Lazy) -> Lazy:
    """A copy through which gradients flow back to the value."""
    copy.record = record = entry(op_plan(IDENTITY, (lazy.type,), {}), (lazy,), next(serials))
    copy.tracked, record.outputs = True, (copy,)
    return copy


def _is_joined(copy: Lazy, lazy: Lazy) -> bool:
    record = copy.record
    return record is not None and record.freed is None and record.inputs[0] is lazy


def _are_same(copy: Array | None, array: Array) -> bool:
    """Whether a copy has the same bits as an array."""
    if copy is None:
        return False
    words = np.uint64 if array.nbytes % 8 == 0 else np.uint8
    now = np.ascontiguousarray(array)
    return np.array_equal(copy.reshape(-1).view(words), now.reshape(-1).view(words))
