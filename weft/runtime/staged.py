"""Runs the stages of a partitioned step on the devices of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from weft.ir.node import TensorType
from weft.passes.partition import Partition, Stage
from weft.runtime.device.base import Buffer, Device, Variables


def no_memory(value: int, kind: TensorType) -> Buffer | None:
    """Leaves it to the devices to allocate memory."""
    del value, kind


class Box:
    """The values of one run of a step, by number: where stages on different threads meet.

    Args:
        count: how many values there are.
        allocate: gives memory for a value that a stage computes, or `None`.
        send: is told each value that a stage has computed.
    """

    def __init__(
        self, count: int, allocate: Callable[[int, TensorType], Buffer | None] = no_memory,
        send: Callable[[int, Buffer], None] | None = None,
    ) -> None:  # fmt: skip
        self.allocate: Final = allocate
        self.send: Final = send
        self.error: BaseException | None = None
        self._buffers: list[Any] = [None] * count
        self._changed = threading.Condition()
        self._waiting = 0

    def put(self, value: int, array: Buffer) -> None:
        """Gives a value to those that wait for it."""
        self._buffers[value] = array
        if self._waiting:
            with self._changed:
                self._changed.notify_all()

    def get(self, value: int) -> Buffer:
        """A value, once it is there.

        Raises:
            BaseException: what `abort` was given.
        """
        found = self._buffers[value]
        return self._awaited(value) if found is None else found

    def abort(self, error: BaseException) -> None:
        """Makes all that wait, now or later, raise this error; only the first one counts."""
        with self._changed:
            if self.error is None:
                self.error = error
            self._changed.notify_all()

    def _awaited(self, value: int) -> Buffer:
        with self._changed:
            self._waiting += 1
            try:
                while self._buffers[value] is None:
                    if self.error is not None:
                        raise self.error
                    self._changed.wait()
                return self._buffers[value]
            finally:
                self._waiting -= 1


class _Piece:
    """A stage and its program."""

    def __init__(self, stage: Stage, device: Device, types: Sequence[TensorType]) -> None:
        self.inputs: Final = stage.inputs
        self.outputs: Final = stage.outputs
        self.device: Final = device
        self.program: Final = device.compile(stage.step)
        self._types: Final = [types[number] for number in stage.outputs]

    def run(self, box: Box, variables: Variables) -> None:
        """Runs it once its inputs are there."""
        inputs = [box.get(number) for number in self.inputs]
        outputs = [box.allocate(*pair) for pair in zip(self.outputs, self._types, strict=True)]
        found = self.device.launch(self.program, inputs, outputs, variables)
        for number, buffer in zip(self.outputs, found, strict=True):
            box.put(number, buffer)
            if box.send is not None:
                box.send(number, buffer)


class StagedProgram:
    """All stages of a partitioned step that belong to devices of this process.

    Args:
        partition: the step.
        devices: the devices of this process, by full name.
        own: names of those whose stages run here; all of them by default.
    """

    def __init__(
        self, partition: Partition, devices: Mapping[str, Device],
        own: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        self.partition: Final = partition
        self._lines: dict[str, list[_Piece]] = {}
        for stage in partition.stages:
            if own is None or stage.device in own:
                line = self._lines.setdefault(stage.device, [])
                line.append(_Piece(stage, devices[stage.device], partition.types))

    def run(self, box: Box, states: Mapping[str, Variables]) -> None:
        """Runs the stages once: those of a device in order, those of several at the same time.

        Args:
            box: has the fed values, and gets all others.
            states: the variables of each device.

        Raises:
            BaseException: what the first stage that failed raised, or what the box was given.
        """
        lines = [(pieces, states[name]) for name, pieces in self._lines.items()]
        others = [
            threading.Thread(target=_guarded, args=(box, *line), daemon=True) for line in lines[1:]
        ]
        for thread in others:
            thread.start()
        try:
            for line in lines[:1]:
                _guarded(box, *line)
        finally:
            for thread in others:
                thread.join()
        if box.error is not None:
            raise box.error


def _guarded(box: Box, pieces: Sequence[_Piece], variables: Variables) -> None:
    """Runs the stages of a device; an error ends those of all devices."""
    try:
        for piece in pieces:
            if box.error is not None:
                return
            piece.run(box, variables)
    except BaseException as error:
        box.abort(error)
