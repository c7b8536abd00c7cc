"""Values that are known by how they are computed: the nodes of the recording.

A `Record` is one recorded call, a `Lazy` one of its results. Both are immutable in meaning: an
in-place change gives the tensor another `Lazy`. A `Lazy` without a record is a leaf: it has its
array from the start.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar
from weakref import ref

import numpy as np

from weft.eager.record.loop_cut import FEW, LoopStart
from weft.errors import TracerError, WeftError
from weft.ir.node import NOT_THE_USER, Source, TensorType
from weft.ops.base import at_user_line
from weft.runtime.flight import land_for

if TYPE_CHECKING:
    from weft.eager.record.plan import Plan

Array = np.ndarray[Any, Any]
T = TypeVar("T")
L = TypeVar("L", bound="Lazy")
# Then what is live is computed, so that programs are bounded also where nobody looks at anything.
MOST_PENDING: Final = 2048  # records
MOST_BACKWARD: Final = 4  # backward passes without an optimiser's step, as when gradients add up


class Record:
    """One recorded call: `plan` says what, `inputs` on what, `source` where in the program.

    Values refer to their record, a record does not keep its values: so both are gone with the last
    tensor that needs them, and Python's garbage collector has nothing to find.
    """

    # Set by `entry`: a class without a constructor of its own takes half as long to call.
    __slots__ = ("code", "freed", "inputs", "place", "plan", "results", "serial", "standing")
    plan: Plan
    inputs: tuple[Lazy, ...]
    serial: int
    freed: bool  # by a backward pass that did not retain the graph
    code: CodeType | None
    standing: Any  # only set for calls of traced functions: see `weft.eager.record.traced_call`
    place: int
    results: tuple[ref[Lazy], ...]

    @property
    def outputs(self) -> tuple[Lazy, ...]:
        """Its values, as far as anybody refers to them."""
        return tuple([y for result in self.results if (y := result()) is not None])

    @outputs.setter
    def outputs(self, outputs: Sequence[Lazy]) -> None:
        self.results = tuple([ref(y) for y in outputs])

    def paired(self, found: Sequence[T]) -> list[tuple[Lazy, T]]:
        """Its values, as far as anybody refers to them, each with what belongs to it."""
        pairs = zip(self.results, found, strict=True)
        return [(y, each) for result, each in pairs if (y := result()) is not None]

    @property
    def source(self) -> Source | None:
        """The user's line."""
        if self.code is None:
            return None
        found = self.code.co_firstlineno
        for start, end, line in self.code.co_lines():  # a generator would lose Ctrl-C at its end
            if start <= self.place < end and line:
                found = line
                break
        return Source(self.code.co_filename, found)


class _Inside(dict[str, bool]):
    """Which files belong to the package."""

    def __missing__(self, file: str) -> bool:
        found = self[file] = file.startswith(NOT_THE_USER)
        return found


_inside: Final = _Inside()


def entry(
    plan: Plan, inputs: tuple[Lazy, ...], serial: int, frame: FrameType | None = None
) -> Record:
    """A new record, made in `frame`, without results."""
    record = Record()
    record.plan = plan
    record.inputs = inputs
    record.serial = serial
    record.freed = False
    record.code = None
    while frame is not None:
        code = frame.f_code
        if not _inside[code.co_filename]:
            record.code, record.place = code, frame.f_lasti
            break
        frame = frame.f_back
    return record


class Loan:
    """Says that others may write to an array, and knows the last copy that was read instead."""

    __slots__ = ("__weakref__", "last")

    def __init__(self) -> None:
        self.last: ref[Lazy] | None = None


class Lazy:
    """A value: its type, its array once it is computed, and the record that computes it."""

    # Set by `begun`, for the same reason.
    __slots__ = (
        "__weakref__", "array", "home", "hooks", "index", "leaf", "loan", "owner", "record",
        "tracked", "type",
    )  # fmt: skip
    type: TensorType
    record: Record | None
    index: int
    tracked: bool  # whether a gradient may flow back through it
    array: Array | None
    owner: Callable[[], Any] | None  # the tensor that shows it, if one does
    leaf: Callable[[], Any] | None  # the tensor whose gradient accumulates
    hooks: dict[int, Any] | None  # see its gradient: `weft.eager.tensor.autograd.hook`
    home: Lazy | None  # the value whose memory it takes over
    loan: Loan | None  # where others may write to its array: see `weft.eager.record.snapshot`

    @property
    def is_live(self) -> bool:
        """Whether a tensor shows the value."""
        return self.owner is not None and self.owner() is not None


def needs_gradient(lazy: Lazy) -> bool:
    """Whether gradients flow to or through a value, and it does not just move at levels."""
    duals = trace.now.duals
    return lazy.tracked and not (duals and duals[-1].is_moved_alone(lazy))


def begun(
    lazy: L, type: TensorType, record: Record | None = None, index: int = 0, tracked: bool = False
) -> L:
    """A new value that nobody shows, result `index` of a record if one computes it."""
    lazy.type = type
    lazy.record = record
    lazy.index = index
    lazy.tracked = tracked
    lazy.array = lazy.owner = lazy.leaf = lazy.hooks = lazy.home = None
    lazy.loan = None
    return lazy


def known(array: Array, type: TensorType) -> Lazy:
    """A leaf: a value that is there already."""
    lazy = begun(Lazy(), type)
    lazy.array = array
    return lazy


class Number(Lazy):
    """A Python number; equal ones may share an array, but are different inputs of a program."""

    __slots__ = ()


class Tracer(Lazy):
    """An argument of a function that is being traced: it has a type, but no value.

    It is tracked where a gradient by it may be wanted, so that what is recorded under `no_grad()`
    is seen to be cut off.
    """

    __slots__ = ()


class Alias(Lazy):
    """The array of another value, through which no gradient flows."""

    __slots__ = ("base",)
    base: Lazy


class Drawn(Lazy):
    """A number that every run of a traced function draws anew: what random numbers begin with."""

    __slots__ = ("again", "serial")
    again: Callable[[], Drawn]
    serial: int  # as those of records


class Change(NamedTuple):
    """What follows in Python from a recorded call, as that another value is shown.

    Attributes:
        value: of the call.
        take_back: to be called, the last change first, where the call is not to be computed.
    """

    value: Lazy
    take_back: Callable[[], None]


class Pending(NamedTuple):
    """What waits to be computed."""

    records: list[Record]
    changes: list[Change]


class State:
    """What a thread has recorded and not yet computed, and the modes that it is in."""

    __slots__ = (
        "anomaly", "autocast", "backward_passes", "called", "changed", "changes", "depth", "duals",
        "due", "grad_mode", "inference", "inspect", "limit", "loop_start", "maps", "outer",
        "pending", "prompt",
    )  # fmt: skip

    def __init__(self) -> None:
        self.pending: list[Record] = []
        self.changes: list[Change] = []  # what follows from them, in order
        self.backward_passes = 0  # since something was computed
        self.limit = FEW  # from how many records on to compute some; 0 after an optimiser's step
        self.due = False  # whether memory that others see is to be written to
        self.prompt = False  # whether what is recorded is computed before anybody else goes on
        self.loop_start: LoopStart | None = None  # of a loop whose values nobody has looked at
        self.grad_mode = True
        self.inference = False  # whether tensors are made that no gradient ever needs
        self.autocast: Any = None  # the element type of mixed precision
        self.inspect: Any = (
            None  # runs programs and checks each value: `weft.eager.tensor.autograd.anomaly`
        )
        self.anomaly = False  # whether backward passes are inspected
        self.depth = (
            0  # how many functions are being traced: see `weft.eager.tensor.autograd.tracing`
        )
        self.duals: list[Any] = []  # levels of tangents: see `weft.autograd.forward_ad`
        self.maps: list[Any] = []  # calls of `vmap` that are being traced: see `weft.func.rule`
        self.outer: Any = None  # what was pending where the innermost trace was begun
        self.called: dict[Any, bool] | None = None  # modules, with whether in training, for `jit`
        self.changed: dict[Any, Lazy] = {}  # handles that the innermost one changed: value before

    def waiting(self) -> Pending:
        """What is pending."""
        return Pending(self.pending, self.changes)

    def take(self) -> Pending:
        """What is pending; nothing is afterwards, and nothing is due."""
        found = self.waiting()
        self.pending, self.changes = [], []
        self.limit = FEW
        self.loop_start = None
        self.backward_passes = 0
        self.due = False
        return found

    def on_failure(self, value: Lazy, take_back: Callable[[], None]) -> None:
        """Note what is to be done should a pending value never be computed."""
        if value.array is None and not self.depth:
            self.changes.append(Change(value, take_back))

    def expect(self, lazy: Lazy) -> None:
        """Have a value computed with what is pending, that nobody showed when others were."""
        record, pending = lazy.record, self.pending
        if lazy.array is not None or record is None:
            return
        if not pending or (record.serial < pending[0].serial and record not in pending):
            pending.append(record)

    def end_backward(self) -> None:
        """Note the end of a backward pass."""
        self.backward_passes += 1
        if self.backward_passes >= MOST_BACKWARD and not self.depth:
            self.limit = 0

    def keep_up(self) -> None:
        """Compute what is pending, if others are to see that memory has changed."""
        if self.due and not self.depth:
            flush()

    def make_room(self, frame: FrameType | None = None) -> None:
        """Compute what is pending where the next record, made in `frame`, had better not join it.

        That is after an optimiser's step, where there is very much, and where a loop comes round
        that no backward pass will go through: this one needs all of a step in one program.
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
            if any([y.tracked and y.leaf is None for record in new for y in record.outputs]):
                self.limit = MOST_PENDING
                return
            if not start.begins(count, behind, frame):
                return
        flush()
        if start is not None:
            self.loop_start, start.seen = start, 0

    def record(self, plan: Plan, inputs: tuple[Lazy, ...]) -> tuple[Lazy, ...]:
        """Record one call; its results."""
        return self.record_at(plan, inputs, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    def record_at(
        self, plan: Plan, inputs: tuple[Lazy, ...], frame: FrameType | None
    ) -> tuple[Lazy, ...]:
        """Record one call, made in `frame`; its results."""
        if plan.single:
            return (self.record_one(plan, inputs, frame),)
        for x in inputs:
            if x.loan is not None and not (self.depth or plan.follows):
                return _reader[0](plan, inputs, frame)
        if len(self.pending) >= self.limit:
            self.make_room(frame)
        record = entry(plan, inputs, next(_serials), frame)
        tracked = 0
        if plan.differentiable and self.grad_mode:
            for i, x in enumerate(inputs):
                tracked |= x.tracked << i
        flows = zip(plan.types, plan.flows, strict=True)
        outputs = tuple(
            [begun(Lazy(), t, record, i, f & tracked != 0) for i, (t, f) in enumerate(flows)]
        )
        record.outputs = outputs
        self.pending.append(record)
        return outputs

    def record_one(self, plan: Plan, inputs: tuple[Lazy, ...], frame: FrameType | None) -> Lazy:
        """Record one call, made in `frame`, that has a single result.

        Most of what there is to do for an operation is done here: hence no further calls.
        """
        for x in inputs:
            if x.loan is not None and not (self.depth or plan.follows):
                return _reader[0](plan, inputs, frame)[0]
        if len(self.pending) >= self.limit:
            self.make_room(frame)
        record, found = Record(), Lazy()
        record.plan = plan
        record.inputs = inputs
        record.serial = next(_serials)
        record.freed = False
        record.results = (ref(found),)
        record.code = None
        while frame is not None:
            code = frame.f_code
            if not _inside[code.co_filename]:
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


class Trace(threading.local):
    """The state of each thread: `trace.now`, read once where several fields are wanted."""

    def __init__(self) -> None:
        self.now = State()


_serials: Final = itertools.count()  # of all threads: what a record reads has a smaller number
trace: Final = Trace()


def next_serial() -> int:
    """A number larger than that of every record so far."""
    return next(_serials)


_reader: list[Callable[[Any, tuple[Lazy, ...], FrameType | None], tuple[Lazy, ...]]] = []


def set_reader(read: Callable[[Any, tuple[Lazy, ...], FrameType | None], tuple[Lazy, ...]]) -> None:
    """Called once, by the module that records calls which read memory that others may write to."""
    _reader[:] = [read]


_runner: list[tuple[Callable[[Lazy | None], None], Callable[[Sequence[Lazy]], None]]] = []


def set_runner(
    flush: Callable[[Lazy | None], None], compute: Callable[[Sequence[Lazy]], None]
) -> None:
    """Called once, by the module that runs recordings."""
    _runner[:] = [(flush, compute)]


def flush(wanted: Lazy | None = None) -> None:
    """Compute every pending value of this thread that a tensor shows; `wanted` is looked at."""
    _runner[0][0](wanted)


def compute(lazies: Sequence[Lazy]) -> None:
    """Compute these values."""
    _runner[0][1](lazies)


def array_of(lazy: Lazy) -> Array:
    """The array of a value that a tensor shows, computed now if need be.

    Raises:
        WeftError: its memory was overwritten by an in-place change.
    """
    array = lazy.array  # other threads may change that at any time
    if array is None and not trace.now.depth:
        flush(lazy)
        array = lazy.array
    if array is None:  # recorded by another thread, or before a function that is being traced
        compute([lazy])
        array = lazy.array
        if array is None:
            refuse(lazy)
    land_for(id(array))
    return array


def array_if_known(lazy: Lazy) -> Array | None:
    """`array_of`; `None` where the value depends on an argument of a function being traced."""
    try:
        return array_of(lazy)
    except TracerError:
        return None


def detached(base: Lazy) -> Lazy | None:
    """The same value without gradients and without recording anything; `None` while it is pending.

    After an optimiser's step what is pending is computed first: it ends an iteration.
    """
    if base.array is None and trace.now.pending and not trace.now.limit:
        flush(base)
    if base.array is None:
        return None
    alias = begun(Alias(), base.type)
    alias.base, alias.array, alias.loan = base, base.array, base.loan
    return alias


def refuse(lazy: Lazy, record: Record | None = None) -> NoReturn:
    """Say why a value cannot be had, which a record reads or the user looks at.

    Raises:
        TracerError: it is an argument of a function that is being traced.
        WeftError: its memory was overwritten by an in-place change.
    """
    source = None if record is None else record.source
    where = at_user_line() if source is None else f" (created at {source})"
    if isinstance(lazy, Tracer):
        raise TracerError(
            "the value of an argument is needed while a function is traced (by jit, vmap, "
            f"checkpoint, ...), where it stands for any {lazy.type}; use operations such as "
            "where() instead of Python's if, or make the argument static"
            f"{where}"
        )
    error = WeftError(
        "a value that is needed here was changed in place after it was used; clone() it before the "
        f"change, or call backward() first{where}"
    )
    error.serial = None if record is None else record.serial
    raise error
