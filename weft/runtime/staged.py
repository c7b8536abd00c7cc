"""Runs the stages of a partitioned step on the devices of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from weft.errors import UninitializedError
from weft.host.crew import Crew
from weft.host.interrupt import Uninterrupted, abandonable
from weft.ir.node import Node, TensorType
from weft.ops.boundary.state import variable
from weft.ops.declaration import op_of
from weft.passes.partition import Partition, Stage
from weft.runtime.device.base import Buffer, Device, HostArray, Variables
from weft.runtime.executable import uninitialized
from weft.runtime.stage_times import StageTime

IDLE_SECONDS: Final = 1.0
"""How long a thread waits for the next step before it ends."""
LOOK_SECONDS: Final = 0.2
"""How often a thread that waits looks for Ctrl-C, which another thread may have received."""
_CREW: Final = Crew("weft-device", IDLE_SECONDS)


def no_memory(value: int, kind: TensorType) -> Buffer | None:
    """Leaves it to the devices to allocate memory."""
    del value, kind


class Box:
    """The values of one run of a step, by number: where stages on different threads meet.

    Args:
        count: how many values there are.
        allocate: gives memory for a value that a stage computes, of its device, or `None`.
        send: is told each value that a stage has computed.
        watch: is told the times of each stage.
    """

    def __init__(
        self, count: int, allocate: Callable[[int, TensorType], Buffer | None] = no_memory,
        send: Callable[[int, Buffer], None] | None = None,
        watch: Callable[[StageTime], object] | None = None,
    ) -> None:  # fmt: skip
        self.allocate: Final = allocate
        self.send: Final = send
        self.watch: Final = watch
        self.error: BaseException | None = None
        self._buffers: list[Any] = [None] * count
        self._owners: dict[int, Device] = {}  # of buffers that are no arrays
        self._copies: dict[tuple[int, Device], Buffer] = {}
        self._changed = threading.Condition()
        self._waiting = 0

    def put(self, value: int, array: Buffer, owner: Device | None = None) -> None:
        """Gives a value to those that wait for it.

        Args:
            array: an array, or a buffer of a device.
            owner: this device.
        """
        if owner is not None:
            self._owners[value] = owner
        self._buffers[value] = array
        if self._waiting:
            with self._changed:
                self._changed.notify_all()

    def get(self, value: int) -> HostArray:
        """A value as an array, once it is there.

        Raises:
            BaseException: what `abort` was given.
        """
        found = self._buffers[value]
        if found is None:
            found = self._awaited(value)
        return self._owners[value].to_host(found) if value in self._owners else found

    def on(self, value: int, device: Device) -> Buffer:
        """A value as a buffer of a device that does not compute in host memory; copied once.

        Raises:
            BaseException: what `abort` was given.
        """
        if self._buffers[value] is None:
            self.get(value)
        owner, key = self._owners.get(value), (value, device)
        if owner is device:
            return self._buffers[value]
        if key not in self._copies:
            found = self._buffers[value]
            copy = device.from_host(found) if owner is None else owner.send(found, device)
            self._copies[key] = copy
        return self._copies[key]

    def has(self, value: int) -> bool:
        """Whether a value is there."""
        return self._buffers[value] is not None

    def abort(self, error: BaseException) -> None:
        """Makes all that wait, now or later, raise this error; only the first one counts."""
        with self._changed:
            if self.error is None:
                self.error = error
            self._changed.notify_all()

    def check(self) -> None:
        """Raises what `abort` was given, if it was called."""
        if self.error is not None:
            raise self.error

    def _awaited(self, value: int) -> Buffer:
        with self._changed:
            self._waiting += 1
            try:
                while self._buffers[value] is None:
                    self.check()
                    self._changed.wait(LOOK_SECONDS)
                return self._buffers[value]
            finally:
                self._waiting -= 1


class _Piece:
    """A stage and its program."""

    def __init__(
        self, number: int, stage: Stage, device: Device, types: Sequence[TensorType]
    ) -> None:
        self.number: Final = number
        self.stage: Final = stage
        self._device: Final = device
        self._program: Final = device.compile(stage.step)
        self._outputs: Final = [(number, types[number]) for number in stage.outputs]
        self.reads: Final = {
            str(n.attrs["key"]): n for n in stage.step.graph.nodes if _must_have_value(n)
        }

    def run(self, box: Box, variables: Variables) -> None:
        """Runs it once its inputs are there."""
        watch = box.watch
        begin = time.perf_counter_ns() if watch else 0
        device = self._device
        if device.in_host_memory:
            inputs = [box.get(number) for number in self.stage.inputs]
        else:
            inputs = [box.on(number, device) for number in self.stage.inputs]
        ready = time.perf_counter_ns() if watch else 0
        outputs = [box.allocate(number, kind) for number, kind in self._outputs]
        found = device.launch(self._program, inputs, outputs, variables)
        done = time.perf_counter_ns() if watch else 0
        send, owner = box.send, None if device.in_host_memory else device
        for number, buffer in zip(self.stage.outputs, found, strict=True):
            box.put(number, buffer, owner)
            if send is not None:
                send(number, box.get(number))
        if watch:
            end = time.perf_counter_ns()
            watch(StageTime(self.number, self.stage.device, begin, ready, done, end))


def _must_have_value(node: Node) -> bool:
    return op_of(node) is variable and not node.attrs.get("counter")


class StagedProgram:
    """All stages of a partitioned step that belong to devices of this process.

    Args:
        partition: the step.
        devices: the devices of this process, by full name.
        own: names of those whose stages run here; all of them by default.
        in_turn: whether one stage runs at a time, in the caller's thread: where devices share
            processors, or the stages are shorter than it takes to wake a thread. All stages must
            be those of this process.
    """

    def __init__(
        self, partition: Partition, devices: Mapping[str, Device],
        own: Collection[str] | None = None, in_turn: bool = False,
    ) -> None:  # fmt: skip
        self.partition: Final = partition
        self._in_turn: Final = in_turn
        self._pieces = [
            _Piece(number, stage, devices[stage.device], partition.types)
            for number, stage in enumerate(partition.stages)
            if own is None or stage.device in own
        ]
        self._lines: dict[str, list[_Piece]] = {}
        for piece in self._pieces:
            self._lines.setdefault(piece.stage.device, []).append(piece)

    def run(self, box: Box, states: Mapping[str, Variables]) -> None:
        """Runs the stages once: those of a device in order, those of several at the same time.

        An error ends all of them; of several, that of the first stage in order is raised.

        Args:
            box: has the fed values, and gets all others.
            states: the variables of each device.

        Raises:
            UninitializedError: a variable is read that has no value; no stage has run.
            BaseException: what a stage raised, or what the box was given.
        """
        try:
            self._check(states)
        except UninitializedError as error:
            box.abort(error)
            raise
        if self._in_turn or len(self._lines) == 1:
            _Run(box, states).line(self._pieces)
        else:
            _Run(box, states).lines(list(self._lines.values()))

    def _check(self, states: Mapping[str, Variables]) -> None:
        for piece in self._pieces:
            variables = states[piece.stage.device]
            for key, node in piece.reads.items():
                if key not in variables:
                    raise uninitialized(key, node)


class _Run:
    """One run of the stages of this process."""

    def __init__(self, box: Box, states: Mapping[str, Variables]) -> None:
        self.box, self.states = box, states
        self._errors: list[tuple[int, BaseException]] = []
        self._left = 0
        self._done = threading.Condition()

    def line(self, pieces: Sequence[_Piece]) -> None:
        """Runs stages one after another."""
        box, states = self.box, self.states
        try:
            with abandonable(box.check):
                for piece in pieces:
                    box.check()
                    piece.run(box, states[piece.stage.device])
        except BaseException as error:
            box.abort(error)
            raise

    def lines(self, lines: Sequence[Sequence[_Piece]]) -> None:
        """Runs several lines of stages at the same time, the first one in this thread."""
        try:
            for line in lines[1:]:
                self._begin(line)
            self._try(lines[0])
        except BaseException as error:  # Ctrl-C between two calls
            self._errors.append((-1, error))
            self.box.abort(error)
        self._wait()
        if self._errors:
            raise min(self._errors, key=lambda pair: pair[0])[1]
        self.box.check()

    def _begin(self, pieces: Sequence[_Piece]) -> None:
        with Uninterrupted():
            self._left += 1
            _CREW.do(partial(self._other, pieces))

    def _other(self, pieces: Sequence[_Piece]) -> None:
        try:
            self._try(pieces)
        finally:
            with self._done:
                self._left -= 1
                self._done.notify_all()

    def _try(self, pieces: Sequence[_Piece]) -> None:
        """Runs stages; an error is kept, unless it is that of another stage."""
        box = self.box
        number = 0
        try:
            with abandonable(box.check):
                for piece in pieces:
                    box.check()
                    number = piece.number
                    piece.run(box, self.states[piece.stage.device])
        except BaseException as error:
            if error is not box.error:
                self._errors.append((number, error))
                box.abort(error)

    def _wait(self) -> None:
        """Waits for the other lines; Ctrl-C makes them end."""
        while True:
            try:
                with self._done:
                    while self._left:
                        self._done.wait(LOOK_SECONDS)
                return
            except BaseException as error:
                self._errors.append((-1, error))
                self.box.abort(error)
