"""Random steps with variables, random bits and effects, placed on devices at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from drawn_graph import Drawing, slopes
from drawn_loops import Loops

from weft import ops
from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ops.boundary.state import counter, variable
from weft.ops.declaration import op_of
from weft.passes.placement.choose import chosen
from weft.passes.step import Step
from weft.runtime.device.local import cpu_devices
from weft.runtime.device.states import DeviceStates
from weft.runtime.engine import Function, State
from weft.runtime.finish import partitioned
from weft.runtime.local_devices import LocalProgram

Array = np.ndarray[Any, Any]


class Drawn:
    """A step drawn from `seed`.

    Args:
        python: whether Python computes something in loops; by default where that can be placed
            anywhere: the gradient of a loop that calls Python has to be on the loop's device.

    Attributes:
        fetches, targets, feeds, arrays: as a `Function` takes them.
        log: what its calls of Python have been given, in order.
    """

    def __init__(self, seed: int, size: int = 8, python: bool | None = None) -> None:
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.log: list[float] = []
        self.state: dict[str, Array] = {}
        self.targets: list[Node] = []
        if seed % 4 == 3:
            loops = Loops(seed, depth=1, python=seed % 8 != 7 if python is None else python)
            self.graph: Graph = loops.graph
            self.feeds, self.arrays = loops.feeds, loops.arrays
            self.fetches = list(loops.results)
            if seed % 8 == 7:
                loops.differentiate(1)
                self.fetches = list(loops.results)
        else:
            drawing = Drawing(seed)
            ys = drawing.grow(size)
            if seed % 4 == 2:
                ys = [*ys, *slopes(drawing, ys)]
            self.graph = drawing.graph
            self.feeds, self.arrays = list(drawing.feeds), list(drawing.feeds.values())
            self.fetches = ys
        with self.graph.as_default():
            self._add()

    def _add(self) -> None:
        ys = [y for y in self.fetches if y.dtype.name == "float32"]
        for i in range(int(self.rng.integers(1, 4))):
            y = self._pick(ys)
            ys.append(self._pick([self._updated, self._random, self._called])(i, y))
        self.fetches = [*self.fetches, *[y for y in ys if y not in self.fetches]]

    def _updated(self, i: int, y: Value) -> Value:
        """Reads a variable, updates it, and reads it again in one of several orders."""
        v = ops.variable(key=f"v{i}", dtype="float32", shape=y.shape)
        self.state[f"v{i}"] = np.asarray(self.rng.uniform(-1, 1, y.shape), np.float32)
        old = ops.read(v)
        new = self._pick([lambda: ops.tanh(old * 0.5 + y * 0.1), lambda: y * 0.5, lambda: y])()
        done = ops.assign(v, new).node
        self.targets.append(done)
        with self.graph.control_dependencies([done] if self.rng.random() < 0.5 else []):
            again = ops.read(v)
        if self.rng.random() < 0.3:
            self.targets.append(ops.assign(v, ops.tanh(ops.read(v, latest=True) + 0.25)).node)
        return ops.tanh(again + old * y)

    def _random(self, i: int, y: Value) -> Value:
        noise = ops.random_uniform(ops.counter(key=f"c{i}"), (7, i), y.shape, "float32")
        return y * 0.5 + noise

    def _called(self, i: int, y: Value) -> Value:
        def function(x: Array) -> Array:
            self.log.append(i + float(x.sum(dtype=np.float64)))
            return x * np.float32(0.5)

        return ops.host_call(y, function=function, dtypes=("float32",), shapes=(y.shape,))

    def _pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def placed(self, names: Sequence[str], free: float = 0.4) -> dict[Node, str]:
        """Devices of nodes at random: often that of an input; some nodes are free."""
        found: dict[Node, str] = {}
        self.rng = np.random.default_rng((self.seed, 1))
        for node in self.graph.nodes:
            kept = op_of(node) in (variable, counter)
            if self.rng.random() < free and not kept:
                continue
            near = [found[v.node] for v in node.inputs if v.node in found]
            stay = near and self.rng.random() < 0.6
            found[node] = self._pick(near) if stay and not kept else self._pick(names)
        return found

    def one(self, runs: int = 2, asked: int = 1) -> list[Any]:
        """On one device: results of each run, variables after each, and the log.

        Args:
            asked: how many devices nodes ask for, of which only one exists.
        """
        names = [str(d.name) for d in cpu_devices(asked, 1)]
        placed = {n: "" if d == names[0] else d for n, d in self.placed(names).items()}
        function = Function(
            self.graph, self.fetches, self.targets, self.feeds, 1,
            placed=placed if asked > 1 else {},
        )  # fmt: skip
        state = State()
        state.update(self.state)
        return self._runs(lambda: function(self.arrays, state), state, runs)

    def several(
        self, count: int = 2, runs: int = 2, made: Callable[[LocalProgram], object] | None = None
    ) -> list[Any]:
        """The same on several devices; `made` is told the program."""
        devices = {str(d.name): d for d in cpu_devices(count, 1)}
        names = list(devices)
        placed = self.placed(names)
        homes = {n.attrs["key"]: d for n, d in placed.items() if op_of(n) in (variable, counter)}
        state = DeviceStates({n: d.variables() for n, d in devices.items()}, names[0])
        state.tell(homes)

        def finish(step: Step, threads: int, fetches: int) -> LocalProgram:
            del threads
            whole, parts = partitioned(step, lambda s: chosen(s, names[0]), homes, True, names[0])
            found = LocalProgram(whole, parts, devices, fetches)
            if made is not None:
                made(found)
            return found

        function = Function(
            self.graph, self.fetches, self.targets, self.feeds, 1, finish, placed=placed
        )
        state.update(self.state)
        return self._runs(lambda: function(self.arrays, state), state, runs)

    def _runs(self, run: Callable[[], list[Any]], state: Any, runs: int) -> list[Any]:
        found: list[Any] = []
        self.log.clear()
        for _ in range(runs):
            results = [np.asarray(y) for y in run()]
            values = sorted((k, state[k]) for k in state)
            found.append([(y.shape, y.tobytes()) for y in results])
            found.append([(k, x.tobytes()) for k, x in values])
        return [*found, list(self.log)]
