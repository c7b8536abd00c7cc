"""Structures that library kernels compute, until they have a program of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from weft import config
from weft.codegen.target import portable
from weft.eager.record.call.plan import Plan
from weft.eager.record.listing.collective_calls import collective_calls, shared
from weft.eager.record.listing.expansion import Expanded, expand
from weft.eager.record.pending.determinism import are_deterministic_algorithms_enabled
from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.recognition.structure import Memo, Structure
from weft.eager.record.run.compiled_tier import Compiled
from weft.eager.record.run.placed_tier import OverDevices
from weft.eager.record.run.stitch import counted, stitched
from weft.eager.record.run.tier import Compute, Interpreted, Results, Tier
from weft.errors import CompileError, NoCompilerError
from weft.ir.graph import Graph
from weft.ir.node import Node, TensorType, Value
from weft.library.first_runs import written
from weft.library.generator import LibraryGenerator
from weft.library.payoff import LEAST, Price
from weft.library.routine import NoRoutineError
from weft.ops.communication.overlap import PAIRED
from weft.ops.communication.sequence import call_sequence
from weft.ops.declaration import inner_nodes, op_of
from weft.passes.pipeline import optimize
from weft.passes.step import Step
from weft.runtime import finish
from weft.runtime.compilation import compiler
from weft.runtime.executable import Executable
from weft.runtime.execution import driver
from weft.runtime.memory.recycled import MAPPED, release
from weft.transform.interpreter import needs_interpreter
from weft.transport import session

STITCHED_RUNS: Final = LEAST
"""Runs of a list before a program, at least."""
STITCHED_RUNS_OF_MANY: Final = 256
"""The same of what comes in ever new sizes: ..."""
SHAPES: Final = 8
"""... so many structures with the same calls."""
MOST_OF_SHORT: Final = 32
"""Calls of a list that may have a shortcut early."""
BYTES_A_SECOND: Final = 2e9
"""What networks write as lists of kernels."""
MOST: Final = 512  # forgotten together
MOST_EARLY: Final = 1 << 12  # likewise; they keep plans alive

MANY: Final = 32  # calls; more may come in another number each time, as the steps of an episode


class Count:
    """Runs of a structure on library kernels: those so far, and those before its program."""

    __slots__ = ("before", "runs")

    def __init__(self) -> None:
        self.runs, self.before = 0, STITCHED_RUNS_OF_MANY


_shapes: Final[dict[Collection[str], int]] = {}
_early: Final[dict[tuple[Plan, ...], Count]] = {}  # runs of those that may have shortcuts


def _alike(structure: Structure) -> Collection[str]:
    """What it has in common with those for which it may be one of many."""
    calls = structure.calls
    return calls if len(calls) <= MANY else frozenset(calls)


def meet(structure: Structure) -> None:
    """Count a structure that has not run before."""
    calls = _alike(structure)
    if len(_shapes) >= MOST:
        _shapes.clear()
    _shapes[calls] = _shapes.get(calls, 0) + 1


def is_of_many(structure: Structure) -> bool:
    """Whether there are so many structures like it that it stays a list for long."""
    return _shapes.get(_alike(structure), 0) >= SHAPES


def is_early(plans: tuple[Plan, ...]) -> bool:
    """Whether a structure that may stay a list has run so rarely that it still is one."""
    count = _counted(plans)
    return count.runs < count.before - 1 and not is_compiled_at_once(())


def note_run(plans: tuple[Plan, ...]) -> bool:
    """Count a run; true."""
    _counted(plans).runs += 1
    return True


def _counted(plans: tuple[Plan, ...]) -> Count:
    found = _early.get(plans)
    if found is None:
        if len(_early) >= MOST_EARLY:
            _early.clear()
        found = _early[plans] = Count()
    return found


def plans_of(structure: Structure) -> tuple[Plan, ...]:
    """The plans of its calls."""
    return tuple([record.plan for record in structure.records])


def _stays(tier: Stitched | LibraryProgram, structure: Structure, runs: int) -> bool:
    """Whether a structure that has run so often runs on library kernels alone once more."""
    if is_compiled_at_once(types_of(structure)):
        return False
    if runs < STITCHED_RUNS:
        return True
    count = _early.get(plans_of(structure))
    return max(runs, count.runs if count else 0) < _runs_before(tier.price, structure)


def _runs_before(price: Price, structure: Structure) -> int:
    """How often it runs on library kernels before its program is begun."""
    least = STITCHED_RUNS_OF_MANY if is_of_many(structure) else STITCHED_RUNS
    return max(price.runs, least)


def _launches(node: Node) -> int:
    """How many kernels a node is, those in loops once."""
    return 1 + sum(map(_launches, inner_nodes(node)))


def is_compiled_at_once(types: Iterable[TensorType]) -> bool:
    """Whether values of these types have a program of their own from the first run on.

    In deterministic mode, half precision has: a program rounds less often than single calls.
    """
    if config.get("compile") or config.get("reference"):
        return True
    return are_deterministic_algorithms_enabled() and any([
        t.dtype.is_floating and t.dtype.size < 4 for t in types
    ])  # fmt: skip


def types_of(structure: Structure) -> Iterator[TensorType]:
    """The types of what its calls take and give."""
    for record in structure.records:
        yield from [x.type for x in record.inputs]
        yield from record.plan.types


def _announce(exchanges: Sequence[Node], structure: Structure, as_rows: bool) -> None:
    """Tells other ranks what a list calls them for.

    Raises:
        NoRoutineError: a program of its own would make other calls, or the same at other places.
    """
    if any([op_of(node) in PAIRED for node in exchanges]):
        raise NoRoutineError
    calls = call_sequence(exchanges)
    if structure.memo is None:  # met in no sizes before
        whole = collective_calls(structure, as_rows)
        if calls != whole and (calls is None or whole is None or calls.digests != whole.digests):
            raise NoRoutineError
    if calls is not None:
        session.enter(shared(calls))


class Stitched(Tier):
    """A list of library kernels.

    Args:
        for_good: whether it stays so, however often it runs.
    """

    def __init__(self, as_rows: bool, for_good: bool = False) -> None:
        super().__init__(as_rows)
        self._for_good = for_good
        self._runs = 0
        self.price = Price(0, 0.0)  # of the last run
        self._memo: Memo | None = None  # once it has come again: few do

    @property
    def why(self) -> str:
        """See `Tier`."""
        if self._for_good:
            return "library kernels, always: the compiler knows no complex numbers"
        return f"library kernels: it has run {self._runs - 1} times"

    def next(self, structure: Structure) -> Tier | None:
        """See `Tier`."""
        after = self if self._for_good else _after(self, structure, self._runs)
        if after is self:
            self._memo = self._memo or Memo()
        return after

    def begin(self, structure: Structure, leaves: Sequence[Array], wanted: Lazy | None) -> Compute:
        """See `Tier`."""
        driver.entries()
        run = stitched(structure, leaves, self.as_rows, structure.memo or self._memo)
        if session.monitors:
            _announce(run.list.exchanges, structure, self.as_rows)
        self._runs += 1
        self.price = run.list.price
        self.overwrites = run.overwrites
        if structure.memo is not None:
            count = _counted(plans_of(structure))
            count.runs = max(count.runs + 1, self._runs)
            count.before = _runs_before(self.price, structure)
        return run.run

    def instead(self, structure: Structure, error: Exception) -> Tier:
        """See `Tier`."""
        if self._for_good or isinstance(error, NoCompilerError):
            return Interpreted(structure, self.as_rows, self._for_good)
        if not any(structure.devices) and not any([r.plan.boundless for r in structure.records]):
            with contextlib.suppress(CompileError):
                return LibraryProgram(structure, self.as_rows, expand(structure, self.as_rows))
        return compiled(structure, self.as_rows)


class LibraryProgram(Compiled):
    """A program of library kernels, for what lists of them cannot do: loops and branches."""

    def __init__(self, structure: Structure, as_rows: bool, expanded: Expanded) -> None:
        super().__init__(structure, as_rows, expanded)
        nodes = expanded.graph.nodes
        seconds = sum(map(written, nodes)) / BYTES_A_SECOND
        self.price = Price(sum(map(_launches, nodes)), seconds)

    @property
    def why(self) -> str:
        """See `Tier`."""
        return f"library kernels in a program: it has run {self.runs - 1} times"

    def next(self, structure: Structure) -> Tier | None:
        """See `Tier`."""
        return _after(self, structure, self.runs)

    def instead(self, structure: Structure, error: Exception) -> Tier:
        """See `Tier`."""
        if isinstance(error, NoCompilerError):
            return Interpreted(structure, self.as_rows)
        return compiled(structure, self.as_rows)

    def _begun(self, step: Step, threads: int, device: int) -> Callable[[], Executable]:
        del device
        target = portable()
        kernels = LibraryGenerator(target)
        # Looking for kernels of groups takes longer than they save: loops come in many lengths.
        return finish.of_library_kernels(
            optimize(step), threads, kernels, lambda group: False, kernels.addresses, target
        )


def _after(tier: Stitched | LibraryProgram, structure: Structure, runs: int) -> Tier:
    """What computes the next run of a structure that has run so often on library kernels."""
    if _stays(tier, structure, runs):
        return tier
    at_once = is_compiled_at_once(types_of(structure))  # asked for only since its last run
    return compiled(structure, tier.as_rows) if at_once else Compiling(tier, runs)


class Compiling(Tier):
    """Library kernels some more times, while other processes compile those of a program.

    How often follows from the structure, whether or not they are done by then.

    Args:
        cold: what has run until now, ...
        runs: ... so often.
    """

    def __init__(self, cold: Stitched | LibraryProgram, runs: int) -> None:
        super().__init__(cold.as_rows)
        self._cold = cold
        self._runs = runs
        self._program: Tier | None = None
        self._left = 0  # runs, until the program's

    @property
    def why(self) -> str:
        """See `Tier`."""
        return "library kernels, while those of its own program are compiled"

    def next(self, structure: Structure) -> Tier | None:
        """See `Tier`."""
        if self._program is None or self._left:
            return self
        release(MAPPED)  # a program has memory of its own
        return self._program

    def begin(self, structure: Structure, leaves: Sequence[Array], wanted: Lazy | None) -> Compute:
        """See `Tier`."""
        if self._program is None and compiler.available():
            with contextlib.suppress(NoCompilerError):
                self._program = _program(structure, self.as_rows, beside=True)
                self._left = self._cold.price.meanwhile(self._runs)
        self._left = max(self._left - 1, 0)
        compute = self._cold.begin(structure, leaves, wanted)
        self.overwrites = self._cold.overwrites

        def beside() -> Results:
            found = compute()
            compiler.feed()
            return found

        return beside


def tier_of(graph: Graph, outputs: Sequence[Value], feeds: Sequence[Value]) -> str:
    """What computes the calls of a graph, and for which reason."""
    if is_compiled_at_once([t for node in graph.nodes for t in node.types]):
        return "this program from the first run on, as is asked for"
    try:
        launches, calls = counted(graph, outputs, feeds)
    except NoRoutineError:
        return "library kernels in a program at first, for loops or branches; later this program"
    except CompileError:
        return "this program from the first run on: the library lacks a kernel"
    python = f" and {calls} calls of Python" if calls else ""
    what = f"{launches} launches{python}"
    return f"library kernels at first: {what}; later this program"


def compiled(structure: Structure, as_rows: bool) -> Tier:
    """The tier of a structure that is compiled before its first run.

    Raises:
        CompileError: there is no kernel for something.
    """
    try:
        return _program(structure, as_rows)
    except NoCompilerError:
        return Interpreted(structure, as_rows)


def _program(structure: Structure, as_rows: bool, beside: bool = False) -> Tier:
    """A program of its own, where the compiler can make one.

    Args:
        beside: whether other processes plan it while this one runs something else.
    """
    expanded = expand(structure, as_rows)
    if needs_interpreter(expanded.graph):
        return Stitched(as_rows, for_good=True)
    if len(structure.devices) > 1:
        return OverDevices(structure, as_rows, expanded)
    return Compiled(structure, as_rows, expanded, beside)
