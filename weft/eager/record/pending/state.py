"""What each thread has recorded and not yet computed, and how calls are added to it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from weft.eager.record.pending.change import Change, Interrupted, Pending, Replaced
from weft.eager.record.pending.lazy import Lazy, Record, begun, entry, in_package, serials
from weft.eager.record.pending.loop_cut import FEW, MANY, LoopStart
from weft.errors import WeftError
from weft.host.garbage_collection import FirstRead, collect_after
from weft.ir.look import looks
from weft.runtime.flight import new_lock

if TYPE_CHECKING:
    from weft.eager.record.call.plan import Plan

MOST_PENDING: Final = 2048
"""Pending records after which live values are computed even if none is read.

It bounds the size of programs.
"""
OBJECTS: Final = 8  # that Python's collector knows, of a record
collect_after(OBJECTS * MOST_PENDING)
MOST_BACKWARD: Final = 4
"""The same for backward passes without an optimizer step, as in gradient accumulation."""


computing: Final = new_lock()
"""Held to compute, and to change which value a tensor holds: both decide what memory is whose."""

_states: Final[dict[int, ref[State]]] = {}
"""The states of all threads that have one, by identity."""
left: Final[list[Pending]] = []
"""What ended threads have left pending."""


class State:
    """What a thread has recorded and not yet computed, and its modes."""

    __slots__ = (
        "__weakref__", "anomaly", "autocast", "backward_passes", "called", "changed", "changes",
        "depth", "device", "devices", "duals", "due", "grad_mode", "inference", "inspect",
        "interrupted", "limit", "loop_start", "maps", "outer", "pending", "prompt", "taken",
        "unfinished", "whole",
    )  # fmt: skip

    def __init__(self) -> None:
        self.pending: list[Record] = []
        self.changes: list[Change] = []  # changes that rely on pending records, oldest first
        self.taken: Pending | None = None  # what is being computed
        self.interrupted = Interrupted()
        self.unfinished: list[Callable[[], None]] = []  # record what belongs to the same program
        self.backward_passes = 0  # since records were last computed
        self.limit = (
            FEW  # pending records from which on `make_room` decides; 0 after an optimizer step
        )
        self.whole = 0  # the frame, by identity, of a call within which `make_room` is not asked
        self.due = False  # whether a pending record writes to memory that others read
        self.prompt = False  # whether the current call computes its records before it returns
        self.loop_start: LoopStart | None = None  # of a loop that reads no values
        self.grad_mode = True
        self.inference = False  # inside `inference_mode()`
        self.autocast: Any = None  # the dtype of mixed precision
        # runs a program and checks each value: `weft.eager.tensor.autograd.anomaly`
        self.inspect: Any = None
        self.anomaly = False  # whether backward passes are inspected
        self.device = 0  # the CPU of new tensors
        self.devices: list[int] = []  # those outside of `with device(...)` blocks
        self.depth = 0  # nested functions being traced: `weft.eager.tensor.autograd.tracing`
        self.duals: list[Any] = []  # forward-mode levels: `weft.autograd.forward_ad`
        self.maps: list[Any] = []  # `vmap` calls being traced: `weft.func.rule`
        self.outer: Any = None  # what was pending when the innermost trace began
        self.called: dict[Any, bool] | None = None  # modules under `jit`: training or not
        self.changed: dict[Any, Lazy] = {}  # values of the tensors that the innermost trace changed

    def __del__(self, left: list[Pending] = left, waiting: Any = Pending) -> None:
        if self.pending or self.interrupted.pending.records:
            left.extend([waiting(self.pending, self.changes), self.interrupted.pending])

    @property
    def is_alone(self) -> bool:
        """Whether its pending values are all there are, and are computed together."""
        return len(_states) < 2 and not (left or self.interrupted.pending.records)

    def waiting(self) -> Pending:
        """The pending records."""
        return Pending(self.pending, self.changes)

    def pending_outside(self) -> list[Record]:
        """The records that wait outside of all functions that are being traced."""
        pending, outer = self.pending, self.outer
        while outer is not None:
            pending, _, _, outer = outer
        return pending

    def take(self) -> Pending:
        """Take all pending records, to compute them: afterwards nothing is pending or due."""
        found = self.taken = self.waiting()
        self.pending, self.changes = [], []
        self.limit = FEW
        self.loop_start = None
        self.backward_passes = 0
        self.due = False
        return found

    def on_failure(self, value: Lazy, take_back: Callable[[], None]) -> None:
        """Have `take_back` called if a pending value cannot be computed."""
        if value.array is None and not self.depth:
            self.changes.append(Change(value, take_back))

    def note_replaced(self, value: Lazy, replaced: Sequence[Replaced]) -> None:
        """Have tensors take back their old values if a pending value cannot be computed."""
        if value.array is None and not self.depth:
            self.changes.append(Change(value, None, replaced))

    def expect(self, lazy: Lazy) -> None:
        """Make a value pending that earlier programs left out, as no tensor held it."""
        record, pending = lazy.record, self.pending
        if lazy.array is not None or record is None:
            return
        if not pending or (record.serial < pending[0].serial and record not in pending):
            pending.append(record)

    def end_backward(self) -> None:
        """Count a backward pass; after `MOST_BACKWARD`, the next record flushes what is pending."""
        self.backward_passes += 1
        if self.backward_passes >= MOST_BACKWARD and not self.depth:
            self.limit = 0

    def begin_derivative(self) -> tuple[int, int, int]:
        """What `end_derivative` has to know."""
        start = self.loop_start
        return next(serials), self.limit, 0 if start is None else start.seen

    def end_derivative(self, since: int, limit: int, seen: int) -> None:
        """Let what a derivative recorded keep no step whole: it has ended, with none around it."""
        for record in self.pending[seen:]:
            if record.serial >= since:
                break
            if any([y.tracked and y.leaf is None for y in record.outputs]):
                return
        start = self.loop_start = self.loop_start or LoopStart()
        start.seen = len(self.pending)
        if limit == FEW and self.limit == MOST_PENDING:
            self.limit = FEW

    def keep_up(self) -> None:
        """Compute what is pending if it writes to memory that others, such as NumPy, read."""
        if self.due and not self.depth:
            flush()

    def make_room(self, frame: FrameType | None = None) -> None:
        """Compute what is pending if the next record, made in `frame`, should begin a new program.

        That is so after an optimizer step, after `MOST_PENDING` records, and at the next iteration
        of a loop without gradients. With gradients, a whole step stays one program.
        """
        count, limit, start = len(self.pending), self.limit, None
        if count < limit:
            return
        if limit and count < MOST_PENDING:
            start, behind = self.loop_start, self.pending[-1].plan.name
            if start is None:
                self.loop_start = start = LoopStart()
            elif not start.may_begin(count, behind):
                return
            new, start.seen = self.pending[start.seen :], count
            results = [result() for record in new for result in record.results]
            if any([y is not None and y.tracked and y.leaf is None for y in results]):
                self.limit = MOST_PENDING
                return
            if not start.begins(count, behind, frame):
                if start.whole and count < MANY:
                    self.whole, self.limit = start.whole, MANY
                return
        flush()
        if start is not None:
            self.loop_start, start.seen = start, 0

    def end_whole(self, frame: FrameType) -> None:
        """Ask `make_room` again, if the call in this frame is the one within which it is not."""
        if self.whole == id(frame):
            self.whole = 0
            if self.limit == MANY:
                self.limit = FEW

    def record(self, plan: Plan, inputs: tuple[Lazy, ...]) -> tuple[Lazy, ...]:
        """Record one call made by the caller of this method; return its results."""
        return self.record_at(plan, inputs, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    def record_at(
        self, plan: Plan, inputs: tuple[Lazy, ...], frame: FrameType | None
    ) -> tuple[Lazy, ...]:
        """Record one call made in `frame`; return its results."""
        if plan.single:
            return (self.record_one(plan, inputs, frame),)
        for x in inputs:
            if x.loan is not None and not (self.depth or plan.follows):
                return _reader[0](plan, inputs, frame)
        if len(self.pending) >= self.limit:
            self.make_room(frame)
        record = entry(plan, inputs, next(serials), frame)
        tracked = 0
        if plan.pattern.differentiable and self.grad_mode:
            for i, x in enumerate(inputs):
                tracked |= x.tracked << i
        flows = zip(plan.types, plan.pattern.flows, strict=True)
        outputs = tuple(
            [begun(Lazy(), t, record, i, f & tracked != 0) for i, (t, f) in enumerate(flows)]
        )
        record.outputs = outputs
        self.pending.append(record)
        return outputs

    def record_one(self, plan: Plan, inputs: tuple[Lazy, ...], frame: FrameType | None) -> Lazy:
        """Record one call made in `frame` that has a single result.

        This is most of the cost of an operation, so `entry` and `begun` are inlined by hand: each
        Python call would add some 50 ns.
        """
        for x in inputs:
            if x.loan is not None and not (self.depth or plan.follows):
                return _reader[0](plan, inputs, frame)[0]
        if len(self.pending) >= self.limit:
            self.make_room(frame)
        record, found = Record(), Lazy()
        record.plan = plan
        record.inputs = inputs
        record.serial = next(serials)
        record.freed = None
        record.results = (ref(found),)
        record.code = None
        while frame is not None:
            code = frame.f_code
            if not in_package[code.co_filename]:
                record.code, record.place = code, frame.f_lasti
                break
            frame = frame.f_back
        found.type = plan.types[0]
        found.record = record
        found.index = 0
        found.tracked = False
        found.array = found.owner = found.leaf = found.hooks = found.home = None
        found.loan = None
        if plan.continuous and self.grad_mode:
            for lazy in inputs:
                if lazy.tracked:
                    found.tracked = True
                    break
        self.pending.append(record)
        return found


def _begun() -> State:
    """The state of another thread."""
    now = State()
    key = id(now)
    _states[key] = ref(now, partial(_forget, key))
    return now


class Trace(threading.local):
    """`trace.now` is the state of the current thread; read it once if you need it often."""

    now = FirstRead(_begun)


def _forget(key: int, _: ref[State], states: dict[int, ref[State]] = _states) -> None:
    states.pop(key, None)


trace: Final = Trace()


def all_states() -> Iterator[State]:
    """The states of all threads."""
    for reference in tuple(_states.values()):
        state = reference()
        if state is not None:
            yield state


def needs_gradient(lazy: Lazy) -> bool:
    """Whether reverse mode needs a value, and not only forward mode."""
    looks.count += 1
    duals = trace.now.duals
    return lazy.tracked and not (duals and duals[-1].is_moved_alone(lazy))


_reader: list[Callable[[Any, tuple[Lazy, ...], FrameType | None], tuple[Lazy, ...]]] = []


def set_reader(read: Callable[[Any, tuple[Lazy, ...], FrameType | None], tuple[Lazy, ...]]) -> None:
    """Set the recorder of calls that read lent memory; `weft.eager.record.memory.snapshot` does
    so.
    """
    _reader[:] = [read]


Runner = tuple[Callable[[Lazy | None], None], Callable[[Sequence[Lazy]], None]]
_runner: list[Runner] = []


def set_runner(
    flush: Callable[[Lazy | None], None], compute: Callable[[Sequence[Lazy]], None]
) -> None:
    """Set the functions that compute records; `weft.eager.tensor.tensor` does so."""
    _runner[:] = [(flush, compute)]


_shortcut: list[Callable[[State], bool]] = []


def set_shortcut(taken: Callable[[State], bool]) -> None:
    """Set the function that computes what is pending if it can; whether it could."""
    _shortcut[:] = [taken]


def flush(wanted: Lazy | None = None) -> None:
    """Compute all pending values of this thread that a tensor holds; `wanted` is read next."""
    now = trace.now
    while now.unfinished:
        now.unfinished.pop()()
    if now.depth or now.inspect or now.interrupted.pending.records or not _shortcut[0](now):
        _runner[0][0](wanted)


def compute(lazies: Sequence[Lazy]) -> None:
    """Compute these values."""
    _runner[0][1](lazies)


def compute_all_pending() -> None:
    """Compute every pending value that a tensor holds, of all threads.

    Whoever starts processes does so first, as each of them would compute what it reads anew. Inside
    a function that is being traced, nothing is computed.
    """
    if trace.now.depth:
        return
    flush()
    for state in all_states():
        if state is not trace.now and not state.depth:
            values = [y for record in list(state.pending) for y in record.outputs]
            with suppress(WeftError):  # raised where the thread reads the value
                compute([y for y in values if y.is_live and not _is_boundless(y)])


def _is_boundless(lazy: Lazy) -> bool:
    return lazy.record is not None and lazy.record.plan.boundless
