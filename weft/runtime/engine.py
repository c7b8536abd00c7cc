"""A graph as a function, compiled once per signature of its feeds; front ends call it.

>>> import numpy as np
>>> from weft import ops
>>> from weft.ir.graph import Graph
>>> graph = Graph()
>>> with graph.as_default():
...     x = ops.placeholder(dtype="float32", shape=(None,))
...     y = ops.tanh(x) + 1.0
>>> function = Function(graph, [y], feeds=[x])
>>> function([np.zeros(2, np.float32)], State())
[array([1., 1.], dtype=float32)]
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from weft import config
from weft.errors import FeedError, NoCompilerError
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import compatible, show
from weft.ops.boundary.state import variable
from weft.ops.communication.exchange_log import ExchangeLog
from weft.ops.communication.sequence import call_sequence
from weft.ops.declaration import Boundary, calls_python, op_of
from weft.passes.placement.explanation import PlacementExplanation
from weft.passes.specialize import OnlyInterpretedError
from weft.passes.step import Request, Step, needed
from weft.runtime.compilation import compiler
from weft.runtime.decision import Answers, Decisions
from weft.runtime.explanation import Explanation
from weft.runtime.finish import explained, on_state
from weft.runtime.flight import new_lock
from weft.runtime.initial_step import InitialStep, is_initial
from weft.runtime.interpreted import Interpreted
from weft.runtime.memory.state import State
from weft.runtime.oracle import Oracle
from weft.transport import session
from weft.transport.sequence import CallSequence

__all__ = ["Function", "State"]

Array = np.ndarray[Any, Any]
Signature = tuple[Any, ...]


class Runnable(Protocol):
    """The program of a step, on one device or several.

    Attributes:
        step: what it computes.
    """

    @property
    def step(self) -> Step: ...

    def run(self, arrays: Sequence[Array], state: Any) -> list[Any]:
        """Runs it once."""
        ...

    def profile(self, arrays: Sequence[Array], state: Any, runs: int = 5) -> str:
        """Where the time and the memory of a step go, as text."""
        ...


@runtime_checkable
class Placed(Protocol):
    """A program that can say where its parts are."""

    @property
    def explain(self) -> Callable[[], PlacementExplanation] | None: ...


Finish = Callable[[Step, int, int], Runnable]
First = Callable[[Step, int, int], Runnable | None]
_NOWHERE: Final[Mapping[Node, str]] = {}
MOST_PROGRAMS: Final = 256
"""Per function; beyond it the least recently used is dropped, and reloaded from disk."""


class Function:
    """A graph as a function from feeds and a state to fetches.

    Args:
        graph: the graph of the nodes.
        fetches: values to return.
        targets: nodes to run for their effect.
        feeds: values that the caller will provide, in this order; any value of the graph.
        threads: how many threads run a step; `WEFT_THREADS` by default.
        finish: makes the program of a specialized step: one that runs on several devices, say.
        done, placed: as in `weft.passes.step.Request`.
        first: makes what runs at first in place of such a program, and gives way to it; `None`
            where the program is to be there from the first run on.

    It may be called from several threads, which then take turns. It keeps the programs of its last
    `MOST_PROGRAMS` signatures.
    """

    def __init__(
        self, graph: Graph, fetches: Sequence[Value], targets: Sequence[Node] = (),
        feeds: Sequence[Value] = (), threads: int | None = None, finish: Finish = on_state,
        done: Iterable[Node] = (), placed: Mapping[Node, str] = _NOWHERE,
        first: First = lambda step, threads, count: None,
    ) -> None:  # fmt: skip
        self._count = len(fetches)
        self._finish, self._first = finish, first
        computed = (v for node in targets if _is_pure(node) for v in node.outputs)
        self.request = Request(
            graph, (*fetches, *computed), tuple(targets), tuple(feeds), frozenset(done), placed
        )
        self.threads = int(config.get("threads")) if threads is None else threads
        self._lock = new_lock()
        self._programs: OrderedDict[Signature, Runnable] = OrderedDict()  # least recent first
        self._only_interpreted: dict[Signature, str] = {}  # with the reason
        self._oracles: dict[Runnable, Oracle] = {}
        self._decisions = Decisions(self.request, self.threads)
        self._flexible = _flexible_variables(self.request)
        self._reference = bool(config.get("reference"))
        self._verify = bool(config.get("verify"))

    def __call__(self, arrays: Sequence[Array], state: State) -> list[Any]:
        """Run one step.

        Args:
            arrays: one per feed, of the feed's element type.
            state: variables, read and updated.

        Returns:
            Fresh arrays; NumPy scalars where a fetch has rank 0.

        Raises:
            FeedError: an array of the wrong type or shape.
            UninitializedError: a variable is read that has no value.
            OutOfRangeError: an index is out of bounds; no variable has changed.
        """
        answers, given = None, arrays
        try:
            program = self._known(arrays)
            if program is None:
                answers = Answers(arrays, state, self._announce)
                program = self._prepared(answers)
                arrays = answers.arrays
        except (NoCompilerError, OnlyInterpretedError):
            if answers is not None and answers.called:  # others are not called twice
                raise
            program = None
        if session.monitors and (answers is None or not answers.called):
            self._announce()
        if self._verify:
            _refuse_nan(self.request.feeds, given)
        if program is None:
            return self._run_interpreted(arrays, state)
        if self._reference:
            return self._compared(program, arrays, state)
        return program.run(arrays, state)

    def _announce(self) -> None:
        """Tell other ranks which calls this run makes."""
        if session.monitors and self._collectives is not None:
            session.enter(self._collectives)

    def _run_interpreted(self, arrays: Sequence[Array], state: State) -> list[Any]:
        try:
            return self._interpreted(arrays, state)
        except BaseException as error:
            session.step_failed(error)
            raise

    def _compared(self, program: Runnable, arrays: Sequence[Array], state: State) -> list[Any]:
        with state.lock:  # both see the same variables
            if program not in self._oracles:
                self._oracles[program] = Oracle(program.step, self.threads)
            log = ExchangeLog()
            with log.once():
                self._oracles[program].compare(arrays, state)
            with log.once():
                return program.run(arrays, state)

    def program(self, arrays: Sequence[Array], state: State) -> Runnable:
        """The program that a call with these feeds runs, compiled if needed.

        If its shapes depend on what other ranks or Python give, they are called.
        """
        return self._prepared(Answers(arrays, state, self._announce))

    def _known(self, arrays: Sequence[Array]) -> Runnable | None:
        """The program for feeds of these shapes, if they alone decide it."""
        if self._decisions.first or self._flexible:
            return None
        return self._found(tuple([(a.shape, a.dtype) for a in arrays]))

    def _prepared(self, answers: Answers) -> Runnable:
        signature: Signature = tuple([(a.shape, a.dtype) for a in answers.given])
        if self._decisions.first or self._flexible:
            signature = self._detailed(signature, answers)
        if signature in self._only_interpreted:
            raise OnlyInterpretedError(self._only_interpreted[signature])
        return self._found(signature) or self._compile(signature, answers)

    def _found(self, signature: Signature) -> Runnable | None:
        found = self._programs.get(signature)
        if found is not None and len(self._programs) > 1:
            self._touch(signature)
        return found

    def _touch(self, signature: Signature) -> None:
        try:  # on every step: `suppress` would take ten times as long
            self._programs.move_to_end(signature)
        except KeyError:  # another thread has just removed it
            return

    def profile(self, arrays: Sequence[Array], state: State, runs: int = 5) -> str:
        """Where a step's time and memory go, as text; runs `runs` real steps."""
        answers = Answers(arrays, state, self._announce)
        return self._prepared(answers).profile(answers.arrays, state, runs)

    def explain(self, arrays: Sequence[Array], state: State) -> Explanation | PlacementExplanation:
        """What the compiler makes of a step with these feeds, stage by stage; it is not run.

        Of a step over several devices: where its nodes are, and what its stages exchange.
        """
        answers = Answers(arrays, state, self._announce)
        if self._finish is not on_state:
            program = self._prepared(answers)
            if isinstance(program, Placed) and program.explain is not None:
                return program.explain()
        return explained(self._specialize(answers), self.threads)

    def _detailed(self, plain: Signature, answers: Answers) -> Signature:
        """The key with shapes of variables declared without, and the values that decide shapes."""
        shapes = self._shapes(plain, answers.state)
        return *shapes, *self._decisions.values(shapes, answers)

    def _shapes(self, plain: Signature, state: State) -> Signature:
        varying = tuple(state.memory(k).shape if k in state else None for k in self._flexible)
        return plain, varying

    @functools.cached_property
    def _collectives(self) -> CallSequence | None:
        """The collective calls that it makes; `None` if it makes none."""
        return call_sequence(needed(self.request))

    @functools.cached_property
    def _interpreted(self) -> Interpreted:
        """The same without a compiler."""
        request = self.request
        fetches = request.fetches[: self._count]
        return Interpreted(request.graph, fetches, request.targets, request.feeds, request.done)

    def _compile(self, signature: Signature, answers: Answers) -> Runnable:
        arrays = answers.given
        with self._lock:
            _check(self.request.feeds, arrays)
            compiler.demand()
            try:
                step = self._specialize(answers)
            except OnlyInterpretedError as error:
                self._only_interpreted[self._specialized_key(signature, answers)] = str(error)
                raise
            signature = self._specialized_key(signature, answers)
            if self._finish is on_state and is_initial(step):
                program = InitialStep(step, self.threads)
            else:
                asked = step, self.threads, self._count
                program = self._first(*asked) or self._finish(*asked)
            self._programs[signature] = program
            if len(self._programs) > MOST_PROGRAMS:
                _, gone = self._programs.popitem(last=False)
                self._oracles.pop(gone, None)
        return program

    def _specialized_key(self, signature: Signature, answers: Answers) -> Signature:
        """The key of what has just been specialized: only now may it be known to have details."""
        if not (self._decisions.first or self._flexible):
            return signature
        return self._detailed(tuple([(a.shape, a.dtype) for a in answers.given]), answers)

    def _specialize(self, answers: Answers) -> Step:
        arrays, state = answers.given, answers.state
        held = {k: state.memory(k) for k in self._flexible if k in state}
        variables = {k: TensorType(as_dtype(v.dtype), v.shape) for k, v in held.items()}
        shapes = self._shapes(tuple([(a.shape, a.dtype) for a in arrays]), state)
        return self._decisions.specialized(shapes, variables, answers)


def _is_pure(node: Node) -> bool:
    """Whether a target has no effect: it is computed, but not returned."""
    return not isinstance(op_of(node).lower, Boundary) and not calls_python(node)


def _flexible_variables(request: Request) -> tuple[str, ...]:
    """Variables whose declared shape is partly unknown."""
    found = dict.fromkeys(
        str(node.attrs["key"])
        for node in request.graph.nodes
        if op_of(node) is variable and (node.types[0].shape is None or None in node.types[0].shape)
    )
    return tuple(found)


def _check(feeds: Sequence[Value], arrays: Sequence[Array]) -> None:
    if len(feeds) != len(arrays):
        raise FeedError(f"expected {len(feeds)} feeds, got {len(arrays)}")
    for value, array in zip(feeds, arrays, strict=True):
        if array.dtype != value.dtype.numpy:
            raise FeedError(
                f"feed of {value.name}: expected {value.dtype}, got {array.dtype}: "
                f"{value.node.describe()}"
            )
        if not compatible(array.shape, value.shape):
            raise FeedError(
                f"feed of {value.name}: expected shape {show(value.shape)}, "
                f"got {show(array.shape)}: {value.node.describe()}"
            )


def _refuse_nan(feeds: Sequence[Value], arrays: Sequence[Array]) -> None:
    for value, array in zip(feeds, arrays, strict=True):
        if value.dtype.is_floating and np.isnan(array).any():
            where = np.argwhere(np.isnan(array))[0].tolist()
            raise FeedError(
                f"feed of {value.name}: expected numbers, got NaN at {where}: "
                f"{value.node.describe()}"
            )
