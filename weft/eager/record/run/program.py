"""Computes recorded values, in the order that they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.eager.record.listing.collective_calls import calls_others
from weft.eager.record.memory.old_value import copies_of_needed
from weft.eager.record.memory.result import assign_arrays
from weft.eager.record.pending.access import refuse
from weft.eager.record.pending.change import Pending
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.pending.state import computing, trace
from weft.eager.record.recognition.program_cache import learn, recurring
from weft.eager.record.recognition.structure import Structure, needed, structure_of
from weft.eager.record.recognition.traced_call import CapturedState
from weft.eager.record.run import kept_result, shortcut
from weft.eager.record.run.first_step import made_once
from weft.eager.record.run.interruption import release, without_interrupted
from weft.eager.record.run.recovery import blame, recover, recover_interrupted
from weft.eager.record.run.tier_choice import begun
from weft.errors import WeftError
from weft.host.garbage_collection import uncollected
from weft.host.interrupt import NoticesWait, Uninterrupted
from weft.ops.communication.exchange_log import exchanges_made
from weft.runtime.flight import land
from weft.transport import session


@uncollected
def flush(wanted: Lazy | None = None) -> None:
    """Compute every pending value of this thread that a tensor holds.

    What Ctrl-C has interrupted, and what depends on it, stays pending until it is read.
    """
    now, made = trace.now, exchanges_made()
    with computing, NoticesWait():  # no handler of a signal computes what is being computed
        pending = now.waiting()
        try:
            now.take()
            if now.interrupted.pending.records:
                pending = without_interrupted(pending)
            _compute_pending(pending, wanted)
        except BaseException as error:
            recover(error, pending)
            now.taken = None
            if isinstance(error, WeftError) and made == exchanges_made():  # no second call of
                flush()  # others; programs run in another order: an earlier call may fail as well
            raise
        now.taken = None


def _compute_pending(pending: Pending, wanted: Lazy | None) -> None:
    held = [] if trace.now.depth else kept_result.hold(pending.records, wanted)
    try:
        if _is_call(pending.records) or not _compute_again(pending.records, wanted):
            outputs = _due(pending.records)
            if outputs:
                compute(outputs, as_rows=True, wanted=wanted)
    finally:
        kept_result.release(held)


def _due(records: Iterable[Record]) -> list[Lazy]:
    """The results that are computed together with all that is pending."""
    return [y for r in records if not r.plan.boundless for y in r.outputs if _is_due(y)]


def _is_due(lazy: Lazy) -> bool:
    return lazy.array is None and lazy.is_live


def _is_call(records: Sequence[Record]) -> bool:
    """Whether only a call of a traced function is pending; it has a path of its own."""
    return len(records) == 1 and hasattr(records[0], "captured")


def _compute_again(records: Sequence[Record], wanted: Lazy | None) -> bool:
    """Compute what is pending if its structure was computed before; whether it was."""
    structure = recurring(records)
    if structure is None:
        return False
    _compute_whole(structure, True, wanted, False)
    return True


@uncollected
def compute_part(lazies: Sequence[Lazy]) -> None:
    """Compute values that are pending in other threads, were interrupted, or are pending outside of
    a function that is being traced; with them what tensors hold of all that they depend on.

    Raises:
        WeftError: one cannot be computed.
    """
    with computing, NoticesWait():
        for lazy in lazies:
            if lazy.array is None and lazy.record is None:
                refuse(lazy)
        try:
            behind = [] if trace.now.depth else _due(needed(lazies))
            compute(list(dict.fromkeys([*lazies, *behind])), partial=True)
        except WeftError as error:
            recover_interrupted(error)
            raise
        if trace.now.interrupted.pending.records:
            release()


def compute(
    outputs: Sequence[Lazy],
    as_rows: bool = False,
    wanted: Lazy | None = None,
    partial: bool = False,
) -> None:
    """Compute these values.

    Args:
        as_rows: compute only the rows of row-sparse values; the rest when they are read.
        wanted: is read next.
        partial: whether more is pending that may read the same.
    """
    with computing:
        outputs = [y for y in outputs if y.array is None]  # another thread may have computed it
        if not outputs:
            return
        if trace.now.depth and calls_others(outputs):
            outputs = [*_earlier(outputs), *outputs]
        structure = _recurring(outputs) or _remaining(outputs, partial)
        _compute_whole(structure, as_rows, wanted, partial)


def _earlier(outputs: Sequence[Lazy]) -> list[Lazy]:
    """What was recorded before these values, outside of the function that is being traced.

    Ranks that need not trace it make calls in the order in which they were recorded.
    """
    last = max([y.record.serial for y in outputs if y.record is not None], default=-1)
    records = [r for r in trace.now.pending_outside() if r.serial <= last]
    return [y for r in records for y in r.outputs if _is_due(y) and y not in outputs]


def _compute_whole(structure: Structure, as_rows: bool, wanted: Lazy | None, partial: bool) -> None:
    try:
        _compute(structure, as_rows, wanted, partial)
    except BaseException as error:
        session.step_failed(error)
        if isinstance(error, WeftError):
            blame(error, structure)
        raise


def _compute(structure: Structure, as_rows: bool, wanted: Lazy | None, partial: bool) -> None:
    leaves = structure.arrays()
    now = trace.now
    inspect = now.inspect
    if inspect:
        land()
        found = inspect(structure, leaves)
        assign_arrays(structure, found, frozenset(), copies_of_needed(structure))
        return
    tier, compute = begun(structure, leaves, as_rows, wanted)
    if as_rows and structure.known is None:
        learn(structure)
        shortcut.learn(structure, tier)
    found = None if tier.overwrites else compute()
    with Uninterrupted():  # memory that was overwritten belongs to the new values
        copies = None if now.is_alone and not partial else copies_of_needed(structure)
        assign_arrays(structure, *(found or compute()), copies)
    if copies is not None:
        now.interrupted.core.difference_update(structure.records)


def _recurring(outputs: Sequence[Lazy]) -> Structure | None:
    """The structure of a repeated call of a traced function, if nothing else is pending."""
    record = outputs[0].record
    captured: CapturedState | None = getattr(record, "captured", None)
    return None if record is None or captured is None else captured.structure(record, outputs)


def _remaining(outputs: Sequence[Lazy], partial: bool) -> Structure:
    """The structure to compute now, once what should be a program before it has been computed."""
    structure = structure_of(outputs)
    kept_result.note(structure)
    made = made_once(structure)
    if made:
        compute(made, partial=partial)
        outputs = [y for y in outputs if y.array is None]
        structure = structure_of(outputs)
    captured: CapturedState | None = getattr(structure.records[-1], "captured", None)
    if captured is not None:
        captured.learn(structure)
    return structure
