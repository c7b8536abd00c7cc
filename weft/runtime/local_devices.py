"""Steps over several devices of this process: their variables, and programs made of stages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.node import TensorType
from weft.ir.shape import is_stack, size
from weft.ops.declaration import is_hosted
from weft.passes.partition import Partition
from weft.passes.placement.cost import node_ns
from weft.passes.placement.explanation import PlacementExplanation
from weft.passes.staging.lend import Lent, lend
from weft.passes.step import Step
from weft.runtime.device.base import Buffer, Device, HostArray
from weft.runtime.executable import uninitialized
from weft.runtime.flight import new_lock
from weft.runtime.memory.state import State
from weft.runtime.staged import Box, StagedProgram, StageTime


class DeviceStates(MutableMapping[str, HostArray]):
    """The variables of several devices, each at its home.

    Args:
        states: the variables of each device, by its full name.
        default: the home of what is not told to be elsewhere.

    Attributes:
        homes: the device of each variable, by key, as far as it is told.
        lock: held while a step runs.
    """

    def __init__(self, states: Mapping[str, State], default: str) -> None:
        self.lock: Final = new_lock()
        self.states: Final = states
        self.homes: dict[str, str] = {}
        self._default: Final = default

    def tell(self, homes: Mapping[str, str]) -> None:
        """Tells where variables are; what has a value elsewhere moves there. The first word counts.

        Args:
            homes: devices by key.
        """
        with self.lock:
            for key, home in homes.items():
                if key in self.homes:
                    continue
                before = self.home(key)
                self.homes[key] = home
                if before != home and key in self.states[before]:
                    self.states[home][key] = self.states[before].pop(key)

    def home(self, key: str) -> str:
        """The device of a variable."""
        return self.homes.get(key, self._default)

    @property
    def version(self) -> int:
        """Changes whenever memory of a variable moves."""
        return sum([state.version for state in self.states.values()])

    def memory(self, key: str) -> HostArray:
        """The array that programs read and write, not a copy."""
        return self._at(key).memory(key)

    def reserve(self, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> HostArray:
        """Memory for a variable at its home."""
        return self._at(key).reserve(key, shape, dtype)

    def __getitem__(self, key: str) -> HostArray:
        with self.lock:
            return self._at(key)[key]

    def __setitem__(self, key: str, value: HostArray) -> None:
        with self.lock:
            self._at(key)[key] = value

    def __delitem__(self, key: str) -> None:
        with self.lock:
            del self._at(key)[key]

    def __contains__(self, key: object) -> bool:
        return any([key in state for state in self.states.values()])

    def __iter__(self) -> Iterator[str]:
        for state in self.states.values():
            yield from state

    def __len__(self) -> int:
        return sum(map(len, self.states.values()))

    def _at(self, key: str) -> State:
        return self.states[self.home(key)]


class LocalProgram:
    """A partitioned step as a program.

    Values that stages give to each other lie in memory that is kept from run to run.

    Args:
        step: the whole step.
        partition: its stages.
        devices: by full name.
        fetches: how many of the step's fetches are returned, if not all.
        apart: whether the devices have processors of their own.
        explain: says why its nodes are where they are.
    """

    def __init__(
        self, step: Step, partition: Partition, devices: Mapping[str, Device],
        fetches: int | None = None, apart: bool = True,
        explain: Callable[[], PlacementExplanation] | None = None,
    ) -> None:  # fmt: skip
        self.step: Final = step
        self.explain: Final = explain
        self._fetches: Final = partition.fetches[:fetches]
        in_turn = not apart or _calls_python(partition) or gain_ns(partition) < WORTH_NS
        partition, self._lent = lend(partition, in_turn)
        self.partition: Final = partition
        self._staged: Final = StagedProgram(partition, devices, in_turn=in_turn)
        self._kept: dict[int, Buffer] = {
            number: devices[stage.device].allocate(partition.types[number])
            for stage in partition.stages
            for number in stage.outputs
            if number not in self._fetches and not is_stack(partition.types[number].shape)
        }

    def run(self, arrays: Sequence[Buffer], state: DeviceStates) -> list[Any]:
        """Runs the step once; fresh arrays."""
        partition, watch = self.partition, _tell if watchers else None
        box = Box(len(partition.types), self._memory, watch=watch)
        for number, array in zip(partition.feeds, arrays, strict=True):
            box.put(number, np.asarray(array))
        with state.lock:
            for number, lent in self._lent.items():
                box.put(number, _memory_of(lent, state.states[lent.device]))
            self._staged.run(box, state.states)
        seen = set(partition.feeds)
        found: list[Any] = []
        for number in self._fetches:
            array = box.get(number)
            if not array.ndim:
                array = array[()]
            elif number in seen:
                array = array.copy()
            found.append(array)
            seen.add(number)
        return found

    def _memory(self, value: int, kind: TensorType) -> Buffer | None:
        del kind
        return self._kept.get(value)

    def profile(self, arrays: Sequence[Buffer], state: DeviceStates, runs: int = 5) -> str:
        """When each stage ran, as text; runs `runs` real steps and shows the shortest."""
        found: list[list[StageTime]] = []
        for _ in range(runs):
            with watch_stages() as times:
                self.run(arrays, state)
            found.append(sorted(times))
        return show_times(self.partition, min(found, key=_duration))


def _memory_of(lent: Lent, state: State) -> HostArray:
    if lent.key not in state:
        raise uninitialized(lent.key, lent.node)
    return state.memory(lent.key)


WORTH_NS: Final = 100_000.0
"""What must be gained by running devices at the same time, as threads have to wake up."""


def _calls_python(partition: Partition) -> bool:
    """Whether Python is called, which is done by the caller's thread: it may run other steps."""
    return any([is_hosted(n) for stage in partition.stages for n in stage.step.graph.nodes])


def gain_ns(partition: Partition) -> float:
    """How much sooner a step is done if its devices run at the same time."""
    times = [sum(map(node_ns, stage.step.graph.nodes)) for stage in partition.stages]
    ready: dict[int, float] = {}
    free: dict[str, float] = {}
    for stage, time in zip(partition.stages, times, strict=True):
        begin = max([free.get(stage.device, 0.0), *[ready.get(v, 0.0) for v in stage.inputs]])
        free[stage.device] = begin + time
        ready.update(dict.fromkeys(stage.outputs, begin + time))
    return sum(times) - max(free.values(), default=0.0)


watchers: Final[list[Callable[[StageTime], object]]] = []


def _tell(time: StageTime) -> None:
    for watcher in list(watchers):
        watcher(time)


@contextlib.contextmanager
def watch_stages() -> Iterator[list[StageTime]]:
    """Records the times of every stage that runs, in any thread, into the list."""
    times: list[StageTime] = []
    tell = times.append
    watchers.append(tell)
    try:
        yield times
    finally:
        watchers.remove(tell)


def _duration(times: Sequence[StageTime]) -> int:
    return max([t.end for t in times], default=0) - min([t.begin for t in times], default=0)


def show_times(partition: Partition, times: Sequence[StageTime]) -> str:
    """A line per stage: its device, when it began, and how long it waited and computed."""
    first = min([t.begin for t in times], default=0)
    lines = [f"{len(times)} stages, {_duration(times) / 1e3:.0f} us"]
    for t in times:
        stage = partition.stages[t.stage]
        given = sum([_bytes(partition.types[v]) for v in stage.outputs])
        lines.append(
            f"{t.stage:4} {t.device} at {(t.begin - first) / 1e3:.0f} us: waited "
            f"{(t.ready - t.begin) / 1e3:.0f}, computed {(t.done - t.ready) / 1e3:.0f}, "
            f"gave {given:,} B in {(t.end - t.done) / 1e3:.0f}"
        )
    return "\n".join(lines)


def _bytes(kind: TensorType) -> int:
    return 0 if is_stack(kind.shape) else size(kind.shape) * kind.dtype.size
